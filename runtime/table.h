/* table.h - the immutable table that lookups read: problem to answer, and which tuned sizes cover
 * others.
 *
 * Built once, published by one atomic pointer, retired but never freed while the runtime is open,
 * so that a reader needs no lock. A key is the op and the op's own struct, which hone.h lays out
 * without padding: equal bytes are equal problems, as with the canonical key, without building that
 * key at every lookup.
 *
 * What 10,000 winners touch fits a core's own cache: a slot of 4 bytes and an entry of one line
 * each. The entry holds the first bytes of the op's struct, where the sizes stand; the bytes behind
 * them (dtypes, recipe, layouts) are the same for many problems and are kept once, as a form. */
#ifndef HONE_RUNTIME_TABLE_H
#define HONE_RUNTIME_TABLE_H

#include "core/problem.h"

#include <stdbool.h>
#include <string.h>

#define TABLE_KEY_BYTES  132 /* of the largest op, moe_gemm */
#define TABLE_HEAD_BYTES 32  /* of them in the entry; no op has fewer */
#define TABLE_FORM_BITS  24

typedef struct served served;

/* What a lookup answers. */
typedef struct table_answer {
    const served *kernel; /* NULL: known, but not prepared */
    uint64_t winner;      /* id in the store; 0 for a default */
    double time_ns;
    /* Of a prepared kernel: of TABLE_WORKSPACE_UNIT bytes, rounded up. Before: the index of its
     * winner in the generation. */
    uint32_t units_or_source;
    uint32_t form : TABLE_FORM_BITS; /* the table's own; never 0 */
    uint32_t provenance : 3;         /* hone_provenance */
    uint32_t modelled : 1;
    uint32_t grade : 2;  /* hone_grade */
    uint32_t stored : 1; /* a winner for exactly this problem, perhaps of a twin of the device */
} table_answer;

typedef struct table_entry {
    uint8_t head[TABLE_HEAD_BYTES];
    table_answer answer;
} __attribute__((aligned(64))) table_entry;

/* What problems that differ in their head alone have in common. */
typedef struct table_form {
    uint8_t rest[TABLE_KEY_BYTES - TABLE_HEAD_BYTES]; /* zero past the op's bytes */
    int32_t op;                                       /* 0: an empty place */
} table_form;

#define TABLE_WORKSPACE_UNIT 256 /* also a workspace's alignment */

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
    uint32_t *slots;       /* open addressing: index of an entry; 0: an empty place */
    table_form *forms;     /* open addressing, as many places; the first one stays empty */
    uint64_t mask;
    table_entry *entries; /* from 1 on */
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

/* 16 bytes of a key in one register: with warm caches a lookup is bound by its instructions. */
typedef uint32_t table_lanes __attribute__((vector_size(16)));

static inline table_lanes table_load(const void *bytes)
{
    table_lanes lanes;

    memcpy(&lanes, bytes, sizeof lanes);
    return lanes;
}

/* XXH3's step for short keys: 16 bytes, whitened, multiplied, both halves of the product folded. */
static inline uint64_t table_mix(const void *bytes, uint64_t a, uint64_t b)
{
    uint64_t low, high;

    /* One by one: a copy of both at once goes through a vector register and back through memory. */
    memcpy(&low, bytes, sizeof low);
    memcpy(&high, (const uint8_t *)bytes + 8, sizeof high);
    const unsigned __int128 product = (unsigned __int128)(low ^ a) * (high ^ b);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hashes are for places in memory alone, never stored; equal ones cost time, not correctness. Forms
 * are few sets of small numbers: they are folded by shifts into 16 bytes first. */
static inline uint64_t table_form_hash(int32_t op, const uint8_t *key, size_t key_len)
{
    table_lanes folded = table_load(key + key_len - 16);
    int shift = 0;

    for (size_t at = TABLE_HEAD_BYTES; at + 16 < key_len; at += 16) {
        folded ^= table_load(key + at) << ((shift += 7) & 31);
    }
    return table_mix(&folded, UINT64_C(0xa0761d6478bd642f) + (uint64_t)op,
                     UINT64_C(0xe7037ed1a0b428db));
}

static inline uint64_t table_head_hash(const uint8_t *key)
{
    return table_mix(key, UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xc2b2ae3d27d4eb4f)) +
           table_mix(key + 16, UINT64_C(0x165667b19e3779f9), UINT64_C(0x85ebca77c2b2ae63));
}

/* Hash of an op's bytes. */
static inline uint64_t table_hash(int32_t op, const void *key, size_t key_len)
{
    return table_form_hash(op, key, key_len) + table_head_hash(key);
}

/* Whether `len` (8 or more) bytes are equal; the compiler unrolls it for a constant length. */
static inline bool table_same(const uint8_t *a, const uint8_t *b, size_t len)
{
    table_lanes difference = {0};
    uint64_t half[2] = {0}, other[2] = {0};

    if (len >= 16) {
        for (size_t at = 0; at + 16 < len; at += 16) {
            difference |= table_load(a + at) ^ table_load(b + at);
        }
        difference |= table_load(a + len - 16) ^ table_load(b + len - 16);
        memcpy(half, &difference, sizeof half);
        return (half[0] | half[1]) == 0;
    }
    memcpy(&half[0], a, 8);
    memcpy(&other[0], b, 8);
    memcpy(&half[1], a + len - 8, 8);
    memcpy(&other[1], b + len - 8, 8);
    return ((half[0] ^ other[0]) | (half[1] ^ other[1])) == 0;
}

/* The place of a form whose hash is known, or the empty one where it belongs; never place 0. */
static inline uint32_t table_find_form(const table *t, int32_t op, const uint8_t *key,
                                       size_t key_len, uint64_t hash)
{
    for (uint64_t at = hash & t->mask;; at = (at + 1) & t->mask) {
        const table_form *form = &t->forms[at];
        if (__builtin_expect(form->op == op, 1) &&
            __builtin_expect(
                table_same(form->rest, key + TABLE_HEAD_BYTES, key_len - TABLE_HEAD_BYTES), 1)) {
            return (uint32_t)at;
        }
        if (form->op == 0 && at != 0) {
            return (uint32_t)at;
        }
    }
}

/* The slot of this head and form, or the empty one where it belongs. */
static inline uint32_t *table_find_slot(const table *t, const uint8_t *key, uint32_t form,
                                        uint64_t hash)
{
    for (uint64_t at = hash & t->mask;; at = (at + 1) & t->mask) {
        uint32_t *slot = &t->slots[at];
        const table_entry *e = &t->entries[*slot];
        if (*slot == 0 ||
            __builtin_expect(e->answer.form == form && table_same(e->head, key, TABLE_HEAD_BYTES),
                             1)) {
            return slot;
        }
    }
}

/* The entry of exactly this problem, or NULL. The hot path: hash, compare, nothing else. The form
 * is found beside the entry, not through it, and the entry is under way while forms are compared.
 */
static inline const table_entry *table_find_len(const table *t, const hone_problem *problem,
                                                size_t key_len)
{
    const uint8_t *key = (const uint8_t *)&problem->as;
    const uint64_t head_hash = table_head_hash(key);
    const uint64_t form_hash = table_form_hash(problem->op, key, key_len);
    const uint64_t hash = head_hash + form_hash;

    __builtin_prefetch(&t->entries[t->slots[hash & t->mask]]);
    const uint32_t form = table_find_form(t, problem->op, key, key_len, form_hash);
    const uint32_t *slot = table_find_slot(t, key, form, hash);
    return *slot != 0 ? &t->entries[*slot] : NULL;
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

/* An empty table with room for `most` problems: put them in, then index them, then share it. */
hone_status table_begin(size_t most, table **out, hone_error *error);
/* Add a problem of a known op and its answer; for one problem the later answer counts. At most
 * `most` times. */
void table_put(table *t, const hone_problem *problem, const table_answer *answer);
/* Winners and defaults become members of their families. */
hone_status table_index(table *t, hone_error *error);
void table_free(table *t); /* and all that it replaced; NULL is fine */

/* The problem of an entry. */
void table_problem(const table *t, const table_entry *entry, hone_problem *out);
/* Members of the problem's family that are as large as it or larger, ascending; *count of them. */
const table_member *table_covers(const table *t, const hone_problem *problem, size_t *count);

#endif
