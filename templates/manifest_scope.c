/* manifest_scope.c - what names in a manifest's formulas mean, and the numbers behind them. */
#include "templates/manifest_parts.h"

#include "core/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Device fields: name in formulas, member of device_facts. */
#define DEVICE_FIELDS(X)                                                                           \
    X(dev_arch, arch)                                                                              \
    X(dev_sm_count, sm_count)                                                                      \
    X(dev_smem_block, smem_per_block)                                                              \
    X(dev_smem_sm, smem_per_sm)                                                                    \
    X(dev_threads_sm, threads_per_sm)                                                              \
    X(dev_regs_sm, regs_per_sm)                                                                    \
    X(dev_l2_bytes, l2_bytes)

static const char *const device_names[] = {
#define X(name, member) #name,
    DEVICE_FIELDS(X)
#undef X
};

static const struct {
    const char *name;
    int64_t value;
} dtypes[] = {
#define X(text, NAME, value, bits) {#text, value},
    HONE_DTYPE_MAP(X)
#undef X
};

static bool same(const char *word, const char *name, size_t len)
{
    return word != NULL && strlen(word) == len && memcmp(word, name, len) == 0;
}

/* The number that an enum's value name stands for in the fields of the op; false when unknown, or
 * when two fields give it different numbers. */
static bool find_enum(int32_t op, const char *name, size_t len, int64_t *value)
{
    size_t count = 0;
    bool found = false;
    const problem_field *fields = problem_fields(op, &count);

    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        if (same(dtypes[i].name, name, len)) {
            *value = dtypes[i].value;
            return true;
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t names_len = fields[i].kind == PROBLEM_ENUM ? fields[i].names_len : 0;
        for (uint32_t v = 0; v < names_len; v++) {
            if (!same(fields[i].names[v], name, len)) {
                continue;
            }
            if (found && *value != v) {
                return false;
            }
            *value = v;
            found = true;
        }
    }
    return found;
}

/* Fields, device facts and enum values: what every manifest of the op can name. */
static bool find_given(int32_t op, const char *name, size_t len, expression_symbol *out)
{
    size_t count = 0;
    const problem_field *fields = problem_fields(op, &count);
    const problem_field *field = problem_field_find(op, name, len);

    *out = (expression_symbol){0};
    if (field != NULL) {
        out->slot = MANIFEST_SLOT_FIELD + (uint32_t)(field - fields);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(device_names); i++) {
        if (same(device_names[i], name, len)) {
            out->slot = MANIFEST_SLOT_DEVICE + (uint32_t)i;
            return true;
        }
    }
    out->constant = true;
    return find_enum(op, name, len, &out->value);
}

static bool find_symbol(const void *context, const char *name, size_t len, expression_symbol *out)
{
    const manifest *m = context;

    *out = (expression_symbol){0};
    for (uint32_t i = 0; i < m->params_len; i++) {
        if (same(m->params[i].name, name, len)) {
            out->slot = MANIFEST_SLOT_PARAM + i;
            return true;
        }
    }
    for (uint32_t i = 0; i < m->lets_len; i++) {
        if (same(m->lets[i].name, name, len)) {
            out->slot = MANIFEST_SLOT_LET + i;
            return true;
        }
    }
    return find_given(m->op, name, len, out);
}

bool manifest_name_taken(const manifest *m, const char *name)
{
    expression_symbol symbol;

    return expression_reserved(name, strlen(name)) || find_symbol(m, name, strlen(name), &symbol);
}

bool manifest_is_name(const char *text, size_t len)
{
    if (len == 0 || len >= MANIFEST_NAME_BYTES) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (i == 0 || (c != '_' && (c < '0' || c > '9')))) {
            return false;
        }
    }
    return true;
}

hone_status manifest_read_formula(const manifest_reader *r, const document_node *node,
                                  manifest_formula *out)
{
    hone_status status = HONE_OK;
    const manifest *m = r->m;
    const expression_scope scope = {find_symbol, m};
    manifest_formula made = {0};
    const char *text = NULL;

    TRY(document_text(r->document, node, &text, r->error));
    TRY(expression_compile(m->name, node->line, text, strlen(text), &scope, &made.e, r->error));
    for (uint32_t i = 0; i < m->params_len; i++) {
        made.params |= (uint32_t)expression_uses(made.e, MANIFEST_SLOT_PARAM + i) << i;
    }
    for (uint32_t i = 0; i < m->lets_len; i++) {
        if (expression_uses(made.e, MANIFEST_SLOT_LET + i)) {
            made.params |= m->lets[i].value.params;
            made.lets |= m->lets[i].value.lets | UINT64_C(1) << i;
        }
    }
    *out = made;
done:
    return status;
}

void manifest_formula_free(manifest_formula *f)
{
    expression_free(f->e);
    f->e = NULL;
}

hone_status manifest_bind(const manifest *m, const hone_problem *problem,
                          const device_facts *device, manifest_values *out, hone_error *error)
{
    size_t count = 0;
    const problem_field *fields = problem_fields(m->op, &count);
    const int64_t facts[] = {
#define X(name, member) device->member,
        DEVICE_FIELDS(X)
#undef X
    };

    if (problem->op != m->op) {
        return status_set(error, HONE_BAD_ARGUMENT, m->name, 0,
                          "the template computes %s, the problem is another op",
                          problem_op_name(m->op));
    }
    *out = (manifest_values){0};
    for (size_t i = 0; i < count; i++) {
        out->slot[MANIFEST_SLOT_FIELD + i] = problem_field_get(problem, &fields[i]);
    }
    memcpy(&out->slot[MANIFEST_SLOT_DEVICE], facts, sizeof facts);
    return HONE_OK;
}

hone_status manifest_set(const manifest *m, const config *c, manifest_values *values,
                         hone_error *error)
{
    if (c->len != m->params_len) {
        return status_set(error, HONE_BAD_ARGUMENT, m->name, 0,
                          "a config of %u values for %u parameters", c->len, m->params_len);
    }
    memcpy(&values->slot[MANIFEST_SLOT_PARAM], c->value, c->len * sizeof *c->value);
    values->lets = 0;
    return HONE_OK;
}

hone_status manifest_value(const manifest *m, const manifest_formula *f, manifest_values *values,
                           int64_t standard, int64_t *out, hone_error *error)
{
    hone_status status = HONE_OK;

    if (f->e == NULL) {
        *out = standard;
        return HONE_OK;
    }
    /* `let`s stand in an order in which each needs only earlier ones. */
    for (uint64_t missing = f->lets & ~values->lets; missing != 0; missing &= missing - 1) {
        int let = __builtin_ctzll(missing);
        TRY(expression_evaluate(m->lets[let].value.e, values->slot,
                                &values->slot[MANIFEST_SLOT_LET + let], error));
        values->lets |= UINT64_C(1) << let;
    }
    TRY(expression_evaluate(f->e, values->slot, out, error));
done:
    return status;
}

hone_status manifest_refuse(const manifest_reader *r, const document_node *node, const char *format,
                            ...)
{
    char text[320];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return status_set(r->error, HONE_BAD_MANIFEST, r->m->name, node != NULL ? node->line : 0, "%s",
                      text);
}

hone_status manifest_expect(const manifest_reader *r, const document_node *node, document_kind kind,
                            size_t most, const char *what)
{
    static const char *const kinds[] = {"text", "a list", "a map"};

    if (node->kind != kind) {
        return manifest_refuse(r, node, "%s must be %s", what, kinds[kind]);
    }
    if (kind != DOCUMENT_SCALAR && node->len > most) {
        return status_set(r->error, HONE_LIMIT, r->m->name, node->line,
                          "%s has %zu entries, over %zu", what, node->len, most);
    }
    return HONE_OK;
}

hone_status manifest_read_name(const manifest_reader *r, const document_node *node,
                               char out[MANIFEST_NAME_BYTES])
{
    if (node->kind != DOCUMENT_SCALAR || !manifest_is_name(node->text, node->len)) {
        return manifest_refuse(
            r, node, "'%.64s' is no name: a letter, then letters, digits and _, at most 64",
            node->kind == DOCUMENT_SCALAR ? node->text : "");
    }
    memcpy(out, node->text, node->len + 1);
    return HONE_OK;
}
