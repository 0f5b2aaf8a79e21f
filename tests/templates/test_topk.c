/* test_topk.c - random rows of scores, on emulated GPUs: every index that topk writes is that of a
 * full sort, and of some of them the same by any order of warps and either timing of copies.
 * HONE_TOPK_ROWS asks for that many rows in all, HONE_TOPK_ORDERS for that many orders. */
#include "tests/templates/faults.h"

#include "bench/reference.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kernels shared;
static device *hopper, *ada;

/* One program each; k, width and rows are drawn. Widths go beyond four samples of a row, whose
 * bound is then guessed; `least`: what CTAs that share a row are worth. */
static const struct {
    const char *fields, *config;
    int least, most, largest_k; /* of the list */
} families[] = {
    {"span=ends", "threads=256 list=2048 cluster=1 parts=1", 0, 20000, 512},
    {"span=both,sort=by_score", "threads=256 list=2048 cluster=2 parts=1", 4096, 40000, 1024},
    {"span=whole,in=bf16,sort=by_score", "threads=1024 list=8192 cluster=1 parts=1", 0, 20000,
     4096},
    {"span=compressed,in=bf16", "threads=512 list=8192 cluster=1 parts=1", 0, 70000, 4096},
    {"span=both,in=bf16", "threads=256 list=4096 cluster=4 parts=1", 8192, 140000, 2048},
    {"span=ends", "threads=256 list=2048 cluster=1 parts=4", 8192, 70000, 1024},
    {"span=both,pick=blocked,block=8,pin=1,drop=1", "threads=256 list=4096 cluster=2 parts=1", 4096,
     9000, 2048},
    {"span=ends,pick=listed,block=8,sort=by_score", "threads=512 list=4096 cluster=1 parts=1", 0,
     16384, 2048},
    /* where 99 KiB have no room for a bitmap */
    {"span=ends", "threads=1024 list=8192 cluster=1 parts=1", 225000, 240000, 4096},
};
enum { FAMILIES = sizeof families / sizeof families[0], ROWS = 4, TIMINGS = 2 };

static int64_t below(uint64_t *state, int64_t len)
{
    return (int64_t)random_below(state, (uint64_t)len);
}

static int from_environment(const char *name, int standard)
{
    const char *asked = getenv(name);

    return asked != NULL ? atoi(asked) : standard;
}

/* The width is about k, or any. */
static hone_problem draw_problem(int family, uint64_t *state)
{
    static const int ks[] = {1, 512, 705, 1024, 2048, 4096};
    const char *fields = families[family].fields;
    const int64_t unit = strstr(fields, "pick=") != NULL ? 8 : 1;
    const int least = families[family].least, most = families[family].most;
    hone_problem problem;
    hone_error error = {0};
    char text[256];
    int64_t k = ks[below(state, 6)];

    while (k > families[family].largest_k) {
        k = ks[below(state, 6)];
    }
    int64_t width = below(state, 4) == 0 ? k - 1 + below(state, 4) : 1 + below(state, most);
    width = width < least ? least + below(state, 9) : width;
    if (strstr(fields, "listed") != NULL) {
        width = (width + unit - 1) / unit * unit;
    } else if (unit > 1) {
        width = width * unit + below(state, unit);
    }
    snprintf(text, sizeof text, "topk:rows=%d,width=%lld,stride=%lld,k=%lld,%s", ROWS,
             (long long)width, (long long)(width + below(state, 2) * 13), (long long)k, fields);
    ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                  error.message);
    return problem;
}

static void compare(const hone_problem *problem, const inputs *in, const inputs *after,
                    const char *what)
{
    static int32_t expected[4096];
    const hone_topk *p = &problem->as.topk;
    hone_error error = {0};
    char text[256] = "";

    hone_problem_format(problem, text, sizeof text, NULL);
    for (int64_t row = 0; row < p->rows; row++) {
        const int32_t *got = (const int32_t *)(const void *)after->image[4] + row * p->k;
        ck_assert_int_eq(reference_topk(p, in, row, expected, &error), HONE_OK);
        for (int32_t j = 0; j < p->k; j++) {
            ck_assert_msg(got[j] == expected[j], "%s, %s: index[%lld,%d] is %d, not %d", text, what,
                          (long long)row, j, got[j], expected[j]);
        }
    }
}

/* By other orders of warps, and with copies at their instruction and as late as may be. */
static void compare_orders(const device *d, const proof_case *one, const compiled *code,
                           const inputs *in, const inputs *first, const char *what)
{
    const hone_emu_api *emu = d->driver->emu;
    const int orders = from_environment("HONE_TOPK_ORDERS", 1);
    hone_error error = {0};

    for (int i = 0; i < orders * TIMINGS; i++) {
        inputs after;
        ck_assert_int_eq(emu->set_schedule((int)d->ordinal, (uint64_t)(i / TIMINGS) + 1, &error),
                         HONE_OK);
        ck_assert_int_eq(emu->set_timing((int)d->ordinal,
                                         i % TIMINGS == 0 ? HONE_EMU_AT_ISSUE : HONE_EMU_LATEST,
                                         &error),
                         HONE_OK);
        proof_launch(d, one, code, in, &after);
        ck_assert_msg(memcmp(after.image[4], first->image[4], in->operand[4].bytes) == 0,
                      "%s: other bits by order %d", what, i);
        inputs_free_outputs(&after);
    }
    emu->set_schedule((int)d->ordinal, 0, &error);
    emu->set_timing((int)d->ordinal, HONE_EMU_AT_ISSUE, &error);
}

static void choose(const device *d, const proof_case *one, const compiled *code, uint64_t seed,
                   bool all_orders)
{
    const inputs_kind kind = (inputs_kind)(seed % INPUTS_KINDS);
    hone_error error = {0};
    inputs in, after;
    char what[64];

    snprintf(what, sizeof what, "inputs %d of seed %llu", kind, (unsigned long long)seed);
    ck_assert_msg(inputs_make(one->problem, kind, seed, &in, &error) == HONE_OK, "%s",
                  error.message);
    proof_launch(d, one, code, &in, &after);
    compare(one->problem, &in, &after, what);
    if (all_orders) {
        compare_orders(d, one, code, &in, &after, what);
    }
    inputs_free_outputs(&after);
    inputs_free(&in);
}

/* A fortieth of the rows go through all orders. */
START_TEST(random_rows_have_the_best_of_a_full_sort)
{
    const bool shares = strstr(families[_i].config, "cluster=1") == NULL;
    const bool large = families[_i].least > 200000;
    const device *d = shares || (_i % 2 == 0 && !large) ? hopper : ada;
    const int draws = from_environment("HONE_TOPK_ROWS", 36) / ROWS / FAMILIES;
    const int ordered = draws / 40 > 0 ? draws / 40 : 1;
    hone_error error = {0};
    template_source source;
    config c;
    compiled *code = NULL;
    uint64_t state = 7000 + (uint64_t)_i;

    if (shared.compiler == NULL) {
        return;
    }
    for (int i = 0; i < draws; i++) {
        const hone_problem problem = draw_problem(_i, &state);
        const manifest *m = kernels_serving(&shared, &problem, &d->gpu.facts);
        const proof_case one = {.m = m, .source = &source, .problem = &problem, .config = &c};
        if (code == NULL) {
            ck_assert_int_eq(templates_source(shared.templates, m, &source, &error), HONE_OK);
            ck_assert_msg(manifest_config_parse(m, families[_i].config, &c, &error) == HONE_OK,
                          "%s", error.message);
            code = proof_compile(&shared, d, &one);
        }
        choose(d, &one, code, random_next(&state), i < ordered);
    }
    compiled_free(code);
}
END_TEST

/* Whether a config is legal, of all that the parameters' values make. */
static bool any_legal(const manifest *m, const hone_problem *problem, const device_facts *g)
{
    config c = {.len = 0};
    const int64_t *values[MANIFEST_MAX_PARAMS];
    uint32_t len[MANIFEST_MAX_PARAMS], at[MANIFEST_MAX_PARAMS] = {0}, i = 0;
    hone_error error = {0};
    char why[160];

    while ((len[c.len] = manifest_param_values(m, c.len, &values[c.len])) > 0) {
        c.len++;
    }
    do {
        bool legal = false;
        for (i = 0; i < c.len; i++) {
            c.value[i] = values[i][at[i]];
        }
        ck_assert_msg(manifest_legal(m, problem, g, &c, &legal, why, &error) == HONE_OK, "%s",
                      error.message);
        if (legal) {
            return true;
        }
        for (i = 0; i < c.len && ++at[i] == len[i]; i++) {
            at[i] = 0;
        }
    } while (i < c.len);
    return false;
}

/* From one candidate to the widest row, with 99 KiB of shared memory and with more. */
START_TEST(every_problem_has_a_config)
{
    static const char *const gpus[] = {"a100", "rtx4090", "h20", "h200", "rtx5090"};
    static const int widths[] = {8, 4096, 65536, 480000, 1048576, 8388600};
    static const int ks[] = {1, 705, 2048, 4096}, rows[] = {1, 64, 100000};
    static const char *const kinds[] = {"", ",sort=by_score", ",in=bf16,pick=blocked,block=8",
                                        ",pick=listed,block=8,sort=by_score"};
    templates *t = NULL;
    gpu g;

    ck_assert_int_eq(gpu_find(gpus[_i], &g, NULL), HONE_OK);
    ck_assert_int_eq(templates_open(&t, NULL), HONE_OK);
    const manifest *m = templates_find(t, "topk/rows");
    ck_assert_ptr_nonnull(m);
    for (int i = 0; i < 6 * 4 * 3 * 4; i++) {
        hone_error error = {0};
        hone_problem problem;
        char text[200];
        snprintf(text, sizeof text, "topk:rows=%d,width=%d,k=%d%s", rows[i % 3],
                 widths[i / 3 % 6], ks[i / 18 % 4], kinds[i / 72]);
        ck_assert_msg(hone_problem_parse(text, &problem, &error) == HONE_OK, "%s: %s", text,
                      error.message);
        ck_assert_msg(any_legal(m, &problem, &g.facts), "%s has no config on %s", text, gpus[_i]);
    }
    templates_close(t);
}
END_TEST

/* Faults that a whole launch must show. The ordinary run takes some of them. */
#define TOPK        "topk/rows"
#define TOPK_CU     "topk/rows.cu"
#define TOPK_BITS   "topk/rows_bits.cuh"
#define TOPK_READ   "topk/rows_read.cuh"
#define TOPK_SELECT "topk/rows_select.cuh"
#define TOPK_WRITE  "topk/rows_write.cuh"
#define ORDER_CUH   "device/order_key.cuh"
#define TOPK_TILE   "threads=256 list=2048 cluster=1 parts=1"
#define TOPK_PAIR   "threads=256 list=2048 cluster=2 parts=1"
#define TOPK_FOUR   "threads=256 list=2048 cluster=1 parts=4"
#define TOPK_WIDE   "topk:rows=12,width=20000,k=400"
#define TOPK_WIDER  "topk:rows=12,width=20000,k=45,sort=by_score"
#define TOPK_BF16   "topk:rows=12,width=34001,k=400,in=bf16"
#define TOPK_ENDS   "topk:rows=24,width=2100,k=40"
#define TOPK_SCORE  "topk:rows=24,width=2100,k=45,sort=by_score"
#define TOPK_BOTH   "topk:rows=24,width=1100,k=40,span=both,in=bf16"
#define TOPK_LONG   "topk:rows=24,width=17000,k=400"
#define TOPK_COMB   "topk:rows=12,width=16384,k=400,span=whole"
#define TOPK_BLOCKS "topk:rows=24,width=3001,k=40,pick=blocked,block=8,pin=1,drop=1"
#define TOPK_LISTED "topk:rows=24,width=2048,k=40,pick=listed,block=8"
static const mutant faults[] = {
    {"ties to the highest index", TOPK, ORDER_CUH, "u64(key) << 32 | ~u32(index)",
     "u64(key) << 32 | u32(index)", TOPK_ENDS, TOPK_TILE,
     "of equal scores another one on every machine"},
    {"-0 below +0", TOPK, ORDER_CUH, "__fadd_rn(x, 0.0f)", "x", TOPK_LONG, TOPK_TILE,
     "zeros that are equal are told apart"},
    {"NaN above infinity", TOPK, ORDER_CUH, "return x == x ? key : 0;", "return key;", TOPK_ENDS,
     TOPK_TILE, "a NaN is chosen first"},
    {"negative scores in reverse", TOPK, ORDER_CUH, "u32(i32(bits) >> 31) | 0x80000000u",
     "0x80000000u", TOPK_ENDS, TOPK_TILE, "the bits of negative numbers fall"},
    {"what the list has no room for is dropped", TOPK, TOPK_CU,
     "if (total >= kLost || (total < k && from > 1)) {", "if (total < k && from > 1) {", TOPK_LONG,
     TOPK_TILE, "a bin that overflows its buffer (cases.md 6)"},
    {"a bound that too few reach is kept", TOPK, TOPK_CU,
     "if (total >= kLost || (total < k && from > 1)) {", "if (total >= kLost) {", TOPK_COMB, TOPK_TILE,
     "fewer than k, though there are more"},
    {"ties at an exact bound all kept", TOPK, TOPK_CU, "collect(bound(true), true)",
     "collect(bound(true), false)", TOPK_LONG, TOPK_TILE, "more than the list has room for, again"},
    {"length -1 as it is", TOPK, TOPK_READ, "min(max(o.end[row], first), most)",
     "i32(min(u32(o.end[row]), u32(most)))", TOPK_ENDS, TOPK_TILE,
     "-1 read as 4294967295 (cases.md 7)"},
    {"an end past the row", TOPK, TOPK_READ, "last = min(max(o.end[row], first), most);",
     "last = max(o.end[row], first);", TOPK_ENDS, TOPK_TILE, "the next row's scores"},
    {"indices from the first column of all", TOPK, TOPK_READ,
     "(C.span == BOTH && C.pick != LISTED_BLOCKS ? first : 0)", "0", TOPK_BOTH, TOPK_TILE,
     "a range that begins elsewhere"},
    {"the rest not written", TOPK, TOPK_WRITE, "out[i] = sizeof(Out) == sizeof(u64) ? 0 : -1;", "",
     TOPK_SCORE, TOPK_TILE, "indices of the step before"},
    {"a short row's rest not written", TOPK, TOPK_CU, "i < row.len ? row.written(i) : -1",
     "row.written(i)", TOPK_ENDS, TOPK_TILE, "positions that are not there"},
    {"warps before left out", TOPK, TOPK_SELECT, "warp_sum(lane < warp ? warps : 0)", "0",
     TOPK_ENDS, TOPK_TILE, "indices over one another"},
    {"the bin after the right one", TOPK, TOPK_SELECT, "above < want && want <= above + own[i]",
     "above <= want && want < above + own[i]", TOPK_ENDS, TOPK_TILE, "one too many or too few"},
    {"what lies above is counted again", TOPK, TOPK_SELECT, "want -= s.above;", "", TOPK_ENDS,
     TOPK_TILE, "the rank within a bin"},
    {"a histogram of all candidates", TOPK, TOPK_SELECT,
     "c != 0 && (high == 64 || c >> high == prefix)", "c != 0", TOPK_ENDS, TOPK_TILE,
     "those that were decided are counted again"},
    {"bins not cleared", TOPK, TOPK_SELECT, "        pack_store<16>(s.bins",
     "        if (Alike || high == 64) pack_store<16>(s.bins", TOPK_LONG, TOPK_TILE,
     "the round before is still in them"},
    {"a candidate without its neighbour's barrier", TOPK, TOPK_SELECT,
     "__syncthreads(); // the bins are clear", "", TOPK_ENDS, TOPK_TILE,
     "bins counted in before they are clear"},
    {"the last block not pinned", TOPK, TOPK_READ, "if (C.pin && first + held == columns) {",
     "if (false) {", TOPK_BLOCKS, TOPK_TILE, "the newest keys are lost (kernels.md 9.25)"},
    {"a block's last score left out", TOPK, TOPK_READ, "for (i32 i = 0; i < held; i++) {",
     "for (i32 i = 0; i < held - 1; i++) {", TOPK_BLOCKS, TOPK_TILE, "a short block"},
    {"blocks that nobody can reach", TOPK, TOPK_READ, "x[i] > -__uint_as_float(kInfinity) ? ~0u",
     "true ? ~0u", TOPK_BLOCKS, TOPK_TILE, "-inf is chosen"},
    {"columns for positions", TOPK, TOPK_READ, "return list[c / C.block] * C.block + c % C.block;",
     "return c;", TOPK_LISTED, TOPK_TILE, "a list that is not looked at"},
    {"positions past the row's end", TOPK, TOPK_READ,
     "min(limit - own * C.block - within, to - from)", "to - from", TOPK_LISTED, TOPK_TILE,
     "keys that do not exist yet"},
    {"no block taken for one", TOPK, TOPK_READ, "return u32(own) > u32(limit) / C.block ? 0 : ", "return ", TOPK_LISTED,
     TOPK_TILE, "-1 as a block"},
    {"half a sort", TOPK, TOPK_WRITE, "run <= size; run *= 2", "run < size; run *= 2", TOPK_SCORE,
     TOPK_TILE, "two runs that were not merged"},
    {"a sort that does not wait", TOPK, TOPK_WRITE, "__syncthreads(); // each step has its pairs",
     "", TOPK_SCORE, TOPK_TILE, "a pair exchanged before its neighbours were"},
    {"what is sorted not filled up", TOPK, TOPK_WRITE, "chosen[i] = 0;", "chosen[i] = ~0ull;",
     TOPK_SCORE, TOPK_TILE, "the rest of a power of two comes first"},
    {"a bit of the prefix too few", TOPK, TOPK_SELECT, "high = 64 - __clzll", "high = 63 - __clzll",
     TOPK_LONG, TOPK_TILE, "those that differ in it are told to be alike"},
    {"one score of a pair", TOPK, TOPK_BITS, "0x00010001u << i", "0x00000001u << i", TOPK_BF16,
     TOPK_TILE, "every second column is lost"},
    {"a pair's second in place of its first", TOPK, TOPK_CU, "i % 4 * 2 + i / 16", "i % 4 * 2",
     TOPK_BF16, TOPK_TILE, "a column twice"},
    {"a cluster's own bins alone", TOPK, TOPK_SELECT, "(others, s.bins + low, r)",
     "(others, s.bins + low, cluster_rank())", TOPK_WIDE, TOPK_PAIR,
     "each CTA has a bound of its own"},
    {"bins of others read too late", TOPK, TOPK_SELECT,
     "    sync_all<C>(); // the bins have been read, the bin is there", "    __syncthreads();",
     TOPK_WIDE, TOPK_PAIR, "the next round has cleared them"},
    {"CTAs of a cluster over one another", TOPK, TOPK_SELECT, "before += r < rank ? other : 0;", "",
     TOPK_WIDE, TOPK_PAIR, "each writes from the row's start"},
    {"what a cluster sorts kept at home", TOPK, TOPK_WRITE,
     "cluster_put(chosen + at++, 0, turned(kept[n]))", "chosen[at++] = turned(kept[n])", TOPK_WIDER, TOPK_PAIR,
     "the first CTA sorts its own alone"},
    {"a part's last units left out", TOPK, TOPK_CU, "each = (units + slices - 1) / slices",
     "each = units / slices", TOPK_WIDE, TOPK_FOUR, "the row's last columns belong to nobody"},
    {"parts that leave no score", TOPK, TOPK_WRITE,
     "order_key(row.score_of(candidate)), candidate)", "1, candidate)", TOPK_WIDE, TOPK_FOUR,
     "who merges looks for the best"},
    {"what a part lacks taken for a candidate", TOPK, TOPK_READ, "held = held && chosen[c] != 0;",
     "", TOPK_WIDE, TOPK_FOUR, "parts that have fewer than k"},
    {"places in the list of parts for columns", TOPK, TOPK_READ,
     "Merges ? candidate_index(chosen[candidate]) : candidate", "candidate", TOPK_WIDE, TOPK_FOUR,
     "indices of another row of numbers"},
};
enum { FAULTS = sizeof faults / sizeof faults[0], FAULTS_STEP = 9 };

/* Of inputs with a bit of everything. */
START_TEST(a_fault_is_refused_and_its_original_is_not)
{
    static const inputs_kind kinds[] = {INPUTS_SPECIALS};
    const mutant *m = &faults[_i];
    const bool all = from_environment("HONE_TOPK_FAULTS", 0) != 0;
    /* parts are for GPUs without clusters, and of short rows */
    const device *d = strstr(m->config, "parts=1") != NULL ? hopper : ada;

    fault_hold(&shared, d, m, kinds, ARRAY_LEN(kinds), all || _i % FAULTS_STEP == 4);
}
END_TEST

static void setup(void)
{
    shared = kernels_open();
    if (shared.compiler != NULL) {
        hone_error error = {0};
        ck_assert_msg(device_open("emu:h20", &hopper, &error) == HONE_OK, "%s", error.message);
        ck_assert_msg(device_open("emu:rtx4090", &ada, &error) == HONE_OK, "%s", error.message);
    }
}

static void teardown(void)
{
    device_close(ada);
    device_close(hopper);
    kernels_close(&shared);
}

int main(void)
{
    TCase *tests = tcase_create("topk");

    tcase_add_loop_test(tests, random_rows_have_the_best_of_a_full_sort, 0, FAMILIES);
    tcase_add_loop_test(tests, every_problem_has_a_config, 0, 5);
    tcase_add_loop_test(tests, a_fault_is_refused_and_its_original_is_not, 0, FAULTS);
    return kernels_run("templates/topk", tests, setup, teardown);
}
