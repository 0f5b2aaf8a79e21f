/* test_convert.c - `hone convert` from the outside: what it prints, how it ends, what it leaves
 * when it is interrupted. */
#include "tests/cli/holes.h"
#include "tests/convert/build.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static place here;

static const char *path_of(const char *name)
{
    return holes_path(&here, name);
}

/* Two MXFP4 weights, one whose exponents spread too far, and an e4m3 weight of 32x32. */
static void make_checkpoint(void)
{
    build b = {0};
    uint64_t random = 1;

    build_random(&b, &random, "a.weight", SAFETENSORS_I8, 0, 256, 2, 256, 128);
    build_random(&b, &random, "a.scale", SAFETENSORS_F8_E8M0, 110, 15, 2, 256, 8);
    build_random(&b, &random, "b.weight", SAFETENSORS_I8, 0, 256, 2, 256, 128);
    build_random(&b, &random, "b.scale", SAFETENSORS_F8_E8M0, 100, 40, 2, 256, 8);
    build_random(&b, &random, "c.weight", SAFETENSORS_F8_E4M3, 0, 0x70, 2, 256, 256);
    build_random(&b, &random, "c.scale", SAFETENSORS_F8_E8M0, 100, 4, 2, 8, 8);
    build_random(&b, &random, "norm", SAFETENSORS_F32, 0, 64, 1, 9);
    build_write(&b, path_of("in.safetensors"));
}

static json_int_t integer(const json_t *root, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(root, key)), "no whole number '%s'", key);
    return json_integer_value(json_object_get(root, key));
}

START_TEST(a_conversion_reports_each_tensor)
{
    make_checkpoint();
    json_t *root = program_json(
        &here, "hone convert --json --requantise --scales f32 in.safetensors out.safetensors");
    const json_t *rows = json_object_get(root, "tensors");
    ck_assert_uint_eq(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "tensor"));
        const json_int_t blocks = integer(row, "blocks"), exact = integer(row, "blocks_exact");
        ck_assert_int_eq(blocks, 4);
        if (name[0] == 'a') {
            ck_assert_int_eq(exact, 4);
            ck_assert_int_eq(integer(row, "inexact"), 0);
            ck_assert_double_eq(json_real_value(json_object_get(row, "error")), 0);
            ck_assert_double_gt(json_real_value(json_object_get(row, "amax_448")), 0);
        } else if (name[0] == 'b') {
            ck_assert_int_eq(exact, 0);
            ck_assert_int_eq(integer(row, "blocks_wide"), 4);
            ck_assert_int_gt(integer(row, "inexact"), 0);
        } else {
            ck_assert_str_eq(json_string_value(json_object_get(row, "done")), "requantise");
            ck_assert_int_eq(integer(row, "saturated"), 0);
        }
    }
    ck_assert_int_eq(integer(root, "copied"), 1);
    json_decref(root);

    program_run r = program_call(&here, "hone convert in.safetensors text.safetensors");
    ck_assert_int_eq(r.exit_status, 0);
    ck_assert(program_says(&r, "a.weight: 4 of 4 blocks of 128x128 exact; amax/448 would cost"));
    ck_assert(program_says(&r, "b.weight: 0 of 4 blocks of 128x128 exact, 4 not:"));
    ck_assert(program_says(&r, "2 folded (4 of 8 blocks exact), 0 requantised"));
    program_free(&r);
}
END_TEST

START_TEST(an_output_that_exists_is_kept_unless_told)
{
    struct stat before, after;

    make_checkpoint();
    program_run r = program_call(&here, "echo mine > out && hone convert in.safetensors out");
    ck_assert_int_eq(r.exit_status, 2);
    ck_assert(program_says(&r, "out: exists"));
    program_free(&r);
    ck_assert_int_eq(stat(path_of("out"), &before), 0);
    ck_assert_int_eq(before.st_size, 5);
    r = program_call(&here, "hone convert --replace in.safetensors out");
    ck_assert_int_eq(r.exit_status, 0);
    program_free(&r);
    ck_assert_int_eq(stat(path_of("out"), &after), 0);
    ck_assert_int_gt(after.st_size, 100000);
}
END_TEST

/* A line after the files are made, its exit status, what it must say; nothing is left in any. */
static const struct {
    const char *line;
    int exit_status;
    const char *words;
} endings[] = {
    {"hone convert --no-fold in.safetensors out", 1, "nothing was written"},
    {"head -c 300 in.safetensors > cut; hone convert cut out", 2, "it was cut"},
    {"head -c 99999 in.safetensors > cut; hone convert cut out", 2, "lie outside"},
    {"echo hello > cut; hone convert cut out", 2, "cut: "},
    {"hone convert in.safetensors none/out", 3, "no file can be made beside it"},
    {"hone convert in.safetensors in.safetensors --replace", 2, "is the input"},
    {"hone convert --check in.safetensors out", 2, "the INPUT alone"},
    {"hone convert --requantise --rule amax in.safetensors out", 2, "--scales f32"},
    {"(ulimit -f 40; trap '' XFSZ; hone convert in.safetensors out)", 3, "write elsewhere"},
};

START_TEST(a_failure_leaves_no_output)
{
    make_checkpoint();
    program_run r = program_call(&here, "%s", endings[_i].line);
    ck_assert_msg(r.exit_status == endings[_i].exit_status, "exit %d: %s", r.exit_status, r.err);
    ck_assert_msg(program_says(&r, endings[_i].words), "%s", r.err);
    program_free(&r);
    r = program_call(&here, "rm -f cut; ls -A");
    ck_assert_str_eq(r.out, "in.safetensors\n");
    program_free(&r);
}
END_TEST

START_TEST(a_check_fails_by_its_exit_status)
{
    build b = {0};
    uint64_t random = 1;

    make_checkpoint();
    program_run r = program_call(&here, "hone convert --check in.safetensors");
    ck_assert_msg(r.exit_status == 0, "%s%s", r.out, r.err);
    ck_assert(program_says(&r, "1 e4m3 and 2 MXFP4 weights"));
    ck_assert(program_says(&r, "nothing wrong was found"));
    program_free(&r);

    build_random(&b, &random, "x.weight", SAFETENSORS_F8_E4M3, 0, 0x70, 2, 8, 8);
    const float scale = 0.3f;
    memcpy(build_add(&b, "x.weight_scale_inv", SAFETENSORS_F32, 2, 1, 1), &scale, 4);
    build_random(&b, &random, "y.weight", SAFETENSORS_F8_E4M3, 0, 0x70, 2, 8, 8);
    build_write(&b, path_of("bad.safetensors"));
    r = program_call(&here, "hone convert --check --pow2 bad.safetensors");
    ck_assert_int_eq(r.exit_status, 1);
    ck_assert(program_says(&r, "pow2     x.weight_scale_inv: scales that are no powers of two"));
    ck_assert(program_says(&r, "1 of 1, the first at [0, 0]; requantise"));
    ck_assert(program_says(&r, "missing  y.weight:"));
    ck_assert(program_says(&r, "the check FAILED"));
    program_free(&r);
    /* The same meaning from the config.json beside it. */
    r = program_call(&here,
                     "echo '{\"quantization_config\":{\"scale_fmt\":\"ue8m0\"}}' > config.json; "
                     "hone convert --check --json bad.safetensors");
    ck_assert_int_eq(r.exit_status, 1);
    json_t *root = json_loads(r.out, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(root, "findings")), 2);
    json_decref(root);
    program_free(&r);
}
END_TEST

/* Wait for the run's hidden file: it has begun then. */
static void wait_for_a_file(pid_t group)
{
    for (int tries = 0; tries < 3000; tries++) {
        program_run r = program_call(&here, "ls -A | grep -q '^[.]out[.]'");
        const bool there = r.exit_status == 0;
        program_free(&r);
        if (there) {
            return;
        }
        ck_assert_int_eq(kill(-group, 0), 0);
        usleep(5000);
    }
    ck_abort_msg("the run did not begin");
}

/* Stopped after it began and before it can be done (1 GiB by one thread; it is asked ten times a
 * second whether to stop): no output, and nothing hidden but what SIGKILL leaves. */
START_TEST(an_interrupted_run_leaves_no_output)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    struct stat facts;

    holes_mxfp4(&here, "big.safetensors", 131072);
    pid_t group =
        program_start(&here, "stopped", "exec \"$HONE\" convert --threads 1 big.safetensors out");
    wait_for_a_file(group);
    kill(-group, signals[_i]);
    program_run r = program_wait(&here, "stopped", group);
    if (signals[_i] == SIGKILL) {
        ck_assert_int_eq(r.signal, SIGKILL);
    } else {
        ck_assert_msg(r.exit_status > 0 && strstr(r.err, "nothing was written") != NULL,
                      "exit %d: %s", r.exit_status, r.err);
    }
    program_free(&r);
    ck_assert_int_ne(stat(path_of("out"), &facts), 0);
    r = program_call(&here, "ls -A | grep -v big; true");
    ck_assert_str_eq(signals[_i] == SIGKILL ? "" : r.out, "");
    program_free(&r);
}
END_TEST

static void setup(void)
{
    here = place_make();
}

static void teardown(void)
{
    place_remove(&here);
}

int main(void)
{
    TCase *tests = tcase_create("convert");

    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_conversion_reports_each_tensor);
    tcase_add_test(tests, an_output_that_exists_is_kept_unless_told);
    tcase_add_loop_test(tests, a_failure_leaves_no_output, 0, (int)ARRAY_LEN(endings));
    tcase_add_test(tests, a_check_fails_by_its_exit_status);
    tcase_add_loop_test(tests, an_interrupted_run_leaves_no_output, 0, 4);
    return suite_run("cli/convert", tests);
}
