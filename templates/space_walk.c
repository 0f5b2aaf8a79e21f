/* space_walk.c - bind parameters level by level and take back what a check refuses. */
#include "templates/space_parts.h"

#include <string.h>

void space_walker_init(const space *s, space_walker *w)
{
    *w = (space_walker){.values = s->base};
}

void space_rewind(space *s)
{
    space_walker_init(s, &s->walk);
}

/* Which values of the later parameter go with value `value` of the earlier one. */
static hone_status make_row(space *s, const space_pair *pair, uint32_t later, uint32_t value,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    const space_level *from = &s->levels[pair->earlier], *to = &s->levels[later];
    manifest_values values = s->base;
    space_set row = {0}, missing = to->domain;

    values.slot[MANIFEST_SLOT_PARAM + from->param] = from->values[value];
    for (; !space_set_empty(&missing); space_set_drop(&missing, space_set_first(&missing))) {
        uint32_t v = space_set_first(&missing);
        bool holds = false;
        values.slot[MANIFEST_SLOT_PARAM + to->param] = to->values[v];
        TRY(space_check_now(s, pair->check, &values, &holds, error));
        if (holds) {
            space_set_add(&row, v);
        }
    }
    pair->rows[value] = row;
    pair->known[value] = true;
done:
    return status;
}

hone_status space_enter(space *s, space_walker *w, uint32_t level, space_set *out,
                        hone_error *error)
{
    hone_status status = HONE_OK;
    const space_level *at = &s->levels[level];
    space_set set = at->domain;

    for (uint32_t i = 0; i < at->pairs_len; i++) {
        const space_pair *pair = &s->pairs[at->pairs[i]];
        uint32_t value = w->at[pair->earlier], before = space_set_len(&set);
        if (!pair->known[value]) {
            TRY(make_row(s, pair, level, value, error));
        }
        for (int word = 0; word < SPACE_SET_WORDS; word++) {
            set.bits[word] &= pair->rows[value].bits[word];
        }
        s->reasons[pair->check].pruned += before - space_set_len(&set);
    }
    *out = set;
done:
    return status;
}

/* A rule whose `let`s are in their slots already. */
static hone_status rule_holds(const space *s, uint32_t check, const space_walker *w, bool *holds,
                              hone_error *error)
{
    int64_t value = 0;
    const expression *e = s->checks[check].e;
    expression_fault fault = expression_run(e, w->values.slot, &value);

    *holds = value != 0;
    return fault == EXPRESSION_FINE ? HONE_OK : expression_fail(e, fault, error);
}

hone_status space_bind(space *s, space_walker *w, uint32_t level, uint32_t value, bool *fits,
                       hone_error *error)
{
    hone_status status = HONE_OK;
    const space_level *at = &s->levels[level];

    w->at[level] = value;
    w->values.slot[MANIFEST_SLOT_PARAM + at->param] = at->values[value];
    *fits = true;
    for (uint32_t i = 0; i < at->steps_len && *fits; i++) {
        const space_step *step = &s->steps[at->steps_first + i];
        if (step->is_let) {
            TRY(expression_evaluate(s->lets[step->index], w->values.slot,
                                    &w->values.slot[MANIFEST_SLOT_LET + step->index], error));
            continue;
        }
        if (s->checks[step->index].launch != NULL) {
            TRY(space_check_now(s, step->index, &w->values, fits, error));
        } else {
            TRY(rule_holds(s, step->index, w, fits, error));
        }
        s->reasons[step->index].pruned += !*fits;
    }
done:
    return status;
}

static void take_config(const space *s, const space_walker *w, config *out)
{
    out->len = s->m->params_len;
    memcpy(out->value, &w->values.slot[MANIFEST_SLOT_PARAM], out->len * sizeof *out->value);
}

/* The first level, or the only config of a template without parameters. */
static hone_status start(space *s, space_walker *w, bool *found, hone_error *error)
{
    w->started = true;
    w->ended = s->empty || s->levels_len == 0;
    *found = !s->empty && s->levels_len == 0;
    return w->ended ? HONE_OK : space_enter(s, w, 0, &w->left[0], error);
}

/* Leave a level. One that gave nothing will give nothing for the same values above. */
static void step_back(space *s, space_walker *w)
{
    const uint32_t level = w->depth;

    w->ended = level == 0;
    if (level == 0) {
        return;
    }
    w->depth--;
    if (w->fruitful[level]) {
        w->fruitful[level - 1] = true;
    } else if (s->levels[level].merges) {
        s->levels[level].barren = true;
        space_memo_put(&s->memo, space_memo_key(s, w, level), 0);
    }
}

/* Go down to the next level, unless it is known to be barren. */
static hone_status step_down(space *s, space_walker *w, hone_error *error)
{
    const uint32_t level = w->depth + 1;
    uint64_t count = 0;

    if (s->levels[level].barren && space_memo_get(&s->memo, space_memo_key(s, w, level), &count) &&
        count == 0) {
        return HONE_OK;
    }
    w->depth = level;
    w->fruitful[level] = false;
    return space_enter(s, w, level, &w->left[level], error);
}

/* Bind one more value at the walker's depth, or step back. *whole: all levels are bound. */
static hone_status advance(space *s, space_walker *w, bool *whole, hone_error *error)
{
    hone_status status = HONE_OK;
    space_set *left = &w->left[w->depth];
    bool fits = false;

    *whole = false;
    if (space_set_empty(left)) {
        step_back(s, w);
        return HONE_OK;
    }
    uint32_t value = space_set_first(left);
    space_set_drop(left, value);
    TRY(space_bind(s, w, w->depth, value, &fits, error));
    if (!fits) {
        goto done;
    }
    *whole = w->depth + 1 == s->levels_len;
    if (*whole) {
        w->fruitful[w->depth] = true;
    } else {
        TRY(step_down(s, w, error));
    }
done:
    return status;
}

hone_status space_next(space *s, uint64_t budget, config *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    space_walker *w = &s->walk;
    bool whole = false;

    if (!w->started) {
        TRY(start(s, w, &whole, error));
    }
    for (uint64_t nodes = 0; !whole && !w->ended; nodes++) {
        if (budget != 0 && nodes == budget) {
            return status_set(error, HONE_LIMIT, manifest_name(s->m), 0,
                              "no legal config within %llu steps; the rules leave few",
                              (unsigned long long)budget);
        }
        TRY(advance(s, w, &whole, error));
    }
    *found = whole;
    if (whole) {
        take_config(s, w, out);
    }
done:
    return status;
}
