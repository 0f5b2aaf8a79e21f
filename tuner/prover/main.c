/* main.c - hone-prover: proves and times candidates on one device, one at a time, until stdin's
 * socket closes.
 *
 * Started by a sweep (tuner/device_worker.c) with a socket as stdin, nothing else open, and a short
 * environment. A candidate may crash or hang this process: the sweep then starts another one. */
#include "runtime/wire_socket.h"
#include "runtime/worker/sandbox.h"
#include "tuner/prover_wire.h"
#include "tuner/trial_prover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct session {
    templates *templates;
    prover_setup setup; /* its routing is owned */
    device *device;     /* NULL: not opened yet */
    trial_prover *prover;
    plan plan;
    engine_result result;
} session;

static bool say_hello(const char *why, bool sandboxed)
{
    wire_writer hello;

    wire_begin(&hello, WIRE_HELLO);
    wire_put_text(&hello, why);
    wire_put_u64(&hello, sandboxed);
    return wire_socket_send(WIRE_SOCKET, &hello);
}

static bool answer(const prover_reply *reply, const engine_result *result)
{
    wire_writer message = {.failed = false};

    return prover_put_reply(&message, reply, result) && wire_socket_send(WIRE_SOCKET, &message);
}

static hone_status open_device(session *s, const uint8_t *payload, size_t len, hone_error *error)
{
    hone_status status = HONE_OK;

    if (s->device != NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, s->setup.spec, 0, "opened already");
    }
    TRY(prover_get_setup(payload, len, &s->setup, error));
    TRY(device_open(s->setup.spec, &s->device, error));
    TRY(trial_prover_open(s->device, &s->setup.routing, s->setup.threads, s->setup.memory_bytes,
                          &s->prover, error));
done:
    return status;
}

/* Whether the context still answers: after some errors it never does again. */
static bool is_well(const device *d)
{
    return d->driver->cuCtxSynchronize() == CUDA_SUCCESS;
}

static hone_status prove(session *s, const uint8_t *payload, size_t len, hone_error *error)
{
    hone_status status = HONE_OK;
    prover_job job = {.code = NULL};

    if (s->device == NULL) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0, "no device is open");
    }
    TRY(prover_get_job(payload, len, s->templates, &job, error));
    TRY(manifest_plan(job.m, &job.problem, &s->device->gpu.facts, &job.config, &s->plan, error));
    const engine_trial trial = {.problem = &job.problem,
                                .m = job.m,
                                .plan = &s->plan,
                                .config = &job.config,
                                .seed = job.seed};
    TRY(trial_prover_run(s->prover, &trial, job.code, &s->result, error));
done:
    compiled_free(job.code);
    return status;
}

/* One message, one answer. False when the parent is gone or talks nonsense. */
static bool serve_one(session *s)
{
    wire_kind kind;
    uint8_t *payload = NULL;
    size_t len = 0;
    prover_reply reply = {.status = HONE_OK};
    bool ok = wire_socket_read(WIRE_SOCKET, &kind, &payload, &len);

    if (ok && kind == WIRE_OPEN) {
        reply.status = open_device(s, payload, len, &reply.error);
        ok = answer(&reply, NULL);
    } else if (ok && kind == WIRE_PROVE) {
        memset(&s->result, 0, sizeof s->result);
        reply.status = prove(s, payload, len, &reply.error);
        reply.spent = s->device != NULL && !is_well(s->device);
        ok = answer(&reply, &s->result);
    } else {
        ok = false;
    }
    free(payload);
    return ok;
}

int main(int argc, char **argv)
{
    static session s;
    const long parent = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    hone_error error = {0};

    if (parent <= 0 || strcmp(argv[1], "prove") != 0) {
        fprintf(stderr, "hone-prover proves kernels for hone and is started by it alone\n");
        return 2;
    }
    if (!sandbox_enter() || getppid() != (pid_t)parent) {
        return 1; /* no sandbox, or the parent died before we asked to die with it */
    }
    const bool sandboxed = sandbox_lock_writing();
    const hone_status status = templates_open(&s.templates, &error);
    if (!say_hello(status == HONE_OK ? "" : error.message, sandboxed) || status != HONE_OK) {
        return 1;
    }
    while (serve_one(&s)) {
    }
    /* The system takes everything back faster than we could. */
    return 0;
}
