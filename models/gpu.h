/* gpu.h - GPUs as data: models/gpu/<slug>.yaml, read once, embedded in the binary.
 *
 * A description holds data-sheet facts; rates per SM and clock follow from them. Figures that no
 * good source confirms are listed under `unverified`. */
#ifndef HONE_MODELS_GPU_H
#define HONE_MODELS_GPU_H

#include "core/device.h"
#include "core/status.h"

/* The first five in the order of hone_emu_mma. MXFP8 and FP4 are block-scaled e4m3 and e2m1. */
typedef enum gpu_mma {
    GPU_MMA_FP8,
    GPU_MMA_BF16,
    GPU_MMA_F16,
    GPU_MMA_S8,
    GPU_MMA_TF32,
    GPU_MMA_MXFP8,
    GPU_MMA_FP4,
    GPU_MMA_KINDS
} gpu_mma;

/* Rates are dense, with fp32 accumulation; 0 where the unit lacks the kind. */
typedef struct gpu {
    char slug[48];                             /* file name without .yaml: "h20" */
    device_facts facts;                        /* facts.emulated is true */
    double flop_per_clk_sm[GPU_MMA_KINDS];     /* by the widest instruction: wgmma, tcgen05 */
    double mma_sync_per_clk_sm[GPU_MMA_KINDS]; /* by mma.sync: sm_90 runs fp8 at its f16 rate */
    double
        tensor_sustained; /* share of wgmma's that power allows a long kernel; 1 when unlimited */
    double fp32_lanes, sfu_lanes, issue_slots; /* per SM and clock */
    double shared_bytes_per_clk_sm;
    double l2_bytes_per_clk; /* whole chip, sustained reads */
    double dram_latency_ns;  /* of a load that misses every cache, under load */
    double launch_ns;        /* empty kernel, as a trace of the device times it */
    char unverified[160];    /* comma-separated keys of the file that no good source confirms */
} gpu;

/* By slug, or by the driver's product name, exactly ("H20" begins "H200"). HONE_UNKNOWN lists what
 * there is. Thread-safe. */
hone_status gpu_find(const char *slug, gpu *out, hone_error *error);
hone_status gpu_find_by_name(const char *product, gpu *out, hone_error *error);
/* All slugs, sorted; borrowed static strings. */
size_t gpu_list(const char *const **slugs);
/* Read one description. `source` names it in errors and, without folder and extension, is the slug.
 * HONE_BAD_TEXT for what is not our YAML, HONE_BAD_MODEL for a value or key that a rule refuses. */
hone_status gpu_parse(const char *source, const char *text, size_t len, gpu *out,
                      hone_error *error);

const char *gpu_mma_name(gpu_mma kind); /* "fp8"; static */

#endif
