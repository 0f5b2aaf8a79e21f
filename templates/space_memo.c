/* space_memo.c - counts of legal configs by what they depend on: a bounded hash table.
 *
 * A table that cannot grow forgets: it only ever saves time. */
#include "templates/space_parts.h"

#include <stdlib.h>

#define MEMO_MAX (1u << 18) /* places: 4 MiB */

void space_memo_free(space_memo *memo)
{
    free(memo->keys);
    free(memo->counts);
    *memo = (space_memo){0};
}

static uint64_t spread(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 32;
}

/* The place of `key`, or the empty one where it belongs. */
static size_t memo_place(const space_memo *memo, uint64_t key)
{
    size_t at = spread(key) & (memo->capacity - 1);

    while (memo->keys[at] != 0 && memo->keys[at] != key) {
        at = (at + 1) & (memo->capacity - 1);
    }
    return at;
}

static bool memo_grow(space_memo *memo)
{
    size_t capacity = memo->capacity == 0 ? 1024 : memo->capacity * 2;

    if (capacity > MEMO_MAX) {
        return false;
    }
    space_memo grown = {calloc(capacity, sizeof *grown.keys),
                        calloc(capacity, sizeof *grown.counts), memo->len, capacity};

    if (grown.keys == NULL || grown.counts == NULL) {
        space_memo_free(&grown);
        return false;
    }
    for (size_t i = 0; i < memo->capacity; i++) {
        if (memo->keys[i] != 0) {
            size_t at = memo_place(&grown, memo->keys[i]);
            grown.keys[at] = memo->keys[i];
            grown.counts[at] = memo->counts[i];
        }
    }
    space_memo_free(memo);
    *memo = grown;
    return true;
}

void space_memo_put(space_memo *memo, uint64_t key, uint64_t count)
{
    if (key == 0 || (memo->len * 2 >= memo->capacity && !memo_grow(memo))) {
        return;
    }
    size_t at = memo_place(memo, key);
    memo->len += memo->keys[at] == 0;
    memo->keys[at] = key;
    memo->counts[at] = count;
}

bool space_memo_get(const space_memo *memo, uint64_t key, uint64_t *count)
{
    if (key == 0 || memo->capacity == 0) {
        return false;
    }
    size_t at = memo_place(memo, key);
    *count = memo->counts[at];
    return memo->keys[at] == key;
}

uint64_t space_memo_key(const space *s, const space_walker *w, uint32_t level)
{
    uint64_t key = 0;

    if (s->levels[level].radix_len == 0) {
        return 0;
    }
    for (uint32_t left = s->levels[level].frontier; left != 0; left &= left - 1) {
        uint32_t param = (uint32_t)__builtin_ctz(left);
        key = key * s->m->params[param].len + w->at[s->level_of[param]];
    }
    return (key << 5 | level) + 1;
}
