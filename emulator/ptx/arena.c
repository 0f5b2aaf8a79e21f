/* arena.c - memory of one parse, freed at once. */
#include "emulator/ptx/ptx.h"

#include <stdlib.h>

enum { BLOCK_BYTES = 256 * 1024, ALIGN = 16 };

struct ptx_arena_block {
    struct ptx_arena_block *next;
    size_t used, capacity;
    _Alignas(16) unsigned char bytes[];
};

void *ptx_arena_take(ptx_arena *a, size_t bytes)
{
    size_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN;

    if (need < bytes) {
        return NULL;
    }
    if (a->first == NULL || a->first->capacity - a->first->used < need) {
        size_t capacity = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        struct ptx_arena_block *b = calloc(1, sizeof *b + capacity);
        if (b == NULL) {
            return NULL;
        }
        b->capacity = capacity;
        b->next = a->first;
        a->first = b;
    }
    void *at = a->first->bytes + a->first->used;
    a->first->used += need;
    return at;
}

void ptx_arena_close(ptx_arena *a)
{
    while (a->first != NULL) {
        struct ptx_arena_block *next = a->first->next;
        free(a->first);
        a->first = next;
    }
}
