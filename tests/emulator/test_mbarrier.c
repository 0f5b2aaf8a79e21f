/* test_mbarrier.c - mbarrier.*: random sequences of operations against a model written here, each
 * rule of the protocol broken once, and threads that wait for one another. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line 1 of the body is line 8 of the text. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %x<9>; .shared .align 8 .b8 s[512];\n"          \
    "ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u64 %x7, 0;\n"
#define LINE 8

enum { WORDS = 256 };

static hone_status run_body(ptx_bench *b, const char *body, uint32_t threads, uint64_t *out)
{
    char *text = malloc(strlen(HEAD) + strlen(body) + 64);

    ck_assert_ptr_nonnull(text);
    sprintf(text, "%s%s\nret;\n}\n", HEAD, body);
    ptx_bench_open(b);
    *out = ptx_bench_buffer(b, NULL, WORDS * sizeof(uint32_t));
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", body, b->error.message);
    free(text);
    return ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){threads, 1, 1},
                         (void *[]){out});
}

#define INIT "mbarrier.init.shared::cta.b64 [%r1+64], "
#define WAIT "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+64], "

static const struct {
    const char *name, *body, *message;
    int line, lane;
    uint32_t threads;
} faults[] = {
    {"an arrival where nothing was made", "mbarrier.arrive.shared.b64 _, [%r1+8];",
     "mbarrier at 8: never initialised", 0, 0, 1},
    {"an expectation where nothing was made",
     "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
     "[%r1+8], 16;",
     "mbarrier at 8: never initialised", 0, 0, 1},
    {"a wait where nothing was made", WAIT "0;", "mbarrier at 64: never initialised", 0, 0, 1},
    {"an arrival after inval",
     INIT "1;\nmbarrier.inval.shared::cta.b64 [%r1+64];\nmbarrier.arrive.shared::cta.b64 _, "
          "[%r1+64];",
     "mbarrier at 64: it was invalidated", 2, 0, 1},
    {"a wait after inval", INIT "1;\nmbarrier.inval.shared::cta.b64 [%r1+64];\n" WAIT "1;",
     "mbarrier at 64: it was invalidated", 2, 0, 1},
    {"one arrival too many while bytes are missing",
     INIT "4;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1+64], "
          "16;\nmbarrier.arrive.shared::cta.b64 _, [%r1+64];",
     "mbarrier at 64: 5th arrival of a phase that expects 4", 2, 4, 8},
    {"more arrivals at once than are pending",
     INIT "2;\nmbarrier.arrive.shared::cta.b64 _, [%r1+64], 3;",
     "mbarrier at 64: 3rd arrival of a phase that expects 2", 1, 0, 1},
    {"a second init", INIT "1;\n\n" INIT "2;",
     "mbarrier at 64: initialised again while it is live; line 8 made it", 2, 0, 1},
    {"a count of nothing", INIT "0;", "mbarrier at 64: a count of 0; it is 1 to 1048575", 0, 0, 1},
    {"a count past 20 bits", INIT "1048576;",
     "mbarrier at 64: a count of 1048576; it is 1 to 1048575", 0, 0, 1},
    {"an arrival of nothing", INIT "1;\nmbarrier.arrive.shared::cta.b64 _, [%r1+64], 0;",
     "mbarrier at 64: a count of 0; it is 1 to 1048575", 1, 0, 1},
    {"more bytes than 20 bits hold",
     INIT "2;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+64], "
          "1048575;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1+64], 1;",
     "mbarrier at 64: 1 bytes expected make its transaction count 1048576; it stays within "
     "1048575 of 0",
     2, 0, 1},
    {"bytes that come without end",
     INIT "2;\nmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1+64], 1048576;",
     "mbarrier at 64: 1048576 bytes came and make its transaction count -1048576; it stays within "
     "1048575 of 0",
     1, 0, 1},
    {".noComplete that completes",
     INIT "2;\nmbarrier.arrive.noComplete.shared.b64 %x1, [%r1+64], 2;",
     "mbarrier at 64: an arrival with .noComplete would complete phase 0", 1, 0, 1},
    {"a load of its bytes", INIT "1;\nld.shared.u32 %r2, [%r1+68];",
     "4 bytes at offset 68 of shared memory: an mbarrier lives at 64", 1, 0, 1},
    {"a store onto its bytes",
     INIT "1;\nshl.b32 %r2, %r0, 2; add.u32 %r2, %r2, %r1;\nst.shared.u32 [%r2], %r0;",
     "4 bytes at offset 64 of shared memory: an mbarrier lives at 64", 2, 16, 32},
    {"an atomic on its bytes", INIT "1;\natom.shared.add.u32 %r2, [%r1+64], 1;",
     "4 bytes at offset 64 of shared memory: an mbarrier lives at 64", 1, 0, 1},
    {"a wait with a state that is two phases old",
     INIT "1;\nmbarrier.arrive.shared::cta.b64 %x1, [%r1+64];\nmbarrier.arrive.shared::cta.b64 _, "
          "[%r1+64];\nmbarrier.test_wait.shared::cta.b64 %p1, [%r1+64], %x1;",
     "mbarrier at 64: phase skipped: the wait is for phase 0, and phase 2 goes on", 3, 0, 1},
    {"a lane that was refused, and finds its phase and the next one over",
     INIT "1;\nAGAIN: " WAIT "0;\nmbarrier.arrive.shared::cta.b64 _, [%r1+64];\n"
          "mbarrier.arrive.shared::cta.b64 _, [%r1+64]; bra AGAIN;",
     "mbarrier at 64: phase skipped: the lane waited for phase 0, and phase 2 goes on", 1, 0, 1},
    {"bytes still missing at the end",
     INIT "1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+64], 4096;",
     "mbarrier at 64: its CTA ends with 4096 bytes of phase 0 missing", 0, 0, 1},
    {"bytes that nobody expected at the end",
     INIT "1;\nmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1+64], 48;",
     "mbarrier at 64: its CTA ends with 48 bytes of phase 0 that nobody expected", 0, 0, 1},
};

START_TEST(each_rule_of_the_protocol_is_named_where_it_is_broken)
{
    ptx_bench b;
    uint64_t out;
    uint32_t threads = faults[_i].threads;
    char body[2048];

    /* one thread makes the mbarrier, the others come behind a barrier */
    const char *rest = strchr(faults[_i].body, '\n');
    int first = rest != NULL ? (int)(rest - faults[_i].body) : 0;
    if (threads > 1) {
        snprintf(body, sizeof body, "setp.eq.u32 %%p8, %%r0, 0; @%%p8 %.*s bar.sync 0;%s", first,
                 faults[_i].body, rest);
    } else {
        snprintf(body, sizeof body, "%s", faults[_i].body);
    }
    hone_status status = run_body(&b, body, threads, &out);
    ck_assert_msg(status == HONE_WRONG, "%s: not caught", faults[_i].name);
    ck_assert_msg(strcmp(b.fault.kind, "mbarrier") == 0 &&
                      strcmp(b.fault.message, faults[_i].message) == 0 &&
                      b.fault.ptx_line == LINE + faults[_i].line && b.fault.lane == faults[_i].lane,
                  "%s: %s at line %d lane %d: %s", faults[_i].name, b.fault.kind,
                  b.fault.ptx_line - LINE, b.fault.lane, b.fault.message);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(after_inval_the_bytes_are_ordinary_memory_again)
{
    ptx_bench b;
    uint64_t out;
    uint32_t word = 0;

    ck_assert_int_eq(run_body(&b,
                              INIT "1;\nmbarrier.inval.shared::cta.b64 [%r1+64];\n"
                                   "mov.u32 %r2, 77; st.shared.u32 [%r1+64], %r2; ld.shared.u32 "
                                   "%r3, [%r1+64]; st.global.u32 [%x0], %r3; mov.u64 %x1, 0; "
                                   "st.shared.u64 [%r1+64], %x1;\n" INIT
                                   "3;\nmbarrier.arrive.shared::cta.b64 %x2, [%r1+64]; "
                                   "mbarrier.pending_count.b64 %r4, %x2; st.global.u32 [%x0+4], "
                                   "%r4;",
                              1, &out),
                     HONE_OK);
    ptx_bench_read(&b, out, &word, 4);
    ck_assert_uint_eq(word, 77);
    ptx_bench_read(&b, out + 4, &word, 4);
    ck_assert_uint_eq(word, 3);
    ptx_bench_close(&b);
}
END_TEST

/* The model: what emulator.md 5.5 says, in numbers of its own. */
typedef struct model {
    uint32_t phases, each, arrived, of;
    int64_t bytes;
} model;

static void settle(model *m)
{
    if (m->arrived == m->of && m->bytes == 0) {
        *m = (model){.phases = m->phases + 1, .each = m->each, .of = m->each};
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545F4914F6CDD1D) >> 24;
}

typedef struct script {
    char *text;
    size_t len, capacity;
    uint32_t expected[WORDS], words;
    uint64_t random;
} script;

__attribute__((format(printf, 2, 3))) static void add(script *s, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    s->len += (size_t)vsnprintf(s->text + s->len, s->capacity - s->len, format, arguments);
    va_end(arguments);
    ck_assert_uint_lt(s->len, s->capacity);
}

static void check_word(script *s, const char *value, uint32_t expected)
{
    add(s, "st.global.u32 [%%x0+%u], %s;\n", s->words * 4, value);
    s->expected[s->words++] = expected;
}

static void check_predicate(script *s, bool expected)
{
    add(s, "selp.u32 %%r9, 1, 0, %%p1;\n");
    check_word(s, "%r9", expected);
}

static void arrive_somehow(script *s, model *m, uint32_t at)
{
    uint32_t left = m->of - m->arrived, n = 1 + (uint32_t)next_random(&s->random) % left;
    uint32_t bytes = (uint32_t)next_random(&s->random) % 64 * 16, before = left;

    switch (next_random(&s->random) % 5) {
    case 0:
        add(s, "mbarrier.arrive.shared::cta.b64 %%x1, [%%r1+%u], %u;\n", at, n);
        m->arrived += n;
        break;
    case 1:
        add(s, "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %%x1, [%%r1+%u], %u;\n", at,
            bytes);
        m->bytes += bytes;
        m->arrived++;
        break;
    case 2:
        n = m->each > n && m->each > 1 ? n : 0;
        if (n == 0) {
            return;
        }
        add(s, "mbarrier.arrive_drop.shared::cta.b64 %%x1, [%%r1+%u], %u;\n", at, n);
        m->each -= n;
        m->arrived += n;
        break;
    case 3:
        if (n == left && m->bytes == 0) {
            return;
        }
        add(s, "mbarrier.arrive.noComplete.shared.b64 %%x1, [%%r1+%u], %u;\n", at, n);
        m->arrived += n;
        break;
    default:
        add(s, "mbarrier.arrive.relaxed.cluster.shared::cta.b64 %%x1, [%%r1+%u];\n", at);
        m->arrived++;
    }
    uint32_t phase = m->phases;
    settle(m);
    add(s, "mbarrier.pending_count.b64 %%r9, %%x1;\n");
    check_word(s, "%r9", before);
    add(s, "mbarrier.test_wait.acquire.cta.shared::cta.b64 %%p1, [%%r1+%u], %%x1;\n", at);
    check_predicate(s, m->phases != phase);
}

static void one_step(script *s, model *m, uint32_t at)
{
    uint32_t bytes = (uint32_t)next_random(&s->random) % 64 * 16;

    switch (next_random(&s->random) % 4) {
    case 0:
        if (m->arrived < m->of) {
            arrive_somehow(s, m, at);
        }
        break;
    case 1:
        add(s, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%%r1+%u], %u;\n", at, bytes);
        m->bytes += bytes;
        settle(m);
        break;
    case 2:
        bytes = m->bytes > 0 ? (uint32_t)m->bytes : bytes;
        add(s, "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%%r1+%u], %u;\n", at, bytes);
        m->bytes -= bytes;
        settle(m);
        break;
    default:
        add(s, "mbarrier.test_wait.parity.shared::cta.b64 %%p1, [%%r1+%u], %u;\n", at,
            (m->phases & 1) ^ 1);
        check_predicate(s, true);
    }
}

START_TEST(random_operations_do_what_the_model_does)
{
    static const uint32_t at[3] = {0, 64, 504};
    script s = {.capacity = 1 << 16, .random = (uint64_t)_i * 77 + 1};
    uint32_t got[WORDS];
    model m[3];
    ptx_bench b;
    uint64_t out;

    s.text = calloc(1, s.capacity);
    for (uint32_t n = 0; n < 3; n++) {
        uint32_t count = 1 + (uint32_t)next_random(&s.random) % 5;
        m[n] = (model){.each = count, .of = count};
        add(&s, "mbarrier.init.shared::cta.b64 [%%r1+%u], %u;\n", at[n], count);
    }
    for (uint32_t step = 0; step < 100; step++) {
        uint32_t n = (uint32_t)next_random(&s.random) % 3;
        one_step(&s, &m[n], at[n]);
    }
    for (uint32_t n = 0; n < 3; n++) { /* bytes must add up in the end */
        add(&s, "mbarrier.%s.relaxed.cta.shared::cta.b64 [%%r1+%u], %lld;\n",
            m[n].bytes > 0 ? "complete_tx" : "expect_tx", at[n], llabs(m[n].bytes));
    }
    hone_status status = run_body(&b, s.text, 1, &out);
    ck_assert_msg(status == HONE_OK, "%s\n%s", b.error.message, s.text);
    ptx_bench_read(&b, out, got, s.words * sizeof *got);
    for (uint32_t n = 0; n < s.words; n++) {
        ck_assert_msg(got[n] == s.expected[n], "word %u is %u, not %u:\n%s", n, got[n],
                      s.expected[n], s.text);
    }
    free(s.text);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("mbarrier");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, each_rule_of_the_protocol_is_named_where_it_is_broken, 0,
                        (int)ARRAY_LEN(faults));
    tcase_add_test(tests, after_inval_the_bytes_are_ordinary_memory_again);
    tcase_add_loop_test(tests, random_operations_do_what_the_model_does, 0, 100);
    return suite_run("emulator/mbarrier", tests);
}
