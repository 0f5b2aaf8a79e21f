/* test_pipeline.c - CUDA kernels that pass tiles through mbarriers: the same bits from both timings
 * and every schedule, no finding in them, and one in each of their mutants. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 7, TILE = 512, FLOATS = TILES * TILE };

typedef struct outcome {
    hone_status status;
    hone_emu_fault fault;
    float out[FLOATS];
} outcome;

typedef struct launch {
    const char *kernel;
    uint32_t threads, grid, cluster, floats;
} launch;

static float input(uint32_t n)
{
    return (float)(n * UINT32_C(2654435761) >> 16);
}

static void run(const char *ptx, const launch *l, hone_emu_timing timing, uint64_t seed, int checks,
                outcome *o)
{
    static float in[FLOATS];
    int count = TILES;
    ptx_bench b;

    ptx_bench_open(&b);
    b.launch.timing = timing;
    b.launch.schedule_seed = seed;
    b.launch.checks = (uint32_t)checks;
    b.launch.cluster[0] = l->cluster;
    b.launch.cluster[1] = b.launch.cluster[2] = 1;
    for (uint32_t n = 0; n < FLOATS; n++) {
        in[n] = input(n);
    }
    memset(o->out, 0, sizeof o->out);
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in);
    uint64_t to = ptx_bench_buffer(&b, o->out, sizeof o->out);
    hone_status status = ptx_bench_load(&b, ptx);
    ck_assert_msg(status == HONE_OK, "%s", b.error.message);
    o->status = ptx_bench_run(&b, l->kernel, (uint32_t[]){l->grid, 1, 1},
                              (uint32_t[]){l->threads, 1, 1}, (void *[]){&from, &to, &count});
    o->fault = b.fault;
    ptx_bench_read(&b, to, o->out, sizeof o->out);
    ptx_bench_close(&b);
}

static char *compile(int stages, int early, int mutant)
{
    char options[3][32], *source = file_read(HONE_TEST_KERNELS "/pipeline.cu", NULL);

    snprintf(options[0], sizeof options[0], "-DSTAGES=%d", stages);
    snprintf(options[1], sizeof options[1], "-DEARLY=%d", early);
    snprintf(options[2], sizeof options[2], "-DMUTANT=%d", mutant);
    char *ptx = ptx_bench_compile(
        source, (const char *const[]){"-arch=sm_90a", options[0], options[1], options[2], NULL});
    free(source);
    return ptx;
}

static const launch tiles = {"tiles", 160, 1, 1, FLOATS},
                    copies = {"copies", 64, 1, 1, 256 * TILES}, pairs = {"pair", 128, 4, 2, 512};

static float expected(const launch *l, uint32_t n)
{
    if (l == &pairs) { /* of the CTA's peer */
        uint32_t block = n / 128;
        return input(block / 2 * TILE + n % 128) * 2 + (float)((block & 1) ^ 1);
    }
    uint32_t tile = l == &tiles ? TILE : 256;
    return input(n) * 2 + (float)(n / tile);
}

/* No finding and the right bits, in both timings and with eight schedules. */
static void check_all(const char *ptx, const launch *l, const char *what)
{
    static outcome o;

    for (uint64_t n = 0; n < 16; n++) {
        run(ptx, l, (hone_emu_timing)(n % 2), n / 2, HONE_EMU_CHECK_ALL, &o);
        ck_assert_msg(o.status == HONE_OK, "%s, timing %d, seed %d: line %d: %s: %s", what,
                      (int)(n % 2), (int)(n / 2), o.fault.ptx_line, o.fault.kind, o.fault.message);
        for (uint32_t k = 0; k < l->floats; k++) {
            ck_assert_msg(o.out[k] == expected(l, k), "%s, timing %d, seed %d: float %u", what,
                          (int)(n % 2), (int)(n / 2), k);
        }
    }
}

START_TEST(tiles_pass_through_one_to_four_stages_expected_before_or_after_the_copy)
{
    char what[40], *ptx = compile(_i / 2 + 1, _i % 2, 0);

    snprintf(what, sizeof what, "%d stages, early %d", _i / 2 + 1, _i % 2);
    if (ptx != NULL) {
        check_all(ptx, &tiles, what);
    }
    free(ptx);
}
END_TEST

START_TEST(copies_of_each_thread_arrive_at_an_mbarrier)
{
    char *ptx = compile(2, 1, 0);

    if (ptx != NULL) {
        check_all(ptx, &copies, "copies");
    }
    free(ptx);
}
END_TEST

START_TEST(one_load_serves_both_ctas_of_a_pair_and_each_stores_into_the_other)
{
    char *ptx = compile(2, 1, 0);

    if (ptx != NULL) {
        check_all(ptx, &pairs, "pair");
    }
    free(ptx);
}
END_TEST

static const struct {
    const char *name;
    const launch *of;
    int mutant;
    const char *kinds; /* one of these, by schedule and timing */
} mutants[] = {
    {"an empty barrier that opens an arrival early", &tiles, 1, "race"},
    {"no barrier behind the init", &tiles, 2, "race mbarrier"},
    {"a producer that does not wait", &tiles, 3, "race async-misuse"},
    {"a producer that waits for the other parity", &tiles, 4, "deadlock"},
    {"16 bytes too few expected", &tiles, 5, "deadlock"},
    {"16 bytes too few loaded", &tiles, 6, "deadlock"},
    {"consumers that do not wait", &tiles, 7, "race async-misuse"},
    {"consumers that wait for the other parity", &tiles, 8, "race async-misuse"},
    {"an arrival before the reads", &tiles, 9, "race async-misuse"},
    {"no wait for the reads of an earlier store", &tiles, 10, "race proxy-fence"},
    {"no proxy fence before a store", &tiles, 11, "proxy-fence"},
    {"no barrier before a store", &tiles, 12, "race proxy-fence"},
    {"an arrival that does not wait for the copies", &copies, 1, "async-misuse race"},
    {"no barrier before the stage is filled again", &copies, 2, "async-misuse race"},
    {"a multicast that leaves out the other CTA", &pairs, 1, "deadlock"},
    {"a pair that expects more to leave than there are", &pairs, 2, "deadlock"},
    {"a CTA that leaves before the other has arrived", &pairs, 3, "use-after-free"},
};

START_TEST(a_mutant_is_caught)
{
    static outcome o;
    char *ptx = compile(2, 1, mutants[_i].mutant);
    bool caught = ptx == NULL;

    for (uint64_t n = 0; n < 16 && !caught; n++) {
        run(ptx, mutants[_i].of, (hone_emu_timing)(n % 2), n / 2, HONE_EMU_CHECK_ALL, &o);
        caught = o.status == HONE_WRONG;
    }
    ck_assert_msg(ptx == NULL || (caught && strstr(mutants[_i].kinds, o.fault.kind) != NULL),
                  "%s: line %d: %s: %s", mutants[_i].name, o.fault.ptx_line, o.fault.kind,
                  o.fault.message);
    free(ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pipeline");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(
        tests, tiles_pass_through_one_to_four_stages_expected_before_or_after_the_copy, 0, 8);
    tcase_add_test(tests, copies_of_each_thread_arrive_at_an_mbarrier);
    tcase_add_test(tests, one_load_serves_both_ctas_of_a_pair_and_each_stores_into_the_other);
    tcase_add_loop_test(tests, a_mutant_is_caught, 0, (int)ARRAY_LEN(mutants));
    return suite_run("emulator/pipeline", tests);
}
