/* main.c - hone-worker: compiles what the parent sends over stdin's socket, one request at a time,
 * until it closes.
 *
 * Started by the JIT with a socket as stdin, nothing else open, and a short environment. Never
 * touches a GPU. */
#include "runtime/wire_socket.h"
#include "runtime/worker/nvrtc.h"
#include "runtime/worker/sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool say_hello(const nvrtc *n, const char *why, bool sandboxed)
{
    wire_writer hello;

    wire_begin(&hello, WIRE_HELLO);
    wire_put_text(&hello, why);
    wire_put_u64(&hello, (uint64_t)n->version);
    wire_put_text(&hello, n->path);
    wire_put_text(&hello, n->build);
    wire_put_u64(&hello, sandboxed);
    return wire_socket_send(WIRE_SOCKET, &hello);
}

/* One request, one answer. False when the parent is gone or talks nonsense. */
static bool serve_one(const nvrtc *n)
{
    wire_kind kind;
    wire_writer answer = {.failed = false};
    uint8_t *payload = NULL;
    size_t len = 0;
    bool ok = wire_socket_read(WIRE_SOCKET, &kind, &payload, &len) && kind == WIRE_COMPILE;

    if (ok) {
        wire_reader reader = {.bytes = payload, .len = len};
        ok = nvrtc_answer(n, &reader, &answer) && wire_socket_send(WIRE_SOCKET, &answer);
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
    if (!sandbox_enter() || !sandbox_limit(memory_bytes) || getppid() != (pid_t)parent) {
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
