/* record.c - KV-cache records as bytes: what a format is made of, and where a token's data, scales
 * and tail lie within a page (kernels.md 4). One row a format. */
#include "core/problem.h"

#include "core/numfmt.h"

#include <stdio.h>
#include <string.h>

#define SPLIT       (1u << HONE_PAGE_SPLIT)
#define INTERLEAVED (1u << HONE_PAGE_INTERLEAVED)
#define FLAT        (1u << HONE_PAGE_FLAT)

#define POW2  (1u << HONE_RULE_POW2_AMAX | 1u << HONE_RULE_POW2_SCALE)
#define FP32  (POW2 | 1u << HONE_RULE_RAW_AMAX | 1u << HONE_RULE_RAW_TINY)
#define MXFP4 (1u << HONE_RULE_POW2_AMAX | 1u << HONE_RULE_POW2_TINY)
#define NVFP4 (1u << HONE_RULE_E4M3_NEAR | 1u << HONE_RULE_E4M3_UP)

#define E4M3 HONE_DTYPE_E4M3
#define E2M1 HONE_DTYPE_E2M1
#define BF16 HONE_DTYPE_BF16
#define NONE HONE_DTYPE_NONE

/* `unit`: readers address rows of pages by TMA, so that a page's stride must be whole rows
 * (kernels.md 4.3 to 4.5); 0: of a row of the page, whatever its layout. `pad`: zero bytes behind a
 * token's scales. `behind`: the tail lies behind the scales, not before them. */
typedef struct format {
    int32_t dims, element, tile, scale, pad;
    int32_t tail, tail_dims;
    bool behind, permuted;
    uint32_t layouts, rules;
    int32_t unit;
} format;

/* clang-format off */
static const format formats[] = {
    [HONE_KV_INDEX_FP8_132]  = {128, E4M3, 128, HONE_DTYPE_F32,   0, NONE,  0, false, false, SPLIT, FP32, 4},
    [HONE_KV_MLA_FP8_656]    = {512, E4M3, 128, HONE_DTYPE_F32,   0, BF16, 64, true,  false, INTERLEAVED, FP32, 0},
    [HONE_KV_MLA_FP8_528]    = {512, E4M3,  32, HONE_DTYPE_UE8M0, 0, NONE,  0, false, false, SPLIT | INTERLEAVED, POW2, 0},
    [HONE_KV_MLA_FP8_584]    = {448, E4M3,  64, HONE_DTYPE_UE8M0, 1, BF16, 64, false, false, SPLIT, POW2, 0},
    [HONE_KV_MLA_FP4_288]    = {512, E2M1,  16, HONE_DTYPE_UE4M3, 0, NONE,  0, false, false, SPLIT | INTERLEAVED, NVFP4, 0},
    [HONE_KV_INDEX_FP4_68]   = {128, E2M1,  32, HONE_DTYPE_UE8M0, 0, NONE,  0, false, false, SPLIT, MXFP4, 4},
    [HONE_KV_MLA_NVFP4_352]  = {512, E2M1,  16, HONE_DTYPE_UE4M3, 0, E4M3, 64, false, true,  INTERLEAVED, NVFP4, 16},
    [HONE_KV_MLA_FP8_576]    = {576, E4M3,   0, NONE,             0, NONE,  0, false, false, FLAT, 1u << HONE_RULE_TENSOR, 16},
    [HONE_KV_MLA_BF16_1152]  = {576, BF16,   0, NONE,             0, NONE,  0, false, false, FLAT, 1u << HONE_RULE_UNSCALED, 16},
    [HONE_KV_MLA_BF16_1024]  = {512, BF16,   0, NONE,             0, NONE,  0, false, false, FLAT, 1u << HONE_RULE_UNSCALED, 16},
};
/* clang-format on */

static bool page_size_known(int32_t page_size)
{
    return page_size == 32 || page_size == 64 || page_size == 128 || page_size == 256;
}

static bool has_bit(uint32_t bits, int32_t bit)
{
    return bit > 0 && bit < 32 && (bits >> bit & 1) != 0;
}

/* The names of `bits` among those of a field, by commas. */
static const char *names_of(const char *field_name, uint32_t bits, char text[128])
{
    const problem_field *field =
        problem_field_find(HONE_OP_KV_QUANT, field_name, strlen(field_name));
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 1; i < field->names_len && used < 128; i++) {
        if (has_bit(bits, (int32_t)i) && field->names[i] != NULL) {
            used += (size_t)snprintf(text + used, 128 - used, "%s%s", used > 0 ? ", " : "",
                                     field->names[i]);
        }
    }
    return text;
}

static hone_status check_record(const hone_record *record, int32_t page_size, hone_error *error)
{
    char names[128];

    if (record->format <= 0 || (size_t)record->format >= ARRAY_LEN(formats)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "record_format=%d: no such record",
                          record->format);
    }
    const format *f = &formats[record->format];
    if (!has_bit(f->layouts, record->layout)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "record_layout=%d: pages of this record are %s", record->layout,
                          names_of("record_layout", f->layouts, names));
    }
    if (!page_size_known(page_size)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "page_size=%d: pages hold 32, 64, 128 or 256 tokens", page_size);
    }
    if (!has_bit(f->rules, record->rule)) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0,
                          "record_rule=%d: scales of this record are made by %s", record->rule,
                          names_of("record_rule", f->rules, names));
    }
    if (record->version != 1) {
        return status_set(error, HONE_BAD_PROBLEM, NULL, 0, "record_version=%d: only 1 is known",
                          record->version);
    }
    return HONE_OK;
}

/* Where planes and tokens begin, of a layout whose sizes are known. */
static void place(const format *f, bool split, int32_t page_size, record_layout *l)
{
    const int32_t row = l->data_bytes + l->tail_bytes;

    l->row_bytes = split ? row : l->token_bytes;
    l->scales_row = split ? l->scales_bytes : l->token_bytes;
    l->scales_at = split ? (int64_t)page_size * row : f->behind ? l->data_bytes : row;
    l->tail_at = l->tail_bytes == 0 ? -1
                 : f->behind        ? l->data_bytes + l->scales_bytes
                                    : l->data_bytes;
    l->stride_unit = f->unit > 0 ? f->unit : l->row_bytes;
}

hone_status record_layout_of(const hone_record *record, int32_t page_size, record_layout *out,
                             hone_error *error)
{
    hone_status status = check_record(record, page_size, error);

    if (status != HONE_OK) {
        return status;
    }
    const format *f = &formats[record->format];
    record_layout made = {
        .input_dims = f->dims + f->tail_dims,
        .quant_dims = f->dims,
        .element = f->element,
        .tile = f->tile,
        .scale = f->scale,
        .scale_bytes = numfmt_dtype_bits((hone_dtype)f->scale) / 8,
        .data_bytes = f->dims * numfmt_dtype_bits((hone_dtype)f->element) / 8,
        .tail = f->tail,
        .tail_bytes = f->tail_dims * numfmt_dtype_bits((hone_dtype)f->tail) / 8,
        .permuted = f->permuted,
    };
    made.scales_bytes = record_tiles(&made) * made.scale_bytes + f->pad;
    made.token_bytes = made.data_bytes + made.scales_bytes + made.tail_bytes;
    made.page_bytes = (int64_t)page_size * made.token_bytes;
    place(f, record->layout == HONE_PAGE_SPLIT, page_size, &made);
    *out = made;
    return HONE_OK;
}

int32_t record_tiles(const record_layout *layout)
{
    return layout->tile > 0 ? layout->quant_dims / layout->tile : 0;
}

int64_t record_data_offset(const record_layout *layout, int64_t token)
{
    return token * layout->row_bytes;
}

int64_t record_scale_offset(const record_layout *layout, int64_t token, int32_t tile)
{
    const int32_t at = layout->permuted ? 8 * (tile % 4) + tile / 4 : tile;

    return layout->scales_at + token * layout->scales_row + (int64_t)at * layout->scale_bytes;
}

int64_t record_tail_offset(const record_layout *layout, int64_t token)
{
    return layout->tail_at < 0 ? -1 : layout->tail_at + token * layout->row_bytes;
}
