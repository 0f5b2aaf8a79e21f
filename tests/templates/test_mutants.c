/* test_mutants.c - each faulty variant changes exactly one place, still compiles, and its config is
 * legal: what refuses it must be the proof. */
#include "tests/templates/kernels.h"
#include "tests/templates/mutants.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;

/* The rows' device: its arithmetic has the narrow accumulators, and every template serves it. */
static device_facts device(void)
{
    hone_error error = {0};
    gpu described;

    ck_assert_msg(gpu_find("rtx4090", &described, &error) == HONE_OK, "%s", error.message);
    return described.facts;
}

START_TEST(a_mutant_changes_one_place)
{
    const mutant *m = &mutants[_i];
    hone_error error = {0};
    template_source source;
    const manifest *owner = templates_find(shared.templates, m->template_name);

    ck_assert_msg(owner != NULL, "%s: no template %s", m->name, m->template_name);
    ck_assert_int_eq(templates_source(shared.templates, owner, &source, &error), HONE_OK);
    const char *text = mutant_file(&source, m);
    ck_assert_msg(text != NULL, "%s: no file %s", m->name, m->file);
    ck_assert_msg(mutant_count(text, m->find) == 1, "%s: '%s' stands %zu times in %s", m->name,
                  m->find, mutant_count(text, m->find), m->file);
    ck_assert_msg(strstr(m->replace, m->find) == NULL || strcmp(m->replace, m->find) != 0,
                  "%s: no change", m->name);
}
END_TEST

START_TEST(a_mutant_compiles_to_other_code)
{
    const mutant *m = &mutants[_i];
    hone_error error = {0};
    hone_problem problem;
    template_source source;
    config c;
    plan p;
    bool legal = false;
    char why[160] = "";
    compiled *right = NULL, *wrong = NULL;
    device_facts facts = device();

    if (shared.compiler == NULL) {
        return;
    }
    const manifest *owner = templates_find(shared.templates, m->template_name);
    ck_assert_int_eq(templates_source(shared.templates, owner, &source, &error), HONE_OK);
    ck_assert_msg(hone_problem_parse(m->problem, &problem, &error) == HONE_OK, "%s: %s", m->name,
                  error.message);
    ck_assert_msg(manifest_config_parse(owner, m->config, &c, &error) == HONE_OK, "%s: %s", m->name,
                  error.message);
    ck_assert_int_eq(manifest_legal(owner, &problem, &facts, &c, &legal, why, &error), HONE_OK);
    ck_assert_msg(legal, "%s: %s", m->name, why);
    ck_assert_msg(manifest_plan(owner, &problem, &facts, &c, &p, &error) == HONE_OK, "%s: %s",
                  m->name, error.message);
    mutated made = mutant_apply(&source, m);
    const char *entry = p.launches[0].entry;
    ck_assert_msg(kernels_compile(&shared, &source, entry, facts.arch, &right, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(kernels_compile(&shared, &made.source, entry, facts.arch, &wrong, &error) ==
                      HONE_OK,
                  "%s: %s", m->name, error.message);
    ck_assert_msg(strcmp(right->ptx, wrong->ptx) != 0, "%s: the compiler saw no difference",
                  m->name);
    compiled_free(right);
    compiled_free(wrong);
    mutant_free(&made);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
}

static void teardown(void)
{
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("mutants");

    tcase_add_loop_test(tests, a_mutant_changes_one_place, 0, (int)mutants_len);
    tcase_add_loop_test(tests, a_mutant_compiles_to_other_code, 0, (int)mutants_len);
    return kernels_run("templates/mutants", tests, setup, teardown);
}
