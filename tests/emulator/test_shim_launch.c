/* test_shim_launch.c - claims about launches, faults and modelled time, through the
 * driver's names. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

static shim_driver d;
static CUfunction add, tail;

static void start(void)
{
    shim_driver_start(&d, "h20,rtx4090");
    add = shim_driver_function(&d, shim_add_ptx, "add");
    tail = shim_driver_function(&d, shim_tail_ptx, "tail");
}

static CUdeviceptr allocate(size_t bytes)
{
    CUdeviceptr p = 0;
    SHIM_OK(&d, cuMemAlloc(&p, bytes));
    return p;
}

static CUresult launch_add(shim_vectors *v, unsigned grid, unsigned block)
{
    void *params[] = {&v->a, &v->b, &v->c, &v->n};
    return d.cuLaunchKernel(add, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL);
}

START_TEST(a_vector_is_added)
{
    shim_vectors v = shim_vectors_make(&d);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    SHIM_OK(&d, cuCtxSynchronize());
    shim_vectors_check(&d, &v);
}
END_TEST

START_TEST(parameters_come_as_one_buffer_too)
{
    shim_vectors v = shim_vectors_make(&d);
    size_t size = 28, small = 27;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &v, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    void *params[] = {&v.a, &v.b, &v.c, &v.n};
    SHIM_OK(&d, cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
    shim_vectors_check(&d, &v);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, extra));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
    extra[3] = &small;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, NULL, extra));
}
END_TEST

/* Launches of `tail` (at most 64 threads) and what the driver says to them. */
static const struct {
    unsigned grid[3], block[3], shared;
    CUresult result;
} shapes[] = {
    {{1, 1, 1}, {64, 1, 1}, 1024, CUDA_SUCCESS},
    {{1, 1, 1}, {1, 1, 64}, 1024, CUDA_SUCCESS},
    {{0, 1, 1}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 0, 1}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 0}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{0x80000000u, 1, 1}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 65536, 1}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 65536}, {64, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {0, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {65, 1, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {8, 8, 2}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {1, 1, 65}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {65536, 65536, 1}, 1024, CUDA_ERROR_INVALID_VALUE},
    {{1, 1, 1}, {64, 1, 1}, 49152, CUDA_SUCCESS},
    {{1, 1, 1}, {64, 1, 1}, 49153, CUDA_ERROR_INVALID_VALUE},
};

START_TEST(a_launch_outside_the_limits_is_refused_and_does_not_stick)
{
    CUdeviceptr p = allocate(4);
    uint32_t offset = 0;
    void *params[] = {&p, &offset};
    const unsigned *g = shapes[_i].grid, *b = shapes[_i].block;
    SHIM_GIVES(&d, shapes[_i].result,
               cuLaunchKernel(tail, g[0], g[1], g[2], b[0], b[1], b[2], shapes[_i].shared, NULL,
                              params, NULL));
    SHIM_OK(&d, cuCtxSynchronize());
}
END_TEST

START_TEST(shared_memory_past_48_kib_must_be_asked_for)
{
    CUdeviceptr p = allocate(4);
    uint32_t offset = 232448 - 4, back = 0;
    void *params[] = {&p, &offset};
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int value = 0;
    SHIM_OK(&d, cuFuncGetAttribute(&value, most, tail));
    ck_assert_int_eq(value, 49152);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE,
               cuLaunchKernel(tail, 1, 1, 1, 1, 1, 1, 232448, NULL, params, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(tail, most, 232449));
    SHIM_OK(&d, cuFuncSetAttribute(tail, most, 232448));
    SHIM_OK(&d, cuLaunchKernel(tail, 1, 1, 1, 1, 1, 1, 232448, NULL, params, NULL));
    SHIM_OK(&d, cuMemcpyDtoH(&back, p, 4));
    ck_assert_uint_eq(back, 7);
}
END_TEST

START_TEST(registers_that_do_not_fit_are_refused)
{
    shim_vectors v = shim_vectors_make(&d);
    const hone_emu_resources wide = {.registers = 128};
    int threads = 0;
    ck_assert_int_eq(launch_add(&v, 1, 1024), CUDA_SUCCESS);
    ck_assert_int_eq(d.emu->set_resources(add, &wide, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 1, 1024), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    ck_assert_int_eq(launch_add(&v, 2, 512), CUDA_SUCCESS);
    SHIM_OK(&d, cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
    ck_assert_int_eq(threads, 512);
    SHIM_OK(&d, cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
    ck_assert_int_eq(threads, 128);
}
END_TEST

/* Make the add run past the end of c. */
static void overrun(shim_vectors *v)
{
    v->n = SHIM_VECTOR_LEN + 4000;
    ck_assert_int_eq(launch_add(v, 40, 128), CUDA_ERROR_ILLEGAL_ADDRESS);
    v->n = SHIM_VECTOR_LEN;
}

START_TEST(a_fault_sticks_to_the_context_until_a_reset)
{
    shim_vectors v = shim_vectors_make(&d);
    CUdeviceptr p = 0;
    CUcontext other = NULL;
    overrun(&v);
    SHIM_GIVES(&d, CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    SHIM_GIVES(&d, CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&p, 16));
    SHIM_GIVES(&d, CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&p, v.a, 8));
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_ILLEGAL_ADDRESS);
    SHIM_OK(&d, cuCtxCreate(&other, NULL, 0, 0));
    SHIM_OK(&d, cuCtxSynchronize());
    SHIM_OK(&d, cuCtxDestroy(other));
    ck_assert_int_eq(d.emu->reset(0, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    shim_vectors_check(&d, &v);
    overrun(&v);
    SHIM_OK(&d, cuDevicePrimaryCtxReset(0));
    SHIM_OK(&d, cuCtxSynchronize());
}
END_TEST

START_TEST(a_fault_says_what_where_and_who)
{
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_fault fault;
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_int_eq(fault.result, 0);
    overrun(&v);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_int_eq(fault.result, CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_str_eq(fault.kind, "out-of-bounds");
    ck_assert_str_eq(fault.kernel, "add");
    ck_assert_int_eq(fault.ptx_line, 24); /* the first load */
    ck_assert_uint_eq(fault.cta, SHIM_VECTOR_LEN / 128);
    ck_assert_int_eq(fault.warp, SHIM_VECTOR_LEN % 128 / 32);
    ck_assert_int_eq(fault.lane, SHIM_VECTOR_LEN % 32);
    ck_assert_uint_eq(fault.address, v.a + 4 * SHIM_VECTOR_LEN);
}
END_TEST

START_TEST(a_value_that_nobody_wrote_is_reported_where_it_counts)
{
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_fault fault;
    v.b = allocate(4 * SHIM_VECTOR_LEN);
    CUresult result = launch_add(&v, 8, 128);
    ck_assert_int_ne(result, CUDA_SUCCESS);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_str_eq(fault.kind, "uninitialised");
    ck_assert_int_eq(d.emu->reset(0, NULL), HONE_OK);
    ck_assert_int_eq(d.emu->set_checks(0, 0, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
}
END_TEST

/* c = a + b, then a = c + b with no griddepcontrol.wait, on that stream. */
static CUresult launch_behind(shim_vectors *v, int allowed, CUstream stream)
{
    void *params[] = {&v->c, &v->b, &v->a, &v->n};
    CUlaunchAttribute overlap = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    overlap.value.programmaticStreamSerializationAllowed = allowed;
    const CUlaunchConfig config = {.gridDimX = 8,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 128,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .hStream = stream,
                                   .attrs = &overlap,
                                   .numAttrs = 1};

    return d.cuLaunchKernelEx(&config, add, params, NULL);
}

START_TEST(a_launch_that_may_overlap_reads_what_the_one_right_before_it_writes)
{
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_fault fault;
    CUstream stream = NULL;
    int value = 0;

    SHIM_OK(&d, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(launch_behind(&v, 0, NULL), CUDA_SUCCESS);
    v = shim_vectors_make(&d);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    SHIM_OK(&d, cuCtxSynchronize());
    ck_assert_int_eq(launch_behind(&v, 1, NULL), CUDA_SUCCESS);
    v = shim_vectors_make(&d);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(launch_behind(&v, 1, stream), CUDA_SUCCESS);
    v = shim_vectors_make(&d);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    SHIM_OK(&d, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add)); /* no work */
    ck_assert_int_ne(launch_behind(&v, 1, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_str_eq(fault.kind, "race");
    ck_assert_int_eq(fault.ptx_line, 24); /* the first load */
    ck_assert_str_eq(fault.message,
                     "read of 4 bytes at offset 0 of a global allocation, which the launch before "
                     "writes; no griddepcontrol.wait before");
}
END_TEST

START_TEST(freed_memory_is_told_from_out_of_bounds)
{
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_fault fault;
    SHIM_OK(&d, cuMemFree(v.b));
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(d.emu->last_fault(0, &fault, NULL), HONE_OK);
    ck_assert_str_eq(fault.kind, "use-after-free");
}
END_TEST

START_TEST(an_asked_for_fault_comes_at_its_launch_and_every_later_one)
{
    shim_vectors v = shim_vectors_make(&d);
    ck_assert_int_eq(d.emu->set_launch_fault(0, 3, CUDA_ERROR_LAUNCH_TIMEOUT, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_LAUNCH_TIMEOUT);
    SHIM_GIVES(&d, CUDA_ERROR_LAUNCH_TIMEOUT, cuCtxSynchronize());
    ck_assert_int_eq(d.emu->reset(0, NULL), HONE_OK);
    SHIM_OK(&d, cuCtxSynchronize());
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_LAUNCH_TIMEOUT);
    ck_assert_int_eq(d.emu->set_launch_fault(0, 1, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, NULL), 0);
    ck_assert_int_eq(d.emu->reset(0, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    SHIM_OK(&d, cuCtxSynchronize()); /* this one does not stick */
    ck_assert_int_eq(d.emu->set_launch_fault(0, 0, 0, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
}
END_TEST

START_TEST(counters_count_what_ran)
{
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_counters n;
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(d.emu->last_counters(0, &n, NULL), HONE_OK);
    ck_assert_uint_eq(n.ctas_run, 8);
    ck_assert_uint_eq(n.ctas_total, 8);
    ck_assert_uint_eq(n.global_load_bytes, 2 * 4 * SHIM_VECTOR_LEN);
    ck_assert_uint_eq(n.global_store_bytes, 4 * SHIM_VECTOR_LEN);
    ck_assert_uint_eq(n.global_requests, 3 * 32);
    ck_assert_uint_eq(n.global_sectors, 3 * (SHIM_VECTOR_LEN * 4 / 32));
    ck_assert_uint_eq(n.unique_lines, 3 * 32);
    ck_assert_uint_gt(n.thread_instructions, 20 * SHIM_VECTOR_LEN);
    ck_assert_uint_ge(n.warp_instructions * 32, n.thread_instructions);
}
END_TEST

START_TEST(a_sample_runs_its_ctas_and_no_others)
{
    static const uint64_t sample[] = {7, 2}, outside[] = {8};
    static float c[SHIM_VECTOR_LEN];
    shim_vectors v = shim_vectors_make(&d);
    hone_emu_counters n;
    SHIM_OK(&d, cuMemsetD32(v.c, 0, SHIM_VECTOR_LEN));
    ck_assert_int_eq(d.emu->set_sample(0, sample, 2, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    ck_assert_int_eq(d.emu->last_counters(0, &n, NULL), HONE_OK);
    ck_assert_uint_eq(n.ctas_run, 2);
    ck_assert_uint_eq(n.ctas_total, 8);
    SHIM_OK(&d, cuMemcpyDtoH(c, v.c, sizeof c));
    for (int i = 0; i < SHIM_VECTOR_LEN; i++) {
        bool ran = i / 128 == 7 || i / 128 == 2;
        ck_assert_float_eq(c[i], ran ? (float)(3 * i) : 0);
    }
    ck_assert_int_eq(d.emu->set_sample(0, outside, 1, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(d.emu->set_sample(0, NULL, 1, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(d.emu->set_sample(0, NULL, 0, NULL), HONE_OK);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    shim_vectors_check(&d, &v);
}
END_TEST

START_TEST(settings_out_of_range_are_refused)
{
    ck_assert_int_eq(d.emu->set_arithmetic(0, HONE_EMU_FAST, NULL), HONE_OK);
    ck_assert_int_eq(d.emu->set_arithmetic(0, (hone_emu_arithmetic)4, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(d.emu->set_arithmetic(9, HONE_EMU_HW, NULL), HONE_NO_DEVICE);
    ck_assert_int_eq(d.emu->set_schedule(0, 12345, NULL), HONE_OK);
    ck_assert_int_eq(d.emu->last_counters(0, NULL, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(d.emu->set_resources(add, &(hone_emu_resources){.registers = 256}, NULL),
                     HONE_BAD_ARGUMENT);
}
END_TEST

START_TEST(events_read_the_models_clock)
{
    shim_vectors v = shim_vectors_make(&d);
    CUevent begin = NULL, end = NULL, untimed = NULL;
    float once = 0, twice = 0, fill = 0;
    CUdeviceptr large = allocate(40000000);
    SHIM_OK(&d, cuEventCreate(&begin, CU_EVENT_DEFAULT));
    SHIM_OK(&d, cuEventCreate(&end, CU_EVENT_DEFAULT));
    SHIM_OK(&d, cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    SHIM_OK(&d, cuEventRecord(begin, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&once, begin, end));
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    SHIM_OK(&d, cuEventRecord(end, NULL));
    SHIM_OK(&d, cuEventElapsedTime(&once, begin, end));
    ck_assert_float_gt(once, 1e-4f);
    ck_assert_float_lt(once, 1e-1f);
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_SUCCESS);
    SHIM_OK(&d, cuEventRecord(end, NULL));
    SHIM_OK(&d, cuEventElapsedTime(&twice, begin, end));
    ck_assert_float_eq_tol(twice, 2 * once, 1e-6f);
    SHIM_OK(&d, cuEventRecord(begin, NULL));
    SHIM_OK(&d, cuMemsetD8(large, 0, 40000000)); /* at 4 TB/s */
    SHIM_OK(&d, cuEventRecord(end, NULL));
    SHIM_OK(&d, cuEventElapsedTime(&fill, begin, end));
    ck_assert_float_eq_tol(fill, 0.01f, 1e-5f);
    SHIM_OK(&d, cuEventRecord(untimed, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&fill, begin, untimed));
    SHIM_OK(&d, cuEventQuery(end));
}
END_TEST

START_TEST(a_function_of_another_context_is_not_launched)
{
    CUcontext other = NULL;
    shim_vectors v = shim_vectors_make(&d);
    SHIM_OK(&d, cuCtxCreate(&other, NULL, 0, 0));
    ck_assert_int_eq(launch_add(&v, 8, 128), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_launch");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_test(tests, a_vector_is_added);
    tcase_add_test(tests, parameters_come_as_one_buffer_too);
    tcase_add_loop_test(tests, a_launch_outside_the_limits_is_refused_and_does_not_stick, 0,
                        ARRAY_LEN(shapes));
    tcase_add_test(tests, shared_memory_past_48_kib_must_be_asked_for);
    tcase_add_test(tests, registers_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_fault_sticks_to_the_context_until_a_reset);
    tcase_add_test(tests, a_fault_says_what_where_and_who);
    tcase_add_test(tests, a_value_that_nobody_wrote_is_reported_where_it_counts);
    tcase_add_test(tests, a_launch_that_may_overlap_reads_what_the_one_right_before_it_writes);
    tcase_add_test(tests, freed_memory_is_told_from_out_of_bounds);
    tcase_add_test(tests, an_asked_for_fault_comes_at_its_launch_and_every_later_one);
    tcase_add_test(tests, counters_count_what_ran);
    tcase_add_test(tests, a_sample_runs_its_ctas_and_no_others);
    tcase_add_test(tests, settings_out_of_range_are_refused);
    tcase_add_test(tests, events_read_the_models_clock);
    tcase_add_test(tests, a_function_of_another_context_is_not_launched);
    return suite_run("emulator/shim_launch", tests);
}
