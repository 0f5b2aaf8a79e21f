/* resolve.c - which stored winner or analytical choice answers a problem: exact, bucket, near,
 * default. */
#include "runtime/serving.h"

#include "models/shapes.h"

#include <string.h>

/* Larger tuned sizes that are tried when the config of a smaller one is not legal at the true
 * shape. */
#define NEAR_TRIES 4

int serving_rank(const hone_runtime *rt, const generation_winner *winner)
{
    const device_match match = device_kind_match(winner->kind, &rt->device->kind);
    const bool modelled = winner->kind->emulated;

    if (match == DEVICE_OTHER ||
        (modelled && !rt->device->gpu.facts.emulated && !rt->options.allow_modelled) ||
        (match == DEVICE_NEAR && rt->options.strict)) {
        return -1;
    }
    return (match == DEVICE_SAME ? 0 : 2) + modelled;
}

int64_t serving_size(const hone_problem *problem)
{
    size_t count = 0;
    const problem_field *fields = problem_fields(problem->op, &count);

    for (size_t i = 0; i < count; i++) {
        if (fields[i].bucket) {
            return problem_field_get(problem, &fields[i]);
        }
    }
    return 0;
}

int64_t serving_bucket(int64_t size)
{
    const int64_t *list = NULL;
    const size_t len = shapes_m_all(&list);
    int64_t best = size;

    for (size_t i = 0; i < len; i++) {
        if (list[i] >= size && (best == size || list[i] < best)) {
            best = list[i];
        }
    }
    return best;
}

/* Whether the template's text is not the one that was proved. Served with its grade, but not to who
 * wants only what was proved. */
static bool is_stale(const hone_runtime *rt, const serving_candidate *c)
{
    uint8_t digest[32];

    templates_digest(rt->templates, c->m, digest);
    return memcmp(digest, c->winner->template_digest, sizeof digest) != 0;
}

/* Add the entry's winner when its config is legal for the problem. */
static hone_status add_winner(const hone_runtime *rt, const hone_problem *problem,
                              const table_answer *answer, int32_t provenance,
                              serving_candidate *out, size_t *count, hone_error *error)
{
    const uint32_t source =
        answer->kernel != NULL ? answer->kernel->source : answer->units_or_source;
    const generation_winner *winner = generation_at(rt->generation, source);
    serving_candidate c = {.winner = winner, .source = source, .provenance = provenance};
    bool legal = false;

    /* A template that is gone or a config that no longer parses is a miss, not a failure (cases.md
     * 18). */
    c.m = templates_find(rt->templates, winner->template_name);
    if (*count == SERVING_MAX_CANDIDATES || c.m == NULL || manifest_op(c.m) != problem->op ||
        manifest_config_parse(c.m, winner->config, &c.config, NULL) != HONE_OK) {
        return HONE_OK;
    }
    hone_status status =
        manifest_legal(c.m, problem, &rt->device->gpu.facts, &c.config, &legal, NULL, error);
    if (rt->options.strict && is_stale(rt, &c)) {
        return HONE_OK;
    }
    c.exact = memcmp(&winner->problem.as, &problem->as, table_key_len(problem->op)) == 0;
    if (status == HONE_OK && legal) {
        out[(*count)++] = c;
    }
    return status;
}

hone_status serving_stored(const hone_runtime *rt, const hone_problem *problem,
                           serving_candidate out[SERVING_MAX_CANDIDATES], size_t *count,
                           hone_error *error)
{
    hone_status status = HONE_OK;
    const table *t = atomic_load_explicit(&rt->table, memory_order_acquire);
    const table_entry *exact = table_find(t, problem);
    const int64_t size = serving_size(problem), bucket = serving_bucket(size);
    size_t covers_len = 0, tries = 0;

    *count = 0;
    if (exact != NULL && exact->answer.stored) {
        TRY(add_winner(rt, problem, &exact->answer, (int32_t)exact->answer.provenance, out, count,
                       error));
    }
    if (rt->options.strict) {
        goto done;
    }
    const table_member *covers = table_covers(t, problem, &covers_len);
    for (int want_bucket = 1; want_bucket >= 0; want_bucket--) {
        for (size_t i = 0; i < covers_len && tries < NEAR_TRIES; i++) {
            const table_answer *a = &t->entries[covers[i].entry].answer;
            const bool same = &t->entries[covers[i].entry] == exact;
            if (same || !a->stored || (covers[i].size == bucket) != want_bucket) {
                continue;
            }
            const bool near_kind = a->provenance == HONE_FROM_NEAR;
            TRY(add_winner(rt, problem, a,
                           want_bucket && !near_kind ? HONE_FROM_BUCKET : HONE_FROM_NEAR, out,
                           count, error));
            tries += !want_bucket;
        }
    }
done:
    return status;
}

hone_status serving_defaults(const hone_runtime *rt, const hone_problem *problem,
                             serving_candidate out[SERVING_MAX_CANDIDATES], size_t *count,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    default_choice choices[DEFAULT_TRIES];

    TRY(default_rank(rt->templates, problem, &rt->device->gpu, 0, choices, DEFAULT_TRIES, count,
                     NULL, error));
    for (size_t i = 0; i < *count; i++) {
        out[i] = (serving_candidate){
            .m = choices[i].m, .config = choices[i].config, .provenance = HONE_FROM_DEFAULT};
    }
done:
    return status;
}
