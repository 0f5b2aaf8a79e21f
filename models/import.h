/* import.h - what the readers of a Hugging Face config.json share: typed look-ups that name the
 * key. */
#ifndef HONE_MODELS_IMPORT_H
#define HONE_MODELS_IMPORT_H

#include "models/llm.h"

#include <jansson.h>

enum {
    IMPORT_MAX_BYTES = 1 << 20,
    IMPORT_MAX_NUMBER = 1 << 24, /* keeps every product of two sizes below 2^63 */
};

typedef struct import_config {
    const char *source, *family;
    const json_t *root, *text; /* text: text_config where there is one, else the root */
    hone_error *error;
    llm *l;
} import_config;

#define IMPORT_FAIL(c, ...) status_set((c)->error, HONE_BAD_MODEL, (c)->source, 0, __VA_ARGS__)

/* A family of models: how attention is built, how block scales are stored, who reads the rest. */
typedef struct import_family {
    const char *model_type;
    llm_attention attention;
    int32_t scale; /* hone_dtype */
    hone_status (*read)(import_config *c);
} import_family;

/* HONE_BAD_MODEL, with the known ones, for a model_type that is not one of ours. */
hone_status import_find_family(import_config *c, const import_family **out);

/* The key's value, or NULL when absent or null. Borrowed from the document. */
const json_t *import_find(const import_config *c, const char *key);
const char *import_text(const json_t *object, const char *key);
/* Sizes are integers from 0 to IMPORT_MAX_NUMBER. take leaves *out as it is when the key is absent.
 */
hone_status import_number(import_config *c, const json_t *value, const char *key, int64_t *out);
hone_status import_take(import_config *c, const char *key, int64_t *out);
hone_status import_need(import_config *c, const char *key, int64_t *out);
/* Keys that a family cannot do without, and where in llm their sizes go. */
typedef struct import_key {
    const char *key;
    size_t offset;
} import_key;
hone_status import_need_all(import_config *c, const import_key *keys, size_t len);
/* The first of several names for one thing (NULL-terminated). */
hone_status import_take_any(import_config *c, const char *const *keys, int64_t *out);
hone_status import_need_array(import_config *c, const char *key, size_t least, const json_t **out);

#endif
