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

static void check_load(ptx_bench *b, uint64_t seed, uint64_t out)
{
    static uint8_t got[TENSOR_BENCH_SHARED], want[TENSOR_BENCH_SHARED];
    tensor_case c = tensor_bench_draw(seed);
    uint8_t *data = random_bytes(c.global_bytes, seed + 7);
    uint32_t places[8], size = tensor_map_types[c.map.type].global_bytes / 16u;
    static const uint8_t nan[8] = {0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f}, zero[8];
    int64_t source = 0;
    tensor_walk walk = {0};
    hone_error error;

    c.map.address = ptx_bench_buffer(b, data, c.global_bytes);
    ck_assert_msg(tensor_map_check(&c.map, &error) == HONE_OK, "%s", error.message);
    memset(want, TENSOR_BENCH_UNTOUCHED, sizeof want);
    while (tensor_bench_next(&c, &walk, places, &source)) {
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

int main(void)
{
    TCase *tests = tcase_create("tensor copies");

    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, loads_put_each_element_where_it_belongs, HONE_EMU_AT_ISSUE,
                        HONE_EMU_LATEST + 1);
    tcase_add_loop_test(tests, stores_take_each_element_from_where_it_lies_and_leave_the_rest_alone,
                        HONE_EMU_AT_ISSUE, HONE_EMU_LATEST + 1);
    return suite_run("emulator/tensor_copy", tests);
}
