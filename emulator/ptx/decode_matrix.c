/* decode_matrix.c - the warp's matrix unit: ldmatrix, mma.sync. */
#include "emulator/ptx/build.h"

bool ptx_decode_ldmatrix(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    ptx_access a = {.space = PTX_SHARED, .bytes = 2, .elements = 1};
    uint32_t o[5];
    uint8_t flags = 0;
    int64_t offset = 0;

    a.elements = ptx_form_has(f, "x4") ? 4 : ptx_form_has(f, "x2") ? 2 : 1;
    if (!ptx_form_has(f, "m8n8") || !ptx_text_is(ptx_form_type(f), "b16") || s->operands_len != 2 ||
        !ptx_build_elements(&s->operands[0], a.elements, &items)) {
        return false;
    }
    for (uint32_t n = 0; n < a.elements; n++) {
        o[n] = ptx_build_result(b, &items[n], 4, false);
    }
    o[a.elements] = ptx_build_address(b, &s->operands[1], &offset, &flags);
    instruction *i = ptx_build_emit(b, exec_ldmatrix, a.elements, 1, o);
    ptx_build_access(i, &a, flags | (ptx_form_has(f, "trans") ? FLAG_TRANSPOSED : 0), offset);
    if (i != NULL) {
        i->flow = FLOW_ALIGNED;
    }
    return true;
}

static int matrix_type(ptx_text t)
{
    static const char *const types[] = {"e4m3", "e5m2", "bf16", "f16", "s8", "u8"};
    for (int n = 0; n < (int)ARRAY_LEN(types); n++) { /* in the order of tensor_type */
        if (ptx_text_is(t, types[n])) {
            return n;
        }
    }
    return -1;
}

/* mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 and its kin: d, a, b, c */
bool ptx_decode_mma(ptx_builder *b, ptx_form *f)
{
    static const uint32_t registers[] = {4, 4, 2, 4};
    const ptx_statement *s = b->statement;
    uint32_t o[14], n = 0;

    if (!ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") || !ptx_form_take(f, "row") ||
        !ptx_form_take(f, "col") || f->parts_len != 5 || s->operands_len != 4) {
        return false;
    }
    int a = matrix_type(f->parts[2]), c = matrix_type(f->parts[3]);
    bool half = a == 2 || a == 3, integer = a >= 4;
    const char *result = integer ? "s32" : "f32";
    if (a < 0 || c < 0 || !ptx_text_is(f->parts[0], half ? "m16n8k16" : "m16n8k32") ||
        (half && a != c) || (integer != (c >= 4)) || !ptx_text_is(f->parts[1], result) ||
        !ptx_text_is(f->parts[4], result)) {
        return false;
    }
    for (uint32_t k = 0; k < 4; k++) {
        const ptx_operand *v = &s->operands[k];
        if (v->kind != PTX_OPERAND_VECTOR || v->items_len != registers[k]) {
            return false;
        }
        for (uint32_t e = 0; e < registers[k]; e++) {
            o[n++] = k == 0 ? ptx_build_result(b, &v->items[e], 4, false)
                            : ptx_build_source(b, &v->items[e], 4);
        }
    }
    instruction *i = ptx_build_emit(b, exec_mma, 4, 10, o);
    if (i != NULL) {
        i->pipe = PIPE_TENSOR;
        i->flow = FLOW_ALIGNED;
        i->taint = TAINT_STRICT;
        i->kind = (uint8_t)(a | c << 4);
    }
    return true;
}

bool ptx_decode_stmatrix(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_movmatrix(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}
