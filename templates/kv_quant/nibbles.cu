// nibbles.cu - quantise `tokens` bf16 rows to e2m1, two codes a byte, and put each into its slot of
// a paged KV cache: V4.1 288 B, index K 68 B, NVFP4 352 B.
//
// A lane holds `pieces` pieces of eight elements (device/kv_pieces.cuh). Slots are as in tokens.cu.
// A tile that has a NaN or an infinity gets a scale of NaN and codes of zero, since e2m1 has
// neither. The last `tail` elements of a row become e4m3 without a scale. NaN and infinity are
// counted in `nonfinite`. Codes and scales equal core/numfmt.h's, byte for byte. Domains, launch
// and page layouts: nibbles.yaml.
#include "device/e2m1_codes.cuh"
#include "device/kv_page.cuh"
#include "device/kv_pieces.cuh"
#include "device/quantise.cuh"

struct Config {
    int dims, tile, tail; // elements that are quantised, that share a scale, that become e4m3
    int rule;
    bool permuted; // scale s is byte 8 * (s % 4) + s / 4
    int row, scales_row; // bytes from a token's codes, and from its scales, to the next one's
    int align;     // bytes that operands, rows and pages are multiples of
    int pieces;    // of a lane
    int tokens;    // of a CTA
};

enum Rule : int { E4M3_NEAR = 6, E4M3_UP = 7 };

template <Config C> struct Work {
    static constexpr int kLanes = C.tile / 8;                // of a tile
    static constexpr int kThreads = C.dims / (8 * C.pieces); // of a token
    static constexpr bool kWarps = kThreads % 32 == 0;       // a warp has one token
    // Pairs of the tail that a lane has, and how many lanes have some: a warp's are one run.
    static constexpr int kTailPairs = C.tail / 2 > kThreads ? C.tail / 2 / kThreads : 1;
    static constexpr int kTailLanes = C.tail / 2 / kTailPairs;
    static constexpr bool kPow2 = C.rule == POW2_AMAX || C.rule == POW2_TINY;
    static constexpr int kMaxima = RowPart<C.pieces>::kMaxima;
    using Part = RowPart<C.pieces>;

    static_assert(kPow2 || C.rule == E4M3_NEAR || C.rule == E4M3_UP, "a rule for scales of e2m1");
    static_assert(kThreads * 8 * C.pieces == C.dims && kThreads % Run<1>::kLanes == 0 &&
                      kThreads % kLanes == 0,
                  "pieces: a row is whole runs of them");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(2 * kTailPairs * kTailLanes == C.tail, "pieces: lanes share the tail evenly");

    // What the pieces of a lane become: codes, and their tiles' scales, two in a register: bf16
    // powers of two, or bytes of e4m3.
    struct Made {
        u32 code[C.pieces][1], scale[kMaxima];
    };
};

template <Config C>
__device__ __forceinline__ void encode_pow2(const typename Work<C>::Part &in,
                                            const u32 (&maxima)[Work<C>::kMaxima],
                                            typename Work<C>::Made &out)
{
    encode_pieces<C.pieces>(
        [&](int m) { return e2m1_scales<C.rule>(maxima[m]); },
        [&](int r, int h, const PowerPair &two) {
            out.code[r][0] = e2m1x8_of(in.pair[r], two, h);
            out.scale[r / 2] = two.scale;
        });
}

// e4m3 of amax / 6 within [2^-9, 448] of two tiles: the nearest, or the least that is not below;
// and their inverses. amax is a bf16, so that the product with a rounded sixth lies on the same
// side of every code and tie; if it is no code it is 2^-8 of itself or more from one, so that the
// least one above is the nearest to nearly half a step more.
template <int Rule> __device__ __forceinline__ u32 e4m3_scales(u32 amax, float (&inverse)[2])
{
    constexpr float kSixth = 0.166666672f;
    const u32 floored = larger_pair<bf16>(amax, 0x3c403c40u); // 6 * 2^-9
    float s[2] = {low_float(floored) * kSixth, high_float(floored) * kSixth};
    if constexpr (Rule == E4M3_UP) {
#pragma unroll
        for (int h = 0; h < 2; h++) { // all but half of a last place more, of subnormals in the sum
            s[h] = fmaxf(__uint_as_float(__float_as_uint(s[h]) + 0x7f000u),
                         s[h] + __uint_as_float(0x3a7f0000u));
        }
    }
    const u32 codes = e4m3x2_from(s[0], s[1]);
    e4m3x2_to(codes, s[0], s[1]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse[h]) : "f"(s[h]));
    }
    return codes;
}

template <Config C>
__device__ __forceinline__ void encode_e4m3(const typename Work<C>::Part &in,
                                            const u32 (&maxima)[Work<C>::kMaxima],
                                            typename Work<C>::Made &out)
{
    struct Two {
        u32 codes, inverses; // e4m3; f16
    };
    encode_pieces<C.pieces>(
        [&](int m) {
            float inverse[2];
            Two two;
            two.codes = e4m3_scales<C.rule>(maxima[m], inverse);
            asm("cvt.rn.f16x2.f32 %0, %1, %2;"
                : "=r"(two.inverses)
                : "f"(inverse[1]), "f"(inverse[0]));
            return two;
        },
        [&](int r, int h, const Two &two) {
            const u32 by = half_of(two.inverses, h);
            u32 pair[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                // 2^-112 times a bf16 up to 6 * 448 has f16's exponent in its lowest bits
                const u32 x = scale_pair(in.pair[r][i] & kMagnitudes, 0x07800780u) << 3;
                pair[i] = e2m1_pair_of(HalfPairs::line(x, by, kQuotientUp));
            }
            out.code[r][0] = e2m1x8_join(pair, in.pair[r]);
            out.scale[r / 2] = two.codes;
        });
}

// Whether a tile's largest element needs care: NaN, infinity, and for scales of e4m3 what may be 7
// times the scale or more: above 6 * 448 it is the largest, and up to 2.5 * 2^-9 nearest to a
// number of few bits. Or the lane's share of the tail: NaN, infinity.
template <Config C>
__device__ __forceinline__ bool is_odd(const u32 (&maxima)[Work<C>::kMaxima],
                                       const u32 (&tail)[Work<C>::kTailPairs])
{
    u32 most = maxima[0], least = maxima[0];
#pragma unroll
    for (int m = 1; m < Work<C>::kMaxima; m++) {
        most = larger_pair<bf16>(most, maxima[m]);
        least = BrainPairs::least(least, maxima[m]);
    }
    u32 any = most + (Work<C>::kPow2 ? 0x00800080u : 0x3ad73ad7u);
    if constexpr (C.rule == E4M3_NEAR) {
        asm("lop3.b32 %0, %0, %1, 0x80008000, 0xa2;" // (a | ~b) & c
            : "+r"(any)
            : "r"(least + 0x430f430fu));
    }
#pragma unroll
    for (int i = 0; C.tail > 0 && i < Work<C>::kTailPairs; i++) {
        any |= (tail[i] & kMagnitudes) + 0x00800080u;
    }
    return (any & 0x80008000u) != 0;
}

// Count NaN and infinities, make NaN of the tail's, and bring the rest to 6 times its scale. Rare.
template <Config C>
__device__ __forceinline__ void limit(typename Work<C>::Part &in,
                                      u32 (&tail)[Work<C>::kTailPairs],
                                      const u32 (&maxima)[Work<C>::kMaxima], bool counts,
                                      u64 *nonfinite)
{
    const u32 count = in.replace_specials(0) + replace_special_halves(tail, kNan);
    if (counts && count > 0) {
        atomicAdd(nonfinite, u64(count));
    }
    if constexpr (!Work<C>::kPow2) {
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            float inverse[2], s[2];
            e4m3x2_to(e4m3_scales<C.rule>(maxima[r / 2], inverse), s[0], s[1]);
            const u32 six = __float_as_uint(6.0f * s[r % 2]) >> 16;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const u32 x = in.pair[r][i], low = min(x & 0x7fffu, six),
                          high = min(x >> 16 & 0x7fffu, six);
                in.pair[r][i] = (x & ~kMagnitudes) | low | high << 16;
            }
        }
    }
}

// A tile that has a NaN or an infinity is NaN.
template <Config C>
__device__ __forceinline__ void spoil(const u32 (&maxima)[Work<C>::kMaxima],
                                      typename Work<C>::Made &out)
{
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        if (piece_max(maxima, r) >= kInfinityBits) {
            constexpr u32 kSpoilt = Work<C>::kPow2 ? kSpecial : 0x7fu;
            const int at = r % 2 * (Work<C>::kPow2 ? 16 : 8);
            out.code[r][0] = 0;
            out.scale[r / 2] = (out.scale[r / 2] & ~((kSpoilt | 0x80u) << at)) | kSpoilt << at;
        }
    }
}

// The token's scales begin `at` bytes behind `scales`. All lanes of a tile know its scales: of two
// pieces' tiles the first lane stores one, the second the other.
template <Config C>
__device__ __forceinline__ void store_scales(u8 *scales, i32 at, u32 thread,
                                             const typename Work<C>::Made &made)
{
    using W = Work<C>;
    constexpr u32 kStep = W::kThreads / W::kLanes; // tiles between a lane's pieces
    constexpr u32 kStoring = least(C.pieces, 2);   // lanes of a tile
    static_assert(!C.permuted || kStep % 4 == 0, "pieces: tiles that lie a word apart");
    constexpr u32 kBetween = C.permuted ? kStep / 4 : kStep;
    const u32 lane = thread % W::kLanes, tile = thread / W::kLanes;
    if (kStoring == W::kLanes || lane < kStoring) {
        u8 *const to = step_by<kBetween>(scales, lane) +
                       (u32(at) + (C.permuted ? 8 * (tile % 4) + tile / 4 : tile));
#pragma unroll
        for (int m = 0; m < W::kMaxima; m++) {
            to[m * 2 * kBetween] =
                W::kPow2 ? u8(made.scale[m] >> (lane * 16 + 7)) // of a bf16: its exponent
                         : u8(__byte_perm(made.scale[m], made.scale[m], lane));
        }
    }
}

// What the pieces become; NaN and infinities of the tail, too, are counted if the token is `live`.
template <Config C>
__device__ __forceinline__ void encode(typename Work<C>::Part &in,
                                       u32 (&tail)[Work<C>::kTailPairs], bool live, u64 *nonfinite,
                                       typename Work<C>::Made &made)
{
    u32 maxima[Work<C>::kMaxima];
    in.maxima(maxima);
    lanes_larger<Work<C>::kLanes>(maxima);
    const bool odd = is_odd<C>(maxima, tail);
    if (__builtin_expect(odd, 0)) {
        limit<C>(in, tail, maxima, live, nonfinite);
    }
    if constexpr (Work<C>::kPow2) {
        encode_pow2<C>(in, maxima, made);
    } else {
        encode_e4m3<C>(in, maxima, made);
    }
    if (__builtin_expect(odd, 0)) {
        spoil<C>(maxima, made);
    }
}

// Within a page, token t: codes at t * row, the tail behind them, scales at scales_at + t *
// scales_row.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_nibbles(const u8 *__restrict__ x, const i64 *__restrict__ slots,
                     u8 *__restrict__ cache, u64 *__restrict__ dropped, u64 *__restrict__ nonfinite,
                     i32 tokens, i64 pages, i64 page_stride, i32 page_shift, i32 scales_at)
{
    using W = Work<C>;
    constexpr int kRowAlign = C.align < 2 ? 2 : C.align, kTailBytes = 4 * W::kTailPairs;
    const u32 thread = C.tokens == 1 ? threadIdx.x : threadIdx.x % W::kThreads;
    const u32 first = blockIdx.x * C.tokens;
    const i32 token = i32(C.tokens == 1 ? first : first + threadIdx.x / W::kThreads);
    if (W::kWarps && token >= tokens) {
        return;
    }
    // Lanes without a token take part in maxima and exchanges: with the last one's row.
    const u32 own = u32(W::kWarps ? token : min(token, tokens - 1));
    const u8 *row = step_by<(C.dims + C.tail) * 2>(x, own);
    typename W::Part in;
    u32 rest[W::kTailPairs] = {};
    in.template load<W::kThreads, kRowAlign>(step_by<16>(row, thread));
    if (W::kTailLanes == W::kThreads || thread < W::kTailLanes) {
        copy_bytes<kTailBytes, least(kRowAlign, kTailBytes)>(
            rest, step_by<kTailBytes>(row + C.dims * 2, thread));
    }
    const i64 slot = *step_by<8>(slots, own), at = slot >> page_shift;
    const bool live = u64(at) < u64(pages) && (W::kWarps || token < tokens);
    if (__builtin_expect(!live, 0)) {
        if (thread == 0 && at >= pages && token < tokens) {
            atomicAdd(dropped, 1ull);
        }
        if (W::kWarps) {
            return;
        }
    }
    u8 *const page = cache + at * page_stride;
    const u32 within = u32(within_page(slot, page_shift));

    typename W::Made made;
    encode<C>(in, rest, live, nonfinite, made);
    const Runs<1, C.pieces> runs(made.code);
    if (!live) {
        return; // only now: every lane has taken part
    }
    u8 *const data = step_by<C.row>(page, within);
    store_scales<C>(step_by<C.scales_row>(page, within), scales_at, thread, made);
    if (W::kTailLanes == W::kThreads || thread < W::kTailLanes) {
        store_plain<C.align>(step_by<kTailBytes / 2>(data + C.dims / 2, thread), rest);
    }
    if (thread % Run<1>::kLanes == 0) {
        u8 *const to = step_by<4>(data, thread);
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            copy_bytes<16, C.align>(to + r * W::kThreads * 4, runs.run[r].word);
        }
    }
}
