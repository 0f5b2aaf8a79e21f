/* integer_references.h - what integer forms give, by the manual: of arithmetic and of bits.
 * Included by these and by the table. */
#ifndef HONE_TESTS_EMULATOR_INTEGER_REFERENCES_H
#define HONE_TESTS_EMULATOR_INTEGER_REFERENCES_H

#include "tests/emulator/integer_forms.h"

typedef __int128 integer_wide; /* holds every operand, whatever its sign */

static inline integer_wide integer_number(const integer_type *t, uint64_t bits)
{
    uint32_t unused = 64 - t->width;

    return t->is_signed ? (integer_wide)((int64_t)(bits << unused) >> unused)
                        : (integer_wide)(bits << unused >> unused);
}

static inline bool integer_bit(uint64_t x, uint32_t at)
{
    return at < 64 && (x >> at & 1) != 0;
}

static inline uint64_t integer_stopped(integer_wide x, integer_wide low, integer_wide high)
{
    return (uint64_t)(x < low ? low : x > high ? high : x);
}

/* integer_arithmetic.c, integer_bits.c */
extern integer_reference integer_add, integer_subtract, integer_add_stopped,
    integer_subtract_stopped, integer_multiply, integer_multiply_24, integer_distance,
    integer_divide, integer_extreme, integer_negate, integer_both_halves, integer_dot,
    integer_carried, integer_carried_product, integer_logic, integer_is_zero, integer_lookup,
    integer_shift, integer_funnel, integer_extract, integer_insert, integer_reverse,
    integer_count_bits, integer_find_top, integer_find_nth, integer_mask_of, integer_extend,
    integer_permute, integer_compare, integer_choose;
/* Conversions; their number. */
size_t integer_cvt_list(integer_form *out, size_t capacity);

#endif
