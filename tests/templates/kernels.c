/* kernels.c - templates, GPUs and NVRTC for the suites that compile kernels. */
#include "tests/templates/kernels.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

kernels kernels_open(void)
{
    kernels k = {0};
    hone_error error = {0};
    jit_version version;
    char worker[512];
    const char *binary = getenv("HONE_BINARY_DIR");

    ck_assert_msg(templates_open(&k.templates, &error) == HONE_OK, "%s:%d: %s", error.source,
                  error.line, error.message);
    snprintf(worker, sizeof worker, "%s/runtime/hone-worker", binary != NULL ? binary : ".");
    ck_assert_msg(access(worker, X_OK) == 0,
                  "%s: no worker there; set HONE_BINARY_DIR to the build folder", worker);
    const jit_options options = {.worker = worker, .no_cache = true};
    ck_assert_msg(jit_open(&options, &k.compiler, &error) == HONE_OK, "%s", error.message);
    if (jit_describe(k.compiler, &version, &error) != HONE_OK) {
        printf("SKIP: no NVRTC: %s\n", error.message);
        jit_close(k.compiler);
        k.compiler = NULL;
    }
    return k;
}

void kernels_close(kernels *k)
{
    jit_close(k->compiler);
    templates_close(k->templates);
    *k = (kernels){0};
}

const manifest *kernels_serving(const kernels *k, const hone_problem *problem,
                                const device_facts *device)
{
    hone_error error = {0};
    char why[160] = "no template of the op";

    for (size_t i = 0; i < templates_len(k->templates); i++) {
        const manifest *m = templates_at(k->templates, i);
        bool serves = false;
        if (manifest_op(m) != problem->op) {
            continue;
        }
        ck_assert_msg(manifest_serves(m, problem, device, &serves, why, &error) == HONE_OK, "%s",
                      error.message);
        if (serves) {
            return m;
        }
    }
    ck_abort_msg("%s: %s", device->name, why);
    return NULL;
}

hone_status kernels_compile(const kernels *k, const template_source *source, const char *entry,
                            int32_t arch, compiled **out, hone_error *error)
{
    const jit_request request = {
        .source = *source, .name = "kernel", .entries = {entry}, .entries_len = 1, .arch = arch};

    return jit_compile(k->compiler, &request, out, error);
}

int kernels_run(const char *suite_name, TCase *tests, void (*setup)(void), void (*teardown)(void))
{
    tcase_add_unchecked_fixture(tests, setup, teardown);
    return suite_run_here(suite_name, tests); /* the workers belong to this process */
}
