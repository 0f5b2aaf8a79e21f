/* decode_alu.c - arithmetic and logic: forms that are rows of the .def files, with modifiers that
 * become steps before and after. */
#include "emulator/ptx/build.h"

#include <stdio.h>
#include <string.h>

enum { OPERANDS = 8 };

ptx_text ptx_form_row(const ptx_form *f, char name[PTX_ROW_BYTES])
{
    size_t used = (size_t)snprintf(name, PTX_ROW_BYTES, "%.*s",
                                   (int)(f->base.len < 40 ? f->base.len : 40), f->base.at);
    for (uint32_t n = 0; n < f->parts_len && used < PTX_ROW_BYTES; n++) {
        size_t len = f->parts[n].len < 40 ? f->parts[n].len : 40;
        used +=
            (size_t)snprintf(name + used, PTX_ROW_BYTES - used, ".%.*s", (int)len, f->parts[n].at);
    }
    return (ptx_text){name, used < PTX_ROW_BYTES ? used : PTX_ROW_BYTES - 1};
}

uint32_t ptx_row_width(char kind)
{
    return kind == 'p' ? 0 : kind == 'd' ? 8 : 4;
}

/* What a form asks for beside its row. */
typedef struct modifiers {
    ptx_text type;
    bool flush, saturate, relu;
} modifiers;

/* "flush" and "f16x2": the row of a step. */
static const char *step_name(char name[PTX_ROW_BYTES], const char *step, ptx_text type)
{
    snprintf(name, PTX_ROW_BYTES, "%s.%.*s", step, (int)(type.len < 20 ? type.len : 20), type.at);
    return name;
}

uint32_t ptx_build_step(ptx_builder *b, const char *step, ptx_text type, uint32_t v)
{
    char name[PTX_ROW_BYTES];
    uint32_t t = ptx_build_vreg(b, 4);

    ptx_build_helper(b, step_name(name, step, type), (uint32_t[]){t, v});
    return t;
}

static bool is_small_float(ptx_text type)
{
    static const char *const names[] = {"f32", "f16", "f16x2", "bf16", "bf16x2"};
    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        if (ptx_text_is(type, names[n])) {
            return true;
        }
    }
    return false;
}

/* Operands of the statement by a row's signature; false when their number does not fit. */
static bool take_operands(ptx_builder *b, const exec_row *row, const modifiers *m,
                          uint32_t out[OPERANDS])
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
        out[results + n] =
            ptx_build_source(b, &s->operands[results + n], ptx_row_width(equals[1 + n]));
        if (m->flush && equals[1 + n] == 'w') {
            out[results + n] = ptx_build_step(b, "flush", m->type, out[results + n]);
        }
    }
    for (uint32_t n = 0; n < results; n++) {
        out[n] = ptx_build_result(b, &s->operands[n], ptx_row_width(row->signature[n]), false);
    }
    return true;
}

instruction *ptx_build_row(ptx_builder *b, const exec_row *row, const uint32_t *operands)
{
    const char *equals = strchr(row->signature, '=');
    instruction *i = ptx_build_emit(b, row->run, (uint32_t)(equals - row->signature),
                                    (uint32_t)strlen(equals + 1), operands);
    if (i != NULL) {
        i->pipe = (uint8_t)row->pipe;
        i->taint = (uint8_t)row->taint;
    }
    return i;
}

/* An operation on the result, under the same guard. */
static void finish(ptx_builder *b, const char *step, ptx_text type, uint32_t v)
{
    char name[PTX_ROW_BYTES];
    instruction *i = ptx_build_op(b, step_name(name, step, type), (uint32_t[]){v, v});
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
}

static void finish_all(ptx_builder *b, const modifiers *m, uint32_t v)
{
    if (m->saturate) {
        finish(b, "saturate", m->type, v);
    }
    if (m->relu) {
        finish(b, "relu", m->type, v);
    }
    if (m->flush) {
        finish(b, "flush", m->type, v);
    }
}

static bool emit_statement(ptx_builder *b, const exec_row *row, const modifiers *m)
{
    uint32_t operands[OPERANDS];

    if (!take_operands(b, row, m, operands)) {
        return true; /* refused already, with its reason */
    }
    ptx_build_row(b, row, operands);
    if (row->signature[0] == 'w') {
        finish_all(b, m, operands[0]);
    }
    return true;
}

/* The row of a form, once the modifiers that rows do not know are taken off it. */
static const exec_row *find_modified(ptx_builder *b, ptx_form *f, modifiers *m)
{
    char name[PTX_ROW_BYTES];
    m->type = ptx_form_type(f);
    bool steps = is_small_float(m->type);

    m->flush = steps && ptx_form_take(f, "ftz"); /* of f64 it is a row's */
    ptx_form_take(f, "rn");
    const exec_row *row = ptx_build_find(b, ptx_form_row(f, name));
    if (row == NULL && steps) {
        m->saturate = ptx_form_take(f, "sat");
        m->relu = ptx_form_take(f, "relu");
        row = ptx_build_find(b, ptx_form_row(f, name));
    }
    return row;
}

/* add.cc, addc{.cc}, sub.cc, subc{.cc}, mad{c}.lo|hi.cc: the carry flag is a predicate of the
 * kernel's own. */
static bool decode_carry(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    char name[PTX_ROW_BYTES];
    bool sets = ptx_form_take(f, "cc"), reads = f->base.at[f->base.len - 1] == 'c';
    bool product = *f->base.at == 'm',
         wide = ptx_text_is(ptx_form_type(f), "u64") || ptx_text_is(ptx_form_type(f), "s64");
    uint32_t o[OPERANDS], sources = product ? 3 : 2, width = wide ? 8 : 4;

    if (f->parts_len != (product ? 2u : 1u) || s->operands_len != 1 + sources) {
        return false;
    }
    if (product) {
        snprintf(name, sizeof name, "carry.mad.%.*s.%.*s", (int)(f->parts[0].len & 15),
                 f->parts[0].at, (int)(f->parts[1].len & 15), f->parts[1].at);
    } else {
        snprintf(name, sizeof name, "carry.%.3s.%s", f->base.at, wide ? "64" : "32");
    }
    const exec_row *row = ptx_build_find(b, (ptx_text){name, strlen(name)});
    if (row == NULL) {
        return false;
    }
    if (b->carry == 0) {
        b->carry = 1 + ptx_build_vreg(b, 0);
    }
    for (uint32_t n = 0; n < sources; n++) {
        o[2 + n] = ptx_build_source(b, &s->operands[1 + n], width);
    }
    o[2 + sources] = reads ? b->carry - 1 : ptx_build_constant(b, 0, 0);
    o[0] = ptx_build_result(b, &s->operands[0], width, false);
    o[1] = sets ? b->carry - 1 : ptx_build_vreg(b, 0);
    ptx_build_row(b, row, o);
    return true;
}

/* min and max with .xorsign.abs or .abs, and of three operands. */
static bool decode_extreme(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    modifiers m = {0};
    bool xorsign = ptx_form_take(f, "xorsign"), absolute = ptx_form_take(f, "abs");
    const exec_row *row = find_modified(b, f, &m);
    uint32_t v[3] = {0}, a[3] = {0}, sources = s->operands_len - 1;

    if (row == NULL || strcmp(row->signature, "w=ww") != 0 || sources < 2 || sources > 3 ||
        !is_small_float(m.type) || (sources == 3 && xorsign)) {
        return false;
    }
    for (uint32_t n = 0; n < sources; n++) {
        v[n] = ptx_build_source(b, &s->operands[1 + n], 4);
        v[n] = m.flush ? ptx_build_step(b, "flush", m.type, v[n]) : v[n];
        a[n] = absolute ? ptx_build_step(b, "abs", m.type, v[n]) : v[n];
    }
    uint32_t d = ptx_build_result(b, &s->operands[0], 4, false);
    uint32_t t = xorsign || sources == 3 ? ptx_build_vreg(b, 4) : d, guard = b->guard;
    b->guard = t != d ? MACHINE_NONE : guard; /* what is only a step is whole */
    ptx_build_row(b, row, (uint32_t[]){t, a[0], a[1]});
    b->guard = guard;
    if (sources == 3) {
        ptx_build_row(b, row, (uint32_t[]){d, t, a[2]});
    } else if (xorsign) {
        char name[PTX_ROW_BYTES];
        ptx_build_op(b, step_name(name, "xorsign", m.type), (uint32_t[]){d, t, v[0], v[1]});
    }
    finish_all(b, &m, d);
    return true;
}

static void finish_pack(ptx_builder *b, uint32_t d, const uint32_t half[2])
{
    instruction *i = ptx_build_op(b, "pack.b64", (uint32_t[]){d, half[0], half[1]});
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
}

/* add, sub, mul and fma of two floats in 64 bits: each half by the row of one. */
static bool decode_pair(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t half[4][2], sources = s->operands_len - 1;
    modifiers m = {0};

    f->parts[f->parts_len - 1] = (ptx_text){"f32", 3};
    const exec_row *row = find_modified(b, f, &m);
    if (row == NULL || s->operands_len < 3 || s->operands_len > 4 ||
        strlen(row->signature) != sources + 2) {
        return false;
    }
    for (uint32_t n = 1; n <= sources; n++) {
        uint32_t v = ptx_build_source(b, &s->operands[n], 8);
        for (uint32_t k = 0; k < 2; k++) {
            half[n][k] = ptx_build_vreg(b, 4);
        }
        ptx_build_helper(b, "unpack.b64", (uint32_t[]){half[n][0], half[n][1], v});
        for (uint32_t k = 0; k < 2 && m.flush; k++) {
            half[n][k] = ptx_build_step(b, "flush", m.type, half[n][k]);
        }
    }
    uint32_t guard = b->guard;
    b->guard = MACHINE_NONE; /* the halves are whole, the pair is guarded */
    for (uint32_t k = 0; k < 2; k++) {
        half[0][k] = ptx_build_vreg(b, 4);
        uint32_t o[4] = {half[0][k], half[1][k], half[2][k], sources == 3 ? half[3][k] : 0};
        ptx_build_row(b, row, o);
        finish_all(b, &m, half[0][k]);
    }
    b->guard = guard;
    uint32_t d = ptx_build_result(b, &s->operands[0], 8, false);
    finish_pack(b, d, half[0]);
    return true;
}

/* add, sub and fma of f32 with factors of f16 or bf16: these become f32 first. */
static bool decode_mixed(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool fused = ptx_text_is(f->base, "fma");
    const char *to_float = ptx_text_is(ptx_form_type(f), "f16") ? "cvt.f32.f16" : "cvt.f32.bf16";
    uint32_t o[4] = {0}, sources = fused ? 3 : 2;
    modifiers m = {0};

    f->parts_len--;
    const exec_row *row = find_modified(b, f, &m);
    if (row == NULL || s->operands_len != sources + 1 || m.flush ||
        strlen(row->signature) != sources + 2) {
        return false;
    }
    for (uint32_t n = 1; n <= sources; n++) {
        o[n] = ptx_build_source(b, &s->operands[n], 4);
        if (n < sources) {
            uint32_t t = ptx_build_vreg(b, 4);
            ptx_build_helper(b, to_float, (uint32_t[]){t, o[n]});
            o[n] = t;
        }
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    ptx_build_row(b, row, o);
    finish_all(b, &m, o[0]);
    return true;
}

/* lop3.and|or.b32 d|p, a, b, c, table, q: p = d != 0 and|or q */
static bool decode_lop3(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const char *combine = ptx_form_take(f, "and")  ? "and.pred"
                          : ptx_form_take(f, "or") ? "or.pred"
                                                   : NULL;
    uint32_t o[5], some = ptx_build_vreg(b, 0), zero = ptx_build_constant(b, 0, 4);

    if (combine == NULL || s->operands_len != 7) {
        return false;
    }
    for (uint32_t n = 1; n < 5; n++) {
        o[n] = ptx_build_source(b, &s->operands[n + 1], 4);
    }
    uint32_t with = ptx_build_source(b, &s->operands[6], 0);
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    uint32_t p = ptx_build_result(b, &s->operands[1], 0, false);
    ptx_build_op(b, "lop3.b32", o);
    ptx_build_op(b, "setp.ne.b32", (uint32_t[]){some, o[0], zero});
    ptx_build_op(b, combine, (uint32_t[]){p, some, with});
    return true;
}

bool ptx_decode_alu(ptx_builder *b, ptx_form *f)
{
    static const char *const carriers[] = {"addc", "subc", "madc"};
    bool extreme = ptx_text_is(f->base, "min") || ptx_text_is(f->base, "max");
    bool carry = ptx_form_has(f, "cc");
    ptx_text type = ptx_form_type(f);
    modifiers m = {0};

    for (size_t n = 0; n < ARRAY_LEN(carriers); n++) {
        carry = carry || ptx_text_is(f->base, carriers[n]);
    }
    if (carry) {
        return decode_carry(b, f);
    }
    if (extreme && (ptx_form_has(f, "abs") || b->statement->operands_len == 4)) {
        return decode_extreme(b, f);
    }
    if (ptx_text_is(type, "f32x2")) {
        return decode_pair(b, f);
    }
    if (f->parts_len > 1 && ptx_text_is(f->parts[f->parts_len - 2], "f32") &&
        (ptx_text_is(type, "f16") || ptx_text_is(type, "bf16"))) {
        return decode_mixed(b, f);
    }
    if (ptx_text_is(f->base, "lop3") && f->parts_len > 1) {
        return decode_lop3(b, f);
    }
    const exec_row *row = find_modified(b, f, &m);
    return row != NULL && emit_statement(b, row, &m);
}
