/* pairs.c - a covering set by greedy choice: each case takes the first pair that is still missing,
 * and of some dozens of legal cases with it the one that covers most.
 *
 * Which pairs are legal is counted, not guessed: problems are enumerated, and for each class of
 * problems (those that differ in free axes alone) all legal configs. */
#include "tests/project/pairs.h"

#include "core/problem.h"
#include "templates/space.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_AXES = 40,
    MOST_VALUES = 16,
    TRIES = 60,
    RARE_TRIES = 4000,
    TRIED_CONFIGS = 400,
    MOST_CASES = 4096
};

/* One value of each axis: device, fields, parameters. */
typedef struct choice {
    uint8_t value[MOST_AXES];
} choice;

/* masks[a][u][b]: the values of axis b that go with value u of axis a. */
typedef uint32_t pair_masks[MOST_AXES][MOST_VALUES][MOST_AXES];

/* Problems that share their legal configs. */
typedef struct problem_class {
    bool known;
    uint8_t (*configs)[MANIFEST_MAX_PARAMS]; /* indices of values */
    size_t len, capacity;
    uint32_t present[MANIFEST_MAX_PARAMS]; /* values of each parameter */
    uint32_t met[MOST_AXES];               /* values of free axes that were combined with it */
} problem_class;

typedef struct maker {
    const pairs_request *r;
    size_t fields, params, axes; /* axes = fields + params; field 0 is the device */
    size_t values[MOST_AXES];
    size_t problems, classes;
    uint8_t *legal; /* by index of a problem on a device */
    problem_class *class;
    pair_masks wanted, missing;
    uint64_t seed;
} maker;

static uint32_t draw(maker *k, size_t below)
{
    k->seed = k->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((k->seed >> 33) % below);
}

static bool is_free(const maker *k, size_t axis)
{
    return axis > 0 && k->r->axes[axis - 1].free;
}

/* Index of a choice among all problems, or, without free axes, among all classes. */
static size_t index_of(const maker *k, const choice *c, bool with_free)
{
    size_t index = 0;

    for (size_t a = 0; a < k->fields; a++) {
        if (with_free || !is_free(k, a)) {
            index = index * k->values[a] + c->value[a];
        }
    }
    return index;
}

/* The next problem; false after the last. The device changes fastest. */
static bool next_problem(const maker *k, choice *c)
{
    for (size_t a = 0; a < k->fields; a++) {
        if (++c->value[a] < k->values[a]) {
            return true;
        }
        c->value[a] = 0;
    }
    return false;
}

static bool parse_problem(const maker *k, const choice *c, hone_problem *out)
{
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof text, "%s:", k->r->op);

    for (size_t a = 1; a < k->fields; a++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", a > 1 ? "," : "",
                                 k->r->axes[a - 1].name, k->r->axes[a - 1].values[c->value[a]]);
    }
    return hone_problem_parse(text, out, NULL) == HONE_OK;
}

static uint8_t value_index(const manifest *m, uint32_t param, int64_t value)
{
    const int64_t *values = NULL;
    const uint32_t len = manifest_param_values(m, param, &values);
    uint8_t at = 0;

    while (at < len && values[at] != value) {
        at++;
    }
    ck_assert_uint_lt(at, len);
    return at;
}

static void add_config(const maker *k, problem_class *class, const config *c)
{
    if (class->len == class->capacity) {
        class->capacity = class->capacity > 0 ? 2 * class->capacity : 256;
        class->configs = realloc(class->configs, class->capacity * sizeof *class->configs);
        ck_assert_ptr_nonnull(class->configs);
    }
    for (uint32_t i = 0; i < k->params; i++) {
        uint8_t at = value_index(k->r->m, i, c->value[i]);
        class->configs[class->len][i] = at;
        class->present[i] |= UINT32_C(1) << at;
    }
    class->len++;
}

static void want(maker *k, size_t a, size_t u, size_t b, uint32_t values)
{
    k->wanted[a][u][b] |= values;
    for (size_t v = 0; v < k->values[b]; v++) {
        if (values >> v & 1) {
            k->wanted[b][v][a] |= UINT32_C(1) << u;
        }
    }
}

/* All legal configs of a problem's class, and the pairs that parameters make among themselves. */
static void enumerate_class(maker *k, problem_class *class, const hone_problem *problem,
                            const device_facts *device)
{
    hone_error error = {0};
    space *s = NULL;
    config c;
    bool found = true;

    class->known = true;
    ck_assert_msg(space_open(k->r->m, problem, device, &s, &error) == HONE_OK, "%s", error.message);
    while (space_next(s, 0, &c, &found, &error) == HONE_OK && found) {
        add_config(k, class, &c);
        const uint8_t *at = class->configs[class->len - 1];
        for (size_t i = 0; i < k->params; i++) {
            for (size_t j = i + 1; j < k->params; j++) {
                want(k, k->fields + i, at[i], k->fields + j, UINT32_C(1) << at[j]);
            }
        }
    }
    space_close(s);
}

/* A legal problem: its pairs of fields, and of its fields with the parameters of its class. */
static void want_problem(maker *k, const choice *c, problem_class *class)
{
    for (size_t a = 0; a < k->fields; a++) {
        for (size_t b = a + 1; b < k->fields; b++) {
            want(k, a, c->value[a], b, UINT32_C(1) << c->value[b]);
        }
        if ((class->met[a] >> c->value[a] & 1) == 0) {
            class->met[a] |= UINT32_C(1) << c->value[a];
            for (size_t i = 0; i < k->params; i++) {
                want(k, a, c->value[a], k->fields + i, class->present[i]);
            }
        }
    }
}

static void enumerate_problems(maker *k)
{
    choice c = {0};
    hone_problem problem;

    do {
        const device_facts *device = k->r->devices[c.value[0]];
        problem_class *class = &k->class[index_of(k, &c, false)];
        bool serves = false;
        if (!parse_problem(k, &c, &problem) ||
            manifest_serves(k->r->m, &problem, device, &serves, NULL, NULL) != HONE_OK || !serves) {
            continue;
        }
        if (!class->known) {
            enumerate_class(k, class, &problem, device);
        }
        if (class->len > 0) {
            k->legal[index_of(k, &c, true)] = 1;
            want_problem(k, &c, class);
        }
    } while (next_problem(k, &c));
}

static size_t count_pairs(const maker *k, const pair_masks masks)
{
    size_t count = 0;

    for (size_t a = 0; a < k->axes; a++) {
        for (size_t u = 0; u < k->values[a]; u++) {
            for (size_t b = a + 1; b < k->axes; b++) {
                count += (size_t)__builtin_popcount(masks[a][u][b]);
            }
        }
    }
    return count;
}

/* Missing pairs that a case has; with `take` they are missing no more. */
static size_t gain(maker *k, const choice *c, bool take)
{
    size_t count = 0;

    for (size_t a = 0; a < k->axes; a++) {
        for (size_t b = a + 1; b < k->axes; b++) {
            uint32_t *mask = &k->missing[a][c->value[a]][b];
            const uint32_t bit = UINT32_C(1) << c->value[b];
            count += (*mask & bit) != 0;
            *mask &= take ? ~bit : ~UINT32_C(0);
        }
    }
    return count;
}

/* A pair that must be in a case. */
typedef struct pair {
    size_t axis[2];
    uint8_t value[2];
} pair;

static bool first_missing(const maker *k, pair *out)
{
    for (size_t a = 0; a < k->axes; a++) {
        for (uint8_t u = 0; u < k->values[a]; u++) {
            for (size_t b = a + 1; b < k->axes; b++) {
                if (k->missing[a][u][b] != 0) {
                    *out = (pair){{a, b}, {u, (uint8_t)__builtin_ctz(k->missing[a][u][b])}};
                    return true;
                }
            }
        }
    }
    return false;
}

/* A random legal problem with the pair's fields. */
static bool draw_problem(maker *k, const pair *p, choice *out)
{
    for (int tries = 0; tries < 20000; tries++) {
        for (size_t a = 0; a < k->fields; a++) {
            out->value[a] = (uint8_t)draw(k, k->values[a]);
        }
        for (int i = 0; i < 2; i++) {
            if (p->axis[i] < k->fields) {
                out->value[p->axis[i]] = p->value[i];
            }
        }
        if (k->legal[index_of(k, out, true)]) {
            return true;
        }
    }
    return false;
}

/* The case that a choice is, and whether it is legal: a rule may refuse few configs of a class for
 * some value of a free axis. */
static bool make_case(const maker *k, const choice *c, pairs_case *out)
{
    hone_error error = {0};
    bool legal = false;

    ck_assert(parse_problem(k, c, &out->problem));
    out->device = c->value[0];
    out->config.len = (uint32_t)k->params;
    for (uint32_t i = 0; i < k->params; i++) {
        const int64_t *values = NULL;
        manifest_param_values(k->r->m, i, &values);
        out->config.value[i] = values[c->value[k->fields + i]];
    }
    ck_assert_msg(manifest_legal(k->r->m, &out->problem, k->r->devices[out->device], &out->config,
                                 &legal, NULL, &error) == HONE_OK,
                  "%s", error.message);
    return legal;
}

/* Of some configs of the problem's class, with the pair's parameters, the one that gains most. */
static size_t best_config(maker *k, const pair *p, choice *c)
{
    const problem_class *class = &k->class[index_of(k, c, false)];
    const size_t start = draw(k, class->len);
    choice best = *c;
    size_t most = 0, tried = 0;

    for (size_t i = 0; i < class->len && tried < TRIED_CONFIGS; i++) {
        /* A prime step visits configs far apart, so that they differ in all parameters. */
        const uint8_t *at = class->configs[(start + i * 7919) % class->len];
        for (size_t n = 0; n < k->params; n++) {
            c->value[k->fields + n] = at[n];
        }
        if (c->value[p->axis[0]] != p->value[0] || c->value[p->axis[1]] != p->value[1]) {
            continue;
        }
        tried++;
        const size_t got = gain(k, c, false);
        if (got > most && make_case(k, c, &(pairs_case){.device = 0})) {
            most = got;
            best = *c;
        }
    }
    *c = best;
    return most;
}

static void cover(maker *k, pairs_set *out)
{
    pair p;

    memcpy(k->missing, k->wanted, sizeof k->missing);
    while (first_missing(k, &p)) {
        choice best = {0};
        size_t most = 0;
        for (int i = 0; i < TRIES || (most == 0 && i < RARE_TRIES); i++) {
            choice c = {0};
            size_t got = draw_problem(k, &p, &c) ? best_config(k, &p, &c) : 0;
            best = got > most ? c : best;
            most = got > most ? got : most;
        }
        ck_assert_msg(most > 0, "no case for values %d and %d of axes %zu and %zu", p.value[0],
                      p.value[1], p.axis[0], p.axis[1]);
        ck_assert_uint_lt(out->len, MOST_CASES);
        gain(k, &best, true);
        ck_assert(make_case(k, &best, &out->cases[out->len++]));
    }
}

static void count_axes(maker *k)
{
    const int64_t *values = NULL;

    k->fields = 1 + k->r->axes_len;
    k->params = manifest_params_len(k->r->m);
    k->axes = k->fields + k->params;
    ck_assert_uint_le(k->axes, MOST_AXES);
    k->values[0] = k->r->devices_len;
    k->problems = k->classes = k->values[0];
    for (size_t a = 1; a < k->fields; a++) {
        while (k->values[a] < PAIRS_MAX_VALUES && k->r->axes[a - 1].values[k->values[a]] != NULL) {
            k->values[a]++;
        }
        k->problems *= k->values[a];
        k->classes *= is_free(k, a) ? 1 : k->values[a];
    }
    for (uint32_t i = 0; i < k->params; i++) {
        k->values[k->fields + i] = manifest_param_values(k->r->m, i, &values);
        ck_assert_uint_le(k->values[k->fields + i], MOST_VALUES);
    }
}

pairs_set pairs_cover(const pairs_request *request)
{
    pairs_set set = {0};
    maker *k = calloc(1, sizeof *k);

    ck_assert_ptr_nonnull(k);
    k->r = request;
    k->seed = 1;
    count_axes(k);
    k->legal = calloc(k->problems, 1);
    k->class = calloc(k->classes, sizeof *k->class);
    set.cases = calloc(MOST_CASES, sizeof *set.cases);
    ck_assert(k->legal != NULL && k->class != NULL && set.cases != NULL);
    enumerate_problems(k);
    set.pairs = count_pairs(k, (const uint32_t(*)[MOST_VALUES][MOST_AXES])k->wanted);
    cover(k, &set);
    for (size_t i = 0; i < k->classes; i++) {
        free(k->class[i].configs);
    }
    free(k->class);
    free(k->legal);
    free(k);
    return set;
}

void pairs_free(pairs_set *set)
{
    free(set->cases);
    *set = (pairs_set){0};
}
