/* race_report.c - what a race is told as: both accesses, their lines, and who made them. */
#include "emulator/machine/race_state.h"

#include <stdio.h>

/* "wgmma of warp 4 of CTA 0" */
static void name_agent(const race_visit *v, const race_record *r, char *text, size_t capacity)
{
    static const char *const forms[] = {
        [AGENT_WARP] = "warp %u of CTA %llu",
        [AGENT_COPY] = "cp.async of warp %u of CTA %llu",
        [AGENT_BULK] = "a bulk copy issued by warp %u of CTA %llu",
        [AGENT_MATRIX] = "wgmma of warp %u of CTA %llu",
        [AGENT_INIT] = "warp %u of CTA %llu",
    };
    const race_state *s = v->state;
    uint32_t rank = r->warp / s->per_cta, index = r->warp % s->per_cta;
    unsigned long long linear = v->book->linear[r->cluster * s->ctas_len + rank];

    snprintf(text, capacity, forms[r->agent_kind], index, linear);
}

void race_place(const warp *w, const cta *owner, uint64_t at, char *text, size_t capacity)
{
    unsigned long long offset = at;

    if (owner == NULL) {
        const memory_range *r = memory_find(w->run->launch->memory, at);
        snprintf(text, capacity, "offset %llu of a global allocation",
                 r != NULL ? offset - r->begin : offset);
    } else if (owner == w->cta) {
        snprintf(text, capacity, "shared offset %llu", offset);
    } else {
        snprintf(text, capacity, "shared offset %llu of CTA %llu", offset,
                 (unsigned long long)owner->linear);
    }
}

static const char *actor(const race_visit *v)
{
    static const char *const names[] = {
        [RACE_COPY] = "cp.async", [RACE_BULK] = "bulk copy", [RACE_MATRIX] = "wgmma"};
    return v->task != NULL ? names[v->task->engine] : "";
}

/* Which order was missing. */
static const char *missing(const race_visit *v, const race_record *r)
{
    bool same_cta =
        r->cluster == v->state->number && r->warp / v->state->per_cta == v->w->cta->rank;
    return v->between_lanes   ? "no bar.warp.sync between"
           : same_cta         ? "no barrier between"
           : v->owner == NULL ? "no release and acquire between"
                              : "no cluster barrier between";
}

void race_report(const race_visit *v, uint32_t lane, uint64_t at, uint32_t bytes)
{
    static const char *const verbs[] = {
        [RACE_READ] = "read", [RACE_WRITE] = "write", [RACE_ATOMIC] = "atomic"};
    const race_record *r = &v->book->records[v->against];
    int line = v->w->run->kernel->code[r->instruction].line;
    char who[96], where[96];

    race_place(v->w, v->owner, at, where, sizeof where);
    if (r->cluster == RACE_BEFORE) {
        machine_fault(v->w, v->i, lane, at, FAULT_RACE,
                      "%s%s%s of %u bytes at %s, which the launch before writes; no "
                      "griddepcontrol.wait before",
                      actor(v), v->task != NULL ? "'s " : "", verbs[v->kind], bytes, where);
        return;
    }
    name_agent(v, r, who, sizeof who);
    if (v->unfenced) {
        machine_fault(v->w, v->i, lane, at, FAULT_PROXY,
                      "%s reads %s that %s wrote at line %d; no fence.proxy.async lies between",
                      actor(v), where, who, line);
        return;
    }
    if (v->task == NULL && v->kind == RACE_READ && r->access == RACE_WRITE &&
        (r->agent_kind == AGENT_BULK || r->agent_kind == AGENT_COPY)) {
        machine_fault(
            v->w, v->i, lane, at, FAULT_ASYNC,
            "read of %u bytes at %s, which %s writes at line %d; the reader has not waited for it",
            bytes, where, who, line);
        return;
    }
    if (v->between_lanes) {
        snprintf(who, sizeof who, "another lane of the warp");
    }
    machine_fault(v->w, v->i, lane, at, FAULT_RACE,
                  "%s%s%s of %u bytes at %s races with %s %s at line %d by %s (%s)", actor(v),
                  v->task != NULL ? "'s " : "", verbs[v->kind], bytes, where,
                  r->access == RACE_ATOMIC ? "an" : "a", verbs[r->access], line, who,
                  missing(v, r));
}
