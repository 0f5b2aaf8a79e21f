/* prove.c - a candidate's trial: what is launched how often, on which inputs, and the verdict. */
#include "bench/prove.h"
#include "bench/prove_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Emulated launches up to this much work run whole, on several kinds of inputs; larger ones on
 * sampled CTAs. Four whole runs of such a product take an emulated device half a second. A
 * quantiser larger than PLENTY runs whole on one kind, which has a bit of everything: a second. */
#define WHOLE_MACS      (3 << 24)
#define WHOLE_ELEMENTS  (1 << 23)
#define PLENTY_ELEMENTS (1 << 20)

/* CTAs, or groups, of a sample. A CTA of a quantiser is a few hundred elements, one of a matrix
 * product a million MACs. A product's second sample runs under other scales, its third with all
 * checks. Groups of a spread grid make three tiles each: fewer of them. */
enum { SAMPLE_GEMM = 6, SAMPLE_RESCALED = 3, SAMPLE_THOROUGH = 3, SAMPLE_QUANT = 48 };
enum { SPREAD_GEMM = 5, SPREAD_RESCALED = 2, SPREAD_THOROUGH = 2 };

enum { THREADS_MOST = 64 }; /* of hone_emu.h's set_threads */

/* Inputs that proofs go through. Few tokens need as many kinds as a cache has slots worth asking
 * for (inputs.h). */
static const inputs_kind kinds_gemm[] = {INPUTS_HOLES, INPUTS_WIDE, INPUTS_EXTREMES};
static const inputs_kind kinds_quant[] = {INPUTS_HOLES,    INPUTS_WIDE, INPUTS_EXTREMES,
                                          INPUTS_SPECIALS, INPUTS_TINY, INPUTS_NORMAL,
                                          INPUTS_ONES,     INPUTS_ZEROS};
static const inputs_kind kinds_plenty[] = {INPUTS_SPECIALS};
enum { KINDS_MANY_TOKENS = 5 };

typedef struct kind_list {
    const inputs_kind *kind;
    size_t len;
} kind_list;

struct prover {
    const device *d;
    hone_problem problem;
    uint64_t seed;
    int threads;          /* of the host */
    bool large;           /* sampled on an emulated device */
    kind_list kinds;      /* a large product's later ones are `rescaled` instead */
    const inputs *loaded; /* whose read-only operands are on the device; NULL: unknown */
    inputs in;            /* of the first kind */
    inputs rescaled;      /* of a large product; else empty */
    inputs ordinary;      /* of a quantiser on an emulated device: what its time is modelled on */
    inputs after;         /* outputs read back */
    inputs second;        /* of the second run; or of the run on a poisoned D */
    prove_buffers buffers;
};

/* Multiply-adds of a product as tiles do it: matrix instructions have 16 rows, also for one token.
 */
static double padded_macs(const hone_fp8_gemm *p)
{
    return (double)((p->m + 15) / 16 * 16) * (double)p->n * (double)p->k * (double)p->batch;
}

static double elements_of(const hone_problem *problem)
{
    const hone_act_quant *act = &problem->as.act_quant;
    const hone_fold *fold = &problem->as.fold;
    const hone_weight_quant *weight = &problem->as.weight_quant;
    const hone_mxfp4_fold *mxfp4 = &problem->as.mxfp4_fold;
    const hone_scale_pack *scales = &problem->as.scale_pack;

    switch (problem->op) {
    case HONE_OP_ACT_QUANT:
        return (double)act->experts * (double)act->m * (double)act->k;
    case HONE_OP_WEIGHT_QUANT:
        return (double)weight->n * (double)weight->k;
    case HONE_OP_FOLD:
        return (double)fold->m * (double)fold->k;
    case HONE_OP_SCALE_PACK:
        return (double)scales->rows * (double)scales->groups * (double)scales->batch;
    case HONE_OP_MXFP4_FOLD:
        return (double)mxfp4->n * (double)mxfp4->k * (double)mxfp4->batch;
    default:
        return 0.0;
    }
}

/* Rows that are left out are not written, so that the tiles of sampled CTAs could not be told. */
static bool has_gaps(const hone_problem *problem)
{
    return problem->op == HONE_OP_ACT_QUANT && problem->as.act_quant.row_set != HONE_ROWS_EVERY;
}

static bool is_large(const device *d, const hone_problem *problem)
{
    if (d->driver->emu == NULL) {
        return false;
    }
    return (problem->op == HONE_OP_FP8_GEMM && padded_macs(&problem->as.fp8_gemm) > WHOLE_MACS) ||
           (elements_of(problem) > WHOLE_ELEMENTS && !has_gaps(problem));
}

/* Tokens of a KV op, whose slots are drawn; of another op there are always enough. */
static int64_t kv_tokens(const hone_problem *problem)
{
    return problem->op == HONE_OP_KV_GATHER  ? problem->as.kv_gather.tokens
           : problem->op == HONE_OP_KV_QUANT ? problem->as.kv_quant.tokens
                                             : INPUTS_MANY_TOKENS;
}

static kind_list kinds_of(const device *d, const hone_problem *problem)
{
    kind_list quant = {kinds_quant, ARRAY_LEN(kinds_quant)};

    if (problem->op == HONE_OP_FP8_GEMM) {
        return (kind_list){kinds_gemm, ARRAY_LEN(kinds_gemm)};
    }
    if (d->driver->emu != NULL && elements_of(problem) > PLENTY_ELEMENTS) {
        return (kind_list){kinds_plenty, ARRAY_LEN(kinds_plenty)};
    }
    if (kv_tokens(problem) >= INPUTS_MANY_TOKENS) {
        quant.len = KINDS_MANY_TOKENS;
    }
    return quant;
}

void prover_close(prover *p)
{
    if (p == NULL) {
        return;
    }
    prove_buffers_close(&p->buffers);
    inputs_free_outputs(&p->second);
    inputs_free_outputs(&p->after);
    inputs_free_rescaled(&p->rescaled);
    inputs_free(&p->ordinary);
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
    p->threads = 1;
    p->large = is_large(d, problem);
    p->kinds = kinds_of(d, problem);
    TRY(inputs_make(problem, p->kinds.kind[0], seed, &p->in, error));
    if (p->large && problem->op == HONE_OP_FP8_GEMM) {
        TRY(inputs_rescale(&problem->as.fp8_gemm, &p->in, seed + 1, &p->rescaled, error));
    }
    if (d->driver->emu != NULL && problem->op != HONE_OP_FP8_GEMM) {
        TRY(inputs_make(problem, INPUTS_NORMAL, seed + 2, &p->ordinary, error));
    }
    TRY(inputs_copy_outputs(&p->in, &p->after, error));
    TRY(inputs_copy_outputs(&p->in, &p->second, error));
    TRY(prove_buffers_open(d, &p->in, &p->buffers, error));
    p->loaded = &p->in;
    *out = p;
    p = NULL;
done:
    prover_close(p);
    return status;
}

void prover_use_threads(prover *p, int threads)
{
    p->threads = threads < 1 ? 1 : threads < THREADS_MOST ? threads : THREADS_MOST;
}

/* One trial: the candidate as it is launched, and the CTAs of it. */
typedef struct trial {
    const module *m;
    const plan *plan;
    bool spread; /* `plan` has a larger grid than the candidate's */
    uint64_t sample[PROVE_SAMPLE_MOST];
    prove_launch how;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];
} trial;

static void fail(prove_result *out, int32_t outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static bool adds_to_d(const prover *p)
{
    return p->problem.op == HONE_OP_FP8_GEMM && p->problem.as.fp8_gemm.accumulate;
}

static bool is_sampled(const trial *t)
{
    return t->how.sample_len > 0;
}

static hone_status compare(const prover *p, const trial *t, const inputs *in, int hit,
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
        .tiles_run = prove_tiles(&p->problem, t->plan, t->how.sample, t->how.sample_len),
        .written = is_sampled(t) && adds_to_d(p) ? p->second.image[4] : NULL,
        .threads = p->threads,
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

/* Launch and read back into `into`. */
static hone_status run_once(prover *p, trial *t, const inputs *in, inputs *into, int *hit,
                            prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const inputs *loaded = p->loaded;

    p->loaded = NULL;
    TRY(prove_buffers_reset(&p->buffers, in, loaded, error));
    p->loaded = in;
    TRY(prove_buffers_workspace(&p->buffers, t->plan->workspace_bytes, error));
    TRY(prove_launch_once(&p->buffers, t->m, t->plan, &t->how, out, t->counters, error));
    if (out->outcome == STORE_OK) {
        TRY(prove_buffers_read(&p->buffers, into, hit, error));
    }
done:
    return status;
}

/* A sum may leave an element of D as it was, so what sampled CTAs write is seen on a D of NaN. */
static hone_status run_on_poison(prover *p, trial *t, const inputs *in, prove_result *out,
                                 hone_error *error)
{
    inputs poisoned = *in;
    int hit = -1;

    memset(p->second.image[4], VERIFY_POISON, in->operand[4].bytes);
    poisoned.image[4] = p->second.image[4];
    hone_status status = run_once(p, t, &poisoned, &p->second, &hit, out, error);
    p->loaded = in; /* `poisoned` differs in D only */
    return status;
}

static hone_status run_and_compare(prover *p, trial *t, const inputs *in, prove_result *out,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    int hit = -1;

    if (is_sampled(t) && adds_to_d(p)) {
        TRY(run_on_poison(p, t, in, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(run_once(p, t, in, &p->after, &hit, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(compare(p, t, in, hit, out, error));
    }
done:
    return status;
}

/* Twice, the second time by another order of warps and with asynchronous operations as late as the
 * rules allow: the same bits. */
static hone_status prove_twice(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    int hit = -1;

    TRY(run_and_compare(p, t, &p->in, out, error));
    if (out->outcome != STORE_OK) {
        goto done;
    }
    t->how.schedule = p->seed + 1;
    t->how.timing = HONE_EMU_LATEST;
    TRY(run_once(p, t, &p->in, &p->second, &hit, out, error));
    if (out->outcome == STORE_OK && !same_outputs(&p->after, &p->second)) {
        fail(out, STORE_NONDET,
             "a second run, by another order of warps and with late copies, gave other bits");
    }
done:
    return status;
}

static hone_status prove_kind(prover *p, trial *t, inputs_kind kind, prove_result *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    inputs in = {0};

    TRY(inputs_make(&p->problem, kind, p->seed + (uint64_t)kind, &in, error));
    TRY(run_and_compare(p, t, &in, out, error));
done:
    p->loaded = NULL;
    inputs_free(&in);
    return status;
}

/* Another, smaller sample under other scales. */
static hone_status prove_rescaled(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t len = 0;

    prove_sample(&p->problem, t->plan, t->spread ? SPREAD_RESCALED : SAMPLE_RESCALED, p->seed + 2,
                 t->sample, &len);
    t->how.sample_len = len;
    TRY(run_and_compare(p, t, &p->rescaled, out, error));
done:
    return status;
}

/* A few CTAs once more, looking for races and all else: three to five times as slow a CTA, and the
 * order of accesses hangs neither on the data nor much on the CTA. */
static hone_status prove_order(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t few[PROVE_SAMPLE_MOST] = {0};
    const prove_launch before = t->how;
    int hit = -1;

    t->how.sample = few;
    prove_sample(&p->problem, t->plan, t->spread ? SPREAD_THOROUGH : SAMPLE_THOROUGH, p->seed + 3,
                 few, &t->how.sample_len);
    t->how.thorough = true;
    TRY(run_once(p, t, &p->in, &p->second, &hit, out, error));
done:
    t->how = before;
    return status;
}

/* A quantiser goes other ways for NaN and infinities, with which proofs are full: its counters are
 * those of ordinary data, of a sample where that is enough. */
static hone_status count_ordinary(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t few[PROVE_SAMPLE_MOST] = {0};
    const prove_launch before = t->how;
    int hit = -1;

    if (p->large || elements_of(&p->problem) > PLENTY_ELEMENTS) {
        prove_sample(&p->problem, t->plan, SAMPLE_QUANT, p->seed + 4, few, &t->how.sample_len);
        t->how.sample = few;
    }
    TRY(run_once(p, t, &p->ordinary, &p->second, &hit, out, error));
done:
    t->how = before;
    return status;
}

static hone_status prove_all(prover *p, trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_counters counters[MANIFEST_MAX_LAUNCHES];

    TRY(prove_twice(p, t, out, error));
    if (out->outcome == STORE_OK && p->ordinary.len > 0) {
        TRY(count_ordinary(p, t, out, error));
    }
    memcpy(counters, t->counters, sizeof counters);
    if (out->outcome == STORE_OK && p->d->driver->emu != NULL) {
        TRY(prove_order(p, t, out, error));
    }
    for (size_t i = 1; i < p->kinds.len && !p->large && out->outcome == STORE_OK; i++) {
        TRY(prove_kind(p, t, p->kinds.kind[i], out, error));
    }
    if (p->rescaled.len > 0 && is_sampled(t) && out->outcome == STORE_OK) {
        TRY(prove_rescaled(p, t, out, error));
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
    trial t = {.m = m, .plan = launches, .how.threads = p->threads};
    plan *spread = NULL;

    if (made.ctas_total == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "prove: a problem of size 0 launches nothing");
    }
    TRY(device_enter(p->d, error));
    if (p->large && launches->launches_len == 1) {
        TRY(prove_spread(&p->problem, launches, &spread, error));
        t.spread = spread != NULL;
        t.plan = t.spread ? spread : launches;
        made.ctas_total = prove_ctas(t.plan);
        prove_sample(&p->problem, t.plan,
                     t.spread                            ? SPREAD_GEMM
                     : p->problem.op == HONE_OP_FP8_GEMM ? SAMPLE_GEMM
                                                         : SAMPLE_QUANT,
                     p->seed, t.sample, &t.how.sample_len);
        t.how.sample = t.sample;
    }
    made.ctas_run = is_sampled(&t) ? t.how.sample_len : made.ctas_total;
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
    free(spread);
    return status;
}
