/* verify_cover.c - which part of an output was written, and whether that part is whole tiles. */
#include "bench/verify_parts.h"

#include "core/integer.h"

#include <stdlib.h>

static hone_status cover_add(verify_cover *c, const reference_rect *rect, hone_error *error)
{
    /* a run as wide as the one right above it continues that rectangle */
    for (size_t i = c->len; i-- > 0;) {
        reference_rect *open = &c->rect[i];
        if (open->batch != rect->batch || open->row + open->rows < rect->row - 1) {
            continue;
        }
        if (open->row + open->rows == rect->row && open->column == rect->column &&
            open->columns == rect->columns) {
            open->rows++;
            return HONE_OK;
        }
    }
    if (c->len == c->capacity) {
        size_t capacity = c->capacity == 0 ? 64 : 2 * c->capacity;
        reference_rect *grown = realloc(c->rect, capacity * sizeof *grown);
        if (grown == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: written rectangles");
        }
        c->rect = grown;
        c->capacity = capacity;
    }
    c->rect[c->len++] = *rect;
    return HONE_OK;
}

/* Past this many rectangles the outputs are no tiles of anything. */
enum { COVER_MOST = 4096 };

static hone_status cover_row(verify_cover *c, const reference_rect *whole, int64_t batch,
                             int64_t row, verify_written_fn *written, const void *context,
                             hone_error *error)
{
    hone_status status = HONE_OK;
    reference_rect run = {.batch = batch, .row = row, .rows = 1};

    if (!written(context, batch, row, 0, whole->columns)) {
        return HONE_OK;
    }
    for (int64_t column = 0; column <= whole->columns; column++) {
        if (column < whole->columns && written(context, batch, row, column, 1)) {
            run.column = run.columns == 0 ? column : run.column;
            run.columns++;
        } else if (run.columns > 0) {
            TRY(cover_add(c, &run, error));
            run.columns = 0;
        }
    }
done:
    return status;
}

hone_status verify_cover_find(const reference_rect *whole, int64_t batches,
                              verify_written_fn *written, const void *context, verify_cover *out,
                              hone_error *error)
{
    hone_status status = HONE_OK;
    verify_cover made = {0};

    for (int64_t batch = 0; batch < batches; batch++) {
        for (int64_t row = 0; row < whole->rows && made.len < COVER_MOST; row++) {
            TRY(cover_row(&made, whole, batch, row, written, context, error));
        }
    }
    *out = made;
    made = (verify_cover){0};
done:
    verify_cover_free(&made);
    return status;
}

void verify_cover_free(verify_cover *c)
{
    free(c->rect);
    *c = (verify_cover){0};
}

static uint64_t tiles_covered(const verify_cover *c, int64_t high, int64_t wide)
{
    uint64_t tiles = 0;

    for (size_t i = 0; i < c->len; i++) {
        tiles += (uint64_t)(integer_ceil_div(c->rect[i].rows, high) *
                            integer_ceil_div(c->rect[i].columns, wide));
    }
    return tiles;
}

/* The largest tile edges that all rectangles' edges lie on; an edge of the whole lies on any. */
static void tile_edges(const verify_cover *c, const reference_rect *whole, int64_t *high,
                       int64_t *wide)
{
    *high = 0;
    *wide = 0;
    for (size_t i = 0; i < c->len; i++) {
        const reference_rect *r = &c->rect[i];
        *high = integer_common_divisor(*high, r->row);
        *wide = integer_common_divisor(*wide, r->column);
        *high = r->row + r->rows == whole->rows ? *high
                                                : integer_common_divisor(*high, r->row + r->rows);
        *wide = r->column + r->columns == whole->columns
                    ? *wide
                    : integer_common_divisor(*wide, r->column + r->columns);
    }
    *high = *high == 0 ? whole->rows : *high;
    *wide = *wide == 0 ? whole->columns : *wide;
}

/* Larger tiles than the whole are tiles of the whole. An edge that bounds the sampled tiles from
 * above only may be a multiple of the true one, so its divisors are tried too. */
bool verify_cover_is_tiles(const verify_cover *c, const reference_rect *whole, int64_t batches,
                           uint64_t run, uint64_t total)
{
    int64_t high = 0, wide = 0;

    tile_edges(c, whole, &high, &wide);
    for (int64_t h = 1; h <= high; h++) {
        if (high % h != 0 && high != whole->rows) {
            continue;
        }
        uint64_t down = (uint64_t)(integer_ceil_div(whole->rows, h) * batches);
        if (total % down != 0) {
            continue;
        }
        for (int64_t w = 1; w <= wide; w++) {
            bool edge = wide % w == 0 || wide == whole->columns;
            if (edge && down * (uint64_t)integer_ceil_div(whole->columns, w) == total &&
                tiles_covered(c, h, w) == run) {
                return true;
            }
        }
    }
    return false;
}

static bool on_edges(int64_t first, int64_t len, int64_t tile, int64_t whole)
{
    return first % tile == 0 && ((first + len) % tile == 0 || first + len == whole);
}

bool verify_cover_tiles(const verify_cover *c, const reference_rect *whole, const plan_cover *cover,
                        uint64_t *tiles)
{
    for (size_t i = 0; i < c->len; i++) {
        const reference_rect *r = &c->rect[i];
        if (!on_edges(r->row, r->rows, cover->rows, whole->rows) ||
            !on_edges(r->column, r->columns, cover->columns, whole->columns)) {
            return false;
        }
    }
    *tiles = tiles_covered(c, cover->rows, cover->columns);
    return true;
}

bool verify_cover_is_made(const verify_cover *c, const reference_rect *whole,
                          const plan_cover *cover, uint64_t tiles)
{
    uint64_t made = 0;

    return verify_cover_tiles(c, whole, cover, &made) && made == tiles;
}
