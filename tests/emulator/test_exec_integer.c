/* test_exec_integer.c - every integer form on random and adversarial operands, against references
 * that are written from the manual. */
#include "tests/emulator/form_bench.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 5 }; /* of the list, for processors beside this one */

/* Where carries, signs, widths and counts end. */
static const uint64_t edges[] = {
    0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x7fff, 0x8000,
    0x8001, 0xffff, 0x10000, 0x7fffff, 0x800000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
    0x100000000, 0x7fff8000, 0x80007fff, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 1,
    UINT64_MAX - 127, UINT64_MAX - 32767, UINT64_MAX - INT32_MAX, 0x5555555555555555,
    0xaaaaaaaaaaaaaaaa,
    /* floats: near the ends of integers, halves, no numbers */
    0x4effffff4f000000, 0x4f7fffff4f800000, 0xcf000001cf000000, 0x3fe000003f000000,
    0xbfe00000bf000000, 0x3ff800003fc00000, 0x7ff000007f800000, 0xfff80000ff800001,
    0x7c007e017fc00000, 0x43e0000000000000, 0xc3e0000000000000, 0x41dfffffffc00000,
    0x000000010000fbff};

static uint64_t operand(uint64_t *state)
{
    uint64_t kind = random_next(state) % 8, r = random_next(state);

    if (kind < 3) {
        return edges[r % (sizeof edges / sizeof *edges)];
    }
    if (kind == 3) { /* counts and places */
        return r % 72;
    }
    if (kind == 4) { /* a few bits set, or all but a few */
        uint64_t few = r & random_next(state) & random_next(state) & random_next(state);
        return r & 1 ? few : ~few;
    }
    return kind == 5 ? r >> random_next(state) % 64 : r;
}

/* Up to FORM_TOGETHER forms. */
static void run_forms(const integer_form *forms, size_t len, uint64_t seed)
{
    static uint64_t in[4 * FORM_THREADS];
    uint64_t state = seed * 7919 + 3;

    for (size_t n = 0; n < 4 * FORM_THREADS; n++) {
        in[n] = operand(&state);
        if (n % 4 > 0 && random_next(&state) % 6 == 0) { /* equal, or next to it */
            in[n] = in[n - 1] + random_next(&state) % 3 - 1;
        }
    }
    form_bench_run(forms, len, in);
}

START_TEST(every_form_gives_what_the_manual_says)
{
    static integer_form forms[INTEGER_FORMS];
    size_t len = integer_forms_list(forms);

    for (size_t n = FORM_TOGETHER * (size_t)_i; n < len; n += FORM_TOGETHER * PARTS) {
        run_forms(forms + n, len - n < FORM_TOGETHER ? len - n : FORM_TOGETHER, n);
    }
}
END_TEST

/* Whether a form of the list of libraries' forms is integer arithmetic. */
static bool is_arithmetic(const char *form)
{
    static const char *const bases[] = {
        "abs.", "add.", "and.", "bfi.",  "cvt.", "div.",  "mad.",  "max.", "min.", "mov.", "mul.",
        "neg.", "not.", "or.",  "popc.", "rem.", "selp.", "setp.", "shl.", "shr.", "sub.", "xor."};
    const char *type = strrchr(form, '.');
    bool known = false,
         whole = type != NULL && strchr("sub", type[1]) != NULL && type[2] >= '0' && type[2] <= '9';

    for (size_t n = 0; n < sizeof bases / sizeof *bases; n++) {
        known = known || strncmp(form, bases[n], strlen(bases[n])) == 0;
    }
    return known && whole;
}

START_TEST(every_form_that_libraries_have_is_here)
{
    static integer_form forms[INTEGER_FORMS];
    size_t len = integer_forms_list(forms), found = 0;
    char path[512];

    if (!file_find_shared("data/ptx_forms.csv", path, sizeof path)) {
        printf("SKIP the list of forms: it is not here\n");
        return;
    }
    char *csv = file_read(path, NULL), *rest = NULL;
    for (char *line = strtok_r(csv, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *form = line + 2;
        bool here = false;
        if ((line[0] != '1' && line[0] != '2') || strchr(form, ',') == NULL) {
            continue;
        }
        *strchr(form, ',') = '\0';
        if (!is_arithmetic(form)) {
            continue;
        }
        for (size_t n = 0; n < len && !here; n++) {
            here = strcmp(forms[n].name, form) == 0;
        }
        ck_assert_msg(here, "%s has no reference", form);
        found++;
    }
    ck_assert_uint_gt(found, 70);
    free(csv);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("exec_integer");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, every_form_gives_what_the_manual_says, 0, PARTS);
    tcase_add_test(tests, every_form_that_libraries_have_is_here);
    return suite_run("emulator/exec_integer", tests);
}
