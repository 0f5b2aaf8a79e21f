/* race_shadow.c - shadow memory of the race detector, and the rule: an access conflicts with an
 * earlier one of the same word that is not ordered before it, unless both read or both are
 * atomic. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>
#include <string.h>

/* Of shared memory. */
bool race_page_ready(run_state *run, race_page *p)
{
    uint32_t units = RACE_PAGE >> 2;

    if (p->write != NULL) {
        return true;
    }
    p->shift = 2;
    p->own = true;
    p->write = calloc(units, 2 * sizeof *p->write + 2);
    if (p->write == NULL) {
        race_out_of_memory(run);
        return false;
    }
    p->read = p->write + units;
    p->writer = (uint8_t *)(p->read + units);
    p->reader = p->writer + units;
    return true;
}

bool race_page_refine(run_state *run, race_page *p, uint8_t shift)
{
    uint32_t units = RACE_PAGE >> shift, by = (uint32_t)p->shift - shift;
    race_page finer = {.shift = shift, .own = true};

    if (shift >= p->shift) {
        return true;
    }
    finer.write = calloc(units, 2 * sizeof *finer.write + 2);
    if (finer.write == NULL) {
        race_out_of_memory(run);
        return false;
    }
    finer.read = finer.write + units;
    finer.writer = p->writer != NULL ? (uint8_t *)(finer.read + units) : NULL;
    finer.reader = p->writer != NULL ? finer.writer + units : NULL;
    for (uint32_t n = 0; n < units; n++) {
        finer.write[n] = p->write[n >> by];
        finer.read[n] = p->read[n >> by];
        if (p->writer != NULL) {
            finer.writer[n] = p->writer[n >> by];
            finer.reader[n] = p->reader[n >> by];
        }
    }
    race_page_free(p);
    *p = finer;
    return true;
}

void race_page_free(race_page *p)
{
    if (p->own) {
        free(p->write);
    }
    *p = (race_page){.shift = 2};
}

/* ---- Global memory ------------------------------------------------------------------------- */

static uint32_t chunk_place(const race_chunks *t, uint64_t key)
{
    uint32_t at = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->capacity - 1);

    while (t->keys[at] != 0 && t->keys[at] != key) {
        at = (at + 1) & (t->capacity - 1);
    }
    return at;
}

static bool more_chunks(race_chunks *t, run_state *run)
{
    race_chunks old = *t;
    uint32_t capacity = old.capacity != 0 ? old.capacity * 2 : 64;

    *t = (race_chunks){.capacity = capacity, .len = old.len};
    t->keys = calloc(capacity, sizeof *t->keys);
    t->chunks = calloc(capacity, sizeof(race_chunk *));
    if (t->keys == NULL || t->chunks == NULL) {
        free(t->keys);
        free(t->chunks);
        *t = old;
        race_out_of_memory(run);
        return false;
    }
    for (uint32_t n = 0; n < old.capacity; n++) {
        if (old.keys[n] != 0) {
            uint32_t at = chunk_place(t, old.keys[n]);
            t->keys[at] = old.keys[n];
            t->chunks[at] = old.chunks[n];
        }
    }
    free(old.keys);
    free(old.chunks);
    return true;
}

static race_chunk *new_chunk(run_state *run)
{
    race_chunk *c = calloc(1, sizeof *c);

    if (c == NULL) {
        race_out_of_memory(run);
        return NULL;
    }
    for (uint32_t n = 0; n < RACE_CHUNK / RACE_PAGE; n++) {
        race_page *p = &c->pages[n];
        p->shift = RACE_WIDE;
        p->write = c->units + n * 2 * (RACE_PAGE >> RACE_WIDE);
        p->read = p->write + (RACE_PAGE >> RACE_WIDE);
    }
    return c;
}

static race_chunk *find_chunk(race_chunks *t, run_state *run, uint64_t key)
{
    if (t->len * 2 >= t->capacity && !more_chunks(t, run)) {
        return NULL;
    }
    uint32_t at = chunk_place(t, key);
    if (t->keys[at] == 0) {
        t->chunks[at] = new_chunk(run);
        if (t->chunks[at] == NULL) {
            return NULL;
        }
        t->keys[at] = key;
        t->len++;
    }
    t->last_key = key;
    t->last = t->chunks[at];
    return t->last;
}

race_page *race_page_global(race_book *b, run_state *run, uint64_t address)
{
    race_chunks *t = &b->global;
    uint64_t key = address / RACE_CHUNK + 1;
    race_chunk *c = key == t->last_key ? t->last : find_chunk(t, run, key);

    return c != NULL ? &c->pages[address % RACE_CHUNK / RACE_PAGE] : NULL;
}

void race_page_forget_global(race_book *b)
{
    for (uint32_t n = 0; n < b->global.capacity; n++) {
        race_chunk *c = b->global.chunks[n];
        for (uint32_t k = 0; c != NULL && k < RACE_CHUNK / RACE_PAGE; k++) {
            race_page_free(&c->pages[k]);
        }
        free(c);
    }
    free(b->global.keys);
    free(b->global.chunks);
    b->global = (race_chunks){0};
}

/* ---- The rule ------------------------------------------------------------------------------ */

static bool known(const race_visit *v, uint32_t id, bool fenced)
{
    const race_record *r = &v->book->records[id];
    const race_block *b = v->home;

    if (r->cluster != v->state->number) {
        b = race_clock_find(v->clock, r->cluster);
    } else if (r->agent == v->agent && r->time == v->time && !fenced) {
        return true; /* another part of the same access */
    }
    return b != NULL && r->agent < b->len && r->time <= b->times[(fenced ? b->len : 0) + r->agent];
}

bool race_ordered(const race_visit *v, uint32_t record)
{
    return known(v, record, false);
}

static bool against(race_visit *v, uint32_t id)
{
    v->against = id;
    return false;
}

/* A plain write that lies behind us. An engine of the async proxy that reads must also have a proxy
 * fence between, unless the async proxy itself wrote. */
static bool write_allows(race_visit *v, uint32_t id)
{
    bool engine = v->task != NULL && v->task->engine != RACE_COPY && v->kind == RACE_READ;
    uint8_t by = v->book->records[id].agent_kind;

    if (id == 0) {
        return true;
    }
    if (machine_checks(v->w,
                       v->owner != NULL ? HONE_EMU_CHECK_RACES : HONE_EMU_CHECK_GLOBAL_RACES) &&
        !known(v, id, false)) {
        return against(v, id);
    }
    if (engine && (by == AGENT_WARP || by == AGENT_COPY) && v->owner != NULL &&
        machine_checks(v->w, HONE_EMU_CHECK_PROXY) && !known(v, id, true)) {
        v->unfenced = true;
        return against(v, id);
    }
    return true;
}

/* Reads and atomics since that write. */
static bool reads_allow(race_visit *v, uint32_t value)
{
    const race_book *b = v->book;
    race_set single = {.len = value != 0},
             all = value & RACE_SET ? b->sets[value & RACE_INDEX] : single;

    if (value == 0 || (v->kind == RACE_READ && (value & RACE_ATOMIC_IN) == 0) ||
        !machine_checks(v->w,
                        v->owner != NULL ? HONE_EMU_CHECK_RACES : HONE_EMU_CHECK_GLOBAL_RACES)) {
        return true;
    }
    for (uint32_t n = 0; n < all.len; n++) {
        uint32_t id = value & RACE_SET ? b->members[all.first + n] : value & RACE_INDEX;
        bool atomic = b->records[id].access == RACE_ATOMIC;
        bool conflict = v->kind == RACE_WRITE || (v->kind == RACE_READ) == atomic;
        if (conflict && !known(v, id, false)) {
            return against(v, id);
        }
    }
    return true;
}

/* Done by this warp since its lanes last met. */
static bool own_now(const race_visit *v, uint32_t id)
{
    const race_record *r = &v->book->records[id];
    return id != 0 && r->agent == v->agent && r->time == v->time && r->cluster == v->state->number;
}

/* What becomes of a word's state, or false and the access that stands against it. */
static bool decide(race_visit *v, uint32_t write, uint32_t read)
{
    if (v->seen && v->seen_write == write && v->seen_read == read) {
        return true;
    }
    if (!write_allows(v, write) || !reads_allow(v, read)) {
        return false;
    }
    v->next_write = v->kind == RACE_WRITE ? v->record : write;
    v->next_read = v->kind == RACE_WRITE ? 0 : race_book_add(v, read);
    v->seen_write = write;
    v->seen_read = read;
    v->seen = true;
    v->calm = v->owner == NULL || v->task != NULL ||
              (!own_now(v, write) && !own_now(v, (read & RACE_SET) != 0 ? 0 : read & RACE_INDEX));
    return true;
}

/* The two loops that a matrix unit's tiles go through, in the widest vectors that the processor
 * has.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                            \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RACE_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RACE_WIDEST
#endif

/* Whether `n` words, which the caller knows, have that state. */
static inline __attribute__((always_inline)) bool
all_are(const uint32_t *write, const uint32_t *read, uint32_t w, uint32_t r, uint32_t n)
{
    uint32_t differs = 0;

    for (uint32_t j = 0; j < n; j++) {
        differs |= (write[j] ^ w) | (read[j] ^ r);
    }
    return differs == 0;
}

/* How many words from the first on have its state. */
RACE_WIDEST static uint32_t run_of(const uint32_t *write, const uint32_t *read, uint32_t n)
{
    uint32_t k = 0, w = write[0], r = read[0];

    while (k + 32 <= n && all_are(write + k, read + k, w, r, 32)) {
        k += 32;
    }
    while (k + 8 <= n && all_are(write + k, read + k, w, r, 8)) {
        k += 8;
    }
    while (k < n && write[k] == w && read[k] == r) {
        k++;
    }
    return k;
}

RACE_WIDEST static void fill(uint32_t *to, uint32_t value, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        to[k] = value;
    }
}

/* ---- Between the lanes of a warp ----------------------------------------------------------- */

static bool lanes_differ(const uint8_t *a, const uint8_t *lanes, uint32_t n, uint32_t *at)
{
    if (memcmp(a, lanes, n) == 0) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (a[k] != lanes[k] && a[k] != RACE_NOBODY && lanes[k] != RACE_NOBODY) {
            *at = k;
            return true;
        }
    }
    return false;
}

/* Other lanes wrote these words, or, for a write, read them, and no bar.warp.sync lies between. */
static bool lanes_allow(race_visit *v, const race_page *p, uint32_t unit, uint32_t n,
                        const uint8_t *lanes)
{
    uint32_t write = p->write[unit], read = p->read[unit], at = 0;

    if (write != v->record && own_now(v, write) && lanes_differ(p->writer + unit, lanes, n, &at)) {
        v->against = write;
        v->other = p->writer[unit + at];
    } else if (v->kind == RACE_WRITE && (read & (RACE_SET | RACE_ATOMIC_IN)) == 0 &&
               own_now(v, read) && lanes_differ(p->reader + unit, lanes, n, &at)) {
        v->against = read;
        v->other = p->reader[unit + at];
    } else {
        return true;
    }
    v->between_lanes = true;
    v->unit = unit + at;
    v->lane = lanes[at];
    return false;
}

static void note_lanes(const race_visit *v, race_page *p, uint32_t unit, uint32_t n,
                       const uint8_t *lanes)
{
    uint32_t read = p->read[unit];

    if (v->kind == RACE_WRITE && p->write[unit] == v->record) {
        /* a lane before it in the same instruction, or the same instruction again */
        for (uint32_t k = 0; k < n; k++) {
            uint8_t was = p->writer[unit + k];
            p->writer[unit + k] = was == lanes[k] ? was : RACE_NOBODY;
        }
    } else if (v->kind == RACE_WRITE) {
        memcpy(p->writer + unit, lanes, n);
    } else if (v->kind == RACE_ATOMIC || v->together) {
        memset(p->reader + unit, RACE_NOBODY, n);
    } else if ((read & RACE_SET) == 0 && own_now(v, read & RACE_INDEX)) {
        for (uint32_t k = 0; k < n; k++) {
            uint8_t was = p->reader[unit + k];
            p->reader[unit + k] = was == lanes[k] ? was : RACE_MANY;
        }
    } else {
        memcpy(p->reader + unit, lanes, n);
    }
}

bool race_visit_units(race_visit *v, race_page *p, uint32_t first, uint32_t n, const uint8_t *lanes)
{
    uint32_t *write = p->write + first, *read = p->read + first;

    for (uint32_t k = 0, len = 0; k < n; k += len) {
        len = run_of(write + k, read + k, n - k);
        v->unit = first + k;
        if (!decide(v, write[k], read[k])) {
            return false;
        }
        if (p->writer != NULL && lanes != NULL) {
            if (!lanes_allow(v, p, first + k, len, lanes + k)) {
                return false;
            }
            note_lanes(v, p, first + k, len, lanes + k);
        }
        if (v->next_write != v->seen_write) {
            fill(write + k, v->next_write, len);
        }
        if (v->next_read != v->seen_read) {
            fill(read + k, v->next_read, len);
        }
    }
    return true;
}
