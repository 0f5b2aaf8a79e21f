/* test_sandbox.c - hostile sources in the compile worker (reliability.md R15): no foreign bytes in
 * any text, no new files, every one ended by its limit, nothing left in the parent. */
#include "runtime/jit.h"
#include "tests/runtime/jit_fixture.h"

#include "core/status.h"
#include "tests/support/file.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECRET      "hone-secret-5b1f9d"
#define CPU_SECONDS 4
#define DEADLINE_MS 8000

/* What must come of it. ANY: an honest answer of either kind, within the limits. */
typedef enum expectation { REFUSED, KILLED, ANY } expectation;

/* `%s` stands for the planted file's path. */
static const struct {
    const char *name, *source;
    expectation expect;
} hostile[] = {
    {"include by absolute path", "#include \"%s\"\n__global__ void k() {}", REFUSED},
    {"include by relative path", "#include \"../../../../../../../..%s\"\n__global__ void k() {}",
     REFUSED},
    {"include by macro", "#define FILE_NAME \"%s\"\n#include FILE_NAME\n__global__ void k() {}",
     REFUSED},
    {"has_include probe",
     "#if __has_include(\"%s\")\n#error " SECRET "\n#endif\n__global__ void k() {}", ANY},
    {"embed",
     "__device__ const unsigned char bytes[] = {\n#embed \"%s\"\n};\n__global__ void k(int *x) { "
     "*x = bytes[0]; }",
     REFUSED},
    {"line directive naming a file", "#line 1 \"%s\"\n__global__ void k() { wrong }", REFUSED},
    {"assembler include", "__global__ void k() { asm volatile(\".include \\\"%s\\\";\"); }",
     REFUSED},
    {"assembler junk", "__global__ void k() { asm volatile(\"} .entry x ( { \\\\ %s\"); }",
     REFUSED},
    {"escape codes in an error", "#error \x1b[31m\x1b]0;owned\x07 %s\n__global__ void k() {}",
     REFUSED},
    {"template bomb",
     "template <int A, int B> struct T { static constexpr int v = T<A - 1, B>::v + T<A, B - 1>::v; "
     "};\n"
     "template <int B> struct T<0, B> { static constexpr int v = B; };\n"
     "template <int A> struct T<A, 0> { static constexpr int v = A; };\n"
     "__global__ void k(int *x) { *x = T<900, 901>::v; } // %s",
     ANY},
    {"macro bomb",
     "#define A(x) x x x x x x x x x x x x x x x x\n#define B(x) A(x) A(x) A(x) A(x) A(x) A(x) "
     "A(x) A(x)\n"
     "#define C(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x)\n#define D(x) C(x) C(x) C(x) C(x) C(x) "
     "C(x) C(x) C(x)\n"
     "#define E(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x)\n#define F(x) E(x) E(x) E(x) E(x) E(x) "
     "E(x) E(x) E(x)\n"
     "#define G(x) F(x) F(x) F(x) F(x) F(x) F(x) F(x) F(x)\n"
     "__global__ void k(int *x) { G(*x += 1;) } // %s",
     KILLED},
    {"constexpr bomb",
     "constexpr unsigned spin(unsigned n) { unsigned x = n; for (unsigned i = 0; i < 4000000000u; "
     "i++) x = x * 3 + i; return x; }\n"
     "__global__ void k(unsigned *x) { constexpr unsigned y = spin(1); *x = y; } // %s",
     ANY},
    {"64k unroll",
     "__global__ void k(float *x) {\n#pragma unroll 65536\nfor (int i = 0; i < 65536; i++) x[i * 7 "
     "%% 8191] = x[i] * x[i + 1] + i; } // %s",
     ANY},
    {"an include of itself", "#include \"test.cu\"\n__global__ void k() {} // %s", REFUSED},
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "VmRSS: %ld", &kib) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib;
}

static int count_files(const char *folder)
{
    DIR *d = opendir(folder);
    int count = 0;

    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

/* No planted bytes, no control characters. */
static void check_text(const char *name, const char *text)
{
    ck_assert_msg(strstr(text, SECRET) == NULL, "%s: the secret is in '%s'", name, text);
    for (const char *c = text; *c != '\0'; c++) {
        ck_assert_msg((unsigned char)*c >= 0x20 || *c == '\n' || *c == '\t', "%s: control %d", name,
                      *c);
    }
}

static jit *sandbox_jit(void)
{
    const jit_options options = {.workers = 1,
                                 .no_cache = true,
                                 .deadline_ms = DEADLINE_MS,
                                 .cpu_seconds = CPU_SECONDS,
                                 .memory_bytes = 2ull << 30};
    hone_error error = {.status = HONE_OK};
    jit *j = NULL;

    ck_assert_msg(jit_open(&options, &j, &error) == HONE_OK, "%s", error.message);
    return j;
}

static void check_outcome(const char *name, expectation expect, const jit_done *done)
{
    check_text(name, done->error.message);
    if (done->answer != NULL) {
        check_text(name, done->answer->log);
    }
    ck_assert_msg(expect != REFUSED || done->status == HONE_COMPILE, "%s: %s %s", name,
                  hone_status_name(done->status), done->error.message);
    ck_assert_msg(expect != KILLED || done->status == HONE_WORKER, "%s: %s %s", name,
                  hone_status_name(done->status), done->error.message);
}

/* Run one source to its end; the worker must then still, or again, compile. */
static void run_hostile(const char *name, const char *source, expectation expect)
{
    jit *j = sandbox_jit();
    const jit_request request = jit_fixture_request(source, "k");
    const jit_request healthy = jit_fixture_request("__global__ void k(int *x) { *x = 1; }", "k");
    jit_done done = {.tag = 0};
    bool got = false;
    compiled *c = NULL;
    hone_error error = {.status = HONE_OK};

    const uint64_t begin = now_ms();
    ck_assert_int_eq(jit_submit(j, &request, 1, &error), HONE_OK);
    ck_assert_int_eq(jit_wait(j, -1, &done, &got, &error), HONE_OK);
    ck_assert(got);
    ck_assert_msg(now_ms() - begin <= DEADLINE_MS + 1000, "%s took %llu ms", name,
                  (unsigned long long)(now_ms() - begin));
    check_outcome(name, expect, &done);
    compiled_free(done.answer);
    ck_assert_msg(jit_compile(j, &healthy, &c, &error) == HONE_OK, "%s: %s", name, error.message);
    compiled_free(c);
    jit_close(j);
}

START_TEST(hostile_sources_get_nothing)
{
    char folder[FOLDER_BYTES], path[1024], *source = NULL;

    folder_make(folder);
    snprintf(path, sizeof path, "%s/planted", folder);
    file_write_text(path, "\"" SECRET "\"\n");
    const int files = count_files(folder);
    const long before = resident_kib();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    ck_assert_int_gt(asprintf(&source, hostile[_i].source, path), 0);
#pragma GCC diagnostic pop
    run_hostile(hostile[_i].name, source, hostile[_i].expect);
    ck_assert_int_eq(count_files(folder), files);
    /* The parent never holds what the compiler did: 64 MiB is a thousandth of what the bombs ask
     * for. */
    ck_assert_msg(resident_kib() - before < 64 * 1024, "%s: %ld KiB", hostile[_i].name,
                  resident_kib() - before);
    free(source);
    folder_remove(folder);
}
END_TEST

/* Without Landlock the planted file would be read: the test above must be able to fail. */
START_TEST(the_planted_file_is_found_when_files_are_not_locked)
{
    jit *j = sandbox_jit();
    jit_version version = {.sandboxed = false};

    ck_assert_int_eq(jit_describe(j, &version, NULL), HONE_OK);
    if (!version.sandboxed) {
        printf("SKIP: this kernel has no Landlock; sources can read files that this user can\n");
    }
    jit_close(j);
    /* /usr/lib stays readable for the compiler's own libraries: NVRTC does read files when it may.
     */
    const jit_options options = {.workers = 1, .no_cache = true};
    const jit_request probe =
        jit_fixture_request("#if !__has_include(\"/usr/lib/os-release\")\n#error absent\n#endif\n"
                            "__global__ void k(int *x) { *x = 1; }",
                            "k");
    compiled *c = NULL;
    hone_error error = {.status = HONE_OK};
    FILE *f = fopen("/usr/lib/os-release", "r");
    if (f == NULL) {
        return;
    }
    fclose(f);
    ck_assert_int_eq(jit_open(&options, &j, &error), HONE_OK);
    ck_assert_msg(jit_compile(j, &probe, &c, &error) == HONE_OK, "%s", error.message);
    compiled_free(c);
    jit_close(j);
}
END_TEST

START_TEST(a_log_of_many_megabytes_is_cut)
{
    enum { LINES = 12000, WIDTH = 2000 };
    char *source = malloc((size_t)LINES * (WIDTH + 16) + 64), *at = source;
    char filler[WIDTH + 1];

    ck_assert_ptr_nonnull(source);
    memset(filler, 'w', WIDTH);
    filler[WIDTH] = '\0';
    for (int i = 0; i < LINES; i++) {
        at += sprintf(at, "#warning %s\n", filler);
    }
    sprintf(at, "__global__ void k(int *x) { *x = 1; }");
    const long before = resident_kib();
    jit *j = sandbox_jit();
    const jit_request request = jit_fixture_request(source, "k");
    jit_done done = {.tag = 0};
    bool got = false;
    ck_assert_int_eq(jit_submit(j, &request, 1, NULL), HONE_OK);
    ck_assert_int_eq(jit_wait(j, -1, &done, &got, NULL), HONE_OK);
    ck_assert_msg(done.status == HONE_OK, "%s", done.error.message);
    ck_assert_uint_lt(strlen(done.answer->log), JIT_LOG_BYTES);
    ck_assert_int_gt(done.answer->kernels[0].registers, 0); /* the report is at the log's end */
    compiled_free(done.answer);
    jit_close(j);
    ck_assert_int_lt(resident_kib() - before, 128 * 1024);
    free(source);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sandbox");

    jit_fixture_need_nvrtc();
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, hostile_sources_get_nothing, 0, (int)ARRAY_LEN(hostile));
    tcase_add_test(tests, the_planted_file_is_found_when_files_are_not_locked);
    tcase_add_test(tests, a_log_of_many_megabytes_is_cut);
    return suite_run("runtime/sandbox", tests);
}
