/* sass_flow.c - the ways through a kernel's code, as its branches say. Indirect branches lead
 * nowhere here; matrix kernels have none. */
#include "bench/sass_flow.h"

#include "core/status.h"

#include <stdlib.h>

/* Operations that change the course of a warp. */
enum {
    OP_BSYNC = 0x141,
    OP_CALL = 0x144,
    OP_BSSY = 0x145,
    OP_BRA = 0x147,
    OP_BRX = 0x149,
    OP_JMP = 0x14a,
    OP_JMX = 0x14c,
    OP_EXIT = 0x14d,
    OP_RET = 0x150
};

/* Whether neither the guard nor a second predicate or a vote decides. */
static bool is_always(sass_word w)
{
    const bool uniform = (w.low >> 9 & 7) == 2; /* BRA.U: its predicate lies in bits 24-27 */

    return (w.low >> 12 & 0xf) == 7 && (w.high >> 18 & 0x3ff) == 0xe0 &&
           (!uniform || (w.low >> 24 & 0xf) == 7);
}

/* A target relative to the next instruction, in units of 4 bytes: bits 34-81; since sm_90 these
 * count in 256 units, with single ones in bits 16-23. */
static uint32_t branch_target(const sass_code *code, sass_word w, uint32_t at)
{
    const uint64_t upper = (w.low >> 34 & 0x3fffffff) | (w.high & 0x3ffff) << 30;
    const int64_t far = (int64_t)(upper << 16); /* with its sign, times 65536 */
    const int64_t units =
        code->arch >= 90 ? far / 256 + (int64_t)(w.low >> 16 & 0xff) : far / 65536;
    const int64_t target = (int64_t)at + 1 + units / 4;

    return units % 4 == 0 && target >= 0 && target < code->len ? (uint32_t)target : SASS_NOWHERE;
}

/* Where BSSY lets a warp's lanes meet: bytes behind the next instruction, in bits 32-63. */
static uint32_t sync_target(sass_word w, uint32_t at, uint32_t len)
{
    const int64_t target = (int64_t)at + 1 + (int32_t)(w.low >> 32) / SASS_INSTRUCTION_BYTES;

    return target >= 0 && target < len ? (uint32_t)target : SASS_NOWHERE;
}

/* `meets` are the targets of the nearest BSSY before, for each barrier register. */
static void read_ways(const sass_code *code, uint32_t i, uint32_t meets[16], uint32_t to[2])
{
    const sass_word w = sass_word_at(code, i);
    const uint32_t barrier = (uint32_t)(w.low >> 16) & 0xf;
    const bool unguarded = (w.low >> 12 & 0xf) == 7;
    bool falls = true;

    to[1] = SASS_NOWHERE;
    switch (sass_operation(w)) {
    case OP_BRA:
        to[1] = branch_target(code, w, i);
        falls = !is_always(w);
        break;
    case OP_CALL: /* ptxas leaves loops by it too, and never comes back */
        to[1] = branch_target(code, w, i);
        break;
    case OP_BSSY:
        meets[barrier] = sync_target(w, i, code->len);
        break;
    case OP_BSYNC:
        to[1] = meets[barrier];
        falls = to[1] == SASS_NOWHERE;
        break;
    case OP_EXIT:
        falls = !is_always(w);
        break;
    case OP_BRX:
    case OP_JMP:
    case OP_JMX:
    case OP_RET:
        falls = !unguarded;
        break;
    default:
        break;
    }
    to[0] = falls && i + 1 < code->len ? i + 1 : SASS_NOWHERE;
}

void sass_flow_reach(const sass_flow *f, uint32_t avoided, uint8_t *mark)
{
    size_t waiting = 0;

    memset(mark, 0, f->len);
    if (avoided != 0) {
        mark[0] = 1;
        f->stack[waiting++] = 0;
    }
    while (waiting > 0) {
        const uint32_t at = f->stack[--waiting];
        for (int way = 0; way < 2; way++) {
            const uint32_t to = f->to[2 * (size_t)at + (size_t)way];
            if (to != SASS_NOWHERE && to != avoided && !mark[to]) {
                mark[to] = 1;
                f->stack[waiting++] = to;
            }
        }
    }
}

void sass_flow_add_body(const sass_flow *f, uint32_t header, uint32_t source, uint8_t *mark)
{
    size_t waiting = 0;

    mark[header] = 1;
    if (!mark[source]) {
        mark[source] = 1;
        f->stack[waiting++] = source;
    }
    while (waiting > 0) {
        const uint32_t at = f->stack[--waiting];
        for (uint32_t way = f->ways_in[at]; way != SASS_NOWHERE; way = f->next_way[way]) {
            const uint32_t from = way / 2;
            if (f->reached[from] && !mark[from]) {
                mark[from] = 1;
                f->stack[waiting++] = from;
            }
        }
    }
}

void sass_flow_close(sass_flow *f)
{
    free(f->to);
    free(f->ways_in);
    free(f->next_way);
    free(f->stack);
    free(f->reached);
    free(f->mark);
}

hone_status sass_flow_open(const sass_code *code, sass_flow *out, hone_error *error)
{
    const size_t len = code->len;
    uint32_t meets[16];
    sass_flow f = {.len = code->len,
                   .to = malloc(2 * len * sizeof *f.to),
                   .ways_in = malloc(len * sizeof *f.ways_in),
                   .next_way = malloc(2 * len * sizeof *f.next_way),
                   .stack = malloc(len * sizeof *f.stack),
                   .reached = malloc(len),
                   .mark = malloc(len)};

    if (f.to == NULL || f.ways_in == NULL || f.next_way == NULL || f.stack == NULL ||
        f.reached == NULL || f.mark == NULL) {
        sass_flow_close(&f);
        return status_set(error, HONE_NO_MEMORY, "cubin", 0, "the branches of a kernel");
    }
    memset(f.ways_in, 0xff, len * sizeof *f.ways_in); /* SASS_NOWHERE */
    memset(meets, 0xff, sizeof meets);
    for (uint32_t i = 0; i < code->len; i++) {
        read_ways(code, i, meets, &f.to[2 * (size_t)i]);
    }
    for (uint32_t way = 0; way < 2 * len; way++) {
        if (f.to[way] != SASS_NOWHERE) {
            f.next_way[way] = f.ways_in[f.to[way]];
            f.ways_in[f.to[way]] = way;
        }
    }
    sass_flow_reach(&f, SASS_NOWHERE, f.reached);
    *out = f;
    return HONE_OK;
}
