// gemm_f16.cu - D[m, n] = sum over k of A[m, k] B[n, k], f16 to fp32, the way of sm_80: cp.async in
// several stages, ldmatrix, mma.sync. Shapes are multiples of the tile.
enum {
    ROWS = 64,
    COLS = 64,
    DEPTH = 32,
    STAGES = 3,
    PITCH = DEPTH * 2 + 16, // bytes; no two rows of a matrix share banks
    STAGE_BYTES = (ROWS + COLS) * PITCH,
};

DEVICE void load_tile(u32 to, const u16 *from, int k)
{
    for (int i = (int)threadIdx.x; i < 64 * 4; i += 128) {
        copy16(to + i / 4 * PITCH + i % 4 * 16, from + i / 4 * k + i % 4 * 8);
    }
}

DEVICE void multiply_stage(float (&sum)[2][4][4], u32 stage, u32 warp)
{
    u32 lane = lane_id(), a = stage + (warp / 2 * 32 + (lane & 15)) * PITCH + (lane >> 4) * 16;
    u32 b = stage + (ROWS + warp % 2 * 32 + (lane & 7) + (lane >> 4) * 8) * PITCH +
            (lane >> 3 & 1) * 16;
    for (u32 k = 0; k < DEPTH / 16; k++) {
        u32 left[2][4], right[2][4];
        for (u32 i = 0; i < 2; i++) {
            load_matrix4(left[i], a + i * 16 * PITCH + k * 32);
            load_matrix4(right[i], b + i * 16 * PITCH + k * 32);
        }
        for (u32 i = 0; i < 2; i++) {
            for (u32 j = 0; j < 4; j++) {
                mma_f16(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(128)
gemm_f16(const u16 *a, const u16 *b, float *d, int n, int k)
{
    __shared__ __align__(16) u8 memory[STAGES * STAGE_BYTES];
    u32 base = shared_at(memory), warp = threadIdx.x / 32, lane = lane_id();
    int tiles = k / DEPTH;
    float sum[2][4][4] = {};

    a += (int)blockIdx.x * ROWS * k;
    b += (int)blockIdx.y * COLS * k;
    for (int s = 0; s < STAGES - 1; s++) {
        load_tile(base + s * STAGE_BYTES, a + s * DEPTH, k);
        load_tile(base + s * STAGE_BYTES + ROWS * PITCH, b + s * DEPTH, k);
        copy_commit();
    }
    for (int t = 0; t < tiles; t++) {
        int next = t + STAGES - 1;
        copy_wait<STAGES - 2>();
        __syncthreads();
        if (next < tiles) {
            u32 stage = base + next % STAGES * STAGE_BYTES;
            load_tile(stage, a + next * DEPTH, k);
            load_tile(stage + ROWS * PITCH, b + next * DEPTH, k);
        }
        copy_commit();
        multiply_stage(sum, base + t % STAGES * STAGE_BYTES, warp);
    }
    for (u32 i = 0; i < 2 * 4 * 4; i++) {
        u32 row = blockIdx.x * ROWS + warp / 2 * 32 + i / 16 * 16 + lane / 4 + (i >> 1 & 1) * 8;
        u32 col = blockIdx.y * COLS + warp % 2 * 32 + i / 4 % 4 * 8 + lane % 4 * 2 + (i & 1);
        d[row * n + col] = sum[i / 16][i / 4 % 4][i % 4];
    }
}
