// values.cu - read tokens out of a paged KV cache as bf16: code times scale in fp32, rounded once.
//
// A lane makes `pieces` pieces of eight elements, piece r of lane l being the row's piece
// r * lanes + l; codes come in wide loads and change lanes (device/kv_values.cuh). A tail of bf16
// is copied, one of e4m3 decoded. A row without a token is zeros; a row of no sequence is not
// written (device/kv_source.cuh). Domains, launch and page layouts: values.yaml.
#include "device/kv_source.cuh"
#include "device/kv_values.cuh"

struct Config {
    int dims, tile, tail; // elements under scales, that share one, of the rest
    bool e2m1;            // codes; else e4m3
    int scale;            // ScaleKind
    bool permuted;        // scale s is byte 8 * (s % 4) + s / 4
    bool tail_e4m3;
    bool table; // rows are told by pages of sequences; else by slots
    int align;  // bytes that operands, rows and pages are multiples of
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kThreads = C.dims / (8 * C.pieces); // of a token
    static constexpr int kWords = C.e2m1 ? 1 : 2;            // of a piece's codes
    static constexpr int kTailPieces = C.tail / 8;

    static_assert(kThreads * 8 * C.pieces == C.dims && kThreads % C.pieces == 0,
                  "pieces: a row is whole lanes of them, that swap codes");
    static_assert(C.pieces * kWords <= 4, "pieces: a lane's codes are one load");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(kTailPieces <= kThreads,
                  "pieces: a token has a thread for each piece of its tail");
};

// Eight e4m3 codes times a scale, rounded once.
__device__ __forceinline__ void e4m3x8_scaled(const u32 (&word)[2], float scale, u32 (&pair)[4])
{
    float x[4];
#pragma unroll
    for (int w = 0; w < 2; w++) {
        e4m3x4_to(word[w], x);
        pair[2 * w] = bf16x2_from(x[0] * scale, x[1] * scale);
        pair[2 * w + 1] = bf16x2_from(x[2] * scale, x[3] * scale);
    }
}

template <int Words>
__device__ __forceinline__ void scaled(const u32 (&word)[Words], float scale, u32 (&pair)[4])
{
    if constexpr (Words == 1) { // scales of e2m1 are bf16 too
        e2m1x8_scaled(word[0], half_twice<1>(__float_as_uint(scale)), pair);
    } else {
        e4m3x8_scaled(word, scale, pair);
    }
}

template <Config C> __device__ __forceinline__ float piece_scale(const u8 *scales, i32 element)
{
    const i32 tile = element / C.tile, at = C.permuted ? 8 * (tile % 4) + tile / 4 : tile;
    return scale_load<C.scale, C.align>(scales + at * scale_bytes(C.scale));
}

// Within a page, token t: codes at t * row_bytes, tail at tail_at + t * row_bytes, scales at
// scales_at + t * scales_row.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_gather_values(const u8 *__restrict__ cache, const void *__restrict__ index,
                     const i32 *__restrict__ starts, u8 *__restrict__ out,
                     u64 *__restrict__ dropped, const float *__restrict__ tensor, i64 tokens,
                     i64 sequences, i64 table_pages, i64 pages, i64 page_stride, i32 page_shift,
                     i32 row_bytes, i32 tail_at, i32 scales_at, i32 scales_row)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i64 row = i64(blockIdx.x) * C.tokens + threadIdx.x / W::kThreads;
    GatherSource from = {-1, 0, false};
    if (row < tokens) {
        const GatherIndex g = {index, starts, sequences, table_pages, pages};
        from = source_of<C.table>(g, row, page_shift, thread == 0, dropped);
    }
    const bool live = from.page >= 0;
    const u8 *const page = cache + from.page * page_stride, *const data =
                                                                page + from.within * row_bytes;
    float scale[C.pieces] = {};
    if (live) {
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            const i32 element = (r * W::kThreads + thread) * 8;
            if constexpr (C.scale == SCALE_ONE) {
                scale[r] = *tensor;
            } else {
                scale[r] = piece_scale<C>(page + scales_at + from.within * scales_row, element);
            }
        }
    }
    u32 word[C.pieces][W::kWords] = {};
    load_runs<C.align>(data, thread, W::kThreads, live, word);
    if (!from.written) {
        return; // only now: every lane has taken part in exchanges
    }
    u8 *const to = out + row * (C.dims + C.tail) * 2;
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        u32 pair[4];
        scaled(word[r], scale[r], pair);
        copy_bytes<16, C.align>(to + (r * W::kThreads + thread) * 16, pair);
    }
    if (thread < W::kTailPieces) {
        u32 pair[4] = {};
        u8 *const tail = to + C.dims * 2 + thread * 16;
        if constexpr (C.tail_e4m3) {
            u32 codes[2] = {};
            if (live) {
                copy_bytes<8, C.align>(codes, data + tail_at + thread * 8);
            }
            e4m3x8_scaled(codes, 1.0f, pair);
            copy_bytes<16, C.align>(tail, pair);
        } else {
            if (live) {
                copy_bytes<16, C.align>(pair, data + tail_at + thread * 16);
            }
            copy_bytes<16, C.align>(tail, pair);
        }
    }
}
