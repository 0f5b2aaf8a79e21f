/* verify_fold.c - folded activations, byte for byte, and the count of what changed. */
#include "bench/verify_parts.h"

#include "core/integer.h"

#include <inttypes.h>
#include <string.h>

enum { BLOCK_MOST = 128 };

typedef struct folded {
    const hone_fold *p;
    const verify_request *request;
    int64_t blocks;                     /* of a row */
    int64_t rows_padded, blocks_padded; /* of q_scale */
    uint64_t inexact;                   /* expected of the blocks that were compared */
} folded;

static folded folded_of(const verify_request *r)
{
    const hone_fold *p = &r->problem->as.fold;
    const bool packed = p->q_scale_layout == HONE_SCALES_PACKED;
    const int64_t blocks = integer_ceil_div(p->k, p->out_group);

    return (folded){.p = p,
                    .request = r,
                    .blocks = blocks,
                    .rows_padded = packed ? integer_round_up(p->m, 4) : p->m,
                    .blocks_padded = packed ? integer_round_up(blocks, 4) : blocks};
}

static uint64_t scale_offset(const folded *f, int64_t row, int64_t block)
{
    return problem_scale_offset(f->rows_padded, f->blocks_padded, (hone_dtype)f->p->scale,
                                (hone_scale_layout)f->p->q_scale_layout, row, block);
}

static bool scale_written(const void *context, int64_t batch, int64_t row, int64_t block,
                          int64_t blocks)
{
    const folded *f = context;

    (void)batch;
    for (int64_t i = block; i < block + blocks; i++) {
        const uint64_t at = scale_offset(f, row, i);
        if (f->request->after[3][at] != f->request->before->image[3][at]) {
            return true;
        }
    }
    return false;
}

static int64_t block_len(const folded *f, int64_t block)
{
    const int64_t left = f->p->k - block * f->p->out_group;

    return left < f->p->out_group ? left : f->p->out_group;
}

static bool block_written(const folded *f, int64_t row, int64_t block)
{
    const int64_t at = row * f->p->k + block * f->p->out_group;

    return memcmp(f->request->after[2] + at, f->request->before->image[2] + at,
                  (size_t)block_len(f, block)) != 0;
}

static void compare_block(folded *f, int64_t row, int64_t block, verify_result *out)
{
    const hone_fold *p = f->p;
    const uint8_t *got = f->request->after[2] + row * p->k + block * p->out_group;
    const uint8_t got_scale = f->request->after[3][scale_offset(f, row, block)];
    uint8_t expected[BLOCK_MOST], scale = 0;

    reference_fold(p, f->request->before, row, block, expected, &scale, &f->inexact);
    out->compared += (uint64_t)block_len(f, block);
    if (got_scale != scale) {
        verify_fail(out, "q_scale[%" PRId64 ",%" PRId64 "]: got 0x%02x, expected 0x%02x", row,
                    block, got_scale, scale);
    }
    for (int64_t i = 0; i < block_len(f, block) && out->passed; i++) {
        if (got[i] != expected[i]) {
            verify_fail(out, "q[%" PRId64 ",%" PRId64 "]%s: got 0x%02x, expected 0x%02x", row,
                        block * p->out_group + i,
                        got[i] == VERIFY_POISON ? " was left untouched" : "", got[i], expected[i]);
        }
    }
}

/* A block, or padding of the scales: written whole, or, where only some CTAs ran, not at all. */
static void compare_place(folded *f, int64_t row, int64_t block, verify_result *out)
{
    const bool sampled = f->request->ctas_run < f->request->ctas_total;
    const bool scale = scale_written(f, 0, row, block, 1);

    if (row >= f->p->m || block >= f->blocks) {
        const uint8_t got = f->request->after[3][scale_offset(f, row, block)];
        if ((!sampled || scale) && got != 0x7f) {
            verify_fail(out, "padding scale [%" PRId64 ",%" PRId64 "]: got 0x%02x, expected 0x7f",
                        row, block, got);
        }
    } else if (!sampled || (scale && block_written(f, row, block))) {
        compare_block(f, row, block, out);
    } else if (scale != block_written(f, row, block)) {
        verify_fail(out,
                    "row %" PRId64 ", block %" PRId64 ": %s was written and its %s left untouched",
                    row, block, scale ? "the scale" : "q", scale ? "q" : "scale");
    }
}

/* What sampled CTAs own is what they wrote of the scales: whole tiles, as many as CTAs ran. */
static hone_status check_tiles(const folded *f, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = f->request;
    const reference_rect whole = {0, 0, f->rows_padded, 0, f->blocks_padded};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, 1, scale_written, f, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, 1, r->ctas_run, r->ctas_total)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64
                    " CTAs ran, and what they wrote of the scales is not as many tiles",
                    r->ctas_run, r->ctas_total);
    }
done:
    verify_cover_free(&cover);
    return status;
}

hone_status verify_fold(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    folded f = folded_of(r);
    uint64_t before = 0, got = 0;

    if (f.p->out_group > BLOCK_MOST) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: blocks of %d", f.p->out_group);
    }
    if (r->ctas_run < r->ctas_total) {
        TRY(check_tiles(&f, out, error));
    }
    for (int64_t row = 0; row < f.rows_padded; row++) {
        for (int64_t block = 0; block < f.blocks_padded && out->passed; block++) {
            compare_place(&f, row, block, out);
        }
    }
    memcpy(&before, r->before->image[4], sizeof before);
    memcpy(&got, r->after[4], sizeof got);
    if (got != before + f.inexact) {
        verify_fail(out, "inexact: got %" PRIu64 ", expected %" PRIu64, got, before + f.inexact);
    }
done:
    return status;
}
