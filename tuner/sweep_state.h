/* sweep_state.h - a sweep from inside: problems, and the tasks that are under way. Private. */
#ifndef HONE_TUNER_SWEEP_STATE_H
#define HONE_TUNER_SWEEP_STATE_H

#include "runtime/default.h"
#include "tuner/candidate_set.h"
#include "tuner/families.h"
#include "tuner/sweep.h"

#define SWEEP_CONFIG_BYTES 512

/* One candidate from its compile to its row. */
typedef struct sweep_task {
    size_t group; /* index of its problem */
    candidate candidate;
    char config[SWEEP_CONFIG_BYTES];
    uint8_t digest[32]; /* of its template */
    plan *plan;
    bool must; /* a default, or an earlier winner: proved whatever the rules spare */
    bool answered;
    engine_answer answer;
    engine_trial trial; /* while it is proved */
    size_t lane;
    int64_t row; /* in the store, while it is proved */
    struct sweep_task *next;
} sweep_task;

/* Tasks in the order in which they were made. */
typedef struct sweep_queue {
    sweep_task *first, *last;
    size_t len;
} sweep_queue;

/* One problem. */
typedef struct sweep_group {
    const hone_problem *problem;
    int64_t id;             /* in the store */
    uint64_t finished;      /* rows that an earlier sweep finished with these templates */
    bool has_winner, again; /* again: a row was left in flight */
    bool laid_out, ended;
    bool rounds;        /* its strategy learns, and proposes round by round */
    candidate before;   /* the winner under another routing; m NULL: none */
    size_t open;        /* tasks that are not finished */
    uint64_t proved;    /* candidates that are `ok`, of all sweeps */
    double best_ns;     /* of them; 0: none */
    bool at_roof;       /* one of them reached limits.roof_percent */
    sweep_queue flawed; /* kept back until the others are known */
    /* What serving would fall back to, best first; the first of them that is right is the
     * analytical default, which a winner is compared with. */
    default_choice defaults[DEFAULT_TRIES];
    size_t defaults_len, defaults_tried;
    char reason[200]; /* last cause of a rejection, for a problem without a winner */
} sweep_group;

typedef struct sweep {
    const sweep_options *o;
    sweep_summary summary;
    int64_t id, device; /* in the store; id 0: not begun */
    sweep_group *groups;
    family_place *places;  /* of the groups */
    size_t *order;         /* in which groups are laid out */
    size_t next_group;     /* in `order`: first that is not laid out */
    uint32_t phase;        /* of the groups that are under way */
    sweep_queue waiting;   /* to be compiled */
    sweep_queue compiling; /* submitted, in order */
    sweep_queue proving;   /* on a lane, in the order in which they were begun */
    engine engine;         /* state NULL: not opened */
    engine_result *result; /* of the candidate that is finished */
    uint64_t lanes;        /* a bit for each that is busy */
    candidate_set known;   /* candidates of the problems so far */
    uint64_t done, total;
    int64_t begun_ns; /* by the monotonic clock */
    bool cancelled;
} sweep;

void sweep_push(sweep_queue *queue, sweep_task *task);
sweep_task *sweep_pop(sweep_queue *queue); /* NULL when empty */
void sweep_task_free(sweep *s, sweep_task *task);
void sweep_queue_free(sweep *s, sweep_queue *queue);

/* Fill ids and what earlier sweeps finished, from one pass over the store. */
hone_status sweep_recall(sweep *s, hone_error *error);
/* Make the tasks of a problem. A problem with nothing to do is ended. */
hone_status sweep_lay_out(sweep *s, size_t group, hone_error *error);

/* Whether the sizes on both sides of a problem have the same winner, and that is legal for it. */
hone_status sweep_agreed(sweep *s, size_t group, candidate *out, bool *agreed, hone_error *error);

/* Make the task of the next of a problem's defaults and queue it, unless one of those tried is
 * right. *made = false when none is left to do. */
hone_status sweep_next_default(sweep *s, size_t group, bool *made, hone_error *error);
/* What is tuned of a problem: each draws its own candidates, the same ones in every run. */
strategy_problem sweep_problem(const sweep *s, size_t group);
/* Make the task of a candidate and queue it; `must`: whatever the rules spare. *made = false when
 * the store holds its row, or another sweep has it in flight. */
hone_status sweep_add_task(sweep *s, size_t group, const candidate *c, bool must, bool *made,
                           hone_error *error);
/* The round of a strategy that learns which is not known whole: strategy_round with the store's
 * rows. `settled`: what has no row counts as failed. Caller frees *list. */
hone_status sweep_round(sweep *s, size_t group, const strategy_problem *p, bool settled,
                        candidate **list, size_t *len, hone_error *error);
/* Make the tasks of the next round and queue them. *made = false when there is none, or the
 * strategy does not learn. */
hone_status sweep_next_round(sweep *s, size_t group, bool *made, hone_error *error);
/* Which of the problem's defaults a template and a config's text are; DEFAULT_TRIES when none. */
size_t sweep_default_index(const sweep_group *group, const char *template_name, const char *text);

/* Begin the store's sweep and start the compiler, once there is something to do. */
hone_status sweep_begin(sweep *s, hone_error *error);

bool sweep_has_idle_lane(const sweep *s);
/* A task whose compile is answered: keep it back if its code has a flaw, else begin to prove it, or
 * say why not. A lane must be idle. *begun: it is among those that are proved; else it is finished.
 * Takes the task. */
hone_status sweep_try(sweep *s, sweep_task *task, bool *begun, hone_error *error);
/* Wait for the proof that was begun first and commit it. *group is its problem. */
hone_status sweep_finish_first(sweep *s, size_t *group, hone_error *error);
/* Prove, time and commit a compiled task at once. A lane must be idle. Takes the task. */
hone_status sweep_prove_now(sweep *s, sweep_task *task, hone_error *error);
/* Commit a task that was not proved, with the outcome and reason of `row`. Does not take it. */
hone_status sweep_record(sweep *s, const sweep_task *task, int32_t outcome, const char *reason,
                         hone_error *error);

/* All tasks of a problem are finished: make one of the next default when the one before is not
 * right, else try what was kept back if nothing else won, choose the winner. */
hone_status sweep_settle(sweep *s, size_t group, hone_error *error);

/* Whether a limit of the whole sweep is reached. */
bool sweep_is_spent(const sweep *s);
/* Note a row that is `ok` for the rules that spare others. */
void sweep_note_best(const sweep *s, sweep_group *group, const store_result *row);

/* The sweep is over, by its end or by a limit: choose among what is there for the problems that are
 * not settled. */
hone_status sweep_cut_short(sweep *s, hone_error *error);

/* Tell progress; notes when the caller wants to stop. */
void sweep_tell(sweep *s, size_t group, const char *doing);

/* Whether a row was made here, with the template's text of today, and under the sweep's routing where the
 * problem's time hangs on it: only those count as done and can win. */
bool sweep_is_current(const sweep *s, const store_row *row);
store_key sweep_key(const sweep *s, const sweep_task *task);
engine_trial sweep_trial(const sweep *s, const sweep_task *task);

#endif
