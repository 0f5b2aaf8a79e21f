/* test_probes.c - what the emulator answers to probes whose right answer can be told by hand: that
 * they ask what they say, before a GPU is asked. */
#include "tests/device/probe.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static golden asked;

static const uint32_t *ask(const char *name)
{
    const probe *p = probe_find(name);
    hone_error error = {0};
    device *d = NULL;

    ck_assert_ptr_nonnull(p);
    ck_assert_msg(device_open(p->arch == 120 ? "emu:rtx5090" : "emu:h200", &d, &error) == HONE_OK,
                  "%s", error.message);
    ck_assert_msg(probe_ask(p, d, &asked, &error) == HONE_OK, "%s: %s", name, error.message);
    device_close(d);
    return asked.out;
}

static void forget(void)
{
    golden_free(&asked);
}

/* The byte that the probe's tensor has there; 0 outside. */
static uint8_t byte_of_tensor(int32_t x, int32_t y, int32_t z, int32_t bytes)
{
    int32_t width = 256 / bytes, n = (z * 40 + y) * 256 + x * bytes;
    bool inside = x >= 0 && x < width && y >= 0 && y < 40 && z >= 0 && z < 3;

    return (uint8_t)(inside ? 1 + (n * 37 + n / 251) % 150 : 0);
}

/* Rows begin at multiples of the span, 16-byte chunks within are exchanged by the number of the
 * 128-byte line; what no row covers stays as it was. */
START_TEST(narrow_rows_lie_at_multiples_of_the_span)
{
    enum { RANK, SWIZZLE, BYTES, BOX_X, BOX_Y, BOX_Z, AT_X, AT_Y, AT_Z, NAN_FILL };
    const uint32_t *out = ask("narrow_boxes");

    for (uint32_t n = 0; n < asked.cases; n++) {
        uint8_t expected[8192];
        int32_t b[10];
        memcpy(b, asked.in + (size_t)n * asked.in_each, sizeof b);
        int32_t span = 16 << b[SWIZZLE], chunks = span / 16;
        ck_assert_int_lt(b[BOX_X] * b[BYTES], span);
        memset(expected, 0xa5, sizeof expected);
        for (int32_t row = 0; row < b[BOX_Y] * b[BOX_Z]; row++) {
            for (int32_t k = 0; k < b[BOX_X] * b[BYTES]; k++) {
                int32_t x = b[AT_X] + k / b[BYTES], y = b[AT_Y] + row % b[BOX_Y];
                int32_t z = b[AT_Z] + row / b[BOX_Y], place = row * span;
                uint8_t first = byte_of_tensor(x, y, z, b[BYTES]);
                place += ((k / 16) ^ (place / 128 % chunks)) * 16 + k % 16;
                int32_t at = ((z * 40 + y) * 256 + x * b[BYTES] + k % b[BYTES]);
                expected[place] = (uint8_t)(first == 0 ? 0 : 1 + (at * 37 + at / 251) % 150);
                if (first == 0 && b[NAN_FILL]) { /* 7ff7 over and over */
                    expected[place] = k % 2 == 0 ? 0xf7 : 0x7f;
                }
            }
        }
        for (uint32_t at = 0; at < sizeof expected; at++) {
            uint8_t got = ((const uint8_t *)(out + (size_t)n * asked.out_each))[at];
            ck_assert_msg(got == expected[at], "case %u byte %u: %02x, expected %02x", n, at, got,
                          expected[at]);
        }
    }
}
END_TEST

enum { RANK_ROW = 256, RANK_TILE = 2048, RANK_BOX = 4, RANK_STEP = 9, RANK_AT = 14 };
static const int32_t rank_dims[5] = {RANK_ROW, 8, 5, 4, 3};
static const int32_t rank_pitch[5] = {1, 256, 2048, 10240, 40960};

/* Where a byte of the tile lies under a swizzle: lines of 128 bytes, in which chunks are exchanged
 * by the line's number; the one of 6 flips the halves of 16 bytes in odd lines. */
static int32_t swizzled(int32_t at, int32_t swizzle)
{
    static const int32_t chunk[7] = {16, 16, 16, 16, 32, 32, 64}, of[7] = {1, 2, 4, 8, 4, 4, 2};
    int32_t line = at / 128, span = chunk[swizzle] * of[swizzle];
    int32_t within = at % span / chunk[swizzle] ^ line % of[swizzle];
    int32_t moved = at / span * span + within * chunk[swizzle] + at % chunk[swizzle];

    return swizzle == 5 && line % 2 != 0 ? moved ^ 8 : moved;
}

/* The tile as the toolkit's header and the PTX manual have it: each element stride's multiple of
 * the box, dimension 0 without a stride; outside of the tensor zeros, or 7ff7 over and over. */
static void expect_box(const int32_t *b, uint8_t *tile, int32_t *outside)
{
    int32_t index[5] = {0}, bytes = b[2], row = 0, pitch = b[RANK_BOX] * bytes, d = 0;

    memset(tile, 0xa5, RANK_TILE);
    *outside = 0;
    do {
        for (int32_t k = 0; k < pitch; k++) {
            int32_t x = b[RANK_AT] + k / bytes, from = x * bytes + k % bytes;
            bool inside = x >= 0 && x < rank_dims[0] / bytes;
            for (d = 1; d < b[0]; d++) {
                int32_t c = b[RANK_AT + d] + index[d] * b[RANK_STEP + d];
                inside = inside && c >= 0 && c < rank_dims[d];
                from += c * rank_pitch[d];
            }
            uint8_t fill = (uint8_t)(b[3] == 0 ? 0 : k % 2 == 0 ? 0xf7 : 0x7f);
            *outside += !inside;
            tile[swizzled(row * pitch + k, b[1])] =
                (uint8_t)(inside ? 1 + (from * 37 + from / 251) % 150 : fill);
        }
        row++;
        for (d = 1; d < b[0]; d++) {
            if (++index[d] * b[RANK_STEP + d] < b[RANK_BOX + d]) {
                break;
            }
            index[d] = 0;
        }
    } while (d < b[0]);
}

/* Of every rank, element stride and swizzle, with both fills of each swizzle. */
START_TEST(boxes_of_all_ranks_are_as_the_manual_says)
{
    const char *const names[] = {"ranked_boxes", "atom_boxes"};
    const uint32_t *out = ask(names[_i]);
    uint32_t ranks = 0, steps = 0, fills = 0, some_outside = 0, some_inside = 0;

    for (uint32_t n = 0; n < asked.cases; n++) {
        uint8_t expected[RANK_TILE];
        int32_t b[PROBE_RANKS_WORDS], outside = 0, all = 0;
        memcpy(b, asked.in + (size_t)n * asked.in_each, sizeof b);
        expect_box(b, expected, &outside);
        for (uint32_t at = 0; at < RANK_TILE; at++) {
            uint8_t got = ((const uint8_t *)(out + (size_t)n * asked.out_each))[at];
            all += expected[at] != 0xa5;
            ck_assert_msg(got == expected[at], "case %u byte %u: %02x, expected %02x", n, at, got,
                          expected[at]);
        }
        ranks |= 1u << b[0];
        steps |= b[0] > 1 ? 1u << b[RANK_STEP + 1] : 0;
        fills |= 1u << (2 * b[1] + b[3]);
        some_outside += outside > 0;
        some_inside += outside < all;
    }
    ck_assert_uint_eq(ranks, 0x3e);
    ck_assert_uint_eq(steps, 0xe);
    ck_assert_uint_eq(fills, _i == 0 ? 0xff : 0x3f00);
    ck_assert_uint_gt(some_outside, asked.cases / 2);
    ck_assert_uint_gt(some_inside, asked.cases / 4);
}
END_TEST

START_TEST(warps_that_left_are_not_waited_for)
{
    const uint32_t *out = ask("warps_leave");

    for (uint32_t n = 0; n < asked.cases; n++) {
        uint32_t leave = asked.in[n] % 15;
        for (uint32_t w = 0; w < 4; w++) {
            const uint32_t *of = out + 12 * n + 3 * w;
            bool left = (leave >> w & 1) != 0;
            ck_assert_uint_eq(of[0], (left ? 0xe0 : 0x100) + w);
            ck_assert_uint_eq(of[1], left ? 0 : 15 - leave);
            ck_assert_uint_eq(of[2], left ? 0 : 15 - leave);
        }
    }
}
END_TEST

START_TEST(registers_keep_their_content_when_others_are_added)
{
    const uint32_t *out = ask("registers");

    for (uint32_t n = 0; n < asked.cases * 384; n++) {
        uint32_t sum = 0, thread = n % 384;
        for (uint32_t k = 0; k < 16; k++) {
            sum = sum * 31 + asked.in[n / 384 * 16 + k] * (thread + k);
        }
        ck_assert_uint_eq(out[n], thread < 128 ? 24 : sum);
    }
}
END_TEST

START_TEST(a_store_that_nobody_waits_for_arrives)
{
    const uint32_t *out = ask("stores_left");
    ck_assert_mem_eq(out, asked.in, (size_t)asked.cases * 64 * 4);
}
END_TEST

START_TEST(lanes_with_one_set_of_operands_start_one_copy)
{
    const uint32_t *out = ask("lanes_copy");

    for (uint32_t n = 0; n < asked.cases; n++) {
        ck_assert_uint_eq(out[66 * n + 64], 1); /* the bytes of one copy complete the phase */
        ck_assert_uint_eq(out[66 * n + 65], 0); /* and none come after it */
        ck_assert_mem_eq(out + (size_t)66 * n, asked.in + (size_t)64 * n, 256);
    }
}
END_TEST

START_TEST(a_warp_waits_for_the_products_of_all_four)
{
    const uint32_t *out = ask("wait_alone");

    for (uint32_t n = 0; n < asked.cases; n++) {
        ck_assert_uint_eq(out[2 * n], 4);
        ck_assert_uint_eq(out[2 * n + 1], 0x42800000); /* 64: four sums of sixteen ones */
    }
}
END_TEST

START_TEST(a_try_wait_that_finds_nothing_says_so)
{
    const uint32_t *out = ask("try_wait");

    for (uint32_t n = 0; n < asked.cases; n++) {
        ck_assert_uint_eq(out[5 * n], 0);
        ck_assert_uint_eq(out[5 * n + 2], 0);
        ck_assert_uint_eq(out[5 * n + 4], 1);
    }
}
END_TEST

/* Of 4, of 8 and of 16 bytes a lane; patterns as in conflicts.cu. */
START_TEST(loads_of_shared_places_take_as_many_wavefronts_as_the_rule_says)
{
    static const uint32_t expected[] = {1, 2, 1, 1, 2, 2, 1, 4, 2, 4, 2, 2, 4, 4, 2, 8, 4};
    const uint32_t *out = ask("wavefronts");

    ck_assert_uint_eq(asked.cases, ARRAY_LEN(expected));
    for (uint32_t n = 0; n < asked.cases; n++) {
        ck_assert_msg(out[n] == expected[n], "%u bytes, pattern %u: %u, expected %u",
                      asked.in[2 * n], asked.in[2 * n + 1], out[n], expected[n]);
    }
}
END_TEST

/* A result is 32 times the scales of its row and its column: the manual's figures say which lane
 * and byte of the choice have them. */
START_TEST(scales_come_from_the_chosen_lanes_and_bytes)
{
    static const struct {
        uint32_t byte_a, pair, byte_b, one;
    } choices[8] = {{0, 0, 0, 0}, {1, 0, 0, 1}, {2, 1, 0, 2}, {3, 1, 0, 3},
                    {0, 1, 1, 0}, {1, 1, 2, 1}, {2, 0, 3, 2}, {3, 0, 1, 3}};
    const uint32_t *out = ask("scales");

    for (uint32_t n = 0; n < asked.cases; n++) {
        for (uint32_t k = 0; k < 128; k++) {
            uint32_t reg = k / 32, lane = k % 32, column = lane % 4 * 2 + reg % 2;
            uint32_t at = n < 8 ? lane / 4 * 4 + choices[n % 8].pair * 2 + reg / 2
                                : column * 4 + choices[n % 8].one;
            uint32_t byte = n < 8 ? choices[n % 8].byte_a : choices[n % 8].byte_b;
            uint32_t exponent = 60 + 4 * at + byte + 5; /* 32 of them: 2^5 */
            ck_assert_msg(out[128 * n + k] == exponent << 23, "case %u register %u lane %u: %08x",
                          n, reg, lane, out[128 * n + k]);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("probes");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, narrow_rows_lie_at_multiples_of_the_span);
    tcase_add_loop_test(tests, boxes_of_all_ranks_are_as_the_manual_says, 0, 2);
    tcase_add_test(tests, warps_that_left_are_not_waited_for);
    tcase_add_test(tests, registers_keep_their_content_when_others_are_added);
    tcase_add_test(tests, a_store_that_nobody_waits_for_arrives);
    tcase_add_test(tests, lanes_with_one_set_of_operands_start_one_copy);
    tcase_add_test(tests, a_warp_waits_for_the_products_of_all_four);
    tcase_add_test(tests, a_try_wait_that_finds_nothing_says_so);
    tcase_add_test(tests, loads_of_shared_places_take_as_many_wavefronts_as_the_rule_says);
    tcase_add_test(tests, scales_come_from_the_chosen_lanes_and_bytes);
    return suite_run("device/probes", tests);
}
