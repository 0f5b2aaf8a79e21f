// tokens.cu - quantise `tokens` bf16 rows to e4m3 under scales in the cache, and put each into its
// slot of a paged KV cache: index K 132 B, V3.2 656 B, V4 584 B, V4.1 528 B.
//
// A lane holds `pieces` pieces of eight elements (device/kv_pieces.cuh); a tile, the elements that
// share a scale, is `tile / 8` neighbouring lanes. Slot -1, and any negative one, is a padding row:
// nothing is written. A slot past the cache is counted in `dropped` and never written. The last
// `tail` elements of a row (RoPE) are copied as they are. NaN and infinity make no scale, become
// NaN (0x7f) and are counted in `nonfinite`. Codes and scales equal core/numfmt.h's, byte for byte.
// Domains, launch and page layouts: tokens.yaml.
#include "device/kv_page.cuh"
#include "device/kv_pieces.cuh"
#include "device/quantise.cuh"

struct Config {
    int dims, tile,
        tail; // elements of a row that are quantised, that share a scale, that are copied
    int rule;
    bool ue8m0; // scales
    int pad;    // zero bytes behind a token's scales
    int align;  // bytes that operands, rows and pages are multiples of
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kPieces = C.dims / 8, kTailPieces = C.tail / 8; // of a row
    // Whether the tail's pieces are held as the row's last, and not by threads apart.
    static constexpr bool kWithin = C.tail > 0 &&
                                    (kPieces + kTailPieces) / C.pieces % (C.tile / 8) == 0;
    static constexpr int kThreads =
        (kPieces + (kWithin ? kTailPieces : 0)) / C.pieces;    // of a token
    static constexpr int kLanes = least(C.tile / 8, kThreads); // of a tile
    static constexpr bool kJoined = kLanes < C.tile / 8;       // all pieces are one tile
    static constexpr int kScaleBytes = C.ue8m0 ? 1 : 4;
    static constexpr int kMaxima = RowPart<C.pieces>::kMaxima;
    using Part = RowPart<C.pieces>;

    static_assert(kLanes >= 1 && kLanes <= 32 && is_pow2(kLanes), "tile: it fits a warp");
    static_assert(kThreads * C.pieces == kPieces + (kWithin ? kTailPieces : 0) &&
                      kThreads % kLanes == 0,
                  "pieces: a row is whole tiles of them");
    static_assert(!kJoined || C.dims == C.tile, "pieces: of one tile, or each of its own");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(kTailPieces <= kThreads,
                  "pieces: a token has a thread for each piece of its tail");
    static_assert(C.pad == (kWithin ? 1 : 0) && (!kWithin || kTailPieces == C.tile / 8),
                  "pad: a zero for a scale of the tail's");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");

    // Whether piece r is the tail's.
    __device__ __forceinline__ static bool is_tail(int r, u32 thread)
    {
        return kWithin && r == C.pieces - 1 && thread >= kThreads - kTailPieces;
    }

    // What the pieces of a lane become: codes, and the bits of their tiles' scales.
    struct Made {
        u32 code[C.pieces][2], scale[C.pieces];
    };
};

// The bf16 of ceil(amax / 448), a power of two, and of its inverse, of two tiles at once. As
// pow2_code, whose addend has no bits below bf16's; the floors are 1e-4 of amax, or 2^-13 of the
// scale.
template <int Rule> __device__ __forceinline__ PowerPair pow2_scales(u32 amax)
{
    if constexpr (Rule == POW2_AMAX) {
        amax = larger_pair<bf16>(amax, 0x38d138d1u);
    }
    u32 above = (amax + 0x001f001fu) & 0x7f807f80u; // 2^8 of the scale
    if constexpr (Rule == POW2_SCALE) {
        above = larger_pair<bf16>(above, 0x3d003d00u);
    }
    return {above - 0x04000400u, 0x83008300u - above};
}

template <Config C>
__device__ __forceinline__ void encode_pow2(const typename Work<C>::Part &in,
                                            const u32 (&maxima)[Work<C>::kMaxima],
                                            typename Work<C>::Made &out)
{
    encode_pieces<C.pieces>(
        [&](int m) { return pow2_scales<C.rule>(maxima[m]); },
        [&](int r, int h, const PowerPair &two) {
            const u32 twice = half_of(two.inverse, h);
            const u32 bits = h == 0 ? two.scale << 16 : two.scale & 0xffff0000u;
            float y[8];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 pair = scale_pair(in.pair[r][i], twice);
                y[2 * i] = low_float(pair);
                y[2 * i + 1] = high_float(pair);
            }
            out.scale[r] = C.ue8m0 ? bits >> 23 : bits;
            out.code[r][0] = e4m3x4_from(y[0], y[1], y[2], y[3]);
            out.code[r][1] = e4m3x4_from(y[4], y[5], y[6], y[7]);
        });
}

// `plain`: the lane's elements are finite.
template <Config C>
__device__ __forceinline__ void encode_raw(const typename Work<C>::Part &in,
                                           const u32 (&maxima)[Work<C>::kMaxima], bool plain,
                                           typename Work<C>::Made &out)
{
    float s[C.pieces];
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        s[r] = group_scale<C.rule>(__uint_as_float(piece_max(maxima, r)));
        out.scale[r] = __float_as_uint(s[r]);
        plain = plain && divides_quickly(s[r]);
    }
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        float x[8], y[8];
        in.floats(r, x);
        divide_all<C.rule, SHORT>(y, x, s[r], plain);
        out.code[r][0] = e4m3x4_from(y[0], y[1], y[2], y[3]);
        out.code[r][1] = e4m3x4_from(y[4], y[5], y[6], y[7]);
    }
}

// NaN and infinities count, make no maximum, and have the code of NaN. Few lanes ever have one.
template <Config C>
__device__ __forceinline__ void set_apart(typename Work<C>::Part &in,
                                          u32 (&maxima)[Work<C>::kMaxima], bool tail, bool counts,
                                          u64 *nonfinite)
{
    typename Work<C>::Part finite = in;
    if (Work<C>::kWithin && tail) { // stays as it is, elsewhere
#pragma unroll
        for (int w = 0; w < 4; w++) {
            finite.pair[C.pieces - 1][w] = 0;
        }
    }
    const u32 count = finite.replace_specials(0);
    in.replace_specials(kNan);
    finite.maxima(maxima);
    if (counts) {
        atomicAdd(nonfinite, u64(count));
    }
}

template <Config C>
__device__ __forceinline__ void store_codes(u8 *data, u32 thread, const Runs<2, C.pieces> &runs)
{
    using W = Work<C>;
    if (thread % 2 == 0) {
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            if (!W::is_tail(r, thread)) {
                copy_bytes<16, C.align>(data + r * W::kThreads * 8, runs.run[r].word);
            }
        }
    }
}

template <Config C>
__device__ __forceinline__ void store_scales(u8 *scales, u32 thread,
                                             const typename Work<C>::Made &made)
{
    using W = Work<C>;
    if (thread % W::kLanes == 0) {
#pragma unroll
        for (int r = 0; r < (W::kJoined ? 1 : C.pieces); r++) {
            const u32 scale = W::is_tail(r, thread) ? 0 : made.scale[r];
            copy_bytes<W::kScaleBytes, C.align>(
                scales + r * (W::kThreads / W::kLanes) * W::kScaleBytes, &scale);
        }
    }
}

// Within a page, token t: codes at t * row_bytes, scales at scales_at + t * scales_row, tail at
// tail_at + t * row_bytes.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_tokens(const u8 *__restrict__ x, const i64 *__restrict__ slots, u8 *__restrict__ cache,
                    u64 *__restrict__ dropped, u64 *__restrict__ nonfinite, i32 tokens, i64 pages,
                    i64 page_stride, i32 page_shift, i32 row_bytes, i32 tail_at, i32 scales_at,
                    i32 scales_row)
{
    using W = Work<C>;
    constexpr int kRowAlign = C.align < 2 ? 2 : C.align;
    const u32 thread = threadIdx.x % W::kThreads;
    const i32 token = i32(blockIdx.x * C.tokens + threadIdx.x / W::kThreads);
    // Lanes without a token take part in maxima and exchanges: with the last one's row.
    const u8 *row = x + u64(u32(min(token, tokens - 1))) * ((C.dims + C.tail) * 2) + thread * 16;
    typename W::Part in;
    u32 rest[4];
    in.template load<W::kThreads, kRowAlign>(row);
    if (!W::kWithin && thread < W::kTailPieces) {
        copy_bytes<16, kRowAlign>(rest, row + C.dims * 2);
    }
    const auto [page, within, live] =
        place_of(cache, slots, token, tokens, pages, page_stride, page_shift, thread == 0, dropped);

    const bool tail = W::kWithin ? W::is_tail(C.pieces - 1, thread) : thread < W::kTailPieces;
    u32 maxima[W::kMaxima];
    in.maxima(maxima);
    if constexpr (W::kWithin) {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            rest[w] = in.pair[C.pieces - 1][w];
        }
    }
    const bool plain = !has_special(maxima);
    if (__builtin_expect(!plain, 0)) {
        set_apart<C>(in, maxima, tail, live, nonfinite);
    }
    if constexpr (W::kJoined) {
        join_maxima(maxima);
    }
    lanes_larger<W::kLanes>(maxima);
    typename W::Made made;
    if constexpr (rule_is_pow2(C.rule)) {
        encode_pow2<C>(in, maxima, made);
    } else {
        encode_raw<C>(in, maxima, plain, made);
    }
    const Runs<2, C.pieces> runs(made.code);
    if (!live) {
        return; // only now: every lane has taken part
    }
    const u32 data = within * row_bytes;
    store_codes<C>(page + (data + thread * 8), thread, runs);
    store_scales<C>(
        page + u32(scales_at + within * scales_row + i32(thread / W::kLanes) * W::kScaleBytes),
        thread, made);
    if (tail) {
        constexpr u32 kFirst = W::kWithin ? W::kThreads - W::kTailPieces : 0;
        copy_bytes<16, C.align>(page + (data + tail_at + (thread - kFirst) * 16), rest);
    }
}
