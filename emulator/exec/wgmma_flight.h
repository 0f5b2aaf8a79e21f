/* wgmma_flight.h - products in flight of one warp, between wgmma_flight.c, which issues and ends
 * them, and wgmma_touch.c, which keeps others off their registers.
 *
 * Registers go by the numbers of ptx/watch.c, not by their slots, which others may use later. A
 * chain is a set of accumulators: products of one shape add to it one after the other. Compilers
 * copy accumulators before the wait, and go on with either register: a copy is held like what it
 * copies. */
#ifndef HONE_EMULATOR_EXEC_WGMMA_FLIGHT_H
#define HONE_EMULATOR_EXEC_WGMMA_FLIGHT_H

#include "emulator/exec/wgmma.h"

/* What the warp's own instructions did to a register since the last wgmma.fence. */
enum { TOUCH_COPIED = 1, TOUCH_READ = 2, TOUCH_WRITTEN = 4 };

/* What holds a register: a chain that it belongs to, or that it is a copy of. */
typedef enum hold { HOLD_NONE, HOLD_MEMBER, HOLD_COPY } hold;

typedef struct held_register {
    uint8_t hold, touched; /* touched: ask wgmma_touched */
    bool is_a;             /* a product in flight reads it */
    bool copied;           /* a copy keeps its value: it may be written */
    uint16_t element;      /* of the chain */
    uint32_t chain;        /* its number */
    uint32_t group;        /* of the last product: of a copy, as it was then; or of what reads A */
    int32_t line;          /* of that product */
    int32_t touch_line;    /* of the last touch, */
    uint32_t touched_in;   /* and how many fences there were before it */
} held_register;

typedef struct chain {
    uint32_t number; /* 1, 2, ...; 0: free */
    uint8_t result;
    uint32_t len;
    uint32_t fences; /* had been executed when its last product was issued */
} chain;

struct wgmma_flight {
    held_register *registers;
    uint32_t registers_len;
    chain *chains;
    uint32_t chains_len, chains_capacity;
    wgmma_op *ops; /* oldest first */
    uint32_t ops_len, ops_capacity;
    uint32_t committed, held; /* groups; registers that products hold */
    uint32_t numbers;         /* of chains, given so far */
    uint32_t fences;
};

static inline bool wgmma_is_held(const held_register *r)
{
    return r->hold != HOLD_NONE || r->is_a;
}

/* TOUCH_* since the last fence. */
static inline uint8_t wgmma_touched(const wgmma_flight *f, const held_register *r)
{
    return r->touched_in == f->fences ? r->touched : 0;
}

/* Does what waits in groups below `limit`, in order. False after a fault. */
bool wgmma_perform_below(warp *w, wgmma_flight *f, uint32_t limit);
/* Does what lies in groups below `limit`, and lets go of its registers. False after a fault. */
bool wgmma_finish(warp *w, wgmma_flight *f, uint32_t limit);
void wgmma_refuse_in_flight(warp *w, const instruction *i, int32_t line, const char *use);

#endif
