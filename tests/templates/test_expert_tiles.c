/* test_expert_tiles.c - the table that CTAs of a grouped product make of experts' rows
 * (templates/device/expert_tiles.cuh), on the emulator, against a plain walk over the rows. */
#include "core/random.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"
#include "tests/templates/device_header.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 1, COUNTS, ENDS, MOST_BLOCKS = 4096, MOST_EXPERTS = 512, MOST_ROWS = 4096 };

typedef struct block {
    int32_t expert, matrix, row, end;
} block;

typedef struct groups {
    int32_t layout, m, experts, row_align;
    int32_t values[MOST_ROWS];
} groups;

static const int32_t block_rows[] = {8, 48, 64, 128};
enum { SIZES = 4, LAYOUTS = 3, CASES = 60 };

static char *source(void)
{
    char *types = device_header("types.cuh"), *tiles = device_header("expert_tiles.cuh"),
         *text = NULL;
    ck_assert_int_gt(
        asprintf(&text,
                 "%s%s\n"
                 "template <int Layout, int Rows> __device__ void dump(const ExpertGroups &of, "
                 "ExpertBlock *out, i32 *count) {\n"
                 "    extern __shared__ u32 table[];\n"
                 "    using Tiles = ExpertTiles<Layout, Rows>;\n"
                 "    if (threadIdx.x < 32) { Tiles::make(table, of); }\n"
                 "    __syncthreads();\n"
                 "    const Tiles tiles = {table, of};\n"
                 "    if (threadIdx.x == 0) { *count = tiles.blocks(); }\n"
                 "    for (i32 i = threadIdx.x; i < tiles.blocks(); i += blockDim.x) {\n"
                 "        out[i] = tiles.at(i);\n"
                 "    }\n"
                 "}\n"
                 "#define K(L, R) extern \"C\" __global__ void dump_##L##_##R(const i32 *g, i32 m, "
                 "i32 experts, i32 align, ExpertBlock *out, i32 *count) "
                 "{ dump<L, R>({g, m, experts, align}, out, count); }\n"
                 "#define KS(R) K(1, R) K(2, R) K(3, R)\n"
                 "KS(8) KS(48) KS(64) KS(128)\n",
                 types, tiles),
        0);
    free(types);
    free(tiles);
    return text;
}

/* Experts' rows as a host lays them out, some of them empty. */
static void lay_out(groups *g, uint64_t *seed)
{
    int64_t at = 0;
    for (int32_t e = 0; e < g->experts; e++) {
        int64_t rows = random_below(seed, 3) == 0
                           ? 0
                           : (int64_t)random_below(seed, (uint64_t)(2 * g->m / g->experts + 2));
        int64_t left = g->layout == COUNTS ? g->m : g->m - at;
        rows = rows < left ? rows : left;
        if (g->layout == COUNTS) {
            g->values[e] = (int32_t)rows;
            continue;
        }
        for (int64_t r = 0; g->layout == LABELS && r < rows; r++) {
            g->values[at + r] = e;
        }
        if (g->layout == ENDS) {
            g->values[e] = (int32_t)(at + rows);
        }
        at = (at + rows + g->row_align - 1) / g->row_align * g->row_align;
        at = at < g->m ? at : g->m;
    }
}

static void draw(groups *g, int32_t layout, int32_t i)
{
    static const int32_t experts[] = {1, 2, 7, 32, 33, 64, 257, 512};
    static const int32_t aligns[] = {1, 8, 32, 100, 128};
    uint64_t seed = 99 + (uint64_t)i * 7 + (uint64_t)layout;
    *g = (groups){.layout = layout};
    g->experts = experts[random_below(&seed, 8)];
    g->m = 1 + (int32_t)random_below(&seed, layout == COUNTS ? 300 : MOST_ROWS);
    g->row_align = layout == LABELS ? 384 : aligns[random_below(&seed, 5)];
    memset(g->values, 0xff, sizeof g->values);
    int32_t len = layout == LABELS ? g->m : g->experts;
    if (i % 4 == 3) { /* nonsense: nothing may lie outside of the matrix or of the experts */
        for (int32_t v = 0; v < len; v++) {
            g->values[v] = (int32_t)random_next(&seed) >> random_below(&seed, 31);
        }
        return;
    }
    lay_out(g, &seed);
}

static int32_t clamp(int64_t x, int64_t low, int64_t high)
{
    return (int32_t)(x < low ? low : x > high ? high : x);
}

static size_t expect(const groups *g, int32_t rows, block *out)
{
    size_t len = 0;
    if (g->layout == LABELS) {
        for (int32_t row = 0; row < g->m; row += rows) {
            int32_t e = g->values[row];
            if (e >= 0 && e < g->experts) {
                out[len++] = (block){e, 0, row, clamp((int64_t)row + rows, 0, g->m)};
            }
        }
        return len;
    }
    int64_t furthest = 0; /* of the ends before */
    for (int32_t e = 0; e < g->experts; e++) {
        int64_t first = 0;
        if (g->layout == ENDS && e > 0) {
            furthest = g->values[e - 1] > furthest ? g->values[e - 1] : furthest;
            first = clamp((furthest + g->row_align - 1) / g->row_align * g->row_align, 0, g->m);
        }
        int32_t end = clamp(g->values[e], first, g->m);
        for (int64_t row = first; row < end && len < MOST_BLOCKS; row += rows) {
            out[len++] = (block){e, g->layout == COUNTS ? e : 0, (int32_t)row, end};
        }
    }
    return len;
}

static void check_case(ptx_bench *b, const groups *g, int32_t rows)
{
    static block expected[MOST_BLOCKS], found[MOST_BLOCKS];
    char kernel[32];
    int32_t values = g->layout == LABELS ? g->m : g->experts, count = -1;
    size_t len = expect(g, rows, expected);
    ck_assert_uint_lt(len, MOST_BLOCKS);
    uint64_t at = ptx_bench_buffer(b, g->values, (uint64_t)values * 4),
             out = ptx_bench_buffer(b, NULL, sizeof found), counted = ptx_bench_buffer(b, NULL, 4);
    void *arguments[] = {&at,  (void *)&g->m, (void *)&g->experts, (void *)&g->row_align,
                         &out, &counted};
    snprintf(kernel, sizeof kernel, "dump_%d_%d", g->layout, rows);
    int32_t words = g->layout == LABELS ? (g->m + rows - 1) / rows + 1 : 3 * g->experts + 1;
    b->launch.dynamic_shared_bytes = (uint32_t)words * 4;
    hone_status status = ptx_bench_run(b, kernel, (const uint32_t[]){1, 1, 1},
                                       (const uint32_t[]){96, 1, 1}, arguments);
    ck_assert_msg(status == HONE_OK, "%s, m %d, experts %d: %s", kernel, g->m, g->experts,
                  b->fault.message);
    ptx_bench_read(b, counted, &count, 4);
    ck_assert_msg(count == (int32_t)len, "%s, m %d, experts %d, align %d: %d blocks, not %zu",
                  kernel, g->m, g->experts, g->row_align, count, len);
    if (len > 0) {
        ptx_bench_read(b, out, found, len * sizeof(block));
    }
    for (size_t i = 0; i < len; i++) {
        ck_assert_msg(memcmp(&found[i], &expected[i], sizeof(block)) == 0,
                      "%s, m %d, experts %d: block %zu is %d %d %d %d, not %d %d %d %d", kernel,
                      g->m, g->experts, i, found[i].expert, found[i].matrix, found[i].row,
                      found[i].end, expected[i].expert, expected[i].matrix, expected[i].row,
                      expected[i].end);
    }
    memory_free(b->memory, at, &b->error);
    memory_free(b->memory, out, &b->error);
    memory_free(b->memory, counted, &b->error);
}

START_TEST(a_table_is_what_a_walk_over_the_rows_finds)
{
    static groups g;
    ptx_bench b;
    char *text = source();
    char *ptx = ptx_bench_compile(text, (const char *const[]){"-arch=sm_90a", "-std=c++20", NULL});
    free(text);
    if (ptx == NULL) {
        return;
    }
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, ptx) == HONE_OK, "%s", b.error.message);
    free(ptx);
    for (int32_t i = 0; i < CASES; i++) {
        draw(&g, 1 + _i, i);
        check_case(&b, &g, block_rows[i % SIZES]);
    }
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("expert_tiles");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_table_is_what_a_walk_over_the_rows_finds, 0, LAYOUTS);
    return suite_run("templates/expert_tiles", tests);
}
