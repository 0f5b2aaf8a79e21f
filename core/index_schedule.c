/* index_schedule.c - the schedule's metadata by one pass over requests and SMs. */
#include "core/index_schedule.h"

#include "core/integer.h"

static int64_t splits_of(const index_schedule *s, int64_t request)
{
    const int32_t length = s->lengths[request * s->stride];

    return length > 0 ? integer_ceil_div(length, s->split) : 0;
}

int64_t index_schedule_total(const index_schedule *s)
{
    int64_t total = 0;

    for (int64_t b = 0; b < s->batch; b++) {
        total += splits_of(s, b) * s->atoms;
    }
    return total;
}

/* The request that has unit `unit` of all of them, from where the one before stood; *first becomes
 * the number of its first unit. batch: past the end. */
static int64_t advance(const index_schedule *s, int64_t request, int64_t unit, int64_t *first)
{
    while (request < s->batch && *first + splits_of(s, request) * s->atoms <= unit) {
        *first += splits_of(s, request) * s->atoms;
        request++;
    }
    return request;
}

static void put(int32_t *meta, int32_t sm, int64_t row, int64_t split)
{
    meta[2 * sm] = (int32_t)row;
    meta[2 * sm + 1] = (int32_t)split;
}

void index_schedule_atom_first(const index_schedule *s, int32_t *meta)
{
    const int64_t total = index_schedule_total(s), each = total / s->sms, more = total % s->sms;
    int64_t request = 0, first = 0;

    for (int32_t sm = 0; sm < s->sms; sm++) {
        const int64_t pivot = s->sms - more, unit = sm * each + (sm > pivot ? sm - pivot : 0);
        request = advance(s, request, unit, &first);
        if (request == s->batch) { /* nothing is left for it */
            put(meta, sm, request * s->atoms, 0);
        } else {
            const int64_t within = unit - first, splits = splits_of(s, request);
            put(meta, sm, request * s->atoms + within / splits, within % splits);
        }
    }
    put(meta, s->sms, s->batch * s->atoms, 0);
}

void index_schedule_split_first(const index_schedule *s, int32_t *meta)
{
    const int64_t total = index_schedule_total(s), each = total / s->sms, more = total % s->sms;
    int64_t request = 0, first = 0;

    for (int32_t sm = 0; sm <= s->sms; sm++) {
        const int64_t unit = sm * each + (sm < more ? sm : more);
        request = advance(s, request, unit, &first);
        put(meta, sm, request * s->atoms, request == s->batch ? 0 : (unit - first) / s->atoms);
    }
}
