/* test_cluster.c - CTAs that run together: one another's shared memory, the cluster's barrier, and
 * what is said when one waits for what never comes. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line 1 of the body is line 8 of the text. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out)\n{\n"                                                      \
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %x<9>; .shared .align 16 .b8 s[512];\n"         \
    "ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, "   \
    "%cluster_nctarank;\n"
#define LINE 8

static void open_body(ptx_bench *b, const char *body)
{
    char text[8192];

    snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, body);
    ptx_bench_open(b);
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", body, b->error.message);
}

/* Each thread stores into the next CTA, which hands on what it got: the sum has gone around. */
#define RING                                                                                       \
    "mov.u32 %r3, s; shl.b32 %r4, %r0, 2; add.u32 %r3, %r3, %r4;\n"                                \
    "add.u32 %r5, %r1, 1; rem.u32 %r5, %r5, %r2;\n"                                                \
    "mapa.shared::cluster.u32 %r6, %r3, %r5;\n"                                                    \
    "getctarank.shared::cluster.u32 %r7, %r6;\n"                                                   \
    "mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 1000, %r0; mov.u32 %r12, %r8;\n"                  \
    "mov.u32 %r9, 1;\n"                                                                            \
    "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"                      \
    "ROUND:\n"                                                                                     \
    "st.shared::cluster.u32 [%r6], %r8;\n"                                                         \
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n"             \
    "ld.shared.u32 %r8, [%r3];\n"                                                                  \
    "add.u32 %r12, %r12, %r8;\n"                                                                   \
    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"                                             \
    "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, %r2;\n@%p1 bra ROUND;\n"                           \
    "mov.u32 %r10, %ctaid.x; mad.lo.u32 %r10, %r10, 128, %r0; mul.wide.u32 %x1, %r10, 8;\n"        \
    "add.s64 %x1, %x0, %x1; st.global.v2.u32 [%x1], {%r12, %r7};"

static const uint32_t sizes[] = {1, 2, 4, 8, 16};

START_TEST(values_go_around_a_cluster)
{
    enum { CTAS = 32, THREADS = 128 };
    uint32_t size = sizes[_i / 3], seed = (uint32_t)_i % 3;
    static uint32_t out[CTAS * THREADS][2];
    ptx_bench b;

    open_body(&b, RING);
    uint64_t to = ptx_bench_buffer(&b, NULL, sizeof out);
    b.launch.cluster[0] = size;
    b.launch.cluster[1] = b.launch.cluster[2] = 1;
    b.launch.schedule_seed = seed;
    hone_status status = ptx_bench_run(&b, "k", (uint32_t[]){CTAS, 1, 1},
                                       (uint32_t[]){THREADS, 1, 1}, (void *[]){&to});
    ck_assert_msg(status == HONE_OK, "line %d: %s", b.fault.ptx_line - LINE, b.error.message);
    ck_assert_uint_eq(b.counters.ctas_run, CTAS);
    ptx_bench_read(&b, to, out, sizeof out);
    for (uint32_t n = 0; n < CTAS * THREADS; n++) {
        uint32_t cta = n / THREADS, first = cta / size * size, sum = 0;
        for (uint32_t r = 0; r < size; r++) {
            sum += (first + r) * 1000 + n % THREADS;
        }
        /* a lone CTA has sent itself its own value */
        ck_assert_uint_eq(out[n][0], size == 1 ? 2 * sum : sum);
        ck_assert_uint_eq(out[n][1], (cta % size + 1) % size);
    }
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cluster");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, values_go_around_a_cluster, 0, 3 * (int)ARRAY_LEN(sizes));
    return suite_run("emulator/cluster", tests);
}
