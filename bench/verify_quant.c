/* verify_quant.c - quantised outputs, byte for byte.
 *
 * One freedom (cases.md, facts; kernels.md 5.1): a raw fp32 scale may differ by one unit in the
 * last place, and only then may a code of its group differ by one. */
#include "bench/verify_parts.h"

#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MOST = 128 };

static bool rule_is_raw(int32_t rule)
{
    return rule == HONE_RULE_RAW_AMAX || rule == HONE_RULE_RAW_TINY;
}

/* A scale read back: 1 equal, 0 one unit off where that is allowed, -1 wrong. */
static int scale_agrees(float got, float expected, bool raw)
{
    int32_t a = 0, b = 0;

    memcpy(&a, &got, sizeof a);
    memcpy(&b, &expected, sizeof b);
    if (a == b) {
        return 1;
    }
    return raw && b > 0 && (a == b + 1 || a == b - 1) ? 0 : -1;
}

static bool code_agrees(uint8_t got, uint8_t expected, int scale)
{
    int difference = (int)(got & 0x7f) - (int)(expected & 0x7f);

    return got == expected || (scale == 0 && (got & 0x80) == (expected & 0x80) &&
                               (difference == 1 || difference == -1));
}

typedef struct act {
    const hone_act_quant *p;
    const verify_request *request;
    const uint8_t *q, *scales; /* after */
    int64_t groups;
} act;

static bool group_written(const void *context, int64_t batch, int64_t row, int64_t group,
                          int64_t groups)
{
    const act *a = context;
    int64_t at = row * a->p->k + group * a->p->group;

    (void)batch;
    return memcmp(a->q + at, a->request->before->image[1] + at, (size_t)(groups * a->p->group)) !=
           0;
}

static void compare_group(const act *a, int64_t row, int64_t group, verify_result *out)
{
    const hone_act_quant *p = a->p;
    const uint8_t *got = a->q + row * p->k + group * p->group;
    uint8_t expected[GROUP_MOST], code = 0;
    float scale = 0.0f, got_scale = 0.0f;
    int agrees = 0;
    uint64_t at = problem_scale_offset(p->m, a->groups, (hone_dtype)p->scale,
                                       (hone_scale_layout)p->scale_layout, row, group);

    reference_act_quant(p, a->request->before, row, group, expected, &scale, &code);
    if (p->scale == HONE_DTYPE_UE8M0) {
        agrees = a->scales[at] == code ? 1 : -1;
        got_scale = numfmt_ue8m0_decode(a->scales[at]);
    } else {
        memcpy(&got_scale, a->scales + at, sizeof got_scale);
        agrees = scale_agrees(got_scale, scale, rule_is_raw(p->rule));
    }
    out->compared += (uint64_t)p->group;
    if (agrees < 0) {
        verify_fail(out, "scale[%" PRId64 ",%" PRId64 "]: got %.9g, expected %.9g", row, group,
                    (double)got_scale, (double)scale);
    }
    for (int32_t i = 0; i < p->group && out->passed; i++) {
        if (!code_agrees(got[i], expected[i], agrees)) {
            verify_fail(out, "q[%" PRId64 ",%" PRId64 "]%s: got 0x%02x, expected 0x%02x", row,
                        group * p->group + i, got[i] == VERIFY_POISON ? " was left untouched" : "",
                        got[i], expected[i]);
        }
    }
}

static void compare_groups(const act *a, const reference_rect *rect, verify_result *out)
{
    for (int64_t row = rect->row; row < rect->row + rect->rows && out->passed; row++) {
        for (int64_t group = rect->column; group < rect->column + rect->columns && out->passed;
             group++) {
            compare_group(a, row, group, out);
        }
    }
}

/* Scales that pad a layout are 1.0, so that a reader of whole words meets no NaN (cases.md 2). */
static void compare_padding(const act *a, verify_result *out)
{
    const hone_act_quant *p = a->p;
    bool packed = p->scale_layout == HONE_SCALES_PACKED;
    int64_t rows = (p->m + 3) / 4 * 4, groups = packed ? (a->groups + 3) / 4 * 4 : a->groups;

    if (!packed && p->scale_layout != HONE_SCALES_TMA) {
        return;
    }
    for (int64_t row = 0; row < rows && out->passed; row++) {
        for (int64_t group = 0; group < groups; group++) {
            uint64_t at = problem_scale_offset(rows, groups, (hone_dtype)p->scale,
                                               (hone_scale_layout)p->scale_layout, row, group);
            float got = 0.0f;
            if (row < p->m && group < a->groups) {
                continue;
            }
            if (packed) {
                got = numfmt_ue8m0_decode(a->scales[at]);
            } else {
                memcpy(&got, a->scales + at, sizeof got);
            }
            if (!(got == 1.0f)) {
                verify_fail(out, "padding scale [%" PRId64 ",%" PRId64 "]: got %.9g, expected 1",
                            row, group, (double)got);
            }
        }
    }
}

hone_status verify_act_quant(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_act_quant *p = &r->problem->as.act_quant;
    act a = {p, r, r->after[1], r->after[2], p->k / p->group};
    reference_rect whole = {0, 0, p->m, 0, a.groups};
    verify_cover cover = {0};

    if (p->group > GROUP_MOST) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: groups of %d", p->group);
    }
    if (r->ctas_run == r->ctas_total) {
        compare_groups(&a, &whole, out);
        compare_padding(&a, out);
        return HONE_OK;
    }
    TRY(verify_cover_find(&whole, 1, group_written, &a, &cover, error));
    if (cover.len == 0) {
        verify_fail(out, "%" PRIu64 " CTAs ran and nothing of q was written", r->ctas_run);
    }
    for (size_t i = 0; i < cover.len; i++) {
        compare_groups(&a, &cover.rect[i], out);
    }
done:
    verify_cover_free(&cover);
    return status;
}

/* Take over into `expected` what the rule lets a tile of a raw fp32 record differ in. */
static void allow_raw_tile(const uint8_t *after, uint8_t *expected, int64_t data, int64_t scale_at,
                           int32_t tile)
{
    float got = 0.0f, made = 0.0f;

    memcpy(&got, after + scale_at, sizeof got);
    memcpy(&made, expected + scale_at, sizeof made);
    if (scale_agrees(got, made, true) != 0) {
        return;
    }
    memcpy(expected + scale_at, &got, sizeof got);
    for (int64_t i = data; i < data + tile; i++) {
        expected[i] = code_agrees(after[i], expected[i], 0) ? after[i] : expected[i];
    }
}

static void allow_raw(const hone_kv_quant *p, const record_layout *layout, const verify_request *r,
                      uint8_t *expected)
{
    for (int64_t token = 0; token < p->tokens; token++) {
        int64_t slot = 0, page = 0, within = 0;
        memcpy(&slot, r->before->image[1] + token * 8, sizeof slot);
        if (slot < 0 || slot / p->page_size >= p->pages) {
            continue;
        }
        page = slot / p->page_size * p->page_stride;
        within = slot % p->page_size;
        for (int32_t tile = 0; tile < layout->quant_dims / layout->tile; tile++) {
            allow_raw_tile(r->after[2], expected,
                           page + record_data_offset(&p->record, layout, p->page_size, within) +
                               (int64_t)tile * layout->tile,
                           page +
                               record_scale_offset(&p->record, layout, p->page_size, within, tile),
                           layout->tile);
        }
    }
}

static void compare_cache(const hone_kv_quant *p, const uint8_t *got, const uint8_t *expected,
                          uint64_t len, verify_result *out)
{
    uint64_t at = 0;

    if (memcmp(got, expected, len) == 0) {
        return;
    }
    while (got[at] == expected[at]) {
        at++;
    }
    verify_fail(out,
                "cache byte %" PRIu64 " (page %" PRIu64 ", byte %" PRIu64
                " of it): got 0x%02x, expected 0x%02x%s",
                at, at / (uint64_t)p->page_stride, at % (uint64_t)p->page_stride, got[at],
                expected[at], got[at] == VERIFY_RED_ZONE_BYTE ? ", left untouched" : "");
}

hone_status verify_kv_quant(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_kv_quant *p = &r->problem->as.kv_quant;
    record_layout layout = {0};
    uint64_t len = r->before->operand[2].bytes, dropped = 0, got = 0;
    uint8_t *expected = NULL;

    if (r->ctas_run != r->ctas_total) {
        return status_set(
            error, HONE_UNSUPPORTED, NULL, 0,
            "verify: kv_quant is proved whole; a token without a slot shows in no output");
    }
    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    expected = malloc(len + 1);
    if (expected == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: an image of the cache");
    }
    memcpy(expected, r->before->image[2], len);
    memcpy(&dropped, r->before->image[3], sizeof dropped);
    memcpy(&got, r->after[3], sizeof got);
    TRY(reference_kv_quant(p, r->before, expected, &dropped, error));
    if (rule_is_raw(p->record.rule) && layout.scale_bytes == 4) {
        allow_raw(p, &layout, r, expected);
    }
    out->compared = (uint64_t)p->tokens * (uint64_t)layout.token_bytes;
    compare_cache(p, r->after[2], expected, len, out);
    if (got != dropped) {
        verify_fail(out, "dropped: got %" PRIu64 ", expected %" PRIu64, got, dropped);
    }
done:
    free(expected);
    return status;
}
