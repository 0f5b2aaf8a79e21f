/* test_bulk.c - bulk copies and reductions, at issue and as late as the rules allow; groups; each
 * rule broken once; pipelines that NVRTC compiled. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line 1 of the body is line 10 of the text. `in` and `out`: 4096 bytes each. One mbarrier of one
 * arrival at 0, data from 16 on. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"                                      \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %x<9>; .shared .align 128 "    \
    ".b8 s[8192];\n"                                                                               \
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; "       \
    "setp.eq.u32 %p0, %r0, 0; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; cvt.u64.u32 %x2, %r2; "  \
    "add.s64 %x3, %x0, %x2; add.s64 %x4, %x1, %x2;\n"                                              \
    "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\nbar.sync 0;\n"
#define LINE 10

enum { BYTES = 4096, WORDS = BYTES / 4 };

static uint32_t word_of(uint32_t n)
{
    return n * UINT32_C(2654435761) + 12345;
}

typedef struct bulk_case {
    ptx_bench b;
    uint64_t in, out;
    uint32_t want[WORDS], got[WORDS];
} bulk_case;

static int checks = HONE_EMU_CHECK_ALL;
/* What `in` and `out` hold at the start; NULL: words of their own, zeros. */
static const void *given_in, *given_out;

static hone_status run_body(bulk_case *c, const char *body, uint32_t threads,
                            hone_emu_timing timing)
{
    char *text = malloc(strlen(HEAD) + strlen(body) + 64);
    uint32_t words[WORDS], zeros[WORDS] = {0};

    ck_assert_ptr_nonnull(text);
    sprintf(text, "%s%s\nret;\n}\n", HEAD, body);
    ptx_bench_open(&c->b);
    c->b.launch.timing = timing;
    c->b.launch.checks = (uint32_t)checks;
    for (uint32_t n = 0; n < WORDS; n++) {
        words[n] = word_of(n);
    }
    c->in = ptx_bench_buffer(&c->b, given_in != NULL ? given_in : words, BYTES);
    c->out = ptx_bench_buffer(&c->b, given_out != NULL ? given_out : zeros, BYTES);
    hone_status status = ptx_bench_load(&c->b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", body, c->b.error.message);
    free(text);
    status = ptx_bench_run(&c->b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){threads, 1, 1},
                           (void *[]){&c->in, &c->out});
    ptx_bench_read(&c->b, c->out, c->got, BYTES);
    return status;
}

#define WAIT  "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra W;\n"
#define LOAD  "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1024], [%x0], "
#define STORE "cp.async.bulk.global.shared::cta.bulk_group [%x1], [%r1+1024], "
#define GROUP "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group"
/* 64 threads: 16 bytes each from shared to `out`, and from `in` to shared */
#define COPY_OUT                                                                                   \
    "ld.shared.v4.u32 {%r4,%r5,%r6,%r7}, [%r3+1024]; st.global.v4.u32 [%x4], "                     \
    "{%r4,%r5,%r6,%r7};\n"
#define COPY_IN                                                                                    \
    "ld.global.v4.u32 {%r4,%r5,%r6,%r7}, [%x3]; st.shared.v4.u32 [%r3+1024], {%r4,%r5,%r6,%r7}; "  \
    "fence.proxy.async.shared::cta; bar.sync 0;\n"

static const struct {
    const char *name, *body;
    uint32_t from, bytes; /* of `in`, at the start of `out` */
} copies[] = {
    {"a load",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\n" LOAD
     "1024, [%r1];\n" WAIT COPY_OUT,
     0, 1024},
    {"a load whose bytes are expected after it began",
     "@!%p0 bra W;\n" LOAD "1024, [%r1];\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], "
     "1024;\n" WAIT COPY_OUT,
     0, 1024},
    {"a load in pieces, with a hint",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\nmov.u64 %x5, 0; "
     "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
     "[%r1+1024], [%x0+512], 16, [%r1], %x5;\ncp.async.bulk.shared::cta.global.mbarrier::"
     "complete_tx::bytes [%r1+1040], [%x0+528], 1008, [%r1];\n" WAIT COPY_OUT,
     512, 1024},
    {"a load of nothing",
     "@!%p0 bra W;\n" LOAD "0, [%r1];\nmbarrier.arrive.shared::cta.b64 _, "
     "[%r1];\n" WAIT,
     0, 0},
    {"a store", COPY_IN "@!%p0 bra E;\n" STORE "1024;\n" GROUP " 0;\nE:", 0, 1024},
    {"a store whose end nobody waits for", COPY_IN "@%p0 " STORE "512;", 0, 512},
    {"a store whose source is written again once it was read",
     COPY_IN "@!%p0 bra E;\n" STORE "1024;\n" GROUP ".read 0;\nst.shared.u32 [%r1+1024], %r0;\nE:",
     0, 1024},
    {"two groups, of which the older is done and its source written again",
     COPY_IN "@!%p0 bra E;\n" STORE "512;\ncp.async.bulk.commit_group;\n"
             "cp.async.bulk.global.shared::cta.bulk_group [%x1+512], [%r1+1536], 512;\n" GROUP
             " 1;\nst.shared.u32 [%r1+1024], %r0;\nE:",
     0, 1024},
    {"shared to shared",
     COPY_IN
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], "
     "1024;\ncp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1+4096], "
     "[%r1+1024], 1024, [%r1];\n" WAIT "add.u32 %r3, %r3, 3072;\n" COPY_OUT,
     0, 1024},
    {"a prefetch, which does nothing", "@%p0 cp.async.bulk.prefetch.L2.global [%x0], 1024;", 0, 0},
};

START_TEST(a_copy_brings_the_bytes_in_both_timings)
{
    uint32_t n = (uint32_t)_i / 2;
    bulk_case c;
    hone_status status = run_body(&c, copies[n].body, 64, (hone_emu_timing)(_i % 2));

    ck_assert_msg(status == HONE_OK, "%s: line %d: %s", copies[n].name, c.b.fault.ptx_line - LINE,
                  c.b.error.message);
    for (uint32_t w = 0; w < WORDS; w++) {
        uint32_t want = w * 4 < copies[n].bytes ? word_of(copies[n].from / 4 + w) : 0;
        ck_assert_msg(c.got[w] == want, "%s: word %u", copies[n].name, w);
    }
    ptx_bench_close(&c.b);
}
END_TEST

START_TEST(a_source_that_changes_before_it_was_read_shows_in_both_timings)
{
    static const char body[] =
        COPY_IN "@!%p0 bra E;\n" STORE "16;\nst.shared.u32 [%r1+1024], %r0;\n" GROUP " 0;\nE:";
    int unseen = HONE_EMU_CHECK_RACES | HONE_EMU_CHECK_PROXY;
    bulk_case c;

    hone_status status = run_body(&c, body, 64, (hone_emu_timing)_i);
    ck_assert_int_eq(status, HONE_WRONG);
    ck_assert_str_eq(c.b.fault.kind, "race");
    ck_assert_int_eq(c.b.fault.ptx_line - LINE, _i == HONE_EMU_AT_ISSUE ? 3 : 2);
    ptx_bench_close(&c.b);
    /* where nobody looks for it the bytes tell */
    checks = HONE_EMU_CHECK_ALL & ~unseen;
    ck_assert_int_eq(run_body(&c, body, 64, (hone_emu_timing)_i), HONE_OK);
    ck_assert_uint_eq(c.got[0], _i == HONE_EMU_AT_ISSUE ? word_of(0) : 0);
    ptx_bench_close(&c.b);
}
END_TEST

START_TEST(a_byte_mask_leaves_out_bytes_of_each_16)
{
    bulk_case c;
    uint8_t *got = (uint8_t *)c.got;

    ck_assert_int_eq(run_body(&c,
                              COPY_IN "mov.b16 %h1, 0x8421;\n@!%p0 bra E;\n"
                                      "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%x1], "
                                      "[%r1+1024], 64, %h1;\n" GROUP " 0;\nE:",
                              64, HONE_EMU_LATEST),
                     HONE_OK);
    for (uint32_t n = 0; n < 64; n++) {
        uint32_t word = word_of(n / 4);
        bool kept = 0x8421 >> n % 16 & 1;
        ck_assert_uint_eq(got[n], kept ? (word >> n % 4 * 8) & 0xff : 0);
    }
    ptx_bench_close(&c.b);
}
END_TEST

static const struct {
    const char *name, *body, *kind, *message;
    int line;
    bool late; /* only seen when work is done late */
} faults[] = {
    {"a size that is no multiple of 16", "@%p0 " LOAD "24, [%r1];", "precondition",
     "a copy of 24 bytes; the size is a multiple of 16", 0, false},
    {"a destination in between",
     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1032], [%x0], "
     "16, [%r1];",
     "misaligned", "the destination address 0x408 is not a multiple of 16", 0, false},
    {"a source past the end of its allocation",
     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1024], "
     "[%x0+4080], 32, [%r1];",
     "out-of-bounds", "32 bytes at offset 4080 of an allocation of 4096 bytes", 0, false},
    {"a destination past the end of shared memory",
     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+8176], [%x0], "
     "32, [%r1];",
     "out-of-bounds", "32 bytes at offset 8176 of shared memory; it has 8192 bytes", 0, false},
    {"an mbarrier that is none", "@%p0 " LOAD "16, [%r1+8];", "mbarrier",
     "mbarrier at 8: never initialised", 0, false},
    {"a destination on the mbarrier",
     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%x0], 16, "
     "[%r1];",
     "mbarrier", "16 bytes at offset 0 of shared memory: an mbarrier lives at 0", 0, false},
    {"multicast past the cluster",
     "mov.b16 %h1, 2;\n@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes."
     "multicast::cluster [%r1+1024], [%x0], 16, [%r1], %h1;",
     "precondition", "multicast to CTAs 0x2 of a cluster of 1", 1, false},
    {"a store of bytes that nobody wrote",
     COPY_IN "@!%p0 bra E;\ncp.async.bulk.global.shared::cta.bulk_group [%x1], [%r1+2032], "
             "32;\n" GROUP " 0;\nE:",
     "uninitialised", "byte 16 of the 32 that go to global memory was never written", 2, false},
    {"a read of bytes that are on their way",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\n" LOAD
     "1024, [%r1];\nld.shared.u32 %r4, [%r1+1028];\n" WAIT,
     "async-misuse",
     "4 bytes at offset 1028 of shared memory: a copy that will write byte 1028 is still in flight",
     3, true},
    {"a write of bytes that are on their way",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\n" LOAD
     "1024, [%r1];\nst.shared.u32 [%r1+2044], %r0;\n" WAIT,
     "async-misuse",
     "4 bytes at offset 2044 of shared memory: a copy that will write byte 2044 is still in flight",
     3, true},
    {"a second copy to the same place",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 32;\n" LOAD
     "16, [%r1];\n" LOAD "16, [%r1];\n" WAIT,
     "async-misuse",
     "16 bytes at offset 1024 of shared memory: a copy that will write byte 1024 is still in "
     "flight",
     3, true},
    {"a store of bytes that are on their way",
     "@!%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;\n" LOAD
     "16, [%r1];\n" STORE "16;\n" WAIT,
     "async-misuse",
     "16 bytes at offset 1024 of shared memory: a copy that will write byte 1024 is still in "
     "flight",
     3, true},
    {"a load that nobody waits for",
     "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 64;\n@%p0 " LOAD "64, [%r1];",
     "async-misuse",
     "64 bytes for the mbarrier at 0 are still on their way when the CTA ends: nobody waited for "
     "them",
     1, true},
};

START_TEST(each_rule_is_named_where_it_is_broken)
{
    uint32_t n = (uint32_t)_i / 2;
    hone_emu_timing timing = (hone_emu_timing)(_i % 2);
    bulk_case c;

    if (faults[n].late && timing == HONE_EMU_AT_ISSUE) {
        return;
    }
    hone_status status = run_body(&c, faults[n].body, 64, timing);
    ck_assert_msg(status == HONE_WRONG, "%s: not caught", faults[n].name);
    ck_assert_msg(strcmp(c.b.fault.kind, faults[n].kind) == 0 &&
                      strcmp(c.b.fault.message, faults[n].message) == 0 &&
                      c.b.fault.ptx_line == LINE + faults[n].line,
                  "%s: %s at line %d: %s", faults[n].name, c.b.fault.kind,
                  c.b.fault.ptx_line - LINE, c.b.fault.message);
    ptx_bench_close(&c.b);
}
END_TEST

/* Reductions: each form against plain C. Floating point takes small integers, which are exact. */
typedef enum element { UNSIGNED, SIGNED, F32, F64, F16, BF16 } element;
static const struct {
    const char *op, *type;
    uint32_t bytes;
    element element;
    bool shared;
} reductions[] = {
    {"add", "u32", 4, UNSIGNED, true},     {"add", "s32", 4, SIGNED, true},
    {"add", "u64", 8, UNSIGNED, true},     {"add", "f32", 4, F32, false},
    {"add", "f64", 8, F64, false},         {"add.noftz", "f16", 2, F16, false},
    {"add.noftz", "bf16", 2, BF16, false}, {"min", "u32", 4, UNSIGNED, true},
    {"min", "s32", 4, SIGNED, true},       {"min", "u64", 8, UNSIGNED, false},
    {"min", "s64", 8, SIGNED, false},      {"min", "f16", 2, F16, false},
    {"min", "bf16", 2, BF16, false},       {"max", "u32", 4, UNSIGNED, true},
    {"max", "s32", 4, SIGNED, true},       {"max", "u64", 8, UNSIGNED, false},
    {"max", "s64", 8, SIGNED, false},      {"max", "f16", 2, F16, false},
    {"max", "bf16", 2, BF16, false},       {"inc", "u32", 4, UNSIGNED, true},
    {"dec", "u32", 4, UNSIGNED, true},     {"and", "b32", 4, UNSIGNED, true},
    {"and", "b64", 8, UNSIGNED, false},    {"or", "b32", 4, UNSIGNED, true},
    {"or", "b64", 8, UNSIGNED, false},     {"xor", "b32", 4, UNSIGNED, true},
    {"xor", "b64", 8, UNSIGNED, false},
};

/* The bits of a small non-negative integer; others are themselves. */
static uint64_t encode(element e, uint64_t value)
{
    uint32_t top = 63 - (uint32_t)__builtin_clzll(value | 1), fraction = e == F16 ? 10 : 7;
    float f = (float)value;
    double d = (double)value;
    uint32_t single = 0;
    uint64_t wide = 0;

    memcpy(&single, &f, sizeof single);
    memcpy(&wide, &d, sizeof wide);
    if (e == F16 || e == BF16) {
        uint64_t bias = e == F16 ? 15 : 127;
        return value == 0 ? 0
                          : (bias + top) << fraction |
                                (value << (fraction - top) & ((1u << fraction) - 1));
    }
    return e == F32 ? single : e == F64 ? wide : value;
}

static bool is_less(element e, uint32_t bytes, uint64_t a, uint64_t b)
{
    if (e == SIGNED) {
        return bytes == 4 ? (int32_t)a < (int32_t)b : (int64_t)a < (int64_t)b;
    }
    return a < b;
}

static uint64_t reduced(uint32_t n, uint64_t old, uint64_t b)
{
    bool less = is_less(reductions[n].element, reductions[n].bytes, b, old);

    switch (reductions[n].op[0]) {
    case 'a':
        return reductions[n].op[1] == 'd' ? old + b : old & b;
    case 'm':
        return less == (reductions[n].op[1] == 'i') ? b : old;
    case 'i':
        return old >= b ? 0 : old + 1;
    case 'd':
        return old == 0 || old > b ? b : old - 1;
    default:
        return reductions[n].op[0] == 'o' ? old | b : old ^ b;
    }
}

static void make_operands(uint32_t n, uint8_t in[BYTES], uint8_t out[BYTES], uint8_t want[BYTES])
{
    uint32_t bytes = reductions[n].bytes;
    element e = reductions[n].element;
    uint64_t limit = e >= F32 ? 16 : bytes == 4 ? UINT32_MAX : UINT64_MAX;

    for (uint32_t at = 0; at < BYTES; at += bytes) {
        uint64_t a = word_of(at) * UINT64_C(0x9E3779B97F4A7C15) % limit;
        uint64_t b = word_of(at + 1) * UINT64_C(0xD1B54A32D192ED03) % limit;
        uint64_t bits[3] = {encode(e, b), encode(e, a),
                            encode(e, at < 1024 ? reduced(n, a, b) : a)};
        memcpy(in + at, &bits[0], bytes);
        memcpy(out + at, &bits[1], bytes);
        memcpy(want + at, &bits[2], bytes);
    }
}

START_TEST(a_reduction_is_the_plain_loop)
{
    static uint8_t in[BYTES], out[BYTES], want[BYTES];
    uint32_t n = (uint32_t)_i / 4;
    bool shared = _i % 4 / 2 != 0;
    char body[2048];
    bulk_case c;

    if (shared && !reductions[n].shared) {
        return;
    }
    if (shared) {
        snprintf(body, sizeof body,
                 "ld.global.v4.u32 {%%r4,%%r5,%%r6,%%r7}, [%%x4]; st.shared.v4.u32 [%%r3+4096], "
                 "{%%r4,%%r5,%%r6,%%r7};\n%s@!%%p0 bra "
                 "W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], 1024;\n"
                 "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes."
                 "%s.%s [%%r1+4096], [%%r1+1024], 1024, [%%r1];\n%sadd.u32 %%r3, %%r3, 3072;\n%s",
                 COPY_IN, reductions[n].op, reductions[n].type, WAIT, COPY_OUT);
    } else {
        snprintf(body, sizeof body,
                 "%s@!%%p0 bra E;\ncp.reduce.async.bulk.global.shared::cta.bulk_group."
                 "%s.%s [%%x1], [%%r1+1024], 1024;\n" GROUP " 0;\nE:",
                 COPY_IN, reductions[n].op, reductions[n].type);
    }
    make_operands(n, in, out, want);
    given_in = in;
    given_out = out;
    hone_status status = run_body(&c, body, 64, (hone_emu_timing)(_i % 2));
    ck_assert_msg(status == HONE_OK, "%s.%s: %s", reductions[n].op, reductions[n].type,
                  c.b.error.message);
    ck_assert_msg(memcmp(c.got, want, BYTES) == 0, "%s.%s, shared %d", reductions[n].op,
                  reductions[n].type, shared);
    ptx_bench_close(&c.b);
}
END_TEST

static const struct {
    const char *name, *form, *value;
    uint32_t bytes;
    bool adds; /* to what lies there */
} stores[] = {
    {"one word", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32", "%r4", 4, false},
    {"two words", "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32", "{%r4,%r5}",
     8, false},
    {"four words", "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32",
     "{%r4,%r5,%r6,%r7}", 16, false},
    {"an addition",
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32", "%r4", 4,
     true},
};

/* Sixteen bytes a lane, of which the store brings the first. */
START_TEST(a_store_of_a_thread_comes_with_its_bytes_told)
{
    uint32_t n = (uint32_t)_i / 2;
    char body[2048];
    bulk_case c;

    snprintf(
        body, sizeof body,
        "%s@%%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], %u;\n"
        "ld.global.v4.u32 {%%r4,%%r5,%%r6,%%r7}, [%%x3+1024];\n%s [%%r3+1024], %s, [%%r1];\n%s%s",
        COPY_IN, stores[n].bytes * 64, stores[n].form, stores[n].value, WAIT, COPY_OUT);
    hone_status status = run_body(&c, body, 64, (hone_emu_timing)(_i % 2));
    ck_assert_msg(status == HONE_OK, "%s: %s", stores[n].name, c.b.error.message);
    for (uint32_t w = 0; w < 256; w++) {
        bool new = w % 4 * 4 < stores[n].bytes;
        uint32_t want = new ? word_of(w + 256) + (stores[n].adds ? word_of(w) : 0) : word_of(w);
        ck_assert_msg(c.got[w] == want, "%s: word %u", stores[n].name, w);
    }
    ptx_bench_close(&c.b);
}
END_TEST

/* 16 bytes a thread by cp.async, where the predicate lets it, and zeros elsewhere. */
START_TEST(cp_async_ignores_its_source_where_a_predicate_says_so)
{
    bulk_case c;

    ck_assert_int_eq(
        run_body(&c,
                 "setp.gt.u32 %p2, %r0, 40;\ncp.async.ca.shared::cta.global "
                 "[%r3+1024], [%x3], 16, %p2;\ncp.async.wait_all;\nbar.sync 0;\n" COPY_OUT,
                 64, (hone_emu_timing)_i),
        HONE_OK);
    for (uint32_t w = 0; w < 256; w++) {
        ck_assert_uint_eq(c.got[w], w / 4 <= 40 ? word_of(w) : 0);
    }
    ptx_bench_close(&c.b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("bulk");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_copy_brings_the_bytes_in_both_timings, 0,
                        2 * (int)ARRAY_LEN(copies));
    tcase_add_loop_test(tests, a_source_that_changes_before_it_was_read_shows_in_both_timings, 0,
                        2);
    tcase_add_test(tests, a_byte_mask_leaves_out_bytes_of_each_16);
    tcase_add_loop_test(tests, each_rule_is_named_where_it_is_broken, 0,
                        2 * (int)ARRAY_LEN(faults));
    tcase_add_loop_test(tests, a_reduction_is_the_plain_loop, 0, 4 * (int)ARRAY_LEN(reductions));
    tcase_add_loop_test(tests, a_store_of_a_thread_comes_with_its_bytes_told, 0,
                        2 * (int)ARRAY_LEN(stores));
    tcase_add_loop_test(tests, cp_async_ignores_its_source_where_a_predicate_says_so, 0, 2);
    return suite_run("emulator/bulk", tests);
}
