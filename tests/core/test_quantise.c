/* test_quantise.c - payload and scale belong together: the incidents that began with a scale
 * rounded alone (cases.md 1, 3, 10, 15), as numbers. */
#include "core/numfmt.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const hone_scale_rule rules[] = {HONE_RULE_POW2_AMAX, HONE_RULE_RAW_AMAX,
                                        HONE_RULE_POW2_SCALE, HONE_RULE_RAW_TINY};

static bool makes_powers(hone_scale_rule rule)
{
    return rule == HONE_RULE_POW2_AMAX || rule == HONE_RULE_POW2_SCALE;
}

/* amax, then the ue8m0 byte with the floor under amax, and under the scale (kernels.md App. B). */
static const struct {
    float amax;
    int amax_floor, scale_floor;
} bytes[] = {
    {0, 105, 114},     {1e-5f, 105, 114}, {1e-4f, 105, 114},
    {0.01f, 112, 114}, {0.3f, 117, 117},  {1, 119, 119},
    {3.5f, 120, 120},  {7, 121, 121},     {0x1.c00002p2f, 122, 122},
    {447, 127, 127},   {448, 127, 127},   {449, 128, 128},
    {1000, 129, 129},  {57344, 134, 134},
};

START_TEST(power_of_two_scales_are_the_golden_bytes)
{
    const float amax = bytes[_i].amax;
    float amax_scale = numfmt_scale(amax, HONE_RULE_POW2_AMAX, HONE_DTYPE_E4M3);
    float tiny_scale = numfmt_scale(amax, HONE_RULE_POW2_SCALE, HONE_DTYPE_E4M3);

    ck_assert_double_eq((double)amax_scale, ldexp(1, bytes[_i].amax_floor - 127));
    ck_assert_double_eq((double)tiny_scale, ldexp(1, bytes[_i].scale_floor - 127));
}
END_TEST

START_TEST(raw_scales_are_the_golden_floats)
{
    ck_assert_double_eq((double)numfmt_scale(1, HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3),
                        (double)0x1.24924ap-9f);
    ck_assert_double_eq((double)numfmt_scale(0, HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3),
                        (double)(1e-4f / 448.0f));
    ck_assert_double_eq((double)numfmt_scale(448, HONE_RULE_RAW_TINY, HONE_DTYPE_E4M3), 1);
    ck_assert_double_eq((double)numfmt_scale(0, HONE_RULE_RAW_TINY, HONE_DTYPE_E4M3),
                        (double)FLT_MIN);
}
END_TEST

/* Case 1: a dot product of 128 ones is 128, whatever the rule; 392, 224 or 112 are the known
 * mistakes. */
START_TEST(a_dot_product_of_ones_is_exact_because_the_payload_knows_its_scale)
{
    float ones[128];
    uint8_t a[128], b[128], code;
    hone_scale_rule rule = rules[_i];

    for (size_t i = 0; i < ARRAY_LEN(ones); i++) {
        ones[i] = 1;
    }
    float sa = numfmt_quantise(ones, 128, rule, HONE_DTYPE_E4M3, a, &code);
    float sb = numfmt_quantise(ones, 128, rule, HONE_DTYPE_E4M3, b, NULL);
    double sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(ones); i++) {
        sum += (double)(numfmt_e4m3_decode(a[i]) * sa) * (double)(numfmt_e4m3_decode(b[i]) * sb);
    }
    ck_assert(makes_powers(rule) ? sum == 128 : fabs(sum - 128) < 1e-4);
    ck_assert_uint_eq(a[0], makes_powers(rule) ? 0x78 : 0x7e);
    if (makes_powers(rule)) {
        ck_assert_double_eq((double)numfmt_ue8m0_decode(code), (double)sa);
    }
}
END_TEST

START_TEST(rounding_a_scale_to_nearest_would_saturate_and_the_ceiling_does_not)
{
    float x[32] = {134.4f};
    uint8_t q[32], code;
    float scale = numfmt_quantise(x, 32, HONE_RULE_POW2_AMAX, HONE_DTYPE_E4M3, q, &code);

    ck_assert_double_eq((double)scale, 0.5);
    ck_assert_uint_eq(q[0], 0x78);
    ck_assert_double_eq((double)(numfmt_e4m3_decode(q[0]) * scale), 128);
}
END_TEST

START_TEST(zeros_stay_zero_and_their_scale_is_positive_and_finite)
{
    float x[32] = {0};
    uint8_t q[32], code;

    memset(q, 0xff, sizeof q);
    float scale = numfmt_quantise(x, 32, rules[_i], HONE_DTYPE_E4M3, q, &code);
    ck_assert(isfinite(scale) && scale > 0);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        ck_assert_uint_eq(q[i], 0);
    }
    ck_assert(code == 0xff ? !makes_powers(rules[_i]) : numfmt_ue8m0_decode(code) == scale);
}
END_TEST

START_TEST(a_nan_or_infinity_keeps_its_place_and_spoils_no_scale)
{
    float x[32] = {1, NAN, INFINITY, -INFINITY, -1};
    uint8_t q[32], code;
    float scale = numfmt_quantise(x, 32, rules[_i], HONE_DTYPE_E4M3, q, &code);
    float clean[32] = {1, 0, 0, 0, -1};
    uint8_t clean_q[32];

    ck_assert_double_eq((double)scale, (double)numfmt_quantise(clean, 32, rules[_i],
                                                               HONE_DTYPE_E4M3, clean_q, NULL));
    ck_assert_uint_eq(q[0], clean_q[0]);
    ck_assert_uint_eq(q[1], 0x7f);
    ck_assert_uint_eq(q[2], 0x7f); /* not 448, which a reader would take for a number */
    ck_assert_uint_eq(q[3], 0x7f);
    ck_assert_uint_eq(q[4], clean_q[4]);
}
END_TEST

/* The inverse of s as quantise.cuh has it, rounded down, and what that lacks. */
static float inverse_below(float s, float *lacks)
{
    float high = 1.0f / s;

    high = fmaf(high, s, -1.0f) > 0 ? nextafterf(high, 0) : high;
    *lacks = fmaf(-high, s, 1.0f) * high;
    return high;
}

/* What templates/device/quantise.cuh counts on: of numbers of up to 11 significant bits, the
 * product with an inverse in two parts rounds as x / s does; with one part, or the nearest
 * inverse, it does not. Powers of two change neither side. Zeros keep their signs. */
START_TEST(an_inverse_in_two_parts_divides_short_numbers)
{
    int wrong = 0, below = 0, nearest = 0;

    for (int a = 0; a <= 1024; a++) { /* the last is amax's floor, which is not short */
        float s = (a < 1024 ? 1.0f + (float)a / 1024.0f : 1e-4f) / 448.0f, low,
              high = inverse_below(s, &low);
        ck_assert(low >= 0 && signbit(fmaf(-0.0f, high, -0.0f * low)));
        for (int b = 0; b < 1024; b++) {
            float x = 1.0f + (float)b / 1024.0f;
            wrong += fmaf(x, high, x * low) != x / s;
            below += x * high != x / s;
            nearest += x * (1.0f / s) != x / s;
        }
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(below, 0);
    ck_assert_int_gt(nearest, 0);
}
END_TEST

/* What templates/kv_quant/single.cu counts on: of a bf16 and any divisor, one correction of
 * x * (1 / s) lies on x / s's side of each tie of e4m3, whose significands have up to five bits.
 * Only divisors within a few units of x over the tie could be at fault. */
START_TEST(one_correction_finds_the_side_of_every_tie)
{
    int wrong = 0;

    for (int a = 128; a < 256; a++) {
        for (int t = 16; t < 32; t++) {
            float x = (float)a, tie = (float)t, s = x / tie;
            for (int i = 0; i < 8; i++) {
                s = nextafterf(s, 0);
            }
            for (int i = 0; i < 17; i++, s = nextafterf(s, INFINITY)) {
                float inverse = 1.0f / s, q = x * inverse, exact = x / s;
                q = fmaf(fmaf(q, -s, x), inverse, q);
                wrong += (q > tie) != (exact > tie) || (q < tie) != (exact < tie);
            }
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* The nearest f16, ties to even; what comes in is in f16's range. */
static double to_half(double x)
{
    int exponent = x > 0x1p-14 ? ilogb(x) : -14;

    return ldexp(rint(ldexp(x, 10 - exponent)), exponent - 10);
}

/* What templates/device/e2m1_codes.cuh counts on, step by step: of every bf16 up to 6.99 times
 * every scale of e4m3, the code of the exact quotient. */
START_TEST(products_in_f16_have_the_codes_of_quotients)
{
    static const double ties[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5};
    int wrong = 0;

    for (uint32_t code = 1; code < 0x7f; code++) {
        double s = (double)numfmt_e4m3_decode((uint8_t)code);
        double inverse = to_half((double)(1.0f / (float)s));
        for (uint32_t bits = 0; numfmt_bf16_decode((uint16_t)bits) < 6.99f * (float)s; bits++) {
            double x = (double)numfmt_bf16_decode((uint16_t)bits);
            double half = x < 0x1p-14 ? rint(x * 0x1p21) * 0x1p-21 : x;
            double q = to_half(half * inverse + 0x1.cd4p-14);
            double least = fmin(to_half(2 * q + 2044), to_half(q + 2048));
            double made = least < 2048 ? least - 2044 : (least - 2040) / 2;
            int exact = 0;
            for (size_t i = 0; i < ARRAY_LEN(ties); i++) {
                exact += x > ties[i] * s || (x == ties[i] * s && i % 2 == 1);
            }
            wrong += made != exact;
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Every group: nothing saturates, each element is within half a step of e4m3, powers of two are
 * powers of two. */
START_TEST(random_groups_come_back_within_half_a_step)
{
    float x[128];
    uint8_t q[128], code;

    srand(1);
    for (int round = 0; round < 2000; round++) {
        float size = ldexpf(1, rand() % 60 - 40);
        float amax = 0;
        int far = 0;
        for (size_t i = 0; i < ARRAY_LEN(x); i++) {
            x[i] = size * (float)(rand() - RAND_MAX / 2) / (float)RAND_MAX;
            amax = fmaxf(amax, fabsf(x[i]));
        }
        float scale = numfmt_quantise(x, 128, rules[_i], HONE_DTYPE_E4M3, q, &code);
        ck_assert(amax / scale <= 448.001f);
        for (size_t i = 0; i < ARRAY_LEN(x); i++) {
            double back = (double)(numfmt_e4m3_decode(q[i]) * scale);
            double step = fmax(fabs((double)x[i]) / 16, (double)scale * 0x1p-10);
            far += fabs(back - (double)x[i]) <= step * 1.000001 ? 0 : 1;
        }
        ck_assert_int_eq(far, 0);
        int exponent;
        ck_assert(!makes_powers(rules[_i]) || frexpf(scale, &exponent) == 0.5f);
    }
}
END_TEST

/* e2m1 by 6: a group whose largest is 6 times a power of two takes that power, and all sixteen
 * codes come back. */
START_TEST(nibbles_are_packed_lowest_first_under_a_scale_of_a_sixth)
{
    static const float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    float x[32];
    uint8_t q[16], code;

    for (size_t i = 0; i < ARRAY_LEN(x); i++) {
        x[i] = ldexpf(i % 16 < 8 ? magnitudes[i % 8] : -magnitudes[i % 8], -9);
    }
    float scale = numfmt_quantise(x, 32, HONE_RULE_POW2_AMAX, HONE_DTYPE_E2M1, q, &code);
    ck_assert_double_eq((double)scale, 0x1p-9);
    ck_assert_uint_eq(code, 118);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) { /* low nibble first */
        ck_assert_uint_eq(q[i], (2 * i % 16) | (2 * i + 1) % 16 << 4);
    }
    x[0] = 0x1.000002p2f * 1.5f * 0x1p-9f; /* just above: the next binade */
    scale = numfmt_quantise(x, 32, HONE_RULE_POW2_AMAX, HONE_DTYPE_E2M1, q, &code);
    ck_assert_double_eq((double)scale, 0x1p-8);
    ck_assert_uint_eq(q[0] & 15, 5); /* 3.000001: the code of 3 */
}
END_TEST

/* kernels.md App. B: bytes of MXFP4 scales under the reference's floor of 6 * 2^-126, and with 1e-4
 * under amax. */
static const struct {
    float amax;
    int tiny, floored;
} sixths[] = {
    {0, 1, 112},   {1e-4f, 112, 112},         {0.5f, 124, 124}, {1, 125, 125},   {3, 126, 126},
    {6, 127, 127}, {0x1.800002p2f, 128, 128}, {7, 128, 128},    {100, 132, 132},
};

START_TEST(scales_of_nibbles_are_the_golden_bytes)
{
    const float amax = sixths[_i].amax;

    ck_assert_double_eq((double)numfmt_scale(amax, HONE_RULE_POW2_TINY, HONE_DTYPE_E2M1),
                        ldexp(1, sixths[_i].tiny - 127));
    ck_assert_double_eq((double)numfmt_scale(amax, HONE_RULE_POW2_AMAX, HONE_DTYPE_E2M1),
                        ldexp(1, sixths[_i].floored - 127));
}
END_TEST

/* kernels.md 4.5, 4.7: the nearest e4m3, ties to the even code, or the next above. */
static const struct {
    float amax, near, up;
} e4m3s[] = {
    {0, 0x1p-9f, 0x1p-9f},
    {6 * 0x1p-9f, 0x1p-9f, 0x1p-9f},
    {9 * 0x1p-9f, 0x1p-8f, 0x1p-8f},
    {6, 1, 1},
    {7, 1.125f, 1.25f},
    {6.375f, 1, 1.125f},    /* a tie */
    {7.125f, 1.25f, 1.25f}, /* another */
    {2688, 448, 448},
    {1e30f, 448, 448},
};

START_TEST(scales_that_are_e4m3_are_nearest_or_not_below)
{
    const float amax = e4m3s[_i].amax;

    ck_assert_double_eq((double)numfmt_scale(amax, HONE_RULE_E4M3_NEAR, HONE_DTYPE_E2M1),
                        (double)e4m3s[_i].near);
    ck_assert_double_eq((double)numfmt_scale(amax, HONE_RULE_E4M3_UP, HONE_DTYPE_E2M1),
                        (double)e4m3s[_i].up);
}
END_TEST

/* Of every bf16: a kernel's product with a rounded sixth gives the scale that the quotient gives.
 */
START_TEST(a_rounded_sixth_serves_as_well)
{
    const float sixth = 1.0f / 6.0f;

    for (uint32_t bits = 0; bits < 0x7f80; bits++) {
        const float amax = numfmt_bf16_decode((uint16_t)bits);
        const float bounded = fminf(fmaxf(amax * sixth, 0x1p-9f), 448.0f);
        ck_assert_uint_eq(numfmt_e4m3_encode(bounded),
                          numfmt_e4m3_encode(fminf(fmaxf(amax / 6.0f, 0x1p-9f), 448.0f)));
        const float s = numfmt_e4m3_decode(numfmt_e4m3_encode(bounded));
        ck_assert((s < bounded) == (s < fminf(fmaxf(amax / 6.0f, 0x1p-9f), 448.0f)));
    }
}
END_TEST

/* Under each e4m3 scale and of every bf16: a product with the reciprocal that is rounded to f16, as
 * kernels make it, has the code of the quotient. The fp32 product alone has not: 1.25 * 120 is a
 * tie that 1 / 120 misses. */
START_TEST(a_product_in_f16_has_the_quotients_code)
{
    for (uint8_t scale = 1; scale < 0x7f; scale++) {
        const float s = numfmt_e4m3_decode(scale), inverse = 1.0f / s;
        for (uint32_t bits = 0; bits < 0x7f80; bits++) {
            const float x = numfmt_bf16_decode((uint16_t)bits);
            const float half = numfmt_f16_decode(numfmt_f16_encode(x * inverse));
            if (numfmt_e2m1_encode(half) != numfmt_e2m1_encode(x / s)) {
                ck_abort_msg("%g / %g", (double)x, (double)s);
            }
        }
    }
    ck_assert_uint_eq(numfmt_e2m1_encode(150.0f / 120.0f), 2);
    ck_assert_uint_eq(numfmt_e2m1_encode(150.0f * (1.0f / 120.0f)), 3);
}
END_TEST

/* Case 70: 0.05 and 1.0 under one scale. It is that of the 1.0, wherever it stands, by the largest
 * number of the codes' own format; of the 0.05 alone it would be 2^-13, or 0.05 / 448, and the 1.0
 * would be cut to 0.05. Codes of 0.05 and of 1. */
static const struct {
    hone_scale_rule rule;
    hone_dtype element;
    float scale;
    uint8_t small, large;
} shared[] = {
    {HONE_RULE_POW2_AMAX, HONE_DTYPE_E4M3, 0x1p-8f, 0x55, 0x78},      /* 12.8 to 13; 256 */
    {HONE_RULE_POW2_SCALE, HONE_DTYPE_E4M3, 0x1p-8f, 0x55, 0x78},     /* the same */
    {HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3, 1.0f / 448.0f, 0x5b, 0x7e}, /* 22.4 to 22; 448 */
    {HONE_RULE_POW2_AMAX, HONE_DTYPE_E2M1, 0x1p-2f, 0, 6},            /* 0.2 to 0; 4 */
    {HONE_RULE_E4M3_NEAR, HONE_DTYPE_E2M1, 0x1.6p-3f, 1, 7},          /* 0.29 to 0.5; 5.8 to 6 */
};

START_TEST(parts_that_share_a_scale_share_the_largest)
{
    const bool nibbles = shared[_i].element == HONE_DTYPE_E2M1;

    for (size_t at = 0; at < 32; at++) {
        float x[32];
        uint8_t q[32];
        for (size_t i = 0; i < ARRAY_LEN(x); i++) {
            x[i] = i == at ? 1.0f : 0.05f;
        }
        const float scale = numfmt_quantise(x, 32, shared[_i].rule, shared[_i].element, q, NULL);
        ck_assert_double_eq((double)scale, (double)shared[_i].scale);
        for (size_t i = 0; i < ARRAY_LEN(x); i++) {
            const int code = nibbles ? q[i / 2] >> 4 * (i % 2) & 15 : q[i];
            ck_assert_int_eq(code, i == at ? shared[_i].large : shared[_i].small);
        }
    }
}
END_TEST

/* Case 71: a scale is made of the group's own elements; what lies behind a short group, or was
 * quantised before, changes nothing. */
START_TEST(what_lies_behind_a_group_makes_no_scale)
{
    static const float behind[] = {0, 3e38f, NAN, -INFINITY};
    uint8_t want[20] = {0};
    float scale = 0;

    for (size_t b = 0; b < ARRAY_LEN(behind); b++) {
        float x[32];
        uint8_t q[32];
        memset(q, 0xa5, sizeof q);
        for (size_t i = 0; i < ARRAY_LEN(x); i++) {
            x[i] = i < 20 ? 0.01f * (float)i : behind[b];
        }
        const float made = numfmt_quantise(x, 20, rules[_i], HONE_DTYPE_E4M3, q, NULL);
        if (b == 0) {
            scale = made;
            memcpy(want, q, sizeof want);
        }
        ck_assert_double_eq((double)made, (double)scale);
        ck_assert_mem_eq(q, want, sizeof want);
        ck_assert_uint_eq(q[20], 0xa5);
    }
}
END_TEST

START_TEST(a_nan_or_infinity_spoils_its_nibbles)
{
    static const float specials[] = {NAN, INFINITY, -INFINITY};
    static const hone_scale_rule nibble_rules[] = {HONE_RULE_POW2_AMAX, HONE_RULE_POW2_TINY,
                                                   HONE_RULE_E4M3_NEAR, HONE_RULE_E4M3_UP};

    for (size_t i = 0; i < ARRAY_LEN(specials) * ARRAY_LEN(nibble_rules); i++) {
        float x[16] = {1, 2, specials[i % 3], -4};
        uint8_t q[9], code = 0;
        memset(q, 0xee, sizeof q);
        ck_assert(isnan(numfmt_quantise(x, 16, nibble_rules[i / 3], HONE_DTYPE_E2M1, q, &code)));
        ck_assert_uint_eq(code, 0xff);
        for (size_t j = 0; j < 8; j++) {
            ck_assert_uint_eq(q[j], 0);
        }
        ck_assert_uint_eq(q[8], 0xee);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("quantise");
    const int all = (int)ARRAY_LEN(rules);

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, power_of_two_scales_are_the_golden_bytes, 0, (int)ARRAY_LEN(bytes));
    tcase_add_test(tests, raw_scales_are_the_golden_floats);
    tcase_add_loop_test(tests, a_dot_product_of_ones_is_exact_because_the_payload_knows_its_scale,
                        0, all);
    tcase_add_test(tests, rounding_a_scale_to_nearest_would_saturate_and_the_ceiling_does_not);
    tcase_add_loop_test(tests, zeros_stay_zero_and_their_scale_is_positive_and_finite, 0, all);
    tcase_add_test(tests, an_inverse_in_two_parts_divides_short_numbers);
    tcase_add_test(tests, one_correction_finds_the_side_of_every_tie);
    tcase_add_test(tests, products_in_f16_have_the_codes_of_quotients);
    tcase_add_loop_test(tests, a_nan_or_infinity_keeps_its_place_and_spoils_no_scale, 0, all);
    tcase_add_loop_test(tests, random_groups_come_back_within_half_a_step, 0, all);
    tcase_add_test(tests, nibbles_are_packed_lowest_first_under_a_scale_of_a_sixth);
    tcase_add_loop_test(tests, scales_of_nibbles_are_the_golden_bytes, 0, (int)ARRAY_LEN(sixths));
    tcase_add_loop_test(tests, scales_that_are_e4m3_are_nearest_or_not_below, 0,
                        (int)ARRAY_LEN(e4m3s));
    tcase_add_test(tests, a_rounded_sixth_serves_as_well);
    tcase_add_test(tests, a_product_in_f16_has_the_quotients_code);
    tcase_add_loop_test(tests, parts_that_share_a_scale_share_the_largest, 0,
                        (int)ARRAY_LEN(shared));
    tcase_add_loop_test(tests, what_lies_behind_a_group_makes_no_scale, 0, all);
    tcase_add_test(tests, a_nan_or_infinity_spoils_its_nibbles);
    return suite_run("core/quantise", tests);
}
