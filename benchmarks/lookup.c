/* lookup.c - bench_lookup: a lookup among 10,000 winners, each timed alone, and what it must not
 * do.
 *
 * Time is the processor's counter around one call, less what two readings alone cost. The problem
 * lies in the caller's cache, as in an engine that has just filled it; the table is visited in
 * random order. Between lookups little memory is touched, so that the table's own size decides
 * whether it stays in the processor's cache; a row without a bar says what a lookup costs when
 * other work has emptied it. Allocations and locks are counted by taking the C library's place;
 * system calls by a seccomp filter that kills at the first. */
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

enum {
    ROUNDS = 400,
    LOOKUPS = 5000, /* of a round: short enough to pass between two turns of other work */
    FEW_ROUNDS = 20,
    QUIET_LOOKUPS = 100000,
    COLD_LOOKUPS = 200,
    COLD_BYTES = 8 << 20, /* several times a core's own cache */
    MOST_TICKS = 65536,
};

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

static uint32_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* How often each number of ticks was seen: small, where a list of samples would fill the cache. */
typedef struct histogram {
    uint32_t counts[MOST_TICKS], total; /* the last count: all longer ones */
} histogram;

static void count(histogram *h, uint64_t spent)
{
    h->counts[spent < MOST_TICKS ? spent : MOST_TICKS - 1]++;
    h->total++;
}

/* Ticks that `share` of the samples do not exceed. */
static uint32_t quantile(const histogram *h, double share)
{
    uint32_t ticks_at = 0;

    for (uint64_t seen = h->counts[0]; (double)seen < share * h->total;) {
        seen += h->counts[++ticks_at];
    }
    return ticks_at;
}

/* Usual cost of two readings with nothing between them. */
static uint32_t reading_cost(histogram *h)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < LOOKUPS; i++) {
        const uint64_t from = ticks();
        count(h, ticks() - from);
    }
    return quantile(h, 0.5);
}

/* The problem of winner `i`, put together from the few sizes that there are. */
static hone_problem pick(const winners *w, uint32_t i)
{
    hone_problem problem = w->problems[i % 5];

    problem.as.fp8_gemm.n = w->problems[i / 5 % 100 * 5].as.fp8_gemm.n;
    problem.as.fp8_gemm.k = w->problems[i / 500 * 500].as.fp8_gemm.k;
    return problem;
}

/* Ticks of one lookup of a random winner, or of a size just below it where `shift` is 1. False when
 * it fails. */
static bool time_one(const hone_runtime *rt, const winners *w, int64_t shift, uint64_t *seed,
                     uint64_t *spent)
{
    hone_problem problem = pick(w, next_random(seed) % WINNERS_COUNT);
    hone_choice choice;

    problem.as.fp8_gemm.m -= shift * (problem.as.fp8_gemm.m > 1);
    const uint64_t from = ticks();
    const hone_status status = hone_lookup(rt, &problem, &choice, NULL);
    *spent = ticks() - from;
    if (status != HONE_OK) {
        fprintf(stderr, "a lookup failed: %s\n", hone_status_name(status));
    }
    return status == HONE_OK;
}

/* What one or more rounds of lookups came to. */
typedef struct figures {
    double p50_ns, p99_ns;
    unsigned long allocations, locks;
} figures;

/* One round, counted into `h`. `cost` is what two readings of the counter take. */
static bool time_round(const hone_runtime *rt, const winners *w, int64_t shift, uint64_t *seed,
                       uint32_t cost, histogram *h, figures *out)
{
    const unsigned long allocations_before = allocations, locks_before = locks;
    bool fine = true;

    for (int i = 0; fine && i < LOOKUPS; i++) {
        uint64_t spent = 0;
        fine = time_one(rt, w, shift, seed, &spent);
        count(h, spent > cost ? spent - cost : 0);
    }
    out->allocations += allocations - allocations_before;
    out->locks += locks - locks_before;
    return fine;
}

static int compare_ns(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Each round's quantiles, and of those the median: neither a lucky round nor one in which the
 * machine did something else. */
static bool measure(const hone_runtime *rt, const winners *w, int64_t shift, int rounds,
                    figures *out)
{
    const double tick = ns_per_tick();
    histogram *h = malloc(sizeof *h);
    double p50[ROUNDS], p99[ROUNDS];
    uint64_t seed = 1;
    bool fine = h != NULL;

    *out = (figures){0};
    const uint32_t cost = fine ? reading_cost(h) : 0;
    for (int round = 0; fine && round < rounds; round++) {
        memset(h, 0, sizeof *h);
        fine = time_round(rt, w, shift, &seed, cost, h, out);
        p50[round] = quantile(h, 0.5) * tick;
        p99[round] = quantile(h, 0.99) * tick;
    }
    if (fine) {
        qsort(p50, (size_t)rounds, sizeof p50[0], compare_ns);
        qsort(p99, (size_t)rounds, sizeof p99[0], compare_ns);
        out->p50_ns = p50[rounds / 2];
        out->p99_ns = p99[rounds / 2];
    }
    free(h);
    return fine;
}

/* Median of lookups after other work has taken the processor's cache; below 0 when one fails. */
static double cold_ns(const hone_runtime *rt, const winners *w)
{
    const double tick = ns_per_tick();
    histogram *h = malloc(sizeof *h);
    uint8_t *other = malloc(COLD_BYTES);
    uint64_t seed = 3;
    bool fine = h != NULL && other != NULL;
    double ns = -1;

    const uint32_t cost = fine ? reading_cost(h) : 0;
    if (fine) {
        memset(h, 0, sizeof *h);
    }
    for (int i = 0; fine && i < COLD_LOOKUPS; i++) {
        uint64_t spent = 0;
        memset(other, i, COLD_BYTES);
        __asm__ volatile("" ::"r"(other) : "memory"); /* the writes are wanted */
        fine = time_one(rt, w, 0, &seed, &spent);
        count(h, spent > cost ? spent - cost : 0);
    }
    if (fine) {
        ns = quantile(h, 0.5) * tick;
    }
    free(h);
    free(other);
    return ns;
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

    const double cold = cold_ns(rt, w);
    if (cold < 0 || !measure(rt, w, 0, ROUNDS, &exact) ||
        !measure(rt, w, 1, FEW_ROUNDS, &between)) {
        return false;
    }
    const double calls = system_calls(rt, w);
    rows_add(rows, "lookup, 10,000 winners, p50", exact.p50_ns, "ns", ROWS_AT_MOST, 30);
    rows_add(rows, "lookup, 10,000 winners, p99", exact.p99_ns, "ns", ROWS_AT_MOST, 100);
    rows_add(rows, "allocations in 2,000,000 lookups", (double)exact.allocations, "", ROWS_AT_MOST,
             0);
    rows_add(rows, "locks in 2,000,000 lookups", (double)exact.locks, "", ROWS_AT_MOST, 0);
    rows_add(rows, "system calls in 100,000 lookups", calls < 0 ? 1 : calls, "", ROWS_AT_MOST, 0);
    rows_add(rows, "lookup in an emptied cache, p50", cold, "ns", ROWS_NO_BAR, 0);
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

    for (uint32_t i = 0; i < WINNERS_COUNT; i++) {
        const hone_problem problem = pick(w, i);
        if (memcmp(&problem, &w->problems[i], sizeof problem) != 0) {
            fprintf(stderr, "winner %u is not what it is taken for\n", i);
            return 1;
        }
    }
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
