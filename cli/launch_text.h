/* launch_text.h - the texts that describe a launch: its arguments, sizes, and what is read back.
 *
 * Texts are borrowed. Every refusal names the text and what would be taken. */
#ifndef HONE_CLI_LAUNCH_TEXT_H
#define HONE_CLI_LAUNCH_TEXT_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAUNCH_NAME = 64,
    LAUNCH_ARGUMENTS = 64,     /* as many as a kernel takes on the emulator */
    LAUNCH_VALUE_BYTES = 4096, /* of an argument by value */
    LAUNCH_MAP_RANK = 5,
};

typedef enum launch_kind {
    LAUNCH_VALUE,      /* bytes by value */
    LAUNCH_BUFFER,     /* the address of memory that is made for it */
    LAUNCH_TENSOR_MAP, /* 128 bytes by value, over a named buffer */
} launch_kind;

/* What a buffer holds before the launch. */
typedef enum launch_fill {
    LAUNCH_ZERO,
    LAUNCH_UNWRITTEN, /* as cuMemAlloc leaves it */
    LAUNCH_RANDOM,    /* bytes of a seed */
    LAUNCH_FLOATS,    /* fp32 of a seed, uniform in (-1, 1) */
    LAUNCH_IOTA,      /* 32-bit 0, 1, 2, ... */
    LAUNCH_WORD,      /* one 32-bit word again and again */
    LAUNCH_FILE,      /* a file's bytes; what it lacks is zero */
} launch_fill;

typedef struct launch_map {
    char buffer[LAUNCH_NAME];
    int type, swizzle, interleave, promotion, fill; /* values of cuda.h's enums */
    uint32_t rank;
    uint64_t dims[LAUNCH_MAP_RANK];    /* elements; the first is the fastest */
    uint64_t strides[LAUNCH_MAP_RANK]; /* bytes, of dimensions 1 and up; 0: packed */
    uint32_t box[LAUNCH_MAP_RANK], steps[LAUNCH_MAP_RANK];
    uint32_t element_bytes;
} launch_map;

typedef struct launch_argument {
    launch_kind kind;
    bool is_parameter;      /* of the kernel; false: memory that only a tensor map names */
    char name[LAUNCH_NAME]; /* of a buffer */
    /* LAUNCH_VALUE */
    uint8_t value[LAUNCH_VALUE_BYTES];
    size_t value_bytes;
    /* LAUNCH_BUFFER */
    uint64_t bytes, seed; /* seed: also the word of LAUNCH_WORD */
    launch_fill fill;
    char *path; /* owned */
    /* LAUNCH_TENSOR_MAP */
    launch_map map;
} launch_argument;

/* Numbers: i8 i16 i32 i64 (and u..) by ":VALUE", f32 and f64, `hex:DIGITS` for a struct, `null`.
 * buf:BYTES[:FILL][:NAME] with FILL of zero, unwritten, random:SEED, floats:SEED, iota, fill:WORD,
 * file:PATH; BYTES may end in K, M or G. tmap:BUFFER:TYPE:dims=64x32:box=64x8[:strides=256]
 * [:steps=1x1][:swizzle=32|64|128][:interleave=16|32][:l2=64|128|256][:oob=nan].
 * A buffer without a name is "arg" and `index`. HONE_BAD_TEXT. */
hone_status launch_text_argument(const char *text, size_t index, launch_argument *out,
                                 hone_error *error);
void launch_argument_free(launch_argument *a);

/* A count of bytes, which may end in K, M or G; at most `most`. */
hone_status launch_text_bytes(const char *what, const char *text, uint64_t most, uint64_t *out,
                              hone_error *error);

/* "8", "8,4" or "8,4,2" (or with x between); what is not said is 1. */
hone_status launch_text_dims(const char *what, const char *text, uint32_t out[3],
                             hone_error *error);

/* What is printed of a buffer: NAME[:TYPE][:COUNT]; f32 and 8 elements when not said. */
typedef struct launch_dump {
    char name[LAUNCH_NAME];
    char type[8];
    uint64_t count;
} launch_dump;
hone_status launch_text_dump(const char *text, launch_dump *out, hone_error *error);
/* One element as text: as many digits as tell it from its neighbours. */
void launch_text_element(const launch_dump *d, const uint8_t *bytes, uint64_t index, char *text,
                         size_t capacity);
/* Bits of an element of the dump. */
uint32_t launch_text_dump_bits(const launch_dump *d);

/* NAME=PATH. */
typedef struct launch_output {
    char name[LAUNCH_NAME];
    const char *path;
} launch_output;
hone_status launch_text_output(const char *text, launch_output *out, hone_error *error);

/* A word of a list of words and numbers, such as those of --arithmetic. */
typedef struct launch_word {
    const char *word;
    int value;
} launch_word;
hone_status launch_text_word(const char *what, const char *text, const launch_word *words,
                             size_t len, int *out, hone_error *error);
/* Words by commas, whose values are joined by or. */
hone_status launch_text_words(const char *what, const char *text, const launch_word *words,
                              size_t len, int *out, hone_error *error);

#endif
