/* shim_driver.c - loads libhone_emu.so for a test. */
#include "tests/emulator/shim_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

const char shim_add_ptx[] =
    HEAD ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
         "{\n"
         ".reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;\n"
         "ld.param.u64 %rd1, [a];\n"
         "ld.param.u64 %rd2, [b];\n"
         "ld.param.u64 %rd3, [c];\n"
         "ld.param.u32 %r1, [n];\n"
         "mov.u32 %r2, %ctaid.x;\n"
         "mov.u32 %r3, %ntid.x;\n"
         "mov.u32 %r4, %tid.x;\n"
         "mad.lo.s32 %r5, %r2, %r3, %r4;\n"
         "setp.ge.s32 %p1, %r5, %r1;\n"
         "@%p1 bra DONE;\n"
         "cvta.to.global.u64 %rd4, %rd1;\n"
         "cvta.to.global.u64 %rd5, %rd2;\n"
         "cvta.to.global.u64 %rd6, %rd3;\n"
         "mul.wide.s32 %rd7, %r5, 4;\n"
         "add.s64 %rd8, %rd4, %rd7;\n"
         "add.s64 %rd9, %rd5, %rd7;\n"
         "add.s64 %rd10, %rd6, %rd7;\n"
         "ld.global.f32 %f1, [%rd8];\n"
         "ld.global.f32 %f2, [%rd9];\n"
         "add.f32 %f3, %f1, %f2;\n"
         "st.global.f32 [%rd10], %f3;\n"
         "DONE:\n"
         "ret;\n"
         "}\n";

const char shim_tail_ptx[] = HEAD ".extern .shared .align 16 .b8 dynamic[];\n"
                                  ".global .align 4 .u32 answer = 42;\n"
                                  ".visible .entry tail(.param .u64 p, .param .u32 offset)\n"
                                  ".maxntid 64, 1, 1\n"
                                  "{\n"
                                  ".reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
                                  "ld.param.u64 %rd1, [p];\n"
                                  "ld.param.u32 %r1, [offset];\n"
                                  "mov.u32 %r2, dynamic;\n"
                                  "add.u32 %r3, %r2, %r1;\n"
                                  "mov.u32 %r4, 7;\n"
                                  "st.volatile.shared.u32 [%r3], %r4;\n"
                                  "ld.volatile.shared.u32 %r5, [%r3];\n"
                                  "cvta.to.global.u64 %rd2, %rd1;\n"
                                  "st.volatile.global.u32 [%rd2], %r5;\n"
                                  "ret;\n"
                                  "}\n";

static const struct {
    const char *symbol;
    size_t offset;
} slots[] = {
#define X(name) {SHIM_DRIVER_SYMBOL(name), offsetof(shim_driver, name)},
    SHIM_DRIVER_CALLS(X)
#undef X
};

void shim_driver_load(shim_driver *out)
{
    memset(out, 0, sizeof *out);
    out->library = dlopen(HONE_EMU_FILE, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(out->library != NULL, "%s", dlerror());
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        void *address = dlsym(out->library, slots[i].symbol);
        ck_assert_msg(address != NULL, "%s is not exported", slots[i].symbol);
        memcpy((char *)out + slots[i].offset, &address, sizeof address);
    }
    const hone_emu_api *(*api)(void) = NULL;
    void *address = dlsym(out->library, HONE_EMU_SYMBOL);
    ck_assert_msg(address != NULL, "%s is not exported", HONE_EMU_SYMBOL);
    memcpy(&api, &address, sizeof address);
    out->emu = api();
    ck_assert_uint_eq(out->emu->version, HONE_EMU_VERSION);
}

void shim_driver_start(shim_driver *out, const char *slugs)
{
    char text[256];
    const char *names[16];
    size_t count = 0;
    hone_error error;
    CUcontext context = NULL;

    shim_driver_load(out);
    snprintf(text, sizeof text, "%s", slugs);
    for (char *name = strtok(text, ","); name != NULL && count < 16; name = strtok(NULL, ",")) {
        names[count++] = name;
    }
    ck_assert_msg(out->emu->set_devices(names, count, &error) == HONE_OK, "%s", error.message);
    SHIM_OK(out, cuInit(0));
    SHIM_OK(out, cuDevicePrimaryCtxRetain(&context, 0));
    SHIM_OK(out, cuCtxSetCurrent(context));
}

void shim_driver_claim(const shim_driver *d, CUresult expected, CUresult result, const char *call,
                       int line)
{
    const char *name = "?", *wanted = "?";
    hone_emu_fault fault = {0};
    if (result == expected) {
        return;
    }
    d->cuGetErrorName(result, &name);
    d->cuGetErrorName(expected, &wanted);
    d->emu->last_fault(0, &fault, NULL);
    ck_abort_msg("line %d: %s gave %s, not %s (last fault: %s)", line, call, name, wanted,
                 fault.message);
}

CUfunction shim_driver_function(const shim_driver *d, const char *ptx, const char *name)
{
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUresult result = d->cuModuleLoadDataEx(&module, ptx, 2, options, values);
    ck_assert_msg(result == CUDA_SUCCESS, "the PTX of %s does not load (%d): %s", name, (int)result,
                  log);
    SHIM_OK(d, cuModuleGetFunction(&function, module, name));
    return function;
}

static CUdeviceptr allocate(const shim_driver *d, size_t bytes)
{
    CUdeviceptr p = 0;
    SHIM_OK(d, cuMemAlloc(&p, bytes));
    return p;
}

shim_vectors shim_vectors_make(const shim_driver *d)
{
    static float a[SHIM_VECTOR_LEN], b[SHIM_VECTOR_LEN];
    shim_vectors v = {allocate(d, sizeof a), allocate(d, sizeof b), allocate(d, sizeof a),
                      SHIM_VECTOR_LEN};
    for (int i = 0; i < SHIM_VECTOR_LEN; i++) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    SHIM_OK(d, cuMemcpyHtoD(v.a, a, sizeof a));
    SHIM_OK(d, cuMemcpyHtoD(v.b, b, sizeof b));
    return v;
}

void shim_vectors_check(const shim_driver *d, const shim_vectors *v)
{
    static float c[SHIM_VECTOR_LEN];
    SHIM_OK(d, cuMemcpyDtoH(c, v->c, sizeof c));
    for (int i = 0; i < SHIM_VECTOR_LEN; i++) {
        ck_assert_float_eq(c[i], (float)(3 * i));
    }
}
