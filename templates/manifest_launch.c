/* manifest_launch.c - the launches of a manifest: read from YAML, and their geometry checked
 * against a device. */
#include "templates/manifest_parts.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t bytes;
} scalar_types[] = {{"i32", 4}, {"i64", 8}};

static hone_status read_scalar(const manifest_reader *r, const document_node *node,
                               manifest_argument *argument)
{
    hone_status status = HONE_OK;
    const document_node *type = document_get(node, "type");

    argument->kind = PLAN_SCALAR;
    for (size_t i = 0; type != NULL && i < ARRAY_LEN(scalar_types); i++) {
        if (type->kind == DOCUMENT_SCALAR && strcmp(type->text, scalar_types[i].name) == 0) {
            argument->bytes = scalar_types[i].bytes;
        }
    }
    if (argument->bytes == 0) {
        return manifest_refuse(r, node, "a scalar needs `type: i32` or `type: i64`");
    }
    TRY(manifest_read_formula(r, document_get(node, "scalar"), &argument->value));
done:
    return status;
}

static hone_status read_argument(const manifest_reader *r, const document_node *node,
                                 manifest_launch *launch, manifest_argument *argument)
{
    static const char *const pointer[] = {"operand", "when", NULL},
                             *const space[] = {"workspace", NULL},
                             *const scalar[] = {"scalar", "type", NULL};
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, node, DOCUMENT_MAP, 8, "an argument"));
    argument->line = node->line;
    if (document_get(node, "tensor_map") != NULL) {
        TRY(manifest_read_map(r, node, launch, argument));
    } else if (document_get(node, "operand") != NULL) {
        TRY(document_known_keys(r->document, node, pointer, r->error));
        argument->kind = PLAN_OPERAND;
        TRY(manifest_read_name(r, document_get(node, "operand"), argument->operand));
        if (document_get(node, "when") != NULL) {
            TRY(manifest_read_formula(r, document_get(node, "when"), &argument->value));
        }
    } else if (document_get(node, "workspace") != NULL) {
        TRY(document_known_keys(r->document, node, space, r->error));
        argument->kind = PLAN_WORKSPACE;
        TRY(manifest_read_formula(r, document_get(node, "workspace"), &argument->value));
    } else if (document_get(node, "scalar") != NULL) {
        TRY(document_known_keys(r->document, node, scalar, r->error));
        TRY(read_scalar(r, node, argument));
    } else {
        status = manifest_refuse(r, node,
                                 "an argument is {operand: name}, {scalar: formula, type: i64}, "
                                 "{workspace: byte offset} or {tensor_map: operand, ...}");
    }
done:
    return status;
}

hone_status manifest_read_list(const manifest_reader *r, const document_node *node, size_t most,
                               const char *what, manifest_formula *out, uint32_t *len)
{
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, node, DOCUMENT_LIST, most, what));
    for (size_t i = 0; i < node->len; i++) {
        *len = (uint32_t)i + 1;
        TRY(manifest_read_formula(r, &node->items[i], &out[i]));
    }
done:
    return status;
}

/* One to three formulas, x first. */
static hone_status read_extent(const manifest_reader *r, const document_node *node,
                               const char *what, manifest_formula out[3])
{
    uint32_t len = 0;

    return manifest_read_list(r, node, 3, what, out, &len);
}

static hone_status read_arguments(const manifest_reader *r, const document_node *node,
                                  manifest_launch *launch)
{
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, node, DOCUMENT_LIST, MANIFEST_MAX_ARGUMENTS, "arguments"));
    for (size_t i = 0; i < node->len; i++) {
        launch->arguments_len = (uint32_t)i + 1;
        TRY(read_argument(r, &node->items[i], launch, &launch->arguments[i]));
    }
done:
    return status;
}

static hone_status read_launch(const manifest_reader *r, const document_node *node,
                               manifest_launch *launch)
{
    static const char *const known[] = {"kernel", "when",      "grid",      "block", "cluster",
                                        "shared", "dependent", "arguments", NULL};
    hone_status status = HONE_OK;
    const document_node *kernel = NULL, *part = NULL;

    TRY(manifest_expect(r, node, DOCUMENT_MAP, ARRAY_LEN(known), "a launch"));
    TRY(document_known_keys(r->document, node, known, r->error));
    launch->line = node->line;
    kernel = document_get(node, "kernel");
    if (kernel == NULL || document_get(node, "grid") == NULL ||
        document_get(node, "block") == NULL || document_get(node, "arguments") == NULL) {
        return manifest_refuse(r, node,
                               "a launch needs `kernel:`, `grid:`, `block:` and `arguments:`");
    }
    TRY(manifest_read_name(r, kernel, launch->kernel));
    TRY(read_extent(r, document_get(node, "grid"), "grid", launch->grid));
    TRY(read_extent(r, document_get(node, "block"), "block", launch->block));
    if ((part = document_get(node, "cluster")) != NULL) {
        TRY(read_extent(r, part, "cluster", launch->cluster));
    }
    if ((part = document_get(node, "when")) != NULL) {
        TRY(manifest_read_formula(r, part, &launch->when));
    }
    if ((part = document_get(node, "shared")) != NULL) {
        TRY(manifest_read_formula(r, part, &launch->shared));
    }
    if ((part = document_get(node, "dependent")) != NULL) {
        TRY(manifest_read_formula(r, part, &launch->dependent));
    }
    TRY(read_arguments(r, document_get(node, "arguments"), launch));
done:
    return status;
}

hone_status manifest_read_launches(const manifest_reader *r, const document_node *list)
{
    hone_status status = HONE_OK;

    TRY(manifest_expect(r, list, DOCUMENT_LIST, MANIFEST_MAX_LAUNCHES, "launches"));
    if (list->len == 0) {
        return manifest_refuse(r, list, "a template without a launch");
    }
    for (size_t i = 0; i < list->len; i++) {
        r->m->launches_len = (uint32_t)i + 1;
        TRY(read_launch(r, &list->items[i], &r->m->launches[i]));
    }
done:
    return status;
}

/* ---- Geometry. ------------------------------------------------------------------------------ */

/* CUDA's limits of grid, block and cluster by dimension, and of their products. */
static const struct {
    const char *what;
    int64_t most[3], most_product;
} extents[] = {
    {"grid", {INT32_MAX, 65535, 65535}, INT64_MAX},
    {"block", {1024, 1024, 64}, 1024},
    {"cluster", {8, 8, 8}, 8}, /* what every sm_90 takes unasked */
};

static hone_status extent(const manifest *m, const manifest_formula f[3], size_t which,
                          manifest_values *values, uint32_t out[3], manifest_geometry *g,
                          hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t product = 1;

    for (int i = 0; i < 3 && g->fits; i++) {
        int64_t value = 0;
        TRY(manifest_value(m, &f[i], values, 1, &value, error));
        if (value < 1 || value > extents[which].most[i]) {
            g->fits = false;
            snprintf(g->why, sizeof g->why, "%s.%c is %lld, outside 1..%lld", extents[which].what,
                     'x' + i, (long long)value, (long long)extents[which].most[i]);
            goto done;
        }
        out[i] = (uint32_t)value;
        product *= value; /* at most 2^63: 2^31 * 2^16 * 2^16 */
    }
    if (g->fits && product > extents[which].most_product) {
        g->fits = false;
        snprintf(g->why, sizeof g->why, "%s holds %lld, over %lld", extents[which].what,
                 (long long)product, (long long)extents[which].most_product);
    }
done:
    return status;
}

static void check_cluster(const manifest_launch *launch, const manifest_values *values,
                          manifest_geometry *g)
{
    uint32_t product = g->cluster[0] * g->cluster[1] * g->cluster[2];

    if ((product > 1 || g->dependent || launch->maps_len > 0) &&
        values->slot[MANIFEST_SLOT_DEVICE] < 90) {
        g->fits = false;
        snprintf(g->why, sizeof g->why, "clusters, tensor maps and dependent launches need sm_90");
    }
    for (int i = 0; i < 3; i++) {
        if (g->fits && g->grid[i] % g->cluster[i] != 0) {
            g->fits = false;
            snprintf(g->why, sizeof g->why, "grid.%c = %u is no multiple of the cluster's %u",
                     'x' + i, g->grid[i], g->cluster[i]);
        }
    }
}

hone_status manifest_launch_geometry(const manifest *m, const manifest_launch *launch,
                                     unsigned parts, manifest_values *values,
                                     manifest_geometry *out, hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t active = 1, shared = 0, dependent = 0;
    /* Slot of dev_smem_block: the third device field. */
    const int64_t most_shared = values->slot[MANIFEST_SLOT_DEVICE + 2];

    *out = (manifest_geometry){.fits = true};
    TRY(manifest_value(m, &launch->when, values, 1, &active, error));
    out->active = active != 0;
    if (!out->active) {
        goto done;
    }
    if ((parts & MANIFEST_GEOMETRY_GRID) != 0) {
        TRY(extent(m, launch->grid, 0, values, out->grid, out, error));
        TRY(extent(m, launch->cluster, 2, values, out->cluster, out, error));
        TRY(manifest_value(m, &launch->dependent, values, 0, &dependent, error));
        out->dependent = dependent != 0;
    }
    if ((parts & MANIFEST_GEOMETRY_BLOCK) != 0) {
        TRY(extent(m, launch->block, 1, values, out->block, out, error));
    }
    if (!out->fits) {
        goto done;
    }
    if ((parts & MANIFEST_GEOMETRY_GRID) != 0) {
        check_cluster(launch, values, out);
    }
    if ((parts & MANIFEST_GEOMETRY_SHARED) != 0) {
        TRY(manifest_value(m, &launch->shared, values, 0, &shared, error));
    }
    if (out->fits && (shared < 0 || shared > most_shared)) {
        out->fits = false;
        snprintf(out->why, sizeof out->why, "%lld bytes of shared memory, outside 0..%lld",
                 (long long)shared, (long long)most_shared);
        goto done;
    }
    out->shared_bytes = (uint32_t)(out->fits ? shared : 0);
done:
    return status;
}
