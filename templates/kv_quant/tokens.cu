// tokens.cu - quantise `tokens` bf16 rows to e4m3 under scales in the cache, and put each into its
// slot of a paged KV cache: index K 132 B, V3.2 656 B, V4 584 B, V4.1 528 B.
//
// A lane holds `pieces` pieces of `piece` elements (device/kv_pieces.cuh); a tile, the elements
// that share a scale, is `tile / piece` neighbouring lanes. Slot -1, and any negative one, is a
// padding row: nothing is written. A slot past the cache is counted in `dropped` and never written.
// The last `tail` elements of a row (RoPE) are copied as they are. NaN and infinity make no scale,
// become NaN (0x7f) and are counted in `nonfinite`. Codes and scales equal core/numfmt.h's, byte
// for byte. Domains, launch and page layouts: tokens.yaml.
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
    int piece;  // elements of an access
    int pieces; // of a lane
    int tokens; // of a CTA
};

template <Config C> struct Work {
    static constexpr int kLanes = C.tile / C.piece;                 // of a tile
    static constexpr int kExchange = least(C.pieces, 16 / C.piece); // lanes that swap codes
    static constexpr int kBlock = kLanes > kExchange ? kLanes : kExchange;
    static constexpr int kThreads = C.dims / (C.piece * C.pieces); // of a token
    static constexpr int kStride = kBlock * C.piece;               // between a lane's pieces
    static constexpr int kScaleBytes = C.ue8m0 ? 1 : 4;
    static constexpr int kTailPieces = C.tail / 8;
    using Part = RowPart<C.piece, C.pieces>;

    static_assert(kLanes >= 1 && kBlock <= 32 && is_pow2(kBlock), "piece: a tile fits a warp");
    static_assert(kThreads * C.piece * C.pieces == C.dims && kThreads % kBlock == 0,
                  "pieces: a row is whole blocks of them");
    static_assert(C.tokens * kThreads % 32 == 0 && C.tokens * kThreads <= 1024,
                  "tokens: whole warps, at most 1024 threads");
    static_assert(kTailPieces <= kThreads,
                  "pieces: a token has a thread for each piece of its tail");
    static_assert(!C.ue8m0 || rule_is_pow2(C.rule),
                  "ue8m0 scales need a rule that makes powers of two");
};

// A piece's codes, and its scale's bits. `amax` is the bits of its tile's largest.
template <Config C>
__device__ __forceinline__ void encode(const typename Work<C>::Part &in, int r, u32 amax,
                                       bool plain, u32 (&word)[C.piece / 4], u32 &scale)
{
    float y[C.piece];
    if constexpr (rule_is_pow2(C.rule)) {
        const u32 code = pow2_code<C.rule>(__uint_as_float(amax)), inverse = pow2_pair(254 - code);
        scale = C.ue8m0 ? code : code << 23;
#pragma unroll
        for (int i = 0; i < C.piece; i += 2) {
            const u32 pair = times_pair(in.pair[r][i / 2], inverse);
            y[i] = low_float(pair);
            y[i + 1] = high_float(pair);
        }
    } else {
        float x[C.piece];
        in.floats(r, x);
        const float s = group_scale<C.rule>(__uint_as_float(amax));
        scale = __float_as_uint(s);
        divide_all<C.rule, true>(y, x, s, plain);
    }
#pragma unroll
    for (int i = 0; i < C.piece; i += 4) {
        word[i / 4] = e4m3x4_from(y[i], y[i + 1], y[i + 2], y[i + 3]);
    }
}

// NaN and infinities count, make no maximum, and have the code of NaN. Few warps ever have one.
template <Config C>
__device__ __forceinline__ void set_apart(typename Work<C>::Part &in,
                                          u32 (&maxima)[Work<C>::Part::kMaxima], u64 *nonfinite)
{
    typename Work<C>::Part finite = in;
    const u32 count = finite.replace_specials(0);
    in.replace_specials(kNan);
    finite.maxima(maxima);
    if (count > 0) {
        atomicAdd(nonfinite, u64(count));
    }
}

// Within a page, token t: codes at t * row_bytes, scales at scales_at + t * scales_row, tail at
// tail_at + t * row_bytes.
template <Config C>
__global__ void __launch_bounds__(C.tokens *Work<C>::kThreads)
    kv_quant_tokens(const bf16 *__restrict__ x, const i64 *__restrict__ slots,
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
    if (page != nullptr) {
        in.template load<C.align>(row + block + lane * C.piece, W::kStride);
    }
    u32 maxima[W::Part::kMaxima], scale[C.pieces];
    u32 code[C.pieces / W::kExchange][W::kExchange][C.piece / 4];
    in.maxima(maxima);
    const bool plain = !has_special(maxima);
    if (__ballot_sync(0xffffffffu, !plain) != 0) {
        set_apart<C>(in, maxima, nonfinite);
    }
    lanes_larger<W::kLanes>(maxima);
#pragma unroll
    for (int r = 0; r < C.pieces; r++) {
        encode<C>(in, r, piece_max(maxima, r), plain, code[r / W::kExchange][r % W::kExchange],
                  scale[r]);
    }
#pragma unroll
    for (int i = 0; i < C.pieces / W::kExchange; i++) {
        lanes_transpose(code[i]);
    }
    if (page == nullptr) {
        return; // only now: every lane has taken part in maxima and exchanges
    }
    u8 *const data = page + within * row_bytes;
    u8 *const scales = page + scales_at + within * scales_row;
#pragma unroll
    for (int i = 0; i < C.pieces / W::kExchange; i++) {
        store_run<W::kBlock, C.align>(data + block, lane, i * W::kExchange, code[i]);
    }
    if (lane % W::kLanes == 0) {
        const i32 tile = (block + lane * C.piece) / C.tile;
#pragma unroll
        for (int r = 0; r < C.pieces; r++) {
            copy_bytes<W::kScaleBytes, C.align>(
                scales + (tile + r * W::kStride / C.tile) * W::kScaleBytes, &scale[r]);
        }
    }
    if (C.pad > 0 && thread < C.pad) {
        scales[C.dims / C.tile * W::kScaleBytes + thread] = 0;
    }
    if (thread < W::kTailPieces) {
        copy_bytes<16, C.align>(page + tail_at + within * row_bytes + thread * 16,
                                row + C.dims + thread * 8);
    }
}
