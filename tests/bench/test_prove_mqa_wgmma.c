/* test_prove_mqa_wgmma.c - an indexer's scores by wgmma on emulated Hopper GPUs: pinned configs
 * that must be proved, and mutants of the templates that must not. */
#include "tests/bench/mqa_pages.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

#define PREFILL "mqa_logits/sm90_wgmma"
#define DECODE  "mqa_logits_paged/sm90_wgmma"
#define FP8     "record=index_132-split-raw_amax"
#define FP4     "record=index_68-split-pow2_tiny"
#define PAGED(groups, unit, split, stages, slots, residency)                                       \
    "groups=" #groups " unit=" #unit " split_tiles=" #split " stages=" #stages " slots=" #slots    \
    " residency=" #residency
#define SIDE_BY_SIDE(tokens, groups, unit, chunk, stages, residency)                               \
    "tokens_cta=" #tokens " groups=" #groups " unit=" #unit " chunk=" #chunk " stages=" #stages    \
    " residency=" #residency

static const struct {
    const char *device, *problem, *template, *config;
} rows[] = {
    {"emu:h20", "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=8," FP8,
     DECODE, PAGED(1, 2, 1, 2, 1, 1)},
    {"emu:h20",
     "mqa_logits_paged:batch=7,width=530,pages=99,next_n=3,heads=32,page_size=32,table_stride=20,"
     "page_stride=4240,out=bf16," FP8,
     DECODE, PAGED(2, 3, 2, 3, 2, 1)},
    {"emu:h200", "mqa_logits_paged:batch=5,width=1100,pages=60,next_n=6,heads=8,page_size=128," FP8,
     DECODE, PAGED(1, 3, 8, 4, 2, 2)},
    {"emu:h20", "mqa_logits_paged:batch=5,width=1100,pages=60,next_n=1,heads=64,page_size=256," FP8,
     DECODE, PAGED(3, 1, 2, 3, 2, 1)},
    {"emu:h20", "mqa_logits_paged:batch=160,width=270,pages=90,next_n=3,heads=8," FP8, DECODE,
     PAGED(4, 1, 1, 2, 1, 1)},
    {"emu:h200", "mqa_logits_paged:batch=3,width=300,pages=30,next_n=8,heads=64," FP8, DECODE,
     PAGED(2, 4, 1, 2, 1, 1)},
    {"emu:h20", "mqa_logits_paged:batch=9,width=257,pages=66,next_n=5,heads=16,out=bf16," FP8,
     DECODE, PAGED(4, 5, 1, 3, 2, 1)},
    {"emu:h20", "mqa_logits_paged:batch=9,width=400,pages=150,next_n=7,heads=32,page_size=32," FP8,
     DECODE, PAGED(2, 7, 1, 2, 2, 1)},
    /* tiles of a share whose pages stand in more than one read of the table */
    {"emu:h20", "mqa_logits_paged:batch=4,width=2100,pages=290,next_n=2,heads=8,page_size=32," FP8,
     DECODE, PAGED(4, 1, 8, 2, 1, 1)},
    /* sampled */
    {"emu:h20", "mqa_logits_paged:batch=16,width=16384,pages=2049,next_n=2,heads=64," FP8, DECODE,
     PAGED(2, 2, 1, 4, 1, 1)},
    {"emu:h20", "mqa_logits:tokens=21,keys=331,heads=32,stride=340", PREFILL,
     SIDE_BY_SIDE(4, 1, 2, 256, 2, 1)},
    {"emu:h200", "mqa_logits:tokens=19,keys=400,heads=64,dims=64,clean=1,out=bf16", PREFILL,
     SIDE_BY_SIDE(2, 2, 1, 256, 3, 1)},
    {"emu:h20",
     "mqa_logits:tokens=18,keys=600,width=300,stride=301,heads=8,dims=32,span=compressed,clean=1",
     PREFILL, SIDE_BY_SIDE(16, 1, 8, 256, 4, 2)},
    {"emu:h20", "mqa_logits:tokens=17,keys=257,heads=16,out=bf16,stride=259", PREFILL,
     SIDE_BY_SIDE(8, 4, 4, 256, 2, 1)},
    {"emu:h200", "mqa_logits:tokens=16,keys=600,heads=32", PREFILL,
     SIDE_BY_SIDE(16, 1, 4, 1024, 2, 1)},
    /* sampled */
    {"emu:h20", "mqa_logits:tokens=256,keys=16384,heads=64", PREFILL,
     SIDE_BY_SIDE(4, 2, 2, 512, 2, 1)},
    /* e2m1 */
    {"emu:h20", "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=8," FP4,
     DECODE, PAGED(1, 2, 1, 3, 2, 1)},
    {"emu:h200",
     "mqa_logits_paged:batch=7,width=530,pages=99,next_n=3,heads=32,page_size=32,page_stride=2192,"
     "out=bf16," FP4,
     DECODE, PAGED(2, 1, 1, 2, 1, 1)},
    {"emu:h20", "mqa_logits_paged:batch=5,width=1100,pages=60,next_n=1,heads=64,page_size=256," FP4,
     DECODE, PAGED(2, 1, 1, 2, 2, 1)},
    {"emu:h20", "mqa_logits_paged:batch=4,width=2100,pages=290,next_n=2,heads=8,page_size=32," FP4,
     DECODE, PAGED(4, 1, 8, 2, 1, 1)},
    {"emu:h20", "mqa_logits:tokens=21,keys=331,heads=32,element=e2m1,stride=340", PREFILL,
     SIDE_BY_SIDE(4, 1, 2, 256, 2, 1)},
    {"emu:h200",
     "mqa_logits:tokens=19,keys=270,width=200,heads=8,dims=64,element=e2m1,clean=1,out=bf16,span="
     "compressed",
     PREFILL, SIDE_BY_SIDE(8, 2, 4, 256, 3, 1)},
    {"emu:h20", "mqa_logits_paged:batch=16,width=2049,pages=600,heads=8," FP4, DECODE,
     PAGED(4, 1, 1, 4, 1, 1)},
    /* sampled */
    {"emu:h200", "mqa_logits_paged:batch=4,width=131072,pages=8193,next_n=6,heads=32," FP4, DECODE,
     PAGED(2, 6, 8, 6, 1, 1)},
};

START_TEST(pinned_configs_are_proved)
{
    if (!prove_fixture_leaves(_i, 4, rows[_i].template, NULL)) {
        prove_fixture_hold(rows[_i].device, rows[_i].problem, rows[_i].template, rows[_i].config,
                           NULL);
    }
}
END_TEST

/* Faults seeded into the templates; `row` of the configs. */
static const prove_mutant mutants[] = {
    {"the maximum is forgotten", 0, "fmaxf(x[0], 0.0f)", "x[0]"},
    {"a lower key's other heads", 0, "sum.y = fmaf(fmaxf(x[3]", "sum.y = fmaf(fmaxf(x[1]"},
    {"half of the heads", 0, "(later ? b : a) + __shfl_xor_sync(0xffffffffu, later ? a : b, 2)",
     "(later ? b : a)"},
    {"half of the heads of one token", 3, "a + __shfl_xor_sync(0xffffffffu, a, 2)", "a"},
    {"tokens of a pair change places", 0, "(later ? b : a) +", "(later ? a : b) +"},
    {"the last dims are left out", 1, "wgmma_multiply<true>(part, keys + s * 2",
     "if (s < Dims / 32 - 1)\n            wgmma_multiply<true>(part, keys + s * 2"},
    {"a tile is read before it is there", 0,
     "barrier_wait<false>(barriers.full(tile.place), tile.parity);", ""},
    {"a tile is overwritten while it is read", 0,
     "barrier_wait<false>(barriers.free(turn.place), turn.parity ^ 1);", ""},
    {"a tile is given away too early", 8, "t + C.unit == C.next_n", "t == 0"},
    {"queries are overwritten while they are read", 4,
     "barrier_wait<false>(barriers.done(slot.place), slot.parity ^ 1);\n        if", "if"},
    {"queries are read before they are there", 4,
     "barrier_wait<false>(barriers.asked(slot.place), slot.parity);", ""},
    {"one page further", 0, "table[j >> cache.page_shift]", "table[(j >> cache.page_shift) ^ 1]"},
    {"the first part of each page", 2, "(from + tile * S::kKeys + lane * C.box) & mask",
     "0 & mask"},
    {"the scales of a page's first part", 3, "full, within, 0, z)", "full, 0, 0, z)"},
    {"pages that are none count as zeros", 0, "there ? score : minus_infinity()", "score"},
    {"pages past the cache are followed", 0, "u32(page) < u32(cache.pages)", "page >= 0"},
    {"another part's page is missing", 1, "1u << key / C.box", "1u"},
    {"keys past the length are stored", 0, "seat.key < asked.job.lengths[token]",
     "seat.key < asked.job.past"},
    {"all tokens have the first one's length", 0, "asked.job.lengths[token]",
     "asked.job.lengths[0]"},
    {"a length past the row is believed", 0, "+ lane], all.width)", "+ lane], 0x7fffffff)"},
    {"the first token's weights", 4, "weight + t * C.heads,", "weight,"},
    {"the first token's queries", 4, "asked.queries + (t * C.heads * S::kDims >> 4)",
     "asked.queries"},
    {"the next key's scale", 0, "load_word(words + seat.key * 4)",
     "load_word(words + (seat.key ^ 1) * 4)"},
    {"the second part of the queries is the first", 5, "asked, 0, at,", "asked, 0, 0,"},
    {"tables are read a tile at a time", 8, "j += kTilesOfTable * S::kKeys", "j += S::kKeys"},
    {"the first request's rows", 2, "i64(job.request) * C.next_n * stride", "0"},
    {"the rest of the splits is nobody's", 0, "units = quotient + (cta < rest)",
     "units = quotient"},
    {"requests before are forgotten", 2, "left = unit - before", "left = unit"},
    {"the second request of a share is left out", 4, "share.request++, share.split = 0",
     "share.request += 2, share.split = 0"},
    {"large: a share's last split is left out", 9, "from + run * C.split",
     "from + (run - 1) * C.split"},
    {"a range's last key is left out", 10, "key < r.to)", "key < r.to - 1)"},
    {"a key past the range is stored", 10, "key < r.to)", "key <= r.to)"},
    {"the key before a range is stored", 10, "key >= r.from &&", "key >= r.from - 1 &&"},
    {"bounds below 0 are not clamped", 12, "min(max(start, 0), keys)", "min(start, keys)"},
    {"columns before a range stay", 11, "c < live || c >= live + len", "c >= live + len"},
    {"a compressed key keeps its column", 12, "key - r.from : key", "key : key"},
    {"a stage is read before it is there", 10,
     "barrier_wait<false>(barriers.full(tile.place), tile.parity);", ""},
    {"queries are read before they are there", 13, "barrier_wait<false>(barriers.queries(), 0);",
     ""},
    {"a stage is overwritten while it is read", 14,
     "barrier_wait<false>(barriers.free(turn.place), turn.parity ^ 1);", ""},
    {"a stage is given away too early", 14, "t + C.unit == C.tokens", "t == 0"},
    {"the next block's queries", 10, "sources, first * C.heads", "sources, (first + 1) * C.heads"},
    {"the first tokens' weights", 10, "weight + t * C.heads,", "weight,"},
    {"the other part of the queries", 14, "from.q, queries, 0, head + at, 0",
     "from.q, queries, 0, head, 0"},
    {"keys of 64 dims as of 128", 11, "Span == 64 ? 2 : 3", "1"},
    {"large: a chunk's last tile is left out", 15, "past = min(all.to, chunk + C.chunk)",
     "past = min(all.to, chunk + C.chunk - S::kKeys)"},
    {"nibbles: a sign is lost", 16, "with_signs(of(magnitudes), ",
     "with_signs(of(magnitudes), 0 * "},
    {"nibbles: low ones twice", 16, "of(magnitudes >> 16)", "of(magnitudes)"},
    {"nibbles: the queries' halves change places", 17, "head, s * 32);", "head, s * 32 + 16);"},
    {"nibbles: the first group's scale", 16, "0x4440u + lane % 4 * (Dims / 32) / 4", "0x4440u"},
    {"nibbles: an upper key's anchor for a lower one", 18,
     "threadIdx.x % 2 != 0 ? anchor[1] : anchor[0]", "anchor[0]"},
    {"nibbles: a step's product is the first one's", 16, "rows.fragment[s], queries + s * 2",
     "rows.fragment[s], queries"},
    {"nibbles: a query's anchor is not in its weight", 17, "weight = folds ? with : weight", ""},
    {"nibbles: queries without an anchor are folded", 17, "folds = high - low <= 2 * kFold &&",
     "folds ="},
    {"nibbles: keys without an anchor are folded", 16,
     "beyond(codes[0], t[0]) || beyond(codes[1], t[1]) || still", "still"},
    {"nibbles: lower keys without an anchor are folded", 18, "|| beyond(codes[1], t[1])", ""},
    {"nibbles: magnitudes from 2 on are not folded", 16, "u32(t) * 0x04040404u",
     "kFold * 0x04040404u"},
    {"nibbles: keys are folded with queries that are not", 17, "wide = wide_queries;",
     "wide = false;"},
    {"nibbles: apart: groups have the first one's scale of queries", 17,
     "scales + g * Stride + head", "scales + head"},
    {"nibbles: apart: an upper key's scale for a lower one", 18, "fmaf(part[2] * lower",
     "fmaf(part[2] * upper"},
    {"nibbles: apart: other groups' codes", 19, "own ? raw[s][0] : 0", "raw[s][0]"},
    {"nibbles: apart: eight heads' weights", 17, "head_sums<8>(dot, 0, weight + head)",
     "head_sums<8>(dot, 0, weight)"},
    {"nibbles: apart: the first token's queries", 20, "queries + t * Heads * Dims", "queries"},
    {"nibbles: apart: a stage is given away too early", 19, "if (!rows.wide) {", "if (true) {"},
    {"nibbles: the first request's queries", 19, "head = i64(request) * S::kColumns",
     "head = i64(request) * 0"},
    {"nibbles: queries that the engine does not see", 16, "    engine_fence();", ""},
    {"nibbles: a stage is overwritten while it is read", 19,
     "barrier_wait<false>(barriers.free(turn.place), turn.parity ^ 1);", ""},
    {"nibbles: the first tokens' queries", 20, "from.nibbles.codes + i64(head) * S::kRow",
     "from.nibbles.codes"},
    {"nibbles: rows of 32 bytes as of 64", 21, "swizzled<Dims / 2>", "swizzled<64>"},
};

START_TEST(a_mutant_is_refused)
{
    const prove_mutant *m = &mutants[_i];

    if (!prove_fixture_leaves(_i, 15, rows[m->row].template, m->old)) {
        prove_fixture_refuse(m, rows[m->row].device, rows[m->row].problem, rows[m->row].template,
                             rows[m->row].config);
    }
}
END_TEST

START_TEST(page_0_need_not_be_readable)
{
    const int row = _i < 2 ? 0 : 17;

    mqa_pages_hold(rows[row].device, rows[row].problem, rows[row].template, rows[row].config,
                   _i % 2 == 0 ? INPUTS_EXTREMES : INPUTS_SPECIALS);
}
END_TEST

START_TEST(rows_of_a_request_share_its_pages)
{
    static const char *const configs[] = {PAGED(3, 1, 2, 3, 2, 1), PAGED(2, 1, 1, 2, 2, 1)};
    static const char *const records[] = {FP8, FP4};
    char text[160];

    snprintf(text, sizeof text, "mqa_logits_paged:batch=23,width=700,pages=260,heads=32,%s",
             records[_i % 2]);
    mqa_pages_hold_shared("emu:h20", text, DECODE, configs[_i % 2],
                          _i < 2 ? INPUTS_EXTREMES : INPUTS_HOLES);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove_mqa_wgmma");

    if (!prove_fixture_start("bench/prove_mqa_wgmma")) {
        return 0;
    }
    tcase_add_loop_test(tests, pinned_configs_are_proved, 0, (int)ARRAY_LEN(rows));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, (int)ARRAY_LEN(mutants));
    tcase_add_loop_test(tests, page_0_need_not_be_readable, 0, 4);
    tcase_add_loop_test(tests, rows_of_a_request_share_its_pages, 0, 4);
    const int result =
        suite_run_here("bench/prove_mqa_wgmma", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
