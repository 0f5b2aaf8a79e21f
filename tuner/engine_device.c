/* engine_device.c - the product's engine: NVRTC in worker processes, proof and time on a device. */
#include "tuner/engine.h"

#include "bench/prove.h"
#include "bench/roofline.h"
#include "runtime/jit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct device_engine {
    const device *device;
    const templates *templates;
    jit *jit;
    prover *prover; /* of `problem` and `seed`; NULL: none yet */
    hone_problem problem;
    uint64_t seed;
    int threads; /* of the host, for proofs */
    const routing *routing;
} device_engine;

static hone_status submit(void *state, const engine_trial *trial, uint64_t tag, hone_error *error)
{
    hone_status status = HONE_OK;
    device_engine *e = state;
    jit_request request;

    TRY(jit_request_plan(e->templates, trial->m, trial->plan, e->device->gpu.facts.arch, &request,
                         error));
    TRY(jit_submit(e->jit, &request, tag, error));
done:
    return status;
}

static int cores(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 1 ? (int)online : 1;
}

/* What ptxas says of the kernels of a plan: the largest of each, since all must fit. */
static void report_code(const compiled *code, engine_answer *out)
{
    for (size_t i = 0; i < code->kernels_len; i++) {
        const jit_kernel *k = &code->kernels[i];
        out->registers = k->registers > out->registers ? k->registers : out->registers;
        out->local_bytes = k->stack_bytes > out->local_bytes ? k->stack_bytes : out->local_bytes;
        out->shared_bytes =
            k->static_shared_bytes > out->shared_bytes ? k->static_shared_bytes : out->shared_bytes;
    }
    out->spill_bytes = compiled_spill_bytes(code);
    compiled_flaw(code, out->reason, sizeof out->reason);
    out->compile_ms = (double)code->compile_ns * 1e-6;
}

static hone_status wait_next(void *state, engine_answer *out, hone_error *error)
{
    hone_status status = HONE_OK;
    device_engine *e = state;
    jit_done done = {0};
    bool got = false;

    TRY(jit_wait(e->jit, -1, &done, &got, error));
    if (!got) {
        return status_set(error, HONE_BAD_ARGUMENT, "jit", 0, "no compile is under way");
    }
    engine_answer answer = {.tag = done.tag, .outcome = STORE_OK, .code = done.answer};
    if (done.status == HONE_OK) {
        report_code(done.answer, &answer);
    } else if (done.status == HONE_COMPILE || done.status == HONE_WORKER) {
        answer.outcome = done.timed_out ? STORE_HANG : STORE_COMPILE;
        snprintf(answer.reason, sizeof answer.reason, "%s", done.error.message);
    } else {
        return status_set(error, done.status, done.error.source, done.error.line, "%s",
                          done.error.message);
    }
    *out = answer;
done:
    return status;
}

static void discard(void *state, engine_answer *answer)
{
    (void)state;
    compiled_free(answer->code);
    answer->code = NULL;
}

/* The prover of a problem: its inputs serve all of its candidates. */
static hone_status take_prover(device_engine *e, const engine_trial *trial, hone_error *error)
{
    hone_status status = HONE_OK;

    if (e->prover != NULL && e->seed == trial->seed &&
        memcmp(&e->problem, trial->problem, sizeof e->problem) == 0) {
        return HONE_OK;
    }
    prover_close(e->prover);
    e->prover = NULL;
    TRY(prover_open_routed(e->device, trial->problem, e->routing, trial->seed, &e->prover, error));
    prover_use_threads(e->prover, e->threads);
    e->problem = *trial->problem;
    e->seed = trial->seed;
done:
    return status;
}

/* What was counted, as one JSON object: enough to see where a launch's time goes, and which rows of
 * a grouped product it had. Nothing was, of another op on a CUDA device. */
static void write_counters(const prove_result *p, char *text, size_t capacity)
{
    const hone_emu_counters *c = &p->counters;
    const bool rows = p->rows > 0 || p->rows_cut > 0;
    char routed[96] = "";

    if (rows) {
        snprintf(routed, sizeof routed, "\"rows\":%lld,\"rows_cut\":%lld", (long long)p->rows,
                 (long long)p->rows_cut);
    }
    if (!p->modelled) {
        snprintf(text, capacity, rows ? "{%s}" : "%s", routed);
        return;
    }
    snprintf(
        text, capacity,
        "{%s%s\"ctas\":%llu,\"ctas_run\":%llu,\"warp_instructions\":%llu,\"global_load_sectors\":%"
        "llu,\"global_store_sectors\":%llu,\"shared_wavefronts\":%llu,\"occupancy\":%.0f,"
        "\"waves\":%.2f}",
        routed, rows ? "," : "", (unsigned long long)p->ctas_total, (unsigned long long)p->ctas_run,
        (unsigned long long)c->warp_instructions, (unsigned long long)c->global_load_sectors,
        (unsigned long long)c->global_store_sectors, (unsigned long long)c->shared_wavefronts,
        p->model.occupancy, p->model.waves);
}

static void fill_rates(const device_engine *e, const engine_trial *trial, const prove_result *proof,
                       engine_result *out)
{
    store_result *row = &out->row;

    row->timer = proof->timer;
    row->time_ns = proof->time_ns;
    row->cache_mode = proof->modelled ? "modelled" : "cold";
    row->tokens = routing_condition(e->routing, trial->problem);
    row->samples_len = proof->samples_len;
    row->samples_ns = out->samples_ns;
    memcpy(out->samples_ns, proof->samples_ns, proof->samples_len * sizeof *out->samples_ns);
    if (proof->time_ns > 0) {
        const roofline roof = roofline_of_work(&e->device->gpu, trial->problem, proof->flop,
                                               proof->bytes, proof->time_ns);
        row->flop = roof.flop;
        row->bytes = roof.bytes;
        row->roof_ns = roof.roof_ns;
        row->bound = perf_bound_name(proof->modelled ? proof->model.bound : roof.bound);
    }
    write_counters(proof, out->counters, sizeof out->counters);
    row->counters = out->counters;
}

static void fill_result(const device_engine *e, const engine_trial *trial,
                        const engine_answer *answer, const prove_result *proof, engine_result *out)
{
    const verify_result *verify = &proof->verify;

    /* A candidate that was tried in spite of its flaw keeps it in its row. */
    snprintf(out->reason, sizeof out->reason, "%s",
             proof->outcome == STORE_OK ? answer->reason : proof->reason);
    out->row = (store_result){.outcome = proof->outcome,
                              .reason = out->reason,
                              .registers = answer->registers,
                              .shared_bytes = answer->shared_bytes +
                                              (int32_t)trial->plan->launches[0].shared_bytes,
                              .spill_bytes = answer->spill_bytes,
                              .local_bytes = answer->local_bytes,
                              .compile_ms = answer->compile_ms,
                              .timer = STORE_TIMER_NONE};
    out->row.checked_ctas = (uint32_t)proof->ctas_run;
    if (proof->outcome == STORE_OK) {
        out->row.cosine = verify->cosine;
        out->row.rel_fro = verify->rel_fro;
        out->row.calc_diff = verify->calc_diff;
        out->row.max_err_ratio = verify->max_err_ratio;
        fill_rates(e, trial, proof, out);
    }
}

/* Failures that are the candidate's: it does not fit, the driver refuses its code, or memory runs
 * out. */
static int32_t outcome_of(hone_status status)
{
    static const struct {
        hone_status status;
        int32_t outcome;
    } rows[] = {
        {HONE_UNSUPPORTED, STORE_LAUNCH}, {HONE_DRIVER, STORE_LAUNCH}, {HONE_NO_MEMORY, STORE_OOM}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].status == status) {
            return rows[i].outcome;
        }
    }
    return 0;
}

static hone_status prove(void *state, const engine_trial *trial, const engine_answer *answer,
                         engine_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    device_engine *e = state;
    module *code = NULL;
    hone_error local = {0};
    prove_result *proof = calloc(1, sizeof *proof);

    if (proof == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(trial->m), 0, "a proof");
    }
    status = take_prover(e, trial, &local);
    if (status == HONE_OK) {
        status = module_load(e->device, trial->plan, answer->code, &code, &local);
    }
    proof->outcome = outcome_of(status);
    if (status == HONE_OK) {
        TRY(prover_run(e->prover, code, trial->plan, answer->code, proof, error));
    } else if (proof->outcome != 0) {
        snprintf(proof->reason, sizeof proof->reason, "%.200s", local.message);
        status = HONE_OK;
    } else {
        status_set(error, status, local.source, local.line, "%s", local.message);
        goto done;
    }
    fill_result(e, trial, answer, proof, out);
done:
    module_unload(code);
    free(proof);
    return status;
}

static void close_engine(void *state)
{
    device_engine *e = state;

    if (e != NULL) {
        prover_close(e->prover);
        jit_close(e->jit);
        free(e);
    }
}

hone_status engine_open_device(const engine_options *options, engine *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options compile = {.workers = options->jobs};
    const driver *d = options->device->driver;
    jit_version version;
    int number = 0;
    device_engine *e = calloc(1, sizeof *e);

    if (e == NULL) {
        return status_set(error, HONE_NO_MEMORY, "sweep", 0, "an engine");
    }
    e->device = options->device;
    e->templates = options->templates;
    e->threads = options->jobs > 0 ? options->jobs : cores();
    e->routing = options->routing;
    TRY(jit_open(&compile, &e->jit, error));
    TRY(jit_describe(e->jit, &version, error));
    TRY(driver_check(d, d->cuDriverGetVersion(&number), "cuDriverGetVersion", error));
    *out = (engine){.driver = number,
                    .state = e,
                    .submit = submit,
                    .wait = wait_next,
                    .prove = prove,
                    .discard = discard,
                    .close = close_engine};
    snprintf(out->nvrtc, sizeof out->nvrtc, "%s", version.text);
    e = NULL;
done:
    close_engine(e);
    return status;
}
