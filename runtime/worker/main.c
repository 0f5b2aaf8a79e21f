/* main.c - hone-worker: compiles what the parent sends over stdin's socket, one request at a time,
 * until it closes.
 *
 * Started by the JIT with a socket as stdin, nothing else open, and a short environment. Never
 * touches a GPU. */
#include "runtime/worker/nvrtc.h"
#include "runtime/worker/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORKER_SOCKET = 0 };

static bool read_all(uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t got = read(WORKER_SOCKET, to, len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        to += got;
        len -= (size_t)got;
    }
    return true;
}

static bool send_message(wire_writer *w)
{
    size_t sent = 0;
    bool whole = wire_end(w);

    while (whole && sent < w->len) {
        ssize_t put = send(WORKER_SOCKET, w->bytes + sent, w->len - sent, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        whole = put > 0;
        sent += whole ? (size_t)put : 0;
    }
    wire_free(w);
    return whole;
}

static bool say_hello(const nvrtc *n, const char *why, bool sandboxed)
{
    wire_writer hello;

    wire_begin(&hello, WIRE_HELLO);
    wire_put_text(&hello, why);
    wire_put_u64(&hello, (uint64_t)n->version);
    wire_put_text(&hello, n->path);
    wire_put_text(&hello, n->build);
    wire_put_u64(&hello, sandboxed);
    return send_message(&hello);
}

/* One request, one answer. False when the parent is gone or talks nonsense. */
static bool serve_one(const nvrtc *n)
{
    uint8_t header[WIRE_HEADER_BYTES];
    wire_kind kind;
    wire_writer answer = {.failed = false};
    size_t len = 0;

    if (!read_all(header, sizeof header) || !wire_header(header, &kind, &len) ||
        kind != WIRE_COMPILE) {
        return false;
    }
    uint8_t *payload = malloc(len + 1);
    bool ok = payload != NULL && read_all(payload, len) && wire_intact(header, payload, len);
    if (ok) {
        wire_reader reader = {.bytes = payload, .len = len};
        ok = nvrtc_answer(n, &reader, &answer) && send_message(&answer);
    }
    wire_free(&answer);
    free(payload);
    return ok;
}

int main(int argc, char **argv)
{
    char why[256] = "", *end = NULL;
    nvrtc n = {.version = 0};
    const uint64_t memory_bytes = argc == 3 ? strtoull(argv[1], &end, 10) : 0;
    const long parent = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

    if (memory_bytes == 0 || *end != '\0') {
        fprintf(stderr, "hone-worker compiles kernels for hone and is started by it alone\n");
        return 2;
    }
    if (!sandbox_enter(memory_bytes) || getppid() != (pid_t)parent) {
        return 1; /* no sandbox, or the parent died before we asked to die with it */
    }
    bool opened = nvrtc_open(&n, why);
    bool sandboxed = sandbox_lock_files(opened ? n.folder : "/nonexistent");
    if (!say_hello(&n, why, sandboxed) || !opened) {
        return 1;
    }
    while (serve_one(&n)) {
    }
    return 0;
}
