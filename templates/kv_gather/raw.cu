// raw.cu - read tokens out of a paged KV cache as they are: data and tail into rows of `out`,
// scales into rows of `scales`. Also the values of caches of bf16.
//
// A lane moves `pieces` pieces of 16 bytes. A row without a token is zeros; a row of no sequence is
// not written (device/kv_source.cuh). Domains, launch and page layouts: raw.yaml.
#include "device/kv_source.cuh"
#include "device/vector.cuh"

struct Config {
    int bytes;  // of a token without its scales
    int head;   // of them before what lies between them in the cache
    int scales; // bytes of a token's scales
    bool table; // rows are told by pages of sequences; else by slots
    int align;  // bytes that operands, rows and pages are multiples of
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kThreads = C.bytes / (16 * C.pieces); // of a token
    static constexpr int kScalePiece = C.scales > 0 ? least(C.scales, 16) : 4;
    static constexpr int kScalePieces = C.scales / kScalePiece;

    static_assert(kThreads * 16 * C.pieces == C.bytes, "pieces: a token is whole lanes of them");
    static_assert(C.head % 16 == 0, "head: whole pieces");
    static_assert(kScalePieces <= kThreads,
                  "pieces: a token has a thread for each piece of scales");
    static_assert(C.tokens * kThreads <= 1024, "tokens: at most 1024 threads");
};

// Within a page, token t: data at t * row_bytes, what follows the head `gap` bytes further, scales
// at scales_at + t * scales_row.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_gather_raw(const u8 *__restrict__ cache, const void *__restrict__ index,
                  const i32 *__restrict__ starts, u8 *__restrict__ out, u8 *__restrict__ scales,
                  u64 *__restrict__ dropped, i64 tokens, i64 sequences, i64 table_pages, i64 pages,
                  i64 page_stride, i32 page_shift, i32 row_bytes, i32 gap, i32 scales_at,
                  i32 scales_row)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i64 row = i64(blockIdx.x) * C.tokens + threadIdx.x / W::kThreads;
    if (row >= tokens) {
        return;
    }
    const GatherIndex g = {index, starts, sequences, table_pages, pages};
    const GatherSource from = source_of<C.table>(g, row, page_shift, thread == 0, dropped);
    if (!from.written) {
        return;
    }
    const u8 *const page = cache + from.page * page_stride;
    uint4 piece[C.pieces] = {}, scale = {};
    if (from.page >= 0) {
        const u8 *const data = page + from.within * row_bytes;
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            const i32 at = (r * W::kThreads + thread) * 16;
            copy_bytes<16, C.align>(&piece[r], data + at + (at >= C.head ? gap : 0));
        }
        if (thread < W::kScalePieces) {
            copy_bytes<W::kScalePiece, C.align>(
                &scale, page + scales_at + from.within * scales_row + thread * W::kScalePiece);
        }
    }
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        copy_bytes<16, C.align>(out + row * C.bytes + (r * W::kThreads + thread) * 16, &piece[r]);
    }
    if (thread < W::kScalePieces) {
        copy_bytes<W::kScalePiece, C.align>(scales + row * C.scales + thread * W::kScalePiece,
                                            &scale);
    }
}
