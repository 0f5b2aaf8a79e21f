/* test_jit.c - kernels compile in workers, many at a time, once for each key; workers that die are
 * replaced. */
#include "runtime/jit.h"
#include "tests/runtime/jit_fixture.h"

#include "core/status.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char kernel_source[] =
    "#include \"device/scale.cuh\"\n"
    "struct Config { int factor = 1; bool twice = false; };\n"
    "template <Config C> __global__ void scale(float *x)\n"
    "{\n"
    "    __shared__ float staged[64];\n"
    "    staged[threadIdx.x] = x[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    x[threadIdx.x] = scaled<C.factor>(staged[63 - threadIdx.x]) * (C.twice ? 2 : 1);\n"
    "}\n";
static const char header_source[] =
    "template <int F> __device__ float scaled(float x) { return F * x; }\n";
static const char *const headers[] = {header_source}, *const header_names[] = {"device/scale.cuh"};

static jit_request scale_request(const char *entry)
{
    jit_request r = jit_fixture_request(kernel_source, entry);

    r.source.headers = headers;
    r.source.names = header_names;
    r.source.headers_len = 1;
    return r;
}

static jit *open_jit(const jit_options *options)
{
    hone_error error = {.status = HONE_OK};
    jit *j = NULL;

    ck_assert_msg(jit_open(options, &j, &error) == HONE_OK, "%s", error.message);
    return j;
}

START_TEST(a_name_expression_gives_code_names_and_resources)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = open_jit(&options);
    jit_request request = scale_request("scale<Config{.factor = 3, .twice = true}>");
    compiled *c = NULL;
    hone_error error = {.status = HONE_OK};

    request.entries[request.entries_len++] = "scale<Config{}>";
    ck_assert_msg(jit_compile(j, &request, &c, &error) == HONE_OK, "%s", error.message);
    ck_assert_uint_eq(c->kernels_len, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(c->kernels[i].entry, request.entries[i]);
        ck_assert_ptr_nonnull(strstr(c->ptx, c->kernels[i].lowered));
        ck_assert_int_gt(c->kernels[i].registers, 0);
        ck_assert_int_eq(c->kernels[i].static_shared_bytes, 256);
        ck_assert_int_eq(c->kernels[i].spill_bytes, 0);
    }
    ck_assert_str_ne(c->kernels[0].lowered, c->kernels[1].lowered);
    ck_assert(c->cubin_len > 4 && memcmp(c->cubin,
                                         "\x7f"
                                         "ELF",
                                         4) == 0);
    ck_assert_ptr_nonnull(strstr(c->ptx, ".target sm_90a")); /* cases.md 28: never plain sm_90 */
    ck_assert_uint_eq(strlen(c->ptx), c->ptx_len);
    ck_assert_uint_gt(c->compile_ns, 0);
    ck_assert(!c->from_cache);
    compiled_free(c);
    jit_close(j);
}
END_TEST

static const struct {
    const char *name, *source, *entry;
    int32_t arch;
    hone_status status;
    const char *message;
} failures[] = {
    {"an error gives the log's first line (cases.md 30)",
     "__global__ void k() { cudaGridDependencySynchronize(); }", "k", 90, HONE_COMPILE,
     "cudaGridDependencySynchronize"},
    {"a wrong name expression", "template <int N> __global__ void k() {}", "k<nonsense>", 90,
     HONE_COMPILE, "nonsense"},
    {"an arch from the future names NVRTC's version (cases.md 29)", "__global__ void k() {}", "k",
     990, HONE_COMPILE, "NVRTC 1"},
    {"ptxas' refusal", "__global__ void k() { asm volatile(\"wgmma.fence.sync.aligned;\"); }", "k",
     89, HONE_COMPILE, "wgmma"},
    {"no standard headers without an include path", "#include <cstdint>\n__global__ void k() {}",
     "k", 90, HONE_COMPILE, "cstdint"},
};

START_TEST(failed_compiles_say_why)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = open_jit(&options);
    jit_request request = jit_fixture_request(failures[_i].source, failures[_i].entry);
    compiled *c = NULL;
    hone_error error = {.status = HONE_OK};

    request.arch = failures[_i].arch;
    hone_status status = jit_compile(j, &request, &c, &error);
    ck_assert_msg(status == failures[_i].status, "%s: %s", failures[_i].name, error.message);
    ck_assert_msg(strstr(error.message, failures[_i].message) != NULL, "%s: %s", failures[_i].name,
                  error.message);
    ck_assert_ptr_null(c);
    /* The worker goes on. */
    request = scale_request("scale<Config{}>");
    ck_assert_msg(jit_compile(j, &request, &c, &error) == HONE_OK, "%s", error.message);
    compiled_free(c);
    jit_close(j);
}
END_TEST

START_TEST(many_requests_come_back_each_once)
{
    enum { REQUESTS = 12 };
    const jit_options options = {.workers = 2, .no_cache = true};
    jit *j = open_jit(&options);
    char entries[REQUESTS][64];
    bool seen[REQUESTS] = {false}, got = true;
    hone_error error;

    for (uint64_t i = 0; i < REQUESTS; i++) {
        /* Every third is wrong. */
        snprintf(entries[i], sizeof entries[i],
                 i % 3 == 2 ? "scale<%d>" : "scale<Config{.factor = %d}>", (int)i);
        const jit_request request = scale_request(entries[i]);
        ck_assert_int_eq(jit_submit(j, &request, i, &error), HONE_OK);
    }
    ck_assert_uint_eq(jit_pending(j), REQUESTS);
    while (jit_pending(j) > 0) {
        jit_done done;
        ck_assert_int_eq(jit_wait(j, -1, &done, &got, &error), HONE_OK);
        ck_assert(got && done.tag < REQUESTS && !seen[done.tag]);
        seen[done.tag] = true;
        ck_assert_int_eq(done.status, done.tag % 3 == 2 ? HONE_COMPILE : HONE_OK);
        ck_assert(done.status != HONE_OK ||
                  strcmp(done.answer->kernels[0].entry, entries[done.tag]) == 0);
        compiled_free(done.answer);
    }
    jit_done none;
    ck_assert_int_eq(jit_wait(j, -1, &none, &got, &error), HONE_OK);
    ck_assert(!got);
    jit_close(j);
}
END_TEST

/* Process id of this process's child hone-worker. */
static pid_t find_worker(void)
{
    char path[64], line[512];
    DIR *proc = opendir("/proc");
    pid_t found = 0;

    for (struct dirent *e = readdir(proc); e != NULL && found == 0; e = readdir(proc)) {
        int pid = atoi(e->d_name), parent = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = pid > 0 ? fopen(path, "r") : NULL;
        if (f != NULL && fgets(line, sizeof line, f) != NULL &&
            sscanf(line, "%*d (hone-worker) %*c %d", &parent) == 1 && parent == getpid()) {
            found = pid;
        }
        if (f != NULL) {
            fclose(f);
        }
    }
    closedir(proc);
    return found;
}

START_TEST(a_killed_worker_is_an_outcome_and_is_replaced)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = open_jit(&options);
    jit_request request = scale_request("scale<Config{}>");
    compiled *c = NULL;
    jit_version version;
    hone_error error = {.status = HONE_OK};

    ck_assert_int_eq(jit_describe(j, &version, &error), HONE_OK);
    pid_t worker = find_worker();
    ck_assert_int_gt(worker, 0);
    ck_assert_int_eq(getpgid(worker), worker); /* a group of its own */
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    hone_status status = jit_compile(j, &request, &c, &error);
    ck_assert_msg(status == HONE_WORKER, "%s: %s", hone_status_name(status), error.message);
    ck_assert_msg(jit_compile(j, &request, &c, &error) == HONE_OK, "%s", error.message);
    compiled_free(c);
    jit_close(j);
    ck_assert_int_eq(find_worker(), 0);
}
END_TEST

START_TEST(the_version_names_the_library)
{
    const jit_options options = {.workers = 1, .no_cache = true};
    jit *j = open_jit(&options);
    jit_version version = {.nvrtc_version = 0};
    hone_error error = {.status = HONE_OK};
    char start[16];

    ck_assert_msg(jit_describe(j, &version, &error) == HONE_OK, "%s", error.message);
    ck_assert_int_ge(version.nvrtc_version, 12000);
    ck_assert_ptr_nonnull(strstr(version.library, "libnvrtc"));
    ck_assert_uint_gt(strlen(version.build), 8);
    snprintf(start, sizeof start, "%d.%d+", version.nvrtc_version / 1000,
             version.nvrtc_version % 1000 / 10);
    ck_assert(strncmp(version.text, start, strlen(start)) == 0);
    jit_close(j);
}
END_TEST

START_TEST(a_second_compile_comes_from_the_cache_byte_for_byte)
{
    char folder[FOLDER_BYTES], path[1024];

    folder_make(folder);
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    const jit_options options = {.workers = 2, .cache_path = path};
    const jit_request request = scale_request("scale<Config{.factor = 7}>");
    compiled *first = NULL, *second = NULL;
    hone_error error = {.status = HONE_OK};

    jit *j = open_jit(&options);
    ck_assert_msg(jit_compile(j, &request, &first, &error) == HONE_OK, "%s", error.message);
    jit_close(j);
    j = open_jit(&options);
    ck_assert_msg(jit_compile(j, &request, &second, &error) == HONE_OK, "%s", error.message);
    ck_assert(!first->from_cache && second->from_cache);
    ck_assert(first->cubin_len == second->cubin_len &&
              memcmp(first->cubin, second->cubin, first->cubin_len) == 0);
    ck_assert_str_eq(first->ptx, second->ptx);
    ck_assert_str_eq(first->kernels[0].lowered, second->kernels[0].lowered);
    ck_assert_int_eq(first->kernels[0].registers, second->kernels[0].registers);
    ck_assert_int_eq(first->kernels[0].static_shared_bytes, second->kernels[0].static_shared_bytes);
    jit_close(j);
    compiled_free(first);
    compiled_free(second);
    folder_remove(folder);
}
END_TEST

START_TEST(one_key_is_compiled_once_by_all_processes)
{
    enum { PROCESSES = 8 };
    char folder[FOLDER_BYTES], path[1024];
    pid_t children[PROCESSES];
    int compiles = 0;

    folder_make(folder);
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] == 0) {
            const jit_options options = {.workers = 1, .cache_path = path};
            const jit_request request = scale_request("scale<Config{.factor = 9}>");
            compiled *c = NULL;
            jit *j = NULL;
            if (jit_open(&options, &j, NULL) != HONE_OK ||
                jit_compile(j, &request, &c, NULL) != HONE_OK) {
                _exit(99);
            }
            _exit(c->from_cache ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int state = 0;
        ck_assert_int_eq(waitpid(children[i], &state, 0), children[i]);
        ck_assert(WIFEXITED(state) && WEXITSTATUS(state) <= 1);
        compiles += WEXITSTATUS(state);
    }
    ck_assert_int_eq(compiles, 1);
    folder_remove(folder);
}
END_TEST

START_TEST(closing_ends_what_still_compiles)
{
    static const char endless[] =
        "template <int N> struct F { static constexpr int v = F<N - 1>::v + F<N - 2>::v; };\n"
        "constexpr int spin() { int x = 0; while (true) { x = x * 3 % 7; } return x; }\n"
        "__global__ void k(int *x) { constexpr int y = spin(); *x = y; }\n";
    const jit_options options = {.workers = 1, .no_cache = true};
    const jit_request request = jit_fixture_request(endless, "k");
    jit *j = open_jit(&options);
    jit_done done;
    bool got = true;

    ck_assert_int_eq(jit_submit(j, &request, 1, NULL), HONE_OK);
    ck_assert_int_eq(jit_wait(j, 200, &done, &got, NULL), HONE_OK);
    if (got) { /* a compiler that gives up on such loops soon enough */
        compiled_free(done.answer);
    }
    jit_close(j);
    ck_assert_int_eq(find_worker(), 0);
}
END_TEST

START_TEST(a_missing_worker_names_the_remedy)
{
    const jit_options options = {
        .workers = 1, .no_cache = true, .worker = "/nonexistent/hone-worker"};
    jit *j = open_jit(&options);
    const jit_request request = scale_request("scale<Config{}>");
    compiled *c = NULL;
    hone_error error = {.status = HONE_OK};

    ck_assert_int_eq(jit_compile(j, &request, &c, &error), HONE_ENVIRONMENT);
    ck_assert_str_eq(error.source, "/nonexistent/hone-worker");
    jit_close(j);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("jit");

    jit_fixture_need_nvrtc();
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_name_expression_gives_code_names_and_resources);
    tcase_add_loop_test(tests, failed_compiles_say_why, 0, (int)ARRAY_LEN(failures));
    tcase_add_test(tests, many_requests_come_back_each_once);
    tcase_add_test(tests, a_killed_worker_is_an_outcome_and_is_replaced);
    tcase_add_test(tests, the_version_names_the_library);
    tcase_add_test(tests, a_second_compile_comes_from_the_cache_byte_for_byte);
    tcase_add_test(tests, one_key_is_compiled_once_by_all_processes);
    tcase_add_test(tests, closing_ends_what_still_compiles);
    tcase_add_test(tests, a_missing_worker_names_the_remedy);
    return suite_run("runtime/jit", tests);
}
