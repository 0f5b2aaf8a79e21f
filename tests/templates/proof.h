/* proof.h - one candidate on an emulated device: compiled, launched between red zones, verified. */
#ifndef HONE_TESTS_TEMPLATES_PROOF_H
#define HONE_TESTS_TEMPLATES_PROOF_H

#include "bench/inputs.h"
#include "tests/templates/kernels.h"
#include "runtime/device.h"

typedef struct proof_case {
    const manifest *m;
    const template_source *source; /* what to compile: the template's own, or a changed one */
    const hone_problem *problem;
    const config *config;
    inputs_kind kind;
} proof_case;

/* The verdict, with what is wrong in `reason` (""  when it passed): a fault of the launch counts as
 * refused. The test fails when no verdict can be reached, for instance because the config is not
 * legal. */
bool proof_passes(const kernels *k, const device *d, const proof_case *c, char reason[240]);

/* The code of a case; one kernel serves every size of its family. The caller frees it. */
compiled *proof_compile(const kernels *k, const device *d, const proof_case *c);

/* Launch such code on given operands and hand over what was written, with no verdict; the test fails when the
 * launch does. *after is freed by inputs_free_outputs, before `before` is. `kind` is not used. */
void proof_launch(const device *d, const proof_case *c, const compiled *code, const inputs *before,
                  inputs *after);

#endif
