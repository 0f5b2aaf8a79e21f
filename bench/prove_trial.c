/* prove_trial.c - the steps of a candidate's proof: what is launched, on which inputs, and the
 * verdict. */
#include "bench/prove_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_BYTES (32u << 20) /* of the operands of one kind, of which there are up to eight */

bool prove_adds_to_d(const prover *p)
{
    return (p->problem.op == HONE_OP_FP8_GEMM && p->problem.as.fp8_gemm.accumulate) ||
           (p->problem.op == HONE_OP_MOE_COMBINE && p->problem.as.moe_combine.accumulate);
}

static void fail(prove_result *out, int32_t outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static bool is_sampled(const prove_trial *t)
{
    return t->how.sample_len > 0;
}

/* Inputs that stay for other candidates keep what they must give. */
static verify_memo *memo_of(prover *p, const inputs *in)
{
    if (in == &p->in) {
        return &p->memo;
    }
    for (size_t i = 0; i < ARRAY_LEN(p->kept); i++) {
        if (in == &p->kept[i].in) {
            return &p->kept[i].memo;
        }
    }
    return NULL;
}

static hone_status compare(prover *p, const prove_trial *t, const inputs *in, int hit,
                           prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    verify_result made = {0};
    const verify_request request = {
        .problem = &p->problem,
        .before = in,
        .after = (const uint8_t *const *)p->after.image,
        .tolerance = t->plan->tolerance,
        .wide = verify_unit_is_wide(p->d->gpu.facts.arch, t->plan->fraction_bits),
        .ctas_run = is_sampled(t) ? t->how.sample_len : out->ctas_total,
        .ctas_total = out->ctas_total,
        .cover = t->plan->cover,
        .tiles_run = prove_tiles(t->tiles, t->plan, t->how.sample, t->how.sample_len),
        .written = is_sampled(t) && prove_adds_to_d(p) ? p->poisoned.image[4] : NULL,
        .threads = t->how.threads,
        .memo = memo_of(p, in),
        .must_tell = true,
    };

    TRY(verify_outputs(&request, &made, error));
    if (hit >= 0) {
        verify_fail(&made, "the red zone of operand %s was written", in->operand[hit].name);
    }
    if (!made.passed) {
        fail(out, STORE_WRONG, made.reason);
    }
    if (out->verify.compared > 0) {
        verify_keep_worst(&made, &out->verify);
    }
    out->verify = made;
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

/* Launch and read back into `into`; NULL: nobody looks at the outputs. */
static hone_status run_once(prove_trial *t, const inputs *in, inputs *into, int *hit,
                            prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    prove_lane *l = t->lane;
    const inputs *loaded = l->loaded;

    l->loaded = NULL;
    TRY(prove_buffers_reset(&l->buffers, in, loaded, error));
    l->loaded = in;
    TRY(prove_buffers_workspace(&l->buffers, t->plan->workspace_bytes, error));
    TRY(prove_launch_once(&l->buffers, t->m, t->plan, &t->how, out, t->counters, error));
    if (out->outcome == STORE_OK && into != NULL) {
        TRY(prove_buffers_read(&l->buffers, into, hit, error));
    }
done:
    return status;
}

/* A sum may leave an element of D as it was, so what sampled CTAs write is seen on a D of NaN. */
static hone_status run_on_poison(prover *p, prove_trial *t, const inputs *in, prove_result *out,
                                 hone_error *error)
{
    inputs poisoned = *in;
    int hit = -1;

    memset(p->poisoned.image[4], VERIFY_POISON, in->operand[4].bytes);
    poisoned.image[4] = p->poisoned.image[4];
    hone_status status = run_once(t, &poisoned, &p->poisoned, &hit, out, error);
    t->lane->loaded = in; /* `poisoned` differs in D only */
    return status;
}

static hone_status run_and_compare(prover *p, prove_trial *t, const inputs *in, prove_result *out,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    int hit = -1;

    if (is_sampled(t) && prove_adds_to_d(p)) {
        TRY(run_on_poison(p, t, in, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(run_once(t, in, &p->after, &hit, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(compare(p, t, in, hit, out, error));
    }
done:
    return status;
}

static void run_late(const prover *p, prove_trial *t)
{
    t->how.schedule = p->seed + 1;
    t->how.timing = HONE_EMU_LATEST;
}

hone_status prove_first(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    return run_and_compare(p, t, &p->in, out, error);
}

hone_status prove_again(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    int hit = -1;

    run_late(p, t);
    return run_once(t, p->padded.len > 0 ? &p->padded : &p->in, &p->second, &hit, out, error);
}

void prove_same_bits(const prover *p, prove_result *out)
{
    if (!same_outputs(&p->after, &p->second)) {
        fail(out, STORE_NONDET,
             p->padded.len > 0
                 ? "a second run, by another order of warps, with late copies and other padding, "
                   "gave other bits"
                 : "a second run, by another order of warps and with late copies, gave other bits");
    }
}

static bool is_small(const inputs *in)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < in->len; i++) {
        bytes += in->operand[i].bytes;
    }
    return bytes <= KEPT_BYTES;
}

/* Small inputs stay for the next candidate: drawing them takes longer than a launch. */
static hone_status prove_kind(prover *p, prove_trial *t, inputs_kind kind, prove_result *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    inputs own = {0}, *in = is_small(&p->in) ? &p->kept[kind].in : &own;

    if (in->len == 0) {
        TRY(inputs_make(&p->problem, kind, p->seed + (uint64_t)kind, in, error));
    }
    TRY(run_and_compare(p, t, in, out, error));
done:
    if (in == &own) {
        t->lane->loaded = NULL;
        inputs_free(&own);
    }
    return status;
}

/* Another, smaller sample under other scales. */
static hone_status prove_rescaled(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 0;

    prove_sample(t->tiles, t->plan, t->spread ? SPREAD_RESCALED : SAMPLE_RESCALED, p->seed + 2,
                 t->sample, &len);
    t->how.sample_len = len;
    TRY(run_and_compare(p, t, &p->rescaled, out, error));
done:
    return status;
}

/* A few CTAs once more, looking for races and all else: three to five times as slow a CTA, and the
 * order of accesses hangs neither on the data nor much on the CTA. */
hone_status prove_order(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t few[PROVE_SAMPLE_MOST] = {0};
    const prove_launch before = t->how;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];

    if (t->lane->d->driver->emu == NULL) {
        return HONE_OK;
    }
    memcpy(counters, t->counters, sizeof counters);
    t->how.sample = few;
    prove_sample(t->tiles, t->plan, t->spread ? SPREAD_THOROUGH : SAMPLE_THOROUGH, p->seed + 3, few,
                 &t->how.sample_len);
    t->how.thorough = true;
    TRY(run_once(t, &p->in, NULL, NULL, out, error));
done:
    memcpy(t->counters, counters, sizeof counters);
    t->how = before;
    return status;
}

/* A grouped product whose rows are timed otherwise than they are proved. Tiles and the sample are
 * those of the rows. */
static hone_status count_timed(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    plan *spread = NULL;
    prove_trial *other = NULL;

    if (t->lane->d->driver->emu == NULL) {
        return HONE_OK; /* events take the time */
    }
    other = malloc(sizeof *other);
    if (other == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a trial");
    }
    *other = *t;
    TRY(prove_lay_out(p, &p->timed_runs, other, &spread, error));
    TRY(run_once(other, &p->timed, NULL, NULL, out, error));
    memcpy(t->counters, other->counters, sizeof t->counters);
    t->timed = other->timed;
done:
    free(other);
    free(spread);
    return status;
}

/* A quantiser goes other ways for NaN and infinities, with which proofs are full: its counters are
 * those of ordinary data, of a sample where that is enough. */
hone_status prove_count(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t few[PROVE_SAMPLE_MOST] = {0};
    const prove_launch before = t->how;

    if (p->timed.len > 0) {
        return count_timed(p, t, out, error);
    }
    if (p->ordinary.len == 0) {
        return HONE_OK;
    }
    if (p->large || prove_is_plenty(&p->problem)) {
        prove_sample(t->tiles, t->plan, SAMPLE_QUANT, p->seed + 4, few, &t->how.sample_len);
        t->how.sample = few;
    }
    TRY(run_once(t, &p->ordinary, NULL, NULL, out, error));
done:
    t->how = before;
    return status;
}

hone_status prove_others(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];

    memcpy(counters, t->counters, sizeof counters);
    run_late(p, t);
    for (size_t i = 1; i < p->kinds.len && !p->large && out->outcome == STORE_OK; i++) {
        TRY(prove_kind(p, t, p->kinds.kind[i], out, error));
    }
    if (p->rescaled.len > 0 && is_sampled(t) && out->outcome == STORE_OK) {
        TRY(prove_rescaled(p, t, out, error));
    }
done:
    memcpy(t->counters, counters, sizeof counters);
    return status;
}
