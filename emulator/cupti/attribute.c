/* attribute.c - settings of buffers that a device would keep: remembered, and without effect here.
 */
#include "emulator/cupti/state.h"

#include <string.h>

/* Defaults are those of bench.md 1.3. Under cupti_lock. */
static struct {
    CUpti_ActivityAttribute attribute;
    size_t bytes;
    uint64_t value;
} attributes[] = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof(size_t), 3200000},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof(uint8_t), 1},
};

/* The row whose value fits *size, in *row. */
static CUptiResult find(CUpti_ActivityAttribute attribute, const size_t *size, const void *value,
                        size_t *row)
{
    if (size == NULL || value == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        if (attributes[i].attribute == attribute) {
            *row = i;
            return *size >= attributes[i].bytes ? CUPTI_SUCCESS
                                                : CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
        }
    }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
                                               void *value)
{
    size_t row = 0;
    CUptiResult result = find(attr, valueSize, value, &row);
    if (result == CUPTI_SUCCESS) {
        cupti_lock();
        memcpy(value, &attributes[row].value, attributes[row].bytes); /* little-endian */
        *valueSize = attributes[row].bytes;
        cupti_unlock();
    }
    return result;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize,
                                               void *value)
{
    size_t row = 0;
    CUptiResult result = find(attr, valueSize, value, &row);
    if (result == CUPTI_SUCCESS) {
        cupti_lock();
        attributes[row].value = 0;
        memcpy(&attributes[row].value, value, attributes[row].bytes);
        cupti_unlock();
    }
    return result;
}
