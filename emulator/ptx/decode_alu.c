/* decode_alu.c - arithmetic, logic, moves, comparisons: forms that are rows of the .def files,
 * or a few. */
#include "emulator/ptx/build.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 96, OPERANDS = 8 };

/* base.part.part, as rows are named. */
static ptx_text row_name(const ptx_form *f, char name[NAME_BYTES])
{
    size_t used = (size_t)snprintf(name, NAME_BYTES, "%.*s",
                                   (int)(f->base.len < 40 ? f->base.len : 40), f->base.at);
    for (uint32_t n = 0; n < f->parts_len && used < NAME_BYTES; n++) {
        size_t len = f->parts[n].len < 40 ? f->parts[n].len : 40;
        used += (size_t)snprintf(name + used, NAME_BYTES - used, ".%.*s", (int)len, f->parts[n].at);
    }
    return (ptx_text){name, used < NAME_BYTES ? used : NAME_BYTES - 1};
}

static uint32_t width_of(char kind)
{
    return kind == 'p' ? 0 : kind == 'd' ? 8 : 4;
}

static uint32_t flushed(ptx_builder *b, uint32_t v)
{
    uint32_t t = ptx_build_vreg(b, 4);
    ptx_build_helper(b, "flush.f32", (uint32_t[]){t, v});
    return t;
}

/* Operands of the statement by a row's signature; false when their number does not fit. */
static bool take_operands(ptx_builder *b, const exec_row *row, bool flush, uint32_t out[OPERANDS])
{
    const ptx_statement *s = b->statement;
    const char *equals = strchr(row->signature, '=');
    uint32_t results = (uint32_t)(equals - row->signature), sources = (uint32_t)strlen(equals + 1);

    if (s->operands_len != results + sources) {
        ptx_build_fail(b, HONE_BAD_TEXT, "%u operands; %.*s takes %u", s->operands_len,
                       (int)(s->name.len < 80 ? s->name.len : 80), s->name.at, results + sources);
        return false;
    }
    for (uint32_t n = 0; n < sources; n++) {
        out[results + n] = ptx_build_source(b, &s->operands[results + n], width_of(equals[1 + n]));
        if (flush && equals[1 + n] == 'w') {
            out[results + n] = flushed(b, out[results + n]);
        }
    }
    for (uint32_t n = 0; n < results; n++) {
        out[n] = ptx_build_result(b, &s->operands[n], width_of(row->signature[n]), false);
    }
    return true;
}

static void emit_row(ptx_builder *b, const exec_row *row, uint32_t results, uint32_t sources,
                     const uint32_t *operands)
{
    instruction *i = ptx_build_emit(b, row->run, results, sources, operands);
    if (i != NULL) {
        i->pipe = (uint8_t)row->pipe;
        i->taint = (uint8_t)row->taint;
    }
}

/* An operation on the result, under the same guard: .ftz and .sat. */
static void finish(ptx_builder *b, const char *name, uint32_t v)
{
    instruction *i = ptx_build_op(b, name, (uint32_t[]){v, v});
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
}

static bool emit_statement(ptx_builder *b, const exec_row *row, bool flush, bool saturate)
{
    uint32_t operands[OPERANDS];
    const char *equals = strchr(row->signature, '=');
    uint32_t results = (uint32_t)(equals - row->signature);

    if (!take_operands(b, row, flush, operands)) {
        return true; /* refused already, with its reason */
    }
    emit_row(b, row, results, (uint32_t)strlen(equals + 1), operands);
    if (saturate) {
        finish(b, "saturate.f32", operands[0]);
    }
    if (flush && row->signature[0] == 'w') {
        finish(b, "flush.f32", operands[0]);
    }
    return true;
}

bool ptx_decode_alu(ptx_builder *b, ptx_form *f)
{
    char name[NAME_BYTES];
    bool is_float = ptx_text_is(ptx_form_type(f), "f32");
    bool flush = ptx_form_take(f, "ftz") && is_float;
    bool saturate = false;

    ptx_form_take(f, "rn");
    const exec_row *row = ptx_build_find(b, row_name(f, name));
    if (row == NULL && is_float && ptx_form_take(f, "sat")) {
        saturate = true;
        row = ptx_build_find(b, row_name(f, name));
    }
    return row != NULL && emit_statement(b, row, flush, saturate);
}

/* mov d, {a, b, ...}: pack; mov {a, b, ...}, d: unpack. */
static bool decode_pack(ptx_builder *b, const ptx_operand *d, const ptx_operand *v, uint32_t width)
{
    uint32_t o[5] = {0};

    for (uint32_t n = 0; n < v->items_len && n < 4; n++) {
        o[1 + n] = ptx_build_source(b, &v->items[n], 4);
    }
    o[0] = ptx_build_result(b, d, width, false);
    if (v->items_len == 4 && width == 8) {
        ptx_build_op(b, "pack4.b64", o);
        return true;
    }
    if (v->items_len == 2) {
        ptx_build_op(b, width == 8 ? "pack.b64" : "pack.b32", o);
        return true;
    }
    return false;
}

static bool decode_unpack(ptx_builder *b, const ptx_operand *v, const ptx_operand *a,
                          uint32_t width)
{
    uint32_t from = ptx_build_source(b, a, width), d[4] = {0};

    for (uint32_t n = 0; n < v->items_len && n < 4; n++) {
        d[n] = ptx_build_result(b, &v->items[n], 4, false);
    }
    if (v->items_len == 2) {
        ptx_build_op(b, width == 8 ? "unpack.b64" : "unpack.b32", (uint32_t[]){d[0], d[1], from});
        return true;
    }
    if (v->items_len != 4 || width != 8) {
        return false;
    }
    uint32_t low = ptx_build_vreg(b, 4), high = ptx_build_vreg(b, 4);
    ptx_build_helper(b, "unpack.b64", (uint32_t[]){low, high, from});
    ptx_build_op(b, "unpack.b32", (uint32_t[]){d[0], d[1], low});
    ptx_build_op(b, "unpack.b32", (uint32_t[]){d[2], d[3], high});
    return true;
}

bool ptx_decode_mov(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    ptx_text type = ptx_form_type(f);
    uint32_t width =
        type.len > 1 && type.at[type.len - 2] == '6' && type.at[type.len - 1] == '4' ? 8 : 4;

    if (s->operands_len == 2 && s->operands[1].kind == PTX_OPERAND_VECTOR) {
        return decode_pack(b, &s->operands[0], &s->operands[1], width);
    }
    if (s->operands_len == 2 && s->operands[0].kind == PTX_OPERAND_VECTOR) {
        return decode_unpack(b, &s->operands[0], &s->operands[1], width);
    }
    return ptx_decode_alu(b, f);
}

/* A comparison into a fresh predicate; f16 and bf16 compare as floats. */
static bool compare(ptx_builder *b, ptx_form *f, const ptx_operand *a, const ptx_operand *c,
                    uint32_t *out)
{
    char name[NAME_BYTES];
    ptx_text type = ptx_form_type(f);
    bool half = ptx_text_is(type, "f16") || ptx_text_is(type, "bf16");
    const char *to_float = ptx_text_is(type, "f16") ? "cvt.f32.f16" : "cvt.f32.bf16";
    bool flush = ptx_form_take(f, "ftz") && ptx_text_is(type, "f32");

    if (half) {
        f->parts[f->parts_len - 1] = (ptx_text){"f32", 3};
    }
    const exec_row *row = ptx_build_find(b, row_name(f, name));
    if (row == NULL) {
        return false;
    }
    uint32_t o[3] = {0};
    const ptx_operand *sources[] = {a, c};
    for (uint32_t n = 0; n < 2; n++) {
        o[1 + n] = ptx_build_source(b, sources[n], width_of(row->signature[2 + n]));
        uint32_t t = half ? ptx_build_vreg(b, 4) : 0;
        if (half) {
            ptx_build_helper(b, to_float, (uint32_t[]){t, o[1 + n]});
            o[1 + n] = t;
        } else if (flush) {
            o[1 + n] = flushed(b, o[1 + n]);
        }
    }
    o[0] = *out = ptx_build_vreg(b, 0);
    uint32_t guard = b->guard;
    b->guard = MACHINE_NONE; /* the temporary is whole, its copy is guarded */
    emit_row(b, row, 1, 2, o);
    b->guard = guard;
    return true;
}

static const char *take_combination(ptx_form *f)
{
    static const char *const words[] = {"and", "or", "xor"};
    static const char *const rows[] = {"and.pred", "or.pred", "xor.pred"};

    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        if (ptx_form_take(f, words[n])) {
            return rows[n];
        }
    }
    return NULL;
}

static void predicate_result(ptx_builder *b, const char *row, const ptx_operand *to, uint32_t value,
                             const ptx_operand *with)
{
    uint32_t d = ptx_build_result(b, to, 0, false);
    instruction *i = NULL;

    if (row == NULL) {
        i = ptx_build_op(b, "mov.pred", (uint32_t[]){d, value});
    } else {
        uint32_t other = ptx_build_source(b, with, 0);
        i = ptx_build_op(b, row, (uint32_t[]){d, value, other});
    }
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
}

/* setp.cmp{.and|or|xor}.type p{|q}, a, b{, c} */
bool ptx_decode_setp(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const char *combine = take_combination(f);
    uint32_t results = s->operands_len - (combine != NULL ? 3 : 2);
    uint32_t value = 0;

    if (s->operands_len < 3 || results < 1 || results > 2) {
        return false;
    }
    if (combine == NULL && results == 1 && !ptx_form_has(f, "ftz") && !ptx_form_has(f, "f16") &&
        !ptx_form_has(f, "bf16")) {
        return ptx_decode_alu(b, f);
    }
    if (!compare(b, f, &s->operands[results], &s->operands[results + 1], &value)) {
        return false;
    }
    const ptx_operand *with = &s->operands[s->operands_len - 1];
    predicate_result(b, combine, &s->operands[0], value, with);
    if (results == 2) {
        uint32_t not = ptx_build_vreg(b, 0);
        ptx_build_helper(b, "not.pred", (uint32_t[]){not, value});
        predicate_result(b, combine, &s->operands[1], not, with);
    }
    return true;
}

/* set.cmp.dtype.stype d, a, b: all ones, or 1.0 */
bool ptx_decode_set(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t value = 0;

    if (s->operands_len != 3 || f->parts_len < 3) {
        return false;
    }
    ptx_text d_type = f->parts[f->parts_len - 2];
    bool is_float = ptx_text_is(d_type, "f32");
    if (!is_float && !ptx_text_is(d_type, "u32") && !ptx_text_is(d_type, "s32")) {
        return false;
    }
    f->base = (ptx_text){"setp", 4};
    f->parts[f->parts_len - 2] = f->parts[f->parts_len - 1];
    f->parts_len--;
    if (!compare(b, f, &s->operands[1], &s->operands[2], &value)) {
        return false;
    }
    uint32_t yes = ptx_build_constant(b, is_float ? 0x3f800000u : UINT32_MAX, 4);
    uint32_t no = ptx_build_constant(b, 0, 4);
    uint32_t d = ptx_build_result(b, &s->operands[0], 4, false);
    ptx_build_op(b, "selp.b32", (uint32_t[]){d, yes, no, value});
    return true;
}
