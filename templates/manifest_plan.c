/* manifest_plan.c - the launches of a config: name expressions from checked integers, geometry,
 * arguments. */
#include "templates/manifest_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "kernel<Config{.block_m = 128, .stages = 4}>". Only names that the reader checked and numbers get
 * in. */
static hone_status plan_entry(const manifest *m, const manifest_launch *launch,
                              manifest_values *values, plan_launch *out, hone_error *error)
{
    hone_status status = HONE_OK;
    size_t used = (size_t)snprintf(out->entry, sizeof out->entry, "%s<Config{", launch->kernel);

    for (uint32_t i = 0; i < m->members_len && used < sizeof out->entry; i++) {
        int64_t value = 0;
        TRY(manifest_value(m, &m->members[i].value, values, 0, &value, error));
        if (value < INT32_MIN || value > INT32_MAX) {
            return status_set(error, HONE_OVERFLOW, m->name, expression_line(m->members[i].value.e),
                              "config member %s is %lld, which does not fit an int",
                              m->members[i].name, (long long)value);
        }
        used += (size_t)snprintf(out->entry + used, sizeof out->entry - used, "%s.%s = %lld",
                                 i > 0 ? ", " : "", m->members[i].name, (long long)value);
    }
    if (used < sizeof out->entry) {
        used += (size_t)snprintf(out->entry + used, sizeof out->entry - used, "}>");
    }
    if (used >= sizeof out->entry) {
        status =
            status_set(error, HONE_LIMIT, m->name, launch->line,
                       "the name expression of %s is over %zu bytes; shorten the members' names",
                       launch->kernel, sizeof out->entry);
    }
done:
    return status;
}

static hone_status plan_operand(const manifest *m, const char *name, int line,
                                const hone_operand *operands, size_t operands_len, uint32_t *out,
                                hone_error *error)
{
    for (size_t i = 0; i < operands_len; i++) {
        if (strcmp(operands[i].name, name) == 0) {
            *out = (uint32_t)i;
            return HONE_OK;
        }
    }
    return status_set(error, HONE_BAD_MANIFEST, m->name, line,
                      "the problem has no operand '%s'; hone_operands lists them", name);
}

static hone_status plan_maps(const manifest *m, const manifest_launch *launch,
                             const hone_operand *operands, size_t operands_len,
                             manifest_values *values, plan_launch *out, hone_error *error)
{
    hone_status status = HONE_OK;

    for (uint32_t i = 0; i < launch->maps_len; i++) {
        const manifest_map *from = &launch->maps[i];
        char why[MANIFEST_WHY_BYTES];
        uint32_t operand = 0;
        int64_t bytes = 0;
        TRY(manifest_map_values(m, from, values, &out->maps[i], why, error));
        if (why[0] != '\0') {
            return status_set(error, HONE_LIMIT, m->name, from->line,
                              "%s: %s; the config is not legal here", launch->kernel, why);
        }
        out->maps[i].operand = -1;
        TRY(manifest_value(m, &m->workspace, values, 0, &bytes, error));
        if (strcmp(from->operand, "workspace") != 0) {
            TRY(plan_operand(m, from->operand, from->line, operands, operands_len, &operand,
                             error));
            out->maps[i].operand = (int32_t)operand;
            bytes = (int64_t)operands[operand].bytes;
        }
        if (bytes < 0 || manifest_map_reaches_past(&out->maps[i], (uint64_t)bytes)) {
            return status_set(error, HONE_BAD_MANIFEST, m->name, from->line,
                              "a tensor map reaches past the %lld bytes of %s", (long long)bytes,
                              from->operand);
        }
    }
    out->maps_len = launch->maps_len;
done:
    return status;
}

static hone_status plan_arguments(const manifest *m, const manifest_launch *launch,
                                  const hone_problem *problem, manifest_values *values,
                                  plan_launch *out, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_operand operands[HONE_MAX_OPERANDS];
    size_t operands_len = 0;

    TRY(hone_operands(problem, operands, &operands_len, error));
    for (uint32_t i = 0; i < launch->arguments_len; i++) {
        const manifest_argument *from = &launch->arguments[i];
        plan_argument *to = &out->arguments[i];
        *to = (plan_argument){.kind = from->kind, .bytes = from->bytes};
        TRY(manifest_value(m, &from->value, values,
                           from->kind == PLAN_OPERAND ? 1 : (int64_t)from->map, &to->value, error));
        if (from->kind == PLAN_OPERAND && to->value == 0) { /* the problem has none: NULL */
            *to = (plan_argument){.kind = PLAN_SCALAR, .bytes = 8};
        } else if (from->kind == PLAN_OPERAND) {
            TRY(plan_operand(m, from->operand, from->line, operands, operands_len, &to->operand,
                             error));
        }
        bool narrow = from->kind == PLAN_SCALAR && from->bytes == 4;
        if ((narrow && (to->value < INT32_MIN || to->value > INT32_MAX)) ||
            (from->kind == PLAN_WORKSPACE && to->value < 0)) {
            return status_set(error, HONE_OVERFLOW, m->name, from->line,
                              "argument %u of %s is %lld, which its type does not hold", i,
                              launch->kernel, (long long)to->value);
        }
    }
    out->arguments_len = launch->arguments_len;
    TRY(plan_maps(m, launch, operands, operands_len, values, out, error));
done:
    return status;
}

/* An outline (`problem` is NULL) has no entry and no arguments. */
static hone_status plan_launch_of(const manifest *m, const manifest_launch *launch,
                                  const hone_problem *problem, manifest_values *values, plan *out,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_geometry g = {0};
    plan_launch *to = &out->launches[out->launches_len];

    TRY(manifest_launch_geometry(m, launch, MANIFEST_GEOMETRY_ALL, values, &g, error));
    if (!g.active) {
        goto done;
    }
    if (!g.fits) {
        return status_set(error, HONE_LIMIT, m->name, launch->line,
                          "%s: %s; the config is not legal here", launch->kernel, g.why);
    }
    memcpy(to->grid, g.grid, sizeof g.grid);
    memcpy(to->block, g.block, sizeof g.block);
    memcpy(to->cluster, g.cluster, sizeof g.cluster);
    to->shared_bytes = g.shared_bytes;
    to->dependent = g.dependent;
    if (problem != NULL) {
        TRY(plan_entry(m, launch, values, to, error));
        TRY(plan_arguments(m, launch, problem, values, to, error));
    }
    out->launches_len++;
done:
    return status;
}

/* What the verifier is told, held to what it can use. */
static hone_status plan_claims(const manifest *m, manifest_values *values, plan *out,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    plan_cover *c = &out->cover;
    const plan_launch *l = &out->launches[0];
    const uint64_t ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    const bool said = m->cover_rows.e != NULL;

    TRY(manifest_value(m, &m->fraction_bits, values, 0, &out->fraction_bits, error));
    TRY(manifest_value(m, &m->cover_rows, values, 0, &c->rows, error));
    TRY(manifest_value(m, &m->cover_columns, values, 0, &c->columns, error));
    TRY(manifest_value(m, &m->cover_ctas, values, 1, &c->ctas, error));
    if (m->fraction_bits.e != NULL && (out->fraction_bits < 13 || out->fraction_bits > 25)) {
        return status_set(error, HONE_BAD_MANIFEST, m->name, 0,
                          "a unit of %lld fraction bits; fp8 units keep 13 to 25",
                          (long long)out->fraction_bits);
    }
    if (said && (c->rows < 1 || c->columns < 1 || c->ctas < 1 || c->ctas > MANIFEST_MOST_GROUP ||
                 ctas % (uint64_t)c->ctas != 0)) {
        return status_set(
            error, HONE_BAD_MANIFEST, m->name, 0,
            "cover is %lld x %lld by %lld CTAs of %llu: sizes are 1 and more, groups up "
            "to %d CTAs that divide the grid",
            (long long)c->rows, (long long)c->columns, (long long)c->ctas, (unsigned long long)ctas,
            MANIFEST_MOST_GROUP);
    }
    if (said && (l->cluster[1] * l->cluster[2] > 1 || (uint32_t)c->ctas % l->cluster[0] != 0)) {
        return status_set(error, HONE_BAD_MANIFEST, m->name, 0,
                          "cover's groups of %lld CTAs are no whole clusters along x",
                          (long long)c->ctas);
    }
done:
    return status;
}

static hone_status plan_figures(const manifest *m, manifest_values *values, plan *out,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t bytes = 0, zeroed = 0, tolerance = 0;
    int64_t *const estimates[MANIFEST_ESTIMATES_LEN] = {
#define X(name) &out->estimate.name,
        MANIFEST_ESTIMATES(X)
#undef X
    };

    for (size_t i = 0; i < MANIFEST_ESTIMATES_LEN; i++) {
        TRY(manifest_value(m, &m->estimate[i], values, 0, estimates[i], error));
    }
    TRY(manifest_value(m, &m->pipeline, values, 1, &out->estimate.stages, error));
    TRY(manifest_value(m, &m->tolerance, values, 0, &tolerance, error));
    TRY(plan_claims(m, values, out, error));
    TRY(manifest_value(m, &m->workspace, values, 0, &bytes, error));
    TRY(manifest_value(m, &m->workspace_zeroed, values, 0, &zeroed, error));
    if (bytes < 0 || tolerance < 0) {
        return status_set(error, HONE_BAD_MANIFEST, m->name, 0,
                          "workspace is %lld and tolerance %lld; neither may be negative",
                          (long long)bytes, (long long)tolerance);
    }
    if (zeroed < 0 || zeroed > bytes) {
        return status_set(error, HONE_BAD_MANIFEST, m->name, 0,
                          "%lld bytes of a workspace of %lld cannot be zeroed", (long long)zeroed,
                          (long long)bytes);
    }
    out->workspace_bytes = (uint64_t)bytes;
    out->workspace_zeroed = (uint64_t)zeroed;
    out->tolerance = (double)tolerance;
done:
    return status;
}

static hone_status fill_plan(const manifest *m, const hone_problem *problem,
                             manifest_values *values, plan *out, hone_error *error)
{
    hone_status status = HONE_OK;

    for (uint32_t i = 0; i < m->launches_len; i++) {
        TRY(plan_launch_of(m, &m->launches[i], problem, values, out, error));
    }
    if (out->launches_len == 0) {
        status = status_set(error, HONE_BAD_MANIFEST, m->name, m->launches[0].line,
                            "no launch's `when` holds for this config");
        goto done;
    }
    TRY(plan_figures(m, values, out, error));
done:
    return status;
}

hone_status manifest_plan(const manifest *m, const hone_problem *problem,
                          const device_facts *device, const config *c, plan *out, hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values;
    plan *made = calloc(1, sizeof *made);

    if (made == NULL) {
        return status_set(error, HONE_NO_MEMORY, m->name, 0, "a plan");
    }
    TRY(manifest_bind(m, problem, device, &values, error));
    TRY(manifest_set(m, c, &values, error));
    TRY(fill_plan(m, problem, &values, made, error));
    *out = *made;
done:
    free(made);
    return status;
}

hone_status manifest_outline(const manifest *m, const hone_problem *problem,
                             const device_facts *device, const config *c, plan *out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values;

    TRY(manifest_bind(m, problem, device, &values, error));
    TRY(manifest_set(m, c, &values, error));
    out->launches_len = 0;
    TRY(fill_plan(m, NULL, &values, out, error));
done:
    return status;
}
