/* kernels.c - bench_kernels: what the performance model says of fp8 products on Hopper, for every
 * shape of two models: promotion every 32 of K beside every 128.
 *
 * Each figure is that of the analytical default (runtime/default.h): nothing is compiled, and every
 * time is modelled. With --table it prints the whole table, then the rows. */
#include "bench/roofline.h"
#include "benchmarks/rows.h"
#include "core/problem.h"
#include "models/shapes.h"
#include "runtime/default.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BY_128, BY_32, ONE_SCALE, RECIPES };

static const struct {
    const char *name, *recipe;
} recipes[RECIPES] = {
    [BY_128] = {"per-128", "f32-1x128-128x128"},
    [BY_32] = {"per-32", "ue8m0-1x32-32x32"},
    [ONE_SCALE] = {"per-32, one B scale", "e4m3/f32/1x32+e4m3/f32/128x128"},
};

static const char *const models[] = {"deepseek-v3.2", "deepseek-v4.1-flash"};
static const int64_t rows_of_a[] = {1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
/* From so many rows on a product is bound by multiplying, and the bars stand. */
#define LARGE 512

/* How much of per-128's speed must be left for each shape, from per32.md 2 and 3: one promotion's
 * multiply-adds take as long as its products on H200, a quarter of that on H20. */
static const struct {
    const char *gpu;
    double bars[RECIPES];
} devices[] = {{"h20", {0, 0.95, 0.95}}, {"h200", {0, 0.72, 0.78}}};

/* One shape at one M on one GPU. */
typedef struct figure {
    roofline roof[RECIPES];
    default_choice choice[RECIPES];
} figure;

typedef struct summary {
    double worst[RECIPES];     /* share of per-128's speed, LARGE rows and more */
    char slowest[RECIPES][64]; /* the shape of that */
    size_t holding[RECIPES];   /* shapes at the bar or above */
    double log_left[RECIPES];  /* the same, logarithms, summed */
    double log_share[RECIPES]; /* of the roof */
    size_t len;
} summary;

/* The message, and the end: a benchmark has no way on. */
static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_kernels: %s\n", error->message);
        exit(1);
    }
}

/* The problem with another recipe, and the layouts of scales that follow from it. */
static hone_problem with_recipe(const hone_problem *from, const char *recipe)
{
    const hone_fp8_gemm *p = &from->as.fp8_gemm;
    hone_problem made;
    hone_error error;
    char text[256];

    snprintf(text, sizeof text,
             "fp8_gemm:m=%lld,n=%lld,k=%lld,batch=%lld,recipe=%s,batch_layout=%s", (long long)p->m,
             (long long)p->n, (long long)p->k, (long long)p->batch, recipe,
             p->batch > 1 ? "inner" : "outer");
    must(hone_problem_parse(text, &made, &error), &error);
    return made;
}

static figure figure_of(const templates *t, const gpu *g, const hone_problem *problem)
{
    figure f = {0};
    hone_error error;

    for (int i = 0; i < RECIPES; i++) {
        const hone_problem p = with_recipe(problem, recipes[i].recipe);
        size_t count = 0;

        must(default_rank(t, &p, g, 0, &f.choice[i], 1, &count, NULL, &error), &error);
        if (count == 0) {
            fprintf(stderr, "bench_kernels: nothing serves %s on %s\n", recipes[i].recipe, g->slug);
            exit(1);
        }
        f.roof[i] = roofline_of(g, &p, f.choice[i].ns);
    }
    return f;
}

static double speed_left(const figure *f, int recipe)
{
    return f->choice[BY_128].ns / f->choice[recipe].ns;
}

static void print_heading(const gpu *g, const char *model)
{
    printf("\n### %s, %s\n\n", g->facts.name, model);
    puts("| layer | n × k | M | 1×128·128×128 | of roof | 1×32·32×32 | of roof | of per-128 "
         "| 1×32·128×128 | of per-128 | bound |");
    puts("|---|---|---|---|---|---|---|---|---|---|---|");
}

static void print_figure(const llm_problem *p, const figure *f)
{
    const hone_fp8_gemm *gemm = &p->problem.as.fp8_gemm;
    char batch[32] = "";

    if (gemm->batch > 1) {
        snprintf(batch, sizeof batch, " × %lld", (long long)gemm->batch);
    }
    printf("| %s | %lld × %lld%s | %lld | %.0f | %.0f %% | %.0f | %.0f %% | %.2f | %.0f | %.2f | "
           "%s, %s, "
           "%s |\n",
           p->use, (long long)gemm->n, (long long)gemm->k, batch, (long long)gemm->m,
           f->roof[BY_128].tflops, f->roof[BY_128].percent, f->roof[BY_32].tflops,
           f->roof[BY_32].percent, speed_left(f, BY_32), f->roof[ONE_SCALE].tflops,
           speed_left(f, ONE_SCALE), perf_bound_name(f->choice[BY_128].bound),
           perf_bound_name(f->choice[BY_32].bound), perf_bound_name(f->choice[ONE_SCALE].bound));
}

static void add_figure(summary *s, const hone_fp8_gemm *p, const figure *f,
                       const double bars[RECIPES])
{
    for (int i = 0; i < RECIPES; i++) {
        double left = speed_left(f, i);
        if (s->len == 0 || left < s->worst[i]) {
            s->worst[i] = left;
            snprintf(s->slowest[i], sizeof s->slowest[i], "m=%lld n=%lld k=%lld", (long long)p->m,
                     (long long)p->n, (long long)p->k);
        }
        s->holding[i] += left >= bars[i];
        s->log_left[i] += log(left);
        s->log_share[i] += log(f->roof[i].percent / 100);
    }
    s->len++;
}

static void look_at(const templates *t, const gpu *g, const llm_problem *p, bool table,
                    const double bars[RECIPES], summary *s)
{
    const figure f = figure_of(t, g, &p->problem);

    if (table) {
        print_figure(p, &f);
    }
    if (p->problem.as.fp8_gemm.m >= LARGE) {
        add_figure(s, &p->problem.as.fp8_gemm, &f, bars);
    }
}

static void look_at_model(const templates *t, const gpu *g, const char *name, bool table,
                          const double bars[RECIPES], summary *s)
{
    size_t skip = 0, len = 0; /* rows need the large ones only */
    llm_problem *problems = NULL;
    hone_error error;
    llm *model = NULL;

    must(llm_open(name, &model, &error), &error);
    while (!table && rows_of_a[skip] < LARGE) {
        skip++;
    }
    must(llm_problems(model, 1, 1, rows_of_a + skip, ARRAY_LEN(rows_of_a) - skip, "fp8_gemm",
                      &problems, &len, &error),
         &error);
    if (table) {
        print_heading(g, name);
    }
    for (size_t i = 0; i < len; i++) { /* by layer, then by M */
        bool first = problems[i].problem.as.fp8_gemm.m == rows_of_a[skip];

        for (size_t k = i; first && k < len; k++) {
            if (strcmp(problems[k].use, problems[i].use) == 0) {
                look_at(t, g, &problems[k], table, bars, s);
            }
        }
    }
    free(problems);
    llm_close(model);
}

static void add_rows(json_t *rows, const char *gpu_name, const double bars[RECIPES],
                     const summary *s)
{
    char name[320];

    for (int i = 0; i < RECIPES; i++) {
        snprintf(name, sizeof name, "%s modelled, %s", gpu_name, recipes[i].name);
        rows_add(rows, name, 100 * exp(s->log_share[i] / (double)s->len), "% roof", ROWS_NO_BAR, 0);
    }
    for (int i = BY_32; i < RECIPES; i++) {
        snprintf(name, sizeof name, "%s %s, mean", gpu_name, recipes[i].name);
        rows_add(rows, name, exp(s->log_left[i] / (double)s->len), "of per-128", ROWS_NO_BAR, 0);
        snprintf(name, sizeof name, "%s %s, slowest (%s)", gpu_name, recipes[i].name,
                 s->slowest[i]);
        rows_add(rows, name, s->worst[i], "of per-128", ROWS_AT_LEAST, bars[i]);
        snprintf(name, sizeof name, "%s %s, shapes of %zu at %.2f and more", gpu_name,
                 recipes[i].name, s->len, bars[i]);
        rows_add(rows, name, (double)s->holding[i], "shapes", ROWS_NO_BAR, 0);
    }
}

int main(int argc, char **argv)
{
    bool table = argc == 2 && strcmp(argv[1], "--table") == 0;
    bool as_json = !table && rows_want_json(argc, argv), good = true;
    json_t *rows = json_array();
    templates *t = NULL;
    hone_error error;

    must(templates_open(&t, &error), &error);
    for (size_t d = 0; d < ARRAY_LEN(devices); d++) {
        summary s = {0};
        gpu g;

        must(gpu_find(devices[d].gpu, &g, &error), &error);
        for (size_t i = 0; i < ARRAY_LEN(models); i++) {
            look_at_model(t, &g, models[i], table, devices[d].bars, &s);
        }
        add_rows(rows, g.slug, devices[d].bars, &s);
    }
    if (table) {
        putchar('\n');
    }
    good = rows_print(rows, as_json);
    json_decref(rows);
    templates_close(t);
    return good ? 0 : 1;
}
