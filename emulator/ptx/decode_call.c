/* decode_call.c - calls: device functions are inlined, called by name or through an address; a few
 * of the host's are built in. */
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

static bool is_active(const ptx_builder *b, const ptx_function *f)
{
    for (uint32_t n = 0; n < b->call_depth; n++) {
        if (b->calls[n] == f) {
            return true;
        }
    }
    return false;
}

/* False: the arguments do not fit. */
static bool inline_call(ptx_builder *b, const ptx_function *f, const ptx_operand *results,
                        const ptx_operand *params)
{
    static const ptx_text end = {"<end>", 5};
    uint32_t caller = b->scope;

    b->scope = ptx_symbol_open_scope(b, 0);
    if (!bind_params(b, f->results, f->results_len, results, caller) ||
        !bind_params(b, f->params, f->params_len, params, caller)) {
        b->scope = caller;
        return false;
    }
    b->calls[b->call_depth++] = f;
    uint32_t inner = b->scope;
    ptx_decode_body(b, f->body);
    b->call_depth--;
    b->scope = inner;
    ptx_symbol_add(b, end, SYMBOL_LABEL, b->code_len);
    b->scope = caller;
    return true;
}

static bool call_function(ptx_builder *b, const ptx_function *f, const ptx_operand *results,
                          const ptx_operand *params)
{
    if (b->call_depth >= PTX_CALL_DEPTH || is_active(b, f)) {
        ptx_build_unsupported(b, "a function that calls itself, or calls 16 deep");
        return true;
    }
    return inline_call(b, f, results, params);
}

/* What the host's functions are given: 8 or 4 bytes at a parameter's place. */
static bool load_argument(ptx_builder *b, const ptx_operand *params, uint32_t n, uint32_t width,
                          uint32_t *out)
{
    ptx_symbol *s =
        params != NULL && n < params->items_len && params->items[n].kind == PTX_OPERAND_NAME
            ? ptx_symbol_find(b, params->items[n].name, b->scope)
            : NULL;
    ptx_access a = {.space = PTX_LOCAL, .bytes = width, .elements = 1};

    if (s == NULL || s->kind != SYMBOL_ADDRESS || s->space != PTX_LOCAL) {
        return false;
    }
    uint64_t at = s->value;
    *out = ptx_build_vreg(b, width);
    uint32_t o[2] = {*out, ptx_build_constant(b, at, 8)};
    instruction *i = ptx_build_emit(b, exec_load, 1, 1, o);
    ptx_build_access(i, &a, FLAG_ADDRESS64 | FLAG_HIDDEN, 0);
    return true;
}

static void host_instruction(instruction *i)
{
    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
}

/* vprintf(format, arguments): how many it printed */
static bool call_printf(ptx_builder *b, const ptx_operand *results, const ptx_operand *params)
{
    ptx_access a = {.space = PTX_LOCAL, .bytes = 4, .elements = 1};
    uint32_t o[3] = {ptx_build_vreg(b, 4)};

    if (!load_argument(b, params, 0, 8, &o[1]) || !load_argument(b, params, 1, 8, &o[2])) {
        return false;
    }
    host_instruction(ptx_build_emit(b, exec_printf, 1, 2, o));
    if (results == NULL || results->items_len != 1) {
        return true;
    }
    ptx_symbol *s = ptx_symbol_find(b, results->items[0].name, b->scope);
    if (s == NULL || s->kind != SYMBOL_ADDRESS) {
        return false;
    }
    uint32_t store[2] = {ptx_build_constant(b, s->value, 8), o[0]};
    instruction *i = ptx_build_emit(b, exec_store, 0, 2, store);
    ptx_build_access(i, &a, FLAG_ADDRESS64 | FLAG_HIDDEN, 0);
    return true;
}

/* __assertfail(message, file, line, function, character size) */
static bool call_assert(ptx_builder *b, const ptx_operand *params)
{
    uint32_t o[4] = {0}, sources = 0;

    if (load_argument(b, params, 0, 8, &o[0]) && load_argument(b, params, 1, 8, &o[1]) &&
        load_argument(b, params, 2, 4, &o[2]) && load_argument(b, params, 3, 8, &o[3])) {
        sources = 4;
    }
    host_instruction(ptx_build_emit(b, exec_assert, 0, sources, o));
    return true;
}

/* Functions that the toolkit's runtime gives. *good: the arguments fit. */
static bool host_call(ptx_builder *b, ptx_text name, const ptx_operand *results,
                      const ptx_operand *params, bool *good)
{
    static const char *const missing[] = {"malloc", "free", "cudaGetParameterBufferV2",
                                          "cudaLaunchDeviceV2"};
    *good = true;
    if (ptx_text_is(name, "vprintf")) {
        *good = call_printf(b, results, params);
        return true;
    }
    if (ptx_text_is(name, "__assertfail")) {
        *good = call_assert(b, params);
        return true;
    }
    for (size_t n = 0; n < ARRAY_LEN(missing); n++) {
        if (ptx_text_is(name, missing[n])) {
            ptx_build_unsupported(b, "no device heap, no launches from the device");
            return true;
        }
    }
    return false;
}

/* The definition behind a name; a declaration may stand before it, an alias in its place. */
static const ptx_function *find_function(const ptx_builder *b, ptx_text name)
{
    for (const ptx_alias *a = b->tree->aliases; a != NULL; a = a->next) {
        name = ptx_text_equal(a->name, name) ? a->of : name;
    }
    for (const ptx_function *f = b->tree->functions; f != NULL; f = f->next) {
        if (f->has_body && !f->is_entry && ptx_text_equal(f->name, name)) {
            return f;
        }
    }
    return NULL;
}

static bool takes(uint32_t len, const ptx_operand *actual)
{
    return (actual == NULL ? 0 : actual->items_len) == len;
}

/* One function that an address may mean: compared with, then inlined behind a branch. */
static void call_candidate(ptx_builder *b, const ptx_function *f, uint32_t address,
                           const ptx_operand *results, const ptx_operand *params)
{
    static const ptx_text next = {"<next>", 6}, done = {"<done>", 6};
    uint64_t value = ptx_function_address(b->tree, f->name);
    uint32_t p = ptx_build_vreg(b, 0), want = ptx_build_constant(b, value, 8), outer = b->scope;

    if (!takes(f->results_len, results) || !takes(f->params_len, params) || is_active(b, f)) {
        return;
    }
    ptx_build_helper(b, "setp.ne.u64", (uint32_t[]){p, address, want});
    b->scope = ptx_symbol_open_scope(b, outer);
    b->guard = p;
    b->guard_negated = false;
    ptx_build_branch(b, next);
    b->guard = MACHINE_NONE;
    if (call_function(b, f, results, params)) {
        ptx_build_branch(b, done);
    }
    ptx_symbol_add(b, next, SYMBOL_LABEL, b->code_len);
    b->scope = outer;
}

/* call (r), %rd, (p), prototype|targets: every function whose address the module takes is tried, or
 * those of .calltargets. */
static bool call_indirect(ptx_builder *b, const ptx_operand *name, const ptx_operand *last,
                          const ptx_operand *results, const ptx_operand *params)
{
    static const ptx_text done = {"<done>", 6};
    ptx_symbol *list = last != NULL ? ptx_symbol_find(b, last->name, b->scope) : NULL;
    const ptx_statement *targets =
        list != NULL && list->kind == SYMBOL_TARGETS ? list->targets : NULL;
    uint32_t address = ptx_build_source(b, name, 8), outer = b->scope;

    b->scope = ptx_symbol_open_scope(b, outer);
    for (const ptx_function *f = b->tree->functions; f != NULL; f = f->next) {
        bool named = targets == NULL ? ptx_function_is_taken(b->tree, f->name) : false;
        for (uint32_t n = 0; targets != NULL && n < targets->operands_len; n++) {
            named = named || find_function(b, targets->operands[n].name) == f;
        }
        if (named && f->has_body && !f->is_entry && b->call_depth < PTX_CALL_DEPTH) {
            call_candidate(b, f, address, results, params);
        }
    }
    instruction *i = ptx_build_emit(b, exec_no_function, 0, 1, &address);
    host_instruction(i);
    ptx_symbol_add(b, done, SYMBOL_LABEL, b->code_len);
    b->scope = outer;
    return true;
}

static bool call_any(ptx_builder *b, const ptx_operand *name, const ptx_operand *last,
                     const ptx_operand *results, const ptx_operand *params)
{
    bool good = true;
    ptx_symbol *s = NULL;

    if (host_call(b, name->name, results, params, &good)) {
        return good;
    }
    s = ptx_symbol_find(b, name->name, b->scope);
    if (s != NULL && s->kind == SYMBOL_REGISTER) {
        return call_indirect(b, name, last, results, params);
    }
    const ptx_function *f = find_function(b, name->name);
    return f != NULL && call_function(b, f, results, params);
}

/* call{.uni} {(results),} name|register {, (params)} {, prototype|targets} */
bool ptx_decode_call(ptx_builder *b, ptx_form *f)
{
    static const ptx_text skipped = {"<skipped>", 9};
    const ptx_statement *s = b->statement;
    const ptx_operand *results = NULL, *params = NULL, *name = NULL, *last = NULL;
    uint32_t outer = b->scope;

    (void)f;
    for (uint32_t n = 0; n < s->operands_len; n++) {
        const ptx_operand *o = &s->operands[n];
        if (o->kind == PTX_OPERAND_LIST && name == NULL) {
            results = o;
        } else if (o->kind == PTX_OPERAND_LIST) {
            params = o;
        } else if (o->kind != PTX_OPERAND_NAME || last != NULL) {
            return false;
        } else if (name == NULL) {
            name = o;
        } else {
            last = o;
        }
    }
    if (name == NULL) {
        return false;
    }
    if (b->guard == MACHINE_NONE) {
        return call_any(b, name, last, results, params);
    }
    b->scope = ptx_symbol_open_scope(b, outer); /* predicated: around it */
    b->guard_negated = !b->guard_negated;
    ptx_build_branch(b, skipped);
    b->guard = MACHINE_NONE;
    bool good = call_any(b, name, last, results, params);
    ptx_symbol_add(b, skipped, SYMBOL_LABEL, b->code_len);
    b->scope = outer;
    return good;
}
