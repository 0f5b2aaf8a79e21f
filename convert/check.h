/* check.h - is an FP8 or MXFP4 checkpoint what its kernels will take it for? Names, shapes, scales
 * and codes; nothing is written. */
#ifndef HONE_CONVERT_CHECK_H
#define HONE_CONVERT_CHECK_H

#include "convert/pairing.h"

/* name, what is wrong, what to do */
#define CHECK_MAP(X)                                                                               \
    X(missing, MISSING, "an e4m3 weight without a tensor of scales",                               \
      "name it with --pair; without scales its values are unknown")                                \
    X(orphan, ORPHAN, "scales whose weight is not there",                                          \
      "fetch the missing shard, or name the weight with --pair")                                   \
    X(dtype, DTYPE, "scales of a dtype that no such weight has",                                   \
      "scales are F32, BF16, F16, F8_E8M0, U8, or I32 words of four ue8m0 bytes")                  \
    X(shape, SHAPE, "scales whose shape fits no block of the weight",                              \
      "write them again: one a block, the blocks at the ends counted")                             \
    X(block, BLOCK, "scales of other blocks than config.json says",                                \
      "correct quantization_config.weight_block_size, or requantise to it")                        \
    X(pow2, POW2, "scales that are no powers of two, where ue8m0 is meant",                        \
      "requantise with --requantise: a scale rounded alone is another matrix")                     \
    X(zero, ZERO, "scales that are zero, or bytes of 0 over codes that are not",                   \
      "write them again: a block of zeros has a scale too")                                        \
    X(negative, NEGATIVE, "scales that are negative", "write them again")                          \
    X(nan, NAN_, "scales that are NaN", "write them again from the source")                        \
    X(infinite, INFINITE, "scales that are infinite", "write them again from the source")          \
    X(words, WORDS, "packed wrongly: I32 scales that are floats, or F32 that are packed bytes",    \
      "floats are F32; four ue8m0 bytes, the lowest group first, are I32")                         \
    X(padding, PADDING, "packed scales whose padding is neither 1 nor least",                      \
      "fill the bytes past the last group with 0x7f")                                              \
    X(codes, CODES, "e4m3 codes that are NaN", "write the weight again from the source")           \
    X(rounded, ROUNDED,                                                                            \
      "every block's largest code is 448 under powers of two: scales that were "                   \
      "rounded up without their payload",                                                          \
      "quantise again with the rounded scale")

typedef enum check_kind {
#define X(name, NAME, text, remedy) CHECK_##NAME,
    CHECK_MAP(X)
#undef X
        CHECK_KINDS
} check_kind;

const char *check_name(check_kind kind); /* "pow2"; static */
const char *check_text(check_kind kind);
const char *check_remedy(check_kind kind);

typedef struct check_finding {
    check_kind kind;
    const safetensors_tensor *tensor; /* borrowed from the checkpoint */
    uint64_t count, of;               /* elements or blocks; 0 of 0 where the tensor is meant */
    uint64_t row, col;                /* the first, in rows of the last dimension */
    char detail[200];                 /* shapes and the like; "" when there is nothing to add */
} check_finding;

typedef struct check_report {
    check_finding *findings; /* owned */
    size_t len;
    uint64_t weights, mxfp4; /* pairs that were looked at */
    uint64_t scales, not_pow2;
} check_report;

typedef struct check_options {
    pairing_rules names;
    const char *const *skip; /* patterns of names (fnmatch) */
    size_t skip_len;
    bool pow2;        /* ue8m0 is meant: float scales must be powers of two */
    int64_t block[2]; /* what config.json says; 0: nothing */
    unsigned threads;
    int (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; may be NULL */
    void *context;
} check_options;

/* What a config.json says of the quantised weights: scale_fmt ue8m0 and weight_block_size go to
 * *options, which keeps what it has where the file says nothing. No file is no error. */
hone_status check_config(const char *path, check_options *options, hone_error *error);

/* Check a checkpoint. Findings are no errors; HONE_IO and the like are. In the order of names.
 * Caller frees with check_free. */
hone_status check_run(const checkpoint *c, const check_options *options, check_report *out,
                      hone_error *error);
void check_free(check_report *report);

#endif
