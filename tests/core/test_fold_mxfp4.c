/* test_fold_mxfp4.c - the fold of MXFP4 to e4m3 (kernels.md 5.4): every code at every offset, every
 * pair of exponents, and the edges where the scale has no room. */
#include "core/fold_mxfp4.h"
#include "core/numfmt.h"
#include "core/random.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* e2m1 and e4m3 in float64, from their definitions alone. */
static double e2m1(int code)
{
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

    return (code & 8) != 0 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static double e4m3(int code)
{
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const double magnitude =
        exponent == 0 ? ldexp(mantissa, -9) : ldexp(8 + mantissa, exponent - 10);

    return (code & 0x80) != 0 ? -magnitude : magnitude;
}

/* The nearest of the 127 finite magnitudes by search; of two, that with the even code. */
static int nearest(double value)
{
    int best = 0;

    for (int code = 1; code < 127; code++) {
        double better = fabs(fabs(value) - e4m3(code)), so_far = fabs(fabs(value) - e4m3(best));
        best = better < so_far || (better == so_far && code % 2 == 0) ? code : best;
    }
    return best | (signbit(value) != 0 ? 0x80 : 0);
}

START_TEST(every_code_at_every_offset_is_the_nearest)
{
    for (int offset = -260; offset <= 260; offset++) {
        for (int code = 0; code < 16; code++) {
            double value = ldexp(e2m1(code), offset);
            uint8_t got = fold_mxfp4_code((uint8_t)code, offset);
            ck_assert_msg(got == nearest(value), "code %d at %d: 0x%02x, not 0x%02x", code, offset,
                          got, nearest(value));
            ck_assert_int_eq(fold_mxfp4_exact((uint8_t)code, offset), e4m3(got) == value);
        }
    }
}
END_TEST

/* Exact for all codes iff -8 <= offset <= 6; which codes break first on either side. */
START_TEST(all_codes_are_exact_from_minus_8_to_6)
{
    for (int offset = -30; offset <= 30; offset++) {
        bool all = true;
        for (int code = 0; code < 16; code++) {
            all = all && fold_mxfp4_exact((uint8_t)code, offset);
        }
        ck_assert_int_eq(all, -8 <= offset && offset <= 6);
    }
    for (int code = 0; code < 8; code++) {
        ck_assert_int_eq(fold_mxfp4_exact((uint8_t)code, -9), code != 1 && code != 3);
        ck_assert_int_eq(fold_mxfp4_exact((uint8_t)code, 7), code != 6 && code != 7);
    }
    ck_assert_uint_eq(fold_mxfp4_code(7, 6), 0x7c);  /* 6 * 2^6 = 384 */
    ck_assert_uint_eq(fold_mxfp4_code(7, 7), 0x7e);  /* 768 saturates */
    ck_assert_uint_eq(fold_mxfp4_code(1, -8), 0x01); /* 0.5 * 2^-8 = 2^-9 */
    ck_assert_uint_eq(fold_mxfp4_code(3, -8), 0x03);
    ck_assert_uint_eq(fold_mxfp4_code(8, 0), 0x80); /* -0 stays -0 */
    ck_assert_uint_eq(fold_mxfp4_code(9, -20), 0x80);
}
END_TEST

/* Every pair of exponent bytes, all 16 codes in both groups: exact iff they spread over <= 14. */
START_TEST(a_block_of_two_exponents_is_exact_up_to_a_spread_of_14)
{
    uint8_t codes[2][16], scales[2], out[2][32];

    for (int i = 0; i < 16; i++) {
        codes[0][i] = codes[1][i] = (uint8_t)(i | (15 - i) << 4);
    }
    for (int first = 0; first < 255; first++) {
        for (int second = 0; second < 255; second++) {
            const fold_mxfp4_block block = {codes[0], 16, scales, 1, 2, 1};
            const int largest = first > second ? first : second, spread = abs(first - second);
            scales[0] = (uint8_t)first;
            scales[1] = (uint8_t)second;
            fold_mxfp4_result r = fold_mxfp4(&block, out[0], 32);
            ck_assert_int_eq(r.scale, largest > 6 ? largest - 6 : 0);
            ck_assert_int_eq(r.spread, spread);
            ck_assert_uint_eq(r.nan_groups, 0);
            uint64_t wrong = 0, signs = 0;
            for (int i = 0; i < 64; i++) {
                const int row = i / 32, code = i % 2 == 0 ? i % 32 / 2 : 15 - i % 32 / 2;
                const double value = ldexp(e2m1(code), scales[row] - 127);
                const double got = ldexp(e4m3(out[row][i % 32]), r.scale - 127);
                wrong += got != value;
                signs += (signbit(got) != 0) != (signbit(value) != 0);
            }
            ck_assert_uint_eq(signs, 0);
            ck_assert_uint_eq(r.inexact, wrong);
            ck_assert_int_eq(wrong == 0, spread <= FOLD_MXFP4_SPREAD);
        }
    }
}
END_TEST

START_TEST(groups_of_zeros_do_not_count)
{
    uint8_t codes[3][16] = {{0}}, scales[3] = {250, 100, 3}, out[3][32];
    const fold_mxfp4_block block = {codes[0], 16, scales, 1, 3, 1};

    memset(codes[0], 0x88, 16); /* -0 is zero too */
    codes[1][5] = 0x70;         /* one 6 */
    fold_mxfp4_result r = fold_mxfp4(&block, out[0], 32);
    ck_assert_int_eq(r.scale, 94);
    ck_assert_int_eq(r.spread, 0);
    ck_assert_uint_eq(r.inexact, 0);
    ck_assert_uint_eq(out[1][11], 0x7c);
    ck_assert_uint_eq(out[0][0], 0x80);
    ck_assert_uint_eq(out[2][0], 0);

    codes[1][5] = 0;
    r = fold_mxfp4(&block, out[0], 32);
    ck_assert_int_eq(r.scale, FOLD_MXFP4_EMPTY); /* positive and finite */
}
END_TEST

START_TEST(a_nan_exponent_makes_nan_codes_and_is_counted)
{
    uint8_t codes[2][16], scales[2] = {0xff, 120}, out[2][32];
    const fold_mxfp4_block block = {codes[0], 16, scales, 1, 2, 1};

    memset(codes, 0x92, sizeof codes); /* 1, -0.5 */
    fold_mxfp4_result r = fold_mxfp4(&block, out[0], 32);
    ck_assert_uint_eq(r.nan_groups, 1);
    ck_assert_int_eq(r.scale, 114);
    ck_assert_uint_eq(out[0][0], 0x7f);
    ck_assert_uint_eq(out[0][1], 0xff);
    ck_assert_uint_eq(out[1][0], nearest(64));
    ck_assert_uint_eq(out[1][1], nearest(-32));
}
END_TEST

/* Strides, and bytes between rows that are nobody's. */
START_TEST(only_the_block_is_read_and_written)
{
    enum { ROWS = 5, GROUPS = 3, IN = 16 * GROUPS + 7, OUT = 32 * GROUPS + 9 };
    uint8_t codes[ROWS][IN], scales[ROWS][GROUPS + 2], out[ROWS][OUT];
    const fold_mxfp4_block block = {codes[0], IN, scales[0], GROUPS + 2, ROWS, GROUPS};
    uint64_t random = 7;

    memset(scales, 0xff, sizeof scales);
    memset(out, 0xa5, sizeof out);
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < IN; i++) {
            codes[row][i] = (uint8_t)random_next(&random);
        }
        for (int g = 0; g < GROUPS; g++) {
            scales[row][g] = (uint8_t)(110 + random_below(&random, 15));
        }
    }
    fold_mxfp4_result r = fold_mxfp4(&block, out[0], OUT);
    ck_assert_uint_eq(r.nan_groups, 0);
    ck_assert_uint_eq(r.inexact, 0);
    for (int row = 0; row < ROWS; row++) {
        for (int k = 0; k < OUT; k++) {
            if (k >= 32 * GROUPS) {
                ck_assert_uint_eq(out[row][k], 0xa5);
                continue;
            }
            int byte = codes[row][k / 2], code = k % 2 == 0 ? byte & 15 : byte >> 4;
            ck_assert_double_eq(ldexp(e4m3(out[row][k]), r.scale),
                                ldexp(e2m1(code), scales[row][k / 32]));
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fold_mxfp4");

    tcase_add_test(tests, every_code_at_every_offset_is_the_nearest);
    tcase_add_test(tests, all_codes_are_exact_from_minus_8_to_6);
    tcase_add_test(tests, a_block_of_two_exponents_is_exact_up_to_a_spread_of_14);
    tcase_add_test(tests, groups_of_zeros_do_not_count);
    tcase_add_test(tests, a_nan_exponent_makes_nan_codes_and_is_counted);
    tcase_add_test(tests, only_the_block_is_read_and_written);
    return suite_run("core/fold_mxfp4", tests);
}
