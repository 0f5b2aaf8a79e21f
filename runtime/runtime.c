/* runtime.c - opens a store for serving and closes it again; says what all of it can answer. */
#include "runtime/serving.h"

#include "core/digest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How good each winner is for this device (serving_rank), by index. Winners of one kind lie
 * together. */
static void rank_winners(const hone_runtime *rt, int8_t *ranks, size_t len)
{
    const device_kind *kind = NULL;
    int rank = -1;

    for (size_t i = 0; i < len; i++) {
        const generation_winner *w = generation_at(rt->generation, i);
        if (w->kind != kind) {
            kind = w->kind;
            rank = serving_rank(rt, w);
        }
        ranks[i] = (int8_t)(table_key_len(w->problem.op) > 0 ? rank : -1);
    }
}

/* The winners that this device may be served, as answers that are not prepared yet. */
static hone_status collect_winners(const hone_runtime *rt, table *t, hone_error *error)
{
    const size_t winners_len = generation_len(rt->generation);
    int8_t *ranks = malloc(winners_len + 1);

    if (ranks == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "%zu winners", winners_len);
    }
    rank_winners(rt, ranks, winners_len);
    /* Worst rank first: where two winners answer one problem, the later one counts. */
    for (int rank = 3; rank >= 0; rank--) {
        for (size_t i = 0; i < winners_len; i++) {
            const generation_winner *w = generation_at(rt->generation, i);
            if (ranks[i] != rank) {
                continue;
            }
            const table_answer answer = {.winner = w->id,
                                         .time_ns = w->time_ns,
                                         .units_or_source = (uint32_t)i,
                                         .provenance = rank < 2 ? HONE_FROM_EXACT : HONE_FROM_NEAR,
                                         .modelled = w->kind->emulated,
                                         .stored = 1};
            table_put(t, &w->problem, &answer);
        }
    }
    free(ranks);
    return HONE_OK;
}

static hone_status copy_options(const hone_options *options, hone_runtime *rt, hone_error *error)
{
    if (options == NULL) {
        return HONE_OK;
    }
    /* A caller that was built before `checked` was there has a shorter struct. */
    if (options->size != sizeof *options && options->size != offsetof(hone_options, checked)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "hone_options.size is %u; set it to sizeof(hone_options)", options->size);
    }
    memcpy(&rt->options, options, options->size); /* what is missing stays 0 */
    if (rt->options.checked < HONE_CHECKED_OFF || rt->options.checked > HONE_CHECKED_POW2) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "hone_options.checked is %d; it is off (0), values (1) or pow2 (2)",
                          rt->options.checked);
    }
    if (options->cache_path != NULL) {
        int len = snprintf(rt->cache_path, sizeof rt->cache_path, "%s", options->cache_path);
        if (len >= (int)sizeof rt->cache_path) {
            return status_set(error, HONE_LIMIT, options->cache_path, 0,
                              "the kernel cache's path is over %zu bytes",
                              sizeof rt->cache_path - 1);
        }
        rt->options.cache_path = rt->cache_path;
    }
    return HONE_OK;
}

hone_status hone_open(const char *store, const char *device_spec, const hone_options *options,
                      hone_runtime **out, hone_error *error)
{
    hone_status status = HONE_OK;
    table *t = NULL;

    if (store == NULL || device_spec == NULL || out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "hone_open needs a store, a device and a place for the handle");
    }
    hone_runtime *rt = calloc(1, sizeof *rt);
    if (rt == NULL) {
        return status_set(error, HONE_NO_MEMORY, store, 0, "a runtime");
    }
    pthread_mutex_init(&rt->preparing, NULL);
    TRY(copy_options(options, rt, error));
    TRY(generation_load(store, &rt->generation, error));
    TRY(templates_open(&rt->templates, error));
    TRY(device_open(device_spec, &rt->device, error));
    TRY(table_begin(generation_len(rt->generation), &t, error));
    TRY(collect_winners(rt, t, error));
    TRY(table_index(t, error));
    atomic_store_explicit(&rt->table, t, memory_order_release);
    *out = rt;
    rt = NULL;
    t = NULL;
done:
    table_free(t);
    hone_close(rt);
    return status;
}

void hone_close(hone_runtime *rt)
{
    if (rt == NULL) {
        return;
    }
    table_free((table *)atomic_load_explicit(&rt->table, memory_order_acquire));
    while (rt->served != NULL) {
        served *next = rt->served->next;
        kept_maps_free(atomic_load_explicit(&rt->served->maps, memory_order_relaxed));
        kept_sizes_free(&rt->served->others);
        free(rt->served);
        rt->served = next;
    }
    for (size_t i = 0; i < rt->kernels_len; i++) {
        module_unload(rt->kernels[i].module);
    }
    free(rt->kernels);
    device_close(rt->device);
    templates_close(rt->templates);
    generation_free(rt->generation);
    pthread_mutex_destroy(&rt->preparing);
    free(rt);
}

/* An entry as the fingerprint takes it. */
typedef struct print_row {
    hone_problem problem;
    const table_answer *answer;
} print_row;

static int compare_rows(const void *a, const void *b)
{
    const hone_problem *x = &((const print_row *)a)->problem, *y = &((const print_row *)b)->problem;

    return x->op != y->op ? (x->op > y->op) - (x->op < y->op)
                          : memcmp(&x->as, &y->as, table_key_len(x->op));
}

/* What an entry answers: template and config, and where they come from. Times are not part of the
 * answer. */
static hone_status digest_row(digest *d, const print_row *row, hone_error *error)
{
    hone_status status = HONE_OK;
    const served *s = row->answer->kernel;
    char config_text[1024] = "";

    digest_u64(d, (uint64_t)row->problem.op);
    digest_bytes(d, &row->problem.as, table_key_len(row->problem.op));
    digest_u64(d, (uint64_t)row->answer->provenance);
    digest_u64(d, row->answer->winner);
    digest_u64(d, s != NULL);
    if (s != NULL && s->m != NULL) {
        TRY(manifest_config_format(s->m, &s->config, config_text, sizeof config_text, error));
        digest_text(d, manifest_name(s->m));
        digest_text(d, config_text);
    }
done:
    return status;
}

hone_status hone_fingerprint(const hone_runtime *rt, uint8_t out[HONE_FINGERPRINT_BYTES],
                             hone_error *error)
{
    hone_status status = HONE_OK;
    const table *t = atomic_load_explicit(&rt->table, memory_order_acquire);
    print_row *rows = calloc(t->entries_len + 1, sizeof *rows);
    const device_kind *kind = &rt->device->kind;
    uint8_t made[32];
    const size_t len = t->entries_len;
    digest d;

    if (rows == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a fingerprint of %zu entries",
                          t->entries_len);
    }
    for (size_t i = 0; i < len; i++) {
        table_problem(t, &t->entries[i + 1], &rows[i].problem);
        rows[i].answer = &t->entries[i + 1].answer;
    }
    qsort(rows, len, sizeof *rows, compare_rows);
    digest_begin(&d);
    digest_text(&d, "hone fingerprint 2");
    digest_bytes(&d, generation_digest(rt->generation), 32);
    digest_u64(&d, (uint64_t)kind->arch);
    digest_u64(&d, (uint64_t)kind->sm_count);
    digest_u64(&d, (uint64_t)kind->smem_per_block);
    digest_u64(&d, (uint64_t)rt->options.strict);
    for (size_t i = 0; i < templates_len(rt->templates); i++) {
        templates_digest(rt->templates, templates_at(rt->templates, i), made);
        digest_bytes(&d, made, sizeof made);
    }
    for (size_t i = 0; i < len; i++) {
        TRY(digest_row(&d, &rows[i], error));
    }
    digest_end(&d, made);
    memcpy(out, made, sizeof made);
done:
    free(rows);
    return status;
}
