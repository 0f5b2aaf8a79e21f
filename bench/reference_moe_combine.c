/* reference_moe_combine.c - a token's sum over its rows: exactly, and step by step in fp32. */
#include "bench/reference.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

void reference_moe_combine(const hone_moe_combine *p, const inputs *in, int64_t token,
                           int64_t column, double *value, double *magnitude, float *steps)
{
    const uint64_t at = (uint64_t)(token * p->n + column);
    const float before = p->accumulate ? numfmt_decode((hone_dtype)p->out, in->image[4], at) : 0.0f;

    *value = before;
    *magnitude = fabs((double)before);
    *steps = before;
    for (int64_t i = token * p->topk; i < (token + 1) * p->topk; i++) {
        int32_t place = 0;
        float weight = 0.0f;
        memcpy(&place, in->image[1] + 4 * i, sizeof place);
        memcpy(&weight, in->image[2] + 4 * i, sizeof weight);
        if (place >= 0 && place < p->m) {
            const float x =
                numfmt_decode((hone_dtype)p->in, in->image[0], (uint64_t)(place * p->n + column));
            *value += (double)weight * (double)x;
            *magnitude += fabs((double)weight * (double)x);
            *steps = fmaf(weight, x, *steps);
        }
    }
}

uint64_t reference_moe_combine_dropped(const hone_moe_combine *p, const inputs *in)
{
    uint64_t dropped = 0;

    for (int64_t i = 0; i < p->tokens * p->topk; i++) {
        int32_t place = 0;
        memcpy(&place, in->image[1] + 4 * i, sizeof place);
        dropped += place < -1 || place >= p->m;
    }
    return dropped;
}
