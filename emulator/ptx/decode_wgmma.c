/* decode_wgmma.c - wgmma.* of Hopper. */
#include "emulator/exec/wgmma.h"
#include "emulator/ptx/build.h"

#include <stdio.h>
#include <string.h>

enum { ACCUMULATORS = 128, OPERANDS = 2 * ACCUMULATORS + 6 };

/* The operands of a wgmma.mma_async as they come. */
typedef struct wgmma_form {
    wgmma_result result;
    int a, b; /* tensor_type */
    uint32_t n, depth;
    int64_t flags;
} wgmma_form;

static int type_named(ptx_text t)
{
    static const struct {
        const char *name;
        tensor_type type;
    } types[] = {
        {"e4m3", TENSOR_E4M3}, {"e5m2", TENSOR_E5M2}, {"bf16", TENSOR_BF16}, {"f16", TENSOR_F16},
        {"tf32", TENSOR_TF32}, {"s8", TENSOR_S8},     {"u8", TENSOR_U8},
    };
    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        if (ptx_text_is(t, types[n].name)) {
            return (int)types[n].type;
        }
    }
    return -1;
}

/* m64nNkK */
static bool read_shape(ptx_text t, wgmma_form *out)
{
    char text[16];
    int end = 0;

    if (t.len >= sizeof text) {
        return false;
    }
    memcpy(text, t.at, t.len);
    text[t.len] = '\0';
    return sscanf(text, "m64n%3uk%2u%n", &out->n, &out->depth, &end) == 2 && text[end] == '\0' &&
           out->n >= 8 && out->n <= 256 && out->n % 8 == 0;
}

/* Which types go together, and how deep they are. */
static bool read_types(ptx_form *f, wgmma_form *out)
{
    static const char *const results[] = {"f32", "s32", "f16"};

    if (f->parts_len != 4 || !read_shape(f->parts[0], out)) {
        return false;
    }
    out->a = type_named(f->parts[2]);
    out->b = type_named(f->parts[3]);
    if (out->a < 0 || out->b < 0) {
        return false;
    }
    for (int n = 0; n < 3; n++) {
        out->result = ptx_text_is(f->parts[1], results[n]) ? (wgmma_result)n : out->result;
    }
    if (!ptx_text_is(f->parts[1], results[out->result])) {
        return false;
    }
    bool integers = out->a == TENSOR_S8 || out->a == TENSOR_U8;
    bool bytes = integers || out->a == TENSOR_E4M3 || out->a == TENSOR_E5M2;
    bool other = integers ? out->b == TENSOR_S8 || out->b == TENSOR_U8
                 : bytes  ? out->b == TENSOR_E4M3 || out->b == TENSOR_E5M2
                          : out->b == out->a;
    bool half = bytes || out->a == TENSOR_F16;
    uint32_t depth = bytes ? 32 : out->a == TENSOR_TF32 ? 8 : 16;
    bool steps = !integers || out->n <= 24 || out->n == 32 || out->n % 16 == 0;

    return other && out->depth == depth && steps && integers == (out->result == WGMMA_S32) &&
           (out->result != WGMMA_F16 || (half && !integers)) &&
           ((out->flags & WGMMA_SATURATED) == 0 || integers);
}

/* An immediate that is one of `low` and `high`. */
static bool read_choice(const ptx_operand *o, int64_t low, int64_t high, int64_t *out)
{
    *out = (int64_t)o->value;
    return o->kind == PTX_OPERAND_NUMBER && o->width == 0 && (*out == low || *out == high);
}

/* imm-scale-a, imm-scale-b, and for 16-bit types imm-trans-a (of A in shared memory) and
 * imm-trans-b, from operand `at` on. */
static bool read_scales(const ptx_statement *s, uint32_t at, wgmma_form *out)
{
    bool registers = (out->flags & WGMMA_REGISTERS_A) != 0;
    bool halves = out->a == TENSOR_BF16 || out->a == TENSOR_F16;
    uint32_t scales = out->result == WGMMA_S32 ? 0 : 2;
    uint32_t turns = !halves ? 0 : registers ? 1 : 2;
    int64_t value = 0;

    if (s->operands_len != at + scales + turns) {
        return false;
    }
    for (uint32_t n = 0; n < scales; n++) {
        if (!read_choice(&s->operands[at + n], -1, 1, &value)) {
            return false;
        }
        out->flags ^= value < 0 ? WGMMA_NEGATED : 0;
    }
    for (uint32_t n = 0; n < turns; n++) {
        if (!read_choice(&s->operands[at + scales + n], 0, 1, &value)) {
            return false;
        }
        bool of_a = turns == 2 && n == 0;
        out->flags |= value == 0 ? 0 : of_a ? WGMMA_TRANSPOSED_A : WGMMA_TRANSPOSED_B;
    }
    return true;
}

static bool emit_product(ptx_builder *b, wgmma_form *form)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *d = &s->operands[0], *a = &s->operands[1];
    uint32_t registers = form->n / (form->result == WGMMA_F16 ? 4 : 2), len = 0;
    uint32_t o[OPERANDS];

    form->flags |= a->kind == PTX_OPERAND_VECTOR ? WGMMA_REGISTERS_A : 0;
    if (!read_scales(s, 4, form) || d->kind != PTX_OPERAND_VECTOR || d->items_len != registers ||
        (a->kind == PTX_OPERAND_VECTOR && a->items_len != 4)) {
        return false;
    }
    for (uint32_t n = 0; n < registers; n++) {
        o[len++] = ptx_build_result(b, &d->items[n], 4, false);
    }
    if (s->operands[3].kind == PTX_OPERAND_NUMBER && s->operands[3].value == 0) {
        form->flags |= WGMMA_OVERWRITES;
    } else {
        memcpy(o + len, o, len * sizeof *o); /* what is added to */
        len += registers;
    }
    if (a->kind == PTX_OPERAND_VECTOR) {
        for (uint32_t n = 0; n < 4; n++) {
            o[len++] = ptx_build_source(b, &a->items[n], 4);
        }
    } else {
        o[len++] = ptx_build_source(b, a, 8);
    }
    o[len++] = ptx_build_source(b, &s->operands[2], 8);
    o[len++] = ptx_build_source(b, &s->operands[3], 0);
    instruction *i = ptx_build_emit(b, exec_wgmma, registers, len - registers, o);
    if (i != NULL) {
        i->pipe = PIPE_TENSOR;
        i->flow = FLOW_ALIGNED;
        i->taint = TAINT_SELF;
        i->kind = (uint8_t)(form->a | form->b << 4);
        i->elements = (uint8_t)(form->n / 8);
        i->element_bytes = (uint8_t)form->result;
        i->offset = form->flags;
    }
    return true;
}

static bool decode_product(ptx_builder *b, ptx_form *f)
{
    wgmma_form form = {0};

    if (ptx_form_has(f, "sp")) {
        ptx_build_unsupported(b, "sparse products are not executed");
        return true;
    }
    if (ptx_form_has(f, "b1")) {
        ptx_build_unsupported(b, "products of single bits are not executed");
        return true;
    }
    form.flags = ptx_form_take(f, "satfinite") ? WGMMA_SATURATED : 0;
    return b->statement->operands_len >= 4 && read_types(f, &form) && emit_product(b, &form);
}

static bool decode_wait(ptx_builder *b)
{
    const ptx_statement *s = b->statement;

    if (s->operands_len != 1 || s->operands[0].kind != PTX_OPERAND_NUMBER ||
        s->operands[0].value > UINT8_MAX) {
        return false;
    }
    instruction *i = ptx_build_control(b, exec_wgmma_wait, FLOW_BARRIER, 0, 0, NULL);
    if (i != NULL) {
        i->kind = (uint8_t)s->operands[0].value;
    }
    return true;
}

bool ptx_decode_wgmma(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_take(f, "mma_async")) {
        return (ptx_form_has(f, "sp") || ptx_form_take(f, "sync")) &&
               (ptx_form_has(f, "sp") || ptx_form_take(f, "aligned")) && decode_product(b, f);
    }
    if (!ptx_form_has(f, "sync") || !ptx_form_has(f, "aligned") || f->parts_len != 3) {
        return false;
    }
    if (ptx_form_has(f, "wait_group")) {
        return decode_wait(b);
    }
    execute run = ptx_form_has(f, "fence")          ? exec_wgmma_fence
                  : ptx_form_has(f, "commit_group") ? exec_wgmma_commit
                                                    : NULL;
    if (run == NULL || b->statement->operands_len != 0) {
        return false;
    }
    ptx_build_control(b, run, FLOW_ALIGNED, 0, 0, NULL);
    return true;
}
