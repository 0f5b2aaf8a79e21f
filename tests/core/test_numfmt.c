/* test_numfmt.c - narrow formats against a slow float64 reference that shares no code with them,
 * and golden vectors of kernels.md App. B and cases.md. */
#include "core/numfmt.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A format as its definition says it, in doubles. */
typedef struct reference {
    const char *name;
    hone_dtype dtype;
    int mantissa, bias, codes; /* codes: magnitudes that are finite, 0 .. codes-1 */
    unsigned sign;             /* its bit, 0: none */
    unsigned top;              /* code of what is too large */
} reference;

static const reference references[] = {
    {"e4m3", HONE_DTYPE_E4M3, 3, 7, 0x7f, 0x80, 0x7e},
    {"e5m2", HONE_DTYPE_E5M2, 2, 15, 0x7c, 0x80, 0x7b},
    {"e2m1", HONE_DTYPE_E2M1, 1, 1, 8, 8, 7},
    {"ue4m3", HONE_DTYPE_UE4M3, 3, 7, 0x7f, 0, 0x7e},
    {"bf16", HONE_DTYPE_BF16, 7, 127, 0x7f80, 0x8000, 0x7f80},
    {"f16", HONE_DTYPE_F16, 10, 15, 0x7c00, 0x8000, 0x7c00},
};

/* The value of a finite magnitude's code, by the definition (kernels.md 0.2). */
static double value_of(const reference *r, int code)
{
    int exponent = code >> r->mantissa, fraction = code & ((1 << r->mantissa) - 1);

    return exponent == 0 ? ldexp(fraction, 1 - r->bias - r->mantissa)
                         : ldexp((1 << r->mantissa) + fraction, exponent - r->bias - r->mantissa);
}

/* Every finite magnitude of one format, ascending. */
static double values[0x8000];

static void list_values(const reference *r)
{
    for (int code = 0; code < r->codes; code++) {
        values[code] = value_of(r, code);
    }
}

/* The nearest code by search among list_values; ties to the even code. Half a step beyond the
 * largest is `top`. */
static unsigned nearest(const reference *r, double magnitude)
{
    int low = 0, high = r->codes - 1;

    if (magnitude >= values[high]) {
        double step = values[high] - values[high - 1];
        return magnitude >= values[high] + step / 2 ? r->top : (unsigned)high;
    }
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(values[middle] <= magnitude ? &low : &high) = middle;
    }
    double below = magnitude - values[low], above = values[high] - magnitude;
    return (unsigned)(below < above || (below == above && low % 2 == 0) ? low : high);
}

static unsigned encode(const reference *r, float x)
{
    unsigned char room[4] = {0};
    uint16_t half;

    numfmt_encode(r->dtype, room, 0, x);
    memcpy(&half, room, sizeof half);
    return numfmt_dtype_bits(r->dtype) == 16 ? half : room[0];
}

static float decode(const reference *r, unsigned code)
{
    uint16_t half = (uint16_t)code;
    unsigned char byte = (unsigned char)code;

    return numfmt_decode(r->dtype,
                         numfmt_dtype_bits(r->dtype) == 16 ? (void *)&half : (void *)&byte, 0);
}

START_TEST(every_code_decodes_to_its_definition_and_encodes_back)
{
    const reference *r = &references[_i];
    int missed = 0; /* counted: an assertion a code would take most of the time */

    for (int code = 0; code < r->codes; code++) {
        for (unsigned sign = 0; sign <= (r->sign ? 1 : 0); sign++) {
            unsigned whole = (unsigned)code | (sign ? r->sign : 0);
            double want = sign ? -value_of(r, code) : value_of(r, code);
            float got = decode(r, whole);
            missed += (double)got == want && !!signbit(got) == (int)sign ? 0 : 1;
            missed += encode(r, got) == whole ? 0 : 1;
        }
    }
    ck_assert_int_eq(missed, 0);
}
END_TEST

/* 1 when x does not encode to the nearest code. */
static int misses(const reference *r, float x)
{
    unsigned want = nearest(r, fabs((double)x)) | (signbit(x) ? r->sign : 0);

    return encode(r, x) == want ? 0 : 1;
}

START_TEST(all_halves_of_both_kinds_encode_to_the_nearest_code)
{
    const reference *r = &references[_i];
    int missed = 0;

    list_values(r);
    for (unsigned code = 0; code < 0x10000; code++) {
        float wide[] = {numfmt_bf16_decode((uint16_t)code), numfmt_f16_decode((uint16_t)code)};
        for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
            missed += isnan(wide[i]) ? 0 : misses(r, wide[i]);
        }
    }
    ck_assert_int_eq(missed, 0);
}
END_TEST

START_TEST(floats_around_every_code_and_tie_encode_to_the_nearest_code)
{
    const reference *r = &references[_i];
    int missed = 0;

    list_values(r);
    for (int code = 0; code + 1 < r->codes; code++) {
        float tie = (float)((value_of(r, code) + value_of(r, code + 1)) / 2);
        float around[] = {tie, nextafterf(tie, 0), nextafterf(tie, INFINITY), -tie};
        for (size_t i = 0; i < ARRAY_LEN(around); i++) {
            missed += misses(r, around[i]);
        }
    }
    ck_assert_int_eq(missed + misses(r, FLT_MAX) + misses(r, FLT_TRUE_MIN) + misses(r, -INFINITY),
                     0);
}
END_TEST

static const struct {
    float x;
    uint8_t code;
} e4m3_vectors[] = {
    {0x1p-10f, 0x00}, {0x1.8p-10f, 0x01}, {0x1.8p-9f, 0x02}, {0x1p-6f, 0x08}, {0.3f, 0x2a},
    {1, 0x38},        {17, 0x58},         {19, 0x5a},        {4.25f, 0x48},   {-2.5f, 0xc2},
    {240, 0x77},      {247.9f, 0x77},     {248, 0x78},       {256, 0x78},     {288, 0x79},
    {320, 0x7a},      {352, 0x7b},        {384, 0x7c},       {416, 0x7d},     {431, 0x7d},
    {447, 0x7e},      {448, 0x7e},        {449, 0x7e},       {464, 0x7e},     {465, 0x7e},
    {480, 0x7e},      {500, 0x7e},        {1000, 0x7e},      {-1000, 0xfe},   {INFINITY, 0x7e},
    {NAN, 0x7f},      {-0.0f, 0x80},
};

/* Case 67: 449 to 480 and beyond are 448, not NaN, and 256 to 448 are themselves. */
START_TEST(e4m3_golden_vectors)
{
    for (size_t i = 0; i < ARRAY_LEN(e4m3_vectors); i++) {
        ck_assert_msg(numfmt_e4m3_encode(e4m3_vectors[i].x) == e4m3_vectors[i].code, "%g",
                      (double)e4m3_vectors[i].x);
    }
    ck_assert(isnan(numfmt_e4m3_decode(0x7f)));
    ck_assert(isnan(numfmt_e4m3_decode(0xff)));
}
END_TEST

START_TEST(nans_and_infinities_of_the_other_formats)
{
    ck_assert_uint_eq(numfmt_e5m2_encode(NAN), 0x7f);
    ck_assert_uint_eq(numfmt_e5m2_encode(INFINITY), 0x7b);
    ck_assert(isinf(numfmt_e5m2_decode(0x7c)));
    ck_assert(isnan(numfmt_e5m2_decode(0xfe)));
    ck_assert_uint_eq(numfmt_e2m1_encode(NAN), 7);
    ck_assert_uint_eq(numfmt_ue4m3_encode(-1), 0x38);
    ck_assert_uint_eq(numfmt_bf16_encode(NAN), 0x7fff);
    ck_assert_uint_eq(numfmt_bf16_encode(FLT_MAX), 0x7f80);
    ck_assert_uint_eq(numfmt_f16_encode(NAN), 0x7fff);
    ck_assert_uint_eq(numfmt_f16_encode(65520), 0x7c00);
    ck_assert_uint_eq(numfmt_f16_encode(65519), 0x7bff);
    ck_assert(isnan(numfmt_f16_decode(0xfe00)));
    ck_assert(isinf(numfmt_f16_decode(0xfc00)));
}
END_TEST

START_TEST(ue8m0_codes_are_powers_of_two)
{
    for (int code = 0; code < 255; code++) {
        ck_assert_double_eq((double)numfmt_ue8m0_decode((uint8_t)code), ldexp(1, code - 127));
    }
    ck_assert(isnan(numfmt_ue8m0_decode(0xff)));
}
END_TEST

/* Case 3, its table: an exact power of two stays, one unit above it is the next, by bits. */
static const struct {
    uint32_t bits;
    uint8_t code;
} ceilings[] = {
    {0x3f800000, 127}, {0x3f800001, 128}, {0x3b800000, 119}, {0x3b800001, 120}, {0x3c000001, 121},
    {0x36000001, 109}, {0x3fffffff, 128}, {0x00000001, 1},   {0x00000000, 1},   {0x00800000, 1},
    {0x00800001, 2},   {0x7f7fffff, 254}, {0x7f000000, 254}, {0x80000000, 1},   {0xbf800000, 1},
    {0x7f800000, 255}, {0x7fc00000, 255}, {0xffc00000, 255},
};

START_TEST(ceiling_to_a_power_of_two_vectors)
{
    for (size_t i = 0; i < ARRAY_LEN(ceilings); i++) {
        ck_assert_msg(numfmt_ue8m0_ceil(numfmt_float(ceilings[i].bits)) == ceilings[i].code, "%08x",
                      ceilings[i].bits);
    }
}
END_TEST

/* Case 3, all exponents; the largest power is that of 254, above which it is clamped. */
START_TEST(ceiling_is_the_least_power_that_is_not_below_for_every_exponent)
{
    static const uint32_t mantissas[] = {0, 1, 2, 0x7fffff};

    for (uint32_t exponent = 0; exponent < 255; exponent++) {
        for (size_t i = 0; i < ARRAY_LEN(mantissas); i++) {
            double x = numfmt_float(exponent << 23 | mantissas[i]);
            int want = 1;
            while (want < 254 && ldexp(1, want - 127) < x) {
                want++;
            }
            ck_assert_uint_eq(numfmt_ue8m0_ceil((float)x), (unsigned)want);
        }
    }
}
END_TEST

START_TEST(packed_arrays_keep_the_even_index_in_the_low_nibble)
{
    uint8_t bytes[2] = {0xff, 0xff};

    numfmt_encode(HONE_DTYPE_E2M1, bytes, 0, 1);
    numfmt_encode(HONE_DTYPE_E2M1, bytes, 1, -6);
    numfmt_encode(HONE_DTYPE_E2M1, bytes, 3, 0.5f);
    ck_assert_uint_eq(bytes[0], 0xf2);
    ck_assert_uint_eq(bytes[1], 0x1f);
    ck_assert_double_eq((double)numfmt_decode(HONE_DTYPE_E2M1, bytes, 0), 1);
    ck_assert_double_eq((double)numfmt_decode(HONE_DTYPE_E2M1, bytes, 1), -6);
}
END_TEST

START_TEST(dtype_names_go_both_ways)
{
    for (int d = HONE_DTYPE_F32; d <= HONE_DTYPE_UE4M3; d++) {
        const char *name = numfmt_dtype_name((hone_dtype)d);
        ck_assert_ptr_nonnull(name);
        ck_assert_int_eq(numfmt_dtype_parse(name, strlen(name)), d);
        ck_assert_int_gt(numfmt_dtype_bits((hone_dtype)d), 0);
    }
    ck_assert_ptr_null(numfmt_dtype_name((hone_dtype)99));
    ck_assert_int_eq(numfmt_dtype_bits((hone_dtype)-1), -1);
    ck_assert_int_eq(numfmt_dtype_parse("e4m3fn", 6), HONE_DTYPE_NONE);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("numfmt");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_code_decodes_to_its_definition_and_encodes_back, 0,
                        (int)ARRAY_LEN(references));
    tcase_add_loop_test(tests, all_halves_of_both_kinds_encode_to_the_nearest_code, 0,
                        (int)ARRAY_LEN(references));
    tcase_add_loop_test(tests, floats_around_every_code_and_tie_encode_to_the_nearest_code, 0,
                        (int)ARRAY_LEN(references));
    tcase_add_test(tests, e4m3_golden_vectors);
    tcase_add_test(tests, nans_and_infinities_of_the_other_formats);
    tcase_add_test(tests, ue8m0_codes_are_powers_of_two);
    tcase_add_test(tests, ceiling_to_a_power_of_two_vectors);
    tcase_add_test(tests, ceiling_is_the_least_power_that_is_not_below_for_every_exponent);
    tcase_add_test(tests, packed_arrays_keep_the_even_index_in_the_low_nibble);
    tcase_add_test(tests, dtype_names_go_both_ways);
    return suite_run("core/numfmt", tests);
}
