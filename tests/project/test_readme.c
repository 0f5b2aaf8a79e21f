/* test_readme.c - the README's commands do what they are shown to do, through hone.sh as it lies
 * there; and hone.sh runs twice in a row, the second time without a word.
 *
 * Only in the folder that hone.sh itself builds, since it would build it first. `test` is left out:
 * this is one. `tune` gets a small budget. Benchmarks must print; figures are no matter of a test.
 */
#include "tests/cli/program.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMMANDS = 64 };

static place here;
static const char *source;
static char *commands[MOST_COMMANDS];
static size_t commands_len;

/* The lines of the blocks that are marked as sh. */
static void read_commands(void)
{
    char path[PROGRAM_PATH_BYTES];
    bool inside = false;

    snprintf(path, sizeof path, "%s/README.md", source);
    char *text = file_read(path, NULL), *rest = text;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (strncmp(line, "```", 3) == 0) {
            inside = strcmp(line, "```sh") == 0;
        } else if (inside && strncmp(line, "./hone.sh ", 10) == 0 &&
                   strncmp(line, "./hone.sh test", 14) != 0) {
            ck_assert_uint_lt(commands_len, MOST_COMMANDS);
            commands[commands_len] = strdup(line);
            ck_assert_ptr_nonnull(commands[commands_len]);
            commands_len++;
        }
    }
    free(text);
}

static program_run run_line(const char *line)
{
    const char *less = strncmp(line, "./hone.sh tune", 14) == 0
                           ? " --m 1,16 --ops act_quant,kv_quant --budget 1"
                           : "";

    return program_call(&here, "cd '%s' && %s%s", source, line, less);
}

START_TEST(every_command_of_the_readme_runs)
{
    ck_assert_uint_gt(commands_len, 0);
    for (size_t i = 0; i < commands_len; i++) {
        program_run r = run_line(commands[i]);
        const bool measures = strncmp(commands[i], "./hone.sh benchmark", 19) == 0;
        ck_assert_msg(r.exit_status == 0 || (measures && r.exit_status == 1),
                      "%s: exit %d: %.1000s%.1000s", commands[i], r.exit_status, r.out, r.err);
        ck_assert_msg(r.out[0] != '\0', "%s prints nothing", commands[i]);
        program_free(&r);
    }
}
END_TEST

START_TEST(the_second_run_has_nothing_to_set_up)
{
    for (int i = 0; i < 2; i++) {
        program_run r = run_line("./hone.sh models");
        ck_assert_msg(r.exit_status == 0, "exit %d: %s", r.exit_status, r.err);
        ck_assert_msg(strstr(r.out, "deepseek-v4.1-flash") != NULL, "%s", r.out);
        ck_assert_msg(i == 0 || r.err[0] == '\0', "%s", r.err);
        program_free(&r);
    }
}
END_TEST

static void setup(void)
{
    here = place_make();
    read_commands();
}

static void teardown(void)
{
    for (size_t i = 0; i < commands_len; i++) {
        free(commands[i]);
    }
    place_remove(&here);
}

int main(void)
{
    const char *binary = getenv("HONE_BINARY_DIR");
    char release[PROGRAM_PATH_BYTES];

    source = getenv("HONE_SOURCE_DIR");
    if (source == NULL || binary == NULL) {
        fprintf(stderr, "set HONE_SOURCE_DIR and HONE_BINARY_DIR\n");
        return 1;
    }
    snprintf(release, sizeof release, "%s/build/release", source);
    if (strcmp(binary, release) != 0) {
        printf("SKIP project/readme: %s is not what hone.sh builds\n", binary);
        return 0;
    }
    TCase *tests = tcase_create("readme");
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, every_command_of_the_readme_runs);
    tcase_add_test(tests, the_second_run_has_nothing_to_set_up);
    return suite_run_here("project/readme", tests);
}
