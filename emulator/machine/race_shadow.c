/* race_shadow.c - the rule of the race detector: an access conflicts with an earlier one of the
 * same word that is not ordered before it, unless both read or both are atomic. */
#include "emulator/machine/race_state.h"

#include <string.h>

/* ---- The rule ------------------------------------------------------------------------------ */

static bool known(const race_visit *v, uint32_t id, bool fenced)
{
    uint32_t part = !fenced            ? RACE_KNOWN
                    : v->owner != NULL ? RACE_FENCED_SHARED
                                       : RACE_FENCED_GLOBAL;
    const race_record *r = &v->book->records[id];
    const race_block *b = v->home;

    if (r->cluster != v->state->number) {
        b = race_clock_find(v->clock, r->cluster);
    } else if (r->agent == v->agent && r->time == v->time && !fenced) {
        return true; /* another part of the same access */
    }
    return b != NULL && r->agent < b->len && r->time <= b->times[part * b->len + r->agent];
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

static bool looks_for_races(const race_visit *v)
{
    return machine_checks(v->w,
                          v->owner != NULL ? HONE_EMU_CHECK_RACES : HONE_EMU_CHECK_GLOBAL_RACES);
}

/* An engine of the async proxy that reads must have a proxy fence between itself and what wrote,
 * unless the async proxy did. */
static bool is_fenced(race_visit *v, uint32_t id)
{
    bool engine = v->task != NULL && v->task->engine != RACE_COPY && v->kind == RACE_READ;
    uint8_t by = v->book->records[id].agent_kind;

    if (engine && (by == AGENT_WARP || by == AGENT_COPY) &&
        machine_checks(v->w, HONE_EMU_CHECK_PROXY) && !known(v, id, true)) {
        v->unfenced = true;
        return against(v, id);
    }
    return true;
}

/* A plain write that lies behind us. */
static bool write_allows(race_visit *v, uint32_t id)
{
    if (id == 0) {
        return true;
    }
    return looks_for_races(v) && !known(v, id, false) ? against(v, id) : is_fenced(v, id);
}

/* The nth of a set is an atomic whose value a later one saw that this access is ordered behind. */
static bool seen_since(const race_visit *v, race_set all, uint32_t n)
{
    const race_book *b = v->book;

    for (uint32_t m = n + 1; m < all.len; m++) {
        uint32_t id = b->members[all.first + m];
        if (race_record_sees(v->state->run, &b->records[id]) && known(v, id, false)) {
            return race_record_writes(v->state->run, &b->records[b->members[all.first + n]]);
        }
    }
    return false;
}

/* Reads and atomics since that write. */
static bool reads_allow(race_visit *v, uint32_t value)
{
    const race_book *b = v->book;
    race_set single = {.len = value != 0},
             all = value & RACE_SET ? b->sets[value & RACE_INDEX] : single;

    if (value == 0 || (v->kind == RACE_READ && (value & RACE_ATOMIC_IN) == 0)) {
        return true;
    }
    bool races = looks_for_races(v);
    for (uint32_t n = 0; n < all.len; n++) {
        uint32_t id = value & RACE_SET ? b->members[all.first + n] : value & RACE_INDEX;
        bool atomic = b->records[id].access == RACE_ATOMIC;
        bool conflict = v->kind == RACE_WRITE || (v->kind == RACE_READ) == atomic;
        if (races && conflict && !known(v, id, false) && !(atomic && seen_since(v, all, n))) {
            return against(v, id);
        }
        if (atomic && race_record_writes(v->state->run, &b->records[id]) && !is_fenced(v, id)) {
            return false;
        }
    }
    return true;
}

bool race_own_now(const race_visit *v, uint32_t id)
{
    const race_record *r = &v->book->records[id];
    uint32_t agent = r->agent_kind == AGENT_INIT ? r->warp : r->agent; /* warps come first */

    return id != 0 && agent == v->own && r->time == v->time && r->cluster == v->state->number;
}

bool race_recall(race_visit *v, uint32_t write, uint32_t read, bool after)
{
    uint32_t len = v->steps_len < RACE_STEPS ? v->steps_len : RACE_STEPS;

    for (uint32_t n = 0; n < len; n++) {
        const race_step *s = &v->steps[n];
        if ((after ? s->next_write : s->write) == write &&
            (after ? s->next_read : s->read) == read) {
            v->seen_write = s->write;
            v->seen_read = s->read;
            v->next_write = s->next_write;
            v->next_read = s->next_read;
            v->calm = s->calm;
            return true;
        }
    }
    return false;
}

bool race_decide(race_visit *v, uint32_t write, uint32_t read)
{
    if ((v->seen && v->seen_write == write && v->seen_read == read) ||
        (v->task == NULL && race_recall(v, write, read, false))) {
        return true;
    }
    bool fresh = !v->seen || v->seen_read != read;
    if (!write_allows(v, write) || (fresh && !reads_allow(v, read))) {
        return false;
    }
    v->next_write = v->kind == RACE_WRITE ? v->record : write;
    if (fresh) {
        v->next_read = v->kind == RACE_WRITE ? 0 : race_book_add(v, read);
    }
    v->seen_write = write;
    v->seen_read = read;
    v->seen = true;
    v->calm = v->owner == NULL || v->task != NULL ||
              (!race_own_now(v, write) &&
               !race_own_now(v, (read & RACE_SET) != 0 ? 0 : read & RACE_INDEX));
    if (v->task == NULL) { /* engines go straight */
        v->steps[v->steps_len++ % RACE_STEPS] =
            (race_step){write, read, v->next_write, v->next_read, v->calm};
    }
    return true;
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

    if (write != v->record && race_own_now(v, write) &&
        lanes_differ(p->writer + unit, lanes, n, &at)) {
        v->against = write;
        v->other = p->writer[unit + at];
    } else if (v->kind == RACE_WRITE && (read & (RACE_SET | RACE_ATOMIC_IN)) == 0 &&
               race_own_now(v, read) && lanes_differ(p->reader + unit, lanes, n, &at)) {
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
    } else if ((read & RACE_SET) == 0 && race_own_now(v, read & RACE_INDEX)) {
        for (uint32_t k = 0; k < n; k++) {
            uint8_t was = p->reader[unit + k];
            p->reader[unit + k] = was == lanes[k] ? was : RACE_MANY;
        }
    } else {
        memcpy(p->reader + unit, lanes, n);
    }
}

/* Of a page's `vouched`, the bit of this visit; 0: it does not count there. A warp tells of what
 * its matrix unit reads in the order of issue; bulk copies may be told late, with an older clock.
 */
static uint64_t voucher(const race_visit *v)
{
    uint64_t n = v->w->cta->rank * (uint64_t)v->state->per_cta + v->w->index;
    bool reads = v->task != NULL && v->task->engine == RACE_MATRIX && v->kind == RACE_READ;

    return reads && v->owner != NULL && n < 64 ? UINT64_C(1) << n : 0;
}

/* A whole page at once. False: it must be gone through, since its units differ or because there is
 * a conflict, whose place is asked for. */
static bool visit_page(race_visit *v, race_page *p)
{
    const race_page *last = v->flat;

    v->flat = NULL;
    if (!race_page_flat(p)) {
        return false;
    }
    bool same = last != NULL && p->read[0] == v->seen_read && last->writes == p->writes &&
                memcmp(last->distinct, p->distinct, p->writes * sizeof *p->distinct) == 0;
    /* One decision finds what becomes of the reads; writes that were allowed once still are. */
    uint64_t bit = voucher(v);
    uint32_t writes = (p->vouched & bit) != 0 ? 1 : p->writes;
    for (uint32_t k = 0; !same && k < writes; k++) {
        if (!race_decide(v, p->distinct[k], p->read[0])) {
            return false;
        }
    }
    if (v->kind == RACE_WRITE) {
        race_page_level(p, v->record, 0);
    } else {
        p->vouched |= same ? 0 : bit;
        p->read[0] = v->next_read;
        v->flat = p;
    }
    return true;
}

bool race_visit_units(race_visit *v, race_page *p, uint32_t first, uint32_t n, const uint8_t *lanes)
{
    uint32_t *write = p->write + first, *read = p->read + first;

    if (lanes == NULL && n == (uint32_t)RACE_PAGE >> p->shift && visit_page(v, p)) {
        return true;
    }
    race_page_spread(p);
    v->flat = NULL;
    for (uint32_t k = 0, len = 0; k < n; k += len) {
        len = race_run_of(write + k, read + k, n - k);
        v->unit = first + k;
        if (!race_decide(v, write[k], read[k])) {
            return false;
        }
        if (p->writer != NULL && lanes != NULL) {
            if (!lanes_allow(v, p, first + k, len, lanes + k)) {
                return false;
            }
            note_lanes(v, p, first + k, len, lanes + k);
        }
        if (v->next_write != v->seen_write) {
            race_fill(write + k, v->next_write, len);
        }
        if (v->next_read != v->seen_read) {
            race_fill(read + k, v->next_read, len);
        }
    }
    return true;
}

race_page *race_visit_page(race_visit *v, uint64_t at)
{
    race_state *s = v->state;

    if (v->owner == NULL) {
        return race_page_global(v->book, s->run, at);
    }
    race_page *p = &s->shared[v->owner->rank * s->shared_pages + at / RACE_PAGE];
    return race_page_ready(s->run, p) ? p : NULL;
}
