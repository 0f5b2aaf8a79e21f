/* decode_memory.c - ld, st, atom, red, ldmatrix, cp.async. Cache hints are read and dropped:
 * they change what an access costs, not what it does. */
#include "emulator/ptx/build.h"

#include "emulator/ptx/parse.h"

#include <string.h>

enum { ELEMENTS = 8 };

static bool take_space(ptx_form *f, ptx_space *space)
{
    static const struct {
        const char *name;
        ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
                  {"shared::cta", PTX_SHARED}, {"param", PTX_PARAM},
                  {"local", PTX_LOCAL},        {"const", PTX_CONST},
                  {"param::entry", PTX_PARAM}, {"param::func", PTX_PARAM}};
    *space = PTX_GENERIC;
    for (size_t n = 0; n < ARRAY_LEN(spaces); n++) {
        if (ptx_form_take(f, spaces[n].name)) {
            *space = spaces[n].space;
            return true;
        }
    }
    return false;
}

/* What only steers caches and ordering; every access here is in program order anyway. */
static bool is_hint(ptx_text part)
{
    static const char *const words[] = {
        "nc",       "ca",   "cg",      "cs",      "lu",      "cv",      "wb",   "wt",
        "volatile", "weak", "relaxed", "acquire", "release", "acq_rel", "cta",  "cluster",
        "gpu",      "sys",  "mmio",    "unified", "noftz",   "aligned", "sync",
    };
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        if (ptx_text_is(part, words[n])) {
            return true;
        }
    }
    return part.len > 4 && (memcmp(part.at, "L1::", 4) == 0 || memcmp(part.at, "L2::", 4) == 0) &&
           !ptx_text_is(part, "L2::cache_hint");
}

static void drop_hints(ptx_form *f)
{
    uint32_t kept = 0;
    for (uint32_t n = 0; n < f->parts_len; n++) {
        if (!is_hint(f->parts[n])) {
            f->parts[kept++] = f->parts[n];
        }
    }
    f->parts_len = kept;
}

typedef struct access_form {
    ptx_space space;
    uint32_t bytes, elements;
    bool is_signed;
} access_form;

/* {space}{hints}{.vN}.type; false when a part is left over. */
static bool read_access(ptx_form *f, access_form *out)
{
    ptx_text type = ptx_form_type(f);
    int bytes = ptx_parse_type_bytes(type);

    take_space(f, &out->space);
    drop_hints(f);
    ptx_form_take(f, "L2::cache_hint"); /* its operand is dropped with it */
    out->elements = ptx_form_take(f, "v2")   ? 2
                    : ptx_form_take(f, "v4") ? 4
                    : ptx_form_take(f, "v8") ? 8
                                             : 1;
    out->bytes = (uint32_t)bytes;
    out->is_signed = type.len > 0 && *type.at == 's';
    return f->parts_len == 1 && bytes >= 1 && bytes <= 8 && out->bytes * out->elements <= 32;
}

static bool elements_of(const ptx_operand *o, uint32_t n, const ptx_operand **items)
{
    *items = o->kind == PTX_OPERAND_VECTOR ? o->items : o;
    return o->kind == PTX_OPERAND_VECTOR ? o->items_len == n : n == 1;
}

static void fill_access(instruction *i, const access_form *a, uint8_t flags, int64_t offset)
{
    if (i == NULL) {
        return;
    }
    i->space = (uint8_t)a->space;
    i->element_bytes = (uint8_t)a->bytes;
    i->elements = (uint8_t)a->elements;
    i->flags = flags | (a->is_signed ? FLAG_SIGNED : 0);
    i->offset = offset;
    i->pipe = PIPE_MEMORY;
    i->taint = TAINT_SELF;
}

/* Parameters of a call that is inlined are local variables; those of the kernel are the launch's
 * bytes. */
static void settle_param_space(ptx_builder *b, const ptx_operand *address, access_form *a)
{
    const ptx_operand *name = address->items_len > 0 ? &address->items[0] : NULL;
    ptx_symbol *s = a->space == PTX_PARAM && name != NULL && name->kind == PTX_OPERAND_NAME
                        ? ptx_symbol_find(b, name->name, b->scope)
                        : NULL;
    if (s != NULL && s->kind == SYMBOL_ADDRESS) {
        a->space = s->space;
    }
}

static bool load_kernel_param(ptx_builder *b, const access_form *a, const ptx_operand *address,
                              const uint32_t *results)
{
    ptx_symbol *s = ptx_symbol_find(b, address->items[0].name, b->scope);

    if (s == NULL || s->kind != SYMBOL_ADDRESS) {
        return false;
    }
    uint64_t at = s->value + (uint64_t)address->items[0].offset;
    if (at > b->params_bytes || (uint64_t)a->bytes * a->elements > b->params_bytes - at) {
        ptx_build_fail(b, HONE_BAD_TEXT, "a load past the kernel's parameters");
        return true;
    }
    fill_access(ptx_build_emit(b, exec_load_param, a->elements, 0, results), a, 0, (int64_t)at);
    return true;
}

bool ptx_decode_load(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    access_form a = {0};
    uint32_t o[ELEMENTS + 1];
    uint8_t flags = 0;
    int64_t offset = 0;

    if (!read_access(f, &a) || s->operands_len < 2 ||
        !elements_of(&s->operands[0], a.elements, &items)) {
        return false;
    }
    settle_param_space(b, &s->operands[1], &a);
    for (uint32_t n = 0; n < a.elements; n++) {
        o[n] = ptx_build_result(b, &items[n], a.bytes == 8 ? 8 : 4, a.is_signed);
    }
    if (a.space == PTX_PARAM && s->operands[1].items_len > 0 &&
        load_kernel_param(b, &a, &s->operands[1], o)) {
        return true;
    }
    o[a.elements] = ptx_build_address(b, &s->operands[1], &offset, &flags);
    fill_access(ptx_build_emit(b, exec_load, a.elements, 1, o), &a, flags, offset);
    return true;
}

bool ptx_decode_store(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    access_form a = {0};
    uint32_t o[ELEMENTS + 1];
    uint8_t flags = 0;
    int64_t offset = 0;

    if (ptx_form_has(f, "async") || !read_access(f, &a) || s->operands_len < 2 ||
        !elements_of(&s->operands[1], a.elements, &items)) {
        return false;
    }
    settle_param_space(b, &s->operands[0], &a);
    o[0] = ptx_build_address(b, &s->operands[0], &offset, &flags);
    for (uint32_t n = 0; n < a.elements; n++) {
        o[1 + n] = ptx_build_source(b, &items[n], a.bytes == 8 ? 8 : 4);
    }
    fill_access(ptx_build_emit(b, exec_store, 0, 1 + a.elements, o), &a, flags, offset);
    return true;
}

static bool take_atomic_kind(ptx_form *f, exec_atomic_kind *out)
{
    static const struct {
        const char *name;
        exec_atomic_kind kind;
    } kinds[] = {{"add", ATOMIC_ADD},   {"min", ATOMIC_MIN}, {"max", ATOMIC_MAX},
                 {"and", ATOMIC_AND},   {"or", ATOMIC_OR},   {"xor", ATOMIC_XOR},
                 {"exch", ATOMIC_EXCH}, {"cas", ATOMIC_CAS}, {"inc", ATOMIC_INC},
                 {"dec", ATOMIC_DEC}};
    for (size_t n = 0; n < ARRAY_LEN(kinds); n++) {
        if (ptx_form_take(f, kinds[n].name)) {
            *out = kinds[n].kind;
            return true;
        }
    }
    return false;
}

static exec_atomic_type atomic_type(ptx_text type)
{
    static const struct {
        const char *name;
        exec_atomic_type type;
    } types[] = {{"f32", ATOMIC_F32},     {"f64", ATOMIC_F64},   {"f16", ATOMIC_F16},
                 {"f16x2", ATOMIC_F16X2}, {"bf16", ATOMIC_BF16}, {"bf16x2", ATOMIC_BF16X2},
                 {"s32", ATOMIC_SIGNED},  {"s64", ATOMIC_SIGNED}};
    for (size_t n = 0; n < ARRAY_LEN(types); n++) {
        if (ptx_text_is(type, types[n].name)) {
            return types[n].type;
        }
    }
    return ATOMIC_UNSIGNED;
}

/* Which operations a type has; the others have no meaning. */
static bool atomic_exists(exec_atomic_kind kind, exec_atomic_type type, uint32_t bytes)
{
    bool integer = type == ATOMIC_UNSIGNED || type == ATOMIC_SIGNED;
    bool half = type >= ATOMIC_F16;

    if (bytes < 4 && integer) {
        return kind == ATOMIC_CAS || kind == ATOMIC_EXCH;
    }
    if (half && (kind == ATOMIC_MIN || kind == ATOMIC_MAX)) {
        return true;
    }
    return integer ? bytes <= 8 : kind == ATOMIC_ADD || kind == ATOMIC_EXCH;
}

bool ptx_decode_atomic(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool returns = ptx_text_is(f->base, "atom");
    ptx_text type = ptx_form_type(f);
    int bytes = ptx_parse_type_bytes(type);
    exec_atomic_kind kind = ATOMIC_ADD;
    access_form a = {.elements = 1};
    uint32_t o[4] = {0}, n = 0, results = returns ? 1 : 0;
    uint8_t flags = 0;
    int64_t offset = 0;

    take_space(f, &a.space);
    drop_hints(f);
    if (bytes < 2 || !take_atomic_kind(f, &kind) || f->parts_len != 1) {
        return false;
    }
    a.bytes = (uint32_t)bytes;
    uint32_t values = kind == ATOMIC_CAS ? 2 : 1, width = a.bytes == 8 ? 8 : 4;
    if (!atomic_exists(kind, atomic_type(type), a.bytes) ||
        s->operands_len != results + 1 + values) {
        return false;
    }
    if (returns) {
        o[n++] = ptx_build_result(b, &s->operands[0], width, false);
    }
    o[n++] = ptx_build_address(b, &s->operands[results], &offset, &flags);
    for (uint32_t v = 0; v < values; v++) {
        o[n++] = ptx_build_source(b, &s->operands[results + 1 + v], width);
    }
    instruction *i = ptx_build_emit(b, exec_atomic, results, 1 + values, o);
    fill_access(i, &a, flags, offset);
    if (i != NULL) {
        i->kind = (uint8_t)kind;
        i->elements = (uint8_t)atomic_type(type);
    }
    return true;
}

bool ptx_decode_ldmatrix(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    access_form a = {.space = PTX_SHARED, .bytes = 2, .elements = 1};
    uint32_t o[5];
    uint8_t flags = 0;
    int64_t offset = 0;

    a.elements = ptx_form_has(f, "x4") ? 4 : ptx_form_has(f, "x2") ? 2 : 1;
    if (!ptx_form_has(f, "m8n8") || !ptx_text_is(ptx_form_type(f), "b16") || s->operands_len != 2 ||
        !elements_of(&s->operands[0], a.elements, &items)) {
        return false;
    }
    for (uint32_t n = 0; n < a.elements; n++) {
        o[n] = ptx_build_result(b, &items[n], 4, false);
    }
    o[a.elements] = ptx_build_address(b, &s->operands[1], &offset, &flags);
    instruction *i = ptx_build_emit(b, exec_ldmatrix, a.elements, 1, o);
    fill_access(i, &a, flags | (ptx_form_has(f, "trans") ? FLAG_TRANSPOSED : 0), offset);
    if (i != NULL) {
        i->flow = FLOW_ALIGNED;
    }
    return true;
}

/* [shared], [global], bytes{, bytes to read or predicate}{, policy} */
static bool decode_async_copy(ptx_builder *b, const ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t given = s->operands_len - (ptx_form_has(f, "L2::cache_hint") ? 1 : 0);
    uint8_t to_flags = 0, from_flags = 0;
    int64_t to_offset = 0, from_offset = 0;
    uint32_t o[3];

    if (given < 3 || given > 4 || s->operands[2].kind != PTX_OPERAND_NUMBER) {
        return false;
    }
    uint64_t bytes = s->operands[2].value;
    if (bytes != 16 && (ptx_form_has(f, "cg") || (bytes != 4 && bytes != 8))) {
        return false;
    }
    o[0] = ptx_build_address(b, &s->operands[0], &to_offset, &to_flags);
    o[1] = ptx_build_address(b, &s->operands[1], &from_offset, &from_flags);
    o[2] = given == 4 ? ptx_build_source(b, &s->operands[3], 4) : ptx_build_constant(b, bytes, 4);
    if (to_offset != (int32_t)to_offset || (from_flags & FLAG_ADDRESS64) == 0) {
        return false;
    }
    if (from_offset != 0) { /* the instruction has room for one offset */
        uint32_t sum = ptx_build_vreg(b, 8), add = ptx_build_constant(b, (uint64_t)from_offset, 8);
        ptx_build_helper(b, "add.s64", (uint32_t[]){sum, o[1], add});
        o[1] = sum;
    }
    access_form a = {.space = PTX_SHARED, .bytes = (uint32_t)bytes, .elements = 1};
    fill_access(ptx_build_emit(b, exec_async_copy, 0, 3, o), &a, to_flags, to_offset);
    return true;
}

bool ptx_decode_cp(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t wait = MACHINE_NONE;
    instruction *i = NULL;

    if (!ptx_form_has(f, "async") || ptx_form_has(f, "bulk") || ptx_form_has(f, "mbarrier")) {
        return false;
    }
    if (ptx_form_has(f, "commit_group")) {
        i = ptx_build_emit(b, exec_async_commit, 0, 0, NULL);
    } else if (ptx_form_has(f, "wait_all")) {
        wait = 0;
    } else if (ptx_form_has(f, "wait_group") && s->operands_len == 1 &&
               s->operands[0].kind == PTX_OPERAND_NUMBER && s->operands[0].value < (1u << 30)) {
        wait = (uint32_t)s->operands[0].value;
    } else {
        return (ptx_form_has(f, "ca") || ptx_form_has(f, "cg")) && decode_async_copy(b, f);
    }
    if (wait != MACHINE_NONE) {
        i = ptx_build_emit(b, exec_async_wait, 0, 0, NULL);
    }
    if (i != NULL) {
        i->pipe = PIPE_MEMORY;
        i->taint = TAINT_SELF;
        i->offset = wait == MACHINE_NONE ? 0 : wait;
        i->elements = ptx_form_has(f, "wait_all"); /* uncommitted copies too */
    }
    return true;
}

static int matrix_type(ptx_text t)
{
    static const char *const types[] = {"e4m3", "e5m2", "bf16", "f16", "s8", "u8"};
    for (int n = 0; n < (int)ARRAY_LEN(types); n++) { /* in the order of tensor_type */
        if (ptx_text_is(t, types[n])) {
            return n;
        }
    }
    return -1;
}

/* mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 and its kin: d, a, b, c */
bool ptx_decode_mma(ptx_builder *b, ptx_form *f)
{
    static const uint32_t registers[] = {4, 4, 2, 4};
    const ptx_statement *s = b->statement;
    uint32_t o[14], n = 0;

    if (!ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") || !ptx_form_take(f, "row") ||
        !ptx_form_take(f, "col") || f->parts_len != 5 || s->operands_len != 4) {
        return false;
    }
    int a = matrix_type(f->parts[2]), c = matrix_type(f->parts[3]);
    bool half = a == 2 || a == 3, integer = a >= 4;
    const char *result = integer ? "s32" : "f32";
    if (a < 0 || c < 0 || !ptx_text_is(f->parts[0], half ? "m16n8k16" : "m16n8k32") ||
        (half && a != c) || (integer != (c >= 4)) || !ptx_text_is(f->parts[1], result) ||
        !ptx_text_is(f->parts[4], result)) {
        return false;
    }
    for (uint32_t k = 0; k < 4; k++) {
        const ptx_operand *v = &s->operands[k];
        if (v->kind != PTX_OPERAND_VECTOR || v->items_len != registers[k]) {
            return false;
        }
        for (uint32_t e = 0; e < registers[k]; e++) {
            o[n++] = k == 0 ? ptx_build_result(b, &v->items[e], 4, false)
                            : ptx_build_source(b, &v->items[e], 4);
        }
    }
    instruction *i = ptx_build_emit(b, exec_mma, 4, 10, o);
    if (i != NULL) {
        i->pipe = PIPE_TENSOR;
        i->flow = FLOW_ALIGNED;
        i->taint = TAINT_STRICT;
        i->kind = (uint8_t)(a | c << 4);
    }
    return true;
}
