/* jit.h - from a template and name expressions to a cubin and PTX, through NVRTC in worker
 * processes.
 *
 * NVRTC reads and writes files, hangs, and has aborted its caller (reliability.md 0), so it runs in
 * `hone-worker` alone: sandboxed, limited, killed at its deadline and replaced. Compiled code is
 * kept in the user's kernel cache under a digest of everything that it depends on
 * (cache/kernel_cache.h). One thread at a time per jit, which keeps a thread of its own for each
 * worker. */
#ifndef HONE_RUNTIME_JIT_H
#define HONE_RUNTIME_JIT_H

#include "templates/manifest.h"

#include <stdbool.h>

#define JIT_MAX_ENTRIES MANIFEST_MAX_LAUNCHES
#define JIT_LOG_BYTES   4096

typedef struct jit jit;

typedef struct jit_options {
    int workers; /* processes; 0: one for each core, where there is a GiB of memory for each */
    uint32_t deadline_ms;  /* wall time of one compile; 0: 60 s */
    uint32_t cpu_seconds;  /* processor time of one compile; 0: 60 s */
    uint64_t memory_bytes; /* address space of a worker; 0: 4 GiB */
    const char *worker; /* program; NULL: HONE_WORKER, beside this library or program, or libexec */
    const char *cache_path; /* kernel cache; NULL: $XDG_CACHE_HOME/hone/kernels.db, or none where
                               that cannot be written */
    bool no_cache;          /* neither read nor write it */
} jit_options;

/* `options` may be NULL. Workers start with the first compile. Caller closes *out. */
hone_status jit_open(const jit_options *options, jit **out, hone_error *error);
void jit_close(jit *j); /* NULL is fine; kills what still compiles */

/* One program: the template's source, its headers in memory, and the kernels asked for by name
 * expression. */
typedef struct jit_request {
    template_source source;               /* borrowed until the request is done */
    const char *name;                     /* of the template, for messages: "fp8_gemm/mma_sync" */
    const char *entries[JIT_MAX_ENTRIES]; /* NVRTC name expressions; borrowed */
    size_t entries_len;
    uint8_t digest[32];    /* templates_digest: part of the cache's key */
    int32_t arch;          /* 89, 90, ...: compiled for the real arch, sm_90a */
    int32_t max_registers; /* 0: no limit */
    bool lineinfo;
} jit_request;

/* A request for the launches of a plan (each entry once). Borrows from `t` and `p`. */
hone_status jit_request_plan(const templates *t, const manifest *m, const plan *p, int32_t arch,
                             jit_request *out, hone_error *error);

/* ptxas' report of one kernel. */
typedef struct jit_kernel {
    char *entry;   /* the name expression */
    char *lowered; /* the mangled name in the cubin and the PTX */
    int32_t registers, static_shared_bytes, stack_bytes;
    int32_t spill_bytes; /* stores + loads, of a thread */
    int32_t remarks;     /* ptxas' messages that wgmma is serialised, a fence or a wait was put in,
                            or setmaxnreg is ignored */
    char *remark;        /* the first of them, one clean line; NULL: none */
} jit_kernel;

typedef struct compiled {
    size_t kernels_len;
    jit_kernel kernels[JIT_MAX_ENTRIES];
    void *cubin;
    size_t cubin_len;
    char *ptx; /* NUL-terminated; ptx_len without the NUL */
    size_t ptx_len;
    char *log;             /* cleaned, at most JIT_LOG_BYTES */
    uint64_t compile_ns;   /* in NVRTC; the first compile's when it came from the cache */
    int32_t nvrtc_version; /* major * 1000 + minor * 10 */
    bool from_cache;
    uint8_t key[32]; /* the kernel cache's */
} compiled;
void compiled_free(compiled *c); /* NULL is fine */

/* Largest spill of the kernels, stores + loads, in bytes of a thread. */
int32_t compiled_spill_bytes(const compiled *c);

/* Whether ptxas says that the code is slower than it was meant to be, and why: a kernel spills,
 * keeps local memory, or has a remark. Such a candidate is not worth time while another is right.
 * `why` is "" for clean code, cut to `capacity` bytes; NULL with 0. */
bool compiled_flaw(const compiled *c, char *why, size_t capacity);

/* Hand a request in; never waits for a compile. `tag` comes back with the answer. HONE_LIMIT when
 * more than 4096 are under way. */
hone_status jit_submit(jit *j, const jit_request *request, uint64_t tag, hone_error *error);

/* How a request ended. HONE_COMPILE: NVRTC refused it (error.message has the log's first cause);
 * HONE_WORKER: the worker crashed, ran out of memory or past its deadline, and was replaced. */
typedef struct jit_done {
    uint64_t tag;
    hone_status status;
    hone_error error;
    bool timed_out;   /* HONE_WORKER by deadline or processor time */
    compiled *answer; /* NULL unless HONE_OK; the receiver's */
} jit_done;

/* The next answer, in the order in which they end. *got = false when `timeout_ms` passes first
 * (negative: no limit) or nothing is under way. */
hone_status jit_wait(jit *j, int timeout_ms, jit_done *out, bool *got, hone_error *error);
size_t jit_pending(const jit *j);

/* Submit and wait for that one; nothing else may be under way. Caller frees *out. */
hone_status jit_compile(jit *j, const jit_request *request, compiled **out, hone_error *error);

/* The NVRTC that the workers opened; a worker is started when none has run. */
typedef struct jit_version {
    int32_t nvrtc_version; /* major * 1000 + minor * 10 */
    char text[64];         /* "13.0+65be0db3": version and start of the build id, for the store */
    char library[256];     /* path */
    char build[96];        /* build id in hex; size and time of the file when it has none */
    bool sandboxed;        /* Landlock is on; false on kernels that lack it: say so once */
} jit_version;
hone_status jit_describe(jit *j, jit_version *out, hone_error *error);

#endif
