/* pairing.c - see pairing.h. */
#include "convert/pairing.h"

#include "core/integer.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static const pairing_rule conventions[] = {
    {"", "_scale_inv", "", "_scale_inv"},       /* DeepSeek V3, GLM, MiniMax, Qwen; experts */
    {".weight", ".scale", ".weight", ".scale"}, /* DeepSeek V4 and V4.1 */
    {"_blocks", "_scales", "", "_scale_inv"},   /* gpt-oss */
    {".blocks", ".scales", "", "_scale_inv"},   /* gpt-oss, its own names */
    {".weight_packed", ".weight_scale", ".weight", ".weight_scale"}, /* compressed-tensors, fp4 */
    {".weight", ".weight_scale", ".weight", ".weight_scale"},        /* compressed-tensors, fp8 */
};

/* Blocks that scales are known to cover, in the order in which a shape is held against them; 0: the
 * whole dimension. Where two fit, they mean the same. */
static const struct {
    uint32_t rows, cols;
} blocks[] = {{128, 128}, {32, 32},  {1, 128}, {1, 32}, {64, 64},
              {128, 32},  {32, 128}, {1, 0},   {0, 0}};

bool pairing_is_named(const char *const *patterns, size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++) {
        if (fnmatch(patterns[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

const pairing_rule *pairing_rule_at(size_t index)
{
    return index < ARRAY_LEN(conventions) ? &conventions[index] : NULL;
}

static const pairing_rule *rule_at(const pairing_rules *rules, size_t index)
{
    return index < rules->given_len ? &rules->given[index]
                                    : pairing_rule_at(index - rules->given_len);
}

/* The entry STEM + `to` when `name` is STEM + `from`. */
static const checkpoint_entry *partner(const checkpoint *c, const char *name, const char *from,
                                       const char *to, size_t *stem_len)
{
    char text[SAFETENSORS_NAME_MOST + 1];
    const size_t len = strlen(name), from_len = strlen(from);

    if (len < from_len || strcmp(name + len - from_len, from) != 0) {
        return NULL;
    }
    *stem_len = len - from_len;
    int used = snprintf(text, sizeof text, "%.*s%s", (int)*stem_len, name, to);
    return used >= 0 && (size_t)used < sizeof text ? checkpoint_find(c, text) : NULL;
}

static bool is_scale_byte(safetensors_dtype dtype)
{
    return dtype == SAFETENSORS_F8_E8M0 || dtype == SAFETENSORS_U8;
}

static bool is_packed_code(safetensors_dtype dtype)
{
    return dtype == SAFETENSORS_I8 || dtype == SAFETENSORS_U8 || dtype == SAFETENSORS_F4;
}

/* Whether the first `rank` dimensions are the same; their product is the batch. */
static bool same_batch(const safetensors_tensor *a, const safetensors_tensor *b, uint32_t rank,
                       uint64_t *batch)
{
    *batch = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (a->shape[i] != b->shape[i]) {
            return false;
        }
        *batch *= a->shape[i];
    }
    return true;
}

/* [.., N, K/2] with [.., N, K/32]; [.., N, K] of F4; [.., N, K/32, 16] with [.., N, K/32]. */
static pairing_kind match_mxfp4(pairing *p)
{
    const safetensors_tensor *w = p->weight->tensor, *s = p->scale->tensor;
    const bool split = w->rank == s->rank + 1 && w->shape[w->rank - 1] == 16;

    if (s->rank < 2 || (w->rank != s->rank && !split) ||
        !same_batch(w, s, s->rank - 2, &p->batch) ||
        w->shape[s->rank - 2] != s->shape[s->rank - 2]) {
        return PAIRING_BAD_SHAPE;
    }
    const uint64_t last = w->shape[s->rank - 1];
    if (last > INT64_MAX / 32) { /* of an empty tensor: its bytes bound nothing */
        return PAIRING_BAD_SHAPE;
    }
    p->rows = w->shape[s->rank - 2];
    p->cols = split ? 32 * last : w->dtype == SAFETENSORS_F4 ? last : 2 * last;
    p->scale_rows = p->rows;
    p->scale_cols = p->scale_cols_most = s->shape[s->rank - 1];
    if (p->cols % 32 != 0 || p->scale_cols != p->cols / 32 ||
        (split && w->dtype == SAFETENSORS_F4)) {
        return PAIRING_BAD_SHAPE;
    }
    p->block_rows = 1;
    p->block_cols = 32;
    return PAIRING_MXFP4;
}

/* The scales' own matrix: [.., R, C], or one number, or a column of them. */
static bool scale_matrix(pairing *p)
{
    const safetensors_tensor *w = p->weight->tensor, *s = p->scale->tensor;

    if (s->rank == w->rank) {
        p->scale_rows = s->shape[s->rank - 2];
        p->scale_cols = s->shape[s->rank - 1];
        return same_batch(w, s, w->rank - 2, &p->batch);
    }
    uint64_t batch = 0;
    const uint32_t leading = w->rank - 2;
    p->scale_rows = s->rank == leading + 1 ? s->shape[leading] : 1;
    p->scale_cols = 1;
    if (s->rank > leading + 1) {
        return false;
    }
    if (s->rank < leading) {
        return s->rank == 0 && p->batch == 1;
    }
    return same_batch(w, s, leading, &batch);
}

static pairing_kind match_e4m3(pairing *p)
{
    const safetensors_tensor *w = p->weight->tensor;

    p->words = p->scale->tensor->dtype == SAFETENSORS_I32;
    if (w->rank < 2) {
        return PAIRING_BAD_SHAPE;
    }
    same_batch(w, w, w->rank - 2, &p->batch);
    p->rows = w->shape[w->rank - 2];
    p->cols = w->shape[w->rank - 1];
    if (!scale_matrix(p)) {
        return PAIRING_BAD_SHAPE;
    }
    const uint64_t has = p->scale_cols, unit = p->words ? 4 : 1;
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        const uint64_t rows = blocks[i].rows > 0 ? blocks[i].rows : p->rows > 0 ? p->rows : 1;
        const uint64_t cols = blocks[i].cols > 0 ? blocks[i].cols : p->cols > 0 ? p->cols : 1;
        const uint64_t wide = integer_ceil_div_u64(p->cols, cols);
        if (p->scale_rows != integer_ceil_div_u64(p->rows, rows) ||
            has != integer_ceil_div_u64(wide, unit)) {
            continue;
        }
        if (p->kind != PAIRING_E4M3) {
            p->kind = PAIRING_E4M3;
            p->block_rows = rows;
            p->block_cols = cols;
            p->scale_cols = p->scale_cols_most = wide;
        } else if (wide > p->scale_cols_most) {
            p->scale_cols_most = wide;
        }
    }
    return p->kind == PAIRING_E4M3 ? PAIRING_E4M3 : PAIRING_BAD_SHAPE;
}

static bool is_e4m3_scale(safetensors_dtype dtype)
{
    return is_scale_byte(dtype) || dtype == SAFETENSORS_F32 || dtype == SAFETENSORS_BF16 ||
           dtype == SAFETENSORS_F16 || dtype == SAFETENSORS_I32;
}

pairing pairing_of(const checkpoint *c, const pairing_rules *rules, const checkpoint_entry *entry)
{
    pairing p = {.weight = entry, .batch = 1};
    const safetensors_dtype dtype = entry->tensor->dtype;
    const bool e4m3 = dtype == SAFETENSORS_F8_E4M3;

    if (!e4m3 && !is_packed_code(dtype)) {
        return p;
    }
    for (size_t i = 0; p.scale == NULL && (p.rule = rule_at(rules, i)) != NULL; i++) {
        p.scale = partner(c, entry->tensor->name, p.rule->weight, p.rule->scale, &p.stem_len);
        p.scale = p.scale == entry ? NULL : p.scale;
    }
    if (p.scale == NULL) {
        p.kind = e4m3 && entry->tensor->rank >= 2 ? PAIRING_UNSCALED : PAIRING_NONE;
    } else if (e4m3) {
        p.kind = is_e4m3_scale(p.scale->tensor->dtype) ? match_e4m3(&p) : PAIRING_BAD_DTYPE;
    } else {
        /* Integers with float scales are other formats, and left alone. */
        p.kind = is_scale_byte(p.scale->tensor->dtype) ? match_mxfp4(&p) : PAIRING_NONE;
    }
    return p;
}

/* Ends of names that nothing but scales have: `.scale` may be a layer's own. */
static bool is_plain(const pairing_rule *rule)
{
    return strstr(rule->scale, "scale_inv") != NULL || strstr(rule->scale, "weight_scale") != NULL;
}

bool pairing_is_orphan(const checkpoint *c, const pairing_rules *rules,
                       const checkpoint_entry *entry)
{
    const safetensors_tensor *t = entry->tensor;
    const pairing_rule *rule = NULL;
    size_t stem_len = 0;
    bool named = false;

    for (size_t i = 0; (rule = rule_at(rules, i)) != NULL; i++) {
        const size_t len = strlen(t->name), end = strlen(rule->scale);
        if (partner(c, t->name, rule->scale, rule->weight, &stem_len) != NULL) {
            return false;
        }
        const bool sure = i < rules->given_len || is_plain(rule) || t->dtype == SAFETENSORS_F8_E8M0;
        named = named || (sure && len > end && strcmp(t->name + len - end, rule->scale) == 0);
    }
    return named && is_e4m3_scale(t->dtype);
}
