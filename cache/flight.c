/* flight.c - byte-range locks of open file descriptions, polled so that a wait is bounded. */
#include "cache/flight.h"

#include "core/moment.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define POLL_FIRST_US 500
#define POLL_MOST_US  20000

int flight_begin(const char *lock_path, uint64_t place, uint32_t wait_ms)
{
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(place & INT64_MAX),
        .l_len = 1,
    };
    int64_t deadline = moment_ms(CLOCK_MONOTONIC) + wait_ms;
    long pause_us = POLL_FIRST_US;
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (lock.l_start == INT64_MAX) { /* the byte behind it does not exist */
        lock.l_start--;
    }
    while (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        bool held = errno == EAGAIN || errno == EACCES || errno == EINTR;
        if (!held || moment_ms(CLOCK_MONOTONIC) >= deadline) {
            close(fd);
            return -1;
        }
        struct timespec t = {0, pause_us * 1000};
        nanosleep(&t, NULL);
        pause_us = pause_us * 2 > POLL_MOST_US ? POLL_MOST_US : pause_us * 2;
    }
    return fd;
}

void flight_end(int flight)
{
    if (flight >= 0) {
        close(flight);
    }
}
