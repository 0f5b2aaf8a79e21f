/* tensor_operand.h - operands of a product taken apart on the host's vectors: values and exponents.
 *
 * Included by tensor_tile.h for each host level. The 16 rows of a are done in parts of LANES rows,
 * in the order that vector_turn leaves. */
#include "emulator/tensor_vector.h"

/* How a type is taken apart. Lanes of four bytes or two halves; masks repeat for each. */
typedef struct packing {
    uint32_t magnitude, exponent, special; /* special: the least magnitude that is not finite */
    uint32_t one, bias, zero;              /* zero: the exponent that stands for a zero */
    uint32_t fraction;                     /* bits */
    uint32_t shift, keep; /* from the top of a dword to fp32's fields, and the magnitude there */
    int32_t rebias;       /* added to fp32's exponent field; 0: it is fp32's own */
} packing;

#define BYTES(x)  (0x01010101u * (uint8_t)(x))
#define HALVES(x) (0x00010001u * (uint16_t)(x))
/* An 8-bit sum of two -60 does not wrap, and lies below any product; -126 is the unit's own rule.
 */
static const packing packings[] = {
    [TENSOR_E4M3] = {BYTES(0x7f), BYTES(0x0f), BYTES(0x7f), BYTES(1), BYTES(7), BYTES(-60), 3, 4,
                     0x07f00000, 120},
    [TENSOR_E5M2] = {BYTES(0x7f), BYTES(0x1f), BYTES(0x7c), BYTES(1), BYTES(15), BYTES(-60), 2, 3,
                     0x0fe00000, 112},
    [TENSOR_BF16] = {HALVES(0x7fff), HALVES(0xff), HALVES(0x7f80), HALVES(1), HALVES(127),
                     HALVES(-126), 7, 0, 0x7fff0000, 0},
    [TENSOR_F16] = {HALVES(0x7fff), HALVES(0x1f), HALVES(0x7c00), HALVES(1), HALVES(15),
                    HALVES(-126), 10, 3, 0x0fffe000, 112},
};
#define LEAST_ZERO BYTES(60) /* in `least`, of bytes: the sum with any exponent lies above 44 */

/* Exponents of packed elements; what is found on the way is added to the flags. */
typedef struct packed_exponents {
    vi exponents, least;
    bool *finite, *any;
} packed_exponents;

VECTOR_INLINE void operand_exponents(packed_exponents *out, const vi *raw, const packing *p,
                                     uint32_t elements)
{
    vi magnitude = *raw & (int32_t)p->magnitude;
    vi field = (magnitude >> (int32_t)p->fraction) & (int32_t)p->exponent;
    vi one = SPLAT(p->one), bias = SPLAT(p->bias), special = SPLAT(p->special), zero;

    if (elements == 4) {
        special = (vi)((vb)magnitude >= (vb)special);
        zero = (vi)((vb)magnitude == (vb)SPLAT(0));
        vector_max8(&field, &one);
        field = (vi)((vb)field - (vb)bias);
    } else {
        special = (vi)((vh)magnitude >= (vh)special);
        zero = (vi)((vh)magnitude == (vh)SPLAT(0));
        vector_max16(&field, &one);
        field = (vi)((vh)field - (vh)bias);
    }
    out->exponents = (field & ~zero) | (SPLAT(p->zero) & zero);
    out->least = (field & ~zero) | (SPLAT(LEAST_ZERO) & zero);
    *out->finite = *out->finite && !vector_any(&special);
    *out->any = *out->any || vector_any(&magnitude);
}

/* Element `index` of each register as fp32. Subnormals are made without subnormal fp32 operands,
 * which cost hosts 150 cycles each: with u the value read as if normal, they are 2u - 2^least, the
 * smaller of the two. */
VECTOR_INLINE void operand_values(vf *out, const vi *raw, const packing *p, uint32_t index,
                                  uint32_t elements)
{
    vi top = *raw << (int32_t)((32 / elements) * (elements - 1 - index));
    vi sign = top & INT32_MIN, value = (top >> (int32_t)p->shift) & (int32_t)p->keep;

    if (p->rebias != 0) {
        vf least = (vf)SPLAT((uint32_t)(p->rebias + 1) << 23);
        vf normal = (vf)(value + (p->rebias << 23));
        vi subnormal = (vi)(normal + normal - least);
        value = (vi)normal;
        vector_min32(&value, &subnormal);
    }
    *out = (vf)(value | sign);
}

/* Registers `low` and `high` together are 16 rows of 4 lanes; a part is LANES rows of them. */
VECTOR_INLINE void operand_load(vi x[4], const uint32_t *low, const uint32_t *high, uint32_t part)
{
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at = LANES * (4 * part + i);
        vector_load(&x[i], (at < 32 ? low : high) + at % 32);
    }
    vector_turn(x);
}

/* Column k of a part, in the numbers that the form asks for. */
VECTOR_INLINE void operand_keep_left(tensor_left *left, uint32_t k, uint32_t part, const vf *values)
{
    uint32_t row = LANES * part;

    memcpy(left->values[k] + row, values, sizeof *values);
    if (left->form == TENSOR_FORM_SPLIT) {
        vi bits = (vi)*values, below = bits >> 31;
        vi positive = bits & ~below, negative = bits & below & INT32_MAX;
        memcpy(left->split[k][0] + row, &positive, sizeof positive);
        memcpy(left->split[k][1] + row, &negative, sizeof negative);
    } else if (left->form == TENSOR_FORM_WIDE) {
        vd wide[2];
        vector_widen_float(wide, values);
        memcpy(left->wide[k] + row, wide, sizeof wide);
    }
}

VECTOR_INLINE void operand_open_quad(tensor_left *left, const vi *raw, uint32_t quad, uint32_t part,
                                     uint32_t elements)
{
    const packing *p = &packings[left->type];
    packed_exponents e = {.finite = &left->finite, .any = &left->any};

    operand_exponents(&e, raw, p, elements);
    memcpy(left->exponents[quad] + LANES * part, &e.exponents, sizeof e.exponents);
    memcpy(left->least[quad] + LANES * part, &e.least, sizeof e.least);
    for (uint32_t i = 0; i < elements; i++) {
        vf values;
        operand_values(&values, raw, p, i, elements);
        operand_keep_left(left, elements * quad + i, part, &values);
    }
}

VECTOR_INLINE void operand_open_left(tensor_left *left, const tensor_call *call, tensor_form form,
                                     uint32_t elements)
{
    if (left->form == form && left->type == call->a_type &&
        memcmp(left->raw, call->a, sizeof left->raw) == 0) {
        return;
    }
    memcpy(left->raw, call->a, sizeof left->raw);
    left->form = form;
    left->type = call->a_type;
    left->finite = true;
    left->any = false;
    for (uint32_t at = 0; at < 2 * (16 / LANES); at++) {
        uint32_t half = at % 2, part = at / 2;
        vi x[4];
        operand_load(x, call->a[2 * half], call->a[2 * half + 1], part);
        for (uint32_t i = 0; i < 4; i++) {
            operand_open_quad(left, &x[i], 4 * half + i, part, elements);
        }
    }
}

VECTOR_INLINE void operand_open_right(tensor_right *right, const tensor_call *call,
                                      tensor_form form, uint32_t elements)
{
    const packing *p = &packings[call->b_type];
    packed_exponents found = {.finite = &right->finite, .any = &right->any};

    if (right->form == form && right->type == call->b_type &&
        memcmp(right->raw, call->b, sizeof right->raw) == 0) {
        return;
    }
    memcpy(right->raw, call->b, sizeof right->raw);
    right->form = form;
    right->type = call->b_type;
    right->finite = true;
    right->any = false;
    for (uint32_t at = 0; at < 64; at += LANES) {
        vi raw;
        vector_load(&raw, call->b[at / 32] + at % 32);
        operand_exponents(&found, &raw, p, elements);
        memcpy(right->exponents[at / 32] + at % 32, &found.exponents, sizeof found.exponents);
        memcpy(right->least[at / 32] + at % 32, &found.least, sizeof found.least);
        for (uint32_t e = 0; e < elements; e++) {
            vf values;
            vd wide[2];
            operand_values(&values, &raw, p, e, elements);
            vector_widen_float(wide, &values);
            memcpy(right->wide[e][at / 32] + at % 32, wide, sizeof wide);
            values = (vf)((vi)values & (form == TENSOR_FORM_SPLIT ? INT32_MAX : -1));
            memcpy(right->values[e][at / 32] + at % 32, &values, sizeof values);
        }
    }
}
