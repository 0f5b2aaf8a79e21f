/* inputs_scales.c - scales to be packed, and the sizes of experts. */
#include "bench/inputs_parts.h"

#include "core/random.h"

#include <math.h>
#include <string.h>

/* What has no ue8m0 code, and what just has one. */
static const float corners[] = {0.0f,       -0.0f,    -1.0f,      0.3f,      1.5f,
                                0x1p-127f,  0x1p127f, 0x1p-128f,  0x1p-149f, 0x1.8p-127f,
                                0x1.fp127f, INFINITY, -INFINITY,  NAN,       0x1.000002p0f,
                                0x1p-126f,  1.0f,     1.0f / 448, -0x1p-127f};

/* Of four groups that follow one another one is `good`: a word of nothing but NaN would look like
 * poison, which nobody wrote over. */
static float draw(inputs_kind kind, bool good, uint64_t *state)
{
    const int within = (int)random_below(state, 41);

    switch (kind) {
    case INPUTS_SPECIALS:
        return within < 20 && !good ? corners[random_below(state, ARRAY_LEN(corners))]
                                    : ldexpf(1.0f, within - 40);
    case INPUTS_WIDE:
        return ldexpf(1.0f, within - 20);
    case INPUTS_EXTREMES:
        return ldexpf(1.0f, within % 2 == 0 ? -127 + within % 3 : 127 - within % 3);
    case INPUTS_TINY:
        return ldexpf(1.0f, within - 120);
    case INPUTS_ZEROS:
        return 0.0f;
    case INPUTS_ONES:
        return 1.0f;
    default:
        return ldexpf(1.0f, within % 8 - 12);
    }
}

/* All groups among the experts, the last group of some not whole. Holes are experts without any, at
 * both ends too; specials ask for more than there is, and for less than nothing. */
static void fill_sizes(const hone_scale_pack *p, inputs_kind kind, uint64_t *state, uint8_t *image)
{
    int64_t left = p->groups;

    for (int32_t e = 0; e < p->experts; e++) {
        const bool last = e + 1 == p->experts;
        const bool hole = kind == INPUTS_HOLES && (e % 3 == 0 || last);
        const uint64_t share = 2 * (uint64_t)left / (uint64_t)(p->experts - e) + 1;
        int64_t groups = last ? left : (int64_t)random_below(state, share);
        groups = hole ? 0 : groups > left ? left : groups;
        left -= groups;
        groups += kind == INPUTS_SPECIALS && last ? 3 : 0;
        int32_t k = (int32_t)(groups * p->gran_k);
        k -= k > 0 ? (int32_t)random_below(state, (uint64_t)p->gran_k) : 0;
        k = kind == INPUTS_SPECIALS && e == 1 && !last ? -7 : k;
        memcpy(image + 4 * e, &k, sizeof k);
    }
}

void inputs_fill_scale_pack(const hone_scale_pack *p, inputs_kind kind, uint64_t seed, inputs *in)
{
    const uint64_t rows = (uint64_t)p->rows, groups = (uint64_t)p->groups;

    for (uint64_t i = 0; i < in->operand[0].bytes / 4; i++) {
        const uint64_t group = p->experts > 0 ? i / rows : i % groups;
        const float scale = draw(kind, group % 4 == 1, &seed);
        memcpy(in->image[0] + 4 * i, &scale, sizeof scale);
    }
    fill_sizes(p, kind, &seed, in->image[2]);
}
