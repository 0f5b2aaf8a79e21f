/* test_manifest_plan.c - the plans that come out of manifests, and which configs are legal. */
#include "tests/templates/fixture.h"
#include "tests/templates/manifest_base.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(a_plan_holds_what_the_manifest_says)
{
    manifest *m = NULL;
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    hone_problem problem = fixture_problem("fp8_gemm:m=100,n=300,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {0};
    char text[256];

    ck_assert_msg(manifest_base_parse(0, "", &m, &error) == HONE_OK, "%d: %s", error.line,
                  error.message);
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

/* NULL stands where the problem has no such operand. */
START_TEST(an_operand_may_be_left_out)
{
    static const char *const forms[] = {"    arguments: [{operand: a, when: m < 0}]",
                                        "    arguments: [{operand: a, when: m > 0}]"};
    manifest *m = NULL;
    hone_error error = {0};
    plan *p = calloc(1, sizeof *p);
    hone_problem problem = fixture_problem("fp8_gemm:m=256,n=256,k=256,recipe=f32-1x128-128x128");
    device_facts device = fixture_device();
    config c = {0};

    ck_assert_int_eq(manifest_base_parse(22, forms[_i], &m, &error), HONE_OK);
    ck_assert_int_eq(
        manifest_config_parse(m, "block_m=64 block_n=64 stages=2 swizzle=0", &c, &error), HONE_OK);
    ck_assert_int_eq(manifest_plan(m, &problem, &device, &c, p, &error), HONE_OK);
    const plan_argument *made = &p->launches[0].arguments[0];
    ck_assert_int_eq(made->kind, _i == 0 ? PLAN_SCALAR : PLAN_OPERAND);
    ck_assert_uint_eq(_i == 0 ? made->bytes : 8, 8);
    ck_assert_int_eq(_i == 0 ? made->value : 0, 0);
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
    {"an operand that is not there when it is not wanted", 22,
     "    arguments: [{operand: nothing, when: m < 0}]", true, HONE_OK, HONE_OK},
    {"an operand that is not there when it is wanted", 22,
     "    arguments: [{operand: nothing, when: m > 0}]", true, HONE_OK, HONE_BAD_MANIFEST},
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

    ck_assert_msg(manifest_base_parse(planned[_i].line, planned[_i].instead, &m, &error) == HONE_OK,
                  "%s: %s", planned[_i].name, error.message);
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

    ck_assert_msg(manifest_base_parse(
                      22,
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

    ck_assert_int_eq(manifest_base_parse(22, MAP("a", GOOD_MAP), &m, &error), HONE_OK);
    device.arch = 89;
    ck_assert_int_eq(manifest_legal(m, &problem, &device, &c, &legal, why, &error), HONE_OK);
    ck_assert(!legal && strstr(why, "sm_90") != NULL);
    manifest_free(m);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("manifest_plan");

    tcase_add_loop_test(tests, an_operand_may_be_left_out, 0, 2);
    tcase_add_test(tests, a_plan_holds_what_the_manifest_says);
    tcase_add_loop_test(tests, limits_of_the_device_decide_what_is_legal, 0,
                        (int)ARRAY_LEN(planned));
    tcase_add_test(tests, a_plan_holds_its_tensor_maps_and_what_its_groups_cover);
    tcase_add_test(tests, a_tensor_map_needs_sm_90);
    return suite_run("templates/manifest_plan", tests);
}
