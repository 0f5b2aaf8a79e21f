/* jit_answer.c - reads a worker's answer: code, what ptxas reports of it, and the first cause of a
 * failure. */
#include "runtime/jit_answer.h"

#include "core/device.h"
#include "runtime/jit_report.h"
#include "runtime/wire.h"

#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Raised whenever the options or the meaning of an entry change. */
#define JIT_SCHEMA 2
/* The longest of ptxas 13.0 has 193 bytes. */
#define REMARK_BYTES 320

hone_status jit_answer_hello(const uint8_t *payload, size_t len, jit_version *out,
                             hone_error *error)
{
    wire_reader r = {.bytes = payload, .len = len};
    jit_version v = {.nvrtc_version = 0};
    const char *why = wire_get_text(&r);

    v.nvrtc_version = (int32_t)wire_get_u64(&r);
    snprintf(v.library, sizeof v.library, "%s", wire_get_text(&r));
    snprintf(v.build, sizeof v.build, "%s", wire_get_text(&r));
    v.sandboxed = wire_get_u64(&r) != 0;
    snprintf(v.text, sizeof v.text, "%d.%d+%.8s", v.nvrtc_version / 1000,
             v.nvrtc_version % 1000 / 10, v.build);
    if (r.failed) {
        return status_set(error, HONE_WORKER, NULL, 0, "the compile worker's hello is malformed");
    }
    if (why[0] != '\0') {
        return status_set(error, HONE_ENVIRONMENT, NULL, 0, "%s", why);
    }
    *out = v;
    return HONE_OK;
}

void jit_answer_key(const jit_request *request, const jit_version *version,
                    uint8_t key[DIGEST_BYTES])
{
    char arch[16];
    digest d;

    device_arch_text(request->arch, arch);
    digest_begin(&d);
    digest_text(&d, "hone kernel");
    digest_u64(&d, JIT_SCHEMA);
    digest_bytes(&d, request->digest, sizeof request->digest);
    digest_text(&d, request->source.source);
    digest_u64(&d, request->source.headers_len);
    for (size_t i = 0; i < request->source.headers_len; i++) {
        digest_text(&d, request->source.names[i]);
        digest_text(&d, request->source.headers[i]);
    }
    digest_u64(&d, request->entries_len);
    for (size_t i = 0; i < request->entries_len; i++) {
        digest_text(&d, request->entries[i]);
    }
    digest_text(&d, arch);
    digest_u64(&d, (uint64_t)request->max_registers);
    digest_u64(&d, request->lineinfo);
    digest_u64(&d, (uint64_t)version->nvrtc_version);
    digest_text(&d, version->build);
    digest_end(&d, key);
}

/* Bytes of the UTF-8 sequence at `s`, or 0 when it is not one. */
static size_t utf8_len(const unsigned char *s, size_t left)
{
    size_t len = s[0] < 0x80   ? 1
                 : s[0] < 0xc2 ? 0
                 : s[0] < 0xe0 ? 2
                 : s[0] < 0xf0 ? 3
                 : s[0] < 0xf5 ? 4
                               : 0;

    if (len == 0 || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Surrogates, overlong forms, and the C1 controls that some terminals obey. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f) ||
        (s[0] == 0xc2 && s[1] < 0xa0)) {
        return 0;
    }
    return len;
}

void jit_answer_clean(const char *text, size_t len, char *out, size_t capacity)
{
    size_t at = 0, used = 0;

    while (at < len) {
        size_t bytes = utf8_len((const unsigned char *)text + at, len - at);
        unsigned char c = (unsigned char)text[at];
        bool shown =
            bytes > 1 || (bytes == 1 && (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f)));
        size_t wanted = shown ? bytes : 1;
        if (used + wanted >= capacity) {
            break;
        }
        if (shown) {
            memcpy(out + used, text + at, bytes);
        } else {
            out[used] = '?';
        }
        used += wanted;
        at += bytes > 0 ? bytes : 1;
    }
    out[used] = '\0';
}

/* The first line of the log that says what went wrong, cleaned; the whole log's start when none
 * does. */
static void first_cause(const char *log, size_t len, char *out, size_t capacity)
{
    static const char *const marks[] = {"error", "fatal", "Error"};
    const char *best = NULL, *end = log + len;

    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        const char *at = memmem(log, len, marks[i], strlen(marks[i]));
        best = at != NULL && (best == NULL || at < best) ? at : best;
    }
    best = best != NULL ? best : log;
    const char *from = best;
    while (from > log && from[-1] != '\n') {
        from--;
    }
    const char *to = memchr(best, '\n', (size_t)(end - best));
    jit_answer_clean(from, (size_t)((to != NULL ? to : end) - from), out, capacity);
}

static hone_status refuse(const jit_request *request, const jit_version *version, uint64_t result,
                          const char *text, const char *log, size_t log_len, bool *spent,
                          hone_error *error)
{
    char cause[300], arch[16];

    first_cause(log, log_len, cause, sizeof cause);
    device_arch_text(request->arch, arch);
    *spent = result == NVRTC_ERROR_OUT_OF_MEMORY || result == NVRTC_ERROR_INTERNAL_ERROR;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY) {
        return status_set(error, HONE_WORKER, request->name, 0,
                          "the compiler ran out of its memory");
    }
    if (result == NVRTC_ERROR_INVALID_OPTION) {
        return status_set(error, HONE_COMPILE, request->name, 0,
                          "NVRTC %d.%d does not know %s (%s); a newer CUDA toolkit is needed",
                          version->nvrtc_version / 1000, version->nvrtc_version % 1000 / 10, arch,
                          cause);
    }
    return status_set(error, HONE_COMPILE, request->name, 0, "%s: %s", text,
                      cause[0] != '\0' ? cause : "no log");
}

/* Lowered names and resources of every entry. */
static hone_status read_functions(const jit_request *request, wire_reader *r, const char *log,
                                  size_t log_len, kernel_entry *entry, hone_error *error)
{
    uint64_t count = wire_get_u64(r);
    char remark[REMARK_BYTES];

    if (count != request->entries_len || count > KERNEL_MAX_FUNCTIONS) {
        return status_set(error, HONE_WORKER, request->name, 0,
                          "the compile worker's answer is malformed");
    }
    for (size_t i = 0; i < count; i++) {
        const char *lowered = wire_get_text(r);
        kernel_function *f = &entry->functions[i];
        if (lowered[0] == '\0' || !jit_report_resources(log, log_len, lowered, f)) {
            return status_set(error, HONE_COMPILE, request->name, 0,
                              "ptxas' report lacks kernel %.200s", request->entries[i]);
        }
        f->remarks = jit_report_remarks(log, log_len, lowered, remark, sizeof remark);
        f->remark = f->remarks > 0 ? strdup(remark) : NULL;
        f->name = strdup(lowered);
        entry->functions_len = (uint32_t)i + 1;
        if (f->name == NULL || (f->remarks > 0 && f->remark == NULL)) {
            return status_set(error, HONE_NO_MEMORY, request->name, 0, "a kernel's name");
        }
    }
    return HONE_OK;
}

static void *copy_bytes(const void *bytes, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy != NULL) {
        memcpy(copy, bytes, len);
        copy[len] = '\0';
    }
    return copy;
}

static hone_status read_code(const jit_request *request, wire_reader *r, kernel_entry *entry,
                             hone_error *error)
{
    const void *cubin = wire_get_bytes(r, &entry->cubin_len);
    const void *ptx = wire_get_bytes(r, &entry->ptx_len);

    if (r->failed) {
        return status_set(error, HONE_WORKER, request->name, 0,
                          "the compile worker's answer is malformed");
    }
    /* compute_90a "succeeds" with no cubin at all (cases.md 28): empty code is a failure. */
    if (entry->cubin_len == 0 || entry->ptx_len == 0) {
        return status_set(error, HONE_COMPILE, request->name, 0, "NVRTC succeeded but gave no %s",
                          entry->cubin_len == 0 ? "cubin" : "PTX");
    }
    entry->cubin = copy_bytes(cubin, entry->cubin_len);
    entry->ptx = copy_bytes(ptx, entry->ptx_len);
    return entry->cubin != NULL && entry->ptx != NULL
               ? HONE_OK
               : status_set(error, HONE_NO_MEMORY, request->name, 0, "compiled code");
}

hone_status jit_answer_read(const jit_request *request, const jit_version *version,
                            const uint8_t *payload, size_t len, kernel_entry *out, bool *spent,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    kernel_entry entry = {.cubin = NULL};
    wire_reader r = {.bytes = payload, .len = len};
    size_t log_len = 0;
    uint64_t result = wire_get_u64(&r);
    const char *text = wire_get_text(&r);

    entry.compile_ms = (double)wire_get_u64(&r) * 1e-6;
    const char *log = wire_get_bytes(&r, &log_len);
    if (r.failed) {
        return status_set(error, HONE_WORKER, request->name, 0,
                          "the compile worker's answer is malformed");
    }
    if (result != NVRTC_SUCCESS) {
        return refuse(request, version, result, text, log, log_len, spent, error);
    }
    TRY(read_functions(request, &r, log, log_len, &entry, error));
    TRY(read_code(request, &r, &entry, error));
    entry.log = malloc(JIT_LOG_BYTES);
    if (entry.log == NULL) {
        status = status_set(error, HONE_NO_MEMORY, request->name, 0, "a compile's log");
        goto done;
    }
    jit_answer_clean(log, log_len, entry.log, JIT_LOG_BYTES);
    *out = entry;
    entry = (kernel_entry){.cubin = NULL};
done:
    kernel_entry_free(&entry);
    return status;
}
