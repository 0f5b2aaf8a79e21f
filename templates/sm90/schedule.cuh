// schedule.cuh - which tiles of D, or which K blocks of them, a cluster makes, and in which order.
#pragma once
#include "sm90/tile.cuh"

// A tile of D that a cluster makes, or the K blocks that this CTA sums for it.
struct Work {
    i32 batch, expert; // matrix of A and D, and of B
    i32 row, column;   // first element that this CTA makes, in rows and columns
    i32 end;           // of grouped rows of D: the one after the expert's last
    i32 first, blocks; // K blocks
    i32 group, groups; // of grouped K: groups of scales before the expert's, and its own
};

// Grouped rows or K: what the host says of them, and the table made of it.
struct Groups {
    ExpertGroups of;
    const u32 *table;
};

// The pieces of work of a cluster: at(first()), and on by step() below `tiles`. Tiles are dealt out
// one by one; with `share` to runs of clusters, which part all K blocks of theirs evenly.
template <Config C> struct Schedule {
    using T = Tile<C>;
    i32 tiles_m, tiles_n; // of a batch or expert; all blocks of rows where they are grouped
    i32 tiles;            // of all clusters; with `share`, that this one takes part in
    i32 k_blocks;
    i32 rank; // of this CTA in its cluster
    // With `share`: the run and the cluster's place in it, the run's K blocks, and of them this
    // cluster's first and the one after its last.
    i32 run, member, blocks, from, to;
    Groups groups;

    static constexpr bool kShares = C.share > 1;
    static constexpr int kTileRows = T::kRows * (C.pair == 1 ? 2 : 1);
    static constexpr int kTileColumns = T::kColumns * (C.pair == 2 ? 2 : 1);

    static constexpr int kTileM = C.swap ? kTileColumns : kTileRows;
    // Gates and ups: places along B are those of D's columns, which are half as many.
    static constexpr int kOfRows = T::kGated && C.swap ? 2 : 1,
                         kOfColumns = T::kGated && !C.swap ? 2 : 1;
    using Blocks = ExpertTiles<C.layout, kTileM>;
    using Experts = ExpertK<C.a_gran_k, !C.accumulate>; // D is zeros where an expert has no K

    // Each role makes its own: fewer registers live for all of them.
    static __device__ __forceinline__ Schedule make(i32 m, i32 n, i32 k, i32 batch,
                                                    const Groups &groups)
    {
        i32 tiles_m = ceil_div(m, kTileM);
        if constexpr (T::kGroupedRows) {
            tiles_m = Blocks{groups.table, groups.of}.blocks();
        } else if constexpr (T::kGroupedK) {
            batch = Experts{groups.table, groups.of.experts}.count();
        }
        const i32 tiles_n = ceil_div(n, C.swap ? kTileRows : kTileColumns);
        Schedule s = {.tiles_m = tiles_m,
                      .tiles_n = tiles_n,
                      .tiles = tiles_m * tiles_n * batch,
                      .k_blocks = ceil_div(k, 128),
                      .rank = T::kCluster > 1 ? i32(cluster_rank()) : 0,
                      .groups = groups};
        if constexpr (kShares) {
            const i32 cluster = i32(blockIdx.x) / T::kCluster;
            s.run = cluster / C.share;
            s.member = cluster % C.share;
            s.blocks = ceil_div(s.tiles - s.run, s.runs()) * s.k_blocks;
            s.from = s.begin_of(s.member);
            s.to = s.begin_of(s.member + 1);
            s.tiles = ceil_div(s.to, s.k_blocks) - s.from / s.k_blocks;
        }
        return s;
    }

    static __device__ __forceinline__ i32 runs()
    {
        return i32(gridDim.x) / (T::kCluster * C.share);
    }

    // The first of the run's K blocks that a member sums.
    __device__ __forceinline__ i32 begin_of(i32 who) const
    {
        return i32(i64(blocks) * who / C.share);
    }

    __device__ __forceinline__ i32 first() const
    {
        return kShares ? 0 : i32(blockIdx.x) / T::kCluster;
    }

    __device__ __forceinline__ i32 step() const
    {
        return kShares ? 1 : i32(gridDim.x) / T::kCluster;
    }

    // A cluster that shares tiles goes through its own from the last to the first: what it sums for
    // the next member is there before anyone may wait, and it waits itself, if at all, for those
    // before it, at the end.
    __device__ __forceinline__ Work at(i32 index) const
    {
        if constexpr (kShares) {
            const i32 tile = (to - 1) / k_blocks - index, begin = tile * k_blocks;
            Work w = place(run + tile * runs());
            w.first = max(from - begin, 0);
            w.blocks = min(to - begin, k_blocks) - w.first;
            return w;
        } else {
            Work w = place(index);
            if constexpr (T::kGroupedK) {
                w.blocks = ceil_div(w.groups * C.a_gran_k, 128);
                return w;
            }
            const i32 part = C.split_k > 1 ? rank : 0;
            w.first = i32(i64(k_blocks) * part / C.split_k);
            w.blocks = i32(i64(k_blocks) * (part + 1) / C.split_k) - w.first;
            return w;
        }
    }

    // Runs of `raster` tile rows of D go through all columns, so that CTAs in flight share B.
    __device__ __forceinline__ Work place(i32 index) const
    {
        const i32 b = index / (tiles_m * tiles_n), inside = index % (tiles_m * tiles_n);
        const i32 band = inside / (C.raster * tiles_n), within = inside % (C.raster * tiles_n);
        const i32 high = min(C.raster, tiles_m - band * C.raster);
        const i32 m = band * C.raster + within % high, n = within / high;
        Work w = {.batch = b,
                  .expert = b,
                  .row = (C.swap ? n : m) * (kTileRows / kOfRows),
                  .column = (C.swap ? m : n) * (kTileColumns / kOfColumns)};
        if constexpr (T::kGroupedK) { // A and B are one matrix, cut by the maps
            const ExpertKRange of = Experts{groups.table, groups.of.experts}.at(b);
            w.batch = of.expert, w.expert = 0, w.first = 0, w.group = of.first, w.groups = of.count;
        } else if constexpr (T::kGroupedRows) {
            const ExpertBlock block = Blocks{groups.table, groups.of}.at(m);
            w.batch = block.matrix, w.expert = block.expert, w.end = block.end;
            (C.swap ? w.column : w.row) = block.row;
        }
        w.row += C.pair == 1 ? rank * (T::kRows / kOfRows) : 0;
        w.column += C.pair == 2 ? rank * (T::kColumns / kOfColumns) : 0;
        return w;
    }
};
