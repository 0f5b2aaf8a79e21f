// copy.cu - put `tokens` bf16 rows, as they are, into their slots of a paged KV cache: 1152 and
// 1024 B a token.
//
// A lane moves `pieces` pieces of eight elements; slots are as in tokens.cu. What a row holds is
// not looked at. Domains and launch: copy.yaml.
#include "device/kv_page.cuh"
#include "device/vector.cuh"

struct Config {
    int dims;   // elements of a row
    int align;  // bytes that operands, rows and pages are multiples of
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kBytes = C.dims * 2;
    static constexpr int kThreads = kBytes / (16 * C.pieces); // of a token

    static_assert(kThreads * 16 * C.pieces == kBytes, "pieces: a row is whole lanes of them");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
};

// Token t of a page is at t * kBytes.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_copy(const u8 *__restrict__ x, const i64 *__restrict__ slots, u8 *__restrict__ cache,
                  u64 *__restrict__ dropped, i32 tokens, i64 pages, i64 page_stride, i32 page_shift)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i32 token = i32(blockIdx.x * C.tokens + threadIdx.x / W::kThreads);
    const auto [page, within, live] =
        place_of(cache, slots, token, tokens, pages, page_stride, page_shift, thread == 0, dropped);
    if (!live) {
        return;
    }
    const u8 *from = x + u64(u32(token)) * W::kBytes + thread * 16;
    u8 *to = page + u32(within * W::kBytes + thread * 16);
    uint4 piece[C.pieces];
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        copy_bytes < 16, C.align<2 ? 2 : C.align>(&piece[r], from + r * W::kThreads * 16);
    }
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        copy_bytes<16, C.align>(to + r * W::kThreads * 16, &piece[r]);
    }
}
