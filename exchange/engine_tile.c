/* engine_tile.c - our configs as the tiles of Triton's block-scaled fp8 kernels. */
#include "exchange/engine.h"
#include "exchange/exchange_parts.h"

#include <string.h>

typedef struct values {
    const char *names[MANIFEST_MAX_PARAMS];
    int64_t values[MANIFEST_MAX_PARAMS];
    size_t len;
} values;

/* A parameter's value, or `standard` where the template has none of that name. */
static int64_t value_of(const values *v, const char *name, int64_t standard)
{
    for (size_t i = 0; i < v->len; i++) {
        if (strcmp(v->names[i], name) == 0) {
            return v->values[i];
        }
    }
    return standard;
}

/* tl.arange wants powers of two, tl.dot at least 16. */
static bool is_width(int64_t value)
{
    return value >= 16 && value <= 1024 && (value & (value - 1)) == 0;
}

/* Warps that multiply: a producer has no counterpart there. */
static int64_t warps_of(const values *v)
{
    const int64_t groups = value_of(v, "row_groups", 0);

    if (groups > 0) {
        return 4 * groups * value_of(v, "column_groups", 1);
    }
    return value_of(v, "warps_m", 1) * value_of(v, "warps_n", 1) * value_of(v, "warps_k", 1) *
           value_of(v, "warps_r", 1) * value_of(v, "warps_c", 1);
}

const char *engine_tile_of(const char *text, int64_t gran_k, engine_tile *out)
{
    arena memory = {0};
    values v;
    const char *why = NULL;

    if (!exchange_split_config(&memory, text, v.names, v.values, &v.len)) {
        arena_free(&memory);
        return "no list of integers";
    }
    const engine_tile made = {
        .block_m = value_of(&v, "block_m", 0),
        .block_n = value_of(&v, "block_n", 0),
        .block_k = value_of(&v, "block_k", gran_k), /* templates without it take a scale's k */
        .group_m = value_of(&v, "raster", 1),
        .warps = warps_of(&v),
        .stages = value_of(&v, "stages", 0),
    };
    if (value_of(&v, "split_k", 1) != 1 || value_of(&v, "share", 1) != 1) {
        why = "K is split among CTAs";
    } else if (!is_width(made.block_m) || !is_width(made.block_n) || !is_width(made.block_k)) {
        why = "a width that is no power of two from 16 on";
    } else if (gran_k % made.block_k != 0) {
        why = "a step of K past one scale";
    } else if (made.warps > 32 || (made.warps & (made.warps - 1)) != 0 || made.stages < 1) {
        why = "warps that are no power of two";
    } else {
        *out = made;
    }
    arena_free(&memory);
    return why;
}
