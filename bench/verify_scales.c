/* verify_scales.c - scales moved to where kernels read them: 32 bits at a time, and the count of
 * what has no code. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <string.h>

typedef struct scales {
    const hone_scale_pack *p;
    const verify_request *request;
    int64_t lines, rows; /* of a matrix of the output, padding included */
} scales;

static uint64_t place(const scales *s, int64_t batch, int64_t line, int64_t row)
{
    return 4 * (uint64_t)((batch * s->lines + line) * s->rows + row);
}

static bool written(const void *context, int64_t batch, int64_t line, int64_t row, int64_t rows)
{
    const scales *s = context;

    for (int64_t i = row; i < row + rows; i++) {
        const uint64_t at = place(s, batch, line, i);
        if (memcmp(s->request->after[1] + at, s->request->before->image[1] + at, 4) != 0) {
            return true;
        }
    }
    return false;
}

static void compare(const scales *s, int64_t batch, int64_t line, int64_t row, uint64_t *wrong,
                    verify_result *out)
{
    const uint32_t expected =
        reference_scale_pack(s->p, s->request->before, batch, line, row, wrong);
    uint32_t got = 0;

    memcpy(&got, s->request->after[1] + place(s, batch, line, row), sizeof got);
    out->compared++;
    if (got != expected) {
        verify_fail(out,
                    "out[%" PRId64 ",%" PRId64 ",%" PRId64 "]%s: got 0x%08" PRIx32
                    ", expected 0x%08" PRIx32,
                    batch, line, row, written(s, batch, line, row, 1) ? "" : " was left untouched",
                    got, expected);
    }
}

/* What sampled CTAs own is what they wrote: whole tiles, as many as CTAs ran. */
static hone_status check_tiles(const scales *s, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const verify_request *r = s->request;
    const reference_rect whole = {0, 0, s->lines, 0, s->rows};
    verify_cover cover = {0};

    TRY(verify_cover_find(&whole, s->p->batch, written, s, &cover, error));
    if (!verify_cover_is_tiles(&cover, &whole, s->p->batch, r->ctas_run, r->ctas_total)) {
        verify_fail(out,
                    "%" PRIu64 " of %" PRIu64
                    " CTAs ran, and what they wrote is not as many tiles: some were left untouched "
                    "or written by the wrong CTA",
                    r->ctas_run, r->ctas_total);
    }
done:
    verify_cover_free(&cover);
    return status;
}

hone_status verify_scale_pack(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    scales s = {.p = &r->problem->as.scale_pack, .request = r};
    const bool sampled = r->ctas_run < r->ctas_total;
    uint64_t wrong = 0, before = 0, got = 0;

    reference_scale_pack_shape(s.p, &s.lines, &s.rows);
    if (sampled) {
        TRY(check_tiles(&s, out, error));
    }
    for (int64_t i = 0; i < s.p->batch * s.lines * s.rows && out->passed; i++) {
        const int64_t line = i / s.rows % s.lines, batch = i / s.rows / s.lines, row = i % s.rows;
        if (!sampled || written(&s, batch, line, row, 1)) {
            compare(&s, batch, line, row, &wrong, out);
        }
    }
    memcpy(&before, r->before->image[3], sizeof before);
    memcpy(&got, r->after[3], sizeof got);
    if (got != before + wrong) {
        verify_fail(out, "wrong: got %" PRIu64 ", expected %" PRIu64, got, before + wrong);
    }
done:
    return status;
}
