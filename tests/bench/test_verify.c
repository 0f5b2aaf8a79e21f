/* test_verify.c - verification passes what is right and refuses each seeded fault, by name. */
#include "tests/bench/naive.h"

#include "bench/verify.h"
#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GEMM_PLAIN "fp8_gemm:m=33,n=72,k=288,recipe=f32-1x128-128x128,out=bf16"
#define GEMM_UE8M0 "fp8_gemm:m=17,n=40,k=160,recipe=ue8m0-1x32-1x32,out=f32"
/* Few of D's elements outweigh the others, and their rounding to bf16 the gate. */
#define GEMM_UNEVEN                                                                                \
    "fp8_gemm:m=64,n=33,k=32,recipe=f32-1x32-1x32,accumulate=1,a_scale_layout=tma,"                \
    "b_scale_layout=col"
#define GEMM_BLOCKS "fp8_gemm:m=5,n=96,k=192,recipe=f32-1x32-32x32,out=f32,accumulate=1"
#define GEMM_FP4    "fp8_gemm:m=17,n=40,k=160,recipe=ue8m0-1x32-e2m1/1x32,out=f32"
#define ACT_F32     "act_quant:m=13,k=512,in=bf16,scale=f32,group=128,scale_layout=tma"
#define ACT_UE8M0   "act_quant:m=13,k=416,in=bf16,scale=ue8m0,group=32,scale_layout=packed"
#define FOLD        "fold:m=13,k=416"
#define FOLD_ROWS   "fold:m=6,k=256,scale_layout=row,q_scale_layout=col"
#define ACT_GATED   "act_quant:m=13,k=256,in=f16,group=64,scale=ue8m0,activation=silu_mul,count=1"
#define ACT_MASKED                                                                                 \
    "act_quant:m=9,k=256,experts=5,row_set=masked,activation=silu_mul_v4,count=1,scale=f32"
#define ACT_LISTED "act_quant:m=23,k=192,row_set=listed,group=32,scale=ue8m0,scale_layout=row"
#define WEIGHT     "weight_quant:n=200,k=336,in=f32"
#define WEIGHT_32  "weight_quant:n=70,k=100,gran_n=32,gran_k=32,scale=ue8m0,scale_layout=col"
#define WEIGHT_ROW "weight_quant:n=13,k=416,gran_n=1,gran_k=32,scale=ue8m0"
#define KV_INDEX                                                                                   \
    "kv_quant:tokens=40,pages=3,page_size=64,record_format=index_132,record_layout=split,record_"  \
    "rule=raw_amax"
#define KV_V32                                                                                     \
    "kv_quant:tokens=40,pages=3,page_size=64,record_format=v32_656,record_layout=interleaved,"     \
    "record_rule=pow2_scale"
#define KV_SPLIT                                                                                   \
    "kv_quant:tokens=70,pages=3,page_stride=40448,page_size=64,record_format=v41_528,record_"      \
    "layout=split,record_rule=pow2_amax"
#define KV_INTER                                                                                   \
    "kv_quant:tokens=70,pages=3,page_size=64,record_format=v41_528,record_layout=interleaved,"     \
    "record_rule=pow2_amax"

#define MXFP4        "mxfp4_fold:n=150,k=288"
#define MXFP4_BLOCKS "mxfp4_fold:n=70,k=96,batch=2,block_rows=32,block_cols=32,scale=f32"
#define MXFP4_ROWS   "mxfp4_fold:n=5,k=160,block_rows=1"
#define KV_RECORD(record) "kv_quant:tokens=40,pages=3,page_size=32,record=" record
/* Fewer tokens than a corner needs: none is dropped. */
#define KV_IN_RANGE "kv_quant:tokens=7,pages=3,record=nvfp4_352-interleaved-e4m3_up"

#define SLOTS               "by=slots,"
#define TABLE               "by=table,sequences=4,table_pages=1,"
#define RAW                 "to=raw,by=table,sequences=7,table_pages=2,"
#define GATHER(how, record) "kv_gather:tokens=40,pages=3,page_size=32," how "record=" record

/* `has` is a part of the reason; NULL where the output is right. */
static const struct {
    const char *problem;
    inputs_kind kind;
    naive_fault fault;
    const char *has;
} cases[] = {
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {GEMM_PLAIN, INPUTS_ZEROS, NAIVE_RIGHT, NULL},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_UE8M0, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_FP4, INPUTS_NORMAL, NAIVE_K_TAIL, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "off by"},
    {GEMM_UE8M0, INPUTS_NORMAL, NAIVE_K_TAIL, "off by"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_TAIL_ROW, "d[0,32,0] was left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_TAIL_COLUMN, "d[0,0,71] was left untouched"},
    {GEMM_PLAIN, INPUTS_NORMAL, NAIVE_NAN, "d[0,16,36] is not finite"},
    {GEMM_PLAIN, INPUTS_TINY, NAIVE_ZEROS, "off by"},
    {GEMM_PLAIN, INPUTS_ZEROS, NAIVE_TAIL_ROW, "left untouched"},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_STALE_SUM, "off by"},
    {GEMM_BLOCKS, INPUTS_NORMAL, NAIVE_HALF, "off by"},
    {GEMM_UNEVEN, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GEMM_UNEVEN, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GEMM_UNEVEN, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {ACT_F32, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {ACT_UE8M0, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_V32, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {ACT_UE8M0, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_UE8M0, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {ACT_UE8M0, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {ACT_UE8M0, INPUTS_NORMAL, NAIVE_FLOOR, "scale["},
    {ACT_UE8M0, INPUTS_NORMAL, NAIVE_NEAREST, "scale["},
    {ACT_UE8M0, INPUTS_NORMAL, NAIVE_OLD_PAYLOAD, "q["},
    {ACT_F32, INPUTS_NORMAL, NAIVE_HALF, "scale[0,2]"},
    {ACT_UE8M0, INPUTS_NORMAL, NAIVE_TAIL_ROW, "scale[12,0]"},
    {FOLD, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {FOLD, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {FOLD, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {FOLD, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {FOLD_ROWS, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {FOLD_ROWS, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {FOLD, INPUTS_WIDE, NAIVE_FLOOR, "q["},
    {FOLD, INPUTS_WIDE, NAIVE_NO_COUNT, "inexact: got 5, expected "},
    {FOLD, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "q_scale[0,0]"},
    {FOLD, INPUTS_NORMAL, NAIVE_HALF, "q_scale[0,2]"},
    {FOLD_ROWS, INPUTS_NORMAL, NAIVE_TAIL_ROW, "q_scale[5,0]"},
    {ACT_F32, INPUTS_SPECIALS, NAIVE_INFINITY_FITS, "q["},
    {ACT_GATED, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_GATED, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {ACT_GATED, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {ACT_GATED, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {ACT_GATED, INPUTS_ZEROS, NAIVE_RIGHT, NULL},
    {ACT_GATED, INPUTS_NORMAL, NAIVE_UP_GATES, "["},
    {ACT_GATED, INPUTS_NORMAL, NAIVE_FLOOR, "scale["},
    {ACT_GATED, INPUTS_NORMAL, NAIVE_OLD_PAYLOAD, "q["},
    {ACT_GATED, INPUTS_SPECIALS, NAIVE_INFINITY_FITS, "q["},
    {ACT_GATED, INPUTS_SPECIALS, NAIVE_NO_COUNT, "special: 5 before, 5 after"},
    {ACT_MASKED, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_MASKED, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {ACT_MASKED, INPUTS_WIDE, NAIVE_NO_CLAMP, "["},
    {ACT_MASKED, INPUTS_NORMAL, NAIVE_EVERY_ROW, "is not in the set of rows"},
    {ACT_LISTED, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_LISTED, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {ACT_LISTED, INPUTS_NORMAL, NAIVE_EVERY_ROW, "is not in the set of rows"},
    {WEIGHT, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {WEIGHT, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {WEIGHT, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {WEIGHT_32, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {WEIGHT_32, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {WEIGHT_ROW, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {WEIGHT, INPUTS_WIDE, NAIVE_TAIL_ROW, "scale["},
    {WEIGHT, INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {WEIGHT_32, INPUTS_NORMAL, NAIVE_FLOOR, "scale["},
    {WEIGHT_32, INPUTS_NORMAL, NAIVE_NEAREST, "scale["},
    {WEIGHT_32, INPUTS_NORMAL, NAIVE_OLD_PAYLOAD, "q["},
    {WEIGHT, INPUTS_SPECIALS, NAIVE_NO_COUNT, "special: 5 before, 5 after"},
    {MXFP4, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {MXFP4, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {MXFP4, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {MXFP4, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {MXFP4, INPUTS_ZEROS, NAIVE_RIGHT, NULL},
    {MXFP4_BLOCKS, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {MXFP4_BLOCKS, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {MXFP4_ROWS, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {MXFP4_ROWS, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {MXFP4, INPUTS_NORMAL, NAIVE_FLOOR, "q_scale[0,0,0]"},
    {MXFP4, INPUTS_WIDE, NAIVE_NEAREST, "q["},
    {MXFP4, INPUTS_NORMAL, NAIVE_ZEROS, "q["},
    {MXFP4_ROWS, INPUTS_SPECIALS, NAIVE_STALE_SUM, "q_scale["},
    {MXFP4, INPUTS_NORMAL, NAIVE_HALF, "q_scale[0,1,0]"},
    {MXFP4, INPUTS_NORMAL, NAIVE_TAIL_ROW, "q[0,149,0]"},
    {MXFP4_BLOCKS, INPUTS_NORMAL, NAIVE_TAIL_COLUMN, "q[0,0,95]"},
    {MXFP4_ROWS, INPUTS_WIDE, NAIVE_SWAPPED_SCALE, "q_scale["},
    {KV_INDEX, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_V32, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_V32, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {KV_SPLIT, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_SPLIT, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {KV_INTER, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {KV_INDEX, INPUTS_NORMAL, NAIVE_PAGE_OFF, "cache byte"},
    {KV_V32, INPUTS_NORMAL, NAIVE_PAGE_OFF, "cache byte"},
    {KV_SPLIT, INPUTS_NORMAL, NAIVE_PAGE_OFF, "cache byte"},
    {KV_INDEX, INPUTS_NORMAL, NAIVE_SLOT_MINUS, "cache byte"},
    {KV_INDEX, INPUTS_NORMAL, NAIVE_NO_COUNT, "dropped: got 5, expected 6"},
    {KV_V32, INPUTS_NORMAL, NAIVE_FLOOR, "cache byte"},
    {KV_SPLIT, INPUTS_NORMAL, NAIVE_OLD_PAYLOAD, "cache byte"},
    {KV_SPLIT, INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "cache byte"},
    {KV_INTER, INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {KV_V32, INPUTS_SPECIALS, NAIVE_NO_COUNT, "dropped: got 5, expected 6"},
    {KV_IN_RANGE, INPUTS_SPECIALS, NAIVE_NO_COUNT, "nonfinite: got 9, expected "},
    {KV_RECORD("index_132-split-raw_tiny"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {KV_RECORD("v4_584-split-pow2_amax"), INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {KV_RECORD("v4_584-split-pow2_scale"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("v4_584-split-pow2_amax"), INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "cache byte"},
    {KV_RECORD("v41_288-split-e4m3_near"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_RECORD("v41_288-split-e4m3_near"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {KV_RECORD("v41_288-interleaved-e4m3_near"), INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {KV_RECORD("v41_288-interleaved-e4m3_up"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("v41_288-split-e4m3_near"), INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "cache byte"},
    {KV_RECORD("nvfp4_352-interleaved-e4m3_up"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_RECORD("nvfp4_352-interleaved-e4m3_up"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("nvfp4_352-interleaved-e4m3_near"), INPUTS_TINY, NAIVE_RIGHT, NULL},
    {KV_RECORD("nvfp4_352-interleaved-e4m3_up"), INPUTS_NORMAL, NAIVE_PAGE_OFF, "cache byte"},
    {KV_RECORD("index_68-split-pow2_amax"), INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {KV_RECORD("index_68-split-pow2_tiny"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("index_68-split-pow2_tiny"), INPUTS_TINY, NAIVE_RIGHT, NULL},
    {KV_RECORD("fp8_576-flat-tensor"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {KV_RECORD("fp8_576-flat-tensor"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {KV_RECORD("fp8_576-flat-tensor"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("fp8_576-flat-tensor"), INPUTS_TINY, NAIVE_RIGHT, NULL},
    {KV_RECORD("bf16_1152-flat-unscaled"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {KV_RECORD("bf16_1024-flat-unscaled"), INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {GATHER(SLOTS, "index_132-split-raw_amax"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GATHER(SLOTS, "v32_656-interleaved-pow2_scale"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(TABLE, "v4_584-split-pow2_amax"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {GATHER(TABLE, "v41_528-split-pow2_amax"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {GATHER(SLOTS, "v41_528-interleaved-pow2_amax"), INPUTS_TINY, NAIVE_RIGHT, NULL},
    {GATHER(SLOTS, "v41_288-split-e4m3_near"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {GATHER(TABLE, "nvfp4_352-interleaved-e4m3_up"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(SLOTS, "index_68-split-pow2_tiny"), INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {GATHER(TABLE, "fp8_576-flat-tensor"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(TABLE, "bf16_1152-flat-unscaled"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(RAW, "index_132-split-raw_amax"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(RAW, "v32_656-interleaved-pow2_scale"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(RAW, "v4_584-split-pow2_amax"), INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {GATHER(RAW, "v41_528-interleaved-pow2_amax"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GATHER(RAW, "nvfp4_352-interleaved-e4m3_up"), INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {GATHER(SLOTS, "v41_528-split-pow2_amax"), INPUTS_NORMAL, NAIVE_OTHER_LAYOUT, "out row"},
    {GATHER(RAW, "v41_528-split-pow2_amax"), INPUTS_NORMAL, NAIVE_PAGE_OFF, "out row"},
    {GATHER(TABLE, "v41_528-split-pow2_amax"), INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {GATHER(SLOTS, "v41_528-split-pow2_amax"), INPUTS_NORMAL, NAIVE_NO_COUNT, "dropped: got 5"},
    {GATHER(SLOTS, "v41_528-split-pow2_amax"), INPUTS_NORMAL, NAIVE_SLOT_MINUS, "expected 0x00"},
};

/* Problem, inputs, outputs and verdict of one run. */
typedef struct run {
    hone_problem problem;
    inputs in, out;
    verify_result result;
} run;

static void run_open(run *r, const char *text, inputs_kind kind)
{
    hone_error error = {0};

    memset(r, 0, sizeof *r);
    ck_assert_msg(hone_problem_parse(text, &r->problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    ck_assert_msg(inputs_make(&r->problem, kind, 7, &r->in, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(inputs_copy_outputs(&r->in, &r->out, &error), HONE_OK);
}

static void run_verify(run *r, uint64_t ctas_run, uint64_t ctas_total)
{
    hone_error error = {0};
    const verify_request request = {.problem = &r->problem,
                                    .before = &r->in,
                                    .after = (const uint8_t *const *)r->out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = ctas_run,
                                    .ctas_total = ctas_total};

    ck_assert_msg(verify_outputs(&request, &r->result, &error) == HONE_OK, "%s", error.message);
}

static void run_close(run *r)
{
    inputs_free_outputs(&r->out);
    inputs_free(&r->in);
}

START_TEST(each_fault_is_refused_and_what_is_right_passes)
{
    run r;

    run_open(&r, cases[_i].problem, cases[_i].kind);
    naive_run(&r.problem, &r.in, cases[_i].fault, NULL, &r.out);
    run_verify(&r, 1, 1);
    if (cases[_i].has == NULL) {
        ck_assert_msg(r.result.passed, "%s: %s", cases[_i].problem, r.result.reason);
        ck_assert_double_le(r.result.max_err_ratio, 1.0);
        ck_assert_uint_gt(r.result.compared, 0);
    } else {
        ck_assert_msg(!r.result.passed, "%s: fault %d passed", cases[_i].problem, cases[_i].fault);
        ck_assert_msg(strstr(r.result.reason, cases[_i].has) != NULL, "reason '%s' lacks '%s'",
                      r.result.reason, cases[_i].has);
    }
    run_close(&r);
}
END_TEST

/* cases.md 1: 128 ones are 128; payload and scale that do not belong together give 392, 224 or 112.
 */
START_TEST(a_scale_rounded_without_its_payload_is_refused)
{
    static const float wrong[] = {392.0f, 224.0f, 112.0f};
    run r;

    run_open(&r, "fp8_gemm:m=1,n=1,k=128,recipe=f32-1x128-128x128,out=f32", INPUTS_ONES);
    numfmt_encode(HONE_DTYPE_F32, r.out.image[4], 0, 128.0f);
    run_verify(&r, 1, 1);
    ck_assert_msg(r.result.passed, "%s", r.result.reason);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        numfmt_encode(HONE_DTYPE_F32, r.out.image[4], 0, wrong[i]);
        run_verify(&r, 1, 1);
        ck_assert(!r.result.passed);
    }
    run_close(&r);
}
END_TEST

/* cases.md 17: two kernels write one half each; neither passes, though together they fill the
 * output. */
START_TEST(a_half_written_output_is_refused_whichever_half)
{
    static const naive_tile halves[] = {{0, 33, 0, 36}, {0, 33, 36, 72}};

    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        run r;
        run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &halves[i], &r.out);
        run_verify(&r, 1, 1);
        ck_assert(!r.result.passed);
        run_close(&r);
    }
}
END_TEST

/* 33 x 72 in tiles of 16 x 16: a grid of 3 x 5, the last row and column of tiles cut short. */
static const struct {
    const char *name;
    naive_tile tile[4];
    uint64_t run;
    bool passes;
} samples[] = {
    {"corners and tails",
     {{0, 16, 0, 16}, {0, 16, 64, 80}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     true},
    {"neighbours that join",
     {{0, 16, 0, 16}, {0, 16, 16, 32}, {16, 32, 0, 16}, {32, 48, 64, 80}},
     4,
     true},
    {"one CTA wrote nothing", {{0, 16, 0, 16}, {0, 16, 64, 80}, {32, 48, 0, 16}}, 4, false},
    {"a tile lacks its last row",
     {{0, 16, 0, 16}, {0, 15, 64, 80}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
    {"a tail lacks its last column",
     {{0, 16, 0, 16}, {0, 16, 64, 71}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
    {"a tile is written twice, another not",
     {{0, 16, 0, 16}, {0, 16, 0, 16}, {32, 48, 0, 16}, {32, 48, 64, 80}},
     4,
     false},
};

START_TEST(sampled_ctas_must_have_written_whole_tiles)
{
    run r;

    run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (size_t i = 0; i < 4; i++) {
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &samples[_i].tile[i], &r.out);
    }
    run_verify(&r, samples[_i].run, 15);
    ck_assert_msg(r.result.passed == samples[_i].passes, "%s: %s", samples[_i].name,
                  r.result.reason);
    run_close(&r);
}
END_TEST

/* The same 15 tiles of 16 x 16 by 8 groups of two CTAs, which make two tiles each, the last group
 * one: how many tiles of a row-major grid are there after six groups ran, which make `wanted`. */
static const struct {
    const char *name;
    uint64_t wanted;
    int64_t tiles, columns; /* columns: of the cover's tile */
    bool passes;
} covered[] = {
    {"the short group was not among them", 12, 12, 16, true},
    {"the short group was among them", 11, 11, 16, true},
    {"one group dropped its last tile", 12, 11, 16, false},
    {"the short group made two", 11, 12, 16, false},
    {"each group dropped its second tile", 12, 6, 16, false},
    {"two tiles are missing", 12, 10, 16, false},
    {"a tile too many", 12, 13, 16, false},
    {"tiles of another size", 12, 12, 48, false},
};

START_TEST(groups_must_have_made_their_share_of_whole_tiles)
{
    hone_error error = {0};
    run r;

    run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (int64_t t = 0; t < covered[_i].tiles; t++) {
        const int64_t row = t / 5 * 16, column = t % 5 * 16;
        const naive_tile tile = {row, row + 16, column, column + 16};
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &tile, &r.out);
    }
    const verify_request request = {.problem = &r.problem,
                                    .before = &r.in,
                                    .after = (const uint8_t *const *)r.out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = 12,
                                    .ctas_total = 16,
                                    .cover = {16, covered[_i].columns, 2},
                                    .tiles_run = covered[_i].wanted};
    ck_assert_int_eq(verify_outputs(&request, &r.result, &error), HONE_OK);
    ck_assert_msg(r.result.passed == covered[_i].passes, "%s: %s", covered[_i].name,
                  r.result.reason);
    run_close(&r);
}
END_TEST

START_TEST(one_wrong_element_among_sampled_tiles_is_found)
{
    run r;

    run_open(&r, GEMM_PLAIN, INPUTS_NORMAL);
    for (size_t i = 0; i < 4; i++) {
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, &samples[0].tile[i], &r.out);
    }
    numfmt_encode(HONE_DTYPE_BF16, r.out.image[4], 32 * 72 + 70,
                  2.0f * numfmt_decode(HONE_DTYPE_BF16, r.out.image[4], 32 * 72 + 70));
    run_verify(&r, 4, 15);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "d[0,32,70]"));
    run_close(&r);
}
END_TEST

/* cases.md, facts: raw fp32 scales may differ by one unit, powers of two may not. */
START_TEST(a_raw_scale_may_be_one_unit_off_and_no_more)
{
    for (int32_t units = 1; units <= 2; units++) {
        run r;
        int32_t bits = 0;
        run_open(&r, ACT_F32, INPUTS_NORMAL);
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
        memcpy(&bits, r.out.image[2], sizeof bits);
        bits += units;
        memcpy(r.out.image[2], &bits, sizeof bits);
        run_verify(&r, 1, 1);
        ck_assert_int_eq(r.result.passed, units == 1);
        run_close(&r);
    }
}
END_TEST

START_TEST(padding_scales_must_be_one)
{
    run r;

    run_open(&r, ACT_UE8M0, INPUTS_NORMAL);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
    r.out.image[2][13 * 4] = 0xff; /* row 13 of 16 */
    run_verify(&r, 1, 1);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "padding scale [13,0]"));
    run_close(&r);
}
END_TEST

/* A byte beyond an output by one is found (cases.md 17). */
START_TEST(a_red_zone_tells_where_it_was_hit)
{
    uint8_t zone[VERIFY_RED_ZONE_BYTES];

    memset(zone, VERIFY_RED_ZONE_BYTE, sizeof zone);
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), sizeof zone);
    zone[0] = 0;
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), 0);
    zone[0] = VERIFY_RED_ZONE_BYTE;
    zone[sizeof zone - 1] ^= 1;
    ck_assert_uint_eq(verify_red_zone(zone, sizeof zone), sizeof zone - 1);
}
END_TEST

/* One token against an all-zero row: a kernel that never multiplies would pass. */
START_TEST(inputs_that_leave_nothing_to_compare_are_no_proof)
{
    static const char *const texts[] = {GEMM_PLAIN, GEMM_BLOCKS};
    hone_error error = {0};
    run r;

    run_open(&r, texts[_i], INPUTS_ZEROS);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
    verify_request request = {.problem = &r.problem,
                              .before = &r.in,
                              .after = (const uint8_t *const *)r.out.image,
                              .tolerance = 36.0,
                              .ctas_run = 1,
                              .ctas_total = 1,
                              .must_tell = true};
    ck_assert_int_eq(verify_outputs(&request, &r.result, &error), HONE_OK);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "nothing to compare"));
    run_close(&r);
}
END_TEST

START_TEST(the_worst_figures_are_kept)
{
    verify_result worst = {.passed = true,
                           .cosine = 0.9,
                           .rel_fro = 0.5,
                           .calc_diff = 1e-7,
                           .max_err = 2.0,
                           .max_err_ratio = 0.25};
    const verify_result other = {.passed = true,
                                 .cosine = 1.0,
                                 .rel_fro = 0.75,
                                 .calc_diff = 1e-8,
                                 .max_err = 3.0,
                                 .max_err_ratio = 0.5};

    verify_keep_worst(&worst, &other);
    ck_assert_double_eq(worst.cosine, 0.9);
    ck_assert_double_eq(worst.rel_fro, 0.75);
    ck_assert_double_eq(worst.calc_diff, 1e-7);
    ck_assert_double_eq(worst.max_err, 3.0);
    ck_assert_double_eq(worst.max_err_ratio, 0.5);
}
END_TEST

/* Rows 0..3 of 16, the last 4 of which are padding from 13 on: tiles of 4 rows and all 13 groups.
 */
static const struct {
    const char *name;
    int64_t scale_to, q_to; /* rows written: of the first tile, and 12..16 always */
    uint64_t run;
    uint8_t padding;
    const char *has;
} act_samples[] = {
    {"whole tiles", 4, 4, 2, 127, NULL},
    {"a third CTA wrote nothing", 4, 4, 3, 127, "not as many tiles"},
    {"a row of a tile is untouched", 3, 3, 2, 127, "not as many tiles"},
    {"q of a row is untouched", 4, 3, 2, 127, "its q left untouched"},
    {"q of a row too many", 4, 5, 2, 127, "its scale left untouched"},
    {"padding is NaN", 4, 4, 2, 0x80, "padding scale [13,0]"},
    {"padding is untouched", 4, 4, 2, 0xff, "not as many tiles"},
};

/* Copy rows of the right outputs; the scales' padding is the sample's. */
static void copy_act_rows(const inputs *right, inputs *out, int64_t first, int64_t scale_to,
                          int64_t q_to, uint8_t padding)
{
    const int64_t k = 416, groups = 16;

    for (int64_t row = first; row < q_to && row < 13; row++) {
        memcpy(out->image[1] + row * k, right->image[1] + row * k, (size_t)k);
    }
    for (int64_t row = first; row < scale_to; row++) {
        for (int64_t g = 0; g < groups; g++) {
            uint64_t at =
                problem_scale_offset(16, groups, HONE_DTYPE_UE8M0, HONE_SCALES_PACKED, row, g);
            out->image[2][at] = row < 13 ? right->image[2][at] : padding;
        }
    }
}

START_TEST(sampled_quantisers_must_have_written_whole_tiles_of_both_outputs)
{
    run right, r;

    run_open(&right, ACT_UE8M0, INPUTS_NORMAL);
    naive_run(&right.problem, &right.in, NAIVE_RIGHT, NULL, &right.out);
    run_open(&r, ACT_UE8M0, INPUTS_NORMAL);
    copy_act_rows(&right.out, &r.out, 0, act_samples[_i].scale_to, act_samples[_i].q_to, 127);
    copy_act_rows(&right.out, &r.out, 12, 16, 16, act_samples[_i].padding);
    run_verify(&r, act_samples[_i].run, 4);
    if (act_samples[_i].has == NULL) {
        ck_assert_msg(r.result.passed, "%s: %s", act_samples[_i].name, r.result.reason);
    } else {
        ck_assert_msg(strstr(r.result.reason, act_samples[_i].has) != NULL, "%s: '%s'",
                      act_samples[_i].name, r.result.reason);
    }
    run_close(&r);
    run_close(&right);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, each_fault_is_refused_and_what_is_right_passes, 0, ARRAY_LEN(cases));
    tcase_add_test(tests, a_scale_rounded_without_its_payload_is_refused);
    tcase_add_test(tests, a_half_written_output_is_refused_whichever_half);
    tcase_add_loop_test(tests, sampled_ctas_must_have_written_whole_tiles, 0, ARRAY_LEN(samples));
    tcase_add_loop_test(tests, groups_must_have_made_their_share_of_whole_tiles, 0,
                        ARRAY_LEN(covered));
    tcase_add_test(tests, one_wrong_element_among_sampled_tiles_is_found);
    tcase_add_test(tests, a_raw_scale_may_be_one_unit_off_and_no_more);
    tcase_add_test(tests, padding_scales_must_be_one);
    tcase_add_loop_test(tests, inputs_that_leave_nothing_to_compare_are_no_proof, 0, 2);
    tcase_add_test(tests, the_worst_figures_are_kept);
    tcase_add_loop_test(tests, sampled_quantisers_must_have_written_whole_tiles_of_both_outputs, 0,
                        ARRAY_LEN(act_samples));
    tcase_add_test(tests, a_red_zone_tells_where_it_was_hit);
    return suite_run("bench/verify", tests);
}
