/* decode_tensor_map.c - cp.async.bulk.tensor and its relatives, tensormap.*, and what belongs to
 * maps. Cache hints and L2 promotion are read and dropped. */
#include "emulator/exec/tensor_copy.h"
#include "emulator/ptx/build.h"

#include <string.h>

enum { OPERANDS = 16 };

/* An address with its offset in a register of its own: these instructions take two or three. */
static uint32_t full_address(ptx_builder *b, const ptx_operand *o, uint32_t width)
{
    if (o->kind != PTX_OPERAND_MEMORY || o->items_len < 1) {
        ptx_build_fail(b, HONE_BAD_TEXT, "an address in brackets is expected");
        return 0;
    }
    const ptx_operand *a = &o->items[0];
    ptx_symbol *s = a->kind == PTX_OPERAND_NAME ? ptx_symbol_find(b, a->name, b->scope) : NULL;
    uint32_t base = ptx_build_source(b, a, width);
    bool is_register = s != NULL && s->kind == SYMBOL_REGISTER;

    if (s != NULL && s->kind == SYMBOL_ADDRESS && s->space == PTX_PARAM && width == 8) {
        uint64_t at = s->value + (uint64_t)a->offset;
        return ptx_build_constant(b, at | MACHINE_WINDOW(PTX_PARAM), 8);
    }
    if (!is_register || a->offset == 0) {
        return base;
    }
    uint32_t sum = ptx_build_vreg(b, width);
    uint32_t add = ptx_build_constant(b, (uint64_t)a->offset, width);
    ptx_build_helper(b, width == 8 ? "add.s64" : "add.s32", (uint32_t[]){sum, base, add});
    return sum;
}

/* The words of a form, taken one by one. */
typedef struct tensor_form {
    tensor_copy_kind kind;
    uint32_t modes, rank, reduction, coordinates;
    bool cache_hint;
} tensor_form;

static bool take_rank(ptx_form *f, uint32_t *rank)
{
    static const char *const names[] = {"1d", "2d", "3d", "4d", "5d"};

    for (uint32_t n = 0; n < ARRAY_LEN(names); n++) {
        if (ptx_form_take(f, names[n])) {
            *rank = n + 1;
            return true;
        }
    }
    return false;
}

static bool take_reduction(ptx_form *f, uint32_t *reduction)
{
    static const struct {
        const char *name;
        exec_atomic_kind kind;
    } names[] = {{"add", ATOMIC_ADD}, {"min", ATOMIC_MIN}, {"max", ATOMIC_MAX},
                 {"inc", ATOMIC_INC}, {"dec", ATOMIC_DEC}, {"and", ATOMIC_AND},
                 {"or", ATOMIC_OR},   {"xor", ATOMIC_XOR}};

    for (size_t n = 0; n < ARRAY_LEN(names); n++) {
        if (ptx_form_take(f, names[n].name)) {
            *reduction = names[n].kind;
            return true;
        }
    }
    return false;
}

/* The load mode; false for one that the kind of copy does not have. */
static bool take_mode(ptx_form *f, tensor_form *t)
{
    bool reads = t->kind == TENSOR_LOAD || t->kind == TENSOR_PREFETCH;
    const char *rows = reads ? "tile::gather4" : "tile::scatter4";
    const char *pixels = reads ? "im2col" : "im2col_no_offs";

    t->coordinates = t->rank;
    if (ptx_form_take(f, "tile")) {
        return true;
    }
    if (t->kind != TENSOR_REDUCE && ptx_form_take(f, rows)) {
        t->modes |= TENSOR_COPY_ROWS;
        t->coordinates = 5;
        return t->rank == 2;
    }
    if (ptx_form_take(f, pixels)) {
        t->modes |= TENSOR_COPY_IM2COL;
        return t->rank >= 3;
    }
    return true;
}

static bool take_direction(ptx_form *f, tensor_form *t)
{
    switch (t->kind) {
    case TENSOR_LOAD:
        ptx_form_take(f, "cta_group::1");
        t->modes |= ptx_form_take(f, "multicast::cluster") ? TENSOR_COPY_MULTICAST : 0;
        return (ptx_form_take(f, "shared::cluster") || ptx_form_take(f, "shared::cta")) &&
               ptx_form_take(f, "global") && ptx_form_take(f, "mbarrier::complete_tx::bytes");
    case TENSOR_PREFETCH:
        return ptx_form_take(f, "L2") && ptx_form_take(f, "global");
    case TENSOR_STORE:
    case TENSOR_REDUCE:
        break;
    }
    return ptx_form_take(f, "global") && ptx_form_take(f, "shared::cta") &&
           ptx_form_take(f, "bulk_group");
}

static bool read_form(ptx_form *f, tensor_form *t)
{
    bool reduce = ptx_form_take(f, "reduce"), prefetch = ptx_form_take(f, "prefetch");

    ptx_form_take(f, "async");
    ptx_form_take(f, "bulk");
    ptx_form_take(f, "tensor");
    t->kind = reduce                          ? TENSOR_REDUCE
              : prefetch                      ? TENSOR_PREFETCH
              : ptx_form_has(f, "bulk_group") ? TENSOR_STORE
                                              : TENSOR_LOAD;
    t->cache_hint = ptx_form_take(f, "L2::cache_hint");
    return take_rank(f, &t->rank) && (!reduce || take_reduction(f, &t->reduction)) &&
           take_direction(f, t) && take_mode(f, t) && f->parts_len == 0;
}

/* Elements of {a, b}: their registers, of `width`, into o. False when there are not `n`. */
static bool read_vector(ptx_builder *b, const ptx_operand *v, uint32_t n, uint32_t *o)
{
    const ptx_operand *items = NULL;

    if (!ptx_build_elements(v, n, &items)) {
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        o[k] = ptx_build_source(b, &items[k], 4);
    }
    return true;
}

/* load: [shared], [map, {..}], [mbarrier]{, {offsets}}{, mask}{, policy}
 * store: [map, {..}], [shared]{, policy}; prefetch: [map, {..}]{, {offsets}}{, policy} */
bool ptx_decode_bulk_tensor(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    tensor_form t = {0};
    uint32_t o[OPERANDS], n = 2, next = 0;

    if (!read_form(f, &t)) {
        return false;
    }
    bool load = t.kind == TENSOR_LOAD, prefetch = t.kind == TENSOR_PREFETCH;
    bool offsets = (t.modes & TENSOR_COPY_IM2COL) && (load || prefetch);
    bool multicast = (t.modes & TENSOR_COPY_MULTICAST) != 0;
    uint32_t given = (prefetch ? 1u : load ? 3u : 2u) + offsets + multicast + t.cache_hint;
    const ptx_operand *map = &s->operands[load], *shared = &s->operands[!load];
    if (s->operands_len != given || map->kind != PTX_OPERAND_MEMORY || map->items_len != 2) {
        return false;
    }
    o[0] = prefetch ? ptx_build_constant(b, 0, 4) : full_address(b, shared, 4);
    o[1] = full_address(b, map, 8);
    if (!read_vector(b, &map->items[1], t.coordinates, o + n)) {
        return false;
    }
    n += t.coordinates;
    next = prefetch ? 1 : 2;
    if (load) {
        o[n++] = full_address(b, &s->operands[next++], 4);
    }
    if (offsets) {
        if (!read_vector(b, &s->operands[next++], t.rank - 2, o + n)) {
            return false;
        }
        n += t.rank - 2;
    }
    if (multicast) {
        o[n++] = ptx_build_source(b, &s->operands[next++], 4);
    }
    instruction *i = ptx_build_emit(b, exec_tensor_copy, 0, n, o);
    ptx_access a = {.space = PTX_SHARED, .bytes = t.reduction, .elements = t.rank};
    ptx_build_access(i, &a, 0, 0);
    if (i != NULL) {
        i->kind = (uint8_t)t.kind;
        i->target = t.modes;
    }
    return true;
}

static const struct {
    const char *name;
    tensor_map_field field;
    uint8_t bytes;
    bool by_dimension;
} fields[TENSOR_MAP_FIELDS] = {
    {"global_address", TENSOR_MAP_FIELD_ADDRESS, 8, false},
    {"rank", TENSOR_MAP_FIELD_RANK, 4, false},
    {"box_dim", TENSOR_MAP_FIELD_BOX, 4, true},
    {"global_dim", TENSOR_MAP_FIELD_DIM, 4, true},
    {"global_stride", TENSOR_MAP_FIELD_STRIDE, 8, true},
    {"element_stride", TENSOR_MAP_FIELD_ELEMENT_STRIDE, 4, true},
    {"elemtype", TENSOR_MAP_FIELD_TYPE, 4, false},
    {"interleave_layout", TENSOR_MAP_FIELD_INTERLEAVE, 4, false},
    {"swizzle_mode", TENSOR_MAP_FIELD_SWIZZLE, 4, false},
    {"swizzle_atomicity", TENSOR_MAP_FIELD_ATOMICITY, 4, false},
    {"fill_mode", TENSOR_MAP_FIELD_FILL, 4, false},
};

static size_t take_field(ptx_form *f)
{
    size_t n = 0;

    while (n < ARRAY_LEN(fields) && !ptx_form_take(f, fields[n].name)) {
        n++;
    }
    return n;
}

/* tensormap.replace.tile.FIELD.SPACE.b1024.TYPE [map], {dimension,} value */
static bool decode_replace(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    size_t field = take_field(f);
    ptx_access a = {.space = PTX_GENERIC};
    uint8_t flags = 0;
    int64_t offset = 0;
    uint32_t o[2];

    if (field == ARRAY_LEN(fields) || !ptx_form_take(f, "tile") || !ptx_form_take(f, "b1024") ||
        !ptx_form_take(f, fields[field].bytes == 8 ? "b64" : "b32") ||
        s->operands_len != (fields[field].by_dimension ? 3u : 2u)) {
        return false;
    }
    a.space = ptx_form_take(f, "global") ? PTX_GLOBAL : a.space;
    a.space = ptx_form_take(f, "shared::cta") ? PTX_SHARED : a.space;
    const ptx_operand *order = &s->operands[1], *value = &s->operands[s->operands_len - 1];
    if (f->parts_len != 0 || (fields[field].by_dimension && (order->kind != PTX_OPERAND_NUMBER ||
                                                             order->value >= TENSOR_MAP_RANK))) {
        return false;
    }
    a.bytes = fields[field].bytes;
    a.elements = fields[field].by_dimension ? (uint32_t)order->value : 0;
    o[0] = ptx_build_address(b, &s->operands[0], &offset, &flags);
    o[1] = ptx_build_source(b, value, fields[field].bytes);
    instruction *i = ptx_build_emit(b, exec_tensor_map_replace, 0, 2, o);
    ptx_build_access(i, &a, flags, offset);
    if (i != NULL) {
        i->kind = (uint8_t)fields[field].field;
    }
    return true;
}

/* tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.SCOPE.sync.aligned
 * [global], [shared], 128 */
static bool decode_publish(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t o[2];

    if (!ptx_form_has(f, "global") || !ptx_form_has(f, "shared::cta") ||
        !ptx_form_has(f, "tensormap::generic") || !ptx_form_has(f, "release") ||
        !ptx_form_has(f, "aligned") || s->operands_len != 3 ||
        s->operands[2].kind != PTX_OPERAND_NUMBER || s->operands[2].value != TENSOR_MAP_BYTES) {
        return false;
    }
    o[0] = full_address(b, &s->operands[1], 4);
    o[1] = full_address(b, &s->operands[0], 8);
    instruction *i = ptx_build_emit(b, exec_tensor_map_publish, 0, 2, o);
    ptx_access a = {.space = PTX_SHARED};
    ptx_build_access(i, &a, 0, 0);
    if (i != NULL) {
        i->flow = FLOW_ALIGNED;
    }
    return true;
}

bool ptx_decode_tensormap(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_take(f, "replace")) {
        return decode_replace(b, f);
    }
    return ptx_form_take(f, "cp_fenceproxy") && decode_publish(b, f);
}

static void emit_on_map(ptx_builder *b, execute run)
{
    uint32_t o = full_address(b, &b->statement->operands[0], 8);
    ptx_access a = {.space = PTX_GENERIC};

    ptx_build_access(ptx_build_emit(b, run, 0, 1, &o), &a, 0, 0);
}

/* The release is of writes that every thread here sees already; the acquire names a map. */
bool ptx_decode_tensormap_fence(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;

    if (ptx_form_has(f, "release")) {
        return s->operands_len == 0 && ptx_decode_nothing(b, f);
    }
    if (!ptx_form_has(f, "acquire") || s->operands_len != 2 ||
        s->operands[1].kind != PTX_OPERAND_NUMBER || s->operands[1].value != TENSOR_MAP_BYTES) {
        return false;
    }
    emit_on_map(b, exec_tensor_map_acquire);
    return true;
}

bool ptx_decode_prefetch(ptx_builder *b, ptx_form *f)
{
    if (!ptx_form_has(f, "tensormap")) {
        return ptx_decode_nothing(b, f);
    }
    if (b->statement->operands_len != 1) {
        return false;
    }
    emit_on_map(b, exec_tensor_map_prefetch);
    return true;
}
