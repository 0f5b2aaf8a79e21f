/* facts.c - provenance: what other tuners' formats have no fields for, in an object named "hone".
 */
#include "exchange/exchange_parts.h"

#include "core/digest.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

enum { FACTS_VERSION = 1 };

typedef enum fact_kind { FACT_INT, FACT_REAL, FACT_TEXT } fact_kind;

/* What of a result goes there as it is. */
static const struct fact {
    const char *name;
    fact_kind kind;
    size_t offset;
} facts[] = {
    {"registers", FACT_INT, offsetof(store_result, registers)},
    {"shared_bytes", FACT_INT, offsetof(store_result, shared_bytes)},
    {"spill_bytes", FACT_INT, offsetof(store_result, spill_bytes)},
    {"local_bytes", FACT_INT, offsetof(store_result, local_bytes)},
    {"cache_mode", FACT_TEXT, offsetof(store_result, cache_mode)},
    {"tokens", FACT_TEXT, offsetof(store_result, tokens)},
    {"clock_sm_mhz", FACT_INT, offsetof(store_result, clock_sm_mhz)},
    {"clock_mem_mhz", FACT_INT, offsetof(store_result, clock_mem_mhz)},
    {"cosine", FACT_REAL, offsetof(store_result, cosine)},
    {"rel_fro", FACT_REAL, offsetof(store_result, rel_fro)},
    {"calc_diff", FACT_REAL, offsetof(store_result, calc_diff)},
    {"max_err_ratio", FACT_REAL, offsetof(store_result, max_err_ratio)},
    {"checked_ctas", FACT_INT, offsetof(store_result, checked_ctas)},
    {"flop", FACT_REAL, offsetof(store_result, flop)},
    {"bytes", FACT_REAL, offsetof(store_result, bytes)},
    {"roof_ns", FACT_REAL, offsetof(store_result, roof_ns)},
    {"bound", FACT_TEXT, offsetof(store_result, bound)},
    {"counters", FACT_TEXT, offsetof(store_result, counters)},
    {"reason", FACT_TEXT, offsetof(store_result, reason)},
};

static const struct {
    const char *name;
    size_t offset;
    bool needed; /* without it the kind would match devices that it is not */
} kind_facts[] = {
    {"arch", offsetof(device_kind, arch), true},
    {"sm_count", offsetof(device_kind, sm_count), true},
    {"smem_per_block", offsetof(device_kind, smem_per_block), false},
    {"mem_gib", offsetof(device_kind, mem_gib), false},
    {"mem_100gb_s", offsetof(device_kind, mem_100gb_s), false},
};

hone_status exchange_refuse(const exchange_source *from, const char *format, ...)
{
    char text[700];
    va_list rest;
    int used = snprintf(text, sizeof text, "%s%s", from->row, from->row[0] != '\0' ? ": " : "");

    va_start(rest, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, rest);
    va_end(rest);
    for (char *at = text; *at != '\0'; at++) {
        *at = iscntrl((unsigned char)*at) ? '?' : *at;
    }
    return status_set(from->error, HONE_BAD_TEXT, from->path, 0, "%s", text);
}

json_t *exchange_space_facts(const exchange_space *space)
{
    const device_kind *k = &space->kind;
    json_t *device = json_object();
    bool good = json_object_set_new(device, "name", json_string(k->name)) == 0;

    for (size_t i = 0; i < ARRAY_LEN(kind_facts); i++) {
        int32_t value;
        memcpy(&value, (const char *)k + kind_facts[i].offset, sizeof value);
        good = json_object_set_new(device, kind_facts[i].name, json_integer(value)) == 0 && good;
    }
    good = json_object_set_new(device, "emulated", json_boolean(k->emulated)) == 0 && good;
    if (!good) {
        json_decref(device);
        return NULL;
    }
    return json_pack("{s:i, s:s, s:s, s:o}", "schema", FACTS_VERSION, "problem",
                     space->problem_text, "template", space->template_name, "device", device);
}

/* JSON has no NaN: a figure that is none is null. */
static json_t *fact_value(const struct fact *fact, const store_result *result)
{
    const char *at = (const char *)result + fact->offset;
    int32_t number;
    double real;
    const char *text;

    switch (fact->kind) {
    case FACT_INT:
        memcpy(&number, at, sizeof number);
        return json_integer(number);
    case FACT_REAL:
        memcpy(&real, at, sizeof real);
        return isfinite(real) ? json_real(real) : json_null();
    case FACT_TEXT:
        memcpy(&text, at, sizeof text);
        return json_string(text != NULL ? text : "");
    }
    return NULL;
}

json_t *exchange_row_facts(const exchange_row *row)
{
    const store_result *r = &row->result;
    char hex[2 * sizeof row->template_digest + 1];

    digest_hex(row->template_digest, sizeof row->template_digest, hex);
    json_t *object = json_pack(
        "{s:s, s:s, s:b, s:s, s:s, s:i, s:b}", "outcome", store_outcome_name(r->outcome), "timer",
        store_timer_name(r->timer), "modelled", r->timer == STORE_TIMER_MODELLED, "template_digest",
        hex, "nvrtc", row->nvrtc, "driver", (int)row->driver, "imported", (int)row->imported);
    bool good = object != NULL;
    for (size_t i = 0; i < ARRAY_LEN(facts) && good; i++) {
        good = json_object_set_new(object, facts[i].name, fact_value(&facts[i], r)) == 0;
    }
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

hone_status exchange_number(const exchange_source *from, const json_t *value, const char *name,
                            double least, double most, double *out)
{
    const double number = json_number_value(value);

    if (!json_is_number(value) || !(number >= least && number <= most)) {
        return exchange_refuse(from, "'%.60s' is no number from %g to %g", name, least, most);
    }
    *out = number;
    return HONE_OK;
}

hone_status exchange_value(const exchange_source *from, const json_t *value, const char *name,
                           int64_t *out)
{
    if (!json_is_integer(value) && !json_is_boolean(value)) {
        return exchange_refuse(from, "parameter '%.60s' is no whole number", name);
    }
    *out = json_is_integer(value) ? json_integer_value(value) : json_is_true(value);
    return HONE_OK;
}

hone_status exchange_samples(const exchange_source *from, const json_t *list, store_result *out)
{
    hone_status status = HONE_OK;
    const size_t len = json_array_size(list);
    double *samples = arena_alloc(from->memory, len > 0 ? len * sizeof *samples : 1);

    if (list != NULL && !json_is_array(list)) {
        return exchange_refuse(from, "the times are no list");
    }
    if (samples == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    for (size_t i = 0; i < len; i++) {
        TRY(exchange_number(from, json_array_get(list, i), "times", 0, EXCHANGE_MOST_MS,
                            &samples[i]));
        samples[i] *= EXCHANGE_MS_NS;
    }
    out->samples_ns = samples;
    out->samples_len = len;
done:
    return status;
}

/* A text of the object, "" where it is absent; copied. */
static hone_status take_text(const exchange_source *from, const json_t *object, const char *name,
                             const char **out)
{
    const json_t *value = json_object_get(object, name);

    if (value != NULL && !json_is_string(value)) {
        return exchange_refuse(from, "'%s' in 'hone' is no text", name);
    }
    const char *copy = arena_text(from->memory, value != NULL ? json_string_value(value) : "",
                                  json_string_length(value));
    if (copy == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    *out = copy;
    return HONE_OK;
}

static hone_status take_int(const exchange_source *from, const json_t *object, const char *name,
                            int32_t *out)
{
    const json_t *value = json_object_get(object, name);
    const json_int_t number = json_integer_value(value);

    if (value != NULL && (!json_is_integer(value) || number < 0 || number > INT32_MAX)) {
        return exchange_refuse(from, "'%s' in 'hone' is no whole number from 0 to %d", name,
                               INT32_MAX);
    }
    *out = (int32_t)number;
    return HONE_OK;
}

static hone_status take_device(const exchange_source *from, const json_t *object, device_kind *out)
{
    hone_status status = HONE_OK;
    const char *name = NULL;
    device_kind kind = {.emulated = json_is_true(json_object_get(object, "emulated"))};

    if (!json_is_object(object)) {
        return exchange_refuse(from, "'hone' has no 'device'");
    }
    TRY(take_text(from, object, "name", &name));
    if (name[0] == '\0' || strlen(name) >= sizeof kind.name) {
        return exchange_refuse(from, "'name' of 'device' is no name");
    }
    snprintf(kind.name, sizeof kind.name, "%s", name);
    for (size_t i = 0; i < ARRAY_LEN(kind_facts); i++) {
        int32_t value = 0;
        TRY(take_int(from, object, kind_facts[i].name, &value));
        if (kind_facts[i].needed && value == 0) {
            return exchange_refuse(from,
                                   "device '%.80s' has no '%s'; without it these rows would be "
                                   "every device's of that name, and none is imported",
                                   kind.name, kind_facts[i].name);
        }
        memcpy((char *)&kind + kind_facts[i].offset, &value, sizeof value);
    }
    *out = kind;
done:
    return status;
}

static hone_status take_problem(const exchange_source *from, const char *text,
                                const exchange_given *given, exchange_space *space)
{
    hone_error why = {0};
    char canonical[512];

    if (text[0] == '\0' && given->problem == NULL) {
        return exchange_refuse(from, "does not say which problem its rows are of; name it: "
                                     "--problem TEXT");
    }
    if (text[0] == '\0') {
        space->problem = *given->problem;
    } else if (hone_problem_parse(text, &space->problem, &why) != HONE_OK) {
        return exchange_refuse(from, "problem '%.200s': %.200s", text, why.message);
    }
    if (hone_problem_format(&space->problem, canonical, sizeof canonical, &why) != HONE_OK) {
        return exchange_refuse(from, "its problem: %.200s", why.message);
    }
    space->problem_text = arena_text(from->memory, canonical, strlen(canonical));
    if (space->problem_text == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    if (given->problem != NULL &&
        (hone_problem_format(given->problem, canonical, sizeof canonical, &why) != HONE_OK ||
         strcmp(canonical, space->problem_text) != 0)) {
        return exchange_refuse(from, "its rows are of %.200s, not of the --problem that is named",
                               space->problem_text);
    }
    return HONE_OK;
}

hone_status exchange_take_space(const exchange_source *from, const json_t *object,
                                const exchange_given *given, exchange_space *space)
{
    hone_status status = HONE_OK;
    const char *problem = NULL, *name = NULL;
    int32_t version = 0;

    if (object != NULL && !json_is_object(object)) {
        return exchange_refuse(from, "'hone' is no object");
    }
    TRY(take_int(from, object, "schema", &version));
    if (version > FACTS_VERSION) {
        return exchange_refuse(from, "was written by a newer hone (schema %d; this one knows %d)",
                               version, FACTS_VERSION);
    }
    TRY(take_text(from, object, "problem", &problem));
    TRY(take_text(from, object, "template", &name));
    TRY(take_problem(from, problem, given, space));
    if (name[0] == '\0' && given->template_name == NULL) {
        return exchange_refuse(from, "does not say which template its rows are of; name it: "
                                     "--template NAME");
    }
    name = name[0] != '\0' ? name : given->template_name; /* which may be a text of the file */
    space->template_name = arena_text(from->memory, name, strlen(name));
    if (space->template_name == NULL) {
        return exchange_no_memory(from->path, from->error);
    }
    if (object != NULL) {
        TRY(take_device(from, json_object_get(object, "device"), &space->kind));
    } else if (given->device != NULL) {
        space->kind = *given->device;
    } else {
        return exchange_refuse(from,
                               "does not say its device's arch and SM count; without them its "
                               "rows would be every device's of that name; name it: --device SPEC");
    }
    if (given->device != NULL && (device_kind_match(&space->kind, given->device) != DEVICE_SAME ||
                                  space->kind.emulated != given->device->emulated)) {
        return exchange_refuse(from, "its rows are of another device, '%.80s' with %d SMs",
                               space->kind.name, space->kind.sm_count);
    }
done:
    return status;
}

static hone_status take_digest(const exchange_source *from, const json_t *object, uint8_t out[32])
{
    const char *hex = json_string_value(json_object_get(object, "template_digest"));
    unsigned byte = 0;

    if (hex == NULL) {
        return HONE_OK;
    }
    if (strlen(hex) != 64 || strspn(hex, "0123456789abcdef") != 64) {
        return exchange_refuse(from, "'template_digest' is no 64 hex digits");
    }
    for (size_t i = 0; i < 32; i++) {
        sscanf(hex + 2 * i, "%2x", &byte);
        out[i] = (uint8_t)byte;
    }
    return HONE_OK;
}

static hone_status take_fact(const exchange_source *from, const json_t *object,
                             const struct fact *fact, store_result *out)
{
    hone_status status = HONE_OK;
    char *at = (char *)out + fact->offset;
    const json_t *value = json_object_get(object, fact->name);
    int32_t number = 0;
    double real = json_is_null(value) ? NAN : 0;
    const char *text = NULL;

    switch (fact->kind) {
    case FACT_INT:
        TRY(take_int(from, object, fact->name, &number));
        memcpy(at, &number, sizeof number);
        break;
    case FACT_REAL:
        if (value != NULL && !json_is_null(value)) {
            TRY(exchange_number(from, value, fact->name, -1e300, 1e300, &real));
        }
        memcpy(at, &real, sizeof real);
        break;
    case FACT_TEXT:
        TRY(take_text(from, object, fact->name, &text));
        memcpy(at, &text, sizeof text);
        break;
    }
done:
    return status;
}

static int32_t timer_of(const char *name)
{
    for (int32_t timer = STORE_TIMER_NONE; timer <= STORE_TIMER_MODELLED; timer++) {
        if (strcmp(store_timer_name(timer), name) == 0) {
            return timer;
        }
    }
    return -1;
}

hone_status exchange_take_row(const exchange_source *from, const json_t *object, exchange_row *row)
{
    hone_status status = HONE_OK;
    const char *outcome = NULL, *timer = NULL;

    if (object != NULL && !json_is_object(object)) {
        return exchange_refuse(from, "'hone' is no object");
    }
    TRY(take_text(from, object, "outcome", &outcome));
    TRY(take_text(from, object, "timer", &timer));
    TRY(take_text(from, object, "nvrtc", &row->nvrtc));
    TRY(take_int(from, object, "driver", &row->driver));
    TRY(take_digest(from, object, row->template_digest));
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        TRY(take_fact(from, object, &facts[i], &row->result));
    }
    row->result.timer = timer[0] != '\0' ? timer_of(timer) : STORE_TIMER_NONE;
    if (row->result.timer < 0) {
        return exchange_refuse(from, "'timer' '%.40s' is none", timer);
    }
    if (outcome[0] != '\0') {
        const int32_t told = store_outcome_parse(outcome);
        const char *word = exchange_word(from->format, told);
        if (word[0] == '\0' ||
            strcmp(word, exchange_word(from->format, row->result.outcome)) != 0) {
            return exchange_refuse(from, "'outcome' '%.40s' is not what the row says", outcome);
        }
        row->result.outcome = told;
    }
done:
    return status;
}
