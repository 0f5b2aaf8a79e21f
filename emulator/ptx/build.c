/* build.c - makes virtual registers, constants and instructions while a kernel is decoded. */
#include "emulator/ptx/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ptx_grow(ptx_builder *b, void *list, uint32_t len, uint32_t *capacity, size_t size)
{
    if (len < *capacity) {
        return list;
    }
    uint32_t more = *capacity * 2 + 64;
    void *bigger = more > *capacity ? realloc(list, more * size) : NULL;
    if (bigger == NULL) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's tables");
        return NULL;
    }
    *capacity = more;
    return bigger;
}
/* Room for one more element of b->list; false (and a failure) when there is none. */
#define ROOM(b, list, len, capacity)                                                               \
    room(b, (void **)(void *)&(b)->list, (b)->len, &(b)->capacity, sizeof *(b)->list)

static bool room(ptx_builder *b, void **list, uint32_t len, uint32_t *capacity, size_t size)
{
    void *bigger = ptx_grow(b, *list, len, capacity, size);
    *list = bigger != NULL ? bigger : *list;
    return bigger != NULL;
}

void ptx_build_fail(ptx_builder *b, hone_status status, const char *format, ...)
{
    char message[320];
    va_list arguments;

    if (b->status != HONE_OK) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    b->status =
        status_set(b->error, status, "ptx", b->statement ? b->statement->line : 0, "%s", message);
}

void ptx_build_unsupported(ptx_builder *b, const char *why)
{
    ptx_report *r = b->report;
    const ptx_statement *s = b->statement;
    char line[320];
    int n = snprintf(line, sizeof line, "line %d: %.*s%s%s\n", s->line,
                     (int)(s->name.len < 200 ? s->name.len : 200), s->name.at,
                     why != NULL ? ": " : "", why != NULL ? why : "");

    r->first_line = r->count == 0 ? s->line : r->first_line;
    r->count++;
    size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    if (r->capacity - r->len <= len) {
        char *bigger = r->capacity < (1u << 20) ? realloc(r->text, r->capacity * 2 + 4096) : NULL;
        if (bigger == NULL) {
            return; /* counted, not listed */
        }
        r->text = bigger;
        r->capacity = r->capacity * 2 + 4096;
    }
    memcpy(r->text + r->len, line, len + 1);
    r->text[r->len + len] = '\0';
    r->len += len;
}

uint32_t ptx_build_vreg(ptx_builder *b, uint32_t width)
{
    if (!ROOM(b, vregs, vregs_len, vregs_capacity)) {
        return 0;
    }
    b->vregs[b->vregs_len] = (ptx_vreg){.width = (uint8_t)width};
    return b->vregs_len++;
}

uint32_t ptx_build_constant(ptx_builder *b, uint64_t value, uint32_t width)
{
    value = width == 4 ? (uint32_t)value : width == 0 ? (value != 0 ? UINT32_MAX : 0) : value;
    uint32_t *head = &b->constant_heads[(value * UINT64_C(0x9E3779B97F4A7C15) >> 54) & 1023];

    for (uint32_t n = *head; n != 0; n = b->constant_next[n - 1]) {
        if (b->vregs[n - 1].value == value && b->vregs[n - 1].width == width) {
            return n - 1;
        }
    }
    uint32_t made = ptx_build_vreg(b, width);
    while (b->constants_capacity <= made && b->status == HONE_OK) {
        uint32_t *bigger = ptx_grow(b, b->constant_next, b->constants_capacity,
                                    &b->constants_capacity, sizeof *bigger);
        b->constant_next = bigger != NULL ? bigger : b->constant_next;
    }
    if (b->status != HONE_OK) {
        return 0;
    }
    b->vregs[made].kind = VREG_CONSTANT;
    b->vregs[made].value = value;
    b->constant_next[made] = *head;
    *head = made + 1;
    return made;
}

static uint32_t special(ptx_builder *b, ptx_text name)
{
    uint8_t width = 4;
    int which = special_find(name, &width);

    for (uint32_t n = 0; which >= 0 && n < b->vregs_len; n++) {
        if (b->vregs[n].kind == VREG_SPECIAL && b->vregs[n].special == which) {
            return n;
        }
    }
    if (which < 0) {
        return MACHINE_NONE;
    }
    uint32_t made = ptx_build_vreg(b, width);
    if (b->status == HONE_OK) {
        b->vregs[made].kind = VREG_SPECIAL;
        b->vregs[made].special = (uint8_t)which;
    }
    return made;
}

static uint32_t unknown_name(ptx_builder *b, ptx_text name)
{
    if (name.len > 0 && *name.at == '%') {
        ptx_build_fail(b, HONE_BAD_TEXT, "register \"%.*s\" is not declared, or not known here",
                       (int)(name.len < 80 ? name.len : 80), name.at);
    } else {
        ptx_build_fail(b, HONE_BAD_TEXT, "\"%.*s\" is not declared",
                       (int)(name.len < 80 ? name.len : 80), name.at);
    }
    return 0;
}

/* The register that a name stands for, as it is declared. */
static uint32_t named(ptx_builder *b, const ptx_operand *o, uint32_t width)
{
    ptx_symbol *s = ptx_symbol_find(b, o->name, b->scope);

    if (s != NULL && s->kind == SYMBOL_REGISTER && s->width == 16) {
        ptx_build_fail(b, HONE_BAD_TEXT, "\"%.*s\" has 128 bits",
                       (int)(o->name.len < 80 ? o->name.len : 80), o->name.at);
        return 0;
    }
    if (s != NULL && s->kind == SYMBOL_REGISTER) {
        return (uint32_t)s->value;
    }
    if (s != NULL && s->kind == SYMBOL_ADDRESS) {
        return ptx_build_constant(b, s->value + (uint64_t)o->offset, width);
    }
    if (s != NULL && s->kind == SYMBOL_FUNCTION) {
        return ptx_build_constant(b, ptx_function_address(b->tree, o->name), width);
    }
    uint32_t made = s == NULL ? special(b, o->name) : MACHINE_NONE;
    return made != MACHINE_NONE ? made : unknown_name(b, o->name);
}

uint64_t ptx_number_as(const ptx_operand *o, uint32_t width)
{
    double d;
    float f;
    uint32_t bits;
    uint64_t wide;

    if (o->width == 8 && width == 4) { /* 1.0 or 0d... where a float is wanted */
        memcpy(&d, &o->value, sizeof d);
        f = (float)d;
        memcpy(&bits, &f, sizeof bits);
        return bits;
    }
    if (o->width == 4 && width == 8) {
        bits = (uint32_t)o->value;
        memcpy(&f, &bits, sizeof f);
        d = f;
        memcpy(&wide, &d, sizeof wide);
        return wide;
    }
    return o->value;
}

uint32_t ptx_build_source(ptx_builder *b, const ptx_operand *o, uint32_t width)
{
    uint32_t v = 0;

    if (o->kind == PTX_OPERAND_NUMBER) {
        return ptx_build_constant(b, ptx_number_as(o, width), width);
    }
    if (o->kind != PTX_OPERAND_NAME) {
        ptx_build_fail(b, HONE_BAD_TEXT, "a register or a number is expected");
        return 0;
    }
    v = named(b, o, width == 0 ? 4 : width);
    if (b->status != HONE_OK) {
        return 0;
    }
    uint32_t have = b->vregs[v].width;
    if (width == 0 && have == 0 && o->negated) {
        uint32_t t = ptx_build_vreg(b, 0);
        ptx_build_helper(b, "not.pred", (uint32_t[]){t, v});
        return t;
    }
    if (have == width) {
        return v;
    }
    if (have == 8 && width == 4) {
        uint32_t t = ptx_build_vreg(b, 4);
        ptx_build_helper(b, "low.b64", (uint32_t[]){t, v});
        return t;
    }
    if (have == 4 && width == 8 && b->vregs[v].kind == VREG_SPECIAL) {
        uint32_t t = ptx_build_vreg(b, 8);
        ptx_build_helper(b, "extend.u64", (uint32_t[]){t, v});
        return t;
    }
    ptx_build_fail(b, HONE_BAD_TEXT, "\"%.*s\" has another width than the instruction takes",
                   (int)(o->name.len < 80 ? o->name.len : 80), o->name.at);
    return 0;
}

void ptx_build_pair(ptx_builder *b, const ptx_operand *o, uint32_t out[2])
{
    ptx_symbol *s = o->kind == PTX_OPERAND_NAME ? ptx_symbol_find(b, o->name, b->scope) : NULL;

    out[0] = out[1] = 0;
    if (o->kind == PTX_OPERAND_SINK) {
        out[0] = ptx_build_vreg(b, 8);
        out[1] = ptx_build_vreg(b, 8);
    } else if (s != NULL && s->kind == SYMBOL_REGISTER && s->width == 16) {
        out[0] = (uint32_t)s->value;
        out[1] = (uint32_t)s->value + 1;
    } else {
        ptx_build_fail(b, HONE_BAD_TEXT, "a register of 128 bits is expected");
    }
}

uint32_t ptx_build_result(ptx_builder *b, const ptx_operand *o, uint32_t width, bool is_signed)
{
    if (o->kind == PTX_OPERAND_SINK) {
        return ptx_build_vreg(b, width);
    }
    ptx_symbol *s = o->kind == PTX_OPERAND_NAME ? ptx_symbol_find(b, o->name, b->scope) : NULL;
    if (s == NULL || s->kind != SYMBOL_REGISTER) {
        ptx_build_fail(b, HONE_BAD_TEXT, "the result is not a declared register");
        return 0;
    }
    uint32_t v = (uint32_t)s->value, have = s->width == 16 ? 16 : b->vregs[v].width;
    if (have == width) {
        return v;
    }
    if (have == 8 && width == 4 && b->widenings_len < ARRAY_LEN(b->widenings)) {
        uint32_t t = ptx_build_vreg(b, 4);
        b->widenings[b->widenings_len++] = (ptx_widening){t, v, is_signed};
        return t;
    }
    ptx_build_fail(b, HONE_BAD_TEXT, "\"%.*s\" has another width than the result",
                   (int)(o->name.len < 80 ? o->name.len : 80), o->name.at);
    return 0;
}

uint32_t ptx_build_address(ptx_builder *b, const ptx_operand *o, int64_t *offset, uint8_t *flags)
{
    if (o->kind != PTX_OPERAND_MEMORY || o->items_len < 1) {
        ptx_build_fail(b, HONE_BAD_TEXT, "an address in brackets is expected");
        return 0;
    }
    const ptx_operand *a = &o->items[0];
    ptx_symbol *s = a->kind == PTX_OPERAND_NAME ? ptx_symbol_find(b, a->name, b->scope) : NULL;
    if (s != NULL && s->kind == SYMBOL_REGISTER) {
        uint32_t v = (uint32_t)s->value;
        *offset = a->offset;
        *flags |= b->vregs[v].width == 8 ? FLAG_ADDRESS64 : 0;
        if (b->vregs[v].width == 0 || s->width == 16) {
            ptx_build_fail(b, HONE_BAD_TEXT, "a predicate or 128 bits are no address");
        }
        return v;
    }
    *offset = 0;
    *flags |= FLAG_ADDRESS64;
    return ptx_build_source(b, a, 8);
}

uint32_t ptx_build_place(ptx_builder *b, const ptx_operand *o, uint32_t width)
{
    int64_t offset = 0;
    uint8_t flags = 0;
    uint32_t v = ptx_build_address(b, o, &offset, &flags), have = flags & FLAG_ADDRESS64 ? 8 : 4;

    if (b->status == HONE_OK && b->vregs[v].kind == VREG_CONSTANT) {
        return ptx_build_constant(b, b->vregs[v].value, width);
    }
    if (have != width) {
        uint32_t t = ptx_build_vreg(b, width);
        ptx_build_helper(b, have == 8 ? "low.b64" : "extend.u64", (uint32_t[]){t, v});
        v = t;
    }
    if (offset != 0) {
        uint32_t t = ptx_build_vreg(b, width);
        uint32_t more = ptx_build_constant(b, (uint64_t)offset, width);
        ptx_build_helper(b, width == 8 ? "add.s64" : "add.s32", (uint32_t[]){t, v, more});
        v = t;
    }
    return v;
}

instruction *ptx_build_emit(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                            const uint32_t *operands)
{
    uint32_t n = results + sources;

    if (b->code_len >= PTX_KERNEL_INSTRUCTIONS) {
        ptx_build_fail(b, HONE_LIMIT, "a kernel of more than %d instructions, calls inlined",
                       PTX_KERNEL_INSTRUCTIONS);
    }
    if (b->status != HONE_OK || !ROOM(b, code, code_len, code_capacity) ||
        !ROOM(b, operand_at, code_len, at_capacity) ||
        !ROOM(b, place_at, code_len, place_capacity)) {
        return NULL;
    }
    while (b->operands_capacity - b->operands_len <= n) { /* never none: it is pointed into */
        if (!room(b, (void **)(void *)&b->operands, b->operands_capacity, &b->operands_capacity,
                  sizeof *b->operands)) {
            return NULL;
        }
    }
    b->operand_at[b->code_len] = b->operands_len;
    b->place_at[b->code_len] = b->statement->place;
    for (uint32_t k = 0; k < n; k++) {
        b->operands[b->operands_len++] = operands[k];
    }
    instruction *i = &b->code[b->code_len++];
    *i = (instruction){.run = run,
                       .results = (uint8_t)results,
                       .sources = (uint8_t)sources,
                       .guard = b->guard,
                       .guard_negated = b->guard_negated,
                       .member = MACHINE_NONE,
                       .line = b->statement->line};
    for (uint32_t k = results; k < n && k < results + 32; k++) {
        i->wide |= (uint32_t)(b->vregs[operands[k]].width == 8) << (k - results);
    }
    return i;
}

const exec_row *ptx_build_find(const ptx_builder *b, ptx_text name)
{
    uint32_t h = 5381;

    for (size_t n = 0; n < name.len; n++) {
        h = h * 33 ^ (unsigned char)name.at[n];
    }
    for (uint32_t at = h & (b->ops_len - 1); b->ops[at].row != NULL;
         at = (at + 1) & (b->ops_len - 1)) {
        if (ptx_text_equal(b->ops[at].name, name)) {
            return b->ops[at].row;
        }
    }
    return NULL;
}

instruction *ptx_build_op(ptx_builder *b, const char *name, const uint32_t *operands)
{
    const exec_row *row = ptx_build_find(b, (ptx_text){name, strlen(name)});
    const char *equals = row != NULL ? strchr(row->signature, '=') : NULL;

    if (equals == NULL) {
        ptx_build_fail(b, HONE_UNSUPPORTED, "operation %s", name);
        return NULL;
    }
    uint32_t results = (uint32_t)(equals - row->signature);
    instruction *i = ptx_build_emit(b, row->run, results, (uint32_t)strlen(equals + 1), operands);
    if (i != NULL) {
        i->pipe = (uint8_t)row->pipe;
        i->taint = (uint8_t)row->taint;
    }
    return i;
}

instruction *ptx_build_helper(ptx_builder *b, const char *name, const uint32_t *operands)
{
    instruction *i = ptx_build_op(b, name, operands);
    if (i != NULL) {
        i->guard = MACHINE_NONE;
        i->flags |= FLAG_HIDDEN;
    }
    return i;
}

void ptx_build_close(ptx_builder *b)
{
    free(b->code);
    free(b->operand_at);
    free(b->place_at);
    free(b->operands);
    free(b->targets);
    free(b->watched);
    free(b->vregs);
    free(b->symbols);
    free(b->constant_next);
    free(b->scope_parent);
    free(b->fixups);
}
