// kv_page.cuh - where a slot of a paged KV cache lies. Pages may lie further apart than they are
// long; offsets of pages are 64-bit, those within a page 32-bit.
#pragma once
#include "device/types.cuh"

__device__ __forceinline__ i32 within_page(i64 slot, i32 page_shift)
{
    u32 low;
    asm("bfe.u32 %0, %1, 0, %2;" : "=r"(low) : "r"(u32(slot)), "r"(page_shift));
    return i32(low);
}

// Where a token goes; nowhere when it is not `live`.
struct TokenPlace {
    u8 *page;
    i32 within;
    bool live;
};

// A negative slot is a padding row; the thread that asks `first` counts one past the cache. A token
// past the last stays nowhere.
__device__ __forceinline__ TokenPlace place_of(u8 *cache, const i64 *slots, i32 token, i32 tokens,
                                               i64 pages, i64 page_stride, i32 page_shift,
                                               bool first, u64 *dropped)
{
    const i64 slot = slots[u32(min(token, tokens - 1))], page = slot >> page_shift;
    const bool live = u64(page) < u64(pages) && token < tokens;
    if (__builtin_expect(!live, 0)) {
        if (first && page >= pages && token < tokens) {
            atomicAdd(dropped, 1ull);
        }
    }
    return {cache + page * page_stride, within_page(slot, page_shift), live};
}
