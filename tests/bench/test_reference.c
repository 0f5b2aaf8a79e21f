/* test_reference.c - the references against results worked out by hand and the field's cases
 * (cases.md). */
#include "tests/bench/naive.h"

#include "bench/reference.h"
#include "bench/verify.h"
#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void open_problem(const char *text, hone_problem *problem, inputs_kind kind, inputs *in)
{
    hone_error error = {0};

    ck_assert_msg(hone_problem_parse(text, problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    ck_assert_msg(inputs_make(problem, kind, 3, in, &error) == HONE_OK, "%s", error.message);
}

/* cases.md 1: K = 128 ones, with scales that belong to the payload, are 128 in every recipe. */
START_TEST(a_row_of_ones_is_its_length)
{
    static const char *const texts[] = {
        "fp8_gemm:m=1,n=1,k=128,recipe=f32-1x128-128x128,out=f32",
        "fp8_gemm:m=1,n=1,k=128,recipe=f32-1x128-1x128,out=f32",
        "fp8_gemm:m=1,n=1,k=128,recipe=ue8m0-1x32-1x32,out=f32",
        "fp8_gemm:m=1,n=1,k=128,recipe=f32-1x32-32x32,out=f32",
        "fp8_gemm:m=1,n=1,k=128,recipe=ue8m0-1x32-e2m1/1x32,out=f32",
    };
    hone_problem problem;
    inputs in;
    double value = 0.0, magnitude = 0.0;
    reference_rect rect = {0, 0, 1, 0, 1};

    open_problem(texts[_i], &problem, INPUTS_ONES, &in);
    ck_assert_int_eq(
        reference_fp8_gemm(&problem.as.fp8_gemm, &in, &rect, 1, &value, &magnitude, NULL), HONE_OK);
    ck_assert_double_eq_tol(value, 128.0, 128.0 * 0x1p-22); /* 448 * fl32(1/448) is 1 to fp32 */
    ck_assert_double_eq(value, magnitude);
    inputs_free(&in);
}
END_TEST

/* cases.md 13: A's rows 1, 2, 4, 8, weights 1, K = 64, N = 33: every column is 64, 128, 256, 512.
 */
START_TEST(columns_past_a_tile_keep_their_row)
{
    hone_problem problem;
    inputs in;
    reference_rect rect = {0, 0, 4, 0, 33};
    double value[4 * 33], magnitude[4 * 33];

    open_problem("fp8_gemm:m=4,n=33,k=64,recipe=f32-1x32-1x32,out=f32,a_scale_layout=row", &problem,
                 INPUTS_ONES, &in);
    for (int row = 0; row < 4; row++) { /* the scale carries the row's factor */
        for (int group = 0; group < 2; group++) {
            float scale = ldexpf(1.0f / 448.0f, row);
            memcpy(in.image[1] + 4 * (2 * row + group), &scale, sizeof scale);
        }
    }
    ck_assert_int_eq(
        reference_fp8_gemm(&problem.as.fp8_gemm, &in, &rect, 1, value, magnitude, NULL), HONE_OK);
    for (int i = 0; i < 4 * 33; i++) {
        ck_assert_double_eq_tol(value[i], ldexp(64.0, i / 33), 1e-3);
    }
    inputs_free(&in);
}
END_TEST

/* Against the ops written plainly, by formulas that share nothing: values to one fp32 rounding. */
static const char *const gemms[] = {
    "fp8_gemm:m=5,n=7,k=32,recipe=f32-1x128-128x128,out=f32",
    "fp8_gemm:m=130,n=131,k=320,recipe=f32-1x128-128x128,out=f32",
    "fp8_gemm:m=3,n=40,k=576,recipe=ue8m0-1x32-1x32,out=f32",
    "fp8_gemm:m=18,n=64,k=160,recipe=f32-1x32-32x32,out=f32,accumulate=1",
    "fp8_gemm:m=6,n=8,k=272,recipe=f32-1x128-1x128,out=f32,a_scale_layout=col,b_scale_layout=row",
    "fp8_gemm:m=6,n=40,k=288,recipe=ue8m0-1x32-e2m1/1x32,out=f32",
    "fp8_gemm:m=9,n=70,k=160,recipe=f32-1x128-e2m1/ue8m0/32x32,out=f32",
};

START_TEST(a_gemm_agrees_with_the_plain_one)
{
    hone_problem problem;
    inputs in, out;
    double *value = malloc(2 * sizeof *value * REFERENCE_TILE * REFERENCE_TILE);
    const hone_fp8_gemm *p = &problem.as.fp8_gemm;

    open_problem(gemms[_i], &problem, INPUTS_WIDE, &in);
    ck_assert_int_eq(inputs_copy_outputs(&in, &out, NULL), HONE_OK);
    naive_run(&problem, &in, NAIVE_RIGHT, NULL, &out);
    for (int64_t row = 0; row < p->m; row += 100) {
        reference_rect rect = {0, row, p->m - row < 100 ? p->m - row : 100, 0,
                               p->n < 128 ? p->n : 128};
        ck_assert_int_eq(reference_fp8_gemm(p, &in, &rect, 1, value, value + 16384, NULL), HONE_OK);
        for (int64_t i = 0; i < rect.rows * rect.columns; i++) {
            int64_t at = (row + i / rect.columns) * p->n + i % rect.columns;
            double got = (double)numfmt_decode(HONE_DTYPE_F32, out.image[4], (uint64_t)at);
            ck_assert_double_le(fabs(got - value[i]),
                                0x1p-24 * fabs(value[i]) + 1e-12 * value[16384 + i]);
        }
    }
    inputs_free_outputs(&out);
    inputs_free(&in);
    free(value);
}
END_TEST

START_TEST(threads_share_columns_and_change_no_bit)
{
    hone_problem problem;
    inputs in;
    enum { ROWS = 5, MOST = REFERENCE_TILE };
    static double one[2 * ROWS * MOST], many[2 * ROWS * MOST];
    static const int counts[] = {-1, 2, 3, 4, 5, 64};

    open_problem("fp8_gemm:m=7,n=300,k=288,recipe=f32-1x128-128x128,out=f32,accumulate=1", &problem,
                 INPUTS_WIDE, &in);
    for (int64_t columns = 1; columns <= MOST; columns += columns < 66 ? 1 : 31) {
        const reference_rect rect = {0, 2, ROWS, 131, columns};
        const size_t len = (size_t)(ROWS * columns);
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
            memset(one, 0, sizeof one);
            memset(many, 0, sizeof many);
            ck_assert_int_eq(
                reference_fp8_gemm(&problem.as.fp8_gemm, &in, &rect, 1, one, one + len, NULL),
                HONE_OK);
            ck_assert_int_eq(reference_fp8_gemm(&problem.as.fp8_gemm, &in, &rect, counts[i], many,
                                                many + len, NULL),
                             HONE_OK);
            ck_assert_mem_eq(one, many, sizeof one);
        }
    }
    inputs_free(&in);
}
END_TEST

/* Batches inside a row (V4.1's wo_a): element (m, b, k), scales (m, b * groups + g). */
START_TEST(an_inner_batch_lies_between_row_and_k)
{
    hone_problem problem;
    inputs in;
    reference_rect rect = {2, 1, 1, 3, 1};
    double value = 0.0, magnitude = 0.0, expected = 0.0;

    open_problem("fp8_gemm:m=2,n=8,k=256,batch=3,recipe=f32-1x128-128x128,out=f32,batch_layout="
                 "inner,a_scale_layout=row",
                 &problem, INPUTS_NORMAL, &in);
    ck_assert_int_eq(
        reference_fp8_gemm(&problem.as.fp8_gemm, &in, &rect, 1, &value, &magnitude, NULL), HONE_OK);
    for (size_t k = 0; k < 256; k++) {
        float sa = 0.0f, sb = 0.0f;
        memcpy(&sa, in.image[1] + 4 * (1 * 6 + 2 * 2 + k / 128), 4);
        memcpy(&sb, in.image[3] + 4 * (2 * 2 + k / 128), 4);
        expected += (double)numfmt_e4m3_decode(in.image[0][(1 * 3 + 2) * 256 + k]) *
                    (double)numfmt_e4m3_decode(in.image[2][(2 * 8 + 3) * 256 + k]) * (double)sa *
                    (double)sb;
    }
    ck_assert_double_eq_tol(value, expected, 1e-9 * magnitude);
    inputs_free(&in);
}
END_TEST

START_TEST(a_rectangle_past_d_is_refused)
{
    static const reference_rect wrong[] = {
        {0, 0, 5, 0, 1}, {0, 0, 1, 8, 1}, {1, 0, 1, 0, 1}, {0, 0, 129, 0, 1}, {0, -1, 1, 0, 1}};
    hone_problem problem;
    inputs in;
    double out[2] = {0};

    open_problem("fp8_gemm:m=4,n=8,k=128,recipe=f32-1x128-128x128", &problem, INPUTS_ONES, &in);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(
            reference_fp8_gemm(&problem.as.fp8_gemm, &in, &wrong[i], 1, out, out, NULL),
            HONE_BAD_ARGUMENT);
    }
    inputs_free(&in);
}
END_TEST

/* cases.md 10, 15 and kernels.md App. B: the scale and first code of a tile, by rule and largest
 * magnitude. */
static const struct {
    hone_scale_rule rule;
    float amax;
    uint32_t scale; /* bits */
    uint8_t code;
} tiles[] = {
    {HONE_RULE_POW2_SCALE, 0.0f, 0x39000000, 0x00},   /* 2^-13 */
    {HONE_RULE_POW2_SCALE, 0.05f, 0x39000000, 0x7d},  /* 409.6: 416 */
    {HONE_RULE_POW2_SCALE, 1.0f, 0x3b800000, 0x78},   /* 2^-8 */
    {HONE_RULE_POW2_SCALE, 100.0f, 0x3e800000, 0x7c}, /* 400 ties to the even code, 384 */
    {HONE_RULE_POW2_SCALE, 448.0f, 0x3f800000, 0x7e},
    {HONE_RULE_POW2_SCALE, 449.0f, 0x40000000, 0x76}, /* 224.5: 224 */
    {HONE_RULE_RAW_AMAX, 1.0f, 0x3b124925, 0x7e},
    {HONE_RULE_POW2_AMAX, 0.0f, 0x34800000, 0x00}, /* byte 105 */
    {HONE_RULE_POW2_AMAX, 7.0f, 0x3c800000, 0x7e}, /* 2^-6 exactly */
};

START_TEST(a_tile_takes_the_scale_of_its_rule)
{
    hone_act_quant p = {.m = 1,
                        .k = 128,
                        .in = HONE_DTYPE_F32,
                        .out = HONE_DTYPE_E4M3,
                        .scale = HONE_DTYPE_F32,
                        .group = 128,
                        .scale_layout = HONE_SCALES_ROW,
                        .rule = (int32_t)tiles[_i].rule,
                        .align = 16};
    float x[128] = {tiles[_i].amax}, scale = 0.0f;
    inputs in = {.image = {(uint8_t *)x}};
    uint8_t codes[128], scale_code = 0;
    uint32_t bits = 0;

    reference_act_quant(&p, &in, 0, 0, codes, &scale, &scale_code);
    memcpy(&bits, &scale, sizeof bits);
    ck_assert_uint_eq(bits, tiles[_i].scale);
    ck_assert_uint_eq(codes[0], tiles[_i].code);
    ck_assert_uint_eq(codes[127], 0);
}
END_TEST

/* cases.md 15: a 1 in the corner of 256 x 256 zeros, whose other blocks are zeros under scales that
 * are numbers. */
START_TEST(blocks_of_zeros_are_zeros)
{
    static float w[256 * 256] = {1.0f};
    const inputs in = {.image = {(uint8_t *)w}};
    uint8_t codes[REFERENCE_TILE * REFERENCE_TILE], scale_code = 0;
    int zeros = 0;
    hone_weight_quant p = {.n = 256,
                           .k = 256,
                           .in = HONE_DTYPE_F32,
                           .out = HONE_DTYPE_E4M3,
                           .gran_n = 128,
                           .gran_k = 128,
                           .rule = _i == 0 ? HONE_RULE_RAW_AMAX : HONE_RULE_POW2_AMAX};

    for (int block = 0; block < 4; block++) {
        float scale = 0;
        reference_weight_quant(&p, &in, block / 2, block % 2, codes, &scale, &scale_code);
        ck_assert(isfinite(scale) && scale > 0);
        ck_assert_int_eq(codes[0], block > 0 ? 0 : _i == 0 ? 0x7e : 0x78);
        for (int i = 0; block > 0 && i < 128 * 128; i++) {
            zeros += codes[i] == 0;
        }
    }
    ck_assert_int_eq(zeros, 49152);
}
END_TEST

/* cases.md 9: slots 5, -1, 127, 128 of a cache of 2 x 64 tokens. */
START_TEST(slots_outside_are_skipped_or_counted)
{
    hone_problem problem;
    inputs in;
    uint8_t *cache = NULL;
    uint64_t dropped = 0, nonfinite = 0;
    const int64_t slots[] = {5, -1, 127, 128};
    uint64_t changed = 0;

    open_problem("kv_quant:tokens=4,pages=2,page_size=64,record_format=index_132,record_layout="
                 "split,record_rule=raw_amax",
                 &problem, INPUTS_NORMAL, &in);
    memcpy(in.image[1], slots, sizeof slots);
    for (uint64_t i = 0; i < in.operand[0].bytes; i += 2) { /* 1 and -0.5, whoever had a slot */
        memcpy(in.image[0] + i, i % 4 == 0 ? "\x80\x3f" : "\x00\xbf", 2);
    }
    cache = malloc(in.operand[2].bytes);
    memset(cache, 0xa5, in.operand[2].bytes);
    ck_assert_int_eq(
        reference_kv_quant(&problem.as.kv_quant, &in, cache, &dropped, &nonfinite, NULL), HONE_OK);
    ck_assert_uint_eq(dropped, 1);
    for (uint64_t i = 0; i < in.operand[2].bytes; i++) {
        uint64_t within = i % 8448;
        bool data = (i / 8448 == 0 && within / 128 == 5) ||
                    (i / 8448 == 1 && within < 8192 && within / 128 == 63);
        bool scale = (i == 8192 + 20 || i == 8448 + 8192 + 252);
        changed += cache[i] != 0xa5 ? 1 : 0;
        if (scale) {
            float got = 0.0f;
            memcpy(&got, cache + i, sizeof got);
            ck_assert(got > 0.0f && got < 1.0f);
        }
        ck_assert(data || within >= 8192 || cache[i] == 0xa5);
    }
    ck_assert_uint_ge(changed, 240);
    free(cache);
    inputs_free(&in);
}
END_TEST

/* cases.md 11c: a page stride longer than the page; only the page's own bytes change. */
START_TEST(a_padded_page_stride_leaves_the_padding)
{
    hone_problem problem;
    inputs in;
    uint8_t *cache = NULL;
    uint64_t dropped = 0, nonfinite = 0;

    open_problem("kv_quant:tokens=64,pages=4,page_stride=38400,page_size=64,record_format=v41_528,"
                 "record_layout=split,record_rule=pow2_amax",
                 &problem, INPUTS_NORMAL, &in);
    for (int64_t t = 0; t < 64; t++) {
        int64_t slot = 3 * 64 + t;
        memcpy(in.image[1] + 8 * t, &slot, sizeof slot);
    }
    cache = malloc(in.operand[2].bytes);
    memset(cache, 0xa5, in.operand[2].bytes);
    ck_assert_int_eq(
        reference_kv_quant(&problem.as.kv_quant, &in, cache, &dropped, &nonfinite, NULL), HONE_OK);
    for (uint64_t i = 0; i < 3 * 38400; i++) {
        ck_assert_uint_eq(cache[i], 0xa5);
    }
    ck_assert_uint_ne(cache[3 * 38400 + 32768], 0xa5); /* the first scale */
    free(cache);
    inputs_free(&in);
}
END_TEST

START_TEST(inputs_are_the_same_for_a_seed_and_poisoned_elsewhere)
{
    hone_problem problem;
    inputs a, b;

    open_problem("fp8_gemm:m=5,n=33,k=160,recipe=f32-1x32-1x32,out=bf16", &problem, INPUTS_HOLES,
                 &a);
    open_problem("fp8_gemm:m=5,n=33,k=160,recipe=f32-1x32-1x32,out=bf16", &problem, INPUTS_HOLES,
                 &b);
    for (size_t i = 0; i < a.len; i++) {
        ck_assert_mem_eq(a.image[i], b.image[i], a.operand[i].bytes);
    }
    for (size_t row = 5; row < 8; row++) { /* tma layout: 5 rows padded to 8 */
        ck_assert_uint_eq(a.image[1][4 * row + 3], VERIFY_POISON);
    }
    for (size_t k = 0; k < 160; k++) { /* the hole: row 1 */
        ck_assert_uint_eq(a.image[0][160 + k], 0);
    }
    for (uint64_t i = 0; i < a.operand[4].bytes; i++) {
        ck_assert_uint_eq(a.image[4][i], VERIFY_POISON);
    }
    inputs_free(&a);
    inputs_free(&b);
}
END_TEST

/* All kinds together draw every code of e2m1, both zeros among them; a hole is zeros, an extreme
 * the largest. */
START_TEST(drawn_nibbles_are_all_the_codes)
{
    hone_problem problem;
    inputs in;
    int seen[16] = {0};

    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        open_problem("fp8_gemm:m=2,n=33,k=288,recipe=ue8m0-1x32-e2m1/1x32", &problem,
                     (inputs_kind)kind, &in);
        ck_assert_uint_eq(in.operand[2].bytes, 33 * 144);
        for (uint64_t i = 0; i < in.operand[2].bytes; i++) {
            seen[in.image[2][i] & 15]++;
            seen[in.image[2][i] >> 4]++;
            ck_assert(kind != INPUTS_EXTREMES || (in.image[2][i] & 0x77) == 0x77);
            const bool hole = i % 144 >= 64 && i % 144 < 128; /* k from 128 to 255 */
            ck_assert(kind != INPUTS_HOLES || !hole || in.image[2][i] == 0);
        }
        inputs_free(&in);
    }
    for (int code = 0; code < 16; code++) {
        ck_assert_msg(seen[code] > 0, "code %d", code);
    }
}
END_TEST

START_TEST(slots_are_distinct_and_hold_the_corners)
{
    static const char *const texts[] = {
        "kv_quant:tokens=40,pages=3,page_size=64,record_format=index_132,record_layout=split,"
        "record_rule=raw_amax",
        "kv_quant:tokens=200,pages=1,page_size=64,record_format=index_132,record_layout=split,"
        "record_rule=raw_amax",
        "kv_quant:tokens=3,pages=7,page_size=32,record_format=v41_528,record_layout=split,record_"
        "rule=pow2_amax",
        "kv_quant:tokens=1,pages=64,page_size=64,record_format=index_132,record_layout=split,"
        "record_rule=raw_amax",
    };
    hone_problem problem;
    const hone_kv_quant *p = &problem.as.kv_quant;
    bool met[5] = {false};

    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        inputs in;
        uint8_t seen[4096] = {0};
        open_problem(texts[_i], &problem, (inputs_kind)kind, &in);
        const int64_t capacity = p->pages * p->page_size;
        const int64_t corners[] = {p->page_size - 1, capacity - 1, -1, capacity, INT64_MIN};
        if (p->tokens >= INPUTS_MANY_TOKENS) {
            memset(met, 0, sizeof met); /* one image holds them all */
        }
        for (int64_t t = 0; t < p->tokens; t++) {
            int64_t slot = 0;
            memcpy(&slot, in.image[1] + 8 * t, sizeof slot);
            for (size_t i = 0; i < ARRAY_LEN(corners); i++) {
                met[i] = met[i] || slot == corners[i];
            }
            if (slot >= 0 && slot < capacity) {
                ck_assert_uint_eq(seen[slot]++, 0);
            }
        }
        inputs_free(&in);
        for (size_t i = 0; i < ARRAY_LEN(corners); i++) {
            ck_assert(met[i] || p->tokens < INPUTS_MANY_TOKENS);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(met); i++) {
        ck_assert_msg(met[i], "corner %zu", i);
    }
}
END_TEST

START_TEST(rescaling_keeps_payloads_and_padding)
{
    hone_problem problem;
    inputs in, other;
    hone_error error = {0};
    size_t equal = 0, padding = 0;

    open_problem("fp8_gemm:m=5,n=40,k=160,recipe=ue8m0-1x32-1x32", &problem, INPUTS_HOLES, &in);
    ck_assert_int_eq(inputs_rescale(&problem.as.fp8_gemm.recipe, &in, 3, &other, &error), HONE_OK);
    ck_assert_ptr_eq(other.image[0], in.image[0]);
    ck_assert_ptr_eq(other.image[2], in.image[2]);
    for (size_t i = 0; i < in.operand[3].bytes; i++) {
        bool nan = in.image[3][i] == 0xff;
        ck_assert_int_eq(nan, other.image[3][i] == 0xff);
        padding += nan;
        equal += in.image[3][i] == other.image[3][i];
    }
    ck_assert_uint_lt(equal - padding, (in.operand[3].bytes - padding) / 4);
    inputs_free_rescaled(&other);
    inputs_free(&in);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("reference");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_row_of_ones_is_its_length, 0, 5);
    tcase_add_test(tests, columns_past_a_tile_keep_their_row);
    tcase_add_loop_test(tests, a_gemm_agrees_with_the_plain_one, 0, ARRAY_LEN(gemms));
    tcase_add_test(tests, threads_share_columns_and_change_no_bit);
    tcase_add_test(tests, an_inner_batch_lies_between_row_and_k);
    tcase_add_test(tests, a_rectangle_past_d_is_refused);
    tcase_add_loop_test(tests, a_tile_takes_the_scale_of_its_rule, 0, ARRAY_LEN(tiles));
    tcase_add_loop_test(tests, blocks_of_zeros_are_zeros, 0, 2);
    tcase_add_test(tests, slots_outside_are_skipped_or_counted);
    tcase_add_test(tests, a_padded_page_stride_leaves_the_padding);
    tcase_add_test(tests, inputs_are_the_same_for_a_seed_and_poisoned_elsewhere);
    tcase_add_test(tests, drawn_nibbles_are_all_the_codes);
    tcase_add_loop_test(tests, slots_are_distinct_and_hold_the_corners, 0, 4);
    tcase_add_test(tests, rescaling_keeps_payloads_and_padding);
    return suite_run("bench/reference", tests);
}
