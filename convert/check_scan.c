/* check_scan.c - see check_scan.h. */
#include "convert/check_scan.h"

#include "core/integer.h"
#include "core/numfmt.h"

#include <math.h>
#include <string.h>

void check_counts_add(check_counts *to, const check_counts *more)
{
    for (int k = 0; k < CHECK_KINDS; k++) {
        if (to->count[k] == 0) {
            to->first[k] = more->first[k];
        }
        to->count[k] += more->count[k];
    }
    to->scales += more->scales;
    to->not_pow2 += more->not_pow2;
    to->words += more->words;
    to->float_words += more->float_words;
    to->byte_words += more->byte_words;
    to->blocks += more->blocks;
    to->topped += more->topped;
}

void check_counts_note(check_counts *c, check_kind kind, uint64_t index)
{
    if (c->count[kind]++ == 0) {
        c->first[kind] = index;
    }
}

static void scan_float(float x, uint64_t index, check_counts *c)
{
    uint8_t code = 0;

    c->scales++;
    if (isnan(x)) {
        check_counts_note(c, CHECK_NAN_, index);
    } else if (x == 0) {
        check_counts_note(c, CHECK_ZERO, index);
    } else if (x < 0) {
        check_counts_note(c, CHECK_NEGATIVE, index);
    } else if (isinf(x)) {
        check_counts_note(c, CHECK_INFINITE, index);
    } else if (!numfmt_ue8m0_exact(x, &code)) {
        check_counts_note(c, CHECK_POW2, index);
        c->not_pow2++;
    }
}

static void scan_byte(uint8_t byte, uint64_t index, check_counts *c)
{
    c->scales++;
    if (byte == 0xff) {
        check_counts_note(c, CHECK_NAN_, index);
    }
}

static bool is_between(uint8_t byte, uint8_t least, uint8_t most)
{
    return byte >= least && byte <= most;
}

/* What four bytes look like, whatever they are called. As floats, scales are 2^-47 to 2^17: their
 * last byte is 0x28 to 0x47. As ue8m0 bytes they are 2^-55 to 2^25, 0x48 to 0x98, and 0 where
 * nobody wrote. So none looks like both, and what is outside is neither. */
static void judge_word(const uint8_t *word, check_counts *c)
{
    bool bytes = is_between(word[0], 0x48, 0x98);

    for (int i = 1; i < 4; i++) {
        bytes = bytes && (word[i] == 0 || is_between(word[i], 0x48, 0x98));
    }
    c->words += (word[0] | word[1] | word[2] | word[3]) != 0;
    c->float_words += is_between(word[3], 0x28, 0x47);
    c->byte_words += bytes;
}

/* A word of four scale bytes, the lowest first. Those past the row's last are padding; those that
 * are padding under one block and scales under another, of the same shape, may be either. */
static void scan_word(const uint8_t *word, uint64_t index, const pairing *p, check_counts *c)
{
    const uint64_t words = integer_ceil_div_u64(p->scale_cols, 4);
    const uint64_t row = index / words, col = index % words * 4;

    for (uint64_t i = 0; i < 4; i++) {
        if (col + i < p->scale_cols) {
            scan_byte(word[i], row * p->scale_cols + col + i, c);
        } else if (word[i] != 0x7f && word[i] != 0 &&
                   (col + i >= p->scale_cols_most || word[i] == 0xff)) {
            check_counts_note(c, CHECK_PADDING, row * p->scale_cols + p->scale_cols - 1);
        }
    }
}

void check_scan_scales(const uint8_t *bytes, uint64_t len, const pairing *p, uint64_t index,
                       check_counts *c)
{
    const safetensors_dtype dtype = p->scale->tensor->dtype;
    const uint64_t unit = safetensors_dtype_bits(dtype) / 8;

    for (uint64_t i = 0; i < len; i++) {
        const uint8_t *at = bytes + i * unit;
        const uint16_t half = (uint16_t)(unit == 2 ? at[0] | at[1] << 8 : 0);
        float x = 0;
        switch (dtype) {
        case SAFETENSORS_F32:
            memcpy(&x, at, sizeof x);
            judge_word(at, c);
            scan_float(x, index + i, c);
            break;
        case SAFETENSORS_BF16:
            scan_float(numfmt_bf16_decode(half), index + i, c);
            break;
        case SAFETENSORS_F16:
            scan_float(numfmt_f16_decode(half), index + i, c);
            break;
        case SAFETENSORS_I32:
            judge_word(at, c);
            scan_word(at, index + i, p, c);
            break;
        default:
            scan_byte(at[0], index + i, c);
        }
    }
}

/* Codes of one row of one block: the largest magnitude that is a number, and how many are NaN. */
static uint8_t scan_run(const uint8_t *codes, uint64_t len, uint64_t *nans)
{
    uint8_t largest = 0;
    uint32_t found = 0;

    for (uint64_t i = 0; i < len; i++) {
        const uint8_t magnitude = codes[i] & 0x7f;
        const uint8_t kept = magnitude == 0x7f ? 0 : magnitude;
        largest = kept > largest ? kept : largest;
        found += magnitude == 0x7f;
    }
    *nans += found;
    return largest;
}

/* The first NaN of a run that has one. */
static uint64_t first_nan(const uint8_t *codes)
{
    uint64_t i = 0;

    while ((codes[i] & 0x7f) != 0x7f) {
        i++;
    }
    return i;
}

void check_scan_codes(const uint8_t *codes, uint64_t rows, uint64_t cols, uint64_t index,
                      uint64_t block_rows, uint64_t block_cols, check_counts *c)
{
    for (uint64_t top = 0; top < rows; top += block_rows) {
        const uint64_t bottom = rows - top < block_rows ? rows : top + block_rows;
        for (uint64_t left = 0; left < cols; left += block_cols) {
            const uint64_t width = cols - left < block_cols ? cols - left : block_cols;
            uint8_t largest = 0;
            for (uint64_t row = top; row < bottom; row++) {
                const uint8_t *run = codes + row * cols + left;
                uint64_t nans = 0;
                const uint8_t most = scan_run(run, width, &nans);
                largest = most > largest ? most : largest;
                if (nans > 0) {
                    const uint64_t at = index + row * cols + left + first_nan(run);
                    const uint64_t seen = c->count[CHECK_CODES];
                    c->first[CHECK_CODES] =
                        seen == 0 || at < c->first[CHECK_CODES] ? at : c->first[CHECK_CODES];
                    c->count[CHECK_CODES] += nans;
                }
            }
            c->blocks += largest > 0;
            c->topped += largest == 0x7e;
        }
    }
}
