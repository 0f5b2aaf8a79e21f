/* wide.h - loops over the lanes of a warp, compiled for the widest vectors that the processor has.
 */
#ifndef HONE_EMULATOR_WIDE_H
#define HONE_EMULATOR_WIDE_H

/* Before a static function with such a loop, and nothing else worth inlining. Clones of one that is
 * not static would be exported; sanitizers run before what picks among them works. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                            \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MACHINE_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MACHINE_WIDEST
#endif

#endif
