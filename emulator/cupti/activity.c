/* activity.c - which records are wanted, by whom, and the settings of the activity API. */
#include "emulator/cupti/state.h"

#include <stdlib.h>
#include <string.h>

uint64_t cupti_wanted;

static cupti_state state = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};

cupti_state *cupti_lock(void)
{
    pthread_mutex_lock(&state.lock);
    return &state;
}

void cupti_unlock(void)
{
    pthread_mutex_unlock(&state.lock);
}

/* RUNTIME may be asked for, as tools do: no call of that API ever comes by here. */
static bool kind_known(CUpti_ActivityKind kind)
{
    return cupti_record_bytes(kind) != 0 || kind == CUPTI_ACTIVITY_KIND_RUNTIME;
}

static void publish(const cupti_state *s)
{
    uint64_t wanted = s->wanted;
    for (size_t i = 0; i < s->overrides_len; i++) {
        wanted |= s->overrides[i].wanted;
    }
    __atomic_store_n(&cupti_wanted, wanted, __ATOMIC_RELAXED);
}

uint64_t cupti_kinds_of(const cupti_state *s, uint32_t context)
{
    for (size_t i = 0; i < s->overrides_len; i++) {
        const cupti_override *o = &s->overrides[i];
        if (o->context == context) {
            return (s->wanted & ~o->decided) | o->wanted;
        }
    }
    return s->wanted;
}

void cupti_forget_kinds(cupti_state *s)
{
    free(s->overrides);
    s->overrides = NULL;
    s->overrides_len = 0;
    s->wanted = 0;
    publish(s);
}

void cupti_set_faults(const hone_emu_cupti_faults *faults)
{
    cupti_state *s = cupti_lock();
    s->faults = faults != NULL ? *faults : (hone_emu_cupti_faults){0};
    s->kernels = 0;
    cupti_unlock();
}

/* Why that kind cannot be enabled: a fault that was asked for, or that it is not made here. */
static CUptiResult refuse_kind(const cupti_state *s, CUpti_ActivityKind kind)
{
    const hone_emu_cupti_faults *f = &s->faults;
    if (f->enable != 0 && (f->enable_kind == 0 || f->enable_kind == (int)kind)) {
        return (CUptiResult)f->enable;
    }
    return kind_known(kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
    cupti_state *s = cupti_lock();
    CUptiResult result = refuse_kind(s, kind);
    if (result == CUPTI_SUCCESS) {
        s->wanted |= CUPTI_KIND(kind);
        publish(s);
    }
    cupti_unlock();
    return result;
}

CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    CUptiResult result = cuptiActivityEnable(kind);
    if (result == CUPTI_SUCCESS && kind == CUPTI_ACTIVITY_KIND_DEVICE) {
        cupti_file_devices();
    }
    return result;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
    if (!kind_known(kind)) {
        return CUPTI_ERROR_INVALID_KIND;
    }
    cupti_state *s = cupti_lock();
    s->wanted &= ~CUPTI_KIND(kind);
    publish(s);
    cupti_unlock();
    return CUPTI_SUCCESS;
}

/* The row of a context, made when it has none; NULL without memory. */
static cupti_override *override_of(cupti_state *s, uint32_t context)
{
    for (size_t i = 0; i < s->overrides_len; i++) {
        if (s->overrides[i].context == context) {
            return &s->overrides[i];
        }
    }
    cupti_override *grown = realloc(s->overrides, (s->overrides_len + 1) * sizeof *s->overrides);
    if (grown == NULL) {
        return NULL;
    }
    s->overrides = grown;
    cupti_override *o = &grown[s->overrides_len++];
    *o = (cupti_override){.context = context};
    return o;
}

static CUptiResult decide(cupti_state *s, uint32_t context, CUpti_ActivityKind kind, bool wanted)
{
    cupti_override *o = override_of(s, context);
    if (o == NULL) {
        return CUPTI_ERROR_OUT_OF_MEMORY;
    }
    o->decided |= CUPTI_KIND(kind);
    o->wanted = wanted ? o->wanted | CUPTI_KIND(kind) : o->wanted & ~CUPTI_KIND(kind);
    publish(s);
    return CUPTI_SUCCESS;
}

static CUptiResult decide_for(CUcontext context, CUpti_ActivityKind kind, bool wanted)
{
    uint32_t id = 0;
    CUptiResult result = cuptiGetContextId(context, &id);
    if (result != CUPTI_SUCCESS) {
        return result;
    }
    cupti_state *s = cupti_lock();
    result = wanted || !kind_known(kind) ? refuse_kind(s, kind) : CUPTI_SUCCESS;
    result = result == CUPTI_SUCCESS ? decide(s, id, kind, wanted) : result;
    cupti_unlock();
    return result;
}

CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
    return decide_for(context, kind, true);
}

CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
    return decide_for(context, kind, false);
}

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                               CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
    if (funcBufferRequested == NULL || funcBufferCompleted == NULL) {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    cupti_state *s = cupti_lock();
    s->request = funcBufferRequested;
    s->complete = funcBufferCompleted;
    cupti_unlock();
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    cupti_lock()->latency = enable != 0;
    cupti_unlock();
    return CUPTI_SUCCESS;
}

/* Shapes of clusters are in the record with or without it. */
CUptiResult CUPTIAPI cuptiActivityEnableLaunchAttributes(uint8_t enable)
{
    (void)enable;
    return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableHWTrace(uint8_t enable)
{
    return enable != 0 ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_SUCCESS;
}
