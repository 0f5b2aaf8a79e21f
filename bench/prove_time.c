/* prove_time.c - a proved candidate's time: the model's on an emulated device, events' on a CUDA
 * device. */
#include "bench/prove_parts.h"
#include "bench/stats.h"
#include "runtime/plan_work.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WARM_UPS = 3, SAMPLES = 32 };
/* Sampling stops after this long, with at least SAMPLES_LEAST taken. */
#define SAMPLING_NS   3e8
#define SAMPLES_LEAST 8

static const jit_kernel *kernel_of(const compiled *c, const char *entry)
{
    for (size_t i = 0; i < c->kernels_len; i++) {
        if (strcmp(c->kernels[i].entry, entry) == 0) {
            return &c->kernels[i];
        }
    }
    return NULL;
}

/* All work over that of the CTAs that ran. Products are known in all where the manifest counts
 * them, and everything else goes with them; CTAs of a persistent grid do not make equally many. */
static double scale_of(const plan *p, const hone_emu_counters *n, double known)
{
    const plan_estimate *e = &p->estimate;
    double all = (double)e->macs + (double)e->scaled_macs + (double)e->warpgroup_macs, ran = 0.0;

    for (size_t i = 0; i < ARRAY_LEN(n->tensor_macs); i++) {
        ran += (double)n->tensor_macs[i];
    }
    if (n->ctas_run == n->ctas_total || n->ctas_run == 0) {
        return 1.0;
    }
    if (known > 0.0) {
        return known;
    }
    return p->launches_len == 1 && all > 0.0 && ran > 0.0
               ? all / ran
               : (double)n->ctas_total / (double)n->ctas_run;
}

/* Bytes from and to DRAM. Sampled CTAs' own say nothing about all of them: the problem's stand for
 * those. A workspace that fits half of L2 is read there before it is written back. */
static double dram_of(const gpu *g, const plan *p, const hone_emu_counters *n, double counted,
                      double bytes)
{
    const double kept =
        p->workspace_bytes <= (uint64_t)g->facts.l2_bytes / 2 ? (double)p->workspace_bytes : 0.0;

    return n->ctas_run == n->ctas_total ? fmax(counted - kept, fmin(counted, bytes)) : bytes;
}

/* What counters tell, and what only the manifest does. */
static void work_of(const gpu *g, double bytes, const plan *p, const plan_launch *l,
                    const jit_kernel *kernel, const hone_emu_counters *counters,
                    const prove_timed *timed, perf_work *out)
{
    perf_work w;

    plan_work_frame(p, l, &w);
    if (timed->tiles > 0) {
        plan_work_retile(p, timed->tiles, &w);
    }
    const uint64_t ctas = w.ctas;
    if (kernel != NULL) {
        w.registers = kernel->registers;
        w.shared_bytes += kernel->static_shared_bytes;
    }
    perf_count(counters, scale_of(p, counters, timed->scale), &w);
    w.ctas = ctas; /* a sample may have been drawn from a larger grid */
    w.dram_bytes = dram_of(g, p, counters, w.dram_bytes, bytes);
    *out = w;
}

hone_status prove_time_model(const device *d, const plan *p, const compiled *c,
                             const hone_emu_counters *counters, const prove_timed *timed,
                             prove_result *out, hone_error *error)
{
    hone_error cause = {0};
    double longest = 0.0, total = 0.0;

    (void)error;
    for (uint32_t i = 0; i < p->launches_len; i++) {
        perf_work work;
        perf_answer answer;
        work_of(&d->gpu, out->bytes, p, &p->launches[i], kernel_of(c, p->launches[i].entry),
                &counters[i], timed, &work);
        if (perf_predict(&d->gpu, &work, &answer, &cause) != HONE_OK) {
            out->outcome = STORE_UNMEASURED;
            snprintf(out->reason, sizeof out->reason, "no modelled time: %.200s", cause.message);
            return HONE_OK;
        }
        total += answer.ns;
        if (answer.ns > longest) {
            longest = answer.ns;
            out->model = answer;
            out->counters = counters[i];
        }
    }
    out->modelled = true;
    out->timer = STORE_TIMER_MODELLED;
    out->time_ns = total;
    out->samples_ns[0] = total;
    out->samples_len = 1;
    return HONE_OK;
}

/* Event pairs around launches on a cold L2. */
typedef struct stopwatch {
    const prove_buffers *b;
    CUevent start, stop;
    CUdeviceptr flush;
    size_t flush_bytes; /* twice the L2 */
} stopwatch;

static void stopwatch_close(stopwatch *s)
{
    const driver *d = s->b->d->driver;

    if (s->start != NULL) {
        d->cuEventDestroy(s->start);
    }
    if (s->stop != NULL) {
        d->cuEventDestroy(s->stop);
    }
    if (s->flush != 0) {
        d->cuMemFree(s->flush);
    }
}

static hone_status stopwatch_open(stopwatch *s, const prove_buffers *b, hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = b->d->driver;

    *s = (stopwatch){.b = b, .flush_bytes = 2 * (size_t)b->d->gpu.facts.l2_bytes + 1};
    TRY(driver_check(d, d->cuEventCreate(&s->start, CU_EVENT_DEFAULT), "cuEventCreate", error));
    TRY(driver_check(d, d->cuEventCreate(&s->stop, CU_EVENT_DEFAULT), "cuEventCreate", error));
    TRY(driver_check(d, d->cuMemAlloc(&s->flush, s->flush_bytes), "cuMemAlloc", error));
done:
    return status;
}

static hone_status stopwatch_sample(const stopwatch *s, const module *m, const plan *p, double *ns,
                                    hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *d = s->b->d->driver;
    float ms = 0.0f;

    TRY(driver_check(d, d->cuMemsetD8Async(s->flush, 0, s->flush_bytes, NULL), "cuMemsetD8Async",
                     error));
    TRY(driver_check(d, d->cuEventRecord(s->start, NULL), "cuEventRecord", error));
    TRY(module_launch(m, p, s->b->address, s->b->len, s->b->workspace, NULL, error));
    TRY(driver_check(d, d->cuEventRecord(s->stop, NULL), "cuEventRecord", error));
    TRY(driver_check(d, d->cuEventSynchronize(s->stop), "cuEventSynchronize", error));
    TRY(driver_check(d, d->cuEventElapsedTime(&ms, s->start, s->stop), "cuEventElapsedTime",
                     error));
    *ns = (double)ms * 1e6;
done:
    return status;
}

hone_status prove_time_events(const prove_buffers *b, const module *m, const plan *p,
                              prove_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    stopwatch s = {.b = b};
    double spent = 0.0, ns = 0.0;

    TRY(stopwatch_open(&s, b, error));
    for (int i = 0; i < WARM_UPS; i++) {
        TRY(stopwatch_sample(&s, m, p, &ns, error));
    }
    out->samples_len = 0;
    while (out->samples_len < SAMPLES &&
           (spent < SAMPLING_NS || out->samples_len < SAMPLES_LEAST)) {
        TRY(stopwatch_sample(&s, m, p, &ns, error));
        out->samples_ns[out->samples_len++] = ns;
        spent += ns;
    }
    out->timer = STORE_TIMER_EVENTS;
    out->time_ns = stats_median(out->samples_ns, out->samples_len);
    if (!(out->time_ns > 0.0)) { /* a clock that stood still is no time (cases.md 35) */
        out->outcome = STORE_UNMEASURED;
        snprintf(out->reason, sizeof out->reason, "events gave no time");
    }
done:
    stopwatch_close(&s);
    return status;
}
