/* nvrtc_compile.c - one compile: options from a closed list, headers in memory, no include path. */
#include "core/device.h"
#include "runtime/worker/nvrtc.h"
#include "runtime/worker/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_HEADERS 1024
#define MAX_ENTRIES 8
#define LOG_HALF    (256u << 10) /* ptxas' report is at the end, the first error at the start */

typedef struct job {
    const char *name, *source;
    const char *header_names[MAX_HEADERS], *headers[MAX_HEADERS], *entries[MAX_ENTRIES];
    size_t headers_len, entries_len;
    int32_t arch, max_registers;
    bool lineinfo;
    uint64_t cpu_seconds;
} job;

typedef struct option_list {
    const char *text[8];
    int len;
    char arch[48], registers[48];
} option_list;

static bool read_job(wire_reader *r, job *out)
{
    job j = {.name = wire_get_text(r)};

    j.source = wire_get_text(r);
    j.headers_len = wire_get_u64(r);
    if (j.headers_len > MAX_HEADERS) {
        return false;
    }
    for (size_t i = 0; i < j.headers_len; i++) {
        j.header_names[i] = wire_get_text(r);
        j.headers[i] = wire_get_text(r);
    }
    j.entries_len = wire_get_u64(r);
    if (j.entries_len > MAX_ENTRIES) {
        return false;
    }
    for (size_t i = 0; i < j.entries_len; i++) {
        j.entries[i] = wire_get_text(r);
    }
    j.arch = (int32_t)wire_get_u64(r);
    j.max_registers = (int32_t)wire_get_u64(r);
    j.lineinfo = wire_get_u64(r) != 0;
    j.cpu_seconds = wire_get_u64(r);
    *out = j;
    return !r->failed && r->at == r->len;
}

/* The real arch, not compute_90a: a virtual one "succeeds" with an empty cubin and hides ptxas
 * (cases.md 28). */
static void build_options(const job *j, option_list *o)
{
    char arch[16];

    device_arch_text(j->arch, arch);
    snprintf(o->arch, sizeof o->arch, "--gpu-architecture=%s", arch);
    snprintf(o->registers, sizeof o->registers, "--maxrregcount=%d", j->max_registers);
    o->text[o->len++] = o->arch;
    o->text[o->len++] = "-std=c++20";
    o->text[o->len++] = "--ptxas-options=-v";
    o->text[o->len++] = "-no-source-include";
    if (j->max_registers > 0) {
        o->text[o->len++] = o->registers;
    }
    if (j->lineinfo) {
        o->text[o->len++] = "-lineinfo";
    }
}

static void put_log(const nvrtc *n, nvrtcProgram program, wire_writer *answer)
{
    size_t len = 0;
    char *log = NULL;

    if (n->nvrtcGetProgramLogSize(program, &len) == NVRTC_SUCCESS && len > 1) {
        log = malloc(len);
    }
    if (log == NULL || n->nvrtcGetProgramLog(program, log) != NVRTC_SUCCESS) {
        wire_put_bytes(answer, "", 0);
        free(log);
        return;
    }
    len--; /* its NUL */
    if (len > 2 * LOG_HALF) {
        memmove(log + LOG_HALF, log + len - LOG_HALF, LOG_HALF);
        len = 2 * LOG_HALF;
    }
    wire_put_bytes(answer, log, len);
    free(log);
}

static void put_code(const nvrtc *n, nvrtcProgram program, wire_writer *answer, bool ptx)
{
    size_t len = 0;
    char *code = NULL;
    nvrtcResult result =
        ptx ? n->nvrtcGetPTXSize(program, &len) : n->nvrtcGetCUBINSize(program, &len);

    if (result == NVRTC_SUCCESS && len > 0) {
        code = malloc(len);
    }
    if (code != NULL) {
        result = ptx ? n->nvrtcGetPTX(program, code) : n->nvrtcGetCUBIN(program, code);
    }
    wire_put_bytes(answer, code != NULL && result == NVRTC_SUCCESS ? code : "",
                   code != NULL && result == NVRTC_SUCCESS ? len - ptx
                                                           : 0); /* PTX ends with a NUL */
    free(code);
}

static void put_lowered(const nvrtc *n, nvrtcProgram program, const job *j, bool compiled,
                        wire_writer *answer)
{
    wire_put_u64(answer, j->entries_len);
    for (size_t i = 0; i < j->entries_len; i++) {
        const char *lowered = "";
        if (compiled && n->nvrtcGetLoweredName(program, j->entries[i], &lowered) != NVRTC_SUCCESS) {
            lowered = "";
        }
        wire_put_text(answer, lowered);
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static nvrtcResult compile(const nvrtc *n, nvrtcProgram program, const job *j)
{
    option_list options = {.len = 0};

    for (size_t i = 0; i < j->entries_len; i++) {
        nvrtcResult result = n->nvrtcAddNameExpression(program, j->entries[i]);
        if (result != NVRTC_SUCCESS) {
            return result;
        }
    }
    build_options(j, &options);
    return n->nvrtcCompileProgram(program, options.len, options.text);
}

bool nvrtc_answer(const nvrtc *n, wire_reader *request, wire_writer *answer)
{
    job j;
    nvrtcProgram program = NULL;

    if (!read_job(request, &j)) {
        return false;
    }
    sandbox_allow_cpu(j.cpu_seconds);
    uint64_t begin = now_ns();
    nvrtcResult result = n->nvrtcCreateProgram(&program, j.source, j.name, (int)j.headers_len,
                                               j.headers, j.header_names);
    if (result == NVRTC_SUCCESS) {
        result = compile(n, program, &j);
    }
    uint64_t end = now_ns();
    wire_begin(answer, WIRE_ANSWER);
    wire_put_u64(answer, result);
    wire_put_text(answer, n->nvrtcGetErrorString(result));
    wire_put_u64(answer, end - begin);
    put_log(n, program, answer);
    put_lowered(n, program, &j, result == NVRTC_SUCCESS, answer);
    put_code(n, program, answer, false);
    put_code(n, program, answer, true);
    n->nvrtcDestroyProgram(&program);
    return true;
}
