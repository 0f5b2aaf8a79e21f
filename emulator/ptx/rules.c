/* rules.c - what an assembler refuses of ld, st, atom and red though it knows each word: spaces
 * that are not written or ordered, variables that lie in another space than the instruction says.
 */
#include "emulator/ptx/build.h"

/* Which of the operations that the table below tells apart this is. */
enum { LOADS = 1, STORES = 2, COMBINES = 4, ALL = 7 };

static const struct {
    const char *word;      /* NULL: whatever the form says */
    uint32_t what, spaces; /* spaces: a bit for each where it is refused */
    const char *why;
} rules[] = {
    {NULL, STORES | COMBINES, 1u << PTX_CONST, "constant memory is only read"},
    {NULL, COMBINES, 1u << PTX_PARAM | 1u << PTX_LOCAL, "atomics are of .global and .shared"},
    {"nc", LOADS, ~(1u << PTX_GLOBAL), ".nc is of .global"},
    {"nc", STORES | COMBINES, ~0u, ".nc is of loads"},
    {"acquire", STORES, ~0u, ".acquire is of loads"},
    {"release", LOADS, ~0u, ".release is of stores"},
#define ORDERED (1u << PTX_CONST | 1u << PTX_PARAM | 1u << PTX_LOCAL)
    {"volatile", ALL, ORDERED, ".volatile is of .global and .shared"},
    {"relaxed", ALL, ORDERED, ".relaxed is of .global and .shared"},
    {"acquire", ALL, ORDERED, ".acquire is of .global and .shared"},
    {"release", ALL, ORDERED, ".release is of .global and .shared"},
#undef ORDERED
};

static uint32_t what_of(const ptx_form *f)
{
    return ptx_text_is(f->base, "st")                                    ? STORES
           : ptx_text_is(f->base, "atom") || ptx_text_is(f->base, "red") ? COMBINES
                                                                         : LOADS;
}

/* The variable that an address names; NULL where it is a register or a number. */
static const ptx_symbol *variable_of(ptx_builder *b, const ptx_operand *address)
{
    const ptx_operand *name = address->items_len > 0 ? &address->items[0] : NULL;
    const ptx_symbol *s = name != NULL && name->kind == PTX_OPERAND_NAME
                              ? ptx_symbol_find(b, name->name, b->scope)
                              : NULL;

    return s != NULL && s->kind == SYMBOL_ADDRESS ? s : NULL;
}

bool ptx_rules_place(ptx_builder *b, const ptx_operand *address, ptx_space *space)
{
    static const char *const names[] = {"no",          "global", "shared",
                                        "parameters'", "local",  "constant"};
    const ptx_symbol *s = variable_of(b, address);

    if (s == NULL) {
        return true;
    }
    /* a call's parameters are local memory here: calls are inlined */
    bool fits = s->space == *space || (*space == PTX_PARAM && s->space == PTX_LOCAL) ||
                (*space == PTX_GENERIC && s->space != PTX_CONST && s->space != PTX_PARAM);
    if (!fits) {
        ptx_build_fail(b, HONE_BAD_TEXT, "%.*s: \"%.*s\" lies in %s memory",
                       (int)b->statement->name.len, b->statement->name.at,
                       (int)(s->name.len < 80 ? s->name.len : 80), s->name.at, names[s->space]);
        return false;
    }
    *space = s->space;
    return true;
}

bool ptx_rules_access(ptx_builder *b, const ptx_form *f, const ptx_operand *address,
                      ptx_space *space)
{
    const char *why = NULL;
    uint32_t what = what_of(f);

    for (size_t n = 0; n < ARRAY_LEN(rules) && why == NULL; n++) {
        if ((rules[n].what & what) != 0 && (rules[n].spaces >> *space & 1) != 0 &&
            (rules[n].word == NULL || ptx_form_has(f, rules[n].word))) {
            why = rules[n].why;
        }
    }
    const ptx_symbol *s = variable_of(b, address);
    if (what != LOADS && s != NULL && s->space == PTX_PARAM) {
        why = "a kernel's parameters are only read";
    }
    if (why != NULL) {
        ptx_build_fail(b, HONE_BAD_TEXT, "%.*s: %s", (int)b->statement->name.len,
                       b->statement->name.at, why);
        return false;
    }
    return ptx_rules_place(b, address, space);
}
