/* ptx.h - PTX text as a tree: what the lexer and the parser hand to the decoder.
 *
 * Names are views into the module's text, which must outlive the tree. Everything else lives in one
 * arena. */
#ifndef HONE_EMULATOR_PTX_H
#define HONE_EMULATOR_PTX_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct ptx_text {
    const char *at;
    size_t len;
} ptx_text;

typedef enum ptx_token_kind {
    PTX_END,
    PTX_NAME,      /* mnemonics, registers, labels, symbols: dots and `::` are part of it */
    PTX_DIRECTIVE, /* .reg, .b32, .align: text without the dot */
    PTX_NUMBER,    /* value holds the bits; width 0 integer, 4 or 8 for a float's bits */
    PTX_STRING,
    PTX_MARK, /* one character, in `mark` */
    PTX_BAD,
} ptx_token_kind;

typedef struct ptx_token {
    ptx_token_kind kind;
    ptx_text text;
    uint64_t value;
    int32_t line;
    uint8_t width;
    char mark;
} ptx_token;

typedef struct ptx_lexer {
    const char *at, *end;
    int32_t line;
} ptx_lexer;

/* The next token; PTX_END at the end for ever. Never reads past `end`. */
ptx_token ptx_lex(ptx_lexer *l);
bool ptx_text_is(ptx_text t, const char *word);
bool ptx_text_equal(ptx_text a, ptx_text b);

/* Memory that is freed at once. NULL when there is no more. */
typedef struct ptx_arena {
    struct ptx_arena_block *first;
} ptx_arena;
void *ptx_arena_take(ptx_arena *a, size_t bytes);
void ptx_arena_close(ptx_arena *a);

typedef enum ptx_operand_kind {
    PTX_OPERAND_NAME,   /* name + offset */
    PTX_OPERAND_NUMBER, /* value, width as in the token */
    PTX_OPERAND_MEMORY, /* [items[0] + offset] */
    PTX_OPERAND_VECTOR, /* {items} */
    PTX_OPERAND_LIST,   /* (items), of a call */
    PTX_OPERAND_SINK,   /* _ */
} ptx_operand_kind;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated; /* !p */
    uint8_t width;
    ptx_text name;
    uint64_t value;
    int64_t offset;
    struct ptx_operand *items;
    uint32_t items_len;
} ptx_operand;

typedef enum ptx_space {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_PARAM,
    PTX_LOCAL,
    PTX_CONST,
} ptx_space;

/* A declaration: registers, variables, parameters. */
typedef struct ptx_variable {
    ptx_text name;
    ptx_space space;
    uint32_t element_bytes, align; /* a predicate has 0 bytes */
    uint64_t count;                /* elements; registers: of `%r<count>` */
    bool is_extern, is_family;
    const ptx_operand *initial; /* in order, flattened */
    uint32_t initial_len;
    int32_t line;
} ptx_variable;

typedef enum ptx_statement_kind {
    PTX_INSTRUCTION,
    PTX_LABEL,
    PTX_OPEN,
    PTX_CLOSE,
    PTX_REGISTERS,
    PTX_VARIABLE,
    PTX_TARGETS, /* .branchtargets: operands are labels; named by the label before it */
} ptx_statement_kind;

/* Where the CUDA source has a statement, from .loc. Files are numbers of .file; 0: not said. A
 * statement of an inlined function also has the place in the outermost caller. */
typedef struct ptx_place {
    uint32_t file, line, caller_file, caller_line;
} ptx_place;

typedef struct ptx_file {
    uint32_t number;
    ptx_text path;
    struct ptx_file *next;
} ptx_file;

typedef struct ptx_statement {
    ptx_statement_kind kind;
    int32_t line;
    const ptx_place *place; /* NULL: no .loc before it */
    ptx_text name, guard; /* mnemonic or label; guard.len 0: none */
    bool guard_negated;
    ptx_operand *operands;
    uint32_t operands_len;
    const ptx_variable *variable;
    struct ptx_statement *next;
} ptx_statement;

typedef struct ptx_function {
    ptx_text name;
    bool is_entry, has_body;
    ptx_variable *params, *results;
    uint32_t params_len, results_len;
    /* Directives between signature and body; 0: not said. */
    uint32_t max_threads;                               /* .maxntid, .reqntid: their product */
    uint32_t required_threads[3], cluster[3];           /* .reqntid, .reqnctapercluster */
    uint32_t max_cluster_rank, min_ctas, max_registers; /* .minnctapersm, .maxnreg */
    bool explicit_cluster;
    ptx_statement *body;
    struct ptx_function *next;
} ptx_function;

typedef struct ptx_variable_link {
    ptx_variable variable;
    struct ptx_variable_link *next;
} ptx_variable_link;

typedef struct ptx_alias { /* .alias name, of; */
    ptx_text name, of;
    struct ptx_alias *next;
} ptx_alias;

typedef struct ptx_tree {
    ptx_arena arena;
    ptx_alias *aliases;
    ptx_function *functions; /* in the order of the text */
    ptx_variable_link *variables;
    ptx_file *files;
} ptx_tree;

/* HONE_BAD_TEXT names the line. Close the tree in either case. */
hone_status ptx_parse(const char *text, size_t len, ptx_tree *out, hone_error *error);
void ptx_tree_close(ptx_tree *t);

#endif
