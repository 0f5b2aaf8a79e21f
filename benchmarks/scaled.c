/* scaled.c - bench_scaled: what the performance model says of block-scaled products beside plain
 * ones on sm_120, for the shapes of DeepSeek-V4.1-Flash, and of weights of four bits beside eight.
 *
 * Each figure is that of a template's best config by its manifest's estimate (runtime/default.h):
 * nothing is compiled, and every time is modelled. With --table it prints the whole table. */
#include "benchmarks/rows.h"
#include "core/problem.h"
#include "models/shapes.h"
#include "runtime/default.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const model_name = "deepseek-v4.1-flash";
static const char *const devices[] = {"rtx5090", "rtx-pro-6000"};
static const int64_t rows_of_a[] = {1, 16, 64, 512, 4096};
enum { SIZES = ARRAY_LEN(rows_of_a), RANKED = 32768 };

/* The products that are compared: a recipe by a template. */
enum { PLAIN, SCALED, NIBBLES, WAYS };
static const struct {
    const char *template_name, *recipe;
} ways[WAYS] = {
    [PLAIN] = {"fp8_gemm/mma_sync", "ue8m0-1x32-32x32"},
    [SCALED] = {"fp8_gemm/sm120_block_scale", "ue8m0-1x32-32x32"},
    [NIBBLES] = {"fp8_gemm/sm120_block_scale", "ue8m0-1x32-e2m1/1x32"},
};

/* The message, and the end: a benchmark has no way on. */
static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_scaled: %s\n", error->message);
        exit(1);
    }
}

/* The best of one template for a shape under a recipe. */
static default_choice best_of(const templates *t, const gpu *g, const hone_fp8_gemm *p, int way)
{
    default_choice *ranked = calloc(RANKED, sizeof *ranked), found = {.m = NULL};
    hone_error error = {0};
    hone_problem problem;
    size_t count = 0;
    char text[256];

    snprintf(text, sizeof text,
             "fp8_gemm:m=%lld,n=%lld,k=%lld,batch=%lld,recipe=%s,batch_layout=%s", (long long)p->m,
             (long long)p->n, (long long)p->k, (long long)p->batch, ways[way].recipe,
             p->batch > 1 ? "inner" : "outer");
    must(hone_problem_parse(text, &problem, &error), &error);
    must(ranked == NULL ? HONE_NO_MEMORY
                        : default_rank(t, &problem, g, 0, ranked, RANKED, &count, NULL, &error),
         &error);
    for (size_t i = 0; i < count && found.m == NULL; i++) {
        if (strcmp(manifest_name(ranked[i].m), ways[way].template_name) == 0) {
            found = ranked[i];
        }
    }
    free(ranked);
    if (found.m == NULL) {
        fprintf(stderr, "bench_scaled: %s does not serve %s\n", ways[way].template_name, text);
        exit(1);
    }
    return found;
}

/* Sums of logarithms over the shapes of one size. */
typedef struct summary {
    double scaled, nibbles, least;
    size_t len;
} summary;

static void look_at(const templates *t, const gpu *g, const llm_problem *p, bool table, summary *s)
{
    const hone_fp8_gemm *gemm = &p->problem.as.fp8_gemm;
    default_choice c[WAYS];

    for (int i = 0; i < WAYS; i++) {
        c[i] = best_of(t, g, gemm, i);
    }
    const double scaled = c[PLAIN].ns / c[SCALED].ns, nibbles = c[SCALED].ns / c[NIBBLES].ns;
    s->least = s->len == 0 || scaled < s->least ? scaled : s->least;
    s->scaled += log(scaled);
    s->nibbles += log(nibbles);
    s->len++;
    if (table) {
        char batch[32] = "";
        if (gemm->batch > 1) {
            snprintf(batch, sizeof batch, " × %lld", (long long)gemm->batch);
        }
        printf("| %s | %lld × %lld%s | %lld | %.1f | %.1f | %.2f | %.1f | %.2f | %s, %s, %s |\n",
               p->use, (long long)gemm->n, (long long)gemm->k, batch, (long long)gemm->m,
               c[PLAIN].ns / 1e3, c[SCALED].ns / 1e3, scaled, c[NIBBLES].ns / 1e3, nibbles,
               perf_bound_name(c[PLAIN].bound), perf_bound_name(c[SCALED].bound),
               perf_bound_name(c[NIBBLES].bound));
    }
}

static void print_heading(const gpu *g)
{
    printf("\n### %s\n\n", g->facts.name);
    puts("| layer | n × k | M | mma_sync, us | block_scale, us | speed | with e2m1, us "
         "| speed | bound |");
    puts("|---|---|---|---|---|---|---|---|---|");
}

static void add_rows(json_t *rows, const gpu *g, const summary s[SIZES])
{
    char name[128];

    for (size_t i = 0; i < SIZES; i++) {
        const double len = (double)s[i].len;
        snprintf(name, sizeof name, "%s M=%lld, block scales", g->slug, (long long)rows_of_a[i]);
        rows_add(rows, name, exp(s[i].scaled / len), "of mma_sync's speed", ROWS_NO_BAR, 0);
        snprintf(name, sizeof name, "%s M=%lld, block scales, slowest", g->slug,
                 (long long)rows_of_a[i]);
        rows_add(rows, name, s[i].least, "of mma_sync's speed", ROWS_NO_BAR, 0);
        snprintf(name, sizeof name, "%s M=%lld, weights of e2m1", g->slug, (long long)rows_of_a[i]);
        rows_add(rows, name, exp(s[i].nibbles / len), "of e4m3's speed", ROWS_NO_BAR, 0);
    }
}

static void look_at_device(const templates *t, const char *slug, bool table, json_t *rows)
{
    llm_problem *problems = NULL;
    size_t len = 0;
    hone_error error;
    llm *model = NULL;
    summary s[SIZES] = {{0}};
    gpu g;

    must(gpu_find(slug, &g, &error), &error);
    must(llm_open(model_name, &model, &error), &error);
    must(llm_problems(model, 1, 1, rows_of_a, SIZES, "fp8_gemm", &problems, &len, &error), &error);
    if (table) {
        print_heading(&g);
    }
    for (size_t i = 0; i < len; i++) {
        for (size_t size = 0; size < SIZES; size++) {
            if (problems[i].problem.as.fp8_gemm.m == rows_of_a[size]) {
                look_at(t, &g, &problems[i], table, &s[size]);
            }
        }
    }
    add_rows(rows, &g, s);
    free(problems);
    llm_close(model);
}

int main(int argc, char **argv)
{
    const bool table = argc == 2 && strcmp(argv[1], "--table") == 0;
    const bool as_json = !table && rows_want_json(argc, argv);
    json_t *rows = json_array();
    templates *t = NULL;
    hone_error error;
    bool good = true;

    must(templates_open(&t, &error), &error);
    for (size_t d = 0; d < ARRAY_LEN(devices); d++) {
        look_at_device(t, devices[d], table, rows);
    }
    if (!table) {
        good = rows_print(rows, as_json);
    }
    json_decref(rows);
    templates_close(t);
    return good ? 0 : 1;
}
