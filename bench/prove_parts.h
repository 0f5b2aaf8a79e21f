/* prove_parts.h - inside prove: buffers on the device, one launch, its time. */
#ifndef HONE_BENCH_PROVE_PARTS_H
#define HONE_BENCH_PROVE_PARTS_H

#include "bench/prove.h"
#include "bench/segments.h"

/* Kinds of inputs that a proof goes through, the first of them twice. */
typedef struct prove_kinds {
    const inputs_kind *kind;
    size_t len;
} prove_kinds;

prove_kinds prove_kinds_of(const device *d, const hone_problem *problem);
/* Whether sampled CTAs must do on this device. */
bool prove_is_large(const device *d, const hone_problem *problem);
/* A sum of products, whose elements have bounds. */
bool prove_is_product(const hone_problem *problem);
/* A quantiser's problem of which a sample shows enough. */
bool prove_is_plenty(const hone_problem *problem);

/* Operands on the device with a red zone on both sides. */
typedef struct prove_buffers {
    const device *d;
    size_t len, zone;                    /* zone: bytes on each side */
    uint64_t base[HONE_MAX_OPERANDS];    /* of the allocations */
    uint64_t address[HONE_MAX_OPERANDS]; /* of the operands */
    uint64_t workspace, workspace_bytes; /* address of the operand, its size */
} prove_buffers;

hone_status prove_buffers_open(const device *d, const inputs *in, prove_buffers *out,
                               hone_error *error);
void prove_buffers_close(prove_buffers *b);
/* Room for a plan's workspace, poisoned. */
hone_status prove_buffers_workspace(prove_buffers *b, uint64_t bytes, hone_error *error);
/* Put back what `in` says of written operands and red zones, and of those read-only ones that are
 * other images than in `loaded`, which are on the device; NULL: all. */
hone_status prove_buffers_reset(const prove_buffers *b, const inputs *in, const inputs *loaded,
                                hone_error *error);
/* Read written operands into `out` (from inputs_copy_outputs); *hit is an operand whose red zone
 * was written, or -1. */
hone_status prove_buffers_read(const prove_buffers *b, inputs *out, int *hit, hone_error *error);

/* How a launch is run on an emulated device; all CTAs when sample_len is 0. */
typedef struct prove_launch {
    const uint64_t *sample;
    size_t sample_len;
    uint64_t schedule;
    hone_emu_timing timing; /* of asynchronous operations */
    int threads;            /* of the host, for CTAs that do not wait for one another; 0: one */
    bool thorough;          /* look for races and the like, too: three to five times as slow */
} prove_launch;

/* Launch a plan once and wait. A candidate's failure is an outcome in *out (STORE_OK when it ended
 * well), with the reason; `counters` (MANIFEST_MAX_LAUNCHES, may be NULL) are filled on an emulated
 * device. */
hone_status prove_launch_once(const prove_buffers *b, const module *m, const plan *p,
                              const prove_launch *how, prove_result *out,
                              hone_emu_counters *counters, hone_error *error);

enum { PROVE_SAMPLE_MOST = 48 * MANIFEST_MOST_GROUP }; /* CTAs of a sample */

uint64_t prove_ctas(const plan *p);
/* Tiles of D that the plan's cover parts it in, of a moe_gemm those of its `runs`; 0 for a plan
 * without a cover. */
uint64_t prove_tiles_all(const hone_problem *problem, const segments *runs, const plan *p);
/* CTAs of the first launch that are run, whole groups of the plan's cover, `wanted` of them, fewer
 * but no less than two where clusters share tiles: into `sample` (capacity PROVE_SAMPLE_MOST), *len
 * 0 when that is all. Groups of a cover take `tiles` in turn (manifest.h), so that the sample holds
 * the first tile's, the last tile's, and short ones. */
void prove_sample(uint64_t tiles, const plan *p, size_t wanted, uint64_t seed, uint64_t *sample,
                  size_t *len);
/* Tiles that the sample's groups make, of `tiles` in all. */
uint64_t prove_tiles(uint64_t tiles, const plan *p, const uint64_t *sample, size_t len);
/* *out, to be freed, is the plan with a larger grid where its few CTAs make many of `tiles` each;
 * NULL as it is where they do not. */
hone_status prove_spread(uint64_t tiles, const plan *p, plan **out, hone_error *error);

/* What counters were counted of. */
typedef struct prove_timed {
    double scale; /* all work over that of the CTAs that were counted; 0: it goes with the products
                     that the manifest estimates */
    uint64_t tiles; /* of a moe_gemm's rows, by its cover; 0: as many as the manifest estimates */
} prove_timed;

/* The time: modelled from counters, or by events. The model takes out->bytes for those that move
 * where CTAs were sampled. */
hone_status prove_time_model(const device *d, const plan *p, const compiled *c,
                             const hone_emu_counters *counters, const prove_timed *timed,
                             prove_result *out, hone_error *error);
hone_status prove_time_events(const prove_buffers *b, const module *m, const plan *p,
                              prove_result *out, hone_error *error);

#endif
