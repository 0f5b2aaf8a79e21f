/* sweep_agree.c - a size between two whose winners are the same config: that one is tried, beside
 * the default, and nothing is searched. */
#include "tuner/sweep_state.h"

#include <stdlib.h>
#include <string.h>

/* A problem's winner, as a candidate. */
typedef struct winner_of {
    const sweep *s;
    candidate candidate; /* m NULL: none, or of other templates than today's */
} winner_of;

static int take_winner(void *context, const store_winner *winner)
{
    winner_of *w = context;
    const manifest *m = templates_find(w->s->o->templates, winner->row.template_name);

    if (sweep_is_current(w->s, &winner->row) &&
        manifest_config_parse(m, winner->row.config, &w->candidate.config, NULL) == HONE_OK) {
        w->candidate.m = m;
    }
    return 0;
}

static hone_status winner_at(sweep *s, size_t index, candidate *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const sweep_group *group = &s->groups[index];
    const store_filter filter = {.problem = group->id, .device = s->device};
    winner_of w = {.s = s};

    if (group->ended && group->has_winner) {
        TRY(store_winners(s->o->store, &filter, take_winner, &w, error));
    }
    *out = w.candidate;
done:
    return status;
}

hone_status sweep_agreed(sweep *s, size_t index, candidate *out, bool *agreed, hone_error *error)
{
    hone_status status = HONE_OK;
    const family_place *place = &s->places[index];
    candidate below, above;
    char why[160];

    *agreed = false;
    if (s->o->every_size || place->below == FAMILIES_NONE || place->above == FAMILIES_NONE) {
        return HONE_OK;
    }
    TRY(winner_at(s, place->below, &below, error));
    TRY(winner_at(s, place->above, &above, error));
    if (below.m != NULL && below.m == above.m && config_same(&below.config, &above.config)) {
        TRY(manifest_legal(below.m, s->groups[index].problem, &s->o->device->gpu.facts,
                           &below.config, agreed, why, error));
    }
    *out = below;
done:
    return status;
}
