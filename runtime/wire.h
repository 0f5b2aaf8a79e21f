/* wire.h - messages between the JIT and its worker: a checked header, then length-prefixed fields.
 *
 * Little endian. A writer grows and remembers a failed allocation; a reader never passes the end
 * and remembers the first field that did not fit, so that callers check once. */
#ifndef HONE_RUNTIME_WIRE_H
#define HONE_RUNTIME_WIRE_H

#include "core/status.h"

#include <stdbool.h>

/* Far above any kernel's cubin, far below what would hurt the parent. */
#define WIRE_MAX_BYTES (64u << 20)

typedef enum wire_kind {
    WIRE_HELLO =
        1, /* worker: text ("" or why NVRTC is missing), version, library, build, sandboxed */
    WIRE_COMPILE =
        2, /* parent: name, source, headers, entries, arch, max registers, lineinfo, cpu seconds */
    WIRE_ANSWER = 3, /* worker: result, text, log, lowered names, cubin, ptx, nanoseconds */
    WIRE_OPEN = 4,   /* parent to a prover: tuner/prover_wire.h, as its answers */
    WIRE_PROVE = 5,  /* parent to a prover */
    WIRE_KIND_LAST = WIRE_PROVE,
} wire_kind;

typedef struct wire_writer {
    uint8_t *bytes; /* owned: wire_free */
    size_t len, capacity;
    bool failed; /* out of memory, or past WIRE_MAX_BYTES */
} wire_writer;

typedef struct wire_reader {
    const uint8_t *bytes; /* borrowed */
    size_t len, at;
    bool failed;
} wire_reader;

/* Begin a message; wire_end fills the header in. */
void wire_begin(wire_writer *w, wire_kind kind);
bool wire_end(wire_writer *w); /* false when a field failed */
void wire_free(wire_writer *w);
void wire_put_u64(wire_writer *w, uint64_t value);
void wire_put_bytes(wire_writer *w, const void *bytes, size_t len);
void wire_put_text(wire_writer *w, const char *text);

uint64_t wire_get_u64(wire_reader *r);
/* Borrowed from the message; NULL and 0 after a failure. */
const void *wire_get_bytes(wire_reader *r, size_t *len);
/* A text is followed by a NUL inside the message. "" after a failure. */
const char *wire_get_text(wire_reader *r);

#define WIRE_HEADER_BYTES 32

/* Read a header: the payload's length and kind. False for a wrong magic, version, kind or length.
 */
bool wire_header(const uint8_t header[WIRE_HEADER_BYTES], wire_kind *kind, size_t *payload_len);
/* Whether the payload is what the header's checksum says. */
bool wire_intact(const uint8_t header[WIRE_HEADER_BYTES], const uint8_t *payload, size_t len);

#endif
