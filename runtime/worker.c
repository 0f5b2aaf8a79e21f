/* worker.c - spawns a worker with nothing but a socket, and talks to it under a deadline. */
#include "runtime/worker.h"

#include "core/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Opening a 110 MB library from a cold disk takes seconds. */
#define HELLO_DEADLINE_MS 30000

/* HONE_OK when the socket can be read or written, HONE_WORKER when `until` passes first,
 * HONE_CANCELLED. */
static hone_status wait_ready(const worker *w, short events, int64_t until)
{
    for (;;) {
        int64_t left = until - moment_ms(CLOCK_MONOTONIC);
        struct pollfd p[] = {{.fd = w->fd, .events = events},
                             {.fd = w->cancel_fd, .events = POLLIN}};
        int ready = poll(p, ARRAY_LEN(p), left > 0 ? (int)left : 0);
        if (ready > 0) {
            return p[1].revents != 0 ? HONE_CANCELLED : HONE_OK;
        }
        if (ready == 0 || errno != EINTR) {
            return HONE_WORKER;
        }
    }
}

/* Bytes in one direction. As wait_ready; HONE_IO when the other end is gone. */
static hone_status move_bytes(const worker *w, bool out, uint8_t *bytes, size_t len, int64_t until)
{
    while (len > 0) {
        hone_status status = wait_ready(w, out ? POLLOUT : POLLIN, until);
        if (status != HONE_OK) {
            return status;
        }
        ssize_t moved = out ? send(w->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(w->fd, bytes, len, MSG_DONTWAIT);
        if (moved < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (moved <= 0) {
            return HONE_IO;
        }
        bytes += moved;
        len -= (size_t)moved;
    }
    return HONE_OK;
}

void worker_stop(worker *w)
{
    if (w->pid > 0) {
        kill(-w->pid, SIGKILL);
        while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        close(w->fd);
    }
    w->pid = 0;
    w->fd = -1;
    w->jobs = 0;
}

/* How a worker that hung up ended. It is dying, so a second is plenty; then it is killed. */
static hone_status explain_end(worker *w, bool *timed_out, hone_error *error)
{
    int state = 0;
    pid_t got = 0;
    const struct timespec pause = {.tv_nsec = 2000000};

    for (int i = 0; i < 500 && got == 0; i++) {
        got = waitpid(w->pid, &state, WNOHANG);
        if (got == 0) {
            nanosleep(&pause, NULL);
        }
    }
    if (got == w->pid) { /* reaped: its number may be anyone's by now */
        close(w->fd);
        w->pid = 0;
    }
    worker_stop(w);
    if (got > 0 && WIFSIGNALED(state)) {
        *timed_out = WTERMSIG(state) == SIGXCPU;
        return status_set(error, HONE_WORKER, NULL, 0,
                          *timed_out ? "%s ran past its processor time (signal %d)"
                                     : "%s crashed (signal %d)",
                          w->name, WTERMSIG(state));
    }
    return status_set(error, HONE_WORKER, NULL, 0, "%s ended early (exit status %d)", w->name,
                      got > 0 && WIFEXITED(state) ? WEXITSTATUS(state) : -1);
}

/* Why bytes did not move; the worker is stopped. */
static hone_status explain_failure(worker *w, hone_status moved, bool *timed_out, hone_error *error)
{
    if (moved == HONE_IO) {
        return explain_end(w, timed_out, error);
    }
    worker_stop(w);
    *timed_out = moved == HONE_WORKER;
    return status_set(error, moved, NULL, 0,
                      *timed_out ? "%s ran past its deadline and was killed" : "%s is closing",
                      w->name);
}

/* One checked message. The caller frees *payload. */
static hone_status receive(worker *w, wire_kind want, int64_t until, uint8_t **payload, size_t *len,
                           bool *timed_out, hone_error *error)
{
    uint8_t header[WIRE_HEADER_BYTES], *bytes = NULL;
    wire_kind kind;
    size_t size = 0;
    hone_status moved = move_bytes(w, false, header, sizeof header, until);

    if (moved != HONE_OK) {
        return explain_failure(w, moved, timed_out, error);
    }
    if (!wire_header(header, &kind, &size) || kind != want) {
        worker_stop(w);
        return status_set(error, HONE_WORKER, NULL, 0, "%s sent a malformed message", w->name);
    }
    bytes = malloc(size + 1);
    if (bytes == NULL) {
        worker_stop(w);
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "an answer of %zu bytes", size);
    }
    moved = move_bytes(w, false, bytes, size, until);
    if (moved != HONE_OK) {
        free(bytes);
        return explain_failure(w, moved, timed_out, error);
    }
    if (!wire_intact(header, bytes, size)) {
        free(bytes);
        worker_stop(w);
        return status_set(error, HONE_WORKER, NULL, 0, "a message of %s is damaged", w->name);
    }
    *payload = bytes;
    *len = size;
    return HONE_OK;
}

enum { ENVIRONMENT_MOST = 32 };

/* "NAME=value" for each inherited variable that is set; ends with NULL. No LD_PRELOAD, no
 * CUDA_INJECTION64_PATH, no NVCC_*. False without memory. */
static bool build_environment(const char *const *inherited, char *environment[ENVIRONMENT_MOST])
{
    size_t len = 0;

    environment[len++] = strdup("LC_ALL=C");
    for (size_t i = 0; inherited[i] != NULL && len < ENVIRONMENT_MOST - 1; i++) {
        const char *value = secure_getenv(inherited[i]);
        char *pair = NULL;
        if (value == NULL) {
            continue;
        }
        if (asprintf(&pair, "%s=%s", inherited[i], value) < 0) {
            return false;
        }
        environment[len++] = pair;
    }
    return environment[0] != NULL;
}

/* The new process: own group, default signals, the socket as stdin, nothing else. */
static int spawn(const char *program, char *const *arguments, char *const *environment, int fd,
                 pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int result;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, fd, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                              POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    result = posix_spawn(pid, program, &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return result;
}

static hone_status spawn_worker(worker *w, const worker_program *program, hone_error *error)
{
    int pair[2] = {-1, -1}, result;
    char parent[32];
    char *environment[ENVIRONMENT_MOST] = {NULL};
    char *arguments[] = {(char *)program->path, (char *)program->argument, parent, NULL};

    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    if (!build_environment(program->inherited, environment) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        result = errno;
    } else {
        result = spawn(program->path, arguments, environment, pair[1], &w->pid);
        close(pair[1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(environment); i++) {
        free(environment[i]);
    }
    if (result != 0) {
        close(pair[0]);
        w->pid = 0;
        return status_set(error, HONE_ENVIRONMENT, program->path, 0, "%s does not start: %s",
                          program->name, strerror(result));
    }
    w->fd = pair[0];
    return HONE_OK;
}

hone_status worker_start(worker *w, const worker_program *program, int cancel_fd, uint8_t **hello,
                         size_t *hello_len, hone_error *error)
{
    hone_status status = HONE_OK;
    bool timed_out = false;

    *w = (worker){.fd = -1, .cancel_fd = cancel_fd, .name = program->name};
    TRY(spawn_worker(w, program, error));
    TRY(receive(w, WIRE_HELLO, moment_ms(CLOCK_MONOTONIC) + HELLO_DEADLINE_MS, hello, hello_len,
                &timed_out, error));
done:
    if (status != HONE_OK) {
        worker_stop(w);
    }
    return status;
}

hone_status worker_exchange(worker *w, const wire_writer *request, uint32_t deadline_ms,
                            uint8_t **answer, size_t *answer_len, bool *timed_out,
                            hone_error *error)
{
    int64_t until = moment_ms(CLOCK_MONOTONIC) + deadline_ms;

    *timed_out = false;
    w->jobs++;
    hone_status moved = move_bytes(w, true, request->bytes, request->len, until);
    if (moved != HONE_OK) {
        return explain_failure(w, moved, timed_out, error);
    }
    return receive(w, WIRE_ANSWER, until, answer, answer_len, timed_out, error);
}
