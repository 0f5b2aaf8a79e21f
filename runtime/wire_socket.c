/* wire_socket.c - reads and sends messages without a deadline: a worker waits for its parent, and
 * dies with it. */
#include "runtime/wire_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool read_all(int fd, uint8_t *to, size_t len)
{
    while (len > 0) {
        ssize_t got = read(fd, to, len);
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

bool wire_socket_read(int fd, wire_kind *kind, uint8_t **payload, size_t *len)
{
    uint8_t header[WIRE_HEADER_BYTES], *bytes = NULL;
    size_t size = 0;

    if (!read_all(fd, header, sizeof header) || !wire_header(header, kind, &size)) {
        return false;
    }
    bytes = malloc(size + 1);
    if (bytes == NULL || !read_all(fd, bytes, size) || !wire_intact(header, bytes, size)) {
        free(bytes);
        return false;
    }
    *payload = bytes;
    *len = size;
    return true;
}

bool wire_socket_send(int fd, wire_writer *w)
{
    size_t sent = 0;
    bool whole = wire_end(w);

    while (whole && sent < w->len) {
        ssize_t put = send(fd, w->bytes + sent, w->len - sent, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        whole = put > 0;
        sent += whole ? (size_t)put : 0;
    }
    wire_free(w);
    return whole;
}
