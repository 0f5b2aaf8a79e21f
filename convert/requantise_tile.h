/* requantise_tile.h - part of an e4m3 matrix given the scales of other blocks, with what that
 * costs.
 *
 * A value is x = fl32(code * scale). A block's new scale follows from the largest |x| by the one
 * quantiser's rules (core/numfmt.h), its payload is e4m3 of fl32(x / scale), saturating: payload
 * and scale are made together. */
#ifndef HONE_CONVERT_REQUANTISE_TILE_H
#define HONE_CONVERT_REQUANTISE_TILE_H

#include "convert/fold_tile.h"
#include "convert/plan_rule.h"

/* Sums over blocks; those of two tiles add up, in a fixed order. */
typedef struct requantise_sums {
    uint64_t blocks, exact; /* exact: no value changed */
    uint64_t elements, inexact;
    uint64_t saturated; /* values past 448 of the new scale */
    uint64_t nan_codes; /* e4m3 NaN, kept */
    uint64_t
        bad_scales; /* old scales that are no positive finite number: their values are kept out */
    double square, error; /* of all values, and of what they lose */
} requantise_sums;

void requantise_sums_add(requantise_sums *to, const requantise_sums *more);

typedef struct requantise_tile {
    const uint8_t *codes; /* [rows, cols] of e4m3 */
    uint64_t codes_stride;
    const float *scales; /* of the old blocks that the tile meets, [.., scales_stride] */
    uint64_t scales_stride;
    uint64_t row, col; /* of the tile in its matrix: multiples of the new blocks */
    uint64_t rows, cols;
    uint64_t from_rows, from_cols;   /* the old blocks; scales[0] is that of (row, col) */
    uint32_t block_rows, block_cols; /* the new blocks */
    plan_rule rule;
    uint8_t *out;      /* [rows, cols], dense; may be `codes` where those are dense too */
    float *out_scales; /* ceil(rows / block_rows) x ceil(cols / block_cols), dense */
} requantise_tile;

/* Requantise a tile. Adds to *sums, the same whatever the variant. Thread-safe. */
void requantise_tile_run(const requantise_tile *tile, const fold_lanes *lanes,
                         requantise_sums *sums);

/* The scale of a block whose largest magnitude is amax: at least 2^-126, a block of zeros' too. */
float requantise_scale(float amax, plan_rule rule);

#endif
