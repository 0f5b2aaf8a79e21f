/* decode_cluster.c - clusters: barrier.cluster, mapa, getctarank, setmaxnreg, griddepcontrol. */
#include "emulator/ptx/build.h"

#include "emulator/ptx/parse.h"

/* barrier.cluster.arrive{.release|.relaxed}{.aligned}, barrier.cluster.wait{.acquire}{.aligned} */
bool ptx_decode_cluster_barrier(ptx_builder *b, ptx_form *f)
{
    bool arrives = ptx_form_take(f, "arrive"), waits = ptx_form_take(f, "wait");
    bool aligned = ptx_form_take(f, "aligned"), relaxed = ptx_form_take(f, "relaxed");
    bool sense = ptx_form_take(f, arrives ? "release" : "acquire");

    ptx_form_take(f, "cluster");
    if (arrives == waits || (relaxed && (waits || sense)) || f->parts_len != 0 ||
        b->statement->operands_len != 0) {
        return false;
    }
    instruction *i = ptx_build_control(b, arrives ? exec_cluster_arrive : exec_cluster_wait,
                                       FLOW_BARRIER, 0, 0, NULL);
    if (i != NULL) {
        i->elements = aligned ? 0 : BAR_ANY_LANES;
        i->order =
            relaxed ? 0 : (uint8_t)(ORDER_STRONG | (arrives ? ORDER_RELEASE : ORDER_ACQUIRE));
        i->scope = SCOPE_CLUSTER;
    }
    return true;
}

/* {.shared::cluster}.u32|u64: the width of addresses; generic without the space. */
static bool address_form(ptx_form *f, uint32_t *width, bool *generic)
{
    *width = (uint32_t)ptx_parse_type_bytes(ptx_form_type(f));
    *generic = !ptx_form_take(f, "shared::cluster");
    return f->parts_len == 1 && (*width == 4 || *width == 8);
}

static void settle(instruction *i, uint32_t width, bool generic)
{
    if (i != NULL) {
        i->element_bytes = (uint8_t)width;
        i->space = generic ? PTX_GENERIC : PTX_SHARED;
        i->taint = TAINT_UNION;
    }
}

/* mapa{.space}.type d, a, rank */
bool ptx_decode_mapa(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t width = 0, o[3];
    bool generic = false;

    if (!address_form(f, &width, &generic) || s->operands_len != 3) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], width, false);
    o[1] = ptx_build_source(b, &s->operands[1], width);
    o[2] = ptx_build_source(b, &s->operands[2], 4);
    settle(ptx_build_emit(b, exec_mapa, 1, 2, o), width, generic);
    return true;
}

/* getctarank{.space}.type d, a */
bool ptx_decode_getctarank(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t width = 0, o[2];
    bool generic = false;

    if (!address_form(f, &width, &generic) || s->operands_len != 2) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    o[1] = ptx_build_source(b, &s->operands[1], width);
    settle(ptx_build_emit(b, exec_getctarank, 1, 1, o), width, generic);
    return true;
}

/* setmaxnreg.inc|dec.sync.aligned.u32 count */
bool ptx_decode_setmaxnreg(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool more = ptx_form_take(f, "inc"), less = ptx_form_take(f, "dec");

    if (more == less || !ptx_form_take(f, "sync") || !ptx_form_take(f, "aligned") ||
        !ptx_form_take(f, "u32") || f->parts_len != 0 || s->operands_len != 1 ||
        s->operands[0].kind != PTX_OPERAND_NUMBER) {
        return false;
    }
    instruction *i = ptx_build_control(b, exec_setmaxnreg, FLOW_BARRIER, 0, 0, NULL);
    if (i != NULL) {
        i->kind = more ? SETMAXNREG_INC : SETMAXNREG_DEC;
        i->offset = (int64_t)s->operands[0].value;
    }
    return true;
}

/* griddepcontrol.wait, .launch_dependents: grids run one after the other, so that what the first
 * waits for has happened; only those that look for races ask whether somebody waited. */
bool ptx_decode_griddepcontrol(ptx_builder *b, ptx_form *f)
{
    bool waits = ptx_form_take(f, "wait");

    if ((!waits && !ptx_form_take(f, "launch_dependents")) || f->parts_len != 0 ||
        b->statement->operands_len != 0) {
        return false;
    }
    if (!waits) {
        return ptx_decode_nothing(b, f);
    }
    ptx_build_control(b, exec_dependency_wait, FLOW_NEXT, 0, 0, NULL);
    return true;
}
