/* claims.c - compares a reader's verdict with the one that is claimed. */
#include "tests/models/claims.h"

#include "core/random.h"

#include <string.h>

void claim_check(const claim *c, hone_status status, const hone_error *error)
{
    ck_assert_msg(status == c->status, "%s: %s (%s)", c->claim, hone_status_name(status),
                  error->message);
    ck_assert_msg(c->line < 0 || error->line == c->line, "%s: line %d, %s", c->claim, error->line,
                  error->message);
    ck_assert_msg(c->says == NULL || strstr(error->message, c->says) != NULL, "%s: '%s'", c->claim,
                  error->message);
}

size_t claim_mutate(const char *text, size_t len, uint64_t seed, char *to)
{
    static const char bytes[] = "0123456789-.:,{}[]\"' #&*!|>%@\n\t\xff";
    uint64_t state = seed;
    size_t edits = 1 + random_next(&state) % 4;

    memcpy(to, text, len);
    for (size_t i = 0; i < edits && len > 1; i++) {
        size_t at = random_next(&state) % len, other = random_next(&state) % len;

        switch (random_next(&state) % 3) {
        case 0:
            to[at] = bytes[random_next(&state) % (sizeof bytes - 1)];
            break;
        case 1:
            memmove(to + at, to + at + 1, len - at - 1);
            len--;
            break;
        default:
            to[at] = text[other];
            break;
        }
    }
    to[len] = '\0';
    return len;
}
