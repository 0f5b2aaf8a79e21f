/* decode.c - a function's statements to instructions: finds the family of each mnemonic,
 * inlines nothing itself, and reports what no family takes. */
#include "emulator/ptx/build.h"

#include <stdlib.h>
#include <string.h>

/* One row for each base mnemonic. */
static const struct {
    const char *base;
    bool (*decode)(ptx_builder *b, ptx_form *f);
} families[] = {
    {"mov", ptx_decode_mov},
    {"setp", ptx_decode_setp},
    {"set", ptx_decode_set},
    {"cvt", ptx_decode_cvt},
    {"cvta", ptx_decode_cvta},
    {"isspacep", ptx_decode_isspacep},
    {"ld", ptx_decode_load},
    {"ldu", ptx_decode_load},
    {"st", ptx_decode_store},
    {"atom", ptx_decode_atomic},
    {"red", ptx_decode_atomic},
    {"ldmatrix", ptx_decode_ldmatrix},
    {"cp", ptx_decode_cp},
    {"mma", ptx_decode_mma},
    {"bra", ptx_decode_branch},
    {"brx", ptx_decode_branch},
    {"ret", ptx_decode_return},
    {"exit", ptx_decode_exit},
    {"trap", ptx_decode_trap},
    {"brkpt", ptx_decode_nothing},
    {"call", ptx_decode_call},
    {"bar", ptx_decode_barrier},
    {"barrier", ptx_decode_barrier},
    {"shfl", ptx_decode_shuffle},
    {"vote", ptx_decode_vote},
    {"match", ptx_decode_match},
    {"redux", ptx_decode_redux},
    {"elect", ptx_decode_elect},
    {"activemask", ptx_decode_activemask},
    {"mbarrier", ptx_decode_mbarrier},
    {"tensormap", ptx_decode_tensormap},
    {"wgmma", ptx_decode_wgmma},
    {"stmatrix", ptx_decode_stmatrix},
    {"movmatrix", ptx_decode_movmatrix},
    {"createpolicy", ptx_decode_createpolicy},
    {"mapa", ptx_decode_mapa},
    {"getctarank", ptx_decode_getctarank},
    {"setmaxnreg", ptx_decode_setmaxnreg},
    {"griddepcontrol", ptx_decode_griddepcontrol},
    /* one instruction at a time is done before the next begins: order holds without fences */
    {"membar", ptx_decode_fence},
    {"fence", ptx_decode_fence},
    {"nanosleep", ptx_decode_nanosleep},
    {"prefetch", ptx_decode_prefetch},
    {"prefetchu", ptx_decode_nothing},
    {"discard", ptx_decode_nothing},
    {"applypriority", ptx_decode_nothing},
    {"pmevent", ptx_decode_nothing},
};

static ptx_form split_form(ptx_text name)
{
    ptx_form f = {.base = name};
    size_t from = 0;

    for (size_t n = 0; n <= name.len; n++) {
        if (n < name.len && name.at[n] != '.') {
            continue;
        }
        ptx_text part = {name.at + from, n - from};
        if (from == 0) {
            f.base = part;
        } else if (f.parts_len < PTX_PARTS) {
            f.parts[f.parts_len++] = part;
        }
        from = n + 1;
    }
    return f;
}

bool ptx_form_has(const ptx_form *f, const char *part)
{
    for (uint32_t n = 0; n < f->parts_len; n++) {
        if (ptx_text_is(f->parts[n], part)) {
            return true;
        }
    }
    return false;
}

bool ptx_form_take(ptx_form *f, const char *part)
{
    for (uint32_t n = 0; n < f->parts_len; n++) {
        if (ptx_text_is(f->parts[n], part)) {
            f->parts_len--;
            memmove(&f->parts[n], &f->parts[n + 1], (f->parts_len - n) * sizeof f->parts[0]);
            return true;
        }
    }
    return false;
}

ptx_text ptx_form_type(const ptx_form *f)
{
    return f->parts_len > 0 ? f->parts[f->parts_len - 1] : (ptx_text){"", 0};
}

static void widen_results(ptx_builder *b)
{
    for (uint32_t n = 0; n < b->widenings_len; n++) {
        const ptx_widening *v = &b->widenings[n];
        instruction *i = ptx_build_op(b, v->is_signed ? "extend.s64" : "extend.u64",
                                      (uint32_t[]){v->to, v->from});
        if (i != NULL) {
            i->flags |= FLAG_HIDDEN;
        }
    }
    b->widenings_len = 0;
}

static void decode_guard(ptx_builder *b, const ptx_statement *s)
{
    b->guard = MACHINE_NONE;
    b->guard_negated = s->guard_negated;
    if (s->guard.len == 0) {
        return;
    }
    ptx_operand name = {.kind = PTX_OPERAND_NAME, .name = s->guard};
    uint32_t p = ptx_build_source(b, &name, 0);
    b->guard = p;
}

static void decode_instruction(ptx_builder *b, const ptx_statement *s)
{
    ptx_form f = split_form(s->name);
    bool (*decode)(ptx_builder *, ptx_form *) = ptx_decode_alu;

    decode_guard(b, s);
    for (size_t n = 0; n < ARRAY_LEN(families); n++) {
        if (ptx_text_is(f.base, families[n].base)) {
            decode = families[n].decode;
        }
    }
    if (!decode(b, &f) && b->status == HONE_OK) {
        ptx_build_unsupported(b, NULL);
    }
    widen_results(b);
    b->guard = MACHINE_NONE;
}

static void decode_label(ptx_builder *b, const ptx_statement *s)
{
    bool table = s->next != NULL && s->next->kind == PTX_TARGETS;
    uint32_t made = ptx_symbol_add(b, s->name, table ? SYMBOL_TARGETS : SYMBOL_LABEL, b->code_len);

    if (b->status == HONE_OK) {
        b->symbols[made].targets = s->next;
    }
}

void ptx_decode_body(ptx_builder *b, const ptx_statement *first)
{
    const ptx_statement *outer = b->statement;

    for (const ptx_statement *s = first; s != NULL && b->status == HONE_OK; s = s->next) {
        b->statement = s;
        switch (s->kind) {
        case PTX_INSTRUCTION:
            decode_instruction(b, s);
            break;
        case PTX_LABEL:
            decode_label(b, s);
            break;
        case PTX_OPEN:
            b->scope = ptx_symbol_open_scope(b, b->scope);
            break;
        case PTX_CLOSE:
            b->scope = b->scopes_len > 0 ? b->scope_parent[b->scope] : 0;
            break;
        case PTX_REGISTERS:
        case PTX_VARIABLE:
            ptx_symbol_declare(b, s->variable, s->kind == PTX_REGISTERS);
            break;
        case PTX_TARGETS:
            break;
        }
    }
    b->statement = outer;
}

static uint32_t label_target(ptx_builder *b, ptx_text name, uint32_t scope, int32_t line)
{
    ptx_symbol *s = ptx_symbol_find(b, name, scope);

    if (s != NULL && s->kind == SYMBOL_LABEL) {
        return (uint32_t)s->value;
    }
    if (b->status == HONE_OK) {
        b->status = status_set(b->error, HONE_BAD_TEXT, "ptx", line, "no label \"%.*s\" here",
                               (int)(name.len < 80 ? name.len : 80), name.at);
    }
    return 0;
}

static void resolve_table(ptx_builder *b, const ptx_fixup *x)
{
    uint32_t n = x->targets->operands_len;

    while (b->targets_capacity - b->targets_len < n + 1) {
        uint32_t *bigger =
            ptx_grow(b, b->targets, b->targets_capacity, &b->targets_capacity, sizeof *bigger);
        if (bigger == NULL) {
            return;
        }
        b->targets = bigger;
    }
    b->code[x->at].target = b->targets_len;
    b->targets[b->targets_len++] = n;
    for (uint32_t k = 0; k < n; k++) {
        b->targets[b->targets_len++] =
            label_target(b, x->targets->operands[k].name, x->scope, x->line);
    }
}

static void resolve_branches(ptx_builder *b)
{
    for (uint32_t n = 0; n < b->fixups_len && b->status == HONE_OK; n++) {
        const ptx_fixup *x = &b->fixups[n];
        if (x->targets != NULL) {
            resolve_table(b, x);
        } else {
            b->code[x->at].target = label_target(b, x->label, x->scope, x->line);
        }
    }
}

static void declare_params(ptx_builder *b, const ptx_function *f, ptx_kernel *out)
{
    uint64_t top = 0;

    for (uint32_t n = 0; n < f->params_len && b->status == HONE_OK; n++) {
        const ptx_variable *v = &f->params[n];
        uint64_t bytes = (uint64_t)v->element_bytes * v->count;
        top = (top + v->align - 1) / v->align * v->align;
        if (n >= ARRAY_LEN(out->param_offset) || top + bytes > 32764) {
            ptx_build_fail(b, HONE_LIMIT, "more than %zu parameters or 32764 bytes of them",
                           ARRAY_LEN(out->param_offset));
            return;
        }
        out->param_offset[n] = (uint32_t)top;
        out->param_bytes[n] = (uint32_t)bytes;
        uint32_t s = ptx_symbol_add(b, v->name, SYMBOL_ADDRESS, top);
        if (b->status == HONE_OK) {
            b->symbols[s].space = PTX_PARAM;
        }
        top += bytes;
    }
    out->params_len = f->params_len;
    out->params_bytes = b->params_bytes = (uint32_t)top;
}

static char *copy_name(ptx_text name)
{
    char *copy = malloc(name.len + 1);
    if (copy != NULL) {
        memcpy(copy, name.at, name.len);
        copy[name.len] = '\0';
    }
    return copy;
}

/* Whether CTAs may wait for one another in global memory, or add to it in an order that shows:
 * strong accesses that are not of shared memory, fences. */
static bool talks(const ptx_builder *b)
{
    for (uint32_t n = 0; n < b->code_len; n++) {
        const instruction *i = &b->code[n];
        if (i->order != 0 && i->scope >= SCOPE_GPU &&
            (i->space == PTX_GENERIC || i->space == PTX_GLOBAL)) {
            return true;
        }
    }
    return false;
}

hone_status ptx_decode_kernel(ptx_builder *b, const ptx_function *f, ptx_kernel *out)
{
    ptx_statement end = {.kind = PTX_INSTRUCTION, .name = {"exit", 4}};

    ptx_symbol_open_scope(b, 0);
    ptx_symbol_module(b, f);
    b->scope = ptx_symbol_open_scope(b, 0);
    declare_params(b, f, out);
    uint32_t dynamic_at = b->static_shared;
    for (uint32_t n = 0; n < b->symbols_len; n++) { /* where dynamic shared memory begins */
        const ptx_symbol *s = &b->symbols[n];
        if (s->variable != NULL && s->space == PTX_SHARED && s->variable->count == 0) {
            dynamic_at = (uint32_t)s->value;
        }
    }
    ptx_decode_body(b, f->body);
    b->statement = &end; /* control never runs off the end */
    decode_instruction(b, &end);
    resolve_branches(b);
    out->name = copy_name(f->name);
    if (out->name == NULL) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's name");
    }
    out->static_shared_bytes = b->static_shared > dynamic_at ? b->static_shared : dynamic_at;
    out->local_bytes = (b->local_bytes + 15) / 16 * 16;
    out->max_threads = f->max_threads != 0 ? f->max_threads : 1024;
    memcpy(out->required_threads, f->required_threads, sizeof out->required_threads);
    memcpy(out->cluster, f->cluster, sizeof out->cluster);
    out->max_cluster_rank = f->max_cluster_rank;
    out->min_ctas = f->min_ctas;
    out->max_registers = f->max_registers;
    out->explicit_cluster = f->explicit_cluster;
    out->talks = talks(b);
    if (b->status == HONE_OK && b->report->count == 0) {
        b->status = ptx_place_keep(b, out);
    }
    return b->status == HONE_OK && b->report->count == 0 ? ptx_opt_allocate(b, out) : b->status;
}
