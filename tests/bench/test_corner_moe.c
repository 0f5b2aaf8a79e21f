/* test_corner_moe.c - corner cases of experts' rows (kernels.md App. C, cases.md 13 and 65) on
 * emulated GPUs: layouts by recipes, columns that tiles do not divide, experts from one to more
 * than there are SMs, drawn configs. Each proof has experts with no row, with one, with row_align,
 * with everything, and none that has any.
 *
 * HONE_CORNER=n proves the default and up to n drawn configs of every row at every size; without it
 * one drawn config of some rows at some sizes. HONE_CORNER_LOG names a file of what has passed,
 * which is not proved again; HONE_TEST_CACHE keeps kernels from run to run. */
#include "tests/bench/corner_log.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ADA     "emu:rtx4090"
#define RTX5090 "emu:rtx5090"
#define HOPPER  "emu:h20"
#define SYNC    "moe_gemm/mma_sync"
#define SYNC_K  "moe_gemm/mma_sync_k"
#define SCALED  "moe_gemm/sm120_block_scale"
#define WGMMA   "moe_gemm/sm90_wgmma"
#define FP8     ",recipe=f32-1x128-128x128"
#define FP8_32  ",recipe=ue8m0-1x32-32x32"
#define FP4     ",recipe=ue8m0-1x32-e2m1/1x32"
#define FP4_128 ",recipe=f32-1x128-e2m1/ue8m0/1x32"
#define BY_K    "grouped_k,m=72,out=f32,recipe="
enum { MOST_DRAWS = 16, FEW_SMS = 3, SHORT_STEP = 5 };

/* Columns: any; multiples of 16 bytes of D; gates and ups of whole groups. */
enum { ANY, WIDE, GATES };
static const int64_t columns[][6] = {
    {129, 1, 33, 127, 128, 576}, {136, 8, 40, 128, 192, 576}, {768, 256, 512}};

static const struct {
    const char *device, *template, *text; /* behind group_layout= */
    int columns;
} rows[] = {
    {ADA, SYNC, "contiguous,row_align=16,align=2" FP8, ANY},
    {HOPPER, WGMMA, "masked" FP8, WIDE},
    {RTX5090, SYNC, "masked,align=2" FP8_32, ANY},
    {HOPPER, WGMMA "_gated", "contiguous,activation=silu_mul,out=e4m3,out_group=128" FP8, GATES},
    {HOPPER, WGMMA, "psum,row_align=8" FP8_32, WIDE},
    {HOPPER, WGMMA, "masked,m=8" FP8, WIDE}, /* fewer rows than a tile: cases.md 59 */
    {ADA, SYNC, "psum,row_align=1,align=2,out=f32,recipe=f32-1x128-1x128", ANY},
    {HOPPER, WGMMA, "contiguous,out=f32,recipe=ue8m0-1x32-1x32", WIDE},
    {RTX5090, SCALED, "psum,row_align=32" FP8_32, WIDE},
    {HOPPER, WGMMA "_k", BY_K "f32-1x128-1x128", WIDE},
    {HOPPER, WGMMA "_fp4", "masked" FP4, WIDE},
    {HOPPER, WGMMA "_fp4_gated", "psum,row_align=16,activation=silu_mul_v4" FP4_128, GATES},
    {ADA, SYNC, "masked,align=2" FP4_128, ANY},
    {ADA, SYNC_K, BY_K "f32-1x32-1x32,align=4", ANY},
    {HOPPER, WGMMA "_fp4", "contiguous,row_align=32" FP4_128, WIDE},
    {RTX5090, SCALED, "masked" FP4, WIDE},
    {ADA, SYNC, "contiguous,row_align=128,activation=silu_mul" FP8_32, GATES},
    {HOPPER, SYNC, "contiguous,row_align=8,align=2,fill=1" FP8_32, ANY},
    {HOPPER, WGMMA "_gated", "masked,activation=silu_mul_v4,out=e4m3,out_group=32" FP8_32, GATES},
};

/* Experts: some without rows, one alone, more than SMs. */
static const struct {
    int experts, tokens, topk;
} routes[] = {{5, 40, 3}, {1, 17, 1}, {140, 9, 6}};

static size_t draws(void)
{
    const char *asked = getenv("HONE_CORNER");
    const long wanted = asked != NULL ? atol(asked) : 0;

    return wanted < 0 ? 0 : wanted > MOST_DRAWS ? MOST_DRAWS : (size_t)wanted;
}

static hone_problem problem_of(size_t row, int64_t n, size_t route)
{
    const bool by_k = strncmp(rows[row].text, BY_K, 9) == 0;
    hone_error error = {0};
    hone_problem problem;
    char text[256];

    /* k with tails of 16, and of 32 for codes of four bits */
    snprintf(text, sizeof text, "moe_gemm:n=%d,k=%d,experts=%d,tokens=%d,topk=%d,group_layout=%s",
             (int)n,
             by_k                                     ? 1152
             : strstr(rows[row].text, "e2m1") != NULL ? 288
                                                      : 272,
             routes[route].experts, routes[route].tokens, routes[route].topk, rows[row].text);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

static corner_count count;

/* One config at all sizes, or a short run's: how many proofs there were. */
static int prove_sizes(const corner_candidate *c, size_t row)
{
    const bool full = draws() > 0;
    plan *p = calloc(2, sizeof *p);
    int made = 0;

    ck_assert_ptr_nonnull(p);
    for (size_t i = 0; i < ARRAY_LEN(columns[0]) * ARRAY_LEN(routes); i++) {
        const size_t column = i / ARRAY_LEN(routes), route = i % ARRAY_LEN(routes);
        const int64_t n = columns[rows[row].columns][column];
        if (n == 0 || (!full && (route != row / SHORT_STEP % ARRAY_LEN(routes) || column % 3 == 0 ||
                                 column > 2))) {
            continue;
        }
        corner_proofs of = {c->d, problem_of(row, n, route), 29, NULL};
        if (!corner_plan(c, &of.problem, 0, &p[0])) { /* too wide for few columns */
            continue;
        }
        corner_log_prove(&of, c, &p[0], &count);
        made++;
        if (full && corner_plan(c, &of.problem, FEW_SMS, &p[1]) &&
            p[1].launches[0].grid[0] < p[0].launches[0].grid[0]) {
            corner_log_prove(&of, c, &p[1], &count);
        }
        prover_close(of.made);
    }
    free(p);
    return made;
}

START_TEST(corners_of_experts_are_proved)
{
    const bool full = draws() > 0;
    const size_t row = (size_t)_i;
    config configs[MOST_DRAWS + 1];
    hone_error error = {0};
    device *d = NULL;
    size_t len = 0;

    if (!full && row % SHORT_STEP != 0) {
        return;
    }
    const hone_problem problem = problem_of(row, columns[rows[row].columns][0], 0);
    const manifest *m = templates_find(prove_fixture_templates(), rows[row].template);
    ck_assert_ptr_nonnull(m);
    ck_assert_msg(device_open(rows[row].device, &d, &error) == HONE_OK, "%s", error.message);
    len = full ? corner_default(d, &problem, m, configs) : 0;
    len += corner_draw(d, &problem, m, 300 + row, full ? draws() : 1, configs + len);
    ck_assert_uint_gt(len, 0);
    for (size_t i = 0; i < len; i++) {
        corner_candidate c;
        corner_open(&c, d, &problem, m, &configs[i]);
        ck_assert_msg(prove_sizes(&c, row) > 0 || !full, "%s at no size", c.text);
        corner_close(&c);
    }
    printf("%s, %s: %zu configs, %d proofs so far\n", rows[row].template, rows[row].text, len,
           count.made + count.logged);
    device_close(d);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("corner_moe");

    setvbuf(stdout, NULL, _IOLBF, 0); /* an hour: what was proved is told at once */
    if (!prove_fixture_start("corner_moe")) {
        return 0;
    }
    tcase_add_loop_test(tests, corners_of_experts_are_proved, 0, ARRAY_LEN(rows));
    const int result = suite_run_here("bench/corner_moe", tests); /* the compiler has threads */
    printf("%d proofs made, %d found in the log\n", count.made, count.logged);
    prove_fixture_stop();
    return result;
}
