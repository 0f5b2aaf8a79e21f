/* attribute.c - device attributes: limits of every arch, facts of the GPU's file, and figures
 * made of them.
 *
 * An attribute that stands in no table is 0: a feature that the emulator does not have (managed
 * memory, memory pools, textures). */
#include "emulator/driver/shim.h"

#include <limits.h>

static const struct {
    CUdevice_attribute attribute;
    int value;
} fixed[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, SHIM_DIM_XY},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, SHIM_DIM_XY},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, SHIM_DIM_Z},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, SHIM_GRID_YZ},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, SHIM_GRID_YZ},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, SHIM_STATIC_SHARED},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, SHIM_WARP},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, INT_MAX},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 64},
    {CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

static const struct {
    CUdevice_attribute attribute;
    size_t offset; /* of an int32_t in device_facts */
} facts[] = {
#define X(attribute, fact) {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(device_facts, fact)},
    DEVICE_ATTRIBUTE_MAP(X)
#undef X
};

/* Bits of the memory bus and its clock in kHz are asked for only to multiply them: twice their
 * product, in bytes, is the bandwidth of the GPU's file. */
enum { BUS_BITS = 4096 };

/* Figures that are neither a constant nor a fact as it stands. */
static int derived(const shim_device *d, CUdevice_attribute attribute)
{
    const device_facts *f = &d->gpu.facts;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        return f->arch / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        return f->arch % 10;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
        return f->arch >= 90;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        return f->clock_mhz * 1000;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        return (int)f->l2_bytes;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        return f->mem_bytes_per_s != 0 ? BUS_BITS : 0;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        return (int)(f->mem_bytes_per_s / (2 * BUS_BITS / 8) / 1000);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        return d->ordinal + 1;
    default:
        return 0;
    }
}

static int attribute_value(const shim_device *d, CUdevice_attribute attribute)
{
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++) {
        if (fixed[i].attribute == attribute) {
            return fixed[i].value;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(facts); i++) {
        if (facts[i].attribute == attribute) {
            const char *base = (const char *)&d->gpu.facts;
            return *(const int32_t *)(const void *)(base + facts[i].offset);
        }
    }
    return derived(d, attribute);
}

CUresult CUDAAPI cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    shim_device *d = NULL;
    bool known = (int)attrib > 0 && attrib < CU_DEVICE_ATTRIBUTE_MAX;
    CUresult result = shim_lock(dev, pi != NULL && known, &d);
    if (result == CUDA_SUCCESS) {
        *pi = attribute_value(d, attrib);
        shim_unlock(d);
    }
    return result;
}
