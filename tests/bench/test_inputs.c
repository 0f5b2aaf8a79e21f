/* test_inputs.c - what proofs of products promise of their inputs (kernels.md App. C) is really
 * there, in every recipe and layout: a row of zeros, a block of zeros, +-448, scales over 2^+-20,
 * sums of one sign. */
#include "bench/inputs.h"

#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>

#define SHAPE "fp8_gemm:m=70,n=264,k=656,recipe="
static const char *const products[] = {
    SHAPE "f32-1x128-128x128",
    SHAPE "f32-1x128-1x128,out=f32,accumulate=1",
    SHAPE "f32-1x32-32x32,batch=3,batch_layout=inner",
    SHAPE "ue8m0-1x32-32x32",
    SHAPE "ue8m0-1x32-1x32,batch=2",
    SHAPE "f32-1x32-128x128,a_scale_layout=row",
    SHAPE "ue8m0-1x128-1x32,b_scale_layout=col",
};

/* One operand: e4m3 [batch, rows, k]. */
typedef struct matrix {
    const uint8_t *bytes;
    int64_t batch, rows, k;
    bool inner;
} matrix;

static matrix operand(const hone_fp8_gemm *p, const inputs *in, bool is_a)
{
    return (matrix){.bytes = in->image[is_a ? 0 : 2],
                    .batch = p->batch,
                    .rows = is_a ? p->m : p->n,
                    .k = p->k,
                    .inner = is_a && p->batch_layout == HONE_BATCH_INNER};
}

static uint8_t code(const matrix *m, int64_t batch, int64_t row, int64_t k)
{
    return m->inner ? m->bytes[(row * m->batch + batch) * m->k + k]
                    : m->bytes[(batch * m->rows + row) * m->k + k];
}

/* How many codes of a rectangle are 0. */
static int64_t zeros(const matrix *m, int64_t batch, int64_t row, int64_t rows, int64_t k,
                     int64_t columns)
{
    int64_t sum = 0;

    for (int64_t r = row; r < row + rows; r++) {
        for (int64_t c = k; c < k + columns; c++) {
            sum += code(m, batch, r, c) == 0;
        }
    }
    return sum;
}

static void open_problem(const char *text, inputs_kind kind, hone_problem *problem, inputs *in)
{
    hone_error error = {0};

    ck_assert_msg(hone_problem_parse(text, problem, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(inputs_make(problem, kind, 17, in, &error) == HONE_OK, "%s", error.message);
}

START_TEST(a_row_of_a_and_a_block_of_b_are_zero_and_no_more)
{
    hone_problem problem;
    inputs in;

    open_problem(products[_i], INPUTS_HOLES, &problem, &in);
    const hone_fp8_gemm *p = &problem.as.fp8_gemm;
    const matrix a = operand(p, &in, true), b = operand(p, &in, false);
    for (int64_t batch = 0; batch < p->batch; batch++) {
        for (int64_t row = 0; row < p->m; row++) {
            const int64_t count = zeros(&a, batch, row, 1, 0, p->k);
            ck_assert_msg(row == 1 ? count == p->k : count < p->k / 4, "row %d", (int)row);
        }
        for (int64_t row = 0; row < p->n; row += 128) {
            for (int64_t k = 0; k < p->k; k += 128) {
                const int64_t rows = p->n - row < 128 ? p->n - row : 128;
                const int64_t columns = p->k - k < 128 ? p->k - k : 128;
                const int64_t count = zeros(&b, batch, row, rows, k, columns);
                ck_assert_msg(row == 0 && k == 256 ? count == 128 * 128
                                                   : count < rows * columns / 4,
                              "block at %d, %d", (int)row, (int)k);
            }
        }
    }
    inputs_free(&in);
}
END_TEST

START_TEST(some_rows_have_one_sign_and_others_both)
{
    hone_problem problem;
    inputs in;

    open_problem(products[_i], INPUTS_HOLES, &problem, &in);
    for (int side = 0; side < 2; side++) {
        const matrix m = operand(&problem.as.fp8_gemm, &in, side == 0);
        for (int64_t row = 0; row < m.rows; row++) {
            int64_t negative = 0;
            for (int64_t k = 0; k < m.k; k++) {
                negative += code(&m, m.batch - 1, row, k) >> 7;
            }
            if (row % (side == 0 ? 2 : 3) == 0 || (side == 0 && row == 1)) {
                ck_assert_int_eq(negative, 0);
            } else {
                ck_assert(negative > m.k / 4 && negative < 3 * m.k / 4);
            }
        }
    }
    inputs_free(&in);
}
END_TEST

/* Whole scale groups of the largest code, in the kind that sampled proofs use too. */
START_TEST(the_largest_code_fills_groups)
{
    hone_problem problem;
    inputs in;

    open_problem(products[_i], INPUTS_HOLES, &problem, &in);
    const matrix a = operand(&problem.as.fp8_gemm, &in, true);
    int64_t filled = 0, groups = 0;
    for (int64_t row = 0; row < a.rows; row++) {
        for (int64_t k = 0; k + 128 <= a.k; k += 128, groups++) {
            int64_t at = k;
            while (at < k + 32 && (code(&a, 0, row, at) & 0x7f) == 0x7e) {
                at++;
            }
            filled += at == k + 32;
        }
    }
    ck_assert(filled > groups / 64 && filled < groups / 4);
    inputs_free(&in);
    open_problem(products[_i], INPUTS_EXTREMES, &problem, &in);
    const matrix b = operand(&problem.as.fp8_gemm, &in, false);
    for (int64_t row = 0; row < b.rows; row++) {
        for (int64_t k = 0; k < b.k; k++) {
            ck_assert_uint_eq(code(&b, 0, row, k) & 0x7f, 0x7e);
        }
    }
    inputs_free(&in);
}
END_TEST

/* Binades between the smallest and the largest scale; padding is NaN. */
static int binades(const hone_fp8_gemm *p, const inputs *in, int operand)
{
    const hone_dtype dtype = (hone_dtype)(operand == 1 ? p->recipe.a.scale : p->recipe.b.scale);
    const uint64_t len = in->operand[operand].bytes / ((uint64_t)numfmt_dtype_bits(dtype) / 8);
    int low = 1000, high = -1000;

    for (uint64_t i = 0; i < len; i++) {
        const float scale = numfmt_decode(dtype, in->image[operand], i);
        if (isfinite(scale) && scale > 0.0f) {
            low = ilogbf(scale) < low ? ilogbf(scale) : low;
            high = ilogbf(scale) > high ? ilogbf(scale) : high;
        }
    }
    return high - low;
}

/* Of A there are hundreds of scales; of B at 128x128 eighteen. */
START_TEST(wide_scales_span_forty_binades)
{
    hone_problem problem;
    inputs in, other;
    hone_error error = {0};

    open_problem(products[_i], INPUTS_WIDE, &problem, &in);
    const hone_fp8_gemm *p = &problem.as.fp8_gemm;
    ck_assert_int_ge(binades(p, &in, 1), 38);
    ck_assert_int_ge(binades(p, &in, 3), 25);
    inputs_free(&in);
    open_problem(products[_i], INPUTS_NORMAL, &problem, &in);
    ck_assert_int_le(binades(p, &in, 1), 8);
    ck_assert_int_eq(inputs_rescale(&p->recipe, &in, 3, &other, &error),
                     HONE_OK); /* of sampled proofs */
    ck_assert_int_ge(binades(p, &other, 1), 38);
    ck_assert_int_ge(binades(p, &other, 3), 25);
    inputs_free_rescaled(&other);
    inputs_free(&in);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("inputs");

    tcase_add_loop_test(tests, a_row_of_a_and_a_block_of_b_are_zero_and_no_more, 0,
                        ARRAY_LEN(products));
    tcase_add_loop_test(tests, some_rows_have_one_sign_and_others_both, 0, ARRAY_LEN(products));
    tcase_add_loop_test(tests, the_largest_code_fills_groups, 0, ARRAY_LEN(products));
    tcase_add_loop_test(tests, wide_scales_span_forty_binades, 0, ARRAY_LEN(products));
    return suite_run("bench/inputs", tests);
}
