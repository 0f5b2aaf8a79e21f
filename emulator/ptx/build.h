/* build.h - a kernel while it is decoded: virtual registers, symbols, instructions.
 *
 * Failure is sticky: the first one fills `status` and *error, later calls do no harm. An operand is
 * the number of a virtual register; constants and special registers are virtual registers too. */
#ifndef HONE_EMULATOR_PTX_BUILD_H
#define HONE_EMULATOR_PTX_BUILD_H

#include "emulator/exec/exec.h"
#include "emulator/ptx/ptx.h"

enum { PTX_KERNEL_INSTRUCTIONS = 1 << 20, PTX_CALL_DEPTH = 16 };

/* Forms that were refused, over the whole module. */
typedef struct ptx_report {
    char *text; /* one line each */
    size_t len, capacity;
    uint32_t count;
    int32_t first_line;
} ptx_report;

typedef struct ptx_global {
    ptx_text name;
    char *copy; /* of the name: outlives the text */
    ptx_space space; /* PTX_GLOBAL or PTX_CONST */
    uint64_t address, bytes;
} ptx_global;

typedef struct ptx_op {
    ptx_text name;
    const exec_row *row;
} ptx_op;

typedef enum ptx_vreg_kind { VREG_VARIABLE, VREG_CONSTANT, VREG_SPECIAL } ptx_vreg_kind;
typedef struct ptx_vreg {
    ptx_vreg_kind kind;
    uint8_t width; /* 0 predicate, 4, 8 */
    uint8_t special;
    bool live_at_entry;
    uint64_t value;
    uint32_t first, last, offset;
} ptx_vreg;

typedef enum ptx_symbol_kind {
    SYMBOL_REGISTER, /* value: vreg */
    SYMBOL_FAMILY,   /* value: count; width */
    SYMBOL_LABEL,    /* value: code index */
    SYMBOL_TARGETS,
    SYMBOL_ADDRESS, /* value: address in `space` */
    SYMBOL_FUNCTION,
} ptx_symbol_kind;
typedef struct ptx_symbol {
    ptx_text name;
    uint32_t scope, next;
    ptx_symbol_kind kind;
    uint8_t width;
    ptx_space space;
    uint64_t value;
    const ptx_variable *variable;
    const ptx_statement *targets;
    const ptx_function *function;
} ptx_symbol;

typedef struct ptx_fixup { /* a branch whose label may come later */
    uint32_t at, scope;
    ptx_text label;
    const ptx_statement *targets; /* of a branch table */
    int32_t line;
} ptx_fixup;

typedef struct ptx_widening { /* ld.u32 into a 64-bit register: after the load */
    uint32_t from, to;
    bool is_signed;
} ptx_widening;

typedef struct ptx_builder {
    const ptx_tree *tree;
    const ptx_op *ops; /* hash of names, ops_len is a power of two */
    uint32_t ops_len;
    const ptx_global *globals;
    uint32_t globals_len;
    ptx_report *report;
    hone_error *error;
    hone_status status;

    instruction *code;
    uint32_t *operand_at; /* of each instruction, in `operands` */
    const ptx_place **place_at; /* of each instruction */
    uint32_t code_len, code_capacity, at_capacity, place_capacity;
    uint32_t *operands, operands_len, operands_capacity;
    uint32_t *targets, targets_len, targets_capacity;
    uint32_t *watched, watched_len; /* watch.c */
    ptx_vreg *vregs;
    uint32_t vregs_len, vregs_capacity;
    ptx_symbol *symbols;
    uint32_t symbols_len, symbols_capacity, heads[4096];
    uint32_t constant_heads[1024], *constant_next, constants_capacity;
    uint32_t *scope_parent, scopes_len, scopes_capacity, scope;
    ptx_fixup *fixups;
    uint32_t fixups_len, fixups_capacity;
    ptx_widening widenings[16];
    uint32_t widenings_len;
    uint32_t static_shared, local_bytes, params_bytes;

    const ptx_statement *statement;
    uint32_t carry; /* 1 + vreg of the carry flag, once it is used */
    uint32_t guard; /* vreg or MACHINE_NONE */
    bool guard_negated;
    uint32_t call_depth; /* functions being inlined around the statement */
    const ptx_function *calls[PTX_CALL_DEPTH];
} ptx_builder;

/* A mnemonic in pieces: "ld.global.nc.v4.u32" is base "ld" and four parts. */
enum { PTX_PARTS = 24 };
typedef struct ptx_form {
    ptx_text base, parts[PTX_PARTS];
    uint32_t parts_len;
} ptx_form;
bool ptx_form_has(const ptx_form *f, const char *part);
bool ptx_form_take(ptx_form *f, const char *part); /* removes it */
ptx_text ptx_form_type(const ptx_form *f);         /* the last part, or empty */

/* build.c */
void *ptx_grow(ptx_builder *b, void *list, uint32_t len, uint32_t *capacity, size_t size);
void ptx_build_fail(ptx_builder *b, hone_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ptx_build_unsupported(ptx_builder *b, const char *why);
uint32_t ptx_build_vreg(ptx_builder *b, uint32_t width);
uint32_t ptx_build_constant(ptx_builder *b, uint64_t value, uint32_t width);
/* The bits of a number where `width` bytes are wanted: 1.5 and 0d... of a float are those of a
 * float, 0f... of a double those of a double. */
uint64_t ptx_number_as(const ptx_operand *o, uint32_t width);
uint32_t ptx_build_source(ptx_builder *b, const ptx_operand *o, uint32_t width);
uint32_t ptx_build_result(ptx_builder *b, const ptx_operand *o, uint32_t width, bool is_signed);
/* [address]: its register, and what is added to it; sets FLAG_ADDRESS64 in *flags. */
uint32_t ptx_build_address(ptx_builder *b, const ptx_operand *o, int64_t *offset, uint8_t *flags);
/* The same as one register of `width` bytes, what is added included: of an instruction that has
 * several addresses. */
uint32_t ptx_build_place(ptx_builder *b, const ptx_operand *o, uint32_t width);
/* NULL after a failure. The pointer holds until the next emit. */
instruction *ptx_build_emit(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                            const uint32_t *operands);
/* By name of a row of the .def files; helpers are not counted and have no guard. */
instruction *ptx_build_op(ptx_builder *b, const char *name, const uint32_t *operands);
instruction *ptx_build_helper(ptx_builder *b, const char *name, const uint32_t *operands);
/* An instruction that steers: PIPE_CONTROL, TAINT_SELF. */
instruction *ptx_build_control(ptx_builder *b, execute run, machine_flow flow, uint32_t results,
                               uint32_t sources, const uint32_t *operands);
/* A branch to a label of this scope, or of one around it; under the builder's guard. */
void ptx_build_branch(ptx_builder *b, ptx_text label);
const exec_row *ptx_build_find(const ptx_builder *b, ptx_text name);
/* A 128-bit register as the two of 64 bits that it is made of. */
void ptx_build_pair(ptx_builder *b, const ptx_operand *o, uint32_t out[2]);
void ptx_build_close(ptx_builder *b);

/* decode_alu.c: rows of the .def files by the form's own name. */
enum { PTX_ROW_BYTES = 96 };
ptx_text ptx_form_row(const ptx_form *f, char name[PTX_ROW_BYTES]); /* base.part.part */
uint32_t ptx_row_width(char kind); /* of a letter of a row's signature */
instruction *ptx_build_row(ptx_builder *b, const exec_row *row, const uint32_t *operands);
/* "step.type" of v in a new register: flush, saturate, relu, abs. */
uint32_t ptx_build_step(ptx_builder *b, const char *step, ptx_text type, uint32_t v);

/* decode_memory.c: what an access is, and how it gets into its instruction (NULL: no harm). */
typedef struct ptx_access {
    ptx_space space;
    uint32_t bytes, elements;
    bool is_signed, own_cta; /* own_cta: .shared::cta, also where it is not said */
    uint8_t order, scope;
} ptx_access;
/* The memory order and scope that a form's words say; words stay. 0: none, a weak access. */
uint8_t ptx_form_order(const ptx_form *f, uint8_t *scope);
void ptx_build_access(instruction *i, const ptx_access *a, uint8_t flags, int64_t offset);
/* `n` elements of {a, b}, or of a plain operand when n is 1; false when there are not as many. */
bool ptx_build_elements(const ptx_operand *o, uint32_t n, const ptx_operand **items);

/* rules.c: what an assembler would refuse; false after a failure. */
/* The variable that an address names, if it does, lies in *space; of a generic one it becomes the
 * variable's. A parameter of a call is local memory. */
bool ptx_rules_place(ptx_builder *b, const ptx_operand *address, ptx_space *space);
/* The same, and the words of ld, st, atom and red fit to their space. */
bool ptx_rules_access(ptx_builder *b, const ptx_form *f, const ptx_operand *address,
                      ptx_space *space);

/* symbol.c */
/* What stands for a function's address: no data lies there. 0: no function has that name. */
uint64_t ptx_function_address(const ptx_tree *t, ptx_text name);
/* Its address is an operand of something that is no call, or an initial value. */
bool ptx_function_is_taken(const ptx_tree *t, ptx_text name);
uint32_t ptx_symbol_add(ptx_builder *b, ptx_text name, ptx_symbol_kind kind, uint64_t value);
/* Innermost first; NULL when there is none. Members of register families are made here. */
ptx_symbol *ptx_symbol_find(ptx_builder *b, ptx_text name, uint32_t scope);
uint32_t ptx_symbol_open_scope(ptx_builder *b, uint32_t parent);
void ptx_symbol_declare(ptx_builder *b, const ptx_variable *v, bool is_register);
void ptx_symbol_module(ptx_builder *b, const ptx_function *kernel);

/* Families of instructions: false when the form is not supported. */
bool ptx_decode_alu(ptx_builder *b, ptx_form *f);
bool ptx_decode_mov(ptx_builder *b, ptx_form *f);
bool ptx_decode_setp(ptx_builder *b, ptx_form *f);
bool ptx_decode_set(ptx_builder *b, ptx_form *f);
bool ptx_decode_cvt(ptx_builder *b, ptx_form *f);
bool ptx_decode_cvta(ptx_builder *b, ptx_form *f);
bool ptx_decode_isspacep(ptx_builder *b, ptx_form *f);
bool ptx_decode_load(ptx_builder *b, ptx_form *f);
bool ptx_decode_store(ptx_builder *b, ptx_form *f);
bool ptx_decode_atomic(ptx_builder *b, ptx_form *f);
bool ptx_decode_ldmatrix(ptx_builder *b, ptx_form *f);
bool ptx_decode_cp(ptx_builder *b, ptx_form *f);
bool ptx_decode_mma(ptx_builder *b, ptx_form *f);
bool ptx_decode_branch(ptx_builder *b, ptx_form *f);
bool ptx_decode_return(ptx_builder *b, ptx_form *f);
bool ptx_decode_exit(ptx_builder *b, ptx_form *f);
bool ptx_decode_trap(ptx_builder *b, ptx_form *f);
bool ptx_decode_call(ptx_builder *b, ptx_form *f);
bool ptx_decode_barrier(ptx_builder *b, ptx_form *f);
bool ptx_decode_shuffle(ptx_builder *b, ptx_form *f);
bool ptx_decode_vote(ptx_builder *b, ptx_form *f);
bool ptx_decode_match(ptx_builder *b, ptx_form *f);
bool ptx_decode_redux(ptx_builder *b, ptx_form *f);
bool ptx_decode_elect(ptx_builder *b, ptx_form *f);
bool ptx_decode_activemask(ptx_builder *b, ptx_form *f);
bool ptx_decode_nothing(ptx_builder *b, ptx_form *f);
bool ptx_decode_nanosleep(ptx_builder *b, ptx_form *f);
/* Hopper and later. */
bool ptx_decode_mbarrier(ptx_builder *b, ptx_form *f);
bool ptx_decode_bulk(ptx_builder *b, ptx_form *f);
bool ptx_decode_bulk_tensor(ptx_builder *b, ptx_form *f);
bool ptx_decode_async_arrive(ptx_builder *b, ptx_form *f);
bool ptx_decode_async_store(ptx_builder *b, ptx_form *f);
bool ptx_decode_async_reduction(ptx_builder *b, ptx_form *f);
bool ptx_decode_fence(ptx_builder *b, ptx_form *f);
bool ptx_decode_prefetch(ptx_builder *b, ptx_form *f);
bool ptx_decode_tensormap_fence(ptx_builder *b, ptx_form *f); /* fence.proxy.tensormap:: */
bool ptx_decode_tensormap(ptx_builder *b, ptx_form *f);
bool ptx_decode_wgmma(ptx_builder *b, ptx_form *f);
bool ptx_decode_stmatrix(ptx_builder *b, ptx_form *f);
bool ptx_decode_movmatrix(ptx_builder *b, ptx_form *f);
bool ptx_decode_createpolicy(ptx_builder *b, ptx_form *f);
bool ptx_decode_cluster_barrier(ptx_builder *b, ptx_form *f);
bool ptx_decode_mapa(ptx_builder *b, ptx_form *f);
bool ptx_decode_getctarank(ptx_builder *b, ptx_form *f);
bool ptx_decode_setmaxnreg(ptx_builder *b, ptx_form *f);
bool ptx_decode_griddepcontrol(ptx_builder *b, ptx_form *f);

/* decode.c */
void ptx_decode_body(ptx_builder *b, const ptx_statement *first);
hone_status ptx_decode_kernel(ptx_builder *b, const ptx_function *f, ptx_kernel *out);
/* place.c: what the kernel and the module keep of .loc and .file. */
hone_status ptx_place_keep(const ptx_builder *b, ptx_kernel *out);
hone_status ptx_place_files(const ptx_tree *t, source_files *out, hone_error *error);
/* opt.c: slots for virtual registers, operands turned into byte offsets. */
hone_status ptx_opt_allocate(ptx_builder *b, ptx_kernel *out);
void ptx_opt_extend(ptx_builder *b, uint32_t v, uint32_t at); /* v lives at that instruction */
/* watch.c: registers that wgmma names, and who else touches them. */
hone_status ptx_watch_find(ptx_builder *b);
struct flow_graph;
bool ptx_watch_extend(ptx_builder *b, const struct flow_graph *g);

#endif
