/* flight.h - single flight: of all processes and threads that want the same thing made, one makes
 * it.
 *
 * A lock is one byte of a lock file that is never unlinked, held through an open file description:
 * the kernel lets it go when its holder dies, however it dies (cases.md 19). */
#ifndef HONE_CACHE_FLIGHT_H
#define HONE_CACHE_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

/* Wait at most `wait_ms` for byte `place` (below 2^63) of the lock file. A descriptor to give to
 * flight_end, or -1 when the wait is over or the file cannot be had: then the caller goes on
 * without. */
int flight_begin(const char *lock_path, uint64_t place, uint32_t wait_ms);
void flight_end(int flight); /* -1 is fine */

#endif
