/* test_mutants.c - good kernels with one mistake each: all caught, by a detector or by a wrong
 * result, within the schedules and timings that a proof takes. */
#include "tests/emulator/hopper_bench.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 8 };

/* In the kernel's text the n-th `find` (from 1; 0: the only one) becomes `put`. `by`: the fault's
 * kind in the first run that catches it, or "wrong" for a result that is not the reference's. */
static const struct {
    const char *kernel, *what, *find, *put;
    int nth;
    const char *by;
} mutants[] = {
    /* ---- mbarriers ---- */
    {"gemm_fp8", "no wait for a full stage", "barrier_wait(r.full + s * 8, step / STAGES & 1);", "",
     0, "race"},
    {"gemm_fp8", "no wait for an empty stage",
     "barrier_wait_cluster(r.empty + s * 8, (step / STAGES & 1) ^ 1);", "", 0, "race"},
    {"gemm_fp8", "the phase of a full stage is off",
     "barrier_wait(r.full + s * 8, step / STAGES & 1);",
     "barrier_wait(r.full + s * 8, (step / STAGES & 1) ^ 1);", 0, "deadlock"},
    {"gemm_fp8", "the phase of an empty stage is off", "(step / STAGES & 1) ^ 1",
     "step / STAGES & 1", 0, "deadlock"},
    {"gemm_fp8", "16 bytes too few are expected", "barrier_arrive_expect(full, STAGE_BYTES)",
     "barrier_arrive_expect(full, STAGE_BYTES - 16)", 0, "deadlock"},
    {"gemm_fp8", "16 bytes too many are expected", "barrier_arrive_expect(full, STAGE_BYTES)",
     "barrier_arrive_expect(full, STAGE_BYTES + 16)", 0, "deadlock"},
    {"gemm_fp8", "an arrival too many for an empty stage",
     "barrier_init(empty + s * 8, CONSUMERS * CLUSTER)",
     "barrier_init(empty + s * 8, CONSUMERS * CLUSTER + 1)", 0, "deadlock"},
    {"gemm_fp8", "a warpgroup's arrivals too few for an empty stage",
     "barrier_init(empty + s * 8, CONSUMERS * CLUSTER)",
     "barrier_init(empty + s * 8, CONSUMERS * CLUSTER - 4)", 0, "mbarrier"},
    {"gemm_fp8", "half of the warps never release",
     "if (lane_id() == 0) {\n            barrier_arrive(empty);",
     "if (lane_id() == 0 && threadIdx.x < 256) {\n            barrier_arrive(empty);", 0,
     "deadlock"},
    {"gemm_fp8", "consumers are a stage ahead", "u32 s = step % STAGES, stage",
     "u32 s = (step + 1) % STAGES, stage", 0, "deadlock"},
    {"gemm_fp8", "the output overlaps the last stage", "base + STAGES * STAGE_BYTES;",
     "base + (STAGES - 1) * STAGE_BYTES;", 0, "mbarrier"},
    {"gemm_fp8", "no barrier behind the inits",
     "    if (CLUSTER == 1) {\n        __syncthreads();\n    }", "    if (CLUSTER == 1) {\n    }",
     0, "race"},
    {"stream", "a thread's copies do not arrive", "    copy_arrive(full);\n", "", 0, "deadlock"},
    {"stream", "one arrival too few for a full stage", "barrier_init(full + s * 8, 1 + 32)",
     "barrier_init(full + s * 8, 32)", 0, "mbarrier"},
    {"stream", "copies of x are not expected", "barrier_arrive_expect(full, CHUNK_BYTES)",
     "barrier_arrive(full)", 0, "deadlock"},
    {"stream", "32 bytes too many are expected", "barrier_arrive_expect(full, CHUNK_BYTES)",
     "barrier_arrive_expect(full, CHUNK_BYTES + 32)", 0, "deadlock"},
    {"stream", "the phase of a full stage is off", "barrier_wait(full + s * 8, step / STAGES & 1)",
     "barrier_wait(full + s * 8, (step / STAGES & 1) ^ 1)", 0, "race"},
    {"stream", "no stage is released", "            barrier_arrive(empty + s * 8);\n", "", 0,
     "deadlock"},
    {"stream", "a stage is released before it is read",
     "        float4 left = in[mine], right = in[CHUNK / 4 + mine];\n        __syncwarp();\n       "
     " if (lane_id() == 0) {\n            barrier_arrive(empty + s * 8);\n        }\n",
     "        if (lane_id() == 0) {\n            barrier_arrive(empty + s * 8);\n        }\n       "
     " float4 left = in[mine], right = in[CHUNK / 4 + mine];\n",
     0, "race"},
    {"stream", "no barrier behind the inits",
     "        barrier_init_fence();\n    }\n    __syncthreads();",
     "        barrier_init_fence();\n    }", 0, "race"},
    {"grouped", "the phase does not turn", ", phase ^= 1)", ")", 0, "deadlock"},

    /* ---- clusters ---- */
    {"gemm_fp8_pair", "the multicast leaves the other CTA out", "b, full, 3,",
     "b, full, (u16)(1 << rank),", 0, "deadlock"},
    {"gemm_fp8_pair", "the multicast goes to the other CTA alone", "b, full, 3,",
     "b, full, (u16)(2 >> rank),", 0, "deadlock"},
    {"gemm_fp8_pair", "the other CTA is never told that a stage is empty", "lane_id() < CLUSTER",
     "lane_id() == cluster_rank()", 0, "deadlock"},
    {"gemm_fp8_pair", "an empty stage waits for its own CTA alone",
     "barrier_init(empty + s * 8, CONSUMERS * CLUSTER)", "barrier_init(empty + s * 8, CONSUMERS)",
     0, "mbarrier"},
    {"gemm_fp8_pair", "CTAs do not wait for each other's inits",
     "        cluster_sync();\n    }\n    if (threadIdx.x < 128)",
     "        __syncthreads();\n    }\n    if (threadIdx.x < 128)", 0, "race"},
    {"gemm_fp8_pair", "a CTA leaves while others arrive at it", "        cluster_sync(); // nobody",
     "        // nobody", 0, "use-after-free"},
    {"gemm_fp8_pair", "both halves of B go to the same place",
     "stage + A_BYTES + rank * (B_BYTES / 2)", "stage + A_BYTES", 0, "race"},
    {"histogram", "bins are counted before all are cleared", "    cluster_sync();\n    for (int i",
     "    __syncthreads();\n    for (int i", 0, "race"},
    {"histogram", "bins are read before all have counted", "    cluster_sync();\n    for (u32 i",
     "    __syncthreads();\n    for (u32 i", 0, "race"},
    {"histogram", "counting is not atomic", "red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;",
     "{ .reg .u32 v; ld.shared::cluster.u32 v, [%0]; add.u32 v, v, 1; st.shared::cluster.u32 [%0], "
     "v; }",
     0, "race"},

    /* ---- wgmma ---- */
    {"gemm_fp8", "no wait for the products", "    wgmma_wait<0>();\n", "", 0, "async-misuse"},
    {"gemm_fp8", "a wait that lets one group go on", "    wgmma_wait<0>();\n",
     "    wgmma_wait<1>();\n", 0, "async-misuse"},
    {"gemm_fp8", "products are not committed", "    wgmma_commit();\n    wgmma_wait",
     "    wgmma_wait", 0, "async-misuse"},
    {"gemm_fp8", "no fence before the first product", "    wgmma_fence();\n    for", "    for", 0,
     "async-misuse"},
    {"gemm_fp8", "the stride of the rows of A is halved", "matrix_descriptor(a + k * 32, 16, 1024)",
     "matrix_descriptor(a + k * 32, 16, 512)", 0, "wrong"},
    {"gemm_fp8", "the descriptor has another swizzle", "(u64)1 << 62", "(u64)2 << 62", 0, "wrong"},
    {"gemm_fp8", "k advances by 16 bytes", "matrix_descriptor(b + k * 32, 16, 1024)",
     "matrix_descriptor(b + k * 16, 16, 1024)", 0, "wrong"},
    {"gemm_bf16", "no wait for the products", "    wgmma_wait<0>();\n", "", 0, "race"},
    {"gemm_bf16", "no fence after the registers were loaded", "    wgmma_fence();\n", "", 0,
     "async-misuse"},
    {"gemm_bf16", "the leading offset is a stride", "BOX_BYTES, 1024), true", "1024, 1024), true",
     0, "wrong"},
    {"gemm_bf16", "the strides are exchanged", "BOX_BYTES, 1024), true", "1024, BOX_BYTES), true",
     0, "wrong"},
    {"gemm_bf16", "k advances by half a step", "A_BYTES + k * 2048", "A_BYTES + k * 1024", 0,
     "wrong"},
    {"gemm_bf16", "B is taken for k-major", "p, 1, 1, 1;", "p, 1, 1, 0;", 0, "race"},
    {"gemm_bf16", "A is read as if it were not swizzled",
     "stage + swizzle128(warp * 16 + (lane & 15), k * 32 + (lane >> 4) * 16)",
     "stage + (warp * 16 + (lane & 15)) * 128 + k * 32 + (lane >> 4) * 16", 0, "wrong"},
    {"gemm_bf16", "a stage is loaded again while others read it",
     "        multiply_stage(sum, base + s * STAGE_BYTES, warp);\n        __syncthreads();",
     "        multiply_stage(sum, base + s * STAGE_BYTES, warp);", 0, "race"},
    {"gemm_bf16", "no barrier behind the inits",
     "        }\n    }\n    __syncthreads();\n    for (int t", "        }\n    }\n    for (int t",
     0, "race"},

    /* ---- the async proxy: stores, reductions, tensor maps ---- */
    {"gemm_fp8", "no proxy fence before the store", "        fence_async();\n", "", 0,
     "proxy-fence"},
    {"gemm_fp8", "the output is written while a store reads it",
     "        if (leader) {\n            bulk_wait_read<0>();\n        }\n", "", 0, "race"},
    {"gemm_fp8", "no barrier behind the wait for the store",
     "        named_sync(1 + half, 128);\n        stage_output", "        stage_output", 0, "race"},
    {"gemm_fp8", "no barrier before the store",
     "        fence_async();\n        named_sync(1 + half, 128);\n", "        fence_async();\n", 0,
     "race"},
    {"gemm_fp8", "both warpgroups meet at one barrier", "named_sync(1 + half, 128)",
     "named_sync(1, 128)", 1, "race"},
    {"gemm_fp8", "a barrier waits for 64 threads",
     "named_sync(1 + half, 128);\n        stage_output",
     "named_sync(1 + half, 64);\n        stage_output", 0, "barrier-divergence"},
    {"gemm_fp8", "the store is not committed", "            bulk_commit();\n", "", 0, "race"},
    {"stream", "no proxy fence before the store", "        fence_async();\n", "", 0, "proxy-fence"},
    {"stream", "a buffer is written while a store reads it", "bulk_wait_read<BUFFERS - 1>",
     "bulk_wait_read<BUFFERS>", 0, "race"},
    {"stream", "no barrier before the store",
     "        fence_async();\n        named_sync(1, 128);\n", "        fence_async();\n", 0,
     "race"},
    {"stream", "a barrier's id is another's", "named_sync(1, 128);\n        output",
     "named_sync(2, 160);\n        output", 0, "deadlock"},
    {"split_k", "no proxy fence before the reduction", "    fence_async();\n", "", 0,
     "proxy-fence"},
    {"split_k", "no barrier before the reduction", "    __syncthreads();\n", "", 0,
     "uninitialised"},
    {"split_k", "the reduction is a store", "tensor_add(", "tensor_store(", 2, "race"},
    {"grouped", "no fence before the map is used",
     "fence.proxy.tensormap::generic.acquire.gpu [%0], 128;", "", 0, "tensor-map"},
    {"grouped", "the height is not replaced",
     "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;", "", 0,
     "out-of-bounds"},
    {"grouped", "the box is loaded again while others read it",
     "        __syncthreads();\n    }\n}", "    }\n}", 0, "mbarrier"},
    {"grouped", "16 bytes too few are expected", "barrier_arrive_expect(full, BOX_BYTES)",
     "barrier_arrive_expect(full, BOX_BYTES - 16)", 0, "deadlock"},

    /* ---- cp.async, block and warp barriers ---- */
    {"gemm_f16", "one group too many may be in flight", "copy_wait<STAGES - 2>",
     "copy_wait<STAGES - 1>", 0, "async-misuse"},
    {"gemm_f16", "no barrier behind the wait", "        __syncthreads();\n", "", 0,
     "uninitialised"},
    {"gemm_f16", "a group is not committed", "        copy_commit();\n        multiply",
     "        multiply", 0, "async-misuse"},
    {"gemm_f16", "the next stage is the one in use", "next % STAGES * STAGE_BYTES",
     "(next + 1) % STAGES * STAGE_BYTES", 0, "async-misuse"},
    {"select", "counting begins before all is cleared", "        named_sync(1 + half, HALF);\n", "",
     0, "race"},
    {"select", "the halves share a barrier", "named_sync(1 + half, HALF)", "named_sync(1, HALF)", 0,
     "race"},
    {"select", "the second half never arrives", "            named_arrive(3, THREADS);\n", "", 0,
     "deadlock"},
    {"select", "an arrival of the wrong count", "named_arrive(3, THREADS)", "named_arrive(3, HALF)",
     0, "barrier-divergence"},
    {"select", "the counts are read before they are added up",
     "        }\n        __syncthreads();\n        u32 digit", "        }\n        u32 digit", 0,
     "race"},
    {"select", "totals are read before all are there", "    __syncthreads();\n    for (u32 w",
     "    for (u32 w", 0, "uninitialised"},
    {"select", "the digit is read before it is chosen", "        __syncthreads();\n        prefix",
     "        prefix", 0, "uninitialised"},
    {"select", "lanes beyond the warp's mask", "__shfl_up_sync(0xffffffff",
     "__shfl_up_sync(0x7fffffff", 0, "membermask"},

    /* ---- launches ---- */
    {"dependent", "no wait for the launch before",
     "    asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n", "", 0, "race"},
};

/* The text with its one mistake; the caller frees it. */
static char *mutate(const char *source, size_t i)
{
    const char *find = mutants[i].find, *at = strstr(source, find);
    char *text = NULL;
    for (int n = 1; at != NULL && n < mutants[i].nth; n++) {
        at = strstr(at + 1, find);
    }
    ck_assert_msg(at != NULL, "%s, %s: no such text", mutants[i].kernel, mutants[i].what);
    ck_assert_msg(mutants[i].nth != 0 || strstr(at + 1, find) == NULL, "%s, %s: which one?",
                  mutants[i].kernel, mutants[i].what);
    ck_assert_int_gt(
        asprintf(&text, "%.*s%s%s", (int)(at - source), source, mutants[i].put, at + strlen(find)),
        0);
    return text;
}

/* The detector that sees it first; "" when none does. */
static const char *hunt(hopper_bench *b, const hopper_kernel *k, char text[256])
{
    static char kind[32];
    kind[0] = '\0';
    for (int run = 0; kind[0] == '\0' && run < 2 * SEEDS; run++) {
        hone_emu_timing timing = run % 2 == 0 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST;
        hopper_outcome o = hopper_run(b, k, (uint64_t)run / 2, timing);
        if (o.result != CUDA_SUCCESS) {
            snprintf(kind, sizeof kind, "%s", o.fault.kind[0] != '\0' ? o.fault.kind : "refused");
        } else if (o.wrong) {
            snprintf(kind, sizeof kind, "wrong");
        }
        snprintf(text, 256, "seed %d, timing %d: %.200s", run / 2, (int)timing, o.text);
    }
    return kind;
}

START_TEST(a_mistake_is_caught)
{
    static hopper_bench b;
    char text[256];
    const hopper_kernel *k = hopper_find(mutants[_i].kernel);
    hopper_open(&b);
    char *source = hopper_source(k), *mutant = mutate(source, (size_t)_i);
    bool loaded = hopper_load(&b, k, mutant);
    free(source);
    free(mutant);
    if (loaded) {
        const char *by = hunt(&b, k, text);
        if (getenv("HONE_MUTANTS_SHOW") != NULL) {
            printf("%s | %s | %s | %s\n", k->name, mutants[_i].what, by, text);
            fflush(stdout);
        }
        ck_assert_msg(strcmp(by, mutants[_i].by) == 0, "%s, %s: caught by '%s', not '%s': %s",
                      k->name, mutants[_i].what, by, mutants[_i].by, text);
    }
}
END_TEST

/* The kernel's text is right here; what the host says of its data is not. */
static const struct {
    CUtensorMapSwizzle swizzle;
    CUresult result;
} maps[] = {
    {CU_TENSOR_MAP_SWIZZLE_NONE, CUDA_SUCCESS},            /* taken, and the sums are wrong */
    {CU_TENSOR_MAP_SWIZZLE_64B, CUDA_ERROR_INVALID_VALUE}, /* no room for rows of 128 bytes */
};

START_TEST(a_map_of_another_swizzle_is_caught)
{
    static hopper_bench b;
    const hopper_kernel *k = hopper_find("gemm_fp8");
    hopper_open(&b);
    char *source = hopper_source(k);
    bool loaded = hopper_load(&b, k, source);
    free(source);
    b.swizzle = maps[_i].swizzle;
    if (loaded) {
        hopper_outcome o = hopper_run(&b, k, 0, HONE_EMU_AT_ISSUE);
        ck_assert_int_eq(o.result, maps[_i].result);
        ck_assert_int_eq(o.wrong, maps[_i].result == CUDA_SUCCESS);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("mutants");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_mistake_is_caught, 0, (int)(sizeof mutants / sizeof mutants[0]));
    tcase_add_loop_test(tests, a_map_of_another_swizzle_is_caught, 0,
                        (int)(sizeof maps / sizeof maps[0]));
    return suite_run("emulator/mutants", tests);
}
