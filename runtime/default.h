/* default.h - the analytical choice: legal configs ranked by the performance model, before anything
 * is compiled.
 *
 * What serving falls back to, and what the tuner measures first. Reads plans, so that a new
 * template needs no C; a manifest's `estimate:` makes it sharper. Deterministic: the same inputs
 * give the same order everywhere. */
#ifndef HONE_RUNTIME_DEFAULT_H
#define HONE_RUNTIME_DEFAULT_H

#include "models/perf.h"
#include "templates/manifest.h"

/* How many of the best serving tries: one that ptxas speaks against gives way to the next. */
#define DEFAULT_TRIES 4

typedef struct default_choice {
    const manifest *m; /* borrowed from the templates */
    config config;
    double ns; /* modelled; for ranking only */
    perf_bound bound;
} default_choice;

/* The best `*count` (at most `capacity`) legal candidates of all templates that serve the problem
 * on g->facts, best first; ties go to the template's name, then to the config's values. At most
 * `budget` configs of each template are looked at (0: 4096); of a larger space half of them are a
 * sample with a fixed seed, the rest lie beside the best so far. *count = 0 when nothing serves it.
 * `legal`, when given, is how many legal configs were looked at in all. Thread-safe. */
hone_status default_rank(const templates *t, const hone_problem *problem, const gpu *g,
                         uint64_t budget, default_choice *out, size_t capacity, size_t *count,
                         uint64_t *legal, hone_error *error);

/* What the ranking would say of one candidate: *out and *fits. *fits is false, and *out as it was,
 * where the candidate is not legal for the problem, or not one block fits. Thread-safe. */
hone_status default_judge(const manifest *m, const config *c, const hone_problem *problem,
                          const gpu *g, default_choice *out, bool *fits, hone_error *error);

#endif
