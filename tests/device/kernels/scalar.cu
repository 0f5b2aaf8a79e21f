// scalar.cu - probes of what one thread computes: narrow conversions, approximate functions, edges.
typedef unsigned u32;

__device__ __forceinline__ u32 bits(float f)
{
    return __float_as_uint(f);
}

#define PROBE_UNARY(name, form, constraint, type)                                                  \
    __device__ __forceinline__ type name(float a)                                                  \
    {                                                                                              \
        type d;                                                                                    \
        asm volatile(form " %0, %1;" : "=" constraint(d) : "f"(a));                                \
        return d;                                                                                  \
    }
#define PROBE_PAIR(name, form, constraint, type)                                                   \
    __device__ __forceinline__ u32 name(float a, float b)                                          \
    {                                                                                              \
        type d;                                                                                    \
        asm volatile(form " %0, %1, %2;" : "=" constraint(d) : "f"(a), "f"(b));                    \
        return d;                                                                                  \
    }

PROBE_PAIR(to_e4m3, "cvt.rn.satfinite.e4m3x2.f32", "h", unsigned short)
PROBE_PAIR(to_e5m2, "cvt.rn.satfinite.e5m2x2.f32", "h", unsigned short)
PROBE_PAIR(to_bf16, "cvt.rn.bf16x2.f32", "r", u32)
PROBE_PAIR(to_f16, "cvt.rn.f16x2.f32", "r", u32)
PROBE_PAIR(to_bf16_relu, "cvt.rn.relu.bf16x2.f32", "r", u32)
PROBE_UNARY(to_tf32, "cvt.rna.tf32.f32", "r", u32)
PROBE_UNARY(to_s32, "cvt.rni.s32.f32", "r", u32)
PROBE_UNARY(approx_ex2, "ex2.approx.f32", "f", float)
PROBE_UNARY(approx_lg2, "lg2.approx.f32", "f", float)
PROBE_UNARY(approx_rcp, "rcp.approx.f32", "f", float)
PROBE_UNARY(approx_rsqrt, "rsqrt.approx.f32", "f", float)
PROBE_UNARY(approx_sqrt, "sqrt.approx.f32", "f", float)
PROBE_UNARY(approx_sin, "sin.approx.f32", "f", float)
PROBE_UNARY(approx_cos, "cos.approx.f32", "f", float)
PROBE_UNARY(approx_tanh, "tanh.approx.f32", "f", float)

// Six words out for each word in; its neighbour is the second operand.
extern "C" __global__ void convert(const u32 *in, u32 *out, int cases)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= cases) {
        return;
    }
    float a = __uint_as_float(in[n]), b = __uint_as_float(in[n ^ 1]);
    u32 *to = out + n * 6;
    to[0] = to_e4m3(a, b) | to_e5m2(a, b) << 16;
    to[1] = to_bf16(a, b);
    to[2] = to_f16(a, b);
    to[3] = to_bf16_relu(a, b);
    to[4] = to_tf32(a);
    to[5] = to_s32(a);
}

// Every pair of fp8 codes that a 16-bit word holds, widened.
extern "C" __global__ void widen(const u32 *in, u32 *out, int cases)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= cases) {
        return;
    }
    unsigned short code = (unsigned short)in[n];
    u32 e4m3, e5m2;
    asm volatile("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(e4m3) : "h"(code));
    asm volatile("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(e5m2) : "h"(code));
    out[n * 2] = e4m3;
    out[n * 2 + 1] = e5m2;
}

// Undocumented to the last bit: these tell how far the emulator's own may be off.
extern "C" __global__ void approximate(const u32 *in, u32 *out, int cases)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= cases) {
        return;
    }
    float a = __uint_as_float(in[n]), b = __uint_as_float(in[n ^ 1]), d;
    u32 *to = out + n * 9;
    to[0] = bits(approx_ex2(a));
    to[1] = bits(approx_lg2(a));
    to[2] = bits(approx_rcp(a));
    to[3] = bits(approx_rsqrt(a));
    to[4] = bits(approx_sqrt(a));
    to[5] = bits(approx_sin(a));
    to[6] = bits(approx_cos(a));
    to[7] = bits(approx_tanh(a));
    asm volatile("div.full.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    to[8] = bits(d);
}

// Corners that the manual leaves to be looked up: NaN, shifts past the width, ordering of zeros.
extern "C" __global__ void edges(const u32 *in, u32 *out, int cases)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n >= cases) {
        return;
    }
    u32 x = in[n], y = in[n ^ 1], r;
    float a = __uint_as_float(x), b = __uint_as_float(y), f;
    u32 *to = out + n * 10;
    asm volatile("max.f32 %0, %1, %2;" : "=f"(f) : "f"(a), "f"(b));
    to[0] = bits(f);
    asm volatile("min.f32 %0, %1, %2;" : "=f"(f) : "f"(a), "f"(b));
    to[1] = bits(f);
    asm volatile("max.NaN.f32 %0, %1, %2;" : "=f"(f) : "f"(a), "f"(b));
    to[2] = bits(f);
    asm volatile("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    to[3] = r;
    asm volatile("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
    to[4] = r;
    asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(y >> 8));
    to[5] = r;
    asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(y), "r"(y >> 8));
    to[6] = r;
    asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(x));
    to[7] = r;
    asm volatile("fma.rn.f32 %0, %1, %2, %1;" : "=f"(f) : "f"(a), "f"(b));
    to[8] = bits(f);
    asm volatile("cvt.rzi.u32.f32 %0, %1;" : "=r"(r) : "f"(a));
    to[9] = r;
}
