/* race_book.c - records of accesses, sets of them, and the clocks of words. Shadow memory holds
 * their numbers; when the book is full, a sweep over shadow memory keeps those that are in use. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>
#include <string.h>

/* Records between two sweeps: as many as units of shadow memory that one goes through, by four, so
 * that it costs a record little whatever has been touched; at most 80 MiB of them. Fewer where the
 * memory's budget has no room for a longer list. */
enum { FIRST_LIMIT = 1 << 16, UNITS_A_RECORD = 4, PATIENCE_MOST = 1 << 22 };

static void *grow(race_book *b, run_state *run, void *list, uint32_t len, uint32_t *capacity,
                  size_t size)
{
    if (len < *capacity) {
        return list;
    }
    uint32_t more = len + len / 2 + 1024;
    if (!race_may_charge(b, more * size)) { /* a sweep before the next access makes room */
        b->limit = b->limit < len ? b->limit : len;
        more = len + 1024;
        if (!race_charge(b, run, more * size)) {
            return NULL;
        }
    }
    void *bigger = realloc(list, more * size);
    if (bigger == NULL) {
        race_discharge(b, more * size);
        race_out_of_memory(run);
        return NULL;
    }
    race_discharge(b, *capacity * size);
    *capacity = more;
    return bigger;
}

uint32_t race_book_record(race_book *b, run_state *run, const race_record *r)
{
    race_record *list =
        grow(b, run, b->records, b->records_len, &b->records_capacity, sizeof *list);

    if (list == NULL) {
        return 0;
    }
    b->records = list;
    list[b->records_len] = *r;
    return b->records_len++;
}

race_book *race_book_open(run_state *run)
{
    const race_record previous = {.cluster = RACE_BEFORE, .time = 1, .access = RACE_WRITE};
    race_book *b = calloc(1, sizeof *b);

    if (b == NULL) {
        race_out_of_memory(run);
        return NULL;
    }
    b->purse.memory = run->launch->memory;
    b->limit = FIRST_LIMIT;
    b->records_len = b->sets_len = 1; /* number 0 is nobody */
    if (race_book_record(b, run, &previous) != RACE_PREVIOUS) {
        purse_close(&b->purse);
        free(b);
        return NULL;
    }
    return b;
}

static bool push_member(race_book *b, run_state *run, uint32_t record)
{
    uint32_t *list = grow(b, run, b->members, b->members_len, &b->members_capacity, sizeof *list);

    if (list == NULL) {
        return false;
    }
    b->members = list;
    list[b->members_len++] = record;
    return true;
}

static uint32_t close_set(race_book *b, run_state *run, uint32_t first)
{
    race_set *list = grow(b, run, b->sets, b->sets_len, &b->sets_capacity, sizeof *list);

    if (list == NULL) {
        return 0;
    }
    b->sets = list;
    list[b->sets_len] = (race_set){.first = first, .len = b->members_len - first};
    return b->sets_len++ | RACE_SET;
}

/* Whether the access stands for that earlier one: it is of its class, atomic or not, and is ordered
 * behind it or sees what it wrote, for whoever is ordered behind the new one is behind both. A
 * strong load does not stand for the `last` that writes: that may have to be fenced for engines. */
static bool stands_for(const race_visit *v, uint32_t id, uint32_t last)
{
    const race_record *r = &v->book->records[id], *own = &v->book->records[v->record];
    const run_state *run = v->state->run;

    if ((r->access == RACE_ATOMIC) != (v->kind == RACE_ATOMIC)) {
        return false;
    }
    if (!race_record_writes(run, r)) {
        return race_ordered(v, id);
    }
    if (race_record_sees(run, own)) {
        return id != last || race_record_writes(run, own);
    }
    return race_ordered(v, id) && race_record_writes(run, own);
}

/* Of a set, the last member that is an atomic and writes; 0 without one. */
static uint32_t last_writer(const race_visit *v, race_set from, uint32_t old)
{
    const race_book *b = v->book;

    for (uint32_t n = from.len; n > 0; n--) {
        uint32_t id = old & RACE_SET ? b->members[from.first + n - 1] : old & RACE_INDEX;
        if (b->records[id].access == RACE_ATOMIC &&
            race_record_writes(v->state->run, &b->records[id])) {
            return id;
        }
    }
    return 0;
}

/* The set of old's members and this record, without those that it stands for. */
static uint32_t make_set(race_visit *v, uint32_t old)
{
    race_book *b = v->book;
    race_set single = {.len = 1}, from = old & RACE_SET ? b->sets[old & RACE_INDEX] : single;
    uint32_t first = b->members_len, foreign = 0, any_atomic = 0;
    bool atomic = v->kind == RACE_ATOMIC;
    uint32_t last = atomic ? last_writer(v, from, old) : 0;

    for (uint32_t n = 0; n < from.len; n++) {
        uint32_t id = old & RACE_SET ? b->members[from.first + n] : old & RACE_INDEX;
        bool its_atomic = b->records[id].access == RACE_ATOMIC;
        if (stands_for(v, id, last)) {
            continue;
        }
        foreign += b->records[id].cluster != v->state->number;
        any_atomic |= its_atomic;
        if (!push_member(b, v->w->run, id)) {
            return old;
        }
    }
    if (foreign >= RACE_FOREIGN) { /* enough to catch a write that is ordered behind none of them */
        b->members_len = first;
        return old;
    }
    any_atomic |= atomic;
    uint32_t mark = any_atomic ? RACE_ATOMIC_IN : 0;
    if (b->members_len == first) {
        return v->record | mark;
    }
    return push_member(b, v->w->run, v->record) ? close_set(b, v->w->run, first) | mark : old;
}

uint32_t race_book_add(race_visit *v, uint32_t old)
{
    uint32_t own = v->record | (v->kind == RACE_ATOMIC ? RACE_ATOMIC_IN : 0);
    uint32_t slot = (old * UINT32_C(2654435761) + v->record) % RACE_MOVES;

    if (old == 0 || old == own) {
        return own;
    }
    if (v->book->moves[slot].old != old || v->book->moves[slot].record != v->record) {
        uint32_t made = make_set(v, old);
        v->book->moves[slot].old = old;
        v->book->moves[slot].record = v->record;
        v->book->moves[slot].made = made;
    }
    return v->book->moves[slot].made;
}

/* ---- The sweep ----------------------------------------------------------------------------- */

typedef struct sweep {
    race_book *b;
    run_state *run;
    race_book old;
    uint32_t *records, *sets; /* new numbers */
    uint64_t units;           /* gone through so far */
} sweep;

static uint32_t keep_record(sweep *s, uint32_t id)
{
    if (id != 0 && s->records[id] == 0) {
        s->records[id] = race_book_record(s->b, s->run, &s->old.records[id]);
    }
    return s->records[id];
}

static uint32_t keep_read(sweep *s, uint32_t value)
{
    uint32_t id = value & RACE_INDEX;

    if ((value & RACE_SET) == 0) {
        return keep_record(s, id) | (value & ~RACE_INDEX);
    }
    if (s->sets[id] == 0) {
        race_set from = s->old.sets[id];
        uint32_t first = s->b->members_len;
        for (uint32_t n = 0; n < from.len; n++) {
            if (!push_member(s->b, s->run, keep_record(s, s->old.members[from.first + n]))) {
                return 0;
            }
        }
        s->sets[id] = close_set(s->b, s->run, first);
    }
    return s->sets[id] | (value & RACE_ATOMIC_IN);
}

static void keep_page(sweep *s, race_page *p)
{
    uint32_t units = p->write != NULL ? RACE_PAGE >> p->shift : 0;

    if (units > 0 && p->flat && p->writes == 1) { /* stays so: the first unit is all of them */
        uint32_t read = p->read[0] == 0 ? 0 : keep_read(s, p->read[0]);
        race_page_level(p, keep_record(s, p->write[0]), read);
        s->units++;
        return;
    }
    race_page_spread(p);
    s->units += units;
    for (uint32_t n = 0; n < units; n++) {
        bool same = n > 0 && p->write[n] == s->old.moves[0].old;
        s->old.moves[0].old = p->write[n]; /* runs of one number are the rule */
        p->write[n] = same ? p->write[n - 1] : keep_record(s, p->write[n]);
    }
    for (uint32_t n = 0; n < units; n++) {
        p->read[n] = p->read[n] == 0 ? 0 : keep_read(s, p->read[n]);
    }
}

static void keep_used(sweep *s)
{
    for (race_state *state = s->b->states; state != NULL; state = state->next) {
        for (uint32_t n = 0; n < state->ctas_len * state->shared_pages; n++) {
            keep_page(s, &state->shared[n]);
        }
    }
    for (uint32_t n = 0; n < s->b->global.capacity; n++) {
        race_chunk *c = s->b->global.chunks[n];
        for (uint32_t k = 0; c != NULL && k < RACE_CHUNK / RACE_PAGE; k++) {
            keep_page(s, &c->pages[k]);
        }
    }
}

static uint32_t next_limit(const race_book *b, uint64_t units)
{
    uint64_t live = b->records_len > b->members_len ? b->records_len : b->members_len;
    uint64_t patience =
        units / UNITS_A_RECORD < PATIENCE_MOST ? units / UNITS_A_RECORD : PATIENCE_MOST;
    uint64_t limit = live * 2 > patience ? live * 2 : patience;

    return (uint32_t)(limit > FIRST_LIMIT ? limit : FIRST_LIMIT);
}

static uint64_t bytes_of_lists(const race_book *b)
{
    return (uint64_t)b->records_capacity * sizeof *b->records +
           (uint64_t)b->sets_capacity * sizeof *b->sets +
           (uint64_t)b->members_capacity * sizeof *b->members;
}

static void collect(race_book *b, run_state *run)
{
    sweep s = {.b = b, .run = run, .old = *b};
    uint64_t numbers =
        (uint64_t)b->records_len * sizeof *s.records + (uint64_t)b->sets_len * sizeof *s.sets;

    if (!race_charge(b, run, numbers)) {
        return;
    }
    s.records = calloc(b->records_len, sizeof *s.records);
    s.sets = calloc(b->sets_len, sizeof *s.sets);
    if (s.records == NULL || s.sets == NULL) {
        race_out_of_memory(run);
    } else {
        b->records = NULL;
        b->sets = NULL;
        b->members = NULL;
        b->records_len = b->sets_len = 1;
        b->members_len = b->records_capacity = b->sets_capacity = b->members_capacity = 0;
        memset(b->moves, 0, sizeof b->moves);
        b->generation++;
        keep_record(&s, RACE_PREVIOUS);
        keep_used(&s);
        b->limit = next_limit(b, s.units);
        free(s.old.records);
        free(s.old.sets);
        free(s.old.members);
        race_discharge(b, bytes_of_lists(&s.old));
    }
    free(s.records);
    free(s.sets);
    race_discharge(b, numbers);
}

/* Asked before every access: what a sweep needs is not made before there is one. */
bool race_book_room(race_book *b, run_state *run)
{
    if (__builtin_expect(b->records_len >= b->limit || b->members_len >= b->limit ||
                             b->sets_len >= b->limit,
                         0)) {
        collect(b, run);
    }
    return !run->faulted;
}

/* ---- Clocks of words ----------------------------------------------------------------------- */

static uint32_t place_of(const race_words *t, uint64_t key)
{
    uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->capacity - 1);

    while (t->keys[at] != 0 && t->keys[at] != key) {
        at = (at + 1) & (t->capacity - 1);
    }
    return at;
}

/* Of a table, with a clock for each place that may be taken. */
static uint64_t bytes_of_words(uint32_t capacity)
{
    return (uint64_t)capacity * (sizeof(uint64_t) + sizeof(race_clock *) + sizeof(race_clock) / 2);
}

static bool more_words(race_words *t, run_state *run)
{
    race_words old = *t;
    uint32_t capacity = old.capacity != 0 ? old.capacity * 2 : 64;

    if (!race_charge(run->races, run, bytes_of_words(capacity))) {
        return false;
    }
    *t = (race_words){.capacity = capacity, .len = old.len};
    t->keys = calloc(capacity, sizeof *t->keys);
    t->clocks = calloc(capacity, sizeof(race_clock *));
    if (t->keys == NULL || t->clocks == NULL) {
        free(t->keys);
        free(t->clocks);
        *t = old;
        race_discharge(run->races, bytes_of_words(capacity));
        race_out_of_memory(run);
        return false;
    }
    for (uint32_t n = 0; n < old.capacity; n++) {
        if (old.keys[n] != 0) {
            uint32_t at = place_of(t, old.keys[n]);
            t->keys[at] = old.keys[n];
            t->clocks[at] = old.clocks[n];
        }
    }
    free(old.keys);
    free(old.clocks);
    race_discharge(run->races, bytes_of_words(old.capacity));
    return true;
}

race_clock **race_words_at(race_words *t, run_state *run, uint64_t key)
{
    if (t->len * 2 >= t->capacity && !more_words(t, run)) {
        return NULL;
    }
    uint32_t at = place_of(t, key + 1);
    t->len += t->keys[at] == 0;
    t->keys[at] = key + 1;
    return &t->clocks[at];
}

void race_words_clear(race_book *b, race_words *t)
{
    for (uint32_t n = 0; n < t->capacity; n++) {
        race_clock_free(&t->clocks[n]);
    }
    free(t->keys);
    free(t->clocks);
    race_discharge(b, bytes_of_words(t->capacity));
    *t = (race_words){0};
}
