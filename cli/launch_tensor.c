/* launch_tensor.c - a tensor map of a launch from its text; what is legal is the driver's to say.
 */
#include "cli/launch_parts.h"

#include <cuda.h>
#include <string.h>

static const struct {
    const char *name;
    CUtensorMapDataType type;
    uint32_t bytes;
} types[] = {
    {"u8", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},      {"e4m3", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},
    {"e5m2", CU_TENSOR_MAP_DATA_TYPE_UINT8, 1},    {"u16", CU_TENSOR_MAP_DATA_TYPE_UINT16, 2},
    {"u32", CU_TENSOR_MAP_DATA_TYPE_UINT32, 4},    {"i32", CU_TENSOR_MAP_DATA_TYPE_INT32, 4},
    {"u64", CU_TENSOR_MAP_DATA_TYPE_UINT64, 8},    {"i64", CU_TENSOR_MAP_DATA_TYPE_INT64, 8},
    {"f16", CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2},   {"f32", CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4},
    {"bf16", CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2}, {"f64", CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 8},
    {"tf32", CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 4},
};

/* key=value settings whose values are a few words. */
static const struct {
    const char *text;
    size_t field;
    int value;
} settings[] = {
    {"swizzle=none", offsetof(launch_map, swizzle), CU_TENSOR_MAP_SWIZZLE_NONE},
    {"swizzle=32", offsetof(launch_map, swizzle), CU_TENSOR_MAP_SWIZZLE_32B},
    {"swizzle=64", offsetof(launch_map, swizzle), CU_TENSOR_MAP_SWIZZLE_64B},
    {"swizzle=128", offsetof(launch_map, swizzle), CU_TENSOR_MAP_SWIZZLE_128B},
    {"interleave=none", offsetof(launch_map, interleave), CU_TENSOR_MAP_INTERLEAVE_NONE},
    {"interleave=16", offsetof(launch_map, interleave), CU_TENSOR_MAP_INTERLEAVE_16B},
    {"interleave=32", offsetof(launch_map, interleave), CU_TENSOR_MAP_INTERLEAVE_32B},
    {"l2=none", offsetof(launch_map, promotion), CU_TENSOR_MAP_L2_PROMOTION_NONE},
    {"l2=64", offsetof(launch_map, promotion), CU_TENSOR_MAP_L2_PROMOTION_L2_64B},
    {"l2=128", offsetof(launch_map, promotion), CU_TENSOR_MAP_L2_PROMOTION_L2_128B},
    {"l2=256", offsetof(launch_map, promotion), CU_TENSOR_MAP_L2_PROMOTION_L2_256B},
    {"oob=zero", offsetof(launch_map, fill), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE},
    {"oob=nan", offsetof(launch_map, fill), CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA},
};

static hone_status refuse(const char *text, const char *why, hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, NULL, 0, "'%.80s': %s", text, why);
}

static bool apply_setting(launch_piece p, launch_map *m)
{
    for (size_t n = 0; n < ARRAY_LEN(settings); n++) {
        if (launch_piece_is(p, settings[n].text)) {
            memcpy((char *)m + settings[n].field, &settings[n].value, sizeof settings[n].value);
            return true;
        }
    }
    return false;
}

/* 64x32x4; how many there were, 0 when one of them is no number. */
static uint32_t parse_list(launch_piece p, uint64_t out[LAUNCH_MAP_RANK])
{
    uint32_t len = 0;

    while (p.len > 0 && len < LAUNCH_MAP_RANK) {
        const char *end = memchr(p.at, 'x', p.len);
        launch_piece one = {p.at, end != NULL ? (size_t)(end - p.at) : p.len};
        if (!launch_piece_number(one, &out[len])) {
            return 0;
        }
        len++;
        p.at += one.len + (end != NULL);
        p.len -= one.len + (end != NULL);
    }
    return p.len == 0 ? len : 0;
}

typedef struct map_lists {
    uint64_t dims[LAUNCH_MAP_RANK], box[LAUNCH_MAP_RANK], strides[LAUNCH_MAP_RANK],
        steps[LAUNCH_MAP_RANK];
    uint32_t dims_len, box_len, strides_len, steps_len;
} map_lists;

static bool apply_list(launch_piece p, map_lists *l)
{
    const struct {
        const char *key;
        uint64_t *list;
        uint32_t *len;
    } lists[] = {{"dims=", l->dims, &l->dims_len},
                 {"box=", l->box, &l->box_len},
                 {"strides=", l->strides, &l->strides_len},
                 {"steps=", l->steps, &l->steps_len}};

    for (size_t n = 0; n < ARRAY_LEN(lists); n++) {
        size_t len = strlen(lists[n].key);
        if (p.len > len && memcmp(p.at, lists[n].key, len) == 0) {
            *lists[n].len = parse_list((launch_piece){p.at + len, p.len - len}, lists[n].list);
            return *lists[n].len > 0;
        }
    }
    return false;
}

static hone_status fill_map(const char *text, const map_lists *l, launch_map *m, hone_error *error)
{
    uint64_t packed = m->element_bytes;

    if (l->dims_len == 0 || l->box_len != l->dims_len ||
        (l->strides_len != 0 && l->strides_len != l->dims_len - 1) ||
        (l->steps_len != 0 && l->steps_len != l->dims_len)) {
        return refuse(text,
                      "dims and box (and steps, where given) have one number a dimension, strides "
                      "one less",
                      error);
    }
    m->rank = l->dims_len;
    for (uint32_t d = 0; d < m->rank; d++) {
        if (l->box[d] > UINT32_MAX || l->steps[d] > UINT32_MAX) {
            return refuse(text, "box and steps are small numbers", error);
        }
        m->dims[d] = l->dims[d];
        m->box[d] = (uint32_t)l->box[d];
        m->steps[d] = l->steps_len != 0 ? (uint32_t)l->steps[d] : 1;
        packed *= l->dims[d];
        m->strides[d] = l->strides_len != 0 && d + 1 < m->rank ? l->strides[d] : packed;
    }
    return HONE_OK;
}

hone_status launch_map_parse(const char *text, const char *rest, launch_argument *out,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    map_lists lists = {.dims_len = 0};
    size_t which = 0;

    out->kind = LAUNCH_TENSOR_MAP;
    TRY(launch_piece_name(launch_piece_next(&rest), out->map.buffer, error));
    launch_piece type = launch_piece_next(&rest);
    while (which < ARRAY_LEN(types) && !launch_piece_is(type, types[which].name)) {
        which++;
    }
    if (which == ARRAY_LEN(types)) {
        return refuse(text, "the type is u8, e4m3, f16, bf16, f32, tf32, u32 or their like", error);
    }
    out->map.type = (int)types[which].type;
    out->map.element_bytes = types[which].bytes;
    while (*rest != '\0') {
        launch_piece p = launch_piece_next(&rest);
        if (!apply_setting(p, &out->map) && !apply_list(p, &lists)) {
            return refuse(text,
                          "settings are dims, box, strides, steps=64x8; swizzle=32, 64, 128; "
                          "interleave=16, 32; l2=64, 128, 256; oob=nan",
                          error);
        }
    }
    TRY(fill_map(text, &lists, &out->map, error));
done:
    return status;
}
