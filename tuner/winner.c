/* winner.c - choose among times that are in hand. */
#include "tuner/winner.h"

#include "cache/store.h"

#include <math.h>
#include <string.h>

/* bench.md 2.4: practically equal, and the gains that a change must bring. */
static const double equal_gain = 0.005, anchor_gain = 0.01, incumbent_gain = 0.02;

/* How much faster `a` is than `b`, as a log ratio. */
static double gain(const winner_entry *a, const winner_entry *b)
{
    return log(b->time_ns / a->time_ns);
}

/* Whether `a` comes before `b` among equals. */
static bool preferred(const winner_entry *a, const winner_entry *b)
{
    if (a->incumbent != b->incumbent) {
        return a->incumbent;
    }
    if (a->anchor != b->anchor) {
        return a->anchor;
    }
    if (a->registers != b->registers) {
        return a->registers < b->registers;
    }
    if (a->shared_bytes != b->shared_bytes) {
        return a->shared_bytes < b->shared_bytes;
    }
    int names = strcmp(a->template_name, b->template_name);
    return (names != 0 ? names : strcmp(a->config, b->config)) < 0;
}

static size_t fastest(const winner_entry *entries, size_t len)
{
    size_t best = 0;

    for (size_t i = 1; i < len; i++) {
        best = entries[i].time_ns < entries[best].time_ns ? i : best;
    }
    return best;
}

/* The entry that a change from is not worth its gain, or `pick` itself. */
static size_t keep(const winner_entry *entries, size_t len, size_t pick, int32_t *verdict)
{
    for (size_t i = 0; i < len; i++) {
        if (entries[i].incumbent && i != pick &&
            gain(&entries[pick], &entries[i]) < incumbent_gain) {
            *verdict = STORE_VERDICT_TIE;
            return i;
        }
    }
    for (size_t i = 0; i < len; i++) {
        if (entries[i].anchor && i != pick && !entries[pick].incumbent &&
            gain(&entries[pick], &entries[i]) < anchor_gain) {
            *verdict = STORE_VERDICT_DEFAULT;
            return i;
        }
    }
    return pick;
}

hone_status winner_choose(const winner_entry *entries, size_t len, size_t *index, int32_t *verdict,
                          hone_error *error)
{
    if (len == 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "no proved candidate to choose from");
    }
    size_t best = fastest(entries, len), pick = best;
    int32_t found = STORE_VERDICT_CLEAR;
    for (size_t i = 0; i < len; i++) {
        if (i == best || gain(&entries[best], &entries[i]) > equal_gain) {
            continue;
        }
        found = STORE_VERDICT_TIE;
        pick = preferred(&entries[i], &entries[pick]) ? i : pick;
    }
    *index = keep(entries, len, pick, &found);
    *verdict = found;
    return HONE_OK;
}
