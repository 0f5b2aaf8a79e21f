/* test_exec_approx.c - ex2, lg2, rsqrt, sqrt, rcp, sin, cos, tanh and div in their .approx forms,
 * against long double. Two limits hold: the error that the manual (PTX ISA 9.1) lets each have, and
 * what the emulator says of itself, the host's library: two places of f32, one of f16 and bf16. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the manual bounds: places of the result, a part of it, an absolute error. */
typedef enum bound_kind { PLACES, RELATIVE, ABSOLUTE } bound_kind;

/* A type of operands: fraction bits, the exponent of the least normal number. */
typedef struct float_type {
    int bits, fraction, least;
} float_type;
static const float_type f32 = {32, 23, -126}, f16 = {16, 10, -14}, bf16 = {16, 7, -126};

static long double decoded(const float_type *t, uint32_t code)
{
    return t->bits == 32       ? (long double)numfmt_float(code)
           : t->fraction == 10 ? (long double)numfmt_f16_decode((uint16_t)code)
                               : (long double)numfmt_bf16_decode((uint16_t)code);
}

/* The distance from x to the next number of the type. */
static long double place(const float_type *t, long double x)
{
    int exponent = 0;

    frexpl(x, &exponent);
    exponent = exponent - 1 > t->least ? exponent - 1 : t->least;
    return ldexpl(1, exponent - t->fraction);
}

/* The largest finite number, and half a place above it: what is not below that is infinite. */
static long double limit(const float_type *t)
{
    const int most = 1 - t->least;
    return ldexpl(2 - ldexpl(1, -t->fraction - 1), most);
}

static long double rsqrt(long double x)
{
    return 1 / sqrtl(x);
}
static long double reciprocal(long double x)
{
    return 1 / x;
}

/* `flushes`: subnormals in and out are zeros. `range`: up to where the manual has a bound, 0:
 * everywhere; sines and cosines have one of their own for the first turn. */
typedef struct function {
    const char *form;
    long double (*exact)(long double);
    const float_type *type;
    bool flushes, pair;
    bound_kind kind;
    long double bound, range, turn_bound;
} function;

#define PI     3.14159265358979323846264338327950288L
#define SINES  ABSOLUTE, 0x1.3b2cp-15L, 100 * PI, 0x1.6a09p-21L /* 2^-14.7, 2^-20.5 */
#define RSQRT  RELATIVE, 0x1.125fp-23L, 0, 0                    /* 2^-22.9 */
#define HALF   RELATIVE, 0x1.125fp-10L, 0, 0                    /* 2^-9.9 */
#define TANH16 ABSOLUTE, 0x1.0251p-11L, 0, 0                    /* 2^-10.987 */
static const function singles[] = {
    {"ex2.approx.f32", exp2l, &f32, false, false, PLACES, 2, 0, 0},
    {"ex2.approx.ftz.f32", exp2l, &f32, true, false, PLACES, 2, 0, 0},
    {"lg2.approx.f32", log2l, &f32, false, false, RELATIVE, 0x1p-22L, 0, 0},
    {"lg2.approx.ftz.f32", log2l, &f32, true, false, RELATIVE, 0x1p-22L, 0, 0},
    {"rsqrt.approx.f32", rsqrt, &f32, false, false, RSQRT},
    {"rsqrt.approx.ftz.f32", rsqrt, &f32, true, false, RSQRT},
    {"sqrt.approx.f32", sqrtl, &f32, false, false, RELATIVE, 0x1p-23L, 0, 0},
    {"sqrt.approx.ftz.f32", sqrtl, &f32, true, false, RELATIVE, 0x1p-23L, 0, 0},
    {"rcp.approx.f32", reciprocal, &f32, false, false, PLACES, 1, 0, 0},
    {"rcp.approx.ftz.f32", reciprocal, &f32, true, false, PLACES, 1, 0, 0},
    {"sin.approx.f32", sinl, &f32, false, false, SINES},
    {"sin.approx.ftz.f32", sinl, &f32, true, false, SINES},
    {"cos.approx.f32", cosl, &f32, false, false, SINES},
    {"cos.approx.ftz.f32", cosl, &f32, true, false, SINES},
    {"tanh.approx.f32", tanhl, &f32, false, false, RELATIVE, 0x1p-11L, 0, 0},
};
static const function halves[] = {
    {"ex2.approx.f16", exp2l, &f16, false, false, HALF},
    {"ex2.approx.f16x2", exp2l, &f16, false, true, HALF},
    {"ex2.approx.ftz.bf16", exp2l, &bf16, true, false, RELATIVE, 0x1p-7L, 0, 0},
    {"ex2.approx.ftz.bf16x2", exp2l, &bf16, true, true, RELATIVE, 0x1p-7L, 0, 0},
    {"tanh.approx.f16", tanhl, &f16, false, false, TANH16},
    {"tanh.approx.f16x2", tanhl, &f16, false, true, TANH16},
    {"tanh.approx.bf16", tanhl, &bf16, false, false, ABSOLUTE, 0x1p-8L, 0, 0},
    {"tanh.approx.bf16x2", tanhl, &bf16, false, true, ABSOLUTE, 0x1p-8L, 0, 0},
};

static long double flushed(const float_type *t, long double x)
{
    return fabsl(x) < ldexpl(1, t->least) ? copysignl(0, x) : x;
}

/* How far the manual lets the result be from `exact`, which is finite, at x. */
static long double allowed(const function *f, long double x, long double exact)
{
    if (f->kind == PLACES) {
        return f->bound * place(f->type, exact);
    }
    if (f->range > 0) {
        return fabsl(x) <= 2 * PI ? f->turn_bound : fabsl(x) <= f->range ? f->bound : 2;
    }
    if (f->exact == log2l && x > 0.5L && x < 2) {
        return f->bound; /* absolute there */
    }
    long double part = f->kind == RELATIVE ? f->bound * fabsl(exact) : f->bound;
    long double half = place(f->type, 0) / 2; /* no part of a subnormal number is as small */
    return part > half ? part : half;
}

/* The result's code for the operand's. */
static void check_value(const function *f, uint32_t operand, uint32_t result)
{
    const float_type *t = f->type;
    long double given = decoded(t, operand), got = decoded(t, result);
    long double x = f->flushes ? flushed(t, given) : given, exact = f->exact(x);
    bool below = f->flushes && fabsl(exact) < ldexpl(1, t->least);

    if (exact != exact || isinf(exact) || exact == 0) { /* and the sign of zero */
        ck_assert_msg(exact != exact ? got != got
                                     : got == exact && !signbit(got) == !signbit(exact),
                      "%s of %La: %La, not %La", f->form, x, got, exact);
        return;
    }
    if (isinf(got)) {
        ck_assert_msg(fabsl(exact) + place(t, exact) >= limit(t), "%s of %La is infinite", f->form,
                      x);
        return;
    }
    if (below && got == 0) {
        return;
    }
    long double error = fabsl(got - exact);
    ck_assert_msg(error <= allowed(f, x, exact), "%s of %La: %La, exactly %La", f->form, x, got,
                  exact);
    ck_assert_msg(error <= (t->bits == 32 ? 2 : 1) * place(t, exact),
                  "%s of %La is %La, places away from %La", f->form, x, got, exact);
    ck_assert_msg(!f->flushes || fabsl(got) >= ldexpl(1, t->least), "%s of %La: %La is not flushed",
                  f->form, x, got);
}

enum { BLOCK = 256, CODES = 65536 };
static uint32_t in[CODES], out[8 * CODES];

static void run(const char *body, uint32_t in_words, uint32_t out_words, uint32_t threads)
{
    ptx_bench b;
    char *ptx = ptx_bench_wrap(body, in_words, out_words);

    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s\n%s", b.error.message, body);
    uint64_t from = ptx_bench_buffer(&b, in, 4 * (uint64_t)in_words * threads);
    uint64_t to = ptx_bench_buffer(&b, NULL, 4 * (uint64_t)out_words * threads);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){threads / BLOCK, 1, 1},
                                (uint32_t[]){BLOCK, 1, 1}, (void *[]){&from, &to}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, to, out, 4 * (uint64_t)out_words * threads);
    ptx_bench_close(&b);
    free(ptx);
}

/* Every exponent and sign with every fraction of six bits, and lower bits that differ. */
START_TEST(functions_of_f32_keep_to_the_manual)
{
    char body[2048];
    size_t used = 0;

    for (uint32_t n = 0; n < CODES / 2; n++) {
        in[n] = n << 17 | (n % 4 == 0 ? 0 : (n * 40503u) & 0x1ffff);
    }
    for (uint32_t n = 0; n < ARRAY_LEN(singles); n++) {
        used += (size_t)sprintf(body + used, "%s %%d%u, %%a0;\n", singles[n].form, n);
    }
    run(body, 1, ARRAY_LEN(singles), CODES / 2);
    for (uint32_t n = 0; n < ARRAY_LEN(singles) * CODES / 2; n++) {
        check_value(&singles[n % ARRAY_LEN(singles)], in[n / ARRAY_LEN(singles)], out[n]);
    }
}
END_TEST

/* All there are; of pairs, every code in each half. */
START_TEST(functions_of_halves_keep_to_the_manual)
{
    char body[2048] = "mov.b32 {%h0, %h1}, %a0;\n";
    size_t used = strlen(body);

    for (uint32_t n = 0; n < CODES; n++) {
        in[n] = n | n * 40503u << 16;
    }
    for (uint32_t n = 0; n < ARRAY_LEN(halves); n++) {
        used += (size_t)(halves[n].pair
                             ? sprintf(body + used, "%s %%d%u, %%a0;\n", halves[n].form, n)
                             : sprintf(body + used, "%s %%h2, %%h0; cvt.u32.u16 %%d%u, %%h2;\n",
                                       halves[n].form, n));
    }
    run(body, 1, ARRAY_LEN(halves), CODES);
    for (uint32_t n = 0; n < ARRAY_LEN(halves) * CODES; n++) {
        const function *f = &halves[n % ARRAY_LEN(halves)];
        const uint32_t from = in[n / ARRAY_LEN(halves)];
        check_value(f, from & 0xffff, out[n] & 0xffff);
        if (f->pair) {
            check_value(f, from >> 16, out[n] >> 16);
        }
    }
}
END_TEST

/* ---- Quotients ------------------------------------------------------------------------------- */

static const char *const quotients[] = {"div.approx.f32", "div.approx.ftz.f32", "div.full.f32",
                                        "div.full.ftz.f32"};

static void check_quotient(size_t form, float a, float b, float result)
{
    bool flushes = form % 2 == 1, approx = form < 2;
    long double x = flushes ? flushed(&f32, (long double)a) : (long double)a;
    long double y = flushes ? flushed(&f32, (long double)b) : (long double)b;
    long double exact = x / y, got = (long double)result, magnitude = fabsl(y);

    if (approx && magnitude > 0x1p126L && !isinf(y)) { /* a * 0 */
        exact = x * copysignl(0, y);
    }
    if (exact != exact || isinf(exact) || exact == 0) {
        ck_assert_msg(exact != exact ? got != got
                                     : got == exact && !signbit(got) == !signbit(exact),
                      "%s of %La, %La: %La, not %La", quotients[form], x, y, got, exact);
    } else if (isinf(got)) {
        ck_assert_msg(fabsl(exact) + 2 * place(&f32, exact) >= limit(&f32), "%s of %La, %La",
                      quotients[form], x, y);
    } else if (!(flushes && got == 0 && fabsl(exact) < 0x1p-126L)) {
        long double error = fabsl(got - exact);
        ck_assert_msg(error <= place(&f32, exact) && (!flushes || fabsl(got) >= 0x1p-126L),
                      "%s of %La, %La: %La, exactly %La", quotients[form], x, y, got, exact);
    }
}

START_TEST(quotients_keep_to_the_manual)
{
    static const uint32_t edges[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000,
                                     0x3f800000, 0xbf800001, 0x7e800000, 0x7e800001, 0xfe800001,
                                     0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x00ffffff};
    uint64_t state = 5;
    char body[512];
    size_t used = 0;

    for (uint32_t n = 0; n < CODES; n++) {
        uint64_t r = random_next(&state);
        in[n] = r >> 60 == 0 ? edges[r % ARRAY_LEN(edges)] : (uint32_t)r;
    }
    for (uint32_t n = 0; n < ARRAY_LEN(edges) * ARRAY_LEN(edges); n++) { /* each with each */
        in[2 * n] = edges[n / ARRAY_LEN(edges)];
        in[2 * n + 1] = edges[n % ARRAY_LEN(edges)];
    }
    for (uint32_t n = 0; n < ARRAY_LEN(quotients); n++) {
        used += (size_t)sprintf(body + used, "%s %%d%u, %%a0, %%a1;\n", quotients[n], n);
    }
    run(body, 2, ARRAY_LEN(quotients), CODES / 2);
    for (uint32_t n = 0; n < ARRAY_LEN(quotients) * (CODES / 2); n++) {
        const uint32_t *of = in + 2 * (n / ARRAY_LEN(quotients));
        check_quotient(n % ARRAY_LEN(quotients), numfmt_float(of[0]), numfmt_float(of[1]),
                       numfmt_float(out[n]));
    }
}
END_TEST

/* ---- Doubles of 20 fraction bits ------------------------------------------------------------- */

static double double_of(const uint32_t *words)
{
    double x;
    memcpy(&x, words, sizeof x);
    return x;
}

static void check_high(const char *form, double (*exact)(double), const uint32_t *from,
                       const uint32_t *result)
{
    const uint32_t upper[2] = {0, from[1]};
    double x = double_of(upper), got = double_of(result);

    x = fabs(x) < 0x1p-1022 ? copysign(0, x) : x; /* no subnormals, in or out */
    double want = exact(x);
    want = fabs(want) < 0x1p-1022 ? copysign(0, want) : want;
    ck_assert_msg(result[0] == 0, "%s of %a: %08x below", form, x, result[0]);
    if (want != want) {
        ck_assert_uint_eq(result[1], 0x7fffffff);
    } else if (isinf(want) || want == 0) {
        ck_assert_msg(got == want && !signbit(got) == !signbit(want), "%s of %a: %a", form, x, got);
    } else {
        ck_assert_msg(fabs(got - want) <= 0x1p-20 * fabs(want), "%s of %a: %a, not %a", form, x,
                      got, want);
    }
}

static double reciprocal_double(double x)
{
    return 1 / x;
}
static double rsqrt_double(double x)
{
    return 1 / sqrt(x);
}

START_TEST(doubles_are_read_and_given_in_their_upper_words)
{
    static const uint32_t uppers[] = {0,          0x80000000, 1,          0x80000001, 0x000fffff,
                                      0x00100000, 0x800fffff, 0x7fefffff, 0x7ff00000, 0xfff00000,
                                      0x7ff00001, 0xfff80000, 0x3ff00000, 0xbff00000, 0x7fd00000};
    uint64_t state = 11;

    for (uint32_t n = 0; n < CODES / 8; n++) {
        uint64_t r = random_next(&state);
        in[2 * n] = (uint32_t)r;
        in[2 * n + 1] = n < ARRAY_LEN(uppers) ? uppers[n] : (uint32_t)(r >> 32);
    }
    run("mov.b64 %x0, {%a0, %a1};\n"
        "rcp.approx.ftz.f64 %x1, %x0; mov.b64 {%d0, %d1}, %x1;\n"
        "rsqrt.approx.ftz.f64 %x1, %x0; mov.b64 {%d2, %d3}, %x1;\n"
        "rsqrt.approx.f64 %x1, %x0; mov.b64 {%d4, %d5}, %x1;\n",
        2, 6, CODES / 8);
    for (uint32_t n = 0; n < CODES / 8; n++) {
        const uint32_t *from = in + 2 * n, *to = out + 6 * n;
        double whole = double_of(to + 4), want = rsqrt_double(double_of(from));
        check_high("rcp.approx.ftz.f64", reciprocal_double, from, to);
        check_high("rsqrt.approx.ftz.f64", rsqrt_double, from, to + 2);
        ck_assert_msg(want != want ? whole != whole
                                   : fabs(whole - want) <= 0x1p-51 * want || whole == want,
                      "rsqrt.approx.f64 of %a: %a", double_of(from), whole);
    }
}
END_TEST

/* ---- The manual's tables --------------------------------------------------------------------- */

#define NAN32 0x7fc00000u /* any NaN */
/* -inf, -normal, -subnormal, -0, +0, +subnormal, +inf, NaN; 1: the manual has a bound instead */
static const uint32_t specials[] = {0xff800000, 0xc0490fdb, 0x80400000, 0x80000000,
                                    0,          0x00400000, 0x7f800000, 0xffc12345};
static const struct {
    const char *form;
    uint32_t results[8];
} tables[] = {
    {"ex2.approx.f32", {0, 1, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000, 0x7f800000, NAN32}},
    {"ex2.approx.ftz.f32",
     {0, 1, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000, 0x7f800000, NAN32}},
    {"lg2.approx.f32", {NAN32, NAN32, NAN32, 0xff800000, 0xff800000, 1, 0x7f800000, NAN32}},
    {"lg2.approx.ftz.f32",
     {NAN32, NAN32, 0xff800000, 0xff800000, 0xff800000, 0xff800000, 0x7f800000, NAN32}},
    {"rsqrt.approx.f32", {NAN32, NAN32, NAN32, 0xff800000, 0x7f800000, 1, 0, NAN32}},
    {"rsqrt.approx.ftz.f32",
     {NAN32, NAN32, 0xff800000, 0xff800000, 0x7f800000, 0x7f800000, 0, NAN32}},
    {"sqrt.approx.f32", {NAN32, NAN32, NAN32, 0x80000000, 0, 1, 0x7f800000, NAN32}},
    {"sqrt.approx.ftz.f32", {NAN32, NAN32, 0x80000000, 0x80000000, 0, 0, 0x7f800000, NAN32}},
    {"rcp.approx.f32", {0x80000000, 1, 1, 0xff800000, 0x7f800000, 1, 0, NAN32}},
    {"rcp.approx.ftz.f32",
     {0x80000000, 1, 0xff800000, 0xff800000, 0x7f800000, 0x7f800000, 0, NAN32}},
    {"sin.approx.f32", {NAN32, 1, 1, 0x80000000, 0, 1, NAN32, NAN32}},
    {"sin.approx.ftz.f32", {NAN32, 1, 0x80000000, 0x80000000, 0, 0, NAN32, NAN32}},
    {"cos.approx.f32", {NAN32, 1, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000, NAN32, NAN32}},
    {"cos.approx.ftz.f32",
     {NAN32, 1, 0x3f800000, 0x3f800000, 0x3f800000, 0x3f800000, NAN32, NAN32}},
    {"tanh.approx.f32", {0xbf800000, 1, 0x80400000, 0x80000000, 0, 0x00400000, 0x3f800000, NAN32}},
};

START_TEST(special_values_are_those_of_the_manual_s_tables)
{
    char body[2048];
    size_t used = 0;

    for (uint32_t n = 0; n < BLOCK; n++) {
        in[n] = specials[n % 8];
    }
    for (uint32_t n = 0; n < ARRAY_LEN(tables); n++) {
        used += (size_t)sprintf(body + used, "%s %%d%u, %%a0;\n", tables[n].form, n);
    }
    run(body, 1, ARRAY_LEN(tables), BLOCK);
    for (uint32_t n = 0; n < ARRAY_LEN(tables) * BLOCK; n++) {
        const uint32_t form = n % ARRAY_LEN(tables), operand = n / ARRAY_LEN(tables) % 8;
        const uint32_t want = tables[form].results[operand];
        bool nan = (out[n] & 0x7fffffff) > 0x7f800000;
        ck_assert_msg(want == 1       ? !nan
                      : want == NAN32 ? nan
                                      : out[n] == want,
                      "%s of %08x: %08x, not %08x", tables[form].form, specials[operand], out[n],
                      want);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_approx");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, functions_of_f32_keep_to_the_manual);
    tcase_add_test(tests, functions_of_halves_keep_to_the_manual);
    tcase_add_test(tests, quotients_keep_to_the_manual);
    tcase_add_test(tests, doubles_are_read_and_given_in_their_upper_words);
    tcase_add_test(tests, special_values_are_those_of_the_manual_s_tables);
    return suite_run("emulator/exec_approx", tests);
}
