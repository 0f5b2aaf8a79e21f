/* decode_control.c - branches, calls, barriers and what the lanes of a warp do together. */
#include "emulator/ptx/build.h"

#include <string.h>

static instruction *emit_control(ptx_builder *b, execute run, machine_flow flow, uint32_t results,
                                 uint32_t sources, const uint32_t *o)
{
    instruction *i = ptx_build_emit(b, run, results, sources, o);
    if (i != NULL) {
        i->flow = (uint8_t)flow;
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return i;
}

static void add_fixup(ptx_builder *b, ptx_text label, const ptx_statement *targets)
{
    ptx_fixup *bigger = ptx_grow(b, b->fixups, b->fixups_len, &b->fixups_capacity, sizeof *bigger);

    b->fixups = bigger != NULL ? bigger : b->fixups;
    if (bigger == NULL || b->code_len == 0) {
        return; /* the branch itself was not made, and that failure stands */
    }
    b->fixups[b->fixups_len++] = (ptx_fixup){.at = b->code_len - 1,
                                             .scope = b->scope,
                                             .label = label,
                                             .targets = targets,
                                             .line = b->statement->line};
}

bool ptx_decode_branch(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;

    if (s->operands_len < 1) {
        return false;
    }
    if (ptx_text_is(f->base, "bra")) {
        if (s->operands_len != 1 || s->operands[0].kind != PTX_OPERAND_NAME) {
            return false;
        }
        emit_control(b, exec_nothing, FLOW_BRANCH, 0, 0, NULL);
        add_fixup(b, s->operands[0].name, NULL);
        return true;
    }
    if (s->operands_len != 2 || s->operands[1].kind != PTX_OPERAND_NAME) {
        return false;
    }
    ptx_symbol *t = ptx_symbol_find(b, s->operands[1].name, b->scope);
    if (t == NULL || t->kind != SYMBOL_TARGETS || t->targets == NULL) {
        return false;
    }
    const ptx_statement *targets = t->targets;
    uint32_t index = ptx_build_source(b, &s->operands[0], 4);
    emit_control(b, exec_nothing, FLOW_BRANCH_TABLE, 0, 1, &index);
    add_fixup(b, (ptx_text){0}, targets);
    return true;
}

bool ptx_decode_exit(ptx_builder *b, ptx_form *f)
{
    (void)f;
    emit_control(b, exec_nothing, FLOW_EXIT, 0, 0, NULL);
    return true;
}

/* In an inlined function: a branch to its end. */
bool ptx_decode_return(ptx_builder *b, ptx_form *f)
{
    static const ptx_text end = {"<end>", 5};

    if (b->call_depth == 0) {
        return ptx_decode_exit(b, f);
    }
    emit_control(b, exec_nothing, FLOW_BRANCH, 0, 0, NULL);
    add_fixup(b, end, NULL);
    return true;
}

bool ptx_decode_trap(ptx_builder *b, ptx_form *f)
{
    (void)f;
    instruction *i = ptx_build_emit(b, exec_trap, 0, 0, NULL);
    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return true;
}

bool ptx_decode_nothing(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_has(f, "tensormap") || ptx_form_has(f, "proxy") ||
        ptx_form_has(f, "mbarrier_init")) {
        return false; /* of the Hopper units, which are not here */
    }
    instruction *i = ptx_build_emit(b, exec_nothing, 0, 0, NULL);
    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return true;
}

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

static bool barrier_kind(ptx_form *f, machine_barrier_kind *out)
{
    static const struct {
        const char *name;
        machine_barrier_kind kind;
    } kinds[] = {{"sync", BAR_SYNC},
                 {"arrive", BAR_ARRIVE},
                 {"popc", BAR_POPC},
                 {"and", BAR_AND},
                 {"or", BAR_OR}};
    for (size_t n = 0; n < ARRAY_LEN(kinds); n++) {
        if (ptx_form_has(f, kinds[n].name)) {
            *out = kinds[n].kind;
            return true;
        }
    }
    return false;
}

static bool warp_barrier(ptx_builder *b)
{
    if (b->statement->operands_len != 1) {
        return false;
    }
    uint32_t mask = ptx_build_source(b, &b->statement->operands[0], 4);
    instruction *i = emit_control(b, exec_nothing, FLOW_WARP, 0, 1, &mask);
    if (i != NULL) {
        i->member = mask;
    }
    return true;
}

/* bar{.warp}.sync|arrive|red..., barrier{.cta}...: id{, threads}{, predicate} */
bool ptx_decode_barrier(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    machine_barrier_kind kind = BAR_SYNC;
    uint32_t o[4], n = 0;
    uint8_t has = 0;

    if (ptx_form_has(f, "warp")) {
        return warp_barrier(b);
    }
    if (ptx_form_has(f, "cluster") || !barrier_kind(f, &kind)) {
        return false;
    }
    bool reduces = kind == BAR_POPC || kind == BAR_AND || kind == BAR_OR;
    uint32_t first = reduces ? 1 : 0, left = s->operands_len - first;
    uint32_t predicates = reduces ? 1 : 0;
    if (s->operands_len < first + 1 + predicates || left - predicates > 2) {
        return false;
    }
    if (reduces) {
        o[n++] = ptx_build_result(b, &s->operands[0], kind == BAR_POPC ? 4 : 0, false);
    }
    o[n++] = ptx_build_source(b, &s->operands[first], 4);
    if (left - predicates == 2) {
        has |= BAR_HAS_COUNT;
        o[n++] = ptx_build_source(b, &s->operands[first + 1], 4);
    }
    if (reduces) {
        has |= BAR_HAS_PREDICATE;
        o[n++] = ptx_build_source(b, &s->operands[s->operands_len - 1], 0);
    }
    instruction *i = emit_control(b, exec_nothing, FLOW_BARRIER, first, n - first, o);
    if (i != NULL) {
        i->kind = (uint8_t)kind;
        i->elements = has;
    }
    return true;
}

/* An instruction of the warp: waits for the lanes of its member mask, which is the last operand. */
static bool emit_warp(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                      const uint32_t *o, uint32_t kind)
{
    instruction *i = emit_control(b, run, FLOW_WARP, results, sources, o);
    if (i != NULL) {
        i->member = o[results + sources - 1];
        i->kind = (uint8_t)kind;
        i->pipe = PIPE_ALU;
    }
    return true;
}

/* shfl.sync.mode.b32 d{|p}, a, b, c, mask */
bool ptx_decode_shuffle(ptx_builder *b, ptx_form *f)
{
    static const char *const modes[] = {"bfly", "idx", "up", "down"};
    const ptx_statement *s = b->statement;
    uint32_t o[6], results = s->operands_len == 6 ? 2 : 1;

    if (!ptx_form_has(f, "sync") || s->operands_len < 5 || s->operands_len > 6) {
        return false;
    }
    for (uint32_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
        if (!ptx_form_has(f, modes[mode])) {
            continue;
        }
        for (uint32_t n = 0; n < s->operands_len; n++) {
            o[n] = n < results ? ptx_build_result(b, &s->operands[n], n == 0 ? 4 : 0, false)
                               : ptx_build_source(b, &s->operands[n], 4);
        }
        return emit_warp(b, exec_shuffle, results, 4, o, mode);
    }
    return false;
}

bool ptx_decode_vote(ptx_builder *b, ptx_form *f)
{
    static const char *const kinds[] = {"ballot", "any", "all", "uni"};
    const ptx_statement *s = b->statement;
    uint32_t o[3];

    for (uint32_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        if (!ptx_form_has(f, kinds[kind]) || !ptx_form_has(f, "sync") || s->operands_len != 3) {
            continue;
        }
        o[0] = ptx_build_result(b, &s->operands[0], kind == VOTE_BALLOT ? 4 : 0, false);
        o[1] = ptx_build_source(b, &s->operands[1], 0);
        o[2] = ptx_build_source(b, &s->operands[2], 4);
        return emit_warp(b, exec_vote, 1, 2, o, kind);
    }
    return false;
}

/* match.any.sync d, a, mask; match.all.sync d|p, a, mask */
bool ptx_decode_match(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool all = ptx_form_has(f, "all");
    uint32_t width = ptx_text_is(ptx_form_type(f), "b64") ? 8 : 4;
    uint32_t o[4], results = s->operands_len == 4 ? 2 : 1;

    if (!ptx_form_has(f, "sync") || s->operands_len < 3 || s->operands_len > 4 ||
        (!all && results == 2)) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    if (results == 2) {
        o[1] = ptx_build_result(b, &s->operands[1], 0, false);
    }
    o[results] = ptx_build_source(b, &s->operands[results], width);
    o[results + 1] = ptx_build_source(b, &s->operands[results + 1], 4);
    emit_warp(b, exec_match, results, 2, o, all);
    if (b->status == HONE_OK) {
        b->code[b->code_len - 1].element_bytes = (uint8_t)width;
    }
    return true;
}

bool ptx_decode_redux(ptx_builder *b, ptx_form *f)
{
    static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor"};
    const ptx_statement *s = b->statement;
    ptx_text type = ptx_form_type(f);
    uint32_t o[3];

    if (s->operands_len != 3 ||
        (!ptx_text_is(type, "u32") && !ptx_text_is(type, "s32") && !ptx_text_is(type, "b32"))) {
        return false;
    }
    for (uint32_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        if (!ptx_form_has(f, kinds[kind])) {
            continue;
        }
        o[0] = ptx_build_result(b, &s->operands[0], 4, false);
        o[1] = ptx_build_source(b, &s->operands[1], 4);
        o[2] = ptx_build_source(b, &s->operands[2], 4);
        emit_warp(b, exec_redux, 1, 2, o, kind);
        if (b->status == HONE_OK && *type.at == 's') {
            b->code[b->code_len - 1].flags |= FLAG_SIGNED;
        }
        return true;
    }
    return false;
}

bool ptx_decode_elect(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t o[3];

    if (!ptx_form_has(f, "sync") || s->operands_len != 3) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    o[1] = ptx_build_result(b, &s->operands[1], 0, false);
    o[2] = ptx_build_source(b, &s->operands[2], 4);
    return emit_warp(b, exec_elect, 2, 1, o, 0);
}

bool ptx_decode_activemask(ptx_builder *b, ptx_form *f)
{
    (void)f;
    if (b->statement->operands_len != 1) {
        return false;
    }
    uint32_t d = ptx_build_result(b, &b->statement->operands[0], 4, false);
    instruction *i = ptx_build_emit(b, exec_activemask, 1, 0, &d);
    if (i != NULL) {
        i->taint = TAINT_SELF;
    }
    return true;
}
