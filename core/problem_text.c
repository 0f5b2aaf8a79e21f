/* problem_text.c - the text form of a problem, both ways: "op:field=value,...".
 *
 * Fields come in any order, each at most once; `recipe` and `record` are texts that set several
 * fields at once. */
#include "core/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that stands for a run of fields, from `first` to `last` in the table. */
typedef struct composite {
    int32_t op;
    const char *name, *first, *last;
    hone_status (*parse)(const char *text, size_t len, hone_problem *out, hone_error *error);
    void (*format)(const hone_problem *problem, char text[64]);
} composite;

static hone_status parse_recipe(const char *text, size_t len, hone_problem *out, hone_error *error)
{
    hone_recipe *recipe =
        out->op == HONE_OP_MOE_GEMM ? &out->as.moe_gemm.recipe : &out->as.fp8_gemm.recipe;

    return problem_recipe_parse(text, len, recipe, error);
}

static void format_recipe(const hone_problem *problem, char text[64])
{
    problem_recipe_format(problem->op == HONE_OP_MOE_GEMM ? &problem->as.moe_gemm.recipe
                                                          : &problem->as.fp8_gemm.recipe,
                          text);
}

static hone_record *record_of(hone_problem *problem)
{
    return problem->op == HONE_OP_KV_GATHER          ? &problem->as.kv_gather.record
           : problem->op == HONE_OP_MQA_LOGITS_PAGED ? &problem->as.mqa_logits_paged.record
           : problem->op == HONE_OP_INDEX_PREPARE    ? &problem->as.index_prepare.record
                                                     : &problem->as.kv_quant.record;
}

static hone_status parse_record(const char *text, size_t len, hone_problem *out, hone_error *error)
{
    return problem_record_parse(text, len, record_of(out), error);
}

static void format_record(const hone_problem *problem, char text[64])
{
    hone_problem copy = *problem;

    problem_record_format(record_of(&copy), text);
}

static const composite composites[] = {
    {HONE_OP_FP8_GEMM, "recipe", "a_element", "b_gran_k", parse_recipe, format_recipe},
    {HONE_OP_MOE_GEMM, "recipe", "a_element", "b_gran_k", parse_recipe, format_recipe},
    {HONE_OP_KV_QUANT, "record", "record_format", "record_version", parse_record, format_record},
    {HONE_OP_KV_GATHER, "record", "record_format", "record_version", parse_record, format_record},
    {HONE_OP_MQA_LOGITS_PAGED, "record", "record_format", "record_version", parse_record,
     format_record},
    {HONE_OP_INDEX_PREPARE, "record", "record_format", "record_version", parse_record,
     format_record},
};

/* The composite of that name, or NULL. */
static const composite *composite_find(int32_t op, const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(composites); i++) {
        if (composites[i].op == op && strlen(composites[i].name) == len &&
            memcmp(composites[i].name, name, len) == 0) {
            return &composites[i];
        }
    }
    return NULL;
}

/* The composite whose run begins with `field`, or NULL. */
static const composite *composite_at(int32_t op, const char *field)
{
    for (size_t i = 0; i < ARRAY_LEN(composites); i++) {
        if (composites[i].op == op && strcmp(composites[i].first, field) == 0) {
            return &composites[i];
        }
    }
    return NULL;
}

/* A strict base-10 integer: optional '-', no leading zero. */
static bool parse_int(const char *text, size_t len, int64_t *out)
{
    bool negative = len > 0 && text[0] == '-';
    size_t at = negative ? 1 : 0;
    int64_t value = 0;

    if (at == len || len - at > 18 || (text[at] == '0' && len - at > 1)) {
        return false;
    }
    for (; at < len; at++) {
        if (text[at] < '0' || text[at] > '9') {
            return false;
        }
        value = value * 10 + (text[at] - '0');
    }
    *out = negative ? -value : value;
    return true;
}

static bool parse_name(const problem_field *field, const char *text, size_t len, int64_t *out)
{
    for (uint32_t i = 0; i < field->names_len; i++) {
        const char *name = field->names[i];
        if (name != NULL && strlen(name) == len && memcmp(name, text, len) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static hone_status parse_value(const problem_field *field, const char *text, size_t len,
                               hone_problem *out, hone_error *error)
{
    int64_t value = 0;

    if (field->kind == PROBLEM_ENUM) {
        if (!parse_name(field, text, len, &value)) {
            return status_set(error, HONE_BAD_TEXT, NULL, 0, "%s=%.*s is not a known value",
                              field->name, (int)(len < 64 ? len : 64), text);
        }
    } else if (!parse_int(text, len, &value)) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0,
                          "%s=%.*s is not a base-10 number of at most 18 digits", field->name,
                          (int)(len < 64 ? len : 64), text);
    }
    if (field->kind == PROBLEM_INT && value != (int32_t)value) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "%s=%" PRId64 " does not fit 32 bits",
                          field->name, value);
    }
    problem_field_set(out, field, value);
    return HONE_OK;
}

/* Note the fields first..last of `op` as given; false when one was given before. */
static bool mark(int32_t op, const char *first, const char *last, uint32_t *given)
{
    size_t count;
    const problem_field *fields = problem_fields(op, &count);
    bool inside = false, fresh = true;

    for (size_t i = 0; i < count; i++) {
        inside = inside || strcmp(fields[i].name, first) == 0;
        if (inside) {
            fresh = fresh && (*given & (1u << i)) == 0;
            *given |= 1u << i;
        }
        inside = inside && strcmp(fields[i].name, last) != 0;
    }
    return fresh;
}

/* One "field=value" of `len` bytes. */
static hone_status parse_pair(const char *text, size_t len, hone_problem *out, uint32_t *given,
                              hone_error *error)
{
    const char *equal = memchr(text, '=', len);
    int shown = (int)(len < 64 ? len : 64);

    if (equal == NULL) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0, "\"%.*s\" is not field=value", shown,
                          text);
    }
    size_t name_len = (size_t)(equal - text), value_len = len - name_len - 1;
    const composite *whole = composite_find(out->op, text, name_len);
    const problem_field *field = problem_field_find(out->op, text, name_len);
    if (whole == NULL && field == NULL) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0, "%s has no field \"%.*s\"",
                          problem_op_name(out->op), (int)(name_len < 64 ? name_len : 64), text);
    }
    if (!mark(out->op, whole != NULL ? whole->first : field->name,
              whole != NULL ? whole->last : field->name, given)) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0, "\"%.*s\" sets a field a second time",
                          shown, text);
    }
    return whole != NULL ? whole->parse(equal + 1, value_len, out, error)
                         : parse_value(field, equal + 1, value_len, out, error);
}

static hone_status check_given(int32_t op, uint32_t given, hone_error *error)
{
    size_t count;
    const problem_field *fields = problem_fields(op, &count);
    const composite *whole = NULL;

    for (size_t i = 0; i < count; i++) {
        if (fields[i].required && (given & (1u << i)) == 0) {
            whole = composite_at(op, fields[i].name);
            return status_set(error, HONE_BAD_TEXT, NULL, 0, "%s needs %s=...", problem_op_name(op),
                              whole != NULL ? whole->name : fields[i].name);
        }
    }
    return HONE_OK;
}

hone_status hone_problem_parse(const char *text, hone_problem *out, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_problem made;
    uint32_t given = 0;

    if (text == NULL || out == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "text and out must not be NULL");
    }
    size_t op_len = strcspn(text, ":");
    int32_t op = problem_op_parse(text, op_len);
    if (op == 0 || text[op_len] != ':') {
        return status_set(error, HONE_BAD_TEXT, NULL, 0,
                          "\"%.*s\" is not an op; a problem reads op:field=value,...",
                          (int)(op_len < 64 ? op_len : 64), text);
    }
    problem_init(&made, op);
    for (const char *at = text + op_len + 1;; at++) {
        size_t len = strcspn(at, ",");
        TRY(parse_pair(at, len, &made, &given, error));
        at += len;
        if (*at == '\0') {
            break;
        }
    }
    TRY(check_given(op, given, error));
    problem_derive(&made);
    TRY(hone_problem_check(&made, error));
    *out = made;
done:
    return status;
}

/* Append to text[*used..capacity); *used keeps counting past the end, so that one check at the end
 * suffices. */
static void append(char *text, size_t capacity, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t capacity, size_t *used, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int wrote = vsnprintf(*used < capacity ? text + *used : NULL,
                          *used < capacity ? capacity - *used : 0, format, arguments);
    va_end(arguments);
    *used += (size_t)wrote;
}

hone_status hone_problem_format(const hone_problem *problem, char *text, size_t capacity,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    char made[512], part[64];
    size_t count, used = 0;
    const char *skip = NULL; /* last field of the composite that is being passed over */

    TRY(hone_problem_check(problem, error));
    const problem_field *fields = problem_fields(problem->op, &count);
    append(made, sizeof made, &used, "%s:", problem_op_name(problem->op));
    for (size_t i = 0; i < count; i++) {
        const composite *whole = composite_at(problem->op, fields[i].name);
        const char *comma = i == 0 ? "" : ",";
        int64_t value = problem_field_get(problem, &fields[i]);
        if (whole != NULL) {
            whole->format(problem, part);
            append(made, sizeof made, &used, "%s%s=%s", comma, whole->name, part);
            skip = whole->last;
        } else if (fields[i].quiet && value == 0) {
            continue;
        } else if (skip == NULL && fields[i].kind == PROBLEM_ENUM) {
            append(made, sizeof made, &used, "%s%s=%s", comma, fields[i].name,
                   fields[i].names[value]);
        } else if (skip == NULL) {
            append(made, sizeof made, &used, "%s%s=%" PRId64, comma, fields[i].name, value);
        }
        skip = skip != NULL && strcmp(skip, fields[i].name) == 0 ? NULL : skip;
    }
    if (used >= capacity || used >= sizeof made) {
        return status_set(error, HONE_LIMIT, NULL, 0, "the text needs %zu bytes", used + 1);
    }
    memcpy(text, made, used + 1);
done:
    return status;
}
