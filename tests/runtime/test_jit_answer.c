/* test_jit_answer.c - ptxas' report by kernel, clean logs, first causes, and a cache key that
 * misses nothing. */
#include "runtime/jit_answer.h"
#include "runtime/jit_report.h"
#include "runtime/wire.h"
#include "tests/support/suite.h"

#include <check.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As NVRTC 13.0 writes it, two kernels. */
static const char log_of_two[] =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function '_Z1kIXtl6ConfigLi5EEEvPf' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z1kIXtl6ConfigLi5EEEvPf\n"
    "ptxas         .     96 bytes stack frame, 92 bytes spill stores, 104 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 1 barriers, 96 bytes cumulative stack size, 2048 "
    "bytes smem\n"
    "ptxas info    : Compile time = 8.170 ms\n"
    "ptxas info    : Compiling entry function '_Z1kIXtl6ConfigLi3EEEvPf' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z1kIXtl6ConfigLi3EEEvPf\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 1 barriers\n"
    "ptxas info    : Compile time = 1.844 ms\n";

static const struct {
    const char *lowered;
    bool found;
    int32_t registers, shared, stack, spill;
} kernels[] = {
    {"_Z1kIXtl6ConfigLi5EEEvPf", true, 168, 2048, 96, 196},
    {"_Z1kIXtl6ConfigLi3EEEvPf", true, 10, 0, 0, 0},
    {"_Z1kIXtl6ConfigLi3EEEv", false, 0, 0, 0, 0}, /* a prefix is another name */
    {"other", false, 0, 0, 0, 0},
};

START_TEST(resources_are_read_by_the_kernels_own_name)
{
    kernel_function f = {.name = NULL};

    ck_assert(jit_report_resources(log_of_two, strlen(log_of_two), kernels[_i].lowered, &f) ==
              kernels[_i].found);
    ck_assert_int_eq(f.registers, kernels[_i].registers);
    ck_assert_int_eq(f.shared_bytes, kernels[_i].shared);
    ck_assert_int_eq(f.local_bytes, kernels[_i].stack);
    ck_assert_int_eq(f.spill_bytes, kernels[_i].spill);
}
END_TEST

START_TEST(a_cut_report_is_not_believed)
{
    kernel_function f;
    const char *used = strstr(log_of_two, "Used 168");

    ck_assert(
        !jit_report_resources(log_of_two, (size_t)(used - log_of_two), kernels[0].lowered, &f));
}
END_TEST

/* As NVRTC 13.0 writes them before the report; the last is of a function that both may call. */
#define SERIALISED                                                                                 \
    "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async instructions are "        \
    "serialized due to non wgmma instructions reading accumulator registers of  a wgmma between "  \
    "start and end of the pipeline stage in the function "
#define INJECTED                                                                                   \
    "ptxas info    : (C7519) warpgroup.arrive is injected in around line 521 by compiler to "      \
    "allow use of registers in GMMA in function "
#define IGNORED                                                                                    \
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to "         \
    "determine register count at entry.\n"
#define UNNUMBERED                                                                                 \
    "ptxas info    : Potential Performance Loss: wgmma.mma_async instructions are serialized due " \
    "to ill formed pipeline stage in the function "

static const struct {
    const char *name, *before;
    int32_t counts[2]; /* of the two kernels */
    const char *first; /* of the first kernel: how it begins */
} remarks[] = {
    {"a clean report has none", "", {0, 0}, ""},
    {"a remark is its function's",
     INJECTED "'_Z1kIXtl6ConfigLi5EEEvPf'\n" INJECTED "'_Z1kIXtl6ConfigLi5EEEvPf'\n",
     {2, 0},
     "(C7519) warpgroup.arrive is injected in around line 521"},
    {"one of the other kernel is not ours", SERIALISED "'_Z1kIXtl6ConfigLi3EEEvPf'\n", {0, 1}, ""},
    {"one that names nobody is everybody's",
     IGNORED,
     {1, 1},
     "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register "
     "count at entry."},
    {"so is one of a function that is no kernel",
     SERIALISED "'helper'\n",
     {1, 1},
     "(C7514) Potential Performance Loss: wgmma.mma_async instructions are serialized"},
    {"older compilers give no number",
     UNNUMBERED "'_Z1kIXtl6ConfigLi5EEEvPf'\n",
     {1, 0},
     "Potential Performance Loss: wgmma.mma_async"},
    {"ptxas' other messages are none", "ptxas info    : (C7600) something about 'k'\n", {0, 0}, ""},
};

START_TEST(remarks_are_counted_by_kernel)
{
    char log[4096], first[320];

    snprintf(log, sizeof log, "%s%s", remarks[_i].before, log_of_two);
    for (int k = 0; k < 2; k++) {
        const int32_t count =
            jit_report_remarks(log, strlen(log), kernels[k].lowered, first, sizeof first);
        ck_assert_msg(count == remarks[_i].counts[k], "%s: %d", remarks[_i].name, count);
        ck_assert((count > 0) == (first[0] != '\0'));
        ck_assert_msg(k > 0 || strncmp(first, remarks[_i].first, strlen(remarks[_i].first)) == 0,
                      "%s: '%s'", remarks[_i].name, first);
        ck_assert_ptr_null(strstr(first, "function"));
    }
}
END_TEST

static const struct {
    const char *name, *text, *clean;
} texts[] = {
    {"plain text stays", "a.cu(1): error: x\n", "a.cu(1): error: x\n"},
    {"escape codes are defused", "\x1b[31mred\x1b]0;title\x07", "?[31mred?]0;title?"},
    {"other controls and DEL too", "a\rb\x7f", "a?b?"},
    {"UTF-8 stays", "\xc2\xb5s \xe2\x89\xa4 \xf0\x9f\x98\x80",
     "\xc2\xb5s \xe2\x89\xa4 \xf0\x9f\x98\x80"},
    {"C1 controls are not text",
     "\xc2\x9b"
     "31m",
     "??31m"},
    {"overlong forms and surrogates are not UTF-8", "\xc0\xaf\xe0\x80\xaf\xed\xa0\x80", "????????"},
    {"a cut sequence is not UTF-8", "\xe2\x89", "??"},
};

START_TEST(logs_are_safe_to_print)
{
    char out[64];

    jit_answer_clean(texts[_i].text, strlen(texts[_i].text), out, sizeof out);
    ck_assert_msg(strcmp(out, texts[_i].clean) == 0, "%s: '%s'", texts[_i].name, out);
}
END_TEST

START_TEST(a_long_log_is_cut_at_a_whole_character)
{
    char out[6];

    jit_answer_clean("abcd\xe2\x89\xa4", 7, out, sizeof out);
    ck_assert_str_eq(out, "abcd");
}
END_TEST

/* ---- Answers --------------------------------------------------------------------------------- */

static const char *const header_text = "/* header */", *const header_name = "device/x.cuh";
static const jit_version version = {.nvrtc_version = 13000, .build = "aa"};

static jit_request base_request(void)
{
    return (jit_request){.name = "op/template",
                         .source = {.source = "source",
                                    .headers = &header_text,
                                    .names = &header_name,
                                    .headers_len = 1},
                         .entries = {"k<Config{.a = 5}>"},
                         .entries_len = 1,
                         .arch = 90};
}

typedef struct answer_case {
    const char *name;
    uint64_t result;
    const char *log, *lowered, *cubin, *ptx;
    hone_status status;
    const char *message; /* part of it */
    bool spent;
} answer_case;

static const answer_case answers[] = {
    {"a whole answer", NVRTC_SUCCESS, log_of_two, "_Z1kIXtl6ConfigLi5EEEvPf", "ELF", "ptx", HONE_OK,
     "", false},
    {"success with an empty cubin is a failure (cases.md 28)", NVRTC_SUCCESS, log_of_two,
     "_Z1kIXtl6ConfigLi5EEEvPf", "", "ptx", HONE_COMPILE, "gave no cubin", false},
    {"a kernel that ptxas does not report", NVRTC_SUCCESS, log_of_two, "_Zother", "ELF", "ptx",
     HONE_COMPILE, "lacks kernel", false},
    {"a name expression that gave no name", NVRTC_SUCCESS, log_of_two, "", "ELF", "ptx",
     HONE_COMPILE, "lacks kernel", false},
    {"the first error is the cause (cases.md 30)", NVRTC_ERROR_COMPILATION,
     "x.cu(3): warning: w\nx.cu(7): error: identifier \"cudaGridDependencySynchronize\" is "
     "undefined\nx.cu(9): error: more\n",
     "", "", "", HONE_COMPILE,
     "x.cu(7): error: identifier \"cudaGridDependencySynchronize\" is undefined", false},
    {"an arch that this NVRTC lacks names its version (cases.md 29)", NVRTC_ERROR_INVALID_OPTION,
     "nvrtc: error: invalid value for --gpu-architecture (-arch)\n", "", "", "", HONE_COMPILE,
     "NVRTC 13.0 does not know sm_90a", false},
    {"out of memory spends the process", NVRTC_ERROR_OUT_OF_MEMORY, "", "", "", "", HONE_WORKER,
     "memory", true},
};

static void build_answer(const answer_case *c, wire_writer *w)
{
    wire_begin(w, WIRE_ANSWER);
    wire_put_u64(w, c->result);
    wire_put_text(w, "NVRTC_TEXT");
    wire_put_u64(w, 5000000);
    wire_put_text(w, c->log);
    wire_put_u64(w, 1);
    wire_put_text(w, c->lowered);
    wire_put_text(w, c->cubin);
    wire_put_text(w, c->ptx);
    ck_assert(wire_end(w));
}

START_TEST(answers_become_entries_or_reasons)
{
    const answer_case *c = &answers[_i];
    const jit_request request = base_request();
    kernel_entry entry = {.cubin = NULL};
    hone_error error = {.status = HONE_OK};
    bool spent = false;
    wire_writer w;

    build_answer(c, &w);
    hone_status status = jit_answer_read(&request, &version, w.bytes + WIRE_HEADER_BYTES,
                                         w.len - WIRE_HEADER_BYTES, &entry, &spent, &error);
    ck_assert_msg(status == c->status, "%s: %s %s", c->name, hone_status_name(status),
                  error.message);
    ck_assert_msg(strstr(error.message, c->message) != NULL, "%s: %s", c->name, error.message);
    ck_assert(spent == c->spent);
    if (status == HONE_OK) {
        ck_assert_uint_eq(entry.functions_len, 1);
        ck_assert_int_eq(entry.functions[0].registers, 168);
        ck_assert_uint_eq(entry.cubin_len, 3);
        ck_assert_str_eq(entry.ptx, "ptx");
        ck_assert_double_eq_tol(entry.compile_ms, 5.0, 1e-9);
    }
    kernel_entry_free(&entry);
    wire_free(&w);
}
END_TEST

START_TEST(every_cut_answer_is_malformed)
{
    const jit_request request = base_request();
    kernel_entry entry = {.cubin = NULL};
    bool spent = false;
    wire_writer w;

    build_answer(&answers[0], &w);
    const size_t whole = w.len - WIRE_HEADER_BYTES;
    for (size_t len = 0; len < whole; len++) {
        uint8_t *cut = malloc(len + (len == 0));
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, w.bytes + WIRE_HEADER_BYTES, len);
        ck_assert_int_ne(jit_answer_read(&request, &version, cut, len, &entry, &spent, NULL),
                         HONE_OK);
        free(cut);
    }
    wire_free(&w);
}
END_TEST

/* ---- The cache's key (cases.md 18, 25, 26, 27) ----------------------------------------------- */

static const char *const changed_header = "/* Header */", *const changed_name = "device/y.cuh";

static void change_source(jit_request *r, jit_version *v)
{
    (void)v;
    r->source.source = "sourcE";
}
static void change_header(jit_request *r, jit_version *v)
{
    (void)v;
    r->source.headers = &changed_header;
}
static void change_header_name(jit_request *r, jit_version *v)
{
    (void)v;
    r->source.names = &changed_name;
}
static void drop_header(jit_request *r, jit_version *v)
{
    (void)v;
    r->source.headers_len = 0;
}
static void change_entry(jit_request *r, jit_version *v)
{
    (void)v;
    r->entries[0] = "k<Config{.a = 6}>";
}
static void add_entry(jit_request *r, jit_version *v)
{
    (void)v;
    r->entries[r->entries_len++] = "k<Config{.a = 6}>";
}
static void change_arch(jit_request *r, jit_version *v)
{
    (void)v;
    r->arch = 89;
}
static void limit_registers(jit_request *r, jit_version *v)
{
    (void)v;
    r->max_registers = 128;
}
static void add_lineinfo(jit_request *r, jit_version *v)
{
    (void)v;
    r->lineinfo = true;
}
static void change_digest(jit_request *r, jit_version *v)
{
    (void)v;
    r->digest[31] ^= 1;
}
static void change_nvrtc(jit_request *r, jit_version *v)
{
    (void)r;
    v->nvrtc_version = 12090;
}
static void change_build(jit_request *r, jit_version *v)
{
    (void)r;
    v->build[0] = 'b';
}

static void (*const changes[])(jit_request *, jit_version *) = {
    change_source, change_header,   change_header_name, drop_header,   change_entry, add_entry,
    change_arch,   limit_registers, add_lineinfo,       change_digest, change_nvrtc, change_build,
};

START_TEST(each_part_alone_changes_the_key)
{
    jit_request request = base_request();
    jit_version v = version;
    uint8_t before[32], after[32];

    jit_answer_key(&request, &v, before);
    changes[_i](&request, &v);
    jit_answer_key(&request, &v, after);
    ck_assert(memcmp(before, after, sizeof before) != 0);
}
END_TEST

START_TEST(names_and_places_that_do_not_matter_leave_the_key)
{
    jit_request request = base_request();
    jit_version v = version;
    uint8_t before[32], after[32];

    jit_answer_key(&request, &v, before);
    char *copy = strdup(request.source.source);
    request.source.source = copy; /* another address */
    strcpy(v.library, "elsewhere/libnvrtc.so.13");
    jit_answer_key(&request, &v, after);
    ck_assert(memcmp(before, after, sizeof before) == 0);
    free(copy);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("jit_answer");

    tcase_add_loop_test(tests, resources_are_read_by_the_kernels_own_name, 0,
                        (int)ARRAY_LEN(kernels));
    tcase_add_test(tests, a_cut_report_is_not_believed);
    tcase_add_loop_test(tests, remarks_are_counted_by_kernel, 0, (int)ARRAY_LEN(remarks));
    tcase_add_loop_test(tests, logs_are_safe_to_print, 0, (int)ARRAY_LEN(texts));
    tcase_add_test(tests, a_long_log_is_cut_at_a_whole_character);
    tcase_add_loop_test(tests, answers_become_entries_or_reasons, 0, (int)ARRAY_LEN(answers));
    tcase_add_test(tests, every_cut_answer_is_malformed);
    tcase_add_loop_test(tests, each_part_alone_changes_the_key, 0, (int)ARRAY_LEN(changes));
    tcase_add_test(tests, names_and_places_that_do_not_matter_leave_the_key);
    return suite_run("runtime/jit_answer", tests);
}
