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
#define BROAD     CONFIG(0, 32, 256, 128, 2, 4, 1, 2, 128, 8)
#define PAIRED    CONFIG(1, 8, 64, 128, 1, 2, 1, 4, 128, 8)

/* n and k with tails; of eight experts the holes leave every corner: no row, one, row_align and one
 * more */
#define ROWS      "moe_gemm:tokens=30,topk=3,experts=8,n=72,k=272,group_layout="
#define FP8       ",recipe=f32-1x128-128x128"
#define FP8_32    ",recipe=ue8m0-1x32-32x32"
#define FP4       ",recipe=ue8m0-1x32-e2m1/1x32"
#define FP4_128   ",recipe=f32-1x128-e2m1/ue8m0/1x32"
#define ROWS_FP4  "moe_gemm:tokens=30,topk=3,experts=8,n=72,k=288,group_layout="
#define GATES     "moe_gemm:tokens=30,topk=3,experts=8,n=256,k=272,activation="
#define GATES_32  "moe_gemm:tokens=30,topk=3,experts=8,n=320,k=272,activation="
#define GATES_FP4 "moe_gemm:tokens=30,topk=3,experts=8,n=320,k=288,activation="
#define CODES     ",out=e4m3,out_group="
#define FIXED                                                                                      \
    "moe_gemm:tokens=8,topk=2,experts=4,group_layout=masked,m=16,order=fixed,recipe=f32-1x128-"    \
    "1x128,"

static const struct {
    const char *problem, *config;
} right[] = {
    {ROWS "contiguous,row_align=32" FP8, WIDE},
    {ROWS "contiguous,row_align=128" FP8, TALL},
    {ROWS "contiguous,row_align=128" FP8_32, TALL_32},
    {ROWS "contiguous,row_align=16" FP8, FLAT},
    {ROWS "contiguous,row_align=8,fill=1" FP8, TURNED},
    {ROWS "contiguous,row_align=16" FP8_32, FLAT_32},
    {ROWS "masked,m=70" FP8, WIDE},
    {ROWS "masked,m=70,out=f32" FP8_32, WIDE_32},
    {ROWS "masked,m=9" FP8, FLAT},
    {ROWS "masked,m=13" FP8_32, TURNED_32},
    {ROWS "masked,m=128,fill=1,a_scale_layout=row,b_scale_layout=col" FP8, TALL},
    {ROWS "psum,row_align=1" FP8, WIDE},
    {ROWS "psum,row_align=8,fill=1" FP8_32, TALL_32},
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
    /* MXFP4 experts */
    {ROWS_FP4 "contiguous,row_align=32" FP4, WIDE_32},
    {ROWS_FP4 "masked,m=70,out=f32" FP4_128, WIDE_32},
    {ROWS_FP4 "psum,row_align=8" FP4, TURNED_32},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=33,k=96,align=1,group_layout=psum,row_align=8" FP4,
     FLAT_32},
    /* gates and ups */
    {GATES "silu_mul,group_layout=contiguous,row_align=32" FP8, WIDE},
    {GATES_32 "silu_mul_v4,group_layout=masked,m=70,out=f32" FP8_32, FLAT_32},
    {GATES_32 "silu_mul_v4,group_layout=psum,row_align=8,fill=1" FP8_32 CODES "32", WIDE_32},
    {GATES "silu_mul,group_layout=masked,m=70" FP8 CODES "128,out_scale=f32", BROAD},
    {GATES_32 "silu_mul_v4,group_layout=contiguous,row_align=16" FP8_32 CODES
              "32,out_scale=ue8m0,out_scale_layout=packed",
     TURNED_32},
    {GATES "silu_mul,group_layout=psum,row_align=1" FP8 CODES
           "32,out_scale=f32,out_scale_layout=row",
     PAIRED},
    {GATES_FP4 "silu_mul_v4,group_layout=masked,m=70" FP4 CODES
               "32,out_scale=ue8m0,out_scale_layout=packed",
     WIDE_32},
    {GATES_FP4 "silu_mul_v4,group_layout=psum,row_align=16" FP4_128 CODES "32", TURNED_32},
    {"moe_gemm:tokens=8,topk=2,experts=6,n=128,k=0,activation=silu_mul,group_layout=masked,"
     "m=16" FP8_32 CODES "32",
     WIDE_32},
};
enum {
    CONTIGUOUS = 0,
    MASKED = 6,
    PSUM = 11,
    TIGHT = 12,
    FILLED = 12,
    SAMPLED = 25,
    NIBBLES = 28,
    GATED = 32,
    GATED_CODES = 34,
    GATED_128,
    TURNED_CODES = 36
};

/* Rows go round the architectures. */
static const char *device_of(int row)
{
    static const char *const devices[] = {"emu:h20", "emu:rtx4090", "emu:rtx5090"};

    return devices[row / 2 % ARRAY_LEN(devices)];
}

START_TEST(a_config_is_proved)
{
    prove_result r;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, NULL)) {
        prove_fixture_hold(device_of(_i), right[_i].problem, TEMPLATE, right[_i].config, &r);
        ck_assert_double_gt(r.time_ns, 0);
        ck_assert(_i < SAMPLED || _i >= NIBBLES || r.ctas_run < r.ctas_total);
    }
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
    {"another expert's matrix of D", MASKED, "i64(block.matrix) * to.m * to.n",
     "i64(0) * to.m * to.n"},
    {"another matrix of A's scales", MASKED, "block.matrix * o.a_scale_matrix",
     "0 * o.a_scale_matrix"},
    {"the last tile is missing", PSUM, "tile < blocks * tiles_n", "tile < blocks * tiles_n - 1"},
    {"ends are taken for aligned begins", TIGHT, "(u32(before) + align - 1) / align * align",
     "u32(before)"},
    {"the stages are overwritten while they are read", SAMPLED + 2,
     "        __syncthreads(); // all have read", "        // all have read"},
    {"a sampled CTA's second tile is another's", SAMPLED, "tile_place<C.raster>(tile, blocks",
     "tile_place<C.raster>(tile >= i32(gridDim.x) ? tile - 1 : tile, blocks"},
    {"codes of four bits in the other order", NIBBLES, "held[t].x & 0xffff, held[t].x >> 16",
     "held[t].x >> 16, held[t].x & 0xffff"},
    {"codes of the block before", NIBBLES, "fetch(block + 1);", "fetch(block);"},
    {"the first block's codes are not there", NIBBLES, "line.copy_b.fetch(line.first);", ""},
    {"rows of four bits as long as those of eight", NIBBLES, "C.b_e2m1 ? o.k / 2 : o.k", "o.k"},
    {"gates for ups", GATED, "activate<Act>(gate[x], up[x])", "activate<Act>(up[x], gate[x])"},
    {"the gates' weights for the ups", GATED, "(half_row<Half>(row) + half_jump<Half>(row, jump))",
     "half_row<Half>(row)"},
    {"the gates' scales for the ups", GATED, "half_jump<Half>(at, jump)", "0"},
    {"the ups of the next warp's gates", GATED, "row / (2 * Half) * Half + row % Half", "row / 2"},
    {"a lane's amax for a group's", GATED_CODES, "group_amax<kLanes>", "group_amax<1>"},
    {"activations are read before they are there", GATED_CODES,
     "        __syncthreads(); // D's tile is there", ""},
    {"activations overwrite what is multiplied", GATED_128,
     "        __syncthreads(); // all are done with the stages", ""},
    {"turned activations are not turned", TURNED_CODES, "(Turned ? c : r)", "(Turned ? r : c)"},
    {"a group's scale beside its place", GATED_CODES, "(column + c) / S.group,",
     "(column + c) / S.group ^ 1,"},
    {"codes of padding rows are stored", TURNED_CODES, "row_kept(rows, row + r) && column",
     "column"},
    {"an end that falls takes the next expert back", TIGHT,
     "fell = fell || __any_sync(0xffffffffu, present && value < before);", "fell = false;"},
    {"rows that nobody has are not filled", FILLED, "!expert_has<Layout>(of, row)", "false"},
    {"rows of the first experts are filled", FILLED, "has = has || (row >= span.first",
     "has = (row >= span.first + 1"},
    {"what fills a row's last word is left as it was", TURNED_CODES, "pad % 4 != 0; pad++",
     "false; pad++"},
};

START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], device_of(row), right[row].problem, TEMPLATE,
                             right[row].config);
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

/* Of a fixed order each n has one template, whatever m: mma_sync has what wgmma's gates cannot. */
START_TEST(a_fixed_order_is_one_template_s)
{
    static const struct {
        const char *problem;
        bool sync, wgmma;
    } rows[] = {
        {FIXED "n=64,k=272,activation=silu_mul", false, true},
        {FIXED "n=48,k=272,activation=silu_mul", true, false},
        {FIXED "n=40,k=272,activation=silu_mul,out=f32", true, false},
        {FIXED "n=66,k=272,activation=silu_mul", true, false},
    };
    const templates *t = prove_fixture_templates();
    hone_error error = {0};
    gpu g;

    ck_assert_int_eq(gpu_find("h20", &g, &error), HONE_OK);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        hone_problem problem;
        bool sync = false, wgmma = false;
        char why[160];
        ck_assert_msg(hone_problem_parse(rows[i].problem, &problem, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_int_eq(
            manifest_serves(templates_find(t, TEMPLATE), &problem, &g.facts, &sync, why, &error),
            HONE_OK);
        ck_assert_int_eq(manifest_serves(templates_find(t, "moe_gemm/sm90_wgmma_gated"), &problem,
                                         &g.facts, &wgmma, why, &error),
                         HONE_OK);
        ck_assert_msg(sync == rows[i].sync && wgmma == rows[i].wgmma, "%s", rows[i].problem);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moe");

    if (!prove_fixture_start("prove_moe_sync")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    tcase_add_test(tests, labels_finer_than_the_tile_are_refused_at_planning);
    tcase_add_test(tests, a_fixed_order_is_one_template_s);
    const int result = suite_run_here("bench/prove_moe_sync", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
