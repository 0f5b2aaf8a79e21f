/* reference_product.c - a rectangle of a product in float64, from the quantised operands.
 *
 * Every factor (code times scale) is exact in double. K goes in blocks that stay in cache; the sums
 * of 4 rows by 16 columns stay in registers. */
#include "bench/reference_product.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_K = 256, ROWS = 4, COLUMNS = 16, TILE = REFERENCE_TILE, PIECES_MOST = 4 };

typedef double lanes __attribute__((vector_size(64)));
enum { LANES = 8, VECTORS = COLUMNS / LANES };

/* Factors of one block of K, and the sums so far; columns past the rectangle are zeros. */
typedef struct work {
    double a[TILE][BLOCK_K];
    double b[TILE / COLUMNS][BLOCK_K][COLUMNS]; /* transposed, a few columns at a time */
    double value[TILE][TILE], magnitude[TILE][TILE];
    double e4m3[256], e2m1[16]; /* values of the codes */
} work;

static inline __attribute__((always_inline)) void multiply_piece(work *w, int64_t row,
                                                                 int64_t column, int64_t len)
{
    const double(*columns)[COLUMNS] = w->b[column / COLUMNS];
    lanes sum[ROWS][VECTORS], most[ROWS][VECTORS];

    for (int i = 0; i < ROWS; i++) {
        memcpy(sum[i], &w->value[row + i][column], sizeof sum[i]);
        memcpy(most[i], &w->magnitude[row + i][column], sizeof most[i]);
    }
    for (int64_t k = 0; k < len; k++) {
        for (int v = 0; v < VECTORS; v++) {
            lanes b;
            memcpy(&b, &columns[k][v * LANES], sizeof b);
            const lanes b_most = (lanes)((__typeof__(b < b))b & INT64_MAX);
            for (int i = 0; i < ROWS; i++) {
                const lanes a = w->a[row + i][k] - (lanes){0};
                const lanes a_most = (lanes)((__typeof__(a < a))a & INT64_MAX);
                sum[i][v] += a * b;
                most[i][v] += a_most * b_most;
            }
        }
    }
    for (int i = 0; i < ROWS; i++) {
        memcpy(&w->value[row + i][column], sum[i], sizeof sum[i]);
        memcpy(&w->magnitude[row + i][column], most[i], sizeof most[i]);
    }
}

/* Columns outside: their factors stay in the first cache while all rows go by. */
static inline __attribute__((always_inline)) void multiply(work *w, int64_t rows, int64_t columns,
                                                           int64_t len)
{
    for (int64_t c = 0; c < columns; c += COLUMNS) {
        for (int64_t r = 0; r < rows; r += ROWS) {
            multiply_piece(w, r, c, len);
        }
    }
}

static void multiply_baseline(work *w, int64_t rows, int64_t columns, int64_t len)
{
    multiply(w, rows, columns, len);
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq"))) static void
multiply_avx512(work *w, int64_t rows, int64_t columns, int64_t len)
{
    multiply(w, rows, columns, len);
}

__attribute__((target("avx2,fma"))) static void multiply_avx2(work *w, int64_t rows,
                                                              int64_t columns, int64_t len)
{
    multiply(w, rows, columns, len);
}
#endif

static void multiply_block(work *w, int64_t rows, int64_t columns, int64_t len)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq")) {
        multiply_avx512(w, rows, columns, len);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        multiply_avx2(w, rows, columns, len);
        return;
    }
#endif
    multiply_baseline(w, rows, columns, len);
}

static double scale_at(const reference_factor *f, int64_t row, int64_t k)
{
    uint64_t at =
        problem_scale_offset(f->scale_rows, f->scale_groups, (hone_dtype)f->quant.scale, f->layout,
                             row / f->quant.gran_mn, f->group_first + k / f->quant.gran_k);
    float scale = 0.0f;

    if (f->quant.scale == HONE_DTYPE_UE8M0) {
        return (double)numfmt_ue8m0_decode(f->scales[at]);
    }
    memcpy(&scale, f->scales + at, sizeof scale);
    return (double)scale;
}

/* code * scale for row `row`, k in [first, first + len), `step` doubles apart: a scale's group
 * after the other. */
static void open_row(const work *w, const reference_factor *f, int64_t row, int64_t first,
                     int64_t len, double *out, int64_t step)
{
    const uint8_t *codes = f->payload + row * f->row_stride;
    const int64_t end = first + len;

    for (int64_t k = first; k < end;) {
        const int64_t next = (k / f->quant.gran_k + 1) * f->quant.gran_k;
        const int64_t stop = next < end ? next : end;
        const double scale = scale_at(f, row, k);
        if (f->quant.element == HONE_DTYPE_E2M1) {
            for (; k < stop; k++, out += step) {
                *out = w->e2m1[codes[k / 2] >> (k % 2 * 4) & 15] * scale;
            }
        } else {
            for (; k < stop; k++, out += step) {
                *out = w->e4m3[codes[k]] * scale;
            }
        }
    }
}

/* Some columns of a rectangle, on a thread of their own. */
typedef struct piece {
    const reference_factor *a, *b;
    int64_t k;
    reference_rect rect;
    double *value, *magnitude; /* of its first element */
    int64_t stride;            /* doubles from row to row */
    hone_status status;
    hone_error error;
} piece;

static void sum_up(const piece *t, work *w)
{
    const reference_rect *rect = &t->rect;
    const size_t bytes = (size_t)rect->columns * sizeof(double);

    for (int64_t k = 0; k < t->k; k += BLOCK_K) {
        int64_t len = t->k - k < BLOCK_K ? t->k - k : BLOCK_K;
        for (int64_t r = 0; r < rect->rows; r++) {
            open_row(w, t->a, rect->row + r, k, len, w->a[r], 1);
        }
        for (int64_t c = 0; c < rect->columns; c++) {
            open_row(w, t->b, rect->column + c, k, len, &w->b[c / COLUMNS][0][c % COLUMNS],
                     COLUMNS);
        }
        multiply_block(w, rect->rows, rect->columns, len);
    }
    for (int64_t r = 0; r < rect->rows; r++) {
        memcpy(t->value + r * t->stride, w->value[r], bytes);
        memcpy(t->magnitude + r * t->stride, w->magnitude[r], bytes);
    }
}

static hone_status compute(const piece *t, hone_error *error)
{
    work *w = aligned_alloc(64, sizeof *w);

    if (w == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "reference: working tiles");
    }
    memset(w, 0, sizeof *w);
    for (int code = 0; code < 256; code++) {
        w->e4m3[code] = (double)numfmt_e4m3_decode((uint8_t)code);
        w->e2m1[code & 15] = (double)numfmt_e2m1_decode((uint8_t)(code & 15));
    }
    sum_up(t, w);
    free(w);
    return HONE_OK;
}

static void *compute_aside(void *argument)
{
    piece *t = argument;

    t->status = compute(t, &t->error);
    return NULL;
}

/* Columns go to threads in whole vectors. An element's sum is the same whoever makes it. */
static size_t cut(const piece *whole, int threads, piece *pieces)
{
    const reference_rect *rect = &whole->rect;
    const int64_t most = threads < 1 ? 1 : threads < PIECES_MOST ? threads : PIECES_MOST;
    const int64_t wide = integer_round_up(integer_ceil_div(rect->columns, most), COLUMNS);
    size_t len = 0;

    for (int64_t c = 0; c < rect->columns; c += wide) {
        piece *t = &pieces[len++];
        *t = *whole;
        t->rect.column += c;
        t->rect.columns = rect->columns - c < wide ? rect->columns - c : wide;
        t->value += c;
        t->magnitude += c;
    }
    return len;
}

static hone_status compute_pieces(piece *pieces, size_t len, hone_error *error)
{
    pthread_t others[PIECES_MOST];
    size_t started = 1;

    while (started < len &&
           pthread_create(&others[started], NULL, compute_aside, &pieces[started]) == 0) {
        started++;
    }
    for (size_t i = 0; i < len; i += i == 0 ? started : 1) { /* and those without a thread */
        compute_aside(&pieces[i]);
    }
    for (size_t i = 1; i < started; i++) {
        pthread_join(others[i], NULL);
    }
    for (size_t i = 0; i < len; i++) {
        if (pieces[i].status != HONE_OK) {
            return status_set(error, pieces[i].status, pieces[i].error.source, 0, "%s",
                              pieces[i].error.message);
        }
    }
    return HONE_OK;
}

hone_status reference_product(const reference_factor *a, const reference_factor *b, int64_t k,
                              const reference_rect *rect, int threads, double *value,
                              double *magnitude, hone_error *error)
{
    piece pieces[PIECES_MOST];
    const piece whole = {.a = a,
                         .b = b,
                         .k = k,
                         .rect = *rect,
                         .value = value,
                         .magnitude = magnitude,
                         .stride = rect->columns};

    if (rect->rows > TILE || rect->columns > TILE || rect->row < 0 || rect->column < 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "reference: a rectangle over %d",
                          TILE);
    }
    return compute_pieces(pieces, cut(&whole, threads, pieces), error);
}
