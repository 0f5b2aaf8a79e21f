/* moment.h - what a clock says, as one number. */
#ifndef HONE_CORE_MOMENT_H
#define HONE_CORE_MOMENT_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC for waits and deadlines, CLOCK_REALTIME for Unix time. */
static inline int64_t moment_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t moment_ms(clockid_t clock)
{
    return moment_ns(clock) / 1000000;
}

#endif
