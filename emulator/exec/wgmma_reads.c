/* wgmma_reads.c - tells the race detector what wgmmas read: tile by tile rather than 32 bytes of K
 * at a time, since a tile's rows lie side by side and one run of bytes costs little. */
#include "emulator/exec/wgmma.h"

/* A descriptor steps through the rows of a swizzle in K; the tile begins at their start. */
static wgmma_span span_of(const wgmma_matrix *m, uint32_t first, uint32_t blocks)
{
    wgmma_span s = {.matrix = *m, .first = first, .blocks = blocks};

    if (m->width > 1 && !m->across) {
        s.chunks = 3u << (m->start / 16 & (m->width - 1)) & ((1u << m->width) - 1);
        s.matrix.start = m->start / (16 * m->width) * (16 * m->width);
    }
    return s;
}

static bool same_tile(const wgmma_span *a, const wgmma_span *b)
{
    const wgmma_matrix *x = &a->matrix, *y = &b->matrix;

    return a->first == b->first && a->blocks == b->blocks && x->start == y->start &&
           x->leading == y->leading && x->stride == y->stride && x->width == y->width &&
           x->base == y->base && x->across == y->across;
}

bool wgmma_reads_flush(warp *w)
{
    wgmma_pending *p = w->wgmma;
    bool good = true;

    for (uint32_t n = 0; n < p->spans_len && good; n++) {
        const wgmma_span *s = &p->spans[n];
        good = wgmma_matrix_touch(s->task, w->cta, &s->matrix, s->first, s->blocks, s->chunks);
    }
    p->spans_len = 0;
    return good;
}

static bool add(warp *w, race_task *task, const wgmma_matrix *m, uint32_t first, uint32_t blocks)
{
    wgmma_pending *p = w->wgmma;
    wgmma_span s = span_of(m, first, blocks);

    s.task = task;
    for (uint32_t n = 0; n < p->spans_len; n++) {
        if (same_tile(&p->spans[n], &s)) {
            p->spans[n].chunks |= s.chunks;
            p->spans[n].task = task;
            return true;
        }
    }
    if (p->spans_len == WGMMA_SPANS && !wgmma_reads_flush(w)) {
        return false;
    }
    p->spans[p->spans_len++] = s;
    return true;
}

bool wgmma_reads_add(warp *w, wgmma_op *op)
{
    const instruction *i = op->i;
    uint32_t first = WGMMA_ROW_BLOCKS * (w->index % WGMMA_GROUP);
    bool from_shared = !wgmma_has(i, WGMMA_REGISTERS_A);
    wgmma_matrix a, b;

    if ((from_shared && !wgmma_matrix_open(w, i, op->a_descriptor, wgmma_has(i, WGMMA_TRANSPOSED_A),
                                           'A', first, WGMMA_ROW_BLOCKS, &a)) ||
        !wgmma_matrix_open(w, i, op->b_descriptor, wgmma_has(i, WGMMA_TRANSPOSED_B), 'B', 0,
                           i->elements, &b)) {
        return false;
    }
    op->task = race_issue(w, i, RACE_MATRIX);
    if (op->task == NULL) {
        return !w->run->out_of_memory;
    }
    return (!from_shared || add(w, op->task, &a, first, WGMMA_ROW_BLOCKS)) &&
           add(w, op->task, &b, 0, i->elements);
}
