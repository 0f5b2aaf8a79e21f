/* serving.h - inside the runtime: the open handle, and what a prepared kernel is. */
#ifndef HONE_RUNTIME_SERVING_H
#define HONE_RUNTIME_SERVING_H

#include "cache/generation.h"
#include "runtime/default.h"
#include "runtime/module.h"
#include "runtime/table.h"

#include <pthread.h>
#include <stdatomic.h>

/* A kernel ready to be launched for one problem; others of its family may use it by a plan of their
 * own. Immutable once published, but for what launches keep; lives until hone_close. */
struct served {
    struct served *next; /* of the runtime's list */
    const device *device;
    const module *module; /* NULL: the problem has no output, so there is nothing to launch */
    const manifest *m;
    config config;
    hone_problem problem; /* that `plan` and `operands` are for */
    uint32_t source;      /* index of the winner in the generation; 0 for a default */
    int32_t checked;      /* hone_options.checked */
    size_t operands_len;
    hone_operand operands[HONE_MAX_OPERANDS];
    plan plan;
    _Atomic(kept_maps *) maps; /* of the plan; made by the first launch */
    kept_sizes others;
};

/* A compiled and loaded set of kernels, shared by all problems that ask for the same entries. */
typedef struct serving_kernel {
    const manifest *m;
    uint8_t digest[32];          /* of the entries */
    uint8_t template_digest[32]; /* templates_digest: for grades */
    module *module;              /* NULL: failed, see status */
    bool flawed;                 /* ptxas speaks against it: compiled_flaw */
    hone_status status;
    hone_error error;
} serving_kernel;

struct hone_runtime {
    device *device;
    templates *templates;
    generation *generation;
    hone_options options; /* cache_path points to `cache_path`, or is NULL */
    char cache_path[1024];
    _Atomic(const table *) table; /* readers take it with acquire order */
    served nothing;               /* the answer for problems without output */
    pthread_mutex_t preparing;    /* guards all below */
    served *served;
    serving_kernel *kernels;
    size_t kernels_len, kernels_capacity;
    char nvrtc[64];        /* of the compiler, as winners have it; "" before the first compile */
    int32_t driver_number; /* cuDriverGetVersion */
};

/* One way to answer a problem. */
typedef struct serving_candidate {
    const manifest *m;
    config config;
    int32_t provenance;
    const generation_winner *winner; /* NULL for a default */
    uint32_t source;                 /* its index */
    bool exact; /* the winner is for this very problem, perhaps on a twin of the device */
} serving_candidate;

#define SERVING_MAX_CANDIDATES 6

/* Whether winners of this kind and timer may be served by this runtime at all: -1 no, else how good
 * (0 best). */
int serving_rank(const hone_runtime *rt, const generation_winner *winner);

/* The stored answers to a problem, best first: exact, bucket, near; each config parsed and legal at
 * the problem's own shape. Winners whose template or config is gone are passed over. */
hone_status serving_stored(const hone_runtime *rt, const hone_problem *problem,
                           serving_candidate out[SERVING_MAX_CANDIDATES], size_t *count,
                           hone_error *error);

/* The analytical choices, best first. */
hone_status serving_defaults(const hone_runtime *rt, const hone_problem *problem,
                             serving_candidate out[SERVING_MAX_CANDIDATES], size_t *count,
                             hone_error *error);

/* `size` rounded up to the bucket policy's list; itself past the list's end. */
int64_t serving_bucket(int64_t size);

/* The op's size field that lookups round up, as a value. 0 when it has none. */
int64_t serving_size(const hone_problem *problem);

#endif
