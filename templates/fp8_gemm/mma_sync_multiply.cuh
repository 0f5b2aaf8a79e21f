// mma_sync_multiply.cuh - one K block of a warp's tile in shared memory: products, and their
// promotion to scaled fp32.
#pragma once
#include "fp8_gemm/mma_sync_tile.cuh"

// What a warp multiplies: its rows and columns in shared memory, and scales of this lane's first
// row and column.
struct BlockPlace {
    u32 rows, columns;
    const float *row_scales, *column_scales;
};

// Add a partial sum of 16 rows to fp32: a scale for rows lane/4 and lane/4 + 8 or for all, and for
// each column or matrix.
template <Config C>
__device__ __forceinline__ void add_scaled(float (&sum)[Tile<C>::kWide][4],
                                           const float (&part)[Tile<C>::kWide][4],
                                           const float *row_scales, const float *column_scales)
{
    const float low = row_scales[0], high = Tile<C>::kRowScales ? row_scales[8] : low;
#pragma unroll
    for (int j = 0; j < Tile<C>::kWide; j++) {
        float left, right;
        if constexpr (Tile<C>::kColumnScales) {
            const float2 pair = *reinterpret_cast<const float2 *>(column_scales + j * 8);
            left = pair.x, right = pair.y;
        } else {
            left = right = column_scales[j];
        }
        sum[j][0] = fmaf(low * left, part[j][0], sum[j][0]);
        sum[j][1] = fmaf(low * right, part[j][1], sum[j][1]);
        sum[j][2] = fmaf(high * left, part[j][2], sum[j][2]);
        sum[j][3] = fmaf(high * right, part[j][3], sum[j][3]);
    }
}

// One promotion interval, from K step `first` on. Either the columns' fragments of all its steps
// are kept while the rows pass, or the partial sums of all rows while the steps pass: whichever
// takes fewer registers.
template <Config C>
__device__ __forceinline__ void multiply_interval(Sums<C> &sum, const BlockPlace &at, int first)
{
    using T = Tile<C>;
    constexpr bool kKeepColumns = T::kSteps * 2 + 8 <= T::kHigh * 4;
    constexpr int kParts = kKeepColumns ? 1 : T::kHigh, kHeld = kKeepColumns ? T::kSteps : 1;
    u32 held[kHeld][T::kWide][2];
#pragma unroll
    for (int s = 0; kKeepColumns && s < T::kSteps; s++) {
        load_columns<C.block_k>(held[s], at.columns, first + s);
    }
#pragma unroll
    for (int i = 0; i < T::kHigh; i += kParts) {
        float part[kParts][T::kWide][4] = {};
#pragma unroll
        for (int s = 0; s < T::kSteps; s++) {
            if constexpr (!kKeepColumns) {
                load_columns<C.block_k>(held[0], at.columns, first + s);
            }
#pragma unroll
            for (int p = 0; p < kParts; p++) {
                multiply_step<C.block_k>(part[p], at.rows + (i + p) * 16 * C.block_k,
                                         held[kKeepColumns ? s : 0], first + s);
            }
        }
#pragma unroll
        for (int p = 0; p < kParts; p++) {
            add_scaled<C>(sum[i + p], part[p], at.row_scales + (i + p) * (T::kRowScales ? 16 : 1),
                          at.column_scales);
        }
    }
}

// A warp's intervals of one K block; `share` of warps_k is its.
template <Config C>
__device__ __forceinline__ void multiply_block(Sums<C> &sum, const BlockPlace &block, int share)
{
    using T = Tile<C>;
    constexpr int kLinesA = C.block_m, kLinesB = C.block_n / T::kStepB;
    constexpr int kRowLines = C.swap ? kLinesB : kLinesA, kColumnLines = C.swap ? kLinesA : kLinesB;
    constexpr int kRowGroup = C.swap ? C.b_gran_k : C.a_gran_k;
    constexpr int kColumnGroup = C.swap ? C.a_gran_k : C.b_gran_k;
    constexpr int kUnroll = T::kHigh * T::kWide <= 8 ? 4 : 1; // overlap where registers are free
#pragma unroll(kUnroll)
    for (int n = 0; n < T::kIntervals; n++) {
        const int interval = share * T::kIntervals + n;
        BlockPlace at = block;
        at.row_scales += interval * C.promote / kRowGroup * kRowLines;
        at.column_scales += interval * C.promote / kColumnGroup * kColumnLines;
        multiply_interval<C>(sum, at, interval * T::kSteps);
    }
}
