/* decode_warp.c - what the lanes of a warp do together: shfl, vote, match, redux, elect. */
#include "emulator/ptx/build.h"

/* An instruction of the warp: waits for the lanes of its member mask, which is the last operand. */
static bool emit_warp(ptx_builder *b, execute run, uint32_t results, uint32_t sources,
                      const uint32_t *o, uint32_t kind)
{
    instruction *i = ptx_build_control(b, run, FLOW_WARP, results, sources, o);
    if (i != NULL) {
        i->member = o[results + sources - 1];
        i->kind = (uint8_t)kind;
        i->pipe = PIPE_ALU;
    }
    return true;
}

/* shfl.sync.mode.b32 d{|p}, a, b, c, mask */
bool ptx_decode_shuffle(ptx_builder *b, ptx_form *f)
{
    static const char *const modes[] = {"bfly", "idx", "up", "down"};
    const ptx_statement *s = b->statement;
    uint32_t o[6], results = s->operands_len == 6 ? 2 : 1;

    if (!ptx_form_has(f, "sync") || s->operands_len < 5 || s->operands_len > 6) {
        return false;
    }
    for (uint32_t mode = 0; mode < ARRAY_LEN(modes); mode++) {
        if (!ptx_form_has(f, modes[mode])) {
            continue;
        }
        for (uint32_t n = 0; n < s->operands_len; n++) {
            o[n] = n < results ? ptx_build_result(b, &s->operands[n], n == 0 ? 4 : 0, false)
                               : ptx_build_source(b, &s->operands[n], 4);
        }
        return emit_warp(b, exec_shuffle, results, 4, o, mode);
    }
    return false;
}

bool ptx_decode_vote(ptx_builder *b, ptx_form *f)
{
    static const char *const kinds[] = {"ballot", "any", "all", "uni"};
    const ptx_statement *s = b->statement;
    uint32_t o[3];

    for (uint32_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        if (!ptx_form_has(f, kinds[kind]) || !ptx_form_has(f, "sync") || s->operands_len != 3) {
            continue;
        }
        o[0] = ptx_build_result(b, &s->operands[0], kind == VOTE_BALLOT ? 4 : 0, false);
        o[1] = ptx_build_source(b, &s->operands[1], 0);
        o[2] = ptx_build_source(b, &s->operands[2], 4);
        return emit_warp(b, exec_vote, 1, 2, o, kind);
    }
    return false;
}

/* match.any.sync d, a, mask; match.all.sync d|p, a, mask */
bool ptx_decode_match(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool all = ptx_form_has(f, "all");
    uint32_t width = ptx_text_is(ptx_form_type(f), "b64") ? 8 : 4;
    uint32_t o[4], results = s->operands_len == 4 ? 2 : 1;

    if (!ptx_form_has(f, "sync") || s->operands_len < 3 || s->operands_len > 4 ||
        (!all && results == 2)) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    if (results == 2) {
        o[1] = ptx_build_result(b, &s->operands[1], 0, false);
    }
    o[results] = ptx_build_source(b, &s->operands[results], width);
    o[results + 1] = ptx_build_source(b, &s->operands[results + 1], 4);
    emit_warp(b, exec_match, results, 2, o, all);
    if (b->status == HONE_OK) {
        b->code[b->code_len - 1].element_bytes = (uint8_t)width;
    }
    return true;
}

bool ptx_decode_redux(ptx_builder *b, ptx_form *f)
{
    static const char *const kinds[] = {"add", "min", "max", "and", "or", "xor"};
    const ptx_statement *s = b->statement;
    ptx_text type = ptx_form_type(f);
    uint32_t o[3];

    if (s->operands_len != 3 ||
        (!ptx_text_is(type, "u32") && !ptx_text_is(type, "s32") && !ptx_text_is(type, "b32"))) {
        return false;
    }
    for (uint32_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        if (!ptx_form_has(f, kinds[kind])) {
            continue;
        }
        o[0] = ptx_build_result(b, &s->operands[0], 4, false);
        o[1] = ptx_build_source(b, &s->operands[1], 4);
        o[2] = ptx_build_source(b, &s->operands[2], 4);
        emit_warp(b, exec_redux, 1, 2, o, kind);
        if (b->status == HONE_OK && *type.at == 's') {
            b->code[b->code_len - 1].flags |= FLAG_SIGNED;
        }
        return true;
    }
    return false;
}

bool ptx_decode_elect(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint32_t o[3];

    if (!ptx_form_has(f, "sync") || s->operands_len != 3) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    o[1] = ptx_build_result(b, &s->operands[1], 0, false);
    o[2] = ptx_build_source(b, &s->operands[2], 4);
    return emit_warp(b, exec_elect, 2, 1, o, 0);
}

bool ptx_decode_activemask(ptx_builder *b, ptx_form *f)
{
    (void)f;
    if (b->statement->operands_len != 1) {
        return false;
    }
    uint32_t d = ptx_build_result(b, &b->statement->operands[0], 4, false);
    instruction *i = ptx_build_emit(b, exec_activemask, 1, 0, &d);
    if (i != NULL) {
        i->taint = TAINT_SELF;
    }
    return true;
}
