/* engine.h - winners as the config files of serving engines: buckets of M to Triton's tile sizes.
 *
 * The file's name is the engine's key (docs/store_formats.md). The file has only what Triton's
 * kernels understand; where it comes from lies beside it, in NAME.hone.json. */
#ifndef HONE_EXCHANGE_ENGINE_H
#define HONE_EXCHANGE_ENGINE_H

#include "exchange/exchange.h"

typedef enum engine_kind { ENGINE_VLLM = 1, ENGINE_SGLANG } engine_kind;

/* What the engines' block-scaled fp8 kernels are told. */
typedef struct engine_tile {
    int64_t block_m, block_n, block_k, group_m, warps, stages;
} engine_tile;

/* The tile of a config ("block_m=64 ..."); NULL, or why their kernels have no such: widths that are
 * no power of two, k past a scale's `gran_k`, K split among CTAs. Static text. Thread-safe. */
const char *engine_tile_of(const char *text, int64_t gran_k, engine_tile *out);

/* Winners that were left out, by reason. */
typedef struct engine_counts {
    uint64_t files, entries;
    uint64_t modelled; /* modelled times, and they are not allowed */
    uint64_t foreign;  /* problems that the engine has no such file for */
    uint64_t untold;   /* a grouped product that may be gate and up, or down */
    uint64_t tile;     /* configs that Triton's kernels have no such tile for */
    uint64_t crowded;  /* another winner has the bucket */
} engine_counts;

/* Write the chosen winners' files into a folder that exists, each of them whole or not at all. */
hone_status engine_write(store *s, const exchange_choice *choice, engine_kind kind,
                         bool allow_modelled, const char *folder, engine_counts *out,
                         hone_error *error);

/* An engine's file as seeds: a line for each bucket, "m=64 block_m=16 block_n=64 block_k=128
 * raster=8 warps=4 stages=3", `len` of them. It holds no time, problem or device, so that nothing
 * of it can become a row. HONE_IO, HONE_LIMIT, HONE_BAD_TEXT with line or bucket. Caller frees
 * *out. */
hone_status engine_read_seeds(const char *path, char **out, uint64_t *len, hone_error *error);

#endif
