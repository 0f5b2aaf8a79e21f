/* golden.h - what a probe gave on a device, as a file: the words that went in and that came out.
 *
 * Text, so that a difference can be read and reviewed: a header line of names and counts, then
 * words in hexadecimal, eight a line. */
#ifndef HONE_TESTS_DEVICE_GOLDEN_H
#define HONE_TESTS_DEVICE_GOLDEN_H

#include "core/status.h"

typedef struct golden {
    char probe[32], device[64];
    uint32_t in_each, out_each; /* words of a case */
    uint32_t cases;
    uint32_t *in, *out; /* cases * in_each, cases * out_each; the owner's, by golden_free */
} golden;

/* Zeroed words for `cases` cases. HONE_NO_MEMORY. */
hone_status golden_make(const char *probe, uint32_t cases, uint32_t in_each, uint32_t out_each,
                        golden *out, hone_error *error);
void golden_free(golden *g);

/* `folder`/`probe`.golden. HONE_IO, HONE_BAD_TEXT with the line. */
hone_status golden_write(const golden *g, const char *folder, hone_error *error);
hone_status golden_read(const char *folder, const char *probe, golden *out, hone_error *error);

/* How two of the same probe differ: words, and the largest distance in units of the last place of
 * fp32 (for probes whose words are fp32 numbers). HONE_BAD_ARGUMENT when they are not of the same
 * inputs. */
typedef struct golden_difference {
    uint64_t words, differing;
    uint64_t first; /* index of the first differing word, when there is one */
    uint64_t ulps;  /* the largest distance; UINT64_MAX: a NaN against a number */
} golden_difference;
hone_status golden_compare(const golden *a, const golden *b, golden_difference *out,
                           hone_error *error);

#endif
