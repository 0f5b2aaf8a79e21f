// pipeline.cu - tiles that pass through mbarriers, and copies that track themselves by one. MUTANT names what is
// left out or wrong.
typedef unsigned long long u64;
typedef unsigned u32;
__device__ u32 at(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__device__ void init(u64 *b, u32 n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(b)), "r"(n) : "memory"); }
__device__ void wait(u64 *b, u32 parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
                 " @!p bra L; }" ::"r"(at(b)), "r"(parity) : "memory"); }
__device__ void arrive(u64 *b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(b)) : "memory"); }
__device__ void expect(u64 *b, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(at(b)), "r"(bytes) : "memory"); }
__device__ void load(void *to, const void *from, u32 bytes, u64 *b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1], %2, [%3];" ::"r"(at(to)), "l"(from), "r"(bytes), "r"(at(b))
                 : "memory"); }
__device__ void store(void *to, const void *from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(to), "r"(at(from)), "r"(bytes) : "memory"); }
__device__ void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef STAGES
#define STAGES 2
#endif
#ifndef EARLY
#define EARLY 1
#endif
enum { TILE = 512 };

// One warp loads, four compute, and store what they computed in bulk.
extern "C" __global__ void tiles(const float *in, float *out, int count)
{
    __shared__ alignas(128) float tile[STAGES][TILE], done[2][TILE];
    __shared__ u64 full[STAGES], empty[STAGES];
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, me = threadIdx.x - 32;

    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) { init(&full[s], 1); init(&empty[s], MUTANT == 1 ? 127 : 128); }
    if (MUTANT != 2) __syncthreads();
    if (warp == 0) {
        for (int n = 0; lane == 0 && n < count; n++) {
            const u32 s = n % STAGES, parity = n / STAGES & 1, bytes = sizeof tile[0];
            if (MUTANT != 3) wait(&empty[s], parity ^ (MUTANT == 4 ? 0 : 1));
            if (EARLY) expect(&full[s], MUTANT == 5 ? bytes - 16 : bytes);
            load(tile[s], in + n * TILE, MUTANT == 6 ? bytes - 16 : bytes, &full[s]);
            if (!EARLY) expect(&full[s], bytes);
        }
        return;
    }
    for (int n = 0; n < count; n++) {
        const u32 s = n % STAGES, parity = n / STAGES & 1;
        float v[4];
        if (MUTANT != 7) wait(&full[s], MUTANT == 8 ? parity ^ 1 : parity);
        if (MUTANT == 9) arrive(&empty[s]);
        for (int k = 0; k < 4; k++) v[k] = tile[s][me + 128 * k];
        if (MUTANT != 9) arrive(&empty[s]);
        if (me == 0 && MUTANT != 10) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        asm volatile("bar.sync 1, 128;" ::: "memory");
        for (int k = 0; k < 4; k++) done[n % 2][me + 128 * k] = v[k] * 2 + n;
        if (MUTANT != 11) fence();
        if (MUTANT != 12) asm volatile("bar.sync 1, 128;" ::: "memory");
        if (me == 0) { store(out + n * TILE, done[n % 2], sizeof done[0]); commit(); }
    }
    if (me == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Every thread copies for itself; an mbarrier tells the block when all have.
extern "C" __global__ void copies(const float *in, float *out, int count)
{
    __shared__ alignas(16) float tile[2][256];
    __shared__ u64 full[2];
    const u32 me = threadIdx.x;

    if (me == 0) { init(&full[0], 64); init(&full[1], 64); }
    __syncthreads();
    for (int n = 0; n <= count; n++) {
        if (n < count) {
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         ::"r"(at(&tile[n % 2][me * 4])), "l"(in + n * 256 + me * 4) : "memory");
            if (MUTANT == 1) arrive(&full[n % 2]);
            else asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];"
                              ::"r"(at(&full[n % 2])) : "memory");
        }
        if (n == 0) continue;
        wait(&full[(n - 1) % 2], (n - 1) / 2 & 1);
        for (int k = 0; k < 4; k++)
            out[(n - 1) * 256 + me + 64 * k] = tile[(n - 1) % 2][me + 64 * k] * 2 + (n - 1);
        if (MUTANT != 2) __syncthreads();
    }
}

// The first CTA of a pair loads for both; each sends the other its first words, and leaves when the other has read
// them.
extern "C" __global__ void pair(const float *in, float *out, int count)
{
    __shared__ alignas(128) float tile[TILE];
    __shared__ alignas(16) float got[128];
    __shared__ u64 full, sent, left;
    u32 rank, peer_got, peer_sent, peer_left;
    const u32 me = threadIdx.x;

    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer_got) : "r"(at(&got[me])), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer_sent) : "r"(at(&sent)), "r"(rank ^ 1));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(peer_left) : "r"(at(&left)), "r"(rank ^ 1));
    if (me == 0) {
        init(&full, 1); init(&sent, 1); init(&left, MUTANT == 2 ? 129 : 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expect(&full, sizeof tile); expect(&sent, sizeof got);
    }
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
                 ::: "memory");
    if (me == 0 && rank == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
                     "multicast::cluster [%0], [%1], %2, [%3], %4;"
                     ::"r"(at(tile)), "l"(in + blockIdx.x / 2 * TILE), "r"((u32)sizeof tile),
                       "r"(at(&full)), "h"((unsigned short)(MUTANT == 1 ? 1 : 3)) : "memory");
    wait(&full, 0);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];"
                 ::"r"(peer_got), "f"(tile[me] * 2 + rank), "r"(peer_sent) : "memory");
    wait(&sent, 0);
    out[blockIdx.x * 128 + me] = got[me];
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 ::"r"(peer_left) : "memory");
    if (MUTANT != 3) wait(&left, 0);
}
