/* memory.c - ld and st in every space: one path, over windows of host memory. */
#include "emulator/machine/access.h"
#include "emulator/exec/exec.h"
#include "emulator/machine/wide.h"

#include <string.h>

static uint32_t extend(uint32_t value, uint32_t bytes, bool is_signed)
{
    if (bytes == 1) {
        return is_signed ? (uint32_t)(int8_t)value : value & 0xff;
    }
    return is_signed ? (uint32_t)(int16_t)value : value & 0xffff;
}

static void load_small(const instruction *i, const uint8_t *from, uint32_t *to)
{
    uint32_t value = 0;
    memcpy(&value, from, i->element_bytes);
    *to = extend(value, i->element_bytes, i->flags & FLAG_SIGNED);
}

/* What a few lanes hold: a register's, or the elements of one of them. */
typedef uint32_t four __attribute__((vector_size(16)));
#define TURN(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* Four words of each of four lanes to four lanes of each of four words, and back. */
static inline void turn(four x[4])
{
    four low01 = TURN(x[0], x[1], 0, 4, 1, 5), high01 = TURN(x[0], x[1], 2, 6, 3, 7);
    four low23 = TURN(x[2], x[3], 0, 4, 1, 5), high23 = TURN(x[2], x[3], 2, 6, 3, 7);

    x[0] = TURN(low01, low23, 0, 1, 4, 5);
    x[1] = TURN(low01, low23, 2, 3, 6, 7);
    x[2] = TURN(high01, high23, 0, 1, 4, 5);
    x[3] = TURN(high01, high23, 2, 3, 6, 7);
}

/* Vectors of two or four words, of all lanes. `elements` is a constant where these are inlined:
 * what a few lanes hold stays in registers. */
static inline __attribute__((always_inline)) void gather_vectors(uint8_t *r, const uint32_t *to,
                                                                 const uint8_t *data,
                                                                 const uint64_t *at,
                                                                 uint32_t elements)
{
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane += 4) {
        four x[4] = {{0}};
        for (uint32_t n = 0; n < 4; n++) {
            memcpy(&x[n], data + at[lane + n], elements * 4);
        }
        turn(x);
        for (uint32_t e = 0; e < elements; e++) {
            memcpy(r + to[e] + lane * 4, &x[e], sizeof x[e]);
        }
    }
}

static inline __attribute__((always_inline)) void scatter_vectors(const uint8_t *r,
                                                                  const uint32_t *from,
                                                                  uint8_t *data, const uint64_t *at,
                                                                  uint32_t elements)
{
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane += 4) {
        four x[4] = {{0}};
        for (uint32_t e = 0; e < elements; e++) {
            memcpy(&x[e], r + from[e] + lane * 4, sizeof x[e]);
        }
        turn(x);
        for (uint32_t n = 0; n < 4; n++) {
            memcpy(data + at[lane + n], &x[n], elements * 4);
        }
    }
}

MACHINE_WIDEST static void load_vectors(uint8_t *r, const uint32_t *to, const uint8_t *data,
                                        const uint64_t *at, uint32_t elements)
{
    if (elements == 4) {
        gather_vectors(r, to, data, at, 4);
    } else {
        gather_vectors(r, to, data, at, 2);
    }
}

MACHINE_WIDEST static void store_vectors(const uint8_t *r, const uint32_t *from, uint8_t *data,
                                         const uint64_t *at, uint32_t elements)
{
    if (elements == 4) {
        scatter_vectors(r, from, data, at, 4);
    } else {
        scatter_vectors(r, from, data, at, 2);
    }
}

/* What the lanes are about to touch, so that memory is on its way while they are looked at. */
static void fetch_ahead(const access_window *win, ptx_space space, uint32_t mask)
{
    if (space != PTX_GLOBAL || mask != MACHINE_ALL) {
        return;
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane += win->stride <= 16 ? 4 : 1) {
        __builtin_prefetch(win->data + win->at[lane]);
    }
}

static bool are_vectors(const instruction *i, uint32_t mask)
{
    return mask == MACHINE_ALL && i->element_bytes == 4 && (i->elements == 2 || i->elements == 4);
}

/* 32 elements of 4 or 8 bytes. */
static inline void copy_dense(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (bytes == 4) {
        memcpy(to, from, MACHINE_LANES * 4);
    } else {
        memcpy(to, from, MACHINE_LANES * 8);
    }
}

/* All lanes read the same place. */
static void load_same(warp *w, const instruction *i, const uint8_t *from)
{
    for (uint32_t e = 0; e < i->elements; e++, from += i->element_bytes) {
        uint32_t *r = machine_r32(w, i->o[e]), narrow = 0;
        uint64_t *r64 = machine_r64(w, i->o[e]), wide = 0;
        if (i->element_bytes == 8) {
            memcpy(&wide, from, sizeof wide);
        } else if (i->element_bytes == 4) {
            memcpy(&narrow, from, sizeof narrow);
        } else {
            load_small(i, from, &narrow);
        }
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            if (i->element_bytes == 8) {
                r64[lane] = wide;
            } else {
                r[lane] = narrow;
            }
        }
    }
}

static void load_elements(warp *w, const instruction *i, uint32_t mask, const access_window *win)
{
    if (win->dense && i->elements == 1 && i->element_bytes >= 4) {
        copy_dense(w->r + i->o[0], win->data + win->at[0], i->element_bytes);
        return;
    }
    if (win->stride == 0 && mask == MACHINE_ALL) {
        load_same(w, i, win->data + win->at[0]);
        return;
    }
    if (are_vectors(i, mask)) {
        load_vectors(w->r, i->o, win->data, win->at, i->elements);
        return;
    }
    for (uint32_t e = 0; e < i->elements; e++) {
        uint8_t *r = w->r + i->o[e];
        const uint8_t *from = win->data + e * i->element_bytes;
        if (i->element_bytes == 4 && mask == MACHINE_ALL) {
            for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
                memcpy(r + lane * 4, from + win->at[lane], 4);
            }
            continue;
        }
        for (EACH_LANE(lane, mask)) {
            if (i->element_bytes == 4) {
                memcpy(r + lane * 4, from + win->at[lane], 4);
            } else if (i->element_bytes == 8) {
                memcpy(r + lane * 8, from + win->at[lane], 8);
            } else {
                load_small(i, from + win->at[lane], (uint32_t *)(void *)r + lane);
            }
        }
    }
}

/* Every lane's bytes were written. */
static bool all_written(uint32_t mask, uint32_t size, const access_window *win)
{
    if (win->shadow == NULL || win->whole) {
        return true;
    }
    if (win->dense) {
        return memchr(win->shadow + win->at[0], 0, (size_t)MACHINE_LANES * size) == NULL;
    }
    return (access_look(win, access_distinct(win, mask), size).all & ACCESS_WRITTEN) ==
           ACCESS_WRITTEN;
}

static void load_poison(warp *w, const instruction *i, uint32_t mask, const access_window *win)
{
    uint32_t bytes = i->element_bytes, size = bytes * i->elements;

    if (all_written(mask, size, win)) {
        for (uint32_t e = 0; w->tainted && e < i->elements; e++) {
            taint_set(w, i->o[e], 0, mask);
        }
        return;
    }
    for (uint32_t e = 0; e < i->elements; e++) {
        uint32_t bad = 0;
        for (EACH_LANE(lane, mask)) {
            bad |= (uint32_t)!access_written(win->shadow + win->at[lane] + e * bytes, bytes)
                   << lane;
        }
        w->tainted |= bad != 0;
        if (w->tainted) {
            taint_set(w, i->o[e], bad, mask);
        }
    }
}

static void count_access(warp *w, const instruction *i, const uint64_t address[MACHINE_LANES],
                         const access_window *win, uint32_t lanes, ptx_space space)
{
    uint32_t size = (uint32_t)i->element_bytes * i->elements;
    bool is_store = i->results == 0;

    if (i->space == PTX_CONST) { /* a cache of its own serves them */
        w->run->counters.constant_requests++;
    } else if (space == PTX_GLOBAL) {
        access_count_global(w, i, address, lanes, size, is_store);
    } else if (space == PTX_SHARED) {
        access_count_shared(w, win, lanes, size, !is_store);
        w->run->counters.shared_store_requests += is_store;
    } else if (space == PTX_LOCAL) {
        w->run->counters.local_requests++;
        w->run->counters.local_bytes += (uint64_t)__builtin_popcount(lanes) * size;
    }
}

void exec_load(warp *w, const instruction *i, uint32_t mask)
{
    uint64_t address[MACHINE_LANES];
    uint32_t size = (uint32_t)i->element_bytes * i->elements, left = mask;
    access_window win;
    ptx_space space = PTX_GLOBAL;

    if (!access_addresses(w, i, i->o[i->results], mask, size, address)) {
        return;
    }
    while (left != 0) {
        uint32_t lanes = access_open(w, i, address, left, size, &space, &win);
        if (lanes == 0) {
            return;
        }
        win.dense = win.dense && lanes == mask;
        fetch_ahead(&win, space, lanes);
        if (!access_unmarked(w, i, lanes, size, &win) ||
            !access_ordered(w, i, lanes, size, space, &win, address, RACE_READ)) {
            return;
        }
        count_access(w, i, address, &win, lanes, space);
        /* the address may share a register with a result: it was read above */
        load_elements(w, i, lanes, &win);
        if (machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) {
            load_poison(w, i, lanes, &win);
        }
        left &= ~lanes;
    }
}

static void store_elements(const warp *w, const instruction *i, uint32_t mask,
                           const access_window *win)
{
    const uint32_t *values = i->o + i->results + 1;

    if (win->dense && i->elements == 1 && i->element_bytes >= 4) {
        copy_dense(win->data + win->at[0], w->r + values[0], i->element_bytes);
        return;
    }
    if (are_vectors(i, mask)) {
        store_vectors(w->r, values, win->data, win->at, i->elements);
        return;
    }
    for (uint32_t e = 0; e < i->elements; e++) {
        const uint8_t *r = w->r + values[e];
        uint8_t *to = win->data + e * i->element_bytes;
        for (EACH_LANE(lane, mask)) {
            uint32_t stride = i->element_bytes == 8 ? 8 : 4;
            access_copy(to + win->at[lane], r + lane * stride, i->element_bytes);
        }
    }
}

static void store_shadow(const warp *w, const instruction *i, uint32_t mask,
                         const access_window *win)
{
    uint32_t size = (uint32_t)i->element_bytes * i->elements;

    if (win->whole && !w->tainted) {
        return;
    }
    if (win->dense && !w->tainted) {
        memset(win->shadow + win->at[0], 1, (size_t)MACHINE_LANES * size);
        return;
    }
    for (EACH_LANE(lane, mask)) {
        access_mark(win->shadow + win->at[lane], size, true);
    }
    for (uint32_t e = 0; w->tainted && e < i->elements; e++) {
        uint32_t poison = *machine_poison(w, i->o[i->results + 1u + e]) & mask;
        for (EACH_LANE(bad, poison)) {
            access_mark(win->shadow + win->at[bad] + e * i->element_bytes, i->element_bytes, false);
        }
    }
}

static bool store_allowed(warp *w, const instruction *i, uint32_t mask, ptx_space space,
                          const access_window *win, const uint64_t address[MACHINE_LANES])
{
    uint32_t lane = machine_lowest(mask);

    if (win->range != NULL && !global_writable(w, i, lane, address[lane], win->range)) {
        return false;
    }
    if (space == PTX_PARAM) {
        machine_fault(w, i, lane, 0, FAULT_OUT_OF_BOUNDS, "a store into the kernel's parameters");
        return false;
    }
    for (uint32_t e = 0; space == PTX_GLOBAL && e < i->elements; e++) {
        if (taint_refuse(w, i, i->o[i->results + 1u + e], mask, "the value stored")) {
            return false;
        }
    }
    return true;
}

void exec_store(warp *w, const instruction *i, uint32_t mask)
{
    uint64_t address[MACHINE_LANES];
    uint32_t size = (uint32_t)i->element_bytes * i->elements, left = mask;
    access_window win;
    ptx_space space = PTX_GLOBAL;

    if (!access_addresses(w, i, i->o[i->results], mask, size, address)) {
        return;
    }
    while (left != 0) {
        uint32_t lanes = access_open(w, i, address, left, size, &space, &win);
        if (lanes == 0 || !store_allowed(w, i, lanes, space, &win, address)) {
            return;
        }
        win.dense = win.dense && lanes == mask;
        fetch_ahead(&win, space, lanes);
        if (!access_unmarked(w, i, lanes, size, &win) ||
            !access_ordered(w, i, lanes, size, space, &win, address, RACE_WRITE)) {
            return;
        }
        count_access(w, i, address, &win, lanes, space);
        store_elements(w, i, lanes, &win);
        store_shadow(w, i, lanes, &win);
        if (win.owner != NULL && win.owner != w->cta) {
            w->cta->cluster->changes++;
        }
        left &= ~lanes;
    }
}

void exec_load_param(warp *w, const instruction *i, uint32_t mask)
{
    const uint8_t *from = w->run->launch->params + i->offset;

    for (uint32_t e = 0; e < i->elements; e++) {
        const uint8_t *at = from + e * i->element_bytes;
        uint64_t wide = 0;
        uint32_t value = 0;
        memcpy(&wide, at, i->element_bytes);
        value = i->element_bytes < 4
                    ? extend((uint32_t)wide, i->element_bytes, i->flags & FLAG_SIGNED)
                    : (uint32_t)wide;
        for (EACH_LANE(lane, mask)) {
            if (i->element_bytes == 8) {
                machine_r64(w, i->o[e])[lane] = wide;
            } else {
                machine_r32(w, i->o[e])[lane] = value;
            }
        }
        if (w->tainted) {
            taint_set(w, i->o[e], 0, mask);
        }
    }
}
