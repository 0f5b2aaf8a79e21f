/* fold_data.c - draws the matrices of fold_data.h. */
#include "tests/core/fold_data.h"

#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>

const char *const fold_kind_names[FOLD_KINDS] = {
    [FOLD_NORMAL] = "normal",
    [FOLD_CHANNELS] = "channel scales, sigma 0.7",
    [FOLD_OUTLIERS] = "sigma 1.2 + 60x outliers",
    [FOLD_SWIGLU] = "SwiGLU-like",
    [FOLD_ADVERSARIAL] = "adversarial",
};

static double normal(uint64_t *state)
{
    const double radius = sqrt(-2.0 * log(random_unit(state)));

    return radius * cos(6.283185307179586 * random_unit(state));
}

/* The scale of a column of A, and the one of B. */
static void column_scale(fold_kind kind, uint64_t seed, int64_t column, double *a, double *b)
{
    uint64_t state = seed * 1000003 + (uint64_t)column;
    const double za = normal(&state), zb = normal(&state), pick = random_unit(&state);

    *a = *b = 1.0;
    switch (kind) {
    case FOLD_CHANNELS:
    case FOLD_SWIGLU:
        *a = exp(0.7 * za);
        *b = exp(0.7 * zb);
        break;
    case FOLD_OUTLIERS:
        *a = exp(1.2 * za) * (pick < 1.0 / 128 ? 60.0 : 1.0);
        *b = exp(1.2 * zb);
        break;
    case FOLD_ADVERSARIAL:
        *a = exp(1.2 * za) * (pick < 1.0 / 128 ? 200.0 : 1.0);
        *b = 1.0 / *a;
        break;
    default:
        break;
    }
}

static double element(fold_kind kind, bool is_a, uint64_t *state)
{
    const double x = normal(state);

    return kind == FOLD_SWIGLU && is_a ? x / (1.0 + exp(-x)) * normal(state) : x;
}

static void fill(fold_matrix *m, fold_kind kind, bool is_a, uint64_t seed)
{
    uint64_t state = seed * 2 + is_a;

    for (int64_t column = 0; column < m->k; column++) {
        double a = 0, b = 0;
        column_scale(kind, seed, column, &a, &b);
        for (int64_t row = 0; row < m->rows; row++) {
            m->plain[row * m->k + column] = (float)((is_a ? a : b) * element(kind, is_a, &state));
        }
    }
}

static void quantise(fold_matrix *m)
{
    const int64_t groups = (m->k + m->gran_k - 1) / m->gran_k;

    for (int64_t row = 0; row < m->rows; row += m->gran_mn) {
        for (int64_t group = 0; group < groups; group++) {
            float block[32 * 32];
            uint8_t codes[32 * 32];
            size_t len = 0, at = 0;
            const int64_t end = row + m->gran_mn < m->rows ? row + m->gran_mn : m->rows;
            for (int64_t i = row; i < end; i++) {
                for (int64_t k = group * m->gran_k; k < m->k && k < (group + 1) * m->gran_k; k++) {
                    block[len++] = m->plain[i * m->k + k];
                }
            }
            numfmt_quantise(block, len, HONE_RULE_POW2_AMAX, HONE_DTYPE_E4M3, codes,
                            &m->scales[row / m->gran_mn * groups + group]);
            for (int64_t i = row; i < end; i++) {
                for (int64_t k = group * m->gran_k; k < m->k && k < (group + 1) * m->gran_k; k++) {
                    m->codes[i * m->k + k] = codes[at++];
                }
            }
        }
    }
}

fold_matrix fold_matrix_make(fold_kind kind, bool is_a, int64_t rows, int64_t k, int32_t gran_mn,
                             uint64_t seed)
{
    fold_matrix m = {.rows = rows, .k = k, .gran_mn = gran_mn, .gran_k = 32};
    const size_t elements = (size_t)(rows * k);

    m.plain = malloc(elements * sizeof *m.plain + 1);
    m.codes = malloc(elements + 1);
    m.scales = malloc((size_t)((rows + gran_mn - 1) / gran_mn * ((k + 31) / 32)) + 1);
    if (m.plain == NULL || m.codes == NULL || m.scales == NULL) {
        abort();
    }
    fill(&m, kind, is_a, seed);
    quantise(&m);
    return m;
}

void fold_matrix_free(fold_matrix *m)
{
    free(m->plain);
    free(m->codes);
    free(m->scales);
    *m = (fold_matrix){0};
}

double fold_value(const uint8_t *codes, const uint8_t *scales, int64_t k, int32_t gran_mn,
                  int32_t gran_k, int64_t row, int64_t column)
{
    const int64_t groups = (k + gran_k - 1) / gran_k;
    const uint8_t scale = scales[row / gran_mn * groups + column / gran_k];

    return ldexp((double)numfmt_e4m3_decode(codes[row * k + column]), scale - 127);
}
