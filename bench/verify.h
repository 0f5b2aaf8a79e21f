/* verify.h - whether a kernel's outputs are right: the verdict of DESIGN 6.5, with a reason.
 *
 * Works on host images only, so that it is tested with no device. */
#ifndef HONE_BENCH_VERIFY_H
#define HONE_BENCH_VERIFY_H

#include "bench/inputs.h"
#include "templates/manifest.h"

#include <stdbool.h>

/* Outputs start as this byte: 0xff.. is a NaN in every dtype, and no quantiser writes it (its NaN
 * is 0x7f). */
#define VERIFY_POISON 0xff
/* Guards on both sides of every operand on the device. */
#define VERIFY_RED_ZONE_BYTES 4096
#define VERIFY_RED_ZONE_BYTE  0xa5

/* What a kv_quant must leave, kept by a caller who compares many candidates on the same inputs.
 * Zeroed before the first comparison. */
typedef struct verify_memo {
    uint8_t *cache; /* owned; NULL: not made yet */
    uint64_t dropped, nonfinite;
} verify_memo;

void verify_memo_free(verify_memo *memo); /* an empty one is fine */

typedef struct verify_request {
    const hone_problem *problem;
    const inputs *before;        /* inputs, and outputs as they were */
    const uint8_t *const *after; /* images of written operands after the launch, in operand order;
                                    NULL for read-only */
    double tolerance; /* c of |err| <= c * u * sum|a*b| + 1 ulp of the output; plan.tolerance */
    bool wide;        /* the unit keeps 25 bits or more: u is 2^-23, else 2^-13 */
    uint64_t ctas_run, ctas_total; /* of the launch; equal when all ran */
    plan_cover cover;              /* the plan's: what a group of CTAs makes; rows 0: not said */
    uint64_t tiles_run;     /* with a cover: tiles that the groups that ran make; prove_tiles */
    const uint8_t *written; /* a sum into D on sampled CTAs: D after these CTAs ran on a D of
                               VERIFY_POISON, which any sum changes; NULL: `before` and `after` tell
                               what was written */
    int threads;            /* of the host, for a product's reference; 0: one. The same figures */
    verify_memo *memo;      /* of `before`; NULL: nothing is kept */
    bool must_tell; /* fail a product whose inputs leave every element of D as 0, or as it was */
} verify_request;

typedef struct verify_result {
    bool passed;
    char reason[240];  /* the first thing that is wrong: where, got, expected; "" when passed */
    uint64_t compared; /* output elements */
    double cosine, rel_fro, calc_diff; /* over what was compared; 1, 0, 0 for bytes that match */
    double max_err;                    /* largest |got - expected| */
    double max_err_ratio;              /* largest |err| over its bound; <= 1 passes */
} verify_result;

/* Into the figures of `worst` those of another run that are worse. */
void verify_keep_worst(verify_result *worst, const verify_result *other);

/* Compare. When only some CTAs ran, what they wrote must be whole tiles: of the plan's cover and
 * exactly as many as its groups make, else of one grid and as many as ran. A hole, a short tail or
 * a stray write shows as a count that no tile size explains. Tiles of act_quant, weight_quant and
 * fold are those of their scales, padding included, and q must be written exactly where they are.
 * The verdict is in *out; the status says only whether it could be reached (HONE_NO_MEMORY,
 * HONE_BAD_ARGUMENT, HONE_UNSUPPORTED). */
hone_status verify_outputs(const verify_request *r, verify_result *out, hone_error *error);

/* Index of the first byte of a red zone that is not VERIFY_RED_ZONE_BYTE; `len` when it is intact.
 */
size_t verify_red_zone(const uint8_t *zone, size_t len);

/* Fail a result for a reason of the caller's (a red zone, a second run with other bits); keeps an
 * earlier one. */
void verify_fail(verify_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the unit that a plan multiplies with keeps 25 fraction bits for fp8 operands: as the plan
 * says, else as the arch's mma.sync does. */
bool verify_unit_is_wide(int32_t arch, int64_t fraction_bits);

#endif
