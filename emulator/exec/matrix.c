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

void exec_ldmatrix(warp *w, const instruction *i, uint32_t mask)
{
    uint64_t address[MACHINE_LANES];
    uint32_t rows = i->elements == 4 ? MACHINE_ALL : (UINT32_C(1) << 8 * i->elements) - 1;
    access_window win;
    ptx_space space = PTX_SHARED;

    if (mask != MACHINE_ALL) {
        machine_fault(w, i, machine_lowest(~mask), 0, FAULT_BARRIER_DIVERGENCE,
                      "ldmatrix needs all 32 lanes; here are %08x", mask);
        return;
    }
    if (!access_addresses(w, i, i->o[i->results], rows, 16, address) ||
        access_open(w, i, address, rows, 16, &space, &win) != rows) {
        return;
    }
    win.dense = false;
    if (!access_unmarked(w, i, rows, 16, &win) ||
        !access_ordered(w, i, rows, 16, space, &win, address, RACE_READ_TOGETHER)) {
        return;
    }
    access_count_matrix(w, address, rows);
    for (uint32_t m = 0; m < i->elements; m++) {
        uint32_t bad = spread(i, win.at + 8 * m, &win, machine_r32(w, i->o[m]));
        w->tainted |= machine_checks(w, HONE_EMU_CHECK_UNINITIALISED) && bad != 0;
        if (w->tainted) {
            taint_set(w, i->o[m], bad, MACHINE_ALL);
        }
    }
}

/* Operands of the matrix unit that are still taken apart, by their registers' places. Warps run in
 * turns, so that those of one find their own again. */
enum { KEPT_LEFT = 4, KEPT_RIGHT = 16 };
struct machine_operands {
    tensor_left left[KEPT_LEFT];
    tensor_right right[KEPT_RIGHT];
};

/* Without memory for it products only take longer. */
static void keep_operands(run_state *run, const instruction *i, tensor_call *call)
{
    if (run->operands == NULL) {
        run->operands = aligned_alloc(_Alignof(machine_operands), sizeof *run->operands);
        if (run->operands == NULL) {
            return;
        }
        memset(run->operands, 0, sizeof *run->operands);
    }
    call->left = &run->operands->left[i->o[4] / MACHINE_SLOT / 4 % KEPT_LEFT];
    call->right = &run->operands->right[i->o[8] / MACHINE_SLOT / 2 % KEPT_RIGHT];
}

/* d: 4, a: 4, b: 2, c: 4 registers. kind: the type of a in the low 4 bits, of b above. */
void exec_mma(warp *w, const instruction *i, uint32_t mask)
{
    static const hone_emu_mma counter[] = {
        [TENSOR_E4M3] = HONE_EMU_MMA_FP8,  [TENSOR_E5M2] = HONE_EMU_MMA_FP8,
        [TENSOR_BF16] = HONE_EMU_MMA_BF16, [TENSOR_F16] = HONE_EMU_MMA_F16,
        [TENSOR_S8] = HONE_EMU_MMA_S8,     [TENSOR_U8] = HONE_EMU_MMA_S8,
    };
    const machine_launch *l = w->run->launch;
    tensor_type a_type = (tensor_type)(i->kind & 15), b_type = (tensor_type)(i->kind >> 4);
    uint64_t depth = a_type == TENSOR_BF16 || a_type == TENSOR_F16 ? 16 : 32;

    if (mask != MACHINE_ALL) {
        machine_fault(w, i, machine_lowest(~mask), 0, FAULT_BARRIER_DIVERGENCE,
                      "mma needs all 32 lanes; here are %08x", mask);
        return;
    }
    uint32_t *d[4];
    tensor_call call = {.a_type = a_type,
                        .b_type = b_type,
                        .unit = tensor_unit_mma(l->arch, a_type, l->arithmetic),
                        .mode = l->arithmetic};
    for (uint32_t n = 0; n < 4; n++) {
        d[n] = machine_r32(w, i->o[n]);
        call.a[n] = machine_r32(w, i->o[4 + n]);
        call.c[n] = machine_r32(w, i->o[10 + n]);
    }
    call.b[0] = machine_r32(w, i->o[8]);
    call.b[1] = machine_r32(w, i->o[9]);
    keep_operands(w->run, i, &call);
    tensor_run(d, &call);
    w->run->counters.tensor_macs[counter[a_type]] += UINT64_C(16) * 8 * depth;
}
