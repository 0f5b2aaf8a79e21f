/* test_folded.c - the table of docs/kernels/fp8_gemm_fold.md on an emulated GPU: a per-32 product
 * beside the same product folded, both as they are served, with the tensor core's own arithmetic.
 */
#include "bench/reference.h"
#include "runtime/serving.h"
#include "tests/core/fold_data.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 128, N = 128, K = 2048, SEED = 3 };
#define EXACT "fp8_gemm:m=128,n=128,k=2048,recipe=ue8m0-1x32-32x32,out=f32,a_scale_layout=row"
#define FOLD  "fold:m=128,k=2048,scale_layout=row,q_scale_layout=row"

static char folder[FOLDER_BYTES], store_file[1024], cache_path[1024];
static hone_runtime *rt;
static hone_problem exact, folded, fold;
static hone_error e;

static CUdeviceptr put(const void *bytes, size_t len)
{
    CUdeviceptr address = 0;

    ck_assert_int_eq(rt->device->driver->cuMemAlloc(&address, len), CUDA_SUCCESS);
    ck_assert_int_eq(rt->device->driver->cuMemcpyHtoD(address, bytes, len), CUDA_SUCCESS);
    return address;
}

/* Look the problem up, launch it on images and read what it wrote back into them. */
static void run(const hone_problem *problem, void *const *images)
{
    const driver *d = rt->device->driver;
    hone_operand o[HONE_MAX_OPERANDS];
    hone_arg args[HONE_MAX_OPERANDS + 1];
    hone_choice choice;
    size_t len = 0;

    ck_assert_int_eq(hone_operands(problem, o, &len, &e), HONE_OK);
    ck_assert_msg(hone_lookup(rt, problem, &choice, &e) == HONE_OK, "%s", e.message);
    for (size_t i = 0; i < len; i++) {
        args[i] = (hone_arg){put(images[i], o[i].bytes), o[i].bytes, 0};
    }
    const bool workspace = choice.workspace_bytes > 0;
    if (workspace) {
        CUdeviceptr address = 0;
        ck_assert_int_eq(d->cuMemAlloc(&address, choice.workspace_bytes), CUDA_SUCCESS);
        args[len] = (hone_arg){address, choice.workspace_bytes, 0};
    }
    ck_assert_msg(hone_launch(&choice, args, len + workspace, NULL, &e) == HONE_OK, "%s",
                  e.message);
    ck_assert_int_eq(d->cuCtxSynchronize(), CUDA_SUCCESS);
    for (size_t i = 0; i < len; i++) {
        if (o[i].access != 1) {
            ck_assert_int_eq(d->cuMemcpyDtoH(images[i], args[i].address, o[i].bytes), CUDA_SUCCESS);
        }
    }
    for (size_t i = 0; i < len + workspace; i++) {
        d->cuMemFree(args[i].address);
    }
}

/* Relative Frobenius error of D. */
static double error_of(const float *d, const double *exactly)
{
    double error = 0, norm = 0;

    for (size_t i = 0; i < M * N; i++) {
        const double off = (double)d[i] - exactly[i];
        error += off * off;
        norm += exactly[i] * exactly[i];
    }
    return sqrt(error / norm);
}

static hone_fold_report fold_on_host(const fold_matrix *m, int32_t gran_mn, uint8_t *codes,
                                     uint8_t *scales, uint64_t scales_bytes)
{
    hone_fold_report report = {.size = sizeof report};
    const hone_fold_request r = {.size = sizeof r,
                                 .from_layout = HONE_SCALES_ROW,
                                 .to_layout = HONE_SCALES_ROW,
                                 .from = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, m->gran_mn, 32},
                                 .to = {HONE_DTYPE_E4M3, HONE_DTYPE_UE8M0, gran_mn, 128},
                                 .rows = m->rows,
                                 .k = m->k,
                                 .codes = m->codes,
                                 .scales = m->scales,
                                 .out = codes,
                                 .out_scales = scales,
                                 .out_scales_bytes = scales_bytes};

    ck_assert_msg(hone_fold_scales(&r, &report, &e) == HONE_OK, "%s", e.message);
    return report;
}

/* The device's bytes and count are the host's. */
static void fold_on_device(const fold_matrix *a, const uint8_t *codes, const uint8_t *scales,
                           const hone_fold_report *report)
{
    static uint8_t made[M * K], made_scales[M * K / 128];
    uint64_t inexact = 100;

    run(&fold, (void *const[]){a->codes, a->scales, made, made_scales, &inexact});
    ck_assert_mem_eq(made, codes, sizeof made);
    ck_assert_mem_eq(made_scales, scales, sizeof made_scales);
    ck_assert_uint_eq(inexact, 100 + report->inexact);
}

static void reference(const fold_matrix *a, const fold_matrix *b, double *value)
{
    static double magnitude[M * N];
    const reference_rect all = {0, 0, M, 0, N};
    const inputs in = {.len = 4, .image = {a->codes, a->scales, b->codes, b->scales}};

    ck_assert_msg(reference_fp8_gemm(&exact.as.fp8_gemm, &in, &all, 1, value, magnitude, &e) ==
                      HONE_OK,
                  "%s", e.message);
}

/* Bounds of the errors against the float64 product of the operands before they were folded. The
 * sums of the unit cost the per-32 product some 5e-5 to 2e-4, and twice that over 128 of K. */
static const struct {
    double exact_most, folded_least, folded_most;
} bounds[FOLD_KINDS] = {
    [FOLD_NORMAL] = {2e-4, 5e-5, 4e-4},      [FOLD_CHANNELS] = {2e-4, 5e-5, 4e-4},
    [FOLD_OUTLIERS] = {4e-4, 5e-5, 8e-4},    [FOLD_SWIGLU] = {2e-4, 5e-5, 4e-4},
    [FOLD_ADVERSARIAL] = {4e-4, 3e-3, 3e-2},
};

START_TEST(a_folded_product_costs_what_its_report_says)
{
    static uint8_t a_codes[M * K], a_scales[M * K / 128], b_codes[N * K], b_scales[N * K / 128];
    static float d[2][M * N];
    static double exactly[M * N];
    const fold_kind kind = (fold_kind)_i;
    fold_matrix a = fold_matrix_make(kind, true, M, K, 1, SEED),
                b = fold_matrix_make(kind, false, N, K, 32, SEED);
    const hone_fold_report ra = fold_on_host(&a, 1, a_codes, a_scales, sizeof a_scales),
                           rb = fold_on_host(&b, 32, b_codes, b_scales, sizeof b_scales);

    fold_on_device(&a, a_codes, a_scales, &ra);
    reference(&a, &b, exactly);
    run(&exact, (void *const[]){a.codes, a.scales, b.codes, b.scales, d[0]});
    run(&folded, (void *const[]){a_codes, a_scales, b_codes, b_scales, d[1]});
    const double exact_error = error_of(d[0], exactly), folded_error = error_of(d[1], exactly);
    printf("%-26s inexact %.1e / %.1e; product folded %.1e, per 32 %.1e\n", fold_kind_names[kind],
           (double)ra.inexact / (double)ra.elements, (double)rb.inexact / (double)rb.elements,
           folded_error, exact_error);
    ck_assert_double_le(exact_error, bounds[kind].exact_most);
    ck_assert_double_ge(folded_error, bounds[kind].folded_least);
    ck_assert_double_le(folded_error, bounds[kind].folded_most);
    const bool good =
        hone_fold_accept(&ra, 0, &e) == HONE_OK && hone_fold_accept(&rb, 0, &e) == HONE_OK;
    ck_assert(good == (kind != FOLD_ADVERSARIAL));
    ck_assert(!good || folded_error <= 3.2e-3);
    fold_matrix_free(&a);
    fold_matrix_free(&b);
}
END_TEST

static void setup(void)
{
    const hone_options options = {
        .size = sizeof options, .cache_path = cache_path, .checked = HONE_CHECKED_VALUES};

    jit_fixture_need_nvrtc();
    folder_make(folder);
    snprintf(store_file, sizeof store_file, "%s/hone.db", folder);
    snprintf(cache_path, sizeof cache_path, "%s/kernels.db", folder);
    ck_assert(store_fixture_write(store_file, NULL, 0));
    ck_assert_msg(hone_open(store_file, "emu:h20", &options, &rt, &e) == HONE_OK, "%s", e.message);
    exact = store_fixture_problem(EXACT);
    fold = store_fixture_problem(FOLD);
    ck_assert_msg(hone_fold_problem(&exact, HONE_FOLD_K, &folded, &e) == HONE_OK, "%s", e.message);
    const hone_problem all[] = {exact, folded, fold};
    ck_assert_msg(hone_prepare(rt, all, ARRAY_LEN(all), NULL, NULL, &e) == HONE_OK, "%s",
                  e.message);
}

static void teardown(void)
{
    hone_close(rt);
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("folded");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_folded_product_costs_what_its_report_says, 0, FOLD_KINDS);
    return suite_run_here("runtime/folded", tests);
}
