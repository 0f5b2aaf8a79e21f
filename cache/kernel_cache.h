/* kernel_cache.h - compiled kernels by the digest of everything that their code depends on.
 *
 * Private to the user: stored code is run, so the folder must be owned by this user with mode 0700
 * and the file be a regular one with one link. Whoever compiles writes, once for each digest
 * (single flight across processes). A damaged entry is a miss and is compiled anew. Blobs are kept
 * compressed; past the cap the entries that were unused longest go first.
 *
 * Every function accepts a NULL cache: gets miss, puts do nothing, makes compile. So a caller whose
 * cache cannot be opened goes on without one, after saying so once. A handle may be used by many
 * threads. */
#ifndef HONE_CACHE_KERNEL_CACHE_H
#define HONE_CACHE_KERNEL_CACHE_H

#include "core/digest.h"
#include "core/status.h"

#include <stdbool.h>

typedef struct kernel_cache kernel_cache;

#define KERNEL_MAX_FUNCTIONS 8

/* One __global__ of a compiled module, in the order of the name expressions. */
typedef struct kernel_function {
    char *name;           /* lowered (mangled) name */
    int32_t registers;    /* of a thread */
    int32_t shared_bytes; /* static */
    int32_t spill_bytes;  /* stores + loads */
    int32_t local_bytes;  /* stack frame of a thread */
    int32_t remarks;      /* messages of ptxas that say what costs this kernel speed */
    char *remark;         /* the first of them, one line; NULL when there is none */
} kernel_function;

/* A compiled module. Owned by whoever filled it: kernel_entry_free. */
typedef struct kernel_entry {
    uint8_t *cubin; /* NULL when none */
    size_t cubin_len;
    char *ptx;      /* NUL-terminated; NULL when none */
    size_t ptx_len; /* without the NUL */
    char *log;      /* compiler's log, NUL-terminated; NULL when empty */
    double compile_ms;
    uint32_t functions_len;
    kernel_function functions[KERNEL_MAX_FUNCTIONS];
} kernel_entry;

void kernel_entry_free(kernel_entry *entry); /* frees what it holds and zeroes it */

/* $XDG_CACHE_HOME/hone/kernels.db, else $HOME/.cache/hone/kernels.db. HONE_ENVIRONMENT without
 * either. */
hone_status kernel_cache_default_path(char *path, size_t capacity, hone_error *error);

#define KERNEL_CACHE_DEFAULT_BYTES (2ull << 30)

/* `path` NULL: the default. The folder is made with mode 0700 when missing. `max_bytes` caps the
 * blobs, 0 is the default cap. A file that is not a database of ours is set aside (renamed to
 * <path>.bad) and a fresh one made: all of it can be compiled again. HONE_UNTRUSTED: folder or file
 * that another user may write. */
hone_status kernel_cache_open(const char *path, uint64_t max_bytes, kernel_cache **out,
                              hone_error *error);
void kernel_cache_close(kernel_cache *c);

/* Read an entry. *found = false for a miss or a damaged entry (which is dropped). The caller frees
 * *out. */
hone_status kernel_cache_get(kernel_cache *c, const uint8_t key[DIGEST_BYTES], bool *found,
                             kernel_entry *out, hone_error *error);

/* Keep an entry; replaces the one there. HONE_BAD_ARGUMENT for one with neither cubin nor PTX. */
hone_status kernel_cache_put(kernel_cache *c, const uint8_t key[DIGEST_BYTES],
                             const kernel_entry *entry, hone_error *error);

/* Compile: fill *out (owned by the cache's caller from then on) or return a failure, which is not
 * kept. */
typedef hone_status (*kernel_make_fn)(void *context, kernel_entry *out, hone_error *error);

/* Get, or make once: while one process or thread makes a digest, others that ask for it wait, at
 * most `wait_ms`, and then make their own. A maker that is killed frees the others at once. `made`
 * (may be NULL) says whether `make` was called. The caller frees *out. A cache that cannot be
 * written is not a failure: the entry is still returned. */
hone_status kernel_cache_make(kernel_cache *c, const uint8_t key[DIGEST_BYTES], uint32_t wait_ms,
                              kernel_make_fn make, void *context, kernel_entry *out, bool *made,
                              hone_error *error);

typedef struct kernel_cache_stats {
    uint64_t entries, bytes; /* bytes as stored */
    uint64_t dropped;        /* damaged entries that this handle dropped */
} kernel_cache_stats;
hone_status kernel_cache_measure(kernel_cache *c, kernel_cache_stats *out, hone_error *error);

#endif
