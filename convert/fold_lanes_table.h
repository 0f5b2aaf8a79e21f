/* fold_lanes_table.h - the inner loops of the fold for this processor. */
#ifndef HONE_CONVERT_FOLD_LANES_TABLE_H
#define HONE_CONVERT_FOLD_LANES_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct fold_lanes {
    const char *name;
    /* counts[g]: byte c holds how many of the 32 codes of group g (16 bytes) have magnitude c. */
    void (*count)(const uint8_t *codes, size_t groups, uint64_t *counts);
    /* Each code of group g looked up in table[rows[g]]: 32 bytes a group. */
    void (*fold)(const uint8_t *codes, size_t groups, const uint8_t *rows,
                 const uint8_t (*table)[16], uint8_t *out);
} fold_lanes;

/* The best that this processor runs. */
const fold_lanes *fold_lanes_best(void);
/* The index-th of those that it runs, the plainest first; NULL past the last. */
const fold_lanes *fold_lanes_at(size_t index);

#endif
