/* inputs.h - operands of a problem on the host, drawn from a seed, poisoned wherever nothing is
 * promised.
 *
 * Payload and scale of a quantised operand are made together by core's quantiser. Padding of scale
 * layouts holds NaN patterns: who reads it is found out. Outputs start as VERIFY_POISON bytes, a
 * NaN in every dtype. */
#ifndef HONE_BENCH_INPUTS_H
#define HONE_BENCH_INPUTS_H

#include "core/problem.h"

/* From this many tokens on, one image of slots holds every corner. */
#define INPUTS_MANY_TOKENS 8
/* What counters hold before a launch. */
#define INPUTS_COUNTER 5

/* What the values are like. */
typedef enum inputs_kind {
    INPUTS_NORMAL,   /* zero-mean, like activations and weights */
    INPUTS_HOLES,    /* an all-zero row of A and an all-zero block of B, unless it is the only one;
                        scales of neighbours binades apart; blocks of +-448; every other row of A
                        and every third of B without a negative value, so that sums of one sign
                        stand beside those that cancel. For quantisers: zero groups */
    INPUTS_EXTREMES, /* payload +-448 (e2m1: +-6); groups whose largest magnitude is 448 or 384
                        times a power of two, or just above */
    INPUTS_WIDE,     /* scales times 2^-20 .. 2^20 */
    INPUTS_TINY,     /* results near 1e-12: an output of zeros is wrong */
    INPUTS_ZEROS,
    INPUTS_ONES,     /* every value 1: cases.md 1 */
    INPUTS_SPECIALS, /* for quantisers: NaN, infinities and zeros, alone in a group and all of it,
                        among magnitudes from 2^-20 to 2^20; of products as INPUTS_NORMAL */
    INPUTS_KINDS
} inputs_kind;

/* How many rows each expert of a moe_gemm has. tokens * topk of them, fewer where there is no room.
 */
typedef enum inputs_routing {
    INPUTS_ROUTE_OF_KIND,  /* HOLES: holes; WIDE: zipf; EXTREMES: uniform; TINY: one; else balanced
                            */
    INPUTS_ROUTE_BALANCED, /* as many as one another, or one more */
    INPUTS_ROUTE_UNIFORM,  /* each row's expert is drawn */
    INPUTS_ROUTE_ZIPF,     /* the n-th of a random order has a share of 1 / n^exponent */
    INPUTS_ROUTE_ONE,      /* one has all */
    INPUTS_ROUTE_HOLES,    /* the first, the last and one between them none; others 1, row_align,
                              row_align + 1 or a random number */
    INPUTS_ROUTES,
    INPUTS_ROUTE_HISTOGRAM /* a share for each: bench/routing.h's alone */
} inputs_routing;

/* Images in the order of hone_operands, each operand[i].bytes long, owned. */
typedef struct inputs {
    size_t len;
    hone_operand operand[HONE_MAX_OPERANDS];
    uint8_t *image[HONE_MAX_OPERANDS];
} inputs;

/* Draw them. The same arguments give the same bytes everywhere. kv_quant's slots are distinct; from
 * INPUTS_MANY_TOKENS on they hold the cache's last, -1, one past the cache, the last of a page and
 * INT64_MIN, and for fewer tokens the kind says which of them the first token gets. Its cache
 * starts as 0xa5 bytes, counters as INPUTS_COUNTER. kv_gather's cache holds any code, its slots are
 * kv_quant's, its tables pages in any order with some that are none and some past the cache. An
 * act_quant's rows leave some out: all, none and a part of an expert's, a quarter of listed ones.
 * Rows of a moe_gemm without an expert are NaN, their scales too; the special kind's groups hold
 * what must be clamped: labels and numbers of rows out of range, ends that fall.
 * A topk's bounds are of every length, hostile ones too, those of NORMAL whole; scores outside of
 * them are +inf, and its index starts as 0x80 bytes, which no index has.
 * An indexer's scores: NORMAL's rows have all keys, other kinds' are causal, sequences side by
 * side, few, odd or any; keys that no row reads are NaN or, of every other kind, the largest there
 * is. Pages are shuffled, nobody has page 0 where there is another, and entries of a table behind
 * those that are used are -1, 0 or no page; of the special kind some that are used, too.
 * HONE_NO_MEMORY, HONE_OVERFLOW, HONE_UNSUPPORTED for operands that are neither e4m3 nor e2m1.
 * Caller frees with inputs_free. */
hone_status inputs_make(const hone_problem *problem, inputs_kind kind, uint64_t seed, inputs *out,
                        hone_error *error);
/* The same, with rows routed otherwise, zipf with an exponent of 1; of another op than moe_gemm
 * inputs_make. No histogram. */
hone_status inputs_make_routed(const hone_problem *problem, inputs_kind kind, inputs_routing routes,
                               uint64_t seed, inputs *out, hone_error *error);
void inputs_free(inputs *in); /* NULL is fine; leaves it empty */
/* "balanced", ...; NULL past the list and of INPUTS_ROUTE_OF_KIND. */
const char *inputs_routing_name(inputs_routing routes);

struct routing; /* bench/routing.h */
/* Other rows of a moe_gemm at little cost, to be timed: `groups` by `how` (NULL: balanced), and A
 * with its scales drawn for them as INPUTS_NORMAL; the rest is shared by pointer with `in`, which
 * must outlive it. HONE_NO_MEMORY, HONE_BAD_ARGUMENT for a histogram of other experts. Caller frees
 * with inputs_free_rerouted. */
hone_status inputs_reroute(const hone_moe_gemm *p, const inputs *in, const struct routing *how,
                           uint64_t seed, inputs *out, hone_error *error);
void inputs_free_rerouted(inputs *rerouted); /* an empty one is fine */

/* The same inputs with other bytes wherever nothing may be read for a result, which must stay the
 * same to the bit (cases.md 16). The rest is shared by pointer with `in`, which must outlive it.
 *   moe_gemm   rows of A without an expert, and their scales: 448 times 2^127 instead of NaN
 *   act_quant  rows of x that the set of rows leaves out, or that no entry names: NaN
 *   kv_quant, index_prepare   rows, keys, of tokens without a slot: NaN instead of 3.4e38
 *   kv_gather  slots that no row is made of, their scales and what lies between pages: 0xff bytes,
 *              NaN in each dtype; entries of a table behind a sequence's last page: INT32_MAX
 * Of another problem *out is empty. HONE_NO_MEMORY. Caller frees with inputs_free_padded. */
hone_status inputs_repad(const hone_problem *problem, const inputs *in, inputs *out,
                         hone_error *error);
void inputs_free_padded(inputs *padded); /* an empty one is fine */

/* Other inputs of a product at little cost: the payloads of `in`, which are shared by pointer and
 * must outlive it, under scales times 2^-20 .. 2^20. HONE_NO_MEMORY. Caller frees with
 * inputs_free_rescaled. */
hone_status inputs_rescale(const hone_recipe *recipe, const inputs *in, uint64_t seed, inputs *out,
                           hone_error *error);
void inputs_free_rescaled(inputs *rescaled); /* an empty one is fine */

/* A copy of the written operands as they are before a launch; read-only ones are shared by pointer
 * and must outlive it. Free with inputs_free_outputs. */
hone_status inputs_copy_outputs(const inputs *in, inputs *out, hone_error *error);
void inputs_free_outputs(inputs *copy);

#endif
