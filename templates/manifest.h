/* manifest.h - a template's YAML manifest: parameters, constraints, launches, arguments
 * (docs/design.md).
 *
 * Immutable after parsing, so shared freely between threads. */
#ifndef HONE_TEMPLATES_MANIFEST_H
#define HONE_TEMPLATES_MANIFEST_H

#include "core/device.h"
#include "core/status.h"

#include <string.h>

#define MANIFEST_MAX_PARAMS    32
#define MANIFEST_MAX_LAUNCHES  4
#define MANIFEST_MAX_ARGUMENTS 48
#define MANIFEST_MAX_MAPS      4  /* tensor maps of a launch */
#define MANIFEST_MOST_GROUP    16 /* CTAs that make a tile together */

typedef struct manifest manifest;

/* One value for each parameter, in the manifest's order. A plain value. */
typedef struct config {
    uint32_t len;
    int64_t value[MANIFEST_MAX_PARAMS];
} config;

/* What lies behind the values is nobody's. */
static inline bool config_same(const config *a, const config *b)
{
    return a->len == b->len && memcmp(a->value, b->value, a->len * sizeof *a->value) == 0;
}

/* What a kernel argument is made from. */
typedef enum plan_argument_kind {
    PLAN_OPERAND,   /* pointer to the op's operand `operand` */
    PLAN_WORKSPACE, /* pointer into the workspace at byte `value` */
    PLAN_SCALAR,    /* `bytes` wide integer `value` */
    PLAN_MAP,       /* the launch's tensor map `value`, passed by value */
} plan_argument_kind;

/* A tensor map: the 128 bytes that cuTensorMapEncodeTiled makes at launch. Innermost dimension
 * first; element strides of 1, no interleave, 256 bytes promoted in L2, zeros outside. */
typedef struct plan_map {
    int32_t operand; /* index by hone_operands; -1: the workspace */
    int32_t type;    /* CUtensorMapDataType */
    uint32_t element_bytes;
    uint32_t rank;       /* 1..5 */
    uint32_t swizzle;    /* bytes: 0, 32, 64, 128 */
    uint64_t offset;     /* bytes from the operand's beginning */
    uint64_t dims[5];    /* elements */
    uint64_t strides[4]; /* bytes, of dimensions 1.. */
    uint32_t box[5];     /* elements */
} plan_map;

typedef struct plan_argument {
    plan_argument_kind kind;
    uint32_t operand; /* PLAN_OPERAND: index by hone_operands */
    uint32_t bytes;   /* PLAN_SCALAR: 4 or 8 */
    int64_t value;
} plan_argument;

typedef struct plan_launch {
    char entry[1024]; /* NVRTC name expression: fp8_gemm<Config{.block_m = 128, ...}> */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_bytes; /* dynamic */
    uint32_t arguments_len;
    plan_argument arguments[MANIFEST_MAX_ARGUMENTS];
    uint32_t maps_len;
    plan_map maps[MANIFEST_MAX_MAPS];
    bool dependent; /* may begin while the launch before it ends: it waits in the kernel */
} plan_launch;

/* What each `ctas` consecutive CTAs of the first launch make of the output: tiles of rows x
 * columns. Where the grid has fewer groups than there are tiles, they take them in turn: group g of
 * G makes tiles g, g + G, g + 2G, ..., and the last tile has the output's last row and column.
 * rows = 0: not said. */
typedef struct plan_cover {
    int64_t rows, columns, ctas;
} plan_cover;

/* What the launches do in all, as the manifest estimates it before anything is compiled: for
 * ranking. 0: silent. */
typedef struct plan_estimate {
    int64_t registers;      /* of a thread, as the launch allocates them */
    int64_t macs;           /* by mma.sync, padding included */
    int64_t scaled_macs;    /* by block-scaled mma.sync, padding included */
    int64_t warpgroup_macs; /* by wgmma, padding included */
    int64_t l2_bytes;       /* asked of L2; a multicast load counts once for its cluster */
    int64_t instructions;   /* warp instructions */
    int64_t fp32;           /* of them fp32 arithmetic */
    int64_t wavefronts;     /* of shared memory, 128 bytes each, the copy engine's too */
    int64_t wave_bytes; /* distinct operand bytes of the tiles that are made at once; 0: unknown */
    int64_t tiles;      /* pieces of work that the grid's CTAs share out; 0: one a CTA */
    int64_t share;      /* clusters that part their pieces evenly; 0, 1: none does */
    int64_t groups;     /* warpgroups of a CTA that multiply with wgmma */
    int64_t sets;       /* partial sums that each of them keeps in flight */
    int64_t queue;      /* of them started before one is waited for; 0 and 1: one */
    int64_t units;      /* in all groups: products waited for and promoted */
    int64_t epilogue;   /* of `instructions`: those with no product in flight */
    int64_t ahead;      /* bytes that a thread's batch of loads asks for; 0: the model's guess */
    int64_t stages;     /* depth of the software pipeline (`pipeline:`); 1 when silent */
} plan_estimate;

/* All that a launch needs, for one problem, device and config. */
typedef struct plan {
    uint32_t launches_len;
    plan_launch launches[MANIFEST_MAX_LAUNCHES];
    uint64_t workspace_bytes;
    uint64_t workspace_zeroed; /* leading bytes that are 0 when the first launch begins */
    plan_estimate estimate;
    double tolerance; /* c of the element bound |err| <= c * 2^-13 * sum|ab|; 0: bytes must match */
    int64_t fraction_bits; /* that the tensor unit keeps; 0: what the arch's mma.sync keeps */
    plan_cover cover;
} plan;

/* `source` is the manifest's name ("fp8_gemm/mma_sync"). HONE_BAD_MANIFEST names line, rule,
 * remedy. */
hone_status manifest_parse(const char *source, const char *text, size_t len, manifest **out,
                           hone_error *error);
void manifest_free(manifest *m);

const char *manifest_name(const manifest *m);   /* "fp8_gemm/mma_sync" */
int32_t manifest_op(const manifest *m);         /* hone_op */
const char *manifest_source(const manifest *m); /* file of the kernel below templates/ */
uint32_t manifest_params_len(const manifest *m);
const char *manifest_param_name(const manifest *m, uint32_t param);
uint32_t manifest_param_values(const manifest *m, uint32_t param, const int64_t **values);

/* 1 when the template serves this problem on this device at all (its `when:`), 0 when not; `why`
 * (may be NULL, else 160 bytes) then says which rule refuses. */
hone_status manifest_serves(const manifest *m, const hone_problem *problem,
                            const device_facts *device, bool *serves, char why[160],
                            hone_error *error);

/* Whether one config is legal there: every `require` and the device's limits. `why` as above. */
hone_status manifest_legal(const manifest *m, const hone_problem *problem,
                           const device_facts *device, const config *c, bool *legal, char why[160],
                           hone_error *error);

/* The launches of a legal config. */
hone_status manifest_plan(const manifest *m, const hone_problem *problem,
                          const device_facts *device, const config *c, plan *out,
                          hone_error *error);

/* The same without entries and arguments, for ranking thousands of configs: geometry, shared memory
 * and figures are set, the rest of *out is left as it is. */
hone_status manifest_outline(const manifest *m, const hone_problem *problem,
                             const device_facts *device, const config *c, plan *out,
                             hone_error *error);

/* "block_m=128 block_n=160 stages=4", and back. */
hone_status manifest_config_format(const manifest *m, const config *c, char *text, size_t capacity,
                                   hone_error *error);
hone_status manifest_config_parse(const manifest *m, const char *text, config *out,
                                  hone_error *error);

/* All templates that are built in: parsed once by templates_open, listed by name. */
typedef struct templates templates;
hone_status templates_open(templates **out, hone_error *error);
void templates_close(templates *t);
size_t templates_len(const templates *t);
const manifest *templates_at(const templates *t, size_t index);
const manifest *templates_find(const templates *t, const char *name);
/* Why there is no config for a problem on a device, for a caller that found none: "template: rule"
 * of each template of its op, or that it serves it and none of its configs is legal; cut at
 * `capacity` bytes; what cannot be asked is left out. Thread-safe. */
void templates_refusals(const templates *t, const hone_problem *problem, const device_facts *device,
                        char *text, size_t capacity);
/* A template's kernel source and the device headers that it includes, in memory, for NVRTC. */
typedef struct template_source {
    const char *source;         /* NUL-terminated */
    const char *const *headers; /* contents */
    const char *const *names;   /* as #include'd: "device/fp8.cuh" */
    size_t headers_len;
} template_source;
hone_status templates_source(const templates *t, const manifest *m, template_source *out,
                             hone_error *error);
/* The text of a device header, such as "device/mma.cuh"; NULL when there is none. Static. */
const char *templates_header(const char *name, size_t len);
/* Raised whenever bench/prove starts to refuse what it let pass: winners of the weaker proof are
 * then stale, and a sweep tries them again. 2: sampled quantisers as tiles, NaN, dropped slots. 3:
 * late copies, races, proxy fences, strict barriers. 4: the least that groups of a cover make. 5:
 * exactly what they make, three tiles each; sums of one sign, gated apart. */
#define TEMPLATES_PROOF_VERSION 6

/* Digest of all that the template's code depends on (source, headers, manifest), and of the proof
 * that it goes through. */
void templates_digest(const templates *t, const manifest *m, uint8_t out[32]);

#endif
