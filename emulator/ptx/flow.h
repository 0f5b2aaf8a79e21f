/* flow.h - blocks of a kernel's code, and analyses over them. */
#ifndef HONE_EMULATOR_PTX_FLOW_H
#define HONE_EMULATOR_PTX_FLOW_H

#include "emulator/ptx/build.h"

typedef struct flow_block {
    uint32_t begin, end; /* instructions */
    uint32_t next[2];    /* MACHINE_NONE */
    uint32_t table;      /* branch table in targets, or MACHINE_NONE */
} flow_block;

/* Sets have a bit for each virtual register, `words` words of 64 for each block. */
typedef struct flow_graph {
    ptx_builder *b;
    flow_block *blocks;
    uint32_t blocks_len, words;
    uint32_t *block_of; /* by instruction */
    uint64_t *in, *out, *uses, *defines;
} flow_graph;

/* False without memory. Close the graph in either case. */
bool ptx_flow_open(flow_graph *g, ptx_builder *b);
void ptx_flow_close(flow_graph *g);
/* Sets `meet` of branches whose two ways come, without another choice, to a block before them: the
 * end of an `if` that a compiler has put at the top of its loop. */
void ptx_flow_find_meets(flow_graph *g);
/* Fills `in` and `out` with the registers that are live at the ends of each block. */
void ptx_flow_solve_live(flow_graph *g);
bool ptx_flow_is_variable(const ptx_builder *b, uint32_t v);

#endif
