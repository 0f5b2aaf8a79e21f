/* table.c - builds the lookup table: open addressing at half load, families sorted beside it. */
#include "runtime/table.h"

#include "core/status.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define X(text, NAME, value)                                                                       \
    _Static_assert(offsetof(hone_##text, align) + sizeof(int32_t) <= TABLE_KEY_BYTES,              \
                   "TABLE_KEY_BYTES: " #text);
HONE_OP_MAP(X)
#undef X

/* The low half of XXH3-128; the whole key is compared after it. The op is the seed. */
uint64_t table_hash(const hone_problem *problem, size_t key_len)
{
    return XXH3_128bits_withSeed(&problem->as, key_len, (uint64_t)problem->op).low64;
}

void table_key(table_entry *entry, const hone_problem *problem)
{
    memset(entry->key, 0, sizeof entry->key);
    memcpy(entry->key, &problem->as, table_key_len(problem->op));
    entry->op = problem->op;
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

/* Which family a problem is of, and its size in it. */
static bool family_of(const hone_problem *problem, uint64_t *family, int64_t *size)
{
    const problem_field *field = bucket_field(problem->op);
    hone_problem rest = *problem;

    if (field == NULL) {
        return false;
    }
    *size = problem_field_get(problem, field);
    problem_field_set(&rest, field, 0);
    *family = table_hash(&rest, table_key_len(rest.op));
    return true;
}

/* Put the entry into its slot; an older entry of the same key gives way. */
static void place(table *t, uint32_t index)
{
    const table_entry *e = &t->entries[index];
    hone_problem problem;

    table_problem(e, &problem);
    const size_t len = table_key_len(e->op);
    const uint64_t hash = table_hash(&problem, len);
    uint64_t at = hash & t->mask;
    while (t->slots[at].entry != 0) {
        const table_entry *other = &t->entries[t->slots[at].entry - 1];
        if (other->op == e->op && memcmp(other->key, e->key, sizeof e->key) == 0) {
            break;
        }
        at = (at + 1) & t->mask;
    }
    t->slots[at] = (table_slot){.tag = (uint32_t)(hash >> 32), .entry = index + 1};
}

static int compare_members(const void *a, const void *b)
{
    const table_member *x = a, *y = b;

    if (x->family != y->family) {
        return x->family < y->family ? -1 : 1;
    }
    return (x->size > y->size) - (x->size < y->size);
}

/* What was answered for another size says nothing about a third: only winners and defaults cover
 * others. */
static bool covers(const table_entry *e)
{
    return e->source != TABLE_NO_WINNER || e->answer.provenance == HONE_FROM_DEFAULT;
}

static void collect_members(table *t)
{
    hone_problem problem;

    for (uint64_t at = 0; at <= t->mask; at++) {
        table_member *m = &t->members[t->members_len];
        if (t->slots[at].entry == 0) {
            continue;
        }
        const table_entry *e = &t->entries[t->slots[at].entry - 1];
        table_problem(e, &problem);
        if (covers(e) && family_of(&problem, &m->family, &m->size)) {
            m->entry = t->slots[at].entry - 1;
            t->members_len++;
        }
    }
    qsort(t->members, t->members_len, sizeof *t->members, compare_members);
}

hone_status table_build(table_entry *entries, size_t entries_len, table **out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t slots_len = 16;
    table *t = calloc(1, sizeof *t);

    while (slots_len < 2 * entries_len) {
        slots_len *= 2;
    }
    if (t != NULL) {
        t->slots = calloc(slots_len, sizeof *t->slots);
        t->members = calloc(entries_len + 1, sizeof *t->members);
    }
    if (t == NULL || t->slots == NULL || t->members == NULL || entries_len >= TABLE_NO_WINNER) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a lookup table of %zu entries",
                            entries_len);
        goto done;
    }
    t->mask = slots_len - 1;
    t->entries = entries;
    t->entries_len = entries_len;
    entries = NULL;
    for (size_t i = 0; i < entries_len; i++) {
        place(t, (uint32_t)i);
    }
    collect_members(t);
    *out = t;
    t = NULL;
done:
    free(entries);
    table_free(t);
    return status;
}

void table_free(table *t)
{
    while (t != NULL) {
        table *next = t->retired;
        free(t->slots);
        free(t->entries);
        free(t->members);
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

const table_member *table_covers(const table *t, const hone_problem *problem, int64_t least,
                                 size_t *count)
{
    table_member want = {.size = least};
    int64_t size = 0;
    size_t low = 0, high = t->members_len;

    *count = 0;
    if (!family_of(problem, &want.family, &size)) {
        return NULL;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_members(&t->members[middle], &want) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    while (low + *count < t->members_len && t->members[low + *count].family == want.family &&
           same_family(t, &t->members[low + *count], problem)) {
        (*count)++;
    }
    return &t->members[low];
}
