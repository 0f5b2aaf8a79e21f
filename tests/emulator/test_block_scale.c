/* test_block_scale.c - products with block scales against a restatement in Python integers
 * (tests/tools), and the narrow formats against the toolkit's tables.
 *
 * HONE_TENSOR_CASES sets how many elements are compared; 2,000 without it. */
#include "emulator/tensor/scaled_tile.h"
#include "tests/support/suite.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const names[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3"};
static const uint32_t bits[] = {8, 8, 6, 6, 4, 8, 8};

typedef struct scaled_case {
    narrow_dot dot;
    uint32_t a[NARROW_DEPTH], b[NARROW_DEPTH], a_scale[NARROW_SCALES], b_scale[NARROW_SCALES];
    float c;
} scaled_case;

/* Scales of many kinds: near one, far apart, everything, the ends. */
static uint32_t scale_code(uint64_t *state, narrow_type type, uint64_t kind)
{
    uint32_t any = (uint32_t)random_next(state) & 255;

    if (type == NARROW_UE4M3) {
        return kind == 3 ? any : kind == 2 ? any % 0x7f : 0x30 + any % 16;
    }
    return kind == 3 ? any : kind == 2 ? 127 - 60 + any % 120 : 125 + any % 5;
}

/* Codes of a and b and their scales, no NaN and no infinity among them; kind 2: many zeros. */
static void fill_numbers(scaled_case *out, uint64_t *state, uint64_t kind)
{
    narrow_dot *d = &out->dot;

    for (uint32_t k = 0; k < d->len; k++) {
        const uint64_t code = random_next(state);
        out->a[k] = (uint32_t)code & ((1u << bits[d->a_type]) - 1);
        out->b[k] = (uint32_t)(code >> 8) & ((1u << bits[d->b_type]) - 1);
        out->a[k] &= d->a_type == NARROW_E4M3 ? 0xf7 : d->a_type == NARROW_E5M2 ? 0xfb : 0xff;
        out->b[k] &= d->b_type == NARROW_E4M3 ? 0xf7 : d->b_type == NARROW_E5M2 ? 0xfb : 0xff;
        out->a[k] = kind == 2 && code >> 16 & 1 ? 0 : out->a[k];
        d->a[k] = narrow_number_of(out->a[k], d->a_type);
        d->b[k] = narrow_number_of(out->b[k], d->b_type);
    }
    d->a_scale[0] = narrow_number_of(scale_code(state, NARROW_UE8M0, kind % 3), NARROW_UE8M0);
    d->b_scale[0] = narrow_number_of(scale_code(state, NARROW_UE8M0, kind % 3), NARROW_UE8M0);
}

static float c_value(uint64_t *state, uint64_t kind, bool half)
{
    float small = (float)((double)(int64_t)random_next(state) * 0x1p-58);
    float x = kind == 0   ? 0.0f
              : kind == 1 ? small
              : kind == 2 ? ldexpf(small, (int)(random_next(state) % 80) - 40)
                          : numfmt_float((uint32_t)random_next(state));
    return half ? numfmt_f16_decode(numfmt_f16_encode(x)) : x;
}

static void make_case(uint64_t index, scaled_case *out)
{
    uint64_t state = 991 + index * 7919;
    uint64_t kind = random_next(&state) % 4;
    bool empty = random_next(&state) % 2; /* zeros have exponents too */
    narrow_dot *d = &out->dot;

    *out = (scaled_case){0};
    d->mode = random_next(&state) % 3 == 0 ? HONE_EMU_EXACT : HONE_EMU_HW;
    d->len = random_next(&state) % 2 ? 64 : 32;
    if (d->len == 64) {
        d->a_type = d->b_type = NARROW_E2M1;
        d->scales = random_next(&state) % 2 ? 2 : 4;
        d->scale_type = d->scales == 4 && random_next(&state) % 2 ? NARROW_UE4M3 : NARROW_UE8M0;
    } else {
        d->a_type = (narrow_type)(random_next(&state) % 5);
        d->b_type = (narrow_type)(random_next(&state) % 5);
        d->scales = random_next(&state) % 4 != 0;
        d->scale_type = NARROW_UE8M0;
        d->half = d->scales == 0 && random_next(&state) % 2;
    }
    for (uint32_t k = 0; k < d->len; k++) {
        out->a[k] = (uint32_t)random_next(&state) & ((1u << bits[d->a_type]) - 1);
        out->b[k] = (uint32_t)random_next(&state) & ((1u << bits[d->b_type]) - 1);
        if (kind != 3) { /* numbers only; many zeros in some */
            out->a[k] &= d->a_type == NARROW_E4M3 ? 0xf7 : d->a_type == NARROW_E5M2 ? 0xfb : 0xff;
            out->b[k] &= d->b_type == NARROW_E4M3 ? 0xf7 : d->b_type == NARROW_E5M2 ? 0xfb : 0xff;
            out->a[k] = kind == 2 && (empty || k % 3) ? 0 : out->a[k];
        }
        d->a[k] = narrow_number_of(out->a[k], d->a_type);
        d->b[k] = narrow_number_of(out->b[k], d->b_type);
    }
    for (uint32_t k = 0; k < d->scales; k++) {
        out->a_scale[k] = scale_code(&state, d->scale_type, kind);
        out->b_scale[k] = scale_code(&state, d->scale_type, kind);
        d->a_scale[k] = narrow_number_of(out->a_scale[k], d->scale_type);
        d->b_scale[k] = narrow_number_of(out->b_scale[k], d->scale_type);
    }
    out->c = c_value(&state, random_next(&state) % 4, d->half);
}

static void print_codes(FILE *to, const uint32_t *codes, uint32_t len)
{
    if (len == 0) {
        fprintf(to, " -");
    }
    for (uint32_t k = 0; k < len; k++) {
        fprintf(to, k == 0 ? " %x" : ",%x", codes[k]);
    }
}

START_TEST(products_agree_with_the_model_in_python)
{
    const char *root = getenv("HONE_SOURCE_DIR"), *wanted = getenv("HONE_TENSOR_CASES");
    unsigned long cases = wanted != NULL ? strtoul(wanted, NULL, 10) : 2000;
    char command[1024];

    if (system("python3 -c pass >/dev/null 2>&1") != 0) {
        printf("SKIP the model: no python3 here\n");
        return;
    }
    snprintf(command, sizeof command, "python3 '%s/tests/tools/block_scale_model.py'",
             root != NULL ? root : ".");
    FILE *model = popen(command, "w");
    ck_assert_ptr_nonnull(model);
    for (unsigned long n = 0; n < cases; n++) {
        scaled_case c;
        make_case(n, &c);
        fprintf(model, "%s %s %s %s %d %x %x", c.dot.mode == HONE_EMU_HW ? "hw" : "exact",
                names[c.dot.a_type], names[c.dot.b_type], names[c.dot.scale_type], c.dot.half,
                numfmt_bits(c.c), numfmt_bits(narrow_run(&c.dot, c.c)));
        print_codes(model, c.a, c.dot.len);
        print_codes(model, c.b, c.dot.len);
        print_codes(model, c.a_scale, c.dot.scales);
        print_codes(model, c.b_scale, c.dot.scales);
        fputc('\n', model);
    }
    ck_assert_int_eq(WEXITSTATUS(pclose(model)), 0);
}
END_TEST

/* What a code stands for, by the formats' definitions. */
static double value_of(uint32_t code, narrow_type type)
{
    switch (type) {
    case NARROW_E4M3:
        return (double)numfmt_e4m3_decode((uint8_t)code);
    case NARROW_E5M2:
        return (double)numfmt_e5m2_decode((uint8_t)code);
    case NARROW_E2M1:
        return (double)numfmt_e2m1_decode(code & 15);
    case NARROW_UE8M0:
        return (double)numfmt_ue8m0_decode((uint8_t)code);
    case NARROW_UE4M3:
        return (double)numfmt_ue4m3_decode((uint8_t)code);
    default:
        break;
    }
    uint32_t fraction = type == NARROW_E3M2 ? 2 : 3, field = (code & 31) >> fraction;
    double significand = (code & ((1u << fraction) - 1)) | (field != 0 ? 1u << fraction : 0);
    int bias = type == NARROW_E3M2 ? 3 : 1;
    double x = ldexp(significand, (int)(field != 0 ? field : 1) - bias - (int)fraction);
    return code & 32 ? -x : x;
}

/* The product k with its scales. */
static double product_of(const scaled_case *c, uint32_t k)
{
    const narrow_dot *d = &c->dot;
    double x = value_of(c->a[k], d->a_type) * value_of(c->b[k], d->b_type);

    if (d->scales > 0) {
        const uint32_t block = k / (d->len / d->scales);
        x *=
            value_of(c->a_scale[block], d->scale_type) * value_of(c->b_scale[block], d->scale_type);
    }
    return x;
}

/* The distance to the next number of the result's type. */
static double last_place(double x, bool half)
{
    int exponent = 0;

    frexp(x, &exponent);
    return ldexp(1, half ? (exponent > -13 ? exponent - 11 : -24)
                         : (exponent > -125 ? exponent - 24 : -149));
}

/* What all terms come to, whatever their signs. */
static double sum_of_magnitudes(const scaled_case *c)
{
    double all = fabs((double)c->c);

    for (uint32_t k = 0; k < c->dot.len; k++) {
        all += fabs(product_of(c, k));
    }
    return all;
}

/* `fast` adds up to 64 products, each exact, to C in doubles: every one of 65 sums is off by 2^-53
 * of what all terms come to, at most. `exact` has the whole sum. Each is rounded to nearest then:
 * half a last place. */
static bool fast_is_near(double fast, double exact, double all, bool half)
{
    double most = fabs(fast) > fabs(exact) ? fabs(fast) : fabs(exact);

    return fabs(fast - exact) <= 65 * 0x1.02p-53 * all + last_place(most, half);
}

/* Leaving out one product shows, but for those that are lost in the result's rounding: twice the
 * bound above is below 2^-21 (f16: 2^-8) of all terms, or of the type's least numbers. */
static size_t leave_products_out(const scaled_case *c, double exact, double all)
{
    const bool half = c->dot.half;
    const double lost = all * (half ? 0x1p-8 : 0x1p-21) + (half ? 0x1p-22 : 0x1p-147);
    size_t shown = 0;

    for (uint32_t k = 0; k < c->dot.len; k++) {
        scaled_case less = *c;
        less.dot.a[k] = narrow_number_of(0, c->dot.a_type);
        double without = (double)narrow_run(&less.dot, c->c);
        bool shows = !isfinite(without) || !fast_is_near(without, exact, all, half);
        ck_assert_msg(shows || fabs(product_of(c, k)) <= lost, "product %u of %a: %a, not %a", k,
                      product_of(c, k), without, exact);
        shown += shows;
    }
    return shown;
}

START_TEST(fast_arithmetic_is_the_exact_one_but_for_roundings)
{
    size_t seen = 0, shown = 0;

    for (uint64_t n = 0; n < 2000; n++) {
        scaled_case c;
        make_case(n, &c);
        c.dot.mode = HONE_EMU_EXACT;
        const double exact = (double)narrow_run(&c.dot, c.c), all = sum_of_magnitudes(&c);
        c.dot.mode = HONE_EMU_FAST;
        const double fast = (double)narrow_run(&c.dot, c.c);
        if (!isfinite(exact)) {
            ck_assert(isnan(exact) ? isnan(fast) : fast == exact);
            continue;
        }
        ck_assert_msg(fast_is_near(fast, exact, all, c.dot.half), "%lu: %a, exact %a",
                      (unsigned long)n, fast, exact);
        shown += leave_products_out(&c, exact, all);
        seen++;
    }
    ck_assert_uint_gt(seen, 1500);
    ck_assert_uint_gt(shown, 35000);
}
END_TEST

/* Each code of the formats that core/numfmt knows. */
START_TEST(numbers_are_those_of_the_format_tables)
{
    for (uint32_t code = 0; code < 256; code++) {
        narrow_number e4m3 = narrow_number_of(code, NARROW_E4M3);
        narrow_number e5m2 = narrow_number_of(code, NARROW_E5M2);
        narrow_number ue4m3 = narrow_number_of(code, NARROW_UE4M3);
        narrow_number ue8m0 = narrow_number_of(code, NARROW_UE8M0);
        float x = numfmt_e4m3_decode((uint8_t)code), y = numfmt_e5m2_decode((uint8_t)code);
        ck_assert(isnan(x) ? e4m3.nan : (float)ldexp(e4m3.significand, e4m3.exponent - 3) == x);
        ck_assert(isnan(y)   ? e5m2.nan
                  : isinf(y) ? e5m2.infinite && (e5m2.significand < 0) == (y < 0)
                             : (float)ldexp(e5m2.significand, e5m2.exponent - 2) == y);
        x = numfmt_ue4m3_decode((uint8_t)code);
        ck_assert(isnan(x) ? ue4m3.nan : (float)ldexp(ue4m3.significand, ue4m3.exponent - 3) == x);
        x = numfmt_ue8m0_decode((uint8_t)code);
        ck_assert(isnan(x) ? ue8m0.nan : (float)ldexp(ue8m0.significand, ue8m0.exponent) == x);
        narrow_number e2m1 = narrow_number_of(code & 15, NARROW_E2M1);
        ck_assert((float)ldexp(e2m1.significand, e2m1.exponent - 1) ==
                  numfmt_e2m1_decode(code & 15));
        narrow_number e3m2 = narrow_number_of(code & 63, NARROW_E3M2);
        narrow_number e2m3 = narrow_number_of(code & 63, NARROW_E2M3);
        ck_assert(ldexp(e3m2.significand, e3m2.exponent - 2) == value_of(code & 63, NARROW_E3M2));
        ck_assert(ldexp(e2m3.significand, e2m3.exponent - 3) == value_of(code & 63, NARROW_E2M3));
    }
}
END_TEST

/* A whole tile against its elements one by one: every pair of types, scales near and far. */
START_TEST(a_row_of_a_tile_is_its_elements)
{
    narrow_dot dot = {.mode = HONE_EMU_HW, .len = 32, .scales = 1, .scale_type = NARROW_UE8M0};
    uint64_t state = 17 + (uint64_t)_i;
    scaled_tile t = {.a_type = (narrow_type)(_i / 5 % 5), .b_type = (narrow_type)(_i % 5)};
    scaled_case row = {.dot = dot}, columns[SCALED_COLUMNS];
    float c[SCALED_COLUMNS], d[SCALED_COLUMNS];

    row.dot.a_type = t.a_type;
    row.dot.b_type = t.b_type;
    for (uint32_t n = 0; n < SCALED_COLUMNS; n++) {
        const uint64_t kind = (uint64_t)_i / 25;
        columns[n] = row;
        fill_numbers(&columns[n], &state, kind);
        memcpy(columns[n].dot.a, columns[0].dot.a, sizeof columns[n].dot.a);
        columns[n].dot.a_scale[0] = columns[0].dot.a_scale[0];
        c[n] = c_value(&state, n % 3, false);
        for (uint32_t k = 0; k < SCALED_DEPTH; k++) {
            const narrow_dot *from = &columns[n].dot;
            t.a[3][k] = from->a[k].significand;
            t.a_exponent[3][k] = from->a[k].exponent + from->a_scale[0].exponent;
            t.b[k][n] = from->b[k].significand;
            t.b_exponent[k][n] = from->b[k].exponent + from->b_scale[0].exponent;
        }
    }
    scaled_tile_row(&t, 3, c, d);
    for (uint32_t n = 0; n < SCALED_COLUMNS; n++) {
        const float one = narrow_run(&columns[n].dot, c[n]);
        ck_assert_msg(numfmt_bits(d[n]) == numfmt_bits(one), "column %u: %a, one by one %a", n,
                      (double)d[n], (double)one);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_scale");

    tcase_set_timeout(tests, 900);
    tcase_add_test(tests, products_agree_with_the_model_in_python);
    tcase_add_test(tests, fast_arithmetic_is_the_exact_one_but_for_roundings);
    tcase_add_test(tests, numbers_are_those_of_the_format_tables);
    tcase_add_loop_test(tests, a_row_of_a_tile_is_its_elements, 0, 25 * 12);
    return suite_run("emulator/block_scale", tests);
}
