// nibble_scores.cuh - sm90/scores.cuh of e2m1 with a ue8m0 scale for each 32 of K: keys become e4m3
// on their way to wgmma's registers, queries in shared memory, both exactly; a product of 32 is
// scaled before it is added to the others.
//
// Of each 32 of K the even ones come first, then the odd ones: a word's low nibbles, then its high
// ones. That is the same for keys and queries.
#pragma once
#include "device/mqa_nibbles.cuh"
#include "sm90/scores.cuh"

// A warpgroup's 64 keys: this thread's upper and lower one, a quarter of K each, and their scales.
template <int Dims> struct NibbleRows {
    static constexpr int kSteps = Dims / 32;

    u32 fragment[kSteps][4];
    float upper[kSteps], lower[kSteps];

    // `codes`: shared address of rows of Dims / 2 bytes, as a tensor map with that swizzle leaves
    // them, a multiple of 4 Dims; `words`: their scales. `first`: the warpgroup's.
    __device__ __forceinline__ void load(u32 codes, const u32 *words, i32 first)
    {
        const i32 row = first + i32(threadIdx.x % 128) / 32 * 16 + i32(threadIdx.x % 32) / 4;
        const u32 words_of[2] = {words[row], words[row + 8]};
#pragma unroll
        for (int s = 0; s < kSteps; s++) {
            u32 code[2];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const u32 at = swizzled<Dims / 2>(row + i * 8, s * 16 + threadIdx.x % 4 * 4);
                asm volatile("ld.shared.u32 %0, [%1];"
                             : "=r"(code[i])
                             : "r"(codes + at)
                             : "memory");
                fragment[s][i] = low_nibbles(code[i]);
                fragment[s][2 + i] = high_nibbles(code[i]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) { // made here, not between products
                asm volatile("" : "+r"(fragment[s][i])::"memory");
            }
            upper[s] = ue8m0_decode(u8(words_of[0] >> (8 * s)));
            lower[s] = ue8m0_decode(u8(words_of[1] >> (8 * s)));
        }
    }
};

// The products of a unit, Joint steps of K at a time. `scales`: of this thread's first head for
// step 0, those of step s lie s * Stride on.
template <int Dims, int Joint, int Stride, int Tiles>
__device__ __forceinline__ void nibble_products(float (&sum)[Tiles][4],
                                                const NibbleRows<Dims> &rows, u64 queries,
                                                const float *scales)
{
    float part[Joint][Tiles][4];
#pragma unroll
    for (int s = 0; s < Dims / 32; s++) {
        if (s % Joint == 0) {
#pragma unroll
            for (int i = 0; i < Joint; i++) {
                wgmma_hold(part[i]); // no read of what these were moves beyond the fence
            }
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < Joint; i++) {
                wgmma_multiply<false>(part[i], rows.fragment[s + i], queries + (s + i) * 2);
            }
            wgmma_commit();
            wgmma_wait<0>();
#pragma unroll
            for (int i = 0; i < Joint; i++) {
                wgmma_hold(part[i]);
            }
        }
#pragma unroll
        for (int j = 0; j < Tiles; j++) {
            const float(&x)[4] = part[s % Joint][j];
            const float2 q = *reinterpret_cast<const float2 *>(scales + s * Stride + j * 8);
            const float scaled[4] = {x[0] * rows.upper[s], x[1] * rows.upper[s],
                                     x[2] * rows.lower[s], x[3] * rows.lower[s]};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[j][i] = fmaf(scaled[i], i % 2 == 0 ? q.x : q.y, s == 0 ? 0.0f : sum[j][i]);
            }
        }
    }
}

// A whole warp: codes of `count` heads, of which `there` exist, as wgmma's columns of Dims bytes;
// the rest become zeros. `to`: a multiple of 8 Dims.
template <int Dims>
__device__ __forceinline__ void expand_queries(u32 to, const u8 *from, i32 count, i32 there)
{
    constexpr i32 kSteps = Dims / 32;
#pragma unroll 2
    for (i32 i = i32(threadIdx.x % 32); i < count * kSteps; i += 32) {
        const i32 head = i / kSteps;
        const uint4 code = head < there ? reinterpret_cast<const uint4 *>(from)[i] : uint4{};
        const u32 at = to + swizzled<Dims>(head, i % kSteps * 32);
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(low_nibbles(code.x)),
                     "r"(low_nibbles(code.y)), "r"(low_nibbles(code.z)), "r"(low_nibbles(code.w))
                     : "memory");
        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at ^ 16),
                     "r"(high_nibbles(code.x)), "r"(high_nibbles(code.y)),
                     "r"(high_nibbles(code.z)), "r"(high_nibbles(code.w))
                     : "memory");
    }
    engine_fence();
}

// A whole warp: words of those heads as floats, step s of head i at s * count + i.
template <int Dims>
__device__ __forceinline__ void expand_query_scales(float *to, const u32 *words, i32 count,
                                                    i32 there)
{
    for (i32 i = i32(threadIdx.x % 32); i < count; i += 32) {
        const u32 word = i < there ? words[i] : 0;
#pragma unroll
        for (int s = 0; s < Dims / 32; s++) {
            to[s * count + i] = ue8m0_decode(u8(word >> (8 * s)));
        }
    }
}
