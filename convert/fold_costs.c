/* fold_costs.c - see fold_costs.h: every case worked out with the one encoder. */
#include "convert/fold_costs.h"

#include "core/fold_mxfp4.h"
#include "core/numfmt.h"

#include <math.h>

static double square(double x)
{
    return x * x;
}

static void make_powers(fold_costs *costs)
{
    for (int row = 0; row < COSTS_OFFSETS; row++) {
        const int offset = row + COSTS_LEAST;
        for (uint8_t code = 0; code < 16; code++) {
            const float value = ldexpf(numfmt_e2m1_decode(code), offset);
            costs->table[row][code] = fold_mxfp4_code(code, offset);
            if (code < COSTS_CODES) {
                const float got = numfmt_e4m3_decode(costs->table[row][code]);
                costs->power[row][code] = square((double)got - (double)value);
                costs->saturates[row][code] = value > 448 ? UINT32_MAX : 0;
                costs->inexact[row][code] = got != value ? UINT32_MAX : 0;
            }
        }
    }
}

static void make_amax(fold_costs *costs, uint8_t largest)
{
    const float amax = numfmt_e2m1_decode(largest), scale = amax / 448.0f;

    costs->nearest[largest] = (int)lround(log2((double)amax / 448));
    for (int row = 0; row < COSTS_OFFSETS; row++) {
        for (uint8_t code = 0; code < COSTS_CODES; code++) {
            const float value = ldexpf(numfmt_e2m1_decode(code), row + COSTS_LEAST);
            const float got = numfmt_e4m3_decode(numfmt_e4m3_encode(value / scale));
            costs->amax[largest][row][code] = square((double)got * (double)scale - (double)value);
        }
    }
}

void fold_costs_make(fold_costs *costs)
{
    *costs = (fold_costs){0};
    make_powers(costs);
    for (uint8_t code = 0; code < COSTS_CODES; code++) {
        costs->square[code] = square((double)numfmt_e2m1_decode(code));
        if (code > 0) {
            make_amax(costs, code);
        }
    }
    for (int byte = 0; byte < 256; byte++) {
        costs->four[byte] = ldexp(1, 2 * (byte - 127));
    }
}
