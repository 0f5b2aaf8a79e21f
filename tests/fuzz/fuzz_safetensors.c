/* fuzz_safetensors.c - libFuzzer over the reader of safetensors headers. The first two bytes are
 * how much data the header is said to describe. */
#include "convert/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safetensors_table *table = NULL;
    hone_error error;

    if (size >= 2 &&
        safetensors_parse("fuzz", (const char *)data + 2, size - 2,
                          (uint64_t)data[0] | (uint64_t)data[1] << 8, &table, &error) == HONE_OK) {
        uint64_t at = 0;
        for (size_t i = 0; i < table->len; i++) {
            if (table->tensors[i].begin != at) {
                abort(); /* what is accepted covers the data */
            }
            at += table->tensors[i].bytes;
        }
        safetensors_free(table);
    }
    return 0;
}
