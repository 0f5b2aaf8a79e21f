/* prepare.c - hone_prepare: finds each problem's answer, compiles in parallel, loads, and publishes
 * a new table. */
#include "runtime/serving.h"

#include "core/digest.h"

#include <stdio.h>
#include <stdlib.h>

/* Below jit_submit's limit, and plenty to keep every worker busy. */
#define PREPARE_MOST_PENDING 1024

/* A problem on its way to an answer: candidates are tried in order until one compiles and loads. */
typedef struct want {
    const hone_problem *problem;
    bool done, defaults_tried;
    size_t candidates_len, next;
    serving_candidate candidates[SERVING_MAX_CANDIDATES];
    served *made;  /* of the candidate being tried */
    size_t kernel; /* index into the runtime's kernels */
    hone_status status;
    hone_error error;
} want;

typedef struct preparation {
    hone_runtime *rt;
    jit *compiler;
    want *wants;
    size_t wants_len;
    hone_progress_fn progress;
    void *context;
    uint64_t compiled, submitted;
} preparation;

static hone_status tell(preparation *p, const char *doing, hone_error *error)
{
    const hone_progress progress = {.done = p->compiled, .total = p->submitted, .doing = doing};

    if (p->progress != NULL && p->progress(p->context, &progress) != 0) {
        return status_set(error, HONE_CANCELLED, NULL, 0,
                          "hone_prepare was cancelled by its caller");
    }
    return HONE_OK;
}

/* Load the kernel of an answer, where its plan came from. */
static void adopt(preparation *p, jit_done *done)
{
    serving_kernel *k = &p->rt->kernels[done->tag];
    const want *w = p->wants;

    p->compiled++;
    k->status = done->status;
    k->error = done->error;
    while (k->status == HONE_OK && !(w->made != NULL && w->kernel == done->tag)) {
        w++; /* the one that submitted it is still there */
    }
    if (k->status == HONE_OK) {
        k->flawed = compiled_flaw(done->answer, NULL, 0);
        k->status = module_load(p->rt->device, &w->made->plan, done->answer, &k->module, &k->error);
    }
    compiled_free(done->answer);
}

/* Take answers until at most `most` compiles are under way. */
static hone_status drain(preparation *p, size_t most, hone_error *error)
{
    hone_status status = HONE_OK;
    jit_done done;
    bool got = true;

    while (jit_pending(p->compiler) > most && got) {
        TRY(jit_wait(p->compiler, -1, &done, &got, error));
        if (got) {
            adopt(p, &done);
            TRY(tell(p, "compiling kernels", error));
        }
    }
done:
    return status;
}

static void digest_entries(const plan *p, uint8_t out[32])
{
    digest d;

    digest_begin(&d);
    for (uint32_t i = 0; i < p->launches_len; i++) {
        digest_text(&d, p->launches[i].entry);
    }
    digest_end(&d, out);
}

/* The kernel that the plan asks for: known, or submitted now. */
static hone_status find_kernel(preparation *p, const served *s, size_t *index, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_runtime *rt = p->rt;
    serving_kernel made = {.m = s->m};
    jit_request request;

    digest_entries(&s->plan, made.digest);
    for (size_t i = 0; i < rt->kernels_len; i++) {
        if (rt->kernels[i].m == s->m &&
            memcmp(rt->kernels[i].digest, made.digest, sizeof made.digest) == 0) {
            *index = i;
            return HONE_OK;
        }
    }
    if (rt->kernels_len == rt->kernels_capacity) {
        const size_t capacity = 2 * rt->kernels_capacity + 64;
        serving_kernel *grown = realloc(rt->kernels, capacity * sizeof *grown);
        if (grown == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a list of %zu kernels", capacity);
        }
        rt->kernels = grown;
        rt->kernels_capacity = capacity;
    }
    TRY(jit_request_plan(rt->templates, s->m, &s->plan, rt->device->gpu.facts.arch, &request,
                         error));
    TRY(jit_submit(p->compiler, &request, rt->kernels_len, error));
    p->submitted++;
    memcpy(made.template_digest, request.digest, sizeof made.template_digest);
    *index = rt->kernels_len;
    rt->kernels[rt->kernels_len++] = made;
done:
    return status;
}

/* Plan the next candidate; *more = false when there is none left. */
static hone_status try_next(preparation *p, want *w, bool *more, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_runtime *rt = p->rt;

    if (w->next == w->candidates_len && !w->defaults_tried && !rt->options.strict) {
        w->defaults_tried = true;
        w->next = 0;
        TRY(serving_defaults(rt, w->problem, w->candidates, &w->candidates_len, error));
    }
    *more = w->next < w->candidates_len;
    if (!*more) {
        goto done;
    }
    const serving_candidate *c = &w->candidates[w->next++];
    if (w->made == NULL && (w->made = calloc(1, sizeof *w->made)) == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a served kernel");
        goto done;
    }
    *w->made = (served){.device = rt->device,
                        .m = c->m,
                        .config = c->config,
                        .problem = *w->problem,
                        .source = c->source,
                        .checked = rt->options.checked};
    TRY(hone_operands(w->problem, w->made->operands, &w->made->operands_len, error));
    TRY(manifest_plan(c->m, w->problem, &rt->device->gpu.facts, &c->config, &w->made->plan, error));
    TRY(find_kernel(p, w->made, &w->kernel, error));
done:
    return status;
}

/* What the last candidate came to: an answer, or a reason to try the next one. */
static void settle(preparation *p, want *w)
{
    const serving_kernel *k = &p->rt->kernels[w->kernel];

    if (k->module == NULL) {
        w->status = k->status;
        w->error = k->error;
        return;
    }
    /* A choice that nobody timed and that ptxas speaks against gives way to the next one, if there
     * is one. */
    if (k->flawed && w->defaults_tried && w->next < w->candidates_len) {
        return;
    }
    w->made->module = k->module;
    w->done = true;
    w->status = HONE_OK;
}

/* Kernels that never ended (cancelled, no memory) are forgotten, so that a later call compiles them
 * again. */
static void forget_unfinished(hone_runtime *rt)
{
    size_t kept = 0;

    for (size_t i = 0; i < rt->kernels_len; i++) {
        if (rt->kernels[i].module != NULL) {
            rt->kernels[kept++] = rt->kernels[i];
        }
    }
    rt->kernels_len = kept;
}

/* Rounds: every open want submits its next candidate, then all are waited for. */
static hone_status run_rounds(preparation *p, hone_error *error)
{
    hone_status status = HONE_OK;
    bool open = true;

    while (open) {
        open = false;
        for (size_t i = 0; i < p->wants_len; i++) {
            want *w = &p->wants[i];
            bool more = false;
            if (w->done) {
                continue;
            }
            TRY(try_next(p, w, &more, error));
            open = open || more;
            if (!more) {
                free(w->made);
                w->made = NULL;
                w->done = true;
            }
            TRY(drain(p, PREPARE_MOST_PENDING, error));
        }
        TRY(drain(p, 0, error));
        for (size_t i = 0; i < p->wants_len; i++) {
            if (!p->wants[i].done) {
                settle(p, &p->wants[i]);
            }
        }
    }
done:
    return status;
}

/* What winners are graded by. The compiler has run: something was compiled or taken from its cache.
 */
static void learn_tools(preparation *p)
{
    hone_runtime *rt = p->rt;
    const driver *d = rt->device->driver;
    jit_version version;
    int number = 0;

    if (rt->nvrtc[0] == '\0' && jit_describe(p->compiler, &version, NULL) == HONE_OK &&
        d->cuDriverGetVersion(&number) == CUDA_SUCCESS) {
        snprintf(rt->nvrtc, sizeof rt->nvrtc, "%s", version.text);
        rt->driver_number = number;
    }
}

_Static_assert((int)HONE_GRADE_CURRENT == (int)GENERATION_CURRENT &&
                   (int)HONE_GRADE_SUSPECT == (int)GENERATION_SUSPECT &&
                   (int)HONE_GRADE_STALE == (int)GENERATION_STALE,
               "grades are the generation's");

static void put_answer(const hone_runtime *rt, table *t, const want *w)
{
    const serving_candidate *c = &w->candidates[w->next - 1];
    const generation_winner *winner = c->winner;
    const uint64_t workspace = w->made->plan.workspace_bytes;
    const uint32_t grade = winner == NULL
                               ? 0
                               : generation_grade_of(winner, rt->kernels[w->kernel].template_digest,
                                                     rt->nvrtc, rt->driver_number);
    const table_answer answer = {
        .kernel = w->made,
        .winner = winner != NULL ? winner->id : 0,
        .time_ns = winner != NULL ? winner->time_ns : 0,
        .units_or_source =
            (uint32_t)((workspace + TABLE_WORKSPACE_UNIT - 1) / TABLE_WORKSPACE_UNIT),
        .provenance = (uint32_t)c->provenance & 7,
        .modelled = winner != NULL && winner->kind->emulated,
        .grade = grade & 3,
        .stored = c->exact, /* only such a winner covers other sizes as a winner */
    };

    table_put(t, w->problem, &answer);
}

/* Old entries and new ones, as one table; readers move over at their next lookup. */
static hone_status publish(preparation *p, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_runtime *rt = p->rt;
    table *old = (table *)atomic_load_explicit(&rt->table, memory_order_acquire), *made = NULL;

    TRY(table_begin(old->entries_len + p->wants_len, &made, error));
    for (size_t i = 1; i <= old->entries_len; i++) {
        hone_problem problem;
        table_problem(old, &old->entries[i], &problem);
        table_put(made, &problem, &old->entries[i].answer);
    }
    for (size_t i = 0; i < p->wants_len; i++) {
        if (p->wants[i].made != NULL) {
            put_answer(rt, made, &p->wants[i]);
        }
    }
    TRY(table_index(made, error));
    for (size_t i = 0; i < p->wants_len; i++) {
        served *s = p->wants[i].made;
        if (s != NULL) {
            s->next = rt->served;
            rt->served = s;
            p->wants[i].made = NULL;
        }
    }
    made->retired = old;
    atomic_store_explicit(&rt->table, made, memory_order_release);
    made = NULL;
done:
    table_free(made);
    return status;
}

/* What needs an answer: problems that are valid, not empty and not prepared yet. */
static hone_status collect_wants(preparation *p, const hone_problem *problems, size_t count,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    const table *t = atomic_load_explicit(&p->rt->table, memory_order_acquire);

    for (size_t i = 0; i < count; i++) {
        TRY(hone_problem_check(&problems[i], error));
        const table_entry *e = table_find(t, &problems[i]);
        if ((e != NULL && e->answer.kernel != NULL) || problem_is_empty(&problems[i])) {
            continue;
        }
        want *w = &p->wants[p->wants_len++];
        w->problem = &problems[i];
        TRY(serving_stored(p->rt, w->problem, w->candidates, &w->candidates_len, error));
    }
done:
    return status;
}

/* The first problem that ended without an answer, and why. */
static hone_status report_missing(const preparation *p, hone_error *error)
{
    char text[512] = "?";
    char why[400];

    for (size_t i = 0; i < p->wants_len; i++) {
        const want *w = &p->wants[i];
        const table *t = atomic_load_explicit(&p->rt->table, memory_order_acquire);
        const table_entry *e = table_find(t, w->problem);
        if (e != NULL && e->answer.kernel != NULL) {
            continue;
        }
        hone_problem_format(w->problem, text, sizeof text, NULL);
        if (w->status != HONE_OK) {
            return status_set(error, w->status, text, 0, "%s", w->error.message);
        }
        if (p->rt->options.strict) {
            return status_set(error, HONE_NOT_FOUND, text, 0,
                              "strict: no winner for exactly this problem; tune it");
        }
        templates_refusals(p->rt->templates, w->problem, &p->rt->device->gpu.facts, why,
                           sizeof why);
        return status_set(error, HONE_NOT_FOUND, text, 0,
                          "no template serves this problem on %s: %s", p->rt->device->spec, why);
    }
    return HONE_OK;
}

static hone_status prepare_all(preparation *p, const hone_problem *problems, size_t count,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options options = {.workers = p->rt->options.compile_jobs,
                                 .cache_path = p->rt->options.cache_path};

    TRY(collect_wants(p, problems, count, error));
    if (p->wants_len == 0) {
        goto done;
    }
    TRY(jit_open(&options, &p->compiler, error));
    TRY(tell(p, "choosing kernels", error));
    TRY(run_rounds(p, error));
    learn_tools(p);
    TRY(publish(p, error));
    TRY(report_missing(p, error));
done:
    return status;
}

hone_status hone_prepare(hone_runtime *rt, const hone_problem *problems, size_t count,
                         hone_progress_fn progress, void *context, hone_error *error)
{
    hone_status status = HONE_OK;
    preparation p = {.rt = rt, .progress = progress, .context = context};

    if (rt == NULL || (problems == NULL && count > 0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "hone_prepare needs a runtime and problems");
    }
    p.wants = calloc(count + 1, sizeof *p.wants);
    if (p.wants == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu problems to prepare", count);
    }
    pthread_mutex_lock(&rt->preparing);
    status = prepare_all(&p, problems, count, error);
    jit_close(p.compiler); /* before the plans that its requests borrow from */
    forget_unfinished(rt);
    pthread_mutex_unlock(&rt->preparing);
    for (size_t i = 0; i < p.wants_len; i++) {
        free(p.wants[i].made);
    }
    free(p.wants);
    return status;
}
