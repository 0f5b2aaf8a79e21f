/* naive_mxfp4.c - the fold of MXFP4 to e4m3 in float64, element by element, with faults. */
#include "core/numfmt.h"
#include "tests/bench/naive.h"

#include <math.h>
#include <string.h>

static double code_value(const hone_mxfp4_fold *p, const inputs *in, int64_t row, int64_t col)
{
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const uint8_t byte = in->image[0][(row * p->k + col) / 2];
    const int code = col % 2 == 0 ? byte & 15 : byte >> 4;

    return (code & 8) != 0 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static int exponent_of(const hone_mxfp4_fold *p, const inputs *in, int64_t row, int64_t col)
{
    return in->image[1][row * (p->k / 32) + col / 32];
}

/* Rows of all matrices are counted through. */
static void put_block(const hone_mxfp4_fold *p, const inputs *in, naive_fault fault, int64_t row,
                      int64_t rows, int64_t col, int64_t cols, uint64_t place, inputs *out)
{
    int largest = -1;

    for (int64_t i = 0; i < rows * cols; i++) {
        const int e = exponent_of(p, in, row + i / cols, col + i % cols);
        const bool counts =
            fault == NAIVE_STALE_SUM || code_value(p, in, row + i / cols, col + i % cols) != 0;
        largest = counts && e != 255 && e > largest ? e : largest;
    }
    const int above = fault == NAIVE_FLOOR ? 7 : 6;
    const int s = largest < 0 ? 127 : largest > above ? largest - above : 0;
    const float scale = (float)ldexp(1, s - 127);
    if (p->scale == HONE_DTYPE_F32) {
        memcpy(out->image[3] + 4 * place, &scale, 4);
    } else {
        out->image[3][place] = (uint8_t)s;
    }
    for (int64_t i = 0; i < rows * cols; i++) {
        const int64_t r = row + i / cols, c = col + i % cols;
        const int e = exponent_of(p, in, r, c);
        const double value = code_value(p, in, r, c);
        const double shifted = ldexp(value, e - s < -60 ? -60 : e - s);
        uint8_t code = numfmt_e4m3_encode((float)shifted);
        if (e == 255) {
            code = (uint8_t)(0x7f | (signbit(value) != 0 ? 0x80 : 0));
        }
        if (fault == NAIVE_NEAREST && shifted != 0 && fabs(shifted) < 0x1p-6) {
            code &= 0x80; /* no subnormals */
        }
        if (fault == NAIVE_ZEROS && value == 0) {
            code = 0; /* -0 loses its sign */
        }
        if (!(fault == NAIVE_TAIL_COLUMN && c == p->k - 1)) {
            out->image[2][r * p->k + c] = code;
        }
    }
}

void naive_mxfp4_fold(const hone_mxfp4_fold *p, const inputs *in, naive_fault fault, inputs *out)
{
    const int64_t down = (p->n + p->block_rows - 1) / p->block_rows;
    const int64_t across = (p->k + p->block_cols - 1) / p->block_cols;

    for (int64_t i = 0; i < p->batch * down * across; i++) {
        const int64_t row = i / across % down * p->block_rows, col = i % across * p->block_cols;
        const int64_t rows = p->n - row < p->block_rows ? p->n - row : p->block_rows;
        const int64_t cols = p->k - col < p->block_cols ? p->k - col : p->block_cols;
        const int64_t batch = i / across / down;
        const bool last = fault == NAIVE_TAIL_ROW && row + rows == p->n;
        if (!(fault == NAIVE_HALF && i >= p->batch * down * across / 2)) {
            put_block(p, in, fault, batch * p->n + row, rows - last, col, cols,
                      (uint64_t)(fault == NAIVE_SWAPPED_SCALE
                                     ? i / across % down + i % across * down
                                     : i),
                      out);
        }
    }
}
