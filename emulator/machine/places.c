/* places.c - where the warps of a cluster stand that cannot go on, or do not end: all of it as a
 * list, and as much as fits in the fault's message. */
#include "emulator/machine/machine.h"
#include "emulator/machine/mbarrier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a warp waits for, and where. */
static void describe(const warp *w, char *text, size_t capacity)
{
    uint32_t lane = machine_lowest(w->blocked != 0 ? w->blocked : w->live), id = 0;
    const instruction *i = warp_stands_at(w, lane);

    while (id < MACHINE_WAITS && (w->waits[id] >> lane & 1) == 0) {
        id++;
    }
    const mbarrier *b = w->polls > 0 ? mbarrier_at(w->cta, w->polled_at) : NULL;
    if (w->blocked == 0 && b != NULL) {
        char state[80];
        mbarrier_describe(b, state, sizeof state);
        snprintf(text, capacity, "line %d %s", w->polling->line, state);
    } else if (w->blocked == 0) {
        snprintf(text, capacity, "line %d", i->line);
    } else if (id == MACHINE_WAIT_REGISTERS) {
        snprintf(text, capacity, "line %d %u registers (%u free)", i->line,
                 (w->wants - w->registers) * MACHINE_LANES, w->cta->registers_free * MACHINE_LANES);
    } else if (id == MACHINE_WAIT_WGMMA) {
        snprintf(text, capacity, "line %d the other warps of its warpgroup", i->line);
    } else if (id == MACHINE_WAIT_CLUSTER) {
        snprintf(text, capacity, "line %d the cluster's barrier (%u of %u)", i->line,
                 w->cta->cluster->arrived, w->cta->cluster->live);
    } else {
        char rest[40] = ""; /* of the warp itself */
        if (w->arrived[id] != 0) {
            snprintf(rest, sizeof rest, ", without lanes %08x", w->live & ~w->arrived[id]);
        }
        snprintf(text, capacity, "line %d barrier %u (%u of %u%s)", i->line, id,
                 w->cta->barriers[id].arrived, barrier_expects(w->cta, id), rest);
    }
}

/* `message` takes places until one does not fit; `beyond` counts the warps from there on. */
typedef struct report {
    char message[sizeof((hone_emu_fault *)0)->message];
    size_t used;
    uint32_t beyond;
    FILE *list; /* NULL: no memory for it */
    warp *first;
} report;

/* Warps [from, end) of a CTA stand at `place`. */
static void add(report *r, const cta *t, uint32_t from, uint32_t end, const char *place)
{
    enum { ROOM = 30 }; /* for what is said of those that do not fit */
    char who[64] = "", last[16] = "", text[240];

    if (end - from > 1) {
        snprintf(last, sizeof last, "-%u", end - 1);
    }
    if (t->cluster->ctas_len > 1) {
        snprintf(who, sizeof who, "CTA %u of the cluster, ", t->rank);
    }
    int len = snprintf(text, sizeof text, "%swarp %u%s %s", who, from, last, place);
    if (r->list != NULL) {
        fprintf(r->list, "%s\n", text);
    }
    if (r->beyond == 0 && r->used + (size_t)len + ROOM < sizeof r->message) {
        r->used += (size_t)sprintf(r->message + r->used, " %s;", text);
    } else {
        r->beyond += end - from;
    }
}

/* Warps of a CTA one after the other that stand at the same place are named together. */
static void add_cta(report *r, cta *t)
{
    char now[160] = "", next[160] = "";
    uint32_t from = 0;

    for (uint32_t n = 0; n <= t->warps_len; n++) {
        next[0] = '\0';
        if (n < t->warps_len && t->warps[n].state != WARP_DONE) {
            r->first = r->first != NULL ? r->first : &t->warps[n];
            describe(&t->warps[n], next, sizeof next);
        }
        if (n > 0 && strcmp(now, next) == 0) {
            continue;
        }
        if (now[0] != '\0') {
            add(r, t, from, n, now);
        }
        from = n;
        memcpy(now, next, sizeof now);
    }
}

static void report_places(cluster *c, machine_fault_kind kind, const char *what)
{
    char *list = NULL;
    size_t len = 0;
    report r = {.list = open_memstream(&list, &len)};

    r.used = (size_t)snprintf(r.message, sizeof r.message, "%s:", what);
    for (uint32_t n = 0; n < c->ctas_len; n++) {
        add_cta(&r, &c->ctas[n]);
    }
    if (r.beyond > 0) {
        snprintf(r.message + r.used, sizeof r.message - r.used, " and %u more warps", r.beyond);
    }
    if (r.list != NULL && fclose(r.list) != 0) {
        free(list);
        list = NULL;
    }
    if (r.first == NULL || c->run->faulted) {
        free(list);
        return;
    }
    const warp *w = r.first;
    uint32_t lane = machine_lowest(w->blocked ? w->blocked : w->live);
    bool polls = w->blocked == 0 && w->polls > 0;
    c->run->places = list;
    machine_fault(r.first, polls ? w->polling : warp_stands_at(w, lane), lane, 0, kind, "%s",
                  r.message);
}

void cluster_report_deadlock(cluster *c)
{
    report_places(c, FAULT_DEADLOCK, "no warp can go on");
}

void cluster_report_hang(cluster *c)
{
    report_places(c, FAULT_HANG,
                  "past the instruction budget; a loop does not end, or waits for a CTA that runs "
                  "later");
}
