/* t4.c - T4, the results file that autotuners share. */
#include "exchange/exchange_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *configuration(const exchange_space *space, const exchange_row *row)
{
    json_t *object = json_object();

    for (size_t i = 0; i < space->params_len; i++) {
        json_object_set_new(object, space->params[i], json_integer(row->values[i]));
    }
    return object;
}

static json_t *result(const exchange_space *space, const exchange_row *row)
{
    const store_result *r = &row->result;
    const bool timed = r->outcome == STORE_OK;
    const bool right = timed || r->outcome == STORE_UNMEASURED;
    json_t *runtimes = json_array(), *measurements = json_array();
    char when[32];

    for (size_t i = 0; i < r->samples_len; i++) {
        json_array_append_new(runtimes, json_real(r->samples_ns[i] / EXCHANGE_MS_NS));
    }
    if (timed) {
        json_array_append_new(measurements, json_pack("{s:s, s:f, s:s}", "name", "time", "value",
                                                      r->time_ns / EXCHANGE_MS_NS, "unit", "ms"));
    }
    exchange_time_text(row->created_ms, when);
    return json_pack(
        "{s:s, s:o, s:{s:f, s:i, s:i, s:i, s:i, s:o}, s:s, s:i, s:o, s:[s], s:o}", "timestamp",
        when, "configuration", configuration(space, row), "times", "compilation", r->compile_ms,
        "benchmark", 0, "framework", 0, "search_algorithm", 0, "validation", 0, "runtimes",
        runtimes, "invalidity", exchange_word(EXCHANGE_T4, r->outcome), "correctness", (int)right,
        "measurements", measurements, "objectives", "time", "hone", exchange_row_facts(row));
}

hone_status t4_print(const exchange_space *space, FILE *to)
{
    json_t *meta = json_pack("{s:s, s:b, s:o}", "timeunit", "milliseconds", "modelled",
                             (int)space->kind.emulated, "hone", exchange_space_facts(space));
    bool good = meta != NULL;

    fprintf(to, "{\"schema_version\": \"1.0.0\", \"metadata\": ");
    good = good && json_dumpf(meta, to, 0) == 0;
    json_decref(meta);
    fprintf(to, ", \"results\": [");
    for (size_t i = 0; i < space->rows_len && good; i++) {
        json_t *object = result(space, &space->rows[i]);
        fprintf(to, "%s\n", i > 0 ? "," : "");
        good = object != NULL && json_dumpf(object, to, 0) == 0;
        json_decref(object);
    }
    fprintf(to, "\n]}\n");
    return good ? HONE_OK : HONE_NO_MEMORY;
}

/* The first result's parameters are everyone's. */
static hone_status take_params(const exchange_source *from, json_t *params, exchange_space *space)
{
    const char *name;
    json_t *value;

    if (!json_is_object(params) || json_object_size(params) == 0 ||
        json_object_size(params) > MANIFEST_MAX_PARAMS) {
        return exchange_refuse(from, "'configuration' is no object of 1 to %d parameters",
                               MANIFEST_MAX_PARAMS);
    }
    json_object_foreach(params, name, value)
    {
        if (name[0] == '\0' || strpbrk(name, " =") != NULL) {
            return exchange_refuse(from, "'%.60s' is no parameter's name", name);
        }
        space->params[space->params_len] = arena_text(from->memory, name, strlen(name));
        if (space->params[space->params_len++] == NULL) {
            return exchange_no_memory(from->path, from->error);
        }
    }
    return HONE_OK;
}

static hone_status take_time(const exchange_source *from, json_t *list, store_result *out)
{
    hone_status status = HONE_OK;
    size_t i;
    json_t *one;
    double ms = 0;

    json_array_foreach(list, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *unit = json_string_value(json_object_get(one, "unit"));
        if (name == NULL || strcmp(name, "time") != 0) {
            continue;
        }
        if (unit != NULL && strcmp(unit, "ms") != 0) {
            return exchange_refuse(from, "its time is in '%.20s', not in ms", unit);
        }
        TRY(exchange_number(from, json_object_get(one, "value"), "time", 1e-9, EXCHANGE_MOST_MS,
                            &ms));
    }
    if (ms == 0) {
        return exchange_refuse(from, "is correct and has no measurement 'time'");
    }
    out->time_ns = ms * EXCHANGE_MS_NS;
done:
    return status;
}

/* The schema says compilation_time, Kernel Tuner writes compilation. */
static hone_status take_times(const exchange_source *from, const json_t *times, store_result *out)
{
    hone_status status = HONE_OK;
    const json_t *compile = json_object_get(times, "compilation");

    compile = compile != NULL ? compile : json_object_get(times, "compilation_time");
    if (json_is_number(compile)) {
        TRY(exchange_number(from, compile, "compilation", 0, EXCHANGE_MOST_MS, &out->compile_ms));
    }
    TRY(exchange_samples(from, json_object_get(times, "runtimes"), out));
done:
    return status;
}

static hone_status take_result(const exchange_source *from, json_t *object, exchange_space *space)
{
    hone_status status = HONE_OK;
    json_t *params = json_object_get(object, "configuration");
    const char *word = json_string_value(json_object_get(object, "invalidity"));
    exchange_row *row = exchange_add_row(space);

    if (row == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    if (space->params_len == 0) {
        TRY(take_params(from, params, space));
    }
    if (json_object_size(params) != space->params_len) {
        return exchange_refuse(from, "'configuration' has not the first one's %zu parameters",
                               space->params_len);
    }
    for (size_t i = 0; i < space->params_len; i++) {
        TRY(exchange_value(from, json_object_get(params, space->params[i]), space->params[i],
                           &row->values[i]));
    }
    row->result.outcome = word != NULL ? exchange_outcome(EXCHANGE_T4, word) : 0;
    if (row->result.outcome == 0) {
        return exchange_refuse(from,
                               "'invalidity' '%.40s' is none of correct, compile, runtime, "
                               "timeout, correctness and constraints",
                               word != NULL ? word : "");
    }
    if (row->result.outcome == STORE_OK) {
        TRY(take_time(from, json_object_get(object, "measurements"), &row->result));
    }
    TRY(take_times(from, json_object_get(object, "times"), &row->result));
    row->created_ms = exchange_time_read(json_string_value(json_object_get(object, "timestamp")));
    TRY(exchange_take_row(from, json_object_get(object, "hone"), row));
    row->config = exchange_join_config(from->memory, space->params, row->values, space->params_len);
    if (row->config == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
done:
    return status;
}

hone_status t4_take(exchange_source *from, const json_t *root, const exchange_given *given,
                    exchange_space *space)
{
    hone_status status = HONE_OK;
    const json_t *meta = json_object_get(root, "metadata");
    json_t *list = json_object_get(root, "results");
    const json_t *unit = json_object_get(meta, "timeunit");
    const char *version = json_string_value(json_object_get(root, "schema_version"));
    const char *word = json_string_value(unit);
    size_t i;
    json_t *one;

    if (!json_is_array(list) || version == NULL || strncmp(version, "1.", 2) != 0) {
        return exchange_refuse(from, "is no T4 file of version 1: %s",
                               json_is_array(list) ? "another 'schema_version'" : "no 'results'");
    }
    if (unit != NULL &&
        (word == NULL || (strcmp(word, "milliseconds") != 0 && strcmp(word, "miliseconds") != 0))) {
        return exchange_refuse(from, "'timeunit' '%.40s' is not milliseconds",
                               word != NULL ? word : "");
    }
    TRY(exchange_take_space(from, json_object_get(meta, "hone"), given, space));
    json_array_foreach(list, i, one)
    {
        snprintf(from->row, sizeof from->row, "result %zu", i);
        TRY(take_result(from, one, space));
        from->row[0] = '\0';
    }
done:
    return status;
}
