/* atomic.c - atom and red: lane after lane, lowest first. */
#include "emulator/machine/access.h"
#include "emulator/exec/exec.h"
#include "emulator/exec/math.h"

#include <string.h>

static exec_atomic_kind atomic_kind(const instruction *i)
{
    return (exec_atomic_kind)(i->kind & 15);
}

static exec_atomic_type atomic_type(const instruction *i)
{
    return (exec_atomic_type)(i->kind >> 4);
}

static uint64_t add_floats(exec_atomic_type type, uint64_t old, uint64_t b)
{
    double x, y;
    uint32_t o = (uint32_t)old, v = (uint32_t)b;

    switch (type) {
    case ATOMIC_F32:
        return math_bits(math_canonical(math_float(o) + math_float(v)));
    case ATOMIC_F64:
        memcpy(&x, &old, sizeof x);
        memcpy(&y, &b, sizeof y);
        return math_bits64(x + y);
    case ATOMIC_F16:
        return math_to_f16(math_odd((double)math_f16(o & 0xffff) + (double)math_f16(v & 0xffff)));
    case ATOMIC_BF16:
        return math_to_bf16(math_odd(
            math_fma_odd((double)math_bf16(o & 0xffff), 1.0, (double)math_bf16(v & 0xffff))));
    case ATOMIC_F16X2:
        return math_pair((uint32_t)add_floats(ATOMIC_F16, old & 0xffff, b & 0xffff),
                         (uint32_t)add_floats(ATOMIC_F16, o >> 16, v >> 16));
    case ATOMIC_BF16X2:
        return math_pair((uint32_t)add_floats(ATOMIC_BF16, old & 0xffff, b & 0xffff),
                         (uint32_t)add_floats(ATOMIC_BF16, o >> 16, v >> 16));
    case ATOMIC_UNSIGNED:
    case ATOMIC_SIGNED:
        break;
    }
    return old + b;
}

static uint64_t extreme_half(exec_atomic_type type, bool max, uint32_t old, uint32_t b)
{
    bool bf = type == ATOMIC_BF16 || type == ATOMIC_BF16X2;
    float x = bf ? math_bf16(old & 0xffff) : math_f16(old & 0xffff);
    float y = bf ? math_bf16(b & 0xffff) : math_f16(b & 0xffff);
    float r = max ? math_max(x, y) : math_min(x, y);

    return bf ? math_to_bf16(r) : math_to_f16(r);
}

static uint64_t extreme(const instruction *i, bool max, uint64_t old, uint64_t b)
{
    exec_atomic_type type = atomic_type(i);
    bool less =
        i->element_bytes == 8
            ? (type == ATOMIC_SIGNED ? (int64_t)b < (int64_t)old : b < old)
            : (type == ATOMIC_SIGNED ? (int32_t)b < (int32_t)old : (uint32_t)b < (uint32_t)old);
    if (type == ATOMIC_F16 || type == ATOMIC_BF16) {
        return extreme_half(type, max, (uint32_t)old, (uint32_t)b);
    }
    if (type == ATOMIC_F16X2 || type == ATOMIC_BF16X2) {
        return extreme_half(type, max, (uint32_t)old, (uint32_t)b) |
               extreme_half(type, max, (uint32_t)old >> 16, (uint32_t)b >> 16) << 16;
    }
    return less != max ? b : old;
}

uint64_t exec_combine(const instruction *i, uint64_t old, uint64_t b)
{
    switch (atomic_kind(i)) {
    case ATOMIC_ADD:
        return add_floats(atomic_type(i), old, b);
    case ATOMIC_MIN:
        return extreme(i, false, old, b);
    case ATOMIC_MAX:
        return extreme(i, true, old, b);
    case ATOMIC_AND:
        return old & b;
    case ATOMIC_OR:
        return old | b;
    case ATOMIC_XOR:
        return old ^ b;
    case ATOMIC_EXCH:
        return b;
    case ATOMIC_CAS: /* one_element */
        break;
    case ATOMIC_INC:
        return (uint32_t)old >= (uint32_t)b ? 0 : old + 1;
    case ATOMIC_DEC:
        return old == 0 || (uint32_t)old > (uint32_t)b ? b : old - 1;
    }
    return old;
}

static uint64_t value_of(const warp *w, const instruction *i, uint32_t operand, uint32_t lane)
{
    if (i->element_bytes == 8) {
        return machine_r64(w, operand)[lane];
    }
    uint32_t v = machine_r32(w, operand)[lane];
    return i->element_bytes == 2 ? v & 0xffff : v;
}

/* One element of one lane; cas of 128 bits compares both of its elements (`equal`). */
static void one_element(warp *w, const instruction *i, uint32_t lane, uint32_t e, uint8_t *at,
                        bool equal)
{
    const uint32_t *s = i->o + i->results;
    uint64_t old = 0, b = value_of(w, i, s[1 + e], lane);

    memcpy(&old, at, i->element_bytes);
    uint64_t value = atomic_kind(i) == ATOMIC_CAS
                         ? (equal ? value_of(w, i, s[1 + i->elements + e], lane) : old)
                         : exec_combine(i, old, b);
    memcpy(at, &value, i->element_bytes);
    if (i->results > 0 && i->element_bytes == 8) {
        machine_r64(w, i->o[e])[lane] = old;
    } else if (i->results > 0) {
        machine_r32(w, i->o[e])[lane] = (uint32_t)old;
    }
}

static bool all_equal(const warp *w, const instruction *i, uint32_t lane, const uint8_t *at)
{
    bool equal = true;

    for (uint32_t e = 0; e < i->elements; e++) {
        uint64_t old = 0;
        memcpy(&old, at + e * i->element_bytes, i->element_bytes);
        equal = equal && old == value_of(w, i, i->o[i->results + 1u + e], lane);
    }
    return equal;
}

static void one_lane(warp *w, const instruction *i, uint32_t lane, const access_window *win)
{
    uint8_t *at = win->data + win->at[lane];
    bool equal = atomic_kind(i) == ATOMIC_CAS && all_equal(w, i, lane, at);

    for (uint32_t e = 0; e < i->elements; e++) {
        one_element(w, i, lane, e, at + e * i->element_bytes, equal);
    }
}

/* An atomic on bytes that nobody wrote computes with garbage. In global memory that is a value
 * stored there; false when it was filed. In shared memory the result is poison, memory stays
 * unwritten. */
static bool one_shadow(warp *w, const instruction *i, uint32_t lane, const access_window *win,
                       ptx_space space, uint64_t address)
{
    uint32_t size = (uint32_t)i->element_bytes * i->elements;
    uint8_t *shadow = win->shadow + win->at[lane];
    bool written = access_written(shadow, size), fresh = atomic_kind(i) == ATOMIC_EXCH;

    if (!written && !fresh && space == PTX_GLOBAL &&
        machine_checks(w, HONE_EMU_CHECK_UNINITIALISED)) {
        machine_fault(w, i, lane, address, FAULT_UNINITIALISED,
                      "an atomic of %u bytes on global memory that was never written", size);
        return false;
    }
    if (fresh) {
        memset(shadow, 1, size);
    }
    w->tainted |= !written && machine_checks(w, HONE_EMU_CHECK_UNINITIALISED);
    for (uint32_t e = 0; w->tainted && e < i->results; e++) {
        taint_set(w, i->o[e], written ? 0 : MACHINE_ALL, UINT32_C(1) << lane);
    }
    return true;
}

static void count(warp *w, const instruction *i, const uint64_t *address, const access_window *win,
                  uint32_t lanes, ptx_space space)
{
    uint32_t size = (uint32_t)i->element_bytes * i->elements;

    w->run->counters.atomics++;
    if (space == PTX_GLOBAL) {
        access_count_global(w, i, address, lanes, size, true);
    } else if (space == PTX_SHARED) {
        access_count_shared(w, win, lanes, size, false);
        w->run->counters.shared_store_requests++;
    }
}

void exec_atomic(warp *w, const instruction *i, uint32_t mask)
{
    uint64_t address[MACHINE_LANES];
    uint32_t left = mask, size = (uint32_t)i->element_bytes * i->elements;
    access_window win;
    ptx_space space = PTX_GLOBAL;

    if (!access_addresses(w, i, i->o[i->results], mask, size, address)) {
        return;
    }
    for (uint32_t s = 1; s < i->sources; s++) {
        if (taint_refuse(w, i, i->o[i->results + s], mask, "an operand of the atomic")) {
            return;
        }
    }
    while (left != 0) {
        uint32_t lanes = access_open(w, i, address, left, size, &space, &win);
        if (lanes == 0) {
            return;
        }
        if (space == PTX_PARAM) {
            machine_fault(w, i, machine_lowest(lanes), 0, FAULT_OUT_OF_BOUNDS,
                          "an atomic on the kernel's parameters");
            return;
        }
        uint32_t first = machine_lowest(lanes);
        if (win.range != NULL && !global_writable(w, i, first, address[first], win.range)) {
            return;
        }
        win.dense = false;
        if (!access_unmarked(w, i, lanes, size, &win) ||
            !access_ordered(w, i, lanes, size, space, &win, address, RACE_ATOMIC)) {
            return;
        }
        count(w, i, address, &win, lanes, space);
        for (EACH_LANE(lane, lanes)) {
            if (!one_shadow(w, i, lane, &win, space, address[lane])) {
                return;
            }
            one_lane(w, i, lane, &win);
        }
        if (win.owner != NULL && win.owner != w->cta) {
            w->cta->cluster->changes++;
        }
        left &= ~lanes;
    }
}
