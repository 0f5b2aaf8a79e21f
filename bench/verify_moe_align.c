/* verify_moe_align.c - rows of a grouped product: every number of every output. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void compare(const verify_request *r, size_t operand, const int32_t *expected,
                    verify_result *out)
{
    const hone_operand *o = &r->before->operand[operand];

    for (uint64_t i = 0; i < o->bytes / 4; i++) {
        int32_t got = 0, before = 0;
        memcpy(&got, r->after[operand] + 4 * i, sizeof got);
        memcpy(&before, r->before->image[operand] + 4 * i, sizeof before);
        out->compared++;
        if (got != expected[i]) {
            verify_fail(out, "%s[%" PRIu64 "]: got %" PRId32 "%s, expected %" PRId32, o->name, i,
                        got, got == before ? " as before" : "", expected[i]);
        }
    }
}

hone_status verify_moe_align(const verify_request *r, verify_result *out, hone_error *error)
{
    const hone_operand *o = r->before->operand;
    uint64_t dropped = 0, got = 0, len = 0;
    int32_t *at[5] = {NULL};

    if (r->ctas_run != r->ctas_total) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0, "verify: moe_align is proved whole");
    }
    for (size_t i = 1; i <= 4; i++) {
        len += o[i].bytes / 4;
    }
    int32_t *expected = malloc((len + 1) * sizeof *expected);
    if (expected == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: rows of a layout");
    }
    at[1] = expected;
    for (size_t i = 2; i <= 4; i++) {
        at[i] = at[i - 1] + o[i - 1].bytes / 4;
    }
    memcpy(&dropped, r->before->image[5], sizeof dropped);
    memcpy(&got, r->after[5], sizeof got);
    reference_moe_align(&r->problem->as.moe_align, r->before, at[1], at[2], at[3], at[4], &dropped);
    for (size_t i = 1; i <= 4; i++) {
        compare(r, i, at[i], out);
    }
    if (got != dropped) {
        verify_fail(out, "dropped: got %" PRIu64 ", expected %" PRIu64, got, dropped);
    }
    free(expected);
    return HONE_OK;
}
