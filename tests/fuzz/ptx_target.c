/* ptx_target.c - one module from any bytes: loaded, its kernels run under every check with a small
 * budget. Both timings and warp orders follow from the text. */
#include "tests/fuzz/ptx_target.h"

#include "core/status.h"
#include "emulator/emulator.h"
#include "emulator/machine/tensor_map.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 4096,
    BUDGET = 3000,
    KERNELS = 4,
    WARPGROUP = 128,
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

/* Boxes of floats in the buffer: 8 in a row, then two rows, planes and volumes of one another. The
 * text says how they are swizzled, filled and stepped through. */
static tensor_map map_of(uint32_t rank, uint64_t buffer, uint64_t hash)
{
    static const uint32_t dims[TENSOR_MAP_RANK] = {8, 4, 4, 2, 2};
    static const uint16_t box[TENSOR_MAP_RANK] = {8, 2, 2, 2, 1};
    tensor_map m = {.magic = TENSOR_MAP_MAGIC,
                    .address = buffer,
                    .rank = (uint8_t)rank,
                    .type = TENSOR_MAP_F32,
                    .swizzle = (uint8_t)(hash % TENSOR_MAP_SWIZZLES),
                    .fill = hash / 8 % 2};
    uint64_t stride = dims[0] * sizeof(float);

    if (hash / 64 % 4 == 0) {
        m.type = TENSOR_MAP_U32;
        m.fill = 0;
    }
    for (uint32_t d = 0; d < rank; d++) {
        m.dims[d] = dims[d];
        m.box[d] = box[d];
        m.element_strides[d] = d > 0 && hash / 16 % 4 == 0 ? 2 : 1;
        if (d > 0) {
            m.strides[d - 1] = stride;
            stride *= dims[d];
        }
    }
    if (rank == 2 && hash / 256 % 2 == 0) { /* what gathers and scatters of four rows want */
        m.box[1] = m.element_strides[1] = 1;
    }
    if (rank >= 3 && hash / 256 % 4 == 0) {
        m.mode = TENSOR_MAP_IM2COL;
        m.box[1] = 4; /* pixels */
    }
    return m;
}

/* Tensor maps of ranks 1 to 5 where one fits, pointers to the buffer where 8 bytes do, small
 * numbers elsewhere. */
static void fill_params(const ptx_kernel_facts *facts, uint64_t buffer, uint64_t hash,
                        uint8_t *params)
{
    uint32_t maps = 0;

    for (uint32_t n = 0; n < facts->params_len; n++) {
        uint32_t bytes = facts->param_bytes[n];
        uint8_t *at = params + facts->param_offset[n];
        if (bytes == TENSOR_MAP_BYTES) {
            tensor_map m = map_of(1 + maps++ % TENSOR_MAP_RANK, buffer, hash >> 8);
            memcpy(at, &m, sizeof m);
        } else if (bytes >= 8) {
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
    fill_params(&facts, buffer, hash, params);
    uint32_t threads = facts.max_threads < 64 ? facts.max_threads : 64;
    threads = facts.required_threads[0] == WARPGROUP ? WARPGROUP : threads;
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
    for (int d = 0; facts.required_cluster[0] != 0 && d < 3; d++) {
        launch.grid[d] = launch.cluster[d] = facts.required_cluster[d];
    }
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
