/* test_manifest.c - manifests: what is refused and where, which configs are legal, and the plans
 * that come out. */
#include "tests/templates/fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const base[] = {
    /* 1 */ "schema: 1",
    /* 2 */ "op: fp8_gemm",
    /* 3 */ "source: fp8_gemm/mma.cu",
    /* 4 */ "when: [{rule: dev_arch >= 89, why: needs sm_89}, k > 0]",
    /* 5 */ "params:",
    /* 6 */ "  block_m: [16, 32, 64]",
    /* 7 */ "  block_n: [32, 64]",
    /* 8 */ "  stages: [2, 3]",
    /* 9 */ "  swizzle: [false, true]",
    /* 10 */ "let:",
    /* 11 */ "  shared: stages * (block_m + block_n) * 128",
    /* 12 */ "  wide: n >= 128",
    /* 13 */ "require:",
    /* 14 */ "  - {rule: shared <= dev_smem_block / 4, why: a quarter of the SM}",
    /* 15 */ "  - block_m <= block_n || wide",
    /* 16 */ "config: {block_m: block_m, block_n: block_n, stages: stages, swizzle: swizzle}",
    /* 17 */ "launches:",
    /* 18 */ "  - kernel: gemm",
    /* 19 */ "    grid: [\"ceil_div(n, block_n)\", \"ceil_div(m, block_m)\", batch]",
    /* 20 */ "    block: [block_m * 4]",
    /* 21 */ "    shared: shared",
    /* 22 */ "    arguments: [{operand: a}, {scalar: m, type: i64}, {workspace: 16}]",
    /* 23 */ "workspace: {bytes: m * 4, zeroed: true}",
    /* 24 */ "pipeline: stages",
    /* 25 */ "estimate: {registers: block_m + 40, macs: m * n * k}",
    /* 26 */ "tolerance: 36",
};

/* Line 22 with a tensor map. */
#define MAP(operand, keys) "    arguments: [{tensor_map: " operand ", " keys "}]"
#define GOOD_MAP           "type: e4m3, dims: [k, m], strides: [k], box: [128, block_m], swizzle: 128"

/* The base with one line replaced (0: none). */
static char *write_base(int line, const char *instead)
{
    size_t capacity = 8192 + strlen(instead), used = 0;
    char *text = malloc(capacity);

    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < (int)ARRAY_LEN(base); i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s\n",
                                 i + 1 == line ? instead : base[i]);
    }
    return text;
}

static hone_status parse(int line, const char *instead, manifest **out, hone_error *error)
{
    char *text = write_base(line, instead);
    hone_status status = manifest_parse("t", text, strlen(text), out, error);

    free(text);
    return status;
}

static const struct {
    const char *name;
    int line;
    const char *instead;
    hone_status status;
    int reported;
} hostile[] = {
    {"another schema", 1, "schema: 2", HONE_BAD_MANIFEST, 1},
    {"a schema that is text", 1, "schema: one", HONE_BAD_MANIFEST, 1},
    {"no schema", 1, "", HONE_BAD_MANIFEST, 2},
    {"an unknown op", 2, "op: softmax", HONE_BAD_MANIFEST, 2},
    {"an op that is a list", 2, "op: [fp8_gemm]", HONE_BAD_MANIFEST, 2},
    {"an unknown key", 24, "pipelines: stages", HONE_BAD_MANIFEST, 24},
    {"a duplicate key", 24, "tolerance: 1", HONE_BAD_MANIFEST, 26},
    {"a duplicate parameter", 7, "  block_m: [1]", HONE_BAD_MANIFEST, 7},
    {"a path upwards", 3, "source: ../secret.cu", HONE_BAD_MANIFEST, 3},
    {"a path upwards inside", 3, "source: a/../../b.cu", HONE_BAD_MANIFEST, 3},
    {"an absolute path", 3, "source: /etc/passwd.cu", HONE_BAD_MANIFEST, 3},
    {"a hidden file", 3, "source: a/.b.cu", HONE_BAD_MANIFEST, 3},
    {"an empty part of a path", 3, "source: a//b.cu", HONE_BAD_MANIFEST, 3},
    {"a path with a space", 3, "source: a b.cu", HONE_BAD_MANIFEST, 3},
    {"a path with a shell word", 3, "source: $(x).cu", HONE_BAD_MANIFEST, 3},
    {"a source that is no .cu", 3, "source: a/b.c", HONE_BAD_MANIFEST, 3},
    {"an alias", 7, "  block_n: &x [32, 64]", HONE_BAD_MANIFEST, 7},
    {"a tag", 7, "  block_n: !!seq [32, 64]", HONE_BAD_MANIFEST, 7},
    {"a merge key", 7, "  <<: {block_n: [32]}", HONE_BAD_MANIFEST, 7},
    {"an empty list of values", 7, "  block_n: []", HONE_BAD_MANIFEST, 7},
    {"a parameter that is no list", 7, "  block_n: 32", HONE_BAD_MANIFEST, 7},
    {"a value twice", 7, "  block_n: [32, 32]", HONE_BAD_MANIFEST, 7},
    {"a value that is text", 7, "  block_n: [32, \"x; y\"]", HONE_BAD_MANIFEST, 7},
    {"a value that is a real", 7, "  block_n: [32.5]", HONE_BAD_MANIFEST, 7},
    {"a value past 64 bits", 7, "  block_n: [9223372036854775808]", HONE_BAD_MANIFEST, 7},
    {"a name with a dash", 7, "  block-n: [32]", HONE_BAD_MANIFEST, 7},
    {"a name with a brace", 7, "  \"n}>; x\": [32]", HONE_BAD_MANIFEST, 7},
    {"a name that starts with _", 7, "  _n: [32]", HONE_BAD_MANIFEST, 7},
    {"a name of 65 letters", 7,
     "  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: [1]", HONE_BAD_MANIFEST,
     7},
    {"a parameter named as a field", 7, "  m: [32]", HONE_BAD_MANIFEST, 7},
    {"a parameter named as a device fact", 7, "  dev_arch: [32]", HONE_BAD_MANIFEST, 7},
    {"a parameter named as a function", 7, "  max: [32]", HONE_BAD_MANIFEST, 7},
    {"a parameter named as a dtype", 7, "  bf16: [32]", HONE_BAD_MANIFEST, 7},
    {"a let named as a parameter", 12, "  block_m: 1", HONE_BAD_MANIFEST, 12},
    {"a let that uses a later one", 11, "  shared: wide", HONE_BAD_MANIFEST, 11},
    {"a let that uses itself", 11, "  shared: shared + 1", HONE_BAD_MANIFEST, 11},
    {"a rule that does not parse", 15, "  - block_m <=", HONE_BAD_MANIFEST, 15},
    {"a rule with an unknown name", 15, "  - block_k > 1", HONE_BAD_MANIFEST, 15},
    {"a rule that calls", 15, "  - system(1)", HONE_BAD_MANIFEST, 15},
    {"a rule without a rule", 15, "  - {why: x}", HONE_BAD_MANIFEST, 15},
    {"a rule with another key", 15, "  - {rule: 1, whence: x}", HONE_BAD_MANIFEST, 15},
    {"a `when` that uses a parameter", 4, "when: [block_m > 1]", HONE_BAD_MANIFEST, 4},
    {"a `when` that is no list", 4, "when: dev_arch", HONE_BAD_MANIFEST, 4},
    {"a config member with a brace", 16, "config: {\"a}>\": 1}", HONE_BAD_MANIFEST, 16},
    {"a kernel with a shell word", 18, "  - kernel: \"gemm; x\"", HONE_BAD_MANIFEST, 18},
    {"a kernel with template text", 18, "  - kernel: \"gemm<int>\"", HONE_BAD_MANIFEST, 18},
    {"a launch without a grid", 19, "", HONE_BAD_MANIFEST, 18},
    {"a grid of four", 19, "    grid: [1, 1, 1, 1]", HONE_LIMIT, 19},
    {"an argument of no kind", 22, "    arguments: [{pointer: a}]", HONE_BAD_MANIFEST, 22},
    {"a scalar of another type", 22, "    arguments: [{scalar: m, type: f32}]", HONE_BAD_MANIFEST,
     22},
    {"an argument of two kinds", 22, "    arguments: [{operand: a, scalar: m}]", HONE_BAD_MANIFEST,
     22},
    {"workspace without bytes", 23, "workspace: {zeroed: true}", HONE_BAD_MANIFEST, 23},
    {"an unknown estimate", 25, "estimate: {flops: 1}", HONE_BAD_MANIFEST, 25},
    {"a tolerance that is a map", 26, "tolerance: {}", HONE_BAD_MANIFEST, 26},
    {"no tolerance", 26, "", HONE_BAD_MANIFEST, 1},
    {"a tensor map without a type", 22, MAP("a", "dims: [k], box: [128]"), HONE_BAD_MANIFEST, 22},
    {"a tensor map without dimensions", 22, MAP("a", "type: e4m3, box: [128]"), HONE_BAD_MANIFEST,
     22},
    {"a tensor map of six", 22,
     MAP("a",
         "type: e4m3, dims: [1, 1, 1, 1, 1, 1], strides: [16, 16, 16, 16, 16], box: [16, 1, 1, "
         "1, 1, 1]"),
     HONE_LIMIT, 22},
    {"a tensor map with a stride too many", 22,
     MAP("a", "type: e4m3, dims: [k], strides: [k], box: [128]"), HONE_BAD_MANIFEST, 22},
    {"a tensor map without strides", 22, MAP("a", "type: e4m3, dims: [k, m], box: [128, 64]"),
     HONE_BAD_MANIFEST, 22},
    {"a tensor map with a box of one", 22,
     MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [128]"), HONE_BAD_MANIFEST, 22},
    {"a tensor map with another key", 22, MAP("a", "type: e4m3, dims: [k], box: [128], fill: 1"),
     HONE_BAD_MANIFEST, 22},
    {"a tensor map of a shell word", 22, MAP("\"a;b\"", "type: e4m3, dims: [k], box: [128]"),
     HONE_BAD_MANIFEST, 22},
    {"fraction bits that are a list", 26, "tolerance: 36\nfraction_bits: [13]", HONE_BAD_MANIFEST,
     27},
    {"a cover without columns", 26, "tolerance: 36\ncover: {rows: 1, ctas: 1}", HONE_BAD_MANIFEST,
     27},
    {"a cover with another key", 26, "tolerance: 36\ncover: {rows: 1, columns: 1, tiles: 1}",
     HONE_BAD_MANIFEST, 27},
    {"a number past 64 bits", 26, "tolerance: 99999999999999999999", HONE_OVERFLOW, 26},
};

START_TEST(a_hostile_manifest_is_refused_with_its_line)
{
    manifest *m = NULL;
    hone_error error = {0};

    ck_assert_msg(parse(hostile[_i].line, hostile[_i].instead, &m, &error) == hostile[_i].status,
                  "%s: %s: %s", hostile[_i].name, hone_status_name(error.status), error.message);
    ck_assert_ptr_null(m);
    ck_assert_str_eq(error.source, "t");
    ck_assert_int_gt((int)strlen(error.message), 8);
    ck_assert_msg(error.line == hostile[_i].reported, "%s: line %d: %s", hostile[_i].name,
                  error.line, error.message);
}
END_TEST

static void many(char *text, size_t capacity, const char *head, const char *format, int times,
                 const char *tail)
{
    size_t used = (size_t)snprintf(text, capacity, "%s", head);

    for (int i = 0; i < times; i++) {
        used += (size_t)snprintf(text + used, capacity - used, format, i, i);
    }
    snprintf(text + used, capacity - used, "%s", tail);
}

static const struct {
    const char *name;
    int line;
    const char *head, *format;
    int times;
    const char *tail;
    hone_status status;
} sizes[] = {
    {"256 values", 7, "  block_n: [", "%d, ", 255, "999]", HONE_OK},
    {"257 values", 7, "  block_n: [", "%d, ", 256, "999]", HONE_LIMIT},
    {"32 parameters", 7, "  block_n: [1]\n", "  p%d: [%d]\n", 28, "", HONE_OK},
    {"33 parameters", 7, "  block_n: [1]\n", "  p%d: [%d]\n", 29, "", HONE_LIMIT},
    {"2^64 and more configs", 7, "  block_n: [1]\n", "  p%d: [0, 1, 2, 3, 4, 5, 6, 1%d]\n", 28, "",
     HONE_LIMIT},
    {"64 rules", 15, "", "  - block_m > %d\n", 63, "", HONE_OK},
    {"65 rules", 15, "", "  - block_m > %d\n", 64, "", HONE_LIMIT},
    {"65 lets", 12, "  wide: 1\n", "  l%d: %d\n", 63, "", HONE_LIMIT},
    {"a megabyte of brackets", 7, "", "[", 1 << 20, "", HONE_LIMIT},
    {"brackets past the depth", 7, "  block_n: ", "[", 40, "", HONE_LIMIT},
    {"5 launches", 17, "launches:\n", "  - {kernel: k, grid: [1], block: [1], arguments: []}\n", 4,
     "", HONE_LIMIT},
    {"9 tensor maps", 22, "    arguments:\n",
     "      - {tensor_map: a, type: e4m3, dims: [k], box: [128]}\n", 9, "", HONE_LIMIT},
};

START_TEST(sizes_are_bounded)
{
    size_t capacity = 2u << 20;
    char *text = malloc(capacity);
    manifest *m = NULL;
    hone_error error = {0};
    struct timespec from, to;

    many(text, capacity, sizes[_i].head, sizes[_i].format, sizes[_i].times, sizes[_i].tail);
    clock_gettime(CLOCK_MONOTONIC, &from);
    hone_status status = parse(sizes[_i].line, text, &m, &error);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_msg(status == sizes[_i].status, "%s: %s: %s", sizes[_i].name,
                  hone_status_name(status), error.message);
    /* The promise is 50 ms; ten times as long is a hang. */
    ck_assert_int_le((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 500);
    manifest_free(m);
    free(text);
}
END_TEST

START_TEST(a_plan_holds_what_the_manifest_says)
{
    manifest *m = NULL;
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    hone_problem problem = fixture_problem("fp8_gemm:m=100,n=300,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {0};
    char text[256];

    ck_assert_msg(parse(0, "", &m, &error) == HONE_OK, "%d: %s", error.line, error.message);
    ck_assert_int_eq(
        manifest_config_parse(m, "block_m=32 stages=3 swizzle=1 block_n=64", &c, &error), HONE_OK);
    ck_assert_msg(manifest_plan(m, &problem, &device, &c, p, &error) == HONE_OK, "%s",
                  error.message);
    ck_assert_uint_eq(p->launches_len, 1);
    const plan_launch *launch = &p->launches[0];
    ck_assert_str_eq(launch->entry,
                     "gemm<Config{.block_m = 32, .block_n = 64, .stages = 3, .swizzle = 1}>");
    ck_assert_uint_eq(launch->grid[0], 5);
    ck_assert_uint_eq(launch->grid[1], 4);
    ck_assert_uint_eq(launch->grid[2], 1);
    ck_assert_uint_eq(launch->block[0], 128);
    ck_assert_uint_eq(launch->block[1], 1);
    ck_assert_uint_eq(launch->shared_bytes, 3 * (32 + 64) * 128);
    ck_assert_uint_eq(launch->arguments_len, 3);
    ck_assert_int_eq(launch->arguments[0].kind, PLAN_OPERAND);
    ck_assert_int_eq(launch->arguments[1].value, 100);
    ck_assert_uint_eq(launch->arguments[1].bytes, 8);
    ck_assert_int_eq(launch->arguments[2].value, 16);
    ck_assert_uint_eq(p->workspace_bytes, 400);
    ck_assert_uint_eq(p->workspace_zeroed, 400);
    ck_assert_int_eq(p->estimate.registers, 72);
    ck_assert_int_eq(p->estimate.macs, 100 * 300 * 256);
    ck_assert_int_eq(p->estimate.stages, 3);
    ck_assert_double_eq(p->tolerance, 36);
    ck_assert_int_eq(manifest_config_format(m, &c, text, sizeof text, &error), HONE_OK);
    ck_assert_str_eq(text, "block_m=32 block_n=64 stages=3 swizzle=1");
    ck_assert_int_eq(manifest_config_format(m, &c, text, 40, &error), HONE_LIMIT);
    manifest_free(m);
    free(p);
}
END_TEST

/* One line of the base replaced, then a plan of block_m=64 block_n=64 stages=2 swizzle=0 on
 * m=256,n=256. */
static const struct {
    const char *name;
    int line;
    const char *instead;
    bool legal;
    hone_status legal_status, plan_status;
} planned[] = {
    {"the base", 0, "", true, HONE_OK, HONE_OK},
    {"a grid of 0", 19, "    grid: [n - 256]", false, HONE_OK, HONE_LIMIT},
    {"a grid of 2^31", 19, "    grid: [2147483648]", false, HONE_OK, HONE_LIMIT},
    {"a grid of 2^31 - 1", 19, "    grid: [2147483647]", true, HONE_OK, HONE_OK},
    {"a grid.y of 65536", 19, "    grid: [1, 65536]", false, HONE_OK, HONE_LIMIT},
    {"a block of 1025", 20, "    block: [1025]", false, HONE_OK, HONE_LIMIT},
    {"a block of 32 x 33", 20, "    block: [32, 33]", false, HONE_OK, HONE_LIMIT},
    {"4 GiB of shared memory", 21, "    shared: 4294967296", false, HONE_OK, HONE_LIMIT},
    {"one byte too many", 21, "    shared: dev_smem_block + 1", false, HONE_OK, HONE_LIMIT},
    {"all shared memory", 21, "    shared: dev_smem_block", true, HONE_OK, HONE_OK},
    {"a cluster that divides", 21, "    cluster: [2, 2]", true, HONE_OK, HONE_OK},
    {"a cluster that does not", 21, "    cluster: [3]", false, HONE_OK, HONE_LIMIT},
    {"a cluster of 32", 21, "    cluster: [2, 16]", false, HONE_OK, HONE_LIMIT},
    {"a rule that refuses", 15, "  - block_m < 64", false, HONE_OK, HONE_OK},
    {"division by zero in a rule", 15, "  - 1 / (block_m - 64)", false, HONE_BAD_MANIFEST, HONE_OK},
    {"overflow in a rule", 15, "  - block_m * 9223372036854775807", false, HONE_OVERFLOW, HONE_OK},
    {"a let that divides by zero", 12, "  wide: 1 / (n - 256)", false, HONE_BAD_MANIFEST, HONE_OK},
    {"a member past an int", 16, "config: {a: 2147483648}", true, HONE_OK, HONE_OVERFLOW},
    {"an i32 that overflows", 22, "    arguments: [{scalar: m * 16777216, type: i32}]", true,
     HONE_OK, HONE_OVERFLOW},
    {"an operand that is not there", 22, "    arguments: [{operand: nothing}]", true, HONE_OK,
     HONE_BAD_MANIFEST},
    {"no launch that holds", 21, "    when: m < 0", true, HONE_OK, HONE_BAD_MANIFEST},
    {"negative workspace", 23, "workspace: {bytes: 0 - 1}", true, HONE_OK, HONE_BAD_MANIFEST},
    {"a tensor map", 22, MAP("a", GOOD_MAP), true, HONE_OK, HONE_OK},
    {"a tensor map in the workspace", 22,
     MAP("workspace", "type: f32, dims: [m / 4, 2], strides: [512], box: [32, 2], offset: 256"),
     true, HONE_OK, HONE_OK},
    {"a tensor map of nothing", 22,
     MAP("a", "type: e4m3, dims: [k - 256, m], strides: [k], box: [128, 64]"), false, HONE_OK,
     HONE_LIMIT},
    {"a type that is none", 22, MAP("a", "type: 99, dims: [k], box: [128]"), false,
     HONE_BAD_MANIFEST, HONE_BAD_MANIFEST},
    {"fewer than no elements", 22,
     MAP("a", "type: e4m3, dims: [k - 257, m], strides: [k], box: [128, 64]"), false, HONE_OK,
     HONE_LIMIT},
    {"2^32 elements and one", 22,
     MAP("a", "type: e4m3, dims: [pow2(32) + 1, m], strides: [0], box: [128, 64]"), false, HONE_OK,
     HONE_LIMIT},
    {"a stride of 8", 22, MAP("a", "type: e4m3, dims: [8, m], strides: [8], box: [128, 64]"), false,
     HONE_OK, HONE_LIMIT},
    {"a stride of 2^40", 22,
     MAP("a", "type: e4m3, dims: [k, 1], strides: [pow2(40)], box: [128, 1]"), false, HONE_OK,
     HONE_LIMIT},
    {"the longest stride", 22,
     MAP("a", "type: e4m3, dims: [k, 1], strides: [pow2(40) - 16], box: [128, 1]"), true, HONE_OK,
     HONE_OK},
    {"a box of 257", 22, MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [128, 257]"), false,
     HONE_OK, HONE_LIMIT},
    {"a box of 256", 22, MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [256, 256]"), true,
     HONE_OK, HONE_OK},
    {"a box of none", 22, MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [128, 0]"), false,
     HONE_OK, HONE_LIMIT},
    {"a box of 8 bytes", 22, MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [8, 8]"), false,
     HONE_OK, HONE_LIMIT},
    {"a box past its swizzle", 22,
     MAP("a", "type: bf16, dims: [k / 2, m], strides: [k], box: [64, 8], swizzle: 64"), false,
     HONE_OK, HONE_LIMIT},
    {"a swizzle of 16", 22,
     MAP("a", "type: e4m3, dims: [k, m], strides: [k], box: [16, 8], swizzle: 16"), false, HONE_OK,
     HONE_LIMIT},
    {"an offset of 8", 22, MAP("a", "type: e4m3, dims: [k], box: [128], offset: 8"), false, HONE_OK,
     HONE_LIMIT},
    {"a row past the operand", 22,
     MAP("a", "type: e4m3, dims: [k, m + 1], strides: [k], box: [128, 64]"), true, HONE_OK,
     HONE_BAD_MANIFEST},
    {"an offset past the operand", 22, MAP("a", "type: e4m3, dims: [k], box: [128], offset: m * k"),
     true, HONE_OK, HONE_BAD_MANIFEST},
    {"a row past the workspace", 22,
     MAP("workspace", "type: f32, dims: [m], box: [32], offset: 16"), true, HONE_OK,
     HONE_BAD_MANIFEST},
    {"a tensor map of an operand that is not there", 22,
     MAP("nothing", "type: e4m3, dims: [k], box: [128]"), true, HONE_OK, HONE_BAD_MANIFEST},
    {"a dependent launch", 21, "    dependent: m > 1", true, HONE_OK, HONE_OK},
    {"13 fraction bits", 26, "tolerance: 36\nfraction_bits: 13", true, HONE_OK, HONE_OK},
    {"12 fraction bits", 26, "tolerance: 36\nfraction_bits: 12", true, HONE_OK, HONE_BAD_MANIFEST},
    {"26 fraction bits", 26, "tolerance: 36\nfraction_bits: 26", true, HONE_OK, HONE_BAD_MANIFEST},
    {"a cover", 26, "tolerance: 36\ncover: {rows: block_m, columns: block_n, ctas: 4}", true,
     HONE_OK, HONE_OK},
    {"a cover of groups that do not divide the grid", 26,
     "tolerance: 36\ncover: {rows: block_m, columns: block_n, ctas: 3}", true, HONE_OK,
     HONE_BAD_MANIFEST},
    {"a cover of tiles of no size", 26, "tolerance: 36\ncover: {rows: 0, columns: 1, ctas: 1}",
     true, HONE_OK, HONE_BAD_MANIFEST},
    {"a cover of clusters that are no run", 22,
     "    arguments: []\n    cluster: [1, 2]\ncover: {rows: 64, columns: 64, ctas: 2}", true,
     HONE_OK, HONE_BAD_MANIFEST},
    {"a workspace zeroed in part", 23, "workspace: {bytes: 4 * m, zeroed: 4 * m}", true, HONE_OK,
     HONE_OK},
    {"more zeroed than there is", 23, "workspace: {bytes: 4 * m, zeroed: 4 * m + 1}", true, HONE_OK,
     HONE_BAD_MANIFEST},
    {"less than nothing zeroed", 23, "workspace: {bytes: 4 * m, zeroed: 0 - 1}", true, HONE_OK,
     HONE_BAD_MANIFEST},
};

START_TEST(limits_of_the_device_decide_what_is_legal)
{
    manifest *m = NULL;
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    hone_problem problem = fixture_problem("fp8_gemm:m=256,n=256,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {4, {64, 64, 2, 0}};
    bool legal = false;
    char why[160] = "";

    ck_assert_msg(parse(planned[_i].line, planned[_i].instead, &m, &error) == HONE_OK, "%s: %s",
                  planned[_i].name, error.message);
    ck_assert_msg(manifest_legal(m, &problem, &device, &c, &legal, why, &error) ==
                      planned[_i].legal_status,
                  "%s: %s", planned[_i].name, error.message);
    ck_assert_msg(legal == planned[_i].legal, "%s: %s", planned[_i].name, why);
    ck_assert(planned[_i].legal_status != HONE_OK || legal || why[0] != '\0');
    ck_assert_msg(manifest_plan(m, &problem, &device, &c, p, &error) == planned[_i].plan_status,
                  "%s: %s", planned[_i].name, error.message);
    manifest_free(m);
    free(p);
}
END_TEST

START_TEST(a_plan_holds_its_tensor_maps_and_what_its_groups_cover)
{
    manifest *m = NULL;
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    hone_problem problem = fixture_problem("fp8_gemm:m=100,n=320,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {4, {32, 64, 2, 0}};

    ck_assert_msg(
        parse(22,
              "    dependent: 1\n"
              "    arguments:\n"
              "      - {scalar: m, type: i32}\n"
              "      - {tensor_map: b, type: e4m3, dims: [k, n], strides: [k], box: [128, "
              "64], swizzle: 128}\n"
              "      - {tensor_map: workspace, type: f32, dims: [4, 5], strides: [32], "
              "box: [4, 1], offset: 16}\n"
              "fraction_bits: 25\n"
              "cover: {rows: 2 * block_m, columns: block_n, ctas: 2}",
              &m, &error) == HONE_OK,
        "%d: %s", error.line, error.message);
    ck_assert_msg(manifest_plan(m, &problem, &device, &c, p, &error) == HONE_OK, "%s",
                  error.message);
    const plan_launch *l = &p->launches[0];
    ck_assert(l->dependent);
    ck_assert_uint_eq(l->arguments_len, 3);
    ck_assert_uint_eq(l->maps_len, 2);
    ck_assert_int_eq(l->arguments[1].kind, PLAN_MAP);
    ck_assert_int_eq(l->arguments[1].value, 0);
    ck_assert_int_eq(l->arguments[2].value, 1);
    const plan_map b = l->maps[0], space = l->maps[1];
    ck_assert(b.operand == 2 && b.type == 0 && b.rank == 2);
    ck_assert(b.dims[0] == 256 && b.dims[1] == 320 && b.strides[0] == 256 && b.offset == 0);
    ck_assert(b.box[0] == 128 && b.box[1] == 64 && b.swizzle == 128);
    ck_assert(space.operand == -1 && space.type == 7 && space.offset == 16);
    ck_assert(space.strides[0] == 32 && space.swizzle == 0);
    ck_assert_int_eq(p->fraction_bits, 25);
    ck_assert(p->cover.rows == 64 && p->cover.columns == 64 && p->cover.ctas == 2);
    manifest_free(m);
    free(p);
}
END_TEST

START_TEST(a_tensor_map_needs_sm_90)
{
    manifest *m = NULL;
    hone_error error = {0};
    hone_problem problem = fixture_problem("fp8_gemm:m=256,n=256,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {4, {64, 64, 2, 0}};
    bool legal = true;
    char why[160] = "";

    ck_assert_int_eq(parse(22, MAP("a", GOOD_MAP), &m, &error), HONE_OK);
    device.arch = 89;
    ck_assert_int_eq(manifest_legal(m, &problem, &device, &c, &legal, why, &error), HONE_OK);
    ck_assert(!legal && strstr(why, "sm_90") != NULL);
    manifest_free(m);
}
END_TEST

START_TEST(when_says_which_rule_refuses_a_device)
{
    manifest *m = NULL;
    hone_error error = {0};
    hone_problem gemm = fixture_problem("fp8_gemm:m=1,n=128,k=128,recipe=f32-1x128-128x128");
    hone_problem other = fixture_problem("act_quant:m=1,k=128");
    device_facts device = fixture_device();
    bool serves = false;
    char why[160];

    ck_assert_int_eq(parse(0, "", &m, &error), HONE_OK);
    ck_assert_int_eq(manifest_serves(m, &gemm, &device, &serves, why, &error), HONE_OK);
    ck_assert(serves);
    device.arch = 80;
    ck_assert_int_eq(manifest_serves(m, &gemm, &device, &serves, why, &error), HONE_OK);
    ck_assert(!serves);
    ck_assert_str_eq(why, "needs sm_89");
    ck_assert_int_eq(manifest_serves(m, &other, &device, &serves, why, &error), HONE_OK);
    ck_assert(!serves);
    manifest_free(m);
}
END_TEST

static const struct {
    const char *text;
    hone_status status;
} configs[] = {
    {"block_m=16 block_n=32 stages=2 swizzle=0", HONE_OK},
    {"  swizzle=1  stages=3 block_n=64 block_m=64 ", HONE_OK},
    {"block_m=16 block_n=32 stages=2", HONE_BAD_TEXT},
    {"block_m=16 block_n=32 stages=2 swizzle=0 block_m=16", HONE_BAD_TEXT},
    {"block_m=17 block_n=32 stages=2 swizzle=0", HONE_BAD_TEXT},
    {"block_m=16x block_n=32 stages=2 swizzle=0", HONE_BAD_TEXT},
    {"block_m= block_n=32 stages=2 swizzle=0", HONE_BAD_TEXT},
    {"block_k=16 block_n=32 stages=2 swizzle=0", HONE_BAD_TEXT},
    {"block_m block_n=32 stages=2 swizzle=0", HONE_BAD_TEXT},
    {"", HONE_BAD_TEXT},
};

START_TEST(a_config_is_read_back_only_from_listed_values)
{
    manifest *m = NULL;
    hone_error error = {0};
    config c = {.len = 99};

    ck_assert_int_eq(parse(0, "", &m, &error), HONE_OK);
    ck_assert_msg(manifest_config_parse(m, configs[_i].text, &c, &error) == configs[_i].status,
                  "%s", configs[_i].text);
    ck_assert_uint_eq(c.len, configs[_i].status == HONE_OK ? 4 : 99);
    manifest_free(m);
}
END_TEST

START_TEST(every_template_that_is_built_in_opens_with_its_headers)
{
    templates *t = NULL;
    hone_error error = {0};

    ck_assert_msg(templates_open(&t, &error) == HONE_OK, "%s:%d: %s", error.source, error.line,
                  error.message);
    for (size_t i = 0; i < templates_len(t); i++) {
        const manifest *m = templates_at(t, i);
        template_source source;
        uint8_t digest[32], again[32];
        ck_assert_ptr_eq(templates_find(t, manifest_name(m)), m);
        ck_assert_int_eq(templates_source(t, m, &source, &error), HONE_OK);
        ck_assert_ptr_nonnull(strstr(source.source, "Config"));
        templates_digest(t, m, digest);
        templates_digest(t, m, again);
        ck_assert_mem_eq(digest, again, sizeof digest);
        for (size_t k = 0; i > 0 && k < 1; k++) {
            templates_digest(t, templates_at(t, i - 1), again);
            ck_assert_mem_ne(digest, again, sizeof digest);
        }
    }
    ck_assert_ptr_null(templates_find(t, "no/such"));
    templates_close(t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("manifest");

    tcase_add_loop_test(tests, a_hostile_manifest_is_refused_with_its_line, 0,
                        (int)ARRAY_LEN(hostile));
    tcase_add_loop_test(tests, sizes_are_bounded, 0, (int)ARRAY_LEN(sizes));
    tcase_add_test(tests, a_plan_holds_what_the_manifest_says);
    tcase_add_loop_test(tests, limits_of_the_device_decide_what_is_legal, 0,
                        (int)ARRAY_LEN(planned));
    tcase_add_test(tests, a_plan_holds_its_tensor_maps_and_what_its_groups_cover);
    tcase_add_test(tests, a_tensor_map_needs_sm_90);
    tcase_add_test(tests, when_says_which_rule_refuses_a_device);
    tcase_add_loop_test(tests, a_config_is_read_back_only_from_listed_values, 0,
                        (int)ARRAY_LEN(configs));
    tcase_add_test(tests, every_template_that_is_built_in_opens_with_its_headers);
    return suite_run("templates/manifest", tests);
}
