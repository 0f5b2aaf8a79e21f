/* verify_quant.c - quantised activations, byte for byte.
 *
 * One freedom (cases.md, facts; kernels.md 5.1): a raw fp32 scale may differ by one unit in the
 * last place, and only then may a code of its group differ by one. */
#include "bench/verify_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MOST = 128 };

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

typedef struct act {
    const hone_act_quant *p;
    const verify_request *request;
    const uint8_t *q, *scales;          /* after */
    int64_t groups;                     /* of a row of q */
    int64_t rows_padded, groups_padded; /* of the scales */
    uint64_t scale_bytes;               /* of one */
} act;

static act act_of(const verify_request *r)
{
    const hone_act_quant *p = &r->problem->as.act_quant;
    bool packed = p->scale_layout == HONE_SCALES_PACKED,
         padded = packed || p->scale_layout == HONE_SCALES_TMA;
    int64_t groups = p->k / p->group;

    return (act){
        .p = p,
        .request = r,
        .q = r->after[1],
        .scales = r->after[2],
        .groups = groups,
        .rows_padded = padded ? integer_ceil_div(p->m, 4) * 4 : p->m,
        .groups_padded = packed ? integer_ceil_div(groups, 4) * 4 : groups,
        .scale_bytes = (uint64_t)numfmt_dtype_bits((hone_dtype)p->scale) / 8,
    };
}

/* Of padding scales too. */
static uint64_t scale_offset(const act *a, int64_t row, int64_t group)
{
    return problem_scale_offset(a->rows_padded, a->groups_padded, (hone_dtype)a->p->scale,
                                (hone_scale_layout)a->p->scale_layout, row, group);
}

static bool scale_written(const void *context, int64_t batch, int64_t row, int64_t group,
                          int64_t groups)
{
    const act *a = context;

    (void)batch;
    for (int64_t i = group; i < group + groups; i++) {
        uint64_t at = scale_offset(a, row, i);
        if (memcmp(a->scales + at, a->request->before->image[2] + at, a->scale_bytes) != 0) {
            return true;
        }
    }
    return false;
}

static bool group_written(const act *a, int64_t row, int64_t group)
{
    int64_t at = row * a->p->k + group * a->p->group;

    return memcmp(a->q + at, a->request->before->image[1] + at, (size_t)a->p->group) != 0;
}

static bool is_padding(const act *a, int64_t row, int64_t group)
{
    return row >= a->p->m || group >= a->groups;
}

static void compare_group(const act *a, int64_t row, int64_t group, verify_result *out)
{
    const hone_act_quant *p = a->p;
    const uint8_t *got = a->q + row * p->k + group * p->group;
    uint8_t expected[GROUP_MOST], code = 0;
    float scale = 0.0f, got_scale = 0.0f;
    int agrees = 0;
    uint64_t at = scale_offset(a, row, group);

    reference_act_quant(p, a->request->before, row, group, expected, &scale, &code);
    if (p->scale == HONE_DTYPE_UE8M0) {
        agrees = a->scales[at] == code ? 1 : -1;
        got_scale = numfmt_ue8m0_decode(a->scales[at]);
    } else {
        memcpy(&got_scale, a->scales + at, sizeof got_scale);
        agrees = verify_scale_agrees(got_scale, scale, verify_rule_is_raw(p->rule));
    }
    out->compared += (uint64_t)p->group;
    if (agrees < 0) {
        verify_fail(out, "scale[%" PRId64 ",%" PRId64 "]: got %.9g, expected %.9g", row, group,
                    (double)got_scale, (double)scale);
    }
    for (int32_t i = 0; i < p->group && out->passed; i++) {
        if (!verify_code_agrees(got[i], expected[i], agrees)) {
            verify_fail(out, "q[%" PRId64 ",%" PRId64 "]%s: got 0x%02x, expected 0x%02x", row,
                        group * p->group + i, got[i] == VERIFY_POISON ? " was left untouched" : "",
                        got[i], expected[i]);
        }
    }
}

/* Scales that pad a layout are 1.0, so that a reader of whole words meets no NaN (cases.md 2). */
static void compare_padding(const act *a, int64_t row, int64_t group, verify_result *out)
{
    float got = numfmt_decode((hone_dtype)a->p->scale, a->scales + scale_offset(a, row, group), 0);

    if (!(got == 1.0f)) {
        verify_fail(out, "padding scale [%" PRId64 ",%" PRId64 "]: got %.9g, expected 1", row,
                    group, (double)got);
    }
}

/* One group of a launch of which only some CTAs ran: written in q and in the scales, or in neither.
 */
static void compare_sampled(const act *a, int64_t row, int64_t group, verify_result *out)
{
    bool scale = scale_written(a, 0, row, group, 1), padding = is_padding(a, row, group),
         codes = padding ? scale : group_written(a, row, group);

    if (scale != codes) {
        verify_fail(out,
                    "row %" PRId64 ", group %" PRId64 ": %s was written and its %s left untouched",
                    row, group, codes ? "q" : "the scale", codes ? "scale" : "q");
    } else if (scale && padding) {
        compare_padding(a, row, group, out);
    } else if (scale) {
        compare_group(a, row, group, out);
    }
}

/* What sampled CTAs own is what they wrote of the scales: whole tiles, as many as CTAs ran. */
static hone_status check_tiles(const act *a, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = a->request;
    reference_rect whole = {0, 0, a->rows_padded, 0, a->groups_padded};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, 1, scale_written, a, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, 1, r->ctas_run, r->ctas_total)) {
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

hone_status verify_act_quant(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const act a = act_of(r);
    bool sampled = r->ctas_run < r->ctas_total;

    if (a.p->group > GROUP_MOST) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: groups of %d", a.p->group);
    }
    if (sampled) {
        TRY(check_tiles(&a, out, error));
    }
    for (int64_t row = 0; row < a.rows_padded; row++) {
        for (int64_t group = 0; group < a.groups_padded && out->passed; group++) {
            if (sampled) {
                compare_sampled(&a, row, group, out);
            } else if (is_padding(&a, row, group)) {
                compare_padding(&a, row, group, out);
            } else {
                compare_group(&a, row, group, out);
            }
        }
    }
done:
    return status;
}
