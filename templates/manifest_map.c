/* manifest_map.c - tensor maps among a kernel's arguments: read from YAML, evaluated, and held to
 * the rules of cuTensorMapEncodeTiled that are known before there is memory. */
#include "templates/manifest_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Elements by hone_dtype: CUtensorMapDataType, whose numbers the driver fixes, and bytes. Formats
 * of a byte or less are copied as bytes. */
static const struct {
    int32_t type;
    uint32_t bytes;
} elements[] = {
    [HONE_DTYPE_F32] = {7, 4},   [HONE_DTYPE_BF16] = {9, 2},  [HONE_DTYPE_F16] = {6, 2},
    [HONE_DTYPE_E4M3] = {0, 1},  [HONE_DTYPE_E5M2] = {0, 1},  [HONE_DTYPE_E2M1] = {0, 1},
    [HONE_DTYPE_UE8M0] = {0, 1}, [HONE_DTYPE_UE4M3] = {0, 1},
};

static hone_status read_lists(const manifest_reader *r, const document_node *node,
                              manifest_map *map)
{
    hone_status status = HONE_OK;
    uint32_t strides = 0, box = 0;
    const document_node *dims = document_get(node, "dims"), *sides = document_get(node, "box");
    const document_node *steps = document_get(node, "strides");

    if (dims == NULL || sides == NULL) {
        return manifest_refuse(r, node, "a tensor map needs `dims:` and `box:`");
    }
    TRY(manifest_read_list(r, dims, ARRAY_LEN(map->dims), "dims", map->dims, &map->rank));
    TRY(manifest_read_list(r, sides, ARRAY_LEN(map->box), "box", map->box, &box));
    if (steps != NULL) {
        TRY(manifest_read_list(r, steps, ARRAY_LEN(map->strides), "strides", map->strides,
                               &strides));
    }
    if (map->rank == 0 || box != map->rank || strides != map->rank - 1) {
        status = manifest_refuse(r, node,
                                 "%u dims, %u of the box and %u strides; a box has a side for each "
                                 "dimension, and all but the first have a stride",
                                 map->rank, box, strides);
    }
done:
    return status;
}

hone_status manifest_read_map(const manifest_reader *r, const document_node *node,
                              manifest_launch *launch, manifest_argument *argument)
{
    static const char *const known[] = {"tensor_map", "type",    "dims",   "strides",
                                        "box",        "swizzle", "offset", NULL};
    hone_status status = HONE_OK;
    const document_node *part = NULL;
    manifest_map *map = &launch->maps[launch->maps_len];

    if (launch->maps_len == MANIFEST_MAX_MAPS) {
        return status_set(r->error, HONE_LIMIT, r->m->name, node->line,
                          "a launch takes %d tensor maps at most", MANIFEST_MAX_MAPS);
    }
    argument->kind = PLAN_MAP;
    argument->map = launch->maps_len++;
    map->line = node->line;
    TRY(document_known_keys(r->document, node, known, r->error));
    TRY(manifest_read_name(r, document_get(node, "tensor_map"), map->operand));
    if (document_get(node, "type") == NULL) {
        return manifest_refuse(r, node, "a tensor map needs `type:`, such as e4m3 or out");
    }
    TRY(manifest_read_formula(r, document_get(node, "type"), &map->type));
    TRY(read_lists(r, node, map));
    if ((part = document_get(node, "swizzle")) != NULL) {
        TRY(manifest_read_formula(r, part, &map->swizzle));
    }
    if ((part = document_get(node, "offset")) != NULL) {
        TRY(manifest_read_formula(r, part, &map->offset));
    }
done:
    return status;
}

uint32_t manifest_map_params(const manifest_map *map)
{
    uint32_t params = map->type.params | map->swizzle.params | map->offset.params;

    for (uint32_t i = 0; i < map->rank; i++) {
        params |= map->dims[i].params | map->box[i].params;
        params |= i > 0 ? map->strides[i - 1].params : 0;
    }
    return params;
}

/* What cuTensorMapEncodeTiled refuses (CUDA driver API, tensor memory maps). */
static void check_box(const plan_map *map, char why[MANIFEST_WHY_BYTES])
{
    const uint64_t inner = (uint64_t)map->box[0] * map->element_bytes;

    if (map->swizzle != 0 && map->swizzle != 32 && map->swizzle != 64 && map->swizzle != 128) {
        snprintf(why, MANIFEST_WHY_BYTES,
                 "a tensor map's swizzle is %" PRIu32 ", not 0, 32, 64 or 128", map->swizzle);
    } else if (inner % 16 != 0 || (map->swizzle > 0 && inner > map->swizzle)) {
        snprintf(why, MANIFEST_WHY_BYTES,
                 "a tensor map's box is %" PRIu64
                 " bytes wide: no multiple of 16, or over its swizzle of %" PRIu32,
                 inner, map->swizzle);
    } else if (map->offset % 16 != 0) {
        snprintf(why, MANIFEST_WHY_BYTES,
                 "a tensor map begins at byte %" PRIu64 ", no multiple of 16", map->offset);
    }
}

static void check(const plan_map *map, char why[MANIFEST_WHY_BYTES])
{
    for (uint32_t i = 0; i < map->rank && why[0] == '\0'; i++) {
        if (map->dims[i] < 1 || map->dims[i] > UINT64_C(1) << 32) {
            snprintf(why, MANIFEST_WHY_BYTES,
                     "dimension %" PRIu32 " of a tensor map is %" PRIu64 ", outside 1..2^32", i,
                     map->dims[i]);
        } else if (map->box[i] < 1 || map->box[i] > 256) {
            snprintf(why, MANIFEST_WHY_BYTES,
                     "side %" PRIu32 " of a tensor map's box is %" PRIu32 ", outside 1..256", i,
                     map->box[i]);
        } else if (i > 0 &&
                   (map->strides[i - 1] % 16 != 0 || map->strides[i - 1] >= UINT64_C(1) << 40)) {
            snprintf(why, MANIFEST_WHY_BYTES,
                     "stride %" PRIu32 " of a tensor map is %" PRIu64
                     " bytes, no multiple of 16 below 2^40",
                     i, map->strides[i - 1]);
        }
    }
    if (why[0] == '\0') {
        check_box(map, why);
    }
}

/* Dimensions are 2^32 and strides 2^40 at most: sums of five products stay below 2^75. */
bool manifest_map_reaches_past(const plan_map *map, uint64_t bytes)
{
    unsigned __int128 end = map->offset + (unsigned __int128)map->dims[0] * map->element_bytes;

    for (uint32_t i = 1; i < map->rank; i++) {
        end += (unsigned __int128)(map->dims[i] - 1) * map->strides[i - 1];
    }
    return end > bytes;
}

/* Out of range becomes what `check` refuses. */
static uint32_t narrow(int64_t value)
{
    return value < 0 || value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

hone_status manifest_map_values(const manifest *m, const manifest_map *map, manifest_values *values,
                                plan_map *out, char why[MANIFEST_WHY_BYTES], hone_error *error)
{
    hone_status status = HONE_OK;
    int64_t value = 0;
    plan_map made = {.rank = map->rank};

    why[0] = '\0';
    TRY(manifest_value(m, &map->type, values, 0, &value, error));
    if (value < 1 || value >= (int64_t)ARRAY_LEN(elements)) {
        return status_set(error, HONE_BAD_MANIFEST, m->name, map->line,
                          "a tensor map's type is %" PRId64 ", which is no dtype", value);
    }
    made.type = elements[value].type;
    made.element_bytes = elements[value].bytes;
    for (uint32_t i = 0; i < map->rank; i++) {
        TRY(manifest_value(m, &map->dims[i], values, 1, &value, error));
        made.dims[i] = (uint64_t)value;
        TRY(manifest_value(m, &map->box[i], values, 1, &value, error));
        made.box[i] = narrow(value);
        if (i > 0) {
            TRY(manifest_value(m, &map->strides[i - 1], values, 0, &value, error));
            made.strides[i - 1] = (uint64_t)value;
        }
    }
    TRY(manifest_value(m, &map->swizzle, values, 0, &value, error));
    made.swizzle = narrow(value);
    TRY(manifest_value(m, &map->offset, values, 0, &value, error));
    made.offset = (uint64_t)value;
    check(&made, why);
    *out = made;
done:
    return status;
}
