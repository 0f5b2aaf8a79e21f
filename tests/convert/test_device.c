/* test_device.c - tiles folded on an emulated GPU have the host's bytes, file for file and figure
 * for figure. */
#include "tests/convert/build.h"
#include "tests/convert/scene.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
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

START_TEST(a_device_gives_the_hosts_bytes)
{
    plan_wishes wishes = scene_wishes;
    convert_row host[3] = {{0}}, emulated[3] = {{0}};
    device_fold *device = NULL;
    size_t len = 0, got_len = 0;

    setenv("XDG_CACHE_HOME", scene_path("."), 1);
    wishes.block_rows = blocks[_i].block_rows;
    wishes.block_cols = blocks[_i].block_cols;
    wishes.scales = blocks[_i].scales;
    make_input();
    ck_assert_msg(device_fold_open("emu:h20", PLAN_TILE, &device, &scene_error) == HONE_OK, "%s",
                  scene_error.message);
    convert_on(NULL, &wishes, "host", host);
    convert_on(device, &wishes, "emulated", emulated);
    char *want = file_read(scene_path("host"), &len);
    char *got = file_read(scene_path("emulated"), &got_len);
    ck_assert_uint_eq(got_len, len);
    ck_assert_int_eq(memcmp(got, want, len), 0);
    ck_assert_int_eq(memcmp(host, emulated, sizeof host), 0);
    free(want);
    free(got);
    device_fold_close(device);
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

int main(void)
{
    TCase *tests = tcase_create("device");

    tcase_add_checked_fixture(tests, scene_begin, scene_end);
    tcase_add_loop_test(tests, a_device_gives_the_hosts_bytes, 0, (int)ARRAY_LEN(blocks));
    tcase_add_test(tests, a_tile_whose_scales_differ_is_refused);
    return suite_run("convert/device", tests);
}
