/* recorded.c - read recorded spaces, and score runs on them. */
#include "benchmarks/recorded.h"

#include "templates/space_import.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LINE_MOST 4096

static _Noreturn void fail(const char *path, const char *what)
{
    fprintf(stderr, "recorded: %s: %s\n", path, what);
    exit(1);
}

static void *must_have(void *memory)
{
    if (memory == NULL) {
        fail("memory", "none left");
    }
    return memory;
}

static manifest *read_definition(const char *path)
{
    hone_error error = {0};
    manifest *m = NULL;
    char *text = must_have(malloc(SPACE_IMPORT_BYTES + 1u));
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fail(path, "cannot be read");
    }
    const size_t len = fread(text, 1, SPACE_IMPORT_BYTES + 1u, file);
    fclose(file);
    if (space_import(path, text, len, &m, &error) != HONE_OK) {
        fail(path, error.message);
    }
    free(text);
    return m;
}

static uint64_t hash(const config *c)
{
    uint64_t h = 0;

    for (uint32_t i = 0; i < c->len; i++) {
        h = (h ^ (uint64_t)c->value[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

/* The place that holds `c`, or the empty one where it belongs. */
static size_t place_of(const recorded *r, const config *c)
{
    size_t at = hash(c) & (r->places_len - 1);

    while (r->places[at] != 0 &&
           memcmp(r->configs[r->places[at] - 1].value, c->value, c->len * sizeof *c->value) != 0) {
        at = (at + 1) & (r->places_len - 1);
    }
    return at;
}

size_t recorded_row(const recorded *r, const config *c)
{
    const size_t at = place_of(r, c);

    if (r->places[at] == 0) {
        fail(r->space, "a config that was not recorded");
    }
    return r->places[at] - 1;
}

/* Which parameter each column is; MANIFEST_MAX_PARAMS + 1: the time; + 2: neither. */
static uint32_t read_header(const recorded *r, char *line, uint32_t columns[64])
{
    uint32_t len = 0, params = 0;

    for (char *save = NULL, *name = strtok_r(line, ",\r\n", &save); name != NULL && len < 64;
         name = strtok_r(NULL, ",\r\n", &save)) {
        columns[len] =
            strcmp(name, "time_ms") == 0 ? MANIFEST_MAX_PARAMS + 1 : MANIFEST_MAX_PARAMS + 2;
        for (uint32_t p = 0; p < manifest_params_len(r->m); p++) {
            if (strcmp(manifest_param_name(r->m, p), name) == 0) {
                columns[len] = p;
                params++;
            }
        }
        len++;
    }
    return params == manifest_params_len(r->m) ? len : 0;
}

static void read_row(recorded *r, char *line, const uint32_t *columns, uint32_t len)
{
    config *c = &r->configs[r->len];
    uint32_t at = 0;

    c->len = manifest_params_len(r->m);
    r->ms[r->len] = HUGE_VAL;
    for (char *save = NULL, *field = strtok_r(line, ",\r\n", &save); field != NULL && at < len;
         field = strtok_r(NULL, ",\r\n", &save), at++) {
        if (columns[at] < MANIFEST_MAX_PARAMS) {
            c->value[columns[at]] = strtoll(field, NULL, 10);
        } else if (columns[at] == MANIFEST_MAX_PARAMS + 1 && strcmp(field, "invalid") != 0) {
            r->ms[r->len] = strtod(field, NULL);
        }
    }
    r->len++;
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void make_index(recorded *r)
{
    r->places_len = 1;
    while (r->places_len < r->len * 2) {
        r->places_len *= 2;
    }
    r->places = must_have(calloc(r->places_len, sizeof *r->places));
    r->sorted = must_have(calloc(r->len + 1, sizeof *r->sorted));
    for (size_t i = 0; i < r->len; i++) {
        r->places[place_of(r, &r->configs[i])] = (uint32_t)i + 1;
        if (isfinite(r->ms[i])) {
            r->sorted[r->valid++] = r->ms[i];
        }
    }
    qsort(r->sorted, r->valid, sizeof *r->sorted, by_time);
}

static void read_space(const char *folder, const char *file, recorded *r)
{
    char path[1024], line[LINE_MOST];
    uint32_t columns[64];
    size_t capacity = 0;
    const char *gap = strstr(file, "__");

    *r = (recorded){0};
    snprintf(r->space, sizeof r->space, "%.*s", (int)(gap - file), file);
    snprintf(r->gpu, sizeof r->gpu, "%.*s", (int)(strlen(gap) - 2 - strlen(".csv.gz")), gap + 2);
    snprintf(path, sizeof path, "%s/spaces/%s.json", folder, r->space);
    r->m = read_definition(path);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    gzFile csv = gzopen(path, "rb");
    if (csv == NULL || gzgets(csv, line, sizeof line) == NULL) {
        fail(path, "cannot be read");
    }
    const uint32_t len = read_header(r, line, columns);
    if (len == 0) {
        fail(path, "its columns are not the definition's parameters");
    }
    while (gzgets(csv, line, sizeof line) != NULL) {
        if (r->len == capacity) {
            capacity = capacity == 0 ? 4096 : capacity * 2;
            r->configs = must_have(realloc(r->configs, capacity * sizeof *r->configs));
            r->ms = must_have(realloc(r->ms, capacity * sizeof *r->ms));
            memset(&r->configs[r->len], 0, (capacity - r->len) * sizeof *r->configs);
        }
        read_row(r, line, columns, len);
    }
    gzclose(csv);
    make_index(r);
    if (r->valid == 0) {
        fail(path, "no row has a time");
    }
}

static bool wanted(const struct dirent *entry, const char *only)
{
    static const char end[] = ".csv.gz";
    const size_t len = strlen(entry->d_name);

    if (len < sizeof end || strcmp(entry->d_name + len - (sizeof end - 1), end) != 0 ||
        strstr(entry->d_name, "__") == NULL) {
        return false;
    }
    const size_t name = len - (sizeof end - 1);
    for (const char *at = only; at != NULL && *at != '\0';) {
        const size_t own = strcspn(at, ",");
        if (own == name && memcmp(at, entry->d_name, name) == 0) {
            return true;
        }
        at += own + (at[own] == ',');
    }
    return only == NULL;
}

size_t recorded_open(const char *folder, const char *only, recorded **out)
{
    struct dirent **entries = NULL;
    const int found = scandir(folder, &entries, NULL, alphasort);
    size_t len = 0;

    if (found < 0) {
        fail(folder, "cannot be listed");
    }
    recorded *list = must_have(calloc((size_t)found + 1, sizeof *list));
    for (int i = 0; i < found; i++) {
        if (wanted(entries[i], only)) {
            read_space(folder, entries[i]->d_name, &list[len++]);
        }
        free(entries[i]);
    }
    free(entries);
    *out = list;
    return len;
}

void recorded_free(recorded *list, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        manifest_free(list[i].m);
        free(list[i].configs);
        free(list[i].ms);
        free(list[i].sorted);
        free(list[i].places);
    }
    free(list);
}

/* ---- Scoring. ------------------------------------------------------------------------------- */

static double median_of(const recorded *r)
{
    return (r->sorted[(r->valid - 1) / 2] + r->sorted[r->valid / 2]) / 2;
}

size_t recorded_cutoff(const recorded *r, double p)
{
    const double target = r->sorted[0] + (median_of(r) - r->sorted[0]) * (1 - p);
    size_t i = 0; /* from the worst */

    while (i < r->valid && r->sorted[r->valid - 1 - i] > target) {
        i++;
    }
    return (size_t)ceil((double)i / (double)(r->valid + 1 - i));
}

/* The expected best of k random draws without replacement, by rank. */
static double baseline(const recorded *r, size_t k)
{
    const double n = (double)r->valid;
    double rank = rint((double)k * (n + 1) / (double)(k + 1));

    rank = rank > n - 1 ? n - 1 : rank;
    return r->sorted[r->valid - 1 - (size_t)rank];
}

/* Rank of the best of the first k rows of a run; the last one when none has a time. */
static double rank_after(const recorded *r, const uint32_t *trace, size_t len, size_t k)
{
    double best = HUGE_VAL;
    size_t low = 0, high = r->valid;

    for (size_t i = 0; i < len && i < k; i++) {
        best = fmin(best, r->ms[trace[i]]);
    }
    if (!isfinite(best)) {
        return (double)(r->valid - 1);
    }
    while (low < high) { /* the first that is no less */
        const size_t mid = (low + high) / 2;
        if (r->sorted[mid] < best) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return (double)low;
}

void recorded_score(const recorded *r, const uint32_t *traces, const size_t *lens, size_t runs,
                    size_t longest, double *out, size_t points)
{
    size_t first = recorded_cutoff(r, 0.5), last = recorded_cutoff(r, 0.95);

    first = first > 1 ? first : 1;
    last = last > first + 2 ? last : first + 2;
    const size_t len = last - first + 1;
    double *curve = must_have(malloc(len * sizeof *curve));
    for (size_t i = 0; i < len; i++) {
        double ranks = 0;
        for (size_t k = 0; k < runs; k++) {
            ranks += rank_after(r, traces + k * longest, lens[k], first + i);
        }
        const double random = baseline(r, first + i);
        const double own = r->sorted[(size_t)rint(ranks / (double)runs)];
        curve[i] = (own - random) / (r->sorted[0] - random);
    }
    for (size_t i = 0; i < points; i++) {
        const double x = (double)i / (double)(points - 1) * (double)(len - 1);
        const size_t at = x < (double)(len - 1) ? (size_t)x : len - 2;
        out[i] = curve[at] + (x - (double)at) * (curve[at + 1] - curve[at]);
    }
    free(curve);
}
