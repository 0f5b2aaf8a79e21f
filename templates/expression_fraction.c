/* expression_fraction.c - arithmetic of formulas that are read from Python: numbers are exact
 * fractions.
 *
 * `a / b` keeps both, and what compares or takes a remainder multiplies them out, so
 * (MDIMC * NDIMC) / MDIMA means what it says where the division leaves a rest. Python rounds such
 * quotients to a double. Denominators are positive. */
#include "templates/expression_python.h"

#include "core/checked.h"

hone_status python_refuse(const python_parser *p, const char *what)
{
    return status_set(p->error, HONE_BAD_TEXT, p->source, p->line,
                      "'%.200s': %s at byte %d; only whole numbers, names, + - * / // %% **, "
                      "comparisons, in, and, or, not, if else, min, max, abs and int are read",
                      p->text, what, (int)(p->at - p->text) + 1);
}

/* ---- Bounds -------------------------------------------------------------------------------- */

expression_range python_hull(const int64_t *values, int len)
{
    expression_range r = {values[0], values[0]};

    for (int i = 1; i < len; i++) {
        r.least = values[i] < r.least ? values[i] : r.least;
        r.most = values[i] > r.most ? values[i] : r.most;
    }
    return r;
}

/* Of a sum, a difference or a product; of the rest nothing is said. */
expression_range python_range(expression_op op, expression_range a, expression_range b)
{
    int64_t v[4];
    bool fits = true;

    switch (op) {
    case EXPRESSION_ADD:
        fits = checked_add_i64(a.least, b.least, &v[0]) && checked_add_i64(a.most, b.most, &v[1]);
        return fits ? python_hull(v, 2) : python_anything;
    case EXPRESSION_SUB:
        fits = checked_sub_i64(a.least, b.most, &v[0]) && checked_sub_i64(a.most, b.least, &v[1]);
        return fits ? python_hull(v, 2) : python_anything;
    case EXPRESSION_MUL:
        fits = checked_mul_i64(a.least, b.least, &v[0]) &&
               checked_mul_i64(a.least, b.most, &v[1]) && checked_mul_i64(a.most, b.least, &v[2]) &&
               checked_mul_i64(a.most, b.most, &v[3]);
        return fits ? python_hull(v, 4) : python_anything;
    default:
        return python_anything;
    }
}

/* ---- Nodes --------------------------------------------------------------------------------- */

hone_status python_put(python_parser *p, expression_op op, uint16_t a, uint16_t b, int64_t value,
                       uint16_t *out)
{
    if (p->tree->len == EXPRESSION_MAX_BYTES) {
        return status_set(p->error, HONE_LIMIT, p->source, p->line,
                          "'%.200s' takes over %d steps; split it at its `and`s", p->text,
                          EXPRESSION_MAX_BYTES);
    }
    p->tree->nodes[p->tree->len] = (expression_node){.op = op, .child = {a, b, 0}, .value = value};
    *out = (uint16_t)p->tree->len++;
    return HONE_OK;
}

/* A second use of a node: trees share nothing. */
hone_status python_copy(python_parser *p, uint16_t at, uint16_t *out)
{
    hone_status status = HONE_OK;
    expression_node node = p->tree->nodes[at];
    const int children = node.op >= EXPRESSION_LEAVES                                  ? 0
                         : node.op == EXPRESSION_CHOOSE                                ? 3
                         : node.op >= EXPRESSION_UNARY && node.op < EXPRESSION_CONTROL ? 1
                                                                                       : 2;

    for (int i = 0; i < children; i++) {
        TRY(python_copy(p, node.child[i], &node.child[i]));
    }
    TRY(python_put(p, node.op, node.child[0], node.child[1], node.value, out));
    p->tree->nodes[*out].child[2] = node.child[2];
done:
    return status;
}

hone_status python_number(python_parser *p, int64_t value, python_operand *out)
{
    *out = (python_operand){.range = {value, value}, .below = {1, 1}};
    return python_put(p, EXPRESSION_NUMBER, 0, 0, value, &out->num);
}

static hone_status multiply(python_parser *p, uint16_t a, uint16_t b, bool with, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t again = 0;

    *out = a;
    if (with) {
        TRY(python_copy(p, b, &again));
        TRY(python_put(p, EXPRESSION_MUL, a, again, 0, out));
    }
done:
    return status;
}

/* Bring both to one denominator, which is left in a->den. */
hone_status python_level(python_parser *p, python_operand *a, python_operand *b)
{
    hone_status status = HONE_OK;
    const python_operand was = *a;

    TRY(multiply(p, a->num, b->den, b->fraction, &a->num));
    TRY(multiply(p, b->num, was.den, was.fraction, &b->num));
    a->range = b->fraction ? python_range(EXPRESSION_MUL, was.range, b->below) : was.range;
    b->range = was.fraction ? python_range(EXPRESSION_MUL, b->range, was.below) : b->range;
    if (b->fraction) {
        TRY(multiply(p, b->den, was.den, was.fraction, &a->den));
        a->below = was.fraction ? python_range(EXPRESSION_MUL, b->below, was.below) : b->below;
    }
    a->fraction = was.fraction || b->fraction;
done:
    return status;
}

/* x mod y with the python_sign of y, of whole numbers. */
static hone_status remainder_of(python_parser *p, python_operand x, python_operand y, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t again = 0, sum = 0, first = 0, rest = 0;

    p->faults = p->faults || (y.range.least <= 0 && y.range.most >= 0);
    TRY(python_put(p, EXPRESSION_MOD, x.num, y.num, 0, &first));
    *out = first;
    if (x.range.least < 0 || y.range.least < 0) {
        TRY(python_copy(p, y.num, &again));
        TRY(python_put(p, EXPRESSION_ADD, first, again, 0, &sum));
        TRY(python_copy(p, y.num, &rest));
        TRY(python_put(p, EXPRESSION_MOD, sum, rest, 0, out));
    }
done:
    return status;
}

/* The quotient rounded down: (x - x mod y) / y. */
static hone_status floor_of(python_parser *p, python_operand x, python_operand y, uint16_t *out)
{
    hone_status status = HONE_OK;
    python_operand x2 = x, y2 = y;
    uint16_t rest = 0, whole = x.num;

    if (x.range.least < 0 || y.range.least < 0) {
        TRY(python_copy(p, x.num, &x2.num));
        TRY(python_copy(p, y.num, &y2.num));
        TRY(remainder_of(p, x2, y2, &rest));
        TRY(python_put(p, EXPRESSION_SUB, x.num, rest, 0, &whole));
    }
    p->faults = p->faults || (y.range.least <= 0 && y.range.most >= 0);
    TRY(python_put(p, EXPRESSION_DIV, whole, y.num, 0, out));
done:
    return status;
}

/* ---- Operators ----------------------------------------------------------------------------- */

hone_status python_need_value(const python_parser *p, const python_operand *a)
{
    return a->truth
               ? python_refuse(p, "the value of `and` or `or` in a sum or a comparison before here")
               : HONE_OK;
}

hone_status python_divide(python_parser *p, python_operand *a, python_operand b)
{
    hone_status status = HONE_OK;
    uint16_t zero = 0, den = 0, guard = 0;

    if (b.range.least < 0) {
        return python_refuse(p, "a division by what may be negative, before here,");
    }
    if (b.range.least == 0) { /* a zero must fault, not be multiplied away */
        p->faults = true;
        TRY(python_put(p, EXPRESSION_NUMBER, 0, 0, 0, &zero));
        TRY(python_copy(p, b.num, &den));
        TRY(python_put(p, EXPRESSION_DIV, zero, den, 0, &guard));
        TRY(python_put(p, EXPRESSION_ADD, a->num, guard, 0, &a->num));
    }
    TRY(multiply(p, a->num, b.den, b.fraction, &a->num));
    a->range = b.fraction ? python_range(EXPRESSION_MUL, a->range, b.below) : a->range;
    TRY(multiply(p, b.num, a->den, a->fraction, &a->den));
    a->below = a->fraction ? python_range(EXPRESSION_MUL, a->below, b.range) : b.range;
    a->fraction = true;
done:
    return status;
}

/* a % b or a // b, b positive or negative; the rest keeps the common denominator. */
static hone_status round_down(python_parser *p, bool rest, python_operand *a, python_operand b)
{
    hone_status status = HONE_OK;

    TRY(python_level(p, a, &b));
    if (!rest) {
        TRY(floor_of(p, *a, b, &a->num));
        a->fraction = false;
    } else {
        TRY(remainder_of(p, *a, b, &a->num));
    }
    a->range = rest && b.range.least >= 0 ? (expression_range){0, b.range.most} : python_anything;
    if (!rest && b.range.least >= 1 && a->range.least >= 0) {
        a->range.least = 0;
    }
done:
    return status;
}

hone_status python_arithmetic(python_parser *p, python_sign op, python_operand *a, python_operand b)
{
    hone_status status = HONE_OK;
    static const expression_op plain[] = {EXPRESSION_ADD, EXPRESSION_SUB, EXPRESSION_MUL};

    TRY(python_need_value(p, a));
    TRY(python_need_value(p, &b));
    if (op == SIGN_DIV) {
        return python_divide(p, a, b);
    }
    if (op >= SIGN_FLOOR) {
        return round_down(p, op == SIGN_MOD, a, b);
    }
    if (op == SIGN_MUL) {
        if (b.fraction) {
            TRY(multiply(p, b.den, a->den, a->fraction, &a->den));
            a->below = a->fraction ? python_range(EXPRESSION_MUL, a->below, b.below) : b.below;
            a->fraction = true;
        }
    } else {
        TRY(python_level(p, a, &b));
    }
    a->range = python_range(plain[op], a->range, b.range);
    TRY(python_put(p, plain[op], a->num, b.num, 0, &a->num));
done:
    return status;
}

hone_status python_compare(python_parser *p, expression_op op, python_operand a, python_operand b,
                           python_operand *out)
{
    hone_status status = HONE_OK;

    TRY(python_need_value(p, &a));
    TRY(python_need_value(p, &b));
    TRY(python_level(p, &a, &b));
    *out = (python_operand){.range = python_boolean, .below = {1, 1}};
    TRY(python_put(p, op, a.num, b.num, 0, &out->num));
done:
    return status;
}

hone_status python_join(python_parser *p, expression_op op, python_operand *a, python_operand b)
{
    const bool exact = a->range.least >= 0 && a->range.most <= 1 && b.range.least >= 0 &&
                       b.range.most <= 1 && !a->truth && !b.truth && !a->fraction && !b.fraction;
    python_operand made = {.truth = !exact, .range = python_boolean, .below = {1, 1}};
    hone_status status = python_put(p, op, a->num, b.num, 0, &made.num);

    *a = made;
    return status;
}

/* base ** exponent: a power of two, or a small constant exponent. */
hone_status python_raise(python_parser *p, python_operand *a, python_operand b)
{
    hone_status status = HONE_OK;
    const python_operand base = *a;
    const int64_t times = b.range.least;
    const bool constant = times == b.range.most && !b.fraction;

    TRY(python_need_value(p, a));
    TRY(python_need_value(p, &b));
    if (a->range.least == 2 && a->range.most == 2 && !a->fraction && !b.fraction &&
        b.range.least >= 0) {
        a->range = (expression_range){1, INT64_MAX};
        return python_put(p, EXPRESSION_POW2, b.num, 0, 0, &a->num);
    }
    if (!constant || times < 1 || times > 8 || a->fraction) {
        return python_refuse(p, "a power other than 2 ** x or x ** 1..8 before here");
    }
    for (int64_t i = 1; i < times; i++) {
        TRY(python_copy(p, base.num, &b.num));
        TRY(python_put(p, EXPRESSION_MUL, a->num, b.num, 0, &a->num));
        a->range = python_range(EXPRESSION_MUL, a->range, base.range);
    }
done:
    return status;
}
