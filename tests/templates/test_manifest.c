/* test_manifest.c - manifests: what is refused and where, which devices they serve, and the texts
 * of configs. */
#include "tests/templates/fixture.h"
#include "tests/templates/manifest_base.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

    ck_assert_msg(manifest_base_parse(hostile[_i].line, hostile[_i].instead, &m, &error) ==
                      hostile[_i].status,
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
    hone_status status = manifest_base_parse(sizes[_i].line, text, &m, &error);
    clock_gettime(CLOCK_MONOTONIC, &to);
    ck_assert_msg(status == sizes[_i].status, "%s: %s: %s", sizes[_i].name,
                  hone_status_name(status), error.message);
    /* The promise is 50 ms; ten times as long is a hang. */
    ck_assert_int_le((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000, 500);
    manifest_free(m);
    free(text);
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

    ck_assert_int_eq(manifest_base_parse(0, "", &m, &error), HONE_OK);
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

    ck_assert_int_eq(manifest_base_parse(0, "", &m, &error), HONE_OK);
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

START_TEST(each_template_says_which_rule_refuses)
{
    hone_error error = {0};
    templates *t = NULL;
    hone_problem problem =
        fixture_problem("fp8_gemm:m=8,n=64,k=64,recipe=f32-1x128-e2m1/ue8m0/1x32");
    device_facts device = fixture_device();
    char why[400], cut[16];

    ck_assert_msg(templates_open(&t, &error) == HONE_OK, "%s", error.message);
    templates_refusals(t, &problem, &device, why, sizeof why);
    ck_assert_ptr_nonnull(strstr(why, "fp8_gemm/mma_sync: both operands are e4m3"));
    ck_assert_ptr_nonnull(strstr(why, "; fp8_gemm/sm90_wgmma: both operands are e4m3"));
    templates_refusals(t, &problem, &device, cut, sizeof cut);
    ck_assert_str_eq(cut, "fp8_gemm/mma_sy");
    templates_close(t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("manifest");

    tcase_add_loop_test(tests, a_hostile_manifest_is_refused_with_its_line, 0,
                        (int)ARRAY_LEN(hostile));
    tcase_add_loop_test(tests, sizes_are_bounded, 0, (int)ARRAY_LEN(sizes));
    tcase_add_test(tests, when_says_which_rule_refuses_a_device);
    tcase_add_loop_test(tests, a_config_is_read_back_only_from_listed_values, 0,
                        (int)ARRAY_LEN(configs));
    tcase_add_test(tests, every_template_that_is_built_in_opens_with_its_headers);
    tcase_add_test(tests, each_template_says_which_rule_refuses);
    return suite_run("templates/manifest", tests);
}
