/* test_corner.c - the products' corner cases (kernels.md App. C) and the shapes that models ask for
 * (1.9), proved on emulated GPUs: configs that cover every parameter's values, with fewer SMs than
 * tiles where the grid is persistent, and every schedule of small ones with all checks.
 *
 * HONE_CORNER=n proves the default and up to n drawn configs of every row at every size, hours with
 * n = 4 (an hour of a loaded core with 1); without it one config of some rows at some sizes.
 * HONE_CORNER_PART keeps to `corners`, `shapes` or `schedules`; HONE_CORNER_LOG names a file of
 * what has passed, which is not proved again; HONE_TEST_CACHE keeps kernels from run to run. */
#include "tests/bench/corner_log.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WGMMA    "fp8_gemm/sm90_wgmma"
#define MMA_SYNC "fp8_gemm/mma_sync"
#define FP4      "fp8_gemm/sm90_wgmma_fp4"
#define SCALED   "fp8_gemm/sm120_block_scale"
#define ADA      "emu:rtx4090"
#define RTX5090  "emu:rtx5090"
#define HOPPER   "emu:h20"
enum { MOST_DRAWS = 64, FEW_SMS = 3 };

static const struct {
    const char *device, *template, *recipe; /* and what follows it in a problem's text */
} rows[] = {
    {HOPPER, WGMMA, "f32-1x128-128x128"},
    {ADA, MMA_SYNC, "ue8m0-1x32-32x32,accumulate=1"},
    {HOPPER, WGMMA, "f32-1x128-128x128,accumulate=1"},
    {HOPPER, WGMMA, "f32-1x128-1x128,out=f32,accumulate=1"},
    {HOPPER, WGMMA, "ue8m0-1x32-32x32"},
    {HOPPER, WGMMA, "f32-1x32-32x32,out=f32"},
    {ADA, MMA_SYNC, "f32-1x128-128x128"},
    {HOPPER, WGMMA, "f32-1x32-128x128,accumulate=1"},
    {HOPPER, WGMMA, "ue8m0-1x32-1x32,out=f32,accumulate=1"},
    {HOPPER, WGMMA, "f32-1x128-1x128"},
    {HOPPER, WGMMA, "f32-1x32-1x32"},
    {HOPPER, WGMMA, "f32-1x128-32x32,out=f32"},
    {HOPPER, WGMMA, "ue8m0-1x128-1x32"},
    {ADA, MMA_SYNC, "f32-1x128-1x128,out=f32,accumulate=1"},
    {ADA, MMA_SYNC, "ue8m0-1x32-1x32"},
    {ADA, MMA_SYNC, "f32-1x32-128x128,out=f32"},
    {HOPPER, MMA_SYNC, "f32-1x128-128x128,accumulate=1"},
    {HOPPER, MMA_SYNC, "ue8m0-1x32-32x32"},
    {HOPPER, FP4, "f32-1x128-e2m1/ue8m0/1x32"},
    {RTX5090, SCALED, "ue8m0-1x32-32x32"},
    {HOPPER, FP4, "ue8m0-1x32-e2m1/1x32,out=f32,accumulate=1"},
    {RTX5090, SCALED, "ue8m0-1x32-e2m1/1x32,out=f32,accumulate=1"},
};

/* Draws asked for; 0: the short run. */
static size_t draws(void)
{
    const char *asked = getenv("HONE_CORNER");
    const long wanted = asked != NULL ? atol(asked) : 0;

    return wanted < 0 ? 0 : wanted > MOST_DRAWS ? MOST_DRAWS : (size_t)wanted;
}

static device *open_device(const char *spec)
{
    hone_error error = {0};
    device *d = NULL;

    ck_assert_msg(device_open(spec, &d, &error) == HONE_OK, "%s", error.message);
    return d;
}

static const manifest *find(const char *template)
{
    const manifest *m = templates_find(prove_fixture_templates(), template);

    ck_assert_ptr_nonnull(m);
    return m;
}

/* The default's config, unless the run is short, then drawn ones. Of drawn configs that differ in
 * sizes alone one set is enough: each is compiled once and proved at all of them. */
static size_t configs_of(const device *d, const hone_problem *problem, const manifest *m,
                         uint64_t seed, config out[MOST_DRAWS + 1])
{
    size_t len = 0;

    if (draws() == 0) {
        return corner_draw(d, problem, m, seed, 1, out);
    }
    len += corner_default(d, problem, m, out);
    return len + corner_draw(d, problem, m, seed, draws(), out + len);
}

static corner_count count;

/* ---- Appendix C ------------------------------------------------------------------------------ */

static const int64_t ms[] = {1, 15, 16, 17, 63, 64, 65, 127, 128, 129};
/* n % 8 == 0 but not % 128, k % 16 == 0 but not % 128; small enough to run whole. */
static const int64_t nks[][2] = {{576, 400}, {2112, 144}};

/* Rows of two codes a byte are multiples of 16 bytes too. */
static int64_t k_of(const char *recipe, int64_t k)
{
    return strstr(recipe, "e2m1") != NULL ? (k + 31) / 32 * 32 : k;
}

/* How many proofs of this process ran on fewer SMs than there are tiles. */
static int on_few_sms;

static void prove_sizes(const corner_candidate *c, const char *recipe, const int64_t nk[2],
                        size_t from, size_t step)
{
    plan *p = calloc(2, sizeof *p);

    ck_assert_ptr_nonnull(p);
    for (size_t i = from; i < ARRAY_LEN(ms); i += step) {
        corner_proofs of = {c->d, corner_problem(recipe, ms[i], nk[0], k_of(recipe, nk[1])), 23 + i,
                            NULL};
        ck_assert_msg(corner_plan(c, &of.problem, 0, &p[0]), "%s at m=%d", c->text, (int)ms[i]);
        corner_log_prove(&of, c, &p[0], &count);
        if (corner_plan(c, &of.problem, FEW_SMS, &p[1]) &&
            p[1].launches[0].grid[0] < p[0].launches[0].grid[0]) {
            corner_log_prove(&of, c, &p[1], &count);
            on_few_sms++;
        }
        prover_close(of.made);
    }
    free(p);
}

START_TEST(corners_are_proved)
{
    const bool full = draws() > 0;
    const size_t row = (size_t)_i / ARRAY_LEN(nks), shape = (size_t)_i % ARRAY_LEN(nks);
    config *configs = calloc(MOST_DRAWS + 1, sizeof *configs);

    ck_assert_ptr_nonnull(configs);
    if (full || (row % 3 == 0 && shape == row / 3 % 2)) {
        device *d = open_device(rows[row].device);
        const manifest *m = find(rows[row].template);
        const hone_problem problem = corner_problem(rows[row].recipe, 129, nks[shape][0],
                                                    k_of(rows[row].recipe, nks[shape][1]));
        const size_t len = configs_of(d, &problem, m, 100 + (uint64_t)_i, configs);
        for (size_t i = 0; i < len; i++) {
            corner_candidate c;
            corner_open(&c, d, &problem, m, &configs[i]);
            prove_sizes(&c, rows[row].recipe, nks[shape], full ? 0 : row % 5, full ? 1 : 5);
            corner_close(&c);
        }
        printf("%s, %s, n=%d k=%d: %zu configs\n", rows[row].template, rows[row].recipe,
               (int)nks[shape][0], (int)nks[shape][1], len);
        device_close(d);
    }
    free(configs);
}
END_TEST

/* Ran after the corners: some of them must have had fewer SMs than tiles. */
START_TEST(some_grids_had_fewer_sms_than_tiles)
{
    ck_assert(draws() == 0 || on_few_sms > 0); /* the short run's few draws may have none */
}
END_TEST

/* ---- The models' shapes ---------------------------------------------------------------------- */

static const int64_t shapes[][2] = {{2112, 7168},  {576, 7168},  {24576, 1536}, {32768, 512},
                                    {7168, 16384}, {4096, 7168}, {7168, 2048}};
static const int64_t shape_ms[] = {1, 128, 4096};
/* Per 128 and per 32, and the one that adds to D in f32. */
static const size_t shape_rows[] = {0, 3, 4, 8, 6, 1};

/* Of the short run: a few that sampled proofs are quick for. */
static bool is_short(size_t row, size_t shape, int64_t m)
{
    return (row == 0 && shape == 1 && m == 1) || (row == 4 && shape == 0 && m == 128) ||
           (row == 6 && shape == 6 && m == 1);
}

/* Drawn configs, of the largest M, and for each M the default. */
typedef struct shape_run {
    size_t row;
    int64_t n, k;
    device *d;
    const manifest *of;
    size_t len; /* of `drawn` */
    corner_candidate drawn[MOST_DRAWS];
    plan p;
} shape_run;

static shape_run *shape_open(size_t row, int64_t largest, int64_t n, int64_t k, uint64_t seed)
{
    shape_run *s = calloc(1, sizeof *s);
    config *configs = calloc(MOST_DRAWS, sizeof *configs);
    const hone_problem problem = corner_problem(rows[row].recipe, largest, n, k);

    ck_assert(s != NULL && configs != NULL);
    s->row = row;
    s->n = n;
    s->k = k;
    s->d = open_device(rows[row].device);
    s->of = find(rows[row].template);
    s->len = corner_draw(s->d, &problem, s->of, seed, draws() > 0 ? draws() : 1, configs);
    for (size_t i = 0; i < s->len; i++) {
        corner_open(&s->drawn[i], s->d, &problem, s->of, &configs[i]);
    }
    free(configs);
    return s;
}

static void shape_close(shape_run *s)
{
    for (size_t i = 0; i < s->len; i++) {
        corner_close(&s->drawn[i]);
    }
    device_close(s->d);
    free(s);
}

static void prove_shape(shape_run *s, int64_t m)
{
    corner_proofs of = {s->d, corner_problem(rows[s->row].recipe, m, s->n, s->k), 7, NULL};
    config chosen;
    size_t proved = 0;

    if (draws() > 0 && corner_default(s->d, &of.problem, s->of, &chosen)) {
        corner_candidate c;
        corner_open(&c, s->d, &of.problem, s->of, &chosen);
        ck_assert(corner_plan(&c, &of.problem, 0, &s->p));
        corner_log_prove(&of, &c, &s->p, &count);
        corner_close(&c);
        proved++;
    }
    for (size_t i = 0; i < s->len; i++) {
        if (corner_plan(&s->drawn[i], &of.problem, 0, &s->p)) {
            corner_log_prove(&of, &s->drawn[i], &s->p, &count);
            proved++;
        }
    }
    ck_assert_uint_gt(proved, 0);
    printf("%s, %s, m=%d n=%d k=%d: %zu configs\n", rows[s->row].template, rows[s->row].recipe,
           (int)m, (int)s->n, (int)s->k, proved);
    prover_close(of.made);
}

START_TEST(shapes_of_models_are_proved)
{
    const size_t row = shape_rows[(size_t)_i / ARRAY_LEN(shapes)];
    const size_t shape = (size_t)_i % ARRAY_LEN(shapes);
    int64_t wanted[ARRAY_LEN(shape_ms)];
    size_t len = 0;

    for (size_t i = 0; i < ARRAY_LEN(shape_ms); i++) {
        wanted[len] = shape_ms[i];
        len += draws() > 0 || is_short(row, shape, shape_ms[i]);
    }
    if (len > 0) {
        shape_run *s = shape_open(row, wanted[len - 1], shapes[shape][0], shapes[shape][1],
                                  1000 * row + 10 * shape + (uint64_t)wanted[len - 1]);
        for (size_t i = 0; i < len; i++) {
            prove_shape(s, wanted[i]);
        }
        shape_close(s);
    }
}
END_TEST

static void prove_one_shape(size_t row, int64_t m, int64_t n, int64_t k, uint64_t seed)
{
    shape_run *s = shape_open(row, m, n, k, seed);

    prove_shape(s, m);
    shape_close(s);
}

/* Backward, of 4096 rows: the gradient of the input, and that of the weights added to f32 and as
 * bf16. The short run has the first's narrowest. */
START_TEST(backward_shapes_are_proved)
{
    enum { INPUT, ADDED = 3, OVERWRITTEN = 9, NARROWEST = 1 };
    const int64_t n = shapes[_i][0], k = shapes[_i][1], m = 4096;

    if (draws() > 0 || _i == NARROWEST) {
        prove_one_shape(INPUT, m, k, n, 2000 + (uint64_t)_i);
    }
    if (draws() > 0) {
        prove_one_shape(ADDED, n, k, m, 3000 + (uint64_t)_i);
        prove_one_shape(OVERWRITTEN, n, k, m, 4000 + (uint64_t)_i);
    }
}
END_TEST

/* ---- Every schedule -------------------------------------------------------------------------- */

/* Eight orders of warps with both timings, all checks, two SMs: what goes from tile to tile, from
 * CTA to CTA and through the copy engine. */
#define SHARED(swap, m, n, rows, columns, chunks, sets, queue, stages, pair, split, share, staged, \
               idle, loader)                                                                       \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " stages=" #stages " pair=" #pair " split_k=" #split         \
    " queue=" #queue " share=" #share " raster=8 staged=" #staged " loader_registers=" #loader     \
    " residency=1 idle=" #idle
#define CONFIG(swap, m, n, rows, columns, chunks, sets, stages, pair, split, staged, idle, loader) \
    SHARED(swap, m, n, rows, columns, chunks, sets, 1, stages, pair, split, 1, staged, idle, loader)
#define FOUR_BITS(fold, m, n, rows, sets, joint, stages, pair, split, staged, residency, idle)     \
    "fold=" #fold " block_m=" #m " block_n=" #n " row_groups=" #rows " chunks=1 sets=" #sets       \
    " joint=" #joint " stages=" #stages " pair=" #pair " split_k=" #split                          \
    " raster=1 staged=" #staged " residency=" #residency " idle=" #idle
#define SCALED_BY(swap, m, n, k, rows, columns, stages, split, raster, residency)                  \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_r=" #rows                   \
    " warps_c=" #columns " stages=" #stages " split_k=" #split " raster=" #raster                  \
    " residency=" #residency
static const struct {
    const char *device, *template, *recipe, *config;
} scheduled[] = {
    {HOPPER, WGMMA, "f32-1x128-128x128", CONFIG(0, 64, 64, 1, 1, 1, 1, 3, 0, 1, 1, 1, 40)},
    {HOPPER, WGMMA, "ue8m0-1x32-32x32", CONFIG(0, 128, 128, 2, 1, 1, 2, 2, 0, 1, 1, 1, 56)},
    {HOPPER, WGMMA, "f32-1x128-1x128,out=f32,accumulate=1",
     CONFIG(0, 64, 64, 1, 1, 1, 1, 2, 1, 1, 1, 1, 40)},
    {HOPPER, WGMMA, "f32-1x32-128x128", CONFIG(1, 16, 64, 1, 1, 1, 2, 4, 2, 1, 1, 1, 40)},
    {HOPPER, WGMMA, "ue8m0-1x32-1x32,accumulate=1",
     CONFIG(1, 64, 128, 2, 1, 1, 2, 3, 0, 1, 0, 1, 56)},
    {HOPPER, WGMMA, "f32-1x128-128x128", CONFIG(0, 64, 96, 1, 2, 1, 1, 3, 0, 1, 0, 1, 56)},
    {HOPPER, WGMMA, "f32-1x128-128x128", CONFIG(0, 64, 64, 1, 1, 1, 1, 4, 0, 2, 0, 0, 40)},
    {ADA, MMA_SYNC, "ue8m0-1x32-32x32",
     "swap=0 block_m=32 block_n=64 block_k=128 warps_m=2 warps_n=2 warps_k=1 split_k=1 stages=3 "
     "promote=32 raster=8 residency=1"},
    {ADA, MMA_SYNC, "f32-1x128-128x128",
     "swap=1 block_m=8 block_n=32 block_k=128 warps_m=1 warps_n=2 warps_k=1 split_k=2 stages=2 "
     "promote=64 raster=1 residency=1"},
    {ADA, MMA_SYNC, "ue8m0-1x32-32x32",
     "swap=0 block_m=32 block_n=64 block_k=128 warps_m=1 warps_n=2 warps_k=2 split_k=2 stages=3 "
     "promote=32 raster=1 residency=1"},
    /* Tiles that clusters share, rows and columns, alone and in pairs; a queue of two products. */
    {HOPPER, WGMMA, "f32-1x128-128x128", SHARED(0, 64, 64, 1, 1, 1, 1, 1, 3, 0, 1, 3, 1, 1, 40)},
    {HOPPER, WGMMA, "ue8m0-1x32-32x32", SHARED(1, 16, 128, 2, 1, 1, 2, 2, 3, 2, 1, 3, 0, 1, 56)},
    {HOPPER, WGMMA, "f32-1x32-128x128,out=f32,accumulate=1",
     SHARED(0, 128, 64, 2, 1, 1, 2, 2, 3, 1, 1, 3, 1, 1, 56)},
    {HOPPER, FP4, "f32-1x128-e2m1/ue8m0/1x32", FOUR_BITS(1, 64, 128, 2, 1, 1, 4, 1, 1, 1, 1, 1)},
    {HOPPER, FP4, "ue8m0-1x32-e2m1/1x32", FOUR_BITS(0, 16, 64, 1, 2, 2, 4, 0, 1, 0, 2, 1)},
    {HOPPER, FP4, "f32-1x128-e2m1/ue8m0/1x32,out=f32,accumulate=1",
     FOUR_BITS(0, 32, 128, 2, 1, 1, 4, 0, 2, 0, 1, 0)},
    {RTX5090, SCALED, "ue8m0-1x32-32x32", SCALED_BY(0, 32, 64, 128, 2, 1, 3, 1, 8, 1)},
    {RTX5090, SCALED, "ue8m0-1x32-e2m1/1x32,accumulate=1",
     SCALED_BY(1, 8, 64, 128, 2, 1, 3, 2, 1, 1)},
    {RTX5090, SCALED, "ue8m0-1x128-e2m1/32x32,out=f32", SCALED_BY(0, 64, 32, 64, 4, 1, 4, 1, 1, 1)},
};

START_TEST(every_schedule_gives_the_same_bits)
{
    const bool full = draws() > 0, splits = strstr(scheduled[_i].config, "split_k=2") != NULL;
    const int64_t n = 136; /* a part has four K blocks at least */
    const int64_t k = k_of(scheduled[_i].recipe, splits ? 1040 : 400);
    hone_error error = {0};
    corner_candidate c = {.d = NULL};
    config chosen;
    plan *p = calloc(1, sizeof *p);
    int runs = 0;

    ck_assert_ptr_nonnull(p);
    if (full || _i % 3 == 0) {
        device *d = open_device(scheduled[_i].device);
        const manifest *m = find(scheduled[_i].template);
        const hone_problem first = corner_problem(scheduled[_i].recipe, 129, n, k);
        ck_assert_msg(manifest_config_parse(m, scheduled[_i].config, &chosen, &error) == HONE_OK,
                      "%s", error.message);
        corner_open(&c, d, &first, m, &chosen);
        for (size_t i = full ? 0 : 3; i < ARRAY_LEN(ms); i += full ? 1 : 6) {
            const hone_problem problem = corner_problem(scheduled[_i].recipe, ms[i], n, k);
            char why[240];
            /* mma.sync has no persistent grid, and splits tiles for the SMs that there are. */
            const int32_t sms = strcmp(scheduled[_i].device, HOPPER) == 0 ? 2 : 0;
            ck_assert(corner_plan(&c, &problem, sms, p));
            corner_schedules(&c, &problem, p, full ? 8 : 2, why);
            ck_assert_msg(why[0] == '\0', "%s at m=%d: %s", c.text, (int)ms[i], why);
            runs++;
        }
        corner_close(&c);
        device_close(d);
        printf("%s: %d sizes, %d schedules each\n", scheduled[_i].config, runs, full ? 16 : 4);
    }
    free(p);
}
END_TEST

static bool asked_for(const char *part)
{
    const char *asked = getenv("HONE_CORNER_PART");

    return asked == NULL || strcmp(asked, part) == 0;
}

int main(void)
{
    TCase *tests = tcase_create("corner");

    setvbuf(stdout, NULL, _IOLBF, 0); /* hours: what was proved is told at once */
    if (!prove_fixture_start("corner")) {
        return 0;
    }
    if (asked_for("corners")) {
        tcase_add_loop_test(tests, corners_are_proved, 0, (int)(ARRAY_LEN(rows) * ARRAY_LEN(nks)));
        tcase_add_test(tests, some_grids_had_fewer_sms_than_tiles);
    }
    if (asked_for("shapes")) {
        tcase_add_loop_test(tests, shapes_of_models_are_proved, 0,
                            (int)(ARRAY_LEN(shape_rows) * ARRAY_LEN(shapes)));
        tcase_add_loop_test(tests, backward_shapes_are_proved, 0, (int)ARRAY_LEN(shapes));
    }
    if (asked_for("schedules")) {
        tcase_add_loop_test(tests, every_schedule_gives_the_same_bits, 0,
                            (int)ARRAY_LEN(scheduled));
    }
    const int result = suite_run_here("bench/corner", tests); /* the compiler has threads */
    printf("%d proofs made, %d found in the log\n", count.made, count.logged);
    prove_fixture_stop();
    return result;
}
