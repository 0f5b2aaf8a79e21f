// raster.cuh - in which order CTAs take a grid's tiles.
#pragma once
#include "device/types.cuh"

// A tile's row and column among tiles.
struct TilePlace {
    i32 m, n;
};

// Bands of `Raster` tile rows go through all columns, so that CTAs in flight share B.
template <int Raster>
__device__ __forceinline__ TilePlace tile_place(i32 tile, i32 tiles_m, i32 tiles_n)
{
    const i32 band = tile / (Raster * tiles_n), within = tile - band * Raster * tiles_n;
    const i32 first = band * Raster, high = min(Raster, tiles_m - first);
    return {first + within % high, within / high};
}
