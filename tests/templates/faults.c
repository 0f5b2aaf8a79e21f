/* faults.c - proofs of mutants and of their originals. */
#include "tests/templates/faults.h"

#include <check.h>

static bool passes(const kernels *k, const device *d, const mutant *m,
                   const template_source *source, const inputs_kind *kinds, size_t kinds_len,
                   char reason[240])
{
    hone_error error = {0};
    hone_problem problem;
    config c;
    bool passed = true;
    const manifest *owner = templates_find(k->templates, m->template_name);

    ck_assert_msg(hone_problem_parse(m->problem, &problem, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(manifest_config_parse(owner, m->config, &c, &error) == HONE_OK, "%s",
                  error.message);
    for (size_t i = 0; i < kinds_len && passed; i++) {
        const proof_case one = {
            .m = owner, .source = source, .problem = &problem, .config = &c, .kind = kinds[i]};
        passed = proof_passes(k, d, &one, reason);
    }
    return passed;
}

void fault_hold(const kernels *k, const device *d, const mutant *m, const inputs_kind *kinds,
                size_t kinds_len, bool run)
{
    const manifest *owner = templates_find(k->templates, m->template_name);
    hone_error error = {0};
    template_source source;
    char reason[240] = "";

    ck_assert_int_eq(templates_source(k->templates, owner, &source, &error), HONE_OK);
    mutated made = mutant_apply(&source, m);
    if (run && k->compiler != NULL) {
        ck_assert_msg(passes(k, d, m, &source, kinds, kinds_len, reason), "%s: the original: %s",
                      m->name, reason);
        ck_assert_msg(!passes(k, d, m, &made.source, kinds, kinds_len, reason), "%s: passed",
                      m->name);
        ck_assert_msg(reason[0] != '\0', "%s: refused without a reason", m->name);
    }
    mutant_free(&made);
}
