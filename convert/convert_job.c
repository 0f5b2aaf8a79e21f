/* convert_job.c - one piece of a tensor: read, made, written. */
#include "convert/convert_parts.h"

#include "core/fold_mxfp4.h"
#include "core/integer.h"
#include "core/numfmt.h"

#include <inttypes.h>
#include <string.h>

/* Tiles whose rows have gaps and lie this far apart or less, in all, are seen through one window.
 */
static const uint64_t window_most = 4 << 20;

/* A tile of a matrix of bytes: rows that lie `stride` apart. */
typedef struct region {
    uint64_t offset, stride, rows, bytes; /* bytes: of a row */
} region;

typedef struct tile {
    const plan_item *item;
    uint64_t batch, row, col, rows, cols;
} tile;

const plan_item *convert_item(const plan_shard *shard, uint64_t job)
{
    size_t low = 0, high = shard->items_len;

    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (shard->items[middle].first_job <= job) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &shard->items[low];
}

static tile tile_of(const plan_item *item, uint64_t job)
{
    const uint64_t index = job - item->first_job, a_matrix = item->down * item->across;
    tile t = {.item = item, .batch = index / a_matrix};

    t.row = index % a_matrix / item->across * item->tile_rows;
    t.col = index % item->across * item->tile_cols;
    t.rows = integer_least_u64(item->tile_rows, item->pair.rows - t.row);
    t.cols = integer_least_u64(item->tile_cols, item->pair.cols - t.col);
    return t;
}

static const safetensors_file *file_of(const convert_shard *c, const checkpoint_entry *entry)
{
    return c->plan->from->shards[entry->shard];
}

/* The region's rows: through `window` where they have gaps and lie close, else read to `to`, dense.
 * Rows without gaps are read: what is worked on then lies in the thread's own cache, and threads do
 * not wait for each other's changes of the address space. */
static hone_status see(const convert_shard *c, const checkpoint_entry *entry, const region *r,
                       uint8_t *to, safetensors_window *window, const uint8_t **bytes,
                       uint64_t *stride, hone_error *error)
{
    hone_status status = HONE_OK;
    const safetensors_file *file = file_of(c, entry);
    const uint64_t span = (r->rows - 1) * r->stride + r->bytes;

    if (r->stride == r->bytes && span <= PLAN_TILE) {
        *bytes = to;
        *stride = r->bytes;
        return safetensors_read(file, entry->tensor, r->offset, to, span, error);
    }
    if (span <= window_most) {
        TRY(safetensors_view(file, entry->tensor, r->offset, span, window, error));
        *bytes = window->bytes;
        *stride = r->stride;
        return HONE_OK;
    }
    for (uint64_t i = 0; i < r->rows; i++) {
        TRY(safetensors_read(file, entry->tensor, r->offset + i * r->stride, to + i * r->bytes,
                             r->bytes, error));
    }
    *bytes = to;
    *stride = r->bytes;
done:
    return status;
}

/* Write dense rows to a region of tensor `index` of the output. */
static hone_status put(const convert_shard *c, size_t index, const region *r, const void *from,
                       convert_result *result, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint8_t *bytes = from;

    result->bytes += r->rows * r->bytes;
    if (r->stride == r->bytes) {
        return safetensors_write(c->writer, index, r->offset, bytes, r->rows * r->bytes, error);
    }
    for (uint64_t i = 0; i < r->rows; i++) {
        TRY(safetensors_write(c->writer, index, r->offset + i * r->stride, bytes + i * r->bytes,
                              r->bytes, error));
    }
done:
    return status;
}

static hone_status put_codes(const convert_shard *c, const tile *t, const uint8_t *from,
                             convert_result *result, hone_error *error)
{
    const pairing *p = &t->item->pair;
    const region r = {(t->batch * p->rows + t->row) * p->cols + t->col, p->cols, t->rows, t->cols};

    return put(c, t->item->out, &r, from, result, error);
}

/* The tile's scales: `bytes` where the output has ue8m0, else `floats`; dense. */
static hone_status put_scales(const convert_shard *c, const tile *t, const uint8_t *bytes,
                              const float *floats, convert_result *result, hone_error *error)
{
    const plan_wishes *w = &c->plan->wishes;
    const uint64_t all_rows = plan_scale_rows(c->plan, t->item);
    const uint64_t all_cols = plan_scale_cols(c->plan, t->item);
    const uint64_t unit = safetensors_dtype_bits(w->scales) / 8;
    const uint64_t row = t->row / w->block_rows, col = t->col / w->block_cols;
    const region r = {((t->batch * all_rows + row) * all_cols + col) * unit, all_cols * unit,
                      (t->rows + w->block_rows - 1) / w->block_rows,
                      (t->cols + w->block_cols - 1) / w->block_cols * unit};

    return put(c, t->item->out_scales, &r,
               w->scales == SAFETENSORS_F32 ? (const void *)floats : bytes, result, error);
}

/* Files are written by one thread at a time. The scales go first: a thread that wrote its codes and
 * then asked for the file again would wait until the next thread's codes are written. */
static hone_status put_tile(const convert_shard *c, const tile *t, const convert_scratch *s,
                            const uint8_t *codes, convert_result *result, hone_error *error)
{
    hone_status status = put_scales(c, t, s->new_bytes, s->new_scales, result, error);

    return status == HONE_OK ? put_codes(c, t, codes, result, error) : status;
}

static uint64_t scales_of(const convert_shard *c, const tile *t)
{
    const plan_wishes *w = &c->plan->wishes;

    return (t->rows + w->block_rows - 1) / w->block_rows *
           ((t->cols + w->block_cols - 1) / w->block_cols);
}

/* ---- MXFP4. -------------------------------------------------------------------------------- */

static hone_status refuse_nan(const convert_shard *c, const tile *t, uint64_t groups,
                              hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, safetensors_path(file_of(c, t->item->pair.scale)), 0,
                      "tensor '%.200s': %" PRIu64 " scales in rows %" PRIu64 " to %" PRIu64
                      " are NaN (0xff): `hone convert --check` lists such tensors; leave this one "
                      "with --skip",
                      t->item->pair.scale->tensor->name, groups, t->row, t->row + t->rows - 1);
}

static hone_status do_fold(const convert_shard *c, const tile *t, convert_scratch *s,
                           convert_result *result, hone_error *error)
{
    hone_status status = HONE_OK;
    const pairing *p = &t->item->pair;
    const uint64_t first = t->batch * p->rows + t->row;
    const region codes = {(first * p->cols + t->col) / 2, p->cols / 2, t->rows, t->cols / 2};
    const region scales = {(first * p->cols + t->col) / 32, p->cols / 32, t->rows, t->cols / 32};
    safetensors_window code_window = {0}, scale_window = {0};
    fold_tile f = {.rows = t->rows,
                   .cols = t->cols,
                   .block_rows = c->plan->wishes.block_rows,
                   .block_cols = c->plan->wishes.block_cols,
                   .out = c->options->device == NULL ? s->out : NULL,
                   .out_stride = t->cols,
                   .out_scales = s->new_bytes};

    TRY(see(c, p->weight, &codes, s->codes, &code_window, &f.codes, &f.codes_stride, error));
    TRY(see(c, p->scale, &scales, s->raw_scales, &scale_window, &f.scales, &f.scales_stride,
            error));
    fold_tile_run(&f, c->lanes, c->costs, &result->fold);
    if (result->fold.nan_groups > 0) {
        status = refuse_nan(c, t, result->fold.nan_groups, error);
        goto done;
    }
    if (c->options->device != NULL) {
        f.out = s->out;
        TRY(device_fold_run(c->options->device, &f, error));
    }
    for (uint64_t i = 0; c->plan->wishes.scales == SAFETENSORS_F32 && i < scales_of(c, t); i++) {
        s->new_scales[i] = numfmt_ue8m0_decode(s->new_bytes[i]);
    }
    TRY(put_tile(c, t, s, s->out, result, error));
done:
    safetensors_unview(&code_window);
    safetensors_unview(&scale_window);
    return status;
}

/* ---- Blocks of e4m3. ----------------------------------------------------------------------- */

static float scale_at(safetensors_dtype dtype, const uint8_t *raw, uint64_t i)
{
    const uint16_t half = (uint16_t)(raw[2 * i] | raw[2 * i + 1] << 8);
    float x = 0;

    switch (dtype) {
    case SAFETENSORS_F32:
        memcpy(&x, raw + 4 * i, 4);
        return x;
    case SAFETENSORS_BF16:
        return numfmt_bf16_decode(half);
    case SAFETENSORS_F16:
        return numfmt_f16_decode(half);
    default:
        return numfmt_ue8m0_decode(raw[i]);
    }
}

/* The old scales that the tile meets, as floats. */
static hone_status see_old_scales(const convert_shard *c, const tile *t, convert_scratch *s,
                                  requantise_tile *q, hone_error *error)
{
    hone_status status = HONE_OK;
    const pairing *p = &t->item->pair;
    const safetensors_dtype dtype = p->scale->tensor->dtype;
    const uint64_t unit = safetensors_dtype_bits(dtype) / 8;
    const uint64_t row = t->row / p->block_rows, col = t->col / p->block_cols;
    const uint64_t rows = (t->row + t->rows - 1) / p->block_rows - row + 1;
    const uint64_t cols = (t->col + t->cols - 1) / p->block_cols - col + 1;
    const uint64_t first = (t->batch * p->scale_rows + row) * p->scale_cols + col;

    for (uint64_t i = 0; i < rows; i++) {
        uint8_t *raw = s->raw_scales + i * cols * unit;
        TRY(safetensors_read(file_of(c, p->scale), p->scale->tensor,
                             (first + i * p->scale_cols) * unit, raw, cols * unit, error));
        for (uint64_t k = 0; k < cols; k++) {
            s->old_scales[i * cols + k] = scale_at(dtype, raw, k);
        }
    }
    q->scales = s->old_scales;
    q->scales_stride = cols;
done:
    return status;
}

static hone_status refuse_scales(const convert_shard *c, const tile *t, hone_error *error)
{
    return status_set(error, HONE_BAD_TEXT, safetensors_path(file_of(c, t->item->pair.scale)), 0,
                      "tensor '%.200s': scales of rows %" PRIu64 " to %" PRIu64
                      " are zero, negative, NaN or too large: `hone convert --check` lists such "
                      "tensors; leave this one with --skip",
                      t->item->pair.scale->tensor->name, t->row, t->row + t->rows - 1);
}

static hone_status do_requantise(const convert_shard *c, const tile *t, convert_scratch *s,
                                 convert_result *result, hone_error *error)
{
    hone_status status = HONE_OK;
    const pairing *p = &t->item->pair;
    const region codes = {(t->batch * p->rows + t->row) * p->cols + t->col, p->cols, t->rows,
                          t->cols};
    safetensors_window window = {0};
    requantise_tile q = {.row = t->row,
                         .col = t->col,
                         .rows = t->rows,
                         .cols = t->cols,
                         .from_rows = p->block_rows,
                         .from_cols = p->block_cols,
                         .block_rows = c->plan->wishes.block_rows,
                         .block_cols = c->plan->wishes.block_cols,
                         .rule = c->plan->wishes.rule,
                         .out = s->out,
                         .out_scales = s->new_scales};

    TRY(see(c, p->weight, &codes, s->codes, &window, &q.codes, &q.codes_stride, error));
    TRY(see_old_scales(c, t, s, &q, error));
    if (q.codes == s->codes && c->options->device == NULL) {
        q.out = s->codes; /* half the memory, in place */
    }
    requantise_tile_run(&q, c->lanes, &result->requantise);
    if (result->requantise.bad_scales > 0) {
        status = refuse_scales(c, t, error);
        goto done;
    }
    if (c->options->device != NULL) {
        TRY(device_fold_requantise(c->options->device, &q, error));
    }
    for (uint64_t i = 0; c->plan->wishes.scales == SAFETENSORS_F8_E8M0 && i < scales_of(c, t);
         i++) {
        numfmt_ue8m0_exact(s->new_scales[i], &s->new_bytes[i]);
    }
    TRY(put_tile(c, t, s, q.out, result, error));
done:
    safetensors_unview(&window);
    return status;
}

/* ---- The rest. ----------------------------------------------------------------------------- */

static hone_status do_copy(const convert_shard *c, const plan_item *item, uint64_t job,
                           convert_result *result, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t offset = (job - item->first_job) * PLAN_TILE;
    const uint64_t bytes = integer_least_u64(PLAN_TILE, item->entry->tensor->bytes - offset);
    safetensors_window window = {0};

    TRY(safetensors_view(file_of(c, item->entry), item->entry->tensor, offset, bytes, &window,
                         error));
    TRY(safetensors_write(c->writer, item->out, offset, window.bytes, bytes, error));
    result->bytes += bytes;
done:
    safetensors_unview(&window);
    return status;
}

hone_status convert_job(void *context, uint64_t job, void *scratch, void *result, hone_error *error)
{
    const convert_shard *c = context;
    const plan_item *item = convert_item(c->shard, job);

    if (item->kind == PLAN_COPY) {
        return do_copy(c, item, job, result, error);
    }
    const tile t = tile_of(item, job);
    return item->kind == PLAN_FOLD ? do_fold(c, &t, scratch, result, error)
                                   : do_requantise(c, &t, scratch, result, error);
}
