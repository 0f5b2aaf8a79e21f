/* sass_flow.h - the ways through a kernel's code. Private to bench/sass*. */
#ifndef HONE_BENCH_SASS_FLOW_H
#define HONE_BENCH_SASS_FLOW_H

#include "bench/sass_parts.h"

#define SASS_NOWHERE UINT32_MAX

/* The ways through the code. Way 2i falls from instruction i to the next, way 2i+1 jumps. */
typedef struct sass_flow {
    uint32_t len;
    uint32_t *to;       /* of each way, or SASS_NOWHERE */
    uint32_t *ways_in;  /* first way into an instruction, or SASS_NOWHERE */
    uint32_t *next_way; /* next way into the same one */
    uint32_t *stack;    /* len */
    uint8_t *reached;   /* from the kernel's entry */
    uint8_t *mark;      /* of the search under way */
} sass_flow;

/* The caller ends it with sass_flow_close, which accepts a zeroed one. */
hone_status sass_flow_open(const sass_code *code, sass_flow *out, hone_error *error);
void sass_flow_close(sass_flow *f);

/* Where instruction i may jump; SASS_NOWHERE when it does not. */
static inline uint32_t sass_flow_jump(const sass_flow *f, uint32_t i)
{
    return f->to[2 * (size_t)i + 1];
}

/* Mark what is reached from the entry without passing `avoided`. */
void sass_flow_reach(const sass_flow *f, uint32_t avoided, uint8_t *mark);

/* Mark, beside what is marked, what reaches `source` without passing `header`, and both. */
void sass_flow_add_body(const sass_flow *f, uint32_t header, uint32_t source, uint8_t *mark);

#endif
