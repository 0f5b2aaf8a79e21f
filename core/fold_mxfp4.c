/* fold_mxfp4.c - see fold_mxfp4.h: the plain form, which the vectorised one and the kernel are held
 * to. */
#include "core/fold_mxfp4.h"

#include "core/numfmt.h"

#include <math.h>

/* Past these offsets every code saturates or vanishes, and floats would overflow. */
static int clamped(int offset)
{
    return offset < -40 ? -40 : offset > 40 ? 40 : offset;
}

uint8_t fold_mxfp4_code(uint8_t code, int offset)
{
    return numfmt_e4m3_encode(ldexpf(numfmt_e2m1_decode(code & 0xf), clamped(offset)));
}

bool fold_mxfp4_exact(uint8_t code, int offset)
{
    const float value = ldexpf(numfmt_e2m1_decode(code & 0xf), clamped(offset));

    return numfmt_e4m3_decode(numfmt_e4m3_encode(value)) == value;
}

uint8_t fold_mxfp4_scale(uint8_t largest)
{
    return largest > 6 ? (uint8_t)(largest - 6) : 0;
}

static uint8_t code_at(const uint8_t *codes, int element)
{
    return element % 2 == 0 ? codes[element / 2] & 0xf : codes[element / 2] >> 4;
}

static bool is_zero(const uint8_t *codes)
{
    for (int i = 0; i < FOLD_MXFP4_GROUP / 2; i++) {
        if ((codes[i] & 0x77) != 0) {
            return false;
        }
    }
    return true;
}

fold_mxfp4_result fold_mxfp4(const fold_mxfp4_block *b, uint8_t *out, uint64_t out_stride)
{
    fold_mxfp4_result result = {.scale = FOLD_MXFP4_EMPTY};
    int least = FOLD_MXFP4_NAN, largest = -1;

    for (uint64_t i = 0; i < b->rows * b->groups; i++) {
        const uint64_t row = i / b->groups, group = i % b->groups;
        const uint8_t e = b->scales[row * b->scales_stride + group];
        if (e != FOLD_MXFP4_NAN && !is_zero(b->codes + row * b->codes_stride + 16 * group)) {
            least = e < least ? e : least;
            largest = e > largest ? e : largest;
        }
    }
    if (largest >= 0) {
        result.scale = fold_mxfp4_scale((uint8_t)largest);
        result.spread = (uint8_t)(largest - least);
    }
    for (uint64_t i = 0; i < b->rows * b->groups; i++) {
        const uint64_t row = i / b->groups, group = i % b->groups;
        const uint8_t *codes = b->codes + row * b->codes_stride + 16 * group;
        const uint8_t e = b->scales[row * b->scales_stride + group];
        uint8_t *to = out + row * out_stride + FOLD_MXFP4_GROUP * group;
        result.nan_groups += e == FOLD_MXFP4_NAN;
        for (int k = 0; k < FOLD_MXFP4_GROUP; k++) {
            const uint8_t code = code_at(codes, k);
            const int offset = e - result.scale;
            to[k] = e == FOLD_MXFP4_NAN ? (uint8_t)(0x7f | (code & 8) << 4)
                                        : fold_mxfp4_code(code, offset);
            result.inexact += e != FOLD_MXFP4_NAN && !fold_mxfp4_exact(code, offset);
        }
    }
    return result;
}
