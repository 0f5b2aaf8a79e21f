/* manifest_parts.h - a manifest from inside: what the reader fills, the planner and the space
 * evaluate. Private. */
#ifndef HONE_TEMPLATES_MANIFEST_PARTS_H
#define HONE_TEMPLATES_MANIFEST_PARTS_H

#include "core/document.h"
#include "templates/expression.h"
#include "templates/manifest.h"

#define MANIFEST_MAX_VALUES  256
#define MANIFEST_MAX_LETS    64
#define MANIFEST_MAX_RULES   64
#define MANIFEST_MAX_MEMBERS 48
#define MANIFEST_NAME_BYTES  65 /* with the NUL */
#define MANIFEST_WHY_BYTES   160

/* Slots of the value array that formulas read. */
enum {
    MANIFEST_SLOT_PARAM = 0,
    MANIFEST_SLOT_LET = MANIFEST_SLOT_PARAM + MANIFEST_MAX_PARAMS,
    MANIFEST_SLOT_FIELD = MANIFEST_SLOT_LET + MANIFEST_MAX_LETS,
    MANIFEST_SLOT_DEVICE = MANIFEST_SLOT_FIELD + 64,
};

/* A formula with all that it depends on, through `let`s too: bit i is parameter i, `let` i. */
typedef struct manifest_formula {
    expression *e; /* NULL: the section's default */
    uint32_t params;
    uint64_t lets;
} manifest_formula;

typedef struct manifest_param {
    char name[MANIFEST_NAME_BYTES];
    uint32_t len;
    int64_t *values;
} manifest_param;

typedef struct manifest_named {
    char name[MANIFEST_NAME_BYTES];
    manifest_formula value;
} manifest_named;

typedef struct manifest_rule {
    manifest_formula value;
    char why[MANIFEST_WHY_BYTES]; /* the rule's text when the manifest gives no reason */
} manifest_rule;

typedef struct manifest_argument {
    plan_argument_kind kind;
    char operand[MANIFEST_NAME_BYTES];
    uint32_t bytes;
    manifest_formula value;
    uint32_t map; /* PLAN_MAP: index into the launch's maps */
    int line;
} manifest_argument;

/* A tensor map; lists are as long as `rank` says, strides one shorter. */
typedef struct manifest_map {
    char operand[MANIFEST_NAME_BYTES]; /* or "workspace" */
    uint32_t rank;
    manifest_formula type, dims[5], strides[4], box[5], swizzle, offset; /* type: hone_dtype */
    int line;
} manifest_map;

typedef struct manifest_launch {
    char kernel[MANIFEST_NAME_BYTES];
    int line;
    manifest_formula when, grid[3], block[3], cluster[3], shared, dependent;
    uint32_t arguments_len, maps_len;
    manifest_argument arguments[MANIFEST_MAX_ARGUMENTS];
    manifest_map maps[MANIFEST_MAX_MAPS];
} manifest_launch;

/* Rows of `estimate:`: the key and the member of plan_estimate. */
#define MANIFEST_ESTIMATES(X)                                                                      \
    X(registers)                                                                                   \
    X(macs)                                                                                        \
    X(scaled_macs)                                                                                 \
    X(warpgroup_macs)                                                                              \
    X(l2_bytes)                                                                                    \
    X(instructions)                                                                                \
    X(fp32)                                                                                        \
    X(wavefronts)                                                                                  \
    X(wave_bytes)                                                                                  \
    X(tiles)                                                                                       \
    X(share)                                                                                       \
    X(groups)                                                                                      \
    X(sets)                                                                                        \
    X(queue)                                                                                       \
    X(units)                                                                                       \
    X(epilogue)                                                                                    \
    X(ahead)

typedef enum manifest_estimate {
#define X(name) MANIFEST_ESTIMATE_##name,
    MANIFEST_ESTIMATES(X)
#undef X
        MANIFEST_ESTIMATES_LEN
} manifest_estimate;

struct manifest {
    char *name;
    char source[128];
    int32_t op;
    uint32_t params_len, lets_len, when_len, require_len, members_len, launches_len;
    manifest_param params[MANIFEST_MAX_PARAMS];
    manifest_named lets[MANIFEST_MAX_LETS];
    manifest_rule when[MANIFEST_MAX_RULES], require[MANIFEST_MAX_RULES];
    manifest_named members[MANIFEST_MAX_MEMBERS];
    manifest_launch launches[MANIFEST_MAX_LAUNCHES];
    manifest_formula workspace, workspace_zeroed, pipeline, tolerance, fraction_bits;
    manifest_formula cover_rows, cover_columns, cover_ctas;
    manifest_formula estimate[MANIFEST_ESTIMATES_LEN];
};

/* Numbers for one problem, device and config. `lets` are those that are evaluated already. */
typedef struct manifest_values {
    int64_t slot[EXPRESSION_MAX_SLOTS];
    uint64_t lets;
} manifest_values;

/* Fill fields and device facts. HONE_BAD_ARGUMENT when the problem is of another op. */
hone_status manifest_bind(const manifest *m, const hone_problem *problem,
                          const device_facts *device, manifest_values *out, hone_error *error);
/* Set the parameters; `let`s are to be evaluated anew. */
hone_status manifest_set(const manifest *m, const config *c, manifest_values *values,
                         hone_error *error);
/* Evaluate, and the `let`s that it needs first. A formula that is left out gives `standard`. */
hone_status manifest_value(const manifest *m, const manifest_formula *f, manifest_values *values,
                           int64_t standard, int64_t *out, hone_error *error);

/* What of a launch is looked at: grid and cluster, block, shared memory. */
enum {
    MANIFEST_GEOMETRY_GRID = 1,
    MANIFEST_GEOMETRY_BLOCK = 2,
    MANIFEST_GEOMETRY_SHARED = 4,
    MANIFEST_GEOMETRY_ALL = 7
};

/* Whether a launch takes place, and fits the device in the parts that were asked for; others are 0.
 */
typedef struct manifest_geometry {
    bool active, fits, dependent;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes;
    char why[MANIFEST_WHY_BYTES]; /* when it does not fit */
} manifest_geometry;
/* A map's numbers; operands are left to the caller. `why` (160 bytes) is "" unless it breaks a rule
 * of cuTensorMapEncodeTiled. */
hone_status manifest_map_values(const manifest *m, const manifest_map *map, manifest_values *values,
                                plan_map *out, char why[MANIFEST_WHY_BYTES], hone_error *error);
/* Parameters that it depends on, as bits. */
uint32_t manifest_map_params(const manifest_map *map);
/* Whether a map that broke no rule describes more than `bytes` from the operand's beginning. */
bool manifest_map_reaches_past(const plan_map *map, uint64_t bytes);
hone_status manifest_launch_geometry(const manifest *m, const manifest_launch *launch,
                                     unsigned parts, manifest_values *values,
                                     manifest_geometry *out, hone_error *error);

/* ---- Reading. ------------------------------------------------------------------------------- */

typedef struct manifest_reader {
    const document *document;
    manifest *m;
    hone_error *error;
} manifest_reader;

bool manifest_is_name(const char *text, size_t len);
/* Whether a name has a meaning already: a field, a device fact, an enum value, a word of the
 * language. */
bool manifest_name_taken(const manifest *m, const char *name);
hone_status manifest_read_formula(const manifest_reader *r, const document_node *node,
                                  manifest_formula *out);
hone_status manifest_read_name(const manifest_reader *r, const document_node *node,
                               char out[MANIFEST_NAME_BYTES]);
/* One to `most` formulas. */
hone_status manifest_read_list(const manifest_reader *r, const document_node *node, size_t most,
                               const char *what, manifest_formula *out, uint32_t *len);
/* An argument `{tensor_map: operand, ...}` into the launch's maps. */
hone_status manifest_read_map(const manifest_reader *r, const document_node *node,
                              manifest_launch *launch, manifest_argument *argument);
hone_status manifest_read_launches(const manifest_reader *r, const document_node *list);
/* HONE_BAD_MANIFEST unless `node` is of `kind` with at most `most` entries (HONE_LIMIT). */
hone_status manifest_expect(const manifest_reader *r, const document_node *node, document_kind kind,
                            size_t most, const char *what);
hone_status manifest_refuse(const manifest_reader *r, const document_node *node, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));
void manifest_formula_free(manifest_formula *f);

#endif
