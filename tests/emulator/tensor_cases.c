/* tensor_cases.c - operands for the matrix units' tests. */
#include "tests/emulator/tensor_cases.h"

#include "core/random.h"
#include "core/status.h"

#include <string.h>

static const struct {
    tensor_type a, b;
} pairs[] = {
    {TENSOR_E4M3, TENSOR_E4M3}, {TENSOR_E4M3, TENSOR_E5M2}, {TENSOR_E5M2, TENSOR_E4M3},
    {TENSOR_E5M2, TENSOR_E5M2}, {TENSOR_BF16, TENSOR_BF16}, {TENSOR_F16, TENSOR_F16},
    {TENSOR_TF32, TENSOR_TF32},
};

enum { KIND_ANY, KIND_SPARSE, KIND_EDGES, KIND_NEAR, KIND_SPREAD, KIND_NONFINITE, KINDS };

/* One packed register of an operand: `wide` for two halves. A tf32 is a bf16 with some more bits,
 * and some that the unit does not read. */
static uint32_t operand_register(uint64_t *state, int kind, tensor_type type)
{
    if (type == TENSOR_TF32) {
        uint32_t more = (uint32_t)random_next(state) & 0xffff;
        return operand_register(state, kind, TENSOR_BF16) << 16 | more;
    }

    static const uint8_t edges[] = {0x00, 0x80, 0x01, 0x81, 0x07, 0x08,
                                    0x7b, 0xfb, 0x7a, 0x38, 0xb8, 0x09};
    static const uint16_t wide_edges[] = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x7bff,
                                          0xfbff, 0x3c00, 0xbc01, 0x3f80, 0xc2ff, 0x0080};
    bool wide = type == TENSOR_BF16 || type == TENSOR_F16;
    uint32_t out = 0;

    for (int i = 0; i < (wide ? 2 : 4); i++) {
        uint64_t r = random_next(state);
        uint32_t code = wide ? (uint32_t)(r & 0xffff) : (uint32_t)(r & 0xff);
        if (kind == KIND_SPARSE && (r >> 20) % 4 != 0) {
            code = 0;
        } else if (kind == KIND_EDGES) {
            code = wide ? wide_edges[(r >> 20) % 12] : edges[(r >> 20) % 12];
        } else if (kind == KIND_NEAR) { /* magnitudes about one */
            code = wide ? ((uint32_t)r & 0x81ff) | (type == TENSOR_BF16 ? 0x3e00 : 0x3a00)
                        : ((uint32_t)r & 0x8f) | 0x30;
        }
        if (kind == KIND_SPREAD && (r >> 20) % 16 != 0) { /* large, but for one in 16 of any size */
            code |= wide ? 0x4000 : 0x50;
        }
        if (kind != KIND_NONFINITE) { /* the largest exponent off */
            code &= type == TENSOR_E4M3 && (code & 0x7f) == 0x7f ? 0xfeu : ~0u;
            code &= type == TENSOR_E5M2 && (code & 0x7c) == 0x7c ? 0xfbu : ~0u;
            code &= type == TENSOR_F16 && (code & 0x7c00) == 0x7c00 ? 0xfbffu : ~0u;
            code &= type == TENSOR_BF16 && (code & 0x7f80) == 0x7f80 ? 0xff7fu : ~0u;
        }
        out |= code << ((wide ? 16 : 8) * i);
    }
    return out;
}

/* As an f16 result has it. */
static uint32_t rounded_half(uint32_t bits)
{
    float value = 0.0f;

    memcpy(&value, &bits, sizeof value);
    value = tensor_half_value(tensor_half_code(value));
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* mma.sync on an arch that has the type, or wgmma; results of f16 where the type has them. */
static void pick_unit(uint64_t pick, tensor_case *t)
{
    static const int32_t archs[] = {80, 89, 90, 100, 120, 0, 0, 0};
    tensor_type type = t->a_type;
    bool bytes = type == TENSOR_E4M3 || type == TENSOR_E5M2;

    t->arch = archs[pick % ARRAY_LEN(archs)];
    t->arch = bytes && t->arch == 80 ? 89 : t->arch;
    t->half = pick / 8 % 6 == 0 && type != TENSOR_BF16 && type != TENSOR_TF32;
    t->unit = t->arch == 0 ? tensor_unit_wgmma(type, t->half, t->mode)
                           : tensor_unit_mma(t->arch, type, t->half, t->mode);
}

/* A wild one may have any exponent; one such among 128 sends the product to the scalar unit. */
static uint32_t accumulator(uint64_t *state, int kind, bool wild)
{
    uint64_t r = random_next(state);
    uint32_t bits = (uint32_t)r;

    if ((r >> 40) % 4 == 0) {
        return 0;
    }
    if (!wild || (r >> 40) % 4 != 1) { /* within reach of the products */
        bits = (bits & 0x807fffff) | (uint32_t)(100 + (r >> 44) % 56) << 23;
    }
    if (kind != KIND_NONFINITE && (bits & 0x7f800000) == 0x7f800000) {
        bits &= 0xbfffffff;
    }
    return bits;
}

void tensor_cases_make(uint64_t index, tensor_case *out)
{
    uint64_t state = index * UINT64_C(0xd1342543de82ef95) + 1;
    uint64_t r = random_next(&state);
    int kind = (int)(r % KINDS);

    memset(out, 0, sizeof *out);
    out->a_type = pairs[(r >> 8) % ARRAY_LEN(pairs)].a;
    out->b_type = pairs[(r >> 8) % ARRAY_LEN(pairs)].b;
    out->mode = (hone_emu_arithmetic)((r >> 16) % 8 < 6 ? HONE_EMU_HW : (r >> 16) % 8 - 5);
    pick_unit(r >> 24, out);
    for (size_t i = 0; i < 4; i++) {
        for (size_t lane = 0; lane < 32; lane++) {
            out->a[i][lane] = operand_register(&state, kind, out->a_type);
            out->c[i][lane] = accumulator(&state, kind, index % 4 == 0);
            if (out->half) {
                out->c[i][lane] = rounded_half(out->c[i][lane]);
            }
            if (i < 2) {
                out->b[i][lane] = operand_register(&state, kind, out->b_type);
            }
        }
    }
}

size_t tensor_cases_operands(const tensor_case *t, uint32_t row, uint32_t n, uint32_t a[32],
                             uint32_t b[32])
{
    uint32_t per = tensor_elements(t->a_type), width = 32 / per;
    uint32_t below = t->a_type == TENSOR_TF32 ? 13 : 0; /* bits that the unit does not read */
    uint32_t mask = (uint32_t)((UINT64_C(1) << width) - 1) >> below;

    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t g = lane >> 2, quad = lane & 3;
        for (uint32_t reg = 0; reg < 4; reg++) {
            for (uint32_t e = 0; e < per; e++) {
                uint32_t shift = e * width + below;
                if (g + 8 * (reg & 1) == row) {
                    a[per * quad + e + 4 * per * (reg >> 1)] = (t->a[reg][lane] >> shift & mask);
                }
                if (reg < 2 && g == n) {
                    b[per * quad + e + 4 * per * reg] = (t->b[reg][lane] >> shift & mask);
                }
            }
        }
    }
    return 8 * (size_t)per;
}

const char *tensor_cases_type_name(tensor_type type)
{
    static const char *const names[] = {"e4m3", "e5m2", "bf16", "f16", "s8", "u8", "tf32"};
    return names[type];
}

const char *tensor_cases_mode_name(hone_emu_arithmetic mode)
{
    static const char *const names[] = {"", "exact", "fast", "hw"};
    return names[mode];
}
