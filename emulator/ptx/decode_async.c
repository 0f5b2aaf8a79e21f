/* decode_async.c - cp.async and its groups; what else begins with cp goes to its own family. */
#include "emulator/ptx/build.h"

/* How many bytes are read: a number or register, or none where the predicate `ignore-src` holds. */
static uint32_t read_bytes(ptx_builder *b, const ptx_operand *o, uint64_t bytes)
{
    ptx_symbol *s = o->kind == PTX_OPERAND_NAME ? ptx_symbol_find(b, o->name, b->scope) : NULL;

    if (s == NULL || s->kind != SYMBOL_REGISTER || b->vregs[s->value].width != 0) {
        return ptx_build_source(b, o, 4);
    }
    uint32_t ignored = ptx_build_source(b, o, 0), t = ptx_build_vreg(b, 4);
    uint32_t none = ptx_build_constant(b, 0, 4), all = ptx_build_constant(b, bytes, 4);
    ptx_build_helper(b, "selp.b32", (uint32_t[]){t, none, all, ignored});
    return t;
}

/* [shared], [global], bytes{, bytes to read or predicate}{, policy} */
static bool decode_async_copy(ptx_builder *b, const ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t given = s->operands_len - (ptx_form_has(f, "L2::cache_hint") ? 1 : 0);
    uint8_t to_flags = 0, from_flags = 0;
    int64_t to_offset = 0, from_offset = 0;
    uint32_t o[3];

    if (given < 3 || given > 4 || s->operands[2].kind != PTX_OPERAND_NUMBER) {
        return false;
    }
    uint64_t bytes = s->operands[2].value;
    if (bytes != 16 && (ptx_form_has(f, "cg") || (bytes != 4 && bytes != 8))) {
        return false;
    }
    o[0] = ptx_build_address(b, &s->operands[0], &to_offset, &to_flags);
    o[1] = ptx_build_address(b, &s->operands[1], &from_offset, &from_flags);
    o[2] = given == 4 ? read_bytes(b, &s->operands[3], bytes) : ptx_build_constant(b, bytes, 4);
    if (to_offset != (int32_t)to_offset || (from_flags & FLAG_ADDRESS64) == 0) {
        return false;
    }
    if (from_offset != 0) { /* the instruction has room for one offset */
        uint32_t sum = ptx_build_vreg(b, 8), add = ptx_build_constant(b, (uint64_t)from_offset, 8);
        ptx_build_helper(b, "add.s64", (uint32_t[]){sum, o[1], add});
        o[1] = sum;
    }
    ptx_access a = {.space = PTX_SHARED, .bytes = (uint32_t)bytes, .elements = 1};
    instruction *i = ptx_build_emit(b, exec_async_copy, 0, 3, o);
    ptx_build_access(i, &a, to_flags, to_offset);
    if (i != NULL) {
        i->pipe = PIPE_ASYNC;
    }
    return true;
}

bool ptx_decode_cp(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t wait = MACHINE_NONE;
    instruction *i = NULL;

    if (!ptx_form_has(f, "async")) {
        return false;
    }
    if (ptx_form_has(f, "mbarrier")) {
        return ptx_decode_async_arrive(b, f);
    }
    if (ptx_form_has(f, "bulk")) {
        return ptx_form_has(f, "tensor") ? ptx_decode_bulk_tensor(b, f) : ptx_decode_bulk(b, f);
    }
    if (ptx_form_has(f, "commit_group")) {
        i = ptx_build_emit(b, exec_async_commit, 0, 0, NULL);
    } else if (ptx_form_has(f, "wait_all")) {
        wait = 0;
    } else if (ptx_form_has(f, "wait_group") && s->operands_len == 1 &&
               s->operands[0].kind == PTX_OPERAND_NUMBER && s->operands[0].value < (1u << 30)) {
        wait = (uint32_t)s->operands[0].value;
    } else {
        return (ptx_form_has(f, "ca") || ptx_form_has(f, "cg")) && decode_async_copy(b, f);
    }
    if (wait != MACHINE_NONE) {
        i = ptx_build_emit(b, exec_async_wait, 0, 0, NULL);
    }
    if (i != NULL) {
        i->pipe = PIPE_ASYNC;
        i->taint = TAINT_SELF;
        i->offset = wait == MACHINE_NONE ? 0 : wait;
        i->elements = ptx_form_has(f, "wait_all"); /* uncommitted copies too */
    }
    return true;
}
