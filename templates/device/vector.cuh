// vector.cuh - packs of N elements, moved through global memory in pieces as wide as the address
// allows, 16 bytes at most.
#pragma once
#include "device/types.cuh"

template <typename T, int N> struct Pack {
    static constexpr int kBytes = N * int(sizeof(T));
    static_assert(is_pow2(kBytes), "a pack is one access or whole 16-byte ones");

    alignas(least(kBytes, 16)) T v[N];
};

// The word type that moves B bytes in one access.
template <int B> struct Word;
template <> struct Word<1> {
    using Type = u8;
};
template <> struct Word<2> {
    using Type = u16;
};
template <> struct Word<4> {
    using Type = u32;
};
template <> struct Word<8> {
    using Type = uint2;
};
template <> struct Word<16> {
    using Type = uint4;
};

// Bytes from place to place, both at multiples of Align.
template <int Bytes, int Align>
__device__ __forceinline__ void copy_bytes(void *to, const void *from)
{
    constexpr int kPiece = least(Bytes, least(Align, 16));
    using W = typename Word<kPiece>::Type;
#pragma unroll
    for (int i = 0; i < Bytes / kPiece; i++) {
        static_cast<W *>(to)[i] = static_cast<const W *>(from)[i];
    }
}

template <int N, int Align, typename T>
__device__ __forceinline__ Pack<T, N> pack_load(const T *from)
{
    constexpr int kAlign = Align < int(sizeof(T)) ? int(sizeof(T)) : Align;
    Pack<T, N> pack;
    copy_bytes<Pack<T, N>::kBytes, kAlign>(&pack, from);
    return pack;
}

template <int Align, typename T, int N>
__device__ __forceinline__ void pack_store(T *to, const Pack<T, N> &pack)
{
    copy_bytes<Pack<T, N>::kBytes, Align>(to, &pack);
}

// from + count * bytes in global memory, by one instruction.
template <typename T> __device__ __forceinline__ T *step_by(T *from, u32 count, u32 bytes)
{
    u64 to;
    asm("mad.wide.u32 %0, %1, %2, %3;"
        : "=l"(to)
        : "r"(count), "r"(bytes), "l"(__cvta_generic_to_global(from)));
    return static_cast<T *>(__cvta_global_to_generic(to));
}

template <u32 Bytes, typename T> __device__ __forceinline__ T *step_by(T *from, u32 count)
{
    u64 to;
    asm("mad.wide.u32 %0, %1, %2, %3;"
        : "=l"(to)
        : "r"(count), "n"(Bytes), "l"(__cvta_generic_to_global(from)));
    return static_cast<T *>(__cvta_global_to_generic(to));
}
