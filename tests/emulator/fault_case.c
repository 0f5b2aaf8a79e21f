/* fault_case.c - runs one: see the header. */
#include "tests/emulator/fault_case.h"

#include <stdio.h>
#include <string.h>

#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".const .align 16 .b32 c[8]; .visible .entry k(.param .u64 data, .param .u64 half, .param "    \
    ".u64 gone)\n{ .reg .pred "                                                                    \
    "%p<10>; .reg .b16 %h<9>; .reg .f32 %f<20>; .reg .b32 %r<40>; .reg .b64 %x<20>; "              \
    ".shared .align 1024 .b8 s[8192]; .local .align 8 .b8 l[64];\n"                                \
    "ld.param.u64 %x0, [data]; ld.param.u64 %x9, [half]; ld.param.u64 %x10, [gone];\n"             \
    "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shr.u32 %r2, %r0, 5; mov.u32 %r3, %ctaid.x; "      \
    "shl.b32 %r4, %r0, 2; shl.b32 %r5, %r1, 2;\n"                                                  \
    "mul.wide.u32 %x1, %r0, 4; add.s64 %x1, %x1, %x0; mul.wide.u32 %x2, %r1, 4; add.s64 %x2, "     \
    "%x2, %x0; add.s64 %x3, %x0, 4096;\n"                                                          \
    "setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1; setp.eq.u32 %p3, %r3, 0; setp.eq.u32 %p4, " \
    "%r1, 0; not.pred %p5, %p3;\n"

enum { SEEDS = 8, DATA = 8192, HALF = 256, BODY = 10 }; /* BODY: text line of its line 0 */

static hone_status run(ptx_bench *b, const fault_case *c, const char *body, uint64_t n)
{
    static const uint8_t zeros[DATA];
    char text[8192];

    snprintf(text, sizeof text, "%s%s\nret;\n}\n" FAULT_CASE_FILE, HEAD, body);
    ptx_bench_open(b);
    b->launch.checks = HONE_EMU_CHECK_ALL;
    b->launch.schedule_seed = n / 2;
    b->launch.timing = n % 2 ? HONE_EMU_LATEST : HONE_EMU_AT_ISSUE;
    b->launch.cluster[0] = c->cluster;
    uint64_t data = ptx_bench_buffer(b, zeros, sizeof zeros), half = ptx_bench_buffer(b, NULL, 512),
             gone = ptx_bench_buffer(b, zeros, HALF);
    ck_assert_int_eq(memory_write(b->memory, half, zeros, HALF, &b->error), HONE_OK);
    ck_assert_int_eq(memory_free(b->memory, gone, &b->error), HONE_OK);
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", c->name, b->error.message);
    return ptx_bench_run(b, "k", (uint32_t[]){c->ctas, 1, 1}, (uint32_t[]){c->threads, 1, 1},
                         (void *[]){&data, &half, &gone});
}

bool fault_case_matches(const char *pattern, const char *text)
{
    const char *star = strchr(pattern, '*');
    size_t head = star != NULL ? (size_t)(star - pattern) : 0, len = strlen(text);

    if (star == NULL) {
        return strcmp(pattern, text) == 0;
    }
    size_t tail = strlen(star + 1);
    return len >= head + tail && strncmp(pattern, text, head) == 0 &&
           strcmp(star + 1, text + len - tail) == 0;
}

uint32_t fault_case_lines(const char *body, char *out, size_t capacity)
{
    uint32_t lines = 0;
    size_t used = 0;

    for (const char *at = body; at != NULL; lines++) {
        const char *end = strchr(at, '\n');
        int len = end != NULL ? (int)(end - at) : (int)strlen(at);
        used += (size_t)snprintf(out + used, capacity - used, "%s.loc 1 %u 1\n%.*s",
                                 lines > 0 ? "\n" : "", FAULT_CASE_LINE + lines, len, at);
        ck_assert_uint_lt(used, capacity);
        at = end != NULL ? end + 1 : NULL;
    }
    return lines;
}

/* The same with the lines of a CUDA source, as -lineinfo has them. */
static void cuda_line_is_told(const fault_case *c)
{
    char body[8192];
    ptx_bench b;
    int lines = (int)fault_case_lines(c->bad, body, sizeof body), line = c->line - BODY;

    line = line < lines ? line : lines - 1; /* behind the body: still its last */
    ck_assert_int_eq(run(&b, c, body, 0), HONE_WRONG);
    ck_assert_str_eq(b.fault.source, "k.cu");
    ck_assert_msg(b.fault.source_line == FAULT_CASE_LINE + line, "%s: CUDA line %d, not %d",
                  c->name, b.fault.source_line, FAULT_CASE_LINE + line);
    ptx_bench_close(&b);
}

void fault_case_is_told(const fault_case *c)
{
    ptx_bench b;

    cuda_line_is_told(c);
    ck_assert_msg(run(&b, c, c->bad, 0) == HONE_WRONG, "%s: not caught", c->name);
    ck_assert_msg(strcmp(b.fault.kind, c->kind) == 0 &&
                      fault_case_matches(c->message, b.fault.message),
                  "%s: line %d lane %d warp %d: %s: %s", c->name, b.fault.ptx_line, b.fault.lane,
                  b.fault.warp, b.fault.kind, b.fault.message);
    ck_assert_msg(b.fault.ptx_line == c->line && b.fault.lane == c->lane && b.fault.warp == c->warp,
                  "%s: line %d lane %d warp %d", c->name, b.fault.ptx_line, b.fault.lane,
                  b.fault.warp);
    ptx_bench_close(&b);
}

static void twin_passes(const fault_case *c)
{
    ptx_bench b;

    for (uint64_t n = 0; c->good != NULL && n < 2 * SEEDS; n++) {
        ck_assert_msg(run(&b, c, c->good, n) == HONE_OK, "%s, seed %llu, timing %llu: line %d: %s",
                      c->name, (unsigned long long)n / 2, (unsigned long long)n % 2,
                      b.fault.ptx_line, b.error.message);
        ptx_bench_close(&b);
    }
}

void fault_case_twin_passes_once(const fault_case *c)
{
    ptx_bench b;

    ck_assert_msg(run(&b, c, c->good, 0) == HONE_OK, "%s: line %d: %s", c->name, b.fault.ptx_line,
                  b.error.message);
    ptx_bench_close(&b);
}

static void never_passes(const fault_case *c)
{
    ptx_bench b;

    for (uint64_t n = 0; n < 2 * SEEDS; n++) {
        ck_assert_msg(run(&b, c, c->bad, n) == HONE_WRONG, "%s, seed %llu, timing %llu: not caught",
                      c->name, (unsigned long long)n / 2, (unsigned long long)n % 2);
        ptx_bench_close(&b);
    }
}

static const fault_case *table;

START_TEST(a_kernel_that_breaks_a_rule_is_told_which)
{
    fault_case_is_told(&table[_i]);
}
END_TEST

START_TEST(its_twin_passes_under_every_order_of_warps_and_both_timings)
{
    twin_passes(&table[_i]);
}
END_TEST

START_TEST(a_kernel_that_breaks_a_rule_never_passes)
{
    never_passes(&table[_i]);
}
END_TEST

TCase *fault_case_tests(const char *name, const fault_case *cases, size_t len)
{
    TCase *tests = tcase_create(name);

    table = cases;
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, a_kernel_that_breaks_a_rule_is_told_which, 0, (int)len);
    tcase_add_loop_test(tests, its_twin_passes_under_every_order_of_warps_and_both_timings, 0,
                        (int)len);
    tcase_add_loop_test(tests, a_kernel_that_breaks_a_rule_never_passes, 0, (int)len);
    return tests;
}
