/* check_rows.c - choices of experts and places of rows that mean nothing, by token and choice; rows
 * of a quantiser that are nowhere. */
#include "runtime/check_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOPK_IDS = 0, PLACE = 1, WEIGHT = 2, ROWS = 3 };

/* Integers of 4 or 8 bytes for each choice of each token: -1, or below `limit`. */
typedef struct choices {
    size_t operand;
    uint64_t width;
    int64_t topk, limit;
    const char *rule;
    uint8_t *read; /* a bit for each that is not -1; NULL: not asked */
} choices;

static hone_status refuse(const hone_operand *o, const choices *s, uint64_t index,
                          const char *value, const char *rule, hone_error *error)
{
    return status_set(error, HONE_BAD_ARGUMENT, o->name, 0,
                      "checked: %s of token %" PRId64 ", choice %" PRId64 " is %s; %s", o->name,
                      (int64_t)index / s->topk, (int64_t)index % s->topk, value, rule);
}

static hone_status see_choices(const checker *c, const choices *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_operand *o = &c->r->operands[s->operand];
    uint64_t len = 0;

    for (uint64_t at = 0; at < o->bytes; at += len) {
        TRY(check_fetch_chunk(c, s->operand, at, &len, error));
        for (uint64_t i = 0; i < len; i += s->width) {
            const uint64_t index = (at + i) / s->width;
            char text[24];
            int32_t narrow;
            int64_t value;
            memcpy(&narrow, c->chunk + i, sizeof narrow);
            value = narrow;
            if (s->width == sizeof value) {
                memcpy(&value, c->chunk + i, sizeof value);
            }
            if (value < -1 || value >= s->limit) {
                snprintf(text, sizeof text, "%" PRId64, value);
                status = refuse(o, s, index, text, s->rule, error);
                goto done;
            }
            if (s->read != NULL && value >= 0) {
                s->read[index / 8] |= (uint8_t)(1u << (index % 8));
            }
        }
    }
done:
    return status;
}

hone_status check_moe_align(const checker *c, hone_error *error)
{
    const hone_moe_align *p = &c->r->problem->as.moe_align;
    const choices s = {.operand = TOPK_IDS,
                       .width = p->ids == HONE_INDEX_I64 ? 8 : 4,
                       .topk = p->topk,
                       .limit = p->experts,
                       .rule = "it is an expert's number, or -1"};

    return see_choices(c, &s, error);
}

/* Weights of rows that are read. */
static hone_status see_weights(const checker *c, const choices *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_operand *o = &c->r->operands[WEIGHT];
    uint64_t len = 0;

    for (uint64_t at = 0; at < o->bytes; at += len) {
        TRY(check_fetch_chunk(c, WEIGHT, at, &len, error));
        for (uint64_t i = 0; i < len; i += sizeof(float)) {
            const uint64_t index = (at + i) / sizeof(float);
            float value;
            char text[24];
            memcpy(&value, c->chunk + i, sizeof value);
            if ((s->read[index / 8] >> (index % 8) & 1) != 0 && !isfinite(value)) {
                snprintf(text, sizeof text, "%.9g", (double)value);
                status = refuse(o, s, index, text, "a weight is finite", error);
                goto done;
            }
        }
    }
done:
    return status;
}

hone_status check_moe_combine(const checker *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_moe_combine *p = &c->r->problem->as.moe_combine;
    const choices s = {.operand = PLACE,
                       .width = 4,
                       .topk = p->topk,
                       .limit = p->m,
                       .rule = "it is a row of d, or -1",
                       .read = calloc((size_t)(p->tokens * p->topk / 8 + 1), 1)};

    if (s.read == NULL) {
        return status_set(error, HONE_NO_MEMORY, "place", 0, "checked: a bit for each choice");
    }
    TRY(see_choices(c, &s, error));
    TRY(see_weights(c, &s, error));
done:
    free(s.read);
    return status;
}

/* Of act_quant: how many rows an expert has, or the entry that a row is gathered from. */
static hone_status see_row(const hone_act_quant *p, int64_t index, int64_t value, hone_error *error)
{
    if (p->row_set == HONE_ROWS_MASKED && (value < 0 || value > p->m)) {
        return status_set(error, HONE_BAD_ARGUMENT, "rows", 0,
                          "checked: rows of expert %" PRId64 " is %" PRId64
                          "; an expert has 0 to m rows",
                          index, value);
    }
    if (p->row_set == HONE_ROWS_GATHERED && value >= p->tokens * p->topk) {
        return status_set(error, HONE_BAD_ARGUMENT, "rows", 0,
                          "checked: rows of expert %" PRId64 ", row %" PRId64 " is %" PRId64
                          "; it is one of %" PRId64 " entries (tokens * topk), or below 0",
                          index / p->m, index % p->m, value, p->tokens * p->topk);
    }
    return HONE_OK;
}

hone_status check_act_quant(const checker *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_act_quant *p = &c->r->problem->as.act_quant;
    const bool any = p->row_set == HONE_ROWS_MASKED || p->row_set == HONE_ROWS_GATHERED;
    const uint64_t bytes = any ? c->r->operands[ROWS].bytes : 0;
    uint64_t len = 0;

    for (uint64_t at = 0; at < bytes; at += len) {
        TRY(check_fetch_chunk(c, ROWS, at, &len, error));
        for (uint64_t i = 0; i < len; i += sizeof(int32_t)) {
            int32_t value;
            memcpy(&value, c->chunk + i, sizeof value);
            TRY(see_row(p, (int64_t)((at + i) / sizeof value), value, error));
        }
    }
done:
    return status;
}
