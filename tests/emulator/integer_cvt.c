/* integer_cvt.c - cvt to and from integers, by the manual. Numbers pass through long double, whose
 * 64 bits hold every operand. */
#include "tests/emulator/integer_references.h"
#include "core/numfmt.h"
#include "core/status.h"

#include <check.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(LDBL_MANT_DIG >= 64, "long double holds 64-bit integers");

static const integer_type integers[] = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                        {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                        {"u64", 64, false}, {"s64", 64, true}};
/* bits, fraction bits, the largest exponent */
static const struct {
    const char *name;
    uint32_t bits, fraction;
    int most;
} floats[] = {
    {"f16", 16, 10, 15}, {"f32", 32, 23, 127}, {"f64", 64, 52, 1023}, {"bf16", 16, 7, 127}};
enum { FLOATS = 4, SOURCES = 3 }; /* of bf16 there are none but to floats */

/* `number` of a form: the index of the result's type, of a float's, and the rounding. */
enum { INTO = 16, ROUND = 256 };
static const char *const to_whole[] = {"rni", "rzi", "rmi", "rpi"}, *const to_float[] = {
                                                                        "rn", "rz", "rm", "rp"};

static void limits(const integer_type *t, integer_wide *low, integer_wide *high)
{
    integer_wide one = 1;

    *low = t->is_signed ? -(one << (t->width - 1)) : 0;
    *high = (one << (t->width - (t->is_signed ? 1 : 0))) - 1;
}

/* Cut to the type, and extended by its sign. */
static uint64_t as_type(const integer_type *t, uint64_t bits)
{
    return (uint64_t)integer_number(t, bits);
}

static bool between_integers(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    const integer_type *to = &integers[f->number % INTO];
    integer_wide x = integer_number(&f->type, v[0]), low, high;

    limits(to, &low, &high);
    *d = as_type(to, strstr(f->name, "sat") != NULL ? integer_stopped(x, low, high) : (uint64_t)x);
    return true;
}

/* A float's code as a number. */
static long double decoded(size_t type, uint64_t code)
{
    uint32_t fraction = floats[type].fraction, above = floats[type].bits - 1 - fraction;
    uint64_t low = code & ((UINT64_C(1) << fraction) - 1);
    int field = (int)(code >> fraction & ((UINT64_C(1) << above) - 1)), bias = floats[type].most;
    long double x = ldexpl((long double)(low + (field != 0 ? UINT64_C(1) << fraction : 0)),
                           (field != 0 ? field : 1) - bias - (int)fraction);

    if (field == 2 * bias + 1) {
        x = low == 0 ? HUGE_VALL : (long double)NAN;
    }
    return integer_bit(code, floats[type].bits - 1) ? -x : x;
}

static bool from_float(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    static long double (*const round[])(long double) = {rintl, truncl, floorl, ceill};
    const size_t from = f->number / INTO % INTO;
    const integer_type *to = &integers[f->number % INTO];
    long double x = decoded(from, v[0]);
    integer_wide low, high;

    limits(to, &low, &high);
    if (strstr(f->name, "ftz") != NULL && fabsl(x) < 0x1p-126L) {
        x = 0;
    }
    if (x != x) { /* zero, or the top bit, of doubles and of 64 bits */
        bool top = floats[from].bits == 64 || to->width == 64;
        *d = as_type(to, top ? UINT64_C(1) << (to->width - 1) : 0);
        return true;
    }
    x = round[f->number / ROUND](x);
    *d = as_type(to, (uint64_t)(x <= (long double)low    ? low
                                : x >= (long double)high ? high
                                                         : (integer_wide)x));
    return true;
}

/* The code of a whole number, rounded to nearest even, to zero, down or up. */
static uint64_t encoded(size_t type, integer_wide x, uint32_t way)
{
    uint32_t fraction = floats[type].fraction, exponent = 0;
    uint64_t magnitude = (uint64_t)(x < 0 ? -x : x),
             infinity = (uint64_t)(2 * floats[type].most + 1) << fraction;
    uint64_t sign = x < 0 ? UINT64_C(1) << (floats[type].bits - 1) : 0;
    bool away = (way == 2 && x < 0) || (way == 3 && x > 0);

    if (x == 0) {
        return 0;
    }
    while (exponent < 63 && magnitude >> exponent > 1) {
        exponent++;
    }
    uint32_t drop = exponent > fraction ? exponent - fraction : 0;
    uint64_t rest = drop > 0 ? magnitude & ((UINT64_C(1) << drop) - 1) : 0,
             kept = magnitude >> drop;
    uint64_t half = drop > 0 ? UINT64_C(1) << (drop - 1) : 0;
    if (rest != 0 && (way == 0 ? rest > half || (rest == half && kept % 2 == 1) : away)) {
        kept++;
    }
    kept <<= exponent < fraction ? fraction - exponent : 0;
    /* the leading one adds one to the exponent's field, and so does a carry */
    uint64_t code = ((uint64_t)(exponent + (uint32_t)floats[type].most - 1) << fraction) + kept;
    if (code >= infinity) {
        code = way == 0 || away ? infinity : infinity - 1;
    }
    return sign | code;
}

static bool to_a_float(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = encoded(f->number % INTO, integer_number(&f->type, v[0]), f->number / ROUND);
    return true;
}

static char letter(uint32_t width)
{
    return width <= 16 ? 'h' : width == 32 ? 'w' : 'd';
}

static integer_form form_of(const integer_type *type, uint32_t number, integer_reference *reference)
{
    return (integer_form){.type = *type, .number = number, .reference = reference};
}

/* `result` is the register's letter; of 8 and 16 bits it may be wider. */
static void add_integers(integer_form *f, const char *saturates, uint32_t to, uint32_t from,
                         char result)
{
    *f = form_of(&integers[from], to, between_integers);
    snprintf(f->name, sizeof f->name, "cvt.%s%s.%s", saturates, integers[to].name,
             integers[from].name);
    snprintf(f->signature, sizeof f->signature, "%c=%c", result, letter(integers[from].width));
}

static size_t list_integers(integer_form *out)
{
    size_t len = 0;

    for (uint32_t n = 0; n < ARRAY_LEN(integers) * ARRAY_LEN(integers); n++) {
        const uint32_t to = n / ARRAY_LEN(integers), from = n % ARRAY_LEN(integers);
        integer_wide low[2], high[2];
        char result = integers[to].width == 8 ? 'w' : letter(integers[to].width);
        limits(&integers[to], &low[0], &high[0]);
        limits(&integers[from], &low[1], &high[1]);
        add_integers(&out[len++], "", to, from, result);
        if (integers[to].width == 16) {
            add_integers(&out[len++], "", to, from, 'w');
        }
        if (low[1] < low[0] || high[1] > high[0]) {
            add_integers(&out[len++], "sat.", to, from, result);
        }
    }
    return len;
}

static size_t list_floats(integer_form *out)
{
    size_t len = 0;

    for (uint32_t n = 0; n < ARRAY_LEN(integers) * FLOATS * 4; n++) {
        const uint32_t i = n / 4 / FLOATS, way = n % 4, other = n / 4 % FLOATS;
        if (other < SOURCES) {
            integer_form *f = &out[len++];
            *f = form_of(&integers[i], i + INTO * other + ROUND * way, from_float);
            snprintf(f->name, sizeof f->name, "cvt.%s.%s.%s", to_whole[way], integers[i].name,
                     floats[other].name);
            snprintf(f->signature, sizeof f->signature, "%c=%c",
                     integers[i].width == 8 ? 'w' : letter(integers[i].width),
                     letter(floats[other].bits));
        }
        integer_form *f = &out[len++];
        *f = form_of(&integers[i], other + ROUND * way, to_a_float);
        snprintf(f->name, sizeof f->name, "cvt.%s.%s.%s", to_float[way], floats[other].name,
                 integers[i].name);
        snprintf(f->signature, sizeof f->signature, "%c=%c", letter(floats[other].bits),
                 letter(integers[i].width));
    }
    integer_form *f = &out[len++]; /* rounded up: 1 but for the flush */
    *f = form_of(&integers[5], 5 + INTO + ROUND * 3, from_float);
    strcpy(f->name, "cvt.rpi.ftz.s32.f32");
    strcpy(f->signature, "w=w");
    return len;
}

size_t integer_cvt_list(integer_form *out, size_t capacity)
{
    size_t len = list_integers(out);

    len += list_floats(out + len);
    ck_assert_uint_le(len, capacity);
    return len;
}
