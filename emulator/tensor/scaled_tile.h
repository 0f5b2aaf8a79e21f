/* scaled_tile.h - all of an m16n8k32 product of narrow floats, as the unit sums it, eight columns
 * of a row at a time: numbers only. What block_scale.h says of one element holds of each here, bit
 * by bit. */
#ifndef HONE_EMULATOR_TENSOR_SCALED_TILE_H
#define HONE_EMULATOR_TENSOR_SCALED_TILE_H

#include "emulator/tensor/block_scale.h"

enum { SCALED_ROWS = 16, SCALED_COLUMNS = 8, SCALED_DEPTH = 32 };

/* Operands taken apart: significands with their signs, exponents with the scale's added. */
typedef struct scaled_tile {
    int32_t a[SCALED_ROWS][SCALED_DEPTH], a_exponent[SCALED_ROWS][SCALED_DEPTH];
    int32_t b[SCALED_DEPTH][SCALED_COLUMNS], b_exponent[SCALED_DEPTH][SCALED_COLUMNS];
    narrow_type a_type, b_type;
} scaled_tile;

/* One row of the result from the same row of C, which is finite. */
void scaled_tile_row(const scaled_tile *t, uint32_t row, const float c[SCALED_COLUMNS],
                     float d[SCALED_COLUMNS]);

#endif
