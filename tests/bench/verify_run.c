/* verify_run.c - a run by naive.h, and its verdict. */
#include "tests/bench/verify_run.h"

#include <check.h>
#include <string.h>

void verify_run_open(verify_run *r, const char *text, inputs_kind kind)
{
    hone_error error = {0};

    memset(r, 0, sizeof *r);
    ck_assert_msg(hone_problem_parse(text, &r->problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    ck_assert_msg(inputs_make(&r->problem, kind, 7, &r->in, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_int_eq(inputs_copy_outputs(&r->in, &r->out, &error), HONE_OK);
}

void verify_run_judge(verify_run *r, uint64_t ctas_run, uint64_t ctas_total)
{
    hone_error error = {0};
    const verify_request request = {.problem = &r->problem,
                                    .before = &r->in,
                                    .after = (const uint8_t *const *)r->out.image,
                                    .tolerance = 36.0,
                                    .ctas_run = ctas_run,
                                    .ctas_total = ctas_total};

    ck_assert_msg(verify_outputs(&request, &r->result, &error) == HONE_OK, "%s", error.message);
}

void verify_run_close(verify_run *r)
{
    inputs_free_outputs(&r->out);
    inputs_free(&r->in);
}

void verify_run_case(const verify_case *c)
{
    verify_run r;

    verify_run_open(&r, c->problem, c->kind);
    naive_run(&r.problem, &r.in, c->fault, NULL, &r.out);
    verify_run_judge(&r, 1, 1);
    if (c->has == NULL) {
        ck_assert_msg(r.result.passed, "%s: %s", c->problem, r.result.reason);
        ck_assert_double_le(r.result.max_err_ratio, 1.0);
        ck_assert_uint_gt(r.result.compared, 0);
    } else {
        ck_assert_msg(!r.result.passed, "%s: fault %d passed", c->problem, c->fault);
        ck_assert_msg(strstr(r.result.reason, c->has) != NULL, "reason '%s' lacks '%s'",
                      r.result.reason, c->has);
    }
    verify_run_close(&r);
}
