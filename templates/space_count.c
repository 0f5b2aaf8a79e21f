/* space_count.c - count legal configs without listing them, and draw one at random.
 *
 * What is legal below a level depends only on the bound values that later checks read; counts are
 * kept by those, so that parts of the space that do not touch each other multiply. */
#include "templates/space_parts.h"

#include "core/checked.h"
#include "core/random.h"

#include <string.h>

typedef struct counter {
    space *s;
    space_walker w;
    uint64_t nodes, budget;
    hone_error *error;
} counter;

static hone_status spend(counter *c)
{
    if (c->budget != 0 && ++c->nodes > c->budget) {
        return status_set(c->error, HONE_LIMIT, manifest_name(c->s->m), 0,
                          "the space is too large to count in %llu steps",
                          (unsigned long long)c->budget);
    }
    return HONE_OK;
}

static hone_status count_below(counter *c, uint32_t level, uint64_t *out);

/* Add up the counts below each value of `set`. */
static hone_status count_values(counter *c, uint32_t level, space_set set, uint64_t *out)
{
    hone_status status = HONE_OK;
    uint64_t total = 0, below = 0;

    for (; !space_set_empty(&set); space_set_drop(&set, space_set_first(&set))) {
        bool fits = false;
        TRY(spend(c));
        TRY(space_bind(c->s, &c->w, level, space_set_first(&set), &fits, c->error));
        if (!fits) {
            continue;
        }
        TRY(count_below(c, level + 1, &below));
        if (!checked_add_u64(total, below, &total)) {
            return status_set(c->error, HONE_OVERFLOW, manifest_name(c->s->m), 0,
                              "over 2^64 legal configs");
        }
    }
    *out = total;
done:
    return status;
}

/* When nothing below reads this level's value, each value has the same count below. */
static hone_status count_free(counter *c, uint32_t level, const space_set *set, uint64_t *out)
{
    hone_status status = HONE_OK;
    uint64_t below = 0;
    bool fits = false;

    TRY(space_bind(c->s, &c->w, level, space_set_first(set), &fits, c->error));
    TRY(count_below(c, level + 1, &below));
    if (!checked_mul_u64(space_set_len(set), below, out)) {
        status = status_set(c->error, HONE_OVERFLOW, manifest_name(c->s->m), 0,
                            "over 2^64 legal configs");
    }
done:
    return status;
}

static hone_status count_below(counter *c, uint32_t level, uint64_t *out)
{
    hone_status status = HONE_OK;
    space *s = c->s;
    space_set set;
    uint64_t total = 0;

    if (level == s->levels_len) {
        *out = 1;
        return HONE_OK;
    }
    uint64_t key = space_memo_key(s, &c->w, level);
    if (space_memo_get(&s->memo, key, out)) {
        return HONE_OK;
    }
    TRY(spend(c));
    TRY(space_enter(s, &c->w, level, &set, c->error));
    if (!space_set_empty(&set)) {
        TRY(s->levels[level].free_below ? count_free(c, level, &set, &total)
                                        : count_values(c, level, set, &total));
    }
    space_memo_put(&s->memo, key, total);
    *out = total;
done:
    return status;
}

static void counter_init(counter *c, space *s, uint64_t budget, hone_error *error)
{
    c->s = s;
    c->nodes = 0;
    c->budget = budget;
    c->error = error;
    space_walker_init(s, &c->w);
}

static hone_status count_all(counter *c, uint64_t *out)
{
    if (c->s->empty) {
        *out = 0;
        return HONE_OK;
    }
    return count_below(c, 0, out);
}

hone_status space_count(space *s, uint64_t budget, uint64_t *count, hone_error *error)
{
    counter c;

    counter_init(&c, s, budget, error);
    return count_all(&c, count);
}

/* ---- Drawing. ------------------------------------------------------------------------------- */

static uint32_t set_at(const space_set *set, uint64_t index)
{
    space_set left = *set;

    for (; index > 0; index--) {
        space_set_drop(&left, space_set_first(&left));
    }
    return space_set_first(&left);
}

/* Bind the value of `level` under which config number *rest lies; *rest becomes its number below
 * it. */
static hone_status descend(counter *c, uint32_t level, uint64_t *rest)
{
    hone_status status = HONE_OK;
    space_set set;
    uint64_t below = 0;
    bool fits = false;

    TRY(space_enter(c->s, &c->w, level, &set, c->error));
    if (c->s->levels[level].free_below) {
        TRY(space_bind(c->s, &c->w, level, space_set_first(&set), &fits, c->error));
        TRY(count_below(c, level + 1, &below));
        TRY(space_bind(c->s, &c->w, level, set_at(&set, *rest / below), &fits, c->error));
        *rest %= below;
        goto done;
    }
    for (; !space_set_empty(&set); space_set_drop(&set, space_set_first(&set))) {
        uint32_t value = space_set_first(&set);
        TRY(space_bind(c->s, &c->w, level, value, &fits, c->error));
        if (!fits) {
            continue;
        }
        TRY(count_below(c, level + 1, &below));
        if (*rest < below) {
            /* Counting bound other values below; this level's own stands, its `let`s too. */
            TRY(space_bind(c->s, &c->w, level, value, &fits, c->error));
            goto done;
        }
        *rest -= below;
    }
done:
    return status;
}

static hone_status draw_counted(counter *c, uint64_t total, uint64_t *seed)
{
    hone_status status = HONE_OK;
    uint64_t rest = random_below(seed, total);

    c->budget = 0; /* each step is a sum that counting has made before */
    for (uint32_t level = 0; level < c->s->levels_len; level++) {
        TRY(descend(c, level, &rest));
    }
done:
    return status;
}

/* Bind a random value of each level; start again when one has none left. *found = false: out of
 * budget. */
static hone_status draw_blindly(counter *c, uint64_t *seed, bool *found)
{
    hone_status status = HONE_OK;
    uint32_t level = 0;
    space_set set;

    *found = false;
    TRY(space_enter(c->s, &c->w, 0, &set, c->error));
    for (uint64_t nodes = 0; nodes < c->budget && level < c->s->levels_len; nodes++) {
        bool fits = false;
        if (space_set_empty(&set)) {
            level = 0;
            TRY(space_enter(c->s, &c->w, 0, &set, c->error));
            if (space_set_empty(&set)) {
                goto done;
            }
            continue;
        }
        uint32_t value = set_at(&set, random_below(seed, space_set_len(&set)));
        space_set_drop(&set, value);
        TRY(space_bind(c->s, &c->w, level, value, &fits, c->error));
        level += fits;
        if (fits && level < c->s->levels_len) {
            TRY(space_enter(c->s, &c->w, level, &set, c->error));
        }
    }
    *found = level == c->s->levels_len;
done:
    return status;
}

hone_status space_draw(space *s, uint64_t *seed, uint64_t budget, config *out, bool *found,
                       bool *uniform, hone_error *error)
{
    hone_status status = HONE_LIMIT;
    counter c;
    uint64_t total = 0;
    bool any = false;

    counter_init(&c, s, budget, error);
    bool hopeless = budget != 0 && budget <= s->uncountable;
    if (!hopeless) {
        status = count_all(&c, &total);
    }
    bool counted = status == HONE_OK;
    if (counted) {
        any = total > 0;
        status = any ? draw_counted(&c, total, seed) : HONE_OK;
    } else if (status == HONE_LIMIT || status == HONE_OVERFLOW) {
        s->uncountable = status == HONE_OVERFLOW ? UINT64_MAX : budget;
        counter_init(&c, s, budget != 0 ? budget : UINT64_MAX, error);
        status = draw_blindly(&c, seed, &any);
        if (status == HONE_OK && !any) {
            status = status_set(error, HONE_LIMIT, manifest_name(s->m), 0,
                                "no legal config found in %llu steps", (unsigned long long)budget);
        }
    }
    if (status == HONE_OK) {
        *found = any;
        *uniform = counted;
        out->len = any ? s->m->params_len : 0;
        memcpy(out->value, &c.w.values.slot[MANIFEST_SLOT_PARAM], out->len * sizeof *out->value);
    }
    return status;
}
