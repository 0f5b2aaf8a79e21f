/* inputs_moe_align.c - what a router may choose: balanced, skewed, all and none to one expert, of
 * other ranks, and what no router should. */
#include "bench/inputs_parts.h"
#include "bench/verify.h"

#include "core/random.h"

#include <string.h>

/* What is neither an expert nor -1; the upper half of the wide ones hides an expert's number. */
static int64_t hostile(const hone_moe_align *p, uint64_t *state)
{
    const int64_t narrow[] = {-2, INT32_MIN, INT32_MAX, p->experts, p->experts + 1, -p->experts};
    const int64_t wide[] = {INT64_MIN, INT64_MAX, INT64_C(1) << 32, (INT64_C(1) << 32) - 1,
                            -(INT64_C(1) << 32)};
    const bool far = p->ids == HONE_INDEX_I64 && random_below(state, 2) == 0;

    return far ? wide[random_below(state, ARRAY_LEN(wide))]
               : narrow[random_below(state, ARRAY_LEN(narrow))];
}

/* The smaller the number, the likelier: about as a power of it. */
static int64_t skewed(int64_t experts, uint64_t *state)
{
    const double u = random_unit(state);

    return (int64_t)((double)experts * u * u * u);
}

/* Entry j of a token. `only`: the expert that some kinds send everything to. */
static int64_t choose(const hone_moe_align *p, inputs_kind kind, int64_t j, int64_t only,
                      uint64_t *state)
{
    const int64_t experts = p->experts, any = (int64_t)random_below(state, (uint64_t)experts);

    switch (kind) {
    case INPUTS_HOLES: /* one expert alone, once a token; the rest is other ranks' */
        return j == any % p->topk ? only : -1;
    case INPUTS_EXTREMES: /* one expert owns everything, several times a token */
        return only;
    case INPUTS_WIDE:
        return skewed(experts, state);
    case INPUTS_TINY: /* the ends alone */
        return any % 2 == 0 ? 0 : experts - 1;
    case INPUTS_ZEROS:
        return -1;
    case INPUTS_ONES:
        return j % experts;
    case INPUTS_SPECIALS:
        return random_below(state, 3) == 0 ? hostile(p, state) : any;
    default: /* what is left of eight ranks' experts */
        return random_below(state, 8) == 0 ? any : -1;
    }
}

/* No written operand may keep a byte: a kind's poison is -1 or another number. */
static void poison(inputs_kind kind, inputs *in)
{
    const int other = 0x5a;

    for (size_t i = 1; i <= 4 && kind % 2 == 1; i++) {
        memset(in->image[i], other, in->operand[i].bytes);
    }
}

void inputs_fill_moe_align(const hone_moe_align *p, inputs_kind kind, uint64_t seed, inputs *in)
{
    const int64_t only = (int64_t)random_below(&seed, (uint64_t)p->experts);

    for (int64_t i = 0; i < p->tokens * p->topk; i++) {
        const int64_t id = choose(p, kind, i % p->topk, only, &seed);
        const int32_t narrow = (int32_t)id;
        if (p->ids == HONE_INDEX_I64) {
            memcpy(in->image[0] + 8 * i, &id, sizeof id);
        } else {
            memcpy(in->image[0] + 4 * i, &narrow, sizeof narrow);
        }
    }
    poison(kind, in);
}
