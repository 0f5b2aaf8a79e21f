// tensor_copy.cu - a box of a tensor map as it comes to lie in shared memory.
typedef unsigned u32;
typedef unsigned long long u64;
struct __align__(64) tensor_map {
    u64 opaque[16];
};

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// `bytes` of the box are expected: a box that reaches past the tensor must count them all.
extern "C" __global__ void tensor_box(const __grid_constant__ tensor_map map, u32 *out, int x, int y,
                                      int z, int rank, u32 bytes)
{
    __shared__ __align__(1024) u32 tile[2048];
    __shared__ __align__(8) u64 object;
    u32 bar = shared_address(&object);
    for (u32 n = threadIdx.x; n < 2048; n += blockDim.x) {
        tile[n] = 0xa5a5a5a5;
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                     : "memory");
        if (rank == 2) {
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(tile)), "l"(&map), "r"(x),
                         "r"(y), "r"(bar) : "memory");
        } else {
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(tile)), "l"(&map),
                         "r"(x), "r"(y), "r"(z), "r"(bar) : "memory");
        }
    }
    u32 done = 0;
    for (u32 n = 0; n < 1u << 22 && !done; n++) { // else what is there is told
        asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], 0; "
                     "selp.u32 %0, 1, 0, q;}" : "=r"(done) : "r"(bar) : "memory");
    }
    for (u32 n = threadIdx.x; n < 2048; n += blockDim.x) {
        out[n] = tile[n];
    }
}
