/* test_prepare.c - faults seeded into what makes an indexer's queries and keys ready, each of which
 * a whole launch must show. HONE_PREPARE_FAULTS asks for all of them. */
#include "tests/templates/faults.h"

#include <check.h>
#include <stdlib.h>

static kernels shared;
static device *ada;

#define PREPARE "index_prepare/rows"
#define ROWS_CU "index_prepare/rows.cu"
#define CODES_CUH "device/e2m1_codes.cuh"
#define ROWS    "rows_cta=16"
#define HEADS   "index_prepare:tokens=40,pages=3,page_size=32,heads=8,"
#define NEAR    HEADS "hadamard=1,record=index_132-split-pow2_amax"
#define HALVES  HEADS "rope=last,pairs=halves,record=index_132-split-raw_amax"
#define PLAIN   HEADS "rope=off,record=index_132-split-pow2_amax"
#define NIBBLES HEADS "rope=last,record=index_68-split-pow2_tiny"
static const mutant faults[] = {
    {"the first 64 turned for the last", PREPARE, ROWS_CU, "(C.rope == FIRST) == (lane < 8)",
     "lane < 8", HALVES, ROWS, "V4 turns the last 64 dims, V3.2 the first"},
    {"halves for neighbours", PREPARE, ROWS_CU, "other_lane(x[i], 4)", "other_lane(x[i], 1)",
     HALVES, ROWS, "NeoX's pairs are 32 dims apart"},
    {"turned backwards", PREPARE, ROWS_CU,
     "part < 4 ? __fsub_rn(own, other) : __fadd_rn(own, other)",
     "part < 4 ? __fadd_rn(own, other) : __fsub_rn(own, other)", HALVES, ROWS, "the angle's sign"},
    {"a sine for each dim", PREPARE, ROWS_CU, "part % 4 * kOwn + i", "(part * kOwn + i) / 2",
     HALVES, ROWS, "the angles of the other pairing"},
    {"not rounded between", PREPARE, ROWS_CU,
     "        rotate<C>(x, rotations + i64(token) * 2 * kAngles, lane);\n        round_to_bf16(x);",
     "        rotate<C>(x, rotations + i64(token) * 2 * kAngles, lane);", NEAR, ROWS,
     "what serving rounds to bf16 before it is transformed"},
    {"the last stage left out", PREPARE, ROWS_CU, "apart < kLanes; apart *= 2",
     "apart < kLanes / 2; apart *= 2", NEAR, ROWS, "two transforms of 64"},
    {"a transform that is not scaled", PREPARE, ROWS_CU, "__fmul_rn(x[i], 0.088388346f)", "x[i]",
     NEAR, ROWS, "scores that are 11 times too large"},
    {"a scale of half a row", PREPARE, ROWS_CU, "C.e2m1 ? 4 : kLanes", "C.e2m1 ? 4 : kLanes / 2",
     NEAR, ROWS, "two scales where the cache holds one"},
    {"infinity as the largest code", PREPARE, ROWS_CU, "(y, x, s, odd == 0)", "(y, x, s, true)",
     PLAIN, ROWS, "an infinite element passes for 448"},
    {"codes under a scale of NaN", PREPARE, ROWS_CU, "code[0] = none ? 0 : e2m1x8_of",
     "code[0] = e2m1x8_of", NIBBLES, ROWS, "e2m1 has no NaN"},
    {"a NaN of other lanes overlooked", PREPARE, ROWS_CU, "lanes_max<kSharers>(odd) > 0", "odd > 0",
     NIBBLES, ROWS, "a finite scale over a NaN"},
    {"ties away from zero", PREPARE, CODES_CUH, "e2m1_pair<BrainPairs>(x[i] & kMagnitudes,",
     "e2m1_pair<BrainPairs>((x[i] & kMagnitudes) + 0x00010001u,", NIBBLES, ROWS, "0.25 is 0"},
    {"a rounded-down exponent", PREPARE, CODES_CUH, "+ 0x003f003fu) & 0xff80ff80u",
     ") & 0xff80ff80u", NIBBLES, ROWS, "the largest elements saturate"},
    {"weights without the scale", PREPARE, ROWS_CU,
     "C.e2m1 ? weight : __fmul_rn(weight, __uint_as_float(made.scale))", "weight", NEAR, ROWS,
     "q of e4m3 has no scale of its own"},
    {"another head's factor", PREPARE, ROWS_CU, "Heads == 8    ? 0.03125f", "Heads == 8 ? 0.0625f",
     NEAR, ROWS, "the softmax scale"},
    {"keys' scales behind data of another page", PREPARE, ROWS_CU, "(kRowBytes << page_shift)",
     "(kRowBytes * 64)", NEAR, ROWS, "a page of 32 tokens"},
    {"every key has a slot", PREPARE, ROWS_CU, "live = place.live;", "", NEAR, ROWS,
     "what is past the cache is written, or counted"},
    {"a tail without its rows", PREPARE, ROWS_CU, "row >= rows", "row >= rows - 1", NEAR, ROWS,
     "the last key is lost"},
    {"keys of the token before", PREPARE, ROWS_CU, "k + i64(token) * kDims",
     "k + i64(max(token - 1, 0)) * kDims", NEAR, ROWS, "a key in its neighbour's slot"},
};
enum { FAULTS = sizeof faults / sizeof faults[0], FAULTS_STEP = 9 };

START_TEST(a_fault_is_refused_and_its_original_is_not)
{
    static const inputs_kind kinds[] = {INPUTS_NORMAL, INPUTS_SPECIALS};
    const bool all = getenv("HONE_PREPARE_FAULTS") != NULL;

    fault_hold(&shared, ada, &faults[_i], kinds, ARRAY_LEN(kinds), all || _i % FAULTS_STEP == 4);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
    if (shared.compiler != NULL) {
        hone_error error = {0};
        ck_assert_msg(device_open("emu:rtx4090", &ada, &error) == HONE_OK, "%s", error.message);
    }
}

static void teardown(void)
{
    device_close(ada);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("prepare");

    tcase_add_loop_test(tests, a_fault_is_refused_and_its_original_is_not, 0, FAULTS);
    return kernels_run("templates/prepare", tests, setup, teardown);
}
