/* profile.c - counters by instruction, gathered into lines of PTX. Off unless asked for: the table
 * is then not even there. */
#include "emulator/machine/profile.h"

#include <stdlib.h>
#include <string.h>

hone_status profile_open(run_state *run, hone_error *error)
{
    uint64_t bytes = run->kernel->code_len * sizeof *run->profile;
    run->profile = purse_take(&run->purse, bytes) ? calloc(1, (size_t)bytes) : NULL;
    return run->profile != NULL
               ? HONE_OK
               : status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "counters by line");
}

static void add(hone_emu_line *into, const hone_emu_line *from)
{
#define X(name) into->name += from->name;
    HONE_EMU_LINE_COUNTERS(X)
#undef X
}

void profile_merge(run_state *into, const run_state *from)
{
    for (uint32_t n = 0; into->profile != NULL && n < into->kernel->code_len; n++) {
        add(&into->profile[n], &from->profile[n]);
    }
}

void profile_look(const run_state *run, hone_emu_line *out)
{
    const hone_emu_counters *c = &run->counters;

    *out = (hone_emu_line){
        .warp_instructions = c->warp_instructions,
        .thread_instructions = c->thread_instructions,
        .predicated_off = c->predicated_off,
        .divergent_branches = c->divergent_branches,
        .global_requests = c->global_requests,
        .global_sectors = c->global_load_sectors + c->global_store_sectors,
        .shared_requests = c->shared_requests,
        .shared_wavefronts = c->shared_wavefronts,
        .shared_conflicts = c->shared_conflicts,
        .local_requests = c->local_requests,
        .atomics = c->atomics,
        .async_copy_bytes = c->async_copy_bytes,
        .tma_load_bytes = c->tma_load_bytes,
        .tma_store_bytes = c->tma_store_bytes,
        .barriers = c->barriers,
        .mbarrier_arrivals = c->mbarrier_arrivals,
        .waits = c->waits,
    };
    for (size_t n = 0; n < ARRAY_LEN(c->tensor_macs); n++) {
        out->macs += c->tensor_macs[n];
    }
}

void profile_charge(run_state *run, const instruction *i, const hone_emu_line *since)
{
    hone_emu_line *line = &run->profile[i - run->kernel->code];
    hone_emu_line now;

    profile_look(run, &now);
#define X(name) line->name += now.name - since->name;
    HONE_EMU_LINE_COUNTERS(X)
#undef X
}

void machine_profile_free(machine_profile *p)
{
    for (size_t n = 0; n < p->paths_len; n++) {
        free(p->paths[n]);
    }
    free(p->paths);
    free(p->lines);
    *p = (machine_profile){0};
}

static int by_line(const void *a, const void *b)
{
    const hone_emu_line *x = a, *y = b;

    return (x->ptx_line > y->ptx_line) - (x->ptx_line < y->ptx_line);
}

/* The profile's own copy of a path: it outlives the module. NULL when out of memory. */
static const char *keep_path(machine_profile *p, const char *path)
{
    for (size_t n = 0; n < p->paths_len; n++) {
        if (strcmp(p->paths[n], path) == 0) {
            return p->paths[n];
        }
    }
    char **grown = realloc(p->paths, (p->paths_len + 1) * sizeof *grown);
    if (grown == NULL) {
        return NULL;
    }
    p->paths = grown;
    grown[p->paths_len] = strdup(path);
    return grown[p->paths_len] != NULL ? grown[p->paths_len++] : NULL;
}

/* Instructions of one line (widenings, calls that were inlined) stand together after sorting. */
static void join_lines(machine_profile *p)
{
    size_t kept = 0;

    qsort(p->lines, p->len, sizeof *p->lines, by_line);
    for (size_t n = 0; n < p->len; n++) {
        if (kept > 0 && p->lines[kept - 1].ptx_line == p->lines[n].ptx_line) {
            add(&p->lines[kept - 1], &p->lines[n]);
        } else {
            p->lines[kept++] = p->lines[n];
        }
    }
    p->len = kept;
}

hone_status profile_collect(const run_state *run, machine_profile *out, hone_error *error)
{
    const ptx_kernel *k = run->kernel;
    machine_profile made = {.lines = calloc(k->code_len, sizeof *made.lines)};
    bool good = made.lines != NULL;

    for (uint32_t n = 0; good && n < k->code_len; n++) {
        hone_emu_line *line = &made.lines[made.len];
        const ptx_place *at = source_place(k, &k->code[n]);
        if (run->profile[n].warp_instructions == 0) {
            continue;
        }
        *line = run->profile[n];
        line->ptx_line = k->code[n].line;
        line->source_line = (int32_t)at->line;
        line->source = keep_path(&made, source_path(k->files, at->file));
        good = line->source != NULL;
        made.len++;
    }
    if (!good) {
        machine_profile_free(&made);
        return status_set(error, HONE_NO_MEMORY, k->name, 0, "counters by line");
    }
    join_lines(&made);
    *out = made;
    return HONE_OK;
}
