/* space_order.c - which parameters of a space are bound first, and which last. */
#include "templates/space_parts.h"

/* At most this many evaluations to see whether a parameter may come last. */
#define ORDER_TRIES 4096u

uint32_t space_order_first(const space *s, const space_set domains[])
{
    uint32_t single = 0;

    for (uint32_t p = 0; p < s->m->params_len; p++) {
        single |= (uint32_t)(space_set_len(&domains[p]) == 1) << p;
    }
    return single;
}

/* The one other parameter that p's checks read, all of them rules; -1 when there are more, or none.
 */
static int partner_of(const space *s, uint32_t p)
{
    uint32_t others = 0;

    for (uint32_t c = 0; c < s->checks_len; c++) {
        const space_check *check = &s->checks[c];
        if ((check->params >> p & 1) == 0 || __builtin_popcount(check->params) == 1) {
            continue;
        }
        others |= check->params & ~(1u << p);
        if (check->launch != NULL || check->lets != 0) {
            return -1;
        }
    }
    return __builtin_popcount(others) == 1 ? __builtin_ctz(others) : -1;
}

/* Whether value v of p goes with the value of its partner that is set. What faults does not. */
static bool goes(space *s, uint32_t p, uint32_t v, manifest_values *values)
{
    bool holds = true;

    values->slot[MANIFEST_SLOT_PARAM + p] = s->m->params[p].values[v];
    for (uint32_t c = 0; c < s->checks_len && holds; c++) {
        if ((s->checks[c].params >> p & 1) != 0 && __builtin_popcount(s->checks[c].params) == 2) {
            holds = space_check_now(s, c, values, &holds, NULL) == HONE_OK && holds;
        }
    }
    return holds;
}

/* Whether each value of q leaves one of p. */
static bool leaves_all(space *s, uint32_t p, uint32_t q, const space_set domains[])
{
    manifest_values values = s->base;
    bool any = true;

    if (space_set_len(&domains[p]) * space_set_len(&domains[q]) > ORDER_TRIES) {
        return false;
    }
    for (space_set left = domains[q]; !space_set_empty(&left) && any;
         space_set_drop(&left, space_set_first(&left))) {
        values.slot[MANIFEST_SLOT_PARAM + q] = s->m->params[q].values[space_set_first(&left)];
        any = false;
        for (space_set own = domains[p]; !space_set_empty(&own) && !any;
             space_set_drop(&own, space_set_first(&own))) {
            any = goes(s, p, space_set_first(&own), &values);
        }
    }
    return any;
}

uint32_t space_order_last(space *s, const space_set domains[])
{
    uint32_t last = 0;

    for (uint32_t p = 0; p < s->m->params_len; p++) {
        const int q = space_set_len(&domains[p]) > 1 ? partner_of(s, p) : -1;
        if (q >= 0 && (last >> q & 1) == 0 && leaves_all(s, p, (uint32_t)q, domains)) {
            last |= 1u << p;
        }
    }
    return last;
}

uint32_t space_order_ready(const space *s, uint32_t last, uint32_t bound)
{
    uint32_t ready = 0;

    for (uint32_t left = last & ~bound; left != 0; left &= left - 1) {
        const uint32_t p = (uint32_t)__builtin_ctz(left);
        const int q = partner_of(s, p);
        bool all = (bound >> q & 1) != 0;
        for (uint32_t c = 0; c < s->checks_len && all; c++) {
            const uint32_t params = s->checks[c].params;
            all = (params >> q & 1) == 0 || (params & ~bound & ~last) == 0;
        }
        ready |= (uint32_t)all << p;
    }
    return ready;
}
