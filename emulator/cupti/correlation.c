/* correlation.c - ids that a client lays over its thread's calls. */
#include "emulator/cupti/state.h"

#include <stdlib.h>

enum { KINDS = CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, DEPTH = 64 };

/* What each thread is within, by kind; deeper than DEPTH is refused. */
static _Thread_local struct {
    uint64_t ids[KINDS][DEPTH];
    size_t len[KINDS];
} external;

static bool kind_valid(CUpti_ExternalCorrelationKind kind)
{
    return (int)kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && (int)kind < KINDS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            uint64_t id)
{
    if (!kind_valid(kind)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (external.len[kind] == DEPTH) {
        return CUPTI_ERROR_OUT_OF_MEMORY;
    }
    external.ids[kind][external.len[kind]++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           uint64_t *lastId)
{
    if (!kind_valid(kind)) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    if (external.len[kind] == 0) {
        return CUPTI_ERROR_QUEUE_EMPTY;
    }
    uint64_t id = external.ids[kind][--external.len[kind]];
    if (lastId != NULL) {
        *lastId = id;
    }
    return CUPTI_SUCCESS;
}

void cupti_put_external(cupti_state *s, uint32_t correlation)
{
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t len = external.len[kind];
        if (len != 0) {
            CUpti_ActivityExternalCorrelation record = {
                .kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                .externalKind = (CUpti_ExternalCorrelationKind)kind,
                .externalId = external.ids[kind][len - 1],
                .correlationId = correlation,
            };
            cupti_queue_put(s, &record, sizeof record);
        }
    }
}
