/* lookup.c - bench_lookup: a lookup among 10,000 winners, each timed alone, and what it must not
 * do.
 *
 * Time is the processor's counter around one call, less what two readings alone cost. The problem
 * lies in the caller's cache, as in an engine that has just filled it; the table is visited in
 * random order. Allocations and locks are counted by taking the C library's place; system calls by
 * a seccomp filter that kills at the first. */
#include "benchmarks/rows.h"
#include "benchmarks/winners.h"

#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { ROUNDS = 5, LOOKUPS = 200000, QUIET_LOOKUPS = 100000 };

/* ---- Counting what the C library is asked for
 * ---------------------------------------------------------- */

static __thread unsigned long allocations, locks;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    allocations++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    allocations++;
    return __libc_realloc(old, size);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*next)(pthread_mutex_t *);

    locks++;
    if (next == NULL) {
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    }
    return next(mutex);
}

/* ---- Time
 * --------------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The finest clock there is; ordered, so that work does not leak past a reading. */
static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    unsigned processor;
    uint64_t t = __rdtscp(&processor);
    _mm_lfence();
    return t;
#else
    return now_ns();
#endif
}

static double ns_per_tick(void)
{
    const uint64_t from_ticks = ticks(), from = now_ns();

    while (now_ns() - from < 50000000) {
    }
    return (double)(now_ns() - from) / (double)(ticks() - from_ticks);
}

static int compare_ticks(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Usual cost of two readings with nothing between them. */
static uint32_t reading_cost(uint32_t *samples)
{
    for (int i = 0; i < LOOKUPS; i++) {
        const uint64_t from = ticks();
        samples[i] = (uint32_t)(ticks() - from);
    }
    qsort(samples, LOOKUPS, sizeof *samples, compare_ticks);
    return samples[LOOKUPS / 2];
}

/* What one or more rounds of lookups came to. */
typedef struct figures {
    double p50_ns, p99_ns;
    unsigned long allocations, locks;
} figures;

/* One round: sorted ticks of each lookup. `shift` is taken from M: 0 asks for winners, 1 for sizes
 * between them. */
static bool time_lookups(const hone_runtime *rt, const winners *w, int64_t shift, uint32_t *samples,
                         figures *out)
{
    const uint32_t cost = reading_cost(samples);
    const unsigned long allocations_before = allocations, locks_before = locks;
    uint64_t seed = 1;

    for (int i = 0; i < LOOKUPS; i++) {
        hone_problem problem = w->problems[next_random(&seed) % WINNERS_COUNT];
        hone_choice choice;
        problem.as.fp8_gemm.m -= shift * (problem.as.fp8_gemm.m > 1);
        const uint64_t from = ticks();
        const hone_status status = hone_lookup(rt, &problem, &choice, NULL);
        const uint64_t spent = ticks() - from;
        if (status != HONE_OK) {
            fprintf(stderr, "a lookup failed: %s\n", hone_status_name(status));
            return false;
        }
        samples[i] = spent > cost ? (uint32_t)(spent - cost) : 0;
    }
    out->allocations += allocations - allocations_before;
    out->locks += locks - locks_before;
    qsort(samples, LOOKUPS, sizeof *samples, compare_ticks);
    return true;
}

/* The best of several rounds: what else runs on the machine only ever adds time. Counts are of all
 * rounds. */
static bool measure(const hone_runtime *rt, const winners *w, int64_t shift, figures *out)
{
    const double tick = ns_per_tick();
    uint32_t *samples = malloc(LOOKUPS * sizeof *samples);
    bool fine = samples != NULL;

    *out = (figures){.p50_ns = 1e9, .p99_ns = 1e9};
    for (int round = 0; fine && round < ROUNDS; round++) {
        fine = time_lookups(rt, w, shift, samples, out);
        const double p50 = samples[LOOKUPS / 2] * tick, p99 = samples[LOOKUPS / 100 * 99] * tick;
        out->p50_ns = p50 < out->p50_ns ? p50 : out->p50_ns;
        out->p99_ns = p99 < out->p99_ns ? p99 : out->p99_ns;
    }
    free(samples);
    return fine;
}

/* ---- System calls
 * --------------------------------------------------------------------------------------- */

/* Look up under a filter that kills at any system call but exit. */
static void look_up_quietly(const hone_runtime *rt, const winners *w)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    uint64_t seed = 2;
    int failed = 0;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(3);
    }
    for (int i = 0; i < QUIET_LOOKUPS; i++) {
        hone_choice choice;
        failed |= hone_lookup(rt, &w->problems[next_random(&seed) % WINNERS_COUNT], &choice,
                              NULL) != HONE_OK;
    }
    syscall(SYS_exit_group, failed);
}

/* 0 when none was made, 1 when at least one was. */
static double system_calls(const hone_runtime *rt, const winners *w)
{
    int state = 0;
    const pid_t child = fork();

    if (child == 0) {
        look_up_quietly(rt, w);
    }
    if (child < 0 || waitpid(child, &state, 0) != child ||
        (WIFEXITED(state) && WEXITSTATUS(state) != 0)) {
        fprintf(stderr, "system calls could not be watched\n");
        return -1; /* no answer: below any count, shown as it is */
    }
    return WIFEXITED(state) ? 0 : 1;
}

static bool add_rows(const hone_runtime *rt, const winners *w, json_t *rows)
{
    figures exact, between;

    if (!measure(rt, w, 0, &exact) || !measure(rt, w, 1, &between)) {
        return false;
    }
    const double calls = system_calls(rt, w);
    rows_add(rows, "lookup, 10,000 winners, p50", exact.p50_ns, "ns", ROWS_AT_MOST, 30);
    rows_add(rows, "lookup, 10,000 winners, p99", exact.p99_ns, "ns", ROWS_AT_MOST, 100);
    rows_add(rows, "allocations in 1,000,000 lookups", (double)exact.allocations, "", ROWS_AT_MOST,
             0);
    rows_add(rows, "locks in 1,000,000 lookups", (double)exact.locks, "", ROWS_AT_MOST, 0);
    rows_add(rows, "system calls in 100,000 lookups", calls < 0 ? 1 : calls, "", ROWS_AT_MOST, 0);
    rows_add(rows, "lookup of a size between winners, p50", between.p50_ns, "ns", ROWS_NO_BAR, 0);
    return true;
}

int main(int argc, char **argv)
{
    const bool json = rows_want_json(argc, argv);
    json_t *rows = json_array();
    winners *w = winners_make();
    hone_runtime *rt = winners_open(w);
    hone_error error;

    bool fine = hone_prepare(rt, w->problems, WINNERS_COUNT, NULL, NULL, &error) == HONE_OK;
    if (!fine) {
        fprintf(stderr, "prepare: %s\n", error.message);
    }
    fine = fine && add_rows(rt, w, rows) && rows_print(rows, json);
    hone_close(rt);
    winners_remove(w);
    json_decref(rows);
    return fine ? 0 : 1;
}
