/* space_near.c - the legal configs around one: only the checks that read what changed are asked. */
#include "templates/space_parts.h"

#include <string.h>

static hone_status set_config(const space *s, const config *c, manifest_values *values,
                              hone_error *error)
{
    *values = s->base;
    return manifest_set(s->m, c, values, error);
}

/* Whether the checks that read one of `params` hold. */
static hone_status checks_hold(space *s, uint32_t params, manifest_values *values, bool *holds,
                               hone_error *error)
{
    hone_status status = HONE_OK;

    *holds = true;
    for (uint32_t c = 0; c < s->checks_len && *holds; c++) {
        if ((s->checks[c].params & params) != 0) {
            TRY(space_check_now(s, c, values, holds, error));
        }
    }
done:
    return status;
}

hone_status space_has(space *s, const config *c, bool *has, hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values;
    bool listed = !s->empty;

    *has = false;
    TRY(set_config(s, c, &values, error));
    for (uint32_t p = 0; p < s->m->params_len && listed; p++) {
        const manifest_param *param = &s->m->params[p];
        listed = false;
        for (uint32_t v = 0; v < param->len && !listed; v++) {
            listed = param->values[v] == c->value[p];
        }
    }
    if (listed) {
        TRY(checks_hold(s, UINT32_MAX, &values, has, error));
    }
done:
    return status;
}

typedef struct near {
    space *s;
    const config *from;
    manifest_values values;
    config *out;
    size_t capacity, len;
    hone_error *error;
} near;

/* Parameter `p` with its value number `v`. */
static hone_status try_value(near *n, uint32_t p, uint32_t v, bool *holds)
{
    hone_status status = HONE_OK;
    const int64_t value = n->s->m->params[p].values[v];

    n->values.slot[MANIFEST_SLOT_PARAM + p] = value;
    TRY(checks_hold(n->s, 1u << p, &n->values, holds, n->error));
    if (*holds) {
        if (n->len < n->capacity) {
            n->out[n->len] = *n->from;
            n->out[n->len].value[p] = value;
        }
        n->len++;
    }
done:
    return status;
}

/* All other values, or the first legal one below and above the config's own. */
static hone_status try_param(near *n, uint32_t p, space_reach reach)
{
    hone_status status = HONE_OK;
    const manifest_param *param = &n->s->m->params[p];
    uint32_t own = 0, first = 0, end = param->len;
    bool holds = false;

    while (own < param->len && param->values[own] != n->from->value[p]) {
        own++;
    }
    if (reach == SPACE_NEXT_VALUE) {
        for (first = own; first > 0 && !holds;) {
            TRY(try_value(n, p, --first, &holds));
        }
        first = own + 1;
    }
    holds = false;
    for (uint32_t v = first; v < end; v++) {
        if (v == own) {
            continue;
        }
        TRY(try_value(n, p, v, &holds));
        end = reach == SPACE_NEXT_VALUE && holds ? v : end;
    }
    n->values.slot[MANIFEST_SLOT_PARAM + p] = n->from->value[p];
done:
    return status;
}

hone_status space_neighbours(space *s, const config *c, space_reach reach, config *out,
                             size_t capacity, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    near n = {.s = s, .from = c, .out = out, .capacity = capacity, .error = error};

    TRY(set_config(s, c, &n.values, error));
    for (uint32_t p = 0; p < s->m->params_len; p++) {
        TRY(try_param(&n, p, reach));
    }
    *len = n.len;
done:
    return status;
}
