// expert_tiles.cuh - the rows of a grouped product by expert: a table in shared memory that every
// CTA makes for itself at its start, so that tiles are dealt out by work, not by expert, and no
// host is asked.
//
// Rows are cut into blocks of BlockRows, from each expert's first row on; blocks that have no row
// of an expert are not in the table. Every CTA's table is the same.
#pragma once
#include "device/types.cuh"

// Values of hone_group_layout: what `groups` holds.
enum GroupLayout : int {
    UNGROUPED = 0,
    GROUPED_ROWS = 1,   // contiguous: the expert of each row
    GROUPED_COUNTS = 2, // masked: rows of each expert, which has a matrix of its own
    GROUPED_ENDS = 3,   // psum: where each expert's rows end
    GROUPED_K = 4,      // grouped_k: elements of K of each expert (expert_k.cuh)
};

// What the host says of the groups.
struct ExpertGroups {
    const i32 *groups; // of `layout`
    i32 m, experts;    // rows of a matrix; experts
    i32 row_align;     // rows that experts begin at multiples of
};

// A block of rows of one expert.
struct ExpertBlock {
    i32 expert, matrix; // matrix: of A and D
    i32 row, end;       // its first row there, and the expert's end
};

template <int Layout, int BlockRows> struct ExpertTiles {
    static constexpr bool kRows = Layout == GROUPED_ROWS;
    static constexpr int kExpertBits = 10;
    // Labels: the number of blocks, then each one's index and expert. Else: of each expert the
    // first block (one more at the end), its first row, and its end.
    const u32 *table;
    ExpertGroups of;

    // Rows of an expert, [first, end).
    struct Span {
        i32 first, end;
    };

    // Of 32 experts after another, by one whole warp. Experts begin behind the furthest end of
    // those before, so that no row is two experts': ends that fall cost a scan, others a vote.
    struct Spans {
        i32 furthest = 0;
        bool fell = false;

        // Of this lane's expert; none past the last one.
        __device__ __forceinline__ Span next(const ExpertGroups &of, i32 expert)
        {
            const bool present = expert < of.experts;
            const i32 value = present ? min(max(of.groups[expert], 0), of.m) : 0;
            if constexpr (Layout == GROUPED_COUNTS) {
                return {0, value};
            } else {
                i32 before = present && expert > 0 ? min(max(of.groups[expert - 1], 0), of.m) : 0;
                fell = fell || __any_sync(0xffffffffu, present && value < before);
                if (fell) {
#pragma unroll
                    for (u32 d = 1; d < 32; d *= 2) {
                        const i32 left = __shfl_up_sync(0xffffffffu, before, d);
                        before = threadIdx.x % 32 >= d ? max(before, left) : before;
                    }
                    before = max(before, furthest);
                    furthest = __shfl_sync(0xffffffffu, before, 31);
                }
                const u32 align = u32(of.row_align);
                const u32 first = (u32(before) + align - 1) / align * align;
                const i32 from = i32(first < u32(of.m) ? first : u32(of.m));
                return {from, present ? max(value, from) : from};
            }
        }
    };

    // One whole warp; the CTA synchronises after it.
    static __device__ __forceinline__ void make(u32 *table, const ExpertGroups &of)
    {
        const u32 lane = threadIdx.x % 32, below = (1u << lane) - 1;
        if constexpr (kRows) {
            const i32 blocks = i32((u32(of.m) + BlockRows - 1) / BlockRows);
            u32 count = 0;
#pragma unroll 4
            for (i32 base = 0; base < blocks; base += 32) {
                const i32 block = base + i32(lane);
                const u32 expert = block < blocks ? u32(of.groups[i64(block) * BlockRows]) : ~0u;
                const u32 filled = __ballot_sync(0xffffffffu, expert < u32(of.experts));
                if (expert < u32(of.experts)) {
                    table[1 + count + __popc(filled & below)] = u32(block) << kExpertBits | expert;
                }
                count += __popc(filled);
            }
            if (lane == 0) {
                table[0] = count;
            }
        } else {
            u32 count = 0;
            Spans spans;
#pragma unroll 4
            for (i32 base = 0; base < of.experts; base += 32) {
                const i32 expert = base + i32(lane);
                const bool present = expert < of.experts;
                const Span rows = spans.next(of, expert);
                u32 upto = u32(rows.end - rows.first + BlockRows - 1) / BlockRows;
                const u32 mine = upto;
#pragma unroll
                for (u32 d = 1; d < 32; d *= 2) {
                    const u32 left = __shfl_up_sync(0xffffffffu, upto, d);
                    upto += lane >= d ? left : 0;
                }
                if (present) {
                    table[expert] = count + upto - mine;
                    table[of.experts + 1 + expert] = u32(rows.first);
                    table[2 * of.experts + 1 + expert] = u32(rows.end);
                }
                count += __shfl_sync(0xffffffffu, upto, 31);
            }
            if (lane == 0) {
                table[of.experts] = count;
            }
        }
    }

    // Of all experts.
    __device__ __forceinline__ i32 blocks() const
    {
        return i32(table[kRows ? 0 : of.experts]);
    }

    __device__ __forceinline__ ExpertBlock at(i32 index) const
    {
        if constexpr (kRows) {
            const u32 entry = table[1 + index];
            const i32 row = i32(entry >> kExpertBits) * BlockRows;
            return {i32(entry & ((1u << kExpertBits) - 1)), 0, row, least(row + BlockRows, of.m)};
        } else {
            // The last expert whose first block is not past this one: experts without rows have
            // the first block of the next.
            i32 low = 0, high = of.experts;
            while (high - low > 1) {
                const i32 middle = (low + high) / 2;
                const bool past = table[middle] > u32(index);
                low = past ? low : middle;
                high = past ? middle : high;
            }
            const i32 first = i32(table[of.experts + 1 + low]);
            return {low, Layout == GROUPED_COUNTS ? low : 0,
                    first + (index - i32(table[low])) * BlockRows,
                    i32(table[2 * of.experts + 1 + low])};
        }
    }
};

// Rows of D that a tile stores: those of its expert. Labels say so row by row.
template <int Layout> struct ExpertRows {
    const i32 *labels; // of GROUPED_ROWS
    i32 expert, end;
};

template <int Layout>
__device__ __forceinline__ bool row_kept(const ExpertRows<Layout> &rows, i32 row)
{
    if constexpr (Layout == GROUPED_ROWS) {
        return row < rows.end && rows.labels[row] == rows.expert;
    } else {
        return row < rows.end;
    }
}
