/* The include graph: no arrow runs upwards or sideways, and no two files include each other. */
#include "tests/support/suite.h"

#include <check.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 1024
#define MAX_EDGES 8192

#define ANY_FLOOR 9 /* tests and benchmarks may include anything, one another as well */

static const struct {
    const char *folder;
    int floor;
} floors[] = {
    {"include", 0},       {"core", 1},  {"models", 2},  {"templates", 2},
    {"emulator", 3},      {"cache", 3}, {"runtime", 4}, {"bench", 5},
    {"convert", 5},       {"exchange", 5}, {"tuner", 6}, {"cli", 7},
    {"benchmarks", ANY_FLOOR}, {"tests", ANY_FLOOR},
};
#define FLOORS_LEN (sizeof floors / sizeof floors[0])

static struct graph {
    char names[MAX_FILES][128];
    size_t names_len;
    size_t edge_from[MAX_EDGES], edge_to[MAX_EDGES];
    size_t edges_len;
} graph;

static int floor_of(const char *path)
{
    for (size_t i = 0; i < FLOORS_LEN; i++) {
        size_t len = strlen(floors[i].folder);
        if (strncmp(path, floors[i].folder, len) == 0 && path[len] == '/') {
            return floors[i].floor;
        }
    }
    return -1;
}

static int same_folder(const char *a, const char *b)
{
    size_t len = strcspn(a, "/");
    return len == strcspn(b, "/") && strncmp(a, b, len) == 0;
}

static size_t file_index(const char *name)
{
    for (size_t i = 0; i < graph.names_len; i++) {
        if (strcmp(graph.names[i], name) == 0) {
            return i;
        }
    }
    ck_assert_uint_lt(graph.names_len, MAX_FILES);
    snprintf(graph.names[graph.names_len], sizeof graph.names[0], "%s", name);
    return graph.names_len++;
}

static void read_includes(const char *root, const char *name)
{
    char path[1024], line[1024], target[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t from = file_index(name);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, " # include \"%127[^\"]\"", target) != 1 || floor_of(target) < 0) {
            continue;
        }
        ck_assert_uint_lt(graph.edges_len, MAX_EDGES);
        graph.edge_from[graph.edges_len] = from;
        graph.edge_to[graph.edges_len++] = file_index(target);
    }
    fclose(file);
}

static void read_tree(void)
{
    const char *root = getenv("HONE_SOURCE_DIR");
    ck_assert_msg(root != NULL, "HONE_SOURCE_DIR is not set");
    memset(&graph, 0, sizeof graph);
    for (size_t i = 0; i < FLOORS_LEN; i++) {
        char path[1024], name[128];
        snprintf(path, sizeof path, "%s/%s", root, floors[i].folder);
        DIR *folder = opendir(path);
        for (struct dirent *e; folder != NULL && (e = readdir(folder)) != NULL;) {
            size_t len = strlen(e->d_name);
            int wanted =
                len > 2 && len < 100 &&
                (strcmp(e->d_name + len - 2, ".c") == 0 || strcmp(e->d_name + len - 2, ".h") == 0);
            if (wanted) {
                snprintf(name, sizeof name, "%s/%.100s", floors[i].folder, e->d_name);
                read_includes(root, name);
            }
        }
        if (folder != NULL) {
            closedir(folder);
        }
    }
    ck_assert_uint_gt(graph.edges_len, 50); /* the tree was really read */
}

START_TEST(no_include_runs_upwards_or_sideways)
{
    int wrong = 0;
    read_tree();
    for (size_t i = 0; i < graph.edges_len; i++) {
        const char *from = graph.names[graph.edge_from[i]], *to = graph.names[graph.edge_to[i]];
        if (!same_folder(from, to) && floor_of(to) >= floor_of(from) &&
            floor_of(from) < ANY_FLOOR) {
            fprintf(stderr, "%s includes %s, which is not below it\n", from, to);
            wrong++;
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Who filled the driver table is not the runtime's business, nor that of any floor above it. */
START_TEST(only_tests_include_the_emulator)
{
    int wrong = 0;
    read_tree();
    for (size_t i = 0; i < graph.edges_len; i++) {
        const char *from = graph.names[graph.edge_from[i]], *to = graph.names[graph.edge_to[i]];
        if (strncmp(to, "emulator/", 9) == 0 && !same_folder(from, to) &&
            floor_of(from) < ANY_FLOOR) {
            fprintf(stderr, "%s includes %s; only tests may\n", from, to);
            wrong++;
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* 0 unseen, 1 on the path, 2 done. Returns 1 when a cycle passes through `file`. */
static int finds_cycle(size_t file, unsigned char state[MAX_FILES])
{
    state[file] = 1;
    for (size_t i = 0; i < graph.edges_len; i++) {
        if (graph.edge_from[i] != file) {
            continue;
        }
        size_t to = graph.edge_to[i];
        if (state[to] == 1 || (state[to] == 0 && finds_cycle(to, state))) {
            fprintf(stderr, "a circle of includes passes %s\n", graph.names[to]);
            return 1;
        }
    }
    state[file] = 2;
    return 0;
}

START_TEST(no_include_runs_in_a_circle)
{
    unsigned char state[MAX_FILES] = {0};
    read_tree();
    for (size_t i = 0; i < graph.names_len; i++) {
        ck_assert(state[i] != 0 || !finds_cycle(i, state));
    }
}
END_TEST

/* The checker itself must see an arrow that runs upwards. */
START_TEST(an_upward_include_is_seen)
{
    ck_assert_int_gt(floor_of("tuner/sweep.h"), floor_of("core/status.h"));
    ck_assert_int_eq(floor_of("nowhere/x.h"), -1);
    ck_assert(!same_folder("core/a.c", "cache/a.c"));
    ck_assert(same_folder("core/a.c", "core/b.h"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("includes");

    tcase_add_test(tests, no_include_runs_upwards_or_sideways);
    tcase_add_test(tests, only_tests_include_the_emulator);
    tcase_add_test(tests, no_include_runs_in_a_circle);
    tcase_add_test(tests, an_upward_include_is_seen);
    return suite_run("project/includes", tests);
}
