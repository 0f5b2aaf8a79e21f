/* requantise_tile.c - see requantise_tile.h. The loops are requantise_block.h's. */
#include "convert/requantise_tile.h"

#include "convert/fold_lanes_table.h"
#include "core/numfmt.h"

void requantise_sums_add(requantise_sums *to, const requantise_sums *more)
{
    to->blocks += more->blocks;
    to->exact += more->exact;
    to->elements += more->elements;
    to->inexact += more->inexact;
    to->saturated += more->saturated;
    to->nan_codes += more->nan_codes;
    to->bad_scales += more->bad_scales;
    to->square += more->square;
    to->error += more->error;
}

/* The floors are floats' own: those that serving stacks put under the amax of what they quantise
 * (1e-4, kernels.md 5.2) would make zeros of the values of a block of small scales, which are as
 * exact as any. */
float requantise_scale(float amax, plan_rule rule)
{
    if (rule == PLAN_AMAX) {
        return numfmt_scale(amax, HONE_RULE_RAW_TINY, HONE_DTYPE_E4M3);
    }
    const float above = numfmt_scale(amax, HONE_RULE_POW2_TINY, HONE_DTYPE_E4M3);
    if (rule == PLAN_CEIL) {
        return above;
    }
    /* Nearest by the logarithm: the power below where amax / 448 is under 2^-0.5 of that above. */
    const double raw = (double)numfmt_scale(amax, HONE_RULE_RAW_TINY, HONE_DTYPE_E4M3);
    return raw * raw < 0.5 * (double)above * (double)above ? above / 2 : above;
}

void requantise_tile_run(const requantise_tile *tile, const fold_lanes *lanes,
                         requantise_sums *sums)
{
    lanes->requantise(tile, sums);
}
