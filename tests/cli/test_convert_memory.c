/* test_convert_memory.c - how much memory `hone convert` takes, by the kernel's own count of each
 * child's peak: for files that are larger than the bar, and for many tensors.
 *
 * With HONE_WHOLE=1 files of gigabytes and as many tensors as are read; else a part of each, whose
 * bars are lower too: whoever held a fraction of the file would miss them. */
#include "tests/cli/holes.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static place here;

static bool is_whole(void)
{
    return getenv("HONE_WHOLE") != NULL;
}

static const char *path_of(const char *name)
{
    return holes_path(&here, name);
}

enum { HUGE_ROWS = 65536 + 128, PART_ROWS = 16384 + 128, HUGE_COLS = 65536 };

/* One e4m3 weight of rows of 64 KiB, zeros but for a NaN at its very end, and scales of 1. */
static void make_huge(const char *name, int rows)
{
    static float scales[HUGE_ROWS / 128 * (HUGE_COLS / 128)];
    const size_t scales_bytes = (size_t)rows / 128 * (HUGE_COLS / 128) * sizeof scales[0];
    const uint64_t codes = (uint64_t)rows * HUGE_COLS, all = scales_bytes + codes;
    char header[512];

    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        scales[i] = 1;
    }
    snprintf(header, sizeof header,
             "{\"a.scale\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
             "\"a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[%d,%d],\"data_offsets\":[%zu,"
             "%llu]}}",
             rows / 128, HUGE_COLS / 128, scales_bytes, rows, HUGE_COLS, scales_bytes,
             (unsigned long long)all);
    int fd = holes_make(&here, name, header, all);
    const off_t data = 8 + (off_t)strlen(header);
    ck_assert_int_eq(pwrite(fd, scales, scales_bytes, data), (int)scales_bytes);
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

/* 768 MiB in, 1.5 GiB out; or a third. */
START_TEST(memory_stays_small_whatever_is_converted)
{
    const uint64_t rows = is_whole() ? 196608 : 65536;

    holes_mxfp4(&here, "big.safetensors", rows);
    program_run r = program_call(&here, "hone convert big.safetensors out.safetensors");
    ck_assert_msg(r.exit_status == 0, "%s", r.err);
    program_free(&r);
    ck_assert_int_lt(most_kib("converting"), 64 << 10);
}
END_TEST

/* Every byte of more than 4 GiB, or of more than 1, is looked at: the last one is what is wrong. */
START_TEST(memory_stays_small_whatever_is_checked)
{
    const int rows = is_whole() ? HUGE_ROWS : PART_ROWS;
    char words[160];

    make_huge("huge.safetensors", rows);
    program_run r = program_call(&here, "hone convert --check huge.safetensors");
    ck_assert_msg(r.exit_status == 1, "%s", r.err);
    snprintf(words, sizeof words, "e4m3 codes that are NaN: 1 of %llu, the first at [%d, %d]",
             (unsigned long long)rows * HUGE_COLS, rows - 1, HUGE_COLS - 1);
    ck_assert_msg(program_says(&r, words), "%s", r.out);
    program_free(&r);
    ck_assert_int_lt(most_kib("checking"), 64 << 10);
}
END_TEST

enum { SHARDS = 2, WHOLE_PAIRS = 65536, NAME_BYTES = 96 };

/* Of a shard: its weights, each with scales. */
static int pairs(void)
{
    return is_whole() ? WHOLE_PAIRS : WHOLE_PAIRS / 4;
}

static void print_name(FILE *to, int shard, int pair, const char *end)
{
    fprintf(to, "\"%0*d.%s\"", NAME_BYTES, shard * pairs() + pair, end);
}

/* A shard of half the tensors that a checkpoint may have, or of an eighth, each of a long name:
 * MXFP4 weights of one group, zeros. */
static void make_many(int shard)
{
    char name[64], *header = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&header, &len);

    for (int i = 0; i < pairs(); i++) {
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
    close(holes_make(&here, name, header, (uint64_t)(17 * pairs())));
    free(header);
}

/* As many tensors as are read, or a quarter, and the index that names them all. */
START_TEST(memory_stays_small_however_many_tensors)
{
    ck_assert_int_eq(mkdir(path_of("many"), 0700), 0);
    FILE *index = fopen(path_of("many/model.safetensors.index.json"), "w");
    fprintf(index, "{\"weight_map\":");
    for (int i = 0; i < SHARDS * pairs() * 2; i++) {
        fputc(i == 0 ? '{' : ',', index);
        print_name(index, 0, i / 2, i % 2 == 0 ? "weight" : "scale");
        fprintf(index, ":\"%d.safetensors\"", i / 2 / pairs());
    }
    fprintf(index, "}}");
    ck_assert_int_eq(fclose(index), 0);
    for (int shard = 0; shard < SHARDS; shard++) {
        make_many(shard);
    }
    program_run r = program_call(&here, "hone convert --json many out >report");
    ck_assert_msg(r.exit_status == 0, "%s", r.err);
    program_free(&r);
    ck_assert_int_lt(most_kib("converting many tensors"), (is_whole() ? 512 : 128) << 10);
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
