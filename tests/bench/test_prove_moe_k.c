/* test_prove_moe_k.c - moe_gemm's weight gradient, on Hopper and by mma.sync, proved on the
 * emulator: few and many experts, without K or with all of it, by pinned configs, and mutants that
 * the proof must refuse. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define TEMPLATE      "moe_gemm/sm90_wgmma_k"
#define K_CONFIG(...) K_CONFIG_IN(1, 8, __VA_ARGS__)
#define K_CONFIG_IN(queue, raster, m, n, rows, columns, chunks, sets, stages, pair, staged,        \
                    loader, residency)                                                             \
    "block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns                   \
    " chunks=" #chunks " sets=" #sets " queue=" #queue " stages=" #stages " pair=" #pair           \
    " raster=" #raster " staged=" #staged " loader_registers=" #loader " residency=" #residency    \
    " idle=1"
#define GRADIENT "moe_gemm:group_layout=grouped_k,out=f32,"
#define BY_128   "recipe=f32-1x128-1x128,"
#define BY_32    "recipe=f32-1x32-1x32,"
#define ADD      "accumulate=1,"

/* `tokens` asks for nothing here. Inputs give experts, kind after kind: none, 1 or 2 units of K and
 * the rest of it; K by Zipf; evenly drawn K; the same K, told by ks that are below 0, no multiples
 * or beyond the end; all of it to one. */
static const struct {
    const char *problem, *config;
} right[] = {
    /* more tiles than clusters: CTAs go from expert to expert */
    {GRADIENT BY_128 "m=72,n=72,k=2560,experts=33,tokens=8,row_align=1",
     K_CONFIG_IN(1, 1, 64, 16, 1, 1, 1, 1, 4, 0, 0, 40, 1)},
    {GRADIENT BY_128 ADD "m=136,n=72,k=2560,experts=33,tokens=8,row_align=1",
     K_CONFIG(64, 48, 1, 1, 1, 1, 2, 0, 1, 48, 2)},
    {GRADIENT BY_128 "m=200,n=200,k=1024,experts=4,tokens=8,row_align=1",
     K_CONFIG(128, 128, 2, 1, 1, 1, 4, 1, 1, 48, 1)},
    {GRADIENT BY_128 ADD "m=200,n=200,k=1024,experts=4,tokens=8,row_align=1",
     K_CONFIG(128, 64, 2, 1, 1, 1, 3, 2, 0, 48, 1)},
    {GRADIENT BY_128 "m=72,n=72,k=128,experts=1,tokens=8",
     K_CONFIG(64, 64, 1, 1, 1, 1, 3, 0, 1, 40, 1)},
    {GRADIENT BY_128 ADD "m=192,n=264,k=1024,experts=1,tokens=8,a_scale_layout=row,"
                         "b_scale_layout=col",
     K_CONFIG(128, 128, 1, 2, 1, 1, 5, 0, 0, 48, 1)},
    {GRADIENT BY_128 ADD "m=192,n=136,k=1024,experts=7,tokens=8,a_scale_layout=col",
     K_CONFIG(192, 128, 3, 1, 1, 1, 4, 0, 0, 48, 1)},
    {GRADIENT BY_128 "m=72,n=264,k=1152,experts=9,tokens=8,row_align=1,b_scale_layout=row",
     K_CONFIG_IN(2, 16, 64, 128, 1, 1, 2, 2, 4, 2, 1, 40, 1)},
    /* an expert's K ends within a stage, and its scales begin anywhere */
    {GRADIENT BY_32 "m=72,n=72,k=1376,experts=33,tokens=8,row_align=1",
     K_CONFIG(64, 32, 1, 1, 1, 1, 4, 0, 0, 48, 2)},
    {GRADIENT BY_32 ADD "m=72,n=136,k=1056,experts=5,tokens=8,row_align=1,a_scale_layout=row",
     K_CONFIG_IN(2, 1, 64, 64, 1, 1, 1, 2, 3, 1, 1, 40, 1)},
    {GRADIENT BY_128 "m=64,n=24,k=8192,experts=512,tokens=8,row_align=1",
     K_CONFIG(64, 16, 1, 1, 1, 1, 4, 0, 0, 40, 1)},
};

START_TEST(a_config_is_proved)
{
    prove_fixture_hold("emu:h20", right[_i].problem, TEMPLATE, right[_i].config, NULL);
}
END_TEST

enum { MANY, MANY_ADD, PAIRED, PAIRED_ADD, BY_ROWS = 7, MANY_32, FEW_32, MOST };
static const prove_mutant mutants[] = {
    {"maps of the first expert for all", MANY, "w.batch == expert || w.groups == 0",
     "expert >= 0 || w.groups == 0"},
    {"A's map is not turned to the expert", PAIRED,
     "tensor_map_rows(patterns, a + before * m, u32(w.groups) * C.a_gran_k);", ""},
    {"rows as long as all of K", PAIRED, "\"l\"(u64(row))", "\"l\"(u64(row) * 2)"},
    {"rows end where the last expert's did", FEW_32,
     "    asm volatile(\"tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;\" "
     "::\"r\"(map),\n                 \"r\"(row)\n                 : \"memory\");\n",
     ""},
    {"the expert's first row is the first of all", PAIRED_ADD, "b + before * n", "b"},
    {"the next map is used before it is acquired", MANY, "tensor_map_acquire(places + place * 2);",
     ""},
    {"B's map is not acquired", MANY, "tensor_map_acquire(places + place * 2 + 1);", ""},
    {"the maps of the expert before", MANY, "return places + place * 2 + is_b;",
     "return places + (place > 0 ? place - 1 : 0) * 2 + is_b;"},
    {"all CTAs make maps in one place", MANY, "i64(blockIdx.x) * (ExpertMaps<C>::kPlaces * 2)",
     "0"},
    {"the first expert's scales", MANY, "T::kGroupedK ? w.group : matrix",
     "T::kGroupedK ? 0 : matrix"},
    {"the scales behind", BY_ROWS, "T::kGroupedK ? w.group : matrix",
     "T::kGroupedK ? w.group + 1 : matrix"},
    {"scales of the next expert for K that is not there", MANY_32, "reads.groups = w.groups;",
     "reads.groups = w.groups + 4;"},
    {"another expert's D", PAIRED, "w.batch = of.expert, w.expert", "w.batch = b, w.expert"},
    {"the last block is left out", PAIRED, "w.blocks = ceil_div(w.groups * C.a_gran_k, 128);",
     "w.blocks = max(ceil_div(w.groups * C.a_gran_k, 128) - 1, 0);"},
    {"a block of less than 128 is left out", MANY_32,
     "w.blocks = ceil_div(w.groups * C.a_gran_k, 128);", "w.blocks = w.groups * C.a_gran_k / 128;"},
    {"one block too many, of the next expert", MANY_ADD,
     "w.blocks = ceil_div(w.groups * C.a_gran_k, 128);",
     "w.groups += w.groups > 0 ? 1 : 0, w.blocks = w.groups;"},
    {"what D holds is dropped", MANY_ADD, "tensor_add(d, from", "tensor_store(d, from"},
    {"what D holds is dropped by threads", PAIRED_ADD, "output_tile<16, C.accumulate>",
     "output_tile<16, false>"},
    {"D of an expert without K is not written", MANY,
     "return All ? experts :", "return false ? experts :"},
    {"ks below 0 take from those before", MOST, "max(of.groups[expert], 0) / Unit",
     "of.groups[expert] / Unit"},
    {"ks are not held to what there is", MANY_ADD, "table[expert + 1]) - first};",
     "table[expert + 1]) - first + (table[expert + 1] == table[experts] ? 1 : 0)};"},
    {"sums of ks wrap", MANY, "lane >= d ? min(upto + left, units) : upto",
     "lane >= d ? upto + left * 128 : upto"},
    {"experts past the first 32 begin at 0", MANY, "upto = min(end + upto, units);", ""},
    {"of two experts with as much, both have one place", MANY, "other == own && i < e",
     "other == own && false"},
    {"the order is read before it is there", MOST, "o.groups, o.k);\n        __syncthreads();",
     "o.groups, o.k);"},
};

START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], "emu:h20", right[row].problem, TEMPLATE,
                             right[row].config);
    }
}
END_TEST

/* ---- By mma.sync ------------------------------------------------------------------------------
 */

#define SYNC_TEMPLATE "moe_gemm/mma_sync_k"
#define SYNC_CONFIG(swap, m, n, k, wm, wn, wk, stages, promote, raster, residency)                 \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_m=" #wm " warps_n=" #wn     \
    " warps_k=" #wk " stages=" #stages " promote=" #promote " raster=" #raster                     \
    " residency=" #residency
static const struct {
    const char *device, *problem, *config;
} by_sync[] = {
    {"emu:rtx4090", GRADIENT BY_128 "m=72,n=72,k=2560,experts=33,tokens=8,row_align=1",
     SYNC_CONFIG(0, 32, 32, 128, 2, 2, 1, 3, 128, 8, 1)},
    {"emu:rtx5090", GRADIENT BY_128 ADD "m=136,n=72,k=1280,experts=7,tokens=8,row_align=1",
     SYNC_CONFIG(0, 64, 64, 128, 2, 2, 1, 2, 64, 1, 1)},
    {"emu:rtx4090", GRADIENT BY_32 "m=72,n=72,k=1376,experts=33,tokens=8,row_align=1",
     SYNC_CONFIG(0, 16, 32, 64, 1, 2, 1, 4, 32, 8, 2)},
    {"emu:rtx5090",
     GRADIENT BY_32 ADD "m=72,n=136,k=1056,experts=5,tokens=8,row_align=1,"
                        "a_scale_layout=row,b_scale_layout=col",
     SYNC_CONFIG(1, 16, 64, 128, 1, 2, 2, 3, 32, 1, 1)},
    {"emu:rtx4090", GRADIENT BY_128 "m=16,n=24,k=8192,experts=512,tokens=8,row_align=1",
     SYNC_CONFIG(0, 16, 16, 256, 1, 1, 2, 3, 128, 1, 3)},
    {"emu:h20", GRADIENT BY_128 "m=24,n=40,k=0,experts=3,tokens=8",
     SYNC_CONFIG(0, 16, 32, 128, 1, 2, 1, 3, 128, 1, 1)},
};

START_TEST(a_config_by_mma_sync_is_proved)
{
    if (!prove_fixture_leaves(_i, 2, SYNC_TEMPLATE, NULL)) {
        prove_fixture_hold(by_sync[_i].device, by_sync[_i].problem, SYNC_TEMPLATE,
                           by_sync[_i].config, NULL);
    }
}
END_TEST

static const prove_mutant sync_mutants[] = {
    {"the first expert's A", 0, "before * o.m", "0 * o.m"},
    {"another expert's B", 1, "before * o.n", "(before + C.b_gran_k) * o.n"},
    {"the first expert's scales", 0,
     ".first_group = of.first,\n                     .first_row = m0",
     ".first_group = 0,\n                     .first_row = m0"},
    {"the next expert's scales for K that is not there", 2,
     ".rows = o.n,\n                     .groups = of.count}",
     ".rows = o.n,\n                     .groups = of.count + 4}"},
    {"a block of less than a whole one is left out", 2, "ceil_div(k, C.block_k)", "k / C.block_k"},
    {"another expert's D", 1, "i64(of.expert) * m * n", "i64(tile / each) * m * n"},
    {"D of an expert without K is not written", 0,
     "return All ? experts :", "return false ? experts :"},
    {"what D holds is dropped", 3, "output_tile_turned<C.align, C.accumulate>",
     "output_tile_turned<C.align, false>"},
    {"the order is read before it is there", 4, "    __syncthreads(); // the order",
     "    // the order"},
    {"the stages are overwritten while they are read", 0,
     "        __syncthreads(); // all have read", "        // all have read"},
};

START_TEST(a_mutant_by_mma_sync_is_refused)
{
    const int row = sync_mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, SYNC_TEMPLATE, sync_mutants[_i].old)) {
        prove_fixture_refuse(&sync_mutants[_i], by_sync[row].device, by_sync[row].problem,
                             SYNC_TEMPLATE, by_sync[row].config);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("moe_k");

    if (!prove_fixture_start("prove_moe_k")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    tcase_add_loop_test(tests, a_config_by_mma_sync_is_proved, 0, ARRAY_LEN(by_sync));
    tcase_add_loop_test(tests, a_mutant_by_mma_sync_is_refused, 0, ARRAY_LEN(sync_mutants));
    const int result = suite_run_here("bench/prove_moe_k", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
