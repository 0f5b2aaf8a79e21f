/* generation.h - the packed table of winners that serving reads: one digested blob in the store,
 * taken into memory.
 *
 * No connection stays open, nothing is written (not even a lock file), and a file on read-only
 * media works. The result is immutable: any thread may read it. */
#ifndef HONE_CACHE_GENERATION_H
#define HONE_CACHE_GENERATION_H

#include "cache/kind.h"
#include "core/problem.h"
#include "core/status.h"

typedef struct generation generation;

typedef struct generation_winner {
    uint64_t id; /* of the winner in the store; never 0 */
    hone_problem problem;
    const uint8_t *key; /* problem_key of it */
    uint32_t key_len;
    const char *template_name, *config;
    const device_kind *kind;
    double time_ns;
    int32_t timer;                  /* store_timer */
    int32_t verdict;                /* store_verdict */
    const uint8_t *template_digest; /* 32 bytes: of the template that was tuned */
    const char *nvrtc;              /* "13.0.88" */
    int32_t driver;
} generation_winner;

/* Read the newest generation that is whole; an older whole one is used when the newest is damaged.
 * HONE_NOT_FOUND: a store without one (no sweep has ended). HONE_STORE_DAMAGED: none is whole.
 * HONE_STORE_FOREIGN, HONE_STORE_IO. HONE_STORE_IO names a leftover -wal beside a read-only
 * store: its rows cannot be read, and leaving them out silently would serve old winners (cases.md
 * 5). The caller frees *out; the winners live as long. */
hone_status generation_load(const char *path, generation **out, hone_error *error);
void generation_free(generation *g); /* NULL is fine */

uint64_t generation_number(const generation *g);
const uint8_t *generation_digest(const generation *g); /* 32 bytes over the whole table */
size_t generation_len(const generation *g);
const generation_winner *generation_at(const generation *g, size_t index);

/* Staleness is not identity: a winner is still the winner, but says how far it can be trusted. */
typedef enum generation_grade {
    GENERATION_CURRENT = 1, /* same template text, NVRTC and driver */
    GENERATION_SUSPECT = 2, /* NVRTC or driver differ: the time may be off */
    GENERATION_STALE = 3, /* the template's text differs: its config is checked again before use */
} generation_grade;
generation_grade generation_grade_of(const generation_winner *winner,
                                     const uint8_t template_digest[32], const char *nvrtc,
                                     int32_t driver);

#endif
