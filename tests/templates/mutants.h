/* mutants.h - faulty variants of the templates, each a small textual change, that verification must
 * refuse.
 *
 * Each row names a problem and a config of it for which the fault shows. `find` stands exactly once
 * in `file`. */
#ifndef HONE_TESTS_TEMPLATES_MUTANTS_H
#define HONE_TESTS_TEMPLATES_MUTANTS_H

#include "templates/manifest.h"

typedef struct mutant {
    const char *name;
    const char *template_name; /* "fp8_gemm/mma_sync" */
    const char *file;          /* below templates/: the template's source or a device header */
    const char *find, *replace;
    const char *problem; /* text form */
    const char *config;  /* "block_m=64 ..." */
    const char *why;     /* the fault in the field that it stands for */
} mutant;

extern const mutant mutants[];
extern const size_t mutants_len;

/* How often `find` stands in `text`. */
size_t mutant_count(const char *text, const char *find);

/* The file of a template that a mutant changes: its source, or one of its headers. NULL when there
 * is none. */
const char *mutant_file(const template_source *source, const mutant *m);

/* A template's code with the change made; `source` is what to compile. */
typedef struct mutated {
    template_source source;
    const char **headers; /* owned */
    char *text;           /* owned: the changed file */
} mutated;

/* Borrows all but the changed file from `source`, which must outlive it. The test fails when the
 * change cannot be made. Freed by mutant_free. */
mutated mutant_apply(const template_source *source, const mutant *m);
void mutant_free(mutated *made);

#endif
