/* counters.c - counters of a launch as a list of numbers: sums, and estimates from a sample. */
#include "emulator/machine/counters.h"

#include <math.h>
#include <string.h>

enum { LEN = HONE_EMU_COUNTERS_LEN };
#define INDEX_OF(field) (offsetof(hone_emu_counters, field) / sizeof(uint64_t))

static void to_list(const hone_emu_counters *c, uint64_t list[LEN])
{
    memcpy(list, c, sizeof *c);
}

/* Those that follow from others: handlers keep the fewest that they can. */
static void derive(run_state *run)
{
    hone_emu_counters *c = &run->counters;

    c->alu = run->pipes[PIPE_ALU];
    c->fp32 = run->pipes[PIPE_FP32];
    c->fp64 = run->pipes[PIPE_FP64];
    c->half = run->pipes[PIPE_HALF];
    c->sfu = run->pipes[PIPE_SFU];
    c->control = run->pipes[PIPE_CONTROL];
    c->conversion = run->pipes[PIPE_CONVERSION];
    c->memory = run->pipes[PIPE_MEMORY];
    c->tensor = run->pipes[PIPE_TENSOR];
    c->async = run->pipes[PIPE_ASYNC];
    c->global_sectors = c->global_load_sectors + c->global_store_sectors;
    c->global_load_requests = c->global_requests - c->global_store_requests;
    c->shared_load_requests = c->shared_requests - c->shared_store_requests;
}

void counters_begin_cluster(run_state *run)
{
    if (run->sample != NULL) {
        derive(run);
        to_list(&run->counters, run->sample->before);
    }
}

/* One more value, by Welford: equal values give a deviation of exactly 0. */
void counters_end_cluster(run_state *run)
{
    counters_sample *s = run->sample;
    uint64_t now[LEN];

    if (s == NULL) {
        return;
    }
    derive(run);
    to_list(&run->counters, now);
    s->len++;
    for (size_t n = 0; n < LEN; n++) {
        double value = (double)(now[n] - s->before[n]), apart = value - s->mean[n];
        s->mean[n] += apart / (double)s->len;
        s->squares[n] += apart * (value - s->mean[n]);
    }
}

/* Two samples as one (Chan, Golub and LeVeque's pairwise update). */
static void merge_samples(counters_sample *into, const counters_sample *from)
{
    double a = (double)into->len, b = (double)from->len;

    if (from->len == 0) {
        return;
    }
    for (size_t n = 0; n < LEN; n++) {
        double apart = from->mean[n] - into->mean[n];
        into->mean[n] += apart * b / (a + b);
        into->squares[n] += from->squares[n] + apart * apart * a * b / (a + b);
    }
    into->len += from->len;
}

void counters_merge(run_state *into, const run_state *from)
{
    uint64_t total = into->counters.ctas_total, a[LEN], b[LEN];

    to_list(&into->counters, a);
    to_list(&from->counters, b);
    for (size_t n = 0; n < LEN; n++) {
        a[n] += b[n];
    }
    memcpy(&into->counters, a, sizeof into->counters);
    into->counters.ctas_total = total;
    for (size_t n = 0; n < PIPE_COUNT; n++) {
        into->pipes[n] += from->pipes[n];
    }
    if (into->sample != NULL && from->sample != NULL) {
        merge_samples(into->sample, from->sample);
    }
}

hone_status counters_gather(run_state *run, hone_emu_counters *out, hone_error *error)
{
    hone_status status = global_unique_lines(run, NULL, 1, &run->counters.unique_lines, error);

    derive(run);
    *out = run->counters;
    return status;
}

static double clusters_of(const machine_launch *l)
{
    double clusters = 1;

    for (int d = 0; d < 3; d++) {
        clusters *= (double)l->grid[d] / (l->cluster[d] > 0 ? l->cluster[d] : 1);
    }
    return clusters;
}

void counters_estimate(const run_state *run, const hone_emu_counters *counted,
                       hone_emu_estimate *out)
{
    const counters_sample *s = run->sample;
    uint64_t list[LEN];

    *out = (hone_emu_estimate){.total = *counted};
    if (s == NULL || s->len == 0) {
        return;
    }
    double all = clusters_of(run->launch), len = (double)s->len;
    double left = len < all ? 1 - len / all : 0; /* a sample of everything has no error */
    for (size_t n = 0; n < LEN; n++) {
        double variance = s->len > 1 ? s->squares[n] / (len - 1) : (double)NAN;
        list[n] = (uint64_t)llround(all * s->mean[n]);
        out->error[n] = left > 0 ? all * sqrt(variance / len * left) : 0;
    }
    memcpy(&out->total, list, sizeof out->total);
    out->total.ctas_run = counted->ctas_run;
    out->total.ctas_total = counted->ctas_total;
    out->total.unique_lines = counted->unique_lines;
    out->error[INDEX_OF(ctas_run)] = out->error[INDEX_OF(ctas_total)] = 0;
    out->error[INDEX_OF(unique_lines)] = left > 0 ? (double)NAN : 0;
}
