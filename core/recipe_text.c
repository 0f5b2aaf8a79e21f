/* recipe_text.c - recipes and records as text: "f32-1x128-128x128", "ue8m0-1x32-e2m1/1x32",
 * "e4m3/f32/1x128+e4m3/ue8m0/1x32", "v41_528-split-pow2_amax-v1". What the words mean together is
 * checked by the problem. */
#include "core/problem.h"

#include "core/numfmt.h"

#include <stdio.h>
#include <string.h>

/* What is left of a text. */
typedef struct cursor {
    const char *at, *end;
} cursor;

/* The bytes up to `stop` or the end; steps over `stop`. */
static size_t take_word(cursor *c, char stop, const char **word)
{
    const char *found = memchr(c->at, stop, (size_t)(c->end - c->at));
    const char *end = found != NULL ? found : c->end;

    *word = c->at;
    c->at = found != NULL ? found + 1 : c->end;
    return (size_t)(end - *word);
}

static bool take_dtype(cursor *c, char stop, int32_t *out)
{
    const char *word;
    size_t len = take_word(c, stop, &word);

    *out = (int32_t)numfmt_dtype_parse(word, len);
    return *out != HONE_DTYPE_NONE;
}

/* 1 to 65536, base 10, no leading zero. */
static bool take_number(cursor *c, char stop, int32_t *out)
{
    const char *word;
    size_t len = take_word(c, stop, &word);
    int32_t value = 0;

    if (len == 0 || len > 5 || word[0] == '0') {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (word[i] < '0' || word[i] > '9') {
            return false;
        }
        value = value * 10 + (word[i] - '0');
    }
    *out = value;
    return value <= 65536;
}

static bool take_granularity(cursor *c, char stop, hone_quant *out)
{
    return take_number(c, 'x', &out->gran_mn) && take_number(c, stop, &out->gran_k);
}

/* "f32-1x128-128x128": A of e4m3. B's granularity may follow its element where that is another, and
 * then its scale dtype where that is not A's: "f32-1x128-e2m1/ue8m0/1x32". */
static bool take_short(cursor *c, hone_recipe *out)
{
    out->a.element = out->b.element = HONE_DTYPE_E4M3;
    if (!take_dtype(c, '-', &out->a.scale) || !take_granularity(c, '-', &out->a)) {
        return false;
    }
    out->b.scale = out->a.scale;
    size_t slashes = 0;
    for (const char *at = c->at; at < c->end; at++) {
        slashes += *at == '/';
    }
    return (slashes < 1 || take_dtype(c, '/', &out->b.element)) &&
           (slashes < 2 || take_dtype(c, '/', &out->b.scale)) && take_granularity(c, '-', &out->b);
}

static bool take_operand(cursor *c, char stop, hone_quant *out)
{
    return take_dtype(c, '/', &out->element) && take_dtype(c, '/', &out->scale) &&
           take_granularity(c, stop, out);
}

hone_status problem_recipe_parse(const char *text, size_t len, hone_recipe *out, hone_error *error)
{
    hone_recipe made = {0};
    cursor c = {text, text + len};
    bool spelled = len > 0 && memchr(text, '+', len) != NULL;
    bool read = spelled ? take_operand(&c, '+', &made.a) && take_operand(&c, '+', &made.b)
                        : take_short(&c, &made);

    if (!read || c.at != c.end || len == 0 || text[len - 1] == '-' || text[len - 1] == '+') {
        return status_set(error, HONE_BAD_TEXT, NULL, 0,
                          "recipe=%.*s: say it as f32-1x128-128x128 or ue8m0-1x32-e2m1/1x32, or "
                          "in full as e4m3/f32/1x128+e4m3/f32/128x128",
                          (int)(len < 64 ? len : 64), text);
    }
    *out = made;
    return HONE_OK;
}

static const char *dtype_text(int32_t dtype)
{
    const char *name = numfmt_dtype_name((hone_dtype)dtype);

    return name != NULL ? name : "?";
}

void problem_recipe_format(const hone_recipe *recipe, char text[64])
{
    const hone_quant *a = &recipe->a, *b = &recipe->b;

    if (a->element == HONE_DTYPE_E4M3 && (b->element != HONE_DTYPE_E4M3 || a->scale == b->scale)) {
        bool element = b->element != HONE_DTYPE_E4M3, scale = a->scale != b->scale;
        snprintf(text, 64, "%s-%dx%d-%s%s%s%s%dx%d", dtype_text(a->scale), a->gran_mn, a->gran_k,
                 element ? dtype_text(b->element) : "", element ? "/" : "",
                 scale ? dtype_text(b->scale) : "", scale ? "/" : "", b->gran_mn, b->gran_k);
        return;
    }
    snprintf(text, 64, "%s/%s/%dx%d+%s/%s/%dx%d", dtype_text(a->element), dtype_text(a->scale),
             a->gran_mn, a->gran_k, dtype_text(b->element), dtype_text(b->scale), b->gran_mn,
             b->gran_k);
}

/* Look a word up among the names of a field of kv_quant, so that they are written in one place
 * only. */
static bool take_name(cursor *c, const char *field_name, int32_t *out)
{
    const char *word;
    size_t len = take_word(c, '-', &word);
    const problem_field *field =
        problem_field_find(HONE_OP_KV_QUANT, field_name, strlen(field_name));

    for (uint32_t i = 0; i < field->names_len; i++) {
        const char *name = field->names[i];
        if (name != NULL && strlen(name) == len && memcmp(name, word, len) == 0) {
            *out = (int32_t)i;
            return true;
        }
    }
    return false;
}

static bool take_version(cursor *c, int32_t *out)
{
    if (c->at == c->end) {
        *out = 1; /* left out */
        return true;
    }
    if (*c->at != 'v') {
        return false;
    }
    c->at++;
    return take_number(c, '-', out);
}

hone_status problem_record_parse(const char *text, size_t len, hone_record *out, hone_error *error)
{
    hone_record made = {0};
    cursor c = {text, text + len};

    if (len == 0 || text[len - 1] == '-' || !take_name(&c, "record_format", &made.format) ||
        !take_name(&c, "record_layout", &made.layout) ||
        !take_name(&c, "record_rule", &made.rule) || !take_version(&c, &made.version) ||
        c.at != c.end) {
        return status_set(error, HONE_BAD_TEXT, NULL, 0,
                          "record=%.*s: say it as v41_528-split-pow2_amax: a format (index_132, "
                          "v32_656, v4_584, v41_528, v41_288, index_68, nvfp4_352, fp8_576, "
                          "bf16_1152, bf16_1024), a page layout (split, interleaved, flat), a "
                          "scale rule",
                          (int)(len < 64 ? len : 64), text);
    }
    *out = made;
    return HONE_OK;
}

static const char *name_text(const char *field_name, int32_t value)
{
    const problem_field *field =
        problem_field_find(HONE_OP_KV_QUANT, field_name, strlen(field_name));
    bool known = value > 0 && value < (int32_t)field->names_len && field->names[value] != NULL;

    return known ? field->names[value] : "?";
}

void problem_record_format(const hone_record *record, char text[64])
{
    snprintf(text, 64, "%s-%s-%s-v%d", name_text("record_format", record->format),
             name_text("record_layout", record->layout), name_text("record_rule", record->rule),
             record->version);
}
