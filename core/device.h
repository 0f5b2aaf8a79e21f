/* device.h - the facts of a device that problems, templates and lookups depend on.
 *
 * Filled from the driver on a CUDA device and from models/gpu on an emulated one. A plain value. */
#ifndef HONE_CORE_DEVICE_H
#define HONE_CORE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct device_facts {
    char name[96]; /* as the driver says it: "NVIDIA H20" */
    int32_t arch;  /* compute capability times ten: 89, 90, 100, 120 */
    int32_t sm_count;
    int32_t threads_per_sm, blocks_per_sm, regs_per_sm;
    int32_t smem_per_sm, smem_per_block; /* bytes; per block is the opt-in maximum */
    int32_t smem_reserved;               /* bytes that the driver keeps for each block */
    int32_t clock_mhz;                   /* boost */
    int64_t l2_bytes, mem_bytes;
    int64_t mem_bytes_per_s; /* DRAM bandwidth; 0 when unknown */
    bool emulated;
} device_facts;

/* Facts that the driver's attributes give as they are: X(attribute without CU_DEVICE_ATTRIBUTE_,
 * int32 fact). Who reads them from a driver and who answers as one must agree. */
#define DEVICE_ATTRIBUTE_MAP(X)                                                                    \
    X(MULTIPROCESSOR_COUNT, sm_count)                                                              \
    X(MAX_THREADS_PER_MULTIPROCESSOR, threads_per_sm)                                              \
    X(MAX_BLOCKS_PER_MULTIPROCESSOR, blocks_per_sm)                                                \
    X(MAX_REGISTERS_PER_MULTIPROCESSOR, regs_per_sm)                                               \
    X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, smem_per_sm)                                           \
    X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, smem_per_block)                                           \
    X(RESERVED_SHARED_MEMORY_PER_BLOCK, smem_reserved)

/* "sm_90a" for 90: the real arch that code is compiled for. Archs from 90 on take the suffix,
 * without which wgmma and block-scaled mma are refused (cases.md 28). `text` holds 16 bytes. */
void device_arch_text(int32_t arch, char text[16]);

#endif
