/* inputs_kv.c - operands of the KV ops: slots, tables and caches with every corner in them. */
#include "bench/inputs_parts.h"
#include "bench/reference.h"
#include "bench/verify.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Angles of a token of an indexer, bytes of its key. */
enum { ANGLES = 32, KEY_BYTES = 256 };

/* What slots are drawn for. */
typedef struct slot_space {
    int64_t tokens, pages, page_size;
} slot_space;

/* Slots where a kernel goes wrong first. On a cache of one page the last two are one. */
typedef enum slot_corner {
    CORNER_LAST,
    CORNER_MINUS,
    CORNER_PAST,
    CORNER_LEAST,
    CORNER_PAGE_END,
    CORNERS
} slot_corner;

static int64_t corner_slot(const slot_space *p, slot_corner corner)
{
    const int64_t slots[CORNERS] = {[CORNER_LAST] = p->pages * p->page_size - 1,
                                    [CORNER_MINUS] = -1,
                                    [CORNER_PAST] = p->pages * p->page_size,
                                    [CORNER_LEAST] = INT64_MIN,
                                    [CORNER_PAGE_END] = p->page_size - 1};

    return corner == CORNER_PAGE_END && p->pages == 1 ? -1 : slots[corner];
}

/* What the first of few tokens gets, so that all kinds together see every corner; CORNERS: any
 * slot. */
static slot_corner only_corner(inputs_kind kind)
{
    static const slot_corner corner[INPUTS_KINDS] = {
        [INPUTS_NORMAL] = CORNER_MINUS,
        [INPUTS_HOLES] = CORNER_LAST,
        [INPUTS_EXTREMES] = CORNER_PAGE_END,
        [INPUTS_WIDE] = CORNERS,
        [INPUTS_TINY] = CORNERS,
        [INPUTS_ZEROS] = CORNER_PAST,
        [INPUTS_ONES] = CORNER_LEAST,
        [INPUTS_SPECIALS] = CORNERS,
    };

    return corner[kind];
}

static bool is_corner(const slot_space *p, int64_t slot)
{
    for (slot_corner c = CORNER_LAST; c < CORNERS; c++) {
        if (slot == corner_slot(p, c)) {
            return true;
        }
    }
    return false;
}

/* Distinct slots: corners first, then a walk with a step that shares no divisor with the cache's
 * size. */
static void fill_slots(const slot_space *p, inputs_kind kind, uint64_t seed, int64_t *slots)
{
    int64_t capacity = p->pages * p->page_size, step = 1, at = 0, left = capacity, done = 0;
    slot_corner only = only_corner(kind);

    if (capacity > 1) {
        step = 1 + (int64_t)(random_next(&seed) % (uint64_t)capacity);
        while (integer_common_divisor(step, capacity) != 1) {
            step++;
        }
        at = (int64_t)(random_next(&seed) % (uint64_t)capacity);
    }
    if (p->tokens >= INPUTS_MANY_TOKENS) {
        for (; done < CORNERS; done++) {
            slots[done] = corner_slot(p, (slot_corner)done);
        }
    } else if (only != CORNERS && p->tokens > 0) {
        slots[done++] = corner_slot(p, only);
    }
    for (; done < p->tokens; done++) {
        slots[done] = -1;
        for (; left > 0 && slots[done] == -1; left--) {
            slots[done] = is_corner(p, at) ? -1 : at;
            at = (at + step) % capacity;
        }
    }
}

/* The one scale of a cache; one kind's is none, which must make NaN of every code. */
static const float tensor_scales[INPUTS_KINDS] = {
    [INPUTS_NORMAL] = 0.0371f, [INPUTS_HOLES] = 0.75f,   [INPUTS_EXTREMES] = 1.0f,
    [INPUTS_WIDE] = 3.1e-7f,   [INPUTS_TINY] = 0.0f,     [INPUTS_ZEROS] = 1e-30f,
    [INPUTS_ONES] = 3e38f,     [INPUTS_SPECIALS] = 0.3f,
};

/* What a token without a slot in the cache holds. 0x7f: 3.4e38 in bf16. */
static void fill_dead_rows(const hone_kv_quant *p, const record_layout *layout, uint8_t byte,
                           inputs *in)
{
    const size_t bytes = 2 * (size_t)layout->input_dims;

    for (int64_t token = 0; token < p->tokens; token++) {
        int64_t slot = 0;
        memcpy(&slot, in->image[1] + token * 8, sizeof slot);
        if (slot < 0 || slot / p->page_size >= p->pages) {
            memset(in->image[0] + (size_t)token * bytes, byte, bytes);
        }
    }
}

hone_status inputs_repad_kv_quant(const hone_kv_quant *p, inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    fill_dead_rows(p, &layout, VERIFY_POISON, in);
done:
    return status;
}

hone_status inputs_fill_kv_quant(const hone_kv_quant *p, inputs_kind kind, uint64_t seed,
                                 inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};
    const uint64_t dropped = 5, nonfinite = 9;

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    TRY(inputs_fill_plain((hone_dtype)p->in, (uint64_t)p->tokens * (uint64_t)layout.input_dims, 32,
                          kind, seed, in->image[0], error));
    const slot_space space = {p->tokens, p->pages, p->page_size};
    fill_slots(&space, kind, seed + 1, (int64_t *)(void *)in->image[1]);
    fill_dead_rows(p, &layout, 0x7f, in);
    memset(in->image[2], VERIFY_RED_ZONE_BYTE, in->operand[2].bytes);
    memcpy(in->image[3], &dropped, sizeof dropped);
    memcpy(in->image[4], &nonfinite, sizeof nonfinite);
    if (p->record.rule == HONE_RULE_TENSOR) {
        memcpy(in->image[5], &tensor_scales[kind], sizeof(float));
    }
done:
    return status;
}

/* Cosine and sine of drawn angles without a library's rounding; special ones are none. */
static void fill_rotations(const hone_index_prepare *p, inputs_kind kind, uint64_t seed,
                           uint8_t *to)
{
    for (int64_t i = 0; i < p->tokens * ANGLES; i++) {
        const double t = (double)(int64_t)(random_next(&seed) % 2049) / 512.0 - 2.0;
        const bool none = kind == INPUTS_SPECIALS && i % 97 == 13;
        const float cosine = none ? NAN : (float)((1 - t * t) / (1 + t * t));
        const float sine = none ? INFINITY : (float)(2 * t / (1 + t * t));
        const int64_t row = i / ANGLES * 2 * ANGLES, angle = i % ANGLES;
        numfmt_encode(HONE_DTYPE_F32, to, (uint64_t)(row + angle), cosine);
        numfmt_encode(HONE_DTYPE_F32, to, (uint64_t)(row + ANGLES + angle), sine);
    }
}

/* Keys of tokens without a slot in the cache. */
static void fill_dead_keys(const hone_index_prepare *p, uint8_t byte, inputs *in)
{
    for (int64_t token = 0; token < p->tokens; token++) {
        int64_t slot = 0;
        memcpy(&slot, in->image[3] + token * 8, sizeof slot);
        if (slot < 0 || slot / p->page_size >= p->pages) {
            memset(in->image[1] + token * KEY_BYTES, byte, KEY_BYTES);
        }
    }
}

void inputs_repad_prepare(const hone_index_prepare *p, inputs *in)
{
    fill_dead_keys(p, VERIFY_POISON, in);
}

hone_status inputs_fill_prepare(const hone_index_prepare *p, inputs_kind kind, uint64_t seed,
                                inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t dropped = 5, nonfinite = 9, keys = (uint64_t)p->tokens * KEY_BYTES / 2;
    const slot_space space = {p->tokens, p->pages, p->page_size};
    uint64_t state = seed + 4;

    TRY(inputs_fill_plain(HONE_DTYPE_BF16, keys * (uint64_t)p->heads, 32, kind, seed, in->image[0],
                          error));
    TRY(inputs_fill_plain(HONE_DTYPE_BF16, keys, 32, kind, seed + 1, in->image[1], error));
    if (p->rope != HONE_ROPE_NONE) {
        fill_rotations(p, kind, seed + 2, in->image[2]);
    }
    fill_slots(&space, kind, seed + 3, (int64_t *)(void *)in->image[3]);
    fill_dead_keys(p, 0x7f, in);
    for (int64_t i = 0; i < p->tokens * p->heads; i++) {
        numfmt_encode(HONE_DTYPE_F32, in->image[4], (uint64_t)i, inputs_normal(&state));
    }
    memset(in->image[7], VERIFY_RED_ZONE_BYTE, in->operand[7].bytes);
    memcpy(in->image[8], &dropped, sizeof dropped);
    memcpy(in->image[9], &nonfinite, sizeof nonfinite);
done:
    return status;
}

/* Any code may stand in a cache, NaN too; scales are of every magnitude, a few of them NaN. */
static void fill_scale(hone_dtype dtype, inputs_kind kind, uint64_t *state, uint8_t *to)
{
    const uint64_t draw = random_next(state);
    const bool nan = kind == INPUTS_SPECIALS && draw % 16 == 0;
    const int exponent = (int)(draw >> 8 & 63) - (kind == INPUTS_TINY ? 150 : 32);

    switch (dtype) {
    case HONE_DTYPE_F32:
        numfmt_encode(dtype, to, 0,
                      nan ? NAN : ldexpf(1.0f + (float)(draw >> 40) * 0x1p-24f, exponent));
        break;
    case HONE_DTYPE_UE8M0:
        *to = nan ? 0xff : (uint8_t)(kind == INPUTS_TINY ? draw % 8 : 100 + draw % 56);
        break;
    default:
        *to = (uint8_t)(nan ? 0x7f : draw % 0x7f);
        break;
    }
}

static void fill_bytes(uint8_t *to, uint64_t len, uint64_t *state)
{
    for (uint64_t at = 0; at < len; at += 8) {
        const uint64_t word = random_next(state);
        memcpy(to + at, &word, len - at < 8 ? len - at : 8);
    }
}

static void fill_pages(const hone_kv_gather *p, const record_layout *layout, inputs_kind kind,
                       uint64_t *state, uint8_t *cache)
{
    for (int64_t page = 0; page < p->pages; page++) {
        uint8_t *at = cache + page * p->page_stride;
        fill_bytes(at, (uint64_t)layout->page_bytes, state);
        for (int64_t token = 0; token < p->page_size; token++) {
            for (int32_t tile = 0; tile < record_tiles(layout); tile++) {
                fill_scale((hone_dtype)layout->scale, kind, state,
                           at + record_scale_offset(layout, token, tile));
            }
        }
    }
}

/* Sequences of every length, empty ones among them; the last rows belong to none. */
static void fill_starts(const hone_kv_gather *p, uint64_t *state, int32_t *starts)
{
    const int64_t rows = p->tokens >= INPUTS_MANY_TOKENS ? p->tokens - 2 : p->tokens;
    int64_t at = p->tokens >= INPUTS_MANY_TOKENS && random_next(state) % 2 == 0;

    for (int64_t s = 0; s <= p->sequences; s++) {
        const int64_t even = (rows - at) / (p->sequences + 1 - s);
        starts[s] = (int32_t)at;
        at += even > 0 && random_next(state) % 4 != 0
                  ? (int64_t)(random_next(state) % (uint64_t)(2 * even)) + 1
                  : 0;
        at = at > rows || s + 1 == p->sequences ? rows : at;
    }
}

/* Pages of sequences in any order; a few are none, or past the cache. */
static void fill_table(const hone_kv_gather *p, inputs_kind kind, uint64_t *state, int32_t *table)
{
    const int64_t len = p->sequences * p->table_pages;

    for (int64_t i = 0; i < len; i++) {
        table[i] = (int32_t)(random_next(state) % (uint64_t)p->pages);
        if (kind != INPUTS_NORMAL && random_next(state) % 5 == 0) {
            const int32_t wrong[] = {-1, (int32_t)p->pages, INT32_MIN, INT32_MAX};
            table[i] = wrong[random_next(state) % ARRAY_LEN(wrong)];
        }
    }
}

hone_status inputs_fill_kv_gather(const hone_kv_gather *p, inputs_kind kind, uint64_t seed,
                                  inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};
    const slot_space space = {p->tokens, p->pages, p->page_size};
    const uint64_t dropped = 5;

    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    memset(in->image[0], VERIFY_RED_ZONE_BYTE, in->operand[0].bytes);
    fill_pages(p, &layout, kind, &seed, in->image[0]);
    if (p->by == HONE_GATHER_SLOTS) {
        fill_slots(&space, kind, seed + 1, (int64_t *)(void *)in->image[1]);
    } else {
        fill_table(p, kind, &seed, (int32_t *)(void *)in->image[1]);
        fill_starts(p, &seed, (int32_t *)(void *)in->image[2]);
    }
    memcpy(in->image[5], &dropped, sizeof dropped);
    memcpy(in->image[6], &tensor_scales[kind], in->operand[6].bytes);
done:
    return status;
}

/* A token's bytes, from one page to another. */
static void copy_token(const record_layout *layout, int64_t within, const uint8_t *from,
                       uint8_t *to)
{
    const int64_t data = record_data_offset(layout, within),
                  tail = record_tail_offset(layout, within);

    memcpy(to + data, from + data, (size_t)layout->data_bytes);
    if (layout->tail_bytes > 0) {
        memcpy(to + tail, from + tail, (size_t)layout->tail_bytes);
    }
    if (layout->scales_bytes > 0) {
        const int64_t scales = record_scale_offset(layout, within, 0);
        memcpy(to + scales, from + scales, (size_t)layout->scales_bytes);
    }
}

static void repad_table(const hone_kv_gather *p, inputs *in)
{
    int32_t *table = (int32_t *)(void *)in->image[1];
    const int32_t *starts = (const int32_t *)(const void *)in->image[2];

    for (int64_t s = 0; s < p->sequences; s++) {
        const int64_t rows = (int64_t)starts[s + 1] - starts[s];
        for (int64_t i = integer_ceil_div(rows, p->page_size); i < p->table_pages; i++) {
            table[s * p->table_pages + i] = INT32_MAX;
        }
    }
}

hone_status inputs_repad_kv_gather(const hone_kv_gather *p, inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    record_layout layout = {0};
    const size_t bytes = in->operand[0].bytes;
    uint8_t *whole = malloc(bytes + 1);

    if (whole == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: a cache as it was");
    }
    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    memcpy(whole, in->image[0], bytes);
    memset(in->image[0], VERIFY_POISON, bytes);
    for (int64_t row = 0; row < p->tokens; row++) {
        const int64_t slot = reference_kv_slot(p, in, row);
        if (slot >= 0) {
            const int64_t page = slot / p->page_size * p->page_stride;
            copy_token(&layout, slot % p->page_size, whole + page, in->image[0] + page);
        }
    }
    if (p->by == HONE_GATHER_TABLE) {
        repad_table(p, in);
    }
done:
    free(whole);
    return status;
}
