/* pairing.h - which tensor holds the scales of which weight, and what the two are.
 *
 * Names pair by their ends: a table of the conventions that checkpoints follow, and before it those
 * that the caller gives. Dtypes and shapes then say whether the pair is MXFP4 or block-scaled e4m3.
 */
#ifndef HONE_CONVERT_PAIRING_H
#define HONE_CONVERT_PAIRING_H

#include "convert/checkpoint.h"

/* STEM + weight goes with STEM + scale; converted, they are STEM + out_weight and STEM + out_scale.
 */
typedef struct pairing_rule {
    const char *weight, *scale, *out_weight, *out_scale;
} pairing_rule;

typedef struct pairing_rules {
    const pairing_rule *given; /* by the caller: asked first */
    size_t given_len;
} pairing_rules;

typedef enum pairing_kind {
    PAIRING_NONE,      /* no weight that has scales */
    PAIRING_MXFP4,     /* e2m1 codes, two a byte, and ue8m0 of 1 x 32 */
    PAIRING_E4M3,      /* e4m3 and scales of blocks */
    PAIRING_UNSCALED,  /* e4m3 without a tensor of scales */
    PAIRING_BAD_DTYPE, /* scales of a dtype that goes with no such weight */
    PAIRING_BAD_SHAPE, /* scales whose shape fits no block */
} pairing_kind;

typedef struct pairing {
    pairing_kind kind;
    const checkpoint_entry *weight, *scale; /* scale: NULL for NONE and UNSCALED */
    const pairing_rule *rule;
    size_t stem_len;                 /* of the weight's name */
    uint64_t batch, rows, cols;      /* elements: leading dimensions are a batch of matrices */
    uint64_t scale_rows, scale_cols; /* of one matrix; words counted by their four bytes */
    /* Words of rows of up to 128 columns hold one scale or up to four, which their shape does not
     * say: scale_cols has the fewest that fit it, this the most. Else it is scale_cols. */
    uint64_t scale_cols_most;
    uint64_t block_rows, block_cols; /* that one scale covers; 0 unless MXFP4 or E4M3 */
    bool words;                      /* scales are int32 words of four ue8m0 bytes */
} pairing;

/* What `entry` is as a weight. BAD_SHAPE and BAD_DTYPE are answers, not errors. Thread-safe. */
pairing pairing_of(const checkpoint *c, const pairing_rules *rules, const checkpoint_entry *entry);

/* Whether `entry`, by its name and dtype, holds scales of a weight that is not there. */
bool pairing_is_orphan(const checkpoint *c, const pairing_rules *rules,
                       const checkpoint_entry *entry);

/* Whether a pattern (fnmatch) of the list is the name's. */
bool pairing_is_named(const char *const *patterns, size_t len, const char *name);

/* The index-th convention of the table; NULL past the last. */
const pairing_rule *pairing_rule_at(size_t index);

#endif
