/* test_emu.c - `hone emu` from the outside: kernels that are right, and wrong in one way each, from
 * CUDA and from PTX. */
#include "tests/cli/program.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static place here;

/* Line 5 loads, line 6 stores. */
static const char saxpy[] =
    "#include \"scale.cuh\"\n"
    "extern \"C\" __global__ void saxpy(float *y, const float *x, float a, int n)\n"
    "{\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    float v = x[i];\n"
    "    if (i < n) y[i] = scale(a, v) + y[i];\n"
    "}\n";
static const char scale[] = "__device__ inline float scale(float a, float x) { return a * x; }\n";

/* Two kernels of which one is a template; the stride makes the conflicts. */
static const char strided[] =
    "template <int STRIDE>\n"
    "__global__ void strided(unsigned *out)\n"
    "{\n"
    "    extern __shared__ unsigned s[];\n"
    "    s[threadIdx.x * STRIDE] = threadIdx.x;\n"
    "    __syncthreads();\n"
    "    out[blockIdx.x * 32 + threadIdx.x] = s[(31 - threadIdx.x) * STRIDE];\n"
    "}\n"
    "__global__ void nothing() {}\n";

/* Warp 0 reads what warp 1 writes with no barrier between. */
static const char racy[] = "extern \"C\" __global__ void racy(int *out)\n"
                           "{\n"
                           "    __shared__ int s[64];\n"
                           "    s[threadIdx.x] = 0;\n"
                           "    __syncthreads();\n"
                           "    s[threadIdx.x] = threadIdx.x;\n"
                           "    out[threadIdx.x] = s[63 - threadIdx.x];\n"
                           "}\n";

/* 16 warps wait at one barrier for twice as many threads, the others at others. */
static const char stuck[] =
    "extern \"C\" __global__ void stuck(int *out)\n"
    "{\n"
    "    int id = threadIdx.x < 512 ? 1 : 1 + (threadIdx.x - 480) / 64;\n"
    "    asm volatile(\"barrier.sync %0, 1024;\" :: \"r\"(id) : \"memory\");\n"
    "    out[threadIdx.x] = 1;\n"
    "}\n";

/* CTA n stores n times. */
static const char uneven[] = "extern \"C\" __global__ void uneven(volatile int *out)\n"
                             "{\n"
                             "    for (unsigned n = 0; n < blockIdx.x; n++) out[blockIdx.x] = n;\n"
                             "}\n";

/* Loads a box of 8 x 8 words by each of two tensor maps. */
static const char box[] =
    "struct alignas(64) Map { char bytes[128]; };\n"
    "__device__ unsigned at(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }\n"
    "__device__ void load(float *to, const Map *map, unsigned bar) {\n"
    "    asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global.tile\"\n"
    "                 \".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\"\n"
    "                 :: \"r\"(at(to)), \"l\"(map), \"r\"(0), \"r\"(0), \"r\"(bar) : \"memory\");\n"
    "}\n"
    "extern \"C\" __global__ void box(float *y, const __grid_constant__ Map one,\n"
    "                               const __grid_constant__ Map two)\n"
    "{\n"
    "    __shared__ alignas(128) float tile[128];\n"
    "    __shared__ alignas(8) unsigned long long bar;\n"
    "    if (threadIdx.x == 0) {\n"
    "        asm volatile(\"mbarrier.init.shared.b64 [%0], 1;\" :: \"r\"(at(&bar)) : \"memory\");\n"
    "        asm volatile(\"fence.proxy.async;\" ::: \"memory\");\n"
    "        asm volatile(\"mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;\"\n"
    "                     :: \"r\"(at(&bar)) : \"memory\");\n"
    "        load(tile, &one, at(&bar));\n"
    "        load(tile + 64, &two, at(&bar));\n"
    "    }\n"
    "    __syncthreads();\n"
    "    asm volatile(\"{ .reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra "
    "W; }\"\n"
    "                 :: \"r\"(at(&bar)) : \"memory\");\n"
    "    y[threadIdx.x] = tile[threadIdx.x];\n"
    "}\n";

static const char ranks[] = "extern \"C\" __global__ void ranks(unsigned *y)\n"
                            "{\n"
                            "    unsigned rank;\n"
                            "    asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(rank));\n"
                            "    y[blockIdx.x] = rank;\n"
                            "}\n";

static const char loads[] = ".version 8.8\n.target sm_90\n.address_size 64\n"
                            ".visible .entry loads(.param .u64 p, .param .u32 n)\n{\n"
                            ".reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                            "ld.param.u64 %rd0, [p];\n"
                            "mov.u32 %r0, %tid.x;\n"
                            "mul.wide.u32 %rd1, %r0, 128;\n"
                            "add.s64 %rd1, %rd0, %rd1;\n"
                            "ld.global.u32 %r1, [%rd1];\n" /* line 11 */
                            "st.global.u32 [%rd1+4], %r1;\n"
                            "ret;\n}\n";

static void put(const char *name, const char *text)
{
    char path[PROGRAM_PATH_BYTES], relative[64];

    snprintf(relative, sizeof relative, "run/%s", name);
    file_write(place_path(&here, relative, path), text, strlen(text));
}

static void setup(void)
{
    here = place_make();
    put("saxpy.cu", saxpy);
    put("scale.cuh", scale);
    put("strided.cu", strided);
    put("racy.cu", racy);
    put("uneven.cu", uneven);
    put("stuck.cu", stuck);
    put("loads.ptx", loads);
    put("box.cu", box);
    put("ranks.cu", ranks);
    put("broken.cu", "extern \"C\" __global__ void broken() { nonsense; }\n");
    put("broken.ptx",
        ".version 8.8\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nfrobnicate;\n}\n");
}

static void teardown(void)
{
    place_remove(&here);
}

#define SAXPY(grid, n)                                                                             \
    " saxpy.cu --grid " grid " --block 256 --arg buf:4K:zero:y --arg buf:4K:fill:1.5:x "           \
    "--arg f32:2 --arg i32:" n
#define LOADS(bytes) " loads.ptx --block 32 --arg buf:" bytes ":iota:p --arg u32:0"

/* What the kernel writes is allocated anew for each launch of a check. */
#define BOX(settings)                                                                              \
    " box.cu --block 128 --arg buf:512:unwritten:y --arg tmap:x:f32:dims=16x16:box=8x8" settings   \
    " --arg tmap:z:f32:dims=8x16:box=8x8 --buffer buf:1K:iota:x --buffer buf:512:fill:7:z"

/* What is asked, how it ends, and what it must say. */
static const struct {
    const char *line;
    int exit_status;
    const char *says[4];
} answers[] = {
    {"hone emu run" SAXPY("4", "1024") " --dump y:f32:3",
     0,
     {"y: 3 3 3\n", "registers", "modelled"}},
    {"hone emu run" SAXPY("4", "1024") " --out y=y.bin && od -A n -t f4 -N 8 y.bin", 0, {" 3 "}},
    {"hone emu check" SAXPY("4", "1024"), 0, {"nothing wrong: 16 runs of saxpy, 8 orders"}},
    {"hone emu check" SAXPY("4", "1024") " --schedules 2 --timing latest",
     0,
     {"nothing wrong: 2 runs"}},
    {"hone emu check" SAXPY("5", "1280"),
     1,
     {"out-of-bounds: 4 bytes at", "at saxpy.cu:5 (PTX line ", "CTA (4,0,0), warp 0, lane 0",
      ">     5 |     float v = x[i];"}},
    {"hone emu run" SAXPY("5", "1280"), 1, {"saxpy.cu:5"}},
    {"hone emu run" LOADS("4096") " --dump p:u32:4", 0, {"p: 0 0 2 3\n"}},
    {"hone emu run" LOADS("3968"),
     1,
     {"out-of-bounds: 4 bytes at ", "at PTX line 11, CTA",
      "the address is byte 3968 of buffer p, which has 3968\n",
      ">    11 | ld.global.u32 %r1, [%rd1];"}},
    {"hone emu run loads.ptx --block 32 --arg buf:4096:unwritten --arg u32:0",
     1,
     {"uninitialised", "PTX line 12"}},
    {"hone emu run strided.cu --kernel 'strided<1>' --shared 4K --block 32 --arg buf:4K:zero:o "
     "--dump o:i32:2",
     0,
     {"o: 31 30\n"}},
    {"hone emu profile strided.cu --kernel 'strided<32>' --shared 4K --block 32 --arg buf:4K",
     0,
     {"62  shared wavefronts beyond", "s[threadIdx.x * STRIDE] = threadIdx.x;",
      "128 bytes of distinct lines"}},
    {"hone emu run" BOX("") " --dump y:u32:66", 0, {"y:\n  0 1 2 3 4 5 6 7\n  16 17", "\n  7 7\n"}},
    {"hone emu check" BOX(""), 0, {"nothing wrong: 16 runs of box"}},
    {"hone emu profile" BOX(""), 0, {" 512  bytes of bulk and tensor copies to shared memory"}},
    {"hone emu run" BOX(":swizzle=32") " --dump y:u32:12 --json", 0, {"\"y\": [\n"}},
    {"hone emu run ranks.cu --grid 4 --cluster 2 --arg buf:16:unwritten:y --dump y:u32",
     0,
     {"y: 0 1 0 1\n"}},
    {"hone emu check racy.cu --block 64 --arg buf:256:zero:out", 1, {"race: ", "at racy.cu:"}},
    {"hone emu check stuck.cu --block 1024 --arg buf:4K",
     1,
     {"deadlock: no warp can go on: warp 0-16 line", " more warps\n",
      "  where each warp stands:\n    warp 0-16 line", "\n    warp 31 line "}},
    {"hone emu run racy.cu --block 64 --checks memory --arg buf:256:zero:out --dump out:i32:2",
     0,
     {"out: 63 62"}},
};

START_TEST(kernels_run_or_say_why_not)
{
    program_run r = program_call(&here, "%s", answers[_i].line);

    ck_assert_msg(r.exit_status == answers[_i].exit_status, "%s: exit %d: %s%s", answers[_i].line,
                  r.exit_status, r.out, r.err);
    for (size_t n = 0; n < 4 && answers[_i].says[n] != NULL; n++) {
        ck_assert_msg(program_says(&r, answers[_i].says[n]), "%s lacks '%s': %s%s",
                      answers[_i].line, answers[_i].says[n], r.out, r.err);
    }
    program_free(&r);
}
END_TEST

/* Wrong input, and what the error must name. */
static const struct {
    const char *line;
    int exit_status;
    const char *says;
} wrong[] = {
    {"hone emu", 2, "run, profile or check"},
    {"hone emu frob saxpy.cu", 2, "run, profile or check"},
    {"hone emu run saxpy.cu loads.ptx", 2, "one file is enough"},
    {"hone emu run missing.cu", 2, "missing.cu"},
    {"hone emu run scale.cuh", 2, ".cu or .ptx"},
    {"hone emu run broken.cu", 1, "nonsense"},
    {"hone emu run broken.ptx", 2, "frobnicate"},
    {"hone emu run saxpy.cu --device cuda:0", 2, "emu:h20"},
    {"hone emu run saxpy.cu --grid 0", 2, "'0' is no size"},
    {"hone emu run" LOADS("4096") " --shared 300K", 2,
     "--shared: 307200 bytes and the kernel's own are more than the 232448 that a CTA"},
    {"hone emu run saxpy.cu --grid 1,2,3,4", 2, "'1,2,3,4' is no size"},
    {"hone emu run saxpy.cu --grid 3 --cluster 2", 2, "no multiple"},
    {"hone emu run saxpy.cu --arg int:5", 2, "i32:5"},
    {"hone emu run saxpy.cu --arg i32:5000000000", 2, "no value of that type"},
    {"hone emu run saxpy.cu --arg u32:-1", 2, "no value of that type"},
    {"hone emu run saxpy.cu --arg hex:abc", 2, "pairs of hex digits"},
    {"hone emu run saxpy.cu --arg buf:0", 2, "1 byte or more"},
    {"hone emu run saxpy.cu --arg buf:4:random", 2, "take a seed"},
    {"hone emu run saxpy.cu --arg buf:4:zero:1y", 2, "no buffer's name"},
    {"hone emu run saxpy.cu --arg buf:4:y --arg buf:4:y", 2, "two buffers are named 'y'"},
    {"hone emu run saxpy.cu --arg tmap:y:f31:dims=4:box=4", 2, "the type is"},
    {"hone emu run saxpy.cu --arg tmap:y:f32:dims=4x4:box=4", 2, "one number a dimension"},
    {"hone emu run" BOX(":swizzle=32:strides=4"), 2, "refuses the map over x: "},
    {"hone emu run box.cu --arg null --arg tmap:z:f32:dims=4x4:box=4x4 --arg "
     "tmap:z:f32:dims=4x4:box=4x4",
     2, "no buffer has that name"},
    {"hone emu run saxpy.cu --buffer i32:5", 2, "no buf:"},
    {"hone emu run saxpy.cu --dump y:f31", 2, "NAME:TYPE"},
    {"hone emu run saxpy.cu --out y", 2, "NAME=PATH"},
    {"hone emu run saxpy.cu --arithmetic best", 2, "exact, fast, hw"},
    {"hone emu run saxpy.cu --checks races,frob", 2, "'frob' is none of"},
    {"hone emu run saxpy.cu --timing soon", 2, "issue, latest"},
    {"hone emu run saxpy.cu --schedules 0", 2, "from 1 to 64"},
    {"hone emu run saxpy.cu --block 32", 2, "0 arguments are given; the kernel takes 4"},
    {"hone emu run loads.ptx --arg null --arg u64:1", 2, "argument 1 has 8 bytes"},
    {"hone emu run loads.ptx --kernel stores", 2, "its kernels: loads"},
    {"hone emu run strided.cu", 2, "more than one kernel"},
    {"hone emu run" LOADS("4K") " --block 2048", 2, "refused"},
    {"hone emu run" LOADS("4K") " --dump q", 2, "no buffer has that name"},
    {"hone emu run loads.ptx --arg buf:4:file:missing.bin --arg u32:0", 2, "missing.bin"},
    {"hone emu run" LOADS("4K") " --out p=nowhere/p.bin", 3, "nowhere/p.bin"},
};

START_TEST(wrong_input_is_named)
{
    program_run r = program_call(&here, "%s", wrong[_i].line);

    ck_assert_msg(r.exit_status == wrong[_i].exit_status, "%s: exit %d: %s%s", wrong[_i].line,
                  r.exit_status, r.out, r.err);
    ck_assert_msg(strstr(r.err, wrong[_i].says) != NULL, "%s: '%s' lacks '%s'", wrong[_i].line,
                  r.err, wrong[_i].says);
    program_free(&r);
}
END_TEST

static json_int_t counter(const json_t *root, const char *name)
{
    return json_integer_value(json_object_get(json_object_get(root, "counters"), name));
}

/* 32 words each side by side: 1 warp, 4 sectors stored; a store and a load of 32 wavefronts. */
START_TEST(a_profile_as_json_has_the_known_counters)
{
    json_t *root =
        program_json(&here, "hone emu profile strided.cu --kernel 'strided<32>' --shared "
                            "4K --grid 2 --block 32 --arg buf:4K --json");

    ck_assert_int_eq(counter(root, "shared_requests"), 4);
    ck_assert_int_eq(counter(root, "shared_wavefronts"), 128);
    ck_assert_int_eq(counter(root, "shared_conflicts"), 124);
    ck_assert_int_eq(counter(root, "global_store_sectors"), 8);
    ck_assert_int_eq(counter(root, "barriers"), 2);
    const json_t *lines = json_object_get(root, "lines"), *line = NULL;
    json_int_t conflicts = 0, at_line_5 = 0, memory = 0, distinct = 0;
    size_t n = 0;
    json_array_foreach(lines, n, line)
    {
        json_int_t here_now = json_integer_value(json_object_get(line, "shared_conflicts"));
        conflicts += here_now;
        memory += json_integer_value(json_object_get(line, "memory"));
        ck_assert(json_is_integer(json_object_get(json_object_get(line, "tensor_macs"), "fp8")));
        if (json_integer_value(json_object_get(line, "source_line")) == 7) {
            distinct += json_integer_value(json_object_get(line, "unique_lines"));
        }
        if (json_integer_value(json_object_get(line, "source_line")) == 5) {
            at_line_5 += here_now;
        }
    }
    ck_assert_int_eq(conflicts, 124);
    ck_assert_int_eq(at_line_5, 62);
    ck_assert_int_eq(memory, counter(root, "memory"));
    ck_assert_int_eq(distinct, 2); /* a line of each CTA's words */
    json_decref(root);
}
END_TEST

/* CTA n of 100 stores n times: 4950 in all. The error must be stated, and hold: within four of it.
 */
START_TEST(a_sample_is_scaled_and_says_how_sure_it_is)
{
    json_t *root = program_json(&here, "hone emu profile uneven.cu --grid 100 --sample 20 --seed 7 "
                                       "--arg buf:4K --checks memory --json");
    double error = json_real_value(
        json_object_get(json_object_get(root, "standard_errors"), "global_store_requests"));

    ck_assert_int_eq(json_integer_value(json_object_get(root, "ctas_run")), 20);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "ctas_total")), 100);
    ck_assert_double_gt(error, 100);
    ck_assert_double_lt(error, 1000);
    ck_assert_double_le(fabs((double)counter(root, "global_store_requests") - 4950), 4 * error);
    json_decref(root);
}
END_TEST

START_TEST(a_fault_as_json_has_its_place)
{
    program_run r = program_call(&here, "hone emu check" SAXPY("5", "1280") " --json");
    json_t *root = json_loads(r.out, 0, NULL);
    const json_t *fault = json_object_get(root, "fault");

    ck_assert_int_eq(r.exit_status, 1);
    ck_assert_str_eq(json_string_value(json_object_get(fault, "kind")), "out-of-bounds");
    ck_assert_str_eq(json_string_value(json_object_get(fault, "source")), "saxpy.cu");
    ck_assert_int_eq(json_integer_value(json_object_get(fault, "source_line")), 5);
    ck_assert_int_eq(json_integer_value(json_object_get(fault, "cta")), 4);
    ck_assert(json_is_false(json_object_get(root, "good")));
    json_decref(root);
    program_free(&r);
}
END_TEST

START_TEST(a_deadlock_as_json_lists_its_places)
{
    json_t *root =
        program_json(&here, "hone emu check stuck.cu --block 1024 --arg buf:4K --json; true");
    const json_t *places = json_object_get(json_object_get(root, "fault"), "places");
    const char *last = json_string_value(json_array_get(places, 8));

    ck_assert_uint_eq(json_array_size(places), 9); /* 0-16, 17-18, ..., 29-30, 31 */
    ck_assert_msg(last != NULL && strncmp(last, "warp 31 line ", 13) == 0, "%s", last);
    json_decref(root);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("emu");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, kernels_run_or_say_why_not, 0,
                        (int)(sizeof answers / sizeof answers[0]));
    tcase_add_loop_test(tests, wrong_input_is_named, 0, (int)(sizeof wrong / sizeof wrong[0]));
    tcase_add_test(tests, a_profile_as_json_has_the_known_counters);
    tcase_add_test(tests, a_sample_is_scaled_and_says_how_sure_it_is);
    tcase_add_test(tests, a_fault_as_json_has_its_place);
    tcase_add_test(tests, a_deadlock_as_json_lists_its_places);
    return suite_run_here("cli/emu", tests);
}
