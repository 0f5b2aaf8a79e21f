/* block_scale.c - one element of a product of narrow floats, block-scaled or not. */
#include "emulator/tensor/block_scale.h"
#include "emulator/tensor/scalar.h"
#include "emulator/tensor/wide.h"

#include "core/status.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum {
    GROUP_FRACTION = 35, /* bits kept of sums of GROUP products */
    GROUP = 16,
};

/* fraction bits, bias, bits below the sign; those with `special` have codes that are no number */
static const struct {
    int32_t fraction, bias;
    uint32_t sign_at;
    bool special;
} formats[] = {
    [NARROW_E4M3] = {3, 7, 7, true},  [NARROW_E5M2] = {2, 15, 7, true},
    [NARROW_E3M2] = {2, 3, 5, false}, [NARROW_E2M3] = {3, 1, 5, false},
    [NARROW_E2M1] = {1, 1, 3, false}, [NARROW_UE8M0] = {0, 127, 8, true},
    [NARROW_UE4M3] = {3, 7, 7, true},
};

narrow_number narrow_number_of(uint32_t code, narrow_type type)
{
    int32_t fraction = formats[type].fraction;
    uint32_t magnitude = code & ((1u << formats[type].sign_at) - 1);
    int32_t field = (int32_t)(magnitude >> fraction);
    uint32_t low = magnitude & ((1u << fraction) - 1);
    narrow_number n = {.exponent = field - formats[type].bias};

    if (type == NARROW_UE8M0) { /* no subnormals: 0 is 2^-127 */
        n.significand = 1;
        n.nan = code == 0xff;
        return n;
    }
    if (formats[type].special && type == NARROW_E5M2 && field == 31) {
        n.infinite = low == 0;
        n.nan = low != 0;
    } else if (formats[type].special && type != NARROW_E5M2) {
        n.nan = magnitude == 0x7f;
    }
    n.significand = (int32_t)(low | (field != 0 ? 1u << fraction : 0));
    n.exponent += field == 0 ? 1 : 0;
    if (n.significand == 0) {
        n.exponent = -126;
    }
    if (type != NARROW_UE4M3 && code >> formats[type].sign_at & 1) {
        n.significand = -n.significand;
    }
    return n;
}

int32_t narrow_fraction(narrow_type type)
{
    return formats[type].fraction;
}

static narrow_number numbers[ARRAY_LEN(formats)][256];

static void fill_numbers(void)
{
    for (uint32_t type = 0; type < ARRAY_LEN(formats); type++) {
        for (uint32_t code = 0; code < 256; code++) {
            numbers[type][code] = narrow_number_of(code, (narrow_type)type);
        }
    }
}

const narrow_number *narrow_numbers(narrow_type type)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, fill_numbers);
    return numbers[type];
}

/* What a step adds up: each term is significand * 2^(exponent - fraction); all share the fraction.
 */
typedef struct terms {
    int64_t significand[NARROW_DEPTH];
    int32_t exponent[NARROW_DEPTH];
    uint32_t len;
    int32_t fraction;
} terms;

static void product_terms(const narrow_dot *n, terms *t)
{
    uint32_t block = n->scales > 0 ? n->len / n->scales : n->len;

    t->len = n->len;
    t->fraction = formats[n->a_type].fraction + formats[n->b_type].fraction;
    for (uint32_t k = 0; k < n->len; k++) {
        int32_t scale =
            n->scales > 0 ? n->a_scale[k / block].exponent + n->b_scale[k / block].exponent : 0;
        t->significand[k] = (int64_t)n->a[k].significand * n->b[k].significand;
        t->exponent[k] = n->a[k].exponent + n->b[k].exponent + scale;
    }
}

/* value * 2^fraction of a number whose exponent is not below 0 (e2m1) */
static int64_t fixed(narrow_number x)
{
    return x.significand == 0 ? 0 : (int64_t)x.significand * (1 << x.exponent);
}

/* Sums of 16 are exact; only scales have exponents then. */
static void group_terms(const narrow_dot *n, terms *t)
{
    uint32_t block = n->len / n->scales;

    t->len = n->len / GROUP;
    t->fraction = formats[n->a_type].fraction + formats[n->b_type].fraction +
                  2 * formats[n->scale_type].fraction;
    for (uint32_t g = 0; g < t->len; g++) {
        narrow_number a = n->a_scale[g * GROUP / block], b = n->b_scale[g * GROUP / block];
        int64_t sum = 0;
        for (uint32_t k = g * GROUP; k < (g + 1) * GROUP; k++) {
            sum += fixed(n->a[k]) * fixed(n->b[k]);
        }
        t->significand[g] = sum * a.significand * b.significand;
        t->exponent[g] = a.exponent + b.exponent;
    }
}

static float sum_hw(const narrow_dot *n, const terms *t, float c, int32_t fraction)
{
    static const tensor_format float32 = {32, 23, 127, true};
    uint32_t bits = 0;

    memcpy(&bits, &c, sizeof bits);
    tensor_number from = tensor_number_of(bits, float32);
    int32_t most = n->half && from.significand != 0 && from.exponent < -14 ? -14 : from.exponent;
    for (uint32_t k = 0; k < t->len; k++) {
        most = t->exponent[k] > most ? t->exponent[k] : most;
    }
    int64_t sum = tensor_aligned(from.significand, fraction - 23, most - from.exponent);
    sum = from.negative ? -sum : sum;
    for (uint32_t k = 0; k < t->len; k++) {
        int64_t s = t->significand[k];
        int64_t term =
            tensor_aligned(s < 0 ? -s : s, fraction - t->fraction, most - t->exponent[k]);
        sum += s < 0 ? -term : term;
    }
    return tensor_rounded(sum, most - fraction, n->half ? TENSOR_HALF : 23);
}

static float rounded(const narrow_dot *n, double sum)
{
    return n->half ? tensor_half_value(tensor_half_code(sum)) : (float)sum;
}

static float sum_exact(const narrow_dot *n, const terms *t, float c)
{
    tensor_wide sum = {{0}};
    int exponent = 0;
    double fraction = frexp(fabs((double)c), &exponent); /* 24 bits hold it */

    tensor_wide_add(&sum, (uint64_t)(fraction * 0x1p24), exponent - 24, signbit(c));
    for (uint32_t k = 0; k < t->len; k++) {
        int64_t s = t->significand[k];
        tensor_wide_add(&sum, (uint64_t)(s < 0 ? -s : s), t->exponent[k] - t->fraction, s < 0);
    }
    return rounded(n, tensor_wide_odd(&sum));
}

/* Through doubles: near enough, and quick. */
static float sum_fast(const narrow_dot *n, const terms *t, float c)
{
    double sum = c;

    for (uint32_t k = 0; k < t->len; k++) {
        sum += ldexp((double)t->significand[k], t->exponent[k] - t->fraction);
    }
    return rounded(n, sum);
}

/* NaN and infinities do not take part in alignment. False when all are finite. */
static bool special(const narrow_dot *n, float c, float *out)
{
    bool nan = isnan(c), plus = isinf(c) && c > 0, minus = isinf(c) && c < 0;
    static const uint32_t canonical = 0x7fffffff;

    for (uint32_t k = 0; k < n->scales; k++) {
        nan = nan || n->a_scale[k].nan || n->b_scale[k].nan;
    }
    for (uint32_t k = 0; k < n->len; k++) {
        narrow_number a = n->a[k], b = n->b[k];
        bool infinite = a.infinite || b.infinite;
        /* an infinity's code has a significand; zero times it is none of the numbers */
        bool zero = a.significand == 0 || b.significand == 0;
        bool negative = (a.significand < 0) != (b.significand < 0);
        nan = nan || a.nan || b.nan || (infinite && zero);
        plus = plus || (infinite && !negative);
        minus = minus || (infinite && negative);
    }
    nan = nan || (plus && minus);
    *out = minus ? -INFINITY : INFINITY;
    if (nan) {
        memcpy(out, &canonical, sizeof *out);
    }
    return nan || plus || minus;
}

float narrow_run(const narrow_dot *n, float c)
{
    bool groups = n->len == NARROW_DEPTH;
    terms t;
    float out = 0.0f;

    if (special(n, c, &out)) {
        return out;
    }
    if (groups) {
        group_terms(n, &t);
    } else {
        product_terms(n, &t);
    }
    return n->mode == HONE_EMU_HW      ? sum_hw(n, &t, c, groups ? GROUP_FRACTION : NARROW_FRACTION)
           : n->mode == HONE_EMU_EXACT ? sum_exact(n, &t, c)
                                       : sum_fast(n, &t, c);
}
