/* test_numfmt_all.c - every one of the 2^32 floats encodes to e4m3 and e5m2 as the CUDA toolkit's
 * host code says. */
#include "core/numfmt.h"
#include "core/status.h"
#include "tests/core/toolkit_fp8.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 2

/* Floats first, first + THREADS, ... */
typedef struct share {
    uint32_t first;
    uint64_t e4m3_missed, e5m2_missed;
} share;

/* The toolkit keeps a NaN's sign (and payload, in e5m2); the hardware and we give 0x7f. */
static bool differs(uint8_t ours, uint8_t theirs, bool nan, uint8_t least_nan)
{
    return nan ? ours != 0x7f || (theirs & 0x7f) < least_nan : ours != theirs;
}

static void *compare(void *context)
{
    share *s = context;

    for (uint64_t bits = s->first; bits < UINT64_C(1) << 32; bits += THREADS) {
        uint32_t narrow = (uint32_t)bits;
        float x;
        memcpy(&x, &narrow, sizeof x);
        bool nan = (narrow & 0x7fffffff) > 0x7f800000;
        s->e4m3_missed += differs(numfmt_e4m3_encode(x), toolkit_e4m3(x), nan, 0x7f);
        s->e5m2_missed += differs(numfmt_e5m2_encode(x), toolkit_e5m2(x), nan, 0x7d);
    }
    return NULL;
}

START_TEST(all_floats_encode_as_the_toolkit_says)
{
    share shares[THREADS] = {0};
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        shares[i].first = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compare, &shares[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(shares[i].e4m3_missed, 0);
        ck_assert_uint_eq(shares[i].e5m2_missed, 0);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("numfmt_all");

    tcase_set_timeout(tests, 1800);
    tcase_add_test(tests, all_floats_encode_as_the_toolkit_says);
    return suite_run("core/numfmt_all", tests);
}
