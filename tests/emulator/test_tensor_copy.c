/* test_tensor_copy.c - boxes of tensors to and from shared memory: at random over types, ranks,
 * patterns, element strides and positions, against a copy that goes element by element. */
#include "tests/emulator/tensor_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 400, CASES_MAX = 1000000 };

/* How many random cases: HONE_TENSOR_CASES, for a longer run. */
static uint64_t cases_len(void)
{
    const char *text = getenv("HONE_TENSOR_CASES");
    uint64_t len = text != NULL ? strtoull(text, NULL, 10) : CASES;
    return len < CASES_MAX ? len : CASES_MAX;
}

static uint8_t *random_bytes(uint64_t bytes, uint64_t seed)
{
    uint8_t *data = malloc(bytes + 8);

    ck_assert_ptr_nonnull(data);
    for (uint64_t n = 0; n < bytes; n++) {
        data[n] = (uint8_t)(tensor_bench_random(&seed, 255) + 1);
    }
    return data;
}

static void open(ptx_bench *b, const char *kind, hone_emu_timing timing)
{
    char *text = tensor_bench_text(kind);

    ptx_bench_open(b);
    b->launch.timing = timing;
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s", b->error.message);
    free(text);
}

/* Check notes each assertion in a file: only what differs becomes one. */
static void expect(const uint8_t *got, const uint8_t *want, uint64_t from, uint64_t to,
                   uint64_t seed)
{
    tensor_case c = tensor_bench_draw(seed);

    for (uint64_t n = from; n < to; n++) {
        if (got[n] != want[n]) {
            ck_abort_msg("seed %llu, %s: byte %llu is %02x, not %02x", (unsigned long long)seed,
                         tensor_bench_describe(&c), (unsigned long long)n, got[n], want[n]);
        }
    }
}

/* Wavefronts of a box: of each 128 bytes, in the box's order, the most chunks of 16 that meet in
 * the same four banks. */
typedef struct banks {
    uint32_t met[8], bytes, wavefronts;
} banks;

static void end_line(banks *b)
{
    uint32_t worst = 0;

    for (int n = 0; n < 8; n++) {
        worst = b->met[n] > worst ? b->met[n] : worst;
        b->met[n] = 0;
    }
    b->wavefronts += worst;
}

/* The next element lies at `place`. */
static void add_element(banks *b, uint32_t place, uint32_t size)
{
    b->met[place / 16 % 8] += b->bytes % 16 == 0;
    b->bytes += size;
    if (b->bytes % 128 == 0) {
        end_line(b);
    }
}

static void check_load(ptx_bench *b, uint64_t seed, uint64_t out)
{
    static uint8_t got[TENSOR_BENCH_SHARED], want[TENSOR_BENCH_SHARED];
    tensor_case c = tensor_bench_draw(seed);
    uint8_t *data = random_bytes(c.global_bytes, seed + 7);
    uint32_t places[8], size = tensor_map_types[c.map.type].global_bytes / 16u;
    static const uint8_t nan[8] = {0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f}, zero[8];
    int64_t source = 0;
    tensor_walk walk = {0};
    banks lines = {.bytes = 0};
    hone_error error;

    c.map.address = ptx_bench_buffer(b, data, c.global_bytes);
    ck_assert_msg(tensor_map_check(&c.map, &error) == HONE_OK, "%s", error.message);
    memset(want, TENSOR_BENCH_UNTOUCHED, sizeof want);
    while (tensor_bench_next(&c, &walk, places, &source)) {
        add_element(&lines, places[0], size);
        for (uint32_t n = 0; n < size; n++) {
            want[places[n]] = source >= 0 ? data[source + n] : c.map.fill ? nan[n] : zero[n];
        }
    }
    hone_status status = tensor_bench_run(b, "load", &c, out);
    ck_assert_msg(status == HONE_OK, "seed %llu, %s: %s", (unsigned long long)seed,
                  tensor_bench_describe(&c), b->error.message);
    ptx_bench_read(b, out, got, sizeof got);
    expect(got, want, TENSOR_BENCH_BOX, sizeof got, seed);
    ck_assert_uint_eq(b->counters.tma_load_bytes, c.bytes);
    end_line(&lines);
    ck_assert_msg(b->counters.tma_wavefronts == lines.wavefronts &&
                      b->counters.tma_conflicts == lines.wavefronts - (c.bytes + 127) / 128,
                  "seed %llu, %s: %d wavefronts, not %u", (unsigned long long)seed,
                  tensor_bench_describe(&c), (int)b->counters.tma_wavefronts, lines.wavefronts);
    ck_assert_int_eq(memory_free(b->memory, c.map.address, &error), HONE_OK);
    free(data);
}

START_TEST(loads_put_each_element_where_it_belongs)
{
    ptx_bench b;

    open(&b, "load", (hone_emu_timing)_i);
    uint64_t out = ptx_bench_buffer(&b, NULL, TENSOR_BENCH_SHARED);
    for (uint64_t seed = 0; seed < cases_len(); seed++) {
        check_load(&b, seed, out);
    }
    ptx_bench_close(&b);
}
END_TEST

static void check_store(ptx_bench *b, uint64_t seed, uint64_t in)
{
    tensor_case c = tensor_bench_draw(seed);
    uint8_t *want = random_bytes(c.global_bytes, seed + 7), *got = malloc(c.global_bytes);
    uint8_t *shared = random_bytes(TENSOR_BENCH_SHARED, seed + 9);
    uint32_t places[8], size = tensor_map_types[c.map.type].global_bytes / 16u;
    int64_t source = 0;
    tensor_walk walk = {0};
    hone_error error;

    c.map.address = ptx_bench_buffer(b, want, c.global_bytes);
    ck_assert_int_eq(memory_write(b->memory, in, shared, TENSOR_BENCH_SHARED, &error), HONE_OK);
    while (tensor_bench_next(&c, &walk, places, &source)) {
        for (uint32_t n = 0; n < size && source >= 0; n++) {
            want[source + n] = shared[places[n]];
        }
    }
    hone_status status = tensor_bench_run(b, "store", &c, in);
    ck_assert_msg(status == HONE_OK, "seed %llu, %s: %s", (unsigned long long)seed,
                  tensor_bench_describe(&c), b->error.message);
    ptx_bench_read(b, c.map.address, got, c.global_bytes);
    expect(got, want, 0, c.global_bytes, seed);
    ck_assert_uint_eq(b->counters.tma_store_bytes, c.bytes);
    ck_assert_int_eq(memory_free(b->memory, c.map.address, &error), HONE_OK);
    free(want);
    free(got);
    free(shared);
}

START_TEST(stores_take_each_element_from_where_it_lies_and_leave_the_rest_alone)
{
    ptx_bench b;

    open(&b, "store", (hone_emu_timing)_i);
    uint64_t in = ptx_bench_buffer(&b, NULL, TENSOR_BENCH_SHARED);
    for (uint64_t seed = 0; seed < cases_len(); seed++) {
        check_store(&b, seed, in);
    }
    ptx_bench_close(&b);
}
END_TEST

/* Eight rows of so many bytes. With the pattern of 128 bytes a narrower row begins each line of
 * 128: rows r of one chunk go to chunk r, all apart; of two, rows 0 to 3 to {0, 1}, {1, 0}, {2, 3},
 * {3, 2}, so that pairs meet; of four, rows 0 and 1 both to the first half. Dense rows never meet.
 */
static const struct {
    tensor_map_swizzle swizzle;
    uint16_t words;
    uint32_t wavefronts, conflicts;
} narrow[] = {
    {TENSOR_MAP_SWIZZLE_128B, 4, 1, 0},  {TENSOR_MAP_SWIZZLE_128B, 8, 4, 2},
    {TENSOR_MAP_SWIZZLE_128B, 16, 8, 4}, {TENSOR_MAP_SWIZZLE_128B, 32, 8, 0},
    {TENSOR_MAP_PLAIN, 4, 1, 0},         {TENSOR_MAP_PLAIN, 8, 2, 0},
    {TENSOR_MAP_SWIZZLE_32B, 8, 2, 0},
};

START_TEST(narrow_rows_under_a_wide_swizzle_meet_in_banks)
{
    const tensor_case c = {.map = {.magic = TENSOR_MAP_MAGIC,
                                   .type = TENSOR_MAP_U32,
                                   .rank = 2,
                                   .dims = {32, 8},
                                   .strides = {128},
                                   .box = {narrow[_i].words, 8},
                                   .element_strides = {1, 1},
                                   .swizzle = (uint8_t)narrow[_i].swizzle},
                           .shared = TENSOR_BENCH_BOX,
                           .bytes = narrow[_i].words * 32u};
    const char *const kinds[] = {"load", "store"};
    static uint8_t data[TENSOR_BENCH_SHARED];

    for (size_t n = 0; n < ARRAY_LEN(kinds); n++) {
        tensor_case k = c;
        ptx_bench b;
        open(&b, kinds[n], HONE_EMU_AT_ISSUE);
        uint64_t other = ptx_bench_buffer(&b, data, sizeof data);
        k.map.address = ptx_bench_buffer(&b, data, 1024);
        ck_assert_int_eq(tensor_bench_run(&b, kinds[n], &k, other), HONE_OK);
        ck_assert_uint_eq(b.counters.tma_wavefronts, narrow[_i].wavefronts);
        ck_assert_uint_eq(b.counters.tma_conflicts, narrow[_i].conflicts);
        ptx_bench_close(&b);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tensor copies");

    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, loads_put_each_element_where_it_belongs, HONE_EMU_AT_ISSUE,
                        HONE_EMU_LATEST + 1);
    tcase_add_loop_test(tests, stores_take_each_element_from_where_it_lies_and_leave_the_rest_alone,
                        HONE_EMU_AT_ISSUE, HONE_EMU_LATEST + 1);
    tcase_add_loop_test(tests, narrow_rows_under_a_wide_swizzle_meet_in_banks, 0,
                        (int)ARRAY_LEN(narrow));
    return suite_run("emulator/tensor_copy", tests);
}
