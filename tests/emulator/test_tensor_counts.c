/* test_tensor_counts.c - multiply-adds by kind, of every kind that there is: m * n * k of each
 * instruction, worked out by hand. */
#include "tests/emulator/ptx_bench.h"
#include "tests/emulator/wgmma_case.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 8, WARPS = 2, TIMES = 3 };

/* One kind has `macs`, the others none; what warpgroups did beside it. */
static void expect_only(const hone_emu_counters *c, hone_emu_mma kind, uint64_t macs,
                        uint64_t warpgroup, const char *what)
{
    for (uint32_t n = 0; n < KINDS; n++) {
        ck_assert_msg(c->tensor_macs[n] == (n == kind ? macs : 0), "%s: kind %u has %llu", what, n,
                      (unsigned long long)c->tensor_macs[n]);
        ck_assert_msg(c->warpgroup_macs[n] == (n == kind ? warpgroup : 0),
                      "%s: of kind %u warpgroups have %llu", what, n,
                      (unsigned long long)c->warpgroup_macs[n]);
    }
}

#define SCALED(kind, shape, types) "kind::" kind ".block_scale." shape ".row.col.f32." types
/* An instruction, the registers of a, b and d, and its products. */
static const struct {
    const char *form;
    uint32_t a, b, d;
    hone_emu_mma kind;
    uint64_t macs;
} products[] = {
    {"m16n8k32.row.col.s32.s8.s8.s32", 4, 2, 4, HONE_EMU_MMA_S8, 4096},
    {"m16n8k16.row.col.s32.u8.s8.s32", 2, 1, 4, HONE_EMU_MMA_S8, 2048},
    {"m8n8k16.row.col.s32.u8.u8.s32", 1, 1, 2, HONE_EMU_MMA_S8, 1024},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 4, HONE_EMU_MMA_TF32, 1024},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4, HONE_EMU_MMA_TF32, 512},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 4, HONE_EMU_MMA_BF16, 2048},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 4, HONE_EMU_MMA_BF16, 1024},
    {"m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 4, HONE_EMU_MMA_F16, 2048},
    {"m16n8k8.row.col.f16.f16.f16.f16", 2, 1, 2, HONE_EMU_MMA_F16, 1024},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 4, 2, 4, HONE_EMU_MMA_FP8, 4096},
    {"m16n8k16.row.col.f32.e5m2.e5m2.f32", 2, 1, 4, HONE_EMU_MMA_FP8, 2048},
    {"kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32", 4, 2, 4, HONE_EMU_MMA_FP8, 4096},
    {SCALED("mxf8f6f4", "m16n8k32", "e4m3.e4m3.f32.ue8m0"), 4, 2, 4, HONE_EMU_MMA_MXFP8, 4096},
    {SCALED("mxf8f6f4", "m16n8k32", "e2m1.e2m3.f32.ue8m0"), 4, 2, 4, HONE_EMU_MMA_MXFP8, 4096},
    {SCALED("mxf4", "m16n8k64", "e2m1.e2m1.f32.ue8m0"), 4, 2, 4, HONE_EMU_MMA_FP4, 8192},
    {SCALED("mxf4nvf4", "scale_vec::4X.m16n8k64", "e2m1.e2m1.f32.ue4m3"), 4, 2, 4, HONE_EMU_MMA_FP4,
     8192},
};

static char *kernel_of(size_t n)
{
    char body[1024] = "";
    size_t used = 0;

    for (uint32_t time = 0; time < TIMES; time++) {
        used += (size_t)sprintf(body + used, "mma.sync.aligned.%s ", products[n].form);
        used = ptx_bench_list(body, used, "d", 0, products[n].d);
        body[used++] = ',';
        used = ptx_bench_list(body, used, "a", 0, products[n].a);
        body[used++] = ',';
        used = ptx_bench_list(body, used, "a", 0, products[n].b);
        body[used++] = ',';
        used = ptx_bench_list(body, used, "a", 0, products[n].d);
        used += (size_t)sprintf(
            body + used, "%s;\n",
            strncmp(products[n].form, "kind::mx", 8) == 0 ? ", %a0, {0, 0}, %a1, {0, 0}" : "");
    }
    return ptx_bench_wrap(body, 4, products[n].d);
}

START_TEST(products_of_warps_count_by_their_kind)
{
    static const uint32_t zeros[32 * WARPS * 4];
    char *ptx = kernel_of((size_t)_i);

    for (uint32_t mode = HONE_EMU_EXACT; mode <= HONE_EMU_HW; mode++) { /* however they add */
        ptx_bench b;
        ptx_bench_open(&b);
        b.launch.arithmetic = (hone_emu_arithmetic)mode;
        ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
        uint64_t from = ptx_bench_buffer(&b, zeros, sizeof zeros),
                 to = ptx_bench_buffer(&b, NULL, sizeof zeros);
        ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32 * WARPS, 1, 1},
                                    (void *[]){&from, &to}) == HONE_OK,
                      "%s", b.error.message);
        expect_only(&b.counters, products[_i].kind, WARPS * TIMES * products[_i].macs, 0,
                    products[_i].form);
        ck_assert_uint_eq(b.counters.tensor, WARPS * TIMES);
        ptx_bench_close(&b);
    }
    free(ptx);
}
END_TEST

/* wgmma of 64 rows and n columns */
static const struct {
    tensor_type type;
    const char *result;
    uint32_t n;
    hone_emu_mma kind;
    uint64_t macs;
} groups[] = {
    {TENSOR_E4M3, "f32", 16, HONE_EMU_MMA_FP8, 64 * 16 * 32},
    {TENSOR_E5M2, "f16", 8, HONE_EMU_MMA_FP8, 64 * 8 * 32},
    {TENSOR_BF16, "f32", 24, HONE_EMU_MMA_BF16, 64 * 24 * 16},
    {TENSOR_F16, "f16", 32, HONE_EMU_MMA_F16, 64 * 32 * 16},
    {TENSOR_TF32, "f32", 8, HONE_EMU_MMA_TF32, 64 * 8 * 8},
    {TENSOR_S8, "s32", 16, HONE_EMU_MMA_S8, 64 * 16 * 32},
    {TENSOR_U8, "s32", 48, HONE_EMU_MMA_S8, 64 * 48 * 32},
};

START_TEST(products_of_warpgroups_count_by_their_kind)
{
    wgmma_case *c = calloc(1, sizeof *c);
    ptx_bench b;

    c->n = groups[_i].n;
    c->a_type = c->b_type = groups[_i].type;
    c->result = groups[_i].result;
    c->scale_a = c->scale_b = 1;
    c->registers_a = _i % 2 == 1;
    c->mode = HONE_EMU_FAST;
    wgmma_case_place(c, 3, false, 3, false);
    ptx_bench_open(&b);
    ck_assert_msg(wgmma_case_run(c, &b) == HONE_OK, "%s", b.error.message);
    expect_only(&b.counters, groups[_i].kind, groups[_i].macs, groups[_i].macs, groups[_i].result);
    ptx_bench_close(&b);
    free(c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor_counts");

    tcase_add_loop_test(tests, products_of_warps_count_by_their_kind, 0, (int)ARRAY_LEN(products));
    tcase_add_loop_test(tests, products_of_warpgroups_count_by_their_kind, 0,
                        (int)ARRAY_LEN(groups));
    return suite_run("emulator/tensor_counts", tests);
}
