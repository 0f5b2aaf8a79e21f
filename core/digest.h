/* digest.h - BLAKE2b digests with length-prefixed fields, so that ("ab","c") and ("a","bc") differ.
 */
#ifndef HONE_CORE_DIGEST_H
#define HONE_CORE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGEST_BYTES 32

typedef struct digest {
    unsigned char state[512]; /* crypto_generichash_state, aligned by hand: never copy one between
                                 begin and end */
} digest;

/* Choose the fastest code for this CPU for all digests to come; twice as fast, the same bytes.
 * Optional, cheap when repeated, thread-safe. False: the portable code stays in place. */
bool digest_prepare(void);

void digest_begin(digest *d);
void digest_bytes(digest *d, const void *bytes, size_t len); /* length first, then the bytes */
void digest_text(digest *d, const char *text);               /* NULL is a field of its own kind */
void digest_u64(digest *d, uint64_t value);
void digest_end(digest *d, uint8_t out[DIGEST_BYTES]);
void digest_hex(const uint8_t *bytes, size_t len, char *hex); /* 2 * len + 1 bytes */

#endif
