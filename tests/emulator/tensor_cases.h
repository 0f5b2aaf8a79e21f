/* tensor_cases.h - seeded operands for the matrix units' tests: ordinary, adversarial and not
 * finite. */
#ifndef HONE_TESTS_EMULATOR_TENSOR_CASES_H
#define HONE_TESTS_EMULATOR_TENSOR_CASES_H

#include "emulator/tensor/lanes.h"

typedef struct tensor_case {
    uint32_t a[4][32], b[2][32], c[4][32];
    tensor_type a_type, b_type;
    int32_t arch;     /* of mma.sync; 0: wgmma on sm_90 */
    bool half;        /* c and the result are f16 */
    tensor_unit unit; /* what the emulator says that these have */
    hone_emu_arithmetic mode;
} tensor_case;

/* Case `index`: types, unit, mode and the kind of operands all follow from it. */
void tensor_cases_make(uint64_t index, tensor_case *out);

/* Row `row` of A and column `n` of B as codes, by emulator.md 5.1 read literally, lane by lane. */
size_t tensor_cases_operands(const tensor_case *t, uint32_t row, uint32_t n, uint32_t a[32],
                             uint32_t b[32]);

const char *tensor_cases_type_name(tensor_type type);
const char *tensor_cases_mode_name(hone_emu_arithmetic mode);

#endif
