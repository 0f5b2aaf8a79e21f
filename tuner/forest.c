/* forest.c - grow trees on all rows: each node tries some features at one random cut each and keeps
 * the one that explains most. */
#include "tuner/forest.h"

#include "core/random.h"

#include <math.h>
#include <stdlib.h>

/* Nodes of fewer rows stay leaves. */
#define LEAF_ROWS 2

typedef struct grower {
    const float *x, *y;
    size_t rows, features;
    uint32_t *order;
    forest_node *nodes;
    uint16_t len;
    uint32_t tries; /* features that a node looks at */
    uint64_t seed;
} grower;

typedef struct cut {
    int feature; /* -1: none found */
    float at;
    double gain;
} cut;

/* What splitting [from, end) there takes off the sum of squares. */
static void try_cut(const grower *g, size_t from, size_t end, size_t feature, float at, cut *best)
{
    double left = 0, all = 0;
    size_t count = 0;

    const float *column = g->x + feature * g->rows;
    for (size_t i = from; i < end; i++) {
        const double y = g->y[g->order[i]];
        const bool below = column[g->order[i]] <= at;
        all += y;
        left += below ? y : 0;
        count += below;
    }
    const double len = (double)(end - from), right = all - left;
    const double gain =
        left * left / (double)count + right * right / (len - (double)count) - all * all / len;
    if (best->feature < 0 || gain > best->gain) {
        *best = (cut){(int)feature, at, gain};
    }
}

static cut find_cut(grower *g, size_t from, size_t end)
{
    cut best = {.feature = -1};

    for (uint32_t i = 0; i < g->tries * 2 && (i < g->tries || best.feature < 0); i++) {
        const size_t feature = random_below(&g->seed, g->features);
        const float *column = g->x + feature * g->rows;
        float least = column[g->order[from]], most = least;
        for (size_t k = from + 1; k < end; k++) {
            const float v = column[g->order[k]];
            least = v < least ? v : least;
            most = v > most ? v : most;
        }
        if (least < most) {
            const float at = least + (float)random_unit(&g->seed) * (most - least);
            try_cut(g, from, end, feature, at < most ? at : least, &best);
        }
    }
    return best;
}

static size_t part(grower *g, size_t from, size_t end, const cut *c)
{
    const float *column = g->x + (size_t)c->feature * g->rows;
    size_t mid = from;

    for (size_t i = from; i < end; i++) {
        const uint32_t row = g->order[i];
        if (column[row] <= c->at) {
            g->order[i] = g->order[mid];
            g->order[mid++] = row;
        }
    }
    return mid;
}

static uint16_t grow(grower *g, size_t from, size_t end)
{
    const uint16_t own = g->len++;
    forest_node *node = &g->nodes[own];
    double sum = 0;
    bool same = true;
    cut c = {.feature = -1};

    for (size_t i = from; i < end; i++) {
        sum += g->y[g->order[i]];
        same = same && g->y[g->order[i]] == g->y[g->order[from]];
    }
    if (end - from > LEAF_ROWS - 1 && !same) {
        c = find_cut(g, from, end);
    }
    *node =
        (forest_node){.value = (float)(sum / (double)(end - from)), .feature = (int16_t)c.feature};
    if (c.feature >= 0) {
        const size_t mid = part(g, from, end, &c);
        node->cut = c.at;
        grow(g, from, mid);
        node->right = grow(g, mid, end);
    }
    return own;
}

static bool make_room(forest *f, size_t rows)
{
    f->piece = 2 * rows;
    if (f->capacity < f->piece * FOREST_TREES || f->rows_capacity < rows) {
        forest_free(f);
        f->piece = 2 * rows;
        f->capacity = 2 * f->piece * FOREST_TREES;
        f->rows_capacity = 2 * rows;
        f->nodes = malloc(f->capacity * sizeof *f->nodes);
        f->order = malloc(f->rows_capacity * sizeof *f->order);
        if (f->nodes == NULL || f->order == NULL) {
            forest_free(f);
            return false;
        }
    }
    return true;
}

bool forest_grow(forest *f, const float *x, const float *y, size_t rows, size_t features,
                 uint64_t seed)
{
    if (!make_room(f, rows)) {
        return false;
    }
    for (size_t t = 0; t < FOREST_TREES; t++) {
        grower g = {.x = x,
                    .y = y,
                    .rows = rows,
                    .features = features,
                    .order = f->order,
                    .nodes = f->nodes + t * f->piece,
                    .tries = (uint32_t)(features / 3 + 1),
                    .seed = seed + t};
        for (size_t i = 0; i < rows; i++) {
            f->order[i] = (uint32_t)i;
        }
        grow(&g, 0, rows);
    }
    return true;
}

void forest_ask(const forest *f, const float *row, float *mean, float *spread)
{
    double sum = 0, squares = 0;

    for (size_t t = 0; t < FOREST_TREES; t++) {
        const forest_node *tree = f->nodes + t * f->piece;
        uint16_t at = 0;
        while (tree[at].feature >= 0) {
            at = row[tree[at].feature] <= tree[at].cut ? (uint16_t)(at + 1) : tree[at].right;
        }
        sum += tree[at].value;
        squares += (double)tree[at].value * tree[at].value;
    }
    const double m = sum / FOREST_TREES, v = squares / FOREST_TREES - m * m;
    *mean = (float)m;
    *spread = v > 0 ? (float)sqrt(v) : 0;
}

void forest_free(forest *f)
{
    free(f->nodes);
    free(f->order);
    *f = (forest){0};
}
