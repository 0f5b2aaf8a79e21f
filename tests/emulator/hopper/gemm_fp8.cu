// gemm_fp8.cu - D[m, n] = sum over k of A[m, k] B[n, k], e4m3 to bf16, each 128 of k with a scale of
// its row and one of the tile.
//
// Persistent and warp-specialised: warpgroup 0 loads, 1 and 2 multiply 64 rows each and add their
// products up outside of the tensor core. With CLUSTER 2 a pair of CTAs shares its columns: each
// loads half of B for both.
#ifndef CLUSTER
#define CLUSTER 1
#endif

enum {
    ROWS = 128,
    COLS = 64,
    DEPTH = 128,
    STAGES = 3,
    A_BYTES = ROWS * DEPTH,
    B_BYTES = COLS * DEPTH,
    STAGE_BYTES = A_BYTES + B_BYTES,
    D_BYTES = 64 * COLS * 2, // of one warpgroup
    CONSUMERS = 8,           // warps
};

struct Work {
    int row, col;
};

// Where tile `index` of this CTA lies.
DEVICE Work work_at(u32 index, int m)
{
    int down = (m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER);
    int rank = CLUSTER == 1 ? 0 : (int)cluster_rank();
    return {((int)index % down * CLUSTER + rank) * ROWS, (int)index / down * COLS};
}

DEVICE u32 count_work(int m, int n)
{
    return (u32)((m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER) * ((n + COLS - 1) / COLS));
}

DEVICE void load_stage(u32 stage, u32 full, const TensorMap *a, const TensorMap *b, Work at, int k)
{
    barrier_arrive_expect(full, STAGE_BYTES);
    tensor_load(stage, a, full, k, at.row);
    if (CLUSTER == 1) {
        tensor_load(stage + A_BYTES, b, full, k, at.col);
    } else {
        u32 rank = cluster_rank();
        tensor_load_multicast(stage + A_BYTES + rank * (B_BYTES / 2), b, full, 3,
                              int2{k, at.col + (int)rank * (COLS / 2)});
    }
}

DEVICE void multiply_stage(float (&part)[32], u32 a, u32 b)
{
    wgmma_fence();
    for (u32 k = 0; k < DEPTH / 32; k++) {
        wgmma_fp8(part, matrix_descriptor(a + k * 32, 16, 1024),
                  matrix_descriptor(b + k * 32, 16, 1024), k != 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(part);
}

DEVICE void release_stage(u32 empty)
{
    if (CLUSTER == 1) {
        if (lane_id() == 0) {
            barrier_arrive(empty);
        }
    } else if (lane_id() < CLUSTER) {
        barrier_arrive_at(empty, lane_id());
    }
}

// 64 x 64 sums of a warpgroup as swizzled rows of bf16.
DEVICE void stage_output(const float (&sum)[32], u32 to, u32 warp)
{
    u32 lane = lane_id(), row = warp * 16 + (lane & 15);
    for (u32 c = 0; c < 4; c++) {
        store_matrix4(to + swizzle128(row, c * 32 + (lane >> 4) * 16),
                      pack_bf16(sum[8 * c], sum[8 * c + 1]),
                      pack_bf16(sum[8 * c + 2], sum[8 * c + 3]),
                      pack_bf16(sum[8 * c + 4], sum[8 * c + 5]),
                      pack_bf16(sum[8 * c + 6], sum[8 * c + 7]));
    }
}

struct Shape {
    int m, n, k;
};

// Addresses in shared memory.
struct Ring {
    u32 base, output, full, empty;
};

DEVICE void load_all(Ring r, const TensorMap *a, const TensorMap *b, Shape shape)
{
    u32 works = count_work(shape.m, shape.n), step = 0;
    for (u32 w = blockIdx.x / CLUSTER; w < works; w += gridDim.x / CLUSTER) {
        for (int k = 0; k < shape.k; k += DEPTH, step++) {
            u32 s = step % STAGES;
            barrier_wait_cluster(r.empty + s * 8, (step / STAGES & 1) ^ 1);
            load_stage(r.base + s * STAGE_BYTES, r.full + s * 8, a, b, work_at(w, shape.m), k);
        }
    }
}

// Sums of a warpgroup's half of the tile over all stages, from `step` on.
DEVICE void multiply_work(float (&sum)[32], Ring r, u32 &step, Shape shape, Work at,
                          const float *row_scale, const float *tile_scale)
{
    u32 half = threadIdx.x / 128 - 1;
    int row = at.row + (int)(half * 64 + threadIdx.x / 32 % 4 * 16 + lane_id() / 4);
    float part[32];
    for (int t = 0; t * DEPTH < shape.k; t++, step++) {
        u32 s = step % STAGES, stage = r.base + s * STAGE_BYTES;
        barrier_wait(r.full + s * 8, step / STAGES & 1);
        multiply_stage(part, stage + half * 64 * DEPTH, stage + A_BYTES);
        release_stage(r.empty + s * 8);
        float high = row < shape.m ? row_scale[t * shape.m + row] * tile_scale[t] : 0;
        float low = row + 8 < shape.m ? row_scale[t * shape.m + row + 8] * tile_scale[t] : 0;
        for (int i = 0; i < 32; i++) {
            sum[i] += part[i] * (i & 2 ? low : high);
        }
    }
}

DEVICE void multiply_all(Ring r, const TensorMap *d, Shape shape, const float *row_scale,
                         const float *tile_scale)
{
    u32 works = count_work(shape.m, shape.n), step = 0;
    u32 half = threadIdx.x / 128 - 1, mine = r.output + half * D_BYTES;
    bool leader = threadIdx.x % 128 == 0;
    for (u32 w = blockIdx.x / CLUSTER; w < works; w += gridDim.x / CLUSTER) {
        float sum[32] = {};
        Work at = work_at(w, shape.m);
        multiply_work(sum, r, step, shape, at, row_scale, tile_scale);
        if (leader) {
            bulk_wait_read<0>();
        }
        named_sync(1 + half, 128);
        stage_output(sum, mine, threadIdx.x / 32 % 4);
        fence_async();
        named_sync(1 + half, 128);
        if (leader) {
            tensor_store(d, mine, at.col, at.row + (int)half * 64);
            bulk_commit();
        }
    }
    if (leader) {
        bulk_wait<0>();
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
gemm_fp8(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
         const __grid_constant__ TensorMap d, const float *row_scale, const float *tile_scale, int m,
         int n, int k)
{
    extern __shared__ u8 memory[];
    u32 base = (shared_at(memory) + 1023) & ~1023u;
    u32 output = base + STAGES * STAGE_BYTES;
    u32 full = output + 2 * D_BYTES, empty = full + STAGES * 8;

    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1);
            barrier_init(empty + s * 8, CONSUMERS * CLUSTER);
        }
        barrier_init_fence();
    }
    if (CLUSTER == 1) {
        __syncthreads();
    } else {
        cluster_sync();
    }
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            load_all({base, output, full, empty}, &a, &b, {m, n, k});
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_all({base, output, full, empty}, &d, {m, n, k}, row_scale, tile_scale);
    }
    if (CLUSTER != 1) {
        cluster_sync(); // nobody arrives at a CTA that has left
    }
}
