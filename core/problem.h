/* problem.h - one table of every op's fields: text form, key, checks and expressions all read it.
 */
#ifndef HONE_CORE_PROBLEM_H
#define HONE_CORE_PROBLEM_H

#include "core/status.h"

#include <stdbool.h>

typedef enum problem_kind {
    PROBLEM_SIZE, /* int64 */
    PROBLEM_INT,  /* int32 number */
    PROBLEM_ENUM, /* int32 with names */
} problem_kind;

/* One field of an op. The name is the text form's and the expressions' name: "m", "a_gran_k",
 * "out". */
typedef struct problem_field {
    const char *name;
    problem_kind kind;
    uint32_t offset;          /* from the start of hone_problem */
    const char *const *names; /* PROBLEM_ENUM: name by value, NULL where a value is not used */
    uint32_t names_len;
    int64_t least, most; /* inclusive bounds of the value */
    int64_t standard;    /* the default when the text leaves it out; required when `required` */
    bool required;
    bool bucket; /* a size that lookups may round up: m, tokens */
    bool free;   /* a launch argument that no choice depends on: a winner for another value serves,
                    its config   checked again; pages, page_stride */
    bool quiet;  /* not in the text when it is 0, which says that it does not apply */
} problem_field;

/* The fields of an op, in key order. NULL and *count = 0 for an unknown op. */
const problem_field *problem_fields(int32_t op, size_t *count);
const problem_field *problem_field_find(int32_t op, const char *name, size_t len);
int64_t problem_field_get(const hone_problem *problem, const problem_field *field);
void problem_field_set(hone_problem *problem, const problem_field *field, int64_t value);

const char *problem_op_name(int32_t op);                /* NULL when unknown */
int32_t problem_op_parse(const char *name, size_t len); /* 0 when unknown */

/* What a family has in common: the problem without the size that lookups may round up, which is
 * given apart, and without what is free. False for an op that has no such size. */
bool problem_family(const hone_problem *problem, hone_problem *key, int64_t *size);

/* A problem with every fixed default of its op set and the rest 0. Defaults that follow from other
 * fields stay 0 until problem_derive. An unknown op gives all zeros but `op`. */
void problem_init(hone_problem *problem, int32_t op);

/* Fill the fields that are 0 and whose default follows from others; call it after the others are
 * set. These are what serving uses (kernels.md 1.3, 5.1): a_scale_layout, b_scale_layout,
 * scale_layout   one scale a row: tma for f32, packed for ue8m0; blocks: row rule          raw_amax
 * for f32 scales, pow2_amax for ue8m0 page_stride   the record's page bytes align         the
 * largest power of two up to 16 that divides every row stride m of moe_gemm  the rows that its
 * tokens need at most. Does nothing to a field that is set. */
void problem_derive(hone_problem *problem);

/* "f32-1x128-128x128" or "f32-1x128-e2m1/ue8m0/1x32" from the fields and back. text holds 64
 * bytes. */
hone_status problem_recipe_parse(const char *text, size_t len, hone_recipe *out, hone_error *error);
void problem_recipe_format(const hone_recipe *recipe, char text[64]);

/* "v41_528-split-pow2_amax-v1" from the fields and back; "-v1" may be left out. text holds 64
 * bytes. */
hone_status problem_record_parse(const char *text, size_t len, hone_record *out, hone_error *error);
void problem_record_format(const hone_record *record, char text[64]);

/* Canonical key: version byte, op, then every field in order, little endian, fixed width. Returns
 * its length; 0 for an unknown op. */
#define PROBLEM_KEY_MAX     256
#define PROBLEM_KEY_VERSION 3 /* 3: act_quant has tokens, topk */
size_t problem_key(const hone_problem *problem, uint8_t key[PROBLEM_KEY_MAX]);
/* The problem of a key; HONE_BAD_PROBLEM when it is not one of ours or breaks its op's rules. */
hone_status problem_from_key(const uint8_t *key, size_t len, hone_problem *out, hone_error *error);
/* The same for a key that differs from a legal problem's in sizes alone, each within its bounds;
 * false for any other. Far cheaper, since rules between fields are not checked again: for keys that
 * were made of legal problems. */
bool problem_from_key_like(const uint8_t *key, size_t len, const hone_problem *like,
                           hone_problem *out);
typedef struct problem_hash {
    uint64_t low, high;
} problem_hash;
problem_hash problem_key_hash(const uint8_t *key, size_t len); /* XXH3-128 */

/* A record as bytes. A token's data are its codes, in order; its tail is what of its row comes
 * after what is scaled. */
typedef struct record_layout {
    int32_t input_dims;   /* bf16 elements of a token's row */
    int32_t quant_dims;   /* of them codes of `element`, from the first on */
    int32_t element;      /* hone_dtype: e4m3, e2m1, or bf16, which is copied */
    int32_t tile;         /* elements that share a scale; 0: the cache holds none */
    int32_t scale;        /* hone_dtype of the scales: f32, ue8m0, ue4m3; none */
    int32_t scale_bytes;  /* of one scale; 0: the cache holds none */
    int32_t scales_bytes; /* of a token's scales, with the zero bytes that pad them */
    int32_t data_bytes;   /* of a token */
    int32_t tail;         /* hone_dtype: bf16, copied; e4m3, without a scale; none */
    int32_t tail_bytes;
    int32_t token_bytes; /* all of a token */
    int32_t stride_unit; /* what page_stride is a multiple of */
    int64_t page_bytes;
    /* Within a page, token t: data at t * row_bytes, tail at tail_at + t * row_bytes, scales at
     * scales_at + t * scales_row. */
    int32_t row_bytes, tail_at, scales_row;
    int64_t scales_at;
    bool permuted; /* scale s is at 8 * (s % 4) + s / 4 of a token's scales */
} record_layout;
/* HONE_BAD_PROBLEM when format, layout, rule or page size do not go together. */
hone_status record_layout_of(const hone_record *record, int32_t page_size, record_layout *out,
                             hone_error *error);
/* Scales of one token. */
int32_t record_tiles(const record_layout *layout);
/* Byte offsets within a page: of token's data, of its scale for tile, and of its tail (-1 for
 * records without one). */
int64_t record_data_offset(const record_layout *layout, int64_t token);
int64_t record_scale_offset(const record_layout *layout, int64_t token, int32_t tile);
int64_t record_tail_offset(const record_layout *layout, int64_t token);

/* hone_operands of a problem whose fields are known to be legal one by one. HONE_OVERFLOW. */
hone_status problem_operands(const hone_problem *problem, hone_operand out[HONE_MAX_OPERANDS],
                             size_t *count, hone_error *error);

/* Elements that a scale matrix [rows, groups] occupies in `layout`, padding included, in bytes. */
hone_status problem_scale_bytes(int64_t rows, int64_t groups, hone_dtype scale,
                                hone_scale_layout layout, uint64_t *bytes, hone_error *error);
/* Byte offset of scale (row, group) in that layout. */
uint64_t problem_scale_offset(int64_t rows, int64_t groups, hone_dtype scale,
                              hone_scale_layout layout, int64_t row, int64_t group);

/* Multiply-adds times two (0 for ops that only move and convert), and the bytes that must move at
 * least once: for rooflines. Both 0 for a problem that breaks its op's rules. */
void problem_work(const hone_problem *problem, double *flop, double *bytes);
/* The same of a moe_gemm with `rows` that have an expert and `touched` experts that have rows;
 * groups of k are read whole. */
void problem_work_routed(const hone_problem *problem, int64_t rows, int64_t touched, double *flop,
                         double *bytes);

/* Whether the problem writes nothing, so that it succeeds without a launch: no rows, columns or
 * tokens. A GEMM with k = 0 is not empty: it writes zeros (cases.md 60). */
bool problem_is_empty(const hone_problem *problem);

#endif
