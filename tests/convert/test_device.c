/* test_device.c - tiles folded or requantised on an emulated GPU have the host's bytes, file for
 * file and figure for figure. */
#include "core/random.h"
#include "tests/convert/build.h"
#include "tests/convert/scene.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    uint32_t block_rows, block_cols;
    safetensors_dtype scales;
} blocks[] = {
    {128, 128, SAFETENSORS_F8_E8M0},
    {128, 128, SAFETENSORS_F32},
    {32, 32, SAFETENSORS_F8_E8M0},
    {1, 128, SAFETENSORS_F32},
};

/* Experts, tails in both dimensions, spreads past 14, a matrix that is wider than a tile. */
static void make_input(void)
{
    build b = {0};
    uint64_t random = 17;

    build_random(&b, &random, "e_blocks", SAFETENSORS_U8, 0, 256, 4, 2, 130, 5, 16);
    build_random(&b, &random, "e_scales", SAFETENSORS_U8, 100, 30, 3, 2, 130, 5);
    build_random(&b, &random, "w.weight", SAFETENSORS_I8, 0, 256, 2, 3, 4448);
    build_random(&b, &random, "w.scale", SAFETENSORS_F8_E8M0, 0, 255, 2, 3, 278);
    build_random(&b, &random, "z.weight", SAFETENSORS_I8, 0x80, 1, 2, 64, 32); /* +0 and -0 */
    build_random(&b, &random, "z.scale", SAFETENSORS_F8_E8M0, 0, 255, 2, 64, 2);
    build_write(&b, scene_path("in.safetensors"));
}

/* e4m3 of old blocks, NaN of both signs among them: experts, tails, scales far below 1e-4, a width
 * that is no multiple of 16, blocks of zeros. */
static void make_blocks(void)
{
    build b = {0};
    uint64_t random = 23;
    float *floats = NULL;

    build_random(&b, &random, "e.weight", SAFETENSORS_F8_E4M3, 0, 256, 3, 2, 130, 160);
    build_random(&b, &random, "e.scale", SAFETENSORS_F8_E8M0, 60, 80, 3, 2, 5, 5);
    build_random(&b, &random, "w.weight", SAFETENSORS_F8_E4M3, 0, 256, 2, 40, 331);
    floats = (float *)(void *)build_add(&b, "w.weight_scale_inv", SAFETENSORS_F32, 2, 2, 11);
    for (int i = 0; i < 2 * 11; i++) {
        floats[i] = (float)ldexp(1 + random_unit(&random), -40 + (int)random_below(&random, 60));
    }
    build_random(&b, &random, "z.weight", SAFETENSORS_F8_E4M3, 0x80, 1, 2, 64, 64); /* -0 */
    build_random(&b, &random, "z.scale", SAFETENSORS_F8_E8M0, 1, 240, 2, 2, 2);
    build_write(&b, scene_path("in.safetensors"));
}

static void convert_on(device_fold *device, const plan_wishes *wishes, const char *out,
                       convert_row *rows)
{
    checkpoint *from = NULL;
    plan p = {0};
    const convert_options options = {.threads = 2, .device = device};

    ck_assert_int_eq(checkpoint_open(scene_path("in.safetensors"), &from, &scene_error), HONE_OK);
    ck_assert_int_eq(plan_make(from, wishes, &p, &scene_error), HONE_OK);
    ck_assert_uint_eq(p.rows, 3);
    ck_assert_msg(convert_run(&p, scene_path(out), &options, rows, &scene_error) == HONE_OK, "%s",
                  scene_error.message);
    for (size_t i = 0; i < p.rows; i++) {
        rows[i].item = NULL;
    }
    plan_free(&p);
    checkpoint_close(from);
}

static void compare_on_both(const plan_wishes *wishes)
{
    convert_row host[3] = {{0}}, emulated[3] = {{0}};
    device_fold *device = NULL;
    size_t len = 0, got_len = 0;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    ck_assert_msg(device_fold_open("emu:h20", PLAN_TILE, &device, &scene_error) == HONE_OK, "%s",
                  scene_error.message);
    convert_on(NULL, wishes, "host", host);
    convert_on(device, wishes, "emulated", emulated);
    char *want = file_read(scene_path("host"), &len);
    char *got = file_read(scene_path("emulated"), &got_len);
    ck_assert_uint_eq(got_len, len);
    ck_assert_int_eq(memcmp(got, want, len), 0);
    ck_assert_int_eq(memcmp(host, emulated, sizeof host), 0);
    free(want);
    free(got);
    device_fold_close(device);
}

START_TEST(a_device_gives_the_hosts_bytes)
{
    plan_wishes wishes = scene_wishes;

    wishes.block_rows = blocks[_i].block_rows;
    wishes.block_cols = blocks[_i].block_cols;
    wishes.scales = blocks[_i].scales;
    make_input();
    compare_on_both(&wishes);
}
END_TEST

static const struct {
    uint32_t block_rows, block_cols;
    safetensors_dtype scales;
    plan_rule rule;
} requantised[] = {
    {128, 128, SAFETENSORS_F8_E8M0, PLAN_CEIL},
    {128, 128, SAFETENSORS_F32, PLAN_AMAX},
    {1, 128, SAFETENSORS_F32, PLAN_AMAX},
};

START_TEST(a_device_gives_the_hosts_bytes_of_other_blocks)
{
    plan_wishes wishes = scene_wishes;

    wishes.requantise = true;
    wishes.block_rows = requantised[_i].block_rows;
    wishes.block_cols = requantised[_i].block_cols;
    wishes.scales = requantised[_i].scales;
    wishes.rule = requantised[_i].rule;
    make_blocks();
    compare_on_both(&wishes);
}
END_TEST

/* What a device gives is held against what the host works out from the same exponents. */
START_TEST(a_tile_whose_scales_differ_is_refused)
{
    uint8_t codes[16], scale = 120, out[32], out_scale = 99;
    fold_tile tile = {codes, 16, &scale, 1, 1, 32, 128, 128, out, 32, &out_scale};
    device_fold *device = NULL;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    memset(codes, 0x77, sizeof codes);
    ck_assert_int_eq(device_fold_open("emu:h20", 1 << 12, &device, &scene_error), HONE_OK);
    ck_assert_int_eq(device_fold_run(device, &tile, &scene_error), HONE_WRONG);
    out_scale = 114;
    ck_assert_int_eq(device_fold_run(device, &tile, &scene_error), HONE_OK);
    ck_assert_uint_eq(out[31], 0x7c);
    tile.rows = 1 << 10;
    ck_assert_int_eq(device_fold_run(device, &tile, &scene_error), HONE_LIMIT);
    device_fold_close(device);
    ck_assert_int_eq(device_fold_open("emu:nothing", 1 << 12, &device, &scene_error), HONE_UNKNOWN);
}
END_TEST

/* The same of what a device requantises, and what no template does. */
START_TEST(a_requantised_tile_whose_scale_differs_is_refused)
{
    static uint8_t codes[32 * 32], out[32 * 32];
    const float scale = 0x1p-30f;
    float made = 1;
    requantise_tile tile = {.codes = codes,
                            .codes_stride = 32,
                            .scales = &scale,
                            .scales_stride = 1,
                            .rows = 32,
                            .cols = 32,
                            .from_rows = 32,
                            .from_cols = 32,
                            .block_rows = 128,
                            .block_cols = 128,
                            .rule = PLAN_CEIL,
                            .out = out,
                            .out_scales = &made};
    device_fold *device = NULL;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    memset(codes, 0x7e, sizeof codes);
    codes[5] = 0xff;
    ck_assert_int_eq(device_fold_open("emu:h20", 1 << 10, &device, &scene_error), HONE_OK);
    ck_assert_int_eq(device_fold_requantise(device, &tile, &scene_error), HONE_WRONG);
    made = scale;
    ck_assert_int_eq(device_fold_requantise(device, &tile, &scene_error), HONE_OK);
    ck_assert_mem_eq(out, codes, sizeof out);
    tile.rule = PLAN_NEAREST;
    ck_assert_int_eq(device_fold_requantise(device, &tile, &scene_error), HONE_UNSUPPORTED);
    tile.rule = PLAN_CEIL;
    tile.block_cols = 64;
    ck_assert_int_ne(device_fold_requantise(device, &tile, &scene_error), HONE_OK);
    tile.rows = 33;
    ck_assert_int_eq(device_fold_requantise(device, &tile, &scene_error), HONE_LIMIT);
    device_fold_close(device);
}
END_TEST

/* Each tile is its own shape: the config of the first, the widest, serves those that have fewer
 * blocks than a CTA of it. */
START_TEST(narrow_tiles_follow_wide_ones)
{
    enum { WIDE = 7168 };
    static const uint64_t cols[] = {WIDE, 128, 512, WIDE, 32};
    static uint8_t codes[2 * WIDE], out[2 * WIDE];
    static float scales[2 * WIDE / 32], made[2 * WIDE / 32];
    device_fold *device = NULL;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    memset(codes, 0x7e, sizeof codes);
    for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
        scales[i] = 0x1p-3f;
    }
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        made[i] = 0x1p-3f;
    }
    ck_assert_int_eq(device_fold_open("emu:h20", 2 * WIDE, &device, &scene_error), HONE_OK);
    for (size_t i = 0; i < ARRAY_LEN(cols); i++) {
        const requantise_tile tile = {.codes = codes,
                                      .codes_stride = cols[i],
                                      .scales = scales,
                                      .scales_stride = cols[i] / 32,
                                      .rows = 2,
                                      .cols = cols[i],
                                      .from_rows = 32,
                                      .from_cols = 32,
                                      .block_rows = 1,
                                      .block_cols = 32,
                                      .rule = PLAN_CEIL,
                                      .out = out,
                                      .out_scales = made};
        memset(out, 0, sizeof out);
        ck_assert_msg(device_fold_requantise(device, &tile, &scene_error) == HONE_OK, "%d: %s",
                      (int)cols[i], scene_error.message);
        ck_assert_mem_eq(out, codes, 2 * cols[i]);
    }
    device_fold_close(device);
}
END_TEST

/* A scale for each element of a column: few elements, too many scales. */
START_TEST(a_tile_of_more_scales_than_there_is_room_for_is_refused)
{
    static uint8_t codes[40], out[40];
    static float scales[40], made[40];
    const requantise_tile tile = {.codes = codes,
                                  .codes_stride = 1,
                                  .scales = scales,
                                  .scales_stride = 1,
                                  .rows = 40,
                                  .cols = 1,
                                  .from_rows = 1,
                                  .from_cols = 32,
                                  .block_rows = 1,
                                  .block_cols = 32,
                                  .rule = PLAN_CEIL,
                                  .out = out,
                                  .out_scales = made};
    device_fold *device = NULL;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    ck_assert_int_eq(device_fold_open("emu:h20", 1 << 10, &device, &scene_error), HONE_OK);
    ck_assert_int_eq(device_fold_requantise(device, &tile, &scene_error), HONE_LIMIT);
    ck_assert_ptr_nonnull(strstr(scene_error.message, "40 scales"));
    device_fold_close(device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("device");

    tcase_add_checked_fixture(tests, scene_begin, scene_end);
    tcase_add_loop_test(tests, a_device_gives_the_hosts_bytes, 0, (int)ARRAY_LEN(blocks));
    tcase_add_loop_test(tests, a_device_gives_the_hosts_bytes_of_other_blocks, 0,
                        (int)ARRAY_LEN(requantised));
    tcase_add_test(tests, a_tile_whose_scales_differ_is_refused);
    tcase_add_test(tests, a_requantised_tile_whose_scale_differs_is_refused);
    tcase_add_test(tests, narrow_tiles_follow_wide_ones);
    tcase_add_test(tests, a_tile_of_more_scales_than_there_is_room_for_is_refused);
    return suite_run("convert/device", tests);
}
