/* verify_run.h - one run of an op as naive.h writes it, verified: what test_verify and
 * test_verify_quant share. Failures end the test. */
#ifndef HONE_TESTS_BENCH_VERIFY_RUN_H
#define HONE_TESTS_BENCH_VERIFY_RUN_H

#include "bench/verify.h"
#include "tests/bench/naive.h"

/* `has` is a part of the reason; NULL where the output is right. */
typedef struct verify_case {
    const char *problem;
    inputs_kind kind;
    naive_fault fault;
    const char *has;
} verify_case;

/* Problem, inputs, outputs and verdict of one run. */
typedef struct verify_run {
    hone_problem problem;
    inputs in, out;
    verify_result result;
} verify_run;

void verify_run_open(verify_run *r, const char *text, inputs_kind kind);
/* As `ctas_run` of `ctas_total` CTAs; 1 and 1: a whole one. */
void verify_run_judge(verify_run *r, uint64_t ctas_run, uint64_t ctas_total);
void verify_run_close(verify_run *r);

/* The fault is refused for that reason, and what is right passes. */
void verify_run_case(const verify_case *c);

#endif
