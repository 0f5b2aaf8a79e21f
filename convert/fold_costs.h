/* fold_costs.h - what rounding costs a value of a block of MXFP4 codes, by three rules.
 *
 * A value is a magnitude code c (0 to 7: 0, 0.5, 1, 1.5, 2, 3, 4, 6) times a power of two, so that
 * a block's errors follow from how many codes of each magnitude stand at each exponent. Figures are
 * squares in units of the power that the row counts from; they leave out float's own range. */
#ifndef HONE_CONVERT_FOLD_COSTS_H
#define HONE_CONVERT_FOLD_COSTS_H

#include <stdint.h>

enum {
    COSTS_CODES = 8,
    COSTS_LEAST = -24, /* below it nothing is left of a value */
    COSTS_MOST = 10,
    COSTS_OFFSETS = COSTS_MOST - COSTS_LEAST + 1,
};

typedef struct fold_costs {
    double square[COSTS_CODES]; /* of the magnitude itself */
    /* Under the scale 2^s: a code at exponent s + o loses this, in units of 4^s; [o - LEAST][c]. */
    double power[COSTS_OFFSETS][COSTS_CODES];
    uint32_t saturates[COSTS_OFFSETS][COSTS_CODES]; /* past 448 there: all ones; else 0 */
    /* Under the fp32 scale amax / 448, amax being code a at exponent e: a code at exponent e + o
     * loses this, in units of 4^e; [a][o - LEAST][c]. */
    double amax[COSTS_CODES][COSTS_OFFSETS][COSTS_CODES];
    /* The power of two that is nearest to amax / 448 (by its logarithm) is 2^(e + this). */
    int nearest[COSTS_CODES];
    double four[256];                             /* 4^(byte - 127) */
    uint8_t table[COSTS_OFFSETS][16];             /* e4m3 of each code at s + o */
    uint32_t inexact[COSTS_OFFSETS][COSTS_CODES]; /* that changes the value: all ones; else 0 */
} fold_costs;

/* Fill them in; some 40 KB, constant from then on. */
void fold_costs_make(fold_costs *costs);

/* The row of an offset: those beyond the ends behave as the ends do, when c is its own square's
 * loss (below) or cannot be (above: the fold has offsets up to 6). */
static inline int fold_costs_row(int offset)
{
    return offset < COSTS_LEAST  ? 0
           : offset > COSTS_MOST ? COSTS_OFFSETS - 1
                                 : offset - COSTS_LEAST;
}

#endif
