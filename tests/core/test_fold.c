/* test_fold.c - folding keeps values but for what it reports. References are doubles and
 * written-out index formulas. */
#include "core/numfmt.h"
#include "core/problem.h"
#include "core/random.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

/* Where scale (row, group) of rows x groups lies, in scales. */
static size_t place(int32_t layout, size_t rows, size_t groups, size_t row, size_t group)
{
    const size_t aligned = (rows + 3) / 4 * 4;

    switch (layout) {
    case HONE_SCALES_ROW:
        return row * groups + group;
    case HONE_SCALES_COL:
        return group * rows + row;
    case HONE_SCALES_TMA:
        return group * aligned + row;
    default:
        return group / 4 * aligned * 4 + row * 4 + group % 4;
    }
}

enum { MOST_ROWS = 140, MOST_K = 288, MOST_SCALES = 144 * 12 };

/* A random request and its buffers. */
typedef struct fixture {
    hone_fold_request r;
    hone_fold_report report;
    size_t from_rows, from_groups, to_rows, to_groups;
    int exponent[MOST_SCALES]; /* of scale row * from_groups + group */
    uint8_t codes[MOST_ROWS * MOST_K], out[MOST_ROWS * MOST_K];
    float scales[MOST_SCALES], out_scales[MOST_SCALES]; /* or bytes */
} fixture;

static void put_scale(void *scales, int32_t dtype, size_t at, int exponent)
{
    if (dtype == HONE_DTYPE_F32) {
        ((float *)scales)[at] = ldexpf(1.0f, exponent);
    } else {
        ((uint8_t *)scales)[at] = (uint8_t)(exponent + 127);
    }
}

static double get_scale(const void *scales, int32_t dtype, size_t at)
{
    return dtype == HONE_DTYPE_F32 ? (double)((const float *)scales)[at]
                                   : ldexp(1.0, ((const uint8_t *)scales)[at] - 127);
}

static void set_up(fixture *f, const hone_quant *from, const hone_quant *to, int32_t from_layout,
                   int32_t to_layout, int64_t rows, int64_t k, uint64_t seed)
{
    *f = (fixture){.r = {.size = sizeof f->r,
                         .from_layout = from_layout,
                         .to_layout = to_layout,
                         .from = *from,
                         .to = *to,
                         .rows = rows,
                         .k = k,
                         .codes = f->codes,
                         .scales = f->scales,
                         .out = f->out,
                         .out_scales = f->out_scales,
                         .out_scales_bytes = sizeof f->out_scales},
                   .report = {.size = sizeof f->report}};
    f->from_rows = (size_t)((rows + from->gran_mn - 1) / from->gran_mn);
    f->from_groups = (size_t)((k + from->gran_k - 1) / from->gran_k);
    f->to_rows = (size_t)((rows + to->gran_mn - 1) / to->gran_mn);
    f->to_groups = (size_t)((k + to->gran_k - 1) / to->gran_k);
    for (int64_t i = 0; i < rows * k; i++) {
        f->codes[i] = (uint8_t)random_next(&seed);
        f->codes[i] = (f->codes[i] & 0x7f) == 0x7f ? 0x7e : f->codes[i];
    }
    memset(f->scales, 0xff, sizeof f->scales); /* padding is not looked at */
    memset(f->out_scales, 0xa5, sizeof f->out_scales);
    memset(f->out, 0xa5, sizeof f->out);
    for (size_t i = 0; i < f->from_rows * f->from_groups; i++) {
        const size_t row = i / f->from_groups, group = i % f->from_groups;
        f->exponent[i] = (int)(random_next(&seed) % 9) - 4;
        put_scale(f->scales, from->scale,
                  place(from_layout, f->from_rows, f->from_groups, row, group), f->exponent[i]);
    }
}

/* The e4m3 code nearest to x, ties to the even one, by looking at all. Not beyond 448. */
static uint8_t nearest(double x)
{
    uint8_t best = 0;
    const double magnitude = fabs(x);

    for (int code = 1; code < 0x7f; code++) {
        const double off = fabs((double)numfmt_e4m3_decode((uint8_t)code) - magnitude);
        const double least = fabs((double)numfmt_e4m3_decode(best) - magnitude);
        if (off < least || (off == least && code % 2 == 0)) {
            best = (uint8_t)code;
        }
    }
    return best | (signbit(x) ? 0x80 : 0);
}

START_TEST(every_code_is_shifted_to_the_nearest)
{
    const hone_quant from = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, 1, 32},
                     to = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, 1, 128};
    static fixture f;

    for (int shift = 0; shift < 255; shift += shift < 24 ? 1 : 33) {
        set_up(&f, &from, &to, HONE_SCALES_ROW, HONE_SCALES_ROW, 8, 64, 1);
        uint64_t inexact = 0;
        for (int i = 0; i < 256; i++) {
            f.codes[i / 32 * 64 + i % 32] = (uint8_t)i;
            f.codes[i / 32 * 64 + 32 + i % 32] = 0x38;
        }
        for (size_t i = 0; i < 16; i++) {
            ((uint8_t *)f.scales)[i] = (uint8_t)(i % 2 == 0 ? 254 - shift : 254);
        }
        ck_assert_int_eq(hone_fold_scales(&f.r, &f.report, &e), HONE_OK);
        for (int i = 0; i < 256; i++) {
            const double x = ldexp((double)numfmt_e4m3_decode((uint8_t)i), -shift);
            const uint8_t got = f.out[i / 32 * 64 + i % 32];
            ck_assert_msg(got == (isnan(x) ? i : nearest(x)), "0x%02x by 2^-%d: 0x%02x", i, shift,
                          got);
            inexact += !isnan(x) && (double)numfmt_e4m3_decode(got) != x;
            ck_assert_uint_eq(f.out[i / 32 * 64 + 32 + i % 32], 0x38);
        }
        ck_assert_uint_eq(f.report.inexact, inexact);
        ck_assert_uint_eq(f.report.nans, 2);
        ck_assert_int_eq(f.report.spread, shift);
        ck_assert_uint_eq(((uint8_t *)f.out_scales)[0], 254);
    }
}
END_TEST

static const int32_t f32_layouts[] = {HONE_SCALES_ROW, HONE_SCALES_COL, HONE_SCALES_TMA};
static const int32_t ue8m0_layouts[] = {HONE_SCALES_ROW, HONE_SCALES_COL, HONE_SCALES_PACKED};

static hone_quant draw_quant(uint64_t *seed, const hone_quant *within)
{
    static const int32_t mn[] = {1, 32, 128};
    hone_quant q = {HONE_DTYPE_E4M3, 0, 0, 0};

    q.scale = random_next(seed) % 2 == 0 ? HONE_DTYPE_F32 : HONE_DTYPE_UE8M0;
    do {
        q.gran_mn = mn[random_next(seed) % 3];
        q.gran_k = random_next(seed) % 2 == 0 ? 32 : 128;
    } while (within != NULL && (q.gran_mn < within->gran_mn || q.gran_k < within->gran_k));
    return q;
}

static int32_t draw_layout(uint64_t *seed, const hone_quant *q)
{
    return (q->scale == HONE_DTYPE_F32 ? f32_layouts : ue8m0_layouts)[random_next(seed) % 3];
}

/* The largest exponent of each block of `to`. */
static void find_largest(const fixture *f, int largest[MOST_SCALES])
{
    for (size_t i = 0; i < MOST_SCALES; i++) {
        largest[i] = -1000;
    }
    for (size_t i = 0; i < f->from_rows * f->from_groups; i++) {
        const size_t mn = i / f->from_groups * (size_t)f->r.from.gran_mn / (size_t)f->r.to.gran_mn;
        const size_t k = i % f->from_groups * (size_t)f->r.from.gran_k / (size_t)f->r.to.gran_k;
        int *block = &largest[mn * f->to_groups + k];
        *block = f->exponent[i] > *block ? f->exponent[i] : *block;
    }
}

/* All figures of the report again, element by element. */
static void check_fixture(const fixture *f)
{
    const size_t rows = (size_t)f->r.rows, k = (size_t)f->r.k;
    const uint8_t *codes = f->r.codes == f->r.out ? NULL : f->r.codes;
    double error = 0, norm = 0, channels = 0, worst = 0, largest = 0;
    uint64_t inexact = 0;
    int exponents[MOST_SCALES];

    find_largest(f, exponents);
    for (size_t i = 0; i < k && codes != NULL; i++) {
        double column_error = 0, column_norm = 0;
        for (size_t row = 0; row < rows; row++) {
            const size_t from =
                row / (size_t)f->r.from.gran_mn * f->from_groups + i / (size_t)f->r.from.gran_k;
            const size_t to_row = row / (size_t)f->r.to.gran_mn,
                         to_group = i / (size_t)f->r.to.gran_k;
            const double before =
                ldexp((double)numfmt_e4m3_decode(codes[row * k + i]), f->exponent[from]);
            const double scale =
                get_scale(f->out_scales, f->r.to.scale,
                          place(f->r.to_layout, f->to_rows, f->to_groups, to_row, to_group));
            const double after = (double)numfmt_e4m3_decode(f->out[row * k + i]) * scale;
            ck_assert(scale == ldexp(1.0, exponents[to_row * f->to_groups + to_group]));
            ck_assert_uint_eq(f->out[row * k + i], nearest(before / scale));
            inexact += before != after;
            largest = fmax(largest, fabs(before - after) / scale);
            column_error += (before - after) * (before - after);
            column_norm += before * before;
        }
        channels += column_error / column_norm;
        worst = fmax(worst, sqrt(column_error / column_norm));
        error += column_error;
        norm += column_norm;
    }
    ck_assert_uint_eq(f->report.elements, rows * k);
    ck_assert_uint_eq(f->report.groups, f->from_rows * f->from_groups);
    ck_assert_uint_eq(f->report.blocks, f->to_rows * f->to_groups);
    ck_assert_uint_eq(f->report.inexact, inexact);
    ck_assert_double_eq(f->report.largest, largest);
    ck_assert_double_le(largest, 0x1p-10);
    ck_assert_double_eq_tol(f->report.frobenius, sqrt(error / norm), 1e-12);
    ck_assert_double_eq_tol(f->report.channel, sqrt(channels / (double)k), 1e-12);
    ck_assert_double_eq_tol(f->report.worst_channel, worst, 1e-12);
}

/* Every byte of out_scales that is no scale: 1.0 within the layout, untouched behind it. */
static void check_padding(const fixture *f)
{
    static uint8_t seen[MOST_SCALES];
    const bool bytes = f->r.to.scale == HONE_DTYPE_UE8M0;
    uint64_t whole = 0;

    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < f->to_rows * f->to_groups; i++) {
        seen[place(f->r.to_layout, f->to_rows, f->to_groups, i / f->to_groups, i % f->to_groups)] =
            1;
    }
    ck_assert_int_eq(problem_scale_bytes((int64_t)f->to_rows, (int64_t)f->to_groups,
                                         (hone_dtype)f->r.to.scale,
                                         (hone_scale_layout)f->r.to_layout, &whole, &e),
                     HONE_OK);
    for (size_t i = 0; i < whole / (bytes ? 1 : 4); i++) {
        ck_assert(seen[i] == 1 || get_scale(f->out_scales, f->r.to.scale, i) == 1.0);
    }
    ck_assert_uint_eq(((const uint8_t *)f->out_scales)[whole], 0xa5);
}

START_TEST(any_granularity_and_layout_folds_as_the_doubles_say)
{
    static fixture f, again;
    uint64_t seed = 100 + (uint64_t)_i;
    const hone_quant from = draw_quant(&seed, NULL), to = draw_quant(&seed, &from);
    const int64_t rows = 1 + (int64_t)(random_next(&seed) % MOST_ROWS);
    const int64_t k = 1 + (int64_t)(random_next(&seed) % MOST_K);
    const int32_t from_layout = draw_layout(&seed, &from), to_layout = draw_layout(&seed, &to);

    set_up(&f, &from, &to, from_layout, to_layout, rows, k, seed);
    again = f;
    ck_assert_msg(hone_fold_scales(&f.r, &f.report, &e) == HONE_OK, "%s", e.message);
    check_fixture(&f);
    check_padding(&f);
    again.r.codes = again.r.out = again.codes; /* in place */
    again.r.scales = again.scales;
    again.r.out_scales = again.out_scales;
    ck_assert_int_eq(hone_fold_scales(&again.r, &again.report, &e), HONE_OK);
    ck_assert_mem_eq(again.codes, f.out, (size_t)(rows * k));
    ck_assert_mem_eq(again.out_scales, f.out_scales, sizeof f.out_scales);
    ck_assert_mem_eq(&again.report, &f.report, sizeof f.report);
}
END_TEST

static const hone_quant per_32 = {HONE_DTYPE_E4M3, HONE_DTYPE_F32, 1, 32},
                        per_128 = {HONE_DTYPE_E4M3, HONE_DTYPE_F32, 1, 128};

static void untouched(const fixture *f)
{
    for (size_t i = 0; i < sizeof f->out; i++) {
        ck_assert_uint_eq(f->out[i], 0xa5);
    }
    for (size_t i = 0; i < sizeof f->out_scales; i++) {
        ck_assert_uint_eq(((const uint8_t *)f->out_scales)[i], 0xa5);
    }
    ck_assert_uint_eq(f->report.elements, 0);
}

static const float wrong[] = {0.3f, 0.0f, -1.0f, 1.5f, INFINITY, 0x1p-128f, NAN, 1.0f / 448.0f};

START_TEST(an_f32_scale_that_is_no_power_of_two_is_refused_by_its_place)
{
    static fixture f;
    char value[64];

    set_up(&f, &per_32, &per_128, HONE_SCALES_TMA, HONE_SCALES_TMA, 6, 256, 3);
    f.scales[place(HONE_SCALES_TMA, 6, 8, 5, 7)] = wrong[_i];
    ck_assert_int_eq(hone_fold_scales(&f.r, &f.report, &e), HONE_BAD_ARGUMENT);
    snprintf(value, sizeof value, "scale [5, 7] = %.9g is no power of two", (double)wrong[_i]);
    ck_assert_msg(strstr(e.message, value) != NULL, "%s", e.message);
    untouched(&f);
}
END_TEST

START_TEST(a_nan_scale_is_refused_by_its_place)
{
    static fixture f;
    hone_quant from = per_32, to = per_128;

    from.scale = to.scale = HONE_DTYPE_UE8M0;
    set_up(&f, &from, &to, HONE_SCALES_PACKED, HONE_SCALES_PACKED, 6, 256, 3);
    ((uint8_t *)f.scales)[place(HONE_SCALES_PACKED, 6, 8, 2, 5)] = 0xff;
    ck_assert_int_eq(hone_fold_scales(&f.r, &f.report, &e), HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(e.message, "scale [2, 5] is 0xff") != NULL, "%s", e.message);
    untouched(&f);
}
END_TEST

static void no_report(fixture *f)
{
    f->report.size = 0;
}
static void wrong_size(fixture *f)
{
    f->r.size = 8;
}
static void finer(fixture *f)
{
    f->r.from.gran_k = 128, f->r.to.gran_k = 32;
}
static void fewer_rows(fixture *f)
{
    f->r.from.gran_mn = 32;
}
static void other_block(fixture *f)
{
    f->r.to.gran_k = 64;
}
static void other_element(fixture *f)
{
    f->r.from.element = HONE_DTYPE_E5M2;
}
static void other_scale(fixture *f)
{
    f->r.to.scale = HONE_DTYPE_BF16;
}
static void other_layout(fixture *f)
{
    f->r.to_layout = HONE_SCALES_PACKED;
}
static void no_codes(fixture *f)
{
    f->r.codes = NULL;
}
static void negative(fixture *f)
{
    f->r.rows = -1;
}
static void huge(fixture *f)
{
    f->r.rows = INT64_MAX;
}
static void small(fixture *f)
{
    f->r.out_scales_bytes = 6 * 2 * 4 - 1;
}

static const struct {
    void (*break_it)(fixture *f);
    hone_status status;
    const char *says;
} broken[] = {
    {no_report, HONE_BAD_ARGUMENT, "the report with size"},
    {wrong_size, HONE_BAD_ARGUMENT, "the request begins with size"},
    {finer, HONE_BAD_ARGUMENT, "scales of 1x128 do not lie in blocks of 1x32"},
    {fewer_rows, HONE_BAD_ARGUMENT, "scales of 32x32 do not lie in blocks of 1x128"},
    {other_block, HONE_BAD_ARGUMENT, "to: a scale covers 1x64"},
    {other_element, HONE_BAD_ARGUMENT, "from: e4m3 codes"},
    {other_scale, HONE_BAD_ARGUMENT, "to: e4m3 codes with f32 or ue8m0"},
    {other_layout, HONE_BAD_ARGUMENT, "to: layout 4"},
    {no_codes, HONE_BAD_ARGUMENT, "NULL"},
    {negative, HONE_BAD_ARGUMENT, "-1 x 256"},
    {huge, HONE_BAD_ARGUMENT, " x 256"},
    {small, HONE_LIMIT, "need 48 bytes"},
};

START_TEST(a_broken_request_is_refused_and_writes_nothing)
{
    static fixture f;

    set_up(&f, &per_32, &per_128, HONE_SCALES_ROW, HONE_SCALES_ROW, 6, 256, 3);
    broken[_i].break_it(&f);
    ck_assert_int_eq(hone_fold_scales(&f.r, &f.report, &e), broken[_i].status);
    ck_assert_msg(strstr(e.message, broken[_i].says) != NULL, "%s", e.message);
    untouched(&f);
}
END_TEST

START_TEST(a_matrix_of_nothing_folds_to_nothing)
{
    hone_fold_request r = {.size = sizeof r,
                           .from_layout = HONE_SCALES_ROW,
                           .to_layout = HONE_SCALES_ROW,
                           .from = per_32,
                           .to = per_128,
                           .k = 256};
    hone_fold_report report = {.size = sizeof report};

    ck_assert_int_eq(hone_fold_scales(&r, &report, &e), HONE_OK);
    ck_assert_uint_eq(report.elements, 0);
    ck_assert_int_eq(hone_fold_accept(&report, 0, &e), HONE_OK);
    r.rows = INT64_MAX / 4; /* of no columns: not walked through */
    r.k = 0;
    ck_assert_int_eq(hone_fold_scales(&r, &report, &e), HONE_OK);
    ck_assert_uint_eq(report.elements, 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("fold");

    tcase_add_test(tests, every_code_is_shifted_to_the_nearest);
    tcase_add_loop_test(tests, any_granularity_and_layout_folds_as_the_doubles_say, 0, 48);
    tcase_add_loop_test(tests, an_f32_scale_that_is_no_power_of_two_is_refused_by_its_place, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(tests, a_nan_scale_is_refused_by_its_place);
    tcase_add_loop_test(tests, a_broken_request_is_refused_and_writes_nothing, 0,
                        (int)ARRAY_LEN(broken));
    tcase_add_test(tests, a_matrix_of_nothing_folds_to_nothing);
    return suite_run("core/fold", tests);
}
