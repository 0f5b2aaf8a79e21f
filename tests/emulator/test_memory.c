/* test_memory.c - claims about the emulated device's memory. */
#include "emulator/machine/memory.h"

#include "core/checked.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define GIB (UINT64_C(1) << 30)

static device_memory *memory;

static void open_memory(void)
{
    ck_assert_int_eq(memory_open(96 * GIB, &memory, NULL), HONE_OK);
}

static void close_memory(void)
{
    memory_close(memory);
    memory = NULL;
}

static uint64_t allocate(uint64_t bytes)
{
    uint64_t address = 0;
    hone_error error;
    ck_assert_msg(memory_allocate(memory, bytes, &address, &error) == HONE_OK, "%s", error.message);
    return address;
}

START_TEST(an_allocation_is_aligned_and_fenced_by_a_page_of_nothing)
{
    static const uint64_t sizes[] = {1, 255, 256, 257, 4095, 4096, 4097, 1 << 20};
    uint64_t bytes = sizes[_i], a = allocate(bytes), b = allocate(bytes);
    ck_assert_uint_eq(a % 256, 0);
    ck_assert_uint_ge(b, a + bytes + 4096);
    for (uint64_t k = 1; k <= 4096; k += 65) {
        ck_assert_ptr_null(memory_find(memory, a - k));
        ck_assert_ptr_null(memory_find(memory, a + bytes - 1 + k));
    }
    const memory_range *range = memory_find(memory, a + bytes - 1);
    ck_assert_ptr_nonnull(range);
    ck_assert_uint_eq(range->begin, a);
    ck_assert_uint_eq(range->end, a + bytes);
    ck_assert(!range->freed);
}
END_TEST

START_TEST(ninety_gib_cost_nothing_until_they_are_touched)
{
    uint64_t a = allocate(90 * GIB), far = a + 90 * GIB - 8, value = 0x0123456789abcdef, back = 0;
    ck_assert_int_eq(memory_write(memory, far, &value, 8, NULL), HONE_OK);
    ck_assert_int_eq(memory_read(memory, far, &back, 8, NULL), HONE_OK);
    ck_assert_uint_eq(back, value);
    const memory_range *range = memory_find(memory, far);
    ck_assert_uint_eq(range->shadow[90 * GIB - 1], 1);
    ck_assert_uint_eq(range->shadow[45 * GIB], 0);
}
END_TEST

START_TEST(the_capacity_is_a_limit_and_freeing_gives_it_back)
{
    uint64_t a = allocate(60 * GIB), b = 0, used = 0, capacity = 0;
    ck_assert_int_eq(memory_allocate(memory, 40 * GIB, &b, NULL), HONE_NO_MEMORY);
    ck_assert_int_eq(memory_allocate(memory, UINT64_MAX, &b, NULL), HONE_NO_MEMORY);
    ck_assert_int_eq(memory_allocate(memory, 0, &b, NULL), HONE_BAD_ARGUMENT);
    ck_assert_uint_eq(b, 0);
    memory_info(memory, &used, &capacity);
    ck_assert_uint_eq(used, 60 * GIB);
    ck_assert_uint_eq(capacity, 96 * GIB);
    ck_assert_int_eq(memory_free(memory, a, NULL), HONE_OK);
    allocate(96 * GIB);
}
END_TEST

START_TEST(a_freed_range_is_known_as_freed_and_its_address_is_not_reused_soon)
{
    uint64_t a = allocate(1000);
    ck_assert_int_eq(memory_fill(memory, a, 7, 1, 1000, NULL), HONE_OK);
    ck_assert_int_eq(memory_free(memory, a, NULL), HONE_OK);
    const memory_range *range = memory_find(memory, a + 999);
    ck_assert_ptr_nonnull(range);
    ck_assert(range->freed);
    ck_assert_uint_eq(range->shadow[0], 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t b = allocate(1000);
        ck_assert_uint_ne(b, a);
        ck_assert_int_eq(memory_free(memory, b, NULL), HONE_OK);
    }
    ck_assert(memory_find(memory, a)->freed);
}
END_TEST

START_TEST(addresses_come_round_when_the_arena_is_used_up)
{
    uint64_t kept = allocate(4096), first = allocate(60 * GIB), again = first;
    ck_assert_int_eq(memory_free(memory, first, NULL), HONE_OK);
    for (int i = 0; i < 64 && (i == 0 || again != first); i++) {
        again = allocate(60 * GIB);
        ck_assert_uint_eq(memory_find(memory, again)->shadow[0], 0);
        ck_assert_int_eq(memory_fill(memory, again, 1, 1, 16, NULL), HONE_OK);
        ck_assert_int_eq(memory_free(memory, again, NULL), HONE_OK);
    }
    ck_assert_uint_eq(again, first);
    ck_assert(!memory_find(memory, kept)->freed);
}
END_TEST

START_TEST(the_quarantine_is_bounded_and_the_table_stays_sorted)
{
    uint64_t first = allocate(16);
    ck_assert_int_eq(memory_free(memory, first, NULL), HONE_OK);
    for (int i = 0; i < 20000; i++) {
        ck_assert_int_eq(memory_free(memory, allocate(16), NULL), HONE_OK);
    }
    ck_assert_ptr_null(memory_find(memory, first));
    uint64_t live = allocate(16);
    ck_assert_uint_eq(memory_find(memory, live + 15)->begin, live);
}
END_TEST

START_TEST(only_the_start_of_a_live_allocation_can_be_freed_and_once)
{
    uint64_t a = allocate(512);
    hone_error error;
    ck_assert_int_eq(memory_free(memory, a + 256, &error), HONE_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "inside"));
    ck_assert_int_eq(memory_free(memory, a - 4096, &error), HONE_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "nothing is allocated"));
    ck_assert_int_eq(memory_free(memory, a, &error), HONE_OK);
    ck_assert_int_eq(memory_free(memory, a, &error), HONE_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "freed before"));
}
END_TEST

/* Which access of an allocation of 64 bytes is refused, and what the message says. */
static const struct {
    int64_t offset;
    uint64_t bytes;
    const char *why; /* NULL: it is allowed */
} spans[] = {
    {0, 64, NULL},
    {63, 1, NULL},
    {64, 0, NULL},
    {64, 1, "nothing"},
    {0, 65, "ends 64 bytes later"},
    {60, 5, "ends 4 bytes later"},
    {-1, 2, "nothing"},
    {0, UINT64_MAX, "ends 64 bytes later"},
};

START_TEST(a_copy_past_an_end_is_refused_whole)
{
    static uint8_t host[128];
    uint64_t a = allocate(64), other = allocate(64), at = a + (uint64_t)spans[_i].offset;
    hone_error error = {0};
    hone_status expected = spans[_i].why == NULL ? HONE_OK : HONE_BAD_ARGUMENT;
    ck_assert_int_eq(memory_write(memory, at, host, spans[_i].bytes, &error), expected);
    ck_assert_int_eq(memory_read(memory, at, host, spans[_i].bytes, &error), expected);
    ck_assert_int_eq(memory_fill(memory, at, 0, 1, spans[_i].bytes, &error), expected);
    ck_assert_int_eq(memory_copy(memory, other, at, spans[_i].bytes, &error), expected);
    ck_assert_int_eq(memory_copy(memory, at, other, spans[_i].bytes, &error), expected);
    if (spans[_i].why != NULL) {
        ck_assert_msg(strstr(error.message, spans[_i].why) != NULL, "%s", error.message);
        ck_assert_uint_eq(memory_find(memory, other)->shadow[0], 0);
    }
}
END_TEST

START_TEST(freed_memory_is_not_copied)
{
    uint64_t a = allocate(64), value = 0;
    hone_error error;
    ck_assert_int_eq(memory_free(memory, a, NULL), HONE_OK);
    ck_assert_int_eq(memory_read(memory, a, &value, 8, &error), HONE_BAD_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "freed"));
}
END_TEST

START_TEST(a_fill_writes_its_pattern_and_marks_it_written)
{
    static const struct {
        uint32_t width;
        uint8_t bytes[8];
    } rows[] = {
        {1, {0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44}},
        {2, {0x44, 0x33, 0x44, 0x33, 0x44, 0x33, 0x44, 0x33}},
        {4, {0x44, 0x33, 0x22, 0x11, 0x44, 0x33, 0x22, 0x11}},
    };
    uint64_t a = allocate(64);
    uint8_t back[8];
    ck_assert_int_eq(
        memory_fill(memory, a + 8, 0x11223344, rows[_i].width, 8 / rows[_i].width, NULL), HONE_OK);
    ck_assert_int_eq(memory_read(memory, a + 8, back, 8, NULL), HONE_OK);
    ck_assert_mem_eq(back, rows[_i].bytes, 8);
    const memory_range *range = memory_find(memory, a);
    for (int i = 0; i < 24; i++) {
        ck_assert_uint_eq(range->shadow[i], i >= 8 && i < 16);
    }
}
END_TEST

START_TEST(a_fill_that_is_misaligned_or_overflows_is_refused)
{
    uint64_t a = allocate(64);
    ck_assert_int_eq(memory_fill(memory, a + 1, 0, 2, 1, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(memory_fill(memory, a, 0, 3, 1, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(memory_fill(memory, a, 0, 4, UINT64_MAX / 2, NULL), HONE_BAD_ARGUMENT);
}
END_TEST

START_TEST(a_copy_carries_validity_along)
{
    uint64_t a = allocate(64), b = allocate(64), value = 42;
    ck_assert_int_eq(memory_write(memory, a, &value, 8, NULL), HONE_OK);
    ck_assert_int_eq(memory_copy(memory, b, a, 16, NULL), HONE_OK);
    const memory_range *range = memory_find(memory, b);
    ck_assert_uint_eq(range->shadow[7], 1);
    ck_assert_uint_eq(range->shadow[8], 0);
}
END_TEST

START_TEST(an_allocation_is_known_to_be_all_written)
{
    uint64_t a = allocate(64), b = allocate(64), value[8] = {0};
    const memory_range *first = memory_find(memory, a), *second = memory_find(memory, b);
    ck_assert_int_eq(memory_write(memory, a, value, 63, NULL), HONE_OK);
    ck_assert(!first->whole);
    ck_assert_int_eq(memory_write(memory, a, value, 64, NULL), HONE_OK);
    ck_assert(first->whole);
    ck_assert_int_eq(memory_copy(memory, b, a, 64, NULL), HONE_OK);
    ck_assert(second->whole);
    memory_forget_whole(memory);
    ck_assert(!first->whole && !second->whole);
    ck_assert_int_eq(memory_fill(memory, a, 0, 4, 16, NULL), HONE_OK);
    ck_assert(first->whole);
    second = memory_find(memory, allocate(64));
    ck_assert_int_eq(memory_copy(memory, a, second->begin, 8, NULL), HONE_OK);
    ck_assert(!first->whole);
    ck_assert_uint_eq(first->shadow[0], 0);
}
END_TEST

START_TEST(host_memory_is_reached_at_its_own_address_until_it_is_released)
{
    uint8_t *host = malloc(100);
    ck_assert_ptr_nonnull(host);
    uint64_t address = (uint64_t)(uintptr_t)host, used = 0, capacity = 0;
    ck_assert_int_eq(memory_adopt(memory, host, 100, NULL), HONE_OK);
    ck_assert_int_eq(memory_adopt(memory, host + 50, 10, NULL), HONE_BAD_ARGUMENT);
    ck_assert_uint_eq(memory_find(memory, address + 99)->shadow[99], 1);
    ck_assert_int_eq(memory_free(memory, address, NULL), HONE_BAD_ARGUMENT);
    memory_info(memory, &used, &capacity);
    ck_assert_uint_eq(used, 0);
    ck_assert_int_eq(memory_release(memory, host, NULL), HONE_OK);
    ck_assert_ptr_null(memory_find(memory, address));
    ck_assert_int_eq(memory_release(memory, host, NULL), HONE_BAD_ARGUMENT);
    free(host);
}
END_TEST

START_TEST(a_capacity_of_nothing_is_refused)
{
    device_memory *none = NULL;
    ck_assert_int_eq(memory_open(0, &none, NULL), HONE_BAD_ARGUMENT);
    ck_assert_int_eq(memory_open(UINT64_MAX, &none, NULL), HONE_BAD_ARGUMENT);
    ck_assert_ptr_null(none);
    memory_close(NULL);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("memory");

    tcase_add_checked_fixture(tests, open_memory, close_memory);
    tcase_add_loop_test(tests, an_allocation_is_aligned_and_fenced_by_a_page_of_nothing, 0, 8);
    tcase_add_test(tests, ninety_gib_cost_nothing_until_they_are_touched);
    tcase_add_test(tests, the_capacity_is_a_limit_and_freeing_gives_it_back);
    tcase_add_test(tests, a_freed_range_is_known_as_freed_and_its_address_is_not_reused_soon);
    tcase_add_test(tests, addresses_come_round_when_the_arena_is_used_up);
    tcase_add_test(tests, the_quarantine_is_bounded_and_the_table_stays_sorted);
    tcase_add_test(tests, only_the_start_of_a_live_allocation_can_be_freed_and_once);
    tcase_add_loop_test(tests, a_copy_past_an_end_is_refused_whole, 0, ARRAY_LEN(spans));
    tcase_add_test(tests, freed_memory_is_not_copied);
    tcase_add_loop_test(tests, a_fill_writes_its_pattern_and_marks_it_written, 0, 3);
    tcase_add_test(tests, a_fill_that_is_misaligned_or_overflows_is_refused);
    tcase_add_test(tests, a_copy_carries_validity_along);
    tcase_add_test(tests, an_allocation_is_known_to_be_all_written);
    tcase_add_test(tests, host_memory_is_reached_at_its_own_address_until_it_is_released);
    tcase_add_test(tests, a_capacity_of_nothing_is_refused);
    return suite_run("emulator/memory", tests);
}
