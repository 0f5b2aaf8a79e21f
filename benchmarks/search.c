/* search.c - bench_search: strategies on recorded spaces: best found / optimum after so many
 * evaluations, and the methodology's score (recorded.h).
 *
 * The budget counts each config once, failed ones too; a run is made anew for each budget. Prints a
 * table of spaces and the geometric means over them of the mean and of the median ratio. Warm runs
 * are seeded with the best configs of the other GPUs of the same space, misled ones with their
 * worst. */
#include "benchmarks/recorded.h"
#include "core/random.h"
#include "tuner/strategy.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUDGETS_MOST = 8, SEEDS = 10, POINTS = 1000, NAMES_MOST = 16, RESAMPLES = 1000 };
/* Instead of a number: a tenth of the space, and what the score needs. */
#define TENTH SIZE_MAX
#define SCORE (SIZE_MAX - 1)
/* Spaces whose score needs more evaluations are left out of it. */
#define SCORE_MOST 400

typedef struct options {
    const char *folder, *only, *out;
    const strategy *strategies[NAMES_MOST];
    size_t strategies_len, budgets[BUDGETS_MOST], budgets_len, runs;
    enum { COLD, WARM, MISLED } seeded;
} options;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_search: %s\n", what);
    exit(1);
}

static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fail(error->message);
    }
}

/* ---- Seeds. --------------------------------------------------------------------------------- */

/* The row of rank `rank` of the other GPU, the worst first when misled. */
static size_t row_of_rank(const recorded *other, size_t rank, bool misled)
{
    const double ms = other->sorted[misled ? other->valid - 1 - rank : rank];
    size_t row = 0;

    while (other->ms[row] != ms) {
        row++;
    }
    return row;
}

/* Rank 1 of each other GPU in the folder's order, then rank 2, ...; without repetition. */
static size_t find_seeds(const recorded *list, size_t len, const recorded *own, bool misled,
                         config seeds[SEEDS])
{
    size_t made = 0;
    bool any = true;

    for (size_t rank = 0; made < SEEDS && any; rank++) {
        any = false;
        for (size_t i = 0; i < len && made < SEEDS; i++) {
            const recorded *other = &list[i];
            if (other == own || strcmp(other->space, own->space) != 0 || rank >= other->valid) {
                continue;
            }
            const config c = other->configs[row_of_rank(other, rank, misled)];
            bool twice = false;
            any = true;
            for (size_t k = 0; k < made; k++) {
                twice = twice || memcmp(&seeds[k], &c, sizeof c) == 0;
            }
            if (!twice) {
                seeds[made++] = c;
            }
        }
    }
    return made;
}

/* ---- Runs. ---------------------------------------------------------------------------------- */

/* One run: the rows in their order. Returns how many. */
static size_t run(const recorded *r, const strategy *s, const strategy_problem *p, uint32_t *trace)
{
    hone_error error = {0};
    void *state = calloc(1, s->state_size);
    bool found = true;
    size_t len = 0;

    if (state == NULL) {
        fail("no memory");
    }
    must(s->start(state, p, &error), &error);
    while (len < p->budget) {
        candidate c;
        must(s->next(state, &c, &found, &error), &error);
        if (!found) {
            break;
        }
        const size_t row = recorded_row(r, &c.config);
        trace[len++] = (uint32_t)row;
        if (s->learn != NULL) {
            must(s->learn(state, &c, r->ms[row] * 1e6, &error), &error);
        }
    }
    s->stop(state);
    free(state);
    return len;
}

/* Best found / optimum; a run without a valid config counts as the worst time. */
static double ratio_of(const recorded *r, const uint32_t *trace, size_t len)
{
    double best = r->sorted[r->valid - 1];

    for (size_t i = 0; i < len; i++) {
        best = fmin(best, r->ms[trace[i]]);
    }
    return best / r->sorted[0];
}

typedef struct result {
    double *ratios; /* of each run */
    double mean, median, seconds;
} result;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void write_run(FILE *out, const recorded *r, const char *name, size_t budget, size_t seed,
                      const uint32_t *trace, size_t len)
{
    fprintf(out,
            "{\"space\": \"%s\", \"gpu\": \"%s\", \"strategy\": \"%s\", \"budget\": %zu, \"seed\": "
            "%zu, \"n\": %zu, \"wall_s\": 0, \"trace\": [",
            r->space, r->gpu, name, budget, seed, len);
    for (size_t i = 0; i < len; i++) {
        fprintf(out, "%s%u", i > 0 ? ", " : "", trace[i]);
    }
    fprintf(out, "]}\n");
}

static result run_all(const options *o, const recorded *list, size_t len, const recorded *r,
                      const strategy *s, size_t budget, FILE *out, double *score)
{
    config seeds[SEEDS];
    const size_t seeds_len =
        o->seeded == COLD ? 0 : find_seeds(list, len, r, o->seeded == MISLED, seeds);
    uint32_t *traces = malloc((budget + 1) * o->runs * sizeof *traces);
    size_t *lens = malloc(o->runs * sizeof *lens);
    result made = {.ratios = malloc(o->runs * sizeof *made.ratios)};
    const clock_t from = clock();

    if (traces == NULL || lens == NULL || made.ratios == NULL) {
        fail("no memory");
    }
    for (size_t i = 0; i < o->runs; i++) {
        const strategy_problem p = {.definition = r->m,
                                    .budget = budget,
                                    .seed = 1000 + i,
                                    .seeds = seeds,
                                    .seeds_len = seeds_len};
        uint32_t *trace = traces + i * budget;
        lens[i] = run(r, s, &p, trace);
        made.ratios[i] = ratio_of(r, trace, lens[i]);
        made.mean += made.ratios[i] / (double)o->runs;
        if (out != NULL) {
            write_run(out, r, s->name, budget, i, trace, lens[i]);
        }
    }
    made.seconds = (double)(clock() - from) / CLOCKS_PER_SEC;
    if (score != NULL) {
        recorded_score(r, traces, lens, o->runs, budget, score, POINTS);
    }
    double *sorted = malloc(o->runs * sizeof *sorted);
    if (sorted != NULL) {
        memcpy(sorted, made.ratios, o->runs * sizeof *sorted);
        qsort(sorted, o->runs, sizeof *sorted, by_value);
        made.median = (sorted[(o->runs - 1) / 2] + sorted[o->runs / 2]) / 2;
    }
    free(sorted);
    free(traces);
    free(lens);
    return made;
}

/* ---- Tables. -------------------------------------------------------------------------------- */

/* 95 % of bootstrap resamples of the runs: the geometric mean over spaces of the mean ratio. */
static void interval(const result *results, size_t spaces, size_t runs, double *low, double *high)
{
    double means[RESAMPLES];
    uint64_t seed = 7;

    for (int k = 0; k < RESAMPLES; k++) {
        double logs = 0;
        for (size_t i = 0; i < spaces; i++) {
            double sum = 0;
            for (size_t n = 0; n < runs; n++) {
                sum += results[i].ratios[random_below(&seed, runs)];
            }
            logs += log(sum / (double)runs);
        }
        means[k] = exp(logs / (double)spaces);
    }
    qsort(means, RESAMPLES, sizeof *means, by_value);
    *low = means[RESAMPLES / 40];
    *high = means[RESAMPLES - 1 - RESAMPLES / 40];
}

static void show_budget(const options *o, const recorded *list, size_t len, const strategy *s,
                        size_t budget, FILE *out)
{
    result *results = calloc(len, sizeof *results);
    double logs = 0, medians = 0, seconds = 0, low = 0, high = 0;

    if (results == NULL) {
        fail("no memory");
    }
    for (size_t i = 0; i < len; i++) {
        const size_t own = budget == TENTH ? list[i].len / 10 : budget;
        results[i] = run_all(o, list, len, &list[i], s, own, out, NULL);
        logs += log(results[i].mean);
        medians += log(results[i].median);
        seconds += results[i].seconds;
        printf("| %s | %s %s | %zu%s | %.3f | %.3f |\n", s->name, list[i].space, list[i].gpu, own,
               budget == TENTH ? " (10 %)" : "", results[i].mean, results[i].median);
    }
    interval(results, len, o->runs, &low, &high);
    printf("| %s | all %zu | %s%zu | **%.3f** [%.3f, %.3f] | %.3f | %.1f s\n", s->name, len,
           budget == TENTH ? "10 % = " : "", budget == TENTH ? 0 : budget, exp(logs / (double)len),
           low, high, exp(medians / (double)len), seconds);
    fflush(stdout);
    for (size_t i = 0; i < len; i++) {
        free(results[i].ratios);
    }
    free(results);
}

static void show_score(const options *o, const recorded *list, size_t len, const strategy *s,
                       FILE *out)
{
    double curve[POINTS], sum[POINTS] = {0}, total = 0, squares = 0;
    size_t used = 0;

    for (size_t i = 0; i < len; i++) {
        const size_t needs = recorded_cutoff(&list[i], 0.95);
        if (needs > SCORE_MOST) {
            continue;
        }
        double own = 0;
        const size_t budget = needs + needs / 10 + 4;
        result r = run_all(o, list, len, &list[i], s, budget, out, curve);
        for (int k = 0; k < POINTS; k++) {
            sum[k] += curve[k];
            own += curve[k] / POINTS;
        }
        free(r.ratios);
        used++;
        printf("| %s | %s %s | score to %zu | %.3f |\n", s->name, list[i].space, list[i].gpu, needs,
               own);
    }
    for (int k = 0; k < POINTS && used > 0; k++) {
        total += sum[k] / (double)used / POINTS;
        squares += sum[k] * sum[k] / ((double)used * (double)used) / POINTS;
    }
    printf("| %s | all %zu | score | **%.3f** | %.3f |\n", s->name, used, total,
           sqrt(fmax(0, squares - total * total)));
    fflush(stdout);
}

/* ---- Options. ------------------------------------------------------------------------------- */

static void read_budgets(options *o, char *text)
{
    for (char *save = NULL, *word = strtok_r(text, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        const size_t value = strtoul(word, NULL, 10);
        if (o->budgets_len == BUDGETS_MOST) {
            fail("too many budgets");
        }
        o->budgets[o->budgets_len++] = strcmp(word, "10%") == 0     ? TENTH
                                       : strcmp(word, "score") == 0 ? SCORE
                                                                    : value;
        const size_t last = o->budgets[o->budgets_len - 1];
        if (last < SCORE && (value == 0 || value > 100000)) {
            fail("a budget is a number, 10% or score");
        }
    }
}

static void read_strategies(options *o, char *text)
{
    for (char *save = NULL, *word = strtok_r(text, ",", &save); word != NULL;
         word = strtok_r(NULL, ",", &save)) {
        const strategy *s = strategy_find(word);
        if (s == NULL || o->strategies_len == NAMES_MOST) {
            fail("no such strategy");
        }
        o->strategies[o->strategies_len++] = s;
    }
}

static void read_options(int argc, char **argv, options *o)
{
    static const struct option known[] = {
        {"spaces", 1, NULL, 'f'}, {"only", 1, NULL, 'o'},   {"strategy", 1, NULL, 's'},
        {"budget", 1, NULL, 'b'}, {"runs", 1, NULL, 'n'},   {"out", 1, NULL, 'w'},
        {"warm", 0, NULL, 'W'},   {"misled", 0, NULL, 'M'}, {NULL, 0, NULL, 0}};
    char budgets[] = "20,50,100,200", strategies[] = "guided,random";

    for (int key = 0; (key = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        switch (key) {
        case 'f':
            o->folder = optarg;
            break;
        case 'o':
            o->only = optarg;
            break;
        case 's':
            read_strategies(o, optarg);
            break;
        case 'b':
            read_budgets(o, optarg);
            break;
        case 'n':
            o->runs = strtoul(optarg, NULL, 10);
            break;
        case 'w':
            o->out = optarg;
            break;
        case 'W':
        case 'M':
            o->seeded = key == 'W' ? WARM : MISLED;
            break;
        default:
            fail("bench_search --spaces FOLDER [--only SPACE__GPU,...] [--strategy NAME,...] "
                 "[--budget N|10%|score,...] [--runs N] [--warm|--misled] [--out RUNS.jsonl]");
        }
    }
    if (o->budgets_len == 0) {
        read_budgets(o, budgets);
    }
    if (o->strategies_len == 0) {
        read_strategies(o, strategies);
    }
    if (o->runs == 0 || o->runs > 10000) {
        fail("1 to 10,000 runs");
    }
}

int main(int argc, char **argv)
{
    options o = {.runs = 100};
    recorded *list = NULL;

    read_options(argc, argv, &o);
    if (o.folder == NULL) {
        printf("SKIP: no recorded spaces (--spaces FOLDER)\n");
        return 0;
    }
    const size_t len = recorded_open(o.folder, o.only, &list);
    FILE *out = o.out != NULL ? fopen(o.out, "a") : NULL;
    if (len == 0 || (o.out != NULL && out == NULL)) {
        fail(len == 0 ? "the folder holds no such space" : "cannot write the runs");
    }
    for (size_t s = 0; s < o.strategies_len; s++) {
        for (size_t b = 0; b < o.budgets_len; b++) {
            if (o.budgets[b] == SCORE) {
                show_score(&o, list, len, o.strategies[s], out);
            } else {
                show_budget(&o, list, len, o.strategies[s], o.budgets[b], out);
            }
        }
    }
    if (out != NULL && fclose(out) != 0) {
        fail("the runs could not be written");
    }
    recorded_free(list, len);
    return 0;
}
