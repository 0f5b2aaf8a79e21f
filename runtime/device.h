/* device.h - a device by its text ("auto", "cuda:0", "cuda:<uuid>", "emu:h20"), opened, with its
 * facts. */
#ifndef HONE_RUNTIME_DEVICE_H
#define HONE_RUNTIME_DEVICE_H

#include "cache/kind.h"
#include "models/gpu.h"
#include "runtime/driver.h"

#include <stdbool.h>

/* Immutable once open; shared freely between threads. */
typedef struct device {
    driver *driver;
    CUdevice ordinal;
    CUcontext context; /* the primary one, retained until device_close; NULL: described only */
    gpu gpu; /* gpu.facts are this device's own; the rates come from models/gpu, or from its arch */
    bool gpu_known; /* false: no description by that product name, so the rates are its arch's usual
                       ones */
    char spec[64];  /* "cuda:0" or "emu:h20": never "auto" */
    device_kind kind; /* of the facts: what a winner is valid for */
    bool described;   /* by device_describe */
    char note[160];   /* "" or one plain line that a caller should show: times are modelled */
} device;

/* auto: the first CUDA device, else emu:h20 with a note. HONE_BAD_TEXT for a text of another form,
 * HONE_UNKNOWN for a GPU that is not described, HONE_NO_DEVICE for one that is not there. Leaves
 * the device's primary context current on the calling thread. Caller closes *out. */
hone_status device_open(const char *spec, device **out, hone_error *error);
/* The same without a context, for who plans for a device and leaves the work to another process:
 * nothing can be launched, and no memory of the device is taken. */
hone_status device_describe(const char *spec, device **out, hone_error *error);
void device_close(device *d); /* NULL is fine */

/* Another emulated device of the same kind, which another thread may use meanwhile. HONE_NO_DEVICE
 * when there is none: a CUDA device has no twin. Leaves the twin's context current on the calling
 * thread. Caller closes *out. */
hone_status device_open_twin(const device *d, device **out, hone_error *error);

/* Make the device's context current on this thread: before any driver call of another thread. */
hone_status device_enter(const device *d, hone_error *error);

/* The same for a call that gives back what was current: *previous is that, for device_return. */
hone_status device_borrow(const device *d, CUcontext *previous, hone_error *error);
void device_return(const device *d, CUcontext previous);

/* Which devices there are: CUDA's, then every GPU that can be emulated. */
typedef struct device_entry {
    char spec[64];
    device_facts facts;
} device_entry;
/* Opens none of them. *count is how many there are, of which the first `capacity` are written.
 * Without a GPU or a driver only the emulated ones. */
hone_status device_list(device_entry *out, size_t capacity, size_t *count, hone_error *error);

#endif
