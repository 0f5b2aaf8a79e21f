/* statement.c - bodies of functions: statements, operands, declarations. */
#include "emulator/ptx/parse.h"

#include <stdlib.h>
#include <string.h>

static hone_status push(ptx_parser *p, const ptx_operand *o)
{
    if (p->stack_len == p->stack_capacity) {
        size_t more = p->stack_capacity * 2 + 64;
        ptx_operand *bigger = more > PTX_OPERANDS ? NULL : realloc(p->stack, more * sizeof *bigger);
        if (bigger == NULL) {
            return status_set(p->error, HONE_LIMIT, "ptx", p->token.line,
                              "more than %d operands in one list", PTX_OPERANDS);
        }
        p->stack = bigger;
        p->stack_capacity = more;
    }
    p->stack[p->stack_len++] = *o;
    return HONE_OK;
}

hone_status ptx_parse_operands(ptx_parser *p, char close, ptx_operand **out, uint32_t *len)
{
    hone_status status = HONE_OK;
    size_t base = p->stack_len;

    if (++p->depth > PTX_NESTING) {
        return ptx_parse_fail(p, "a list that is nested less deeply");
    }
    while (!ptx_parse_mark(p, close)) {
        ptx_operand o = {0};
        /* `p|q`, `d, {a}`: what stands between two operands tells nothing that the count does not
         */
        if (p->stack_len > base && !ptx_parse_accept(p, ',') && !ptx_parse_accept(p, '|')) {
            status = ptx_parse_fail(p, "\",\"");
            goto done;
        }
        TRY(ptx_parse_operand(p, &o));
        TRY(push(p, &o));
    }
    ptx_parse_next(p);
    size_t n = p->stack_len - base;
    *out = ptx_arena_take(p->arena, n * sizeof **out + 1);
    if (*out == NULL) {
        status = status_set(p->error, HONE_NO_MEMORY, "ptx", p->token.line, "operands");
        goto done;
    }
    if (n > 0) {
        memcpy(*out, p->stack + base, n * sizeof **out);
    }
    *len = (uint32_t)n;
done:
    p->stack_len = base;
    p->depth--;
    return status;
}

/* +4, -4, +-4 after a name or inside brackets. */
static hone_status parse_offset(ptx_parser *p, int64_t *offset)
{
    uint64_t sum = (uint64_t)*offset;

    while (ptx_parse_mark(p, '+') || ptx_parse_mark(p, '-')) {
        bool minus = p->token.mark == '-';
        ptx_parse_next(p);
        if (ptx_parse_accept(p, '-')) {
            minus = !minus;
        }
        if (p->token.kind != PTX_NUMBER || p->token.width != 0) {
            return ptx_parse_fail(p, "a whole number");
        }
        sum = minus ? sum - p->token.value : sum + p->token.value;
        ptx_parse_next(p);
    }
    *offset = (int64_t)sum;
    return HONE_OK;
}

static hone_status parse_number(ptx_parser *p, bool minus, ptx_operand *out)
{
    if (p->token.kind != PTX_NUMBER) {
        return ptx_parse_fail(p, "a number");
    }
    out->kind = PTX_OPERAND_NUMBER;
    out->width = p->token.width;
    out->value = p->token.value;
    if (minus && out->width == 0) {
        out->value = 0 - out->value;
    } else if (minus) {
        out->value ^= UINT64_C(1) << (out->width * 8 - 1);
    }
    ptx_parse_next(p);
    return HONE_OK;
}

/* 0xff00(name)+offset, of initialisers of bytes: the bits of an address under a mask. */
static hone_status parse_masked(ptx_parser *p, ptx_operand *out)
{
    hone_status status = HONE_OK;

    if (out->width != 0 || !ptx_parse_accept(p, '(')) {
        return HONE_OK;
    }
    if (p->token.kind != PTX_NAME || out->value == 0) {
        return ptx_parse_fail(p, "a name under a mask");
    }
    TRY(ptx_parse_operand(p, out));
    status = ptx_parse_expect(p, ')');
done:
    return status;
}

/* generic(name)+offset, of initialisers; the address of a global is generic already. */
static hone_status parse_generic(ptx_parser *p, ptx_operand *out)
{
    if (!ptx_text_is(out->name, "generic") || !ptx_parse_accept(p, '(')) {
        return HONE_OK;
    }
    if (p->token.kind != PTX_NAME) {
        return ptx_parse_fail(p, "a name");
    }
    out->name = p->token.text;
    ptx_parse_next(p);
    return ptx_parse_expect(p, ')');
}

hone_status ptx_parse_operand(ptx_parser *p, ptx_operand *out)
{
    static const struct {
        char open, close;
        ptx_operand_kind kind;
    } lists[] = {{'[', ']', PTX_OPERAND_MEMORY},
                 {'{', '}', PTX_OPERAND_VECTOR},
                 {'(', ')', PTX_OPERAND_LIST}};
    hone_status status = HONE_OK;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (ptx_parse_accept(p, lists[i].open)) {
            out->kind = lists[i].kind;
            TRY(ptx_parse_operands(p, lists[i].close, &out->items, &out->items_len));
            return HONE_OK;
        }
    }
    if (ptx_parse_accept(p, '!')) {
        out->negated = true;
    }
    if (ptx_parse_accept(p, '-')) {
        return parse_number(p, true, out);
    }
    if (p->token.kind == PTX_NUMBER) {
        TRY(parse_number(p, false, out));
        return parse_masked(p, out);
    }
    if (p->token.kind != PTX_NAME) {
        return ptx_parse_fail(p, "an operand");
    }
    out->kind = ptx_text_is(p->token.text, "_") ? PTX_OPERAND_SINK : PTX_OPERAND_NAME;
    out->name = p->token.text;
    ptx_parse_next(p);
    TRY(parse_generic(p, out));
    TRY(parse_offset(p, &out->offset));
done:
    return status;
}

/* Nested braces flatten: the bounds are known. */
static hone_status parse_initial(ptx_parser *p, ptx_variable *v)
{
    ptx_operand *items = NULL;
    uint32_t len = 0;
    hone_status status = HONE_OK;

    if (ptx_parse_accept(p, '{')) {
        TRY(ptx_parse_operands(p, '}', &items, &len));
    } else {
        items = ptx_arena_take(p->arena, sizeof *items);
        if (items == NULL) {
            return status_set(p->error, HONE_NO_MEMORY, "ptx", v->line, "an initialiser");
        }
        *items = (ptx_operand){0};
        TRY(ptx_parse_operand(p, items));
        len = 1;
    }
    v->initial = items;
    v->initial_len = len;
done:
    return status;
}

static hone_status parse_bounds(ptx_parser *p, ptx_variable *v)
{
    hone_status status = HONE_OK;

    while (ptx_parse_accept(p, '[')) {
        uint64_t n = 0;
        if (p->token.kind == PTX_NUMBER) {
            n = p->token.value;
            ptx_parse_next(p);
        }
        if (__builtin_mul_overflow(v->count, n, &v->count) || v->count > UINT32_MAX) {
            return ptx_parse_fail(p, "an array below 4 GiB");
        }
        TRY(ptx_parse_expect(p, ']'));
    }
done:
    return status;
}

static hone_status parse_attributes(ptx_parser *p, ptx_variable *v, uint32_t *vector)
{
    ptx_space ignored = PTX_GLOBAL;

    while (p->token.kind == PTX_DIRECTIVE) {
        ptx_text word = p->token.text;
        int bytes = ptx_parse_type_bytes(word);
        ptx_parse_next(p);
        if (ptx_text_is(word, "align")) {
            bool good = p->token.kind == PTX_NUMBER && p->token.value >= 1 &&
                        p->token.value <= 65536 && (p->token.value & (p->token.value - 1)) == 0;
            if (!good) {
                return ptx_parse_fail(p, "an alignment that is a power of two");
            }
            v->align = (uint32_t)p->token.value;
            ptx_parse_next(p);
        } else if (bytes >= 0) {
            v->element_bytes = (uint32_t)bytes;
        } else if (ptx_text_is(word, "v2") || ptx_text_is(word, "v4")) {
            *vector = word.at[1] == '2' ? 2 : 4;
        } else if (ptx_text_is(word, "attribute")) {
            ptx_operand skipped = {0};
            hone_status status = ptx_parse_operand(p, &skipped);
            if (status != HONE_OK) {
                return status;
            }
        } else if (!ptx_text_is(word, "ptr") && !ptx_parse_space(word, &ignored)) {
            return ptx_parse_fail(p, "a type or an attribute");
        }
    }
    return HONE_OK;
}

hone_status ptx_parse_variable(ptx_parser *p, ptx_space space, ptx_variable *out)
{
    hone_status status = HONE_OK;
    uint32_t vector = 1;
    ptx_variable v = {.space = space, .count = 1, .line = p->token.line};

    TRY(parse_attributes(p, &v, &vector));
    if (p->token.kind != PTX_NAME) {
        return ptx_parse_fail(p, "a variable's name");
    }
    v.name = p->token.text;
    ptx_parse_next(p);
    if (ptx_parse_accept(p, '<')) {
        v.is_family = true;
        v.count = p->token.value;
        if (p->token.kind != PTX_NUMBER || p->token.width != 0) {
            return ptx_parse_fail(p, "a number of registers");
        }
        ptx_parse_next(p);
        TRY(ptx_parse_expect(p, '>'));
    }
    TRY(parse_bounds(p, &v));
    v.count *= vector;
    if (v.align == 0) {
        v.align = v.element_bytes * vector > 0 ? v.element_bytes * vector : 1;
    }
    if (ptx_parse_accept(p, '=')) {
        TRY(parse_initial(p, &v));
        v.count = v.count == 0 ? v.initial_len : v.count; /* name[] = {...} */
    }
    *out = v;
done:
    return status;
}

static hone_status append(ptx_parser *p, const ptx_statement *s, ptx_statement ***tail)
{
    ptx_statement *copy = ptx_arena_take(p->arena, sizeof *copy);
    if (copy == NULL) {
        return status_set(p->error, HONE_NO_MEMORY, "ptx", s->line, "a statement");
    }
    *copy = *s;
    copy->place = p->place;
    copy->next = NULL;
    **tail = copy;
    *tail = &copy->next;
    return HONE_OK;
}

static hone_status parse_declaration(ptx_parser *p, ptx_statement *s, ptx_space space,
                                     ptx_statement ***tail)
{
    hone_status status = HONE_OK;
    ptx_variable first = {0};

    do {
        ptx_variable *v = ptx_arena_take(p->arena, sizeof *v);
        if (v == NULL) {
            return status_set(p->error, HONE_NO_MEMORY, "ptx", s->line, "a declaration");
        }
        TRY(ptx_parse_variable(p, space, v));
        if (first.name.len > 0) { /* .reg .b32 a, b: the type stands once */
            v->element_bytes = first.element_bytes;
            v->align = first.align;
        }
        first = *v;
        s->variable = v;
        TRY(append(p, s, tail));
    } while (ptx_parse_accept(p, ','));
    status = ptx_parse_expect(p, ';');
done:
    return status;
}

static hone_status parse_directive(ptx_parser *p, ptx_statement ***tail)
{
    ptx_token word = p->token;
    ptx_statement s = {.kind = PTX_VARIABLE, .line = word.line};
    ptx_space space = PTX_GLOBAL;
    hone_status status = HONE_OK;

    ptx_parse_next(p);
    if (ptx_text_is(word.text, "reg")) {
        s.kind = PTX_REGISTERS;
        return parse_declaration(p, &s, PTX_GENERIC, tail);
    }
    if (ptx_parse_space(word.text, &space)) {
        return parse_declaration(p, &s, space, tail);
    }
    if (ptx_text_is(word.text, "loc")) {
        return ptx_parse_loc(p, word.line);
    }
    if (ptx_text_is(word.text, "file")) {
        return ptx_parse_file(p, word.line);
    }
    if (ptx_text_is(word.text, "pragma")) { /* hints to the assembler */
        do {
            ptx_parse_next(p);
        } while (ptx_parse_accept(p, ','));
        return ptx_parse_expect(p, ';');
    }
    if (ptx_text_is(word.text, "callprototype")) { /* the call's own operands say as much */
        while (p->token.kind != PTX_END && !ptx_parse_accept(p, ';')) {
            ptx_parse_next(p);
        }
        return HONE_OK;
    }
    if (!ptx_text_is(word.text, "branchtargets") && !ptx_text_is(word.text, "calltargets")) {
        p->token = word;
        return ptx_parse_fail(p, "a known directive");
    }
    s.kind = PTX_TARGETS;
    TRY(ptx_parse_operands(p, ';', &s.operands, &s.operands_len));
    status = append(p, &s, tail);
done:
    return status;
}

static hone_status parse_instruction(ptx_parser *p, ptx_statement *s)
{
    hone_status status = HONE_OK;

    if (ptx_parse_accept(p, '@')) {
        s->guard_negated = ptx_parse_accept(p, '!');
        s->guard = p->token.text;
        if (p->token.kind != PTX_NAME) {
            return ptx_parse_fail(p, "a predicate");
        }
        ptx_parse_next(p);
    }
    if (p->token.kind != PTX_NAME) {
        return ptx_parse_fail(p, "an instruction");
    }
    s->name = p->token.text;
    s->line = p->token.line;
    ptx_parse_next(p);
    if (s->guard.len == 0 && ptx_parse_accept(p, ':')) {
        s->kind = PTX_LABEL;
        return HONE_OK;
    }
    TRY(ptx_parse_operands(p, ';', &s->operands, &s->operands_len));
done:
    return status;
}

hone_status ptx_parse_body(ptx_parser *p, ptx_statement **out)
{
    hone_status status = HONE_OK;
    ptx_statement **tail = out;
    uint32_t open = 1;

    p->place = NULL;
    *out = NULL;
    while (open > 0) {
        ptx_statement s = {.kind = PTX_INSTRUCTION, .line = p->token.line};
        if (ptx_parse_accept(p, ';')) {
            continue;
        }
        if (p->token.kind == PTX_DIRECTIVE) {
            TRY(parse_directive(p, &tail));
            continue;
        }
        if (ptx_parse_accept(p, '{')) {
            s.kind = PTX_OPEN;
            open++;
        } else if (ptx_parse_accept(p, '}')) {
            s.kind = PTX_CLOSE;
            open--;
        } else {
            TRY(parse_instruction(p, &s));
        }
        TRY(append(p, &s, &tail));
    }
done:
    return status;
}
