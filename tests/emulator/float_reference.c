/* float_reference.c - sums in fixed point of 4,608 bits, which hold any product of doubles; long
 * division; roots digit by digit. */
#include "tests/emulator/float_reference.h"

#include <string.h>

const float_format float_f16 = {16, 10, 15}, float_bf16 = {16, 7, 127}, float_f32 = {32, 23, 127},
                   float_f64 = {64, 52, 1023};

typedef unsigned __int128 wide;

static uint64_t ones(int len)
{
    return len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
}
static uint64_t sign_of(const float_format *f, bool negative)
{
    return negative ? UINT64_C(1) << (f->bits - 1) : 0;
}
static uint64_t infinity_of(const float_format *f)
{
    return ones(f->bits - 1) ^ ones(f->fraction);
}
uint64_t float_nan(const float_format *f)
{
    return ones(f->bits - 1);
}
bool float_is_nan(const float_format *f, uint64_t code)
{
    return (code & ones(f->bits - 1)) > infinity_of(f);
}
uint64_t float_flushed(const float_format *f, uint64_t code)
{
    return (code & infinity_of(f)) == 0 ? code & sign_of(f, true) : code;
}

float_number float_open(const float_format *f, uint64_t code)
{
    uint64_t magnitude = code & ones(f->bits - 1), fraction = code & ones(f->fraction);
    int field = (int)(magnitude >> f->fraction);
    float_number n = {.negative = (code & sign_of(f, true)) != 0,
                      .infinite = magnitude == infinity_of(f),
                      .nan = magnitude > infinity_of(f)};

    n.significand = fraction + (field != 0 ? UINT64_C(1) << f->fraction : 0);
    n.exponent = (field != 0 ? field : 1) - f->bias - f->fraction;
    return n;
}

int float_order(const float_format *f, uint64_t a, uint64_t b)
{
    uint64_t x = a & ones(f->bits - 1), y = b & ones(f->bits - 1);
    bool minus_a = (a & sign_of(f, true)) != 0, minus_b = (b & sign_of(f, true)) != 0;

    if (x == 0 && y == 0) {
        return 0;
    }
    if (minus_a != minus_b) {
        return minus_a ? -1 : 1;
    }
    return x == y ? 0 : (x < y) != minus_a ? -1 : 1;
}

/* +-(magnitude + a little, if `more`) * 2^exponent, rounded; not zero. */
static uint64_t rounded(const float_format *f, bool negative, wide magnitude, int exponent,
                        bool more, float_rounding way)
{
    int top = 127, least = 1 - f->bias - f->fraction;

    while (top > 0 && (magnitude >> top & 1) == 0) {
        top--;
    }
    int quantum = exponent + top - f->fraction; /* the exponent of the last place */
    quantum = quantum < least ? least : quantum;
    int drop = quantum - exponent;
    wide kept = 0, rest = magnitude, half = 0;
    if (drop <= 0) {
        kept = magnitude << -drop;
        rest = 0;
    } else if (drop <= 128) {
        kept = drop < 128 ? magnitude >> drop : 0;
        rest = drop < 128 ? magnitude ^ kept << drop : magnitude;
        half = (wide)1 << (drop - 1);
    }
    bool inexact = rest != 0 || more, near = drop > 0 && drop <= 128;
    bool tie = near && rest == half && !more;
    bool above = near && (rest > half || (rest == half && more));
    bool up = way == FLOAT_RN   ? above || (tie && (kept & 1) != 0)
              : way == FLOAT_RZ ? false
                                : inexact && negative == (way == FLOAT_RM);
    kept += up;
    /* a carry into the next exponent adds up by itself; the leading one is one of the field's */
    uint64_t code = (uint64_t)kept;
    if (kept >> f->fraction != 0) {
        code += (uint64_t)(quantum - least) << f->fraction;
    }
    if (code >= infinity_of(f)) {
        bool away = way == FLOAT_RN || (way != FLOAT_RZ && negative == (way == FLOAT_RM));
        code = infinity_of(f) - (away ? 0 : 1);
    }
    return code | sign_of(f, negative);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

enum { LIMBS = 72, UNIT = -2200 };
typedef struct fixed {
    uint64_t limb[LIMBS]; /* two's complement, in 2^UNIT */
} fixed;

static void accumulate(fixed *x, wide magnitude, int exponent, bool negative)
{
    const int at = (exponent - UNIT) / 64, shift = (exponent - UNIT) % 64;
    fixed y = {{0}};
    wide carry = negative ? 1 : 0;

    y.limb[at] = (uint64_t)(magnitude << shift);
    if (shift == 0) {
        y.limb[at + 1] = (uint64_t)(magnitude >> 64);
    } else {
        y.limb[at + 1] = (uint64_t)(magnitude >> (64 - shift));
        y.limb[at + 2] = (uint64_t)(magnitude >> 64 >> (64 - shift));
    }
    for (int n = 0; n < LIMBS; n++) {
        carry += (wide)x->limb[n] + (negative ? ~y.limb[n] : y.limb[n]);
        x->limb[n] = (uint64_t)carry;
        carry >>= 64;
    }
}

/* Its upper two words that are not zero, and whether anything lies below. */
static uint64_t rounded_sum(const float_format *f, const fixed *x, float_rounding way)
{
    bool negative = x->limb[LIMBS - 1] >> 63 != 0, more = false;
    fixed zero = {{0}}, y = *x;
    wide borrow = 0;
    int top = LIMBS - 1;

    for (int n = 0; n < LIMBS && negative; n++) {
        wide difference = (wide)zero.limb[n] - x->limb[n] - borrow;
        y.limb[n] = (uint64_t)difference;
        borrow = difference >> 64 != 0;
    }
    while (top > 1 && y.limb[top] == 0) {
        top--;
    }
    for (int n = 0; n < top - 1; n++) {
        more = more || y.limb[n] != 0;
    }
    return rounded(f, negative, (wide)y.limb[top] << 64 | y.limb[top - 1], UNIT + 64 * (top - 1),
                   more, way);
}

static bool is_zero(const fixed *x)
{
    static const fixed zero;
    return memcmp(x, &zero, sizeof zero) == 0;
}

uint64_t float_fma(const float_format *f, uint64_t a, uint64_t b, uint64_t c, float_rounding way)
{
    float_number x = float_open(f, a), y = float_open(f, b), z = float_open(f, c);
    bool infinite = x.infinite || y.infinite, negative = x.negative != y.negative;
    fixed sum = {{0}};

    if (x.nan || y.nan || z.nan || (x.infinite && y.significand == 0) ||
        (y.infinite && x.significand == 0) || (infinite && z.infinite && negative != z.negative)) {
        return float_nan(f);
    }
    if (infinite || z.infinite) {
        return infinity_of(f) | sign_of(f, infinite ? negative : z.negative);
    }
    accumulate(&sum, (wide)x.significand * y.significand, x.exponent + y.exponent, negative);
    accumulate(&sum, z.significand, z.exponent, z.negative);
    if (is_zero(&sum)) { /* two zeros of one sign keep it */
        bool zeros = (x.significand == 0 || y.significand == 0) && z.significand == 0;
        bool minus = zeros && negative == z.negative ? negative : way == FLOAT_RM;
        return sign_of(f, minus);
    }
    return rounded_sum(f, &sum, way);
}

uint64_t float_add(const float_format *f, uint64_t a, uint64_t b, float_rounding way)
{
    return float_fma(f, a, (uint64_t)f->bias << f->fraction, b, way);
}

uint64_t float_multiply(const float_format *f, uint64_t a, uint64_t b, float_rounding way)
{
    float_number x = float_open(f, a), y = float_open(f, b);

    /* a zero of the product's sign adds nothing, and leaves a zero its sign */
    return float_fma(f, a, b, sign_of(f, x.negative != y.negative), way);
}

uint64_t float_convert(const float_format *to, const float_format *from, uint64_t a,
                       float_rounding way)
{
    float_number x = float_open(from, a);

    if (x.nan) {
        return float_nan(to);
    }
    if (x.infinite || x.significand == 0) {
        return (x.infinite ? infinity_of(to) : 0) | sign_of(to, x.negative);
    }
    return rounded(to, x.negative, x.significand, x.exponent, false, way);
}

uint64_t float_integral(const float_format *f, uint64_t a, float_rounding way)
{
    float_number x = float_open(f, a);
    int drop = -x.exponent;

    if (x.nan) {
        return float_nan(f);
    }
    if (x.infinite || drop <= 0 || x.significand == 0) {
        return a & ones(f->bits);
    }
    uint64_t kept = drop < 64 ? x.significand >> drop : 0;
    uint64_t rest = drop < 64 ? x.significand & ones(drop) : x.significand;
    uint64_t half = drop < 64 ? UINT64_C(1) << (drop - 1) : UINT64_MAX;
    bool up = way == FLOAT_RN   ? rest > half || (rest == half && kept % 2 == 1)
              : way == FLOAT_RZ ? false
                                : rest != 0 && x.negative == (way == FLOAT_RM);
    kept += up;
    return kept == 0 ? sign_of(f, x.negative) : rounded(f, x.negative, kept, 0, false, FLOAT_RN);
}

/* ---- Quotients and roots --------------------------------------------------------------------- */

uint64_t float_divide(const float_format *f, uint64_t a, uint64_t b, float_rounding way)
{
    float_number x = float_open(f, a), y = float_open(f, b);
    bool negative = x.negative != y.negative;

    if (x.nan || y.nan || (x.infinite && y.infinite) ||
        (!x.infinite && x.significand == 0 && y.significand == 0)) {
        return float_nan(f);
    }
    if (x.infinite || y.significand == 0) {
        return infinity_of(f) | sign_of(f, negative);
    }
    if (y.infinite || x.significand == 0) {
        return sign_of(f, negative);
    }
    while ((x.significand >> 52 & 1) == 0) { /* one length for all, for as many digits */
        x.significand <<= 1;
        x.exponent--;
    }
    wide dividend = (wide)x.significand << 70, quotient = dividend / y.significand;
    return rounded(f, negative, quotient, x.exponent - 70 - y.exponent,
                   dividend % y.significand != 0, way);
}

uint64_t float_root(const float_format *f, uint64_t a, float_rounding way)
{
    float_number x = float_open(f, a);
    wide radicand = x.significand, root = 0;

    if (x.nan || (x.negative && x.significand != 0)) {
        return float_nan(f);
    }
    if (x.infinite || x.significand == 0) {
        return a;
    }
    while (radicand >> 124 == 0 || x.exponent % 2 != 0) {
        radicand <<= 1;
        x.exponent--;
    }
    for (int bit = 63; bit >= 0; bit--) {
        wide trial = root | (wide)1 << bit;
        root = trial * trial <= radicand ? trial : root;
    }
    return rounded(f, false, root, x.exponent / 2, root * root != radicand, way);
}
