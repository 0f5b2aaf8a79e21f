/* plan.c - see plan.h. */
#include "convert/plan.h"

#include "core/integer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t plan_scale_rows(const plan *p, const plan_item *item)
{
    return integer_ceil_div_u64(item->pair.rows, p->wishes.block_rows);
}

uint64_t plan_scale_cols(const plan *p, const plan_item *item)
{
    return integer_ceil_div_u64(item->pair.cols, p->wishes.block_cols);
}

/* ---- What becomes of a tensor. ------------------------------------------------------------- */

static hone_status refuse_pair(const pairing *p, const char *why, const char *source,
                               hone_error *error)
{
    char weight[160], scale[160];

    return status_set(
        error, HONE_BAD_TEXT, source, 0,
        "tensor '%.120s' is %s and its scales '%.120s' are %s, which %s; give --pair or --skip",
        p->weight->tensor->name, safetensors_describe(p->weight->tensor, weight, sizeof weight),
        p->scale->tensor->name, safetensors_describe(p->scale->tensor, scale, sizeof scale), why);
}

/* Whether an e4m3 weight's scales are blocks, and others than are wished for: of another size, or
 * floats, which need not be powers of two, where e8m0 is wished for. */
static bool is_requantised(const plan_wishes *w, const pairing *p)
{
    if (!w->requantise || p->kind != PAIRING_E4M3 || p->words || p->rows == 0 || p->cols == 0) {
        return false;
    }
    const safetensors_dtype has = p->scale->tensor->dtype;
    return integer_ceil_div_u64(p->rows, p->block_rows) !=
               integer_ceil_div_u64(p->rows, w->block_rows) ||
           integer_ceil_div_u64(p->cols, p->block_cols) !=
               integer_ceil_div_u64(p->cols, w->block_cols) ||
           (w->scales == SAFETENSORS_F8_E8M0 && has != SAFETENSORS_F8_E8M0 &&
            has != SAFETENSORS_U8);
}

static hone_status choose(const plan *p, const checkpoint_entry *entry, plan_item *item,
                          hone_error *error)
{
    const plan_wishes *w = &p->wishes;
    const pairing pair = pairing_of(p->from, &w->names, entry);
    const bool e4m3 = entry->tensor->dtype == SAFETENSORS_F8_E4M3;

    *item = (plan_item){.kind = PLAN_COPY, .entry = entry, .pair = pair};
    if (pairing_is_named(w->skip, w->skip_len, entry->tensor->name)) {
        return HONE_OK;
    }
    if (pair.kind == PAIRING_BAD_SHAPE && (e4m3 ? w->requantise : w->fold)) {
        return refuse_pair(&pair, "fit no block", p->from->path, error);
    }
    if (pair.kind == PAIRING_BAD_DTYPE && w->requantise) {
        return refuse_pair(&pair, "are none of F32, BF16, F16, F8_E8M0 and U8", p->from->path,
                           error);
    }
    if (pair.kind == PAIRING_MXFP4 && w->fold) {
        item->kind = PLAN_FOLD;
    } else if (is_requantised(w, &pair)) {
        item->kind = PLAN_REQUANTISE;
    }
    return HONE_OK;
}

/* ---- Pieces. ------------------------------------------------------------------------------- */

/* Full rows of blocks when one fits; else a row of blocks, in columns of blocks. */
static void cut(const plan_wishes *w, plan_item *item)
{
    const uint64_t rows = item->pair.rows, cols = item->pair.cols;

    if (item->kind == PLAN_COPY) {
        item->jobs = integer_ceil_div_u64(item->entry->tensor->bytes, PLAN_TILE);
        return;
    }
    if (rows == 0 || cols == 0 || item->pair.batch == 0) {
        return;
    }
    const uint64_t fits = PLAN_TILE / w->block_rows / cols; /* rows of blocks */
    item->tile_rows = w->block_rows * (fits > 0 ? fits : 1);
    item->tile_cols = fits > 0 ? cols : PLAN_TILE / w->block_rows / w->block_cols * w->block_cols;
    /* Narrow matrices have many scales for their elements. */
    const uint64_t narrow =
        PLAN_SCALES / integer_ceil_div_u64(cols, 32) / w->block_rows * w->block_rows;
    item->tile_rows = integer_least_u64(item->tile_rows, narrow > 0 ? narrow : w->block_rows);
    item->tile_rows = integer_least_u64(item->tile_rows, rows);
    item->tile_cols = integer_least_u64(item->tile_cols, cols);
    item->down = integer_ceil_div_u64(rows, item->tile_rows);
    item->across = integer_ceil_div_u64(cols, item->tile_cols);
    item->jobs = item->pair.batch * item->down * item->across;
}

/* ---- The tensors of a shard. --------------------------------------------------------------- */

static hone_status name_output(plan *p, const plan_item *item, const char *end,
                               safetensors_tensor *out, hone_error *error)
{
    const char *name = item->entry->tensor->name;
    const size_t stem = item->pair.stem_len, len = stem + strlen(end);
    char *text = arena_alloc(&p->arena, len + 1);

    if (text == NULL) {
        return status_set(error, HONE_NO_MEMORY, p->from->path, 0, "a name");
    }
    if (len == 0 || len > SAFETENSORS_NAME_MOST) {
        return status_set(error, HONE_LIMIT, p->from->path, 0,
                          "tensor '%.200s': its output's name has %zu bytes; names have 1 to %u",
                          name, len, SAFETENSORS_NAME_MOST);
    }
    memcpy(text, name, stem);
    memcpy(text + stem, end, strlen(end));
    out->name = text;
    return HONE_OK;
}

/* [leading.., rows, cols] */
static void shape_output(const plan_item *item, uint64_t rows, uint64_t cols,
                         safetensors_tensor *out)
{
    const uint32_t leading = item->pair.scale->tensor->rank >= 2 && item->kind == PLAN_FOLD
                                 ? item->pair.scale->tensor->rank - 2
                                 : item->entry->tensor->rank - 2;

    out->rank = leading + 2;
    memcpy(out->shape, item->entry->tensor->shape, leading * sizeof out->shape[0]);
    out->shape[leading] = rows;
    out->shape[leading + 1] = cols;
}

static hone_status add_outputs(plan *p, plan_item *item, safetensors_tensor *tensors, size_t *len,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    safetensors_tensor *weight = &tensors[*len], *scales = weight + 1;
    uint64_t bytes = 0;

    item->out = (*len)++;
    if (item->kind == PLAN_COPY) {
        *weight = *item->entry->tensor;
        p->bytes += weight->bytes;
        return HONE_OK;
    }
    item->out_scales = (*len)++;
    item->row = p->rows++;
    weight->dtype = SAFETENSORS_F8_E4M3;
    scales->dtype = p->wishes.scales;
    TRY(name_output(p, item, item->pair.rule->out_weight, weight, error));
    TRY(name_output(p, item, item->pair.rule->out_scale, scales, error));
    shape_output(item, item->pair.rows, item->pair.cols, weight);
    shape_output(item, plan_scale_rows(p, item), plan_scale_cols(p, item), scales);
    TRY(safetensors_bytes(p->from->path, weight, &bytes, error));
    p->bytes += bytes;
    TRY(safetensors_bytes(p->from->path, scales, &bytes, error));
    p->bytes += bytes;
done:
    return status;
}

/* Scales that a converted weight uses are dropped; `used` says by entry who uses them. */
static hone_status mark_scales(plan *p, const plan_item *items, bool *used, hone_error *error)
{
    const checkpoint *c = p->from;

    for (size_t i = 0; i < c->entries_len; i++) {
        if (items[i].kind == PLAN_COPY) {
            continue;
        }
        bool *mark = &used[items[i].pair.scale - c->entries];
        if (*mark) {
            return status_set(error, HONE_BAD_TEXT, c->path, 0,
                              "tensor '%.200s' would be the scales of two weights; give --pair",
                              items[i].pair.scale->tensor->name);
        }
        *mark = true;
    }
    return HONE_OK;
}

static hone_status fill_shard(plan *p, size_t shard, plan_item *all, const bool *used,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    const checkpoint *c = p->from;
    const safetensors_table *table = safetensors_table_of(c->shards[shard]);
    plan_shard *s = &p->shards[shard];
    safetensors_tensor *tensors = arena_alloc(&p->arena, (2 * table->len + 1) * sizeof *tensors);
    plan_item *items = arena_alloc(&p->arena, (table->len + 1) * sizeof *items);
    size_t len = 0;

    if (tensors == NULL || items == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "a plan of %zu tensors", table->len);
    }
    for (size_t i = 0; i < table->len; i++) {
        const size_t at = (size_t)(checkpoint_find(c, table->tensors[i].name) - c->entries);
        if (used[at]) {
            continue;
        }
        plan_item *item = &items[s->items_len++];
        *item = all[at];
        cut(&p->wishes, item);
        item->first_job = s->jobs;
        s->jobs += item->jobs;
        TRY(add_outputs(p, item, tensors, &len, error));
    }
    s->table = (safetensors_table){tensors, len, table->notes, table->notes_len};
    s->items = items;
done:
    return status;
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static hone_status check_names(const plan *p, hone_error *error)
{
    hone_status status = HONE_OK;
    const checkpoint *c = p->from;
    size_t len = 0;
    const char **names = calloc(2 * c->entries_len + 1, sizeof *names);

    if (names == NULL) {
        return status_set(error, HONE_NO_MEMORY, c->path, 0, "a list of names");
    }
    for (size_t i = 0; i < c->shards_len; i++) {
        for (size_t k = 0; k < p->shards[i].table.len; k++) {
            names[len++] = p->shards[i].table.tensors[k].name;
        }
    }
    qsort(names, len, sizeof *names, by_text);
    for (size_t i = 1; i < len && status == HONE_OK; i++) {
        if (strcmp(names[i - 1], names[i]) == 0) {
            status = status_set(error, HONE_BAD_TEXT, c->path, 0,
                                "two tensors of the output would be called '%.200s'; give --pair "
                                "WEIGHT=SCALE=WEIGHT=SCALE with other names",
                                names[i]);
        }
    }
    free(names);
    return status;
}

static hone_status check_wishes(const checkpoint *from, const plan_wishes *w, hone_error *error)
{
    if (w->requantise && w->rule == PLAN_AMAX && w->scales != SAFETENSORS_F32) {
        return status_set(error, HONE_BAD_ARGUMENT, from->path, 0,
                          "scales of amax / 448 are no powers of two and do not fit e8m0; give "
                          "--scales f32, or --rule ceil");
    }
    return HONE_OK;
}

hone_status plan_make(const checkpoint *from, const plan_wishes *wishes, plan *out,
                      hone_error *error)
{
    hone_status status = HONE_OK;
    plan p = {.from = from, .wishes = *wishes};
    plan_item *items = calloc(from->entries_len + 1, sizeof *items);
    bool *used = calloc(from->entries_len + 1, sizeof *used);

    p.shards = arena_alloc(&p.arena, (from->shards_len + 1) * sizeof *p.shards);
    if (items == NULL || used == NULL || p.shards == NULL) {
        status = status_set(error, HONE_NO_MEMORY, from->path, 0, "a plan");
        goto done;
    }
    TRY(check_wishes(from, wishes, error));
    for (size_t i = 0; i < from->entries_len; i++) {
        TRY(choose(&p, &from->entries[i], &items[i], error));
    }
    TRY(mark_scales(&p, items, used, error));
    for (size_t i = 0; i < from->shards_len; i++) {
        TRY(fill_shard(&p, i, items, used, error));
    }
    TRY(check_names(&p, error));
    *out = p;
    p.arena = (arena){0};
done:
    arena_free(&p.arena);
    free(items);
    free(used);
    return status;
}

void plan_free(plan *p)
{
    arena_free(&p->arena);
    *p = (plan){0};
}
