/* moe.c - bench_moe: what the performance model says of the experts' products of one rank on
 * Hopper: beside a bound that reads each touched expert's weights once, and beside one dense
 * product of as many rows.
 *
 * Nothing is compiled, every time is modelled. What any launch takes (perf_launch_ns) is no part of
 * a bound and is taken off a time that is held to one; a second launch is the kernel's own. Tokens
 * choose experts evenly, or by Zipf's law with exponent 1. Evenly a figure is the analytical
 * default's (runtime/default.h); by Zipf that of the best of the first of three rankings, as a
 * sweep under that distribution would find it. With --table it prints the whole table. */
#include "bench/routed_time.h"
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
/* Choices of a ranking that are looked at under another distribution, and as many of the rankings
 * for more tokens and for fewer. */
#define CANDIDATES 256
enum { RANKINGS = 3 };
static const struct {
    int64_t times, over;
} others[RANKINGS - 1] = {{4, 1}, {2, 3}};

enum { EVENLY, ZIPF, SPREADS }; /* how tokens choose */
static const char *const spreads[SPREADS] = {"balanced", "zipf"};

enum { E4M3, E2M1, ELEMENTS }; /* of experts */
static const char *const elements[ELEMENTS] = {"e4m3", "e2m1"};

/* The least of what was seen, and where. */
typedef struct least {
    double share;
    char where[96];
} least;

typedef struct summary {
    least decode[SPREADS][ELEMENTS]; /* share of the bound, what any launch takes apart */
    least launched[ELEMENTS];        /* the same with it, evenly */
    least prefill[ELEMENTS];         /* of the dense product's speed, evenly */
    double lost;            /* the default's time under ZIPF over the best one's, at most */
    double wasted[SPREADS]; /* logarithm of rows made over rows asked for, summed */
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

/* The best choices of a ranking; ends where there is none. */
static size_t rank(const templates *t, const gpu *g, const char *text, hone_problem *problem,
                   default_choice *out, size_t capacity)
{
    size_t count = 0;
    hone_error error = {0};

    must(hone_problem_parse(text, problem, &error), &error);
    must(default_rank(t, problem, g, 0, out, capacity, &count, NULL, &error), &error);
    if (count == 0) {
        fprintf(stderr, "bench_moe: nothing serves %s on %s\n", text, g->slug);
        exit(1);
    }
    return count;
}

/* What the touched experts' weights, rows and outputs take at the rate that copies reach, or the
 * products at the tensor unit's peak. */
static double bound_share(const roofline *roof, double ns)
{
    return roof->roof_ns / ns / (roof->bound == PERF_DRAM ? PERF_DRAM_SHARE : 1.0);
}

/* The best of the choices on rows that are spread in some way, and how much longer the first of
 * them takes. */
static routed_time best_on(const gpu *g, const hone_problem *problem, const default_choice *choices,
                           size_t len, const routing *how, double *lost)
{
    routed_time best = {0}, first = {0};
    hone_error error;

    for (size_t i = 0; i < len; i++) {
        routed_time one;
        must(routed_time_of(choices[i].m, &choices[i].config, problem, g, how, &one, &error),
             &error);
        first = i == 0 ? one : first;
        best = i == 0 || one.ns < best.ns ? one : best;
    }
    *lost = first.ns / best.ns;
    return best;
}

typedef struct product {
    const char *name;
    int64_t n, k;
    bool gated;
} product;

/* A product of `model` as the op's text, and the dense one of as many rows. */
static void describe(size_t i, const llm *model, const product *what, int64_t tokens, char moe[512],
                     char dense[512])
{
    const bool decode = tokens <= DECODE_MOST;
    char out[128] = "", rows[32] = "";

    if (what->gated) {
        snprintf(out, sizeof out, ",activation=silu_mul_v4,out=e4m3,out_group=%s,out_scale=%s",
                 cases[i].group, cases[i].out_scale);
    }
    if (decode) { /* masked: room for all tokens of all ranks, each once */
        snprintf(rows, sizeof rows, "m=%lld,",
                 (long long)((tokens * cases[i].ep + 127) / 128 * 128));
    }
    snprintf(moe, 512,
             "moe_gemm:%sn=%lld,k=%lld,experts=%lld,tokens=%lld,topk=%lld,recipe=%s,"
             "group_layout=%s%s",
             rows, (long long)what->n, (long long)what->k,
             (long long)(model->experts / cases[i].ep), (long long)tokens, (long long)model->topk,
             cases[i].recipe, decode ? "masked" : "contiguous", out);
    snprintf(dense, 512, "fp8_gemm:m=%lld,n=%lld,k=%lld,recipe=%s",
             (long long)(tokens * model->topk), (long long)what->n, (long long)what->k,
             cases[i].recipe);
}

static void keep_least(least *l, double share, size_t i, const product *what, int64_t tokens)
{
    if (l->share == 0 || share < l->share) {
        l->share = share;
        snprintf(l->where, sizeof l->where, "%s EP %lld %s, %lld tokens", cases[i].model,
                 (long long)cases[i].ep, what->name, (long long)tokens);
    }
}

static void look_at(const templates *t, const gpu *g, size_t i, const llm *model,
                    const product *what, int64_t tokens, bool table, summary *s)
{
    static default_choice choices[RANKINGS * CANDIDATES];
    default_choice dense;
    char text[512], dense_text[512];
    hone_problem p, one, other;

    describe(i, model, what, tokens, text, dense_text);
    rank(t, g, dense_text, &one, &dense, 1);
    size_t len = rank(t, g, text, &p, choices, CANDIDATES);
    /* Where one expert has more than its share, what is good for busier ones may be better, or for
     * those that have less. */
    for (size_t r = 0; r + 1 < RANKINGS; r++) {
        describe(i, model, what, (tokens * others[r].times + others[r].over - 1) / others[r].over,
                 text, dense_text);
        len += rank(t, g, text, &other, choices + len, CANDIDATES);
    }
    const int e = one.as.fp8_gemm.recipe.b.element == HONE_DTYPE_E2M1 ? E2M1 : E4M3;
    for (int spread = EVENLY; spread < SPREADS; spread++) {
        double lost = 0;
        routing how = {0};
        hone_error error;
        must(routing_parse(spreads[spread], &how, &error), &error);
        const routed_time r = best_on(g, &p, choices, spread == EVENLY ? 1 : len, &how, &lost);
        const double made = (double)r.rows_made / (double)r.rows, of_dense = dense.ns / r.ns;
        const double launched = bound_share(&r.roof, r.ns);
        const double share = bound_share(&r.roof, r.ns - perf_launch_ns(g));
        routing_free(&how);
        if (table) {
            printf("| %s, EP %lld | %s %lld × %lld | %lld | %s | %lld | %.1f | %.0f %% | %.0f %% | "
                   "%.2f | %.0f %% | %s |\n",
                   cases[i].recipe, (long long)cases[i].ep, what->name, (long long)what->n,
                   (long long)what->k, (long long)tokens, spreads[spread], (long long)r.touched,
                   r.ns / 1e3, 100 * share, 100 * launched, of_dense, 100 * (made - 1),
                   perf_bound_name(r.bound));
        }
        if (tokens <= DECODE_MOST) {
            keep_least(&s->decode[spread][e], share, i, what, tokens);
            if (spread == EVENLY) {
                keep_least(&s->launched[e], launched, i, what, tokens);
            }
        } else if (!what->gated && spread == EVENLY) { /* dense products have no gates */
            keep_least(&s->prefill[e], of_dense, i, what, tokens);
        }
        s->lost = lost > s->lost ? lost : s->lost;
        s->wasted[spread] += log(made);
    }
    s->len++;
}

static void add_rows(const summary *s, const char *slug, json_t *rows)
{
    const rows_bar bar = strcmp(slug, "h20") == 0 ? ROWS_AT_LEAST : ROWS_NO_BAR;
    char name[512];

    for (int e = 0; e < ELEMENTS; e++) {
        for (int spread = EVENLY; spread < SPREADS; spread++) {
            snprintf(name, sizeof name, "%s %s decode, %s, slowest (%s)", slug, elements[e],
                     spreads[spread], s->decode[spread][e].where);
            rows_add(rows, name, s->decode[spread][e].share, "of its bound", bar, BAR);
        }
        snprintf(name, sizeof name, "%s %s decode, balanced, with the launch, slowest (%s)", slug,
                 elements[e], s->launched[e].where);
        rows_add(rows, name, s->launched[e].share, "of its bound", ROWS_NO_BAR, 0);
        snprintf(name, sizeof name, "%s %s prefill, slowest (%s)", slug, elements[e],
                 s->prefill[e].where);
        rows_add(rows, name, s->prefill[e].share, "of dense", bar, BAR);
    }
    for (int spread = EVENLY; spread < SPREADS; spread++) {
        snprintf(name, sizeof name, "%s rows made beyond those asked for, %s", slug,
                 spreads[spread]);
        rows_add(rows, name, 100 * (exp(s->wasted[spread] / (double)s->len) - 1), "%", ROWS_NO_BAR,
                 0);
    }
    snprintf(name, sizeof name, "%s default's time under zipf, at most", slug);
    rows_add(rows, name, s->lost, "of the best's", ROWS_NO_BAR, 0);
}

static void look_at_device(const templates *t, const char *slug, bool table, json_t *rows)
{
    summary s = {0};
    hone_error error;
    gpu g;

    must(gpu_find(slug, &g, &error), &error);
    if (table) {
        printf("\n### %s\n\n", g.facts.name);
        puts("| experts | product n × k | tokens a rank | chosen | experts touched | us | of its "
             "bound | with the launch | of dense | rows made beyond | bound |");
        puts("|---|---|---|---|---|---|---|---|---|---|---|");
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
    add_rows(&s, slug, rows);
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
