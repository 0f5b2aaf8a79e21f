/* safetensors.h - one safetensors file: a bounded reader of headers, windows over its data, and a
 * writer whose file is there whole or not at all.
 *
 * A file is an 8-byte little-endian length N, N bytes of JSON that name each tensor's dtype, shape
 * and [begin, end) in the data, then the data. What the reader accepts is what the format's own
 * library accepts, and bounded: the tensors cover the data without gap or overlap, each holds just
 * the bytes that its dtype and shape ask for, names are given once. */
#ifndef HONE_CONVERT_SAFETENSORS_H
#define HONE_CONVERT_SAFETENSORS_H

#include "core/status.h"

#include <stdbool.h>

/* Limits, so that a header costs at most some 200 MiB of memory to read (bounded_json.h has more).
 */
#define SAFETENSORS_HEADER_MOST (UINT64_C(32) << 20) /* bytes of JSON */
#define SAFETENSORS_NAME_MOST   1024u                /* bytes of a tensor's name */
#define SAFETENSORS_RANK_MOST   8u

/* name in the file, bits of an element */
#define SAFETENSORS_DTYPE_MAP(X)                                                                   \
    X(BOOL, 8)                                                                                     \
    X(F4, 4)                                                                                       \
    X(F6_E2M3, 6)                                                                                  \
    X(F6_E3M2, 6)                                                                                  \
    X(U8, 8)                                                                                       \
    X(I8, 8)                                                                                       \
    X(F8_E5M2, 8)                                                                                  \
    X(F8_E4M3, 8)                                                                                  \
    X(F8_E8M0, 8)                                                                                  \
    X(F8_E4M3FNUZ, 8)                                                                              \
    X(F8_E5M2FNUZ, 8)                                                                              \
    X(I16, 16)                                                                                     \
    X(U16, 16)                                                                                     \
    X(F16, 16)                                                                                     \
    X(BF16, 16)                                                                                    \
    X(I32, 32)                                                                                     \
    X(U32, 32)                                                                                     \
    X(F32, 32)                                                                                     \
    X(C64, 64)                                                                                     \
    X(F64, 64)                                                                                     \
    X(I64, 64)                                                                                     \
    X(U64, 64)

typedef enum safetensors_dtype {
#define X(name, bits) SAFETENSORS_##name,
    SAFETENSORS_DTYPE_MAP(X)
#undef X
        SAFETENSORS_DTYPES
} safetensors_dtype;

const char *safetensors_dtype_name(safetensors_dtype dtype); /* "F8_E4M3"; static */
unsigned safetensors_dtype_bits(safetensors_dtype dtype);

/* A tensor: row-major, little endian. */
typedef struct safetensors_tensor {
    const char *name; /* borrowed from the table that it came with */
    safetensors_dtype dtype;
    uint32_t rank;
    uint64_t shape[SAFETENSORS_RANK_MOST];
    uint64_t begin; /* of its bytes, from the start of the data; at any alignment */
    uint64_t bytes;
} safetensors_tensor;

/* Bytes that dtype and shape ask for. HONE_OVERFLOW past 2^63; HONE_BAD_TEXT when elements of less
 * than a byte do not fill whole ones. `source` and tensor->name are named in the error. */
hone_status safetensors_bytes(const char *source, const safetensors_tensor *tensor, uint64_t *out,
                              hone_error *error);
/* "F8_E4M3 [2, 128]" into text, cut when too long; returns text. */
const char *safetensors_describe(const safetensors_tensor *tensor, char *text, size_t capacity);

/* A pair of the file's own "__metadata__". */
typedef struct safetensors_note {
    const char *key, *value;
} safetensors_note;

/* What a header says, in the order of the data. Everything in it lives until it is freed. */
typedef struct safetensors_table {
    const safetensors_tensor *tensors;
    size_t len;
    const safetensors_note *notes;
    size_t notes_len;
} safetensors_table;

/* Read a header of `len` bytes (not NUL-terminated) that describes `data_bytes` bytes of data.
 * `source` names the file in errors: HONE_BAD_TEXT for what breaks the format, HONE_LIMIT for what
 * passes a limit above, HONE_NO_MEMORY. Caller frees *out with safetensors_free. Thread-safe. */
hone_status safetensors_parse(const char *source, const char *header, size_t len,
                              uint64_t data_bytes, safetensors_table **out, hone_error *error);
void safetensors_free(safetensors_table *table); /* NULL is fine */

typedef struct safetensors_file safetensors_file;

/* Open a file for reading and read its header. HONE_IO when it cannot be read, or is no regular
 * file; else as safetensors_parse. Caller closes *out. */
hone_status safetensors_open(const char *path, safetensors_file **out, hone_error *error);
void safetensors_close(safetensors_file *file); /* NULL is fine */
const safetensors_table *safetensors_table_of(const safetensors_file *file);
const char *safetensors_path(const safetensors_file *file);
uint64_t safetensors_header_bytes(const safetensors_file *file);

/* Bytes of a tensor in memory, mapped and already read in; `bytes` may be at any alignment. */
typedef struct safetensors_window {
    const uint8_t *bytes;
    void *base; /* private */
    size_t base_len;
    bool copied;
} safetensors_window;

/* Look at `bytes` bytes from `offset` of a tensor on; they must lie within it. HONE_IO when they
 * cannot be read (the file was cut, the disk fails). Close with safetensors_unview. Thread-safe.
 * A file that another process cuts while a window is open ends this process, as with any mapping.
 */
hone_status safetensors_view(const safetensors_file *file, const safetensors_tensor *tensor,
                             uint64_t offset, uint64_t bytes, safetensors_window *out,
                             hone_error *error);
void safetensors_unview(safetensors_window *window);

/* Copy such bytes to `to`. HONE_IO, HONE_BAD_ARGUMENT. Thread-safe. */
hone_status safetensors_read(const safetensors_file *file, const safetensors_tensor *tensor,
                             uint64_t offset, void *to, uint64_t bytes, hone_error *error);

typedef struct safetensors_writer safetensors_writer;

/* Begin a file of these tensors (name, dtype, rank and shape count; begin and bytes are worked out
 * anew). They are laid out by falling element size, so that each is aligned, and in the given order
 * within one size. Nothing appears at `path` before safetensors_commit: the bytes go to a hidden
 * file beside it. An existing `path` is HONE_BAD_ARGUMENT unless `replace`. Caller ends with commit
 * or abandon. */
hone_status safetensors_create(const char *path, const safetensors_table *table, bool replace,
                               safetensors_writer **out, hone_error *error);
/* Bytes of the whole file. */
uint64_t safetensors_size(const safetensors_writer *writer);
/* Write `len` bytes at `offset` of tensor `index` (as given). Thread-safe. HONE_IO. */
hone_status safetensors_write(safetensors_writer *writer, size_t index, uint64_t offset,
                              const void *bytes, size_t len, hone_error *error);
/* Bring the file to the disk and give it its name. Frees the writer, also on failure. */
hone_status safetensors_commit(safetensors_writer *writer, hone_error *error);
/* Remove what was written. NULL is fine. */
void safetensors_abandon(safetensors_writer *writer);

/* Bring the folder that `path` lies in to the disk: only then is a rename there sure to last. A
 * file system that cannot say so keeps its own promises. */
void safetensors_sync_folder(const char *path);

#endif
