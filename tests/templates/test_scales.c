/* test_scales.c - scales moved on an emulated GPU are, byte for byte, those that the host makes of
 * the same floats; every float of few bits has the code that the host gives it, or none; and a
 * quantiser's scales are the least powers of two at every exponent. */
#include "tests/templates/proof.h"

#include "core/numfmt.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;
static device *hopper;

/* Run a random config of what serves `problem` on `in`. */
static void run(const hone_problem *problem, uint64_t seed, const inputs *in, inputs *after)
{
    hone_error error = {0};
    template_source source;
    space *s = NULL;
    config c;
    bool found = false, uniform = false;
    const manifest *m = kernels_serving(&shared, problem, &hopper->gpu.facts);

    ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
    ck_assert_int_eq(space_open(m, problem, &hopper->gpu.facts, &s, &error), HONE_OK);
    ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
    ck_assert(found);
    const proof_case one = {.m = m, .source = &source, .problem = problem, .config = &c};
    compiled *code = proof_compile(&shared, hopper, &one);
    proof_launch(hopper, &one, code, in, after);
    compiled_free(code);
    space_close(s);
}

static uint64_t wrong_of(const inputs *images)
{
    uint64_t wrong = 0;

    memcpy(&wrong, images->image[3], sizeof wrong);
    return wrong;
}

static hone_problem parsed(const char *text)
{
    hone_error error = {0};
    hone_problem problem;

    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
    return problem;
}

static const char *const matrices[] = {
    "scale_pack:rows=37,groups=56",
    "scale_pack:rows=130,groups=7",
    "scale_pack:rows=3,groups=2,batch=5",
};

START_TEST(packed_words_are_the_hosts)
{
    const hone_problem problem = parsed(matrices[_i]);
    const hone_scale_pack *p = &problem.as.scale_pack;
    hone_error error = {0};
    inputs in, after;

    if (shared.compiler == NULL) {
        return;
    }
    ck_assert_int_eq(inputs_make(&problem, INPUTS_EXTREMES, 3, &in, &error), HONE_OK);
    run(&problem, 5 + (uint64_t)_i, &in, &after);
    const uint64_t one = in.operand[1].bytes / (uint64_t)p->batch;
    uint8_t *expected = malloc(one);
    for (int64_t b = 0; b < p->batch; b++) {
        const float *scales = (const float *)(const void *)in.image[0] + b * p->rows * p->groups;
        ck_assert_msg(hone_pack_scales(scales, p->rows, p->groups, HONE_SCALES_ROW,
                                       HONE_SCALES_PACKED, expected, one, &error) == HONE_OK,
                      "%s", error.message);
        ck_assert_int_eq(memcmp(after.image[1] + (uint64_t)b * one, expected, one), 0);
    }
    ck_assert_uint_eq(wrong_of(&after), wrong_of(&in));
    free(expected);
    inputs_free_outputs(&after);
    inputs_free(&in);
}
END_TEST

static const char *const grouped[] = {
    "scale_pack:rows=20,groups=70,experts=9,gran_k=32",
    "scale_pack:rows=132,groups=40,experts=3",
    "scale_pack:rows=4,groups=200,experts=128",
};

/* The host's words, and zeros for the rest of what is allocated without knowing the sizes. */
START_TEST(experts_words_are_the_hosts)
{
    const hone_problem problem = parsed(grouped[_i]);
    const hone_scale_pack *p = &problem.as.scale_pack;
    hone_error error = {0};
    inputs in, after;
    int64_t k[128];
    uint64_t bytes = 0;

    if (shared.compiler == NULL) {
        return;
    }
    ck_assert_int_eq(inputs_make(&problem, _i == 1 ? INPUTS_WIDE : INPUTS_HOLES, 3, &in, &error),
                     HONE_OK);
    run(&problem, 7 + (uint64_t)_i, &in, &after);
    for (int32_t e = 0; e < p->experts; e++) {
        int32_t size = 0;
        memcpy(&size, in.image[2] + 4 * e, sizeof size);
        k[e] = size;
    }
    const uint64_t all = in.operand[1].bytes;
    uint8_t *expected = calloc(1, all);
    ck_assert_msg(hone_pack_scales_grouped((const float *)(const void *)in.image[0], p->rows, k,
                                           p->experts, p->gran_k, expected, all, &bytes,
                                           &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_uint_gt(bytes, 0);
    ck_assert_int_eq(memcmp(after.image[1], expected, all), 0);
    int64_t over = p->groups; /* what no expert has is counted, a row each */
    for (int32_t e = 0; e < p->experts; e++) {
        over -= (k[e] + p->gran_k - 1) / p->gran_k;
    }
    ck_assert_int_ge(over, 0);
    ck_assert_uint_eq(wrong_of(&after), wrong_of(&in) + (uint64_t)(over * p->rows));
    free(expected);
    inputs_free_outputs(&after);
    inputs_free(&in);
}
END_TEST

/* Every float whose low 16 bits are 0 or 1: all exponents and signs, NaN, infinities, subnormals.
 */
START_TEST(every_exponent_has_its_code_and_nothing_else)
{
    enum { GROUPS = 1024, ROWS = 128 };
    const hone_problem problem = parsed("scale_pack:rows=128,groups=1024");
    hone_error error = {0};
    inputs in, after;
    uint64_t wrong = 0;

    if (shared.compiler == NULL) {
        return;
    }
    ck_assert_int_eq(inputs_make(&problem, INPUTS_ONES, 3, &in, &error), HONE_OK);
    for (uint32_t i = 0; i < ROWS * GROUPS; i++) {
        const uint32_t bits = i >> 1 << 16 | (i & 1);
        memcpy(in.image[0] + 4 * i, &bits, sizeof bits);
    }
    run(&problem, 9, &in, &after);
    for (uint32_t i = 0; i < ROWS * GROUPS; i++) {
        const uint32_t row = i / GROUPS, group = i % GROUPS;
        uint8_t code = 0xff;
        wrong += !numfmt_ue8m0_exact(numfmt_float(i >> 1 << 16 | (i & 1)), &code);
        ck_assert_uint_eq(after.image[1][group / 4 * ROWS * 4 + 4 * row + group % 4], code);
    }
    ck_assert_uint_eq(wrong_of(&after), wrong_of(&in) + wrong);
    ck_assert_uint_eq(wrong, ROWS * GROUPS - 255);
    inputs_free_outputs(&after);
    inputs_free(&in);
}
END_TEST

/* Case 3, in a kernel: an amax of each exponent, around a power of two and around 448 of them, has
 * the least byte whose scale times 448 is not below it, by doubles; and then its own code. */
static const struct {
    const char *rule;
    int least; /* byte, by the rule's floor (kernels.md App. B) */
} ceilings[] = {{"pow2_amax", 105}, {"pow2_scale", 114}, {"pow2_tiny", 1}};

START_TEST(every_exponent_takes_the_least_power_of_two)
{
    enum { GROUP = 32, GROUPS = 255 * 8 };
    static const uint32_t mantissas[8] = {0, 1, 2, 0x5fffff, 0x600000, 0x600001, 0x600002, 0x7fffff};
    char text[100];
    hone_error error = {0};
    inputs in, after;

    if (shared.compiler == NULL) {
        return;
    }
    snprintf(text, sizeof text, "act_quant:m=8,k=%d,group=%d,in=f32,scale=ue8m0,"
             "scale_layout=row,rule=%s",
             GROUP * GROUPS / 8, GROUP, ceilings[_i].rule);
    const hone_problem problem = parsed(text);
    ck_assert_int_eq(inputs_make(&problem, INPUTS_ONES, 3, &in, &error), HONE_OK);
    memset(in.image[0], 0, (size_t)GROUPS * GROUP * sizeof(float));
    for (uint32_t i = 0; i < GROUPS; i++) {
        const uint32_t bits = (i & 1) << 31 | i / 8 << 23 | mantissas[i % 8];
        memcpy(in.image[0] + 4 * (GROUP * i + i % GROUP), &bits, sizeof bits);
    }
    run(&problem, 11, &in, &after);
    for (uint32_t i = 0; i < GROUPS; i++) {
        const double amax = (double)numfmt_float(i / 8 << 23 | mantissas[i % 8]);
        int byte = ceilings[_i].least;
        while (ldexp(448, byte - 127) < amax) {
            byte++;
        }
        ck_assert_msg(after.image[2][i] == byte, "%a: %d, not %d", amax, after.image[2][i], byte);
        const uint8_t code = numfmt_e4m3_encode((float)ldexp(amax, 127 - byte));
        ck_assert_uint_eq(after.image[1][GROUP * i + i % GROUP], code | (i & 1) << 7);
    }
    inputs_free_outputs(&after);
    inputs_free(&in);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
    if (shared.compiler != NULL) {
        hone_error error = {0};
        ck_assert_msg(device_open("emu:h20", &hopper, &error) == HONE_OK, "%s", error.message);
    }
}

static void teardown(void)
{
    device_close(hopper);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("scales");

    tcase_add_loop_test(tests, packed_words_are_the_hosts, 0, (int)ARRAY_LEN(matrices));
    tcase_add_loop_test(tests, experts_words_are_the_hosts, 0, (int)ARRAY_LEN(grouped));
    tcase_add_test(tests, every_exponent_has_its_code_and_nothing_else);
    tcase_add_loop_test(tests, every_exponent_takes_the_least_power_of_two, 0,
                        (int)ARRAY_LEN(ceilings));
    return kernels_run("templates/scales", tests, setup, teardown);
}
