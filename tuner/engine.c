/* engine.c - what holds for every engine. */
#include "tuner/engine.h"

#include <string.h>

hone_status engine_prove(const engine *e, const engine_trial *trial, const engine_answer *answer,
                         engine_result *out, hone_error *error)
{
    hone_status status = e->start(e->state, 0, trial, answer, error);

    return status == HONE_OK ? e->finish(e->state, 0, out, error) : status;
}

/* Texts that lie in `from` lie in `to` at the same place; static ones stay where they are. */
static const char *moved(const char *text, const engine_result *from, engine_result *to)
{
    const uintptr_t at = (uintptr_t)text, base = (uintptr_t)from;
    const bool inside = at >= base && at < base + sizeof *from;

    return inside ? (const char *)to + (at - base) : text;
}

void engine_result_copy(const engine_result *from, engine_result *to)
{
    memcpy(to, from, sizeof *to);
    to->row.reason = moved(from->row.reason, from, to);
    to->row.counters = moved(from->row.counters, from, to);
    to->row.bound = moved(from->row.bound, from, to);
    to->row.cache_mode = moved(from->row.cache_mode, from, to);
    to->row.tokens = moved(from->row.tokens, from, to);
    to->row.samples_ns = from->row.samples_ns != NULL ? to->samples_ns : NULL;
}
