/* sandbox.h - what a worker gives up before it sees any source or runs any kernel. */
#ifndef HONE_RUNTIME_WORKER_SANDBOX_H
#define HONE_RUNTIME_WORKER_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Die with the parent, no privileges, no files but stdin and stdout, no core. */
bool sandbox_enter(void);

/* No file growth, and the address space capped: for the compiler, since a CUDA driver reserves
 * address space beyond any cap. */
bool sandbox_limit(uint64_t memory_bytes);

/* From here on only `folder` (NVRTC's own) and the system's libraries can be read, and nothing
 * written, by Landlock. False on a kernel without it. */
bool sandbox_lock_files(const char *folder);

/* From here on nothing is written but devices and /proc, by Landlock. False on a kernel without it.
 */
bool sandbox_lock_writing(void);

/* Give the next job `seconds` of processor time: RLIMIT_CPU counts the whole process, so the limit
 * moves on. */
void sandbox_allow_cpu(uint64_t seconds);

#endif
