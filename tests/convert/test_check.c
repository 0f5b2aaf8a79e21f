/* test_check.c - one row a defect: what is found, where, and that a sound checkpoint is found
 * sound.
 */
#include "convert/check.h"
#include "core/numfmt.h"
#include "core/random.h"
#include "tests/convert/build.h"
#include "tests/convert/scene.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { N = 300, K = 520, ROWS = 3, COLS = 5 }; /* blocks of 128x128 */

static check_report report;

static check_options options = {.threads = 2};

static void run(const char *name)
{
    checkpoint *c = NULL;
    hone_error error = {0};

    ck_assert_msg(checkpoint_open(scene_path(name), &c, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(check_run(c, &options, &report, &error) == HONE_OK, "%s", error.message);
    checkpoint_close(c); /* findings' tensors are gone with it */
}

static void put_float(uint8_t *raw, size_t at, float x)
{
    memcpy(raw + 4 * at, &x, 4);
}

/* A weight of 128x128 blocks and f32 scales that are all powers of two. */
static uint8_t *add_sound(build *b, uint64_t *random, uint8_t **codes)
{
    *codes = build_random(b, random, "a.weight", SAFETENSORS_F8_E4M3, 0, 0x7f, 2, N, K);
    uint8_t *raw = build_add(b, "a.weight_scale_inv", SAFETENSORS_F32, 2, ROWS, COLS);

    for (size_t i = 0; i < ROWS * COLS; i++) {
        put_float(raw, i, ldexpf(1, (int)(i % 7) - 10));
    }
    /* No block has every largest code at 448. */
    for (size_t i = 0; i < (size_t)N * K; i++) {
        (*codes)[i] = (*codes)[i] >= 0x7e ? 0x70 : (*codes)[i];
    }
    return raw;
}

START_TEST(a_sound_checkpoint_is_found_sound)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *codes = NULL;

    add_sound(&b, &random, &codes);
    build_random(&b, &random, "m.weight", SAFETENSORS_I8, 0, 256, 2, 40, 64);
    build_random(&b, &random, "m.scale", SAFETENSORS_F8_E8M0, 0, 255, 2, 40, 4);
    build_random(&b, &random, "p.weight", SAFETENSORS_F8_E4M3, 0, 0x7e, 2, 64, 64); /* a tensor's */
    put_float(build_add(&b, "p.weight_scale", SAFETENSORS_F32, 0), 0, 0.5f);
    build_random(&b, &random, "c.weight", SAFETENSORS_F8_E4M3, 0, 0x7e, 2, 64, 70); /* channels' */
    uint8_t *raw = build_add(&b, "c.weight_scale", SAFETENSORS_F32, 2, 64, 1);
    for (size_t i = 0; i < 64; i++) {
        put_float(raw, i, 0.3f);
    }
    build_random(&b, &random, "norm.scale", SAFETENSORS_BF16, 0, 256, 1, 64); /* a layer's own */
    build_random(&b, &random, "v", SAFETENSORS_F8_E4M3, 0, 256, 1, 64);       /* no matrix */
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_msg(report.len == 0, "%s", report.len > 0 ? check_text(report.findings[0].kind) : "");
    ck_assert_uint_eq(report.weights, 3);
    ck_assert_uint_eq(report.mxfp4, 1);
    ck_assert_uint_eq(report.scales, 15 + 160 + 1 + 64);
    ck_assert_uint_eq(report.not_pow2, 64);
    check_free(&report);
}
END_TEST

/* A scale that is put in place (1, 3), whether powers of two are meant, and what is found. */
static const struct {
    float scale;
    bool pow2;
    int kind; /* -1: nothing */
} scales[] = {
    {0.3f, true, CHECK_POW2},           {0.3f, false, -1},
    {0x1.000002p-7f, true, CHECK_POW2}, {0x1p-127f, true, -1},
    {0x1p-130f, true, CHECK_POW2},      {0, false, CHECK_ZERO},
    {-0.0f, false, CHECK_ZERO},         {-0.5f, false, CHECK_NEGATIVE},
    {NAN, false, CHECK_NAN_},           {INFINITY, false, CHECK_INFINITE},
    {-INFINITY, true, CHECK_NEGATIVE},
};

START_TEST(a_wrong_scale_is_found_at_its_place)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *codes = NULL, *raw = add_sound(&b, &random, &codes);

    put_float(raw, 1 * COLS + 3, scales[_i].scale);
    put_float(raw, 2 * COLS + 1, scales[_i].scale);
    build_write(&b, scene_path("in.safetensors"));
    options.pow2 = scales[_i].pow2;
    run("in.safetensors");
    if (scales[_i].kind < 0) {
        ck_assert_uint_eq(report.len, 0);
    } else {
        ck_assert_uint_eq(report.len, 1);
        ck_assert_int_eq(report.findings[0].kind, scales[_i].kind);
        ck_assert_uint_eq(report.findings[0].count, 2);
        ck_assert_uint_eq(report.findings[0].of, ROWS * COLS);
        ck_assert_uint_eq(report.findings[0].row, 1);
        ck_assert_uint_eq(report.findings[0].col, 3);
    }
    check_free(&report);
}
END_TEST

START_TEST(nan_codes_are_found_at_the_first)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *codes = NULL;

    add_sound(&b, &random, &codes);
    codes[200 * K + 7] = 0xff;
    codes[130 * K + 400] = 0x7f;
    codes[130 * K + 519] = 0x7f;
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, 1);
    ck_assert_int_eq(report.findings[0].kind, CHECK_CODES);
    ck_assert_uint_eq(report.findings[0].count, 3);
    ck_assert_uint_eq(report.findings[0].row, 130);
    ck_assert_uint_eq(report.findings[0].col, 400);
    check_free(&report);
}
END_TEST

/* cases.md 1: scales rounded up, the payload still that of the raw ones: each block reaches 448. */
START_TEST(scales_that_were_rounded_alone_are_found)
{
    for (int rounded = 0; rounded < 2; rounded++) {
        build b = {0};
        uint64_t random = 1;
        uint8_t *codes = NULL;
        add_sound(&b, &random, &codes);
        for (int row = 0; row < ROWS; row++) {
            for (int col = 0; col < COLS - 1 + rounded; col++) {
                codes[(128 * row + 5) * K + 128 * col + 3] = 0xfe;
            }
        }
        build_write(&b, scene_path(rounded ? "b.safetensors" : "a.safetensors"));
        run(rounded ? "b.safetensors" : "a.safetensors");
        ck_assert_uint_eq(report.len, (size_t)rounded);
        if (rounded) {
            ck_assert_int_eq(report.findings[0].kind, CHECK_ROUNDED);
        }
        check_free(&report);
    }
}
END_TEST

/* Names and shapes: a weight, its scales, and what is found. */
static const struct {
    const char *weight, *scale;
    safetensors_dtype codes, scales;
    int rows, cols;
    int kind;
} pairs[] = {
    {"a.weight", "b.weight_scale_inv", SAFETENSORS_F8_E4M3, SAFETENSORS_F32, ROWS, COLS,
     CHECK_MISSING},
    {"a.weight", "a.scale", SAFETENSORS_F8_E4M3, SAFETENSORS_I64, ROWS, COLS, CHECK_DTYPE},
    {"a.weight", "a.scale", SAFETENSORS_F8_E4M3, SAFETENSORS_F8_E4M3, ROWS, COLS, CHECK_DTYPE},
    {"a.weight", "a.scale", SAFETENSORS_F8_E4M3, SAFETENSORS_F32, ROWS, COLS - 1, CHECK_SHAPE},
    {"a.weight", "a.scale", SAFETENSORS_F8_E4M3, SAFETENSORS_F32, COLS, ROWS, CHECK_SHAPE},
    {"a.weight", "a.scale", SAFETENSORS_F8_E4M3, SAFETENSORS_F32, ROWS, 2, CHECK_SHAPE},
    {"a.weight", "a.scale", SAFETENSORS_I8, SAFETENSORS_F8_E8M0, N, 7, CHECK_SHAPE},
};

START_TEST(a_pair_that_does_not_fit_is_found)
{
    build b = {0};
    bool found = false;

    build_add(&b, pairs[_i].weight, pairs[_i].codes, 2, N, K);
    build_add(&b, pairs[_i].scale, pairs[_i].scales, 2, pairs[_i].rows, pairs[_i].cols);
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    for (size_t i = 0; i < report.len; i++) {
        found = found || (int)report.findings[i].kind == pairs[_i].kind;
    }
    ck_assert(found);
    /* Scales without their weight are the other half of the first. */
    ck_assert_uint_eq(
        report.len,
        pairs[_i].kind == CHECK_MISSING || pairs[_i].scales == SAFETENSORS_F8_E4M3 ? 2 : 1);
    check_free(&report);
}
END_TEST

/* Packed words of four scale bytes: sound; a NaN byte (cases.md 2: 0x77ffffff); padding that nobody
 * wrote; and words that are floats' bits. */
static const struct {
    uint32_t first, last; /* of each row of two words; five scales a row */
    int kind;
} words[] = {
    {0x77777777, 0x0000007f, -1},          {0x77777777, 0x7f7f7f77, -1},
    {0x77ffffff, 0x7f7f7f77, CHECK_NAN_},  {0x77777777, 0xdeadbe77, CHECK_PADDING},
    {0x3f800000, 0x3b800000, CHECK_WORDS},
};

START_TEST(packed_words_are_looked_into)
{
    build b = {0};
    uint64_t random = 1;

    build_random(&b, &random, "a.weight", SAFETENSORS_F8_E4M3, 0, 0x70, 2, N, K);
    uint8_t *raw = build_add(&b, "a.scale", SAFETENSORS_I32, 2, ROWS, 2);
    for (int row = 0; row < ROWS; row++) {
        memcpy(raw + 8 * row, &words[_i].first, 4);
        memcpy(raw + 8 * row + 4, &words[_i].last, 4);
    }
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, words[_i].kind >= 0);
    if (words[_i].kind >= 0) {
        ck_assert_int_eq(report.findings[0].kind, words[_i].kind);
    }
    check_free(&report);
}
END_TEST

START_TEST(nan_bytes_of_mxfp4_are_found)
{
    build b = {0};
    uint64_t random = 1;

    build_random(&b, &random, "a_blocks", SAFETENSORS_U8, 0, 256, 4, 2, 8, 3, 16);
    uint8_t *raw = build_random(&b, &random, "a_scales", SAFETENSORS_U8, 100, 9, 3, 2, 8, 3);
    raw[9 * 3 + 2] = 0xff;
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, 1);
    ck_assert_int_eq(report.findings[0].kind, CHECK_NAN_);
    ck_assert_uint_eq(report.findings[0].row, 9);
    ck_assert_uint_eq(report.findings[0].col, 2);
    check_free(&report);
}
END_TEST

/* config.json: what it says, whether f32 scales must be powers of two, the block. */
static const struct {
    const char *text;
    bool pow2;
    int64_t rows, cols;
} configs[] = {
    {"{\"quantization_config\":{\"scale_fmt\":\"ue8m0\",\"weight_block_size\":[128,128]}}", true,
     128, 128},
    {"{\"text_config\":{\"quantization_config\":{\"weight_block_size\":[32,32]}}}", false, 32, 32},
    {"{\"scale_fmt\":\"ue8m0\"}", true, 0, 0},
    {"{\"quantization_config\":{\"scale_fmt\":3,\"weight_block_size\":[0,-1]}}", false, 0, 0},
    {"{\"quantization_config\":{\"weight_block_size\":[32]}}", false, 0, 0},
    {"{}", false, 0, 0},
};

START_TEST(a_config_says_what_is_meant)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *codes = NULL;

    options = (check_options){.threads = 1};
    file_write_text(scene_path("config.json"), configs[_i].text);
    ck_assert_int_eq(check_config(scene_path("config.json"), &options, NULL), HONE_OK);
    ck_assert_int_eq(options.pow2, configs[_i].pow2);
    ck_assert_int_eq(options.block[0], configs[_i].rows);
    ck_assert_int_eq(options.block[1], configs[_i].cols);
    add_sound(&b, &random, &codes);
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, configs[_i].rows == 32);
    ck_assert(report.len == 0 || report.findings[0].kind == CHECK_BLOCK);
    check_free(&report);
}
END_TEST

START_TEST(a_config_that_is_absent_or_damaged)
{
    hone_error error = {0};

    ck_assert_int_eq(check_config(scene_path("none.json"), &options, &error), HONE_OK);
    file_write_text(scene_path("config.json"), "{\"a\":");
    ck_assert_int_eq(check_config(scene_path("config.json"), &options, &error), HONE_BAD_TEXT);
    ck_assert_msg(strstr(error.message, "no JSON") != NULL, "%s", error.message);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("check");

    tcase_add_checked_fixture(tests, scene_begin, scene_end);
    tcase_add_test(tests, a_sound_checkpoint_is_found_sound);
    tcase_add_loop_test(tests, a_wrong_scale_is_found_at_its_place, 0, (int)ARRAY_LEN(scales));
    tcase_add_test(tests, nan_codes_are_found_at_the_first);
    tcase_add_test(tests, scales_that_were_rounded_alone_are_found);
    tcase_add_loop_test(tests, a_pair_that_does_not_fit_is_found, 0, (int)ARRAY_LEN(pairs));
    tcase_add_loop_test(tests, packed_words_are_looked_into, 0, (int)ARRAY_LEN(words));
    tcase_add_test(tests, nan_bytes_of_mxfp4_are_found);
    tcase_add_loop_test(tests, a_config_says_what_is_meant, 0, (int)ARRAY_LEN(configs));
    tcase_add_test(tests, a_config_that_is_absent_or_damaged);
    return suite_run("convert/check", tests);
}
