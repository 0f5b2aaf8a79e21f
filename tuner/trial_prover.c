/* trial_prover.c - one candidate from compiled code to a row of the store. */
#include "tuner/trial_prover.h"

#include "bench/prove.h"
#include "bench/roofline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trial_prover {
    const device *device;
    const routing *routing;
    prover *prover; /* of `problem` and `seed`; NULL: none yet */
    hone_problem problem;
    uint64_t seed;
    int threads;
    uint64_t memory_bytes;
};

/* The prover of a problem: its inputs serve all of its candidates. */
static hone_status take_prover(trial_prover *p, const engine_trial *trial, hone_error *error)
{
    hone_status status = HONE_OK;

    if (p->prover != NULL && p->seed == trial->seed &&
        memcmp(&p->problem, trial->problem, sizeof p->problem) == 0) {
        return HONE_OK;
    }
    prover_close(p->prover);
    p->prover = NULL;
    TRY(prover_open_routed(p->device, trial->problem, p->routing, trial->seed, &p->prover, error));
    prover_use_threads(p->prover, p->threads);
    p->problem = *trial->problem;
    p->seed = trial->seed;
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

static void fill_rates(const trial_prover *p, const engine_trial *trial, const prove_result *proof,
                       engine_result *out)
{
    store_result *row = &out->row;

    row->timer = proof->timer;
    row->time_ns = proof->time_ns;
    row->cache_mode = proof->modelled ? "modelled" : "cold";
    row->tokens = routing_condition(p->routing, trial->problem);
    row->samples_len = proof->samples_len;
    row->samples_ns = out->samples_ns;
    memcpy(out->samples_ns, proof->samples_ns, proof->samples_len * sizeof *out->samples_ns);
    if (proof->time_ns > 0) {
        const roofline roof = roofline_of_work(&p->device->gpu, trial->problem, proof->flop,
                                               proof->bytes, proof->time_ns);
        row->flop = roof.flop;
        row->bytes = roof.bytes;
        row->roof_ns = roof.roof_ns;
        row->bound = perf_bound_name(proof->modelled ? proof->model.bound : roof.bound);
    }
    write_counters(proof, out->counters, sizeof out->counters);
    row->counters = out->counters;
}

static void fill_result(const trial_prover *p, const engine_trial *trial, const prove_result *proof,
                        engine_result *out)
{
    const verify_result *verify = &proof->verify;

    snprintf(out->reason, sizeof out->reason, "%s",
             proof->outcome == STORE_OK ? "" : proof->reason);
    out->row =
        (store_result){.outcome = proof->outcome, .reason = out->reason, .timer = STORE_TIMER_NONE};
    out->row.checked_ctas = (uint32_t)proof->ctas_run;
    if (proof->outcome == STORE_OK) {
        out->row.cosine = verify->cosine;
        out->row.rel_fro = verify->rel_fro;
        out->row.calc_diff = verify->calc_diff;
        out->row.max_err_ratio = verify->max_err_ratio;
        fill_rates(p, trial, proof, out);
    }
}

void trial_prover_note(const engine_trial *trial, const engine_answer *answer, engine_result *out)
{
    if (out->row.outcome == STORE_OK) {
        snprintf(out->reason, sizeof out->reason, "%s", answer->reason);
    }
    out->row.registers = answer->registers;
    out->row.shared_bytes = answer->shared_bytes + (int32_t)trial->plan->launches[0].shared_bytes;
    out->row.spill_bytes = answer->spill_bytes;
    out->row.local_bytes = answer->local_bytes;
    out->row.compile_ms = answer->compile_ms;
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

/* HONE_NO_MEMORY for a candidate over the limit. */
static hone_status check_memory(const trial_prover *p, const engine_trial *trial, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_operand operands[HONE_MAX_OPERANDS];
    size_t len = 0;
    uint64_t bytes = trial->plan->workspace_bytes;

    TRY(hone_operands(trial->problem, operands, &len, error));
    for (size_t i = 0; i < len; i++) {
        bytes += (uint64_t)operands[i].bytes;
    }
    if (p->memory_bytes > 0 && bytes > p->memory_bytes) {
        status = status_set(error, HONE_NO_MEMORY, manifest_name(trial->m), 0,
                            "operands and workspace take %llu bytes and the limit is %llu",
                            (unsigned long long)bytes, (unsigned long long)p->memory_bytes);
    }
done:
    return status;
}

hone_status trial_prover_run(trial_prover *p, const engine_trial *trial, const compiled *code,
                             engine_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    module *loaded = NULL;
    hone_error local = {0};
    prove_result *proof = calloc(1, sizeof *proof);

    if (proof == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(trial->m), 0, "a proof");
    }
    status = check_memory(p, trial, &local);
    if (status == HONE_OK) {
        status = take_prover(p, trial, &local);
    }
    if (status == HONE_OK) {
        status = module_load(p->device, trial->plan, code, &loaded, &local);
    }
    proof->outcome = outcome_of(status);
    if (status == HONE_OK) {
        TRY(prover_run(p->prover, loaded, trial->plan, code, proof, error));
    } else if (proof->outcome != 0) {
        snprintf(proof->reason, sizeof proof->reason, "%.200s", local.message);
        status = HONE_OK;
    } else {
        status_set(error, status, local.source, local.line, "%s", local.message);
        goto done;
    }
    fill_result(p, trial, proof, out);
done:
    module_unload(loaded);
    free(proof);
    return status;
}

hone_status trial_prover_open(const device *d, const routing *timed, int threads,
                              uint64_t memory_bytes, trial_prover **out, hone_error *error)
{
    trial_prover *p = calloc(1, sizeof *p);

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, d->spec, 0, "a prover");
    }
    *p = (trial_prover){
        .device = d, .routing = timed, .threads = threads, .memory_bytes = memory_bytes};
    *out = p;
    return HONE_OK;
}

void trial_prover_close(trial_prover *p)
{
    if (p != NULL) {
        prover_close(p->prover);
        free(p);
    }
}
