/* fixture.h - a problem, a device and manifests from a few lines of text, for the suites of this
 * folder. */
#ifndef HONE_TESTS_TEMPLATES_FIXTURE_H
#define HONE_TESTS_TEMPLATES_FIXTURE_H

#include "templates/manifest.h"

/* An H20 as templates see it. */
device_facts fixture_device(void);

/* A problem from its text; the test fails when it does not parse. */
hone_problem fixture_problem(const char *text);

/* A whole manifest: `params` and `more` stand in place of `params:` and what may follow it. */
manifest *fixture_manifest(const char *params, const char *more);
/* The same with lines of the launch, such as "    arguments: []\n", in place of no arguments. */
manifest *fixture_manifest_launch(const char *params, const char *more, const char *launch);

#endif
