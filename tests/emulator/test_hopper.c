/* test_hopper.c - good kernels, under every schedule and timing that a proof takes: no fault, the
 * reference's bits, the same in all runs. */
#include "tests/emulator/hopper_bench.h"
#include "tests/support/suite.h"

#include <stdlib.h>

enum { SEEDS = 8 };

START_TEST(a_good_kernel_is_right_and_not_reported)
{
    static hopper_bench b;
    const hopper_kernel *k = &hopper_kernels[_i];
    hopper_open(&b);
    char *source = hopper_source(k);
    bool loaded = hopper_load(&b, k, source);
    free(source);
    for (int run = 0; loaded && run < 2 * SEEDS; run++) {
        hone_emu_timing timing = run % 2 == 0 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST;
        hopper_outcome o = hopper_run(&b, k, (uint64_t)run / 2, timing);
        ck_assert_msg(o.result == CUDA_SUCCESS && !o.wrong, "%s, seed %d, timing %d: %s", k->name,
                      run / 2, (int)timing, o.text);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("hopper");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_good_kernel_is_right_and_not_reported, 0, (int)hopper_kernels_len);
    return suite_run("emulator/hopper", tests);
}
