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

#include <string.h>

#define TABLE_KEY_BYTES 96 /* of the largest op, rounded up */

typedef struct served served;

/* What a lookup copies. */
typedef struct table_answer {
    const served *kernel; /* NULL: known, but not prepared */
    uint64_t winner;
    double time_ns;
    uint64_t workspace_bytes;
    int32_t provenance;
    int32_t modelled;
} table_answer;

typedef struct table_entry {
    uint8_t key[TABLE_KEY_BYTES]; /* zero past the op's bytes */
    table_answer answer;
    int32_t op;
    uint32_t source; /* index of the winner in the generation; TABLE_NO_WINNER */
} table_entry;

#define TABLE_NO_WINNER UINT32_MAX

typedef struct table_slot {
    uint32_t tag;   /* of the hash */
    uint32_t entry; /* index + 1; 0: empty */
} table_slot;

/* A tuned (or default) size of a family: problems that differ in their op's bucket field alone. */
typedef struct table_member {
    uint64_t family;
    int64_t size;
    uint32_t entry;
} table_member;

typedef struct table {
    struct table *retired; /* the one that this replaced */
    table_slot *slots;
    uint64_t mask;
    table_entry *entries;
    size_t entries_len;
    table_member *members; /* sorted by family, then size */
    size_t members_len;
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

uint64_t table_hash(const hone_problem *problem, size_t key_len);

/* The entry of exactly this problem, or NULL. The hot path: hash, compare, nothing else. */
static inline const table_entry *table_find(const table *t, const hone_problem *problem,
                                            size_t key_len, uint64_t hash)
{
    for (uint64_t at = hash & t->mask;; at = (at + 1) & t->mask) {
        const table_slot slot = t->slots[at];
        if (slot.entry == 0) {
            return NULL;
        }
        const table_entry *e = &t->entries[slot.entry - 1];
        if (slot.tag == (uint32_t)(hash >> 32) && e->op == problem->op &&
            memcmp(e->key, &problem->as, key_len) == 0) {
            return e;
        }
    }
}

/* A table of these entries, in this order; for one key the later entry counts. Takes `entries` over
 * (freed on failure too). Winners and defaults become members of their families. */
hone_status table_build(table_entry *entries, size_t entries_len, table **out, hone_error *error);
void table_free(table *t); /* and all that it replaced; NULL is fine */

/* Fill an entry's key. */
void table_key(table_entry *entry, const hone_problem *problem);
/* The problem of an entry. */
void table_problem(const table_entry *entry, hone_problem *out);

/* Members of the problem's family with a size >= `least`, ascending; *count of them. */
const table_member *table_covers(const table *t, const hone_problem *problem, int64_t least,
                                 size_t *count);

#endif
