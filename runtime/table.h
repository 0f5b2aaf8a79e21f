/* table.h - the immutable table that lookups read: problem to answer, and which tuned sizes cover
 * others.
 *
 * Built once, published by one atomic pointer, retired but never freed while the runtime is open,
 * so that a reader needs no lock. An entry's key is its op and the op's own struct, which hone.h
 * lays out without padding: equal bytes are equal problems, as with the canonical key, without
 * building that key at every lookup. */
#ifndef HONE_RUNTIME_TABLE_H
#define HONE_RUNTIME_TABLE_H

#include "core/problem.h"

#include <stdbool.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TABLE_KEY_BYTES 92 /* of the largest op, fp8_gemm */

typedef struct served served;

/* Two cache lines: a problem's bytes and its answer, so that a lookup waits for memory once. */
typedef struct table_entry {
    uint8_t key[TABLE_KEY_BYTES]; /* zero past the op's bytes */
    int16_t op;
    uint8_t provenance, modelled;
    const served *kernel; /* NULL: known, but not prepared */
    uint64_t winner;      /* id in the store; 0 for a default */
    double time_ns;
    uint32_t workspace_units; /* of TABLE_WORKSPACE_UNIT bytes, rounded up */
    uint32_t source;          /* index of the winner in the generation; TABLE_NO_WINNER */
} __attribute__((aligned(64))) table_entry;

#define TABLE_NO_WINNER      UINT32_MAX
#define TABLE_WORKSPACE_UNIT 256 /* also a workspace's alignment */

typedef struct table_slot {
    uint32_t tag;   /* of the hash */
    uint32_t entry; /* index + 1; 0: empty */
} table_slot;

/* A tuned (or default) size of a family: problems that differ in their op's bucket field alone. */
typedef struct table_member {
    int64_t size;
    uint32_t entry;
} table_member;

/* A family's members: `members[first]` on, by ascending size. Found by the hash of the key without
 * its size. */
typedef struct table_family {
    uint64_t hash;
    uint32_t first, len; /* len 0: an empty slot */
} table_family;

typedef struct table {
    struct table *retired; /* the one that this replaced */
    void *block;           /* slots and entries, on huge pages where there are some */
    table_slot *slots;
    uint64_t mask;
    table_entry *entries;
    size_t entries_len;
    table_member *members;
    table_family *families; /* open addressing */
    uint64_t families_mask;
} table;

/* Bytes of each op's struct up to its last field; 0 for an unknown op. */
static inline size_t table_key_len(int32_t op)
{
    switch (op) {
#define X(text, NAME, value)                                                                       \
    case HONE_OP_##NAME:                                                                           \
        return offsetof(hone_##text, align) + sizeof(int32_t);
        HONE_OP_MAP(X)
#undef X
    default:
        return 0;
    }
}

/* XXH3 of the op's bytes, with the op as seed. Half of the 128 bits that files keep: the whole key
 * is compared. */
static inline uint64_t table_hash(int32_t op, const void *key, size_t key_len)
{
    return XXH3_64bits_withSeed(key, key_len, (uint64_t)op);
}

/* Whether `key_len` bytes are equal, in words: the compiler unrolls it for a constant length. */
static inline bool table_same_key(const void *a, const void *b, size_t key_len)
{
    uint64_t difference = 0, x, y;
    uint32_t x_tail, y_tail;

    for (size_t at = 0; at + sizeof x <= key_len; at += sizeof x) {
        memcpy(&x, (const uint8_t *)a + at, sizeof x);
        memcpy(&y, (const uint8_t *)b + at, sizeof y);
        difference |= x ^ y;
    }
    /* Fields are of 4 or 8 bytes, so that the tail is 4 bytes or none. */
    memcpy(&x_tail, (const uint8_t *)a + key_len - sizeof x_tail, sizeof x_tail);
    memcpy(&y_tail, (const uint8_t *)b + key_len - sizeof y_tail, sizeof y_tail);
    return (difference | (x_tail ^ y_tail)) == 0;
}

/* The entry of exactly this problem, or NULL. The hot path: hash, compare, nothing else. */
static inline const table_entry *table_find_len(const table *t, const hone_problem *problem,
                                                size_t key_len)
{
    const uint64_t hash = table_hash(problem->op, &problem->as, key_len);

    for (uint64_t at = hash & t->mask;; at = (at + 1) & t->mask) {
        const table_slot slot = t->slots[at];
        if (slot.entry == 0) {
            return NULL;
        }
        const table_entry *e = &t->entries[slot.entry - 1];
        if (slot.tag == (uint32_t)(hash >> 32) && e->op == problem->op &&
            table_same_key(e->key, &problem->as, key_len)) {
            return e;
        }
    }
}

/* The same, with a length that the compiler knows. NULL for an unknown op too. */
static inline const table_entry *table_find(const table *t, const hone_problem *problem)
{
    switch (problem->op) {
#define X(text, NAME, value)                                                                       \
    case HONE_OP_##NAME:                                                                           \
        return table_find_len(t, problem, offsetof(hone_##text, align) + sizeof(int32_t));
        HONE_OP_MAP(X)
#undef X
    default:
        return NULL;
    }
}

/* A table of these entries (copied); for one key the later one counts. Winners and defaults become
 * members of their families. */
hone_status table_build(const table_entry *entries, size_t entries_len, table **out,
                        hone_error *error);
void table_free(table *t); /* and all that it replaced; NULL is fine */

/* Room for entries, not filled; free() it. NULL without memory. */
table_entry *table_allocate(size_t count);

/* Fill an entry's key. */
void table_key(table_entry *entry, const hone_problem *problem);
/* The problem of an entry. */
void table_problem(const table_entry *entry, hone_problem *out);

/* Members of the problem's family that are as large as it or larger, ascending; *count of them. */
const table_member *table_covers(const table *t, const hone_problem *problem, size_t *count);

#endif
