/* naive.h - the ops written once more, plainly, with faults that can be switched on: what
 * verification must refuse. */
#ifndef HONE_TESTS_BENCH_NAIVE_H
#define HONE_TESTS_BENCH_NAIVE_H

#include "bench/inputs.h"

typedef enum naive_fault {
    NAIVE_RIGHT,
    NAIVE_SWAPPED_SCALE,   /* row and group exchanged */
    NAIVE_ROW_SCALE_SHIFT, /* the neighbour row's scale */
    NAIVE_K_TAIL,          /* one element past K is added */
    NAIVE_HALF,            /* the second half is not written */
    NAIVE_TAIL_ROW,        /* the last row is not written */
    NAIVE_TAIL_COLUMN,
    NAIVE_NAN,           /* one element is NaN */
    NAIVE_ZEROS,         /* all zeros */
    NAIVE_STALE_SUM,     /* D is added to though it is not asked for, or not added though it is */
    NAIVE_FLOOR,         /* power-of-two scale rounded down */
    NAIVE_NEAREST,       /* and to nearest */
    NAIVE_OLD_PAYLOAD,   /* payload made with the scale before it was rounded (cases.md 1) */
    NAIVE_PAGE_OFF,      /* one page further; rows gathered of other tokens */
    NAIVE_SLOT_MINUS,    /* slot -1 by C division: page 0, offset -1 (cases.md 9) */
    NAIVE_NO_COUNT,      /* slots past the cache, NaN and infinities are not counted */
    NAIVE_UP_GATES,      /* gate and up exchanged */
    NAIVE_NO_CLAMP,      /* V4's limits forgotten */
    NAIVE_EVERY_ROW,     /* rows that the set leaves out are written */
    NAIVE_INFINITY_FITS, /* an infinite element becomes 448 */
    NAIVE_OTHER_LAYOUT,  /* the record's other page layout */
    NAIVE_NEXT_WEIGHTS,  /* rows of one expert by the next one's weights */
    NAIVE_SPILL,         /* tiles of four rows go on past an expert's last row, with its weights */
    NAIVE_FIRST_ROW,     /* an expert's first row is not written */
    NAIVE_NO_FILL,       /* the rest of a packed row's last word of scales is not written */
    NAIVE_SHORT,         /* sums before an activation lack 2^-7 of themselves */
    NAIVE_UNIT,          /* no fault: grouped products are cut to 13 bits, as the unit does it */
} naive_fault;

/* Run the op of `problem` on `in`, whose outputs `out` (a copy by inputs_copy_outputs) receives.
 * Tiles: only rows [row0, row1) and columns [column0, column1) of a gemm when row1 > 0. */
typedef struct naive_tile {
    int64_t row0, row1, column0, column1;
} naive_tile;
/* The fold of MXFP4. Faults: NAIVE_STALE_SUM lets groups of zeros count, NAIVE_FLOOR takes half the
 * scale, NAIVE_NEAREST leaves subnormals out, NAIVE_ZEROS drops the sign of zero. */
void naive_mxfp4_fold(const hone_mxfp4_fold *p, const inputs *in, naive_fault fault, inputs *out);
/* Scales moved. Faults: NAIVE_SWAPPED_SCALE turns words' bytes round, NAIVE_FLOOR keeps exponents
 * alone, NAIVE_K_TAIL lets an expert begin within a word. */
void naive_scale_pack(const hone_scale_pack *p, const inputs *in, naive_fault fault, inputs *out);
/* A grouped product; `tile`: of what each expert has, rows from its first on. */
void naive_moe_gemm(const hone_moe_gemm *p, const inputs *in, naive_fault fault,
                    const naive_tile *tile, inputs *out);
void naive_run(const hone_problem *problem, const inputs *in, naive_fault fault,
               const naive_tile *tile, inputs *out);

/* A group by the rule of kernels.md 5.1, or by a wrong one: codes of e4m3, and the scale. */
float naive_quantise(const float *x, int32_t len, int32_t rule, naive_fault fault, uint8_t *codes);

/* Scale (row, group) of a matrix of size[0] x size[1]. */
double naive_scale(const uint8_t *scales, int32_t dtype, int32_t layout, const int64_t size[2],
                   int64_t row, int64_t group);
/* Element k of a row-major matrix of e4m3 bytes or packed e2m1 nibbles. */
double naive_code(const uint8_t *codes, int32_t element, int64_t row, int64_t k, int64_t len);
/* Place of scale (row, group), and writing there. */
int64_t naive_scale_place(int32_t layout, int64_t rows, int64_t groups, int64_t row, int64_t group);
void naive_scale_write(uint8_t *scales, int32_t dtype, int64_t place, float scale);

/* Rows of a grouped product. Faults: NAIVE_SWAPPED_SCALE orders an expert's rows downwards,
 * NAIVE_K_TAIL aligns none, NAIVE_SLOT_MINUS gives -1 to the last expert, NAIVE_INFINITY_FITS cuts
 * ids to 32 bits, NAIVE_PAGE_OFF numbers rows within their expert, NAIVE_EVERY_ROW counts what has
 * no room. */
void naive_topk(const hone_topk *p, const inputs *in, naive_fault fault, inputs *out);
void naive_moe_align(const hone_moe_align *p, const inputs *in, naive_fault fault, inputs *out);

/* Sums of them. Faults: NAIVE_SWAPPED_SCALE adds in the order of the last first,
 * NAIVE_ROW_SCALE_SHIFT takes the next entry's weight, NAIVE_K_TAIL leaves the last entry out,
 * NAIVE_SLOT_MINUS reads the last row for -1, NAIVE_FLOOR adds in bf16, NAIVE_NEAREST rounds
 * products. */
void naive_moe_combine(const hone_moe_combine *p, const inputs *in, naive_fault fault, inputs *out);

/* An indexer's scores, of keys side by side or in pages; `tile`: its rows. Faults beyond their
 * words: NAIVE_NEAREST forgets the maximum, NAIVE_FLOOR takes it of weighted products, NAIVE_HALF
 * and NAIVE_K_TAIL store a key more or less, NAIVE_EVERY_ROW whole tiles, NAIVE_NO_CLAMP all keys
 * for a length below 0, NAIVE_SLOT_MINUS follows page -1 to page 0, NAIVE_UP_GATES exchanges
 * nibbles of keys, NAIVE_SPILL writes between rows. */
void naive_mqa(const hone_problem *problem, const inputs *in, naive_fault fault,
               const naive_tile *tile, inputs *out);

/* naive_run of the KV ops. */
void naive_kv_quant(const hone_kv_quant *p, const inputs *in, naive_fault fault, inputs *out);
void naive_kv_gather(const hone_kv_gather *p, const inputs *in, naive_fault fault, inputs *out);

#endif
