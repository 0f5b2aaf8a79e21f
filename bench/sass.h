/* sass.h - reads a cubin's machine code without the vendor's disassembler: its loops, what they
 * issue, and what the pipes of an SM allow for that.
 *
 * Instructions of sm_80 and later are 16 bytes. Nine bits name the operation and three the form of
 * its operands; only operations that a matrix kernel's loop is judged by are told apart. Encodings
 * were checked against nvdisasm 13 on code for sm_80, sm_89, sm_90a, sm_100a and sm_120a. Pure. */
#ifndef HONE_BENCH_SASS_H
#define HONE_BENCH_SASS_H

#include "models/gpu.h"

/* The operations that are counted: X(name, text). */
#define SASS_KIND_MAP(X)                                                                           \
    X(FFMA, "FFMA")                                                                                \
    X(FMUL, "FMUL")                                                                                \
    X(FADD, "FADD")                                                                                \
    X(GMMA, "GMMA") /* wgmma: QGMMA, HGMMA, IGMMA */                                               \
    X(MMA, "MMA")   /* mma.sync: HMMA, IMMA, QMMA, OMMA */                                         \
    X(LDS, "LDS")                                                                                  \
    X(LDSM, "LDSM")                                                                                \
    X(STS, "STS")                                                                                  \
    X(SYNCS, "SYNCS")         /* mbarriers */                                                      \
    X(WARPGROUP, "WARPGROUP") /* arrive, and waits for products */                                 \
    X(LOCAL, "LDL/STL")       /* spills and local arrays */

typedef enum sass_kind {
#define X(name, text) SASS_##name,
    SASS_KIND_MAP(X)
#undef X
        SASS_KINDS
} sass_kind;

const char *sass_kind_name(sass_kind kind); /* "LDL/STL"; static */

/* What one warp issues when it passes once over a run of code. */
typedef struct sass_count {
    uint32_t instructions, kinds[SASS_KINDS];
    uint32_t stall_clocks;           /* sum of the stall counts: the least for one warp alone */
    int32_t highest_register;        /* that a counted operation or a move writes; -1: none */
    double gmma_macs[GPU_MMA_KINDS]; /* the warp's quarter of its warpgroup's products */
    double mma_macs[GPU_MMA_KINDS];
} sass_count;

/* A loop: a backward branch whose target dominates it. Branches out of the way of a loop (a wait
 * that did not succeed at once) are not counted with it. */
typedef struct sass_loop {
    uint32_t first, last; /* instructions: the target, and the branch back */
    bool inner;           /* no loop with products lies within */
    sass_count count;
} sass_loop;

typedef struct sass_function {
    sass_count all;
    sass_loop *loops; /* by first */
    size_t loops_len;
} sass_function;

/* Read the kernel of this lowered name. HONE_BAD_TEXT for what is not a whole cubin, whatever it
 * says of itself; HONE_UNSUPPORTED for code before sm_80; HONE_NOT_FOUND without the kernel;
 * HONE_LIMIT beyond 65536 instructions or 1024 backward branches. The caller frees *out by
 * sass_function_free. */
hone_status sass_read(const void *cubin, size_t len, const char *lowered, sass_function *out,
                      hone_error *error);
void sass_function_free(sass_function *f); /* frees what it holds */

/* The innermost loop with the most multiply-adds; NULL without products in a loop. Borrowed. */
const sass_loop *sass_main_loop(const sass_function *f);

/* Multiply-adds of a warp in one pass, on tensor cores. */
double sass_macs(const sass_count *c);

/* Clocks that an SM needs at least for `macs` multiply-adds made by a loop. */
typedef struct sass_limits {
    double tensor_clocks;  /* of the unit at the GPU's data-sheet rate */
    double fp32_clocks;    /* FFMA, FMUL and FADD on its lanes */
    double issue_clocks;   /* all instructions of the loop's warps on its issue slots */
    double tensor_percent; /* of the tensor peak that these allow: 100 when the unit is the limit */
} sass_limits;

/* `macs` of a tile of rows x columns for K=128 is rows * columns * 128: how many warps share them
 * does not matter. What other warps issue (a producer) comes on top. All zero for a loop without
 * products, or a GPU without the unit. */
sass_limits sass_limits_of(const sass_count *loop, const gpu *g, double macs);

#endif
