/* reference_fold.c - what folding gives, by values: decode, divide, encode. */
#include "bench/reference.h"

#include "core/numfmt.h"

#include <math.h>

static uint8_t scale_of(const hone_fold *p, const inputs *in, int64_t row, int64_t group)
{
    return in->image[1][problem_scale_offset(p->m, p->k / p->group, (hone_dtype)p->scale,
                                             (hone_scale_layout)p->scale_layout, row, group)];
}

void reference_fold(const hone_fold *p, const inputs *in, int64_t row, int64_t block,
                    uint8_t *codes, uint8_t *scale, uint64_t *inexact)
{
    const int64_t first = block * p->out_group,
                  end = first + p->out_group < p->k ? first + p->out_group : p->k;
    uint8_t largest = 0;

    for (int64_t k = first; k < end; k += p->group) {
        const uint8_t own = scale_of(p, in, row, k / p->group);
        largest = own > largest ? own : largest;
    }
    for (int64_t k = first; k < end; k++) {
        const uint8_t code = in->image[0][row * p->k + k];
        const int down = scale_of(p, in, row, k / p->group) - largest;
        const float value = ldexpf(numfmt_e4m3_decode(code), down); /* exact: floats reach 2^-149 */
        const bool nan = isnan(value);
        codes[k - first] = nan ? code : numfmt_e4m3_encode(value);
        *inexact += !nan && (ldexp((double)numfmt_e4m3_decode(code), down) !=
                             (double)numfmt_e4m3_decode(codes[k - first]));
    }
    *scale = largest;
}
