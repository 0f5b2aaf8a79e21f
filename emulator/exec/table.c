/* table.c - which variant of the lane handlers this processor runs. */
#include "emulator/exec/exec.h"

const exec_row *exec_table(size_t *len)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return exec_table_avx512(len);
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        return exec_table_avx2(len);
    }
#endif
    return exec_table_baseline(len);
}
