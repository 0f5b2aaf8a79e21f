/* decode_bulk.c - cp.async.bulk between two places, its groups, st.async and red.async, fences. */
#include "emulator/ptx/build.h"

#include "emulator/ptx/parse.h"

#include <string.h>

/* What bulk reductions there are; `shared`: in shared memory of the cluster, too. */
static const struct {
    const char *op, *type;
    exec_atomic_kind kind;
    exec_atomic_type of;
    uint8_t bytes;
    bool shared;
} reductions[] = {
    {"add", "u32", ATOMIC_ADD, ATOMIC_UNSIGNED, 4, true},
    {"add", "s32", ATOMIC_ADD, ATOMIC_SIGNED, 4, true},
    {"add", "u64", ATOMIC_ADD, ATOMIC_UNSIGNED, 8, true},
    {"add", "s64", ATOMIC_ADD, ATOMIC_SIGNED, 8, false},
    {"add", "f32", ATOMIC_ADD, ATOMIC_F32, 4, false},
    {"add", "f64", ATOMIC_ADD, ATOMIC_F64, 8, false},
    {"add", "f16", ATOMIC_ADD, ATOMIC_F16, 2, false},
    {"add", "bf16", ATOMIC_ADD, ATOMIC_BF16, 2, false},
    {"min", "u32", ATOMIC_MIN, ATOMIC_UNSIGNED, 4, true},
    {"min", "s32", ATOMIC_MIN, ATOMIC_SIGNED, 4, true},
    {"min", "u64", ATOMIC_MIN, ATOMIC_UNSIGNED, 8, false},
    {"min", "s64", ATOMIC_MIN, ATOMIC_SIGNED, 8, false},
    {"min", "f16", ATOMIC_MIN, ATOMIC_F16, 2, false},
    {"min", "bf16", ATOMIC_MIN, ATOMIC_BF16, 2, false},
    {"max", "u32", ATOMIC_MAX, ATOMIC_UNSIGNED, 4, true},
    {"max", "s32", ATOMIC_MAX, ATOMIC_SIGNED, 4, true},
    {"max", "u64", ATOMIC_MAX, ATOMIC_UNSIGNED, 8, false},
    {"max", "s64", ATOMIC_MAX, ATOMIC_SIGNED, 8, false},
    {"max", "f16", ATOMIC_MAX, ATOMIC_F16, 2, false},
    {"max", "bf16", ATOMIC_MAX, ATOMIC_BF16, 2, false},
    {"inc", "u32", ATOMIC_INC, ATOMIC_UNSIGNED, 4, true},
    {"dec", "u32", ATOMIC_DEC, ATOMIC_UNSIGNED, 4, true},
    {"and", "b32", ATOMIC_AND, ATOMIC_UNSIGNED, 4, true},
    {"and", "b64", ATOMIC_AND, ATOMIC_UNSIGNED, 8, false},
    {"or", "b32", ATOMIC_OR, ATOMIC_UNSIGNED, 4, true},
    {"or", "b64", ATOMIC_OR, ATOMIC_UNSIGNED, 8, false},
    {"xor", "b32", ATOMIC_XOR, ATOMIC_UNSIGNED, 4, true},
    {"xor", "b64", ATOMIC_XOR, ATOMIC_UNSIGNED, 8, false},
};

/* Takes the operation and the type; the index of its row, or -1. */
static int take_reduction(ptx_form *f, bool shared)
{
    for (size_t n = 0; n < ARRAY_LEN(reductions); n++) {
        if (ptx_form_has(f, reductions[n].op) && ptx_form_has(f, reductions[n].type) &&
            (reductions[n].shared || !shared)) {
            ptx_form_take(f, reductions[n].op);
            ptx_form_take(f, reductions[n].type);
            return (int)n;
        }
    }
    return -1;
}

static void set_reduction(instruction *i, int row)
{
    if (i != NULL && row >= 0) {
        i->kind = (uint8_t)EXEC_ATOMIC(reductions[row].kind, reductions[row].of);
        i->element_bytes = reductions[row].bytes;
        i->offset |= BULK_REDUCES;
    }
}

typedef enum place { PLACE_NONE, PLACE_GLOBAL, PLACE_CTA, PLACE_CLUSTER } place;

/* The first of the form's places: a copy names where to before where from. */
static place take_place(ptx_form *f)
{
    static const struct {
        const char *name;
        place place;
    } places[] = {
        {"global", PLACE_GLOBAL}, {"shared::cta", PLACE_CTA}, {"shared::cluster", PLACE_CLUSTER}};

    for (uint32_t n = 0; n < f->parts_len; n++) {
        for (size_t k = 0; k < ARRAY_LEN(places); k++) {
            if (ptx_text_is(f->parts[n], places[k].name)) {
                ptx_form_take(f, places[k].name);
                return places[k].place;
            }
        }
    }
    return PLACE_NONE;
}

/* Which copies there are: from, to; the rest is marked in `flags`. */
static bool copy_flags(place to, place from, int64_t *flags)
{
    if (to == PLACE_GLOBAL && from == PLACE_CTA) {
        *flags |= BULK_TO_GLOBAL;
        return (*flags & BULK_GROUP) != 0 && (*flags & BULK_MULTICAST) == 0;
    }
    if ((to == PLACE_CLUSTER || to == PLACE_CTA) && from == PLACE_GLOBAL) {
        *flags |= BULK_FROM_GLOBAL;
        return (*flags & (BULK_GROUP | BULK_MASKED)) == 0 &&
               (to == PLACE_CLUSTER || (*flags & BULK_MULTICAST) == 0);
    }
    return to == PLACE_CLUSTER && from == PLACE_CTA &&
           (*flags & (BULK_GROUP | BULK_MASKED | BULK_MULTICAST)) == 0;
}

static instruction *emit(ptx_builder *b, execute run, uint32_t sources, const uint32_t *o,
                         int64_t flags)
{
    instruction *i = ptx_build_emit(b, run, 0, sources, o);
    if (i != NULL) {
        i->pipe = PIPE_ASYNC;
        i->taint = TAINT_SELF;
        i->offset = flags;
    }
    return i;
}

/* [to], [from], bytes{, [mbarrier]}{, CTAs}{, policy}{, bytes' mask} */
static bool emit_copy(ptx_builder *b, int64_t flags, bool hint, int row)
{
    const ptx_statement *s = b->statement;
    bool signals = (flags & BULK_GROUP) == 0;
    bool masked = (flags & (BULK_MULTICAST | BULK_MASKED)) != 0;
    uint32_t o[5], n = 3, last = s->operands_len - 1;

    if (s->operands_len != 3u + signals + masked + hint) {
        return false;
    }
    o[0] = ptx_build_place(b, &s->operands[0], flags & BULK_TO_GLOBAL ? 8 : 4);
    o[1] = ptx_build_place(b, &s->operands[1], flags & BULK_FROM_GLOBAL ? 8 : 4);
    o[2] = ptx_build_source(b, &s->operands[2], 4);
    if (signals) {
        o[n++] = ptx_build_place(b, &s->operands[3], 4);
    }
    if (masked) {
        o[n] = ptx_build_source(b, &s->operands[flags & BULK_MULTICAST ? 4 : last], 4);
        n++;
    }
    set_reduction(emit(b, exec_bulk_copy, n, o, flags), row);
    return true;
}

static bool decode_copy(ptx_builder *b, ptx_form *f)
{
    bool reduces = ptx_form_take(f, "reduce"), hint = ptx_form_take(f, "L2::cache_hint");
    place to = take_place(f), from = take_place(f);
    int64_t flags = 0;
    int row = -1;

    flags |= ptx_form_take(f, "multicast::cluster") ? BULK_MULTICAST : 0;
    flags |= ptx_form_take(f, "cp_mask") ? BULK_MASKED : 0;
    flags |= ptx_form_take(f, "bulk_group") ? BULK_GROUP : 0;
    bool signals = ptx_form_take(f, "mbarrier::complete_tx::bytes");
    if (signals == ((flags & BULK_GROUP) != 0)) {
        return false;
    }
    if (reduces) {
        row = take_reduction(f, to != PLACE_GLOBAL);
        ptx_form_take(f, "noftz");
        if (row < 0 || from != PLACE_CTA || (flags & BULK_MASKED) != 0) {
            return false;
        }
    }
    return f->parts_len == 0 && copy_flags(to, from, &flags) && emit_copy(b, flags, hint, row);
}

/* [from], bytes{, policy} */
static bool decode_bulk_prefetch(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t o[2], hint = ptx_form_take(f, "L2::cache_hint");

    if (!ptx_form_take(f, "L2") || !ptx_form_take(f, "global") || f->parts_len != 0 ||
        s->operands_len != 2 + hint) {
        return false;
    }
    o[0] = ptx_build_place(b, &s->operands[0], 8);
    o[1] = ptx_build_source(b, &s->operands[1], 4);
    emit(b, exec_bulk_prefetch, 2, o, 0);
    return true;
}

static bool decode_bulk_wait(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool reads = ptx_form_take(f, "read");

    if (f->parts_len != 0 || s->operands_len != 1 || s->operands[0].kind != PTX_OPERAND_NUMBER ||
        s->operands[0].value >= (1u << 30)) {
        return false;
    }
    instruction *i = emit(b, exec_bulk_wait, 0, NULL, (int64_t)s->operands[0].value);
    if (i != NULL) {
        i->kind = reads ? BULK_WAIT_READS : BULK_WAIT_ALL;
    }
    return true;
}

bool ptx_decode_bulk(ptx_builder *b, ptx_form *f)
{
    if (!ptx_form_take(f, "async") || !ptx_form_take(f, "bulk")) {
        return false;
    }
    if (ptx_form_take(f, "commit_group")) {
        emit(b, exec_bulk_commit, 0, NULL, 0);
        return f->parts_len == 0 && b->statement->operands_len == 0;
    }
    if (ptx_form_take(f, "wait_group")) {
        return decode_bulk_wait(b, f);
    }
    return ptx_form_take(f, "prefetch") ? decode_bulk_prefetch(b, f) : decode_copy(b, f);
}

/* {.weak|.relaxed.cluster}.shared::cluster.mbarrier::complete_tx::bytes: what both begin with. */
static bool take_async_words(ptx_form *f)
{
    ptx_form_take(f, "weak");
    ptx_form_take(f, "relaxed");
    ptx_form_take(f, "cluster");
    return ptx_form_take(f, "async") && ptx_form_take(f, "mbarrier::complete_tx::bytes") &&
           ptx_form_take(f, "shared::cluster");
}

/* [address], value, [mbarrier] */
static bool emit_async_store(ptx_builder *b, uint32_t elements, uint32_t bytes, int row)
{
    const ptx_statement *s = b->statement;
    const ptx_operand *items = NULL;
    uint32_t o[6];

    if (s->operands_len != 3 || !ptx_build_elements(&s->operands[1], elements, &items)) {
        return false;
    }
    o[0] = ptx_build_place(b, &s->operands[0], 4);
    o[1] = ptx_build_place(b, &s->operands[2], 4);
    for (uint32_t n = 0; n < elements; n++) {
        o[2 + n] = ptx_build_source(b, &items[n], bytes == 8 ? 8 : 4);
    }
    instruction *i = emit(b, exec_async_store, 2 + elements, o, 0);
    if (i != NULL) {
        i->element_bytes = (uint8_t)bytes;
    }
    set_reduction(i, row);
    return true;
}

bool ptx_decode_async_store(ptx_builder *b, ptx_form *f)
{
    int bytes = ptx_parse_type_bytes(ptx_form_type(f));

    if (!take_async_words(f)) {
        return false;
    }
    uint32_t elements = ptx_form_take(f, "v2") ? 2 : ptx_form_take(f, "v4") ? 4 : 1;
    return f->parts_len == 1 && (bytes == 4 || bytes == 8) && elements * (uint32_t)bytes <= 16 &&
           emit_async_store(b, elements, (uint32_t)bytes, -1);
}

bool ptx_decode_async_reduction(ptx_builder *b, ptx_form *f)
{
    int bytes = ptx_parse_type_bytes(ptx_form_type(f));

    if (!take_async_words(f)) {
        return false;
    }
    int row = take_reduction(f, true);
    return row >= 0 && f->parts_len == 0 && emit_async_store(b, 1, (uint32_t)bytes, row);
}

/* It makes earlier mbarrier.init known to the cluster, and nothing else. */
static bool decode_init_fence(ptx_builder *b, ptx_form *f)
{
    instruction *i = emit(b, exec_fence_init, 0, NULL, 0);

    if (i != NULL) {
        i->pipe = PIPE_CONTROL;
    }
    return ptx_form_take(f, "release") && ptx_form_take(f, "cluster") && f->parts_len == 0;
}

/* fence.proxy.async, of all spaces or of one; a direction (.acquire, .release) orders both ways. */
bool ptx_decode_fence(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_take(f, "mbarrier_init")) {
        return decode_init_fence(b, f);
    }
    if (ptx_form_has(f, "tensormap::generic")) {
        return ptx_decode_tensormap_fence(b, f);
    }
    if (!ptx_form_has(f, "proxy") || ptx_form_has(f, "alias")) {
        return ptx_decode_nothing(b, f);
    }
    if (!ptx_form_has(f, "async") && !ptx_form_has(f, "async::generic")) {
        return false;
    }
    bool shared = ptx_form_has(f, "shared::cta") || ptx_form_has(f, "shared::cluster") ||
                  ptx_form_has(f, "sync_restrict::shared::cta") ||
                  ptx_form_has(f, "sync_restrict::shared::cluster");
    instruction *i = emit(b, exec_fence_proxy, 0, NULL, 0);
    if (i != NULL) {
        i->kind = (uint8_t)(shared                      ? PTX_SHARED
                            : ptx_form_has(f, "global") ? PTX_GLOBAL
                                                        : PTX_GENERIC);
        i->pipe = PIPE_CONTROL;
    }
    return true;
}
