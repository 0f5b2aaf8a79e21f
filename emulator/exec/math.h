/* math.h - scalar arithmetic of one lane, for the rows of the .def files. All total: no input
 * is undefined. */
#ifndef HONE_EMULATOR_EXEC_MATH_H
#define HONE_EMULATOR_EXEC_MATH_H

#include "core/numfmt.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static inline int32_t math_clamp_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline int64_t math_clamp(__int128 x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : (int64_t)x;
}

static inline uint64_t math_bfe_u64(uint64_t a, uint32_t at, uint32_t len, uint32_t width)
{
    uint64_t v = at >= width ? 0 : a >> at;
    return len >= 64 ? v : v & ((UINT64_C(1) << len) - 1);
}

/* The sign is the field's top bit, or the source's when the field reaches past it. */
static inline uint64_t math_bfe_s64(int64_t a, uint32_t at, uint32_t len, uint32_t width)
{
    uint64_t v = (uint64_t)(a >> (at >= width ? width - 1 : at));
    if (len == 0) {
        return 0;
    }
    if (len >= 64) {
        return v;
    }
    uint64_t mask = (UINT64_C(1) << len) - 1;
    uint64_t sign = v & (UINT64_C(1) << (len - 1));
    return sign ? v | ~mask : v & mask;
}

static inline uint64_t math_bfi_u64(uint64_t field, uint64_t into, uint32_t at, uint32_t len)
{
    uint64_t mask = len >= 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
    if (at >= 64) {
        return into;
    }
    return (into & ~(mask << at)) | ((field & mask) << at);
}

static inline uint32_t math_reverse_u32(uint32_t a)
{
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
}

static inline uint32_t math_prmt_byte(uint64_t bytes, uint32_t selector)
{
    uint32_t byte = (uint32_t)(bytes >> (selector & 7) * 8) & 255;
    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}

static inline uint32_t math_prmt(uint64_t bytes, uint32_t selectors)
{
    return math_prmt_byte(bytes, selectors) | math_prmt_byte(bytes, selectors >> 4) << 8 |
           math_prmt_byte(bytes, selectors >> 8) << 16 |
           math_prmt_byte(bytes, selectors >> 12) << 24;
}

static inline uint32_t math_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t r = 0;
    for (uint32_t row = 0; row < 8; row++) {
        uint32_t match = (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
        r |= (0 - (table >> row & 1)) & match;
    }
    return r;
}

static inline uint32_t math_dp4a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed)
{
    for (uint32_t n = 0; n < 32; n += 8) {
        int32_t x = a_signed ? (int8_t)(a >> n) : (int32_t)(a >> n & 255);
        int32_t y = b_signed ? (int8_t)(b >> n) : (int32_t)(b >> n & 255);
        c += (uint32_t)(x * y);
    }
    return c;
}

static inline uint32_t math_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float math_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t math_bits64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* PTX: max and min give the other operand for a NaN, and order -0 below +0. */
static inline float math_max(float a, float b)
{
    float x = a > b ? a : b; /* b, too, when one is a NaN */
    x = b != b ? a : x;
    return a == b ? math_float(math_bits(a) & math_bits(b)) : x;
}
static inline float math_min(float a, float b)
{
    float x = a < b ? a : b;
    x = b != b ? a : x;
    return a == b ? math_float(math_bits(a) | math_bits(b)) : x;
}
static inline float math_canonical(float x)
{
    return x != x ? math_float(0x7fffffffu) : x;
}
/* a * (1 / b): past 2^126 the inverse is subnormal and taken for 0 (PTX ISA, div.approx). */
static inline float math_div_approx(float a, float b)
{
    uint32_t u = math_bits(b), magnitude = u & 0x7fffffffu;
    bool far = magnitude > 0x7e800000u && magnitude < 0x7f800000u;
    return far ? a * math_float(u & 0x80000000u) : a / b;
}
/* Doubles of 20 fraction bits, as .approx.ftz.f64 forms read and give them: the upper word, without
 * subnormals; the lower word is not read, and becomes zero. */
static inline double math_high(uint64_t u)
{
    bool none = (u >> 52 & 0x7ff) == 0;
    double x;
    u &= none ? UINT64_C(1) << 63 : UINT64_C(0xffffffff00000000);
    memcpy(&x, &u, sizeof x);
    return x;
}
static inline uint64_t math_to_high(double x)
{
    uint64_t u = math_bits64(x);
    if (x != x) {
        return UINT64_C(0x7fffffff00000000);
    }
    u = (u >> 52 & 0x7ff) == 0 ? u & UINT64_C(1) << 63 : u + 0x7fffffff + (u >> 32 & 1);
    return u & UINT64_C(0xffffffff00000000);
}
static inline float math_max_nan(float a, float b)
{
    return a != a || b != b ? math_float(0x7fffffffu) : math_max(a, b);
}
static inline float math_min_nan(float a, float b)
{
    return a != a || b != b ? math_float(0x7fffffffu) : math_min(a, b);
}
static inline double math_max64(double a, double b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static inline double math_min64(double a, double b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static inline float math_flush(float x)
{
    return (math_bits(x) & 0x7f800000u) == 0 ? math_float(math_bits(x) & 0x80000000u) : x;
}
static inline float math_saturate(float x)
{
    return x != x     ? 0.0f
           : x < 0.0f ? 0.0f
           : x > 1.0f ? 1.0f
                      : math_float(math_bits(x) & (x == 0.0f ? 0 : UINT32_MAX));
}

/* float to integer: truncated (callers round first), clamped; `nan` for NaN */
static inline int64_t math_to_signed(double x, int64_t low, int64_t high, int64_t nan)
{
    return x != x ? nan : x >= (double)high ? high : x <= (double)low ? low : (int64_t)x;
}
static inline uint64_t math_to_unsigned(double x, uint64_t high, uint64_t nan)
{
    return x != x ? nan : x >= (double)high ? high : x <= 0.0 ? 0 : (uint64_t)x;
}

/* Narrow through a float that keeps "inexact" in its last bit, so that the second rounding is
 * right. */
static inline float math_odd(double x)
{
    float f = (float)x;
    if (isinf(x) || x != x || (double)f == x) {
        return f;
    }
    uint32_t u = math_bits(f);
    if (fabs((double)f) > fabs(x)) {
        u--;
    }
    return math_float(u | 1);
}
/* a * b + c with its rounding error kept in the last bit; the product of two 11-bit numbers is
 * exact. */
static inline double math_fma_odd(double a, double b, double c)
{
    double p = a * b, s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
    uint64_t u;

    if (error == 0.0 || isinf(s) || s != s || error != error) {
        return s;
    }
    memcpy(&u, &s, sizeof u);
    if ((error < 0) != (s < 0)) {
        u--; /* the true value is nearer to zero: truncate */
    }
    u |= 1;
    memcpy(&s, &u, sizeof s);
    return s;
}

/* The converters below have no branches and call nothing, so that loops over lanes vectorise;
 * core/numfmt is their reference in the tests. Adding a power of two rounds a small number to that
 * number's last place. */
static inline float math_f16(uint32_t code)
{
    uint32_t sign = (code & 0x8000u) << 16, u = (code & 0x7fffu) << 13;
    uint32_t finite = math_bits(math_float(u) * 0x1p112f);
    uint32_t number = sign | ((code & 0x7fffu) == 0x7c00u ? 0x7f800000u : finite);
    return math_float((code & 0x7fffu) > 0x7c00u ? 0x7fffffffu : number);
}
static inline uint32_t math_to_f16(float x)
{
    uint32_t bits = math_bits(x), u = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t normal = ((u + 0xfffu + (u >> 13 & 1)) >> 13) - (112u << 10);
    uint32_t small = math_bits(math_float(u) + 0.5f) - math_bits(0.5f);
    uint32_t code = u < 0x38800000u ? small : normal > 0x7c00u ? 0x7c00u : normal;
    return u > 0x7f800000u ? 0x7fffu : sign | code;
}
static inline float math_bf16(uint32_t code)
{
    return math_float(code << 16);
}
static inline uint32_t math_to_bf16(float x)
{
    uint32_t u = math_bits(x);
    return x != x ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
static inline uint32_t math_to_bf16_rz(float x)
{
    return x != x ? 0x7fff : math_bits(x) >> 16;
}
static inline uint32_t math_to_f16_rz(float x)
{
    uint32_t u = math_to_f16(x);
    bool away = x == x && (u & 0x7fff) > 0 && fabsf(math_f16(u)) > fabsf(x);
    return away ? u - 1 : u;
}
static inline float math_relu(float x)
{
    return x > 0.0f || x != x ? x : 0.0f;
}
static inline uint32_t math_e4m3(float x)
{
    uint32_t bits = math_bits(x), u = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    uint32_t normal = ((u + 0x7ffffu + (u >> 20 & 1)) >> 20) - (120u << 3);
    uint32_t small = math_bits(math_float(u) + 0x1p14f) - math_bits(0x1p14f);
    uint32_t code = u < 0x3c800000u ? small : normal > 0x7eu ? 0x7eu : normal;
    return u > 0x7f800000u ? 0x7fu : sign | code;
}
static inline uint32_t math_e5m2(float x)
{
    uint32_t bits = math_bits(x), u = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    uint32_t normal = ((u + 0xfffffu + (u >> 21 & 1)) >> 21) - (112u << 2);
    uint32_t small = math_bits(math_float(u) + 0x1p7f) - math_bits(0x1p7f);
    uint32_t code = u < 0x38800000u ? small : normal > 0x7bu ? 0x7bu : normal;
    return u > 0x7f800000u ? 0x7fu : sign | code;
}
static inline uint32_t math_e4m3x2(float high, float low)
{
    return math_e4m3(high) << 8 | math_e4m3(low);
}
static inline uint32_t math_e5m2x2(float high, float low)
{
    return math_e5m2(high) << 8 | math_e5m2(low);
}
static inline uint32_t math_e2m1x2(float high, float low)
{
    return (uint32_t)numfmt_e2m1_encode(high) << 4 | numfmt_e2m1_encode(low);
}
/* ue8m0 of |x|, rounded toward zero or up; infinities saturate to 0xfe, NaN is 0xff */
static inline uint32_t math_ue8m0(float x, bool up)
{
    uint32_t u = math_bits(x) & 0x7fffffffu, e = u >> 23;
    if (u > 0x7f800000u) {
        return 0xff;
    }
    if (up && (u & 0x7fffffu) != 0 && u > 0x400000u) {
        e++; /* 2^-127 is the subnormal 0x400000 */
    }
    return e > 0xfe ? 0xfe : e;
}
static inline uint32_t math_ue8m0_to_bf16(uint32_t code)
{
    return code == 0 ? 0x0040 : code == 0xff ? 0x7fff : code << 7;
}
/* tf32 keeps 10 mantissa bits: to nearest with ties away, or to even */
static inline uint32_t math_tf32(float x, bool even)
{
    uint32_t u = math_bits(x);
    if ((u & 0x7fffffffu) >= 0x7f800000u) {
        return x != x ? 0x7fffffffu : u;
    }
    return (u + (even ? 0xfffu + (u >> 13 & 1) : 0x1000u)) & ~0x1fffu;
}
static inline uint32_t math_pair(uint32_t low, uint32_t high)
{
    return (low & 0xffff) | high << 16;
}

#endif
