/* space.c - open a space: fold the rules with problem and device, choose the order in which
 * parameters are bound, and hang each check on the level where its last parameter is known. Nothing
 * is enumerated here. */
#include "templates/space_parts.h"

#include <stdlib.h>
#include <string.h>

/* Everything but parameters and `let`s is known; so are `let`s that depend on neither. */
static hone_status fold_lets(space *s, uint64_t needed, bool *known, hone_error *error)
{
    hone_status status = HONE_OK;
    const manifest *m = s->m;

    for (uint32_t i = MANIFEST_SLOT_FIELD; i < EXPRESSION_MAX_SLOTS; i++) {
        known[i] = true;
    }
    for (uint32_t i = 0; i < m->lets_len; i++) {
        if ((needed >> i & 1) == 0) {
            continue;
        }
        uint32_t slot = MANIFEST_SLOT_LET + i;
        TRY(expression_bind(m->lets[i].value.e, s->base.slot, known, &s->lets[i], error));
        if (m->lets[i].value.params == 0) {
            TRY(expression_evaluate(s->lets[i], s->base.slot, &s->base.slot[slot], error));
            known[slot] = true;
        }
    }
done:
    return status;
}

static hone_status fold_rules(space *s, hone_error *error)
{
    hone_status status = HONE_OK;
    const manifest *m = s->m;
    bool known[EXPRESSION_MAX_SLOTS] = {false};
    uint64_t needed = 0;

    for (uint32_t i = 0; i < m->require_len; i++) {
        needed |= m->require[i].value.lets;
    }
    TRY(fold_lets(s, needed, known, error));
    for (uint32_t i = 0; i < m->require_len; i++) {
        const manifest_formula *f = &m->require[i].value;
        space_check *check = &s->checks[s->checks_len];
        *check = (space_check){.params = f->params, .lets = f->lets};
        s->reasons[s->checks_len++] =
            (space_reason){expression_text(f->e), expression_line(f->e), 0};
        TRY(expression_bind(f->e, s->base.slot, known, &check->e, error));
    }
done:
    return status;
}

/* What a launch's geometry is checked for, each part as soon as what it hangs on is bound. */
static const struct {
    unsigned parts;
    const char *why;
} geometry[] = {
    {MANIFEST_GEOMETRY_GRID, "grid or cluster past the device's limits"},
    {MANIFEST_GEOMETRY_BLOCK, "block past the device's limits"},
    {MANIFEST_GEOMETRY_SHARED, "shared memory past the device's limits"},
};

static uint32_t launch_params(const manifest_launch *launch, unsigned parts)
{
    uint32_t params = launch->when.params;

    for (int i = 0; i < 3 && (parts & MANIFEST_GEOMETRY_GRID) != 0; i++) {
        params |= launch->grid[i].params | launch->cluster[i].params | launch->dependent.params;
    }
    for (int i = 0; i < 3 && (parts & MANIFEST_GEOMETRY_BLOCK) != 0; i++) {
        params |= launch->block[i].params;
    }
    return (parts & MANIFEST_GEOMETRY_SHARED) != 0 ? params | launch->shared.params : params;
}

/* A map of a launch that does not take place is not asked. */
static void add_maps(space *s, const manifest_launch *launch)
{
    for (uint32_t i = 0; i < launch->maps_len; i++) {
        const manifest_map *map = &launch->maps[i];
        s->checks[s->checks_len] = (space_check){
            .params = launch->when.params | manifest_map_params(map), .launch = launch, .map = map};
        s->reasons[s->checks_len++] =
            (space_reason){"a tensor map that the driver would refuse", map->line, 0};
    }
}

static void add_launches(space *s)
{
    for (uint32_t i = 0; i < s->m->launches_len; i++) {
        const manifest_launch *launch = &s->m->launches[i];
        add_maps(s, launch);
        for (size_t g = 0; g < ARRAY_LEN(geometry); g++) {
            const unsigned parts = geometry[g].parts;
            s->checks[s->checks_len] = (space_check){
                .params = launch_params(launch, parts), .launch = launch, .parts = parts};
            s->reasons[s->checks_len++] = (space_reason){geometry[g].why, launch->line, 0};
        }
    }
}

static hone_status launch_holds(const space *s, const space_check *c, manifest_values *values,
                                bool *holds, hone_error *error)
{
    hone_status status = HONE_OK;
    char why[MANIFEST_WHY_BYTES] = "";
    manifest_geometry g;
    plan_map map;
    int64_t active = 1;

    if (c->map == NULL) {
        TRY(manifest_launch_geometry(s->m, c->launch, c->parts, values, &g, error));
        *holds = g.fits;
        goto done;
    }
    TRY(manifest_value(s->m, &c->launch->when, values, 1, &active, error));
    if (active != 0) {
        TRY(manifest_map_values(s->m, c->map, values, &map, why, error));
    }
    *holds = why[0] == '\0';
done:
    return status;
}

hone_status space_check_now(space *s, uint32_t check, manifest_values *values, bool *holds,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const space_check *c = &s->checks[check];
    int64_t value = 0;

    if (c->launch != NULL) {
        values->lets = 0;
        TRY(launch_holds(s, c, values, holds, error));
        goto done;
    }
    for (uint64_t missing = c->lets; missing != 0; missing &= missing - 1) {
        int let = __builtin_ctzll(missing);
        TRY(expression_evaluate(s->lets[let], values->slot, &values->slot[MANIFEST_SLOT_LET + let],
                                error));
    }
    TRY(expression_evaluate(c->e, values->slot, &value, error));
    *holds = value != 0;
done:
    return status;
}

/* Checks of no parameter decide the whole space, those of one thin out its values. */
static hone_status settle_small(space *s, space_set domains[], hone_error *error)
{
    hone_status status = HONE_OK;
    manifest_values values = s->base;

    for (uint32_t c = 0; c < s->checks_len; c++) {
        bool holds = true;
        uint32_t params = s->checks[c].params;
        if (params == 0) {
            TRY(space_check_now(s, c, &values, &holds, error));
            s->empty = s->empty || !holds;
            s->reasons[c].pruned += !holds;
        }
        if (__builtin_popcount(params) != 1) {
            continue;
        }
        uint32_t p = (uint32_t)__builtin_ctz(params);
        for (uint32_t v = 0; v < s->m->params[p].len; v++) {
            values.slot[MANIFEST_SLOT_PARAM + p] = s->m->params[p].values[v];
            TRY(space_check_now(s, c, &values, &holds, error));
            if (!holds) {
                space_set_drop(&domains[p], v);
                s->reasons[c].pruned++;
            }
        }
        s->empty = s->empty || space_set_empty(&domains[p]);
    }
done:
    return status;
}

static void add_level(space *s, uint32_t param, const space_set domains[])
{
    const manifest_param *from = &s->m->params[param];
    space_level *level = &s->levels[s->levels_len];

    *level = (space_level){
        .param = param, .values_len = from->len, .values = from->values, .domain = domains[param]};
    s->level_of[param] = s->levels_len++;
}

/* Raw combinations that binding the rest of a check's parameters would make. */
static double cost_of(uint32_t params, const space_set domains[])
{
    double cost = 1;

    for (; params != 0; params &= params - 1) {
        cost *= space_set_len(&domains[__builtin_ctz(params)]);
    }
    return cost;
}

/* Of the parameters in `left` the one with the fewest values. */
static uint32_t smallest_of(uint32_t left, const space_set domains[])
{
    uint32_t pick = UINT32_MAX;

    for (; left != 0; left &= left - 1) {
        uint32_t p = (uint32_t)__builtin_ctz(left);
        if (pick == UINT32_MAX || space_set_len(&domains[p]) < space_set_len(&domains[pick])) {
            pick = p;
        }
    }
    return pick;
}

/* The unbound parameters of the check that is cheapest to make decidable; 0: none is left. */
static uint32_t cheapest_of(const space *s, uint32_t bound, const space_set domains[])
{
    uint32_t next = 0;
    double best = 0;

    for (uint32_t c = 0; c < s->checks_len; c++) {
        uint32_t rest = s->checks[c].params & ~bound;
        bool small = __builtin_popcount(s->checks[c].params) < 2;
        double cost = cost_of(rest, domains);
        if (rest != 0 && !small && (next == 0 || cost < best)) {
            next = rest;
            best = cost;
        }
    }
    return next;
}

/* Bind next what makes the cheapest check decidable, its smallest parameter first; what no check
 * reads comes last, where it multiplies configs without being tried again. */
static void choose_order(space *s, const space_set domains[])
{
    const uint32_t all = s->m->params_len == 32 ? UINT32_MAX : (1u << s->m->params_len) - 1;
    /* A template's space keeps the order that rankings and draws by seed hang on. */
    const bool plain = s->m->launches_len == 0;
    const uint32_t first = plain ? space_order_first(s, domains) : 0;
    const uint32_t last = plain ? space_order_last(s, domains) : 0;
    uint32_t bound = 0;

    for (uint32_t left = first; left != 0; left &= left - 1) {
        add_level(s, (uint32_t)__builtin_ctz(left), domains);
    }
    bound = first;
    while (bound != all) {
        uint32_t next = space_order_ready(s, last, bound);
        next = next != 0 ? next : cheapest_of(s, bound | last, domains);
        next = next != 0 ? next : all & ~bound;
        uint32_t pick = smallest_of(next, domains);
        add_level(s, pick, domains);
        bound |= 1u << pick;
    }
}

static uint32_t last_level(const space *s, uint32_t params)
{
    uint32_t last = 0;

    for (; params != 0; params &= params - 1) {
        uint32_t level = s->level_of[__builtin_ctz(params)];
        last = level > last ? level : last;
    }
    return last;
}

static hone_status add_pair(space *s, uint32_t check, hone_error *error)
{
    uint32_t params = s->checks[check].params;
    uint32_t later = last_level(s, params);
    uint32_t first = s->level_of[__builtin_ctz(params)];
    uint32_t second = s->level_of[31 - __builtin_clz(params)];
    uint32_t earlier = first < second ? first : second;
    space_pair *pair = &s->pairs[s->pairs_len];
    uint32_t rows = s->levels[earlier].values_len;

    *pair = (space_pair){.check = check, .earlier = earlier};
    pair->rows = calloc(rows, sizeof *pair->rows);
    pair->known = calloc(rows, sizeof *pair->known);
    s->levels[later].pairs[s->levels[later].pairs_len++] = s->pairs_len++;
    if (pair->rows == NULL || pair->known == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(s->m), 0, "a space's tables");
    }
    return HONE_OK;
}

/* A check's `let`s whose last parameter is bound at `level` come right before it, each once. */
static void add_step(space *s, uint32_t level, uint32_t check, uint64_t *placed)
{
    for (uint64_t missing = s->checks[check].lets & ~*placed; missing != 0;
         missing &= missing - 1) {
        uint32_t let = (uint32_t)__builtin_ctzll(missing);
        uint32_t params = s->m->lets[let].value.params;
        if (params == 0 || last_level(s, params) > level) {
            continue;
        }
        s->steps[s->steps_len++] = (space_step){true, let};
        *placed |= UINT64_C(1) << let;
    }
    if (last_level(s, s->checks[check].params) == level) {
        s->steps[s->steps_len++] = (space_step){false, check};
    }
}

static void place_steps(space *s)
{
    uint64_t placed = 0;

    for (uint32_t level = 0; level < s->levels_len; level++) {
        s->levels[level].steps_first = s->steps_len;
        /* First what is decided here, then `let`s that deeper levels will read. */
        for (int deeper = 0; deeper < 2; deeper++) {
            for (uint32_t c = 0; c < s->checks_len; c++) {
                uint32_t last = last_level(s, s->checks[c].params);
                bool step =
                    __builtin_popcount(s->checks[c].params) > 2 ||
                    (s->checks[c].launch != NULL && __builtin_popcount(s->checks[c].params) == 2);
                if (step && (deeper ? last > level : last == level)) {
                    add_step(s, level, c, &placed);
                }
            }
        }
        s->levels[level].steps_len = s->steps_len - s->levels[level].steps_first;
    }
}

/* Which bound parameters the rest of the walk depends on: equal ones have equal counts below. */
static void find_frontiers(space *s)
{
    for (uint32_t at = 0; at < s->levels_len; at++) {
        space_level *level = &s->levels[at];
        uint32_t read = 0, below = 0, above = 0;
        for (uint32_t c = 0; c < s->checks_len; c++) {
            uint32_t params = s->checks[c].params, last = last_level(s, params);
            if (__builtin_popcount(params) > 1) {
                read |= last >= at ? params : 0;
                below |= last > at ? params : 0;
            }
        }
        for (uint32_t i = 0; i < at; i++) {
            above |= 1u << s->levels[i].param;
        }
        level->frontier = read & above;
        level->free_below = level->steps_len == 0 && (below >> level->param & 1) == 0;
        level->merges = level->frontier != above;
        level->radix_len = 1;
        for (uint32_t left = level->frontier; left != 0; left &= left - 1) {
            uint64_t len = s->m->params[__builtin_ctz(left)].len;
            level->radix_len =
                level->radix_len > (UINT64_C(1) << 58) / len ? 0 : level->radix_len * len;
        }
    }
}

static hone_status place_checks(space *s, hone_error *error)
{
    hone_status status = HONE_OK;

    for (uint32_t c = 0; c < s->checks_len; c++) {
        if (__builtin_popcount(s->checks[c].params) == 2 && s->checks[c].launch == NULL) {
            TRY(add_pair(s, c, error));
        }
    }
    place_steps(s);
    find_frontiers(s);
done:
    return status;
}

hone_status space_open(const manifest *m, const hone_problem *problem, const device_facts *device,
                       space **out, hone_error *error)
{
    hone_status status = HONE_OK;
    space_set domains[MANIFEST_MAX_PARAMS] = {0};
    space *s = calloc(1, sizeof *s);

    if (s == NULL) {
        return status_set(error, HONE_NO_MEMORY, manifest_name(m), 0, "a space");
    }
    s->m = m;
    if (m->op != 0) { /* an imported definition has no op, and is of no problem */
        TRY(manifest_bind(m, problem, device, &s->base, error));
    }
    for (uint32_t p = 0; p < m->params_len; p++) {
        for (uint32_t v = 0; v < m->params[p].len; v++) {
            space_set_add(&domains[p], v);
        }
    }
    TRY(fold_rules(s, error));
    add_launches(s);
    TRY(settle_small(s, domains, error));
    choose_order(s, domains);
    TRY(place_checks(s, error));
    space_rewind(s);
    *out = s;
    s = NULL;
done:
    space_close(s);
    return status;
}

void space_close(space *s)
{
    if (s == NULL) {
        return;
    }
    for (uint32_t i = 0; i < MANIFEST_MAX_LETS; i++) {
        expression_free(s->lets[i]);
    }
    for (uint32_t i = 0; i < s->checks_len; i++) {
        expression_free(s->checks[i].e);
    }
    for (uint32_t i = 0; i < s->pairs_len; i++) {
        free(s->pairs[i].rows);
        free(s->pairs[i].known);
    }
    space_memo_free(&s->memo);
    free(s);
}

double space_raw_size(const space *s)
{
    double size = 1;

    for (uint32_t p = 0; p < s->m->params_len; p++) {
        size *= s->m->params[p].len;
    }
    return size;
}

size_t space_reasons(const space *s, const space_reason **out)
{
    *out = s->reasons;
    return s->checks_len;
}
