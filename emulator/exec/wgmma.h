/* wgmma.h - wgmma.mma_async and what goes with it: one warp's part of a warpgroup's product.
 *
 * Of an instruction: `kind` is the tensor_type of A, and of B above four bits; `elements` N / 8;
 * `element_bytes` the wgmma_result; `offset` wgmma_flags. Operands: the registers of D; then those
 * again (but for WGMMA_OVERWRITES), A (a descriptor, or four registers), B's descriptor, the
 * predicate scale-d. */
#ifndef HONE_EMULATOR_EXEC_WGMMA_H
#define HONE_EMULATOR_EXEC_WGMMA_H

#include "emulator/machine/race.h"
#include "emulator/tensor/tensor.h"

typedef enum wgmma_result { WGMMA_F32, WGMMA_S32, WGMMA_F16 } wgmma_result;
typedef enum wgmma_flags {
    WGMMA_NEGATED = 1, /* one of the scales of A and B is -1 */
    WGMMA_TRANSPOSED_A = 2,
    WGMMA_TRANSPOSED_B = 4,
    WGMMA_REGISTERS_A = 8,
    WGMMA_SATURATED = 16,
    WGMMA_OVERWRITES = 32, /* scale-d is the constant false: D is no source */
} wgmma_flags;

enum { WGMMA_GROUP = 4, WGMMA_ROW_BLOCKS = 2 }; /* warps of a warpgroup; 8 rows, of a warp's 16 */

static inline bool wgmma_has(const instruction *i, wgmma_flags flag)
{
    return (i->offset & flag) != 0;
}

void exec_wgmma(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_fence(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_commit(warp *w, const instruction *i, uint32_t mask);
void exec_wgmma_wait(warp *w, const instruction *i, uint32_t mask);
/* Stands before the handler of an instruction that touches registers which wgmma names. */
void exec_wgmma_touch(warp *w, const instruction *i, uint32_t mask);

/* wgmma_matrix.c: a matrix in shared memory as its descriptor says (emulator.md 5.3). */
typedef struct wgmma_matrix {
    uint32_t start, leading, stride; /* bytes */
    uint32_t width;                  /* 16-byte chunks of a row of the swizzle; 1: none */
    uint32_t base;                   /* rows of 128 bytes by which the swizzle's pattern is off */
    bool across;                     /* MN-major */
} wgmma_matrix;

/* Where the rows of both core matrices of a block lie. */
typedef struct wgmma_rows {
    uint32_t low[8], high[8];
} wgmma_rows;

/* What a read of core matrices found. */
typedef struct wgmma_read {
    uint8_t shadow;      /* all shadow bytes anded: those that lack ACCESS_IS_WRITTEN show */
    uint8_t marks;       /* and ored */
    uint32_t wavefronts; /* of 128 bytes; counted when `counts` */
    uint32_t last;       /* those of the last block */
    bool counts;
    bool placed; /* `rows` are those of block `block`; the others lie whole strides from there */
    uint32_t block;
    wgmma_rows rows;
} wgmma_read;

/* False after a fault; `name` is the operand's. `blocks` groups of 8 rows from `first` on are
 * within shared memory. */
bool wgmma_matrix_open(warp *w, const instruction *i, uint64_t descriptor, bool across, char name,
                       uint32_t first, uint32_t blocks, wgmma_matrix *out);
/* Block `block`: 8 rows (of MN) of 16 bytes (of K), twice, as a fragment's two registers have them.
 * Whether that is not what they held already. */
bool wgmma_matrix_block(const cta *c, const wgmma_matrix *m, uint32_t block,
                        uint32_t low[MACHINE_LANES], uint32_t high[MACHINE_LANES],
                        wgmma_read *read);
/* True (and a fault) when the core matrices of a read hold a byte that it may not take. */
bool wgmma_matrix_refuse(warp *w, const instruction *i, const wgmma_matrix *m, char name,
                         uint32_t first, uint32_t blocks, const wgmma_read *read);

/* Tells a race task of reading the core matrices; `chunks`: which 16 bytes of the swizzle's rows,
 * of K-major ones. False after a fault. */
bool wgmma_matrix_touch(race_task *t, cta *owner, const wgmma_matrix *m, uint32_t first,
                        uint32_t blocks, uint32_t chunks);

/* One warp's part of a product, from its instruction to its end. */
typedef struct wgmma_op {
    const instruction *i;
    uint64_t a_descriptor, b_descriptor;
    bool accumulates, done;
    uint32_t group;
    race_task *task;
} wgmma_op;

/* wgmma.c: does it. False after a fault. */
bool wgmma_perform(warp *w, const wgmma_op *op);

/* wgmma_reads.c: what the products of a group read, for those who look for races. Those of one tile
 * are told together, when the group is committed. */
typedef struct wgmma_span {
    wgmma_matrix matrix;
    uint32_t first, blocks, chunks;
    race_task *task; /* of the last product that reads it */
} wgmma_span;
/* Checks that the operands lie in shared memory, too. False after a fault. */
bool wgmma_reads_add(warp *w, wgmma_op *op);
bool wgmma_reads_flush(warp *w);

/* wgmma_flight.c: what a warp has in flight, and what it keeps. */
typedef struct wgmma_flight wgmma_flight;

/* Operands that were taken apart last: of the warp's own rows, and of a warpgroup's first warp
 * those B that the group's steps go through. */
enum { WGMMA_SPANS = 8, WGMMA_KEPT = 8, WGMMA_COLUMNS = 32, WGMMA_TRAIL = 256 };
typedef struct wgmma_kept {
    tensor_rows rows;
    tensor_columns (*columns)[WGMMA_COLUMNS];
    uint64_t descriptors[WGMMA_KEPT];
    uint32_t next;
} wgmma_kept;

/* A product of a warpgroup, as its first warp to get there issued it. */
typedef struct wgmma_step {
    uint64_t number; /* 1, 2, ...; 0: none */
    uint64_t a_descriptor, b_descriptor;
    uint32_t warp;
    int32_t line;
} wgmma_step;

struct wgmma_pending {
    wgmma_kept kept;
    uint64_t issued;               /* by this warp */
    uint32_t awaits;               /* groups that a wait holds the warp up for */
    race_task *last;               /* of the product that was waited for last */
    wgmma_span spans[WGMMA_SPANS]; /* of the group that is not committed yet */
    uint32_t spans_len;
    wgmma_step trail[WGMMA_TRAIL]; /* of a warpgroup's first warp */
    wgmma_flight *flight;
};
/* NULL, and the run marked, without memory. */
wgmma_pending *wgmma_open(warp *w);
/* A CTA begins: nothing is in flight. */
void wgmma_begin(warp *w);
void wgmma_close(warp *w);
/* Takes an operation over: does it, or queues it. */
void wgmma_submit(warp *w, wgmma_op *op);

#endif
