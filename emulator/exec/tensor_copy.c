/* tensor_copy.c - cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetch: an
 * operation is checked at its instruction and handed to the engine. Lanes with other operands act
 * one after the other, lowest first. */
#include "emulator/exec/tensor_copy.h"
#include "emulator/exec/exec.h"
#include "emulator/machine/access.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/machine/tensor_map_use.h"

enum { SHARED_ALIGN = 128 };

/* The operands: shared memory (0 of a prefetch), the map, coordinates, then of a load the mbarrier,
 * offsets of im2col and the mask of CTAs. */
typedef struct operands {
    uint32_t shared, map, coordinates, coordinates_len, mbarrier, offsets, offsets_len, mask;
} operands;

static operands find_operands(const instruction *i)
{
    bool load = i->kind == TENSOR_LOAD, im2col = (i->target & TENSOR_COPY_IM2COL) != 0;
    operands o = {.shared = i->o[0], .map = i->o[1], .coordinates = 2};

    o.coordinates_len = (i->target & TENSOR_COPY_ROWS) ? 5 : i->elements;
    o.offsets_len = im2col && (load || i->kind == TENSOR_PREFETCH) ? i->elements - 2u : 0;
    uint32_t next = 2 + o.coordinates_len;
    o.mbarrier = load ? i->o[next++] : 0;
    o.offsets = next;
    o.mask = (i->target & TENSOR_COPY_MULTICAST) ? i->o[next + o.offsets_len] : 0;
    return o;
}

static void read_coordinates(const warp *w, const instruction *i, uint32_t lane, const operands *o,
                             tensor_copy *c)
{
    for (uint32_t n = 0; n < o->coordinates_len; n++) {
        int32_t at = (int32_t)machine_r32(w, i->o[o->coordinates + n])[lane];
        bool row = (c->modes & TENSOR_COPY_ROWS) && n > 0;
        *(row ? &c->rows_at[n - 1] : &c->first[n]) = at;
    }
    for (uint32_t n = 0; n < o->offsets_len; n++) {
        c->offsets[n] = machine_r32(w, i->o[o->offsets + n])[lane] & 0xffff;
    }
}

/* Where a shared address of one lane lies: `bytes` from there, a multiple of `unit`. False after a
 * fault. */
static bool find_shared(warp *w, const instruction *i, uint32_t lane, uint32_t operand,
                        uint32_t unit, uint32_t bytes, async_signal *out)
{
    uint64_t address[MACHINE_LANES];
    ptx_space space = PTX_SHARED;
    access_window win;
    uint32_t mask = UINT32_C(1) << lane;

    if (!access_addresses(w, i, operand, mask, unit, address) ||
        access_open(w, i, address, mask, bytes, &space, &win) != mask) {
        return false;
    }
    *out = (async_signal){win.owner, (uint32_t)win.at[lane], bytes};
    return true;
}

/* Marks what a row will come to; whole boxes at once where rows are dense. */
static bool claim(const async_op *op, cta *owner)
{
    const tensor_copy *c = (const tensor_copy *)(const void *)op->payload;
    const tensor_map_pattern *p = &tensor_map_patterns[c->map.swizzle];

    if (c->pitch == c->row_bytes) {
        return async_claim(op, owner, c->at, tensor_box_extent(c));
    }
    for (uint32_t r = 0; r < c->rows; r++) {
        for (uint32_t n = 0; n < c->row_bytes; n += 16) {
            if (!async_claim(op, owner, tensor_row_at(c->at + r * c->pitch + n, p), 16)) {
                return false;
            }
        }
    }
    return true;
}

/* Tells the race detector of the box in shared memory. */
static bool touch_shared(race_task *task, const tensor_copy *c, cta *owner, race_access kind)
{
    const tensor_map_pattern *p = &tensor_map_patterns[c->map.swizzle];

    if (task == NULL) {
        return true;
    }
    if (c->pitch == c->row_bytes) {
        return race_task_touch(task, owner, c->at, tensor_box_extent(c), 1, 0, kind);
    }
    for (uint32_t r = 0; r < c->rows; r++) {
        for (uint32_t n = 0; n < c->row_bytes; n += 16) {
            uint32_t at = tensor_row_at(c->at + r * c->pitch + n, p);
            if (!race_task_touch(task, owner, at, 16, 1, 0, kind)) {
                return false;
            }
        }
    }
    return true;
}

static bool touch_global(race_task *task, const tensor_copy *c, race_access kind)
{
    tensor_slabs s = tensor_box_slabs(c);
    tensor_slab slab;

    while (task != NULL && tensor_box_next(&s, &slab)) {
        if (slab.low < slab.high &&
            !race_task_touch(task, NULL, slab.address, c->inside_bytes, slab.high - slab.low,
                             (uint64_t)slab.step, kind)) {
            return false;
        }
    }
    return true;
}

static void count_wavefronts(run_state *run, const tensor_copy *c)
{
    uint32_t wavefronts = tensor_box_wavefronts(c);
    uint32_t least = (tensor_box_bytes(c) + MACHINE_LINE - 1) / MACHINE_LINE;

    run->counters.tma_wavefronts += wavefronts;
    run->counters.tma_conflicts += wavefronts - least;
}

/* One CTA that a load writes to, and whose mbarrier it tells. */
static bool add_target(async_op *op, cta *owner, uint32_t barrier)
{
    const tensor_copy *c = (const tensor_copy *)(const void *)op->payload;

    op->by->run->counters.tma_load_bytes += tensor_box_bytes(c);
    count_wavefronts(op->by->run, c);
    if (mbarrier_find(op->by, op->i, op->lane, owner, barrier) == NULL || !claim(op, owner)) {
        return false;
    }
    async_signal_add(op, owner, barrier, tensor_box_bytes(c));
    return touch_shared(op->task, c, owner, RACE_WRITE);
}

static bool add_multicast(async_op *op, uint32_t mask, uint32_t barrier)
{
    cluster *together = op->by->cta->cluster;

    if (mask == 0 || (uint64_t)mask >> together->ctas_len != 0) {
        machine_fault(op->by, op->i, op->lane, 0, FAULT_PRECONDITION,
                      "a multicast to the CTAs %#x of a cluster of %u", mask, together->ctas_len);
        return false;
    }
    for (EACH_LANE(rank, mask)) {
        if (!add_target(op, &together->ctas[rank], barrier)) {
            return false;
        }
    }
    return true;
}

static bool prepare_load(async_op *op, const operands *o)
{
    tensor_copy *c = (tensor_copy *)(void *)op->payload;
    warp *w = op->by;
    async_signal to, barrier;

    if (!find_shared(w, op->i, op->lane, o->shared, SHARED_ALIGN, tensor_box_extent(c), &to) ||
        !find_shared(w, op->i, op->lane, o->mbarrier, MBARRIER_BYTES, MBARRIER_BYTES, &barrier)) {
        return false;
    }
    c->at = to.at;
    op->perform = tensor_copy_load;
    if (c->modes & TENSOR_COPY_MULTICAST) {
        return add_multicast(op, machine_r32(w, o->mask)[op->lane] & 0xffff, barrier.at);
    }
    if (barrier.owner != to.owner) {
        machine_fault(w, op->i, op->lane, barrier.at, FAULT_PRECONDITION,
                      "the box goes to CTA %u of the cluster, the mbarrier lies in CTA %u",
                      to.owner->rank, barrier.owner->rank);
        return false;
    }
    return add_target(op, to.owner, barrier.at);
}

static bool prepare_store(async_op *op, const operands *o)
{
    tensor_copy *c = (tensor_copy *)(void *)op->payload;
    async_signal from;

    if (!find_shared(op->by, op->i, op->lane, o->shared, SHARED_ALIGN, tensor_box_extent(c),
                     &from)) {
        return false;
    }
    c->source = from.owner;
    c->at = from.at;
    count_wavefronts(op->by->run, c);
    op->grouped = true;
    op->perform = tensor_copy_store;
    async_fetches(op, tensor_copy_fetch);
    return touch_shared(op->reading, c, from.owner, RACE_READ);
}

static void count(run_state *run, const tensor_copy *c)
{
    run->counters.tma_requests++;
    if (c->kind != TENSOR_LOAD) { /* those are counted at each CTA that they go to */
        run->counters.tma_store_bytes += tensor_box_bytes(c);
    }
}

static async_op *make(warp *w, const instruction *i, uint32_t lane, const tensor_copy *c,
                      const operands *o)
{
    bool load = c->kind == TENSOR_LOAD;
    size_t held = load ? 0 : tensor_box_bytes(c);
    async_op *op = async_new(w, i, lane, sizeof *c + held);

    if (op == NULL) {
        return NULL;
    }
    memcpy(op->payload, c, sizeof *c);
    if ((load ? prepare_load(op, o) : prepare_store(op, o)) &&
        touch_global(op->task, c,
                     load                       ? RACE_READ
                     : c->kind == TENSOR_REDUCE ? RACE_ATOMIC
                                                : RACE_WRITE)) {
        return op;
    }
    async_drop(op);
    return NULL;
}

static bool one_lane(warp *w, const instruction *i, uint32_t lane)
{
    operands o = find_operands(i);
    tensor_copy c = {
        .kind = (tensor_copy_kind)i->kind, .modes = i->target, .reduction = i->element_bytes};

    read_coordinates(w, i, lane, &o, &c);
    if (!tensor_map_open(w, i, lane, machine_r64(w, o.map)[lane], &c.map) ||
        !tensor_box_open(w, i, lane, &c) || !tensor_box_find(w, i, lane, &c)) {
        return false;
    }
    if (c.kind == TENSOR_PREFETCH) {
        return true;
    }
    async_op *op = make(w, i, lane, &c, &o);
    if (op == NULL) {
        return false;
    }
    count(w->run, &c);
    async_submit(op);
    return true;
}

void exec_tensor_copy(warp *w, const instruction *i, uint32_t mask)
{
    for (uint32_t s = 0; s < i->sources; s++) {
        if (taint_refuse(w, i, i->o[s], mask, "an operand of the tensor copy")) {
            return;
        }
    }
    while (mask != 0) {
        uint32_t lane = machine_lowest(mask);
        if (!one_lane(w, i, lane)) {
            return;
        }
        mask &= ~machine_alike(w, i, lane, mask);
    }
}
