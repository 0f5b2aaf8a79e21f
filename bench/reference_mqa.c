/* reference_mqa.c - an indexer's scores in float64, a row at a time: its query is decoded once, its
 * keys one by one. */
#include "bench/reference.h"

#include "core/numfmt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 128, WORD_DIMS = 32 };

/* Either op's operands, by what they mean. */
typedef struct scores {
    int64_t heads, dims;
    hone_dtype element;
    const uint8_t *q, *q_scale, *weights;
    double *query; /* heads * dims */
} scores;

/* Where a key's codes and its scales lie. */
typedef struct key_place {
    const uint8_t *codes, *scale;
} key_place;

static int32_t number_at(const uint8_t *image, int64_t entry)
{
    int32_t x = 0;

    memcpy(&x, image + 4 * entry, sizeof x);
    return x;
}

static int64_t clamp(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x > most ? most : x;
}

void reference_mqa_range(const hone_problem *problem, const inputs *in, int64_t row, int64_t *first,
                         int64_t *keys)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;

    *first = 0;
    if (problem->op == HONE_OP_MQA_LOGITS_PAGED) {
        *keys = clamp(number_at(in->image[4], row), problem->as.mqa_logits_paged.width);
        return;
    }
    const int64_t start = clamp(number_at(in->image[5], row), p->keys);
    const int64_t len = clamp(number_at(in->image[6], row), p->keys) - start;
    const int64_t most = p->span == HONE_SPAN_COMPRESSED ? p->width : p->keys;
    *first = start;
    *keys = clamp(len, most);
}

/* Codes under words of ue8m0, or codes alone. */
static void decode(const scores *s, const uint8_t *codes, const uint8_t *words, double *out)
{
    for (int64_t d = 0; d < s->dims; d++) {
        const double scale =
            s->element == HONE_DTYPE_E2M1 ? (double)numfmt_ue8m0_decode(words[d / WORD_DIMS]) : 1;
        out[d] = (double)numfmt_decode(s->element, codes, (uint64_t)d) * scale;
    }
}

static void decode_query(const scores *s, int64_t row)
{
    const int64_t bytes = s->dims * numfmt_dtype_bits(s->element) / 8;

    for (int64_t h = row * s->heads; h < (row + 1) * s->heads; h++) {
        decode(s, s->q + h * bytes, s->q_scale + 4 * h, s->query + h % s->heads * s->dims);
    }
}

/* One score, and the sum of its products' magnitudes. */
static void score(const scores *s, int64_t row, const key_place *k, double *value,
                  double *magnitude)
{
    double key[MOST_DIMS], sum = 0, all = 0;
    float scale = 1;

    decode(s, k->codes, k->scale, key);
    if (s->element == HONE_DTYPE_E4M3) {
        memcpy(&scale, k->scale, sizeof scale);
    }
    for (int64_t h = 0; h < s->heads; h++) {
        const double *q = s->query + h * s->dims;
        double dot = 0, size = 0;
        float weight = 0;
        for (int64_t d = 0; d < s->dims; d++) {
            dot += q[d] * key[d];
            size += fabs(q[d] * key[d]);
        }
        memcpy(&weight, s->weights + 4 * (row * s->heads + h), sizeof weight);
        sum += dot > 0 ? (double)weight * dot : 0;
        all += fabs((double)weight) * size;
    }
    *value = sum * (double)scale;
    *magnitude = all * fabs((double)scale);
}

/* False: the key's page is none. */
static bool find_key(const hone_problem *problem, const inputs *in, int64_t row, int64_t key,
                     key_place *out)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &problem->as.mqa_logits_paged;
    record_layout layout;

    if (problem->op == HONE_OP_MQA_LOGITS) {
        const int64_t bytes = p->dims * numfmt_dtype_bits((hone_dtype)p->element) / 8;
        *out = (key_place){in->image[2] + key * bytes, in->image[3] + 4 * key};
        return true;
    }
    const int64_t page =
        number_at(in->image[5], row / d->next_n * d->table_stride + key / d->page_size);
    if (page < 0 || page >= d->pages) {
        return false;
    }
    record_layout_of(&d->record, d->page_size, &layout, NULL); /* checked before: cannot fail */
    const uint8_t *at = in->image[2] + page * d->page_stride;
    *out = (key_place){at + record_data_offset(&layout, key % d->page_size),
                       at + record_scale_offset(&layout, key % d->page_size, 0)};
    return true;
}

static scores scores_of(const hone_problem *problem, const inputs *in)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &problem->as.mqa_logits_paged;
    const bool paged = problem->op == HONE_OP_MQA_LOGITS_PAGED;
    const bool nibbles = d->record.format == HONE_KV_INDEX_FP4_68;

    return (scores){.heads = paged ? d->heads : p->heads,
                    .dims = paged ? MOST_DIMS : p->dims,
                    .element = !paged    ? (hone_dtype)p->element
                               : nibbles ? HONE_DTYPE_E2M1
                                         : HONE_DTYPE_E4M3,
                    .q = in->image[0],
                    .q_scale = in->image[1],
                    .weights = in->image[paged ? 3 : 4]};
}

hone_status reference_mqa(const hone_problem *problem, const inputs *in, int64_t row, int64_t first,
                          int64_t keys, double *value, double *magnitude, hone_error *error)
{
    scores s = scores_of(problem, in);

    s.query = malloc((size_t)(s.heads * s.dims) * sizeof *s.query);
    if (s.query == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "reference: a query token");
    }
    decode_query(&s, row);
    for (int64_t i = 0; i < keys; i++) {
        key_place at;
        value[i] = -INFINITY;
        magnitude[i] = 0;
        if (find_key(problem, in, row, first + i, &at)) {
            score(&s, row, &at, &value[i], &magnitude[i]);
        }
    }
    free(s.query);
    return HONE_OK;
}
