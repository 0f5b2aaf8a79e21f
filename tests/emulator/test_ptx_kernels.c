/* test_ptx_kernels.c - whole kernels, compiled by NVRTC from sources that were written apart from
 * the emulator, against references in C. */
#include "tests/emulator/ptx_bench.h"
#include "core/numfmt.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state;

static float random_float(void)
{
    return (float)((uint32_t)random_next(&random_state) & 0xffffff) / 8388608.0f - 1.0f;
}

/* The kernel's module on an open bench; false: skipped. */
static bool load(ptx_bench *b, const char *file, const char *arch)
{
    char path[512], include[512], name[128];
    const char *home = getenv("CUDA_HOME");

    random_state = 88172645463325252u;
    snprintf(name, sizeof name, "prototypes/kernels/%s", file);
    if (!file_find_shared(name, path, sizeof path)) {
        return false;
    }
    snprintf(include, sizeof include, "-I%s/include", home != NULL ? home : "/usr/local/cuda");
    const char *options[] = {arch, include, "-std=c++17", NULL};
    char *source = file_read(path, NULL);
    char *ptx = ptx_bench_compile(source, options);
    free(source);
    if (ptx == NULL) {
        return false;
    }
    ptx_bench_open(b);
    hone_status status = ptx_bench_load(b, ptx);
    ck_assert_msg(status == HONE_OK, "%s: %s", file, b->error.message);
    free(ptx);
    return true;
}

static void run(ptx_bench *b, const char *kernel, const uint32_t grid[3], uint32_t threads,
                void *const *arguments)
{
    hone_status status = ptx_bench_run(b, kernel, grid, (uint32_t[]){threads, 1, 1}, arguments);
    ck_assert_msg(status == HONE_OK, "%s line %d lane %d: %s", kernel, b->fault.ptx_line,
                  b->fault.lane, b->error.message);
}

enum { TOKENS = 300 };

static void check_token(const uint16_t *in, const uint8_t *out)
{
    for (int g = 0; g < 4; g++) {
        float largest = 0, scale = 0;
        for (int j = 0; j < 128; j++) {
            largest = fmaxf(largest, fabsf(numfmt_bf16_decode(in[g * 128 + j])));
        }
        memcpy(&scale, out + 512 + g * 4, sizeof scale);
        ck_assert(scale == fmaxf(largest, 1e-4f) * (1.0f / 448.0f));
        for (int j = 0; j < 128; j++) {
            float x = numfmt_bf16_decode(in[g * 128 + j]) * (1.0f / scale);
            ck_assert_uint_eq(out[g * 128 + j], numfmt_e4m3_encode(x));
        }
    }
    ck_assert_mem_eq(out + 528, in + 512, 128);
}

static void kv_quant(const char *arch)
{
    ptx_bench b;
    int tokens = TOKENS;
    static uint16_t kv[TOKENS * 576];
    static int64_t slots[TOKENS];
    static uint8_t cache[TOKENS * 656];

    if (!load(&b, "kvquant.cu", arch)) {
        return;
    }
    for (size_t n = 0; n < ARRAY_LEN(kv); n++) {
        kv[n] = numfmt_bf16_encode(
            random_float() * exp2f((float)(int)((uint32_t)random_next(&random_state) % 12) - 6));
    }
    for (int n = 0; n < TOKENS; n++) {
        slots[n] = n == 17 ? -1 : (n * 7) % TOKENS;
    }
    uint64_t d_kv = ptx_bench_buffer(&b, kv, sizeof kv),
             d_slots = ptx_bench_buffer(&b, slots, sizeof slots);
    uint64_t d_cache = ptx_bench_buffer(&b, NULL, sizeof cache);
    run(&b, "kv_quant", (uint32_t[]){TOKENS, 1, 1}, 160,
        (void *[]){&d_kv, &d_slots, &d_cache, &tokens});
    ptx_bench_read(&b, d_cache, cache, sizeof cache);
    for (int n = 0; n < TOKENS; n++) {
        if (slots[n] >= 0) {
            check_token(kv + n * 576, cache + slots[n] * 656);
        }
    }
    ck_assert_uint_eq(b.counters.ctas_run, TOKENS);
    ptx_bench_close(&b);
}

START_TEST(kv_quant_is_bit_exact_on_sm_90)
{
    kv_quant("--gpu-architecture=compute_90");
}
END_TEST

START_TEST(kv_quant_is_bit_exact_with_software_fp8_on_sm_80)
{
    kv_quant("--gpu-architecture=compute_80");
}
END_TEST

enum { GEMM_M = 72, GEMM_N = 136, GEMM_K = 384, GEMM_BLOCKS = GEMM_K / 128 };

static uint8_t random_e4m3(void)
{
    uint8_t code = (uint8_t)(uint32_t)random_next(&random_state);
    return (code & 0x7f) > 0x60 ? code & 0x9f : code;
}

static double gemm_reference(const uint8_t *a, const uint8_t *b, const float *sa, const float *sb,
                             int m, int n)
{
    double sum = 0;
    for (int block = 0; block < GEMM_BLOCKS; block++) {
        double part = 0;
        for (int k = block * 128; k < block * 128 + 128; k++) {
            part += (double)numfmt_e4m3_decode(a[m * GEMM_K + k]) *
                    (double)numfmt_e4m3_decode(b[n * GEMM_K + k]);
        }
        sum +=
            part * (double)sa[m * GEMM_BLOCKS + block] * (double)sb[n / 128 * GEMM_BLOCKS + block];
    }
    return sum;
}

static void gemm(const char *arch, int32_t number, hone_emu_arithmetic mode, double tolerance)
{
    ptx_bench b;
    static uint8_t a[GEMM_M * GEMM_K], w[GEMM_N * GEMM_K];
    static float sa[GEMM_M * GEMM_BLOCKS], sb[2 * GEMM_BLOCKS];
    static uint16_t d[GEMM_M * GEMM_N];
    int m = GEMM_M, n = GEMM_N, k = GEMM_K;
    double error = 0, norm = 0;

    if (!load(&b, "gemm_mma.cu", arch)) {
        return;
    }
    for (size_t i = 0; i < sizeof a; i++) {
        a[i] = random_e4m3();
    }
    for (size_t i = 0; i < sizeof w; i++) {
        w[i] = random_e4m3();
    }
    for (size_t i = 0; i < ARRAY_LEN(sa); i++) {
        sa[i] = 1.0f + random_float() / 2;
    }
    for (size_t i = 0; i < ARRAY_LEN(sb); i++) {
        sb[i] = 1.0f + random_float() / 2;
    }
    uint64_t da = ptx_bench_buffer(&b, a, sizeof a), dw = ptx_bench_buffer(&b, w, sizeof w);
    uint64_t dsa = ptx_bench_buffer(&b, sa, sizeof sa), dsb = ptx_bench_buffer(&b, sb, sizeof sb);
    uint64_t dd = ptx_bench_buffer(&b, NULL, sizeof d);
    b.launch.dynamic_shared_bytes = 3 * (64 + 128) * 128;
    b.launch.arch = number;
    b.launch.arithmetic = mode;
    run(&b, "gemm_fp8", (uint32_t[]){2, 2, 1}, 128,
        (void *[]){&da, &dsa, &dw, &dsb, &dd, &m, &n, &k});
    ptx_bench_read(&b, dd, d, sizeof d);
    for (int i = 0; i < GEMM_M * GEMM_N; i++) {
        double want = gemm_reference(a, w, sa, sb, i / GEMM_N, i % GEMM_N);
        double off = (double)numfmt_bf16_decode(d[i]) - want;
        error += off * off;
        norm += want * want;
    }
    ck_assert_double_lt(sqrt(error / norm), tolerance);
    ck_assert_uint_eq(b.counters.tensor_macs[HONE_EMU_MMA_FP8], UINT64_C(128) * 256 * GEMM_K);
    ck_assert_uint_gt(b.counters.async_copy_bytes, 0);
    ptx_bench_close(&b);
}

/* 1.7e-3 is what rounding the output to bf16 costs */
START_TEST(fp8_gemm_matches_float64_with_exact_arithmetic)
{
    gemm("--gpu-architecture=compute_89", 89, HONE_EMU_EXACT, 1.8e-3);
}
END_TEST

START_TEST(fp8_gemm_matches_float64_with_the_units_of_sm_89_and_sm_90)
{
    gemm("--gpu-architecture=compute_89", 89, HONE_EMU_HW, 2.2e-3);
    gemm("--gpu-architecture=compute_90", 90, HONE_EMU_HW, 1.8e-3);
}
END_TEST

enum { QUERIES = 3, KEYS = 333, STRIDE = 384, HEADS = 64, DEPTH = 128 };

static double logit(const uint8_t *q, const uint8_t *key, const float *weights)
{
    double sum = 0;
    for (int h = 0; h < HEADS; h++) {
        double dot = 0;
        for (int z = 0; z < DEPTH; z++) {
            dot +=
                (double)numfmt_e4m3_decode(q[h * DEPTH + z]) * (double)numfmt_e4m3_decode(key[z]);
        }
        sum += dot > 0 ? (double)weights[h] * dot : 0;
    }
    return sum;
}

START_TEST(indexer_logits_match_float64_and_touch_only_their_range)
{
    ptx_bench b;
    static uint8_t q[QUERIES * HEADS * DEPTH], keys[KEYS * DEPTH];
    static float scale[KEYS], weights[QUERIES * HEADS], out[QUERIES * STRIDE];
    int begin[QUERIES], end[QUERIES], keys_len = KEYS, stride = STRIDE;

    if (!load(&b, "indexer.cu", "--gpu-architecture=compute_90")) {
        return;
    }
    for (size_t n = 0; n < sizeof q; n++) {
        q[n] = (uint32_t)random_next(&random_state) & 0xbf;
    }
    for (size_t n = 0; n < sizeof keys; n++) {
        keys[n] = (uint32_t)random_next(&random_state) & 0xbf;
    }
    for (int n = 0; n < KEYS; n++) {
        scale[n] = 1 + random_float() / 2;
    }
    for (size_t n = 0; n < ARRAY_LEN(weights); n++) {
        weights[n] = random_float();
    }
    for (int n = 0; n < QUERIES; n++) {
        begin[n] = n * 7;
        end[n] = KEYS - n * 150;
    }
    for (size_t n = 0; n < ARRAY_LEN(out); n++) {
        out[n] = -12345.0f;
    }
    uint64_t dq = ptx_bench_buffer(&b, q, sizeof q), dk = ptx_bench_buffer(&b, keys, sizeof keys);
    uint64_t ds = ptx_bench_buffer(&b, scale, sizeof scale);
    uint64_t dw = ptx_bench_buffer(&b, weights, sizeof weights);
    uint64_t db = ptx_bench_buffer(&b, begin, sizeof begin),
             de = ptx_bench_buffer(&b, end, sizeof end);
    uint64_t dout = ptx_bench_buffer(&b, out, sizeof out);
    run(&b, "indexer_logits", (uint32_t[]){(KEYS + 127) / 128, QUERIES, 1}, 256,
        (void *[]){&dq, &dk, &ds, &dw, &db, &de, &dout, &keys_len, &stride});
    ptx_bench_read(&b, dout, out, sizeof out);
    for (int n = 0; n < QUERIES * STRIDE; n++) {
        int row = n / STRIDE, key = n % STRIDE;
        if (key < begin[row] || key >= end[row]) {
            ck_assert(out[n] == -12345.0f);
            continue;
        }
        double want = logit(q + row * HEADS * DEPTH, keys + key * DEPTH, weights + row * HEADS) *
                      (double)scale[key];
        ck_assert_double_lt(fabs((double)out[n] - want), 1e-4 * (fabs(want) + 1));
    }
    ptx_bench_close(&b);
}
END_TEST

enum { ROWS = 3, ROW_STRIDE = 3000, TOP = 512 };

static int falling(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void check_top(const float *x, int len, const int32_t *chosen)
{
    static float sorted[ROW_STRIDE];
    static uint8_t seen[ROW_STRIDE];
    int count = len < TOP ? len : TOP;

    memcpy(sorted, x, (size_t)len * sizeof *x);
    qsort(sorted, (size_t)len, sizeof *sorted, falling);
    memset(seen, 0, sizeof seen);
    for (int n = 0; n < TOP; n++) {
        if (n >= count) {
            ck_assert_int_eq(chosen[n], -1);
            continue;
        }
        ck_assert_int_ge(chosen[n], 0);
        ck_assert_int_lt(chosen[n], len);
        ck_assert(!seen[chosen[n]]);
        seen[chosen[n]] = 1;
        ck_assert(x[chosen[n]] >= sorted[count - 1]);
    }
}

START_TEST(radix_topk_chooses_a_valid_set_under_every_schedule)
{
    ptx_bench b;
    static float x[ROWS * ROW_STRIDE];
    static int32_t chosen[ROWS * TOP];
    int32_t lengths[ROWS] = {100, ROW_STRIDE, 2777};
    int stride = ROW_STRIDE, k = TOP;

    if (!load(&b, "topk.cu", "--gpu-architecture=compute_90")) {
        return;
    }
    for (size_t n = 0; n < ARRAY_LEN(x); n++) {
        x[n] = random_float() * 100;
    }
    uint64_t dx = ptx_bench_buffer(&b, x, sizeof x);
    uint64_t dl = ptx_bench_buffer(&b, lengths, sizeof lengths);
    for (uint64_t seed = 0; seed < 4; seed++) {
        uint64_t di = ptx_bench_buffer(&b, NULL, sizeof chosen);
        b.launch.schedule_seed = seed;
        run(&b, "radix_topk", (uint32_t[]){ROWS, 1, 1}, 256,
            (void *[]){&dx, &dl, &di, &stride, &k});
        ptx_bench_read(&b, di, chosen, sizeof chosen);
        for (int r = 0; r < ROWS; r++) {
            check_top(x + r * ROW_STRIDE, lengths[r], chosen + r * TOP);
        }
    }
    ptx_bench_close(&b);
}
END_TEST

/* Twelve warps of it stay within a core's second-level cache. */
START_TEST(a_warp_specialised_gemm_has_a_small_register_image)
{
    ptx_bench b;
    ptx_kernel_facts facts;

    if (!load(&b, "gemm_wgmma.cu", "--gpu-architecture=sm_90a")) {
        return;
    }
    ptx_kernel *k = ptx_module_kernel(b.module, "gemm_wgmma");
    ck_assert_ptr_nonnull(k);
    ptx_kernel_describe(k, &facts);
    ck_assert_uint_gt(facts.image_bytes, 64 * 128); /* no less than its accumulators */
    ck_assert_uint_le(facts.image_bytes, 40000);
    ptx_bench_close(&b);
}
END_TEST

/* The same of the project's own, which needs no compiler: 12 warps, two of whose groups multiply.
 */
START_TEST(so_does_the_benchmarks_gemm_of_twelve_warps)
{
    char path[600];
    ptx_bench b;
    ptx_kernel_facts facts;

    snprintf(path, sizeof path, "%s/benchmarks/ptx/gemm_fp8.ptx", getenv("HONE_SOURCE_DIR"));
    char *text = file_read(path, NULL);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    ptx_kernel *k = ptx_module_kernel(b.module, "gemm_fp8");
    ck_assert_ptr_nonnull(k);
    ptx_kernel_describe(k, &facts);
    ck_assert_uint_eq(facts.max_threads, 384);
    ck_assert_uint_gt(facts.image_bytes, 32 * 128);
    ck_assert_uint_le(facts.image_bytes, 40000);
    ptx_bench_close(&b);
    free(text);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ptx_kernels");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, kv_quant_is_bit_exact_on_sm_90);
    tcase_add_test(tests, kv_quant_is_bit_exact_with_software_fp8_on_sm_80);
    tcase_add_test(tests, fp8_gemm_matches_float64_with_exact_arithmetic);
    tcase_add_test(tests, fp8_gemm_matches_float64_with_the_units_of_sm_89_and_sm_90);
    tcase_add_test(tests, indexer_logits_match_float64_and_touch_only_their_range);
    tcase_add_test(tests, radix_topk_chooses_a_valid_set_under_every_schedule);
    tcase_add_test(tests, a_warp_specialised_gemm_has_a_small_register_image);
    tcase_add_test(tests, so_does_the_benchmarks_gemm_of_twelve_warps);
    return suite_run("emulator/ptx_kernels", tests);
}
