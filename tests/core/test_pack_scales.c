/* test_pack_scales.c - f32 scales become ue8m0 codes where that is exact; any other is refused by
 * its place, and nothing is written. */
#include "core/numfmt.h"
#include "core/problem.h"
#include "tests/support/suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 6, GROUPS = 7 };

static hone_error e;

/* Place of (row, group) in f32 layouts, and of its byte in ue8m0 ones, written out. */
static size_t f32_place(hone_scale_layout layout, size_t row, size_t group)
{
    return layout == HONE_SCALES_ROW   ? row * GROUPS + group
           : layout == HONE_SCALES_COL ? group * ROWS + row
                                       : group * 8 + row; /* tma: 6 rows padded to 8 */
}

static size_t code_place(hone_scale_layout layout, size_t row, size_t group)
{
    return layout == HONE_SCALES_PACKED ? group / 4 * 32 + row * 4 + group % 4
                                        : f32_place(layout, row, group);
}

static int exponent_of(size_t row, size_t group)
{
    return (int)(row * GROUPS + group) * 6 - 127; /* from the least code on */
}

static void fill(hone_scale_layout layout, float scales[64])
{
    for (int i = 0; i < 64; i++) {
        scales[i] = NAN; /* padding is not looked at */
    }
    for (size_t i = 0; i < ROWS * GROUPS; i++) {
        scales[f32_place(layout, i / GROUPS, i % GROUPS)] =
            ldexpf(1.0f, exponent_of(i / GROUPS, i % GROUPS));
    }
}

static const hone_scale_layout from[] = {HONE_SCALES_ROW, HONE_SCALES_COL, HONE_SCALES_TMA};
static const hone_scale_layout to[] = {HONE_SCALES_ROW, HONE_SCALES_COL, HONE_SCALES_PACKED};

START_TEST(powers_of_two_become_their_codes_in_every_layout)
{
    const hone_scale_layout in = from[_i / 3], out = to[_i % 3];
    const size_t bytes = out == HONE_SCALES_PACKED ? 64 : ROWS * GROUPS;
    uint8_t codes[65], seen[64] = {0};
    float scales[64];

    memset(codes, 0xa5, sizeof codes);
    fill(in, scales);
    ck_assert_int_eq(hone_pack_scales(scales, ROWS, GROUPS, in, out, codes, bytes - 1, &e),
                     HONE_LIMIT);
    ck_assert_uint_eq(codes[0], 0xa5);
    ck_assert_int_eq(hone_pack_scales(scales, ROWS, GROUPS, in, out, codes, bytes, &e), HONE_OK);
    for (size_t i = 0; i < ROWS * GROUPS; i++) {
        const size_t at = code_place(out, i / GROUPS, i % GROUPS);
        ck_assert_int_eq(codes[at], exponent_of(i / GROUPS, i % GROUPS) + 127);
        seen[at] = 1;
    }
    for (size_t i = 0; i < bytes; i++) { /* padding is the least code, not NaN */
        ck_assert(seen[i] || codes[i] == 0);
    }
    ck_assert_uint_eq(codes[bytes], 0xa5);
}
END_TEST

static const float wrong[] = {0.3f,     0.0f,      -0.0f,     -1.0f, 1.5f,  0x1.000002p0f,
                              INFINITY, -INFINITY, 0x1p-128f, NAN,   3e38f, 1.0f / 448.0f};

START_TEST(any_other_scale_is_refused_by_its_place)
{
    const hone_scale_layout in = from[_i % 3];
    float scales[64];
    uint8_t codes[64];
    char value[32];

    memset(codes, 0xa5, sizeof codes);
    fill(in, scales);
    scales[f32_place(in, 4, 5)] = wrong[_i];
    ck_assert_int_eq(hone_pack_scales(scales, ROWS, GROUPS, in, HONE_SCALES_PACKED, codes, 64, &e),
                     HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(e.message, "[4, 5]") != NULL, "%s", e.message);
    snprintf(value, sizeof value, "= %.9g ", (double)wrong[_i]);
    ck_assert_msg(strstr(e.message, value) != NULL, "%s", e.message);
    for (size_t i = 0; i < sizeof codes; i++) {
        ck_assert_uint_eq(codes[i], 0xa5);
    }
}
END_TEST

START_TEST(a_layout_that_the_dtype_lacks_is_refused)
{
    float scale = 1.0f;
    uint8_t code[16];

    ck_assert_int_eq(
        hone_pack_scales(&scale, 1, 1, HONE_SCALES_PACKED, HONE_SCALES_ROW, code, sizeof code, &e),
        HONE_BAD_ARGUMENT);
    ck_assert_int_eq(
        hone_pack_scales(&scale, 1, 1, HONE_SCALES_ROW, HONE_SCALES_TMA, code, sizeof code, &e),
        HONE_BAD_ARGUMENT);
    ck_assert_int_eq(
        hone_pack_scales(&scale, -1, 1, HONE_SCALES_ROW, HONE_SCALES_ROW, code, sizeof code, &e),
        HONE_BAD_PROBLEM);
    ck_assert_int_eq(
        hone_pack_scales(NULL, 1, 1, HONE_SCALES_ROW, HONE_SCALES_ROW, code, sizeof code, &e),
        HONE_BAD_ARGUMENT);
    ck_assert_int_eq(
        hone_pack_scales(NULL, 0, 1, HONE_SCALES_ROW, HONE_SCALES_ROW, code, sizeof code, &e),
        HONE_OK);
    ck_assert_int_eq(hone_pack_scales(NULL, INT64_MAX / 4, 0, HONE_SCALES_ROW, HONE_SCALES_ROW,
                                      code, sizeof code, &e),
                     HONE_OK); /* of no columns: not walked through */
}
END_TEST

/* Of all floats with few bits set, exactly the codes' values have a code. */
START_TEST(every_code_and_nothing_else_is_exact)
{
    uint8_t code;
    int found = 0;

    for (uint32_t high = 0; high < 0x10000; high++) {
        for (uint32_t low = 0; low < 3; low++) {
            const float x = numfmt_float(high << 16 | low);
            if (numfmt_ue8m0_exact(x, &code)) {
                found++;
                ck_assert(numfmt_ue8m0_decode(code) == x);
            }
        }
    }
    ck_assert_int_eq(found, 255);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pack_scales");

    tcase_add_loop_test(tests, powers_of_two_become_their_codes_in_every_layout, 0, 9);
    tcase_add_loop_test(tests, any_other_scale_is_refused_by_its_place, 0, (int)ARRAY_LEN(wrong));
    tcase_add_test(tests, a_layout_that_the_dtype_lacks_is_refused);
    tcase_add_test(tests, every_code_and_nothing_else_is_exact);
    return suite_run("core/pack_scales", tests);
}
