/* unit_bench.h - one product through an instruction of the matrix units: a dot product that all
 * rows of A and all columns of B repeat, by mma.sync on an arch, or by wgmma. */
#ifndef HONE_TESTS_EMULATOR_UNIT_BENCH_H
#define HONE_TESTS_EMULATOR_UNIT_BENCH_H

#include "tests/emulator/ptx_bench.h"

typedef enum unit_type {
    UNIT_E4M3,
    UNIT_E5M2,
    UNIT_E3M2,
    UNIT_E2M3,
    UNIT_E2M1,   /* in a byte */
    UNIT_NIBBLE, /* e2m1, eight in a register */
    UNIT_BF16,
    UNIT_F16,
    UNIT_TF32
} unit_type;

/* An instruction. */
typedef struct unit_form {
    const char *form; /* behind "mma.sync.aligned."; NULL: wgmma */
    int32_t arch;
    unit_type type; /* of a and b */
    bool half;      /* c and the result are f16 */
    uint32_t k;
} unit_form;

enum { UNIT_DEPTH = 64 };
/* What it multiplies: numbers that the type holds, and scale registers (all lanes the same). */
typedef struct unit_line {
    float a[UNIT_DEPTH], b[UNIT_DEPTH], c;
    uint32_t a_scale, b_scale;
} unit_line;

/* The result in `hw` arithmetic. All elements of D must be the same; a number that its type does
 * not hold fails the test. */
float unit_bench_run(const unit_form *u, const unit_line *l);

#endif
