/* test_tensor.c - the matrix units: golden vectors, fragment layouts, and that all vector levels
 * agree. */
#include "tests/emulator/tensor_cases.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float mma_element(const tensor_case *t, uint32_t row, uint32_t n)
{
    uint32_t d[4][32], lane = 4 * (row % 8) + n / 2, reg = 2 * (row / 8) + n % 2;
    float out = 0.0f;

    tensor_mma_m16n8(d, t->a, t->b, t->c, t->a_type, t->b_type, t->unit, t->mode);
    memcpy(&out, &d[reg][lane], sizeof out);
    return out;
}

/* kernels.md App. B: A = [448, w x 31], B = [448, 1 x 31], C = 0. */
static const struct {
    uint8_t w;
    int32_t arch;
    hone_emu_arithmetic mode;
    float expected;
} golden[] = {
    {0x38, 89, HONE_EMU_HW, 200704.0f},     {0x38, 90, HONE_EMU_HW, 200735.0f},
    {0x38, 100, HONE_EMU_HW, 200735.0f},    {0x38, 89, HONE_EMU_EXACT, 200735.0f},
    {0x54, 89, HONE_EMU_HW, 200816.0f},     {0x54, 90, HONE_EMU_HW, 201076.0f},
    {0x54, 120, HONE_EMU_EXACT, 201076.0f}, {0x51, 89, HONE_EMU_HW, 200816.0f},
    {0x51, 120, HONE_EMU_HW, 200983.0f},    {0x51, 89, HONE_EMU_FAST, 200983.0f},
};

START_TEST(a_large_product_hides_small_ones_as_the_unit_does)
{
    tensor_case t;
    uint8_t w = golden[_i].w;

    memset(&t, 0, sizeof t);
    for (size_t lane = 0; lane < 32; lane++) {
        for (size_t i = 0; i < 4; i++) {
            t.a[i][lane] = 0x01010101u * w;
        }
        t.b[0][lane] = t.b[1][lane] = 0x38383838;
    }
    for (size_t g = 0; g < 8; g++) { /* k = 0 */
        t.a[0][4 * g] = (t.a[0][4 * g] & ~0xffu) | 0x7e;
        t.a[1][4 * g] = (t.a[1][4 * g] & ~0xffu) | 0x7e;
        t.b[0][4 * g] = (t.b[0][4 * g] & ~0xffu) | 0x7e;
    }
    t.mode = golden[_i].mode;
    t.unit = tensor_unit_mma(golden[_i].arch, TENSOR_E4M3, false, t.mode);
    ck_assert_float_eq(mma_element(&t, 0, 0), golden[_i].expected);
    ck_assert_float_eq(mma_element(&t, 15, 7), golden[_i].expected);
}
END_TEST

/* The sm_90 wgmma unit of the same table. */
START_TEST(the_wgmma_unit_adds_32_terms_at_once)
{
    static const struct {
        uint16_t w;
        float expected;
    } rows[] = {{0x38, 200704.0f}, {0x54, 200944.0f}, {0x51, 200944.0f}};
    tensor_unit wgmma = tensor_unit_wgmma(TENSOR_E4M3, false, HONE_EMU_HW);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t a[32], b[32];
        for (size_t k = 0; k < 32; k++) {
            a[k] = k == 0 ? 0x7e : rows[i].w;
            b[k] = k == 0 ? 0x7e : 0x38;
        }
        ck_assert_float_eq(tensor_dot(a, b, 32, 0.0f, TENSOR_E4M3, TENSOR_E4M3, wgmma, HONE_EMU_HW),
                           rows[i].expected);
    }
}
END_TEST

START_TEST(the_accumulator_alone_keeps_the_units_mantissa)
{
    static const float c = 0x1p0f + 0x1p-13f + 0x1p-14f;
    tensor_case t;

    memset(&t, 0, sizeof t);
    t.mode = HONE_EMU_HW;
    for (size_t lane = 0; lane < 32; lane++) {
        memcpy(&t.c[0][lane], &c, sizeof c);
    }
    t.unit = tensor_unit_mma(89, TENSOR_E4M3, false, t.mode);
    ck_assert_float_eq(mma_element(&t, 0, 0), 0x1p0f + 0x1p-13f);
    t.unit = tensor_unit_wgmma(TENSOR_E4M3, false, t.mode);
    ck_assert_float_eq(mma_element(&t, 0, 0), 0x1p0f + 0x1p-13f);
    t.unit = tensor_unit_mma(90, TENSOR_E4M3, false, t.mode);
    ck_assert_float_eq(mma_element(&t, 0, 0), c);
}
END_TEST

/* A zero's exponent is -126, and counts for nothing above that: accumulators beside products that
 * are all zero lose only what is below the unit's mantissa. */
START_TEST(products_of_zeros_hide_no_accumulator)
{
    static const uint32_t codes[4][2] = {
        {0, 0}, {0x7b7b7b7b, 0}, {0, 0x01010101}, {0x80808080, 0x7b7b7b7b}};
    static const tensor_type types[] = {TENSOR_E4M3, TENSOR_E5M2};
    tensor_case t;
    uint32_t d[4][32];

    for (uint32_t n = 40 * 16; n < 255 * 16; n++) {
        const uint32_t *code = codes[n / 4 % 4];
        uint32_t c = n / 16 << 23 | 0x007fffff | n << 31;
        t.mode = HONE_EMU_HW;
        t.a_type = types[n % 2];
        t.b_type = types[n / 2 % 2];
        t.unit = tensor_unit_mma(n % 3 == 0 ? 90 : 89, t.a_type, false, t.mode);
        memset(t.a, (int)(code[0] & 255), sizeof t.a);
        memset(t.b, (int)(code[1] & 255), sizeof t.b);
        memset(t.c, 0, sizeof t.c);
        t.c[n % 4][n % 32] = c;
        tensor_mma_m16n8(d, (const uint32_t(*)[32])t.a, (const uint32_t(*)[32])t.b,
                         (const uint32_t(*)[32])t.c, t.a_type, t.b_type, t.unit, t.mode);
        ck_assert_uint_eq(d[n % 4][n % 32], t.unit.mantissa == 13 ? c & ~0x3ffu : c);
    }
}
END_TEST

/* One code at A(row, k) and one at B(k, n) must meet at D(row, n) and nowhere else. The lane that
 * holds each is written out from PTX's picture of the fragments, one formula for each operand. */
START_TEST(one_hot_operands_land_where_the_layout_says)
{
    static const tensor_type types[] = {TENSOR_E4M3, TENSOR_BF16, TENSOR_S8};
    static const uint32_t ones[] = {0x38, 0x3f80, 1};
    static const uint32_t sums[] = {0x3f800000, 0x3f800000, 1};
    uint32_t per = types[_i] == TENSOR_BF16 ? 2 : 4, bits = 32 / per;
    tensor_unit unit = tensor_unit_mma(90, types[_i], false, HONE_EMU_HW);

    for (uint32_t at = 0; at < 16 * 8 * 8 * per; at++) {
        uint32_t row = at % 16, n = at / 16 % 8, k = at / 128;
        uint32_t a[4][32] = {{0}}, b[2][32] = {{0}}, c[4][32] = {{0}}, d[4][32];
        uint32_t a_reg = (row >= 8 ? 1 : 0) + (k >= 4 * per ? 2 : 0), b_reg = k >= 4 * per ? 1 : 0;
        uint32_t quad = k % (4 * per) / per, shift = bits * (k % per);
        a[a_reg][row % 8 * 4 + quad] = ones[_i] << shift;
        b[b_reg][n * 4 + quad] = ones[_i] << shift;
        tensor_mma_m16n8(d, (const uint32_t(*)[32])a, (const uint32_t(*)[32])b,
                         (const uint32_t(*)[32])c, types[_i], types[_i], unit, HONE_EMU_HW);
        for (uint32_t i = 0; i < 128; i++) {
            uint32_t lane = i % 32, reg = i / 32;
            bool here = lane / 4 + (reg >= 2 ? 8 : 0) == row && lane % 4 * 2 + (reg & 1) == n;
            ck_assert_uint_eq(d[reg][lane], here ? sums[_i] : 0);
        }
    }
}
END_TEST

static const struct {
    const char *name;
    tensor_lanes_fn *run;
    const tensor_group *group;
} levels[] = {
    {"baseline", tensor_lanes_baseline, &tensor_group_baseline},
#if defined(__x86_64__)
    {"avx2", tensor_lanes_avx2, &tensor_group_avx2},
    {"avx512", tensor_lanes_avx512, &tensor_group_avx512},
#endif
};

static bool level_runs_here(size_t level)
{
#if defined(__x86_64__)
    return level == 0 ||
           (level == 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) ||
           (level == 2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"));
#else
    return level == 0;
#endif
}

static uint32_t element_by_itself(const tensor_case *t, uint32_t reg, uint32_t lane)
{
    uint32_t a[32], b[32];
    size_t len = tensor_cases_operands(t, lane / 4 + 8 * (reg / 2), 2 * (lane % 4) + reg % 2, a, b);
    float c = 0.0f;
    uint32_t bits = 0;

    memcpy(&c, &t->c[reg][lane], sizeof c);
    c = tensor_dot(a, b, len, c, t->a_type, t->b_type, t->unit, t->mode);
    memcpy(&bits, &c, sizeof bits);
    return bits;
}

/* The product with operands taken apart for it alone, and with kept ones, used twice: the same
 * bits. False when the vectors refuse it. */
static bool run_level(size_t level, const tensor_case *t, uint32_t d[4][32])
{
    static tensor_left left;
    static tensor_right right;
    uint32_t kept[4][32];
    uint32_t *const first[4] = {d[0], d[1], d[2], d[3]};
    uint32_t *const again[4] = {kept[0], kept[1], kept[2], kept[3]};
    tensor_call call = {{t->a[0], t->a[1], t->a[2], t->a[3]},
                        {t->b[0], t->b[1]},
                        {t->c[0], t->c[1], t->c[2], t->c[3]},
                        t->a_type,
                        t->b_type,
                        t->unit,
                        t->mode,
                        false,
                        NULL,
                        NULL};

    if (t->a_type == TENSOR_TF32 || t->half) {
        return false; /* they go element by element */
    }
    bool done = levels[level].run(first, &call);

    call.left = &left;
    call.right = &right;
    for (int use = 0; use < 2; use++) {
        ck_assert_int_eq(levels[level].run(again, &call), done);
        if (done) {
            ck_assert_mem_eq(kept, d, sizeof kept);
        }
    }
    return done;
}

/* Two blocks of columns at once give what each gives alone; only some levels and modes do it. */
static void compare_pair(size_t level, const tensor_group_call *alone, uint32_t *const d[8])
{
    static tensor_columns two[2];
    uint32_t out[8][32];
    uint32_t *const to[8] = {out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]};
    tensor_group_call call = *alone;

    two[0] = *alone->columns;
    two[1].type = two[0].type;
    memcpy(two[1].raw[0], two[0].raw[1], sizeof two[1].raw[0]);
    memcpy(two[1].raw[1], two[0].raw[0], sizeof two[1].raw[1]);
    levels[level].group->open_columns(&two[1]);
    call.columns = &two[1];
    if (!levels[level].group->run(d + 4, &call)) {
        return;
    }
    call.columns = two;
    call.blocks = 2;
    memcpy(call.c + 4, call.c, 4 * sizeof *call.c);
    if (levels[level].group->run(to, &call)) {
        for (uint32_t n = 0; n < 8; n++) {
            ck_assert_mem_eq(out[n], d[n], sizeof out[n]);
        }
    }
    tensor_group_run(to, &call);
    for (uint32_t n = 0; n < 8; n++) {
        ck_assert_mem_eq(out[n], d[n], sizeof out[n]);
    }
}

/* The same by the functions of wgmma, for units that take all terms at once. */
static bool run_group(size_t level, const tensor_case *t, uint32_t d[4][32])
{
    static tensor_rows rows;
    static tensor_columns columns;
    uint32_t other[4][32];
    uint32_t *const to[8] = {d[0], d[1], d[2], d[3], other[0], other[1], other[2], other[3]};
    uint32_t terms = 8 * tensor_elements(t->a_type);

    if (t->mode == HONE_EMU_EXACT || t->half ||
        (t->mode == HONE_EMU_HW && (uint32_t)t->unit.terms != terms)) {
        return false;
    }
    memcpy(rows.raw, t->a, sizeof rows.raw);
    memcpy(columns.raw, t->b, sizeof columns.raw);
    rows.type = t->a_type;
    columns.type = t->b_type;
    levels[level].group->open_rows(&rows);
    levels[level].group->open_columns(&columns);
    tensor_group_call call = {.rows = &rows,
                              .columns = &columns,
                              .c = {t->c[0], t->c[1], t->c[2], t->c[3]},
                              .blocks = 1,
                              .unit = t->unit,
                              .mode = t->mode};
    if (!levels[level].group->run(to, &call)) {
        return false;
    }
    compare_pair(level, &call, to);
    return true;
}

/* Which elements differ from the scalar unit's: none may. */
static void compare_elements(const tensor_case *t, uint64_t index, const uint32_t d[4][32])
{
    for (uint32_t i = 0; i < 128; i++) {
        uint32_t expected = element_by_itself(t, i / 32, i % 32), got = d[i / 32][i % 32];
        ck_assert_msg(got == expected || ((got | expected) & 0x7fffffff) == 0,
                      "case %llu %s x %s %s F=%d element %u: got %08x, expected %08x",
                      (unsigned long long)index, tensor_cases_type_name(t->a_type),
                      tensor_cases_type_name(t->b_type), tensor_cases_mode_name(t->mode),
                      t->unit.fraction, i, got, expected);
    }
}

START_TEST(every_vector_level_gives_the_bits_of_the_scalar_unit)
{
    size_t done = 0, grouped = 0;

    if (!level_runs_here((size_t)_i)) {
        printf("SKIP %s: this host lacks it\n", levels[_i].name);
        return;
    }
    for (uint64_t index = 0; index < 1300; index++) {
        tensor_case t;
        uint32_t d[4][32];
        tensor_cases_make(index, &t);
        if (run_level((size_t)_i, &t, d)) {
            done++;
            compare_elements(&t, index, (const uint32_t(*)[32])d);
        }
        if (run_group((size_t)_i, &t, d)) {
            grouped++;
            compare_elements(&t, index, (const uint32_t(*)[32])d);
        }
    }
    ck_assert_uint_gt(done, 500); /* the vectors cover the ordinary cases themselves */
    ck_assert_uint_gt(grouped, 350);
}
END_TEST

START_TEST(a_result_may_take_the_place_of_its_accumulator)
{
    for (uint64_t index = 0; index < 60; index++) {
        tensor_case t;
        uint32_t d[4][32];
        tensor_cases_make(index, &t);
        tensor_mma_m16n8(d, (const uint32_t(*)[32])t.a, (const uint32_t(*)[32])t.b,
                         (const uint32_t(*)[32])t.c, t.a_type, t.b_type, t.unit, t.mode);
        tensor_mma_m16n8(t.c, (const uint32_t(*)[32])t.a, (const uint32_t(*)[32])t.b,
                         (const uint32_t(*)[32])t.c, t.a_type, t.b_type, t.unit, t.mode);
        ck_assert_mem_eq(t.c, d, sizeof d);
    }
}
END_TEST

/* f16 results: rounded to nearest even once, past its range infinite; c counts from 2^-14 on. */
START_TEST(f16_accumulation_rounds_each_step_once)
{
    static const struct {
        uint32_t a, b;
        float c, expected;
    } rows[] = {
        {0x3c00, 0x3c00, 0x1p11f, 0x1p11f},     /* 2049: a tie, to even */
        {0x3c00, 0x4200, 0x1p11f, 0x1p11f + 4}, /* 2051: a tie, to even above */
        {0x7bff, 0x3c00, 0x1p4f, INFINITY},     /* 65504 + 16 */
        {0x7bff, 0x3c00, 0x1p3f, 65504.0f},     /* 65504 + 8 */
        {0x0001, 0x3800, 0.0f, 0.0f},           /* half the least unit */
        {0x0001, 0x3801, 0.0f, 0x1p-24f},       /* a little more */
        {0x0001, 0x3c00, 0x1p-24f, 0x1p-23f},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int mode = HONE_EMU_EXACT; mode <= HONE_EMU_HW; mode++) {
            tensor_unit unit = tensor_unit_wgmma(TENSOR_F16, true, (hone_emu_arithmetic)mode);
            float got = tensor_dot(&rows[i].a, &rows[i].b, 1, rows[i].c, TENSOR_F16, TENSOR_F16,
                                   unit, (hone_emu_arithmetic)mode);
            ck_assert_msg(got == rows[i].expected, "row %zu mode %d: %a", i, mode, (double)got);
        }
    }
    for (uint32_t code = 0; code < 0x7c00; code++) { /* each comes back, and ties go to even */
        float value = tensor_half_value(code), next = tensor_half_value(code + 1);
        ck_assert_uint_eq(tensor_half_code(value), code);
        ck_assert_uint_eq(tensor_half_code(-value), code | 0x8000);
        if (code < 0x7bff) {
            ck_assert_uint_eq(tensor_half_code(((double)value + next) / 2), code + (code & 1));
        }
    }
}
END_TEST

START_TEST(nan_and_infinity_come_through_in_every_mode)
{
    static const struct {
        tensor_type type;
        uint32_t a, b;
        float c;
        uint32_t expected;
    } rows[] = {
        {TENSOR_E4M3, 0x7f, 0x38, 0.0f, 0x7fffffff},
        {TENSOR_E5M2, 0x7c, 0x3c, 0.0f, 0x7f800000},
        {TENSOR_E5M2, 0xfc, 0x3c, 0.0f, 0xff800000},
        {TENSOR_E5M2, 0x7c, 0x00, 0.0f, 0x7fffffff},
        {TENSOR_BF16, 0x7f80, 0xbf80, 1.0f, 0xff800000},
        {TENSOR_F16, 0x7c00, 0x3c00, -INFINITY, 0x7fffffff},
        {TENSOR_BF16, 0x7f00, 0x7f00, 0.0f, 0x7f800000},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (int mode = HONE_EMU_EXACT; mode <= HONE_EMU_HW; mode++) {
            tensor_unit unit = tensor_unit_mma(90, rows[i].type, false, (hone_emu_arithmetic)mode);
            float got = tensor_dot(&rows[i].a, &rows[i].b, 1, rows[i].c, rows[i].type, rows[i].type,
                                   unit, (hone_emu_arithmetic)mode);
            uint32_t bits = 0;
            memcpy(&bits, &got, sizeof bits);
            ck_assert_msg(bits == rows[i].expected ||
                              (isnan(got) && rows[i].expected == 0x7fffffff),
                          "row %zu mode %d: %08x", i, mode, bits);
        }
    }
}
END_TEST

/* A NaN of the type, in the first of a register's elements. */
static uint32_t with_nan(uint32_t word, tensor_type type)
{
    return type == TENSOR_BF16  ? (word & 0xffff0000) | 0xffc1
           : type == TENSOR_F16 ? (word & 0xffff0000) | 0x7e01
                                : (word & 0xffffff00) | 0xff;
}

/* Some rows of A, columns of B and elements of C get one: all that they are part of is the unit's
 * NaN, and all else what the scalar unit gives. */
START_TEST(nan_spoils_its_row_its_column_and_its_sum_alone)
{
    size_t count[2] = {0};

    for (uint64_t index = 0; index < 900; index++) {
        tensor_case t;
        uint32_t d[4][32];
        const uint32_t rows = (uint32_t)(index * 2654435761u) >> 16, columns = rows >> 5 & 0xff;
        tensor_cases_make(index, &t);
        if (t.a_type == TENSOR_TF32 || t.a_type == TENSOR_S8 || t.a_type == TENSOR_U8) {
            continue;
        }
        for (uint32_t lane = 0; lane < 32; lane++) {
            for (uint32_t i = 0; i < 4; i++) {
                const bool own = lane % 4 == index % 4 && i / 2 == index / 4 % 2;
                const bool row = (rows >> (lane / 4 + 8 * (i % 2)) & 1) != 0;
                t.a[i][lane] = own && row ? with_nan(t.a[i][lane], t.a_type) : t.a[i][lane];
            }
            if (index % 3 == 0 && lane % 4 == 1 && (columns >> (lane / 4) & 1) != 0) {
                t.b[1][lane] = with_nan(t.b[1][lane], t.b_type);
            }
        }
        t.c[2][7] = index % 5 == 0 ? 0xffc00000 : t.c[2][7];
        tensor_mma_m16n8(d, (const uint32_t(*)[32])t.a, (const uint32_t(*)[32])t.b,
                         (const uint32_t(*)[32])t.c, t.a_type, t.b_type, t.unit, t.mode);
        compare_elements(&t, index, (const uint32_t(*)[32])d);
        for (uint32_t i = 0; i < 128; i++) {
            const uint32_t reg = i / 32, lane = i % 32, n = 2 * (lane % 4) + reg % 2;
            const bool nan = (rows >> (lane / 4 + 8 * (reg / 2)) & 1) != 0 ||
                             (index % 3 == 0 && (columns >> n & 1) != 0) ||
                             (index % 5 == 0 && reg == 2 && lane == 7);
            ck_assert(!nan || d[reg][lane] == 0x7fffffff);
            count[nan]++;
        }
    }
    ck_assert(count[0] > 10000 && count[1] > 30000);
}
END_TEST

START_TEST(integers_wrap_and_mix_signs)
{
    uint32_t a[4][32], b[2][32], c[4][32], d[4][32];
    tensor_unit unit = tensor_unit_mma(90, TENSOR_S8, false, HONE_EMU_HW);

    memset(a, 0x80, sizeof a);
    memset(b, 0xff, sizeof b);
    memset(c, 0, sizeof c);
    tensor_mma_m16n8(d, (const uint32_t(*)[32])a, (const uint32_t(*)[32])b,
                     (const uint32_t(*)[32])c, TENSOR_S8, TENSOR_U8, unit, HONE_EMU_HW);
    ck_assert_int_eq((int32_t)d[3][31], -128 * 255 * 32);
    tensor_mma_m16n8(d, (const uint32_t(*)[32])a, (const uint32_t(*)[32])b,
                     (const uint32_t(*)[32])c, TENSOR_U8, TENSOR_S8, unit, HONE_EMU_HW);
    ck_assert_int_eq((int32_t)d[0][0], -128 * 32);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_large_product_hides_small_ones_as_the_unit_does, 0,
                        ARRAY_LEN(golden));
    tcase_add_test(tests, the_wgmma_unit_adds_32_terms_at_once);
    tcase_add_test(tests, the_accumulator_alone_keeps_the_units_mantissa);
    tcase_add_test(tests, products_of_zeros_hide_no_accumulator);
    tcase_add_loop_test(tests, one_hot_operands_land_where_the_layout_says, 0, 3);
    tcase_add_loop_test(tests, every_vector_level_gives_the_bits_of_the_scalar_unit, 0,
                        ARRAY_LEN(levels));
    tcase_add_test(tests, a_result_may_take_the_place_of_its_accumulator);
    tcase_add_test(tests, f16_accumulation_rounds_each_step_once);
    tcase_add_test(tests, nan_and_infinity_come_through_in_every_mode);
    tcase_add_test(tests, nan_spoils_its_row_its_column_and_its_sum_alone);
    tcase_add_test(tests, integers_wrap_and_mix_signs);
    return suite_run("emulator/tensor", tests);
}
