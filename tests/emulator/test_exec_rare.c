/* test_exec_rare.c - forms that are seldom used, over products of edge values, against C that is
 * written from the PTX manual, not from the handlers. */
#include "tests/emulator/exec_cases.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/numfmt.h"

#include <check.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 4, OUT = 2 };

static uint64_t wide(const uint32_t *a)
{
    return (uint64_t)a[1] << 32 | a[0];
}
static void put(uint32_t *d, uint64_t v)
{
    d[0] = (uint32_t)v;
    d[1] = (uint32_t)(v >> 32);
}
static uint32_t of_f(float f)
{
    return f != f ? 0x7fffffffu : numfmt_bits(f);
}
static float f16(uint32_t code)
{
    return numfmt_f16_decode((uint16_t)code);
}
static float bf16(uint32_t code)
{
    return numfmt_bf16_decode((uint16_t)code);
}
static uint32_t low_f16(float x)
{
    return numfmt_f16_encode(x);
}
static uint32_t pair(uint32_t low, uint32_t high)
{
    return (low & 0xffff) | high << 16;
}
static int64_t signed24(uint32_t a)
{
    return (a & 0x800000) ? (int64_t)(a & 0xffffff) - 0x1000000 : (int64_t)(a & 0xffffff);
}
static uint32_t bits_from(uint32_t at, uint32_t len)
{
    uint32_t r = 0;
    for (uint32_t n = at; n < 32 && n < at + len; n++) {
        r |= 1u << n;
    }
    return r;
}
static uint32_t extended(uint32_t a, uint32_t len, bool is_signed)
{
    uint32_t r = 0;
    for (uint32_t n = 0; n < 32 && len > 0; n++) {
        bool bit = n < len ? a >> n & 1 : is_signed && (a >> (len - 1) & 1);
        r |= (uint32_t)bit << n;
    }
    return r;
}
static uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    int32_t at = (int32_t)(base & 31), count = 0;
    if (offset == 0) {
        return mask >> at & 1 ? (uint32_t)at : UINT32_MAX;
    }
    for (; at >= 0 && at < 32; at += offset < 0 ? -1 : 1) {
        count += (int32_t)(mask >> at & 1);
        if (count == abs(offset)) {
            return (uint32_t)at;
        }
    }
    return UINT32_MAX;
}
static uint32_t two_products(const uint32_t *a, int shift, bool x_signed, bool y_signed)
{
    uint32_t r = a[2];
    for (int n = 0; n < 2; n++) {
        int64_t x = x_signed ? (int16_t)(a[0] >> 16 * n) : (int64_t)(a[0] >> 16 * n & 0xffff);
        int64_t y =
            y_signed ? (int8_t)(a[1] >> (8 * n + shift)) : (int64_t)(a[1] >> (8 * n + shift) & 255);
        r += (uint32_t)(x * y);
    }
    return r;
}
static uint32_t bytes_of(const uint32_t *a, const char *selectors)
{
    uint8_t bytes[8];
    uint32_t r = 0;
    memcpy(bytes, a, 8);
    for (int n = 0; n < 4; n++) { /* from the top byte down, as the manual lists them */
        r = r << 8 | bytes[selectors[n] - '0'];
    }
    return r;
}
static float least(float a, float b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static float relu(float x)
{
    return x > 0 || x != x ? x : 0;
}
static const float e2m3[] = {0, .125f,  .25f,  .375f,  .5f,  .625f,  .75f,  .875f,
                             1, 1.125f, 1.25f, 1.375f, 1.5f, 1.625f, 1.75f, 1.875f,
                             2, 2.25f,  2.5f,  2.75f,  3,    3.25f,  3.5f,  3.75f,
                             4, 4.5f,   5,     5.5f,   6,    6.5f,   7,     7.5f};
static uint32_t mini(float x, const float *values, int len, uint32_t sign)
{
    int best = 0;
    for (int n = 1; n < len; n++) { /* the nearest; of two, the even code */
        float m = fminf(fabsf(x), 100), d = fabsf(m - values[n]), e = fabsf(m - values[best]);
        best = d < e || (d == e && n % 2 == 0) ? n : best;
    }
    return x != x ? (uint32_t)len - 1 : (uint32_t)best | (signbit(x) ? sign : 0);
}

/* x * y + x in doubles, then in a float, both toward zero. */
static uint32_t toward_zero(uint64_t x, uint64_t y)
{
    volatile double a, b, sum;
    volatile float narrow;
    memcpy((void *)&a, &x, sizeof x);
    memcpy((void *)&b, &y, sizeof y);
    fesetround(FE_TOWARDZERO);
    sum = fma(a, b, a);
    narrow = (float)sum;
    fesetround(FE_TONEAREST);
    return of_f(narrow);
}

static double number(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Truncated and clamped; a double's NaN gives the top bit, 1 << (width - 1). */
static int64_t within(double x, int64_t low, int64_t high)
{
    int64_t top = low < 0 ? low : high / 2 + 1;
    return x != x ? top : x >= (double)high ? high : x <= (double)low ? low : (int64_t)x;
}

#define S32(x) ((int32_t)(x))
#define X64    "mov.b64 %x0, {%a0, %a1}; mov.b64 %x1, {%a2, %a3}; "
#define Y64    " mov.b64 {%d0, %d1}, %x2;"
#define H      "mov.b32 {%h0, %h2}, %a0; mov.b32 {%h1, %h3}, %a1; "
#define Z      " mov.u32 %d1, 0;"
#define CASES(X)                                                                                   \
    X(k01, "add.cc.u32 %d0, %a0, %a1; addc.u32 %d1, %a2, %a3;",                                    \
      uint64_t s = (uint64_t)a[0] + a[1];                                                          \
      d[0] = (uint32_t)s; d[1] = a[2] + a[3] + (uint32_t)(s >> 32))                                \
    X(k02, "sub.cc.u32 %d0, %a0, %a1; subc.cc.u32 %d1, %a2, %a3; addc.u32 %d0, %d0, 0;",           \
      bool borrow = a[0] < a[1];                                                                   \
      uint32_t first = a[0] - a[1]; d[1] = a[2] - a[3] - borrow;                                   \
      d[0] = first + ((uint64_t)a[2] < (uint64_t)a[3] + borrow))                                   \
    X(k03, "mad.lo.cc.u32 %d0, %a0, %a1, %a2; madc.hi.u32 %d1, %a0, %a1, %a3;",                    \
      put(d, (uint64_t)a[0] * a[1] + ((uint64_t)a[3] << 32 | a[2])))                               \
    X(k04, X64 "add.cc.u64 %x2, %x0, %x1; addc.u32 %d0, 0, 0; mov.u32 %d1, 0;",                    \
      d[0] = wide(a) + wide(a + 2) < wide(a))                                                      \
    X(k05, "mad.lo.cc.s32 %d0, %a0, %a1, %a2; madc.hi.s32 %d1, %a0, %a1, %a3;",                    \
      put(d, (uint64_t)((int64_t)S32(a[0]) * S32(a[1])) + ((uint64_t)a[3] << 32 | a[2])))          \
    X(k06, "mul24.lo.u32 %d0, %a0, %a1; mul24.hi.u32 %d1, %a0, %a1;",                              \
      uint64_t p = (uint64_t)(a[0] & 0xffffff) * (a[1] & 0xffffff);                                \
      d[0] = (uint32_t)p; d[1] = (uint32_t)(p >> 16))                                              \
    X(k07, "mul24.lo.s32 %d0, %a0, %a1; mad24.hi.s32 %d1, %a0, %a1, %a2;",                         \
      int64_t p = signed24(a[0]) * signed24(a[1]);                                                 \
      d[0] = (uint32_t)p; d[1] = (uint32_t)(p >> 16) + a[2])                                       \
    X(k08, "bmsk.clamp.b32 %d0, %a0, %a1; bmsk.wrap.b32 %d1, %a0, %a1;",                           \
      d[0] = bits_from(a[0], a[1] > 31 ? 32 : a[1]);                                               \
      d[0] = a[0] > 31 ? 0 : d[0]; d[1] = bits_from(a[0] & 31, a[1] & 31))                         \
    X(k09, "szext.clamp.s32 %d0, %a0, %a1; szext.wrap.u32 %d1, %a0, %a1;",                         \
      d[0] = extended(a[0], a[1] > 32 ? 32 : a[1], true);                                          \
      d[1] = extended(a[0], a[1] & 31, false))                                                     \
    X(k10, "and.b32 %r3, %a1, 31; sub.s32 %r4, %r3, 16; fns.b32 %d0, %a0, %r3, %r4;" Z,            \
      d[0] = nth_set(a[0], a[1], S32(a[1] & 31) - 16))                                             \
    X(k11, "dp2a.lo.s32.u32 %d0, %a0, %a1, %a2; dp2a.hi.u32.s32 %d1, %a0, %a1, %a2;",              \
      d[0] = two_products(a, 0, true, false);                                                      \
      d[1] = two_products(a, 16, false, true))                                                     \
    X(k12, "prmt.b32.f4e %d0, %a0, %a1, 3; prmt.b32.b4e %d1, %a0, %a1, 1;",                        \
      d[0] = bytes_of(a, "6543");                                                                  \
      d[1] = bytes_of(a, "6701"))                                                                  \
    X(k13, "prmt.b32.rc8 %d0, %a0, %a1, 2; prmt.b32.rc16 %d1, %a0, %a1, 3;",                       \
      d[0] = bytes_of(a, "2222");                                                                  \
      d[1] = bytes_of(a, "3232"))                                                                  \
    X(k14, "prmt.b32.ecl %d0, %a0, %a1, 1; prmt.b32.ecr %d1, %a0, %a1, 2;",                        \
      d[0] = bytes_of(a, "3211");                                                                  \
      d[1] = bytes_of(a, "2210"))                                                                  \
    X(k15, "bfind.shiftamt.s32 %d0, %a0; bfind.s32 %d1, %a0;",                                     \
      uint32_t v = a[0] >> 31 ? ~a[0] : a[0];                                                      \
      d[1] = UINT32_MAX; for (uint32_t n = 0; n < 32; n++) d[1] = v >> n & 1 ? n : d[1];           \
      d[0] = d[1] == UINT32_MAX ? d[1] : 31 - d[1])                                                \
    X(k16, X64 "sad.s64 %x2, %x0, %x1, 5;" Y64, int64_t x = (int64_t)wide(a);                      \
      int64_t y = (int64_t)wide(a + 2);                                                            \
      put(d, 5 + (x < y ? wide(a + 2) - wide(a) : wide(a) - wide(a + 2))))                         \
    X(k17,                                                                                         \
      "setp.ne.u32 %p2, %a3, 0; lop3.or.b32 %d0|%p1, %a0, %a1, %a2, 0x80, %p2; "                   \
      "selp.b32 %d1, 1, 0, %p1;",                                                                  \
      d[0] = a[0] & a[1] & a[2];                                                                   \
      d[1] = d[0] != 0 || a[3] != 0)                                                               \
    X(k18, "add.s16x2 %d0, %a0, %a1; max.s16x2 %d1, %a0, %a1;",                                    \
      d[0] = pair(a[0] + a[1], (a[0] >> 16) + (a[1] >> 16));                                       \
      d[1] = pair((int16_t)a[0] > (int16_t)a[1] ? a[0] : a[1],                                     \
                  (int16_t)(a[0] >> 16) > (int16_t)(a[1] >> 16) ? a[0] >> 16 : a[1] >> 16))        \
    X(k19, "mov.b32 {%b0, %b1, %b2, %b3}, %a0; mov.b32 %d0, {%b3, %b2, %b1, %b0};" Z,              \
      d[0] = __builtin_bswap32(a[0]))                                                              \
    X(k20, "min.xorsign.abs.f32 %d0, %a0, %a1; min.f32 %d1, %a0, %a1, %a2;",                       \
      float x = least(fabsf(numfmt_float(a[0])), fabsf(numfmt_float(a[1])));                       \
      d[0] = (of_f(x) & 0x7fffffff) | ((a[0] ^ a[1]) & 0x80000000u);                               \
      d[1] = of_f(least(least(numfmt_float(a[0]), numfmt_float(a[1])), numfmt_float(a[2]))))       \
    X(k21, X64 "add.rn.f32x2 %x2, %x0, %x1;" Y64,                                                  \
      d[0] = of_f(numfmt_float(a[0]) + numfmt_float(a[2]));                                        \
      d[1] = of_f(numfmt_float(a[1]) + numfmt_float(a[3])))                                        \
    X(k22, X64 "fma.rn.f32x2 %x2, %x0, %x1, %x0;" Y64,                                             \
      d[0] = of_f(fmaf(numfmt_float(a[0]), numfmt_float(a[2]), numfmt_float(a[0])));               \
      d[1] = of_f(fmaf(numfmt_float(a[1]), numfmt_float(a[3]), numfmt_float(a[1]))))               \
    X(k23,                                                                                         \
      H "fma.rn.relu.f16 %h4, %h0, %h1, %h2; cvt.u32.u16 %d0, %h4; "                               \
        "add.sat.f16 %h5, %h0, %h1; cvt.u32.u16 %d1, %h5;",                                        \
      double x = (double)f16(a[0]) * (double)f16(a[1]) + (double)f16(a[0] >> 16);                  \
      d[0] = low_f16(relu(f16(numfmt_f16_encode((float)x))));                                      \
      float s = f16(low_f16(f16(a[0]) + f16(a[1]))); d[1] = low_f16(s > 0 ? fminf(s, 1) : 0))      \
    X(k24, "setp.lt.f16x2 %p1|%p2, %a0, %a1; selp.b32 %d0, 1, 0, %p1; selp.b32 %d1, 1, 0, %p2;",   \
      d[0] = f16(a[0]) < f16(a[1]);                                                                \
      d[1] = f16(a[0] >> 16) < f16(a[1] >> 16))                                                    \
    X(k25, "set.ge.bf16x2.bf16x2 %d0, %a0, %a1; set.eq.u32.f32 %d1, %a0, %a1;",                    \
      d[0] = pair(bf16(a[0]) >= bf16(a[1]) ? 0x3f80 : 0,                                           \
                  bf16(a[0] >> 16) >= bf16(a[1] >> 16) ? 0x3f80 : 0);                              \
      d[1] = numfmt_float(a[0]) == numfmt_float(a[1]) ? UINT32_MAX : 0)                            \
    X(k26, "add.f32.f16 %d0, %h0, %a1; mov.u32 %d1, 0;", d[0] = of_f(0.0f + numfmt_float(a[1])))   \
    X(k27, "cvt.pack.sat.u8.s32.b32 %d0, %a0, %a1, %a2; cvt.pack.sat.s16.s32 %d1, %a0, %a1;",      \
      int32_t x = S32(a[0]) < 0     ? 0                                                            \
                  : S32(a[0]) > 255 ? 255                                                          \
                                    : S32(a[0]);                                                   \
      int32_t y = S32(a[1]) < 0     ? 0                                                            \
                  : S32(a[1]) > 255 ? 255                                                          \
                                    : S32(a[1]);                                                   \
      d[0] = a[2] << 16 | (uint32_t)x << 8 | (uint32_t)y; x = S32(a[0]) < -32768  ? -32768         \
                                                              : S32(a[0]) > 32767 ? 32767          \
                                                                                  : S32(a[0]);     \
      y = S32(a[1]) < -32768  ? -32768                                                             \
          : S32(a[1]) > 32767 ? 32767                                                              \
                              : S32(a[1]);                                                         \
      d[1] = pair((uint32_t)y, (uint32_t)x))                                                       \
    X(k28, "cvt.rn.satfinite.e2m3x2.f32 %h4, %a0, %a1; cvt.u32.u16 %d0, %h4;" Z,                   \
      d[0] = mini(numfmt_float(a[0]), e2m3, 32, 32) << 8 | mini(numfmt_float(a[1]), e2m3, 32, 32)) \
    X(k29, "cvt.rn.satfinite.bf16x2.f32 %d0, %a0, %a1; cvt.rz.tf32.f32 %d1, %a0;",                 \
      float x = numfmt_float(a[0]);                                                                \
      float y = numfmt_float(a[1]); float most = numfmt_float(0x7f7f0000);                         \
      d[0] = pair(numfmt_bf16_encode(y > most    ? most                                            \
                                     : y < -most ? -most                                           \
                                                 : y),                                             \
                  numfmt_bf16_encode(x > most    ? most                                            \
                                     : x < -most ? -most                                           \
                                                 : x));                                            \
      d[1] = x != x ? 0x7fffffff : a[0] & ~0x1fffu)                                                \
    X(k30,                                                                                         \
      "cvt.rm.f16.s32 %h4, %a0; cvt.u32.u16 %d0, %h4; cvt.rp.bf16.u32 %h5, %a1; "                  \
      "cvt.u32.u16 %d1, %h5;",                                                                     \
      uint32_t c = numfmt_f16_encode((float)S32(a[0]));                                            \
      while (c == 0x7c00 || (double)f16(c) > S32(a[0])) c = c & 0x8000 ? c + 1 : c - 1;            \
      d[0] = S32(a[0]) < -65504 ? 0xfc00 : c; c = numfmt_bf16_encode((float)a[1]);                 \
      while ((double)bf16(c) < a[1]) c++; while (c > 0 && (double)bf16(c - 1) >= a[1]) c--;        \
      d[1] = c)                                                                                    \
    X(k31, X64 "cvt.sat.u32.s64 %d0, %x0; cvt.sat.u64.s64 %x2, %x1; cvt.u32.u64 %d1, %x2;",        \
      int64_t x = (int64_t)wide(a);                                                                \
      d[0] = x < 0            ? 0                                                                  \
             : x > UINT32_MAX ? UINT32_MAX                                                         \
                              : (uint32_t)x;                                                       \
      d[1] = (int64_t)wide(a + 2) < 0 ? 0 : a[2])                                                  \
    X(k32, "testp.normal.f32 %p1, %a0; selp.b32 %d0, 1, 0, %p1; copysign.f32 %d1, %a0, %a1;",      \
      d[0] = isnormal(numfmt_float(a[0]));                                                         \
      d[1] = (a[1] & 0x7fffffff) | (a[0] & 0x80000000u))                                           \
    X(k33,                                                                                         \
      X64 "fma.rz.f64 %x2, %x0, %x1, %x0; cvt.rz.f32.f64 %d0, %x2; cvt.rp.f16.bf16 %h4, %h0; "     \
          "cvt.u32.u16 %d1, %h4;",                                                                 \
      d[0] = toward_zero(wide(a), wide(a + 2)))                                                    \
    X(k34, X64 "cvt.rzi.s32.f64 %d0, %x0; cvt.rzi.u32.f64 %d1, %x1;", double x = number(wide(a));  \
      double y = number(wide(a + 2)); d[0] = (uint32_t)within(x, INT32_MIN, INT32_MAX);            \
      d[1] = (uint32_t)within(y, 0, UINT32_MAX))                                                   \
    X(k35,                                                                                         \
      X64 "cvt.rni.s16.f64 %h4, %x0; cvt.s32.s16 %d0, %h4; cvt.rni.u16.f64 %h5, %x1; "             \
          "cvt.u32.u16 %d1, %h5;",                                                                 \
      double x = nearbyint(number(wide(a)));                                                       \
      double y = nearbyint(number(wide(a + 2))); d[0] = (uint32_t)within(x, INT16_MIN, INT16_MAX); \
      d[1] = (uint32_t)within(y, 0, UINT16_MAX))                                                   \
    X(k36, "div.approx.f32 %d0, %a0, %a1; div.full.f32 %d1, %a0, %a1;",                            \
      float x = numfmt_float(a[0]);                                                                \
      float y = numfmt_float(a[1]); bool past = fabsf(y) > 0x1p126f && !isinf(y);                  \
      d[0] = past ? of_f(isinf(x) || x != x         ? NAN                                          \
                         : signbit(x) == signbit(y) ? 0.0f                                         \
                                                    : -0.0f)                                       \
                  : of_f(x / y);                                                                   \
      d[1] = of_f(x / y))

EXEC_CASES(CASES);

static const uint32_t edges[] = {
    0,          1,          2,          31,         32,         33,         0x7f,
    0x80,       0xffff,     0x8000,     0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe,
    0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00001, 0x00000001, 0x40b40000,
    0x00800000, 0x3c003c00, 0x12345678, 0x7e800000, 0xfe800001, 0x7f7fffff, 0x7f000000};

enum { EDGES = ARRAY_LEN(edges), THREADS = EDGES * EDGES, BLOCK = 98 };

START_TEST(rare_forms_do_what_the_manual_says)
{
    static uint32_t in[THREADS * IN], out[THREADS * OUT];
    char body[1024];
    ptx_bench b;

    snprintf(body, sizeof body, ".reg .b8 %%b<4>; mov.b32 {%%h0, %%h2}, 0; %s", cases[_i].ptx);
    char *ptx = ptx_bench_wrap(body, IN, OUT);
    for (uint32_t t = 0; t < THREADS; t++) {
        in[t * IN] = edges[t % EDGES];
        in[t * IN + 1] = edges[t / EDGES];
        in[t * IN + 2] = edges[(t * 7 + t / 5) % EDGES];
        in[t * IN + 3] = edges[(t * 11 + t / 3) % EDGES];
    }
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s: %s", cases[_i].ptx, b.error.message);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in);
    uint64_t d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){THREADS / BLOCK, 1, 1},
                                (uint32_t[]){BLOCK, 1, 1}, (void *[]){&d_in, &d_out}) == HONE_OK,
                  "%s: %s", cases[_i].ptx, b.error.message);
    ptx_bench_read(&b, d_out, out, sizeof out);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t want[OUT] = {0};
        cases[_i].reference(&in[t * IN], want);
        ck_assert_msg(memcmp(want, &out[t * OUT], sizeof want) == 0,
                      "%s\nof %x, %x, %x, %x: %x, %x; not %x, %x", cases[_i].ptx, in[t * IN],
                      in[t * IN + 1], in[t * IN + 2], in[t * IN + 3], out[t * OUT],
                      out[t * OUT + 1], want[0], want[1]);
    }
    ptx_bench_close(&b);
    free(ptx);
}
END_TEST

/* Vector and wide atomics, loads of 256 bits: one thread after another on the same place. */
START_TEST(wide_accesses_move_all_their_elements)
{
    static const char body[] =
        "setp.ne.u32 %p1, %r0, 0; mov.f32 %r3, 0f3F800000; mov.f32 %r4, 0f40000000;\n"
        "red.global.add.v2.f32 [%in], {%r3, %r4};\n"
        "atom.global.v4.f32.add {%r5, %r6, %r7, %r8}, [%in], {%r3, %r3, %r3, %r4};\n"
        ".reg .b128 %q<3>; mov.b64 %x3, 7; mov.b64 %x4, 9; mov.b128 %q0, {%x3, %x4};\n"
        "atom.global.exch.b128 %q1, [%in+16], %q0; mov.b128 {%x5, %x6}, %q1;\n"
        "mov.b64 %x7, 1; mov.b128 %q2, {%x7, %x7}; atom.global.cas.b128 %q1, [%in+16], %q0, %q2;\n"
        "ld.global.v8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%in];\n"
        "mov.b64 {%d8, %d9}, %x5; ld.global.b128 %q1, [%in+16]; mov.b128 {%x5, %x6}, %q1; "
        "cvt.u32.u64 %d10, %x6; mov.u32 %d11, %r5; st.global.b128 [%in], %q1; ld.global.u32 %d7, "
        "[%in];";
    uint32_t in[8] = {0, 0, 0, 0, 5, 6, 7, 8}, out[12];
    ptx_bench b;
    char *ptx = ptx_bench_wrap(body, 8, 12);

    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in);
    uint64_t d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){1, 1, 1},
                                (void *[]){&d_in, &d_out}) == HONE_OK,
                  "line %d: %s", b.fault.ptx_line, b.error.message);
    ptx_bench_read(&b, d_out, out, sizeof out);
    const float sums[] = {2, 3, 1, 2};
    ck_assert_mem_eq(out, sums, sizeof sums);
    ck_assert_uint_eq(out[4], 1);
    ck_assert_uint_eq(out[6], 1);
    ck_assert_uint_eq(out[7], 1); /* stored over the sums */
    ck_assert_uint_eq(out[8], 5);
    ck_assert_uint_eq(out[9], 6);
    ck_assert_uint_eq(out[10], 1);
    ck_assert_uint_eq(out[11], numfmt_bits(1));
    ptx_bench_close(&b);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_rare");

    tcase_add_loop_test(tests, rare_forms_do_what_the_manual_says, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, wide_accesses_move_all_their_elements);
    return suite_run("emulator/exec_rare", tests);
}
