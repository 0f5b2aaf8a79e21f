/* record.c - KV-cache records as bytes: where a token's data, scales and tail lie within a page
 * (kernels.md 4). */
#include "core/problem.h"

/* What a format is made of, and which page layouts exist for it (bit by hone_page_layout). */
static const struct {
    int32_t quant_dims, tile, scale_bytes, tail_dims;
    uint32_t layouts;
} formats[] = {
    [HONE_KV_INDEX_FP8_132] = {128, 128, 4, 0, 1u << HONE_PAGE_SPLIT},
    [HONE_KV_MLA_FP8_656] = {512, 128, 4, 64, 1u << HONE_PAGE_INTERLEAVED},
    [HONE_KV_MLA_FP8_528] = {512, 32, 1, 0, 1u << HONE_PAGE_SPLIT | 1u << HONE_PAGE_INTERLEAVED},
};

static bool page_size_known(int32_t page_size)
{
    return page_size == 32 || page_size == 64 || page_size == 128 || page_size == 256;
}

static bool rule_makes_powers(int32_t rule)
{
    return rule == HONE_RULE_POW2_AMAX || rule == HONE_RULE_POW2_SCALE;
}

hone_status record_layout_of(const hone_record *record, int32_t page_size, record_layout *out,
                             hone_error *error)
{
    if (record->format <= 0 || (size_t)record->format >= ARRAY_LEN(formats)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "record_format=%d: no such record",
                          record->format);
    }
    if (record->layout < 0 || record->layout > 31 ||
        (formats[record->format].layouts & (1u << record->layout)) == 0) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "record_layout=%d: this record has no such page layout", record->layout);
    }
    if (!page_size_known(page_size)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "page_size=%d: pages hold 32, 64, 128 or 256 tokens", page_size);
    }
    if (record->rule < HONE_RULE_POW2_AMAX || record->rule > HONE_RULE_RAW_TINY ||
        (formats[record->format].scale_bytes == 1 && !rule_makes_powers(record->rule))) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "record_rule=%d: ue8m0 scales need a pow2 rule, f32 scales any known one",
                          record->rule);
    }
    if (record->version != 1) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "record_version=%d: only 1 is known",
                          record->version);
    }
    int32_t dims = formats[record->format].quant_dims, tail = formats[record->format].tail_dims;
    int32_t tile = formats[record->format].tile, scale = formats[record->format].scale_bytes;
    int32_t token = dims + dims / tile * scale + 2 * tail;
    *out = (record_layout){
        .input_dims = dims + tail,
        .quant_dims = dims,
        .tile = tile,
        .scale_bytes = scale,
        .data_bytes = dims,
        .tail_bytes = 2 * tail,
        .token_bytes = token,
        .page_bytes = (int64_t)page_size * token,
    };
    return HONE_OK;
}

int32_t record_tiles(const record_layout *layout)
{
    return layout->quant_dims / layout->tile;
}

int64_t record_data_offset(const hone_record *record, const record_layout *layout,
                           int32_t page_size, int64_t token)
{
    (void)page_size; /* both layouts begin with data; the parameter keeps the pair of calls alike */
    return token * (record->layout == HONE_PAGE_SPLIT ? layout->data_bytes : layout->token_bytes);
}

int64_t record_scale_offset(const hone_record *record, const record_layout *layout,
                            int32_t page_size, int64_t token, int32_t tile)
{
    int64_t within = (int64_t)tile * layout->scale_bytes;

    if (record->layout == HONE_PAGE_SPLIT) {
        int64_t row = (int64_t)record_tiles(layout) * layout->scale_bytes;
        return (int64_t)page_size * layout->data_bytes + token * row + within;
    }
    return token * layout->token_bytes + layout->data_bytes + within;
}

int64_t record_tail_offset(const hone_record *record, const record_layout *layout, int64_t token)
{
    if (layout->tail_bytes == 0 || record->layout != HONE_PAGE_INTERLEAVED) {
        return -1;
    }
    return token * layout->token_bytes + layout->token_bytes - layout->tail_bytes;
}
