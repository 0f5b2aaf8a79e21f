/* test_tensor_model.c - the matrix units against a restatement in Python integers (tests/tools).
 *
 * The model has a table of its own of what each unit keeps and adds at once: the emulator's is not
 * told to it. HONE_TENSOR_CASES sets how many elements are compared; 2,000 without it. */
#include "tests/emulator/tensor_cases.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static void print_codes(FILE *to, const uint32_t *codes, size_t len)
{
    for (size_t k = 0; k < len; k++) {
        fprintf(to, k == 0 ? " %x" : ",%x", codes[k]);
    }
}

/* Element `pick` of a case's product, as the model reads it. */
static void print_case(FILE *to, const tensor_case *t, uint32_t pick)
{
    uint32_t d[4][32], reg = pick / 32, lane = pick % 32;
    uint32_t a[32], b[32];
    size_t len = tensor_cases_operands(t, lane / 4 + 8 * (reg / 2), 2 * (lane % 4) + reg % 2, a, b);

    tensor_mma_m16n8(d, (const uint32_t(*)[32])t->a, (const uint32_t(*)[32])t->b,
                     (const uint32_t(*)[32])t->c, t->a_type, t->b_type, t->unit, t->mode);
    fprintf(to, "%s %d %s %s %s %x %x", tensor_cases_mode_name(t->mode), t->arch,
            t->half ? "f16" : "f32", tensor_cases_type_name(t->a_type),
            tensor_cases_type_name(t->b_type), t->c[reg][lane], d[reg][lane]);
    print_codes(to, a, len);
    print_codes(to, b, len);
    fputc('\n', to);
}

START_TEST(units_agree_with_the_model_in_python)
{
    const char *root = getenv("HONE_SOURCE_DIR"), *wanted = getenv("HONE_TENSOR_CASES");
    unsigned long cases = wanted != NULL ? strtoul(wanted, NULL, 10) : 2000;
    char command[1024];
    FILE *model = NULL;

    if (system("python3 -c pass >/dev/null 2>&1") != 0) {
        printf("SKIP the model: no python3 here\n");
        return;
    }
    snprintf(command, sizeof command, "python3 '%s/tests/tools/tensor_model.py'",
             root != NULL ? root : ".");
    model = popen(command, "w");
    ck_assert_ptr_nonnull(model);
    for (unsigned long i = 0; i < cases; i++) {
        tensor_case t;
        tensor_cases_make(1000003 + i / 4, &t); /* four elements of each product */
        print_case(model, &t, (uint32_t)(i * 37 % 128));
    }
    ck_assert_int_eq(WEXITSTATUS(pclose(model)), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor_model");

    tcase_set_timeout(tests, 1800);
    tcase_add_test(tests, units_agree_with_the_model_in_python);
    return suite_run("emulator/tensor_model", tests);
}
