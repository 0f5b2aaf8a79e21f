/* build.h - small safetensors files for tests, and a look into what was made of them. */
#ifndef HONE_TESTS_CONVERT_BUILD_H
#define HONE_TESTS_CONVERT_BUILD_H

#include "convert/safetensors.h"

enum { BUILD_MOST = 32 };

/* Tensors that are collected and then written; bytes are owned. */
typedef struct build {
    safetensors_tensor tensors[BUILD_MOST];
    uint8_t *bytes[BUILD_MOST];
    size_t len;
} build;

/* Add a tensor of `rank` dimensions and return its bytes, zeroed, to be filled. The name is
 * borrowed. */
uint8_t *build_add(build *b, const char *name, safetensors_dtype dtype, uint32_t rank, ...);
/* The same, filled with random bytes, or with random ones from `least` on, `count` of them. */
uint8_t *build_random(build *b, uint64_t *random, const char *name, safetensors_dtype dtype,
                      unsigned least, unsigned count, uint32_t rank, ...);
/* Write them to a file with {"format": "pt"}, and free them. */
void build_write(build *b, const char *path);

/* The whole of a tensor of an open file; the test fails when it is not there. Caller frees. */
uint8_t *build_load(const safetensors_file *file, const char *name, const safetensors_tensor **out);

#endif
