/* hopper_cases.c - each kernel of tests/emulator/hopper: its data, its launch, its reference. */
#include "tests/emulator/hopper_bench.h"

#include "core/status.h"

#include <stdlib.h>
#include <string.h>

static float power_of_two(uint64_t index)
{
    static const float powers[] = {0.25f, 0.5f, 1, 2, 4};
    return powers[hopper_number(index, 2) + 2];
}

/* ---- fp8: rows and columns with tails, more k tiles than stages ---- */

enum { FP8_M = 200, FP8_N = 88, FP8_K = 5 * 128, FP8_TILES = FP8_K / 128 };
static struct {
    uint8_t a[FP8_M][FP8_K], b[FP8_N][FP8_K];
    float rows[FP8_TILES][FP8_M], tiles[FP8_TILES];
    uint16_t d[FP8_M][FP8_N];
} fp8;

static double fp8_product(size_t row, size_t col, size_t tile)
{
    int sum = 0;
    for (size_t k = tile * 128; k < (tile + 1) * 128; k++) {
        sum += hopper_number(row * FP8_K + k, 4) * hopper_number((1000 + col) * FP8_K + k, 4);
    }
    return sum * (double)fp8.rows[tile][row] * (double)fp8.tiles[tile];
}

static void fp8_make(void)
{
    for (size_t k = 0; k < FP8_K; k++) {
        for (size_t row = 0; row < FP8_M; row++) {
            fp8.a[row][k] = hopper_e4m3(hopper_number(row * FP8_K + k, 4));
        }
        for (size_t col = 0; col < FP8_N; col++) {
            fp8.b[col][k] = hopper_e4m3(hopper_number((1000 + col) * FP8_K + k, 4));
        }
    }
    for (size_t t = 0; t < FP8_TILES; t++) {
        fp8.tiles[t] = power_of_two(t + 77);
        for (size_t row = 0; row < FP8_M; row++) {
            fp8.rows[t][row] = power_of_two(t * 1000 + row);
        }
    }
    for (size_t i = 0; i < FP8_M * FP8_N; i++) {
        double sum = 0;
        for (size_t t = 0; t < FP8_TILES; t++) {
            sum += fp8_product(i / FP8_N, i % FP8_N, t);
        }
        fp8.d[i / FP8_N][i % FP8_N] = hopper_bf16((float)sum);
    }
}

static void run_fp8(hopper_bench *b, unsigned cluster, unsigned grid)
{
    static bool made;
    if (!made) {
        fp8_make();
        made = true;
    }
    CUdeviceptr a = hopper_buffer(b, fp8.a, sizeof fp8.a);
    CUdeviceptr right = hopper_buffer(b, fp8.b, sizeof fp8.b);
    CUdeviceptr d = hopper_buffer(b, NULL, sizeof fp8.d);
    CUdeviceptr rows = hopper_buffer(b, fp8.rows, sizeof fp8.rows);
    CUdeviceptr tiles = hopper_buffer(b, fp8.tiles, sizeof fp8.tiles);
    const hopper_box box_a = {
        CU_TENSOR_MAP_DATA_TYPE_UINT8, a, FP8_K, FP8_M, FP8_K, 128, 128, true};
    const hopper_box box_b = {CU_TENSOR_MAP_DATA_TYPE_UINT8, right, FP8_K, FP8_N, FP8_K, 128,
                              cluster != 0 ? 32 : 64,        true};
    const hopper_box box_d = {
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, d, FP8_N, FP8_M, FP8_N * 2, 64, 64, true};
    CUtensorMap map_a = hopper_map(b, &box_a), map_b = hopper_map(b, &box_b);
    CUtensorMap map_d = hopper_map(b, &box_d);
    int m = FP8_M, n = FP8_N, k = FP8_K;
    void *params[] = {&map_a, &map_b, &map_d, &rows, &tiles, &m, &n, &k};
    const hopper_launch launch = {.entry = "gemm_fp8",
                                  .grid = {grid, 1, 1},
                                  .threads = 384,
                                  .shared = 3 * (128 + 64) * 128 + 2 * 64 * 128 + 48 + 1024,
                                  .cluster = cluster,
                                  .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, d, fp8.d, sizeof fp8.d);
}

static void run_gemm_fp8(hopper_bench *b)
{
    run_fp8(b, 0, 3);
}

static void run_gemm_fp8_pair(hopper_bench *b)
{
    run_fp8(b, 2, 2);
}

/* ---- bf16: tails in every direction ---- */

enum { BF16_M = 100, BF16_N = 200, BF16_K = 296 };
static struct {
    uint16_t a[BF16_M][BF16_K], b[BF16_K][BF16_N];
    float d[BF16_M][BF16_N];
} bf16;

static void bf16_make(void)
{
    for (size_t i = 0; i < BF16_M * BF16_K; i++) {
        bf16.a[i / BF16_K][i % BF16_K] = hopper_bf16((float)hopper_number(i, 8));
    }
    for (size_t i = 0; i < BF16_K * BF16_N; i++) {
        bf16.b[i / BF16_N][i % BF16_N] = hopper_bf16((float)hopper_number(i + 500000, 8));
    }
    for (size_t i = 0; i < BF16_M * BF16_N; i++) {
        size_t row = i / BF16_N, col = i % BF16_N;
        int sum = 0;
        for (size_t k = 0; k < BF16_K; k++) {
            sum += hopper_number(row * BF16_K + k, 8) * hopper_number(k * BF16_N + col + 500000, 8);
        }
        bf16.d[row][col] = (float)sum;
    }
}

static void run_gemm_bf16(hopper_bench *b)
{
    static bool made;
    if (!made) {
        bf16_make();
        made = true;
    }
    CUdeviceptr a = hopper_buffer(b, bf16.a, sizeof bf16.a);
    CUdeviceptr right = hopper_buffer(b, bf16.b, sizeof bf16.b);
    CUdeviceptr d = hopper_buffer(b, NULL, sizeof bf16.d);
    const CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    const hopper_box box_a = {type, a, BF16_K, BF16_M, BF16_K * 2, 64, 64, true};
    const hopper_box box_b = {type, right, BF16_N, BF16_K, BF16_N * 2, 64, 64, true};
    CUtensorMap map_a = hopper_map(b, &box_a), map_b = hopper_map(b, &box_b);
    int m = BF16_M, n = BF16_N, k = BF16_K;
    void *params[] = {&map_a, &map_b, &d, &m, &n, &k};
    const hopper_launch launch = {.entry = "gemm_bf16",
                                  .grid = {2, 2, 1},
                                  .threads = 128,
                                  .shared = 2 * 3 * 8192 + 16 + 1024,
                                  .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, d, bf16.d, sizeof bf16.d);
}

/* ---- f16 by cp.async ---- */

enum { F16_M = 64, F16_N = 128, F16_K = 6 * 32 };
static void run_gemm_f16(hopper_bench *b)
{
    static uint16_t a[F16_M][F16_K], right[F16_N][F16_K];
    static float d[F16_M][F16_N];
    for (size_t i = 0; i < F16_M * F16_K; i++) {
        a[i / F16_K][i % F16_K] = hopper_f16(hopper_number(i, 4));
    }
    for (size_t i = 0; i < F16_N * F16_K; i++) {
        right[i / F16_K][i % F16_K] = hopper_f16(hopper_number(i + 90000, 4));
    }
    for (size_t i = 0; i < F16_M * F16_N; i++) {
        size_t row = i / F16_N, col = i % F16_N;
        int sum = 0;
        for (size_t k = 0; k < F16_K; k++) {
            sum += hopper_number(row * F16_K + k, 4) * hopper_number(col * F16_K + k + 90000, 4);
        }
        d[row][col] = (float)sum;
    }
    CUdeviceptr at_a = hopper_buffer(b, a, sizeof a), at_b = hopper_buffer(b, right, sizeof right);
    CUdeviceptr at_d = hopper_buffer(b, NULL, sizeof d);
    int n = F16_N, k = F16_K;
    void *params[] = {&at_a, &at_b, &at_d, &n, &k};
    const hopper_launch launch = {
        .entry = "gemm_f16", .grid = {1, 2, 1}, .threads = 128, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, at_d, d, sizeof d);
}

/* ---- the ring of bulk copies ---- */

enum { CHUNKS = 13, STREAM_LEN = CHUNKS * 512 };
static void run_stream(hopper_bench *b)
{
    static float x[STREAM_LEN], z[STREAM_LEN], y[STREAM_LEN];
    for (size_t i = 0; i < STREAM_LEN; i++) {
        x[i] = (float)hopper_number(i, 1000);
        z[i] = (float)hopper_number(i + STREAM_LEN, 1000);
        y[i] = 3 * x[i] + z[i];
    }
    CUdeviceptr at_x = hopper_buffer(b, x, sizeof x), at_z = hopper_buffer(b, z, sizeof z);
    CUdeviceptr at_y = hopper_buffer(b, NULL, sizeof y);
    int chunks = CHUNKS;
    void *params[] = {&at_x, &at_z, &at_y, &chunks};
    const hopper_launch launch = {
        .entry = "stream", .grid = {2, 1, 1}, .threads = 160, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, at_y, y, sizeof y);
}

/* ---- sums of two parts of k by the engine ---- */

enum { SPLIT_M = 40, SPLIT_N = 36, SPLIT_K = 24 };
static void run_split_k(hopper_bench *b)
{
    static float a[SPLIT_M][SPLIT_K], right[SPLIT_K][SPLIT_N], d[SPLIT_M][SPLIT_N];
    for (size_t i = 0; i < SPLIT_M * SPLIT_K; i++) {
        a[i / SPLIT_K][i % SPLIT_K] = (float)hopper_number(i, 50);
    }
    for (size_t i = 0; i < SPLIT_K * SPLIT_N; i++) {
        right[i / SPLIT_N][i % SPLIT_N] = (float)hopper_number(i + 5000, 50);
    }
    for (size_t i = 0; i < SPLIT_M * SPLIT_N; i++) {
        size_t row = i / SPLIT_N, col = i % SPLIT_N;
        double sum = 0;
        for (size_t k = 0; k < SPLIT_K; k++) {
            sum += (double)a[row][k] * (double)right[k][col];
        }
        d[row][col] = (float)sum;
    }
    CUdeviceptr at_a = hopper_buffer(b, a, sizeof a), at_b = hopper_buffer(b, right, sizeof right);
    CUdeviceptr at_d = hopper_buffer(b, NULL, sizeof d);
    const hopper_box box = {
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32, at_d, SPLIT_N, SPLIT_M, SPLIT_N * 4, 32, 32, false};
    CUtensorMap map = hopper_map(b, &box);
    int shape[] = {SPLIT_M, SPLIT_N, SPLIT_K, 0};
    void *params[] = {&at_a, &at_b, &map, shape};
    const hopper_launch launch = {
        .entry = "split_k", .grid = {2, 2, 2}, .threads = 256, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, at_d, d, sizeof d);
}

/* ---- bins in a cluster's shared memory ---- */

static void run_histogram(hopper_bench *b)
{
    static uint8_t values[3000];
    static uint32_t counts[256];
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        values[i] = (uint8_t)hopper_number(i, 100000);
        counts[values[i]]++;
    }
    CUdeviceptr at = hopper_buffer(b, values, sizeof values);
    CUdeviceptr to = hopper_buffer(b, NULL, sizeof counts);
    int len = ARRAY_LEN(values);
    void *params[] = {&at, &to, &len};
    const hopper_launch launch = {
        .entry = "histogram", .grid = {4, 1, 1}, .threads = 128, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, to, counts, sizeof counts);
}

/* ---- the largest keys ---- */

enum { KEYS = 2048, WANTED = 300 };
static uint32_t keys[KEYS];

/* Larger first; of equal ones the lower place. */
static int by_rank(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (keys[a] != keys[b]) {
        return keys[a] > keys[b] ? -1 : 1;
    }
    return a < b ? -1 : 1;
}

static int by_place(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

static void run_select(hopper_bench *b)
{
    static uint32_t places[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        keys[i] = (uint32_t)(hopper_number(i, 400) + 400) * 0x01234567u; /* with ties */
        places[i] = i;
    }
    qsort(places, KEYS, sizeof places[0], by_rank);
    qsort(places, WANTED, sizeof places[0], by_place);
    CUdeviceptr at = hopper_buffer(b, keys, sizeof keys);
    CUdeviceptr to = hopper_buffer(b, NULL, WANTED * sizeof places[0]);
    int len = KEYS;
    unsigned wanted = WANTED;
    void *params[] = {&at, &to, &len, &wanted};
    const hopper_launch launch = {
        .entry = "select_largest", .grid = {1, 1, 1}, .threads = 256, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, to, places, WANTED * sizeof places[0]);
}

/* ---- one map for matrices of different heights ---- */

enum { GROUPS = 3, GROUPED_ROWS = 16 + 11 + 37 };
static void run_grouped(hopper_bench *b)
{
    static const uint32_t heights[GROUPS] = {16, 11, 37};
    static uint32_t values[GROUPED_ROWS][32], sums[GROUPED_ROWS];
    struct {
        CUdeviceptr values;
        uint32_t rows, first;
    } groups[GROUPS];
    uint32_t first = 0;
    for (size_t row = 0; row < GROUPED_ROWS; row++) {
        sums[row] = 0;
        for (size_t i = 0; i < 32; i++) {
            values[row][i] = (uint32_t)(hopper_number(row * 32 + i, 1000) + 1000);
            sums[row] += values[row][i];
        }
    }
    for (size_t g = 0; g < GROUPS; g++) {
        groups[g].values = hopper_buffer(b, values[first], heights[g] * sizeof values[0]);
        groups[g].rows = heights[g];
        groups[g].first = first;
        first += heights[g];
    }
    CUdeviceptr to = hopper_buffer(b, NULL, sizeof sums),
                list = hopper_buffer(b, groups, sizeof groups);
    CUdeviceptr maps = hopper_buffer(b, NULL, GROUPS * sizeof(CUtensorMap));
    const hopper_box box = {
        CU_TENSOR_MAP_DATA_TYPE_UINT32, groups[0].values, 32, heights[0], 128, 32, 16, false};
    CUtensorMap pattern = hopper_map(b, &box);
    void *params[] = {&pattern, &maps, &list, &to};
    const hopper_launch launch = {
        .entry = "grouped", .grid = {GROUPS, 1, 1}, .threads = 64, .params = params};
    hopper_start(b, &launch);
    hopper_compare(b, to, sums, sizeof sums);
}

/* ---- a launch that depends on the one before ---- */

enum { DEPENDENT_LEN = 512 };
static void run_dependent(hopper_bench *b)
{
    static uint32_t in[DEPENDENT_LEN], out[DEPENDENT_LEN];
    for (uint32_t i = 0; i < DEPENDENT_LEN; i++) {
        in[i] = i + 5;
        out[i] = in[i] * 3 + 1;
    }
    CUdeviceptr at = hopper_buffer(b, in, sizeof in), between = hopper_buffer(b, NULL, sizeof in);
    CUdeviceptr to = hopper_buffer(b, NULL, sizeof out);
    void *params[] = {&at, &between}, *next[] = {&between, &to};
    const hopper_launch first = {
        .entry = "first", .grid = {4, 1, 1}, .threads = 128, .params = params};
    const hopper_launch second = {
        .entry = "second", .grid = {4, 1, 1}, .threads = 128, .dependent = true, .params = next};
    hopper_start(b, &first);
    hopper_start(b, &second);
    hopper_compare(b, to, out, sizeof out);
}

const hopper_kernel hopper_kernels[] = {
    {"gemm_fp8", "gemm_fp8.cu", NULL, run_gemm_fp8},
    {"gemm_fp8_pair", "gemm_fp8.cu", "-DCLUSTER=2", run_gemm_fp8_pair},
    {"gemm_bf16", "gemm_bf16.cu", NULL, run_gemm_bf16},
    {"gemm_f16", "gemm_f16.cu", NULL, run_gemm_f16},
    {"stream", "stream.cu", NULL, run_stream},
    {"split_k", "split_k.cu", NULL, run_split_k},
    {"histogram", "histogram.cu", NULL, run_histogram},
    {"select", "select.cu", NULL, run_select},
    {"grouped", "grouped.cu", NULL, run_grouped},
    {"dependent", "dependent.cu", NULL, run_dependent},
};
const size_t hopper_kernels_len = ARRAY_LEN(hopper_kernels);
