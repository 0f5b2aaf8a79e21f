/* inputs_mqa.c - an indexer's queries, keys and bounds: ranges that models and serving stacks have,
 * and those that break kernels. What no row reads is poison. */
#include "bench/inputs_parts.h"

#include "core/integer.h"
#include "core/numfmt.h"
#include "core/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPLIT = 256, CHUNKS = 4, NO_PAGE = 0x7fffffff, WORD_DIMS = 32 };

static void put(uint8_t *image, int64_t entry, int64_t x)
{
    const int32_t number = (int32_t)(x > INT32_MAX ? INT32_MAX : x);

    memcpy(image + 4 * entry, &number, sizeof number);
}

static int32_t get(const uint8_t *image, int64_t entry)
{
    int32_t x = 0;

    memcpy(&x, image + 4 * entry, sizeof x);
    return x;
}

/* Scales of e2m1 that a kernel may treat apart: those of a row within a few binades of its first
 * one (NEAR), or with one further off (FAR); WIDE as they were drawn, far from each other. */
typedef enum word_kind { WORD_WIDE, WORD_NEAR, WORD_FAR } word_kind;

static void narrow_word(uint8_t *word, int64_t dims, word_kind kind)
{
    for (int g = 1; g < dims / WORD_DIMS && kind != WORD_WIDE; g++) {
        const int far = kind == WORD_FAR && g == 1 ? 17 : 0;
        word[g] = (uint8_t)(word[0] + word[g] % 7 - 3 + far);
    }
}

/* Keys 8 to 15 and 32 to 39 of 64 as drawn, 48 to 55 far, so that of sixteen some, others or all
 * are near. */
static word_kind word_of_key(int64_t key)
{
    const int64_t eight = key / 8 % 8;

    return eight == 1 || eight == 4 ? WORD_WIDE : eight == 6 ? WORD_FAR : WORD_NEAR;
}

/* Of the wide kind, half of the queries: those of `tokens` tokens, then not of as many. */
static void narrow_queries(int64_t rows, int64_t heads, int64_t tokens, int64_t dims,
                           uint8_t *words)
{
    for (int64_t i = 0; i < rows; i++) {
        const int64_t run = i / heads / tokens;
        narrow_word(words + 4 * i, dims,
                    run % 2 != 0 ? WORD_WIDE
                    : i % 5 == 3 ? WORD_FAR
                                 : WORD_NEAR);
    }
}

/* Queries, whose scales are words beside them or none at all; bytes of a word that dims do not
 * reach are 1.0 (kernels.md 3.2). */
static hone_status fill_queries(int64_t rows, int32_t dims, hone_dtype element, inputs_kind kind,
                                uint64_t seed, inputs *in, hone_error *error)
{
    const bool words = element == HONE_DTYPE_E2M1;
    /* what codes of e4m3 are made with; serving folds it into the weights */
    uint8_t *apart = words ? NULL : malloc((size_t)rows * 4 + 4);
    inputs_matrix m = {
        .rows = rows,
        .k = dims,
        .batch = 1,
        .row_stride = dims,
        .quant = {element, words ? HONE_DTYPE_UE8M0 : HONE_DTYPE_F32, 1, words ? 32 : dims},
        .scale_layout = HONE_SCALES_ROW,
        .scale_rows = rows,
        .scale_groups = words ? 4 : 1,
        .groups = words ? dims / 32 : 1,
        .payload = in->image[0],
        .scales = words ? in->image[1] : apart,
        .hole_row = 1,
        .hole_rows = rows > 1,
        .hole_columns = dims,
        .one_signed = 2};

    if (m.scales == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: scales of queries");
    }
    memset(in->image[1], 127, in->operand[1].bytes);
    const hone_status status = inputs_fill_quantised(&m, kind, seed, error);
    free(apart);
    return status;
}

/* Of any sign, of some rows all negative, one all zero. */
static void fill_weights(int64_t rows, int64_t heads, inputs_kind kind, uint64_t *state,
                         uint8_t *image)
{
    for (int64_t i = 0; i < rows * heads; i++) {
        const int64_t row = i / heads;
        float w = kind == INPUTS_ONES ? 1.0f : 0.125f * inputs_normal(state);
        w = kind == INPUTS_WIDE ? ldexpf(w, (int)random_below(state, 41) - 20) : w;
        w = kind == INPUTS_HOLES && row % 3 == 1 ? -fabsf(w) : w;
        w = kind == INPUTS_HOLES && row % 5 == 3 ? 0.0f : w;
        memcpy(image + 4 * i, &w, sizeof w);
    }
}

/* ---- Ranges of rows over keys side by side ----------------------------------------------------
 */

/* Bounds where something may go wrong, `at` of a row's number. */
static void odd_range(int64_t keys, int64_t at, int64_t *start, int64_t *end)
{
    const int64_t odd[][2] = {
        {0, 0},         {keys, keys},           {0, keys},  {5, 5},
        {7, 3},         {-9, keys + 9},         {keys, 0},  {keys - 1, keys},
        {3, 4},         {1, keys - 1},          {-5, -1},   {keys + 4, keys + 8},
        {0, INT32_MAX}, {SPLIT - 1, SPLIT + 1}, {0, SPLIT}, {SPLIT, keys},
        {INT32_MIN, 1}};

    *start = odd[at % (int64_t)ARRAY_LEN(odd)][0];
    *end = odd[at % (int64_t)ARRAY_LEN(odd)][1];
}

/* HOLES: causal, the last tokens of the keys; WIDE: sequences side by side, of each the first and
 * the last part, as context parallelism cuts them; TINY: a few keys; SPECIALS: any. */
static void range_of(const hone_mqa_logits *p, inputs_kind kind, int64_t row, uint64_t *state,
                     int64_t *start, int64_t *end)
{
    const int64_t sequence = row * CHUNKS / p->tokens, each = p->keys / CHUNKS;

    *start = 0;
    *end = p->keys;
    switch (kind) {
    case INPUTS_HOLES:
        *end = p->keys - p->tokens + row;
        break;
    case INPUTS_WIDE:
        *start = sequence * each + sequence % 2;
        *end = *start + (sequence % 2 == 0 ? row % 64 : each - row % 64);
        break;
    case INPUTS_EXTREMES:
        odd_range(p->keys, row, start, end);
        break;
    case INPUTS_TINY:
        *start = (int64_t)random_below(state, (uint64_t)p->keys + 1);
        *end = *start + (int64_t)random_below(state, 9);
        break;
    case INPUTS_SPECIALS:
        *start = (int64_t)random_below(state, (uint64_t)p->keys + 1);
        *end = (int64_t)random_below(state, (uint64_t)p->keys + 1);
        break;
    default:
        break;
    }
}

/* NaN under NaN; of every other kind the largest code under the largest scale. */
static void poison(hone_dtype element, inputs_kind kind, uint8_t *codes, size_t bytes,
                   uint8_t *scale)
{
    const bool nan = kind % 2 == 0;
    const uint32_t f32 = nan ? 0x7fc00000u : 0x7f000000u, words = nan ? 0xffffffffu : 0xfefefefeu;

    memset(codes, element == HONE_DTYPE_E2M1 ? 0x77 : nan ? 0x7f : 0x7e, bytes);
    memcpy(scale, element == HONE_DTYPE_E2M1 ? &words : &f32, sizeof f32);
}

/* Keys that no row reads. `seen` holds a byte for each key. */
static void poison_keys(const hone_mqa_logits *p, inputs_kind kind, const uint8_t *seen, inputs *in)
{
    const size_t bytes = in->operand[2].bytes / (size_t)(p->keys > 0 ? p->keys : 1);

    for (int64_t j = 0; j < p->keys; j++) {
        if (!seen[j]) {
            poison((hone_dtype)p->element, kind, in->image[2] + (size_t)j * bytes, bytes,
                   in->image[3] + 4 * j);
        }
    }
}

hone_status inputs_fill_mqa(const hone_mqa_logits *p, inputs_kind kind, uint64_t seed, inputs *in,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const bool words = p->element == HONE_DTYPE_E2M1;
    uint64_t state = seed + 2;
    uint8_t *seen = calloc((size_t)p->keys + 1, 1);
    const inputs_matrix m = {
        .rows = p->keys,
        .k = p->dims,
        .batch = 1,
        .row_stride = p->dims,
        .quant = {p->element, words ? HONE_DTYPE_UE8M0 : HONE_DTYPE_F32, 1, words ? 32 : p->dims},
        .scale_layout = HONE_SCALES_ROW,
        .scale_rows = p->keys,
        .scale_groups = words ? 4 : 1,
        .groups = words ? p->dims / 32 : 1,
        .payload = in->image[2],
        .scales = in->image[3],
        .hole_row = 2,
        .hole_rows = p->keys > 2,
        .hole_columns = p->dims,
        .one_signed = 3};

    if (seen == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: which keys are read");
    }
    TRY(fill_queries(p->tokens * p->heads, p->dims, (hone_dtype)p->element, kind, seed, in, error));
    memset(in->image[3], 127, words ? in->operand[3].bytes : 0);
    TRY(inputs_fill_quantised(&m, kind, seed + 1, error));
    fill_weights(p->tokens, p->heads, kind, &state, in->image[4]);
    for (int64_t row = 0; row < p->tokens; row++) {
        int64_t start = 0, end = 0;
        range_of(p, kind, row, &state, &start, &end);
        put(in->image[5], row, start);
        put(in->image[6], row, end);
        start = start < 0 ? 0 : start;
        end = end > p->keys ? p->keys : end;
        memset(seen + (start < end ? start : 0), 1, (size_t)(start < end ? end - start : 0));
    }
    if (words && kind == INPUTS_WIDE) {
        narrow_queries(p->tokens * p->heads, p->heads, 16, p->dims, in->image[1]);
        for (int64_t j = 0; j < p->keys; j++) {
            narrow_word(in->image[3] + 4 * j, p->dims, word_of_key(j));
        }
    }
    poison_keys(p, kind, seen, in);
done:
    free(seen);
    return status;
}

/* ---- Pages ------------------------------------------------------------------------------------
 */

/* A request's length, its last token's; those of NORMAL are whole. */
static int64_t length_of(const hone_mqa_logits_paged *p, inputs_kind kind, int64_t request,
                         uint64_t *state)
{
    const int64_t page = p->page_size, drawn = (int64_t)random_below(state, (uint64_t)p->width + 1);
    const int64_t odd[] = {p->width,  0,         page - 1,  page,         page + 1, 1,
                           SPLIT - 1, SPLIT,     SPLIT + 1, p->width - 1, -1,       p->width + 9,
                           2,         INT32_MAX, 3 * page,  drawn};

    switch (kind) {
    case INPUTS_EXTREMES:
        return odd[request % (int64_t)ARRAY_LEN(odd)];
    case INPUTS_HOLES:
    case INPUTS_WIDE:
    case INPUTS_SPECIALS:
        return drawn;
    case INPUTS_TINY:
        return (int64_t)random_below(state, (uint64_t)p->next_n + 3);
    default:
        return p->width;
    }
}

/* Row t sees one key less than row t + 1 (cases.md 7, 50), down to what is below 0; of the special
 * kind any number. */
static void fill_lengths(const hone_mqa_logits_paged *p, inputs_kind kind, uint64_t *state,
                         uint8_t *image)
{
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t last = length_of(p, kind, b, state);
        for (int64_t t = 0; t < p->next_n; t++) {
            int64_t length = kind == INPUTS_NORMAL ? last : last - (p->next_n - 1 - t);
            if (kind == INPUTS_SPECIALS) {
                length = (int64_t)random_below(state, (uint64_t)p->width + 1);
            }
            put(image, b * p->next_n + t, length);
        }
    }
}

/* How many keys of a request are read. */
static int64_t keys_of(const hone_mqa_logits_paged *p, const uint8_t *lengths, int64_t request)
{
    int64_t most = 0;

    for (int64_t t = 0; t < p->next_n; t++) {
        const int64_t length = get(lengths, request * p->next_n + t);
        most = length > most ? length : most;
    }
    return most < p->width ? most : p->width;
}

/* Entry number `made` of all that are used: pages 1 and on in an order of their own, again and
 * again when there are not enough. Nobody has page 0, unless it is the only one. */
static int64_t page_of(const hone_mqa_logits_paged *p, int64_t made, int64_t step)
{
    return p->pages > 1 ? 1 + made * step % (p->pages - 1) : 0;
}

static int64_t step_of(const hone_mqa_logits_paged *p, uint64_t *state)
{
    int64_t step = 1;

    if (p->pages > 2) {
        step = 1 + (int64_t)random_below(state, (uint64_t)p->pages - 1);
        while (integer_common_divisor(step, p->pages - 1) != 1) {
            step++;
        }
    }
    return step;
}

/* Behind the entries that are used stand -1, page 0 and what is no page (cases.md 49). */
static void fill_table(const hone_mqa_logits_paged *p, inputs_kind kind, uint64_t *state,
                       inputs *in)
{
    static const int32_t dead[] = {-1, NO_PAGE, INT32_MIN, 0};
    const int64_t step = step_of(p, state);
    int64_t made = 0;

    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t used = integer_ceil_div(keys_of(p, in->image[4], b), p->page_size);
        for (int64_t i = 0; i < p->table_stride; i++) {
            int64_t page = i < used ? page_of(p, made++, step) : dead[(b + i) % 4];
            if (kind == INPUTS_SPECIALS && i < used && random_below(state, 5) == 0) {
                const int64_t wrong[] = {-1, p->pages, INT32_MIN, INT32_MAX};
                page = wrong[random_below(state, 4)];
            }
            put(in->image[5], b * p->table_stride + i, page);
        }
    }
}

/* Slots that no request reads. `seen` holds a byte for each slot of the cache. */
static void poison_slots(const hone_mqa_logits_paged *p, const record_layout *layout,
                         inputs_kind kind, const uint8_t *seen, uint8_t *cache)
{
    for (int64_t slot = 0; slot < p->pages * p->page_size; slot++) {
        uint8_t *page = cache + slot / p->page_size * p->page_stride;
        if (!seen[slot]) {
            poison((hone_dtype)layout->element, kind,
                   page + record_data_offset(layout, slot % p->page_size),
                   (size_t)layout->data_bytes,
                   page + record_scale_offset(layout, slot % p->page_size, 0));
        }
    }
}

static void see_slots(const hone_mqa_logits_paged *p, const inputs *in, uint8_t *seen)
{
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t keys = keys_of(p, in->image[4], b);
        for (int64_t j = 0; j < keys; j++) {
            const int64_t page = get(in->image[5], b * p->table_stride + j / p->page_size);
            if (page >= 0 && page < p->pages) {
                seen[page * p->page_size + j % p->page_size] = 1;
            }
        }
    }
}

static hone_status fill_cache(const hone_mqa_logits_paged *p, const record_layout *layout,
                              inputs_kind kind, uint64_t seed, inputs *in, hone_error *error)
{
    const bool words = layout->element == HONE_DTYPE_E2M1;
    const inputs_matrix m = {
        .rows = p->page_size,
        .k = layout->quant_dims,
        .batch = p->pages,
        .row_stride = layout->quant_dims,
        .batch_stride = p->page_stride * (words ? 2 : 1), /* elements */
        .quant = {layout->element, layout->scale, 1, layout->tile},
        .scale_layout = HONE_SCALES_ROW,
        .scale_rows = p->page_size,
        .scale_groups = record_tiles(layout),
        .scale_batch = p->page_stride,
        .groups = record_tiles(layout),
        .payload = in->image[2],
        .scales = in->image[2] + layout->scales_at,
        .hole_row = 2,
        .hole_rows = 1,
        .hole_columns = layout->quant_dims,
        .one_signed = 3,
    };

    hone_status status = inputs_fill_quantised(&m, kind, seed, error);
    for (int64_t slot = 0;
         status == HONE_OK && words && kind == INPUTS_WIDE && slot < p->pages * p->page_size;
         slot++) {
        const int64_t within = slot % p->page_size;
        narrow_word(in->image[2] + slot / p->page_size * p->page_stride +
                        record_scale_offset(layout, within, 0),
                    layout->quant_dims, word_of_key(within));
    }
    return status;
}

hone_status inputs_fill_mqa_paged(const hone_mqa_logits_paged *p, inputs_kind kind, uint64_t seed,
                                  inputs *in, hone_error *error)
{
    hone_status status = HONE_OK;
    const int64_t rows = p->batch * p->next_n;
    uint64_t state = seed + 2;
    record_layout layout;
    uint8_t *seen = calloc((size_t)p->pages, (size_t)p->page_size);

    if (seen == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "inputs: which slots are read");
    }
    TRY(record_layout_of(&p->record, p->page_size, &layout, error));
    TRY(fill_queries(rows * p->heads, layout.quant_dims, (hone_dtype)layout.element, kind, seed, in,
                     error));
    TRY(fill_cache(p, &layout, kind, seed + 1, in, error));
    if (layout.element == HONE_DTYPE_E2M1 && kind == INPUTS_WIDE) {
        narrow_queries(rows * p->heads, p->heads, p->next_n, layout.quant_dims, in->image[1]);
    }
    fill_weights(rows, p->heads, kind, &state, in->image[3]);
    fill_lengths(p, kind, &state, in->image[4]);
    fill_table(p, kind, &state, in);
    see_slots(p, in, seen);
    poison_slots(p, &layout, kind, seen, in->image[2]);
done:
    free(seen);
    return status;
}
