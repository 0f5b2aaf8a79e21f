/* lookup.c - the hot path of serving: hash, compare, copy. No lock, no allocation, no system call,
 * no compile. */
#include "runtime/serving.h"

static inline void fill_choice(const table_answer *a, int32_t provenance,
                               const hone_problem *problem, hone_choice *out)
{
    out->size = sizeof *out;
    out->provenance = provenance;
    out->winner = a->winner;
    out->time_ns = a->time_ns;
    out->modelled = a->modelled;
    out->op = problem->op;
    out->workspace_bytes = (uint64_t)a->units_or_source * TABLE_WORKSPACE_UNIT;
    out->kernel = a->kernel;
    out->problem = *problem;
    out->grade = a->grade;
}

__attribute__((noinline, cold)) static hone_status not_prepared(hone_error *error)
{
    return status_set(
        error, HONE_NOT_PREPARED, NULL, 0,
        "the answer is known, its kernel is not loaded; give the problem to hone_prepare first");
}

/* Answer from a larger size of the family: winners first (the bucket's, then ascending), then a
 * prepared default. Costs a legality check of a few microseconds; a problem that was prepared
 * itself never comes here. */
static hone_status look_beyond(const hone_runtime *rt, const table *t, const hone_problem *problem,
                               hone_choice *out, hone_error *error)
{
    const int64_t size = serving_size(problem), bucket = serving_bucket(size);
    size_t len = 0;
    const table_member *covers = table_covers(t, problem, &len);

    /* In three passes over a few members: the bucket's winner, larger winners, defaults. */
    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < len; i++) {
            const table_answer *a = &t->entries[covers[i].entry].answer;
            const bool in_bucket = covers[i].size == bucket;
            bool legal = false;
            if (pass != (!a->stored ? 2 : !in_bucket)) {
                continue;
            }
            const served *s = a->kernel;
            if (s == NULL) {
                return not_prepared(error);
            }
            hone_status status = manifest_legal(s->m, problem, &rt->device->gpu.facts, &s->config,
                                                &legal, NULL, error);
            if (status != HONE_OK) {
                return status;
            }
            if (legal) {
                const bool near_kind = a->provenance == HONE_FROM_NEAR;
                fill_choice(a,
                            pass == 0 && !near_kind ? HONE_FROM_BUCKET
                            : pass < 2              ? HONE_FROM_NEAR
                                                    : HONE_FROM_DEFAULT,
                            problem, out);
                return HONE_OK;
            }
        }
    }
    return status_set(error, HONE_NOT_FOUND, NULL, 0,
                      "no winner covers the problem; tune it, or give it to hone_prepare for the "
                      "analytical choice");
}

/* A problem without an entry of its own: malformed, empty, or covered by another size. Kept out of
 * hone_lookup, which needs few registers without it. */
__attribute__((noinline, cold)) static hone_status look_further(const hone_runtime *rt,
                                                                const table *t,
                                                                const hone_problem *problem,
                                                                hone_choice *out, hone_error *error)
{
    hone_status status = HONE_OK;

    if (problem->size != sizeof *problem || table_key_len(problem->op) == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "hone_problem: size is %u, op is %d; hone_problem_parse fills both",
                          problem->size, problem->op);
    }
    TRY(hone_problem_check(problem, error));
    if (problem_is_empty(problem)) {
        const table_answer nothing = {.kernel = &rt->nothing};
        fill_choice(&nothing, HONE_FROM_DEFAULT, problem, out);
        return HONE_OK;
    }
    if (rt->options.strict) {
        return status_set(error, HONE_NOT_FOUND, NULL, 0,
                          "strict: no winner for exactly this problem; tune it");
    }
    TRY(look_beyond(rt, t, problem, out, error));
done:
    return status;
}

hone_status hone_lookup(const hone_runtime *rt, const hone_problem *problem, hone_choice *out,
                        hone_error *error)
{
    const table *t = atomic_load_explicit(&rt->table, memory_order_acquire);
    const table_entry *e = problem->size == sizeof *problem ? table_find(t, problem) : NULL;

    if (__builtin_expect(e == NULL, 0)) {
        return look_further(rt, t, problem, out, error);
    }
    if (__builtin_expect(e->answer.kernel == NULL, 0)) {
        return not_prepared(error);
    }
    fill_choice(&e->answer, (int32_t)e->answer.provenance, problem, out);
    return HONE_OK;
}
