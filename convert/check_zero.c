/* check_zero.c - see check_zero.h. Codes are read only where a byte is 0. */
#include "convert/check_zero.h"

#include "core/integer.h"

enum { READ_BYTES = 16 << 10 };

/* The last bytes that were read of a weight: groups of a row lie side by side. */
typedef struct reader {
    const safetensors_file *file;
    const pairing *pair;
    uint64_t begin, end;
    uint8_t bytes[READ_BYTES];
} reader;

static hone_status fetch(reader *r, uint64_t offset, uint64_t len, const uint8_t **out,
                         hone_error *error)
{
    const safetensors_tensor *t = r->pair->weight->tensor;

    if (offset < r->begin || offset + len > r->end) {
        const uint64_t more = r->pair->block_rows == 1 ? READ_BYTES : len;
        const uint64_t bytes = integer_least_u64(more, t->bytes - offset);
        hone_status status = safetensors_read(r->file, t, offset, r->bytes, bytes, error);
        if (status != HONE_OK) {
            r->begin = r->end = 0;
            return status;
        }
        r->begin = offset;
        r->end = offset + bytes;
    }
    *out = r->bytes + (offset - r->begin);
    return HONE_OK;
}

/* Whether a code of these bytes is not zero: signs apart, two codes a byte or one. */
static hone_status look(reader *r, uint64_t offset, uint64_t len, bool *found, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint8_t magnitudes = r->pair->kind == PAIRING_MXFP4 ? 0x77 : 0x7f;

    for (uint64_t at = 0; at < len && !*found; at += READ_BYTES) {
        const uint64_t bytes = integer_least_u64(READ_BYTES, len - at);
        const uint8_t *codes = NULL;
        uint8_t any = 0;
        TRY(fetch(r, offset + at, bytes, &codes, error));
        for (uint64_t i = 0; i < bytes; i++) {
            any |= codes[i];
        }
        *found = (any & magnitudes) != 0;
    }
done:
    return status;
}

/* Whether the block of scale (row, col), rows counted through the batch, has such a code. */
static hone_status look_at_block(reader *r, uint64_t row, uint64_t col, bool *found,
                                 hone_error *error)
{
    hone_status status = HONE_OK;
    const pairing *p = r->pair;
    const uint64_t codes_a_byte = p->kind == PAIRING_MXFP4 ? 2 : 1;
    const uint64_t matrix = row / p->scale_rows, left = col * p->block_cols;
    const uint64_t top = row % p->scale_rows * p->block_rows;
    const uint64_t bottom = top + integer_least_u64(p->block_rows, p->rows - top);
    const uint64_t cols = integer_least_u64(p->block_cols, p->cols - left);

    for (uint64_t i = top; i < bottom && !*found; i++) {
        const uint64_t first = (matrix * p->rows + i) * p->cols + left;
        TRY(look(r, first / codes_a_byte, cols / codes_a_byte, found, error));
    }
done:
    return status;
}

hone_status check_zero(const checkpoint *c, const pairing *p, const uint8_t *scales, uint64_t len,
                       uint64_t offset, check_counts *counts, hone_error *error)
{
    hone_status status = HONE_OK;
    const uint64_t width = p->words ? integer_ceil_div_u64(p->scale_cols, 4) * 4 : p->scale_cols;
    reader r = {.file = c->shards[p->weight->shard], .pair = p};

    for (uint64_t i = 0; i < len; i++) {
        const uint64_t row = (offset + i) / width, col = (offset + i) % width;
        bool found = false;
        if (scales[i] != 0 || col >= p->scale_cols) {
            continue;
        }
        TRY(look_at_block(&r, row, col, &found, error));
        if (found) {
            check_counts_note(counts, CHECK_ZERO, row * p->scale_cols + col);
        }
    }
done:
    return status;
}
