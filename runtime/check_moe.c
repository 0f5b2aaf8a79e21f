/* check_moe.c - what groups of a grouped product cannot mean, by place and value; then codes and
 * scales of the rows that they name. */
#include "runtime/check_parts.h"

#include "core/integer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { A = 0, A_SCALE = 1, B = 2, B_SCALE = 3, GROUPS = 4 };

/* What was seen of the groups so far, and a bit for each row that has an expert. */
typedef struct groups_seen {
    const hone_moe_gemm *p;
    uint8_t *read;
    int64_t unit_expert; /* contiguous: of this unit's first row, -1: padding */
    bool unit_ended;     /* its padding has begun */
    int64_t end;         /* psum: of the expert before; grouped_k: k so far */
} groups_seen;

static void mark(groups_seen *s, int64_t batch, int64_t row, int64_t stop)
{
    for (uint64_t bit = (uint64_t)(batch * s->p->m + row); row < stop; row++, bit++) {
        s->read[bit / 8] |= (uint8_t)(1u << (bit % 8));
    }
}

static hone_status refuse(const char *what, int64_t at, int64_t value, const char *rule,
                          hone_error *error)
{
    return status_set(error, HONE_BAD_ARGUMENT, "groups", 0,
                      "checked: groups of %s %" PRId64 " is %" PRId64 "; %s", what, at, value,
                      rule);
}

static hone_status see_label(groups_seen *s, int64_t row, int64_t label, hone_error *error)
{
    const bool begins = row % s->p->row_align == 0;

    if (label >= s->p->experts) {
        return refuse("row", row, label, "it is past the last expert, and below 0 is padding",
                      error);
    }
    if (begins) {
        s->unit_expert = label < 0 ? -1 : label;
        s->unit_ended = label < 0;
    }
    if (label >= 0 && s->unit_ended) {
        return refuse("row", row, label,
                      "rows with an expert come before the padding of their row_align rows", error);
    }
    if (label >= 0 && label != s->unit_expert) {
        return refuse("row", row, label,
                      "row_align rows that begin at a multiple of row_align are one expert's",
                      error);
    }
    s->unit_ended = label < 0;
    if (label >= 0) {
        mark(s, 0, row, row + 1);
    }
    return HONE_OK;
}

static hone_status see_expert(groups_seen *s, int64_t expert, int64_t value, hone_error *error)
{
    const hone_moe_gemm *p = s->p;

    if (p->group_layout == HONE_GROUPS_MASKED) {
        if (value < 0 || value > p->m) {
            return refuse("expert", expert, value, "an expert has 0 to m rows", error);
        }
        mark(s, expert, 0, value);
    } else if (p->group_layout == HONE_GROUPS_PSUM) {
        const int64_t begin = integer_round_up(s->end, p->row_align);
        if (value < s->end || value > p->m) {
            return refuse("expert", expert, value, "ends do not fall, and m is the last", error);
        }
        mark(s, 0, begin, value);
        s->end = value;
    } else {
        if (value < 0 || value % p->recipe.a.gran_k != 0 || value > p->k - s->end) {
            return refuse("expert", expert, value,
                          "elements of k are whole scale groups, in all k at most", error);
        }
        s->end += value;
    }
    return HONE_OK;
}

static hone_status see_groups(const checker *c, groups_seen *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t bytes = c->r->operands[GROUPS].bytes;
    uint64_t len = 0;

    for (uint64_t at = 0; at < bytes; at += len) {
        TRY(check_fetch_chunk(c, GROUPS, at, &len, error));
        for (uint64_t i = 0; i < len; i += sizeof(int32_t)) {
            const int64_t index = (int64_t)((at + i) / sizeof(int32_t));
            int32_t value;
            memcpy(&value, c->chunk + i, sizeof value);
            if (s->p->group_layout == HONE_GROUPS_CONTIGUOUS) {
                TRY(see_label(s, index, value, error));
            } else {
                TRY(see_expert(s, index, value, error));
            }
        }
    }
done:
    return status;
}

hone_status check_moe_gemm(const checker *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_moe_gemm *p = &c->r->problem->as.moe_gemm;
    const bool by_k = p->group_layout == HONE_GROUPS_K;
    const int64_t matrices = p->group_layout == HONE_GROUPS_MASKED ? p->experts : 1;
    groups_seen s = {.p = p, .read = calloc((size_t)(matrices * p->m / 8 + 1), 1)};
    check_matrix a = {.codes = A,
                      .scales = A_SCALE,
                      .quant = p->recipe.a,
                      .layout = (hone_scale_layout)p->a_scale_layout,
                      .batch = matrices,
                      .rows = p->m,
                      .k = p->k,
                      .read = by_k ? NULL : s.read};
    const check_matrix b = {.codes = B,
                            .scales = B_SCALE,
                            .quant = p->recipe.b,
                            .layout = (hone_scale_layout)p->b_scale_layout,
                            .batch = by_k ? 1 : p->experts,
                            .rows = p->n,
                            .k = p->k};

    if (s.read == NULL) {
        return status_set(error, HONE_NO_MEMORY, "groups", 0, "checked: a bit for each row");
    }
    TRY(see_groups(c, &s, error));
    if (by_k) {
        goto done; /* experts' rows are as long as their k: no matrix */
    }
    TRY(check_quantised(c, &a, error));
    TRY(check_quantised(c, &b, error));
done:
    free(s.read);
    return status;
}
