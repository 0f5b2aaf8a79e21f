/* table.c - builds the lookup table: open addressing at half load, families sorted beside it. */
#include "runtime/table.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE (2u << 20)

#define X(text, NAME, value)                                                                       \
    _Static_assert(offsetof(hone_##text, align) + sizeof(int32_t) <= TABLE_KEY_BYTES &&            \
                       offsetof(hone_##text, align) >= TABLE_HEAD_BYTES,                           \
                   "TABLE_KEY_BYTES, TABLE_HEAD_BYTES: " #text);
HONE_OP_MAP(X)
#undef X
_Static_assert(sizeof(table_entry) == 64, "an entry is one cache line");

void table_problem(const table *t, const table_entry *entry, hone_problem *out)
{
    const table_form *form = &t->forms[entry->answer.form];
    hone_problem problem = {.size = sizeof problem, .op = form->op};
    uint8_t *key = (uint8_t *)&problem.as;

    memcpy(key, entry->head, TABLE_HEAD_BYTES);
    memcpy(key + TABLE_HEAD_BYTES, form->rest, table_key_len(form->op) - TABLE_HEAD_BYTES);
    *out = problem;
}

/* Which family a problem is of, and its size in it. */
static bool family_of(const hone_problem *problem, uint64_t *hash, int64_t *size)
{
    hone_problem key;

    if (!problem_family(problem, &key, size)) {
        return false;
    }
    *hash = table_hash(key.op, &key.as, table_key_len(key.op));
    return true;
}

void table_put(table *t, const hone_problem *problem, const table_answer *answer)
{
    const uint8_t *key = (const uint8_t *)&problem->as;
    const size_t key_len = table_key_len(problem->op);
    const uint64_t form_hash = table_form_hash(problem->op, key, key_len);
    const uint32_t form = table_find_form(t, problem->op, key, key_len, form_hash);
    uint32_t *slot = table_find_slot(t, key, form, form_hash + table_head_hash(key));

    if (t->forms[form].op == 0) {
        t->forms[form].op = problem->op;
        memcpy(t->forms[form].rest, key + TABLE_HEAD_BYTES, key_len - TABLE_HEAD_BYTES);
    }
    if (*slot == 0) {
        *slot = (uint32_t)++t->entries_len;
    }
    table_entry *e = &t->entries[*slot];
    memcpy(e->head, key, TABLE_HEAD_BYTES);
    e->answer = *answer;
    e->answer.form = form & ((1u << TABLE_FORM_BITS) - 1);
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
static bool covers(const table_answer *a)
{
    return a->stored || a->provenance == HONE_FROM_DEFAULT;
}

/* Count each family's members; of each entry, its family's place in homes[i] and its size in
 * members[i]. Place families_mask + 1 is no family's. */
static void count_members(table *t, uint32_t *homes, table_member *members)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < t->entries_len; i++) {
        const table_entry *e = &t->entries[i + 1];
        hone_problem problem;
        table_problem(t, e, &problem);
        members[i].entry = (uint32_t)i + 1;
        homes[i] = (uint32_t)t->families_mask + 1;
        if (covers(&e->answer) && family_of(&problem, &hash, &members[i].size)) {
            table_family *f = find_family(t, hash);
            f->hash = hash;
            f->len++;
            homes[i] = (uint32_t)(f - t->families);
        }
    }
}

/* Group the members by family, then sort each family: a family has as many members as an op has
 * tuned sizes. */
static void collect_members(table *t, const uint32_t *homes, const table_member *members)
{
    uint32_t first = 0;

    for (uint64_t at = 0; at <= t->families_mask; at++) {
        first += t->families[at].len;
        t->families[at].first = first; /* its end: filled from behind */
    }
    for (size_t i = 0; i < t->entries_len; i++) {
        if (homes[i] <= t->families_mask) {
            t->members[--t->families[homes[i]].first] = members[i];
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
static bool allocate(table *t, uint64_t places, size_t most)
{
    const size_t slots_bytes = places * sizeof *t->slots;
    const size_t bytes = slots_bytes + (most + 1) * sizeof *t->entries;
    const bool large = bytes >= HUGE_PAGE / 4;
    const size_t align = large ? HUGE_PAGE : sizeof *t->entries;
    const size_t rounded = (bytes + align - 1) / align * align;

    t->block = aligned_alloc(align, rounded);
    t->forms = calloc(places, sizeof *t->forms);
    if (t->block == NULL || t->forms == NULL) {
        return false;
    }
    if (large) {
        madvise(t->block, rounded, MADV_HUGEPAGE); /* advice: refused, it costs time alone */
    }
    t->slots = t->block;
    t->entries = (table_entry *)((uint8_t *)t->block + slots_bytes);
    t->mask = places - 1;
    memset(t->slots, 0, slots_bytes);
    return true;
}

hone_status table_begin(size_t most, table **out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t places = 16;
    table *t = NULL;

    if (most >= (1u << (TABLE_FORM_BITS - 1))) {
        return status_set(error, HONE_LIMIT, NULL, 0,
                          "a lookup table of %zu problems; at most %u are served", most,
                          (1u << (TABLE_FORM_BITS - 1)) - 1);
    }
    while (places < 2 * most) {
        places *= 2;
    }
    t = calloc(1, sizeof *t);
    if (t == NULL || !allocate(t, places, most)) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a lookup table of %zu problems", most);
        goto done;
    }
    *out = t;
    t = NULL;
done:
    table_free(t);
    return status;
}

hone_status table_index(table *t, hone_error *error)
{
    uint32_t *homes = malloc((t->entries_len + 1) * sizeof *homes);
    table_member *members = malloc((t->entries_len + 1) * sizeof *members);

    t->members = malloc((t->entries_len + 1) * sizeof *t->members);
    t->families = calloc(t->mask + 1, sizeof *t->families);
    const bool enough =
        homes != NULL && members != NULL && t->members != NULL && t->families != NULL;
    if (enough) {
        t->families_mask = t->mask;
        count_members(t, homes, members);
        collect_members(t, homes, members);
    }
    free(homes);
    free(members);
    return enough ? HONE_OK
                  : status_set(error, HONE_NO_MEMORY, NULL, 0, "the families of %zu problems",
                               t->entries_len);
}

void table_free(table *t)
{
    while (t != NULL) {
        table *next = t->retired;
        free(t->block);
        free(t->forms);
        free(t->members);
        free(t->families);
        free(t);
        t = next;
    }
}

/* Whether a member really is of the problem's family: the hash alone proves nothing. */
static bool same_family(const table *t, const table_member *m, const hone_problem *problem)
{
    hone_problem member, key, other;
    int64_t size = 0;

    table_problem(t, &t->entries[m->entry], &member);
    return member.op == problem->op && problem_family(&member, &other, &size) &&
           problem_family(problem, &key, &size) &&
           memcmp(&other.as, &key.as, table_key_len(key.op)) == 0;
}

const table_member *table_covers(const table *t, const hone_problem *problem, size_t *count)
{
    uint64_t hash = 0;
    int64_t size = 0;

    *count = 0;
    if (!family_of(problem, &hash, &size)) {
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
