/* make_store.c - make_store STORE PROBLEM: a store with one winner of 1234 ns on emu:h20, the
 * analytical choice. */
#include "tests/runtime/store_fixture.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "Usage: make_store STORE PROBLEM\n");
        return 2;
    }
    const fixture_winner winner = {.problem = store_fixture_problem(argv[2]),
                                   .kind = store_fixture_kind("h20", true),
                                   .time_ns = 1234};
    return store_fixture_write(argv[1], &winner, 1) ? 0 : 1;
}
