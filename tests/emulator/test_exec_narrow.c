/* test_exec_narrow.c - conversions to and from formats of eight bits and fewer, against the
 * toolkit's host code: every upper half of an fp32 number with five lower halves, every code. */
#include "core/status.h"
#include "emulator/exec/rare.h"
#include "tests/emulator/toolkit_narrow.h"
#include "tests/support/suite.h"

#include <check.h>

static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0xffff};

START_TEST(encoders_agree_with_the_toolkit)
{
    for (uint32_t n = 0; n < 65536; n++) {
        float x = numfmt_float(n << 16 | lower[_i]);
        ck_assert_msg(rare_to_e2m3(x) == toolkit_e2m3(x), "e2m3 of %a: %x", (double)x,
                      rare_to_e2m3(x));
        ck_assert_msg(rare_to_e3m2(x) == toolkit_e3m2(x), "e3m2 of %a: %x", (double)x,
                      rare_to_e3m2(x));
        ck_assert_msg(math_e2m1x2(x, 0) >> 4 == toolkit_e2m1(x), "e2m1 of %a", (double)x);
        for (int up = 0; up < 2; up++) {
            ck_assert_msg(math_ue8m0(x, up) == toolkit_ue8m0(x, up, true), "ue8m0 of %a, up %d: %x",
                          (double)x, up, math_ue8m0(x, up));
            ck_assert_msg(rare_ue8m0(x, up) == toolkit_ue8m0(x, up, false),
                          "ue8m0 of %a, up %d, open: %x", (double)x, up, rare_ue8m0(x, up));
        }
    }
}
END_TEST

START_TEST(decoders_agree_with_the_toolkit)
{
    for (uint32_t code = 0; code < 64; code++) {
        ck_assert_uint_eq(math_to_f16(rare_e2m3(code)), toolkit_from_e2m3((uint8_t)code));
        ck_assert_uint_eq(math_to_f16(rare_e3m2(code)), toolkit_from_e3m2((uint8_t)code));
        ck_assert_uint_eq(math_to_f16(numfmt_e2m1_decode(code & 15)),
                          toolkit_from_e2m1((uint8_t)(code & 15)));
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_narrow");

    tcase_add_loop_test(tests, encoders_agree_with_the_toolkit, 0, (int)ARRAY_LEN(lower));
    tcase_add_test(tests, decoders_agree_with_the_toolkit);
    return suite_run("emulator/exec_narrow", tests);
}
