/* prove.c - a problem's prover, and a candidate's proof on one device or on two side by side. */
#include "bench/prove.h"
#include "bench/prove_trial.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MOST = 64 }; /* of hone_emu.h's set_threads */

#define PADDED_BYTES (UINT64_C(256) << 20) /* of a copy with other padding, but of a moe_gemm */

static hone_status open_lane(const prover *p, const device *d, prove_lane *out, hone_error *error)
{
    hone_status status = prove_buffers_open(d, &p->in, &out->buffers, error);

    if (status == HONE_OK) {
        out->d = d;
        out->loaded = &p->in;
    }
    return status;
}

void prover_close(prover *p)
{
    if (p == NULL) {
        return;
    }
    prove_buffers_close(&p->lane[1].buffers);
    prove_buffers_close(&p->lane[0].buffers);
    device_close(p->twin);
    inputs_free_outputs(&p->poisoned);
    inputs_free_outputs(&p->second);
    inputs_free_outputs(&p->after);
    inputs_free_rescaled(&p->rescaled);
    inputs_free_padded(&p->padded);
    inputs_free_rerouted(&p->timed);
    segments_free(&p->timed_runs);
    segments_free(&p->runs);
    inputs_free(&p->ordinary);
    for (size_t i = 0; i < ARRAY_LEN(p->kept); i++) {
        inputs_free(&p->kept[i].in);
        verify_memo_free(&p->kept[i].memo);
    }
    inputs_free(&p->in);
    verify_memo_free(&p->memo);
    free(p);
}

/* Rows as they are timed. A large product's own are balanced. */
static hone_status make_timed(prover *p, const routing *timed, hone_error *error)
{
    const hone_moe_gemm *moe = &p->problem.as.moe_gemm;
    hone_status status = HONE_OK;

    if (p->large && (timed == NULL || timed->kind == INPUTS_ROUTE_BALANCED)) {
        return HONE_OK;
    }
    TRY(inputs_reroute(moe, &p->in, timed, p->seed + 2, &p->timed, error));
    TRY(segments_find(moe, p->timed.image[4], &p->timed_runs, error));
done:
    return status;
}

static hone_status make_inputs(prover *p, const routing *timed, hone_error *error)
{
    const hone_problem *problem = &p->problem;
    const bool moe = problem->op == HONE_OP_MOE_GEMM, product = prove_is_product(problem);
    hone_status status = HONE_OK;

    TRY(inputs_make_routed(problem, p->kinds.kind[0],
                           p->large ? INPUTS_ROUTE_BALANCED : INPUTS_ROUTE_OF_KIND, p->seed, &p->in,
                           error));
    if (moe || (!p->large && p->in.operand[0].bytes <= PADDED_BYTES)) {
        TRY(inputs_repad(problem, &p->in, &p->padded, error));
    }
    if (moe) {
        TRY(segments_find(&problem->as.moe_gemm, p->in.image[4], &p->runs, error));
        TRY(make_timed(p, timed, error));
    }
    if (p->large && product) {
        TRY(inputs_rescale(moe ? &problem->as.moe_gemm.recipe : &problem->as.fp8_gemm.recipe,
                           &p->in, p->seed + 1, &p->rescaled, error));
    }
    if (p->d->driver->emu != NULL && !product) {
        TRY(inputs_make(problem, INPUTS_NORMAL, p->seed + 2, &p->ordinary, error));
    }
done:
    return status;
}

hone_status prover_open(const device *d, const hone_problem *problem, uint64_t seed, prover **out,
                        hone_error *error)
{
    return prover_open_routed(d, problem, NULL, seed, out, error);
}

hone_status prover_open_routed(const device *d, const hone_problem *problem, const routing *timed,
                               uint64_t seed, prover **out, hone_error *error)
{
    hone_status status = routing_check(timed, problem, error);
    prover *p = status == HONE_OK ? calloc(1, sizeof *p) : NULL;

    if (status != HONE_OK) {
        return status;
    }

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a prover");
    }
    p->d = d;
    p->problem = *problem;
    p->seed = seed;
    p->threads = 1;
    p->large = prove_is_large(d, problem);
    p->kinds = prove_kinds_of(d, problem);
    TRY(make_inputs(p, timed, error));
    TRY(inputs_copy_outputs(&p->in, &p->after, error));
    TRY(inputs_copy_outputs(&p->in, &p->second, error));
    if (p->large && prove_adds_to_d(p)) {
        TRY(inputs_copy_outputs(&p->in, &p->poisoned, error));
    }
    TRY(open_lane(p, d, &p->lane[0], error));
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

/* One step after the other. */
static hone_status prove_alone(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(prove_first(p, t, out, error));
    if (out->outcome == STORE_OK) {
        TRY(prove_again(p, t, out, error));
    }
    if (out->outcome == STORE_OK) {
        prove_same_bits(p, out);
    }
    if (out->outcome == STORE_OK) {
        TRY(prove_count(p, t, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(prove_order(p, t, out, error));
    }
    if (out->outcome == STORE_OK) {
        TRY(prove_others(p, t, out, error));
    }
done:
    return status;
}

/* The steps that no reference is needed for, on the twin and a thread of their own. */
typedef struct side {
    prover *p;
    prove_trial t;
    const plan *launches;
    const compiled *code;
    hone_error error;
    pthread_mutex_t lock; /* guards `again_ended` and `stop` */
    pthread_cond_t moved; /* the second run has ended: what it is about is there to be read */
    bool again_ended, stop;
    hone_status again_status, status; /* `status` and `rest`: once the thread has ended */
    prove_result again, rest;
} side;

/* Tell that the second run has ended; false when nobody wants more. */
static bool end_again(side *s)
{
    pthread_mutex_lock(&s->lock);
    s->again_ended = true;
    const bool more = !s->stop;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
    return more && s->again_status == HONE_OK && s->again.outcome == STORE_OK;
}

static void *run_side(void *argument)
{
    side *s = argument;
    module *m = NULL;

    s->again_status = device_enter(s->p->twin, &s->error);
    if (s->again_status == HONE_OK) {
        s->again_status = module_load(s->p->twin, s->launches, s->code, &m, &s->error);
    }
    s->t.m = m;
    if (s->again_status == HONE_OK) {
        s->again_status = prove_again(s->p, &s->t, &s->again, &s->error);
    }
    if (end_again(s)) {
        s->status = prove_count(s->p, &s->t, &s->rest, &s->error);
        if (s->status == HONE_OK && s->rest.outcome == STORE_OK) {
            s->status = prove_order(s->p, &s->t, &s->rest, &s->error);
        }
    }
    module_unload(m);
    return NULL;
}

static void take_verdict(prove_result *out, const prove_result *from)
{
    out->outcome = from->outcome;
    memcpy(out->reason, from->reason, sizeof out->reason);
}

static hone_status take_error(hone_status status, const side *s, hone_error *error)
{
    return status_set(error, status, s->error.source, s->error.line, "%s", s->error.message);
}

/* The second run's verdict, once it has ended; tells the side to stop where that is the last one.
 */
static hone_status meet(side *s, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    pthread_mutex_lock(&s->lock);
    while (!s->again_ended) {
        pthread_cond_wait(&s->moved, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    if (s->again_status != HONE_OK) {
        status = take_error(s->again_status, s, error);
    } else if (s->again.outcome != STORE_OK) {
        take_verdict(out, &s->again);
    } else {
        prove_same_bits(s->p, out);
    }
    return status;
}

/* The caller's part. Verdicts stand in the order of prove_alone, whichever step ended first. */
static hone_status prove_with(side *s, pthread_t thread, prove_trial *t, prove_result *out,
                              hone_error *error)
{
    prover *p = s->p;
    hone_status status = prove_first(p, t, out, error);
    prove_result others;

    if (status == HONE_OK && out->outcome == STORE_OK) {
        status = meet(s, out, error);
    }
    const bool more = status == HONE_OK && out->outcome == STORE_OK;
    others = *out;
    if (more) {
        status = prove_others(p, t, &others, error);
    } else {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_join(thread, NULL);
    if (more && s->status != HONE_OK) {
        return take_error(s->status, s, error);
    }
    if (more && s->rest.outcome != STORE_OK) {
        take_verdict(out, &s->rest);
        status = HONE_OK;
    } else {
        *out = others;
    }
    memcpy(t->counters, s->t.counters, sizeof t->counters);
    t->timed = s->t.timed;
    return status;
}

static hone_status prove_beside(prover *p, const plan *launches, const compiled *c, prove_trial *t,
                                prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    pthread_t thread;
    side *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a proof");
    }
    t->how.threads = p->threads / 2;
    s->p = p;
    s->t = *t;
    s->t.lane = &p->lane[1];
    s->t.how.sample = t->how.sample != NULL ? s->t.sample : NULL;
    s->launches = launches;
    s->code = c;
    s->again.outcome = s->rest.outcome = STORE_OK;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    if (pthread_create(&thread, NULL, run_side, s) == 0) {
        status = prove_with(s, thread, t, out, error);
    } else {
        status = prove_alone(p, t, out, error);
    }
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return status;
}

static void close_twin(prover *p)
{
    prove_buffers_close(&p->lane[1].buffers);
    device_close(p->twin);
    p->twin = NULL;
    p->alone = true;
}

/* Where threads are left. Another device's context may be current afterwards. */
static bool has_twin(prover *p)
{
    if (p->threads < 2 || p->alone || p->twin != NULL) {
        return p->threads >= 2 && !p->alone;
    }
    if (device_open_twin(p->d, &p->twin, NULL) != HONE_OK ||
        open_lane(p, p->twin, &p->lane[1], NULL) != HONE_OK) {
        close_twin(p);
    }
    return !p->alone;
}

/* What two devices have no memory for may still go on one. */
static hone_status prove_all(prover *p, const plan *launches, const compiled *c, prove_trial *t,
                             prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const prove_trial before = *t;
    const prove_result nothing = *out;
    const bool beside = has_twin(p);

    TRY(device_enter(p->d, error));
    if (beside) {
        status = prove_beside(p, launches, c, t, out, error);
        if (status != HONE_NO_MEMORY && out->outcome != STORE_OOM) {
            return status;
        }
        close_twin(p);
        TRY(device_enter(p->d, error));
        *t = before;
        t->how.sample = before.how.sample != NULL ? t->sample : NULL;
        *out = nothing;
    }
    status = prove_alone(p, t, out, error);
done:
    return status;
}

hone_status prove_lay_out(const prover *p, const segments *runs, prove_trial *t, plan **spread,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    const bool moe = p->problem.op == HONE_OP_MOE_GEMM;

    *spread = NULL;
    t->plan = t->launches;
    t->spread = false;
    t->how.sample = NULL;
    t->how.sample_len = 0;
    t->tiles = prove_tiles_all(&p->problem, runs, t->launches);
    if (p->large && t->launches->launches_len == 1 &&
        (t->tiles > 0 || !moe)) { /* whose tiles only a cover tells */
        TRY(prove_spread(t->tiles, t->launches, spread, error));
        t->spread = *spread != NULL;
        t->plan = t->spread ? *spread : t->launches;
        prove_sample(t->tiles, t->plan,
                     t->spread                       ? SPREAD_GEMM
                     : prove_is_product(&p->problem) ? SAMPLE_GEMM
                                                     : SAMPLE_QUANT,
                     p->seed, t->sample, &t->how.sample_len);
        t->how.sample = t->sample;
    }
    const uint64_t tiles_run = prove_tiles(t->tiles, t->plan, t->sample, t->how.sample_len);
    t->timed = (prove_timed){
        .scale = moe && tiles_run > 0 ? (double)t->tiles / (double)tiles_run : 0.0,
        .tiles = moe ? t->tiles : 0,
    };
done:
    return status;
}

/* Rows that are timed, and what they need. */
static void tell_work(const prover *p, prove_result *out)
{
    const hone_moe_gemm *moe = &p->problem.as.moe_gemm;
    const segments *runs = p->timed.len > 0 ? &p->timed_runs : &p->runs;

    problem_work(&p->problem, &out->flop, &out->bytes);
    if (p->problem.op != HONE_OP_MOE_GEMM || moe->group_layout == HONE_GROUPS_K) {
        return;
    }
    for (size_t i = 0; i < runs->len; i++) {
        out->rows += runs->run[i].rows;
    }
    out->rows_cut = moe->tokens * moe->topk - out->rows;
    problem_work_routed(&p->problem, out->rows, (int64_t)runs->len, &out->flop, &out->bytes);
}

static hone_status time_events(prover *p, prove_trial *t, prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    prove_lane *l = t->lane;

    if (p->timed.len > 0) { /* the last proof's are on the device */
        const inputs *loaded = l->loaded;
        l->loaded = NULL;
        TRY(prove_buffers_reset(&l->buffers, &p->timed, loaded, error));
        l->loaded = &p->timed;
    }
    TRY(prove_time_events(&l->buffers, t->m, t->launches, out, error));
done:
    return status;
}

hone_status prover_run(prover *p, const module *m, const plan *launches, const compiled *c,
                       prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    prove_result made = {.outcome = STORE_OK};
    prove_trial t = {.lane = &p->lane[0], .m = m, .launches = launches, .how.threads = p->threads};
    plan *spread = NULL;

    if (prove_ctas(launches) == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "prove: a problem of size 0 launches nothing");
    }
    TRY(prove_lay_out(p, &p->runs, &t, &spread, error));
    made.ctas_total = prove_ctas(t.plan);
    made.ctas_run = t.how.sample_len > 0 ? t.how.sample_len : made.ctas_total;
    TRY(prove_all(p, launches, c, &t, &made, error));
    tell_work(p, &made);
    if (made.outcome == STORE_OK && p->d->driver->emu != NULL) {
        TRY(prove_time_model(p->d, launches, c, t.counters, &t.timed, &made, error));
    } else if (made.outcome == STORE_OK) {
        TRY(time_events(p, &t, &made, error));
    }
    *out = made;
done:
    if (p->d->driver->emu != NULL) {
        p->d->driver->emu->set_sample((int)p->d->ordinal, NULL, 0, NULL);
    }
    free(spread);
    return status;
}
