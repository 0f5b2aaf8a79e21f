/* test_flaws.c - small kernels in which ptxas spoils what was meant: each is found by its compile,
 * for sm_90a, and is still known when it comes out of the kernel cache. */
#include "tests/runtime/jit_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* A product of one warpgroup into one of two sets of accumulators, and what adds a set to the sum.
 */
#define WGMMA                                                                                      \
    "typedef unsigned long long u64;\n"                                                            \
    "__device__ void fence() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"    \
    "__device__ void product(float (&d)[4], u64 a, u64 b) {\n"                                     \
    "  asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, 0, 0;\\n\"\n"                             \
    "    \"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, p, 1, "      \
    "1;\\n}\"\n"                                                                                   \
    "    : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : \"l\"(a), \"l\"(b) : "         \
    "\"memory\");\n"                                                                               \
    "  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n"                     \
    "template <int N> __device__ void wait() {\n"                                                  \
    "  asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(N) : \"memory\"); }\n"          \
    "__device__ void add(float (&sum)[4], float (&d)[4], float s) {\n"                             \
    "  for (int i = 0; i < 4; i++) { asm volatile(\"\" : \"+f\"(d[i]) :: \"memory\");\n"           \
    "    sum[i] = fmaf(s, d[i], sum[i]); } }\n"                                                    \
    "template <bool Fence> __device__ void begin(float (&d)[4], u64 a, u64 b) {\n"                 \
    "  if (Fence) fence();\n  product(d, a, b); }\n"

#define OPENING                                                                                    \
    "__global__ void __launch_bounds__(128, 1) k(u64 a, u64 b, float *o, const float *s, int n) "  \
    "{\n"                                                                                          \
    "  float x[4] = {}, y[4] = {}, sum[4] = {};\n"
#define CLOSING "  for (int i = 0; i < 4; i++) o[threadIdx.x * 4 + i] = sum[i];\n}\n"

/* The set that the loop carries is waited for before the next product begins. */
#define CLEAN                                                                                      \
    "  begin<true>(x, a, b);\n"                                                                    \
    "  for (int k = 0; k < n; k++) {\n"                                                            \
    "    wait<0>(); begin<true>(y, a, b); add(sum, x, s[k]);\n"                                    \
    "    wait<0>(); begin<true>(x, a, b); add(sum, y, s[k]); }\n"                                  \
    "  wait<0>(); add(sum, x, 1);\n"

/* One group stays in flight across the back edge. */
#define CARRIED                                                                                    \
    "  begin<true>(x, a, b);\n"                                                                    \
    "  for (int k = 0; k < n; k++) {\n"                                                            \
    "    begin<true>(y, a, b); wait<1>(); add(sum, x, s[k]);\n"                                    \
    "    begin<true>(x, a, b); wait<1>(); add(sum, y, s[k]); }\n"                                  \
    "  wait<0>(); add(sum, x, 1);\n"

#define UNFENCED                                                                                   \
    "  begin<true>(x, a, b);\n"                                                                    \
    "  for (int k = 0; k < n; k++) {\n"                                                            \
    "    wait<0>(); add(sum, x, s[k]); begin<false>(x, a, b); }\n"                                 \
    "  wait<0>(); add(sum, x, 1);\n"

/* Without launch bounds nobody knows with how many registers the kernel starts. */
#define SETMAXNREG                                                                                 \
    "__global__ void k(float *o) {\n"                                                              \
    "  if (threadIdx.x < 128) asm volatile(\"setmaxnreg.dec.sync.aligned.u32 24;\");\n"            \
    "  else asm volatile(\"setmaxnreg.inc.sync.aligned.u32 240;\");\n"                             \
    "  o[threadIdx.x] = 1; }\n"

/* An array whose place is not known when compiling has no registers. */
#define LOCAL                                                                                      \
    "__global__ void __launch_bounds__(128) k(float *o, const int *at) {\n"                        \
    "  float x[16];\n"                                                                             \
    "  for (int i = 0; i < 16; i++) x[at[i] & 15] = o[i];\n"                                       \
    "  o[threadIdx.x] = x[at[threadIdx.x] & 15]; }\n"

/* 32 registers, and 64 values in them. */
#define SPILLING                                                                                   \
    "__global__ void __launch_bounds__(1024, 2) k(float *o) {\n"                                   \
    "  float x[64];\n"                                                                             \
    "  for (int i = 0; i < 64; i++) x[i] = o[i * 128 + threadIdx.x];\n"                            \
    "  __syncthreads();\n"                                                                         \
    "  for (int i = 0; i < 64; i++) o[i * 128 + threadIdx.x] = x[i] * x[(7 * i + 3) % 64]; }\n"

typedef struct flaw_case {
    const char *name, *source;
    const char *why; /* how the reason begins; "" for clean code */
    bool remarks, spills, local;
} flaw_case;

static const flaw_case cases[] = {
    {"sets that alternate are clean", WGMMA OPENING CLEAN CLOSING, "", false, false, false},
    {"a group in flight across the loop's edge is serialised", WGMMA OPENING CARRIED CLOSING,
     "ptxas: (C7514) Potential Performance Loss: wgmma", true, false, false},
    {"a product without a fence gets an arrive put in", WGMMA OPENING UNFENCED CLOSING,
     "ptxas: (C7519) warpgroup.arrive is injected", true, false, false},
    {"setmaxnreg without launch bounds is ignored", SETMAXNREG,
     "ptxas: (C7508) Potential Performance Loss: 'setmaxnreg' ignored", true, false, false},
    {"an array with a moving index is local memory", LOCAL, "keeps 64 bytes of a thread in local",
     false, false, true},
    {"too few registers spill", SPILLING, "spills ", false, true, true},
};

static jit *open_jit(const char *path)
{
    const jit_options options = {.workers = 1, .cache_path = path};
    hone_error error = {.status = HONE_OK};
    jit *j = NULL;

    ck_assert_msg(jit_open(&options, &j, &error) == HONE_OK, "%s", error.message);
    return j;
}

static void check_answer(const flaw_case *expected, const compiled *c)
{
    const jit_kernel *k = &c->kernels[0];
    char why[400];

    ck_assert_msg(compiled_flaw(c, why, sizeof why) == (expected->why[0] != '\0'), "%s: '%s'",
                  expected->name, why);
    ck_assert_msg(strncmp(why, expected->why, strlen(expected->why)) == 0, "%s: '%s'",
                  expected->name, why);
    ck_assert_ptr_null(strstr(why, "function"));
    ck_assert((k->remarks > 0) == expected->remarks);
    ck_assert((k->remark != NULL) == expected->remarks);
    ck_assert((k->spill_bytes > 0) == expected->spills);
    ck_assert((k->stack_bytes > 0) == expected->local);
}

START_TEST(a_flaw_is_found_and_kept_in_the_cache)
{
    const flaw_case *expected = &cases[_i];
    char folder[FOLDER_BYTES], path[1024];
    const jit_request request = jit_fixture_request(expected->source, "k");
    hone_error error = {.status = HONE_OK};

    folder_make(folder);
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    for (int again = 0; again < 2; again++) {
        jit *j = open_jit(path);
        compiled *c = NULL;
        ck_assert_msg(jit_compile(j, &request, &c, &error) == HONE_OK, "%s: %s", expected->name,
                      error.message);
        ck_assert_int_eq(c->from_cache, again);
        check_answer(expected, c);
        compiled_free(c);
        jit_close(j);
    }
    folder_remove(folder);
}
END_TEST

START_TEST(a_reason_is_cut_to_its_room)
{
    jit_kernel kernel = {.remarks = 1, .remark = (char[]){"(C7514) serialised"}};
    const compiled c = {.kernels_len = 1, .kernels = {kernel}};
    char why[12];

    ck_assert(compiled_flaw(&c, why, sizeof why));
    ck_assert_str_eq(why, "ptxas: (C75");
    ck_assert(compiled_flaw(&c, NULL, 0));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("flaws");

    jit_fixture_need_nvrtc();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_flaw_is_found_and_kept_in_the_cache, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, a_reason_is_cut_to_its_room);
    return suite_run("runtime/flaws", tests);
}
