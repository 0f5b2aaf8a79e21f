/* digest.c - BLAKE2b by libsodium, one length-prefixed field after the other. */
#include "core/digest.h"

#include <sodium.h>
#include <string.h>

/* libsodium wants its state on a 64-byte boundary; ours may lie anywhere, so there is room to shift
 * it. */
_Static_assert(sizeof(crypto_generichash_state) + 63 <= sizeof(((digest *)0)->state),
               "digest.state holds a generichash state at any alignment");

static crypto_generichash_state *state_of(digest *d)
{
    uintptr_t at = ((uintptr_t)d->state + 63) & ~(uintptr_t)63;

    return (crypto_generichash_state *)at;
}

static void put_u64(digest *d, uint64_t value)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
    crypto_generichash_update(state_of(d), bytes, sizeof bytes);
}

bool digest_prepare(void)
{
    return sodium_init() >= 0;
}

void digest_begin(digest *d)
{
    crypto_generichash_init(state_of(d), NULL, 0, DIGEST_BYTES);
}

void digest_bytes(digest *d, const void *bytes, size_t len)
{
    put_u64(d, len);
    if (len > 0) {
        crypto_generichash_update(state_of(d), bytes, len);
    }
}

void digest_text(digest *d, const char *text)
{
    if (text == NULL) {
        put_u64(d, UINT64_MAX); /* no text has that length: NULL and "" differ */
        return;
    }
    digest_bytes(d, text, strlen(text));
}

void digest_u64(digest *d, uint64_t value)
{
    put_u64(d, sizeof value);
    put_u64(d, value);
}

void digest_end(digest *d, uint8_t out[DIGEST_BYTES])
{
    crypto_generichash_final(state_of(d), out, DIGEST_BYTES);
}

void digest_hex(const uint8_t *bytes, size_t len, char *hex)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * len] = '\0';
}
