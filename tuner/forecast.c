/* forecast.c - a sweep on an engine that calls every candidate right at once, and counts. */
#include "tuner/forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A template's compiles: known ones, and those to come. */
typedef struct template_cost {
    const manifest *m;
    uint64_t known, kernels;
    double known_ms;
} template_cost;

/* A kernel that is to be compiled, by its template and name. */
typedef struct kernel {
    const manifest *m;
    char entry[sizeof((plan_launch *)0)->entry];
} kernel;

/* What the engine counts. */
typedef struct count {
    const templates *templates;
    template_cost *costs; /* of every template, in the order of `templates` */
    kernel *kernels;
    size_t kernels_len, kernels_capacity;
    uint64_t *tags; /* submitted and not yet answered */
    size_t tags_len, tags_capacity, tags_at;
} count;

static template_cost *cost_of(count *c, const manifest *m)
{
    size_t at = 0;

    while (c->costs[at].m != m) {
        at++;
    }
    return &c->costs[at];
}

/* A list with room for one more, or NULL. */
static void *grow(void *list, size_t len, size_t *capacity, size_t item)
{
    const size_t wanted = *capacity == 0 ? 64 : 2 * *capacity;

    if (len < *capacity) {
        return list;
    }
    void *grown = realloc(list, wanted * item);
    *capacity = grown != NULL ? wanted : *capacity;
    return grown;
}

static bool has_kernel(const count *c, const engine_trial *trial)
{
    for (size_t i = c->kernels_len; i > 0; i--) {
        const kernel *k = &c->kernels[i - 1];
        if (k->m == trial->m && strcmp(k->entry, trial->plan->launches[0].entry) == 0) {
            return true;
        }
    }
    return false;
}

static hone_status submit(void *state, const engine_trial *trial, uint64_t tag, hone_error *error)
{
    count *c = state;
    kernel *kernels = grow(c->kernels, c->kernels_len, &c->kernels_capacity, sizeof *kernels);
    uint64_t *tags = grow(c->tags, c->tags_len, &c->tags_capacity, sizeof *tags);

    c->kernels = kernels != NULL ? kernels : c->kernels;
    c->tags = tags != NULL ? tags : c->tags;
    if (kernels == NULL || tags == NULL) {
        return status_set(error, HONE_NO_MEMORY, "forecast", 0, "%zu candidates", c->tags_len);
    }
    if (!has_kernel(c, trial)) {
        kernel *k = &c->kernels[c->kernels_len++];
        k->m = trial->m;
        snprintf(k->entry, sizeof k->entry, "%s", trial->plan->launches[0].entry);
        cost_of(c, trial->m)->kernels++;
    }
    c->tags[c->tags_len++] = tag;
    return HONE_OK;
}

static hone_status answer(void *state, engine_answer *out, hone_error *error)
{
    count *c = state;

    if (c->tags_at == c->tags_len) {
        return status_set(error, HONE_BAD_ARGUMENT, "forecast", 0, "no compile is under way");
    }
    *out = (engine_answer){.tag = c->tags[c->tags_at++], .outcome = STORE_OK};
    return HONE_OK;
}

static hone_status start(void *state, size_t lane, const engine_trial *trial,
                         const engine_answer *compiled, hone_error *error)
{
    (void)state;
    (void)lane;
    (void)trial;
    (void)compiled;
    (void)error;
    return HONE_OK;
}

/* Of no time that could end a search or rule anyone out. */
static hone_status finish(void *state, size_t lane, engine_result *out, hone_error *error)
{
    (void)state;
    (void)lane;
    (void)error;
    out->row = (store_result){
        .outcome = STORE_OK, .timer = STORE_TIMER_MODELLED, .time_ns = 1e15, .cache_mode = ""};
    return HONE_OK;
}

static void discard(void *state, engine_answer *compiled)
{
    (void)state;
    compiled->code = NULL;
}

static void close_nothing(void *state)
{
    (void)state;
}

static hone_status open_count(const engine_options *options, engine *out, hone_error *error)
{
    (void)error;
    *out = (engine){.nvrtc = "none",
                    .state = options->context,
                    .lanes = 1,
                    .submit = submit,
                    .wait = answer,
                    .start = start,
                    .finish = finish,
                    .discard = discard,
                    .close = close_nothing};
    return HONE_OK;
}

static int learn_cost(void *context, const store_row *row)
{
    count *c = context;
    const manifest *m = templates_find(c->templates, row->template_name);

    if (m != NULL && row->result.compile_ms > 0) {
        template_cost *cost = cost_of(c, m);
        cost->known++;
        cost->known_ms += row->result.compile_ms;
    }
    return 0;
}

/* Kernels by the mean of their template, or of all where that is not known. */
static double compile_s(const count *c)
{
    uint64_t known = 0;
    double known_ms = 0, sum_ms = 0;

    for (size_t i = 0; i < templates_len(c->templates); i++) {
        known += c->costs[i].known;
        known_ms += c->costs[i].known_ms;
    }
    for (size_t i = 0; known > 0 && i < templates_len(c->templates); i++) {
        const template_cost *t = &c->costs[i];
        const double mean =
            t->known > 0 ? t->known_ms / (double)t->known : known_ms / (double)known;
        sum_ms += mean * (double)t->kernels;
    }
    return sum_ms * 1e-3;
}

static hone_status open_counts(count *c, const templates *t, hone_error *error)
{
    *c = (count){.templates = t, .costs = calloc(templates_len(t) + 1, sizeof *c->costs)};
    if (c->costs == NULL) {
        return status_set(error, HONE_NO_MEMORY, "forecast", 0, "a count of templates");
    }
    for (size_t i = 0; i < templates_len(t); i++) {
        c->costs[i].m = templates_at(t, i);
    }
    return HONE_OK;
}

hone_status forecast_make(const sweep_options *options, store *from, const char *folder,
                          forecast *out, hone_error *error)
{
    hone_status status = HONE_OK;
    sweep_options own = *options;
    sweep_summary summary = {0};
    store *copy = NULL;
    count c = {0};
    char path[4096];

    snprintf(path, sizeof path, "%s/forecast.db", folder);
    TRY(open_counts(&c, options->templates, error));
    if (from != NULL) {
        TRY(store_candidates(from, NULL, learn_cost, &c, error));
        TRY(store_copy(from, path, error));
    }
    TRY(store_open(path, STORE_WRITE, &copy, error));
    own.store = copy;
    own.engine = open_count;
    own.engine_context = &c;
    own.progress = NULL;
    own.ended = NULL;
    own.limits = (sweep_limits){0};
    TRY(sweep_run(&own, &summary, error));
    *out = (forecast){.problems = summary.problems,
                      .settled = summary.settled,
                      .candidates = summary.tried + summary.pruned,
                      .kernels = c.kernels_len,
                      .compile_s = compile_s(&c)};
done:
    store_close(copy, NULL);
    free(c.costs);
    free(c.kernels);
    free(c.tags);
    return status;
}
