/* engine.h - what a sweep does with a candidate, as a struct of functions: compile ahead, then
 * prove and time.
 *
 * The product's engine compiles with NVRTC and proves on a device (engine_device.c); tests bring
 * their own. One thread at a time. */
#ifndef HONE_TUNER_ENGINE_H
#define HONE_TUNER_ENGINE_H

#include "bench/routing.h"
#include "cache/store.h"
#include "runtime/device.h"
#include "templates/manifest.h"

#define ENGINE_REASON_BYTES   480
#define ENGINE_COUNTERS_BYTES 1024
#define ENGINE_MAX_SAMPLES    512

/* One candidate. Borrowed until its answer is discarded. */
typedef struct engine_trial {
    const hone_problem *problem;
    const manifest *m;
    const plan *plan;
    uint64_t seed; /* of the test data */
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

/* What is stored of a trial, with the room that its texts and samples point into. Not to be copied.
 */
typedef struct engine_result {
    store_result row;
    char reason[ENGINE_REASON_BYTES], counters[ENGINE_COUNTERS_BYTES];
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
    /* Prove and time what was compiled; *out is whole whatever the verdict. A status other than
     * HONE_OK ends the sweep: the device or this machine is at fault, not the candidate. */
    hone_status (*prove)(void *state, const engine_trial *trial, const engine_answer *answer,
                         engine_result *out, hone_error *error);
    void (*discard)(void *state, engine_answer *answer);
    void (*close)(void *state);
} engine;

typedef struct engine_options {
    const device *device;
    const templates *templates;
    /* Compile workers, and host threads of a proof on an emulated device; 0: one for each core. */
    int jobs;
    const routing *routing; /* of rows that are timed, borrowed; NULL: balanced */
} engine_options;

typedef hone_status (*engine_open_fn)(const engine_options *options, engine *out,
                                      hone_error *error);

/* The product's. */
hone_status engine_open_device(const engine_options *options, engine *out, hone_error *error);

#endif
