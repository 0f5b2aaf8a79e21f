/* unit_bench.c - fragments, layouts and scales of a product whose rows and columns are all alike.
 */
#include "tests/emulator/unit_bench.h"
#include "core/numfmt.h"
#include "tests/emulator/wgmma_case.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t bits[] = {8, 8, 8, 8, 8, 4, 16, 16, 32};

/* A number of few exponent and fraction bits and no code that is none: `bias`, fraction bits. */
static uint32_t mini_code(float x, uint32_t exponents, uint32_t fractions, int bias)
{
    for (uint32_t code = 0; code < 1u << (exponents + fractions); code++) {
        uint32_t exponent = code >> fractions, fraction = code & ((1u << fractions) - 1);
        double value = ldexp((exponent != 0 ? 1u << fractions : 0) + fraction,
                             (int)(exponent != 0 ? exponent : 1) - bias - (int)fractions);
        if (value == fabs((double)x)) {
            return code | (signbit(x) ? 1u << (exponents + fractions) : 0);
        }
    }
    ck_abort_msg("%a is none of the type's numbers", (double)x);
}

static uint32_t code_of(unit_type type, float x)
{
    switch (type) {
    case UNIT_E4M3:
        ck_assert_float_eq(numfmt_e4m3_decode(numfmt_e4m3_encode(x)), x);
        return numfmt_e4m3_encode(x);
    case UNIT_E5M2:
        ck_assert_float_eq(numfmt_e5m2_decode(numfmt_e5m2_encode(x)), x);
        return numfmt_e5m2_encode(x);
    case UNIT_E3M2:
        return mini_code(x, 3, 2, 3);
    case UNIT_E2M3:
        return mini_code(x, 2, 3, 1);
    case UNIT_E2M1: /* four bits lie in the middle of a byte */
        return mini_code(x, 2, 1, 1) << 2;
    case UNIT_NIBBLE:
        return mini_code(x, 2, 1, 1);
    case UNIT_BF16:
        ck_assert_float_eq(numfmt_bf16_decode(numfmt_bf16_encode(x)), x);
        return numfmt_bf16_encode(x);
    case UNIT_F16:
        ck_assert_float_eq(numfmt_f16_decode(numfmt_f16_encode(x)), x);
        return numfmt_f16_encode(x);
    default:
        ck_assert_uint_eq(numfmt_bits(x) & 0x1fff, 0);
        return numfmt_bits(x);
    }
}

/* Registers of an operand: `rows` of them for each range of k, PTX's figures for m16n8. */
static void pack(const unit_form *u, const float *x, uint32_t rows, uint32_t registers,
                 uint32_t lane, uint32_t *out)
{
    uint32_t per = 32 / bits[u->type];

    for (uint32_t r = 0; r < registers; r++) {
        out[r] = 0;
        for (uint32_t e = 0; e < per; e++) {
            uint32_t k = r / rows * (4 * per) + lane % 4 * per + e;
            out[r] |= code_of(u->type, x[k]) << (e * bits[u->type]);
        }
    }
}

static uint32_t c_word(const unit_form *u, float c)
{
    if (!u->half) {
        return numfmt_bits(c);
    }
    ck_assert_float_eq(numfmt_f16_decode(numfmt_f16_encode(c)), c);
    return numfmt_f16_encode(c) * UINT32_C(0x10001);
}

enum { IN = 12, OUT = 4 }; /* a: 4, b: 2, c: 4, scales: 2 */

static void write_body(const unit_form *u, char body[1024])
{
    uint32_t a_len = u->k * bits[u->type] / 64, d_len = u->half ? 2 : 4;
    size_t used =
        (size_t)sprintf(body, "mov.u32 %%d2, 0; mov.u32 %%d3, 0;\nmma.sync.aligned.%s ", u->form);

    used = ptx_bench_list(body, used, "d", 0, d_len);
    body[used++] = ',';
    used = ptx_bench_list(body, used, "a", 0, a_len);
    body[used++] = ',';
    used = ptx_bench_list(body, used, "a", 4, a_len / 2);
    body[used++] = ',';
    used = ptx_bench_list(body, used, "a", 6, d_len);
    sprintf(body + used, "%s;",
            strstr(u->form, "block_scale") != NULL ? ", %a10, {0, 0}, %a11, {0, 0}" : "");
}

static float run_mma(const unit_form *u, const unit_line *l)
{
    static uint32_t in[32][IN], out[32][OUT];
    char body[1024];
    ptx_bench b;

    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t a_len = u->k * bits[u->type] / 64;
        memset(in[lane], 0, sizeof in[lane]);
        pack(u, l->a, 2, a_len, lane, in[lane]);
        pack(u, l->b, 1, a_len / 2, lane, in[lane] + 4);
        for (uint32_t n = 0; n < 4; n++) {
            in[lane][6 + n] = c_word(u, l->c);
        }
        in[lane][10] = l->a_scale;
        in[lane][11] = l->b_scale;
    }
    write_body(u, body);
    char *ptx = ptx_bench_wrap(body, IN, OUT);
    ptx_bench_open(&b);
    b.launch.arch = u->arch;
    b.launch.arithmetic = HONE_EMU_HW;
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s: %s", u->form, b.error.message);
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in),
             to = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                (void *[]){&from, &to}) == HONE_OK,
                  "%s: %s", u->form, b.error.message);
    ptx_bench_read(&b, to, out, sizeof out);
    ptx_bench_close(&b);
    free(ptx);
    for (uint32_t n = 0; n < 32 * (u->half ? 2u : 4u); n++) {
        ck_assert_uint_eq(out[n % 32][n / 32], out[0][0]);
    }
    if (u->half) {
        ck_assert_uint_eq(out[0][0] >> 16, out[0][0] & 0xffff);
    }
    return u->half ? numfmt_f16_decode((uint16_t)out[0][0]) : numfmt_float(out[0][0]);
}

static float run_wgmma(const unit_form *u, const unit_line *l)
{
    static const tensor_type types[] = {[UNIT_E4M3] = TENSOR_E4M3,
                                        [UNIT_E5M2] = TENSOR_E5M2,
                                        [UNIT_BF16] = TENSOR_BF16,
                                        [UNIT_F16] = TENSOR_F16,
                                        [UNIT_TF32] = TENSOR_TF32};
    wgmma_case *c = calloc(1, sizeof *c);
    uint32_t below = u->type == UNIT_TF32 ? 13 : 0; /* a case's tf32 has 19 bits */
    ptx_bench b;

    c->n = 8;
    c->a_type = c->b_type = types[u->type];
    c->result = u->half ? "f16" : "f32";
    c->accumulate = true;
    c->scale_a = c->scale_b = 1;
    c->mode = HONE_EMU_HW;
    wgmma_case_place(c, 3, false, 3, false);
    for (uint32_t n = 0; n < WGMMA_CASE_M * u->k; n++) {
        uint32_t row = n / u->k, k = n % u->k;
        c->a[row][k] = code_of(u->type, l->a[k]) >> below;
        c->b[row % 8][k] = code_of(u->type, l->b[k]) >> below;
    }
    for (uint32_t n = 0; n < WGMMA_CASE_M * 8; n++) {
        c->c[n / 8][n % 8] = u->half ? c_word(u, l->c) & 0xffff : c_word(u, l->c);
    }
    ptx_bench_open(&b);
    ck_assert_msg(wgmma_case_run(c, &b) == HONE_OK, "wgmma: %s", b.error.message);
    ptx_bench_close(&b);
    uint32_t d = c->d[0][0];
    for (uint32_t n = 0; n < WGMMA_CASE_M * 8; n++) {
        ck_assert_uint_eq(c->d[n / 8][n % 8], d);
    }
    free(c);
    return u->half ? numfmt_f16_decode((uint16_t)d) : numfmt_float(d);
}

float unit_bench_run(const unit_form *u, const unit_line *l)
{
    return u->form == NULL ? run_wgmma(u, l) : run_mma(u, l);
}
