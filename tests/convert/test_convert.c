/* test_convert.c - files converted: every convention of names, stacked experts, ragged and wide
 * matrices; the same bytes and figures from any number of threads. */
#include "core/fold_mxfp4.h"
#include "core/numfmt.h"
#include "tests/convert/build.h"
#include "tests/convert/scene.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- MXFP4. -------------------------------------------------------------------------------- */

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Hold a folded weight against the plain fold of each block of each matrix. */
static void is_fold(const uint8_t *codes, const uint8_t *scales, uint64_t batch, uint64_t n,
                    uint64_t k, uint64_t block_rows, uint64_t block_cols, const uint8_t *got,
                    const uint8_t *got_scales)
{
    static uint8_t want[128 * 128];

    for (uint64_t b = 0; b < batch; b++) {
        for (uint64_t row = 0; row < n; row += block_rows) {
            for (uint64_t col = 0; col < k; col += block_cols) {
                const uint64_t first = b * n + row;
                const uint64_t block_n = n - row < block_rows ? n - row : block_rows;
                const uint64_t block_k = k - col < block_cols ? k - col : block_cols;
                const fold_mxfp4_block block = {codes + (first * k + col) / 2,
                                                k / 2,
                                                scales + (first * k + col) / 32,
                                                k / 32,
                                                block_n,
                                                block_k / 32};
                const uint8_t scale = fold_mxfp4(&block, want, block_k).scale;
                ck_assert_uint_eq(got_scales[(b * ceil_div(n, block_rows) + row / block_rows) *
                                                 ceil_div(k, block_cols) +
                                             col / block_cols],
                                  scale);
                for (uint64_t r = 0; r < block_n; r++) {
                    ck_assert_mem_eq(got + (first + r) * k + col, want + r * block_k, block_k);
                }
            }
        }
    }
}

/* A convention: names in and out, and how the codes are shaped. */
static const struct {
    const char *weight, *scale, *out_weight, *out_scale;
    safetensors_dtype codes, scales;
    bool split; /* [.., K/32, 16] */
} conventions[] = {
    {"a.weight", "a.scale", "a.weight", "a.scale", SAFETENSORS_I8, SAFETENSORS_F8_E8M0, false},
    {"a.weight", "a.scale", "a.weight", "a.scale", SAFETENSORS_F4, SAFETENSORS_F8_E8M0, false},
    {"a.weight", "a.weight_scale_inv", "a.weight", "a.weight_scale_inv", SAFETENSORS_U8,
     SAFETENSORS_F8_E8M0, false},
    {"e.down_blocks", "e.down_scales", "e.down", "e.down_scale_inv", SAFETENSORS_U8, SAFETENSORS_U8,
     true},
    {"m.mlp1.blocks", "m.mlp1.scales", "m.mlp1", "m.mlp1_scale_inv", SAFETENSORS_U8, SAFETENSORS_U8,
     true},
    {"a.weight_packed", "a.weight_scale", "a.weight", "a.weight_scale", SAFETENSORS_U8,
     SAFETENSORS_U8, false},
    {"e.up", "e.up_scale_inv", "e.up", "e.up_scale_inv", SAFETENSORS_U8, SAFETENSORS_F8_E8M0,
     false},
};

START_TEST(every_convention_of_names_is_folded)
{
    enum { E = 2, N = 192, K = 288 };
    build b = {0};
    uint64_t random = 5;
    size_t converted = 0;
    const safetensors_tensor *t = NULL, *s = NULL;
    const bool split = conventions[_i].split, f4 = conventions[_i].codes == SAFETENSORS_F4;
    uint8_t codes[E * N * K / 2], scales[E * N * K / 32];

    memcpy(codes,
           split ? build_random(&b, &random, conventions[_i].weight, conventions[_i].codes, 0, 256,
                                4, E, N, K / 32, 16)
                 : build_random(&b, &random, conventions[_i].weight, conventions[_i].codes, 0, 256,
                                3, E, N, f4 ? K : K / 2),
           sizeof codes);
    memcpy(scales,
           build_random(&b, &random, conventions[_i].scale, conventions[_i].scales, 110, 16, 3, E,
                        N, K / 32),
           sizeof scales);
    build_random(&b, &random, "norm.weight", SAFETENSORS_BF16, 0, 256, 1, 77);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_msg(
        scene_convert("in.safetensors", "out.safetensors", &scene_wishes, 2, &converted) == HONE_OK,
        "%s", scene_error.message);
    ck_assert_uint_eq(converted, 1);
    ck_assert_uint_eq(scene_rows[0].fold.elements, sizeof codes * 2);
    ck_assert_uint_eq(scene_rows[0].fold.blocks,
                      E * 2 * 3); /* no block holds rows of two experts */

    safetensors_file *file = scene_open("out.safetensors");
    ck_assert_uint_eq(safetensors_table_of(file)->len, 3);
    ck_assert_str_eq(safetensors_table_of(file)->notes[0].value, "pt");
    uint8_t *got = build_load(file, conventions[_i].out_weight, &t);
    uint8_t *got_scales = build_load(file, conventions[_i].out_scale, &s);
    ck_assert_int_eq(t->dtype, SAFETENSORS_F8_E4M3);
    ck_assert_int_eq(s->dtype, SAFETENSORS_F8_E8M0);
    ck_assert_uint_eq(t->rank, 3);
    ck_assert_uint_eq(t->shape[0], E);
    ck_assert_uint_eq(t->shape[1], N);
    ck_assert_uint_eq(t->shape[2], K);
    ck_assert_uint_eq(s->shape[0], E);
    ck_assert_uint_eq(s->shape[1], 2);
    ck_assert_uint_eq(s->shape[2], 3);
    is_fold(codes, scales, E, N, K, 128, 128, got, got_scales);
    free(got);
    free(got_scales);
    safetensors_close(file);
}
END_TEST

/* Matrices that end inside blocks, that are wider than a tile, and whose tile spans more than one
 * window; each block size; f32 scales too. */
static const struct {
    int n, k;
    uint32_t block_rows, block_cols;
    bool f32;
} sizes[] = {
    {1, 32, 128, 128, false},   {127, 96, 128, 128, true},        {129, 160, 32, 32, false},
    {576, 64, 1, 128, true},    {3, 20000 * 32, 128, 128, false}, {130, 66560, 128, 128, true},
    {40000, 32, 1, 128, false}, {33, 33 * 1024, 32, 32, true},    {2, 1100 * 1024, 1, 128, false},
    {0, 64, 128, 128, false},   {64, 0, 128, 128, true},
};

START_TEST(ragged_and_wide_matrices_are_folded)
{
    const int n = sizes[_i].n, k = sizes[_i].k;
    plan_wishes wishes = scene_wishes;
    build b = {0};
    uint64_t random = 11;
    size_t converted = 0;

    wishes.block_rows = sizes[_i].block_rows;
    wishes.block_cols = sizes[_i].block_cols;
    wishes.scales = sizes[_i].f32 ? SAFETENSORS_F32 : SAFETENSORS_F8_E8M0;
    build_random(&b, &random, "a.weight", SAFETENSORS_I8, 0, 256, 2, n, k / 2);
    build_random(&b, &random, "a.scale", SAFETENSORS_F8_E8M0, 60, 20, 2, n, k / 32);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_msg(scene_convert("in.safetensors", "out.safetensors", &wishes, 3, &converted) ==
                      HONE_OK,
                  "%s", scene_error.message);
    safetensors_file *in = scene_open("in.safetensors"), *out = scene_open("out.safetensors");
    const safetensors_tensor *t = NULL;
    uint8_t *codes = build_load(in, "a.weight", NULL), *scales = build_load(in, "a.scale", NULL);
    uint8_t *got = build_load(out, "a.weight", NULL), *raw = build_load(out, "a.scale", &t);
    uint64_t count = t->bytes / (sizes[_i].f32 ? 4 : 1);
    uint8_t *got_scales = malloc(count + 1);
    for (uint64_t i = 0; i < count; i++) {
        float x = 0;
        memcpy(&x, raw + 4 * i * sizes[_i].f32, 4 * sizes[_i].f32);
        got_scales[i] = raw[i];
        ck_assert(!sizes[_i].f32 || numfmt_ue8m0_exact(x, &got_scales[i]));
    }
    is_fold(codes, scales, 1, (uint64_t)n, (uint64_t)k, wishes.block_rows, wishes.block_cols, got,
            got_scales);
    ck_assert_uint_eq(scene_rows[0].fold.elements, (uint64_t)n * (uint64_t)k);
    free(codes);
    free(scales);
    free(got);
    free(raw);
    free(got_scales);
    safetensors_close(in);
    safetensors_close(out);
}
END_TEST

START_TEST(threads_change_neither_bytes_nor_figures)
{
    static const unsigned threads[] = {1, 2, 7};
    convert_row first[SCENE_ROWS];
    char *bytes = NULL;
    size_t len = 0, converted = 0;
    build b = {0};
    uint64_t random = 3;
    plan_wishes wishes = scene_wishes;

    wishes.requantise = true;
    build_random(&b, &random, "a.weight", SAFETENSORS_I8, 0, 256, 2, 2000, 1024);
    build_random(&b, &random, "a.scale", SAFETENSORS_F8_E8M0, 90, 40, 2, 2000, 64);
    build_random(&b, &random, "q.weight", SAFETENSORS_F8_E4M3, 0, 127, 2, 1500, 1000);
    build_random(&b, &random, "q.scale", SAFETENSORS_F8_E8M0, 100, 30, 2, 47, 32);
    build_random(&b, &random, "c.weight", SAFETENSORS_F32, 0, 256, 2, 900, 1000);
    build_write(&b, scene_path("in.safetensors"));
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        ck_assert_msg(scene_convert("in.safetensors", "out.safetensors", &wishes, threads[i],
                                    &converted) == HONE_OK,
                      "%s", scene_error.message);
        ck_assert_uint_eq(converted, 2);
        size_t got_len = 0;
        char *got = file_read(scene_path("out.safetensors"), &got_len);
        if (i == 0) {
            bytes = got;
            len = got_len;
            memcpy(first, scene_rows, sizeof scene_rows);
        } else {
            ck_assert_uint_eq(got_len, len);
            ck_assert_int_eq(memcmp(got, bytes, len), 0);
            ck_assert_int_eq(memcmp(scene_rows, first, sizeof scene_rows), 0);
            free(got);
        }
        ck_assert_int_eq(unlink(scene_path("out.safetensors")), 0);
    }
    free(bytes);
}
END_TEST

/* ---- What stays as it is. ------------------------------------------------------------------ */

START_TEST(the_rest_is_copied_byte_for_byte)
{
    static const safetensors_dtype dtypes[] = {
        SAFETENSORS_F32,     SAFETENSORS_F16,    SAFETENSORS_BF16, SAFETENSORS_F8_E5M2,
        SAFETENSORS_I32,     SAFETENSORS_I64,    SAFETENSORS_BOOL, SAFETENSORS_U8,
        SAFETENSORS_F8_E4M3, SAFETENSORS_F8_E8M0};
    char names[ARRAY_LEN(dtypes)][16];
    plan_wishes wishes = scene_wishes;
    const char *skip[] = {"keep.*"};
    build b = {0};
    uint64_t random = 1;
    size_t converted = 0;

    wishes.skip = skip;
    wishes.skip_len = 1;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i);
        build_random(&b, &random, names[i], dtypes[i], 0, 256, 2, 3, 5);
    }
    build_random(&b, &random, "big", SAFETENSORS_F32, 0, 256, 1, 700001);
    build_add(&b, "none", SAFETENSORS_F32, 1, 0);
    build_random(&b, &random, "keep.weight", SAFETENSORS_I8, 0, 256, 2, 4, 32);
    build_random(&b, &random, "keep.scale", SAFETENSORS_F8_E8M0, 0, 256, 2, 4, 2);
    build_random(&b, &random, "int8.weight", SAFETENSORS_I8, 0, 256, 2, 4, 32); /* of floats */
    build_random(&b, &random, "int8.weight_scale", SAFETENSORS_F32, 0, 256, 2, 4, 1);
    build_random(&b, &random, "fp8.weight", SAFETENSORS_F8_E4M3, 0, 256, 2, 4, 32);
    build_random(&b, &random, "fp8.scale", SAFETENSORS_F8_E8M0, 0, 256, 2, 1, 1);
    build_random(&b, &random, "a.weight", SAFETENSORS_I8, 0, 256, 2, 4, 32);
    build_random(&b, &random, "a.scale", SAFETENSORS_F8_E8M0, 100, 5, 2, 4, 2);
    const size_t copied = b.len - 2;
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_msg(scene_convert("in.safetensors", "out.safetensors", &wishes, 2, &converted) ==
                      HONE_OK,
                  "%s", scene_error.message);
    ck_assert_uint_eq(converted, 1);
    safetensors_file *in = scene_open("in.safetensors"), *out = scene_open("out.safetensors");
    for (size_t i = 0; i < copied; i++) {
        const safetensors_tensor *a = NULL, *c = NULL;
        uint8_t *want = build_load(in, b.tensors[i].name, &a);
        uint8_t *got = build_load(out, b.tensors[i].name, &c);
        ck_assert_uint_eq(a->bytes, c->bytes);
        ck_assert_int_eq(a->dtype, c->dtype);
        ck_assert_mem_eq(a->shape, c->shape, sizeof a->shape);
        ck_assert_int_eq(memcmp(want, got, a->bytes), 0);
        free(want);
        free(got);
    }
    safetensors_close(in);
    safetensors_close(out);
}
END_TEST

START_TEST(a_given_pair_stands_before_the_table)
{
    static const pairing_rule given = {".q", ".s", ".weight", ".weight_scale_inv"};
    plan_wishes wishes = scene_wishes;
    build b = {0};
    uint64_t random = 1;
    size_t converted = 0;

    build_random(&b, &random, "a.q", SAFETENSORS_U8, 0, 256, 2, 4, 32);
    build_random(&b, &random, "a.s", SAFETENSORS_U8, 100, 5, 2, 4, 2);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_int_eq(scene_convert("in.safetensors", "none.safetensors", &wishes, 1, &converted),
                     HONE_OK);
    ck_assert_uint_eq(converted, 0);
    wishes.names = (pairing_rules){&given, 1};
    ck_assert_int_eq(scene_convert("in.safetensors", "out.safetensors", &wishes, 1, &converted),
                     HONE_OK);
    ck_assert_uint_eq(converted, 1);
    safetensors_file *out = scene_open("out.safetensors");
    free(build_load(out, "a.weight", NULL));
    free(build_load(out, "a.weight_scale_inv", NULL));
    safetensors_close(out);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("convert");

    tcase_add_checked_fixture(tests, scene_begin, scene_end);
    tcase_add_loop_test(tests, every_convention_of_names_is_folded, 0, (int)ARRAY_LEN(conventions));
    tcase_add_loop_test(tests, ragged_and_wide_matrices_are_folded, 0, (int)ARRAY_LEN(sizes));
    tcase_add_test(tests, threads_change_neither_bytes_nor_figures);
    tcase_add_test(tests, the_rest_is_copied_byte_for_byte);
    tcase_add_test(tests, a_given_pair_stands_before_the_table);
    return suite_run("convert/convert", tests);
}
