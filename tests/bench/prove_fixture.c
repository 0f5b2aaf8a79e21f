/* prove_fixture.c - templates, compiler, device and prover of the suites that prove candidates. */
#include "tests/bench/prove_fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What all cases share: opened once, in the parent, before Check forks. */
static templates *all;
static jit *compiler;

/* A text with the first `old` replaced; NULL when it is not there. */
static char *mutated(const char *text, const char *old, const char *new)
{
    const char *at = strstr(text, old);
    size_t len = strlen(text) + strlen(new) + 1;
    char *out = at != NULL ? malloc(len) : NULL;

    if (out != NULL) {
        snprintf(out, len, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old));
    }
    return out;
}

/* Replace in the source, or in the first header that has it. The caller frees the changed text, and
 * the list. */
static char *mutate_request(jit_request *request, const char *old, const char *new,
                            const char ***list)
{
    char *text = mutated(request->source.source, old, new);
    bool in_header = false;

    *list = calloc(request->source.headers_len, sizeof **list);
    ck_assert_ptr_nonnull(*list);
    for (size_t i = 0; i < request->source.headers_len; i++) {
        (*list)[i] = request->source.headers[i];
        if (text == NULL && (text = mutated((*list)[i], old, new)) != NULL) {
            (*list)[i] = text;
            in_header = true;
        }
    }
    ck_assert_msg(text != NULL, "the template no longer says '%s'", old);
    if (in_header) {
        request->source.headers = *list;
    } else {
        request->source.source = text;
    }
    return text;
}

/* The best choice of the template, or of all when it is NULL. */
static default_choice choose(const prove_fixture *f, const char *template)
{
    enum { RANKED = 16384 };
    default_choice *ranked = calloc(RANKED, sizeof *ranked), found = {.m = NULL};
    hone_error error = {0};
    size_t count = 0;

    ck_assert_ptr_nonnull(ranked);
    ck_assert_msg(default_rank(all, &f->problem, &f->d->gpu, 0, ranked, RANKED, &count, NULL,
                               &error) == HONE_OK,
                  "%s", error.message);
    for (size_t i = 0; i < count && found.m == NULL; i++) {
        if (template == NULL || strcmp(manifest_name(ranked[i].m), template) == 0) {
            found = ranked[i];
        }
    }
    free(ranked);
    ck_assert_ptr_nonnull(found.m);
    return found;
}

static void compile(prove_fixture *f, const char *old, const char *new)
{
    hone_error error = {0};
    jit_request request;
    char *source = NULL;
    const char **list = NULL;

    ck_assert_int_eq(
        jit_request_plan(all, f->choice.m, &f->plan, f->d->gpu.facts.arch, &request, &error),
        HONE_OK);
    if (old != NULL) {
        source = mutate_request(&request, old, new, &list);
    }
    ck_assert_msg(jit_compile(compiler, &request, &f->code, &error) == HONE_OK, "%s",
                  error.message);
    free(source);
    free(list);
}

void prove_fixture_open(prove_fixture *f, const char *spec, const char *text, const char *template,
                        const char *pinned, const char *old, const char *new)
{
    hone_error error = {0};

    memset(f, 0, sizeof *f);
    ck_assert_msg(device_open(spec, &f->d, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(hone_problem_parse(text, &f->problem, &error) == HONE_OK, "%s", error.message);
    if (pinned == NULL || template == NULL) {
        f->choice = choose(f, template);
    } else {
        f->choice.m = templates_find(all, template);
        ck_assert_ptr_nonnull(f->choice.m);
    }
    if (pinned != NULL) {
        ck_assert_int_eq(manifest_config_parse(f->choice.m, pinned, &f->choice.config, &error),
                         HONE_OK);
    }
    ck_assert_int_eq(manifest_plan(f->choice.m, &f->problem, &f->d->gpu.facts, &f->choice.config,
                                   &f->plan, &error),
                     HONE_OK);
    compile(f, old, new);
    ck_assert_msg(module_load(f->d, &f->plan, f->code, &f->m, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_msg(prover_open(f->d, &f->problem, 11, &f->p, &error) == HONE_OK, "%s",
                  error.message);
}

bool prove_fixture_leaves(int row, int step, const char *template, const char *old)
{
    template_source source;
    hone_error error = {0};
    bool stands = old == NULL;

    if (row % step == 0 || getenv("HONE_PROVE_ALL") != NULL) {
        return false;
    }
    const manifest *m = templates_find(all, template);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(templates_source(all, m, &source, &error), HONE_OK);
    stands = stands || strstr(source.source, old) != NULL;
    for (size_t i = 0; !stands && i < source.headers_len; i++) {
        stands = strstr(source.headers[i], old) != NULL;
    }
    ck_assert_msg(stands, "the template no longer says '%s'", old);
    return true;
}

void prove_fixture_close(prove_fixture *f)
{
    prover_close(f->p);
    module_unload(f->m);
    compiled_free(f->code);
    device_close(f->d);
}

void prove_fixture_run(prove_fixture *f, prove_result *out)
{
    hone_error error = {0};

    ck_assert_msg(prover_run(f->p, f->m, &f->plan, f->code, out, &error) == HONE_OK, "%s",
                  error.message);
}

/* That the problem has the config, and that ptxas left nothing of it undone. */
static void check_pin(const prove_fixture *f, const char *text, const char *pinned)
{
    const device_facts *facts = &f->d->gpu.facts;
    hone_error error = {0};
    bool legal = false;
    char why[160] = "";

    ck_assert_msg(manifest_serves(f->choice.m, &f->problem, facts, &legal, why, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(legal, "%s: %s", text, why);
    ck_assert_msg(manifest_legal(f->choice.m, &f->problem, facts, &f->choice.config, &legal, why,
                                 &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(legal, "%s %s: %s", text, pinned, why);
    ck_assert_msg(!compiled_flaw(f->code, why, sizeof why), "%s %s: %s", text, pinned, why);
}

void prove_fixture_hold(const char *spec, const char *text, const char *template,
                        const char *pinned, prove_result *out)
{
    prove_fixture f;
    prove_result r;

    prove_fixture_open(&f, spec, text, template, pinned, NULL, NULL);
    check_pin(&f, text, pinned);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s %s: %s", text, pinned, r.reason);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    prove_fixture_close(&f);
    if (out != NULL) {
        *out = r;
    }
}

void prove_fixture_refuse(const prove_mutant *mutant, const char *spec, const char *text,
                          const char *template, const char *pinned)
{
    prove_fixture f;
    prove_result r;

    prove_fixture_open(&f, spec, text, template, pinned, mutant->old, mutant->new);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome != STORE_OK, "passed: %s", mutant->what);
    prove_fixture_close(&f);
}

static void use_build(const char *variable, const char *file)
{
    const char *build = getenv("HONE_BINARY_DIR");
    char path[1024];

    if (build != NULL) {
        snprintf(path, sizeof path, "%s/%s", build, file);
        setenv(variable, path, 0);
    }
}

bool prove_fixture_start(const char *suite)
{
    hone_error error = {0};
    const char *kept = getenv("HONE_TEST_CACHE"); /* kernels, from run to run: for long runs */
    const jit_options options = {.workers = 1, .no_cache = kept == NULL, .cache_path = kept};
    jit_version version;

    use_build("HONE_EMU_PATH", "emulator/libhone_emu.so");
    use_build("HONE_WORKER", "runtime/hone-worker");
    if (templates_open(&all, &error) != HONE_OK ||
        jit_open(&options, &compiler, &error) != HONE_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    if (jit_describe(compiler, &version, &error) == HONE_ENVIRONMENT) {
        printf("SKIP %s: %s\n", suite, error.message);
        return false;
    }
    return true;
}

const templates *prove_fixture_templates(void)
{
    return all;
}

jit *prove_fixture_compiler(void)
{
    return compiler;
}

void prove_fixture_stop(void)
{
    jit_close(compiler);
    templates_close(all);
}
