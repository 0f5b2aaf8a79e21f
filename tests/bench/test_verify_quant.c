/* test_verify_quant.c - as test_verify.c, of what is compared byte for byte: quantisers, folds and
 * KV caches. */
#include "tests/bench/verify_run.h"

#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define ACT_F32   "act_quant:m=13,k=512,in=bf16,scale=f32,group=128,scale_layout=tma"
#define ACT_UE8M0 "act_quant:m=13,k=416,in=bf16,scale=ue8m0,group=32,scale_layout=packed"
#define FOLD      "fold:m=13,k=416"
#define FOLD_ROWS "fold:m=6,k=256,scale_layout=row,q_scale_layout=col"
#define ACT_GATED "act_quant:m=13,k=256,in=f16,group=64,scale=ue8m0,activation=silu_mul,count=1"
#define ACT_MASKED                                                                                 \
    "act_quant:m=9,k=256,experts=5,row_set=masked,activation=silu_mul_v4,count=1,scale=f32"
#define ACT_LISTED "act_quant:m=23,k=192,row_set=listed,group=32,scale=ue8m0,scale_layout=row"
#define ACT_GATHERED                                                                               \
    "act_quant:m=11,k=256,experts=3,row_set=gathered,tokens=7,topk=3,activation=silu_mul"
#define ACT_ENTRIES "act_quant:m=37,k=192,row_set=gathered,tokens=9,topk=2,group=64,count=1"
#define WEIGHT      "weight_quant:n=200,k=336,in=f32"
#define WEIGHT_32   "weight_quant:n=70,k=100,gran_n=32,gran_k=32,scale=ue8m0,scale_layout=col"
#define WEIGHT_TINY "weight_quant:n=70,k=100,in=f32,gran_n=32,gran_k=32,rule=pow2_tiny"
#define WEIGHT_ROW  "weight_quant:n=13,k=416,gran_n=1,gran_k=32,scale=ue8m0"
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
#define MXFP4             "mxfp4_fold:n=150,k=288"
#define MXFP4_BLOCKS      "mxfp4_fold:n=70,k=96,batch=2,block_rows=32,block_cols=32,scale=f32"
#define MXFP4_ROWS        "mxfp4_fold:n=5,k=160,block_rows=1"
#define SCALES_WORDS      "scale_pack:rows=37,groups=56"
#define SCALES_ODD        "scale_pack:rows=6,groups=7,batch=3"
#define SCALES_TMA        "scale_pack:rows=37,groups=9,scale=f32"
#define SCALES_COL        "scale_pack:rows=9,groups=12,batch=2,scale_layout=col"
#define SCALES_EXPERTS    "scale_pack:rows=20,groups=70,experts=9,gran_k=32"
#define KV_RECORD(record) "kv_quant:tokens=40,pages=3,page_size=32,record=" record
/* Fewer tokens than a corner needs: none is dropped. */
#define KV_IN_RANGE         "kv_quant:tokens=7,pages=3,record=nvfp4_352-interleaved-e4m3_up"
#define SLOTS               "by=slots,"
#define TABLE               "by=table,sequences=4,table_pages=1,"
#define RAW                 "to=raw,by=table,sequences=7,table_pages=2,"
#define GATHER(how, record) "kv_gather:tokens=40,pages=3,page_size=32," how "record=" record

static const verify_case cases[] = {
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
    {ACT_GATHERED, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {ACT_GATHERED, INPUTS_NORMAL, NAIVE_PAGE_OFF, "["},
    {ACT_GATHERED, INPUTS_NORMAL, NAIVE_EVERY_ROW, "is not in the set of rows"},
    {ACT_GATHERED, INPUTS_NORMAL, NAIVE_NO_COUNT, "dropped: 5 before, 5 after"},
    {ACT_ENTRIES, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {ACT_ENTRIES, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {ACT_ENTRIES, INPUTS_NORMAL, NAIVE_PAGE_OFF, "scale["},
    {WEIGHT, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {WEIGHT, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {WEIGHT, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {WEIGHT_32, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {WEIGHT_32, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {WEIGHT_ROW, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {WEIGHT_TINY, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {WEIGHT_TINY, INPUTS_TINY, NAIVE_RIGHT, NULL},
    {WEIGHT_TINY, INPUTS_TINY, NAIVE_FLOOR, "scale["},
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
    {SCALES_WORDS, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {SCALES_WORDS, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {SCALES_WORDS, INPUTS_ZEROS, NAIVE_RIGHT, NULL},
    {SCALES_ODD, INPUTS_EXTREMES, NAIVE_RIGHT, NULL},
    {SCALES_ODD, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {SCALES_TMA, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {SCALES_COL, INPUTS_WIDE, NAIVE_RIGHT, NULL},
    {SCALES_EXPERTS, INPUTS_NORMAL, NAIVE_RIGHT, NULL},
    {SCALES_EXPERTS, INPUTS_HOLES, NAIVE_RIGHT, NULL},
    {SCALES_EXPERTS, INPUTS_SPECIALS, NAIVE_RIGHT, NULL},
    {SCALES_WORDS, INPUTS_NORMAL, NAIVE_SWAPPED_SCALE, "out["},
    {SCALES_WORDS, INPUTS_SPECIALS, NAIVE_FLOOR, "out["},
    {SCALES_WORDS, INPUTS_SPECIALS, NAIVE_NO_COUNT, "wrong: got 5, expected "},
    {SCALES_WORDS, INPUTS_NORMAL, NAIVE_TAIL_ROW, "out[0,0,36]"},
    {SCALES_ODD, INPUTS_NORMAL, NAIVE_ROW_SCALE_SHIFT, "out["},
    {SCALES_TMA, INPUTS_NORMAL, NAIVE_HALF, "left untouched"},
    {SCALES_COL, INPUTS_NORMAL, NAIVE_TAIL_ROW, "out[0,0,8]"},
    {SCALES_EXPERTS, INPUTS_NORMAL, NAIVE_K_TAIL, "out["},
    {SCALES_EXPERTS, INPUTS_SPECIALS, NAIVE_NO_COUNT, "wrong: got "},
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

START_TEST(each_fault_is_refused_and_what_is_right_passes)
{
    verify_run_case(&cases[_i]);
}
END_TEST

/* cases.md, facts: raw fp32 scales may differ by one unit, powers of two may not. */
START_TEST(a_raw_scale_may_be_one_unit_off_and_no_more)
{
    for (int32_t units = 1; units <= 2; units++) {
        verify_run r;
        int32_t bits = 0;
        verify_run_open(&r, ACT_F32, INPUTS_NORMAL);
        naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
        memcpy(&bits, r.out.image[2], sizeof bits);
        bits += units;
        memcpy(r.out.image[2], &bits, sizeof bits);
        verify_run_judge(&r, 1, 1);
        ck_assert_int_eq(r.result.passed, units == 1);
        verify_run_close(&r);
    }
}
END_TEST

START_TEST(padding_scales_must_be_one)
{
    verify_run r;

    verify_run_open(&r, ACT_UE8M0, INPUTS_NORMAL);
    naive_run(&r.problem, &r.in, NAIVE_RIGHT, NULL, &r.out);
    r.out.image[2][13 * 4] = 0xff; /* row 13 of 16 */
    verify_run_judge(&r, 1, 1);
    ck_assert(!r.result.passed);
    ck_assert_ptr_nonnull(strstr(r.result.reason, "padding scale [13,0]"));
    verify_run_close(&r);
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
    verify_run right, r;

    verify_run_open(&right, ACT_UE8M0, INPUTS_NORMAL);
    naive_run(&right.problem, &right.in, NAIVE_RIGHT, NULL, &right.out);
    verify_run_open(&r, ACT_UE8M0, INPUTS_NORMAL);
    copy_act_rows(&right.out, &r.out, 0, act_samples[_i].scale_to, act_samples[_i].q_to, 127);
    copy_act_rows(&right.out, &r.out, 12, 16, 16, act_samples[_i].padding);
    verify_run_judge(&r, act_samples[_i].run, 4);
    if (act_samples[_i].has == NULL) {
        ck_assert_msg(r.result.passed, "%s: %s", act_samples[_i].name, r.result.reason);
    } else {
        ck_assert_msg(strstr(r.result.reason, act_samples[_i].has) != NULL, "%s: '%s'",
                      act_samples[_i].name, r.result.reason);
    }
    verify_run_close(&r);
    verify_run_close(&right);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify_quant");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, each_fault_is_refused_and_what_is_right_passes, 0, ARRAY_LEN(cases));
    tcase_add_test(tests, a_raw_scale_may_be_one_unit_off_and_no_more);
    tcase_add_test(tests, padding_scales_must_be_one);
    tcase_add_loop_test(tests, sampled_quantisers_must_have_written_whole_tiles_of_both_outputs, 0,
                        ARRAY_LEN(act_samples));
    return suite_run("bench/verify_quant", tests);
}
