/* convert_print.h - what `hone convert` prints of a conversion and of a check. */
#ifndef HONE_CLI_CONVERT_PRINT_H
#define HONE_CLI_CONVERT_PRINT_H

#include "convert/check.h"
#include "convert/convert.h"

#include <jansson.h>

/* The report of a conversion, as text on stdout or as JSON. */
void convert_print(const plan *p, const char *path, const convert_row *rows, double seconds,
                   bool json);

/* What a check found. */
void convert_print_check(const char *path, const check_report *report, bool json);

#endif
