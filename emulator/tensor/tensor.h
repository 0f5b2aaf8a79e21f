/* tensor.h - matrix units of one warp: fragments in, fragments out. Pure functions of their
 * arguments.
 *
 * A fragment register is 32 lanes of 32 bits: reg[lane]. Layouts are emulator.md 5.1, 5.2. */
#ifndef HONE_EMULATOR_TENSOR_H
#define HONE_EMULATOR_TENSOR_H

#include "include/hone_emu.h"

#include <stdbool.h>

typedef enum tensor_type {
    TENSOR_E4M3,
    TENSOR_E5M2,
    TENSOR_BF16,
    TENSOR_F16,
    TENSOR_S8,
    TENSOR_U8,
    TENSOR_TF32
} tensor_type;

/* How a unit adds: F fraction bits kept when terms are aligned, mantissa bits of the result, terms
 * in one step (kernels.md 6.2). fraction 0 where the mode does not truncate, and for integers.
 * mantissa TENSOR_HALF: c and the result are f16, which every step rounds to nearest even. */
typedef struct tensor_unit {
    int32_t fraction, mantissa, terms;
} tensor_unit;
enum { TENSOR_HALF = 10 };

/* The unit behind mma.sync on this arch for operands of a's width; `half`: c and the result are
 * f16. */
tensor_unit tensor_unit_mma(int32_t arch, tensor_type a, bool half, hone_emu_arithmetic mode);
/* The unit behind wgmma on sm_90; `half` as above. */
tensor_unit tensor_unit_wgmma(tensor_type a, bool half, hone_emu_arithmetic mode);

uint32_t tensor_elements(tensor_type type); /* of a register: 4, 2 or 1 */

/* m16n8k32 (8-bit), m16n8k16 (16-bit) or m16n8k8 (tf32), f32 (or s32) accumulate. d may alias c.
 * a: 4 registers, b: 2, c and d: 4, each uint32_t[32]. Types are both 8-bit floats, both the same
 * wider float or both 8-bit integers. An f16 c or d is an fp32 number here too. Thread-safe; the
 * host's vector unit is picked once. */
void tensor_mma_m16n8(uint32_t d[4][32], const uint32_t a[4][32], const uint32_t b[2][32],
                      const uint32_t c[4][32], tensor_type a_type, tensor_type b_type,
                      tensor_unit unit, hone_emu_arithmetic mode);

/* Operands taken apart, and the registers that they came from: products that share an operand take
 * it apart once. A packed exponent has a byte (a half) for each element of its register. Rows lie
 * in the order of the host's vectors. */
typedef struct tensor_left {
    _Alignas(64) uint32_t raw[4][32];
    _Alignas(64) int32_t exponents[8][16];             /* [register's quad + 4 * half][row] */
    _Alignas(64) float values[32][16];                 /* [k][row] */
    _Alignas(64) uint32_t reach[8][16], places[8][16]; /* down.h's, when `placed` */
    tensor_type type;
    bool kept;        /* false in zeroed memory: nothing is here yet */
    bool finite, any; /* all are finite; some are not zero */
    bool placed;
} tensor_left;

typedef struct tensor_right {
    _Alignas(64) uint32_t raw[2][32];
    _Alignas(64) int32_t exponents[2][32];             /* [half][lane] */
    _Alignas(64) float values[4][2][32];               /* [element][half][lane] */
    _Alignas(64) uint32_t reach[2][32], places[2][32]; /* down.h's, when `placed`, with wide */
    _Alignas(64) double wide[4][2][32];
    tensor_type type;
    bool kept, finite, any, placed;
} tensor_right;

/* A product as tensor_mma_m16n8 has it. `left` and `right` keep operands from one product to the
 * next, of one thread; NULL: nothing is kept. Their content is no part of the result. */
typedef struct tensor_call {
    const uint32_t *a[4], *b[2], *c[4]; /* registers: 32 lanes each */
    tensor_type a_type, b_type;
    tensor_unit unit;
    hone_emu_arithmetic mode;
    bool saturate; /* s32 stops at its limits */
    tensor_left *left;
    tensor_right *right;
} tensor_call;

void tensor_run(uint32_t *const d[4], const tensor_call *call);

/* ---- wgmma: one A meets many B ------------------------------------------------------------- */

/* Sixteen rows of A, and eight columns of B, taken apart; raw and type are filled in by the caller,
 * the rest by tensor_open_rows and tensor_open_columns. Values and exponents are laid out for the
 * lanes of accumulators: [k][rows' half][lane], [k][column's parity][column / 2]. What is here
 * already is kept. */
typedef struct tensor_rows {
    _Alignas(64) uint32_t raw[4][32];
    _Alignas(64) int32_t exponents[8][2][32];
    _Alignas(64) float values[32][2][32];
    tensor_type type;
    bool kept;        /* false in zeroed memory: nothing is here yet */
    bool finite, any; /* all are finite; some are not zero */
} tensor_rows;

typedef struct tensor_columns {
    _Alignas(64) uint32_t raw[2][32];
    _Alignas(64) int32_t exponents[8][2][4];
    _Alignas(64) float values[32][2][4];
    tensor_type type;
    bool kept, finite, any;
} tensor_columns;

typedef struct tensor_group_call {
    const tensor_rows *rows;
    const tensor_columns *columns; /* of one block of eight columns, or of two */
    const uint32_t *c[8];          /* four registers of each block */
    uint32_t blocks;               /* 1 or 2 */
    tensor_unit unit;
    hone_emu_arithmetic mode;
    bool saturate; /* s32 stops at its limits */
} tensor_group_call;

void tensor_open_rows(tensor_rows *r);
void tensor_open_columns(tensor_columns *c);
/* d: as many registers as c, which it may alias. Gives what tensor_run gives for each block. */
void tensor_group_run(uint32_t *const *d, const tensor_group_call *call);

/* One element, for tests and references: c + sum a[i]*b[i] over `len` codes of the types, in steps
 * of unit.terms, as `mode` adds. Floating types only; codes lie in the low bits, tf32's 19. */
float tensor_dot(const uint32_t *a, const uint32_t *b, size_t len, float c, tensor_type a_type,
                 tensor_type b_type, tensor_unit unit, hone_emu_arithmetic mode);

/* An f16 code as a number, and a number to the nearest f16 code, ties to even. */
float tensor_half_value(uint32_t code);
uint32_t tensor_half_code(double x);

#endif
