/* expression_tree.h - what the parser of expressions hands to the machine: one array of nodes.
 * Private. */
#ifndef HONE_TEMPLATES_EXPRESSION_TREE_H
#define HONE_TEMPLATES_EXPRESSION_TREE_H

#include "templates/expression.h"

/* Operators of trees and, below EXPRESSION_LEAVES, of the machine as well. */
typedef enum expression_op {
    EXPRESSION_ADD,
    EXPRESSION_SUB,
    EXPRESSION_MUL,
    EXPRESSION_DIV,
    EXPRESSION_MOD,
    EXPRESSION_EQ,
    EXPRESSION_NE,
    EXPRESSION_LT,
    EXPRESSION_LE,
    EXPRESSION_GT,
    EXPRESSION_GE,
    EXPRESSION_CEIL_DIV,
    EXPRESSION_ROUND_UP,
    EXPRESSION_MIN,
    EXPRESSION_MAX,
    EXPRESSION_UNARY, /* from here on one operand */
    EXPRESSION_NEG = EXPRESSION_UNARY,
    EXPRESSION_NOT,
    EXPRESSION_POW2,
    EXPRESSION_LOG2,
    EXPRESSION_CONTROL, /* from here on operands that may be skipped */
    EXPRESSION_AND = EXPRESSION_CONTROL,
    EXPRESSION_OR,
    EXPRESSION_CHOOSE,
    EXPRESSION_LEAVES,
    EXPRESSION_NUMBER = EXPRESSION_LEAVES, /* value */
    EXPRESSION_SLOT,                       /* value is the slot */
} expression_op;

typedef struct expression_node {
    expression_op op;
    uint16_t child[3];
    int64_t value;
} expression_node;

/* A node takes at least one byte of text, so this many always suffice. */
typedef struct expression_tree {
    uint32_t len;
    uint16_t root;
    expression_node nodes[EXPRESSION_MAX_BYTES];
} expression_tree;

hone_status expression_parse(const char *source, int line, const char *text, size_t len,
                             const expression_scope *scope, expression_tree *out,
                             hone_error *error);

/* An expression of a tree whose nodes are used once each; `text` is what it was written as. */
hone_status expression_build(const char *source, int line, const char *text,
                             const expression_tree *tree, expression **out, hone_error *error);

#endif
