/* fixture.c - a problem, a device and manifests for the suites of this folder. */
#include "tests/templates/fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

device_facts fixture_device(void)
{
    return (device_facts){.name = "NVIDIA H20",
                          .arch = 90,
                          .sm_count = 78,
                          .threads_per_sm = 2048,
                          .blocks_per_sm = 32,
                          .regs_per_sm = 65536,
                          .smem_per_sm = 233472,
                          .smem_per_block = 232448,
                          .smem_reserved = 1024,
                          .l2_bytes = 62914560};
}

hone_problem fixture_problem(const char *text)
{
    hone_problem problem = {0};
    hone_error error = {0};

    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
    return problem;
}

manifest *fixture_manifest(const char *params, const char *more)
{
    return fixture_manifest_launch(params, more, "    arguments: []\n");
}

manifest *fixture_manifest_launch(const char *params, const char *more, const char *launch)
{
    manifest *m = NULL;
    hone_error error = {0};
    size_t capacity = strlen(params) + strlen(more) + strlen(launch) + 512;
    char *text = malloc(capacity);

    ck_assert_ptr_nonnull(text);
    snprintf(text, capacity,
             "schema: 1\nop: fp8_gemm\nsource: t/t.cu\nparams:\n%s\n%s\nconfig: {}\n"
             "launches:\n  - kernel: k\n    grid: [1]\n    block: [32]\n%s"
             "tolerance: 36\n",
             params, more, launch);
    ck_assert_msg(manifest_parse("t", text, strlen(text), &m, &error) == HONE_OK, "line %d: %s\n%s",
                  error.line, error.message, text);
    free(text);
    return m;
}
