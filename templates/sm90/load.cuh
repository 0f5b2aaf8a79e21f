// load.cuh - the loading warpgroup of a Hopper product: operands by the copy engine, scales by
// threads, stage after stage.
#pragma once
#include "sm90/expert_maps.cuh"
#include "sm90/sorted.cuh"

// B's rows of a stage where they are gates and ups, which lie `jump` beyond: each warpgroup's
// halves.
template <Config C, int Bytes>
__device__ __forceinline__ void load_halves(u32 to, const TensorMap *map, u32 barrier, i32 k,
                                            i32 row, i32 jump, i32 matrix)
{
    using T = Tile<C>;
#pragma unroll
    for (int i = 0; i < (C.swap ? C.row_groups : C.column_groups); i++) {
        const u32 at = to + i * T::kSpan * Bytes;
        tensor_load(at, map, barrier, k, row + i * T::kHalf, matrix);
        tensor_load(at + T::kHalf * Bytes, map, barrier, k, row + i * T::kHalf + jump, matrix);
    }
}

// The operands of a piece of work, by one thread. `half`: of a cluster that shares loads, which
// this CTA is; `jump`: from gates to ups.
template <Config C>
__device__ __forceinline__ void load_work(Ring<C> &ring, const Work &w, const TensorMap *rows,
                                          const TensorMap *columns, i32 half, i32 jump)
{
    using T = Tile<C>;
    const i32 a_matrix = T::kGroupedK ? 0 : w.batch;
    const i32 of_rows = C.swap ? w.expert : a_matrix, of_columns = C.swap ? a_matrix : w.expert;
#pragma unroll 1
    for (i32 b = 0; b < w.blocks; b++, ring.advance()) {
        const u32 to_rows = ring.base + ring.stage * T::kRowBytes;
        const u32 to_columns = ring.base + T::kColumnsAt + ring.stage * T::kColumnBytes;
        const i32 k = (w.first + b) * 128;
        const i32 row_k = C.b_e2m1 ? k / 2 : k; // in bytes
        barrier_wait<C.pair != 0>(ring.empty(), ring.parity ^ 1);
        u32 landed = ring.full(); // of columns
        if constexpr (T::kSorted) {
            landed = ring.landed();
            barrier_arrive_expect(ring.full(), T::kRowBytes);
            barrier_arrive_expect(landed, T::kColumnBytes);
        } else {
            barrier_arrive_expect(ring.full(), T::kRowBytes + T::kColumnBytes);
        }
        if constexpr (T::kGated && C.swap) {
            load_halves<C, C.b_e2m1 ? 64 : 128>(to_rows, rows, ring.full(), row_k, w.row, jump,
                                                of_rows);
        } else if constexpr (C.pair == 2) {
            tensor_load_multicast(to_rows + half * (T::kRowBytes / 2), rows, ring.full(), 3, row_k,
                                  w.row + half * (T::kRows / 2), of_rows);
        } else {
            tensor_load(to_rows, rows, ring.full(), row_k, w.row, of_rows);
        }
        if constexpr (T::kGated && !C.swap) {
            load_halves<C, 128>(to_columns, columns, landed, k, w.column, jump, of_columns);
        } else if constexpr (C.pair == 1) {
            tensor_load_multicast(to_columns + half * (T::kColumnBytes / 2), columns, landed, 3, k,
                                  w.column + half * (T::kColumns / 2), of_columns);
        } else {
            tensor_load(to_columns, columns, landed, k, w.column, of_columns);
        }
    }
}

// One warp's lane has the engine load the operands of every stage.
template <Config C>
__device__ __forceinline__ void load_operands(Ring<C> ring, const Schedule<C> &schedule,
                                              const TensorMap *rows, const TensorMap *columns,
                                              i32 jump)
{
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        load_work<C>(ring, schedule.at(i), rows, columns, schedule.rank, jump);
    }
}

// The same where K is grouped: a whole warp, which makes an expert's maps before their first use.
template <Config C>
__device__ __forceinline__ void load_experts(Ring<C> ring, const Schedule<C> &schedule,
                                             ExpertMaps<C> maps)
{
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        maps.turn_to(w);
        if (threadIdx.x % 32 == 0) {
            load_work<C>(ring, w, maps.of(C.swap), maps.of(!C.swap), schedule.rank, 0);
        }
        __syncwarp();
    }
}

// Some warps bring one operand's scales of every stage, reading ahead.
template <Config C, ScaleShape S, int Threads, int At>
__device__ __forceinline__ void load_scales(Ring<C> ring, const Schedule<C> &schedule,
                                            const ScaleSource &source, u8 *shared, u32 thread)
{
    using T = Tile<C>;
    constexpr bool kRows = At == T::kRowScalesAt;
    // Words are few registers to hold and many to decode.
    using One = ScaleReads<S, Threads, 1>;
    constexpr int kAhead = One::kEach * One::kHeld >= (One::kWords ? 2 : 4) ? 1 : 2;
    ScaleReads<S, Threads, kAhead> reads;
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        const i32 matrix = kRows == C.swap ? w.expert : w.batch;
        reads.open(source, T::kGroupedK ? w.group : matrix, kRows ? w.row : w.column, thread);
        if constexpr (T::kGroupedK) {
            reads.groups = w.groups;
        }
#pragma unroll
        for (int a = 0; a < kAhead; a++) {
            reads.fetch(a, w.first + a);
        }
#pragma unroll 1 // registers are scarce here
        for (i32 from = 0; from < w.blocks; from += kAhead) {
#pragma unroll
            for (int a = 0; a < kAhead; a++) {
                if (from + a < w.blocks) {
                    const i32 block = w.first + from + a;
                    barrier_wait<C.pair != 0>(ring.empty(), ring.parity ^ 1);
                    u8 *to = shared + At + ring.stage * ScaleStage<S>::kBytes;
                    if constexpr (S.fold) {
                        reads.store_folded(to, a, block, thread);
                    } else {
                        reads.store(reinterpret_cast<float *>(to), a, thread);
                    }
                    if constexpr (T::kSorted && !kRows) {
                        reads.fetch(a, block + kAhead);
                        sort_columns<C, Threads>(ring, thread);
                    }
                    __syncwarp();
                    if (thread % 32 == 0) {
                        barrier_arrive(ring.full());
                    }
                    ring.advance();
                    if constexpr (!T::kSorted || kRows) {
                        reads.fetch(a, block + kAhead);
                    }
                }
            }
        }
    }
}
