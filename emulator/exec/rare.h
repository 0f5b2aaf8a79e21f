/* rare.h - scalar arithmetic of the rows of rare.def. All total: no input is undefined. */
#ifndef HONE_EMULATOR_EXEC_RARE_H
#define HONE_EMULATOR_EXEC_RARE_H

#include "emulator/exec/math.h"

#include <stdlib.h>

/* The low 24 bits with their sign. */
static inline int64_t rare_s24(uint32_t a)
{
    return (int32_t)(a << 8) >> 8;
}

/* Position of the offset-th set bit from `base` on, toward higher bits, or lower ones when offset
 * is negative; all ones when there are not as many. offset 0 asks for the bit at base itself. */
static inline uint32_t rare_fns(uint32_t mask, uint32_t base, int32_t offset)
{
    int64_t step = offset < 0 ? -1 : 1, left = offset < 0 ? -(int64_t)offset : offset;

    if (base > 31) {
        return UINT32_MAX;
    }
    if (offset == 0) {
        return mask >> base & 1 ? base : UINT32_MAX;
    }
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
        left -= mask >> at & 1;
        if (left == 0) {
            return (uint32_t)at;
        }
    }
    return UINT32_MAX;
}

/* `len` ones from bit `at` on. Past bit 31: cut off, or (clamp) not even started. */
static inline uint32_t rare_bmsk(uint32_t at, uint32_t len, bool clamp)
{
    uint32_t from = at & 31, width = len & 31, top = from + width;
    uint32_t below = UINT32_MAX << from;

    if (clamp && at > 31) {
        return 0;
    }
    return top > 31 || (clamp && len > 31) ? below : below & ~(UINT32_MAX << top);
}

/* The low `bits` bits of a, extended. */
static inline uint32_t rare_szext(uint32_t a, uint32_t bits, bool is_signed)
{
    if (bits == 0) {
        return 0;
    }
    if (bits > 31) {
        return a;
    }
    uint32_t kept = a & ((UINT32_C(1) << bits) - 1);
    return is_signed && (kept >> (bits - 1) & 1) ? kept | UINT32_MAX << bits : kept;
}

static inline uint32_t rare_dp2a(uint32_t a, uint32_t b, uint32_t c, uint32_t first, uint32_t types)
{
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t half = a >> 16 * n & 0xffff, byte = b >> 8 * (n + first) & 255;
        int32_t x = types & 1 ? (int16_t)half : (int32_t)half;
        int32_t y = types & 2 ? (int8_t)byte : (int32_t)byte;
        c += (uint32_t)x * (uint32_t)y;
    }
    return c;
}

/* prmt's other modes pick bytes by the two low bits of the control alone. */
typedef enum rare_prmt_mode {
    PRMT_F4E,
    PRMT_B4E,
    PRMT_RC8,
    PRMT_ECL,
    PRMT_ECR,
    PRMT_RC16
} rare_prmt_mode;
static inline uint32_t rare_prmt(uint64_t bytes, uint32_t control, rare_prmt_mode mode)
{
    static const uint16_t selectors[][4] = {
        [PRMT_F4E] = {0x3210, 0x4321, 0x5432, 0x6543},
        [PRMT_B4E] = {0x5670, 0x6701, 0x7012, 0x0123},
        [PRMT_RC8] = {0x0000, 0x1111, 0x2222, 0x3333},
        [PRMT_ECL] = {0x3210, 0x3211, 0x3222, 0x3333},
        [PRMT_ECR] = {0x0000, 0x1110, 0x2210, 0x3210},
        [PRMT_RC16] = {0x1010, 0x3232, 0x1010, 0x3232},
    };
    return math_prmt(bytes, selectors[mode][control & 3]);
}

/* Six bits and fewer: no infinity, no NaN (which becomes the largest number). Rounds to even. */
static inline uint32_t rare_to_mini(float x, uint32_t fraction, int32_t bias, uint32_t most,
                                    uint32_t sign_at)
{
    uint32_t bits = math_bits(x), u = bits & 0x7fffffffu, drop = 23 - fraction;
    uint32_t least = (uint32_t)(128 - bias) << 23; /* the least normal number */
    uint32_t round = (UINT32_C(1) << (drop - 1)) - 1 + (u >> drop & 1);
    uint32_t normal = ((u + round) >> drop) - ((uint32_t)(127 - bias) << fraction);
    float magic = math_float((uint32_t)(128 - bias + (int32_t)drop) << 23);
    uint32_t small = math_bits(math_float(u) + magic) - math_bits(magic);
    uint32_t code = u < least ? small : normal > most ? most : normal;

    return u > 0x7f800000u ? most : code | bits >> 31 << sign_at;
}
static inline float rare_from_mini(uint32_t code, uint32_t fraction, int32_t bias, uint32_t sign_at)
{
    uint32_t magnitude = code & ((UINT32_C(1) << sign_at) - 1);
    float value =
        math_float(magnitude << (23 - fraction)) * math_float((uint32_t)(254 - bias) << 23);

    return code >> sign_at & 1 ? -value : value;
}
static inline uint32_t rare_to_e2m3(float x)
{
    return rare_to_mini(x, 3, 1, 0x1f, 5);
}
static inline uint32_t rare_to_e3m2(float x)
{
    return rare_to_mini(x, 2, 3, 0x1f, 5);
}
static inline float rare_e2m3(uint32_t code)
{
    return rare_from_mini(code & 63, 3, 1, 5);
}
static inline float rare_e3m2(uint32_t code)
{
    return rare_from_mini(code & 63, 2, 3, 5);
}

/* ue8m0 without .satfinite: what does not fit is NaN. */
static inline uint32_t rare_ue8m0(float x, bool up)
{
    uint32_t code = math_ue8m0(x, up), u = math_bits(x) & 0x7fffffffu;
    bool over = u == 0x7f800000u || (up && u > 0x7f000000u);

    return over ? 0xff : code;
}

/* A whole number as a double whose last bit is set when it does not hold all of it. */
static inline double rare_odd(uint64_t x)
{
    return x >> 53 ? (double)((x >> 11) | ((x & 2047) != 0 ? 1 : 0)) * 2048.0 : (double)x;
}

/* The f16 or bf16 next to x in one direction: the nearest one, or the one beside it. */
typedef enum rare_half_way { HALF_ZERO, HALF_DOWN, HALF_UP } rare_half_way;
static inline uint32_t rare_half(double x, bool bf16, rare_half_way way)
{
    uint32_t code = bf16 ? math_to_bf16(math_odd(x)) : math_to_f16(math_odd(x));
    double near = bf16 ? (double)math_bf16(code) : (double)math_f16(code);
    bool negative = code & 0x8000;
    bool down = way == HALF_DOWN || (way == HALF_ZERO && !negative);

    if (x != x || near == x) {
        return code;
    }
    if (down ? near > x : near < x) { /* one step toward the other side, through zero */
        bool toward_zero = down != negative;
        return toward_zero ? code - 1 : (code & 0x7fff) == 0 ? (down ? 0x8001u : 1u) : code + 1;
    }
    return code;
}

static inline uint32_t rare_relu_half(uint32_t code, uint32_t infinity)
{
    return (code & 0x7fff) > infinity ? 0x7fff : code & 0x8000 ? 0 : code;
}
static inline uint32_t rare_flush_half(uint32_t code, uint32_t exponent)
{
    return code & exponent ? code & 0xffff : code & 0x8000;
}
static inline float rare_clamp(float x, float most)
{
    return x != x ? math_canonical(x) : x > most ? most : x < -most ? -most : x;
}
/* Integers of `bits` bits, saturated. */
static inline uint32_t rare_pack(int32_t a, uint32_t bits, bool is_signed)
{
    int32_t high = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
    int32_t low = is_signed ? -high - 1 : 0;

    return (uint32_t)(a > high ? high : a < low ? low : a) & ((UINT32_C(1) << bits) - 1);
}
static inline uint32_t rare_tf32_rz(float x)
{
    return x != x ? 0x7fffffffu : math_bits(x) & ~0x1fffu;
}

#endif
