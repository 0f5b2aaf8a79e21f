/* names.h - what models/CMakeLists.txt found below gpu/ and llm/: sorted names, without folder and
 * extension. */
#ifndef HONE_MODELS_NAMES_H
#define HONE_MODELS_NAMES_H

#include "core/embedded.h"
#include "core/status.h"

extern const embedded_file models_files[];
extern const char *const models_gpu_names[]; /* NULL-terminated */
extern const char *const models_llm_names[];

size_t models_names_len(const char *const *names);

/* The embedded file <folder>/<name>.yaml, or NULL. */
const embedded_file *models_file(const char *folder, const char *name);

/* HONE_UNKNOWN: no such `what`, with the names that there are. */
hone_status models_unknown(const char *what, const char *name, const char *const *names,
                           hone_error *error);

#endif
