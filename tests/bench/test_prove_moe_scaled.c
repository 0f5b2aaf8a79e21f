/* test_prove_moe_scaled.c - moe_gemm/sm120_block_scale proved on the emulator in every layout,
 * recipe and output by pinned configs, races looked for; and mutants that the proof must refuse. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define DEVICE   "emu:rtx5090"
#define TEMPLATE "moe_gemm/sm120_block_scale"
#define CONFIG(swap, m, n, k, r, c, stages, raster, residency)                                     \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_r=" #r " warps_c=" #c       \
    " stages=" #stages " raster=" #raster " residency=" #residency
#define WIDE   CONFIG(0, 32, 64, 128, 2, 2, 3, 8, 1)
#define TALL   CONFIG(0, 64, 64, 128, 2, 2, 2, 1, 1)
#define FLAT   CONFIG(0, 16, 64, 64, 1, 2, 4, 8, 2)
#define TURNED CONFIG(1, 16, 64, 128, 2, 1, 4, 8, 1)
#define FEW    CONFIG(1, 8, 64, 64, 2, 1, 5, 1, 3)
#define ODD    CONFIG(1, 8, 16, 64, 1, 1, 3, 8, 1)

/* n and k with tails; of eight experts the holes leave every corner: no row, one, row_align and one
 * more */
#define ROWS      "moe_gemm:tokens=30,topk=3,experts=8,n=72,k=272,group_layout="
#define ROWS_FP4  "moe_gemm:tokens=30,topk=3,experts=8,n=72,k=288,group_layout="
#define GATES     "moe_gemm:tokens=30,topk=3,experts=8,n=320,k=272,activation="
#define GATES_FP4 "moe_gemm:tokens=30,topk=3,experts=8,n=320,k=288,activation="
#define LIKE_V41  ",recipe=ue8m0-1x32-32x32"
#define MX_FP4    ",recipe=ue8m0-1x32-e2m1/1x32"
#define CODES     ",out=e4m3,out_group="
#define PACKED    ",out_scale=ue8m0,out_scale_layout=packed"

static const struct {
    const char *problem, *config;
} right[] = {
    {ROWS "contiguous,row_align=32" LIKE_V41, WIDE},
    {ROWS "masked,m=70" LIKE_V41, TALL},
    {ROWS "psum,row_align=8" LIKE_V41, TURNED},
    {ROWS "contiguous,row_align=8,out=f32,recipe=ue8m0-1x32-1x32", FEW},
    {ROWS "masked,m=13,a_scale_layout=row,b_scale_layout=col,recipe=ue8m0-1x128-1x32", FLAT},
    {ROWS "psum,row_align=1,fill=1,recipe=ue8m0-1x128-128x128", WIDE},
    {ROWS_FP4 "contiguous,row_align=16" MX_FP4, FLAT},
    {ROWS_FP4 "masked,m=70,out=f32" MX_FP4, WIDE},
    {ROWS_FP4 "psum,row_align=16,a_scale_layout=col,recipe=ue8m0-1x32-e2m1/32x32", TURNED},
    {"moe_gemm:tokens=8,topk=2,experts=512,n=40,k=64,group_layout=masked,m=2" LIKE_V41, FEW},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=33,k=127,group_layout=psum,row_align=8" LIKE_V41, ODD},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=72,k=0,group_layout=masked,m=16" LIKE_V41, FLAT},
    {ROWS "masked,m=70,order=fixed" LIKE_V41, WIDE},
    /* sampled, of a persistent grid */
    {"moe_gemm:tokens=256,topk=4,experts=16,n=1024,k=256,group_layout=contiguous,row_align="
     "64" LIKE_V41,
     TALL},
    {"moe_gemm:tokens=256,topk=4,experts=16,n=1024,k=256,group_layout=psum,row_align=16" MX_FP4,
     WIDE},
    /* gates and ups */
    {GATES "silu_mul,group_layout=contiguous,row_align=32" LIKE_V41, WIDE},
    {GATES "silu_mul_v4,group_layout=masked,m=70,out=f32" LIKE_V41, TURNED},
    {GATES "silu_mul_v4,group_layout=psum,row_align=8" LIKE_V41 CODES "32" PACKED, WIDE},
    {GATES "silu_mul,group_layout=contiguous,row_align=8,fill=1" LIKE_V41 CODES "32,out_scale=f32",
     FEW},
    {GATES_FP4 "silu_mul_v4,group_layout=masked,m=70" MX_FP4 CODES "32" PACKED, TURNED},
    {"moe_gemm:tokens=30,topk=3,experts=8,n=512,k=288,activation=silu_mul,group_layout=psum,"
     "row_align=1,recipe=ue8m0-1x32-e2m1/1x32" CODES "128,out_scale_layout=row",
     CONFIG(1, 16, 256, 128, 4, 1, 2, 8, 1)},
};
enum { LABELS, COUNTS, ENDS, SAMPLED = 13, GATED = 15, GATED_CODES = 17, TURNED_CODES = 19 };

START_TEST(a_config_is_proved)
{
    prove_result r;

    if (!prove_fixture_leaves(_i, 3, TEMPLATE, NULL)) {
        prove_fixture_hold(DEVICE, right[_i].problem, TEMPLATE, right[_i].config, &r);
        ck_assert_uint_eq(r.counters.tensor_macs[HONE_EMU_MMA_FP8], 0); /* all by the scaled unit */
        ck_assert(_i < SAMPLED || _i >= GATED || r.ctas_run < r.ctas_total);
    }
}
END_TEST

static const prove_mutant mutants[] = {
    {"the next expert's weights", COUNTS, "(i64(block.expert) * o.n",
     "(i64(block.expert + 1) % 8 * o.n"},
    {"the first expert's scales of weights", ENDS, "block.expert * o.b_scale_expert",
     "0 * o.b_scale_expert"},
    {"another matrix of A's scales", COUNTS, "block.matrix * o.a_scale_matrix",
     "0 * o.a_scale_matrix"},
    {"another matrix of A", COUNTS, "(i64(block.matrix) * o.m", "(i64(0) * o.m"},
    {"scales of the next expert's first row", ENDS, "block.row,\n                       block.end",
     "block.row + 1,\n                       block.end"},
    {"a tile spills into the next expert's rows", ENDS, "block.expert, block.end}",
     "block.expert, block.end + 1}"},
    {"padding rows are stored", LABELS, "rows.labels[row] == rows.expert", "true"},
    {"the stages are overwritten while they are read", SAMPLED + 1,
     "        __syncthreads(); // all have read", "        // all have read"},
    {"the table is read before it is there", SAMPLED, "    __syncthreads(); // the table",
     "    // the table"},
    {"a row of tiles is left out", SAMPLED + 1, "tile < blocks * tiles_n",
     "tile < (blocks - 1) * tiles_n"},
    {"rows that nobody has are not filled", 5, "!expert_has<Layout>(of, row)", "false"},
    {"the gates' scales for the ups", GATED, "half + half_jump<Half>(line, jump)", "half"},
    {"the ups' weights are the gates'", GATED_CODES,
     "(half_row<Half>(row) + half_jump<Half>(row, jump))", "half_row<Half>(row)"},
    {"a warp's columns are another's", GATED_CODES, "columns_of<C>(C.swap ? row : column)",
     "(C.swap ? row : column)"},
    {"turned activations are not turned", TURNED_CODES, "(Turned ? c : r)", "(Turned ? r : c)"},
};

START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], DEVICE, right[row].problem, TEMPLATE, right[row].config);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moe");

    if (!prove_fixture_start("prove_moe_scaled")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    const int result =
        suite_run_here("bench/prove_moe_scaled", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
