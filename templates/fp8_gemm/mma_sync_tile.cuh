// mma_sync_tile.cuh - a config of mma_sync.cu, what follows from it, and which tile is a CTA's.
//
// The instruction has 16 rows and 8 columns. Its rows are A's, or, with `swap`, B's: then few rows
// of A are padded to 8 and not to 16, and D is turned when it is stored.
#pragma once
#include "device/nibble_copy.cuh"
#include "device/output.cuh"
#include "device/scale_tile.cuh"
#include "device/tile_copy.cuh"

struct Config {
    bool swap;                     // the instruction's rows are B's
    int block_m, block_n, block_k; // CTA tile
    int warps_m, warps_n;          // warps along M and N
    int warps_k;                   // warps that share a tile along K, within a K block
    int split_k;                   // CTAs that share a tile along K
    int stages;                    // K blocks in shared memory
    int promote;                   // elements of K between additions to fp32
    int raster;                    // tile rows that CTAs in flight share, for L2
    int residency;                 // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_ue8m0, a_packed, b_ue8m0, b_packed; // scales
    bool out_f32, accumulate;
    int align; // bytes that operands and rows are multiples of
    // Of a grouped product:
    int layout = 0;         // GroupLayout (device/expert_tiles.cuh)
    bool b_e2m1 = false;    // B is two codes a byte
    int activation = PLAIN; // else B's rows are gates, then ups, and D has half the columns
    int out_group = 0;      // elements of D that share a scale: D is e4m3; 0: it is not
    int out_rule = POW2_AMAX;
    bool out_ue8m0 = false, out_packed = false;
    bool fill = false; // rows of D that no expert has become zeros
};

// B's tiles of K blocks: of bytes as they are, or of e2m1.
template <bool E2m1, int Rows, int BlockK, int Threads, int Align, int Half> struct WeightCopy {
    using Type = TileCopy<Rows, BlockK, Threads, Align, 16, Half>;
};
template <int Rows, int BlockK, int Threads, int Align, int Half>
struct WeightCopy<true, Rows, BlockK, Threads, Align, Half> {
    using Type = NibbleCopy<Rows, BlockK, Threads, Align, Half>;
};

template <Config C> struct Tile {
    static constexpr int kSumThreads = C.warps_m * C.warps_n * 32; // that hold a tile's sums
    static constexpr int kThreads = kSumThreads * C.warps_k;
    // Of a warp's part of the tile, by the instruction's rows and columns.
    static constexpr int kRows = C.swap ? C.block_n / C.warps_n : C.block_m / C.warps_m;
    static constexpr int kColumns = C.swap ? C.block_m / C.warps_m : C.block_n / C.warps_n;
    static constexpr int kHigh = kRows / 16, kWide = kColumns / 8; // matrices of the instruction
    static constexpr int kSteps = C.promote / 32; // mma.sync along K for one partial sum
    static constexpr int kIntervals = C.block_k / C.promote / C.warps_k; // of a K block, of a warp
    static constexpr int kBytesA = C.block_m * C.block_k, kBytesB = C.block_n * C.block_k;
    static constexpr int kStage = kBytesA + kBytesB;
    // A scale for each row or column, else for 16 rows or 8 columns at least.
    static constexpr bool kRowScales = !C.swap || C.b_gran_mn == 1;
    static constexpr bool kColumnScales = C.swap || C.b_gran_mn == 1;
    static constexpr int kStepB = C.b_gran_mn == 1 ? 1 : C.swap ? 16 : 8;
    // Gates of a warp, and as many ups.
    static constexpr int kHalf = C.activation == PLAIN ? 0 : (C.swap ? kRows : kColumns) / 2;

    using CopyA = TileCopy<C.block_m, C.block_k, kThreads, C.align>;
    using CopyB =
        typename WeightCopy<C.b_e2m1, C.block_n, C.block_k, kThreads, C.align, kHalf>::Type;
    using ScalesA =
        ScaleTile<C.block_m, 1, 1, C.a_gran_k, C.block_k, kThreads, C.a_ue8m0, C.a_packed>;
    using ScalesB = ScaleTile<C.block_n / kStepB, kStepB, C.b_gran_mn, C.b_gran_k, C.block_k,
                              kThreads, C.b_ue8m0, C.b_packed, kHalf>;
    // Of a block, in pairs: those of neighbouring columns are read together.
    static constexpr int kScales = ceil_div(ScalesA::kCount + ScalesB::kCount, 2) * 2;

    static_assert(C.block_m % ((C.swap ? 8 : 16) * C.warps_m) == 0,
                  "block_m: whole tiles of warps");
    static_assert(C.block_n % ((C.swap ? 16 : 8) * C.warps_n) == 0,
                  "block_n: whole tiles of warps");
    static_assert(kThreads >= 32 && kThreads <= 512, "warps: 1 to 16");
    static_assert(C.promote == 32 || C.promote == 64 || C.promote == 128,
                  "promote: within the unit's 13 bits");
    static_assert(C.block_k % (C.promote * C.warps_k) == 0, "promote: divides a warp's K block");
    static_assert(C.a_gran_k % C.promote == 0 && C.b_gran_k % C.promote == 0,
                  "promote: within one scale group");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(C.split_k >= 1 && C.split_k <= 16, "split_k: 1 to 16");
    static_assert((C.warps_k - 1) * C.block_m * C.block_n * 4 <= C.stages * kStage,
                  "warps_k: sums of all but the first fit where the stages were");
    static_assert(is_pow2(C.align) && C.align <= 16, "align: 1 to 16");
    static_assert(kHalf % (C.swap ? 16 : 8) == 0, "gates and ups: whole matrices");
};

template <Config C> using Sums = float[Tile<C>::kHigh][Tile<C>::kWide][4];
