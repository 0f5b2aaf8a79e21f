/* test_pack_scales.c - f32 scales become ue8m0 codes where that is exact; any other is refused by
 * its place, and nothing is written. */
#include "core/numfmt.h"
#include "core/problem.h"
#include "core/random.h"
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

/* cases.md 2: four scales of 2^-7, and four of 0.006975, whose mantissa once leaked into the
 * neighbour's byte. */
START_TEST(four_scales_make_one_word)
{
    const float power[] = {0x1p-7f, 0x1p-7f, 0x1p-7f, 0x1p-7f},
                other[4] = {0.006975f, 0.006975f, 0.006975f, 0.006975f};
    uint32_t words[4] = {0}, none[4] = {0};

    ck_assert_int_eq(hone_pack_scales(power, 1, 4, HONE_SCALES_ROW, HONE_SCALES_PACKED,
                                      (uint8_t *)words, sizeof words, &e),
                     HONE_OK);
    ck_assert_uint_eq(words[0], 0x78787878);
    ck_assert_int_eq(hone_pack_scales(other, 1, 4, HONE_SCALES_ROW, HONE_SCALES_PACKED,
                                      (uint8_t *)none, sizeof none, &e),
                     HONE_BAD_ARGUMENT);
    ck_assert_uint_eq(none[0], 0);
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

/* ---- K-grouped. ---------------------------------------------------------------------------- */

enum { EXPERTS = 4, WORDS = 4, SUMS = 11 };

/* 5, 0, 2 and 4 groups of 4 rows: bytes of the scales, rows side by side. The first word of row 0
 * is kernels.md's (App. B). */
static const int64_t sizes[EXPERTS] = {640, 0, 130, 512};
static const uint8_t exponents[SUMS][4] = {
    {127, 1, 254, 120}, {128, 2, 253, 0},   {126, 3, 252, 121}, {119, 4, 251, 122},
    {10, 5, 250, 123},  {11, 6, 249, 124},  {12, 7, 248, 125},  {13, 8, 247, 126},
    {14, 9, 246, 127},  {15, 10, 245, 128}, {16, 11, 244, 129}};
static const uint32_t golden[WORDS][4] = {
    {0x777e807f, 0x04030201, 0xfbfcfdfe, 0x7a790078},
    {0x0000000a, 0x00000005, 0x000000fa, 0x0000007b},
    {0x00000c0b, 0x00000706, 0x0000f8f9, 0x00007d7c},
    {0x100f0e0d, 0x0b0a0908, 0xf4f5f6f7, 0x81807f7e},
};

static void fill_grouped(float scales[SUMS * 4])
{
    for (int i = 0; i < SUMS * 4; i++) {
        scales[i] = numfmt_ue8m0_decode(exponents[i / 4][i % 4]);
    }
}

START_TEST(every_expert_begins_a_word)
{
    float scales[SUMS * 4];
    uint8_t words[sizeof golden + 1];
    uint64_t bytes = 0;

    memset(words, 0xa5, sizeof words);
    fill_grouped(scales);
    ck_assert_int_eq(hone_pack_scales_grouped(scales, 4, sizes, EXPERTS, 128, words,
                                              sizeof golden - 1, &bytes, &e),
                     HONE_LIMIT);
    ck_assert_uint_eq(bytes, sizeof golden);
    ck_assert_uint_eq(words[0], 0xa5);
    ck_assert_int_eq(
        hone_pack_scales_grouped(scales, 4, sizes, EXPERTS, 128, words, sizeof golden, NULL, &e),
        HONE_OK);
    ck_assert_mem_eq(words, golden, sizeof golden);
    ck_assert_uint_eq(words[sizeof golden], 0xa5);
    /* An expert alone is a matrix of its own, packed, of rows that are a multiple of 4. */
    float turned[5 * 4];
    uint8_t alone[2 * 16];
    for (int i = 0; i < 20; i++) {
        turned[i % 4 * 5 + i / 4] = scales[i];
    }
    ck_assert_int_eq(hone_pack_scales(turned, 4, 5, HONE_SCALES_ROW, HONE_SCALES_PACKED, alone,
                                      sizeof alone, &e),
                     HONE_OK);
    ck_assert_mem_eq(alone, golden, sizeof alone);
}
END_TEST

/* Experts of any sizes, against words that are put together one by one. */
START_TEST(words_are_those_of_each_experts_groups)
{
    enum { ROWS_4 = 8, MOST = 40, FEW = 7 };
    static float scales[FEW * MOST * ROWS_4];
    static uint8_t words[FEW * MOST * ROWS_4];
    uint64_t random = 3 + (uint64_t)_i, bytes = 0;
    int64_t k[FEW], first[FEW + 1] = {0};
    const int32_t gran = _i % 2 == 0 ? 32 : 128;
    size_t at = 0;

    for (int x = 0; x < FEW; x++) {
        k[x] = random_below(&random, 3) == 0 ? 0 : (int64_t)random_below(&random, MOST * 32);
        first[x + 1] = first[x] + (k[x] + gran - 1) / gran;
    }
    for (int64_t i = 0; i < first[FEW] * ROWS_4; i++) {
        scales[i] = numfmt_ue8m0_decode((uint8_t)random_below(&random, 255));
    }
    ck_assert_msg(hone_pack_scales_grouped(scales, ROWS_4, k, FEW, gran, words, sizeof words,
                                           &bytes, &e) == HONE_OK,
                  "%s", e.message);
    for (int x = 0; x < FEW; x++) {
        for (int64_t group = first[x]; group < first[x + 1]; group += 4) {
            for (int row = 0; row < ROWS_4; row++, at += 4) {
                for (int byte = 0; byte < 4; byte++) {
                    const bool there = group + byte < first[x + 1];
                    const float scale = there ? scales[(group + byte) * ROWS_4 + row] : 0;
                    ck_assert_int_eq(words[at + (size_t)byte], there ? ilogbf(scale) + 127 : 0);
                }
            }
        }
    }
    ck_assert_uint_eq(bytes, at);
}
END_TEST

/* rows, the first k, experts, gran_k, and what the error says. */
static const struct {
    int64_t rows, k, experts;
    int32_t gran_k;
    hone_status status;
    const char *words;
} shapes[] = {
    {6, 640, 4, 128, HONE_BAD_ARGUMENT, "rows=6"},
    {-4, 640, 4, 128, HONE_BAD_ARGUMENT, "rows=-4"},
    {4, -1, 4, 128, HONE_BAD_ARGUMENT, "k[0]=-1"},
    {4, 640, 129, 128, HONE_BAD_ARGUMENT, "experts=129"},
    {4, 640, -1, 128, HONE_BAD_ARGUMENT, "experts=-1"},
    {4, 640, 4, 64, HONE_BAD_ARGUMENT, "gran_k=64"},
    {4, INT64_MAX, 4, 32, HONE_LIMIT, "need"},
    {INT64_MAX - 3, INT64_MAX, 4, 32, HONE_OVERFLOW, "2^64"},
};

START_TEST(shapes_of_experts_are_refused_by_name)
{
    float scales[SUMS * 4];
    uint8_t words[sizeof golden];
    int64_t k[EXPERTS];

    memset(words, 0xa5, sizeof words);
    memcpy(k, sizes, sizeof k);
    k[0] = shapes[_i].k;
    fill_grouped(scales);
    ck_assert_int_eq(hone_pack_scales_grouped(scales, shapes[_i].rows, k, shapes[_i].experts,
                                              shapes[_i].gran_k, words, sizeof words, NULL, &e),
                     shapes[_i].status);
    ck_assert_msg(strstr(e.message, shapes[_i].words) != NULL, "%s", e.message);
    ck_assert_uint_eq(words[0], 0xa5);
}
END_TEST

START_TEST(any_other_scale_of_an_expert_is_refused_by_its_place)
{
    float scales[SUMS * 4];
    uint8_t words[sizeof golden];

    memset(words, 0xa5, sizeof words);
    fill_grouped(scales);
    scales[6 * 4 + 3] = wrong[_i];
    ck_assert_int_eq(
        hone_pack_scales_grouped(scales, 4, sizes, EXPERTS, 128, words, sizeof words, NULL, &e),
        HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(e.message, "[6, 3]") != NULL, "%s", e.message);
    ck_assert_uint_eq(words[0], 0xa5);
}
END_TEST

START_TEST(no_experts_need_no_words)
{
    uint64_t bytes = 9;
    const int64_t none[2] = {0, 0};

    ck_assert_int_eq(hone_pack_scales_grouped(NULL, 4, NULL, 0, 32, NULL, 0, &bytes, &e), HONE_OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(hone_pack_scales_grouped(NULL, 4, none, 2, 32, NULL, 0, &bytes, &e), HONE_OK);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_int_eq(hone_pack_scales_grouped(NULL, 4, sizes, 4, 32, NULL, 0, &bytes, &e),
                     HONE_BAD_ARGUMENT);
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
    tcase_add_test(tests, four_scales_make_one_word);
    tcase_add_loop_test(tests, any_other_scale_is_refused_by_its_place, 0, (int)ARRAY_LEN(wrong));
    tcase_add_test(tests, a_layout_that_the_dtype_lacks_is_refused);
    tcase_add_test(tests, every_expert_begins_a_word);
    tcase_add_loop_test(tests, words_are_those_of_each_experts_groups, 0, 20);
    tcase_add_loop_test(tests, shapes_of_experts_are_refused_by_name, 0, (int)ARRAY_LEN(shapes));
    tcase_add_loop_test(tests, any_other_scale_of_an_expert_is_refused_by_its_place, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(tests, no_experts_need_no_words);
    tcase_add_test(tests, every_code_and_nothing_else_is_exact);
    return suite_run("core/pack_scales", tests);
}
