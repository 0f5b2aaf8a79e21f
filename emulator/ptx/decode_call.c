/* decode_call.c - calls: device functions are inlined, a few of the host's are built in. */
#include "emulator/ptx/build.h"

/* A formal parameter is another name for the actual one: both are local variables of the inlined
 * code. */
static bool bind_params(ptx_builder *b, const ptx_variable *formal, uint32_t len,
                        const ptx_operand *actual, uint32_t caller)
{
    if ((actual == NULL ? 0 : actual->items_len) != len) {
        return false;
    }
    for (uint32_t n = 0; n < len; n++) {
        ptx_symbol *s = actual->items[n].kind == PTX_OPERAND_NAME
                            ? ptx_symbol_find(b, actual->items[n].name, caller)
                            : NULL;
        if (s == NULL || s->kind != SYMBOL_ADDRESS || s->space != PTX_LOCAL) {
            return false;
        }
        uint64_t at = s->value;
        uint32_t made = ptx_symbol_add(b, formal[n].name, SYMBOL_ADDRESS, at);
        if (b->status == HONE_OK) {
            b->symbols[made].space = PTX_LOCAL;
        }
    }
    return true;
}

static bool inline_call(ptx_builder *b, const ptx_function *f, const ptx_operand *results,
                        const ptx_operand *params)
{
    static const ptx_text end = {"<end>", 5};
    uint32_t caller = b->scope;

    if (b->call_depth >= PTX_CALL_DEPTH || b->guard != MACHINE_NONE) {
        return false; /* recursion, or a predicated call */
    }
    b->scope = ptx_symbol_open_scope(b, 0);
    if (!bind_params(b, f->results, f->results_len, results, caller) ||
        !bind_params(b, f->params, f->params_len, params, caller)) {
        b->scope = caller;
        return false;
    }
    b->call_depth++;
    uint32_t inner = b->scope;
    ptx_decode_body(b, f->body);
    b->call_depth--;
    b->scope = inner;
    ptx_symbol_add(b, end, SYMBOL_LABEL, b->code_len);
    b->scope = caller;
    return true;
}

static bool host_call(ptx_builder *b, ptx_text name, const ptx_operand *results)
{
    bool prints = ptx_text_is(name, "vprintf");
    instruction *i = NULL;

    if (!prints && !ptx_text_is(name, "__assertfail")) {
        return false;
    }
    if (!prints) {
        i = ptx_build_emit(b, exec_assert, 0, 0, NULL);
    } else if (results != NULL &&
               results->items_len == 1) { /* printed text is dropped; 0 arguments */
        ptx_symbol *s = ptx_symbol_find(b, results->items[0].name, b->scope);
        if (s == NULL || s->kind != SYMBOL_ADDRESS) {
            return false;
        }
        uint64_t at = s->value;
        uint32_t o[2] = {ptx_build_constant(b, at, 8), ptx_build_constant(b, 0, 4)};
        i = ptx_build_emit(b, exec_store, 0, 2, o);
        if (i != NULL) {
            i->space = PTX_LOCAL;
            i->element_bytes = 4;
            i->elements = 1;
            i->flags = FLAG_ADDRESS64;
        }
    }
    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return true;
}

/* call{.uni} (results), name, (params); */
bool ptx_decode_call(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *results = NULL, *params = NULL, *name = NULL;

    (void)f;
    for (uint32_t n = 0; n < s->operands_len; n++) {
        const ptx_operand *o = &s->operands[n];
        if (o->kind == PTX_OPERAND_LIST && name == NULL) {
            results = o;
        } else if (o->kind == PTX_OPERAND_LIST) {
            params = o;
        } else if (name == NULL && o->kind == PTX_OPERAND_NAME) {
            name = o;
        } else {
            return false; /* a prototype: an indirect call */
        }
    }
    if (name == NULL) {
        return false;
    }
    if (host_call(b, name->name, results)) {
        return true;
    }
    ptx_symbol *callee = ptx_symbol_find(b, name->name, 0);
    if (callee == NULL || callee->kind != SYMBOL_FUNCTION) {
        return false;
    }
    /* a declaration may stand before the definition */
    for (const ptx_function *g = b->tree->functions; g != NULL; g = g->next) {
        if (g->has_body && !g->is_entry && ptx_text_equal(g->name, name->name)) {
            return inline_call(b, g, results, params);
        }
    }
    return false;
}
