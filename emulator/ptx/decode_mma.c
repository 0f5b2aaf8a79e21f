/* decode_mma.c - mma.sync: the warp's matrix product, in all shapes but the sparse and the binary
 * ones.
 *
 * Small shapes become the full one of their type: registers that they lack are zeros, which add
 * nothing in any arithmetic, and results that they lack are dropped. */
#include "emulator/ptx/build.h"

#include "emulator/tensor/block_scale.h"
#include "emulator/tensor/tensor.h"

#include <string.h>

enum { LIST = 8 }; /* registers of one operand */

/* A form taken apart. */
typedef struct mma_form {
    uint32_t m, k;
    ptx_text d, a, b, c, scale; /* types */
    bool saturates, scaled;
    uint32_t scales; /* along k; 0: not said */
    enum { KIND_PLAIN, KIND_F8F6F4, KIND_MXF8F6F4, KIND_MXF4, KIND_MXF4NVF4 } kind;
} mma_form;

static bool take_shape(ptx_form *f, mma_form *out)
{
    static const struct {
        const char *name;
        uint32_t m, k;
    } shapes[] = {{"m16n8k4", 16, 4},   {"m16n8k8", 16, 8},   {"m16n8k16", 16, 16},
                  {"m16n8k32", 16, 32}, {"m16n8k64", 16, 64}, {"m8n8k4", 8, 4},
                  {"m8n8k16", 8, 16}};
    for (size_t n = 0; n < ARRAY_LEN(shapes); n++) {
        if (ptx_form_take(f, shapes[n].name)) {
            out->m = shapes[n].m;
            out->k = shapes[n].k;
            return true;
        }
    }
    return false;
}

static void take_kind(ptx_form *f, mma_form *out)
{
    static const char *const kinds[] = {
        [KIND_F8F6F4] = "kind::f8f6f4",
        [KIND_MXF8F6F4] = "kind::mxf8f6f4",
        [KIND_MXF4] = "kind::mxf4",
        [KIND_MXF4NVF4] = "kind::mxf4nvf4",
    };
    for (uint32_t n = KIND_F8F6F4; n < ARRAY_LEN(kinds); n++) {
        if (ptx_form_take(f, kinds[n])) {
            out->kind = n;
        }
    }
    out->scaled = ptx_form_take(f, "block_scale");
    out->scales = ptx_form_take(f, "scale_vec::1X")   ? 1
                  : ptx_form_take(f, "scale_vec::2X") ? 2
                  : ptx_form_take(f, "scale_vec::4X") ? 4
                                                      : 0;
}

static bool read_mma(ptx_form *f, mma_form *out)
{
    *out = (mma_form){.m = 0};
    take_kind(f, out);
    out->saturates = ptx_form_take(f, "satfinite");
    if (!ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") || !ptx_form_take(f, "row") ||
        !ptx_form_take(f, "col") || !take_shape(f, out) ||
        f->parts_len != (out->scaled ? 5u : 4u)) {
        return false;
    }
    out->d = f->parts[0];
    out->a = f->parts[1];
    out->b = f->parts[2];
    out->c = f->parts[3];
    out->scale = out->scaled ? f->parts[4] : (ptx_text){"", 0};
    return ptx_text_equal(out->d, out->c);
}

/* Element types of a plain product: shapes by their k, whether results are f32, f16, s32. */
static const struct {
    const char *name;
    int8_t type; /* tensor_type */
    uint8_t bits, k[2];
    bool f32, f16;
} plain_types[] = {
    {"e4m3", TENSOR_E4M3, 8, {16, 32}, true, true},  {"e5m2", TENSOR_E5M2, 8, {16, 32}, true, true},
    {"bf16", TENSOR_BF16, 16, {8, 16}, true, false}, {"f16", TENSOR_F16, 16, {8, 16}, true, true},
    {"tf32", TENSOR_TF32, 32, {4, 8}, true, false},  {"s8", TENSOR_S8, 8, {16, 32}, false, false},
    {"u8", TENSOR_U8, 8, {16, 32}, false, false},
};

static int plain_type(ptx_text t)
{
    for (int n = 0; n < (int)ARRAY_LEN(plain_types); n++) {
        if (ptx_text_is(t, plain_types[n].name)) {
            return n;
        }
    }
    return -1;
}

/* `len` registers of an operand, the rest of `of` are zeros (or dropped results). */
static bool take_list(ptx_builder *b, const ptx_operand *v, uint32_t len, uint32_t of, bool results,
                      uint32_t width, uint32_t *out)
{
    const ptx_operand *items = NULL;

    if (!ptx_build_elements(v, len, &items)) {
        return false;
    }
    for (uint32_t n = 0; n < of; n++) {
        out[n] = n >= len  ? (results ? ptx_build_vreg(b, width) : ptx_build_constant(b, 0, width))
                 : results ? ptx_build_result(b, &items[n], width, false)
                           : ptx_build_source(b, &items[n], width);
    }
    return true;
}

/* Two f16 of a register become two f32 that the matrix unit takes. */
static void widen_halves(ptx_builder *b, const uint32_t packed[2], uint32_t out[4])
{
    for (uint32_t n = 0; n < 2; n++) {
        uint32_t low = ptx_build_vreg(b, 4), high = ptx_build_vreg(b, 4);
        out[2 * n] = ptx_build_vreg(b, 4);
        out[2 * n + 1] = ptx_build_vreg(b, 4);
        ptx_build_helper(b, "unpack.b32", (uint32_t[]){low, high, packed[n]});
        ptx_build_helper(b, "cvt.f32.f16", (uint32_t[]){out[2 * n], low});
        ptx_build_helper(b, "cvt.f32.f16", (uint32_t[]){out[2 * n + 1], high});
    }
}

static instruction *emit_mma(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                             const uint32_t *o, const mma_form *f)
{
    instruction *i = ptx_build_emit(b, run, results, sources, o);
    if (i != NULL) {
        i->pipe = PIPE_TENSOR;
        i->flow = FLOW_ALIGNED;
        i->taint = TAINT_STRICT;
        i->target = f->m * 8 * f->k; /* products */
    }
    return i;
}

/* Results of f16: unguarded into temporaries, then packed under the guard. */
static void emit_halves(ptx_builder *b, uint32_t o[14], const uint32_t packed[2], const mma_form *f,
                        uint8_t kind)
{
    for (uint32_t n = 0; n < 4; n++) {
        o[n] = ptx_build_vreg(b, 4);
    }
    instruction *i = emit_mma(b, exec_mma, 4, 10, o, f);
    if (i != NULL) {
        i->kind = kind;
        i->elements = MMA_HALF;
    }
    for (uint32_t n = 0; n < 2; n++) {
        i = ptx_build_op(b, "cvt.rn.f16x2.f32", (uint32_t[]){packed[n], o[2 * n + 1], o[2 * n]});
        if (i != NULL) {
            i->flags |= FLAG_HIDDEN;
        }
    }
}

/* d, a, b, c of one of the plain types */
static bool decode_plain(ptx_builder *b, const mma_form *f)
{
    const ptx_statement *s = b->statement;
    int a = plain_type(f->a), c = plain_type(f->b);
    uint32_t o[14], packed[2] = {0};

    if (a < 0 || c < 0 || s->operands_len != 4) {
        return false;
    }
    uint32_t bits = plain_types[a].bits, k = f->k;
    bool integer = !plain_types[a].f32, half = ptx_text_is(f->d, "f16");
    bool same = bits == 8 ? plain_types[c].bits == 8 && plain_types[c].f32 == !integer : a == c;
    bool result = integer ? ptx_text_is(f->d, "s32")
                          : ptx_text_is(f->d, "f32") || (half && plain_types[a].f16);
    bool shape = (k == plain_types[a].k[0] || k == plain_types[a].k[1]) &&
                 (f->m == 16 || (integer && k == 16));
    if (!same || !result || !shape || (f->saturates && !integer)) {
        return false;
    }
    uint32_t a_len = f->m * k * bits / 1024, b_len = k * bits / 128, d_len = half ? 2 : f->m / 4;
    if (!take_list(b, &s->operands[1], a_len, 4, false, 4, o + 4) ||
        !take_list(b, &s->operands[2], b_len, 2, false, 4, o + 8) ||
        !take_list(b, &s->operands[3], d_len, half ? 2 : 4, false, 4, o + 10) ||
        !take_list(b, &s->operands[0], d_len, half ? 2 : 4, true, 4, half ? packed : o)) {
        return false;
    }
    uint8_t kind = (uint8_t)(plain_types[a].type | plain_types[c].type << 4);
    if (half) {
        uint32_t from[2] = {o[10], o[11]};
        widen_halves(b, from, o + 10);
        emit_halves(b, o, packed, f, kind);
        return true;
    }
    instruction *i = emit_mma(b, exec_mma, 4, 10, o, f);
    if (i != NULL) {
        i->kind = kind;
        i->elements = f->saturates ? MMA_SATURATE : 0;
    }
    return true;
}

/* m8n8k4 and m16n8k4, k8, k16 of f64: 64-bit registers, fused multiply-adds in k's order. */
static bool decode_double(ptx_builder *b, const mma_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t a_len = f->m * f->k / 32, b_len = f->k / 4, d_len = f->m / 4, o[4 + 8 + 4 + 4];

    if (!ptx_text_is(f->b, "f64") || !ptx_text_is(f->d, "f64") || f->k > 16 || f->saturates ||
        (f->m == 8 && f->k != 4) || s->operands_len != 4) {
        return false;
    }
    uint32_t *a = o + d_len, *c = a + a_len + b_len;
    if (!take_list(b, &s->operands[0], d_len, d_len, true, 8, o) ||
        !take_list(b, &s->operands[1], a_len, a_len, false, 8, a) ||
        !take_list(b, &s->operands[2], b_len, b_len, false, 8, a + a_len) ||
        !take_list(b, &s->operands[3], d_len, d_len, false, 8, c)) {
        return false;
    }
    instruction *i = emit_mma(b, exec_mma_double, d_len, a_len + b_len + d_len, o, f);
    if (i != NULL) {
        i->kind = (uint8_t)f->k;
        i->elements = (uint8_t)f->m;
    }
    return true;
}

static int find_narrow(ptx_text t)
{
    static const char *const names[] = {
        [NARROW_E4M3] = "e4m3", [NARROW_E5M2] = "e5m2", [NARROW_E3M2] = "e3m2",
        [NARROW_E2M3] = "e2m3", [NARROW_E2M1] = "e2m1",
    };
    for (int n = 0; n < (int)ARRAY_LEN(names); n++) {
        if (ptx_text_is(t, names[n])) {
            return n;
        }
    }
    return -1;
}

/* Which scales a kind takes (emulator.md 5.9); fills in how many where the form does not say. */
static bool scales_exist(mma_form *f)
{
    bool ue8m0 = ptx_text_is(f->scale, "ue8m0"), ue4m3 = ptx_text_is(f->scale, "ue4m3");

    switch (f->kind) {
    case KIND_MXF8F6F4:
        f->scales = f->scales == 0 ? 1 : f->scales;
        return f->scaled && ue8m0 && f->scales == 1 && f->k == 32;
    case KIND_MXF4:
        f->scales = f->scales == 0 ? 2 : f->scales;
        return f->scaled && ue8m0 && f->scales == 2 && f->k == 64;
    case KIND_MXF4NVF4:
        return f->scaled && f->k == 64 &&
               ((ue8m0 && (f->scales == 2 || f->scales == 4)) || (ue4m3 && f->scales == 4));
    case KIND_F8F6F4:
        return !f->scaled && f->scales == 0 && f->k == 32;
    case KIND_PLAIN:
        break;
    }
    return false;
}

/* scale data, {byte id, thread id} */
static bool take_scale(ptx_builder *b, const ptx_operand *data, uint32_t out[3])
{
    const ptx_operand *ids = data + 1;

    out[0] = ptx_build_source(b, data->kind == PTX_OPERAND_VECTOR ? data->items : data, 4);
    if (ids->kind != PTX_OPERAND_VECTOR || ids->items_len != 2 ||
        (data->kind == PTX_OPERAND_VECTOR && data->items_len != 1)) {
        return false;
    }
    out[1] = ptx_build_source(b, &ids->items[0], 4);
    out[2] = ptx_build_source(b, &ids->items[1], 4);
    return true;
}

/* The kinds of sm_120: elements of 8 bits and fewer, with a scale for each block of k or without.
 */
static bool decode_narrow(ptx_builder *b, mma_form *f)
{
    const ptx_statement *s = b->statement;
    int a = find_narrow(f->a), c = find_narrow(f->b);
    bool half = ptx_text_is(f->d, "f16"), nibbles = f->k == 64;
    uint32_t o[20], packed[2] = {0};

    if (a < 0 || c < 0 || !scales_exist(f) || f->m != 16 || f->saturates ||
        (half ? f->scaled : !ptx_text_is(f->d, "f32")) ||
        (nibbles && (a != NARROW_E2M1 || c != NARROW_E2M1)) ||
        s->operands_len != (f->scaled ? 8u : 4u)) {
        return false;
    }
    if (!take_list(b, &s->operands[1], 4, 4, false, 4, o + 4) ||
        !take_list(b, &s->operands[2], 2, 2, false, 4, o + 8) ||
        !take_list(b, &s->operands[3], half ? 2 : 4, half ? 2 : 4, false, 4, o + 10) ||
        !take_list(b, &s->operands[0], half ? 2 : 4, half ? 2 : 4, true, 4, half ? packed : o) ||
        (f->scaled &&
         (!take_scale(b, &s->operands[4], o + 14) || !take_scale(b, &s->operands[6], o + 17)))) {
        return false;
    }
    if (half) {
        uint32_t from[2] = {o[10], o[11]};
        widen_halves(b, from, o + 10);
        for (uint32_t n = 0; n < 4; n++) {
            o[n] = ptx_build_vreg(b, 4);
        }
    }
    instruction *i = emit_mma(b, exec_mma_narrow, 4, f->scaled ? 16 : 10, o, f);
    if (i != NULL) {
        i->kind = (uint8_t)(a | c << 4);
        i->elements = (uint8_t)f->scales;
        i->element_bytes = (uint8_t)f->k;
        i->offset = (half ? MMA_HALF : 0) | (ptx_text_is(f->scale, "ue4m3") ? MMA_UE4M3 : 0);
    }
    for (uint32_t n = 0; n < 2 && half; n++) {
        ptx_build_op(b, "cvt.rn.f16x2.f32", (uint32_t[]){packed[n], o[2 * n + 1], o[2 * n]});
    }
    return true;
}

/* mma.sync.aligned.shape.row.col{.kind}.dtype.atype.btype.ctype d, a, b, c; parts in any order. */
bool ptx_decode_mma(ptx_builder *b, ptx_form *f)
{
    mma_form form;

    if (!read_mma(f, &form)) {
        return false;
    }
    if (form.kind != KIND_PLAIN) {
        return decode_narrow(b, &form);
    }
    return ptx_text_is(form.a, "f64") ? decode_double(b, &form) : decode_plain(b, &form);
}
