/* memory_host.c - what the host does to device memory: bounds-checked copies and fills. */
#include "emulator/machine/memory.h"

#include "core/checked.h"

#include <inttypes.h>
#include <string.h>

/* The live range that holds [address, address + bytes); `what` is the verb of the message. */
static hone_status find_span(const device_memory *m, uint64_t address, uint64_t bytes,
                             const char *what, const memory_range **out, hone_error *error)
{
    const memory_range *range = memory_find(m, address);
    if (range == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%s %" PRIu64 " bytes at 0x%" PRIx64 ": nothing is allocated there", what,
                          bytes, address);
    }
    if (range->freed) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%s %" PRIu64 " bytes at 0x%" PRIx64 ": freed memory", what, bytes,
                          address);
    }
    if (bytes > range->end - address) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "%s %" PRIu64 " bytes at 0x%" PRIx64 ": the allocation ends %" PRIu64
                          " bytes later",
                          what, bytes, address, range->end - address);
    }
    *out = range;
    return HONE_OK;
}

static uint8_t *shadow_of(const memory_range *range, uint64_t address)
{
    return range->shadow + (address - range->begin);
}

static void mark_written(device_memory *m, const memory_range *range, uint64_t address,
                         uint64_t bytes)
{
    if (range->whole) {
        return;
    }
    memset(shadow_of(range, address), 1, bytes);
    if (bytes == range->end - range->begin) {
        memory_set_whole(m, range, true);
    }
}

hone_status memory_write(device_memory *m, uint64_t address, const void *from, uint64_t bytes,
                         hone_error *error)
{
    hone_status status = HONE_OK;
    const memory_range *range = NULL;
    if (bytes == 0) {
        return HONE_OK;
    }
    TRY(find_span(m, address, bytes, "writing", &range, error));
    memcpy((void *)(uintptr_t)address, from, bytes);
    mark_written(m, range, address, bytes);
done:
    return status;
}

hone_status memory_read(const device_memory *m, uint64_t address, void *to, uint64_t bytes,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    const memory_range *range = NULL;
    if (bytes == 0) {
        return HONE_OK;
    }
    TRY(find_span(m, address, bytes, "reading", &range, error));
    memcpy(to, (const void *)(uintptr_t)address, bytes);
done:
    return status;
}

hone_status memory_fill(device_memory *m, uint64_t address, uint32_t value, uint32_t width,
                        uint64_t count, hone_error *error)
{
    hone_status status = HONE_OK;
    const memory_range *range = NULL;
    uint64_t bytes = 0;
    if ((width != 1 && width != 2 && width != 4) || address % width != 0 ||
        !checked_mul_u64(count, width, &bytes)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "filling %" PRIu64 " elements of %u bytes at 0x%" PRIx64
                          ": 1, 2 or 4 bytes, aligned, are possible",
                          count, width, address);
    }
    if (bytes == 0) {
        return HONE_OK;
    }
    TRY(find_span(m, address, bytes, "filling", &range, error));
    uint8_t *to = (uint8_t *)(uintptr_t)address;
    if (width == 1) {
        memset(to, (int)(value & 0xff), bytes);
    } else if (width == 2) {
        for (uint64_t i = 0; i < count; i++) {
            ((uint16_t *)(void *)to)[i] = (uint16_t)value;
        }
    } else {
        for (uint64_t i = 0; i < count; i++) {
            ((uint32_t *)(void *)to)[i] = value;
        }
    }
    mark_written(m, range, address, bytes);
done:
    return status;
}

hone_status memory_copy(device_memory *m, uint64_t to, uint64_t from, uint64_t bytes,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    const memory_range *source = NULL, *target = NULL;
    if (bytes == 0) {
        return HONE_OK;
    }
    TRY(find_span(m, from, bytes, "copying from", &source, error));
    TRY(find_span(m, to, bytes, "copying to", &target, error));
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    if (source->whole) {
        mark_written(m, target, to, bytes);
    } else {
        memmove(shadow_of(target, to), shadow_of(source, from), bytes);
        memory_set_whole(m, target, false);
    }
done:
    return status;
}
