// tile.cuh - a config of a product by sm_120's block-scaled mma.sync, and what follows from it.
#pragma once
#include "device/block_scale.cuh"
#include "device/output.cuh"
#include "device/scale_words.cuh"
#include "device/tile_copy.cuh"
#include "device/turn.cuh"

struct Config {
    int block_m, block_n, block_k; // CTA tile
    bool swap;                     // rows are B's
    int warps_r, warps_c;          // warps along rows and columns
    int stages;                    // K blocks in shared memory
    int split_k;                   // CTAs that share a tile along K
    int raster;                    // tile rows that CTAs in flight share, for L2
    int residency;                 // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_packed, b_packed; // scales
    bool b_e2m1;
    bool out_f32, accumulate;
    int align; // bytes that operands and rows are multiples of
    // Of a grouped product:
    int layout = 0;         // GroupLayout (device/expert_tiles.cuh)
    int activation = PLAIN; // else B's rows are gates, then ups, and D has half the columns
    int out_group = 0;      // elements of D that share a scale: D is e4m3; 0: it is not
    int out_rule = POW2_AMAX;
    bool out_ue8m0 = false, out_packed = false;
    bool fill = false; // rows of D that no expert has become zeros
};

// One operand: its rows in a tile, what fills them, and their scales.
template <Config C, bool IsB> struct Operand {
    static constexpr int kRows = IsB ? C.block_n : C.block_m;
    static constexpr int kThreads = C.warps_r * C.warps_c * 32;
    static constexpr bool kE2m1 = IsB && C.b_e2m1;
    static constexpr int kBytes = kRows * C.block_k; // of a stage
    // Gates of a warp, and as many ups.
    static constexpr int kHalf =
        !IsB || C.activation == PLAIN ? 0 : kRows / (C.swap ? C.warps_r : C.warps_c) / 2;
    using Copy = TileCopy<kRows, C.block_k, kThreads, C.align, kE2m1 ? 8 : 16, kHalf>;
    using Scales = ScaleWords<kRows, IsB ? C.b_gran_mn : 1, IsB ? C.b_gran_k : C.a_gran_k,
                              C.block_k, kThreads, IsB ? C.b_packed : C.a_packed, kHalf>;
};

template <Config C> struct Tile {
    using A = Operand<C, false>;
    using B = Operand<C, true>;
    using Rows = Operand<C, C.swap>;
    using Columns = Operand<C, !C.swap>;
    static constexpr int kThreads = A::kThreads;
    static constexpr int kWarpR = Rows::kRows / C.warps_r, kWarpC = Columns::kRows / C.warps_c;
    static constexpr int kTilesR = kWarpR / 16, kTilesC = kWarpC / 8;
    static constexpr int kStage = A::kBytes + B::kBytes;
    static constexpr int kWords = A::kRows + B::kRows; // of scales, of a block

    static_assert(Rows::kRows % (16 * C.warps_r) == 0, "rows: whole m16 tiles for each warp");
    static_assert(Columns::kRows % (8 * C.warps_c) == 0, "columns: whole n8 tiles for each warp");
    static_assert(B::kHalf % (C.swap ? 16 : 8) == 0, "gates and ups: whole tiles");
    static_assert(kThreads >= 32 && kThreads <= 512, "warps: 1 to 16");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(is_pow2(C.align) && C.align <= 16, "align: 1 to 16");
};

template <Config C> using Sums = float[Tile<C>::kTilesR][Tile<C>::kTilesC][4];
