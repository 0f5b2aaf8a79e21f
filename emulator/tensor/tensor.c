/* tensor.c - which unit an arch has, and the warp's matrix product on the best vectors of this
 * host. */
#include "emulator/tensor/tensor.h"
#include "emulator/tensor/lanes.h"
#include "emulator/tensor/scalar.h"

#include "core/status.h"

#include <string.h>

/* kernels.md 6.2, emulator.md 5.7; the first row whose arch is not above. 8-bit types have K 32,
 * 16-bit types 16; a tf32 is as wide as two of these, and a step takes half as many. */
static const struct {
    int32_t arch;
    tensor_unit bytes, halves;
} units[] = {
    {100, {25, 23, 32}, {25, 23, 16}},
    {90, {25, 23, 32}, {25, 23, 16}}, /* mma.sync; wgmma differs */
    {0, {13, 13, 16}, {24, 23, 8}},
};

static bool type_is_bytes(tensor_type type)
{
    return type != TENSOR_BF16 && type != TENSOR_F16 && type != TENSOR_TF32;
}

static bool type_is_integer(tensor_type type)
{
    return type == TENSOR_S8 || type == TENSOR_U8;
}

tensor_unit tensor_unit_mma(int32_t arch, tensor_type a, bool half, hone_emu_arithmetic mode)
{
    bool bytes = type_is_bytes(a), exact = mode != HONE_EMU_HW || type_is_integer(a);
    tensor_unit unit = {0, 23, bytes ? 32 : 16};

    for (size_t i = 0; i < ARRAY_LEN(units) && !exact; i++) {
        if (arch >= units[i].arch) {
            unit = bytes ? units[i].bytes : units[i].halves;
            break;
        }
    }
    unit.mantissa = half ? TENSOR_HALF : unit.mantissa;
    unit.terms /= a == TENSOR_TF32 ? 2 : 1;
    return unit;
}

tensor_unit tensor_unit_wgmma(tensor_type a, bool half, hone_emu_arithmetic mode)
{
    bool bytes = type_is_bytes(a);
    tensor_unit unit = {.fraction = bytes ? 13 : 25,
                        .mantissa = half    ? TENSOR_HALF
                                    : bytes ? 13
                                            : 23,
                        .terms = bytes              ? 32
                                 : a == TENSOR_TF32 ? 8
                                                    : 16};

    if (mode != HONE_EMU_HW || type_is_integer(a)) {
        unit.fraction = 0;
        unit.mantissa = half ? TENSOR_HALF : 23;
    }
    return unit;
}

uint32_t tensor_elements(tensor_type type)
{
    return type_is_bytes(type) ? 4 : type == TENSOR_TF32 ? 1 : 2;
}

/* Element k of row (or column) g of an operand: emulator.md 5.1. `rows` registers hold one k range.
 */
static uint32_t element_at(const uint32_t *const *regs, uint32_t row, uint32_t k, uint32_t elements,
                           uint32_t rows)
{
    uint32_t group = k / elements, bits = 32 / elements;
    uint32_t word = regs[rows * (group / 4) + row / 8][4 * (row % 8) + group % 4];

    if (elements == 1) {
        return word >> 13; /* of tf32 the matrix unit reads 19 bits */
    }
    return (word >> (bits * (k % elements))) & ((1u << bits) - 1);
}

static uint32_t dot_floats(const uint32_t *a, const uint32_t *b, uint32_t c,
                           const tensor_call *call)
{
    float value = 0.0f;

    memcpy(&value, &c, sizeof value);
    value = tensor_dot(a, b, 8 * tensor_elements(call->a_type), value, call->a_type, call->b_type,
                       call->unit, call->mode);
    memcpy(&c, &value, sizeof value);
    return c;
}

static int32_t integer_of(uint32_t code, tensor_type type)
{
    return type == TENSOR_S8 ? (int8_t)code : (int32_t)code;
}

static uint32_t dot_integers(const uint32_t *a, const uint32_t *b, uint32_t c,
                             const tensor_call *call)
{
    int64_t sum = (int32_t)c;

    for (uint32_t k = 0; k < 32; k++) {
        sum += integer_of(a[k], call->a_type) * integer_of(b[k], call->b_type);
    }
    if (call->saturate) {
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    }
    return (uint32_t)sum;
}

/* Every element by itself: integers, and what the vectors refuse. */
static void mma_by_element(uint32_t *const d[4], const tensor_call *call)
{
    uint32_t elements = tensor_elements(call->a_type);
    uint32_t a[16][32] = {{0}}, b[8][32] = {{0}};
    uint32_t out[4][32];

    for (uint32_t k = 0; k < 8 * elements; k++) {
        for (uint32_t row = 0; row < 16; row++) {
            a[row][k] = element_at(call->a, row, k, elements, 2);
        }
        for (uint32_t n = 0; n < 8; n++) {
            b[n][k] = element_at(call->b, n, k, elements, 1);
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            uint32_t row = lane / 4 + 8 * (i / 2), n = 2 * (lane % 4) + i % 2;
            out[i][lane] = type_is_integer(call->a_type)
                               ? dot_integers(a[row], b[n], call->c[i][lane], call)
                               : dot_floats(a[row], b[n], call->c[i][lane], call);
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(d[i], out[i], sizeof out[i]);
    }
}

/* A product without its NaN: which rows, columns and sums have one, and zeros in their place. */
typedef struct nan_free {
    bool row[16], column[8];
    uint32_t a[4][32], b[2][32], c[4][32];
    bool any;
} nan_free;

static bool word_has_nan(uint32_t word, tensor_type type)
{
    const tensor_format format = tensor_format_of(type);
    const uint32_t bits = 32 / tensor_elements(type), mask = (1u << bits) - 1;

    for (uint32_t at = 0; at < 32; at += bits) {
        if (tensor_is_nan(word >> at & mask, format)) {
            return true;
        }
    }
    return false;
}

/* Four lanes of each register hold a part of row `lane / 4`, of the registers' `parity`. */
static void look_for_nan(const uint32_t *const *regs, uint32_t len, uint32_t rows, tensor_type type,
                         bool *line)
{
    for (uint32_t i = 0; i < len; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            bool *own = &line[8 * (i % rows) + lane / 4];
            *own = *own || word_has_nan(regs[i][lane], type);
        }
    }
}

static void clear_lines(const uint32_t *const *regs, uint32_t len, uint32_t rows, const bool *line,
                        uint32_t out[][32])
{
    for (uint32_t i = 0; i < len; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            out[i][lane] = line[8 * (i % rows) + lane / 4] ? 0 : regs[i][lane];
        }
    }
}

/* Whether register i of the sums holds a NaN at the end in this lane, whatever the products are. */
static bool sum_is_nan(const nan_free *f, const tensor_call *call, uint32_t i, uint32_t lane)
{
    static const tensor_format float32 = {32, 23, 127, true};

    return f->row[lane / 4 + 8 * (i / 2)] || f->column[2 * (lane % 4) + i % 2] ||
           tensor_is_nan(call->c[i][lane], float32);
}

static void set_nan_aside(const tensor_call *call, nan_free *f)
{
    look_for_nan(call->a, 4, 2, call->a_type, f->row);
    look_for_nan(call->b, 2, 1, call->b_type, f->column);
    clear_lines(call->a, 4, 2, f->row, f->a);
    clear_lines(call->b, 2, 1, f->column, f->b);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            const bool nan = sum_is_nan(f, call, i, lane);
            f->c[i][lane] = nan ? 0 : call->c[i][lane];
            f->any = f->any || nan;
        }
    }
}

/* A row of an operand is a part of its own row of sums only: where NaN is all that the vectors
 * refuse, they take the rest. Operands that nobody should read are full of it. */
static bool run_without_nan(tensor_lanes_fn *lanes, uint32_t *const d[4], const tensor_call *call)
{
    nan_free f = {.any = false};
    uint32_t out[4][32];
    uint32_t *const to[4] = {out[0], out[1], out[2], out[3]};

    set_nan_aside(call, &f);
    const tensor_call rest = {.a = {f.a[0], f.a[1], f.a[2], f.a[3]},
                              .b = {f.b[0], f.b[1]},
                              .c = {f.c[0], f.c[1], f.c[2], f.c[3]},
                              .a_type = call->a_type,
                              .b_type = call->b_type,
                              .unit = call->unit,
                              .mode = call->mode};
    if (!f.any || !lanes(to, &rest)) {
        return false;
    }
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t lane = 0; lane < 32; lane++) {
            out[i][lane] = sum_is_nan(&f, call, i, lane) ? TENSOR_NAN : out[i][lane];
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        memcpy(d[i], out[i], sizeof out[i]);
    }
    return true;
}

/* The best that this processor runs. */
static int level_of_host(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return 2;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return 1;
    }
#endif
    return 0;
}

static const struct {
    tensor_lanes_fn *lanes;
    const tensor_group *group;
} levels[] = {
    {tensor_lanes_baseline, &tensor_group_baseline},
#if defined(__x86_64__)
    {tensor_lanes_avx2, &tensor_group_avx2},
    {tensor_lanes_avx512, &tensor_group_avx512},
#endif
};

void tensor_run(uint32_t *const d[4], const tensor_call *call)
{
    bool single = type_is_integer(call->a_type) || call->a_type == TENSOR_TF32 ||
                  call->unit.mantissa == TENSOR_HALF;

    tensor_lanes_fn *lanes = levels[level_of_host()].lanes;

    if (single || (!lanes(d, call) && !run_without_nan(lanes, d, call))) {
        mma_by_element(d, call);
    }
}

void tensor_open_rows(tensor_rows *r)
{
    if (!type_is_integer(r->type)) {
        levels[level_of_host()].group->open_rows(r);
    }
}

void tensor_open_columns(tensor_columns *c)
{
    if (!type_is_integer(c->type)) {
        levels[level_of_host()].group->open_columns(c);
    }
}

static void run_one_by_one(uint32_t *const *d, const tensor_group_call *call)
{
    for (uint32_t n = 0; n < call->blocks; n++) {
        tensor_group_call one = *call;
        one.columns = call->columns + n;
        one.blocks = 1;
        memcpy(one.c, call->c + 4 * n, 4 * sizeof *one.c);
        tensor_group_run(d + 4 * n, &one);
    }
}

void tensor_group_run(uint32_t *const *d, const tensor_group_call *call)
{
    const tensor_rows *r = call->rows;
    const tensor_columns *c = call->columns;
    bool vectors = !type_is_integer(r->type) && call->mode != HONE_EMU_EXACT &&
                   call->unit.mantissa != TENSOR_HALF;

    if (vectors && levels[level_of_host()].group->run(d, call)) {
        return;
    }
    if (call->blocks > 1) {
        run_one_by_one(d, call);
        return;
    }
    tensor_call alone = {.a = {r->raw[0], r->raw[1], r->raw[2], r->raw[3]},
                         .b = {c->raw[0], c->raw[1]},
                         .c = {call->c[0], call->c[1], call->c[2], call->c[3]},
                         .a_type = r->type,
                         .b_type = c->type,
                         .unit = call->unit,
                         .mode = call->mode,
                         .saturate = call->saturate};
    tensor_run(d, &alone);
}

void tensor_mma_m16n8(uint32_t d[4][32], const uint32_t a[4][32], const uint32_t b[2][32],
                      const uint32_t c[4][32], tensor_type a_type, tensor_type b_type,
                      tensor_unit unit, hone_emu_arithmetic mode)
{
    uint32_t *const to[4] = {d[0], d[1], d[2], d[3]};
    tensor_call call = {{a[0], a[1], a[2], a[3]},
                        {b[0], b[1]},
                        {c[0], c[1], c[2], c[3]},
                        a_type,
                        b_type,
                        unit,
                        mode,
                        false,
                        NULL,
                        NULL};

    tensor_run(to, &call);
}
