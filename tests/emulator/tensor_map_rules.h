/* tensor_map_rules.h - the rules of cuTensorMapEncode*, as rows: what is changed of a good call,
 * and why it is then refused. */
#ifndef HONE_TESTS_EMULATOR_TENSOR_MAP_RULES_H
#define HONE_TESTS_EMULATOR_TENSOR_MAP_RULES_H

#include <stddef.h>
#include <stdint.h>

typedef enum tensor_map_call { TILED, IM2COL, WIDE } tensor_map_call;

/* A field of the arguments, by name, and what becomes of it. */
typedef struct tensor_map_edit {
    const char *field;
    int64_t value;
} tensor_map_edit;

typedef struct tensor_map_rule {
    const char *name;
    tensor_map_call call;
    tensor_map_edit edits[6];
    const char *why; /* NULL: taken */
} tensor_map_rule;

extern const tensor_map_rule tensor_map_rules[];
extern const size_t tensor_map_rules_len;

#endif
