// nibble_scores.cuh - sm90/scores.cuh of e2m1 with a ue8m0 scale for each 32 of K: codes become
// e5m2, keys on their way to wgmma's registers, queries in shared memory.
//
// e5m2 has 27 binades above which and below which e2m1 has its own, so that codes of a row whose
// scales lie within 2^26 of each other are exact with one scale, the row's anchor, which acts after
// the products. A query's goes into its weight. Warps of keys that have no anchor, and all warps of
// queries of which some have none, are scored again, 32 of K at a time (score_wide).
//
// K's order is another than memory's, the same for keys and queries: of wgmma's step s, thread c of
// a quad has eight codes of what it loads at once, an equal share of the row, which lies in one
// group of 32.
#pragma once
#include "device/mqa.cuh"
#include "sm90/scores.cuh"

constexpr i32 kFold = 13; // binades that a scale may be above or below its anchor

// Magnitudes of e2m1 times 2^(t - kFold) as e5m2, one a byte.
struct NibbleTable {
    u32 low, high;

    __device__ __forceinline__ explicit NibbleTable(i32 t)
        : low(u32(t) * 0x04040400u + (0x3e3c3800u - kFold * 0x04040400u)),
          high(u32(t) * 0x04040404u + (0x46444240u - kFold * 0x04040404u))
    {
    }

    // Byte i: magnitude of the low half's nibble i.
    __device__ __forceinline__ u32 of(u32 magnitudes) const
    {
        u32 y;
        asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(low), "r"(high), "r"(magnitudes));
        return y;
    }

    // Eight codes as four and four.
    __device__ __forceinline__ void expand(u32 &first, u32 &second, u32 word) const
    {
        const u32 magnitudes = word & 0x77777777u, even = word << 4;
        first = with_signs(of(magnitudes), __byte_perm(word, even, 0x1504));
        second = with_signs(of(magnitudes >> 16), __byte_perm(word, even, 0x3726));
    }

    __device__ __forceinline__ static u32 with_signs(u32 magnitudes, u32 signs)
    {
        u32 y; // magnitudes | signs & 0x80808080
        asm("lop3.b32 %0, %1, %2, 0x80808080, 0xf8;" : "=r"(y) : "r"(magnitudes), "r"(signs));
        return y;
    }
};

template <int Words> __device__ __forceinline__ void load_words(u32 (&to)[Words], u32 from)
{
    static_assert(Words == 1 || Words == 2 || Words == 4, "one load");
    if constexpr (Words == 4) {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    } else if constexpr (Words == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(to[0]), "=r"(to[1])
                     : "r"(from)
                     : "memory");
    } else {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to[0]) : "r"(from) : "memory");
    }
}

__device__ __forceinline__ u32 load_word(u32 from)
{
    u32 to[1];
    load_words(to, from);
    return to[0];
}

// Keeps the compiler from making these elsewhere; emits nothing.
template <int Words> __device__ __forceinline__ void hold_words(u32 (&x)[Words])
{
#pragma unroll
    for (int i = 0; i < Words; i++) {
        asm volatile("" : "+r"(x[i])::"memory");
    }
}

template <typename... T> __device__ __forceinline__ void hold(T &...x)
{
    (..., [&] { asm volatile("" : "+r"(x)::"memory"); }());
}

template <int Words> __device__ __forceinline__ bool all_zero(const u32 (&codes)[Words])
{
    u32 any = codes[0];
#pragma unroll
    for (int i = 1; i < Words; i++) {
        any |= codes[i];
    }
    return (any & 0x77777777u) == 0;
}

// Where a thread's upper key lies among a tile's, rows of Dims / 2 bytes as a tensor map with that
// swizzle leaves them, from a multiple of 4 Dims; the lower one lies eight rows on.
template <int Dims> struct NibbleSeat {
    static constexpr u32 kLower = 8 * Dims / 2; // bytes

    u32 codes, words;
    u32 byte; // prmt's selector of its group's scale

    // first: the warpgroup's first key.
    __device__ __forceinline__ explicit NibbleSeat(i32 first)
    {
        const u32 lane = threadIdx.x % 32, row = first + threadIdx.x % 128 / 32 * 16 + lane / 4;
        codes = swizzled<Dims / 2>(row, lane % 4 * (Dims / 8));
        words = row * 4;
        byte = 0x4440u + lane % 4 * (Dims / 32) / 4;
        hold(codes, words, byte);
    }
};

// This thread's upper and lower key, a quarter of K each.
template <int Dims> struct NibbleRows {
    static constexpr int kSteps = Dims / 32;

    u32 fragment[kSteps][4];
    float scale; // of the key whose scores this thread stores
    bool wide;   // of this warp's keys some have no anchor

    // Scales over zeros say nothing, but when they are NaN.
    __device__ __forceinline__ static i32 anchor_of(const u32 (&codes)[kSteps], i32 scale)
    {
        i32 most = all_zero(codes) && scale != 255 ? 0 : scale;
        most = max(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = max(most, __shfl_xor_sync(0xffffffffu, most, 2));
        return most == 0 ? 127 : most - kFold;
    }

    __device__ __forceinline__ static bool beyond(const u32 (&codes)[kSteps], i32 t)
    {
        return u32(t) > 2 * kFold && !all_zero(codes);
    }

    // codes_at, words_at: shared addresses of the tile's. wide_queries: some queries have no
    // anchor.
    __device__ __forceinline__ void load(const NibbleSeat<Dims> &seat, u32 codes_at, u32 words_at,
                                         bool wide_queries)
    {
        u32 codes[2][kSteps];
        i32 own[2], anchor[2], t[2], mine;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            load_words(codes[i], codes_at + seat.codes + i * seat.kLower);
            const u32 word = load_word(words_at + seat.words + i * 32);
            own[i] = i32(__byte_perm(word, 0, seat.byte));
            anchor[i] = i32(word & 0xff); // the first group's will do in most cases
        }
        const auto strays = [&] { // how far scales lie from anchors, and those from floats
            t[0] = own[0] - anchor[0] + kFold, t[1] = own[1] - anchor[1] + kFold;
            mine = threadIdx.x % 2 != 0 ? anchor[1] : anchor[0];
            return u32(mine - 32) > 190;
        };
        wide = wide_queries;
        const bool stray = strays();
        if (__any_sync(0xffffffffu, max(u32(t[0]), u32(t[1])) > 2 * kFold || stray)) {
            anchor[0] = anchor_of(codes[0], own[0]), anchor[1] = anchor_of(codes[1], own[1]);
            const bool still = strays();
            wide |=
                __any_sync(0xffffffffu, beyond(codes[0], t[0]) || beyond(codes[1], t[1]) || still);
        }
        scale = __uint_as_float(u32(mine) << 23);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const NibbleTable table(t[i]);
#pragma unroll
            for (int s = 0; s < kSteps; s++) {
                table.expand(fragment[s][i], fragment[s][2 + i], codes[i][s]);
            }
        }
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            hold_words(fragment[s]); // not between products
        }
    }
};

// The products of a unit, until they are done.
template <int Dims, int Tiles>
__device__ __forceinline__ void nibble_products(float (&part)[Tiles][4],
                                                const NibbleRows<Dims> &rows, u64 queries)
{
    wgmma_hold(part); // no read of what these were moves beyond the fence
    wgmma_fence();
    wgmma_multiply_e5m2<false>(part, rows.fragment[0], queries);
#pragma unroll
    for (int s = 1; s < Dims / 32; s++) {
        wgmma_multiply_e5m2<true>(part, rows.fragment[s], queries + s * 2);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(part);
}

__device__ __forceinline__ void mma_e5m2(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Weight times max(0, product) as head_sums, of a token whose queries lie at that shared address:
// by this warp alone, each group of 32 scaled before it is added to the others. raw: the keys'
// codes as they are; scales: of this thread's first head for group 0, those of group g lie
// g * Stride on.
template <int Heads, int Dims, int Stride>
__device__ __forceinline__ float2 wide_sums(const u32 (&raw)[Dims / 32][4], const u32 (&words)[2],
                                            u32 queries, const float *scales, const float *weight)
{
    constexpr int kSteps = Dims / 32;
    const u32 lane = threadIdx.x % 32;
    float2 sum = {0.0f, 0.0f};
#pragma unroll 1
    for (int head = 0; head < Heads; head += 8) {
        float dot[1][4] = {};
#pragma unroll 1 // nor is what follows from keys and group kept in registers
        for (int g = 0; g < kSteps; g++) {
            const bool own = i32(lane % 4) * kSteps / 4 == g; // else zeros
            float part[4] = {};
#pragma unroll
            for (int s = 0; s < kSteps; s++) {
                const u32 at = queries + swizzled<Dims>(head + lane / 4, s * 32 + lane % 4 * 4);
                const u32 a[4] = {own ? raw[s][0] : 0, own ? raw[s][1] : 0, own ? raw[s][2] : 0,
                                  own ? raw[s][3] : 0};
                mma_e5m2(part, a, {load_word(at), load_word(at ^ 16)});
            }
            const float2 q = *reinterpret_cast<const float2 *>(scales + g * Stride + head);
            const float upper = ue8m0_decode(u8(words[0] >> (8 * g))),
                        lower = ue8m0_decode(u8(words[1] >> (8 * g)));
            dot[0][0] = fmaf(part[0] * upper, q.x, dot[0][0]);
            dot[0][1] = fmaf(part[1] * upper, q.y, dot[0][1]);
            dot[0][2] = fmaf(part[2] * lower, q.x, dot[0][2]);
            dot[0][3] = fmaf(part[3] * lower, q.y, dot[0][3]);
        }
        const float2 more = head_sums<8>(dot, 0, weight + head);
        sum.x += more.x, sum.y += more.y;
    }
    return sum;
}

// Calls `store(token, score)` for each of `tokens` tokens whose scores of its key this thread
// stores.
template <int Heads, int Dims, int Stride, typename Store>
__device__ __forceinline__ void score_wide(const NibbleSeat<Dims> &seat, u32 codes_at, u32 words_at,
                                           u32 queries, const float *scales, const float *weight,
                                           int tokens, const Store &store)
{
    constexpr int kSteps = Dims / 32;
    u32 words[2], raw[kSteps][4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 codes[kSteps];
        load_words(codes, codes_at + seat.codes + i * seat.kLower);
        words[i] = load_word(words_at + seat.words + i * 32);
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            NibbleTable(kFold).expand(raw[s][i], raw[s][2 + i], codes[s]);
        }
    }
#pragma unroll 1
    for (int t = 0; t < tokens; t++) {
        const float x = quad_scores(wide_sums<Heads, Dims, Stride>(
            raw, words, queries + t * Heads * Dims, scales + t * Heads, weight + t * Heads));
        if (score_token() == 0) {
            store(t, x);
        }
    }
}

// Queries of e2m1 in memory, `there` heads of them.
struct NibbleQueries {
    const u8 *codes;
    const u32 *words;
    const float *weights;
    i32 there;
};

// Where they go in shared memory: columns of Dims bytes as a tensor map leaves them, weights with
// their anchors, and what is left of the scales, group g of head i at g * count + i. codes: a
// multiple of 8 Dims.
struct NibbleColumns {
    u32 codes;
    float *scales, *weights;
};

// One head.
template <int Dims> struct NibbleHead {
    static constexpr int kSteps = Dims / 32;

    u32 codes[4 * kSteps];
    u32 word;
    i32 anchor;
    float weight; // with the anchor's scale
    bool folds;

    __device__ __forceinline__ NibbleHead(const NibbleQueries &from, i32 head) : codes{}
    {
        const bool there = head < from.there;
        word = there ? from.words[head] : 0;
        weight = there ? from.weights[head] : 0.0f;
#pragma unroll
        for (int g = 0; g < kSteps; g++) {
            const uint4 x =
                there ? reinterpret_cast<const uint4 *>(from.codes)[head * kSteps + g] : uint4{};
            codes[4 * g] = x.x, codes[4 * g + 1] = x.y, codes[4 * g + 2] = x.z,
                      codes[4 * g + 3] = x.w;
        }
        fold();
    }

    __device__ __forceinline__ i32 scale(int group) const
    {
        return i32(word >> (8 * group) & 0xff);
    }

    __device__ __forceinline__ void fold()
    {
        i32 low = 255, high = 0;
#pragma unroll
        for (int g = 0; g < kSteps; g++) {
            const u32(&own)[4] = reinterpret_cast<const u32(&)[4]>(codes[4 * g]);
            const bool counts = !all_zero(own) || scale(g) == 255;
            low = counts ? min(low, scale(g)) : low;
            high = counts ? max(high, scale(g)) : high;
        }
        anchor = low > high ? 127 : (low + high) / 2;
        const float with = weight * ue8m0_decode(u8(anchor)), size = fabsf(with);
        folds = high - low <= 2 * kFold && high < 255 &&
                (weight == 0.0f || (size >= 0x1p-60f && size <= 0x1p60f));
        weight = folds ? with : weight;
    }

    // What is left of a group's scale.
    __device__ __forceinline__ float rest(int group) const
    {
        return folds ? 1.0f : ue8m0_decode(u8(scale(group)));
    }

    __device__ __forceinline__ void store(u32 to, i32 head) const
    {
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            const u32 at = to + swizzled<Dims>(head, s * 32);
            u32 first[4], second[4];
#pragma unroll
            for (int c = 0; c < 4; c++) {
                const int word_of = c * kSteps + s;
                NibbleTable(folds ? scale(word_of / 4) - anchor + kFold : kFold)
                    .expand(first[c], second[c], codes[word_of]);
            }
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(first[0]),
                         "r"(first[1]), "r"(first[2]), "r"(first[3])
                         : "memory");
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at ^ 16), "r"(second[0]),
                         "r"(second[1]), "r"(second[2]), "r"(second[3])
                         : "memory");
        }
    }
};

// A whole warp: `count` heads, of which those past from.there become zeros. Whether some have no
// anchor.
template <int Dims>
__device__ __forceinline__ bool expand_queries(const NibbleColumns &to, const NibbleQueries &from,
                                               i32 count)
{
    bool fold = true;
#pragma unroll 1
    for (i32 i = i32(threadIdx.x % 32); i < count; i += 32) {
        const NibbleHead<Dims> head(from, i);
        head.store(to.codes, i);
        to.weights[i] = head.weight;
#pragma unroll
        for (int g = 0; g < Dims / 32; g++) {
            to.scales[g * count + i] = head.rest(g);
        }
        fold = fold && head.folds;
    }
    engine_fence();
    return !__all_sync(0xffffffffu, fold);
}
