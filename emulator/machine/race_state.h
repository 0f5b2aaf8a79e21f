/* race_state.h - inside the race_*.c files: clocks, agents, records of accesses, shadow memory.
 *
 * An access is noted as a record: who (an agent at a time of its own clock) and at which
 * instruction. Shadow memory holds, for each word, the record of its last plain write, and the
 * record or the set of records of the reads and atomics since. An agent's time moves on whenever it
 * tells others what it did; a record is ordered before an agent that knows its time. */
#ifndef HONE_EMULATOR_RACE_STATE_H
#define HONE_EMULATOR_RACE_STATE_H

#include "emulator/machine/race.h"

enum {
    RACE_CHUNK = 1 << 16, /* bytes of global memory whose shadow is allocated together */
    RACE_PAGE = 1024,     /* bytes of memory that one page of shadow covers */
    RACE_WIDE = 4,        /* log2 of the bytes of a unit of global memory */
    RACE_SLOTS = 24,      /* bulk operations of a warp that are told apart while in flight */
    RACE_AGENTS = 4000,
    RACE_CACHE = 16,   /* records of a warp that are found again without a search */
    RACE_MOVES = 1024, /* likewise of read sets */
    RACE_STEPS = 8,
    RACE_DISTINCT = 8,  /* writes of a flat page */
    RACE_FOREIGN = 6,   /* readers of other clusters that one word of global memory remembers */
    RACE_PREVIOUS = 1,  /* number of the record that stands for what the launch before wrote */
    RACE_NOBODY = 0xff, /* in place of a lane: not known, no check */
    RACE_MANY = 0xfe,   /* several lanes read it */
};

#define RACE_BEFORE UINT32_MAX /* in place of a cluster: the launch before */

/* What is known about the agents of one cluster. Shared between clocks while refs > 1; then never
 * changed. */
/* Parts of a clock: what is known, and what of it has a proxy fence behind it for the engines'
 * reads of shared and of global memory. */
enum { RACE_KNOWN, RACE_FENCED_SHARED, RACE_FENCED_GLOBAL, RACE_PARTS };

typedef struct race_block {
    race_book *book;             /* which it counts in */
    uint32_t refs, cluster, len; /* len: agents that there is room for */
    uint32_t times[];            /* RACE_PARTS times `len` of them */
} race_block;

struct race_clock {
    race_block **blocks; /* by rising cluster */
    uint32_t len, capacity;
};

/* A clock that nobody changes any more: what a task was issued with. */
typedef struct race_view {
    race_book *book; /* which it counts in */
    uint32_t refs;
    race_clock clock;
} race_view;

typedef struct race_record {
    uint32_t cluster, time, instruction;
    uint16_t agent, warp; /* warp: in the cluster, of which the agent is or works for */
    uint8_t agent_kind, access;
} race_record;

/* AGENT_INIT makes a warp's mbarriers, at the warp's own times: others may know of that alone. */
typedef enum race_agent_kind {
    AGENT_WARP,
    AGENT_COPY,
    AGENT_BULK,
    AGENT_MATRIX,
    AGENT_INIT,
} race_agent_kind;

/* What a word's `read` holds: 0, a record, or a set of records. */
#define RACE_SET       UINT32_C(0x80000000)
#define RACE_ATOMIC_IN UINT32_C(0x40000000) /* atomics are, or is, among them */
#define RACE_INDEX     UINT32_C(0x3fffffff)

typedef struct race_set {
    uint32_t first, len; /* in the book's members */
} race_set;

/* Shadow of RACE_PAGE bytes in units of 1 << shift bytes. Shared memory begins with words, global
 * memory, of which there is much, with 16 bytes; both are refined where accesses of less meet.
 * Lanes are kept for shared memory alone. */
typedef struct race_page {
    uint32_t *write, *read;
    uint8_t *writer, *reader;
    uint8_t shift;
    bool own; /* the units have an allocation of their own: at write */
    /* Matrix units and bulk copies go over whole pages. A flat one takes few steps: all its units
     * have the `read` of the first one, and of their writes there are few different ones, or one
     * which is that of the first unit; the arrays hold nothing behind that. */
    bool flat;
    uint8_t writes;
    uint32_t distinct[RACE_DISTINCT];
    /* While it stays flat: warps (of the first 64 of the cluster) whose matrix units have read it.
     * They knew all of its writes then, and what a warp knows it does not forget. */
    uint64_t vouched;
} race_page;

/* Shadow of RACE_CHUNK bytes of global memory: pages, and behind them their units while wide. */
typedef struct race_chunk {
    race_page pages[RACE_CHUNK / RACE_PAGE];
    uint32_t units[2 * RACE_CHUNK >> RACE_WIDE];
} race_chunk;

typedef struct race_chunks { /* by address; a hash with free places */
    uint64_t *keys;          /* chunk number + 1 */
    race_chunk **chunks;
    uint32_t len, capacity;
    uint64_t last_key; /* found last */
    race_chunk *last;
} race_chunks;

typedef struct race_words { /* clocks of words that order flows through */
    uint64_t *keys;         /* key + 1 */
    race_clock **clocks;
    uint32_t len, capacity;
} race_words;

typedef struct race_cached {
    uint32_t instruction, time, id, generation;
} race_cached;

typedef struct race_warp {
    race_clock clock;
    race_block *home;                   /* the one of clock's blocks that is its own cluster's */
    uint32_t agent, copy, matrix, init; /* all but agent: 0 while there is none */
    uint32_t bulk[RACE_SLOTS], bulk_len, bulk_next;
    race_view *view; /* of the clock as it is, or NULL */
    bool told;       /* a task took the view: the time moves on before the next access */
    race_clock *released, *pending; /* at the last fence; what relaxed reads brought since */
    race_cached cache[RACE_CACHE];
} race_warp;

/* One for a run: records, and what outlives a cluster. */
struct race_book {
    race_record *records;
    race_set *sets;
    uint32_t *members;
    uint32_t records_len, records_capacity, sets_len, sets_capacity, members_len, members_capacity;
    uint32_t limit, generation; /* generation: of ids; a sweep gives new ones */
    struct {
        uint32_t old, record, made;
    } moves[RACE_MOVES];
    race_state *states;
    race_chunks global;
    memory_purse purse;
    race_words words;
    uint64_t *linear; /* CTA of each cluster's each rank */
    uint32_t clusters, linear_capacity;
};

struct race_state {
    race_state *next;
    race_book *book;
    run_state *run;
    cluster *cluster;
    uint32_t number, warps_len, ctas_len, per_cta; /* warps of a CTA; number: of the cluster */
    uint32_t agents_len;
    uint32_t *agent_time; /* of agents that are no warp: how far they were issued */
    uint16_t *agent_warp;
    uint8_t *agent_kind;
    race_warp *warps;
    race_page *shared; /* ctas_len times shared_pages */
    uint32_t shared_pages;
    race_words words;
};

struct race_task {
    race_state *state;
    warp *by;
    const instruction *i;
    race_engine engine;
    race_view *view;
    uint32_t agent, time, lane;
    uint32_t record[3], generation; /* by access */
};

/* A state that units were in, and the one that the access leaves them in. */
typedef struct race_step {
    uint32_t write, read, next_write, next_read;
    bool calm;
} race_step;

/* What is going on: who touches, and what was found out so far. */
typedef struct race_visit {
    race_state *state;
    race_book *book;
    warp *w;
    const instruction *i;
    const race_task *task; /* NULL: the warp itself */
    const race_clock *clock;
    const race_block *home;
    cta *owner; /* NULL: global memory */
    uint64_t base;
    race_access kind;
    bool together; /* all lanes read at once: who did is not kept */
    uint32_t record, agent, time;
    uint32_t own; /* the warp's agent, where `agent` makes its mbarriers; else that */
    uint32_t seen_write, seen_read, next_write, next_read;
    bool seen, calm; /* calm: what was seen is not of this warp since its lanes last met */
    race_step steps[RACE_STEPS]; /* the last few, which lanes that go criss-cross meet again */
    uint32_t steps_len;
    race_page *page;       /* at `base` */
    const race_page *flat; /* the page before, which was flat and is allowed */
    /* the access that it conflicts with, where, and how */
    uint32_t against, unit, lane, other; /* lanes: RACE_NOBODY where it could be any */
    bool unfenced, between_lanes;
} race_visit;

static inline race_warp *race_warp_of(const race_state *s, const warp *w)
{
    return &s->warps[w->cta->rank * s->per_cta + w->index];
}

/* race_clock.c. False, and the run marked, without memory. */
bool race_clock_join(run_state *run, race_clock *into, const race_clock *from);
bool race_clock_know(race_state *s, race_clock *c, uint32_t agent, uint32_t time);
bool race_clock_own(race_state *s, race_warp *w);
/* A clock without blocks comes to know the first agent of a cluster at time 1. */
bool race_clock_name(run_state *run, race_clock *c, uint32_t number);
/* All that the clock knows, of other clusters too, has a proxy fence for global memory behind it.
 */
bool race_clock_fence(run_state *run, race_clock *c);
const race_block *race_clock_find(const race_clock *c, uint32_t number);
void race_clock_clear(race_clock *c);
race_view *race_view_take(run_state *run, race_warp *w);
void race_view_drop(race_view *v);
/* What the warp does from here on is not what it told of. */
void race_tick(race_state *s, race_warp *w);
bool race_warp_learn(race_state *s, race_warp *w, const race_clock *from);
bool race_warp_know(race_state *s, race_warp *w, uint32_t agent, uint32_t time);
uint32_t race_agent_new(race_state *s, race_agent_kind kind, uint32_t index);
void race_out_of_memory(run_state *run);

/* Bytes that the detector takes, of the budget of the device's memory. False, and the run marked,
 * past it; race_may_charge marks nothing. */
bool race_charge(race_book *b, run_state *run, uint64_t bytes); /* race_clock.c */
static inline bool race_may_charge(race_book *b, uint64_t bytes)
{
    return purse_take(&b->purse, bytes);
}
static inline void race_discharge(race_book *b, uint64_t bytes)
{
    purse_give(&b->purse, bytes);
}

/* race_book.c */
race_book *race_book_open(run_state *run);
uint32_t race_book_record(race_book *b, run_state *run, const race_record *r);
uint32_t race_book_add(race_visit *v, uint32_t old);
bool race_book_room(race_book *b, run_state *run);
race_clock **race_words_at(race_words *t, run_state *run, uint64_t key);
void race_words_clear(race_book *b, race_words *t);

/* Strong loads are noted as atomics are: they have an address and no value. */
static inline bool race_record_writes(const run_state *run, const race_record *r)
{
    return r->access == RACE_WRITE ||
           (r->access == RACE_ATOMIC && run->kernel->code[r->instruction].sources > 1);
}

/* Atomics and strong loads that give a value: they see what atomics before them wrote, which by the
 * manual's causality order comes before whatever comes behind them. Looks at an mbarrier do not. */
static inline bool race_record_sees(const run_state *run, const race_record *r)
{
    const instruction *i = &run->kernel->code[r->instruction];

    return r->access == RACE_ATOMIC && i->results > 0 && i->pipe == PIPE_MEMORY;
}

/* race_before.c */
bool race_before_mark(run_state *run, race_chunk *c, uint64_t base);

/* race_page.c */
race_page *race_page_global(race_book *b, run_state *run, uint64_t address);
void race_page_forget_global(race_book *b);
bool race_page_ready(run_state *run, race_page *p);
bool race_page_refine(run_state *run, race_page *p, uint8_t shift);
void race_page_free(race_book *b, race_page *p);
/* Whether the page is flat, which is found out. */
bool race_page_flat(race_page *p);
/* All units in one state. */
void race_page_level(race_page *p, uint32_t write, uint32_t read);
/* The arrays hold each unit's state again. */
void race_page_spread(race_page *p);
/* How many of n units from the first on have its state. */
uint32_t race_run_of(const uint32_t *write, const uint32_t *read, uint32_t n);
void race_fill(uint32_t *to, uint32_t value, uint32_t n);

/* race_shadow.c */
bool race_ordered(const race_visit *v, uint32_t record);
/* Units in that state were met before (or, `after`, left in it): `seen` and what goes with it is
 * about them again. */
bool race_recall(race_visit *v, uint32_t write, uint32_t read, bool after);
/* Whether this record is of the warp itself, since its lanes last met. */
bool race_own_now(const race_visit *v, uint32_t id);
/* What becomes of a word's state, or false and the access that stands against it. */
bool race_decide(race_visit *v, uint32_t write, uint32_t read);
/* The page of shadow that an address lies in; NULL, and the run marked, without memory. */
race_page *race_visit_page(race_visit *v, uint64_t at);
bool race_visit_units(race_visit *v, race_page *p, uint32_t first, uint32_t n,
                      const uint8_t *lanes);

/* race_alike.c. `bytes` at each lane's place, all of them in one state that allows it. False:
 * nothing was done, they must be gone through. */
bool race_visit_alike(race_visit *v, const uint64_t at[MACHINE_LANES], uint32_t mask,
                      uint32_t bytes);

/* race_report.c. "shared offset 64 of CTA 2" */
void race_place(const warp *w, const cta *owner, uint64_t at, char *text, size_t capacity);
void race_report(const race_visit *v, uint32_t lane, uint64_t at, uint32_t bytes);

#endif
