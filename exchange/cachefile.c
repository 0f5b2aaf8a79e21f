/* cachefile.c - Kernel Tuner's cachefile: a header, then a line for each config. */
#include "exchange/exchange_parts.h"

#include "core/problem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The sizes of the problem, in the order of its fields. */
static json_t *problem_size(const hone_problem *problem)
{
    size_t len = 0;
    const problem_field *fields = problem_fields(problem->op, &len);
    json_t *list = json_array();

    for (size_t i = 0; i < len; i++) {
        if (fields[i].kind == PROBLEM_SIZE) {
            json_array_append_new(list, json_integer(problem_field_get(problem, &fields[i])));
        }
    }
    return list;
}

static int by_value(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* What a parameter may be: the manifest's list where it has this parameter, and what rows have. */
static json_t *domain(const exchange_space *space, size_t param, const manifest *m)
{
    const int64_t *listed = NULL;
    uint32_t listed_len = 0;
    json_t *list = json_array();

    for (uint32_t i = 0; m != NULL && i < manifest_params_len(m); i++) {
        if (strcmp(manifest_param_name(m, i), space->params[param]) == 0) {
            listed_len = manifest_param_values(m, i, &listed);
        }
    }
    const size_t most = listed_len + space->rows_len;
    int64_t *values = calloc(most + 1, sizeof *values);
    if (values == NULL || list == NULL) {
        free(values);
        json_decref(list);
        return NULL;
    }
    for (size_t i = 0; i < most; i++) {
        values[i] = i < listed_len ? listed[i] : space->rows[i - listed_len].values[param];
    }
    qsort(values, most, sizeof *values, by_value);
    for (size_t i = 0; i < most; i++) {
        if (i == 0 || values[i] != values[i - 1]) {
            json_array_append_new(list, json_integer(values[i]));
        }
    }
    free(values);
    return list;
}

static json_t *header(const exchange_space *space, const manifest *m)
{
    json_t *keys = json_array(), *params = json_object();
    char device[128];

    for (size_t i = 0; i < space->params_len; i++) {
        json_array_append_new(keys, json_string(space->params[i]));
        json_object_set_new(params, space->params[i], domain(space, i, m));
    }
    exchange_device_name(&space->kind, device);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "device_name", device, "kernel_name",
                     space->template_name, "problem_size", problem_size(&space->problem),
                     "tune_params_keys", keys, "tune_params", params, "objective", "time", "hone",
                     exchange_space_facts(space));
}

static json_t *times_of(const store_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->samples_len; i++) {
        json_array_append_new(list, json_real(r->samples_ns[i] / EXCHANGE_MS_NS));
    }
    return list;
}

static json_t *entry(const exchange_space *space, const exchange_row *row)
{
    const store_result *r = &row->result;
    const char *word = exchange_word(EXCHANGE_CACHEFILE, r->outcome);
    char when[32];
    json_t *object = json_object();

    for (size_t i = 0; i < space->params_len; i++) {
        json_object_set_new(object, space->params[i], json_integer(row->values[i]));
    }
    if (r->outcome == STORE_OK) {
        json_object_set_new(object, "time", json_real(r->time_ns / EXCHANGE_MS_NS));
    } else {
        json_object_set_new(object, "time", json_string(word));
        json_object_set_new(object, "__error__", json_string(word));
    }
    exchange_time_text(row->created_ms, when);
    json_t *rest =
        json_pack("{s:o, s:f, s:i, s:i, s:i, s:i, s:s, s:o}", "times", times_of(r), "compile_time",
                  r->compile_ms, "verification_time", 0, "benchmark_time", 0, "strategy_time", 0,
                  "framework_time", 0, "timestamp", when, "hone", exchange_row_facts(row));
    if (rest == NULL || json_object_update(object, rest) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(rest);
    return object;
}

static void print_key(const int64_t *values, size_t len, FILE *to)
{
    for (size_t i = 0; i < len; i++) {
        fprintf(to, "%s%" PRId64, i > 0 ? "," : "", values[i]);
    }
}

/* The last three bytes are those that Kernel Tuner takes off to go on with a file. */
hone_status cachefile_print(const exchange_space *space, const manifest *m, FILE *to)
{
    json_t *head = header(space, m);
    char *text = head != NULL ? json_dumps(head, 0) : NULL;
    bool good = text != NULL;

    if (good) {
        text[strlen(text) - 1] = '\0'; /* its closing bracket comes last */
        fprintf(to, "%s,\n\"cache\": {", text);
    }
    free(text);
    json_decref(head);
    for (size_t i = 0; i < space->rows_len && good; i++) {
        json_t *object = entry(space, &space->rows[i]);
        fprintf(to, "%s\n\"", i > 0 ? "," : "");
        print_key(space->rows[i].values, space->params_len, to);
        fprintf(to, "\": ");
        good = object != NULL && json_dumpf(object, to, 0) == 0;
        json_decref(object);
    }
    fprintf(to, "}\n}");
    return good ? HONE_OK : HONE_NO_MEMORY;
}

static hone_status take_params(const exchange_source *from, const json_t *keys,
                               exchange_space *space)
{
    const size_t len = json_array_size(keys);

    if (len == 0 || len > MANIFEST_MAX_PARAMS) {
        return exchange_refuse(from, "'tune_params_keys' is no list of 1 to %d names",
                               MANIFEST_MAX_PARAMS);
    }
    for (size_t i = 0; i < len; i++) {
        const char *name = json_string_value(json_array_get(keys, i));
        if (name == NULL || name[0] == '\0' || strpbrk(name, " =") != NULL) {
            return exchange_refuse(from, "'tune_params_keys': element %zu is no parameter's name",
                                   i);
        }
        space->params[i] = arena_text(from->memory, name, strlen(name));
        if (space->params[i] == NULL) {
            return exchange_no_memory(from->path, from->error);
        }
    }
    space->params_len = len;
    return HONE_OK;
}

/* Older files put a failure's name where the time would be, newer ones into __error__. */
static hone_status take_time(const exchange_source *from, const json_t *entry, store_result *out)
{
    hone_status status = HONE_OK;
    const json_t *time = json_object_get(entry, "time"),
                 *named = json_object_get(entry, "__error__");
    const json_t *failure = named != NULL ? named : json_is_string(time) ? time : NULL;
    double ms = 0;

    out->outcome = STORE_OK;
    if (failure != NULL) {
        const char *word = json_string_value(failure);
        const bool plain = word != NULL && strcmp(word, "ErrorConfig") == 0;
        out->outcome = plain          ? STORE_FAULT
                       : word != NULL ? exchange_outcome(EXCHANGE_CACHEFILE, word)
                                      : 0;
        if (out->outcome == 0 || out->outcome == STORE_OK) {
            return exchange_refuse(from,
                                   "'%.60s' is no failure; there are InvalidConfig, "
                                   "CompilationFailedConfig, RuntimeFailedConfig, ErrorConfig",
                                   word != NULL ? word : "");
        }
        return HONE_OK;
    }
    TRY(exchange_number(from, time, "time", 1e-9, EXCHANGE_MOST_MS, &ms));
    out->time_ns = ms * EXCHANGE_MS_NS;
done:
    return status;
}

static hone_status take_entry(const exchange_source *from, const char *key, const json_t *entry,
                              exchange_space *space)
{
    hone_status status = HONE_OK;
    const json_t *compile = json_object_get(entry, "compile_time");
    exchange_row *row = exchange_add_row(space);
    char said[MANIFEST_MAX_PARAMS * 21] = "";
    size_t used = 0;

    if (row == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    if (!json_is_object(entry)) {
        return exchange_refuse(from, "is no object");
    }
    for (size_t i = 0; i < space->params_len; i++) {
        const json_t *value = json_object_get(entry, space->params[i]);
        TRY(exchange_value(from, value, space->params[i], &row->values[i]));
        used += json_is_boolean(value)
                    ? (size_t)snprintf(said + used, sizeof said - used, "%s%s", i > 0 ? "," : "",
                                       json_is_true(value) ? "True" : "False")
                    : (size_t)snprintf(said + used, sizeof said - used, "%s%" PRId64,
                                       i > 0 ? "," : "", row->values[i]);
    }
    if (strcmp(said, key) != 0) {
        return exchange_refuse(from, "its parameters are %.120s", said);
    }
    TRY(take_time(from, entry, &row->result));
    if (json_is_number(compile)) {
        TRY(exchange_number(from, compile, "compile_time", 0, EXCHANGE_MOST_MS,
                            &row->result.compile_ms));
    }
    TRY(exchange_samples(from, json_object_get(entry, "times"), &row->result));
    row->created_ms = exchange_time_read(json_string_value(json_object_get(entry, "timestamp")));
    TRY(exchange_take_row(from, json_object_get(entry, "hone"), row));
    row->config = exchange_join_config(from->memory, space->params, row->values, space->params_len);
    if (row->config == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
done:
    return status;
}

hone_status cachefile_take(exchange_source *from, const json_t *root, const exchange_given *given,
                           exchange_space *space)
{
    hone_status status = HONE_OK;
    const char *device = json_string_value(json_object_get(root, "device_name"));
    const char *kernel = json_string_value(json_object_get(root, "kernel_name"));
    json_t *cache = json_object_get(root, "cache");
    exchange_given told = *given;
    char name[128];
    const char *key;
    json_t *entry;

    if (device == NULL || kernel == NULL || !json_is_object(cache)) {
        return exchange_refuse(from, "is no cachefile: '%s' is missing",
                               device == NULL   ? "device_name"
                               : kernel == NULL ? "kernel_name"
                                                : "cache");
    }
    told.template_name = given->template_name != NULL ? given->template_name : kernel;
    TRY(exchange_take_space(from, json_object_get(root, "hone"), &told, space));
    exchange_device_name(&space->kind, name);
    if (strcmp(device, name) != 0) {
        return exchange_refuse(from, "its device_name is '%.80s', its device '%.80s'", device,
                               name);
    }
    TRY(take_params(from, json_object_get(root, "tune_params_keys"), space));
    json_object_foreach(cache, key, entry)
    {
        snprintf(from->row, sizeof from->row, "row '%.140s'", key);
        TRY(take_entry(from, key, entry, space));
        from->row[0] = '\0';
    }
done:
    return status;
}
