/* test_shards.c - shards and their index, and what is left after an error: nothing. */
#include "tests/convert/build.h"
#include "tests/convert/scene.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Shards. ------------------------------------------------------------------------------- */

static void make_shards(void)
{
    build b = {0};
    uint64_t random = 1;

    ck_assert_int_eq(mkdir(scene_path("in"), 0700), 0);
    build_random(&b, &random, "a.weight", SAFETENSORS_I8, 0, 256, 2, 200, 64);
    build_random(&b, &random, "b.scale", SAFETENSORS_F8_E8M0, 100, 9, 2, 30, 1);
    build_write(&b, scene_path("in/model-1.safetensors"));
    build_random(&b, &random, "b.weight", SAFETENSORS_I8, 0, 256, 2, 30, 16);
    build_random(&b, &random, "a.scale", SAFETENSORS_F8_E8M0, 100, 9, 2, 200, 4);
    build_random(&b, &random, "norm", SAFETENSORS_F32, 0, 256, 1, 9);
    build_write(&b, scene_path("in/model-2.safetensors"));
}

static const char good_index[] =
    "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a.weight\":\"model-1.safetensors\","
    "\"b.scale\":\"model-1.safetensors\",\"b.weight\":\"model-2.safetensors\","
    "\"a.scale\":\"model-2.safetensors\",\"norm\":\"model-2.safetensors\"}}";

START_TEST(shards_keep_their_names_and_get_an_index)
{
    size_t converted = 0;
    const checkpoint_entry *entry = NULL;
    checkpoint *c = NULL;

    make_shards();
    file_write_text(scene_path("in/model.safetensors.index.json"), good_index);
    ck_assert_msg(scene_convert("in", "out", &scene_wishes, 2, &converted) == HONE_OK, "%s",
                  scene_error.message);
    ck_assert_uint_eq(converted, 2);
    ck_assert_int_eq(scene_files(), 2);
    ck_assert_msg(checkpoint_open(scene_path("out"), &c, &scene_error) == HONE_OK, "%s",
                  scene_error.message);
    ck_assert(c->indexed); /* and the reader holds it to the shards */
    ck_assert_uint_eq(c->shards_len, 2);
    ck_assert_uint_eq(c->entries_len, 5);
    entry = checkpoint_find(c, "b.scale"); /* goes where its weight is */
    ck_assert_str_eq(c->names[entry->shard], "model-2.safetensors");
    checkpoint_close(c);
    json_t *index = json_load_file(scene_path("out/model.safetensors.index.json"), 0, NULL);
    json_int_t total =
        json_integer_value(json_object_get(json_object_get(index, "metadata"), "total_size"));
    ck_assert_int_eq(total, 200 * 128 + 2 + 30 * 32 + 1 + 36);
    json_decref(index);
    /* The index may be named instead of its folder. */
    ck_assert_int_eq(
        scene_convert("in/model.safetensors.index.json", "out2", &scene_wishes, 1, &converted),
        HONE_OK);
    ck_assert_int_eq(scene_files(), 3);
    /* And a folder is never written over. */
    ck_assert_int_eq(scene_convert("in", "out", &scene_wishes, 1, &converted), HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(scene_error.message, "exists") != NULL, "%s", scene_error.message);
}
END_TEST

#define MAP(text) "{\"weight_map\":{" text "}}"
static const struct {
    const char *index;
    hone_status status;
    const char *rule;
} index_lies[] = {
    {"", HONE_BAD_TEXT, "'{'"},
    {"{}", HONE_BAD_TEXT, "weight_map"},
    {MAP("\"a\":3"), HONE_BAD_TEXT, "no .safetensors file beside"},
    {MAP("\"a\":\"../model-1.safetensors\""), HONE_BAD_TEXT, "no .safetensors file beside"},
    {MAP("\"a\":\"/etc/x.safetensors\""), HONE_BAD_TEXT, "no .safetensors file beside"},
    {MAP("\"a\":\"model-1.bin\""), HONE_BAD_TEXT, "no .safetensors file beside"},
    {MAP("\"a\":\"model-3.safetensors\""), HONE_IO, "No such file"},
    {MAP("\"a.weight\":\"model-2.safetensors\""), HONE_BAD_TEXT, "does not hold it"},
    {MAP("\"z\":\"model-1.safetensors\""), HONE_BAD_TEXT, "does not hold it"},
    {MAP("\"a.weight\":\"model-1.safetensors\""), HONE_BAD_TEXT, "leaves it out"},
    {MAP("\"a.weight\":\"model-1.safetensors\",\"a.weight\":\"model-1.safetensors\""),
     HONE_BAD_TEXT, "twice"},
};

START_TEST(an_index_that_lies_is_named)
{
    size_t converted = 0;

    make_shards();
    file_write_text(scene_path("in/model.safetensors.index.json"), index_lies[_i].index);
    ck_assert_int_eq(scene_convert("in", "out", &scene_wishes, 1, &converted),
                     index_lies[_i].status);
    ck_assert_msg(strstr(scene_error.message, index_lies[_i].rule) != NULL, "%s",
                  scene_error.message);
    ck_assert_int_eq(scene_files(), 1);
}
END_TEST

START_TEST(a_tensor_in_two_shards_is_named)
{
    size_t converted = 0;
    build b = {0};

    make_shards();
    build_add(&b, "norm", SAFETENSORS_F32, 1, 3);
    build_write(&b, scene_path("in/model-3.safetensors"));
    ck_assert_int_eq(scene_convert("in", "out", &scene_wishes, 1, &converted), HONE_BAD_TEXT);
    ck_assert_msg(strstr(scene_error.message, "'norm'") != NULL, "%s", scene_error.message);
    ck_assert_msg(strstr(scene_error.message, "model-3.safetensors") != NULL, "%s",
                  scene_error.message);
}
END_TEST

/* ---- Errors. ------------------------------------------------------------------------------- */

/* What is wrong with a pair, its status and what the error names. */
static const struct {
    int weight_cols, scale_rows, scale_cols;
    unsigned scale;
    const char *rule;
} bad_pairs[] = {
    {64, 4, 3, 110, "fit no block"},
    {64, 3, 4, 110, "fit no block"},
    {60, 4, 3, 110, "fit no block"},
    {64, 4, 4, 255, "are NaN"},
};

START_TEST(a_pair_that_does_not_fit_leaves_nothing)
{
    build b = {0};
    uint64_t random = 2;
    size_t converted = 0;

    build_random(&b, &random, "x.weight", SAFETENSORS_I8, 0, 256, 2, 4, bad_pairs[_i].weight_cols);
    build_random(&b, &random, "x.scale", SAFETENSORS_F8_E8M0, bad_pairs[_i].scale, 1, 2,
                 bad_pairs[_i].scale_rows, bad_pairs[_i].scale_cols);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_int_eq(
        scene_convert("in.safetensors", "out.safetensors", &scene_wishes, 2, &converted),
        HONE_BAD_TEXT);
    ck_assert_msg(strstr(scene_error.message, bad_pairs[_i].rule) != NULL, "%s",
                  scene_error.message);
    ck_assert_msg(strstr(scene_error.message, "'x.") != NULL, "%s", scene_error.message);
    ck_assert_msg(strstr(scene_error.message, "--skip") != NULL, "%s", scene_error.message);
    ck_assert_int_eq(scene_files(), 1);
}
END_TEST

START_TEST(two_outputs_of_one_name_are_refused)
{
    build b = {0};
    uint64_t random = 2;
    size_t converted = 0;

    build_random(&b, &random, "x_blocks", SAFETENSORS_U8, 0, 256, 3, 4, 2, 16);
    build_random(&b, &random, "x_scales", SAFETENSORS_U8, 100, 3, 2, 4, 2);
    build_add(&b, "x", SAFETENSORS_F32, 1, 1);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_int_eq(
        scene_convert("in.safetensors", "out.safetensors", &scene_wishes, 2, &converted),
        HONE_BAD_TEXT);
    ck_assert_msg(strstr(scene_error.message, "called 'x'") != NULL, "%s", scene_error.message);
    ck_assert_int_eq(scene_files(), 1);
}
END_TEST

/* The last shard fails: the ones before it vanish too. */
START_TEST(a_failure_in_the_last_shard_leaves_no_folder)
{
    build b = {0};
    uint64_t random = 2;
    size_t converted = 0;

    make_shards();
    build_random(&b, &random, "z.weight", SAFETENSORS_I8, 0, 256, 2, 4, 64);
    build_random(&b, &random, "z.scale", SAFETENSORS_F8_E8M0, 255, 1, 2, 4, 4);
    build_write(&b, scene_path("in/model-3.safetensors"));
    ck_assert_int_eq(scene_convert("in", "out", &scene_wishes, 2, &converted), HONE_BAD_TEXT);
    ck_assert_int_eq(scene_files(), 1);
}
END_TEST

static uint64_t asked_at;

static int cancel_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    ck_assert_uint_le(done, total);
    asked_at = done;
    return 1;
}

/* It is asked before it can be done (test_pool.c stops a run in its middle). */
START_TEST(a_cancelled_run_leaves_nothing)
{
    build b = {0};
    uint64_t random = 2;
    checkpoint *from = NULL;
    plan p = {0};
    const convert_options options = {.threads = 1, .progress = cancel_at_once};

    build_random(&b, &random, "z.weight", SAFETENSORS_I8, 0, 256, 2, 4096, 4096);
    build_random(&b, &random, "z.scale", SAFETENSORS_F8_E8M0, 100, 5, 2, 4096, 256);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_int_eq(checkpoint_open(scene_path("in.safetensors"), &from, &scene_error), HONE_OK);
    ck_assert_int_eq(plan_make(from, &scene_wishes, &p, &scene_error), HONE_OK);
    asked_at = UINT64_MAX;
    ck_assert_int_eq(
        convert_run(&p, scene_path("out.safetensors"), &options, scene_rows, &scene_error),
        HONE_CANCELLED);
    ck_assert_uint_lt(asked_at, p.bytes);
    ck_assert_int_eq(scene_files(), 1);
    plan_free(&p);
    checkpoint_close(from);
}
END_TEST

/* ---- What is on the disk before a run ends. ------------------------------------------------ */

enum { SYNCS_MOST = 64 };

static ino_t synced[SYNCS_MOST];
static int syncs;

/* Stands before the C library's. */
int fsync(int fd)
{
    struct stat facts;

    if (fstat(fd, &facts) == 0 && syncs < SYNCS_MOST) {
        synced[syncs++] = facts.st_ino;
    }
    return (int)syscall(SYS_fsync, fd);
}

static int syncs_of(const char *path)
{
    struct stat facts;
    int count = 0;

    ck_assert_int_eq(stat(path, &facts), 0);
    for (int i = 0; i < syncs; i++) {
        count += synced[i] == facts.st_ino;
    }
    return count;
}

START_TEST(files_and_their_folders_are_brought_to_the_disk)
{
    struct stat above;
    size_t converted = 0;

    make_shards();
    file_write_text(scene_path("in/model.safetensors.index.json"), good_index);
    syncs = 0;
    ck_assert_int_eq(scene_convert("in", "out", &scene_wishes, 1, &converted), HONE_OK);
    ck_assert_int_eq(syncs_of(scene_path("out/model-1.safetensors")), 1);
    ck_assert_int_eq(syncs_of(scene_path("out/model-2.safetensors")), 1);
    ck_assert_int_eq(syncs_of(scene_path("out/model.safetensors.index.json")), 1);
    ck_assert_int_eq(syncs_of(scene_path("out")), 3); /* after each of them */
    /* Last the folder in which it got its name. */
    ck_assert_int_eq(stat(scene_path("."), &above), 0);
    ck_assert_uint_eq(synced[syncs - 1], above.st_ino);

    syncs = 0;
    ck_assert_int_eq(scene_convert("in/model-2.safetensors", "one", &scene_wishes, 1, &converted),
                     HONE_OK);
    ck_assert_int_eq(syncs, 2);
    ck_assert_uint_eq(synced[1], above.st_ino);
}
END_TEST

START_TEST(the_input_is_never_the_output)
{
    size_t converted = 0;
    checkpoint *from = NULL;
    plan p = {0};
    const convert_options options = {.threads = 1, .replace = true};
    build b = {0};

    build_add(&b, "a.weight", SAFETENSORS_I8, 2, 4, 16);
    build_add(&b, "a.scale", SAFETENSORS_F8_E8M0, 2, 4, 1);
    build_write(&b, scene_path("in.safetensors"));
    ck_assert_int_eq(
        scene_convert("in.safetensors", "in.safetensors", &scene_wishes, 1, &converted),
        HONE_BAD_ARGUMENT);
    ck_assert_int_eq(symlink(scene_path("in.safetensors"), scene_path("link")), 0);
    ck_assert_int_eq(checkpoint_open(scene_path("in.safetensors"), &from, &scene_error), HONE_OK);
    ck_assert_int_eq(plan_make(from, &scene_wishes, &p, &scene_error), HONE_OK);
    ck_assert_int_eq(convert_run(&p, scene_path("link"), &options, scene_rows, &scene_error),
                     HONE_BAD_ARGUMENT);
    ck_assert_msg(strstr(scene_error.message, "is the input") != NULL, "%s", scene_error.message);
    plan_free(&p);
    checkpoint_close(from);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shards");

    tcase_add_checked_fixture(tests, scene_begin, scene_end);
    tcase_add_test(tests, shards_keep_their_names_and_get_an_index);
    tcase_add_loop_test(tests, an_index_that_lies_is_named, 0, (int)ARRAY_LEN(index_lies));
    tcase_add_test(tests, a_tensor_in_two_shards_is_named);
    tcase_add_loop_test(tests, a_pair_that_does_not_fit_leaves_nothing, 0,
                        (int)ARRAY_LEN(bad_pairs));
    tcase_add_test(tests, two_outputs_of_one_name_are_refused);
    tcase_add_test(tests, a_failure_in_the_last_shard_leaves_no_folder);
    tcase_add_test(tests, a_cancelled_run_leaves_nothing);
    tcase_add_test(tests, files_and_their_folders_are_brought_to_the_disk);
    tcase_add_test(tests, the_input_is_never_the_output);
    return suite_run("convert/shards", tests);
}
