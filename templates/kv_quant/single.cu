// single.cu - quantise `tokens` bf16 rows to e4m3 under one scale of the whole cache, and put each
// into its slot of a paged KV cache: 576 B a token.
//
// A lane holds `pieces` pieces of eight elements (device/kv_pieces.cuh); slots are as in tokens.cu.
// Codes are e4m3 of fl32(x / scale). NaN and infinity become NaN (0x7f) and are counted in
// `nonfinite`; a scale that is not positive and finite makes every code NaN and counts every
// element. Domains and launch: single.yaml.
#include "device/kv_page.cuh"
#include "device/kv_pieces.cuh"
#include "device/quantise.cuh"

struct Config {
    int dims;   // elements of a row
    int align;  // bytes that operands, rows and pages are multiples of
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kThreads = C.dims / (8 * C.pieces); // of a token
    static constexpr int kExchange = least(C.pieces, 2);     // lanes that swap codes
    using Part = RowPart<8, C.pieces>;

    static_assert(kThreads * 8 * C.pieces == C.dims && kThreads % kExchange == 0,
                  "pieces: a row is whole lanes of them");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
};

// What rows are divided by.
struct Divisor {
    float s, inverse;
    bool usable; // positive and finite
};

__device__ __forceinline__ Divisor divisor_of(float s)
{
    return {s, __fdiv_rn(1.0f, s), s > 0.0f && s < __uint_as_float(kInfinityBits)};
}

// The codes of a piece whose largest magnitude is given: the quick division is divide_all's, where
// no step of it can overflow or lose a remainder.
__device__ __forceinline__ void encode(const float (&x)[8], float largest, const Divisor &d,
                                       u32 (&word)[2])
{
    const bool quick =
        d.s >= kSmallestDivisor && d.s <= 1.0f / kSmallestDivisor && largest * d.inverse < 1e30f;
    float y[8];
    if (quick) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            y[i] = divide<false>(x[i], -d.s, d.inverse);
        }
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            y[i] = __fdiv_rn(x[i], d.s);
        }
    }
#pragma unroll
    for (int w = 0; w < 2; w++) {
        const u32 four = e4m3x4_from(y[4 * w], y[4 * w + 1], y[4 * w + 2], y[4 * w + 3]);
        word[w] = d.usable ? four : 0x7f7f7f7fu;
    }
}

// Token t of a page is at t * dims.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_single(const bf16 *__restrict__ x, const i64 *__restrict__ slots,
                    u8 *__restrict__ cache, u64 *__restrict__ dropped, u64 *__restrict__ nonfinite,
                    const float *__restrict__ scale, i64 tokens, i64 pages, i64 page_stride,
                    i32 page_shift)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i64 token = i64(blockIdx.x) * C.tokens + threadIdx.x / W::kThreads;
    const auto [page, within] =
        place_of(cache, slots, token, tokens, pages, page_stride, page_shift, thread == 0, dropped);
    const Divisor d = divisor_of(*scale);
    typename W::Part in = {};
    if (page != nullptr) {
        in.template load<C.align>(x + token * C.dims + thread * 8, W::kThreads * 8);
    }
    u32 maxima[W::Part::kMaxima], code[C.pieces / W::kExchange][W::kExchange][2];
    in.maxima(maxima);
    if (page != nullptr && (!d.usable || has_special(maxima))) {
        const u32 count = d.usable ? in.replace_specials(kNan) : u32(C.pieces * 8);
        atomicAdd(nonfinite, u64(count));
    }
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        float value[8];
        in.floats(r, value);
        encode(value, __uint_as_float(piece_max(maxima, r)), d,
               code[r / W::kExchange][r % W::kExchange]);
    }
#pragma unroll
    for (int i = 0; i < C.pieces / W::kExchange; i++) {
        lanes_transpose(code[i]);
    }
    if (page == nullptr) {
        return; // only now: every lane has taken part in exchanges
    }
#pragma unroll
    for (int i = 0; i < C.pieces / W::kExchange; i++) {
        store_run<W::kThreads, C.align>(page + within * C.dims, thread, i * W::kExchange, code[i]);
    }
}
