// sm90_wgmma.cu - D[b,m,n] = sum over k of A[b,m,k] * SFA * B[b,n,k] * SFB (+ D), e4m3 operands,
// bf16 or fp32 D, for Hopper.
//
// Each CTA is a pipeline (docs/kernels/fp8_gemm.md has the picture). The last warpgroup loads: one
// warp has the copy engine fill a ring of stages, 128 of K each, three warps bring the scales
// along. The other warpgroups multiply with wgmma and add what the tensor core summed over one
// scale group (its 13 bits hold no longer sum well) to fp32 registers: sum = fma(scale of row *
// scale of column, part, sum). K runs in one fixed order.
//
// One operand gives the instruction's 64 rows, the other its 8 to 256 columns: A and B, or with
// `swap` B and A, so that few rows of A do not pay for 64. Here "row" and "column" mean those; D is
// turned around when it is stored. Domains and launch: sm90_wgmma.yaml.
#include "fp8_gemm/sm90_load.cuh"
#include "fp8_gemm/sm90_multiply.cuh"
#include "fp8_gemm/sm90_nibbles.cuh"
#include "fp8_gemm/sm90_output.cuh"

template <Config C>
__device__ __forceinline__ void multiply_all(Multiplier<C> line, const Schedule<C> &schedule,
                                             const Output<C> &out, const Sharing<C> &sharing)
{
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        Sums<C> sum = {};
        if constexpr (C.b_e2m1) {
            nibbles_tile<C>(line, sum, w.blocks);
        } else {
            line.tile(sum, w.blocks);
        }
        if constexpr (Schedule<C>::kShares) {
            if (w.first + w.blocks < schedule.k_blocks) {
                sharing.give(sum);
                continue;
            }
            if (w.first > 0) {
                sharing.take(sum, schedule, schedule.from - w.first);
            }
        }
        if constexpr (C.split_k > 1) {
            add_parts<C>(sum, out, line.ring.base, w.batch, w.row + line.row,
                         w.column + line.column);
        } else {
            out.all(sum, w.batch, w.row + line.row, w.column + line.column);
        }
    }
    if (C.staged && threadIdx.x % 128 == 0) {
        bulk_wait();
    }
}

template <Config C> __device__ __forceinline__ void barriers_init(u32 base)
{
    using T = Tile<C>;
    for (int s = 0; s < C.stages; s++) {
        const u32 full = base + T::kBarriersAt + s * 8;
        barrier_init(full, 1 + 3); // the engine's warp and those of the scales
        barrier_init(full + C.stages * 8, T::kGroups * 4 * (C.pair != 0 ? 2 : 1));
    }
    barrier_init_fence();
}

// Strides are in elements. a_first_group: groups of A's scales from batch to batch, where the
// batches lie side by side.
template <Config C>
__global__ void __launch_bounds__(Tile<C>::kThreads, C.residency)
    fp8_gemm_sm90_wgmma(const __grid_constant__ TensorMap a_map,
                        const __grid_constant__ TensorMap b_map,
                        const __grid_constant__ TensorMap d_map, const void *__restrict__ a_scale,
                        const void *__restrict__ b_scale, void *d, i32 m, i32 n, i32 k, i32 batch,
                        i64 d_row, i64 d_batch, i64 a_scale_row, i64 a_scale_group,
                        i64 a_scale_batch, i64 a_first_group, i64 b_scale_row, i64 b_scale_group,
                        i64 b_scale_batch, void *workspace)
{
    using T = Tile<C>;
    using S = Schedule<C>;
    extern __shared__ __align__(1024) u8 shared[];
    const u32 base = u32(__cvta_generic_to_shared(shared));
    const i32 group = __shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0);
    if (threadIdx.x == 0) {
        tensor_prefetch(&a_map);
        tensor_prefetch(&b_map);
        barriers_init<C>(base);
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    grid_wait();
    grid_release();
    if (group == T::kGroups) {
        if constexpr (T::kMoves) {
            registers_lower<C.loader_registers>();
        }
        const ScaleSource of_a = {a_scale,       a_scale_row, a_scale_group,          a_scale_batch,
                                  a_first_group, m,           ceil_div(k, C.a_gran_k)};
        const ScaleSource of_b = {b_scale, b_scale_row, b_scale_group,          b_scale_batch,
                                  0,       n,           ceil_div(k, C.b_gran_k)};
        const u32 thread = threadIdx.x % 128; // the first warp's lane drives the copy engine
        constexpr int kOfRows = T::kRowGran == 1 ? 64 : 32; // threads
        if (thread >= 32 + kOfRows) {
            load_scales<C, T::kColumnScales, 96 - kOfRows, T::kColumnScalesAt>(
                {base}, S::make(m, n, k, batch), C.swap ? of_a : of_b, shared,
                thread - 32 - kOfRows);
        } else if (thread >= 32) {
            load_scales<C, T::kRowScales, kOfRows, T::kRowScalesAt>(
                {base}, S::make(m, n, k, batch), C.swap ? of_b : of_a, shared, thread - 32);
        } else if (threadIdx.x % 32 == 0) {
            load_operands<C>({base}, S::make(m, n, k, batch), C.swap ? &b_map : &a_map,
                             C.swap ? &a_map : &b_map);
        }
        __syncwarp();
        if constexpr (C.split_k > 1) {
            cluster_sync(); // of add_parts
        }
    } else {
        if constexpr (T::kMoves) {
            registers_raise<T::kMultiplier>();
        }
        const i32 row = group / C.column_groups * T::kTiles * 64,
                  column = group % C.column_groups * T::kWide;
        const u32 to = base + T::kOutputAt + group * T::kTiles * Output<C>::Staged::kBytes;
        const Output<C> out = {
            &d_map, static_cast<typename Output<C>::Out *>(d), d_row, d_batch, m, n, to};
        multiply_all<C>({{base}, shared, row, column}, S::make(m, n, k, batch), out, {workspace});
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync(); // no CTA ends while another reads its memory or arrives on its barriers
    }
}
