/* test_prove_moe_sync.c - moe_gemm/mma_sync proved on the emulator in every layout and recipe,
 * races looked for; and mutants that write where they must not, or multiply with another expert's
 * weights. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE "moe_gemm/mma_sync"
#define CONFIG(swap, m, n, k, wm, wn, wk, stages, promote, raster)                                 \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_m=" #wm " warps_n=" #wn     \
    " warps_k=" #wk " stages=" #stages " promote=" #promote " raster=" #raster " residency=1"
#define WIDE      CONFIG(0, 32, 64, 128, 2, 2, 1, 3, 128, 1)
#define WIDE_32   CONFIG(0, 32, 64, 128, 2, 2, 1, 3, 32, 8)
#define TALL      CONFIG(0, 64, 32, 128, 4, 1, 1, 2, 128, 8)
#define TALL_32   CONFIG(0, 128, 32, 64, 4, 1, 1, 2, 32, 1)
#define FLAT      CONFIG(0, 16, 64, 128, 1, 4, 1, 3, 128, 1)
#define FLAT_32   CONFIG(0, 16, 32, 128, 1, 1, 2, 3, 32, 1)
#define TURNED    CONFIG(1, 8, 64, 128, 1, 4, 1, 3, 128, 1)
#define TURNED_32 CONFIG(1, 16, 64, 128, 1, 2, 2, 3, 32, 1)

/* n and k with tails; of eight experts the holes leave every corner: no row, one, row_align and one
 * more */
#define ROWS   "moe_gemm:tokens=30,topk=3,experts=8,n=72,k=272,group_layout="
#define FP8    ",recipe=f32-1x128-128x128"
#define FP8_32 ",recipe=ue8m0-1x32-32x32"

static const struct {
    const char *problem, *config;
} right[] = {
    {ROWS "contiguous,row_align=32" FP8, WIDE},
    {ROWS "contiguous,row_align=128" FP8, TALL},
    {ROWS "contiguous,row_align=128" FP8_32, TALL_32},
    {ROWS "contiguous,row_align=16" FP8, FLAT},
    {ROWS "contiguous,row_align=8" FP8, TURNED},
    {ROWS "contiguous,row_align=16" FP8_32, FLAT_32},
    {ROWS "masked,m=70" FP8, WIDE},
    {ROWS "masked,m=70,out=f32" FP8_32, WIDE_32},
    {ROWS "masked,m=9" FP8, FLAT},
    {ROWS "masked,m=13" FP8_32, TURNED_32},
    {ROWS "masked,m=128,a_scale_layout=row,b_scale_layout=col" FP8, TALL},
    {ROWS "psum,row_align=1" FP8, WIDE},
    {ROWS "psum,row_align=8" FP8_32, TALL_32},
    {ROWS "psum,row_align=128,out=f32" FP8, FLAT},
    {ROWS "psum,row_align=16" FP8, TURNED},
    {ROWS "psum,row_align=32,a_scale_layout=col,recipe=ue8m0-1x32-1x32", TURNED_32},
    /* one expert, three, 512; one row; exactly row_align rows are among the holes' */
    {"moe_gemm:tokens=40,experts=1,n=72,k=272,group_layout=contiguous,row_align=32" FP8, WIDE},
    {"moe_gemm:tokens=40,experts=1,n=72,k=272,group_layout=masked" FP8_32, FLAT_32},
    {"moe_gemm:tokens=40,experts=3,n=72,k=272,group_layout=psum,row_align=16" FP8, FLAT},
    {"moe_gemm:tokens=1,experts=3,n=72,k=272,group_layout=contiguous,row_align=8" FP8, TURNED},
    {"moe_gemm:tokens=8,topk=2,experts=512,n=40,k=64,group_layout=masked,m=2" FP8_32, FLAT_32},
    {"moe_gemm:tokens=8,topk=2,experts=512,n=40,k=64,group_layout=psum,row_align=1" FP8, FLAT},
    {"moe_gemm:tokens=8,topk=2,experts=512,n=40,k=64,group_layout=contiguous,row_align=16" FP8,
     FLAT},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=72,k=0,group_layout=masked,m=16" FP8, FLAT},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=33,k=127,group_layout=psum,row_align=8" FP8, FLAT},
    /* sampled, of a persistent grid */
    {"moe_gemm:tokens=256,topk=4,experts=16,n=512,k=256,group_layout=contiguous,row_align=64" FP8,
     TALL},
    {"moe_gemm:tokens=256,topk=4,experts=16,n=512,k=256,group_layout=masked,m=100" FP8_32, WIDE_32},
    {"moe_gemm:tokens=256,topk=4,experts=16,n=512,k=256,group_layout=psum,row_align=16" FP8, WIDE},
};
enum { CONTIGUOUS = 0, MASKED = 6, PSUM = 11, TIGHT = 12, SAMPLED = 25 };

START_TEST(a_config_is_proved)
{
    prove_fixture f;
    prove_result r;
    bool legal = false;
    char why[160] = "";

    if (prove_fixture_leaves(_i, 3, TEMPLATE, NULL)) {
        return;
    }
    prove_fixture_open(&f, "emu:h20", right[_i].problem, TEMPLATE, right[_i].config, NULL, NULL);
    ck_assert_int_eq(manifest_legal(f.choice.m, &f.problem, &f.d->gpu.facts, &f.choice.config,
                                    &legal, why, NULL),
                     HONE_OK);
    ck_assert_msg(legal, "%s, %s: %s", right[_i].problem, right[_i].config, why);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s: %s", right[_i].problem, r.reason);
    ck_assert_double_gt(r.time_ns, 0);
    ck_assert(_i < SAMPLED || r.ctas_run < r.ctas_total);
    prove_fixture_close(&f);
}
END_TEST

START_TEST(ada_and_rtx_blackwell_have_it_too)
{
    static const char *const devices[] = {"emu:rtx4090", "emu:rtx5090"};
    prove_fixture f;
    prove_result r;

    prove_fixture_open(&f, devices[_i], ROWS "masked,m=70" FP8, TEMPLATE, WIDE, NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s", r.reason);
    prove_fixture_close(&f);
}
END_TEST

static const prove_mutant mutants[] = {
    {"the next expert's weights", MASKED, "(i64(block.expert) * o.n",
     "(i64(block.expert + 1) % 8 * o.n"},
    {"the next expert's scales of weights", PSUM, "block.expert * o.b_scale_expert",
     "(block.expert + 1) % 8 * o.b_scale_expert"},
    {"the first expert's weights", CONTIGUOUS, "(i64(block.expert) * o.n", "(i64(0) * o.n"},
    {"a tile spills into the next expert's rows", PSUM, "block.expert, block.end}",
     "block.expert, block.end + 1}"},
    {"a masked tile spills into padding", MASKED, "block.expert, block.end}",
     "block.expert, block.end + 1}"},
    {"an expert's last row is missing", MASKED, "block.expert, block.end}",
     "block.expert, block.end - 1}"},
    {"a row of padding is written", CONTIGUOUS, "rows.labels[row] == rows.expert", "true"},
    {"another expert's matrix of D", MASKED, "i64(block.matrix) * m * n", "i64(0) * m * n"},
    {"another matrix of A's scales", MASKED, "block.matrix * o.a_scale_matrix",
     "0 * o.a_scale_matrix"},
    {"the last tile is missing", PSUM, "tile < blocks * tiles_n", "tile < blocks * tiles_n - 1"},
    {"ends are taken for aligned begins", TIGHT, "(u32(before) + align - 1) / align * align",
     "u32(before)"},
    {"the stages are overwritten while they are read", SAMPLED + 2,
     "        __syncthreads(); // all have read", "        // all have read"},
    {"a sampled CTA's second tile is another's", SAMPLED, "tile_place<C>(tile, blocks",
     "tile_place<C>(tile >= i32(gridDim.x) ? tile - 1 : tile, blocks"},
};

START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], right[row].problem, TEMPLATE, right[row].config);
    }
}
END_TEST

/* cases.md 12: rows of an expert that begin within a tile would get another one's weights. */
START_TEST(labels_finer_than_the_tile_are_refused_at_planning)
{
    static const struct {
        const char *problem, *why; /* why: NULL where it is legal */
    } rows[] = {
        {ROWS "contiguous,row_align=1" FP8, "labels finer than the tile"},
        {ROWS "contiguous,row_align=16" FP8, "row_align % block_m"},
        {ROWS "contiguous,row_align=48" FP8, "row_align % block_m"},
        {ROWS "contiguous,row_align=64" FP8, NULL},
        {ROWS "psum,row_align=1" FP8, NULL},
    };
    hone_error error = {0};
    prove_fixture f;

    prove_fixture_open(&f, "emu:h20", ROWS "contiguous,row_align=64" FP8, TEMPLATE, TALL, NULL,
                       NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const device_facts *facts = &f.d->gpu.facts;
        hone_problem problem;
        bool legal = false;
        char why[160] = "";
        ck_assert_int_eq(hone_problem_parse(rows[i].problem, &problem, &error), HONE_OK);
        ck_assert_int_eq(manifest_serves(f.choice.m, &problem, facts, &legal, why, &error),
                         HONE_OK);
        if (legal) {
            ck_assert_int_eq(
                manifest_legal(f.choice.m, &problem, facts, &f.choice.config, &legal, why, &error),
                HONE_OK);
        }
        ck_assert_msg(legal == (rows[i].why == NULL), "%s", rows[i].problem);
        ck_assert_msg(legal || strstr(why, rows[i].why) != NULL, "%s: %s", rows[i].problem, why);
    }
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moe");

    if (!prove_fixture_start("prove_moe_sync")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, ada_and_rtx_blackwell_have_it_too, 0, 2);
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    tcase_add_test(tests, labels_finer_than_the_tile_are_refused_at_planning);
    const int result = suite_run_here("bench/prove_moe_sync", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
