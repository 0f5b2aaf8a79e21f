/* convert_parts.h - one shard being converted: what its jobs share. */
#ifndef HONE_CONVERT_CONVERT_PARTS_H
#define HONE_CONVERT_CONVERT_PARTS_H

#include "convert/convert.h"

/* Memory of a thread's own. */
typedef struct convert_scratch {
    uint8_t out[PLAN_TILE];
    uint8_t codes[PLAN_TILE]; /* a tile's, but for those that are seen through a window */
    float old_scales[2 * PLAN_SCALES + 256]; /* an old block may begin before the tile */
    uint8_t raw_scales[4 * (2 * PLAN_SCALES + 256)];
    float new_scales[PLAN_SCALES + 256];
    uint8_t new_bytes[PLAN_SCALES + 256];
} convert_scratch;

typedef struct convert_result {
    uint64_t bytes; /* written */
    fold_sums fold;
    requantise_sums requantise;
} convert_result;

typedef struct convert_shard {
    const plan *plan;
    const plan_shard *shard;
    safetensors_writer *writer;
    const fold_lanes *lanes;
    const fold_costs *costs;
    const convert_options *options;
    convert_row *rows;
    _Atomic uint64_t done; /* bytes of all shards so far */
} convert_shard;

/* Job `job` of a shard (pool.h): `scratch` is a convert_scratch, `result` a convert_result. */
hone_status convert_job(void *context, uint64_t job, void *scratch, void *result,
                        hone_error *error);
/* The item that a job belongs to. */
const plan_item *convert_item(const plan_shard *shard, uint64_t job);

#endif
