// stream.cu - y = 3 x + z in chunks. A warp loads a ring: x by bulk copies, z by cp.async, both
// arriving on the same mbarrier; four warps compute and store by bulk copies from two buffers.
enum {
    CHUNK = 512, // floats
    CHUNK_BYTES = CHUNK * 4,
    STAGES = 3,
    STAGE_BYTES = 2 * CHUNK_BYTES,
    BUFFERS = 2,
    CONSUMERS = 4, // warps
};

DEVICE void load_chunk(u32 stage, u32 full, const float *x, const float *z)
{
    if (lane_id() == 0) {
        barrier_arrive_expect(full, CHUNK_BYTES);
        bulk_load(stage, x, CHUNK_BYTES, full);
    }
    for (u32 i = lane_id() * 16; i < CHUNK_BYTES; i += 32 * 16) {
        copy16(stage + CHUNK_BYTES + i, (const u8 *)z + i);
    }
    copy_arrive(full);
}

extern "C" __global__ void __launch_bounds__(160)
stream(const float *x, const float *z, float *y, int chunks)
{
    __shared__ __align__(128) u8 ring[STAGES * STAGE_BYTES];
    __shared__ __align__(128) float4 output[BUFFERS][CHUNK / 4];
    __shared__ u64 barriers[2 * STAGES];
    u32 base = shared_at(ring), full = shared_at(barriers), empty = full + STAGES * 8;
    u32 step = 0;

    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + s * 8, 1 + 32);
            barrier_init(empty + s * 8, CONSUMERS);
        }
        barrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int c = (int)blockIdx.x; c < chunks; c += (int)gridDim.x, step++) {
            u32 s = step % STAGES;
            barrier_wait(empty + s * 8, (step / STAGES & 1) ^ 1);
            load_chunk(base + s * STAGE_BYTES, full + s * 8, x + c * CHUNK, z + c * CHUNK);
        }
        return;
    }
    u32 mine = threadIdx.x - 32;
    for (int c = (int)blockIdx.x; c < chunks; c += (int)gridDim.x, step++) {
        u32 s = step % STAGES, buffer = step % BUFFERS;
        const float4 *in = (const float4 *)(ring + s * STAGE_BYTES);
        barrier_wait(full + s * 8, step / STAGES & 1);
        float4 left = in[mine], right = in[CHUNK / 4 + mine];
        __syncwarp();
        if (lane_id() == 0) {
            barrier_arrive(empty + s * 8);
        }
        if (mine == 0) {
            bulk_wait_read<BUFFERS - 1>();
        }
        named_sync(1, 128);
        output[buffer][mine] = float4{3 * left.x + right.x, 3 * left.y + right.y,
                                      3 * left.z + right.z, 3 * left.w + right.w};
        fence_async();
        named_sync(1, 128);
        if (mine == 0) {
            bulk_store(y + c * CHUNK, shared_at(output[buffer]), CHUNK_BYTES);
            bulk_commit();
        }
    }
    if (mine == 0) {
        bulk_wait<0>();
    }
}
