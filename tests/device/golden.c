/* golden.c - probe results as text files, and their differences. */
#include "tests/device/golden.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_WORDS = 1 << 26 }; /* in one file: what a damaged header may ask for */

hone_status golden_make(const char *probe, uint32_t cases, uint32_t in_each, uint32_t out_each,
                        golden *out, hone_error *error)
{
    golden g = {.cases = cases, .in_each = in_each, .out_each = out_each};

    if ((uint64_t)cases * in_each > GOLDEN_WORDS || (uint64_t)cases * out_each > GOLDEN_WORDS) {
        return status_set(error, HONE_LIMIT, probe, 0, "more than %d words", GOLDEN_WORDS);
    }
    snprintf(g.probe, sizeof g.probe, "%s", probe);
    g.in = calloc((size_t)cases * in_each + 1, sizeof *g.in);
    g.out = calloc((size_t)cases * out_each + 1, sizeof *g.out);
    if (g.in == NULL || g.out == NULL) {
        golden_free(&g);
        return status_set(error, HONE_NO_MEMORY, probe, 0, "%u cases", cases);
    }
    *out = g;
    return HONE_OK;
}

void golden_free(golden *g)
{
    free(g->in);
    free(g->out);
    *g = (golden){0};
}

static void write_words(FILE *f, const uint32_t *words, size_t len)
{
    for (size_t n = 0; n < len; n++) {
        fprintf(f, "%08" PRIx32 "%c", words[n], n % 8 == 7 || n + 1 == len ? '\n' : ' ');
    }
}

static hone_status path_of(const char *folder, const char *probe, char *path, size_t capacity,
                           hone_error *error)
{
    int n = snprintf(path, capacity, "%s/%s.golden", folder, probe);
    return n > 0 && (size_t)n < capacity
               ? HONE_OK
               : status_set(error, HONE_BAD_ARGUMENT, folder, 0, "the path is too long");
}

hone_status golden_write(const golden *g, const char *folder, hone_error *error)
{
    hone_status status = HONE_OK;
    char path[512];
    FILE *f = NULL;

    TRY(path_of(folder, g->probe, path, sizeof path, error));
    f = fopen(path, "we");
    if (f == NULL) {
        return status_set(error, HONE_IO, path, 0, "cannot be written");
    }
    fprintf(f, "hone-golden 1 %s %u %u %u %s\n", g->probe, g->cases, g->in_each, g->out_each,
            g->device);
    write_words(f, g->in, (size_t)g->cases * g->in_each);
    write_words(f, g->out, (size_t)g->cases * g->out_each);
    bool bad = ferror(f) != 0;
    bad = fclose(f) != 0 || bad;
    f = NULL;
    if (bad) {
        status = status_set(error, HONE_IO, path, 0, "writing failed: is the disk full?");
    }
done:
    return status;
}

static bool read_words(FILE *f, uint32_t *words, size_t len)
{
    for (size_t n = 0; n < len; n++) {
        if (fscanf(f, "%" SCNx32, &words[n]) != 1) {
            return false;
        }
    }
    return true;
}

hone_status golden_read(const char *folder, const char *probe, golden *out, hone_error *error)
{
    hone_status status = HONE_OK;
    char path[512], name[32] = "", device[64] = "";
    uint32_t cases = 0, in_each = 0, out_each = 0;
    golden g = {0};
    FILE *f = NULL;

    TRY(path_of(folder, probe, path, sizeof path, error));
    f = fopen(path, "re");
    if (f == NULL) {
        return status_set(error, HONE_IO, path, 0, "cannot be read");
    }
    if (fscanf(f, "hone-golden 1 %31s %u %u %u %63[^\n]", name, &cases, &in_each, &out_each,
               device) != 5 ||
        strcmp(name, probe) != 0) {
        status = status_set(error, HONE_BAD_TEXT, path, 1, "not the results of probe %s", probe);
        goto done;
    }
    TRY(golden_make(probe, cases, in_each, out_each, &g, error));
    snprintf(g.device, sizeof g.device, "%s", device);
    if (!read_words(f, g.in, (size_t)cases * in_each) ||
        !read_words(f, g.out, (size_t)cases * out_each)) {
        status = status_set(error, HONE_BAD_TEXT, path, 0, "a word is missing or is none");
        goto done;
    }
    *out = g;
    g = (golden){0};
done:
    golden_free(&g);
    if (f != NULL) {
        fclose(f);
    }
    return status;
}

/* fp32 numbers in order as integers, so that neighbours differ by one. */
static int64_t rank_of(uint32_t bits)
{
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffff) : (int64_t)bits;
}

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

static uint64_t distance(uint32_t a, uint32_t b)
{
    if (is_nan(a) || is_nan(b)) {
        return is_nan(a) && is_nan(b) ? 0 : UINT64_MAX;
    }
    return (uint64_t)llabs(rank_of(a) - rank_of(b));
}

hone_status golden_compare(const golden *a, const golden *b, golden_difference *out,
                           hone_error *error)
{
    size_t ins = (size_t)a->cases * a->in_each, outs = (size_t)a->cases * a->out_each;
    golden_difference d = {.words = outs};

    if (a->cases != b->cases || a->in_each != b->in_each || a->out_each != b->out_each ||
        memcmp(a->in, b->in, ins * sizeof *a->in) != 0) {
        return status_set(error, HONE_BAD_ARGUMENT, a->probe, 0,
                          "the two were not given the same inputs: made by other versions");
    }
    for (size_t n = 0; n < outs; n++) {
        if (a->out[n] == b->out[n]) {
            continue;
        }
        uint64_t ulps = distance(a->out[n], b->out[n]);
        d.first = d.differing++ == 0 ? n : d.first;
        d.ulps = ulps > d.ulps ? ulps : d.ulps;
    }
    *out = d;
    return HONE_OK;
}
