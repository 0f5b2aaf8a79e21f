/* convert.c - bench_convert: a conversion, from page cache to tmpfs, beside a copy of the same
 * output's bytes there in the same round.
 *
 * The copy is what `cp` does: read and write by 256 KiB, or copy_file_range, whichever is faster.
 * Medians of rounds that take turns; two threads convert, one copies. By processor time: what two
 * cores would give that are there for nobody else, the threads' time halved; for machines that do
 * other work meanwhile. Files lie in /dev/shm, else in $TMPDIR. */
#include "benchmarks/rows.h"
#include "convert/check.h"
#include "convert/convert.h"
#include "core/numfmt.h"
#include "core/random.h"
#include "tests/support/folder.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 9,
    TENSORS = 32,
    N = 2048,
    K = 7168, /* an expert of DeepSeek V3's: 32 of them are 470 MB of e4m3 */
    THREADS = 2,
    COPY_BYTES = 256 << 10,
};

static char folder[FOLDER_BYTES];

static void must(hone_status status, const hone_error *error)
{
    if (status != HONE_OK) {
        fprintf(stderr, "bench_convert: %s: %s\n", error->source, error->message);
        folder_remove(folder);
        exit(1);
    }
}

/* Of all threads. */
static double processor_s(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const char *path_of(const char *name)
{
    static char paths[4][FOLDER_BYTES + 64];
    static int at;

    at = (at + 1) % 4;
    snprintf(paths[at], sizeof paths[at], "%s/%s", folder, name);
    return paths[at];
}

/* ---- Inputs. ------------------------------------------------------------------------------- */

/* Normal weights in rows of different sizes, by the ceiling rule. */
static void make_rows(uint8_t *codes, uint8_t *scales, int rows, uint64_t *random)
{
    for (int group = 0; group < rows * (K / 32); group++) {
        float x[32], amax = 0;
        const double size = 0.02 * exp(0.5 * (random_unit(random) - 0.5) * 4);
        for (int i = 0; i < 32; i++) {
            x[i] = (float)(size * sqrt(-2 * log(random_unit(random))) *
                           cos(2 * acos(-1.0) * random_unit(random)));
            amax = fmaxf(amax, fabsf(x[i]));
        }
        scales[group] = numfmt_ue8m0_ceil(amax / 6);
        for (int i = 0; i < 32; i++) {
            numfmt_encode(HONE_DTYPE_E2M1, codes + 16 * group, (uint64_t)i,
                          ldexpf(x[i], 127 - scales[group]));
        }
    }
}

/* One tensor's worth of rows, written again for each tensor. */
static void make_input(const char *path)
{
    enum { ROWS = 64 };
    static char names[2 * TENSORS][32];
    safetensors_tensor tensors[2 * TENSORS];
    const safetensors_table table = {tensors, 2 * TENSORS, NULL, 0};
    safetensors_writer *w = NULL;
    hone_error error = {0};
    uint8_t *codes = malloc(ROWS * K / 2), *scales = malloc(ROWS * K / 32);
    uint64_t random = 1;

    make_rows(codes, scales, ROWS, &random);
    for (size_t i = 0; i < TENSORS; i++) {
        snprintf(names[2 * i], sizeof names[0], "experts.%zu.weight", i);
        snprintf(names[2 * i + 1], sizeof names[0], "experts.%zu.scale", i);
        tensors[2 * i] = (safetensors_tensor){
            .name = names[2 * i], .dtype = SAFETENSORS_I8, .rank = 2, .shape = {N, K / 2}};
        tensors[2 * i + 1] = (safetensors_tensor){.name = names[2 * i + 1],
                                                  .dtype = SAFETENSORS_F8_E8M0,
                                                  .rank = 2,
                                                  .shape = {N, K / 32}};
    }
    must(safetensors_create(path, &table, false, &w, &error), &error);
    for (size_t i = 0; i < TENSORS; i++) {
        for (uint64_t row = 0; row < N; row += ROWS) {
            must(safetensors_write(w, 2 * i, row * K / 2, codes, ROWS * K / 2, &error), &error);
            must(safetensors_write(w, 2 * i + 1, row * K / 32, scales, ROWS * K / 32, &error),
                 &error);
        }
    }
    must(safetensors_commit(w, &error), &error);
    free(codes);
    free(scales);
}

/* ---- What is timed. ------------------------------------------------------------------------ */

typedef struct taken {
    double wall, processor; /* seconds */
} taken;

static taken since(const taken *begin)
{
    return (taken){now_s() - begin->wall, processor_s() - begin->processor};
}

static taken convert(const char *in, const char *out, const plan_wishes *wishes)
{
    const convert_options options = {.threads = THREADS};
    checkpoint *from = NULL;
    plan p = {0};
    hone_error error = {0};

    unlink(out);
    const taken begin = {now_s(), processor_s()};
    must(checkpoint_open(in, &from, &error), &error);
    must(plan_make(from, wishes, &p, &error), &error);
    convert_row *rows = calloc(p.rows + 1, sizeof *rows);
    must(convert_run(&p, out, &options, rows, &error), &error);
    const taken all = since(&begin);
    free(rows);
    plan_free(&p);
    checkpoint_close(from);
    return all;
}

static double check(const char *in)
{
    const check_options options = {.threads = THREADS};
    checkpoint *from = NULL;
    check_report report = {0};
    hone_error error = {0};

    const double begin = now_s();
    must(checkpoint_open(in, &from, &error), &error);
    must(check_run(from, &options, &report, &error), &error);
    const double all = now_s() - begin;
    check_free(&report);
    checkpoint_close(from);
    return all;
}

static void copy_failed(void)
{
    perror("bench_convert: copy");
    folder_remove(folder);
    exit(1);
}

/* Copy by read and write, or in the kernel; also the bytes that were copied. */
static taken copy(const char *in, const char *out, bool in_kernel, uint64_t *bytes)
{
    static char buffer[COPY_BYTES];
    ssize_t got = 0;

    unlink(out);
    *bytes = 0;
    const taken begin = {now_s(), processor_s()};
    int from = open(in, O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (from < 0 || to < 0) {
        copy_failed();
    }
    do {
        got = in_kernel ? copy_file_range(from, NULL, to, NULL, 1 << 30, 0)
                        : read(from, buffer, sizeof buffer);
        if (got < 0 || (!in_kernel && write(to, buffer, (size_t)got) != got)) {
            copy_failed();
        }
        *bytes += (uint64_t)got;
    } while (got > 0);
    close(from);
    close(to);
    return since(&begin);
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

/* Rounds of one conversion and copies of what it made; adds the rows. */
static void measure(json_t *rows, const char *name, const char *in, const plan_wishes *wishes)
{
    double speeds[ROUNDS], ratios[ROUNDS], by_processor[ROUNDS];
    char text[96];

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bytes = 0;
        const taken all = convert(in, path_of("out"), wishes);
        const taken plain = copy(path_of("out"), path_of("copy"), false, &bytes);
        const taken kernel = copy(path_of("out"), path_of("copy"), true, &bytes);
        speeds[i] = (double)bytes / all.wall * 1e-9;
        ratios[i] = fmin(plain.wall, kernel.wall) / all.wall;
        by_processor[i] = fmin(plain.processor, kernel.processor) * THREADS / all.processor;
        unlink(path_of("copy"));
    }
    snprintf(text, sizeof text, "%s, output", name);
    rows_add(rows, text, median(speeds), "GB/s", ROWS_NO_BAR, 0);
    snprintf(text, sizeof text, "%s, of a copy's speed", name);
    rows_add(rows, text, median(ratios), "", ROWS_AT_LEAST, 0.7);
    snprintf(text, sizeof text, "%s, by processor time", name);
    rows_add(rows, text, median(by_processor), "", ROWS_NO_BAR, 0);
}

int main(int argc, char **argv)
{
    const bool as_json = rows_want_json(argc, argv);
    json_t *rows = json_array();
    plan_wishes wishes = {.block_rows = 128,
                          .block_cols = 128,
                          .scales = SAFETENSORS_F8_E8M0,
                          .rule = PLAN_CEIL,
                          .fold = true,
                          .requantise = true};
    struct rusage used;

    if (access("/dev/shm", W_OK) == 0) {
        setenv("TMPDIR", "/dev/shm", 1);
    }
    folder_make(folder);
    char *in = strdup(path_of("in"));
    make_input(in);
    measure(rows, "MXFP4 to e4m3, 128x128", in, &wishes);
    wishes.block_rows = 1;
    measure(rows, "MXFP4 to e4m3, 1x128", in, &wishes);
    wishes.block_rows = wishes.block_cols = 32;
    measure(rows, "MXFP4 to e4m3, 32x32", in, &wishes);
    rename(path_of("out"), in);
    wishes.block_rows = wishes.block_cols = 128;
    measure(rows, "e4m3 of 32x32 to 128x128", in, &wishes);
    rows_add(rows, "check of e4m3, input", (double)TENSORS * N * K / check(in) * 1e-9, "GB/s",
             ROWS_NO_BAR, 0);
    getrusage(RUSAGE_SELF, &used);
    rows_add(rows, "largest resident memory", (double)used.ru_maxrss / 1024, "MiB", ROWS_AT_MOST,
             512);
    free(in);
    folder_remove(folder);
    const bool good = rows_print(rows, as_json);
    json_decref(rows);
    return good ? 0 : 1;
}
