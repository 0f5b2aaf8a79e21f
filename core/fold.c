/* fold.c - scales of small groups as one scale for a block of them: exponents of codes are shifted,
 * nothing else is rounded, and what that cost is reported. */
#include "core/problem.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>

enum { MOST_K = 128, WIDE_SHIFT = 3, SHIFTS = 20 }; /* by 20 binades and more 448 becomes zero */

/* A request, what is known of it so far, and tables that spare a conversion for each element. */
typedef struct fold_run {
    const hone_fold_request *r;
    int64_t from_rows, from_groups, to_rows, to_groups;
    hone_fold_report report;
    double error, norm, channels; /* squares: of all, of all, of columns' quotients */
    uint64_t used_channels;       /* that are not all zero */
    double column_error[MOST_K], column_norm[MOST_K];
    double value[256];
    uint8_t shifted[SHIFTS][256];
} fold_run;

/* A code of its value times 2^-shift, to nearest even. */
static uint8_t shift_code(uint8_t code, int shift)
{
    const int exponent = code >> 3 & 15, step = exponent > 0 ? exponent - 1 : 0;
    const int significand = exponent > 0 ? 8 | (code & 7) : code & 7, drop = shift - step;

    if ((code & 0x7f) == 0x7f || shift == 0) {
        return code;
    }
    if (exponent > shift) {
        return (uint8_t)(code - 8 * shift);
    }
    if (drop > 4) { /* below half of the smallest code */
        return code & 0x80;
    }
    const int kept = significand >> drop, rest = significand & ((1 << drop) - 1);
    const int half = drop > 0 ? 1 << (drop - 1) : 1;
    return (uint8_t)((code & 0x80) | (kept + (rest > half || (rest == half && (kept & 1) != 0))));
}

static void fill_tables(fold_run *f)
{
    for (int code = 0; code < 256; code++) {
        f->value[code] = (double)numfmt_e4m3_decode((uint8_t)code);
        for (int shift = 0; shift < SHIFTS; shift++) {
            f->shifted[shift][code] = shift_code((uint8_t)code, shift);
        }
    }
}

/* A scale of `from` as its ue8m0 code; false when it has none. */
static bool scale_code(const fold_run *f, int64_t row, int64_t group, uint8_t *code)
{
    const hone_fold_request *r = f->r;
    const uint64_t at =
        problem_scale_offset(f->from_rows, f->from_groups, (hone_dtype)r->from.scale,
                             (hone_scale_layout)r->from_layout, row, group);
    const uint8_t *scale = (const uint8_t *)r->scales + at;
    float value;

    if (r->from.scale == HONE_DTYPE_UE8M0) {
        *code = *scale;
        return *code != 0xff;
    }
    memcpy(&value, scale, sizeof value);
    return numfmt_ue8m0_exact(value, code);
}

static hone_status refuse_scale(const fold_run *f, int64_t row, int64_t group, hone_error *error)
{
    const uint64_t at =
        problem_scale_offset(f->from_rows, f->from_groups, (hone_dtype)f->r->from.scale,
                             (hone_scale_layout)f->r->from_layout, row, group);
    float value;

    if (f->r->from.scale == HONE_DTYPE_UE8M0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: scale [%" PRId64 ", %" PRId64 "] is 0xff, ue8m0's NaN; was it "
                          "written at all?",
                          row, group);
    }
    memcpy(&value, (const uint8_t *)f->r->scales + at, sizeof value);
    return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                      "fold: scale [%" PRId64 ", %" PRId64
                      "] = %.9g is no power of two from 2^-127 "
                      "to 2^127; only such scales can be folded, others take the exact recipe",
                      row, group, (double)value);
}

static hone_status check_scales(const fold_run *f, hone_error *error)
{
    uint8_t code;

    for (int64_t row = 0; row < f->from_rows && f->from_groups > 0; row++) {
        for (int64_t group = 0; group < f->from_groups; group++) {
            if (!scale_code(f, row, group, &code)) {
                return refuse_scale(f, row, group, error);
            }
        }
    }
    return HONE_OK;
}

static bool layout_fits(const hone_quant *q, int32_t layout)
{
    return layout == HONE_SCALES_ROW || layout == HONE_SCALES_COL ||
           (layout == HONE_SCALES_TMA && q->scale == HONE_DTYPE_F32) ||
           (layout == HONE_SCALES_PACKED && q->scale == HONE_DTYPE_UE8M0);
}

static hone_status check_quant(const char *which, const hone_quant *q, int32_t layout,
                               hone_error *error)
{
    if (q->element != HONE_DTYPE_E4M3 ||
        (q->scale != HONE_DTYPE_F32 && q->scale != HONE_DTYPE_UE8M0)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: %s: e4m3 codes with f32 or ue8m0 scales are folded", which);
    }
    if ((q->gran_mn != 1 && q->gran_mn != 32 && q->gran_mn != 128) ||
        (q->gran_k != 32 && q->gran_k != 128)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: %s: a scale covers %dx%d; 1, 32 or 128 rows by 32 or 128 of k can "
                          "be folded",
                          which, q->gran_mn, q->gran_k);
    }
    if (!layout_fits(q, layout)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: %s: layout %d; f32 scales lie in row, col or tma, ue8m0 ones in "
                          "row, col or packed",
                          which, layout);
    }
    return HONE_OK;
}

static hone_status check_request(const hone_fold_request *r, const hone_fold_report *report,
                                 hone_error *error)
{
    hone_status status = HONE_OK;

    if (r == NULL || r->size != sizeof *r || report == NULL || report->size != sizeof *report) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: the request begins with size = %zu, the report with size = %zu",
                          sizeof *r, sizeof *report);
    }
    TRY(check_quant("from", &r->from, r->from_layout, error));
    TRY(check_quant("to", &r->to, r->to_layout, error));
    if (r->to.gran_mn < r->from.gran_mn || r->to.gran_k < r->from.gran_k) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: scales of %dx%d do not lie in blocks of %dx%d", r->from.gran_mn,
                          r->from.gran_k, r->to.gran_mn, r->to.gran_k);
    }
    if (r->rows < 0 || r->k < 0 || (r->k > 0 && r->rows > INT64_MAX / r->k)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "fold: a matrix of %" PRId64 " x %" PRId64, r->rows, r->k);
    }
    if (r->rows > 0 && r->k > 0 &&
        (r->codes == NULL || r->scales == NULL || r->out == NULL || r->out_scales == NULL)) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "fold: a buffer is NULL");
    }
done:
    return status;
}

/* Padding of a layout is 1.0, as quantisers write it. */
static hone_status fill_out_scales(const fold_run *f, bool write, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_fold_request *r = f->r;
    const float one = 1.0f;
    uint64_t bytes = 0;

    TRY(problem_scale_bytes(f->to_rows, f->to_groups, (hone_dtype)r->to.scale,
                            (hone_scale_layout)r->to_layout, &bytes, error));
    if (r->out_scales_bytes < bytes) {
        return status_set(error, HONE_LIMIT, NULL, 0, "fold: the scales need %" PRIu64 " bytes",
                          bytes);
    }
    for (uint64_t at = 0; write && at < bytes; at += r->to.scale == HONE_DTYPE_F32 ? 4 : 1) {
        if (r->to.scale == HONE_DTYPE_F32) {
            memcpy((uint8_t *)r->out_scales + at, &one, sizeof one);
        } else {
            ((uint8_t *)r->out_scales)[at] = 0x7f;
        }
    }
done:
    return status;
}

/* A block of `to`: rows and k that it covers, and the scales of `from` in it. */
typedef struct fold_block {
    int64_t row, row_end, k, k_end;
    uint8_t scale; /* the largest code */
} fold_block;

static fold_block block_at(const fold_run *f, int64_t row, int64_t group)
{
    const hone_fold_request *r = f->r;
    fold_block b = {.row = row * r->to.gran_mn, .k = group * r->to.gran_k};

    b.row_end = b.row + r->to.gran_mn < r->rows ? b.row + r->to.gran_mn : r->rows;
    b.k_end = b.k + r->to.gran_k < r->k ? b.k + r->to.gran_k : r->k;
    for (int64_t i = b.row / r->from.gran_mn; i * r->from.gran_mn < b.row_end; i++) {
        for (int64_t g = b.k / r->from.gran_k; g * r->from.gran_k < b.k_end; g++) {
            uint8_t code = 0;
            scale_code(f, i, g, &code);
            b.scale = code > b.scale ? code : b.scale;
        }
    }
    return b;
}

static void put_scale(const fold_run *f, int64_t row, int64_t group, uint8_t code)
{
    const hone_fold_request *r = f->r;
    uint8_t *to = (uint8_t *)r->out_scales +
                  problem_scale_offset(f->to_rows, f->to_groups, (hone_dtype)r->to.scale,
                                       (hone_scale_layout)r->to_layout, row, group);
    const float value = numfmt_ue8m0_decode(code);

    if (r->to.scale == HONE_DTYPE_UE8M0) {
        *to = code;
    } else {
        memcpy(to, &value, sizeof value);
    }
}

/* What one element became. `unit` is the block's scale, `shift` 2^-shift of it the group's. */
static void count_element(fold_run *f, int64_t column, double before, double after, double unit)
{
    const double norm = before * before * unit * unit, off = fabs(after - before);

    if (isnan(before)) {
        f->report.nans++;
        return;
    }
    f->norm += norm;
    f->column_norm[column] += norm;
    if (off > 0.0) {
        f->report.inexact++;
        f->report.largest = off > f->report.largest ? off : f->report.largest;
        f->error += off * off * unit * unit;
        f->column_error[column] += off * off * unit * unit;
    }
}

/* The part of a row that shares a scale of `from`. */
static void fold_part(fold_run *f, const fold_block *b, int64_t row, int64_t k, int64_t k_end)
{
    const hone_fold_request *r = f->r;
    const double unit = ldexp(1.0, b->scale - 127);
    uint8_t code = 0;

    scale_code(f, row / r->from.gran_mn, k / r->from.gran_k, &code);
    const int shift = b->scale - code;
    const uint8_t *table = f->shifted[shift < SHIFTS ? shift : SHIFTS - 1];
    const double down = ldexp(1.0, -shift);
    for (int64_t i = k; i < k_end; i++) {
        const uint8_t old = r->codes[row * r->k + i], new = table[old];
        count_element(f, i - b->k, f->value[old] * down, f->value[new], unit);
        r->out[row * r->k + i] = new;
    }
    if (row % r->from.gran_mn == 0) {
        f->report.groups++;
        f->report.wide_groups += shift > WIDE_SHIFT;
        f->report.spread = shift > f->report.spread ? shift : f->report.spread;
    }
}

static void fold_block_of(fold_run *f, const fold_block *b)
{
    const uint64_t inexact = f->report.inexact;

    for (int64_t row = b->row; row < b->row_end; row++) {
        for (int64_t k = b->k; k < b->k_end; k += f->r->from.gran_k) {
            const int64_t end = k + f->r->from.gran_k;
            fold_part(f, b, row, k, end < b->k_end ? end : b->k_end);
        }
    }
    f->report.blocks++;
    f->report.inexact_blocks += f->report.inexact > inexact;
}

/* Columns outermost, so that their sums need no memory that grows with k. */
static void fold_columns(fold_run *f, int64_t group)
{
    memset(f->column_error, 0, sizeof f->column_error);
    memset(f->column_norm, 0, sizeof f->column_norm);
    for (int64_t row = 0; row < f->to_rows; row++) {
        const fold_block b = block_at(f, row, group);
        fold_block_of(f, &b);
        put_scale(f, row, group, b.scale);
    }
    for (int i = 0; i < MOST_K; i++) {
        if (f->column_norm[i] > 0.0) {
            const double quotient = f->column_error[i] / f->column_norm[i];
            f->channels += quotient;
            f->used_channels++;
            f->report.worst_channel = fmax(f->report.worst_channel, sqrt(quotient));
        }
    }
}

hone_status hone_fold_scales(const hone_fold_request *r, hone_fold_report *report,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    fold_run f = {.r = r, .report = {.size = sizeof f.report}};

    TRY(check_request(r, report, error));
    f.from_rows = integer_ceil_div(r->rows, r->from.gran_mn);
    f.from_groups = integer_ceil_div(r->k, r->from.gran_k);
    f.to_rows = integer_ceil_div(r->rows, r->to.gran_mn);
    f.to_groups = integer_ceil_div(r->k, r->to.gran_k);
    TRY(fill_out_scales(&f, false, error));
    TRY(check_scales(&f, error));
    TRY(fill_out_scales(&f, true, error));
    fill_tables(&f);
    for (int64_t group = 0; r->rows > 0 && group < f.to_groups; group++) {
        fold_columns(&f, group);
    }
    f.report.elements = (uint64_t)r->rows * (uint64_t)r->k;
    f.report.frobenius = f.norm > 0.0 ? sqrt(f.error / f.norm) : 0.0;
    f.report.channel = f.used_channels > 0 ? sqrt(f.channels / (double)f.used_channels) : 0.0;
    *report = f.report;
done:
    return status;
}
