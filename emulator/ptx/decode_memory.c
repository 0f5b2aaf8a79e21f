/* decode_memory.c - ld, st, atom, red. Cache hints are read and dropped: they change what an access
 * costs, not what it does. */
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
                  {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
                  {"param", PTX_PARAM},        {"local", PTX_LOCAL},
                  {"const", PTX_CONST},        {"param::entry", PTX_PARAM},
                  {"param::func", PTX_PARAM}};
    *space = PTX_GENERIC;
    for (size_t n = 0; n < ARRAY_LEN(spaces); n++) {
        if (ptx_form_take(f, spaces[n].name)) {
            *space = spaces[n].space;
            return true;
        }
    }
    return false;
}

uint8_t ptx_form_order(const ptx_form *f, uint8_t *scope)
{
    static const struct {
        const char *name;
        uint8_t order, scope; /* scope: what it implies, when nothing else is said */
    } words[] = {
        {"relaxed", ORDER_STRONG, SCOPE_GPU},
        {"acquire", ORDER_STRONG | ORDER_ACQUIRE, SCOPE_GPU},
        {"release", ORDER_STRONG | ORDER_RELEASE, SCOPE_GPU},
        {"acq_rel", ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE, SCOPE_GPU},
        {"sc", ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE | ORDER_SC, SCOPE_GPU},
        {"volatile", ORDER_STRONG, SCOPE_SYS},
        {"mmio", ORDER_STRONG, SCOPE_SYS},
    };
    static const char *const scopes[] = {
        [SCOPE_CTA] = "cta", [SCOPE_CLUSTER] = "cluster", [SCOPE_GPU] = "gpu", [SCOPE_SYS] = "sys"};
    uint8_t order = 0;

    *scope = SCOPE_GPU;
    for (size_t n = 0; n < ARRAY_LEN(words); n++) {
        if (ptx_form_has(f, words[n].name)) {
            order |= words[n].order;
            *scope = words[n].scope;
        }
    }
    for (size_t n = 0; n < ARRAY_LEN(scopes); n++) {
        *scope = ptx_form_has(f, scopes[n]) ? (uint8_t)n : *scope;
    }
    return order;
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

/* The last part of the mnemonic. */
static ptx_text type_of(const ptx_statement *s)
{
    size_t at = s->name.len;

    while (at > 0 && s->name.at[at - 1] != '.') {
        at--;
    }
    return (ptx_text){s->name.at + at, s->name.len - at};
}

/* {space}{hints}{.vN}.type; false when a part is left over. */
static bool read_access(ptx_form *f, ptx_access *out)
{
    ptx_text type = ptx_form_type(f);
    int bytes = ptx_parse_type_bytes(type);

    out->own_cta = ptx_form_has(f, "shared") || ptx_form_has(f, "shared::cta");
    take_space(f, &out->space);
    out->order = ptx_form_order(f, &out->scope);
    drop_hints(f);
    ptx_form_take(f, "L2::cache_hint"); /* its operand is dropped with it */
    out->elements = ptx_form_take(f, "v2")   ? 2
                    : ptx_form_take(f, "v4") ? 4
                    : ptx_form_take(f, "v8") ? 8
                                             : 1;
    out->bytes = (uint32_t)bytes;
    out->is_signed = type.len > 0 && *type.at == 's';
    if (bytes == 16) { /* its register is a pair of 64 bits */
        out->bytes = 8;
        out->elements *= 2;
    }
    return f->parts_len == 1 && bytes >= 1 && bytes <= 16 && out->bytes * out->elements <= 32;
}

/* The registers that an access moves. */
static bool take_values(ptx_builder *b, const ptx_access *a, const ptx_operand *value, bool results,
                        uint32_t out[ELEMENTS])
{
    const ptx_operand *items = NULL;
    bool pairs = ptx_text_is(type_of(b->statement), "b128");
    uint32_t len = pairs ? a->elements / 2 : a->elements, width = a->bytes == 8 ? 8 : 4;

    if (!ptx_build_elements(value, len, &items)) {
        return false;
    }
    for (uint32_t n = 0; n < len; n++) {
        if (pairs) {
            ptx_build_pair(b, &items[n], out + 2 * n);
        } else {
            out[n] = results ? ptx_build_result(b, &items[n], width, a->is_signed)
                             : ptx_build_source(b, &items[n], width);
        }
    }
    return true;
}

bool ptx_build_elements(const ptx_operand *o, uint32_t n, const ptx_operand **items)
{
    *items = o->kind == PTX_OPERAND_VECTOR ? o->items : o;
    return o->kind == PTX_OPERAND_VECTOR ? o->items_len == n : n == 1;
}

void ptx_build_access(instruction *i, const ptx_access *a, uint8_t flags, int64_t offset)
{
    if (i == NULL) {
        return;
    }
    i->space = (uint8_t)a->space;
    i->element_bytes = (uint8_t)a->bytes;
    i->elements = (uint8_t)a->elements;
    i->flags =
        (uint8_t)(flags | (a->is_signed ? FLAG_SIGNED : 0) | (a->own_cta ? FLAG_OWN_CTA : 0));
    i->offset = offset;
    i->order = a->order;
    i->scope = a->scope;
    i->pipe = PIPE_MEMORY;
    i->taint = TAINT_SELF;
}

static bool load_kernel_param(ptx_builder *b, const ptx_access *a, const ptx_operand *address,
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
    ptx_build_access(ptx_build_emit(b, exec_load_param, a->elements, 0, results), a, 0,
                     (int64_t)at);
    return true;
}

bool ptx_decode_load(ptx_builder *b, ptx_form *f)
{
    const ptx_form said = *f;
    const ptx_statement *s = b->statement;
    ptx_access a = {0};
    uint32_t o[ELEMENTS + 1];
    uint8_t flags = 0;
    int64_t offset = 0;

    if (!read_access(f, &a) || s->operands_len < 2 ||
        !take_values(b, &a, &s->operands[0], true, o)) {
        return false;
    }
    if (!ptx_rules_access(b, &said, &s->operands[1], &a.space)) {
        return true;
    }
    if (a.space == PTX_PARAM && s->operands[1].items_len > 0 &&
        load_kernel_param(b, &a, &s->operands[1], o)) {
        return true;
    }
    o[a.elements] = ptx_build_address(b, &s->operands[1], &offset, &flags);
    ptx_build_access(ptx_build_emit(b, exec_load, a.elements, 1, o), &a, flags, offset);
    return true;
}

bool ptx_decode_store(ptx_builder *b, ptx_form *f)
{
    const ptx_form said = *f;
    const ptx_statement *s = b->statement;
    ptx_access a = {0};
    uint32_t o[ELEMENTS + 1];
    uint8_t flags = 0;
    int64_t offset = 0;

    if (ptx_form_has(f, "async")) {
        return ptx_decode_async_store(b, f);
    }
    if (!read_access(f, &a) || s->operands_len < 2 ||
        !take_values(b, &a, &s->operands[1], false, o + 1)) {
        return false;
    }
    if (!ptx_rules_access(b, &said, &s->operands[0], &a.space)) {
        return true;
    }
    o[0] = ptx_build_address(b, &s->operands[0], &offset, &flags);
    ptx_build_access(ptx_build_emit(b, exec_store, 0, 1 + a.elements, o), &a, flags, offset);
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

/* {.v2|.v4|.v8} of a vector operation: only floats add, and halves compare. */
static uint32_t take_vector(ptx_form *f)
{
    return ptx_form_take(f, "v2") ? 2 : ptx_form_take(f, "v4") ? 4 : ptx_form_take(f, "v8") ? 8 : 1;
}

static bool vector_exists(exec_atomic_kind kind, exec_atomic_type type, uint32_t bytes,
                          uint32_t elements)
{
    bool adds = kind == ATOMIC_ADD && type >= ATOMIC_F32 && type != ATOMIC_F64;
    bool compares = type >= ATOMIC_F16 && (kind == ATOMIC_MIN || kind == ATOMIC_MAX);

    return elements == 1 || ((adds || compares) && bytes * elements <= 16);
}

typedef struct atomic_form {
    ptx_access access;
    exec_atomic_kind kind;
    exec_atomic_type type;
    uint32_t values, values_at; /* source operands, and where they begin in the statement */
    bool wide;                  /* .b128: pairs of registers */
} atomic_form;

/* The type stands last, but before the operation in vector forms. */
static bool read_atomic(const ptx_builder *b, ptx_form *f, atomic_form *out)
{
    bool returns = ptx_text_is(f->base, "atom");
    ptx_access *a = &out->access;

    a->own_cta = ptx_form_has(f, "shared") || ptx_form_has(f, "shared::cta");
    take_space(f, &a->space);
    a->order = (uint8_t)(ORDER_STRONG | ptx_form_order(f, &a->scope));
    drop_hints(f);
    bool policy = ptx_form_take(f, "L2::cache_hint"); /* its operand comes last */
    a->elements = take_vector(f);
    if (!take_atomic_kind(f, &out->kind) || f->parts_len != 1) {
        return false;
    }
    int bytes = ptx_parse_type_bytes(f->parts[0]);
    out->type = atomic_type(f->parts[0]);
    out->wide = bytes == 16;
    a->bytes = (uint32_t)(bytes == 16 ? 8 : bytes);
    out->values = out->kind == ATOMIC_CAS ? 2 : 1;
    out->values_at = (returns ? 1 : 0) + 1;
    if (out->wide) {
        a->elements = 2;
        return returns && (out->kind == ATOMIC_CAS || out->kind == ATOMIC_EXCH) &&
               b->statement->operands_len == out->values_at + out->values;
    }
    return bytes >= 2 && atomic_exists(out->kind, out->type, a->bytes) &&
           vector_exists(out->kind, out->type, a->bytes, a->elements) &&
           b->statement->operands_len == out->values_at + out->values + policy;
}

/* Results, address, then each operand's elements. */
bool ptx_decode_atomic(ptx_builder *b, ptx_form *f)
{
    const ptx_form said = *f;
    const ptx_statement *s = b->statement;
    atomic_form form = {0};
    uint32_t o[3 * ELEMENTS + 1] = {0}, n = 0;
    uint8_t flags = 0;
    int64_t offset = 0;

    if (ptx_form_has(f, "async")) {
        return ptx_text_is(f->base, "red") && ptx_decode_async_reduction(b, f);
    }
    if (!read_atomic(b, f, &form)) {
        return false;
    }
    if (!ptx_rules_access(b, &said, &s->operands[form.values_at - 1], &form.access.space)) {
        return true;
    }
    uint32_t elements = form.access.elements, results = form.values_at == 2 ? elements : 0;
    if (results > 0 && !take_values(b, &form.access, &s->operands[0], true, o)) {
        return false;
    }
    n = results;
    o[n++] = ptx_build_address(b, &s->operands[form.values_at - 1], &offset, &flags);
    for (uint32_t v = 0; v < form.values; v++) {
        if (!take_values(b, &form.access, &s->operands[form.values_at + v], false, o + n)) {
            return false;
        }
        n += elements;
    }
    instruction *i = ptx_build_emit(b, exec_atomic, results, n - results, o);
    ptx_build_access(i, &form.access, flags, offset);
    if (i != NULL) {
        i->kind = (uint8_t)EXEC_ATOMIC(form.kind, form.type);
    }
    return true;
}

/* createpolicy.*: an opaque value; caches are not modelled, so that all policies are one. */
bool ptx_decode_createpolicy(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool fractional = ptx_form_has(f, "fractional"), range = ptx_form_has(f, "range");
    uint32_t most = fractional ? 2 : range ? 4 : 2;

    if ((!fractional && !range && !ptx_form_has(f, "cvt")) || s->operands_len < 1 ||
        s->operands_len > most) {
        return false;
    }
    uint32_t d = ptx_build_result(b, &s->operands[0], 8, false);
    ptx_build_op(b, "mov.b64", (uint32_t[]){d, ptx_build_constant(b, 0, 8)});
    return true;
}
