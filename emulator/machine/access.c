/* access.c - addresses of a warp's access: alignment, bounds, spaces, marks. */
#include "emulator/machine/access.h"
#include "emulator/machine/wide.h"

#include <string.h>

/* Addresses of all lanes. Returned are the bits that those of `mask` have, ored. */
MACHINE_WIDEST static uint64_t read_narrow(const uint32_t *r, uint32_t offset, uint32_t mask,
                                           uint64_t address[MACHINE_LANES])
{
    uint64_t all = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint64_t a = r[lane] + offset;
        address[lane] = a;
        all |= mask >> lane & 1 ? a : 0;
    }
    return all;
}

MACHINE_WIDEST static uint64_t read_wide(const uint64_t *r, uint64_t offset, uint64_t keep,
                                         uint32_t mask, uint64_t address[MACHINE_LANES])
{
    uint64_t all = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint64_t a = (r[lane] + offset) & keep;
        address[lane] = a;
        all |= mask >> lane & 1 ? a : 0;
    }
    return all;
}

static uint64_t read_addresses(const warp *w, const instruction *i, uint32_t operand, uint32_t mask,
                               uint64_t address[MACHINE_LANES])
{
    bool narrow = i->space == PTX_SHARED || i->space == PTX_LOCAL;

    return i->flags & FLAG_ADDRESS64
               ? read_wide(machine_r64(w, operand), (uint64_t)i->offset,
                           narrow ? UINT32_MAX : UINT64_MAX, mask, address)
               : read_narrow(machine_r32(w, operand), (uint32_t)i->offset, mask, address);
}

bool access_addresses(warp *w, const instruction *i, uint32_t operand, uint32_t mask,
                      uint32_t bytes, uint64_t address[MACHINE_LANES])
{
    if (taint_refuse(w, i, operand, mask, "the address")) {
        return false;
    }
    uint64_t all = read_addresses(w, i, operand, mask, address);
    if ((all & (bytes - 1)) == 0) {
        return true;
    }
    for (EACH_LANE(lane, mask)) {
        if ((address[lane] & (bytes - 1)) != 0) {
            machine_fault(w, i, lane, address[lane], FAULT_MISALIGNED,
                          "address %#llx of an access of %u bytes is not a multiple of %u",
                          (unsigned long long)address[lane], bytes, bytes);
            break;
        }
    }
    return false;
}

MACHINE_WIDEST static uint64_t strays(const uint64_t address[MACHINE_LANES], uint64_t stride)
{
    uint64_t wrong = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        wrong |= address[lane] ^ (address[0] + lane * stride);
    }
    return wrong;
}

uint64_t access_stride(const uint64_t address[MACHINE_LANES], uint32_t mask)
{
    uint64_t stride = address[1] - address[0];

    return mask == MACHINE_ALL && address[31] == address[0] + 31 * stride &&
                   strays(address, stride) == 0
               ? stride
               : ACCESS_NO_STRIDE;
}

/* Offsets from `begin` of the lanes of `mask`; the others get that of `inside`. Returns the
 * largest.
 */
MACHINE_WIDEST static uint64_t subtract(const uint64_t address[MACHINE_LANES], uint32_t mask,
                                        uint64_t inside, uint64_t begin, uint64_t at[MACHINE_LANES])
{
    uint64_t worst = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint64_t a = (mask >> lane & 1 ? address[lane] : inside) - begin;
        at[lane] = a;
        worst = a > worst ? a : worst; /* before the beginning is far behind the end */
    }
    return worst;
}

/* Offsets in a range; true when all lanes of `mask` lie in it. */
static bool fill_offsets(const memory_range *r, const uint64_t address[MACHINE_LANES],
                         uint32_t mask, uint32_t bytes, uint64_t at[MACHINE_LANES])
{
    uint64_t worst = subtract(address, mask, address[machine_lowest(mask)], r->begin, at);

    return bytes <= r->end - r->begin && worst <= r->end - r->begin - bytes;
}

const memory_range *access_last_range(const warp *w, const instruction *i,
                                      const uint64_t address[MACHINE_LANES], uint32_t mask,
                                      uint32_t bytes, uint64_t at[MACHINE_LANES])
{
    const run_state *run = w->run;
    uint32_t hit = run->hit[i - run->kernel->code];
    const memory_range *r = hit != 0 ? run->touched[hit - 1].range : NULL;

    return r != NULL && !r->freed && fill_offsets(r, address, mask, bytes, at) ? r : NULL;
}

static uint32_t open_global(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                            uint32_t mask, uint32_t bytes, access_window *out)
{
    uint64_t low = UINT64_MAX, high = 0;
    uint32_t lanes = mask, first = machine_lowest(mask);
    const memory_range *r = access_last_range(w, i, address, mask, bytes, out->at);

    if (r != NULL) {
        out->data = (uint8_t *)(uintptr_t)r->begin;
        out->shadow = r->shadow;
        out->whole = r->whole;
        out->range = r;
        return mask;
    }
    for (EACH_LANE(lane, mask)) {
        low = address[lane] < low ? address[lane] : low;
        high = address[lane] > high ? address[lane] : high;
    }
    touched_range *t = global_range(w, i, MACHINE_NONE, low, high - low + bytes);
    if (t == NULL) { /* not all in one: take the first lane alone */
        lanes = UINT32_C(1) << first;
        t = global_range(w, i, first, address[first], bytes);
    }
    if (t == NULL) {
        return 0;
    }
    out->data = (uint8_t *)(uintptr_t)t->range->begin;
    out->shadow = t->range->shadow;
    out->whole = t->range->whole;
    out->range = t->range;
    fill_offsets(t->range, address, lanes, bytes, out->at);
    return lanes;
}

static void out_of_bounds(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                          uint32_t bytes, const char *what, uint64_t limit)
{
    machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                  "%u bytes at offset %llu of %s memory; it has %llu bytes", bytes,
                  (unsigned long long)(address & UINT32_MAX), what, (unsigned long long)limit);
}

/* A lane's local memory follows the one before it: like addresses are different places. */
static uint32_t open_local(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                           uint32_t mask, uint32_t bytes, access_window *out)
{
    uint64_t limit = w->run->kernel->local_bytes;

    out->data = w->local;
    out->shadow = w->local_shadow;
    out->dense = false;
    out->stride = ACCESS_NO_STRIDE;
    for (EACH_LANE(lane, mask)) {
        uint64_t a = address[lane] & UINT32_MAX;
        out->at[lane] = a + lane * limit;
        if (a + bytes > limit) {
            out_of_bounds(w, i, lane, address[lane], bytes, "local", limit);
            return 0;
        }
    }
    return mask;
}

/* The CTA whose shared memory an address of the cluster names; NULL after a fault. */
static cta *owner_of(warp *w, const instruction *i, uint32_t lane, uint64_t address, uint32_t bytes)
{
    const cluster *c = w->cta->cluster;
    uint32_t rank = (uint32_t)address / ACCESS_CTA - 1, at = (uint32_t)address % ACCESS_CTA;

    if ((uint32_t)address < ACCESS_CTA || rank == w->cta->rank) {
        return w->cta;
    }
    if (rank >= c->ctas_len) {
        machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                      "%u bytes at %#x of shared memory: it lies in no CTA of the cluster", bytes,
                      (uint32_t)address);
        return NULL;
    }
    if (i->flags & FLAG_OWN_CTA) {
        machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                      "%u bytes at offset %u of the shared memory of CTA rank %u; the access is "
                      "one of shared::cta, of CTA rank %u",
                      bytes, at, rank, w->cta->rank);
        return NULL;
    }
    if (c->ctas[rank].done_len == c->ctas[rank].warps_len) {
        machine_fault(w, i, lane, address, FAULT_USE_AFTER_FREE,
                      "%u bytes at offset %u of the shared memory of CTA rank %u, which has exited",
                      bytes, at, rank);
        return NULL;
    }
    return &c->ctas[rank];
}

/* Lanes whose addresses name other CTAs of the cluster: those of one at a time. */
static uint32_t open_cluster(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                             uint32_t mask, uint32_t bytes, access_window *out)
{
    uint32_t first = machine_lowest(mask), lanes = 0;
    cta *owner = owner_of(w, i, first, address[first], bytes);

    if (owner == NULL) {
        return 0;
    }
    out->owner = owner;
    out->data = owner->shared;
    out->shadow = owner->shared_shadow;
    for (EACH_LANE(lane, mask)) {
        uint32_t a = (uint32_t)address[lane], at = a % ACCESS_CTA;
        bool same = a / ACCESS_CTA == (uint32_t)address[first] / ACCESS_CTA;
        if (same && (uint64_t)at + bytes > owner->shared_bytes) {
            out_of_bounds(w, i, lane, at, bytes, "shared", owner->shared_bytes);
            return 0;
        }
        out->at[lane] = at;
        lanes |= (uint32_t)same << lane;
    }
    return lanes;
}

/* Offsets in shared memory; the largest of the lanes of `mask`. */
MACHINE_WIDEST static uint64_t truncate(const uint64_t address[MACHINE_LANES], uint32_t mask,
                                        uint64_t at[MACHINE_LANES])
{
    uint64_t worst = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint64_t a = address[lane] & UINT32_MAX, counted = mask >> lane & 1 ? a : 0;
        at[lane] = a;
        worst = counted > worst ? counted : worst;
    }
    return worst;
}

static uint32_t open_shared(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                            uint32_t mask, uint32_t bytes, access_window *out)
{
    uint64_t worst = address[0] > address[31] ? address[0] : address[31];

    out->data = w->cta->shared;
    out->shadow = w->cta->shared_shadow;
    if (out->stride != ACCESS_NO_STRIDE && i->space == PTX_SHARED) { /* 32 bits already */
        memcpy(out->at, address, sizeof out->at);
    } else {
        worst = truncate(address, mask, out->at);
    }
    return worst + bytes <= w->cta->shared_bytes ? mask
                                                 : open_cluster(w, i, address, mask, bytes, out);
}

static uint32_t open_params(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                            uint32_t mask, uint32_t bytes, access_window *out)
{
    out->data = (uint8_t *)(uintptr_t)w->run->launch->params; /* only ever read */
    out->shadow = NULL;
    for (EACH_LANE(lane, mask)) {
        out->at[lane] = address[lane] & UINT32_MAX;
        if (out->at[lane] + bytes > w->run->kernel->params_bytes) {
            machine_fault(w, i, lane, address[lane], FAULT_OUT_OF_BOUNDS,
                          "%u bytes at offset %llu of the parameters; they have %u bytes", bytes,
                          (unsigned long long)out->at[lane], w->run->kernel->params_bytes);
            return 0;
        }
    }
    return mask;
}

uint32_t access_open(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                     uint32_t mask, uint32_t bytes, ptx_space *space, access_window *out)
{
    ptx_space in = (ptx_space)i->space;
    uint32_t lanes = mask;

    if (in == PTX_GENERIC) {
        uint64_t top = address[machine_lowest(mask)] >> 56;
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            lanes &= ~((uint32_t)(address[lane] >> 56 != top) << lane);
        }
        in =
            top == PTX_SHARED || top == PTX_LOCAL || top == PTX_PARAM ? (ptx_space)top : PTX_GLOBAL;
    } else if (in == PTX_CONST ||
               (in == PTX_GLOBAL && address[machine_lowest(mask)] >> 56 == PTX_PARAM)) {
        in = in == PTX_CONST ? PTX_GLOBAL : PTX_PARAM;
    }
    out->stride = access_stride(address, lanes);
    out->dense = out->stride == bytes;
    out->owner = in == PTX_SHARED ? w->cta : NULL;
    out->whole = false;
    out->range = NULL;
    *space = in;
    switch (in) {
    case PTX_SHARED:
        return open_shared(w, i, address, lanes, bytes, out);
    case PTX_LOCAL:
        return open_local(w, i, address, lanes, bytes, out);
    case PTX_PARAM:
        return open_params(w, i, address, lanes, bytes, out);
    case PTX_GENERIC:
    case PTX_GLOBAL:
    case PTX_CONST:
        break;
    }
    return open_global(w, i, address, lanes, bytes, out);
}

void access_refuse_marked(warp *w, const instruction *i, uint32_t lane, const cta *owner,
                          uint64_t at, uint32_t bytes)
{
    const uint8_t *shadow = owner->shared_shadow + at;
    uint32_t n = 0;

    while (n < bytes && (shadow[n] & (ACCESS_PENDING | ACCESS_MBARRIER)) == 0) {
        n++;
    }
    if (n < bytes && (shadow[n] & ACCESS_MBARRIER) != 0) {
        machine_fault(w, i, lane, at, FAULT_MBARRIER,
                      "%u bytes at offset %llu of shared memory: an mbarrier lives at %llu", bytes,
                      (unsigned long long)at, (unsigned long long)((at + n) & ~UINT64_C(7)));
    } else {
        machine_fault(w, i, lane, at, FAULT_ASYNC,
                      "%u bytes at offset %llu of shared memory: a copy that will write byte %llu "
                      "is still in flight",
                      bytes, (unsigned long long)at, (unsigned long long)(at + n));
    }
}

/* Sizes are told apart so that each is a load or two and not a loop. */
access_shadow access_look(const access_window *win, uint32_t mask, uint32_t bytes)
{
    access_shadow s = {UINT64_MAX, 0};
    uint64_t word = 0;

    for (EACH_LANE(lane, bytes < 4 ? mask : 0)) {
        const uint8_t *shadow = win->shadow + win->at[lane];
        s.all &= (uint64_t)(shadow[0] & shadow[bytes - 1]) * ACCESS_WRITTEN;
        s.any |= shadow[0] | shadow[bytes - 1];
    }
    for (EACH_LANE(lane, bytes == 4 ? mask : 0)) {
        memcpy(&word, win->shadow + win->at[lane], 4);
        s.all &= word | word << 32;
        s.any |= word;
    }
    for (uint32_t n = 0; bytes >= 8 && n < bytes; n += 8) {
        for (EACH_LANE(lane, mask)) {
            memcpy(&word, win->shadow + win->at[lane] + n, sizeof word);
            s.all &= word;
            s.any |= word;
        }
    }
    return s;
}

static bool has_marks(const access_window *win, uint32_t mask, uint32_t bytes)
{
    const uint64_t marks = (ACCESS_PENDING | ACCESS_MBARRIER) * ACCESS_WRITTEN;
    uint64_t all = 0, word = 0;

    if (!win->dense || mask != MACHINE_ALL) {
        return (access_look(win, mask, bytes).any & marks) != 0;
    }
    for (uint32_t n = 0; n < bytes * MACHINE_LANES; n += 8) {
        memcpy(&word, win->shadow + win->at[0] + n, sizeof word);
        all |= word;
    }
    return (all & marks) != 0;
}

bool access_unmarked(warp *w, const instruction *i, uint32_t mask, uint32_t bytes,
                     const access_window *win)
{
    if (win->owner == NULL || !win->owner->marked) {
        return true;
    }
    uint32_t lanes = access_distinct(win, mask);
    if (!has_marks(win, lanes, bytes)) {
        return true;
    }
    while (!has_marks(win, lanes & (0 - lanes), bytes)) {
        lanes &= lanes - 1;
    }
    uint32_t lane = machine_lowest(lanes);
    access_refuse_marked(w, i, lane, win->owner, win->at[lane], bytes);
    return false;
}

bool access_shared(warp *w, const instruction *i, uint32_t lane, uint32_t address, uint32_t bytes,
                   cta **owner, uint32_t *at)
{
    cta *found = owner_of(w, i, lane, address, bytes);
    uint32_t offset = address % ACCESS_CTA;

    if (found == NULL) {
        return false;
    }
    if ((uint64_t)offset + bytes > found->shared_bytes) {
        out_of_bounds(w, i, lane, offset, bytes, "shared", found->shared_bytes);
        return false;
    }
    *owner = found;
    *at = offset;
    return true;
}
