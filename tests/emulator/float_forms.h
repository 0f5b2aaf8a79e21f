/* float_forms.h - forms of floating point whose results the manual says to the bit: sums, products,
 * quotients and roots in all roundings, extremes, comparisons, conversions between floats. */
#ifndef HONE_TESTS_EMULATOR_FLOAT_FORMS_H
#define HONE_TESTS_EMULATOR_FLOAT_FORMS_H

#include "tests/emulator/integer_forms.h"

enum { FLOAT_FORMS = 400 };
size_t float_forms_list(integer_form out[FLOAT_FORMS]); /* their number */

#endif
