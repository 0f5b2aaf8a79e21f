/* test_inputs_moe.c - rows of experts as kernels.md, Appendix C, wants them: who has how many, and
 * NaN wherever nobody's rows are. */
#include "bench/inputs.h"
#include "bench/segments.h"

#include "core/numfmt.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static hone_error e;

#define SIZES ",n=40,k=160,recipe=f32-1x128-128x128"
static const char *const layouts[] = {
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=contiguous,row_align=16" SIZES,
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=contiguous,row_align=1" SIZES,
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=masked,m=70,row_align=16" SIZES,
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=psum,row_align=16" SIZES,
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=psum,row_align=1,n=40,k=160,recipe=ue8m0-"
    "1x32-1x32",
    "moe_gemm:tokens=60,topk=3,experts=9,group_layout=contiguous,row_align=8,m=64,n=40,k=160,"
    "recipe=ue8m0-1x32-1x32,a_scale_layout=row", /* too few rows for all */
};

static void make(const char *text, inputs_kind kind, inputs_routing routing, uint64_t seed,
                 hone_problem *problem, inputs *in)
{
    ck_assert_msg(hone_problem_parse(text, problem, &e) == HONE_OK, "%s", e.message);
    ck_assert_msg(inputs_make_routed(problem, kind, routing, seed, in, &e) == HONE_OK, "%s",
                  e.message);
}

/* Rows of each expert; what is in range and in order is checked on the way. */
static int64_t count_rows(const hone_moe_gemm *p, const inputs *in, int64_t rows[512])
{
    segments s = {0};
    int64_t total = 0;

    memset(rows, 0, 512 * sizeof *rows);
    ck_assert_int_eq(segments_find(p, in->image[4], &s, &e), HONE_OK);
    for (size_t i = 0; i < s.len; i++) {
        const segments_run *run = &s.run[i];
        ck_assert_int_eq(rows[run->expert], 0);
        ck_assert(p->group_layout == HONE_GROUPS_MASKED || run->row % p->row_align == 0);
        ck_assert_int_le(run->row + run->rows, p->m);
        rows[run->expert] = run->rows;
        total += run->rows;
    }
    segments_free(&s);
    return total;
}

static void check_holes(const hone_moe_gemm *p, const int64_t *rows)
{
    ck_assert_int_eq(rows[0], 0);
    ck_assert_int_eq(rows[p->experts - 1], 0);
    ck_assert_int_eq(rows[p->experts / 2], 0);
    ck_assert_int_eq(rows[2], p->row_align + 1);
    ck_assert_int_eq(rows[3], 1);
    ck_assert_int_eq(rows[5], p->row_align);
}

START_TEST(rows_are_dealt_out_as_the_routing_says)
{
    int64_t rows[512];
    hone_problem problem;
    inputs in = {0};

    for (int routing = INPUTS_ROUTE_BALANCED; routing < INPUTS_ROUTES; routing++) {
        make(layouts[_i], INPUTS_NORMAL, (inputs_routing)routing, 5, &problem, &in);
        const hone_moe_gemm *p = &problem.as.moe_gemm;
        const int64_t total = count_rows(p, &in, rows);
        int64_t most = 0, least = INT64_MAX, with = 0;
        for (int64_t x = 0; x < p->experts; x++) {
            most = rows[x] > most ? rows[x] : most;
            least = rows[x] < least ? rows[x] : least;
            with += rows[x] > 0;
        }
        ck_assert_int_gt(total, 0);
        ck_assert_int_eq(with == 1, routing == INPUTS_ROUTE_ONE);
        if (p->m != 64 && routing == INPUTS_ROUTE_BALANCED) {
            ck_assert(most == 20 && least == 20);
        } else if (p->m != 64 && routing == INPUTS_ROUTE_ZIPF) {
            ck_assert_int_ge(most, 63); /* 180 / (1 + 1/2 + ... + 1/9) = 63.6 */
        } else if (p->m != 64 && routing == INPUTS_ROUTE_HOLES) {
            check_holes(p, rows);
        } else if (p->m != 64) {
            ck_assert_int_gt(most, least);
        }
        const bool full = p->m == 64 || routing == INPUTS_ROUTE_HOLES || most == p->m;
        ck_assert(full || total == 180);
        inputs_free(&in);
    }
}
END_TEST

START_TEST(the_same_seed_gives_the_same_bytes_and_another_other_rows)
{
    hone_problem problem;
    inputs a = {0}, b = {0}, c = {0};

    make(layouts[0], INPUTS_NORMAL, INPUTS_ROUTE_UNIFORM, 5, &problem, &a);
    make(layouts[0], INPUTS_NORMAL, INPUTS_ROUTE_UNIFORM, 5, &problem, &b);
    make(layouts[0], INPUTS_NORMAL, INPUTS_ROUTE_UNIFORM, 6, &problem, &c);
    for (size_t i = 0; i < a.len; i++) {
        ck_assert_mem_eq(a.image[i], b.image[i], a.operand[i].bytes);
    }
    ck_assert(memcmp(a.image[4], c.image[4], a.operand[4].bytes) != 0);
    inputs_free(&a);
    inputs_free(&b);
    inputs_free(&c);
}
END_TEST

static float scale_at(const hone_moe_gemm *p, const inputs *in, int64_t matrix, int64_t row,
                      int64_t group)
{
    const hone_quant *a = &p->recipe.a;
    const int64_t groups = (p->k + a->gran_k - 1) / a->gran_k;
    const uint64_t one = in->operand[1].bytes / (uint64_t)segments_matrices(p);
    const uint8_t *at = in->image[1] + (uint64_t)matrix * one +
                        problem_scale_offset(p->m, groups, (hone_dtype)a->scale,
                                             (hone_scale_layout)p->a_scale_layout, row, group);
    float scale = 0;

    if (a->scale == HONE_DTYPE_UE8M0) {
        return numfmt_ue8m0_decode(*at);
    }
    memcpy(&scale, at, sizeof scale);
    return scale;
}

/* Rows that some expert has, marked. */
static uint8_t *owned(const hone_moe_gemm *p, const inputs *in)
{
    uint8_t *mark = calloc((size_t)(p->m * segments_matrices(p)), 1);
    segments s = {0};

    ck_assert_ptr_nonnull(mark);
    ck_assert_int_eq(segments_find(p, in->image[4], &s, &e), HONE_OK);
    for (size_t i = 0; i < s.len; i++) {
        memset(mark + s.run[i].batch * p->m + s.run[i].row, 1, (size_t)s.run[i].rows);
    }
    segments_free(&s);
    return mark;
}

START_TEST(rows_that_nobody_has_are_poison_and_others_are_not)
{
    hone_problem problem;
    inputs in = {0}, other = {0};

    make(layouts[_i], INPUTS_HOLES, INPUTS_ROUTE_OF_KIND, 7, &problem, &in);
    const hone_moe_gemm *p = &problem.as.moe_gemm;
    uint8_t *mark = owned(p, &in);
    ck_assert_int_eq(inputs_repad(&problem, &in, &other, &e), HONE_OK);
    for (int64_t row = 0; row < p->m * segments_matrices(p); row++) {
        const uint8_t *first = in.image[0] + row * p->k, *second = other.image[0] + row * p->k;
        for (int64_t k = 0; k < p->k; k++) {
            ck_assert(mark[row] ? first[k] == second[k] && (first[k] & 0x7f) != 0x7f
                                : first[k] == 0xff && second[k] == 0x7e);
            const int64_t group = k / p->recipe.a.gran_k;
            const float a = scale_at(p, &in, row / p->m, row % p->m, group);
            const float b = scale_at(p, &other, row / p->m, row % p->m, group);
            ck_assert(mark[row] ? a == b && isfinite(a) : isnan(a) && b == 0x1p127f);
        }
    }
    free(mark);
    inputs_free_padded(&other);
    inputs_free(&in);
}
END_TEST

/* What must be clamped is there, and means as many rows as without it. */
START_TEST(specials_hold_groups_that_are_out_of_range)
{
    static const char *const few[] = {
        "moe_gemm:tokens=7,experts=9,group_layout=contiguous,row_align=16" SIZES,
        "moe_gemm:tokens=7,experts=9,group_layout=masked,m=1" SIZES,
        "moe_gemm:tokens=7,experts=9,group_layout=psum,row_align=16" SIZES,
    };
    int64_t rows[512];
    hone_problem problem;
    inputs in = {0};
    int outside = 0;

    make(few[_i], INPUTS_SPECIALS, INPUTS_ROUTE_OF_KIND, 5, &problem, &in);
    const hone_moe_gemm *p = &problem.as.moe_gemm;
    ck_assert_int_eq(count_rows(p, &in, rows), 7);
    for (uint64_t i = 0; i < in.operand[4].bytes / 4; i++) {
        int32_t group, before = 0;
        memcpy(&group, in.image[4] + 4 * i, 4);
        memcpy(&before, in.image[4] + (i == 0 ? 0 : 4 * (i - 1)), 4);
        outside += p->group_layout == HONE_GROUPS_CONTIGUOUS ? group >= p->experts || group < -1
                   : p->group_layout == HONE_GROUPS_MASKED   ? group < 0 || group > p->m
                                                             : group < 0 || group < before;
    }
    ck_assert_int_ge(outside, p->group_layout == HONE_GROUPS_PSUM ? 1 : 2);
    inputs_free(&in);
}
END_TEST

/* Ends that fall, by less than row_align and by more: no row is two experts'. */
START_TEST(experts_begin_behind_the_furthest_end_before)
{
    static const int32_t ends[] = {20, 3, 30, 17, -5, 23, 40};
    static const int64_t row[] = {0, 24, 32}, rows[] = {20, 6, 8}, expert[] = {0, 2, 6};
    hone_problem problem;
    segments s = {0};

    ck_assert_int_eq(
        hone_problem_parse("moe_gemm:tokens=9,experts=7,m=48,group_layout=psum,row_align=8" SIZES,
                           &problem, &e),
        HONE_OK);
    ck_assert_int_eq(segments_find(&problem.as.moe_gemm, (const uint8_t *)ends, &s, &e), HONE_OK);
    ck_assert_uint_eq(s.len, 3);
    for (size_t i = 0; i < s.len; i++) {
        ck_assert_int_eq(s.run[i].expert, expert[i]);
        ck_assert_int_eq(s.run[i].row, row[i]);
        ck_assert_int_eq(s.run[i].rows, rows[i]);
    }
    segments_free(&s);
}
END_TEST

START_TEST(a_weight_gradients_k_is_whole_groups_and_all_of_it)
{
    hone_problem problem;
    inputs in = {0};

    for (int routing = INPUTS_ROUTE_BALANCED; routing <= INPUTS_ROUTE_ONE; routing++) {
        int64_t sum = 0;
        make("moe_gemm:m=12,tokens=9,experts=5,n=20,k=1152,group_layout=grouped_k,out=f32,"
             "recipe=f32-1x128-1x128",
             INPUTS_NORMAL, (inputs_routing)routing, 5, &problem, &in);
        for (int64_t x = 0; x < 5; x++) {
            int32_t k;
            memcpy(&k, in.image[4] + 4 * x, 4);
            ck_assert(k >= 0 && k % 128 == 0);
            sum += k;
        }
        ck_assert_int_eq(sum, 1152);
        inputs_free(&in);
    }
}
END_TEST

START_TEST(routings_have_names)
{
    ck_assert_str_eq(inputs_routing_name(INPUTS_ROUTE_ZIPF), "zipf");
    ck_assert_ptr_null(inputs_routing_name(INPUTS_ROUTE_OF_KIND));
    ck_assert_ptr_null(inputs_routing_name(INPUTS_ROUTES));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("inputs_moe");

    tcase_add_loop_test(tests, rows_are_dealt_out_as_the_routing_says, 0, ARRAY_LEN(layouts));
    tcase_add_test(tests, the_same_seed_gives_the_same_bytes_and_another_other_rows);
    tcase_add_loop_test(tests, rows_that_nobody_has_are_poison_and_others_are_not, 0,
                        ARRAY_LEN(layouts));
    tcase_add_loop_test(tests, specials_hold_groups_that_are_out_of_range, 0, 3);
    tcase_add_test(tests, experts_begin_behind_the_furthest_end_before);
    tcase_add_test(tests, a_weight_gradients_k_is_whole_groups_and_all_of_it);
    tcase_add_test(tests, routings_have_names);
    return suite_run("bench/inputs_moe", tests);
}
