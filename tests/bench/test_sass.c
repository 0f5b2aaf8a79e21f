/* test_sass.c - machine code read from cubins: single instructions as ptxas writes them, loops of
 * every shape, limits, and code fresh from NVRTC. */
#include "bench/sass.h"
#include "tests/bench/cubin.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static sass_function read_code(const cubin_word *code, size_t len, unsigned arch)
{
    sass_function f = {.loops = NULL};
    hone_error error = {.status = HONE_OK};
    size_t bytes_len = 0;
    uint8_t *bytes = cubin_make("kernel", code, len, arch, &bytes_len);
    hone_status status = sass_read(bytes, bytes_len, "kernel", &f, &error);

    ck_assert_msg(status == HONE_OK, "%s", error.message);
    free(bytes);
    return f;
}

/* ---- Instructions: words and texts from nvdisasm 13. ----------------------------------------- */

static const struct {
    const char *text;
    cubin_word word;
    sass_kind kind;  /* SASS_KINDS: not counted */
    int32_t highest; /* -1: none */
    uint32_t stall;
} words[] = {
    {"FFMA.RM R55, R9, R55, R60", {0x0000003709377223, 0x000fe2000000403c}, SASS_FFMA, 55, 1},
    {"FFMA R10, R39, -R10, 1", {0x3f800000270a7423, 0x000fe2000000080a}, SASS_FFMA, 10, 1},
    {"FMUL R53, R8, R27", {0x0000001b08357220, 0x080fe20000400000}, SASS_FMUL, 53, 1},
    {"FADD R7, R6, R6", {0x0000000606077221, 0x004fca0000000000}, SASS_FADD, 7, 5},
    {"LDS.128 R12, [UR16+0x33000]", {0x03300010ff0c7984, 0x000fe20008000c00}, SASS_LDS, 15, 1},
    {"LDS.64 R28, [R28+0xc000]", {0x00c000001c1c7984, 0x000e620000000a00}, SASS_LDS, 29, 1},
    {"@!PT LDS RZ, [RZ]", {0x00000000fffff984, 0x000fe20000000800}, SASS_LDS, -1, 1},
    {"LDSM.16.M88.2 R98, [R98]", {0x000000006262783b, 0x000fe80000000100}, SASS_LDSM, 99, 4},
    {"LDSM.16.M88.4 R72, [R20]", {0x000000001448783b, 0x002e620000000200}, SASS_LDSM, 75, 1},
    {"STS.128 [R5], R16", {0x0000001005007388, 0x0041e20000000c00}, SASS_STS, -1, 1},
    {"STS [R3+0x10000], R0", {0x0100000003007988, 0x0207e80000000800}, SASS_STS, -1, 4},
    {"SYNCS.PHASECHK.TRYWAIT", {0x03330000ff0075a7, 0x000e260008000147}, SASS_SYNCS, -1, 3},
    {"SYNCS.ARRIVE.TRANS64", {0x00000002ffff79a7, 0x0003e20008000011}, SASS_SYNCS, -1, 1},
    {"SYNCS.EXCH.64", {0x03330006053f75b2, 0x0010620008000100}, SASS_SYNCS, -1, 1},
    {"WARPGROUP.DEPBAR.LE", {0x00008000000079c5, 0x000fe40000010000}, SASS_WARPGROUP, -1, 2},
    {"LDL.64 R122, [R1]", {0x00000000017a7983, 0x000ee20000100a00}, SASS_LOCAL, 123, 1},
    {"STL.64 [R1], R24", {0x0000001801007387, 0x0001e80000100a00}, SASS_LOCAL, -1, 4},
    {"MOV R39, 0x3b124925", {0x3b12492500277802, 0x000fc40000000f00}, SASS_KINDS, 39, 2},
    {"LDG.E.128 R152", {0x0000000402987981, 0x000ea8000c1e1d00}, SASS_KINDS, 155, 4},
    {"NOP", {0x0000000000007918, 0x000fc00000000000}, SASS_KINDS, -1, 1},
};

/* Multiply-adds are those of one warp. */
static const struct {
    const char *text;
    cubin_word word;
    sass_kind kind;
    int32_t highest;
    uint32_t stall;
    gpu_mma unit;
    double gmma, mma;
} products[] = {
    {"QGMMA.64x8x32.F32.E4M3.E4M3 R24, R28, gdesc[UR4]",
     {0x000000041c187df3, 0x000fe60008000818},
     SASS_GMMA,
     27,
     3,
     GPU_MMA_FP8,
     64 * 8 * 32 / 4,
     0},
    {"QGMMA.64x128x32.F32.E4M3.E4M3 R24, gdesc[UR8], RZ",
     {0x01e00000081879f3, 0x000fe2000c0008ff},
     SASS_GMMA,
     87,
     1,
     GPU_MMA_FP8,
     64 * 128 * 32 / 4,
     0},
    {"QGMMA.64x256x32.F32.E5M2.E4M3 R24, R152",
     {0x03e0000498187df3, 0x000fe60008001818},
     SASS_GMMA,
     151,
     3,
     GPU_MMA_FP8,
     64 * 256 * 32 / 4,
     0},
    {"HGMMA.64x136x16.F32 R24, R92",
     {0x020000045c187df0, 0x000fe60008000818},
     SASS_GMMA,
     91,
     3,
     GPU_MMA_F16,
     64 * 136 * 16 / 4,
     0},
    {"HGMMA.64x136x8.F32.TF32 R24, R92",
     {0x060000045c187df0, 0x000fe60008002818},
     SASS_GMMA,
     91,
     3,
     GPU_MMA_TF32,
     64 * 136 * 8 / 4,
     0},
    {"IGMMA.64x8x32.S8.S8 R24, gdesc[UR4]",
     {0x00000000041879f1, 0x000fe2000c0410ff},
     SASS_GMMA,
     27,
     1,
     GPU_MMA_S8,
     64 * 8 * 32 / 4,
     0},
    {"HMMA.16816.F32 R76",
     {0x00000046244c723c, 0x000fe200000018ff},
     SASS_MMA,
     79,
     1,
     GPU_MMA_F16,
     0,
     16 * 8 * 16},
    {"HMMA.16816.F32.BF16 R12",
     {0x00000002040c723c, 0x000fde000004180c},
     SASS_MMA,
     15,
     15,
     GPU_MMA_F16,
     0,
     16 * 8 * 16},
    {"HMMA.1688.F32 R12",
     {0x00000002040c723c, 0x000fde000000100c},
     SASS_MMA,
     15,
     15,
     GPU_MMA_F16,
     0,
     16 * 8 * 8},
    {"HMMA.1688.F32.TF32 R12",
     {0x00000002040c723c, 0x000fde000008100c},
     SASS_MMA,
     15,
     15,
     GPU_MMA_TF32,
     0,
     16 * 8 * 8},
    {"HMMA.1684.F32.TF32 R12",
     {0x00000002040c723c, 0x000fde000008500c},
     SASS_MMA,
     15,
     15,
     GPU_MMA_TF32,
     0,
     16 * 8 * 4},
    {"IMMA.16816.S8.S8 R8",
     {0x0000000204087237, 0x000fde0000405410},
     SASS_MMA,
     11,
     15,
     GPU_MMA_S8,
     0,
     16 * 8 * 16},
    {"IMMA.16832.S8.S8 R16",
     {0x0000000204107237, 0x000fde0000405c10},
     SASS_MMA,
     19,
     15,
     GPU_MMA_S8,
     0,
     16 * 8 * 32},
    {"QMMA.16832.F32.E4M3.E4M3 R44",
     {0x00000078682c727a, 0x050ff60000002cff},
     SASS_MMA,
     47,
     11,
     GPU_MMA_FP8,
     0,
     16 * 8 * 32},
    {"QMMA.SF.16832.F32.E4M3.E4M3.E8 R16",
     {0x71f0141a1010747a, 0x010fc60000003e0c},
     SASS_MMA,
     19,
     3,
     GPU_MMA_MXFP8,
     0,
     16 * 8 * 32},
    {"QMMA.SF.16832.F32.E4M3.E4M3.E8 R20, selected by UR7",
     {0x707006242014747a, 0x004fde0000000014},
     SASS_MMA,
     23,
     15,
     GPU_MMA_MXFP8,
     0,
     16 * 8 * 32},
    {"OMMA.SF.16864.F32.E2M1.E2M1.E8 R8",
     {0x70f00e0c0808747f, 0x000fe20000083e10},
     SASS_MMA,
     11,
     1,
     GPU_MMA_FP4,
     0,
     16 * 8 * 64},
};

START_TEST(an_instruction_is_told_by_its_word)
{
    sass_function f = read_code(&words[_i].word, 1, 90);

    ck_assert_uint_eq(f.all.instructions, 1);
    for (int i = 0; i < SASS_KINDS; i++) {
        ck_assert_msg(f.all.kinds[i] == (i == (int)words[_i].kind), "%s counts as %s",
                      words[_i].text, sass_kind_name((sass_kind)i));
    }
    ck_assert_msg(f.all.highest_register == words[_i].highest, "%s: R%d", words[_i].text,
                  f.all.highest_register);
    ck_assert_msg(f.all.stall_clocks == words[_i].stall, "%s: %u", words[_i].text,
                  f.all.stall_clocks);
    ck_assert_double_eq(sass_macs(&f.all), 0);
    sass_function_free(&f);
}
END_TEST

START_TEST(a_product_is_told_by_its_word)
{
    sass_function f = read_code(&products[_i].word, 1, 90);

    ck_assert_uint_eq(f.all.kinds[products[_i].kind], 1);
    ck_assert_msg(f.all.highest_register == products[_i].highest, "%s: R%d", products[_i].text,
                  f.all.highest_register);
    ck_assert_uint_eq(f.all.stall_clocks, products[_i].stall);
    ck_assert_double_eq(f.all.gmma_macs[products[_i].unit], products[_i].gmma);
    ck_assert_double_eq(f.all.mma_macs[products[_i].unit], products[_i].mma);
    ck_assert_double_eq(sass_macs(&f.all), products[_i].gmma + products[_i].mma);
    sass_function_free(&f);
}
END_TEST

/* ---- Loops ----------------------------------------------------------------------------------- */

#define MOST_CODE  16
#define MOST_LOOPS 3

/* Letters: . nothing, f FFMA, q QGMMA, s SYNCS, x EXIT, y BSYNC B2; and branches to `to`: b always,
 * p under P0, u under UP1, c CALL.REL, m BSSY B2. */
typedef struct loop_case {
    const char *name, *code;
    unsigned arch;
    uint32_t to[4]; /* of the branches in order */
    size_t loops_len;
    struct {
        uint32_t first, last, instructions;
        bool inner;
    } loops[MOST_LOOPS];
    int main_loop; /* -1: none */
} loop_case;

static const loop_case loops[] = {
    {"straight code has none", ".fqx", 90, {0}, 0, {{0}}, -1},
    {"a branch back", "..qfpx", 90, {2}, 1, {{2, 4, 3, true}}, 0},
    {"the same before sm_90", "..qfpx", 89, {2}, 1, {{2, 4, 3, true}}, 0},
    {"what nothing leads to is no loop", "q.xb", 90, {3}, 0, {{0}}, -1},
    {"a uniform branch", "..qfux", 90, {2}, 1, {{2, 4, 3, true}}, 0},
    {"a loop without products is not the main one", ".fpx", 90, {1}, 1, {{1, 2, 2, true}}, -1},
    {"a loop in a loop", ".fqpfpx", 90, {2, 1}, 2, {{1, 5, 5, false}, {2, 3, 2, true}}, 1},
    {"a wait that shares the loop's target", ".spqfpx", 90, {1, 1}, 1, {{1, 5, 5, true}}, 0},
    {"a loop of waits in a loop of products",
     "..spqpx",
     90,
     {2, 1},
     2,
     {{1, 5, 5, true}, {2, 3, 2, true}},
     0},
    /* 3 waits in vain: it goes on waiting at 8, behind the end, and comes back to 4. */
    {"what is out of the way does not count",
     "..spqfpxspb",
     90,
     {8, 2, 8, 4},
     2,
     {{2, 6, 5, true}, {8, 9, 2, true}},
     0},
    {"nor when it comes back to the loop's target",
     "..qpfpx......sb",
     90,
     {13, 2, 2},
     1,
     {{2, 5, 4, true}},
     0},
    {"two branches to one target are one loop", "..qpfpx", 90, {2, 2}, 1, {{2, 5, 4, true}}, 0},
    {"a way into the middle makes no loop", "p.qfpx", 90, {3, 1}, 0, {{0}}, -1},
    /* 9 sends those that meet to 6. */
    {"products out of the way do count", "..mpf.pxqy", 90, {6, 8, 2}, 1, {{2, 9, 7, true}}, 0},
    {"a loop left by a call", "..qcbx", 90, {5, 2}, 1, {{2, 4, 3, true}}, 0},
    {"the loop with the most products is the main one",
     "qpqqfpx",
     90,
     {0, 2},
     2,
     {{0, 1, 2, true}, {2, 5, 4, true}},
     1},
};

static size_t assemble(const loop_case *c, cubin_word code[MOST_CODE])
{
    const size_t len = strlen(c->code);
    const uint32_t *to = c->to;

    for (uint32_t i = 0; i < len; i++) {
        switch (c->code[i]) {
        case 'f':
            code[i] = CUBIN_FFMA;
            break;
        case 'q':
            code[i] = CUBIN_QGMMA;
            break;
        case 's':
            code[i] = CUBIN_SYNCS;
            break;
        case 'x':
            code[i] = CUBIN_EXIT;
            break;
        case 'y':
            code[i] = CUBIN_BSYNC_B2;
            break;
        case 'b':
        case 'p':
            code[i] = cubin_branch(i, *to++, c->code[i] == 'b' ? 7 : 0, c->arch);
            break;
        case 'u':
            code[i] = cubin_branch_uniform(i, *to++);
            break;
        case 'c':
            code[i] = cubin_call(i, *to++);
            break;
        case 'm':
            code[i] = cubin_bssy(i, *to++);
            break;
        default:
            code[i] = CUBIN_NOP;
            break;
        }
    }
    return len;
}

START_TEST(loops_are_found_by_their_branches)
{
    const loop_case *c = &loops[_i];
    cubin_word code[MOST_CODE];
    sass_function f = read_code(code, assemble(c, code), c->arch);

    ck_assert_msg(f.loops_len == c->loops_len, "%s: %zu loops", c->name, f.loops_len);
    for (size_t i = 0; i < f.loops_len; i++) {
        const sass_loop *l = &f.loops[i];
        ck_assert_msg(l->first == c->loops[i].first && l->last == c->loops[i].last &&
                          l->count.instructions == c->loops[i].instructions &&
                          l->inner == c->loops[i].inner,
                      "%s: %u to %u, %u instructions%s", c->name, l->first, l->last,
                      l->count.instructions, l->inner ? ", inner" : "");
    }
    const sass_loop *best = sass_main_loop(&f);
    ck_assert_msg((best == NULL ? -1 : (int)(best - f.loops)) == c->main_loop, "%s", c->name);
    sass_function_free(&f);
}
END_TEST

/* ---- Limits ---------------------------------------------------------------------------------- */

/* The prototypes' loops of a 128x128 tile (per32.md 2 and 3): 2 warpgroups, each m64n128. */
static const struct {
    const char *gpu;
    uint32_t instructions, ffma, fmul;
    double tensor, fp32, issue, percent;
} limits[] = {{"h200", 346, 256, 0, 512, 512, 692, 74.0},
              {"h20", 346, 256, 0, 2188, 512, 692, 100},
              {"h200", 114, 64, 0, 512, 128, 228, 100},
              {"h20", 114, 64, 0, 2188, 128, 228, 100},
              {"h200", 346, 256, 32, 512, 576, 692, 74.0}};

START_TEST(limits_are_those_of_the_pipes)
{
    sass_count loop = {.instructions = limits[_i].instructions};
    gpu g;

    ck_assert_int_eq(gpu_find(limits[_i].gpu, &g, NULL), HONE_OK);
    loop.kinds[SASS_FFMA] = limits[_i].ffma;
    loop.kinds[SASS_FMUL] = limits[_i].fmul;
    loop.gmma_macs[GPU_MMA_FP8] = 4 * 64 * 128 * 32 / 4;
    const sass_limits l = sass_limits_of(&loop, &g, 128.0 * 128 * 128);
    ck_assert_double_eq_tol(l.tensor_clocks, limits[_i].tensor, 1);
    ck_assert_double_eq_tol(l.fp32_clocks, limits[_i].fp32, 1e-6);
    ck_assert_double_eq_tol(l.issue_clocks, limits[_i].issue, 1e-6);
    ck_assert_double_eq_tol(l.tensor_percent, limits[_i].percent, 0.05);
}
END_TEST

START_TEST(what_has_no_products_or_no_unit_has_no_limits)
{
    sass_count loop = {.instructions = 10};
    gpu g;

    ck_assert_int_eq(gpu_find("rtx4090", &g, NULL), HONE_OK);
    ck_assert_double_eq(sass_limits_of(&loop, &g, 1e6).tensor_percent, 0);
    loop.mma_macs[GPU_MMA_FP4] = 100; /* Ada has no such unit */
    ck_assert_double_eq(sass_limits_of(&loop, &g, 1e6).issue_clocks, 0);
}
END_TEST

/* ---- Code from NVRTC: what PTX says must stay comes out as often ----------------------------- */

static const char volatile_source[] =
    "template <int Products> __global__ void __launch_bounds__(128) k(float *o, int n, const "
    "unsigned *x) {\n"
    "  __shared__ float s[512];\n"
    "  float d[4] = {}, v = o[0], w = o[1], u = o[2];\n"
    "  unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x), r[6];\n"
    "  for (int i = 0; i < 6; i++) r[i] = x[i];\n"
    "  s[threadIdx.x] = v;\n"
    "#pragma unroll 1\n"
    "  for (int i = 0; i < n; i++) {\n"
    "    for (int j = 0; j < 5; j++) asm volatile(\"fma.rn.f32 %0, %0, %1, %0;\" : \"+f\"(v) : "
    "\"f\"(w));\n"
    "    for (int j = 0; j < 3; j++) asm volatile(\"mul.rn.f32 %0, %0, %1;\" : \"+f\"(u) : "
    "\"f\"(v));\n"
    "    for (int j = 0; j < 2; j++) asm volatile(\"ld.volatile.shared.f32 %0, [%1];\" : \"=f\"(w) "
    ": \"r\"(at));\n"
    "    for (int j = 0; j < Products; j++)\n"
    "      asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
    "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"
    "        : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n"
    "        : \"r\"(r[0]), \"r\"(r[1]), \"r\"(r[2]), \"r\"(r[3]), \"r\"(r[4]), \"r\"(r[5]));\n"
    "  }\n"
    "  o[threadIdx.x] = u + v + w + d[0] + d[1] + d[2] + d[3];\n"
    "}\n";

static const int32_t archs[] = {80, 89, 90, 100, 120};

START_TEST(volatile_ptx_comes_out_as_often)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit_request request = jit_fixture_request(volatile_source, "k<7>");
    hone_error error = {.status = HONE_OK};
    sass_function f;
    compiled *c = NULL;
    jit *j = NULL;

    request.arch = archs[_i];
    ck_assert_int_eq(jit_open(&options, &j, &error), HONE_OK);
    ck_assert_msg(jit_compile(j, &request, &c, &error) == HONE_OK, "%s", error.message);
    ck_assert_msg(sass_read(c->cubin, c->cubin_len, c->kernels[0].lowered, &f, &error) == HONE_OK,
                  "%s", error.message);
    const sass_loop *l = sass_main_loop(&f);
    ck_assert_ptr_nonnull(l);
    ck_assert_uint_eq(l->count.kinds[SASS_FFMA], 5);
    ck_assert_uint_eq(l->count.kinds[SASS_FMUL], 3);
    ck_assert_uint_eq(l->count.kinds[SASS_LDS], 2);
    ck_assert_uint_eq(l->count.kinds[SASS_MMA], 7);
    ck_assert_double_eq(l->count.mma_macs[GPU_MMA_F16], 7 * 16 * 8 * 16);
    ck_assert_uint_lt(l->count.instructions, 40);
    ck_assert_int_lt(l->count.highest_register, c->kernels[0].registers);
    ck_assert_uint_ge(f.all.instructions, l->count.instructions);
    sass_function_free(&f);
    compiled_free(c);
    jit_close(j);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sass");

    jit_fixture_need_nvrtc();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, an_instruction_is_told_by_its_word, 0, (int)ARRAY_LEN(words));
    tcase_add_loop_test(tests, a_product_is_told_by_its_word, 0, (int)ARRAY_LEN(products));
    tcase_add_loop_test(tests, loops_are_found_by_their_branches, 0, (int)ARRAY_LEN(loops));
    tcase_add_loop_test(tests, limits_are_those_of_the_pipes, 0, (int)ARRAY_LEN(limits));
    tcase_add_test(tests, what_has_no_products_or_no_unit_has_no_limits);
    tcase_add_loop_test(tests, volatile_ptx_comes_out_as_often, 0, (int)ARRAY_LEN(archs));
    return suite_run("bench/sass", tests);
}
