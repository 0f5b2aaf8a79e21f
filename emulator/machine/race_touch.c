/* race_touch.c - accesses of warps and engines, cut into runs of words within a page of shadow. */
#include "emulator/machine/access.h"
#include "emulator/machine/race_state.h"

#include <stdlib.h>
#include <string.h>

/* A run of memory that consecutive lanes touch, `each` bytes a lane. */
typedef struct run_of_lanes {
    uint64_t at, bytes;
    uint32_t lane, each;
    bool many; /* several lanes touch all of it */
} run_of_lanes;

static bool wants(const warp *w, const cta *owner)
{
    int checks =
        owner == NULL ? HONE_EMU_CHECK_GLOBAL_RACES : HONE_EMU_CHECK_RACES | HONE_EMU_CHECK_PROXY;
    return w->cta->cluster->races != NULL && machine_checks(w, (hone_emu_check)checks);
}

static const uint8_t all_lanes[MACHINE_LANES] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

/* Lanes of the units from `at` on; a unit that several lanes share is nobody's. */
static const uint8_t *lanes_of(const race_visit *v, const run_of_lanes *r, uint64_t at,
                               uint32_t units, uint32_t shift, uint8_t lanes[RACE_PAGE])
{
    uint32_t each = (uint32_t)__builtin_ctz(r->each), from = (uint32_t)(at - r->at);

    if (v->owner == NULL || v->task != NULL) {
        return NULL;
    }
    if (v->together || r->many || each < shift) {
        bool all = v->kind == RACE_READ && (v->together || r->many);
        memset(lanes, all ? RACE_MANY : RACE_NOBODY, units);
        return lanes;
    }
    if (each == shift) {
        return all_lanes + r->lane + (from >> each);
    }
    for (uint32_t n = 0; n < units; n++) {
        lanes[n] = (uint8_t)(r->lane + ((from + (n << shift)) >> each));
    }
    return lanes;
}

/* The page's units are no longer than the parts that are touched. */
static bool fine_enough(const race_visit *v, race_page *p, uint64_t ends)
{
    uint32_t aligned = (uint32_t)__builtin_ctzll(ends);

    return aligned >= p->shift ||
           race_page_refine(v->state->run, p, aligned >= 2 ? 2 : (uint8_t)aligned);
}

static bool touch_run(race_visit *v, const run_of_lanes *r)
{
    uint8_t lanes[RACE_PAGE];

    for (uint64_t at = r->at, end = r->at + r->bytes, next = 0; at < end; at = next) {
        race_page *p = race_visit_page(v, at);
        v->base = at / RACE_PAGE * RACE_PAGE;
        next = v->base + RACE_PAGE < end ? v->base + RACE_PAGE : end;
        v->page = p;
        if (p == NULL) {
            return false;
        }
        if (!fine_enough(v, p, at | next)) {
            return false;
        }
        uint32_t units = (uint32_t)(next - at) >> p->shift;
        const uint8_t *by = lanes_of(v, r, at, units, p->shift, lanes);
        if (!race_visit_units(v, p, (uint32_t)(at - v->base) >> p->shift, units, by)) {
            v->base += (uint64_t)v->unit << p->shift; /* of the conflict */
            return false;
        }
    }
    return true;
}

/* ---- A warp's own accesses ----------------------------------------------------------------- */

static uint32_t own_record(race_state *s, race_warp *r, const warp *w, const race_visit *v)
{
    uint32_t at = (uint32_t)(v->i - w->run->kernel->code);
    race_cached *c = &r->cache[at % RACE_CACHE];

    if (c->id == 0 || c->instruction != at || c->time != v->time ||
        c->generation != s->book->generation) {
        race_record record = {.cluster = s->number,
                              .time = v->time,
                              .instruction = at,
                              .agent = (uint16_t)v->agent,
                              .warp = (uint16_t)(w->cta->rank * s->per_cta + w->index),
                              .agent_kind =
                                  (uint8_t)(v->agent == r->agent ? AGENT_WARP : AGENT_INIT),
                              .access = (uint8_t)v->kind};
        *c = (race_cached){at, v->time, race_book_record(s->book, s->run, &record),
                           s->book->generation};
    }
    return c->id;
}

/* Who touched them: what race_visit_units would note. */
static void note_seen(const race_visit *v, const run_of_lanes *r, uint32_t first, uint32_t units)
{
    uint8_t *who = (v->kind == RACE_WRITE ? v->page->writer : v->page->reader) + first;
    uint32_t each = (uint32_t)__builtin_ctz(r->each), shift = v->page->shift;

    if (v->together || v->kind == RACE_ATOMIC || r->many || each < shift) {
        bool many = r->many && v->kind == RACE_READ && !v->together;
        memset(who, many ? RACE_MANY : RACE_NOBODY, units);
        return;
    }
    for (uint32_t k = 0; k < units; k++) {
        who[k] = (uint8_t)(r->lane + (k << shift >> each));
    }
}

/* The same of units that another lane of this read went to before. */
static void note_again(const race_visit *v, const run_of_lanes *r, uint32_t first, uint32_t units)
{
    uint32_t each = (uint32_t)__builtin_ctz(r->each), shift = v->page->shift;

    if ((v->next_read & RACE_SET) != 0) {
        note_seen(v, r, first, units);
        return;
    }
    for (uint32_t k = 0; k < units; k++) {
        uint8_t lane = (uint8_t)(r->lane + (k << shift >> each)),
                *who = v->page->reader + first + k;
        *who = *who == lane ? lane : RACE_MANY;
    }
}

/* Units of which another lane has made what this one would. */
static bool touched_before(const race_visit *v, const run_of_lanes *r, uint32_t first, uint32_t end)
{
    const race_page *p = v->page;
    uint32_t differs = 0;

    if (v->kind != RACE_READ || v->together || r->many || v->task != NULL ||
        (uint32_t)__builtin_ctz(r->each) < p->shift) {
        return false;
    }
    for (uint32_t k = first; k < end; k++) {
        differs |= (p->write[k] ^ v->next_write) | (p->read[k] ^ v->next_read);
    }
    if (differs == 0 && v->owner != NULL) {
        note_again(v, r, first, end - first);
    }
    return differs == 0;
}

/* Units like those that were seen before: most of a strided access. */
static bool touch_seen(race_visit *v, const run_of_lanes *r)
{
    uint64_t from = r->at % RACE_PAGE;
    uint32_t differs = 0;

    if (!v->seen || from + r->bytes > RACE_PAGE) {
        return false;
    }
    if (v->page == NULL || r->at - from != v->base) {
        v->page = race_visit_page(v, r->at);
        v->base = r->at - from;
    }
    const race_page *p = v->page;
    if (p == NULL || p->flat || ((r->at | r->bytes) & ((UINT64_C(1) << p->shift) - 1)) != 0) {
        return false;
    }
    uint32_t first = (uint32_t)from >> p->shift, end = first + ((uint32_t)r->bytes >> p->shift);
    if ((p->write[first] != v->seen_write || p->read[first] != v->seen_read) &&
        !race_recall(v, p->write[first], p->read[first], false)) {
        return race_recall(v, p->write[first], p->read[first], true) && v->calm &&
               touched_before(v, r, first, end);
    }
    for (uint32_t k = first; k < end; k++) {
        differs |= (p->write[k] ^ v->seen_write) | (p->read[k] ^ v->seen_read);
    }
    if (differs != 0 || !v->calm) {
        return false;
    }
    if (v->owner != NULL && v->task == NULL) {
        note_seen(v, r, first, end - first);
    }
    for (uint32_t k = first; k < end; k++) {
        p->write[k] = v->next_write;
        p->read[k] = v->next_read;
    }
    return true;
}

/* Runs of lanes that touch memory side by side, one after the other. */
static bool touch_lanes(race_visit *v, const uint64_t at[MACHINE_LANES], uint32_t mask,
                        uint32_t bytes)
{
    run_of_lanes r = {.each = bytes};

    for (EACH_LANE(lane, mask)) {
        bool follows =
            r.bytes != 0 && at[lane] == r.at + r.bytes && lane == r.lane + r.bytes / bytes;
        bool repeats = r.bytes == bytes && at[lane] == r.at;
        if (follows || repeats) {
            r.bytes += follows ? bytes : 0;
            r.many |= repeats;
            continue;
        }
        if (r.bytes != 0 && !touch_seen(v, &r) && !touch_run(v, &r)) {
            return false;
        }
        r = (run_of_lanes){.at = at[lane], .bytes = bytes, .lane = lane, .each = bytes};
    }
    return r.bytes == 0 || touch_seen(v, &r) || touch_run(v, &r);
}

static void report_lane(const race_visit *v, const uint64_t at[MACHINE_LANES], uint32_t mask,
                        uint32_t bytes)
{
    uint32_t there = 0;

    for (EACH_LANE(lane, mask)) {
        there |= (uint32_t)(v->base >= at[lane] && v->base < at[lane] + bytes) << lane;
    }
    uint32_t best = there;
    if (v->lane < MACHINE_LANES) {
        best &= UINT32_C(1) << v->lane;
    } else if (v->other < MACHINE_LANES) {
        best &= ~(UINT32_C(1) << v->other);
    }
    there = best != 0 ? best : there != 0 ? there : mask;
    race_report(v, machine_lowest(there), at[machine_lowest(there)], bytes);
}

/* The agent that makes the warp's mbarriers. */
static uint32_t init_agent(race_state *s, race_warp *r, const warp *w)
{
    if (r->init == 0) {
        r->init = race_agent_new(s, AGENT_INIT, w->cta->rank * s->per_cta + w->index);
    }
    return r->init;
}

static race_access access_of(race_access kind)
{
    return kind == RACE_READ_TOGETHER ? RACE_READ : kind == RACE_INIT ? RACE_WRITE : kind;
}

bool race_touch(warp *w, const instruction *i, cta *owner, const uint64_t at[MACHINE_LANES],
                uint32_t mask, uint32_t bytes, race_access kind)
{
    race_state *s = w->cta->cluster->races;
    uint64_t stride = access_stride(at, mask);
    bool together = kind == RACE_READ_TOGETHER, good = false;

    if (!wants(w, owner) || !race_book_room(s->book, w->run)) {
        return !w->run->faulted;
    }
    race_warp *r = race_warp_of(s, w);
    if (r->told) { /* what follows does not come before the task */
        race_tick(s, r);
        r->told = false;
    }
    race_visit v = {.state = s,
                    .book = s->book,
                    .w = w,
                    .i = i,
                    .clock = &r->clock,
                    .home = r->home,
                    .owner = owner,
                    .kind = access_of(kind),
                    .together = together,
                    .lane = RACE_NOBODY,
                    .other = RACE_NOBODY,
                    .agent = kind == RACE_INIT ? init_agent(s, r, w) : r->agent,
                    .own = r->agent,
                    .time = r->home->times[r->agent]};
    v.record = own_record(s, r, w, &v);
    if (stride == bytes) {
        run_of_lanes all = {.at = at[0], .bytes = UINT64_C(32) * bytes, .each = bytes};
        good = touch_run(&v, &all);
    } else if (stride == 0) {
        run_of_lanes one = {.at = at[0], .bytes = bytes, .each = bytes, .many = true};
        good = touch_run(&v, &one);
    } else {
        good = race_visit_alike(&v, at, mask, bytes) || touch_lanes(&v, at, mask, bytes);
    }
    if (!good && !w->run->faulted) {
        report_lane(&v, at, mask, bytes);
    }
    return good && (kind != RACE_INIT || race_warp_know(s, r, v.agent, v.time));
}

bool race_window(warp *w, const instruction *i, uint32_t mask, uint32_t bytes,
                 const access_window *win, const uint64_t address[MACHINE_LANES], race_access kind)
{
    const uint64_t *at = win->owner != NULL ? win->at : address;
    bool strong = (i->order & ORDER_STRONG) != 0;

    if (!race_touch(w, i, win->owner, at, mask, bytes, strong ? RACE_ATOMIC : kind)) {
        return false;
    }
    if (kind == RACE_WRITE && !win->dense && !race_lanes_agree(w, i, win->owner, at, mask)) {
        return false;
    }
    if (strong) {
        race_order(w, i, win->owner, at, mask, kind != RACE_WRITE, kind != RACE_READ);
    }
    return true;
}

/* ---- Engines ------------------------------------------------------------------------------- */

static uint32_t task_record(race_task *t, race_access kind)
{
    race_state *s = t->state;

    if (t->generation != s->book->generation) {
        memset(t->record, 0, sizeof t->record);
        t->generation = s->book->generation;
    }
    if (t->record[kind] == 0) {
        race_record record = {.cluster = s->number,
                              .time = t->time,
                              .instruction = (uint32_t)(t->i - s->run->kernel->code),
                              .agent = (uint16_t)t->agent,
                              .warp = s->agent_warp[t->agent],
                              .agent_kind = s->agent_kind[t->agent],
                              .access = (uint8_t)kind};
        t->record[kind] = race_book_record(s->book, s->run, &record);
    }
    return t->record[kind];
}

static race_visit visit_of(race_task *t, cta *owner, race_access kind)
{
    return (race_visit){.state = t->state,
                        .book = t->state->book,
                        .w = t->by,
                        .i = t->i,
                        .task = t,
                        .clock = &t->view->clock,
                        .home = race_clock_find(&t->view->clock, t->state->number),
                        .owner = owner,
                        .kind = kind,
                        .record = task_record(t, kind),
                        .agent = t->agent,
                        .own = t->agent,
                        .time = t->time};
}

/* Whether there is anything to look at; false, too, when the launch has a fault. */
static bool looks_at(const race_task *t, const cta *owner)
{
    return t != NULL && wants(t->by, owner) && race_book_room(t->state->book, t->by->run);
}

bool race_task_touch(race_task *t, cta *owner, uint64_t at, uint64_t bytes, uint64_t rows,
                     uint64_t stride, race_access kind)
{
    bool good = true;

    if (bytes == 0 || !looks_at(t, owner)) {
        return t == NULL || !t->by->run->faulted;
    }
    race_visit v = visit_of(t, owner, kind);
    if (stride == bytes) {
        bytes *= rows;
        rows = 1;
    }
    for (uint64_t n = 0; n < rows && good; n++) {
        run_of_lanes r = {.at = at + n * stride, .bytes = bytes, .each = 1};
        good = touch_seen(&v, &r) || touch_run(&v, &r);
    }
    if (!good && !t->by->run->faulted) {
        race_report(&v, t->lane, v.base, (uint32_t)bytes);
    }
    return good;
}

bool race_task_touch_lanes(race_task *t, cta *owner, const uint64_t at[MACHINE_LANES],
                           uint32_t mask, uint32_t bytes, race_access kind)
{
    bool good = true;

    if (mask == 0 || !looks_at(t, owner)) {
        return t == NULL || !t->by->run->faulted;
    }
    race_visit v = visit_of(t, owner, kind);
    good = race_visit_alike(&v, at, mask, bytes) || touch_lanes(&v, at, mask, bytes);
    if (!good && !t->by->run->faulted) {
        race_report(&v, t->lane, v.base, bytes);
    }
    return good;
}

/* Four words of state. */
typedef uint32_t four __attribute__((vector_size(16)));
enum { CHUNK = 16, PAGE_CHUNKS = RACE_PAGE / CHUNK };

/* The chunks of a page of words that are all in the state that was seen. False: nothing was done.
 */
static bool read_chunks(const race_visit *v, race_page *p, const uint8_t *chunks, uint32_t len)
{
    four write = (four){0} + v->seen_write, read = (four){0} + v->seen_read, differs = {0};
    four next = (four){0} + v->next_read, w, r;

    if (!v->seen || p->shift != 2) {
        return false;
    }
    race_page_spread(p);
    for (uint32_t n = 0; n < len; n++) {
        memcpy(&w, p->write + chunks[n] * 4, sizeof w);
        memcpy(&r, p->read + chunks[n] * 4, sizeof r);
        differs |= (w ^ write) | (r ^ read);
    }
    if ((differs[0] | differs[1] | differs[2] | differs[3]) != 0) {
        return false;
    }
    for (uint32_t n = 0; n < len; n++) {
        memcpy(p->read + chunks[n] * 4, &next, sizeof next);
    }
    return true;
}

bool race_task_read_chunks(race_task *t, cta *owner, uint64_t at, uint64_t chunks, uint32_t pages,
                           uint64_t stride)
{
    uint8_t list[PAGE_CHUNKS];
    uint32_t len = 0;
    bool good = true;

    if (!looks_at(t, owner)) {
        return t == NULL || !t->by->run->faulted;
    }
    race_visit v = visit_of(t, owner, RACE_READ);
    for (uint64_t rest = chunks; rest != 0; rest &= rest - 1) {
        list[len++] = (uint8_t)__builtin_ctzll(rest);
    }
    for (uint32_t k = 0; k < pages && good; k++) {
        race_page *p = race_visit_page(&v, at + k * stride);
        bool done = p != NULL && read_chunks(&v, p, list, len);
        for (uint32_t n = 0; n < len && !done && good; n++) {
            run_of_lanes r = {.at = at + k * stride + list[n] * CHUNK, .bytes = CHUNK, .each = 1};
            good = touch_run(&v, &r);
        }
    }
    if (!good && !t->by->run->faulted) {
        race_report(&v, t->lane, v.base, CHUNK);
    }
    return good;
}
