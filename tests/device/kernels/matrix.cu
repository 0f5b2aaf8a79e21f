// matrix.cu - probes of the matrix units: one product a case, operands straight from memory.
//
// Words of a case lie side by side: a, b, c as the fragments of a warp (register, then lane) for
// mma.sync; as row-major tiles for wgmma, which takes them through shared memory.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ const u32 *operand(const u32 *at, u32 reg)
{
    return at + reg * 32 + threadIdx.x % 32;
}

#define PROBE_MMA(name, shape, types)                                                              \
    extern "C" __global__ void name(const u32 *in, u32 *out, int cases)                            \
    {                                                                                              \
        const u32 *at = in + blockIdx.x * 10 * 32;                                                 \
        u32 d0 = *operand(at, 6), d1 = *operand(at, 7), d2 = *operand(at, 8), d3 = *operand(at, 9); \
        asm volatile("mma.sync.aligned." shape ".row.col." types                                   \
                     " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                      \
                     : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)                                      \
                     : "r"(*operand(at, 0)), "r"(*operand(at, 1)), "r"(*operand(at, 2)),           \
                       "r"(*operand(at, 3)), "r"(*operand(at, 4)), "r"(*operand(at, 5)));          \
        u32 *to = out + blockIdx.x * 4 * 32 + threadIdx.x % 32;                                    \
        to[0] = d0, to[32] = d1, to[64] = d2, to[96] = d3;                                         \
    }

PROBE_MMA(mma_e4m3, "m16n8k32", "f32.e4m3.e4m3.f32")
PROBE_MMA(mma_e5m2, "m16n8k32", "f32.e5m2.e5m2.f32")
PROBE_MMA(mma_mixed, "m16n8k32", "f32.e4m3.e5m2.f32")
PROBE_MMA(mma_bf16, "m16n8k16", "f32.bf16.bf16.f32")
PROBE_MMA(mma_f16, "m16n8k16", "f32.f16.f16.f32")

#if __CUDA_ARCH__ == 900

// Rows of 32 bytes as core matrices of 8 x 16 bytes: 128 bytes each, the two along K side by side.
__device__ __forceinline__ void lay_out(unsigned char *tile, const unsigned char *rows, int count)
{
    for (int n = threadIdx.x; n < count * 32; n += blockDim.x) {
        int row = n / 32, byte = n % 32;
        tile[row / 8 * 256 + byte / 16 * 128 + row % 8 * 16 + byte % 16] = rows[n];
    }
}

__device__ __forceinline__ u64 descriptor(const void *tile)
{
    u64 start = (u64)__cvta_generic_to_shared(tile) >> 4;
    return start | (128ull >> 4) << 16 | (256ull >> 4) << 32; // no swizzle: LBO along K, SBO along M
}

// 64 rows of a, 8 of b, 32 bytes each, and c by register and thread: 4 x 128 words.
#define PROBE_WGMMA(name, shape, types, tail)                                                      \
    extern "C" __global__ void name(const u32 *in, u32 *out, int cases)                            \
    {                                                                                              \
        __shared__ __align__(128) unsigned char a[64 * 32], b[8 * 32];                             \
        const u32 *at = in + blockIdx.x * (64 * 8 + 8 * 8 + 512);                                  \
        const u32 *c = at + 64 * 8 + 8 * 8 + threadIdx.x;                                          \
        lay_out(a, (const unsigned char *)at, 64);                                                 \
        lay_out(b, (const unsigned char *)(at + 64 * 8), 8);                                       \
        float d0 = __uint_as_float(c[0]), d1 = __uint_as_float(c[128]),                            \
              d2 = __uint_as_float(c[256]), d3 = __uint_as_float(c[384]);                          \
        asm volatile("fence.proxy.async;" ::: "memory");                                           \
        __syncthreads();                                                                           \
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                    \
        asm volatile("wgmma.mma_async.sync.aligned." shape "." types                               \
                     " {%0,%1,%2,%3}, %4, %5, 1, 1, 1" tail ";"                                    \
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                                      \
                     : "l"(descriptor(a)), "l"(descriptor(b)));                                    \
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                             \
        asm volatile("wgmma.wait_group.sync.aligned 0;"                                            \
                     : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");                          \
        u32 *to = out + blockIdx.x * 512 + threadIdx.x;                                            \
        to[0] = __float_as_uint(d0), to[128] = __float_as_uint(d1);                                \
        to[256] = __float_as_uint(d2), to[384] = __float_as_uint(d3);                              \
    }

PROBE_WGMMA(wgmma_e4m3, "m64n8k32", "f32.e4m3.e4m3", "")
PROBE_WGMMA(wgmma_e5m2, "m64n8k32", "f32.e5m2.e5m2", "")
PROBE_WGMMA(wgmma_bf16, "m64n8k16", "f32.bf16.bf16", ", 0, 0")
PROBE_WGMMA(wgmma_f16, "m64n8k16", "f32.f16.f16", ", 0, 0")

#endif
