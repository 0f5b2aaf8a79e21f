/* emulator.h - inside the emulator: from PTX text to a finished launch. The shim (driver API)
 * stands on this.
 *
 * ptx_*: text to decoded kernels. machine_*: execution. memory_*: the device's global memory.
 * tensor_*: matrix arithmetic. One host thread per device at a time. */
#ifndef HONE_EMULATOR_EMULATOR_H
#define HONE_EMULATOR_EMULATOR_H

#include "emulator/machine/memory.h"
#include "include/hone_emu.h"

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* Parse and decode. Every form that is not supported is listed at once, with its line, in `error`
 * and, in full, in `log` (may be NULL). HONE_BAD_TEXT, HONE_UNSUPPORTED. The module allocates its
 * __device__ variables in `memory`. */
hone_status ptx_module_load(const char *text, size_t len, device_memory *memory, ptx_module **out,
                            char *log, size_t log_capacity, hone_error *error);
void ptx_module_unload(ptx_module *m, device_memory *memory);
ptx_kernel *ptx_module_kernel(ptx_module *m, const char *name);  /* by mangled entry name; NULL */
ptx_kernel *ptx_module_kernel_at(ptx_module *m, uint32_t index); /* in the text's order; NULL */
/* Address and size of a __device__ or __constant__ variable; false when there is none. */
bool ptx_module_global(const ptx_module *m, const char *name, uint64_t *address, uint64_t *bytes);

typedef struct ptx_kernel_facts {
    const char *name;
    uint32_t static_shared_bytes, local_bytes, params_len,
        max_threads; /* max_threads: .maxntid or 1024 */
    uint32_t param_offset[64], param_bytes[64], params_bytes;
    uint32_t required_threads[3],
        required_cluster[3]; /* .reqntid, .reqnctapercluster; 0: not said */
    uint32_t max_cluster_rank, min_ctas, max_registers; /* 0: not said */
    bool explicit_cluster;                              /* a launch must say of how many CTAs */
    bool talks;           /* CTAs may wait for one another in global memory */
    uint32_t image_bytes; /* of the emulator's registers of a warp */
} ptx_kernel_facts;
void ptx_kernel_describe(const ptx_kernel *k, ptx_kernel_facts *out);

/* Counters by line of PTX; owned by whoever asked for them. */
typedef struct machine_profile {
    hone_emu_line *lines; /* in the order of the PTX; those that ran */
    size_t len;
    char **paths; /* of the lines' sources */
    size_t paths_len;
} machine_profile;
void machine_profile_free(machine_profile *p);

/* Global memory that a launch wrote, by address; its list counts against the memory's budget. */
typedef struct machine_range {
    uint64_t begin, end;
} machine_range;
typedef struct machine_writes {
    machine_range *ranges;
    size_t len, capacity;
} machine_writes;
void machine_writes_free(device_memory *m, machine_writes *w);

typedef struct machine_launch {
    const ptx_kernel *kernel;
    device_memory *memory;
    const uint8_t *params; /* params_bytes of the facts, laid out by param_offset */
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* CTAs; 0 counts as 1 */
    bool cooperative;    /* all CTAs are resident together */
    /* Clusters that the device holds at once: so many run in turns when the first may wait for
     * later ones. 0: as its limits of threads say. */
    uint64_t resident;
    uint32_t dynamic_shared_bytes;
    int32_t arch, sm_count;
    int32_t registers; /* of a thread, as ptxas says; 0: nobody said */
    hone_emu_arithmetic arithmetic;
    uint64_t schedule_seed;
    uint32_t checks; /* of hone_emu_check */
    hone_emu_timing timing;
    uint64_t budget;        /* instructions of a CTA before it counts as hung; 0: very many */
    int32_t threads;        /* host threads; 0 counts as 1 */
    const uint64_t *sample; /* CTAs to run; NULL: all */
    size_t sample_len;
    /* What the launch before wrote, when this one may begin before that has ended; NULL: it may not.
     * `written`: NULL: not wanted; else empty, and filled where races of global memory are looked
     * for; the caller frees its ranges. */
    const machine_writes *before;
    machine_writes *written;
    machine_profile *profile;    /* NULL: not wanted; else empty before, filled by the run */
    hone_emu_estimate *estimate; /* NULL: not wanted */
    /* NULL: not wanted; else NULL behind it, and after a deadlock or a hang a text for the caller to
     * free: a line for each place that warps of the cluster stand at. */
    char **places;
} machine_launch;

/* Run it. On a fault: *fault is filled, its `result` is the CUresult that the driver reports, and
 * the status is HONE_WRONG. Counters cover what ran. */
hone_status machine_run(const machine_launch *launch, hone_emu_counters *counters,
                        hone_emu_fault *fault, hone_error *error);

#endif
