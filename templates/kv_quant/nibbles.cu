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

struct Config {
    int dims, tile, tail; // elements that are quantised, that share a scale, that become e4m3
    int rule;
    bool permuted; // scale s is byte 8 * (s % 4) + s / 4
    int align;     // bytes that operands, rows and pages are multiples of
    int pieces;    // of a lane
    int tokens;    // of a CTA
};

enum Rule : int { POW2_TINY = 5, E4M3_NEAR = 6, E4M3_UP = 7 };

template <Config C> struct Work {
    static constexpr int kPiece = 8;
    static constexpr int kLanes = C.tile / kPiece; // of a tile
    static constexpr int kBlock = kLanes > C.pieces ? kLanes : C.pieces;
    static constexpr int kThreads = C.dims / (kPiece * C.pieces); // of a token
    static constexpr int kStride = kBlock * kPiece;               // between a lane's pieces
    static constexpr int kTailPieces = C.tail / kPiece;
    static constexpr bool kPow2 = C.rule == POW2_AMAX || C.rule == POW2_TINY;
    using Part = RowPart<kPiece, C.pieces>;

    static_assert(kPow2 || C.rule == E4M3_NEAR || C.rule == E4M3_UP, "a rule for scales of e2m1");
    static_assert(kLanes >= 1 && kBlock <= 32 && is_pow2(kBlock), "pieces: a tile fits a warp");
    static_assert(kThreads * kPiece * C.pieces == C.dims && kThreads % kBlock == 0,
                  "pieces: a row is whole blocks of them");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(kTailPieces <= kThreads,
                  "pieces: a token has a thread for each piece of its tail");
};

// A scale as the cache holds it, and what elements are multiplied by to be twice their quotient,
// which is what e2m1_codes.cuh takes: a pair of the same bf16, or a float's bits.
struct TileScale {
    u32 code, twice;
};

// The power of two from amax / 6 on: 6 is 1.5 * 2^2, so that a mantissa up to 0.5 stays in its
// binade. The floors of amax are 1e-4, or 6 * 2^-126. `amax` is a float's bits.
template <int Rule> __device__ __forceinline__ TileScale pow2_scale(u32 amax)
{
    constexpr u32 kFloor = Rule == POW2_AMAX ? 0x38d1b717u : 0x01c00000u;
    const u32 code = ((max(amax, kFloor) + 0x3fffffu) >> 23) - 2;
    return {code, pow2_pair(255 - code)};
}

// An e4m3 code that is no NaN, as a float: one of the code's bits is 2^-120 of it, subnormal where
// the code is.
__device__ __forceinline__ float e4m3_float(u32 code)
{
    return __uint_as_float(code << 20) * __uint_as_float(247u << 23);
}

// e4m3 of amax / 6 within [2^-9, 448]: the nearest, or the least that is not below. amax is a bf16,
// so that the product with a rounded sixth lies on the same side of every code and tie.
template <int Rule> __device__ __forceinline__ TileScale e4m3_scale(u32 amax)
{
    const float s = fminf(fmaxf(__uint_as_float(amax) * 0.166666672f, 0.001953125f), 448.0f);
    u32 code = e4m3x2_from(s, 0.0f) & 0xffu;
    if (Rule == E4M3_UP && e4m3_float(code) < s) {
        code++;
    }
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(e4m3_float(code)));
    return {code, __float_as_uint(inverse) + (1u << 23)};
}

// NaN and infinities among what a lane read are rare, and counted one by one.
template <int Pieces>
__device__ __forceinline__ void count_specials(RowPart<8, Pieces> &part, u64 *nonfinite)
{
    const u32 count = part.replace_specials(kNan);
    if (count > 0) {
        atomicAdd(nonfinite, u64(count));
    }
}

// A piece's eight codes.
template <Config C>
__device__ __forceinline__ u32 encode(const typename Work<C>::Part &in, int r, u32 twice)
{
    u32 y[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const u32 pair = in.pair[r][i];
        if constexpr (Work<C>::kPow2) {
            y[i] = times_pair(pair, twice);
        } else {
            const float s = __uint_as_float(twice);
            asm("cvt.rn.f16x2.f32 %0, %1, %2;"
                : "=r"(y[i])
                : "f"(high_float(pair) * s), "f"(low_float(pair) * s));
        }
    }
    // By the ceiling of a power of two no quotient is above 6.
    return Work<C>::kPow2 ? e2m1x8_from<BrainPairs, false>(y) : e2m1x8_from<HalfPairs, true>(y);
}

// A piece's codes and its tile's scale; NaN and zeros when the tile has a NaN or an infinity.
template <Config C>
__device__ __forceinline__ u32 encode_tile(const typename Work<C>::Part &in, int r, u32 amax,
                                           u32 &scale)
{
    constexpr bool kPow2 = Work<C>::kPow2;
    const bool spoiled = amax >= 0x7f800000u;
    TileScale s;
    if constexpr (kPow2) {
        s = pow2_scale<C.rule>(amax);
    } else {
        s = e4m3_scale<C.rule>(amax);
    }
    scale = spoiled ? (kPow2 ? 0xffu : 0x7fu) : s.code;
    return spoiled ? 0 : encode<C>(in, r, s.twice);
}

// Eight elements as e4m3 without a scale.
template <int Align> __device__ __forceinline__ void store_plain(u8 *to, const RowPart<8, 1> &tail)
{
    float y[8];
    tail.floats(0, y);
    const u32 word[2] = {e4m3x4_from(y[0], y[1], y[2], y[3]), e4m3x4_from(y[4], y[5], y[6], y[7])};
    copy_bytes<8, Align>(to, word);
}

// Within a page, token t: codes at t * row_bytes, tail at tail_at + t * row_bytes, scales at
// scales_at + t * scales_row.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_nibbles(const bf16 *__restrict__ x, const i64 *__restrict__ slots,
                     u8 *__restrict__ cache, u64 *__restrict__ dropped, u64 *__restrict__ nonfinite,
                     i64 tokens, i64 pages, i64 page_stride, i32 page_shift, i32 row_bytes,
                     i32 tail_at, i32 scales_at, i32 scales_row)
{
    using W = Work<C>;
    const i32 thread = i32(threadIdx.x % W::kThreads);
    const i32 lane = thread % W::kBlock, block = thread / W::kBlock * C.pieces * W::kStride;
    const i64 token = i64(blockIdx.x) * C.tokens + threadIdx.x / W::kThreads;
    const bf16 *row = x + token * (C.dims + C.tail);
    const auto [page, within] =
        place_of(cache, slots, token, tokens, pages, page_stride, page_shift, thread == 0, dropped);
    typename W::Part in = {};
    RowPart<8, 1> tail = {};
    if (page != nullptr) {
        in.template load<C.align>(row + block + lane * W::kPiece, W::kStride);
        if (thread < W::kTailPieces) {
            tail.template load<C.align>(row + C.dims + thread * W::kPiece, 0);
        }
    }
    u32 maxima[W::Part::kMaxima], code[C.pieces][1], scale[C.pieces];
    in.maxima(maxima);
    if (has_special(maxima)) {
        count_specials(in, nonfinite);
    }
    if constexpr (C.tail > 0) {
        u32 largest[1];
        tail.maxima(largest);
        if (has_special(largest)) {
            count_specials(tail, nonfinite);
        }
    }
    lanes_larger<W::kLanes>(maxima);
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        code[r][0] = encode_tile<C>(in, r, piece_max(maxima, r), scale[r]);
    }
    lanes_transpose(code);
    if (page == nullptr) {
        return; // only now: every lane has taken part in maxima and exchanges
    }
    u8 *const data = page + within * row_bytes;
    u8 *const scales = page + scales_at + within * scales_row;
    store_run<W::kBlock, C.align>(data + block / 2, lane, 0, code);
    if (lane % W::kLanes == 0) {
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            const i32 tile = (block + lane * W::kPiece + r * W::kStride) / C.tile;
            scales[C.permuted ? 8 * (tile % 4) + tile / 4 : tile] = u8(scale[r]);
        }
    }
    if (thread < W::kTailPieces) {
        store_plain<C.align>(page + tail_at + within * row_bytes + thread * 8, tail);
    }
}
