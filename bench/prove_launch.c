/* prove_launch.c - one launch of a plan: which CTAs, and what became of it. */
#include "bench/prove_parts.h"
#include "bench/verify_parts.h"

#include "core/integer.h"
#include "core/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPREAD_TILES = 3, WORKSPACE_UNIT = 256 };

uint64_t prove_ctas(const plan *p)
{
    const plan_launch *l = &p->launches[0];

    return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

static bool contains(const uint64_t *sample, size_t len, uint64_t cta)
{
    for (size_t i = 0; i < len; i++) {
        if (sample[i] == cta) {
            return true;
        }
    }
    return false;
}

static uint64_t groups_of(const plan *p)
{
    return prove_ctas(p) / (p->cover.rows > 0 ? (uint64_t)p->cover.ctas : 1);
}

uint64_t prove_tiles_all(const hone_problem *problem, const segments *runs, const plan *p)
{
    const plan_cover *cover = &p->cover;
    const hone_fp8_gemm *gemm = &problem->as.fp8_gemm;
    int64_t tiles = 0;

    if (cover->rows == 0) {
        return 0;
    }
    if (problem->op == HONE_OP_FP8_GEMM) {
        tiles = integer_ceil_div(gemm->m, cover->rows) * gemm->batch *
                integer_ceil_div(gemm->n, cover->columns);
    }
    if (problem->op == HONE_OP_TOPK) {
        tiles = integer_ceil_div(problem->as.topk.rows, cover->rows);
    }
    if (problem->op == HONE_OP_MQA_LOGITS || problem->op == HONE_OP_MQA_LOGITS_PAGED) {
        int64_t rows = 0, columns = 0;
        verify_mqa_size(problem, &rows, &columns);
        tiles = integer_ceil_div(rows, cover->rows) * integer_ceil_div(columns, cover->columns);
    }
    for (size_t i = 0; problem->op == HONE_OP_MOE_GEMM && i < runs->len; i++) {
        tiles += integer_ceil_div(runs->run[i].rows, cover->rows) *
                 integer_ceil_div(segments_columns(&problem->as.moe_gemm), cover->columns);
    }
    return (uint64_t)tiles;
}

/* The same workspace for each of more CTAs: what comes first is rounded up by one unit at most. */
static uint64_t spread_bytes(uint64_t bytes, uint64_t from, uint64_t to)
{
    return bytes == 0 ? 0 : (bytes / from + 1) * to + WORKSPACE_UNIT;
}

/* Clusters of a group that part its tiles among them; 1: none do. */
static uint64_t sharers(const plan *p)
{
    return p->estimate.share > 1 ? (uint64_t)p->estimate.share : 1;
}

/* A persistent grid's CTAs make many tiles each. For a sample they make three: the second and the
 * third go around all that is kept from tile to tile, from a first one and from a later one, and
 * the tiles of a sample stay few. Up to two groups make one less: the grid's last. */
hone_status prove_spread(uint64_t tiles, const plan *p, plan **out, hone_error *error)
{
    const plan_launch *l = &p->launches[0];

    if (tiles == 0 || l->grid[1] * l->grid[2] != 1) {
        return HONE_OK;
    }
    const uint64_t each = SPREAD_TILES * sharers(p); /* of a group */
    const uint64_t ctas = (tiles + each - 1) / each * (uint64_t)p->cover.ctas;
    if (ctas <= l->grid[0] || ctas > INT32_MAX) {
        return HONE_OK;
    }
    plan *made = malloc(sizeof *made);
    if (made == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a plan");
    }
    *made = *p;
    made->launches[0].grid[0] = (uint32_t)ctas;
    made->workspace_bytes = spread_bytes(p->workspace_bytes, l->grid[0], ctas);
    made->workspace_zeroed = spread_bytes(p->workspace_zeroed, l->grid[0], ctas);
    *out = made;
    return HONE_OK;
}

/* The first group makes the first tile; the group of the last tile has tails in every dimension;
 * the last group is a short one where there are any, and the group whose turn it would be after the
 * last tile must see that there is none. The middle and the last but one follow, then random ones.
 */
static size_t sample_groups(uint64_t total, uint64_t tiles, size_t wanted, uint64_t seed,
                            uint64_t *sample)
{
    const uint64_t fixed[] = {0,         (tiles - 1) % total,      total - 1, tiles % total,
                              total / 2, total > 1 ? total - 2 : 0};
    size_t made = 0;

    for (size_t i = 0; i < ARRAY_LEN(fixed) && made < wanted; i++) {
        if (!contains(sample, made, fixed[i])) {
            sample[made++] = fixed[i];
        }
    }
    while (made < wanted) {
        uint64_t group = random_next(&seed) % total;
        if (!contains(sample, made, group)) {
            sample[made++] = group;
        }
    }
    return made;
}

void prove_sample(uint64_t tiles, const plan *p, size_t wanted, uint64_t seed, uint64_t *sample,
                  size_t *len)
{
    const uint64_t ctas = p->cover.rows > 0 ? (uint64_t)p->cover.ctas : 1;
    const uint64_t total = groups_of(p);
    const size_t shared = wanted / (size_t)sharers(p), least = wanted < 2 ? wanted : 2;
    uint64_t groups[PROVE_SAMPLE_MOST];

    *len = 0;
    wanted = shared > least ? shared : least;
    if (total <= wanted || p->launches_len > 1) {
        return; /* all of them: a launch reads what all CTAs of the one before wrote */
    }
    const size_t made = sample_groups(total, tiles > 0 ? tiles : total, wanted, seed, groups);
    for (size_t i = 0; i < made; i++) {
        for (uint64_t c = 0; c < ctas; c++) {
            sample[(*len)++] = groups[i] * ctas + c;
        }
    }
}

uint64_t prove_tiles(uint64_t tiles, const plan *p, const uint64_t *sample, size_t len)
{
    const uint64_t total = groups_of(p);
    uint64_t made = 0;

    if (tiles == 0) {
        return 0;
    }
    for (size_t i = 0; i < len; i += (size_t)p->cover.ctas) {
        const uint64_t group = sample[i] / (uint64_t)p->cover.ctas;
        made += group < tiles ? (tiles - 1 - group) / total + 1 : 0;
    }
    return made;
}

static int ordinal_of(const device *d)
{
    return (int)d->ordinal;
}

static hone_status set_up(const device *d, const prove_launch *how, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = d->driver->emu;

    if (emu != NULL) {
        TRY(emu->set_sample(ordinal_of(d), how->sample, how->sample_len, error));
        TRY(emu->set_schedule(ordinal_of(d), how->schedule, error));
        TRY(emu->set_timing(ordinal_of(d), how->timing, error));
        TRY(emu->set_threads(ordinal_of(d), how->threads > 0 ? how->threads : 1, error));
        TRY(emu->set_checks(ordinal_of(d),
                            how->thorough ? HONE_EMU_CHECK_ALL | HONE_EMU_CHECK_STRICT
                                          : HONE_EMU_CHECK_MEMORY,
                            error));
    }
done:
    return status;
}

static void reject(prove_result *out, int32_t outcome, const char *reason)
{
    out->outcome = outcome;
    snprintf(out->reason, sizeof out->reason, "%.239s", reason);
}

/* A launch that did not end well: the emulator says where; a driver only what. */
static hone_status classify(const device *d, const hone_error *cause, bool started,
                            prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_emu_api *emu = d->driver->emu;
    hone_emu_fault fault = {0};
    char reason[sizeof out->reason];

    if (emu == NULL) {
        reject(out, started ? STORE_FAULT : STORE_LAUNCH, cause->message);
        return HONE_OK;
    }
    TRY(emu->last_fault(ordinal_of(d), &fault, error));
    if (fault.result == 0) {
        reject(out, cause->status == HONE_NO_MEMORY ? STORE_OOM : STORE_LAUNCH, cause->message);
        return HONE_OK;
    }
    snprintf(reason, sizeof reason, "%s: %.180s (PTX line %d)", fault.kind, fault.message,
             fault.ptx_line);
    reject(out, strcmp(fault.kind, "deadlock") == 0 ? STORE_HANG : STORE_FAULT, reason);
    TRY(emu->reset(ordinal_of(d), error));
done:
    return status;
}

/* Each launch of the plan by itself, so that counters are its own. */
static hone_status launch_parts(const prove_buffers *b, const module *m, const plan *p,
                                bool *started, hone_emu_counters *counters, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = b->d->driver;
    plan one = *p;

    one.launches_len = 1;
    for (uint32_t i = 0; i < p->launches_len; i++) {
        one.launches[0] = p->launches[i];
        *started = false;
        TRY(module_launch(m, &one, b->address, b->len, b->workspace, NULL, error));
        *started = true;
        TRY(driver_check(d, d->cuCtxSynchronize(), "cuCtxSynchronize", error));
        if (d->emu != NULL && counters != NULL) {
            TRY(d->emu->last_counters(ordinal_of(b->d), &counters[i], error));
        }
        one.workspace_zeroed = 0; /* what one launch leaves there the next one reads */
    }
done:
    return status;
}

hone_status prove_launch_once(const prove_buffers *b, const module *m, const plan *p,
                              const prove_launch *how, prove_result *out,
                              hone_emu_counters *counters, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_error cause = {0};
    bool started = false;

    out->outcome = STORE_OK;
    TRY(set_up(b->d, how, error));
    if (launch_parts(b, m, p, &started, counters, &cause) != HONE_OK) {
        TRY(classify(b->d, &cause, started, out, error));
    }
done:
    return status;
}
