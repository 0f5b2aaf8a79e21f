// tokens.cu - quantise `tokens` bf16 rows and put each into its slot of a paged KV cache.
//
// A token is `dims / vec` neighbouring threads, a tile (the elements that share a scale) `tile /
// vec` neighbouring lanes. Slot -1, and any negative one, is a padding row: nothing is written. A
// slot past the cache is counted in `dropped` and never written. Pages may lie further apart than
// they are long; offsets are 64-bit. The last `tail` elements of a row (RoPE) are copied verbatim
// behind the scales. Codes and scales equal core/numfmt.h's, byte for byte. Domains and launch:
// tokens.yaml. Page layouts: record_layout_of in core/record.c.
#include "device/quantise.cuh"

struct Config {
    int dims, tile,
        tail; // elements of a row that are quantised, that share a scale, that are copied
    int rule;
    bool ue8m0; // scales
    int align;  // bytes that operands, rows and pages are multiples of
    int vec;    // elements of a thread
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kThreads = C.dims / C.vec; // of a token
    static constexpr int kLanes = C.tile / C.vec;   // of a tile
    using Part = GroupPart<bf16, C.vec, kLanes>;
    static constexpr int kScaleBytes = C.ue8m0 ? 1 : 4;
    static constexpr int kTailPiece = 16; // bytes of a thread
    static constexpr int kTailPieces = C.tail * 2 / kTailPiece;

    static_assert(C.vec >= 4 && is_pow2(C.vec) && kLanes >= 1 && kLanes <= 32,
                  "vec: a tile fits a warp");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(kTailPieces <= kThreads, "vec: a token has a thread for each piece of its tail");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");
};

// Where a token lives: NULL when it is skipped. The first thread of a token counts the slot that is
// out of range.
__device__ __forceinline__ u8 *page_of(u8 *cache, i64 slot, i64 pages, i64 page_stride,
                                       i32 page_shift, bool first, u64 *dropped)
{
    if (slot < 0) {
        return nullptr;
    }
    const i64 page = slot >> page_shift;
    if (page >= pages) {
        if (first) {
            atomicAdd(dropped, 1ull);
        }
        return nullptr;
    }
    return cache + page * page_stride;
}

// Within a page: token t's codes at t * data_stride, its scales at scales_at + t * scale_stride,
// its tail behind them.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_tokens(const bf16 *__restrict__ x, const i64 *__restrict__ slots,
                    u8 *__restrict__ cache, u64 *__restrict__ dropped, i64 tokens, i64 pages,
                    i64 page_stride, i32 page_shift, i64 data_stride, i64 scales_at,
                    i64 scale_stride)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i64 token = i64(blockIdx.x) * C.tokens + threadIdx.x / W::kThreads;
    u8 *page = nullptr;
    i64 slot = -1;
    if (token < tokens) {
        slot = slots[token];
        page = page_of(cache, slot, pages, page_stride, page_shift, thread == 0, dropped);
    }
    const bf16 *row = x + token * (C.dims + C.tail);
    const i32 lane = thread % W::kLanes, tile = thread / W::kLanes;
    typename W::Part in = {};
    if (page != nullptr) {
        in.template load<C.align>(row + tile * C.tile, lane);
    }
    float value[C.vec], divided[C.vec];
    in.floats(value);
    const u32 own = largest_bits(value);
    const float s = group_scale<C.rule>(group_amax<W::kLanes>(value, own));
    if (page == nullptr) {
        return; // only now: every lane has taken part in the maximum
    }
    const i64 within = slot & ((i64(1) << page_shift) - 1);
    u8 *const scales = page + scales_at + within * scale_stride;
    divide_all<C.rule>(divided, value, s, own < kInfinityBits);
    W::Part::template store<C.align>(page + within * data_stride + tile * C.tile, lane, divided);
    if (lane == 0) {
        const u32 bits = __float_as_uint(s), stored = C.ue8m0 ? bits >> 23 : bits;
        copy_bytes<W::kScaleBytes, C.align>(scales + tile * W::kScaleBytes, &stored);
    }
    if (thread < W::kTailPieces) {
        u8 *const tail = scales + C.dims / C.tile * W::kScaleBytes;
        copy_bytes<W::kTailPiece, C.align>(tail + thread * W::kTailPiece,
                                           reinterpret_cast<const u8 *>(row + C.dims) +
                                               thread * W::kTailPiece);
    }
}
