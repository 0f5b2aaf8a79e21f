/* instruction.h - what the decoder hands to the machine: decoded instructions, and a kernel of
 * them.
 *
 * A register is 32 lanes side by side: 128 bytes, or 256 when its elements have 64 bits. A
 * predicate is two 32-bit masks: its value, and which lanes of it are poisoned (come from memory
 * that nobody wrote). Operands are byte offsets into the warp's register image; constants and
 * special registers have slots there like any other, so that a handler never asks what an operand
 * is. */
#ifndef HONE_EMULATOR_MACHINE_INSTRUCTION_H
#define HONE_EMULATOR_MACHINE_INSTRUCTION_H

#include "emulator/emulator.h"
#include "emulator/machine/source.h"

#define MACHINE_NONE UINT32_MAX /* no guard, no operand */

typedef struct warp warp; /* machine.h */
typedef struct instruction instruction;
typedef void (*execute)(warp *w, const instruction *i, uint32_t mask);

/* What the warp's loop does with an instruction beside running its handler. */
typedef enum machine_flow {
    FLOW_NEXT,
    FLOW_BRANCH,
    FLOW_BRANCH_TABLE,
    FLOW_EXIT,
    FLOW_WARP,    /* waits for the lanes of its member mask: operand `member` */
    FLOW_ALIGNED, /* waits for all live lanes of the warp */
    FLOW_BARRIER,
} machine_flow;

typedef enum machine_pipe {
    PIPE_CONTROL, /* and whatever names no other */
    PIPE_ALU,
    PIPE_FP32,
    PIPE_SFU,
    PIPE_CONVERSION,
    PIPE_MEMORY,
    PIPE_TENSOR,
    PIPE_FP64,
    PIPE_HALF,  /* f16 and bf16 */
    PIPE_ASYNC, /* asynchronous copies, mbarriers */
    PIPE_COUNT,
} machine_pipe;

/* How poison passes through. */
typedef enum machine_taint {
    TAINT_UNION,  /* results are poisoned where any source is */
    TAINT_SELECT, /* d = p ? a : b */
    TAINT_AND,    /* of predicates: a false one decides */
    TAINT_OR,     /* a true one does */
    TAINT_SELF,   /* the handler sees to it */
    TAINT_STRICT, /* a poisoned source is a fault */
} machine_taint;

/* Of FLOW_BARRIER: `kind`. The sources are the barrier, then the thread count and the predicate
 * where given. */
typedef enum machine_barrier_kind {
    BAR_SYNC,
    BAR_ARRIVE,
    BAR_POPC,
    BAR_AND,
    BAR_OR
} machine_barrier_kind;
/* In `elements`. Without BAR_ANY_LANES the form is .aligned. */
enum { BAR_HAS_COUNT = 1, BAR_HAS_PREDICATE = 2, BAR_NEGATED = 4, BAR_ANY_LANES = 8 };

enum {
    FLAG_ADDRESS64 = 1,
    FLAG_SIGNED = 2,
    FLAG_TRANSPOSED = 4,
    FLAG_HIDDEN = 8,
    FLAG_OWN_CTA = 16, /* .shared::cta: shared memory of another CTA is a fault */
    FLAG_MOVE = 32,    /* of a watched register: a plain copy of another, */
    FLAG_CLEAR = 64,   /* or of a constant */
};

/* `order`: what a form says of ordering, as bits; 0 is a weak access. atom and red are strong when
 * they say nothing; .volatile counts as .relaxed.sys; fence.acq_rel and membar are acquire and
 * release. */
enum { ORDER_STRONG = 1, ORDER_ACQUIRE = 2, ORDER_RELEASE = 4, ORDER_SC = 8 };
/* `scope` of a strong access or a fence. */
typedef enum machine_scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS } machine_scope;

struct instruction {
    execute run;
    execute watched;   /* what exec_wgmma_touch stands before */
    const uint32_t *o; /* results, then sources */
    int64_t offset;    /* of an address */
    uint32_t guard;    /* predicate, or MACHINE_NONE */
    uint32_t target;   /* of a branch; first row of a branch table; of mma, its multiply-adds */
    uint32_t
        numbers; /* of wgmma and of what touches its registers: first of the kernel's `watched` */
    uint32_t member; /* operand with the member mask */
    uint32_t meet;   /* of a branch: where both ways join, if that stands before it; else 0 */
    int32_t line;
    uint8_t results, sources;
    uint8_t flow, pipe, taint, space, kind, flags;
    uint8_t element_bytes, elements;
    uint8_t order, scope; /* ORDER_* bits; machine_scope */
    bool guard_negated;
    uint32_t wide; /* of the first 32 sources, those of 64 bits */
};

typedef struct special_slot {
    uint32_t offset;
    uint8_t which; /* index in special.c's table */
} special_slot;

struct ptx_kernel {
    char *name;
    instruction *code;
    uint32_t code_len;
    uint32_t *operands;   /* all instructions' */
    uint32_t *targets;    /* branch tables: length, then targets */
    uint32_t *watched;    /* a number for each operand that wgmma may hold, or MACHINE_NONE */
    uint32_t watched_len; /* numbers */
    uint8_t *image;       /* what a warp's registers start as: predicates, constants */
    uint32_t image_bytes, predicate_bytes;
    uint32_t *poison; /* at the start: registers that some path reads before it writes them */
    bool starts_tainted;
    special_slot *specials;
    uint32_t specials_len;
    uint32_t static_shared_bytes, local_bytes, params_bytes, max_threads;
    uint32_t required_threads[3];                       /* .reqntid; 0: not said */
    uint32_t cluster[3];                                /* .reqnctapercluster; 0: not said */
    uint32_t max_cluster_rank, min_ctas, max_registers; /* 0: not said */
    bool explicit_cluster;
    /* CTAs may talk to one another through global memory: strong accesses, fences, atomics. */
    bool talks;
    uint32_t params_len, param_offset[64], param_bytes[64];
    ptx_place *places; /* in the CUDA source, by instruction */
    const source_files *files;
};

#endif
