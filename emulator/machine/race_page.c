/* race_page.c - shadow memory of the race detector: pages of shared memory, chunks of global
 * memory, and pages that are in one state throughout. */
#include "emulator/machine/race_state.h"
#include "emulator/machine/wide.h"

#include <stdlib.h>
#include <string.h>

MACHINE_WIDEST static void fill(uint32_t *to, uint32_t value, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        to[k] = value;
    }
}

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

MACHINE_WIDEST static uint32_t run_of(const uint32_t *write, const uint32_t *read, uint32_t n)
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

/* Not cloned themselves: the compiler would export them. */
void race_fill(uint32_t *to, uint32_t value, uint32_t n)
{
    fill(to, value, n);
}

uint32_t race_run_of(const uint32_t *write, const uint32_t *read, uint32_t n)
{
    return run_of(write, read, n);
}

void race_page_spread(race_page *p)
{
    uint32_t units = RACE_PAGE >> p->shift;

    if (!p->flat) {
        return;
    }
    if (p->writes == 1) {
        race_fill(p->write, p->write[0], units);
    }
    race_fill(p->read, p->read[0], units);
    p->flat = false;
    p->vouched = 0;
}

void race_page_level(race_page *p, uint32_t write, uint32_t read)
{
    p->flat = true;
    p->vouched = 0;
    p->writes = 1;
    p->distinct[0] = p->write[0] = write;
    p->read[0] = read;
}

/* The records of the writes, unless there are too many. */
static bool find_writes(race_page *p, uint32_t units)
{
    p->writes = 0;
    p->vouched = 0;
    for (uint32_t n = 0; n < units; n += race_run_of(p->write + n, p->write + n, units - n)) {
        uint32_t k = 0;
        while (k < p->writes && p->distinct[k] != p->write[n]) {
            k++;
        }
        if (k == RACE_DISTINCT) {
            return false;
        }
        p->distinct[k] = p->write[n];
        p->writes = k == p->writes ? (uint8_t)(k + 1) : p->writes;
    }
    return true;
}

bool race_page_flat(race_page *p)
{
    uint32_t units = RACE_PAGE >> p->shift;

    p->flat = p->flat || (race_run_of(p->read, p->read, units) == units && find_writes(p, units));
    return p->flat;
}

/* The states of so many units, and their lanes. */
static uint64_t bytes_of_units(uint32_t units)
{
    return (uint64_t)units * (2 * sizeof(uint32_t) + 2);
}

static uint32_t *new_units(run_state *run, uint32_t units)
{
    uint32_t *made = NULL;

    if (!race_charge(run->races, run, bytes_of_units(units))) {
        return NULL;
    }
    made = calloc(1, bytes_of_units(units));
    if (made == NULL) {
        race_discharge(run->races, bytes_of_units(units));
        race_out_of_memory(run);
    }
    return made;
}

/* Of shared memory. */
bool race_page_ready(run_state *run, race_page *p)
{
    uint32_t units = RACE_PAGE >> 2;

    if (p->write != NULL) {
        return true;
    }
    p->shift = 2;
    p->own = true;
    p->write = new_units(run, units);
    if (p->write == NULL) {
        *p = (race_page){.shift = 2};
        return false;
    }
    p->read = p->write + units;
    p->writer = (uint8_t *)(p->read + units);
    p->reader = p->writer + units;
    race_page_level(p, 0, 0);
    return true;
}

bool race_page_refine(run_state *run, race_page *p, uint8_t shift)
{
    uint32_t units = RACE_PAGE >> shift, by = (uint32_t)p->shift - shift;
    race_page finer = {.shift = shift, .own = true};

    if (shift >= p->shift) {
        return true;
    }
    race_page_spread(p);
    finer.write = new_units(run, units);
    if (finer.write == NULL) {
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
    race_page_free(run->races, p);
    *p = finer;
    return true;
}

void race_page_free(race_book *b, race_page *p)
{
    if (p->own) {
        race_discharge(b, bytes_of_units(RACE_PAGE >> p->shift));
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
    race_chunk *c = NULL;

    if (!race_charge(run->races, run, sizeof *c)) {
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (c == NULL) {
        race_discharge(run->races, sizeof *c);
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
        if (t->chunks[at] == NULL ||
            !race_before_mark(run, t->chunks[at], (key - 1) * RACE_CHUNK)) {
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
            race_page_free(b, &c->pages[k]);
        }
        race_discharge(b, c != NULL ? sizeof *c : 0);
        free(c);
    }
    free(b->global.keys);
    free(b->global.chunks);
    b->global = (race_chunks){0};
}
