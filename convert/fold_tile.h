/* fold_tile.h - part of an MXFP4 matrix folded to e4m3, with what that costs. */
#ifndef HONE_CONVERT_FOLD_TILE_H
#define HONE_CONVERT_FOLD_TILE_H

#include "convert/fold_costs.h"

#include <stddef.h>

/* Sums over blocks; those of two tiles add up (in a fixed order: they are floats). A relative error
 * is the square root of a sum of squares by `square`'s. */
typedef struct fold_sums {
    uint64_t blocks, exact; /* exact: no value changed */
    uint64_t wide;          /* exponents spread over more than 14 */
    uint64_t elements, inexact;
    uint64_t nan_groups;
    uint64_t saturated;    /* values past 448 under the nearest power of two */
    double square;         /* of all values */
    double inexact_square; /* of the values of the blocks that are not exact */
    double fold;           /* squares of what the fold loses; all of it in those blocks */
    double amax, nearest;  /* squares that amax / 448 and the nearest power of two would lose */
} fold_sums;

void fold_sums_add(fold_sums *to, const fold_sums *more);

/* A tile is whole blocks, but for those at the matrix's last rows and columns. */
typedef struct fold_tile {
    const uint8_t *codes; /* [rows, cols / 2]: two codes a byte, the even element low */
    uint64_t codes_stride;
    const uint8_t *scales; /* [rows, cols / 32] of ue8m0 */
    uint64_t scales_stride;
    uint64_t rows, cols;             /* cols % 32 == 0 */
    uint32_t block_rows, block_cols; /* at most FOLD_TILE_ROWS; 32 to 512, a power of two */
    uint8_t *out;                    /* [rows, cols] of e4m3; NULL: only sums and scales */
    uint64_t out_stride;
    uint8_t *out_scales; /* ceil(rows / block_rows) x ceil(cols / block_cols) of ue8m0, dense */
} fold_tile;

#define FOLD_TILE_ROWS 128

/* The variants that this processor runs: the index-th, the plainest first, NULL past the last; the
 * best. */
typedef struct fold_lanes fold_lanes;
const fold_lanes *fold_lanes_at(size_t index);
const fold_lanes *fold_lanes_best(void);
const char *fold_lanes_name(const fold_lanes *lanes);

/* Fold a tile; the bytes are those of core/fold_mxfp4.h. Adds to *sums, the same whatever the
 * variant. Thread-safe. */
void fold_tile_run(const fold_tile *tile, const fold_lanes *lanes, const fold_costs *costs,
                   fold_sums *sums);

#endif
