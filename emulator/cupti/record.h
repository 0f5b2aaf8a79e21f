/* record.h - what the driver's calls tell the activity API: one test of a word each when nobody
 * listens.
 *
 * A hook is called while its device is held and only takes notes (shim_device.note). shim_leave
 * files them after it let the device go, so that the client's buffer callbacks, which run then, may
 * take locks of their own. */
#ifndef HONE_EMULATOR_CUPTI_RECORD_H
#define HONE_EMULATOR_CUPTI_RECORD_H

#include "emulator/driver/shim.h"

/* Kinds of records that any context asked for: bit CUpti_ActivityKind. Written under the activity
 * API's lock, read anywhere with an atomic load. */
extern uint64_t cupti_wanted;

typedef enum cupti_direction { /* of a copy */
                               CUPTI_TO_DEVICE,
                               CUPTI_TO_HOST,
                               CUPTI_ON_DEVICE,
                               CUPTI_ON_HOST,
} cupti_direction;

/* A launch, a copy of `bytes`, and a fill with `value`, each from begin_ns on the device's clock
 * until now. */
void cupti_note_kernel(const shim_function *f, const CUlaunchConfig *config, double begin_ns);
void cupti_note_copy(shim_context *c, CUstream stream, cupti_direction direction, uint64_t bytes,
                     double begin_ns);
void cupti_note_fill(shim_context *c, CUstream stream, uint32_t value, uint64_t bytes,
                     double begin_ns);

/* Makes the records that `note` stands for and frees it. No device is held. */
void cupti_file(cupti_note *note);
/* The devices exist now: their records, for those who asked before cuInit. */
void cupti_file_devices(void);

static inline bool cupti_listens(void)
{
    return __atomic_load_n(&cupti_wanted, __ATOMIC_RELAXED) != 0;
}

static inline void cupti_kernel(const shim_function *f, const CUlaunchConfig *config,
                                double begin_ns)
{
    if (cupti_listens()) {
        cupti_note_kernel(f, config, begin_ns);
    }
}

static inline void cupti_copy(shim_context *c, CUstream stream, cupti_direction direction,
                              uint64_t bytes, double begin_ns)
{
    if (cupti_listens()) {
        cupti_note_copy(c, stream, direction, bytes, begin_ns);
    }
}

static inline void cupti_fill(shim_context *c, CUstream stream, uint32_t value, uint64_t bytes,
                              double begin_ns)
{
    if (cupti_listens()) {
        cupti_note_fill(c, stream, value, bytes, begin_ns);
    }
}

/* For hone_emu_api.set_cupti_faults; NULL: none. */
void cupti_set_faults(const hone_emu_cupti_faults *faults);

#endif
