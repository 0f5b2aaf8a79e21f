/* document.h - a bounded reader of YAML: our manifests, model and GPU descriptions.
 *
 * Reads libyaml *events* (libyaml's own loader is quadratic on open brackets). Refuses, with the
 * line: more than 64 KiB, depth over 16, over 10,000 events, aliases, anchors, tags, merge keys,
 * duplicate keys, several documents, NUL bytes and bytes that are not UTF-8 (reliability.md 4).
 * Maps keep the order of the file. */
#ifndef HONE_CORE_DOCUMENT_H
#define HONE_CORE_DOCUMENT_H

#include "core/status.h"

#include <stdbool.h>

typedef enum document_kind { DOCUMENT_SCALAR, DOCUMENT_LIST, DOCUMENT_MAP } document_kind;

typedef struct document_node {
    document_kind kind;
    int line;                          /* 1-based */
    bool quoted;                       /* a quoted scalar: always text */
    const char *text;                  /* SCALAR: NUL-terminated */
    size_t len;                        /* SCALAR: bytes; LIST: items; MAP: pairs */
    const struct document_node *items; /* LIST: len nodes; MAP: len values */
    const struct document_node *keys;  /* MAP: len scalars */
} document_node;

typedef struct document document;

/* `source` names the input in errors. The nodes live until document_free. */
hone_status document_parse(const char *source, const char *text, size_t len, document **out,
                           hone_error *error);
void document_free(document *d); /* NULL is fine */
const document_node *document_root(const document *d);
const char *document_source(const document *d);

/* The value of `key`, or NULL. */
const document_node *document_get(const document_node *map, const char *key);

/* Refuse keys that are not in `known` (NULL-terminated), naming key and line. HONE_BAD_TEXT. */
hone_status document_known_keys(const document *d, const document_node *map,
                                const char *const *known, hone_error *error);

/* Strict scalars: base-10 integers (no leading zero, no sign but '-'), decimal reals, true/false
 * only. */
hone_status document_int(const document *d, const document_node *node, int64_t *out,
                         hone_error *error);
hone_status document_real(const document *d, const document_node *node, double *out,
                          hone_error *error);
hone_status document_bool(const document *d, const document_node *node, bool *out,
                          hone_error *error);
/* A scalar's text, borrowed. */
hone_status document_text(const document *d, const document_node *node, const char **out,
                          hone_error *error);

#endif
