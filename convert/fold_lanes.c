/* fold_lanes.c - which variant of the fold's inner loops this processor runs. */
#include "convert/fold_lanes_table.h"

extern const fold_lanes fold_lanes_baseline, fold_lanes_avx2, fold_lanes_avx512;

const fold_lanes *fold_lanes_at(size_t index)
{
    const fold_lanes *found[3] = {&fold_lanes_baseline};
    size_t len = 1;

#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        found[len++] = &fold_lanes_avx2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
        found[len++] = &fold_lanes_avx512;
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
