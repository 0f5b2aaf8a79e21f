/* marks.c - Check's marks, thinned out.
 *
 * For every assertion that holds Check writes its place down by a system call, so that a crash can
 * be placed: some suites hold millions, and half of their time went there. One mark in a tick of
 * the coarse clock (1 to 4 ms) is enough: a crash is placed a few milliseconds before it happened,
 * and sanitizers name the line. Failed assertions do not come here, and name their own. */
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* By the linker's --wrap (tests/CMakeLists.txt): calls of _mark_point come to the first, and the
 * second is Check's. */
void __wrap__mark_point(const char *file, int line);
void __real__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    static _Atomic int64_t last;
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const int64_t tick = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (atomic_exchange_explicit(&last, tick, memory_order_relaxed) != tick) {
        __real__mark_point(file, line);
    }
}
