/* routing.c - distributions of rows over experts by name, and by shares. */
#include "bench/routing.h"

#include "core/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const routing balanced = {.kind = INPUTS_ROUTE_BALANCED, .text = "balanced"};

const routing *routing_balanced(void)
{
    return &balanced;
}

void routing_free(routing *r)
{
    free(r->share);
    *r = (routing){0};
}

bool routing_matters(const hone_problem *problem)
{
    return problem->op == HONE_OP_MOE_GEMM;
}

hone_status routing_check(const routing *r, const hone_problem *problem, hone_error *error)
{
    const int64_t experts = problem->as.moe_gemm.experts;

    if (r == NULL || r->kind != INPUTS_ROUTE_HISTOGRAM || !routing_matters(problem) ||
        (int64_t)r->share_len == experts) {
        return HONE_OK;
    }
    return status_set(error, HONE_BAD_PROBLEM, "--routing", 0,
                      "the histogram has %zu numbers and the problem %lld experts; give one with a "
                      "number for each expert",
                      r->share_len, (long long)experts);
}

const char *routing_condition(const routing *r, const hone_problem *problem)
{
    if (!routing_matters(problem)) {
        return "uniform";
    }
    return r != NULL ? r->text : balanced.text;
}

/* What rounding down took of an expert's share. */
typedef struct rest {
    double fraction;
    int64_t expert;
} rest;

static int by_fraction(const void *a, const void *b)
{
    const rest *left = a, *right = b;

    if (left->fraction != right->fraction) {
        return left->fraction < right->fraction ? 1 : -1;
    }
    return (left->expert > right->expert) - (left->expert < right->expert);
}

/* `share` is finite, not negative, and above 0 somewhere. */
static hone_status apportion(const double *share, int64_t experts, int64_t total, int64_t *rows,
                             hone_error *error)
{
    double largest = 0, sum = 0;
    int64_t left = total;
    rest *rests = calloc((size_t)experts + 1, sizeof *rests);

    if (rests == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "shares of experts");
    }
    for (int64_t e = 0; e < experts; e++) {
        largest = share[e] > largest ? share[e] : largest;
    }
    for (int64_t e = 0; e < experts; e++) {
        sum += share[e] / largest; /* numbers near the largest double have a sum, too */
    }
    for (int64_t e = 0; e < experts; e++) {
        const double exact = (double)total * (share[e] / largest / sum);
        rows[e] = (int64_t)exact < left ? (int64_t)exact : left;
        rests[e] = (rest){share[e] > 0 ? exact - (double)rows[e] : -1.0, e};
        left -= rows[e];
    }
    qsort(rests, (size_t)experts, sizeof *rests, by_fraction);
    /* Less than one for each expert that has a share; rounding may take one more. */
    for (int64_t i = 0; left > 0; i = rests[i + 1].fraction >= 0 && i + 1 < experts ? i + 1 : 0) {
        rows[rests[i].expert]++;
        left--;
    }
    free(rests);
    return HONE_OK;
}

static hone_status draw_zipf(double exponent, int64_t experts, int64_t total, uint64_t *state,
                             int64_t *rows, hone_error *error)
{
    double *share = calloc((size_t)experts + 1, sizeof *share);

    if (share == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "shares of experts");
    }
    for (int64_t e = 0; e < experts; e++) {
        const double rank = (double)(e + 1);
        share[e] = exponent == 1.0 ? 1.0 / rank : pow(rank, -exponent);
    }
    for (int64_t e = experts - 1; e > 0; e--) { /* shuffled */
        const int64_t other = (int64_t)random_below(state, (uint64_t)e + 1);
        const double rank = share[e];
        share[e] = share[other];
        share[other] = rank;
    }
    const hone_status status = apportion(share, experts, total, rows, error);
    free(share);
    return status;
}

hone_status routing_rows(const routing *r, int64_t experts, int64_t total, uint64_t *state,
                         int64_t *rows, hone_error *error)
{
    const inputs_routing kind = r != NULL ? r->kind : INPUTS_ROUTE_BALANCED;

    memset(rows, 0, (size_t)experts * sizeof *rows);
    switch (kind) {
    case INPUTS_ROUTE_UNIFORM:
        for (int64_t i = 0; i < total; i++) {
            rows[random_below(state, (uint64_t)experts)]++;
        }
        return HONE_OK;
    case INPUTS_ROUTE_ZIPF:
        return draw_zipf(r->exponent, experts, total, state, rows, error);
    case INPUTS_ROUTE_ONE:
        rows[random_below(state, (uint64_t)experts)] = total;
        return HONE_OK;
    case INPUTS_ROUTE_HISTOGRAM:
        if ((int64_t)r->share_len != experts) {
            return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                              "a histogram of %zu numbers for %lld experts", r->share_len,
                              (long long)experts);
        }
        return apportion(r->share, experts, total, rows, error);
    default:
        for (int64_t e = 0; e < experts; e++) {
            rows[e] = total / experts + (e < total % experts);
        }
        return HONE_OK;
    }
}
