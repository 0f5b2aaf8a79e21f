/* race_clock.c - vector clocks: what agents know of one another, and of which writes they know that
 * a proxy fence lies behind them. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>
#include <string.h>

enum { ROUND = 16 };

void race_out_of_memory(run_state *run)
{
    machine_out_of_memory(run);
}

bool race_charge(race_book *b, run_state *run, uint64_t bytes)
{
    if (!race_may_charge(b, bytes)) {
        race_out_of_memory(run);
        return false;
    }
    return true;
}

static uint64_t bytes_of_block(uint32_t len)
{
    return sizeof(race_block) + RACE_PARTS * (uint64_t)len * sizeof(uint32_t);
}

static race_block *new_block(run_state *run, uint32_t number, uint32_t agents)
{
    uint32_t len = (agents + ROUND - 1) / ROUND * ROUND;
    race_block *b = NULL;

    if (!race_charge(run->races, run, bytes_of_block(len))) {
        return NULL;
    }
    b = calloc(1, bytes_of_block(len));
    if (b == NULL) {
        race_discharge(run->races, bytes_of_block(len));
        race_out_of_memory(run);
        return NULL;
    }
    b->book = run->races;
    b->refs = 1;
    b->cluster = number;
    b->len = len;
    return b;
}

static void drop_block(race_block *b)
{
    if (b != NULL && --b->refs == 0) {
        race_discharge(b->book, bytes_of_block(b->len));
        free(b);
    }
}

static void join_times(race_block *into, const race_block *from)
{
    for (uint32_t part = 0; part < RACE_PARTS; part++) {
        uint32_t *a = into->times + part * into->len;
        const uint32_t *b = from->times + part * from->len;
        for (uint32_t n = 0; n < from->len; n++) {
            a[n] = a[n] > b[n] ? a[n] : b[n];
        }
    }
}

static bool knows_all(const race_block *a, const race_block *b)
{
    uint32_t more = a->len < b->len;

    for (uint32_t part = 0; part < RACE_PARTS && more == 0; part++) {
        for (uint32_t n = 0; n < b->len; n++) {
            more |= b->times[part * b->len + n] > a->times[part * a->len + n];
        }
    }
    return more == 0;
}

/* A block of one's own, with room for `agents`. */
static race_block *copy_block(run_state *run, const race_block *from, uint32_t agents)
{
    race_block *b = new_block(run, from->cluster, agents > from->len ? agents : from->len);

    if (b != NULL) {
        join_times(b, from);
    }
    return b;
}

/* Make *at a block that may be changed and has room for `agents`. */
static bool own_block(run_state *run, race_block **at, uint32_t agents)
{
    if ((*at)->refs == 1 && (*at)->len >= agents) {
        return true;
    }
    race_block *mine = copy_block(run, *at, agents);
    if (mine == NULL) {
        return false;
    }
    drop_block(*at);
    *at = mine;
    return true;
}

static bool join_block(run_state *run, race_block **into, const race_block *from)
{
    if (*into == from || knows_all(*into, from)) {
        return true;
    }
    if (!own_block(run, into, from->len)) {
        return false;
    }
    join_times(*into, from);
    return true;
}

static bool insert_block(run_state *run, race_clock *c, uint32_t at, race_block *b)
{
    if (b == NULL) {
        return false;
    }
    if (c->len == c->capacity) {
        uint32_t more = c->capacity * 2 + 1;
        uint64_t added = (more - c->capacity) * sizeof(race_block *);
        bool good = race_charge(run->races, run, added);
        race_block **bigger = good ? realloc(c->blocks, more * sizeof(race_block *)) : NULL;
        if (bigger == NULL) {
            race_out_of_memory(run);
            race_discharge(run->races, good ? added : 0);
            drop_block(b);
            return false;
        }
        c->blocks = bigger;
        c->capacity = more;
    }
    memmove(c->blocks + at + 1, c->blocks + at, (c->len - at) * sizeof(race_block *));
    c->blocks[at] = b;
    c->len++;
    return true;
}

bool race_clock_join(run_state *run, race_clock *into, const race_clock *from)
{
    uint32_t at = 0;

    for (uint32_t n = 0; n < from->len; n++) {
        race_block *b = from->blocks[n];
        while (at < into->len && into->blocks[at]->cluster < b->cluster) {
            at++;
        }
        if (at < into->len && into->blocks[at]->cluster == b->cluster) {
            if (!join_block(run, &into->blocks[at], b)) {
                return false;
            }
        } else {
            b->refs++;
            if (!insert_block(run, into, at, b)) {
                return false;
            }
        }
    }
    return true;
}

bool race_clock_name(run_state *run, race_clock *c, uint32_t number)
{
    race_block *b = new_block(run, number, 1);

    if (b != NULL) {
        for (uint32_t part = 0; part < RACE_PARTS; part++) {
            b->times[part * b->len] = 1;
        }
    }
    return insert_block(run, c, 0, b);
}

const race_block *race_clock_find(const race_clock *c, uint32_t number)
{
    uint32_t low = 0, high = c->len;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (c->blocks[middle]->cluster < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < c->len && c->blocks[low]->cluster == number ? c->blocks[low] : NULL;
}

void race_clock_clear(race_clock *c)
{
    if (c->len > 0) { /* as it is where there is a list */
        race_discharge(c->blocks[0]->book, c->capacity * sizeof(race_block *));
    }
    for (uint32_t n = 0; n < c->len; n++) {
        drop_block(c->blocks[n]);
    }
    free(c->blocks);
    *c = (race_clock){0};
}

void race_clock_free(race_clock **c)
{
    if (*c != NULL) {
        race_clock_clear(*c);
        free(*c);
        *c = NULL;
    }
}

bool race_clock_fence(run_state *run, race_clock *c)
{
    for (uint32_t n = 0; n < c->len; n++) {
        race_block *b = c->blocks[n];
        uint64_t bytes = b->len * sizeof *b->times;
        if (memcmp(b->times, b->times + RACE_FENCED_GLOBAL * b->len, bytes) == 0) {
            continue;
        }
        if (!own_block(run, &c->blocks[n], b->len)) {
            return false;
        }
        b = c->blocks[n];
        memcpy(b->times + RACE_FENCED_GLOBAL * b->len, b->times, b->len * sizeof *b->times);
    }
    return true;
}

/* The warp's clock is about to change: its block must be its own, with room for all agents. */
bool race_clock_own(race_state *s, race_warp *w)
{
    race_view_drop(w->view);
    w->view = NULL;
    for (uint32_t n = 0; n < w->clock.len; n++) {
        race_block **at = &w->clock.blocks[n];
        if ((*at)->cluster == s->number) {
            bool good = own_block(s->run, at, s->agents_len);
            w->home = *at;
            return good;
        }
    }
    bool good = insert_block(s->run, &w->clock, 0, new_block(s->run, s->number, s->agents_len));
    w->home = good ? w->clock.blocks[0] : NULL;
    return good;
}

void race_tick(race_state *s, race_warp *w)
{
    if (race_clock_own(s, w)) {
        w->home->times[w->agent]++;
    }
}

bool race_warp_learn(race_state *s, race_warp *w, const race_clock *from)
{
    if (from == NULL) {
        return true;
    }
    race_view_drop(w->view);
    w->view = NULL;
    return race_clock_join(s->run, &w->clock, from) && race_clock_own(s, w);
}

bool race_warp_know(race_state *s, race_warp *w, uint32_t agent, uint32_t time)
{
    if (agent < w->home->len && w->home->times[agent] >= time) {
        return true;
    }
    if (!race_clock_own(s, w)) {
        return false;
    }
    w->home->times[agent] = time;
    return true;
}

race_view *race_view_take(run_state *run, race_warp *w)
{
    if (w->view == NULL) {
        if (!race_charge(run->races, run, sizeof *w->view)) {
            return NULL;
        }
        w->view = calloc(1, sizeof *w->view);
        if (w->view == NULL) {
            race_discharge(run->races, sizeof *w->view);
            race_out_of_memory(run);
            return NULL;
        }
        w->view->book = run->races;
        w->view->refs = 1;
        if (!race_clock_join(run, &w->view->clock, &w->clock)) {
            return NULL;
        }
    }
    w->view->refs++;
    return w->view;
}

void race_view_drop(race_view *v)
{
    if (v != NULL && --v->refs == 0) {
        race_clock_clear(&v->clock);
        race_discharge(v->book, sizeof *v);
        free(v);
    }
}

bool race_clock_know(race_state *s, race_clock *c, uint32_t agent, uint32_t time)
{
    uint32_t n = 0;

    while (n < c->len && c->blocks[n]->cluster < s->number) {
        n++;
    }
    bool there = n < c->len && c->blocks[n]->cluster == s->number;
    if (!(there ? own_block(s->run, &c->blocks[n], s->agents_len)
                : insert_block(s->run, c, n, new_block(s->run, s->number, s->agents_len)))) {
        return false;
    }
    uint32_t *known = &c->blocks[n]->times[agent];
    *known = *known > time ? *known : time;
    return true;
}

uint32_t race_agent_new(race_state *s, race_agent_kind kind, uint32_t index)
{
    uint32_t id = s->agents_len;

    if (id % 64 == 0 || s->agent_time == NULL) {
        uint32_t more = id / 64 * 64 + 64;
        uint32_t *times = realloc(s->agent_time, more * sizeof *times);
        s->agent_time = times != NULL ? times : s->agent_time;
        uint16_t *warps = realloc(s->agent_warp, more * sizeof *warps);
        s->agent_warp = warps != NULL ? warps : s->agent_warp;
        uint8_t *kinds = realloc(s->agent_kind, more);
        s->agent_kind = kinds != NULL ? kinds : s->agent_kind;
        if (times == NULL || warps == NULL || kinds == NULL) {
            race_out_of_memory(s->run);
            return 0;
        }
    }
    s->agent_time[id] = 0;
    s->agent_warp[id] = (uint16_t)index;
    s->agent_kind[id] = (uint8_t)kind;
    s->agents_len++;
    return id;
}
