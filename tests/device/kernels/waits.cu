// waits.cu - probes of who waits for whom, and for how long.
//
// Every loop has an end: a device that does otherwise than expected answers with another word.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// Warps that exited before barriers of the whole CTA and of a count: the others meet without them.
// Bit w of the case's word modulo 15: warp w leaves.
extern "C" __global__ void warps_leave(const u32 *in, u32 *out, int cases)
{
    __shared__ u32 met[2][4];
    u32 warp = threadIdx.x / 32, leave = in[blockIdx.x] % 15, sum = 0;
    u32 *to = out + blockIdx.x * 12 + warp * 3;
    if (threadIdx.x < 8) {
        met[threadIdx.x / 4][threadIdx.x % 4] = 0;
    }
    __syncthreads();
    if (leave >> warp & 1) {
        if (threadIdx.x % 32 == 0) {
            to[0] = 0xe0 + warp, to[1] = 0, to[2] = 0;
        }
        return;
    }
    if (threadIdx.x % 32 == 0) {
        met[0][warp] = 1u << warp;
    }
    asm volatile("bar.sync 0;" ::: "memory");
    for (int k = 0; k < 4; k++) {
        sum |= met[0][k];
    }
    if (threadIdx.x % 32 == 0) {
        to[0] = 0x100 + warp, to[1] = sum;
        met[1][warp] = 1u << warp;
    }
    u32 threads = 32 * (4 - __popc(leave));
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
    sum = 0;
    for (int k = 0; k < 4; k++) {
        sum |= met[1][k];
    }
    if (threadIdx.x % 32 == 0) {
        to[2] = sum;
    }
}

#if __CUDA_ARCH__ == 900

// The least and nearly the most that setmaxnreg gives: one warpgroup goes down to 24 registers and
// leaves, two go up to 240. What they hold in registers comes through.
extern "C" __global__ void __launch_bounds__(384, 1) registers(const u32 *in, u32 *out, int cases)
{
    u32 group = threadIdx.x / 128, held[16], sum = 0;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;" ::: "memory");
        out[blockIdx.x * 384 + threadIdx.x] = 24;
        return;
    }
    for (int k = 0; k < 16; k++) {
        held[k] = in[blockIdx.x * 16 + k] * (threadIdx.x + k);
        asm volatile("" : "+r"(held[k]));
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;" ::: "memory");
    for (int k = 0; k < 16; k++) {
        asm volatile("" : "+r"(held[k]));
        sum = sum * 31 + held[k];
    }
    out[blockIdx.x * 384 + threadIdx.x] = sum;
}

// A bulk store whose thread leaves without a wait.
extern "C" __global__ void stores_left(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(128) u32 tile[64];
    if (threadIdx.x != 0) {
        return;
    }
    for (int k = 0; k < 64; k++) {
        tile[k] = in[blockIdx.x * 64 + k];
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(
                     __cvta_generic_to_global(out + blockIdx.x * 64)),
                 "r"(shared_address(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ u32 tried(u32 barrier, u32 parity)
{
    u32 r;
    asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], %2; "
                 "selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"(barrier), "r"(parity) : "memory");
    return r;
}

// A copy that the 32 lanes start at once with one set of operands; the bytes of one are expected.
extern "C" __global__ void lanes_copy(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(128) u32 tile[64];
    __shared__ __align__(8) u64 object;
    u32 bar = shared_address(&object), done = 0;
    u32 *to = out + blockIdx.x * 66;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(bar) : "memory");
    }
    __syncwarp();
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                 ::"r"(shared_address(tile)), "l"(__cvta_generic_to_global(in + blockIdx.x * 64)),
                 "r"(bar) : "memory");
    for (int k = 0; k < 1000 && !done; k++) {
        done = tried(bar, 0);
    }
    if (threadIdx.x == 0) {
        to[64] = done, to[65] = tried(bar, 1);
    }
    for (u32 k = threadIdx.x; k < 64; k += 32) {
        to[k] = done ? tile[k] : 0;
    }
}

// Warp 0 waits for its wgmma while the others sleep before they commit theirs: how many had woken,
// itself among them, when it came through.
extern "C" __global__ void wait_alone(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(128) u32 tiles[64 * 8 + 8 * 8];
    __shared__ volatile u32 awake[4];
    u32 warp = threadIdx.x / 32, sleep = warp == 0 ? 0 : 500000, seen = 0;
    float d0 = in[blockIdx.x] >> 31, d1 = d0, d2 = d0, d3 = d0; // zeros that are loaded
    asm volatile("" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3));
    for (u32 k = threadIdx.x; k < 64 * 8 + 8 * 8; k += 128) {
        tiles[k] = 0x3c003c00; // f16 ones
    }
    awake[warp] = 0;
    u64 a = (u64)shared_address(tiles) >> 4 | 8ull << 16 | 16ull << 32;
    u64 b = (u64)shared_address(tiles + 64 * 8) >> 4 | 8ull << 16 | 16ull << 32;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
    asm volatile("nanosleep.u32 %0;" ::"r"(sleep) : "memory"); // no branch: all go the same way
    awake[warp] = 1;
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)::"memory");
    for (int k = 0; k < 4; k++) {
        seen += awake[k];
    }
    if (threadIdx.x == 0) {
        out[blockIdx.x * 2] = seen;
        out[blockIdx.x * 2 + 1] = __float_as_uint(d0 + d1 + d2 + d3);
    }
}

__device__ __forceinline__ u64 now()
{
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

// What a try_wait that finds nothing answers, and the nanoseconds that it takes: as it is, and with
// a hint of 1 ms.
extern "C" __global__ void try_wait(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(8) u64 object;
    u32 bar = shared_address(&object), r;
    u32 *to = out + blockIdx.x * 5;
    if (threadIdx.x != 0) {
        return;
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    u64 begin = now();
    to[0] = tried(bar, 0);
    to[1] = (u32)(now() - begin);
    begin = now();
    asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], 0, %2; "
                 "selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"(bar), "r"(1000000u) : "memory");
    to[2] = r;
    to[3] = (u32)(now() - begin);
    to[4] = tried(bar, 1); // the phase before
}

#endif
