/* test_threads.c - 16 readers look up while preparations publish new tables; made for the thread
 * sanitizer. */
#include "runtime/serving.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { READERS = 16, LOOKUPS = 20000, SIZES = 24 };

typedef struct reader {
    const hone_runtime *runtime;
    const hone_problem *problems;
    unsigned seed;
    unsigned long answered, unknown, wrong;
} reader;

static void *look_up_often(void *context)
{
    reader *r = context;

    for (int i = 0; i < LOOKUPS; i++) {
        r->seed = r->seed * 1664525u + 1013904223u;
        const hone_problem *problem = &r->problems[(r->seed >> 8) % SIZES];
        hone_choice choice;
        const hone_status status = hone_lookup(r->runtime, problem, &choice, NULL);
        const bool right = status == HONE_OK &&
                           choice.problem.as.fp8_gemm.m == problem->as.fp8_gemm.m &&
                           choice.kernel != NULL;
        r->answered += right;
        r->unknown += status == HONE_NOT_PREPARED || status == HONE_NOT_FOUND;
        r->wrong += !right && status != HONE_NOT_PREPARED && status != HONE_NOT_FOUND;
    }
    return NULL;
}

static void *prepare_often(void *context)
{
    reader *r = context;

    for (int i = 0; i < SIZES; i++) {
        r->wrong += hone_prepare((hone_runtime *)r->runtime, &r->problems[i], 1, NULL, NULL,
                                 NULL) != HONE_OK;
        r->answered++;
    }
    return NULL;
}

START_TEST(readers_see_whole_tables_while_others_are_published)
{
    char folder[FOLDER_BYTES], path[1024], cache[1024];
    hone_problem problems[SIZES];
    fixture_winner winner;
    reader readers[READERS], writers[2];
    pthread_t threads[READERS + 2];
    hone_runtime *rt = NULL;
    hone_error error;

    folder_make(folder);
    snprintf(path, sizeof path, "%s/hone.db", folder);
    snprintf(cache, sizeof cache, "%s/kernels.db", folder);
    for (int i = 0; i < SIZES; i++) {
        problems[i] = store_fixture_problem("fp8_gemm:m=64,n=256,k=256,recipe=f32-1x128-128x128");
        problems[i].as.fp8_gemm.m = 64 - i;
    }
    winner = (fixture_winner){
        .problem = problems[0], .kind = store_fixture_kind("h20", true), .time_ns = 1000};
    ck_assert(store_fixture_write(path, &winner, 1));
    const hone_options options = {.size = sizeof options, .compile_jobs = 1, .cache_path = cache};
    ck_assert_msg(hone_open(path, "emu:h20", &options, &rt, &error) == HONE_OK, "%s",
                  error.message);
    for (int i = 0; i < 2; i++) {
        writers[i] = (reader){.runtime = rt, .problems = problems};
        ck_assert_int_eq(pthread_create(&threads[READERS + i], NULL, prepare_often, &writers[i]),
                         0);
    }
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){.runtime = rt, .problems = problems, .seed = (unsigned)i};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, look_up_often, &readers[i]), 0);
    }
    for (int i = 0; i < READERS + 2; i++) {
        pthread_join(threads[i], NULL);
        const reader *r = i < READERS ? &readers[i] : &writers[i - READERS];
        ck_assert_uint_eq(r->wrong, 0);
        ck_assert(i >= READERS || r->answered + r->unknown == LOOKUPS);
    }
    /* Afterwards everything is prepared. */
    for (int i = 0; i < SIZES; i++) {
        hone_choice choice;
        ck_assert_int_eq(hone_lookup(rt, &problems[i], &choice, NULL), HONE_OK);
    }
    hone_close(rt);
    folder_remove(folder);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("threads");

    jit_fixture_need_nvrtc();
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, readers_see_whole_tables_while_others_are_published);
    return suite_run("runtime/threads", tests);
}
