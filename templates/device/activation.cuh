// activation.cuh - gate and up to what is quantised, in fp32: hone_activation's.
//
// The result is within |silu| (2^-20 + |g| 2^-23) + 2^-118 of the exact one: two units of each of
// the chip's 2^x and 1/x, and the rounding of g log2(e). bench/reference_quant.c holds it to that.
#pragma once
#include "device/types.cuh"

// g / (1 + exp(-g)). NaN stays; -infinity gives NaN, as the formula does.
__device__ __forceinline__ float silu(float g)
{
    float power, inverse;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(g * -1.44269504f));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(1.0f + power));
    return g * inverse;
}

template <int Act> __device__ __forceinline__ float activate(float gate, float up)
{
    static_assert(Act == SILU_MUL || Act == SILU_MUL_V4, "what has a gate");
    if constexpr (Act == SILU_MUL_V4) { // comparisons, not fminf: NaN must stay
        gate = gate > 10.0f ? 10.0f : gate;
        up = up > 10.0f ? 10.0f : up < -10.0f ? -10.0f : up;
    }
    return silu(gate) * up;
}
