// kv_source.cuh - where the rows of a gather come from: a slot each, or the pages of sequences.
#pragma once
#include "device/kv_page.cuh"

// What the rows of a gather are told by.
struct GatherIndex {
    const void *__restrict__ index; // i64 slots, or i32 pages [sequences, table_pages]
    const i32 *__restrict__ starts; // of sequences, one more than there are
    i64 sequences, table_pages, pages;
};

// A row's token: page and place within it; no page: zeros. Not `written`: the row is no sequence's.
struct GatherSource {
    i64 page;
    i32 within;
    bool written;
};

// The sequence with starts[s] <= row < starts[s + 1]; -1 when there is none.
__device__ __forceinline__ i64 sequence_of(const GatherIndex &g, i64 row)
{
    i64 low = 0, high = g.sequences;
    if (row < g.starts[0] || row >= g.starts[high]) {
        return -1;
    }
    while (high - low > 1) { // starts[low] <= row < starts[high], whatever lies between
        const i64 middle = (low + high) / 2;
        const bool after = row >= g.starts[middle];
        low = after ? middle : low;
        high = after ? high : middle;
    }
    return low;
}

// `first`: the thread that counts what is past the cache or its sequence's pages.
template <bool Table>
__device__ __forceinline__ GatherSource source_of(const GatherIndex &g, i64 row, i32 page_shift,
                                                  bool first, u64 *dropped)
{
    i64 page, at;
    if constexpr (Table) {
        const i64 s = sequence_of(g, row);
        if (s < 0) {
            return {-1, 0, false};
        }
        at = row - g.starts[s];
        const i64 i = at >> page_shift;
        page =
            i < g.table_pages ? static_cast<const i32 *>(g.index)[s * g.table_pages + i] : g.pages;
    } else {
        at = static_cast<const i64 *>(g.index)[row];
        page = at < 0 ? -1 : at >> page_shift;
    }
    if (page >= g.pages) {
        if (first) {
            atomicAdd(dropped, 1ull);
        }
        page = -1;
    }
    return {page < 0 ? -1 : page, within_page(at, page_shift), true};
}
