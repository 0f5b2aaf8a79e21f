// tensor_ranks.cu - a box of a tensor map of one to five dimensions as it comes to lie in shared memory.
typedef unsigned u32;
typedef unsigned long long u64;
struct __align__(64) tensor_map {
    u64 opaque[16];
};
enum { WORDS = 512 };

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

#define COPY(rank, coordinates, ...)                                                                         \
    asm volatile("cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], " \
                 "[%1, " coordinates "], [%2];" ::"r"(shared_address(tile)), "l"(&map), "r"(bar), __VA_ARGS__ \
                 : "memory")

// `bytes` of the box are expected: as many as its element strides leave, in and outside of the tensor.
extern "C" __global__ void tensor_ranks(const __grid_constant__ tensor_map map, u32 *out, int c0, int c1,
                                        int c2, int c3, int c4, int rank, u32 bytes)
{
    __shared__ __align__(1024) u32 tile[WORDS];
    __shared__ __align__(8) u64 object;
    u32 bar = shared_address(&object), done = 0;
    for (u32 n = threadIdx.x; n < WORDS; n += blockDim.x) {
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
        switch (rank) {
        case 1: COPY(1, "{%3}", "r"(c0)); break;
        case 2: COPY(2, "{%3, %4}", "r"(c0), "r"(c1)); break;
        case 3: COPY(3, "{%3, %4, %5}", "r"(c0), "r"(c1), "r"(c2)); break;
        case 4: COPY(4, "{%3, %4, %5, %6}", "r"(c0), "r"(c1), "r"(c2), "r"(c3)); break;
        default: COPY(5, "{%3, %4, %5, %6, %7}", "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)); break;
        }
    }
    for (u32 n = 0; n < 1u << 22 && !done; n++) { // else what is there is told
        asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, [%1], 0; "
                     "selp.u32 %0, 1, 0, q;}" : "=r"(done) : "r"(bar) : "memory");
    }
    for (u32 n = threadIdx.x; n < WORDS; n += blockDim.x) {
        out[n] = done ? tile[n] : 0xdeadbeef;
    }
}
