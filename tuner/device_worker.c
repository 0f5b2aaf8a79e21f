/* device_worker.c - hands jobs to a hone-prover and turns whatever ends it into a verdict. */
#include "tuner/device_worker.h"

#include "core/moment.h"
#include "runtime/paths.h"
#include "runtime/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Opening a device, which on a GPU makes a context. */
#define OPEN_DEADLINE_MS 120000

typedef enum worker_state { IDLE, ASKED, ANSWERED, CLOSING } worker_state;

/* What the two threads share is under `lock`; the rest is the owner's while idle and the serving
 * thread's while a job is under way. */
struct device_worker {
    device_worker_options options;
    char program[PATHS_MAX];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    worker_state state;
    bool serving; /* the thread runs */
    int cancel_fd;
    worker process;
    bool started; /* a process has run: another one is a restart */
    uint64_t restarts;
    wire_writer job; /* len 0: open the device only */
    engine_result result;
    hone_status status; /* of the machine */
    hone_error error;
};

static const char *const program_folders[] = {
    ".", "../tuner", "../../tuner", "../libexec", "../../libexec", "../../../libexec", NULL};

/* What a process on a device inherits: where libraries lie, which devices it sees, and how an
 * emulated one behaves. */
static const char *const inherited[] = {"CUDA_HOME",
                                        "CUDA_PATH",
                                        "HONE_CUDA_PATH",
                                        "LD_LIBRARY_PATH",
                                        "CUDA_VISIBLE_DEVICES",
                                        "CUDA_DEVICE_ORDER",
                                        "NVIDIA_VISIBLE_DEVICES",
                                        "NVIDIA_DRIVER_CAPABILITIES",
                                        "HONE_TIMER",
                                        "HONE_EMU_PATH",
                                        "HONE_EMU_MEMORY",
                                        "HONE_EMU_ARITHMETIC",
                                        "HONE_EMU_FAULTS",
                                        "HOME",
                                        NULL};

/* One exchange; a reply that says `spent` stops the process. */
static hone_status exchange(device_worker *w, const wire_writer *message, uint32_t deadline_ms,
                            engine_result *result, bool *timed_out, hone_error *error)
{
    hone_status status = HONE_OK;
    uint8_t *answer = NULL;
    size_t len = 0;
    prover_reply reply = {.status = HONE_OK};

    TRY(worker_exchange(&w->process, message, deadline_ms, &answer, &len, timed_out, error));
    TRY(prover_get_reply(answer, len, &reply, result, error));
    if (reply.spent) {
        worker_stop(&w->process);
    }
    if (reply.status != HONE_OK) {
        status = reply.status;
        *error = reply.error;
    }
done:
    free(answer);
    return status;
}

/* The prover's hello: "" or why it cannot work, and whether it is sandboxed. */
static hone_status read_hello(const uint8_t *hello, size_t len, hone_error *error)
{
    wire_reader r = {.bytes = hello, .len = len};
    const char *why = wire_get_text(&r);

    wire_get_u64(&r);
    if (r.failed) {
        return status_set(error, HONE_WORKER, NULL, 0, "the device worker's hello is malformed");
    }
    return why[0] == '\0' ? HONE_OK : status_set(error, HONE_ENVIRONMENT, NULL, 0, "%s", why);
}

/* A process with its device open. */
static hone_status bring_up(device_worker *w, hone_error *error)
{
    hone_status status = HONE_OK;
    const worker_program program = {w->program, "the device worker", inherited, "prove"};
    wire_writer message = {.failed = false};
    uint8_t *hello = NULL;
    size_t hello_len = 0;
    bool timed_out = false;

    if (w->process.pid > 0) {
        return HONE_OK;
    }
    TRY(worker_start(&w->process, &program, w->cancel_fd, &hello, &hello_len, error));
    w->restarts += w->started;
    w->started = true;
    TRY(read_hello(hello, hello_len, error));
    if (!prover_put_setup(&message, &w->options.setup)) {
        status = status_set(error, HONE_NO_MEMORY, w->options.setup.spec, 0, "a message");
        goto done;
    }
    TRY(exchange(w, &message, OPEN_DEADLINE_MS, NULL, &timed_out, error));
done:
    if (status != HONE_OK) {
        worker_stop(&w->process);
    }
    free(hello);
    wire_free(&message);
    return status;
}

/* What became of a candidate whose process did not answer. */
static void fill_lost(engine_result *out, bool timed_out, const hone_error *error)
{
    memset(&out->row, 0, sizeof out->row);
    snprintf(out->reason, sizeof out->reason, "%.400s", error->message);
    out->row.outcome = timed_out ? STORE_HANG : STORE_FAULT;
    out->row.reason = out->reason;
    out->row.timer = STORE_TIMER_NONE;
}

/* Prove, in a new process if the last one is gone. A driver that fails in the middle of a proof
 * counts against the candidate too: whether the device is lost for all is seen when the next
 * process opens it. */
static hone_status serve_job(device_worker *w, hone_error *error)
{
    hone_status status = HONE_OK;
    bool timed_out = false;

    TRY(bring_up(w, error));
    if (w->job.len == 0) {
        return HONE_OK;
    }
    const int64_t from = moment_ns(CLOCK_MONOTONIC);
    status = exchange(w, &w->job, w->options.deadline_ms, &w->result, &timed_out, error);
    if (status == HONE_WORKER || status == HONE_DRIVER) {
        worker_stop(&w->process);
        fill_lost(&w->result, timed_out, error);
        status = HONE_OK;
    }
    w->result.proof_ms = (double)(moment_ns(CLOCK_MONOTONIC) - from) * 1e-6;
done:
    return status;
}

static void *serve(void *context)
{
    device_worker *w = context;

    pthread_mutex_lock(&w->lock);
    while (w->state != CLOSING) {
        if (w->state != ASKED) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        w->status = serve_job(w, &w->error);
        pthread_mutex_lock(&w->lock);
        w->state = w->state == CLOSING ? CLOSING : ANSWERED;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    worker_stop(&w->process);
    return NULL;
}

/* Have the thread do what `job` says. Only the owner makes an idle worker busy. */
static void ask(device_worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->state = ASKED;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static hone_status await(device_worker *w, hone_error *error)
{
    pthread_mutex_lock(&w->lock);
    if (w->state == IDLE) {
        pthread_mutex_unlock(&w->lock);
        return status_set(error, HONE_BAD_ARGUMENT, w->options.setup.spec, 0,
                          "its worker was not asked");
    }
    while (w->state == ASKED) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    w->state = IDLE;
    pthread_mutex_unlock(&w->lock);
    wire_free(&w->job);
    if (w->status != HONE_OK && error != NULL) {
        *error = w->error;
    }
    return w->status;
}

static hone_status find_program(device_worker *w, hone_error *error)
{
    const char *named = w->options.program;

    if (named != NULL && strlen(named) < sizeof w->program) {
        memcpy(w->program, named, strlen(named) + 1);
    } else if (!paths_find("hone-prover", "HONE_PROVER", program_folders, w->program)) {
        return status_set(
            error, HONE_ENVIRONMENT, "hone-prover", 0,
            "the device worker is not found; install it in libexec or name it in HONE_PROVER");
    }
    return HONE_OK;
}

hone_status device_worker_open(const device_worker_options *options, device_worker **out,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    device_worker *w = calloc(1, sizeof *w);

    if (w == NULL) {
        return status_set(error, HONE_NO_MEMORY, options->setup.spec, 0, "a device worker");
    }
    w->options = *options;
    w->process = (worker){.fd = -1};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->cancel_fd < 0) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "an eventfd: %s", strerror(errno));
        goto done;
    }
    TRY(find_program(w, error));
    /* The process dies with the thread that made it. */
    w->serving = pthread_create(&w->thread, NULL, serve, w) == 0;
    if (!w->serving) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "a thread for a device worker");
        goto done;
    }
    ask(w);
    TRY(await(w, error));
    *out = w;
    w = NULL;
done:
    device_worker_close(w);
    return status;
}

void device_worker_close(device_worker *w)
{
    if (w == NULL) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->state = CLOSING;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    if (w->cancel_fd >= 0) {
        eventfd_write(w->cancel_fd, 1);
    }
    if (w->serving) {
        pthread_join(w->thread, NULL);
    }
    if (w->cancel_fd >= 0) {
        close(w->cancel_fd);
    }
    wire_free(&w->job);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

hone_status device_worker_start(device_worker *w, const engine_trial *trial, const compiled *code,
                                hone_error *error)
{
    pthread_mutex_lock(&w->lock);
    const bool idle = w->state == IDLE;
    pthread_mutex_unlock(&w->lock);
    if (!idle) {
        return status_set(error, HONE_BAD_ARGUMENT, w->options.setup.spec, 0,
                          "its worker is still at a candidate");
    }
    wire_free(&w->job);
    if (!prover_put_job(&w->job, w->options.templates, trial, code)) {
        wire_free(&w->job);
        return status_set(error, HONE_NO_MEMORY, manifest_name(trial->m), 0,
                          "a candidate's message");
    }
    ask(w);
    return HONE_OK;
}

hone_status device_worker_finish(device_worker *w, engine_result *out, hone_error *error)
{
    hone_status status = await(w, error);

    if (status == HONE_OK) {
        engine_result_copy(&w->result, out);
    }
    return status;
}

uint64_t device_worker_restarts(const device_worker *w)
{
    return w->restarts;
}
