// histogram.cu - how often each byte value occurs: a cluster of four holds 64 bins a CTA, and each
// thread counts in the shared memory of the bin's owner.
enum { CTAS = 4, BINS = 256 / CTAS, THREADS = 128 };

DEVICE void count_at(u32 address)
{
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(address) : "memory");
}

extern "C" __global__ void __cluster_dims__(CTAS, 1, 1) __launch_bounds__(THREADS)
histogram(const u8 *values, u32 *counts, int len)
{
    __shared__ u32 bins[BINS];
    u32 base = shared_at(bins), rank = cluster_rank();
    for (u32 i = threadIdx.x; i < BINS; i += THREADS) {
        bins[i] = 0;
    }
    cluster_sync();
    for (int i = (int)(rank * THREADS + threadIdx.x); i < len; i += CTAS * THREADS) {
        u32 value = values[i];
        count_at(shared_map(base + value % BINS * 4, value / BINS));
    }
    cluster_sync();
    for (u32 i = threadIdx.x; i < BINS; i += THREADS) {
        counts[rank * BINS + i] = bins[i];
    }
}
