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

static hone_status run_pair(ptx_bench *b, const char *body, uint32_t threads, uint64_t *out)
{
    open_body(b, body);
    *out = ptx_bench_buffer(b, NULL, 4096);
    b->launch.cluster[0] = 2;
    b->launch.registers = threads > 256 ? 65536 / (int32_t)threads / 8 * 8 : 256;
    return ptx_bench_run(b, "k", (uint32_t[]){2, 1, 1}, (uint32_t[]){threads, 1, 1},
                         (void *[]){out});
}

/* %r6: the other CTA's s; %p1: the second CTA. */
#define OTHER                                                                                      \
    "mov.u32 %r3, s; xor.b32 %r4, %r1, 1; mapa.shared::cluster.u32 %r6, %r3, %r4; "                \
    "setp.eq.u32 %p1, %r1, 1;\n"
#define MEET  "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
#define STORE "mad.lo.u32 %r20, %r1, 128, %r0; mul.wide.u32 %x1, %r20, 4; add.s64 %x1, %x0, %x1; "

/* Two CTAs. `line` counts from the body's first; message NULL: it must pass. */
static const struct {
    const char *name, *body, *kind, *message;
    int line, lane;
    uint32_t threads, cta;
} cases[] = {
    {"a CTA that has exited",
     OTHER "@%p1 exit;\nnanosleep.u32 20;\nst.shared::cluster.u32 [%r6+16], %r0;", "use-after-free",
     "4 bytes at offset 16 of the shared memory of CTA rank 1, which has exited", 3, 0, 32, 0},
    {"a CTA that has exited, through a generic address",
     "mov.u64 %x2, s; cvta.shared.u64 %x2, %x2; mov.u32 %r4, 1;\nmapa.u64 %x3, %x2, %r4;\n"
     "setp.eq.u32 %p1, %r1, 1;\n@%p1 exit;\nnanosleep.u32 20;\nld.u32 %r5, [%x3];",
     "use-after-free", "4 bytes at offset 0 of the shared memory of CTA rank 1, which has exited",
     5, 0, 32, 0},
    {"another CTA's memory by an access of shared::cta", OTHER "ld.shared.u32 %r5, [%r6+4];",
     "out-of-bounds",
     "4 bytes at offset 4 of the shared memory of CTA rank 1; the access is one of shared::cta, "
     "of CTA rank 0",
     1, 0, 32, 0},
    {"past the end of another CTA's memory",
     OTHER "shl.b32 %r7, %r0, 2; add.u32 %r6, %r6, %r7;\nst.shared::cluster.u32 [%r6+448], %r0;",
     "out-of-bounds", "4 bytes at offset 512 of shared memory; it has 512 bytes", 2, 16, 32, 0},
    {"an address of no CTA", "mov.u32 %r3, 0x05000000;\nld.shared::cluster.u32 %r5, [%r3];",
     "out-of-bounds", "4 bytes at 0x5000000 of shared memory: it lies in no CTA of the cluster", 1,
     0, 32, 0},
    {"a rank that the cluster has not", "mov.u32 %r3, s;\nmapa.shared::cluster.u32 %r6, %r3, %r2;",
     "precondition", "mapa: CTA rank 2 of a cluster of 2 CTAs", 1, 0, 32, 0},
    {"a generic address that is not of shared memory", "mov.u32 %r4, 1;\nmapa.u64 %x3, %x0, %r4;",
     "precondition", NULL, 1, 0, 32, 0},
    {"a second arrival", "barrier.cluster.arrive;\nbarrier.cluster.arrive;", "barrier-divergence",
     "the cluster's barrier: lanes ffffffff arrive again without a wait between", 1, 0, 32, 0},
    {"a wait without an arrival", "barrier.cluster.wait;", "barrier-divergence",
     "the cluster's barrier: lanes ffffffff wait without having arrived", 0, 0, 32, 0},
    {"a cluster's barrier that one CTA never reaches",
     OTHER "@%p1 bra L;\n" MEET "ret;\nL:\nbar.sync 1, 96;", "deadlock",
     "no warp can go on: CTA 0 of the cluster, warp 0-1 line 11 the cluster's barrier (64 of 128); "
     "CTA 1 of the cluster, warp 0-1 line 14 barrier 1 (64 of 96);",
     3, 0, 64, 0},
    {"an mbarrier whose arrival never comes",
     "mov.u32 %r3, s; setp.ne.u32 %p1, %r0, 0; @%p1 bra L;\n"
     "mbarrier.init.shared::cta.b64 [%r3], 2;\nmbarrier.arrive.shared::cta.b64 _, [%r3];\n"
     "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n@!%p2 bra W;\nL:\n" MEET,
     "deadlock",
     "no warp can go on: CTA 0 of the cluster, warp 0 line 12 mbarrier 0: phase 0, 1 of 2 "
     "arrivals; CTA 1 of the cluster, warp 0 line 12 mbarrier 0: phase 0, 1 of 2 arrivals;",
     4, 0, 32, 0},
    {"a count of registers that is no multiple of eight", "setmaxnreg.dec.sync.aligned.u32 25;",
     "registers", "setmaxnreg to 25 registers: a multiple of 8 from 24 to 256 is possible", 0, 0,
     128, 0},
    {"more registers by dec",
     "\nsetmaxnreg.dec.sync.aligned.u32 256;\n"
     "bar.sync 0; setmaxnreg.dec.sync.aligned.u32 40;\nbar.sync 0; setmaxnreg.dec.sync.aligned.u32 "
     "48;",
     "registers", "setmaxnreg.dec to 48 registers of a warp that has 40", 3, 0, 128, 0},
    {"registers of half a warpgroup", "setmaxnreg.dec.sync.aligned.u32 40;", "registers",
     "setmaxnreg in a warpgroup of 2 warps: the CTA ends with it", 0, 0, 64, 0},
    {"warps of a warpgroup that ask for different counts",
     "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra L;\nsetmaxnreg.dec.sync.aligned.u32 48;\nbra M;\nL:\n"
     "setmaxnreg.dec.sync.aligned.u32 40;\nM:\n",
     "registers",
     "setmaxnreg: warp 0 of the same warpgroup asked for 40 registers, this warp for 48", 2, 0, 128,
     0},
    {"registers given back and taken again",
     "setmaxnreg.dec.sync.aligned.u32 80;\nbar.sync 0;\n"
     "setmaxnreg.inc.sync.aligned.u32 160;\nbar.sync 0;\nsetmaxnreg.inc.sync.aligned.u32 256;",
     NULL, NULL, 0, 0, 128, 0},
    {"threads that have exited hold nothing up",
     OTHER "setp.lt.u32 %p2, %r0, 40;\n@%p2 exit;\n" MEET, NULL, NULL, 0, 0, 64, 0},
    {"halves of a warp that arrive apart",
     "setp.lt.u32 %p2, %r0, 16;\n@%p2 bra L;\nbarrier.cluster.arrive;\nbra M;\nL:\n"
     "barrier.cluster.arrive;\nM:\nbarrier.cluster.wait;\n",
     NULL, NULL, 0, 0, 32, 0},
    {"halves of a warp at a barrier that is not aligned",
     "setp.lt.u32 %p2, %r0, 16;\n@%p2 bra L;\nbarrier.sync 1, 64;\nbra M;\nL:\nbarrier.sync 1, "
     "64;\nM:\n",
     NULL, NULL, 0, 0, 64, 0},
    {"one half of a warp at a barrier that is not aligned, the other elsewhere",
     "setp.lt.u32 %p2, %r0, 16;\n@%p2 bra L;\nbarrier.sync 1, 32;\nbra M;\nL:\nbarrier.sync 2, "
     "32;\nM:\n",
     "deadlock",
     "no warp can go on: CTA 0 of the cluster, warp 0 line 13 barrier 2 (0 of 32, without lanes "
     "ffff0000); CTA 1 of the cluster, warp 0 line 13 barrier 2 (0 of 32, without lanes ffff0000);",
     5, 0, 32, 0},
    {"a warpgroup that does not meet between two",
     "setmaxnreg.dec.sync.aligned.u32 48;\nsetmaxnreg.dec.sync.aligned.u32 40;", "registers",
     "setmaxnreg: warp 1 of the same warpgroup has not executed the one before; its warps must "
     "meet between two",
     1, 0, 128, 0},
    {"grids one after the other", "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;", NULL,
     NULL, 0, 0, 32, 0},
    {"a CTA that spins until another has stored",
     OTHER "mov.u32 %r5, 0; st.release.cluster.shared.u32 [%r3], %r5;\n" MEET
           "@%p1 bra L;\nmov.u32 %r5, 1;\nsetp.ne.u32 %p3, %r0, 0; @%p3 ret;\n"
           "st.release.cluster.shared::cluster.u32 [%r6], %r5;\n" MEET "ret;\nL:\n"
           "setp.ne.u32 %p3, %r0, 0; @%p3 ret;\nW:\nld.acquire.cluster.shared.u32 %r7, [%r3];\n"
           "setp.eq.u32 %p2, %r7, 0;\n@%p2 bra W;\n" MEET,
     NULL, NULL, 0, 0, 1, 0},
};

START_TEST(a_cluster_keeps_its_rules)
{
    ptx_bench b;
    uint64_t out = 0;
    hone_status status = run_pair(&b, cases[_i].body, cases[_i].threads, &out);

    if (cases[_i].kind == NULL) {
        ck_assert_msg(status == HONE_OK, "%s: line %d: %s", cases[_i].name, b.fault.ptx_line - LINE,
                      b.error.message);
    } else {
        ck_assert_msg(status == HONE_WRONG, "%s: not caught", cases[_i].name);
        ck_assert_msg(strcmp(b.fault.kind, cases[_i].kind) == 0 &&
                          b.fault.ptx_line == LINE + cases[_i].line &&
                          b.fault.lane == cases[_i].lane && b.fault.cta == cases[_i].cta,
                      "%s: %s at line %d lane %d CTA %d: %s", cases[_i].name, b.fault.kind,
                      b.fault.ptx_line - LINE, b.fault.lane, (int)b.fault.cta, b.fault.message);
        if (cases[_i].message != NULL) {
            ck_assert_str_eq(b.fault.message, cases[_i].message);
        }
    }
    ptx_bench_close(&b);
}
END_TEST

/* Every lane adds to a counter of each CTA, by space and through generic addresses. */
START_TEST(atomics_reach_every_cta)
{
    static const char body[] =
        "mov.u32 %r3, s; mov.u32 %r5, 0; setp.ne.u32 %p2, %r0, 0; @%p2 bra Z;\n"
        "st.shared.u32 [%r3], %r5; st.shared.u32 [%r3+4], %r5;\nZ:\n" MEET
        "mov.u64 %x2, s; cvta.shared.u64 %x2, %x2; mov.u32 %r8, 0; mov.u32 %r9, 3;\nN:\n"
        "mapa.shared::cluster.u32 %r6, %r3, %r8; mapa.u64 %x3, %x2, %r8;\n"
        "atom.shared::cluster.add.u32 %r7, [%r6], %r9;\nred.add.u32 [%x3+4], 1;\n"
        "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, %r2;\n@%p1 bra N;\n" MEET
        "@%p2 ret;\nld.shared.v2.u32 {%r10, %r11}, [%r3];\nmul.wide.u32 %x1, %r1, 8; add.s64 %x1, "
        "%x0, %x1; st.global.v2.u32 [%x1], {%r10, %r11};";
    uint32_t back[4];
    uint64_t out = 0;
    ptx_bench b;
    hone_status status = run_pair(&b, body, 96, &out);

    ck_assert_msg(status == HONE_OK, "line %d: %s", b.fault.ptx_line - LINE, b.error.message);
    ptx_bench_read(&b, out, back, sizeof back);
    for (int n = 0; n < 2; n++) {
        ck_assert_uint_eq(back[2 * n], 2 * 96 * 3);
        ck_assert_uint_eq(back[2 * n + 1], 2 * 96);
    }
    ptx_bench_close(&b);
}
END_TEST

/* Registers of a cluster of 2 x 3 x 2 CTAs in a grid of 4 x 6 x 2. */
START_TEST(special_registers_say_where_a_cta_is)
{
    static const char body[] =
        "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;\n"
        "mad.lo.u32 %r6, %r5, 6, %r4; mad.lo.u32 %r6, %r6, 4, %r3; mul.wide.u32 %x1, %r6, 64; "
        "add.s64 %x1, %x0, %x1;\n"
        "mov.u32 %r10, %cluster_ctaid.x; mov.u32 %r11, %cluster_ctaid.y; mov.u32 %r12, "
        "%cluster_ctaid.z; st.global.v4.u32 [%x1], {%r10, %r11, %r12, %r1};\n"
        "mov.u32 %r10, %cluster_nctaid.x; mov.u32 %r11, %cluster_nctaid.y; mov.u32 %r12, "
        "%cluster_nctaid.z; st.global.v4.u32 [%x1+16], {%r10, %r11, %r12, %r2};\n"
        "mov.u32 %r10, %clusterid.x; mov.u32 %r11, %clusterid.y; mov.u32 %r12, %clusterid.z; "
        "mov.u32 %r13, %total_smem_size; st.global.v4.u32 [%x1+32], {%r10, %r11, %r12, %r13};\n"
        "mov.u32 %r10, %nclusterid.x; mov.u32 %r11, %nclusterid.y; mov.u32 %r12, %nclusterid.z; "
        "mov.u32 %r13, %aggr_smem_size; st.global.v4.u32 [%x1+48], {%r10, %r11, %r12, %r13};";
    static uint32_t back[48][16];
    ptx_bench b;

    open_body(&b, body);
    uint64_t out = ptx_bench_buffer(&b, NULL, sizeof back);
    memcpy(b.launch.cluster, (uint32_t[]){2, 3, 2}, sizeof b.launch.cluster);
    hone_status status =
        ptx_bench_run(&b, "k", (uint32_t[]){4, 6, 2}, (uint32_t[]){1, 1, 1}, (void *[]){&out});
    ck_assert_msg(status == HONE_OK, "%s", b.error.message);
    ptx_bench_read(&b, out, back, sizeof back);
    for (uint32_t n = 0; n < 48; n++) {
        uint32_t x = n % 4, y = n / 4 % 6, z = n / 24;
        const uint32_t want[16] = {x % 2, y % 3, z % 2, x % 2 + 2 * (y % 3 + 3 * (z % 2)),
                                   2,     3,     2,     12,
                                   x / 2, y / 3, z / 2, 512,
                                   2,     2,     1,     512 + 1024};
        ck_assert_mem_eq(back[n], want, sizeof want);
    }
    ptx_bench_close(&b);
}
END_TEST

/* Votes of halves that arrive apart: each gets the whole warp's count, in its own register. */
START_TEST(a_reducing_barrier_counts_halves_that_arrive_apart)
{
    static const char body[] =
        "setp.lt.u32 %p2, %r0, 16; setp.lt.u32 %p3, %r0, 10; mov.u32 %r5, 0; mov.u32 %r6, 0;\n"
        "@%p2 bra L;\nbarrier.red.popc.u32 %r5, 3, %p3;\nbra M;\nL:\n"
        "barrier.red.popc.u32 %r6, 3, %p3;\nM:\nadd.u32 %r7, %r5, %r6;\n" STORE
        "st.global.u32 [%x1], %r7;";
    uint32_t back[64];
    uint64_t out = 0;
    ptx_bench b;
    hone_status status = run_pair(&b, body, 64, &out);

    ck_assert_msg(status == HONE_OK, "line %d: %s", b.fault.ptx_line - LINE, b.error.message);
    ptx_bench_read(&b, out, back, sizeof back);
    for (int n = 0; n < 64; n++) {
        ck_assert_uint_eq(back[n], 10);
    }
    ptx_bench_close(&b);
}
END_TEST

/* 384 threads have 168 registers each; the producers' go to the consumers. */
START_TEST(registers_go_from_one_warpgroup_to_another)
{
    static const char body[] =
        "setp.lt.u32 %p2, %r0, 128;\n@%p2 bra L;\nsetmaxnreg.inc.sync.aligned.u32 240;\nbra M;\n"
        "L:\nsetmaxnreg.dec.sync.aligned.u32 24;\nM:\n";
    ptx_bench b;
    uint64_t out = 0;

    ck_assert_int_eq(run_pair(&b, body, 384, &out), HONE_OK);
    ptx_bench_close(&b);
    /* 40 for the producers leaves 232 for each consumer, not 240 */
    static const char more[] =
        "setp.lt.u32 %p2, %r0, 128;\n@%p2 bra L;\nsetmaxnreg.inc.sync.aligned.u32 240;\nbra M;\n"
        "L:\nsetmaxnreg.dec.sync.aligned.u32 40;\nM:\n";
    ck_assert_int_eq(run_pair(&b, more, 384, &out), HONE_WRONG);
    ck_assert_str_eq(b.fault.kind, "deadlock");
    ck_assert_int_eq(b.fault.ptx_line, LINE + 2);
    ptx_bench_close(&b);
}
END_TEST

enum { STUCK_WARPS = 32 };

/* In a pair of CTAs of 32 warps each warp has a line of its own to wait at, for one that never
 * comes. Line `LINE + 3 + 2 * n` is warp n's. */
static void open_stuck(ptx_bench *b, char **places)
{
    char body[6000];
    int used = snprintf(body, sizeof body, "shr.u32 %%r3, %%r0, 5;\n.reg .pred %%q<2>;\n");

    for (uint32_t n = 0; n < STUCK_WARPS; n++) {
        used +=
            snprintf(body + used, sizeof body - (size_t)used,
                     "setp.eq.u32 %%p1, %%r3, %u; @!%%p1 bra L%u;\nbar.sync %u, 1024;\nL%u: ", n, n,
                     n == 17 ? 2 : 1, n);
    }
    open_body(b, body);
    *places = NULL;
    b->launch.places = places;
    b->launch.cluster[0] = 2;
}

/* "warp 3 line 17 ..." of a CTA: how many of the list's lines say just that. */
static int lines_with(const char *places, uint32_t cta, uint32_t n)
{
    char want[100];
    int found = 0;

    snprintf(want, sizeof want, "CTA %u of the cluster, warp %u line %u barrier %d (%d of 1024)\n",
             cta, n, LINE + 3 + 2 * n, n == 17 ? 2 : 1, n == 17 ? 32 : 992);
    for (const char *at = strstr(places, want); at != NULL; at = strstr(at + 1, want)) {
        found++;
    }
    return found;
}

START_TEST(a_deadlock_says_where_each_warp_stands)
{
    char *places = NULL;
    ptx_bench b;
    uint64_t out = 0;
    int named = 0, more = 0;

    open_stuck(&b, &places);
    ck_assert_int_eq(
        ptx_bench_run(&b, "k", (uint32_t[]){4, 1, 1}, (uint32_t[]){1024, 1, 1}, (void *[]){&out}),
        HONE_WRONG);
    ck_assert_str_eq(b.fault.kind, "deadlock");
    ck_assert_ptr_nonnull(places);
    for (uint32_t n = 0; n < 2 * STUCK_WARPS; n++) {
        ck_assert_msg(lines_with(places, n / STUCK_WARPS, n % STUCK_WARPS) == 1, "warp %u: %s", n,
                      places);
    }
    /* the message has room for some, and says of how many it has not */
    for (const char *at = strstr(b.fault.message, ", warp "); at != NULL;
         at = strstr(at + 1, ", warp ")) {
        named++;
    }
    const char *rest = strstr(b.fault.message, "; and ");
    ck_assert_msg(rest != NULL && sscanf(rest, "; and %d more warps", &more) == 1, "%s",
                  b.fault.message);
    ck_assert_int_ge(named, 3);
    ck_assert_int_eq(named + more, 2 * STUCK_WARPS);
    free(places);
    ptx_bench_close(&b);
}
END_TEST

/* On two host threads, too, the list is that of the fault. */
START_TEST(several_host_threads_have_the_places_of_the_first_fault)
{
    char *one = NULL, *two = NULL;
    ptx_bench b;
    uint64_t out = 0;

    open_stuck(&b, &one);
    for (int threads = 1; threads <= 2; threads++) {
        b.launch.threads = threads;
        b.launch.places = threads == 1 ? &one : &two;
        b.launch.checks &= ~(uint32_t)HONE_EMU_CHECK_GLOBAL_RACES;
        ck_assert_int_eq(ptx_bench_run(&b, "k", (uint32_t[]){8, 1, 1}, (uint32_t[]){1024, 1, 1},
                                       (void *[]){&out}),
                         HONE_WRONG);
        ck_assert_uint_eq(b.fault.cta, 0);
    }
    ck_assert_ptr_nonnull(one);
    ck_assert_str_eq(one, two);
    free(one);
    free(two);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cluster");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, values_go_around_a_cluster, 0, 3 * (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(tests, a_cluster_keeps_its_rules, 0, (int)ARRAY_LEN(cases));
    tcase_add_test(tests, atomics_reach_every_cta);
    tcase_add_test(tests, special_registers_say_where_a_cta_is);
    tcase_add_test(tests, a_reducing_barrier_counts_halves_that_arrive_apart);
    tcase_add_test(tests, a_deadlock_says_where_each_warp_stands);
    tcase_add_test(tests, several_host_threads_have_the_places_of_the_first_fault);
    tcase_add_test(tests, registers_go_from_one_warpgroup_to_another);
    return suite_run("emulator/cluster", tests);
}
