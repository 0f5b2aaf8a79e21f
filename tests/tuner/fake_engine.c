/* fake_engine.c - verdicts by a hash of the candidate: some do not compile, some have a flaw, some
 * are wrong. */
#include "tests/tuner/fake_engine.h"

#include "models/gpu.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fake_behaviour fake_now;

#define WAITING_MAX 64
#define FAKE_NS     1000.0 /* slow enough that no bound rules anyone out */
#define FAKE_LANES  4

typedef struct fake {
    uint64_t tags[WAITING_MAX];
    uint32_t hashes[WAITING_MAX];
    size_t len;
    const engine_trial *trials[FAKE_LANES]; /* of busy lanes */
    const engine_answer *answers[FAKE_LANES];
} fake;

static uint32_t hash_trial(const engine_trial *trial)
{
    uint32_t hash = 2166136261u;

    for (const char *at = trial->plan->launches[0].entry; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 16777619u;
    }
    return hash ^ hash >> 15;
}

static hone_status fake_submit(void *state, const engine_trial *trial, uint64_t tag,
                               hone_error *error)
{
    fake *f = state;

    (void)error;
    ck_assert_uint_lt(f->len, WAITING_MAX);
    f->tags[f->len] = tag;
    f->hashes[f->len++] = hash_trial(trial);
    return HONE_OK;
}

static hone_status fake_wait(void *state, engine_answer *out, hone_error *error)
{
    fake *f = state;

    (void)error;
    ck_assert_uint_gt(f->len, 0);
    size_t at = fake_now.backwards ? f->len - 1 : 0;
    *out = (engine_answer){.tag = f->tags[at], .outcome = STORE_OK, .registers = 64};
    if (f->hashes[at] % 8 == 0) {
        out->outcome = STORE_COMPILE;
        snprintf(out->reason, sizeof out->reason, "refused by the test");
    }
    if (out->outcome == STORE_OK && (fake_now.flaw_all || f->hashes[at] % 8 == 1)) {
        snprintf(out->reason, sizeof out->reason, "ptxas: a flaw");
    }
    f->len--;
    memmove(&f->tags[at], &f->tags[at + 1], (f->len - at) * sizeof *f->tags);
    memmove(&f->hashes[at], &f->hashes[at + 1], (f->len - at) * sizeof *f->hashes);
    return HONE_OK;
}

static hone_status fake_start(void *state, size_t lane, const engine_trial *trial,
                              const engine_answer *answer, hone_error *error)
{
    fake *f = state;

    (void)error;
    ck_assert_uint_lt(lane, FAKE_LANES);
    ck_assert_ptr_null(f->trials[lane]);
    f->trials[lane] = trial;
    f->answers[lane] = answer;
    return HONE_OK;
}

static hone_status fake_finish(void *state, size_t lane, engine_result *out, hone_error *error)
{
    fake *f = state;
    const engine_trial *trial = f->trials[lane];
    const engine_answer *answer = f->answers[lane];

    (void)error;
    ck_assert_ptr_nonnull(trial);
    f->trials[lane] = NULL;
    uint32_t hash = hash_trial(trial);
    usleep((useconds_t)fake_now.pause_us);
    if (++fake_now.proofs == fake_now.die_at) {
        _exit(9); /* as kill -9 would: nothing is closed */
    }
    out->proof_ms = 1000;
    out->row = (store_result){.outcome = STORE_OK,
                              .roof_ns = fake_now.roof_ns,
                              .registers = answer->registers,
                              .spill_bytes = answer->spill_bytes,
                              .timer = STORE_TIMER_MODELLED,
                              .time_ns = FAKE_NS * (fake_now.level ? 1000 : 1000 + hash % 1000),
                              .cache_mode = "modelled",
                              .tokens = routing_condition(fake_now.routing, trial->problem)};
    if (routing_matters(trial->problem)) { /* another order of the candidates under each */
        out->row.time_ns = FAKE_NS * (1000 + (hash >> (out->row.tokens[0] % 16)) % 1000);
    }
    if (hash % 8 == 2) {
        snprintf(out->reason, sizeof out->reason, "wrong in the test");
        out->row.outcome = STORE_WRONG;
        out->row.reason = out->reason;
    }
    return HONE_OK;
}

static void fake_discard(void *state, engine_answer *answer)
{
    (void)state;
    answer->code = NULL;
}

static hone_status fake_open(const engine_options *options, engine *out, hone_error *error)
{
    (void)options;
    (void)error;
    *out = (engine){.nvrtc = "13.0+test",
                    .driver = 13000,
                    .state = calloc(1, sizeof(fake)),
                    .submit = fake_submit,
                    .wait = fake_wait,
                    .lanes = fake_now.lanes > 0 ? fake_now.lanes : 1,
                    .start = fake_start,
                    .finish = fake_finish,
                    .discard = fake_discard,
                    .close = free};
    return out->state != NULL ? HONE_OK : HONE_NO_MEMORY;
}

static int stop_after(void *context, const sweep_progress *progress)
{
    const uint64_t *limit = context;

    if (fake_now.told > 0) {
        ck_assert_int_eq(write(fake_now.told, &progress->done, sizeof progress->done),
                         sizeof progress->done);
    }
    return limit != NULL && progress->done >= *limit;
}

hone_status fake_sweep(const char *path, int32_t arch, const char *const *list, size_t len,
                       uint64_t *stop, sweep_summary *out)
{
    hone_error error = {0};
    hone_problem problems[FAKE_PROBLEMS];
    templates *t = NULL;
    store *s = NULL;
    device d = {.spec = "test"};

    ck_assert_uint_le(len, FAKE_PROBLEMS);
    for (size_t i = 0; i < len; i++) {
        ck_assert_int_eq(hone_problem_parse(list[i], &problems[i], &error), HONE_OK);
    }
    ck_assert_int_eq(gpu_find("h20", &d.gpu, &error), HONE_OK);
    d.gpu.facts.arch = arch;
    device_kind_of(&d.gpu.facts, &d.kind);
    ck_assert_int_eq(templates_open(&t, &error), HONE_OK);
    ck_assert_msg(store_open(path, STORE_WRITE, &s, &error) == HONE_OK, "%s", error.message);
    const sweep_options options = {.problems = problems,
                                   .problems_len = len,
                                   .device = &d,
                                   .store = s,
                                   .templates = t,
                                   .strategy =
                                       strategy_find(fake_now.strategy != NULL ? fake_now.strategy
                                                     : fake_now.random         ? "random"
                                                                               : "model"),
                                   .engine = fake_open,
                                   .budget = fake_now.budget > 0 ? fake_now.budget : FAKE_BUDGET,
                                   .seed = fake_now.seed != 0 ? fake_now.seed : 3,
                                   .jobs = fake_now.jobs > 0 ? fake_now.jobs : 2,
                                   .limits = fake_now.limits,
                                   .every_size = fake_now.every_size,
                                   .routing = fake_now.routing,
                                   .command = "test",
                                   .progress = stop_after,
                                   .context = stop};
    hone_status status = sweep_run(&options, out, &error);
    ck_assert_msg(status == HONE_OK || status == HONE_CANCELLED || status == HONE_BAD_PROBLEM, "%s",
                  error.message);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    templates_close(t);
    return status;
}
