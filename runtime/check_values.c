/* check_values.c - what values of operands an op cannot mean: one function and one row for each op.
 * Memory is read in chunks; nothing is written. */
#include "runtime/check_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES = CHECK_CHUNK_BYTES,
    WINDOW_SLOTS = 8 * CHUNK_BYTES, /* slots that one pass looks for twice: a bit each */
    MOST_GROUP = 128,               /* codes of a row that share a scale */
};

static hone_status fetch(const checker *c, size_t operand, uint64_t offset, void *to, size_t bytes,
                         hone_error *error)
{
    const driver *d = c->r->device->driver;

    return driver_check(d, d->cuMemcpyDtoH(to, c->r->args[operand].address + offset, bytes),
                        "cuMemcpyDtoH", error);
}

hone_status check_fetch_chunk(const checker *c, size_t operand, uint64_t offset, uint64_t *len,
                              hone_error *error)
{
    const uint64_t left = c->r->operands[operand].bytes - offset;

    *len = left < CHUNK_BYTES ? left : CHUNK_BYTES;
    return fetch(c, operand, offset, c->chunk, (size_t)*len, error);
}

/* ---- Codes and their scales -------------------------------------------------------------------
 */

/* Where a code or a scale belongs. */
typedef struct place {
    int64_t batch, row, column; /* column: k, or the group of it */
} place;

/* Whether anybody reads it. */
static bool is_read(const check_matrix *q, int64_t batch, int64_t row)
{
    const uint64_t bit = (uint64_t)(batch * q->rows + row);

    return q->read == NULL || (q->read[bit / 8] >> (bit % 8) & 1) != 0;
}

static int64_t row_bytes(const check_matrix *q)
{
    return integer_ceil_div(q->k * numfmt_dtype_bits((hone_dtype)q->quant.element), 8);
}

/* Codes of e2m1 are never NaN. */
static hone_status check_codes(const checker *c, const check_matrix *q, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_operand *o = &c->r->operands[q->codes];
    uint64_t len = 0;

    if (q->quant.element != HONE_DTYPE_E4M3) {
        return HONE_OK;
    }
    for (uint64_t at = 0; at < o->bytes; at += len) {
        TRY(check_fetch_chunk(c, q->codes, at, &len, error));
        for (uint64_t i = 0; i < len; i++) {
            const int64_t line = (int64_t)(at + i) / q->k, k = (int64_t)(at + i) % q->k;
            if ((c->chunk[i] & 0x7f) == 0x7f &&
                (q->inner || is_read(q, line / q->rows, line % q->rows))) {
                return status_set(error, HONE_BAD_ARGUMENT, o->name, 0,
                                  "checked: %s at batch %" PRId64 ", row %" PRId64 ", k %" PRId64
                                  " is 0x%02x, e4m3's NaN",
                                  o->name, q->inner ? line % q->batch : line / q->rows,
                                  q->inner ? line / q->batch : line % q->rows, k, c->chunk[i]);
            }
        }
    }
done:
    return status;
}

/* The place of scale number `index` of a matrix of rows x groups; false for padding. */
static bool find_place(hone_scale_layout layout, int64_t rows, int64_t groups, int64_t index,
                       int64_t *row, int64_t *group)
{
    const int64_t aligned = integer_round_up(rows, 4);

    switch (layout) {
    case HONE_SCALES_ROW:
        *row = index / groups;
        *group = index % groups;
        break;
    case HONE_SCALES_COL:
        *row = index % rows;
        *group = index / rows;
        break;
    case HONE_SCALES_TMA:
        *row = index % aligned;
        *group = index / aligned;
        break;
    case HONE_SCALES_PACKED:
        *row = index / 4 % aligned;
        *group = index / 4 / aligned * 4 + index % 4;
        break;
    }
    return *row < rows && *group < groups;
}

/* A scale of 0 makes its codes 0: legal where they are. */
static hone_status check_zero_scale(const checker *c, const check_matrix *q, const place *p,
                                    hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_operand *o = &c->r->operands[q->codes];
    const bool nibbles = q->quant.element == HONE_DTYPE_E2M1;
    const int64_t first = p->row * q->quant.gran_mn, k = p->column * q->quant.gran_k;
    const int64_t len = q->k - k < q->quant.gran_k ? q->k - k : q->quant.gran_k;
    uint8_t codes[MOST_GROUP];

    for (int64_t row = first; row < first + q->quant.gran_mn && row < q->rows; row++) {
        const int64_t line = q->inner ? row * q->batch + p->batch : p->batch * q->rows + row;
        const size_t bytes = (size_t)(nibbles ? (len + 1) / 2 : len);
        TRY(fetch(c, q->codes, (uint64_t)(line * row_bytes(q) + (nibbles ? k / 2 : k)), codes,
                  bytes, error));
        for (size_t i = 0; i < bytes; i++) {
            if ((codes[i] & (nibbles ? 0x77 : 0x7f)) != 0) {
                return status_set(error, HONE_BAD_ARGUMENT, c->r->operands[q->scales].name, 0,
                                  "checked: %s at batch %" PRId64 ", row %" PRId64
                                  ", group %" PRId64 " is 0, and %s is not all zero there",
                                  c->r->operands[q->scales].name, p->batch, p->row, p->column,
                                  o->name);
            }
        }
    }
done:
    return status;
}

static hone_status refuse_scale(const checker *c, const check_matrix *q, const place *p,
                                double value, const char *rule, hone_error *error)
{
    const char *name = c->r->operands[q->scales].name;

    return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                      "checked: %s at batch %" PRId64 ", row %" PRId64 ", group %" PRId64
                      " is %.9g; %s",
                      name, p->batch, p->row, p->column, value, rule);
}

static hone_status check_scale(const checker *c, const check_matrix *q, const place *p,
                               const uint8_t *at, hone_error *error)
{
    uint8_t code;
    float value;

    if (q->quant.scale == HONE_DTYPE_UE8M0) {
        return *at != 0xff ? HONE_OK
                           : refuse_scale(c, q, p, (double)NAN, "0xff is ue8m0's NaN", error);
    }
    memcpy(&value, at, sizeof value);
    if (!isfinite(value) || value < 0.0f) {
        return refuse_scale(c, q, p, (double)value, "a scale is finite and not negative", error);
    }
    if (value == 0.0f) {
        return check_zero_scale(c, q, p, error);
    }
    if (c->r->level == HONE_CHECKED_POW2 && !numfmt_ue8m0_exact(value, &code)) {
        return refuse_scale(c, q, p, (double)value,
                            "it is no power of two from 2^-127 to 2^127, as was asked for", error);
    }
    return HONE_OK;
}

static hone_status check_scales(const checker *c, const check_matrix *q, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_operand *o = &c->r->operands[q->scales];
    const int64_t rows = integer_ceil_div(q->rows, q->quant.gran_mn),
                  own = integer_ceil_div(q->k, q->quant.gran_k),
                  groups = q->inner ? q->batch * own : own;
    const uint64_t width = (uint64_t)numfmt_dtype_bits((hone_dtype)q->quant.scale) / 8;
    uint64_t matrix = 0, len = 0;

    TRY(problem_scale_bytes(rows, groups, (hone_dtype)q->quant.scale, q->layout, &matrix, error));
    for (uint64_t at = 0; at < o->bytes; at += len) {
        TRY(check_fetch_chunk(c, q->scales, at, &len, error));
        for (uint64_t i = 0; i < len; i += width) {
            place p = {.batch = (int64_t)((at + i) / matrix)};
            if (!find_place(q->layout, rows, groups, (int64_t)((at + i) % matrix / width), &p.row,
                            &p.column)) {
                continue;
            }
            p.batch = q->inner ? p.column / own : p.batch;
            p.column = p.column % own;
            if (q->quant.gran_mn == 1 && !q->inner && !is_read(q, p.batch, p.row)) {
                continue;
            }
            TRY(check_scale(c, q, &p, c->chunk + i, error));
        }
    }
done:
    return status;
}

hone_status check_quantised(const checker *c, const check_matrix *q, hone_error *error)
{
    hone_status status = HONE_OK;

    TRY(check_codes(c, q, error));
    TRY(check_scales(c, q, error));
done:
    return status;
}

/* ---- Ops ----------------------------------------------------------------------------------------
 */

static hone_status check_fp8_gemm(const checker *c, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_fp8_gemm *p = &c->r->problem->as.fp8_gemm;
    const check_matrix a = {.codes = 0,
                            .scales = 1,
                            .quant = p->recipe.a,
                            .layout = (hone_scale_layout)p->a_scale_layout,
                            .batch = p->batch,
                            .rows = p->m,
                            .k = p->k,
                            .inner = p->batch_layout == HONE_BATCH_INNER};
    const check_matrix b = {.codes = 2,
                            .scales = 3,
                            .quant = p->recipe.b,
                            .layout = (hone_scale_layout)p->b_scale_layout,
                            .batch = p->batch,
                            .rows = p->n,
                            .k = p->k};

    TRY(check_quantised(c, &a, error));
    TRY(check_quantised(c, &b, error));
done:
    return status;
}

static hone_status check_fold(const checker *c, hone_error *error)
{
    const hone_fold *p = &c->r->problem->as.fold;
    const check_matrix a = {.codes = 0,
                            .scales = 1,
                            .quant = {p->element, p->scale, 1, p->group},
                            .layout = (hone_scale_layout)p->scale_layout,
                            .batch = 1,
                            .rows = p->m,
                            .k = p->k};

    return check_quantised(c, &a, error);
}

/* Call `see` for each slot in order until it returns true; *stopped says whether it did. */
typedef bool see_slot(void *context, int64_t token, int64_t slot);

static hone_status each_slot(const checker *c, size_t operand, see_slot *see, void *context,
                             bool *stopped, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t bytes = c->r->operands[operand].bytes;
    uint64_t len = 0;

    *stopped = false;
    for (uint64_t at = 0; at < bytes && !*stopped; at += len) {
        TRY(check_fetch_chunk(c, operand, at, &len, error));
        for (uint64_t i = 0; i < len && !*stopped; i += sizeof(int64_t)) {
            int64_t slot;
            memcpy(&slot, c->chunk + i, sizeof slot);
            *stopped = see(context, (int64_t)((at + i) / sizeof slot), slot);
        }
    }
done:
    return status;
}

/* Slots from `first` on that were seen, a bit each; and what the last call of a pass found. */
typedef struct slot_search {
    int64_t first, least, most; /* least, most: of all that are not negative */
    int64_t capacity;           /* of the cache */
    int64_t token, slot;
    uint8_t *seen;
} slot_search;

static bool see_range(void *context, int64_t token, int64_t slot)
{
    slot_search *s = context;

    s->token = token;
    s->slot = slot;
    if (slot >= 0) {
        s->least = slot < s->least ? slot : s->least;
        s->most = slot > s->most ? slot : s->most;
    }
    return slot >= s->capacity;
}

static bool see_twice(void *context, int64_t token, int64_t slot)
{
    slot_search *s = context;
    const int64_t bit = slot - s->first;

    s->token = token;
    s->slot = slot;
    if (slot < 0 || bit < 0 || bit >= WINDOW_SLOTS) {
        return false;
    }
    const uint8_t mask = (uint8_t)(1u << (bit % 8));
    const bool seen = (s->seen[bit / 8] & mask) != 0;
    s->seen[bit / 8] |= mask;
    return seen;
}

static bool see_same(void *context, int64_t token, int64_t slot)
{
    slot_search *s = context;

    s->token = token;
    return slot == s->slot;
}

/* Window by window from the least slot to the largest. */
static hone_status find_twice(const checker *c, size_t operand, slot_search *s, bool *found,
                              hone_error *error)
{
    hone_status status = HONE_OK;

    s->seen = malloc(WINDOW_SLOTS / 8);
    if (s->seen == NULL) {
        return status_set(error, HONE_NO_MEMORY, "slots", 0, "checked: a window of slots");
    }
    *found = false;
    for (s->first = s->least; s->first <= s->most && !*found; s->first += WINDOW_SLOTS) {
        memset(s->seen, 0, WINDOW_SLOTS / 8);
        TRY(each_slot(c, operand, see_twice, s, found, error));
    }
done:
    free(s->seen);
    s->seen = NULL;
    return status;
}

/* Slots of a cache that are written. */
static hone_status check_slots(const checker *c, size_t operand, int64_t capacity,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    slot_search s = {.least = INT64_MAX, .most = -1, .capacity = capacity};
    bool found = false;

    TRY(each_slot(c, operand, see_range, &s, &found, error));
    if (found) {
        return status_set(error, HONE_BAD_ARGUMENT, "slots", 0,
                          "checked: slot %" PRId64 " of token %" PRId64
                          " lies past the cache of %" PRId64 " slots",
                          s.slot, s.token, s.capacity);
    }
    TRY(find_twice(c, operand, &s, &found, error));
    if (found) {
        const int64_t second = s.token;
        TRY(each_slot(c, operand, see_same, &s, &found, error));
        return status_set(error, HONE_BAD_ARGUMENT, "slots", 0,
                          "checked: tokens %" PRId64 " and %" PRId64 " share slot %" PRId64
                          "; which of them stays is not defined",
                          s.token, second, s.slot);
    }
done:
    return status;
}

static hone_status check_kv_quant(const checker *c, hone_error *error)
{
    const hone_kv_quant *p = &c->r->problem->as.kv_quant;

    return check_slots(c, 1, p->pages * p->page_size, error);
}

static hone_status check_prepare(const checker *c, hone_error *error)
{
    const hone_index_prepare *p = &c->r->problem->as.index_prepare;

    return check_slots(c, 3, p->pages * p->page_size, error);
}

/* An op without a row has no values that it cannot mean. */
static const struct {
    hone_status (*check)(const checker *c, hone_error *error);
} ops[] = {
    [HONE_OP_FP8_GEMM] = {check_fp8_gemm},       [HONE_OP_ACT_QUANT] = {check_act_quant},
    [HONE_OP_KV_QUANT] = {check_kv_quant},       [HONE_OP_FOLD] = {check_fold},
    [HONE_OP_MOE_GEMM] = {check_moe_gemm},       [HONE_OP_MOE_ALIGN] = {check_moe_align},
    [HONE_OP_MOE_COMBINE] = {check_moe_combine}, [HONE_OP_INDEX_PREPARE] = {check_prepare},
};

/* ---- The stream ---------------------------------------------------------------------------------
 */

static hone_status wait_for_stream(const check_request *r, hone_error *error)
{
    const driver *d = r->device->driver;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult asked = d->cuStreamIsCapturing(r->stream, &capture);

    /* The legacy stream cannot be asked while another one is captured. */
    if (asked == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0,
                          "checked: the stream is being captured, so that operands cannot be read; "
                          "capture with hone_options.checked off");
    }
    if (asked != CUDA_SUCCESS) {
        return driver_check(d, asked, "cuStreamIsCapturing", error);
    }
    return driver_check(d, d->cuStreamSynchronize(r->stream), "cuStreamSynchronize", error);
}

hone_status check_values(const check_request *r, hone_error *error)
{
    hone_status status = HONE_OK;
    const int32_t op = r->problem->op;
    CUcontext previous = r->device->context;
    checker c = {.r = r};

    TRY(device_borrow(r->device, &previous, error));
    TRY(wait_for_stream(r, error));
    if (op <= 0 || (size_t)op >= ARRAY_LEN(ops) || ops[op].check == NULL) {
        goto done;
    }
    c.chunk = malloc(CHUNK_BYTES);
    if (c.chunk == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "checked: a chunk of an operand");
        goto done;
    }
    TRY(ops[op].check(&c, error));
done:
    free(c.chunk);
    device_return(r->device, previous);
    return status;
}
