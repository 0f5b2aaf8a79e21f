/* integer_forms.h - every integer form that the emulator has, with what PTX's manual says that it
 * gives: references work on bits or on numbers of 128 bits, one value at a time, and share nothing
 * with the emulator's handlers. */
#ifndef HONE_TESTS_EMULATOR_INTEGER_FORMS_H
#define HONE_TESTS_EMULATOR_INTEGER_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A type of an operand: s16 and its like; floats have no `width`. */
typedef struct integer_type {
    const char *name;
    uint32_t width;
    bool is_signed;
} integer_type;

typedef struct integer_form integer_form;
/* The result from the operands' bits (upper ones are anything); false: the manual leaves it open.
 */
typedef bool integer_reference(const integer_form *f, const uint64_t v[4], uint64_t *d);

struct integer_form {
    char name[48];  /* as it stands in PTX, without operands */
    char text[256]; /* PTX with $d and $0 .. $3 for its registers; "": the name, then all of them */
    char signature[8]; /* h, w, d for 16, 32, 64 bits: "d=wwd" */
    integer_type type; /* that it computes with */
    uint32_t number;   /* what else the reference wants to know: a mode, an immediate */
    integer_reference *reference;
};

enum { INTEGER_FORMS = 700 };
/* The table; its length. */
size_t integer_forms_list(integer_form out[INTEGER_FORMS]);

#endif
