/* rows.h - the rows that a benchmark prints: a figure, its unit, the bar and whether it holds. */
#ifndef HONE_BENCHMARKS_ROWS_H
#define HONE_BENCHMARKS_ROWS_H

#include <jansson.h>
#include <stdbool.h>

typedef enum rows_bar { ROWS_NO_BAR, ROWS_AT_LEAST, ROWS_AT_MOST } rows_bar;

/* Append a row to `rows`. */
void rows_add(json_t *rows, const char *name, double value, const char *unit, rows_bar kind,
              double bar);

/* Print as a table, or as {"rows":[...]}. False when a row does not hold. */
bool rows_print(json_t *rows, bool json);

/* Whether --json is the one argument; ends the program on any other. */
bool rows_want_json(int argc, char **argv);

#endif
