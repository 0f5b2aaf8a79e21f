/* inputs_fill.c - large operands quickly: a pool of ready blocks, drawn from at random, signs drawn
 * anew. */
#include "bench/inputs_parts.h"

#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POOL_BYTES = 1 << 18, POOL_LEAST = 16, BLOCK_MOST = 1 << 20 };
enum { EXTREME_IN = 16 }; /* one block in so many of INPUTS_HOLES is +-448 all over */

typedef struct pool {
    size_t block, len; /* bytes of a block; blocks */
    uint8_t *payload;
    float *scale;
    float zero_scale; /* of a block of zeros */
} pool;

float inputs_normal(uint64_t *state)
{
    double radius = sqrt(-2.0 * log(random_unit(state)));

    return (float)(radius * cos(6.283185307179586 * random_unit(state)));
}

static void pool_close(pool *p)
{
    free(p->payload);
    free(p->scale);
}

static float pool_value(inputs_kind kind, float amplitude, uint64_t *state)
{
    switch (kind) {
    case INPUTS_ZEROS:
        return 0.0f;
    case INPUTS_ONES:
        return 1.0f;
    default:
        return amplitude * inputs_normal(state);
    }
}

/* Bytes of `count` elements of the matrix. */
static size_t matrix_bytes(const inputs_matrix *m, int64_t count)
{
    return (size_t)count * (size_t)numfmt_dtype_bits((hone_dtype)m->quant.element) / 8;
}

static uint64_t sign_bits(const inputs_matrix *m)
{
    return m->quant.element == HONE_DTYPE_E2M1 ? UINT64_C(0x8888888888888888)
                                               : UINT64_C(0x8080808080808080);
}

/* A small operand needs no more blocks than it has. */
static hone_status pool_open(const inputs_matrix *m, inputs_kind kind, uint64_t *state, pool *out,
                             hone_error *error)
{
    const hone_quant *quant = &m->quant;
    hone_scale_rule rule =
        quant->scale == HONE_DTYPE_UE8M0 ? HONE_RULE_POW2_AMAX : HONE_RULE_RAW_AMAX;
    size_t values_len = (size_t)quant->gran_mn * (size_t)quant->gran_k;
    size_t block = matrix_bytes(m, (int64_t)values_len);
    size_t blocks = (size_t)(m->batch * m->scale_rows * m->groups);
    size_t len = block * POOL_LEAST < POOL_BYTES ? POOL_BYTES / block : POOL_LEAST;
    float *values = NULL;
    pool p = {.block = block,
              .len = blocks < len ? blocks + 1 : len,
              .zero_scale = numfmt_scale(0.0f, rule, (hone_dtype)quant->element)};

    if (values_len > BLOCK_MOST) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0,
                          "inputs: a scale covers %zu elements; blocks of up to %d can be drawn",
                          values_len, BLOCK_MOST);
    }
    values = malloc(values_len * sizeof *values);
    p.payload = malloc(block * p.len);
    p.scale = malloc(p.len * sizeof *p.scale);
    if (values == NULL || p.payload == NULL || p.scale == NULL) {
        free(values);
        pool_close(&p);
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a pool of quantised blocks");
    }
    for (size_t i = 0; i < p.len; i++) {
        float amplitude = ldexpf(1.0f, (int)(random_next(state) % 5) - 2 + m->exponent);
        for (size_t j = 0; j < values_len; j++) {
            values[j] = pool_value(kind, amplitude, state);
        }
        p.scale[i] = numfmt_quantise(values, values_len, rule, (hone_dtype)quant->element,
                                     p.payload + i * block, NULL);
        if (kind == INPUTS_EXTREMES || (kind == INPUTS_HOLES && i % EXTREME_IN == 1)) {
            memset(p.payload + i * block, quant->element == HONE_DTYPE_E2M1 ? 0x77 : 0x7e, block);
        }
    }
    free(values);
    *out = p;
    return HONE_OK;
}

/* Codes of one row of a block; each sign, one of the bits in `signs`, is drawn again, or with no
 * `state` cleared. */
static void copy_row(uint8_t *to, const uint8_t *from, size_t len, uint64_t signs, uint64_t *state)
{
    for (size_t at = 0; at < len; at += 8) {
        size_t part = len - at < 8 ? len - at : 8;
        uint64_t word = 0;
        memcpy(&word, from + at, part);
        word = (word & ~signs) | (state != NULL ? random_next(state) & signs : 0);
        memcpy(to + at, &word, part);
    }
}

static bool is_hole(const inputs_matrix *m, inputs_kind kind, int64_t row, int64_t column)
{
    return kind == INPUTS_HOLES && row >= m->hole_row && row < m->hole_row + m->hole_rows &&
           column >= m->hole_column && column < m->hole_column + m->hole_columns;
}

static float block_scale(float scale, inputs_kind kind, uint64_t *state)
{
    if (kind == INPUTS_WIDE) {
        return ldexpf(scale, (int)(random_next(state) % 41) - 20);
    }
    if (kind ==
        INPUTS_HOLES) { /* neighbours differ by binades: a scale of the next block is seen */
        return ldexpf(scale, (int)(random_next(state) % 7) - 3);
    }
    return kind == INPUTS_TINY ? ldexpf(scale, -30) : scale;
}

static void fill_block(const inputs_matrix *m, const pool *p, inputs_kind kind, const int64_t at[3],
                       uint64_t *state)
{
    int64_t batch = at[0], block_row = at[1], group = at[2];
    int64_t first = block_row * m->quant.gran_mn, column = group * m->quant.gran_k;
    int64_t rows = m->rows - first < m->quant.gran_mn ? m->rows - first : m->quant.gran_mn;
    int64_t len = m->k - column < m->quant.gran_k ? m->k - column : m->quant.gran_k;
    size_t pick = random_next(state) % p->len;
    const bool hole = is_hole(m, kind, first, column);
    float scale = block_scale(hole ? p->zero_scale : p->scale[pick], kind, state);
    int64_t place = m->scale_batch == 0 ? batch * m->groups + group : group;
    uint8_t *scales = m->scales + batch * m->scale_batch;

    for (int64_t r = 0; r < rows; r++) {
        uint8_t *to = m->payload + matrix_bytes(m, batch * m->batch_stride +
                                                       (first + r) * m->row_stride + column);
        const bool positive =
            kind == INPUTS_ONES || (kind == INPUTS_HOLES && (first + r) % m->one_signed == 0);
        if (hole) {
            memset(to, 0, matrix_bytes(m, len));
        } else {
            copy_row(to, p->payload + pick * p->block + matrix_bytes(m, r * m->quant.gran_k),
                     matrix_bytes(m, len), sign_bits(m), positive ? NULL : state);
        }
    }
    scales += problem_scale_offset(m->scale_rows, m->scale_groups, (hone_dtype)m->quant.scale,
                                   m->scale_layout, block_row, place);
    if (m->quant.scale != HONE_DTYPE_UE8M0) {
        memcpy(scales, &scale, sizeof scale);
    } else if (!numfmt_ue8m0_exact(scale, scales)) {
        *scales = 0xff; /* cannot be: the rule makes powers of two, and `kind` moves them little */
    }
}

hone_status inputs_fill_quantised(const inputs_matrix *m, inputs_kind kind, uint64_t seed,
                                  hone_error *error)
{
    hone_status status = HONE_OK;
    uint64_t state = seed;
    pool p = {0};

    TRY(pool_open(m, kind, &state, &p, error));
    for (int64_t batch = 0; batch < m->batch; batch++) {
        for (int64_t row = 0; row < m->scale_rows; row++) {
            for (int64_t group = 0; group < m->groups; group++) {
                fill_block(m, &p, kind, (const int64_t[3]){batch, row, group}, &state);
            }
        }
    }
done:
    pool_close(&p);
    return status;
}

/* Group by group: all NaN, all infinite, one of each among zeros or numbers, zeros, then ordinary
 * ones. */
static float special_value(size_t group, size_t i, float x)
{
    float wide = ldexpf(x, (int)(group % 41) - 20);

    switch (group % 10) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return i % 7 == 3 ? NAN : wide;
    case 3:
        return i % 7 == 3 ? INFINITY : wide;
    case 4:
        return i == 0 ? INFINITY : (i == 1 ? NAN : 0.0f);
    case 5:
        return 0.0f;
    default:
        return wide;
    }
}

/* Groups that quantisers stumble over come first; the rest are ordinary, of many magnitudes. */
static float plain_value(inputs_kind kind, size_t group, size_t i, uint64_t *state)
{
    float x = inputs_normal(state);

    if (kind == INPUTS_ZEROS || (kind == INPUTS_HOLES && group % 4 == 0)) {
        return 0.0f;
    }
    if (kind == INPUTS_ONES) {
        return 1.0f;
    }
    if (kind == INPUTS_SPECIALS) {
        return special_value(group, i, x);
    }
    if (kind == INPUTS_TINY) {
        return x * 1e-6f; /* below the floors */
    }
    if (kind == INPUTS_WIDE) {
        return ldexpf(x, (int)(group % 41) - 20);
    }
    if (kind == INPUTS_EXTREMES && i == 0) { /* the group's largest: of e4m3 or e2m1 times 2^j, or
                                                just above */
        static const float largest[4] = {448.0f, 450.0f, 384.0f, 386.0f};
        return ldexpf(largest[group % 4], (int)(group % 13) - 6);
    }
    if (kind == INPUTS_EXTREMES) {
        return fmodf(x * 32.0f, 400.0f) * ldexpf(1.0f, (int)(group % 13) - 6);
    }
    return ldexpf(x, (int)(group % 9) - 4);
}

hone_status inputs_fill_plain(hone_dtype dtype, uint64_t count, uint32_t group, inputs_kind kind,
                              uint64_t seed, uint8_t *out, hone_error *error)
{
    size_t bytes = (size_t)numfmt_dtype_bits(dtype) / 8;
    size_t len = count < POOL_BYTES ? (size_t)count / group + 1 : POOL_BYTES / group,
           width = group * bytes;
    uint64_t state = seed;
    uint8_t *groups = malloc(len * width);

    if (groups == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a pool of input groups");
    }
    for (size_t i = 0; i < len * group; i++) {
        float sign = kind != INPUTS_ONES && random_next(&state) % 2 == 0 ? -1.0f : 1.0f;
        numfmt_encode(dtype, groups, i, sign * plain_value(kind, i / group, i % group, &state));
    }
    for (uint64_t at = 0; at < count; at += group) {
        size_t part = count - at < group ? (size_t)(count - at) * bytes : width;
        memcpy(out + at * bytes, groups + random_next(&state) % len * width, part);
    }
    free(groups);
    return HONE_OK;
}
