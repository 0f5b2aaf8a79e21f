/* test_proof.c - on emulated GPUs: configs of every template give what float64 gives, and every
 * faulty variant is refused. HONE_PROOF_DRAWS asks for that many random configs of each row instead
 * of one. */
#include "tests/templates/faults.h"

#include "core/problem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;
static device *ada, *hopper;

/* Tails in every dimension, all recipes, layouts, outputs and records. */
static const char *const problems[] = {
    "fp8_gemm:m=1,n=33,k=32,recipe=f32-1x128-128x128",
    "fp8_gemm:m=129,n=127,k=160,recipe=f32-1x128-128x128,b_scale_layout=col",
    "fp8_gemm:m=17,n=576,k=576,recipe=f32-1x128-128x128,a_scale_layout=row,order=fixed",
    "fp8_gemm:m=64,n=128,k=192,recipe=f32-1x128-1x128,out=f32",
    "fp8_gemm:m=15,n=129,k=64,recipe=f32-1x128-1x128,a_scale_layout=col,b_scale_layout=row",
    "fp8_gemm:m=16,n=136,k=576,recipe=f32-1x32-32x32,accumulate=1",
    "fp8_gemm:m=127,n=48,k=160,recipe=ue8m0-1x32-32x32,out=f32,accumulate=1",
    "fp8_gemm:m=5,n=40,k=144,recipe=ue8m0-1x32-32x32,a_scale_layout=row,b_scale_layout=col",
    "fp8_gemm:m=33,n=130,k=128,recipe=ue8m0-1x32-1x32",
    "fp8_gemm:m=128,n=64,k=320,recipe=f32-1x32-1x32,a_scale_layout=row",
    "fp8_gemm:m=9,n=72,k=160,recipe=f32-1x32-32x32,batch=8,batch_layout=inner",
    "fp8_gemm:m=9,n=72,k=160,recipe=ue8m0-1x32-1x32,batch=3,batch_layout=inner",
    "fp8_gemm:m=9,n=65,k=160,recipe=f32-1x128-128x128,batch=2",
    "fp8_gemm:m=3,n=7,k=45,recipe=f32-1x128-128x128",
    "act_quant:m=5,k=384",
    "act_quant:m=4,k=256,scale_layout=row,rule=pow2_scale,in=f16",
    "act_quant:m=7,k=160,group=32,scale=ue8m0,in=f32",
    "act_quant:m=3,k=128,scale_layout=col,rule=raw_tiny",
    "act_quant:m=6,k=288,group=32,scale=ue8m0,scale_layout=col,rule=pow2_scale",
    "act_quant:m=11,k=192,group=64,scale=ue8m0,activation=silu_mul,count=1",
    "act_quant:m=9,k=256,in=f16,experts=6,row_set=masked,activation=silu_mul_v4,count=1",
    "act_quant:m=50,k=320,in=f32,group=32,scale=ue8m0,row_set=listed",
    "act_quant:m=14,k=256,experts=4,scale=ue8m0,row_set=gathered,tokens=6,topk=3,count=1",
    "act_quant:m=33,k=192,group=64,in=f16,row_set=gathered,tokens=40,activation=silu_mul",
    "weight_quant:n=200,k=333",
    "weight_quant:n=130,k=416,in=f32,rule=pow2_scale,scale_layout=col",
    "weight_quant:n=70,k=100,gran_n=32,gran_k=32,scale=ue8m0",
    "weight_quant:n=13,k=420,in=f16,gran_n=1,gran_k=32,scale=ue8m0",
    "weight_quant:n=30,k=520,gran_n=1,gran_k=128",
    "weight_quant:n=70,k=420,in=f32,rule=pow2_tiny",
    "weight_quant:n=140,k=72,gran_n=128,gran_k=32",
    "mxfp4_fold:n=130,k=416",
    "mxfp4_fold:n=33,k=96,batch=3,block_rows=32,block_cols=32,scale=f32",
    "mxfp4_fold:n=7,k=1120,block_rows=1",
    "mxfp4_fold:n=129,k=160,batch=2,scale=f32",
    "scale_pack:rows=37,groups=56",
    "scale_pack:rows=133,groups=7,batch=3",
    "scale_pack:rows=70,groups=18",
    "scale_pack:rows=37,groups=57,scale=f32",
    "scale_pack:rows=130,groups=12,batch=2,scale_layout=col",
    "scale_pack:rows=132,groups=70,experts=9,gran_k=32",
    "scale_pack:rows=8,groups=300,experts=128",
    "moe_align:tokens=37,experts=9,topk=4,group_layout=contiguous,row_align=16",
    "moe_align:tokens=300,experts=256,topk=8,group_layout=contiguous,ids=i64",
    "moe_align:tokens=70,experts=512,topk=6,group_layout=psum,row_align=24",
    "moe_align:tokens=37,m=70,experts=9,topk=4,group_layout=psum,ids=i64,align=8",
    "moe_align:tokens=129,experts=48,topk=6,group_layout=masked",
    "moe_align:tokens=37,m=5,experts=9,topk=4,group_layout=masked,align=4",
    "moe_align:tokens=1,experts=1,topk=1,group_layout=contiguous",
    "moe_combine:tokens=13,n=40,topk=6",
    "moe_combine:tokens=5,n=33,topk=3,m=20,in=f32,out=f32,accumulate=1",
    "moe_combine:tokens=40,n=136,topk=8,accumulate=1",
    "moe_combine:tokens=3,n=90,topk=10,m=7,out=f32",
    "moe_combine:tokens=15,n=33,topk=3,out=f32",
    "moe_combine:tokens=17,n=33,topk=6,accumulate=1",
    "moe_combine:tokens=1,n=2048,topk=1,in=f32",
    "topk:rows=9,width=5000,k=512",
    "topk:rows=10,width=9001,k=705,in=bf16,span=both,sort=by_score",
    "topk:rows=5,width=40000,stride=40003,k=1,span=both",
    "topk:rows=13,width=3000,k=4096,in=bf16,span=whole,sort=by_score",
    "topk:rows=9,width=20001,k=100,pick=blocked,block=8,pin=1,drop=1",
    "topk:rows=9,width=9000,k=60,in=bf16,span=both,pick=blocked,block=16,sort=by_score",
    "topk:rows=9,width=16384,k=512,span=compressed,pick=listed,block=8",
    "topk:rows=3,width=0,k=5",
    "index_prepare:tokens=9,pages=3,heads=64,hadamard=1,record=index_132-split-pow2_amax",
    "index_prepare:tokens=40,pages=5,page_size=32,page_stride=2180,heads=8,rope=last,pairs=halves,"
    "record=index_68-split-pow2_tiny",
    "kv_quant:tokens=9,pages=3,record_format=index_132,record_layout=split,record_rule=raw_amax",
    "kv_quant:tokens=40,pages=5,page_size=32,record_format=v32_656,record_layout=interleaved,"
    "record_rule=pow2_scale",
    "kv_quant:tokens=40,pages=5,record=v4_584-split-pow2_amax",
    "kv_quant:tokens=40,pages=5,record=v41_288-split-e4m3_near",
    "kv_quant:tokens=40,pages=2,page_size=256,record=v41_288-interleaved-e4m3_up",
    "kv_quant:tokens=17,pages=5,record=nvfp4_352-interleaved-e4m3_up",
    "kv_quant:tokens=17,pages=5,page_stride=4356,record=index_68-split-pow2_tiny",
    "kv_quant:tokens=17,pages=5,record=fp8_576-flat-tensor",
    "kv_quant:tokens=17,pages=5,record=bf16_1152-flat-unscaled",
    "kv_gather:tokens=40,pages=5,record=v41_528-split-pow2_amax",
    "kv_gather:tokens=40,pages=5,by=table,sequences=3,table_pages=2,record=v41_288-split-e4m3_near",
    "kv_gather:tokens=40,pages=5,page_size=32,record=nvfp4_352-interleaved-e4m3_up",
    "kv_gather:tokens=40,pages=5,to=raw,record=v32_656-interleaved-pow2_scale",
    "kv_gather:tokens=40,pages=5,to=raw,by=table,sequences=5,table_pages=1,page_stride=8452,record="
    "index_132-split-raw_amax",
    "kv_quant:tokens=40,pages=5,page_stride=34816,record_format=v41_528,record_layout=split,"
    "record_rule=pow2_amax",
    "kv_quant:tokens=17,pages=4,page_size=128,record_format=v41_528,record_layout=interleaved,"
    "record_rule=pow2_amax",
    "fold:m=7,k=416",
    "fold:m=13,k=672,scale_layout=row,q_scale_layout=col",
    "fold:m=4,k=128,scale_layout=col,q_scale_layout=row",
    "fp8_gemm:m=70,n=136,k=320,recipe=ue8m0-1x128-32x128", /* folded along K */
    "fp8_gemm:m=70,n=272,k=320,recipe=ue8m0-1x32-128x32",  /* and along N */
    "moe_align:tokens=70,m=1000,experts=33,topk=4,group_layout=grouped_k,row_align=32",
};

static int draws(void)
{
    const char *asked = getenv("HONE_PROOF_DRAWS");

    return asked != NULL ? atoi(asked) : 1;
}

/* Random legal configs of a problem on `d`, with all kinds of inputs in turn. */
static void prove_draws(const device *d, int row)
{
    hone_error error = {0};
    hone_problem problem;
    template_source source;
    space *s = NULL;
    uint64_t seed = 31 + (uint64_t)row;

    ck_assert_msg(hone_problem_parse(problems[row], &problem, &error) == HONE_OK, "%s",
                  error.message);
    const manifest *m = kernels_serving(&shared, &problem, &d->gpu.facts);
    ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
    ck_assert_msg(space_open(m, &problem, &d->gpu.facts, &s, &error) == HONE_OK, "%s",
                  error.message);
    for (int i = 0; i < draws(); i++) {
        config c;
        bool found = false, uniform;
        char reason[240] = "", text[512] = "";
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        ck_assert_msg(found, "%s: no legal config", problems[row]);
        const proof_case one = {.m = m,
                                .source = &source,
                                .problem = &problem,
                                .config = &c,
                                .kind = (inputs_kind)((row + i) % INPUTS_KINDS)};
        const bool passed = proof_passes(&shared, d, &one, reason);
        manifest_config_format(m, &c, text, sizeof text, NULL);
        ck_assert_msg(passed, "%s on %s, inputs %d, %s: %s", problems[row], d->spec, one.kind, text,
                      reason);
    }
    space_close(s);
}

/* One draw: the rows take turns between the two GPUs, whose tensor cores differ. Many: each row on
 * both. */
START_TEST(configs_agree_with_float64)
{
    if (shared.compiler == NULL) {
        return;
    }
    if (draws() > 1 || _i % 2 == 0) {
        prove_draws(ada, _i);
    }
    if (draws() > 1 || _i % 2 == 1) {
        prove_draws(hopper, _i);
    }
}
END_TEST

/* order=fixed: a row's bits do not depend on how many rows there are, nor on the config. */
static const char *const fixed[] = {
    "fp8_gemm:m=%d,n=72,k=320,recipe=f32-1x128-128x128,a_scale_layout=row,order=fixed,out=f32",
    "fp8_gemm:m=%d,n=48,k=160,recipe=ue8m0-1x32-1x32,a_scale_layout=row,order=fixed,out=f32",
};

/* The first rows of the operands of a larger problem: all of it but D's and A's later rows. */
static void first_rows(const hone_problem *problem, const inputs *whole, inputs *part)
{
    hone_error error = {0};

    *part = *whole;
    ck_assert_msg(hone_operands(problem, part->operand, &part->len, &error) == HONE_OK, "%s",
                  error.message);
}

START_TEST(a_fixed_order_gives_a_row_the_same_bits)
{
    static const int sizes[] = {129, 1, 16, 33};
    hone_error error = {0};
    inputs whole = {0}, part, after[ARRAY_LEN(sizes)] = {{0}};
    uint64_t seed = 1; /* with order=any its draws promote differently, and the bits differ */

    for (size_t i = 0; i < ARRAY_LEN(sizes) && shared.compiler != NULL; i++) {
        hone_problem problem;
        template_source source;
        space *s = NULL;
        config c;
        char text[256];
        bool found = false, uniform;
        snprintf(text, sizeof text, fixed[_i], sizes[i]);
        ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
        if (i == 0) {
            ck_assert_int_eq(inputs_make(&problem, INPUTS_NORMAL, 3, &whole, &error), HONE_OK);
        }
        first_rows(&problem, &whole, &part);
        const manifest *m = kernels_serving(&shared, &problem, &ada->gpu.facts);
        ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
        ck_assert_int_eq(space_open(m, &problem, &ada->gpu.facts, &s, &error), HONE_OK);
        ck_assert_int_eq(space_draw(s, &seed, 0, &c, &found, &uniform, &error), HONE_OK);
        const proof_case one = {.m = m, .source = &source, .problem = &problem, .config = &c};
        compiled *code = proof_compile(&shared, ada, &one);
        proof_launch(ada, &one, code, &part, &after[i]);
        compiled_free(code);
        ck_assert_msg(memcmp(after[i].image[4], after[0].image[4], part.operand[4].bytes) == 0,
                      "%s: other bits than at m=%d", text, sizes[0]);
        space_close(s);
    }
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        inputs_free_outputs(&after[i]);
    }
    inputs_free(&whole);
}
END_TEST

/* Whatever wins for any M must give a row the same bits: configs that share nothing but the order.
 */
#define WGMMA "fp8_gemm/sm90_wgmma"
#define SYNC  "fp8_gemm/mma_sync"
static const struct {
    device **on;
    const char *template_name, *problem, *config;
} families[] = {
#define CONFIG(swap, m, n, rows, columns, chunks, sets, stages, pair, loaders, staged, idle)       \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " stages=" #stages " pair=" #pair                            \
    " queue=1 split_k=1 share=1 raster=1 staged=" #staged " loader_registers=" #loaders            \
    " residency=1 idle=" #idle
#define PER_128                                                                                    \
    "fp8_gemm:m=%d,n=72,k=320,recipe=f32-1x128-128x128,a_scale_layout=row,order=fixed,out=f32"
#define PER_32 "fp8_gemm:m=%d,n=72,k=320,recipe=ue8m0-1x32-32x32,a_scale_layout=row,order=fixed"
    {&hopper, WGMMA, PER_128, CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 0, 40, 1, 1)},
    {&hopper, WGMMA, PER_128, CONFIG(1, 16, 64, 1, 1, 1, 1, 6, 0, 40, 0, 0)},
    {&hopper, WGMMA, PER_128, CONFIG(0, 64, 64, 1, 1, 1, 1, 3, 2, 40, 0, 0)},
    {&hopper, WGMMA, PER_32, CONFIG(0, 128, 128, 2, 1, 1, 2, 4, 0, 56, 1, 1)},
    {&hopper, WGMMA, PER_32, CONFIG(1, 8, 128, 2, 1, 1, 2, 8, 0, 56, 0, 0)},
    {&hopper, WGMMA, PER_32, CONFIG(1, 64, 64, 1, 1, 1, 1, 3, 1, 40, 1, 1)},
#undef CONFIG
#define CONFIG(swap, m, n, k, rows, columns, stages, promote, raster)                              \
    "swap=" #swap " block_m=" #m " block_n=" #n " block_k=" #k " warps_m=" #rows                   \
    " warps_n=" #columns " warps_k=1 split_k=1 stages=" #stages " promote=" #promote               \
    " raster=" #raster " residency=1"
    {&ada, SYNC, PER_128, CONFIG(0, 128, 80, 128, 4, 2, 3, 128, 8)},
    {&ada, SYNC, PER_128, CONFIG(1, 8, 32, 256, 1, 2, 4, 128, 1)},
    {&ada, SYNC, PER_128, CONFIG(0, 16, 48, 128, 1, 2, 2, 128, 1)},
    {&ada, SYNC, PER_32, CONFIG(0, 96, 64, 64, 2, 4, 2, 32, 1)},
    {&ada, SYNC, PER_32, CONFIG(1, 32, 16, 128, 1, 1, 5, 32, 8)},
    {&ada, SYNC, PER_32, CONFIG(0, 16, 112, 256, 1, 2, 3, 32, 1)},
#undef CONFIG
#define CONFIG(m, n, rows, sets, joint, stages, pair, staged, residency, idle)                     \
    "fold=0 block_m=" #m " block_n=" #n " row_groups=" #rows " chunks=1 sets=" #sets               \
    " joint=" #joint " stages=" #stages " pair=" #pair " split_k=1 raster=1 staged=" #staged       \
    " residency=" #residency " idle=" #idle
#define FP4                                                                                        \
    "fp8_gemm:m=%d,n=72,k=320,recipe=f32-1x128-e2m1/ue8m0/1x32,a_scale_layout=row,order=fixed"
    {&hopper, WGMMA "_fp4", FP4, CONFIG(128, 128, 2, 1, 1, 3, 0, 1, 1, 1)},
    {&hopper, WGMMA "_fp4", FP4, CONFIG(8, 64, 1, 2, 2, 8, 0, 0, 2, 0)},
    {&hopper, WGMMA "_fp4", FP4, CONFIG(64, 64, 1, 2, 1, 3, 1, 0, 1, 1)},
#undef CONFIG
};
enum { MOST_ROWS = 300, CONFIGS_OF_A_FAMILY = 3 };

static hone_problem sized(const char *format, int m)
{
    hone_problem problem;
    hone_error error;
    char text[256];

    snprintf(text, sizeof text, format, m);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s", error.message);
    return problem;
}

/* Every size of one config against `all`, D of MOST_ROWS rows by another config or NULL. */
static void compare_sizes(size_t which, int step, const inputs *whole, inputs *all)
{
    const char *format = families[which].problem;
    const device *d = *families[which].on;
    const manifest *m = templates_find(shared.templates, families[which].template_name);
    hone_problem problem = sized(format, MOST_ROWS);
    hone_error error;
    template_source source;
    config c;

    ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
    ck_assert_msg(manifest_config_parse(m, families[which].config, &c, &error) == HONE_OK, "%s",
                  error.message);
    proof_case one = {.m = m, .source = &source, .problem = &problem, .config = &c};
    compiled *code = proof_compile(&shared, d, &one);
    for (int rows = MOST_ROWS; rows >= 1; rows -= step) {
        inputs part, after = {0};
        problem = sized(format, rows);
        first_rows(&problem, whole, &part);
        proof_launch(d, &one, code, &part, &after);
        if (all->len == 0) {
            *all = after;
            continue;
        }
        ck_assert_msg(memcmp(after.image[4], all->image[4], part.operand[4].bytes) == 0,
                      "%s: other bits at m=%d", families[which].config, rows);
        inputs_free_outputs(&after);
    }
    compiled_free(code);
}

START_TEST(a_row_has_the_same_bits_for_every_m)
{
    const size_t first = (size_t)_i * CONFIGS_OF_A_FAMILY;
    const char *asked = getenv("HONE_ORDER_STEP");
    const int step = asked != NULL && atoi(asked) > 0 ? atoi(asked) : 37;
    const hone_problem problem = sized(families[first].problem, MOST_ROWS);
    hone_error error;
    inputs whole = {0}, all = {0};

    if (shared.compiler == NULL) {
        return;
    }
    const manifest *m = kernels_serving(&shared, &problem, &(*families[first].on)->gpu.facts);
    ck_assert_str_eq(manifest_name(m), families[first].template_name); /* no other unit serves it */
    ck_assert_int_eq(inputs_make(&problem, INPUTS_NORMAL, 3, &whole, &error), HONE_OK);
    for (size_t i = 0; i < CONFIGS_OF_A_FAMILY; i++) {
        compare_sizes(first + i, step, &whole, &all);
    }
    inputs_free_outputs(&all);
    inputs_free(&whole);
}
END_TEST

/* NaN and infinities only quantisers are asked about. */
START_TEST(a_mutant_is_refused_and_its_original_is_not)
{
    const mutant *m = &mutants[_i];
    const bool gemm = strncmp(m->problem, "fp8_gemm:", 9) == 0;
    const inputs_kind kind = gemm ? INPUTS_NORMAL : INPUTS_SPECIALS;

    fault_hold(&shared, ada, m, &kind, 1, true);
}
END_TEST

static void setup(void)
{
    hone_error error = {0};

    shared = kernels_open();
    ck_assert_msg(device_open("emu:rtx4090", &ada, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(device_open("emu:h20", &hopper, &error) == HONE_OK, "%s", error.message);
}

static void teardown(void)
{
    device_close(hopper);
    device_close(ada);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("proof");

    tcase_add_loop_test(tests, configs_agree_with_float64, 0, (int)ARRAY_LEN(problems));
    tcase_add_loop_test(tests, a_fixed_order_gives_a_row_the_same_bits, 0, (int)ARRAY_LEN(fixed));
    tcase_add_loop_test(tests, a_row_has_the_same_bits_for_every_m, 0,
                        (int)ARRAY_LEN(families) / CONFIGS_OF_A_FAMILY);
    tcase_add_loop_test(tests, a_mutant_is_refused_and_its_original_is_not, 0, (int)mutants_len);
    return kernels_run("templates/proof", tests, setup, teardown);
}
