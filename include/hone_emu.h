/* hone_emu.h - the one extension table of libhone_emu.so, beside the driver API that it exports.
 *
 * Private to the project (not installed). The runtime finds it with dlsym(library,
 * HONE_EMU_SYMBOL); a real libcuda has no such name, and nothing else tells the two apart. Not
 * thread-safe unless said. */
#ifndef HONE_EMU_H
#define HONE_EMU_H

#include "include/hone.h"

#define HONE_EMU_VERSION 5

typedef enum hone_emu_arithmetic {
    HONE_EMU_EXACT = 1, /* tensor products summed exactly, rounded once to fp32 */
    HONE_EMU_FAST = 2,  /* fp32 fused multiply-add in k order */
    HONE_EMU_HW = 3,    /* the tensor core's own alignment and truncation (kernels.md 6.2) */
} hone_emu_arithmetic;

/* What is looked for beside bounds, alignment and use after free, which cost nothing to skip. */
typedef enum hone_emu_check {
    HONE_EMU_CHECK_UNINITIALISED = 1, /* values that nobody wrote, where they matter */
    HONE_EMU_CHECK_BARRIERS = 2,      /* divergence, wrong member masks, the mbarrier protocol */
    HONE_EMU_CHECK_ASYNC = 4,         /* memory and registers of operations still in flight */
    HONE_EMU_CHECK_PROXY = 8,  /* generic writes that an engine reads without a proxy fence */
    HONE_EMU_CHECK_RACES = 16, /* of shared memory, by vector clocks */
    HONE_EMU_CHECK_GLOBAL_RACES = 32, /* of global memory: CTAs then run one after the other */
    HONE_EMU_CHECK_MEMORY = 7,        /* what costs little */
    HONE_EMU_CHECK_ALL = 63,          /* the default */
    HONE_EMU_CHECK_STRICT = 64, /* beside the others: .aligned forms and member masks want exited
                                   lanes too, which the manual lets go; no constants are moved into
                                   wgmma's registers behind its fence, as compilers may */
} hone_emu_check;

/* When an asynchronous operation does its work: as it is issued, or as late as the rules allow. */
typedef enum hone_emu_timing {
    HONE_EMU_AT_ISSUE = 0,
    HONE_EMU_LATEST = 1,
} hone_emu_timing;

/* Every counter of a launch but the products: field, and what it counts. Requests are one a warp
 * instruction; lanes are those that are active. */
#define HONE_EMU_COUNTERS(X)                                                                       \
    X(warp_instructions, "warp instructions")                                                      \
    X(thread_instructions, "active lanes of them")                                                 \
    X(predicated_off, "active lanes whose predicate was off, without branches")                    \
    X(alu, "warp instructions: integer and logic")                                                 \
    X(fp32, "warp instructions: fp32")                                                             \
    X(fp64, "warp instructions: fp64")                                                             \
    X(half, "warp instructions: f16 and bf16")                                                     \
    X(sfu, "warp instructions: special functions, divisions")                                      \
    X(conversion, "warp instructions: conversions")                                                \
    X(control, "warp instructions: branches, barriers")                                            \
    X(memory, "warp instructions: loads, stores, atomics")                                         \
    X(tensor, "warp instructions: matrix products")                                                \
    X(async, "warp instructions: asynchronous copies, mbarriers")                                  \
    X(divergent_branches, "branches that part a warp")                                             \
    X(global_load_bytes, "global bytes that lanes load")                                           \
    X(global_store_bytes, "global bytes that lanes store")                                         \
    X(global_requests, "global requests")                                                          \
    X(global_load_requests, "global requests: loads")                                              \
    X(global_store_requests, "global requests: stores and atomics")                                \
    X(global_sectors, "global sectors of 32 bytes")                                                \
    X(global_load_sectors, "global sectors: loads")                                                \
    X(global_store_sectors, "global sectors: stores and atomics")                                  \
    X(unique_lines, "distinct 128-byte lines touched: the DRAM footprint")                         \
    X(shared_requests, "shared requests")                                                          \
    X(shared_load_requests, "shared requests: loads")                                              \
    X(shared_store_requests, "shared requests: stores and atomics")                                \
    X(shared_wavefronts, "shared wavefronts")                                                      \
    X(shared_conflicts, "shared wavefronts beyond those without conflicts")                        \
    X(matrix_phases, "8 x 8 matrices of ldmatrix and stmatrix: wavefronts at best")                \
    X(matrix_wavefronts, "shared wavefronts of ldmatrix and stmatrix")                             \
    X(local_requests, "local memory requests")                                                     \
    X(local_bytes, "local memory bytes of lanes")                                                  \
    X(constant_requests, "loads from constant memory: no global requests")                         \
    X(atomics, "atomic requests")                                                                  \
    X(async_copy_bytes, "bytes of cp.async")                                                       \
    X(tma_requests, "bulk and tensor copies")                                                      \
    X(tma_load_bytes, "bytes of bulk and tensor copies to shared memory, at each CTA")             \
    X(tma_store_bytes, "bytes of bulk and tensor copies to global memory")                         \
    X(tma_wavefronts, "shared wavefronts of tensor copies: 128 bytes of a box at once")            \
    X(tma_conflicts, "of them, beyond the fewest: rows narrower than their swizzle")               \
    X(barriers, "arrivals of warps at barriers")                                                   \
    X(mbarrier_arrivals, "arrivals at mbarriers")                                                  \
    X(waits, "waits of warps at mbarriers: try_wait, test_wait that had to come back")             \
    X(polls, "looks of warps at mbarriers that were in vain")

/* What one launch did. Counts cover the CTAs that ran; `ctas_total` is the grid. Every field is a
 * uint64_t, so that counters are also a list of HONE_EMU_COUNTERS_LEN of them. */
typedef struct hone_emu_counters {
    uint64_t ctas_run, ctas_total;
#define X(name, text) uint64_t name;
    HONE_EMU_COUNTERS(X)
#undef X
    uint64_t tensor_macs[8];    /* multiply-adds by hone_emu_mma kind */
    uint64_t warpgroup_macs[8]; /* those of them that wgmma did */
} hone_emu_counters;
enum { HONE_EMU_COUNTERS_LEN = sizeof(hone_emu_counters) / sizeof(uint64_t) };

/* The counters of a launch that ran a sample of its CTAs, scaled to the grid. The error is one
 * standard error of the total: with n CTAs (clusters, where there are) of N and s the standard
 * deviation between them, N s / sqrt(n) sqrt(1 - n / N). It holds for a sample drawn at random; 0
 * when all ran; NAN for a sample of one, and for unique_lines, which are not scaled: CTAs share
 * them. */
typedef struct hone_emu_estimate {
    hone_emu_counters total;
    double error[HONE_EMU_COUNTERS_LEN]; /* in the order of the fields of `total` */
} hone_emu_estimate;

/* Main counters of one line of PTX, as those of a launch. Lines of one CUDA line add up. */
#define HONE_EMU_LINE_COUNTERS(X)                                                                  \
    X(warp_instructions)                                                                           \
    X(thread_instructions)                                                                         \
    X(predicated_off)                                                                              \
    X(alu)                                                                                         \
    X(fp32)                                                                                        \
    X(fp64)                                                                                        \
    X(half)                                                                                        \
    X(sfu)                                                                                         \
    X(conversion)                                                                                  \
    X(control)                                                                                     \
    X(memory)                                                                                      \
    X(tensor)                                                                                      \
    X(async)                                                                                       \
    X(divergent_branches)                                                                          \
    X(global_requests)                                                                             \
    X(global_sectors)                                                                              \
    X(shared_requests)                                                                             \
    X(shared_wavefronts)                                                                           \
    X(shared_conflicts)                                                                            \
    X(local_requests)                                                                              \
    X(constant_requests)                                                                           \
    X(atomics)                                                                                     \
    X(async_copy_bytes)                                                                            \
    X(tma_load_bytes)                                                                              \
    X(tma_store_bytes)                                                                             \
    X(tma_wavefronts)                                                                              \
    X(tma_conflicts)                                                                               \
    X(barriers)                                                                                    \
    X(mbarrier_arrivals)                                                                           \
    X(waits)                                                                                       \
    X(polls)                                                                                       \
    X(macs)

typedef struct hone_emu_line {
    int32_t ptx_line, source_line; /* source_line 0: the PTX does not say (-lineinfo) */
    const char *source; /* CUDA file, "" when not known; valid until the device's next launch */
#define X(name) uint64_t name;
    HONE_EMU_LINE_COUNTERS(X)
#undef X
    uint64_t tensor_macs[8]; /* `macs` by hone_emu_mma kind */
    /* Distinct 128-byte lines of global memory that this line of PTX touched, and that all lines of
     * its CUDA line did: those do not add up, since lines share them. */
    uint64_t unique_lines, source_unique_lines;
} hone_emu_line;

/* Index into tensor_macs. */
typedef enum hone_emu_mma {
    HONE_EMU_MMA_FP8 = 0,
    HONE_EMU_MMA_BF16 = 1,
    HONE_EMU_MMA_F16 = 2,
    HONE_EMU_MMA_S8 = 3,
    HONE_EMU_MMA_TF32 = 4,
    HONE_EMU_MMA_MXFP8 = 5, /* block-scaled e4m3, e5m2 and narrower */
    HONE_EMU_MMA_FP4 = 6,   /* block-scaled e2m1 */
} hone_emu_mma;

/* The last fault, with where it happened. `ptx_line` is 1-based in the module's PTX. */
typedef struct hone_emu_fault {
    int32_t result; /* CUresult that the launch reported; 0: no fault so far */
    char kind[32];  /* a name of machine/fault.c: "out-of-bounds", "race", "deadlock", ... */
    char kernel[128];
    char message[384];
    int32_t ptx_line, warp, lane;
    uint64_t cta, address;
    char source[160]; /* CUDA file of the line, where the PTX says (-lineinfo); else empty */
    int32_t source_line;
    char caller[160]; /* where that line was inlined, if it was */
    int32_t caller_line;
} hone_emu_fault;

/* ptxas' figures for a function: an emulator sees PTX, so the one who compiled says what the code
 * needs. */
typedef struct hone_emu_resources {
    int32_t registers, static_shared_bytes, local_bytes, spill_bytes;
} hone_emu_resources;

/* What the activity API (CUPTI) does wrong, for the tests of who relies on it. Zeroed: nothing. */
typedef struct hone_emu_cupti_faults {
    int32_t subscribe;   /* CUptiResult of cuptiSubscribe: 39 is another tool's */
    int32_t enable;      /* CUptiResult of cuptiActivityEnable ... */
    int32_t enable_kind; /* ... of this CUpti_ActivityKind; 0: of all */
    uint32_t lose_every; /* every n-th record of a kernel is neither given nor counted; 0: none */
    int32_t zero_timestamps; /* not 0: records of kernels have no times */
} hone_emu_cupti_faults;

typedef struct hone_emu_api {
    uint32_t version; /* HONE_EMU_VERSION */

    /* Which GPUs to be, by file name below models/gpu ("h20"). Before cuInit; the default is one
     * "h20". HONE_UNKNOWN for a name that is not there. */
    hone_status (*set_devices)(const char *const *names, size_t count, hone_error *error);

    /* Of one device: tensor arithmetic (default HW), and the seed of the warp order (default 0: in
     * order). */
    hone_status (*set_arithmetic)(int device, hone_emu_arithmetic mode, hone_error *error);
    hone_status (*set_schedule)(int device, uint64_t seed, hone_error *error);

    /* Sanitizers: a mask of hone_emu_check; HONE_EMU_CHECK_ALL is the default. */
    hone_status (*set_checks)(int device, int checks, hone_error *error);

    /* When asynchronous operations do their work; at issue is the default. */
    hone_status (*set_timing)(int device, hone_emu_timing timing, hone_error *error);

    /* Host threads that run CTAs side by side (default 1; at most 64). Kernels whose CTAs talk to
     * one another, and launches that look for global races, take one. Results do not depend on it.
     */
    hone_status (*set_threads)(int device, int threads, hone_error *error);

    /* The next launches run only these CTAs (linear index x + y * grid.x + z * grid.x * grid.y), in
     * this order; count 0: all of them again. The list is copied. */
    hone_status (*set_sample)(int device, const uint64_t *ctas, size_t count, hone_error *error);

    /* Set before a launch for its answers by cuFuncGetAttribute, and for occupancy. `function` is a
     * CUfunction. */
    hone_status (*set_resources)(void *function, const hone_emu_resources *resources,
                                 hone_error *error);

    /* Counters of the device's last launch, and the last fault. */
    hone_status (*last_counters)(int device, hone_emu_counters *out, hone_error *error);
    hone_status (*last_fault)(int device, hone_emu_fault *out, hone_error *error);

    /* After a launch that ended in a deadlock or a hang: where each warp of the cluster stands, a
     * line for each place (the fault's message has as many as fit, and how many more). Empty after
     * any other launch. *len is the text's length; as much as `capacity` has room for is written,
     * ended by NUL. */
    hone_status (*last_places)(int device, char *text, size_t capacity, size_t *len,
                               hone_error *error);

    /* Count by line of PTX too, from the next launch on (default off). The lines that ran, in the
     * order of the PTX: *len is how many there are, of which the first `capacity` are written. */
    hone_status (*set_profile)(int device, int on, hone_error *error);
    hone_status (*last_profile)(int device, hone_emu_line *lines, size_t capacity, size_t *len,
                                hone_error *error);

    /* The last launch's counters for the whole grid, with the error of its sample. */
    hone_status (*last_estimate)(int device, hone_emu_estimate *out, hone_error *error);

    /* Clear the sticky error of a device and its context, as a new process would (tests and
     * sweeps). */
    hone_status (*reset)(int device, hone_error *error);

    /* Make every launch from the n-th on fail with this CUresult (0: none): faults for the tuner's
     * tests. */
    hone_status (*set_launch_fault)(int device, uint64_t nth, int result, hone_error *error);

    /* Of the process, until the next call; NULL: none. Thread-safe. */
    hone_status (*set_cupti_faults)(const hone_emu_cupti_faults *faults, hone_error *error);
} hone_emu_api;

/* The exported entry point: const hone_emu_api *hone_emu_api_v1(void). */
#define HONE_EMU_SYMBOL "hone_emu_api_v1"
HONE_API const hone_emu_api *hone_emu_api_v1(void);

#endif
