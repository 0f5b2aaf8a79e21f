/* test_expert_k.c - the table that CTAs of a weight gradient make of experts' K
 * (templates/device/expert_k.cuh), on the emulator, against a plain walk and a plain sort. */
#include "core/random.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "tests/templates/device_header.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_EXPERTS = 512, CASES = 48, THREADS = 160 };

typedef struct range {
    int32_t expert, first, count;
} range;

static char *source(void)
{
    char *types = device_header("types.cuh"), *tiles = device_header("expert_tiles.cuh"),
         *k = device_header("expert_k.cuh"), *text = NULL;
    ck_assert_int_gt(
        asprintf(
            &text,
            "%s%s%s\n"
            "template <int Unit, bool All> __device__ void dump(const ExpertGroups &of, i32 k, "
            "ExpertKRange *out, i32 *count) {\n"
            "    extern __shared__ u32 table[];\n"
            "    using Experts = ExpertK<Unit, All>;\n"
            "    Experts::make(table, of, k);\n"
            "    __syncthreads();\n"
            "    const Experts experts = {table, of.experts};\n"
            "    if (threadIdx.x == 0) { *count = experts.count(); }\n"
            "    for (i32 i = threadIdx.x; i < experts.count(); i += blockDim.x) {\n"
            "        out[i] = experts.at(i);\n"
            "    }\n"
            "}\n"
            "#define K(U, A) extern \"C\" __global__ void dump_##U##_##A(const i32 *g, i32 k, "
            "i32 experts, ExpertKRange *out, i32 *count) "
            "{ dump<U, A>({g, 0, experts, 1}, k, out, count); }\n"
            "K(32, 0) K(32, 1) K(128, 0) K(128, 1)\n",
            types, tiles, k),
        0);
    free(types);
    free(tiles);
    free(k);
    return text;
}

/* ks that add up to k, or, each fourth time, anything. */
static int32_t draw(int32_t i, int32_t unit, int32_t *k, int32_t *ks)
{
    static const int32_t numbers[] = {1, 2, 7, 31, 32, 33, 64, 257, 512};
    uint64_t seed = 7 + (uint64_t)i * 11 + (uint64_t)unit;
    const int32_t experts = numbers[random_below(&seed, 9)];
    int32_t left = 1 + (int32_t)random_below(&seed, 3000);
    *k = left * unit;
    if (i % 8 == 7) { /* as large as K may be */
        *k = INT32_MAX / unit * unit;
    }
    for (int32_t e = 0; e < experts; e++) {
        if (i % 4 == 3) {
            ks[e] = (int32_t)random_next(&seed) >> random_below(&seed, 31);
            continue;
        }
        int32_t own = random_below(&seed, 3) == 0
                          ? 0
                          : (int32_t)random_below(&seed, (uint64_t)(left / 8 + 2));
        own = own < left ? own : left;
        ks[e] = own * unit;
        left -= own;
    }
    return experts;
}

static int longest_first(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : (x->expert > y->expert ? 1 : -1);
}

static int32_t expect(int32_t experts, int32_t unit, bool all, int32_t k, const int32_t *ks,
                      range *out)
{
    int32_t first = 0, len = 0;
    for (int32_t e = 0; e < experts; e++) {
        const int32_t asked = ks[e] < 0 ? 0 : ks[e] / unit, left = k / unit - first;
        const range r = {e, first, asked < left ? asked : left};
        if (all || r.count > 0) {
            out[len++] = r;
        }
        first += r.count;
    }
    qsort(out, (size_t)len, sizeof *out, longest_first);
    return len;
}

static void check_case(ptx_bench *b, int32_t i, int32_t unit, bool all)
{
    static int32_t ks[MOST_EXPERTS];
    static range expected[MOST_EXPERTS], found[MOST_EXPERTS];
    char kernel[32];
    int32_t k, count = -1, experts = draw(i, unit, &k, ks);
    const int32_t len = expect(experts, unit, all, k, ks, expected);
    uint64_t at = ptx_bench_buffer(b, ks, (uint64_t)experts * 4),
             out = ptx_bench_buffer(b, NULL, sizeof found), counted = ptx_bench_buffer(b, NULL, 4);
    void *arguments[] = {&at, &k, &experts, &out, &counted};
    snprintf(kernel, sizeof kernel, "dump_%d_%d", unit, all);
    b->launch.dynamic_shared_bytes = (uint32_t)(2 * experts + 2) * 4;
    hone_status status = ptx_bench_run(b, kernel, (const uint32_t[]){1, 1, 1},
                                       (const uint32_t[]){THREADS, 1, 1}, arguments);
    ck_assert_msg(status == HONE_OK, "%s, k %d, experts %d: %s", kernel, k, experts,
                  b->fault.message);
    ptx_bench_read(b, counted, &count, 4);
    ck_assert_msg(count == len, "%s, k %d, experts %d: %d in the order, not %d", kernel, k, experts,
                  count, len);
    if (len > 0) {
        ptx_bench_read(b, out, found, (uint64_t)len * sizeof(range));
    }
    for (int32_t n = 0; n < len; n++) {
        ck_assert_msg(memcmp(&found[n], &expected[n], sizeof(range)) == 0,
                      "%s, k %d, experts %d: place %d is %d %d %d, not %d %d %d", kernel, k,
                      experts, n, found[n].expert, found[n].first, found[n].count,
                      expected[n].expert, expected[n].first, expected[n].count);
    }
    memory_free(b->memory, at, &b->error);
    memory_free(b->memory, out, &b->error);
    memory_free(b->memory, counted, &b->error);
}

START_TEST(a_table_is_what_a_walk_and_a_sort_find)
{
    ptx_bench b;
    char *text = source();
    char *ptx = ptx_bench_compile(text, (const char *const[]){"-arch=sm_90a", "-std=c++20", NULL});
    free(text);
    if (ptx == NULL) {
        return;
    }
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
    free(ptx);
    for (int32_t i = 0; i < CASES; i++) {
        check_case(&b, i, i % 3 == 0 ? 32 : 128, i % 5 < 2);
    }
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("expert_k");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_table_is_what_a_walk_and_a_sort_find);
    return suite_run("templates/expert_k", tests);
}
