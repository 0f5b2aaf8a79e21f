/* index.c - bench_index: what the performance model says of an indexer's decode, scores and choice,
 * for the heads and k of DeepSeek-V3.2, GLM-5 and DeepSeek-V4.1-Flash.
 *
 * Each figure is that of the best config by its manifest's estimate (runtime/default.h): nothing is
 * compiled, and every time is modelled. A roof is the longer of the bytes at the data sheet's
 * bandwidth and the products at the tensor core's peak. With --table it prints the whole table. */
#include "bench/roofline.h"
#include "benchmarks/rows.h"
#include "core/problem.h"
#include "runtime/default.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const devices[] = {"h20", "h200", "rtx4090", "rtx5090"};
static const int64_t contexts[] = {4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288};
static const int64_t batches[] = {1, 4, 16, 64, 256};
enum { CONTEXTS = ARRAY_LEN(contexts), BATCHES = ARRAY_LEN(batches) };

/* What a launch of so many keys and its own time is no longer lost in. */
#define MANY_KEYS (INT64_C(1) << 20)
/* Of the roof that a copy reaches, without the launch, where the keys are many and the tensor core
 * is Hopper's: issue 06's bar, and the one of e2m1, which takes three quarters of H200's
 * instructions beside. */
#define BAR      0.90
#define BAR_E2M1 0.85

/* An op's problems of one kind, by batch and context. */
static const struct {
    const char *what, *text; /* batch, context, context again */
    double bar;              /* on Hopper; 0: none */
} kinds[] = {
    {"scores, 64 heads (V3.2)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,heads=64,record=index_132-split-pow2_amax",
     BAR},
    {"scores, 32 heads (GLM-5, V4.1)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,heads=32,record=index_132-split-pow2_amax",
     BAR},
    {"scores of e2m1, 32 heads (V4.1)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,heads=32,record=index_68-split-pow2_amax",
     BAR_E2M1},
    {"scores, 64 heads by 2 tokens (V3.2)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,next_n=2,heads=64,"
     "record=index_132-split-pow2_amax",
     BAR},
    {"scores, 32 heads by 6 tokens (V4.1)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,next_n=6,heads=32,"
     "record=index_132-split-pow2_amax",
     0},
    {"scores of e2m1, 32 heads by 6 tokens (V4.1)",
     "mqa_logits_paged:batch=%lld,width=%lld,pages=8193,next_n=6,heads=32,"
     "record=index_68-split-pow2_amax",
     0},
    {"choice, k 2048 (V3.2, GLM-5)", "topk:rows=%lld,width=%lld,k=2048", 0},
    {"choice, k 512 (V4.1)", "topk:rows=%lld,width=%lld,k=512", 0},
};

/* Query tokens of a request, of 64 requests of 32,768 keys each. */
static const struct {
    const char *what, *heads_and_record;
} passes[] = {
    {"64 heads", "heads=64,record=index_132-split-pow2_amax"},
    {"32 heads", "heads=32,record=index_132-split-pow2_amax"},
    {"32 heads, e2m1", "heads=32,record=index_68-split-pow2_amax"},
};
enum { TOKENS = 8 };

/* The message, and the end: a benchmark has no way on. */
static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_index: %s\n", error->message);
        exit(1);
    }
}

/* Of one problem: the roof's share of the time, and of the time without the launch at what a copy
 * reaches of the bandwidth; NaN where nothing serves it. */
typedef struct share {
    double whole, own, ns;
    perf_bound roof;
} share;

static share share_of(const templates *t, const gpu *g, const char *text)
{
    default_choice best;
    hone_error error = {0};
    hone_problem problem;
    size_t count = 0;

    must(hone_problem_parse(text, &problem, &error), &error);
    must(default_rank(t, &problem, g, 0, &best, 1, &count, NULL, &error), &error);
    if (count == 0) {
        return (share){NAN, NAN, NAN, PERF_LAUNCH};
    }
    const roofline r = roofline_of(g, &problem, best.ns);
    const double copied = r.bound == PERF_DRAM ? r.roof_ns / PERF_DRAM_SHARE : r.roof_ns;
    return (share){r.percent / 100, copied / (best.ns - g->launch_ns), best.ns, r.bound};
}

static void print_rule(size_t len)
{
    printf("\n|---|");
    for (size_t i = 0; i < len; i++) {
        printf("---|");
    }
    printf("\n");
}

static void print_heading(const gpu *g, size_t kind)
{
    printf("\n%s, %s:\n\n| context |", g->facts.name, kinds[kind].what);
    for (size_t b = 0; b < BATCHES; b++) {
        printf(" %lld |", (long long)batches[b]);
    }
    print_rule(BATCHES);
}

/* Percent of the roof, with a t where the tensor core is. */
static void print_shares(const share *line, size_t len)
{
    for (size_t b = 0; b < len; b++) {
        if (isnan(line[b].whole)) {
            printf(" - |");
        } else {
            printf(" %.0f%s |", line[b].whole * 100, line[b].roof == PERF_TENSOR ? " t" : "");
        }
    }
    printf("\n");
}

static void look_at(const templates *t, const gpu *g, size_t kind, bool table, json_t *rows)
{
    double least = INFINITY, most = 0;
    char name[160];

    if (table) {
        print_heading(g, kind);
    }
    for (size_t c = 0; c < CONTEXTS; c++) {
        share line[BATCHES];
        for (size_t b = 0; b < BATCHES; b++) {
            char text[256];
            snprintf(text, sizeof text, kinds[kind].text, (long long)batches[b],
                     (long long)contexts[c]);
            line[b] = share_of(t, g, text);
            most = fmax(most, line[b].whole);
            if (batches[b] * contexts[c] >= MANY_KEYS) {
                least = fmin(least, line[b].own);
            }
        }
        if (table) {
            printf("| %lldk |", (long long)contexts[c] / 1024);
            print_shares(line, BATCHES);
        }
    }
    const bool hopper = g->facts.arch == 90;
    snprintf(name, sizeof name, "%s %s, 2^20 keys and more, the launch apart", g->slug,
             kinds[kind].what);
    rows_add(rows, name, least, "of the reachable roof",
             kinds[kind].bar > 0 && hopper ? ROWS_AT_LEAST : ROWS_NO_BAR, kinds[kind].bar);
    snprintf(name, sizeof name, "%s %s, best", g->slug, kinds[kind].what);
    rows_add(rows, name, most, "of the roof", ROWS_NO_BAR, 0);
}

/* Scores by query tokens that pass together; the least of them is held on H20. */
static void look_at_tokens(const templates *t, const gpu *g, bool table, json_t *rows)
{
    char name[160];

    if (table) {
        printf("\n%s, 64 requests of 32k, query tokens of a request:\n\n| |", g->facts.name);
        for (int n = 1; n <= TOKENS; n++) {
            printf(" %d |", n);
        }
        print_rule(TOKENS);
    }
    for (size_t p = 0; p < ARRAY_LEN(passes); p++) {
        share line[TOKENS];
        double least = INFINITY;
        for (int n = 0; n < TOKENS; n++) {
            char text[256];
            snprintf(text, sizeof text,
                     "mqa_logits_paged:batch=64,width=32768,pages=8193,next_n=%d,%s", n + 1,
                     passes[p].heads_and_record);
            line[n] = share_of(t, g, text);
            least = fmin(least, line[n].own);
        }
        if (table) {
            printf("| %s |", passes[p].what);
            print_shares(line, TOKENS);
        }
        snprintf(name, sizeof name, "%s scores, %s, 1 to 8 tokens, the launch apart", g->slug,
                 passes[p].what);
        rows_add(rows, name, least, "of the reachable roof",
                 strcmp(g->slug, "h20") == 0 ? ROWS_AT_LEAST : ROWS_NO_BAR, BAR);
    }
}

/* Scores and their choice, two launches: which share of both the choice takes, which is the most
 * that a kernel which chooses while it scores could save. */
static const struct {
    const char *what;
    size_t scores, choice; /* of kinds */
} decodes[] = {
    {"64 heads, k 2048 (V3.2)", 0, 6},
    {"32 heads, k 512 (V4.1)", 1, 7},
    {"e2m1, 32 heads, k 512 (V4.1)", 2, 7},
};

static void look_at_both(const templates *t, const gpu *g, size_t decode, bool table, json_t *rows)
{
    double least = INFINITY, most = 0;
    char name[160];

    if (table) {
        printf("\n%s, choice's percent of scores and choice, %s:\n\n", g->facts.name,
               decodes[decode].what);
    }
    for (size_t c = 0; c < CONTEXTS; c++) {
        if (table) {
            printf("| %lldk |", (long long)contexts[c] / 1024);
        }
        for (size_t b = 0; b < BATCHES; b++) {
            const size_t pair[2] = {decodes[decode].scores, decodes[decode].choice};
            share both[2];
            for (size_t i = 0; i < 2; i++) {
                char text[256];
                snprintf(text, sizeof text, kinds[pair[i]].text, (long long)batches[b],
                         (long long)contexts[c]);
                both[i] = share_of(t, g, text);
            }
            const double part = both[1].ns / (both[0].ns + both[1].ns);
            if (table) {
                printf(" %.0f |", part * 100);
            }
            if (batches[b] * contexts[c] >= MANY_KEYS && !isnan(part)) {
                least = fmin(least, part);
                most = fmax(most, part);
            }
        }
        if (table) {
            printf("\n");
        }
    }
    snprintf(name, sizeof name, "%s choice's share of scores and choice, %s, 2^20 keys, least",
             g->slug, decodes[decode].what);
    rows_add(rows, name, least, "of both launches", ROWS_NO_BAR, 0);
    snprintf(name, sizeof name, "%s choice's share of scores and choice, %s, 2^20 keys, most",
             g->slug, decodes[decode].what);
    rows_add(rows, name, most, "of both launches", ROWS_NO_BAR, 0);
}

int main(int argc, char **argv)
{
    const bool table = argc == 2 && strcmp(argv[1], "--table") == 0;
    const bool as_json = !table && rows_want_json(argc, argv);
    json_t *rows = json_array();
    templates *t = NULL;
    hone_error error;
    bool good = true;
    gpu g;

    must(templates_open(&t, &error), &error);
    for (size_t d = 0; d < ARRAY_LEN(devices); d++) {
        must(gpu_find(devices[d], &g, &error), &error);
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            look_at(t, &g, k, table, rows);
        }
        look_at_tokens(t, &g, table, rows);
        for (size_t k = 0; k < ARRAY_LEN(decodes); k++) {
            look_at_both(t, &g, k, table, rows);
        }
    }
    if (!table) {
        good = rows_print(rows, as_json);
    }
    json_decref(rows);
    templates_close(t);
    return good ? 0 : 1;
}
