/* prove.c - a candidate's trial: what is launched how often, on which inputs, and the verdict. */
#include "bench/prove.h"
#include "bench/prove_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Emulated launches up to this much work run whole, on several kinds of inputs; larger ones on
 * sampled CTAs. Four whole runs of them take an emulated device half a second. */
#define WHOLE_MACS     (3 << 24)
#define WHOLE_ELEMENTS (1 << 20)

/* CTAs of a sample. A CTA of a quantiser is a few hundred elements, one of a matrix product a
 * million MACs. */
enum { SAMPLE_GEMM = 6, SAMPLE_QUANT = 48 };

/* Inputs that whole proofs go through; large ones see the first. Zeros would leave nothing changed
 * where D is added to, and so tell nothing of what was written. */
static const inputs_kind kinds[] = {INPUTS_HOLES, INPUTS_WIDE, INPUTS_EXTREMES};
static const inputs_kind kinds_accumulate[] = {INPUTS_NORMAL, INPUTS_WIDE, INPUTS_EXTREMES};

struct prover {
    const device *d;
    hone_problem problem;
    uint64_t seed;
    bool large;    /* sampled on an emulated device */
    bool dirty;    /* read-only operands on the device are not those of `in` */
    inputs in;     /* of the first kind */
    inputs after;  /* outputs read back */
    inputs second; /* of the second run */
    prove_buffers buffers;
};

static const inputs_kind *kinds_of(const hone_problem *problem)
{
    bool adds = problem->op == HONE_OP_FP8_GEMM && problem->as.fp8_gemm.accumulate;

    return adds ? kinds_accumulate : kinds;
}

/* Multiply-adds of a product as tiles do it: matrix instructions have 16 rows, also for one token.
 */
static double padded_macs(const hone_fp8_gemm *p)
{
    return (double)((p->m + 15) / 16 * 16) * (double)p->n * (double)p->k * (double)p->batch;
}

static bool is_large(const device *d, const hone_problem *problem)
{
    const hone_act_quant *act = &problem->as.act_quant;

    if (d->driver->emu == NULL) {
        return false;
    }
    return (problem->op == HONE_OP_FP8_GEMM && padded_macs(&problem->as.fp8_gemm) > WHOLE_MACS) ||
           (problem->op == HONE_OP_ACT_QUANT && act->m * act->k > WHOLE_ELEMENTS);
}

void prover_close(prover *p)
{
    if (p == NULL) {
        return;
    }
    prove_buffers_close(&p->buffers);
    inputs_free_outputs(&p->second);
    inputs_free_outputs(&p->after);
    inputs_free(&p->in);
    free(p);
}

hone_status prover_open(const device *d, const hone_problem *problem, uint64_t seed, prover **out,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    prover *p = calloc(1, sizeof *p);

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a prover");
    }
    p->d = d;
    p->problem = *problem;
    p->seed = seed;
    p->large = is_large(d, problem);
    TRY(inputs_make(problem, kinds_of(problem)[0], seed, &p->in, error));
    TRY(inputs_copy_outputs(&p->in, &p->after, error));
    TRY(inputs_copy_outputs(&p->in, &p->second, error));
    TRY(prove_buffers_open(d, &p->in, &p->buffers, error));
    *out = p;
    p = NULL;
done:
    prover_close(p);
    return status;
}

/* One trial: the candidate as it is launched, and the CTAs of it. */
typedef struct trial {
    const module *m;
    const plan *plan;
    uint64_t sample[64];
    prove_launch how;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];
} trial;

static void fail(prove_result *out, int32_t outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static hone_status compare(const prover *p, const trial *t, const inputs *in, int hit,
                           prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request request = {
        .problem = &p->problem,
        .before = in,
        .after = (const uint8_t *const *)p->after.image,
        .tolerance = t->plan->tolerance,
        .wide = verify_unit_is_wide(p->d->gpu.facts.arch),
        .ctas_run = t->how.sample_len > 0 ? t->how.sample_len : out->ctas_total,
        .ctas_total = out->ctas_total,
    };

    TRY(verify_outputs(&request, &out->verify, error));
    if (hit >= 0) {
        verify_fail(&out->verify, "the red zone of operand %s was written", in->operand[hit].name);
    }
    if (!out->verify.passed) {
        fail(out, STORE_WRONG, out->verify.reason);
    }
done:
    return status;
}

static bool same_outputs(const inputs *a, const inputs *b)
{
    for (size_t i = 0; i < a->len; i++) {
        if (a->operand[i].access != 1 &&
            memcmp(a->image[i], b->image[i], a->operand[i].bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* Launch and read back into `into`. */
static hone_status run_once(prover *p, trial *t, const inputs *in, inputs *into, int *hit,
                            prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(prove_buffers_reset(&p->buffers, in, p->dirty, error));
    TRY(prove_buffers_workspace(&p->buffers, t->plan->workspace_bytes, error));
    TRY(prove_launch_once(&p->buffers, t->m, t->plan, &t->how, out, t->counters, error));
    if (out->outcome == STORE_OK) {
        TRY(prove_buffers_read(&p->buffers, into, hit, error));
    }
done:
    return status;
}

/* Twice, by another order of warps the second time: the same bits. */
static hone_status prove_twice(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    int hit = -1;

    p->dirty = true;
    TRY(run_once(p, t, &p->in, &p->after, &hit, out, error));
    p->dirty = false;
    if (out->outcome != STORE_OK) {
        goto done;
    }
    TRY(compare(p, t, &p->in, hit, out, error));
    if (out->outcome != STORE_OK) {
        goto done;
    }
    t->how.schedule = p->seed + 1;
    TRY(run_once(p, t, &p->in, &p->second, &hit, out, error));
    if (out->outcome == STORE_OK && !same_outputs(&p->after, &p->second)) {
        fail(out, STORE_NONDET, "a second run by another order of warps gave other bits");
    }
done:
    return status;
}

/* Other inputs of a small problem: worst figures are kept. */
static hone_status prove_kind(prover *p, trial *t, inputs_kind kind, prove_result *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    verify_result first = out->verify;
    inputs in = {0};
    int hit = -1;

    TRY(inputs_make(&p->problem, kind, p->seed + (uint64_t)kind, &in, error));
    p->dirty = true;
    TRY(run_once(p, t, &in, &p->after, &hit, out, error));
    if (out->outcome == STORE_OK) {
        TRY(compare(p, t, &in, hit, out, error));
    }
    if (out->outcome == STORE_OK) {
        first.max_err_ratio = out->verify.max_err_ratio > first.max_err_ratio
                                  ? out->verify.max_err_ratio
                                  : first.max_err_ratio;
        out->verify = first;
    }
done:
    inputs_free(&in);
    return status;
}

static hone_status prove_all(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const inputs_kind *kind = kinds_of(&p->problem);
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];

    TRY(prove_twice(p, t, out, error));
    memcpy(counters, t->counters, sizeof counters);
    for (size_t i = 1; i < ARRAY_LEN(kinds) && !p->large && out->outcome == STORE_OK; i++) {
        TRY(prove_kind(p, t, kind[i], out, error));
    }
    memcpy(t->counters, counters, sizeof counters);
done:
    return status;
}

hone_status prover_run(prover *p, const module *m, const plan *launches, const compiled *c,
                       prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    prove_result made = {.outcome = STORE_OK, .ctas_total = prove_ctas(launches)};
    trial t = {.m = m, .plan = launches};
    size_t wanted = p->problem.op == HONE_OP_FP8_GEMM ? SAMPLE_GEMM : SAMPLE_QUANT;

    if (made.ctas_total == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "prove: a problem of size 0 launches nothing");
    }
    TRY(device_enter(p->d, error));
    if (p->large && launches->launches_len == 1) {
        prove_sample(made.ctas_total, wanted, p->seed, t.sample, &t.how.sample_len);
        t.how.sample = t.sample;
    }
    made.ctas_run = t.how.sample_len > 0 ? t.how.sample_len : made.ctas_total;
    TRY(prove_all(p, &t, &made, error));
    if (made.outcome == STORE_OK && p->d->driver->emu != NULL) {
        TRY(prove_time_model(p->d, &p->problem, launches, c, t.counters, &made, error));
    } else if (made.outcome == STORE_OK) {
        TRY(prove_time_events(&p->buffers, m, launches, &made, error));
    }
    *out = made;
done:
    if (p->d->driver->emu != NULL) {
        p->d->driver->emu->set_sample((int)p->d->ordinal, NULL, 0, NULL);
    }
    return status;
}
