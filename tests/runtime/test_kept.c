/* test_kept.c - what launches keep: maps by address and plans by size are found again, are right,
 * are bounded, and are shared by threads. */
#include "bench/inputs.h"
#include "runtime/kept.h"
#include "runtime/serving.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

/* ---- The sets ---------------------------------------------------------------------------------
 */

START_TEST(maps_are_found_by_launch_map_and_address)
{
    static plan p = {.launches_len = 2};
    CUtensorMap made, other;
    size_t found = 0;

    p.launches[0].maps_len = 2;
    p.launches[1].maps_len = 1;
    kept_maps *k = kept_maps_make(&p);
    ck_assert_ptr_nonnull(k);
    for (uint64_t i = 0; i < 1000; i++) {
        memset(&made, (int)(i % 251), sizeof made);
        ck_assert_ptr_null(kept_maps_find(k, 0, 1, (i + 1) << 12));
        kept_maps_add(k, 0, 1, (i + 1) << 12, &made);
        kept_maps_add(k, 0, 1, (i + 1) << 12, &made); /* a second time changes nothing */
    }
    for (uint64_t i = 0; i < 1000; i++) {
        const CUtensorMap *got = kept_maps_find(k, 0, 1, (i + 1) << 12);
        memset(&other, (int)(i % 251), sizeof other);
        ck_assert(got == NULL || memcmp(got, &other, sizeof other) == 0);
        found += got != NULL;
        ck_assert_ptr_null(kept_maps_find(k, 0, 0, (i + 1) << 12));
        ck_assert_ptr_null(kept_maps_find(k, 1, 0, (i + 1) << 12));
    }
    ck_assert_uint_ge(found, 64); /* an engine's layers */
    ck_assert_uint_le(found, 128);
    kept_maps_free(k);
    kept_maps_free(NULL);
    p.launches[0].maps_len = p.launches[1].maps_len = 0;
    ck_assert_ptr_null(kept_maps_make(&p));
}
END_TEST

START_TEST(sizes_are_found_by_their_problem)
{
    static kept_sizes k;
    size_t kept = 0, found = 0;

    for (int64_t m = 1; m <= 500; m++) {
        kept_size *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        s->problem = store_fixture_problem("act_quant:m=1,k=128");
        s->problem.as.act_quant.m = m;
        const bool taken = kept_sizes_add(&k, s);
        kept += taken;
        if (!taken) {
            free(s);
        }
    }
    for (int64_t m = 1; m <= 501; m++) {
        hone_problem problem = store_fixture_problem("act_quant:m=1,k=128");
        problem.as.act_quant.m = m;
        const kept_size *s = kept_sizes_find(&k, &problem, table_key_len(problem.op));
        ck_assert(s == NULL || s->problem.as.act_quant.m == m);
        found += s != NULL;
        problem.as.act_quant.k = 256; /* another family */
        ck_assert_ptr_null(kept_sizes_find(&k, &problem, table_key_len(problem.op)));
    }
    ck_assert_uint_eq(kept, found);
    ck_assert_uint_ge(kept, KEPT_SIZES / 2);
    ck_assert_uint_le(kept, KEPT_SIZES);
    kept_sizes_free(&k);
}
END_TEST

/* ---- Launches -----------------------------------------------------------------------------------
 */

enum { M = 96, N = 64, K = 256, THREADS = 4, SIZES = 24 };
#define GEMM "fp8_gemm:m=96,n=64,k=256,recipe=f32-1x128-128x128,a_scale_layout=row,order=fixed"

static char folder[FOLDER_BYTES];
static hone_runtime *rt;
static hone_problem whole;
static inputs images;
static CUdeviceptr address[5]; /* of operands of the whole problem */
static unsigned encoded;
static __typeof__(&cuTensorMapEncodeTiled) encode;

static CUresult CUDAAPI count_encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *base, const cuuint64_t *dims, const cuuint64_t *strides,
                                     const cuuint32_t *box, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    __atomic_fetch_add(&encoded, 1, __ATOMIC_RELAXED);
    return encode(map, type, rank, base, dims, strides, box, steps, interleave, swizzle, promotion,
                  fill);
}

static CUdeviceptr put(const void *bytes, size_t len)
{
    CUdeviceptr made = 0;

    ck_assert_int_eq(rt->device->driver->cuMemAlloc(&made, len), CUDA_SUCCESS);
    ck_assert_int_eq(rt->device->driver->cuMemcpyHtoD(made, bytes, len), CUDA_SUCCESS);
    return made;
}

/* Launch the first m rows into `d`; false when anything fails. Any thread. */
static bool launch(int64_t m, CUdeviceptr b, CUdeviceptr d)
{
    hone_problem problem = whole;
    hone_choice choice;
    hone_operand o[HONE_MAX_OPERANDS];
    hone_arg args[HONE_MAX_OPERANDS];
    hone_error error;
    size_t len = 0;

    problem.as.fp8_gemm.m = m;
    if (hone_operands(&problem, o, &len, &error) != HONE_OK ||
        hone_lookup(rt, &problem, &choice, &error) != HONE_OK || choice.workspace_bytes > 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        args[i] = (hone_arg){i == 2 ? b : i == 4 ? d : address[i], o[i].bytes, 0};
    }
    return hone_launch(&choice, args, len, NULL, &error) == HONE_OK &&
           device_enter(rt->device, &error) == HONE_OK &&
           rt->device->driver->cuCtxSynchronize() == CUDA_SUCCESS;
}

static void read_rows(CUdeviceptr d, int64_t m, uint8_t *out)
{
    ck_assert_int_eq(rt->device->driver->cuMemcpyDtoH(out, d, (size_t)m * N * 2), CUDA_SUCCESS);
}

/* What a size gives without anything kept: a plan and maps of its own. */
static void launch_plainly(int64_t m, uint8_t *out)
{
    const driver *calls = rt->device->driver;
    hone_problem problem = whole;
    hone_choice choice;
    plan *p = calloc(1, sizeof *p);
    uint64_t at[5];

    problem.as.fp8_gemm.m = m;
    ck_assert_ptr_nonnull(p);
    ck_assert_int_eq(hone_lookup(rt, &problem, &choice, &e), HONE_OK);
    const served *s = choice.kernel;
    ck_assert_int_eq(manifest_plan(s->m, &problem, &rt->device->gpu.facts, &s->config, p, &e),
                     HONE_OK);
    memcpy(at, address, sizeof at);
    ck_assert_int_eq(calls->cuMemsetD8(at[4], 0xa5, (size_t)M * N * 2), CUDA_SUCCESS);
    ck_assert_int_eq(module_launch(s->module, p, at, 5, 0, NULL, &e), HONE_OK);
    ck_assert_int_eq(calls->cuCtxSynchronize(), CUDA_SUCCESS);
    read_rows(at[4], m, out);
    free(p);
}

START_TEST(an_address_is_encoded_once)
{
    static uint8_t first[M * N * 2], second[M * N * 2];
    static const uint8_t zeros[N * K];
    const CUdeviceptr other = put(zeros, sizeof zeros);

    encoded = 0;
    ck_assert(launch(M, address[2], address[4]));
    read_rows(address[4], M, first);
    const unsigned maps = encoded;
    ck_assert_uint_ge(maps, 2);
    ck_assert(launch(M, address[2], address[4]));
    ck_assert_uint_eq(encoded, maps);
    ck_assert(launch(M, other, address[4])); /* only B is elsewhere */
    ck_assert_uint_eq(encoded, maps + 1);
    read_rows(address[4], M, second);
    for (size_t i = 0; i < sizeof second; i++) {
        ck_assert_uint_eq(second[i] & (i % 2 == 0 ? 0xff : 0x7f), 0); /* bf16 0 or -0 */
    }
    ck_assert(launch(M, other, address[4]));
    ck_assert(launch(M, address[2], address[4]));
    ck_assert_uint_eq(encoded, maps + 1);
    read_rows(address[4], M, second);
    ck_assert_mem_eq(first, second, sizeof first);
    rt->device->driver->cuMemFree(other);
}
END_TEST

/* More sizes than there are places, twice each: the second time most are kept. */
START_TEST(every_size_gives_what_it_gives_alone)
{
    static uint8_t plain[M * N * 2], got[M * N * 2];

    for (int64_t m = 1; m <= M; m++) {
        launch_plainly(m, plain);
        for (int again = 0; again < 2; again++) {
            ck_assert_int_eq(rt->device->driver->cuMemsetD8(address[4], 0x5a, (size_t)M * N * 2),
                             CUDA_SUCCESS);
            ck_assert(launch(m, address[2], address[4]));
            read_rows(address[4], m, got);
            ck_assert_msg(memcmp(got, plain, (size_t)m * N * 2) == 0, "m=%lld, time %d",
                          (long long)m, again);
        }
    }
    encoded = 0;
    for (int64_t m = 1; m <= M; m++) {
        ck_assert(launch(m, address[2], address[4]));
    }
    ck_assert_uint_le(encoded, (M - KEPT_SIZES / 2) * 3);
}
END_TEST

typedef struct worker {
    CUdeviceptr d;
    int64_t first;
    uint8_t rows[SIZES][M * N * 2];
    bool fine;
} worker;

static void *launch_often(void *context)
{
    worker *w = context;

    w->fine = true;
    for (int i = 0; i < 2 * SIZES && w->fine; i++) {
        const int64_t m = 1 + (w->first + i) % SIZES;
        w->fine = launch(m, address[2], w->d) &&
                  rt->device->driver->cuMemcpyDtoH(w->rows[m - 1], w->d, (size_t)m * N * 2) ==
                      CUDA_SUCCESS;
    }
    return NULL;
}

START_TEST(threads_keep_for_one_another)
{
    static worker workers[THREADS];
    static uint8_t plain[M * N * 2];
    pthread_t threads[THREADS];

    memset(plain, 0, sizeof plain);
    for (int i = 0; i < THREADS; i++) {
        workers[i].d = put(plain, sizeof plain);
        workers[i].first = i * 7;
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, launch_often, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(workers[i].fine);
    }
    for (int64_t m = 1; m <= SIZES; m++) {
        launch_plainly(m, plain);
        for (int i = 0; i < THREADS; i++) {
            ck_assert_mem_eq(workers[i].rows[m - 1], plain, (size_t)m * N * 2);
        }
    }
}
END_TEST

static void setup(void)
{
    char path[1024], cache[1024];

    jit_fixture_need_nvrtc();
    folder_make(folder);
    snprintf(path, sizeof path, "%s/hone.db", folder);
    snprintf(cache, sizeof cache, "%s/kernels.db", folder);
    ck_assert(store_fixture_write(path, NULL, 0));
    const hone_options options = {.size = sizeof options, .compile_jobs = 1, .cache_path = cache};
    ck_assert_msg(hone_open(path, "emu:h20", &options, &rt, &e) == HONE_OK, "%s", e.message);
    whole = store_fixture_problem(GEMM);
    ck_assert_msg(hone_prepare(rt, &whole, 1, NULL, NULL, &e) == HONE_OK, "%s", e.message);
    ck_assert_msg(inputs_make(&whole, INPUTS_NORMAL, 7, &images, &e) == HONE_OK, "%s", e.message);
    for (size_t i = 0; i < images.len; i++) {
        address[i] = put(images.image[i], images.operand[i].bytes);
    }
    encode = rt->device->driver->cuTensorMapEncodeTiled;
    rt->device->driver->cuTensorMapEncodeTiled = count_encode;
}

static void teardown(void)
{
    inputs_free(&images);
    hone_close(rt);
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("kept");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, maps_are_found_by_launch_map_and_address);
    tcase_add_test(tests, sizes_are_found_by_their_problem);
    tcase_add_test(tests, an_address_is_encoded_once);
    tcase_add_test(tests, every_size_gives_what_it_gives_alone);
    tcase_add_test(tests, threads_keep_for_one_another);
    return suite_run_here("runtime/kept", tests);
}
