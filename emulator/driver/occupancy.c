/* occupancy.c - how many CTAs an SM holds: the rules of the toolkit's cuda_occupancy.h. */
#include "emulator/driver/shim.h"

#include "core/integer.h"

#include <limits.h>

enum {
    REGISTER_UNIT = 256, /* a warp's registers are allotted in multiples of this */
    PARTITIONS = 4,      /* an SM's register file is split over its schedulers */
    SHARED_UNIT = 128,
};

static int64_t warp_registers(const shim_function *f)
{
    return integer_round_up((int64_t)f->resources.registers * SHIM_WARP, REGISTER_UNIT);
}

static int64_t warps_of(int threads)
{
    return (threads + SHIM_WARP - 1) / SHIM_WARP;
}

int shim_occupancy_registers(const shim_function *f, int threads)
{
    return (int)(warp_registers(f) * integer_round_up(warps_of(threads), PARTITIONS));
}

static int64_t limit_by_registers(const gpu *g, const shim_function *f, int threads)
{
    if (f->resources.registers == 0) {
        return INT_MAX;
    }
    if (shim_occupancy_registers(f, threads) > g->facts.regs_per_sm) {
        return 0;
    }
    int64_t warps = g->facts.regs_per_sm / PARTITIONS / warp_registers(f) * PARTITIONS;
    return warps / warps_of(threads);
}

static int64_t limit_by_shared(const gpu *g, const shim_function *f, uint64_t dynamic_shared)
{
    if (dynamic_shared + f->facts.static_shared_bytes > (uint64_t)g->facts.smem_per_block) {
        return 0;
    }
    int64_t bytes = (int64_t)dynamic_shared + f->facts.static_shared_bytes + g->facts.smem_reserved;
    bytes = integer_round_up(bytes, SHARED_UNIT);
    return bytes > 0 ? g->facts.smem_per_sm / bytes : INT_MAX;
}

int shim_occupancy(const gpu *g, const shim_function *f, int threads, uint64_t dynamic_shared)
{
    if (threads > (int)f->facts.max_threads) {
        return 0;
    }
    const int64_t limits[] = {
        g->facts.blocks_per_sm,
        g->facts.threads_per_sm / SHIM_WARP / warps_of(threads),
        limit_by_registers(g, f, threads),
        limit_by_shared(g, f, dynamic_shared),
    };
    int64_t least = limits[0];
    for (size_t i = 1; i < ARRAY_LEN(limits); i++) {
        least = limits[i] < least ? limits[i] : least;
    }
    return (int)least;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = shim_enter_aside(&c, numBlocks != NULL && blockSize > 0 &&
                                               flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, func, &f);
        if (result == CUDA_SUCCESS) {
            *numBlocks = shim_occupancy(&c->device->gpu, f, blockSize, dynamicSMemSize);
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func,
                                                             int blockSize, size_t dynamicSMemSize)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                dynamicSMemSize, 0);
}

int shim_occupancy_clusters(const shim_function *f, int threads, uint64_t dynamic_shared,
                            unsigned ctas)
{
    const gpu *g = &f->head.context->device->gpu;
    int64_t fit = (int64_t)shim_occupancy(g, f, threads, dynamic_shared) * g->facts.sm_count;

    return (int)(fit / (ctas > 0 ? ctas : 1));
}

static uint64_t threads_of(const CUlaunchConfig *config)
{
    return (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
}

/* A function and a launch of it, for the two calls about clusters. */
static CUresult enter_config(const void *out, CUfunction func, const CUlaunchConfig *config,
                             shim_context **c, shim_function **f)
{
    bool arguments = out != NULL && config != NULL &&
                     (config->numAttrs == 0 || config->attrs != NULL) && threads_of(config) > 0 &&
                     threads_of(config) <= SHIM_DIM_XY;
    CUresult result = shim_enter_aside(c, arguments);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(*c, func, f);
        if (result != CUDA_SUCCESS) {
            shim_leave(*c);
        }
    }
    return result;
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
                                                    const CUlaunchConfig *config)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result = enter_config(clusterSize, func, config, &c, &f);
    if (result == CUDA_SUCCESS) {
        const int *required = f->required_cluster;
        int size = required[0] * required[1] * required[2];
        size = size > 0 ? size : (int)shim_cluster_most(f);
        int fit = shim_occupancy_clusters(f, (int)threads_of(config), config->sharedMemBytes, 1);
        *clusterSize = fit < size ? fit : size;
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func,
                                              const CUlaunchConfig *config)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    shim_attributes a;
    CUresult result = enter_config(numClusters, func, config, &c, &f);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = shim_attributes_read(f, config, &a);
    if (result == CUDA_SUCCESS && !a.clustered) {
        result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    unsigned size = a.cluster[0] * a.cluster[1] * a.cluster[2];
    if (result == CUDA_SUCCESS && size > shim_cluster_most(f)) {
        result = CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    if (result == CUDA_SUCCESS) {
        *numClusters =
            shim_occupancy_clusters(f, (int)threads_of(config), config->sharedMemBytes, size);
    }
    shim_leave(c);
    return result;
}

/* The largest CTA with the most resident threads, and the CTAs that fill the device. */
static void best_block(const shim_function *f, CUoccupancyB2DSize shared_of, size_t shared,
                       int limit, int *grid, int *block)
{
    const gpu *g = &f->head.context->device->gpu;
    int most = (int)f->facts.max_threads, best = 0;
    most = limit > 0 && limit < most ? limit : most;
    *grid = *block = 0;
    for (int threads = (int)integer_round_up(most, SHIM_WARP); threads > 0; threads -= SHIM_WARP) {
        int trial = threads < most ? threads : most;
        int ctas = shim_occupancy(g, f, trial, shared_of != NULL ? shared_of(trial) : shared);
        if (ctas * trial > best) {
            best = ctas * trial;
            *block = trial;
            *grid = ctas * g->facts.sm_count;
        }
    }
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(
    int *minGridSize, int *blockSize, CUfunction func,
    CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
    unsigned int flags)
{
    shim_context *c = NULL;
    shim_function *f = NULL;
    CUresult result =
        shim_enter_aside(&c, minGridSize != NULL && blockSize != NULL && blockSizeLimit >= 0 &&
                                 flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
    if (result == CUDA_SUCCESS) {
        result = shim_function_of(c, func, &f);
        if (result == CUDA_SUCCESS) {
            best_block(f, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, minGridSize,
                       blockSize);
        }
        shim_leave(c);
    }
    return result;
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
                                                  CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                  size_t dynamicSMemSize, int blockSizeLimit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                     blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                     blockSizeLimit, 0);
}
