/* space_parts.h - a space from inside: levels, checks and the walker that binds them. Private. */
#ifndef HONE_TEMPLATES_SPACE_PARTS_H
#define HONE_TEMPLATES_SPACE_PARTS_H

#include "templates/manifest_parts.h"
#include "templates/space.h"

/* Bit i is value i of a parameter, in the manifest's order. */
#define SPACE_SET_WORDS (MANIFEST_MAX_VALUES / 64)
typedef struct space_set {
    uint64_t bits[SPACE_SET_WORDS];
} space_set;

#define SPACE_MAX_CHECKS (MANIFEST_MAX_RULES + MANIFEST_MAX_LAUNCHES * (3 + MANIFEST_MAX_MAPS))

/* A `require`, a part of a launch that must fit the device, or a tensor map of one. Its number is
 * its row of the reasons. */
typedef struct space_check {
    uint32_t params;               /* that it depends on */
    uint64_t lets;                 /* that it needs */
    expression *e;                 /* folded with problem and device; NULL for a launch */
    const manifest_launch *launch; /* NULL for a rule */
    const manifest_map *map;       /* NULL for a rule, and for the launch as such */
    unsigned parts;                /* of the launch's geometry */
} space_check;

/* A rule over two parameters: which values of the later one go with each value of the earlier one.
 */
typedef struct space_pair {
    uint32_t check, earlier; /* earlier: level */
    space_set *rows;         /* one for each value of the earlier parameter */
    bool *known;             /* rows are made when first asked for */
} space_pair;

/* What is done once a level is bound: evaluate a `let`, or a check. */
typedef struct space_step {
    bool is_let;
    uint32_t index;
} space_step;

typedef struct space_level {
    uint32_t param, values_len;
    const int64_t *values;
    space_set domain; /* after the rules over this parameter alone */
    uint32_t pairs_len, steps_len, steps_first;
    uint32_t pairs[MANIFEST_MAX_RULES];
    uint32_t frontier; /* parameters bound above that checks from here on read */
    bool barren;       /* some values above are known to leave nothing from here on */
    bool merges;     /* the frontier leaves out something bound above: what ended once ends again */
    bool free_below; /* no check of this level or below reads this value */
    uint64_t
        radix_len; /* product of the frontier's value counts; 0 when it is too large for a key */
} space_level;

typedef struct space_walker {
    manifest_values values;
    space_set left[MANIFEST_MAX_PARAMS]; /* values of each level that are still to be tried */
    uint32_t at[MANIFEST_MAX_PARAMS];    /* the bound value of each level */
    bool fruitful[MANIFEST_MAX_PARAMS];  /* a legal config was found since the level was entered */
    uint32_t depth;
    bool started, ended;
} space_walker;

typedef struct space_memo {
    uint64_t *keys, *counts; /* key 0: an empty place */
    size_t len, capacity;
} space_memo;

struct space {
    const manifest *m;
    manifest_values base; /* fields and device facts */
    bool empty;           /* a rule without parameters refuses everything */
    uint32_t levels_len, checks_len, pairs_len, steps_len;
    uint32_t level_of[MANIFEST_MAX_PARAMS];
    expression *lets[MANIFEST_MAX_LETS]; /* folded; NULL when no check needs it */
    space_check checks[SPACE_MAX_CHECKS];
    space_pair pairs[MANIFEST_MAX_RULES];
    space_step steps[SPACE_MAX_CHECKS + MANIFEST_MAX_LETS];
    space_level levels[MANIFEST_MAX_PARAMS];
    space_reason reasons[SPACE_MAX_CHECKS];
    space_walker walk;
    space_memo memo;
    uint64_t uncountable; /* largest budget that did not suffice to count; 0: none */
};

static inline bool space_set_empty(const space_set *set)
{
    return (set->bits[0] | set->bits[1] | set->bits[2] | set->bits[3]) == 0;
}

static inline uint32_t space_set_len(const space_set *set)
{
    return (uint32_t)(__builtin_popcountll(set->bits[0]) + __builtin_popcountll(set->bits[1]) +
                      __builtin_popcountll(set->bits[2]) + __builtin_popcountll(set->bits[3]));
}

static inline uint32_t space_set_first(const space_set *set)
{
    uint32_t word = 0;

    while (set->bits[word] == 0) {
        word++;
    }
    return word * 64 + (uint32_t)__builtin_ctzll(set->bits[word]);
}

static inline void space_set_add(space_set *set, uint32_t value)
{
    set->bits[value / 64] |= UINT64_C(1) << (value % 64);
}

static inline void space_set_drop(space_set *set, uint32_t value)
{
    set->bits[value / 64] &= ~(UINT64_C(1) << (value % 64));
}

/* Parameters, as bits, that have one value left: below others they would be bound again for each of
 * them. And those that only rules of two tie to one other, all of whose values they leave possible:
 * above, they would multiply checks that do not read them. */
uint32_t space_order_first(const space *s, const space_set domains[]);
uint32_t space_order_last(space *s, const space_set domains[]);
/* Of those the ones whose turn has come: all that the other one's rules read is bound. Any later,
 * and what is counted below would hang on the other one still. */
uint32_t space_order_ready(const space *s, uint32_t last, uint32_t bound);
/* A walker at the start. */
void space_walker_init(const space *s, space_walker *w);
/* The values of `level` that its pairs allow, given what is bound above. */
hone_status space_enter(space *s, space_walker *w, uint32_t level, space_set *out,
                        hone_error *error);
/* Bind a value; *fits says whether the level's checks allow it. */
hone_status space_bind(space *s, space_walker *w, uint32_t level, uint32_t value, bool *fits,
                       hone_error *error);
/* Evaluate a check with the `let`s that it needs, whatever was evaluated before. */
hone_status space_check_now(space *s, uint32_t check, manifest_values *values, bool *holds,
                            hone_error *error);
/* The bound values of `w` that the configs below `level` depend on, with the level; 0: they make no
 * key. */
uint64_t space_memo_key(const space *s, const space_walker *w, uint32_t level);
bool space_memo_get(const space_memo *memo, uint64_t key, uint64_t *count);
void space_memo_put(space_memo *memo, uint64_t key, uint64_t count);
void space_memo_free(space_memo *memo);

#endif
