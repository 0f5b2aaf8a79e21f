/* test_exec_double.c - mma.sync of f64: fragments by the figures, fused multiply-adds in k's order.
 */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "core/random.h"
#include "core/status.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double a[16][16], c[16][8], x[16][8];
static double words[32][16], d[32][4]; /* registers of each thread, in and out */

typedef struct shape {
    const char *name;
    uint32_t m, k;
} shape;
static const shape shapes[] = {
    {"m8n8k4", 8, 4}, {"m16n8k4", 16, 4}, {"m16n8k8", 16, 8}, {"m16n8k16", 16, 16}};

static double random_double(uint64_t *state)
{
    return (double)(int64_t)random_next(state) * 0x1p-60;
}

static void fill(const shape *s, uint32_t a_len, uint32_t b_len)
{
    uint64_t state = 9;

    memset(words, 0, sizeof words);
    for (uint32_t row = 0; row < s->m; row++) {
        for (uint32_t k = 0; k < s->k; k++) {
            a[row][k] = random_double(&state);
            words[row % 8 * 4 + k % 4][k / 4 * (s->m / 8) + row / 8] = a[row][k];
        }
        for (uint32_t n = 0; n < 8; n++) {
            c[row][n] = random_double(&state);
            words[row % 8 * 4 + n / 2][a_len + b_len + row / 8 * 2 + n % 2] = c[row][n];
        }
    }
    for (uint32_t k = 0; k < s->k; k++) {
        for (uint32_t n = 0; n < 8; n++) {
            x[k][n] = random_double(&state);
            words[n * 4 + k % 4][a_len + k / 4] = x[k][n];
        }
    }
}

/* 16 doubles of each thread in, `d_len` out. */
static void write_kernel(char *text, const shape *s, uint32_t a_len, uint32_t b_len, uint32_t d_len)
{
    size_t used = (size_t)sprintf(
        text,
        ".version 8.8\n.target sm_90\n.address_size 64\n.entry k(.param .u64 in, .param .u64 "
        "out)\n{\n.reg .b64 %%x<9>; .reg .f64 %%a<16>, %%d<4>; .reg .b32 %%r1;\n"
        "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; mov.u32 %%r1, %%tid.x;\n"
        "mul.wide.u32 %%x2, %%r1, 128; add.u64 %%x0, %%x0, %%x2; mul.wide.u32 %%x2, %%r1, 32; "
        "add.u64 %%x1, %%x1, %%x2;\n");

    for (uint32_t n = 0; n < a_len + b_len + d_len; n++) {
        used += (size_t)sprintf(text + used, "ld.global.f64 %%a%u, [%%x0+%u];\n", n, 8 * n);
    }
    used += (size_t)sprintf(text + used, "mma.sync.aligned.%s.row.col.f64.f64.f64.f64 ", s->name);
    used = ptx_bench_list(text, used, "d", 0, d_len);
    used += (size_t)sprintf(text + used, ", ");
    used = ptx_bench_list(text, used, "a", 0, a_len);
    used += (size_t)sprintf(text + used, ", ");
    used = ptx_bench_list(text, used, "a", a_len, b_len);
    used += (size_t)sprintf(text + used, ", ");
    used = ptx_bench_list(text, used, "a", a_len + b_len, d_len);
    used += (size_t)sprintf(text + used, ";\n");
    for (uint32_t n = 0; n < d_len; n++) {
        used += (size_t)sprintf(text + used, "st.global.f64 [%%x1+%u], %%d%u;\n", 8 * n, n);
    }
    sprintf(text + used, "ret;\n}\n");
}

START_TEST(doubles_multiply_in_the_order_of_k)
{
    const shape *s = &shapes[_i];
    uint32_t a_len = s->m * s->k / 32, b_len = s->k / 4, d_len = s->m / 4;
    char text[4096];
    ptx_bench b;

    fill(s, a_len, b_len);
    write_kernel(text, s, a_len, b_len, d_len);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    uint64_t d_in = ptx_bench_buffer(&b, words, sizeof words);
    uint64_t d_out = ptx_bench_buffer(&b, NULL, sizeof d);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                (void *[]){&d_in, &d_out}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, d_out, d, sizeof d);
    ptx_bench_close(&b);
    for (uint32_t row = 0; row < s->m; row++) {
        for (uint32_t n = 0; n < 8; n++) {
            double sum = c[row][n];
            for (uint32_t k = 0; k < s->k; k++) {
                sum = fma(a[row][k], x[k][n], sum);
            }
            ck_assert_double_eq(d[row % 8 * 4 + n / 2][row / 8 * 2 + n % 2], sum);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_double");

    tcase_add_loop_test(tests, doubles_multiply_in_the_order_of_k, 0, (int)ARRAY_LEN(shapes));
    return suite_run("emulator/exec_double", tests);
}
