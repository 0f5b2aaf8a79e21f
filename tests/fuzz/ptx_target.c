/* ptx_target.c - one module from any bytes: loaded, its kernels run under every check with a small
 * budget. Both timings and warp orders follow from the text. */
#include "tests/fuzz/ptx_target.h"

#include "core/status.h"
#include "emulator/emulator.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 4096,
    BUDGET = 3000,
    KERNELS = 4,
    LOCAL_MOST = 1 << 14,
    SHARED_MOST = 227 << 10
};

static uint64_t hash_of(const uint8_t *text, size_t len)
{
    uint64_t h = 14695981039346656037u;

    for (size_t n = 0; n < len; n++) {
        h = (h ^ text[n]) * 1099511628211u;
    }
    return h;
}

/* Pointers to the buffer where 8 bytes fit, small numbers elsewhere. */
static void fill_params(const ptx_kernel_facts *facts, uint64_t buffer, uint8_t *params)
{
    for (uint32_t n = 0; n < facts->params_len; n++) {
        uint32_t bytes = facts->param_bytes[n];
        uint8_t *at = params + facts->param_offset[n];
        if (bytes >= 8) {
            memcpy(at, &buffer, 8);
        } else {
            memset(at, 0, bytes);
            *at = bytes > 0 ? 64 : 0;
        }
    }
}

static bool run_kernel(const ptx_kernel *kernel, device_memory *memory, uint64_t buffer,
                       uint64_t hash)
{
    ptx_kernel_facts facts;
    hone_emu_counters counters = {0};
    hone_emu_fault fault = {0};
    hone_error error;

    ptx_kernel_describe(kernel, &facts);
    uint8_t *params = calloc(1, facts.params_bytes + 16u);
    bool small = facts.local_bytes <= LOCAL_MOST && facts.static_shared_bytes <= SHARED_MOST;
    if (params == NULL || !small) {
        free(params);
        return false;
    }
    fill_params(&facts, buffer, params);
    uint32_t threads = facts.max_threads < 64 ? facts.max_threads : 64;
    machine_launch launch = {.kernel = kernel,
                             .memory = memory,
                             .params = params,
                             .grid = {2, 1, 1},
                             .block = {threads, 1, 1},
                             .dynamic_shared_bytes = 1024,
                             .arch = hash & 1 ? 90 : 120,
                             .sm_count = 4,
                             .arithmetic = HONE_EMU_HW,
                             .schedule_seed = hash >> 8,
                             .checks = hash & 2 ? HONE_EMU_CHECK_ALL : 0,
                             .timing = hash & 4 ? HONE_EMU_LATEST : HONE_EMU_AT_ISSUE,
                             .budget = BUDGET};
    machine_run(&launch, &counters, &fault, &error);
    free(params);
    return true;
}

int ptx_target_run(const uint8_t *text, size_t len)
{
    device_memory *memory = NULL;
    ptx_module *module = NULL;
    hone_error error;
    char log[256];
    uint64_t buffer = 0, hash = hash_of(text, len);
    int ran = -1;

    if (memory_open(1 << 24, &memory, &error) != HONE_OK) {
        return -1;
    }
    if (memory_allocate(memory, BUFFER_BYTES, &buffer, &error) == HONE_OK &&
        memory_fill(memory, buffer, 0x3c003c01, 4, BUFFER_BYTES / 4, &error) == HONE_OK &&
        ptx_module_load((const char *)text, len, memory, &module, log, sizeof log, &error) ==
            HONE_OK) {
        ran = 0;
        for (uint32_t n = 0; n < KERNELS && ptx_module_kernel_at(module, n) != NULL; n++) {
            ran += run_kernel(ptx_module_kernel_at(module, n), memory, buffer, hash);
        }
    }
    ptx_module_unload(module, memory);
    memory_close(memory);
    return ran;
}
