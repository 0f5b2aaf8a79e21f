// blocks.cu - q, scale = quantise(w [n, k]) in blocks: e4m3 codes, and one scale for each 1, 32 or
// 128 rows by 32 or 128 of K.
//
// A block is `lanes x row_threads` threads, each of which holds `vec` elements of some of its rows;
// w is read once and q written once. Blocks at the right and lower edge are smaller. Scales go to
// their final layout, its padding included (1.0). NaN and infinite elements become NaN, make no
// scale and are counted. Codes and scales equal core/numfmt.h's, byte for byte. Domains and launch:
// blocks.yaml.
#include "device/quantise.cuh"
#include "device/scale_layout.cuh"

struct Config {
    int in, gran_n, gran_k, rule;
    bool ue8m0, packed; // scales
    int align;          // bytes that operands and rows are multiples of
    int vec;            // elements of a thread and row
    int row_threads;    // threads along the rows of a block
    int blocks;         // of a CTA, along k
};

template <Config C> struct Work {
    using Element = typename ElementOf<C.in>::Type;
    static constexpr int kPiece = least(C.vec, 16 / int(sizeof(Element)));
    static constexpr int kLanes = C.gran_k / C.vec;
    static constexpr int kThreads = kLanes * C.row_threads; // of a block
    static constexpr int kAll = kThreads * C.blocks;        // of a CTA
    static constexpr int kRows = C.gran_n / C.row_threads;  // of a thread
    static constexpr int kOfRow = C.vec / kPiece; // pieces
    static constexpr int kPieces = kRows * kOfRow;
    static constexpr bool kHalves = kLanes == 2 && kOfRow % 2 == 0; // of a row, to be stored whole
    using Piece = Words<Element, kPiece>;

    static_assert(kPiece % 4 == 0 && C.vec % kPiece == 0, "vec: codes are made four at a time");
    static_assert(is_pow2(kThreads) && kLanes >= 1 && kRows >= 1, "a block's threads: 2^i");
    static_assert(kAll % 32 == 0 && kAll <= 1024, "threads: whole warps, at most 1024");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");
};

// Elements [column, column + N) of a row, those below `end`; the others stay 0.
template <int Align, typename T, int N>
__device__ __forceinline__ void load_below(Words<T, N> &to, const T *row, i64 column, i64 end)
{
    if (column + N <= end) {
        constexpr int kAlign = Align < int(sizeof(T)) ? int(sizeof(T)) : Align;
        copy_bytes<Words<T, N>::kBytes, kAlign>(to.word, row + column);
        return;
    }
    Pack<T, N> pack = {};
    for (int i = 0; i < N && column + i < end; i++) {
        pack.v[i] = row[column + i];
    }
    copy_bytes<Words<T, N>::kBytes, 4>(to.word, pack.v);
}

template <int Align, int Words>
__device__ __forceinline__ void store_below(u8 *row, i64 column, i64 end, const u32 (&codes)[Words])
{
    if (column + 4 * Words <= end) {
        copy_bytes<4 * Words, Align>(row + column, codes);
        return;
    }
    for (int i = 0; i < 4 * Words && column + i < end; i++) {
        row[column + i] = u8(codes[i / 4] >> (8 * (i % 4)));
    }
}

// A row of a block of two lanes, whose pieces they hold in turn: each gets one half of it, so that
// stores fill sectors.
template <int Pieces, int Words>
__device__ __forceinline__ void join_halves(const u32 (&own)[Pieces][Words],
                                            u32 (&half)[Pieces * Words])
{
    const bool second = threadIdx.x % 2 == 1;
#pragma unroll
    for (int i = 0; i < Pieces / 2 * Words; i++) {
        const u32 left = own[i / Words][i % Words], right = own[Pieces / 2 + i / Words][i % Words];
        const u32 got = __shfl_xor_sync(0xffffffffu, second ? left : right, 1);
        const int at = 2 * (i / Words) * Words + i % Words;
        half[at] = second ? got : left;
        half[at + Words] = second ? right : got;
    }
}

// The maximum over the threads of a block, in all of them. Every thread of the CTA takes part.
template <Config C> __device__ __forceinline__ u32 block_max(u32 own)
{
    using W = Work<C>;
    own = lanes_max<least(W::kThreads, 32)>(own);
    if constexpr (W::kThreads > 32) {
        __shared__ u32 warps[W::kAll / 32];
        if (threadIdx.x % 32 == 0) {
            warps[threadIdx.x / 32] = own;
        }
        __syncthreads();
        const u32 first = threadIdx.x / W::kThreads * (W::kThreads / 32);
#pragma unroll
        for (int i = 0; i < W::kThreads / 32; i++) {
            own = max(own, warps[first + i]);
        }
    }
    return own;
}

// One piece of a thread: where it lies, and what becomes of it.
template <Config C> struct Place {
    using W = Work<C>;
    i64 row, column;

    __device__ __forceinline__ Place(i64 block_row, i64 group, int piece)
    {
        const i32 thread = i32(threadIdx.x % W::kThreads);
        const int of_row = piece % (C.vec / W::kPiece), pass = piece / (C.vec / W::kPiece);
        row = block_row * C.gran_n + pass * C.row_threads + thread / W::kLanes;
        column = group * C.gran_k + (of_row * W::kLanes + thread % W::kLanes) * W::kPiece;
    }
};

// The largest finite magnitude of a thread's pieces, and how many elements are not finite: few
// threads ever have one.
template <Config C>
__device__ __forceinline__ u32 own_max(const typename Work<C>::Piece (&in)[Work<C>::kPieces],
                                       u32 &special)
{
    using W = Work<C>;
    u32 own = 0;
#pragma unroll
    for (int p = 0; p < W::kPieces; p++) {
        own = max(own, in[p].largest());
    }
    if (own >= kInfinityBits) {
        own = 0;
#pragma unroll
        for (int p = 0; p < W::kPieces; p++) {
            float x[W::kPiece];
            in[p].floats(x);
            own = max(own, finite_bits(x));
            special += special_count(x);
        }
    }
    return own;
}

// row_blocks x groups blocks; scales are written for rows_padded x groups_padded. Scale strides:
// device/scale_layout.cuh.
template <Config C>
__global__ void __launch_bounds__(Work<C>::kAll)
    weight_quant_blocks(const typename Work<C>::Element *__restrict__ w, u8 *__restrict__ q,
                        void *__restrict__ scale, u64 *__restrict__ special, i64 n, i64 k,
                        i64 row_blocks, i64 groups, i64 rows_padded, i64 groups_padded,
                        i64 scale_row, i64 scale_group)
{
    using W = Work<C>;
    const i64 block_row = blockIdx.x;
    const i64 group = i64(blockIdx.y) * C.blocks + threadIdx.x / W::kThreads;
    const bool valid = block_row < row_blocks && group < groups;

    typename W::Piece in[W::kPieces] = {};
#pragma unroll
    for (int p = 0; p < W::kPieces; p++) {
        const Place<C> at(block_row, group, p);
        if (valid && at.row < n) {
            load_below<C.align>(in[p], w + at.row * k, at.column, k);
        }
    }
    u32 specials = 0;
    const float s = group_scale<C.rule>(__uint_as_float(block_max<C>(own_max<C>(in, specials))));
#pragma unroll
    for (int first = 0; first < W::kPieces; first += W::kOfRow) {
        u32 code[W::kOfRow][W::kPiece / 4];
#pragma unroll
        for (int p = 0; p < W::kOfRow; p++) {
            float y[W::kPiece];
            in[first + p].template divided<C.rule>(y, s, specials == 0);
            store_codes<4>(reinterpret_cast<u8 *>(code[p]), y);
        }
        const Place<C> at(block_row, group, first);
        if constexpr (W::kHalves) {
            u32 half[C.vec / 4];
            join_halves(code, half);
            if (valid && at.row < n) {
                const i64 column = group * C.gran_k + threadIdx.x % 2 * C.vec;
                store_below<C.align>(q + at.row * k, column, k, half);
            }
        } else if (valid && at.row < n) {
#pragma unroll
            for (int p = 0; p < W::kOfRow; p++) {
                const Place<C> piece(block_row, group, first + p);
                store_below<C.align>(q + at.row * k, piece.column, k, code[p]);
            }
        }
    }
    if (specials > 0) {
        atomicAdd(special, u64(specials));
    }
    if (threadIdx.x % W::kThreads == 0 && block_row < rows_padded && group < groups_padded) {
        const i64 at = scale_offset<C.packed>(block_row, group, scale_row, scale_group);
        store_scale<C.ue8m0>(scale, at, valid ? s : 1.0f);
    }
}
