// rows.cu - an indexer's queries and keys made ready for its scores: rotated, transformed by
// Hadamard's matrix, quantised; keys go to their slots of the paged cache, queries' scales of e4m3
// into their weights (include/hone_index.h says how each step rounds).
//
// A row of 128 is 16 lanes' of one warp, eight elements each; the rows of a token are its heads and
// then its key. Slots, NaN and infinity are as in kv_quant. Domains and launch: rows.yaml.
#include "device/e2m1_codes.cuh"
#include "device/kv_page.cuh"
#include "device/quantise.cuh"

enum Rope : int { NO_ROPE = 1, FIRST = 2, LAST = 3 };
enum Pairs : int { NEIGHBOURS = 1, HALVES = 2 };

struct Config {
    int heads;    // of a token
    int rope;     // Rope
    int pairs;    // Pairs
    int hadamard; // 1: transformed
    int rule;     // of scales
    int e2m1;     // 1: codes of e2m1, scales of ue8m0; 0: e4m3 and f32
    int align;    // bytes that operands and pages are multiples of
    int rows;     // of a CTA
};

constexpr int kDims = 128, kOwn = 8, kLanes = kDims / kOwn; // of a row; of a lane; of a row
constexpr int kAngles = 32;

__device__ __forceinline__ float other_lane(float x, int apart)
{
    return __shfl_xor_sync(0xffffffffu, x, apart);
}

// The 64 dims that turn are 8 lanes' of 16. Products are rounded before they are added.
template <Config C>
__device__ __forceinline__ void rotate(float (&x)[kOwn], const float *angles, int lane)
{
    const int part = lane % 8;
    float y[kOwn];

    if constexpr (C.pairs == NEIGHBOURS) {
#pragma unroll
        for (int i = 0; i < kOwn; i += 2) {
            const int angle = part * (kOwn / 2) + i / 2;
            const float cosine = angles[angle], sine = angles[kAngles + angle];
            y[i] = __fsub_rn(__fmul_rn(x[i], cosine), __fmul_rn(x[i + 1], sine));
            y[i + 1] = __fadd_rn(__fmul_rn(x[i + 1], cosine), __fmul_rn(x[i], sine));
        }
    } else {
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            const int angle = part % 4 * kOwn + i;
            const float cosine = angles[angle], sine = angles[kAngles + angle];
            const float other = __fmul_rn(other_lane(x[i], 4), sine);
            const float own = __fmul_rn(x[i], cosine);
            y[i] = part < 4 ? __fsub_rn(own, other) : __fadd_rn(own, other);
        }
    }
    const bool turns = (C.rope == FIRST) == (lane < 8);
#pragma unroll
    for (int i = 0; i < kOwn; i++) {
        x[i] = turns ? y[i] : x[i];
    }
}

// Sums and differences of dims 1, 2, 4 of a lane apart, then of lanes 1, 2, 4, 8 apart.
__device__ __forceinline__ void transform(float (&x)[kOwn], int lane)
{
#pragma unroll
    for (int apart = 1; apart < kOwn; apart *= 2) {
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            if ((i & apart) == 0) {
                const float a = x[i], b = x[i + apart];
                x[i] = __fadd_rn(a, b);
                x[i + apart] = __fsub_rn(a, b);
            }
        }
    }
#pragma unroll
    for (int apart = 1; apart < kLanes; apart *= 2) {
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
            const float other = other_lane(x[i], apart);
            x[i] = (lane & apart) == 0 ? __fadd_rn(x[i], other) : __fsub_rn(other, x[i]);
        }
    }
#pragma unroll
    for (int i = 0; i < kOwn; i++) {
        x[i] = __fmul_rn(x[i], 0.088388346f); // 2^-3.5
    }
}

// Each element's nearest bf16.
__device__ __forceinline__ void round_to_bf16(float (&x)[kOwn])
{
#pragma unroll
    for (int i = 0; i < kOwn; i += 2) {
        const u32 pair = bf16x2_from(x[i], x[i + 1]);
        x[i] = __uint_as_float(pair << 16);
        x[i + 1] = __uint_as_float(pair & 0xffff0000u);
    }
}

// What a lane's elements become: codes, and bits of their scale, which neighbours share.
template <Config C> struct Made {
    static constexpr int kWords = C.e2m1 ? 1 : 2;
    static constexpr int kSharers = C.e2m1 ? 4 : kLanes; // of a scale

    u32 code[kWords], scale;

    // Of bf16 numbers. `odd`: NaN and infinities of this lane.
    __device__ __forceinline__ Made(const float (&x)[kOwn], u32 odd)
    {
        const u32 largest = lanes_max<kSharers>(finite_bits(x));

        if constexpr (C.e2m1 == 0) {
            const float s = group_scale<C.rule>(__uint_as_float(largest));
            float y[kOwn];
            divide_all<C.rule, SHORT>(y, x, s, odd == 0); // bf16
            code[0] = e4m3x4_from(y[0], y[1], y[2], y[3]);
            code[1] = e4m3x4_from(y[4], y[5], y[6], y[7]);
            scale = __float_as_uint(s);
        } else { // it has no NaN: its scale is one
            const bool none = lanes_max<kSharers>(odd) > 0;
            const PowerPair power = e2m1_scales<C.rule>(largest >> 16); // of bf16, as x is
            u32 pair[kOwn / 2];
#pragma unroll
            for (int i = 0; i < kOwn; i += 2) {
                pair[i / 2] = bf16x2_from(x[i], x[i + 1]);
            }
            code[0] = none ? 0 : e2m1x8_of(pair, power, 0);
            scale = none ? 0xffu : (power.scale & 0xffffu) >> 7;
        }
    }

    // Codes of a row and its scales, each to its place.
    __device__ __forceinline__ void store_codes(u8 *row, int lane) const
    {
        copy_bytes<4 * kWords, C.align>(row + lane * 4 * kWords, code);
    }
    __device__ __forceinline__ void store_scale(u8 *scales, int lane) const
    {
        if (lane % kSharers == 0) {
            if constexpr (C.e2m1) {
                scales[lane / kSharers] = u8(scale);
            } else {
                copy_bytes<4, 4>(scales, &scale);
            }
        }
    }
};

// fl32((heads * 128)^-1/2)
template <int Heads> __device__ __forceinline__ constexpr float head_factor()
{
    static_assert(Heads == 8 || Heads == 16 || Heads == 32 || Heads == 64, "heads");
    return Heads == 8    ? 0.03125f
           : Heads == 16 ? 0.022097087f
           : Heads == 32 ? 0.015625f
                         : 0.011048543f;
}

// Within a page: keys row_bytes apart, their scales from scales_at on, 4 bytes each.
template <Config C>
__global__ void __launch_bounds__(C.rows *kLanes)
    index_prepare_rows(const u16 *__restrict__ q, const u16 *__restrict__ k,
                       const float *__restrict__ rotations, const i64 *__restrict__ slots,
                       float *__restrict__ weights, u8 *__restrict__ codes,
                       u8 *__restrict__ q_scale, u8 *__restrict__ cache,
                       u64 *__restrict__ dropped, u64 *__restrict__ nonfinite, i32 tokens,
                       i64 pages, i64 page_stride, i32 page_shift)
{
    using M = Made<C>;
    constexpr int kRowBytes = kLanes * 4 * M::kWords, kOfToken = C.heads + 1;
    const int lane = i32(threadIdx.x) % kLanes;
    const i32 row = i32(blockIdx.x) * C.rows + i32(threadIdx.x) / kLanes, rows = tokens * kOfToken;
    // Lanes without a row take part with the last one's.
    const i32 token = min(row, rows - 1) / kOfToken, head = min(row, rows - 1) % kOfToken;
    const bool key = head == C.heads;
    const i64 of_q = i64(token) * C.heads + head;
    const u16 *from = key ? k + i64(token) * kDims : q + of_q * kDims;
    const auto in = pack_load<kOwn / 2, C.align>(reinterpret_cast<const u32 *>(from) + lane * 4);
    float x[kOwn];

#pragma unroll
    for (int i = 0; i < kOwn; i++) {
        x[i] = __uint_as_float(i % 2 == 0 ? in.v[i / 2] << 16 : in.v[i / 2] & 0xffff0000u);
    }
    if constexpr (C.rope != NO_ROPE) {
        rotate<C>(x, rotations + i64(token) * 2 * kAngles, lane);
        round_to_bf16(x);
    }
    if constexpr (C.hadamard != 0) {
        transform(x, lane);
        round_to_bf16(x);
    }
    const u32 odd = special_count(x);
    const M made(x, odd);
    if (row >= rows) {
        return; // only now: every lane has taken part
    }
    if (!key) {
        made.store_codes(codes + of_q * kRowBytes, lane);
        if constexpr (C.e2m1) {
            made.store_scale(q_scale + of_q * 4, lane);
        }
        if (lane == 0) {
            const float weight = __fmul_rn(weights[of_q], head_factor<C.heads>());
            weights[of_q] = C.e2m1 ? weight : __fmul_rn(weight, __uint_as_float(made.scale));
        }
    }
    bool live = true;
    if (key) {
        const TokenPlace place = place_of(cache, slots, token, tokens, pages, page_stride,
                                          page_shift, lane == 0, dropped);
        live = place.live;
        if (live) {
            made.store_codes(place.page + place.within * kRowBytes, lane);
            made.store_scale(place.page + (kRowBytes << page_shift) + place.within * 4, lane);
        }
    }
    if (live && odd > 0) {
        atomicAdd(nonfinite, u64(odd));
    }
}
