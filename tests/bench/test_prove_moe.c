/* test_prove_moe.c - moe_gemm on Hopper proved on the emulator: layouts, recipes and outputs by
 * pinned configs, and mutants that the proof must refuse. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define PLAIN_TEMPLATE "moe_gemm/sm90_wgmma"
#define GATED_TEMPLATE "moe_gemm/sm90_wgmma_gated"
#define FP4_TEMPLATE   "moe_gemm/sm90_wgmma_fp4"
#define FP4_GATED      "moe_gemm/sm90_wgmma_fp4_gated"
#define SHARED(share, raster, swap, m, n, rows, columns, chunks, sets, stages, pair)               \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " queue=1 stages=" #stages " pair=" #pair " share=" #share   \
    " raster=" #raster
#define TILE(queue, raster, swap, m, n, rows, columns, chunks, sets, stages, pair)                 \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " queue=" #queue " stages=" #stages " pair=" #pair           \
    " share=1 raster=" #raster
#define REST(loader) " loader_registers=" #loader " residency=1 idle=1"
#define PLAIN_IN(queue, raster, staged, loader, ...)                                               \
    PLAIN_TEMPLATE, TILE(queue, raster, __VA_ARGS__) " staged=" #staged REST(loader)
#define GATED_IN(queue, raster, loader, ...)                                                       \
    GATED_TEMPLATE, TILE(queue, raster, __VA_ARGS__) REST(loader)
#define PLAIN(...) PLAIN_IN(1, 8, __VA_ARGS__)
#define GATED(...) GATED_IN(1, 8, __VA_ARGS__)
#define FP4_IN(share, m, n, rows, sets, joint, stages, pair, raster, staged, fold)                 \
    FP4_TEMPLATE, "fold=" #fold " block_m=" #m " block_n=" #n " row_groups=" #rows                 \
                  " chunks=1 sets=" #sets " joint=" #joint " stages=" #stages " pair=" #pair       \
                  " share=" #share " raster=" #raster " staged=" #staged " residency=1"
#define FP4(...) FP4_IN(1, __VA_ARGS__)

/* n and k with tails; rows of experts that are no whole tiles */
#define SHAPE     "moe_gemm:n=328,k=528,experts=5,tokens=96,topk=3,"
#define SHAPE_FP4 "moe_gemm:n=328,k=544,experts=5,tokens=96,topk=3,"
#define GATES     "moe_gemm:n=768,k=528,experts=5,tokens=96,topk=3,activation="
#define GATES_FP4 "moe_gemm:n=768,k=544,experts=5,tokens=96,topk=3,activation="
#define CODES     ",out=e4m3,out_group="
static const struct {
    const char *problem, *template, *config;
} right[] = {
    {SHAPE "group_layout=contiguous,recipe=f32-1x128-128x128",
     PLAIN_IN(1, 1, 1, 40, 0, 128, 128, 2, 1, 1, 1, 4, 0)},
    {SHAPE "group_layout=masked,fill=1,recipe=f32-1x128-128x128",
     PLAIN(1, 40, 0, 128, 96, 2, 1, 1, 1, 4, 1)},
    {SHAPE "group_layout=psum,row_align=8,recipe=f32-1x128-128x128",
     PLAIN_IN(1, 16, 0, 56, 0, 192, 96, 3, 1, 1, 1, 3, 0)},
    {SHAPE "group_layout=contiguous,row_align=16,recipe=ue8m0-1x32-32x32",
     PLAIN_IN(2, 1, 0, 56, 1, 16, 128, 2, 1, 1, 2, 6, 0)},
    {SHAPE "group_layout=masked,recipe=ue8m0-1x32-32x32",
     PLAIN(0, 40, 1, 16, 128, 1, 1, 1, 2, 6, 1)},
    {SHAPE "group_layout=psum,row_align=32,recipe=f32-1x128-128x128",
     PLAIN(1, 40, 1, 64, 64, 1, 1, 1, 1, 6, 2)},
    {SHAPE "group_layout=contiguous,recipe=f32-1x128-1x128,out=f32",
     PLAIN_IN(1, 1, 1, 56, 0, 64, 128, 1, 2, 1, 1, 4, 2)},
    {SHAPE "group_layout=psum,row_align=1,fill=1,recipe=ue8m0-1x32-1x32",
     PLAIN_IN(2, 16, 0, 40, 1, 24, 64, 1, 1, 1, 2, 3, 0)},
    {"moe_gemm:n=328,k=528,experts=1,tokens=70,topk=1,group_layout=psum,fill=1,recipe=f32-1x128-"
     "128x128",
     PLAIN(1, 40, 0, 128, 128, 2, 1, 1, 1, 4, 0)},
    {"moe_gemm:n=72,k=272,experts=512,tokens=40,topk=8,m=24,group_layout=masked,recipe="
     "ue8m0-1x32-"
     "32x32",
     PLAIN(0, 40, 1, 8, 64, 1, 1, 1, 2, 4, 0)},
    {SHAPE "group_layout=contiguous,row_align=384,recipe=ue8m0-1x32-32x32",
     PLAIN_IN(2, 8, 1, 56, 0, 192, 64, 3, 1, 1, 2, 3, 1)},
    /* sampled, on a persistent grid: more tiles than clusters */
    {"moe_gemm:n=1024,k=256,experts=16,tokens=1024,topk=4,group_layout=contiguous,row_align=256,"
     "recipe=f32-1x128-"
     "128x128",
     PLAIN(1, 40, 0, 128, 128, 2, 1, 1, 1, 4, 1)},
    {"moe_gemm:n=2048,k=384,experts=32,tokens=64,topk=8,group_layout=masked,recipe=ue8m0-1x32-"
     "32x32",
     PLAIN_IN(2, 1, 0, 40, 1, 16, 128, 2, 1, 1, 2, 6, 0)},
    /* MXFP4 experts */
    {SHAPE_FP4 "group_layout=contiguous,row_align=16,recipe=ue8m0-1x32-e2m1/1x32",
     FP4(16, 128, 2, 1, 4, 4, 0, 1, 1, 0)},
    {SHAPE_FP4 "group_layout=psum,row_align=16,recipe=ue8m0-1x32-e2m1/1x32",
     FP4(16, 192, 1, 2, 1, 4, 1, 8, 0, 0)},
    {SHAPE_FP4 "group_layout=masked,recipe=f32-1x128-e2m1/ue8m0/1x32",
     FP4(64, 128, 2, 1, 1, 4, 0, 8, 1, 1)},
    /* gates and ups */
    {GATES "silu_mul,group_layout=contiguous,recipe=f32-1x128-128x128",
     GATED(40, 0, 128, 128, 2, 1, 1, 1, 4, 0)},
    {GATES "silu_mul_v4,group_layout=masked,recipe=ue8m0-1x32-32x32,out=f32",
     GATED_IN(2, 1, 40, 1, 16, 128, 1, 1, 1, 2, 4, 1)},
    {GATES "silu_mul_v4,group_layout=psum,row_align=8,recipe=ue8m0-1x32-32x32" CODES "32",
     GATED_IN(2, 16, 56, 1, 16, 256, 2, 1, 1, 2, 4, 0)},
    {GATES "silu_mul_v4,group_layout=contiguous,recipe=ue8m0-1x32-32x32" CODES
           "32,out_scale=ue8m0,out_scale_layout=packed",
     GATED(56, 0, 128, 128, 2, 1, 1, 2, 4, 2)},
    {GATES "silu_mul,group_layout=masked,recipe=f32-1x128-128x128" CODES "128,out_scale=f32",
     GATED_IN(1, 1, 40, 0, 128, 256, 2, 1, 2, 1, 3, 0)},
    {GATES "silu_mul,group_layout=psum,recipe=f32-1x128-128x128" CODES
           "128,out_scale=f32,out_scale_layout=row",
     GATED(40, 1, 32, 256, 2, 1, 1, 1, 3, 1)},
    {GATES "silu_mul,group_layout=psum,fill=1,recipe=f32-1x128-1x128" CODES "32,out_scale=f32",
     GATED_IN(1, 16, 56, 0, 64, 128, 1, 2, 1, 1, 4, 0)},
    {GATES_FP4 "silu_mul_v4,group_layout=psum,row_align=16,fill=1,recipe=ue8m0-1x32-e2m1/1x32" CODES
               "32",
     FP4_GATED,
     "fold=0 block_m=16 block_n=256 row_groups=1 chunks=1 sets=2 joint=2 stages=4 pair=1 share=1 raster=8 "
     "residency=1"},
    {GATES_FP4 "silu_mul_v4,group_layout=masked,recipe=f32-1x128-e2m1/ue8m0/1x32" CODES "128",
     FP4_GATED,
     "fold=1 block_m=24 block_n=256 row_groups=2 chunks=1 sets=1 joint=1 stages=4 pair=0 share=1 raster=8 "
     "residency=1"},
    /* ten groups of D: a row's last word has two of padding */
    {"moe_gemm:n=640,k=512,experts=5,tokens=96,topk=3,activation=silu_mul_v4,group_layout=psum,row_"
     "align=8,recipe=ue8m0-1x32-32x32" CODES "32,out_scale=ue8m0,out_scale_layout=packed",
     GATED(40, 1, 16, 128, 1, 1, 1, 2, 4, 0)},
    /* most of D is V4's limits, whose codes share one error of rounding */
    {"moe_gemm:n=768,k=512,experts=5,tokens=96,topk=3,activation=silu_mul_v4,group_layout=psum,row_"
     "align=8,recipe=f32-1x128-128x128" CODES "128,out_scale=ue8m0,out_scale_layout=packed",
     GATED(40, 1, 16, 256, 2, 1, 1, 1, 4, 0)},
    /* tiles that CTAs share: of labels, among pairs, with A's scale behind B's, fewer than runs */
    {SHAPE "group_layout=contiguous,recipe=f32-1x128-128x128",
     PLAIN_TEMPLATE, SHARED(3, 8, 0, 128, 128, 2, 1, 1, 1, 4, 0) " staged=1" REST(56)},
    {SHAPE_FP4 "group_layout=masked,fill=1,recipe=f32-1x128-e2m1/ue8m0/1x32",
     FP4_IN(3, 24, 128, 1, 2, 1, 4, 0, 1, 0, 0)},
    {GATES "silu_mul,group_layout=masked,recipe=f32-1x128-128x128" CODES "128,out_scale=f32",
     GATED_TEMPLATE, SHARED(3, 1, 1, 32, 256, 2, 1, 1, 1, 3, 1) REST(56)},
    {GATES_FP4 "silu_mul_v4,group_layout=psum,row_align=8,recipe=f32-1x128-e2m1/ue8m0/1x32" CODES
               "128",
     FP4_GATED,
     "fold=0 block_m=24 block_n=256 row_groups=1 chunks=1 sets=2 joint=2 stages=3 pair=0 share=3 "
     "raster=1 residency=2"},
    {"moe_gemm:n=256,k=1664,experts=2,tokens=5,topk=1,group_layout=masked,recipe=f32-1x128-128x128",
     PLAIN_TEMPLATE, SHARED(13, 1, 1, 8, 128, 2, 1, 1, 1, 4, 0) " staged=0" REST(56)},
    /* sampled: 512 tiles, 22 of three members each */
    {"moe_gemm:m=64,n=2048,k=512,experts=32,tokens=64,topk=8,group_layout=masked,recipe=f32-1x128-"
     "128x128",
     PLAIN_TEMPLATE, SHARED(3, 1, 1, 16, 128, 2, 1, 1, 1, 6, 0) " staged=0" REST(56)},
};

START_TEST(a_config_is_proved)
{
    prove_fixture_hold("emu:h20", right[_i].problem, right[_i].template, right[_i].config, NULL);
}
END_TEST

enum {
    LABELS,
    PAIRED,
    ENDS,
    TURNED_LABELS,
    TURNED_COUNTS,
    TURNED_ENDS,
    MANY = 9,
    GATED_LABELS = 16,
    TURNED_CODES = 18,
    CODES_32,
    CODES_128,
    TURNED_128,
    PADDED = 25,
    SHARED_LABELS = 27,
    SHARED_LATE,
    SHARED_CODES
};
static const prove_mutant mutants[] = {
    {"the first expert's weights", LABELS, "w.expert = block.expert,", "w.expert = 0,"},
    {"the next expert's weights", TURNED_COUNTS, "w.expert = block.expert,",
     "w.expert = block.expert ^ 1,"},
    {"padding rows are stored", TURNED_LABELS, " && rows.labels[row] == rows.expert", ""},
    {"a row of the next expert is stored", ENDS, "return row < rows.end;",
     "return row <= rows.end;"},
    {"an expert's last row is left out", TURNED_COUNTS, "return row < rows.end;",
     "return row < rows.end - 1;"},
    {"the engine stores padding rows", LABELS, "kept = __all_sync(0xffffffffu, kept);",
     "kept = true;"},
    {"the engine stores the next expert's rows", TURNED_ENDS, "kept = first + count <= w.end;",
     "kept = true;"},
    {"a warpgroup goes past rows that it has", ENDS, "return !row_kept(rows_of(w),",
     "return row_kept(rows_of(w),"},
    {"a warpgroup without rows keeps the stage", PAIRED, "            release(ring.empty());\n",
     ""},
    {"experts begin where the last one ends", TURNED_ENDS,
     "(u32(before) + align - 1) / align * align", "u32(before)"},
    {"an expert without rows is taken for the next", MANY, "table[middle] > u32(index)",
     "table[middle] >= u32(index)"},
    {"the second block of an expert is its first", TURNED_COUNTS,
     "(index - i32(table[low])) * BlockRows", "0"},
    {"the last block is left out", LABELS, "                table[0] = count;",
     "                table[0] = count - 1;"},
    {"experts past the first 32 begin at 0", MANY, "table[expert] = count + upto - mine;",
     "table[expert] = upto - mine;"},
    {"scales of the wrong expert", TURNED_COUNTS, "kRows == C.swap ? w.expert : w.batch",
     "kRows == C.swap ? 0 : w.batch"},
    {"gates for ups", GATED_LABELS, "activate<C.activation>(gate[i], up[i])",
     "activate<C.activation>(up[i], gate[i])"},
    {"the gates' scales for the ups", GATED_LABELS, "at / S.half % 2 * from.jump", "0"},
    {"the gates' weights for the ups", TURNED_CODES, "row + i * T::kHalf + jump, matrix",
     "row + i * T::kHalf, matrix"},
    {"a warpgroup's second half is the next one's first", TURNED_CODES,
     "row + i * T::kHalf, matrix);\n        tensor_load(at + T::kHalf",
     "row + i * T::kSpan, matrix);\n        tensor_load(at + T::kHalf"},
    {"a strip's largest for a group's", TURNED_CODES, "largest + (first + i) * kLine",
     "largest + own * kLine"},
    {"largest magnitudes are read before they are there", TURNED_128,
     "        named_sync(8, T::kGroups * 128);\n#pragma unroll\n        for (int t = 0; t < "
     "kTiles; "
     "t++) {\n            const i32 own",
     "#pragma unroll\n        for (int t = 0; t < kTiles; t++) {\n            const i32 own"},
    {"codes of two pieces change places", CODES_32, "odd ? 0x7632 : 0x5410",
     "odd ? 0x5410 : 0x7632"},
    {"a lane's amax for a group's", CODES_128, "group_amax<4>(x, own)", "group_amax<1>(x, own)"},
    {"a group's scale beside its place", CODES_128, "store_scale_of(w, r, c / C.out_group, s)",
     "store_scale_of(w, r, c / C.out_group ^ 1, s)"},
    {"rows that nobody has are not filled", MANY - 1, "!expert_has<Layout>(of, row)", "false"},
    {"what fills a row's last word is left as it was", PADDED, "pad % 4 != 0; pad++",
     "false; pad++"},
    {"a turned tile's columns past D", SHARED_LATE, "if (r + 8 < n)", "if (r < n)"},
    {"a turned tile's rows past the expert", SHARED_LATE, "        if (row_kept(rows, c)) {",
     "        if (c < n) {"},
    {"a member's last block is left out", SHARED_LABELS,
     "w.blocks = min(to - begin, k_blocks)", "w.blocks = min(to - begin - 1, k_blocks)"},
    {"a tile's last member stores its own sums", SHARED_LATE, "if (w.first > 0) {",
     "if (false) {"},
    {"sums of a part are no products yet", SHARED_CODES,
     "w.first + w.blocks < schedule.k_blocks", "w.first < 0"},
};

START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, right[row].template, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], "emu:h20", right[row].problem, right[row].template,
                             right[row].config);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moe");

    if (!prove_fixture_start("prove_moe")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    const int result = suite_run_here("bench/prove_moe", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
