/* decode_mbarrier.c - mbarrier.*. */
#include "emulator/ptx/build.h"

/* What a form says beside its operation. */
typedef struct form_words {
    ptx_space space;
    bool own; /* only the CTA's own */
    uint8_t order, scope;
} form_words;

/* Reads and takes all words but those of the operation; false when others are left. An arrival or
 * a wait that says nothing releases and acquires (`implied`). */
static bool read_words(ptx_form *f, uint8_t implied, form_words *out)
{
    static const char *const ordering[] = {"relaxed", "release", "acquire", "cta", "cluster"};
    bool own = ptx_form_take(f, "shared") || ptx_form_take(f, "shared::cta");
    bool shared = own || ptx_form_take(f, "shared::cluster");

    *out = (form_words){.space = shared ? PTX_SHARED : PTX_GENERIC, .own = own || !shared};
    out->order = ptx_form_order(f, &out->scope);
    if (out->order == 0) {
        out->order = implied;
        out->scope = SCOPE_CTA;
    }
    for (size_t n = 0; n < ARRAY_LEN(ordering); n++) {
        ptx_form_take(f, ordering[n]);
    }
    return ptx_form_take(f, "b64") && f->parts_len == 0;
}

/* {result,} [address]{, operand}: `results` in o[0] already. `operand` is a register. */
static instruction *emit(ptx_builder *b, execute run, exec_mbarrier_kind kind,
                         const form_words *words, uint32_t results, uint32_t o[3], uint32_t operand)
{
    const ptx_operand *address = &b->statement->operands[results];
    ptx_access a = {.space = words->space,
                    .bytes = 8,
                    .elements = 1,
                    .order = words->order,
                    .scope = words->scope};
    uint8_t flags = words->own ? FLAG_OWN_CTA : 0;
    int64_t offset = 0;

    if (!ptx_rules_place(b, address, &a.space)) {
        return NULL;
    }
    o[results] = ptx_build_address(b, address, &offset, &flags);
    o[results + 1] = operand;
    instruction *i = ptx_build_emit(b, run, results, operand != MACHINE_NONE ? 2 : 1, o);
    ptx_build_access(i, &a, flags, offset);
    if (i != NULL) {
        i->kind = (uint8_t)kind;
        i->elements = 0;
        i->pipe = PIPE_ASYNC;
    }
    return i;
}

static bool decode_init(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool init = ptx_form_take(f, "init");
    form_words words;
    uint32_t o[3];

    ptx_form_take(f, "inval");
    if (!read_words(f, 0, &words) || s->operands_len != (init ? 2u : 1u)) {
        return false;
    }
    uint32_t count = init ? ptx_build_source(b, &s->operands[1], 4) : MACHINE_NONE;
    words.own = true;
    emit(b, exec_mbarrier_init, init ? MBARRIER_INIT : MBARRIER_INVAL, &words, 0, o, count);
    return true;
}

/* arrive, arrive_drop: {state|_,} [address]{, count | bytes} */
static bool decode_arrive(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    uint8_t how = ptx_form_take(f, "arrive_drop") ? MBARRIER_DROPS : 0;
    form_words words;
    uint32_t o[3], operand = 0;

    ptx_form_take(f, "arrive");
    how |= ptx_form_take(f, "expect_tx") ? MBARRIER_EXPECTS : 0;
    how |= ptx_form_take(f, "noComplete") ? MBARRIER_NO_COMPLETE : 0;
    if (!read_words(f, ORDER_STRONG | ORDER_RELEASE, &words) || s->operands_len < 1) {
        return false;
    }
    bool sink = s->operands[0].kind == PTX_OPERAND_SINK;
    uint32_t results = s->operands[0].kind == PTX_OPERAND_MEMORY ? 0 : 1;
    uint32_t values = s->operands_len - results - 1;
    if (s->operands_len < results + 1 || values > 1 ||
        (values == 0 && (how & (MBARRIER_EXPECTS | MBARRIER_NO_COMPLETE)) != 0) ||
        (!words.own && !sink)) {
        return false;
    }
    if (results == 1) {
        o[0] = ptx_build_result(b, &s->operands[0], 8, false);
    }
    operand = values == 1 ? ptx_build_source(b, &s->operands[results + 1], 4)
                          : ptx_build_constant(b, 1, 4);
    instruction *i = emit(b, exec_mbarrier_arrive, MBARRIER_ARRIVE, &words, results, o, operand);
    if (i != NULL) {
        i->elements |= how;
    }
    return true;
}

static bool decode_bytes(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool expects = ptx_form_take(f, "expect_tx");
    form_words words;
    uint32_t o[3];

    ptx_form_take(f, "complete_tx");
    if (!read_words(f, ORDER_STRONG, &words) || s->operands_len != 2) {
        return false;
    }
    uint32_t bytes = ptx_build_source(b, &s->operands[1], 4);
    emit(b, exec_mbarrier_bytes, expects ? MBARRIER_EXPECT_TX : MBARRIER_COMPLETE_TX, &words, 0, o,
         bytes);
    return true;
}

/* test_wait, try_wait: predicate, [address], state | parity{, time}: the time limits how long a
 * thread sleeps, which here is never. */
static bool decode_wait(ptx_builder *b, ptx_form *f)
{
    const ptx_statement *s = b->statement;
    bool tries = ptx_form_take(f, "try_wait"), parity = false;
    form_words words;
    uint32_t o[3];

    ptx_form_take(f, "test_wait");
    parity = ptx_form_take(f, "parity");
    if (!read_words(f, ORDER_STRONG | ORDER_ACQUIRE, &words) || !words.own || s->operands_len < 3 ||
        s->operands_len > (tries ? 4u : 3u)) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 0, false);
    uint32_t operand = ptx_build_source(b, &s->operands[2], parity ? 4 : 8);
    instruction *i = emit(b, exec_mbarrier_wait, MBARRIER_WAIT, &words, 1, o, operand);
    if (i != NULL) {
        i->elements |= parity ? MBARRIER_BY_PARITY : 0;
    }
    return true;
}

static bool decode_pending(ptx_builder *b)
{
    const ptx_statement *s = b->statement;
    uint32_t o[2];

    if (s->operands_len != 2) {
        return false;
    }
    o[0] = ptx_build_result(b, &s->operands[0], 4, false);
    o[1] = ptx_build_source(b, &s->operands[1], 8);
    instruction *i = ptx_build_emit(b, exec_mbarrier_pending, 1, 1, o);
    if (i != NULL) {
        i->pipe = PIPE_ASYNC;
    }
    return true;
}

bool ptx_decode_mbarrier(ptx_builder *b, ptx_form *f)
{
    if (ptx_form_has(f, "init") || ptx_form_has(f, "inval")) {
        return decode_init(b, f);
    }
    if (ptx_form_has(f, "arrive") || ptx_form_has(f, "arrive_drop")) {
        return decode_arrive(b, f);
    }
    if (ptx_form_has(f, "expect_tx") || ptx_form_has(f, "complete_tx")) {
        return decode_bytes(b, f);
    }
    if (ptx_form_has(f, "test_wait") || ptx_form_has(f, "try_wait")) {
        return decode_wait(b, f);
    }
    return ptx_form_has(f, "pending_count") && decode_pending(b);
}

/* cp.async.mbarrier.arrive{.noinc}: [address] */
bool ptx_decode_async_arrive(ptx_builder *b, ptx_form *f)
{
    bool alone = false;
    form_words words;
    uint32_t o[3];

    ptx_form_take(f, "async");
    ptx_form_take(f, "mbarrier");
    alone = ptx_form_take(f, "noinc");
    if (!ptx_form_take(f, "arrive") || !read_words(f, ORDER_STRONG, &words) || !words.own ||
        b->statement->operands_len != 1) {
        return false;
    }
    instruction *i = emit(b, exec_async_arrive, MBARRIER_ARRIVE, &words, 0, o, MACHINE_NONE);
    if (i != NULL) {
        i->elements = alone ? MBARRIER_NO_INCREMENT : 0;
    }
    return true;
}
