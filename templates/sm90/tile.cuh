// tile.cuh - the config of a Hopper product, and what follows from it: the tile of a CTA, how
// shared memory and registers are parted, and the ring of stages.
#pragma once
#include "device/barrier.cuh"
#include "device/expert_k.cuh"
#include "device/scale_stage.cuh"

struct Config {
    int block_m, block_n;          // CTA tile
    bool swap;                     // rows are B's
    int row_groups, column_groups; // warpgroups that multiply, along rows and columns
    int chunk;                     // columns of one wgmma
    int sets;                      // partial sums in flight of a warpgroup
    int queue;                     // of them started before one is waited for; 0, 1: one, or two
    int stages;                    // K blocks in shared memory
    int pair;    // two CTAs share a load: 1 that of the columns' operand, 2 of the rows', 0 none
    int split_k; // CTAs of a cluster that share a tile along K
    int share;   // clusters that share their tiles' K blocks evenly (stream-K); 0 and 1: none
    int raster;  // tile rows that CTAs in flight share, for L2
    bool staged; // D through shared memory and the copy engine
    int loader_registers; // of a thread that loads; the others share what is left
    int residency;        // CTAs of an SM that registers are kept for
    int a_gran_k, b_gran_mn, b_gran_k;
    bool a_ue8m0, a_packed, b_ue8m0, b_packed;
    bool a_wide, b_wide; // four groups of scales are one aligned access
    bool out_f32, accumulate;
    bool b_e2m1 = false; // rows are B's, two codes a byte, and go through registers
    bool fold = false;   // of e2m1: groups of 32 share a scale for 128 of K where that is exact
    int joint = 1;       // of e2m1: intervals that are multiplied and waited for together
    bool late = false;   // of e2m1: A's scale of 128 of K is multiplied in behind B's of each 32
    int layout = 0;      // GroupLayout: rows of A are experts', each with a B of its own, or K is
    // D is the activation of the product, whose first n / 2 columns are gates and the others ups.
    int activation = PLAIN;
    int out_group = 0; // D is e4m3, with a scale for so many columns; 0: it is not
    int out_rule = POW2_AMAX;
    bool out_ue8m0 = false, out_packed = false; // its scales
    bool fill = false; // rows of D that no expert has become zeros
};

template <Config C> struct Tile {
    static constexpr int kRows = C.swap ? C.block_n : C.block_m;
    static constexpr int kColumns = C.swap ? C.block_m : C.block_n;
    static constexpr int kGroups = C.row_groups * C.column_groups; // warpgroups that multiply
    static constexpr int kThreads = 128 * (kGroups + 1);
    static constexpr int kCluster = C.split_k > 1 ? C.split_k : C.pair > 0 ? 2 : 1;
    // Of one warpgroup: tiles of 64 rows, and columns cut into chunks.
    static constexpr int kTiles = kRows / 64 / C.row_groups;
    static constexpr int kWide = kColumns / C.column_groups, kChunks = kWide / C.chunk;
    // B's rows of a warpgroup: gates, and as many ups, where D is made of both.
    static constexpr bool kGated = C.activation != PLAIN, kCodes = C.out_group != 0;
    static constexpr int kSpan = C.swap ? kTiles * 64 : kWide, kHalf = kGated ? kSpan / 2 : kSpan;
    // A unit is what fills one set: the wgmmas of a promotion interval for one tile and chunk.
    static constexpr int kInterval = least(C.a_gran_k, C.b_gran_k), kIntervals = 128 / kInterval;
    static constexpr int kUnits = kIntervals * kTiles * kChunks;

    static constexpr int kRowBytes = kRows * (C.b_e2m1 ? 64 : 128), kColumnBytes = kColumns * 128;
    static constexpr int kRowGran = C.swap ? C.b_gran_mn : 1,
                         kColumnGran = C.swap ? 1 : C.b_gran_mn;
    static constexpr int kRowStep = kRowGran == 1 ? 1 : 32;
    static constexpr int kColumnStep = common_divisor(C.swap ? kWide : kHalf, kColumnGran);
    static constexpr ScaleShape kRowScales = {kRows / kRowStep,
                                              kRowStep,
                                              kRowGran,
                                              C.swap ? C.b_gran_k : C.a_gran_k,
                                              C.swap ? C.b_ue8m0 : C.a_ue8m0,
                                              C.swap ? C.b_packed : C.a_packed,
                                              true,
                                              C.swap ? C.b_wide : C.a_wide,
                                              C.fold,
                                              kGated &&C.swap ? kHalf : 0};
    static constexpr ScaleShape kColumnScales = {kColumns / kColumnStep,
                                                 kColumnStep,
                                                 kColumnGran,
                                                 C.swap ? C.a_gran_k : C.b_gran_k,
                                                 C.swap ? C.a_ue8m0 : C.b_ue8m0,
                                                 C.swap ? C.a_packed : C.b_packed,
                                                 false,
                                                 C.swap ? C.a_wide : C.b_wide,
                                                 false,
                                                 kGated && !C.swap ? kHalf : 0};
    using RowScales = ScaleStage<kRowScales>;
    using ColumnScales = ScaleStage<kColumnScales>;

    static constexpr bool kGroupedK = C.layout == GROUPED_K;
    static constexpr bool kGroupedRows = C.layout != UNGROUPED && !kGroupedK;

    // Shared memory, from its beginning.
    static constexpr int kColumnsAt = C.stages * kRowBytes;
    static constexpr int kOutputAt = kColumnsAt + C.stages * kColumnBytes;
    static constexpr int kOutputBytes = C.staged ? kRows * kColumns * (C.out_f32 ? 4 : 2) : 0;
    static constexpr int kRowScalesAt = kOutputAt + kOutputBytes;
    static constexpr int kColumnScalesAt = kRowScalesAt + C.stages * RowScales::kBytes;
    static constexpr int kBarriersAt = kColumnScalesAt + C.stages * ColumnScales::kBytes;
    // Columns that are sorted when the copy engine has brought them have a barrier for that.
    static constexpr bool kSorted = C.b_e2m1 && !C.fold;
    // Turned codes: the largest magnitude of 16 rows, of each column.
    static constexpr int kLargestAt = kBarriersAt + C.stages * (kSorted ? 24 : 16);
    static constexpr int kLargestBytes = kCodes && C.swap ? kRows / 32 * kColumns * 4 : 0;
    // Of grouped rows or K; the last. Before it, of grouped K, patterns of A's and B's maps.
    static constexpr int kPatternsAt = ceil_div(kLargestAt + kLargestBytes, 128) * 128;
    static constexpr int kTableAt = kGroupedK ? kPatternsAt + 256 : kLargestAt + kLargestBytes;

    // Registers of a thread: at entry all alike, then setmaxnreg moves them to those that multiply.
    static constexpr int kEntry = least(65536 / (kThreads * C.residency) / 8 * 8, 255);
    static constexpr int kMultiplier =
        least((kEntry * (kGroups + 1) - C.loader_registers) / kGroups / 8 * 8, 240);
    static constexpr bool kMoves = kEntry < 232;

    static_assert(kRows % (64 * C.row_groups) == 0, "rows: whole m64 tiles for each warpgroup");
    static_assert(kColumns % C.column_groups == 0 && kWide % C.chunk == 0 && C.chunk % 8 == 0 &&
                      C.chunk <= 256,
                  "chunk: divides a warpgroup's columns, 8 to 256");
    static_assert(C.sets == 1 || (C.sets == 2 && kUnits % 2 == 0),
                  "sets: a block's units alternate");
    static_assert(C.queue <= 1 || (C.queue == 2 && C.sets == 2), "queue: at most the sets");
    static_assert(C.stages >= 2 && C.raster >= 1 && C.residency >= 1, "stages, raster, residency");
    static_assert(C.pair == 0 || C.split_k == 1, "a cluster shares loads or K, not both");
    static_assert(C.share <= 1 || C.split_k == 1, "K is shared in one way");
    static_assert(C.split_k == 1 || kRows * kColumns * 4 <= kOutputAt,
                  "partial sums lie where stages were");
    static_assert(C.swap || !C.b_e2m1, "e2m1 is expanded in the registers of the rows' operand");
    static_assert(!C.fold || (C.b_e2m1 && C.a_gran_k == 128 && C.sets == 1),
                  "fold: one scale of A, and no products that run on over a branch");
    static_assert(!C.late || (kSorted && C.a_gran_k == 128 && C.b_gran_k == 32),
                  "late: one scale of A for several of B");
    static_assert(C.joint == 1 || (kSorted && kIntervals % C.joint == 0),
                  "joint: a stage's intervals in equal parts");
    static_assert(!kGated || (C.split_k == 1 && !C.staged && !C.accumulate &&
                              kHalf % (C.swap ? 64 : 8) == 0 && C.pair != (C.swap ? 2 : 1)),
                  "gates and ups: in one warpgroup, of loads that are its CTA's");
    static_assert(!kCodes || (kGated && (C.swap ? kRows / 2 : kHalf) % C.out_group == 0 &&
                              (C.column_groups == 1 || !C.swap)),
                  "codes: a group's columns in one CTA; not turned in one warpgroup");
    static_assert(C.layout == 0 || C.split_k == 1, "groups of rows or K: no cluster shares K");
    static_assert(!kGroupedK || (C.share <= 1 && !C.b_e2m1 && !kGated &&
                                 C.a_gran_k == C.b_gran_k && !C.a_packed && !C.b_packed &&
                                 !C.a_wide && !C.b_wide),
                  "grouped K: an expert's scales begin anywhere");
    static_assert(C.a_gran_k % kInterval == 0 && C.b_gran_k % kInterval == 0,
                  "promotion within one group");
};

// The ring of stages: which one is next, and the parity of its phase.
template <Config C> struct Ring {
    u32 base; // shared address of the kernel's memory
    i32 stage = 0;
    u32 parity = 0;

    __device__ __forceinline__ void advance()
    {
        stage++;
        if (stage == C.stages) {
            stage = 0;
            parity ^= 1;
        }
    }

    __device__ __forceinline__ u32 full() const
    {
        return base + Tile<C>::kBarriersAt + stage * 8;
    }

    __device__ __forceinline__ u32 empty() const
    {
        return full() + C.stages * 8;
    }

    __device__ __forceinline__ u32 landed() const
    {
        return full() + C.stages * 16;
    }
};
