/* test_device_check.c - the probes answer on the emulator, always alike; comparing finds what
 * differs; and where a GPU has answered (tests/data/golden), the emulator gives the same. */
#include "tests/device/probe.h"
#include "tests/device/products.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static device *opened;

static void close_device(void)
{
    device_close(opened);
    opened = NULL;
}

static void open_device_for(const probe *p)
{
    hone_error error = {0};
    const char *spec = p->arch == 120 ? "emu:rtx5090" : "emu:h200";

    close_device();
    ck_assert_msg(device_open(spec, &opened, &error) == HONE_OK, "%s", error.message);
    ck_assert(probe_is_for(p, opened));
}

static golden ask(const probe *p)
{
    golden g = {0};
    hone_error error = {0};
    ck_assert_msg(probe_ask(p, opened, &g, &error) == HONE_OK, "%s: %s", p->name, error.message);
    return g;
}

static golden_difference compare(const golden *a, const golden *b)
{
    golden_difference d = {0};
    hone_error error = {0};
    ck_assert_msg(golden_compare(a, b, &d, &error) == HONE_OK, "%s", error.message);
    return d;
}

START_TEST(each_probe_answers_alike_in_any_order_and_with_late_copies)
{
    const probe *p = &probes[_i];
    open_device_for(p);
    const hone_emu_api *emu = opened->driver->emu;
    golden first = ask(p), second;
    size_t set = 0, words = (size_t)first.cases * first.out_each;

    for (size_t n = 0; n < words; n++) {
        set += first.out[n] != 0;
    }
    ck_assert_uint_gt(set, words / 20); /* it did answer */
    ck_assert_int_eq(emu->set_schedule((int)opened->ordinal, 77, NULL), HONE_OK);
    ck_assert_int_eq(emu->set_timing((int)opened->ordinal, HONE_EMU_LATEST, NULL), HONE_OK);
    second = ask(p);
    ck_assert_uint_eq(compare(&first, &second).differing, 0);
    golden_free(&first);
    golden_free(&second);
}
END_TEST

/* Each pinned product is legal where its template serves, ends well, and gives the same bits in
 * another order of warps with late copies; one bit of D that is another is told by row. */
START_TEST(each_product_answers_alike_in_any_order_and_with_late_copies)
{
    const product *p = &products[_i];
    const bool scaled = strcmp(p->template, "fp8_gemm/sm120_block_scale") == 0;
    hone_error error = {0};
    golden first = {0}, second = {0};
    bool serves = false;

    close_device();
    ck_assert_int_eq(device_open(scaled ? "emu:rtx5090" : "emu:h200", &opened, &error), HONE_OK);
    ck_assert_int_eq(product_is_for(p, opened, &serves, &error), HONE_OK);
    ck_assert(serves);
    ck_assert_msg(product_ask(p, opened, false, &first, &error) == HONE_OK, "%s: %s", p->name,
                  error.message);
    ck_assert_int_eq(product_ask(p, opened, true, &second, &error), HONE_OK);
    ck_assert_uint_eq(compare(&first, &second).differing, 0);
    second.out[second.out_each] ^= 1;
    ck_assert_uint_eq(compare(&first, &second).differing, 1);
    ck_assert_uint_eq(compare(&first, &second).first, first.out_each);
    golden_free(&first);
    golden_free(&second);
}
END_TEST

START_TEST(a_probe_of_another_arch_is_not_asked)
{
    golden g = {0};
    hone_error error = {0};

    open_device_for(probe_find("wgmma_f16"));
    ck_assert_int_eq(probe_ask(probe_find("scales"), opened, &g, &error), HONE_UNSUPPORTED);
    ck_assert_str_eq(error.message, "asks about sm_120 alone");
}
END_TEST

START_TEST(what_a_gpu_answered_is_what_the_emulator_gives)
{
    const probe *p = &probes[_i];
    char folder[600], path[700];

    snprintf(folder, sizeof folder, "%s/tests/data/golden", getenv("HONE_SOURCE_DIR"));
    snprintf(path, sizeof path, "%s/%s.golden", folder, p->name);
    if (access(path, R_OK) != 0) {
        printf("SKIP: no GPU has answered %s yet\n", p->name);
        return;
    }
    open_device_for(p);
    golden known = {0}, mine = ask(p);
    hone_error error = {0};
    ck_assert_msg(golden_read(folder, p->name, &known, &error) == HONE_OK, "%s", error.message);
    golden_difference d = compare(&known, &mine);
    ck_assert_msg(d.differing == 0 || p->approximate, "%s: %llu words differ from %s", p->name,
                  (unsigned long long)d.differing, known.device);
    golden_free(&known);
    golden_free(&mine);
}
END_TEST

/* One word of an answer is another: compare says which, and how far. */
START_TEST(a_changed_word_is_found_and_measured)
{
    golden a = {0}, b = {0};
    hone_error error = {0};

    ck_assert_int_eq(golden_make("edges", 4, 1, 3, &a, &error), HONE_OK);
    ck_assert_int_eq(golden_make("edges", 4, 1, 3, &b, &error), HONE_OK);
    a.out[7] = 0x3f800000;
    b.out[7] = 0x3f800003;
    golden_difference d = compare(&a, &b);
    ck_assert_uint_eq(d.words, 12);
    ck_assert_uint_eq(d.differing, 1);
    ck_assert_uint_eq(d.first, 7);
    ck_assert_uint_eq(d.ulps, 3);
    b.out[7] = 0x7fc00000;
    ck_assert_uint_eq(compare(&a, &b).ulps, UINT64_MAX);
    b.in[0] = 1;
    ck_assert_int_eq(golden_compare(&a, &b, &d, &error), HONE_BAD_ARGUMENT);
    golden_free(&a);
    golden_free(&b);
}
END_TEST

START_TEST(files_come_back_as_they_were_and_damage_is_named)
{
    char folder[FOLDER_BYTES], path[FOLDER_BYTES + 32];
    golden a = {0}, b = {0};
    hone_error error = {0};
    static const char *const damaged[] = {"",
                                          "hone-golden 2 edges 1 1 1 x\n0\n0\n",
                                          "hone-golden 1 other 1 1 1 x\n0\n0\n",
                                          "hone-golden 1 edges 4294967295 4294967295 1 x\n0\n",
                                          "hone-golden 1 edges 1 1 1 x\n0\nzz\n",
                                          "hone-golden 1 edges 2 1 1 x\n0\n0\n"};

    folder_make(folder);
    ck_assert_int_eq(golden_make("edges", 5, 2, 3, &a, &error), HONE_OK);
    snprintf(a.device, sizeof a.device, "NVIDIA H200 (emulated)");
    for (uint32_t n = 0; n < 10; n++) {
        a.in[n] = n * 0x01234567u;
        a.out[n] = ~n;
    }
    ck_assert_int_eq(golden_write(&a, folder, &error), HONE_OK);
    ck_assert_int_eq(golden_read(folder, "edges", &b, &error), HONE_OK);
    ck_assert_str_eq(b.device, a.device);
    ck_assert_uint_eq(compare(&a, &b).differing, 0);
    golden_free(&b);
    snprintf(path, sizeof path, "%s/edges.golden", folder);
    for (size_t n = 0; n < ARRAY_LEN(damaged); n++) {
        file_write_text(path, damaged[n]);
        ck_assert_msg(golden_read(folder, "edges", &b, &error) != HONE_OK, "%zu", n);
    }
    golden_free(&a);
    folder_remove(folder);
}
END_TEST

START_TEST(the_problems_that_the_script_times_can_be_asked_for)
{
    char path[700];

    snprintf(path, sizeof path, "%s/scripts/device-check.sh", getenv("HONE_SOURCE_DIR"));
    char *text = file_read(path, NULL), *at = strstr(text, "<<'PROBLEMS'\n"), *word = NULL;
    size_t problems = 0;

    ck_assert_ptr_nonnull(at);
    at += strlen("<<'PROBLEMS'\n");
    char *end = strstr(at, "PROBLEMS\n");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    for (word = strtok(at, "\n"); word != NULL; word = strtok(NULL, "\n")) {
        hone_problem problem;
        hone_error error = {0};
        ck_assert_msg(hone_problem_parse(word, &problem, &error) == HONE_OK &&
                          hone_problem_check(&problem, &error) == HONE_OK,
                      "%s: %s", word, error.message);
        problems++;
    }
    ck_assert_uint_ge(problems, 10);
    free(text);
}
END_TEST

int main(void)
{
    TCase *plain = tcase_create("files"), *asked = tcase_create("asked");

    tcase_add_test(plain, a_changed_word_is_found_and_measured);
    tcase_add_test(plain, the_problems_that_the_script_times_can_be_asked_for);
    tcase_add_test(plain, files_come_back_as_they_were_and_damage_is_named);
    tcase_set_timeout(asked, 120);
    tcase_add_checked_fixture(asked, NULL, close_device);
    tcase_add_loop_test(asked, each_probe_answers_alike_in_any_order_and_with_late_copies, 0,
                        (int)probes_len);
    tcase_add_test(asked, a_probe_of_another_arch_is_not_asked);
    tcase_add_loop_test(asked, each_product_answers_alike_in_any_order_and_with_late_copies, 0,
                        (int)products_len);
    tcase_add_loop_test(asked, what_a_gpu_answered_is_what_the_emulator_gives, 0, (int)probes_len);
    TCase *cases[] = {plain, asked};
    return suite_run_cases("device/device_check", cases, ARRAY_LEN(cases));
}
