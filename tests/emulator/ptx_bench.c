/* ptx_bench.c - a device in a test. NVRTC is opened by name: no GPU and no driver are needed to
 * make PTX. */
#include "tests/emulator/ptx_bench.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HONE_EMU_ARITHMETIC runs a suite again in another arithmetic. */
static hone_emu_arithmetic arithmetic(void)
{
    const char *text = getenv("HONE_EMU_ARITHMETIC");
    if (text == NULL || strcmp(text, "exact") == 0) {
        return HONE_EMU_EXACT;
    }
    ck_assert_msg(strcmp(text, "hw") == 0, "HONE_EMU_ARITHMETIC=%s is neither exact nor hw", text);
    return HONE_EMU_HW;
}

void ptx_bench_open(ptx_bench *b)
{
    *b = (ptx_bench){0};
    ck_assert_int_eq(memory_open(UINT64_C(1) << 33, &b->memory, &b->error), HONE_OK);
    b->launch.arch = 90;
    b->launch.sm_count = 78;
    b->launch.arithmetic = arithmetic();
    b->launch.checks = HONE_EMU_CHECK_ALL;
}

hone_status ptx_bench_load(ptx_bench *b, const char *ptx)
{
    return ptx_module_load(ptx, strlen(ptx), b->memory, &b->module, NULL, 0, &b->error);
}

void ptx_bench_close(ptx_bench *b)
{
    ptx_module_unload(b->module, b->memory);
    memory_close(b->memory);
    *b = (ptx_bench){0};
}

uint64_t ptx_bench_buffer(ptx_bench *b, const void *content, uint64_t bytes)
{
    uint64_t address = 0;

    ck_assert_int_eq(memory_allocate(b->memory, bytes, &address, &b->error), HONE_OK);
    if (content != NULL) {
        ck_assert_int_eq(memory_write(b->memory, address, content, bytes, &b->error), HONE_OK);
    }
    return address;
}

void ptx_bench_read(ptx_bench *b, uint64_t address, void *to, uint64_t bytes)
{
    ck_assert_int_eq(memory_read(b->memory, address, to, bytes, &b->error), HONE_OK);
}

hone_status ptx_bench_run(ptx_bench *b, const char *kernel, const uint32_t grid[3],
                          const uint32_t block[3], void *const *arguments)
{
    static uint8_t params[4096];
    ptx_kernel_facts facts;

    b->launch.kernel = ptx_module_kernel(b->module, kernel);
    ck_assert_msg(b->launch.kernel != NULL, "no kernel %s", kernel);
    ptx_kernel_describe(b->launch.kernel, &facts);
    ck_assert_uint_le(facts.params_bytes, sizeof params);
    for (uint32_t n = 0; n < facts.params_len; n++) {
        memcpy(params + facts.param_offset[n], arguments[n], facts.param_bytes[n]);
    }
    b->launch.memory = b->memory;
    b->launch.params = params;
    memcpy(b->launch.grid, grid, sizeof b->launch.grid);
    memcpy(b->launch.block, block, sizeof b->launch.block);
    b->fault = (hone_emu_fault){0};
    b->counters = (hone_emu_counters){0};
    return machine_run(&b->launch, &b->counters, &b->fault, &b->error);
}

/* The five calls that are needed, with the types that nvrtc.h gives them. */
typedef struct nvrtc_calls {
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
} nvrtc_calls;

static bool open_nvrtc(nvrtc_calls *calls)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    static const char *const symbols[] = {
        "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcGetPTXSize",    "nvrtcGetPTX",         "nvrtcDestroyProgram"};
    void *library = NULL, *found[ARRAY_LEN(symbols)];

    for (size_t n = 0; n < ARRAY_LEN(names) && library == NULL; n++) {
        library = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);
    }
    for (size_t n = 0; n < ARRAY_LEN(symbols); n++) {
        found[n] = library != NULL ? dlsym(library, symbols[n]) : NULL;
        if (found[n] == NULL) {
            fprintf(stderr,
                    "SKIP: NVRTC is not here; set LD_LIBRARY_PATH to the toolkit's libraries\n");
            return false;
        }
    }
    _Static_assert(sizeof *calls == sizeof found, "one pointer each");
    memcpy(calls, found, sizeof *calls);
    return true;
}

char *ptx_bench_compile(const char *source, const char *const *options)
{
    nvrtc_calls nvrtc;
    void *program = NULL;
    size_t bytes = 0;
    int count = 0;

    if (!open_nvrtc(&nvrtc)) {
        return NULL;
    }
    while (options[count] != NULL) {
        count++;
    }
    ck_assert_int_eq(nvrtc.create(&program, source, "test.cu", 0, NULL, NULL), 0);
    int result = nvrtc.compile(program, count, options);
    if (result != 0) {
        nvrtc.log_size(program, &bytes);
        char *log = calloc(1, bytes + 1);
        nvrtc.log(program, log);
        ck_abort_msg("NVRTC: %s", log);
    }
    ck_assert_int_eq(nvrtc.ptx_size(program, &bytes), 0);
    char *ptx = calloc(1, bytes + 1);
    ck_assert_int_eq(nvrtc.ptx(program, ptx), 0);
    nvrtc.destroy(&program);
    return ptx;
}

char *ptx_bench_wrap(const char *body, uint32_t in_words, uint32_t out_words)
{
    size_t capacity = strlen(body) + 4096 + 64 * ((size_t)in_words + out_words), used = 0;
    char *text = calloc(1, capacity);

#define ADD(...) used += (size_t)snprintf(text + used, capacity - used, __VA_ARGS__)
    ADD(".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param "
        ".u64 out)\n{\n"
        ".reg .pred %%p<16>; .reg .b16 %%h<32>; .reg .b32 %%a<64>, %%d<64>; .reg .b32 %%r<32>;\n"
        ".reg .b64 %%x<32>, %%in, %%out, %%at;\n"
        "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];\nmov.u32 %%r0, %%tid.x;\n"
        "mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ntid.x; mad.lo.s32 %%r0, %%r1, %%r2, %%r0;\n"
        "mul.wide.u32 %%at, %%r0, %u; add.s64 %%in, %%in, %%at;\n"
        "mul.wide.u32 %%at, %%r0, %u; add.s64 %%out, %%out, %%at;\n",
        in_words * 4, out_words * 4);
    for (uint32_t n = 0; n < in_words; n++) {
        ADD("ld.global.u32 %%a%u, [%%in+%u];\n", n, n * 4);
    }
    ADD("%s\n", body);
    for (uint32_t n = 0; n < out_words; n++) {
        ADD("st.global.u32 [%%out+%u], %%d%u;\n", n * 4, n);
    }
    ADD("ret;\n}\n");
#undef ADD
    return text;
}

size_t ptx_bench_list(char *text, size_t used, const char *name, uint32_t first, uint32_t len)
{
    for (uint32_t n = 0; n < len; n++) {
        used += (size_t)sprintf(text + used, "%s%%%s%u", n == 0 ? "{" : ",", name, first + n);
    }
    return used + (size_t)sprintf(text + used, "}");
}
