/* state.h - inside the activity API: its one state, the client's buffers, and the shapes of
 * records.
 *
 * The subset of CUPTI that a timer uses (emulator.md 7). Times are the emulated device's modelled
 * clock, counted from CUPTI_EPOCH_NS, and never a measurement. */
#ifndef HONE_EMULATOR_CUPTI_STATE_H
#define HONE_EMULATOR_CUPTI_STATE_H

#include "emulator/cupti/record.h"

#define CUPTI_LIB /* its headers then make their functions visible */
#include <cupti_activity.h>
#include <cupti_version.h>

/* The newest kernel record of the headers: what a client compiled against them reads. */
#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 cupti_kernel_record;
#else
typedef CUpti_ActivityKernel9 cupti_kernel_record;
#endif

/* A zero in a record says that there is no time, so that clocks do not begin there. */
#define CUPTI_EPOCH_NS UINT64_C(1000000000)

#define CUPTI_KIND(kind) (UINT64_C(1) << (kind))

struct cupti_note {
    uint32_t context, cbid, size;
    union {
        CUpti_ActivityKind kind;
        cupti_kernel_record kernel;
        CUpti_ActivityMemcpy6 copy;
        CUpti_ActivityMemset4 fill;
    } record;
};

/* What one context asked for, above what all do. */
typedef struct cupti_override {
    uint32_t context;
    uint64_t decided, wanted; /* kinds that it decided on; which of them it wants */
} cupti_override;

/* One process has one profiler: CUPTI's functions take no state, so that this must be global. The
 * lock is recursive, for a client's callback runs under it and may ask for dropped records. */
typedef struct cupti_state {
    pthread_mutex_t lock;
    uint64_t wanted; /* by all contexts */
    cupti_override *overrides;
    size_t overrides_len;
    CUpti_BuffersCallbackRequestFunc request;
    CUpti_BuffersCallbackCompleteFunc complete;
    bool latency; /* queued and submitted times are asked for */
    uint32_t correlation;
    uint64_t kernels; /* records of kernels, lost ones too */
    hone_emu_cupti_faults faults;
    char subscriber[64]; /* its name; empty: there is none */
} cupti_state;

/* activity.c */
cupti_state *cupti_lock(void);
void cupti_unlock(void);
uint64_t cupti_kinds_of(const cupti_state *s, uint32_t context);
/* Nobody asks for anything any more. */
void cupti_forget_kinds(cupti_state *s);

/* queue.c; all under the lock. Without room in any buffer that the client gives, a record is
 * dropped and counted. */
void cupti_queue_put(cupti_state *s, const void *record, size_t bytes);
void cupti_queue_drop(size_t records);
/* Gives the client the buffer that is being filled. */
void cupti_queue_flush(cupti_state *s);
size_t cupti_queue_dropped(void); /* since the last call */
/* Bytes of a record of that kind; 0: no such record is made here. */
size_t cupti_record_bytes(CUpti_ActivityKind kind);

/* correlation.c: the records of this thread's external ids, before the API's record. */
void cupti_put_external(cupti_state *s, uint32_t correlation);

/* record.c: `text`, kept for good; NULL without memory. Any thread, with or without the lock. */
const char *cupti_keep_name(const char *text);

#endif
