/* emulator.c - bench_emulator: speed of the emulated GPU on the host, against the bars of the
 * design.
 *
 * A launch is serial and runs in the calling thread, so that it is measured in that thread's CPU
 * time: what one core does, whatever else the machine is doing. Each figure is the median of
 * several rounds; what is compared is run in turn.
 */
#include "core/embedded.h"
#include "core/status.h"
#include "runtime/driver.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS = 7,
    ROWS = 16384, /* of 512 bf16: 16 MiB in */
    STEPS = 256,  /* of four products each */
    CTA = 128,
};

extern const embedded_file benchmark_ptx[];

typedef struct bench {
    driver *driver;
    json_t *rows;
    int device; /* ordinal of the GPU whose context is current */
} bench;

/* ---- Rows ---------------------------------------------------------------------------------- */

/* A figure with its bar: at least, at most, or none. */
typedef enum bar_kind { BAR_NONE, BAR_LEAST, BAR_MOST } bar_kind;

static void add_row(bench *b, const char *name, double value, const char *unit, bar_kind kind,
                    double bar)
{
    char text[32];
    bool holds = kind == BAR_LEAST ? value >= bar : value <= bar;
    snprintf(text, sizeof text, "%s %g", kind == BAR_LEAST ? ">=" : "<=", bar);
    json_t *row = json_pack("{s:s, s:f, s:s, s:o, s:o}", "name", name, "value", value, "unit", unit,
                            "bar", kind == BAR_NONE ? json_null() : json_string(text), "holds",
                            kind == BAR_NONE ? json_null() : json_boolean(holds));
    json_array_append_new(b->rows, row);
}

/* Print what was found; false when a row does not hold. */
static bool report(const bench *b, bool json)
{
    size_t i = 0;
    json_t *row = NULL;
    bool all = true;

    if (json) {
        json_t *whole = json_pack("{s:O}", "rows", b->rows);
        json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(whole);
    }
    json_array_foreach(b->rows, i, row)
    {
        const char *bar = json_string_value(json_object_get(row, "bar"));
        bool missed = json_is_false(json_object_get(row, "holds"));
        all = all && !missed;
        if (!json) {
            printf("%-48s %10.3f %-20s %8s %s\n", json_string_value(json_object_get(row, "name")),
                   json_real_value(json_object_get(row, "value")),
                   json_string_value(json_object_get(row, "unit")), bar != NULL ? bar : "",
                   bar == NULL ? ""
                   : missed    ? "NO"
                               : "yes");
        }
    }
    return all;
}

/* ---- The device ---------------------------------------------------------------------------- */

static hone_status check(const bench *b, CUresult result, const char *call, hone_error *error)
{
    return driver_check(b->driver, result, call, error);
}

/* Make the GPU of that product name current. */
static hone_status use_device(bench *b, const char *product, hone_error *error)
{
    hone_status status = HONE_OK;
    driver *d = b->driver;
    int count = 0;
    CUcontext context = NULL;

    TRY(check(b, d->cuDeviceGetCount(&count), "cuDeviceGetCount", error));
    for (int i = 0; i < count; i++) {
        char name[128] = "";
        TRY(check(b, d->cuDeviceGetName(name, sizeof name, i), "cuDeviceGetName", error));
        const char *at = strstr(name, product);
        if (at != NULL && strcmp(at, product) == 0) {
            TRY(check(b, d->cuDevicePrimaryCtxRetain(&context, i), "cuDevicePrimaryCtxRetain",
                      error));
            b->device = i;
            return check(b, d->cuCtxSetCurrent(context), "cuCtxSetCurrent", error);
        }
    }
    status = status_set(error, HONE_NO_DEVICE, product, 0, "the emulator does not have this GPU");
done:
    return status;
}

static hone_status load(bench *b, const char *file, const char *name, CUfunction *out,
                        hone_error *error)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    const char *text = embedded_find(benchmark_ptx, file)->bytes;
    if (b->driver->cuModuleLoadDataEx(&module, text, 2, options, values) != CUDA_SUCCESS) {
        return status_set(error, HONE_COMPILE, file, 0, "%s", log);
    }
    return check(b, b->driver->cuModuleGetFunction(out, module, name), "cuModuleGetFunction",
                 error);
}

/* CPU seconds of a launch, and what it counted. */
static hone_status timed_launch(bench *b, CUfunction f, unsigned grid, unsigned block,
                                void **params, double *seconds, hone_emu_counters *counters,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_fault fault = {0};
    struct timespec begin, end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    CUresult result = b->driver->cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    if (result != CUDA_SUCCESS) {
        b->driver->emu->last_fault(b->device, &fault, NULL);
        return status_set(error, HONE_DRIVER, fault.kernel, fault.ptx_line, "%s: %s", fault.kind,
                          fault.message);
    }
    TRY(b->driver->emu->last_counters(b->device, counters, error));
    *seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
done:
    return status;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of ROUNDS values, which are sorted. */
static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof values[0], compare_reals);
    return values[ROUNDS / 2];
}

/* ---- Thread instructions ------------------------------------------------------------------- */

static hone_status bench_instructions(bench *b, hone_error *error)
{
    static const struct {
        const char *name;
        int checks;
        double bar;
    } rows[] = {
        {"kv_quant, memory checks", HONE_EMU_CHECK_MEMORY, 1.0},
        {"kv_quant, all checks", HONE_EMU_CHECK_ALL, 0.5},
    };
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr in = 0, out = 0, scales = 0;
    uint32_t count = ROWS;
    double seconds[ARRAY_LEN(rows)][ROUNDS] = {{0}};
    hone_emu_counters n = {0};
    void *params[] = {&in, &out, &scales, &count};

    TRY(use_device(b, "NVIDIA H20", error));
    TRY(load(b, "ptx/kv_quant.ptx", "kv_quant", &f, error));
    TRY(check(b, d->cuMemAlloc(&in, ROWS * 1024), "cuMemAlloc", error));
    TRY(check(b, d->cuMemAlloc(&out, ROWS * 512), "cuMemAlloc", error));
    TRY(check(b, d->cuMemAlloc(&scales, ROWS * 16), "cuMemAlloc", error));
    TRY(check(b, d->cuMemsetD32(in, 0x3fa0c012, ROWS * 256), "cuMemsetD32", error));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            TRY(d->emu->set_checks(b->device, rows[i].checks, error));
            TRY(timed_launch(b, f, 64, CTA, params, &seconds[i][round], &n, error));
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        add_row(b, rows[i].name, (double)n.thread_instructions / median(seconds[i]) * 1e-9,
                "G thread-instr/s", BAR_LEAST, rows[i].bar);
    }
done:
    d->cuMemFree(in);
    d->cuMemFree(out);
    d->cuMemFree(scales);
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
    {"NVIDIA H20", "wgmma e4m3", "ptx/wgmma_e4m3.ptx", "wgmma_e4m3", HONE_EMU_MMA_FP8, 4, 256, 128,
     3, 10},
};

static hone_status bench_product(bench *b, size_t which, hone_error *error)
{
    static const hone_emu_arithmetic modes[] = {HONE_EMU_HW, HONE_EMU_FAST};
    hone_status status = HONE_OK;
    driver *d = b->driver;
    CUfunction f = NULL;
    CUdeviceptr out = 0;
    uint32_t steps = products[which].steps;
    double seconds[ARRAY_LEN(modes)][ROUNDS] = {{0}}, ratios[ROUNDS];
    hone_emu_counters n = {0};
    void *params[] = {&out, &steps};
    char name[64];

    TRY(use_device(b, products[which].gpu, error));
    TRY(load(b, products[which].file, products[which].kernel, &f, error));
    TRY(check(b, d->cuMemAlloc(&out, products[which].ctas * products[which].threads * 4),
              "cuMemAlloc", error));
    TRY(d->emu->set_checks(b->device, HONE_EMU_CHECK_ALL, error));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
            TRY(d->emu->set_arithmetic(b->device, modes[i], error));
            TRY(timed_launch(b, f, products[which].ctas, products[which].threads, params,
                             &seconds[i][round], &n, error));
        }
        ratios[round] = seconds[0][round] / seconds[1][round];
    }
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        double macs = (double)n.tensor_macs[products[which].kind];
        snprintf(name, sizeof name, "%s, %s", products[which].text, i == 0 ? "hw" : "fast");
        double bar = i == 0 ? products[which].hw : products[which].fast;
        add_row(b, name, macs / median(seconds[i]) * 1e-9, "G MAC/s",
                bar > 0 ? BAR_LEAST : BAR_NONE, bar);
    }
    snprintf(name, sizeof name, "%s, hw over fast", products[which].text);
    add_row(b, name, median(ratios), "times as long", BAR_MOST, 3);
done:
    d->cuMemFree(out);
    return status;
}

int main(int argc, char **argv)
{
    hone_status status = HONE_OK;
    hone_error error = {0};
    bench b = {.rows = json_array()};
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0, holds = false;

    if (argc > 1 && !json) {
        fprintf(stderr, "usage: %s [--json]\n", argv[0]);
        return 2;
    }
    setenv("HONE_EMU_PATH", HONE_EMU_FILE, 0);
    TRY(driver_open_emulator(&b.driver, &error));
    TRY(bench_instructions(&b, &error));
    for (size_t i = 0; i < ARRAY_LEN(products); i++) {
        TRY(bench_product(&b, i, &error));
    }
    holds = report(&b, json);
done:
    if (status != HONE_OK) {
        fprintf(stderr, "bench_emulator: %s: %s\n", error.source, error.message);
    }
    json_decref(b.rows);
    driver_close(b.driver);
    return status == HONE_OK && holds ? 0 : 1;
}
