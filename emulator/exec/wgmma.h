/* wgmma.h - wgmma.mma_async and what goes with it: one warp's part of a warpgroup's product.
 *
 * Of an instruction: `kind` is the tensor_type of A, and of B above four bits; `elements` N / 8;
 * `element_bytes` the wgmma_result; `offset` wgmma_flags. Operands: the registers of D; then those
 * again, A (a descriptor, or four registers), B's descriptor, the predicate scale-d. */
#ifndef HONE_EMULATOR_EXEC_WGMMA_H
#define HONE_EMULATOR_EXEC_WGMMA_H

#include "emulator/machine/machine.h"
#include "emulator/tensor/tensor.h"

typedef enum wgmma_result { WGMMA_F32, WGMMA_S32, WGMMA_F16 } wgmma_result;
typedef enum wgmma_flags {
    WGMMA_NEGATED = 1, /* one of the scales of A and B is -1 */
    WGMMA_TRANSPOSED_A = 2,
    WGMMA_TRANSPOSED_B = 4,
    WGMMA_REGISTERS_A = 8,
    WGMMA_SATURATED = 16,
} wgmma_flags;

void exec_wgmma(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_fence(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_commit(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_wait(warp *w, const instruction *i, uint32_t mask);

/* wgmma_matrix.c: a matrix in shared memory as its descriptor says (emulator.md 5.3). */
typedef struct wgmma_matrix {
    uint32_t start, leading, stride; /* bytes */
    uint32_t width;                  /* 16-byte chunks of a row of the swizzle; 1: none */
    uint32_t base;                   /* rows of 128 bytes by which the swizzle's pattern is off */
    bool across;                     /* MN-major */
} wgmma_matrix;

/* What a read of core matrices found. */
typedef struct wgmma_read {
    uint8_t shadow;      /* all shadow bytes anded: those that lack ACCESS_IS_WRITTEN show */
    uint8_t marks;       /* and ored */
    uint32_t wavefronts; /* of 128 bytes */
} wgmma_read;

/* False after a fault; `name` is the operand's. `blocks` groups of 8 rows from `first` on are
 * within shared memory. */
bool wgmma_matrix_open(warp *w, const instruction *i, uint64_t descriptor, bool across, char name,
                       uint32_t first, uint32_t blocks, wgmma_matrix *out);
/* Core matrix (block, half): 8 rows (of MN) of 16 bytes (of K), as a fragment's register has them.
 */
void wgmma_matrix_core(const cta *c, const wgmma_matrix *m, uint32_t block, uint32_t half,
                       uint32_t out[MACHINE_LANES], wgmma_read *read);

/* True (and a fault) when the core matrices of a read hold a byte that it may not take. */
bool wgmma_matrix_refuse(warp *w, const instruction *i, const wgmma_matrix *m, char name,
                         uint32_t first, uint32_t blocks, const wgmma_read *read);

/* wgmma_state.c: what a warp keeps. Freed by wgmma_close; NULL and out_of_memory without memory. */
typedef struct wgmma_kept {
    uint64_t descriptor; /* of B, with its form; see key_of */
    uint64_t form;
    tensor_right right[32];
} wgmma_kept;
enum { WGMMA_KEPT = 8 };

struct wgmma_pending {
    tensor_left left;
    wgmma_kept *kept; /* of a warpgroup's first warp: WGMMA_KEPT of them */
};
wgmma_pending *wgmma_state(warp *w);
void wgmma_close(warp *w);

#endif
