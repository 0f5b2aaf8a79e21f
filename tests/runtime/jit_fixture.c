/* jit_fixture.c - see jit_fixture.h. */
#include "tests/runtime/jit_fixture.h"

#include <stdio.h>
#include <stdlib.h>

void jit_fixture_need_nvrtc(void)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = NULL;
    jit_version version;
    hone_error error = {.status = HONE_OK};

    if (jit_open(&options, &j, &error) == HONE_OK &&
        jit_describe(j, &version, &error) == HONE_ENVIRONMENT) {
        printf("SKIP: %s\n", error.message);
        jit_close(j);
        exit(0);
    }
    jit_close(j);
}

jit_request jit_fixture_request(const char *source, const char *entry)
{
    return (jit_request){.name = "test.cu",
                         .source = {.source = source},
                         .entries = {entry},
                         .entries_len = 1,
                         .arch = 90};
}
