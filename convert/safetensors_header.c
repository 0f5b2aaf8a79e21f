/* safetensors_header.c - a header's JSON, checked against the bytes that it describes.
 *
 * Each tensor alone, then all of them in the order of their bytes. */
#include "convert/bounded_json.h"
#include "convert/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN "fetch or write the file again"

typedef struct header {
    const char *source;
    uint64_t data_bytes;
    safetensors_table table;
    safetensors_tensor *tensors; /* table's, while they are filled */
    safetensors_note *notes;
    char *text; /* names, keys and values, each ended by a NUL */
    size_t text_used;
} header;

/* ---- One tensor. --------------------------------------------------------------------------- */

/* Names are printed: nothing in them may move a terminal. */
static hone_status check_name(const header *h, const char *name, hone_error *error)
{
    size_t len = strlen(name);

    if (len == 0 || len > SAFETENSORS_NAME_MOST) {
        return status_set(error, HONE_LIMIT, h->source, 0,
                          "a tensor's name of %zu bytes; names have 1 to %u", len,
                          SAFETENSORS_NAME_MOST);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) {
            return status_set(error, HONE_BAD_TEXT, h->source, 0,
                              "a tensor's name has a control character at byte %zu; rename it", i);
        }
    }
    return HONE_OK;
}

static char *keep_text(header *h, const char *text)
{
    char *kept = h->text + h->text_used;
    size_t len = strlen(text) + 1;

    memcpy(kept, text, len);
    h->text_used += len;
    return kept;
}

static hone_status read_dtype(const header *h, const json_t *value, safetensors_tensor *t,
                              hone_error *error)
{
    const char *name = json_string_value(value);

    for (int i = 0; name != NULL && i < SAFETENSORS_DTYPES; i++) {
        if (strcmp(safetensors_dtype_name((safetensors_dtype)i), name) == 0) {
            t->dtype = (safetensors_dtype)i;
            return HONE_OK;
        }
    }
    return status_set(error, HONE_BAD_TEXT, h->source, 0,
                      "tensor '%.200s': dtype '%.32s' is none of this format's; known are F32, "
                      "BF16, F8_E4M3, F8_E8M0, U8 and their like",
                      t->name, name != NULL ? name : "(no text)");
}

/* A whole number that is not negative: jansson keeps what fits 63 bits and refuses more. */
static bool read_whole(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static hone_status read_shape(const header *h, const json_t *value, safetensors_tensor *t,
                              hone_error *error)
{
    size_t rank = json_array_size(value);

    if (!json_is_array(value)) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "tensor '%.200s': 'shape' is no list; " AGAIN, t->name);
    }
    if (rank > SAFETENSORS_RANK_MOST) {
        return status_set(error, HONE_LIMIT, h->source, 0,
                          "tensor '%.200s': %zu dimensions; at most %u are read", t->name, rank,
                          SAFETENSORS_RANK_MOST);
    }
    t->rank = (uint32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        if (!read_whole(json_array_get(value, i), &t->shape[i])) {
            return status_set(error, HONE_BAD_TEXT, h->source, 0,
                              "tensor '%.200s': dimension %zu is no whole number from 0 on; " AGAIN,
                              t->name, i);
        }
    }
    return HONE_OK;
}

static hone_status read_offsets(const header *h, const json_t *value, safetensors_tensor *t,
                                hone_error *error)
{
    uint64_t end = 0, needed = 0;
    char text[200];

    if (json_array_size(value) != 2 || !read_whole(json_array_get(value, 0), &t->begin) ||
        !read_whole(json_array_get(value, 1), &end)) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "tensor '%.200s': 'data_offsets' are not two whole numbers; " AGAIN,
                          t->name);
    }
    if (end < t->begin || end > h->data_bytes) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "tensor '%.200s': its bytes [%" PRIu64 ", %" PRIu64
                          ") lie outside the %" PRIu64
                          " bytes of data: the file was cut or its header lies; " AGAIN,
                          t->name, t->begin, end, h->data_bytes);
    }
    t->bytes = end - t->begin;
    hone_status status = safetensors_bytes(h->source, t, &needed, error);
    if (status != HONE_OK) {
        return status;
    }
    if (needed != t->bytes) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "tensor '%.200s': %s needs %" PRIu64 " bytes and has %" PRIu64 "; " AGAIN,
                          t->name, safetensors_describe(t, text, sizeof text), needed, t->bytes);
    }
    return HONE_OK;
}

static hone_status read_tensor(header *h, const char *name, const json_t *value, hone_error *error)
{
    hone_status status = HONE_OK;
    safetensors_tensor *t = &h->tensors[h->table.len];

    TRY(check_name(h, name, error));
    t->name = keep_text(h, name);
    if (!json_is_object(value) || json_object_size(value) != 3) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "tensor '%.200s': its entry must hold dtype, shape and data_offsets and "
                          "nothing else; " AGAIN,
                          name);
    }
    TRY(read_dtype(h, json_object_get(value, "dtype"), t, error));
    TRY(read_shape(h, json_object_get(value, "shape"), t, error));
    TRY(read_offsets(h, json_object_get(value, "data_offsets"), t, error));
    h->table.len++;
done:
    return status;
}

static hone_status read_notes(header *h, const json_t *value, hone_error *error)
{
    const char *key = NULL;
    json_t *one = NULL;

    if (!json_is_object(value)) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "'__metadata__' is no object; " AGAIN);
    }
    h->notes = calloc(json_object_size(value) + 1, sizeof *h->notes);
    if (h->notes == NULL) {
        return status_set(error, HONE_NO_MEMORY, h->source, 0, "the metadata");
    }
    h->table.notes = h->notes;
    json_object_foreach((json_t *)value, key, one)
    {
        if (!json_is_string(one)) {
            return status_set(error, HONE_BAD_TEXT, h->source, 0,
                              "'__metadata__': the value of '%.100s' is no text; " AGAIN, key);
        }
        h->notes[h->table.notes_len].key = keep_text(h, key);
        h->notes[h->table.notes_len].value = keep_text(h, json_string_value(one));
        h->table.notes_len++;
    }
    return HONE_OK;
}

/* ---- All of them. -------------------------------------------------------------------------- */

static int by_begin(const void *left, const void *right)
{
    const safetensors_tensor *a = left, *b = right;

    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

static hone_status check_cover(header *h, hone_error *error)
{
    uint64_t at = 0;

    qsort(h->tensors, h->table.len, sizeof *h->tensors, by_begin);
    for (size_t i = 0; i < h->table.len; i++) {
        const safetensors_tensor *t = &h->tensors[i];
        if (t->begin < at) {
            return status_set(error, HONE_BAD_TEXT, h->source, 0,
                              "tensors '%.150s' and '%.150s' overlap at byte %" PRIu64
                              " of the data; " AGAIN,
                              h->tensors[i - 1].name, t->name, t->begin);
        }
        if (t->begin > at) {
            return status_set(error, HONE_BAD_TEXT, h->source, 0,
                              "tensor '%.200s': the %" PRIu64
                              " bytes before it belong to no tensor; " AGAIN,
                              t->name, t->begin - at);
        }
        at = t->begin + t->bytes;
    }
    if (at != h->data_bytes) {
        return status_set(error, HONE_BAD_TEXT, h->source, 0,
                          "the last %" PRIu64 " bytes belong to no tensor; " AGAIN,
                          h->data_bytes - at);
    }
    return HONE_OK;
}

/* Bytes that keep_text will take of it all. */
static size_t text_bytes(const json_t *root)
{
    const char *key = NULL, *inner = NULL;
    json_t *value = NULL, *one = NULL;
    size_t bytes = 1;

    json_object_foreach((json_t *)root, key, value)
    {
        bytes += strlen(key) + 1;
        if (strcmp(key, "__metadata__") == 0) {
            json_object_foreach(value, inner, one)
            {
                bytes += strlen(inner) + json_string_length(one) + 2;
            }
        }
    }
    return bytes;
}

static hone_status read_root(header *h, const json_t *root, hone_error *error)
{
    hone_status status = HONE_OK;
    const char *key = NULL;
    json_t *value = NULL;

    h->tensors = calloc(json_object_size(root) + 1, sizeof *h->tensors);
    h->text = malloc(text_bytes(root));
    if (h->tensors == NULL || h->text == NULL) {
        return status_set(error, HONE_NO_MEMORY, h->source, 0, "the table of tensors");
    }
    h->table.tensors = h->tensors;
    json_object_foreach((json_t *)root, key, value)
    {
        TRY(strcmp(key, "__metadata__") == 0 ? read_notes(h, value, error)
                                             : read_tensor(h, key, value, error));
    }
    TRY(check_cover(h, error));
done:
    return status;
}

static void free_header(header *h)
{
    if (h != NULL) {
        free(h->tensors);
        free(h->notes);
        free(h->text);
        free(h);
    }
}

hone_status safetensors_parse(const char *source, const char *text, size_t len, uint64_t data_bytes,
                              safetensors_table **out, hone_error *error)
{
    hone_status status = HONE_OK;
    json_t *root = NULL;
    header *h = NULL;

    TRY(bounded_json_parse(source, text, len, &root, error));
    h = calloc(1, sizeof *h);
    if (h == NULL) {
        status = status_set(error, HONE_NO_MEMORY, source, 0, "a header");
        goto done;
    }
    h->source = source;
    h->data_bytes = data_bytes;
    TRY(read_root(h, root, error));
    h->source = NULL; /* the caller's */
    *out = &h->table;
    h = NULL;
done:
    free_header(h);
    json_decref(root);
    return status;
}

void safetensors_free(safetensors_table *table)
{
    if (table != NULL) {
        free_header((header *)((char *)table - offsetof(header, table)));
    }
}
