/* table.c - builds the lookup table: open addressing at half load, families sorted beside it. */
#include "runtime/table.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE (2u << 20)

#define X(text, NAME, value)                                                                       \
    _Static_assert(offsetof(hone_##text, align) + sizeof(int32_t) <= TABLE_KEY_BYTES,              \
                   "TABLE_KEY_BYTES: " #text);
HONE_OP_MAP(X)
#undef X
_Static_assert(sizeof(table_entry) == 128, "an entry is two cache lines");

table_entry *table_allocate(size_t count)
{
    return aligned_alloc(sizeof(table_entry), (count + 1) * sizeof(table_entry));
}

void table_key(table_entry *entry, const hone_problem *problem)
{
    memset(entry->key, 0, sizeof entry->key);
    memcpy(entry->key, &problem->as, table_key_len(problem->op));
    entry->op = (int16_t)problem->op;
}

void table_problem(const table_entry *entry, hone_problem *out)
{
    hone_problem problem = {.size = sizeof problem, .op = entry->op};

    memcpy(&problem.as, entry->key, table_key_len(entry->op));
    *out = problem;
}

/* The op's size field that lookups may round up; NULL when it has none. */
static const problem_field *bucket_field(int32_t op)
{
    size_t count = 0;
    const problem_field *fields = problem_fields(op, &count);

    for (size_t i = 0; i < count; i++) {
        if (fields[i].bucket) {
            return &fields[i];
        }
    }
    return NULL;
}

/* Which family an entry's key is of, and its size in it: the hash of the key without its size. */
static bool family_of(int32_t op, const void *op_bytes, uint64_t *hash, int64_t *size)
{
    const problem_field *field = bucket_field(op);
    const size_t len = table_key_len(op);
    uint8_t rest[TABLE_KEY_BYTES] = {0};

    if (field == NULL || field->kind != PROBLEM_SIZE) {
        return false;
    }
    const size_t at = field->offset - offsetof(hone_problem, as);
    memcpy(rest, op_bytes, len);
    memcpy(size, rest + at, sizeof *size);
    memset(rest + at, 0, sizeof *size);
    *hash = table_hash(op, rest, len);
    return true;
}

/* Put an entry into the table; an older one of the same key gives way. */
static void place(table *t, const table_entry *e)
{
    const uint64_t hash = table_hash(e->op, e->key, table_key_len(e->op));
    uint64_t at = hash & t->mask;

    while (t->slots[at].entry != 0) {
        table_entry *other = &t->entries[t->slots[at].entry - 1];
        if (other->op == e->op && memcmp(other->key, e->key, sizeof e->key) == 0) {
            *other = *e;
            return;
        }
        at = (at + 1) & t->mask;
    }
    t->entries[t->entries_len++] = *e;
    t->slots[at] = (table_slot){.tag = (uint32_t)(hash >> 32), .entry = (uint32_t)t->entries_len};
}

static int compare_members(const void *a, const void *b)
{
    const table_member *x = a, *y = b;

    return (x->size > y->size) - (x->size < y->size);
}

/* The family's slot, or the empty one where it belongs. */
static table_family *find_family(const table *t, uint64_t hash)
{
    uint64_t at = hash & t->families_mask;

    while (t->families[at].len != 0 && t->families[at].hash != hash) {
        at = (at + 1) & t->families_mask;
    }
    return &t->families[at];
}

/* What was answered for another size says nothing about a third: only winners and defaults cover
 * others. */
static bool covers(const table_entry *e)
{
    return e->source != TABLE_NO_WINNER || e->provenance == HONE_FROM_DEFAULT;
}

/* Group the members by family, then sort each family: a family has as many members as an op has
 * tuned sizes. */
static void collect_members(table *t)
{
    uint64_t hash = 0;
    int64_t size = 0;
    uint32_t first = 0;

    for (size_t i = 0; i < t->entries_len; i++) {
        const table_entry *e = &t->entries[i];
        if (covers(e) && family_of(e->op, e->key, &hash, &size)) {
            table_family *f = find_family(t, hash);
            f->hash = hash;
            f->len++;
        }
    }
    for (uint64_t at = 0; at <= t->families_mask; at++) {
        first += t->families[at].len;
        t->families[at].first = first; /* its end: filled from behind */
    }
    for (size_t i = 0; i < t->entries_len; i++) {
        const table_entry *e = &t->entries[i];
        if (covers(e) && family_of(e->op, e->key, &hash, &size)) {
            t->members[--find_family(t, hash)->first] =
                (table_member){.size = size, .entry = (uint32_t)i};
        }
    }
    for (uint64_t at = 0; at <= t->families_mask; at++) {
        const table_family *f = &t->families[at];
        if (f->len > 1) {
            qsort(&t->members[f->first], f->len, sizeof *t->members, compare_members);
        }
    }
}

/* Slots and entries in one block. Where it is large, huge pages save a page walk at every lookup.
 */
static bool allocate(table *t, uint64_t slots_len, size_t entries_len)
{
    const size_t slots_bytes = slots_len * sizeof *t->slots,
                 bytes = slots_bytes + entries_len * sizeof *t->entries;
    const bool large = bytes >= HUGE_PAGE / 4;
    const size_t align = large ? HUGE_PAGE : sizeof *t->entries;
    const size_t rounded = (bytes + align - 1) / align * align;

    t->block = aligned_alloc(align, rounded);
    t->members = malloc((entries_len + 1) * sizeof *t->members);
    t->families = calloc(slots_len, sizeof *t->families);
    if (t->block == NULL || t->members == NULL || t->families == NULL) {
        return false;
    }
    if (large) {
        madvise(t->block, rounded, MADV_HUGEPAGE); /* advice: refused, it costs time alone */
    }
    t->slots = t->block;
    t->entries = (table_entry *)((uint8_t *)t->block + slots_bytes);
    memset(t->slots, 0, slots_bytes);
    t->mask = slots_len - 1;
    t->families_mask = slots_len - 1;
    return true;
}

hone_status table_build(const table_entry *entries, size_t entries_len, table **out,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t slots_len = 16;
    table *t = calloc(1, sizeof *t);

    while (slots_len < 2 * entries_len) {
        slots_len *= 2;
    }
    if (t == NULL || entries_len >= TABLE_NO_WINNER || !allocate(t, slots_len, entries_len)) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a lookup table of %zu entries",
                            entries_len);
        goto done;
    }
    for (size_t i = 0; i < entries_len; i++) {
        place(t, &entries[i]);
    }
    collect_members(t);
    *out = t;
    t = NULL;
done:
    table_free(t);
    return status;
}

void table_free(table *t)
{
    while (t != NULL) {
        table *next = t->retired;
        free(t->block);
        free(t->members);
        free(t->families);
        free(t);
        t = next;
    }
}

/* Whether a member really is of the problem's family: the hash alone proves nothing. */
static bool same_family(const table *t, const table_member *m, const hone_problem *problem)
{
    const problem_field *field = bucket_field(problem->op);
    hone_problem other;

    table_problem(&t->entries[m->entry], &other);
    problem_field_set(&other, field, problem_field_get(problem, field));
    return other.op == problem->op && memcmp(&other.as, &problem->as, table_key_len(other.op)) == 0;
}

const table_member *table_covers(const table *t, const hone_problem *problem, size_t *count)
{
    uint64_t hash = 0;
    int64_t size = 0;

    *count = 0;
    if (!family_of(problem->op, &problem->as, &hash, &size)) {
        return NULL;
    }
    const table_family *f = find_family(t, hash);
    if (f->len == 0 || !same_family(t, &t->members[f->first], problem)) {
        return NULL;
    }
    uint32_t skipped = 0;
    while (skipped < f->len && t->members[f->first + skipped].size < size) {
        skipped++;
    }
    *count = f->len - skipped;
    return &t->members[f->first + skipped];
}
