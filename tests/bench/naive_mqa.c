/* naive_mqa.c - an indexer's scores, one cell after the other, by kernels.md 3.1 to 3.3 and App. A6
 * and A7 written out. */
#include "tests/bench/naive.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

/* Either op's fields and images under one name. */
typedef struct shape {
    int64_t rows, width, stride, keys, heads, dims;
    int64_t next_n, page, pages, page_stride, table_stride; /* page 0: keys side by side */
    bool fp4, compressed, clean;
    int32_t out;
    const uint8_t *q, *q_scale, *k, *k_scale, *weights, *start, *end, *table;
    uint8_t *logits;
    const uint8_t *k_end;
} shape;

static int32_t i32_at(const uint8_t *image, int64_t i)
{
    int32_t x = 0;

    memcpy(&x, image + 4 * i, 4);
    return x;
}

static float f32_at(const uint8_t *image, int64_t i)
{
    float x = 0;

    memcpy(&x, image + 4 * i, 4);
    return x;
}

static shape shape_of(const hone_problem *problem, const inputs *in, inputs *out)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &problem->as.mqa_logits_paged;

    if (problem->op == HONE_OP_MQA_LOGITS) {
        return (shape){p->tokens,
                       p->width,
                       p->stride,
                       p->keys,
                       p->heads,
                       p->dims,
                       1,
                       0,
                       0,
                       0,
                       0,
                       p->element == HONE_DTYPE_E2M1,
                       p->span == HONE_SPAN_COMPRESSED,
                       p->clean != 0,
                       p->out,
                       in->image[0],
                       in->image[1],
                       in->image[2],
                       in->image[3],
                       in->image[4],
                       in->image[5],
                       in->image[6],
                       NULL,
                       out->image[7],
                       in->image[2] + in->operand[2].bytes};
    }
    return (shape){d->batch * d->next_n,
                   d->width,
                   d->stride,
                   d->width,
                   d->heads,
                   128,
                   d->next_n,
                   d->page_size,
                   d->pages,
                   d->page_stride,
                   d->table_stride,
                   d->record.format == HONE_KV_INDEX_FP4_68,
                   false,
                   false,
                   d->out,
                   in->image[0],
                   in->image[1],
                   in->image[2],
                   NULL,
                   in->image[3],
                   NULL,
                   in->image[4],
                   in->image[5],
                   out->image[6],
                   in->image[2] + in->operand[2].bytes};
}

/* Element d of `codes`, under byte d / 32 of `words` where there are some. */
static double element(const shape *s, naive_fault fault, const uint8_t *codes, const uint8_t *words,
                      int64_t d)
{
    static const double e2m1[8] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

    if (!s->fp4) {
        return (double)numfmt_e4m3_decode(codes[d]);
    }
    const int64_t at = fault == NAIVE_UP_GATES && codes >= s->k && codes < s->k_end ? d ^ 1 : d;
    const int nibble = at % 2 == 0 ? codes[at / 2] & 15 : codes[at / 2] / 16;
    const int64_t group = fault == NAIVE_SWAPPED_SCALE ? s->dims / 32 - 1 - d / 32 : d / 32;
    const double x = nibble < 8 ? e2m1[nibble] : -e2m1[nibble - 8];
    return words[group] == 0xff ? (double)NAN : ldexp(x, words[group] - 127);
}

/* Codes and scale of key j of a row; false: its page is none. */
static bool find(const shape *s, naive_fault fault, int64_t row, int64_t j, const uint8_t **codes,
                 const uint8_t **scale)
{
    const int64_t bytes = s->fp4 ? s->dims / 2 : s->dims;
    const int64_t other = fault == NAIVE_ROW_SCALE_SHIFT && j + 1 < s->keys ? j + 1 : j;

    if (s->page == 0) {
        *codes = s->k + j * bytes;
        *scale = s->k_scale + 4 * other;
        return true;
    }
    int64_t page = i32_at(s->table, row / s->next_n * s->table_stride + j / s->page);
    if (page == -1 && fault == NAIVE_SLOT_MINUS) {
        page = 0;
    }
    if (page < 0 || page >= s->pages) {
        return false;
    }
    page = fault == NAIVE_PAGE_OFF ? (page + 1) % s->pages : page;
    const uint8_t *at = s->k + page * s->page_stride;
    const int64_t t = j % s->page;
    *codes = at + (fault == NAIVE_OTHER_LAYOUT ? t * (bytes + 4) : t * bytes);
    *scale = at + (fault == NAIVE_OTHER_LAYOUT ? t * (bytes + 4) + bytes
                                               : s->page * bytes + 4 * (other % s->page));
    return true;
}

/* NAIVE_NEAREST forgets the maximum, NAIVE_FLOOR takes it of what has its weight. */
static double score(const shape *s, naive_fault fault, int64_t row, int64_t j)
{
    const int64_t bytes = s->fp4 ? s->dims / 2 : s->dims;
    const int64_t weights = fault == NAIVE_NEXT_WEIGHTS ? (row + 1) % s->rows : row;
    const uint8_t *codes = NULL, *scale = NULL;
    double sum = 0;

    if (!find(s, fault, row, j, &codes, &scale)) {
        return -INFINITY;
    }
    for (int64_t h = 0; h < s->heads; h++) {
        const int64_t at = row * s->heads + h;
        double dot = 0;
        for (int64_t d = 0; d < s->dims - (fault == NAIVE_SHORT ? 1 : 0); d++) {
            dot += element(s, fault, s->q + at * bytes, s->q_scale + 4 * at, d) *
                   element(s, fault, codes, scale, d);
        }
        const double w = (double)f32_at(s->weights, weights * s->heads + h);
        sum += fault == NAIVE_NEAREST ? w * dot
               : fault == NAIVE_FLOOR ? fmax(w * dot, 0)
                                      : w * fmax(dot, 0);
    }
    return s->fp4 ? sum : sum * (double)f32_at(scale, 0);
}

/* A row's first key and how many there are. NAIVE_NO_CLAMP: what is below 0 is a large number.
 * NAIVE_HALF: the own position too. */
static int64_t keys_of(const shape *s, naive_fault fault, int64_t row, int64_t *first)
{
    int64_t start = s->start != NULL ? i32_at(s->start, row) : 0, end = i32_at(s->end, row);

    start = start < 0 ? 0 : start > s->keys ? s->keys : start;
    end = end < 0 && fault == NAIVE_NO_CLAMP ? s->keys : end;
    end += fault == NAIVE_HALF;
    end = end > s->keys ? s->keys : end;
    *first = start;
    if (fault == NAIVE_K_TAIL && end > start) {
        end--;
    }
    if (fault == NAIVE_FIRST_ROW && end > start) {
        *first = start + 1;
    }
    return end > *first ? end - *first : 0;
}

static void store(const shape *s, int64_t row, int64_t column, double x)
{
    numfmt_encode((hone_dtype)s->out, s->logits, (uint64_t)(row * s->stride + column), (float)x);
}

/* NAIVE_NO_FILL: nothing is cleaned. NAIVE_EVERY_ROW: tiles of 64 columns are stored whole.
 * NAIVE_INFINITY_FITS: cleaned cells hold the least number. */
static void row_of(const shape *s, naive_fault fault, int64_t row)
{
    const bool all = fault == NAIVE_EVERY_ROW && !s->clean;
    int64_t first = 0;
    const int64_t keys = keys_of(s, fault, row, &first);
    const int64_t begun = s->start != NULL ? i32_at(s->start, row) : 0;
    const int64_t shift = s->compressed ? (begun < 0 ? 0 : begun) : 0;

    for (int64_t c = 0; c < s->width; c++) {
        const int64_t j = c + shift;
        const int64_t up = all ? (first + keys + 63) / 64 * 64 : first + keys;
        const int64_t low = all ? first / 64 * 64 : first;
        const bool live = keys > 0 && j >= low && j < up && j < s->keys;
        if (live && !(fault == NAIVE_TAIL_COLUMN && c == s->width - 1)) {
            double x = score(s, fault, row, j);
            x = fault == NAIVE_ZEROS ? 0 : x;
            x = fault == NAIVE_NAN && row == s->rows / 2 && j == first + keys / 2 ? NAN : x;
            store(s, row, c, x);
        } else if (!live && s->clean && fault != NAIVE_NO_FILL) {
            store(s, row, c, fault == NAIVE_INFINITY_FITS ? -3e38 : -INFINITY);
        }
    }
    if (fault == NAIVE_SPILL) {
        store(s, row, s->stride - 1, 0);
    }
}

void naive_mqa(const hone_problem *problem, const inputs *in, naive_fault fault,
               const naive_tile *tile, inputs *out)
{
    const shape s = shape_of(problem, in, out);
    const int64_t last = s.rows - (fault == NAIVE_TAIL_ROW);

    for (int64_t row = tile != NULL ? tile->row0 : 0;
         row < last && (tile == NULL || row < tile->row1); row++) {
        row_of(&s, fault, row);
    }
}
