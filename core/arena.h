/* arena.h - short-lived memory that is freed all at once. One thread at a time. */
#ifndef HONE_CORE_ARENA_H
#define HONE_CORE_ARENA_H

#include <stddef.h>

typedef struct arena_block arena_block;

/* Begin with all zeros. */
typedef struct arena {
    arena_block *blocks;
} arena;

/* `bytes` zeroed bytes, aligned for anything, until arena_free; NULL when memory is out. */
void *arena_alloc(arena *a, size_t bytes);
/* A NUL-terminated copy of text[0..len). */
char *arena_text(arena *a, const char *text, size_t len);
void arena_free(arena *a);

#endif
