/* emulator.c - bench_emulator: speed of the emulated GPU on the host, against the design's bars.
 *
 * A launch is serial and runs in the calling thread, so that it is measured in that thread's CPU
 * time: what one core does, whatever else the machine is doing. Each figure is the median of
 * several rounds; what is compared is run in turn. What a second core gains goes by the clock, and
 * has a bar only where two threads that do nothing but count find one free.
 */
#include "benchmarks/emu_launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 16384,    /* of 512 bf16: 16 MiB in */
    STEPS = 256,     /* of four products each */
    ONE_BY_ONE = 16, /* of those that are done element by element */
    CTA = 128,
};

/* ---- Thread instructions ------------------------------------------------------------------- */

/* Times a kernel with memory checks and with all. */
static hone_status rate(bench *b, CUfunction f, const geometry *g, void **params, const char *name,
                        const double bars[2], hone_error *error)
{
    static const struct {
        const char *name;
        int mask;
    } checks[] = {{"memory checks", HONE_EMU_CHECK_MEMORY}, {"all checks", HONE_EMU_CHECK_ALL}};
    hone_status status = HONE_OK;
    double seconds[ARRAY_LEN(checks)][EMU_ROUNDS] = {{0}};
    hone_emu_counters n = {0};
    char text[64];

    for (int round = 0; round < EMU_ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
            TRY(b->driver->emu->set_checks(b->device, checks[i].mask, error));
            TRY(emu_launch(b, f, g, params, &seconds[i][round], &n, error));
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        snprintf(text, sizeof text, "%s, %s", name, checks[i].name);
        rows_add(b->rows, text, (double)n.thread_instructions / emu_median(seconds[i]) * 1e-9,
                 "G thread-instr/s", bars[i] > 0 ? ROWS_AT_LEAST : ROWS_NO_BAR, bars[i]);
    }
done:
    return status;
}

static hone_status bench_quantiser(bench *b, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr in = 0, out = 0, scales = 0;
    uint32_t count = ROWS;
    void *params[] = {&in, &out, &scales, &count};
    const geometry g = {{64, 1}, CTA, 0};

    TRY(emu_use(b, "NVIDIA H20", error));
    TRY(emu_load(b, "ptx/kv_quant.ptx", "kv_quant", &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&in, ROWS * 1024), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&out, ROWS * 512), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&scales, ROWS * 16), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemsetD32(in, 0x3fa0c012, ROWS * 256), "cuMemsetD32", error));
    TRY(rate(b, f, &g, params, "kv_quant", (double[]){1.0, 0.5}, error));
done:
    d->cuMemFree(in);
    d->cuMemFree(out);
    d->cuMemFree(scales);
    return status;
}

static hone_status bench_shared(bench *b, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr out = 0;
    int32_t rounds = 1000;
    void *params[] = {&out, &rounds};
    const geometry g = {{8, 1}, CTA, 0};

    TRY(emu_use(b, "NVIDIA H20", error));
    TRY(emu_load(b, "ptx/shared_loop.ptx", "shared_loop", &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&out, 8 * CTA * 4), "cuMemAlloc", error));
    TRY(rate(b, f, &g, params, "shared memory", (double[]){0, 0}, error));
done:
    d->cuMemFree(out);
    return status;
}

/* ---- Tensor products ----------------------------------------------------------------------- */

static const struct {
    const char *gpu, *text, *file, *kernel;
    hone_emu_mma kind;
    uint32_t ctas, threads, steps;
    double hw, fast; /* least G MAC/s; 0: no bar */
} products[] = {
    {"NVIDIA H20", "mma e4m3, sm_90", "ptx/mma_e4m3.ptx", "mma_e4m3", HONE_EMU_MMA_FP8, 32, CTA,
     STEPS, 0, 0},
    {"NVIDIA GeForce RTX 4090", "mma e4m3, sm_89", "ptx/mma_e4m3.ptx", "mma_e4m3", HONE_EMU_MMA_FP8,
     32, CTA, STEPS, 0, 0},
    {"NVIDIA H20", "mma bf16, sm_90", "ptx/mma_bf16.ptx", "mma_bf16", HONE_EMU_MMA_BF16, 32, CTA,
     STEPS, 0, 0},
    {"NVIDIA H20", "mma f16, sm_90", "ptx/mma_f16.ptx", "mma_f16", HONE_EMU_MMA_F16, 32, CTA, STEPS,
     0, 0},
    {"NVIDIA H20", "mma tf32, sm_90", "ptx/mma_tf32.ptx", "mma_tf32", HONE_EMU_MMA_TF32, 32, CTA,
     STEPS, 0, 0},
    {"NVIDIA GeForce RTX 5090", "mma mxf8, sm_120", "ptx/mma_mxf8.ptx", "mma_mxf8",
     HONE_EMU_MMA_MXFP8, 8, CTA, ONE_BY_ONE, 0, 0},
    {"NVIDIA GeForce RTX 5090", "mma mxf4, sm_120", "ptx/mma_mxf4.ptx", "mma_mxf4",
     HONE_EMU_MMA_FP4, 8, CTA, ONE_BY_ONE, 0, 0},
    {"NVIDIA GeForce RTX 5090", "mma nvf4, sm_120", "ptx/mma_nvf4.ptx", "mma_nvf4",
     HONE_EMU_MMA_FP4, 8, CTA, ONE_BY_ONE, 0, 0},
    {"NVIDIA H20", "wgmma bf16", "ptx/wgmma_bf16.ptx", "wgmma_bf16", HONE_EMU_MMA_BF16, 4, 256, 64,
     0, 0},
    {"NVIDIA H20", "wgmma f16", "ptx/wgmma_f16.ptx", "wgmma_f16", HONE_EMU_MMA_F16, 4, 256, 64, 0,
     0},
    {"NVIDIA H20", "wgmma tf32", "ptx/wgmma_tf32.ptx", "wgmma_tf32", HONE_EMU_MMA_TF32, 4, 256, 64,
     0, 0},
    {"NVIDIA H20", "wgmma e4m3", "ptx/wgmma_e4m3.ptx", "wgmma_e4m3", HONE_EMU_MMA_FP8, 4, 256, 128,
     3, 10},
};

/* Times a kernel in both modes, with all checks. bars: of hw and of fast; 0: none. */
static hone_status compare_modes(bench *b, CUfunction f, const geometry *g, void **params,
                                 hone_emu_mma kind, const char *text, const double bars[2],
                                 hone_error *error)
{
    static const hone_emu_arithmetic modes[] = {HONE_EMU_HW, HONE_EMU_FAST};
    hone_status status = HONE_OK;
    driver *d = b->driver;
    double seconds[ARRAY_LEN(modes)][EMU_ROUNDS] = {{0}}, ratios[EMU_ROUNDS];
    hone_emu_counters n = {0};
    char name[64];

    TRY(d->emu->set_checks(b->device, HONE_EMU_CHECK_ALL, error));
    for (int round = 0; round < EMU_ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
            TRY(d->emu->set_arithmetic(b->device, modes[i], error));
            TRY(emu_launch(b, f, g, params, &seconds[i][round], &n, error));
        }
        ratios[round] = seconds[0][round] / seconds[1][round];
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        snprintf(name, sizeof name, "%s, %s", text, i == 0 ? "hw" : "fast");
        rows_add(b->rows, name, (double)n.tensor_macs[kind] / emu_median(seconds[i]) * 1e-9,
                 "G MAC/s", bars[i] > 0 ? ROWS_AT_LEAST : ROWS_NO_BAR, bars[i]);
    }
    snprintf(name, sizeof name, "%s, hw over fast", text);
    rows_add(b->rows, name, emu_median(ratios), "times as long", ROWS_AT_MOST, 3);
done:
    return status;
}

static hone_status bench_product(bench *b, size_t which, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr out = 0;
    uint32_t steps = products[which].steps;
    void *params[] = {&out, &steps};
    const geometry g = {{products[which].ctas, 1}, products[which].threads, 0};

    TRY(emu_use(b, products[which].gpu, error));
    TRY(emu_load(b, products[which].file, products[which].kernel, &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&out, g.grid[0] * g.block * 4), "cuMemAlloc", error));
    TRY(compare_modes(b, f, &g, params, products[which].kind, products[which].text,
                      (double[]){products[which].hw, products[which].fast}, error));
done:
    d->cuMemFree(out);
    return status;
}

/* ---- Whole GEMMs by TMA, mbarriers and wgmma ----------------------------------------------- */

enum { GEMM_M = 256, GEMM_N = 256, GEMM_K = 2048 };

/* Boxes of rows of 128 bytes out of a matrix. */
static hone_status map_of(const bench *b, CUtensorMapDataType type, unsigned size, CUdeviceptr at,
                          unsigned cols, unsigned rows, unsigned box_rows, CUtensorMap *out,
                          hone_error *error)
{
    const cuuint64_t dims[] = {cols, rows}, pitch[] = {(cuuint64_t)cols * size};
    const cuuint32_t box[] = {128 / size, box_rows}, steps[] = {1, 1};

    return emu_check(b,
                     b->driver->cuTensorMapEncodeTiled(
                         out, type, 2, (void *)(uintptr_t)at, dims, pitch, box, steps,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                     "cuTensorMapEncodeTiled", error);
}

static hone_status open_gemm(bench *b, const char *file, const char *name, unsigned shared,
                             CUfunction *f, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(emu_use(b, "NVIDIA H20", error));
    TRY(emu_load(b, file, name, f, error));
    TRY(emu_check(b,
                  b->driver->cuFuncSetAttribute(*f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                (int)shared),
                  "cuFuncSetAttribute", error));
done:
    return status;
}

/* Floats that are neither all the same nor far apart, of any format. */
static hone_status fill(const bench *b, CUdeviceptr at, size_t bytes, hone_error *error)
{
    hone_status status = HONE_OK;
    uint32_t *words = malloc(bytes);

    for (size_t n = 0; words != NULL && n < bytes / 4; n++) {
        words[n] = ((uint32_t)n * UINT32_C(2654435761) & 0x07830783) ^ 0x3c383c38;
    }
    TRY(words != NULL
            ? emu_check(b, b->driver->cuMemcpyHtoD(at, words, bytes), "cuMemcpyHtoD", error)
            : status_set(error, HONE_NO_MEMORY, "bench_emulator", 0, "a matrix"));
done:
    free(words);
    return status;
}

static hone_status bench_gemm_fp8(bench *b, hone_error *error)
{
    const geometry g = {{4, 1}, 384, 3 * (128 + 64) * 128 + 2 * 64 * 128 + 48 + 1024};
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr a = 0, right = 0, out = 0, scales = 0;
    CUtensorMap map_a, map_b, map_d;
    int m = GEMM_M, n = GEMM_N, k = GEMM_K;
    void *params[] = {&map_a, &map_b, &map_d, &scales, &scales, &m, &n, &k};

    TRY(open_gemm(b, "ptx/gemm_fp8.ptx", "gemm_fp8", g.shared, &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&a, GEMM_M * GEMM_K), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&right, GEMM_N * GEMM_K), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&out, GEMM_M * GEMM_N * 2), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&scales, GEMM_M * GEMM_K / 128 * 4), "cuMemAlloc", error));
    TRY(fill(b, a, GEMM_M * GEMM_K, error));
    TRY(fill(b, right, GEMM_N * GEMM_K, error));
    TRY(emu_check(b, d->cuMemsetD32(scales, 0x3f800000, GEMM_M * GEMM_K / 128), "cuMemsetD32",
                  error));
    TRY(map_of(b, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, a, GEMM_K, GEMM_M, 128, &map_a, error));
    TRY(map_of(b, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, right, GEMM_K, GEMM_N, 64, &map_b, error));
    TRY(map_of(b, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, out, GEMM_N, GEMM_M, 64, &map_d, error));
    TRY(compare_modes(b, f, &g, params, HONE_EMU_MMA_FP8, "GEMM e4m3, TMA and wgmma",
                      (double[]){0, 0}, error));
done:
    d->cuMemFree(a);
    d->cuMemFree(right);
    d->cuMemFree(out);
    d->cuMemFree(scales);
    return status;
}

static hone_status bench_gemm_bf16(bench *b, hone_error *error)
{
    const geometry g = {{GEMM_M / 64, GEMM_N / 128}, 128, 2 * 3 * 8192 + 16 + 1024};
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr a = 0, right = 0, out = 0;
    CUtensorMap map_a, map_b;
    int m = GEMM_M, n = GEMM_N, k = GEMM_K / 2;
    void *params[] = {&map_a, &map_b, &out, &m, &n, &k};

    TRY(open_gemm(b, "ptx/gemm_bf16.ptx", "gemm_bf16", g.shared, &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&a, GEMM_M * GEMM_K), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&right, GEMM_N * GEMM_K), "cuMemAlloc", error));
    TRY(emu_check(b, d->cuMemAlloc(&out, GEMM_M * GEMM_N * 4), "cuMemAlloc", error));
    TRY(fill(b, a, GEMM_M * GEMM_K, error));
    TRY(fill(b, right, GEMM_N * GEMM_K, error));
    TRY(map_of(b, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, a, (unsigned)k, GEMM_M, 64, &map_a, error));
    TRY(map_of(b, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, right, GEMM_N, (unsigned)k, 64, &map_b,
               error));
    TRY(compare_modes(b, f, &g, params, HONE_EMU_MMA_BF16, "GEMM bf16, TMA and MN-major wgmma",
                      (double[]){0, 0}, error));
done:
    d->cuMemFree(a);
    d->cuMemFree(right);
    d->cuMemFree(out);
    return status;
}

/* ---- Two cores ----------------------------------------------------------------------------- */

static void *count(void *arg)
{
    for (uint32_t n = 0; n < 20000000; n++) {
        __asm__ volatile("" : : : "memory"); /* or there is nothing to count */
    }
    return arg;
}

/* How much more two threads count in a second than one: 2 where two cores are free. */
static double free_cores(void)
{
    pthread_t other;
    double begin = emu_now(CLOCK_MONOTONIC);
    count(NULL);
    double alone = emu_now(CLOCK_MONOTONIC) - begin;
    begin = emu_now(CLOCK_MONOTONIC);
    if (pthread_create(&other, NULL, count, NULL) != 0) {
        return 1;
    }
    count(NULL);
    pthread_join(other, NULL);
    return 2 * alone / (emu_now(CLOCK_MONOTONIC) - begin);
}

/* Products in many CTAs: seconds on one host thread over those on two; where no core is free, CPU
 * seconds, which show locks that both want, but not work that one does while the other waits. */
static hone_status bench_cores(bench *b, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr out = 0;
    uint32_t steps = STEPS;
    void *params[] = {&out, &steps};
    double wall[3] = {0}, cpu[3] = {0}, gains[EMU_ROUNDS], costs[EMU_ROUNDS], cores[EMU_ROUNDS],
           own = 0;
    hone_emu_counters n = {0};
    const geometry g = {{256, 1}, CTA, 0};

    TRY(emu_use(b, "NVIDIA H20", error));
    TRY(emu_load(b, "ptx/mma_e4m3.ptx", "mma_e4m3", &f, error));
    TRY(emu_check(b, d->cuMemAlloc(&out, g.grid[0] * CTA * 4), "cuMemAlloc", error));
    /* launches that look for races of global memory take one thread */
    TRY(d->emu->set_checks(b->device, HONE_EMU_CHECK_ALL & ~HONE_EMU_CHECK_GLOBAL_RACES, error));
    for (int round = 0; round < EMU_ROUNDS; round++) {
        cores[round] = free_cores();
        for (int threads = 1; threads <= 2; threads++) {
            TRY(d->emu->set_threads(b->device, threads, error));
            double begin = emu_now(CLOCK_MONOTONIC), worked = emu_now(CLOCK_PROCESS_CPUTIME_ID);
            TRY(emu_launch(b, f, &g, params, &own, &n, error));
            wall[threads] = emu_now(CLOCK_MONOTONIC) - begin;
            cpu[threads] = emu_now(CLOCK_PROCESS_CPUTIME_ID) - worked;
        }
        gains[round] = wall[1] / wall[2];
        costs[round] = 2 * cpu[1] / cpu[2];
    }
    if (emu_median(cores) >= 1.9) {
        rows_add(b->rows, "256 CTAs, two cores over one", emu_median(gains), "times as fast",
                 ROWS_AT_LEAST, 1.8);
    } else {
        rows_add(b->rows, "256 CTAs, no core free: by two threads' CPU time", emu_median(costs),
                 "times as fast", ROWS_NO_BAR, 0);
    }
done:
    d->emu->set_threads(b->device, 1, NULL);
    d->cuMemFree(out);
    return status;
}

/* ---- All of it ----------------------------------------------------------------------------- */

static hone_status bench_products(bench *b, hone_error *error)
{
    hone_status status = HONE_OK;

    for (size_t i = 0; i < ARRAY_LEN(products); i++) {
        TRY(bench_product(b, i, error));
    }
done:
    return status;
}

static const struct {
    const char *name;
    hone_status (*run)(bench *b, hone_error *error);
} parts[] = {
    {"quantiser", bench_quantiser}, {"shared", bench_shared},       {"products", bench_products},
    {"gemm_fp8", bench_gemm_fp8},   {"gemm_bf16", bench_gemm_bf16}, {"cores", bench_cores},
};

int main(int argc, char **argv)
{
    hone_status status = HONE_OK;
    hone_error error = {0};
    bench b = {.rows = json_array()};
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0, holds = false;
    const char *only = argc > 1 + json ? argv[1 + json] : NULL;

    if (argc > 2 + json) {
        fprintf(stderr, "usage: %s [--json] [PART]\n", argv[0]);
        return 2;
    }
    setenv("HONE_EMU_PATH", HONE_EMU_FILE, 0);
    TRY(driver_open_emulator(&b.driver, &error));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (only == NULL || strcmp(only, parts[i].name) == 0) {
            TRY(parts[i].run(&b, &error));
        }
    }
    holds = rows_print(b.rows, json);
done:
    if (status != HONE_OK) {
        fprintf(stderr, "bench_emulator: %s: %s\n", error.source, error.message);
    }
    json_decref(b.rows);
    driver_close(b.driver);
    return status == HONE_OK && holds ? 0 : 1;
}
