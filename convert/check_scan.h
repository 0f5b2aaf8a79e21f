/* check_scan.h - what a run of scales or codes holds: counts, and where the first lies. */
#ifndef HONE_CONVERT_CHECK_SCAN_H
#define HONE_CONVERT_CHECK_SCAN_H

#include "convert/check.h"

typedef struct check_counts {
    uint64_t count[CHECK_KINDS];
    uint64_t first[CHECK_KINDS]; /* index; meaningful where count is not 0 */
    uint64_t scales, not_pow2;
    /* Of F32 and I32 scales: words that are not 0; that look like a float; like four ue8m0 bytes */
    uint64_t words, float_words, byte_words;
    uint64_t blocks, topped; /* blocks that are not all zero; those whose largest code is 448 */
} check_counts;

/* `more` lies behind what *to has seen. */
void check_counts_add(check_counts *to, const check_counts *more);

/* One more of a kind, at `index`. */
void check_counts_note(check_counts *counts, check_kind kind, uint64_t index);

/* `len` scales of the pair's (int32 words: that many words), the first with index `index`. Bytes of
 * words are scales, those past a row's last are padding. */
void check_scan_scales(const uint8_t *bytes, uint64_t len, const pairing *pair, uint64_t index,
                       check_counts *counts);

/* Rows of e4m3 codes [rows, cols], the first code with index `index`; blocks that begin at the
 * first row are looked at whole. */
void check_scan_codes(const uint8_t *codes, uint64_t rows, uint64_t cols, uint64_t index,
                      uint64_t block_rows, uint64_t block_cols, check_counts *counts);

#endif
