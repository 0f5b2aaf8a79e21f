// nibbles.cuh - a multiplying warpgroup of a Hopper product whose rows are e2m1: their codes go
// from the stage to registers, become e4m3 there, and wgmma takes them from there.
//
// Eight codes of a row that lie side by side in K are a word, and a thread's share of 32 of K is
// one word of each of two rows: ldmatrix brings those of 128. Four bytes of e4m3 are a word's even
// codes and four the odd ones, and wgmma multiplies them by columns whose K the loading warps have
// put in that order (sorted.cuh).
#pragma once
#include "sm90/folded.cuh"

// A thread's words of a tile: of its upper and its lower row, for each 32 of K.
struct RowWords {
    u32 upper[4], lower[4];

    template <int Offset> static __device__ __forceinline__ void read(u32 (&to)[4], u32 at)
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4+%5];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(at), "n"(Offset)
                     : "memory");
    }

    // What wgmma takes of 32 of K.
    __device__ __forceinline__ void move(u32 (&a)[4], int step) const
    {
        e2m1x8_move(upper[step], a[0], a[2]);
        e2m1x8_move(lower[step], a[1], a[3]);
    }
};

// Where a lane finds what ldmatrix reads for it of the warp's first tile: a row of one of four
// matrices, which are 32 of K each.
template <Config C> __device__ __forceinline__ u32 words_at(const Multiplier<C> &m)
{
    const i32 warp = i32(threadIdx.x) % 128 / 32, lane = i32(threadIdx.x) % 32;
    return m.slot(Tile<C>::kRowBytes) + swizzled<64>(m.row + warp * 16 + lane % 8, lane / 8 * 16);
}

__device__ __forceinline__ RowWords words_of(u32 at, int tile)
{
    RowWords w;
    RowWords::read<0>(w.upper, at + tile * 64 * 64);
    RowWords::read<8 * 64>(w.lower, at + tile * 64 * 64);
    return w;
}

// Scales of a thread's columns.
template <Config C> struct Pairs {
    float of[C.chunk / 8][2];

    // Of columns from J on.
    template <int J = 0> __device__ __forceinline__ void load(u32 slot)
    {
        scales_load<Tile<C>::kColumnScalesAt + J * 32>(of[J], slot + threadIdx.x % 4 * 8);
        if constexpr (J + 1 < C.chunk / 8) {
            load<J + 1>(slot);
        }
    }

    // sum += row scale * column scale * part
    __device__ __forceinline__ void add(Part<C> &sum, const Part<C> &part, float upper,
                                        float lower) const
    {
#pragma unroll
        for (int j = 0; j < C.chunk / 8; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[j][i] = fmaf((i < 2 ? upper : lower) * of[j][i % 2], part[j][i], sum[j][i]);
            }
        }
    }
};

// A stage's products, unit by unit: some intervals of a tile, for a chunk of columns, are
// multiplied and waited for together. With two sets of sums unit u + 1 multiplies while unit u is
// added up, and its codes are moved while unit u multiplies. Nothing runs on over the end of the
// loop's body: where rows are registers ptxas then makes all wgmma wait (C7513).
template <Config C> struct Moved {
    using T = Tile<C>;
    static constexpr int kSteps = T::kInterval / 32, kAll = C.joint * kSteps; // of a unit
    static constexpr int kParts = 4 / kAll, kUnits = kParts * T::kChunks;     // of a tile
    // Few columns: their scales are read once a stage.
    static constexpr bool kKept = C.late ? C.chunk <= 32 : C.chunk <= 16;
    static constexpr int kGroups = T::ColumnScales::kGroups;
    static_assert(!kKept || T::kChunks == 1, "kept scales are those of one chunk");
    NibbleStage<C> now;
    u32 at; // of the lane's words
    RowWords words;
    RowScales<C> scales;
    Pairs<C> pairs[kGroups];
    Part<C> late[T::kChunks], part[C.sets][C.joint];
    u32 a[C.sets][kAll][4];

    // The codes of a unit of the stage.
    __device__ __forceinline__ void move(int unit)
    {
        const int tile = unit / kUnits, first = unit % kUnits / T::kChunks * kAll;
        if (unit % T::kChunks != 0) {
            return;
        }
        if (first == 0) {
            words = words_of(at, tile);
        }
#pragma unroll
        for (int s = 0; s < kAll; s++) {
            words.move(a[unit / T::kChunks % C.sets][s], first + s);
        }
    }

    static __device__ __forceinline__ void hold(Part<C> (&of)[C.joint])
    {
#pragma unroll
        for (int i = 0; i < C.joint; i++) {
            wgmma_hold(of[i]);
        }
    }

    __device__ __forceinline__ void start(int unit)
    {
        const int chunk = unit % T::kChunks, first = unit % kUnits / T::kChunks * kAll;
        const u32(&rows)[kAll][4] = a[unit / T::kChunks % C.sets];
        Part<C>(&to)[C.joint] = part[unit % C.sets];
        hold(to); // no read of what these were moves beyond the fence
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < kAll; s++) {
            if (s % kSteps == 0) {
                now.template multiply<false>(to[s / kSteps], rows[s], chunk, first + s);
            } else {
                now.template multiply<true>(to[s / kSteps], rows[s], chunk, first + s);
            }
        }
        wgmma_commit();
    }

    // A's scales for an interval of a chunk.
    __device__ __forceinline__ Pairs<C> &pairs_of(int step, int chunk)
    {
        if constexpr (kKept) {
            return pairs[step * kGroups / 4];
        }
        pairs[0].load(now.column_scales(step) + chunk * C.chunk * 4);
        return pairs[0];
    }

    // late += row scale * part, from nothing at a stage's first.
    __device__ __forceinline__ void gather(const Part<C> &from, int tile, int chunk, int step)
    {
        const int group = step * RowScales<C>::kGroups / 4;
#pragma unroll
        for (int j = 0; j < C.chunk / 8; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float scale = i < 2 ? scales.upper[tile][group] : scales.lower[tile][group];
                late[chunk][j][i] =
                    step == 0 ? scale * from[j][i] : fmaf(scale, from[j][i], late[chunk][j][i]);
            }
        }
    }

    __device__ __forceinline__ void add(Sums<C> &sum, int unit)
    {
        const int tile = unit / kUnits, chunk = unit % T::kChunks;
        const int first = unit % kUnits / T::kChunks * kAll;
        if (first == 0 && chunk == 0) {
            scales.template load_tile<T::kRowScalesAt>(now.row_slot, now.row, tile);
        }
#pragma unroll
        for (int i = 0; i < C.joint; i++) {
            const Part<C> &from = part[unit % C.sets][i];
            const int step = first + i * kSteps, group = step * RowScales<C>::kGroups / 4;
            if constexpr (C.late) {
                gather(from, tile, chunk, step);
            } else {
                pairs_of(step, chunk)
                    .add(sum[tile][chunk], from, scales.upper[tile][group],
                         scales.lower[tile][group]);
            }
        }
        if (C.late && first + kAll == 4) {
            pairs_of(0, chunk).add(sum[tile][chunk], late[chunk], 1.0f, 1.0f);
        }
    }

    __device__ __forceinline__ void wait(int unit)
    {
        wgmma_wait<0>();
        hold(part[unit % C.sets]);
    }

    __device__ __forceinline__ void all(Sums<C> &sum)
    {
        constexpr int kLast = T::kTiles * kUnits - 1;
        if constexpr (kKept) {
#pragma unroll
            for (int g = 0; g < kGroups; g++) {
                pairs[g].load(now.column_scales(g * 4 / kGroups));
            }
        }
        move(0);
        start(0);
#pragma unroll
        for (int u = 0; u <= kLast; u++) {
            if (C.sets == 2 && u < kLast) {
                move(u + 1);
            }
            wait(u);
            if (C.sets == 2 && u < kLast) {
                start(u + 1);
            }
            add(sum, u);
            if (C.sets == 1 && u < kLast) {
                move(u + 1);
                start(u + 1);
            }
        }
    }
};

// One tile of D. Codes that were moved are 2^6 times what was multiplied.
template <Config C>
__device__ __forceinline__ void nibbles_tile(Multiplier<C> &line, Sums<C> &sum, i32 blocks)
{
    using T = Tile<C>;
    const u32 positive = e2m1_positive();
    for (i32 b = 0; b < blocks; b++) {
        barrier_wait<false>(line.ring.full(), line.ring.parity);
        const NibbleStage<C> now = NibbleStage<C>::make(line);
        if constexpr (C.fold) {
            folded_stage<C>(now, Folded<C>::make(line, positive), sum);
        } else {
            Moved<C> products; // the rest is written before it is read
            products.now = now, products.at = words_at<C>(line);
            products.all(sum);
        }
        line.release(line.ring.empty());
        line.ring.advance();
    }
    if constexpr (!C.fold) {
#pragma unroll
        for (int i = 0; i < T::kTiles * T::kChunks; i++) {
#pragma unroll
            for (int j = 0; j < C.chunk / 2; j++) {
                sum[i / T::kChunks][i % T::kChunks][j / 4][j % 4] *= kMovedUnit;
            }
        }
    }
}
