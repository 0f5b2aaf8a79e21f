/* fuzz_ptx.c - libFuzzer over the PTX reader, the decoder and the machine. */
#include "tests/fuzz/ptx_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ptx_target_run(data, size);
    return 0;
}
