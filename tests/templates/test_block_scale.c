/* test_block_scale.c - what sm_120a's block-scaled product must be beside right: its machine code
 * is the unit's and clean, a scale that is NaN makes its row or column NaN and nothing else, and a
 * fixed order gives a row the same bits whatever the config and however many rows there are.
 * HONE_KERNEL_DRAWS asks for that many random configs of each problem instead of two. */
#include "tests/templates/proof.h"

#include "bench/sass.h"
#include "core/problem.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEMPLATE "fp8_gemm/sm120_block_scale"
#define CONFIG(swap, m, n, k, r, c, stages, split, raster, residency)                              \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_r=" #r " warps_c=" #c       \
    " stages=" #stages " split_k=" #split " raster=" #raster " residency=" #residency

static kernels shared;
static device *blackwell;
static const manifest *scaled;
static template_source source;

static hone_problem parse(const char *text)
{
    hone_problem problem;
    hone_error error = {0};

    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

/* ---- Machine code ---------------------------------------------------------------------------- */

/* Compile for one arch and read. Whether ptxas has nothing against it. */
static bool compile(const hone_problem *problem, const config *c, int32_t arch, sass_function *out)
{
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    jit_request request;
    compiled *code = NULL;
    char why[400] = "";
    bool legal = false;

    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(manifest_legal(scaled, problem, &blackwell->gpu.facts, c, &legal, why, &error),
                     HONE_OK);
    ck_assert_msg(legal, "%s", why);
    ck_assert_int_eq(manifest_plan(scaled, problem, &blackwell->gpu.facts, c, p, &error), HONE_OK);
    ck_assert_int_eq(jit_request_plan(shared.templates, scaled, p, arch, &request, &error),
                     HONE_OK);
    ck_assert_msg(jit_compile(shared.compiler, &request, &code, &error) == HONE_OK, "%s: %s",
                  p->launches[0].entry, error.message);
    const bool clean = !compiled_flaw(code, why, sizeof why);
    if (!clean) {
        printf("FLAW %s: %s\n", p->launches[0].entry, why);
    }
    ck_assert_msg(sass_read(code->cubin, code->cubin_len, code->kernels[0].lowered, out, &error) ==
                      HONE_OK,
                  "%s", error.message);
    compiled_free(code);
    free(p);
    return clean;
}

#define LARGE "fp8_gemm:m=4096,n=4096,k=4096,recipe="
static const struct {
    const char *problem, *config;
    int32_t arch;
    uint32_t products, loads; /* of a warp and K block */
    uint32_t others;          /* at most: copies, scales, addresses, selectors */
} tiles[] = {
    {LARGE "ue8m0-1x32-32x32", CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1), 120, 64, 24, 280},
    {LARGE "ue8m0-1x32-1x32", CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1), 121, 64, 24, 280},
    {LARGE "ue8m0-1x128-128x128", CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1), 120, 64, 24, 220},
    {LARGE "ue8m0-1x32-e2m1/1x32", CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1), 120, 64, 24, 350},
    {LARGE "ue8m0-1x32-32x32", CONFIG(0, 128, 128, 128, 2, 2, 3, 1, 8, 1), 120, 128, 32, 390},
    {LARGE "ue8m0-1x32-32x32", CONFIG(1, 16, 128, 128, 4, 1, 4, 2, 8, 1), 120, 16, 12, 220},
};

START_TEST(a_tile_multiplies_by_the_scaled_unit_and_keeps_its_registers)
{
    const hone_problem problem = parse(tiles[_i].problem);
    hone_error error = {0};
    sass_function f = {.loops = NULL};
    config c;

    if (shared.compiler == NULL) {
        return;
    }
    ck_assert_int_eq(manifest_config_parse(scaled, tiles[_i].config, &c, &error), HONE_OK);
    ck_assert(compile(&problem, &c, tiles[_i].arch, &f));
    ck_assert_uint_eq(f.all.kinds[SASS_LOCAL], 0);
    const sass_loop *l = sass_main_loop(&f);
    ck_assert_ptr_nonnull(l);
    ck_assert_uint_eq(l->count.kinds[SASS_MMA], tiles[_i].products);
    ck_assert_double_eq(l->count.mma_macs[GPU_MMA_MXFP8], 4096.0 * tiles[_i].products);
    ck_assert_uint_eq(l->count.kinds[SASS_LDSM], tiles[_i].loads);
    ck_assert_uint_eq(l->count.kinds[SASS_FFMA] + l->count.kinds[SASS_FMUL], 0);
    const uint32_t others = l->count.instructions - tiles[_i].products - tiles[_i].loads;
    ck_assert_msg(others <= tiles[_i].others, "%s: %u other instructions", tiles[_i].config,
                  others);
    sass_function_free(&f);
}
END_TEST

static const char *const drawn[] = {
    LARGE "ue8m0-1x32-32x32",
    "fp8_gemm:m=16,n=7168,k=2048,recipe=ue8m0-1x32-1x32,out=f32,accumulate=1",
    "fp8_gemm:m=512,n=4608,k=5120,recipe=ue8m0-1x32-e2m1/1x32",
    "fp8_gemm:m=64,n=2112,k=7168,recipe=ue8m0-1x128-128x128,b_scale_layout=col",
};

START_TEST(most_of_what_is_legal_is_clean)
{
    const hone_problem problem = parse(drawn[_i]);
    const char *asked = getenv("HONE_KERNEL_DRAWS");
    const int draws = asked != NULL ? atoi(asked) : 2;
    hone_error error = {0};
    space *s = NULL;
    uint64_t seed = 3 + (uint64_t)_i;
    int clean = 0;

    ck_assert_int_eq(space_open(scaled, &problem, &blackwell->gpu.facts, &s, &error), HONE_OK);
    for (int i = 0; i < draws && shared.compiler != NULL; i++) {
        sass_function f = {.loops = NULL};
        config c;
        bool found = false, uniform = false;
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        ck_assert(found);
        const bool good = compile(&problem, &c, 120, &f);
        clean += good;
        ck_assert(!good || (f.all.kinds[SASS_LOCAL] == 0 && sass_main_loop(&f) != NULL &&
                            sass_main_loop(&f)->count.mma_macs[GPU_MMA_MXFP8] > 0));
        sass_function_free(&f);
    }
    ck_assert_msg(shared.compiler == NULL || 10 * clean >= 9 * draws, "%s: %d of %d are clean",
                  drawn[_i], clean, draws);
    space_close(s);
}
END_TEST

/* ---- Scales that are NaN --------------------------------------------------------------------- */

static bool is_nan(const inputs *in, int64_t at)
{
    uint16_t code;

    memcpy(&code, in->image[4] + 2 * at, sizeof code);
    return (code & 0x7fff) > 0x7f80;
}

/* A config's code for a problem and all that differ from it in M. The caller frees it. */
static compiled *build(const hone_problem *problem, const char *text, config *c)
{
    hone_error error = {0};

    ck_assert_int_eq(manifest_config_parse(scaled, text, c, &error), HONE_OK);
    const proof_case one = {.m = scaled, .source = &source, .problem = problem, .config = c};
    return proof_compile(&shared, blackwell, &one);
}

static inputs product(const hone_problem *problem, const config *c, const compiled *code,
                      const inputs *in)
{
    const proof_case one = {.m = scaled, .source = &source, .problem = problem, .config = c};
    inputs out = {0};

    proof_launch(blackwell, &one, code, in, &out);
    return out;
}

static const char *const marked[] = {
    CONFIG(0, 32, 40, 128, 2, 1, 3, 1, 1, 1),
    CONFIG(1, 8, 32, 64, 1, 1, 3, 1, 1, 1),
};

/* In the last group, of which the operand has a part alone, and in a middle one. */
START_TEST(a_scale_of_nan_spoils_its_row_or_column_alone)
{
    enum { M = 21, N = 40, GROUPS = 5, ROW = 18, COLUMN = 33 };
    const hone_problem problem = parse("fp8_gemm:m=21,n=40,k=144,recipe=ue8m0-1x32-1x32,"
                                       "a_scale_layout=row,b_scale_layout=row");
    hone_error error = {0};
    inputs in = {0};
    config c;

    if (shared.compiler == NULL) {
        return;
    }
    compiled *code = build(&problem, marked[_i], &c);
    ck_assert_int_eq(inputs_make(&problem, INPUTS_NORMAL, 5, &in, &error), HONE_OK);
    inputs before = product(&problem, &c, code, &in);
    in.image[1][ROW * GROUPS + 4] = 0xff;
    in.image[3][COLUMN * GROUPS + 2] = 0xff;
    inputs after = product(&problem, &c, code, &in);
    for (int64_t at = 0; at < M * N; at++) {
        const bool spoilt = at / N == ROW || at % N == COLUMN;
        ck_assert_msg(is_nan(&after, at) == spoilt && !is_nan(&before, at), "row %d, column %d",
                      (int)(at / N), (int)(at % N));
        ck_assert(spoilt ||
                  memcmp(before.image[4] + 2 * at, after.image[4] + 2 * at, sizeof(uint16_t)) == 0);
    }
    inputs_free_outputs(&before);
    inputs_free_outputs(&after);
    inputs_free(&in);
    compiled_free(code);
}
END_TEST

/* ---- A fixed order --------------------------------------------------------------------------- */

/* Configs that share nothing but the order. */
static const char *const ordered[] = {
    CONFIG(0, 128, 128, 128, 4, 2, 3, 1, 8, 1),
    CONFIG(0, 32, 40, 64, 1, 1, 4, 1, 1, 1),
    CONFIG(1, 8, 64, 128, 2, 1, 5, 1, 1, 1),
    CONFIG(1, 32, 32, 64, 1, 2, 3, 1, 8, 1),
};
static const char *const families[] = {
    "fp8_gemm:m=%d,n=72,k=336,recipe=ue8m0-1x32-32x32,a_scale_layout=row,order=fixed,out=f32",
    "fp8_gemm:m=%d,n=72,k=352,recipe=ue8m0-1x32-e2m1/1x32,a_scale_layout=row,order=fixed,out=f32",
};

enum { MOST_ROWS = 300 };

static hone_problem sized(const char *format, int m)
{
    char text[256];

    snprintf(text, sizeof text, format, m);
    return parse(text);
}

/* Every size of one config against `all`, D of MOST_ROWS rows by another config or empty. */
static void compare_sizes(const char *format, const char *text, const inputs *whole, inputs *all)
{
    static const int sizes[] = {MOST_ROWS, 1, 8, 9, 17, 64, 127, 128, 129, 255};
    const hone_problem largest = sized(format, MOST_ROWS);
    hone_error error = {0};
    config c;
    compiled *code = build(&largest, text, &c);

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const hone_problem problem = sized(format, sizes[i]);
        inputs part =
            *whole; /* A's scales lie row by row: a smaller problem's are the first ones */
        ck_assert_int_eq(hone_operands(&problem, part.operand, &part.len, &error), HONE_OK);
        inputs after = product(&problem, &c, code, &part);
        if (all->len == 0) {
            *all = after;
            continue;
        }
        ck_assert_msg(memcmp(after.image[4], all->image[4], part.operand[4].bytes) == 0,
                      "%s: other bits at m=%d", text, sizes[i]);
        inputs_free_outputs(&after);
    }
    compiled_free(code);
}

START_TEST(a_fixed_order_gives_a_row_the_same_bits_for_every_m)
{
    const hone_problem problem = sized(families[_i], MOST_ROWS);
    hone_error error = {0};
    inputs whole = {0}, all = {0};

    if (shared.compiler == NULL) {
        return;
    }
    const manifest *m = kernels_serving(&shared, &problem, &blackwell->gpu.facts);
    ck_assert_str_eq(manifest_name(m), TEMPLATE); /* no other unit serves it */
    ck_assert_int_eq(inputs_make(&problem, INPUTS_WIDE, 3, &whole, &error), HONE_OK);
    for (size_t i = 0; i < ARRAY_LEN(ordered); i++) {
        compare_sizes(families[_i], ordered[i], &whole, &all);
    }
    inputs_free_outputs(&all);
    inputs_free(&whole);
}
END_TEST

static void setup(void)
{
    hone_error error = {0};

    shared = kernels_open();
    ck_assert_msg(device_open("emu:rtx5090", &blackwell, &error) == HONE_OK, "%s", error.message);
    scaled = templates_find(shared.templates, TEMPLATE);
    ck_assert_int_eq(templates_source(shared.templates, scaled, &source, &error), HONE_OK);
}

static void teardown(void)
{
    device_close(blackwell);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("block_scale");

    tcase_add_loop_test(tests, a_tile_multiplies_by_the_scaled_unit_and_keeps_its_registers, 0,
                        (int)ARRAY_LEN(tiles));
    tcase_add_loop_test(tests, most_of_what_is_legal_is_clean, 0, (int)ARRAY_LEN(drawn));
    tcase_add_loop_test(tests, a_scale_of_nan_spoils_its_row_or_column_alone, 0,
                        (int)ARRAY_LEN(marked));
    tcase_add_loop_test(tests, a_fixed_order_gives_a_row_the_same_bits_for_every_m, 0,
                        (int)ARRAY_LEN(families));
    return kernels_run("templates/block_scale", tests, setup, teardown);
}
