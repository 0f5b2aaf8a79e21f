/* bulk.c - cp.async.bulk and cp.reduce.async.bulk between global and shared memory, st.async and
 * red.async. Each lane starts one operation. All is checked at the instruction; async.c says when
 * the bytes move. Written or not, each byte's shadow travels along. */
#include "emulator/machine/access.h"
#include "emulator/machine/async.h"
#include "emulator/machine/mbarrier.h"
#include "emulator/exec/exec.h"

/* One end of a copy. */
typedef struct bulk_end {
    cta *owner;  /* of shared memory; NULL: global */
    uint64_t at; /* offset in the owner, or address */
    uint8_t *data, *shadow;
    bool whole; /* see memory_range */
} bulk_end;

typedef struct bulk_copy {
    bulk_end from, to[ASYNC_SIGNALS];
    uint32_t to_len, bytes;
    bool reduces, masked;
    uint16_t byte_mask;          /* of each 16 bytes, when `masked` */
    _Alignas(16) uint8_t held[]; /* what `fetch` read: bytes, then their shadows */
} bulk_copy;

/* The lane whose operation is made. */
typedef struct maker {
    warp *w;
    const instruction *i;
    uint32_t lane;
} maker;

static bulk_copy *copy_of(async_op *op)
{
    return (bulk_copy *)(void *)op->payload;
}

static uint32_t value32(const maker *m, uint32_t source)
{
    return machine_r32(m->w, m->i->o[source])[m->lane];
}

static bool check_aligned(const maker *m, uint64_t address, uint32_t bytes, const char *what)
{
    if (address % bytes == 0) {
        return true;
    }
    machine_fault(m->w, m->i, m->lane, address, FAULT_MISALIGNED,
                  "the %s %#llx is not a multiple of %u", what, (unsigned long long)address, bytes);
    return false;
}

static bool open_shared(const maker *m, uint32_t address, uint32_t bytes, bulk_end *out)
{
    uint32_t at = 0;

    if (!access_shared(m->w, m->i, m->lane, address, bytes, &out->owner, &at)) {
        return false;
    }
    out->at = at;
    out->data = out->owner->shared + at;
    out->shadow = out->owner->shared_shadow + at;
    return true;
}

/* Prefetches are neither, and count nowhere, like a tensor copy's. */
static void count_sectors(const maker *m, uint64_t sectors)
{
    hone_emu_counters *c = &m->w->run->counters;

    c->global_load_sectors += m->i->offset & BULK_FROM_GLOBAL ? sectors : 0;
    c->global_store_sectors += m->i->offset & BULK_TO_GLOBAL ? sectors : 0;
}

static bool open_global(const maker *m, uint64_t address, uint32_t bytes, bulk_end *out)
{
    touched_range *t = global_range(m->w, m->i, m->lane, address, bytes);

    if (t == NULL || ((m->i->offset & BULK_TO_GLOBAL) != 0 &&
                      !global_writable(m->w, m->i, m->lane, address, t->range))) {
        return false;
    }
    if (bytes > 0) {
        global_mark_lines(t, address, address + bytes);
        count_sectors(m, (address + bytes - 1) / MACHINE_SECTOR - address / MACHINE_SECTOR + 1);
    }
    *out = (bulk_end){.at = address,
                      .data = (uint8_t *)(uintptr_t)address,
                      .shadow = t->range->shadow + (address - t->range->begin),
                      .whole = t->range->whole};
    return true;
}

/* A shared source must not be what another operation is about to write. */
static bool check_source(const maker *m, const bulk_end *from, uint32_t bytes)
{
    uint8_t all = 0;

    for (uint32_t n = 0; n < bytes; n++) {
        all |= from->shadow[n];
    }
    if ((all & (ACCESS_PENDING | ACCESS_MBARRIER)) != 0) {
        access_refuse_marked(m->w, m->i, m->lane, from->owner, from->at, bytes);
        return false;
    }
    return true;
}

static bool touch(race_task *t, const bulk_end *e, uint32_t bytes, race_access kind)
{
    return bytes == 0 || race_task_touch(t, e->owner, e->at, bytes, 1, 0, kind);
}

static bool check_written(const async_op *op, const uint8_t *shadow, uint32_t bytes)
{
    const uint8_t *bad = memchr(shadow, ACCESS_UNWRITTEN, bytes);

    if (bad == NULL || !machine_checks(op->by, HONE_EMU_CHECK_UNINITIALISED)) {
        return true;
    }
    machine_fault(op->by, op->i, op->lane, 0, FAULT_UNINITIALISED,
                  "byte %u of the %u that go to global memory was never written",
                  (uint32_t)(bad - shadow), bytes);
    return false;
}

/* A reduction adds to what lies there: garbage, where nobody wrote. */
static bool check_reduced(const async_op *op, const bulk_end *to, uint32_t bytes)
{
    const uint8_t *bad =
        to->owner != NULL || to->whole ? NULL : memchr(to->shadow, ACCESS_UNWRITTEN, bytes);

    if (bad == NULL || !machine_checks(op->by, HONE_EMU_CHECK_UNINITIALISED)) {
        return true;
    }
    machine_fault(op->by, op->i, op->lane, to->at + (uint64_t)(bad - to->shadow),
                  FAULT_UNINITIALISED,
                  "byte %u of the %u in global memory that are reduced was never written",
                  (uint32_t)(bad - to->shadow), bytes);
    return false;
}

/* From shared memory into `held`. */
static bool fetch(async_op *op)
{
    bulk_copy *c = copy_of(op);

    if (!touch(op->reading, &c->from, c->bytes, RACE_READ)) {
        return false;
    }
    memcpy(c->held, c->from.data, c->bytes);
    memcpy(c->held + c->bytes, c->from.shadow, c->bytes);
    return c->to[0].owner != NULL || check_written(op, c->held + c->bytes, c->bytes);
}

/* An element computed with bytes that nobody wrote counts as unwritten. */
static void reduce(const instruction *i, const bulk_end *to, const uint8_t *data,
                   const uint8_t *shadow, uint32_t bytes)
{
    uint32_t size = i->element_bytes;

    for (uint32_t n = 0; n < bytes; n += size) {
        uint64_t old = 0, value = 0;
        memcpy(&old, to->data + n, size);
        memcpy(&value, data + n, size);
        old = exec_combine(i, old, value);
        memcpy(to->data + n, &old, size);
        if (!access_written(shadow + n, size)) {
            access_mark(to->shadow + n, size, false);
        }
    }
}

static void copy_masked(const bulk_copy *c, const bulk_end *to, const uint8_t *data,
                        const uint8_t *shadow)
{
    for (uint32_t n = 0; n < c->bytes; n++) {
        if (c->byte_mask >> n % 16 & 1) {
            to->data[n] = data[n];
            to->shadow[n] = shadow[n];
        }
    }
}

static void copy_shadow(const bulk_copy *c, const bulk_end *to, const uint8_t *shadow)
{
    if (c->from.whole) {
        memset(to->shadow, ACCESS_IS_WRITTEN, c->bytes);
    } else if (!to->whole) {
        memcpy(to->shadow, shadow, c->bytes);
    }
}

static bool perform(async_op *op)
{
    bulk_copy *c = copy_of(op);
    const uint8_t *data = op->fetched ? c->held : c->from.data;
    const uint8_t *shadow = op->fetched ? c->held + c->bytes : c->from.shadow;

    if (!op->fetched && !touch(op->task, &c->from, c->bytes, RACE_READ)) {
        return false;
    }
    for (uint32_t n = 0; n < c->to_len; n++) {
        const bulk_end *to = &c->to[n];
        if (!touch(op->task, to, c->bytes, c->reduces ? RACE_ATOMIC : RACE_WRITE)) {
            return false;
        }
        if (c->reduces) {
            if (!check_reduced(op, to, c->bytes)) {
                return false;
            }
            reduce(op->i, to, data, shadow, c->bytes);
        } else if (c->masked) {
            copy_masked(c, to, data, shadow);
        } else {
            memcpy(to->data, data, c->bytes);
            copy_shadow(c, to, shadow);
        }
    }
    return true;
}

/* Where the bytes go, for one CTA: marked, and its mbarrier to be told. A reduction does not mark:
 * others may add to the same words. */
static bool add_target(const maker *m, async_op *op, cta *owner, uint32_t at, uint32_t mbarrier_at)
{
    bulk_copy *c = copy_of(op);

    m->w->run->counters.tma_load_bytes += m->i->offset & BULK_FROM_GLOBAL ? c->bytes : 0;
    if (!c->reduces && !async_claim(op, owner, at, c->bytes)) {
        return false;
    }
    if (mbarrier_find(m->w, m->i, m->lane, owner, mbarrier_at) == NULL) {
        return false;
    }
    c->to[c->to_len++] = (bulk_end){
        .owner = owner, .at = at, .data = owner->shared + at, .shadow = owner->shared_shadow + at};
    async_signal_add(op, owner, mbarrier_at, c->bytes);
    return true;
}

/* .multicast::cluster: the same offsets in each CTA of the mask. */
static bool add_targets(const maker *m, async_op *op, uint32_t mask, uint32_t at,
                        uint32_t mbarrier_at)
{
    cluster *together = m->w->cta->cluster;

    if (mask == 0 || mask >> together->ctas_len != 0) {
        machine_fault(m->w, m->i, m->lane, 0, FAULT_PRECONDITION,
                      "multicast to CTAs %#x of a cluster of %u", mask, together->ctas_len);
        return false;
    }
    for (EACH_LANE(rank, mask)) {
        if (!add_target(m, op, &together->ctas[rank], at, mbarrier_at)) {
            return false;
        }
    }
    return true;
}

/* The destination in shared memory at `address`, its mbarrier in the operand `source`. */
static bool open_target(const maker *m, async_op *op, uint32_t address, uint32_t mbarrier_source)
{
    bulk_copy *c = copy_of(op);
    uint32_t mbarrier_address = value32(m, mbarrier_source);
    bulk_end to, signal;

    if (!open_shared(m, address, c->bytes, &to) ||
        !check_aligned(m, mbarrier_address, MBARRIER_BYTES, "mbarrier's address") ||
        !open_shared(m, mbarrier_address, MBARRIER_BYTES, &signal)) {
        return false;
    }
    if (m->i->offset & BULK_MULTICAST) {
        return add_targets(m, op, value32(m, mbarrier_source + 1) & 0xffff, (uint32_t)to.at,
                           (uint32_t)signal.at);
    }
    if (to.owner != signal.owner) {
        machine_fault(m->w, m->i, m->lane, to.at, FAULT_PRECONDITION,
                      "the destination lies in CTA %u of the cluster, its mbarrier in CTA %u",
                      to.owner->rank, signal.owner->rank);
        return false;
    }
    return add_target(m, op, to.owner, (uint32_t)to.at, (uint32_t)signal.at);
}

static bool open_source(const maker *m, async_op *op)
{
    bulk_copy *c = copy_of(op);

    if (m->i->offset & BULK_FROM_GLOBAL) {
        uint64_t address = machine_r64(m->w, m->i->o[1])[m->lane];
        return check_aligned(m, address, 16, "source address") &&
               open_global(m, address, c->bytes, &c->from);
    }
    async_fetches(op, fetch);
    return check_aligned(m, value32(m, 1), 16, "source address") &&
           open_shared(m, value32(m, 1), c->bytes, &c->from) && check_source(m, &c->from, c->bytes);
}

static bool open_destination(const maker *m, async_op *op)
{
    bulk_copy *c = copy_of(op);

    if ((m->i->offset & BULK_TO_GLOBAL) == 0) {
        return check_aligned(m, value32(m, 0), 16, "destination address") &&
               open_target(m, op, value32(m, 0), 3);
    }
    uint64_t address = machine_r64(m->w, m->i->o[0])[m->lane];
    m->w->run->counters.tma_store_bytes += c->bytes;
    c->masked = (m->i->offset & BULK_MASKED) != 0;
    c->byte_mask = c->masked ? (uint16_t)value32(m, 3) : 0;
    c->to_len = 1;
    return check_aligned(m, address, 16, "destination address") &&
           open_global(m, address, c->bytes, &c->to[0]);
}

static void start_copy(const maker *m)
{
    uint32_t bytes = value32(m, 2);

    if (bytes % 16 != 0) {
        machine_fault(m->w, m->i, m->lane, 0, FAULT_PRECONDITION,
                      "a copy of %u bytes; the size is a multiple of 16", bytes);
        return;
    }
    if (bytes > MBARRIER_LIMIT) { /* nothing shared is as large */
        machine_fault(m->w, m->i, m->lane, 0, FAULT_OUT_OF_BOUNDS,
                      "a copy of %u bytes; no shared memory is as large", bytes);
        return;
    }
    uint64_t held = m->i->offset & BULK_FROM_GLOBAL ? 0 : UINT64_C(2) * bytes;
    async_op *op = async_new(m->w, m->i, m->lane, sizeof(bulk_copy) + held);
    if (op == NULL) {
        return;
    }
    op->perform = perform;
    op->grouped = (m->i->offset & BULK_GROUP) != 0;
    copy_of(op)->bytes = bytes;
    copy_of(op)->reduces = (m->i->offset & BULK_REDUCES) != 0;
    m->w->run->counters.tma_requests++;
    if (!open_source(m, op) || !open_destination(m, op) || bytes == 0) {
        async_drop(op); /* a fault, or nothing to wait for */
        return;
    }
    async_submit(op);
}

static bool refuse_poison(warp *w, const instruction *i, uint32_t sources, uint32_t mask)
{
    for (uint32_t s = 0; s < sources; s++) {
        if (taint_refuse(w, i, i->o[s], mask, "an operand of the copy")) {
            return true;
        }
    }
    return false;
}

void exec_bulk_copy(warp *w, const instruction *i, uint32_t mask)
{
    if (refuse_poison(w, i, i->sources, mask)) {
        return;
    }
    while (mask != 0) {
        uint32_t lane = machine_lowest(mask);
        start_copy(&(maker){w, i, lane});
        mask &= ~machine_alike(w, i, lane, mask);
    }
}

/* Bounds and alignment; nothing here is cached. */
void exec_bulk_prefetch(warp *w, const instruction *i, uint32_t mask)
{
    bulk_end from;

    if (refuse_poison(w, i, i->sources, mask)) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        maker m = {w, i, lane};
        uint64_t address = machine_r64(w, i->o[0])[lane];
        uint32_t bytes = value32(&m, 1);
        if (!check_aligned(&m, address, 16, "source address") ||
            !check_aligned(&m, bytes, 16, "size") || !open_global(&m, address, bytes, &from)) {
            return;
        }
    }
}

static void hold_values(const maker *m, bulk_copy *c)
{
    uint32_t size = m->i->element_bytes;

    for (uint32_t at = 0, e = 0; at < c->bytes; at += size, e++) {
        uint32_t operand = m->i->o[2 + e];
        const uint8_t *value = m->w->r + operand + (size == 8 ? 8 : 4) * m->lane;
        bool poison = m->w->tainted && (*machine_poison(m->w, operand) >> m->lane & 1) != 0;
        memcpy(c->held + at, value, size);
        memset(c->held + c->bytes + at, !poison, size);
    }
}

static void start_store(const maker *m, uint32_t bytes)
{
    async_op *op = async_new(m->w, m->i, m->lane, sizeof(bulk_copy) + UINT64_C(2) * bytes);

    if (op == NULL) {
        return;
    }
    op->perform = perform;
    op->fetched = true;
    copy_of(op)->bytes = bytes;
    copy_of(op)->reduces = (m->i->offset & BULK_REDUCES) != 0;
    hold_values(m, copy_of(op));
    if (!check_aligned(m, value32(m, 0), bytes, "destination address") ||
        !open_target(m, op, value32(m, 0), 1)) {
        async_drop(op);
        return;
    }
    async_submit(op);
}

/* st.async, red.async: [address], [mbarrier], values. */
void exec_async_store(warp *w, const instruction *i, uint32_t mask)
{
    if (refuse_poison(w, i, 2, mask)) {
        return;
    }
    for (EACH_LANE(lane, mask)) {
        start_store(&(maker){w, i, lane}, (uint32_t)i->element_bytes * (i->sources - 2u));
    }
}

void exec_bulk_commit(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    async_commit(w, mask);
}

void exec_bulk_wait(warp *w, const instruction *i, uint32_t mask)
{
    async_wait(w, mask, (uint32_t)i->offset, i->kind == BULK_WAIT_READS);
}

void exec_fence_proxy(warp *w, const instruction *i, uint32_t mask)
{
    ptx_space space = (ptx_space)i->kind; /* generic: the form names none */

    (void)mask;
    race_fence_proxy(w, space != PTX_GLOBAL, space != PTX_SHARED);
}

void exec_fence_init(warp *w, const instruction *i, uint32_t mask)
{
    (void)i;
    (void)mask;
    race_fence_init(w);
}
