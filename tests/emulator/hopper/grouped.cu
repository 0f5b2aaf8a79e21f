// grouped.cu - sums of the rows of matrices of different heights, one a CTA, through one tensor map
// that each CTA turns into its own: address and height replaced in shared memory, then published.
enum { COLS = 32, ROWS = 16, BOX_BYTES = COLS * ROWS * 4 };

struct Group {
    const u32 *values;
    u32 rows, first; // where its sums go
};

DEVICE void make_map(u32 map, TensorMap *to, Group group)
{
    if (lane_id() == 0) {
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(
                         map),
                     "l"(group.values)
                     : "memory");
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(
                         map),
                     "r"(group.rows)
                     : "memory");
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                 ".aligned [%0], [%1], 128;" ::"l"(to),
                 "r"(map)
                 : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to) : "memory");
}

extern "C" __global__ void __launch_bounds__(64)
grouped(const __grid_constant__ TensorMap pattern, TensorMap *maps, const Group *groups, u32 *sums)
{
    __shared__ __align__(128) u32 box[ROWS][COLS];
    __shared__ __align__(128) u32 map[32];
    __shared__ u64 barrier;
    Group group = groups[blockIdx.x];
    u32 full = shared_at(&barrier), phase = 0;

    if (threadIdx.x == 0) {
        barrier_init(full, 1);
        barrier_init_fence();
    }
    if (threadIdx.x < 32) {
        map[threadIdx.x] = ((const u32 *)&pattern)[threadIdx.x];
        __syncwarp();
        make_map(shared_at(map), &maps[blockIdx.x], group);
    }
    __syncthreads();
    for (u32 row = 0; row < group.rows; row += ROWS, phase ^= 1) {
        if (threadIdx.x == 0) {
            barrier_arrive_expect(full, BOX_BYTES);
            tensor_load(shared_at(box), &maps[blockIdx.x], full, 0, (int)row);
        }
        barrier_wait(full, phase);
        if (threadIdx.x < ROWS && row + threadIdx.x < group.rows) {
            u32 sum = 0;
            for (u32 i = 0; i < COLS; i++) {
                sum += box[threadIdx.x][i];
            }
            sums[group.first + row + threadIdx.x] = sum;
        }
        __syncthreads();
    }
}
