/* decode_cvt.c - conversions between types, and between address spaces. */
#include "emulator/ptx/build.h"

#include <stdio.h>
#include <string.h>

static bool is_float(ptx_text t)
{
    return ptx_text_is(t, "f32") || ptx_text_is(t, "f64") || ptx_text_is(t, "f16") ||
           ptx_text_is(t, "bf16");
}

static uint32_t width_of(ptx_text t)
{
    return t.len >= 2 && memcmp(t.at + t.len - 2, "64", 2) == 0 ? 8 : 4;
}

static const char *take_integer_rounding(ptx_form *f)
{
    static const char *const modes[] = {"rni", "rzi", "rmi", "rpi"};

    for (size_t n = 0; n < ARRAY_LEN(modes); n++) {
        if (ptx_form_take(f, modes[n])) {
            return modes[n];
        }
    }
    return NULL;
}

static void name_row(char name[PTX_ROW_BYTES], const char *base, ptx_text d, ptx_text s)
{
    snprintf(name, PTX_ROW_BYTES, "%s.%.*s%s%.*s", base, (int)(d.len < 20 ? d.len : 20), d.at,
             s.len > 0 ? "." : "", (int)(s.len < 20 ? s.len : 20), s.at);
}

static bool known(const ptx_builder *b, const char *name)
{
    return ptx_build_find(b, (ptx_text){name, strlen(name)}) != NULL;
}

/* The source as f32 or f64, flushed when .ftz asks. */
static uint32_t float_source(ptx_builder *b, ptx_text *type, bool flush)
{
    uint32_t v = ptx_build_source(b, &b->statement->operands[1], width_of(*type)), t = v;

    if (ptx_text_is(*type, "f16") || ptx_text_is(*type, "bf16")) {
        t = ptx_build_vreg(b, 4);
        ptx_build_helper(b, ptx_text_is(*type, "f16") ? "cvt.f32.f16" : "cvt.f32.bf16",
                         (uint32_t[]){t, v});
        *type = (ptx_text){"f32", 3};
    }
    if (flush && ptx_text_is(*type, "f32")) {
        uint32_t z = ptx_build_vreg(b, 4);
        ptx_build_helper(b, "flush.f32", (uint32_t[]){z, t});
        t = z;
    }
    return t;
}

/* Emits `name` from v into the statement's result. */
static bool emit_result(ptx_builder *b, const char *name, ptx_text d, uint32_t v)
{
    if (!known(b, name)) {
        return false;
    }
    uint32_t to = ptx_build_result(b, &b->statement->operands[0], width_of(d), *d.at == 's');
    ptx_build_op(b, name, (uint32_t[]){to, v});
    return true;
}

/* Float to an integral value, and on to an integer. */
static bool decode_round(ptx_builder *b, const char *mode, ptx_text d, ptx_text s, bool flush)
{
    char name[PTX_ROW_BYTES];
    bool half = ptx_text_is(s, "f16") || ptx_text_is(s, "bf16");
    ptx_text from = s;
    bool to_float = is_float(d);
    uint32_t v = float_source(b, &from, flush);

    snprintf(name, sizeof name, "round.%s.%.*s", mode, (int)from.len, from.at);
    if (to_float && !ptx_text_equal(d, s)) {
        return false;
    }
    if (to_float && !half) {
        return emit_result(b, name, d, v);
    }
    uint32_t whole = ptx_build_vreg(b, width_of(from));
    ptx_build_helper(b, name, (uint32_t[]){whole, v});
    name_row(name, half && to_float ? "cvt.rn" : "cvt", d, from);
    return emit_result(b, name, d, whole);
}

/* Saturation to [0, 1] comes before the narrowing: the bounds are exact in every type. */
static bool decode_saturated(ptx_builder *b, const char *base, ptx_text d, ptx_text s, bool flush)
{
    char name[PTX_ROW_BYTES];
    ptx_text from = s;
    uint32_t v = float_source(b, &from, flush);
    bool wide = ptx_text_is(from, "f64");
    uint32_t t = ptx_build_vreg(b, wide ? 8 : 4);

    name_row(name, wide || !ptx_text_is(d, "f64") ? base : "cvt", d, from);
    if (ptx_text_equal(d, from)) {
        snprintf(name, sizeof name, wide ? "mov.f64" : "mov.f32");
    }
    if (!known(b, name)) {
        return false;
    }
    ptx_build_helper(b, wide ? "saturate.f64" : "saturate.f32", (uint32_t[]){t, v});
    uint32_t to = ptx_build_result(b, &b->statement->operands[0], width_of(d), false);
    instruction *i = ptx_build_op(b, name, (uint32_t[]){to, t});
    if (i != NULL) {
        i->pipe = PIPE_CONVERSION;
    }
    return true;
}

/* What a row lacks becomes steps: .relu on floats that come in or halves that go out, .satfinite as
 * a clamp of what comes in. */
typedef struct steps {
    bool flush, relu, clamp;
    ptx_text from, to;
} steps;

static const exec_row *find_direct(ptx_builder *b, ptx_form *f, steps *st)
{
    char name[PTX_ROW_BYTES];
    const exec_row *row = ptx_build_find(b, ptx_form_row(f, name));
    bool wide = ptx_text_is(st->to, "f16") || ptx_text_is(st->to, "bf16") ||
                ptx_text_is(st->to, "f16x2") || ptx_text_is(st->to, "bf16x2") ||
                ptx_text_is(st->to, "tf32");

    if (row == NULL && ptx_form_take(f, "relu")) {
        st->relu = true;
        row = ptx_build_find(b, ptx_form_row(f, name));
    }
    if (row == NULL && wide && ptx_text_is(st->from, "f32") && ptx_form_take(f, "satfinite")) {
        st->clamp = true;
        row = ptx_build_find(b, ptx_form_row(f, name));
    }
    return row;
}

static uint32_t prepared(ptx_builder *b, const steps *st, uint32_t v)
{
    bool single = ptx_text_is(st->from, "f32");

    v = st->flush && single ? ptx_build_step(b, "flush", st->from, v) : v;
    if (st->relu && (single || ptx_text_is(st->from, "f16x2") || ptx_text_is(st->from, "bf16x2"))) {
        v = ptx_build_step(b, "relu", st->from, v);
    }
    return st->clamp ? ptx_build_step(b, "clamp", st->to, v) : v;
}

static bool decode_direct(ptx_builder *b, ptx_form *f, bool flush)
{
    const ptx_statement *s = b->statement;
    steps st = {.flush = flush, .from = ptx_form_type(f), .to = f->parts[f->parts_len - 2]};
    const exec_row *row = find_direct(b, f, &st);
    uint32_t o[4] = {0};

    if (row == NULL || s->operands_len != strlen(row->signature) - 1 || s->operands_len > 4) {
        return false;
    }
    for (uint32_t n = 1; n < s->operands_len; n++) {
        uint32_t v = ptx_build_source(b, &s->operands[n], ptx_row_width(row->signature[1 + n]));
        o[n] = prepared(b, &st, v);
    }
    o[0] = ptx_build_result(b, &s->operands[0], ptx_row_width(row->signature[0]), *st.to.at == 's');
    ptx_build_row(b, row, o);
    if (st.relu && ptx_text_is(st.to, "f16x2")) {
        instruction *i = ptx_build_op(b, "relu.f16x2", (uint32_t[]){o[0], o[0]});
        if (i != NULL) {
            i->flags |= FLAG_HIDDEN;
        }
    }
    return true;
}

static bool is_wide_integer(ptx_text t)
{
    return ptx_text_is(t, "s64") || ptx_text_is(t, "u64");
}

/* Bits that a type's numbers take at most. */
static uint32_t precision(ptx_text t)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } types[] = {{"u8", 8},   {"s8", 8},   {"bf16", 8}, {"f16", 11}, {"u16", 16}, {"s16", 16},
                 {"f32", 24}, {"u32", 32}, {"s32", 32}, {"f64", 53}, {"u64", 64}, {"s64", 64}};
    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        if (ptx_text_is(t, types[n].name)) {
            return types[n].bits;
        }
    }
    return 128;
}

static const char *take_rounding(ptx_form *f)
{
    static const char *const modes[] = {"rn", "rz", "rm", "rp"};

    for (size_t n = 0; n < ARRAY_LEN(modes); n++) {
        if (ptx_form_take(f, modes[n])) {
            return modes[n];
        }
    }
    return NULL;
}

/* What no row does at once: exact conversions whatever their rounding, halves through f64,
 * saturated integers through s64. */
static bool decode_indirect(ptx_builder *b, ptx_form *f)
{
    ptx_text d = f->parts[f->parts_len - 2], s = ptx_form_type(f);
    char name[PTX_ROW_BYTES];
    bool saturates = ptx_form_take(f, "sat");
    const char *mode = take_rounding(f);

    if (f->parts_len != 2 || b->statement->operands_len != 2) {
        return false;
    }
    uint32_t v = ptx_build_source(b, &b->statement->operands[1], width_of(s)), t = v;
    if (saturates && !is_float(d) && !is_float(s)) {
        t = ptx_build_vreg(b, 8);
        name_row(name, "cvt", (ptx_text){"s64", 3}, s);
        ptx_build_helper(b, name, (uint32_t[]){t, v});
        name_row(name, "cvt.sat", d, (ptx_text){"s64", 3});
        return emit_result(b, name, d, t);
    }
    if (saturates || !is_float(d)) {
        return false;
    }
    bool shorter_range = ptx_text_is(d, "f16") && ptx_text_is(s, "bf16");
    if (precision(s) <= precision(d) && !shorter_range) {
        name_row(name, is_float(s) ? "cvt" : "cvt.rn", d, s);
        return emit_result(b, name, d, v);
    }
    if (!ptx_text_is(d, "f16") && !ptx_text_is(d, "bf16")) {
        return false;
    }
    if (!ptx_text_is(s, "f64")) {
        t = ptx_build_vreg(b, 8);
        name_row(name,
                 is_wide_integer(s) ? "odd"
                 : is_float(s)      ? "cvt"
                                    : "cvt.rn",
                 (ptx_text){"f64", 3}, s);
        if (!known(b, name)) {
            return false;
        }
        ptx_build_helper(b, name, (uint32_t[]){t, v});
    }
    snprintf(name, sizeof name, "cvt.%s.%.*s.f64", mode != NULL ? mode : "rn", (int)d.len, d.at);
    return emit_result(b, name, d, t);
}

bool ptx_decode_cvt(ptx_builder *b, ptx_form *f)
{
    bool flush = ptx_form_take(f, "ftz"), pack = ptx_form_has(f, "pack");
    const char *mode = pack ? NULL : take_integer_rounding(f);
    char base[16];

    /* Counted without the rounding, which may stand where a type belongs. */
    if (f->parts_len < 2 || b->statement->operands_len < 2) {
        return false;
    }
    if (pack) {
        return decode_direct(b, f, false);
    }
    ptx_text d = f->parts[f->parts_len - 2], s = f->parts[f->parts_len - 1];
    if (mode != NULL && is_float(s)) {
        ptx_form_take(f, "sat"); /* float to integer always clamps */
        return decode_round(b, mode, d, s, flush);
    }
    if (is_float(s) && ptx_form_take(f, "sat")) {
        mode = take_rounding(f);
        snprintf(base, sizeof base, "cvt.%s", mode != NULL ? mode : "rn");
        return decode_saturated(b, base, d, s, flush);
    }
    ptx_form copy = *f;
    return decode_direct(b, f, flush) || (b->status == HONE_OK && decode_indirect(b, &copy));
}

static ptx_space space_of(const ptx_form *f)
{
    static const struct {
        const char *name;
        ptx_space space;
    } spaces[] = {
        {"shared", PTX_SHARED}, {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
        {"local", PTX_LOCAL},   {"param", PTX_PARAM},        {"param::entry", PTX_PARAM},
        {"const", PTX_CONST},   {"global", PTX_GLOBAL}};
    for (size_t n = 0; n < ARRAY_LEN(spaces); n++) {
        if (ptx_form_has(f, spaces[n].name)) {
            return spaces[n].space;
        }
    }
    return PTX_GENERIC;
}

bool ptx_decode_cvta(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool to = ptx_form_take(f, "to");
    ptx_space space = space_of(f);

    if (s->operands_len != 2 || space == PTX_GENERIC || width_of(ptx_form_type(f)) != 8) {
        return false;
    }
    uint32_t a = ptx_build_source(b, &s->operands[1], 8);
    uint32_t d = ptx_build_result(b, &s->operands[0], 8, false);
    if (space == PTX_GLOBAL || space == PTX_CONST) {
        ptx_build_op(b, "mov.b64", (uint32_t[]){d, a});
    } else if (to && space != PTX_PARAM) {
        uint32_t low = ptx_build_constant(b, ~MACHINE_WINDOW(255), 8);
        ptx_build_op(b, "and.b64", (uint32_t[]){d, a, low});
    } else {
        uint32_t window = ptx_build_constant(b, MACHINE_WINDOW(space), 8);
        ptx_build_op(b, "window.u64", (uint32_t[]){d, a, window});
    }
    return true;
}

bool ptx_decode_isspacep(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    ptx_space space = space_of(f);

    if (s->operands_len != 2 || space == PTX_GENERIC || space == PTX_CONST) {
        return false;
    }
    uint32_t a = ptx_build_source(b, &s->operands[1], 8), top = ptx_build_vreg(b, 8);
    /* shared::cta asks for the CTA's own memory: no rank of the cluster above the offset */
    bool own = space == PTX_SHARED && !ptx_form_has(f, "shared::cluster");
    uint32_t bits = ptx_build_constant(b, own ? 24 : 56, 4);
    ptx_build_helper(b, "shr.u64", (uint32_t[]){top, a, bits});
    uint64_t window = space == PTX_GLOBAL ? 0 : MACHINE_WINDOW(space) >> (own ? 24 : 56);
    uint32_t want = ptx_build_constant(b, window, 8);
    uint32_t d = ptx_build_result(b, &s->operands[0], 0, false);
    ptx_build_op(b, "setp.eq.u64", (uint32_t[]){d, top, want});
    return true;
}
