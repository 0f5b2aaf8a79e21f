/* flow.c - the control flow of a kernel's code, and which registers are live where. */
#include "emulator/ptx/flow.h"

#include <stdlib.h>

static bool ends_block(const instruction *i)
{
    return i->flow == FLOW_BRANCH || i->flow == FLOW_BRANCH_TABLE || i->flow == FLOW_EXIT;
}

static void mark_leaders(const ptx_builder *b, uint8_t *leader)
{
    leader[0] = 1;
    for (uint32_t n = 0; n < b->code_len; n++) {
        const instruction *i = &b->code[n];
        if (ends_block(i)) {
            leader[n + 1] = 1;
        }
        if (i->flow == FLOW_BRANCH) {
            leader[i->target] = 1;
        }
        for (uint32_t k = 0; i->flow == FLOW_BRANCH_TABLE && k < b->targets[i->target]; k++) {
            leader[b->targets[i->target + 1 + k]] = 1;
        }
    }
}

static bool open_blocks(flow_graph *g, ptx_builder *b)
{
    uint8_t *leader = calloc((size_t)b->code_len + 1, 1);
    uint32_t blocks = 0;

    *g = (flow_graph){.b = b, .words = b->vregs_len / 64 + 1};
    g->block_of = calloc(b->code_len, sizeof *g->block_of);
    if (leader == NULL || g->block_of == NULL) {
        free(leader);
        return false;
    }
    mark_leaders(b, leader);
    for (uint32_t n = 0; n < b->code_len; n++) {
        blocks += leader[n];
        g->block_of[n] = blocks - 1;
    }
    free(leader);
    g->blocks_len = blocks;
    g->blocks = calloc(blocks, sizeof *g->blocks);
    size_t bits = (size_t)blocks * g->words;
    g->in = calloc(bits * 4, sizeof *g->in);
    if (g->blocks == NULL || g->in == NULL) {
        return false;
    }
    g->out = g->in + bits;
    g->uses = g->out + bits;
    g->defines = g->uses + bits;
    return true;
}

void ptx_flow_close(flow_graph *g)
{
    free(g->blocks);
    free(g->block_of);
    free(g->in);
}

static void link_blocks(flow_graph *g)
{
    const ptx_builder *b = g->b;

    for (uint32_t n = b->code_len; n-- > 0;) {
        flow_block *k = &g->blocks[g->block_of[n]];
        k->begin = n;
    }
    for (uint32_t n = 0; n < b->code_len; n++) {
        g->blocks[g->block_of[n]].end = n + 1;
    }
    for (uint32_t n = 0; n < g->blocks_len; n++) {
        flow_block *k = &g->blocks[n];
        const instruction *last = &b->code[k->end - 1];
        bool falls = !ends_block(last) || last->guard != MACHINE_NONE;
        k->next[0] = falls && n + 1 < g->blocks_len ? n + 1 : MACHINE_NONE;
        k->next[1] = last->flow == FLOW_BRANCH ? g->block_of[last->target] : MACHINE_NONE;
        k->table = last->flow == FLOW_BRANCH_TABLE ? last->target : MACHINE_NONE;
    }
}

bool ptx_flow_is_variable(const ptx_builder *b, uint32_t v)
{
    return v != MACHINE_NONE && b->vregs[v].kind == VREG_VARIABLE;
}

static void find_uses(flow_graph *g)
{
    const ptx_builder *b = g->b;

    for (uint32_t n = 0; n < b->code_len; n++) {
        const instruction *i = &b->code[n];
        const uint32_t *o = b->operands + b->operand_at[n];
        uint64_t *uses = g->uses + (size_t)g->block_of[n] * g->words;
        uint64_t *defines = g->defines + (size_t)g->block_of[n] * g->words;
        for (uint32_t k = i->results; k <= (uint32_t)i->results + i->sources; k++) {
            uint32_t v = k < (uint32_t)i->results + i->sources ? o[k] : i->guard;
            if (ptx_flow_is_variable(b, v) && (defines[v / 64] >> v % 64 & 1) == 0) {
                uses[v / 64] |= UINT64_C(1) << v % 64;
            }
        }
        for (uint32_t k = 0; k < i->results && i->guard == MACHINE_NONE; k++) {
            defines[o[k] / 64] |= UINT64_C(1) << o[k] % 64;
        }
    }
}

static void join(flow_graph *g, uint64_t *out, uint32_t next)
{
    const uint64_t *in = g->in + (size_t)next * g->words;
    for (uint32_t k = 0; next != MACHINE_NONE && k < g->words; k++) {
        out[k] |= in[k];
    }
}

static bool update_block(flow_graph *g, uint32_t n)
{
    const ptx_builder *b = g->b;
    size_t at = (size_t)n * g->words;
    uint64_t *out = g->out + at, changed = 0;
    const flow_block *k = &g->blocks[n];

    join(g, out, k->next[0]);
    join(g, out, k->next[1]);
    for (uint32_t t = 0; k->table != MACHINE_NONE && t < b->targets[k->table]; t++) {
        join(g, out, g->block_of[b->targets[k->table + 1 + t]]);
    }
    for (uint32_t w = 0; w < g->words; w++) {
        uint64_t in = g->uses[at + w] | (out[w] & ~g->defines[at + w]);
        changed |= in ^ g->in[at + w];
        g->in[at + w] = in;
    }
    return changed != 0;
}

bool ptx_flow_open(flow_graph *g, ptx_builder *b)
{
    if (!open_blocks(g, b)) {
        return false;
    }
    link_blocks(g);
    return true;
}

void ptx_flow_solve_live(flow_graph *g)
{
    bool changed = true;

    find_uses(g);
    while (changed) {
        changed = false;
        for (uint32_t n = g->blocks_len; n-- > 0;) {
            changed |= update_block(g, n);
        }
    }
}

enum { MEET_STEPS = 4 }; /* blocks from a branch to where its ways join */

/* The block after `n` where there is no choice; else MACHINE_NONE. */
static uint32_t only_next(const flow_graph *g, uint32_t n)
{
    const flow_block *k = &g->blocks[n];

    if (k->table != MACHINE_NONE || (k->next[0] != MACHINE_NONE && k->next[1] != MACHINE_NONE)) {
        return MACHINE_NONE;
    }
    return k->next[0] != MACHINE_NONE ? k->next[0] : k->next[1];
}

static uint32_t join_of(const flow_graph *g, const flow_block *k)
{
    uint32_t left = k->next[0];

    for (int i = 0; i < MEET_STEPS && left != MACHINE_NONE; i++, left = only_next(g, left)) {
        uint32_t right = k->next[1];
        for (int j = 0; j < MEET_STEPS && right != MACHINE_NONE; j++, right = only_next(g, right)) {
            if (left == right) {
                return left;
            }
        }
    }
    return MACHINE_NONE;
}

void ptx_flow_find_meets(flow_graph *g)
{
    for (uint32_t n = 0; n < g->blocks_len; n++) {
        const flow_block *k = &g->blocks[n];
        instruction *last = &g->b->code[k->end - 1];
        if (last->flow != FLOW_BRANCH || k->next[0] == MACHINE_NONE || k->next[1] == MACHINE_NONE) {
            continue;
        }
        const uint32_t join = join_of(g, k);
        if (join != MACHINE_NONE && g->blocks[join].begin < k->end) {
            last->meet = g->blocks[join].begin;
        }
    }
}
