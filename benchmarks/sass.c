/* sass.c - bench_sass: the main loop of sm_90a's fp8 product, read from its machine code:
 * what a warp issues for 128 of K, and the share of the tensor peak that an SM of H200 and H20 can
 * reach with that. No time is measured. With --table it prints the table of
 * docs/kernels/fp8_gemm_sass.md. */
#include "benchmarks/rows.h"
#include "tests/templates/static_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The least that the loop must allow on H200, of the tensor peak; on H20 always all of it. */
static const struct {
    const char *recipe;
    double percent;
} bars[] = {
    {"f32-1x128-128x128", 100}, {"f32-1x128-1x128", 100}, {"f32-1x32-32x32", 72},
    {"ue8m0-1x32-32x32", 72},   {"f32-1x32-128x128", 78}, {"ue8m0-1x32-128x128", 78},
};

/* Of the 128x128 tile; 0: no bar. */
static double bar_of(const static_case *c)
{
    for (size_t i = 0; i < ARRAY_LEN(bars); i++) {
        if (c->columns == 128 && strcmp(c->recipe, bars[i].recipe) == 0) {
            return bars[i].percent;
        }
    }
    return 0;
}

/* Limits of a case's tile for 128 of K. */
static sass_limits limits_on(const char *slug, const static_case *c, const sass_count *loop)
{
    gpu g;

    if (gpu_find(slug, &g, NULL) != HONE_OK) {
        return (sass_limits){.tensor_clocks = 0};
    }
    return sass_limits_of(loop, &g, 128.0 * c->rows * c->columns);
}

static void add_rows(json_t *rows, const static_case *c, const sass_count *loop)
{
    char name[160];
    const double bar = bar_of(c);

    snprintf(name, sizeof name, "%s %dx%d, a warp's 128 of K", c->recipe, c->rows, c->columns);
    rows_add(rows, name, static_instructions(c, loop), "instructions", ROWS_NO_BAR, 0);
    snprintf(name, sizeof name, "%s %dx%d, loop on H200", c->recipe, c->rows, c->columns);
    rows_add(rows, name, limits_on("h200", c, loop).tensor_percent, "% of peak",
             bar > 0 ? ROWS_AT_LEAST : ROWS_NO_BAR, bar);
    snprintf(name, sizeof name, "%s %dx%d, loop on H20", c->recipe, c->rows, c->columns);
    rows_add(rows, name, limits_on("h20", c, loop).tensor_percent, "% of peak", ROWS_AT_LEAST,
             99.9);
}

static void print_table_row(const static_case *c, const static_answer *a, const sass_count *loop)
{
    const sass_limits h200 = limits_on("h200", c, loop), h20 = limits_on("h20", c, loop);
    const double passes = static_instructions(c, loop) / loop->instructions;

    printf(
        "| %s | %dx%d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | R%d | %.0f / %.0f / %.0f | %.1f "
        "| %.0f / %.0f / %.0f | %.1f |\n",
        c->recipe, c->rows, c->columns, static_instructions(c, loop),
        loop->kinds[SASS_FFMA] * passes, loop->kinds[SASS_FMUL] * passes,
        loop->kinds[SASS_LDS] * passes, loop->kinds[SASS_GMMA] * passes,
        loop->stall_clocks * passes, a->sass.all.highest_register, h200.tensor_clocks,
        h200.fp32_clocks, h200.issue_clocks, h200.tensor_percent, h20.tensor_clocks,
        h20.fp32_clocks, h20.issue_clocks, h20.tensor_percent);
}

static void print_table_head(void)
{
    printf("| recipe | tile | SASS | FFMA | FMUL | LDS | QGMMA | stall | max R | H200: tensor / "
           "FP32 / "
           "issue | H200 %% | H20: tensor / FP32 / issue | H20 %% |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

/* Compile and add one case; bf16 results stand for the others, whose loops are the same. */
static bool add_case(const static_case *c, const templates *t, jit *j, json_t *rows)
{
    hone_error error = {.status = HONE_OK};
    static_answer a = {.code = NULL};

    if (static_compile(c, t, j, &a, &error) != HONE_OK) {
        fprintf(stderr, "bench_sass: %s: %s\n", c->recipe, error.message);
        return false;
    }
    const sass_loop *l = sass_main_loop(&a.sass);
    if (l != NULL && rows != NULL) {
        add_rows(rows, c, &l->count);
    } else if (l != NULL) {
        print_table_row(c, &a, &l->count);
    }
    static_answer_free(&a);
    return l != NULL;
}

int main(int argc, char **argv)
{
    const bool table = argc == 2 && strcmp(argv[1], "--table") == 0;
    const bool json = !table && rows_want_json(argc, argv);
    const jit_options options = {.workers = 1};
    json_t *rows = table ? NULL : json_array();
    templates *t = NULL;
    jit *j = NULL;
    bool fine = templates_open(&t, NULL) == HONE_OK && jit_open(&options, &j, NULL) == HONE_OK;

    if (table) {
        print_table_head();
    }
    for (size_t i = 0; fine && i < static_cases_len; i++) {
        const static_case *c = &static_cases[i];
        fine = c->more[0] != '\0' || add_case(c, t, j, rows);
    }
    fine = fine && (table || rows_print(rows, json));
    json_decref(rows);
    jit_close(j);
    templates_close(t);
    return fine ? 0 : 1;
}
