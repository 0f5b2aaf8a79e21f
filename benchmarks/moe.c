/* moe.c - bench_moe: what the performance model says of the experts' products of one rank on
 * Hopper: beside a bound that reads each touched expert's weights once, and beside one dense
 * product of as many rows.
 *
 * Each figure is that of the analytical default (runtime/default.h): nothing is compiled, every
 * time is modelled, and tokens choose experts evenly. With --table it prints the whole table. */
#include "bench/roofline.h"
#include "benchmarks/rows.h"
#include "core/problem.h"
#include "models/llm.h"
#include "runtime/default.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Models, degrees of expert parallelism, and the recipe of their experts. */
static const struct {
    const char *model, *recipe, *group, *out_scale;
    int64_t ep;
} cases[] = {
    {"deepseek-v3.2", "f32-1x128-128x128", "128", "f32", 8},
    {"deepseek-v3.2", "f32-1x128-128x128", "128", "f32", 32},
    {"deepseek-v4-flash", "f32-1x128-e2m1/ue8m0/1x32", "128", "f32", 8},
    {"deepseek-v4.1-flash", "ue8m0-1x32-e2m1/1x32", "32", "ue8m0", 8},
    {"deepseek-v4.1-flash", "ue8m0-1x32-32x32", "32", "ue8m0", 8}, /* folded to e4m3 */
};
static const char *const devices[] = {"h20", "h200"};
static const int64_t tokens_of_a_rank[] = {1, 8, 32, 128, 512, 4096};
#define DECODE_MOST 128 /* tokens; from more on rows are contiguous */
#define BAR         0.90

enum { E4M3, E2M1, ELEMENTS }; /* of experts */
static const char *const elements[ELEMENTS] = {"e4m3", "e2m1"};

typedef struct summary {
    /* the least share of the bound, and of the dense product's speed */
    double decode[ELEMENTS], prefill[ELEMENTS];
    char slowest_decode[ELEMENTS][96], slowest_prefill[ELEMENTS][96];
    double wasted; /* logarithm of rows made over rows asked for, summed */
    size_t len;
} summary;

/* The message, and the end: a benchmark has no way on. */
static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_moe: %s\n", error->message);
        exit(1);
    }
}

static default_choice best_of(const templates *t, const gpu *g, const char *text,
                              hone_problem *problem)
{
    default_choice c = {0};
    size_t count = 0;
    hone_error error = {0};

    must(hone_problem_parse(text, problem, &error), &error);
    must(default_rank(t, problem, g, 0, &c, 1, &count, NULL, &error), &error);
    if (count == 0) {
        fprintf(stderr, "bench_moe: nothing serves %s on %s\n", text, g->slug);
        exit(1);
    }
    return c;
}

/* What the touched experts' weights, rows and outputs take at the rate that copies reach, or the
 * products at the tensor unit's peak. */
static double bound_share(const roofline *roof, double ns)
{
    return roof->roof_ns / ns / (roof->bound == PERF_DRAM ? PERF_DRAM_SHARE : 1.0);
}

/* Rows that the config's tiles have, for each that has an expert. */
static double rows_made(const gpu *g, const hone_problem *problem, const default_choice *c)
{
    const hone_moe_gemm *p = &problem->as.moe_gemm;
    const int64_t routed = p->tokens * p->topk;
    const int64_t touched = routed < p->experts ? routed : p->experts;
    const int64_t each = (routed + touched - 1) / touched;
    hone_error error;
    plan made;

    must(manifest_plan(c->m, problem, &g->facts, &c->config, &made, &error), &error);
    const int64_t block = made.cover.rows;
    return (double)((each + block - 1) / block * block) / ((double)routed / (double)touched);
}

typedef struct product {
    const char *name;
    int64_t n, k;
    bool gated;
} product;

static void look_at(const templates *t, const gpu *g, size_t i, const llm *model,
                    const product *what, int64_t tokens, bool table, summary *s)
{
    const int64_t experts = model->experts / cases[i].ep;
    const bool decode = tokens <= DECODE_MOST;
    const int64_t routed = tokens * model->topk;
    char text[512], out[128] = "";
    hone_problem p, one;

    if (what->gated) {
        snprintf(out, sizeof out, ",activation=silu_mul_v4,out=e4m3,out_group=%s,out_scale=%s",
                 cases[i].group, cases[i].out_scale);
    }
    /* masked: room for four times as many as expected */
    const int64_t room = (4 * routed / experts + 128) / 128 * 128;
    char rows[32] = "";
    if (decode) {
        snprintf(rows, sizeof rows, "m=%lld,", (long long)room);
    }
    snprintf(text, sizeof text,
             "moe_gemm:%sn=%lld,k=%lld,experts=%lld,tokens=%lld,topk=%lld,recipe=%s,"
             "group_layout=%s%s",
             rows, (long long)what->n, (long long)what->k, (long long)experts, (long long)tokens,
             (long long)model->topk, cases[i].recipe, decode ? "masked" : "contiguous", out);
    const default_choice c = best_of(t, g, text, &p);
    const roofline roof = roofline_of(g, &p, c.ns);
    snprintf(text, sizeof text, "fp8_gemm:m=%lld,n=%lld,k=%lld,recipe=%s", (long long)routed,
             (long long)what->n, (long long)what->k, cases[i].recipe);
    const default_choice dense = best_of(t, g, text, &one);
    const double made = rows_made(g, &p, &c), of_dense = dense.ns / c.ns;
    const double share = bound_share(&roof, c.ns);
    const int e = one.as.fp8_gemm.recipe.b.element == HONE_DTYPE_E2M1 ? E2M1 : E4M3;

    if (table) {
        printf("| %s, EP %lld | %s %lld × %lld | %lld | %.1f | %.0f %% | %.2f | %.0f %% | %s |\n",
               cases[i].recipe, (long long)cases[i].ep, what->name, (long long)what->n,
               (long long)what->k, (long long)tokens, c.ns / 1e3, 100 * share, of_dense,
               100 * (made - 1), perf_bound_name(c.bound));
    }
    if (decode && (s->decode[e] == 0 || share < s->decode[e])) {
        s->decode[e] = share;
        snprintf(s->slowest_decode[e], sizeof s->slowest_decode[e], "%s EP %lld %s, %lld tokens",
                 cases[i].model, (long long)cases[i].ep, what->name, (long long)tokens);
    }
    /* the dense product has neither gates nor a quantiser */
    if (!decode && !what->gated && (s->prefill[e] == 0 || of_dense < s->prefill[e])) {
        s->prefill[e] = of_dense;
        snprintf(s->slowest_prefill[e], sizeof s->slowest_prefill[e], "%s EP %lld %s, %lld tokens",
                 cases[i].model, (long long)cases[i].ep, what->name, (long long)tokens);
    }
    s->wasted += log(made);
    s->len++;
}

static void look_at_device(const templates *t, const char *slug, bool table, json_t *rows)
{
    summary s = {0};
    hone_error error;
    char name[512];
    gpu g;

    must(gpu_find(slug, &g, &error), &error);
    if (table) {
        printf("\n### %s\n\n", g.facts.name);
        puts("| experts | product n × k | tokens a rank | us | of its bound | of dense | rows made "
             "beyond | bound |");
        puts("|---|---|---|---|---|---|---|---|");
    }
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        llm *model = NULL;
        must(llm_open(cases[i].model, &model, &error), &error);
        const product products[] = {
            {"W13", 2 * model->moe_inter, model->hidden, false},
            {"W13 with SwiGLU and quantiser", 2 * model->moe_inter, model->hidden, true},
            {"W2", model->hidden, model->moe_inter, false}};
        for (size_t w = 0; w < ARRAY_LEN(products); w++) {
            for (size_t k = 0; k < ARRAY_LEN(tokens_of_a_rank); k++) {
                look_at(t, &g, i, model, &products[w], tokens_of_a_rank[k], table, &s);
            }
        }
        llm_close(model);
    }
    const bool judged = strcmp(slug, "h20") == 0;
    for (int e = 0; e < ELEMENTS; e++) {
        const rows_bar bar = judged ? ROWS_AT_LEAST : ROWS_NO_BAR;
        snprintf(name, sizeof name, "%s %s decode, slowest (%s)", slug, elements[e],
                 s.slowest_decode[e]);
        rows_add(rows, name, s.decode[e], "of its bound", bar, BAR);
        snprintf(name, sizeof name, "%s %s prefill, slowest (%s)", slug, elements[e],
                 s.slowest_prefill[e]);
        rows_add(rows, name, s.prefill[e], "of dense", bar, BAR);
    }
    snprintf(name, sizeof name, "%s rows made beyond those asked for", slug);
    rows_add(rows, name, 100 * (exp(s.wasted / (double)s.len) - 1), "%", ROWS_NO_BAR, 0);
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
    if (table) {
        putchar('\n');
    }
    good = rows_print(rows, as_json);
    json_decref(rows);
    templates_close(t);
    return good ? 0 : 1;
}
