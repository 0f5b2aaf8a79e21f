/* verify_prepare.c - an indexer's queries and keys made ready, byte for byte. */
#include "bench/verify_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Operands that are written, and their copies as they must be. */
enum { WEIGHTS = 4, CODES, Q_SCALE, CACHE, DROPPED, NONFINITE, OPERANDS };

typedef struct images {
    uint8_t *of[OPERANDS]; /* from WEIGHTS on */
} images;

static void images_free(images *made)
{
    for (size_t i = WEIGHTS; i < OPERANDS; i++) {
        free(made->of[i]);
    }
}

static hone_status copy_images(const inputs *in, images *made, hone_error *error)
{
    for (size_t i = WEIGHTS; i < OPERANDS; i++) {
        made->of[i] = malloc(in->operand[i].bytes + 8);
        if (made->of[i] == NULL) {
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "verify: a copy of %s",
                              in->operand[i].name);
        }
        memcpy(made->of[i], in->image[i], in->operand[i].bytes);
    }
    return HONE_OK;
}

static void compare(const verify_request *r, size_t operand, const uint8_t *expected,
                    verify_result *out)
{
    const hone_operand *o = &r->before->operand[operand];
    const uint8_t *got = r->after[operand];
    uint64_t at = 0;

    out->compared += o->bytes;
    if (memcmp(got, expected, o->bytes) == 0) {
        return;
    }
    while (got[at] == expected[at]) {
        at++;
    }
    verify_fail(out, "%s byte %" PRIu64 ": got 0x%02x, expected 0x%02x", o->name, at, got[at],
                expected[at]);
}

/* NaN is NaN. */
static void compare_weights(const verify_request *r, const float *expected, verify_result *out)
{
    const uint64_t len = r->before->operand[WEIGHTS].bytes / sizeof(float);

    for (uint64_t i = 0; i < len; i++) {
        float got = 0.0f;
        memcpy(&got, r->after[WEIGHTS] + i * sizeof got, sizeof got);
        if (got != expected[i] && (got == got || expected[i] == expected[i])) {
            verify_fail(out, "weights[%" PRIu64 "]: got %.9g, expected %.9g", i, (double)got,
                        (double)expected[i]);
            return;
        }
    }
}

hone_status verify_prepare(const verify_request *r, verify_result *out, hone_error *error)
{
    hone_status status = HONE_OK;
    images made = {{NULL}};
    reference_prepared expected = {0};

    if (r->ctas_run != r->ctas_total) {
        return status_set(error, HONE_UNSUPPORTED, NULL, 0,
                          "verify: index_prepare is proved whole; a key without a slot shows in no "
                          "output");
    }
    TRY(copy_images(r->before, &made, error));
    expected = (reference_prepared){.codes = made.of[CODES],
                                    .q_scale = made.of[Q_SCALE],
                                    .cache = made.of[CACHE],
                                    .weights = (float *)(void *)made.of[WEIGHTS]};
    memcpy(&expected.dropped, made.of[DROPPED], sizeof expected.dropped);
    memcpy(&expected.nonfinite, made.of[NONFINITE], sizeof expected.nonfinite);
    TRY(reference_prepare(&r->problem->as.index_prepare, r->before, &expected, error));
    memcpy(made.of[DROPPED], &expected.dropped, sizeof expected.dropped);
    memcpy(made.of[NONFINITE], &expected.nonfinite, sizeof expected.nonfinite);
    compare_weights(r, expected.weights, out);
    for (size_t i = CODES; i < OPERANDS; i++) {
        compare(r, i, made.of[i], out);
    }
done:
    images_free(&made);
    return status;
}
