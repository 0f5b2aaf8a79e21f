/* serving_fixture.c - a store, a kernel cache, runtimes. */
#include "tests/runtime/serving_fixture.h"

#include "tests/support/folder.h"

#include <check.h>
#include <stdio.h>

static char folder[FOLDER_BYTES], store_file[1024];
static char cache_folder[FOLDER_BYTES], cache_path[1024];

void serving_fixture_start(void)
{
    folder_make(cache_folder);
    snprintf(cache_path, sizeof cache_path, "%s/kernels.db", cache_folder);
}

void serving_fixture_stop(void)
{
    folder_remove(cache_folder);
}

const char *serving_fixture_store(void)
{
    return store_file;
}

void serving_fixture_write(const fixture_winner *winners, size_t len)
{
    folder_make(folder);
    snprintf(store_file, sizeof store_file, "%s/hone.db", folder);
    ck_assert(store_fixture_write(store_file, winners, len));
}

void serving_fixture_write_usual(void)
{
    const fixture_winner winners[] = {
        store_fixture_winner("h20", true, GEMM(16), 1000),
        store_fixture_winner("h20", true, GEMM(64), 2000),
        store_fixture_winner("h20", true, GEMM(4096), 3000),
    };
    serving_fixture_write(winners, ARRAY_LEN(winners));
}

void serving_fixture_remove(void)
{
    folder_remove(folder);
}

hone_runtime *serving_fixture_open(const char *device_spec, int strict, int allow_modelled)
{
    const hone_options options = {.size = sizeof options,
                                  .strict = strict,
                                  .allow_modelled = allow_modelled,
                                  .compile_jobs = 2,
                                  .cache_path = cache_path};
    hone_runtime *rt = NULL;
    hone_error error;

    ck_assert_msg(hone_open(store_file, device_spec, &options, &rt, &error) == HONE_OK, "%s",
                  error.message);
    return rt;
}

void serving_fixture_prepare(hone_runtime *rt, const char *text)
{
    const hone_problem problem = store_fixture_problem(text);
    hone_error error;

    ck_assert_msg(hone_prepare(rt, &problem, 1, NULL, NULL, &error) == HONE_OK, "%s: %s", text,
                  error.message);
}
