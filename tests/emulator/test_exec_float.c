/* test_exec_float.c - exact forms of floating point on random and adversarial operands, against
 * references in integers. */
#include "tests/emulator/float_forms.h"
#include "tests/emulator/form_bench.h"
#include "tests/support/suite.h"
#include "core/random.h"
#include "core/status.h"

#include <check.h>
#include <string.h>

enum { PARTS = 4 }; /* of the list, for processors beside this one */

/* The upper word begins a double, the lower one is a float, the lower half of that an f16 or bf16:
 * zeros, ones, ends of ranges, infinities, NaN, halves of last places. */
static const uint32_t uppers[] = {0,          0x80000000, 0x3ff00000, 0xbff00000, 0x7fefffff,
                                  0x7ff00000, 0xfff00000, 0x7ff80001, 0x00100000, 0x000fffff,
                                  0x80000001, 0x3ca00000, 0x3fe00000, 0x38100000, 0x47efffff},
                      lowers[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f7fffff,
                                  0x7f800000, 0xff800000, 0x7fc10001, 0x00800000, 0x007fffff,
                                  0x80000001, 0x33800000, 0x3f7fffff, 0x477ff000, 0x33000001,
                                  0x00003c00, 0x0000bc00, 0x00007bff, 0x0000fc00, 0x00007e01,
                                  0x000083ff, 0x00000400, 0x00003f80, 0x00007f7f, 0x0000ff80};

/* Exponents within 2^+-30 of one of all three, and any fractions; some of those end in zeros or
 * ones, so that sums and products are ties or nearly so. */
static uint64_t ordinary(uint64_t *state)
{
    uint64_t r = random_next(state);
    uint32_t upper = ((uint32_t)(1023 - 30 + r % 61) << 20) | (uint32_t)(r >> 12 & 0x800fffff);
    uint32_t lower =
        ((uint32_t)(127 - 30 + (r >> 6) % 61) << 23) | (uint32_t)(r >> 32 & 0x807fffff);
    uint32_t kind = random_next(state) % 4;

    if (kind == 0) {
        upper &= 0xfffff800;
        lower &= 0xfffff000;
        return (uint64_t)upper << 32 | lower;
    }
    lower = kind == 1 ? lower | 0xfff : kind == 2 ? (lower & 0xffff83ff) | 0x3800 : lower;
    return (uint64_t)upper << 32 | lower;
}

static uint64_t operand(uint64_t *state, uint64_t before)
{
    uint64_t r = random_next(state), kind = r % 8;

    r >>= 8;
    if (kind == 0) {
        return (uint64_t)uppers[r % 15] << 32 | lowers[r / 16 % 25];
    }
    if (kind == 1) {
        return random_next(state);
    }
    if (kind == 2) { /* near the one before, or near its opposite */
        return before + r % 3 - 1 + (r & 16 ? 0x8000000080000000 : 0) + (r & 32 ? 0x8000 : 0);
    }
    if (kind == 3) { /* far below it: what rounds a sum's last place */
        return before - ((24 + r % 3) << 23) - ((uint64_t)(53 + r / 4 % 3) << 52);
    }
    return ordinary(state);
}

/* What chance does not find: zeros of both signs, and a * b + c beside ties that a sum of fewer
 * bits would take for ties. */
static const uint64_t chosen[][3] = {
    {0, 0x8000000000000000, 0},
    {0x8000000000000000, 0, 0},
    {0x80000000, 0, 0},
    {0, 0x80000000, 0},
    {0x8000, 0, 0},
    {0, 0x8000, 0},
    {0x2801, 0x23fe, 0x3c01}, /* f16: 1 + 1.5 * 2^-10 - 2^-31 */
    {0xa801, 0x23fe, 0xbc01},
    {0x3f90, 0x3fe8, 0x0d80}, /* bf16: 261 / 128 + 2^-100 */
    {0x3fc0, 0x3fb2, 0x8d80}, /* 267 / 128 - 2^-100 */
};

START_TEST(exact_forms_give_what_integers_give)
{
    static integer_form forms[FLOAT_FORMS];
    static uint64_t in[4 * FORM_THREADS];
    size_t len = float_forms_list(forms);

    for (size_t n = FORM_TOGETHER * (size_t)_i; n < len; n += FORM_TOGETHER * PARTS) {
        uint64_t state = 1 + n;
        for (size_t v = 0; v < 4 * FORM_THREADS; v++) {
            in[v] = operand(&state, v % 4 > 0 ? in[v - 1] : 0);
        }
        for (size_t t = 0; t < ARRAY_LEN(chosen); t++) {
            memcpy(in + 4 * t, chosen[t], sizeof chosen[t]);
        }
        form_bench_run(forms + n, len - n < FORM_TOGETHER ? len - n : FORM_TOGETHER, in);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_float");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, exact_forms_give_what_integers_give, 0, PARTS);
    return suite_run("emulator/exec_float", tests);
}
