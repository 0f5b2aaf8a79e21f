/* toolkit_narrow.h - the CUDA toolkit's own host code for formats of eight bits and fewer. */
#ifndef HONE_TESTS_EMULATOR_TOOLKIT_NARROW_H
#define HONE_TESTS_EMULATOR_TOOLKIT_NARROW_H

#include <stdbool.h>
#include <stdint.h>

uint8_t toolkit_e2m1(float x);
uint8_t toolkit_e2m3(float x);
uint8_t toolkit_e3m2(float x);
uint8_t toolkit_ue8m0(float x, bool up, bool saturate);
/* f16 bits of a code. */
uint16_t toolkit_from_e2m3(uint8_t code);
uint16_t toolkit_from_e3m2(uint8_t code);
uint16_t toolkit_from_e2m1(uint8_t code);

#endif
