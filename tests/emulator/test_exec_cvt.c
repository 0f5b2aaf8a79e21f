/* test_exec_cvt.c - conversions over every 16-bit code and every upper half of an fp32 number,
 * against core/numfmt and C. */
#include "tests/emulator/ptx_bench.h"
#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CODES = 65536, BLOCK = 256 };

static uint32_t of_f(float f)
{
    return f != f ? 0x7fffffffu : numfmt_bits(f);
}
static int64_t clamp(double x, double low, double high)
{
    return x != x ? 0 : x <= low ? (int64_t)low : x >= high ? (int64_t)high : (int64_t)x;
}
static float half_up(uint32_t ue8m0)
{
    return numfmt_ue8m0_decode((uint8_t)ue8m0);
}
/* The nearest bf16 below or equal in magnitude. */
static uint32_t bf16_toward_zero(float x)
{
    uint32_t u = of_f(x);
    return x != x ? 0x7fff : u >> 16;
}

/* Inputs: a, the upper half n of an fp32 number, with a lower half that differs from thread to
 * thread; c, another such number; n itself in %h0 (its value is `code`). */
#define CASES(X)                                                                                   \
    X(f32_f16, "cvt.f32.f16 %d0, %h0;", of_f(numfmt_f16_decode((uint16_t)code)))                   \
    X(f32_bf16, "cvt.f32.bf16 %d0, %h0;", code << 16)                                              \
    X(f16_f32, "cvt.rn.f16.f32 %h1, %a0; cvt.u32.u16 %d0, %h1;", numfmt_f16_encode(a))             \
    X(bf16_f32, "cvt.rn.bf16.f32 %h1, %a0; cvt.u32.u16 %d0, %h1;", numfmt_bf16_encode(a))          \
    X(bf16_rz, "cvt.rz.bf16.f32 %h1, %a0; cvt.u32.u16 %d0, %h1;", bf16_toward_zero(a))             \
    X(bf16x2, "cvt.rn.bf16x2.f32 %d0, %a0, %a1;",                                                  \
      (uint32_t)numfmt_bf16_encode(a) << 16 | numfmt_bf16_encode(c))                               \
    X(f16x2, "cvt.rn.f16x2.f32 %d0, %a0, %a1;",                                                    \
      (uint32_t)numfmt_f16_encode(a) << 16 | numfmt_f16_encode(c))                                 \
    X(e4m3x2, "cvt.rn.satfinite.e4m3x2.f32 %h1, %a0, %a1; cvt.u32.u16 %d0, %h1;",                  \
      (uint32_t)numfmt_e4m3_encode(a) << 8 | numfmt_e4m3_encode(c))                                \
    X(e5m2x2, "cvt.rn.satfinite.e5m2x2.f32 %h1, %a0, %a1; cvt.u32.u16 %d0, %h1;",                  \
      (uint32_t)numfmt_e5m2_encode(a) << 8 | numfmt_e5m2_encode(c))                                \
    X(e4m3x2_f16x2,                                                                                \
      "mov.b32 %r5, {%h0, %h0}; cvt.rn.satfinite.e4m3x2.f16x2 %h1, %r5; cvt.u32.u16 %d0, %h1;",    \
      0x101u * numfmt_e4m3_encode(numfmt_f16_decode((uint16_t)code)))                              \
    X(f16x2_e4m3x2, "cvt.rn.f16x2.e4m3x2 %d0, %h0;",                                               \
      (uint32_t)numfmt_f16_encode(numfmt_e4m3_decode((uint8_t)(code >> 8))) << 16 |                \
          numfmt_f16_encode(numfmt_e4m3_decode((uint8_t)code)))                                    \
    X(f16x2_e5m2x2, "cvt.rn.f16x2.e5m2x2 %d0, %h0;",                                               \
      (uint32_t)numfmt_f16_encode(numfmt_e5m2_decode((uint8_t)(code >> 8))) << 16 |                \
          numfmt_f16_encode(numfmt_e5m2_decode((uint8_t)code)))                                    \
    X(bf16x2_ue8m0x2, "cvt.rn.bf16x2.ue8m0x2 %d0, %h0;",                                           \
      (uint32_t)numfmt_bf16_encode(half_up(code >> 8)) << 16 |                                     \
          numfmt_bf16_encode(half_up(code & 255)))                                                 \
    X(s32_rz, "cvt.rzi.s32.f32 %d0, %a0;", (uint32_t)clamp(trunc((double)a), -0x1p31, 0x1p31 - 1)) \
    X(s32_rn, "cvt.rni.s32.f32 %d0, %a0;",                                                         \
      (uint32_t)clamp(nearbyint((double)a), -0x1p31, 0x1p31 - 1))                                  \
    X(u32_rm, "cvt.rmi.u32.f32 %d0, %a0;", (uint32_t)clamp(floor((double)a), 0, 0x1p32 - 1))       \
    X(s16_rp, "cvt.rpi.s16.f32 %h1, %a0; cvt.s32.s16 %d0, %h1;",                                   \
      (uint32_t)clamp(ceil((double)a), -32768, 32767))                                             \
    X(f32_rpi, "cvt.rpi.f32.f32 %d0, %a0;", of_f(ceilf(a)))                                        \
    X(f32_sat, "cvt.sat.f32.f32 %d0, %a0;", of_f(a > 0 ? fminf(a, 1) : 0))                         \
    X(f32_s32, "cvt.rn.f32.s32 %d0, %a0;", of_f((float)(int32_t)of_bits))                          \
    X(f32_u32, "cvt.rn.f32.u32 %d0, %a0;", of_f((float)of_bits))                                   \
    X(f32_s8, "cvt.rn.f32.s8 %d0, %h0;", of_f((float)(int8_t)code))                                \
    X(f64_and_back, "cvt.f64.f32 %x1, %a0; cvt.rn.f32.f64 %d0, %x1;", of_f(a))                     \
    X(s8, "cvt.s32.s8 %d0, %h0;", (uint32_t)(int32_t)(int8_t)code)                                 \
    X(sat_u8, "cvt.sat.u8.s32 %r5, %a0; mov.u32 %d0, %r5;",                                        \
      (int32_t)of_bits<0 ? 0 : of_bits> 255 ? 255 : of_bits)                                       \
    X(add_f16, "cvt.rn.f16.f32 %h1, %a0; add.rn.f16 %h2, %h0, %h1; cvt.u32.u16 %d0, %h2;",         \
      numfmt_f16_encode(numfmt_f16_decode((uint16_t)code) +                                        \
                        numfmt_f16_decode(numfmt_f16_encode(a))))                                  \
    X(mul_bf16x2,                                                                                  \
      "cvt.rn.bf16x2.f32 %r5, %a0, %a1; mov.b32 %r6, {%h0, %h0}; mul.bf16x2 %d0, %r5, %r6;",       \
      (uint32_t)numfmt_bf16_encode(numfmt_bf16_decode(numfmt_bf16_encode(a)) *                     \
                                   numfmt_float(code << 16))                                       \
              << 16 |                                                                              \
          numfmt_bf16_encode(numfmt_bf16_decode(numfmt_bf16_encode(c)) *                           \
                             numfmt_float(code << 16)))

#define FUNCTION(id, ptx, expression)                                                              \
    static uint32_t id(uint32_t code, float a, float c, uint32_t of_bits)                          \
    {                                                                                              \
        (void)code, (void)a, (void)c, (void)of_bits;                                               \
        return (uint32_t)(expression);                                                             \
    }
CASES(FUNCTION)

static const struct {
    const char *ptx;
    uint32_t (*reference)(uint32_t code, float a, float c, uint32_t of_bits);
} cases[] = {
#define ROW(id, ptx, expression) {ptx, id},
    CASES(ROW)};

START_TEST(conversion_agrees_for_every_code)
{
    static uint32_t in[CODES * 2], out[CODES];
    char body[512] = "shr.u32 %r4, %a0, 16; cvt.u16.u32 %h0, %r4;\n";
    ptx_bench b;

    for (uint32_t n = 0; n < CODES; n++) {
        in[2 * n] = n << 16 | (n % 5 == 0 ? 0 : n % 5 == 1 ? 0x8000 : (n * 40503u) & 0xffff);
        in[2 * n + 1] = (n * 2654435761u) ^ 0x3c000000u;
    }
    strcat(body, cases[_i].ptx);
    char *ptx = ptx_bench_wrap(body, 2, 1);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s: %s", cases[_i].ptx, b.error.message);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in),
             d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_int_eq(ptx_bench_run(&b, "k", (uint32_t[]){CODES / BLOCK, 1, 1},
                                   (uint32_t[]){BLOCK, 1, 1}, (void *[]){&d_in, &d_out}),
                     HONE_OK);
    ptx_bench_read(&b, d_out, out, sizeof out);
    for (uint32_t n = 0; n < CODES; n++) {
        uint32_t want =
            cases[_i].reference(n, numfmt_float(in[2 * n]), numfmt_float(in[2 * n + 1]), in[2 * n]);
        ck_assert_msg(out[n] == want, "%s of %08x %08x: %08x, not %08x", cases[_i].ptx, in[2 * n],
                      in[2 * n + 1], out[n], want);
    }
    ptx_bench_close(&b);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_cvt");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, conversion_agrees_for_every_code, 0, (int)ARRAY_LEN(cases));
    return suite_run("emulator/exec_cvt", tests);
}
