/* test_convert_memory.c - how much memory `hone convert` takes: for files that are larger than the
 * bar, and for as many tensors as it reads. */
#include "tests/cli/holes.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static place here;

static const char *path_of(const char *name)
{
    return holes_path(&here, name);
}

enum { HUGE_ROWS = 65536 + 128, HUGE_COLS = 65536 };

/* One e4m3 weight of 4.01 GiB, zeros but for a NaN at its very end, and scales of 1. */
static void make_huge(const char *name)
{
    enum { SCALES = HUGE_ROWS / 128 * (HUGE_COLS / 128) };
    static float scales[SCALES];
    const uint64_t codes = (uint64_t)HUGE_ROWS * HUGE_COLS, all = sizeof scales + codes;
    char header[512];

    for (int i = 0; i < SCALES; i++) {
        scales[i] = 1;
    }
    snprintf(header, sizeof header,
             "{\"a.scale\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
             "\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d],\"data_offsets\":[%zu,"
             "%llu]}}",
             HUGE_ROWS / 128, HUGE_COLS / 128, sizeof scales, HUGE_ROWS, HUGE_COLS, sizeof scales,
             (unsigned long long)all);
    int fd = holes_make(&here, name, header, all);
    const off_t data = 8 + (off_t)strlen(header);
    ck_assert_int_eq(pwrite(fd, scales, sizeof scales, data), (int)sizeof scales);
    ck_assert_int_eq(pwrite(fd, "\x7f", 1, data + (off_t)all - 1), 1);
    close(fd);
}

/* The most that a child took so far. */
static long most_kib(const char *what)
{
    struct rusage used;

    getrusage(RUSAGE_CHILDREN, &used);
    printf("%s: %ld KiB at most\n", what, used.ru_maxrss);
    return used.ru_maxrss;
}

/* 768 MiB in, 1.5 GiB out. */
START_TEST(memory_stays_small_whatever_is_converted)
{
    holes_mxfp4(&here, "big.safetensors", 196608);
    program_run r = program_call(&here, "hone convert big.safetensors out.safetensors");
    ck_assert_msg(r.exit_status == 0, "%s", r.err);
    program_free(&r);
    ck_assert_int_lt(most_kib("converting 768 MiB"), 512 << 10);
}
END_TEST

/* Every byte of more than 4 GiB is looked at: the last one is what is wrong. */
START_TEST(memory_stays_small_whatever_is_checked)
{
    char words[160];

    make_huge("huge.safetensors");
    program_run r = program_call(&here, "hone convert --check huge.safetensors");
    ck_assert_msg(r.exit_status == 1, "%s", r.err);
    snprintf(words, sizeof words, "e4m3 codes that are NaN: 1 of %llu, the first at [%d, %d]",
             (unsigned long long)HUGE_ROWS * HUGE_COLS, HUGE_ROWS - 1, HUGE_COLS - 1);
    ck_assert_msg(program_says(&r, words), "%s", r.out);
    program_free(&r);
    ck_assert_int_lt(most_kib("checking 4 GiB"), 64 << 10);
}
END_TEST

enum { SHARDS = 2, SHARD_PAIRS = 65536, NAME_BYTES = 96 };

static void print_name(FILE *to, int shard, int pair, const char *end)
{
    fprintf(to, "\"%0*d.%s\"", NAME_BYTES, shard * SHARD_PAIRS + pair, end);
}

/* A shard of as many tensors as a checkpoint may have halved, each of a long name: MXFP4 weights of
 * one group, zeros. */
static void make_many(int shard)
{
    char name[64], *header = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&header, &len);

    for (int i = 0; i < SHARD_PAIRS; i++) {
        fputc(i == 0 ? '{' : ',', to);
        print_name(to, shard, i, "weight");
        fprintf(to, ":{\"dtype\":\"I8\",\"shape\":[1,16],\"data_offsets\":[%d,%d]},", 17 * i,
                17 * i + 16);
        print_name(to, shard, i, "scale");
        fprintf(to, ":{\"dtype\":\"F8_E8M0\",\"shape\":[1,1],\"data_offsets\":[%d,%d]}",
                17 * i + 16, 17 * i + 17);
    }
    fputc('}', to);
    ck_assert_int_eq(fclose(to), 0);
    snprintf(name, sizeof name, "many/%d.safetensors", shard);
    close(holes_make(&here, name, header, 17 * SHARD_PAIRS));
    free(header);
}

/* As many tensors as are read, and the index that names them all. */
START_TEST(memory_stays_small_however_many_tensors)
{
    ck_assert_int_eq(mkdir(path_of("many"), 0700), 0);
    FILE *index = fopen(path_of("many/model.safetensors.index.json"), "w");
    fprintf(index, "{\"weight_map\":");
    for (int i = 0; i < SHARDS * SHARD_PAIRS * 2; i++) {
        fputc(i == 0 ? '{' : ',', index);
        print_name(index, 0, i / 2, i % 2 == 0 ? "weight" : "scale");
        fprintf(index, ":\"%d.safetensors\"", i / 2 / SHARD_PAIRS);
    }
    fprintf(index, "}}");
    ck_assert_int_eq(fclose(index), 0);
    for (int shard = 0; shard < SHARDS; shard++) {
        make_many(shard);
    }
    program_run r = program_call(&here, "hone convert --json many out >report");
    ck_assert_msg(r.exit_status == 0, "%s", r.err);
    program_free(&r);
    ck_assert_int_lt(most_kib("converting 262,144 tensors"), 512 << 10);
}
END_TEST

static void setup(void)
{
    here = place_make();
}

static void teardown(void)
{
    place_remove(&here);
}

int main(void)
{
    TCase *tests = tcase_create("convert_memory");

    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, memory_stays_small_whatever_is_converted);
    tcase_add_test(tests, memory_stays_small_whatever_is_checked);
    tcase_add_test(tests, memory_stays_small_however_many_tensors);
    return suite_run("cli/convert_memory", tests);
}
