/* test_checked.c - the checked mode: each wrong value is refused by its place, nothing is launched
 * then, and what is right gives the same bits as without it. */
#include "runtime/check_values.h"
#include "runtime/serving.h"
#include "tests/runtime/checked_fixture.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values -----------------------------------------------------------------------------------
 */

#define F32_128 "fp8_gemm:m=6,n=40,k=160,recipe=f32-1x128-128x128"
#define INNER   "fp8_gemm:m=9,n=72,k=160,recipe=f32-1x32-32x32,batch=3,batch_layout=inner"
#define UE8M0   "fp8_gemm:m=6,n=40,k=160,recipe=ue8m0-1x32-1x32,batch=2"
#define FP4     "fp8_gemm:m=6,n=40,k=160,recipe=f32-1x128-e2m1/f32/1x32,b_scale_layout=col"
#define FOLD    "fold:m=6,k=160,scale_layout=row"
#define ACT     "act_quant:m=6,k=256"
enum { A, A_SCALE, B, B_SCALE };

/* One wrong value at a byte that was worked out by hand from the layouts of hone.h. */
static const struct {
    const char *problem;
    size_t operand;
    uint64_t offset;
    int bytes;
    float value; /* of four bytes */
    uint8_t code;
    const char *says; /* NULL: legal */
} values[] = {
    {F32_128, A, 5 * 160 + 7, 1, 0, 0x7f, "checked: a at batch 0, row 5, k 7 is 0x7f, e4m3's NaN"},
    {F32_128, B, 39 * 160 + 159, 1, 0, 0xff,
     "checked: b at batch 0, row 39, k 159 is 0xff, e4m3's NaN"},
    {F32_128, A, 5 * 160 + 7, 1, 0, 0x7e, NULL},
    {F32_128, A_SCALE, (1 * 8 + 5) * 4, 4, NAN, 0,
     "checked: a_scale at batch 0, row 5, group 1 is nan; a scale is finite and not negative"},
    {F32_128, A_SCALE, (1 * 8 + 6) * 4, 4, NAN, 0, NULL}, /* padding */
    {F32_128, B_SCALE, 4, 4, -0.5f, 0,
     "checked: b_scale at batch 0, row 0, group 1 is -0.5; a scale is finite and not negative"},
    {F32_128, B_SCALE, 0, 4, INFINITY, 0,
     "checked: b_scale at batch 0, row 0, group 0 is inf; a scale is finite and not negative"},
    {F32_128, A_SCALE, (0 * 8 + 2) * 4, 4, 0, 0,
     "checked: a_scale at batch 0, row 2, group 0 is 0, and a is not all zero there"},
    {F32_128, B_SCALE, 4, 4, -0.0f, 0,
     "checked: b_scale at batch 0, row 0, group 1 is 0, and b is not all zero there"},
    {INNER, A, (4 * 3 + 2) * 160 + 3, 1, 0, 0xff,
     "checked: a at batch 2, row 4, k 3 is 0xff, e4m3's NaN"},
    {INNER, A_SCALE, ((2 * 5 + 4) * 12 + 4) * 4, 4, INFINITY, 0,
     "checked: a_scale at batch 2, row 4, group 4 is inf; a scale is finite and not negative"},
    {INNER, A_SCALE, ((1 * 5 + 3) * 12 + 8) * 4, 4, 0, 0,
     "checked: a_scale at batch 1, row 8, group 3 is 0, and a is not all zero there"},
    {INNER, B_SCALE, (2 * 15 + 2 * 5 + 1) * 4, 4, NAN, 0,
     "checked: b_scale at batch 2, row 2, group 1 is nan; a scale is finite and not negative"},
    {UE8M0, A_SCALE, 64 + 32 + 3 * 4, 1, 0, 0xff,
     "checked: a_scale at batch 1, row 3, group 4 is nan; 0xff is ue8m0's NaN"},
    {UE8M0, A_SCALE, 64 + 32 + 3 * 4 + 1, 1, 0, 0xff, NULL}, /* padding */
    {UE8M0, A_SCALE, 3 * 4, 1, 0, 0, NULL},                  /* 2^-127, not zero */
    {UE8M0, B_SCALE, 320 + 160 + 39 * 4, 1, 0, 0xff,
     "checked: b_scale at batch 1, row 39, group 4 is nan; 0xff is ue8m0's NaN"},
    {FP4, B, 7, 1, 0, 0xff, NULL}, /* -6, -6 */
    {FP4, B_SCALE, (2 * 40 + 7) * 4, 4, 0, 0,
     "checked: b_scale at batch 0, row 7, group 2 is 0, and b is not all zero there"},
    {FP4, B_SCALE, (2 * 40 + 7) * 4, 4, NAN, 0,
     "checked: b_scale at batch 0, row 7, group 2 is nan; a scale is finite and not negative"},
    {FOLD, A, 2 * 160 + 1, 1, 0, 0x7f, "checked: a at batch 0, row 2, k 1 is 0x7f, e4m3's NaN"},
    {FOLD, A_SCALE, 2 * 5 + 1, 1, 0, 0xff,
     "checked: a_scale at batch 0, row 2, group 1 is nan; 0xff is ue8m0's NaN"},
    {ACT, 0, 0, 4, NAN, 0, NULL},
};

START_TEST(a_wrong_value_is_refused_by_its_place)
{
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, values[_i].problem);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, values[_i].operand, values[_i].offset,
                values[_i].bytes == 4 ? (const void *)&values[_i].value
                                      : (const void *)&values[_i].code,
                (size_t)values[_i].bytes);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES),
                     values[_i].says != NULL ? HONE_BAD_ARGUMENT : HONE_OK);
    ck_assert_str_eq(checked_error.message, values[_i].says != NULL ? values[_i].says : "");
    ck_assert_str_eq(checked_error.source,
                     values[_i].says != NULL ? m.operands[values[_i].operand].name : "");
    checked_close(&m);
    device_close(d);
}
END_TEST

/* The whole group is zero: then so may its scale be. One nibble or code at its end is enough. */
START_TEST(a_scale_of_zero_over_zeros_is_legal)
{
    static const uint8_t zeros[128], one = 0x38, high = 0x10;
    const float zero = 0.0f;
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, F32_128); /* row 2, the tail of 32 */
    checked_put(&m, A, 2 * 160 + 128, zeros, 32);
    checked_put(&m, A_SCALE, (1 * 8 + 2) * 4, &zero, 4);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, A, 2 * 160 + 159, &one, 1);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    checked_close(&m);
    checked_open_right(&m, d, FP4); /* row 7, group 2: bytes 32 to 47 of 80 */
    checked_put(&m, B, 7 * 80 + 32, zeros, 16);
    checked_put(&m, B_SCALE, (2 * 40 + 7) * 4, &zero, 4);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, B, 7 * 80 + 47, &high, 1);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    checked_close(&m);
    device_close(d);
}
END_TEST

START_TEST(powers_of_two_are_demanded_where_asked_for)
{
    const float half = 0.5f, third = 1.0f / 3.0f;
    device *d = checked_device();
    checked_memory m;

    checked_open_right(&m, d, F32_128);
    for (uint64_t i = 0; i < 16; i++) {
        checked_put(&m, A_SCALE, 4 * i, &half, 4);
    }
    for (uint64_t i = 0; i < 2; i++) {
        checked_put(&m, B_SCALE, 4 * i, &half, 4);
    }
    ck_assert_msg(checked_status(&m, HONE_CHECKED_POW2) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, A_SCALE, (1 * 8 + 3) * 4, &third, 4);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_OK);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_POW2), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: a_scale at batch 0, row 3, group 1 is 0.333333343; it is no power "
                     "of two from 2^-127 to 2^127, as was asked for");
    checked_close(&m);
    device_close(d);
}
END_TEST

/* ---- Slots: capacity 2^26, two windows of the search. ------------------------------------------
 */

#define FAR  33554432 /* the first slot of the second window */
#define LAST 67108863
#define KV(tokens)                                                                                 \
    "kv_quant:pages=1048576,page_size=64,record=v41_528-split-pow2_amax,tokens=" tokens

/* Who puts keys into slots, and which operand these are. */
static const struct {
    const char *problem;
    size_t operand;
} writers[] = {
    {KV("6"), 1},
    {"index_prepare:pages=1048576,page_size=64,heads=8,record=index_132-split-pow2_amax,tokens=6",
     3},
    {"index_prepare:pages=1048576,page_size=64,heads=8,record=index_68-split-pow2_tiny,tokens=6",
     3},
};
enum { WRITERS = ARRAY_LEN(writers) };

static const struct {
    int64_t slots[6];
    const char *says;
} slots[] = {
    {{0, 1, 2, LAST, FAR, -1}, NULL},
    {{-1, -1, -1, -7, INT64_MIN, -1}, NULL},
    {{5, -1, 9, -1, 7, 8}, NULL},
    {{0, 1, 2, LAST + 1, 4, 5},
     "checked: slot 67108864 of token 3 lies past the cache of 67108864 "
     "slots"},
    {{0, 1, 2, 3, 4, INT64_MAX},
     "checked: slot 9223372036854775807 of token 5 lies past the cache of 67108864 slots"},
    {{0, 7, 2, 3, 7, 5},
     "checked: tokens 1 and 4 share slot 7; which of them stays is not defined"},
    {{LAST, 1, 2, 3, 4, LAST},
     "checked: tokens 0 and 5 share slot 67108863; which of them stays is not defined"},
    {{1, FAR, -1, FAR, 4, FAR},
     "checked: tokens 1 and 3 share slot 33554432; which of them stays is not defined"},
};

START_TEST(slots_must_lie_in_the_cache_and_apart)
{
    device *d = checked_device();

    for (size_t i = 0; i < WRITERS; i++) {
        checked_memory m;
        checked_open(&m, d, writers[i].problem, INT64_C(1) << 20);
        checked_put(&m, writers[i].operand, 0, slots[_i].slots, sizeof slots[_i].slots);
        ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES),
                         slots[_i].says != NULL ? HONE_BAD_ARGUMENT : HONE_OK);
        ck_assert_str_eq(checked_error.message, slots[_i].says != NULL ? slots[_i].says : "");
        checked_close(&m);
    }
    device_close(d);
}
END_TEST

/* Past one chunk of 4 MiB: tokens are counted on. */
START_TEST(many_slots_are_read_in_chunks)
{
    enum { TOKENS = 600000 };
    device *d = checked_device();
    checked_memory m;
    int64_t *all = malloc(TOKENS * sizeof *all);

    ck_assert_ptr_nonnull(all);
    for (int64_t i = 0; i < TOKENS; i++) {
        all[i] = i * 111;
    }
    checked_open(&m, d, KV("600000"), TOKENS * sizeof *all);
    checked_put(&m, 1, 0, all, TOKENS * sizeof *all);
    ck_assert_msg(checked_status(&m, HONE_CHECKED_VALUES) == HONE_OK, "%s", checked_error.message);
    checked_put(&m, 1, 599999 * 8, &all[524288], 8);
    ck_assert_int_eq(checked_status(&m, HONE_CHECKED_VALUES), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: tokens 524288 and 599999 share slot 58195968; which of "
                     "them stays is not defined");
    free(all);
    checked_close(&m);
    device_close(d);
}
END_TEST

/* ---- Launches -----------------------------------------------------------------------------------
 */

#define GEMM(m) "fp8_gemm:m=" #m ",n=64,k=256,recipe=f32-1x128-128x128"

static char folder[FOLDER_BYTES], store_file[1024], cache_path[1024];

static hone_runtime *open_runtime(int32_t checked)
{
    const hone_options options = {
        .size = sizeof options, .compile_jobs = 1, .cache_path = cache_path, .checked = checked};
    hone_runtime *rt = NULL;
    const hone_problem problem = store_fixture_problem(GEMM(64));

    ck_assert_msg(hone_open(store_file, "emu:h20", &options, &rt, &checked_error) == HONE_OK, "%s",
                  checked_error.message);
    ck_assert_msg(hone_prepare(rt, &problem, 1, NULL, NULL, &checked_error) == HONE_OK, "%s",
                  checked_error.message);
    return rt;
}

static hone_status launch(const hone_runtime *rt, const checked_memory *m)
{
    hone_choice choice;
    hone_arg args[HONE_MAX_OPERANDS + 1];
    CUdeviceptr workspace = 0;

    ck_assert_msg(hone_lookup(rt, &m->problem, &choice, &checked_error) == HONE_OK, "%s",
                  checked_error.message);
    memcpy(args, m->args, sizeof m->args);
    const bool needed = choice.workspace_bytes > 0;
    if (needed) {
        ck_assert_int_eq(m->d->driver->cuMemAlloc(&workspace, choice.workspace_bytes),
                         CUDA_SUCCESS);
        args[m->len] = (hone_arg){workspace, choice.workspace_bytes, 0};
    }
    memset(&checked_error, 0, sizeof checked_error);
    const hone_status status = hone_launch(&choice, args, m->len + needed, NULL, &checked_error);
    ck_assert_int_eq(m->d->driver->cuCtxSynchronize(), CUDA_SUCCESS);
    if (needed) {
        m->d->driver->cuMemFree(workspace);
    }
    return status;
}

static void read_d(const checked_memory *m, uint8_t *out)
{
    ck_assert_int_eq(m->d->driver->cuMemcpyDtoH(out, m->args[4].address, m->operands[4].bytes),
                     CUDA_SUCCESS);
}

static void set_d(const checked_memory *m)
{
    ck_assert_int_eq(m->d->driver->cuMemsetD8(m->args[4].address, 0xa5, m->operands[4].bytes),
                     CUDA_SUCCESS);
}

static void setup(void)
{
    jit_fixture_need_nvrtc();
    folder_make(folder);
    snprintf(store_file, sizeof store_file, "%s/hone.db", folder);
    snprintf(cache_path, sizeof cache_path, "%s/kernels.db", folder);
    ck_assert(store_fixture_write(store_file, NULL, 0));
}

static void teardown(void)
{
    folder_remove(folder);
}

static const char *const launched[] = {GEMM(64), GEMM(40)}; /* the second by a plan of its own */

START_TEST(a_checked_launch_runs_what_is_right_and_nothing_else)
{
    static uint8_t plain[64 * 64 * 2], checked[64 * 64 * 2];
    const float wrong = -1.0f;
    hone_runtime *off = open_runtime(HONE_CHECKED_OFF), *on = open_runtime(HONE_CHECKED_VALUES);
    checked_memory m;

    checked_open_right(&m, on->device, launched[_i]);
    set_d(&m);
    ck_assert_msg(launch(off, &m) == HONE_OK, "%s", checked_error.message);
    read_d(&m, plain);
    set_d(&m);
    ck_assert_msg(launch(on, &m) == HONE_OK, "%s", checked_error.message);
    read_d(&m, checked);
    ck_assert_mem_eq(plain, checked, m.operands[4].bytes);
    ck_assert(plain[0] != 0xa5 || plain[1] != 0xa5);

    checked_put(&m, A_SCALE, 12, &wrong, 4);
    set_d(&m);
    ck_assert_int_eq(launch(on, &m), HONE_BAD_ARGUMENT);
    ck_assert_str_eq(checked_error.message,
                     "checked: a_scale at batch 0, row 3, group 0 is -1; a scale is "
                     "finite and not negative");
    read_d(&m, checked);
    for (size_t i = 0; i < m.operands[4].bytes; i++) {
        ck_assert_uint_eq(checked[i], 0xa5);
    }
    ck_assert_int_eq(launch(off, &m), HONE_OK); /* off, nobody looks */
    checked_close(&m);
    hone_close(on);
    hone_close(off);
}
END_TEST

static CUresult CUDAAPI is_capturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI is_captured_by_another(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    (void)status;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

/* The emulator captures nothing, so that the driver's answer is put in its place. */
START_TEST(a_stream_that_is_captured_is_refused)
{
    static uint8_t d[64 * 64 * 2];
    hone_runtime *rt = open_runtime(HONE_CHECKED_VALUES);
    checked_memory m;

    checked_open_right(&m, rt->device, GEMM(64));
    set_d(&m);
    rt->device->driver->cuStreamIsCapturing = _i == 0 ? is_capturing : is_captured_by_another;
    ck_assert_int_eq(launch(rt, &m), HONE_UNSUPPORTED);
    ck_assert_str_eq(checked_error.message,
                     "checked: the stream is being captured, so that operands cannot be read; "
                     "capture with hone_options.checked off");
    read_d(&m, d);
    for (size_t i = 0; i < sizeof d; i++) {
        ck_assert_uint_eq(d[i], 0xa5);
    }
    checked_close(&m);
    hone_close(rt);
}
END_TEST

START_TEST(a_level_that_is_none_is_refused)
{
    const hone_options options = {.size = sizeof options, .checked = _i == 0 ? -1 : 3};
    hone_runtime *rt = NULL;

    ck_assert_int_eq(hone_open(store_file, "emu:h20", &options, &rt, &checked_error),
                     HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(checked_error.message, "hone_options.checked is ") != NULL, "%s",
                  checked_error.message);
    ck_assert_ptr_null(rt);
}
END_TEST

int main(void)
{
    TCase *cases[] = {tcase_create("values"), tcase_create("launches")};

    tcase_add_loop_test(cases[0], a_wrong_value_is_refused_by_its_place, 0, (int)ARRAY_LEN(values));
    tcase_add_test(cases[0], a_scale_of_zero_over_zeros_is_legal);
    tcase_add_test(cases[0], powers_of_two_are_demanded_where_asked_for);
    tcase_add_loop_test(cases[0], slots_must_lie_in_the_cache_and_apart, 0, (int)ARRAY_LEN(slots));
    tcase_add_test(cases[0], many_slots_are_read_in_chunks);
    tcase_add_unchecked_fixture(cases[1], setup, teardown);
    tcase_add_loop_test(cases[1], a_checked_launch_runs_what_is_right_and_nothing_else, 0, 2);
    tcase_add_loop_test(cases[1], a_stream_that_is_captured_is_refused, 0, 2);
    tcase_add_loop_test(cases[1], a_level_that_is_none_is_refused, 0, 2);
    return suite_run_cases("runtime/checked", cases, ARRAY_LEN(cases));
}
