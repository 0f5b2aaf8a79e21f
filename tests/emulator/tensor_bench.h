/* tensor_bench.h - tensors, maps and boxes of a test, drawn at random, and what a box must look
 * like by a restatement that goes element by element. */
#ifndef HONE_TESTS_EMULATOR_TENSOR_BENCH_H
#define HONE_TESTS_EMULATOR_TENSOR_BENCH_H

#include "emulator/machine/tensor_map.h"
#include "tests/emulator/ptx_bench.h"

enum {
    TENSOR_BENCH_BOX = 1024, /* offset of where boxes begin in shared memory, or behind */
    TENSOR_BENCH_SHARED = 66 * 1024,
    TENSOR_BENCH_UNTOUCHED = 0xee, /* a byte that nothing came to */
};

typedef struct tensor_case {
    tensor_map map;
    int32_t at[TENSOR_MAP_RANK];
    uint32_t shared;       /* offset of the box */
    uint32_t bytes;        /* what the mbarrier is told */
    uint64_t global_bytes; /* of the tensor, from its first byte to its last */
} tensor_case;

uint32_t tensor_bench_random(uint64_t *state, uint32_t below);
/* A case from a seed: any type without gaps, rank, pattern, element strides, position. The map's
 * address is 0. */
tensor_case tensor_bench_draw(uint64_t seed);
/* Names what differs, for a failing test. */
const char *tensor_bench_describe(const tensor_case *c);

/* For each element of the box: its place in shared memory (one per byte), and its first byte in the
 * tensor, or -1 when it is outside. Returns false when all have been visited. */
typedef struct tensor_walk {
    uint32_t index[TENSOR_MAP_RANK];
    bool ended;
} tensor_walk;
bool tensor_bench_next(const tensor_case *c, tensor_walk *walk, uint32_t places[8],
                       int64_t *source);

/* Kernels for all ranks: load<rank>(map, out, at, at0..at4, bytes), which fills shared memory with
 * untouched bytes, loads and copies all of it to `out`; store<rank>(map, in, ...) the other way,
 * and the reductions (`kind` as PTX names it). To be freed. */
char *tensor_bench_text(const char *kind);
hone_status tensor_bench_run(ptx_bench *b, const char *kernel, const tensor_case *c,
                             uint64_t buffer);

#endif
