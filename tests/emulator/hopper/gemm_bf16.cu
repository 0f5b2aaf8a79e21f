// gemm_bf16.cu - D[m, n] = sum over k of A[m, k] B[k, n], bf16 to fp32.
//
// A goes through registers (ldmatrix, then wgmma's register form); B lies n-major in shared memory,
// as two swizzled boxes side by side. One warpgroup; its thread 0 loads a stage ahead.
enum {
    ROWS = 64,
    COLS = 128,
    DEPTH = 64,
    STAGES = 2,
    A_BYTES = ROWS * DEPTH * 2,
    BOX_BYTES = DEPTH * 128, // 64 columns
    STAGE_BYTES = A_BYTES + 2 * BOX_BYTES,
};

DEVICE void load_stage(u32 stage, u32 full, const TensorMap *a, const TensorMap *b, int k)
{
    int row = (int)blockIdx.x * ROWS, col = (int)blockIdx.y * COLS;
    barrier_arrive_expect(full, STAGE_BYTES);
    tensor_load(stage, a, full, k, row);
    tensor_load(stage + A_BYTES, b, full, col, k);
    tensor_load(stage + A_BYTES + BOX_BYTES, b, full, col + 64, k);
}

DEVICE void multiply_stage(float (&sum)[64], u32 stage, u32 warp)
{
    u32 a[DEPTH / 16][4], lane = lane_id();
    for (u32 k = 0; k < DEPTH / 16; k++) {
        load_matrix4(a[k], stage + swizzle128(warp * 16 + (lane & 15), k * 32 + (lane >> 4) * 16));
    }
    wgmma_fence();
    for (u32 k = 0; k < DEPTH / 16; k++) {
        wgmma_bf16(sum, a[k], matrix_descriptor(stage + A_BYTES + k * 2048, BOX_BYTES, 1024), true);
    }
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(sum);
}

extern "C" __global__ void __launch_bounds__(128)
gemm_bf16(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, float *d, int m,
          int n, int k)
{
    extern __shared__ u8 memory[];
    u32 base = (shared_at(memory) + 1023) & ~1023u, full = base + STAGES * STAGE_BYTES;
    u32 warp = threadIdx.x / 32, lane = lane_id();
    int tiles = (k + DEPTH - 1) / DEPTH;
    float sum[64] = {};

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1);
        }
        barrier_init_fence();
        for (int s = 0; s < STAGES && s < tiles; s++) {
            load_stage(base + s * STAGE_BYTES, full + s * 8, &a, &b, s * DEPTH);
        }
    }
    __syncthreads();
    for (int t = 0; t < tiles; t++) {
        int s = t % STAGES;
        barrier_wait(full + s * 8, t / STAGES & 1);
        multiply_stage(sum, base + s * STAGE_BYTES, warp);
        __syncthreads();
        if (threadIdx.x == 0 && t + STAGES < tiles) {
            load_stage(base + s * STAGE_BYTES, full + s * 8, &a, &b, (t + STAGES) * DEPTH);
        }
    }
    for (int i = 0; i < 64; i++) {
        int row = (int)(blockIdx.x * ROWS + warp * 16 + lane / 4) + 8 * (i >> 1 & 1);
        int col = (int)(blockIdx.y * COLS + lane % 4 * 2) + i / 4 * 8 + (i & 1);
        if (row < m && col < n) {
            d[row * n + col] = sum[i];
        }
    }
}
