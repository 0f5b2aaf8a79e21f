/* test_engine.c - the config files of serving engines: names, buckets, tiles, and what has none. */
#include "exchange/engine.h"
#include "tests/cache/scratch.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK "recipe=f32-1x128-128x128"
#define SMALL                                                                                      \
    "swap=0 block_m=16 block_n=64 block_k=128 warps_m=1 warps_n=4 warps_k=1 stages=3 raster=8"
#define WIDE "swap=0 block_m=64 block_n=128 row_groups=1 column_groups=2 stages=4 share=1 raster=16"

static const struct {
    const char *problem, *config;
} winners[] = {
    {"moe_gemm:tokens=64,topk=8,experts=256,n=4096,k=7168,group_layout=contiguous," BLOCK, SMALL},
    {"moe_gemm:tokens=1,topk=8,experts=256,n=4096,k=7168,group_layout=contiguous," BLOCK, WIDE},
    /* the bucket of the first one, by a kernel that the engines' is not */
    {"moe_gemm:tokens=64,topk=8,experts=256,n=4096,k=7168,group_layout=contiguous,"
     "activation=silu_mul," BLOCK,
     WIDE},
    {"moe_gemm:tokens=4096,topk=8,experts=256,n=4096,k=7168,group_layout=contiguous,"
     "activation=silu_mul," BLOCK,
     SMALL},
    {"moe_gemm:tokens=64,topk=8,experts=256,n=7168,k=2048,group_layout=contiguous," BLOCK, SMALL},
    {"moe_gemm:tokens=64,topk=8,experts=16,n=7168,k=2048,group_layout=contiguous," BLOCK, SMALL},
    {"fp8_gemm:m=128,n=1536,k=7168," BLOCK, WIDE},
    {"fp8_gemm:m=256,n=1536,k=7168," BLOCK,
     "block_m=64 block_n=96 row_groups=1 column_groups=1 stages=4"},
    {"fp8_gemm:m=512,n=1536,k=7168," BLOCK,
     "block_m=64 block_n=128 row_groups=1 column_groups=1 stages=4 split_k=2"},
    {"fp8_gemm:m=128,n=1536,k=7168,recipe=ue8m0-1x32-1x32", SMALL},
    {"act_quant:m=128,k=7168", "vec=4 threads=64 rows=1 repeat=1"},
};

static void fill(const char *device, int32_t timer)
{
    const store_sweep sweep = {"hone tune", "13.0.88", 13000, 7};
    device_kind kind = scratch_kind();
    int64_t run = 0, device_id = 0, problem = 0, id = 0;
    store *s = NULL;
    hone_error e = {0};

    snprintf(kind.name, sizeof kind.name, "%s", device);
    ck_assert_int_eq(store_open(scratch_here.path, STORE_WRITE, &s, &e), HONE_OK);
    ck_assert_int_eq(store_sweep_begin(s, &sweep, &run, &e), HONE_OK);
    ck_assert_int_eq(store_device_id(s, &kind, &device_id, &e), HONE_OK);
    for (size_t i = 0; i < sizeof winners / sizeof winners[0]; i++) {
        hone_problem p;
        store_result r = scratch_result((int)i);
        r.timer = timer;
        ck_assert_msg(hone_problem_parse(winners[i].problem, &p, &e) == HONE_OK, "%s: %s",
                      winners[i].problem, e.message);
        ck_assert_int_eq(store_problem_id(s, &p, &problem, &e), HONE_OK);
        const store_key key = {problem, device_id, "t/t", winners[i].config, {0}, NULL};
        ck_assert_int_eq(store_candidate_record(s, run, &key, &r, &id, &e), HONE_OK);
        ck_assert_int_eq(store_winner_set(s, problem, device_id, id, STORE_VERDICT_CLEAR, &e),
                         HONE_OK);
    }
    ck_assert_int_eq(store_sweep_end(s, run, &e), HONE_OK);
    ck_assert_int_eq(store_close(s, &e), HONE_OK);
}

static engine_counts write_files(engine_kind kind, bool modelled)
{
    const exchange_choice all = {0};
    engine_counts counts;
    store *s = NULL;

    ck_assert_int_eq(store_open(scratch_here.path, STORE_READ, &s, &scratch_error), HONE_OK);
    ck_assert_msg(engine_write(s, &all, kind, modelled, scratch_here.folder, &counts,
                               &scratch_error) == HONE_OK,
                  "%s", scratch_error.message);
    store_close(s, NULL);
    return counts;
}

/* The file, as an engine reads it. */
static json_t *load(const char *name)
{
    char path[FOLDER_BYTES + 256];

    snprintf(path, sizeof path, "%s/%s", scratch_here.folder, name);
    char *text = file_read(path, NULL);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(root), "%s: %s", name, text);
    free(text);
    return root;
}

/* Every key is a whole number, as SGLang's int(key) wants it, in ascending order. */
static void demand_buckets(json_t *root, const long *buckets, size_t len)
{
    const char *key;
    json_t *value;
    size_t at = 0;

    json_object_foreach(root, key, value)
    {
        char *end = NULL;
        ck_assert_uint_lt(at, len);
        ck_assert_int_eq(strtol(key, &end, 10), buckets[at]);
        ck_assert_int_eq(*end, '\0');
        ck_assert_uint_eq(json_object_size(value), 6);
        at++;
    }
    ck_assert_uint_eq(at, len);
}

static void demand_tile(json_t *root, const char *bucket, const int want[6])
{
    static const char *const names[] = {"BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K",
                                        "GROUP_SIZE_M", "num_warps",    "num_stages"};

    for (int i = 0; i < 6; i++) {
        const json_t *value = json_object_get(json_object_get(root, bucket), names[i]);
        ck_assert_msg(json_is_integer(value) && json_integer_value(value) == want[i], "%s %s",
                      bucket, names[i]);
    }
}

static const int small[] = {16, 64, 128, 8, 4, 3}, wide[] = {64, 128, 128, 16, 8, 4};

START_TEST(vllm_files_are_named_without_spaces)
{
    fill("NVIDIA H200 NVL", STORE_TIMER_EVENTS);
    const engine_counts c = write_files(ENGINE_VLLM, false);
    json_t *moe = load("E=256,N=2048,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128]"
                       ".json");
    demand_buckets(moe, (const long[]){1, 64, 4096}, 3);
    demand_tile(moe, "1", wide);
    demand_tile(moe, "64", small); /* of the plain kernel, not the gated one's */
    demand_tile(moe, "4096", small);
    json_decref(moe);
    json_t *dense = load("N=1536,K=7168,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape="
                         "[128,128].json");
    demand_buckets(dense, (const long[]){128}, 1);
    demand_tile(dense, "128", wide);
    json_decref(dense);
    ck_assert_uint_eq(c.files, 2);
    ck_assert_uint_eq(c.entries, 4);
    ck_assert_uint_eq(c.crowded, 1);
    ck_assert_uint_eq(c.tile, 2);    /* 96 columns; K split */
    ck_assert_uint_eq(c.untold, 1);  /* of 16 experts, without a partner */
    ck_assert_uint_eq(c.foreign, 3); /* a scale a row, a quantiser, and vLLM has no file for down */
    ck_assert_uint_eq(c.modelled, 0);
}
END_TEST

START_TEST(sglang_files_are_named_with_a_space_and_down)
{
    fill("NVIDIA H200 NVL", STORE_TIMER_EVENTS);
    const engine_counts c = write_files(ENGINE_SGLANG, false);
    json_t *moe = load("E=256,N=2048,device_name=NVIDIA_H200_NVL,dtype=fp8_w8a8,block_shape=[128, "
                       "128].json");
    demand_buckets(moe, (const long[]){1, 64, 4096}, 3);
    json_decref(moe);
    json_t *down = load("E=256,N=2048,device_name=NVIDIA_H200_NVL,dtype=fp8_w8a8,block_shape=[128,"
                        " 128]_down.json");
    demand_buckets(down, (const long[]){64}, 1);
    json_decref(down);
    ck_assert_uint_eq(c.files, 3);
    ck_assert_uint_eq(c.foreign, 2);
}
END_TEST

/* Where an entry comes from lies beside it. */
START_TEST(provenance_lies_beside)
{
    fill("NVIDIA H20", STORE_TIMER_EVENTS);
    write_files(ENGINE_VLLM, false);
    json_t *root = load("N=1536,K=7168,device_name=NVIDIA_H20,dtype=fp8_w8a8,block_shape=[128,128]"
                        ".hone.json");
    json_t *one = json_object_get(root, "128");
    ck_assert_str_eq(json_string_value(json_object_get(one, "config")), WIDE);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(one, "problem")), "m=128,"));
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_object_get(one, "device"), "sm_count")), 78);
    ck_assert_str_eq(json_string_value(json_object_get(one, "timer")), "events");
    json_decref(root);
}
END_TEST

/* A file of the GPU's name must not hold modelled choices unless they are asked for. */
START_TEST(modelled_winners_are_left_out)
{
    fill("NVIDIA H20", STORE_TIMER_MODELLED);
    engine_counts c = write_files(ENGINE_VLLM, false);
    ck_assert_uint_eq(c.files, 0);
    ck_assert_uint_gt(c.modelled, 0);
    c = write_files(ENGINE_VLLM, true);
    ck_assert_uint_eq(c.files, 2);
    ck_assert_uint_eq(c.modelled, 0);
}
END_TEST

START_TEST(tiles_that_triton_lacks_are_named)
{
    static const struct {
        const char *text, *why;
    } tiles[] = {
        {"block_m=8 block_n=64 warps_m=1 stages=2", "power of two"},
        {"block_m=16 block_n=96 warps_m=1 stages=2", "power of two"},
        {"block_m=16 block_n=64 block_k=256 warps_m=1 stages=2", "past one scale"},
        {"block_m=16 block_n=64 split_k=2 stages=2", "split"},
        {"block_m=16 block_n=64 share=3 stages=2", "split"},
        {"block_m=16 block_n=64 row_groups=3 stages=2", "warps"},
        {"block_m=16 block_n=64", "warps"},
        {"vec=4", "power of two"},
        {"nonsense", "no list"},
    };
    engine_tile tile = {.block_m = -1};

    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const char *why = engine_tile_of(tiles[i].text, 128, &tile);
        ck_assert_msg(why != NULL && strstr(why, tiles[i].why) != NULL, "%s: %s", tiles[i].text,
                      why != NULL ? why : "taken");
        ck_assert_int_eq(tile.block_m, -1);
    }
    ck_assert_ptr_null(engine_tile_of(SMALL, 128, &tile));
    ck_assert_int_eq(tile.warps, 4);
}
END_TEST

static hone_status seeds_of(const char *text, char **out, uint64_t *len)
{
    char path[FOLDER_BYTES + 64];

    snprintf(path, sizeof path, "%s/engine.json", scratch_here.folder);
    file_write_text(path, text);
    return engine_read_seeds(path, out, len, &scratch_error);
}

#define TILE                                                                                       \
    "{\"BLOCK_SIZE_M\":16,\"BLOCK_SIZE_N\":64,\"BLOCK_SIZE_K\":128,\"GROUP_SIZE_M\":16,"           \
    "\"num_warps\":4,\"num_stages\":3}"

START_TEST(an_engines_file_gives_seeds)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"{\"1\":" TILE ",\"1\":" TILE "}", "duplicate"},
        {"{\"-1\":" TILE "}", "no bucket"},
        {"{\"0\":" TILE "}", "no bucket"},
        {"{\"1.5\":" TILE "}", "no bucket"},
        {"{\"9999999999999\":" TILE "}", "no bucket"},
        {"{\"64\":[1]}", "bucket '64': is no object"},
        {"{\"64\":{\"BLOCK_SIZE_M\":16}}", "'BLOCK_SIZE_N' is no whole number"},
        {"{\"64\":{\"BLOCK_SIZE_M\":1e3}}", "'BLOCK_SIZE_M' is no whole number"},
        {"{\"64\":" TILE, "column"},
        {"[]", "no JSON object"},
    };
    char *text = NULL;
    uint64_t len = 0;

    ck_assert_msg(seeds_of("{\"triton_version\":\"3.4.0\",\"1\":" TILE ",\"64\":" TILE "}", &text,
                           &len) == HONE_OK,
                  "%s", scratch_error.message);
    ck_assert_uint_eq(len, 2);
    ck_assert_str_eq(text, "m=1 block_m=16 block_n=64 block_k=128 raster=16 warps=4 stages=3\n"
                           "m=64 block_m=16 block_n=64 block_k=128 raster=16 warps=4 stages=3\n");
    free(text);
    text = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_msg(seeds_of(wrong[i].text, &text, &len) == HONE_BAD_TEXT, "%s: taken",
                      wrong[i].text);
        ck_assert_msg(strstr(scratch_error.message, wrong[i].says) != NULL, "%s: %s", wrong[i].text,
                      scratch_error.message);
        ck_assert_ptr_null(text);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("engine");

    scratch_fixture(tests);
    tcase_add_test(tests, vllm_files_are_named_without_spaces);
    tcase_add_test(tests, sglang_files_are_named_with_a_space_and_down);
    tcase_add_test(tests, provenance_lies_beside);
    tcase_add_test(tests, modelled_winners_are_left_out);
    tcase_add_test(tests, tiles_that_triton_lacks_are_named);
    tcase_add_test(tests, an_engines_file_gives_seeds);
    return suite_run("exchange/engine", tests);
}
