/* test_record.c - KV records: where every byte of a page lies, what reading and writing them takes,
 * and their ids (golden vectors of kernels.md App. B, cases.md 9 to 11). */
#include "core/numfmt.h"
#include "core/problem.h"
#include "tests/core/parsed.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

#define AMAX HONE_RULE_POW2_AMAX
#define NEAR HONE_RULE_E4M3_NEAR
#define NO   (-1)

/* Pages of 64, token 5 (kernels.md App. B; 584's dim 450 is its tail's third): a byte of data with
 * the dim that it holds, a scale, the tail's first byte, and sizes. */
static const struct {
    hone_record record;
    int at, tile;
    int64_t data, scale, tail, page, stride, token;
} golden[] = {
    {{HONE_KV_INDEX_FP8_132, HONE_PAGE_SPLIT, AMAX, 1}, 100, 0, 740, 8212, NO, 8448, 8448, 132},
    {{HONE_KV_MLA_FP8_656, HONE_PAGE_INTERLEAVED, HONE_RULE_POW2_SCALE, 1},
     0,
     2,
     3280,
     3280 + 520,
     3808,
     64 * 656,
     64 * 656,
     656},
    {{HONE_KV_MLA_FP8_584, HONE_PAGE_SPLIT, AMAX, 1},
     100,
     3,
     2980,
     36907,
     3332 - 4,
     37376,
     37440,
     584},
    {{HONE_KV_MLA_FP8_528, HONE_PAGE_SPLIT, AMAX, 1},
     100,
     3,
     2660,
     32851,
     NO,
     33792,
     66 * 512,
     528},
    {{HONE_KV_MLA_FP8_528, HONE_PAGE_INTERLEAVED, AMAX, 1},
     100,
     3,
     2740,
     3155,
     NO,
     33792,
     33792,
     528},
    {{HONE_KV_MLA_FP4_288, HONE_PAGE_SPLIT, NEAR, 1},
     100 / 2,
     6,
     1330,
     16550,
     NO,
     18432,
     18432,
     288},
    {{HONE_KV_MLA_FP4_288, HONE_PAGE_INTERLEAVED, NEAR, 1},
     100 / 2,
     6,
     5 * 288 + 50,
     5 * 288 + 256 + 6,
     NO,
     18432,
     18432,
     288},
    {{HONE_KV_INDEX_FP4_68, HONE_PAGE_SPLIT, AMAX, 1},
     100 / 2,
     3,
     5 * 64 + 50,
     64 * 64 + 5 * 4 + 3,
     NO,
     64 * 68,
     64 * 68,
     68},
    {{HONE_KV_MLA_NVFP4_352, HONE_PAGE_INTERLEAVED, HONE_RULE_E4M3_UP, 1},
     255,
     31,
     5 * 352 + 255,
     5 * 352 + 320 + 31,
     5 * 352 + 256,
     64 * 352,
     64 * 352,
     352},
    {{HONE_KV_MLA_FP8_576, HONE_PAGE_FLAT, HONE_RULE_TENSOR, 1},
     575,
     0,
     5 * 576 + 575,
     NO,
     NO,
     64 * 576,
     64 * 576,
     576},
    {{HONE_KV_MLA_BF16_1152, HONE_PAGE_FLAT, HONE_RULE_UNSCALED, 1},
     2 * 575,
     0,
     5 * 1152 + 2 * 575,
     NO,
     NO,
     64 * 1152,
     64 * 1152,
     1152},
    {{HONE_KV_MLA_BF16_1024, HONE_PAGE_FLAT, HONE_RULE_UNSCALED, 1},
     2 * 511,
     0,
     5 * 1024 + 2 * 511,
     NO,
     NO,
     64 * 1024,
     64 * 1024,
     1024},
};

START_TEST(page_addresses_are_the_golden_ones)
{
    record_layout l;
    const hone_record *r = &golden[_i].record;
    char record[64], text[128];

    ck_assert_int_eq(record_layout_of(r, 64, &l, &e), HONE_OK);
    ck_assert_int_eq(record_data_offset(&l, 5) + golden[_i].at, golden[_i].data);
    ck_assert(golden[_i].scale == NO
                  ? record_tiles(&l) == 0
                  : record_scale_offset(&l, 5, golden[_i].tile) == golden[_i].scale);
    ck_assert_int_eq(record_tail_offset(&l, 5), golden[_i].tail);
    ck_assert_int_eq(l.page_bytes, golden[_i].page);
    ck_assert_int_eq(l.token_bytes, golden[_i].token);
    problem_record_format(r, record);
    snprintf(text, sizeof text, "kv_quant:tokens=1,pages=9,record=%s", record);
    ck_assert_int_eq(parsed(text).as.kv_quant.page_stride, golden[_i].stride);
}
END_TEST

/* kernels.md 4.7: scales of groups 0, 1, 2, 3, 4 and 31. */
START_TEST(nvfp4_scales_are_permuted)
{
    static const int tiles[][2] = {{0, 0}, {1, 8}, {2, 16}, {3, 24}, {4, 1}, {31, 31}};
    const hone_record r = {HONE_KV_MLA_NVFP4_352, HONE_PAGE_INTERLEAVED, HONE_RULE_E4M3_UP, 1};
    record_layout l;

    ck_assert_int_eq(record_layout_of(&r, 64, &l, &e), HONE_OK);
    for (size_t i = 0; i < ARRAY_LEN(tiles); i++) {
        ck_assert_int_eq(record_scale_offset(&l, 0, tiles[i][0]), 320 + tiles[i][1]);
    }
}
END_TEST

static void hit(unsigned char *hits, int64_t at, int32_t len)
{
    for (int32_t i = 0; i < len; i++) {
        hits[at + i]++;
    }
}

/* Every byte of a page belongs to exactly one token's data, scales, pad or tail. */
START_TEST(a_page_is_covered_once_by_its_tokens)
{
    static const int32_t sizes[] = {32, 64, 128, 256};
    const hone_record *r = &golden[_i].record;
    record_layout l;

    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        ck_assert_int_eq(record_layout_of(r, sizes[s], &l, &e), HONE_OK);
        unsigned char *hits = calloc((size_t)l.page_bytes, 1);
        const int32_t tiles = record_tiles(&l), pad = l.scales_bytes - tiles * l.scale_bytes;
        for (int64_t t = 0; t < sizes[s]; t++) {
            hit(hits, record_data_offset(&l, t), l.data_bytes);
            for (int32_t tile = 0; tile < tiles; tile++) {
                hit(hits, record_scale_offset(&l, t, tile), l.scale_bytes);
            }
            hit(hits, record_scale_offset(&l, t, tiles), pad);
            hit(hits, l.tail_bytes > 0 ? record_tail_offset(&l, t) : 0, l.tail_bytes);
        }
        int wrong = 0;
        for (int64_t i = 0; i < l.page_bytes; i++) {
            wrong += hits[i] != 1;
        }
        ck_assert_int_eq(wrong, 0);
        ck_assert_int_eq(pad, r->format == HONE_KV_MLA_FP8_584);
        free(hits);
    }
}
END_TEST

/* Case 11: 132-byte rows do not begin at multiples of 16; a padded page moves only the page. */
START_TEST(odd_strides_are_exact)
{
    hone_problem p = parsed("kv_quant:tokens=64,pages=4,record=index_132-split-raw_amax,"
                            "page_stride=38016");
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 5);
    ck_assert_str_eq(o[2].name, "cache");
    ck_assert_uint_eq(o[2].bytes, 3 * 38016 + 8448);
    ck_assert_int_eq(o[2].access, 3);
    ck_assert_int_eq(o[3].access, 3);
    ck_assert_int_eq(o[4].access, 3);
    ck_assert_uint_eq(o[1].bytes, 64 * 8);
}
END_TEST

/* One list of seven for all gathers; what one does not need is empty. */
static const struct {
    const char *text;
    uint64_t index, starts, out, scales, scale;
} gathers[] = {
    {"kv_gather:tokens=5,pages=4,record=v4_584-split-pow2_amax", 40, 0, 5 * 1024, 0, 0},
    {"kv_gather:tokens=5,pages=4,to=raw,record=v4_584-split-pow2_amax", 40, 0, 5 * 576, 40, 0},
    {"kv_gather:tokens=5,pages=4,to=raw,by=table,sequences=3,table_pages=7,record=index_132-split-"
     "raw_amax",
     84, 16, 5 * 128, 20, 0},
    {"kv_gather:tokens=5,pages=4,record=fp8_576-flat-tensor", 40, 0, 5 * 1152, 0, 4},
    {"kv_gather:tokens=5,pages=4,to=raw,record=fp8_576-flat-tensor", 40, 0, 5 * 576, 0, 0},
    {"kv_gather:tokens=5,pages=4,record=nvfp4_352-interleaved-e4m3_up", 40, 0, 5 * 1152, 0, 0},
};

START_TEST(a_gather_has_seven_operands)
{
    hone_problem p = parsed(gathers[_i].text);
    hone_operand o[HONE_MAX_OPERANDS];
    size_t count;

    ck_assert_int_eq(hone_operands(&p, o, &count, &e), HONE_OK);
    ck_assert_uint_eq(count, 7);
    ck_assert_uint_eq(o[1].bytes, gathers[_i].index);
    ck_assert_uint_eq(o[2].bytes, gathers[_i].starts);
    ck_assert_uint_eq(o[3].bytes, gathers[_i].out);
    ck_assert_uint_eq(o[4].bytes, gathers[_i].scales);
    ck_assert_uint_eq(o[6].bytes, gathers[_i].scale);
}
END_TEST

/* Every record in every page size: whether two ids are the same says whether they are the same. */
static size_t all_records(hone_record *records, int32_t *page_sizes, uint64_t *ids)
{
    size_t len = 0;

    for (int32_t at = 0; at < 16 * 8 * 16 * 4; at++) {
        const hone_record r = {at / 4 / 16 / 8, at / 4 / 16 % 8, at / 4 % 16, 1};
        const int32_t page_size = 32 << at % 4;
        if (hone_record_id(&r, page_size, &ids[len], NULL) == HONE_OK) {
            records[len] = r;
            page_sizes[len++] = page_size;
        }
    }
    return len;
}

enum { MOST_RECORDS = 256 };

START_TEST(two_records_have_two_ids_and_a_mismatch_is_named)
{
    static const char *const names[] = {"record_format", "record_layout", "record_rule",
                                        "page_size"};
    hone_record records[MOST_RECORDS];
    int32_t page_sizes[MOST_RECORDS];
    uint64_t ids[MOST_RECORDS];
    const size_t len = all_records(records, page_sizes, ids);

    /* 132 and 656: 4 rules; 528: 2 in 2 layouts; 584: 2; 288: 2 in 2; 68, 352: 2; 3 more. */
    ck_assert_uint_eq(len, 4 * (4 + 4 + 4 + 2 + 4 + 2 + 2 + 3));
    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < len; j++) {
            const hone_record *a = &records[i], *b = &records[j];
            const bool differs[] = {a->format != b->format, a->layout != b->layout,
                                    a->rule != b->rule, page_sizes[i] != page_sizes[j]};
            ck_assert_int_eq(hone_record_match(ids[i], ids[j], &e),
                             i == j ? HONE_OK : HONE_BAD_PROBLEM);
            const char *list = i == j ? "" : strstr(e.message, "pages of");
            for (size_t n = 0; n < ARRAY_LEN(names) && i != j; n++) {
                ck_assert_msg((strstr(list, names[n]) != NULL) == differs[n], "%s", e.message);
            }
        }
    }
}
END_TEST

/* Kept beside caches: frozen. */
START_TEST(ids_never_change)
{
    const hone_record v41 = {HONE_KV_MLA_FP8_528, HONE_PAGE_INTERLEAVED, HONE_RULE_POW2_AMAX, 1};
    const hone_record none = {HONE_KV_MLA_FP8_584, HONE_PAGE_INTERLEAVED, HONE_RULE_POW2_AMAX, 1};
    uint64_t id = 0, untouched = 5;

    ck_assert_int_eq(hone_record_id(&v41, 64, &id, &e), HONE_OK);
    ck_assert_uint_eq(id, UINT64_C(0x4b56020101020003));
    ck_assert_int_eq(hone_record_id(&none, 64, &untouched, &e), HONE_BAD_PROBLEM);
    ck_assert_int_eq(hone_record_id(&v41, 48, &untouched, &e), HONE_BAD_PROBLEM);
    ck_assert_int_eq(hone_record_id(NULL, 64, &untouched, &e), HONE_BAD_ARGUMENT);
    ck_assert_uint_eq(untouched, 5);
    ck_assert_int_eq(hone_record_match(id, 0, &e), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(hone_record_match(id + 0x100, id, &e), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(hone_record_match(id, id | UINT64_C(1) << 39, &e), HONE_BAD_ARGUMENT);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("record");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, page_addresses_are_the_golden_ones, 0, (int)ARRAY_LEN(golden));
    tcase_add_loop_test(tests, a_page_is_covered_once_by_its_tokens, 0, (int)ARRAY_LEN(golden));
    tcase_add_test(tests, nvfp4_scales_are_permuted);
    tcase_add_test(tests, odd_strides_are_exact);
    tcase_add_loop_test(tests, a_gather_has_seven_operands, 0, (int)ARRAY_LEN(gathers));
    tcase_add_test(tests, two_records_have_two_ids_and_a_mismatch_is_named);
    tcase_add_test(tests, ids_never_change);
    return suite_run("core/record", tests);
}
