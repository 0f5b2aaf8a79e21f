/* fault_case.h - a kernel that breaks a rule, what must be said of it, and its twin that keeps the
 * rule.
 *
 * Bodies are PTX; line 0 of a body is line 10 of the text. Before it: %r0: thread; %r1: lane; %r2:
 * warp; %r3: CTA; %r4, %r5: shared address of the thread's and of the lane's word; %x0: 8192 bytes
 * of zeros; %x1, %x2: the thread's and the lane's word of them; %x3: their second half; %x9: 256
 * bytes of zeros and 256 that nobody wrote; %x10: freed memory; %p1: warp 0, %p2: warp 1, %p3: CTA
 * 0, %p4: lane 0, %p5: not CTA 0. `s`: 8192 bytes of shared memory at offset 0; `l`: 64 bytes of
 * local memory; `c`: 32 bytes of constant memory. Free: %r9 and up, %x4 to %x8, %x11 and up, %p6 and up. */
#ifndef HONE_TESTS_EMULATOR_FAULT_CASE_H
#define HONE_TESTS_EMULATOR_FAULT_CASE_H

#include "tests/emulator/ptx_bench.h"

#include <check.h>

typedef struct fault_case {
    const char *name;
    uint32_t threads, ctas, cluster; /* cluster: CTAs, 0 counts as 1 */
    const char *bad;
    int line, lane, warp;       /* of the fault */
    const char *kind, *message; /* a '*' in the message stands for an address */
    const char *good;           /* NULL: there is no twin */
} fault_case;

/* A test of each case (one table a program): the bad kernel, warps in order and copies at issue, is
 * told by kind, message, line, lane and warp; the good one passes under eight orders of warps and
 * both timings; the bad one under none of them. */
TCase *fault_case_tests(const char *name, const fault_case *cases, size_t len);

/* The body with a .loc before each line, which says that line n of it is line FAULT_CASE_LINE + n
 * of k.cu; how many lines there are. FAULT_CASE_FILE goes behind the kernel. */
#define FAULT_CASE_FILE ".file 1 \"k.cu\"\n"
enum { FAULT_CASE_LINE = 500 };
uint32_t fault_case_lines(const char *body, char *out, size_t capacity);

/* One '*' in the pattern stands for an address. */
bool fault_case_matches(const char *pattern, const char *text);

/* The first of these by itself; and the twin once, in order and at issue. */
void fault_case_is_told(const fault_case *c);
void fault_case_twin_passes_once(const fault_case *c);

#endif
