/* test_prepare.c - an indexer's queries and keys made ready: the reference against a plain
 * computation in float64 that rounds nowhere, properties of the transform, and the verdict on every
 * output, of which each byte that differs is refused. */
#include "bench/reference.h"
#include "bench/verify.h"
#include "core/numfmt.h"
#include "core/problem.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 128, WEIGHTS = 4, CODES, Q_SCALE, CACHE, DROPPED, NONFINITE, OPERANDS };

#define FP8 "record=index_132-split-pow2_amax"
#define FP4 "record=index_68-split-pow2_tiny"
static const char *const problems[] = {
    "index_prepare:tokens=9,pages=3,page_size=32,heads=8,hadamard=1," FP8,
    "index_prepare:tokens=40,pages=3,page_size=32,heads=16,rope=last,pairs=halves," FP8,
    "index_prepare:tokens=9,pages=3,page_size=32,heads=8,rope=off,record=index_132-split-raw_amax",
    "index_prepare:tokens=9,pages=3,page_size=32,heads=8,rope=last,hadamard=1," FP4,
    "index_prepare:tokens=40,pages=3,page_size=32,page_stride=2180,heads=8,pairs=halves," FP4,
};

/* What a reference leaves of inputs, as a launch would. */
typedef struct scene {
    hone_problem problem;
    inputs in;
    uint8_t *after[OPERANDS];
} scene;

static void scene_open(scene *s, const char *text, inputs_kind kind)
{
    hone_error error = {0};

    memset(s, 0, sizeof *s);
    ck_assert_msg(hone_problem_parse(text, &s->problem, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_eq(inputs_make(&s->problem, kind, 5, &s->in, &error), HONE_OK);
    for (size_t i = WEIGHTS; i < OPERANDS; i++) {
        s->after[i] = malloc(s->in.operand[i].bytes + 8);
        ck_assert_ptr_nonnull(s->after[i]);
        memcpy(s->after[i], s->in.image[i], s->in.operand[i].bytes);
    }
    reference_prepared made = {.codes = s->after[CODES],
                               .q_scale = s->after[Q_SCALE],
                               .cache = s->after[CACHE],
                               .weights = (float *)(void *)s->after[WEIGHTS]};
    memcpy(&made.dropped, s->after[DROPPED], 8);
    memcpy(&made.nonfinite, s->after[NONFINITE], 8);
    ck_assert_int_eq(reference_prepare(&s->problem.as.index_prepare, &s->in, &made, &error),
                     HONE_OK);
    memcpy(s->after[DROPPED], &made.dropped, 8);
    memcpy(s->after[NONFINITE], &made.nonfinite, 8);
}

static void scene_close(scene *s)
{
    for (size_t i = WEIGHTS; i < OPERANDS; i++) {
        free(s->after[i]);
    }
    inputs_free(&s->in);
}

static verify_result judge(scene *s)
{
    const uint8_t *after[HONE_MAX_OPERANDS] = {NULL};
    hone_error error = {0};
    verify_result result;

    for (size_t i = WEIGHTS; i < OPERANDS; i++) {
        after[i] = s->after[i];
    }
    const verify_request request = {
        .problem = &s->problem, .before = &s->in, .after = after, .ctas_run = 1, .ctas_total = 1};
    ck_assert_msg(verify_outputs(&request, &result, &error) == HONE_OK, "%s", error.message);
    return result;
}

/* Dim `to` of a row after the op's first two steps, by the definitions: angles as complex numbers,
 * Hadamard's matrix by the parity of common bits. */
static double prepared(const hone_index_prepare *p, const uint8_t *row, const uint8_t *rotations,
                       int64_t token, int to)
{
    double x[DIMS], sum = 0;

    for (int i = 0; i < DIMS; i++) {
        x[i] = (double)numfmt_decode(HONE_DTYPE_BF16, row, (uint64_t)i);
    }
    for (int i = 0; p->rope != HONE_ROPE_NONE && i < 32; i++) {
        const int first = p->rope == HONE_ROPE_LAST ? 64 : 0;
        const bool near = p->pairs == HONE_PAIRS_NEIGHBOURS;
        const int real = first + (near ? 2 * i : i), imaginary = near ? real + 1 : real + 32;
        const double c =
            (double)numfmt_decode(HONE_DTYPE_F32, rotations, (uint64_t)(64 * token + i));
        const double s =
            (double)numfmt_decode(HONE_DTYPE_F32, rotations, (uint64_t)(64 * token + 32 + i));
        const double a = x[real], b = x[imaginary];
        x[real] = a * c - b * s;
        x[imaginary] = a * s + b * c;
    }
    for (int i = 0; p->hadamard && i < DIMS; i++) {
        sum += __builtin_parity((unsigned)(i & to)) ? -x[i] : x[i];
    }
    return p->hadamard ? sum / sqrt(DIMS) : x[to];
}

/* Codes times scales are what float64 makes of a row, within a code's step and three roundings to
 * bf16. */
START_TEST(heads_are_what_float64_makes_of_them)
{
    scene s;

    scene_open(&s, problems[_i], INPUTS_NORMAL);
    const hone_index_prepare *p = &s.problem.as.index_prepare;
    const bool nibbles = p->record.format == HONE_KV_INDEX_FP4_68;
    const double factor = 1 / sqrt(DIMS * p->heads);
    for (int64_t head = 0; head < p->tokens * p->heads; head++) {
        const uint8_t *row = s.in.image[0] + head * 2 * DIMS;
        const double before =
            (double)numfmt_decode(HONE_DTYPE_F32, s.in.image[WEIGHTS], (uint64_t)head);
        const double after =
            (double)numfmt_decode(HONE_DTYPE_F32, s.after[WEIGHTS], (uint64_t)head);
        double scale = after / (before * factor), largest = 0;
        for (int i = 0; i < DIMS; i++) {
            largest = fmax(largest, fabs(prepared(p, row, s.in.image[2], head / p->heads, i)));
        }
        for (int i = 0; i < DIMS; i++) {
            const double want = prepared(p, row, s.in.image[2], head / p->heads, i);
            if (nibbles) {
                ck_assert_double_eq_tol(after, before * factor, fabs(before) * 1e-6);
                scale = (double)numfmt_decode(HONE_DTYPE_UE8M0, s.after[Q_SCALE],
                                              (uint64_t)(4 * head + i / 32));
            }
            const double got =
                scale * (double)numfmt_decode(nibbles ? HONE_DTYPE_E2M1 : HONE_DTYPE_E4M3,
                                              s.after[CODES], (uint64_t)(head * DIMS + i));
            const double step =
                nibbles ? fmax(fabs(want) / 4, scale / 4) : fmax(fabs(want) / 16, scale * 0x1p-10);
            ck_assert_msg(fabs(got - want) <= step * 1.05 + largest * 0.02,
                          "%s: head %lld, dim %d: %g, not %g", problems[_i], (long long)head, i,
                          got, want);
        }
    }
    scene_close(&s);
}
END_TEST

/* The transform of one 1 among zeros is a row of signs, of which each is 2^-3.5 rounded to bf16. */
START_TEST(a_unit_becomes_a_row_of_signs)
{
    scene s;

    scene_open(&s, "index_prepare:tokens=1,pages=1,heads=8,rope=off,hadamard=1," FP8,
               INPUTS_NORMAL);
    hone_index_prepare *p = &s.problem.as.index_prepare;
    for (int head = 0; head < 8; head++) {
        for (int i = 0; i < DIMS; i++) {
            numfmt_encode(HONE_DTYPE_BF16, s.in.image[0], (uint64_t)(head * DIMS + i),
                          i == 37 + head ? 1.0f : 0.0f);
        }
    }
    reference_prepared made = {.codes = s.after[CODES],
                               .cache = s.after[CACHE],
                               .weights = (float *)(void *)s.after[WEIGHTS]};
    ck_assert_int_eq(reference_prepare(p, &s.in, &made, NULL), HONE_OK);
    for (int head = 0; head < 8; head++) {
        for (int i = 0; i < DIMS; i++) { /* 0.08837890625 / 2^-12 is 362, whose e4m3 is 352 */
            const float got =
                numfmt_decode(HONE_DTYPE_E4M3, s.after[CODES], (uint64_t)(head * DIMS + i));
            const bool minus = __builtin_parity((unsigned)(i & (37 + head))) != 0;
            ck_assert_float_eq(got, minus ? -352.0f : 352.0f);
        }
    }
    scene_close(&s);
}
END_TEST

/* Every kind of inputs passes as the reference leaves it; no output may differ anywhere. */
START_TEST(each_byte_that_differs_is_refused)
{
    static const char *const names[OPERANDS] = {
        [WEIGHTS] = "weights", [CODES] = "codes",     [Q_SCALE] = "q_scale",
        [CACHE] = "cache",     [DROPPED] = "dropped", [NONFINITE] = "nonfinite"};

    for (int kind = 0; kind < INPUTS_KINDS; kind++) {
        scene s;
        scene_open(&s, problems[_i], (inputs_kind)kind);
        verify_result result = judge(&s);
        ck_assert_msg(result.passed, "%s, inputs %d: %s", problems[_i], kind, result.reason);
        for (size_t i = WEIGHTS; i < OPERANDS; i++) {
            const uint64_t len = s.in.operand[i].bytes;
            for (uint64_t part = 0; len > 0 && part < 4; part++) { /* of weights the sign's byte */
                const uint64_t at = (len - 1) * part / 3 | (i == WEIGHTS ? 3 : 0);
                if (i == WEIGHTS && kind != INPUTS_NORMAL) {
                    continue; /* NaN has any sign */
                }
                s.after[i][at] ^= 0x80;
                result = judge(&s);
                ck_assert_msg(!result.passed && strstr(result.reason, names[i]) != NULL,
                              "%s[%llu] passed: %s", names[i], (unsigned long long)at,
                              result.reason);
                s.after[i][at] ^= 0x80;
            }
        }
        scene_close(&s);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prepare");
    const int len = (int)ARRAY_LEN(problems);

    tcase_add_loop_test(tests, heads_are_what_float64_makes_of_them, 0, len);
    tcase_add_test(tests, a_unit_becomes_a_row_of_signs);
    tcase_add_loop_test(tests, each_byte_that_differs_is_refused, 0, len);
    return suite_run("bench/prepare", tests);
}
