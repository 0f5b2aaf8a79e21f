/* test_usage.c - help, wrong usage and what is not there: every command's texts and exit statuses.
 */
#include "tests/cli/program.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

#define GEMM     "fp8_gemm:m=16,n=64,k=128,recipe=f32-1x128-128x128"
#define ON_H20   " --device emu:h20"
#define PROBLEMS "--model --all-models --tp --ep --ops --m --problem --from --fold --device --json"

static place here;

static const struct {
    const char *command, *options;
} commands[] = {
    {"devices", "--json"},
    {"models", "--model --tp --ep --ops --m --problems --block --json"},
    {"space", PROBLEMS},
    {"compile",
     "--problem --fold --device --template --config --ptx --cubin --sass --no-cache --json"},
    {"verify", PROBLEMS " --budget --seed --template --config"},
    {"bench", PROBLEMS " --seed --template --config --store --routing"},
    {"tune", PROBLEMS " --budget --seed --jobs --strategy --store --routing --deadline --memory "
                      "--seconds --device-seconds --enough --dry-run --every-size"},
    {"emu",
     "--kernel --grid --block --cluster --shared --arg --buffer --include --dump --out "
     "--sample --seed --threads --schedules --arithmetic --checks --timing --rows --device --json"},
    {"report", "--details --output --device --store --json"},
    {"lookup", PROBLEMS " --strict --allow-modelled --store"},
    {"store", "--outcome --store --json --format --output --problem --device --template --dry-run "
              "--allow-modelled"},
    {"convert", "--block --scales --requantise --rule --no-fold --pair --skip --threads --replace "
                "--check --pow2 --device "
                "--json"},
};

START_TEST(help_names_every_option)
{
    char options[512], *rest = options;
    program_run r = program_call(&here, "hone %s --help", commands[_i].command);

    ck_assert_int_eq(r.exit_status, 0);
    ck_assert_str_eq(r.err, "");
    snprintf(options, sizeof options, "%s", commands[_i].options);
    for (char *one = strsep(&rest, " "); one != NULL; one = strsep(&rest, " ")) {
        ck_assert_msg(strstr(r.out, one) != NULL, "hone %s --help lacks %s", commands[_i].command,
                      one);
    }
    program_free(&r);
    program_run all = program_call(&here, "hone --help");
    ck_assert_int_eq(all.exit_status, 0);
    ck_assert_msg(strstr(all.out, commands[_i].command) != NULL, "%s", all.out);
    program_free(&all);
}
END_TEST

/* What was given, how it ends, and what the error must name: the input, and the rule or the remedy.
 */
static const struct {
    const char *line;
    int exit_status;
    const char *input, *rule;
} wrong[] = {
    {"hone", 2, "Usage: hone COMMAND", "tune"},
    {"hone frob", 2, "'frob'", "hone --help"},
    {"hone tune --nosuch", 2, "--nosuch", "--help"},
    {"hone tune stray", 2, "'stray'", "--help"},
    {"hone tune --budget x", 2, "--budget: 'x'", "whole number from 0 to 1000000"},
    {"hone tune --budget -1", 2, "'-1'", "whole number from 0"},
    {"hone tune --budget 99999999999999999999", 2, "'99999999999999999999'", "to 1000000"},
    {"hone tune --jobs 0", 2, "--jobs: '0'", "from 1 to 256"},
    {"hone tune --deadline 0", 2, "--deadline: '0'", "from 1"},
    {"hone tune --memory 1G", 2, "--memory: '1G'", "whole number"},
    {"hone tune --enough 101", 2, "--enough: '101'", "to 100"},
    {"hone tune --from nowhere.txt", 3, "nowhere.txt", "No such file"},
    {"printf '# none\\n\\n' > n && hone tune --from n", 2, "n:", "no line holds a problem"},
    {"printf 'x\\n' > x && hone tune --from x", 2, "x:1:", "not an op"},
    {"printf '0 " GEMM "\\n' > z && hone tune --from z", 2, "z:1:", "a count from 1 on"},
    {"printf '\\000' > o && hone tune --from o", 2, "o:", "a NUL byte"},
    {"mkfifo f && hone tune --from f", 2, "f:", "no regular file"},
    {"hone tune --from n --all-models", 2, "--from", "not both"},
    {"hone tune --seed 1.5", 2, "--seed: '1.5'", "whole number"},
    {"hone tune --strategy best", 2, "'best'", "model, random, exhaustive and guided"},
    {"hone tune --m 1,,2", 2, "--m: ''", "whole number from 1"},
    {"hone tune --m 0", 2, "--m: '0'", "from 1"},
    {"hone tune --tp 0", 2, "--tp: '0'", "from 1"},
    {"hone tune --fold m", 2, "'m'", "k (both operands to 128 of K), block"},
    {"hone verify --fold k --problem " GEMM, 2, "--fold: a_scale=f32", "hone_pack_scales"},
    {"hone space --fold n --model deepseek-v3", 2, "no problem can be folded", "f32 scales"},
    {"hone tune --ops gelu", 2, "'gelu'", "fp8_gemm act_quant kv_quant"},
    {"hone tune --model nothing", 2, "'nothing'", "deepseek-v4.1-flash"},
    {"hone tune --problem nonsense", 2, "\"nonsense\"", "op:field=value"},
    {"hone tune --problem fp8_gemm:m=-1,n=64,k=128,recipe=f32-1x128-128x128", 2, "m=-1",
     "must lie in 0.."},
    {"hone tune --problem fp8_gemm:m=16,n=64,k=128,recipe=f32-2x128-128x128", 2, "a_gran_mn=2",
     "1x32 or 1x128"},
    {"hone tune --model deepseek-v3 --problem " GEMM, 2, "--problem", "not both"},
    {"hone tune --device emu:nothing --problem " GEMM, 2, "'nothing'", "h20"},
    {"hone tune --device 7 --problem " GEMM, 2, "7:", "auto, cuda:NUMBER, cuda:UUID or emu:GPU"},
    {"hone lookup", 2, "no problem is named", "--problem TEXT"},
    {"hone space", 2, "no problem is named", "--model NAME"},
    {"hone verify", 2, "no problem is named", "--problem TEXT"},
    {"hone bench", 2, "no problem is named", "--problem TEXT"},
    {"hone bench --routing most --problem " GEMM, 2, "most: neither a distribution", "zipf"},
    {"hone verify --template none --problem " GEMM ON_H20, 2, "none:", "hone space"},
    {"hone verify --template fp8_gemm/mma_sync --config block_m=16 --problem " GEMM ON_H20, 2,
     "'block_m=16'", "name=value for each parameter"},
    {"hone bench --template fp8_gemm/mma_sync --config block_m=16 --problem " GEMM ON_H20, 2,
     "'block_m=16'", "name=value for each parameter"},
    {"hone report --device emu:nothing", 2, "emu:nothing", "hone devices"},
    {"hone report stray", 2, "'stray'", "--help"},
    {"hone store frob", 2, "'frob'", "check and list"},
    {"hone store check stray", 2, "'stray'", "no plain argument"},
    {"hone store export", 2, "--format", "cachefile, t4"},
    {"hone store export --format t4", 2, "--output", "name one"},
    {"hone store export --format t4 --output t --device emu:nothing", 2, "emu:nothing",
     "hone devices"},
    {"hone store import --format cachefile", 2, "store import", "no FILE"},
    {"hone store import --format cachefile nowhere.json", 3, "nowhere.json", "cannot be read"},
    {"hone models show nothing", 2, "'nothing'", "deepseek-v3"},
    {"hone convert", 2, "INPUT and OUTPUT", "safetensors"},
    {"hone convert a b c", 2, "'c'", "one name too many"},
    {"hone convert a b --block 64x64", 2, "--block: '64x64'", "128x128, 32x32, 1x128"},
    {"hone convert a b --scales bf16", 2, "--scales: 'bf16'", "e8m0, f32"},
    {"hone convert a b --rule floor", 2, "--rule: 'floor'", "ceil, amax, nearest"},
    {"hone convert a b --pair x", 2, "--pair: 'x'", "WEIGHT=SCALE"},
    {"hone convert a b --threads 0", 2, "--threads: '0'", "from 1 to 16"},
    {"hone convert nothing.safetensors b", 3, "nothing.safetensors", "No such file"},
    {"hone devices stray", 2, "hone devices", "--help"},
};

START_TEST(wrong_usage_is_named)
{
    program_run r = program_call(&here, "%s", wrong[_i].line);

    ck_assert_msg(r.exit_status == wrong[_i].exit_status, "%s: exit %d: %s", wrong[_i].line,
                  r.exit_status, r.err);
    ck_assert_str_eq(r.out, "");
    ck_assert_msg(strstr(r.err, wrong[_i].input) != NULL, "%s: '%s' lacks the input '%s'",
                  wrong[_i].line, r.err, wrong[_i].input);
    ck_assert_msg(strstr(r.err, wrong[_i].rule) != NULL, "%s: '%s' lacks the rule '%s'",
                  wrong[_i].line, r.err, wrong[_i].rule);
    program_free(&r);
}
END_TEST

/* Commands that read a store make none, and say where they looked. */
static const char *const readers[] = {"report", "store check", "store list",
                                      "lookup --problem " GEMM ON_H20};

START_TEST(a_missing_store_is_named_and_not_made)
{
    program_run r = program_call(&here, "hone %s --store missing.db", readers[_i]);

    ck_assert_msg(r.exit_status == 3, "%s: exit %d", readers[_i], r.exit_status);
    ck_assert_msg(strstr(r.err, "missing.db") != NULL, "%s", r.err);
    ck_assert_str_eq(r.out, "");
    program_free(&r);
    r = program_call(&here, "test ! -e missing.db");
    ck_assert_int_eq(r.exit_status, 0);
    program_free(&r);
}
END_TEST

START_TEST(a_file_that_is_no_store_is_refused)
{
    program_run r = program_call(
        &here,
        "printf 'this is a letter, and no store of anything at all\\n' >letter; hone %s "
        "--store letter",
        readers[_i]);

    ck_assert_msg(r.exit_status != 0 && r.exit_status != -1, "%s: exit %d", readers[_i],
                  r.exit_status);
    ck_assert_msg(strstr(r.err, "letter") != NULL, "%s", r.err);
    ck_assert_str_eq(r.out, "");
    program_free(&r);
}
END_TEST

/* Results that need no store: they print JSON, of this many elements at least. */
static const struct {
    const char *line;
    size_t least;
} documents[] = {
    {"hone devices --json", 20},
    {"hone models --json", 14},
    {"hone models show deepseek-v3 --tp 8 --problems --m 1 --json", 4},
    {"hone space --problem " GEMM ON_H20 " --json", 1},
    {"hone space --model deepseek-v4.1-flash --m 16 --ops act_quant" ON_H20 " --json", 4},
};

START_TEST(results_are_json_when_asked)
{
    json_t *root = program_json(&here, documents[_i].line);
    size_t len = json_is_array(root) ? json_array_size(root) : json_object_size(root);

    ck_assert_msg(len >= documents[_i].least, "%s: %zu elements", documents[_i].line, len);
    json_decref(root);
}
END_TEST

#define PER_32 "fp8_gemm:m=16,n=64,k=128,recipe=ue8m0-1x32-32x32"
static const char *const folds[][2] = {
    {"k", "recipe=ue8m0-1x128-32x128,"},
    {"block", "recipe=ue8m0-1x128-128x128,"},
    {"n", "recipe=ue8m0-1x32-128x32,"},
};

/* Also of a model, whose other problems stay as they are. */
START_TEST(a_folded_problem_is_what_is_shown)
{
    program_run r =
        program_call(&here, "hone space --fold %s --problem " PER_32 ON_H20, folds[_i][0]);

    ck_assert_msg(r.exit_status == 0 && strstr(r.out, folds[_i][1]) != NULL, "%s%s", r.out, r.err);
    program_free(&r);
    r = program_call(&here, "hone space --fold %s --model deepseek-v4.1-flash --m 16" ON_H20,
                     folds[_i][0]);
    ck_assert_msg(r.exit_status == 0 && strstr(r.out, folds[_i][1]) != NULL &&
                      strstr(r.out, "recipe=ue8m0-1x32-32x32,") == NULL &&
                      strstr(r.out, "act_quant:") != NULL,
                  "%s%s", r.out, r.err);
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
    TCase *tests = tcase_create("usage");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, help_names_every_option, 0, sizeof commands / sizeof commands[0]);
    tcase_add_loop_test(tests, a_folded_problem_is_what_is_shown, 0,
                        sizeof folds / sizeof folds[0]);
    tcase_add_loop_test(tests, wrong_usage_is_named, 0, sizeof wrong / sizeof wrong[0]);
    tcase_add_loop_test(tests, a_missing_store_is_named_and_not_made, 0,
                        sizeof readers / sizeof readers[0]);
    tcase_add_loop_test(tests, a_file_that_is_no_store_is_refused, 0,
                        sizeof readers / sizeof readers[0]);
    tcase_add_loop_test(tests, results_are_json_when_asked, 0,
                        sizeof documents / sizeof documents[0]);
    return suite_run_here("cli/usage", tests);
}
