/* test_estimate.c - a manifest's estimate against the emulator's counters, for real kernels: the
 * model must say the same by both ways, or a default would be chosen by other times than a sweep
 * sees. */
#include "runtime/plan_work.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* The best config by the model, of one template, or a pinned one. */
#define MMA_SYNC "fp8_gemm/mma_sync"
#define SCALED   "fp8_gemm/sm120_block_scale"
#define WGMMA    "fp8_gemm/sm90_wgmma"
#define PERSISTENT(share)                                                                          \
    "swap=0 block_m=128 block_n=192 row_groups=2 column_groups=1 chunks=2 sets=2 queue=1 "         \
    "stages=4 pair=0 "                                                                             \
    "split_k=1 share=" #share " raster=8 staged=0 loader_registers=56 residency=1 idle=1"
#define FP4         "fp8_gemm/sm90_wgmma_fp4"
#define MOE         "moe_gemm/sm90_wgmma"
#define MOE_SYNC    "moe_gemm/mma_sync"
#define MOE_SCALED  "moe_gemm/sm120_block_scale"
#define MQA         "mqa_logits/mma_sync"
#define PAGED       "mqa_logits_paged/mma_sync"
#define MQA_WGMMA   "mqa_logits/sm90_wgmma"
#define PAGED_WGMMA "mqa_logits_paged/sm90_wgmma"
#define TOPK        "topk/rows"
#define MQA_PAGED(batch, width, next_n)                                                            \
    "mqa_logits_paged:batch=" #batch ",width=" #width ",next_n=" #next_n ",pages=4097,"
#define FP8_KEYS    "record=index_132-split-raw_amax"
#define CONFIG(...) CONFIG_OF(40, __VA_ARGS__)
#define CONFIG_OF(loader, swap, m, n, rows, columns, chunks, sets, stages, pair, split, staged,    \
                  idle)                                                                            \
    "swap=" #swap " block_m=" #m " block_n=" #n " row_groups=" #rows " column_groups=" #columns    \
    " chunks=" #chunks " sets=" #sets " stages=" #stages " pair=" #pair " split_k=" #split         \
    " raster=8 staged=" #staged " loader_registers=" #loader " residency=1 idle=" #idle            \
    " share=1 queue=1"
static const struct {
    const char *device, *problem, *template, *config;
} kernels[] = {
    {"emu:h20", "fp8_gemm:m=1,n=7168,k=2048,recipe=f32-1x128-128x128", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=64,n=2112,k=7168,recipe=f32-1x128-128x128", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=1024,n=4096,k=2048,recipe=f32-1x128-128x128", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=256,n=1536,k=1024,recipe=f32-1x32-32x32", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=300,n=1000,k=1024,recipe=ue8m0-1x32-1x32,out=f32", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=33,n=136,k=320,batch=2,recipe=f32-1x128-128x128", MMA_SYNC, NULL},
    {"emu:h20", "fp8_gemm:m=1,n=4096,k=7168,recipe=f32-1x128-e2m1/ue8m0/1x32", FP4, NULL},
    {"emu:h20", "fp8_gemm:m=64,n=7168,k=2048,recipe=ue8m0-1x32-e2m1/1x32", FP4, NULL},
    {"emu:rtx4090", "fp8_gemm:m=2048,n=2048,k=512,recipe=f32-1x128-128x128", MMA_SYNC, NULL},
    {"emu:rtx4090", "fp8_gemm:m=16,n=4096,k=4096,recipe=ue8m0-1x32-32x32", MMA_SYNC, NULL},
    {"emu:rtx5090", "fp8_gemm:m=2048,n=4096,k=512,recipe=ue8m0-1x32-32x32", SCALED, NULL},
    {"emu:rtx5090", "fp8_gemm:m=1,n=7168,k=2048,recipe=ue8m0-1x32-32x32", SCALED, NULL},
    {"emu:rtx5090", "fp8_gemm:m=64,n=2112,k=7168,recipe=ue8m0-1x32-1x32", SCALED, NULL},
    {"emu:rtx5090", "fp8_gemm:m=512,n=2048,k=1024,recipe=ue8m0-1x32-e2m1/1x32", SCALED, NULL},
    {"emu:rtx-pro-6000", "fp8_gemm:m=2048,n=2048,k=512,recipe=ue8m0-1x128-128x128", SCALED, NULL},
    {"emu:rtx5090", "fp8_gemm:m=33,n=136,k=320,batch=2,recipe=ue8m0-1x32-1x32,out=f32", SCALED,
     NULL},
    {"emu:rtx5090", "fp8_gemm:m=16,n=1024,k=2048,recipe=ue8m0-1x32-32x32", SCALED,
     "swap=1 block_m=16 block_n=64 block_k=64 warps_r=4 warps_c=1 stages=5 split_k=4 raster=1 "
     "residency=1"},
    {"emu:rtx5090", "fp8_gemm:m=256,n=512,k=1024,recipe=ue8m0-1x32-32x32,b_scale_layout=col",
     SCALED,
     "swap=0 block_m=64 block_n=64 block_k=128 warps_r=2 warps_c=2 stages=3 split_k=1 raster=8 "
     "residency=1"},
    /* Persistent grids, whose samples are drawn from larger ones: 176 tiles on 78 SMs, alone and
     * shared. */
    {"emu:h20", "fp8_gemm:m=2048,n=2112,k=384,recipe=f32-1x32-128x128", WGMMA, PERSISTENT(1)},
    {"emu:h20", "fp8_gemm:m=2048,n=2112,k=384,recipe=f32-1x32-128x128", WGMMA, PERSISTENT(3)},
    {"emu:h20", "fp8_gemm:m=1024,n=4096,k=2048,recipe=f32-1x128-128x128", WGMMA, NULL},
    {"emu:h20", "fp8_gemm:m=1024,n=4096,k=2048,recipe=ue8m0-1x32-32x32", WGMMA, NULL},
    {"emu:h200", "fp8_gemm:m=1024,n=4096,k=2048,recipe=f32-1x32-128x128", WGMMA, NULL},
    {"emu:h200", "fp8_gemm:m=512,n=2112,k=2048,recipe=f32-1x128-1x128,out=f32,accumulate=1", WGMMA,
     NULL},
    {"emu:h20", "fp8_gemm:m=16,n=7168,k=2048,recipe=f32-1x128-128x128", WGMMA, NULL},
    {"emu:h20", "fp8_gemm:m=64,n=2112,k=7168,recipe=ue8m0-1x32-1x32", WGMMA, NULL},
    {"emu:h20", "fp8_gemm:m=1024,n=4096,k=2048,recipe=f32-1x128-128x128", WGMMA,
     CONFIG(0, 128, 128, 2, 1, 1, 1, 4, 1, 1, 1, 1)}, /* pairs */
    {"emu:h20", "fp8_gemm:m=1024,n=4096,k=2048,recipe=ue8m0-1x32-32x32", WGMMA,
     CONFIG(0, 128, 128, 2, 1, 1, 2, 4, 0, 1, 1, 1)},
    {"emu:h200", "fp8_gemm:m=1024,n=4096,k=2048,recipe=f32-1x32-128x128", WGMMA,
     CONFIG(1, 128, 128, 2, 1, 1, 2, 4, 2, 1, 1, 1)}, /* turned, pairs, one B scale a warpgroup */
    /* Five scales of columns, loaded once for 128 of K and two chunks of four units each. */
    {"emu:h200", "fp8_gemm:m=256,n=1280,k=1024,recipe=f32-1x32-128x128", WGMMA,
     "swap=0 block_m=128 block_n=160 row_groups=2 column_groups=1 chunks=2 sets=2 queue=1 stages=4 "
     "pair=1 split_k=1 share=1 raster=1 staged=1 loader_registers=56 residency=1 idle=0"},
    {"emu:h20", "fp8_gemm:m=7,n=2112,k=7168,recipe=f32-1x128-128x128", WGMMA,
     CONFIG_OF(56, 1, 8, 128, 2, 1, 1, 1, 6, 0, 4, 0, 0)}, /* turned, K in four parts */
    {"emu:h20", "fp8_gemm:m=64,n=2112,k=7168,recipe=f32-1x32-32x32,out=f32", WGMMA,
     CONFIG(0, 64, 128, 1, 1, 1, 1, 6, 0, 2, 0, 0)},
    {"emu:rtx4090", "fp8_gemm:m=16,n=128,k=7168,recipe=f32-1x128-128x128", MMA_SYNC,
     "swap=0 block_m=16 block_n=16 block_k=256 warps_m=1 warps_n=2 warps_k=2 split_k=16 stages=3 "
     "promote=128 raster=1 residency=1"},
    {"emu:rtx4090", "fp8_gemm:m=64,n=576,k=7168,recipe=ue8m0-1x32-32x32", MMA_SYNC,
     "swap=0 block_m=64 block_n=64 block_k=128 warps_m=1 warps_n=4 warps_k=2 split_k=8 stages=3 "
     "promote=32 raster=1 residency=1"},
    {"emu:rtx5090", "fp8_gemm:m=1,n=1792,k=5120,recipe=ue8m0-1x32-32x32", MMA_SYNC,
     "swap=1 block_m=8 block_n=32 block_k=256 warps_m=1 warps_n=2 warps_k=4 split_k=3 stages=4 "
     "promote=32 raster=1 residency=1"},
    {"emu:rtx5090", "fp8_gemm:m=512,n=1792,k=5120,recipe=f32-1x128-128x128", MMA_SYNC,
     "swap=0 block_m=64 block_n=112 block_k=128 warps_m=2 warps_n=2 warps_k=1 split_k=1 stages=3 "
     "promote=64 raster=1 residency=1"},
    /* Scores of keys: prefill, and decode by few and by many requests. */
    {"emu:h20", "mqa_logits:tokens=256,keys=8192,heads=64", MQA, NULL},
    {"emu:rtx4090", "mqa_logits:tokens=64,keys=4096,heads=32,dims=64,out=bf16", MQA, NULL},
    {"emu:h20", MQA_PAGED(16, 16384, 1) "heads=64," FP8_KEYS, PAGED, NULL},
    {"emu:h20", MQA_PAGED(64, 8192, 6) "heads=32," FP8_KEYS, PAGED, NULL},
    {"emu:h20", MQA_PAGED(32, 8192, 2) "heads=64,record=index_68-split-pow2_tiny", PAGED, NULL},
    {"emu:rtx4090", "mqa_logits:tokens=64,keys=4096,heads=64,element=e2m1", MQA, NULL},
    {"emu:h20", MQA_PAGED(16, 32768, 1) "heads=64," FP8_KEYS, PAGED_WGMMA, NULL},
    {"emu:h200", MQA_PAGED(64, 8192, 1) "heads=64," FP8_KEYS, PAGED_WGMMA, NULL},
    {"emu:h20", "mqa_logits:tokens=256,keys=8192,heads=64", MQA_WGMMA, NULL},
    {"emu:h200", MQA_PAGED(16, 32768, 1) "heads=32,record=index_68-split-pow2_tiny", PAGED_WGMMA,
     NULL},
    {"emu:h200", "mqa_logits:tokens=128,keys=4096,heads=32,element=e2m1", MQA_WGMMA, NULL},
    {"emu:rtx5090", "mqa_logits:tokens=128,keys=4096,heads=64,element=e2m1",
     "mqa_logits/sm120_block_scale", NULL},
    {"emu:h200", "mqa_logits:tokens=512,keys=4096,heads=32,out=bf16", MQA_WGMMA, NULL},
    {"emu:rtx4090", MQA_PAGED(32, 4096, 2) "heads=32,page_size=32," FP8_KEYS, PAGED, NULL},
    /* The best of rows: by a CTA each, by clusters, of pairs of bf16. */
    {"emu:h20", "topk:rows=64,width=65536,k=512", TOPK, NULL},
    {"emu:h20", "topk:rows=16,width=131072,k=2048", TOPK, NULL},
    {"emu:h20", "topk:rows=128,width=65536,k=512,in=bf16", TOPK, NULL},
    /* Experts' rows, evenly: few and many of each, gates and ups with and without codes. */
    {"emu:h20",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=8,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-32x32",
     MOE, NULL},
    {"emu:h20",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=contiguous,recipe=f32-1x128-"
     "128x128",
     MOE, NULL},
    {"emu:h200",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=psum,recipe=ue8m0-1x32-32x32",
     MOE, NULL},
    {"emu:h20",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=contiguous,recipe=f32-1x128-"
     "128x128,activation=silu_mul,out=e4m3,out_group=128,out_scale=f32",
     MOE "_gated", NULL},
    {"emu:h20",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=64,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-32x32,activation=silu_mul_v4,out=e4m3,out_group=32",
     MOE "_gated", NULL},
    {"emu:h20",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=8,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-e2m1/1x32",
     MOE "_fp4", NULL},
    {"emu:h20",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=64,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-e2m1/1x32,activation=silu_mul_v4,out=e4m3,out_group=32",
     MOE "_fp4_gated", NULL},
    {"emu:h20",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=64,topk=6,group_layout=masked,recipe=f32-"
     "1x128-e2m1/ue8m0/1x32",
     MOE "_fp4",
     "fold=0 block_m=24 block_n=256 row_groups=1 chunks=1 sets=2 joint=1 stages=3 pair=0 share=3 "
     "raster=1 staged=0 residency=2"},
    {"emu:rtx4090",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=8,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-32x32",
     MOE_SYNC, NULL},
    {"emu:rtx4090",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=contiguous,recipe=f32-1x128-"
     "128x128",
     MOE_SYNC, NULL},
    {"emu:rtx5090",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=psum,recipe=f32-1x128-"
     "128x128",
     MOE_SYNC, NULL},
    {"emu:rtx4090",
     "moe_gemm:m=128,n=2048,k=1024,experts=16,tokens=64,topk=6,group_layout=masked,recipe=ue8m0-"
     "1x32-32x32,activation=silu_mul_v4,out=e4m3,out_group=32",
     MOE_SYNC, NULL},
    {"emu:rtx5090",
     "moe_gemm:n=2048,k=1024,experts=8,tokens=512,topk=4,group_layout=contiguous,recipe=ue8m0-1x32-"
     "e2m1/1x32,activation=silu_mul_v4,out=e4m3,out_group=32",
     MOE_SCALED, NULL},
    {"emu:rtx4090",
     "moe_gemm:m=512,n=512,k=2048,experts=4,tokens=8,group_layout=grouped_k,out=f32,recipe=f32-"
     "1x32-1x32",
     MOE_SYNC "_k", NULL},
    /* Groups of K, evenly. */
    {"emu:h20",
     "moe_gemm:m=512,n=512,k=2048,experts=4,tokens=8,group_layout=grouped_k,out=f32,recipe=f32-"
     "1x128-1x128",
     MOE "_k", NULL},
    {"emu:h200",
     "moe_gemm:m=320,n=768,k=1536,experts=3,tokens=8,group_layout=grouped_k,out=f32,recipe=f32-"
     "1x32-1x32",
     MOE "_k", NULL},
    /* What is quantised, folded and moved. */
    {"emu:h20", "act_quant:m=1024,k=7168", NULL, NULL},
    {"emu:h20", "act_quant:m=1024,k=7168,group=32,in=f32", NULL, NULL},
    {"emu:h20", "act_quant:m=1024,k=2048,activation=silu_mul", NULL, NULL},
    {"emu:h20", "weight_quant:n=1024,k=7168", NULL, NULL},
    {"emu:h20", "weight_quant:n=1024,k=7168,in=f32", NULL, NULL},
    {"emu:h20", "mxfp4_fold:n=1024,k=7168", NULL, NULL},
    {"emu:h20", "scale_pack:rows=65536,groups=56,batch=4", NULL, NULL},
    {"emu:h20", "scale_pack:rows=7168,groups=2048,experts=32", NULL, NULL},
    {"emu:h20", "kv_quant:tokens=4096,pages=256,record=v32_656-interleaved-raw_amax", NULL, NULL},
    {"emu:h20",
     "index_prepare:tokens=64,pages=64,heads=64,hadamard=1,record=index_132-split-pow2_amax", NULL,
     NULL},
    {"emu:h20",
     "index_prepare:tokens=64,pages=64,heads=64,pairs=halves,record=index_132-split-raw_amax", NULL,
     NULL},
    {"emu:h200", "index_prepare:tokens=256,pages=64,heads=32,rope=last,record=index_68-split-pow2_"
                 "amax",
     NULL, NULL},
    {"emu:h20", "topk:rows=64,width=8192,k=512", TOPK,
     "threads=512 list=8192 cluster=1 parts=1"}, /* all of it in the list */
};

/* Of the time; of a pipe's own, where it takes a quarter of the time or more: ptxas drops
 * instructions that PTX has, and CTAs at the edge do less. */
#define TIME_TOLERANCE 0.10
#define PIPE_TOLERANCE 0.30
/* Of shared memory by a dense product on Hopper, whose accesses are all known. */
#define SHARED_TOLERANCE 0.05

static double tolerance_of(const char *template, int pipe)
{
    const bool known = template != NULL && strcmp(template, WGMMA) == 0 && pipe == PERF_SHARED;

    return known ? SHARED_TOLERANCE : PIPE_TOLERANCE;
}

static double products(const hone_emu_counters *n)
{
    double sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(n->tensor_macs); i++) {
        sum += (double)n->tensor_macs[i];
    }
    return sum;
}

START_TEST(estimate_and_counters_give_the_same_time)
{
    const char *const problem = kernels[_i].problem;
    prove_fixture f;
    prove_result r;
    perf_work work;
    perf_answer estimated;

    prove_fixture_open(&f, kernels[_i].device, problem, kernels[_i].template, kernels[_i].config,
                       NULL, NULL);
    plan_work_estimate(&f.plan, plan_work_main(&f.plan), &f.problem, &work);
    ck_assert_int_eq(perf_predict(&f.d->gpu, &work, &estimated, NULL), HONE_OK);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s: %s", problem, r.reason);
    ck_assert_msg(fabs(estimated.ns / r.time_ns - 1) < TIME_TOLERANCE, "%s: %.0f ns, counted %.0f",
                  problem, estimated.ns, r.time_ns);
    for (int i = 0; i < PERF_LAUNCH; i++) {
        double pipe = r.model.term_ns[i];
        ck_assert_msg(pipe < r.time_ns / 4 || fabs(estimated.term_ns[i] / pipe - 1) <
                                                  tolerance_of(kernels[_i].template, i),
                      "%s, %s: %.0f ns, counted %.0f", problem, perf_bound_name((perf_bound)i),
                      estimated.term_ns[i], pipe);
    }
    if (r.ctas_run == r.ctas_total) { /* all ran: products are known to the last one */
        const plan_estimate *e = &f.plan.estimate;
        ck_assert_double_eq(products(&r.counters),
                            (double)e->macs + (double)e->scaled_macs + (double)e->warpgroup_macs);
    }
    prove_fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("estimate");

    if (!prove_fixture_start("estimate")) {
        return 0;
    }
    tcase_add_loop_test(tests, estimate_and_counters_give_the_same_time, 0,
                        (int)ARRAY_LEN(kernels));
    const int result = suite_run_here("bench/estimate", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
