/* test_wire.c - messages arrive as they were sent; whatever is cut, grown or flipped is refused. */
#include "runtime/wire.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static void build(wire_writer *w)
{
    wire_begin(w, WIRE_ANSWER);
    wire_put_u64(w, 0x0123456789abcdefull);
    wire_put_text(w, "kernel");
    wire_put_bytes(w, "a\0b", 3);
    wire_put_text(w, "");
    ck_assert(wire_end(w));
}

START_TEST(fields_come_back_in_order)
{
    wire_writer w;
    wire_kind kind;
    size_t len = 0, bytes_len = 0;

    build(&w);
    ck_assert(wire_header(w.bytes, &kind, &len));
    ck_assert_int_eq(kind, WIRE_ANSWER);
    ck_assert_uint_eq(len, w.len - WIRE_HEADER_BYTES);
    ck_assert(wire_intact(w.bytes, w.bytes + WIRE_HEADER_BYTES, len));
    wire_reader r = {.bytes = w.bytes + WIRE_HEADER_BYTES, .len = len};
    ck_assert_uint_eq(wire_get_u64(&r), 0x0123456789abcdefull);
    ck_assert_str_eq(wire_get_text(&r), "kernel");
    const char *bytes = wire_get_bytes(&r, &bytes_len);
    ck_assert_uint_eq(bytes_len, 3);
    ck_assert(memcmp(bytes, "a\0b", 3) == 0);
    ck_assert_str_eq(wire_get_text(&r), "");
    ck_assert(!r.failed && r.at == r.len);
    wire_get_u64(&r);
    ck_assert(r.failed);
    wire_free(&w);
}
END_TEST

START_TEST(every_flipped_bit_is_noticed)
{
    wire_writer w;
    wire_kind kind;
    size_t len = 0;

    build(&w);
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        w.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool accepted = wire_header(w.bytes, &kind, &len) && kind == WIRE_ANSWER &&
                        len == w.len - WIRE_HEADER_BYTES &&
                        wire_intact(w.bytes, w.bytes + WIRE_HEADER_BYTES, len);
        ck_assert_msg(!accepted, "bit %zu", bit);
        w.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    wire_free(&w);
}
END_TEST

START_TEST(a_reader_never_passes_the_end)
{
    wire_writer w;

    build(&w);
    /* Every prefix: either a field fails, or the bytes were all there. In its own block, for ASan.
     */
    for (size_t len = 0; len < w.len - WIRE_HEADER_BYTES; len++) {
        uint8_t *cut = malloc(len + (len == 0));
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, w.bytes + WIRE_HEADER_BYTES, len);
        wire_reader r = {.bytes = cut, .len = len};
        size_t bytes_len = 0;
        wire_get_u64(&r);
        wire_get_text(&r);
        wire_get_bytes(&r, &bytes_len);
        wire_get_text(&r);
        ck_assert_msg(r.failed, "%zu bytes", len);
        free(cut);
    }
    wire_free(&w);
}
END_TEST

START_TEST(a_length_of_2_to_64_is_refused)
{
    uint8_t payload[16];

    memset(payload, 0xff, sizeof payload);
    wire_reader r = {.bytes = payload, .len = sizeof payload};
    size_t len = 1;
    ck_assert_ptr_null(wire_get_bytes(&r, &len));
    ck_assert(r.failed && len == 0);
}
END_TEST

START_TEST(a_text_with_a_nul_inside_is_refused)
{
    wire_writer w;

    wire_begin(&w, WIRE_HELLO);
    wire_put_bytes(&w, "a\0b", 3);
    ck_assert(wire_end(&w));
    wire_reader r = {.bytes = w.bytes + WIRE_HEADER_BYTES, .len = w.len - WIRE_HEADER_BYTES};
    ck_assert_str_eq(wire_get_text(&r), "");
    ck_assert(r.failed);
    wire_free(&w);
}
END_TEST

START_TEST(a_message_past_the_limit_fails_at_its_end)
{
    wire_writer w;
    char *big = calloc(1, WIRE_MAX_BYTES);

    ck_assert_ptr_nonnull(big);
    wire_begin(&w, WIRE_COMPILE);
    wire_put_bytes(&w, big, WIRE_MAX_BYTES);
    ck_assert(!wire_end(&w));
    wire_free(&w);
    free(big);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wire");

    tcase_add_test(tests, fields_come_back_in_order);
    tcase_add_test(tests, every_flipped_bit_is_noticed);
    tcase_add_test(tests, a_reader_never_passes_the_end);
    tcase_add_test(tests, a_length_of_2_to_64_is_refused);
    tcase_add_test(tests, a_text_with_a_nul_inside_is_refused);
    tcase_add_test(tests, a_message_past_the_limit_fails_at_its_end);
    return suite_run("runtime/wire", tests);
}
