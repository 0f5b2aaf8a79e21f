/* quantise.c - the one quantiser: a group's scale, and its payload made with that very scale. */
#include "core/numfmt.h"

#include <float.h>
#include <math.h>

/* The floors that the serving stacks put under amax or under the scale. */
#define AMAX_FLOOR  1e-4f
#define SCALE_FLOOR 1e-4f

/* Between these lie scales that are stored as e4m3. */
#define E4M3_LEAST   0x1p-9f
#define E4M3_LARGEST 448.0f

static float largest_of(hone_dtype element)
{
    return element == HONE_DTYPE_E2M1 ? 6.0f : 448.0f;
}

static float pow2_from(float scale)
{
    return numfmt_ue8m0_decode(numfmt_ue8m0_ceil(scale));
}

/* A scale that is stored as e4m3: the nearest, or the least that is not below. */
static float e4m3_from(float scale, bool up)
{
    const float bounded = fminf(fmaxf(scale, E4M3_LEAST), E4M3_LARGEST);
    uint8_t code = numfmt_e4m3_encode(bounded);

    if (up && numfmt_e4m3_decode(code) < bounded) {
        code++;
    }
    return numfmt_e4m3_decode(code);
}

float numfmt_scale(float amax, hone_scale_rule rule, hone_dtype element)
{
    const float largest = largest_of(element);

    switch (rule) {
    case HONE_RULE_POW2_AMAX:
        return pow2_from(fmaxf(amax, AMAX_FLOOR) / largest);
    case HONE_RULE_RAW_AMAX:
        return fmaxf(amax, AMAX_FLOOR) / largest;
    case HONE_RULE_POW2_SCALE:
        return pow2_from(fmaxf(amax / largest, SCALE_FLOOR));
    case HONE_RULE_RAW_TINY:
        return fmaxf(amax / largest, FLT_MIN);
    case HONE_RULE_POW2_TINY:
        return pow2_from(fmaxf(amax, largest * FLT_MIN) / largest);
    case HONE_RULE_E4M3_NEAR:
    case HONE_RULE_E4M3_UP:
        return e4m3_from(amax / largest, rule == HONE_RULE_E4M3_UP);
    case HONE_RULE_TENSOR:
    case HONE_RULE_UNSCALED:
        break; /* not made of a group */
    }
    return NAN;
}

/* e2m1 has no NaN of its own: its scale is one for the whole group. */
static float spoil(uint8_t *payload, size_t len, uint8_t *scale_code)
{
    memset(payload, 0, (len + 1) / 2);
    if (scale_code != NULL) {
        *scale_code = 0xff;
    }
    return NAN;
}

float numfmt_quantise(const float *x, size_t len, hone_scale_rule rule, hone_dtype element,
                      uint8_t *payload, uint8_t *scale_code)
{
    float amax = 0;
    bool finite = true;

    for (size_t i = 0; i < len; i++) {
        float magnitude = fabsf(x[i]);
        finite = finite && isfinite(magnitude);
        if (isfinite(magnitude) && magnitude > amax) {
            amax = magnitude;
        }
    }
    if (!finite && element == HONE_DTYPE_E2M1) {
        return spoil(payload, len, scale_code);
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
