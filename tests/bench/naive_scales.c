/* naive_scales.c - scales put where kernels read them, one after another, with faults. */
#include "core/numfmt.h"
#include "tests/bench/naive.h"

#include <string.h>

typedef struct packing {
    const hone_scale_pack *p;
    naive_fault fault;
    uint8_t *out;
    int64_t rows_padded;
    uint64_t wrong;
} packing;

static uint8_t code_of(packing *k, float scale)
{
    uint8_t code = 0xff;

    if (!numfmt_ue8m0_exact(scale, &code)) {
        k->wrong += k->fault != NAIVE_NO_COUNT;
        code = k->fault == NAIVE_FLOOR && scale > 0 ? (uint8_t)(numfmt_bits(scale) >> 23) : 0xff;
    }
    return code;
}

static void put(packing *k, int64_t line, int64_t row, int64_t byte, float scale)
{
    uint8_t *at = k->out + 4 * (line * k->rows_padded + row);

    if (k->p->scale_layout == HONE_SCALES_PACKED) {
        at[k->fault == NAIVE_SWAPPED_SCALE ? 3 - byte : byte] = code_of(k, scale);
    } else {
        memcpy(at, &scale, sizeof scale);
    }
}

/* Rows [0, rows) of one matrix, or of the experts' groups. */
static void put_group(packing *k, const uint8_t *image, int64_t row_stride, int64_t group_stride,
                      int64_t group, int64_t line, int64_t byte)
{
    const int64_t rows = k->p->rows - (k->fault == NAIVE_TAIL_ROW);

    for (int64_t row = 0; row < rows; row++) {
        const int64_t from = k->fault == NAIVE_ROW_SCALE_SHIFT && row + 1 < rows ? row + 1 : row;
        float scale = 0;
        memcpy(&scale, image + 4 * (from * row_stride + group * group_stride), sizeof scale);
        put(k, line, row, byte, scale);
    }
}

static void put_matrix(packing *k, const uint8_t *image)
{
    const bool packed = k->p->scale_layout == HONE_SCALES_PACKED;
    const int64_t groups = k->p->groups / (k->fault == NAIVE_HALF ? 2 : 1);

    for (int64_t group = 0; group < groups; group++) {
        put_group(k, image, k->p->groups, 1, group, packed ? group / 4 : group, group % 4);
    }
}

/* NAIVE_K_TAIL: words are filled through, so that an expert begins in the middle of one. */
static void put_experts(packing *k, const inputs *in)
{
    const int64_t lines = (k->p->groups + 3 * k->p->experts) / 4;
    int64_t group = 0, place = 0;

    for (int32_t e = 0; e < k->p->experts; e++) {
        int32_t size = 0;
        memcpy(&size, in->image[2] + 4 * e, sizeof size);
        for (int64_t at = 0; at < size; at += k->p->gran_k, group++, place++) {
            if (group < k->p->groups) {
                put_group(k, in->image[0], 1, k->p->rows, group, place / 4, place % 4);
            } else if (place / 4 < lines && k->fault != NAIVE_NO_COUNT) {
                k->wrong += (uint64_t)k->p->rows;
            }
        }
        place = k->fault == NAIVE_K_TAIL ? place : (place + 3) / 4 * 4;
    }
    if (k->p->experts > 0 && group < k->p->groups && k->fault != NAIVE_NO_COUNT) {
        k->wrong += (uint64_t)((k->p->groups - group) * k->p->rows);
    }
}

void naive_scale_pack(const hone_scale_pack *p, const inputs *in, naive_fault fault, inputs *out)
{
    const bool packed = p->scale_layout == HONE_SCALES_PACKED;
    const bool pads = p->experts == 0 && p->scale_layout != HONE_SCALES_COL;
    packing k = {p, fault, out->image[1], pads ? (p->rows + 3) / 4 * 4 : p->rows, 0};
    const uint64_t one = out->operand[1].bytes / (uint64_t)p->batch;
    const float padding = 1.0f;
    uint64_t wrong = 0;

    for (uint64_t at = 0; at < out->operand[1].bytes && fault != NAIVE_HALF; at += 4) {
        memset(out->image[1] + at, 0, 4);
        if (!packed) {
            memcpy(out->image[1] + at, &padding, sizeof padding);
        }
    }
    for (int64_t b = 0; b < p->batch && p->experts == 0; b++) {
        k.out = out->image[1] + (uint64_t)b * one;
        put_matrix(&k, in->image[0] + 4 * b * p->rows * p->groups);
    }
    put_experts(&k, in);
    memcpy(&wrong, out->image[3], sizeof wrong);
    wrong += k.wrong;
    memcpy(out->image[3], &wrong, sizeof wrong);
}
