/* exec.h - the table of handlers that work lane by lane, in the best variant that this processor
 * runs. */
#ifndef HONE_EMULATOR_EXEC_H
#define HONE_EMULATOR_EXEC_H

#include "emulator/machine/machine.h"

/* names: PTX forms, blank-separated, without .ftz and without .rn where that is the default.
 * signature: kinds of results, '=', kinds of sources: w 32-bit lanes, d 64-bit lanes, p predicate.
 */
typedef struct exec_row {
    const char *names, *signature;
    execute run;
    machine_pipe pipe;
    machine_taint taint;
} exec_row;

const exec_row *exec_table(size_t *len);
/* rare.c: forms that are not worth three builds. */
const exec_row *exec_table_rare(size_t *len);

/* The variants: the same source compiled for other instruction sets. */
const exec_row *exec_table_baseline(size_t *len);
const exec_row *exec_table_avx2(size_t *len);
const exec_row *exec_table_avx512(size_t *len);

/* exec/round.c: directed rounding, which is rare and goes through the processor's rounding mode. */
const exec_row *exec_round_table(size_t *len);
/* Handlers that have forms of their own; the decoder fills the fields that they read. */
void exec_load(warp *w, const instruction *i, uint32_t mask);
void exec_store(warp *w, const instruction *i, uint32_t mask);
void exec_load_param(warp *w, const instruction *i, uint32_t mask);
void exec_atomic(warp *w, const instruction *i, uint32_t mask);
void exec_ldmatrix(warp *w, const instruction *i, uint32_t mask);
void exec_tensor_copy(warp *w, const instruction *i, uint32_t mask);
void exec_tensor_map_replace(warp *w, const instruction *i, uint32_t mask);
void exec_tensor_map_publish(warp *w, const instruction *i, uint32_t mask);
void exec_tensor_map_acquire(warp *w, const instruction *i, uint32_t mask);
void exec_tensor_map_prefetch(warp *w, const instruction *i, uint32_t mask);
void exec_async_copy(warp *w, const instruction *i, uint32_t mask);
void exec_async_commit(warp *w, const instruction *i, uint32_t mask);
void exec_async_arrive(warp *w, const instruction *i, uint32_t mask);
void exec_async_wait(warp *w, const instruction *i, uint32_t mask);
void exec_mbarrier_init(warp *w, const instruction *i, uint32_t mask);
void exec_mbarrier_arrive(warp *w, const instruction *i, uint32_t mask);
void exec_mbarrier_bytes(warp *w, const instruction *i, uint32_t mask);
void exec_mbarrier_wait(warp *w, const instruction *i, uint32_t mask);
void exec_mbarrier_pending(warp *w, const instruction *i, uint32_t mask);
void exec_bulk_copy(warp *w, const instruction *i, uint32_t mask);
void exec_bulk_prefetch(warp *w, const instruction *i, uint32_t mask);
void exec_bulk_commit(warp *w, const instruction *i, uint32_t mask);
void exec_bulk_wait(warp *w, const instruction *i, uint32_t mask);
void exec_async_store(warp *w, const instruction *i, uint32_t mask);
void exec_fence_proxy(warp *w, const instruction *i, uint32_t mask);
void exec_fence_init(warp *w, const instruction *i, uint32_t mask);
void exec_cvta_to(warp *w, const instruction *i, uint32_t mask);
void exec_isspace(warp *w, const instruction *i, uint32_t mask);
void exec_mma(warp *w, const instruction *i, uint32_t mask);
/* Of exec_mma: `elements`; of exec_mma_narrow: `offset`. */
enum { MMA_HALF = 1, MMA_SATURATE = 2, MMA_UE4M3 = 4 };
void exec_mma_narrow(warp *w, const instruction *i, uint32_t mask);
void exec_mma_double(warp *w, const instruction *i, uint32_t mask);
/* False, and a fault, when lanes are missing. */
bool exec_mma_whole(warp *w, const instruction *i, uint32_t mask);
void exec_stmatrix(warp *w, const instruction *i, uint32_t mask);
void exec_movmatrix(warp *w, const instruction *i, uint32_t mask);
void exec_shuffle(warp *w, const instruction *i, uint32_t mask);
void exec_vote(warp *w, const instruction *i, uint32_t mask);
void exec_match(warp *w, const instruction *i, uint32_t mask);
void exec_redux(warp *w, const instruction *i, uint32_t mask);
void exec_elect(warp *w, const instruction *i, uint32_t mask);
void exec_activemask(warp *w, const instruction *i, uint32_t mask);
void exec_barrier(warp *w, const instruction *i, uint32_t mask);
void exec_dependency_wait(warp *w, const instruction *i, uint32_t mask);
void exec_cluster_arrive(warp *w, const instruction *i, uint32_t mask);
void exec_cluster_wait(warp *w, const instruction *i, uint32_t mask);
void exec_mapa(warp *w, const instruction *i, uint32_t mask);
void exec_getctarank(warp *w, const instruction *i, uint32_t mask);
void exec_setmaxnreg(warp *w, const instruction *i, uint32_t mask);
void exec_yield(warp *w, const instruction *i, uint32_t mask);
void exec_nothing(warp *w, const instruction *i, uint32_t mask);
void exec_warp_sync(warp *w, const instruction *i, uint32_t mask);
void exec_trap(warp *w, const instruction *i, uint32_t mask);
/* print.c: the host's functions that kernels call. */
void exec_assert(warp *w, const instruction *i, uint32_t mask);
void exec_printf(warp *w, const instruction *i, uint32_t mask);
void exec_no_function(warp *w, const instruction *i, uint32_t mask);

enum { SETMAXNREG_INC, SETMAXNREG_DEC }; /* of exec_setmaxnreg: `kind`; `offset` is the count */

/* Of exec_atomic: `kind` holds an operation and how the bytes are read; `elements` of them lie one
 * after the other, of which 128 bits are two. */
#define EXEC_ATOMIC(kind, type) ((kind) | (type) << 4)
typedef enum exec_atomic_kind {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC,
} exec_atomic_kind;
typedef enum exec_atomic_type {
    ATOMIC_UNSIGNED,
    ATOMIC_SIGNED,
    ATOMIC_F32,
    ATOMIC_F64,
    ATOMIC_F16,
    ATOMIC_F16X2,
    ATOMIC_BF16,
    ATOMIC_BF16X2,
} exec_atomic_type;
/* mbarrier.*: `kind`, */
typedef enum exec_mbarrier_kind {
    MBARRIER_INIT,
    MBARRIER_INVAL,
    MBARRIER_ARRIVE,
    MBARRIER_EXPECT_TX,
    MBARRIER_COMPLETE_TX,
    MBARRIER_WAIT,
} exec_mbarrier_kind;
/* and `elements`, as bits. */
enum {
    MBARRIER_EXPECTS = 1, /* the operand of an arrival is bytes, not arrivals */
    MBARRIER_NO_COMPLETE = 2,
    MBARRIER_DROPS = 4,
    MBARRIER_BY_PARITY = 8,
    MBARRIER_NO_INCREMENT = 16, /* of cp.async.mbarrier.arrive */
};
/* Bulk copies and st.async: `offset`, as bits. A reduction has `kind` and `element_bytes` as of
 * exec_atomic. */
enum {
    BULK_TO_GLOBAL = 1, /* neither: between the shared memories of a cluster */
    BULK_FROM_GLOBAL = 2,
    BULK_GROUP = 4, /* ends with its group, not with an mbarrier */
    BULK_MULTICAST = 8,
    BULK_MASKED = 16,
    BULK_REDUCES = 32,
};
/* Of exec_bulk_wait: `kind`; `offset` is how many groups may be left. */
typedef enum exec_bulk_wait_kind { BULK_WAIT_ALL, BULK_WAIT_READS } exec_bulk_wait_kind;
/* What an atomic (but cas) or a reduction of i's kind, type and width leaves of `old` and `b`. */
uint64_t exec_combine(const instruction *i, uint64_t old, uint64_t b);
typedef enum exec_shuffle_kind {
    SHUFFLE_BFLY,
    SHUFFLE_IDX,
    SHUFFLE_UP,
    SHUFFLE_DOWN
} exec_shuffle_kind;
typedef enum exec_vote_kind { VOTE_BALLOT, VOTE_ANY, VOTE_ALL, VOTE_UNI } exec_vote_kind;
typedef enum exec_redux_kind {
    REDUX_ADD,
    REDUX_MIN,
    REDUX_MAX,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR,
} exec_redux_kind;

#endif
