/* sass_parts.h - what the files of bench/sass share. Private. */
#ifndef HONE_BENCH_SASS_PARTS_H
#define HONE_BENCH_SASS_PARTS_H

#include "bench/sass.h"

#include <string.h>

#define SASS_INSTRUCTION_BYTES 16
#define SASS_MAX_INSTRUCTIONS  65536u
#define SASS_MAX_BACKWARD      1024u

/* A kernel's code inside a cubin; borrowed. */
typedef struct sass_code {
    const uint8_t *bytes;
    uint32_t len;  /* instructions, at least one */
    uint32_t arch; /* 80, 89, 90, ... */
} sass_code;

typedef struct sass_word {
    uint64_t low, high;
} sass_word;

static inline sass_word sass_word_at(const sass_code *code, uint32_t index)
{
    sass_word w;

    memcpy(&w, code->bytes + (size_t)index * SASS_INSTRUCTION_BYTES, sizeof w);
    return w;
}

/* The operation, without the form of its operands. */
static inline uint32_t sass_operation(sass_word w)
{
    return (uint32_t)w.low & 0x1ff;
}

/* Find the code of a kernel in a cubin; errors of sass_read. */
hone_status sass_find(const void *cubin, size_t len, const char *lowered, sass_code *out,
                      hone_error *error);

/* Add one instruction to what is counted. */
void sass_count_add(sass_count *count, sass_word w);
bool sass_is_product(sass_word w);

/* Find and count the loops; the caller frees *loops. */
hone_status sass_find_loops(const sass_code *code, sass_loop **loops, size_t *len,
                            hone_error *error);

#endif
