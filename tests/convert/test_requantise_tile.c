/* test_requantise_tile.c - tiles given other blocks: every instruction set gives the bytes and the
 * figures of plain loops, in place too. */
#include "convert/requantise_tile.h"
#include "core/status.h"
#include "core/numfmt.h"
#include "core/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The tile, one block, by the definition. */
static requantise_sums plain_block(const requantise_tile *t, uint8_t *out, float *scale)
{
    requantise_sums sums = {.blocks = 1, .elements = t->rows * t->cols};
    float amax = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < t->rows * t->cols; i++) {
            const uint64_t r = i / t->cols, c = i % t->cols;
            const uint8_t code = t->codes[r * t->codes_stride + c];
            const float from = t->scales[(t->row + r) / t->from_rows * t->scales_stride +
                                         (t->col + c) / t->from_cols];
            const float decoded = numfmt_e4m3_decode(code & 0x7f);
            if ((code & 0x7f) == 0x7f) {
                out[i] = code;
                sums.nan_codes += (uint64_t)pass;
            } else if (pass == 0) {
                amax = fmaxf(amax, decoded * from);
            } else {
                const double value = (double)decoded * (double)from;
                out[i] = numfmt_e4m3_encode(decoded * from / *scale);
                const double got = (double)numfmt_e4m3_decode(out[i]) * (double)*scale;
                out[i] |= code & 0x80;
                sums.square += value * value;
                sums.error += (got - value) * (got - value);
                sums.inexact += got != value;
                sums.saturated += decoded * from / *scale > 448;
            }
        }
        *scale = requantise_scale(amax, t->rule);
    }
    sums.exact = sums.inexact == 0;
    return sums;
}

/* Old blocks, columns of the tile (of 128 rows), a spread of old scales in binades, and whether
 * they are powers of two. */
static const struct {
    uint64_t from_rows, from_cols, cols;
    int spread, least;
    bool pow2;
    plan_rule rule;
} tiles[] = {
    {32, 32, 128, 1, -9, true, PLAN_CEIL},    {32, 32, 128, 12, -40, true, PLAN_CEIL},
    {1, 32, 128, 20, -60, false, PLAN_AMAX},  {1, 128, 100, 9, -9, false, PLAN_CEIL},
    {64, 64, 17, 7, -9, false, PLAN_NEAREST}, {128, 128, 128, 1, -126, false, PLAN_CEIL},
    {32, 32, 128, 30, -126, true, PLAN_AMAX}, {128, 3, 127, 5, 100, false, PLAN_AMAX},
    {7, 5, 33, 18, -20, true, PLAN_NEAREST},  {32, 32, 128, 60, -50, false, PLAN_CEIL},
};

/* As a conversion does it, whose tile lies in the thread's own cache. */
static void hold_in_place(const requantise_tile *t, const fold_lanes *lanes, const uint8_t *want,
                          const requantise_sums *sums)
{
    uint8_t *codes = malloc(t->rows * t->cols);
    requantise_tile in_place = *t;
    requantise_sums again = {0};

    ck_assert_ptr_nonnull(codes);
    for (uint64_t r = 0; r < t->rows; r++) {
        memcpy(codes + r * t->cols, t->codes + r * t->codes_stride, t->cols);
    }
    in_place.codes = in_place.out = codes;
    in_place.codes_stride = t->cols;
    requantise_tile_run(&in_place, lanes, &again);
    ck_assert_msg(memcmp(codes, want, t->rows * t->cols) == 0, "%s", fold_lanes_name(lanes));
    ck_assert_msg(memcmp(&again, sums, sizeof again) == 0, "%s", fold_lanes_name(lanes));
    free(codes);
}

START_TEST(every_instruction_set_gives_the_plain_bytes_and_figures)
{
    enum { N = 128, STRIDE = 131 };
    static uint8_t codes[N * STRIDE], want[N * N], got[N * N];
    static float scales[N * N];
    uint64_t random = 40 + (uint64_t)_i;
    float want_scale = 0, got_scale = 0;
    requantise_tile t = {.codes = codes,
                         .codes_stride = STRIDE,
                         .scales = scales,
                         .scales_stride = N,
                         .rows = N,
                         .cols = tiles[_i].cols,
                         .from_rows = tiles[_i].from_rows,
                         .from_cols = tiles[_i].from_cols,
                         .block_rows = N,
                         .block_cols = N,
                         .rule = tiles[_i].rule,
                         .out = got,
                         .out_scales = &got_scale};

    for (size_t i = 0; i < sizeof codes; i++) { /* all 256 of them, NaN too */
        codes[i] = (uint8_t)random_next(&random);
    }
    for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
        const double mantissa = tiles[_i].pow2 ? 1 : 1 + random_unit(&random);
        scales[i] = (float)ldexp(
            mantissa, tiles[_i].least + (int)random_below(&random, (uint64_t)tiles[_i].spread));
    }
    const requantise_sums sums = plain_block(&t, want, &want_scale);
    for (size_t i = 0; fold_lanes_at(i) != NULL; i++) {
        const char *name = fold_lanes_name(fold_lanes_at(i));
        requantise_sums made = {0};
        memset(got, 0xa5, sizeof got);
        requantise_tile_run(&t, fold_lanes_at(i), &made);
        ck_assert_msg(memcmp(got, want, N * t.cols) == 0, "%s", name);
        ck_assert_msg(got_scale == want_scale, "%s", name);
        ck_assert_uint_eq(made.elements, sums.elements);
        ck_assert_uint_eq(made.exact, sums.exact);
        ck_assert_uint_eq(made.inexact, sums.inexact);
        ck_assert_uint_eq(made.saturated, sums.saturated);
        ck_assert_uint_eq(made.nan_codes, sums.nan_codes);
        ck_assert_double_le(fabs(made.square - sums.square), 1e-12 * sums.square);
        ck_assert_double_le(fabs(made.error - sums.error), 1e-12 * sums.square);

        hold_in_place(&t, fold_lanes_at(i), want, &made);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("requantise_tile");

    tcase_add_loop_test(tests, every_instruction_set_gives_the_plain_bytes_and_figures, 0,
                        (int)ARRAY_LEN(tiles));
    return suite_run("convert/requantise_tile", tests);
}
