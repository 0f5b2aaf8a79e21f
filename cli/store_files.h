/* store_files.h - `hone store export` and `hone store import`. */
#ifndef HONE_CLI_STORE_FILES_H
#define HONE_CLI_STORE_FILES_H

#include "cli/options.h"

#define STORE_FILES_FORMATS "cachefile, t4"
#define STORE_FILES_ENGINES "vllm, sglang"

/* What only these two actions take; NULL: not given. */
typedef struct store_files {
    const char *format, *output, *template_name;
    bool dry_run, allow_modelled;
    const char **files; /* owned list of borrowed texts */
    size_t files_len;
} store_files;

/* Write the chosen candidates of the store at `path`. */
hone_status store_files_export(const store_files *f, const options *o, const char *path,
                               hone_error *error);

/* Read each file into the store at `path`, all of its rows or none, one file after the other. */
hone_status store_files_import(const store_files *f, const options *o, const char *path,
                               hone_error *error);

#endif
