/* test_mma_tf32.c - mma.sync on tf32 against one element at a time: which vectors a product takes
 * must not show in its bits. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include "emulator/tensor/tensor.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { WARPS = 64, THREADS = 32 * WARPS, IN = 10, OUT = 4, DEPTH = 8 };

static const struct {
    int32_t arch;
    hone_emu_arithmetic mode;
} units[] = {
    {80, HONE_EMU_HW},  {89, HONE_EMU_HW},   {90, HONE_EMU_HW},
    {120, HONE_EMU_HW}, {90, HONE_EMU_FAST}, {90, HONE_EMU_EXACT},
};

static uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 32);
}

/* Of warp n's kind: numbers near one another, of all exponents, or with zeros, subnormals,
 * infinities and NaN among them. */
static uint32_t draw_number(uint64_t *state, uint32_t warp)
{
    static const uint32_t odd[] = {0,          0x80000000, 0x00002000, 0x807fe000,
                                   0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fe000};
    uint32_t x = draw(state);

    if (warp % 3 == 0) {
        return (x & 0x83ffffff) | 0x3c000000;
    }
    return warp % 3 == 2 && x % 16 == 0 ? odd[draw(state) % ARRAY_LEN(odd)] : x & 0xbfffffff;
}

/* `in` is by thread: a0 to a3, b0, b1, c0 to c3. */
static uint32_t word(const uint32_t *in, uint32_t warp, uint32_t lane, uint32_t n)
{
    return in[(32 * warp + lane) * IN + n];
}

/* Row and column of a product as the PTX manual's figures of m16n8k8 have them. */
static uint32_t expected(const uint32_t *in, uint32_t warp, uint32_t row, uint32_t column,
                         size_t unit)
{
    uint32_t a[DEPTH], b[DEPTH], bits = 0;
    uint32_t c = word(in, warp, row % 8 * 4 + column / 2, 6 + column % 2 + 2 * (row / 8));
    float sum = 0;

    for (uint32_t k = 0; k < DEPTH; k++) {
        a[k] = word(in, warp, row % 8 * 4 + k % 4, row / 8 + 2 * (k / 4)) >> 13;
        b[k] = word(in, warp, column * 4 + k % 4, 4 + k / 4) >> 13;
    }
    memcpy(&sum, &c, sizeof sum);
    sum = tensor_dot(a, b, DEPTH, sum, TENSOR_TF32, TENSOR_TF32,
                     tensor_unit_mma(units[unit].arch, TENSOR_TF32, false, units[unit].mode),
                     units[unit].mode);
    memcpy(&bits, &sum, sizeof bits);
    return bits;
}

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

START_TEST(products_are_those_of_single_elements)
{
    uint32_t *in = calloc(THREADS, IN * sizeof *in), *out = calloc(THREADS, OUT * sizeof *out);
    uint64_t state = 77 + (uint64_t)_i;
    uint32_t plain = 0;
    ptx_bench b;

    ck_assert(in != NULL && out != NULL);
    for (uint32_t n = 0; n < THREADS * IN; n++) {
        in[n] = draw_number(&state, n / (32 * IN));
    }
    char *text = ptx_bench_wrap("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%d0, %d1, "
                                "%d2, %d3}, {%a0, %a1, %a2, %a3}, {%a4, %a5}, {%a6, %a7, %a8, "
                                "%a9};",
                                IN, OUT);
    ptx_bench_open(&b);
    b.launch.arch = units[_i].arch;
    b.launch.arithmetic = units[_i].mode;
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    uint64_t from = ptx_bench_buffer(&b, in, THREADS * IN * sizeof *in);
    uint64_t to = ptx_bench_buffer(&b, NULL, THREADS * OUT * sizeof *out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){WARPS / 4, 1, 1}, (uint32_t[]){128, 1, 1},
                                (void *[]){&from, &to}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, to, out, THREADS * OUT * sizeof *out);
    for (uint32_t n = 0; n < THREADS * OUT; n++) {
        uint32_t warp = n / (32 * OUT), lane = n / OUT % 32, i = n % OUT;
        uint32_t want =
            expected(in, warp, lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2, (size_t)_i);
        ck_assert_msg(is_nan(want) ? is_nan(out[n]) : out[n] == want,
                      "arch %d mode %d warp %u lane %u: %08x, not %08x", units[_i].arch,
                      (int)units[_i].mode, warp, lane, out[n], want);
        plain += (want & 0x7f800000) != 0x7f800000;
    }
    ck_assert_uint_gt(plain, THREADS);
    ptx_bench_close(&b);
    free(text);
    free(in);
    free(out);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("mma_tf32");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, products_are_those_of_single_elements, 0, (int)ARRAY_LEN(units));
    return suite_run("emulator/mma_tf32", tests);
}
