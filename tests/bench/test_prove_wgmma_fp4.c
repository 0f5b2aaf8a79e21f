/* test_prove_wgmma_fp4.c - fp8_gemm/sm90_wgmma_fp4 proved on the emulator: every axis and recipe by
 * pinned configs, and mutants of what it does to B's codes that the proof must refuse. */
#include "tests/bench/corner.h"
#include "tests/support/suite.h"

#include "core/integer.h"
#include "core/problem.h"

#include <check.h>
#include <string.h>

#define TEMPLATE "fp8_gemm/sm90_wgmma_fp4"
#define CONFIG(fold, m, n, rows, chunks, sets, joint, stages, pair, split, staged, residency,      \
               idle)                                                                               \
    "fold=" #fold " block_m=" #m " block_n=" #n " row_groups=" #rows " chunks=" #chunks            \
    " sets=" #sets " joint=" #joint " stages=" #stages " pair=" #pair " split_k=" #split           \
    " raster=8 staged=" #staged " residency=" #residency " idle=" #idle

/* m, n and k with tails: n a multiple of 8, k one of 32. Among the kinds of inputs that a proof
 * goes through are scales of B near enough to be shared, and scales 2^20 apart. */
#define SHAPE "fp8_gemm:m=100,n=328,k=544,recipe="
#define USUAL "f32-1x128-e2m1/ue8m0/1x32"
static const struct {
    const char *problem, *config;
} right[] = {
    {SHAPE USUAL, CONFIG(1, 16, 128, 2, 1, 1, 1, 4, 0, 1, 1, 1, 1)},
    {SHAPE USUAL, CONFIG(0, 16, 128, 2, 1, 2, 2, 4, 0, 1, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-e2m1/1x32", CONFIG(0, 48, 192, 3, 1, 2, 1, 4, 0, 1, 1, 1, 1)},
    {"fp8_gemm:m=7,n=328,k=2080,recipe=" USUAL ",accumulate=1",
     CONFIG(1, 8, 128, 1, 1, 1, 1, 4, 0, 4, 0, 1, 0)},
    {SHAPE USUAL, CONFIG(1, 32, 64, 1, 1, 1, 1, 6, 1, 1, 0, 1, 0)},
    {SHAPE USUAL, CONFIG(1, 24, 256, 4, 1, 1, 1, 3, 0, 1, 0, 1, 1)},
    {SHAPE USUAL, CONFIG(1, 16, 128, 2, 1, 1, 1, 3, 0, 1, 0, 2, 0)},
    {SHAPE USUAL ",out=f32,accumulate=1", CONFIG(1, 64, 128, 1, 1, 1, 1, 3, 1, 1, 1, 1, 1)},
    {SHAPE USUAL ",out=f32", CONFIG(1, 256, 64, 1, 2, 1, 1, 3, 0, 1, 0, 1, 1)},
    {SHAPE "f32-1x128-e2m1/ue8m0/32x32", CONFIG(1, 96, 256, 2, 1, 1, 1, 3, 0, 1, 0, 1, 1)},
    {SHAPE "ue8m0-1x128-e2m1/32x32", CONFIG(1, 16, 64, 1, 1, 1, 1, 12, 0, 1, 1, 1, 1)},
    {SHAPE "ue8m0-1x128-e2m1/1x32,a_scale_layout=row,b_scale_layout=row",
     CONFIG(1, 16, 256, 2, 1, 1, 1, 4, 0, 1, 1, 1, 0)},
    {SHAPE "ue8m0-1x128-e2m1/1x32,a_scale_layout=col,b_scale_layout=col",
     CONFIG(1, 16, 128, 2, 1, 1, 1, 3, 0, 1, 1, 2, 1)},
    {SHAPE "f32-1x128-e2m1/f32/1x32,a_scale_layout=tma,b_scale_layout=tma",
     CONFIG(0, 8, 64, 1, 1, 1, 4, 4, 0, 1, 0, 2, 1)},
    {SHAPE "f32-1x32-e2m1/f32/1x32,a_scale_layout=row,b_scale_layout=col",
     CONFIG(0, 64, 128, 2, 1, 1, 1, 3, 0, 1, 1, 1, 1)},
    {SHAPE "f32-1x128-e2m1/1x32,b_scale_layout=row",
     CONFIG(0, 16, 256, 2, 1, 2, 2, 4, 0, 1, 0, 1, 1)},
    {SHAPE "f32-1x128-e2m1/ue8m0/1x128", CONFIG(0, 16, 128, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1)},
    {SHAPE "f32-1x32-e2m1/128x128", CONFIG(0, 128, 128, 2, 2, 2, 1, 3, 0, 1, 1, 1, 1)},
    {SHAPE "ue8m0-1x32-e2m1/32x32,out=f32,accumulate=1",
     CONFIG(0, 128, 128, 2, 2, 1, 1, 3, 0, 1, 1, 1, 1)},
    {"fp8_gemm:m=20,n=136,k=1056,batch=3,batch_layout=inner,recipe=" USUAL,
     CONFIG(1, 24, 64, 1, 1, 1, 1, 4, 0, 2, 0, 1, 0)},
    {"fp8_gemm:m=20,n=136,k=416,batch=3,recipe=ue8m0-1x32-e2m1/1x32",
     CONFIG(0, 32, 192, 1, 1, 1, 2, 4, 0, 1, 0, 1, 1)},
    {"fp8_gemm:m=100,n=328,k=544,order=fixed,recipe=" USUAL,
     CONFIG(0, 16, 128, 2, 1, 2, 2, 4, 0, 1, 0, 1, 1)},
    /* three and four tiles a warpgroup, K in parts */
    {SHAPE "ue8m0-1x32-e2m1/1x32", CONFIG(0, 8, 256, 1, 1, 1, 4, 3, 0, 1, 0, 3, 1)},
    {SHAPE USUAL, CONFIG(0, 24, 192, 1, 1, 2, 1, 3, 0, 1, 0, 1, 0)},
    {"fp8_gemm:m=7,n=328,k=2080,recipe=ue8m0-1x32-e2m1/1x32,accumulate=1",
     CONFIG(0, 8, 128, 1, 1, 2, 4, 4, 0, 4, 0, 1, 0)},
    /* sampled: seven CTAs that share K, a persistent grid */
    {"fp8_gemm:m=16,n=4096,k=4096,recipe=" USUAL, CONFIG(1, 16, 128, 2, 1, 1, 1, 3, 0, 7, 0, 2, 0)},
    {"fp8_gemm:m=512,n=2048,k=512,recipe=" USUAL,
     CONFIG(1, 128, 128, 2, 1, 1, 1, 3, 1, 1, 1, 1, 1)},
};

START_TEST(a_config_is_proved)
{
    prove_fixture_hold("emu:h20", right[_i].problem, TEMPLATE, right[_i].config, NULL);
}
END_TEST

#define FOLDED   0
#define TWO_SETS 1
#define PER_32   2
#define SPLIT    3
#define TILES    22
static const prove_mutant mutants[] = {
    {"codes of the wrong half of a byte", FOLDED, "\"r\"(codes & 0x7777u)",
     "\"r\"((codes << 4 & 0xf0f0u | codes >> 4 & 0x0f0fu) & 0x7777u)"},
    {"all codes are negative", FOLDED, "%1, 0xfffffffe, %2", "%1, 0, %2"},
    {"signs of the neighbour", FOLDED, "\"r\"(positive), \"r\"(codes)",
     "\"r\"(positive), \"r\"(codes >> 4)"},
    {"4 and 6 are each other", FOLDED, "0x10100c08u", "0x0c140c08u"},
    {"the upper half of a row's codes first", FOLDED, "codes<8>(at), above", "codes<0>(at), above"},
    {"rows without their swizzle", FOLDED, "swizzled<64>(row, lane % 4 * 2)",
     "(row * 64 + lane % 4 * 2)"},
    {"a fold beyond what is exact", FOLDED, "most - least <= kMostShift - kLeastShift",
     "most - least <= 41"},
    {"a fold by one step beyond the normal codes", FOLDED, "constexpr i32 kLeastShift = -5",
     "constexpr i32 kLeastShift = -9"},
    {"the shared scale is the largest", FOLDED, "return max(most - kMostShift, 0);",
     "return max(most, 0);"},
    {"rows far apart do not say so", FOLDED, "? __any_sync(0xffffffffu, apart) : apart;",
     "? __any_sync(0xffffffffu, false) : apart;"},
    {"the other row's table", FOLDED, "codes<kLower>(at), below", "codes<kLower>(at), above"},
    {"the table of the next group", FOLDED, "const u32 above = t.upper[step]",
     "const u32 above = t.upper[(step + 1) % 4]"},
    {"groups past K count for the shared scale", FOLDED, "if (present < 4) {",
     "if (present < 0) {"},
    {"a stage is handed back before its codes are read", FOLDED, "            folded_stage<C>(now,",
     "            line.release(line.ring.empty());\n            folded_stage<C>(now,"},
    {"too few bytes are expected", FOLDED, "T::kRowBytes + T::kColumnBytes);",
     "T::kRowBytes + T::kColumnBytes - 16);"},
    {"products of tables are not waited for", FOLDED,
     "wgmma_wait<0>();\n            wgmma_hold(part)",
     "wgmma_wait<1>();\n            wgmma_hold(part)"},
    {"no fence before a product of tables", FOLDED,
     "                wgmma_fence();\n                if (s == 0)", "                if (s == 0)"},
    {"K is loaded by codes, not by bytes", FOLDED, "C.b_e2m1 ? k / 2 : k", "k"},
    {"parts are read before they are there", SPLIT, "    cluster_sync();\n    const i32 rank",
     "    const i32 rank"},
    /* codes that are moved */
    {"even codes for odd ones", TWO_SETS, "e2m1x8_move(upper[step], a[0], a[2]);",
     "e2m1x8_move(upper[step], a[2], a[0]);"},
    {"the upper row for the lower one", TWO_SETS, "read<8 * 64>(w.lower", "read<0>(w.lower"},
    {"even codes lose their signs", TWO_SETS, "0x9c9c9c9c", "0x1c1c1c1c"},
    {"signs of even codes are not carried up", TWO_SETS, "x, 4, 0x60606060", "x, 4, 0x40404040"},
    {"odd codes lose their signs", TWO_SETS, "%1, 0x80808080, x, 0xea", "%1, 0, x, 0xea"},
    {"1.5 is 1 and 0.5 nothing", TWO_SETS, "and.b32 x, x, 0x1c1c1c1c", "and.b32 x, x, 0x18181818"},
    {"half of what was multiplied", TWO_SETS, "kMovedUnit = 64.0f", "kMovedUnit = 32.0f"},
    {"words without their swizzle", TWO_SETS,
     "swizzled<64>(m.row + warp * 16 + lane % 8, lane / 8 * 16)",
     "((m.row + warp * 16 + lane % 8) * 64 + lane / 8 * 16)"},
    {"the first tile's words for all", TILES, "at + tile * 64 * 64);\n    RowWords::read<8",
     "at);\n    RowWords::read<8"},
    {"columns as they came", TWO_SETS, "sort_columns<C, Threads>(ring, thread);", ""},
    {"columns are sorted before they are there", TWO_SETS,
     "    barrier_wait<false>(ring.landed(), ring.parity);\n", ""},
    {"sorted columns are not fenced", TWO_SETS, "    engine_fence();\n}\n", "}\n"},
    {"even columns twice", TWO_SETS, "__byte_perm(b.z, b.w, 0x7531)",
     "__byte_perm(b.z, b.w, 0x6420)"},
    {"too few bytes of columns are expected", TWO_SETS,
     "barrier_arrive_expect(landed, T::kColumnBytes",
     "barrier_arrive_expect(landed, T::kColumnBytes - 16"},
    {"codes are moved while wgmma reads them", TWO_SETS,
     "words.move(a[unit / T::kChunks % C.sets][s], first + s);", "words.move(a[0][s], first + s);"},
    {"products are not waited for", TWO_SETS, "wgmma_wait<0>();\n        hold(part",
     "wgmma_wait<1>();\n        hold(part"},
    {"no fence before a product of registers", TWO_SETS,
     "beyond the fence\n        wgmma_fence();\n", "beyond the fence\n"},
    {"only the last group is gathered", TWO_SETS, "step == 0 ? scale * from[j][i]",
     "step >= 0 ? scale * from[j][i]"},
    {"the scale of the next group", PER_32,
     "group = step * RowScales<C>::kGroups / 4;\n            if",
     "group = (step + 1) % 4 * RowScales<C>::kGroups / 4;\n            if"},
    {"A's scale of the next group", PER_32, "column_group = step * 32 / T::kColumnScales.gran_k;",
     "column_group = (step + 1) % 4 * 32 / T::kColumnScales.gran_k;"},
    {"a stage is handed back before its words are read", PER_32, "            products.all(sum);",
     "            line.release(line.ring.empty());\n            products.all(sum);"},
};

/* Ordinary runs take every second. */
START_TEST(a_mutant_is_refused)
{
    const int row = mutants[_i].row;

    if (!prove_fixture_leaves(_i, 2, TEMPLATE, mutants[_i].old)) {
        prove_fixture_refuse(&mutants[_i], "emu:h20", right[row].problem, TEMPLATE,
                             right[row].config);
    }
}
END_TEST

/* ---- Blocks that share a scale beside blocks that cannot ---------------------------------------
 */

/* Scales of B that are all one, but in a few rows: of either 32 of the first warpgroup, of the
 * second one, of other tiles. The codes under a scale that others cannot share are zeros: what the
 * others then lose is not hidden by it. */
#define MIXED_PROBLEM "fp8_gemm:m=24,n=328,k=928,recipe=" USUAL
#define MIXED_CONFIG  CONFIG(1, 24, 128, 2, 1, 1, 1, 4, 0, 1, 0, 1, 1)
enum { HALVES_ROW = 140 };
static const struct {
    int block, row, group, up; /* the group's scale is 2^up of its neighbours' */
} apart[] = {
    {0, 3, 0, 11}, {1, 7, 1, 12},   {2, 40, 0, 12},  {3, 70, 3, 20},   {4, 199, 0, 12},
    {4, 33, 0, 6}, {4, 200, 3, 30}, {5, 127, 1, 11}, {5, 128, 2, 120}, {7, 5, 0, 60},
};

static inputs mixed_inputs(const hone_problem *problem)
{
    const hone_fp8_gemm *p = &problem->as.fp8_gemm;
    const int64_t groups = integer_ceil_div(p->k, 32);
    hone_error error = {0};
    inputs in = {0};

    ck_assert_int_eq(inputs_make(problem, INPUTS_NORMAL, 5, &in, &error), HONE_OK);
    for (uint64_t i = 0; i < in.operand[3].bytes; i++) {
        in.image[3][i] = in.image[3][i] != 0xff ? 100 : 0xff; /* padding stays NaN */
    }
    for (size_t i = 0; i < ARRAY_LEN(apart); i++) {
        const int64_t row = apart[i].row, group = apart[i].block * 4 + apart[i].group;
        const uint64_t at = problem_scale_offset(p->n, groups, HONE_DTYPE_UE8M0,
                                                 (hone_scale_layout)p->b_scale_layout, row, group);
        in.image[3][at] = (uint8_t)(100 + apart[i].up);
        if (apart[i].up > 11) {
            memset(in.image[2] + (row * p->k + group * 32) / 2, 0, 16);
        }
    }
    /* A row of nothing but 0.5, where that times 2^-6 would be no step of exponent away. */
    const uint64_t row = HALVES_ROW, group = 4;
    memset(in.image[2] + row * (uint64_t)p->k / 2, 0, (size_t)p->k / 2);
    memset(in.image[2] + (row * (uint64_t)p->k + group * 32) / 2, 0x11, 48);
    in.image[3][problem_scale_offset(p->n, groups, HONE_DTYPE_UE8M0,
                                     (hone_scale_layout)p->b_scale_layout, (int64_t)row,
                                     (int64_t)group + 3)] = 112;
    return in;
}

static verify_result judge_mixed(const corner_edit *edit)
{
    const manifest *m = templates_find(prove_fixture_templates(), TEMPLATE);
    corner_candidate c;
    hone_problem problem;
    config chosen;
    device *d = NULL;
    hone_error error = {0};

    ck_assert_int_eq(hone_problem_parse(MIXED_PROBLEM, &problem, &error), HONE_OK);
    ck_assert_int_eq(manifest_config_parse(m, MIXED_CONFIG, &chosen, &error), HONE_OK);
    ck_assert_int_eq(device_open("emu:h20", &d, &error), HONE_OK);
    corner_open_edited(&c, d, &problem, m, &chosen, edit, edit != NULL);
    inputs in = mixed_inputs(&problem);
    const verify_result result = corner_judge(&c, &problem, &in);
    inputs_free(&in);
    corner_close(&c);
    device_close(d);
    return result;
}

START_TEST(some_blocks_share_a_scale)
{
    const verify_result result = judge_mixed(NULL);

    ck_assert_msg(result.passed, "%s", result.reason);
}
END_TEST

static const corner_edit mixed_mutants[] = {
    {"i < T::kTiles * 2; i++", "i < T::kTiles; i++"}, /* the flags of the first 32 rows only */
    {"+ row / 32;", ";"},                             /* of the first warpgroup's only */
    {"constexpr i32 kLeastShift = -5", "constexpr i32 kLeastShift = -6"},
    {"table[0] = table[1] = table[2] = table[3] = e2m1_table(0);", ""},
};

START_TEST(a_mutant_that_mixes_them_up_is_refused)
{
    ck_assert_msg(!judge_mixed(&mixed_mutants[_i]).passed, "passed: %s", mixed_mutants[_i].new);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wgmma_fp4");

    if (!prove_fixture_start("prove_wgmma_fp4")) {
        return 0;
    }
    tcase_add_loop_test(tests, a_config_is_proved, 0, ARRAY_LEN(right));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, ARRAY_LEN(mutants));
    tcase_add_test(tests, some_blocks_share_a_scale);
    tcase_add_loop_test(tests, a_mutant_that_mixes_them_up_is_refused, 0, ARRAY_LEN(mixed_mutants));
    const int result =
        suite_run_here("bench/prove_wgmma_fp4", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
