/* shim.h - the driver API's own state: devices, contexts, and the objects behind opaque handles.
 *
 * Handles are table indices, never addresses, so that any bit pattern is refused and none is
 * followed. Each device has one lock, held for a whole call: work is serial and finished when the
 * call returns. */
#ifndef HONE_EMULATOR_SHIM_H
#define HONE_EMULATOR_SHIM_H

#include "emulator/emulator.h"
#include "models/gpu.h"

#include <pthread.h>

/* What cuda.h declares is exported; everything else in the library stays hidden. */
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

/* The same function by its name for the other default stream, as in libcuda: the streams are all
 * one here. */
#define SHIM_ALIAS(name, suffix) SHIM_ALIAS_OF(name, suffix)
#define SHIM_ALIAS_OF(name, suffix)                                                                \
    extern __typeof__(name) name##suffix __attribute__((alias(#name), visibility("default")))

enum {
    SHIM_VERSION = 13000,
    SHIM_STATIC_SHARED = 48 * 1024, /* shared memory that a launch may have without asking */
    SHIM_DIM_Z = 64,                /* limits of every arch that is emulated */
    SHIM_DIM_XY = 1024,
    SHIM_GRID_YZ = 65535,
    SHIM_WARP = 32,
    SHIM_PRIORITY_GREATEST = -5, /* of streams; the least is 0 */
};

typedef enum shim_kind {
    SHIM_CONTEXT = 1,
    SHIM_MODULE,
    SHIM_FUNCTION,
    SHIM_STREAM,
    SHIM_EVENT,
    SHIM_HOST,
    SHIM_LIBRARY,
    SHIM_KERNEL,
} shim_kind;

typedef struct shim_context shim_context;
typedef struct cupti_note cupti_note; /* emulator/cupti */

/* Head of everything that a context owns. */
typedef struct shim_object {
    shim_kind kind;
    void *handle;
    shim_context *context;                     /* NULL for libraries and kernels */
    void (*release)(struct shim_object *self); /* gives back what the object holds; NULL: nothing */
    struct shim_object *next, *previous;
} shim_object;

typedef struct shim_device {
    int ordinal;
    gpu gpu;
    pthread_mutex_t lock; /* guards all below, the contexts and what they own */
    shim_context *contexts, *primary;
    int primary_uses;
    unsigned primary_flags;
    hone_emu_arithmetic arithmetic;
    uint64_t seed;
    uint32_t checks; /* of hone_emu_check */
    hone_emu_timing timing;
    int32_t threads;
    uint64_t *sample;
    size_t sample_len;
    hone_emu_counters counters; /* of the last launch, as what follows */
    hone_emu_estimate estimate;
    bool profiles; /* launches count by line */
    machine_profile profile;
    hone_emu_fault fault;
    char *places; /* of the last deadlock or hang; NULL: none */
    uint64_t launches, fault_from; /* launches since the fault was asked for, and from which on */
    CUresult fault_result;
    double clock_ns;  /* modelled time of all that ran */
    cupti_note *note; /* what this call did, for the activity API; NULL: nobody asked */
} shim_device;

/* Never freed before the process ends: a thread that lost a race with cuCtxDestroy finds `alive`
 * false. */
struct shim_context {
    shim_device *device;
    void *handle;
    device_memory *memory;
    CUresult sticky; /* of a fault: every later call returns it */
    bool alive;
    unsigned flags;
    uint64_t id;
    size_t limits[CU_LIMIT_MAX];
    CUfunc_cache cache;
    uint32_t streams_made;
    shim_object *objects;
    /* What the last launch wrote and where, while nothing else has been asked for since. */
    machine_writes written;
    CUstream written_on;
    shim_context *next;
};

typedef struct shim_module {
    shim_object head;
    ptx_module *ptx;
    const void *library; /* of cuLibraryLoadData; NULL for a module of its own */
} shim_module;

typedef struct shim_function {
    shim_object head;
    shim_module *module;
    const ptx_kernel *kernel;
    ptx_kernel_facts facts;
    hone_emu_resources resources; /* registers 0: nobody said */
    int dynamic_limit;            /* dynamic shared bytes that a launch may ask for */
    int carveout;
    int required_cluster[3]; /* 0: none; from the PTX, or set */
    int non_portable, cluster_policy;
} shim_function;

/* What the attributes of a launch ask for. */
typedef struct shim_attributes {
    unsigned cluster[3]; /* when `clustered` */
    bool clustered, cooperative;
    bool overlaps; /* may begin before the launch before it has ended */
    CUevent event; /* fires with the launch; NULL: none */
} shim_attributes;

/* ---- injected.c: faults that a test asks for. ---- */

/* Whether HONE_EMU_FAULTS' text (NULL: none) is a list that shim_fault_of_kernel understands. */
bool shim_faults_valid(const char *text);
/* The failure that is asked for of a kernel, noted on its device; *skip: it is to do nothing. May
 * not return. */
CUresult shim_fault_of_kernel(const shim_function *f, bool *skip);

/* ---- state.c: the process. ---- */
hone_status shim_configure(const char *const *names, size_t count, hone_error *error);
CUresult shim_start(void);                /* idempotent */
size_t shim_device_count(void);           /* 0 before shim_start */
shim_device *shim_device_at(int ordinal); /* NULL when there is none */
/* A device, locked. `arguments`: whether the call's own arguments are sane;
 * CUDA_ERROR_INVALID_VALUE if not. */
CUresult shim_lock(int ordinal, bool arguments, shim_device **out);
void shim_unlock(shim_device *d);
/* The current context, without a fault, its device locked. `arguments` as in shim_lock. */
CUresult shim_enter(shim_context **out, bool arguments);
/* For calls that neither give the device work nor wait for it, and for launches: a launch that may
 * begin before the one before it has ended must come right behind that one. */
CUresult shim_enter_aside(shim_context **out, bool arguments);
void shim_forget_writes(shim_context *c);
void shim_leave(shim_context *c);
CUresult shim_result(hone_status status);
/* Note why a call failed, for hone_emu_api.last_fault. */
CUresult shim_note(shim_device *d, CUresult result, const char *kind, const char *message);
bool shim_result_sticks(CUresult result);
memory_budget *shim_budget(void); /* of the process, once it has started */

/* ---- handle.c: handles and objects. ---- */
void *shim_handle_new(shim_kind kind, void *object); /* NULL when out of memory */
void *shim_handle_get(shim_kind kind,
                      const void *handle); /* NULL: not a live handle of this kind */
void shim_handle_drop(const void *handle);
/* Zeroed object of `size` bytes, linked to its context (NULL: to none). NULL when out of memory. */
void *shim_object_new(shim_context *c, shim_kind kind, size_t size);
void *shim_object_get(const shim_context *c, shim_kind kind,
                      const void *handle); /* NULL: not one of c's */
void shim_object_destroy(shim_object *object);

/* ---- context.c ---- */
shim_context *shim_context_current(void);         /* of this thread; NULL when there is none */
uint64_t shim_context_used(const shim_device *d); /* bytes allocated in all contexts */

/* ---- image.c: what may be loaded. ---- */
/* CUDA_SUCCESS when `image` is PTX text that this arch takes; else why not, in `log`. */
CUresult shim_image_check(const void *image, int32_t arch, char *log, size_t log_capacity);

/* ---- module.c ---- */
typedef struct shim_log { /* the caller's JIT log buffers, from its options */
    char *error, *info;
    size_t error_capacity, info_capacity;
    void **error_size, **info_size; /* option values that receive the bytes used */
    float *wall_ms;
} shim_log;
CUresult shim_log_read(unsigned count, const CUjit_option *options, void **values, shim_log *out);
CUresult shim_module_load(shim_context *c, const char *text, const shim_log *log,
                          shim_module **out);
/* The function of that name, made on first use. */
CUresult shim_module_function(shim_module *m, const char *name, shim_function **out);

/* ---- library.c ---- */
/* A CUfunction or a CUkernel as a function of `c`, loading the library's module when needed. */
CUresult shim_function_of(shim_context *c, const void *handle, shim_function **out);

/* ---- function.c ---- */
CUresult shim_function_attribute(const shim_function *f, CUfunction_attribute attribute, int *out);
CUresult shim_function_set(shim_function *f, CUfunction_attribute attribute, int value);

/* ---- occupancy.c ---- */
/* CTAs that an SM holds at once; 0 when not even one fits. */
int shim_occupancy(const gpu *g, const shim_function *f, int threads, uint64_t dynamic_shared);
/* 32-bit registers that a CTA takes, by the allocation rules. */
int shim_occupancy_registers(const shim_function *f, int threads);

/* Clusters that the device holds at once; 0 when not one fits. Any SMs may hold a cluster here; on
 * hardware its CTAs lie in one GPC, so that fewer may fit. */
int shim_occupancy_clusters(const shim_function *f, int threads, uint64_t dynamic_shared,
                            unsigned ctas);

/* ---- attributes.c ---- */
CUresult shim_attributes_read(const shim_function *f, const CUlaunchConfig *config,
                              shim_attributes *out);
unsigned shim_cluster_most(const shim_function *f); /* CTAs of a cluster */
CUresult shim_cluster_check(const shim_function *f, const CUlaunchConfig *config,
                            const shim_attributes *a);

/* ---- compat.c: older forms of calls, for cuGetProcAddress. ---- */
CUresult shim_compat_ctx_create_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult shim_compat_ctx_create_v3(CUcontext *context, CUexecAffinityParam *params, int params_len,
                                   unsigned flags, CUdevice device);
CUresult shim_compat_get_proc_address(const char *symbol, void **pfn, int cudaVersion,
                                      cuuint64_t flags);

/* ---- stream.c ---- */
bool shim_stream_valid(const shim_context *c, CUstream stream);
void shim_event_record(shim_context *c, CUevent event); /* one that exists, or NULL */
/* Its number in records, of its context; 0: not one of c's. */
uint32_t shim_stream_id(const shim_context *c, CUstream stream);

#endif
