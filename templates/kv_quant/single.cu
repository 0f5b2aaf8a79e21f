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
    int warps;  // of a CTA
};

// Rows lie one behind the other over the threads of all CTAs, so that few of them, too, are shared
// evenly by the SMs: the least CTAs of `threads` that hold whole rows of `row`.
__host__ __device__ constexpr int whole_rows(int threads, int row)
{
    int ctas = 1;
    while (ctas * threads % row != 0) {
        ctas++;
    }
    return ctas;
}

template <Config C> struct Work {
    static constexpr int kThreads = C.dims / (8 * C.pieces); // of a token
    using Part = RowPart<C.pieces>;

    static_assert(kThreads * 8 * C.pieces == C.dims && kThreads % Run<2>::kLanes == 0,
                  "pieces: a row is whole runs of them");
    static_assert(C.warps >= 1 && C.warps <= 32, "warps: at most 1024 threads");

    static constexpr int kCtas = whole_rows(32 * C.warps, kThreads);
    static constexpr int kRows = kCtas * 32 * C.warps / kThreads; // of so many CTAs
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

// The codes of pieces whose largest magnitude is given. The quick division is exact enough where no
// step of it can overflow or lose a remainder: bf16 is short, and what one correction leaves lies
// on fl32(x / s)'s side of every code's ties, whatever s is (tests/core/test_quantise.c).
template <Config C>
__device__ __forceinline__ void encode(const typename Work<C>::Part &in, float largest,
                                       const Divisor &d, u32 (&code)[C.pieces][2])
{
    const bool quick =
        d.s >= kSmallestDivisor && d.s <= 1.0f / kSmallestDivisor && largest * d.inverse < 1e30f;
    const u32 signs = quick ? 0x80808080u : 0;
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        float x[8], y[8];
        in.floats(r, x);
        if (quick) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                y[i] = minus_quotient(x[i], d.s, -d.inverse);
            }
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                y[i] = d.usable ? __fdiv_rn(x[i], d.s) : __uint_as_float(0x7fffffffu);
            }
        }
        code[r][0] = e4m3x4_from(y[0], y[1], y[2], y[3]) ^ signs;
        code[r][1] = e4m3x4_from(y[4], y[5], y[6], y[7]) ^ signs;
    }
}

// Token t of a page is at t * dims.
template <Config C>
__global__ void __launch_bounds__(32 * C.warps)
    kv_quant_single(const u8 *__restrict__ x, const i64 *__restrict__ slots, u8 *__restrict__ cache,
                    u64 *__restrict__ dropped, u64 *__restrict__ nonfinite,
                    const float *__restrict__ scale, i32 tokens, i64 pages, i64 page_stride,
                    i32 page_shift)
{
    using W = Work<C>;
    const u32 at = blockIdx.x % W::kCtas * (32 * C.warps) + threadIdx.x, thread = at % W::kThreads;
    const i32 token = i32(blockIdx.x / W::kCtas * W::kRows + at / W::kThreads);
    // Lanes without a token take part in exchanges: with the last one's row.
    const u8 *row = x + u64(u32(min(token, tokens - 1))) * (C.dims * 2) + thread * 16;
    typename W::Part in;
    in.template load < W::kThreads, C.align<2 ? 2 : C.align>(row);
    const auto [page, within, live] =
        place_of(cache, slots, token, tokens, pages, page_stride, page_shift, thread == 0, dropped);
    const Divisor d = divisor_of(*scale);

    u32 maxima[W::Part::kMaxima], code[C.pieces][2];
    in.maxima(maxima);
    join_maxima(maxima);
    if (!d.usable || has_special(maxima)) { // rare
        const u32 count = d.usable ? in.replace_specials(kNan) : u32(C.pieces * 8);
        if (live) {
            atomicAdd(nonfinite, u64(count));
        }
    }
    encode<C>(in, __uint_as_float(maxima[0] << 16), d, code);
    Run<2> run[C.pieces];
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        run[r] = Run<2>(code[r]);
    }
    if (!live) {
        return; // only now: every lane has taken part
    }
    if (thread % Run<2>::kLanes == 0) {
        u8 *const data = page + u32(within * C.dims + thread * 8);
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            copy_bytes<16, C.align>(data + r * W::kThreads * 8, run[r].word);
        }
    }
}
