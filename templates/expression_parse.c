/* expression_parse.c - text to tree, by precedence climbing. Refuses what is too long or nested too
 * deeply before it costs anything. */
#include "templates/expression_tree.h"

#include "core/checked.h"

#include <string.h>

typedef struct parser {
    const char *source;
    int line;
    const char *text, *at, *end;
    const expression_scope *scope;
    expression_tree *tree;
    int depth;
    hone_error *error;
} parser;

/* Longer operators first: "<=" must not be read as "<". */
static const struct {
    const char *text;
    expression_op op;
    int precedence;
} binaries[] = {
    {"||", EXPRESSION_OR, 1}, {"&&", EXPRESSION_AND, 2}, {"==", EXPRESSION_EQ, 3},
    {"!=", EXPRESSION_NE, 3}, {"<=", EXPRESSION_LE, 4},  {">=", EXPRESSION_GE, 4},
    {"<", EXPRESSION_LT, 4},  {">", EXPRESSION_GT, 4},   {"+", EXPRESSION_ADD, 5},
    {"-", EXPRESSION_SUB, 5}, {"*", EXPRESSION_MUL, 6},  {"/", EXPRESSION_DIV, 6},
    {"%", EXPRESSION_MOD, 6},
};

static const struct {
    const char *name;
    expression_op op;
    uint32_t arity;
} functions[] = {
    {"ceil_div", EXPRESSION_CEIL_DIV, 2}, {"round_up", EXPRESSION_ROUND_UP, 2},
    {"min", EXPRESSION_MIN, 2},           {"max", EXPRESSION_MAX, 2},
    {"pow2", EXPRESSION_POW2, 1},         {"log2", EXPRESSION_LOG2, 1},
};

static const struct {
    const char *name;
    int64_t value;
} words[] = {{"true", 1}, {"false", 0}};

static bool same(const char *word, const char *name, size_t len)
{
    return strlen(word) == len && memcmp(word, name, len) == 0;
}

bool expression_reserved(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (same(functions[i].name, name, len)) {
            return true;
        }
    }
    return same(words[0].name, name, len) || same(words[1].name, name, len);
}

static hone_status refuse(const parser *p, const char *what)
{
    return status_set(p->error, HONE_BAD_MANIFEST, p->source, p->line,
                      "'%s': %s at byte %d; see the grammar in docs/design.md", p->text, what,
                      (int)(p->at - p->text) + 1);
}

static void skip_space(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')) {
        p->at++;
    }
}

static bool accept(parser *p, const char *token)
{
    size_t len = strlen(token);

    skip_space(p);
    if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

static uint16_t add_node(parser *p, expression_op op, const uint16_t child[3], int64_t value)
{
    expression_node *node = &p->tree->nodes[p->tree->len];

    *node = (expression_node){.op = op, .value = value};
    if (child != NULL) {
        memcpy(node->child, child, sizeof node->child);
    }
    return (uint16_t)p->tree->len++;
}

static hone_status parse_choice(parser *p, uint16_t *out);

static hone_status enter(parser *p)
{
    if (++p->depth > EXPRESSION_MAX_DEPTH) {
        return status_set(p->error, HONE_LIMIT, p->source, p->line,
                          "'%.60s...' nests deeper than %d; split it with `let`", p->text,
                          EXPRESSION_MAX_DEPTH);
    }
    return HONE_OK;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static hone_status parse_number(parser *p, uint16_t *out)
{
    int64_t value = 0;
    const char *start = p->at;

    while (p->at < p->end && is_digit(*p->at)) {
        if (!checked_mul_i64(value, 10, &value) || !checked_add_i64(value, *p->at - '0', &value)) {
            return status_set(p->error, HONE_OVERFLOW, p->source, p->line,
                              "'%s': a number does not fit 64 bits", p->text);
        }
        p->at++;
    }
    if (*start == '0' && p->at - start > 1) {
        return refuse(p, "a number with a leading zero");
    }
    if (p->at < p->end && is_name(*p->at)) {
        return refuse(p, "letters after a number");
    }
    *out = add_node(p, EXPRESSION_NUMBER, NULL, value);
    return HONE_OK;
}

static hone_status parse_call(parser *p, size_t function, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t child[3] = {0};

    if (!accept(p, "(")) {
        return refuse(p, "a function without '('");
    }
    for (uint32_t i = 0; i < functions[function].arity; i++) {
        if (i > 0 && !accept(p, ",")) {
            return refuse(p, "a function with too few arguments");
        }
        TRY(parse_choice(p, &child[i]));
    }
    if (!accept(p, ")")) {
        return refuse(p, "no ')' after a function's arguments");
    }
    *out = add_node(p, functions[function].op, child, 0);
done:
    return status;
}

static hone_status parse_name(parser *p, uint16_t *out)
{
    const char *name = p->at;
    expression_symbol symbol = {0};

    while (p->at < p->end && is_name(*p->at)) {
        p->at++;
    }
    size_t len = (size_t)(p->at - name);
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        if (same(functions[i].name, name, len)) {
            return parse_call(p, i, out);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (same(words[i].name, name, len)) {
            *out = add_node(p, EXPRESSION_NUMBER, NULL, words[i].value);
            return HONE_OK;
        }
    }
    if (!p->scope->find(p->scope->context, name, len, &symbol)) {
        return status_set(p->error, HONE_BAD_MANIFEST, p->source, p->line,
                          "'%s': no name '%.*s' here; use a parameter, a `let` above, a field of "
                          "the op or a device field",
                          p->text, (int)len, name);
    }
    *out = symbol.constant ? add_node(p, EXPRESSION_NUMBER, NULL, symbol.value)
                           : add_node(p, EXPRESSION_SLOT, NULL, symbol.slot);
    return HONE_OK;
}

static hone_status parse_unary(parser *p, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t child[3] = {0};
    bool negative = accept(p, "-");

    if (negative || accept(p, "!")) {
        TRY(enter(p));
        TRY(parse_unary(p, &child[0]));
        p->depth--;
        *out = add_node(p, negative ? EXPRESSION_NEG : EXPRESSION_NOT, child, 0);
        return HONE_OK;
    }
    if (accept(p, "(")) {
        TRY(parse_choice(p, out));
        return accept(p, ")") ? HONE_OK : refuse(p, "no ')'");
    }
    if (p->at < p->end && is_digit(*p->at)) {
        return parse_number(p, out);
    }
    if (p->at < p->end && is_name(*p->at) && *p->at != '_') {
        return parse_name(p, out);
    }
    return refuse(p, p->at < p->end ? "no operand" : "it ends where an operand should stand");
done:
    return status;
}

/* The binary operator that stands next and binds at least as tightly, or -1. */
static int next_binary(parser *p, int precedence)
{
    skip_space(p);
    for (size_t i = 0; i < ARRAY_LEN(binaries); i++) {
        size_t len = strlen(binaries[i].text);
        if ((size_t)(p->end - p->at) >= len && memcmp(p->at, binaries[i].text, len) == 0) {
            return binaries[i].precedence >= precedence ? (int)i : -1;
        }
    }
    return -1;
}

static hone_status parse_binary(parser *p, int precedence, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t child[3] = {0};
    int found = -1;

    TRY(parse_unary(p, &child[0]));
    while ((found = next_binary(p, precedence)) >= 0) {
        p->at += strlen(binaries[found].text);
        TRY(parse_binary(p, binaries[found].precedence + 1, &child[1]));
        child[0] = add_node(p, binaries[found].op, child, 0);
    }
    *out = child[0];
done:
    return status;
}

static hone_status parse_choice(parser *p, uint16_t *out)
{
    hone_status status = HONE_OK;
    uint16_t child[3] = {0};

    TRY(enter(p));
    TRY(parse_binary(p, 1, &child[0]));
    if (accept(p, "?")) {
        TRY(parse_choice(p, &child[1]));
        if (!accept(p, ":")) {
            return refuse(p, "'?' without ':'");
        }
        TRY(parse_choice(p, &child[2]));
        child[0] = add_node(p, EXPRESSION_CHOOSE, child, 0);
    }
    p->depth--;
    *out = child[0];
done:
    return status;
}

hone_status expression_parse(const char *source, int line, const char *text, size_t len,
                             const expression_scope *scope, expression_tree *out, hone_error *error)
{
    hone_status status = HONE_OK;
    parser p = {source, line, text, text, text + len, scope, out, 0, error};

    if (len > EXPRESSION_MAX_BYTES) {
        return status_set(error, HONE_LIMIT, source, line,
                          "'%.60s...' is %zu bytes long, over %d; split it with `let`", text, len,
                          EXPRESSION_MAX_BYTES);
    }
    out->len = 0;
    TRY(parse_choice(&p, &out->root));
    skip_space(&p);
    if (p.at < p.end) {
        status = refuse(&p, "text after the end");
    }
done:
    return status;
}
