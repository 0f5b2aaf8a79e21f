/* test_prove_block_scale.c - fp8_gemm/sm120_block_scale proved on the emulator: every axis, recipe,
 * layout and alignment by pinned configs, races looked for, and mutants that the proof must refuse.
 * One row in three and one mutant in two, unless HONE_PROVE_ALL is set. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define TEMPLATE "fp8_gemm/sm120_block_scale"
#define CONFIG(swap, m, n, k, r, c, stages, split, raster, residency)                              \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_r=" #r " warps_c=" #c       \
    " stages=" #stages " split_k=" #split " raster=" #raster " residency=" #residency

/* m, n and k with tails: n a multiple of 8, k one of 16 (of 32 where B is e2m1) */
#define SHAPE "fp8_gemm:m=100,n=168,k=528,recipe="
#define FP4   "fp8_gemm:m=100,n=168,k=544,recipe="
/* A few rows, for B's rows as the instruction's. */
#define FEW      "fp8_gemm:m=13,n=168,k=1040,recipe="
#define FEW_FP4  "fp8_gemm:m=13,n=168,k=1056,recipe="
#define LIKE_V41 "ue8m0-1x32-32x32"
#define BY_ROWS  "ue8m0-1x32-1x32"
#define MX_FP4   "ue8m0-1x32-e2m1/1x32"

static const struct {
    const char *problem, *config;
} right[] = {
    /* tiles, warps, stages, residency */
    {SHAPE LIKE_V41, CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1)},
    {SHAPE BY_ROWS, CONFIG(0, 128, 128, 64, 2, 4, 5, 1, 1, 1)},
    {SHAPE LIKE_V41, CONFIG(0, 128, 64, 128, 2, 2, 4, 1, 1, 1)},
    {SHAPE BY_ROWS, CONFIG(0, 64, 96, 128, 4, 1, 2, 1, 8, 1)},
    {SHAPE LIKE_V41, CONFIG(0, 64, 40, 64, 2, 1, 8, 1, 1, 1)},
    {SHAPE BY_ROWS, CONFIG(0, 32, 112, 128, 2, 2, 5, 1, 8, 1)},
    {SHAPE LIKE_V41, CONFIG(0, 16, 8, 128, 1, 1, 6, 1, 1, 1)},
    {SHAPE BY_ROWS, CONFIG(0, 32, 24, 64, 1, 1, 3, 1, 1, 1)},
    {SHAPE LIKE_V41, CONFIG(0, 16, 80, 128, 1, 2, 4, 1, 1, 1)},
    {SHAPE BY_ROWS, CONFIG(0, 128, 48, 128, 8, 1, 2, 1, 8, 2)},
    {SHAPE LIKE_V41, CONFIG(0, 128, 16, 64, 4, 1, 3, 1, 1, 3)},
    /* recipes: coarser scales are repeated */
    {SHAPE "ue8m0-1x128-128x128", CONFIG(0, 64, 64, 128, 2, 2, 3, 1, 1, 1)},
    {SHAPE "ue8m0-1x128-128x128", CONFIG(0, 64, 64, 64, 2, 2, 4, 1, 8, 1)},
    {SHAPE "ue8m0-1x128-1x128,out=f32", CONFIG(0, 64, 32, 64, 2, 1, 3, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-128x128,out=f32", CONFIG(0, 64, 96, 128, 2, 1, 3, 1, 8, 1)},
    {SHAPE "ue8m0-1x128-32x32", CONFIG(0, 32, 80, 128, 1, 2, 3, 1, 1, 1)},
    {SHAPE "ue8m0-1x128-1x32", CONFIG(0, 64, 128, 64, 1, 4, 3, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-1x128", CONFIG(1, 64, 64, 128, 2, 2, 3, 1, 1, 1)},
    /* e2m1 */
    {FP4 MX_FP4, CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1)},
    {FP4 MX_FP4, CONFIG(0, 64, 40, 64, 2, 1, 4, 1, 1, 1)},
    {FP4 "ue8m0-1x128-e2m1/1x32,out=f32,accumulate=1", CONFIG(0, 64, 96, 128, 2, 1, 3, 1, 1, 1)},
    {FP4 "ue8m0-1x32-e2m1/32x32", CONFIG(0, 32, 64, 64, 1, 2, 6, 1, 1, 1)},
    {FEW_FP4 MX_FP4, CONFIG(1, 16, 64, 128, 2, 1, 6, 1, 1, 1)},
    {FEW_FP4 MX_FP4, CONFIG(1, 8, 128, 64, 4, 1, 8, 4, 8, 1)},
    {FEW_FP4 "ue8m0-1x32-e2m1/1x128,out=f32", CONFIG(1, 32, 32, 128, 1, 1, 3, 2, 1, 1)},
    /* outputs */
    {SHAPE LIKE_V41 ",out=f32", CONFIG(0, 64, 64, 128, 2, 2, 3, 1, 1, 1)},
    {SHAPE LIKE_V41 ",out=f32,accumulate=1", CONFIG(0, 64, 48, 128, 2, 2, 3, 1, 1, 1)},
    {SHAPE BY_ROWS ",accumulate=1", CONFIG(0, 32, 64, 64, 2, 2, 3, 1, 1, 4)},
    {FEW LIKE_V41 ",accumulate=1", CONFIG(1, 16, 64, 128, 4, 1, 4, 1, 1, 1)},
    /* swapped: whole and half tiles along M */
    {FEW LIKE_V41, CONFIG(1, 8, 64, 128, 2, 1, 8, 1, 1, 1)},
    {FEW BY_ROWS ",out=f32", CONFIG(1, 16, 128, 128, 8, 1, 4, 1, 8, 1)},
    {FEW LIKE_V41, CONFIG(1, 32, 96, 64, 2, 2, 3, 1, 1, 3)},
    {SHAPE BY_ROWS, CONFIG(1, 64, 128, 128, 4, 2, 3, 1, 1, 1)},
    {SHAPE LIKE_V41 ",accumulate=1,out=f32", CONFIG(1, 8, 16, 64, 1, 1, 3, 1, 1, 1)},
    /* K split among CTAs */
    {FEW LIKE_V41, CONFIG(0, 16, 64, 64, 1, 2, 4, 4, 1, 1)},
    {FEW BY_ROWS ",out=f32,accumulate=1", CONFIG(1, 16, 64, 128, 2, 1, 4, 2, 1, 1)},
    {"fp8_gemm:m=1,n=72,k=2064,batch=2,recipe=ue8m0-1x32-32x32",
     CONFIG(1, 8, 32, 64, 1, 1, 5, 8, 1, 1)},
    /* layouts of scales, batches beside each other and one after the other */
    {SHAPE BY_ROWS ",a_scale_layout=row,b_scale_layout=row",
     CONFIG(0, 64, 64, 128, 2, 2, 3, 1, 1, 1)},
    {SHAPE BY_ROWS ",a_scale_layout=col,b_scale_layout=col",
     CONFIG(0, 64, 64, 64, 2, 2, 3, 1, 1, 1)},
    {SHAPE LIKE_V41 ",a_scale_layout=row,b_scale_layout=col",
     CONFIG(1, 64, 64, 128, 2, 2, 3, 1, 1, 1)},
    {"fp8_gemm:m=20,n=136,k=1056,batch=3,batch_layout=inner,recipe=ue8m0-1x32-1x32",
     CONFIG(0, 32, 64, 128, 2, 2, 3, 1, 1, 1)},
    {"fp8_gemm:m=20,n=136,k=160,batch=3,batch_layout=inner,recipe=ue8m0-1x32-1x32,"
     "a_scale_layout=row",
     CONFIG(0, 32, 64, 64, 1, 2, 4, 1, 1, 1)},
    {"fp8_gemm:m=20,n=136,k=416,batch=2,recipe=ue8m0-1x32-32x32,a_scale_layout=col",
     CONFIG(1, 32, 64, 128, 2, 2, 3, 1, 1, 1)},
    /* rows of any alignment; K's last group is a part of one */
    {"fp8_gemm:m=33,n=68,k=296,recipe=ue8m0-1x32-1x32", CONFIG(0, 32, 64, 128, 2, 1, 3, 1, 1, 1)},
    {"fp8_gemm:m=33,n=66,k=300,recipe=ue8m0-1x32-32x32", CONFIG(0, 32, 32, 64, 2, 1, 3, 1, 1, 1)},
    {"fp8_gemm:m=33,n=65,k=302,recipe=ue8m0-1x128-128x128",
     CONFIG(0, 32, 64, 64, 2, 1, 3, 1, 1, 1)},
    {"fp8_gemm:m=5,n=67,k=45,recipe=ue8m0-1x32-1x32", CONFIG(1, 8, 32, 128, 1, 1, 3, 1, 1, 1)},
    {"fp8_gemm:m=9,n=66,k=96,align=4,recipe=ue8m0-1x32-e2m1/1x32",
     CONFIG(0, 16, 64, 64, 1, 2, 3, 1, 1, 1)},
    {"fp8_gemm:m=9,n=67,k=96,align=1,recipe=ue8m0-1x32-e2m1/1x32,out=f32",
     CONFIG(1, 16, 32, 64, 2, 1, 3, 1, 1, 1)},
    /* nothing to sum; sampled, in bands of tile rows and as groups that split K */
    {"fp8_gemm:m=17,n=64,k=0,recipe=ue8m0-1x32-1x32", CONFIG(0, 16, 64, 64, 1, 2, 3, 1, 1, 1)},
    {"fp8_gemm:m=1056,n=2048,k=256,recipe=ue8m0-1x32-32x32",
     CONFIG(0, 64, 128, 128, 2, 4, 3, 1, 8, 1)},
    {"fp8_gemm:m=1056,n=2048,k=256,recipe=ue8m0-1x32-e2m1/1x32,out=f32,accumulate=1",
     CONFIG(0, 128, 128, 128, 2, 4, 3, 1, 8, 1)},
    {"fp8_gemm:m=16,n=4096,k=1024,recipe=ue8m0-1x32-32x32",
     CONFIG(1, 16, 64, 128, 2, 1, 4, 2, 1, 1)},
};

START_TEST(a_config_is_proved)
{
    prove_result r;

    if (!prove_fixture_leaves(_i, 3, TEMPLATE, NULL)) {
        prove_fixture_hold("emu:rtx5090", right[_i].problem, TEMPLATE, right[_i].config, &r);
        ck_assert_uint_eq(r.counters.tensor_macs[HONE_EMU_MMA_FP8], 0); /* all by the scaled unit */
    }
}
END_TEST

#define TILE    CONFIG(0, 64, 64, 128, 2, 2, 3, 1, 1, 1)
#define SWAPPED CONFIG(1, 8, 64, 128, 2, 1, 4, 1, 1, 1)
#define SPLIT   CONFIG(0, 16, 64, 64, 1, 2, 4, 4, 1, 1)
#define BANDS   CONFIG(0, 32, 64, 128, 2, 1, 3, 1, 8, 1)
static const struct {
    const char *what, *problem, *config, *old, *new;
} mutants[] = {
    {"each K step takes the first group's scale", SHAPE BY_ROWS, TILE, "u16(step)}", "u16(0)}"},
    {"the second m16 tile takes the first one's scales", SHAPE BY_ROWS, TILE, "u16(i % 2)",
     "u16(0)"},
    {"columns take the first n8 tile's scales", SHAPE BY_ROWS, TILE, "u16(j % 4)", "u16(0)"},
    {"scales of the wrong operand", SHAPE BY_ROWS, TILE, "kColumnsAt = C.swap ? 0 : T::A::kRows",
     "kColumnsAt = 0"},
    {"scales one block late", SHAPE BY_ROWS, TILE, "line.store_scales(block + 1);",
     "line.store_scales(block);"},
    {"scales where they are being read", SHAPE BY_ROWS, TILE, "block % 2 * T::kWords", "0"},
    {"what pads a word of scales", SHAPE BY_ROWS, TILE,
     "left < kGroups ? word & ((1u << 8 * left) - 1) : word", "word"},
    {"a scale for each row where 32 share one", SHAPE LIKE_V41, TILE, "row / GranMn * row_stride",
     "row * row_stride"},
    {"one scale of 128 for the first 32 only", SHAPE "ue8m0-1x128-1x128", TILE,
     "word * 0x01010101u", "word"},
    {"no barrier before a block is read", SHAPE BY_ROWS, TILE, "__syncthreads(); // this block",
     "// this block"},
    {"a block is not waited for", SHAPE BY_ROWS, TILE, "async_wait<C.stages - 2>",
     "async_wait<C.stages - 1>"},
    {"a stage is filled while it is read", SHAPE BY_ROWS, TILE, "line.load(block + C.stages - 1);",
     "line.load(block + C.stages);"},
    {"codes of four bits in the lowest of a byte", FP4 MX_FP4, TILE,
     "r[0] <<= 2, r[1] <<= 2, r[2] <<= 2, r[3] <<= 2;", ""},
    {"rows of four bits as long as those of eight", FP4 MX_FP4, TILE, "C.b_e2m1 ? k / 2 : k", "k"},
    {"the second half of a chunk of K", FP4 MX_FP4, TILE, "(block * kChunks + chunk) * Chunk",
     "block * RowBytes + chunk * 16"},
    {"a half tile's missing rows", FEW LIKE_V41, SWAPPED, "min(m, column + W::kWarpC)", "m"},
    {"a tile that is not turned", FEW LIKE_V41, SWAPPED, "odd ? y : x", "x"},
    {"the first part is added for all", FEW LIKE_V41, SPLIT, "first + p * kEach",
     "first + 0 * kEach"},
    {"whoever comes first is taken for the last", FEW LIKE_V41, SPLIT,
     "__syncthreads_or(before == Parts - 1)", "__syncthreads_or(before == 0)"},
    {"parts are read before they are there", FEW LIKE_V41, SPLIT, "atom.acq_rel.gpu",
     "atom.relaxed.gpu"},
    {"parts without a barrier", FEW LIKE_V41, SPLIT, "    __syncthreads(); // all of this CTA's",
     "    // all of this CTA's"},
    {"a part of K is left out", FEW LIKE_V41, SPLIT, "i32(i64(blocks) * (part + 1) / C.split_k)",
     "i32(i64(blocks) * (part + 1) / C.split_k) - (part == 1)"},
    {"bands of rows that are full", SHAPE BY_ROWS, BANDS, "within / high}", "within / Raster}"},
};

START_TEST(a_mutant_is_refused)
{
    const prove_mutant mutant = {mutants[_i].what, 0, mutants[_i].old, mutants[_i].new};

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutant.old)) {
        prove_fixture_refuse(&mutant, "emu:rtx5090", mutants[_i].problem, TEMPLATE,
                             mutants[_i].config);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_scale");

    if (!prove_fixture_start("prove_block_scale")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    const int result =
        suite_run_here("bench/prove_block_scale", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
