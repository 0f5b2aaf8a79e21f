/* test_gpu.c - GPU descriptions: all read, the figures that follow, and what is refused. */
#include "models/gpu.h"
#include "models/names.h"

#include "tests/models/claims.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(every_gpu_is_read)
{
    const char *const *slugs;
    size_t len = gpu_list(&slugs);

    ck_assert_uint_ge(len, 25);
    for (size_t i = 0; i < len; i++) {
        gpu g, by_name;
        hone_error error = {0};

        ck_assert_msg(gpu_find(slugs[i], &g, &error) == HONE_OK, "%s", error.message);
        ck_assert_str_eq(g.slug, slugs[i]);
        ck_assert(g.facts.emulated);
        ck_assert_int_eq(gpu_find_by_name(g.facts.name, &by_name, &error), HONE_OK);
        ck_assert_str_eq(by_name.slug, slugs[i]);
        ck_assert(i == 0 || strcmp(slugs[i - 1], slugs[i]) < 0);
        for (size_t kind = 0; kind < GPU_MMA_KINDS; kind++) {
            ck_assert_double_le(g.mma_sync_per_clk_sm[kind], g.flop_per_clk_sm[kind]);
        }
    }
}
END_TEST

/* FLOP per clock and SM as bench.md 5 lists them, by wgmma and by mma.sync; 0: not asked. */
static const struct {
    const char *slug;
    int32_t arch, sms;
    double bf16, fp8, fp8_sync, mem_tbs;
} figures[] = {
    {"h20", 90, 78, 958, 1917, 958, 4.0},
    {"h100", 90, 132, 4094, 8192, 2580, 3.35},
    {"h200", 90, 132, 4094, 8192, 2580, 4.8},
    {"a100", 80, 108, 2049, 0, 0, 2.039},
    {"l40s", 89, 142, 1012, 2048, 2048, 0.864},
    {"rtx4090", 89, 128, 512, 1024, 1024, 1.008},
    {"rtx5090", 120, 170, 512, 1024, 1024, 1.792},
    {"rtx-pro-6000", 120, 188, 1024, 2048, 2048, 1.792},
    {"b200", 100, 148, 7737, 15474, 3868, 8.0},
    {"gb10", 121, 48, 1025, 2050, 2050, 0.273},
};

START_TEST(rates_follow_from_the_data_sheet)
{
    gpu g;

    ck_assert_int_eq(gpu_find(figures[_i].slug, &g, NULL), HONE_OK);
    ck_assert_int_eq(g.facts.arch, figures[_i].arch);
    ck_assert_int_eq(g.facts.sm_count, figures[_i].sms);
    ck_assert_double_eq_tol(g.flop_per_clk_sm[GPU_MMA_BF16], figures[_i].bf16,
                            1e-9 + 0.01 * figures[_i].bf16);
    ck_assert_double_eq_tol(g.flop_per_clk_sm[GPU_MMA_FP8], figures[_i].fp8,
                            1e-9 + 0.01 * figures[_i].fp8);
    ck_assert_double_eq_tol(g.mma_sync_per_clk_sm[GPU_MMA_FP8], figures[_i].fp8_sync,
                            1e-9 + 0.01 * figures[_i].fp8_sync);
    ck_assert_double_eq_tol((double)g.facts.mem_bytes_per_s / 1e12, figures[_i].mem_tbs, 1e-9);
}
END_TEST

START_TEST(block_scaled_mma_escapes_the_desktop_halving)
{
    gpu g;

    ck_assert_int_eq(gpu_find("rtx5090", &g, NULL), HONE_OK);
    ck_assert_double_eq_tol(g.flop_per_clk_sm[GPU_MMA_MXFP8], 2048, 4);
    ck_assert_double_eq_tol(g.flop_per_clk_sm[GPU_MMA_FP4], 4096, 4);
}
END_TEST

START_TEST(a_name_is_matched_whole)
{
    gpu g;
    hone_error error = {0};

    ck_assert_int_eq(gpu_find_by_name("NVIDIA H20", &g, &error), HONE_OK);
    ck_assert_str_eq(g.slug, "h20");
    ck_assert_int_eq(gpu_find_by_name("NVIDIA H2", &g, &error), HONE_UNKNOWN);
    ck_assert_int_eq(gpu_find_by_name("H20", &g, &error), HONE_UNKNOWN);
    ck_assert_int_eq(gpu_find("h2", &g, &error), HONE_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "h20-3e"));
    ck_assert_int_eq(gpu_find("../gpu/h20", &g, &error), HONE_UNKNOWN);
}
END_TEST

/* The table that the descriptions were written from: SMs, memory bandwidth, L2, shared memory
 * agree. */
START_TEST(descriptions_agree_with_the_table)
{
    char path[512], *line;
    int rows = 0;

    if (!file_find_shared("data/gpus.csv", path, sizeof path)) {
        return;
    }
    char *text = file_read(path, NULL), *rest = text;
    strsep(&rest, "\n"); /* the heading */
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        char *cell[17] = {NULL};
        gpu g;

        for (size_t i = 0; i < 17; i++) {
            cell[i] = strsep(&line, ",");
        }
        ck_assert_msg(gpu_find_by_name(cell[0], &g, NULL) == HONE_OK, "%s", cell[0]);
        ck_assert_int_eq(g.facts.arch, atoi(cell[2]));
        ck_assert_int_eq(g.facts.sm_count, atoi(cell[4]));
        ck_assert(*cell[5] == '\0' || g.facts.clock_mhz == atoi(cell[5]));
        ck_assert_double_eq_tol((double)g.facts.mem_bytes_per_s, 1e12 * atof(cell[11]), 1);
        ck_assert_int_eq(g.facts.l2_bytes, (int64_t)atoi(cell[12]) << 20);
        ck_assert_int_eq(g.facts.smem_per_sm, atoi(cell[13]));
        ck_assert_int_eq(g.facts.smem_per_block, atoi(cell[14]));
        ck_assert_int_eq(g.facts.regs_per_sm, atoi(cell[15]));
        ck_assert_int_eq(g.facts.threads_per_sm, atoi(cell[16]));
        double chip = g.flop_per_clk_sm[GPU_MMA_BF16] * g.facts.sm_count * g.facts.clock_mhz / 1e6;
        ck_assert_double_eq_tol(chip, atof(cell[6]), 1e-6 * chip);
        rows++;
    }
    ck_assert_int_eq(rows, 25);
    free(text);
}
END_TEST

#define GOOD_TOP                                                                                   \
    "schema: 1\nname: NVIDIA X\narch: 90\nsm_count: 10\nclock_mhz: 1000\n"                         \
    "l2_mib: 1\nl2_bytes_per_clk: 64\nmem_mib: 1024\nmem_gbs: 100\n"                               \
    "dram_latency_ns: 500\nlaunch_ns: 2000\n"
#define GOOD_SM                                                                                    \
    "per_sm: {threads: 2048, blocks: 32, registers: 65536, shared_bytes: 2048, "                   \
    "shared_block_bytes: 2048, shared_reserved_bytes: 0, fp32_lanes: 128, sfu_lanes: 16, "         \
    "issue_slots: 4, shared_bytes_per_clk: 128}\n"
#define GOOD_END "tensor_tflops: {fp8: 10}\nunverified: [clock_mhz]\n"

static const claim texts[] = {
    {"a plain description is read", GOOD_TOP GOOD_SM GOOD_END, HONE_OK, 0, NULL},
    {"an empty file", "", HONE_BAD_TEXT, -1, NULL},
    {"a list", "- 1\n", HONE_BAD_MODEL, 1, NULL},
    {"no schema", "name: x\n", HONE_BAD_MODEL, 1, "schema"},
    {"a later schema", "schema: 2\n" GOOD_SM GOOD_END, HONE_BAD_MODEL, 1, "schema 2"},
    {"an unknown key", GOOD_TOP GOOD_SM GOOD_END "cores: 3\n", HONE_BAD_TEXT, 15, "cores"},
    {"an unknown key in a section", GOOD_TOP "per_sm:\n  threads: 2048\n  warps: 64\n" GOOD_END,
     HONE_BAD_TEXT, 14, "warps"},
    {"a duplicate key", GOOD_TOP "arch: 90\n" GOOD_SM GOOD_END, HONE_BAD_TEXT, 12, "arch"},
    {"a missing section", GOOD_TOP GOOD_END, HONE_BAD_MODEL, 1, "per_sm"},
    {"a section that is a number", GOOD_TOP "per_sm: 3\n" GOOD_END, HONE_BAD_MODEL, 12, "a map"},
    {"no rates", GOOD_TOP GOOD_SM "unverified: []\n", HONE_BAD_MODEL, 1, "tensor_tflops"},
    {"an unknown rate", GOOD_TOP GOOD_SM "tensor_tflops: {fp9: 1}\nunverified: []\n", HONE_BAD_TEXT,
     13, "fp9"},
    {"a negative rate", GOOD_TOP GOOD_SM "tensor_tflops: {fp8: -1}\nunverified: []\n",
     HONE_BAD_MODEL, 13, "fp8"},
    {"a mark on nothing", GOOD_TOP GOOD_SM "tensor_tflops: {fp8: 1}\nunverified: [colour]\n",
     HONE_BAD_MODEL, 14, "colour"},
    {"an alias", GOOD_TOP GOOD_SM "tensor_tflops: *a\nunverified: []\n", HONE_BAD_TEXT, 13, NULL},
};

START_TEST(a_text_is_read_or_refused_with_its_line)
{
    gpu g = {.slug = "untouched"};
    hone_error error = {0};
    hone_status status =
        gpu_parse("gpu/x.yaml", texts[_i].text, strlen(texts[_i].text), &g, &error);

    claim_check(&texts[_i], status, &error);
    ck_assert_str_eq(g.slug, status == HONE_OK ? "x" : "untouched");
}
END_TEST

/* Every number of a description, pushed out of its range, is refused by name. */
static const struct {
    const char *key, *from, *to;
} edits[] = {
    {"sm_count", "sm_count: 10", "sm_count: 0"},
    {"sm_count", "sm_count: 10", "sm_count: 99999999999999999999"},
    {"clock_mhz", "clock_mhz: 1000", "clock_mhz: fast"},
    {"threads", "threads: 2048", "threads: -1"},
    {"mem_mib", "mem_mib: 1024", "mem_mib: 9223372036854775807"},
    {"launch_ns", "launch_ns: 2000", "launch_ns: nan"},
    {"l2_mib", "l2_mib: 1\n", "l2_mib: 1.5\n"},
    {"shared_block_bytes", "shared_block_bytes: 2048", "shared_block_bytes: 4096"},
};

START_TEST(a_number_out_of_range_is_refused)
{
    static const char good[] = GOOD_TOP GOOD_SM GOOD_END;
    const char *at = strstr(good, edits[_i].from);
    char text[2048];
    gpu g;
    hone_error error = {0};

    ck_assert_ptr_nonnull(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, edits[_i].to,
             at + strlen(edits[_i].from));
    ck_assert_int_ne(gpu_parse("x", text, strlen(text), &g, &error), HONE_OK);
}
END_TEST

START_TEST(a_damaged_description_is_read_or_refused)
{
    const embedded_file *file = models_file("gpu", models_gpu_names[_i]);
    char text[4096];

    ck_assert_uint_lt(embedded_len(file), sizeof text);
    for (uint64_t seed = 0; seed < 200; seed++) {
        size_t len = claim_mutate(file->bytes, embedded_len(file), seed, text);
        gpu g = {.facts.sm_count = -1};
        hone_error error = {0};
        hone_status status = gpu_parse("x", text, len, &g, &error);

        ck_assert_int_ne(g.facts.sm_count, status == HONE_OK ? -1 : 0);
        ck_assert_msg((status == HONE_OK) == (error.message[0] == '\0'), "%s", error.message);
        ck_assert(status != HONE_OK || g.facts.sm_count >= 1);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("gpu");

    tcase_add_test(tests, every_gpu_is_read);
    tcase_add_loop_test(tests, rates_follow_from_the_data_sheet, 0,
                        sizeof figures / sizeof figures[0]);
    tcase_add_test(tests, block_scaled_mma_escapes_the_desktop_halving);
    tcase_add_test(tests, a_name_is_matched_whole);
    tcase_add_test(tests, descriptions_agree_with_the_table);
    tcase_add_loop_test(tests, a_text_is_read_or_refused_with_its_line, 0,
                        sizeof texts / sizeof texts[0]);
    tcase_add_loop_test(tests, a_number_out_of_range_is_refused, 0, sizeof edits / sizeof edits[0]);
    tcase_add_loop_test(tests, a_damaged_description_is_read_or_refused, 0,
                        (int)models_names_len(models_gpu_names));
    return suite_run("models/gpu", tests);
}
