// pipeline.cuh - the kernel of a Hopper product: its warpgroups' roles, around a ring of stages.
//
// Each CTA is a pipeline (docs/kernels/fp8_gemm.md has the picture). The last warpgroup loads: one
// warp has the copy engine fill a ring of stages, 128 of K each, three warps bring the scales
// along. The other warpgroups multiply with wgmma and add what the tensor core summed over one
// scale group (its 13 bits hold no longer sum well) to fp32 registers: sum = fma(scale of row *
// scale of column, part, sum). K runs in one fixed order.
//
// One operand gives the instruction's 64 rows, the other its 8 to 256 columns: A and B, or with
// `swap` B and A, so that few rows of A do not pay for 64. Here "row" and "column" mean those; D is
// turned around when it is stored.
#pragma once
#include "device/expert_fill.cuh"
#include "sm90/gated.cuh"
#include "sm90/load.cuh"
#include "sm90/multiply.cuh"
#include "sm90/nibbles.cuh"
#include "sm90/output.cuh"

// What a launch is given. Strides are in elements; maps lie in the kernel's parameters.
struct Operands {
    const TensorMap *a_map, *b_map, *d_map;
    ScaleSource a_scale, b_scale;
    void *d;
    i64 d_row, d_batch;
    i32 m, n, k, batch;
    void *workspace;     // of clusters that share tiles; of grouped K, places of maps
    ExpertGroups groups; // of grouped rows or K
    CodesTarget codes;   // of D as codes
    const u8 *a, *b;     // of grouped K
};

template <Config C>
__device__ __forceinline__ void multiply_all(Multiplier<C> line, const Schedule<C> &schedule,
                                             const Output<C> &out, const Sharing<C> &sharing,
                                             const CodesTarget &codes)
{
    using S = Schedule<C>;
    const i32 row = line.row / S::kOfRows, column = line.column / S::kOfColumns; // of D's tile
    for (i32 i = schedule.first(); i < schedule.tiles; i += schedule.step()) {
        const Work w = schedule.at(i);
        if (out.nothing(w, w.row + row, w.column + column)) {
            line.skip(w.blocks);
            continue;
        }
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
            add_parts<C>(sum, out, line.ring.base, w.batch, w.row + row, w.column + column);
        } else if constexpr (Tile<C>::kGated) {
            const i32 strip = row / 16 + i32(threadIdx.x) % 128 / 32;
            Gated<C>{out, codes, line.ring.base + Tile<C>::kLargestAt}.all(
                sum, w, w.row + row, w.column + column, strip);
        } else {
            out.all(sum, w, w.row + row, w.column + column);
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
        if constexpr (T::kSorted) {
            barrier_init(full + C.stages * 16, 1);
        }
    }
    barrier_init_fence();
}

// The table of grouped rows, made by the first warp, or of grouped K.
template <Config C> __device__ __forceinline__ Groups groups_of(u8 *shared, const Operands &o)
{
    u32 *table = reinterpret_cast<u32 *>(shared + Tile<C>::kTableAt);
    if constexpr (Tile<C>::kGroupedK) {
        Schedule<C>::Experts::make(table, o.groups, o.k);
        __syncthreads();
    } else if constexpr (C.layout != UNGROUPED) {
        if (threadIdx.x < 32) {
            Schedule<C>::Blocks::make(table, o.groups);
        }
        __syncthreads();
    }
    return {o.groups, table};
}

template <Config C>
__device__ __forceinline__ void load_all(const Operands &o, const Groups &groups, u8 *shared,
                                         u32 base)
{
    using T = Tile<C>;
    using S = Schedule<C>;
    const u32 thread = threadIdx.x % 128; // the first warp's lane drives the copy engine
    constexpr int kOfRows = T::kRowGran == 1 ? 64 : 32; // threads
    if (thread >= 32 + kOfRows) {
        load_scales<C, T::kColumnScales, 96 - kOfRows, T::kColumnScalesAt>(
            {base}, S::make(o.m, o.n, o.k, o.batch, groups), C.swap ? o.a_scale : o.b_scale, shared,
            thread - 32 - kOfRows);
    } else if (thread >= 32) {
        load_scales<C, T::kRowScales, kOfRows, T::kRowScalesAt>(
            {base}, S::make(o.m, o.n, o.k, o.batch, groups), C.swap ? o.b_scale : o.a_scale, shared,
            thread - 32);
    } else if constexpr (T::kGroupedK) {
        const ExpertMaps<C> maps = {
            .places = static_cast<TensorMap *>(o.workspace) +
                      i64(blockIdx.x) * (ExpertMaps<C>::kPlaces * 2),
            .patterns = base + T::kPatternsAt,
            .a = o.a,
            .b = o.b,
            .m = o.m,
            .n = o.n,
        };
        maps.open(o.a_map, o.b_map);
        load_experts<C>({base}, S::make(o.m, o.n, o.k, o.batch, groups), maps);
    } else if (threadIdx.x % 32 == 0) {
        load_operands<C>({base}, S::make(o.m, o.n, o.k, o.batch, groups),
                         C.swap ? o.b_map : o.a_map, C.swap ? o.a_map : o.b_map, o.n / 2);
    }
    __syncwarp();
}

template <Config C> __device__ __forceinline__ void pipeline(const Operands &o)
{
    using T = Tile<C>;
    extern __shared__ __align__(1024) u8 shared[];
    const u32 base = u32(__cvta_generic_to_shared(shared));
    const i32 group = __shfl_sync(0xffffffffu, i32(threadIdx.x) / 128, 0);
    if (threadIdx.x == 0) {
        if constexpr (!T::kGroupedK) {
            tensor_prefetch(o.a_map);
            tensor_prefetch(o.b_map);
        }
        barriers_init<C>(base);
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync();
    } else {
        __syncthreads();
    }
    grid_wait();
    grid_release();
    const Groups groups = groups_of<C>(shared, o);
    if (group == T::kGroups) {
        if constexpr (T::kMoves) {
            registers_lower<C.loader_registers>();
        }
        load_all<C>(o, groups, shared, base);
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
        const Output<C> out = {o.d_map, static_cast<typename Output<C>::Out *>(o.d),
                               o.d_row, o.d_batch,
                               o.m,     T::kGated ? o.n / 2 : o.n,
                               to,      o.groups.groups};
        multiply_all<C>({{base}, shared, row, column},
                        Schedule<C>::make(o.m, o.n, o.k, o.batch, groups), out, {o.workspace},
                        o.codes);
        if constexpr (C.fill) {
            constexpr i32 kWarps = T::kGroups * 4, kWidth = T::kCodes ? 1 : C.out_f32 ? 4 : 2;
            fill_rows<C.layout, 16>(o.groups, static_cast<u8 *>(o.d), o.d_row * kWidth,
                                    i32(blockIdx.x) * kWarps + i32(threadIdx.x) / 32,
                                    i32(gridDim.x) * kWarps);
        }
    }
    if constexpr (T::kCluster > 1) {
        cluster_sync(); // no CTA ends while another reads its memory or arrives on its barriers
    }
}
