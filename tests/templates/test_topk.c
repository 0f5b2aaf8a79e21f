/* test_topk.c - random rows of scores, on emulated GPUs: every index that topk writes is that of a
 * full sort, and of some of them the same by any order of warps and either timing of copies.
 * HONE_TOPK_ROWS asks for that many rows in all, HONE_TOPK_ORDERS for that many orders. */
#include "tests/templates/proof.h"

#include "bench/reference.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;
static device *hopper, *ada;

/* One program each; k, width and rows are drawn. Widths go beyond four samples of a row, whose
 * bound is then guessed; `least`: what CTAs that share a row are worth. */
static const struct {
    const char *fields, *config;
    int least, most, largest_k; /* of the list */
} families[] = {
    {"span=ends", "threads=256 list=2048 cluster=1 parts=1", 0, 20000, 512},
    {"span=both,sort=by_score", "threads=256 list=2048 cluster=2 parts=1", 4096, 40000, 1024},
    {"span=whole,in=bf16,sort=by_score", "threads=1024 list=8192 cluster=1 parts=1", 0, 20000,
     4096},
    {"span=compressed,in=bf16", "threads=512 list=8192 cluster=1 parts=1", 0, 70000, 4096},
    {"span=both,in=bf16", "threads=256 list=4096 cluster=4 parts=1", 8192, 140000, 2048},
    {"span=ends", "threads=256 list=2048 cluster=1 parts=4", 8192, 70000, 1024},
    {"span=both,pick=blocked,block=8,pin=1,drop=1", "threads=256 list=4096 cluster=2 parts=1", 4096,
     9000, 2048},
    {"span=ends,pick=listed,block=8,sort=by_score", "threads=512 list=4096 cluster=1 parts=1", 0,
     16384, 2048},
};
enum { FAMILIES = sizeof families / sizeof families[0], ROWS = 4, TIMINGS = 2 };

static int64_t below(uint64_t *state, int64_t len)
{
    return (int64_t)random_below(state, (uint64_t)len);
}

static int from_environment(const char *name, int standard)
{
    const char *asked = getenv(name);

    return asked != NULL ? atoi(asked) : standard;
}

/* The width is about k, or any. */
static hone_problem draw_problem(int family, uint64_t *state)
{
    static const int ks[] = {1, 512, 705, 1024, 2048, 4096};
    const char *fields = families[family].fields;
    const int64_t unit = strstr(fields, "pick=") != NULL ? 8 : 1;
    const int least = families[family].least, most = families[family].most;
    hone_problem problem;
    hone_error error = {0};
    char text[256];
    int64_t k = ks[below(state, 6)];

    while (k > families[family].largest_k) {
        k = ks[below(state, 6)];
    }
    int64_t width = below(state, 4) == 0 ? k - 1 + below(state, 4) : 1 + below(state, most);
    width = width < least ? least + below(state, 9) : width;
    if (strstr(fields, "listed") != NULL) {
        width = (width + unit - 1) / unit * unit;
    } else if (unit > 1) {
        width = width * unit + below(state, unit);
    }
    snprintf(text, sizeof text, "topk:rows=%d,width=%lld,stride=%lld,k=%lld,%s", ROWS,
             (long long)width, (long long)(width + below(state, 2) * 13), (long long)k, fields);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

static void compare(const hone_problem *problem, const inputs *in, const inputs *after,
                    const char *what)
{
    static int32_t expected[4096];
    const hone_topk *p = &problem->as.topk;
    hone_error error = {0};
    char text[256] = "";

    hone_problem_format(problem, text, sizeof text, NULL);
    for (int64_t row = 0; row < p->rows; row++) {
        const int32_t *got = (const int32_t *)(const void *)after->image[4] + row * p->k;
        ck_assert_int_eq(reference_topk(p, in, row, expected, &error), HONE_OK);
        for (int32_t j = 0; j < p->k; j++) {
            ck_assert_msg(got[j] == expected[j], "%s, %s: index[%lld,%d] is %d, not %d", text, what,
                          (long long)row, j, got[j], expected[j]);
        }
    }
}

/* By other orders of warps, and with copies at their instruction and as late as may be. */
static void compare_orders(const device *d, const proof_case *one, const compiled *code,
                           const inputs *in, const inputs *first, const char *what)
{
    const hone_emu_api *emu = d->driver->emu;
    const int orders = from_environment("HONE_TOPK_ORDERS", 1);
    hone_error error = {0};

    for (int i = 0; i < orders * TIMINGS; i++) {
        inputs after;
        ck_assert_int_eq(emu->set_schedule((int)d->ordinal, (uint64_t)(i / TIMINGS) + 1, &error),
                         HONE_OK);
        ck_assert_int_eq(emu->set_timing((int)d->ordinal,
                                         i % TIMINGS == 0 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST,
                                         &error),
                         HONE_OK);
        proof_launch(d, one, code, in, &after);
        ck_assert_msg(memcmp(after.image[4], first->image[4], in->operand[4].bytes) == 0,
                      "%s: other bits by order %d", what, i);
        inputs_free_outputs(&after);
    }
    emu->set_schedule((int)d->ordinal, 0, &error);
    emu->set_timing((int)d->ordinal, HONE_EMU_AT_ISSUE, &error);
}

static void choose(const device *d, const proof_case *one, const compiled *code, uint64_t seed,
                   bool all_orders)
{
    const inputs_kind kind = (inputs_kind)(seed % INPUTS_KINDS);
    hone_error error = {0};
    inputs in, after;
    char what[64];

    snprintf(what, sizeof what, "inputs %d of seed %llu", kind, (unsigned long long)seed);
    ck_assert_msg(inputs_make(one->problem, kind, seed, &in, &error) == HONE_OK, "%s",
                  error.message);
    proof_launch(d, one, code, &in, &after);
    compare(one->problem, &in, &after, what);
    if (all_orders) {
        compare_orders(d, one, code, &in, &after, what);
    }
    inputs_free_outputs(&after);
    inputs_free(&in);
}

/* A fiftieth of the rows go through all orders. */
START_TEST(random_rows_have_the_best_of_a_full_sort)
{
    const bool shares = strstr(families[_i].config, "cluster=1") == NULL;
    const device *d = shares || _i % 2 == 0 ? hopper : ada;
    const int draws = from_environment("HONE_TOPK_ROWS", 32) / ROWS / FAMILIES;
    const int ordered = draws / 50 > 0 ? draws / 50 : 1;
    hone_error error = {0};
    template_source source;
    config c;
    compiled *code = NULL;
    uint64_t state = 7000 + (uint64_t)_i;

    if (shared.compiler == NULL) {
        return;
    }
    for (int i = 0; i < draws; i++) {
        const hone_problem problem = draw_problem(_i, &state);
        const manifest *m = kernels_serving(&shared, &problem, &d->gpu.facts);
        const proof_case one = {.m = m, .source = &source, .problem = &problem, .config = &c};
        if (code == NULL) {
            ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
            ck_assert_msg(manifest_config_parse(m, families[_i].config, &c, &error) == HONE_OK,
                          "%s", error.message);
            code = proof_compile(&shared, d, &one);
        }
        choose(d, &one, code, random_next(&state), i < ordered);
    }
    compiled_free(code);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
    if (shared.compiler != NULL) {
        hone_error error = {0};
        ck_assert_msg(device_open("emu:h20", &hopper, &error) == HONE_OK, "%s", error.message);
        ck_assert_msg(device_open("emu:rtx4090", &ada, &error) == HONE_OK, "%s", error.message);
    }
}

static void teardown(void)
{
    device_close(ada);
    device_close(hopper);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("topk");

    tcase_add_loop_test(tests, random_rows_have_the_best_of_a_full_sort, 0, FAMILIES);
    return kernels_run("templates/topk", tests, setup, teardown);
}
