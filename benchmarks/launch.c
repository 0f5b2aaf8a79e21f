/* launch.c - bench_launch: what hone_launch takes on the host, beside the driver's own launch.
 *
 * The driver's launch does nothing here, so that what is left is the library's part: checks,
 * arguments, tensor maps. Maps are encoded by the emulated driver; a real one's encoder is another
 * program, and nothing is said of it. The median of many rounds of many launches. */
#include "benchmarks/rows.h"
#include "runtime/serving.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, LAUNCHES = 2000 };

static const struct {
    const char *what, *prepared, *launched;
} cases[] = {
    {"act_quant", "act_quant:m=64,k=7168", "act_quant:m=64,k=7168"},
    {"fp8_gemm", "fp8_gemm:m=64,n=7168,k=2048,recipe=f32-1x128-128x128",
     "fp8_gemm:m=64,n=7168,k=2048,recipe=f32-1x128-128x128"},
    {"fp8_gemm of another size", "fp8_gemm:m=64,n=7168,k=2048,recipe=f32-1x128-128x128",
     "fp8_gemm:m=60,n=7168,k=2048,recipe=f32-1x128-128x128"},
};

static CUresult CUDAAPI launch_nothing(const CUlaunchConfig *how, CUfunction f, void **parameters,
                                       void **extra)
{
    (void)how;
    (void)f;
    (void)parameters;
    (void)extra;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_nothing(CUdeviceptr to, unsigned char byte, size_t bytes,
                                    CUstream stream)
{
    (void)to;
    (void)byte;
    (void)bytes;
    (void)stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI encode_nothing(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                       void *base, const cuuint64_t *dims,
                                       const cuuint64_t *strides, const cuuint32_t *box,
                                       const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                       CUtensorMapFloatOOBfill fill)
{
    (void)map;
    (void)type;
    (void)rank;
    (void)base;
    (void)dims;
    (void)strides;
    (void)box;
    (void)steps;
    (void)interleave;
    (void)swizzle;
    (void)promotion;
    (void)fill;
    return CUDA_SUCCESS;
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Nanoseconds of one launch; below 0 when one fails. Operands are addresses that nobody follows. */
static double time_launches(const hone_choice *choice)
{
    hone_operand o[HONE_MAX_OPERANDS];
    hone_arg args[HONE_MAX_OPERANDS + 1];
    double ns[ROUNDS];
    hone_error error;
    size_t len = 0;

    if (hone_operands(&choice->problem, o, &len, &error) != HONE_OK) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        args[i] = (hone_arg){(uint64_t)(i + 1) << 36, o[i].bytes};
    }
    if (choice->workspace_bytes > 0) {
        args[len] = (hone_arg){(uint64_t)(len + 1) << 36, choice->workspace_bytes};
        len++;
    }
    for (int round = 0; round < ROUNDS; round++) {
        const double from = now_ns();
        for (int i = 0; i < LAUNCHES; i++) {
            if (hone_launch(choice, args, len, NULL, &error) != HONE_OK) {
                fprintf(stderr, "a launch failed: %s\n", error.message);
                return -1;
            }
        }
        ns[round] = (now_ns() - from) / LAUNCHES;
    }
    qsort(ns, ROUNDS, sizeof ns[0], compare);
    return ns[ROUNDS / 2];
}

static bool add_case(hone_runtime *rt, size_t which, json_t *rows)
{
    const hone_problem prepared = store_fixture_problem(cases[which].prepared),
                       launched = store_fixture_problem(cases[which].launched);
    driver *d = rt->device->driver;
    char name[96];
    hone_choice choice;
    hone_error error;
    uint32_t maps = 0;

    if (hone_prepare(rt, &prepared, 1, NULL, NULL, &error) != HONE_OK ||
        hone_lookup(rt, &launched, &choice, &error) != HONE_OK) {
        fprintf(stderr, "%s: %s\n", cases[which].launched, error.message);
        return false;
    }
    const plan *p = &((const served *)choice.kernel)->plan;
    for (uint32_t i = 0; i < p->launches_len; i++) {
        maps += p->launches[i].maps_len;
    }
    __typeof__(d->cuTensorMapEncodeTiled) encode = d->cuTensorMapEncodeTiled;
    const double whole = time_launches(&choice);
    d->cuTensorMapEncodeTiled = encode_nothing;
    const double without = time_launches(&choice);
    d->cuTensorMapEncodeTiled = encode;
    snprintf(name, sizeof name, "launch of %s, %u tensor maps", cases[which].what, maps);
    rows_add(rows, name, whole, "ns", ROWS_NO_BAR, 0);
    if (maps > 0) {
        snprintf(name, sizeof name, "  of it encoding them, emulated driver");
        rows_add(rows, name, whole - without, "ns", ROWS_NO_BAR, 0);
    }
    return whole > 0 && without > 0;
}

int main(int argc, char **argv)
{
    const bool json = rows_want_json(argc, argv);
    char folder[FOLDER_BYTES], path[1024], cache[1024];
    json_t *rows = json_array();
    hone_runtime *rt = NULL;
    hone_error error;

    folder_make(folder);
    snprintf(path, sizeof path, "%s/hone.db", folder);
    snprintf(cache, sizeof cache, "%s/kernels.db", folder);
    const hone_options options = {.size = sizeof options, .cache_path = cache};
    bool fine = store_fixture_write(path, NULL, 0) &&
                hone_open(path, "emu:h20", &options, &rt, &error) == HONE_OK;
    if (fine) {
        rt->device->driver->cuLaunchKernelEx = launch_nothing;
        rt->device->driver->cuMemsetD8Async = set_nothing;
    }
    for (size_t i = 0; fine && i < ARRAY_LEN(cases); i++) {
        fine = add_case(rt, i, rows);
    }
    fine = fine && rows_print(rows, json);
    hone_close(rt);
    folder_remove(folder);
    json_decref(rows);
    return fine ? 0 : 1;
}
