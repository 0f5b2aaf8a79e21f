// warp.cu - probes of what lanes do together, and of mbarriers.
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// One warp a case; 13 words out for each lane.
extern "C" __global__ void lanes(const u32 *in, u32 *out, int cases)
{
    u32 lane = threadIdx.x, x = in[blockIdx.x * 32 + lane], r, p;
    u32 *to = out + (blockIdx.x * 32 + lane) * 13;
    asm volatile("{.reg .pred q; shfl.sync.bfly.b32 %0|q, %2, 5, 0x1f, -1; selp.u32 %1, 1, 0, q;}"
                 : "=r"(r), "=r"(p) : "r"(x));
    to[0] = r, to[1] = p;
    asm volatile("{.reg .pred q; shfl.sync.up.b32 %0|q, %2, 3, 0x800, -1; selp.u32 %1, 1, 0, q;}"
                 : "=r"(r), "=r"(p) : "r"(x));
    to[2] = r, to[3] = p;
    asm volatile("{.reg .pred q; shfl.sync.down.b32 %0|q, %2, %3, 0x1f, -1; selp.u32 %1, 1, 0, q;}"
                 : "=r"(r), "=r"(p) : "r"(x), "r"(x % 40));
    to[4] = r, to[5] = p;
    asm volatile("{.reg .pred q; shfl.sync.idx.b32 %0|q, %2, %3, 0x181f, -1; selp.u32 %1, 1, 0, q;}"
                 : "=r"(r), "=r"(p) : "r"(x), "r"(x >> 8));
    to[6] = r, to[7] = p;
    to[8] = __match_any_sync(0xffffffff, x % 5);
    asm volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(r) : "r"(x));
    to[9] = r;
    asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(r) : "r"(x));
    to[10] = r;
    asm volatile("{.reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, -1;}"
                 : "=r"(r) : "r"(x & 1));
    to[11] = r;
    // which lane elect chooses is not documented
    u32 member = (x % 7 != 0) ? 1 : 0, mask = __ballot_sync(0xffffffff, member);
    r = 99;
    if (member) {
        asm volatile("{.reg .pred q; elect.sync %0|q, %1;}" : "=r"(r) : "r"(mask));
    }
    __syncwarp();
    to[12] = r;
}

// 16 x 16 bytes of words through stmatrix and ldmatrix, straight and transposed.
extern "C" __global__ void matrices(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(128) u32 tile[128];
    u32 lane = threadIdx.x, r[4];
    u32 row = shared_address(tile) + lane * 16;
    const u32 *at = in + blockIdx.x * 128;
    u32 *to = out + blockIdx.x * 512;
    for (int k = 0; k < 4; k++) {
        r[k] = at[k * 32 + lane];
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; k++) {
        to[k * 32 + lane] = tile[k * 32 + lane];
    }
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; k++) {
        to[128 + k * 32 + lane] = r[k];
    }
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(row),
                 "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
    __syncwarp();
    for (int k = 0; k < 4; k++) {
        to[256 + k * 32 + lane] = tile[k * 32 + lane];
        asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r[k]) : "r"(r[k]));
        to[384 + k * 32 + lane] = r[k];
    }
}

__device__ __forceinline__ u32 passed(u32 barrier, u32 parity)
{
    u32 r;
    asm volatile("{.reg .pred q; mbarrier.test_wait.parity.shared::cta.b64 q, [%1], %2; "
                 "selp.u32 %0, 1, 0, q;}" : "=r"(r) : "r"(barrier), "r"(parity) : "memory");
    return r;
}

__device__ __forceinline__ u32 pending(u32 barrier, u32 count)
{
    u64 state;
    u32 r;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(barrier), "r"(count)
                 : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(r) : "l"(state));
    return r;
}

// One thread walks an mbarrier through its corners; what each look sees is a word.
extern "C" __global__ void mbarriers(const u32 *in, u32 *out, int cases)
{
    __shared__ __align__(8) u64 object[2];
    __shared__ __align__(16) u32 source[8], target[8];
    u32 bar = shared_address(object), n = 0;
    u32 *to = out + blockIdx.x * 32;
    u32 count = 1 + in[blockIdx.x] % 9;
    if (threadIdx.x != 0) {
        return;
    }
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    to[n++] = passed(bar, 0), to[n++] = passed(bar, 1); // a fresh one: parity 1 has passed
    for (u32 k = 0; k < count; k++) {
        to[n++] = pending(bar, 1); // the count before this arrival
    }
    to[n++] = passed(bar, 0), to[n++] = passed(bar, 1);
    // bytes that come before they are expected: the phase must not complete by arrivals alone
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(bar) : "memory");
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(count) : "memory");
    to[n++] = passed(bar, 1);
    for (int k = 0; k < 8; k++) {
        source[k] = in[blockIdx.x] + k;
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 32, [%2];"
                 ::"r"(shared_address(target)), "r"(shared_address(source)), "r"(bar) : "memory");
    while (!passed(bar, 1)) {
    }
    to[n++] = target[7] - in[blockIdx.x];
    // dropping an arrival lowers the count of the phases to come
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 3;" ::"r"(bar) : "memory");
    asm volatile("{.reg .b64 s; mbarrier.arrive_drop.shared::cta.b64 s, [%0];}" ::"r"(bar) : "memory");
    to[n++] = pending(bar, 1), to[n++] = pending(bar, 1);
    to[n++] = passed(bar, 0);
    to[n++] = pending(bar, 1), to[n++] = pending(bar, 1);
    to[n++] = passed(bar, 1);
    while (n < 32) {
        to[n++] = 0;
    }
}
