/* decode_control.c - branches, barriers, and what changes no data. */
#include "emulator/ptx/build.h"

#include <string.h>

instruction *ptx_build_control(ptx_builder *b, execute run, machine_flow flow, uint32_t results,
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

void ptx_build_branch(ptx_builder *b, ptx_text label)
{
    ptx_build_control(b, exec_nothing, FLOW_BRANCH, 0, 0, NULL);
    add_fixup(b, label, NULL);
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
        ptx_build_branch(b, s->operands[0].name);
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
    ptx_build_control(b, exec_nothing, FLOW_BRANCH_TABLE, 0, 1, &index);
    add_fixup(b, (ptx_text){0}, targets);
    return true;
}

bool ptx_decode_exit(ptx_builder *b, ptx_form *f)
{
    (void)f;
    ptx_build_control(b, exec_nothing, FLOW_EXIT, 0, 0, NULL);
    return true;
}

/* In an inlined function: a branch to its end. */
bool ptx_decode_return(ptx_builder *b, ptx_form *f)
{
    static const ptx_text end = {"<end>", 5};

    if (b->call_depth == 0) {
        return ptx_decode_exit(b, f);
    }
    ptx_build_branch(b, end);
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

/* Fences and membars keep what they order; the rest orders nothing. */
bool ptx_decode_nothing(ptx_builder *b, ptx_form *f)
{
    instruction *i = ptx_build_emit(b, exec_nothing, 0, 0, NULL);
    if (i != NULL) {
        i->order = ptx_form_order(f, &i->scope);
        if (ptx_text_is(f->base, "membar")) {
            i->order = ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE | ORDER_SC;
        }
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return true;
}

/* How long does not matter: the others get their turns. */
bool ptx_decode_nanosleep(ptx_builder *b, ptx_form *f)
{
    (void)f;
    instruction *i = ptx_build_emit(b, exec_yield, 0, 0, NULL);
    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
        i->taint = TAINT_SELF;
    }
    return b->statement->operands_len == 1;
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
    instruction *i = ptx_build_control(b, exec_warp_sync, FLOW_WARP, 0, 1, &mask);
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
    if (ptx_form_has(f, "cluster")) {
        return ptx_decode_cluster_barrier(b, f);
    }
    if (!barrier_kind(f, &kind)) {
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
    if (ptx_text_is(f->base, "barrier") && !ptx_form_has(f, "aligned")) {
        has |= BAR_ANY_LANES;
    }
    instruction *i = ptx_build_control(b, exec_barrier, FLOW_BARRIER, first, n - first, o);
    if (i != NULL) {
        i->kind = (uint8_t)kind;
        i->elements = has;
    }
    return true;
}
