/* test_wgmma.c - wgmma.mma_async: layouts in shared memory and registers, every size, every type.
 */
#include "tests/emulator/wgmma_case.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void run_and_compare(wgmma_case *c, const char *what)
{
    ptx_bench b;

    ptx_bench_open(&b);
    hone_status status = wgmma_case_run(c, &b);
    ck_assert_msg(status == HONE_OK && b.fault.result == 0, "%s n %u: line %d %s: %s", what, c->n,
                  b.fault.ptx_line, b.fault.kind, b.fault.message);
    for (uint32_t n = 0; n < WGMMA_CASE_M * c->n; n++) {
        uint32_t row = n / c->n, column = n % c->n, expected = wgmma_case_expected(c, row, column);
        ck_assert_msg(c->d[row][column] == expected || ((c->d[row][column] | expected) << 1) == 0,
                      "%s n %u: D[%u][%u] is %08x, not %08x", what, c->n, row, column,
                      c->d[row][column], expected);
    }
    ptx_bench_close(&b);
}

static wgmma_case *case_of(uint32_t n, tensor_type a, tensor_type b, const char *result)
{
    wgmma_case *c = calloc(1, sizeof *c);

    *c = (wgmma_case){.n = n,
                      .a_type = a,
                      .b_type = b,
                      .result = result,
                      .accumulate = true,
                      .scale_a = 1,
                      .scale_b = 1,
                      .mode = HONE_EMU_HW};
    return c;
}

START_TEST(every_size_gives_the_scalar_units_bits)
{
    for (uint32_t n = 8; n <= 256; n += 8) {
        wgmma_case *c = case_of(n, n % 16 ? TENSOR_E4M3 : TENSOR_BF16,
                                n % 16 ? TENSOR_E4M3 : TENSOR_BF16, "f32");
        wgmma_case_place(c, 3, false, 3, false);
        wgmma_case_fill(c, n);
        c->timing = n % 32 < 16 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST;
        run_and_compare(c, "every size");
        free(c);
    }
}
END_TEST

static const struct {
    tensor_type a, b;
    const char *result;
} types[] = {
    {TENSOR_E4M3, TENSOR_E4M3, "f32"}, {TENSOR_E4M3, TENSOR_E5M2, "f32"},
    {TENSOR_E5M2, TENSOR_E4M3, "f32"}, {TENSOR_E5M2, TENSOR_E5M2, "f16"},
    {TENSOR_E4M3, TENSOR_E4M3, "f16"}, {TENSOR_BF16, TENSOR_BF16, "f32"},
    {TENSOR_F16, TENSOR_F16, "f32"},   {TENSOR_F16, TENSOR_F16, "f16"},
    {TENSOR_TF32, TENSOR_TF32, "f32"}, {TENSOR_S8, TENSOR_S8, "s32"},
    {TENSOR_U8, TENSOR_S8, "s32"},     {TENSOR_S8, TENSOR_U8, "s32"},
    {TENSOR_U8, TENSOR_U8, "s32"},
};

START_TEST(every_type_mode_swizzle_and_source_of_a)
{
    for (uint32_t variant = 0; variant < 24; variant++) {
        wgmma_case *c = case_of(48, types[_i].a, types[_i].b, types[_i].result);
        c->mode = (hone_emu_arithmetic)(variant % 3 + 1);
        c->registers_a = variant % 2 == 1;
        c->accumulate = variant % 4 < 2;
        c->timing = variant % 8 < 4 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST;
        c->saturate = types[_i].result[0] == 's' && variant % 3 == 0;
        c->scale_a = variant % 5 == 0 ? -1 : 1;
        c->scale_b = variant % 7 == 0 ? -1 : 1;
        wgmma_case_place(c, variant / 4 % 4, false, (variant / 3 + 1) % 4, false);
        wgmma_case_fill(c, variant);
        run_and_compare(c, "every type");
        free(c);
    }
}
END_TEST

START_TEST(halves_lie_in_either_direction_under_every_swizzle)
{
    for (uint32_t variant = 0; variant < 64; variant++) {
        tensor_type type = variant % 2 ? TENSOR_BF16 : TENSOR_F16;
        wgmma_case *c = case_of(variant % 3 ? 128 : 256, type, type, "f32");
        bool across_a = variant / 16 % 2 == 1, across_b = variant / 32 % 2 == 1;
        c->mode = HONE_EMU_FAST;
        c->registers_a = variant % 5 == 4;
        wgmma_case_place(c, variant % 4, across_a, variant / 4 % 4, across_b);
        wgmma_case_fill(c, variant);
        run_and_compare(c, "either direction");
        free(c);
    }
}
END_TEST

/* The pattern may begin anywhere at 128 bytes when the base offset says where. */
START_TEST(the_base_offset_moves_the_swizzle)
{
    for (uint32_t base = 0; base < 8; base++) {
        wgmma_case *c = case_of(32, TENSOR_E4M3, TENSOR_E4M3, "f32");
        wgmma_case_place(c, 3, false, 3, false);
        c->b_layout.start += 128 * base;
        c->b_layout.base = base;
        wgmma_case_fill(c, base);
        run_and_compare(c, "base offset");
        free(c);
    }
}
END_TEST

/* A reads 64 rows and B 48 columns of 32 bytes, 128 a wavefront, since the swizzle
 * keeps the banks of eight rows apart. */
START_TEST(macs_and_wavefronts_are_counted)
{
    wgmma_case *c = case_of(48, TENSOR_E4M3, TENSOR_E4M3, "f32");
    hone_emu_counters before, *n;
    ptx_bench b;

    ptx_bench_open(&b);
    n = &b.counters;
    wgmma_case_place(c, 3, false, 3, false);
    wgmma_case_fill(c, 1);
    ck_assert_int_eq(wgmma_case_run(c, &b), HONE_OK);
    ck_assert_uint_eq(n->tensor_macs[HONE_EMU_MMA_FP8], 64 * 48 * 32);
    before = *n;
    ptx_bench_close(&b);

    ptx_bench_open(&b);
    c->registers_a = true; /* four warps do not read A any more */
    ck_assert_int_eq(wgmma_case_run(c, &b), HONE_OK);
    ck_assert_uint_eq(before.shared_wavefronts - n->shared_wavefronts, 64 * 32 / 128);
    ck_assert_uint_eq(before.shared_requests - n->shared_requests, 4);
    ptx_bench_close(&b);
    free(c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_size_gives_the_scalar_units_bits);
    tcase_add_loop_test(tests, every_type_mode_swizzle_and_source_of_a, 0, ARRAY_LEN(types));
    tcase_add_test(tests, halves_lie_in_either_direction_under_every_swizzle);
    tcase_add_test(tests, the_base_offset_moves_the_swizzle);
    tcase_add_test(tests, macs_and_wavefronts_are_counted);
    return suite_run("emulator/wgmma", tests);
}
