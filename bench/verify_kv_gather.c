/* verify_kv_gather.c - rows that were read out of a paged KV cache, byte for byte. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of an output of rows of `row` bytes. */
static void compare_rows(const verify_request *r, size_t operand, const uint8_t *expected,
                         uint64_t row, verify_result *out)
{
    const uint8_t *got = r->after[operand];
    const uint64_t len = r->before->operand[operand].bytes;
    uint64_t at = 0;

    if (len == 0 || memcmp(got, expected, len) == 0) {
        return;
    }
    while (got[at] == expected[at]) {
        at++;
    }
    verify_fail(out, "%s row %" PRIu64 ", byte %" PRIu64 ": got 0x%02x, expected 0x%02x%s",
                r->before->operand[operand].name, at / row, at % row, got[at], expected[at],
                got[at] == VERIFY_POISON ? ", left untouched" : "");
}

hone_status verify_kv_gather(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    const hone_kv_gather *p = &r->problem->as.kv_gather;
    const uint64_t len = r->before->operand[3].bytes, scales_len = r->before->operand[4].bytes;
    uint64_t dropped = 0, got = 0;
    uint8_t *expected = malloc(len + scales_len + 1), *scales = expected + len;

    if (expected == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: an image of the rows");
    }
    if (r->ctas_run != r->ctas_total) {
        status = status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: kv_gather is proved whole");
        goto done;
    }
    memcpy(expected, r->before->image[3], len);
    memcpy(scales, r->before->image[4], scales_len);
    memcpy(&dropped, r->before->image[5], sizeof dropped);
    memcpy(&got, r->after[5], sizeof got);
    TRY(reference_kv_gather(p, r->before, expected, scales, &dropped, error));
    out->compared = len + scales_len;
    compare_rows(r, 3, expected, p->tokens > 0 ? len / (uint64_t)p->tokens : 1, out);
    compare_rows(r, 4, scales, p->tokens > 0 ? scales_len / (uint64_t)p->tokens : 1, out);
    if (got != dropped) {
        verify_fail(out, "dropped: got %" PRIu64 ", expected %" PRIu64, got, dropped);
    }
done:
    free(expected);
    return status;
}
