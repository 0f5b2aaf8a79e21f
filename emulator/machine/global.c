/* global.c - a launch's view of global memory: which allocation an access falls in, and which lines
 * it touched. */
#include "emulator/machine/machine.h"

#include <stdlib.h>
#include <string.h>

static bool covers(const touched_range *t, uint64_t address, uint64_t bytes)
{
    return address >= t->range->begin && address <= t->range->end &&
           bytes <= t->range->end - address && !t->range->freed;
}

/* Of the bit map of an allocation's lines. */
static uint64_t words_of(const memory_range *r)
{
    return (r->end - r->begin + MACHINE_LINE - 1) / MACHINE_LINE / 64 + 1;
}

/* Number of the entry + 1 of an allocation, which is made if there is none; 0 without memory. */
static uint32_t touch(run_state *run, const memory_range *range, uint32_t by)
{
    for (size_t n = 0; n < run->touched_len; n++) {
        if (run->touched[n].range == range && run->touched[n].by == by) {
            return (uint32_t)n + 1;
        }
    }
    if (run->touched_len == run->touched_capacity) {
        size_t more = run->touched_capacity * 2 + 16;
        touched_range *bigger = realloc(run->touched, more * sizeof *bigger);
        if (bigger == NULL) {
            return 0;
        }
        run->touched = bigger;
        run->touched_capacity = more;
    }
    uint64_t bytes = words_of(range) * sizeof(uint64_t);
    uint64_t *map = purse_take(&run->purse, bytes) ? calloc(1, (size_t)bytes) : NULL;
    if (map == NULL) {
        return 0;
    }
    run->touched[run->touched_len++] = (touched_range){.range = range, .lines = map, .by = by};
    return (uint32_t)run->touched_len;
}

static void refuse(warp *w, const instruction *i, uint32_t lane, uint64_t address, uint64_t bytes)
{
    const memory_range *near = memory_find(w->run->launch->memory, address);
    unsigned long long size = bytes;

    if (near == NULL) {
        machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                      "%llu bytes at %#llx lie in no allocation", size,
                      (unsigned long long)address);
    } else if (near->freed) {
        machine_fault(w, i, lane, address, FAULT_USE_AFTER_FREE,
                      "%llu bytes at %#llx: the allocation was freed", size,
                      (unsigned long long)address);
    } else {
        machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                      "%llu bytes at offset %llu of an allocation of %llu bytes", size,
                      (unsigned long long)(address - near->begin),
                      (unsigned long long)(near->end - near->begin));
    }
}

touched_range *global_range(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                            uint64_t bytes)
{
    run_state *run = w->run;
    uint32_t *hit = &run->hit[i - run->kernel->code];

    if (*hit != 0 && covers(&run->touched[*hit - 1], address, bytes)) {
        return &run->touched[*hit - 1];
    }
    const memory_range *range = memory_find(run->launch->memory, address);
    if (range == NULL || range->freed || address < range->begin || address > range->end ||
        bytes > range->end - address) {
        if (lane < MACHINE_LANES) {
            refuse(w, i, lane, address, bytes);
        }
        return NULL;
    }
    *hit = touch(run, range, run->profile != NULL ? (uint32_t)(i - run->kernel->code) : 0);
    if (*hit == 0) {
        run->faulted = run->out_of_memory = true;
        return NULL;
    }
    return &run->touched[*hit - 1];
}

bool global_writable(warp *w, const instruction *i, uint32_t lane, uint64_t address,
                     const memory_range *range)
{
    if (range->constant) {
        machine_fault(w, i, lane, address, FAULT_OUT_OF_BOUNDS,
                      "a store into constant memory: kernels only read it");
    }
    return !range->constant;
}

void global_mark_lines(touched_range *t, uint64_t begin, uint64_t end)
{
    if (begin < t->range->begin || begin >= t->range->end) {
        return; /* of another allocation: its own lane marks it */
    }
    end = end > t->range->end ? t->range->end : end;
    uint64_t first = (begin - t->range->begin) / MACHINE_LINE;
    uint64_t last = (end - 1 - t->range->begin) / MACHINE_LINE;

    for (uint64_t n = first / 64; n <= last / 64; n++) {
        uint64_t low = n == first / 64 ? first % 64 : 0, high = n == last / 64 ? last % 64 : 63;
        t->lines[n] |= UINT64_MAX << low & UINT64_MAX >> (63 - high);
    }
}

typedef struct sorted {
    uint32_t group;
    const touched_range *t;
} sorted;

static int by_group_and_range(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    uint64_t left = x->t->range->begin, right = y->t->range->begin;

    return x->group != y->group ? (x->group > y->group) - (x->group < y->group)
                                : (left > right) - (left < right);
}

/* Of what a group's instructions touched of one allocation. */
static uint64_t count_union(const sorted *list, size_t len)
{
    uint64_t words = words_of(list[0].t->range), sum = 0;

    for (uint64_t k = 0; k < words; k++) {
        uint64_t all = 0;
        for (size_t n = 0; n < len; n++) {
            all |= list[n].t->lines[k];
        }
        sum += (uint64_t)__builtin_popcountll(all);
    }
    return sum;
}

hone_status global_unique_lines(const run_state *run, const uint32_t *group, uint32_t groups,
                                uint64_t *unique, hone_error *error)
{
    sorted *list = calloc(run->touched_len + 1, sizeof *list);

    if (list == NULL) {
        return status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "lines of the launch");
    }
    memset(unique, 0, groups * sizeof *unique);
    for (size_t n = 0; n < run->touched_len; n++) {
        const touched_range *t = &run->touched[n];
        list[n] = (sorted){.group = group != NULL ? group[t->by] : 0, .t = t};
    }
    qsort(list, run->touched_len, sizeof *list, by_group_and_range);
    for (size_t n = 0, len = 1; n < run->touched_len; n += len) {
        for (len = 1; n + len < run->touched_len; len++) {
            if (by_group_and_range(&list[n], &list[n + len]) != 0) {
                break;
            }
        }
        unique[list[n].group] += count_union(&list[n], len);
    }
    free(list);
    return HONE_OK;
}

hone_status global_merge(run_state *into, const run_state *from, hone_error *error)
{
    for (size_t n = 0; n < from->touched_len; n++) {
        const memory_range *r = from->touched[n].range;
        uint64_t words = words_of(r);
        uint32_t found = touch(into, r, from->touched[n].by);
        if (found == 0) {
            return status_set(error, HONE_NO_MEMORY, into->kernel->name, 0, "lines of the launch");
        }
        for (uint64_t k = 0; k < words; k++) {
            into->touched[found - 1].lines[k] |= from->touched[n].lines[k];
        }
    }
    return HONE_OK;
}

void global_close(run_state *run)
{
    for (size_t n = 0; n < run->touched_len; n++) {
        free(run->touched[n].lines);
    }
    free(run->touched);
}
