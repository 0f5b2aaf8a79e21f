/* scalar.c - one dot product in the arithmetic of a matrix unit, from the codes. */
#include "emulator/tensor/scalar.h"
#include "emulator/tensor/wide.h"

#include <math.h>
#include <string.h>

static const tensor_format float32 = {32, 23, 127, true};
static const uint32_t canonical = TENSOR_NAN;

tensor_format tensor_format_of(tensor_type type)
{
    static const tensor_format formats[] = {
        [TENSOR_E4M3] = {8, 3, 7, false},    [TENSOR_E5M2] = {8, 2, 15, true},
        [TENSOR_BF16] = {16, 7, 127, true},  [TENSOR_F16] = {16, 10, 15, true},
        [TENSOR_S8] = {0, 0, 0, false},      [TENSOR_U8] = {0, 0, 0, false},
        [TENSOR_TF32] = {19, 10, 127, true},
    };
    return formats[type];
}

tensor_number tensor_number_of(uint32_t code, tensor_format format)
{
    uint32_t fraction = code & ((1u << format.fraction) - 1);
    uint32_t most = (1u << (format.bits - 1 - format.fraction)) - 1;
    uint32_t field = (code >> format.fraction) & most;
    tensor_number n = {.negative = (code >> (format.bits - 1)) & 1};

    if (field == most && format.has_infinity) {
        n.infinite = fraction == 0;
        n.nan = fraction != 0;
        return n;
    }
    if (field == most && fraction == (1u << format.fraction) - 1) {
        n.nan = true;
        return n;
    }
    n.significand = (int32_t)(fraction | (field != 0 ? 1u << format.fraction : 0));
    n.exponent = (field != 0 ? (int32_t)field : 1) - format.bias;
    if (n.significand == 0) {
        n.exponent = -126;
    }
    return n;
}

static double number_value(tensor_number n, tensor_format format)
{
    double magnitude = n.nan        ? (double)NAN
                       : n.infinite ? (double)INFINITY
                                    : ldexp(n.significand, n.exponent - format.fraction);
    return n.negative ? -magnitude : magnitude;
}

static uint32_t bits_of(float x)
{
    uint32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float tensor_half_value(uint32_t code)
{
    tensor_format half = tensor_format_of(TENSOR_F16);

    return (float)number_value(tensor_number_of(code, half), half);
}

uint32_t tensor_half_code(double x)
{
    uint32_t sign = signbit(x) ? 0x8000 : 0;
    double magnitude = fabs(x);

    if (isnan(x)) {
        return 0x7fff;
    }
    if (magnitude >= 65520.0) { /* halfway from the largest to the next power of two */
        return sign | 0x7c00;
    }
    if (magnitude < 0x1p-14) { /* counts the least unit; a carry makes the first normal number */
        return sign | (uint32_t)nearbyint(magnitude * 0x1p24);
    }
    int exponent = 0;
    double fraction = frexp(magnitude, &exponent); /* [1/2, 1) */
    uint32_t significand = (uint32_t)nearbyint(fraction * 0x1p11);
    return sign | (((uint32_t)(exponent + 13) << 10) + significand);
}

/* What one step works on: c + a . b, `len` terms. */
typedef struct step {
    const uint32_t *a, *b;
    size_t len;
    tensor_format a_format, b_format;
    float c;
    bool half; /* c and the result are f16 */
} step;

/* Infinities and NaN do not take part in alignment: IEEE says what they give. False when all is
 * finite. */
static bool special_result(const step *s, float *out)
{
    bool special = !isfinite(s->c);
    double sum = s->c;

    for (size_t i = 0; i < s->len; i++) {
        tensor_number a = tensor_number_of(s->a[i], s->a_format);
        tensor_number b = tensor_number_of(s->b[i], s->b_format);
        if (a.nan || b.nan || a.infinite || b.infinite) {
            special = true;
            sum += number_value(a, s->a_format) * number_value(b, s->b_format);
        }
    }
    if (special) {
        *out = s->half ? tensor_half_value(tensor_half_code(sum)) : (float)sum;
        if (isnan(sum)) {
            memcpy(out, &canonical, sizeof *out);
        }
    }
    return special;
}

/* magnitude * 2^(fraction - significand bits - distance), toward zero. */
int64_t tensor_aligned(int64_t magnitude, int32_t up, int32_t distance)
{
    int32_t right = distance - up;

    if (right >= 0) {
        return right > 62 ? 0 : magnitude >> right;
    }
    return magnitude << -right;
}

/* magnitude * 2^exponent with all its lower bits in one: rounds to f16 as the whole does. */
static float half_rounded(uint64_t magnitude, int32_t exponent, bool negative)
{
    int32_t drop = magnitude != 0 ? 14 - __builtin_clzll(magnitude) : 0;
    double odd = 0.0;

    if (drop > 0) {
        bool lost = (magnitude & ((UINT64_C(1) << drop) - 1)) != 0;
        magnitude = (magnitude >> drop | (lost ? 1 : 0)) << drop;
    }
    odd = ldexp((double)magnitude, exponent);
    return tensor_half_value(tensor_half_code(negative ? -odd : odd));
}

/* sum * 2^exponent, toward zero to `mantissa` fraction bits and to fp32's least unit. What passes
 * fp32's range becomes infinite: the unit has no larger finite number to stop at than its exponent
 * field. */
static float truncated(int64_t sum, int32_t exponent, int32_t mantissa)
{
    uint64_t magnitude = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
    int32_t drop = 0;

    if (sum == 0) {
        return 0.0f;
    }
    drop = 63 - __builtin_clzll(magnitude) - mantissa;
    if (exponent + drop < -149) {
        drop = -149 - exponent; /* fp32 subnormals keep fewer bits */
    }
    if (drop > 63) {
        return 0.0f;
    }
    if (drop > 0) {
        magnitude = magnitude >> drop << drop;
    }
    return (float)ldexp(sum < 0 ? -(double)magnitude : (double)magnitude, exponent);
}

float tensor_rounded(int64_t sum, int32_t exponent, int32_t mantissa)
{
    if (mantissa == TENSOR_HALF) {
        return half_rounded(sum < 0 ? (uint64_t)-sum : (uint64_t)sum, exponent, sum < 0);
    }
    return truncated(sum, exponent, mantissa);
}

static float step_hw(const step *s, tensor_unit unit)
{
    tensor_number c = tensor_number_of(bits_of(s->c), float32);
    int32_t most = c.exponent;
    int32_t product_bits = s->a_format.fraction + s->b_format.fraction;
    int64_t sum = 0;

    if (s->half && c.significand != 0 && most < -14) { /* f16 keeps its subnormals at that */
        most = -14;
    }
    for (size_t i = 0; i < s->len; i++) {
        int32_t exponent = tensor_number_of(s->a[i], s->a_format).exponent +
                           tensor_number_of(s->b[i], s->b_format).exponent;
        most = exponent > most ? exponent : most;
    }
    sum = tensor_aligned(c.significand, unit.fraction - float32.fraction, most - c.exponent);
    sum = c.negative ? -sum : sum;
    for (size_t i = 0; i < s->len; i++) {
        tensor_number a = tensor_number_of(s->a[i], s->a_format);
        tensor_number b = tensor_number_of(s->b[i], s->b_format);
        int64_t term = tensor_aligned((int64_t)a.significand * b.significand,
                                      unit.fraction - product_bits, most - a.exponent - b.exponent);
        sum += a.negative != b.negative ? -term : term;
    }
    return tensor_rounded(sum, most - unit.fraction, unit.mantissa);
}

static float step_exact(const step *s)
{
    tensor_number c = tensor_number_of(bits_of(s->c), float32);
    int32_t product_bits = s->a_format.fraction + s->b_format.fraction;
    tensor_wide sum = {{0}};

    tensor_wide_add(&sum, (uint64_t)c.significand, c.exponent - float32.fraction, c.negative);
    for (size_t i = 0; i < s->len; i++) {
        tensor_number a = tensor_number_of(s->a[i], s->a_format);
        tensor_number b = tensor_number_of(s->b[i], s->b_format);
        tensor_wide_add(&sum, (uint64_t)a.significand * (uint64_t)b.significand,
                        a.exponent + b.exponent - product_bits, a.negative != b.negative);
    }
    double odd = tensor_wide_odd(&sum);
    return s->half ? tensor_half_value(tensor_half_code(odd)) : (float)odd;
}

static float step_fast(const step *s)
{
    float sum = s->c;

    for (size_t i = 0; i < s->len; i++) {
        double a = number_value(tensor_number_of(s->a[i], s->a_format), s->a_format);
        double b = number_value(tensor_number_of(s->b[i], s->b_format), s->b_format);
        sum = fmaf((float)a, (float)b, sum);
    }
    return s->half ? tensor_half_value(tensor_half_code(sum)) : sum;
}

bool tensor_is_nan(uint32_t code, tensor_format format)
{
    const uint32_t all = (1u << (format.bits - 1)) - 1, magnitude = code & all;
    const uint32_t infinite = all - ((1u << format.fraction) - 1);

    return format.has_infinity ? magnitude > infinite : magnitude == all;
}

/* Whether a NaN is among the operands: whatever else is there, the unit then gives its one NaN.
 * Operands that nobody should read are full of them. */
static bool has_nan(const uint32_t *codes, size_t len, tensor_format format)
{
    for (size_t i = 0; i < len; i++) {
        if (tensor_is_nan(codes[i], format)) {
            return true;
        }
    }
    return false;
}

float tensor_dot(const uint32_t *a, const uint32_t *b, size_t len, float c, tensor_type a_type,
                 tensor_type b_type, tensor_unit unit, hone_emu_arithmetic mode)
{
    size_t terms = unit.terms > 0 ? (size_t)unit.terms : len;
    step s = {.a_format = tensor_format_of(a_type),
              .b_format = tensor_format_of(b_type),
              .c = c,
              .half = unit.mantissa == TENSOR_HALF};

    if (isnan(c) || has_nan(a, len, s.a_format) || has_nan(b, len, s.b_format)) {
        memcpy(&s.c, &canonical, sizeof s.c);
        return s.c;
    }
    for (size_t at = 0; at < len; at += s.len) {
        s.a = a + at;
        s.b = b + at;
        s.len = len - at < terms ? len - at : terms;
        if (special_result(&s, &s.c)) {
            continue;
        }
        s.c = mode == HONE_EMU_HW      ? step_hw(&s, unit)
              : mode == HONE_EMU_EXACT ? step_exact(&s)
                                       : step_fast(&s);
    }
    return s.c;
}
