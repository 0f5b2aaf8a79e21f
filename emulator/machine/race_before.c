/* race_before.c - launches that may begin before the one before them has ended (programmatic
 * dependent launch): what that one wrote counts as written by a cluster that nobody knows until
 * griddepcontrol.wait. Who is ordered behind a warp that has waited knows it, too. */
#include "emulator/machine/race_state.h"
#include "emulator/machine/wide.h"

#include <stdlib.h>

/* ---- At the end of a launch: what it wrote ------------------------------------------------- */

static bool add_range(run_state *run, machine_writes *w, uint64_t begin, uint64_t end)
{
    if (w->len > 0 && w->ranges[w->len - 1].end == begin) {
        w->ranges[w->len - 1].end = end;
        return true;
    }
    if (w->len == w->capacity) {
        size_t more = w->capacity * 2 + 64, added = (more - w->capacity) * sizeof *w->ranges;
        bool good = memory_charge(run->launch->memory, added, NULL) == HONE_OK;
        machine_range *bigger = good ? realloc(w->ranges, more * sizeof *bigger) : NULL;
        if (bigger == NULL) {
            memory_discharge(run->launch->memory, good ? added : 0);
            race_out_of_memory(run);
            return false;
        }
        w->ranges = bigger;
        w->capacity = more;
    }
    w->ranges[w->len++] = (machine_range){begin, end};
    return true;
}

static bool is_written(const run_state *run, uint32_t write, uint32_t read)
{
    const race_book *b = run->races;
    race_set single = {.len = 1};
    race_set all = read & RACE_SET ? b->sets[read & RACE_INDEX] : single;
    bool found = write > RACE_PREVIOUS;

    for (uint32_t n = 0; (read & RACE_ATOMIC_IN) != 0 && n < all.len; n++) {
        uint32_t id = read & RACE_SET ? b->members[all.first + n] : read & RACE_INDEX;
        found = found || race_record_writes(run, &b->records[id]);
    }
    return found;
}

/* How many of a page's units were written for sure, and how many may have been. */
MACHINE_WIDEST static void count_written(const race_page *p, uint32_t units, uint32_t counts[2])
{
    uint32_t plain = 0, some = 0;

    for (uint32_t n = 0; n < units; n++) {
        uint32_t written = p->write[n] > RACE_PREVIOUS;
        plain += written;
        some += written | ((p->read[n] & RACE_ATOMIC_IN) != 0);
    }
    counts[0] = plain;
    counts[1] = some;
}

static bool collect_page(run_state *run, machine_writes *out, race_page *p, uint64_t base)
{
    uint64_t unit = UINT64_C(1) << p->shift;
    uint32_t units = RACE_PAGE >> p->shift, counts[2];

    race_page_spread(p);
    count_written(p, units, counts);
    if (counts[0] == units) {
        return add_range(run, out, base, base + RACE_PAGE);
    }
    for (uint32_t n = 0; counts[1] != 0 && n < units; n++) {
        if (is_written(run, p->write[n], p->read[n]) &&
            !add_range(run, out, base + n * unit, base + (n + 1) * unit)) {
            return false;
        }
    }
    return true;
}

static int by_begin(const void *a, const void *b)
{
    uint64_t x = ((const machine_range *)a)->begin, y = ((const machine_range *)b)->begin;

    return (x > y) - (x < y);
}

void race_written(run_state *run)
{
    machine_writes *out = run->races != NULL ? run->launch->written : NULL;
    const race_chunks *t = out != NULL ? &run->races->global : NULL;

    for (uint32_t n = 0; out != NULL && n < t->capacity; n++) {
        race_chunk *c = t->chunks[n];
        for (uint32_t k = 0; c != NULL && k < RACE_CHUNK / RACE_PAGE; k++) {
            uint64_t base = (t->keys[n] - 1) * RACE_CHUNK + k * RACE_PAGE;
            if (!collect_page(run, out, &c->pages[k], base)) {
                return;
            }
        }
    }
    if (out != NULL && out->len > 1) {
        qsort(out->ranges, out->len, sizeof *out->ranges, by_begin);
    }
}

void machine_writes_free(device_memory *m, machine_writes *w)
{
    memory_discharge(m, w->capacity * sizeof *w->ranges);
    free(w->ranges);
    *w = (machine_writes){.len = 0};
}

/* ---- In the launch behind it --------------------------------------------------------------- */

static size_t first_behind(const machine_writes *w, uint64_t at)
{
    size_t low = 0, high = w->len;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (w->ranges[middle].end <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool mark_range(run_state *run, race_chunk *c, uint64_t begin, uint64_t end)
{
    for (uint64_t at = begin, next = 0; at < end; at = next) {
        race_page *p = &c->pages[at % RACE_CHUNK / RACE_PAGE];
        next = at / RACE_PAGE * RACE_PAGE + RACE_PAGE;
        next = next < end ? next : end;
        uint32_t aligned = (uint32_t)__builtin_ctzll(at | next);
        if (!race_page_refine(run, p, aligned >= 2 && aligned < RACE_WIDE ? 2 : (uint8_t)aligned)) {
            return false;
        }
        race_fill(p->write + (at % RACE_PAGE >> p->shift), RACE_PREVIOUS,
                  (uint32_t)(next - at) >> p->shift);
    }
    return true;
}

bool race_before_mark(run_state *run, race_chunk *c, uint64_t base)
{
    const machine_writes *w = run->launch->before;
    uint64_t limit = base + RACE_CHUNK;

    for (size_t n = w != NULL ? first_behind(w, base) : 0; w != NULL && n < w->len; n++) {
        machine_range r = w->ranges[n];
        if (r.begin >= limit) {
            break;
        }
        if (!mark_range(run, c, r.begin > base ? r.begin : base, r.end < limit ? r.end : limit)) {
            return false;
        }
    }
    return true;
}

void race_before_wait(warp *w)
{
    race_state *s = w->cta->cluster->races;
    race_clock knows = {0};

    if (s == NULL || w->run->launch->before == NULL) {
        return;
    }
    if (race_clock_name(w->run, &knows, RACE_BEFORE)) {
        race_warp_learn(s, race_warp_of(s, w), &knows);
    }
    race_clock_clear(&knows);
}
