/* expression_python.c - a restriction of another tuner, written in Python, as trees of our own
 * formulas. */
#include "templates/expression_python.h"

#include "core/checked.h"

#include <string.h>

/* ---- Grammar ------------------------------------------------------------------------------- */

static hone_status parse_test(python_parser *p, python_operand *out);

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static void skip_space(python_parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')) {
        p->at++;
    }
}

/* A sign, or a word that ends there. */
static bool accept(python_parser *p, const char *token)
{
    const size_t len = strlen(token);

    skip_space(p);
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len) != 0 ||
        (is_name(token[0]) && p->at + len < p->end && is_name(p->at[len]))) {
        return false;
    }
    p->at += len;
    return true;
}

static hone_status enter(python_parser *p)
{
    return ++p->depth > EXPRESSION_MAX_DEPTH ? python_refuse(p, "nesting deeper than 32") : HONE_OK;
}

/* 12, or 0.25 as a fraction. */
static hone_status parse_number(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    int64_t value = 0, scale = 1;
    bool point = false, fits = true;
    python_operand below = {0};

    for (; p->at < p->end && (is_digit(*p->at) || (*p->at == '.' && !point)) && fits; p->at++) {
        point = point || *p->at == '.';
        if (is_digit(*p->at)) {
            fits = checked_mul_i64(value, 10, &value) &&
                   checked_add_i64(value, *p->at - '0', &value) &&
                   (!point || checked_mul_i64(scale, 10, &scale));
        }
    }
    if (!fits || (p->at < p->end && (is_name(*p->at) || *p->at == '.'))) {
        return python_refuse(p, "a number that cannot be read");
    }
    TRY(python_number(p, value, out));
    if (scale > 1) {
        TRY(python_number(p, scale, &below));
        TRY(python_divide(p, out, below));
    }
done:
    return status;
}

static hone_status parse_list(python_parser *p, python_operand *first, python_operand *rest,
                              int most, int *len, const char *end)
{
    hone_status status = HONE_OK;

    TRY(parse_test(p, first));
    TRY(python_need_value(p, first));
    for (*len = 0; !accept(p, end);) {
        if (!accept(p, ",") || *len == most) {
            return python_refuse(p, "a list that does not end");
        }
        if (accept(p, end)) {
            break;
        }
        TRY(parse_test(p, &rest[*len]));
        TRY(python_need_value(p, &rest[*len]));
        ++*len;
    }
done:
    return status;
}

enum { MOST_ARGUMENTS = 32 };

/* min, max of two and more; abs, int of one. */
static hone_status parse_call(python_parser *p, const char *name, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand rest[MOST_ARGUMENTS];
    const bool smallest = strcmp(name, "min") == 0, whole = strcmp(name, "int") == 0;
    const bool several = smallest || strcmp(name, "max") == 0;
    int len = 0;

    TRY(enter(p));
    TRY(parse_list(p, out, rest, several ? MOST_ARGUMENTS : 0, &len, ")"));
    p->depth--;
    if (several != (len > 0)) {
        return python_refuse(p, "a call with the wrong number of arguments before here");
    }
    if (whole && out->fraction) { /* towards zero, as the machine divides */
        TRY(python_put(p, EXPRESSION_DIV, out->num, out->den, 0, &out->num));
        out->fraction = false;
        out->range =
            out->range.least >= 0 ? (expression_range){0, out->range.most} : python_anything;
    }
    if (!several && !whole) {
        rest[0] = *out;
        TRY(python_copy(p, out->num, &rest[0].num));
        TRY(python_put(p, EXPRESSION_NEG, rest[0].num, 0, 0, &rest[0].num));
        TRY(python_put(p, EXPRESSION_MAX, out->num, rest[0].num, 0, &out->num));
        out->range = (expression_range){0, INT64_MAX};
    }
    for (int i = 0; i < len; i++) {
        TRY(python_level(p, out, &rest[i]));
        TRY(python_put(p, smallest ? EXPRESSION_MIN : EXPRESSION_MAX, out->num, rest[i].num, 0,
                       &out->num));
        const int64_t ends[] = {out->range.least, out->range.most, rest[i].range.least,
                                rest[i].range.most};
        out->range = python_hull(ends, 4);
    }
done:
    return status;
}

static hone_status parse_name(python_parser *p, python_operand *out)
{
    static const char *const calls[] = {"min", "max", "abs", "int"};
    const char *name = p->at;
    expression_symbol symbol = {0};

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (accept(p, calls[i])) {
            return accept(p, "(") ? parse_call(p, calls[i], out)
                                  : python_refuse(p, "a function without '('");
        }
    }
    if (accept(p, "True") || accept(p, "False")) {
        return python_number(p, name[0] == 'T', out);
    }
    while (p->at < p->end && is_name(*p->at)) {
        p->at++;
    }
    const size_t len = (size_t)(p->at - name);
    if (!p->scope->find(p->scope->context, name, len, &symbol)) {
        return status_set(p->error, HONE_BAD_TEXT, p->source, p->line,
                          "'%.200s': no parameter or whole constant '%.*s'", p->text,
                          len < 80 ? (int)len : 80, name);
    }
    if (symbol.constant) {
        return python_number(p, symbol.value, out);
    }
    *out = (python_operand){.range = p->ranges != NULL ? p->ranges[symbol.slot] : python_anything,
                            .below = {1, 1}};
    return python_put(p, EXPRESSION_SLOT, 0, 0, symbol.slot, &out->num);
}

static hone_status parse_atom(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;

    if (accept(p, "(")) {
        TRY(enter(p));
        TRY(parse_test(p, out));
        p->depth--;
        return accept(p, ")") ? HONE_OK : python_refuse(p, "no ')'");
    }
    skip_space(p);
    if (p->at < p->end && is_digit(*p->at)) {
        return parse_number(p, out);
    }
    if (p->at < p->end && is_name(*p->at)) {
        return parse_name(p, out);
    }
    return python_refuse(p, p->at < p->end ? "no operand" : "an end where an operand should stand");
done:
    return status;
}

static hone_status parse_unary(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand exponent;

    if (accept(p, "-") || accept(p, "+")) {
        const bool negative = p->at[-1] == '-';
        TRY(enter(p));
        TRY(parse_unary(p, out));
        TRY(python_need_value(p, out));
        p->depth--;
        if (negative) {
            TRY(python_put(p, EXPRESSION_NEG, out->num, 0, 0, &out->num));
            out->range = python_range(EXPRESSION_SUB, (expression_range){0, 0}, out->range);
        }
        goto done;
    }
    TRY(parse_atom(p, out));
    if (accept(p, "**")) {
        TRY(enter(p));
        TRY(parse_unary(p, &exponent));
        p->depth--;
        TRY(python_raise(p, out, exponent));
    }
done:
    return status;
}

static bool next_sign(python_parser *p, bool products, python_sign *out)
{
    static const struct {
        const char *text;
        python_sign op;
    } signs[] = {{"+", SIGN_ADD},    {"-", SIGN_SUB}, {"*", SIGN_MUL},
                 {"//", SIGN_FLOOR}, {"/", SIGN_DIV}, {"%", SIGN_MOD}};

    for (size_t i = products ? 2 : 0; i < (products ? ARRAY_LEN(signs) : 2); i++) {
        if (accept(p, signs[i].text)) {
            *out = signs[i].op;
            return true;
        }
    }
    return false;
}

static hone_status parse_product(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand right;
    python_sign op;

    TRY(parse_unary(p, out));
    while (next_sign(p, true, &op)) {
        TRY(parse_unary(p, &right));
        TRY(python_arithmetic(p, op, out, right));
    }
done:
    return status;
}

static hone_status parse_sum(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand right;
    python_sign op;

    TRY(parse_product(p, out));
    while (next_sign(p, false, &op)) {
        TRY(parse_product(p, &right));
        TRY(python_arithmetic(p, op, out, right));
    }
done:
    return status;
}

/* A copy for a second use. */
static hone_status again(python_parser *p, const python_operand *a, python_operand *out)
{
    hone_status status = HONE_OK;

    *out = *a;
    TRY(python_copy(p, a->num, &out->num));
    if (a->fraction) {
        TRY(python_copy(p, a->den, &out->den));
    }
done:
    return status;
}

/* x in (a, b, ...): one of them is equal. */
static hone_status parse_members(python_parser *p, python_operand left, bool absent,
                                 python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand first, rest[MOST_ARGUMENTS], same, twin;
    int len = 0;
    const bool round = accept(p, "(");

    if (!round && !accept(p, "[")) {
        return python_refuse(p, "`in` without a list");
    }
    TRY(enter(p));
    TRY(parse_list(p, &first, rest, MOST_ARGUMENTS, &len, round ? ")" : "]"));
    p->depth--;
    TRY(again(p, &left, &twin));
    TRY(python_compare(p, EXPRESSION_EQ, twin, first, out));
    for (int i = 0; i < len; i++) {
        TRY(again(p, &left, &twin));
        TRY(python_compare(p, EXPRESSION_EQ, twin, rest[i], &same));
        TRY(python_join(p, EXPRESSION_OR, out, same));
    }
    if (absent) {
        TRY(python_put(p, EXPRESSION_NOT, out->num, 0, 0, &out->num));
    }
done:
    return status;
}

/* a < b <= c: each pair holds. */
static hone_status parse_comparison(python_parser *p, python_operand *out)
{
    static const struct {
        const char *text;
        expression_op op;
    } signs[] = {{"==", EXPRESSION_EQ}, {"!=", EXPRESSION_NE}, {"<=", EXPRESSION_LE},
                 {">=", EXPRESSION_GE}, {"<", EXPRESSION_LT},  {">", EXPRESSION_GT}};
    hone_status status = HONE_OK;
    python_operand left, right, pair, kept;
    bool any = false, more = true;

    TRY(parse_sum(p, &left));
    *out = left;
    while (more) {
        more = false;
        for (size_t i = 0; i < ARRAY_LEN(signs) && !more; i++) {
            if (!accept(p, signs[i].text)) {
                continue;
            }
            more = true;
            TRY(parse_sum(p, &right));
            TRY(again(p, &right, &kept));
            TRY(python_compare(p, signs[i].op, left, right, &pair));
            if (any) {
                TRY(python_join(p, EXPRESSION_AND, out, pair));
            } else {
                *out = pair;
            }
            any = true;
            left = kept;
        }
    }
    const char *mark = p->at;
    const bool absent = accept(p, "not");
    if (accept(p, "in")) {
        return any ? python_refuse(p, "`in` after a comparison")
                   : parse_members(p, left, absent, out);
    }
    p->at = mark;
done:
    return status;
}

static hone_status parse_not(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;

    if (!accept(p, "not")) {
        return parse_comparison(p, out);
    }
    TRY(enter(p));
    TRY(parse_not(p, out));
    p->depth--;
    *out = (python_operand){.num = out->num, .range = python_boolean, .below = {1, 1}};
    TRY(python_put(p, EXPRESSION_NOT, out->num, 0, 0, &out->num));
done:
    return status;
}

static hone_status parse_and(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand right;

    TRY(parse_not(p, out));
    while (accept(p, "and")) {
        TRY(parse_not(p, &right));
        TRY(python_join(p, EXPRESSION_AND, out, right));
    }
done:
    return status;
}

static hone_status parse_or(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand right;

    TRY(parse_and(p, out));
    while (accept(p, "or")) {
        TRY(parse_and(p, &right));
        TRY(python_join(p, EXPRESSION_OR, out, right));
    }
done:
    return status;
}

/* a if c else b */
static hone_status parse_test(python_parser *p, python_operand *out)
{
    hone_status status = HONE_OK;
    python_operand condition, other;
    uint16_t made = 0;

    TRY(parse_or(p, out));
    if (!accept(p, "if")) {
        goto done;
    }
    TRY(enter(p));
    TRY(parse_or(p, &condition));
    if (!accept(p, "else")) {
        return python_refuse(p, "`if` without `else`");
    }
    TRY(parse_test(p, &other));
    p->depth--;
    if (out->fraction || other.fraction) {
        return python_refuse(p, "a choice between fractions before here");
    }
    TRY(python_put(p, EXPRESSION_CHOOSE, condition.num, out->num, 0, &made));
    p->tree->nodes[made].child[2] = other.num;
    const int64_t ends[] = {out->range.least, out->range.most, other.range.least, other.range.most};
    *out = (python_operand){.num = made,
                            .truth = out->truth || other.truth,
                            .range = python_hull(ends, 4),
                            .below = {1, 1}};
done:
    return status;
}

/* ---- Both sides of each `and` at the top stand alone, unless one may guard the other. ------ */

static hone_status split(const python_parser *p, uint16_t at, expression **out, size_t most,
                         size_t *len)
{
    hone_status status = HONE_OK;
    const expression_node *node = &p->tree->nodes[at];

    if (node->op == EXPRESSION_AND && !p->faults) {
        TRY(split(p, node->child[0], out, most, len));
        return split(p, node->child[1], out, most, len);
    }
    if (*len == most) {
        return status_set(p->error, HONE_LIMIT, p->source, p->line, "over %zu rules", most);
    }
    expression_tree one = *p->tree;
    one.root = at;
    TRY(expression_build(p->source, p->line, p->text, &one, &out[*len], p->error));
    ++*len;
done:
    return status;
}

hone_status expression_compile_python(const char *source, int line, const char *text,
                                      const expression_scope *scope, const expression_range *ranges,
                                      expression **out, size_t most, size_t *len, hone_error *error)
{
    hone_status status = HONE_OK;
    expression_tree tree = {0};
    python_parser p = {source, line, text,  text, text + strlen(text), scope, ranges,
                       &tree,  0,    false, error};
    python_operand all;

    *len = 0;
    if (p.end - p.text > EXPRESSION_PYTHON_BYTES) {
        return status_set(error, HONE_LIMIT, source, line, "a restriction of over %d bytes",
                          EXPRESSION_PYTHON_BYTES);
    }
    TRY(parse_test(&p, &all));
    skip_space(&p);
    if (p.at < p.end) {
        return python_refuse(&p, "what cannot be read");
    }
    status = split(&p, all.num, out, most, len);
done:
    for (; status != HONE_OK && *len > 0; --*len) {
        expression_free(out[*len - 1]);
        out[*len - 1] = NULL;
    }
    return status;
}
