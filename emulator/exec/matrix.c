/* matrix.c - ldmatrix, and mma.sync through the matrix unit of tensor.h. */
#include "emulator/machine/access.h"
#include "emulator/exec/exec.h"
#include "emulator/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

/* Lanes 8m..8m+7 give the rows of matrix m; lane 4g+t gets word t of row g (emulator.md 5.2), or of
 * the transposed matrix. Returns the lanes that got bytes which nobody wrote. */
static uint32_t spread(const instruction *i, const uint64_t *rows, const access_window *win,
                       uint32_t *d)
{
    uint32_t bad = 0;

    if ((i->flags & FLAG_TRANSPOSED) == 0) {
        for (uint32_t g = 0; g < 8; g++) {
            memcpy(d + 4 * g, win->data + rows[g], 16);
            for (uint32_t t = 0; t < 4 && !access_written(win->shadow + rows[g], 16); t++) {
                bad |= (uint32_t)!access_written(win->shadow + rows[g] + 4 * t, 4) << (4 * g + t);
            }
        }
        return bad;
    }
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint32_t g = lane >> 2, t = lane & 3;
        uint64_t first = rows[2 * t] + 2 * g, second = rows[2 * t + 1] + 2 * g;
        uint16_t low = 0, high = 0;
        memcpy(&low, win->data + first, 2);
        memcpy(&high, win->data + second, 2);
        d[lane] = (uint32_t)high << 16 | low;
        bad |= (uint32_t)(!access_written(win->shadow + first, 2) ||
                          !access_written(win->shadow + second, 2))
               << lane;
    }
    return bad;
}

/* Rows of 16 elements of 4 or 6 bits, which become bytes: lane 4g+t gets four of row g. What pads a
 * row to 16 bytes is not read. */
static uint32_t spread_narrow(uint32_t width, const uint64_t *rows, const access_window *win,
                              uint32_t *d)
{
    uint32_t bad = 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint64_t row = rows[lane >> 2];
        uint32_t first = 4 * (lane & 3) * width / 8, len = width / 2, bits = 0, value = 0;
        memcpy(&bits, win->data + row + first, len);
        for (uint32_t e = 0; e < 4; e++) {
            value |= (bits >> e * width & ((1u << width) - 1)) << 8 * e;
        }
        d[lane] = value;
        for (uint32_t n = 0; n < len; n++) {
            bad |= (uint32_t)!access_written(win->shadow + row + first + n, 1) << lane;
        }
    }
    return bad;
}

/* The rows' lanes: 8 for each matrix. */
static uint32_t row_lanes(const instruction *i)
{
    return i->elements == 4 ? MACHINE_ALL : (UINT32_C(1) << 8 * i->elements) - 1;
}

static bool matrix_whole(warp *w, const instruction *i, uint32_t mask, const char *name)
{
    if (mask == MACHINE_ALL) {
        return true;
    }
    machine_fault(w, i, machine_lowest(~mask), 0, FAULT_BARRIER_DIVERGENCE,
                  "%s needs all 32 lanes; here are %08x", name, mask);
    return false;
}

/* The rows of 16 bytes whose addresses the first source has; accounts for them. False after a
 * fault. */
static bool open_rows(warp *w, const instruction *i, race_access kind, access_window *win)
{
    uint64_t address[MACHINE_LANES];
    uint32_t rows = row_lanes(i);
    ptx_space space = PTX_SHARED;

    if (!access_addresses(w, i, i->o[i->results], rows, 16, address) ||
        access_open(w, i, address, rows, 16, &space, win) != rows) {
        return false;
    }
    win->dense = false;
    if (!access_unmarked(w, i, rows, 16, win) ||
        !access_ordered(w, i, rows, 16, space, win, address, kind)) {
        return false;
    }
    access_count_matrix(w, win, rows);
    return true;
}

void exec_ldmatrix(warp *w, const instruction *i, uint32_t mask)
{
    access_window win;

    if (!matrix_whole(w, i, mask, "ldmatrix") || !open_rows(w, i, RACE_READ_TOGETHER, &win)) {
        return;
    }
    for (uint32_t m = 0; m < i->elements; m++) {
        uint32_t *d = machine_r32(w, i->o[m]);
        uint32_t bad = i->kind == 0 ? spread(i, win.at + 8 * m, &win, d)
                                    : spread_narrow(i->kind, win.at + 8 * m, &win, d);
        w->tainted |= machine_checks(w, HONE_EMU_CHECK_UNINITIALISED) && bad != 0;
        if (w->tainted) {
            taint_set(w, i->o[m], bad, MACHINE_ALL);
        }
    }
}

/* ldmatrix the other way: lane 4g+t gives word t of row g, or column g's elements of rows 2t and
 * 2t+1. */
static void gather(const warp *w, const instruction *i, const uint64_t *rows,
                   const access_window *win, uint32_t operand)
{
    const uint32_t *a = machine_r32(w, operand);
    uint32_t poison = w->tainted ? *machine_poison(w, operand) : 0;

    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint32_t g = lane >> 2, t = lane & 3;
        for (uint32_t half = 0; half < 2; half++) {
            uint16_t value = (uint16_t)(a[lane] >> 16 * half);
            uint64_t at = i->flags & FLAG_TRANSPOSED ? rows[2 * t + half] + 2 * g
                                                     : rows[g] + 4 * t + 2 * half;
            memcpy(win->data + at, &value, 2);
            access_mark(win->shadow + at, 2, (poison >> lane & 1) == 0);
        }
    }
}

void exec_stmatrix(warp *w, const instruction *i, uint32_t mask)
{
    access_window win;

    if (!matrix_whole(w, i, mask, "stmatrix") || !open_rows(w, i, RACE_WRITE, &win)) {
        return;
    }
    if (win.owner != w->cta) {
        w->cta->cluster->changes++;
    }
    for (uint32_t m = 0; m < i->elements; m++) {
        gather(w, i, win.at + 8 * m, &win, i->o[1 + m]);
    }
}

/* Lane 4g+t of the transposed matrix holds what lanes 4(2t)+g/2 and the one four on hold. */
void exec_movmatrix(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t from[MACHINE_LANES], *d = machine_r32(w, i->o[0]);
    uint32_t poison = w->tainted ? *machine_poison(w, i->o[1]) : 0, moved = 0;

    if (!matrix_whole(w, i, mask, "movmatrix")) {
        return;
    }
    memcpy(from, machine_r32(w, i->o[1]), sizeof from);
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        uint32_t g = lane >> 2, t = lane & 3, first = 8 * t + g / 2, second = first + 4;
        uint32_t low = from[first] >> 16 * (g & 1), high = from[second] >> 16 * (g & 1);
        d[lane] = (low & 0xffff) | high << 16;
        moved |= ((poison >> first | poison >> second) & 1) << lane;
    }
    if (w->tainted) {
        taint_set(w, i->o[0], moved, MACHINE_ALL);
    }
}

/* Operands of the matrix unit that are still taken apart, by their registers' places. Warps run in
 * turns, so that those of one find their own again. */
enum { KEPT_LEFT = 4, KEPT_RIGHT = 16 };
struct machine_operands {
    tensor_left left[KEPT_LEFT];
    tensor_right right[KEPT_RIGHT];
    tensor_rows rows; /* of the last tf32 product */
    tensor_columns columns;
};

/* Without memory for it products only take longer. */
static void keep_operands(run_state *run, const instruction *i, tensor_call *call)
{
    if (run->operands == NULL) {
        bool room = purse_take(&run->purse, sizeof *run->operands);
        run->operands =
            room ? aligned_alloc(_Alignof(machine_operands), sizeof *run->operands) : NULL;
        if (run->operands == NULL) {
            machine_give(run, room ? sizeof *run->operands : 0);
            return;
        }
        memset(run->operands, 0, sizeof *run->operands);
    }
    call->left = &run->operands->left[i->o[4] / MACHINE_SLOT / 4 % KEPT_LEFT];
    call->right = &run->operands->right[i->o[8] / MACHINE_SLOT / 2 % KEPT_RIGHT];
}

/* Copies what is not there already; whether something was not. */
static bool renew(uint32_t (*to)[MACHINE_LANES], const uint32_t *const *from, uint32_t len)
{
    bool changed = false;

    for (uint32_t n = 0; n < len; n++) {
        changed = changed || memcmp(to[n], from[n], sizeof to[n]) != 0;
        memcpy(to[n], from[n], sizeof to[n]);
    }
    return changed;
}

/* The vectors that take single products know no tf32; those of a warpgroup do, and give the same.
 */
static void run_grouped(machine_operands *o, uint32_t *const d[4], const tensor_call *call)
{
    tensor_group_call group = {.rows = &o->rows,
                               .columns = &o->columns,
                               .c = {call->c[0], call->c[1], call->c[2], call->c[3]},
                               .blocks = 1,
                               .unit = call->unit,
                               .mode = call->mode};

    if (renew(o->rows.raw, call->a, 4) || !o->rows.kept) {
        o->rows.type = call->a_type;
        tensor_open_rows(&o->rows);
        o->rows.kept = true;
    }
    if (renew(o->columns.raw, call->b, 2) || !o->columns.kept) {
        o->columns.type = call->b_type;
        tensor_open_columns(&o->columns);
        o->columns.kept = true;
    }
    tensor_group_run(d, &group);
}

bool exec_mma_whole(warp *w, const instruction *i, uint32_t mask)
{
    return matrix_whole(w, i, mask, "mma");
}

/* d: 4, a: 4, b: 2, c: 4 registers. kind: the type of a in the low 4 bits, of b above; elements:
 * MMA_*; target: products. */
void exec_mma(warp *w, const instruction *i, uint32_t mask)
{
    static const hone_emu_mma counter[] = {
        [TENSOR_E4M3] = HONE_EMU_MMA_FP8,  [TENSOR_E5M2] = HONE_EMU_MMA_FP8,
        [TENSOR_BF16] = HONE_EMU_MMA_BF16, [TENSOR_F16] = HONE_EMU_MMA_F16,
        [TENSOR_S8] = HONE_EMU_MMA_S8,     [TENSOR_U8] = HONE_EMU_MMA_S8,
        [TENSOR_TF32] = HONE_EMU_MMA_TF32,
    };
    const machine_launch *l = w->run->launch;
    tensor_type a_type = (tensor_type)(i->kind & 15), b_type = (tensor_type)(i->kind >> 4);

    if (!exec_mma_whole(w, i, mask)) {
        return;
    }
    uint32_t *d[4];
    tensor_call call = {
        .a_type = a_type,
        .b_type = b_type,
        .unit = tensor_unit_mma(l->arch, a_type, (i->elements & MMA_HALF) != 0, l->arithmetic),
        .mode = l->arithmetic,
        .saturate = (i->elements & MMA_SATURATE) != 0};
    for (uint32_t n = 0; n < 4; n++) {
        d[n] = machine_r32(w, i->o[n]);
        call.a[n] = machine_r32(w, i->o[4 + n]);
        call.c[n] = machine_r32(w, i->o[10 + n]);
    }
    call.b[0] = machine_r32(w, i->o[8]);
    call.b[1] = machine_r32(w, i->o[9]);
    keep_operands(w->run, i, &call);
    if (a_type == TENSOR_TF32 && w->run->operands != NULL) {
        run_grouped(w->run->operands, d, &call);
    } else {
        tensor_run(d, &call);
    }
    w->run->counters.tensor_macs[counter[a_type]] += i->target;
}
