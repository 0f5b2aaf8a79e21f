// wgmma_output.cuh - what wgmma left in a warpgroup's registers, stored to D: straight from the
// registers, or staged in shared memory for the copy engine.
//
// Sums are tiles of eight columns, as wgmma.cuh says. Turned: they are of D transposed, rows along
// D's rows of memory.
#pragma once
#include "device/output.cuh"
#include "device/tensor_copy.cuh"

__device__ __forceinline__ void store_rounded(float *to, float x)
{
    *to = x;
}

__device__ __forceinline__ void store_rounded(bf16 *to, float x)
{
    to->bits = u16(bf16x2_from(x, 0.0f));
}

// One 64-row tile of sums, its first row and column at (row, column) of the transpose of D, of
// whose `rows` and n columns others are not stored. Eight lanes write neighbours.
template <bool Accumulate, int Tiles, typename T, typename Rows>
__device__ __forceinline__ void output_turned(const float (&sum)[Tiles][4], T *d, i64 stride,
                                              i32 row, i32 column, const Rows &rows, i32 n)
{
    const i32 lane = i32(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < Tiles; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i32 r = row + lane / 4 + i / 2 * 8, c = column + j * 8 + lane % 4 * 2 + i % 2;
            if (r < n && row_kept(rows, c)) {
                T *to = d + c * stride + r;
                store_rounded(to, sum[j][i] + (Accumulate ? to_float(*to) : 0.0f));
            }
        }
    }
}

// A warp's 8 x 8 matrix of 16-bit elements turned: a lane has two neighbours of row lane / 4.
__device__ __forceinline__ u32 turn_matrix(u32 x)
{
    u32 y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// The same as output_turned where D is bf16, its rows multiples of eight elements and stored as they
// are: turned in registers, four lanes write eight neighbours, each lane two for one look at its row.
template <int Tiles, typename Rows>
__device__ __forceinline__ void output_turned_pairs(const float (&sum)[Tiles][4], bf16 *d,
                                                    i64 stride, i32 row, i32 column,
                                                    const Rows &rows, i32 n)
{
    const i32 lane = i32(threadIdx.x) % 32;
#pragma unroll
    for (int j = 0; j < Tiles; j++) {
        const u32 left = turn_matrix(bf16x2_from(sum[j][0], sum[j][1]));
        const u32 right = turn_matrix(bf16x2_from(sum[j][2], sum[j][3]));
        const i32 c = column + j * 8 + lane / 4, r = row + lane % 4 * 2;
        if (row_kept(rows, c)) {
            u32 *to = reinterpret_cast<u32 *>(d + c * stride + r);
            if (r < n) {
                to[0] = left;
            }
            if (r + 8 < n) {
                to[4] = right;
            }
        }
    }
}

// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
template <bool Turned>
__device__ __forceinline__ void store_matrices(u32 at, u32 a, u32 b, u32 c, u32 d)
{
    if constexpr (Turned) {
        asm volatile(
            "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
            "r"(a), "r"(b), "r"(c), "r"(d)
            : "memory");
    } else {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                     "r"(a), "r"(b), "r"(c), "r"(d)
                     : "memory");
    }
}

__device__ __forceinline__ void shared_store(u32 at, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(x) : "memory");
}

__device__ __forceinline__ void shared_store(u32 at, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void shared_store4(u32 at, const float (&x)[4])
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
}

// A warpgroup's 64 x Wide sums in shared memory, as panels: boxes of D, swizzled by their width.
template <int Wide, bool Turned, bool F32> struct StagedTile {
    static constexpr int kSize = F32 ? 4 : 2;       // bytes of an element
    static constexpr int kRow = Turned ? 64 : Wide; // elements along D's rows
    static constexpr int kPanel = common_divisor(kRow, 128 / kSize), kPanels = kRow / kPanel;
    static constexpr int kSpan = kPanel * kSize;
    static constexpr int kPanelRows = Turned ? Wide : 64;
    static constexpr int kPanelBytes = kPanelRows * kSpan;
    static constexpr int kBytes = kPanels * kPanelBytes;

    // (row, column) of D within the tile
    static __device__ __forceinline__ u32 place(u32 to, u32 row, u32 column)
    {
        return to + column / kPanel * kPanelBytes + swizzled<kSpan>(row, column % kPanel * kSize);
    }

    // Sums of the columns from `first` on.
    template <int Tiles>
    static __device__ __forceinline__ void write(u32 to, const float (&sum)[Tiles][4], int first)
    {
        static_assert(Tiles % 2 == 0, "matrices are stored two by two");
        const u32 lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (int j = 0; j < Tiles; j += F32 ? 1 : 2) {
            const u32 column = first + j * 8;
            if constexpr (F32) {
#pragma unroll
                for (int i = 0; i < 4; i += 2) {
                    const u32 r = warp * 16 + lane / 4 + i * 4, c = column + lane % 4 * 2;
                    if constexpr (Turned) {
                        shared_store(place(to, c, r), sum[j][i]);
                        shared_store(place(to, c + 1, r), sum[j][i + 1]);
                    } else {
                        shared_store(place(to, r, c), sum[j][i], sum[j][i + 1]);
                    }
                }
            } else {
                // matrices: upper and lower rows of the left tile, then of the right one
                const u32 right = column + lane / 16 * 8, eight = lane % 8,
                          lower = lane / 8 % 2 * 8;
                const u32 at = Turned ? place(to, right + eight, warp * 16 + lower)
                                      : place(to, warp * 16 + lower + eight, right);
                store_matrices<Turned>(at, bf16x2_from(sum[j][0], sum[j][1]),
                                       bf16x2_from(sum[j][2], sum[j][3]),
                                       bf16x2_from(sum[j + 1][0], sum[j + 1][1]),
                                       bf16x2_from(sum[j + 1][2], sum[j + 1][3]));
            }
        }
    }

    // By one thread: all panels to D, or added to it. (m, n) is the tile's first element.
    template <bool Accumulate>
    static __device__ __forceinline__ void send(const TensorMap *d, u32 from, i32 m, i32 n,
                                                i32 batch)
    {
#pragma unroll
        for (int p = 0; p < kPanels; p++) {
            if constexpr (Accumulate) {
                tensor_add(d, from + p * kPanelBytes, n + p * kPanel, m, batch);
            } else {
                tensor_store(d, from + p * kPanelBytes, n + p * kPanel, m, batch);
            }
        }
    }
};
