/* test_routes.c - random choices of a router, on emulated GPUs: every number that moe_align writes
 * is that of a plain walk over the entries. HONE_ROUTES asks for that many in all. */
#include "tests/bench/naive.h"
#include "tests/templates/proof.h"

#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;
static device *hopper, *ada;

/* One kernel each; tokens, top-k and rows are drawn. Chunks from a fraction of the entries to many
 * times all of them. */
static const struct {
    const char *problem, *config;
} families[] = {
    {"experts=9,topk=4,group_layout=contiguous,row_align=16", "threads=128 items=1 least_ctas=1"},
    {"experts=256,topk=8,group_layout=contiguous", "threads=256 items=2 least_ctas=4"},
    {"experts=32,topk=8,group_layout=masked,row_align=8,ids=i64",
     "threads=128 items=1 least_ctas=4"},
    {"experts=512,topk=6,group_layout=psum,row_align=24", "threads=128 items=2 least_ctas=1"},
    {"experts=1,topk=1,group_layout=psum,ids=i64,align=8", "threads=128 items=1 least_ctas=1"},
    {"experts=384,topk=6,group_layout=masked,row_align=128,align=4",
     "threads=512 items=16 least_ctas=1"},
    {"experts=33,topk=3,group_layout=contiguous,row_align=1,ids=i64",
     "threads=128 items=4 least_ctas=16"},
    {"experts=40,topk=6,group_layout=grouped_k,row_align=32", "threads=128 items=1 least_ctas=4"},
    {"experts=160,topk=8,group_layout=psum,row_align=64", "threads=1024 items=1 least_ctas=1"},
};
enum { FAMILIES = sizeof families / sizeof families[0], MOST_TOKENS = 80 };

static int64_t below(uint64_t *state, int64_t len)
{
    return (int64_t)random_below(state, (uint64_t)len);
}

/* Another size of a family's problem; one in four has less room than it may need. */
static hone_problem draw_problem(int family, uint64_t *state)
{
    hone_problem problem;
    hone_error error = {0};
    char text[256];

    snprintf(text, sizeof text, "moe_align:tokens=%d,%s", (int)below(state, MOST_TOKENS),
             families[family].problem);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    hone_moe_align *p = &problem.as.moe_align;
    if (below(state, 4) == 0 && p->m > 0) {
        p->m = 1 + below(state, p->m);
    }
    return problem;
}

static void compare(const hone_problem *problem, const inputs *after, const inputs *expected,
                    const char *what)
{
    char text[256] = "";

    for (size_t i = 0; i < after->len; i++) {
        if (after->operand[i].access != 1 &&
            memcmp(after->image[i], expected->image[i], after->operand[i].bytes) != 0) {
            hone_problem_format(problem, text, sizeof text, NULL);
            ck_abort_msg("%s, %s: %s differs", text, what, after->operand[i].name);
        }
    }
}

static void route(const device *d, const proof_case *one, const compiled *code, uint64_t seed)
{
    hone_error error = {0};
    inputs in, after, expected;
    char what[64];
    const inputs_kind kind = (inputs_kind)(seed % INPUTS_KINDS);

    snprintf(what, sizeof what, "inputs %d of seed %llu", kind, (unsigned long long)seed);
    ck_assert_msg(inputs_make(one->problem, kind, seed, &in, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(inputs_copy_outputs(&in, &expected, &error), HONE_OK);
    naive_moe_align(&one->problem->as.moe_align, &in, NAIVE_RIGHT, &expected);
    proof_launch(d, one, code, &in, &after);
    compare(one->problem, &after, &expected, what);
    inputs_free_outputs(&after);
    inputs_free_outputs(&expected);
    inputs_free(&in);
}

static int routes_of_a_family(void)
{
    const char *asked = getenv("HONE_ROUTES");

    return (asked != NULL ? atoi(asked) : 320) / FAMILIES;
}

START_TEST(random_routes_have_the_rows_of_a_plain_walk)
{
    const device *d = _i % 2 == 0 ? hopper : ada;
    hone_error error = {0};
    template_source source;
    config c;
    compiled *code = NULL;
    uint64_t state = 1000 + (uint64_t)_i;

    if (shared.compiler == NULL) {
        return;
    }
    for (int i = 0; i < routes_of_a_family(); i++) {
        const hone_problem problem = draw_problem(_i, &state);
        const manifest *m = kernels_serving(&shared, &problem, &d->gpu.facts);
        const proof_case one = {.m = m, .source = &source, .problem = &problem, .config = &c};
        if (code == NULL) {
            ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
            ck_assert_msg(manifest_config_parse(m, families[_i].config, &c, &error) == HONE_OK,
                          "%s", error.message);
            code = proof_compile(&shared, d, &one);
        }
        route(d, &one, code, random_next(&state));
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
    TCase *tests = tcase_create("routes");

    tcase_add_loop_test(tests, random_routes_have_the_rows_of_a_plain_walk, 0, FAMILIES);
    return kernels_run("templates/routes", tests, setup, teardown);
}
