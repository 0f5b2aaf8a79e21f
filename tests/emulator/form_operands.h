/* form_operands.h - a statement of any form that real kernels have: what stands behind its name.
 *
 * Registers: %p<9>, %h<9>, %r<200>, %x<30>; parameters data (u64) and big (64 bytes); g: 256 bytes
 * of global memory, s: of shared memory, l: of local memory; a label END. */
#ifndef HONE_TESTS_EMULATOR_FORM_OPERANDS_H
#define HONE_TESTS_EMULATOR_FORM_OPERANDS_H

#include <stdbool.h>

void form_operands(const char *form, char out[2048]);
bool form_starts(const char *form, const char *with);

#endif
