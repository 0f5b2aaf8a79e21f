/* launch.c - bench_launch: what hone_launch takes on the host, beside the driver's own launch.
 *
 * The driver's launch does nothing here, so that what is left is the library's part: checks,
 * arguments, tensor maps. Maps are kept by address; where every launch has other addresses they are
 * encoded each time, here by the emulated driver: a real one's encoder is another program, and
 * nothing is said of it. The median of many rounds of many launches. */
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

/* Nanoseconds of one launch; below 0 when one fails. Operands are addresses that nobody follows;
 * they move on by `step` bytes from launch to launch. */
static double time_launches(const hone_choice *choice, uint64_t step)
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
        args[i] = (hone_arg){(uint64_t)(i + 1) << 36, o[i].bytes, 0};
    }
    if (choice->workspace_bytes > 0) {
        args[len] = (hone_arg){(uint64_t)(len + 1) << 36, choice->workspace_bytes, 0};
        len++;
    }
    for (int round = 0; round < ROUNDS; round++) {
        const double from = now_ns();
        for (int i = 0; i < LAUNCHES; i++) {
            for (size_t k = 0; k < len; k++) {
                args[k].address += step;
            }
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
    const double again = time_launches(&choice, 0), moved = time_launches(&choice, 4096);
    snprintf(name, sizeof name, "launch of %s, %u tensor maps", cases[which].what, maps);
    rows_add(rows, name, again, "ns", ROWS_NO_BAR, 0);
    if (maps > 0) {
        rows_add(rows, "  the same, each at other addresses", moved, "ns", ROWS_NO_BAR, 0);
    }
    return again > 0 && moved > 0;
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
