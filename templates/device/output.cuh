// output.cuh - runs of fp32 results, rounded to the output's dtype and stored, or added to what is there.
#pragma once
#include "device/formats.cuh"
#include "device/vector.cuh"

template <int N>
__device__ __forceinline__ void pack_round(Pack<float, N> &pack, const float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        pack.v[i] = x[i];
    }
}

template <int N>
__device__ __forceinline__ void pack_round(Pack<bf16, N> &pack, const float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        *reinterpret_cast<u32 *>(&pack.v[i]) = bf16x2_from(x[i], x[i + 1]);
    }
}

// N elements at `to`, of which the first `present` lie within the row; at least one does. Where rows are aligned to
// whole runs, either all do or none.
template <int Align, bool Accumulate, int N, typename T>
__device__ __forceinline__ void output_run(T *to, float (&x)[N], i32 present)
{
    const bool whole = Align >= N * int(sizeof(T)) || present >= N;
    Pack<T, N> pack = {};
    if constexpr (Accumulate) {
        if (whole) {
            pack = pack_load<N, Align>(to);
        } else {
            pack.v[0] = to[0];
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            x[i] += to_float(pack.v[i]);
        }
    }
    pack_round(pack, x);
    if (whole) {
        constexpr int kAlign = Align < int(sizeof(T)) ? int(sizeof(T)) : Align;
        pack_store<kAlign>(to, pack);
        return;
    }
    static_assert(N <= 2 || Align >= N * int(sizeof(T)), "a run that may be cut has two elements");
    to[0] = pack.v[0];
}
