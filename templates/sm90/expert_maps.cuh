// expert_maps.cuh - tensor maps of A and B where K is grouped: an expert's rows are as long as its
// K, which only the device knows, so the warp that loads makes its maps.
//
// Patterns with all else come from the kernel's parameters and lie in shared memory. For each
// expert a CTA puts its begin, row and stride there and publishes both maps in a place of global
// memory of its own. A place is written again after `stages` other experts, of which each has a
// stage at least: the last stage that was loaded with the old maps has been released since, so no
// copy reads them.
#pragma once
#include "device/tensor_copy.cuh"
#include "sm90/schedule.cuh"

template <Config C> struct ExpertMaps {
    static constexpr i32 kPlaces = C.stages + 1;
    TensorMap *places; // of this CTA: A's and B's of each place
    u32 patterns;      // shared address: A's and B's
    const u8 *a, *b;
    i32 m, n;
    i32 expert = -1, place = kPlaces - 1;

    // The whole warp.
    __device__ __forceinline__ void open(const TensorMap *a_map, const TensorMap *b_map) const
    {
        const u32 lane = threadIdx.x % 32;
        word_store(patterns + lane * 4, reinterpret_cast<const u32 *>(a_map)[lane]);
        word_store(patterns + 128 + lane * 4, reinterpret_cast<const u32 *>(b_map)[lane]);
        __syncwarp();
    }

    // The whole warp: the maps of this work's expert, who has some K where they are used.
    __device__ __forceinline__ void turn_to(const Work &w)
    {
        if (w.batch == expert || w.groups == 0) {
            return;
        }
        expert = w.batch;
        place = place + 1 == kPlaces ? 0 : place + 1;
        if (threadIdx.x % 32 == 0) {
            const i64 before = i64(w.group) * C.a_gran_k;
            tensor_map_rows(patterns, a + before * m, u32(w.groups) * C.a_gran_k);
            tensor_map_rows(patterns + 128, b + before * n, u32(w.groups) * C.b_gran_k);
        }
        __syncwarp();
        tensor_map_publish(places + place * 2, patterns);
        tensor_map_publish(places + place * 2 + 1, patterns + 128);
        tensor_map_acquire(places + place * 2);
        tensor_map_acquire(places + place * 2 + 1);
    }

    __device__ __forceinline__ const TensorMap *of(bool is_b) const
    {
        return places + place * 2 + is_b;
    }

  private:
    static __device__ __forceinline__ void word_store(u32 at, u32 x)
    {
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
    }
};
