// conflicts.cu - a probe of what loads of 8 and 16 bytes from shared memory take when lanes ask for
// one place.
typedef unsigned u32;
typedef unsigned long long u64;

// The place of a lane, in units of what it loads.
__device__ __forceinline__ u32 place(u32 lane, u32 pattern)
{
    switch (pattern) {
    case 0: return lane;                           // each its own, side by side
    case 1: return lane / 2;                       // neighbours share
    case 2: return lane / 4 * 2 + lane % 2;        // lanes two apart share
    case 3: return lane / 8 * 4 + lane % 4;        // lanes four apart
    case 4: return lane % 16;                      // the halves of the warp
    case 5: return 0;                              // all
    case 6: return lane * 2;                       // each its own, with gaps
    default: return lane / 2 * 2;                  // neighbours share, with gaps
    }
}

// 32 warps load 64 times each; the cycles of all. bytes: 4, 8 or 16.
extern "C" __global__ void wavefronts(u32 *out, u32 bytes, u32 pattern)
{
    __shared__ __align__(128) u32 tile[256];
    u32 at = (u32)__cvta_generic_to_shared(tile) + place(threadIdx.x % 32, pattern) * bytes, sum = 0;
    if (threadIdx.x < 256) {
        tile[threadIdx.x] = 1;
    }
    __syncthreads();
    u64 begin = clock64();
    for (int k = 0; k < 64; k++) {
        u32 a = 0, b = 0, c = 0, d = 0;
        if (bytes == 4) {
            asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a) : "r"(at));
        } else if (bytes == 8) {
            asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "r"(at));
        } else {
            asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at));
        }
        sum += a + b + c + d;
    }
    __syncthreads();
    u64 end = clock64();
    out[threadIdx.x + 1] = sum;
    if (threadIdx.x == 0) {
        out[0] = (u32)(end - begin);
    }
}
