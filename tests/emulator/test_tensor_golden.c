/* test_tensor_golden.c - what each matrix unit keeps and adds at once, through its instructions:
 * vectors whose results were worked out by hand from kernels.md 6.2 and emulator.md 5.7.
 *
 * P is a power of two that products of the type reach, S is 1.5 units of P's last fraction bit that
 * the unit keeps: S = 1.5 * 2^-F * P. One bit less of it and S is cut to nothing, one more and it
 * stays whole. P - P shows what is left of it. */
#include "emulator/tensor/tensor.h"
#include "tests/emulator/unit_bench.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A unit by the tables of the two specifications: F, mantissa bits of an f32 result (0: it is f16),
 * products in a step; log2 of P, and what block scales add to that. */
typedef struct unit {
    unit_form form;
    int fraction, mantissa;
    uint32_t terms;
    int p, scale;
    bool coarse;           /* no product of the type is as small as S: only C is */
    const float *appendix; /* results of kernels.md App. B */
} unit;

/* App. B: A = [448, w x 31], B = [448, 1 x 31], C = 0, for w = 1, 12, 9. */
static const float ada[] = {200704, 200816, 200816}, hopper[] = {200704, 200944, 200944},
                   later[] = {200735, 201076, 200983};

#define F16(shape)  shape ".row.col.f32.f16.f16.f32"
#define BF16(shape) shape ".row.col.f32.bf16.bf16.f32"
#define TF32(shape) shape ".row.col.f32.tf32.tf32.f32"
#define HALF(shape) shape ".row.col.f16.f16.f16.f16"
#define E4M3        "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#define E5M2        "m16n8k32.row.col.f32.e5m2.e5m2.f32"
#define KIND(t, d)  "kind::f8f6f4.m16n8k32.row.col." d "." t "." t "." d
#define MX(t)       "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32." t "." t ".f32.ue8m0"
/* A Hopper's mma.sync and what came later: 16-bit types in steps of 16, 8-bit ones of 32 */
#define LATER(arch)                                                                                \
    {{F16("m16n8k16"), arch, UNIT_F16, false, 16}, 25, 23, 16, 0, 0, false, NULL},                 \
        {{BF16("m16n8k16"), arch, UNIT_BF16, false, 16}, 25, 23, 16, 0, 0, false, NULL},           \
        {{F16("m16n8k8"), arch, UNIT_F16, false, 8}, 25, 23, 8, 0, 0, false, NULL},                \
        {{HALF("m16n8k16"), arch, UNIT_F16, true, 16}, 25, 0, 16, 4, 0, false, NULL},              \
        {{TF32("m16n8k8"), arch, UNIT_TF32, false, 8}, 25, 23, 8, 0, 0, false, NULL},              \
        {{E4M3, arch, UNIT_E4M3, false, 32}, 25, 23, 32, 13, 0, false, later},                     \
        {{E5M2, arch, UNIT_E5M2, false, 32}, 25, 23, 32, 0, 0, false, NULL},                       \
    {                                                                                              \
        {"m16n8k32.row.col.f16.e4m3.e4m3.f16", arch, UNIT_E4M3, true, 32}, 25, 0, 32, 13, 0,       \
            false, NULL                                                                            \
    }
/* Ampere and Ada: two steps, of 8 (tf32: 4) products */
#define AMPERE(arch)                                                                               \
    {{F16("m16n8k16"), arch, UNIT_F16, false, 16}, 24, 23, 8, 0, 0, false, NULL},                  \
        {{BF16("m16n8k16"), arch, UNIT_BF16, false, 16}, 24, 23, 8, 0, 0, false, NULL},            \
        {{BF16("m16n8k8"), arch, UNIT_BF16, false, 8}, 24, 23, 8, 0, 0, false, NULL},              \
        {{HALF("m16n8k16"), arch, UNIT_F16, true, 16}, 24, 0, 8, 4, 0, false, NULL},               \
        {{TF32("m16n8k8"), arch, UNIT_TF32, false, 8}, 24, 23, 4, 0, 0, false, NULL},              \
    {                                                                                              \
        {TF32("m16n8k4"), arch, UNIT_TF32, false, 4}, 24, 23, 4, 0, 0, false, NULL                 \
    }

static const unit units[] = {
    AMPERE(80),
    AMPERE(89),
    {{E4M3, 89, UNIT_E4M3, false, 32}, 13, 13, 16, 1, 0, false, ada},
    {{E5M2, 89, UNIT_E5M2, false, 32}, 13, 13, 16, 0, 0, false, NULL},
    {{"m16n8k32.row.col.f16.e4m3.e4m3.f16", 89, UNIT_E4M3, true, 32}, 13, 0, 16, 1, 0, false, NULL},
    LATER(90),
    LATER(100),
    LATER(120),
    /* wgmma */
    {{NULL, 90, UNIT_E4M3, false, 32}, 13, 13, 32, 1, 0, false, hopper},
    {{NULL, 90, UNIT_E5M2, false, 32}, 13, 13, 32, 0, 0, false, NULL},
    {{NULL, 90, UNIT_E4M3, true, 32}, 13, 0, 32, 1, 0, false, NULL},
    {{NULL, 90, UNIT_BF16, false, 16}, 25, 23, 16, 0, 0, false, NULL},
    {{NULL, 90, UNIT_F16, false, 16}, 25, 23, 16, 0, 0, false, NULL},
    {{NULL, 90, UNIT_F16, true, 16}, 25, 0, 16, 4, 0, false, NULL},
    {{NULL, 90, UNIT_TF32, false, 8}, 25, 23, 8, 0, 0, false, NULL},
    /* sm_120's kinds; scales of 2^3 and 2^4 */
    {{KIND("e4m3", "f32"), 120, UNIT_E4M3, false, 32}, 25, 23, 32, 13, 0, false, later},
    {{KIND("e5m2", "f32"), 120, UNIT_E5M2, false, 32}, 25, 23, 32, 0, 0, false, NULL},
    {{KIND("e3m2", "f32"), 120, UNIT_E3M2, false, 32}, 25, 23, 32, 0, 0, true, NULL},
    {{KIND("e2m3", "f32"), 120, UNIT_E2M3, false, 32}, 25, 23, 32, 0, 0, true, NULL},
    {{KIND("e2m1", "f32"), 120, UNIT_E2M1, false, 32}, 25, 23, 32, 0, 0, true, NULL},
    {{KIND("e2m1", "f16"), 120, UNIT_E2M1, true, 32}, 25, 0, 32, 4, 0, true, NULL},
    {{MX("e4m3"), 120, UNIT_E4M3, false, 32}, 25, 23, 32, 13, 7, false, later},
    {{MX("e5m2"), 120, UNIT_E5M2, false, 32}, 25, 23, 32, 0, 7, false, NULL},
    {{MX("e2m1"), 120, UNIT_E2M1, false, 32}, 25, 23, 32, 0, 7, true, NULL},
};

/* The product k is x * P: a takes the significand and half of the exponent. */
static void put(const unit *u, unit_line *l, uint32_t k, double x)
{
    int exponent = 0;
    double significand = 2 * frexp(x, &exponent); /* [1, 2) */
    int all = exponent - 1 + u->p, left = all >= 0 ? all / 2 : -(-all / 2);

    ck_assert_uint_lt(k, u->form.k);
    l->a[k] = (float)ldexp(significand, left);
    l->b[k] = (float)ldexp(1, all - left);
}

static unit_line line_of(const unit *u, double c)
{
    unit_line l = {.c = (float)ldexp(c, u->p + u->scale)};

    l.a_scale = u->scale != 0 ? 127 + 3 : 0;
    l.b_scale = u->scale != 0 ? 127 + 4 : 0;
    return l;
}

/* The result is x * P. */
static void expect(const unit *u, const unit_line *l, double x, const char *claim)
{
    double got = (double)unit_bench_run(&u->form, l), want = ldexp(x, u->p + u->scale);

    ck_assert_msg(got == want, "%s on sm_%d, %s: %a, not %a",
                  u->form.form != NULL ? u->form.form : "wgmma", u->form.arch, claim, got, want);
}

static void terms_keep_their_first_bits(const unit *u, double s, double bit)
{
    for (int sign = 1; sign >= -1; sign -= 2) { /* toward zero */
        unit_line l = line_of(u, 0);
        put(u, &l, 0, 1);
        put(u, &l, 1, -1);
        put(u, &l, 2, sign * s);
        expect(u, &l, sign * bit, "P - P + S");
    }
    unit_line l = line_of(u, 1);
    put(u, &l, u->form.k - 1, -1);
    put(u, &l, u->form.k - 2, s);
    expect(u, &l, bit, "C = P; -P + S");
}

static void steps_hold_so_many_products(const unit *u, double s, double bit)
{
    unit_line l = line_of(u, 0);
    put(u, &l, 0, 1);
    put(u, &l, 1, s);
    put(u, &l, u->terms - 1, -1);
    expect(u, &l, bit, "P, S at the beginning of a step, -P at its end");
    if (u->terms == u->form.k) {
        return;
    }
    l = line_of(u, 0); /* 2 P + S has no room for S in the result of a step */
    put(u, &l, 0, s);
    put(u, &l, u->terms - 2, 1);
    put(u, &l, u->terms - 1, 1);
    put(u, &l, u->terms, -1);
    put(u, &l, u->terms + 1, -1);
    expect(u, &l, 0, "P + P + S in one step, -P - P in the next");
}

static void results_keep_their_mantissa(const unit *u)
{
    double last = ldexp(1, -u->mantissa);

    for (int sign = 1; sign >= -1; sign -= 2) {
        unit_line l = line_of(u, 0);
        put(u, &l, 0, sign);
        put(u, &l, 1, sign * 1.5 * last);
        expect(u, &l, sign * (1 + last), "P and 1.5 of its last bit");
        put(u, &l, 2, sign);
        expect(u, &l, sign * 2, "P + P and 0.75 of their last bit");
    }
}

static void accumulators_are_cut_too(const unit *u, double s, double bit)
{
    for (int sign = 1; sign >= -1; sign -= 2) {
        unit_line l = line_of(u, sign * s);
        put(u, &l, 0, 1);
        put(u, &l, u->terms - 1, -1);
        expect(u, &l, sign * bit, "C = S; P - P");
    }
}

START_TEST(units_keep_and_add_what_was_worked_out_by_hand)
{
    const unit *u = &units[_i];
    double bit = ldexp(1, -u->fraction), s = 1.5 * bit;

    accumulators_are_cut_too(u, s, bit);
    if (u->coarse) {
        return;
    }
    terms_keep_their_first_bits(u, s, bit);
    steps_hold_so_many_products(u, s, bit);
    if (u->mantissa > 0) {
        results_keep_their_mantissa(u);
    }
}
END_TEST

/* A step of more products than an instruction has would go unseen above. */
START_TEST(the_emulator_s_table_is_the_specifications)
{
    static const tensor_type types[] = {[UNIT_E4M3] = TENSOR_E4M3,
                                        [UNIT_E5M2] = TENSOR_E5M2,
                                        [UNIT_BF16] = TENSOR_BF16,
                                        [UNIT_F16] = TENSOR_F16,
                                        [UNIT_TF32] = TENSOR_TF32};
    const unit *u = &units[_i];
    const unit_form *f = &u->form;
    bool kind = f->form != NULL && strstr(f->form, "kind::") != NULL;

    if (kind || 8 * tensor_elements(types[f->type]) != f->k) {
        return; /* a shape of half the depth; units without a table */
    }
    tensor_unit has = f->form == NULL
                          ? tensor_unit_wgmma(types[f->type], f->half, HONE_EMU_HW)
                          : tensor_unit_mma(f->arch, types[f->type], f->half, HONE_EMU_HW);
    ck_assert_int_eq(has.fraction, u->fraction);
    ck_assert_int_eq(has.mantissa, f->half ? TENSOR_HALF : u->mantissa);
    ck_assert_int_eq(has.terms, u->terms);
}
END_TEST

START_TEST(the_appendix_s_vectors_come_out)
{
    static const float small[] = {1, 12, 9};
    const unit *u = &units[_i];

    for (size_t n = 0; n < ARRAY_LEN(small) && u->appendix != NULL; n++) {
        unit_line l = line_of(u, 0);
        for (uint32_t k = 0; k < 32; k++) {
            l.a[k] = k == 0 ? 448 : small[n];
            l.b[k] = k == 0 ? 448 : 1;
        }
        float got = unit_bench_run(&u->form, &l), want = ldexpf(u->appendix[n], u->scale);
        ck_assert_msg(got == want, "unit %d, w = %g: %.9g, not %.9g", _i, (double)small[n],
                      (double)got, (double)want);
    }
}
END_TEST

/* ---- K 64: sums of 16 are exact, get their scales, and keep 35 bits -------------------------- */

#define FP4(kind, scales, type)                                                                    \
    "kind::" kind ".block_scale.scale_vec::" scales ".m16n8k64.row.col.f32.e2m1.e2m1.f32." type
/* Bytes of scales: blocks of the lower half of k have the first, those of the upper half the
 * second. P is a product of 1 in the upper half. */
static const struct {
    const char *form;
    uint32_t blocks, low[2], high[2]; /* of a and of b */
    int p, bit;                       /* log2 of P, and of what 1 in the lower half is */
} nibbles[] = {
    /* 2^-17 * 2^-18 and 1 */
    {FP4("mxf4", "2X", "ue8m0"), 2, {110, 109}, {127, 127}, 0, -35},
    {FP4("mxf4nvf4", "2X", "ue8m0"), 2, {110, 109}, {127, 127}, 0, -35},
    {FP4("mxf4nvf4", "4X", "ue8m0"), 4, {110, 109}, {127, 127}, 0, -35},
    /* 2^-9 twice, the least of all: exponents of -6, significands of 1/8; and 2^8 twice */
    {FP4("mxf4nvf4", "4X", "ue4m3"), 4, {1, 1}, {0x78, 0x78}, 16, -18},
};

static unit_line nibble_line(size_t n, double c)
{
    unit_line l = {.c = (float)ldexp(c, nibbles[n].p)};

    for (uint32_t block = 0; block < nibbles[n].blocks; block++) {
        const uint32_t *of = block < nibbles[n].blocks / 2 ? nibbles[n].low : nibbles[n].high;
        l.a_scale |= of[0] << 8 * block;
        l.b_scale |= of[1] << 8 * block;
    }
    return l;
}

static void nibble_expect(size_t n, const unit_line *l, double want, const char *claim)
{
    const unit_form u = {nibbles[n].form, 120, UNIT_NIBBLE, false, 64};
    double got = (double)unit_bench_run(&u, l);

    ck_assert_msg(got == want, "%s, %s: %a, not %a", nibbles[n].form, claim, got, want);
}

static void nibble_put(unit_line *l, uint32_t k, float a, float b)
{
    l->a[k] = a;
    l->b[k] = b;
}

START_TEST(accumulators_beside_groups_keep_35_bits)
{
    const size_t n = (size_t)_i;

    for (uint32_t k = 47; k < 64; k += 16) { /* in the group beside, and in the last one */
        for (int sign = 1; sign >= -1; sign -= 2) {
            unit_line l = nibble_line(n, sign * 0x1.8p-35);
            nibble_put(&l, 32, 1, 1);
            nibble_put(&l, k, -1, 1);
            nibble_expect(n, &l, ldexp(sign, nibbles[n].p - 35), "C = S; P - P");
        }
    }
    unit_line l = nibble_line(n, 0x1.8p-23);
    nibble_put(&l, 63, 1, 1);
    nibble_expect(n, &l, ldexp(1 + 0x1p-23, nibbles[n].p), "C is 1.5 of P's last bit");
}
END_TEST

/* Halves of what is still kept. */
START_TEST(sixteen_products_are_added_before_they_are_cut)
{
    const size_t n = (size_t)_i;
    const float least = nibbles[n].p == 16 ? 0.5f : 1.0f; /* times 0.5 */
    const double kept = ldexp(least, nibbles[n].bit);

    static const uint32_t others[] = {1, 8, 15, 16, 31};

    for (size_t o = 0; o < ARRAY_LEN(others); o++) {
        unit_line l = nibble_line(n, 0);
        nibble_put(&l, 0, 0.5f, least);
        nibble_put(&l, others[o], 0.5f, least);
        nibble_put(&l, 32, 1, 1);
        nibble_put(&l, 48, -1, 1);
        nibble_expect(n, &l, others[o] < 16 ? kept : 0, "two halves");
    }
    unit_line l = nibble_line(n, 0);
    for (uint32_t k = 0; k < 16; k++) { /* 8 in all */
        nibble_put(&l, k, 0.5f, least);
    }
    nibble_put(&l, 32, 1, 1);
    nibble_put(&l, 63, -1, 1);
    nibble_expect(n, &l, 8 * kept, "sixteen halves");
    l = nibble_line(n, 0);
    nibble_put(&l, 15, 0.5f, least);
    nibble_put(&l, 16, 0.5f, least);
    nibble_put(&l, 32, 1, 1);
    nibble_put(&l, 48, -1, 1);
    nibble_expect(n, &l, 0, "halves on both sides of a group's end");
}
END_TEST

/* ---- Integers are exact, and stop at the ends or wrap ---------------------------------------- */

static const struct {
    const char *form;
    uint32_t a, b, c, expected; /* all bytes of a and b the same */
} integers[] = {
    {"m16n8k32.row.col.s32.s8.s8.s32", 0x80, 0x80, 0, 32 * 16384},
    {"m16n8k32.row.col.s32.u8.s8.s32", 0xff, 0x80, 7, (uint32_t)(7 - 32 * 255 * 128)},
    {"m16n8k32.row.col.s32.s8.u8.s32", 0x80, 0xff, 0, (uint32_t)(-32 * 255 * 128)},
    {"m16n8k32.row.col.s32.u8.u8.s32", 0xff, 0xff, 1, 32 * 65025 + 1},
    {"m16n8k32.row.col.s32.s8.s8.s32", 1, 1, 0x7fffffff, 0x8000001f},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 1, 1, 0x7fffffff, 0x7fffffff},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 1, 1, 0x7fffffdf, 0x7fffffff}, /* just fits */
    {"m16n8k32.row.col.s32.s8.s8.s32", 1, 0xff, 0x80000000, 0x7fffffe0},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 1, 0xff, 0x80000000, 0x80000000},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 1, 0xff, 0x80000021, 0x80000001},
};

START_TEST(integers_are_exact_and_stop_or_wrap)
{
    char body[256];
    uint32_t in[32][3], out[32][4];
    ptx_bench b;

    for (uint32_t lane = 0; lane < 32; lane++) {
        in[lane][0] = 0x01010101u * integers[_i].a;
        in[lane][1] = 0x01010101u * integers[_i].b;
        in[lane][2] = integers[_i].c;
    }
    sprintf(body,
            "mma.sync.aligned.%s {%%d0,%%d1,%%d2,%%d3}, {%%a0,%%a0,%%a0,%%a0}, {%%a1,%%a1}, "
            "{%%a2,%%a2,%%a2,%%a2};",
            integers[_i].form);
    char *ptx = ptx_bench_wrap(body, 3, 4);
    ptx_bench_open(&b);
    b.launch.arithmetic = _i % 2 ? HONE_EMU_HW : HONE_EMU_FAST; /* no arithmetic changes them */
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in),
             to = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_int_eq(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                   (void *[]){&from, &to}),
                     HONE_OK);
    ptx_bench_read(&b, to, out, sizeof out);
    for (uint32_t n = 0; n < 128; n++) {
        ck_assert_uint_eq(out[n / 4][n % 4], integers[_i].expected);
    }
    ptx_bench_close(&b);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor_golden");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, units_keep_and_add_what_was_worked_out_by_hand, 0,
                        (int)ARRAY_LEN(units));
    tcase_add_loop_test(tests, the_emulator_s_table_is_the_specifications, 0,
                        (int)ARRAY_LEN(units));
    tcase_add_loop_test(tests, the_appendix_s_vectors_come_out, 0, (int)ARRAY_LEN(units));
    tcase_add_loop_test(tests, accumulators_beside_groups_keep_35_bits, 0, (int)ARRAY_LEN(nibbles));
    tcase_add_loop_test(tests, sixteen_products_are_added_before_they_are_cut, 0,
                        (int)ARRAY_LEN(nibbles));
    tcase_add_loop_test(tests, integers_are_exact_and_stop_or_wrap, 0, (int)ARRAY_LEN(integers));
    return suite_run("emulator/tensor_golden", tests);
}
