/* gpu.h - GPUs as data: models/gpu/<name>.yaml, read once, embedded in the binary. */
#ifndef HONE_MODELS_GPU_H
#define HONE_MODELS_GPU_H

#include "core/device.h"
#include "core/status.h"

typedef enum gpu_mma { /* same order as hone_emu_mma */
    GPU_MMA_FP8,
    GPU_MMA_BF16,
    GPU_MMA_F16,
    GPU_MMA_S8,
    GPU_MMA_TF32,
    GPU_MMA_KINDS
} gpu_mma;

typedef struct gpu {
    char slug[48];          /* file name without .yaml: "h20" */
    device_facts facts;
    double flop_per_clk_sm[GPU_MMA_KINDS]; /* dense, fp32 accumulate; 0: the unit lacks it */
    double fp32_lanes, sfu_lanes, issue_slots; /* per SM and clock */
    double shared_bytes_per_clk_sm;   /* 128 */
    double l2_bytes_per_clk;          /* whole chip */
    double launch_ns;                 /* empty kernel */
    char unverified[160];             /* comma-separated field names whose figures are not confirmed */
} gpu;

/* By slug, or by the driver's product name, exactly. HONE_UNKNOWN lists what there is. */
hone_status gpu_find(const char *slug, gpu *out, hone_error *error);
hone_status gpu_find_by_name(const char *product, gpu *out, hone_error *error);
/* All slugs, sorted; borrowed static strings. */
size_t gpu_list(const char *const **slugs);
hone_status gpu_parse(const char *source, const char *text, size_t len, gpu *out, hone_error *error);

#endif
