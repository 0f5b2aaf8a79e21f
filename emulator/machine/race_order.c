/* race_order.c - how order flows among warps: barriers, fences, and words that one releases and
 * another acquires. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>

static race_state *state_of(const warp *w)
{
    return w->cta->cluster->races;
}

static race_clock *clock_at(run_state *run, race_clock **at)
{
    if (*at == NULL) {
        *at = calloc(1, sizeof **at);
        if (*at == NULL) {
            race_out_of_memory(run);
        }
    }
    return *at;
}

static void release(race_state *s, race_warp *r, race_clock **to)
{
    if (clock_at(s->run, to) != NULL && race_clock_join(s->run, *to, &r->clock)) {
        race_tick(s, r);
    }
}

/* What relaxed reads brought counts from here on. */
static void settle(race_state *s, race_warp *r)
{
    if (r->pending != NULL) {
        race_warp_learn(s, r, r->pending);
        race_clock_free(&r->pending);
    }
}

/* Barriers count as fences for relaxed accesses around them: the manual promises less, but kernels
 * that count finished blocks rely on it. */
void race_release(warp *w, race_clock **to)
{
    race_state *s = state_of(w);

    if (s != NULL) {
        settle(s, race_warp_of(s, w));
        release(s, race_warp_of(s, w), to);
    }
}

void race_acquire(warp *w, const race_clock *from)
{
    race_state *s = state_of(w);

    if (s != NULL && race_warp_learn(s, race_warp_of(s, w), from)) {
        settle(s, race_warp_of(s, w));
    }
}

void race_acquire_later(warp *w, const race_clock *from)
{
    race_state *s = state_of(w);
    race_warp *r = s != NULL ? race_warp_of(s, w) : NULL;

    if (s != NULL && from != NULL && clock_at(s->run, &r->pending) != NULL) {
        race_clock_join(s->run, r->pending, from);
    }
}

void race_warp_sync(warp *w, uint32_t mask)
{
    race_state *s = state_of(w);

    (void)mask; /* lanes that did not come are let off: there is one clock for the warp */
    if (s != NULL) {
        race_tick(s, race_warp_of(s, w));
    }
}

void race_fence_proxy(warp *w, bool shared, bool global)
{
    race_state *s = state_of(w);
    race_warp *r = s != NULL ? race_warp_of(s, w) : NULL;

    if (s == NULL || !race_clock_own(s, r) || (global && !race_clock_fence(s->run, &r->clock))) {
        return;
    }
    race_block *b = r->home; /* nobody else's shared memory is within reach */
    for (uint32_t n = 0; shared && n < b->len; n++) {
        b->times[RACE_FENCED_SHARED * b->len + n] = b->times[n];
    }
    race_tick(s, r);
}

void race_fence(warp *w, uint8_t order)
{
    race_state *s = state_of(w);
    race_warp *r = s != NULL ? race_warp_of(s, w) : NULL;

    if (s == NULL || !machine_checks(w, HONE_EMU_CHECK_RACES | HONE_EMU_CHECK_GLOBAL_RACES)) {
        return;
    }
    if ((order & ORDER_ACQUIRE) != 0) {
        settle(s, r);
    }
    if ((order & ORDER_RELEASE) != 0) {
        race_clock_free(&r->released);
        release(s, r, &r->released);
    }
}

void race_fence_init(warp *w)
{
    race_state *s = state_of(w);
    race_warp *r = s != NULL ? race_warp_of(s, w) : NULL;

    if (s != NULL && r->init != 0 && clock_at(s->run, &r->released) != NULL &&
        race_clock_know(s, r->released, r->init, r->home->times[r->init])) {
        race_tick(s, r); /* what it makes from here on is not told of */
    }
}

void race_release_fenced(warp *w, race_clock **to)
{
    race_state *s = state_of(w);
    const race_warp *r = s != NULL ? race_warp_of(s, w) : NULL;

    if (s != NULL && r->released != NULL && clock_at(s->run, to) != NULL) {
        race_clock_join(s->run, *to, r->released);
    }
}

/* One word: what strong accesses of it bring and take. */
static void order_word(warp *w, race_state *s, race_clock **word, uint8_t order, bool reads,
                       bool writes)
{
    race_warp *r = race_warp_of(s, w);

    if (reads && *word != NULL) {
        if ((order & ORDER_ACQUIRE) != 0) {
            race_warp_learn(s, r, *word);
        } else if (clock_at(s->run, &r->pending) != NULL) {
            race_clock_join(s->run, r->pending, *word);
        }
    }
    if (writes && (order & ORDER_RELEASE) != 0) {
        release(s, r, word);
    } else if (writes) {
        race_release_fenced(w, word);
    }
}

void race_order(warp *w, const instruction *i, cta *owner, const uint64_t at[MACHINE_LANES],
                uint32_t mask, bool reads, bool writes)
{
    race_state *s = state_of(w);
    uint64_t last = UINT64_MAX;

    if (s == NULL || (i->order & ORDER_STRONG) == 0) {
        return;
    }
    bool matters = writes && ((i->order & ORDER_RELEASE) != 0 || race_warp_of(s, w)->released);
    for (EACH_LANE(lane, mask)) {
        uint64_t word = at[lane] / 4;
        race_words *table = owner != NULL ? &s->words : &s->book->words;
        if (word == last || (!matters && table->len == 0)) {
            continue; /* nobody ever told anything here */
        }
        last = word;
        uint64_t key = owner != NULL ? (uint64_t)owner->rank << 32 | word : word;
        race_clock **clock = race_words_at(table, s->run, key);
        if (clock == NULL) {
            return;
        }
        order_word(w, s, clock, i->order, reads, writes);
    }
}
