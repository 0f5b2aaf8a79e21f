/* integer_bits.c - logic, shifts, fields and bytes, by the manual, one bit at a time. */
#include "tests/emulator/integer_references.h"

#include <string.h>

/* ---- Bits ------------------------------------------------------------------------------------ */

bool integer_logic(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = 0;
    for (uint32_t n = 0; n < f->type.width;
         n++) { /* number: the result for a, b = 00, 01, 10, 11 */
        *d |= (uint64_t)(f->number >> (2 * integer_bit(v[0], n) + integer_bit(v[1], n)) & 1) << n;
    }
    return true;
}
bool integer_is_zero(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = integer_number(&f->type, v[0]) == 0;
    return true;
}
bool integer_lookup(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = 0;
    for (uint32_t n = 0; n < 32; n++) {
        uint32_t row = 4u * integer_bit(v[0], n) + 2u * integer_bit(v[1], n) + integer_bit(v[2], n);
        *d |= (uint64_t)(f->number >> row & 1) << n;
    }
    return true;
}
bool integer_shift(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t width = f->type.width, count = (uint32_t)v[1] > width ? width : (uint32_t)v[1];

    *d = 0;
    for (uint32_t n = 0; n < width; n++) {
        bool fill = f->type.is_signed && integer_bit(v[0], width - 1);
        bool right = n + count < width ? integer_bit(v[0], n + count) : fill;
        bool left = n >= count && integer_bit(v[0], n - count);
        *d |= (uint64_t)(f->name[2] == 'r' ? right : left) << n;
    }
    return true;
}
bool integer_funnel(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint64_t both = (v[1] & UINT32_MAX) << 32 | (v[0] & UINT32_MAX);
    uint32_t count = (uint32_t)v[2];

    count = strstr(f->name, "wrap") != NULL ? count % 32 : count > 32 ? 32 : count;
    *d = f->name[4] == 'r' ? both >> count : both >> (32 - count);
    return true;
}
bool integer_extract(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t at = v[1] & 255, len = v[2] & 255, top = f->type.width - 1;
    bool sign =
        f->type.is_signed && len > 0 && integer_bit(v[0], at + len - 1 < top ? at + len - 1 : top);

    *d = 0;
    for (uint32_t n = 0; n <= top; n++) {
        *d |= (uint64_t)(n < len && at + n <= top ? integer_bit(v[0], at + n) : sign) << n;
    }
    return true;
}
bool integer_insert(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t at = v[2] & 255, len = v[3] & 255;

    *d = v[1];
    for (uint32_t n = 0; n < len && at + n < f->type.width; n++) {
        uint64_t one = UINT64_C(1) << (at + n);
        *d = integer_bit(v[0], n) ? *d | one : *d & ~one;
    }
    return true;
}
bool integer_reverse(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    *d = 0;
    for (uint32_t n = 0; n < f->type.width; n++) {
        *d |= (uint64_t)integer_bit(v[0], n) << (f->type.width - 1 - n);
    }
    return true;
}
/* popc; clz, which counts from the top */
bool integer_count_bits(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    bool leading = f->name[0] == 'c', going = true;

    *d = 0;
    for (uint32_t n = f->type.width; n-- > 0;) {
        going = going && !integer_bit(v[0], n);
        *d += leading ? going : integer_bit(v[0], n);
    }
    return true;
}
bool integer_find_top(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t top = f->type.width - 1;
    bool against = f->type.is_signed && integer_bit(v[0], top);

    *d = UINT32_MAX;
    for (uint32_t n = 0; n <= top; n++) {
        *d = integer_bit(v[0], n) != against ? n : *d;
    }
    *d = strstr(f->name, "shiftamt") != NULL && *d != UINT32_MAX ? top - *d : *d;
    return true;
}
bool integer_find_nth(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    int64_t at = (uint32_t)v[1], offset = (int32_t)v[2], left = offset < 0 ? -offset : offset;

    (void)f;
    *d = UINT32_MAX;
    if (at > 31) {
        return false;
    }
    if (offset == 0) {
        *d = integer_bit(v[0], (uint32_t)at) ? (uint64_t)at : UINT32_MAX;
        return true;
    }
    for (; at >= 0 && at < 32 && left > 0; at += offset < 0 ? -1 : 1) {
        left -= integer_bit(v[0], (uint32_t)at);
        *d = left == 0 ? (uint64_t)at : UINT32_MAX;
    }
    return true;
}
bool integer_mask_of(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    bool wrap = strstr(f->name, "wrap") != NULL;
    uint32_t at = (uint32_t)v[0], len = (uint32_t)v[1];

    at = wrap ? at % 32 : at > 32 ? 32 : at;
    len = wrap ? len % 32 : len > 32 ? 32 : len;
    *d = 0;
    for (uint32_t n = at; n < at + len && n < 32; n++) {
        *d |= UINT64_C(1) << n;
    }
    return true;
}
bool integer_extend(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    uint32_t len = (uint32_t)v[1];

    len = strstr(f->name, "wrap") != NULL ? len % 32 : len > 32 ? 32 : len;
    *d = 0;
    for (uint32_t n = 0; n < 32 && len > 0; n++) {
        bool sign = f->type.is_signed && integer_bit(v[0], len - 1);
        *d |= (uint64_t)(n < len ? integer_bit(v[0], n) : sign) << n;
    }
    return true;
}
/* The manual's tables of selected bytes, from the top byte down; number: the mode, 0 the general
 * one. */
bool integer_permute(const integer_form *f, const uint64_t v[4], uint64_t *d)
{
    static const char *const modes[][4] = {{NULL},
                                           {"3210", "4321", "5432", "6543"},
                                           {"5670", "6701", "7012", "0123"},
                                           {"0000", "1111", "2222", "3333"},
                                           {"3210", "3211", "3222", "3333"},
                                           {"0000", "1110", "2210", "3210"},
                                           {"1010", "3232", "1010", "3232"}};
    *d = 0;
    for (uint32_t n = 0; n < 4; n++) {
        uint32_t pick = f->number == 0 ? (uint32_t)v[2] >> 4 * n & 15
                                       : (uint32_t)(modes[f->number][v[2] & 3][3 - n] - '0');
        uint64_t byte = (pick & 4 ? v[1] : v[0]) >> 8 * (pick & 3) & 255;
        *d |= (pick & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * n;
    }
    return true;
}
