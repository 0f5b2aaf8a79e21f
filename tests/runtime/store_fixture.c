/* store_fixture.c - see store_fixture.h. */
#include "tests/runtime/store_fixture.h"

#include "models/gpu.h"
#include "runtime/default.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hone_problem store_fixture_problem(const char *text)
{
    hone_problem problem;
    hone_error error;

    if (hone_problem_parse(text, &problem, &error) != HONE_OK) {
        fprintf(stderr, "%s: %s\n", text, error.message);
        abort();
    }
    return problem;
}

device_kind store_fixture_kind(const char *gpu_slug, bool emulated)
{
    gpu g;
    device_kind kind;

    if (gpu_find(gpu_slug, &g, NULL) != HONE_OK) {
        fprintf(stderr, "no GPU %s\n", gpu_slug);
        abort();
    }
    g.facts.emulated = emulated;
    device_kind_of(&g.facts, &kind);
    return kind;
}

/* The analytical choice's template and config, as text. */
static hone_status choose(const templates *t, const fixture_winner *w, const manifest **m,
                          char *text, size_t capacity, hone_error *error)
{
    hone_status status = HONE_OK;
    default_choice choice;
    size_t count = 0;
    gpu g;

    TRY(gpu_find_by_name(w->kind.name, &g, error));
    TRY(default_rank(t, &w->problem, &g, 0, &choice, 1, &count, NULL, error));
    if (count == 0) {
        status =
            status_set(error, HONE_NOT_FOUND, NULL, 0, "no template serves the fixture's problem");
        goto done;
    }
    *m = choice.m;
    TRY(manifest_config_format(choice.m, &choice.config, text, capacity, error));
done:
    return status;
}

static hone_status write_winner(store *s, int64_t sweep, const templates *t,
                                const fixture_winner *w, hone_error *error)
{
    hone_status status = HONE_OK;
    char config_text[1024];
    store_key key = {.template_name = w->template_name, .config = w->config};
    const store_result result = {.outcome = STORE_OK,
                                 .registers = 100,
                                 .timer =
                                     w->kind.emulated ? STORE_TIMER_MODELLED : STORE_TIMER_CUPTI,
                                 .time_ns = w->time_ns,
                                 .samples_ns = &w->time_ns,
                                 .samples_len = 1,
                                 .cache_mode = "cold",
                                 .bound = "tensor"};
    int64_t candidate = 0;

    if (w->config == NULL) {
        const manifest *m = NULL;
        TRY(choose(t, w, &m, config_text, sizeof config_text, error));
        key.template_name = manifest_name(m);
        key.config = config_text;
        templates_digest(t, m, key.template_digest);
        key.template_digest[0] ^= w->stale;
    }
    TRY(store_problem_id(s, &w->problem, &key.problem, error));
    TRY(store_device_id(s, &w->kind, &key.device, error));
    TRY(store_candidate_record(s, sweep, &key, &result, &candidate, error));
    TRY(store_winner_set(s, key.problem, key.device, candidate, STORE_VERDICT_CLEAR, error));
done:
    return status;
}

bool store_fixture_write(const char *path, const fixture_winner *winners, size_t len)
{
    hone_status status = HONE_OK;
    hone_error error = {.status = HONE_OK};
    const store_sweep sweep = {
        .command = "fixture", .nvrtc = "13.0+fixture", .driver = 13000, .seed = 1};
    templates *t = NULL;
    store *s = NULL;
    int64_t sweep_id = 0;
    uint64_t number = 0;

    TRY(templates_open(&t, &error));
    TRY(store_open(path, STORE_WRITE, &s, &error));
    TRY(store_sweep_begin(s, &sweep, &sweep_id, &error));
    for (size_t i = 0; i < len; i++) {
        TRY(write_winner(s, sweep_id, t, &winners[i], &error));
    }
    TRY(store_sweep_end(s, sweep_id, &error));
    TRY(store_pack(s, &number, &error));
    TRY(store_close(s, &error));
    s = NULL;
done:
    if (status != HONE_OK) {
        fprintf(stderr, "%s: %s %s\n", path, hone_status_name(status), error.message);
    }
    store_close(s, NULL);
    templates_close(t);
    return status == HONE_OK;
}

fixture_winner store_fixture_winner(const char *gpu_slug, bool emulated, const char *problem,
                                    double time_ns)
{
    return (fixture_winner){.problem = store_fixture_problem(problem),
                            .kind = store_fixture_kind(gpu_slug, emulated),
                            .time_ns = time_ns};
}

hone_status store_fixture_ask(const hone_runtime *rt, const char *text, hone_choice *out)
{
    const hone_problem problem = store_fixture_problem(text);

    return hone_lookup(rt, &problem, out, NULL);
}
