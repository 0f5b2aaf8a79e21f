/* problem.c - the table of every op's fields, and what is read from it: names, defaults, access. */
#include "core/problem.h"

#include "core/numfmt.h"

#include <string.h>

static const char *const dtype_names[] = {
#define X(text, NAME, value, bits) [value] = #text,
    HONE_DTYPE_MAP(X)
#undef X
};
static const char *const order_names[] = {
    [HONE_ORDER_ANY] = "any",
    [HONE_ORDER_FIXED] = "fixed",
};
static const char *const batch_layout_names[] = {
    [HONE_BATCH_OUTER] = "outer",
    [HONE_BATCH_INNER] = "inner",
};
static const char *const scale_layout_names[] = {
    [HONE_SCALES_ROW] = "row",
    [HONE_SCALES_COL] = "col",
    [HONE_SCALES_TMA] = "tma",
    [HONE_SCALES_PACKED] = "packed",
};
static const char *const rule_names[] = {
    [HONE_RULE_POW2_AMAX] = "pow2_amax",   [HONE_RULE_RAW_AMAX] = "raw_amax",
    [HONE_RULE_POW2_SCALE] = "pow2_scale", [HONE_RULE_RAW_TINY] = "raw_tiny",
    [HONE_RULE_POW2_TINY] = "pow2_tiny",   [HONE_RULE_E4M3_NEAR] = "e4m3_near",
    [HONE_RULE_E4M3_UP] = "e4m3_up",       [HONE_RULE_TENSOR] = "tensor",
    [HONE_RULE_UNSCALED] = "unscaled",
};
static const char *const format_names[] = {
    [HONE_KV_INDEX_FP8_132] = "index_132", [HONE_KV_MLA_FP8_656] = "v32_656",
    [HONE_KV_MLA_FP8_528] = "v41_528",     [HONE_KV_MLA_FP8_584] = "v4_584",
    [HONE_KV_MLA_FP4_288] = "v41_288",     [HONE_KV_INDEX_FP4_68] = "index_68",
    [HONE_KV_MLA_NVFP4_352] = "nvfp4_352", [HONE_KV_MLA_FP8_576] = "fp8_576",
    [HONE_KV_MLA_BF16_1152] = "bf16_1152", [HONE_KV_MLA_BF16_1024] = "bf16_1024",
};
static const char *const activation_names[] = {
    [HONE_ACTIVATION_PLAIN] = "plain",
    [HONE_ACTIVATION_SILU_MUL] = "silu_mul",
    [HONE_ACTIVATION_SILU_MUL_V4] = "silu_mul_v4",
};
static const char *const row_set_names[] = {
    [HONE_ROWS_EVERY] = "every",
    [HONE_ROWS_MASKED] = "masked",
    [HONE_ROWS_LISTED] = "listed",
    [HONE_ROWS_GATHERED] = "gathered",
};
static const char *const group_layout_names[] = {
    [HONE_GROUPS_CONTIGUOUS] = "contiguous",
    [HONE_GROUPS_MASKED] = "masked",
    [HONE_GROUPS_PSUM] = "psum",
    [HONE_GROUPS_K] = "grouped_k",
};
_Static_assert(HONE_GROUPS_MASKED == (int)HONE_ROWS_MASKED,
               "one name means one number in formulas");
/* Of an output that need not be quantised. */
static const char *const out_layout_names[] = {
    "none",
    [HONE_SCALES_ROW] = "row",
    [HONE_SCALES_COL] = "col",
    [HONE_SCALES_TMA] = "tma",
    [HONE_SCALES_PACKED] = "packed",
};
static const char *const out_rule_names[] = {
    "none",
    [HONE_RULE_POW2_AMAX] = "pow2_amax",
    [HONE_RULE_RAW_AMAX] = "raw_amax",
    [HONE_RULE_POW2_SCALE] = "pow2_scale",
    [HONE_RULE_RAW_TINY] = "raw_tiny",
};
static const char *const index_names[] = {
    [HONE_INDEX_I32] = "i32",
    [HONE_INDEX_I64] = "i64",
};
static const char *const span_names[] = {
    [HONE_SPAN_WHOLE] = "whole",
    [HONE_SPAN_ENDS] = "ends",
    [HONE_SPAN_BOTH] = "both",
    [HONE_SPAN_COMPRESSED] = "compressed",
};
static const char *const pick_names[] = {
    [HONE_PICK_EVERY] = "every",
    [HONE_PICK_BLOCKED] = "blocked",
    [HONE_PICK_LISTED] = "listed",
};
_Static_assert(HONE_PICK_LISTED == (int)HONE_ROWS_LISTED && HONE_PICK_EVERY == (int)HONE_ROWS_EVERY,
               "one name means one number in formulas");
static const char *const sort_names[] = {
    [HONE_SORT_INDEX] = "by_index",
    [HONE_SORT_SCORE] = "by_score",
};
static const char *const rope_names[] = {
    [HONE_ROPE_NONE] = "off",
    [HONE_ROPE_FIRST] = "first",
    [HONE_ROPE_LAST] = "last",
};
static const char *const pairs_names[] = {
    [HONE_PAIRS_NEIGHBOURS] = "neighbours",
    [HONE_PAIRS_HALVES] = "halves",
};
static const char *const page_layout_names[] = {
    [HONE_PAGE_SPLIT] = "split",
    [HONE_PAGE_INTERLEAVED] = "interleaved",
    [HONE_PAGE_FLAT] = "flat",
};

static const char *const gather_to_names[] = {
    [HONE_GATHER_RAW] = "raw", [HONE_GATHER_BF16] = "bf16", /* the same number as the dtype's */
};
_Static_assert(HONE_GATHER_BF16 == (int)HONE_DTYPE_BF16, "one name means one number in formulas");
static const char *const gather_by_names[] = {
    [HONE_GATHER_SLOTS] = "slots",
    [HONE_GATHER_TABLE] = "table",
};

/* Sizes stay far below 2^63, so that a product of two of them is never near an overflow unnoticed:
 * products are checked all the same. */
#define MOST_SIZE (INT64_C(1) << 40)

#define AT(op, member) (uint32_t)(offsetof(hone_problem, as.op) + offsetof(hone_##op, member))
#define SIZE(op, name, member, low, need, rounds)                                                  \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, low, MOST_SIZE, 0, need, rounds, false, false \
    }
/* How many experts there are. */
#define FEW(op, name, member, low, high)                                                           \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, low, high, 0, true, false, false, false       \
    }
/* A size that a launch is given and that decides nothing else. */
#define FREE_SIZE(op, name, member, low, need)                                                     \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, low, MOST_SIZE, 0, need, false, true, false   \
    }
/* One that only some problems of an op have. */
#define QUIET_SIZE(op, name, member)                                                               \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, 0, MOST_SIZE, 0, false, false, true, true     \
    }
#define FREE_ONE(op, name, member)                                                                 \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, 1, MOST_SIZE, 1, false, false, true, false    \
    }
/* How many matrices there are; one unless said. */
#define COUNT(op, name, member)                                                                    \
    {                                                                                              \
        name, PROBLEM_SIZE, AT(op, member), NULL, 0, 0, MOST_SIZE, 1, false, false, false, false   \
    }
#define NUMBER(op, name, member, low, high, standard, need)                                        \
    {                                                                                              \
        name, PROBLEM_INT, AT(op, member), NULL, 0, low, high, standard, need, false, false, false \
    }
#define ENUM(op, name, member, list, standard, need)                                               \
    {                                                                                              \
        name, PROBLEM_ENUM, AT(op, member), list, ARRAY_LEN(list), 0, ARRAY_LEN(list) - 1,         \
            standard, need, false, false, false                                                    \
    }
/* What only some problems of an op have: 0, and not in the text, for the others. */
#define QUIET_NUMBER(op, name, member, high)                                                       \
    {                                                                                              \
        name, PROBLEM_INT, AT(op, member), NULL, 0, 0, high, 0, false, false, false, true          \
    }
#define QUIET_ENUM(op, name, member, list)                                                         \
    {                                                                                              \
        name, PROBLEM_ENUM, AT(op, member), list, ARRAY_LEN(list), 0, ARRAY_LEN(list) - 1, 0,      \
            false, false, false, true                                                              \
    }
/* Every operand's element and scale dtype and granularity. The bounds admit what no template serves
 * yet: identity must be able to name it. */
#define QUANT(op, side)                                                                            \
    ENUM(op, #side "_element", recipe.side.element, dtype_names, 0, true),                         \
        ENUM(op, #side "_scale", recipe.side.scale, dtype_names, 0, true),                         \
        NUMBER(op, #side "_gran_mn", recipe.side.gran_mn, 1, 65536, 0, true),                      \
        NUMBER(op, #side "_gran_k", recipe.side.gran_k, 1, 65536, 0, true)

/* clang-format off */
static const problem_field fp8_gemm_fields[] = {
    SIZE(fp8_gemm, "m", m, 0, true, true),
    SIZE(fp8_gemm, "n", n, 0, true, false),
    SIZE(fp8_gemm, "k", k, 0, true, false),
    COUNT(fp8_gemm, "batch", batch),
    QUANT(fp8_gemm, a),
    QUANT(fp8_gemm, b),
    ENUM(fp8_gemm, "out", out, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(fp8_gemm, "order", order, order_names, HONE_ORDER_ANY, false),
    NUMBER(fp8_gemm, "accumulate", accumulate, 0, 1, 0, false),
    ENUM(fp8_gemm, "a_scale_layout", a_scale_layout, scale_layout_names, 0, false),
    ENUM(fp8_gemm, "b_scale_layout", b_scale_layout, scale_layout_names, 0, false),
    ENUM(fp8_gemm, "batch_layout", batch_layout, batch_layout_names, HONE_BATCH_OUTER, false),
    NUMBER(fp8_gemm, "align", align, 1, 16, 0, false),
};

static const problem_field act_quant_fields[] = {
    SIZE(act_quant, "m", m, 0, true, true),
    SIZE(act_quant, "k", k, 0, true, false),
    COUNT(act_quant, "experts", experts),
    QUIET_SIZE(act_quant, "tokens", tokens),
    ENUM(act_quant, "in", in, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(act_quant, "out", out, dtype_names, HONE_DTYPE_E4M3, false),
    ENUM(act_quant, "scale", scale, dtype_names, HONE_DTYPE_F32, false),
    NUMBER(act_quant, "group", group, 1, 65536, 128, false),
    ENUM(act_quant, "scale_layout", scale_layout, scale_layout_names, 0, false),
    ENUM(act_quant, "rule", rule, rule_names, 0, false),
    ENUM(act_quant, "activation", activation, activation_names, HONE_ACTIVATION_PLAIN, false),
    ENUM(act_quant, "row_set", row_set, row_set_names, HONE_ROWS_EVERY, false),
    QUIET_NUMBER(act_quant, "topk", topk, 512),
    NUMBER(act_quant, "count", count, 0, 1, 0, false),
    NUMBER(act_quant, "align", align, 1, 16, 0, false),
};

static const problem_field weight_quant_fields[] = {
    SIZE(weight_quant, "n", n, 0, true, false),
    SIZE(weight_quant, "k", k, 0, true, false),
    ENUM(weight_quant, "in", in, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(weight_quant, "out", out, dtype_names, HONE_DTYPE_E4M3, false),
    ENUM(weight_quant, "scale", scale, dtype_names, HONE_DTYPE_F32, false),
    NUMBER(weight_quant, "gran_n", gran_n, 1, 65536, 128, false),
    NUMBER(weight_quant, "gran_k", gran_k, 1, 65536, 128, false),
    ENUM(weight_quant, "scale_layout", scale_layout, scale_layout_names, 0, false),
    ENUM(weight_quant, "rule", rule, rule_names, 0, false),
    NUMBER(weight_quant, "align", align, 1, 16, 0, false),
};

static const problem_field kv_quant_fields[] = {
    SIZE(kv_quant, "tokens", tokens, 0, true, true),
    FREE_SIZE(kv_quant, "pages", pages, 1, true),
    FREE_SIZE(kv_quant, "page_stride", page_stride, 0, false),
    NUMBER(kv_quant, "page_size", page_size, 32, 256, 64, false),
    ENUM(kv_quant, "in", in, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(kv_quant, "record_format", record.format, format_names, 0, true),
    ENUM(kv_quant, "record_layout", record.layout, page_layout_names, 0, true),
    ENUM(kv_quant, "record_rule", record.rule, rule_names, 0, true),
    NUMBER(kv_quant, "record_version", record.version, 1, 1, 1, false),
    NUMBER(kv_quant, "align", align, 1, 16, 0, false),
};

static const problem_field fold_fields[] = {
    SIZE(fold, "m", m, 0, true, true),
    SIZE(fold, "k", k, 0, true, false),
    ENUM(fold, "element", element, dtype_names, HONE_DTYPE_E4M3, false),
    ENUM(fold, "scale", scale, dtype_names, HONE_DTYPE_UE8M0, false),
    NUMBER(fold, "group", group, 1, 65536, 32, false),
    NUMBER(fold, "out_group", out_group, 1, 65536, 128, false),
    ENUM(fold, "scale_layout", scale_layout, scale_layout_names, 0, false),
    ENUM(fold, "q_scale_layout", q_scale_layout, scale_layout_names, 0, false),
    NUMBER(fold, "align", align, 1, 16, 0, false),
};

static const problem_field mxfp4_fold_fields[] = {
    SIZE(mxfp4_fold, "n", n, 0, true, false),
    SIZE(mxfp4_fold, "k", k, 0, true, false),
    COUNT(mxfp4_fold, "batch", batch),
    NUMBER(mxfp4_fold, "block_rows", block_rows, 1, 65536, 128, false),
    NUMBER(mxfp4_fold, "block_cols", block_cols, 1, 65536, 128, false),
    ENUM(mxfp4_fold, "scale", scale, dtype_names, HONE_DTYPE_UE8M0, false),
    NUMBER(mxfp4_fold, "align", align, 1, 16, 0, false),
};

static const problem_field scale_pack_fields[] = {
    SIZE(scale_pack, "rows", rows, 0, true, true),
    SIZE(scale_pack, "groups", groups, 0, true, false),
    COUNT(scale_pack, "batch", batch),
    NUMBER(scale_pack, "experts", experts, 0, 128, 0, false),
    NUMBER(scale_pack, "gran_k", gran_k, 1, 65536, 128, false),
    ENUM(scale_pack, "scale", scale, dtype_names, 0, false),
    ENUM(scale_pack, "scale_layout", scale_layout, scale_layout_names, 0, false),
    NUMBER(scale_pack, "align", align, 1, 16, 0, false),
};

static const problem_field kv_gather_fields[] = {
    SIZE(kv_gather, "tokens", tokens, 0, true, true),
    FREE_SIZE(kv_gather, "pages", pages, 1, true),
    FREE_SIZE(kv_gather, "page_stride", page_stride, 0, false),
    FREE_ONE(kv_gather, "sequences", sequences),
    FREE_ONE(kv_gather, "table_pages", table_pages),
    NUMBER(kv_gather, "page_size", page_size, 32, 256, 64, false),
    ENUM(kv_gather, "to", to, gather_to_names, HONE_GATHER_BF16, false),
    ENUM(kv_gather, "by", by, gather_by_names, HONE_GATHER_SLOTS, false),
    ENUM(kv_gather, "record_format", record.format, format_names, 0, true),
    ENUM(kv_gather, "record_layout", record.layout, page_layout_names, 0, true),
    ENUM(kv_gather, "record_rule", record.rule, rule_names, 0, true),
    NUMBER(kv_gather, "record_version", record.version, 1, 1, 1, false),
    NUMBER(kv_gather, "align", align, 1, 16, 0, false),
};

static const problem_field moe_gemm_fields[] = {
    FREE_SIZE(moe_gemm, "m", m, 0, false),
    SIZE(moe_gemm, "n", n, 0, true, false),
    SIZE(moe_gemm, "k", k, 0, true, false),
    SIZE(moe_gemm, "tokens", tokens, 0, true, true),
    FEW(moe_gemm, "experts", experts, 1, 512),
    QUANT(moe_gemm, a),
    QUANT(moe_gemm, b),
    NUMBER(moe_gemm, "topk", topk, 1, 512, 1, false),
    ENUM(moe_gemm, "group_layout", group_layout, group_layout_names, 0, true),
    NUMBER(moe_gemm, "row_align", row_align, 1, 65536, 128, false),
    ENUM(moe_gemm, "out", out, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(moe_gemm, "activation", activation, activation_names, HONE_ACTIVATION_PLAIN, false),
    QUIET_ENUM(moe_gemm, "out_scale", out_scale, dtype_names),
    QUIET_NUMBER(moe_gemm, "out_group", out_group, 65536),
    QUIET_ENUM(moe_gemm, "out_scale_layout", out_scale_layout, out_layout_names),
    QUIET_ENUM(moe_gemm, "out_rule", out_rule, out_rule_names),
    ENUM(moe_gemm, "order", order, order_names, HONE_ORDER_ANY, false),
    NUMBER(moe_gemm, "accumulate", accumulate, 0, 1, 0, false),
    NUMBER(moe_gemm, "fill", fill, 0, 1, 0, false),
    ENUM(moe_gemm, "a_scale_layout", a_scale_layout, scale_layout_names, 0, false),
    ENUM(moe_gemm, "b_scale_layout", b_scale_layout, scale_layout_names, 0, false),
    NUMBER(moe_gemm, "align", align, 1, 16, 0, false),
};

static const problem_field moe_align_fields[] = {
    SIZE(moe_align, "tokens", tokens, 0, true, true),
    FREE_SIZE(moe_align, "m", m, 0, false),
    NUMBER(moe_align, "experts", experts, 1, 512, 0, true),
    NUMBER(moe_align, "topk", topk, 1, 512, 0, true),
    ENUM(moe_align, "group_layout", group_layout, group_layout_names, 0, true),
    NUMBER(moe_align, "row_align", row_align, 1, 65536, 128, false),
    ENUM(moe_align, "ids", ids, index_names, HONE_INDEX_I32, false),
    NUMBER(moe_align, "align", align, 1, 16, 16, false),
};

static const problem_field moe_combine_fields[] = {
    SIZE(moe_combine, "tokens", tokens, 0, true, true),
    SIZE(moe_combine, "n", n, 0, true, false),
    FREE_SIZE(moe_combine, "m", m, 0, false),
    NUMBER(moe_combine, "topk", topk, 1, 512, 0, true),
    ENUM(moe_combine, "in", in, dtype_names, HONE_DTYPE_BF16, false),
    ENUM(moe_combine, "out", out, dtype_names, HONE_DTYPE_BF16, false),
    NUMBER(moe_combine, "accumulate", accumulate, 0, 1, 0, false),
    NUMBER(moe_combine, "align", align, 1, 16, 0, false),
};

static const problem_field topk_fields[] = {
    SIZE(topk, "rows", rows, 0, true, true),
    SIZE(topk, "width", width, 0, true, false),
    FREE_SIZE(topk, "stride", stride, 0, false),
    NUMBER(topk, "k", k, 1, 4096, 0, true),
    ENUM(topk, "in", in, dtype_names, HONE_DTYPE_F32, false),
    ENUM(topk, "span", span, span_names, HONE_SPAN_ENDS, false),
    ENUM(topk, "pick", pick, pick_names, HONE_PICK_EVERY, false),
    NUMBER(topk, "block", block, 1, 128, 1, false),
    NUMBER(topk, "pin", pin, 0, 1, 0, false),
    NUMBER(topk, "drop", drop, 0, 1, 0, false),
    ENUM(topk, "sort", sort, sort_names, HONE_SORT_INDEX, false),
    NUMBER(topk, "align", align, 1, 16, 0, false),
};

static const problem_field mqa_logits_fields[] = {
    SIZE(mqa_logits, "tokens", tokens, 0, true, true),
    FREE_SIZE(mqa_logits, "keys", keys, 0, true),
    FREE_SIZE(mqa_logits, "width", width, 0, false),
    FREE_SIZE(mqa_logits, "stride", stride, 0, false),
    NUMBER(mqa_logits, "heads", heads, 8, 64, 0, true),
    NUMBER(mqa_logits, "dims", dims, 32, 128, 128, false),
    ENUM(mqa_logits, "element", element, dtype_names, HONE_DTYPE_E4M3, false),
    ENUM(mqa_logits, "span", span, span_names, HONE_SPAN_BOTH, false),
    NUMBER(mqa_logits, "clean", clean, 0, 1, 0, false),
    ENUM(mqa_logits, "out", out, dtype_names, HONE_DTYPE_F32, false),
    NUMBER(mqa_logits, "align", align, 1, 16, 0, false),
};

static const problem_field mqa_logits_paged_fields[] = {
    SIZE(mqa_logits_paged, "batch", batch, 0, true, true),
    FREE_SIZE(mqa_logits_paged, "width", width, 0, true),
    FREE_SIZE(mqa_logits_paged, "stride", stride, 0, false),
    FREE_SIZE(mqa_logits_paged, "pages", pages, 1, true),
    FREE_SIZE(mqa_logits_paged, "page_stride", page_stride, 0, false),
    FREE_SIZE(mqa_logits_paged, "table_stride", table_stride, 0, false),
    NUMBER(mqa_logits_paged, "next_n", next_n, 1, 8, 1, false),
    NUMBER(mqa_logits_paged, "heads", heads, 8, 64, 0, true),
    NUMBER(mqa_logits_paged, "page_size", page_size, 32, 256, 64, false),
    ENUM(mqa_logits_paged, "record_format", record.format, format_names, 0, true),
    ENUM(mqa_logits_paged, "record_layout", record.layout, page_layout_names, 0, true),
    ENUM(mqa_logits_paged, "record_rule", record.rule, rule_names, 0, true),
    NUMBER(mqa_logits_paged, "record_version", record.version, 1, 1, 1, false),
    ENUM(mqa_logits_paged, "out", out, dtype_names, HONE_DTYPE_F32, false),
    NUMBER(mqa_logits_paged, "align", align, 1, 16, 0, false),
};

static const problem_field index_prepare_fields[] = {
    SIZE(index_prepare, "tokens", tokens, 0, true, true),
    FREE_SIZE(index_prepare, "pages", pages, 1, true),
    FREE_SIZE(index_prepare, "page_stride", page_stride, 0, false),
    NUMBER(index_prepare, "heads", heads, 8, 64, 0, true),
    NUMBER(index_prepare, "page_size", page_size, 32, 256, 64, false),
    ENUM(index_prepare, "rope", rope, rope_names, HONE_ROPE_FIRST, false),
    ENUM(index_prepare, "pairs", pairs, pairs_names, HONE_PAIRS_NEIGHBOURS, false),
    NUMBER(index_prepare, "hadamard", hadamard, 0, 1, 0, false),
    ENUM(index_prepare, "record_format", record.format, format_names, 0, true),
    ENUM(index_prepare, "record_layout", record.layout, page_layout_names, 0, true),
    ENUM(index_prepare, "record_rule", record.rule, rule_names, 0, true),
    NUMBER(index_prepare, "record_version", record.version, 1, 1, 1, false),
    NUMBER(index_prepare, "align", align, 1, 16, 0, false),
};

static const struct {
    const char *name;
    const problem_field *fields;
    size_t len;
} ops[] = {
#define X(text, NAME, value) [value] = {#text, text##_fields, ARRAY_LEN(text##_fields)},
    HONE_OP_MAP(X)
#undef X
};
/* clang-format on */

const problem_field *problem_fields(int32_t op, size_t *count)
{
    bool known = op > 0 && (size_t)op < ARRAY_LEN(ops) && ops[op].name != NULL;

    *count = known ? ops[op].len : 0;
    return known ? ops[op].fields : NULL;
}

const problem_field *problem_field_find(int32_t op, const char *name, size_t len)
{
    size_t count;
    const problem_field *fields = problem_fields(op, &count);

    for (size_t i = 0; i < count; i++) {
        if (strlen(fields[i].name) == len && memcmp(fields[i].name, name, len) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

int64_t problem_field_get(const hone_problem *problem, const problem_field *field)
{
    const char *at = (const char *)problem + field->offset;
    int64_t wide;
    int32_t narrow;

    if (field->kind == PROBLEM_SIZE) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

void problem_field_set(hone_problem *problem, const problem_field *field, int64_t value)
{
    char *at = (char *)problem + field->offset;
    int32_t narrow = (int32_t)value;

    if (field->kind == PROBLEM_SIZE) {
        memcpy(at, &value, sizeof value);
        return;
    }
    memcpy(at, &narrow, sizeof narrow);
}

const char *problem_op_name(int32_t op)
{
    return op > 0 && (size_t)op < ARRAY_LEN(ops) ? ops[op].name : NULL;
}

int32_t problem_op_parse(const char *name, size_t len)
{
    for (size_t i = 1; i < ARRAY_LEN(ops); i++) { /* numbers are frozen, and some are free */
        if (ops[i].name != NULL && strlen(ops[i].name) == len &&
            memcmp(ops[i].name, name, len) == 0) {
            return (int32_t)i;
        }
    }
    return 0;
}

void problem_init(hone_problem *problem, int32_t op)
{
    size_t count;
    const problem_field *fields = problem_fields(op, &count);

    memset(problem, 0, sizeof *problem);
    problem->size = sizeof *problem;
    problem->op = op;
    for (size_t i = 0; i < count; i++) {
        problem_field_set(problem, &fields[i], fields[i].standard);
    }
}
