/* faults.h - a template as it is passes its proof, and with a fault in it does not. */
#ifndef HONE_TESTS_TEMPLATES_FAULTS_H
#define HONE_TESTS_TEMPLATES_FAULTS_H

#include "tests/templates/mutants.h"
#include "tests/templates/proof.h"

/* A mutant stands in the template once, whether it is run or not. With `run` (and a compiler) its
 * original passes on inputs of each of `kinds`, and it is refused on one of them, with a reason;
 * the test fails otherwise. */
void fault_hold(const kernels *k, const device *d, const mutant *m, const inputs_kind *kinds,
                size_t kinds_len, bool run);

#endif
