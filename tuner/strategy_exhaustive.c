/* strategy_exhaustive.c - every legal config, template by template, in the spaces' order. */
#include "tuner/strategy.h"

#include "templates/space.h"

typedef struct exhaustive {
    const strategy_problem *p;
    size_t template_index;
    const manifest *m; /* of the open space */
    space *space;      /* NULL: the next template's is to be opened */
} exhaustive;

static hone_status start(void *state, const strategy_problem *p, hone_error *error)
{
    exhaustive *e = state;

    (void)error;
    e->p = p;
    return HONE_OK;
}

/* Open the space of the next template that serves the problem; none: e->space stays NULL. */
static hone_status open_next(exhaustive *e, hone_error *error)
{
    hone_status status = HONE_OK;
    const strategy_problem *p = e->p;

    while (e->space == NULL && e->template_index < templates_len(p->templates)) {
        bool serves = false;
        e->m = templates_at(p->templates, e->template_index++);
        TRY(manifest_serves(e->m, p->problem, &p->gpu->facts, &serves, NULL, error));
        if (serves) {
            TRY(space_open(e->m, p->problem, &p->gpu->facts, &e->space, error));
        }
    }
done:
    return status;
}

static hone_status next(void *state, candidate *out, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    exhaustive *e = state;
    bool more = true;

    *found = false;
    while (more && !*found) {
        TRY(open_next(e, error));
        more = e->space != NULL;
        if (!more) {
            break;
        }
        TRY(space_next(e->space, 0, &out->config, found, error));
        out->m = e->m;
        if (!*found) {
            space_close(e->space);
            e->space = NULL;
        }
    }
done:
    return status;
}

static void stop(void *state)
{
    exhaustive *e = state;

    space_close(e->space);
    e->space = NULL;
}

const strategy strategy_exhaustive = {
    .name = "exhaustive",
    .summary = "every legal config, in order",
    .state_size = sizeof(exhaustive),
    .start = start,
    .next = next,
    .stop = stop,
};
