/* parse.h - the parser's state, shared by parse.c (modules, functions) and statement.c
 * (bodies). */
#ifndef HONE_EMULATOR_PTX_PARSE_H
#define HONE_EMULATOR_PTX_PARSE_H

#include "emulator/ptx/ptx.h"

enum { PTX_NESTING = 16, PTX_OPERANDS = 1 << 20 };

typedef struct ptx_parser {
    ptx_lexer lexer;
    ptx_token token; /* the one being looked at */
    ptx_arena *arena;
    hone_error *error;
    ptx_operand *stack; /* operands of lists that are still open */
    size_t stack_len, stack_capacity;
    int depth;
    const ptx_place *place; /* of the statements that follow */
    ptx_file **files;       /* the end of the tree's list */
} ptx_parser;

void ptx_parse_next(ptx_parser *p);
hone_status ptx_parse_fail(const ptx_parser *p, const char *what);
bool ptx_parse_mark(const ptx_parser *p, char mark);
bool ptx_parse_accept(ptx_parser *p, char mark); /* takes it when it is there */
hone_status ptx_parse_expect(ptx_parser *p, char mark);
hone_status ptx_parse_skip_line(ptx_parser *p, int32_t line);
/* place.c: the rest of a .loc or .file that stands on `line`. What is odd there is passed over:
 * notes for a debugger are no reason to refuse a module. */
hone_status ptx_parse_loc(ptx_parser *p, int32_t line);
hone_status ptx_parse_file(ptx_parser *p, int32_t line);

/* Bytes of a type such as "b32"; a predicate is 0. -1: no type. */
int ptx_parse_type_bytes(ptx_text type);

hone_status ptx_parse_operand(ptx_parser *p, ptx_operand *out);
/* A list up to `close`; the result is in the arena. */
hone_status ptx_parse_operands(ptx_parser *p, char close, ptx_operand **out, uint32_t *len);
/* After the space directive: alignment, type, name, bounds, initialiser. Stops before `,` `;` or
 * `)`. */
hone_status ptx_parse_variable(ptx_parser *p, ptx_space space, ptx_variable *out);
bool ptx_parse_space(ptx_text word, ptx_space *out);
/* From after `{` to after the matching `}`. */
hone_status ptx_parse_body(ptx_parser *p, ptx_statement **out);

#endif
