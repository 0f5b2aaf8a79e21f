/* narrow.c - mma.sync of sm_120's kinds and of f64: element by element, from the registers. */
#include "emulator/exec/exec.h"
#include "emulator/tensor/scaled_tile.h"

#include <math.h>
#include <string.h>

/* Element k of row g (or column g, then rows is 1) of an operand: emulator.md 5.1, 5.9. Registers
 * come in `rows` for each range of k. */
static uint32_t code_at(const warp *w, const uint32_t *registers, uint32_t rows, uint32_t g,
                        uint32_t k, narrow_type type, bool nibbles)
{
    uint32_t elements = nibbles ? 8 : 4, bits = 32 / elements, group = k / elements;
    uint32_t word = machine_r32(w, registers[rows * (group / 4) + g / 8])[4 * (g % 8) + group % 4];
    uint32_t code = word >> (bits * (k % elements)) & ((1u << bits) - 1);

    if (nibbles) {
        return code;
    }
    /* in a byte, four bits lie in the middle, six at the bottom */
    return type == NARROW_E2M1 ? code >> 2 & 15 : type <= NARROW_E5M2 ? code : code & 63;
}

/* Operands of one instruction, taken apart. */
typedef struct narrow_operands {
    narrow_number a[16][NARROW_DEPTH], b[8][NARROW_DEPTH];
    narrow_number a_scale[16][NARROW_SCALES], b_scale[8][NARROW_SCALES];
} narrow_operands;

static void open_elements(const warp *w, const instruction *i, narrow_operands *out)
{
    narrow_type a = (narrow_type)(i->kind & 15), b = (narrow_type)(i->kind >> 4);
    bool nibbles = i->element_bytes == 64;

    for (uint32_t k = 0; k < i->element_bytes; k++) {
        for (uint32_t g = 0; g < 16; g++) {
            out->a[g][k] = narrow_number_of(code_at(w, i->o + 4, 2, g, k, a, nibbles), a);
        }
        for (uint32_t g = 0; g < 8; g++) {
            out->b[g][k] = narrow_number_of(code_at(w, i->o + 8, 1, g, k, b, nibbles), b);
        }
    }
}

static narrow_type scale_type(const instruction *i)
{
    return i->offset & MMA_UE4M3 ? NARROW_UE4M3 : NARROW_UE8M0;
}

/* The scales of one row or column from the register of the lane that holds them: `byte` is the
 * first of theirs. */
static void open_scales(const warp *w, const instruction *i, uint32_t data, uint32_t lane,
                        uint32_t byte, narrow_number *out)
{
    narrow_type type = scale_type(i);
    uint32_t word = machine_r32(w, data)[lane];

    for (uint32_t n = 0; n < i->elements; n++) {
        out[n] = narrow_number_of(word >> 8 * ((byte + n) & 3) & 255, type);
    }
}

/* {byte, thread}: which byte is the first, and which lanes of each four hold scales. One value for
 * the warp; false and a fault when it selects nothing. */
static bool read_selector(warp *w, const instruction *i, const uint32_t ids[2], uint32_t threads,
                          uint32_t out[2])
{
    uint32_t step = i->elements; /* 1: any byte, 2: 0 or 2, 4: 0 */

    out[0] = machine_r32(w, ids[0])[0] & 0xffff;
    out[1] = machine_r32(w, ids[1])[0] & 0xffff;
    if (out[0] < 4 && out[0] % step == 0 && out[1] < threads) {
        return true;
    }
    machine_fault(w, i, 0, 0, FAULT_PRECONDITION,
                  "mma's scale selector {%u, %u}: the byte is a multiple of %u below 4, the thread "
                  "below %u",
                  out[0], out[1], step, threads);
    return false;
}

/* Of four lanes, the pair 2 * thread, + 1 holds rows g and g + 8 of A's scales; the lane `thread`
 * holds column g of B's. */
static bool open_all_scales(warp *w, const instruction *i, narrow_operands *out)
{
    uint32_t a[2], b[2];

    if (!read_selector(w, i, i->o + 15, 2, a) || !read_selector(w, i, i->o + 18, 4, b)) {
        return false;
    }
    for (uint32_t g = 0; g < 8; g++) {
        open_scales(w, i, i->o[14], 4 * g + 2 * a[1], a[0], out->a_scale[g]);
        open_scales(w, i, i->o[14], 4 * g + 2 * a[1] + 1, a[0], out->a_scale[g + 8]);
        open_scales(w, i, i->o[17], 4 * g + b[1], b[0], out->b_scale[g]);
    }
    return true;
}

/* Words of four codes of a warp's registers, taken apart. */
typedef struct code_reader {
    const narrow_number *numbers;
    uint32_t down; /* four bits lie in the middle of a byte */
    bool none;     /* a code was no number */
} code_reader;

static code_reader reader_of(narrow_type type)
{
    return (code_reader){.numbers = narrow_numbers(type), .down = type == NARROW_E2M1 ? 2 : 0};
}

static narrow_number read_code(code_reader *from, uint32_t word, uint32_t byte, int32_t scale)
{
    narrow_number n = from->numbers[word >> (8 * byte + from->down) & 255];

    from->none |= n.nan || n.infinite;
    n.exponent += scale;
    return n;
}

/* Operands for scaled_tile.h; false when one of their codes is no number. */
static bool open_tile(const warp *w, const instruction *i, const narrow_operands *scales,
                      scaled_tile *out)
{
    code_reader a = reader_of(out->a_type), b = reader_of(out->b_type);
    bool none = false;

    for (uint32_t at = 0; at < 4 * MACHINE_LANES * 4; at++) {
        const uint32_t r = at / 4 / MACHINE_LANES, lane = at / 4 % MACHINE_LANES, byte = at % 4;
        const uint32_t row = lane / 4 + r % 2 * 8, k = r / 2 * 16 + lane % 4 * 4 + byte;
        narrow_number n = read_code(&a, machine_r32(w, i->o[4 + r])[lane], byte,
                                    scales->a_scale[row][0].exponent);
        out->a[row][k] = n.significand;
        out->a_exponent[row][k] = n.exponent;
    }
    for (uint32_t at = 0; at < 2 * MACHINE_LANES * 4; at++) {
        const uint32_t r = at / 4 / MACHINE_LANES, lane = at / 4 % MACHINE_LANES, byte = at % 4;
        const uint32_t column = lane / 4, k = r * 16 + lane % 4 * 4 + byte;
        narrow_number n = read_code(&b, machine_r32(w, i->o[8 + r])[lane], byte,
                                    scales->b_scale[column][0].exponent);
        out->b[k][column] = n.significand;
        out->b_exponent[k][column] = n.exponent;
    }
    for (uint32_t row = 0; row < SCALED_ROWS; row++) {
        none = none || scales->a_scale[row][0].nan || scales->b_scale[row % 8][0].nan;
    }
    return !none && !a.none && !b.none;
}

/* The whole product a row at a time, as the hardware sums it; false when there is something in it
 * that is no number. */
static bool run_tile(const warp *w, const instruction *i, const narrow_operands *scales,
                     uint32_t out[4][MACHINE_LANES])
{
    scaled_tile tile = {.a_type = (narrow_type)(i->kind & 15),
                        .b_type = (narrow_type)(i->kind >> 4)};
    float c[SCALED_ROWS][SCALED_COLUMNS], d[SCALED_COLUMNS];

    if (!open_tile(w, i, scales, &tile)) {
        return false;
    }
    for (uint32_t at = 0; at < 4 * MACHINE_LANES; at++) {
        const uint32_t r = at / MACHINE_LANES, lane = at % MACHINE_LANES;
        float *to = &c[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
        memcpy(to, machine_r32(w, i->o[10 + r]) + lane, sizeof *to);
        if (!isfinite(*to)) {
            return false;
        }
    }
    for (uint32_t row = 0; row < SCALED_ROWS; row++) {
        scaled_tile_row(&tile, row, c[row], d);
        for (uint32_t column = 0; column < SCALED_COLUMNS; column++) {
            memcpy(&out[row / 8 * 2 + column % 2][row % 8 * 4 + column / 2], &d[column],
                   sizeof d[column]);
        }
    }
    return true;
}

static void one_element(const narrow_operands *from, narrow_dot *n, uint32_t row, uint32_t column,
                        uint32_t *d, const uint32_t *c)
{
    float value = 0.0f;

    memcpy(n->a, from->a[row], sizeof n->a);
    memcpy(n->b, from->b[column], sizeof n->b);
    memcpy(n->a_scale, from->a_scale[row], sizeof n->a_scale);
    memcpy(n->b_scale, from->b_scale[column], sizeof n->b_scale);
    memcpy(&value, c, sizeof value);
    value = narrow_run(n, value);
    memcpy(d, &value, sizeof value);
}

static void run_elements(const warp *w, const instruction *i, narrow_operands *from, narrow_dot *n,
                         uint32_t out[4][MACHINE_LANES])
{
    open_elements(w, i, from);
    for (uint32_t r = 0; r < 4; r++) {
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            one_element(from, n, lane / 4 + 8 * (r / 2), 2 * (lane % 4) + r % 2, &out[r][lane],
                        machine_r32(w, i->o[10 + r]) + lane);
        }
    }
}

/* d: 4, a: 4, b: 2, c: 4 registers, then scales with their selectors. kind: types; elements: scales
 * along k; element_bytes: k; offset: MMA_*. */
void exec_mma_narrow(warp *w, const instruction *i, uint32_t mask)
{
    narrow_operands from;
    narrow_dot n = {.a_type = (narrow_type)(i->kind & 15),
                    .b_type = (narrow_type)(i->kind >> 4),
                    .scale_type = scale_type(i),
                    .len = i->element_bytes,
                    .scales = i->elements,
                    .half = (i->offset & MMA_HALF) != 0,
                    .mode = w->run->launch->arithmetic};
    uint32_t out[4][MACHINE_LANES];

    if (!exec_mma_whole(w, i, mask)) {
        return;
    }
    memset(&from, 0, sizeof from);
    if (i->elements > 0 && !open_all_scales(w, i, &from)) {
        return;
    }
    bool whole = n.len == SCALED_DEPTH && n.mode == HONE_EMU_HW && !n.half;
    if (!whole || !run_tile(w, i, &from, out)) {
        run_elements(w, i, &from, &n, out);
    }
    for (uint32_t r = 0; r < 4; r++) {
        memcpy(machine_r32(w, i->o[r]), out[r], sizeof out[r]);
    }
    w->run->counters.tensor_macs[i->element_bytes == 64 ? HONE_EMU_MMA_FP4
                                 : i->elements > 0      ? HONE_EMU_MMA_MXFP8
                                                        : HONE_EMU_MMA_FP8] += i->target;
}

/* kind: k, elements: m; d, a, b, c in 64-bit registers, laid out as the narrow ones with one
 * element each. */
void exec_mma_double(warp *w, const instruction *i, uint32_t mask)
{
    uint32_t k_len = i->kind, rows = i->elements / 8, results = i->results;
    const uint32_t *a = i->o + results, *b = a + i->elements * k_len / 32, *c = b + k_len / 4;
    double out[4][MACHINE_LANES];

    if (!exec_mma_whole(w, i, mask)) {
        return;
    }
    for (uint32_t r = 0; r < results; r++) {
        for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
            uint32_t column = 2 * (lane % 4) + r % 2;
            memcpy(&out[r][lane], machine_r64(w, c[r]) + lane, 8);
            for (uint32_t k = 0; k < k_len; k++) {
                double x, y;
                memcpy(&x, machine_r64(w, a[rows * (k / 4) + r / 2]) + 4 * (lane / 4) + k % 4, 8);
                memcpy(&y, machine_r64(w, b[k / 4]) + 4 * column + k % 4, 8);
                out[r][lane] = fma(x, y, out[r][lane]);
            }
        }
    }
    for (uint32_t r = 0; r < results; r++) {
        memcpy(machine_r64(w, i->o[r]), out[r], sizeof out[r]);
    }
}
