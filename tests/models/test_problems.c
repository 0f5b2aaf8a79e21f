/* test_problems.c - the problems that a model's layers pose, and that they fit each other. */
#include "models/llm.h"

#include "core/problem.h"

#include "tests/models/claims.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static size_t problems_of(const char *model, int tp, const char *ops, const int64_t *m,
                          size_t m_len, llm_problem **out)
{
    llm *l = NULL;
    hone_error error = {0};
    size_t len = 0;

    ck_assert_int_eq(llm_open(model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, tp, 1, m, m_len, ops, out, &len, &error) == HONE_OK, "%s",
                  error.message);
    llm_close(l);
    return len;
}

/* At M = 64 and TP 8: every problem's text begins a full form that parsing gives back. */
static const struct {
    const char *model, *text, *use;
    int32_t launches;
} expected[] = {
    {"deepseek-v3", "fp8_gemm:m=64,n=2112,k=7168,recipe=f32-1x128-128x128", "attn.qkv_a", 61},
    {"deepseek-v3", "fp8_gemm:m=64,n=3072,k=1536,recipe=f32-1x128-128x128", "attn.q_b", 61},
    {"deepseek-v3", "fp8_gemm:m=64,n=512,k=7168,recipe=f32-1x128-128x128", "shared.gate_up", 58},
    {"deepseek-v3", "act_quant:m=64,k=7168,group=128,scale=f32,rule=raw_amax", "attn.qkv_a", 122},
    {"deepseek-v3.2", "act_quant:m=64,k=7168,group=128,scale=f32,rule=pow2_amax", "attn.qkv_a",
     183},
    {"deepseek-v3.2", "kv_quant:tokens=64,pages=256,record=index_132-split-pow2_amax",
     "indexer.k_cache", 61},
    {"deepseek-v3.2", "kv_quant:tokens=64,pages=256,record=v32_656-interleaved-pow2_scale",
     "attn.kv_cache", 61},
    {"deepseek-v4-flash", "fp8_gemm:m=64,n=1536,k=4096,recipe=f32-1x128-128x128", "attn.qkv_a", 43},
    {"deepseek-v4-flash", "kv_quant:tokens=64,pages=256,record=index_132-split-pow2_amax",
     "indexer.k_cache", 21},
    {"deepseek-v4-flash", "kv_quant:tokens=64,pages=256,record=v4_584-split-pow2_amax",
     "attn.kv_cache", 84},
    {"deepseek-v4-pro",
     "fp8_gemm:m=64,n=1024,k=4096,batch=2,batch_layout=inner,recipe=f32-1x128-128x128", "attn.wo_a",
     61},
    {"deepseek-v4-pro", "act_quant:m=64,k=8192,group=128,scale=f32,rule=pow2_amax", "attn.wo_a",
     61},
    {"deepseek-v4.1-flash", "fp8_gemm:m=64,n=1792,k=5120,recipe=ue8m0-1x32-32x32", "attn.qkv_a",
     40},
    {"deepseek-v4.1-flash", "fp8_gemm:m=64,n=25600,k=6144,recipe=ue8m0-1x32-32x32", "engram.wkv",
     2},
    {"deepseek-v4.1-flash", "fp8_gemm:m=64,n=5120,k=288,recipe=ue8m0-1x32-32x32", "shared.down",
     40},
    {"deepseek-v4.1-flash", "act_quant:m=64,k=288,group=32,scale=ue8m0,rule=pow2_amax",
     "shared.down", 40},
    {"deepseek-v4.1-flash", "kv_quant:tokens=64,pages=256,record=v41_528-split-pow2_amax",
     "attn.kv_cache", 44},
    {"deepseek-v4.1-flash", "kv_quant:tokens=64,pages=256,record=v41_528-interleaved-pow2_amax",
     "attn.kv_cache_rows", 44},
    {"deepseek-v4.1-flash", "kv_quant:tokens=64,pages=256,record=index_132-split-pow2_amax",
     "indexer.k_cache", 4},
    {"deepseek-v4.1-flash", "kv_quant:tokens=64,pages=256,record=v41_288-split-e4m3_near",
     "attn.kv_cache_fp4", 4},
    {"deepseek-v4.1-flash", "kv_quant:tokens=64,pages=256,record=index_68-split-pow2_amax",
     "indexer.k_cache_fp4", 4},
    {"glm-5", "kv_quant:tokens=64,pages=256,record=v32_656-interleaved-pow2_scale", "attn.kv_cache",
     78},
    {"qwen3-32b", "fp8_gemm:m=64,n=6400,k=5120,recipe=f32-1x128-128x128", "mlp.gate_up", 64},
};

START_TEST(a_layer_poses_its_problem)
{
    static const int64_t m[] = {64};
    llm_problem *problems = NULL;
    hone_problem want;
    hone_error error = {0};
    size_t len = problems_of(expected[_i].model, 8, NULL, m, 1, &problems), at = 0;

    ck_assert_msg(hone_problem_parse(expected[_i].text, &want, &error) == HONE_OK, "%s",
                  error.message);
    while (at < len && memcmp(&problems[at].problem, &want, sizeof want) != 0) {
        at++;
    }
    ck_assert_msg(at < len, "%s lacks %s", expected[_i].model, expected[_i].text);
    ck_assert_str_eq(problems[at].use, expected[_i].use);
    ck_assert_int_eq(problems[at].launches, expected[_i].launches);
    free(problems);
}
END_TEST

/* Prefills read keys as they are and latents as values; a plain list leaves both out. */
START_TEST(gathers_are_asked_for)
{
    static const int64_t m[] = {64};
    llm_problem *problems = NULL;
    size_t len = problems_of("deepseek-v3.2", 8, "kv_gather", m, 1, &problems);

    ck_assert_uint_eq(len, 2);
    ck_assert_int_eq(problems[0].problem.as.kv_gather.to, HONE_GATHER_RAW);
    ck_assert_int_eq(problems[1].problem.as.kv_gather.to, HONE_GATHER_BF16);
    ck_assert_int_eq(problems[1].problem.as.kv_gather.by, HONE_GATHER_TABLE);
    free(problems);
    len = problems_of("deepseek-v3.2", 8, NULL, m, 1, &problems);
    for (size_t i = 0; i < len; i++) {
        ck_assert_int_ne(problems[i].problem.op, HONE_OP_KV_GATHER);
    }
    free(problems);
}
END_TEST

/* Experts of a rank: masked for a decode step, contiguous beyond. */
static const struct {
    const char *model;
    int64_t tokens;
    const char *text, *use;
} grouped[] = {
    {"deepseek-v3.2", 64,
     "moe_gemm:m=512,tokens=64,topk=8,experts=32,n=4096,k=7168,group_layout=masked,recipe=f32-"
     "1x128-"
     "128x128",
     "experts.w13"},
    {"deepseek-v3.2", 512,
     "moe_gemm:tokens=512,topk=8,experts=32,n=7168,k=2048,group_layout=contiguous,recipe=f32-1x128-"
     "128x128",
     "experts.w2"},
    {"deepseek-v4-flash", 1,
     "moe_gemm:m=128,tokens=1,topk=6,experts=32,n=4096,k=4096,group_layout=masked,recipe=f32-1x128-"
     "e2m1/ue8m0/1x32",
     "experts.w13"},
    {"deepseek-v4.1-flash", 4096,
     "moe_gemm:tokens=4096,topk=6,experts=48,n=5120,k=2304,group_layout=contiguous,recipe=ue8m0-"
     "1x32-e2m1/1x32",
     "experts.w2"},
    /* W13 up to what W2 reads */
    {"deepseek-v3.2", 64,
     "moe_gemm:m=512,tokens=64,topk=8,experts=32,n=4096,k=7168,group_layout=masked,recipe=f32-"
     "1x128-128x128,activation=silu_mul,out=e4m3,out_scale=f32,out_group=128,out_rule=pow2_amax",
     "experts.w13"},
    {"deepseek-v4.1-flash", 512,
     "moe_gemm:tokens=512,topk=6,experts=48,n=4608,k=5120,group_layout=contiguous,recipe=ue8m0-"
     "1x32-e2m1/1x32,activation=silu_mul_v4,out=e4m3,out_scale=ue8m0,out_group=32",
     "experts.w13"},
};

START_TEST(routed_experts_are_asked_for)
{
    llm *l = NULL;
    llm_problem *problems = NULL;
    hone_problem want;
    hone_error error = {0};
    size_t len = 0, at = 0;

    ck_assert_int_eq(llm_open(grouped[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 1, 8, &grouped[_i].tokens, 1, "moe_gemm", &problems, &len,
                               &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(hone_problem_parse(grouped[_i].text, &want, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_uint_ge(len, 2);
    while (at < len && memcmp(&problems[at].problem, &want, sizeof want) != 0) {
        at++;
    }
    ck_assert_msg(at < len, "%s lacks %s", grouped[_i].model, grouped[_i].text);
    ck_assert_str_eq(problems[at].use, grouped[_i].use);
    free(problems);
    ck_assert_int_eq(llm_problems(l, 1, 8, &grouped[_i].tokens, 1, NULL, &problems, &len, &error),
                     HONE_OK);
    for (size_t i = 0; i < len; i++) {
        ck_assert_int_ne(problems[i].problem.op, HONE_OP_MOE_GEMM);
    }
    free(problems);
    llm_close(l);
}
END_TEST

/* Of EP 8: a rank's experts, the choices of all ranks' tokens; rows as the products want them. */
static const struct {
    const char *model;
    int64_t tokens; /* of a rank */
    const char *align, *combine, *gathered;
    int32_t launches;
} routed[] = {
    {"deepseek-v3.2", 64, "moe_align:tokens=512,experts=32,topk=8,group_layout=masked",
     "moe_combine:tokens=512,n=7168,m=16384,topk=8,accumulate=1",
     "act_quant:m=512,k=7168,experts=32,tokens=512,topk=8,row_set=gathered,rule=pow2_amax", 58},
    {"deepseek-v4.1-flash", 512,
     "moe_align:tokens=4096,m=9088,experts=48,topk=6,group_layout=contiguous",
     "moe_combine:tokens=4096,n=5120,m=9088,topk=6,accumulate=1",
     "act_quant:m=9088,k=5120,tokens=4096,topk=6,row_set=gathered,scale=ue8m0,group=32", 40},
    {"qwen3-235b-a22b", 1, "moe_align:tokens=8,experts=16,topk=8,group_layout=masked",
     "moe_combine:tokens=8,n=4096,m=2048,topk=8",
     "act_quant:m=128,k=4096,experts=16,tokens=8,topk=8,row_set=gathered", 94},
};

START_TEST(routed_experts_ask_for_rows_and_sums)
{
    const int64_t *m = &routed[_i].tokens;
    const char *const texts[] = {routed[_i].align, routed[_i].combine};
    llm_problem *problems = NULL;
    hone_error error = {0};
    llm *l = NULL;
    size_t len = 0;

    ck_assert_int_eq(llm_open(routed[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 1, 8, m, 1, "moe_align,moe_combine", &problems, &len, &error) ==
                      HONE_OK,
                  "%s", error.message);
    ck_assert_uint_eq(len, 2);
    for (size_t i = 0; i < len; i++) {
        hone_problem want;
        ck_assert_int_eq(hone_problem_parse(texts[i], &want, &error), HONE_OK);
        ck_assert_mem_eq(&problems[i].problem, &want, sizeof want);
        ck_assert_int_eq(problems[i].launches, routed[_i].launches);
    }
    free(problems);
    ck_assert_int_eq(llm_problems(l, 1, 8, m, 1, NULL, &problems, &len, &error), HONE_OK);
    for (size_t i = 0; i < len; i++) { /* a plain list has neither */
        ck_assert_int_lt(problems[i].problem.op, HONE_OP_MOE_ALIGN);
    }
    free(problems);
    llm_close(l);
}
END_TEST

static size_t count_gathered(const llm_problem *problems, size_t len, size_t *last)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        const hone_problem *p = &problems[i].problem;
        if (p->op == HONE_OP_ACT_QUANT && p->as.act_quant.row_set == HONE_ROWS_GATHERED) {
            *last = i;
            count++;
        }
    }
    return count;
}

/* Beside the products, what quantises for them; without them, dense inputs alone. */
START_TEST(routed_experts_have_their_tokens_gathered)
{
    const int64_t *m = &routed[_i].tokens;
    llm_problem *problems = NULL;
    hone_problem want;
    hone_error error = {0};
    llm *l = NULL;
    size_t len = 0, at = 0;

    ck_assert_int_eq(llm_open(routed[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, 1, 8, m, 1, "act_quant,moe_gemm", &problems, &len, &error) ==
                      HONE_OK,
                  "%s", error.message);
    ck_assert_uint_eq(count_gathered(problems, len, &at), 1);
    ck_assert_int_eq(hone_problem_parse(routed[_i].gathered, &want, &error), HONE_OK);
    ck_assert_mem_eq(&problems[at].problem, &want, sizeof want);
    ck_assert_str_eq(problems[at].use, "experts.w13");
    ck_assert_int_eq(problems[at].launches, routed[_i].launches);
    for (size_t i = 0; i < len; i++) { /* they make what the products read */
        const hone_moe_gemm *g = &problems[i].problem.as.moe_gemm;
        const hone_act_quant *q = &problems[at].problem.as.act_quant;
        if (problems[i].problem.op == HONE_OP_MOE_GEMM &&
            strcmp(problems[i].use, "experts.w13") == 0) {
            ck_assert(q->m == g->m && q->k == g->k && q->group == g->recipe.a.gran_k &&
                      q->scale == g->recipe.a.scale && q->scale_layout == g->a_scale_layout);
        }
    }
    free(problems);
    ck_assert_int_eq(llm_problems(l, 1, 8, m, 1, "act_quant", &problems, &len, &error), HONE_OK);
    ck_assert_uint_eq(count_gathered(problems, len, &at), 0);
    free(problems);
    llm_close(l);
}
END_TEST

/* Whether an act_quant of the list makes exactly what the GEMM reads as A. */
static bool is_fed(const llm_problem *problems, size_t len, const hone_fp8_gemm *g)
{
    for (size_t i = 0; i < len; i++) {
        const hone_act_quant *q = &problems[i].problem.as.act_quant;

        if (problems[i].problem.op == HONE_OP_ACT_QUANT && q->m == g->m &&
            q->k == g->k * g->batch && q->scale == g->recipe.a.scale &&
            q->group == g->recipe.a.gran_k && q->scale_layout == g->a_scale_layout &&
            q->out == g->recipe.a.element) {
            return true;
        }
    }
    return false;
}

static const char *const quantised[] = {
    "deepseek-v3", "deepseek-v3.2",   "deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v4.1-flash",
    "kimi-k2",     "qwen3-235b-a22b", "qwen3-32b",         "minimax-m2",
};

START_TEST(every_gemm_is_fed_and_no_problem_stands_twice)
{
    const int64_t *m = NULL;
    size_t m_len = shapes_m_default(&m), gemms = 0;
    llm_problem *problems = NULL;
    size_t len = problems_of(quantised[_i], 4, NULL, m, m_len, &problems);

    for (size_t i = 0; i < len; i++) {
        const hone_problem *p = &problems[i].problem;

        ck_assert_int_eq(hone_problem_check(p, NULL), HONE_OK);
        ck_assert_int_gt(problems[i].launches, 0);
        if (p->op == HONE_OP_FP8_GEMM) {
            ck_assert_msg(is_fed(problems, len, &p->as.fp8_gemm), "%s", problems[i].use);
            gemms++;
        }
        for (size_t j = 0; j < i; j++) {
            ck_assert(memcmp(p, &problems[j].problem, sizeof *p) != 0);
        }
    }
    ck_assert_uint_gt(gemms, 0);
    ck_assert_uint_eq(gemms % m_len, 0);
    free(problems);
}
END_TEST

static const struct {
    const char *model;
    size_t gemm, act, kv; /* distinct problems at one m and TP 8 */
} counts[] = {
    {"deepseek-v3", 8, 6, 0},         {"deepseek-v3.2", 10, 6, 2}, {"deepseek-v4-flash", 6, 3, 2},
    {"deepseek-v4.1-flash", 7, 6, 5}, {"glm-5", 0, 0, 2},          {"qwen3-30b-a3b", 0, 0, 0},
    {"qwen3-32b", 4, 3, 0},           {"llama-3.3-70b", 0, 0, 0},
};

START_TEST(ops_select_problems)
{
    static const int64_t m[] = {16};
    static const char *const ops[] = {"fp8_gemm", "act_quant", "kv_quant", "kv_gather"};
    const size_t want[] = {counts[_i].gemm, counts[_i].act, counts[_i].kv, counts[_i].kv};

    for (size_t op = 0; op < 4; op++) {
        llm_problem *problems = NULL;
        size_t len = problems_of(counts[_i].model, 8, ops[op], m, 1, &problems);

        ck_assert_msg(len == want[op], "%s %s: %zu", counts[_i].model, ops[op], len);
        for (size_t i = 0; i < len; i++) {
            ck_assert_str_eq(problem_op_name(problems[i].problem.op), ops[op]);
        }
        free(problems);
    }
}
END_TEST

static const struct {
    const char *claim, *model;
    int tp;
    int64_t m;
    const char *ops;
    hone_status status;
    const char *says;
} refusals[] = {
    {"a cut that the blocks forbid", "qwen3-235b-a22b", 8, 1, NULL, HONE_BAD_MODEL,
     "experts.w13: n part 192 is not whole blocks of 128"},
    {"an op that is none", "deepseek-v3", 8, 1, "fp8_gemm,gelu", HONE_UNKNOWN, "gelu"},
    {"an empty op", "deepseek-v3", 8, 1, "fp8_gemm,", HONE_UNKNOWN, "no op ''"},
    {"no rows", "deepseek-v3", 8, 0, NULL, HONE_BAD_ARGUMENT, "m 0"},
    {"negative rows", "deepseek-v3", 8, -4, NULL, HONE_BAD_ARGUMENT, "m -4"},
    {"too many rows", "deepseek-v3", 8, INT64_MAX, NULL, HONE_BAD_ARGUMENT,
     "m 9223372036854775807"},
    {"no ranks", "deepseek-v3", 0, 1, NULL, HONE_BAD_ARGUMENT, "tp 0"},
};

START_TEST(what_cannot_run_is_refused)
{
    llm *l = NULL;
    llm_problem *problems = NULL;
    size_t len = 9;
    hone_error error = {0};

    ck_assert_int_eq(llm_open(refusals[_i].model, &l, NULL), HONE_OK);
    ck_assert_msg(llm_problems(l, refusals[_i].tp, 1, &refusals[_i].m, 1, refusals[_i].ops,
                               &problems, &len, &error) == refusals[_i].status,
                  "%s: %s", refusals[_i].claim, error.message);
    ck_assert_msg(strstr(error.message, refusals[_i].says) != NULL, "%s", error.message);
    ck_assert_ptr_null(problems);
    ck_assert_uint_eq(len, 9);
    llm_close(l);
}
END_TEST

START_TEST(a_reblocked_model_is_refused_where_its_experts_do_not_divide)
{
    static const int64_t m[] = {1};
    llm *l = NULL, *per128 = NULL;
    llm_problem *problems = NULL;
    size_t len = 0;
    hone_error error = {0};

    ck_assert_int_eq(llm_open("deepseek-v4.1-flash", &l, NULL), HONE_OK);
    ck_assert_int_eq(llm_reblock(l, 128, &per128, NULL), HONE_OK);
    ck_assert_int_eq(llm_problems(l, 8, 1, m, 1, NULL, &problems, &len, NULL), HONE_OK);
    free(problems);
    ck_assert_int_eq(llm_problems(per128, 8, 1, m, 1, NULL, &problems, &len, &error),
                     HONE_BAD_MODEL);
    ck_assert_ptr_nonnull(strstr(error.message, "288 is not whole blocks of 128"));
    ck_assert_int_eq(llm_reblock(l, 0, &per128, NULL), HONE_BAD_ARGUMENT);
    llm_close(per128);
    llm_close(l);
}
END_TEST

START_TEST(the_m_lists_ascend_and_one_holds_the_other)
{
    const int64_t *few = NULL, *all = NULL;
    size_t few_len = shapes_m_default(&few), all_len = shapes_m_all(&all), held = 0;

    ck_assert_uint_eq(few_len, 5);
    for (size_t i = 1; i < all_len; i++) {
        ck_assert_int_lt(all[i - 1], all[i]);
    }
    for (size_t i = 0; i < few_len * all_len; i++) {
        held += few[i / all_len] == all[i % all_len];
    }
    ck_assert_uint_eq(held, few_len);
    ck_assert_int_le(all[all_len - 1], (int64_t)SHAPES_PAGES * SHAPES_PAGE_TOKENS);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("problems");

    tcase_add_loop_test(tests, a_layer_poses_its_problem, 0, sizeof expected / sizeof expected[0]);
    tcase_add_loop_test(tests, routed_experts_are_asked_for, 0, ARRAY_LEN(grouped));
    tcase_add_loop_test(tests, every_gemm_is_fed_and_no_problem_stands_twice, 0,
                        sizeof quantised / sizeof quantised[0]);
    tcase_add_test(tests, gathers_are_asked_for);
    tcase_add_loop_test(tests, routed_experts_ask_for_rows_and_sums, 0, (int)ARRAY_LEN(routed));
    tcase_add_loop_test(tests, routed_experts_have_their_tokens_gathered, 0,
                        (int)ARRAY_LEN(routed));
    tcase_add_loop_test(tests, ops_select_problems, 0, sizeof counts / sizeof counts[0]);
    tcase_add_loop_test(tests, what_cannot_run_is_refused, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_test(tests, a_reblocked_model_is_refused_where_its_experts_do_not_divide);
    tcase_add_test(tests, the_m_lists_ascend_and_one_holds_the_other);
    return suite_run("models/problems", tests);
}
