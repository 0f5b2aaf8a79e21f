/* expression.h - the integer formulas of manifests: parsed once, folded, run by a small accumulator
 * machine.
 *
 * 64-bit signed, every step checked. `+ - * / %` as in C (division truncates), comparison, `&& || !
 * ?:` (the side that is not taken is not evaluated), and functions: ceil_div(a, b) and round_up(a,
 * b) with b > 0, min, max, pow2(x) = 2^x, log2(x) = the floor of the binary logarithm. Decimal
 * numbers, `true`, `false`, names. At most 256 bytes and 32 levels of nesting. Immutable after
 * compiling, so shared freely between threads. */
#ifndef HONE_TEMPLATES_EXPRESSION_H
#define HONE_TEMPLATES_EXPRESSION_H

#include "core/status.h"

#include <stdbool.h>

#define EXPRESSION_MAX_BYTES 256
#define EXPRESSION_MAX_DEPTH 32
#define EXPRESSION_MAX_SLOTS 192

typedef struct expression expression;

/* What a name stands for: a number, or a slot of the value array. */
typedef struct expression_symbol {
    bool constant;
    int64_t value; /* constant: the number */
    uint32_t slot; /* else: index below EXPRESSION_MAX_SLOTS */
} expression_symbol;

/* Where names come from. find returns false for an unknown name. */
typedef struct expression_scope {
    bool (*find)(const void *context, const char *name, size_t len, expression_symbol *out);
    const void *context;
} expression_scope;

/* Why an evaluation has no value. */
typedef enum expression_fault {
    EXPRESSION_FINE,
    EXPRESSION_ZERO,     /* division by zero, or by a negative in ceil_div and round_up */
    EXPRESSION_OVERFLOW, /* the result does not fit 64 bits */
    EXPRESSION_DOMAIN,   /* log2 of less than 1, pow2 of a negative */
} expression_fault;

/* Parse `text`; `source` and `line` say where it stands and are repeated in every error (source is
 * borrowed). HONE_BAD_MANIFEST for what does not parse, HONE_LIMIT past the limits. Caller frees
 * *out. */
hone_status expression_compile(const char *source, int line, const char *text, size_t len,
                               const expression_scope *scope, expression **out, hone_error *error);
void expression_free(expression *e); /* NULL is fine */

/* Least and most value of a slot, inclusive. */
typedef struct expression_range {
    int64_t least, most;
} expression_range;

/* At most this much text of a restriction in Python. */
#define EXPRESSION_PYTHON_BYTES 4096

/* A restriction as other tuners write them: a Python expression over whole numbers, names, + - * /
 * // % **, comparisons (chained, too), in, and, or, not, if else, min, max, abs, int. `/` is exact,
 * where Python rounds to a double; % and // follow the divisor's sign as there. Both sides of each
 * `and` at the top become expressions of their own, unless a divisor may be zero and what stands
 * before it its guard: *len of at most `most` go to `out`, the caller
 * frees them. `ranges` by slot says what names can be (NULL: unknown): a division by what may be
 * negative is refused. HONE_BAD_TEXT names the byte, HONE_LIMIT past the limits. */
hone_status expression_compile_python(const char *source, int line, const char *text,
                                      const expression_scope *scope, const expression_range *ranges,
                                      expression **out, size_t most, size_t *len,
                                      hone_error *error);

/* The same formula with the slots whose known[slot] is true replaced by values[slot] and folded. */
hone_status expression_bind(const expression *e, const int64_t *values, const bool *known,
                            expression **out, hone_error *error);

/* Evaluate; HONE_OVERFLOW or HONE_BAD_MANIFEST name the formula and its line. */
hone_status expression_evaluate(const expression *e, const int64_t *values, int64_t *out,
                                hone_error *error);

/* The same for inner loops: no message. */
expression_fault expression_run(const expression *e, const int64_t *values, int64_t *out);
/* The status and message of a fault that expression_run gave. */
hone_status expression_fail(const expression *e, expression_fault fault, hone_error *error);

bool expression_uses(const expression *e, uint32_t slot);
const char *expression_text(const expression *e); /* as it was written */
int expression_line(const expression *e);

/* Whether a word is one of the language's own: a function, true or false. */
bool expression_reserved(const char *name, size_t len);

#endif
