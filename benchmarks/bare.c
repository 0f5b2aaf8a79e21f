/* bare.c - see bare.h. Options and inputs are those of hone-worker; there is no sandbox, no cache
 * and no answer to send. */
#include "benchmarks/bare.h"

#include "core/device.h"
#include "runtime/worker/nvrtc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 256 };

double bare_now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bare_processor_s(void)
{
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    double sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(whose); i++) {
        struct rusage used;
        getrusage(whose[i], &used);
        sum += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return sum;
}

/* Cubin and PTX are taken, as both are needed to run on either kind of device. */
static bool take_code(const nvrtc *n, nvrtcProgram program)
{
    size_t cubin = 0, ptx = 0;
    bool fine = n->nvrtcGetCUBINSize(program, &cubin) == NVRTC_SUCCESS &&
                n->nvrtcGetPTXSize(program, &ptx) == NVRTC_SUCCESS;
    char *room = malloc(cubin > ptx ? cubin : ptx);

    fine = fine && room != NULL && n->nvrtcGetCUBIN(program, room) == NVRTC_SUCCESS &&
           n->nvrtcGetPTX(program, room) == NVRTC_SUCCESS;
    free(room);
    return fine;
}

static bool compile(const nvrtc *n, const templates *t, const bare_kernel *kernel, int32_t arch)
{
    char arch_name[16], arch_option[48];
    const char *options[] = {arch_option, "-std=c++20", "--ptxas-options=-v", "-no-source-include"};
    template_source source;
    nvrtcProgram program = NULL;

    if (templates_source(t, kernel->m, &source, NULL) != HONE_OK) {
        return false;
    }
    device_arch_text(arch, arch_name);
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=%s", arch_name);
    bool fine = n->nvrtcCreateProgram(&program, source.source, manifest_name(kernel->m),
                                      (int)source.headers_len, source.headers,
                                      source.names) == NVRTC_SUCCESS &&
                n->nvrtcAddNameExpression(program, kernel->entry) == NVRTC_SUCCESS &&
                n->nvrtcCompileProgram(program, ARRAY_LEN(options), options) == NVRTC_SUCCESS &&
                take_code(n, program);
    n->nvrtcDestroyProgram(&program);
    return fine;
}

/* One process: the next kernel that nobody has taken, until there is none. */
static int work(const templates *t, const bare_kernel *kernels, size_t len, int32_t arch,
                atomic_size_t *next)
{
    nvrtc n;
    char why[256];

    if (!nvrtc_open(&n, why)) {
        fprintf(stderr, "NVRTC: %s\n", why);
        return 1;
    }
    for (size_t i = atomic_fetch_add(next, 1); i < len; i = atomic_fetch_add(next, 1)) {
        if (!compile(&n, t, &kernels[i], arch)) {
            fprintf(stderr, "NVRTC refused %s\n", kernels[i].entry);
            return 1;
        }
    }
    return 0;
}

double bare_compile_s(const templates *t, const bare_kernel *kernels, size_t len, int32_t arch,
                      int jobs)
{
    pid_t child[MOST_JOBS];
    bool fine = jobs > 0 && jobs <= MOST_JOBS;
    int started = 0, state = 0;
    atomic_size_t *next =
        mmap(NULL, sizeof *next, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (next == MAP_FAILED) {
        return 0;
    }
    atomic_init(next, 0);
    const double from = bare_now_s();
    for (; fine && started < jobs; started++) {
        child[started] = fork();
        if (child[started] == 0) {
            _exit(work(t, kernels, len, arch, next));
        }
        fine = child[started] > 0;
    }
    for (int i = 0; i < started; i++) {
        fine = child[i] > 0 && waitpid(child[i], &state, 0) == child[i] && state == 0 && fine;
    }
    const double spent = bare_now_s() - from;
    munmap(next, sizeof *next);
    return fine ? spent : 0;
}
