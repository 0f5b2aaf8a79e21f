/* generation_format.h - the bytes of a packed generation. Private to cache/. Little endian, offsets
 * from the start.
 *
 *   head | kinds | winners | pool (keys, then texts that each end with NUL)
 *
 * Frozen with the store's schema version: a change needs a new one. */
#ifndef HONE_CACHE_GENERATION_FORMAT_H
#define HONE_CACHE_GENERATION_FORMAT_H

#include <stdint.h>

#define PACKED_MAGIC UINT64_C(0x314e4547454e4f48) /* "HONEGEN1" */

typedef struct packed_head {
    uint64_t magic;
    uint32_t kinds_len, winners_len;
    uint64_t pool_bytes;
} packed_head;

typedef struct packed_kind {
    char name[96];
    int32_t arch, sm_count, smem, mem_gib, mem_100gb_s, emulated;
} packed_kind;

typedef struct packed_winner {
    uint64_t id;
    double time_ns;
    uint64_t hash_low, hash_high;
    uint32_t key, key_len;                 /* in the pool */
    uint32_t template_name, config, nvrtc; /* texts in the pool */
    uint32_t kind;
    int32_t timer, verdict, driver, zero;
    uint8_t template_digest[32];
} packed_winner;

_Static_assert(sizeof(packed_head) == 24 && sizeof(packed_kind) == 120 &&
                   sizeof(packed_winner) == 104,
               "no padding: the bytes are the format");

#endif
