/* float_forms.c - the table of exact forms of floating point, with references in integers. */
#include "tests/emulator/float_forms.h"
#include "core/status.h"
#include "tests/emulator/float_reference.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const float_format *const formats[] = {&float_f16, &float_bf16, &float_f32, &float_f64};
static const char *const names[] = {"f16", "bf16", "f32", "f64"};
static const char *const ways[] = {"rn", "rz", "rm", "rp"};
enum { F16, BF16, F32, F64 };

/* `number` of a form: its format, that of the operand of a conversion, the rounding, and: */
enum { FROM = 4, WAY = 16, FLUSHES = 256, SATURATES = 512, RELU = 1024, PAIR = 2048 };

static const float_format *format_of(const integer_form *f)
{
    return formats[f->number % FROM];
}
static float_rounding way_of(const integer_form *f)
{
    return (float_rounding)(f->number / WAY % 4);
}
static uint64_t one_of(const float_format *f)
{
    return (uint64_t)f->bias << f->fraction;
}
static uint64_t cut(const float_format *f, uint64_t v)
{
    return f->bits == 64 ? v : v & ((UINT64_C(1) << f->bits) - 1);
}

/* An operation on codes of the format. */
typedef uint64_t operation(const integer_form *f, const float_format *t, const uint64_t v[4]);

/* What modifiers make of a result. */
static uint64_t finished(const integer_form *f, const float_format *t, uint64_t d)
{
    bool nan = float_is_nan(t, d), minus = d >> (t->bits - 1) != 0;

    if (f->number & SATURATES) {
        d = nan || minus ? 0 : float_order(t, d, one_of(t)) > 0 ? one_of(t) : d;
    }
    if (f->number & RELU && !nan && minus) {
        d = 0;
    }
    return f->number & FLUSHES ? float_flushed(t, d) : d;
}

static uint64_t one_result(const integer_form *f, operation *op, const uint64_t v[4], int shift)
{
    const float_format *t = format_of(f);
    uint64_t x[4];

    for (int n = 0; n < 4; n++) {
        x[n] = cut(t, v[n] >> shift);
        x[n] = f->number & FLUSHES ? float_flushed(t, x[n]) : x[n];
    }
    return finished(f, t, op(f, t, x));
}

/* False where the result is a double's NaN: its payload is anything. */
static bool apply(const integer_form *f, operation *op, const uint64_t v[4], uint64_t *d)
{
    *d = one_result(f, op, v, 0);
    if (f->number & PAIR) {
        *d |= one_result(f, op, v, 16) << 16;
    }
    return format_of(f)->bits < 64 || !float_is_nan(&float_f64, *d);
}

#define OPERATION(id, expression)                                                                  \
    static uint64_t id##_codes(const integer_form *f, const float_format *t, const uint64_t v[4])  \
    {                                                                                              \
        (void)f;                                                                                   \
        return expression;                                                                         \
    }                                                                                              \
    static bool id(const integer_form *f, const uint64_t v[4], uint64_t *d)                        \
    {                                                                                              \
        return apply(f, id##_codes, v, d);                                                         \
    }
#define SIGN(t) (UINT64_C(1) << ((t)->bits - 1))
OPERATION(add, float_add(t, v[0], v[1], way_of(f)))
OPERATION(subtract, float_add(t, v[0], v[1] ^ SIGN(t), way_of(f)))
OPERATION(multiply, float_multiply(t, v[0], v[1], way_of(f)))
OPERATION(fused, float_fma(t, v[0], v[1], v[2], way_of(f)))
OPERATION(divide, float_divide(t, v[0], v[1], way_of(f)))
OPERATION(reciprocal, float_divide(t, one_of(t), v[0], way_of(f)))
OPERATION(root, float_root(t, v[0], way_of(f)))
OPERATION(whole, float_integral(t, v[0], way_of(f)))

/* The other operand for a NaN, but for .NaN forms; -0 is below +0. */
static uint64_t extreme_codes(const integer_form *f, const float_format *t, const uint64_t v[4])
{
    bool least = f->name[1] == 'i', a = float_is_nan(t, v[0]), b = float_is_nan(t, v[1]);
    int order = a || b ? 0 : float_order(t, v[0], v[1]);

    if ((a && b) || ((a || b) && strstr(f->name, "NaN") != NULL)) {
        return float_nan(t);
    }
    if (a || b) {
        return a ? v[1] : v[0];
    }
    order = order == 0 ? (int)(v[1] >> (t->bits - 1)) - (int)(v[0] >> (t->bits - 1)) : order;
    return (order < 0) == least ? v[0] : v[1];
}
static bool extreme(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    return apply(f, extreme_codes, v, d);
}

/* abs and neg of a NaN are a NaN. */
static uint64_t sign_codes(const integer_form *f, const float_format *t, const uint64_t v[4])
{
    return f->name[0] == 'a' ? v[0] & ~SIGN(t) : v[0] ^ SIGN(t);
}
static bool sign(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    bool nan = float_is_nan(format_of(f), cut(format_of(f), v[0])) ||
               (f->number & PAIR && float_is_nan(format_of(f), v[0] >> 16 & 0xffff));
    return apply(f, sign_codes, v, d) && !nan;
}

static bool convert(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    const float_format *from = formats[f->number / FROM % 4], *to = format_of(f);
    uint64_t a = cut(from, v[0]);

    *d = float_convert(to, from, a, way_of(f));
    return to->bits < from->bits || !float_is_nan(from, a); /* wider: of any payload */
}

/* The relation's letters, and u for true of what is not ordered. */
static bool compare(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    const float_format *t = format_of(f);
    uint64_t x = cut(t, v[0]), y = cut(t, v[1]);
    const char *name = f->name + 5;

    if (f->number & FLUSHES) {
        x = float_flushed(t, x);
        y = float_flushed(t, y);
    }
    bool nan = float_is_nan(t, x) || float_is_nan(t, y);
    int order = nan ? 0 : float_order(t, x, y);
    if (strncmp(name, "num", 3) == 0 || strncmp(name, "nan", 3) == 0) {
        *d = nan == (name[1] == 'a');
    } else if (nan) {
        *d = name[2] == 'u';
    } else {
        *d = strncmp(name, "eq", 2) == 0   ? order == 0
             : strncmp(name, "ne", 2) == 0 ? order != 0
             : name[0] == 'l'              ? order < 0 || (name[1] == 'e' && order == 0)
                                           : order > 0 || (name[1] == 'e' && order == 0);
    }
    return true;
}

/* ---- The table ------------------------------------------------------------------------------- */

static char letter(uint32_t number)
{
    return number & PAIR ? 'w' : number % FROM < F32 ? 'h' : number % FROM == F32 ? 'w' : 'd';
}

/* `%s` of the name is the type. */
static size_t put(integer_form *out, const char *name, uint32_t number, int operands,
                  integer_reference *reference)
{
    const char *at = strchr(name, '@');
    char kind = letter(number);

    *out = (integer_form){.number = number, .reference = reference};
    snprintf(out->name, sizeof out->name, "%.*s%s%s%s", (int)(at - name), name,
             names[number % FROM], number & PAIR ? "x2" : "", at + 1);
    out->signature[0] = kind;
    out->signature[1] = '=';
    memset(out->signature + 2, kind, (size_t)operands);
    return 1;
}

static const struct {
    const char *name;
    integer_reference *reference;
    int operands;
} arithmetic[] = {{"add", add, 2},   {"sub", subtract, 2}, {"mul", multiply, 2},
                  {"fma", fused, 3}, {"div", divide, 2},   {"rcp", reciprocal, 1},
                  {"sqrt", root, 1}};
enum { HALVES_HAVE = 4 }; /* of these */

static size_t list_arithmetic(integer_form *out)
{
    size_t len = 0;
    char name[32];

    for (uint32_t n = 0; n < ARRAY_LEN(arithmetic) * 4; n++) {
        const uint32_t op = n / 4, way = n % 4;
        integer_reference *r = arithmetic[op].reference;
        const int operands = arithmetic[op].operands;
        snprintf(name, sizeof name, "%s.%s.@", arithmetic[op].name, ways[way]);
        len += put(out + len, name, F32 + WAY * way, operands, r);
        len += put(out + len, name, F64 + WAY * way, operands, r);
        snprintf(name, sizeof name, "%s.%s.ftz.@", arithmetic[op].name, ways[way]);
        len += put(out + len, name, F32 + WAY * way + FLUSHES, operands, r);
        if (op >= HALVES_HAVE) {
            continue;
        }
        snprintf(name, sizeof name, "%s.%s.sat.@", arithmetic[op].name, ways[way]);
        len += put(out + len, name, F32 + WAY * way + SATURATES, operands, r);
        snprintf(name, sizeof name, "%s.%s.ftz.sat.@", arithmetic[op].name, ways[way]);
        len += put(out + len, name, F32 + WAY * way + FLUSHES + SATURATES, operands, r);
    }
    return len;
}

static size_t list_halves(integer_form *out)
{
    static const struct {
        const char *modifiers;
        uint32_t number;
        bool bf16, fused; /* which have it */
    } kinds[] = {{"", 0, true, false},
                 {".ftz", FLUSHES, false, false},
                 {".sat", SATURATES, false, false},
                 {".ftz.sat", FLUSHES + SATURATES, false, false},
                 {".relu", RELU, true, true},
                 {".ftz.relu", FLUSHES + RELU, false, true}};
    size_t len = 0;
    char name[32];

    for (uint32_t n = 0; n < HALVES_HAVE * ARRAY_LEN(kinds) * 4; n++) {
        const uint32_t op = n / 4 / ARRAY_LEN(kinds), kind = n / 4 % ARRAY_LEN(kinds);
        const uint32_t type = n % 2 ? BF16 : F16, pair = n / 2 % 2 ? PAIR : 0;
        if ((kinds[kind].fused && op != 3) || (type == BF16 && !kinds[kind].bf16)) {
            continue;
        }
        snprintf(name, sizeof name, "%s.rn%s.@", arithmetic[op].name, kinds[kind].modifiers);
        len += put(out + len, name, type + pair + kinds[kind].number, arithmetic[op].operands,
                   arithmetic[op].reference);
    }
    return len;
}

static size_t list_simple(integer_form *out)
{
    static const struct {
        const char *name;
        integer_reference *reference;
        int operands;
        uint32_t number;
        bool f64;
    } kinds[] = {{"min.@", extreme, 2, 0, true},
                 {"max.@", extreme, 2, 0, true},
                 {"min.NaN.@", extreme, 2, 0, false},
                 {"max.NaN.@", extreme, 2, 0, false},
                 {"abs.@", sign, 1, 0, true},
                 {"neg.@", sign, 1, 0, true},
                 {"min.ftz.@", extreme, 2, FLUSHES, false},
                 {"max.ftz.@", extreme, 2, FLUSHES, false},
                 {"abs.ftz.@", sign, 1, FLUSHES, false},
                 {"neg.ftz.@", sign, 1, FLUSHES, false}};
    static const uint32_t types[] = {F16, BF16, F32, F64, F16 + PAIR, BF16 + PAIR};
    size_t len = 0;

    for (uint32_t n = 0; n < ARRAY_LEN(kinds) * ARRAY_LEN(types); n++) {
        const uint32_t kind = n / ARRAY_LEN(types), type = types[n % ARRAY_LEN(types)];
        bool flush = kinds[kind].number != 0;
        if ((type == F64 && !kinds[kind].f64) || (flush && type % FROM == BF16)) {
            continue;
        }
        len += put(out + len, kinds[kind].name, type + kinds[kind].number, kinds[kind].operands,
                   kinds[kind].reference);
    }
    return len;
}

static size_t list_comparisons(integer_form *out)
{
    static const char *const relations[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                            "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    static const uint32_t types[] = {F32, F64, F16, BF16, F32 + FLUSHES};
    size_t len = 0;
    char name[32];

    for (uint32_t n = 0; n < ARRAY_LEN(relations) * ARRAY_LEN(types); n++) {
        const uint32_t type = types[n % ARRAY_LEN(types)];
        snprintf(name, sizeof name, "setp.%s%s.@", relations[n / ARRAY_LEN(types)],
                 type & FLUSHES ? ".ftz" : "");
        integer_form *f = &out[len];
        len += put(f, name, type, 2, compare);
        f->signature[0] = 'w';
        snprintf(f->text, sizeof f->text, "%s %%p1, $0, $1; selp.u32 $d, 1, 0, %%p1;", f->name);
    }
    return len;
}

static size_t list_conversions(integer_form *out)
{
    static const uint32_t
        narrowing[][2] = {{F16, F32}, {BF16, F32}, {F32, F64}, {F16, F64}, {BF16, F64}},
        widening[][2] = {{F32, F16}, {F32, BF16}, {F64, F32}, {F64, F16}, {F64, BF16}};
    static const char *const wholes[] = {"rni", "rzi", "rmi", "rpi"};
    size_t len = 0;
    char name[32];

    for (uint32_t n = 0; n < 5 * 5; n++) { /* four roundings, and none to what is wider */
        const uint32_t way = n / 5;
        const uint32_t *pair = way < 4 ? narrowing[n % 5] : widening[n % 5];
        snprintf(name, sizeof name, "cvt%s%s.@.%s", way < 4 ? "." : "", way < 4 ? ways[way] : "",
                 names[pair[1]]);
        integer_form *f = &out[len];
        len += put(f, name, pair[0] + FROM * pair[1] + WAY * (way % 4), 1, convert);
        f->signature[2] = letter(pair[1]);
    }
    for (uint32_t n = 0; n < 4 * 3; n++) {
        const uint32_t type = n % 3 + (n % 3 > 0 ? 1 : 0), way = n / 3; /* f16, f32, f64 */
        snprintf(name, sizeof name, "cvt.%s.@.%s", wholes[way], names[type]);
        len += put(out + len, name, type + WAY * way, 1, whole);
    }
    return len;
}

size_t float_forms_list(integer_form out[FLOAT_FORMS])
{
    size_t len = list_arithmetic(out);

    len += list_halves(out + len);
    len += list_simple(out + len);
    len += list_comparisons(out + len);
    len += list_conversions(out + len);
    ck_assert_uint_le(len, FLOAT_FORMS);
    return len;
}
