/* arena.c - a chain of blocks, each filled from the front. */
#include "core/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    arena_block *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

/* Most descriptions fit one block of this size. */
#define BLOCK_BYTES ((size_t)16 << 10)

void *arena_alloc(arena *a, size_t bytes)
{
    arena_block *block = a->blocks;
    size_t unit = alignof(max_align_t);

    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    size_t rounded = (bytes + unit - 1) / unit * unit;
    if (block == NULL || block->capacity - block->used < rounded) {
        size_t capacity = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;
        block = calloc(1, sizeof *block + capacity);
        if (block == NULL) {
            return NULL;
        }
        block->capacity = capacity;
        block->next = a->blocks;
        a->blocks = block;
    }
    void *taken = block->bytes + block->used;
    block->used += rounded;
    return taken;
}

char *arena_text(arena *a, const char *text, size_t len)
{
    char *copy = arena_alloc(a, len + 1);

    if (copy != NULL && len > 0) {
        memcpy(copy, text, len);
    }
    return copy;
}

void arena_free(arena *a)
{
    while (a->blocks != NULL) {
        arena_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}
