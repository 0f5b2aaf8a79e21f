/* rows.c - see rows.h. */
#include "benchmarks/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rows_add(json_t *rows, const char *name, double value, const char *unit, rows_bar kind,
              double bar)
{
    const bool holds = kind == ROWS_AT_LEAST ? value >= bar : value <= bar;
    char text[32];

    snprintf(text, sizeof text, "%s %g", kind == ROWS_AT_LEAST ? ">=" : "<=", bar);
    json_array_append_new(
        rows, json_pack("{s:s, s:f, s:s, s:o, s:o}", "name", name, "value", value, "unit", unit,
                        "bar", kind == ROWS_NO_BAR ? json_null() : json_string(text), "holds",
                        kind == ROWS_NO_BAR ? json_null() : json_boolean(holds)));
}

bool rows_print(json_t *rows, bool json)
{
    size_t i = 0;
    json_t *row = NULL;
    bool all = true;

    json_array_foreach(rows, i, row)
    {
        const json_t *bar = json_object_get(row, "bar"), *holds = json_object_get(row, "holds");
        all = all && !json_is_false(holds);
        if (!json) {
            printf("%-48s %12.4g %-16s %-10s %s\n", json_string_value(json_object_get(row, "name")),
                   json_real_value(json_object_get(row, "value")),
                   json_string_value(json_object_get(row, "unit")),
                   json_is_string(bar) ? json_string_value(bar) : "",
                   json_is_true(holds)    ? "holds"
                   : json_is_false(holds) ? "DOES NOT HOLD"
                                          : "");
        }
    }
    if (json) {
        json_t *whole = json_pack("{s:O}", "rows", rows);
        json_dumpf(whole, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
        json_decref(whole);
    }
    return all;
}

bool rows_want_json(int argc, char **argv)
{
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0)) {
        fprintf(stderr, "Usage: %s [--json]\n", argv[0]);
        exit(2);
    }
    return argc == 2;
}
