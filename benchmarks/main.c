/* main.c - hone-benchmark: runs the project's benchmarks by name and prints their rows as one table
 * or JSON.
 *
 * Each benchmark is a program bench_NAME beside this one. With --json it prints
 * {"rows":[{"name","value","unit","bar","holds"}]}; a row that does not hold makes the exit
 * status 1. */
#include <jansson.h>

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* In the order in which they are run when none is named. */
static const struct {
    const char *name, *what;
} benchmarks[] = {
    {"lookup", "a lookup among 10,000 winners"},
    {"open", "open of a store with 10,000 winners"},
    {"launch", "the library's part of a launch"},
    {"sweep", "a sweep's overhead over bare NVRTC"},
    {"emulator", "speed of the emulated GPU"},
    {"kernels", "modelled fp8 products of two models on Hopper"},
    {"scaled", "modelled block-scaled products beside plain ones on sm_120"},
    {"moe", "modelled products of a rank's experts on Hopper"},
    {"index", "modelled scores and choice of an indexer"},
    {"sass", "what the loops of Hopper's fp8 product issue"},
    {"space", "construction of a search space"},
    {"convert", "a conversion of MXFP4 weights, beside a copy"},
};
#define BENCHMARKS_LEN (sizeof benchmarks / sizeof benchmarks[0])

static bool program_path(const char *name, char path[PATH_MAX])
{
    char self[PATH_MAX - 64];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) {
        return false;
    }
    self[len] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return snprintf(path, PATH_MAX, "%s/bench_%s", self, name) < PATH_MAX;
}

/* Run one program and read the JSON that it prints; NULL when it printed none. */
static json_t *run_program(const char *name)
{
    char path[PATH_MAX], json_option[] = "--json";
    int ends[2];
    pid_t child = 0;
    posix_spawn_file_actions_t actions;

    if (!program_path(name, path) || pipe(ends) != 0) {
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    char *const arguments[] = {path, json_option, NULL};
    int failed = posix_spawn(&child, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *output = failed == 0 ? fdopen(ends[0], "r") : NULL;
    if (output == NULL) {
        close(ends[0]);
        fprintf(stderr, "hone-benchmark: %s: %s\n", path, strerror(failed));
        return NULL;
    }
    json_error_t error;
    json_t *report = json_loadf(output, JSON_DISABLE_EOF_CHECK, &error);
    fclose(output);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    if (report == NULL) {
        fprintf(stderr, "hone-benchmark: %s printed no JSON: %s\n", name, error.text);
    }
    return report;
}

/* Append the rows of one benchmark; false when it gave none. */
static bool collect(const char *name, json_t *rows)
{
    json_t *report = run_program(name);
    json_t *more = json_object_get(report, "rows");
    bool any = json_array_size(more) > 0;
    if (any) {
        json_array_extend(rows, more);
    }
    json_decref(report);
    return any;
}

static void print_table(const json_t *rows)
{
    size_t index;
    json_t *row;

    printf("%-52s %12s %-12s %12s  %s\n", "figure", "value", "unit", "bar", "holds");
    json_array_foreach((json_t *)rows, index, row)
    {
        const json_t *bar = json_object_get(row, "bar"), *holds = json_object_get(row, "holds");
        char bar_text[32] = "-";
        if (json_is_number(bar)) {
            snprintf(bar_text, sizeof bar_text, "%.4g", json_number_value(bar));
        } else if (json_is_string(bar)) {
            snprintf(bar_text, sizeof bar_text, "%s", json_string_value(bar));
        }
        const char *name = json_string_value(json_object_get(row, "name"));
        const char *unit = json_string_value(json_object_get(row, "unit"));
        printf("%-52s %12.4g %-12s %12s  %s\n", name != NULL ? name : "?",
               json_number_value(json_object_get(row, "value")), unit != NULL ? unit : "", bar_text,
               json_is_null(holds)   ? "-"
               : json_is_true(holds) ? "yes"
                                     : "NO");
    }
}

static bool all_hold(const json_t *rows)
{
    size_t index;
    json_t *row;

    json_array_foreach((json_t *)rows, index, row)
    {
        if (json_is_false(json_object_get(row, "holds"))) {
            return false;
        }
    }
    return true;
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < BENCHMARKS_LEN; i++) {
        if (strcmp(benchmarks[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void usage(FILE *to)
{
    fputs("Usage: hone-benchmark [--json] [NAME...]\n\n", to);
    for (size_t i = 0; i < BENCHMARKS_LEN; i++) {
        fprintf(to, "  %-10s %s\n", benchmarks[i].name, benchmarks[i].what);
    }
}

int main(int argc, char **argv)
{
    bool as_json = false, named = false, complete = true;
    json_t *rows = json_array();

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            json_decref(rows);
            return 0;
        } else if (!is_known(argv[i])) {
            fprintf(stderr, "hone-benchmark: no benchmark '%s'\n", argv[i]);
            usage(stderr);
            json_decref(rows);
            return 2;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            named = true;
            complete = collect(argv[i], rows) && complete;
        }
    }
    for (size_t i = 0; !named && i < BENCHMARKS_LEN; i++) {
        complete = collect(benchmarks[i].name, rows) && complete;
    }
    if (as_json) {
        json_t *report = json_pack("{s:O}", "rows", rows);
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(report);
    } else {
        print_table(rows);
    }
    bool good = complete && all_hold(rows);
    json_decref(rows);
    return good ? 0 : 1;
}
