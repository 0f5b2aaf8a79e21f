/* counters_bench.c - launches whose counters are looked at. */
#include "tests/emulator/counters_bench.h"

#include <check.h>
#include <string.h>

void counters_bench_open(counters_bench *t, const char *ptx)
{
    memset(t, 0, sizeof *t);
    ptx_bench_open(&t->b);
    ck_assert_msg(ptx_bench_load(&t->b, ptx) == HONE_OK, "%s", t->b.error.message);
    t->b.launch.profile = &t->profile;
    t->b.launch.estimate = &t->estimate;
}

hone_status counters_bench_launch(counters_bench *t, uint32_t ctas, uint32_t threads,
                                  uint64_t bytes)
{
    static const uint8_t content[16384] = {1};
    const uint32_t grid[3] = {ctas, 1, 1}, block[3] = {threads, 1, 1};

    ck_assert_uint_le(bytes, sizeof content);
    uint64_t buffer = ptx_bench_buffer(&t->b, content, bytes);
    void *arguments[] = {&buffer};
    return ptx_bench_run(&t->b, "k", grid, block, arguments);
}

void counters_bench_run(counters_bench *t, const char *ptx, uint32_t threads,
                        hone_emu_timing timing)
{
    counters_bench_open(t, ptx);
    t->b.launch.timing = timing;
    hone_status status = counters_bench_launch(t, 1, threads, 16384);
    ck_assert_msg(status == HONE_OK, "%s", t->b.error.message);
}

void counters_bench_close(counters_bench *t)
{
    machine_profile_free(&t->profile);
    ptx_bench_close(&t->b);
}
