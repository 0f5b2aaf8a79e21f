/* test_wgmma_one_hot.c - wgmma with a single element that is not zero in one operand: a row of D is
 * then a row of B, or a column of it a column of A, by layouts that wgmma_case.c takes from CuTe.
 */
#include "tests/emulator/wgmma_case.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Every how many rows and columns, starting at another one for each k: HONE_WGMMA_STEP 1 for all.
 */
static uint32_t step(void)
{
    const char *text = getenv("HONE_WGMMA_STEP");
    uint32_t given = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 0;

    return given > 0 ? given : 8;
}

/* Codes whose values differ between near elements: integers up to 256 in bf16; in e4m3 all finite
 * ones but zero. */
static uint32_t distinct_code(tensor_type type, uint32_t n)
{
    if (type == TENSOR_BF16) {
        float value = (float)(n % 256 + 1);
        uint32_t bits = 0;
        memcpy(&bits, &value, sizeof bits);
        return bits >> 16;
    }
    uint32_t code = n % 252;
    return code < 126 ? code + 1 : code + 3; /* 0x7f is NaN, 0x80 is -0 */
}

/* Written apart from numfmt: an exponent of `exponent` bits above `fraction` bits. */
static float value_of(tensor_type type, uint32_t code)
{
    int fraction = type == TENSOR_BF16 ? 7 : 3, exponent = type == TENSOR_BF16 ? 8 : 4;
    int bias = (1 << (exponent - 1)) - 1, power = (int)(code >> fraction) & ((1 << exponent) - 1);
    int digits = (int)code & ((1 << fraction) - 1);
    float value = power == 0 ? ldexpf((float)digits, 1 - bias - fraction)
                             : ldexpf((float)(digits + (1 << fraction)), power - bias - fraction);

    return code >> (fraction + exponent) & 1 ? -value : value;
}

static uint32_t one_code(tensor_type type)
{
    return type == TENSOR_BF16 ? 0x3f80 : 0x38;
}

/* One row of D is a row of B (or one column a column of A), the rest is zero. */
static void check_one_hot(const wgmma_case *c, uint32_t mn, uint32_t k, bool in_a)
{
    for (uint32_t n = 0; n < WGMMA_CASE_M * c->n; n++) {
        uint32_t row = n / c->n, column = n % c->n;
        float got = 0.0f, want = 0.0f;
        if ((in_a ? row : column) == mn) {
            want = value_of(c->a_type, in_a ? c->b[column][k] : c->a[row][k]);
        }
        memcpy(&got, &c->d[row][column], sizeof got);
        if (got != want) { /* Check notes each assertion in a file */
            ck_abort_msg("%s[%u][%u] alone: D[%u][%u] is %g, not %g", in_a ? "A" : "B", mn, k, row,
                         column, (double)got, (double)want);
        }
    }
}

static void run_one_hot(wgmma_case *c, uint32_t mn, uint32_t k, bool in_a)
{
    ptx_bench b;

    memset(c->a, 0, sizeof c->a);
    memset(c->b, 0, sizeof c->b);
    uint32_t(*other)[WGMMA_CASE_K] = in_a ? c->b : c->a, rows = in_a ? c->n : WGMMA_CASE_M;
    for (uint32_t n = 0; n < rows * WGMMA_CASE_K; n++) {
        uint32_t at = n / WGMMA_CASE_K, depth = n % WGMMA_CASE_K;
        other[at][depth] = distinct_code(c->a_type, at + 17 * depth);
    }
    (in_a ? c->a : c->b)[mn][k] = one_code(c->a_type);
    ptx_bench_open(&b);
    b.launch.checks = HONE_EMU_CHECK_MEMORY;
    ck_assert_msg(wgmma_case_run(c, &b) == HONE_OK, "line %d: %s", b.fault.ptx_line,
                  b.fault.message);
    ptx_bench_close(&b);
    check_one_hot(c, mn, k, in_a);
}

/* What varies: e4m3 and bf16, A in shared memory or in registers, each direction of halves, each
 * swizzle. */
static const struct {
    tensor_type type;
    bool registers_a, across_a, across_b;
    uint32_t swizzle;
} one_hots[] = {
    {TENSOR_E4M3, false, false, false, 3}, {TENSOR_E4M3, false, false, false, 0},
    {TENSOR_E4M3, true, false, false, 1},  {TENSOR_BF16, false, false, false, 3},
    {TENSOR_BF16, false, true, false, 3},  {TENSOR_BF16, false, false, true, 3},
    {TENSOR_BF16, false, true, true, 3},   {TENSOR_BF16, false, true, true, 0},
    {TENSOR_BF16, false, true, true, 1},   {TENSOR_BF16, false, true, true, 2},
    {TENSOR_BF16, true, false, false, 2},  {TENSOR_BF16, true, false, true, 3},
};

START_TEST(a_single_element_meets_its_row_or_column_and_no_other)
{
    tensor_type type = one_hots[_i].type;
    wgmma_case *c = calloc(1, sizeof *c);

    *c = (wgmma_case){.n = 16,
                      .a_type = type,
                      .b_type = type,
                      .result = "f32",
                      .registers_a = one_hots[_i].registers_a,
                      .scale_a = 1,
                      .scale_b = 1,
                      .mode = HONE_EMU_HW};
    wgmma_case_place(c, one_hots[_i].swizzle, one_hots[_i].across_a, one_hots[_i].swizzle,
                     one_hots[_i].across_b);
    for (uint32_t k = 0; k < wgmma_case_depth(type); k++) {
        uint32_t first = (k * 3 + (uint32_t)_i) % step();
        for (uint32_t row = first; row < WGMMA_CASE_M; row += step()) {
            run_one_hot(c, row, k, true);
        }
        for (uint32_t column = first; column < c->n; column += step()) {
            run_one_hot(c, column, k, false);
        }
    }
    free(c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma_one_hot");

    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, a_single_element_meets_its_row_or_column_and_no_other, 0,
                        (int)ARRAY_LEN(one_hots));
    return suite_run("emulator/wgmma_one_hot", tests);
}
