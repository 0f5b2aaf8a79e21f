/* segments.c - runs of rows from what the device is told; what is out of range is clamped. */
#include "bench/segments.h"

#include "core/integer.h"

#include <stdlib.h>
#include <string.h>

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static int64_t group_at(const uint8_t *groups, int64_t i)
{
    int32_t value;

    memcpy(&value, groups + 4 * i, sizeof value);
    return value;
}

static bool has_expert(const hone_moe_gemm *p, int64_t label)
{
    return label >= 0 && label < p->experts;
}

/* Runs of one label; `out` NULL: counted only. */
static size_t runs_of_labels(const hone_moe_gemm *p, const uint8_t *groups, segments_run *out)
{
    int64_t before = -1;
    size_t len = 0;

    for (int64_t row = 0; row < p->m; row++) {
        const int64_t label = group_at(groups, row);
        if (has_expert(p, label) && label != before) {
            if (out != NULL) {
                out[len] = (segments_run){.expert = label, .row = row, .k = p->k};
            }
            len++;
        }
        if (has_expert(p, label) && out != NULL) {
            out[len - 1].rows++;
        }
        before = label;
    }
    return len;
}

static size_t runs_of_experts(const hone_moe_gemm *p, const uint8_t *groups, segments_run *out)
{
    size_t len = 0;
    int64_t end = 0, k_first = 0;

    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t group = group_at(groups, e);
        segments_run s = {.expert = e, .k = p->k};
        if (p->group_layout == HONE_GROUPS_MASKED) {
            s.batch = e;
            s.rows = clamp(group, 0, p->m);
        } else if (p->group_layout == HONE_GROUPS_PSUM) {
            const int64_t own = clamp(group, 0, p->m);
            s.row = clamp(integer_round_up(end, p->row_align), 0, p->m);
            s.rows = own > s.row ? own - s.row : 0;
            end = own > end ? own : end;
        } else {
            s.batch = e;
            s.rows = p->m;
            s.k_first = k_first;
            s.k = clamp(group, 0, p->k - k_first) / p->recipe.a.gran_k * p->recipe.a.gran_k;
            k_first += s.k;
        }
        if (s.rows > 0) {
            out[len++] = s;
        }
    }
    return len;
}

hone_status segments_find(const hone_moe_gemm *p, const uint8_t *groups, segments *out,
                          hone_error *error)
{
    const bool labels = p->group_layout == HONE_GROUPS_CONTIGUOUS;
    const size_t most = labels ? runs_of_labels(p, groups, NULL) : (size_t)p->experts;
    segments made = {.run = malloc((most + 1) * sizeof *made.run)};

    if (made.run == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "segments of %zu experts", most);
    }
    made.len = labels ? runs_of_labels(p, groups, made.run) : runs_of_experts(p, groups, made.run);
    *out = made;
    return HONE_OK;
}

void segments_free(segments *s)
{
    free(s->run);
    *s = (segments){0};
}

int64_t segments_matrices(const hone_moe_gemm *p)
{
    return p->group_layout == HONE_GROUPS_MASKED || p->group_layout == HONE_GROUPS_K ? p->experts
                                                                                     : 1;
}

int64_t segments_columns(const hone_moe_gemm *p)
{
    return p->activation == HONE_ACTIVATION_PLAIN ? p->n : p->n / 2;
}
