/* test_sass_damage.c - cubins that are cut, damaged, made up or too large: refused, or read within
 * their bounds. */
#include "bench/sass.h"
#include "tests/bench/cubin.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const cubin_word small[] = {CUBIN_NOP, CUBIN_QGMMA, CUBIN_EXIT};

/* Read from a block of just this size, so that a byte beyond it is seen by the sanitizer. */
static hone_status read_bytes(const uint8_t *bytes, size_t len)
{
    sass_function f = {.loops = NULL};
    uint8_t *copy = malloc(len > 0 ? len : 1);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    hone_status status = sass_read(copy, len, "kernel", &f, NULL);
    if (status == HONE_OK) {
        sass_function_free(&f);
    } else {
        ck_assert_ptr_null(f.loops); /* nothing was written */
    }
    free(copy);
    return status;
}

START_TEST(a_cut_cubin_is_refused)
{
    size_t len = 0;
    uint8_t *bytes = cubin_make("kernel", small, ARRAY_LEN(small), 90, &len);

    ck_assert_int_eq(read_bytes(bytes, len), HONE_OK);
    for (size_t cut = 0; cut < len; cut++) {
        ck_assert_int_eq(read_bytes(bytes, cut), HONE_BAD_TEXT);
    }
    free(bytes);
}
END_TEST

START_TEST(a_damaged_cubin_never_leads_astray)
{
    size_t len = 0, refused = 0;
    uint8_t *bytes = cubin_make("kernel", small, ARRAY_LEN(small), 90, &len);

    for (size_t at = 0; at < len; at++) {
        const uint8_t before = bytes[at];
        for (int value = 0; value < 256; value++) {
            bytes[at] = (uint8_t)value;
            refused += read_bytes(bytes, len) != HONE_OK;
        }
        bytes[at] = before;
    }
    ck_assert_uint_gt(refused, 1000);
    free(bytes);
}
END_TEST

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

START_TEST(random_code_has_loops_within_it)
{
    enum { LEN = 64 };
    static const uint32_t control[] = {0x141, 0x144, 0x145, 0x147, 0x149, 0x14d, 0x150, 0x1f3};
    uint64_t seed = 11;

    for (int round = 0; round < 2000; round++) {
        cubin_word code[LEN];
        for (int i = 0; i < LEN; i++) {
            code[i] = (cubin_word){next_random(&seed), next_random(&seed)};
            code[i].low = (code[i].low & ~UINT64_C(0x1ff)) | control[next_random(&seed) % 8];
            if (round % 2 == 0) { /* targets near by */
                code[i] = cubin_branch((uint32_t)i, (uint32_t)(next_random(&seed) % LEN),
                                       (unsigned)(next_random(&seed) % 8), 90);
            }
        }
        sass_function f = {.loops = NULL};
        size_t len = 0;
        uint8_t *bytes = cubin_make("kernel", code, LEN, 90, &len);
        ck_assert_int_eq(sass_read(bytes, len, "kernel", &f, NULL), HONE_OK);
        free(bytes);
        for (size_t i = 0; i < f.loops_len; i++) {
            ck_assert_uint_le(f.loops[i].first, f.loops[i].last);
            ck_assert_uint_lt(f.loops[i].last, LEN);
            ck_assert_uint_gt(f.loops[i].count.instructions, 0);
        }
        sass_function_free(&f);
    }
}
END_TEST

START_TEST(too_much_is_refused)
{
    enum { MOST = 65536, BRANCHES = 1025 };
    hone_error error = {.status = HONE_OK};
    sass_function f = {.loops = NULL};
    size_t len = 0;
    cubin_word *code = calloc(MOST + 1, sizeof *code);

    ck_assert_ptr_nonnull(code);
    uint8_t *bytes = cubin_make("kernel", code, MOST + 1, 90, &len);
    ck_assert_int_eq(sass_read(bytes, len, "kernel", &f, &error), HONE_LIMIT);
    free(bytes);
    for (uint32_t i = 0; i < BRANCHES; i++) {
        code[i] = cubin_branch(i, 0, 0, 90);
    }
    bytes = cubin_make("kernel", code, BRANCHES, 90, &len);
    ck_assert_int_eq(sass_read(bytes, len, "kernel", &f, &error), HONE_LIMIT);
    free(bytes);
    bytes = cubin_make("kernel", code, BRANCHES - 1, 90, &len);
    ck_assert_int_eq(sass_read(bytes, len, "kernel", &f, &error), HONE_OK);
    sass_function_free(&f);
    ck_assert_int_eq(sass_read(bytes, len, "kerne", &f, &error), HONE_NOT_FOUND);
    ck_assert_int_eq(sass_read(bytes, len, "kernel2", &f, &error), HONE_NOT_FOUND);
    free(bytes);
    bytes = cubin_make("kernel", small, ARRAY_LEN(small), 75, &len);
    ck_assert_int_eq(sass_read(bytes, len, "kernel", &f, &error), HONE_UNSUPPORTED);
    free(bytes);
    free(code);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sass_damage");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_cut_cubin_is_refused);
    tcase_add_test(tests, a_damaged_cubin_never_leads_astray);
    tcase_add_test(tests, random_code_has_loops_within_it);
    tcase_add_test(tests, too_much_is_refused);
    return suite_run("bench/sass_damage", tests);
}
