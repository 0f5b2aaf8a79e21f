/* test_command.c - `hone models` and `hone devices` from the outside: what they print, and how they
 * exit. */
#include "tests/models/claims.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* Run the program; all that it prints lands in `text`. Returns its exit status. */
static int run(const char *arguments, const char *redirect, char *text, size_t capacity)
{
    const char *binary = getenv("HONE_BINARY_DIR");
    char command[1024];

    ck_assert_ptr_nonnull(binary);
    snprintf(command, sizeof command, "'%s/cli/hone' %s %s", binary, arguments, redirect);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t len = fread(text, 1, capacity - 1, pipe);
    text[len] = '\0';
    int status = pclose(pipe);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static const struct {
    const char *arguments;
    int exit_status;
    const char *says;
} runs[] = {
    {"models", 0, "deepseek-v4.1-flash      551.88 B"},
    {"models --help", 0, "show NAME"},
    {"models show deepseek-v3 --tp 8", 0, "3072 x 1536"},
    {"models show deepseek-v4.1-flash --tp 8 --block 128", 0,
     "refused: n part 288 is not whole blocks of 128"},
    {"models show deepseek-v4.1-flash --tp 8 --problems --m 16 --ops kv_quant", 0,
     "record=v41_528-interleaved-pow2_amax-v1"},
    {"models show qwen3-235b-a22b --tp 8 --problems", 2, "experts.w13: n part 192"},
    {"models show qwen3-235b-a22b --tp 8 --ep 8 --problems --m 1", 0, "recipe=f32-1x128-128x128"},
    {"models show nothing", 2, "no model 'nothing'; there are: deepseek-v3"},
    {"models show", 2, "no model is named"},
    {"models shwo", 2, "'shwo' is not understood"},
    {"models show deepseek-v3 --tp zero", 2, "--tp"},
    {"models show deepseek-v3 --ops gelu --problems", 2, "no op 'gelu'"},
    {"devices", 0, "emu:h20"},
    {"devices --help", 0, "emulated"},
    {"devices nonsense", 2, "hone devices"},
};

START_TEST(a_command_prints_and_exits)
{
    static char text[1 << 20];
    int status = run(runs[_i].arguments, "2>&1", text, sizeof text);

    ck_assert_msg(status == runs[_i].exit_status, "%s: exit %d: %s", runs[_i].arguments, status,
                  text);
    ck_assert_msg(strstr(text, runs[_i].says) != NULL, "%s: %s", runs[_i].arguments, text);
}
END_TEST

static json_t *run_json(const char *arguments)
{
    static char text[1 << 20];
    json_error_t error;

    ck_assert_int_eq(run(arguments, "", text, sizeof text), 0);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s: line %d: %s", arguments, error.line, error.text);
    return root;
}

START_TEST(json_holds_what_the_text_holds)
{
    json_t *models = run_json("models --json"), *devices = run_json("devices --json");
    json_t *one = run_json("models show deepseek-v4.1-flash --tp 8 --problems --m 1,16 --json");
    size_t emulated = 0, i;
    json_t *row;

    ck_assert_uint_eq(json_array_size(models), 14);
    json_array_foreach(devices, i, row)
    {
        emulated += json_is_true(json_object_get(row, "emulated"));
    }
    ck_assert_uint_eq(emulated, 25);
    ck_assert_str_eq(json_string_value(json_object_get(one, "model")), "deepseek-v4.1-flash");
    ck_assert_int_eq(json_integer_value(json_object_get(one, "tp")), 8);
    ck_assert_uint_eq(json_array_size(json_object_get(one, "shapes")), 22);
    /* 7 GEMMs, the 6 activations that feed them, 5 caches; each at two M */
    ck_assert_uint_eq(json_array_size(json_object_get(one, "problems")), 36);
    json_decref(models);
    json_decref(devices);
    json_decref(one);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("command");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_command_prints_and_exits, 0, sizeof runs / sizeof runs[0]);
    tcase_add_test(tests, json_holds_what_the_text_holds);
    return suite_run("models/command", tests);
}
