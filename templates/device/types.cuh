// types.cuh - the integer types and small compile-time helpers that every kernel uses. NVRTC has no
// <stdint.h>.
#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

__host__ __device__ constexpr int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

__host__ __device__ constexpr int least(int a, int b)
{
    return a < b ? a : b;
}

__host__ __device__ constexpr int common_divisor(int a, int b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

__host__ __device__ constexpr bool is_pow2(int x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

// Values of hone_dtype, hone_scale_rule: frozen numbers, so that a manifest passes a problem's
// field through.
enum Dtype : int { F32 = 1, BF16 = 2, F16 = 3 };
enum ScaleRule : int { POW2_AMAX = 1, RAW_AMAX = 2, POW2_SCALE = 3, RAW_TINY = 4, POW2_TINY = 5 };
enum Activation : int { PLAIN = 1, SILU_MUL = 2, SILU_MUL_V4 = 3 };
enum RowSet : int { EVERY = 1, MASKED = 2, LISTED = 3, GATHERED = 4 };

template <typename A, typename B> constexpr bool is_same = false;
template <typename A> constexpr bool is_same<A, A> = true;
