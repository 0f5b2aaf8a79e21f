/* check_zero.h - ue8m0 scales of byte 0, 2^-127, over codes that are not zero: what an array of
 * scales holds that nobody wrote. Over zeros byte 0 is a scale as any other. */
#ifndef HONE_CONVERT_CHECK_ZERO_H
#define HONE_CONVERT_CHECK_ZERO_H

#include "convert/check_scan.h"

/* Look the pair's codes up under each byte 0 of `len` bytes of its scales, which begin at byte
 * `offset` of them: bytes, or words of four. Adds to counts, CHECK_ZERO. HONE_IO. Thread-safe. */
hone_status check_zero(const checkpoint *c, const pairing *pair, const uint8_t *scales,
                       uint64_t len, uint64_t offset, check_counts *counts, hone_error *error);

#endif
