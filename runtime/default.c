/* default.c - ranks the legal configs of all templates by the performance model, without compiling
 * any. */
#include "runtime/default.h"

#include "core/problem.h"
#include "templates/space.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_BUDGET 4096
/* Nodes of the space that one template may cost: about a tenth of a second. */
#define DEFAULT_NODES 2000000u
#define DEFAULT_SEED  0x686f6e65u

/* Registers of a thread when neither ptxas nor the manifest says: CUDA kernels of this kind use 64
 * to 168. */
#define USUAL_REGISTERS 128

/* Multiply-adds of one warp-wide fp8 mma, and instructions around each: operands, addresses,
 * promotion. */
#define MACS_OF_MMA         4096.0
#define INSTRUCTIONS_OF_MMA 4.0
/* Instructions that move and convert 512 bytes, one 16-byte access of each lane. */
#define INSTRUCTIONS_OF_ACCESS 24.0

/* The launch that does the work: the one with the most threads. */
static const plan_launch *main_launch(const plan *p)
{
    const plan_launch *best = &p->launches[0];
    double most = -1;

    for (uint32_t i = 0; i < p->launches_len; i++) {
        const plan_launch *l = &p->launches[i];
        double threads =
            (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] * l->block[2];
        if (threads > most) {
            most = threads;
            best = l;
        }
    }
    return best;
}

/* What the manifest estimates, else a guess from the problem alone. */
static double given_or(int64_t estimate, double guess)
{
    return estimate > 0 ? (double)estimate : guess;
}

static void work_of_plan(const plan *p, const hone_problem *problem, int32_t registers,
                         perf_work *out)
{
    const plan_launch *l = main_launch(p);
    const plan_estimate *e = &p->estimate;
    perf_work w = {.shared_bytes = (int32_t)l->shared_bytes, .stages = (int32_t)e->stages};
    double flop = 0, bytes = 0;

    problem_work(problem, &flop, &bytes);
    const double macs = problem->op == HONE_OP_FP8_GEMM ? given_or(e->macs, flop / 2) : 0;
    w.ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    w.threads = l->block[0] * l->block[1] * l->block[2];
    w.registers = registers > 0 ? registers : (int32_t)given_or(e->registers, USUAL_REGISTERS);
    w.tensor_macs[GPU_MMA_FP8] = macs;
    w.dram_bytes = bytes;
    w.l2_bytes = given_or(e->l2_bytes, bytes);
    w.l2_bytes = w.l2_bytes > bytes ? w.l2_bytes : bytes;
    w.warp_instructions = given_or(e->instructions, macs / MACS_OF_MMA * INSTRUCTIONS_OF_MMA +
                                                        w.l2_bytes / 512 * INSTRUCTIONS_OF_ACCESS);
    /* Operands staged in shared memory are written once and read at least once. */
    w.shared_wavefronts = given_or(e->wavefronts, l->shared_bytes > 0 ? 2 * w.l2_bytes / 128 : 0);
    *out = w;
}

hone_status default_work(const manifest *m, const hone_problem *problem, const gpu *g,
                         const config *c, int32_t registers, perf_work *out, hone_error *error)
{
    hone_status status = HONE_OK;
    plan *p = malloc(sizeof *p);

    if (p == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(m), 0, "a plan");
    }
    TRY(manifest_plan(m, problem, &g->facts, c, p, error));
    work_of_plan(p, problem, registers, out);
done:
    free(p);
    return status;
}

/* A sorted list of the best so far. */
typedef struct ranking {
    const hone_problem *problem;
    const gpu *g;
    plan *scratch;
    default_choice *out;
    size_t capacity, len;
    uint64_t looked_at;
} ranking;

/* Modelled time, then template's name, then config: an order that no run or machine changes. */
static int compare_choices(const default_choice *a, const default_choice *b)
{
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    int names = strcmp(manifest_name(a->m), manifest_name(b->m));
    for (uint32_t i = 0; names == 0 && i < a->config.len; i++) {
        if (a->config.value[i] != b->config.value[i]) {
            names = a->config.value[i] < b->config.value[i] ? -1 : 1;
        }
    }
    return names;
}

static void insert(ranking *r, const default_choice *choice)
{
    size_t at = r->len;
    int order = -1;

    while (at > 0 && (order = compare_choices(choice, &r->out[at - 1])) < 0) {
        at--;
    }
    if (at == r->capacity || (at > 0 && order == 0)) {
        return; /* worse than all that are kept, or drawn twice */
    }
    size_t moved = (r->len < r->capacity ? r->len : r->capacity - 1) - at;
    memmove(&r->out[at + 1], &r->out[at], moved * sizeof *r->out);
    r->out[at] = *choice;
    r->len += r->len < r->capacity;
}

static hone_status consider(ranking *r, const manifest *m, const config *c, hone_error *error)
{
    hone_status status = HONE_OK;
    default_choice choice = {.m = m, .config = *c};
    perf_work work;
    perf_answer answer;

    r->looked_at++;
    TRY(manifest_plan(m, r->problem, &r->g->facts, c, r->scratch, error));
    work_of_plan(r->scratch, r->problem, 0, &work);
    status = perf_predict(r->g, &work, &answer, error);
    if (status == HONE_UNSUPPORTED) {
        return HONE_OK; /* not one block fits: not a choice */
    }
    if (status == HONE_OK) {
        choice.ns = answer.ns;
        choice.bound = answer.bound;
        insert(r, &choice);
    }
done:
    return status;
}

/* Look at every config. *whole = false when there are more than `budget`, or they cost too many
 * nodes. */
static hone_status consider_all(ranking *r, const manifest *m, space *s, uint64_t budget,
                                bool *whole, hone_error *error)
{
    hone_status status = HONE_OK;
    config c = {.len = 0}; /* zero past its values, so that equal configs are equal bytes */
    bool found = true;

    *whole = false;
    for (uint64_t i = 0; i < budget && found; i++) {
        status = space_next(s, DEFAULT_NODES, &c, &found, error);
        if (status == HONE_LIMIT) {
            return HONE_OK;
        }
        TRY(status);
        if (found) {
            TRY(consider(r, m, &c, error));
        }
    }
    if (found) { /* is there one more? */
        status = space_next(s, DEFAULT_NODES, &c, &found, error);
    }
    *whole = status == HONE_OK && !found;
    status = status == HONE_LIMIT ? HONE_OK : status;
done:
    return status;
}

static hone_status consider_sample(ranking *r, const manifest *m, space *s, uint64_t budget,
                                   hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t seed = DEFAULT_SEED;
    config c = {.len = 0};
    bool found = true, uniform;

    for (uint64_t i = 0; i < budget && found; i++) {
        TRY(space_draw(s, &seed, DEFAULT_NODES, &c, &found, &uniform, error));
        if (found) {
            TRY(consider(r, m, &c, error));
        }
    }
done:
    return status;
}

static hone_status rank_template(ranking *r, const manifest *m, uint64_t budget, hone_error *error)
{
    hone_status status = HONE_OK;
    space *s = NULL;
    bool serves = false, whole = false;

    if (manifest_op(m) != r->problem->op) {
        return HONE_OK;
    }
    TRY(manifest_serves(m, r->problem, &r->g->facts, &serves, NULL, error));
    if (!serves) {
        goto done;
    }
    TRY(space_open(m, r->problem, &r->g->facts, &s, error));
    TRY(consider_all(r, m, s, budget, &whole, error));
    if (!whole) {
        space_rewind(s);
        TRY(consider_sample(r, m, s, budget, error));
    }
done:
    space_close(s);
    return status;
}

hone_status default_rank(const templates *t, const hone_problem *problem, const gpu *g,
                         uint64_t budget, default_choice *out, size_t capacity, size_t *count,
                         uint64_t *legal, hone_error *error)
{
    hone_status status = HONE_OK;
    ranking r = {.problem = problem, .g = g, .capacity = capacity};

    if (capacity == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "a ranking needs room for one choice");
    }
    r.out = calloc(capacity, sizeof *r.out);
    r.scratch = malloc(sizeof *r.scratch);
    if (r.out == NULL || r.scratch == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a ranking of %zu choices", capacity);
        goto done;
    }
    for (size_t i = 0; i < templates_len(t); i++) {
        TRY(rank_template(&r, templates_at(t, i), budget > 0 ? budget : DEFAULT_BUDGET, error));
    }
    memcpy(out, r.out, r.len * sizeof *out);
    *count = r.len;
    if (legal != NULL) {
        *legal = r.looked_at;
    }
done:
    free(r.scratch);
    free(r.out);
    return status;
}
