/* jit_answer.h - inside the JIT: a worker's answer becomes a cache entry, or the error that
 * explains it. */
#ifndef HONE_RUNTIME_JIT_ANSWER_H
#define HONE_RUNTIME_JIT_ANSWER_H

#include "cache/kernel_cache.h"
#include "runtime/jit.h"

/* What a request weighs in the kernel cache's key, and its message to a worker. */
void jit_answer_key(const jit_request *request, const jit_version *version,
                    uint8_t key[DIGEST_BYTES]);

/* Read a worker's hello: HONE_ENVIRONMENT when NVRTC is missing, HONE_WORKER when it is malformed.
 */
hone_status jit_answer_hello(const uint8_t *payload, size_t len, jit_version *out,
                             hone_error *error);

/* Read an answer's payload into *out (the caller frees it). HONE_COMPILE with the log's first cause
 * when NVRTC refused, gave no code, or ptxas' report lacks a kernel; HONE_WORKER with *spent when
 * the compiler ran out of memory or broke inside, so that its process should not be used again. */
hone_status jit_answer_read(const jit_request *request, const jit_version *version,
                            const uint8_t *payload, size_t len, kernel_entry *out, bool *spent,
                            hone_error *error);

/* A cache entry becomes an answer: its blocks move over. HONE_STORE_DAMAGED when it is not what was
 * asked for. */
hone_status jit_answer_adopt(const jit_request *request, kernel_entry *entry, compiled **out,
                             hone_error *error);

/* Make text safe for terminals and reports: valid UTF-8 without control characters, cut to
 * `capacity`. */
void jit_answer_clean(const char *text, size_t len, char *out, size_t capacity);

#endif
