/* test_prove_wgmma.c - fp8_gemm/sm90_wgmma proved on the emulator: every axis and recipe by pinned
 * configs, races looked for, and mutants of its pipeline that the proof must refuse: one in two,
 * unless HONE_PROVE_ALL is set. */
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define TEMPLATE "fp8_gemm/sm90_wgmma"
#define ANY(...) ANY_IN(8, __VA_ARGS__)
#define ANY_IN(raster, swap, m, n, rows, columns, chunks, sets, queue, stages, pair, split, share, \
               loader, staged, idle)                                                               \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " queue=" #queue " stages=" #stages " pair=" #pair           \
    " split_k=" #split " share=" #share " raster=" #raster " staged=" #staged                      \
    " loader_registers=" #loader " residency=1 idle=" #idle
#define CONFIG(swap, m, n, rows, columns, chunks, sets, stages, pair, split, staged, idle)         \
    ANY(swap, m, n, rows, columns, chunks, sets, 1, stages, pair, split, 1, 40, staged, idle)
#define SHARED(swap, m, n, rows, columns, chunks, sets, stages, pair, share, loader, staged)       \
    ANY(swap, m, n, rows, columns, chunks, sets, 1, stages, pair, 1, share, loader, staged, 1)

/* m, n and k with tails: n a multiple of 8, k one of 16 */
#define SPREAD(sizes) "fp8_gemm:" sizes ",k=384,recipe=f32-1x128-128x128"
#define SHAPE         "fp8_gemm:m=200,n=328,k=528,recipe="
static const struct {
    const char *problem, *config;
} right[] = {
    {SHAPE "f32-1x128-128x128", CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {SHAPE "f32-1x128-128x128", CONFIG(0, 128, 96, 2, 1, 1, 1, 4, 1, 1, 1, 1)},
    {SHAPE "f32-1x128-128x128", CONFIG(0, 128, 96, 2, 1, 1, 1, 4, 2, 1, 1, 1)},
    {SHAPE "f32-1x128-128x128", ANY_IN(1, 0, 256, 128, 2, 1, 1, 1, 1, 3, 0, 1, 1, 56, 0, 1)},
    {SHAPE "f32-1x128-128x128", ANY_IN(16, 0, 192, 96, 3, 1, 1, 1, 1, 3, 0, 1, 1, 56, 0, 0)},
    {SHAPE "f32-1x128-128x128,batch=2,batch_layout=inner",
     CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {SHAPE "f32-1x128-128x128", ANY(1, 16, 128, 2, 1, 1, 1, 1, 6, 0, 1, 1, 56, 0, 0)},
    {SHAPE "f32-1x128-128x128", CONFIG(1, 64, 64, 1, 1, 1, 1, 6, 2, 1, 1, 1)},
    {SHAPE "f32-1x128-1x128,out=f32,accumulate=1",
     ANY(0, 128, 128, 2, 1, 1, 1, 1, 4, 0, 1, 1, 56, 1, 1)},
    {"fp8_gemm:m=70,n=328,k=1040,recipe=f32-1x128-1x128,out=f32,accumulate=1",
     ANY(0, 128, 128, 2, 1, 1, 1, 1, 4, 0, 2, 1, 56, 0, 0)},
    {"fp8_gemm:m=7,n=328,k=2064,recipe=f32-1x128-128x128,accumulate=1",
     ANY(1, 8, 128, 2, 1, 1, 1, 1, 8, 0, 4, 1, 56, 0, 0)},
    {SHAPE "ue8m0-1x32-32x32", ANY(0, 128, 96, 2, 1, 1, 2, 1, 4, 0, 1, 1, 56, 1, 1)},
    {SHAPE "f32-1x32-32x32", SHARED(0, 128, 192, 2, 1, 2, 2, 3, 0, 1, 56, 1)},
    {SHAPE "ue8m0-1x32-32x32", ANY(0, 64, 256, 1, 2, 1, 2, 1, 3, 0, 1, 1, 56, 1, 1)},
    {SHAPE "f32-1x32-128x128", SHARED(0, 128, 128, 2, 1, 1, 2, 4, 0, 1, 56, 0)},
    {SHAPE "f32-1x128-32x32", ANY_IN(1, 0, 128, 128, 2, 1, 1, 2, 1, 4, 0, 1, 1, 56, 1, 1)},
    {SHAPE "ue8m0-1x32-1x32,out=f32", CONFIG(1, 64, 128, 2, 1, 1, 2, 3, 0, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-1x32", CONFIG(1, 24, 64, 1, 1, 1, 2, 3, 0, 1, 0, 1)},
    {SHAPE "ue8m0-1x128-1x32,a_scale_layout=row,b_scale_layout=col",
     ANY_IN(16, 1, 32, 128, 2, 1, 1, 1, 1, 4, 0, 1, 1, 56, 0, 0)},
    {"fp8_gemm:m=20,n=136,k=1056,batch=3,batch_layout=inner,recipe=ue8m0-1x32-1x32",
     CONFIG(0, 64, 128, 1, 1, 1, 1, 4, 0, 2, 0, 0)},
    /* sampled: a persistent grid and pairs of CTAs */
    {"fp8_gemm:m=1024,n=2048,k=256,recipe=f32-1x128-128x128",
     CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {"fp8_gemm:m=1024,n=2048,k=256,recipe=f32-1x128-128x128,out=f32,accumulate=1",
     CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 1, 1, 1, 1)},
    {"fp8_gemm:m=16,n=8192,k=1024,recipe=ue8m0-1x32-32x32",
     CONFIG(1, 16, 128, 2, 1, 1, 2, 6, 0, 2, 0, 0)},
    /* spread: three tiles a group. 256 of them leave two groups with one less, 272 one, 255 none.
       The ring of four stages comes around twice in three tiles of three K blocks. */
    {SPREAD("m=2048,n=2048"), CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {SPREAD("m=2048,n=2176"), CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {SPREAD("m=2176,n=1920"), CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1)},
    {SPREAD("m=2041,n=4080"), CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 1, 1, 0, 1)},
    /* two products queued, of all that a set may be */
    {SHAPE "ue8m0-1x32-32x32", ANY(0, 128, 96, 2, 1, 1, 2, 2, 4, 0, 1, 1, 56, 1, 1)},
    {SHAPE "f32-1x128-128x128", ANY(0, 128, 192, 2, 1, 2, 2, 2, 3, 1, 1, 1, 40, 1, 1)},
    {SHAPE "ue8m0-1x32-1x32", ANY(1, 24, 64, 1, 1, 1, 2, 2, 3, 0, 1, 1, 40, 0, 1)},
    /* tiles that CTAs share: one among three, three among twelve, among pairs, many among few */
    {SHAPE "f32-1x128-128x128", SHARED(0, 128, 128, 2, 1, 1, 1, 4, 0, 3, 56, 1)},
    {"fp8_gemm:m=70,n=280,k=2064,recipe=f32-1x128-128x128",
     SHARED(0, 64, 64, 1, 1, 1, 1, 4, 0, 12, 40, 1)},
    {"fp8_gemm:m=200,n=328,k=656,recipe=ue8m0-1x32-32x32,out=f32,accumulate=1",
     SHARED(0, 128, 128, 2, 1, 1, 2, 3, 1, 6, 56, 0)},
    {"fp8_gemm:m=16,n=1032,k=2064,recipe=ue8m0-1x32-32x32",
     SHARED(1, 16, 128, 2, 1, 1, 2, 4, 2, 3, 56, 0)},
    {"fp8_gemm:m=2048,n=2112,k=384,recipe=f32-1x32-128x128",
     SHARED(0, 128, 192, 2, 1, 2, 2, 4, 1, 3, 56, 0)},
    /* four scales by one access: fp32 and e8m0 rows, words of batches side by side; k of 12 groups
     */
    {"fp8_gemm:m=70,n=168,k=384,recipe=f32-1x32-32x32,a_scale_layout=row,batch=2",
     SHARED(0, 128, 128, 2, 1, 1, 2, 4, 0, 1, 56, 0)},
    {"fp8_gemm:m=70,n=168,k=384,recipe=ue8m0-1x32-1x32,a_scale_layout=row,b_scale_layout=row",
     SHARED(1, 64, 128, 2, 1, 1, 2, 3, 0, 1, 56, 0)},
    {"fp8_gemm:m=70,n=168,k=384,batch=3,batch_layout=inner,recipe=ue8m0-1x32-32x32",
     CONFIG(0, 64, 128, 1, 1, 1, 1, 4, 0, 1, 0, 0)},
    {"fp8_gemm:m=70,n=168,k=384,batch=3,batch_layout=inner,recipe=f32-1x32-128x128,a_scale_layout="
     "row",
     SHARED(0, 64, 128, 1, 1, 1, 1, 4, 0, 1, 40, 0)},
};

START_TEST(a_config_is_proved)
{
    prove_fixture_hold("emu:h20", right[_i].problem, TEMPLATE, right[_i].config, NULL);
}
END_TEST

#define PLAIN    0
#define PAIRED   1
#define SPLIT    9
#define TURNED   6
#define TWO_SETS 11
#define QUEUED   27
#define SHARES   31
#define SHARES_2 32
#define SPREAD_2 23 /* so many groups make one tile less */
#define SPREAD_1 24
#define SPREAD_0 25
#define THIRD    "i == schedule.first() + 2 * schedule.step()"
static const prove_mutant mutants[] = {
    {"a stage is handed back before it is read", TWO_SETS, "        scales.template load<",
     "        release(empty);\n        scales.template load<"},
    {"a word's padding counts as scales", TWO_SETS, "[0] &= (1u << 8 * left) - 1;", "[0] &= ~0u;"},
    {"the lower row has the upper row's scales", TWO_SETS, "At + 8 * kStride * 4", "At"},
    {"products are not waited for", PLAIN, "wgmma_wait<0>();", "wgmma_wait<1>();"},
    {"too few bytes are expected", PLAIN, "T::kRowBytes + T::kColumnBytes);",
     "T::kRowBytes + T::kColumnBytes - 16);"},
    {"a stage is filled without asking", PLAIN, "barrier_wait<C.pair != 0>(ring.empty(),",
     "barrier_wait<C.pair != 0>(ring.full(),"},
    {"the scales' warps do not arrive", PLAIN, "barrier_init(full, 1 + 3);",
     "barrier_init(full, 1 + 2);"},
    {"staged sums are sent before they are seen", PLAIN, "        engine_fence();\n", ""},
    {"the other row's scale", PLAIN, "fmaf(lower * left", "fmaf(upper * left"},
    {"the scales of the next block", PLAIN, "reads.fetch(a, w.first + a);",
     "reads.fetch(a, w.first + a + 1);"},
    {"both CTAs load the same half", PAIRED, "w.column + half * (T::kColumns / 2)", "w.column"},
    {"a pair's stage is handed back at home only", PAIRED, "if (lane < 2) {", "if (lane < 1) {"},
    {"a part is added twice", SPLIT, "cluster_load(mine + i * T::kGroups * 128 * 16, r)",
     "cluster_load(mine + i * T::kGroups * 128 * 16, 0)"},
    {"parts are read before they are there", SPLIT, "    cluster_sync();\n    const i32 rank",
     "    const i32 rank"},
    {"a queued product is not waited for", QUEUED, "wgmma_wait<1>();", "wgmma_wait<2>();"},
    {"a queued product overwrites what is added up", QUEUED, "start_unit<C>(part[(u + 1) % 2], a",
     "start_unit<C>(part[u % 2], a"},
    {"a shared tile's sums are read before they are there", SHARES,
     "                flag_wait(flag(cta));\n", ""},
    {"the flag is up before the sums are there", SHARES,
     "        named_sync(1 + threadIdx.x / 128, 128);\n        if (threadIdx.x % 128 == 0) {\n"
     "            flag_raise(",
     "        if (threadIdx.x % 128 == 0) {\n            flag_raise("},
    {"the sums of a tile's end are given away too", SHARES,
     "w.first + w.blocks < schedule.k_blocks", "w.first + w.blocks <= schedule.k_blocks"},
    {"only the nearest member's sums are added", SHARES, "before > begin; who--",
     "before == schedule.from && before > begin; who--"},
    {"a member begins a block late", SHARES, "s.from = s.begin_of(s.member);",
     "s.from = s.begin_of(s.member) + (s.member == 3);"},
    {"the other CTA's sums of a pair", SHARES_2, "(schedule.member - who) * T::kCluster",
     "(schedule.member - who)"},
    {"a turned tile's row bound", TURNED, "if (r < n && row_kept(rows, c))",
     "if (row_kept(rows, r) && c < n)"},
    {"the last tile is left out", SPREAD_2, ".tiles = tiles_m * tiles_n * batch,",
     ".tiles = tiles_m * tiles_n * batch - 1,"},
    {"the last tile is left out", SPREAD_1, ".tiles = tiles_m * tiles_n * batch,",
     ".tiles = tiles_m * tiles_n * batch - 1,"},
    {"the last tile is left out", SPREAD_0, ".tiles = tiles_m * tiles_n * batch,",
     ".tiles = tiles_m * tiles_n * batch - 1,"},
    {"a tile past the last one", SPREAD_2, ".tiles = tiles_m * tiles_n * batch,",
     ".tiles = tiles_m * tiles_n * batch + 1,"},
    {"a tile past the last one", SPREAD_0, ".tiles = tiles_m * tiles_n * batch,",
     ".tiles = tiles_m * tiles_n * batch + 1,"},
    {"the parity does not come back", SPREAD_1, "parity ^= 1;", "parity = 1;"},
    {"a third tile in the wrong phase", SPREAD_1, "        line.tile(sum, w.blocks);",
     "        if (" THIRD ") { line.ring.parity ^= 1; }\n        line.tile(sum, w.blocks);"},
    {"a third tile is not stored", SPREAD_1, "            out.all(",
     "            if (!(" THIRD ")) out.all("},
    {"a third tile is put where the second is", SPREAD_1, "const Work w = schedule.at(i);",
     "const Work w = schedule.at(" THIRD " ? i - schedule.step() : i);"},
    {"a third tile has the second's scales", SPREAD_1, "kRows ? w.row : w.column",
     "kRows ? schedule.at(" THIRD " ? i - schedule.step() : i).row : w.column"},
    {"staged sums are overwritten while they are read", SPREAD_1, "bulk_wait_read();", ";"},
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

int main(void)
{
    TCase *tests = tcase_create("wgmma");

    if (!prove_fixture_start("prove_wgmma")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    const int result = suite_run_here("bench/prove_wgmma", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
