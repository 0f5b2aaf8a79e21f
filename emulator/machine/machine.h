/* machine.h - inside the machine: warps, CTAs, clusters, and one launch of them. */
#ifndef HONE_EMULATOR_MACHINE_H
#define HONE_EMULATOR_MACHINE_H

#include "emulator/machine/instruction.h"
#include "emulator/machine/purse.h"

enum {
    MACHINE_LANES = 32,
    MACHINE_SLOT = 128, /* bytes of a 32-bit register; poison masks count in these */
    MACHINE_BARRIERS = 16,
    MACHINE_WAIT_CLUSTER = MACHINE_BARRIERS, /* what else lanes wait for, beside barriers */
    MACHINE_WAIT_REGISTERS,
    MACHINE_WAIT_WGMMA, /* for the other warps of the warpgroup */
    MACHINE_WAITS,
    MACHINE_LINE = 128, /* bytes of a cache line, unit of unique_lines */
    MACHINE_SECTOR = 32,
};
#define MACHINE_ALL UINT32_MAX

/* Generic addresses of spaces that are not global lie where no host address does. */
#define MACHINE_WINDOW(space) ((uint64_t)(space) << 56)

typedef struct machine_run_state run_state;
typedef struct machine_operands machine_operands;
typedef struct cta cta;
typedef struct cluster cluster;
typedef struct mbarrier_table mbarrier_table;   /* mbarrier.h */
typedef struct async_op async_op;               /* async.h */
typedef struct tensor_map_seen tensor_map_seen; /* tensor_map_use.h */
typedef struct wgmma_pending wgmma_pending;     /* exec/wgmma.c */
typedef struct race_state race_state;           /* race.h */
typedef struct race_clock race_clock;
typedef struct race_task race_task;
typedef struct counters_sample counters_sample; /* counters.h */
typedef struct race_book race_book;

/* A copy that cp.async started and no wait has finished yet. */
typedef struct async_copy {
    uint32_t mask, group;
    uint32_t to[MACHINE_LANES];
    uint64_t from[MACHINE_LANES];
    uint32_t from_bytes[MACHINE_LANES];
    uint32_t bytes;
    const instruction *i;
    uint64_t serial; /* of the warp's copies */
    race_task *task;
    bool moved; /* the bytes are there already, and marked */
} async_copy;

typedef enum warp_state {
    WARP_READY,
    WARP_WAITING, /* every live lane is `blocked`, or waits for one that is */
    WARP_DONE,
} warp_state;

struct warp {
    uint8_t *r;
    uint32_t *poison; /* by slot */
    uint32_t live;
    uint32_t pc; /* of all lanes while they are together */
    uint32_t lane_pc[MACHINE_LANES];
    uint32_t parked;             /* lanes that wait at a warp-wide instruction */
    uint32_t rotate;             /* the next group begins at or above this pc: fairness */
    uint32_t meet_pc, meet_mask; /* lanes that parted and wait for one another here; none: 0 */
    bool diverged, tainted;
    uint8_t settles_in,
        settles_wait; /* turns until taint_settle looks; from one look to the next */
    bool progressed;  /* since parked lanes were last let go to look again */
    /* A handler asks for the turn to end: what it polls for has not happened. `polled` is then the
     * cluster's `changes` at that time: while it stands, looking again is in vain. */
    bool yields;
    uint64_t polled;
    bool in_vain;               /* the last poll */
    const instruction *polling; /* the poll, */
    uint32_t polled_at;         /* and the offset of its mbarrier in the CTA's shared memory */
    uint32_t polls;             /* in vain, in a row, while `changes` stood; turns that ended so */
    warp_state state;
    uint32_t index;
    /* By barrier of the CTA: lanes that have arrived while others of the warp have not, and lanes
     * that wait, also at MACHINE_WAIT_*. `blocked`: all that wait at any. A waiting lane's program
     * counter is behind its instruction. */
    uint32_t arrived[MACHINE_BARRIERS], waits[MACHINE_WAITS], blocked;
    /* Of the cluster's barrier: lanes that arrived in the phase that goes on; lanes whose phase is
     * over and that have not waited yet. */
    uint32_t cluster_arrived, cluster_passed;
    uint32_t registers, wants, register_requests; /* of each thread; setmaxnreg */
    cta *cta;
    run_state *run;
    uint8_t *local, *local_shadow;
    async_copy *copies;
    uint32_t copies_len, copies_capacity;
    uint64_t copies_started;
    uint32_t copies_tracked; /* arrivals still to come that wait for copies */
    uint32_t committed[MACHINE_LANES];
    uint32_t bulk_committed[MACHINE_LANES]; /* groups of bulk operations */
    wgmma_pending *wgmma;                   /* NULL until the first one */
};

typedef struct cta_barrier {
    uint32_t arrived, expected; /* threads, whole warps */
    uint32_t all, any, count;   /* of bar.red */
    bool begun;                 /* somebody has arrived, maybe not with a whole warp */
    bool votes;                 /* of a bar.red: who waits gets a result */
    race_clock *clock;          /* what those who arrived know */
} cta_barrier;

struct cta {
    cluster *cluster;
    uint32_t rank; /* in its cluster */
    uint64_t linear;
    uint32_t index[3];
    uint8_t *shared, *shared_shadow;
    uint32_t shared_bytes;
    warp *warps;
    uint32_t warps_len, done_len;
    uint32_t registers_free; /* of each lane of a warp, summed over warps */
    cta_barrier barriers[MACHINE_BARRIERS];
    mbarrier_table *mbarriers; /* NULL until the first one */
    tensor_map_seen *maps;     /* as this CTA knows them; NULL until the first one */
    bool marked; /* shadow bytes may say more than written or not: see access_unmarked */
};

/* CTAs that run together: one, unless the launch says more. */
struct cluster {
    run_state *run;
    cta *ctas;
    uint32_t ctas_len, dims[3];
    /* Counts what a poll may wait for: phases that complete, copies that land, stores to shared
     * memory of another CTA. Who makes such a change adds one. */
    uint64_t changes;
    async_op *first, *last; /* issued and not done, oldest first */
    race_state *races;      /* NULL: nobody looks for races */

    uint64_t linear;   /* of the clusters of the grid */
    uint32_t index[3]; /* in clusters */
    uint32_t done_len; /* CTAs */
    /* Its barrier: threads that arrived in this phase, and threads that have not exited. */
    uint32_t arrived, live;
    race_clock *arriving, *passed; /* what those know who arrived in this phase; in the last */
    uint64_t ran;                  /* warp instructions since it began */
    /* Of the scheduler: `changes` at its last look, and for how many rounds it stood still; rounds
     * in a row in which every warp that is ready polled in vain. */
    uint64_t seen;
    uint32_t rounds, idle_rounds;
};

/* Lines of one allocation that the launch has touched; with counters by line, that an instruction
 * has. */
typedef struct touched_range {
    const memory_range *range;
    uint64_t *lines;
    uint32_t by; /* the instruction, or 0 */
} touched_range;

struct machine_run_state {
    const machine_launch *launch;
    const ptx_kernel *kernel;
    hone_emu_counters counters;
    uint64_t pipes[PIPE_COUNT];
    hone_emu_line *profile;  /* by instruction; NULL: not wanted */
    counters_sample *sample; /* NULL: all CTAs run */
    hone_emu_fault fault;
    char *places; /* of a deadlock or a hang: see machine_launch; NULL without memory */
    bool faulted, out_of_memory;
    memory_purse purse; /* what it takes beside its clusters and its race detector */
    race_book *races;   /* race.h: NULL until a cluster looks for races */
    touched_range *touched;
    size_t touched_len, touched_capacity;
    uint32_t *hit;              /* by instruction: 1 + index in `touched` of its last access */
    machine_operands *operands; /* of the matrix unit, once one was used; freed with the launch */
    uint64_t random;
    /* Lowest fault of the launch so far, by place in the order of clusters, where host threads run
     * side by side; clusters behind it are given up. NULL: one thread. */
    const uint64_t *fault_at;
    uint64_t running;  /* place of the cluster that runs, of use with fault_at only */
    uint32_t resident; /* clusters that run in turns */
    uint64_t printed;  /* bytes that the kernel's printf has written */
};

static inline uint32_t machine_lowest(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}
/* for (EACH_LANE(lane, mask)) */
#define EACH_LANE(lane, mask)                                                                      \
    uint32_t rest_ = (mask), lane = rest_ ? machine_lowest(rest_) : 0;                             \
    rest_ != 0;                                                                                    \
    rest_ &= rest_ - 1, lane = rest_ ? machine_lowest(rest_) : 0

/* Lanes of `mask` whose sources are all those of `lane`. Engines take operands that a warp shares:
 * lanes that give the same make one operation (so ptxas compiles UTMALDG, UTMASTG, UBLKCP: a loop
 * over distinct operands). warp.c. */
uint32_t machine_alike(const warp *w, const instruction *i, uint32_t lane, uint32_t mask);

/* Whether the launch looks for this. */
static inline bool machine_checks(const warp *w, hone_emu_check check)
{
    return (w->run->launch->checks & (uint32_t)check) != 0;
}

static inline uint32_t *machine_r32(const warp *w, uint32_t operand)
{
    return (uint32_t *)(void *)(w->r + operand);
}
static inline uint64_t *machine_r64(const warp *w, uint32_t operand)
{
    return (uint64_t *)(void *)(w->r + operand);
}
/* The poison mask of an operand, be it a predicate or a register. */
static inline uint32_t *machine_poison(const warp *w, uint32_t operand)
{
    return operand < w->run->kernel->predicate_bytes ? (uint32_t *)(void *)(w->r + operand + 4)
                                                     : w->poison + operand / MACHINE_SLOT;
}
static inline void machine_set_predicate(const warp *w, uint32_t operand, uint32_t value,
                                         uint32_t mask)
{
    uint32_t *p = machine_r32(w, operand);
    *p = (*p & ~mask) | (value & mask);
}

/* fault.c: the first fault of a launch stands; later ones are ignored. */
typedef enum machine_fault_kind {
    FAULT_OUT_OF_BOUNDS,
    FAULT_USE_AFTER_FREE,
    FAULT_MISALIGNED,
    FAULT_UNINITIALISED,
    FAULT_DEADLOCK,
    FAULT_BARRIER_DIVERGENCE,
    FAULT_HANG,
    FAULT_TRAP,
    FAULT_ASSERT,
    FAULT_UNSUPPORTED,
    FAULT_RACE,
    FAULT_ASYNC,        /* memory or registers of an operation in flight */
    FAULT_PROXY,        /* no proxy fence between a write and an engine's access */
    FAULT_MEMBERMASK,   /* a lane that is not in its own mask, or lanes that give different ones */
    FAULT_MBARRIER,     /* its protocol */
    FAULT_TENSOR_MAP,   /* not one, stale, or used against its rules */
    FAULT_REGISTERS,    /* setmaxnreg */
    FAULT_PRECONDITION, /* another rule of the instruction: alignment of a descriptor, a size */
} machine_fault_kind;
void machine_fault(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                   machine_fault_kind kind, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* warp.c: run until a barrier, the end, a fault, or `quantum` instructions. */
void warp_run(warp *w, uint64_t quantum);
/* The instruction where `lane` stands; of a lane that waits at a barrier, the barrier. */
const instruction *warp_stands_at(const warp *w, uint32_t lane);
/* taint.c: before an instruction of a tainted warp. False: do not run it, a fault is filed. */
bool taint_before(warp *w, const instruction *i, uint32_t active, uint32_t mask);
/* A turn of a tainted warp begins: if its registers hold no poison any more, it is not tainted. */
void taint_settle(warp *w);
/* True (and a fault) when a lane in `mask` holds poison in `operand`. */
bool taint_refuse(warp *w, const instruction *i, uint32_t operand, uint32_t mask, const char *use);
void taint_set(warp *w, uint32_t operand, uint32_t value, uint32_t mask);

/* barrier.c: lanes of a warp arrive at a named barrier of their CTA, and wait. */
void barrier_arrive(warp *w, const instruction *i, uint32_t mask);
uint32_t barrier_expects(const cta *c, uint32_t id); /* threads, whole warps */
/* Lanes have left their warp (it may be none is left): barriers that waited for them only, open. */
void barrier_leave(warp *w);
/* Lanes that wait at one of the barriers may go on. */
void barrier_release(warp *w, uint32_t id);
/* cluster.c: the CTAs that run together. open makes room, begin starts the cluster `linear` of the
 * grid. */
hone_status cluster_open(cluster *c, run_state *run, hone_error *error);
void cluster_begin(cluster *c, uint64_t linear);
void cluster_close(cluster *c);
void cluster_arrive(warp *w, const instruction *i, uint32_t mask);
void cluster_wait(warp *w, const instruction *i, uint32_t mask);
void cluster_leave(warp *w, uint32_t leaving);
/* Number of CTAs of a cluster of this launch. */
uint32_t cluster_size(const machine_launch *l);
uint64_t cluster_bytes(const machine_launch *l); /* of host memory, of one that is open */
/* places.c: no warp of the cluster can go on: where each stands. The same of one that runs too
 * long. */
void cluster_report_deadlock(cluster *c);
void cluster_report_hang(cluster *c);
/* registers.c: of a thread when the launch begins; setmaxnreg. */
uint32_t registers_at_start(const machine_launch *l);
void registers_request(warp *w, const instruction *i, uint32_t mask);
/* special.c */
/* -1: no such register. *width: 8, 4, or 0 of a predicate. */
int special_find(ptx_text name, uint8_t *width);
void special_fill_warp(warp *w);
void special_fill_clocks(warp *w);
/* machine.c: what a run keeps beside its clusters. */
hone_status machine_open_run(run_state *run, const machine_launch *l, hone_error *error);
void machine_close_run(run_state *run);
/* Host memory that a run takes as it goes on, before it is allocated; what was not given back is at
 * the run's end. False, and the run marked, past the budget of the device's memory. */
bool machine_take(run_state *run, uint64_t bytes);
static inline void machine_give(run_state *run, uint64_t bytes)
{
    purse_give(&run->purse, bytes);
}
/* A list with room for one more than `len`; *capacity grows. NULL, and the run marked, without
 * memory; the list is then as it was. */
void *machine_grow(run_state *run, void *list, uint32_t len, uint32_t *capacity, size_t size);
void machine_out_of_memory(run_state *run); /* it ends, with that for an answer */
/* schedule.c: begin a cluster; give its warps turns; it has ended. */
void schedule_begin(cluster *c, uint64_t linear);
void schedule_step(cluster *c);
void schedule_end(cluster *c);
/* Begin to end; false when it was given up, for a fault of one before it. */
bool schedule_run(cluster *c, uint64_t linear);
/* grid.c: all clusters of a launch. */
hone_status grid_run(run_state *run, hone_error *error);
/* Clusters to look at, and the n-th of them; false when it is one that was run before it. */
uint64_t grid_count(const machine_launch *l);
bool grid_pick(const machine_launch *l, uint64_t n, uint64_t *linear);
/* threads.c: the same on several host threads. */
hone_status threads_run(run_state *run, uint32_t threads, hone_error *error);

/* Global memory of a launch: global.c. The range that holds [address, address + bytes) of an
 * instruction's access, or NULL after a fault; marks its lines. */
touched_range *global_range(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                            uint64_t bytes);
/* Whether a store may go there; false after a fault. */
bool global_writable(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                     const memory_range *range);
void global_mark_lines(touched_range *t, uint64_t begin, uint64_t end);
/* Distinct lines by group of instructions: group[n] is that of the kernel's n-th, below `groups`;
 * `unique` has room for them. NULL instead of `group`: one group of all. */
hone_status global_unique_lines(const run_state *run, const uint32_t *group, uint32_t groups,
                                uint64_t *unique, hone_error *error);
hone_status global_merge(run_state *into, const run_state *from, hone_error *error);
void global_close(run_state *run);

#endif
