/* numfmt.h - narrow number formats, exactly (kernels.md 0.2, 5, App. B).
 *
 * Encoders round to nearest even and saturate to the largest finite value, as cvt.rn.satfinite
 * does; NaN becomes the format's NaN (e2m1 has none: +6). Decoders are exact. All functions are
 * pure. */
#ifndef HONE_CORE_NUMFMT_H
#define HONE_CORE_NUMFMT_H

#include "include/hone.h"

#include <stdbool.h>
#include <string.h>

/* A float's bits, and the float of bits. */
static inline uint32_t numfmt_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float numfmt_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

uint8_t numfmt_e4m3_encode(float x); /* max 448; NaN 0x7f; infinities saturate */
float numfmt_e4m3_decode(uint8_t code);
uint8_t numfmt_e5m2_encode(float x); /* max 57344; NaN 0x7f */
float numfmt_e5m2_decode(uint8_t code);
uint8_t numfmt_e2m1_encode(float x); /* 4-bit code in the low bits; NaN +6 */
float numfmt_e2m1_decode(uint8_t code);
uint8_t numfmt_ue4m3_encode(float x); /* sign dropped: e4m3 of |x| */
float numfmt_ue4m3_decode(uint8_t code);
float numfmt_ue8m0_decode(uint8_t code); /* 2^(code-127); 0xff NaN; 0 is 2^-127 */
uint16_t numfmt_bf16_encode(float x);    /* RNE; overflow to infinity; NaN 0x7fff */
float numfmt_bf16_decode(uint16_t code);
uint16_t numfmt_f16_encode(float x); /* RNE; overflow to infinity; NaN 0x7fff */
float numfmt_f16_decode(uint16_t code);

/* The smallest power of two >= x as a ue8m0 code, by the bit rule: exponent + (mantissa != 0),
 * clamped to [1, 254]; 0, negative and subnormal x give 1. Never log2f, never frexp (cases.md 3).
 * NaN and +inf give 0xff. */
uint8_t numfmt_ue8m0_ceil(float x);

/* The ue8m0 code of a power of two from 2^-127 to 2^127; false for any other x. */
bool numfmt_ue8m0_exact(float x, uint8_t *code);

/* Decode element `index` of a packed array of `dtype` (e2m1: two a byte, even index in the low
 * nibble). */
float numfmt_decode(hone_dtype dtype, const void *array, uint64_t index);
/* Encode into such an array. */
void numfmt_encode(hone_dtype dtype, void *array, uint64_t index, float x);

/* Names and sizes; NULL or -1 when unknown. */
const char *numfmt_dtype_name(hone_dtype dtype);
int numfmt_dtype_bits(hone_dtype dtype);
hone_dtype numfmt_dtype_parse(const char *name, size_t len); /* HONE_DTYPE_NONE when unknown */

/* The one quantiser. Makes a group's scale by `rule` and its payload *with that scale*; no function
 * rounds a scale alone. x: `len` finite-or-not floats; payload: `len` codes of `element`, e4m3 or
 * e2m1 (two a byte from the lowest nibble of payload[0] on; a scale is then amax / 6).
 * scale_dtype f32 stores the float, ue8m0 needs a power-of-two rule and stores the byte in
 * *scale_code (may be NULL), 0xff where a raw rule's scale has none. Payload is fl32(x / scale),
 * saturating RNE. A NaN or an infinity in x makes no scale (amax is that of the finite), and its
 * payload is NaN, never a finite e4m3 code; e2m1, which has none, gets codes of 0 under a scale of
 * NaN. Returns the scale, which e4m3_near and e4m3_up make an e4m3 value. */
float numfmt_quantise(const float *x, size_t len, hone_scale_rule rule, hone_dtype element,
                      uint8_t *payload, uint8_t *scale_code);

/* Scale of a group whose largest magnitude is amax, by rule, for payloads of e4m3 or e2m1. */
float numfmt_scale(float amax, hone_scale_rule rule, hone_dtype element);

#endif
