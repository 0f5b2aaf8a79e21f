/* test_repad.c - cases.md 16 and 71: what nobody asks for may hold anything, and the results are
 * the same to the bit; what reads it is seen. */
#include "bench/inputs.h"

#include "tests/bench/naive.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define WRITE(record)     "kv_quant:tokens=40,pages=3,page_size=32,record=" record
#define READ(how, record) "kv_gather:tokens=40,pages=3,page_size=32," how ",record=" record
#define SLOTS(to)         "to=" to ",by=slots"
#define TABLE(to)         "to=" to ",by=table,sequences=3,table_pages=4"
#define INDEX             "index_132-split-pow2_amax"
#define INDEX_FP4         "index_68-split-pow2_amax"

/* `reads`: a fault of naive.h's that makes results of what is padding. */
static const struct {
    const char *problem;
    naive_fault reads;
} cases[] = {
    {WRITE(INDEX), NAIVE_SLOT_MINUS},
    {WRITE("v32_656-interleaved-pow2_scale"), NAIVE_SLOT_MINUS},
    {WRITE("v4_584-split-pow2_amax"), NAIVE_SLOT_MINUS},
    {WRITE("v41_528-interleaved-pow2_scale"), NAIVE_SLOT_MINUS},
    {WRITE("v41_288-split-e4m3_near"), NAIVE_SLOT_MINUS},
    {WRITE("nvfp4_352-interleaved-e4m3_up"), NAIVE_SLOT_MINUS},
    {WRITE("fp8_576-flat-tensor"), NAIVE_SLOT_MINUS},
    {WRITE("bf16_1152-flat-unscaled"), NAIVE_SLOT_MINUS},
    {READ(SLOTS("raw"), INDEX), NAIVE_PAGE_OFF},
    {READ(SLOTS("bf16"), "v32_656-interleaved-pow2_scale"), NAIVE_PAGE_OFF},
    {READ(SLOTS("bf16"), "v4_584-split-pow2_amax"), NAIVE_PAGE_OFF},
    {READ(SLOTS("bf16"), "nvfp4_352-interleaved-e4m3_up"), NAIVE_PAGE_OFF},
    {READ(SLOTS("bf16"), "fp8_576-flat-tensor"), NAIVE_PAGE_OFF},
    {READ(TABLE("raw"), INDEX_FP4), NAIVE_PAGE_OFF},
    {READ(TABLE("bf16"), "v41_528-split-pow2_amax"), NAIVE_PAGE_OFF},
    {READ(TABLE("bf16"), "v41_288-interleaved-e4m3_up"), NAIVE_PAGE_OFF},
    {"act_quant:m=9,k=256,experts=5,row_set=masked,count=1", NAIVE_EVERY_ROW},
    {"act_quant:m=23,k=192,row_set=listed,group=32,scale=ue8m0", NAIVE_EVERY_ROW},
    {"act_quant:m=11,k=256,experts=2,row_set=gathered,tokens=90,topk=3,count=1", NAIVE_PAGE_OFF},
};

static hone_error e;

/* A problem's inputs, the same with other padding, and what an op makes of each. */
typedef struct both {
    hone_problem problem;
    inputs in[2], out[2];
} both;

static void open_both(both *b, const char *text, inputs_kind kind)
{
    *b = (both){0};
    ck_assert_msg(hone_problem_parse(text, &b->problem, &e) == HONE_OK, "%s", e.message);
    ck_assert_int_eq(inputs_make(&b->problem, kind, 12, &b->in[0], &e), HONE_OK);
    ck_assert_int_eq(inputs_repad(&b->problem, &b->in[0], &b->in[1], &e), HONE_OK);
    ck_assert_uint_eq(b->in[1].len, b->in[0].len);
}

/* Whether the op with that fault makes the same of both. */
static bool makes_the_same(both *b, naive_fault fault)
{
    static const naive_tile every = {0};
    bool same = true;

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(inputs_copy_outputs(&b->in[0], &b->out[i], &e), HONE_OK);
        naive_run(&b->problem, &b->in[i], fault, &every, &b->out[i]);
    }
    for (size_t i = 0; i < b->in[0].len; i++) {
        same = same && memcmp(b->out[0].image[i], b->out[1].image[i],
                              b->in[0].operand[i].access == 1 ? 0 : b->in[0].operand[i].bytes) == 0;
    }
    inputs_free_outputs(&b->out[0]);
    inputs_free_outputs(&b->out[1]);
    return same;
}

static void close_both(both *b)
{
    inputs_free_padded(&b->in[1]);
    inputs_free(&b->in[0]);
}

START_TEST(padding_is_other_and_shows_only_in_what_reads_it)
{
    static const inputs_kind kinds[] = {INPUTS_NORMAL, INPUTS_WIDE};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        both b;
        open_both(&b, cases[_i].problem, kinds[i]);
        ck_assert(memcmp(b.in[0].image[0], b.in[1].image[0], b.in[0].operand[0].bytes) != 0);
        ck_assert_msg(makes_the_same(&b, NAIVE_RIGHT), "%s: padding reaches a result",
                      cases[_i].problem);
        ck_assert_msg(!makes_the_same(&b, cases[_i].reads), "%s: a reader of padding is not seen",
                      cases[_i].problem);
        close_both(&b);
    }
}
END_TEST

/* Pages that end behind their tokens, of which some are asked for; scales apart from data, beside
 * it, and behind a tail. */
#define SOME(record, stride)                                                                       \
    "kv_gather:tokens=40,pages=3,page_size=32,by=slots,to=bf16,page_stride=" stride                \
    ",record=" record
static const char *const pages[] = {
    SOME("v4_584-split-pow2_amax", "19008"),
    SOME("v41_528-interleaved-pow2_amax", "17424"),
    SOME("nvfp4_352-interleaved-e4m3_near", "12288"),
};

/* Every byte of a slot that no row has is 0xff, its scales too, the last ones of a page among them,
 * and so is what lies between pages; of the others none has changed. */
START_TEST(every_byte_of_a_dead_slot_is_poison)
{
    both b;

    open_both(&b, pages[_i], INPUTS_NORMAL);
    const hone_kv_gather *p = &b.problem.as.kv_gather;
    const uint64_t bytes = b.in[0].operand[0].bytes;
    uint8_t *live = calloc(bytes, 1);
    record_layout at = {0};
    uint64_t dead = 0, kept = 0;
    ck_assert_ptr_nonnull(live);
    ck_assert_int_eq(record_layout_of(&p->record, p->page_size, &at, &e), HONE_OK);
    for (int64_t row = 0; row < p->tokens; row++) {
        int64_t slot = 0;
        memcpy(&slot, b.in[0].image[1] + 8 * row, sizeof slot);
        if (slot < 0 || slot >= p->pages * p->page_size) {
            continue;
        }
        uint8_t *page = live + slot / p->page_size * p->page_stride;
        const int64_t within = slot % p->page_size;
        memset(page + record_data_offset(&at, within), 1, (size_t)at.data_bytes);
        memset(page + record_scale_offset(&at, within, 0), 1, (size_t)at.scales_bytes);
        if (at.tail_bytes > 0) {
            memset(page + record_tail_offset(&at, within), 1, (size_t)at.tail_bytes);
        }
    }
    for (uint64_t i = 0; i < bytes; i++) {
        ck_assert_uint_eq(b.in[1].image[0][i], live[i] ? b.in[0].image[0][i] : 0xff);
        dead += !live[i];
        kept += live[i];
    }
    ck_assert(dead > 0 && kept > 0);
    free(live);
    close_both(&b);
}
END_TEST

/* Entries of a table behind the page of a sequence's last row (13 rows in pages of 32 have one). */
START_TEST(entries_of_a_table_that_nobody_needs_are_no_pages)
{
    hone_problem problem;
    inputs in = {0}, padded = {0};
    const int32_t starts[] = {0, 13, 13, 40}, used[] = {1, 0, 1};

    ck_assert_int_eq(hone_problem_parse(READ(TABLE("bf16"), INDEX), &problem, &e), HONE_OK);
    ck_assert_int_eq(inputs_make(&problem, INPUTS_NORMAL, 3, &in, &e), HONE_OK);
    memcpy(in.image[2], starts, sizeof starts);
    ck_assert_int_eq(inputs_repad(&problem, &in, &padded, &e), HONE_OK);
    for (int32_t i = 0; i < 12; i++) {
        int32_t before = 0, after = 0;
        memcpy(&before, in.image[1] + 4 * i, 4);
        memcpy(&after, padded.image[1] + 4 * i, 4);
        ck_assert_int_eq(after, i % 4 < used[i / 4] ? before : INT32_MAX);
    }
    inputs_free_padded(&padded);
    inputs_free(&in);
}
END_TEST

static const char *const whole[] = {
    "act_quant:m=13,k=256",
    "fp8_gemm:m=3,n=32,k=128,recipe=f32-1x128-128x128",
    "weight_quant:n=33,k=100",
};

START_TEST(what_has_no_padding_gets_none)
{
    hone_problem problem;
    inputs in = {0}, padded = {0};

    ck_assert_int_eq(hone_problem_parse(whole[_i], &problem, &e), HONE_OK);
    ck_assert_int_eq(inputs_make(&problem, INPUTS_NORMAL, 3, &in, &e), HONE_OK);
    ck_assert_int_eq(inputs_repad(&problem, &in, &padded, &e), HONE_OK);
    ck_assert_uint_eq(padded.len, 0);
    inputs_free_padded(&padded);
    inputs_free(&in);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("repad");

    tcase_add_loop_test(tests, padding_is_other_and_shows_only_in_what_reads_it, 0,
                        (int)ARRAY_LEN(cases));
    tcase_add_loop_test(tests, every_byte_of_a_dead_slot_is_poison, 0, (int)ARRAY_LEN(pages));
    tcase_add_test(tests, entries_of_a_table_that_nobody_needs_are_no_pages);
    tcase_add_loop_test(tests, what_has_no_padding_gets_none, 0, (int)ARRAY_LEN(whole));
    return suite_run("bench/repad", tests);
}
