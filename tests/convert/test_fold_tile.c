/* test_fold_tile.c - tiles against the plain fold, byte for byte and for each instruction set; what
 * rules cost against float64; and the figures of kernels.md 5.4's setting. */
#include "convert/fold_tile.h"
#include "core/fold_mxfp4.h"
#include "core/numfmt.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fold_costs costs;

/* rows, cols, block rows, block cols, exponents: from, count; one group in n is zero, one NaN;
 * exponents' rise from row to row */
static const struct {
    uint64_t rows, cols;
    uint32_t block_rows, block_cols;
    unsigned from, exponents, zeros, nans, rise;
} shapes[] = {
    {128, 128, 128, 128, 110, 10, 0, 0, 0}, {128, 512, 128, 128, 110, 15, 3, 0, 0},
    {300, 416, 128, 128, 100, 30, 5, 0, 0}, {33, 96, 32, 32, 110, 20, 2, 0, 0},
    {7, 1120, 1, 128, 90, 40, 4, 0, 0},     {1, 32, 128, 128, 0, 12, 0, 0, 0},
    {129, 160, 128, 128, 0, 255, 2, 0, 0},  {130, 128, 128, 128, 240, 15, 2, 0, 0},
    {64, 256, 32, 32, 110, 12, 2, 9, 0},    {5, 288, 1, 128, 0, 60, 3, 7, 0},
    {256, 96, 128, 128, 120, 1, 1, 0, 0},   {64, 64, 32, 32, 0, 8, 0, 0, 0},
    {70, 544, 1, 128, 0, 9, 4, 0, 3},       {250, 96, 1, 128, 2, 3, 0, 0, 1},
};

typedef struct matrix {
    uint8_t *codes, *scales, *want, *got, *want_scales, *got_scales;
    fold_tile tile;
    uint64_t blocks, out_bytes;
} matrix;

static const uint64_t pad = 5; /* bytes behind each row that are nobody's */

static void fill(matrix *m, int shape)
{
    const uint64_t rows = shapes[shape].rows, groups = shapes[shape].cols / 32;
    uint64_t random = 99 + (uint64_t)shape;

    *m = (matrix){.tile = {.codes_stride = 16 * groups + pad,
                           .scales_stride = groups + pad,
                           .rows = rows,
                           .cols = 32 * groups,
                           .block_rows = shapes[shape].block_rows,
                           .block_cols = shapes[shape].block_cols,
                           .out_stride = 32 * groups + pad}};
    fold_tile *t = &m->tile;
    m->blocks = (rows + t->block_rows - 1) / t->block_rows *
                ((t->cols + t->block_cols - 1) / t->block_cols);
    m->out_bytes = rows * t->out_stride;
    t->codes = m->codes = malloc(rows * t->codes_stride);
    t->scales = m->scales = malloc(rows * t->scales_stride);
    m->want = malloc(m->out_bytes);
    t->out = m->got = malloc(m->out_bytes);
    m->want_scales = malloc(m->blocks);
    t->out_scales = m->got_scales = malloc(m->blocks);
    memset(m->scales, 0xff, rows * t->scales_stride);
    memset(m->want, 0xa5, m->out_bytes);
    for (uint64_t i = 0; i < rows * t->codes_stride; i++) {
        m->codes[i] = (uint8_t)random_next(&random);
    }
    for (uint64_t i = 0; i < rows * groups; i++) {
        uint8_t *scale = &m->scales[i / groups * t->scales_stride + i % groups];
        *scale = (uint8_t)(shapes[shape].from + shapes[shape].rise * (i / groups) +
                           random_below(&random, shapes[shape].exponents));
        if (shapes[shape].zeros > 0 && random_below(&random, shapes[shape].zeros) == 0) {
            memset(&m->codes[i / groups * t->codes_stride + i % groups * 16],
                   random_below(&random, 2) == 0 ? 0x80 : 0, 16);
        }
        if (shapes[shape].nans > 0 && random_below(&random, shapes[shape].nans) == 0) {
            *scale = 0xff;
        }
    }
}

static void matrix_free(matrix *m)
{
    free(m->codes);
    free(m->scales);
    free(m->want);
    free(m->got);
    free(m->want_scales);
    free(m->got_scales);
}

/* The float64 value of element (row, col), and whether it is a number. */
static bool value_at(const matrix *m, uint64_t row, uint64_t col, double *out)
{
    const uint8_t e = m->scales[row * m->tile.scales_stride + col / 32];
    const uint8_t byte = m->codes[row * m->tile.codes_stride + col / 2];

    *out = ldexp((double)numfmt_e2m1_decode(col % 2 == 0 ? byte & 15 : byte >> 4), e - 127);
    return e != 0xff;
}

/* What a block costs, element by element. */
static void block_costs(const matrix *m, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                        uint8_t scale, fold_sums *block)
{
    double amax = 0, x = 0;

    for (uint64_t i = 0; i < rows * cols; i++) {
        if (value_at(m, row + i / cols, col + i % cols, &x) && fabs(x) > amax) {
            amax = fabs(x);
        }
    }
    /* floats of a range of their own: amax lies in [1, 2) */
    const int up = amax > 0 ? -ilogb(amax) : 0;
    const float raw = (float)ldexp(amax, up) / 448.0f;
    int power = amax > 0 ? (int)lround(log2(ldexp(amax, up) / 448)) : 0;
    if (power - up < -127) {
        power = up - 127;
    }
    for (uint64_t i = 0; i < rows * cols && amax > 0; i++) {
        if (!value_at(m, row + i / cols, col + i % cols, &x)) {
            continue;
        }
        const double v = ldexp(x, up);
        const double by_raw =
            (double)numfmt_e4m3_decode(numfmt_e4m3_encode((float)v / raw)) * (double)raw;
        const double under = ldexp(v, -power);
        const double by_power =
            ldexp((double)numfmt_e4m3_decode(numfmt_e4m3_encode((float)under)), power);
        const double folded =
            ldexp((double)numfmt_e4m3_decode(numfmt_e4m3_encode((float)ldexp(x, 127 - scale))),
                  scale - 127);
        block->square += x * x;
        block->fold += (folded - x) * (folded - x);
        block->amax += ldexp((by_raw - v) * (by_raw - v), -2 * up);
        block->nearest += ldexp((by_power - v) * (by_power - v), -2 * up);
        block->saturated += fabs(under) > 448;
    }
}

/* The whole by the plain fold, block by block. */
static fold_sums reference(matrix *m)
{
    const fold_tile *t = &m->tile;
    fold_sums sums = {0};
    uint64_t at = 0;

    for (uint64_t row = 0; row < t->rows; row += t->block_rows) {
        for (uint64_t col = 0; col < t->cols; col += t->block_cols, at++) {
            uint64_t rows = t->rows - row < t->block_rows ? t->rows - row : t->block_rows;
            uint64_t cols = t->cols - col < t->block_cols ? t->cols - col : t->block_cols;
            fold_mxfp4_block block = {m->codes + row * t->codes_stride + col / 2,
                                      t->codes_stride,
                                      m->scales + row * t->scales_stride + col / 32,
                                      t->scales_stride,
                                      rows,
                                      cols / 32};
            fold_mxfp4_result r =
                fold_mxfp4(&block, m->want + row * t->out_stride + col, t->out_stride);
            fold_sums one = {.blocks = 1, .elements = rows * cols, .inexact = r.inexact};
            one.nan_groups = r.nan_groups;
            one.exact = r.inexact == 0 && r.nan_groups == 0;
            one.wide = r.spread > 14;
            block_costs(m, row, col, rows, cols, r.scale, &one);
            one.inexact_square = one.exact ? 0 : one.square;
            m->want_scales[at] = r.scale;
            fold_sums_add(&sums, &one);
        }
    }
    return sums;
}

static void is_near(double got, double want, double scale)
{
    ck_assert_msg(fabs(got - want) <= 1e-12 * scale, "%.17g, not %.17g", got, want);
}

START_TEST(tiles_are_the_plain_fold_and_its_costs)
{
    matrix m;
    fill(&m, _i);
    const fold_sums want = reference(&m);

    for (size_t i = 0; fold_lanes_at(i) != NULL; i++) {
        fold_sums got = {0};
        memset(m.got, 0xa5, m.out_bytes);
        memset(m.got_scales, 0xa5, m.blocks);
        fold_tile_run(&m.tile, fold_lanes_at(i), &costs, &got);
        ck_assert_msg(memcmp(m.got, m.want, m.out_bytes) == 0, "%s",
                      fold_lanes_name(fold_lanes_at(i)));
        ck_assert_mem_eq(m.got_scales, m.want_scales, m.blocks);
        ck_assert_uint_eq(got.blocks, want.blocks);
        ck_assert_uint_eq(got.exact, want.exact);
        ck_assert_uint_eq(got.wide, want.wide);
        ck_assert_uint_eq(got.elements, want.elements);
        ck_assert_uint_eq(got.inexact, want.inexact);
        ck_assert_uint_eq(got.nan_groups, want.nan_groups);
        ck_assert_uint_eq(got.saturated, want.saturated);
        is_near(got.square, want.square, want.square);
        is_near(got.inexact_square, want.inexact_square, want.square);
        is_near(got.fold, want.fold, want.square);
        is_near(got.amax, want.amax, want.square);
        is_near(got.nearest, want.nearest, want.square);
    }
    matrix_free(&m);
}
END_TEST

/* All 16 codes at every exponent in turn, in every lane of the widest vectors. */
START_TEST(every_code_at_every_exponent_in_every_lane)
{
    enum { GROUPS = 11 };
    uint8_t codes[GROUPS][16], scales[GROUPS], got[GROUPS][32], want[GROUPS][32], scale[2];

    for (int first = 0; first < 255; first++) {
        for (int g = 0; g < GROUPS; g++) {
            for (int i = 0; i < 16; i++) {
                codes[g][i] = (uint8_t)(((i + g) & 15) | ((i * 7 + first) & 15) << 4);
            }
            scales[g] = (uint8_t)((first + 3 * g) % 255);
        }
        const fold_mxfp4_block block = {codes[0], sizeof codes, scales, GROUPS, 1, GROUPS};
        fold_mxfp4_result r = fold_mxfp4(&block, want[0], sizeof want);
        for (size_t i = 0; fold_lanes_at(i) != NULL; i++) {
            const fold_tile tile = {codes[0], sizeof codes, scales, GROUPS,     1,    32 * GROUPS,
                                    1,        32 * 16,      got[0], sizeof got, scale};
            fold_sums sums = {0};
            fold_tile_run(&tile, fold_lanes_at(i), &costs, &sums);
            ck_assert_int_eq(scale[0], r.scale);
            ck_assert_mem_eq(got, want, sizeof got);
        }
    }
}
END_TEST

static double normal(uint64_t *random)
{
    return sqrt(-2 * log(random_unit(random))) * cos(2 * acos(-1.0) * random_unit(random));
}

/* 200 blocks of 128 x 128 normal weights, sigma 0.02, each row times exp(0.5 * normal); MXFP4 by
 * the ceiling rule. */
START_TEST(the_known_figures_come_out)
{
    enum { ROWS = 128 * 200, COLS = 128 };
    uint8_t *codes = malloc(ROWS * COLS / 2), *scales = malloc(ROWS * COLS / 32);
    uint8_t *out = malloc(ROWS * COLS), out_scales[200];
    uint64_t random = 20260801;
    fold_sums sums = {0};

    for (int row = 0; row < ROWS; row++) {
        const double factor = 0.02 * exp(0.5 * normal(&random));
        for (int g = 0; g < COLS / 32; g++) {
            float x[32], amax = 0;
            for (int k = 0; k < 32; k++) {
                x[k] = (float)(factor * normal(&random));
                amax = fmaxf(amax, fabsf(x[k]));
            }
            uint8_t e = numfmt_ue8m0_ceil(amax / 6);
            for (int k = 0; k < 32; k++) {
                numfmt_encode(HONE_DTYPE_E2M1, codes + ((size_t)row * COLS + 32 * g) / 2,
                              (uint64_t)k, ldexpf(x[k], 127 - e));
            }
            scales[row * (COLS / 32) + g] = e;
        }
    }
    const fold_tile tile = {codes, COLS / 2, scales, COLS / 32, ROWS,      COLS,
                            128,   128,      out,    COLS,      out_scales};
    fold_tile_run(&tile, fold_lanes_best(), &costs, &sums);
    ck_assert_uint_eq(sums.blocks, 200);
    ck_assert_uint_eq(sums.exact, 200);
    ck_assert_double_eq(sums.fold, 0);
    const double amax = sqrt(sums.amax / sums.square), nearest = sqrt(sums.nearest / sums.square);
    ck_assert_msg(2.90e-2 < amax && amax < 2.91e-2, "amax/448 costs %g", amax);
    ck_assert_msg(1.03e-2 < nearest && nearest < 1.05e-2, "the nearest power costs %g", nearest);
    ck_assert_uint_eq(sums.saturated, 393); /* docs/convert.md */
    printf("fold 0, amax/448 %.3e, nearest UE8M0 %.3e with %llu of %llu saturated\n", amax, nearest,
           (unsigned long long)sums.saturated, (unsigned long long)sums.elements);
    free(codes);
    free(scales);
    free(out);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fold_tile");

    fold_costs_make(&costs);
    tcase_add_loop_test(tests, tiles_are_the_plain_fold_and_its_costs, 0, (int)ARRAY_LEN(shapes));
    tcase_add_test(tests, every_code_at_every_exponent_in_every_lane);
    tcase_add_test(tests, the_known_figures_come_out);
    return suite_run("convert/fold_tile", tests);
}
