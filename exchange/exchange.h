/* exchange.h - what a store and other tuners' files have in common: spaces with their candidates.
 *
 * Formats, what each keeps and what is lost: docs/store_formats.md. What is read here is a
 * stranger's: bounded, checked field by field, refused with file and place, and never trusted as
 * proved (store_import_rows). One thread at a time for a set. */
#ifndef HONE_EXCHANGE_EXCHANGE_H
#define HONE_EXCHANGE_EXCHANGE_H

#include "cache/store.h"
#include "core/arena.h"
#include "templates/manifest.h"

/* A candidate, with the outcome that it had where it was tried. */
typedef struct exchange_row {
    const char *config; /* "block_m=128 stages=4" */
    int64_t values[MANIFEST_MAX_PARAMS];
    store_result result;
    uint8_t template_digest[32]; /* zeros: not known */
    const char *nvrtc;
    int32_t driver;
    int64_t created_ms; /* Unix time */
    bool imported;      /* was already read from a file */
} exchange_row;

/* All candidates of one problem, device, template and list of parameters: what a cachefile and a T4
 * file hold. */
typedef struct exchange_space {
    const char *problem_text;
    hone_problem problem;
    device_kind kind;
    const char *template_name;
    const char *params[MANIFEST_MAX_PARAMS];
    size_t params_len;
    exchange_row *rows;
    size_t rows_len, rows_capacity;
} exchange_space;

/* Begin with all zeros. All texts lie in `memory`. */
typedef struct exchange_set {
    arena memory;
    exchange_space *spaces;
    size_t spaces_len, spaces_capacity;
    uint64_t inflight; /* rows left out: not finished */
    uint64_t odd;      /* rows left out: no config that files can hold */
} exchange_set;
void exchange_free(exchange_set *set);

/* Which rows of a store. NULL device and no problems: all. */
typedef struct exchange_choice {
    const device_kind *device; /* an emulated one and its twin are two */
    const hone_problem *problems;
    size_t problems_len;
} exchange_choice;

/* Read a store's finished candidates, in the order of their ids. Caller frees *out. */
hone_status exchange_collect(store *s, const exchange_choice *choice, exchange_set *out,
                             hone_error *error);

/* The file name of a space: "fp8_gemm.mma_sync-NVIDIA_H20-sm_90a-78-0123456789abcdef.json"; the
 * digits digest problem, device, template and parameters. Never parsed. `name` holds 256 bytes. */
void exchange_file_name(const exchange_space *space, char name[256]);

/* ---- Formats of a space. ----------------------------------------------------------------------
 */

typedef enum exchange_format { EXCHANGE_CACHEFILE = 1, EXCHANGE_T4 } exchange_format;

/* Write a space as a file, replacing it whole or not at all: a temporary file beside it is written,
 * flushed to the disk and renamed. HONE_IO; HONE_TAKEN when another process is writing it. The
 * values that a parameter may have come from the manifest (may be NULL), else from the rows. */
hone_status exchange_write(const exchange_space *space, exchange_format format, const manifest *m,
                           const char *path, hone_error *error);

/* Replace a file by these bytes, whole or not at all, as exchange_write does. */
hone_status exchange_replace_file(const char *path, const char *bytes, size_t len,
                                  hone_error *error);

/* What a file that hone did not write does not say. Zero: nothing. */
typedef struct exchange_given {
    const hone_problem *problem;
    const device_kind *device;
    const char *template_name;
} exchange_given;

/* Read a file into a set of one space. A cachefile may have been cut short. `given` stands in for
 * what the file does not say; where both speak, they must agree. HONE_IO, HONE_LIMIT (over 32 MiB,
 * 2^20 values), HONE_BAD_TEXT with the line or the row. *torn (may be NULL): the end was cut off.
 * Caller frees *out. */
hone_status exchange_read(const char *path, exchange_format format, const exchange_given *given,
                          exchange_set *out, bool *torn, hone_error *error);

/* ---- Into a store. ----------------------------------------------------------------------------
 */

typedef struct exchange_counts {
    store_imported rows;
    uint64_t unknown; /* left out: a template or config that this build does not have */
    uint64_t current; /* of the rest: proved elsewhere with this build's text of the template */
} exchange_counts;

/* Import a set's rows, all or none; `command` is kept with them. */
hone_status exchange_import(const exchange_set *set, const templates *t, store *s,
                            const char *command, exchange_counts *out, hone_error *error);

/* What exchange_import would do, of a store opened to read; NULL: there is none yet. */
hone_status exchange_forecast(const exchange_set *set, const templates *t, store *s,
                              exchange_counts *out, hone_error *error);

#endif
