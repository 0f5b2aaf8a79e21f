/* scratch.h - a folder of one test's own, and a store with known rows in it. */
#ifndef TESTS_CACHE_SCRATCH_H
#define TESTS_CACHE_SCRATCH_H

#include "cache/generation.h"
#include "cache/store.h"
#include "tests/support/folder.h"

#include <check.h>
#include <limits.h>

typedef struct scratch {
    char folder[FOLDER_BYTES];
    char path[PATH_MAX]; /* of a store in it */
} scratch;

/* The folder and the error of the test that runs. */
extern scratch scratch_here;
extern hone_error scratch_error;

/* Give each test of the case a folder of its own, and no error yet. */
void scratch_fixture(TCase *tests);

void scratch_make(scratch *s);
void scratch_remove(scratch *s);

/* Byte 18 of the store's file: 1 is a rollback journal, 2 is WAL. */
int scratch_journal(const scratch *s);

/* Run SQL on the store of the test, past all of our own checks. */
void scratch_change(const char *sql);

/* Problem number `i`, legal; and the kind of an H20. */
hone_problem scratch_problem(int i);
device_kind scratch_kind(void);

/* A result that is ok with time_ns = 1000 + i and three samples. */
store_result scratch_result(int i);

/* A key for candidate `i` of problem row `problem`; config text is kept in `config`. */
store_key scratch_key(int64_t problem, int64_t device, int i, char config[64]);

/* Open `path` for writing, add `count` problems with one ok candidate and winner each, pack, close.
 */
void scratch_fill(const char *path, int count);

/* Whether a winner is one that scratch_fill made, in every field that serving uses. */
bool scratch_is_ours(const generation_winner *w);

/* Seed of random tests: HONE_SEED, else the clock. Printed, so that a failure can be repeated. */
uint64_t scratch_seed(void);

/* Run as a child: exits with the function's value. Wait gives the exit status, or -signal. */
int scratch_spawn(int (*body)(void *context), void *context);
int scratch_wait(int pid);

#endif
