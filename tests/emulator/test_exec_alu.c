/* test_exec_alu.c - integer, bit, predicate and float operations over products of edge values,
 * against C that is written from the PTX manual, not from the handlers. */
#include "tests/emulator/exec_cases.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/numfmt.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 4, OUT = 2 };

static uint32_t of_f(float f)
{
    return f != f ? 0x7fffffffu : numfmt_bits(f);
}
static uint64_t wide(const uint32_t *a)
{
    return (uint64_t)a[1] << 32 | a[0];
}
static void put(uint32_t *d, uint64_t v)
{
    d[0] = (uint32_t)v;
    d[1] = (uint32_t)(v >> 32);
}
static uint32_t field(uint32_t a, uint32_t at, uint32_t len, bool is_signed)
{
    uint32_t r = 0;
    uint32_t top = at + len - 1 > 31 ? 31 : at + len - 1;
    for (uint32_t n = 0; n < 32; n++) {
        uint32_t from = at + n;
        bool bit = n < len && from < 32 ? a >> from & 1 : is_signed && len > 0 && (a >> top & 1);
        r |= (uint32_t)bit << n;
    }
    return r;
}
static uint32_t inserted(uint32_t a, uint32_t b, uint32_t at, uint32_t len)
{
    for (uint32_t n = 0; n < len && at + n < 32; n++) {
        b = (b & ~(1u << (at + n))) | (n < 32 ? (a >> n & 1) << (at + n) : 0);
    }
    return b;
}
static uint32_t permuted(const uint32_t *a)
{
    uint8_t bytes[8];
    uint32_t r = 0;
    memcpy(bytes, a, 8);
    for (int n = 0; n < 4; n++) {
        uint32_t s = a[2] >> 4 * n & 15;
        uint8_t v = bytes[s & 7];
        r |= (uint32_t)(s & 8 ? (v > 127 ? 255 : 0) : v) << 8 * n;
    }
    return r;
}
static uint32_t truth(const uint32_t *a, uint32_t table)
{
    uint32_t r = 0;
    for (int n = 0; n < 32; n++) {
        uint32_t row = (a[0] >> n & 1) << 2 | (a[1] >> n & 1) << 1 | (a[2] >> n & 1);
        r |= (table >> row & 1) << n;
    }
    return r;
}
static uint32_t reversed(uint32_t a)
{
    uint32_t r = 0;
    for (int n = 0; n < 32; n++) {
        r |= (a >> n & 1) << (31 - n);
    }
    return r;
}
/* The larger by PTX: a NaN gives way, +0 is above -0. */
static uint32_t larger(uint32_t a, uint32_t b)
{
    float x = numfmt_float(a), y = numfmt_float(b);
    if (x != x || y != y) {
        return of_f(x != x ? y : x);
    }
    if (x == 0 && y == 0) {
        return signbit(x) ? b : a;
    }
    return x > y ? a : b;
}

#define S32(x) ((int32_t)(x))
#define S16(x) ((int16_t)(x))
#define X64    "mov.b64 %x0, {%a0, %a1}; mov.b64 %x1, {%a2, %a3}; "
#define Y64    " mov.b64 {%d0, %d1}, %x2;"
#define P32    " selp.b32 %d0, 1, 0, %p1; mov.u32 %d1, 0;"
#define Z      " mov.u32 %d1, 0;"
/* what C leaves undefined is left out by `a`'s choice: see divisor() */
#define CASES(X)                                                                                   \
    X(c01, "add.s32 %d0, %a0, %a1;" Z, d[0] = a[0] + a[1])                                         \
    X(c02, "sub.u32 %d0, %a0, %a1;" Z, d[0] = a[0] - a[1])                                         \
    X(c03, "mul.lo.s32 %d0, %a0, %a1;" Z, d[0] = (uint32_t)((uint64_t)a[0] * a[1]))                \
    X(c04, "mul.hi.s32 %d0, %a0, %a1;" Z, d[0] = (uint32_t)((int64_t)S32(a[0]) * S32(a[1]) >> 32)) \
    X(c05, "mul.hi.u32 %d0, %a0, %a1;" Z, d[0] = (uint32_t)((uint64_t)a[0] * a[1] >> 32))          \
    X(c06, "mad.lo.s32 %d0, %a0, %a1, %a2;" Z, d[0] = a[0] * a[1] + a[2])                          \
    X(c07, "mul.wide.s32 %x2, %a0, %a1;" Y64, put(d, (uint64_t)((int64_t)S32(a[0]) * S32(a[1]))))  \
    X(c08, "mul.wide.u32 %x2, %a0, %a1;" Y64, put(d, (uint64_t)a[0] * a[1]))                       \
    X(c09, X64 "mad.wide.s32 %x2, %a0, %a1, %x1;" Y64,                                             \
      put(d, (uint64_t)((int64_t)S32(a[0]) * S32(a[1])) + wide(a + 2)))                            \
    X(c10, X64 "add.s64 %x2, %x0, %x1;" Y64, put(d, wide(a) + wide(a + 2)))                        \
    X(c11, X64 "sub.s64 %x2, %x0, %x1;" Y64, put(d, wide(a) - wide(a + 2)))                        \
    X(c12, X64 "mul.lo.s64 %x2, %x0, %x1;" Y64, put(d, wide(a) * wide(a + 2)))                     \
    X(c13, X64 "mul.hi.u64 %x2, %x0, %x1;" Y64,                                                    \
      put(d, (uint64_t)((unsigned __int128)wide(a) * wide(a + 2) >> 64)))                          \
    X(c14, X64 "mul.hi.s64 %x2, %x0, %x1;" Y64,                                                    \
      put(d, (uint64_t)((__int128)(int64_t)wide(a) * (int64_t)wide(a + 2) >> 64)))                 \
    X(c15, "div.u32 %d0, %a0, %a1; rem.u32 %d1, %a0, %a1;", d[0] = a[1] ? a[0] / a[1] : ~0u;       \
      d[1] = a[1] ? a[0] % a[1] : a[0])                                                            \
    X(c16, "or.b32 %a1, %a1, 1; div.s32 %d0, %a0, %a1; rem.s32 %d1, %a0, %a1;",                    \
      d[0] = (uint32_t)((int64_t)S32(a[0]) / S32(a[1] | 1));                                       \
      d[1] = (uint32_t)((int64_t)S32(a[0]) % S32(a[1] | 1)))                                       \
    X(c17, X64 "or.b64 %x1, %x1, 1; div.u64 %x2, %x0, %x1;" Y64,                                   \
      put(d, wide(a) / (wide(a + 2) | 1)))                                                         \
    X(c18, X64 "or.b64 %x1, %x1, 2; rem.u64 %x2, %x0, %x1;" Y64,                                   \
      put(d, wide(a) % (wide(a + 2) | 2)))                                                         \
    X(c19, "min.s32 %d0, %a0, %a1; max.s32 %d1, %a0, %a1;",                                        \
      d[0] = S32(a[0]) < S32(a[1]) ? a[0] : a[1];                                                  \
      d[1] = S32(a[0]) < S32(a[1]) ? a[1] : a[0])                                                  \
    X(c20, "min.u32 %d0, %a0, %a1; max.u32 %d1, %a0, %a1;", d[0] = a[0] < a[1] ? a[0] : a[1];      \
      d[1] = a[0] < a[1] ? a[1] : a[0])                                                            \
    X(c21, "abs.s32 %d0, %a0; neg.s32 %d1, %a0;", d[0] = a[0] >> 31 ? ~a[0] + 1 : a[0];            \
      d[1] = ~a[0] + 1)                                                                            \
    X(c22, "and.b32 %d0, %a0, %a1; or.b32 %d1, %a0, %a1;", d[0] = a[0] & a[1]; d[1] = a[0] | a[1]) \
    X(c23, "xor.b32 %d0, %a0, %a1; not.b32 %d1, %a0;", d[0] = a[0] ^ a[1]; d[1] = ~a[0])           \
    X(c24, X64 "xor.b64 %x2, %x0, %x1; not.b64 %x2, %x2;" Y64, put(d, ~(wide(a) ^ wide(a + 2))))   \
    X(c25, "shl.b32 %d0, %a0, %a1; shr.u32 %d1, %a0, %a1;", d[0] = a[1] > 31 ? 0 : a[0] << a[1];   \
      d[1] = a[1] > 31 ? 0 : a[0] >> a[1])                                                         \
    X(c26, "shr.s32 %d0, %a0, %a1;" Z, d[0] = (uint32_t)(S32(a[0]) >> (a[1] > 31 ? 31 : a[1])))    \
    X(c27, X64 "shl.b64 %x2, %x0, %a2;" Y64, put(d, a[2] > 63 ? 0 : wide(a) << a[2]))              \
    X(c28, X64 "shr.u64 %x2, %x0, %a2;" Y64, put(d, a[2] > 63 ? 0 : wide(a) >> a[2]))              \
    X(c29, X64 "shr.s64 %x2, %x0, %a2;" Y64,                                                       \
      put(d, (uint64_t)((int64_t)wide(a) >> (a[2] > 63 ? 63 : a[2]))))                             \
    X(c30, "shf.l.wrap.b32 %d0, %a0, %a1, %a2; shf.r.wrap.b32 %d1, %a0, %a1, %a2;",                \
      uint32_t c = a[2] & 31;                                                                      \
      d[0] = c ? a[1] << c | a[0] >> (32 - c) : a[1];                                              \
      d[1] = c ? a[0] >> c | a[1] << (32 - c) : a[0])                                              \
    X(c31, "bfe.u32 %d0, %a0, %a1, %a2; bfe.s32 %d1, %a0, %a1, %a2;",                              \
      d[0] = field(a[0], a[1] & 255, a[2] & 255, false);                                           \
      d[1] = field(a[0], a[1] & 255, a[2] & 255, true))                                            \
    X(c32, "bfi.b32 %d0, %a0, %a1, %a2, %a3;" Z,                                                   \
      d[0] = inserted(a[0], a[1], a[2] & 255, a[3] & 255))                                         \
    X(c33, "prmt.b32 %d0, %a0, %a1, %a2;" Z, d[0] = permuted(a))                                   \
    X(c34, "lop3.b32 %d0, %a0, %a1, %a2, 0xE8; lop3.b32 %d1, %a0, %a1, %a2, 0x96;",                \
      d[0] = truth(a, 0xE8);                                                                       \
      d[1] = truth(a, 0x96))                                                                       \
    X(c35, "brev.b32 %d0, %a0; popc.b32 %d1, %a0;", d[0] = reversed(a[0]);                         \
      for (int n = 0; n < 32; n++) d[1] += a[0] >> n & 1)                                          \
    X(c36, "clz.b32 %d0, %a0;" Z, while (d[0] < 32 && !(a[0] >> (31 - d[0]) & 1)) d[0]++)          \
    X(c37,                                                                                         \
      "cvt.u16.u32 %h0, %a0; cvt.u16.u32 %h1, %a1; add.s16 %h2, %h0, %h1; sub.s16 %h3, %h0, %h1; " \
      "cvt.u32.u16 %d0, %h2; cvt.s32.s16 %d1, %h3;",                                               \
      d[0] = (uint16_t)(a[0] + a[1]);                                                              \
      d[1] = (uint32_t)(int32_t)S16(a[0] - a[1]))                                                  \
    X(c38,                                                                                         \
      "cvt.u16.u32 %h0, %a0; cvt.u16.u32 %h1, %a1; mul.lo.s16 %h2, %h0, %h1; cvt.u32.u16 %d0, "    \
      "%h2; "                                                                                      \
      "mul.wide.s16 %d1, %h0, %h1;",                                                               \
      d[0] = (uint16_t)((a[0] & 0xffff) * (a[1] & 0xffff));                                        \
      d[1] = (uint32_t)((int32_t)S16(a[0]) * S16(a[1])))                                           \
    X(c39, "setp.lt.s32 %p1, %a0, %a1;" P32, d[0] = S32(a[0]) < S32(a[1]))                         \
    X(c40, "setp.ge.u32 %p1, %a0, %a1;" P32, d[0] = a[0] >= a[1])                                  \
    X(c41, X64 "setp.gt.s64 %p1, %x0, %x1;" P32, d[0] = (int64_t)wide(a) > (int64_t)wide(a + 2))   \
    X(c42, X64 "setp.ls.u64 %p1, %x0, %x1;" P32, d[0] = wide(a) <= wide(a + 2))                    \
    X(c43,                                                                                         \
      "setp.eq.u32 %p0, %a2, %a3; setp.lt.and.s32 %p1|%p2, %a0, %a1, !%p0; "                       \
      "selp.b32 %d0, 1, 0, %p1; selp.b32 %d1, 1, 0, %p2;",                                         \
      d[0] = S32(a[0]) < S32(a[1]) && a[2] != a[3];                                                \
      d[1] = S32(a[0]) >= S32(a[1]) && a[2] != a[3])                                               \
    X(c44, "slct.b32.s32 %d0, %a0, %a1, %a2;" Z, d[0] = S32(a[2]) >= 0 ? a[0] : a[1])              \
    X(c45, "dp4a.s32.s32 %d0, %a0, %a1, %a2;" Z, d[0] = a[2];                                      \
      for (int n = 0; n < 32; n += 8) d[0] +=                                                      \
      (uint32_t)((int8_t)(a[0] >> n) * (int8_t)(a[1] >> n)))                                       \
    X(c46, "add.f32 %d0, %a0, %a1; sub.f32 %d1, %a0, %a1;",                                        \
      d[0] = of_f(numfmt_float(a[0]) + numfmt_float(a[1]));                                        \
      d[1] = of_f(numfmt_float(a[0]) - numfmt_float(a[1])))                                        \
    X(c47, "mul.rn.f32 %d0, %a0, %a1; div.rn.f32 %d1, %a0, %a1;",                                  \
      d[0] = of_f(numfmt_float(a[0]) * numfmt_float(a[1]));                                        \
      d[1] = of_f(numfmt_float(a[0]) / numfmt_float(a[1])))                                        \
    X(c48, "fma.rn.f32 %d0, %a0, %a1, %a2; max.f32 %d1, %a0, %a1;",                                \
      d[0] = of_f(fmaf(numfmt_float(a[0]), numfmt_float(a[1]), numfmt_float(a[2])));               \
      d[1] = larger(a[0], a[1]))                                                                   \
    X(c49, "min.f32 %d0, %a0, %a1; abs.f32 %d1, %a0;",                                             \
      d[0] = larger(a[0] ^ 1u << 31, a[1] ^ 1u << 31);                                             \
      d[0] = numfmt_float(d[0]) == numfmt_float(d[0]) ? d[0] ^ 1u << 31 : d[0];                    \
      d[1] = a[0] & ~(1u << 31))                                                                   \
    X(c50, "rcp.rn.f32 %d0, %a0; sqrt.rn.f32 %d1, %a0;", d[0] = of_f(1 / numfmt_float(a[0]));      \
      d[1] = of_f(sqrtf(numfmt_float(a[0]))))                                                      \
    X(c51, "setp.lt.f32 %p1, %a0, %a1;" P32, d[0] = numfmt_float(a[0]) < numfmt_float(a[1]))       \
    X(c52, "setp.geu.f32 %p1, %a0, %a1;" P32, d[0] = !(numfmt_float(a[0]) < numfmt_float(a[1])))   \
    X(c53, "setp.neu.f32 %p1, %a0, %a1;" P32, d[0] = numfmt_float(a[0]) != numfmt_float(a[1]))     \
    X(c54, "setp.ne.f32 %p1, %a0, %a1;" P32,                                                       \
      d[0] = numfmt_float(a[0]) < numfmt_float(a[1]) || numfmt_float(a[0]) > numfmt_float(a[1]))   \
    X(c55, "add.ftz.f32 %d0, %a0, %a1;" Z,                                                         \
      float x = fabsf(numfmt_float(a[0])) < 0x1p-126f ? copysignf(0, numfmt_float(a[0]))           \
                                                      : numfmt_float(a[0]);                        \
      float y = fabsf(numfmt_float(a[1])) < 0x1p-126f ? copysignf(0, numfmt_float(a[1]))           \
                                                      : numfmt_float(a[1]);                        \
      float s = x + y; d[0] = of_f(fabsf(s) < 0x1p-126f ? copysignf(0, s) : s))                    \
    X(c56, "fma.rn.sat.f32 %d0, %a0, %a1, %a2;" Z,                                                 \
      float s = fmaf(numfmt_float(a[0]), numfmt_float(a[1]), numfmt_float(a[2]));                  \
      d[0] = of_f(s > 0 ? (s < 1 ? s : 1) : 0))                                                    \
    X(c57, "mov.b32 {%h0, %h1}, %a0; mov.b32 %d0, {%h1, %h0};" Z, d[0] = a[0] << 16 | a[0] >> 16)

EXEC_CASES(CASES);

static const uint32_t edges[] = {
    0,          1,          2,          31,         32,         33,         0x7f,       0x80,
    0xffff,     0x8000,     0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000,
    0x7f800000, 0xff800000, 0x7fc00001, 0x00000001, 0x807fffff, 0x00800000, 0x4b7fffff, 0x12345678};

enum { EDGES = ARRAY_LEN(edges), THREADS = EDGES * EDGES, BLOCK = 96 };
_Static_assert(THREADS % BLOCK == 0, "whole blocks");

/* Half of the lanes, in a pattern, sit the operation out: their results must stay what they were.
 */
static char *masked(const char *body)
{
    char *text = malloc(strlen(body) + 400);
    sprintf(text,
            "mov.u32 %%d0, 0xdead; mov.u32 %%d1, 0xbeef; and.b32 %%r3, %%r0, 5; setp.eq.u32 %%p9, "
            "%%r3, 5;\n"
            "@%%p9 bra END;\n%s\nEND:",
            body);
    return text;
}

static void run_case(size_t n, bool mask)
{
    static uint32_t in[THREADS * IN], out[THREADS * OUT];
    ptx_bench b;
    char *body = mask ? masked(cases[n].ptx) : NULL;
    char *ptx = ptx_bench_wrap(mask ? body : cases[n].ptx, IN, OUT);

    for (uint32_t t = 0; t < THREADS; t++) {
        in[t * IN] = edges[t % EDGES];
        in[t * IN + 1] = edges[t / EDGES];
        in[t * IN + 2] = edges[(t * 7 + t / 5) % EDGES];
        in[t * IN + 3] = edges[(t * 11 + t / 3) % EDGES];
    }
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s: %s", cases[n].ptx, b.error.message);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in),
             d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    hone_status status = ptx_bench_run(&b, "k", (uint32_t[]){THREADS / BLOCK, 1, 1},
                                       (uint32_t[]){BLOCK, 1, 1}, (void *[]){&d_in, &d_out});
    ck_assert_msg(status == HONE_OK, "%s: %s", cases[n].ptx, b.error.message);
    ptx_bench_read(&b, d_out, out, sizeof out);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t want[OUT] = {0, 0}, a[IN];
        memcpy(a, in + t * IN, sizeof a);
        cases[n].reference(a, want);
        if (mask && (t & 5) == 5) {
            want[0] = 0xdead;
            want[1] = 0xbeef;
        }
        ck_assert_msg(memcmp(want, out + t * OUT, sizeof want) == 0,
                      "%s of %08x %08x %08x %08x: %08x %08x, not %08x %08x", cases[n].ptx, a[0],
                      a[1], a[2], a[3], out[t * OUT], out[t * OUT + 1], want[0], want[1]);
    }
    ptx_bench_close(&b);
    free(ptx);
    free(body);
}

START_TEST(operation_agrees_with_c_on_edge_values)
{
    run_case((size_t)_i, false);
}
END_TEST

START_TEST(operation_leaves_inactive_lanes_alone)
{
    run_case((size_t)_i, true);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_alu");

    tcase_add_loop_test(tests, operation_agrees_with_c_on_edge_values, 0, (int)ARRAY_LEN(cases));
    tcase_add_loop_test(tests, operation_leaves_inactive_lanes_alone, 0, (int)ARRAY_LEN(cases));
    return suite_run("emulator/exec_alu", tests);
}
