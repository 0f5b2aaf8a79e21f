/* sweep.c - bench_sweep: what a sweep costs beside the compiles that it cannot do without.
 *
 * The same kernels are compiled cold by NVRTC alone, and by a whole sweep (ranking, workers, kernel
 * cache, store, winners, generation) whose proofs cost nothing; both with a process on each core,
 * in turns. Then a real sweep says where its wall time goes. */
#include "benchmarks/bare.h"
#include "benchmarks/rows.h"
#include "tests/support/folder.h"
#include "tuner/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUDGET = 6, ROUNDS = 3, MOST_KERNELS = 256 };

/* Recipes that share no kernel. */
static const char *const texts[] = {
    "fp8_gemm:m=16,n=576,k=1024,recipe=f32-1x128-128x128",
    "fp8_gemm:m=64,n=1536,k=1024,recipe=f32-1x128-1x128",
    "fp8_gemm:m=16,n=576,k=1024,recipe=ue8m0-1x32-32x32,out=f32",
    "fp8_gemm:m=64,n=1536,k=1024,recipe=ue8m0-1x32-1x32",
};

/* The product's engine, watched. The program's own: an engine is opened without a context. */
static struct {
    engine inner;
    bool stub; /* proofs cost nothing */
    bare_kernel kernels[MOST_KERNELS];
    size_t kernels_len;
    double wait_s, prove_s;
    const engine_answer *proved; /* on the only lane */
} watch;

static void note_kernel(const engine_trial *trial)
{
    const char *entry = trial->plan->launches[0].entry;

    for (size_t i = 0; i < watch.kernels_len; i++) {
        if (strcmp(watch.kernels[i].entry, entry) == 0) {
            return;
        }
    }
    if (watch.kernels_len < MOST_KERNELS) {
        bare_kernel *kernel = &watch.kernels[watch.kernels_len++];
        kernel->m = trial->m;
        snprintf(kernel->entry, sizeof kernel->entry, "%s", entry);
    }
}

static hone_status submit(void *state, const engine_trial *trial, uint64_t tag, hone_error *error)
{
    note_kernel(trial);
    return watch.inner.submit(state, trial, tag, error);
}

static hone_status wait_next(void *state, engine_answer *out, hone_error *error)
{
    const double from = bare_now_s();
    const hone_status status = watch.inner.wait(state, out, error);

    watch.wait_s += bare_now_s() - from;
    return status;
}

static hone_status start(void *state, size_t lane, const engine_trial *trial,
                         const engine_answer *answer, hone_error *error)
{
    watch.proved = answer;
    return watch.stub ? HONE_OK : watch.inner.start(state, lane, trial, answer, error);
}

static hone_status finish(void *state, size_t lane, engine_result *out, hone_error *error)
{
    const double from = bare_now_s();
    hone_status status = HONE_OK;

    if (watch.stub) {
        out->row = (store_result){.outcome = STORE_OK,
                                  .registers = watch.proved->registers,
                                  .compile_ms = watch.proved->compile_ms,
                                  .timer = STORE_TIMER_MODELLED,
                                  .time_ns = 1000,
                                  .cache_mode = "modelled"};
    } else {
        status = watch.inner.finish(state, lane, out, error);
    }
    watch.prove_s += bare_now_s() - from;
    return status;
}

static hone_status open_watched(const engine_options *options, engine *out, hone_error *error)
{
    const hone_status status = engine_open_device(options, &watch.inner, error);

    if (status == HONE_OK) {
        *out = watch.inner;
        out->submit = submit;
        out->wait = wait_next;
        out->start = start;
        out->finish = finish;
    }
    return status;
}

/* What all runs share. */
typedef struct setting {
    templates *templates;
    device *device;
    hone_problem problems[ARRAY_LEN(texts)];
    char folder[FOLDER_BYTES];
    int jobs, runs;
} setting;

static hone_status open_setting(setting *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    *s = (setting){.jobs = cores > 0 ? (int)cores : 1};
    folder_make(s->folder);
    TRY(templates_open(&s->templates, error));
    TRY(device_open("emu:h20", &s->device, error));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        TRY(hone_problem_parse(texts[i], &s->problems[i], error));
    }
done:
    return status;
}

static void close_setting(setting *s)
{
    device_close(s->device);
    templates_close(s->templates);
    folder_remove(s->folder);
}

/* One sweep into a new store, with an empty kernel cache; its wall time. */
static hone_status run_sweep(setting *s, bool stub, double *spent_s, hone_error *error)
{
    hone_status status = HONE_OK;
    char path[2 * FOLDER_BYTES];
    store *st = NULL;
    sweep_summary summary;

    snprintf(path, sizeof path, "%s/cache-%d", s->folder, ++s->runs);
    setenv("XDG_CACHE_HOME", path, 1);
    snprintf(path, sizeof path, "%s/store-%d.db", s->folder, s->runs);
    watch.stub = stub;
    watch.wait_s = watch.prove_s = 0;
    const double from = bare_now_s();
    TRY(store_open(path, STORE_WRITE, &st, error));
    const sweep_options options = {.problems = s->problems,
                                   .problems_len = ARRAY_LEN(texts),
                                   .device = s->device,
                                   .store = st,
                                   .templates = s->templates,
                                   .strategy = strategy_at(0),
                                   .engine = open_watched,
                                   .budget = BUDGET,
                                   .seed = 1,
                                   .jobs = s->jobs,
                                   .command = "bench_sweep"};
    TRY(sweep_run(&options, &summary, error));
    TRY(store_close(st, error));
    st = NULL;
    *spent_s = bare_now_s() - from;
done:
    store_close(st, NULL);
    return status;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_percent(double ratios[ROUNDS])
{
    qsort(ratios, ROUNDS, sizeof *ratios, compare_doubles);
    return 100 * (ratios[ROUNDS / 2] - 1);
}

/* One round: NVRTC alone, then the sweep; ratios of wall and of processor time. */
static hone_status compare_once(setting *s, double *wall, double *processor, double *bare_s,
                                double *sweep_s, hone_error *error)
{
    hone_status status = HONE_OK;
    const double at_start = bare_processor_s();

    *bare_s = bare_compile_s(s->templates, watch.kernels, watch.kernels_len,
                             s->device->gpu.facts.arch, s->jobs);
    if (*bare_s <= 0) {
        status = status_set(error, HONE_COMPILE, "NVRTC", 0, "a kernel did not compile");
        goto done;
    }
    const double between = bare_processor_s();
    TRY(run_sweep(s, true, sweep_s, error));
    *wall = *sweep_s / *bare_s;
    *processor = (bare_processor_s() - between) / (between - at_start);
done:
    return status;
}

/* The median of some rounds. Processor time is beside it, since wall time suffers from whatever
 * else runs on the machine. */
static hone_status add_overhead(setting *s, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    double wall[ROUNDS], processor[ROUNDS], sweep_s = 0, bare_s = 0;

    TRY(run_sweep(s, true, &sweep_s, error)); /* which kernels there are; warms NVRTC's pages */
    for (int i = 0; i < ROUNDS; i++) {
        TRY(compare_once(s, &wall[i], &processor[i], &bare_s, &sweep_s, error));
    }
    rows_add(rows, "kernels compiled", (double)watch.kernels_len, "", ROWS_NO_BAR, 0);
    rows_add(rows, "NVRTC alone, a process on each core", bare_s, "s", ROWS_NO_BAR, 0);
    rows_add(rows, "sweep without proofs, same kernels", sweep_s, "s", ROWS_NO_BAR, 0);
    rows_add(rows, "sweep overhead over bare NVRTC", median_percent(wall), "%", ROWS_AT_MOST, 5);
    rows_add(rows, "the same in processor time", median_percent(processor), "%", ROWS_NO_BAR, 0);
done:
    return status;
}

static hone_status add_shares(setting *s, json_t *rows, hone_error *error)
{
    hone_status status = HONE_OK;
    double spent_s = 0;

    TRY(run_sweep(s, false, &spent_s, error));
    const double waited = 100 * watch.wait_s / spent_s, proved = 100 * watch.prove_s / spent_s;
    rows_add(rows, "real sweep: waits for compiles", waited, "%", ROWS_NO_BAR, 0);
    rows_add(rows, "real sweep: proofs", proved, "%", ROWS_NO_BAR, 0);
    rows_add(rows, "real sweep: all else", 100 - waited - proved, "%", ROWS_NO_BAR, 0);
done:
    return status;
}

int main(int argc, char **argv)
{
    const bool json = rows_want_json(argc, argv);
    hone_status status = HONE_OK;
    hone_error error = {0};
    json_t *rows = json_array();
    setting s;
    bool holds = false;

    TRY(open_setting(&s, &error));
    TRY(add_overhead(&s, rows, &error));
    TRY(add_shares(&s, rows, &error));
    holds = rows_print(rows, json);
done:
    if (status != HONE_OK) {
        fprintf(stderr, "bench_sweep: %s: %s\n", error.source, error.message);
    }
    close_setting(&s);
    json_decref(rows);
    return holds ? 0 : 1;
}
