/* fields.h - descriptions as tables: one row for each key of a YAML file says where its value goes.
 */
#ifndef HONE_MODELS_FIELDS_H
#define HONE_MODELS_FIELDS_H

#include "core/document.h"

typedef enum field_store {
    FIELD_INT32,
    FIELD_INT64, /* the file's value times `scale` */
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_NAME, /* int32: the index of the text in `names` */
} field_store;

typedef struct field {
    const char *section, *key; /* section NULL: at the top */
    field_store store;
    size_t offset;            /* in the struct that fields_read fills */
    double least, most;       /* of the file's value */
    int64_t scale;            /* FIELD_INT64 */
    const char *const *names; /* FIELD_NAME: NULL-terminated */
    bool optional;            /* absent: left as it is */
} field;

/* Fill *to from the document by `table`. Keys that are neither in the table nor in `other_keys`
 * (NULL-terminated, at the top) are refused, and so is a `schema` other than `schema`. `to` may be
 * partly written on failure: it is the caller's scratch. HONE_BAD_MODEL, HONE_BAD_TEXT. */
hone_status fields_read(const document *d, const field *table, size_t len,
                        const char *const *other_keys, int64_t schema, void *to, hone_error *error);

/* The value of a required key that must be of that kind. HONE_BAD_MODEL. */
hone_status fields_require(const document *d, const document_node *map, const char *key,
                           document_kind kind, const document_node **out, hone_error *error);

/* Copy a short text, NUL included. HONE_BAD_MODEL when empty or too long. */
hone_status fields_copy_text(const document *d, const document_node *node, char *to,
                             size_t capacity, hone_error *error);

#endif
