/* emu_content.c - what a buffer holds before a launch. */
#include "cli/emu.h"

#include "core/numfmt.h"
#include "core/random.h"

#include <stdlib.h>
#include <string.h>

static hone_status load_file(const launch_argument *a, uint8_t *bytes, hone_error *error)
{
    char *text = NULL;
    size_t len = 0;
    hone_status status = emu_read_file(a->path, &text, &len, error);

    if (status == HONE_OK && len > a->bytes) {
        status = status_set(error, HONE_BAD_ARGUMENT, a->path, 0, "%zu bytes; the buffer has %llu",
                            len, (unsigned long long)a->bytes);
    }
    if (status == HONE_OK) {
        memcpy(bytes, text, len);
    }
    free(text);
    return status;
}

static void put_word(uint8_t *bytes, uint64_t len, uint64_t index, uint32_t word)
{
    uint64_t left = len - index * 4;
    memcpy(bytes + index * 4, &word, left < 4 ? left : 4);
}

hone_status emu_content(const launch_argument *a, uint8_t **out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t seed = a->seed;
    uint8_t *bytes = NULL;

    if (a->fill == LAUNCH_UNWRITTEN) {
        return HONE_OK;
    }
    bytes = calloc(1, a->bytes);
    if (bytes == NULL) {
        return status_set(error, HONE_NO_MEMORY, a->name, 0, "a buffer of %llu bytes",
                          (unsigned long long)a->bytes);
    }
    for (uint64_t n = 0; a->fill > LAUNCH_UNWRITTEN && a->fill < LAUNCH_FILE && n * 4 < a->bytes;
         n++) {
        uint32_t word = a->fill == LAUNCH_RANDOM ? (uint32_t)random_next(&seed)
                        : a->fill == LAUNCH_FLOATS
                            ? numfmt_bits((float)(2.0 * random_unit(&seed) - 1.0))
                        : a->fill == LAUNCH_IOTA ? (uint32_t)n
                                                 : (uint32_t)a->seed;
        put_word(bytes, a->bytes, n, word);
    }
    if (a->fill == LAUNCH_FILE) {
        TRY(load_file(a, bytes, error));
    }
    *out = bytes;
    bytes = NULL;
done:
    free(bytes);
    return status;
}
