/* check_scan.h - what a run of scales or codes holds: counts, and where the first lies. */
#ifndef HONE_CONVERT_CHECK_SCAN_H
#define HONE_CONVERT_CHECK_SCAN_H

#include "convert/check.h"

typedef struct check_counts {
    uint64_t count[CHECK_KINDS];
    uint64_t first[CHECK_KINDS]; /* index; meaningful where count is not 0 */
    uint64_t scales, not_pow2;
    uint64_t float_words;    /* int32 words that look like floats */
    uint64_t blocks, topped; /* blocks that are not all zero; those whose largest code is 448 */
} check_counts;

/* `more` lies behind what *to has seen. */
void check_counts_add(check_counts *to, const check_counts *more);

/* `len` scales of a dtype, the first with index `index`. `per_row` scales make a row (int32 words:
 * their bytes are counted as scales, those past `per_row` as padding). */
void check_scan_scales(const uint8_t *bytes, uint64_t len, safetensors_dtype dtype, uint64_t index,
                       uint64_t per_row, check_counts *counts);

/* Rows of e4m3 codes [rows, cols], the first code with index `index`; blocks that begin at the
 * first row are looked at whole. */
void check_scan_codes(const uint8_t *codes, uint64_t rows, uint64_t cols, uint64_t index,
                      uint64_t block_rows, uint64_t block_cols, check_counts *counts);

#endif
