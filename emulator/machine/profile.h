/* profile.h - counters by instruction while a launch runs, and by line of PTX after it. */
#ifndef HONE_EMULATOR_PROFILE_H
#define HONE_EMULATOR_PROFILE_H

#include "emulator/machine/machine.h"

/* Room for the kernel's instructions; without it (run->profile NULL) nothing is counted. */
hone_status profile_open(run_state *run, hone_error *error);
void profile_merge(run_state *into, const run_state *from);
/* By line of PTX, instructions that ran. */
hone_status profile_collect(const run_state *run, machine_profile *out, hone_error *error);

/* Around an instruction: where the launch's counters stand, as a line; and what they rose by since
 * then, which is the instruction's. */
void profile_look(const run_state *run, hone_emu_line *out);
void profile_charge(run_state *run, const instruction *i, const hone_emu_line *since);

/* Whether an instruction moves no counters but those of the warp's loop: then profile_count is
 * enough. */
static inline bool profile_is_plain(const instruction *i)
{
    const uint32_t plain = 1u << PIPE_ALU | 1u << PIPE_FP32 | 1u << PIPE_SFU |
                           1u << PIPE_CONVERSION | 1u << PIPE_FP64 | 1u << PIPE_HALF;
    return i->flow == FLOW_NEXT && (plain >> i->pipe & 1) != 0;
}

/* `active` lanes came to it, those of `mask` run it. */
static inline void profile_count(run_state *run, const instruction *i, uint32_t active,
                                 uint32_t mask)
{
    hone_emu_line *line = &run->profile[i - run->kernel->code];

    if ((i->flags & FLAG_HIDDEN) == 0) {
        line->warp_instructions++;
        line->thread_instructions += (uint64_t)__builtin_popcount(active);
        line->predicated_off += (uint64_t)__builtin_popcount(active & ~mask);
    }
}

#endif
