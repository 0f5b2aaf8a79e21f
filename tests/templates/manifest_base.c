/* manifest_base.c - see manifest_base.h. */
#include "tests/templates/manifest_base.h"

#include "tests/templates/fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const base[] = {
    /* 1 */ "schema: 1",
    /* 2 */ "op: fp8_gemm",
    /* 3 */ "source: fp8_gemm/mma.cu",
    /* 4 */ "when: [{rule: dev_arch >= 89, why: needs sm_89}, k > 0]",
    /* 5 */ "params:",
    /* 6 */ "  block_m: [16, 32, 64]",
    /* 7 */ "  block_n: [32, 64]",
    /* 8 */ "  stages: [2, 3]",
    /* 9 */ "  swizzle: [false, true]",
    /* 10 */ "let:",
    /* 11 */ "  shared: stages * (block_m + block_n) * 128",
    /* 12 */ "  wide: n >= 128",
    /* 13 */ "require:",
    /* 14 */ "  - {rule: shared <= dev_smem_block / 4, why: a quarter of the SM}",
    /* 15 */ "  - block_m <= block_n || wide",
    /* 16 */ "config: {block_m: block_m, block_n: block_n, stages: stages, swizzle: swizzle}",
    /* 17 */ "launches:",
    /* 18 */ "  - kernel: gemm",
    /* 19 */ "    grid: [\"ceil_div(n, block_n)\", \"ceil_div(m, block_m)\", batch]",
    /* 20 */ "    block: [block_m * 4]",
    /* 21 */ "    shared: shared",
    /* 22 */ "    arguments: [{operand: a}, {scalar: m, type: i64}, {workspace: 16}]",
    /* 23 */ "workspace: {bytes: m * 4, zeroed: true}",
    /* 24 */ "pipeline: stages",
    /* 25 */ "estimate: {registers: block_m + 40, macs: m * n * k}",
    /* 26 */ "tolerance: 36",
};

char *manifest_base_write(int line, const char *instead)
{
    size_t capacity = 8192 + strlen(instead), used = 0;
    char *text = malloc(capacity);

    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < (int)ARRAY_LEN(base); i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s\n",
                                 i + 1 == line ? instead : base[i]);
    }
    return text;
}

hone_status manifest_base_parse(int line, const char *instead, manifest **out, hone_error *error)
{
    char *text = manifest_base_write(line, instead);
    hone_status status = manifest_parse("t", text, strlen(text), out, error);

    free(text);
    return status;
}
