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
    build_random(&b, &random, "m.scale", SAFETENSORS_F8_E8M0, 1, 254, 2, 40, 4);
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

/* cases.md 1: scales rounded up, the payload still that of the raw ones: each block reaches 448,
 * but for a few whose amax was below a floor. */
START_TEST(scales_that_were_rounded_alone_are_found)
{
    enum { SOUND, ROUNDED, ALL_BUT_ONE };
    static const char *const names[] = {"a.safetensors", "b.safetensors", "c.safetensors"};

    for (int kind = SOUND; kind <= ALL_BUT_ONE; kind++) {
        build b = {0};
        uint64_t random = 1;
        uint8_t *codes = NULL;
        add_sound(&b, &random, &codes);
        for (int row = 0; row < ROWS; row++) {
            const int spared = kind == SOUND || (kind == ALL_BUT_ONE && row == 0);
            for (int col = 0; col < COLS - spared; col++) {
                codes[(128 * row + 5) * K + 128 * col + 3] = 0xfe;
            }
        }
        build_write(&b, scene_path(names[kind]));
        run(names[kind]);
        ck_assert_uint_eq(report.len, kind == SOUND ? 0 : 1);
        if (kind != SOUND) {
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
 * wrote. */
static const struct {
    uint32_t first, last; /* of each row of two words; five scales a row */
    int kind;
} words[] = {
    {0x77777777, 0x0000007f, -1},
    {0x77777777, 0x7f7f7f77, -1},
    {0x77ffffff, 0x7f7f7f77, CHECK_NAN_},
    {0x77777777, 0xdeadbe77, CHECK_PADDING},
};

static uint8_t *add_words(build *b, uint64_t *random, int n, int k, int rows, int cols)
{
    build_random(b, random, "a.weight", SAFETENSORS_F8_E4M3, 1, 0x70, 2, n, k);
    return build_add(b, "a.scale", SAFETENSORS_I32, 2, rows, cols);
}

/* What is built has one finding, or none. */
static void expect(build *b, int kind)
{
    build_write(b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_msg(report.len == (size_t)(kind >= 0), "%zu findings, the first: %s", report.len,
                  report.len > 0 ? check_name(report.findings[0].kind) : "");
    if (kind >= 0) {
        ck_assert_int_eq(report.findings[0].kind, kind);
    }
    check_free(&report);
}

START_TEST(packed_words_are_looked_into)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *raw = add_words(&b, &random, N, K, ROWS, 2);

    for (int row = 0; row < ROWS; row++) {
        memcpy(raw + 8 * row, &words[_i].first, 4);
        memcpy(raw + 8 * row + 4, &words[_i].last, 4);
    }
    expect(&b, words[_i].kind);
}
END_TEST

/* K of up to 128: a word holds one scale of 128 columns or up to four of 32. */
static const struct {
    int k;
    uint32_t word;
    int kind;
} short_rows[] = {
    {100, 0x79787776, -1},
    {128, 0x7978777a, -1},
    {33, 0x00007877, -1},
    {128, 0x00000077, -1},
    {33, 0x7f7f7877, -1},
    {100, 0xff000077, CHECK_PADDING},
    {33, 0x00787877, CHECK_PADDING},
    {32, 0x00007877, CHECK_PADDING},
    {100, 0x797877ff, CHECK_NAN_},
};

START_TEST(words_of_short_rows_hold_one_scale_or_four)
{
    build b = {0};
    uint64_t random = 1;
    uint8_t *raw = add_words(&b, &random, 40, short_rows[_i].k, 40, 1);

    for (int row = 0; row < 40; row++) {
        memcpy(raw + 4 * row, &short_rows[_i].word, 4);
    }
    options.block[0] = 1; /* what config.json says, either */
    options.block[1] = _i % 2 == 0 ? 32 : 128;
    expect(&b, short_rows[_i].kind);
}
END_TEST

/* Scales as amax / 448 leaves them: any float, between 2^-40 and 2^9. */
static float any_scale(uint64_t *random)
{
    return (float)ldexp(1 + random_unit(random), (int)random_below(random, 49) - 40);
}

/* Floats called I32, of 128x128 where words would be of 128x32 (17 of 32: 5 words); among them
 * some that are 0, or damaged. */
START_TEST(floats_that_are_called_words_are_found)
{
    build b = {0};
    uint64_t random = 5 + (uint64_t)_i;
    uint8_t *raw = add_words(&b, &random, N, K, ROWS, COLS);

    for (size_t i = 0; i < ROWS * COLS; i++) {
        put_float(raw, i, i % 4 == 1 ? 0 : any_scale(&random));
    }
    put_float(raw, 7, NAN);
    expect(&b, CHECK_WORDS);
}
END_TEST

/* And words called F32, of 1x32 where floats would be of 1x128: alone, and with padding. */
START_TEST(words_that_are_called_floats_are_found)
{
    static const int columns[] = {512, 544, 600, 128, 1000};
    const int k = columns[_i], groups = (k + 31) / 32, cols = (groups + 3) / 4;
    build b = {0};
    uint64_t random = 9;

    build_random(&b, &random, "a.weight", SAFETENSORS_F8_E4M3, 1, 0x70, 2, 40, k);
    uint8_t *raw = build_add(&b, "a.scale", SAFETENSORS_F32, 2, 40, cols);
    for (int i = 0; i < 40 * cols * 4; i++) {
        const int group = i % (4 * cols);
        raw[i] =
            (uint8_t)(group < groups ? 0x50 + (int)random_below(&random, 0x40) : _i % 2 * 0x7f);
    }
    expect(&b, CHECK_WORDS);
}
END_TEST

/* Neither is ever taken for the other. */
START_TEST(scales_that_are_called_what_they_are_are_let_be)
{
    build b = {0};
    uint64_t random = 77 + (uint64_t)_i;
    uint8_t *raw = add_words(&b, &random, N, K, ROWS, COLS);

    for (int i = 0; i < ROWS * COLS * 4; i++) {
        const bool pads = i % (4 * COLS) >= 17;
        raw[i] = (uint8_t)(pads ? 0x7f * (i % 2) : 0x48 + (int)random_below(&random, 0x51));
    }
    build_random(&b, &random, "f.weight", SAFETENSORS_F8_E4M3, 1, 0x70, 2, N, K);
    raw = build_add(&b, "f.scale", SAFETENSORS_F32, 2, ROWS, COLS);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        put_float(raw, i, any_scale(&random));
    }
    expect(&b, -1);
}
END_TEST

/* ---- Scales of byte 0, 2^-127. ------------------------------------------------------------- */

/* As bytes, and as words; where the codes under them are zeros nothing is wrong. */
START_TEST(scales_that_nobody_wrote_are_found_by_the_codes_under_them)
{
    build b = {0};
    uint64_t random = 1;
    const bool packed = _i == 1;
    uint8_t *codes = build_random(&b, &random, "a.weight", SAFETENSORS_F8_E4M3, 1, 0x70, 2, N, K);

    build_add(&b, "a.scale", packed ? SAFETENSORS_I32 : SAFETENSORS_F8_E8M0, 2, ROWS,
              packed ? 2 : COLS);
    /* Blocks (0, 1) and (2, 4) are all zero, of either sign; (1, 3) but for its last code. */
    for (int row = 0; row < N; row++) {
        memset(codes + row * K + (row < 128 ? 128 : 512), 0x80 * (row % 2),
               row < 128   ? 128
               : row < 256 ? 0
                           : 8);
        memset(codes + row * K + 384, 0, row >= 128 && row < 256 ? 128 : 0);
    }
    codes[255 * K + 511] = 0x81;
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, 1);
    ck_assert_int_eq(report.findings[0].kind, CHECK_ZERO);
    ck_assert_uint_eq(report.findings[0].count, ROWS * COLS - 2);
    ck_assert_uint_eq(report.findings[0].of, ROWS * COLS);
    ck_assert_uint_eq(report.findings[0].row, 0);
    ck_assert_uint_eq(report.findings[0].col, 0);
    check_free(&report);
}
END_TEST

START_TEST(zero_groups_of_mxfp4_may_have_any_scale)
{
    enum { ROWS_4 = 700, GROUPS = 5 };
    build b = {0};
    uint64_t random = 1;
    uint8_t *codes =
        build_random(&b, &random, "m.weight", SAFETENSORS_I8, 0, 256, 2, ROWS_4, 16 * GROUPS);
    uint8_t *raw =
        build_random(&b, &random, "m.scale", SAFETENSORS_F8_E8M0, 100, 9, 2, ROWS_4, GROUPS);

    for (int group = 0; group < ROWS_4 * GROUPS; group += 3) {
        memset(codes + 16 * group, 0x80, 16);
        raw[group] = 0;
    }
    codes[16 * 3003 + 15] = _i == 1 ? 0x08 : _i == 2 ? 0x10 : 0x88;
    build_write(&b, scene_path("in.safetensors"));
    run("in.safetensors");
    ck_assert_uint_eq(report.len, _i == 2);
    if (_i == 2) {
        ck_assert_int_eq(report.findings[0].kind, CHECK_ZERO);
        ck_assert_uint_eq(report.findings[0].count, 1);
        ck_assert_uint_eq(report.findings[0].row, 600);
        ck_assert_uint_eq(report.findings[0].col, 3);
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
    tcase_add_loop_test(tests, words_of_short_rows_hold_one_scale_or_four, 0,
                        (int)ARRAY_LEN(short_rows));
    tcase_add_loop_test(tests, floats_that_are_called_words_are_found, 0, 8);
    tcase_add_loop_test(tests, words_that_are_called_floats_are_found, 0, 5);
    tcase_add_loop_test(tests, scales_that_are_called_what_they_are_are_let_be, 0, 8);
    tcase_add_loop_test(tests, scales_that_nobody_wrote_are_found_by_the_codes_under_them, 0, 2);
    tcase_add_loop_test(tests, zero_groups_of_mxfp4_may_have_any_scale, 0, 3);
    tcase_add_test(tests, nan_bytes_of_mxfp4_are_found);
    tcase_add_loop_test(tests, a_config_says_what_is_meant, 0, (int)ARRAY_LEN(configs));
    tcase_add_test(tests, a_config_that_is_absent_or_damaged);
    return suite_run("convert/check", tests);
}
