// select.cu - the `wanted` largest of `len` keys (a multiple of 256), in the order of their places.
//
// Four rounds of radix 256: each half of the block counts its half of the keys, the first half adds
// the counts up, all scan them. Then a stable compaction. Ties go to the lower place.
enum { THREADS = 256, HALF = THREADS / 2, MOST = 2048 };

// Sum over the threads up to this one. `totals` holds a word a warp and is free again after the
// next barrier.
DEVICE u32 block_scan(u32 value, u32 *totals)
{
    u32 warp = threadIdx.x / 32, before = 0;
    for (u32 i = 1; i < 32; i *= 2) {
        u32 other = __shfl_up_sync(0xffffffff, value, i);
        value += lane_id() >= i ? other : 0;
    }
    if (lane_id() == 31) {
        totals[warp] = value;
    }
    __syncthreads();
    for (u32 w = 0; w < warp; w++) {
        before += totals[w];
    }
    return before + value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
select_largest(const u32 *keys, u32 *places, int len, u32 wanted)
{
    __shared__ u32 counts[2][256], totals[THREADS / 32], chosen, taken;
    u32 half = threadIdx.x / HALF, mine = threadIdx.x % HALF;
    u32 prefix = 0, mask = 0, need = wanted;
    for (int shift = 24; shift >= 0; shift -= 8) {
        counts[half][mine] = 0;
        counts[half][mine + HALF] = 0;
        named_sync(1 + half, HALF);
        for (int i = (int)(half * HALF + mine); i < len; i += THREADS) {
            if ((keys[i] & mask) == prefix) {
                atomicAdd(&counts[half][keys[i] >> shift & 255], 1u);
            }
        }
        if (half == 1) {
            named_arrive(3, THREADS);
        } else {
            named_sync(3, THREADS);
            counts[0][mine] += counts[1][mine];
            counts[0][mine + HALF] += counts[1][mine + HALF];
        }
        __syncthreads();
        u32 digit = 255 - threadIdx.x, count = counts[0][digit];
        u32 sum = block_scan(count, totals);
        if (sum >= need && sum - count < need) {
            chosen = digit;
            taken = sum - count;
        }
        __syncthreads();
        prefix |= chosen << shift;
        mask |= 255u << shift;
        need -= taken;
    }
    u32 each = (u32)len / THREADS, from = threadIdx.x * each, flags = 0;
    for (u32 i = from; i < from + each; i++) {
        flags += keys[i] > prefix ? 1u << 16 : keys[i] == prefix ? 1u : 0u;
    }
    u32 before = block_scan(flags, totals) - flags, larger = before >> 16, ties = before & 0xffff;
    for (u32 i = from; i < from + each; i++) {
        bool tie = keys[i] == prefix;
        if (keys[i] > prefix || (tie && ties < need)) {
            places[larger + (ties < need ? ties : need)] = i;
        }
        larger += keys[i] > prefix;
        ties += tie;
    }
}
