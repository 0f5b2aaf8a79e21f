/* decode_matrix.c - ldmatrix, stmatrix, movmatrix: 8x8 matrices between shared memory and a warp's
 * registers. */
#include "emulator/ptx/build.h"

/* Matrices of .x1, .x2, .x4; 0 when the form says none. */
static uint32_t take_count(ptx_form *f)
{
    return ptx_form_take(f, "x1") ? 1 : ptx_form_take(f, "x2") ? 2 : ptx_form_take(f, "x4") ? 4 : 0;
}

static void take_space(ptx_form *f)
{
    if (!ptx_form_take(f, "shared")) {
        ptx_form_take(f, "shared::cta");
    }
}

static void emit_matrix(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                        const uint32_t *o, const ptx_access *a, uint8_t flags, int64_t offset)
{
    instruction *i = ptx_build_emit(b, run, results, sources, o);

    ptx_build_access(i, a, flags, offset);
    if (i != NULL) {
        i->flow = FLOW_ALIGNED;
    }
}

/* ldmatrix of 16-bit elements, or of 4- and 6-bit ones that become bytes (m8n16). */
bool ptx_decode_ldmatrix(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    ptx_access a = {.space = PTX_SHARED, .bytes = 2};
    uint32_t o[5] = {0};
    int64_t offset = 0;

    a.elements = take_count(f);
    take_space(f);
    uint8_t flags = ptx_form_take(f, "trans") ? FLAG_TRANSPOSED : 0;
    bool aligned = ptx_form_take(f, "sync") && ptx_form_take(f, "aligned");
    bool halves = ptx_form_take(f, "m8n8") && ptx_form_take(f, "b16");
    uint8_t bits = 0; /* of narrow elements */
    if (!halves && ptx_form_take(f, "m8n16") && ptx_form_take(f, "b8x16") && flags == 0) {
        bits = ptx_form_take(f, "b4x16_p64") ? 4 : ptx_form_take(f, "b6x16_p32") ? 6 : 0;
    }
    if (!aligned || (!halves && bits == 0) || a.elements == 0 || f->parts_len != 0 ||
        s->operands_len != 2 || !ptx_build_elements(&s->operands[0], a.elements, &items)) {
        return false;
    }
    for (uint32_t n = 0; n < a.elements; n++) {
        o[n] = ptx_build_result(b, &items[n], 4, false);
    }
    o[a.elements] = ptx_build_address(b, &s->operands[1], &offset, &flags);
    emit_matrix(b, exec_ldmatrix, a.elements, 1, o, &a, flags, offset);
    if (b->status == HONE_OK) {
        b->code[b->code_len - 1].kind = bits;
    }
    return true;
}

/* stmatrix.sync.aligned.x4.m8n8{.trans}.shared.b16 [address], {registers} */
bool ptx_decode_stmatrix(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    ptx_access a = {.space = PTX_SHARED, .bytes = 2};
    uint32_t o[5] = {0};
    int64_t offset = 0;

    a.elements = take_count(f);
    take_space(f);
    uint8_t flags = ptx_form_take(f, "trans") ? FLAG_TRANSPOSED : 0;
    if (!ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") || !ptx_form_take(f, "m8n8") ||
        !ptx_form_take(f, "b16") || a.elements == 0 || f->parts_len != 0 || s->operands_len != 2 ||
        !ptx_build_elements(&s->operands[1], a.elements, &items)) {
        return false;
    }
    o[0] = ptx_build_address(b, &s->operands[0], &offset, &flags);
    for (uint32_t n = 0; n < a.elements; n++) {
        o[1 + n] = ptx_build_source(b, &items[n], 4);
    }
    emit_matrix(b, exec_stmatrix, 0, 1 + a.elements, o, &a, flags, offset);
    return true;
}

/* movmatrix.sync.aligned.m8n8.trans.b16 d, a */
bool ptx_decode_movmatrix(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;

    if (!ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") || !ptx_form_take(f, "m8n8") ||
        !ptx_form_take(f, "trans") || !ptx_form_take(f, "b16") || f->parts_len != 0 ||
        s->operands_len != 2) {
        return false;
    }
    uint32_t o[2] = {0, ptx_build_source(b, &s->operands[1], 4)};
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    instruction *i = ptx_build_control(b, exec_movmatrix, FLOW_ALIGNED, 1, 1, o);
    if (i != NULL) {
        i->pipe = PIPE_ALU;
    }
    return true;
}
