/* sass_loops.c - finds the loops of a kernel's code by its branches.
 *
 * ptxas moves the unlucky side of a wait behind the kernel's end, whence it branches back into the
 * middle of the loop: not every branch backward is a loop. One is when its target dominates it, and
 * the loop is what reaches the branch without passing the target again. */
#include "bench/sass_flow.h"

#include "core/status.h"

#include <stdlib.h>

/* Whether instruction i jumps back to what every path to it has passed. */
static bool closes_loop(const sass_flow *f, uint32_t i)
{
    const uint32_t target = sass_flow_jump(f, i);

    sass_flow_reach(f, target, f->mark);
    return target == i || !f->mark[i];
}

/* The instructions that close a loop. */
static hone_status list_backward(const sass_flow *f, uint32_t list[SASS_MAX_BACKWARD], size_t *len,
                                 hone_error *error)
{
    size_t branches = 0, used = 0;

    for (uint32_t i = 0; i < f->len; i++) {
        const uint32_t target = sass_flow_jump(f, i);
        if (target == SASS_NOWHERE || target > i || !f->reached[i]) {
            continue;
        }
        if (++branches > SASS_MAX_BACKWARD) {
            return status_set(error, HONE_LIMIT, "cubin", 0, "more than %u branches backward",
                              SASS_MAX_BACKWARD);
        }
        if (closes_loop(f, i)) {
            list[used++] = i;
        }
    }
    *len = used;
    return HONE_OK;
}

static uint32_t products_in(const sass_code *code, const uint8_t *mark, uint32_t from, uint32_t to)
{
    uint32_t products = 0;

    for (uint32_t i = from; i <= to; i++) {
        products += mark[i] && sass_is_product(sass_word_at(code, i));
    }
    return products;
}

/* The last instruction that counts: the farthest branch to `target` before which most of the code
 * is of the loop, whose body is marked. What comes after it lies out of the way, unless products
 * do. */
static uint32_t find_end(const sass_code *code, const sass_flow *f, const uint32_t *list,
                         size_t list_len, uint32_t target)
{
    uint32_t end = SASS_NOWHERE, at = target, own = 0;

    for (size_t i = 0; i < list_len; i++) {
        if (sass_flow_jump(f, list[i]) != target) {
            continue;
        }
        for (; at <= list[i]; at++) {
            own += f->mark[at];
        }
        end = 2 * own > at - target ? list[i] : end;
    }
    const uint32_t all = products_in(code, f->mark, 0, f->len - 1);
    return end != SASS_NOWHERE && products_in(code, f->mark, target, end) == all ? end : f->len - 1;
}

/* Count the loop that the branches of `list` to its first instruction close. */
static void count_loop(const sass_code *code, const sass_flow *f, const uint32_t *list,
                       size_t list_len, sass_loop *loop)
{
    memset(f->mark, 0, f->len);
    for (size_t i = 0; i < list_len; i++) {
        if (sass_flow_jump(f, list[i]) == loop->first) {
            sass_flow_add_body(f, loop->first, list[i], f->mark);
        }
    }
    const uint32_t end = find_end(code, f, list, list_len, loop->first);
    for (uint32_t i = loop->first; i <= end; i++) {
        if (f->mark[i]) {
            sass_count_add(&loop->count, sass_word_at(code, i));
            loop->last = i;
        }
    }
}

static int compare_first(const void *a, const void *b)
{
    const sass_loop *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* One loop for each target, in order. */
static size_t make_loops(const sass_flow *f, const uint32_t *list, size_t list_len,
                         sass_loop *loops)
{
    size_t len = 0;

    for (size_t i = 0; i < list_len; i++) {
        loops[i] =
            (sass_loop){.first = sass_flow_jump(f, list[i]), .count = {.highest_register = -1}};
    }
    qsort(loops, list_len, sizeof *loops, compare_first);
    for (size_t i = 0; i < list_len; i++) {
        if (len == 0 || loops[len - 1].first != loops[i].first) {
            loops[len++] = loops[i];
        }
    }
    return len;
}

/* Loops are in order of their targets: one that lies within another comes after it. */
static void mark_inner(sass_loop *loops, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        loops[i].inner = true;
        for (size_t j = i + 1; j < len && loops[j].first <= loops[i].last; j++) {
            loops[i].inner = loops[i].inner && !(sass_macs(&loops[j].count) > 0);
        }
    }
}

hone_status sass_find_loops(const sass_code *code, sass_loop **loops, size_t *len,
                            hone_error *error)
{
    hone_status status = HONE_OK;
    sass_flow f = {.len = 0};
    uint32_t list[SASS_MAX_BACKWARD];
    sass_loop *made = NULL;
    size_t list_len = 0;

    TRY(sass_flow_open(code, &f, error));
    TRY(list_backward(&f, list, &list_len, error));
    made = calloc(list_len + 1, sizeof *made);
    if (made == NULL) {
        status = status_set(error, HONE_NO_MEMORY, "cubin", 0, "the loops of a kernel");
        goto done;
    }
    const size_t made_len = make_loops(&f, list, list_len, made);
    for (size_t i = 0; i < made_len; i++) {
        count_loop(code, &f, list, list_len, &made[i]);
    }
    mark_inner(made, made_len);
    *loops = made;
    *len = made_len;
    made = NULL;
done:
    free(made);
    sass_flow_close(&f);
    return status;
}
