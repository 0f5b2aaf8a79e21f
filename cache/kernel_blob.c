/* kernel_blob.c - fields one after the other, each byte string behind its length; zstd around all
 * of it. */
#include "cache/kernel_blob.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MAGIC      0x32454b48u /* "HKE2" */
#define MOST_BYTES ((size_t)256 << 20)
/* Level 3: cubins shrink about as much as at 9, in a tenth of the time. */
#define LEVEL 3

/* Bytes that are written in two passes of the same code: the first, without memory, only measures.
 */
typedef struct writer {
    uint8_t *bytes;
    size_t len;
} writer;

static void put(writer *w, const void *bytes, size_t len)
{
    if (w->bytes != NULL && len > 0) {
        memcpy(w->bytes + w->len, bytes, len);
    }
    w->len += len;
}

static void put_u64(writer *w, uint64_t value)
{
    put(w, &value, sizeof value);
}

static void put_bytes(writer *w, const void *bytes, size_t len)
{
    put_u64(w, bytes != NULL ? len : UINT64_MAX); /* NULL and empty differ */
    put(w, bytes, bytes != NULL ? len : 0);
}

static void put_text(writer *w, const char *text)
{
    put_bytes(w, text, text != NULL ? strlen(text) : 0);
}

static void put_entry(writer *w, const kernel_entry *e)
{
    uint64_t ms;

    memcpy(&ms, &e->compile_ms, sizeof ms);
    put_u64(w, MAGIC);
    put_u64(w, ms);
    put_bytes(w, e->cubin, e->cubin_len);
    put_bytes(w, e->ptx, e->ptx_len);
    put_text(w, e->log);
    put_u64(w, e->functions_len);
    for (uint32_t i = 0; i < e->functions_len; i++) {
        const kernel_function *f = &e->functions[i];
        put_text(w, f->name);
        put(w, &f->registers, sizeof f->registers);
        put(w, &f->shared_bytes, sizeof f->shared_bytes);
        put(w, &f->spill_bytes, sizeof f->spill_bytes);
        put(w, &f->local_bytes, sizeof f->local_bytes);
        put(w, &f->remarks, sizeof f->remarks);
        put_text(w, f->remark);
    }
}

hone_status kernel_blob_pack(const kernel_entry *entry, uint8_t **out, size_t *len,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    writer w = {0};
    uint8_t *plain = NULL, *packed = NULL;

    put_entry(&w, entry);
    size_t total = w.len;
    if (total > MOST_BYTES) {
        return status_set(error, HONE_LIMIT, NULL, 0, "a module of %zu bytes", total);
    }
    plain = malloc(total);
    packed = malloc(ZSTD_compressBound(total));
    if (plain == NULL || packed == NULL) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "module");
        goto done;
    }
    w = (writer){.bytes = plain};
    put_entry(&w, entry);
    size_t made = ZSTD_compress(packed, ZSTD_compressBound(total), plain, total, LEVEL);
    if (ZSTD_isError(made)) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "%s", ZSTD_getErrorName(made));
        goto done;
    }
    *out = packed;
    *len = made;
    packed = NULL;
done:
    free(plain);
    free(packed);
    return status;
}

/* What is left to read; `bad` once it was too short. */
typedef struct reader {
    const uint8_t *at, *end;
    bool bad;
} reader;

static void get(reader *r, void *out, size_t len)
{
    if (r->bad || (size_t)(r->end - r->at) < len) {
        r->bad = true;
        memset(out, 0, len);
        return;
    }
    memcpy(out, r->at, len);
    r->at += len;
}

static uint64_t get_u64(reader *r)
{
    uint64_t value;

    get(r, &value, sizeof value);
    return value;
}

static int32_t get_i32(reader *r)
{
    int32_t value;

    get(r, &value, sizeof value);
    return value;
}

/* A copy with a NUL behind it, or NULL for what was NULL. */
static uint8_t *get_bytes(reader *r, size_t *len)
{
    uint64_t declared = get_u64(r);

    *len = 0;
    if (r->bad || declared == UINT64_MAX) {
        return NULL;
    }
    if (declared > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return NULL;
    }
    uint8_t *copy = malloc((size_t)declared + 1);
    if (copy == NULL) {
        r->bad = true;
        return NULL;
    }
    get(r, copy, (size_t)declared);
    copy[declared] = 0;
    *len = (size_t)declared;
    return copy;
}

static void get_entry(reader *r, kernel_entry *e)
{
    size_t unused;
    uint64_t functions;

    r->bad = get_u64(r) != MAGIC;
    get(r, &e->compile_ms, sizeof e->compile_ms);
    e->cubin = get_bytes(r, &e->cubin_len);
    e->ptx = (char *)get_bytes(r, &e->ptx_len);
    e->log = (char *)get_bytes(r, &unused);
    functions = get_u64(r);
    r->bad = r->bad || functions > KERNEL_MAX_FUNCTIONS;
    for (uint64_t i = 0; i < functions && !r->bad; i++) {
        kernel_function *f = &e->functions[i];
        e->functions_len++;
        f->name = (char *)get_bytes(r, &unused);
        f->registers = get_i32(r);
        f->shared_bytes = get_i32(r);
        f->spill_bytes = get_i32(r);
        f->local_bytes = get_i32(r);
        f->remarks = get_i32(r);
        f->remark = (char *)get_bytes(r, &unused);
        r->bad = r->bad || f->name == NULL;
    }
    r->bad = r->bad || r->at != r->end;
}

hone_status kernel_blob_unpack(const uint8_t *bytes, size_t len, kernel_entry *out,
                               hone_error *error)
{
    hone_status status = HONE_OK;
    kernel_entry made = {0};
    uint8_t *plain = NULL;
    unsigned long long size = ZSTD_getFrameContentSize(bytes, len);

    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > MOST_BYTES) {
        return status_set(error, HONE_STORE_DAMAGED, NULL, 0, "not a compressed module");
    }
    plain = malloc((size_t)size + 1);
    if (plain == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "module");
    }
    size_t got = ZSTD_decompress(plain, (size_t)size, bytes, len);
    reader r = {plain, plain + size, ZSTD_isError(got) || got != size};
    if (!r.bad) {
        get_entry(&r, &made);
    }
    if (r.bad) {
        status = status_set(error, HONE_STORE_DAMAGED, NULL, 0, "not a module");
        goto done;
    }
    *out = made;
    made = (kernel_entry){0};
done:
    kernel_entry_free(&made);
    free(plain);
    return status;
}

void kernel_entry_free(kernel_entry *entry)
{
    free(entry->cubin);
    free(entry->ptx);
    free(entry->log);
    for (uint32_t i = 0; i < entry->functions_len; i++) {
        free(entry->functions[i].name);
        free(entry->functions[i].remark);
    }
    memset(entry, 0, sizeof *entry);
}
