/* test_calls.c - functions: through addresses, under predicates, by other names; what kernels print
 * and how asserts read. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 8.8\n.target sm_90\n.address_size 64\n"

/* One warp of a kernel with one pointer to 32 words. */
static hone_status run(ptx_bench *b, const char *text, uint32_t out[32])
{
    ptx_bench_open(b);
    ck_assert_msg(ptx_bench_load(b, text) == HONE_OK, "%s", b->error.message);
    uint64_t d = ptx_bench_buffer(b, NULL, 128);
    hone_status status =
        ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1}, (void *[]){&d});
    if (status == HONE_OK) {
        ptx_bench_read(b, d, out, 128);
    }
    return status;
}

static const char functions[] = HEAD
    ".func (.param .b32 r) add5(.param .b32 a)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r0, [a];\n"
    "add.s32 %r0, %r0, 5;\nst.param.b32 [r], %r0;\nret;\n}\n"
    ".func (.param .b32 r) times3(.param .b32 a)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r0, [a];\n"
    "mul.lo.s32 %r0, %r0, 3;\nst.param.b32 [r], %r0;\nret;\n}\n"
    ".func (.param .b32 r) unused(.param .b32 a)\n{\ntrap;\n}\n"
    ".alias other, times3;\n"
    ".global .align 8 .u64 table[2] = {add5, other};\n"
    ".entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %x<9>; .reg .pred %p<3>;\n"
    "ld.param.u64 %x0, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %x1, %r0, 4;\n"
    "add.s64 %x0, %x0, %x1;\nand.b32 %r1, %r0, 1;\nmul.wide.u32 %x2, %r1, 8;\n"
    "mov.u64 %x3, table; add.s64 %x3, %x3, %x2;\nld.global.u64 %x4, [%x3];\n"
    "{\n.param .b32 p; .param .b32 back;\nst.param.b32 [p], %r0;\n"
    "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
    "call (back), %x4, (p), proto;\nld.param.b32 %r2, [back];\n}\n"
    "setp.gt.u32 %p1, %r0, 20;\n"
    "{\n.param .b32 p; .param .b32 back;\nst.param.b32 [p], %r2;\nst.param.b32 [back], %r2;\n"
    "@%p1 call (back), other, (p);\nld.param.b32 %r2, [back];\n}\n"
    "st.global.u32 [%x0], %r2;\nret;\n}\n";

START_TEST(calls_go_through_addresses_predicates_and_aliases)
{
    ptx_bench b;
    uint32_t out[32];

    ck_assert_msg(run(&b, functions, out) == HONE_OK, "line %d: %s", b.fault.ptx_line,
                  b.error.message);
    for (uint32_t n = 0; n < 32; n++) {
        uint32_t first = n % 2 ? 3 * n : n + 5;
        ck_assert_uint_eq(out[n], n > 20 ? 3 * first : first);
    }
    ptx_bench_close(&b);
}
END_TEST

START_TEST(a_call_of_an_address_that_is_no_function_is_named)
{
    static const char text[] =
        HEAD ".func f()\n{\nret;\n}\n.global .u64 table[1] = {f};\n"
             ".entry k(.param .u64 out)\n{\n.reg .b64 %x<3>;\nmov.u64 %x0, 4096;\n"
             "proto: .callprototype _ ();\ncall %x0, (), proto;\nret;\n}\n";
    ptx_bench b;
    uint32_t out[32];

    ck_assert_int_ne(run(&b, text, out), HONE_OK);
    ck_assert_str_eq(b.fault.kind, "out-of-bounds");
    ck_assert_str_eq(b.fault.message, "a call of 0x1000, which is no function of this module");
    ck_assert_int_eq(b.fault.ptx_line, 14);
    ptx_bench_close(&b);
}
END_TEST

static const struct {
    const char *text, *reason;
    int32_t line;
} refused[] = {
    {HEAD ".func f()\n{\ncall.uni g;\nret;\n}\n.func g()\n{\ncall.uni f;\nret;\n}\n"
          ".entry k()\n{\ncall.uni f;\nret;\n}\n",
     "line 11: call.uni: a function that calls itself, or calls 16 deep", 11},
    {HEAD ".extern .func (.param .b64 r) malloc(.param .b64 a);\n.entry k()\n{\n.param .b64 a; "
          ".param .b64 r;\ncall.uni (r), malloc, (a);\nret;\n}\n",
     "line 8: call.uni: no device heap, no launches from the device", 8},
};

START_TEST(what_cannot_be_called_is_refused_with_a_reason)
{
    ptx_bench b;

    ptx_bench_open(&b);
    ck_assert_int_eq(ptx_bench_load(&b, refused[_i].text), HONE_UNSUPPORTED);
    ck_assert_int_eq(b.error.line, refused[_i].line);
    ck_assert_msg(strstr(b.error.message, refused[_i].reason) != NULL, "%s", b.error.message);
    ptx_bench_close(&b);
}
END_TEST

/* What `text` prints onto stderr. */
static void capture(const char *text, char *out, size_t capacity)
{
    ptx_bench b;
    uint32_t words[32];
    FILE *file = tmpfile();
    int before = dup(2);

    ck_assert_ptr_nonnull(file);
    fflush(stderr);
    dup2(fileno(file), 2);
    hone_status status = run(&b, text, words);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    ck_assert_msg(status == HONE_OK, "line %d: %s", b.fault.ptx_line, b.error.message);
    rewind(file);
    size_t len = fread(out, 1, capacity - 1, file);
    out[len] = '\0';
    fclose(file);
    ptx_bench_close(&b);
}

/* Bytes of a string, for an initialiser. */
static size_t add_bytes(char *text, size_t used, const char *name, const char *value)
{
    used += (size_t)sprintf(text + used, ".global .align 1 .b8 %s[] = {", name);
    for (size_t n = 0; n <= strlen(value); n++) {
        used += (size_t)sprintf(text + used, "%s%d", n == 0 ? "" : ",", value[n]);
    }
    return used + (size_t)sprintf(text + used, "};\n");
}

START_TEST(kernels_print_through_their_own_formats)
{
    char text[4096], out[512];
    size_t used = (size_t)sprintf(text, HEAD);

    used = add_bytes(text, used, "format", "%d|%5u|%-4x|%lld|%.3f|%s|%c|%%|%*d|%08.2e|%hd\n");
    used = add_bytes(text, used, "word", "hone");
    used += (size_t)sprintf(
        text + used,
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
        ".entry k(.param .u64 out)\n{\n.local .align 8 .b8 list[80];\n.reg .b32 %%r<9>; .reg .b64 "
        "%%x<9>; .reg .pred %%p<3>;\n"
        "ld.param.u64 %%x6, [out]; mov.u32 %%r0, %%tid.x; mul.wide.u32 %%x7, %%r0, 4; add.u64 "
        "%%x6, %%x6, %%x7;\n"
        "mov.u64 %%x0, list;\ncvta.local.u64 %%x1, %%x0;\n"
        "st.local.u32 [%%x0], -7; st.local.u32 [%%x0+4], 42; st.local.u32 [%%x0+8], 255;\n"
        "st.local.u64 [%%x0+16], -5000000000; st.local.f64 [%%x0+24], 0d400921FB54442D18;\n"
        "mov.u64 %%x3, word; st.local.u64 [%%x0+32], %%x3; st.local.u32 [%%x0+40], 65;\n"
        "st.local.u32 [%%x0+44], 6; st.local.u32 [%%x0+48], 12; st.local.f64 [%%x0+56], "
        "0d40C3880000000000;\nst.local.u32 [%%x0+64], 9; mov.u32 %%r5, -3;\n"
        "setp.eq.u32 %%p1, %%r0, 3;\nmov.u64 %%x2, format;\n"
        "{\n.param .b64 f; .param .b64 v; .param .b32 back;\nst.param.b64 [f], %%x2;\n"
        "st.param.b64 [v], %%x1; st.param.b32 [back], 0;\n@%%p1 call.uni (back), vprintf, (f, v);\n"
        "ld.param.b32 %%r1, [back];\n}\nst.global.u32 [%%x6], %%r1;\nret;\n}\n");
    capture(text, out, sizeof out);
    ck_assert_str_eq(out, "-7|   42|ff  |-5000000000|3.142|hone|A|%|    12|1.00e+04|9\n");
}
END_TEST

/* 2,000 bytes at a time, by 32 lanes, 32 times over: past a launch's MiB nothing comes. */
START_TEST(a_launch_prints_no_more_than_its_buffer)
{
    static char out[(2 << 20) + 16];
    char text[4096];
    size_t used = (size_t)sprintf(text, HEAD);

    used = add_bytes(text, used, "format", "%1999d\n");
    sprintf(
        text + used,
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
        ".entry k(.param .u64 out)\n{\n.local .align 8 .b8 list[8];\n.reg .b32 %%r<9>; .reg .b64 "
        "%%x<9>; .reg .pred %%p<3>;\n"
        "ld.param.u64 %%x6, [out]; mov.u32 %%r0, %%tid.x; mul.wide.u32 %%x7, %%r0, 4; add.u64 "
        "%%x6, %%x6, %%x7;\nmov.u64 %%x0, list;\ncvta.local.u64 %%x1, %%x0;\n"
        "st.local.u32 [%%x0], 1; mov.u64 %%x2, format; mov.u32 %%r2, 0;\nAGAIN:\n"
        "{\n.param .b64 f; .param .b64 v; .param .b32 back;\nst.param.b64 [f], %%x2;\n"
        "st.param.b64 [v], %%x1;\ncall.uni (back), vprintf, (f, v);\n"
        "ld.param.b32 %%r1, [back];\n}\nadd.u32 %%r2, %%r2, 1; setp.lt.u32 %%p1, %%r2, 32;\n"
        "@%%p1 bra AGAIN;\nst.global.u32 [%%x6], %%r1;\nret;\n}\n");
    capture(text, out, sizeof out);
    ck_assert_uint_eq(strlen(out), (1 << 20) / 2000 * 2000);
}
END_TEST

START_TEST(asserts_say_what_failed_and_where)
{
    char text[4096];
    size_t used = (size_t)sprintf(text, HEAD);
    ptx_bench b;
    uint32_t out[32];

    used = add_bytes(text, used, "message", "i < n");
    used = add_bytes(text, used, "file", "kernel.cu");
    used = add_bytes(text, used, "function", "void k()");
    sprintf(
        text + used,
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, "
        ".param .b64 c);\n.entry k(.param .u64 out)\n{\n.reg .b64 %%x<9>; .reg .b32 %%r<3>; .reg "
        ".pred %%p;\nmov.u32 %%r0, %%tid.x;\nsetp.lt.u32 %%p, %%r0, 5;\n@%%p bra DONE;\n"
        "mov.u64 %%x0, message; mov.u64 %%x1, file; mov.u64 %%x2, function;\n"
        "{\n.param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;\n"
        "st.param.b64 [m], %%x0; st.param.b64 [f], %%x1; st.param.b32 [l], 77;\n"
        "st.param.b64 [n], %%x2; st.param.b64 [c], 1;\ncall.uni __assertfail, (m, f, l, n, c);\n"
        "}\nDONE:\nret;\n}\n");
    ck_assert_int_ne(run(&b, text, out), HONE_OK);
    ck_assert_str_eq(b.fault.kind, "assert");
    ck_assert_str_eq(b.fault.message, "kernel.cu:77: void k(): assertion `i < n` failed");
    ck_assert_int_eq(b.fault.lane, 5);
    ptx_bench_close(&b);
}
END_TEST

/* A declaration that is not the runtime's: there is nothing to read, and it still stops. */
START_TEST(an_assertion_without_arguments_is_told)
{
    ptx_bench b;
    static const char text[] =
        ".version 8.8\n.target sm_90\n.address_size 64\n.extern .func __assertfail();\n"
        ".visible .entry k()\n{\n.reg .pred %p;\n.reg .b32 %r0;\nmov.u32 %r0, %tid.x;\n"
        "setp.lt.u32 %p, %r0, 7;\n@%p bra DONE;\ncall.uni __assertfail;\nDONE:\nret;\n}\n";

    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    ck_assert_int_ne(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1}, NULL),
                     HONE_OK);
    ck_assert_str_eq(b.fault.kind, "assert");
    ck_assert_str_eq(b.fault.message, "a device-side assert failed");
    ck_assert_int_eq(b.fault.ptx_line, 12);
    ck_assert_int_eq(b.fault.lane, 7);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("calls");

    tcase_add_test(tests, calls_go_through_addresses_predicates_and_aliases);
    tcase_add_test(tests, a_call_of_an_address_that_is_no_function_is_named);
    tcase_add_loop_test(tests, what_cannot_be_called_is_refused_with_a_reason, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_test(tests, kernels_print_through_their_own_formats);
    tcase_add_test(tests, a_launch_prints_no_more_than_its_buffer);
    tcase_add_test(tests, asserts_say_what_failed_and_where);
    tcase_add_test(tests, an_assertion_without_arguments_is_told);
    return suite_run("emulator/calls", tests);
}
