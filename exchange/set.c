/* set.c - spaces and rows in memory, and how a store's candidates become them. */
#include "exchange/exchange_parts.h"

#include "core/digest.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void exchange_free(exchange_set *set)
{
    for (size_t i = 0; i < set->spaces_len; i++) {
        free(set->spaces[i].rows);
    }
    free(set->spaces);
    arena_free(&set->memory);
    *set = (exchange_set){0};
}

hone_status exchange_no_memory(const char *source, hone_error *error)
{
    return status_set(error, HONE_NO_MEMORY, source, 0, "candidates of files");
}

/* Room for one more element of a list that doubles. */
static bool reserve(void **list, size_t len, size_t *capacity, size_t bytes)
{
    const size_t wanted = *capacity == 0 ? 8 : *capacity * 2;

    if (len < *capacity) {
        return true;
    }
    void *grown = realloc(*list, wanted * bytes);
    if (grown == NULL) {
        return false;
    }
    *list = grown;
    *capacity = wanted;
    return true;
}

exchange_space *exchange_add_space(exchange_set *set)
{
    void *list = set->spaces;

    if (!reserve(&list, set->spaces_len, &set->spaces_capacity, sizeof *set->spaces)) {
        return NULL;
    }
    set->spaces = list;
    exchange_space *made = &set->spaces[set->spaces_len++];
    *made = (exchange_space){0};
    return made;
}

exchange_row *exchange_add_row(exchange_space *space)
{
    void *list = space->rows;

    if (!reserve(&list, space->rows_len, &space->rows_capacity, sizeof *space->rows)) {
        return NULL;
    }
    space->rows = list;
    exchange_row *made = &space->rows[space->rows_len++];
    *made = (exchange_row){0};
    return made;
}

bool exchange_split_config(arena *memory, const char *text, const char *names[MANIFEST_MAX_PARAMS],
                           int64_t values[MANIFEST_MAX_PARAMS], size_t *len)
{
    size_t filled = 0;

    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        const size_t name_len = strcspn(at, "= ");
        char *end = NULL;
        if (at[name_len] != '=' || name_len == 0 || filled == MANIFEST_MAX_PARAMS) {
            return false;
        }
        names[filled] = arena_text(memory, at, name_len);
        at += name_len + 1;
        errno = 0;
        values[filled] = strtoll(at, &end, 10);
        if (names[filled] == NULL || end == at || (*end != ' ' && *end != '\0') || errno != 0) {
            return false;
        }
        filled++;
        at = end;
    }
    *len = filled;
    return filled > 0;
}

const char *exchange_join_config(arena *memory, const char *const *names, const int64_t *values,
                                 size_t len)
{
    size_t bytes = 1, used = 0;

    for (size_t i = 0; i < len; i++) {
        bytes += strlen(names[i]) + 23;
    }
    char *text = arena_alloc(memory, bytes);
    for (size_t i = 0; text != NULL && i < len; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%s=%" PRId64, i > 0 ? " " : "",
                                 names[i], values[i]);
    }
    return text;
}

typedef struct collecting {
    exchange_set *set;
    const exchange_choice *choice;
    bool failed;
} collecting;

static bool is_wanted(const exchange_choice *c, const store_row *row)
{
    char text[512];

    if (c->device != NULL && (device_kind_match(row->kind, c->device) != DEVICE_SAME ||
                              row->kind->emulated != c->device->emulated)) {
        return false;
    }
    for (size_t i = 0; i < c->problems_len; i++) {
        if (hone_problem_format(&c->problems[i], text, sizeof text, NULL) == HONE_OK &&
            strcmp(text, row->problem_text) == 0) {
            return true;
        }
    }
    return c->problems_len == 0;
}

static bool same_names(const exchange_space *space, const char *const *names, size_t len)
{
    bool same = space->params_len == len;

    for (size_t i = 0; i < len && same; i++) {
        same = strcmp(space->params[i], names[i]) == 0;
    }
    return same;
}

static exchange_space *space_of(exchange_set *set, const store_row *row, const char *const *names,
                                size_t len)
{
    for (size_t i = set->spaces_len; i-- > 0;) {
        exchange_space *space = &set->spaces[i];
        if (strcmp(space->problem_text, row->problem_text) == 0 &&
            memcmp(&space->kind, row->kind, sizeof space->kind) == 0 &&
            strcmp(space->template_name, row->template_name) == 0 &&
            same_names(space, names, len)) {
            return space;
        }
    }
    const char *text = arena_text(&set->memory, row->problem_text, strlen(row->problem_text));
    const char *name = arena_text(&set->memory, row->template_name, strlen(row->template_name));
    exchange_space *made = text != NULL && name != NULL ? exchange_add_space(set) : NULL;
    if (made != NULL) {
        made->problem_text = text;
        made->kind = *row->kind;
        made->template_name = name;
        memcpy(made->params, names, len * sizeof *names);
        made->params_len = len;
    }
    return made;
}

/* A copy of a text in the set's memory; a failure is noted. */
static const char *kept(collecting *c, const char *text)
{
    const char *copy =
        arena_text(&c->set->memory, text != NULL ? text : "", text != NULL ? strlen(text) : 0);

    c->failed = c->failed || copy == NULL;
    return copy;
}

static void fill_row(collecting *c, const store_row *from, exchange_row *row)
{
    const char *reason = NULL;
    const int32_t outcome = store_outcome_there(from, &reason);
    const size_t bytes = from->result.samples_len * sizeof(double);
    double *samples = arena_alloc(&c->set->memory, bytes > 0 ? bytes : 1);

    row->config = kept(c, from->config);
    row->nvrtc = kept(c, from->nvrtc);
    row->driver = from->driver;
    row->created_ms = from->created_ms;
    row->imported = from->result.outcome == STORE_IMPORTED;
    memcpy(row->template_digest, from->template_digest, sizeof row->template_digest);
    row->result = from->result;
    row->result.outcome = outcome;
    row->result.reason = kept(c, reason);
    row->result.cache_mode = kept(c, from->result.cache_mode);
    row->result.tokens = kept(c, from->result.tokens);
    row->result.bound = kept(c, from->result.bound);
    row->result.counters = kept(c, from->result.counters);
    row->result.samples_ns = samples;
    c->failed = c->failed || samples == NULL;
    if (samples != NULL && bytes > 0) {
        memcpy(samples, from->result.samples_ns, bytes);
    }
}

static int collect_row(void *context, const store_row *from)
{
    collecting *c = context;
    const char *names[MANIFEST_MAX_PARAMS], *reason = NULL;
    int64_t values[MANIFEST_MAX_PARAMS];
    size_t len = 0;
    hone_problem problem;

    if (!is_wanted(c->choice, from)) {
        return 0;
    }
    if (from->result.outcome == STORE_INFLIGHT) {
        c->set->inflight++;
        return 0;
    }
    if (!exchange_split_config(&c->set->memory, from->config, names, values, &len) ||
        store_outcome_there(from, &reason) == 0 ||
        hone_problem_parse(from->problem_text, &problem, NULL) != HONE_OK) {
        c->set->odd++;
        return 0;
    }
    exchange_space *space = space_of(c->set, from, names, len);
    exchange_row *row = space != NULL ? exchange_add_row(space) : NULL;
    c->failed = row == NULL;
    if (row != NULL) {
        space->problem = problem;
        memcpy(row->values, values, len * sizeof *values);
        fill_row(c, from, row);
    }
    return c->failed;
}

hone_status exchange_collect(store *s, const exchange_choice *choice, exchange_set *out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    exchange_set made = {0};
    collecting c = {.set = &made, .choice = choice};

    TRY(store_candidates(s, NULL, collect_row, &c, error));
    if (c.failed) {
        status = exchange_no_memory(store_path(s), error);
        goto done;
    }
    *out = made;
    made = (exchange_set){0};
done:
    exchange_free(&made);
    return status;
}

void exchange_device_name(const device_kind *kind, char name[128])
{
    snprintf(name, 128, "%s%s", kind->name, kind->emulated ? " (emulated)" : "");
}

void exchange_file_name(const exchange_space *space, char name[256])
{
    digest d;
    uint8_t bytes[DIGEST_BYTES];
    char hex[17], arch[16], device[128];
    const device_kind *k = &space->kind;

    digest_begin(&d);
    digest_text(&d, space->problem_text);
    digest_text(&d, space->template_name);
    digest_text(&d, k->name);
    const int32_t facts[] = {k->arch,    k->sm_count,    k->smem_per_block,
                             k->mem_gib, k->mem_100gb_s, k->emulated};
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        digest_u64(&d, (uint64_t)facts[i]);
    }
    for (size_t i = 0; i < space->params_len; i++) {
        digest_text(&d, space->params[i]);
    }
    digest_end(&d, bytes);
    digest_hex(bytes, 8, hex);
    device_arch_text(k->arch, arch);
    exchange_device_name(k, device);
    snprintf(name, 256, "%.80s-%.90s-%s-%d-%s", space->template_name, device, arch, k->sm_count,
             hex);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '/' ? '.' : *at;
        if (!isalnum((unsigned char)*at) && strchr(".-_", *at) == NULL) {
            *at = '_';
        }
    }
    memcpy(name + strlen(name), ".json", sizeof ".json");
}
