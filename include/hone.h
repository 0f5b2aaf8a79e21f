/* hone.h - the whole public interface of libhone.so.
 *
 * hone tunes, proves, stores and serves GPU kernels for large-language-model inference.
 * This header, with the two that it includes, is the contract: shapes, dtypes, layouts, units,
 * ownership, threads and errors are stated here and nowhere else. Nothing in the library prints,
 * exits or keeps global state.
 *
 * Conventions
 *   - Functions that can fail return hone_status and take a `hone_error *` last (NULL allowed).
 *     On failure no output argument is written.
 *   - Structs that the caller fills begin with `size = sizeof(struct)`.
 *   - Enum values are frozen: they are stored in files. New ones are appended.
 *   - Handles are freed by the function that undoes the one that made them; it accepts NULL.
 *   - Sizes and offsets are 64-bit. Matrices are row-major unless a layout field says otherwise.
 */
#ifndef HONE_H
#define HONE_H

#include "hone_problem.h"
#include "hone_scales.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Runtime: what a serving engine links. -------------------------------------------------- */
typedef struct hone_runtime hone_runtime;

typedef enum hone_provenance {
    HONE_FROM_EXACT = 1,   /* a winner for this very problem */
    HONE_FROM_BUCKET = 2,  /* a winner for the size rounded up to the policy's list */
    HONE_FROM_NEAR = 3,    /* a larger tuned size, or another device kind of the same build */
    HONE_FROM_DEFAULT = 4, /* the analytical choice; nothing stored answers */
} hone_provenance;

/* How far a winner can be trusted: it still answers, whatever has changed since it was tuned. */
typedef enum hone_grade {
    HONE_GRADE_CURRENT =
        1, /* the template's text, NVRTC and driver are those that it was tuned with */
    HONE_GRADE_SUSPECT = 2, /* NVRTC or driver differ: its time may be off */
    HONE_GRADE_STALE = 3,   /* the template's text differs: tune again */
} hone_grade;

/* What hone_launch looks at before it launches (hone_options.checked). */
typedef enum hone_checked {
    HONE_CHECKED_OFF = 0,    /* sizes and addresses alone */
    HONE_CHECKED_VALUES = 1, /* values that an op cannot mean */
    HONE_CHECKED_POW2 = 2,   /* the same, and f32 scales that are no powers of two */
} hone_checked;

typedef struct hone_options {
    uint32_t size;          /* sizeof(hone_options) */
    int32_t strict;         /* 1: only HONE_FROM_EXACT answers */
    int32_t allow_modelled; /* 1: winners whose times were modelled may be served */
    int32_t compile_jobs;   /* workers of hone_prepare; 0: one for each core */
    const char *cache_path; /* kernel cache; NULL: $XDG_CACHE_HOME/hone/kernels.db, or
                                none where that cannot be written */
    int32_t checked;        /* hone_checked: for finding faults; slow, see hone_launch */
} hone_options;

/* An answer. Small and copyable; it stays valid until hone_close. */
typedef struct hone_choice {
    uint32_t size;            /* sizeof(hone_choice) */
    int32_t provenance;       /* hone_provenance */
    uint64_t winner;          /* id of the winner in the store; 0 for a default */
    double time_ns;           /* the winner's time; 0 when unknown */
    int32_t modelled;         /* 1 when time_ns was modelled, not measured */
    int32_t op;               /* hone_op */
    uint64_t workspace_bytes; /* device memory that hone_launch needs beside the operands */
    const void *kernel;       /* private */
    hone_problem problem;     /* what was asked for */
    int32_t grade; /* hone_grade of the winner, as hone_prepare found it; 0 for a default */
} hone_choice;

/* One operand in the op's order (hone_operands). Device memory, owned by the caller. */
typedef struct hone_arg {
    uint64_t address; /* CUdeviceptr */
    uint64_t bytes;   /* size of the allocation from `address` on */
    uint64_t record;  /* of a `cache`: hone_record_id of what it holds, which the problem's record
                         must be; 0: not checked */
} hone_arg;

typedef struct hone_progress {
    uint64_t done, total;
    const char *doing; /* one line, borrowed for the call */
} hone_progress;
/* Return non-zero to cancel. Called from the thread that called hone_prepare. */
typedef int (*hone_progress_fn)(void *context, const hone_progress *progress);

/* Open a store for serving on `device` ("auto", "cuda:0", "emu:h20"). The store's generation is
 * read into memory; no connection stays open. `options` may be NULL. Caller closes *out. */
HONE_API hone_status hone_open(const char *store, const char *device, const hone_options *options,
                               hone_runtime **out, hone_error *error);
HONE_API void hone_close(hone_runtime *runtime);

/* Load or compile all that lookups of these problems can answer. Slow; call before serving. */
HONE_API hone_status hone_prepare(hone_runtime *runtime, const hone_problem *problems, size_t count,
                                  hone_progress_fn progress, void *context, hone_error *error);

/* The hot path: no lock, no allocation, no system call, no compile. Thread-safe.
 * HONE_NOT_PREPARED when the answer is known but its kernel is not loaded. */
HONE_API hone_status hone_lookup(const hone_runtime *runtime, const hone_problem *problem,
                                 hone_choice *out, hone_error *error);

/* Launch on `stream` (a CUstream, NULL for the default one). `args` are the problem's operands in
 * the order of hone_operands, then, when workspace_bytes > 0, the workspace. Checks sizes and
 * alignment first; launches nothing on failure. Capture-safe. Zero-size problems succeed without a
 * launch. Thread-safe; a first launch at an address or of a size keeps what it made, within bounds.
 *
 * With hone_options.checked the stream is waited for, read operands are copied to the host piece by
 * piece, and HONE_BAD_ARGUMENT names the operand, the place and the value of the first that is
 * wrong; nothing is launched then. On a stream that is being captured it is HONE_UNSUPPORTED.
 *   fp8_gemm, fold  a code of e4m3 that is NaN; a ue8m0 scale that is 0xff; an f32 scale that is
 *                   NaN, infinite or negative; a scale of 0 over codes that are not all zero (over
 *                   zeros it is legal); with HONE_CHECKED_POW2 also one that is no power of two
 *   moe_gemm        the same of the rows that have an expert, and before them groups: labels past
 *                   the last expert, of two experts within row_align rows or behind padding there;
 *                   rows below 0 or past m; ends that fall; a k that is no whole scale groups
 *   moe_align       a choice that is no expert's number and not -1
 *   moe_combine     a place that is no row and not -1; a weight, of a row, that is not finite
 *   act_quant       rows of an expert below 0 or past m (masked), an entry past the last (gathered)
 *   kv_quant, index_prepare   a slot past the cache; a slot that two tokens share (negative ones
 *                   are padding)
 *   the other ops   nothing: NaN and infinities have their meaning there, or are counted */
HONE_API hone_status hone_launch(const hone_choice *choice, const hone_arg *args, size_t count,
                                 void *stream, hone_error *error);

#define HONE_FINGERPRINT_BYTES 32
/* A digest of all that a lookup can answer: ranks compare it. */
HONE_API hone_status hone_fingerprint(const hone_runtime *runtime,
                                      uint8_t out[HONE_FINGERPRINT_BYTES], hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
