/* race.c - accesses and order, as handlers tell of them. The rule itself is in race_shadow.c. */
#include "emulator/machine/race_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- One cluster after another ------------------------------------------------------------- */

static bool looks(const run_state *run)
{
    return (run->launch->checks &
            (HONE_EMU_CHECK_PROXY | HONE_EMU_CHECK_RACES | HONE_EMU_CHECK_GLOBAL_RACES)) != 0;
}

/* Of what a cluster has for itself, whatever it does. */
static uint64_t bytes_of(const race_state *s)
{
    return sizeof *s + s->warps_len * sizeof *s->warps +
           (uint64_t)s->ctas_len * s->shared_pages * sizeof *s->shared;
}

hone_status race_open(cluster *c, hone_error *error)
{
    hone_status status = HONE_NO_MEMORY;
    race_state *s = NULL;

    if (!looks(c->run)) {
        return HONE_OK;
    }
    if (c->run->races == NULL) {
        c->run->races = race_book_open(c->run);
    }
    s = c->run->races != NULL ? calloc(1, sizeof *s) : NULL;
    if (s == NULL) {
        goto done;
    }
    s->book = c->run->races;
    s->run = c->run;
    s->cluster = c;
    s->ctas_len = c->ctas_len;
    s->per_cta = c->ctas[0].warps_len;
    s->warps_len = s->ctas_len * s->per_cta;
    s->shared_pages = (c->ctas[0].shared_bytes + RACE_PAGE - 1) / RACE_PAGE;
    if (!race_may_charge(s->book, bytes_of(s))) {
        free(s);
        goto done;
    }
    s->warps = calloc(s->warps_len, sizeof *s->warps);
    s->shared = calloc((size_t)s->ctas_len * s->shared_pages + 1, sizeof *s->shared);
    s->next = s->book->states;
    s->book->states = s;
    c->races = s;
    status = s->warps != NULL && s->shared != NULL ? HONE_OK : HONE_NO_MEMORY;
done:
    return status == HONE_OK
               ? HONE_OK
               : status_set(error, HONE_NO_MEMORY, c->run->kernel->name, 0, "the race detector");
}

static void forget_warp(race_warp *w)
{
    race_view_drop(w->view);
    race_clock_clear(&w->clock);
    race_clock_free(&w->released);
    race_clock_free(&w->pending);
    *w = (race_warp){0};
}

static void forget(race_state *s)
{
    for (uint32_t n = 0; s->warps != NULL && n < s->warps_len; n++) {
        forget_warp(&s->warps[n]);
    }
    for (uint32_t n = 0; s->shared != NULL && n < s->ctas_len * s->shared_pages; n++) {
        race_page *p = &s->shared[n];
        if (p->write != NULL && p->shift == 2) { /* lanes are not looked at where nobody was */
            race_page_level(p, 0, 0);
        } else {
            race_page_free(s->book, p);
        }
    }
    race_words_clear(s->book, &s->words);
    s->agents_len = 0;
}

/* Numbers a cluster, and remembers which CTAs it is. */
static bool number_cluster(race_state *s)
{
    race_book *b = s->book;
    uint32_t end = (b->clusters + 1) * s->ctas_len;

    if (end > b->linear_capacity) {
        uint64_t *bigger = realloc(b->linear, (size_t)end * 2 * sizeof *bigger);
        if (bigger == NULL) {
            race_out_of_memory(s->run);
            return false;
        }
        b->linear = bigger;
        b->linear_capacity = end * 2;
    }
    s->number = b->clusters++;
    for (uint32_t n = 0; n < s->ctas_len; n++) {
        b->linear[s->number * s->ctas_len + n] = s->cluster->ctas[n].linear;
    }
    return true;
}

/* With nothing but this cluster's shared memory to remember, the book begins anew. */
static void restart_book(race_state *s)
{
    race_book *b = s->book;

    if (s->next == NULL && b->states == s && b->global.len == 0) {
        b->records_len = RACE_PREVIOUS + 1;
        b->sets_len = 1;
        b->members_len = 0;
        b->clusters = 0;
        b->generation++;
        memset(b->moves, 0, sizeof b->moves);
    }
}

void race_begin(cluster *c)
{
    race_state *s = c->races;

    if (s == NULL) {
        return;
    }
    forget(s);
    restart_book(s);
    if (!number_cluster(s)) {
        return;
    }
    for (uint32_t n = 0; n < s->warps_len; n++) {
        s->warps[n].agent = race_agent_new(s, AGENT_WARP, n);
    }
    for (uint32_t n = 0; n < s->warps_len && !s->run->faulted; n++) {
        if (race_clock_own(s, &s->warps[n])) {
            s->warps[n].home->times[s->warps[n].agent] = 1;
        }
    }
}

void race_close(cluster *c)
{
    race_state *s = c->races;

    if (s == NULL) {
        return;
    }
    forget(s);
    for (race_state **at = &s->book->states; *at != NULL; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    for (uint32_t n = 0; s->shared != NULL && n < s->ctas_len * s->shared_pages; n++) {
        race_page_free(s->book, &s->shared[n]);
    }
    race_discharge(s->book, bytes_of(s));
    free(s->shared);
    free(s->warps);
    free(s->agent_time);
    free(s->agent_warp);
    free(s->agent_kind);
    free(s);
    c->races = NULL;
}

void race_end(run_state *run)
{
    race_book *b = run->races;

    if (b == NULL) {
        return;
    }
    race_page_forget_global(b);
    race_words_clear(b, &b->words);
    free(b->records);
    free(b->sets);
    free(b->members);
    free(b->linear);
    purse_close(&b->purse);
    free(b);
    run->races = NULL;
}
