/* opt.c - lays out a warp's register image: liveness over the control flow, slots shared by
 * virtual registers that are never alive together, constants and special registers filled in.
 *
 * Sharing is sound although lanes run apart: a slot's lanes are written under masks, and each lane
 * on its own follows a path of the flow graph. */
#include "emulator/ptx/flow.h"

#include <stdlib.h>
#include <string.h>

/* Past this many bits, registers share nothing: only text made to hurt gets here. */
#define LIVENESS_BITS (UINT64_C(1) << 31)
enum { IMAGE_BYTES = 32 << 20 };

void ptx_opt_extend(ptx_builder *b, uint32_t v, uint32_t at)
{
    ptx_vreg *r = &b->vregs[v];
    r->first = at < r->first ? at : r->first;
    r->last = at > r->last || r->last == MACHINE_NONE ? at : r->last;
}

static void extend_set(ptx_builder *b, const uint64_t *set, uint32_t words, uint32_t at)
{
    for (uint32_t w = 0; w < words; w++) {
        for (uint64_t bits = set[w]; bits != 0; bits &= bits - 1) {
            ptx_opt_extend(b, w * 64 + (uint32_t)__builtin_ctzll(bits), at);
        }
    }
}

static void find_intervals(ptx_builder *b, const flow_graph *g)
{
    for (uint32_t n = 0; n < g->blocks_len; n++) {
        extend_set(b, g->in + (size_t)n * g->words, g->words, g->blocks[n].begin);
        extend_set(b, g->out + (size_t)n * g->words, g->words, g->blocks[n].end - 1);
    }
    for (uint32_t v = 0; v < b->vregs_len && g->blocks_len > 0; v++) {
        b->vregs[v].live_at_entry = g->in[v / 64] >> v % 64 & 1;
    }
}

static void touch_operands(ptx_builder *b)
{
    for (uint32_t n = 0; n < b->code_len; n++) {
        const instruction *i = &b->code[n];
        const uint32_t *o = b->operands + b->operand_at[n];
        for (uint32_t k = 0; k < (uint32_t)i->results + i->sources; k++) {
            ptx_opt_extend(b, o[k], n);
        }
        if (i->guard != MACHINE_NONE) {
            ptx_opt_extend(b, i->guard, n);
        }
    }
}

static hone_status find_lifetimes(ptx_builder *b)
{
    flow_graph g = {0};

    for (uint32_t v = 0; v < b->vregs_len; v++) {
        b->vregs[v].first = b->vregs[v].last = MACHINE_NONE;
    }
    touch_operands(b);
    if ((uint64_t)b->code_len * b->vregs_len > LIVENESS_BITS) {
        for (uint32_t v = 0; v < b->vregs_len; v++) {
            b->vregs[v].first = 0;
            b->vregs[v].last = b->code_len;
        }
        return HONE_OK;
    }
    bool good = ptx_flow_open(&g, b);
    if (good) {
        ptx_flow_find_meets(&g);
        ptx_flow_solve_live(&g);
        find_intervals(b, &g);
        good = ptx_watch_extend(b, &g);
    }
    if (!good) {
        ptx_build_fail(b, HONE_NO_MEMORY, "liveness of a kernel");
    }
    ptx_flow_close(&g);
    return b->status;
}

/* One class of slots: those that are free, as a stack. */
typedef struct slot_class {
    uint32_t *free_slots, free_len, top;
} slot_class;

static uint32_t class_of(const ptx_vreg *r)
{
    return r->width / 4u; /* 0 predicate, 1, 2 */
}

/* Registers by the first instruction of their life: heads by instruction, links by register. */
static uint32_t *bucket(const ptx_builder *b, bool by_last, uint32_t *links)
{
    uint32_t *heads = malloc(((size_t)b->code_len + 2) * sizeof *heads);

    for (uint32_t n = 0; heads != NULL && n < b->code_len + 2; n++) {
        heads[n] = MACHINE_NONE;
    }
    for (uint32_t v = b->vregs_len; heads != NULL && v-- > 0;) {
        uint32_t at = by_last ? b->vregs[v].last : b->vregs[v].first;
        if (b->vregs[v].kind == VREG_VARIABLE && at != MACHINE_NONE) {
            links[v] = heads[at];
            heads[at] = v;
        }
    }
    return heads;
}

/* Offsets within each class, from 0; a register that dies at an instruction keeps its slot through
 * it. */
static bool assign_slots(ptx_builder *b, slot_class classes[3])
{
    uint32_t *links = calloc((size_t)b->vregs_len * 2 + 1, sizeof *links);
    uint32_t *births = links != NULL ? bucket(b, false, links) : NULL;
    uint32_t *deaths = births != NULL ? bucket(b, true, links + b->vregs_len) : NULL;

    for (uint32_t n = 0; deaths != NULL && n <= b->code_len; n++) {
        for (uint32_t v = births[n]; v != MACHINE_NONE; v = links[v]) {
            slot_class *c = &classes[class_of(&b->vregs[v])];
            b->vregs[v].offset = c->free_len > 0 ? c->free_slots[--c->free_len] : c->top++;
        }
        for (uint32_t v = deaths[n]; v != MACHINE_NONE; v = links[b->vregs_len + v]) {
            slot_class *c = &classes[class_of(&b->vregs[v])];
            c->free_slots[c->free_len++] = b->vregs[v].offset;
        }
    }
    bool good = deaths != NULL;
    free(links);
    free(births);
    free(deaths);
    return good;
}

/* Where things lie: predicates, constants and special registers, then the shared slots. */
static uint64_t place_image(ptx_builder *b, const slot_class classes[3], ptx_kernel *out)
{
    uint64_t predicates = classes[0].top, at = 0;

    for (uint32_t v = 0; v < b->vregs_len; v++) {
        ptx_vreg *r = &b->vregs[v];
        if (r->width == 0 && r->kind != VREG_VARIABLE) {
            r->offset = (uint32_t)predicates++;
        }
    }
    at = (predicates * 8 + MACHINE_SLOT - 1) / MACHINE_SLOT * MACHINE_SLOT;
    out->predicate_bytes = (uint32_t)at;
    for (uint32_t v = 0; v < b->vregs_len; v++) {
        ptx_vreg *r = &b->vregs[v];
        if (r->kind != VREG_VARIABLE && r->width != 0) {
            r->offset = (uint32_t)at;
            at += r->width * (uint64_t)MACHINE_LANES;
        }
    }
    uint64_t narrow = at, wide = at + (uint64_t)classes[1].top * MACHINE_SLOT;
    for (uint32_t v = 0; v < b->vregs_len; v++) {
        ptx_vreg *r = &b->vregs[v];
        if (r->width == 0) {
            r->offset *= 8;
        } else if (r->kind == VREG_VARIABLE) {
            r->offset = (uint32_t)(r->width == 8 ? wide + r->offset * (uint64_t)MACHINE_SLOT * 2
                                                 : narrow + r->offset * (uint64_t)MACHINE_SLOT);
        }
    }
    return wide + (uint64_t)classes[2].top * MACHINE_SLOT * 2 + MACHINE_SLOT;
}

static void fill_constant(const ptx_vreg *r, ptx_kernel *out)
{
    for (uint32_t lane = 0; lane < MACHINE_LANES; lane++) {
        if (r->width == 8) {
            memcpy(out->image + r->offset + lane * 8, &r->value, 8);
        } else if (r->width == 4 || lane == 0) {
            uint32_t value = (uint32_t)r->value;
            memcpy(out->image + r->offset + lane * 4, &value, 4);
        }
    }
}

static hone_status fill_image(ptx_builder *b, ptx_kernel *out)
{
    uint32_t specials = 0;

    for (uint32_t v = 0; v < b->vregs_len; v++) {
        specials += b->vregs[v].kind == VREG_SPECIAL;
    }
    out->image = calloc(1, out->image_bytes);
    out->poison = calloc(out->image_bytes / MACHINE_SLOT, sizeof *out->poison);
    out->specials = calloc(specials + 1u, sizeof *out->specials);
    if (out->image == NULL || out->poison == NULL || out->specials == NULL) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's registers");
        return b->status;
    }
    for (uint32_t v = 0; v < b->vregs_len; v++) {
        const ptx_vreg *r = &b->vregs[v];
        uint32_t all = UINT32_MAX;
        if (r->kind == VREG_CONSTANT) {
            fill_constant(r, out);
        } else if (r->kind == VREG_SPECIAL) {
            out->specials[out->specials_len++] = (special_slot){r->offset, r->special};
        } else if (r->live_at_entry && r->width == 0) {
            memcpy(out->image + r->offset + 4, &all, 4);
            out->starts_tainted = true;
        } else if (r->live_at_entry) {
            out->poison[r->offset / MACHINE_SLOT] = all;
            out->starts_tainted = true;
        }
    }
    return HONE_OK;
}

/* Virtual registers become byte offsets; the tables move to the kernel. */
static void hand_over(ptx_builder *b, ptx_kernel *out)
{
    for (uint32_t n = 0; n < b->operands_len; n++) {
        b->operands[n] = b->vregs[b->operands[n]].offset;
    }
    for (uint32_t n = 0; n < b->code_len; n++) {
        instruction *i = &b->code[n];
        i->o = b->operands + b->operand_at[n];
        i->guard = i->guard == MACHINE_NONE ? MACHINE_NONE : b->vregs[i->guard].offset;
        i->member = i->member == MACHINE_NONE ? MACHINE_NONE : b->vregs[i->member].offset;
    }
    out->code = b->code;
    out->code_len = b->code_len;
    out->operands = b->operands;
    out->targets = b->targets;
    out->watched = b->watched;
    out->watched_len = b->watched_len;
    b->code = NULL;
    b->operands = NULL;
    b->targets = NULL;
    b->watched = NULL;
}

hone_status ptx_opt_allocate(ptx_builder *b, ptx_kernel *out)
{
    slot_class classes[3] = {{0}};
    uint32_t *stacks = malloc(((size_t)b->vregs_len * 3 + 1) * sizeof *stacks);
    hone_status status = HONE_OK;

    if (stacks == NULL) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's registers");
        return b->status;
    }
    for (uint32_t c = 0; c < 3; c++) {
        classes[c].free_slots = stacks + (size_t)c * b->vregs_len;
    }
    TRY(ptx_watch_find(b));
    TRY(find_lifetimes(b));
    if (!assign_slots(b, classes)) {
        ptx_build_fail(b, HONE_NO_MEMORY, "a kernel's registers");
        status = b->status;
        goto done;
    }
    uint64_t bytes = place_image(b, classes, out);
    if (bytes > IMAGE_BYTES) {
        ptx_build_fail(b, HONE_LIMIT, "a warp's registers take %llu bytes; the limit is %d",
                       (unsigned long long)bytes, IMAGE_BYTES);
        status = b->status;
        goto done;
    }
    out->image_bytes = (uint32_t)bytes;
    TRY(fill_image(b, out));
    hand_over(b, out);
done:
    free(stacks);
    return status;
}
