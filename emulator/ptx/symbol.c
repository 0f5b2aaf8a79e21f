/* symbol.c - names in scopes: registers, labels, variables, functions. */
#include "emulator/ptx/build.h"

#include <ctype.h>
#include <string.h>

static uint32_t *head_of(ptx_builder *b, ptx_text name, uint32_t scope)
{
    uint32_t h = 5381 + scope * 2654435761u;

    for (size_t n = 0; n < name.len; n++) {
        h = h * 33 ^ (unsigned char)name.at[n];
    }
    return &b->heads[(h ^ h >> 12) % ARRAY_LEN(b->heads)];
}

uint32_t ptx_symbol_add(ptx_builder *b, ptx_text name, ptx_symbol_kind kind, uint64_t value)
{
    ptx_symbol *bigger =
        ptx_grow(b, b->symbols, b->symbols_len, &b->symbols_capacity, sizeof *bigger);

    if (bigger == NULL) {
        return 0;
    }
    b->symbols = bigger;
    uint32_t *head = head_of(b, name, b->scope);
    b->symbols[b->symbols_len] =
        (ptx_symbol){.name = name, .scope = b->scope, .next = *head, .kind = kind, .value = value};
    *head = b->symbols_len + 1;
    return b->symbols_len++;
}

static ptx_symbol *find_here(ptx_builder *b, ptx_text name, uint32_t scope)
{
    for (uint32_t n = *head_of(b, name, scope); n != 0; n = b->symbols[n - 1].next) {
        ptx_symbol *s = &b->symbols[n - 1];
        if (s->scope == scope && ptx_text_equal(s->name, name)) {
            return s;
        }
    }
    return NULL;
}

/* 128 bits are two registers of 64, one after the other. */
static uint32_t add_register(ptx_builder *b, ptx_text name, uint8_t width)
{
    uint32_t v = ptx_build_vreg(b, width == 16 ? 8 : width);

    if (width == 16) {
        ptx_build_vreg(b, 8);
    }
    uint32_t made = ptx_symbol_add(b, name, SYMBOL_REGISTER, v);
    if (b->status == HONE_OK) {
        b->symbols[made].width = width;
    }
    return made;
}

/* %r17 of `.reg .b32 %r<99>`: made when it is first met, so that a huge count costs nothing. */
static ptx_symbol *find_member(ptx_builder *b, ptx_text name, uint32_t scope)
{
    ptx_text prefix = name;
    uint64_t index = 0, scale = 1;

    while (prefix.len > 0 && isdigit((unsigned char)prefix.at[prefix.len - 1]) &&
           scale < 1000000000) {
        index += scale * (uint64_t)(prefix.at[--prefix.len] - '0');
        scale *= 10;
    }
    ptx_symbol *family = scale > 1 ? find_here(b, prefix, scope) : NULL;
    if (family == NULL || family->kind != SYMBOL_FAMILY || index >= family->value) {
        return NULL;
    }
    uint32_t inner = b->scope;
    uint8_t width = family->width;
    b->scope = scope;
    uint32_t made = add_register(b, name, width);
    b->scope = inner;
    return b->status == HONE_OK ? &b->symbols[made] : NULL;
}

ptx_symbol *ptx_symbol_find(ptx_builder *b, ptx_text name, uint32_t scope)
{
    while (b->status == HONE_OK) {
        ptx_symbol *s = find_here(b, name, scope);
        s = s != NULL ? s : find_member(b, name, scope);
        if (s != NULL || scope == 0) {
            return s;
        }
        scope = b->scope_parent[scope];
    }
    return NULL;
}

uint32_t ptx_symbol_open_scope(ptx_builder *b, uint32_t parent)
{
    uint32_t *bigger =
        ptx_grow(b, b->scope_parent, b->scopes_len, &b->scopes_capacity, sizeof *bigger);

    if (bigger == NULL) {
        return 0;
    }
    b->scope_parent = bigger;
    b->scope_parent[b->scopes_len] = parent;
    return b->scopes_len++;
}

static uint32_t place(ptx_builder *b, uint32_t *top, const ptx_variable *v)
{
    uint64_t at = ((uint64_t)*top + v->align - 1) / v->align * v->align;
    uint64_t end = at + (uint64_t)v->element_bytes * v->count;

    if (end > (UINT64_C(1) << 24)) {
        ptx_build_fail(b, HONE_LIMIT,
                       "\"%.*s\" makes a thread's or a CTA's memory larger than 16 MiB",
                       (int)(v->name.len < 80 ? v->name.len : 80), v->name.at);
        return 0;
    }
    *top = (uint32_t)end;
    return (uint32_t)at;
}

/* A function that is called twice is inlined twice, but its shared variables exist once. */
static const ptx_symbol *find_shared(const ptx_builder *b, const ptx_variable *v)
{
    for (uint32_t n = 0; n < b->symbols_len; n++) {
        if (b->symbols[n].variable == v) {
            return &b->symbols[n];
        }
    }
    return NULL;
}

void ptx_symbol_declare(ptx_builder *b, const ptx_variable *v, bool is_register)
{
    uint8_t width = v->element_bytes == 0   ? 0
                    : v->element_bytes <= 4 ? 4
                    : v->element_bytes <= 8 ? 8
                                            : 16;
    ptx_space space = v->space;
    uint64_t value = 0;

    if (is_register && v->is_family) {
        uint32_t s = ptx_symbol_add(b, v->name, SYMBOL_FAMILY, v->count);
        if (b->status == HONE_OK) {
            b->symbols[s].width = width;
        }
        return;
    }
    if (is_register) {
        add_register(b, v->name, width);
        return;
    }
    const ptx_symbol *before = space == PTX_SHARED ? find_shared(b, v) : NULL;
    if (before != NULL) {
        value = before->value;
    } else if (space == PTX_SHARED) {
        value = place(b, &b->static_shared, v);
    } else if (space == PTX_LOCAL || space == PTX_PARAM) { /* a call's parameters live there too */
        value = place(b, &b->local_bytes, v);
        space = PTX_LOCAL;
    } else {
        ptx_build_fail(b, HONE_BAD_TEXT, "a variable of this space inside a function");
        return;
    }
    uint32_t s = ptx_symbol_add(b, v->name, SYMBOL_ADDRESS, value);
    if (b->status == HONE_OK) {
        b->symbols[s].space = space;
        b->symbols[s].variable = v;
    }
}

static bool mentions(const ptx_operand *o, uint32_t len, ptx_text name)
{
    for (uint32_t n = 0; n < len; n++) {
        if ((o[n].kind == PTX_OPERAND_NAME && ptx_text_equal(o[n].name, name)) ||
            mentions(o[n].items, o[n].items_len, name)) {
            return true;
        }
    }
    return false;
}

static bool body_mentions(const ptx_function *f, ptx_text name)
{
    for (const ptx_statement *s = f->body; s != NULL; s = s->next) {
        if (mentions(s->operands, s->operands_len, name)) {
            return true;
        }
    }
    return false;
}

uint64_t ptx_function_address(const ptx_tree *t, ptx_text name)
{
    uint64_t index = 1;

    for (const ptx_alias *a = t->aliases; a != NULL; a = a->next) {
        name = ptx_text_equal(a->name, name) ? a->of : name;
    }
    for (const ptx_function *f = t->functions; f != NULL; f = f->next, index++) {
        if (ptx_text_equal(f->name, name)) {
            return MACHINE_WINDOW(0x7e) | index << 4;
        }
    }
    return 0;
}

static bool is_taken(const ptx_tree *t, ptx_text name)
{
    for (const ptx_variable_link *l = t->variables; l != NULL; l = l->next) {
        if (mentions(l->variable.initial, l->variable.initial_len, name)) {
            return true;
        }
    }
    for (const ptx_function *f = t->functions; f != NULL; f = f->next) {
        for (const ptx_statement *s = f->body; s != NULL; s = s->next) {
            bool call = s->name.len >= 4 && memcmp(s->name.at, "call", 4) == 0;
            if (!call && mentions(s->operands, s->operands_len, name)) {
                return true;
            }
        }
    }
    return false;
}

bool ptx_function_is_taken(const ptx_tree *t, ptx_text name)
{
    bool taken = is_taken(t, name);

    for (const ptx_alias *a = t->aliases; a != NULL && !taken; a = a->next) {
        taken = ptx_text_equal(a->of, name) && is_taken(t, a->name);
    }
    return taken;
}

/* Shared memory of the kernel, or of a function that it may call. */
static bool is_used(const ptx_builder *b, const ptx_function *kernel, ptx_text name)
{
    bool used = body_mentions(kernel, name);
    for (const ptx_function *f = b->tree->functions; f != NULL && !used; f = f->next) {
        used = !f->is_entry && f->has_body && body_mentions(f, name);
    }
    return used;
}

/* Shared variables declared inside the body come before dynamic memory as well. */
static uint64_t inner_shared(const ptx_function *f, uint64_t top)
{
    for (const ptx_statement *s = f->body; s != NULL; s = s->next) {
        const ptx_variable *v = s->variable;
        if (s->kind == PTX_VARIABLE && v->space == PTX_SHARED) {
            top =
                (top + v->align - 1) / v->align * v->align + (uint64_t)v->element_bytes * v->count;
        }
    }
    return top;
}

static void add_address(ptx_builder *b, const ptx_variable *v, uint64_t value)
{
    uint32_t s = ptx_symbol_add(b, v->name, SYMBOL_ADDRESS, value);
    if (b->status == HONE_OK) {
        b->symbols[s].space = v->space;
        b->symbols[s].variable = v;
    }
}

void ptx_symbol_module(ptx_builder *b, const ptx_function *kernel)
{
    uint32_t dynamic_align = 1;

    for (const ptx_variable_link *l = b->tree->variables; l != NULL; l = l->next) {
        const ptx_variable *v = &l->variable;
        if (v->space == PTX_SHARED && v->count > 0 && is_used(b, kernel, v->name)) {
            add_address(b, v, place(b, &b->static_shared, v));
        }
    }
    uint64_t top = inner_shared(kernel, b->static_shared);
    for (const ptx_function *f = b->tree->functions; f != NULL; f = f->next) {
        top = !f->is_entry && f->has_body ? inner_shared(f, top) : top;
    }
    for (const ptx_variable_link *l = b->tree->variables; l != NULL; l = l->next) {
        const ptx_variable *v = &l->variable;
        if (v->space == PTX_SHARED && v->count == 0 && is_used(b, kernel, v->name)) {
            dynamic_align = v->align > dynamic_align ? v->align : dynamic_align;
        }
    }
    top = (top + dynamic_align - 1) / dynamic_align * dynamic_align;
    for (const ptx_variable_link *l = b->tree->variables; l != NULL; l = l->next) {
        if (l->variable.space == PTX_SHARED && l->variable.count == 0) {
            add_address(b, &l->variable, top);
        }
    }
    for (uint32_t n = 0; n < b->globals_len; n++) {
        uint32_t s = ptx_symbol_add(b, b->globals[n].name, SYMBOL_ADDRESS, b->globals[n].address);
        if (b->status == HONE_OK) {
            b->symbols[s].space = b->globals[n].space;
        }
    }
    for (const ptx_function *f = b->tree->functions; f != NULL; f = f->next) {
        uint32_t s = ptx_symbol_add(b, f->name, SYMBOL_FUNCTION, 0);
        if (b->status == HONE_OK) {
            b->symbols[s].function = f;
        }
    }
}
