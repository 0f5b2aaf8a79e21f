/* cubin.h - cubins made by hand for tests: one kernel of given instructions. */
#ifndef HONE_TESTS_BENCH_CUBIN_H
#define HONE_TESTS_BENCH_CUBIN_H

#include <stddef.h>
#include <stdint.h>

typedef struct cubin_word {
    uint64_t low, high;
} cubin_word;

/* Common instructions, as ptxas writes them. */
#define CUBIN_NOP      ((cubin_word){0x0000000000007918, 0x000fc00000000000})
#define CUBIN_EXIT     ((cubin_word){0x000000000000794d, 0x000fea0003800000})
#define CUBIN_FFMA     ((cubin_word){0x0000003709377223, 0x000fe2000000403c}) /* FFMA R55, ... */
#define CUBIN_SYNCS    ((cubin_word){0x03330000ff0075a7, 0x000e260008000147}) /* ...TRYWAIT */
#define CUBIN_QGMMA    ((cubin_word){0x01e00000081879f3, 0x000fe2000c0008ff}) /* 64x128x32, R24 */
#define CUBIN_BSYNC_B2 ((cubin_word){0x0000000000027941, 0x000fea0003800000})

/* BRA from instruction `at` to `to`, always (guard 7) or under predicate `guard`; its target as
 * `arch` writes it. */
cubin_word cubin_branch(uint32_t at, uint32_t to, unsigned guard, unsigned arch);
/* BRA.U under UP1, CALL.REL.NOINC and BSSY B2, as sm_90 writes them. */
cubin_word cubin_branch_uniform(uint32_t at, uint32_t to);
cubin_word cubin_call(uint32_t at, uint32_t to);
cubin_word cubin_bssy(uint32_t at, uint32_t to);

/* A cubin with the kernel `name` for `arch`, as CUDA 13 lays it out. The caller frees it. */
uint8_t *cubin_make(const char *name, const cubin_word *code, size_t code_len, unsigned arch,
                    size_t *len);

#endif
