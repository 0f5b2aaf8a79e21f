/* test_exec_matrix.c - fragments: every shape of mma.sync, stmatrix, movmatrix, ldmatrix of narrow
 * elements, against layouts that are written here from the figures, one lane at a time. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 24 };
static uint32_t in[32 * WORDS], out[32 * WORDS];

static void run(ptx_bench *b, const char *body, uint32_t in_words, uint32_t out_words)
{
    char *ptx = ptx_bench_wrap(body, in_words, out_words);

    ptx_bench_open(b);
    ck_assert_msg(ptx_bench_load(b, ptx) == HONE_OK, "%s\n%s", b->error.message, ptx);
    uint64_t d_in = ptx_bench_buffer(b, in, sizeof in),
             d_out = ptx_bench_buffer(b, NULL, sizeof out);
    hone_status status = ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                       (void *[]){&d_in, &d_out});
    ck_assert_msg(status == HONE_OK, "line %d: %s", b->fault.ptx_line, b->error.message);
    ptx_bench_read(b, d_out, out, sizeof out);
    ptx_bench_close(b);
    free(ptx);
}

/* What an element of a shape is. `halves`: results of f16. */
typedef struct shape {
    const char *form;
    uint32_t m, k, bits;
    double (*value)(uint32_t code);
    enum { FLOATS, INTEGERS, HALVES } results;
} shape;

static double value_f16(uint32_t code)
{
    return numfmt_f16_decode((uint16_t)code);
}
static double value_bf16(uint32_t code)
{
    return numfmt_bf16_decode((uint16_t)code);
}
static double value_e4m3(uint32_t code)
{
    return numfmt_e4m3_decode((uint8_t)code);
}
static double value_e5m2(uint32_t code)
{
    return numfmt_e5m2_decode((uint8_t)code);
}
static double value_tf32(uint32_t code)
{
    return numfmt_float(code & ~0x1fffu);
}
static double value_s8(uint32_t code)
{
    return (int8_t)code;
}
static double value_u8(uint32_t code)
{
    return code;
}
/* In a byte of kind::f8f6f4. */
static double value_e2m1(uint32_t code)
{
    static const double values[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    return (code >> 5 & 1 ? -1 : 1) * values[code >> 2 & 7];
}
static double value_e3m2(uint32_t code)
{
    uint32_t exponent = code >> 2 & 7, fraction = code & 3;
    double magnitude = exponent ? ldexp(4 + fraction, (int)exponent - 5) : ldexp(fraction, -4);
    return code >> 5 & 1 ? -magnitude : magnitude;
}
static double value_e2m3(uint32_t code)
{
    uint32_t exponent = code >> 3 & 3, fraction = code & 7;
    double magnitude = exponent ? ldexp(8 + fraction, (int)exponent - 4) : ldexp(fraction, -3);
    return code >> 5 & 1 ? -magnitude : magnitude;
}

static const shape shapes[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 16, value_f16, FLOATS},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 16, value_f16, FLOATS},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 16, value_f16, HALVES},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 16, value_f16, HALVES},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 16, value_bf16, FLOATS},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 16, value_bf16, FLOATS},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, 32, value_tf32, FLOATS},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 32, value_tf32, FLOATS},
    {"m16n8k16.row.col.f32.e4m3.e4m3.f32", 16, 16, 8, value_e4m3, FLOATS},
    {"m16n8k32.row.col.f32.e5m2.e5m2.f32", 16, 32, 8, value_e5m2, FLOATS},
    {"m16n8k16.row.col.f16.e4m3.e4m3.f16", 16, 16, 8, value_e4m3, HALVES},
    {"m16n8k32.row.col.f16.e4m3.e4m3.f16", 16, 32, 8, value_e4m3, HALVES},
    {"m8n8k16.row.col.s32.s8.s8.s32", 8, 16, 8, value_s8, INTEGERS},
    {"m16n8k16.row.col.s32.u8.u8.s32", 16, 16, 8, value_u8, INTEGERS},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 32, 8, value_s8, INTEGERS},
    {"kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e2m1.f32", 16, 32, 8, value_e2m1, FLOATS},
    {"kind::f8f6f4.m16n8k32.row.col.f32.e3m2.e3m2.f32", 16, 32, 8, value_e3m2, FLOATS},
    {"kind::f8f6f4.m16n8k32.row.col.f32.e2m3.e2m3.f32", 16, 32, 8, value_e2m3, FLOATS},
    {"kind::f8f6f4.m16n8k32.row.col.f16.e2m1.e2m1.f16", 16, 32, 8, value_e2m1, HALVES},
};

/* Small whole numbers and simple fractions, so that sums are exact in every mode. */
static uint32_t code_of(const shape *s, uint64_t *state)
{
    uint32_t small = (uint32_t)(random_next(state) % 5);
    float x = (float)((int)small - 2);

    if (s->value == value_f16) {
        return numfmt_f16_encode(x);
    }
    if (s->value == value_bf16) {
        return numfmt_bf16_encode(x);
    }
    if (s->value == value_tf32) {
        return numfmt_bits(x) | 0x1000; /* bits that the unit does not read */
    }
    if (s->value == value_e4m3) {
        return numfmt_e4m3_encode(x);
    }
    if (s->value == value_e5m2) {
        return numfmt_e5m2_encode(x);
    }
    return (uint32_t)random_next(state) & (s->value == value_e2m1   ? 0x3c
                                           : s->results == INTEGERS ? 0xff
                                                                    : 0x3f);
}

/* Registers of a fragment with `rows` rows: element (row, k) by the PTX figures. */
static uint32_t register_of(const shape *s, uint32_t rows, uint32_t row, uint32_t k, uint32_t *lane,
                            uint32_t *shift)
{
    uint32_t per = 32 / s->bits, quarter = 4 * per; /* elements of k that four lanes hold */

    *lane = row % 8 * 4 + k % quarter / per;
    *shift = k % per * s->bits;
    return k / quarter * (rows / 8) + row / 8;
}

static uint32_t a_codes[16][32], b_codes[8][32];
static double c_values[16][8];

static void fill(const shape *s, uint32_t a_len, uint32_t b_len, uint64_t *state)
{
    uint32_t lane, shift;

    memset(in, 0, sizeof in);
    for (uint32_t k = 0; k < s->k; k++) {
        for (uint32_t row = 0; row < s->m; row++) {
            a_codes[row][k] = code_of(s, state);
            uint32_t r = register_of(s, s->m, row, k, &lane, &shift);
            in[lane * WORDS + r] |= a_codes[row][k] << shift;
        }
        for (uint32_t n = 0; n < 8; n++) {
            b_codes[n][k] = code_of(s, state);
            uint32_t r = register_of(s, 8, n, k, &lane, &shift);
            in[lane * WORDS + a_len + r] |= b_codes[n][k] << shift;
        }
    }
    for (uint32_t row = 0; row < s->m; row++) {
        for (uint32_t n = 0; n < 8; n++) {
            int c = (int)(random_next(state) % 9) - 4;
            uint32_t at = row % 8 * 4 + n / 2, r = row / 8 * 2 + n % 2;
            c_values[row][n] = c;
            uint32_t *words = &in[at * WORDS + a_len + b_len];
            if (s->results == HALVES) {
                words[row / 8] |= (uint32_t)numfmt_f16_encode((float)c) << 16 * (n % 2);
            } else {
                words[r] = s->results == INTEGERS ? (uint32_t)c : numfmt_bits((float)c);
            }
        }
    }
}

static double result_of(const shape *s, uint32_t row, uint32_t n)
{
    const uint32_t *words = &out[(row % 8 * 4 + n / 2) * WORDS];
    uint32_t word = words[row / 8 * 2 + n % 2];

    if (s->results == HALVES) {
        return numfmt_f16_decode((uint16_t)(words[row / 8] >> 16 * (n % 2)));
    }
    return s->results == INTEGERS ? (double)(int32_t)word : (double)numfmt_float(word);
}

START_TEST(products_of_every_shape_are_exact_on_small_numbers)
{
    const shape *s = &shapes[_i];
    uint32_t a_len = s->m * s->k * s->bits / 1024, b_len = s->k * s->bits / 128;
    uint32_t d_len = s->results == HALVES ? 2 : s->m / 4;
    char body[512];
    uint64_t state = 77 + (uint64_t)_i;
    ptx_bench b;

    fill(s, a_len, b_len, &state);
    size_t used = (size_t)sprintf(body, "mma.sync.aligned.%s ", s->form);
    used = ptx_bench_list(body, used, "d", 0, d_len);
    used += (size_t)sprintf(body + used, ", ");
    used = ptx_bench_list(body, used, "a", 0, a_len);
    used += (size_t)sprintf(body + used, ", ");
    used = ptx_bench_list(body, used, "a", a_len, b_len);
    used += (size_t)sprintf(body + used, ", ");
    used = ptx_bench_list(body, used, "a", a_len + b_len, d_len);
    sprintf(body + used, ";");
    for (uint32_t n = d_len; n < WORDS; n++) { /* rows of equal length in and out */
        used = strlen(body);
        sprintf(body + used, "mov.u32 %%d%u, 0;", n);
    }
    run(&b, body, WORDS, WORDS);
    for (uint32_t row = 0; row < s->m; row++) {
        for (uint32_t n = 0; n < 8; n++) {
            double sum = c_values[row][n];
            for (uint32_t k = 0; k < s->k; k++) {
                sum += s->value(a_codes[row][k]) * s->value(b_codes[n][k]);
            }
            if (s->results == HALVES) {
                sum = numfmt_f16_decode(numfmt_f16_encode((float)sum));
            }
            ck_assert_msg(result_of(s, row, n) == sum, "%s (%u, %u): %g, not %g", s->form, row, n,
                          result_of(s, row, n), sum);
        }
    }
}
END_TEST

/* kind, scales along k, the scales' type, bits of an element, k */
static const struct {
    const char *form;
    uint32_t scales, k;
    bool ue4m3;
} scaled[] = {
    {"kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0", 1, 32, 0},
    {"kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 2, 64, 0},
    {"kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 2, 64, 0},
    {"kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0", 4, 64, 0},
    {"kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3", 4, 64, 1},
};

static double scale_value(uint32_t code, bool ue4m3)
{
    return ue4m3 ? numfmt_ue4m3_decode((uint8_t)code) : numfmt_ue8m0_decode((uint8_t)code);
}

static double narrow_at(uint32_t first, uint32_t rows, uint32_t row, uint32_t k, bool nibbles)
{
    static const double values[] = {0, .5, 1, 1.5, 2, 3, 4, 6};
    uint32_t per = nibbles ? 8 : 4, bits = 32 / per;
    uint32_t r = k / (4 * per) * (rows / 8) + row / 8, lane = row % 8 * 4 + k % (4 * per) / per;
    uint32_t code = in[lane * WORDS + first + r] >> (k % per * bits) & ((1u << bits) - 1);

    return nibbles ? (code & 8 ? -1 : 1) * values[code & 7] : value_e4m3(code);
}

/* Every selector that a form has: bytes of the scale registers, threads of each four. */
START_TEST(scales_come_from_the_selected_bytes_and_threads)
{
    uint32_t scales = scaled[_i].scales, k_len = scaled[_i].k;
    bool nibbles = k_len == 64;
    char body[2048];
    uint64_t state = 5 + (uint64_t)_i;
    ptx_bench b;

    for (uint32_t pick = 0; pick < 32; pick++) {
        uint32_t byte_a = pick % 4 / scales * scales, byte_b = pick / 4 % 4 / scales * scales;
        uint32_t thread_a = pick & 1, thread_b = pick >> 3 & 3;
        for (uint32_t n = 0; n < 32 * WORDS; n++) {
            in[n] = (uint32_t)random_next(&state) & (nibbles ? 0xbbbbbbbb : 0xb7b7b7b7);
            if (n % WORDS >= 10) { /* scales near one, so that fp32 holds the sums exactly */
                in[n] = scaled[_i].ue4m3 ? 0x38383038 + (in[n] & 0x08080808)
                                         : 0x7f7f7e7f + (in[n] & 0x01010101);
            }
        }
        size_t used = (size_t)sprintf(
            body,
            "mov.u32 %%d0, 0; mov.u32 %%d1, 0; mov.u32 %%d2, 0; mov.u32 %%d3, 0; mov.u16 %%h0, %u; "
            "mov.u16 %%h1, %u;"
            "mma.sync.aligned.%s {%%d0,%%d1,%%d2,%%d3}, {%%a0,%%a1,%%a2,%%a3}, {%%a4,%%a5}, "
            "{%%d0,%%d1,%%d2,%%d3}, {%%a10}, {%%h0, %%h1}, {%%a11}, {%u, %u};",
            byte_a, thread_a, scaled[_i].form, byte_b, thread_b);
        for (uint32_t n = 4; n < WORDS; n++) {
            used += (size_t)sprintf(body + used, "mov.u32 %%d%u, 0;", n);
        }
        run(&b, body, WORDS, WORDS);
        for (uint32_t e = 0; e < 128; e++) {
            uint32_t row = e / 8, n = e % 8;
            const uint8_t *sa =
                (const uint8_t *)&in[(row % 8 * 4 + 2 * thread_a + row / 8) * WORDS + 10];
            const uint8_t *sb = (const uint8_t *)&in[(n * 4 + thread_b) * WORDS + 11];
            double sum = 0;
            for (uint32_t k = 0; k < k_len; k++) {
                uint32_t block = k / (k_len / scales);
                sum += narrow_at(0, 16, row, k, nibbles) * narrow_at(4, 8, n, k, nibbles) *
                       scale_value(sa[byte_a + block], scaled[_i].ue4m3) *
                       scale_value(sb[byte_b + block], scaled[_i].ue4m3);
            }
            double got = numfmt_float(out[(row % 8 * 4 + n / 2) * WORDS + row / 8 * 2 + n % 2]);
            ck_assert_msg(fabs(got - sum) <= fabs(sum) * 1e-6, "%u (%u, %u): %.9g, not %.9g", pick,
                          row, n, got, sum);
        }
    }
}
END_TEST

START_TEST(a_selector_that_selects_nothing_is_refused)
{
    char body[512], *ptx = NULL;
    ptx_bench b;

    sprintf(body,
            "mma.sync.aligned.%s {%%d0,%%d1,%%d2,%%d3}, {%%a0,%%a1,%%a2,%%a3}, {%%a4,%%a5}, "
            "{%%a6,%%a7,%%a8,%%a9},\n%%a10, {1, 0}, %%a11, {0, 0};",
            scaled[1].form);
    ptx = ptx_bench_wrap(body, WORDS, 4);
    ptx_bench_open(&b);
    ck_assert_int_eq(ptx_bench_load(&b, ptx), HONE_OK);
    uint64_t d_in = ptx_bench_buffer(&b, in, sizeof in),
             d_out = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_int_ne(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                   (void *[]){&d_in, &d_out}),
                     HONE_OK);
    ck_assert_str_eq(b.fault.kind, "precondition");
    ck_assert_str_eq(b.fault.message,
                     "mma's scale selector {1, 0}: the byte is a multiple of 2 below "
                     "4, the thread below 2");
    ptx_bench_close(&b);
    free(ptx);
}
END_TEST

/* Element e of matrix m holds 64 m + e; stmatrix puts it at half 64 m + e of shared memory, or at
 * the place of the transposed one. */
START_TEST(stmatrix_is_ldmatrix_the_other_way)
{
    static const uint32_t counts[] = {1, 2, 4};
    uint32_t count = counts[_i / 2];
    bool transposed = _i % 2;
    char body[1024];
    ptx_bench b;

    for (uint32_t thread = 0; thread < 32; thread++) {
        for (uint32_t m = 0; m < 4; m++) {
            uint32_t e = thread / 4 * 8 + thread % 4 * 2;
            in[thread * 4 + m] = (m * 64 + e + 1) << 16 | (m * 64 + e);
        }
    }
    size_t used = (size_t)sprintf(
        body,
        ".shared .align 16 .b8 s[512]; mov.u32 %%r1, s; shl.b32 %%r2, %%r0, 4; add.u32 %%r1, "
        "%%r1, %%r2;\nst.shared.v4.u32 [%%r1], {-1, -1, -1, -1}; bar.sync 0;\n"
        "stmatrix.sync.aligned.m8n8.x%u%s.shared.b16 [%%r1], ",
        count, transposed ? ".trans" : "");
    used = ptx_bench_list(body, used, "a", 0, count);
    sprintf(body + used, "; bar.sync 0;\nld.shared.v4.u32 {%%d0, %%d1, %%d2, %%d3}, [%%r1];");
    run(&b, body, 4, 4);
    const uint16_t *stored = (const uint16_t *)out;
    for (uint32_t m = 0; m < 4; m++) {
        for (uint32_t e = 0; e < 64; e++) {
            uint32_t at = transposed ? e % 8 * 8 + e / 8 : e;
            ck_assert_uint_eq(stored[m * 64 + at], m < count ? m * 64 + e : 0xffff);
        }
    }
}
END_TEST

START_TEST(movmatrix_transposes)
{
    ptx_bench b;

    for (uint32_t thread = 0; thread < 32; thread++) {
        uint32_t e = thread / 4 * 8 + thread % 4 * 2;
        in[thread] = (e + 1) << 16 | e;
    }
    run(&b, "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;", 1, 1);
    for (uint32_t thread = 0; thread < 32; thread++) {
        uint32_t row = thread / 4, column = thread % 4 * 2;
        ck_assert_uint_eq(out[thread], (column + 1) * 8 << 16 | (row << 16) | (column * 8 + row));
    }
}
END_TEST

START_TEST(ldmatrix_widens_elements_of_four_and_six_bits)
{
    uint32_t width = _i == 0 ? 4 : 6;
    uint8_t rows[32][16] = {{0}}, element[32][16];
    uint64_t state = 3;
    char body[512];
    ptx_bench b;

    for (uint32_t row = 0; row < 32; row++) {
        for (uint32_t e = 0; e < 16; e++) {
            element[row][e] = (uint8_t)(random_next(&state) & ((1u << width) - 1));
            for (uint32_t bit = 0; bit < width; bit++) {
                uint32_t at = e * width + bit;
                rows[row][at / 8] |= (uint8_t)((element[row][e] >> bit & 1) << at % 8);
            }
        }
    }
    memcpy(in, rows, sizeof rows);
    sprintf(body,
            ".shared .align 16 .b8 s[512]; mov.u32 %%r1, s; shl.b32 %%r2, %%r0, 4; add.u32 %%r1, "
            "%%r1, %%r2;\nst.shared.v4.u32 [%%r1], {%%a0, %%a1, %%a2, %%a3}; bar.sync 0;\n"
            "ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.%s {%%d0, %%d1, %%d2, %%d3}, [%%r1];",
            width == 4 ? "b4x16_p64" : "b6x16_p32");
    run(&b, body, 4, 4);
    for (uint32_t m = 0; m < 4; m++) {
        for (uint32_t e = 0; e < 128; e++) {
            uint32_t row = e / 16, column = e % 16;
            uint32_t word = out[(row * 4 + column / 4) * 4 + m];
            ck_assert_uint_eq(word >> 8 * (column % 4) & 255, element[m * 8 + row][column]);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_matrix");

    tcase_add_loop_test(tests, products_of_every_shape_are_exact_on_small_numbers, 0,
                        (int)ARRAY_LEN(shapes));
    tcase_add_loop_test(tests, scales_come_from_the_selected_bytes_and_threads, 0,
                        (int)ARRAY_LEN(scaled));
    tcase_add_test(tests, a_selector_that_selects_nothing_is_refused);
    tcase_add_loop_test(tests, stmatrix_is_ldmatrix_the_other_way, 0, 6);
    tcase_add_test(tests, movmatrix_transposes);
    tcase_add_loop_test(tests, ldmatrix_widens_elements_of_four_and_six_bits, 0, 2);
    return suite_run("emulator/exec_matrix", tests);
}
