/* device.c - records of the devices, each marked as emulated by its name. */
#include "emulator/cupti/state.h"

#include <limits.h>

static void put_device(cupti_state *s, const shim_device *d)
{
    char name[160];
    cuDeviceGetName(name, sizeof name, d->ordinal); /* says that it is no GPU (emulator.md 8) */
    const device_facts *f = &d->gpu.facts;
    CUpti_ActivityDevice5 record = {
        .kind = CUPTI_ACTIVITY_KIND_DEVICE,
        .globalMemoryBandwidth = (uint64_t)f->mem_bytes_per_s / 1000, /* kB/s */
        .globalMemorySize = (uint64_t)f->mem_bytes,
        .constantMemorySize = 65536,
        .l2CacheSize = (uint32_t)f->l2_bytes,
        .numThreadsPerWarp = SHIM_WARP,
        .coreClockRate = (uint32_t)f->clock_mhz * 1000, /* kHz */
        .numMemcpyEngines = 1,
        .numMultiprocessors = (uint32_t)f->sm_count,
        .maxWarpsPerMultiprocessor = (uint32_t)f->threads_per_sm / SHIM_WARP,
        .maxBlocksPerMultiprocessor = (uint32_t)f->blocks_per_sm,
        .maxSharedMemoryPerMultiprocessor = (uint32_t)f->smem_per_sm,
        .maxRegistersPerMultiprocessor = (uint32_t)f->regs_per_sm,
        .maxRegistersPerBlock = 65536,
        .maxSharedMemoryPerBlock = SHIM_STATIC_SHARED,
        .maxThreadsPerBlock = SHIM_DIM_XY,
        .maxBlockDimX = SHIM_DIM_XY,
        .maxBlockDimY = SHIM_DIM_XY,
        .maxBlockDimZ = SHIM_DIM_Z,
        .maxGridDimX = INT_MAX,
        .maxGridDimY = SHIM_GRID_YZ,
        .maxGridDimZ = SHIM_GRID_YZ,
        .computeCapabilityMajor = (uint32_t)f->arch / 10,
        .computeCapabilityMinor = (uint32_t)f->arch % 10,
        .id = (uint32_t)d->ordinal,
        .eccEnabled = 1,
        .name = cupti_keep_name(name),
        .isCudaVisible = 1,
    };
    cuDeviceGetUuid(&record.uuid, d->ordinal);
    cupti_queue_put(s, &record, sizeof record);
}

void cupti_file_devices(void)
{
    cupti_state *s = cupti_lock();
    bool wanted = (s->wanted & CUPTI_KIND(CUPTI_ACTIVITY_KIND_DEVICE)) != 0;
    for (size_t i = 0; wanted && i < shim_device_count(); i++) {
        put_device(s, shim_device_at((int)i));
    }
    cupti_unlock();
}
