/* guided.c - observations of a space, and what a forest makes of them. */
#include "tuner/guided.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The forest is grown on the best half of this many observations and on an even choice of the rest.
 */
enum { ROWS_MOST = 512 };
/* Times past this quantile differ little: where they are slow matters, not how slow. */
static const double slow_quantile = 0.8;
static const float slow_share = 0.1f;
/* A failed config counts as slower than that quantile, by this share of what it is above the best.
 */
static const float failed_share = 0.3f;

bool guided_observe(guided_arm *arm, const config *c, double ns)
{
    if (arm->len == arm->capacity) {
        const size_t capacity = arm->capacity == 0 ? 64 : arm->capacity * 2;
        const size_t width = arm->features.len > 0 ? arm->features.len : 1;
        float *x = realloc(arm->x, capacity * width * sizeof *x);
        arm->x = x != NULL ? x : arm->x;
        float *logs = realloc(arm->logs, capacity * sizeof *logs);
        arm->logs = logs != NULL ? logs : arm->logs;
        if (x == NULL || logs == NULL) {
            return false;
        }
        arm->capacity = capacity;
    }
    features_of(&arm->features, c, arm->x + arm->len * arm->features.len);
    arm->logs[arm->len++] = isfinite(ns) && ns > 0 ? (float)log(ns) : INFINITY;
    return true;
}

typedef struct ranked {
    float log;
    uint32_t row;
} ranked;

static int by_time(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    if (x->log != y->log) {
        return x->log < y->log ? -1 : 1;
    }
    return x->row < y->row ? -1 : 1;
}

/* Times as the forest sees them: what is slow and what failed are drawn together. */
static float flattened(const ranked *sorted, size_t valid, float log)
{
    const float best = sorted[0].log;
    const float slow = sorted[(size_t)(slow_quantile * (double)(valid - 1))].log;

    if (!isfinite(log)) {
        return slow + failed_share * (slow - best);
    }
    return log > slow ? slow + slow_share * (log - slow) : log;
}

static bool make_room(guided_arm *arm, size_t rows)
{
    const size_t width = arm->features.len > 0 ? arm->features.len : 1;
    float *x = realloc(arm->fit_x, rows * width * sizeof *x);

    arm->fit_x = x != NULL ? x : arm->fit_x;
    float *y = realloc(arm->fit_y, rows * sizeof *y);
    arm->fit_y = y != NULL ? y : arm->fit_y;
    return x != NULL && y != NULL;
}

bool guided_fit(guided_arm *arm, uint64_t seed)
{
    const size_t rows = arm->len < ROWS_MOST ? arm->len : ROWS_MOST, width = arm->features.len;
    const size_t best = rows < ROWS_MOST ? rows : ROWS_MOST / 2;
    size_t valid = 0;

    if (arm->len == 0) {
        return true;
    }
    ranked *sorted = malloc(arm->len * sizeof *sorted);
    if (sorted == NULL || !make_room(arm, rows)) {
        free(sorted);
        return false;
    }
    for (size_t i = 0; i < arm->len; i++) {
        sorted[i] = (ranked){arm->logs[i], (uint32_t)i};
        valid += isfinite(arm->logs[i]);
    }
    qsort(sorted, arm->len, sizeof *sorted, by_time);
    for (size_t i = 0; i < rows; i++) {
        const size_t at = i < best ? i : best + (i - best) * (arm->len - best) / (rows - best);
        for (size_t k = 0; k < width; k++) {
            arm->fit_x[k * rows + i] = arm->x[sorted[at].row * width + k];
        }
        arm->fit_y[i] = valid > 0 ? flattened(sorted, valid, sorted[at].log) : 0;
    }
    free(sorted);
    return width == 0 || forest_grow(&arm->model, arm->fit_x, arm->fit_y, rows, width, seed);
}

double guided_ask(const guided_arm *arm, const config *c, double daring)
{
    float row[FEATURES_MOST], mean = 0, spread = 0;

    if (arm->model.nodes == NULL) {
        return -1e9;
    }
    features_of(&arm->features, c, row);
    forest_ask(&arm->model, row, &mean, &spread);
    return (double)mean - daring * (double)spread;
}

void guided_forget(guided_arm *arm)
{
    free(arm->x);
    free(arm->logs);
    free(arm->fit_x);
    free(arm->fit_y);
    forest_free(&arm->model);
    *arm = (guided_arm){0};
}
