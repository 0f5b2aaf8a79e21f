/* wire.c - encodes and checks the messages of wire.h. */
#include "runtime/wire.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define WIRE_MAGIC 0x31454e4f48ull /* "HONE1" */

/* magic, kind, payload bytes, XXH3-64 of the payload */
enum { AT_MAGIC = 0, AT_KIND = 8, AT_LEN = 16, AT_SUM = 24 };

static void store_u64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t fetch_u64(const uint8_t *from)
{
    uint64_t value = 0;

    for (int i = 0; i < 8; i++) {
        value |= (uint64_t)from[i] << (8 * i);
    }
    return value;
}

/* Room for `len` more bytes, or NULL. */
static uint8_t *grow(wire_writer *w, size_t len)
{
    if (w->failed || len > WIRE_MAX_BYTES || w->len + len > WIRE_MAX_BYTES) {
        w->failed = true;
        return NULL;
    }
    if (w->len + len > w->capacity) {
        size_t capacity = 2 * (w->len + len) + 4096;
        uint8_t *bytes = realloc(w->bytes, capacity);
        if (bytes == NULL) {
            w->failed = true;
            return NULL;
        }
        w->bytes = bytes;
        w->capacity = capacity;
    }
    uint8_t *at = w->bytes + w->len;
    w->len += len;
    return at;
}

void wire_begin(wire_writer *w, wire_kind kind)
{
    *w = (wire_writer){.failed = false};
    uint8_t *header = grow(w, WIRE_HEADER_BYTES);
    if (header != NULL) {
        memset(header, 0, WIRE_HEADER_BYTES);
        store_u64(header + AT_MAGIC, WIRE_MAGIC);
        store_u64(header + AT_KIND, kind);
    }
}

bool wire_end(wire_writer *w)
{
    if (w->failed) {
        return false;
    }
    size_t payload = w->len - WIRE_HEADER_BYTES;
    store_u64(w->bytes + AT_LEN, payload);
    store_u64(w->bytes + AT_SUM, XXH3_64bits(w->bytes + WIRE_HEADER_BYTES, payload));
    return true;
}

void wire_free(wire_writer *w)
{
    free(w->bytes);
    *w = (wire_writer){.failed = false};
}

void wire_put_u64(wire_writer *w, uint64_t value)
{
    uint8_t *at = grow(w, 8);

    if (at != NULL) {
        store_u64(at, value);
    }
}

void wire_put_bytes(wire_writer *w, const void *bytes, size_t len)
{
    wire_put_u64(w, len);
    uint8_t *at = grow(w, len + 1); /* the NUL makes texts of it */
    if (at == NULL) {
        return;
    }
    if (len > 0) {
        memcpy(at, bytes, len);
    }
    at[len] = 0;
}

void wire_put_text(wire_writer *w, const char *text)
{
    wire_put_bytes(w, text, strlen(text));
}

uint64_t wire_get_u64(wire_reader *r)
{
    if (r->failed || r->len - r->at < 8) {
        r->failed = true;
        return 0;
    }
    uint64_t value = fetch_u64(r->bytes + r->at);
    r->at += 8;
    return value;
}

const void *wire_get_bytes(wire_reader *r, size_t *len)
{
    uint64_t want = wire_get_u64(r);

    *len = 0;
    if (r->failed || want >= r->len - r->at || r->bytes[r->at + want] != 0) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *bytes = r->bytes + r->at;
    r->at += want + 1;
    *len = want;
    return bytes;
}

const char *wire_get_text(wire_reader *r)
{
    size_t len = 0;
    const char *text = wire_get_bytes(r, &len);

    if (text == NULL || memchr(text, 0, len) != NULL) {
        r->failed = true;
        return "";
    }
    return text;
}

bool wire_header(const uint8_t header[WIRE_HEADER_BYTES], wire_kind *kind, size_t *payload_len)
{
    uint64_t found = fetch_u64(header + AT_KIND), len = fetch_u64(header + AT_LEN);

    if (fetch_u64(header + AT_MAGIC) != WIRE_MAGIC || found < WIRE_HELLO ||
        found > WIRE_KIND_LAST || len > WIRE_MAX_BYTES) {
        return false;
    }
    *kind = (wire_kind)found;
    *payload_len = len;
    return true;
}

bool wire_intact(const uint8_t header[WIRE_HEADER_BYTES], const uint8_t *payload, size_t len)
{
    return fetch_u64(header + AT_SUM) == XXH3_64bits(payload, len);
}
