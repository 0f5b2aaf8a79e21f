/* wire_socket.h - the worker's end of its socket: whole messages, checked. */
#ifndef HONE_RUNTIME_WIRE_SOCKET_H
#define HONE_RUNTIME_WIRE_SOCKET_H

#include "runtime/wire.h"

/* The socket that a worker is started with. */
enum { WIRE_SOCKET = 0 };

/* Wait for the next message and its payload (the caller frees *payload). False when the parent is
 * gone or talks nonsense. */
bool wire_socket_read(int fd, wire_kind *kind, uint8_t **payload, size_t *len);

/* End the message, send and free it. False when a field failed or the parent is gone. */
bool wire_socket_send(int fd, wire_writer *w);

#endif
