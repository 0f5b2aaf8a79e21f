/* HONE_EMU_ARITHMETIC, seen through the driver: one product of spec kernels.md appendix B whose
 * bits tell the three arithmetics apart. */
#include "tests/emulator/shim_driver.h"
#include "core/status.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static shim_driver d;

/* A = [448, 1 x 31] in each row and B alike in each column: 448 * 448 + 31. */
static const char product_ptx[] =
    ".version 8.4\n.target sm_89\n.address_size 64\n"
    ".visible .entry product(.param .u64 out)\n{\n"
    ".reg .b32 %r<8>; .reg .f32 %f<5>; .reg .b64 %rd<2>; .reg .pred %p<3>;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x;\n"
    "and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;\n"
    "mov.b32 %r3, 0x38383838; selp.b32 %r4, 0x3838387e, 0x38383838, %p1;\n"
    "mov.f32 %f1, 0f00000000;\n"
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f1, %f2, %f3, %f4}, "
    "{%r4, %r4, %r3, %r3}, {%r4, %r3}, {%f1, %f1, %f1, %f1};\n"
    "setp.eq.u32 %p2, %r1, 0; @%p2 st.global.f32 [%rd1], %f1;\nret;\n}\n";

static const struct {
    const char *text; /* NULL: the variable is not set */
    float product;
} modes[] = {{NULL, 200704}, {"", 200704}, {"hw", 200704}, {"exact", 200735}, {"fast", 200735}};

static void name(const char *text)
{
    if (text == NULL) {
        unsetenv("HONE_EMU_ARITHMETIC");
    } else {
        setenv("HONE_EMU_ARITHMETIC", text, 1);
    }
}

START_TEST(a_device_starts_in_the_arithmetic_that_the_variable_names)
{
    CUdeviceptr out = 0;
    float product = 0;
    void *params[] = {&out};
    name(modes[_i].text);
    shim_driver_start(&d, "rtx4090");
    CUfunction f = shim_driver_function(&d, product_ptx, "product");
    SHIM_OK(&d, cuMemAlloc(&out, sizeof product));
    SHIM_OK(&d, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    SHIM_OK(&d, cuMemcpyDtoH(&product, out, sizeof product));
    ck_assert_float_eq(product, modes[_i].product);

    ck_assert_int_eq(d.emu->set_arithmetic(0, HONE_EMU_HW, NULL), HONE_OK); /* and then by call */
    SHIM_OK(&d, cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    SHIM_OK(&d, cuMemcpyDtoH(&product, out, sizeof product));
    ck_assert_float_eq(product, 200704);
}
END_TEST

static const char *const no_modes[] = {"Exact", "hw ", "3", "precise"};

START_TEST(another_word_is_refused_at_once)
{
    const char *const names[] = {"h20"};
    name(no_modes[_i]);
    shim_driver_load(&d);
    ck_assert_int_eq(d.emu->set_devices(names, 1, NULL), HONE_OK);
    SHIM_GIVES(&d, CUDA_ERROR_INVALID_VALUE, cuInit(0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shim_arithmetic");
    tcase_add_loop_test(tests, a_device_starts_in_the_arithmetic_that_the_variable_names, 0,
                        (int)ARRAY_LEN(modes));
    tcase_add_loop_test(tests, another_word_is_refused_at_once, 0, (int)ARRAY_LEN(no_modes));
    return suite_run("emulator/shim_arithmetic", tests);
}
