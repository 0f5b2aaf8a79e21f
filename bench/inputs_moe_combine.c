/* inputs_moe_combine.c - experts' rows, which of them a token has, and what they weigh. Rows that
 * nobody has stay NaN. */
#include "bench/inputs_parts.h"
#include "bench/verify.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWN_ELEMENTS (INT64_C(1) << 22) /* of d; the rows of a larger one are these again */
#define FEW_TOKENS     64

/* A walk over all rows of d. */
typedef struct walk {
    int64_t at, step, rows;
} walk;

static walk walk_over(int64_t rows, uint64_t *state)
{
    walk w = {0, 1, rows};

    if (rows > 1) {
        w.at = (int64_t)random_below(state, (uint64_t)rows);
        w.step = 1 + (int64_t)random_below(state, (uint64_t)rows);
        while (integer_common_divisor(w.step, rows) != 1) {
            w.step++;
        }
    }
    return w;
}

static int32_t next_row(walk *w)
{
    const int64_t row = w->at;

    w->at = (w->at + w->step) % w->rows;
    return (int32_t)row;
}

static int32_t hostile(const hone_moe_combine *p, uint64_t *state)
{
    const int32_t odd[] = {-2, INT32_MIN, INT32_MAX, (int32_t)p->m};

    return odd[random_below(state, ARRAY_LEN(odd))];
}

/* Where sums are sampled and added to, every token has a row: else it cannot be told whether its y
 * was written. */
static bool must_have(const hone_moe_combine *p, int64_t entry)
{
    return p->accumulate && p->tokens > FEW_TOKENS && entry % p->topk == 0;
}

static int32_t choose(const hone_moe_combine *p, inputs_kind kind, int64_t entry, walk *w,
                      uint64_t *state)
{
    const bool some = random_below(state, 4) != 0;

    if (p->m == 0) {
        return -1;
    }
    switch (must_have(p, entry) ? INPUTS_NORMAL : kind) {
    case INPUTS_HOLES: /* every third token has none, the others most */
        return entry / p->topk % 3 == 1 || !some ? -1 : next_row(w);
    case INPUTS_EXTREMES:
        return (int32_t)(p->m - 1);
    case INPUTS_ZEROS:
        return -1;
    case INPUTS_SPECIALS:
        return some ? next_row(w) : random_below(state, 2) == 0 ? -1 : hostile(p, state);
    default:
        return next_row(w);
    }
}

static float weigh(inputs_kind kind, uint64_t *state)
{
    const float u = (float)random_unit(state);

    switch (kind) {
    case INPUTS_ONES:
        return 1.0f;
    case INPUTS_EXTREMES:
        return ldexpf(u - 0.5f, (int)random_below(state, 41) - 20);
    case INPUTS_SPECIALS:
        return random_below(state, 6) == 0 ? (u < 0.5f ? 0.0f : -0.0f) : u - 0.25f;
    default:
        return 0.05f + u;
    }
}

/* Rows of d by the seed, then the same again. */
static hone_status fill_rows(const hone_moe_combine *p, inputs_kind kind, uint64_t seed, inputs *in,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->in) / 8;
    const int64_t most = p->n > 0 ? DRAWN_ELEMENTS / p->n + 61 : 0;
    const int64_t rows = p->m < most ? p->m : most;
    const uint64_t row = (uint64_t)p->n * width;

    TRY(inputs_fill_plain((hone_dtype)p->in, (uint64_t)(rows * p->n), 32, kind, seed, in->image[0],
                          error));
    for (int64_t r = rows; r < p->m; r++) {
        memcpy(in->image[0] + (uint64_t)r * row, in->image[0] + (uint64_t)(r % rows) * row, row);
    }
done:
    return status;
}

hone_status inputs_fill_moe_combine(const hone_moe_combine *p, inputs_kind kind, uint64_t seed,
                                    inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    uint8_t *named = calloc(1, (size_t)p->m + 1);
    walk w = walk_over(p->m, &seed);
    const uint64_t row = p->m > 0 ? in->operand[0].bytes / (uint64_t)p->m : 0;
    const uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)p->out) / 8;

    if (named == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: which rows are named");
    }
    TRY(fill_rows(p, kind, seed + 1, in, error));
    if (p->accumulate) {
        TRY(inputs_fill_plain((hone_dtype)p->out, in->operand[4].bytes / width, 32, INPUTS_NORMAL,
                              seed + 2, in->image[4], error));
    }
    for (int64_t i = 0; i < p->tokens * p->topk; i++) {
        const int32_t place = choose(p, kind, i, &w, &seed);
        const float weight = weigh(kind, &seed);
        memcpy(in->image[1] + 4 * i, &place, sizeof place);
        memcpy(in->image[2] + 4 * i, &weight, sizeof weight);
        if (place >= 0 && place < p->m) {
            named[place] = 1;
        }
    }
    for (int64_t r = 0; r < p->m; r++) {
        if (!named[r]) {
            memset(in->image[0] + (uint64_t)r * row, VERIFY_POISON, row);
        }
    }
done:
    free(named);
    return status;
}
