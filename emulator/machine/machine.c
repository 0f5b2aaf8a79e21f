/* machine.c - a launch: its arguments checked, run, its counters gathered. */
#include "emulator/machine/counters.h"
#include "emulator/machine/profile.h"
#include "emulator/machine/race.h"
#include "core/checked.h"

#include <stdlib.h>
#include <string.h>

/* Clusters divide the grid; 16 CTAs is the most that a device takes. */
static hone_status check_cluster(const machine_launch *l, hone_error *error)
{
    uint64_t size = 1;

    for (int d = 0; d < 3; d++) {
        uint32_t wide = l->cluster[d] > 0 ? l->cluster[d] : 1;
        size *= wide;
        if (l->grid[d] % wide != 0 || size > 16) {
            return status_set(error, HONE_BAD_ARGUMENT, l->kernel->name, 0,
                              "a cluster of %u x %u x %u CTAs: it must divide the grid, and have "
                              "16 CTAs at most",
                              l->cluster[0], l->cluster[1], l->cluster[2]);
        }
    }
    return HONE_OK;
}

static hone_status check_launch(const machine_launch *l, hone_error *error)
{
    const char *name = l->kernel->name;
    uint64_t threads = 1, ctas = 1;
    hone_status status = HONE_OK;

    for (int d = 0; d < 3; d++) {
        if (l->grid[d] == 0 || l->block[d] == 0 || l->block[d] > 1024) {
            return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                              "dimension %d: grid %u, block %u; a grid begins at 1, a block has "
                              "1 to 1024 threads",
                              d, l->grid[d], l->block[d]);
        }
        threads *= l->block[d];
        if (!checked_mul_u64(ctas, l->grid[d], &ctas)) {
            return status_set(error, HONE_OVERFLOW, name, 0, "the grid has more than 2^64 CTAs");
        }
    }
    TRY(check_cluster(l, error));
    if (threads > l->kernel->max_threads) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                          "a block of %llu threads; the kernel takes %u",
                          (unsigned long long)threads, l->kernel->max_threads);
    }
    if (l->dynamic_shared_bytes > (1u << 20)) {
        return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                          "%u bytes of dynamic shared memory; no device has 1 MiB",
                          l->dynamic_shared_bytes);
    }
    for (size_t n = 0; l->sample != NULL && n < l->sample_len; n++) {
        if (l->sample[n] >= ctas) {
            return status_set(error, HONE_BAD_ARGUMENT, name, 0,
                              "sampled CTA %llu; the grid has %llu",
                              (unsigned long long)l->sample[n], (unsigned long long)ctas);
        }
    }
done:
    return status;
}

void machine_out_of_memory(run_state *run)
{
    run->faulted = run->out_of_memory = true;
}

bool machine_take(run_state *run, uint64_t bytes)
{
    if (!purse_take(&run->purse, bytes)) {
        machine_out_of_memory(run);
        return false;
    }
    return true;
}

void *machine_grow(run_state *run, void *list, uint32_t len, uint32_t *capacity, size_t size)
{
    uint32_t more = *capacity * 2 + 16;

    if (len < *capacity) {
        return list;
    }
    if (!machine_take(run, more * (uint64_t)size)) {
        return NULL;
    }
    void *bigger = realloc(list, more * size);
    if (bigger == NULL) {
        machine_give(run, more * (uint64_t)size);
        machine_out_of_memory(run);
        return NULL;
    }
    machine_give(run, *capacity * (uint64_t)size);
    *capacity = more;
    return bigger;
}

hone_status machine_open_run(run_state *run, const machine_launch *l, hone_error *error)
{
    *run = (run_state){.launch = l, .kernel = l->kernel, .purse.memory = l->memory};
    run->hit = calloc(run->kernel->code_len, sizeof *run->hit);
    run->sample = l->sample != NULL ? calloc(1, sizeof *run->sample) : NULL;
    if (run->hit == NULL || (l->sample != NULL && run->sample == NULL)) {
        return status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "state of the launch");
    }
    return l->profile != NULL ? profile_open(run, error) : HONE_OK;
}

static hone_status gather(run_state *run, hone_emu_counters *out, hone_error *error)
{
    const machine_launch *l = run->launch;

    hone_status status = HONE_OK;

    race_written(run);
    if (run->out_of_memory) {
        return status_set(error, HONE_NO_MEMORY, run->kernel->name, 0, "what the launch wrote");
    }
    TRY(counters_gather(run, out, error));
    if (l->estimate != NULL) {
        counters_estimate(run, out, l->estimate);
    }
    TRY(l->profile != NULL ? profile_collect(run, l->profile, error) : HONE_OK);
done:
    return status;
}

void machine_close_run(run_state *run)
{
    race_end(run);
    global_close(run);
    free(run->operands);
    free(run->hit);
    free(run->sample);
    free(run->profile);
    free(run->places);
    purse_close(&run->purse);
}

/* On as many host threads as the launch wants and its CTAs allow: those that talk to one another
 * run in turns, so that what they do does not hang on the host. */
static hone_status run_grid(run_state *run, hone_error *error)
{
    const machine_launch *l = run->launch;
    uint64_t clusters = grid_count(l), threads = l->threads > 1 ? (uint64_t)l->threads : 1;

    if (run->kernel->talks || l->cooperative || (l->checks & HONE_EMU_CHECK_GLOBAL_RACES) != 0) {
        threads = 1;
    }
    threads = threads < clusters ? threads : clusters;
    return threads > 1 ? threads_run(run, (uint32_t)threads, error) : grid_run(run, error);
}

hone_status machine_run(const machine_launch *launch, hone_emu_counters *counters,
                        hone_emu_fault *fault, hone_error *error)
{
    run_state run = {0};
    hone_status status = HONE_OK;

    if (launch->places != NULL) {
        *launch->places = NULL;
    }
    TRY(check_launch(launch, error));
    memory_begin_epoch(launch->memory);
    if ((launch->checks & HONE_EMU_CHECK_UNINITIALISED) == 0) {
        memory_forget_whole(launch->memory);
    }
    TRY(machine_open_run(&run, launch, error));
    TRY(run_grid(&run, error));
    TRY(gather(&run, counters, error));
    if (run.faulted) {
        *fault = run.fault;
        if (launch->places != NULL) {
            *launch->places = run.places;
            run.places = NULL;
        }
        status = status_set(error, HONE_WRONG, run.kernel->name, run.fault.ptx_line, "%s: %s",
                            run.fault.kind, run.fault.message);
    }
done:
    machine_close_run(&run);
    return status;
}
