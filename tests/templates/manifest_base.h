/* manifest_base.h - a whole manifest of which tests replace one line. */
#ifndef HONE_TESTS_TEMPLATES_MANIFEST_BASE_H
#define HONE_TESTS_TEMPLATES_MANIFEST_BASE_H

#include "templates/manifest.h"

/* Line 22 with a tensor map. */
#define MAP(operand, keys) "    arguments: [{tensor_map: " operand ", " keys "}]"
#define GOOD_MAP           "type: e4m3, dims: [k, m], strides: [k], box: [128, block_m], swizzle: 128"

/* The base with one line replaced (0: none). Its lines are numbered in manifest_base.c. Freed by
 * the caller. */
char *manifest_base_write(int line, const char *instead);
hone_status manifest_base_parse(int line, const char *instead, manifest **out, hone_error *error);

#endif
