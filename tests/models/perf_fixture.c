/* perf_fixture.c - a GPU, and a prediction that must succeed. */
#include "tests/models/perf_fixture.h"

#include <check.h>

gpu perf_fixture_gpu(const char *slug)
{
    gpu g;

    ck_assert_int_eq(gpu_find(slug, &g, NULL), HONE_OK);
    return g;
}

perf_answer perf_fixture_predict(const gpu *g, const perf_work *work)
{
    perf_answer answer;
    hone_error error = {0};

    ck_assert_msg(perf_predict(g, work, &answer, &error) == HONE_OK, "%s", error.message);
    return answer;
}
