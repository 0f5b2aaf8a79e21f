/* program.c - the hone program, run from the outside in a folder of its own. */
#include "tests/cli/program.h"

#include "tests/support/file.h"

#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What a run takes from its environment; the rest of it is the place. */
static const char *const kept[] = {"PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "ASAN_OPTIONS",
                                   "UBSAN_OPTIONS"};
static const char *const folders[] = {"home", "data", "cache", "tmp", "run"};

enum { KEPT = sizeof kept / sizeof kept[0], LINE_BYTES = 8192 };

const char *place_path(const place *p, const char *relative, char *out)
{
    ck_assert_int_lt(snprintf(out, PROGRAM_PATH_BYTES, "%s/%s", p->folder, relative),
                     PROGRAM_PATH_BYTES);
    return out;
}

place place_make(void)
{
    place p;
    char path[PROGRAM_PATH_BYTES];

    folder_make(p.folder);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        ck_assert_int_eq(mkdir(place_path(&p, folders[i], path), 0700), 0);
    }
    return p;
}

void place_remove(const place *p)
{
    folder_remove(p->folder);
}

void place_copy(const place *p, const char *from, const char *to)
{
    char path[PROGRAM_PATH_BYTES];
    size_t len = 0;
    char *bytes = file_read(place_path(p, from, path), &len);

    file_write(place_path(p, to, path), bytes, len);
    free(bytes);
}

/* The environment of a run, in `texts` and, ended by NULL, in `list`. */
static void make_environment(const place *p, char texts[KEPT + 4][1024], char *list[KEPT + 5])
{
    static const char *const own[][2] = {{"HOME", "home"},
                                         {"XDG_DATA_HOME", "data"},
                                         {"XDG_CACHE_HOME", "cache"},
                                         {"TMPDIR", "tmp"}};
    size_t len = 0;

    for (size_t i = 0; i < KEPT; i++) {
        const char *value = getenv(kept[i]);
        if (value != NULL) {
            snprintf(texts[len], sizeof texts[len], "%s=%s", kept[i], value);
            len++;
        }
    }
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        snprintf(texts[len], sizeof texts[len], "%s=%s/%s", own[i][0], p->folder, own[i][1]);
        len++;
    }
    for (size_t i = 0; i < len; i++) {
        list[i] = texts[i];
    }
    list[len] = NULL;
}

pid_t program_start(const place *p, const char *name, const char *line)
{
    const char *binary = getenv("HONE_BINARY_DIR");
    char command[LINE_BYTES], shell[] = "/bin/sh", option[] = "-c";
    char texts[KEPT + 4][1024];
    char *list[KEPT + 5];
    posix_spawnattr_t attributes;
    pid_t child = 0;

    ck_assert_msg(binary != NULL, "set HONE_BINARY_DIR to the build folder");
    int len = snprintf(command, sizeof command,
                       "hone() { \"$HONE\" \"$@\"; }; HONE='%s/cli/hone'; cd '%s/run'; "
                       "exec >'%s/%s.out' 2>'%s/%s.err' </dev/null; %s",
                       binary, p->folder, p->folder, name, p->folder, name, line);
    ck_assert_int_lt(len, LINE_BYTES);
    make_environment(p, texts, list);
    char *const arguments[] = {shell, option, command, NULL};
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    ck_assert_int_eq(posix_spawn(&child, shell, NULL, &attributes, arguments, list), 0);
    posix_spawnattr_destroy(&attributes);
    return child;
}

program_run program_wait(const place *p, const char *name, pid_t group)
{
    program_run r = {.exit_status = -1};
    char path[PROGRAM_PATH_BYTES], file[64];
    int state = 0;

    while (waitpid(group, &state, 0) < 0) {
        ck_assert_int_eq(errno, EINTR);
    }
    r.exit_status = WIFEXITED(state) ? WEXITSTATUS(state) : -1;
    r.signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    snprintf(file, sizeof file, "%s.out", name);
    r.out = file_read(place_path(p, file, path), NULL);
    snprintf(file, sizeof file, "%s.err", name);
    r.err = file_read(place_path(p, file, path), NULL);
    return r;
}

program_run program_call(const place *p, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list rest;

    va_start(rest, format);
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, rest), LINE_BYTES);
    va_end(rest);
    return program_wait(p, "call", program_start(p, "call", line));
}

void program_free(program_run *r)
{
    free(r->out);
    free(r->err);
    *r = (program_run){0};
}

json_t *program_json(const place *p, const char *line)
{
    json_error_t error;
    program_run r = program_call(p, "%s", line);

    ck_assert_msg(r.exit_status == 0, "%s: exit %d: %s", line, r.exit_status, r.err);
    json_t *root = json_loads(r.out, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "%s: line %d: %s", line, error.line, error.text);
    program_free(&r);
    return root;
}

bool program_says(const program_run *r, const char *words)
{
    return strstr(r->out, words) != NULL || strstr(r->err, words) != NULL;
}
