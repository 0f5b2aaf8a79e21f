/* reference_kv.c - paged KV caches, byte for byte: written by core's one quantiser, read by core's
 * decoders. */
#include "bench/reference.h"

#include "core/numfmt.h"

#include <math.h>
#include <string.h>

/* Elements of a tile, and of a row without scales of its own. */
enum { GROUP_MOST = 128, REST_MOST = 576 };

/* Elements from `first` on of a row of bf16; how many are NaN or infinite is added to *nonfinite.
 */
static void read_row(const uint8_t *row, int32_t first, int32_t len, float *x, uint64_t *nonfinite)
{
    for (int32_t i = 0; i < len; i++) {
        x[i] = numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)(first + i));
        *nonfinite += !isfinite(x[i]);
    }
}

/* Codes of `len` elements divided by a scale that is given; one that is none makes NaN of all. */
static void put_divided(const float *x, int32_t len, float scale, uint8_t *codes,
                        uint64_t *nonfinite)
{
    const bool usable = isfinite(scale) && scale > 0;

    for (int32_t i = 0; i < len; i++) {
        codes[i] = numfmt_e4m3_encode(usable && isfinite(x[i]) ? x[i] / scale : NAN);
        *nonfinite += !usable && isfinite(x[i]);
    }
}

/* What is scaled of one token. */
static void put_tiles(const hone_kv_quant *p, const record_layout *layout, const uint8_t *row,
                      uint8_t *page, int64_t within, uint64_t *nonfinite)
{
    uint8_t *data = page + record_data_offset(layout, within);
    const int32_t bits = numfmt_dtype_bits((hone_dtype)layout->element);
    float x[GROUP_MOST];

    memset(page + record_scale_offset(layout, within, 0), 0, (size_t)layout->scales_bytes);
    for (int32_t tile = 0; tile < record_tiles(layout); tile++) {
        const int32_t first = tile * layout->tile;
        read_row(row, first, layout->tile, x, nonfinite);
        const float scale =
            numfmt_quantise(x, (size_t)layout->tile, (hone_scale_rule)p->record.rule,
                            (hone_dtype)layout->element, data + first * bits / 8, NULL);
        numfmt_encode((hone_dtype)layout->scale, page + record_scale_offset(layout, within, tile),
                      0, scale);
    }
}

/* What is not: all of a row without scales of its own, and tails. */
static void put_rest(const record_layout *layout, const uint8_t *row, float scale, uint8_t *page,
                     int64_t within, uint64_t *nonfinite)
{
    const int32_t dims = layout->tile > 0 ? 0 : layout->quant_dims;
    float x[REST_MOST];

    if (dims > 0 && layout->element == HONE_DTYPE_BF16) {
        memcpy(page + record_data_offset(layout, within), row, 2 * (size_t)dims);
    } else if (dims > 0) {
        read_row(row, 0, dims, x, nonfinite);
        put_divided(x, dims, scale, page + record_data_offset(layout, within), nonfinite);
    }
    if (layout->tail == HONE_DTYPE_BF16) {
        memcpy(page + record_tail_offset(layout, within), row + 2 * (size_t)layout->quant_dims,
               (size_t)layout->tail_bytes);
    } else if (layout->tail == HONE_DTYPE_E4M3) {
        read_row(row, layout->quant_dims, layout->tail_bytes, x, nonfinite);
        put_divided(x, layout->tail_bytes, 1.0f, page + record_tail_offset(layout, within),
                    nonfinite);
    }
}

hone_status reference_kv_quant(const hone_kv_quant *p, const inputs *in, uint8_t *cache,
                               uint64_t *dropped, uint64_t *nonfinite, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};
    float scale = 0.0f;

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    if (p->record.rule == HONE_RULE_TENSOR) {
        memcpy(&scale, in->image[5], sizeof scale);
    }
    for (int64_t token = 0; token < p->tokens; token++) {
        int64_t slot = 0;
        memcpy(&slot, in->image[1] + token * 8, sizeof slot);
        if (slot < 0) {
            continue;
        }
        if (slot / p->page_size >= p->pages) {
            *dropped += 1;
            continue;
        }
        const uint8_t *row = in->image[0] + 2 * token * layout.input_dims;
        uint8_t *page = cache + slot / p->page_size * p->page_stride;
        put_tiles(p, &layout, row, page, slot % p->page_size, nonfinite);
        put_rest(&layout, row, scale, page, slot % p->page_size, nonfinite);
    }
done:
    return status;
}

/* What a row of a gather is made of: a slot, or nothing. */
typedef struct origin {
    int64_t slot;
    bool written, dropped;
} origin;

static origin by_table(const hone_kv_gather *p, const inputs *in, int64_t row)
{
    const uint8_t *table = in->image[1], *starts = in->image[2];
    int32_t first = 0, last = 0, page = 0;

    for (int64_t s = 0; s < p->sequences; s++) {
        memcpy(&first, starts + 4 * s, sizeof first);
        memcpy(&last, starts + 4 * (s + 1), sizeof last);
        if (row < first || row >= last) {
            continue;
        }
        const int64_t at = (row - first) / p->page_size;
        if (at >= p->table_pages) {
            return (origin){-1, true, true};
        }
        memcpy(&page, table + 4 * (s * p->table_pages + at), sizeof page);
        if (page < 0 || page >= p->pages) {
            return (origin){-1, true, page >= 0};
        }
        return (origin){page * (int64_t)p->page_size + (row - first) % p->page_size, true, false};
    }
    return (origin){-1, false, false};
}

static origin by_slot(const hone_kv_gather *p, const inputs *in, int64_t row)
{
    int64_t slot = 0;

    memcpy(&slot, in->image[1] + 8 * row, sizeof slot);
    const bool past = slot >= 0 && slot / p->page_size >= p->pages;
    return (origin){past || slot < 0 ? -1 : slot, true, past};
}

static origin origin_of(const hone_kv_gather *p, const inputs *in, int64_t row)
{
    return p->by == HONE_GATHER_TABLE ? by_table(p, in, row) : by_slot(p, in, row);
}

int64_t reference_kv_slot(const hone_kv_gather *p, const inputs *in, int64_t row)
{
    return origin_of(p, in, row).slot;
}

/* A token's values. */
static void get_values(const record_layout *layout, const uint8_t *page, int64_t within,
                       float tensor, uint8_t *to)
{
    const uint8_t *data = page + record_data_offset(layout, within);

    if (layout->element == HONE_DTYPE_BF16) {
        memcpy(to, data, (size_t)layout->data_bytes);
        return;
    }
    for (int32_t i = 0; i < layout->quant_dims; i++) {
        float scale = tensor;
        if (layout->tile > 0) {
            scale = numfmt_decode((hone_dtype)layout->scale,
                                  page + record_scale_offset(layout, within, i / layout->tile), 0);
        }
        const float x = numfmt_decode((hone_dtype)layout->element, data, (uint64_t)i);
        numfmt_encode(HONE_DTYPE_BF16, to, (uint64_t)i, x * scale);
    }
    to += 2 * layout->quant_dims;
    if (layout->tail == HONE_DTYPE_BF16) {
        memcpy(to, page + record_tail_offset(layout, within), (size_t)layout->tail_bytes);
    }
    for (int32_t i = 0; layout->tail == HONE_DTYPE_E4M3 && i < layout->tail_bytes; i++) {
        const uint8_t code = page[record_tail_offset(layout, within) + i];
        numfmt_encode(HONE_DTYPE_BF16, to, (uint64_t)i, numfmt_e4m3_decode(code));
    }
}

static void get_bytes(const record_layout *layout, const uint8_t *page, int64_t within,
                      uint8_t *out, uint8_t *scales)
{
    memcpy(out, page + record_data_offset(layout, within), (size_t)layout->data_bytes);
    if (layout->tail_bytes > 0) {
        memcpy(out + layout->data_bytes, page + record_tail_offset(layout, within),
               (size_t)layout->tail_bytes);
    }
    memcpy(scales, page + record_scale_offset(layout, within, 0), (size_t)layout->scales_bytes);
}

hone_status reference_kv_gather(const hone_kv_gather *p, const inputs *in, uint8_t *out,
                                uint8_t *scales, uint64_t *dropped, hone_error *error)
{
    hone_status status = HONE_OK;
    const bool raw = p->to == HONE_GATHER_RAW;
    record_layout layout = {0};
    float tensor = 0.0f;

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    memcpy(&tensor, in->image[6], in->operand[6].bytes);
    const int64_t row_bytes = raw ? layout.data_bytes + layout.tail_bytes : 2 * layout.input_dims;
    for (int64_t row = 0; row < p->tokens; row++) {
        const origin from = origin_of(p, in, row);
        uint8_t *to = out + row * row_bytes, *to_scales = scales + row * layout.scales_bytes;
        *dropped += from.dropped;
        if (from.slot < 0 && from.written) {
            memset(to, 0, (size_t)row_bytes);
            memset(to_scales, 0, raw ? (size_t)layout.scales_bytes : 0);
        } else if (from.slot >= 0) {
            const uint8_t *page = in->image[0] + from.slot / p->page_size * p->page_stride;
            const int64_t within = from.slot % p->page_size;
            if (raw) {
                get_bytes(&layout, page, within, to, to_scales);
            } else {
                get_values(&layout, page, within, tensor, to);
            }
        }
    }
done:
    return status;
}
