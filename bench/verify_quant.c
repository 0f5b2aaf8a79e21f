/* verify_quant.c - quantised activations and weights, byte for byte: both are blocks of elements
 * that share a scale. Gated activations: verify_gated.c.
 *
 * One freedom (cases.md, facts; kernels.md 5.1): a raw fp32 scale may differ by one unit in the
 * last place, and only then may a code of its block differ by one. */
#include "bench/verify_quant_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool verify_rule_is_raw(int32_t rule)
{
    return rule == HONE_RULE_RAW_AMAX || rule == HONE_RULE_RAW_TINY;
}

int verify_scale_agrees(float got, float expected, bool raw)
{
    int32_t a = 0, b = 0;

    memcpy(&a, &got, sizeof a);
    memcpy(&b, &expected, sizeof b);
    if (a == b) {
        return 1;
    }
    return raw && b > 0 && (a == b + 1 || a == b - 1) ? 0 : -1;
}

bool verify_code_agrees(uint8_t got, uint8_t expected, int scale)
{
    int difference = (int)(got & 0x7f) - (int)(expected & 0x7f);

    return got == expected || (scale == 0 && (got & 0x80) == (expected & 0x80) &&
                               (difference == 1 || difference == -1));
}

/* ---- Where codes and scales lie. ------------------------------------------------------------ */

/* The shape of scales follows from the shape of q. */
static quant_view shaped(const verify_request *r, quant_view v)
{
    bool packed = v.layout == HONE_SCALES_PACKED, padded = packed || v.layout == HONE_SCALES_TMA;

    v.request = r;
    v.q = r->after[1];
    v.scales = r->after[2];
    v.scale_rows = integer_ceil_div(v.rows, v.block_rows);
    v.groups = integer_ceil_div(v.k, v.block_k);
    v.rows_padded = padded ? integer_ceil_div(v.scale_rows, 4) * 4 : v.scale_rows;
    v.groups_padded = packed ? integer_ceil_div(v.groups, 4) * 4 : v.groups;
    v.scale_bytes = (uint64_t)numfmt_dtype_bits(v.scale) / 8;
    return v;
}

static quant_view view_of(const verify_request *r)
{
    const hone_act_quant *act = &r->problem->as.act_quant;
    const hone_weight_quant *weight = &r->problem->as.weight_quant;
    quant_view v = {0};

    if (r->problem->op == HONE_OP_WEIGHT_QUANT) {
        v = (quant_view){.matrices = 1,
                         .rows = weight->n,
                         .k = weight->k,
                         .block_rows = weight->gran_n,
                         .block_k = weight->gran_k,
                         .scale = (hone_dtype)weight->scale,
                         .layout = (hone_scale_layout)weight->scale_layout,
                         .rule = weight->rule,
                         .special = 3};
    } else {
        /* after rows, and after dropped */
        const int before = act->row_set == HONE_ROWS_EVERY      ? 0
                           : act->row_set == HONE_ROWS_GATHERED ? 2
                                                                : 1;
        v = (quant_view){.matrices = act->experts,
                         .rows = act->m,
                         .k = act->k,
                         .block_rows = 1,
                         .block_k = act->group,
                         .scale = (hone_dtype)act->scale,
                         .layout = (hone_scale_layout)act->scale_layout,
                         .rule = act->rule,
                         .special = act->count ? 3 + before : 0};
    }
    return shaped(r, v);
}

/* Of padding scales too. */
static uint64_t scale_offset(const quant_view *v, const quant_block *b)
{
    return (uint64_t)b->matrix * (uint64_t)v->rows_padded * (uint64_t)v->groups_padded *
               v->scale_bytes +
           problem_scale_offset(v->rows_padded, v->groups_padded, v->scale, v->layout, b->row,
                                b->group);
}

float quant_scale_got(const quant_view *v, const quant_block *b)
{
    return numfmt_decode(v->scale, v->scales + scale_offset(v, b), 0);
}

quant_rect quant_rect_of(const quant_view *v, const quant_block *b)
{
    int64_t row = b->row * v->block_rows, column = b->group * v->block_k;
    int64_t rows = v->rows - row, columns = v->k - column;

    return (quant_rect){row, rows < v->block_rows ? rows : v->block_rows, column,
                        columns < v->block_k ? columns : v->block_k};
}

const uint8_t *quant_codes_got(const quant_view *v, const quant_block *b, int64_t row)
{
    const quant_rect rect = quant_rect_of(v, b);

    return v->q + (b->matrix * v->rows + rect.row + row) * v->k + rect.column;
}

/* ---- What was written. ---------------------------------------------------------------------- */

static bool scale_written(const void *context, int64_t batch, int64_t row, int64_t group,
                          int64_t groups)
{
    const quant_view *v = context;

    for (int64_t i = group; i < group + groups; i++) {
        uint64_t at = scale_offset(v, &(quant_block){batch, row, i});
        if (memcmp(v->scales + at, v->request->before->image[2] + at, v->scale_bytes) != 0) {
            return true;
        }
    }
    return false;
}

static bool is_padding(const quant_view *v, const quant_block *b)
{
    return b->row >= v->scale_rows || b->group >= v->groups;
}

/* Rows of the block that differ from what was there before. */
static int64_t rows_written(const quant_view *v, const quant_block *b)
{
    const quant_rect rect = quant_rect_of(v, b);
    int64_t written = 0;

    for (int64_t r = 0; r < rect.rows; r++) {
        const uint8_t *got = quant_codes_got(v, b, r);
        const uint8_t *before = v->request->before->image[1] + (got - v->q);
        written += memcmp(got, before, (size_t)rect.columns) != 0;
    }
    return written;
}

/* Whether act_quant's set has the row; padding belongs to every set. */
static bool row_is_there(const quant_view *v, const quant_block *b)
{
    const hone_act_quant *p = &v->request->problem->as.act_quant;
    const uint8_t *rows = v->request->before->image[3];
    int32_t value = 0;

    if (v->request->problem->op != HONE_OP_ACT_QUANT || p->row_set == HONE_ROWS_EVERY ||
        b->row >= v->scale_rows) {
        return true;
    }
    const bool masked = p->row_set == HONE_ROWS_MASKED;
    const int64_t row = b->matrix * v->rows + b->row;
    memcpy(&value, rows + 4 * (masked ? b->matrix : row), sizeof value);
    if (p->row_set == HONE_ROWS_GATHERED) {
        return value >= 0 && value < p->tokens * p->topk;
    }
    return masked ? b->row < value : value >= 0;
}

/* ---- Comparison. ---------------------------------------------------------------------------- */

static void compare_codes(const quant_view *v, const quant_block *b, const uint8_t *expected,
                          int agrees, verify_result *out)
{
    const quant_rect rect = quant_rect_of(v, b);

    for (int64_t r = 0; r < rect.rows; r++) {
        const uint8_t *got = quant_codes_got(v, b, r);
        for (int64_t c = 0; c < rect.columns && out->passed; c++) {
            uint8_t want = expected[r * rect.columns + c];
            if (!verify_code_agrees(got[c], want, agrees)) {
                verify_fail(out, "q[%" PRId64 ",%" PRId64 "]%s: got 0x%02x, expected 0x%02x",
                            b->matrix * v->rows + rect.row + r, rect.column + c,
                            got[c] == VERIFY_POISON ? " was left untouched" : "", got[c], want);
            }
        }
    }
}

static void compare_block(const quant_view *v, const quant_block *b, verify_result *out)
{
    const quant_rect rect = quant_rect_of(v, b);
    uint8_t expected[REFERENCE_TILE * REFERENCE_TILE], code = 0;
    float scale = 0.0f, got = quant_scale_got(v, b);
    int agrees = 0;

    if (v->request->problem->op == HONE_OP_WEIGHT_QUANT) {
        reference_weight_quant(&v->request->problem->as.weight_quant, v->request->before, b->row,
                               b->group, expected, &scale, &code);
    } else {
        reference_act_quant(&v->request->problem->as.act_quant, v->request->before,
                            b->matrix * v->rows + b->row, b->group, expected, &scale, &code);
    }
    if (v->scale == HONE_DTYPE_UE8M0) {
        agrees = v->scales[scale_offset(v, b)] == code ? 1 : -1;
    } else {
        agrees = verify_scale_agrees(got, scale, verify_rule_is_raw(v->rule));
    }
    out->compared += (uint64_t)(rect.rows * rect.columns);
    if (agrees < 0) {
        verify_fail(out, "scale[%" PRId64 ",%" PRId64 "]: got %.9g, expected %.9g", b->row,
                    b->group, (double)got, (double)scale);
    }
    compare_codes(v, b, expected, agrees, out);
}

/* Scales that pad a layout are 1.0, so that a reader of whole words meets no NaN (cases.md 2). */
static void compare_padding(const quant_view *v, const quant_block *b, verify_result *out)
{
    float got = quant_scale_got(v, b);

    if (!(got == 1.0f)) {
        verify_fail(out, "padding scale [%" PRId64 ",%" PRId64 "]: got %.9g, expected 1", b->row,
                    b->group, (double)got);
    }
}

static void compare(const quant_view *v, const quant_block *b, verify_result *out)
{
    const hone_problem *problem = v->request->problem;

    if (is_padding(v, b)) {
        compare_padding(v, b, out);
    } else if (problem->op == HONE_OP_ACT_QUANT &&
               problem->as.act_quant.activation != HONE_ACTIVATION_PLAIN) {
        verify_gated(v, b, out);
    } else {
        compare_block(v, b, out);
    }
}

/* A block of a row that the set leaves out. */
static void compare_absent(const quant_view *v, const quant_block *b, verify_result *out)
{
    if ((!is_padding(v, b) && rows_written(v, b) > 0) ||
        scale_written(v, b->matrix, b->row, b->group, 1)) {
        verify_fail(out,
                    "row %" PRId64 " of expert %" PRId64
                    " is not in the set of rows, and its group %" PRId64 " was written",
                    b->row, b->matrix, b->group);
    }
}

/* One block of a launch of which only some CTAs ran: written in q and in the scales, or in neither.
 * True when it was compared. */
static bool compare_sampled(const quant_view *v, const quant_block *b, verify_result *out)
{
    bool scale = scale_written(v, b->matrix, b->row, b->group, 1);
    int64_t rows = is_padding(v, b) ? 0 : rows_written(v, b);
    int64_t whole = is_padding(v, b) || !scale ? 0 : quant_rect_of(v, b).rows;

    if (rows != whole) {
        verify_fail(out,
                    "row %" PRId64 ", group %" PRId64 ": %s was written and its %s left untouched",
                    b->row, b->group, scale ? "the scale" : "q", scale ? "q" : "scale");
    } else if (scale) {
        compare(v, b, out);
    }
    return scale && !is_padding(v, b);
}

/* What sampled CTAs own is what they wrote of the scales: whole tiles, as many as CTAs ran. */
static hone_status check_tiles(const quant_view *v, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = v->request;
    reference_rect whole = {0, 0, v->rows_padded, 0, v->groups_padded};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, v->matrices, scale_written, v, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, v->matrices, r->ctas_run, r->ctas_total)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64
                    " CTAs ran, and what they wrote of the scales is not as many tiles: some were "
                    "left untouched or written by the wrong CTA",
                    r->ctas_run, r->ctas_total);
    }
done:
    verify_cover_free(&cover);
    return status;
}

/* Rows whose entries no token has, and the counter that says how many. */
static void check_dropped(const quant_view *v, verify_result *out)
{
    const hone_act_quant *p = &v->request->problem->as.act_quant;
    uint64_t before = 0, got = 0, dropped = 0;

    if (v->request->problem->op != HONE_OP_ACT_QUANT || p->row_set != HONE_ROWS_GATHERED ||
        !out->passed) {
        return;
    }
    for (int64_t i = 0; i < p->experts * p->m; i++) {
        int32_t entry = 0;
        memcpy(&entry, v->request->before->image[3] + 4 * i, sizeof entry);
        dropped += entry >= p->tokens * p->topk;
    }
    memcpy(&before, v->request->before->image[4], sizeof before);
    memcpy(&got, v->request->after[4], sizeof got);
    if (got != before + dropped) {
        verify_fail(out,
                    "dropped: %" PRIu64 " before, %" PRIu64 " after; %" PRIu64
                    " rows have entries that no token has",
                    before, got, dropped);
    }
}

/* Elements of the compared blocks that became NaN, and the counter that says how many. */
static void check_counter(const quant_view *v, uint64_t specials, verify_result *out)
{
    uint64_t before = 0, got = 0;

    if (v->special == 0) {
        return;
    }
    memcpy(&before, v->request->before->image[v->special], sizeof before);
    memcpy(&got, v->request->after[v->special], sizeof got);
    if (got != before + specials) {
        verify_fail(out,
                    "special: %" PRIu64 " before, %" PRIu64 " after; %" PRIu64
                    " elements are NaN or infinite",
                    before, got, specials);
    }
}

/* Of a block that was compared: then NaN stands just where the reference has it. */
static uint64_t specials_of(const quant_view *v, const quant_block *b)
{
    const quant_rect rect = quant_rect_of(v, b);
    uint64_t count = 0;

    for (int64_t r = 0; r < rect.rows; r++) {
        const uint8_t *got = quant_codes_got(v, b, r);
        for (int64_t c = 0; c < rect.columns; c++) {
            count += (got[c] & 0x7f) == 0x7f;
        }
    }
    return count;
}

hone_status verify_quant(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const quant_view v = view_of(r);
    bool sampled = r->ctas_run < r->ctas_total;
    int64_t rows = v.matrices * v.rows_padded;
    uint64_t specials = 0;

    if (v.block_k > REFERENCE_TILE || v.block_rows > REFERENCE_TILE) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: blocks of %lldx%lld",
                          (long long)v.block_rows, (long long)v.block_k);
    }
    if (sampled) {
        TRY(check_tiles(&v, out, error));
    }
    for (int64_t i = 0; i < rows * v.groups_padded && out->passed; i++) {
        int64_t row = i / v.groups_padded;
        const quant_block b = {row / v.rows_padded, row % v.rows_padded, i % v.groups_padded};
        bool compared = !is_padding(&v, &b);
        if (!row_is_there(&v, &b)) {
            compare_absent(&v, &b, out);
            compared = false;
        } else if (sampled) {
            compared = compare_sampled(&v, &b, out);
        } else {
            compare(&v, &b, out);
        }
        specials += compared ? specials_of(&v, &b) : 0;
    }
    check_counter(&v, specials, out);
    check_dropped(&v, out);
done:
    return status;
}
