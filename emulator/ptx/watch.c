/* watch.c - registers that wgmma names as accumulators or as A, and those that copies tie to them.
 *
 * An instruction that touches one gets exec_wgmma_touch before its handler, and the numbers of the
 * registers that it touches: others pay nothing. While such a register may belong to a product in
 * flight it stays alive, so that nothing else gets its slot. */
#include "emulator/exec/wgmma.h"
#include "emulator/ptx/flow.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *operands_of(const ptx_builder *b, uint32_t n)
{
    return b->operands + b->operand_at[n];
}

static uint32_t operands_len(const instruction *i)
{
    return (uint32_t)i->results + i->sources;
}

/* The registers of A stand before B's descriptor and scale-d. */
static bool is_held(const instruction *i, uint32_t k)
{
    uint32_t len = operands_len(i);

    return k < i->results || ((i->offset & WGMMA_REGISTERS_A) != 0 && k + 6 >= len && k + 2 < len);
}

static bool is_copy(const ptx_builder *b, const instruction *i, execute move, uint32_t n)
{
    return i->run == move && i->results == 1 && i->sources == 1 &&
           ptx_flow_is_variable(b, operands_of(b, n)[1]);
}

/* Marks what wgmma names, then both ends of copies. False: the kernel has no wgmma. */
static bool mark_registers(const ptx_builder *b, execute move, uint8_t *marked)
{
    bool found = false, changed = true;

    for (uint32_t n = 0; n < b->code_len; n++) {
        const instruction *i = &b->code[n];
        found = found || i->run == exec_wgmma;
        for (uint32_t k = 0; i->run == exec_wgmma && k < operands_len(i); k++) {
            uint32_t v = operands_of(b, n)[k];
            marked[v] |= is_held(i, k) && ptx_flow_is_variable(b, v);
        }
    }
    while (found && changed) {
        changed = false;
        for (uint32_t n = 0; n < b->code_len; n++) {
            const uint32_t *o = operands_of(b, n);
            if (is_copy(b, &b->code[n], move, n) && marked[o[0]] != marked[o[1]]) {
                marked[o[0]] = marked[o[1]] = 1;
                changed = true;
            }
        }
    }
    return found;
}

static bool moves(const instruction *i)
{
    return i->watched != NULL && (i->flags & FLAG_MOVE) != 0;
}

static bool touches(const ptx_builder *b, uint32_t n, const uint8_t *marked)
{
    const instruction *i = &b->code[n];
    bool any = false;

    for (uint32_t k = 0; k < operands_len(i) && i->flow != FLOW_BRANCH_TABLE; k++) {
        any = any || marked[operands_of(b, n)[k]];
    }
    return any || i->run == exec_wgmma;
}

static void watch_instruction(ptx_builder *b, uint32_t n, execute move, uint32_t at)
{
    instruction *i = &b->code[n];

    if (i->run == move && i->sources == 1) {
        i->flags |= (uint8_t)(is_copy(b, i, move, n) ? FLAG_MOVE : FLAG_CLEAR);
    }
    i->numbers = at;
    if (i->run != exec_wgmma) {
        i->watched = i->run;
        i->run = exec_wgmma_touch;
    }
}

/* numbers: of each virtual register, or MACHINE_NONE. */
static bool write_watched(ptx_builder *b, execute move, const uint8_t *marked,
                          const uint32_t *numbers)
{
    size_t total = 0, at = 0;

    for (uint32_t n = 0; n < b->code_len; n++) {
        total += touches(b, n, marked) ? operands_len(&b->code[n]) : 0;
    }
    b->watched = malloc((total + 1) * sizeof *b->watched);
    for (uint32_t n = 0; b->watched != NULL && n < b->code_len; n++) {
        if (!touches(b, n, marked)) {
            continue;
        }
        watch_instruction(b, n, move, (uint32_t)at);
        for (uint32_t k = 0; k < operands_len(&b->code[n]); k++) {
            b->watched[at++] = numbers[operands_of(b, n)[k]];
        }
    }
    return b->watched != NULL;
}

hone_status ptx_watch_find(ptx_builder *b)
{
    const exec_row *row = ptx_build_find(b, (ptx_text){"mov.b32", 7});
    execute move = row != NULL ? row->run : NULL;
    uint8_t *marked = calloc((size_t)b->vregs_len + 1, 1);
    uint32_t *numbers = malloc(((size_t)b->vregs_len + 1) * sizeof *numbers);
    bool good = marked != NULL && numbers != NULL;

    if (good && mark_registers(b, move, marked)) {
        for (uint32_t v = 0; v < b->vregs_len; v++) {
            numbers[v] = marked[v] ? b->watched_len++ : MACHINE_NONE;
        }
        good = write_watched(b, move, marked, numbers);
    }
    if (!good) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's registers");
    }
    free(marked);
    free(numbers);
    return b->status;
}

/* ---- Lifetimes ----------------------------------------------------------------------------- */

/* Sets of numbers: registers that a product in flight may hold, at the ends of blocks. */
typedef struct flight {
    ptx_builder *b;
    uint32_t words;
    uint64_t *in, *now;
    uint32_t *vreg_of; /* by number */
} flight;

static bool holds(const uint64_t *set, uint32_t number)
{
    return number != MACHINE_NONE && (set[number / 64] >> number % 64 & 1) != 0;
}

static void put(uint64_t *set, uint32_t number, bool in)
{
    if (number != MACHINE_NONE) {
        set[number / 64] &= ~(UINT64_C(1) << number % 64);
        set[number / 64] |= (uint64_t)in << number % 64;
    }
}

static void extend_all(const flight *f, const uint64_t *set, uint32_t at)
{
    for (uint32_t w = 0; w < f->words; w++) {
        for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
            ptx_opt_extend(f->b, f->vreg_of[w * 64 + (uint32_t)__builtin_ctzll(bits)], at);
        }
    }
}

/* What an instruction does to the set. */
static void step(const flight *f, uint32_t n, uint64_t *set)
{
    const instruction *i = &f->b->code[n];
    const uint32_t *numbers = f->b->watched + i->numbers;

    if (i->run == exec_wgmma_wait && i->kind == 0) {
        memset(set, 0, f->words * sizeof *set);
    } else if (i->run == exec_wgmma) {
        for (uint32_t k = 0; k < operands_len(i); k++) {
            if (is_held(i, k)) {
                put(set, numbers[k], true);
            }
        }
    } else if (moves(i) && holds(set, numbers[1])) {
        put(set, numbers[0], true);
    }
}

static bool join(const flight *f, uint32_t next)
{
    uint64_t *in = f->in + (size_t)next * f->words, changed = 0;

    for (uint32_t w = 0; w < f->words; w++) {
        changed |= f->now[w] & ~in[w];
        in[w] |= f->now[w];
    }
    return changed != 0;
}

/* Runs a block and hands its end's set on; `extends`: the registers live on through it. */
static bool run_block(const flight *f, const flow_graph *g, uint32_t n, bool extends)
{
    const flow_block *k = &g->blocks[n];
    const ptx_builder *b = f->b;
    bool changed = false;

    memcpy(f->now, f->in + (size_t)n * f->words, f->words * sizeof *f->now);
    for (uint32_t at = k->begin; at < k->end; at++) {
        bool matters = b->code[at].run == exec_wgmma_wait || moves(&b->code[at]);
        if (extends && (matters || at == k->begin)) {
            extend_all(f, f->now, at);
        }
        step(f, at, f->now);
    }
    if (extends) {
        extend_all(f, f->now, k->end - 1);
        return false;
    }
    for (uint32_t e = 0; e < 2; e++) {
        changed |= k->next[e] != MACHINE_NONE && join(f, k->next[e]);
    }
    for (uint32_t t = 0; k->table != MACHINE_NONE && t < b->targets[k->table]; t++) {
        changed |= join(f, g->block_of[b->targets[k->table + 1 + t]]);
    }
    return changed;
}

static void name_numbers(const flight *f)
{
    for (uint32_t n = 0; n < f->b->code_len; n++) {
        const instruction *i = &f->b->code[n];
        if (i->run != exec_wgmma && i->watched == NULL) {
            continue;
        }
        for (uint32_t k = 0; k < operands_len(i); k++) {
            uint32_t number = f->b->watched[i->numbers + k];
            if (number != MACHINE_NONE) {
                f->vreg_of[number] = operands_of(f->b, n)[k];
            }
        }
    }
}

bool ptx_watch_extend(ptx_builder *b, const flow_graph *g)
{
    flight f = {.b = b, .words = b->watched_len / 64 + 1};
    bool changed = true;

    if (b->watched == NULL) {
        return true;
    }
    f.in = calloc(((size_t)g->blocks_len + 1) * f.words, sizeof *f.in);
    f.vreg_of = calloc((size_t)b->watched_len + 1, sizeof *f.vreg_of);
    bool good = f.in != NULL && f.vreg_of != NULL;
    if (good) {
        f.now = f.in + (size_t)g->blocks_len * f.words;
        name_numbers(&f);
    }
    while (good && changed) {
        changed = false;
        for (uint32_t n = 0; n < g->blocks_len; n++) {
            changed |= run_block(&f, g, n, false);
        }
    }
    for (uint32_t n = 0; good && n < g->blocks_len; n++) {
        run_block(&f, g, n, true);
    }
    free(f.in);
    free(f.vreg_of);
    return good;
}
