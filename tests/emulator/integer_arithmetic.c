/* integer_arithmetic.c - sums, products, extremes, comparisons and choices, by the manual. */
#include "core/status.h"
#include "tests/emulator/integer_references.h"

#include <check.h>
#include <string.h>

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* Both halves of a * b, added up bit by bit. */
static void long_product(uint64_t a, uint64_t b, uint64_t out[2])
{
    out[0] = out[1] = 0;
    for (uint32_t n = 0; n < 64; n++) {
        uint64_t low = integer_bit(b, n) ? a << n : 0,
                 high = integer_bit(b, n) && n > 0 ? a >> (64 - n) : 0;
        out[0] += low;
        out[1] += high + (out[0] < low);
    }
}

/* The product of two operands, of twice their width, in two words of 64 bits. */
static void product_of(const integer_form *f, const uint64_t v[4], uint64_t out[2])
{
    integer_wide a = integer_number(&f->type, v[0]), b = integer_number(&f->type, v[1]);
    bool negative = (a < 0) != (b < 0);

    long_product((uint64_t)(a < 0 ? -a : a), (uint64_t)(b < 0 ? -b : b), out);
    if (negative) {
        out[0] = ~out[0] + 1;
        out[1] = ~out[1] + (out[0] == 0);
    }
}

static uint64_t upper_half(const integer_form *f, const uint64_t p[2])
{
    return f->type.width == 64 ? p[1] : p[0] >> f->type.width;
}

bool integer_add(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    (void)f;
    *d = v[0] + v[1];
    return true;
}
bool integer_subtract(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    (void)f;
    *d = v[0] + ~v[1] + 1;
    return true;
}
bool integer_add_stopped(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = integer_stopped(integer_number(&f->type, v[0]) + integer_number(&f->type, v[1]), INT32_MIN,
                         INT32_MAX);
    return true;
}
bool integer_subtract_stopped(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = integer_stopped(integer_number(&f->type, v[0]) - integer_number(&f->type, v[1]), INT32_MIN,
                         INT32_MAX);
    return true;
}
/* number: 0 the lower half, 1 the upper, 2 all of it; .sat has 3. c is added. */
bool integer_multiply(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint64_t p[2], c = strncmp(f->name, "mad", 3) == 0 ? v[2] : 0;

    product_of(f, v, p);
    *d = (f->number == 1 || f->number == 3 ? upper_half(f, p) : p[0]) + c;
    if (f->number == 3) {
        *d = integer_stopped((integer_wide)(int32_t)upper_half(f, p) + (int32_t)c, INT32_MIN,
                             INT32_MAX);
    }
    return true;
}
/* Of 24 bits; the upper half is the 32 upper bits of 48. */
bool integer_multiply_24(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    integer_form half = *f;
    half.type.width = 24;
    uint64_t p[2], c = strncmp(f->name, "mad", 3) == 0 ? v[2] : 0;

    product_of(&half, v, p);
    uint64_t part = f->number == 0 ? p[0] : p[0] >> 16;
    *d = part + c;
    if (f->number == 3) {
        *d = integer_stopped((integer_wide)(int32_t)part + (int32_t)c, INT32_MIN, INT32_MAX);
    }
    return true;
}
bool integer_distance(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    integer_wide x = integer_number(&f->type, v[0]) - integer_number(&f->type, v[1]);
    *d = (uint64_t)(x < 0 ? -x : x) + v[2];
    return true;
}
bool integer_divide(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    integer_wide a = integer_number(&f->type, v[0]), b = integer_number(&f->type, v[1]);

    if (b == 0) {
        return false;
    }
    *d = (uint64_t)(f->name[0] == 'd' ? a / b : a % b);
    return true;
}
bool integer_extreme(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    integer_wide a = integer_number(&f->type, v[0]), b = integer_number(&f->type, v[1]);
    integer_wide x = (f->name[1] == 'i') == (a < b) ? a : b;

    *d = (uint64_t)(strstr(f->name, "relu") != NULL && x < 0 ? 0 : x);
    return true;
}
bool integer_negate(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    integer_wide a = integer_number(&f->type, v[0]);
    *d = (uint64_t)(f->name[0] == 'n' || a < 0 ? -a : a);
    return true;
}
/* Each half by the form of 16 bits. */
bool integer_both_halves(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint64_t low[4] = {v[0], v[1]}, high[4] = {v[0] >> 16, v[1] >> 16}, x, y;
    integer_form half = *f;

    half.type.width = 16;
    integer_reference *one = f->name[0] == 'a' ? integer_add : integer_extreme;
    one(&half, low, &x);
    one(&half, high, &y);
    *d = (x & 0xffff) | y << 16;
    return true;
}
/* number: elements; a's and b's signs are the last letters of the two types; dp2a takes two bytes
 * of b from the lower or the upper half. */
bool integer_dot(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    const char *b_type = strrchr(f->name, '.') + 1, *a_type = b_type - 4;
    uint32_t len = f->number, a_bits = 32 / len, first = strstr(f->name, ".hi.") != NULL ? 2 : 0;
    int64_t sum = (int32_t)v[2];

    for (uint32_t n = 0; n < len; n++) {
        int64_t a = (int64_t)(v[0] >> a_bits * n & ((UINT64_C(1) << a_bits) - 1));
        int64_t b = (int64_t)(v[1] >> 8 * (n + first) & 255);
        a -= *a_type == 's' && a >> (a_bits - 1) ? INT64_C(1) << a_bits : 0;
        b -= *b_type == 's' && b >> 7 ? 256 : 0;
        sum += a * b;
    }
    *d = (uint64_t)sum;
    return true;
}

/* ---- Sums of several words ------------------------------------------------------------------- */

/* Operands are halves: a = v[2]:v[0], b = v[3]:v[1], each of width bits; number: - instead of +. */
bool integer_carried(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint64_t mask = f->type.width == 32 ? UINT32_MAX : UINT64_MAX;
    uint64_t a = v[0] & mask, b = v[1] & mask;
    uint64_t low = f->number ? a - b : a + b;
    bool over = f->number ? a < b : (low & mask) < a;
    uint64_t high = f->number ? v[2] - v[3] - over : v[2] + v[3] + over;

    *d = f->type.width == 32 ? (low & mask) | high << 32 : high;
    return true;
}
/* v[0] * v[1] + v[3]:v[2]; of 64 bits the upper half */
bool integer_carried_product(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint64_t p[2];

    product_of(f, v, p);
    *d = f->type.width == 32 ? p[0] + ((v[3] & UINT32_MAX) << 32 | (v[2] & UINT32_MAX))
                             : p[1] + v[3] + (p[0] + v[2] < p[0]);
    return true;
}

/* ---- Choices --------------------------------------------------------------------------------- */

bool integer_compare(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    static const struct {
        const char *names;
        bool below, same, above;
    } kinds[] = {{"eq", 0, 1, 0},    {"ne", 1, 0, 1},    {"lt lo", 1, 0, 0},
                 {"le ls", 1, 1, 0}, {"gt hi", 0, 0, 1}, {"ge hs", 0, 1, 1}};
    integer_wide a = integer_number(&f->type, v[0]), b = integer_number(&f->type, v[1]);
    char name[3] = {f->name[5], f->name[6], '\0'};

    for (size_t n = 0; n < ARRAY_LEN(kinds); n++) {
        if (strstr(kinds[n].names, name) != NULL) {
            *d = a < b ? kinds[n].below : a > b ? kinds[n].above : kinds[n].same;
            return true;
        }
    }
    ck_abort_msg("%s", f->name);
}
/* number: v[2] is a float; selp takes a where it is not zero */
bool integer_choose(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t c = (uint32_t)v[2], magnitude = c & INT32_MAX;
    bool nan = magnitude > 0x7f800000;
    bool first = f->name[1] == 'e' ? c != 0
                 : f->number       ? !nan && (c >> 31 == 0 || magnitude == 0)
                                   : c >> 31 == 0;

    *d = first ? v[0] : v[1];
    return true;
}
