/* test_sweep.c - a sweep on an engine of the test's own: rows, winners, resuming after a stop and
 * after a kill. */
#include "models/gpu.h"
#include "runtime/default.h"
#include "tuner/sweep.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const texts[] = {
    "fp8_gemm:m=256,n=384,k=512,recipe=f32-1x128-128x128",
    "fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
    "act_quant:m=64,k=4096", /* whose default the fake engine does not call wrong */
};
#define PROBLEMS ARRAY_LEN(texts)
#define BUDGET   8

/* ---- An engine whose verdicts depend on nothing but the candidate. -------------------------- */

/* What the engines of a test do; set before each sweep. */
static struct {
    bool backwards; /* answers come in the opposite order of the submissions */
    bool flaw_all;
    bool random;  /* strategy: quicker to start than the model's ranking */
    int pause_us; /* that each proof takes */
    int told;     /* where progress is written as it is told; 0: nowhere */
    int die_at;   /* the process ends in this proof; 0: never */
    int proofs;
    const routing *routing; /* of the sweep; NULL: balanced */
} behaviour;

#define WAITING_MAX 64

typedef struct fake {
    uint64_t tags[WAITING_MAX];
    uint32_t hashes[WAITING_MAX];
    size_t len;
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
    size_t at = behaviour.backwards ? f->len - 1 : 0;
    *out = (engine_answer){.tag = f->tags[at], .outcome = STORE_OK, .registers = 64};
    if (f->hashes[at] % 8 == 0) {
        out->outcome = STORE_COMPILE;
        snprintf(out->reason, sizeof out->reason, "refused by the test");
    }
    if (out->outcome == STORE_OK && (behaviour.flaw_all || f->hashes[at] % 8 == 1)) {
        snprintf(out->reason, sizeof out->reason, "ptxas: a flaw");
    }
    f->len--;
    memmove(&f->tags[at], &f->tags[at + 1], (f->len - at) * sizeof *f->tags);
    memmove(&f->hashes[at], &f->hashes[at + 1], (f->len - at) * sizeof *f->hashes);
    return HONE_OK;
}

static hone_status fake_prove(void *state, const engine_trial *trial, const engine_answer *answer,
                              engine_result *out, hone_error *error)
{
    uint32_t hash = hash_trial(trial);

    (void)state;
    (void)error;
    usleep((useconds_t)behaviour.pause_us);
    if (++behaviour.proofs == behaviour.die_at) {
        _exit(9); /* as kill -9 would: nothing is closed */
    }
    out->row = (store_result){.outcome = STORE_OK,
                              .registers = answer->registers,
                              .spill_bytes = answer->spill_bytes,
                              .timer = STORE_TIMER_MODELLED,
                              .time_ns = 1000 + hash % 1000,
                              .cache_mode = "modelled",
                              .tokens = routing_condition(behaviour.routing, trial->problem)};
    if (routing_matters(trial->problem)) { /* another order of the candidates under each */
        out->row.time_ns = 1000 + (hash >> (out->row.tokens[0] % 16)) % 1000;
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
                    .prove = fake_prove,
                    .discard = fake_discard,
                    .close = free};
    return out->state != NULL ? HONE_OK : HONE_NO_MEMORY;
}

/* ---- One sweep over the problems above. ----------------------------------------------------- */

static char folder[FOLDER_BYTES]; /* of the stores, removed at the end */

static void store_file(char path[1024], const char *name)
{
    snprintf(path, 1024, "%s/%s.db", folder, name);
}

static int stop_after(void *context, const sweep_progress *progress)
{
    const uint64_t *limit = context;

    if (behaviour.told > 0) {
        ck_assert_int_eq(write(behaviour.told, &progress->done, sizeof progress->done),
                         sizeof progress->done);
    }
    return limit != NULL && progress->done >= *limit;
}

static hone_status sweep_texts(const char *path, int32_t arch, const char *const *list, size_t len,
                               uint64_t *stop, sweep_summary *out)
{
    hone_error error = {0};
    hone_problem problems[PROBLEMS];
    templates *t = NULL;
    store *s = NULL;
    device d = {.spec = "test"};

    ck_assert_uint_le(len, PROBLEMS);
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
                                   .strategy = strategy_find(behaviour.random ? "random" : "model"),
                                   .engine = fake_open,
                                   .budget = BUDGET,
                                   .seed = 3,
                                   .jobs = 2,
                                   .routing = behaviour.routing,
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

static hone_status sweep_once(const char *path, int32_t arch, uint64_t *stop, sweep_summary *out)
{
    const hone_status status = sweep_texts(path, arch, texts, PROBLEMS, stop, out);

    ck_assert_int_ne(status, HONE_BAD_PROBLEM);
    return status;
}

/* What a store holds: a line for each row, without what differs from run to run. */
typedef struct dump {
    size_t rows, inflight, attempts;
    char *text;
    size_t used, capacity;
} dump;

static int add_row(void *context, const store_row *row)
{
    dump *d = context;
    char line[1024];

    int len = snprintf(line, sizeof line, "%lld %s %s %s %.0f\n", (long long)row->problem,
                       row->template_name, row->config, store_outcome_name(row->result.outcome),
                       row->result.time_ns);
    if (d->used + (size_t)len >= d->capacity) {
        d->capacity = d->capacity * 2 + 4096;
        d->text = realloc(d->text, d->capacity);
        ck_assert_ptr_nonnull(d->text);
    }
    memcpy(d->text + d->used, line, (size_t)len + 1);
    d->used += (size_t)len;
    ck_assert(row->result.outcome != STORE_PRUNED ||
              strcmp(row->result.reason, "ptxas: a flaw") == 0);
    d->rows++;
    d->inflight += row->result.outcome == STORE_INFLIGHT;
    d->attempts += (size_t)row->attempts;
    return 0;
}

static int add_winner(void *context, const store_winner *winner)
{
    size_t *count = context;

    (*count)++;
    ck_assert_int_eq(winner->row.result.outcome, STORE_OK);
    return 0;
}

static dump dump_store(const char *path, size_t *winners)
{
    hone_error error = {0};
    store *s = NULL;
    dump d = {0};

    *winners = 0;
    ck_assert_msg(store_open(path, STORE_READ, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_candidates(s, NULL, add_row, &d, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, add_winner, winners, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return d;
}

START_TEST(each_problem_gets_a_winner_and_a_second_run_nothing_to_do)
{
    char path[1024];
    sweep_summary first = {0}, second = {0};
    size_t winners = 0, again = 0;

    store_file(path, "twice");
    ck_assert_int_eq(sweep_once(path, 90, NULL, &first), HONE_OK);
    ck_assert_uint_eq(first.winners, PROBLEMS);
    ck_assert_uint_gt(first.generation, 0);
    ck_assert_uint_eq(first.ok + first.rejected, first.tried);
    dump before = dump_store(path, &winners);
    ck_assert_uint_eq(before.rows, first.tried + first.pruned);
    /* Defaults that are not right give way to the next. */
    ck_assert_uint_le(before.rows, PROBLEMS * (BUDGET + DEFAULT_TRIES - 1));
    ck_assert_uint_eq(winners, PROBLEMS);
    ck_assert_int_eq(sweep_once(path, 90, NULL, &second), HONE_OK);
    ck_assert_uint_eq(second.tried + second.pruned, 0);
    ck_assert_uint_eq(second.settled, PROBLEMS);
    ck_assert_uint_eq(second.winners, PROBLEMS);
    dump after = dump_store(path, &again);
    ck_assert_str_eq(before.text, after.text);
    free(before.text);
    free(after.text);
}
END_TEST

START_TEST(the_order_of_answers_changes_nothing)
{
    char forwards[1024], backwards[1024];
    sweep_summary summary;
    size_t winners = 0;

    store_file(forwards, "forwards");
    store_file(backwards, "backwards");
    sweep_once(forwards, 90, NULL, &summary);
    behaviour.backwards = true;
    sweep_once(backwards, 90, NULL, &summary);
    dump one = dump_store(forwards, &winners), two = dump_store(backwards, &winners);
    ck_assert_str_eq(one.text, two.text);
    free(one.text);
    free(two.text);
}
END_TEST

START_TEST(a_stopped_sweep_goes_on_and_ends_as_a_whole_one)
{
    char whole[1024], stopped[1024];
    sweep_summary summary, part = {0};
    size_t winners = 0, tried = 0;
    hone_status status = HONE_CANCELLED;

    store_file(whole, "whole");
    store_file(stopped, "stopped");
    sweep_once(whole, 90, NULL, &summary);
    for (int run = 0; run < 50 && status == HONE_CANCELLED; run++) {
        uint64_t limit = 2;
        status = sweep_once(stopped, 90, &limit, &part);
        tried += part.tried + part.pruned;
    }
    ck_assert_int_eq(status, HONE_OK);
    ck_assert_uint_eq(tried, summary.tried + summary.pruned);
    dump one = dump_store(whole, &winners), two = dump_store(stopped, &winners);
    ck_assert_uint_eq(one.rows, two.rows);
    ck_assert_uint_eq(winners, PROBLEMS);
    free(one.text);
    free(two.text);
}
END_TEST

START_TEST(a_killed_sweep_loses_no_row_and_repeats_one_candidate_at_most)
{
    int kills = 0;

    behaviour.random = true;
    /* At every proof of the sweep in turn; the last child outlives its sweep. */
    for (int die_at = 1, how = 9 << 8; WEXITSTATUS(how) == 9; die_at++) {
        char path[1024], name[32];
        sweep_summary summary = {0};
        size_t winners = 0;

        snprintf(name, sizeof name, "killed-%d", die_at);
        store_file(path, name);
        pid_t child = fork();
        if (child == 0) {
            behaviour.proofs = 0;
            behaviour.die_at = die_at;
            sweep_once(path, 90, NULL, &summary);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &how, 0), child);
        if (WEXITSTATUS(how) == 0) {
            break;
        }
        kills++;
        dump before = dump_store(path, &winners);
        ck_assert_uint_eq(before.inflight, 1);
        ck_assert_uint_ge(before.rows, (size_t)die_at);
        ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
        dump after = dump_store(path, &winners);
        ck_assert_uint_eq(winners, PROBLEMS);
        ck_assert_uint_eq(after.inflight, 0);
        ck_assert_uint_eq(after.rows, before.rows - 1 + summary.tried + summary.pruned);
        ck_assert_uint_eq(after.attempts, after.rows + 1);
        free(before.text);
        free(after.text);
    }
    ck_assert_int_gt(kills, 8);
}
END_TEST

/* Let a child sweep, kill it after a while; the last count of candidates that it told, and whether
 * it ended. */
static uint64_t kill_one(const char *path, useconds_t after_us, bool *ended)
{
    int ends[2], how = 0;
    uint64_t told = 0, done = 0;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        sweep_summary summary;
        close(ends[0]);
        behaviour.told = ends[1];
        sweep_once(path, 90, NULL, &summary);
        _exit(0);
    }
    close(ends[1]);
    usleep(after_us);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    *ended = WIFEXITED(how);
    while (read(ends[0], &done, sizeof done) == sizeof done) {
        told = done;
    }
    close(ends[0]);
    return told;
}

START_TEST(kill_nine_at_any_time_loses_nothing_that_was_told)
{
    const char *asked = getenv("HONE_KILLS");
    int kills = asked != NULL ? atoi(asked) : 10, landed = 0;
    uint32_t random = 12345;
    sweep_summary summary = {0};
    size_t winners = 0, before = 0;
    char path[1024];

    behaviour.random = true;
    behaviour.pause_us = 3000;
    store_file(path, "sigkill");
    sweep_once(path, 70, NULL, &summary); /* the file is there, with no candidate */
    for (int i = 0; i < kills; i++) {
        bool ended = false;
        random = random * 1664525u + 1013904223u;
        uint64_t told = kill_one(path, 5000 + random % 200000, &ended);
        dump d = dump_store(path, &winners);
        /* All rows of earlier runs are there, and all that this one told. */
        ck_assert_msg(d.rows - d.inflight >= before + told,
                      "kill %d: %zu rows, %zu in flight; %zu were there and %llu were told", i,
                      d.rows, d.inflight, before, (unsigned long long)told);
        ck_assert_uint_le(d.inflight, 1);
        ck_assert_uint_le(d.attempts, d.rows + (size_t)landed + 1);
        before = d.rows - d.inflight;
        landed += !ended;
        free(d.text);
        if (ended) {
            before = 0;
            remove(path);
            sweep_once(path, 70, NULL, &summary);
        }
    }
    ck_assert_int_gt(landed, kills / 4);
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, PROBLEMS);
}
END_TEST

START_TEST(what_has_a_flaw_is_tried_when_all_have)
{
    char path[1024];
    sweep_summary summary = {0};

    store_file(path, "spills");
    behaviour.flaw_all = true;
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_uint_eq(summary.winners, PROBLEMS);
    ck_assert_uint_ge(summary.ok, PROBLEMS);
    ck_assert_uint_gt(summary.pruned, 0);
}
END_TEST

static int check_default(void *context, const store_winner *winner)
{
    ++*(size_t *)context;
    ck_assert_double_ge(winner->default_ns, winner->row.result.time_ns);
    return 0;
}

/* Whatever the strategy proposes: three in eight candidates are refused, flawed or wrong. */
START_TEST(the_default_is_timed_and_no_winner_is_slower)
{
    char path[1024];
    sweep_summary summary = {0};
    hone_error error = {0};
    store *s = NULL;
    size_t winners = 0;

    behaviour.random = _i == 1;
    store_file(path, _i == 1 ? "default-random" : "default-model");
    ck_assert_int_eq(sweep_once(path, 90, NULL, &summary), HONE_OK);
    ck_assert_int_eq(store_open(path, STORE_READ, &s, &error), HONE_OK);
    ck_assert_int_eq(store_winners(s, NULL, check_default, &winners, &error), HONE_OK);
    ck_assert_uint_eq(winners, PROBLEMS);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
}
END_TEST

/* ---- A grouped product under several distributions of tokens, beside one that has none. ------ */

static const char *const routed[] = {
    "moe_gemm:n=256,k=512,experts=4,tokens=32,topk=2,group_layout=masked,recipe=f32-1x128-128x128",
    "fp8_gemm:m=16,n=384,k=512,recipe=f32-1x128-128x128",
};

/* What is there of the grouped product under one condition, and of the other problem. */
typedef struct routed_view {
    const char *tokens;
    int64_t winner; /* candidate that won; 0: another condition's did */
    double winner_ns, best_ns, default_ns;
    int64_t before; /* a candidate to be looked for */
    bool has_before;
    size_t rows, gemm_rows;
    int64_t gemm_sweep; /* the latest that wrote one of its rows */
} routed_view;

static int view_winner(void *context, const store_winner *winner)
{
    routed_view *v = context;

    if (strncmp(winner->row.problem_text, "moe_gemm", 8) == 0 &&
        strcmp(winner->row.result.tokens, v->tokens) == 0) {
        v->winner = winner->row.id;
        v->winner_ns = winner->row.result.time_ns;
        v->default_ns = winner->default_ns;
    }
    return 0;
}

static int view_row(void *context, const store_row *row)
{
    routed_view *v = context;

    if (strncmp(row->problem_text, "moe_gemm", 8) != 0) {
        v->gemm_rows++;
        v->gemm_sweep = row->sweep > v->gemm_sweep ? row->sweep : v->gemm_sweep;
    } else if (strcmp(row->result.tokens, v->tokens) == 0) {
        const double ns = row->result.outcome == STORE_OK ? row->result.time_ns : 1e9;
        v->best_ns = v->rows == 0 || ns < v->best_ns ? ns : v->best_ns;
        v->rows++;
        v->has_before = v->has_before || row->id == v->before;
    }
    return 0;
}

static routed_view view_store(const char *path, const char *tokens, int64_t before)
{
    routed_view v = {.tokens = tokens, .before = before};
    hone_error error = {0};
    store *s = NULL;

    ck_assert_msg(store_open(path, STORE_READ, &s, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(store_winners(s, NULL, view_winner, &v, &error), HONE_OK);
    ck_assert_int_eq(store_candidates(s, NULL, view_row, &v, &error), HONE_OK);
    ck_assert_int_eq(store_close(s, &error), HONE_OK);
    return v;
}

static void sweep_under(const char *path, const char *text, uint64_t *stop, sweep_summary *out)
{
    routing r = {0};

    ck_assert_int_eq(routing_parse(text, &r, NULL), HONE_OK);
    behaviour.routing = &r;
    sweep_texts(path, 90, routed, ARRAY_LEN(routed), stop, out);
    behaviour.routing = NULL;
    routing_free(&r);
}

START_TEST(what_was_measured_under_another_routing_is_not_compared)
{
    char path[1024];
    sweep_summary first = {0}, again = {0}, second = {0};

    behaviour.random = true;
    store_file(path, "routed");
    sweep_under(path, "zipf:1.5", NULL, &first);
    ck_assert_uint_eq(first.winners, 2);
    const routed_view zipf = view_store(path, "zipf:1.5", 0);
    ck_assert_int_gt(zipf.winner, 0);
    ck_assert_uint_ge(zipf.rows, BUDGET); /* all rows say so, the refused and pruned ones too */
    sweep_under(path, "zipf:1.50", NULL, &again);
    ck_assert_uint_eq(again.tried + again.pruned, 0);
    ck_assert_uint_eq(again.settled, 2);

    sweep_under(path, "one", NULL, &second);
    const routed_view one = view_store(path, "one", zipf.winner);
    ck_assert_uint_eq(second.settled, 1); /* the other problem */
    ck_assert_uint_eq(one.gemm_rows, zipf.gemm_rows);
    ck_assert_int_eq(one.gemm_sweep, 1);
    ck_assert_uint_ge(second.tried + second.pruned, BUDGET);
    ck_assert(one.has_before); /* the winner of before had its chance */
    ck_assert_int_gt(one.winner, 0);
    ck_assert_double_le(one.winner_ns, 1.02 * one.best_ns + 1e-9);
    ck_assert_double_ge(one.default_ns, 0.98 * one.winner_ns);
    ck_assert_int_eq(view_store(path, "zipf:1.5", 0).winner, 0);
}
END_TEST

START_TEST(a_stopped_sweep_under_another_routing_leaves_no_mixed_winner)
{
    char path[1024];
    sweep_summary summary = {0};
    uint64_t limit = 3;

    behaviour.random = true;
    store_file(path, "routed-stopped");
    sweep_under(path, "zipf", NULL, &summary);
    const routed_view before = view_store(path, "zipf:1", 0);
    sweep_under(path, "uniform", &limit, &summary);
    const routed_view part = view_store(path, "uniform", before.winner);
    const routed_view rest = view_store(path, "zipf:1", before.winner);
    ck_assert_uint_gt(part.rows, 0);
    ck_assert_uint_gt(rest.rows, 0);
    /* It stands until the sweep ends; a default of the other condition is no measure of it. */
    ck_assert((rest.winner == before.winner) != (part.winner == before.winner));
    ck_assert(part.winner == 0 || part.default_ns == 0 || part.default_ns >= part.best_ns);
    sweep_under(path, "uniform", NULL, &summary);
    const routed_view whole = view_store(path, "uniform", before.winner);
    ck_assert(whole.has_before);
    ck_assert_int_gt(whole.winner, 0);
    ck_assert_double_le(whole.winner_ns, 1.02 * whole.best_ns + 1e-9);
}
END_TEST

START_TEST(a_histogram_of_other_experts_ends_the_sweep_before_it_begins)
{
    char path[1024];
    sweep_summary summary = {0};
    routing r = {0};

    store_file(path, "routed-refused");
    ck_assert_int_eq(routing_parse_histogram("h", "1 2 3", 5, &r, NULL), HONE_OK);
    behaviour.routing = &r;
    ck_assert_int_eq(sweep_texts(path, 90, routed, ARRAY_LEN(routed), NULL, &summary),
                     HONE_BAD_PROBLEM);
    behaviour.routing = NULL;
    const routed_view v = view_store(path, r.text, 0);
    ck_assert_uint_eq(v.rows + v.gemm_rows, 0);
    routing_free(&r);
}
END_TEST

START_TEST(a_problem_that_nothing_serves_ends_without_a_winner)
{
    char path[1024];
    sweep_summary summary = {0};

    store_file(path, "unserved");
    ck_assert_int_eq(sweep_once(path, 70, NULL, &summary), HONE_OK);
    ck_assert_uint_lt(summary.winners, PROBLEMS);
    ck_assert_uint_eq(summary.problems, PROBLEMS);
}
END_TEST

static void reset(void)
{
    memset(&behaviour, 0, sizeof behaviour);
}

int main(void)
{
    TCase *tests = tcase_create("sweep");

    folder_make(folder);
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, reset, NULL);
    tcase_add_test(tests, each_problem_gets_a_winner_and_a_second_run_nothing_to_do);
    tcase_add_test(tests, the_order_of_answers_changes_nothing);
    tcase_add_test(tests, a_stopped_sweep_goes_on_and_ends_as_a_whole_one);
    tcase_add_test(tests, a_killed_sweep_loses_no_row_and_repeats_one_candidate_at_most);
    tcase_add_test(tests, kill_nine_at_any_time_loses_nothing_that_was_told);
    tcase_add_test(tests, what_has_a_flaw_is_tried_when_all_have);
    tcase_add_loop_test(tests, the_default_is_timed_and_no_winner_is_slower, 0, 2);
    tcase_add_test(tests, what_was_measured_under_another_routing_is_not_compared);
    tcase_add_test(tests, a_stopped_sweep_under_another_routing_leaves_no_mixed_winner);
    tcase_add_test(tests, a_histogram_of_other_experts_ends_the_sweep_before_it_begins);
    tcase_add_test(tests, a_problem_that_nothing_serves_ends_without_a_winner);
    const int result = suite_run("tuner/sweep", tests);
    folder_remove(folder);
    return result;
}
