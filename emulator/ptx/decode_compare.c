/* decode_compare.c - setp and set: comparisons into predicates, and into registers. */
#include "emulator/ptx/build.h"

#include <string.h>

/* One form of comparison: its row, and how halves get to the floats that rows compare. */
typedef struct comparison {
    const exec_row *row;
    const char *to_float; /* row, or NULL */
    const char *combine;  /* row, or NULL */
    bool flush, pair;
} comparison;

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

/* From the form "setp.cmp{.bool}{.ftz}.type". */
static bool read_comparison(ptx_builder *b, ptx_form *f, comparison *out)
{
    char name[PTX_ROW_BYTES];
    ptx_text type = ptx_form_type(f);
    bool f16 = ptx_text_is(type, "f16") || ptx_text_is(type, "f16x2");
    bool bf16 = ptx_text_is(type, "bf16") || ptx_text_is(type, "bf16x2");

    out->combine = take_combination(f);
    out->pair = ptx_text_is(type, "f16x2") || ptx_text_is(type, "bf16x2");
    out->flush = ptx_form_take(f, "ftz") && ptx_text_is(type, "f32");
    out->to_float = f16 ? "cvt.f32.f16" : bf16 ? "cvt.f32.bf16" : NULL;
    if (out->to_float != NULL && f->parts_len > 0) {
        f->parts[f->parts_len - 1] = (ptx_text){"f32", 3};
    }
    out->row = ptx_build_find(b, ptx_form_row(f, name));
    return out->row != NULL && strncmp(out->row->signature, "p=", 2) == 0;
}

/* An operand as what the row compares: two values for a pair, else one. */
static void take_source(ptx_builder *b, const comparison *c, const ptx_operand *o, uint32_t kind,
                        uint32_t out[2])
{
    out[0] = ptx_build_source(b, o, ptx_row_width(c->row->signature[kind]));
    if (c->pair) {
        uint32_t low = ptx_build_vreg(b, 4), high = ptx_build_vreg(b, 4);
        ptx_build_helper(b, "unpack.b32", (uint32_t[]){low, high, out[0]});
        out[0] = low;
        out[1] = high;
    }
    for (uint32_t n = 0; n < (c->pair ? 2u : 1u) && c->to_float != NULL; n++) {
        uint32_t t = ptx_build_vreg(b, 4);
        ptx_build_helper(b, c->to_float, (uint32_t[]){t, out[n]});
        out[n] = t;
    }
    if (c->flush) {
        out[0] = ptx_build_step(b, "flush", (ptx_text){"f32", 3}, out[0]);
    }
}

/* Into fresh predicates, which are whole: their copies are guarded. */
static void compare(ptx_builder *b, const comparison *c, const ptx_operand *x, const ptx_operand *y,
                    uint32_t out[2])
{
    uint32_t left[2] = {0}, right[2] = {0}, guard = b->guard;

    take_source(b, c, x, 2, left);
    take_source(b, c, y, 3, right);
    b->guard = MACHINE_NONE;
    for (uint32_t n = 0; n < (c->pair ? 2u : 1u); n++) {
        out[n] = ptx_build_vreg(b, 0);
        instruction *i = ptx_build_row(b, c->row, (uint32_t[]){out[n], left[n], right[n]});
        if (i != NULL && n > 0) {
            i->flags |= FLAG_HIDDEN;
        }
    }
    b->guard = guard;
}

static void predicate_result(ptx_builder *b, const char *row, const ptx_operand *to, uint32_t value,
                             uint32_t with)
{
    uint32_t d = ptx_build_result(b, to, 0, false);
    instruction *i = row == NULL ? ptx_build_op(b, "mov.pred", (uint32_t[]){d, value})
                                 : ptx_build_op(b, row, (uint32_t[]){d, value, with});
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
}

/* setp.cmp{.and|or|xor}.type p{|q}, a, b{, c}. q is the opposite of p, or of a pair's other half.
 */
bool ptx_decode_setp(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool plain = s->operands_len == 3 && f->parts_len == 2;
    ptx_form copy = *f;
    comparison c = {0};
    uint32_t value[2] = {0}, with = 0;

    if (!read_comparison(b, f, &c)) {
        return false;
    }
    if (plain && c.to_float == NULL) {
        return ptx_decode_alu(b, &copy);
    }
    uint32_t results = s->operands_len - (c.combine != NULL ? 3 : 2);
    if (s->operands_len < 3 || results < 1 || results > 2 || (c.pair && results != 2)) {
        return false;
    }
    compare(b, &c, &s->operands[results], &s->operands[results + 1], value);
    if (c.combine != NULL) {
        with = ptx_build_source(b, &s->operands[s->operands_len - 1], 0);
    }
    if (results == 2 && !c.pair) {
        value[1] = ptx_build_vreg(b, 0);
        ptx_build_helper(b, "not.pred", (uint32_t[]){value[1], value[0]});
    }
    if (results == 2 && c.combine != NULL) { /* p may be c itself */
        uint32_t kept = ptx_build_vreg(b, 0);
        ptx_build_helper(b, "mov.pred", (uint32_t[]){kept, with});
        with = kept;
    }
    for (uint32_t n = 0; n < results; n++) {
        predicate_result(b, c.combine, &s->operands[n], value[n], with);
    }
    return true;
}

/* What set gives for true; false is 0 in all. */
static bool true_value(ptx_text type, uint32_t *out)
{
    static const struct {
        const char *name;
        uint32_t value;
    } types[] = {{"u32", UINT32_MAX}, {"s32", UINT32_MAX}, {"u16", 0xffff},
                 {"s16", 0xffff},     {"f32", 0x3f800000}, {"f16", 0x3c00},
                 {"bf16", 0x3f80},    {"f16x2", 0x3c00},   {"bf16x2", 0x3f80}};
    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        if (ptx_text_is(type, types[n].name)) {
            *out = types[n].value;
            return true;
        }
    }
    return false;
}

/* set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, c} */
bool ptx_decode_set(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    comparison c = {0};
    uint32_t value[2] = {0}, half[2] = {0}, yes = 0;

    if (f->parts_len < 3 || !true_value(f->parts[f->parts_len - 2], &yes)) {
        return false;
    }
    f->base = (ptx_text){"setp", 4};
    f->parts[f->parts_len - 2] = f->parts[f->parts_len - 1];
    f->parts_len--;
    if (!read_comparison(b, f, &c) || s->operands_len != (c.combine != NULL ? 4u : 3u)) {
        return false;
    }
    compare(b, &c, &s->operands[1], &s->operands[2], value);
    uint32_t with = c.combine != NULL ? ptx_build_source(b, &s->operands[3], 0) : 0;
    uint32_t one = ptx_build_constant(b, yes, 4), zero = ptx_build_constant(b, 0, 4);
    for (uint32_t n = 0; n < (c.pair ? 2u : 1u); n++) {
        if (c.combine != NULL) {
            uint32_t t = ptx_build_vreg(b, 0);
            ptx_build_helper(b, c.combine, (uint32_t[]){t, value[n], with});
            value[n] = t;
        }
        half[n] = ptx_build_vreg(b, 4);
        ptx_build_helper(b, "selp.b32", (uint32_t[]){half[n], one, zero, value[n]});
    }
    uint32_t d = ptx_build_result(b, &s->operands[0], 4, false);
    instruction *i = c.pair ? ptx_build_op(b, "pack.b32", (uint32_t[]){d, half[0], half[1]})
                            : ptx_build_op(b, "mov.b32", (uint32_t[]){d, half[0]});
    if (i != NULL) {
        i->flags |= FLAG_HIDDEN;
    }
    return true;
}
