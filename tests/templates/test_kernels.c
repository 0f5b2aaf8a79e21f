/* test_kernels.c - what a manifest calls legal, NVRTC compiles and the device can hold; what it
 * forbids, the kernel's own static_asserts refuse. HONE_KERNEL_DRAWS asks for that many random
 * configs of each row instead of one. */
#include "tests/templates/kernels.h"

#include "core/problem.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;

#define GEMM_128 "fp8_gemm:m=4096,n=7168,k=2048,recipe=f32-1x128-128x128"
#define GEMM_32  "fp8_gemm:m=16,n=576,k=7168,recipe=ue8m0-1x32-1x32,out=f32,accumulate=1"
#define GEMM_ODD                                                                                   \
    "fp8_gemm:m=129,n=33,k=160,recipe=f32-1x32-32x32,batch=8,batch_layout=inner,order=fixed"

static const struct {
    const char *problem, *gpu;
} served[] = {
    {GEMM_128, "rtx4090"},
    {GEMM_128, "h20"},
    {GEMM_32, "rtx5090"},
    {GEMM_32, "h20"},
    {GEMM_ODD, "rtx4090"},
    {"act_quant:m=5,k=7168", "a100"},
    {"act_quant:m=4096,k=7168,scale=ue8m0,group=32,in=f32", "h20"},
    {"act_quant:m=1,k=32,group=32,in=f16,scale_layout=row", "rtx4090"},
    {"mxfp4_fold:n=2048,k=7168", "a100"},
    {"mxfp4_fold:n=40,k=96,block_rows=32,block_cols=32,scale=f32", "h20"},
    {"mxfp4_fold:n=5,k=2880,block_rows=1", "rtx4090"},
    {"scale_pack:rows=4096,groups=56", "a100"},
    {"scale_pack:rows=7,groups=7,scale=f32", "h20"},
    {"scale_pack:rows=4096,groups=512,experts=32", "rtx5090"},
    {"moe_align:tokens=64,experts=256,topk=8,group_layout=contiguous", "a100"},
    {"moe_align:tokens=4096,experts=512,topk=10,group_layout=psum,ids=i64", "h20"},
    {"moe_combine:tokens=64,n=7168,topk=8", "a100"},
    {"topk:rows=64,width=131072,k=2048", "h20"},
    {"topk:rows=1,width=1048576,k=705,in=bf16,span=both,sort=by_score", "rtx4090"},
    {"topk:rows=4096,width=65536,k=2048,pick=blocked,block=8,pin=1,drop=1", "a100"},
    {"topk:rows=64,width=16384,k=512,span=compressed,pick=listed,block=8", "rtx5090"},
    {"moe_combine:tokens=4096,n=5120,topk=6,in=f32,out=f32,accumulate=1", "h20"},
    {"moe_combine:tokens=1,n=33,topk=10", "rtx5090"},
    {"moe_align:tokens=1,experts=8,topk=6,group_layout=masked,align=4", "rtx4090"},
    {"kv_quant:tokens=7,pages=9,record_format=v41_528,record_layout=split,record_rule=pow2_amax",
     "a100"},
    {"kv_quant:tokens=64,pages=9,record_format=v32_656,record_layout=interleaved,record_rule=raw_"
     "tiny",
     "h20"},
    {"kv_quant:tokens=1,pages=9,record_format=index_132,record_layout=split,record_rule=pow2_scale",
     "rtx4090"},
    {"fold:m=4096,k=7168", "a100"},
    {"fold:m=3,k=160,scale_layout=col,q_scale_layout=row", "h20"},
    {"index_prepare:tokens=7,pages=9,heads=64,hadamard=1,record=index_132-split-pow2_amax", "h20"},
    {"index_prepare:tokens=7,pages=9,heads=32,rope=last,pairs=halves,record=index_68-split-pow2_"
     "amax",
     "rtx4090"},
    {"kv_quant:tokens=7,pages=9,record=nvfp4_352-interleaved-e4m3_up", "h20"},
    {"kv_quant:tokens=7,pages=9,record=index_68-split-pow2_tiny", "a100"},
    {"kv_quant:tokens=7,pages=9,record=fp8_576-flat-tensor", "rtx4090"},
    {"kv_quant:tokens=7,pages=9,record=bf16_1024-flat-unscaled", "a100"},
};

static void check_fits(const plan *p, const compiled *answer, const device_facts *device)
{
    const plan_launch *launch = &p->launches[0];
    const jit_kernel *kernel = &answer->kernels[0];
    int64_t threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2];

    ck_assert_msg(kernel->registers * threads <= device->regs_per_sm,
                  "%s: %d registers of %lld threads", launch->entry, kernel->registers,
                  (long long)threads);
    ck_assert_msg((int64_t)launch->shared_bytes + kernel->static_shared_bytes <=
                      device->smem_per_block,
                  "%s: %u bytes of shared memory", launch->entry, launch->shared_bytes);
    ck_assert_msg(answer->cubin_len > 0 && answer->ptx_len > 0, "%s: nothing compiled",
                  launch->entry);
}

START_TEST(a_legal_config_compiles_and_fits)
{
    hone_error error = {0};
    hone_problem problem;
    gpu described;
    space *s = NULL;
    template_source source;
    const char *asked = getenv("HONE_KERNEL_DRAWS");
    int draws = asked != NULL ? atoi(asked) : 1, flawed = 0;
    uint64_t seed = 7 + (uint64_t)_i;

    if (shared.compiler == NULL) {
        return;
    }
    ck_assert_msg(hone_problem_parse(served[_i].problem, &problem, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_msg(gpu_find(served[_i].gpu, &described, &error) == HONE_OK, "%s", error.message);
    const manifest *m = kernels_serving(&shared, &problem, &described.facts);
    ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
    ck_assert_msg(space_open(m, &problem, &described.facts, &s, &error) == HONE_OK, "%s",
                  error.message);
    for (int i = 0; i < draws; i++) {
        config c;
        plan p;
        compiled *answer = NULL;
        bool found = false, uniform = false;
        ck_assert_msg(space_draw(s, &seed, 0, &c, &found, &uniform, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_msg(found, "%s on %s: no legal config", served[_i].problem, served[_i].gpu);
        ck_assert_msg(manifest_plan(m, &problem, &described.facts, &c, &p, &error) == HONE_OK, "%s",
                      error.message);
        ck_assert_msg(kernels_compile(&shared, &source, p.launches[0].entry, described.facts.arch,
                                      &answer, &error) == HONE_OK,
                      "%s: %s", p.launches[0].entry, error.message);
        check_fits(&p, answer, &described.facts);
        flawed += compiled_flaw(answer, NULL, 0);
        compiled_free(answer);
    }
    /* A config with a flaw is pruned before it costs time on a device; most must not. */
    ck_assert_msg(2 * flawed <= draws + 1, "%s on %s: %d of %d configs are flawed",
                  served[_i].problem, served[_i].gpu, flawed, draws);
    space_close(s);
}
END_TEST

#define SCALES                                                                                     \
    ".a_gran_k = 32, .b_gran_mn = 32, .b_gran_k = 32, .a_ue8m0 = 0, .a_packed = 0, .b_ue8m0 = 0, " \
    ".b_packed = 0, "
#define REST ".out_f32 = 0, .accumulate = 0, .align = 16}>"
#define PARTS(swap, m, n, warps, shares, parts, promote)                                           \
    "fp8_gemm_mma_sync<Config{.swap = " swap ", .block_m = " m ", .block_n = " n                   \
    ", .block_k = 128, .warps_m = " warps ", .warps_n = 2, .warps_k = " shares                     \
    ", .split_k = " parts ", .stages = 2, .promote = " promote                                     \
    ", .raster = 1, .residency = 1, " SCALES REST
#define TILE(m, n, warps, promote) PARTS("0", m, n, warps, "1", "1", promote)

static const struct {
    const char *name, *entry, *says;
} refused[] = {
    {"fp8_gemm/mma_sync", TILE("16", "32", "2", "32"), "block_m: whole tiles of warps"},
    {"fp8_gemm/mma_sync", TILE("16", "24", "1", "32"), "block_n: whole tiles of warps"},
    {"fp8_gemm/mma_sync", TILE("16", "32", "1", "128"), "promote: within one scale group"},
    {"fp8_gemm/mma_sync", TILE("16", "32", "1", "256"), "promote: within the unit's 13 bits"},
    {"fp8_gemm/mma_sync", PARTS("1", "8", "48", "1", "1", "1", "32"),
     "block_n: whole tiles of warps"},
    {"fp8_gemm/mma_sync", PARTS("0", "16", "32", "1", "8", "1", "32"), "promote: divides a warp's"},
    {"fp8_gemm/mma_sync", PARTS("0", "128", "256", "1", "2", "1", "32"),
     "warps_k: sums of all but"},
    {"fp8_gemm/mma_sync", PARTS("0", "16", "32", "1", "1", "17", "32"), "split_k: 1 to 16"},
    {"act_quant/groups",
     "act_quant_groups<Config{.in = 2, .group = 128, .rule = 2, .activation = 1, .row_set = 1, "
     ".count = 0, .ue8m0 = 1, .packed = 0, .align = 16, .vec = 8, .threads = 64, .rows = 1, "
     ".repeat = 1}>",
     "ue8m0 scales need a rule"},
    {"act_quant/groups",
     "act_quant_groups<Config{.in = 2, .group = 128, .rule = 1, .activation = 2, .row_set = 1, "
     ".count = 0, .ue8m0 = 1, .packed = 0, .align = 16, .vec = 32, .threads = 64, .rows = 1, "
     ".repeat = 2}>",
     "repeat: what a lane holds"},
    {"weight_quant/blocks",
     "weight_quant_blocks<Config{.in = 2, .gran_n = 128, .gran_k = 128, .rule = 2, .ue8m0 = 0, "
     ".packed = 0, .align = 16, .vec = 8, .row_threads = 128, .blocks = 1}>",
     "threads: whole warps"},
    {"mxfp4_fold/blocks",
     "mxfp4_fold_blocks<Config{.block_rows = 128, .block_cols = 128, .ue8m0 = 1, .threads = 256, "
     ".per = 1, .side = 1}>",
     "threads: whole warps and whole blocks"},
    {"scale_pack/tiles",
     "scale_pack_tiles<Config{.packed = 1, .grouped = 0, .align = 16, .vec = 4, .threads = 256, "
     ".rows "
     "= 32, .lines = 2}>",
     "lines: every thread reads alike"},
    {"kv_quant/tokens",
     "kv_quant_tokens<Config{.dims = 512, .tile = 512, .tail = 0, .rule = 1, .ue8m0 = 0, .pad = 0, "
     ".align = 16, .pieces = 1, .tokens = 1}>",
     "tile: it fits a warp"},
    {"kv_quant/nibbles",
     "kv_quant_nibbles<Config{.dims = 512, .tile = 16, .tail = 0, .rule = 1, .permuted = 0, .row = "
     "256, .scales_row = 32, .align = 16, .pieces = 3, .tokens = 1}>",
     "pieces: a row is whole runs of them"},
    {"fold/groups",
     "fold_groups<Config{.packed = 1, .q_packed = 1, .align = 16, .vec = 32, .threads = 64, .rows "
     "= "
     "1, .repeat = 1}>",
     "vec: a block fits a warp"},
};

START_TEST(a_static_assert_refuses_what_the_manifest_forbids)
{
    hone_error error = {0};
    template_source source;
    compiled *answer = NULL;

    if (shared.compiler == NULL) {
        return;
    }
    const manifest *m = templates_find(shared.templates, refused[_i].name);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
    ck_assert_int_eq(kernels_compile(&shared, &source, refused[_i].entry, 90, &answer, &error),
                     HONE_COMPILE);
    ck_assert_msg(strstr(error.message, refused[_i].says) != NULL, "'%s' lacks '%s'", error.message,
                  refused[_i].says);
    ck_assert_ptr_null(answer);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
}

static void teardown(void)
{
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("compile");

    tcase_add_loop_test(tests, a_legal_config_compiles_and_fits, 0, (int)ARRAY_LEN(served));
    tcase_add_loop_test(tests, a_static_assert_refuses_what_the_manifest_forbids, 0,
                        (int)ARRAY_LEN(refused));
    return kernels_run("templates/kernels", tests, setup, teardown);
}
