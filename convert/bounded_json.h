/* bounded_json.h - strangers' JSON: what it may cost is known before jansson sees it. */
#ifndef HONE_CONVERT_BOUNDED_JSON_H
#define HONE_CONVERT_BOUNDED_JSON_H

#include "core/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define BOUNDED_JSON_VALUES (UINT64_C(1) << 20)  /* commas, lists and objects */
#define BOUNDED_JSON_FILE   (UINT64_C(32) << 20) /* bytes of a file */

/* Parse one object of `len` bytes (not NUL-terminated). Refuses, HONE_BAD_TEXT: what is no object,
 * no JSON, not UTF-8, nested past 16 or names a key twice; HONE_LIMIT: over 2^20 commas, lists and
 * objects. Caller drops *out. */
hone_status bounded_json_parse(const char *source, const char *text, size_t len, json_t **out,
                               hone_error *error);

/* The same of a file of at most 32 MiB. HONE_IO when it cannot be read. */
hone_status bounded_json_read(const char *path, json_t **out, hone_error *error);

/* Write `text` as a JSON string. False when it is no UTF-8, or memory or the stream gives out. */
bool bounded_json_print(FILE *to, const char *text);

#endif
