/* engine_device.c - the product's engine: NVRTC in worker processes, proofs and times in a process
 * for each device. */
#include "tuner/engine.h"

#include "runtime/jit.h"
#include "tuner/device_worker.h"
#include "tuner/trial_prover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A device, and what it is at. */
typedef struct lane {
    device_worker *worker;
    engine_trial trial; /* borrowed parts */
    const engine_answer *answer;
} lane;

typedef struct device_engine {
    engine_options options;
    jit *jit;
    lane *lanes;
    size_t lanes_len;
} device_engine;

static hone_status submit(void *state, const engine_trial *trial, uint64_t tag, hone_error *error)
{
    hone_status status = HONE_OK;
    device_engine *e = state;
    jit_request request;

    TRY(jit_request_plan(e->options.templates, trial->m, trial->plan,
                         e->options.device->gpu.facts.arch, &request, error));
    TRY(jit_submit(e->jit, &request, tag, error));
done:
    return status;
}

static int cores(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 1 ? (int)online : 1;
}

/* What ptxas says of the kernels of a plan: the largest of each, since all must fit. */
static void report_code(const compiled *code, engine_answer *out)
{
    for (size_t i = 0; i < code->kernels_len; i++) {
        const jit_kernel *k = &code->kernels[i];
        out->registers = k->registers > out->registers ? k->registers : out->registers;
        out->local_bytes = k->stack_bytes > out->local_bytes ? k->stack_bytes : out->local_bytes;
        out->shared_bytes =
            k->static_shared_bytes > out->shared_bytes ? k->static_shared_bytes : out->shared_bytes;
    }
    out->spill_bytes = compiled_spill_bytes(code);
    compiled_flaw(code, out->reason, sizeof out->reason);
    out->compile_ms = (double)code->compile_ns * 1e-6;
}

static hone_status wait_next(void *state, engine_answer *out, hone_error *error)
{
    hone_status status = HONE_OK;
    device_engine *e = state;
    jit_done done = {0};
    bool got = false;

    TRY(jit_wait(e->jit, -1, &done, &got, error));
    if (!got) {
        return status_set(error, HONE_BAD_ARGUMENT, "jit", 0, "no compile is under way");
    }
    engine_answer answer = {.tag = done.tag, .outcome = STORE_OK, .code = done.answer};
    if (done.status == HONE_OK) {
        report_code(done.answer, &answer);
    } else if (done.status == HONE_COMPILE || done.status == HONE_WORKER) {
        answer.outcome = done.timed_out ? STORE_HANG : STORE_COMPILE;
        snprintf(answer.reason, sizeof answer.reason, "%s", done.error.message);
    } else {
        return status_set(error, done.status, done.error.source, done.error.line, "%s",
                          done.error.message);
    }
    *out = answer;
done:
    return status;
}

static void discard(void *state, engine_answer *answer)
{
    (void)state;
    compiled_free(answer->code);
    answer->code = NULL;
}

static hone_status start(void *state, size_t index, const engine_trial *trial,
                         const engine_answer *answer, hone_error *error)
{
    device_engine *e = state;
    lane *l = &e->lanes[index];

    l->trial = *trial;
    l->answer = answer;
    return device_worker_start(l->worker, trial, answer->code, error);
}

static hone_status finish(void *state, size_t index, engine_result *out, hone_error *error)
{
    device_engine *e = state;
    lane *l = &e->lanes[index];
    const hone_status status = device_worker_finish(l->worker, out, error);

    if (status == HONE_OK) {
        trial_prover_note(&l->trial, l->answer, out);
    }
    return status;
}

static uint64_t restarts(void *state)
{
    const device_engine *e = state;
    uint64_t sum = 0;

    for (size_t i = 0; i < e->lanes_len; i++) {
        sum += device_worker_restarts(e->lanes[i].worker);
    }
    return sum;
}

static void close_engine(void *state)
{
    device_engine *e = state;

    if (e != NULL) {
        for (size_t i = 0; e->lanes != NULL && i < e->lanes_len; i++) {
            device_worker_close(e->lanes[i].worker);
        }
        free(e->lanes);
        jit_close(e->jit);
        free(e);
    }
}

/* Emulated devices share the host's threads. */
static hone_status open_lanes(device_engine *e, hone_error *error)
{
    hone_status status = HONE_OK;
    const engine_options *o = &e->options;
    const bool emulated = o->device->gpu.facts.emulated;
    const size_t len = o->specs_len > 0 ? o->specs_len : 1;
    const int jobs = o->jobs > 0 ? o->jobs : cores(), share = jobs / (int)len;
    device_worker_options worker = {
        .templates = o->templates,
        .deadline_ms =
            o->deadline_ms > 0 ? o->deadline_ms : ENGINE_DEADLINE_MS * (emulated ? 10 : 1),
        .setup = {.threads = share > 0 ? share : 1,
                  .memory_bytes = o->memory_bytes,
                  .routing = o->routing != NULL ? *o->routing : *routing_balanced()},
    };

    e->lanes = calloc(len, sizeof *e->lanes);
    if (e->lanes == NULL) {
        return status_set(error, HONE_NO_MEMORY, "sweep", 0, "%zu devices", len);
    }
    for (size_t i = 0; i < len; i++) {
        snprintf(worker.setup.spec, sizeof worker.setup.spec, "%s",
                 o->specs_len > 0 ? o->specs[i] : o->device->spec);
        TRY(device_worker_open(&worker, &e->lanes[i].worker, error));
        e->lanes_len++;
    }
done:
    return status;
}

hone_status engine_open_device(const engine_options *options, engine *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const jit_options compile = {.workers = options->jobs};
    const driver *d = options->device->driver;
    jit_version version;
    int number = 0;
    device_engine *e = calloc(1, sizeof *e);

    if (e == NULL) {
        return status_set(error, HONE_NO_MEMORY, "sweep", 0, "an engine");
    }
    e->options = *options;
    TRY(jit_open(&compile, &e->jit, error));
    TRY(jit_describe(e->jit, &version, error));
    TRY(driver_check(d, d->cuDriverGetVersion(&number), "cuDriverGetVersion", error));
    TRY(open_lanes(e, error));
    *out = (engine){.driver = number,
                    .state = e,
                    .lanes = e->lanes_len,
                    .submit = submit,
                    .wait = wait_next,
                    .start = start,
                    .finish = finish,
                    .restarts = restarts,
                    .discard = discard,
                    .close = close_engine};
    snprintf(out->nvrtc, sizeof out->nvrtc, "%s", version.text);
    e = NULL;
done:
    close_engine(e);
    return status;
}
