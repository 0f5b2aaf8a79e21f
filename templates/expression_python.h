/* expression_python.h - the two halves of reading Python: grammar, and arithmetic with fractions of
 * nodes. Private. */
#ifndef HONE_TEMPLATES_EXPRESSION_PYTHON_H
#define HONE_TEMPLATES_EXPRESSION_PYTHON_H

#include "templates/expression_tree.h"

/* A number: num / den as nodes, with bounds of both. */
typedef struct python_operand {
    uint16_t num, den;
    bool fraction; /* den counts; else it is 1 */
    bool truth;    /* of `and` and `or`: whether it is zero is all that is known */
    expression_range range, below;
} python_operand;

typedef struct python_parser {
    const char *source;
    int line;
    const char *text, *at, *end;
    const expression_scope *scope;
    const expression_range *ranges;
    expression_tree *tree;
    int depth;
    bool faults; /* a divisor may be zero: what stands before it may guard it */
    hone_error *error;
} python_parser;

typedef enum python_sign {
    SIGN_ADD,
    SIGN_SUB,
    SIGN_MUL,
    SIGN_FLOOR,
    SIGN_DIV,
    SIGN_MOD
} python_sign;

static const expression_range python_anything = {INT64_MIN, INT64_MAX}, python_boolean = {0, 1};

/* HONE_BAD_TEXT with the place where the parser stands. */
hone_status python_refuse(const python_parser *p, const char *what);
/* The least and the most of `len` > 0 values. */
expression_range python_hull(const int64_t *values, int len);
/* Bounds of a sum, a difference or a product; of the rest nothing is said. */
expression_range python_range(expression_op op, expression_range a, expression_range b);
/* One more node; HONE_LIMIT when the tree is full. */
hone_status python_put(python_parser *p, expression_op op, uint16_t a, uint16_t b, int64_t value,
                       uint16_t *out);
/* A second use of a node: trees share nothing. */
hone_status python_copy(python_parser *p, uint16_t at, uint16_t *out);
hone_status python_number(python_parser *p, int64_t value, python_operand *out);
/* Bring both to one denominator, which is left in a->den. */
hone_status python_level(python_parser *p, python_operand *a, python_operand *b);
/* Refuse what only its truth is known of. */
hone_status python_need_value(const python_parser *p, const python_operand *a);
/* *a = *a / b, exactly. */
hone_status python_divide(python_parser *p, python_operand *a, python_operand b);
/* *a = *a op b; // and % as Python rounds. */
hone_status python_arithmetic(python_parser *p, python_sign op, python_operand *a,
                              python_operand b);
/* *a = *a ** b: a power of two, or a small constant exponent. */
hone_status python_raise(python_parser *p, python_operand *a, python_operand b);
hone_status python_compare(python_parser *p, expression_op op, python_operand a, python_operand b,
                           python_operand *out);
/* *a = *a op b of `and` and `or`. */
hone_status python_join(python_parser *p, expression_op op, python_operand *a, python_operand b);

#endif
