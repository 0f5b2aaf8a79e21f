// kv_page.cuh - where a slot of a paged KV cache lies. Pages may lie further apart than they are
// long; offsets of pages are 64-bit, those within a page 32-bit.
#pragma once
#include "device/types.cuh"

// The page of a slot: NULL when there is none. A negative slot is a padding row; the thread that
// asks `first` counts one past the cache.
__device__ __forceinline__ u8 *page_of(u8 *cache, i64 slot, i64 pages, i64 page_stride,
                                       i32 page_shift, bool first, u64 *dropped)
{
    if (slot < 0) {
        return nullptr;
    }
    const i64 page = slot >> page_shift;
    if (page >= pages) {
        if (first) {
            atomicAdd(dropped, 1ull);
        }
        return nullptr;
    }
    return cache + page * page_stride;
}

__device__ __forceinline__ i32 within_page(i64 slot, i32 page_shift)
{
    return i32(slot) & ((1 << page_shift) - 1);
}

// Where a token goes: page NULL is nowhere.
struct TokenPlace {
    u8 *page;
    i32 within;
};

__device__ __forceinline__ TokenPlace place_of(u8 *cache, const i64 *slots, i64 token, i64 tokens,
                                               i64 pages, i64 page_stride, i32 page_shift,
                                               bool first, u64 *dropped)
{
    if (token >= tokens) {
        return {nullptr, 0};
    }
    const i64 slot = slots[token];
    return {page_of(cache, slot, pages, page_stride, page_shift, first, dropped),
            within_page(slot, page_shift)};
}
