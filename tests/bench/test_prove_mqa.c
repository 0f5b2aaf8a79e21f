/* test_prove_mqa.c - an indexer's scores on the emulated GPU: pinned configs that must be proved,
 * and mutants of the templates that must not. */
#include "tests/bench/mqa_pages.h"
#include "tests/bench/prove_fixture.h"
#include "tests/support/suite.h"

#include <check.h>

#define PREFILL "mqa_logits/mma_sync"
#define DECODE  "mqa_logits_paged/mma_sync"
#define SCALED  "sm120_block_scale"
#define FP8     "record=index_132-split-raw_amax"
#define FP4     "record=index_68-split-pow2_tiny"

static const struct {
    const char *device, *problem, *template, *config;
} rows[] = {
    {"emu:h20", "mqa_logits:tokens=21,keys=331,heads=32,stride=340", PREFILL,
     "tokens_cta=4 keys_tile=64 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:rtx4090", "mqa_logits:tokens=19,keys=400,heads=64,dims=64,clean=1,out=bf16", PREFILL,
     "tokens_cta=2 keys_tile=128 warp_keys=16 chunk=256 stages=3 residency=1"},
    {"emu:h20",
     "mqa_logits:tokens=18,keys=600,width=300,stride=301,heads=8,dims=32,span=compressed,clean=1",
     PREFILL, "tokens_cta=16 keys_tile=64 warp_keys=16 chunk=256 stages=4 residency=2"},
    {"emu:rtx5090", "mqa_logits:tokens=17,keys=257,heads=16,align=4,out=bf16,stride=259", PREFILL,
     "tokens_cta=8 keys_tile=256 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:h20", "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=8," FP8,
     DECODE, "keys_tile=64 warp_keys=16 split_keys=256 stages=3 residency=1"},
    {"emu:rtx4090",
     "mqa_logits_paged:batch=17,width=530,pages=300,next_n=1,heads=32,page_size=32,"
     "table_stride=20,page_stride=4228,out=bf16," FP8,
     DECODE, "keys_tile=128 warp_keys=32 split_keys=256 stages=2 residency=1"},
    {"emu:rtx5090",
     "mqa_logits_paged:batch=5,width=1100,pages=60,next_n=6,heads=8,page_size=128," FP8, DECODE,
     "keys_tile=256 warp_keys=32 split_keys=512 stages=2 residency=1"},
    {"emu:h20", "mqa_logits_paged:batch=160,width=70,pages=90,next_n=3,heads=8," FP8, DECODE,
     "keys_tile=64 warp_keys=32 split_keys=256 stages=4 residency=1"},
    {"emu:h20", "mqa_logits:tokens=21,keys=331,heads=32,element=e2m1,stride=340", PREFILL,
     "tokens_cta=4 keys_tile=64 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:rtx4090",
     "mqa_logits:tokens=19,keys=270,width=200,heads=8,dims=64,element=e2m1,clean=1,out=bf16,span="
     "compressed,align=4",
     PREFILL, "tokens_cta=8 keys_tile=128 warp_keys=16 chunk=256 stages=2 residency=1"},
    {"emu:h20", "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=8," FP4,
     DECODE, "keys_tile=64 warp_keys=16 split_keys=256 stages=3 residency=1"},
    {"emu:rtx4090",
     "mqa_logits_paged:batch=7,width=530,pages=99,next_n=3,heads=32,page_size=32,page_stride=2180,"
     "out=bf16," FP4,
     DECODE, "keys_tile=128 warp_keys=32 split_keys=256 stages=2 residency=1"},
    /* sampled */
    {"emu:h20", "mqa_logits:tokens=256,keys=16384,heads=64", PREFILL,
     "tokens_cta=2 keys_tile=64 warp_keys=32 chunk=512 stages=2 residency=2"},
    {"emu:h20", "mqa_logits_paged:batch=16,width=16384,pages=2049,next_n=2,heads=64," FP8, DECODE,
     "keys_tile=64 warp_keys=32 split_keys=256 stages=4 residency=2"},
    /* e2m1 by block-scaled products */
    {"emu:rtx5090", "mqa_logits:tokens=21,keys=331,heads=64,element=e2m1,stride=340",
     "mqa_logits/" SCALED, "tokens_cta=4 keys_tile=64 warp_keys=32 chunk=256 stages=2 residency=1"},
    {"emu:rtx5090",
     "mqa_logits:tokens=19,keys=270,width=200,heads=8,dims=64,element=e2m1,clean=1,out=bf16,span="
     "compressed,align=4",
     "mqa_logits/" SCALED,
     "tokens_cta=8 keys_tile=128 warp_keys=16 chunk=256 stages=2 residency=1"},
    {"emu:rtx5090",
     "mqa_logits_paged:batch=7,width=530,pages=99,next_n=3,heads=32,page_size=32,page_stride=2180,"
     "out=bf16," FP4,
     "mqa_logits_paged/" SCALED, "keys_tile=128 warp_keys=32 split_keys=256 stages=2 residency=1"},
    {"emu:rtx5090",
     "mqa_logits_paged:batch=16,width=600,stride=604,pages=170,next_n=2,heads=16," FP4,
     "mqa_logits_paged/" SCALED, "keys_tile=64 warp_keys=16 split_keys=256 stages=3 residency=1"},
};

START_TEST(pinned_configs_are_proved)
{
    prove_fixture f;
    prove_result r;

    if (prove_fixture_leaves(_i, 2, rows[_i].template, NULL)) {
        return;
    }
    prove_fixture_open(&f, rows[_i].device, rows[_i].problem, rows[_i].template, rows[_i].config,
                       NULL, NULL);
    prove_fixture_run(&f, &r);
    ck_assert_msg(r.outcome == STORE_OK, "%s %s: %s", rows[_i].problem, rows[_i].config, r.reason);
    ck_assert_double_le(r.verify.max_err_ratio, 1.0);
    ck_assert(r.verify.max_err > 0.0);
    ck_assert(r.modelled && r.time_ns > 0.0);
    prove_fixture_close(&f);
}
END_TEST

/* Faults seeded into the templates; `row` of the configs. */
static const prove_mutant mutants[] = {
    {"a range's last key is left out", 0, "key < r.to)", "key < r.to - 1)"},
    {"a key past the range is stored", 0, "key < r.to)", "key <= r.to)"},
    {"the key before a range is stored", 0, "key >= r.from &&", "key >= r.from - 1 &&"},
    {"the maximum is forgotten", 0, "fmaxf(dot[i][t][0], 0.0f)", "dot[i][t][0]"},
    {"the next key's scale", 0, "(of_keys)[mine]", "(of_keys)[mine ^ 1]"},
    {"half of the heads", 0, "sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);", ""},
    {"the next token's weights", 0, "held, query, weight + t * C.heads)",
     "held, query, weight + (t + 1) % C.tokens * C.heads)"},
    {"a tile is read before it is there", 0, "async_wait<C.stages - 2>()",
     "async_wait<C.stages - 1>()"},
    {"a tile is overwritten while it is read", 0, "__syncthreads(); // this tile", "// this tile"},
    {"the last dims are left out", 0, "s < kSteps; s++) {\n            u32 column",
     "s < kSteps - 1; s++) {\n            u32 column"},
    {"bounds below 0 are not clamped", 2, "min(max(start, 0), keys)", "min(start, keys)"},
    {"columns before a range stay", 1, "c < live || c >= live + len", "c >= live + len"},
    {"columns behind a range stay", 1, "c < live || c >= live + len", "c < live"},
    {"a compressed key keeps its column", 2, "key - r.from : key", "key : key"},
    {"what has no column is stored", 2, "r.from + min(r.to - r.from, width)", "r.to"},
    {"nibbles: a sign is lost", 8, "| (word & 0x08080808u) << 4", ""},
    {"nibbles: low ones twice", 8, "to[2] = high_nibbles(r[2 * half])",
     "to[2] = low_nibbles(r[2 * half])"},
    {"nibbles: the next step's scale", 9, "scale[i][s] = ue8m0_decode(u8(word >> (8 * s)))",
     "scale[i][s] = ue8m0_decode(u8(word >> (8 * (s ^ 1))))"},
    {"nibbles: a step has the first one's scale of queries", 10, "scales + s * Stride + head",
     "scales + head"},
    {"nibbles: scales of the other eight keys", 11, "words[lane / 4 + 8 * i]",
     "words[lane / 4 + 8 * (i ^ 1)]"},
    {"nibbles: the factor is left", 10, "kNibblesScale = 4096.0f", "kNibblesScale = 2048.0f"},
    {"nibbles: the maximum before all steps are added", 9, "fmaf(part[0] * low, q.x",
     "fmaf(fmaxf(part[0], 0.0f) * low, q.x"},
    {"large: tokens of the next block", 12, "% blocks * C.tokens", "% blocks * C.tokens / 2"},
    {"large: a chunk's last tile is left out", 12, "(past - from - 1) / C.keys + 1",
     "(past - from) / C.keys - 1"},
    {"one page further", 4, "table[j >> page_shift]", "table[(j >> page_shift) ^ 1]"},
    {"a page past the cache is followed", 4, "u32(page) < u64(pages) ? page : -1", "page"},
    {"a page that is none counts as zeros", 4,
     "there ? own_sum<kHigh>(sum) * scale : minus_infinity()", "own_sum<kHigh>(sum) * scale"},
    {"keys past the length are stored", 4, "key < min(lengths[t], width)", "key < width"},
    {"all tokens have the first one's length", 4, "key < min(lengths[t], width)",
     "key < min(lengths[0], width)"},
    {"a length past the row is believed", 4, "key < min(lengths[t], width)", "key < lengths[t]"},
    {"scales where others' are", 4, "cache.scales_at + (j & mask) * 4",
     "cache.scales_at + (j & mask ^ 1) * 4"},
    {"the rest of the splits is nobody's", 4, "units = quotient + (cta < rest)",
     "units = quotient"},
    {"the rest of the splits is the last CTAs'", 6, "min(cta, rest), units",
     "max(cta - ctas + rest, 0ll), units"},
    {"requests before are forgotten", 6, "left = unit - before", "left = unit"},
    {"a share begins with its request", 6, "from = share.split * C.split", "from = 0"},
    {"only the last token's keys", 7, "most = max(most, lengths[i64(request) * NextN + t])",
     "most = max(0, lengths[i64(request) * NextN])"},
    {"queries are overwritten while they are read", 7, "__syncthreads(); // before", "// before"},
    {"the second request of a share is left out", 7, "share.request++;", "share.request += 2;"},
    {"scaled: the first step's scales", 14, "u16(2 * s)", "u16(0)"},
    {"scaled: the other sixteen keys' scales", 14, "{keys.word, word, u16(i),",
     "{keys.word, word, u16(i ^ 1),"},
    {"scaled: the next eight heads' scales", 16, "u16(t), u16", "u16((t + 1) % kTiles), u16"},
    {"scaled: the first 32 heads' scales", 14, "words[u32(head) + u32(own_key())",
     "words[u32(own_key())"},
    {"scaled: keys' scales by lane", 17, "words[u32(own_key()) % (16 * High)]",
     "words[threadIdx.x % (16 * High)]"},
    {"scaled: the first token's scales", 16, "weight + t * C.heads, words + t * C.heads",
     "weight + t * C.heads, words"},
    {"scaled: half of the dims", 15, "s < Dims / 64", "s < Dims / 128"},
};

START_TEST(a_mutant_is_refused)
{
    const prove_mutant *m = &mutants[_i];

    if (!prove_fixture_leaves(_i, 11, rows[m->row].template, m->old)) {
        prove_fixture_refuse(m, rows[m->row].device, rows[m->row].problem, rows[m->row].template,
                             rows[m->row].config);
    }
}
END_TEST

START_TEST(page_0_need_not_be_readable)
{
    const int row = _i < 2 ? 4 : 10;

    mqa_pages_hold(rows[row].device, rows[row].problem, rows[row].template, rows[row].config,
                   _i % 2 == 0 ? INPUTS_EXTREMES : INPUTS_SPECIALS);
}
END_TEST

START_TEST(rows_of_a_request_share_its_pages)
{
    mqa_pages_hold_shared(rows[5].device, rows[5].problem, rows[5].template, rows[5].config,
                          INPUTS_EXTREMES);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prove_mqa");

    if (!prove_fixture_start("bench/prove_mqa")) {
        return 0;
    }
    tcase_add_loop_test(tests, pinned_configs_are_proved, 0, (int)ARRAY_LEN(rows));
    tcase_add_loop_test(tests, a_mutant_is_refused, 0, (int)ARRAY_LEN(mutants));
    tcase_add_loop_test(tests, page_0_need_not_be_readable, 1, 3);
    tcase_add_test(tests, rows_of_a_request_share_its_pages);
    const int result = suite_run_here("bench/prove_mqa", tests); /* the compiler has threads */
    prove_fixture_stop();
    return result;
}
