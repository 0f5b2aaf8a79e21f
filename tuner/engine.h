/* engine.h - what a sweep does with a candidate, as a struct of functions: compile ahead, then
 * prove and time.
 *
 * The product's engine compiles with NVRTC and proves on devices, both in processes of their own
 * (engine_device.c); tests bring their own. One thread at a time. */
#ifndef HONE_TUNER_ENGINE_H
#define HONE_TUNER_ENGINE_H

#include "bench/routing.h"
#include "cache/store.h"
#include "runtime/device.h"
#include "templates/manifest.h"

#define ENGINE_REASON_BYTES   480
#define ENGINE_COUNTERS_BYTES 1024
#define ENGINE_MAX_SAMPLES    512
#define ENGINE_DEADLINE_MS    60000

/* One candidate. Borrowed until its answer is discarded. */
typedef struct engine_trial {
    const hone_problem *problem;
    const manifest *m;
    const plan *plan;
    const config *config; /* that the plan was made of */
    uint64_t seed;        /* of the test data */
} engine_trial;

/* How a compile ended. */
typedef struct engine_answer {
    uint64_t tag;
    int32_t outcome; /* STORE_OK, or why there is no code */
    /* Why there is no code; with STORE_OK why others come first (a spill, local memory, a remark of
     * ptxas), "" when nothing speaks against it. */
    char reason[ENGINE_REASON_BYTES];
    int32_t registers, shared_bytes, spill_bytes, local_bytes;
    double compile_ms;
    void *code; /* the engine's; given back by discard */
} engine_answer;

/* What is stored of a trial, with the room that its texts and samples point into: copied by
 * engine_result_copy alone. */
typedef struct engine_result {
    store_result row;
    char reason[ENGINE_REASON_BYTES], counters[ENGINE_COUNTERS_BYTES];
    char bound[16], cache_mode[16], tokens[ROUTING_TEXT_BYTES];
    double proof_ms; /* that it took, wall time; 0: not known */
    double samples_ns[ENGINE_MAX_SAMPLES];
} engine_result;

typedef struct engine {
    char nvrtc[64]; /* for the store: version and build */
    int32_t driver; /* cuDriverGetVersion */
    void *state;
    /* Hand a compile in; never waits for it. */
    hone_status (*submit)(void *state, const engine_trial *trial, uint64_t tag, hone_error *error);
    /* Wait for the next compile to end, in any order. HONE_BAD_ARGUMENT when none is under way. */
    hone_status (*wait)(void *state, engine_answer *out, hone_error *error);
    size_t lanes; /* proofs that can be under way at once, each on a device of its own */
    /* Hand what was compiled to an idle lane, to be proved and timed; never waits for it. `trial`
     * and `answer` are borrowed until it is finished. */
    hone_status (*start)(void *state, size_t lane, const engine_trial *trial,
                         const engine_answer *answer, hone_error *error);
    /* Wait for a lane's proof; *out is whole whatever the verdict. A status other than HONE_OK ends
     * the sweep: the device or this machine is at fault, not the candidate. */
    hone_status (*finish)(void *state, size_t lane, engine_result *out, hone_error *error);
    uint64_t (*restarts)(void *state); /* device workers replaced so far; NULL: has none */
    void (*discard)(void *state, engine_answer *answer);
    void (*close)(void *state);
} engine;

typedef struct engine_options {
    const device *device;
    const templates *templates;
    /* What proves, one lane for each: devices of `device`'s kind, and it may be named more than
     * once. specs_len 0: `device` alone. */
    const char *const *specs;
    size_t specs_len;
    /* Compile workers, and host threads of the proofs on emulated devices; 0: one for each core. */
    int jobs;
    uint32_t
        deadline_ms; /* of one proof; 0: ENGINE_DEADLINE_MS, on emulated devices ten times it */
    uint64_t
        memory_bytes; /* that a problem's operands and workspace may take on a device; 0: all */
    const routing *routing; /* of rows that are timed, borrowed; NULL: balanced */
    void *context;          /* of an engine that needs one, borrowed */
} engine_options;

/* Start on the first lane, which is idle, and wait. */
hone_status engine_prove(const engine *e, const engine_trial *trial, const engine_answer *answer,
                         engine_result *out, hone_error *error);

/* A copy whose texts and samples are its own. */
void engine_result_copy(const engine_result *from, engine_result *to);

typedef hone_status (*engine_open_fn)(const engine_options *options, engine *out,
                                      hone_error *error);

/* The product's. */
hone_status engine_open_device(const engine_options *options, engine *out, hone_error *error);

#endif
