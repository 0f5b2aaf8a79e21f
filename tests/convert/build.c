/* build.c - see build.h. */
#include "tests/convert/build.h"

#include "core/random.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *add(build *b, const char *name, safetensors_dtype dtype, uint32_t rank,
                    va_list shape)
{
    ck_assert_uint_lt(b->len, BUILD_MOST);
    safetensors_tensor *t = &b->tensors[b->len];
    *t = (safetensors_tensor){.name = name, .dtype = dtype, .rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        t->shape[i] = (uint64_t)va_arg(shape, int);
    }
    ck_assert_int_eq(safetensors_bytes("build", t, &t->bytes, NULL), HONE_OK);
    b->bytes[b->len] = calloc(1, t->bytes + 1);
    ck_assert_ptr_nonnull(b->bytes[b->len]);
    return b->bytes[b->len++];
}

uint8_t *build_add(build *b, const char *name, safetensors_dtype dtype, uint32_t rank, ...)
{
    va_list shape;

    va_start(shape, rank);
    uint8_t *bytes = add(b, name, dtype, rank, shape);
    va_end(shape);
    return bytes;
}

uint8_t *build_random(build *b, uint64_t *random, const char *name, safetensors_dtype dtype,
                      unsigned least, unsigned count, uint32_t rank, ...)
{
    va_list shape;

    va_start(shape, rank);
    uint8_t *bytes = add(b, name, dtype, rank, shape);
    va_end(shape);
    for (uint64_t i = 0; i < b->tensors[b->len - 1].bytes; i++) {
        bytes[i] = (uint8_t)(least + random_below(random, count));
    }
    return bytes;
}

void build_write(build *b, const char *path)
{
    static const safetensors_note note = {"format", "pt"};
    const safetensors_table table = {b->tensors, b->len, &note, 1};
    safetensors_writer *w = NULL;
    hone_error error = {0};

    ck_assert_msg(safetensors_create(path, &table, false, &w, &error) == HONE_OK, "%s",
                  error.message);
    for (size_t i = 0; i < b->len; i++) {
        ck_assert_int_eq(safetensors_write(w, i, 0, b->bytes[i], b->tensors[i].bytes, &error),
                         HONE_OK);
        free(b->bytes[i]);
    }
    ck_assert_msg(safetensors_commit(w, &error) == HONE_OK, "%s", error.message);
    b->len = 0;
}

uint8_t *build_load(const safetensors_file *file, const char *name, const safetensors_tensor **out)
{
    const safetensors_table *table = safetensors_table_of(file);
    size_t i = 0;

    while (i < table->len && strcmp(table->tensors[i].name, name) != 0) {
        i++;
    }
    ck_assert_msg(i < table->len, "no tensor '%s'", name);
    const safetensors_tensor *t = &table->tensors[i];
    uint8_t *bytes = malloc(t->bytes + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(safetensors_read(file, t, 0, bytes, t->bytes, NULL), HONE_OK);
    if (out != NULL) {
        *out = t;
    }
    return bytes;
}
