/* verify_mqa.c - an indexer's logits: every score by its bound, -inf to the bit, and every cell
 * without a key as it was. */
#include "bench/verify_product.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 4096 }; /* keys of one call of the reference */

typedef struct logits {
    const hone_problem *problem;
    const verify_request *request;
    verify_product d;
    int64_t rows, width, stride;
    bool compressed, clean;
    double *value; /* CHUNK, and as many magnitudes */
} logits;

/* Of a row: columns [from, to) have the keys from `first` on. */
typedef struct live {
    int64_t first, from, to;
} live;

void verify_mqa_size(const hone_problem *problem, int64_t *rows, int64_t *columns)
{
    const hone_mqa_logits *p = &problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &problem->as.mqa_logits_paged;

    if (problem->op == HONE_OP_MQA_LOGITS_PAGED) {
        *rows = d->batch * d->next_n;
        *columns = d->width;
    } else {
        *rows = p->tokens;
        *columns = p->keys > p->width ? p->keys : p->width;
    }
}

static logits logits_of(const verify_request *r)
{
    const hone_mqa_logits *p = &r->problem->as.mqa_logits;
    const hone_mqa_logits_paged *d = &r->problem->as.mqa_logits_paged;
    const bool paged = r->problem->op == HONE_OP_MQA_LOGITS_PAGED;

    return (logits){.problem = r->problem,
                    .request = r,
                    .d = verify_product_of(r, paged ? 6 : 7, paged ? d->out : p->out, false),
                    .rows = paged ? d->batch * d->next_n : p->tokens,
                    .width = paged ? d->width : p->width,
                    .stride = paged ? d->stride : p->stride,
                    .compressed = !paged && p->span == HONE_SPAN_COMPRESSED,
                    .clean = !paged && p->clean != 0};
}

static live live_of(const logits *l, int64_t row)
{
    live v = {0};
    int64_t keys = 0;

    reference_mqa_range(l->problem, l->request->before, row, &v.first, &keys);
    v.from = l->compressed ? 0 : v.first;
    v.to = v.from + keys;
    return v;
}

/* Cells [from, to) of a row must be as they were. */
static void compare_kept(const logits *l, int64_t row, int64_t from, int64_t to, verify_result *out)
{
    if (from >= to ||
        !verify_product_changed(&l->d, (uint64_t)(row * l->stride + from), to - from)) {
        return;
    }
    for (int64_t c = from; c < to; c++) {
        const uint64_t at = (uint64_t)(row * l->stride + c);
        if (verify_product_changed(&l->d, at, 1)) {
            verify_fail(out, "logits[%" PRId64 ",%" PRId64 "] has no key, but became %.9g", row, c,
                        (double)numfmt_decode(l->d.out, l->d.after, at));
            return;
        }
    }
}

/* Cells [from, to) must be -inf. */
static void compare_cleaned(const logits *l, int64_t row, int64_t from, int64_t to,
                            verify_result *out)
{
    for (int64_t c = from; c < to && out->passed; c++) {
        const uint64_t at = (uint64_t)(row * l->stride + c);
        const double got = (double)numfmt_decode(l->d.out, l->d.after, at);
        out->compared++;
        if (!(isinf(got) && got < 0)) {
            verify_fail(out, "logits[%" PRId64 ",%" PRId64 "] %s %.9g, expected -inf", row, c,
                        verify_product_changed(&l->d, at, 1) ? "is" : "was left untouched, is",
                        got);
        }
    }
}

/* Live cells of columns [from, to). */
static hone_status compare_live(logits *l, int64_t row, const live *v, int64_t from, int64_t to,
                                verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    for (int64_t c = from; c < to && out->passed; c += CHUNK) {
        const int64_t len = to - c < CHUNK ? to - c : CHUNK;
        TRY(reference_mqa(l->problem, l->request->before, row, v->first + c - v->from, len,
                          l->value, l->value + CHUNK, error));
        for (int64_t i = 0; i < len && out->passed; i++) {
            const double magnitude = l->value[CHUNK + i];
            if (isinf(l->value[i])) { /* its page is none */
                compare_cleaned(l, row, c + i, c + i + 1, out);
            } else {
                verify_product_element(&l->d, (const int64_t[3]){0, row, c + i},
                                       (uint64_t)(row * l->stride + c + i), l->value[i], magnitude,
                                       l->d.unit * magnitude, out);
            }
        }
    }
done:
    return status;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A tile's columns of a row, by what they are: keys [from, to) lie in live columns, columns [from,
 * to) elsewhere are cleaned. */
typedef struct part {
    int64_t live_from, live_to, left_from, left_to, right_from, right_to;
} part;

static part part_of(const logits *l, const live *v, int64_t from, int64_t to)
{
    const int64_t shift = v->from - v->first; /* from keys to columns */
    part p = {.live_from = most(from + shift, v->from), .live_to = least(to + shift, v->to)};

    if (l->clean) {
        p.left_from = from;
        p.left_to = least(to, least(v->from, l->width));
        p.right_from = most(from, v->to);
        p.right_to = least(to, l->width);
    }
    return p;
}

static bool has_cells(const part *p)
{
    return p->live_from < p->live_to || p->left_from < p->left_to || p->right_from < p->right_to;
}

static bool changed(const logits *l, int64_t row, int64_t from, int64_t to)
{
    return from < to &&
           verify_product_changed(&l->d, (uint64_t)(row * l->stride + from), to - from);
}

static hone_status compare_part(logits *l, int64_t row, const live *v, const part *p,
                                verify_result *out, hone_error *error)
{
    compare_cleaned(l, row, p->left_from, p->left_to, out);
    compare_cleaned(l, row, p->right_from, p->right_to, out);
    return compare_live(l, row, v, p->live_from, p->live_to, out, error);
}

/* What nobody may write. */
static void compare_dead(const logits *l, int64_t row, const live *v, verify_result *out)
{
    if (!l->clean) {
        compare_kept(l, row, 0, v->from, out);
        compare_kept(l, row, v->to, l->width, out);
    }
    compare_kept(l, row, l->width, l->stride, out);
}

/* A tile that has been written to must be whole. *some: it has cells at all; *made: it was. */
static hone_status compare_tile(logits *l, int64_t row, int64_t rows, int64_t from, int64_t to,
                                bool *some, bool *made, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;

    *some = *made = false;
    for (int64_t r = row; r < row + rows; r++) {
        const live v = live_of(l, r);
        const part p = part_of(l, &v, from, to);
        *some = *some || has_cells(&p);
        *made = *made || changed(l, r, p.live_from, p.live_to) ||
                changed(l, r, p.left_from, p.left_to) || changed(l, r, p.right_from, p.right_to);
    }
    for (int64_t r = row; r < row + rows && *made && out->passed; r++) {
        const live v = live_of(l, r);
        const part p = part_of(l, &v, from, to);
        TRY(compare_part(l, r, &v, &p, out, error));
    }
done:
    return status;
}

/* Sampled CTAs make whole tiles, as many as ran but for those that have no cell. */
static hone_status compare_sample(logits *l, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = l->request;
    const plan_cover *cover = &r->cover;
    int64_t rows = 0, columns = 0;
    uint64_t written = 0, none = 0;

    if (cover->rows == 0) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0,
                          "verify: a template of logits says what a CTA covers");
    }
    verify_mqa_size(l->problem, &rows, &columns);
    for (int64_t row = 0; row < rows; row += cover->rows) {
        for (int64_t from = 0; from < columns && out->passed; from += cover->columns) {
            bool some = false, made = false;
            TRY(compare_tile(l, row, least(cover->rows, rows - row), from,
                             least(from + cover->columns, columns), &some, &made, out, error));
            written += made;
            none += !some;
        }
    }
    if (out->passed && (written > r->tiles_run || written + none < r->tiles_run)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64 " CTAs ran, and wrote %" PRIu64
                    " tiles of logits, not %" PRIu64,
                    r->ctas_run, r->ctas_total, written, r->tiles_run);
    }
done:
    return status;
}

hone_status verify_mqa(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    logits l = logits_of(r);

    l.value = malloc(2 * CHUNK * sizeof *l.value);
    if (l.value == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: a row of scores");
    }
    if (r->ctas_run < r->ctas_total) {
        TRY(compare_sample(&l, out, error));
    }
    for (int64_t row = 0; row < l.rows && out->passed; row++) {
        const live v = live_of(&l, row);
        const part whole = part_of(&l, &v, 0, INT64_MAX / 2);
        compare_dead(&l, row, &v, out);
        if (r->ctas_run == r->ctas_total) {
            TRY(compare_part(&l, row, &v, &whole, out, error));
        }
    }
    if (r->must_tell && l.d.telling == 0) {
        verify_fail(out, "the inputs leave nothing to compare: every score is 0");
    }
    verify_product_finish(&l.d, out);
done:
    free(l.value);
    return status;
}
