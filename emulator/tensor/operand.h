/* operand.h - operands of a product taken apart on the host's vectors: values and exponents.
 *
 * Included by tile.h for each host level. The 16 rows of a are done in parts of LANES rows,
 * in the order that vector_turn leaves. */
#include "emulator/tensor/vector.h"

/* How a type is taken apart. Lanes of four bytes, two halves or one tf32; masks repeat for each. */
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
    [TENSOR_TF32] = {0x7fffe000, 0xff, 0x7f800000, 1, 127, (uint32_t)-126, 23, 0, 0x7fffe000, 0},
};
/* What is found on the way. */
typedef struct operand_facts {
    bool finite, any;
} operand_facts;

VECTOR_INLINE void operand_exponents(vi *out, operand_facts *facts, const vi *raw, const packing *p,
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
    } else if (elements == 2) {
        special = (vi)((vh)magnitude >= (vh)special);
        zero = (vi)((vh)magnitude == (vh)SPLAT(0));
        vector_max16(&field, &one);
        field = (vi)((vh)field - (vh)bias);
    } else {
        special = magnitude >= special;
        zero = magnitude == 0;
        vector_max32(&field, &one);
        field -= bias;
    }
    *out = (field & ~zero) | (SPLAT(p->zero) & zero);
    facts->finite = facts->finite && !vector_any(&special);
    facts->any = facts->any || vector_any(&magnitude);
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

/* Registers from `raw` on hold what the call's do. */
VECTOR_INLINE bool operand_is_same(const uint32_t (*raw)[32], const uint32_t *const *registers,
                                   uint32_t len)
{
    vi different = SPLAT(0);

    for (uint32_t i = 0; i < len; i++) {
        VECTOR_UNROLL
        for (uint32_t lane = 0; lane < 32; lane += LANES) {
            vi x, y;
            vector_load(&x, raw[i] + lane);
            vector_load(&y, registers[i] + lane);
            different |= x ^ y;
        }
    }
    return !vector_any(&different);
}

VECTOR_INLINE void operand_open_left(tensor_left *left, const tensor_call *call, uint32_t elements)
{
    const packing *p = &packings[call->a_type];
    operand_facts facts = {true, false};

    if (left->kept && left->type == call->a_type &&
        operand_is_same((const uint32_t(*)[32])left->raw, call->a, 4)) {
        return;
    }
    for (uint32_t at = 0; at < 2 * (16 / LANES); at++) {
        uint32_t half = at % 2, row = LANES * (at / 2);
        vi x[4], exponents;
        operand_load(x, call->a[2 * half], call->a[2 * half + 1], at / 2);
        for (uint32_t i = 0; i < 4; i++) {
            operand_exponents(&exponents, &facts, &x[i], p, elements);
            memcpy(left->exponents[4 * half + i] + row, &exponents, sizeof exponents);
            VECTOR_UNROLL
            for (uint32_t e = 0; e < elements; e++) {
                vf values;
                operand_values(&values, &x[i], p, e, elements);
                memcpy(left->values[elements * (4 * half + i) + e] + row, &values, sizeof values);
            }
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(left->raw[i], call->a[i], sizeof left->raw[i]);
    }
    left->kept = true;
    left->placed = false;
    left->type = call->a_type;
    left->finite = facts.finite;
    left->any = facts.any;
}

VECTOR_INLINE void operand_open_right(tensor_right *right, const tensor_call *call,
                                      uint32_t elements)
{
    const packing *p = &packings[call->b_type];
    operand_facts facts = {true, false};

    if (right->kept && right->type == call->b_type &&
        operand_is_same((const uint32_t(*)[32])right->raw, call->b, 2)) {
        return;
    }
    for (uint32_t at = 0; at < 64; at += LANES) {
        vi raw, exponents;
        vector_load(&raw, call->b[at / 32] + at % 32);
        operand_exponents(&exponents, &facts, &raw, p, elements);
        memcpy(right->exponents[at / 32] + at % 32, &exponents, sizeof exponents);
        VECTOR_UNROLL
        for (uint32_t e = 0; e < elements; e++) {
            vf values;
            operand_values(&values, &raw, p, e, elements);
            memcpy(right->values[e][at / 32] + at % 32, &values, sizeof values);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        memcpy(right->raw[i], call->b[i], sizeof right->raw[i]);
    }
    right->kept = true;
    right->placed = false;
    right->type = call->b_type;
    right->finite = facts.finite;
    right->any = facts.any;
}
