// vector.cuh - aligned packs of N elements, moved through global memory in pieces of at most 16 bytes.
#pragma once
#include "device/types.cuh"

template <typename T, int N>
struct Pack {
    static constexpr int kBytes = N * int(sizeof(T));
    static constexpr int kAlign = kBytes < 16 ? kBytes : 16;
    static_assert(is_pow2(kBytes), "a pack is one access or whole 16-byte ones");

    alignas(kAlign) T v[N];
};

// The word type that moves B bytes in one access.
template <int B> struct Word;
template <> struct Word<1> { using Type = u8; };
template <> struct Word<2> { using Type = u16; };
template <> struct Word<4> { using Type = u32; };
template <> struct Word<8> { using Type = uint2; };
template <> struct Word<16> { using Type = uint4; };

template <typename T, int N>
__device__ __forceinline__ void pack_copy(void *to, const void *from)
{
    using P = Pack<T, N>;
    using W = typename Word<P::kAlign>::Type;
#pragma unroll
    for (int i = 0; i < P::kBytes / P::kAlign; i++) {
        static_cast<W *>(to)[i] = static_cast<const W *>(from)[i];
    }
}

template <int N, typename T>
__device__ __forceinline__ Pack<T, N> pack_load(const T *from)
{
    Pack<T, N> pack;
    pack_copy<T, N>(&pack, from);
    return pack;
}

template <int N, typename T>
__device__ __forceinline__ void pack_store(T *to, const Pack<T, N> &pack)
{
    pack_copy<T, N>(to, &pack);
}
