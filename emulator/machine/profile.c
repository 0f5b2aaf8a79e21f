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
    for (size_t n = 0; n < ARRAY_LEN(into->tensor_macs); n++) {
        into->tensor_macs[n] += from->tensor_macs[n];
    }
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
        .constant_requests = c->constant_requests,
        .atomics = c->atomics,
        .async_copy_bytes = c->async_copy_bytes,
        .tma_load_bytes = c->tma_load_bytes,
        .tma_store_bytes = c->tma_store_bytes,
        .barriers = c->barriers,
        .mbarrier_arrivals = c->mbarrier_arrivals,
        .waits = c->waits,
        .polls = c->polls,
        .tma_wavefronts = c->tma_wavefronts,
        .tma_conflicts = c->tma_conflicts,
    };
    memcpy(out->tensor_macs, c->tensor_macs, sizeof out->tensor_macs);
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
    for (size_t n = 0; now.macs != since->macs && n < ARRAY_LEN(now.tensor_macs); n++) {
        line->tensor_macs[n] += now.tensor_macs[n] - since->tensor_macs[n];
    }
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

/* An instruction is of one class, so that its own counts need not be kept. */
static void classify(hone_emu_line *line, machine_pipe pipe)
{
    uint64_t *const fields[PIPE_COUNT] = {
        [PIPE_CONTROL] = &line->control,
        [PIPE_ALU] = &line->alu,
        [PIPE_FP32] = &line->fp32,
        [PIPE_SFU] = &line->sfu,
        [PIPE_CONVERSION] = &line->conversion,
        [PIPE_MEMORY] = &line->memory,
        [PIPE_TENSOR] = &line->tensor,
        [PIPE_FP64] = &line->fp64,
        [PIPE_HALF] = &line->half,
        [PIPE_ASYNC] = &line->async,
    };

    *fields[pipe] = line->warp_instructions;
}

/* ---- Lines of global memory ---------------------------------------------------------------- */

/* An instruction with its place, so that those of one place can be found together. */
typedef struct placed {
    uint32_t instruction;
    int32_t ptx_line;
    uint32_t file, line; /* of CUDA; line 0: not known */
} placed;

static int by_ptx_line(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    return (x->ptx_line > y->ptx_line) - (x->ptx_line < y->ptx_line);
}

/* Those without a place in CUDA stand alone, by line of PTX. */
static int by_source(const void *a, const void *b)
{
    const placed *x = a, *y = b;

    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->line == 0 ? by_ptx_line(a, b) : 0;
}

/* Distinct lines of global memory by what `compare` takes for one place: of[n] of instruction n. */
static hone_status count_lines(const run_state *run, placed *list,
                               int (*compare)(const void *, const void *), uint64_t *of,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    uint32_t len = run->kernel->code_len, groups = 0;
    uint32_t *group = calloc((size_t)len + 1, sizeof *group);
    uint64_t *unique = calloc((size_t)len + 1, sizeof *unique);

    if (group == NULL || unique == NULL) {
        status = status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "counters by line");
        goto done;
    }
    qsort(list, len, sizeof *list, compare);
    for (uint32_t n = 0; n < len; n++) {
        groups += n == 0 || compare(&list[n - 1], &list[n]) != 0;
        group[list[n].instruction] = groups - 1;
    }
    TRY(global_unique_lines(run, group, groups, unique, error));
    for (uint32_t n = 0; n < len; n++) {
        of[n] = unique[group[n]];
    }
done:
    free(group);
    free(unique);
    return status;
}

/* Into the lines by instruction, before those of one place are joined. */
static hone_status fill_unique(const run_state *run, hone_error *error)
{
    const ptx_kernel *k = run->kernel;
    hone_status status = HONE_OK;
    placed *list = calloc((size_t)k->code_len + 1, sizeof *list);
    uint64_t *by_ptx = calloc((size_t)k->code_len + 1, sizeof *by_ptx);
    uint64_t *by_cuda = calloc((size_t)k->code_len + 1, sizeof *by_cuda);

    if (list == NULL || by_ptx == NULL || by_cuda == NULL) {
        status = status_set(error, HONE_NO_MEMORY, k->name, 0, "counters by line");
        goto done;
    }
    for (uint32_t n = 0; n < k->code_len; n++) {
        const ptx_place *at = source_place(k, &k->code[n]);
        list[n] = (placed){n, k->code[n].line, at->file, at->line};
    }
    TRY(count_lines(run, list, by_ptx_line, by_ptx, error));
    TRY(count_lines(run, list, by_source, by_cuda, error));
    for (uint32_t n = 0; n < k->code_len; n++) {
        run->profile[n].unique_lines = by_ptx[n];
        run->profile[n].source_unique_lines = by_cuda[n];
    }
done:
    free(list);
    free(by_ptx);
    free(by_cuda);
    return status;
}

hone_status profile_collect(const run_state *run, machine_profile *out, hone_error *error)
{
    const ptx_kernel *k = run->kernel;
    machine_profile made = {.lines = calloc(k->code_len, sizeof *made.lines)};
    bool good = made.lines != NULL;
    hone_status status = fill_unique(run, error);

    if (status != HONE_OK) {
        machine_profile_free(&made);
        return status;
    }
    for (uint32_t n = 0; good && n < k->code_len; n++) {
        hone_emu_line *line = &made.lines[made.len];
        const ptx_place *at = source_place(k, &k->code[n]);
        if (run->profile[n].warp_instructions == 0) {
            continue;
        }
        *line = run->profile[n];
        classify(line, (machine_pipe)k->code[n].pipe);
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
