/* probe_conflicts.c - wavefronts of loads whose lanes share places: a GPU is timed, and its answer
 * rounded to whole ones; the emulator counts. */
#include "tests/device/probe.h"

enum { THREADS = 1024, LOADS = 64, WARPS = THREADS / 32, PATTERNS = 8 };

/* One of 4 bytes, which is the measure; then all patterns of 8 and of 16. */
void probe_fill_conflicts(const probe *p, uint32_t *in)
{
    in[0] = 4;
    in[1] = 0;
    for (uint32_t n = 1; n < p->cases; n++) {
        in[2 * n] = n <= PATTERNS ? 8 : 16;
        in[2 * n + 1] = (n - 1) % PATTERNS;
    }
}

static hone_status counted(const device *d, uint32_t *wavefronts, hone_error *error)
{
    hone_status status = HONE_OK;
    hone_emu_counters c = {0};

    TRY(d->driver->emu->last_counters((int)d->ordinal, &c, error));
    /* what the kernel stores takes as many wavefronts as requests */
    *wavefronts = (uint32_t)((c.shared_wavefronts - c.shared_store_requests) / (LOADS * WARPS));
done:
    return status;
}

hone_status probe_run_conflicts(const probe *p, const device *d, CUfunction f, golden *g,
                                hone_error *error)
{
    hone_status status = HONE_OK;
    const driver *v = d->driver;
    CUdeviceptr out = 0;
    uint32_t cycles = 0, measure = 1;

    TRY(driver_check(v, v->cuMemAlloc(&out, (THREADS + 1) * 4), "cuMemAlloc", error));
    for (uint32_t n = 0; n < p->cases; n++) {
        void *params[] = {&out, &g->in[2 * n], &g->in[2 * n + 1]};
        for (int run = v->emu != NULL; run < 2; run++) { /* a GPU fetches the code the first time */
            TRY(driver_check(v, v->cuLaunchKernel(f, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL),
                             "cuLaunchKernel", error));
            TRY(driver_check(v, v->cuCtxSynchronize(), "cuCtxSynchronize", error));
        }
        TRY(driver_check(v, v->cuMemcpyDtoH(&cycles, out, 4), "cuMemcpyDtoH", error));
        if (v->emu != NULL) {
            TRY(counted(d, &g->out[n], error));
            continue;
        }
        measure = n == 0 && cycles > 0 ? cycles : measure;
        g->out[n] = (cycles + measure / 2) / measure;
    }
done:
    v->cuMemFree(out);
    return status;
}
