/* fold_lanes.c - which variant of the fold this processor runs. */
#include "convert/fold_lanes_table.h"

extern const fold_lanes fold_lanes_baseline, fold_lanes_avx2, fold_lanes_avx512,
    fold_lanes_vnni;

const fold_lanes *fold_lanes_at(size_t index)
{
    const fold_lanes *found[4] = {&fold_lanes_baseline};
    size_t len = 1;

#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        found[len++] = &fold_lanes_avx2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        found[len++] = &fold_lanes_avx512;
        if (__builtin_cpu_supports("avx512vnni")) {
            found[len++] = &fold_lanes_vnni;
        }
    }
#endif
    return index < len ? found[index] : NULL;
}

const fold_lanes *fold_lanes_best(void)
{
    const fold_lanes *best = NULL;

    for (size_t i = 0; fold_lanes_at(i) != NULL; i++) {
        best = fold_lanes_at(i);
    }
    return best;
}

const char *fold_lanes_name(const fold_lanes *lanes)
{
    return lanes->name;
}

void fold_tile_run(const fold_tile *tile, const fold_lanes *lanes, const fold_costs *costs,
                   fold_sums *sums)
{
    lanes->run(tile, costs, sums);
}

void fold_sums_add(fold_sums *to, const fold_sums *more)
{
    to->blocks += more->blocks;
    to->exact += more->exact;
    to->wide += more->wide;
    to->elements += more->elements;
    to->inexact += more->inexact;
    to->nan_groups += more->nan_groups;
    to->saturated += more->saturated;
    to->square += more->square;
    to->inexact_square += more->inexact_square;
    to->fold += more->fold;
    to->amax += more->amax;
    to->nearest += more->nearest;
}
