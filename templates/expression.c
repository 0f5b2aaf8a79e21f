/* expression.c - fold a tree, turn it into a program for an accumulator machine, run it.
 *
 * The right operand of an instruction comes with it (a number), from a slot, or is the accumulator
 * itself while the left one is popped: `block_m % 16 == 0` takes three steps. */
#include "templates/expression_tree.h"

#include "core/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Machine instructions beside the operators below EXPRESSION_CONTROL. */
enum {
    CODE_LOAD = EXPRESSION_SLOT + 1,
    CODE_PUSH,
    CODE_SKIP_FALSE, /* jump when the accumulator is 0 */
    CODE_SKIP_TRUE,  /* jump when it is not, leaving 1 */
    CODE_JUMP,
    CODE_RETURN,
};

typedef enum operand_mode { FROM_NUMBER, FROM_SLOT, FROM_STACK } operand_mode;

typedef struct instruction {
    uint8_t op, mode;
    uint16_t target; /* slot, or the instruction to jump to */
    int64_t value;
} instruction;

/* Every push needs an operator and an operand in the text. */
#define STACK_DEPTH (EXPRESSION_MAX_BYTES / 2)
#define CODE_MAX    (2 * EXPRESSION_MAX_BYTES + 1)

struct expression {
    char *text;
    const char *source;
    int line;
    uint64_t uses[EXPRESSION_MAX_SLOTS / 64];
    expression_tree *tree;
    instruction *code;
};

static int64_t floor_log2(int64_t x)
{
    return 63 - __builtin_clzll((unsigned long long)x);
}

static expression_fault divide(expression_op op, int64_t a, int64_t b, int64_t *out)
{
    bool rounds = op == EXPRESSION_CEIL_DIV || op == EXPRESSION_ROUND_UP;

    if (b == 0 || (rounds && b < 0)) {
        return EXPRESSION_ZERO;
    }
    if (a == INT64_MIN && b == -1) {
        return EXPRESSION_OVERFLOW;
    }
    int64_t quotient = a / b, rest = a % b;
    if (!rounds) {
        *out = op == EXPRESSION_DIV ? quotient : rest;
        return EXPRESSION_FINE;
    }
    quotient += rest > 0;
    if (op == EXPRESSION_CEIL_DIV) {
        *out = quotient;
        return EXPRESSION_FINE;
    }
    return checked_mul_i64(quotient, b, out) ? EXPRESSION_FINE : EXPRESSION_OVERFLOW;
}

static inline expression_fault checked(bool fits)
{
    return fits ? EXPRESSION_FINE : EXPRESSION_OVERFLOW;
}

static inline expression_fault binary(int op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case EXPRESSION_ADD:
        return checked(checked_add_i64(a, b, out));
    case EXPRESSION_SUB:
        return checked(checked_sub_i64(a, b, out));
    case EXPRESSION_MUL:
        return checked(checked_mul_i64(a, b, out));
    case EXPRESSION_EQ:
        *out = a == b;
        break;
    case EXPRESSION_NE:
        *out = a != b;
        break;
    case EXPRESSION_LT:
        *out = a < b;
        break;
    case EXPRESSION_LE:
        *out = a <= b;
        break;
    case EXPRESSION_GT:
        *out = a > b;
        break;
    case EXPRESSION_GE:
        *out = a >= b;
        break;
    case EXPRESSION_MIN:
        *out = a < b ? a : b;
        break;
    case EXPRESSION_MAX:
        *out = a > b ? a : b;
        break;
    default:
        return divide((expression_op)op, a, b, out);
    }
    return EXPRESSION_FINE;
}

static expression_fault unary(int op, int64_t a, int64_t *out)
{
    switch (op) {
    case EXPRESSION_NEG:
        return checked(checked_sub_i64(0, a, out));
    case EXPRESSION_NOT:
        *out = a == 0;
        return EXPRESSION_FINE;
    case EXPRESSION_POW2:
        if (a < 0 || a > 62) {
            return a < 0 ? EXPRESSION_DOMAIN : EXPRESSION_OVERFLOW;
        }
        *out = INT64_C(1) << a;
        return EXPRESSION_FINE;
    default:
        if (a < 1) {
            return EXPRESSION_DOMAIN;
        }
        *out = floor_log2(a);
        return EXPRESSION_FINE;
    }
}

static expression_fault run(const instruction *code, const int64_t *values, int64_t *out)
{
    int64_t stack[STACK_DEPTH], *top = stack, a = 0;

    for (const instruction *i = code;; i++) {
        int64_t left = a, right = i->value;
        expression_fault fault = EXPRESSION_FINE;

        if (i->mode == FROM_SLOT) {
            right = values[i->target];
        } else if (i->mode == FROM_STACK) {
            right = a;
            left = *--top;
        }
        if (i->op < EXPRESSION_UNARY) {
            fault = binary(i->op, left, right, &a);
        } else if (i->op < EXPRESSION_CONTROL) {
            fault = unary(i->op, left, &a);
        } else if (i->op == CODE_LOAD) {
            a = right;
        } else if (i->op == CODE_PUSH) {
            *top++ = a;
        } else if (i->op == CODE_RETURN) {
            *out = a;
            return EXPRESSION_FINE;
        } else if (i->op == CODE_JUMP || (i->op == CODE_SKIP_FALSE) == (a == 0)) {
            a = i->op == CODE_SKIP_TRUE ? 1 : a;
            i = code + i->target - 1;
        }
        if (__builtin_expect(fault != EXPRESSION_FINE, 0)) {
            return fault;
        }
    }
}

/* ---- Folding ------------------------------------------------------------------------------- */

typedef struct folder {
    const expression_tree *from;
    expression_tree *to;
    const int64_t *values; /* NULL: nothing is known */
    const bool *known;
} folder;

static uint16_t put(folder *f, expression_node node)
{
    f->to->nodes[f->to->len] = node;
    return (uint16_t)f->to->len++;
}

static bool number_at(const folder *f, uint16_t node, int64_t *value)
{
    *value = f->to->nodes[node].value;
    return f->to->nodes[node].op == EXPRESSION_NUMBER;
}

static uint16_t fold(folder *f, uint16_t at);

/* `&& || ?:` whose condition is a number. Sides that faults would stop stay out of it. */
static uint16_t fold_control(folder *f, const expression_node *node)
{
    expression_node made = *node;
    int64_t value = 0;
    uint32_t mark = f->to->len;

    made.child[0] = fold(f, node->child[0]);
    if (!number_at(f, made.child[0], &value)) {
        made.child[1] = fold(f, node->child[1]);
        made.child[2] = node->op == EXPRESSION_CHOOSE ? fold(f, node->child[2]) : 0;
        return put(f, made);
    }
    f->to->len = mark;
    if (node->op == EXPRESSION_CHOOSE) {
        return fold(f, node->child[value != 0 ? 1 : 2]);
    }
    if ((node->op == EXPRESSION_AND) == (value == 0)) {
        return put(f, (expression_node){.op = EXPRESSION_NUMBER, .value = value != 0});
    }
    made = (expression_node){.op = EXPRESSION_NE};
    made.child[0] = fold(f, node->child[1]);
    made.child[1] = put(f, (expression_node){.op = EXPRESSION_NUMBER});
    return put(f, made);
}

static uint16_t fold(folder *f, uint16_t at)
{
    expression_node node = f->from->nodes[at];
    int64_t left = 0, right = 0, value = 0;
    uint32_t mark = f->to->len;

    if (node.op == EXPRESSION_SLOT && f->values != NULL && f->known[node.value]) {
        node = (expression_node){.op = EXPRESSION_NUMBER, .value = f->values[node.value]};
    }
    if (node.op >= EXPRESSION_LEAVES) {
        return put(f, node);
    }
    if (node.op >= EXPRESSION_CONTROL) {
        return fold_control(f, &node);
    }
    node.child[0] = fold(f, node.child[0]);
    bool numbers = number_at(f, node.child[0], &left);
    if (node.op < EXPRESSION_UNARY) {
        node.child[1] = fold(f, node.child[1]);
        numbers = number_at(f, node.child[1], &right) && numbers;
    }
    const instruction step[] = {{CODE_LOAD, FROM_NUMBER, 0, left},
                                {(uint8_t)node.op, FROM_NUMBER, 0, right},
                                {CODE_RETURN, FROM_NUMBER, 0, 0}};
    /* What faults stays as it is: it may stand behind a guard that never lets it run. */
    if (numbers && run(step, NULL, &value) == EXPRESSION_FINE) {
        f->to->len = mark;
        return put(f, (expression_node){.op = EXPRESSION_NUMBER, .value = value});
    }
    return put(f, node);
}

/* ---- Program ------------------------------------------------------------------------------- */

typedef struct writer {
    const expression_tree *tree;
    instruction *code;
    uint32_t len;
} writer;

static uint32_t emit(writer *w, int op, operand_mode mode, uint32_t target, int64_t value)
{
    w->code[w->len] = (instruction){(uint8_t)op, (uint8_t)mode, (uint16_t)target, value};
    return w->len++;
}

static void emit_leaf(writer *w, int op, const expression_node *leaf)
{
    if (leaf->op == EXPRESSION_SLOT) {
        emit(w, op, FROM_SLOT, (uint32_t)leaf->value, 0);
    } else {
        emit(w, op, FROM_NUMBER, 0, leaf->value);
    }
}

static void write_node(writer *w, uint16_t at);

static void write_control(writer *w, const expression_node *node)
{
    bool either = node->op == EXPRESSION_OR;

    write_node(w, node->child[0]);
    uint32_t skip = emit(w, either ? CODE_SKIP_TRUE : CODE_SKIP_FALSE, FROM_NUMBER, 0, 0);
    write_node(w, node->child[1]);
    if (node->op == EXPRESSION_CHOOSE) {
        uint32_t end = emit(w, CODE_JUMP, FROM_NUMBER, 0, 0);
        w->code[skip].target = (uint16_t)w->len;
        write_node(w, node->child[2]);
        w->code[end].target = (uint16_t)w->len;
        return;
    }
    emit(w, EXPRESSION_NE, FROM_NUMBER, 0, 0);
    w->code[skip].target = (uint16_t)w->len;
}

static void write_node(writer *w, uint16_t at)
{
    const expression_node *node = &w->tree->nodes[at];

    if (node->op >= EXPRESSION_LEAVES) {
        emit_leaf(w, CODE_LOAD, node);
    } else if (node->op >= EXPRESSION_CONTROL) {
        write_control(w, node);
    } else if (node->op >= EXPRESSION_UNARY) {
        write_node(w, node->child[0]);
        emit(w, (int)node->op, FROM_NUMBER, 0, 0);
    } else {
        const expression_node *right = &w->tree->nodes[node->child[1]];
        write_node(w, node->child[0]);
        if (right->op >= EXPRESSION_LEAVES) {
            emit_leaf(w, (int)node->op, right);
            return;
        }
        emit(w, CODE_PUSH, FROM_NUMBER, 0, 0);
        write_node(w, node->child[1]);
        emit(w, (int)node->op, FROM_STACK, 0, 0);
    }
}

/* Fold `tree` with what is known and make an expression of it. */
static hone_status build(const expression *like, const expression_tree *tree, const int64_t *values,
                         const bool *known, expression **out, hone_error *error)
{
    expression_tree folded = {0};
    folder f = {tree, &folded, values, known};
    instruction code[CODE_MAX];
    writer w = {&folded, code, 0};
    expression *e = calloc(1, sizeof *e);

    folded.root = fold(&f, tree->root);
    write_node(&w, folded.root);
    emit(&w, CODE_RETURN, FROM_NUMBER, 0, 0);
    if (e != NULL) {
        *e = (expression){.source = like->source, .line = like->line};
        e->text = strdup(like->text);
        e->tree = malloc(sizeof folded);
        e->code = malloc(w.len * sizeof *code);
    }
    if (e == NULL || e->text == NULL || e->tree == NULL || e->code == NULL) {
        expression_free(e);
        return status_set(error, HONE_NO_MEMORY, like->source, like->line, "an expression");
    }
    memcpy(e->tree, &folded, sizeof folded);
    memcpy(e->code, code, w.len * sizeof *code);
    for (uint32_t i = 0; i < w.len; i++) {
        if (code[i].mode == FROM_SLOT) {
            e->uses[code[i].target / 64] |= UINT64_C(1) << (code[i].target % 64);
        }
    }
    *out = e;
    return HONE_OK;
}

hone_status expression_compile(const char *source, int line, const char *text, size_t len,
                               const expression_scope *scope, expression **out, hone_error *error)
{
    hone_status status = HONE_OK;
    expression_tree tree;
    char copy[EXPRESSION_MAX_BYTES + 1];
    expression like = {.text = copy, .source = source, .line = line};

    snprintf(copy, sizeof copy, "%.*s", len < sizeof copy ? (int)len : EXPRESSION_MAX_BYTES, text);
    TRY(expression_parse(source, line, len < sizeof copy ? copy : text, len, scope, &tree, error));
    TRY(build(&like, &tree, NULL, NULL, out, error));
done:
    return status;
}

hone_status expression_build(const char *source, int line, const char *text,
                             const expression_tree *tree, expression **out, hone_error *error)
{
    /* The text is only copied. */
    const expression like = {.text = (char *)(uintptr_t)text, .source = source, .line = line};

    return build(&like, tree, NULL, NULL, out, error);
}

void expression_free(expression *e)
{
    if (e != NULL) {
        free(e->text);
        free(e->tree);
        free(e->code);
        free(e);
    }
}

hone_status expression_bind(const expression *e, const int64_t *values, const bool *known,
                            expression **out, hone_error *error)
{
    return build(e, e->tree, values, known, out, error);
}

expression_fault expression_run(const expression *e, const int64_t *values, int64_t *out)
{
    return run(e->code, values, out);
}

hone_status expression_fail(const expression *e, expression_fault fault, hone_error *error)
{
    static const struct {
        hone_status status;
        const char *text;
    } faults[] = {
        [EXPRESSION_FINE] = {HONE_OK, ""},
        [EXPRESSION_ZERO] = {HONE_BAD_MANIFEST, "divides by zero; guard it with ?: or &&"},
        [EXPRESSION_OVERFLOW] = {HONE_OVERFLOW, "does not fit 64 bits; bound its operands"},
        [EXPRESSION_DOMAIN] = {HONE_BAD_MANIFEST, "takes log2 or pow2 out of its domain"},
    };

    return status_set(error, faults[fault].status, e->source, e->line, "'%s' %s", e->text,
                      faults[fault].text);
}

hone_status expression_evaluate(const expression *e, const int64_t *values, int64_t *out,
                                hone_error *error)
{
    expression_fault fault = run(e->code, values, out);

    return fault == EXPRESSION_FINE ? HONE_OK : expression_fail(e, fault, error);
}

bool expression_uses(const expression *e, uint32_t slot)
{
    return (e->uses[slot / 64] >> (slot % 64) & 1) != 0;
}

const char *expression_text(const expression *e)
{
    return e->text;
}

int expression_line(const expression *e)
{
    return e->line;
}
