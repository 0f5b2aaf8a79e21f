/* reference_quant.c - quantised activations, byte for byte, by core's one quantiser. */
#include "bench/reference.h"

#include "core/fold_mxfp4.h"
#include "core/numfmt.h"

#include <math.h>
#include <string.h>

enum { GROUP_MOST = 128 };

/* The row of x that row `row` of q is made of. */
static int64_t source_row(const hone_act_quant *p, const inputs *in, int64_t row)
{
    int32_t entry = 0;

    if (p->row_set != HONE_ROWS_GATHERED) {
        return row;
    }
    memcpy(&entry, in->image[3] + 4 * row, sizeof entry);
    return entry / p->topk;
}

void reference_act_quant(const hone_act_quant *p, const inputs *in, int64_t row, int64_t group,
                         uint8_t *codes, float *scale, uint8_t *scale_code)
{
    float x[GROUP_MOST];
    uint64_t first = (uint64_t)(source_row(p, in, row) * p->k + group * p->group);

    for (int32_t i = 0; i < p->group; i++) {
        x[i] = numfmt_decode((hone_dtype)p->in, in->image[0], first + (uint64_t)i);
    }
    *scale = numfmt_quantise(x, (size_t)p->group, (hone_scale_rule)p->rule, (hone_dtype)p->out,
                             codes, scale_code);
}

double reference_gate(int32_t activation, double gate, double up, double *bound)
{
    if (activation == HONE_ACTIVATION_SILU_MUL_V4) { /* NaN stays */
        gate = gate > 10.0 ? 10.0 : gate;
        up = up > 10.0 ? 10.0 : up < -10.0 ? -10.0 : up;
    }
    const double silu = gate / (1.0 + exp(-gate));

    *bound = fabs(up) * (fabs(silu) * (0x1p-20 + fabs(gate) * 0x1p-23) + 0x1p-118) + 0x1p-149;
    return silu * up;
}

void reference_act_values(const hone_act_quant *p, const inputs *in, int64_t row, int64_t group,
                          double *value, double *bound)
{
    uint64_t first = (uint64_t)(source_row(p, in, row) * 2 * p->k + group * p->group);

    for (int32_t i = 0; i < p->group; i++) {
        uint64_t at = first + (uint64_t)i;
        double gate = numfmt_decode((hone_dtype)p->in, in->image[0], at);
        double up = numfmt_decode((hone_dtype)p->in, in->image[0], at + (uint64_t)p->k);
        value[i] = reference_gate(p->activation, gate, up, &bound[i]);
    }
}

void reference_weight_quant(const hone_weight_quant *p, const inputs *in, int64_t row_block,
                            int64_t group, uint8_t *codes, float *scale, uint8_t *scale_code)
{
    float x[REFERENCE_TILE * REFERENCE_TILE];
    int64_t row = row_block * p->gran_n, column = group * p->gran_k;
    size_t len = 0;

    for (int64_t r = row; r < row + p->gran_n && r < p->n; r++) {
        for (int64_t c = column; c < column + p->gran_k && c < p->k; c++) {
            x[len++] = numfmt_decode((hone_dtype)p->in, in->image[0], (uint64_t)(r * p->k + c));
        }
    }
    *scale =
        numfmt_quantise(x, len, (hone_scale_rule)p->rule, (hone_dtype)p->out, codes, scale_code);
}

uint8_t reference_mxfp4_fold(const hone_mxfp4_fold *p, const inputs *in, int64_t batch, int64_t row,
                             int64_t column, uint8_t *codes)
{
    const int64_t first = row * p->block_rows, left = column * p->block_cols;
    const int64_t rows = p->n - first < p->block_rows ? p->n - first : p->block_rows;
    const int64_t cols = p->k - left < p->block_cols ? p->k - left : p->block_cols;
    const int64_t at = (batch * p->n + first) * p->k + left;
    const fold_mxfp4_block block = {.codes = in->image[0] + at / 2,
                                    .codes_stride = (uint64_t)p->k / 2,
                                    .scales = in->image[1] + at / 32,
                                    .scales_stride = (uint64_t)p->k / 32,
                                    .rows = (uint64_t)rows,
                                    .groups = (uint64_t)cols / 32};

    return fold_mxfp4(&block, codes, (uint64_t)cols).scale;
}
