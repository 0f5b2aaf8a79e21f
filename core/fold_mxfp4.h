/* fold_mxfp4.h - MXFP4 weights as e4m3 under one power-of-two scale a block (kernels.md 5.4).
 *
 * A group of 32 e2m1 codes with the ue8m0 byte e becomes e4m3 codes of code * 2^(e - s), where the
 * block's byte s is the largest e of its groups less 6 (6 * 2^6 = 384 <= 448 < 6 * 2^7). Every code
 * is exact when -8 <= e - s <= 6, so when the block's exponents spread over at most 14; below that
 * the nearest e4m3 value is taken, ties to the even code. Groups whose codes are all zero are exact
 * at any scale and do not count towards s. Where the largest e is below 6, s is 0 (2^-127 is
 * ue8m0's least) and all is exact still. All functions are pure. */
#ifndef HONE_CORE_FOLD_MXFP4_H
#define HONE_CORE_FOLD_MXFP4_H

#include "include/hone.h"

#include <stdbool.h>

enum {
    FOLD_MXFP4_GROUP = 32,   /* elements that share an exponent */
    FOLD_MXFP4_SPREAD = 14,  /* of a block's exponents: every code is exact up to it */
    FOLD_MXFP4_NAN = 0xff,   /* ue8m0's NaN: its group becomes NaN codes */
    FOLD_MXFP4_EMPTY = 0x7f, /* the scale of a block without a value that counts: 1 */
};

/* e4m3 of the 4-bit code times 2^offset, any offset: nearest even, saturating to 448, the sign of
 * zero kept (code 8 is -0, 0x80). */
uint8_t fold_mxfp4_code(uint8_t code, int offset);

/* Whether that is exact. */
bool fold_mxfp4_exact(uint8_t code, int offset);

/* The block's scale byte from the largest exponent byte that counts. */
uint8_t fold_mxfp4_scale(uint8_t largest);

typedef struct fold_mxfp4_block {
    const uint8_t *codes;  /* [rows, groups * 16]: two codes a byte, the even element low */
    uint64_t codes_stride; /* bytes from row to row */
    const uint8_t *scales; /* [rows, groups] of ue8m0 */
    uint64_t scales_stride;
    uint64_t rows, groups;
} fold_mxfp4_block;

/* What came of a block. */
typedef struct fold_mxfp4_result {
    uint8_t scale;       /* ue8m0 */
    uint8_t spread;      /* of the exponents that count; 0 when none does */
    uint64_t inexact;    /* elements whose value changed */
    uint64_t nan_groups; /* groups whose exponent is NaN: their elements became NaN */
} fold_mxfp4_result;

/* Fold one block into out [rows, groups * 32] of e4m3, `out_stride` bytes from row to row. */
fold_mxfp4_result fold_mxfp4(const fold_mxfp4_block *block, uint8_t *out, uint64_t out_stride);

#endif
