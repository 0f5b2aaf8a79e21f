/* integer_forms.c - the table of integer forms. */
#include "tests/emulator/integer_forms.h"
#include "core/status.h"
#include "tests/emulator/integer_references.h"

#include <stdio.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------------------- */

static const integer_type types[] = {
    {"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
    {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true},
    {"b16", 16, false}, {"b32", 32, false}, {"b64", 64, false},
};

static char letter(uint32_t width)
{
    return width == 16 ? 'h' : width == 32 ? 'w' : 'd';
}

/* Operations of all widths: `with` are the letters of their types' classes. In signatures t stands
 * for the type's width, T for twice that. */
static const struct {
    const char *name, *with, *signature, *text;
    integer_reference *reference;
    uint32_t number, least, most; /* widths; 0: all */
} families[] = {
    {"add", "us", "t=tt", "", integer_add, 0, 0, 0},
    {"sub", "us", "t=tt", "", integer_subtract, 0, 0, 0},
    {"mul.lo", "us", "t=tt", "", integer_multiply, 0, 0, 0},
    {"mul.hi", "us", "t=tt", "", integer_multiply, 1, 0, 0},
    {"mul.wide", "us", "T=tt", "", integer_multiply, 2, 16, 32},
    {"mad.lo", "us", "t=ttt", "", integer_multiply, 0, 0, 0},
    {"mad.hi", "us", "t=ttt", "", integer_multiply, 1, 0, 0},
    {"mad.wide", "us", "T=ttT", "", integer_multiply, 2, 16, 32},
    {"sad", "us", "t=ttt", "", integer_distance, 0, 0, 0},
    {"div", "us", "t=tt", "", integer_divide, 0, 0, 0},
    {"rem", "us", "t=tt", "", integer_divide, 0, 0, 0},
    {"min", "us", "t=tt", "", integer_extreme, 0, 0, 0},
    {"max", "us", "t=tt", "", integer_extreme, 0, 0, 0},
    {"abs", "s", "t=t", "", integer_negate, 0, 0, 0},
    {"neg", "s", "t=t", "", integer_negate, 0, 0, 0},
    {"and", "b", "t=tt", "", integer_logic, 8, 0, 0},
    {"or", "b", "t=tt", "", integer_logic, 14, 0, 0},
    {"xor", "b", "t=tt", "", integer_logic, 6, 0, 0},
    {"not", "b", "t=t", "", integer_logic, 3, 0, 0},
    {"cnot", "b", "t=t", "", integer_is_zero, 0, 0, 0},
    {"mov", "usb", "t=t", "", integer_logic, 12, 0, 0},
    {"shl", "b", "t=tw", "", integer_shift, 0, 0, 0},
    {"shr", "usb", "t=tw", "", integer_shift, 0, 0, 0},
    {"bfe", "us", "t=tww", "", integer_extract, 0, 32, 64},
    {"bfi", "b", "t=ttww", "", integer_insert, 0, 32, 64},
    {"brev", "b", "t=t", "", integer_reverse, 0, 32, 64},
    {"popc", "b", "w=t", "", integer_count_bits, 0, 32, 64},
    {"clz", "b", "w=t", "", integer_count_bits, 0, 32, 64},
    {"bfind", "us", "w=t", "", integer_find_top, 0, 32, 64},
    {"bfind.shiftamt", "us", "w=t", "", integer_find_top, 0, 32, 64},
    {"selp", "usb", "t=ttw", "setp.ne.u32 %p1, $2, 0; @ $d, $0, $1, %p1;", integer_choose, 0, 0, 0},
    {"setp.eq", "usb", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.ne", "usb", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.lt", "us", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.le", "us", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.gt", "us", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.ge", "us", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.lo", "u", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.ls", "u", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.hi", "u", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
    {"setp.hs", "u", "w=tt", "@ %p1, $0, $1; selp.u32 $d, 1, 0, %p1;", integer_compare, 0, 0, 0},
};

#define LOOKUP(table) "lop3.b32 $d, $0, $1, $2, " #table ";"
#define CHAIN(text)   "{ .reg .b32 %c0, %c1; " text " mov.b64 $d, {%c0, %c1}; }"
#define LONG(text)    "{ .reg .b64 %c0; " text " }"
/* Forms of one type: name, signature, text, reference, the type's index above, number. */
static const struct {
    const char *name, *signature, *text;
    integer_reference *reference;
    uint32_t type, number;
} singles[] = {
    {"add.sat.s32", "w=ww", "", integer_add_stopped, 3, 0},
    {"sub.sat.s32", "w=ww", "", integer_subtract_stopped, 3, 0},
    {"mad.hi.sat.s32", "w=www", "", integer_multiply, 3, 3},
    {"mul24.lo.u32", "w=ww", "", integer_multiply_24, 2, 0},
    {"mul24.lo.s32", "w=ww", "", integer_multiply_24, 3, 0},
    {"mul24.hi.u32", "w=ww", "", integer_multiply_24, 2, 1},
    {"mul24.hi.s32", "w=ww", "", integer_multiply_24, 3, 1},
    {"mad24.lo.u32", "w=www", "", integer_multiply_24, 2, 0},
    {"mad24.lo.s32", "w=www", "", integer_multiply_24, 3, 0},
    {"mad24.hi.u32", "w=www", "", integer_multiply_24, 2, 1},
    {"mad24.hi.s32", "w=www", "", integer_multiply_24, 3, 1},
    {"mad24.hi.sat.s32", "w=www", "", integer_multiply_24, 3, 3},
    {"min.relu.s32", "w=ww", "", integer_extreme, 3, 0},
    {"max.relu.s32", "w=ww", "", integer_extreme, 3, 0},
    {"add.u16x2", "w=ww", "", integer_both_halves, 2, 0},
    {"add.s16x2", "w=ww", "", integer_both_halves, 3, 0},
    {"min.u16x2", "w=ww", "", integer_both_halves, 2, 0},
    {"min.s16x2", "w=ww", "", integer_both_halves, 3, 0},
    {"max.u16x2", "w=ww", "", integer_both_halves, 2, 0},
    {"max.s16x2", "w=ww", "", integer_both_halves, 3, 0},
    {"min.relu.s16x2", "w=ww", "", integer_both_halves, 3, 0},
    {"max.relu.s16x2", "w=ww", "", integer_both_halves, 3, 0},
    {"dp4a.u32.u32", "w=www", "", integer_dot, 2, 4},
    {"dp4a.u32.s32", "w=www", "", integer_dot, 2, 4},
    {"dp4a.s32.u32", "w=www", "", integer_dot, 2, 4},
    {"dp4a.s32.s32", "w=www", "", integer_dot, 2, 4},
    {"dp2a.lo.u32.u32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.lo.u32.s32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.lo.s32.u32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.lo.s32.s32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.hi.u32.u32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.hi.u32.s32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.hi.s32.u32", "w=www", "", integer_dot, 2, 2},
    {"dp2a.hi.s32.s32", "w=www", "", integer_dot, 2, 2},
    {"shf.l.wrap.b32", "w=www", "", integer_funnel, 7, 0},
    {"shf.r.wrap.b32", "w=www", "", integer_funnel, 7, 0},
    {"shf.l.clamp.b32", "w=www", "", integer_funnel, 7, 0},
    {"shf.r.clamp.b32", "w=www", "", integer_funnel, 7, 0},
    {"fns.b32", "w=www", "", integer_find_nth, 7, 0},
    {"bmsk.clamp.b32", "w=ww", "", integer_mask_of, 7, 0},
    {"bmsk.wrap.b32", "w=ww", "", integer_mask_of, 7, 0},
    {"szext.clamp.u32", "w=ww", "", integer_extend, 2, 0},
    {"szext.clamp.s32", "w=ww", "", integer_extend, 3, 0},
    {"szext.wrap.u32", "w=ww", "", integer_extend, 2, 0},
    {"szext.wrap.s32", "w=ww", "", integer_extend, 3, 0},
    {"prmt.b32", "w=www", "", integer_permute, 7, 0},
    {"prmt.b32.f4e", "w=www", "", integer_permute, 7, 1},
    {"prmt.b32.b4e", "w=www", "", integer_permute, 7, 2},
    {"prmt.b32.rc8", "w=www", "", integer_permute, 7, 3},
    {"prmt.b32.ecl", "w=www", "", integer_permute, 7, 4},
    {"prmt.b32.ecr", "w=www", "", integer_permute, 7, 5},
    {"prmt.b32.rc16", "w=www", "", integer_permute, 7, 6},
    {"lop3.b32", "w=www", LOOKUP(0x96), integer_lookup, 7, 0x96},
    {"lop3.b32", "w=www", LOOKUP(0xe8), integer_lookup, 7, 0xe8},
    {"lop3.b32", "w=www", LOOKUP(0x1b), integer_lookup, 7, 0x1b},
    {"lop3.b32", "w=www", LOOKUP(0xca), integer_lookup, 7, 0xca},
    {"slct.u32.s32", "w=www", "", integer_choose, 2, 0},
    {"slct.b64.s32", "d=ddw", "", integer_choose, 8, 0},
    {"slct.s32.f32", "w=www", "", integer_choose, 3, 1},
    {"slct.u64.f32", "d=ddw", "", integer_choose, 4, 1},
    {"add.cc.u32", "d=wwww", CHAIN("add.cc.u32 %c0, $0, $1; addc.u32 %c1, $2, $3;"),
     integer_carried, 2, 0},
    {"sub.cc.s32", "d=wwww", CHAIN("sub.cc.s32 %c0, $0, $1; subc.s32 %c1, $2, $3;"),
     integer_carried, 2, 1},
    {"add.cc.u64", "d=dddd", LONG("add.cc.u64 %c0, $0, $1; addc.u64 $d, $2, $3;"), integer_carried,
     4, 0},
    {"sub.cc.u64", "d=dddd", LONG("sub.cc.u64 %c0, $0, $1; subc.u64 $d, $2, $3;"), integer_carried,
     4, 1},
    {"mad.lo.cc.u32", "d=wwww",
     CHAIN("mad.lo.cc.u32 %c0, $0, $1, $2; madc.hi.u32 %c1, $0, $1, $3;"), integer_carried_product,
     2, 0},
    {"mad.lo.cc.s32", "d=wwww",
     CHAIN("mad.lo.cc.s32 %c0, $0, $1, $2; madc.hi.s32 %c1, $0, $1, $3;"), integer_carried_product,
     3, 0},
    {"mad.lo.cc.u64", "d=dddd", LONG("mad.lo.cc.u64 %c0, $0, $1, $2; madc.hi.u64 $d, $0, $1, $3;"),
     integer_carried_product, 4, 0},
    {"mad.lo.cc.s64", "d=dddd", LONG("mad.lo.cc.s64 %c0, $0, $1, $2; madc.hi.s64 $d, $0, $1, $3;"),
     integer_carried_product, 5, 0},
};

/* "@" becomes the name. */
static void set_text(integer_form *f, const char *text)
{
    const char *at = strchr(text, '@');

    if (at == NULL) {
        snprintf(f->text, sizeof f->text, "%s", text);
    } else {
        snprintf(f->text, sizeof f->text, "%.*s%s%s", (int)(at - text), text, f->name, at + 1);
    }
}

static void set_signature(integer_form *f, const char *signature)
{
    for (size_t n = 0; n < sizeof f->signature - 1 && signature[n] != '\0'; n++) {
        f->signature[n] = signature[n] == 't'   ? letter(f->type.width)
                          : signature[n] == 'T' ? letter(2 * f->type.width)
                                                : signature[n];
    }
}

size_t integer_forms_list(integer_form out[INTEGER_FORMS])
{
    size_t len = 0;

    for (size_t n = 0; n < ARRAY_LEN(families) * ARRAY_LEN(types); n++) {
        const integer_type *t = &types[n % ARRAY_LEN(types)];
        const size_t of = n / ARRAY_LEN(types);
        uint32_t most = families[of].most > 0 ? families[of].most : 64;
        if (strchr(families[of].with, t->name[0]) == NULL || t->width < families[of].least ||
            t->width > most) {
            continue;
        }
        integer_form *f = &out[len++];
        *f = (integer_form){.type = *t, .number = families[of].number};
        snprintf(f->name, sizeof f->name, "%s.%s", families[of].name, t->name);
        set_text(f, families[of].text);
        set_signature(f, families[of].signature);
        f->reference = families[of].reference;
    }
    for (size_t n = 0; n < ARRAY_LEN(singles); n++) {
        integer_form *f = &out[len++];
        *f = (integer_form){.type = types[singles[n].type], .number = singles[n].number};
        snprintf(f->name, sizeof f->name, "%s", singles[n].name);
        set_text(f, singles[n].text);
        set_signature(f, singles[n].signature);
        f->reference = singles[n].reference;
    }
    return len + integer_cvt_list(out + len, INTEGER_FORMS - len);
}
