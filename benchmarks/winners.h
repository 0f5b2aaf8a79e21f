/* winners.h - a store with 10,000 winners in a temporary folder, for the benchmarks of lookup and
 * open. */
#ifndef HONE_BENCHMARKS_WINNERS_H
#define HONE_BENCHMARKS_WINNERS_H

#include "include/hone.h"
#include "tests/support/folder.h"

#define WINNERS_COUNT 10000

typedef struct winners {
    char folder[FOLDER_BYTES];
    char store[1024], cache[1024];
    hone_problem problems[WINNERS_COUNT];
} winners;

/* Make the store: fp8_gemm at 5 M, 100 N and 20 K, on emu:h20, all with one config. Ends the
 * program on failure. */
winners *winners_make(void);
void winners_remove(winners *w);

/* hone_open on it; ends the program on failure. */
hone_runtime *winners_open(const winners *w);

#endif
