/* plan.h - what becomes of each tensor of a checkpoint, and the pieces in which that is done. */
#ifndef HONE_CONVERT_PLAN_H
#define HONE_CONVERT_PLAN_H

#include "convert/pairing.h"
#include "convert/plan_rule.h"
#include "core/arena.h"

typedef struct plan_wishes {
    uint32_t block_rows, block_cols; /* of the output's scales: 128x128, 32x32 or 1x128 */
    safetensors_dtype scales;        /* of the output: F8_E8M0 or F32 */
    plan_rule rule;                  /* of requantising */
    bool fold;                       /* MXFP4 weights to e4m3 */
    bool requantise;                 /* e4m3 weights whose blocks are others */
    pairing_rules names;
    const char *const *skip; /* patterns (fnmatch) of names that stay as they are */
    size_t skip_len;
} plan_wishes;

typedef enum plan_kind { PLAN_COPY, PLAN_FOLD, PLAN_REQUANTISE } plan_kind;

/* A tensor of the output, with its scales when it is converted. */
typedef struct plan_item {
    plan_kind kind;
    const checkpoint_entry *entry; /* the tensor, or the weight */
    pairing pair;                  /* of FOLD and REQUANTISE */
    size_t out, out_scales;        /* indices in the shard's table */
    uint64_t tile_rows, tile_cols; /* whole blocks, or what is left of the matrix */
    uint64_t across, down;         /* tiles of one matrix */
    uint64_t first_job, jobs;      /* COPY: pieces of PLAN_TILE bytes; else tiles */
    size_t row;                    /* of the report; FOLD and REQUANTISE */
} plan_item;

typedef struct plan_shard {
    safetensors_table table; /* of the output: its tensors' names are the plan's */
    const plan_item *items;
    size_t items_len;
    uint64_t jobs;
} plan_shard;

/* Elements of a tile, and bytes of a copied piece, at most. */
#define PLAN_TILE (UINT64_C(1) << 20)
/* Scales of a tile's rows, were there one for 32 columns, at most: as many as of 32-wide blocks. */
#define PLAN_SCALES (PLAN_TILE / 32)

typedef struct plan {
    const checkpoint *from;
    plan_wishes wishes;
    plan_shard *shards; /* as the checkpoint's */
    size_t rows;        /* of a report: tensors that are converted */
    uint64_t bytes;     /* of the output's tensors */
    arena arena;
} plan;

/* Plan a conversion. HONE_BAD_ARGUMENT: wishes that contradict one another; HONE_BAD_TEXT: a pair
 * whose shapes do not fit, two outputs of one name, scales that two weights share. The checkpoint
 * and what the wishes point to outlive the plan. Caller frees with plan_free. */
hone_status plan_make(const checkpoint *from, const plan_wishes *wishes, plan *out,
                      hone_error *error);
void plan_free(plan *p);

/* Rows and columns of the output's scales for one matrix of this item. */
uint64_t plan_scale_rows(const plan *p, const plan_item *item);
uint64_t plan_scale_cols(const plan *p, const plan_item *item);

#endif
