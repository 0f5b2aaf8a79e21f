/* decode_mov.c - mov: plain, packing registers into a wider one, and taking one apart. */
#include "emulator/ptx/build.h"

#include <string.h>

/* By the width of the whole in bits, and the number of parts: rows, and the parts' width in bytes.
 */
static const struct {
    const char *type;
    uint32_t parts, width, part_width;
    const char *pack, *unpack; /* unpack: NULL when it takes more than one step */
} shapes[] = {
    {"b16", 2, 4, 4, "pack.b16", "unpack.b16"}, {"b32", 2, 4, 4, "pack.b32", "unpack.b32"},
    {"b32", 4, 4, 4, "pack4.b32", NULL},        {"b64", 2, 8, 4, "pack.b64", "unpack.b64"},
    {"b64", 4, 8, 4, "pack4.b64", NULL},
};

static int shape_of(ptx_text type, uint32_t parts)
{
    for (int n = 0; n < (int)ARRAY_LEN(shapes); n++) {
        /* b64, but also u64, f64 */
        if (shapes[n].parts == parts && type.len > 1 && type.len < 5 &&
            strncmp(type.at + 1, shapes[n].type + 1, type.len - 1) == 0 &&
            strlen(shapes[n].type) == type.len) {
            return n;
        }
    }
    return -1;
}

/* mov d, {a, b, ...} */
static bool decode_pack(ptx_builder *b, const ptx_operand *d, const ptx_operand *v, int shape)
{
    uint32_t o[5] = {0};

    for (uint32_t n = 0; n < v->items_len; n++) {
        o[1 + n] = ptx_build_source(b, &v->items[n], shapes[shape].part_width);
    }
    o[0] = ptx_build_result(b, d, shapes[shape].width, false);
    ptx_build_op(b, shapes[shape].pack, o);
    return true;
}

/* mov {a, b, ...}, d */
static bool decode_unpack(ptx_builder *b, const ptx_operand *v, const ptx_operand *a, int shape)
{
    uint32_t from = ptx_build_source(b, a, shapes[shape].width), d[4] = {0};
    bool wide = shapes[shape].width == 8;

    for (uint32_t n = 0; n < v->items_len; n++) {
        d[n] = ptx_build_result(b, &v->items[n], shapes[shape].part_width, false);
    }
    if (shapes[shape].unpack != NULL) {
        ptx_build_op(b, shapes[shape].unpack, (uint32_t[]){d[0], d[1], from});
        return true;
    }
    uint32_t low = ptx_build_vreg(b, 4), high = ptx_build_vreg(b, 4);
    const char *half = wide ? "unpack.b32" : "unpack.b16";
    ptx_build_helper(b, wide ? "unpack.b64" : "unpack.b32", (uint32_t[]){low, high, from});
    ptx_build_op(b, half, (uint32_t[]){d[0], d[1], low});
    ptx_build_op(b, half, (uint32_t[]){d[2], d[3], high});
    return true;
}

/* A 128-bit register is two of 64 bits: it may stand for a pair, or for two that are packed. */
static bool decode_wide(ptx_builder *b, const ptx_operand *to, const ptx_operand *from)
{
    uint32_t d[2] = {0}, a[2] = {0};

    if (from->kind == PTX_OPERAND_VECTOR) {
        for (uint32_t n = 0; n < 2 && from->items_len == 2; n++) {
            a[n] = ptx_build_source(b, &from->items[n], 8);
        }
    } else {
        ptx_build_pair(b, from, a);
    }
    if (to->kind == PTX_OPERAND_VECTOR) {
        for (uint32_t n = 0; n < 2 && to->items_len == 2; n++) {
            d[n] = ptx_build_result(b, &to->items[n], 8, false);
        }
    } else {
        ptx_build_pair(b, to, d);
    }
    if ((from->kind == PTX_OPERAND_VECTOR && from->items_len != 2) ||
        (to->kind == PTX_OPERAND_VECTOR && to->items_len != 2)) {
        return false;
    }
    /* {y, x} of a pair {x, y} must not lose one on the way */
    uint32_t t = ptx_build_vreg(b, 8);
    ptx_build_helper(b, "mov.b64", (uint32_t[]){t, a[1]});
    ptx_build_op(b, "mov.b64", (uint32_t[]){d[0], a[0]});
    ptx_build_op(b, "mov.b64", (uint32_t[]){d[1], t});
    return true;
}

bool ptx_decode_mov(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    ptx_text type = ptx_form_type(f);

    if (s->operands_len != 2) {
        return false;
    }
    if (ptx_text_is(type, "b128")) {
        return decode_wide(b, &s->operands[0], &s->operands[1]);
    }
    if (s->operands[1].kind == PTX_OPERAND_VECTOR) {
        int shape = shape_of(type, s->operands[1].items_len);
        return shape >= 0 && decode_pack(b, &s->operands[0], &s->operands[1], shape);
    }
    if (s->operands[0].kind == PTX_OPERAND_VECTOR) {
        int shape = shape_of(type, s->operands[0].items_len);
        return shape >= 0 && decode_unpack(b, &s->operands[0], &s->operands[1], shape);
    }
    return ptx_decode_alu(b, f);
}
