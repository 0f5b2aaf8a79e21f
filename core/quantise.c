/* quantise.c - the one quantiser: a group's scale, and its payload made with that very scale. */
#include "core/numfmt.h"

#include <float.h>
#include <math.h>

/* The floors that the serving stacks put under amax or under the scale. */
#define AMAX_FLOOR  1e-4f
#define SCALE_FLOOR 1e-4f

static float largest_of(hone_dtype element)
{
    return element == HONE_DTYPE_E2M1 ? 6.0f : 448.0f;
}

float numfmt_scale(float amax, hone_scale_rule rule, hone_dtype element)
{
    const float largest = largest_of(element);

    switch (rule) {
    case HONE_RULE_POW2_AMAX:
        return numfmt_ue8m0_decode(numfmt_ue8m0_ceil(fmaxf(amax, AMAX_FLOOR) / largest));
    case HONE_RULE_RAW_AMAX:
        return fmaxf(amax, AMAX_FLOOR) / largest;
    case HONE_RULE_POW2_SCALE:
        return numfmt_ue8m0_decode(numfmt_ue8m0_ceil(fmaxf(amax / largest, SCALE_FLOOR)));
    case HONE_RULE_RAW_TINY:
        return fmaxf(amax / largest, FLT_MIN);
    }
    return NAN;
}

float numfmt_quantise(const float *x, size_t len, hone_scale_rule rule, hone_dtype element,
                      uint8_t *payload, uint8_t *scale_code)
{
    float amax = 0;

    for (size_t i = 0; i < len; i++) {
        float magnitude = fabsf(x[i]);
        if (isfinite(magnitude) && magnitude > amax) {
            amax = magnitude;
        }
    }
    float scale = numfmt_scale(amax, rule, element);
    for (size_t i = 0; i < len; i++) { /* an infinite element is not the largest number */
        numfmt_encode(element, payload, i, isinf(x[i]) ? NAN : x[i] / scale);
    }
    if (scale_code != NULL && !numfmt_ue8m0_exact(scale, scale_code)) {
        *scale_code = 0xff; /* NaN rather than another scale */
    }
    return scale;
}
