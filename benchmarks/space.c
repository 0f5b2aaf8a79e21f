/* space.c - bench_space: how long it takes to open, walk, count and draw from a space, and to find
 * a config's neighbours.
 *
 * Without files: a space of 10^12 raw combinations, with bars. With definitions (space_import.h) it
 * prints a line of JSON for each, the best of five, of processor time. */
#include "benchmarks/rows.h"
#include "core/status.h"
#include "templates/space.h"
#include "templates/space_import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 5, DRAWS = 1000, NEIGHBOURS = 1024 };
#define TEXT_MOST (SPACE_IMPORT_BYTES + 1u)
/* Steps that counting may take; past it draws are not uniform. */
#define COUNT_BUDGET 20000000u

/* Milliseconds, but for the counts. */
typedef struct measured {
    double open, walk, count, draws, neighbours;
    double raw, legal, near;
    bool uniform;
} measured;

static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_space: %s: %s\n", error->source, error->message);
        exit(1);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void keep_least(double *least, double from)
{
    const double ms = now() - from;

    *least = *least == 0 || ms < *least ? ms : *least;
}

/* Every legal config once, as Kernel Tuner's solver lists them. */
static double walk(space *s, double *ms)
{
    hone_error error = {0};
    const double from = now();
    bool found = true;
    uint64_t legal = 0;
    config c;

    for (; found; legal += found) {
        must(space_next(s, 0, &c, &found, &error), &error);
    }
    keep_least(ms, from);
    return (double)legal;
}

/* From a space that has just been opened: counts are not known yet. */
static void count_and_draw(space *s, measured *out)
{
    static config drawn[DRAWS], near[NEIGHBOURS];
    hone_error error = {0};
    uint64_t count = 0, seed = 1, around = 0;
    bool found = true;
    double from = now();
    hone_status status = space_count(s, COUNT_BUDGET, &count, &error);

    must(status == HONE_LIMIT ? HONE_OK : status, &error);
    keep_least(&out->count, from);
    from = now();
    for (int i = 0; i < DRAWS && found; i++) {
        must(space_draw(s, &seed, COUNT_BUDGET, &drawn[i], &found, &out->uniform, &error), &error);
    }
    keep_least(&out->draws, from);
    from = now();
    for (int i = 0; i < DRAWS && found; i++) {
        size_t len = 0;
        must(space_neighbours(s, &drawn[i], SPACE_ANY_VALUE, near, NEIGHBOURS, &len, &error),
             &error);
        around += len;
    }
    keep_least(&out->neighbours, from);
    out->near = (double)around / DRAWS;
}

/* Opening is reading the definition as well. */
static measured measure(const char *name, const char *text, size_t len, bool walked)
{
    measured out = {0};

    for (int i = 0; i < REPEATS; i++) {
        hone_error error = {0};
        manifest *m = NULL;
        space *s = NULL;
        const double from = now();
        must(space_import(name, text, len, &m, &error), &error);
        must(space_open(m, NULL, NULL, &s, &error), &error);
        keep_least(&out.open, from);
        out.raw = space_raw_size(s);
        if (walked) {
            out.legal = walk(s, &out.walk);
        }
        space_close(s);
        must(space_open(m, NULL, NULL, &s, &error), &error);
        count_and_draw(s, &out);
        space_close(s);
        manifest_free(m);
    }
    return out;
}

static void measure_file(const char *path)
{
    static char text[TEXT_MOST];
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fprintf(stderr, "bench_space: cannot read %s\n", path);
        exit(1);
    }
    const size_t len = fread(text, 1, sizeof text, file);
    fclose(file);
    const measured m = measure(path, text, len, true);
    printf("{\"file\": \"%s\", \"raw\": %.0f, \"legal\": %.0f, \"open_ms\": %.4f, \"walk_ms\": "
           "%.4f, \"count_ms\": %.4f, \"draws_ms\": %.4f, \"uniform\": %s, \"neighbours\": %.1f, "
           "\"neighbours_ms\": %.4f}\n",
           path, m.raw, m.legal, m.open, m.walk, m.count, m.draws, m.uniform ? "true" : "false",
           m.near, m.neighbours);
}

static void add_rows(json_t *rows)
{
    char text[2048];
    size_t used = (size_t)sprintf(text, "{\"params\": {");

    for (int p = 0; p < 12; p++) {
        used += (size_t)sprintf(text + used, "%s\"p%d\": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]",
                                p > 0 ? ", " : "", p);
    }
    used += (size_t)sprintf(text + used,
                            "}, \"restrictions\": [\"p0 <= p1 and p2 <= p3\", \"p4 * p5 <= 1024\", "
                            "\"32 <= p6 * p7 * p8 <= 4096\", \"p9 %% p10 == 0 or p11 > 4\"]}");
    const measured m = measure("10^12", text, used, false);
    rows_add(rows, "a space of 10^12 raw combinations is opened in", m.open, "ms", ROWS_AT_MOST, 5);
    rows_add(rows, "its configs are counted in", m.count, "ms", ROWS_NO_BAR, 0);
    rows_add(rows, "1,000 uniform draws from it take", m.uniform ? m.draws : 1e9, "ms",
             ROWS_AT_MOST, 1000);
    rows_add(rows, "the neighbours of 1,000 configs take", m.neighbours, "ms", ROWS_NO_BAR, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] != '-') {
        for (int i = 1; i < argc; i++) {
            measure_file(argv[i]);
        }
        return 0;
    }
    const bool json = rows_want_json(argc, argv);
    json_t *rows = json_array();
    add_rows(rows);
    return rows_print(rows, json) ? 0 : 1;
}
