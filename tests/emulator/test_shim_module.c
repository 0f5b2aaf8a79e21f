/* test_shim_module.c - claims about images, modules, functions and libraries of the emulated
 * driver. */
#include "tests/emulator/shim_driver.h"

#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

static shim_driver d;
static CUfunction add, tail;

static void start(void)
{
    shim_driver_start(&d, "h20");
    add = shim_driver_function(&d, shim_add_ptx, "add");
    tail = shim_driver_function(&d, shim_tail_ptx, "tail");
}

/* Images that are not loaded: what the driver says, and a word of its log. */
static const struct {
    const char *image;
    CUresult result;
    const char *log;
} images[] = {
    {"\x7f"
     "ELF\x02\x01\x01",
     CUDA_ERROR_NO_BINARY_FOR_GPU, "cubin"},
    {"\x50\xed\x55\xba\x01", CUDA_ERROR_NO_BINARY_FOR_GPU, "fat binary"},
    {"", CUDA_ERROR_INVALID_IMAGE, ".version"},
    {"int main(void) { return 0; }", CUDA_ERROR_INVALID_IMAGE, ".version"},
    {".version 8.8\n.target sm_120\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, "sm_120"},
    {"// head\n.version 8.0\n.target sm_89a // only there\n", CUDA_ERROR_INVALID_PTX, "sm_89a"},
    {".version 8.0\n.address_size 64\n", CUDA_ERROR_INVALID_PTX, ".target"},
    {HEAD ".visible .entry f() { .reg .b32 %r<2>; mov.u32 %r1, ; ret; }\n", CUDA_ERROR_INVALID_PTX,
     "line 4"},
};

START_TEST(an_image_that_cannot_run_is_refused_with_the_reason_in_the_log)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    SHIM_GIVES(&d, images[_i].result,
               cuModuleLoadDataEx(&module, images[_i].image, 2, options, values));
    ck_assert_ptr_null(module);
    ck_assert_msg(strstr(log, images[_i].log) != NULL, "the log says: %s", log);
    ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
    SHIM_OK(&d, cuCtxSynchronize());
}
END_TEST

START_TEST(every_unsupported_form_stands_in_the_log)
{
    static const char ptx[] = HEAD ".visible .entry f()\n{\n.reg .b32 %r<4>;\n"
                                   "frobnicate.u32 %r1, %r2;\nmov.u32 %r1, 3;\n"
                                   "twiddle.s32 %r2, %r1;\nret;\n}\n";
    char log[4096] = "", tiny[8] = "", info[16] = "full";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_WALL_TIME};
    void *values[] = {log, (void *)sizeof log, info, (void *)sizeof info, NULL};
    void *small[] = {tiny, (void *)sizeof tiny};
    CUmodule module = NULL;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, ptx, 5, options, values));
    ck_assert_msg(strstr(log, "frobnicate") != NULL && strstr(log, "twiddle") != NULL, "%s", log);
    ck_assert_str_eq(info, "");
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, ptx, 2, options, small));
    ck_assert_uint_eq(strlen(tiny), sizeof tiny - 1);
    options[0] = (CUjit_option)99;
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, ptx, 2, options, small));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuModuleLoadDataEx(&module, ptx, 2, NULL, NULL));
}
END_TEST

START_TEST(a_function_knows_its_name_parameters_and_module)
{
    static const size_t offsets[] = {0, 8, 16, 24}, sizes[] = {8, 8, 8, 4};
    CUmodule module = NULL;
    CUfunction again = NULL;
    const char *name = NULL;
    size_t offset = 0, size = 0;
    int value = 0;
    for (size_t i = 0; i < 4; i++) {
        SHIM_OK(&d, cuFuncGetParamInfo(add, i, &offset, &size));
        ck_assert_uint_eq(offset, offsets[i]);
        ck_assert_uint_eq(size, sizes[i]);
    }
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(add, 4, &offset, &size));
    SHIM_OK(&d, cuFuncGetName(&name, add));
    ck_assert_str_eq(name, "add");
    SHIM_OK(&d, cuFuncGetModule(&module, add));
    SHIM_OK(&d, cuModuleGetFunction(&again, module, "add"));
    ck_assert_ptr_eq(add, again);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&again, module, "sub"));
    SHIM_OK(&d, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, tail));
    ck_assert_int_eq(value, 64);
    SHIM_OK(&d, cuModuleUnload(module));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE, cuFuncGetName(&name, add));
}
END_TEST

START_TEST(a_global_variable_has_an_address_and_its_initial_value)
{
    CUmodule module = NULL;
    CUdeviceptr p = 0;
    size_t bytes = 0;
    uint32_t value = 0;
    SHIM_OK(&d, cuFuncGetModule(&module, tail));
    SHIM_OK(&d, cuModuleGetGlobal(&p, &bytes, module, "answer"));
    ck_assert_uint_eq(bytes, 4);
    SHIM_OK(&d, cuMemcpyDtoH(&value, p, 4));
    ck_assert_uint_eq(value, 42);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &bytes, module, "question"));
}
END_TEST

START_TEST(a_library_gives_the_same_kernel)
{
    shim_vectors v = shim_vectors_make(&d);
    CUlibrary library = NULL;
    CUkernel kernel = NULL, again = NULL;
    CUfunction function = NULL;
    CUmodule module = NULL;
    const char *name = NULL;
    void *params[] = {&v.a, &v.b, &v.c, &v.n};
    SHIM_OK(&d, cuLibraryLoadData(&library, shim_add_ptx, NULL, NULL, 0, NULL, NULL, 0));
    SHIM_OK(&d, cuLibraryGetKernel(&kernel, library, "add"));
    SHIM_OK(&d, cuLibraryGetKernel(&again, library, "add"));
    ck_assert_ptr_eq(kernel, again);
    SHIM_GIVES(&d, CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&again, library, "subtract"));
    SHIM_OK(&d, cuKernelGetName(&name, kernel));
    ck_assert_str_eq(name, "add");
    SHIM_OK(&d, cuKernelGetFunction(&function, kernel));
    SHIM_OK(&d, cuLibraryGetModule(&module, library));
    SHIM_OK(&d, cuModuleGetFunction(&function, module, "add"));
    SHIM_OK(&d, cuLaunchKernel((CUfunction)kernel, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    shim_vectors_check(&d, &v);
    SHIM_OK(&d, cuLibraryUnload(library));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuLaunchKernel((CUfunction)kernel, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_HANDLE,
               cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_module");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_loop_test(tests, an_image_that_cannot_run_is_refused_with_the_reason_in_the_log, 0,
                        ARRAY_LEN(images));
    tcase_add_test(tests, every_unsupported_form_stands_in_the_log);
    tcase_add_test(tests, a_function_knows_its_name_parameters_and_module);
    tcase_add_test(tests, a_global_variable_has_an_address_and_its_initial_value);
    tcase_add_test(tests, a_library_gives_the_same_kernel);
    return suite_run("emulator/shim_module", tests);
}
