/* space_import.h - spaces that other tuners define: names, values and Python restrictions as JSON.
 *
 * {"params": {"MWG": [16, 32], ...}, "restrictions": ["MWG % 8 == 0", ...], "constants": {...}};
 * other keys describe and are not read. */
#ifndef HONE_TEMPLATES_SPACE_IMPORT_H
#define HONE_TEMPLATES_SPACE_IMPORT_H

#include "templates/manifest.h"

/* At most this much JSON. */
#define SPACE_IMPORT_BYTES (256u << 10)

/* A definition as a manifest without op or launches, in the parameters' order: space_open takes it
 * with NULL for problem and device, and constructs it as it does every other. Values are whole
 * numbers, true and false. `source` names the input in errors. HONE_BAD_TEXT for what is no such
 * definition, HONE_LIMIT past a manifest's limits (32 parameters, 256 values each, 64 rules).
 * Thread-safe. Caller frees *out with manifest_free. */
hone_status space_import(const char *source, const char *text, size_t len, manifest **out,
                         hone_error *error);

#endif
