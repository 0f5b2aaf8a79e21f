/* test_form_runs.c - every form of tiers 1 and 2 that real kernels have is executed, in a kernel of
 * its own that sets up what it needs, with every check on. What it computes is held to references
 * in the other suites; here none may be refused, reported or missing. */
#include "emulator/machine/tensor_map.h"
#include "tests/emulator/form_operands.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A warpgroup in each of two CTAs of a cluster. Shared memory is filled; registers are 0 but %r2
 * and %h: 16, %x0: global memory, %x1 and %x2: descriptors of tiles without a swizzle. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n.global .align 16 .b8 g[256];\n"              \
    ".visible .entry k(.param .u64 data, .param .align 16 .b8 big[64], .param .align 64 .b8 "      \
    "map[128])\n{\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<200>; .reg .b64 %x<30>;\n"      \
    ".shared .align 1024 .b8 s[16384]; .local .align 16 .b8 l[64];\n"                              \
    ".reg .pred %first, %warp, %lead; .reg .b32 %at, %n; .reg .b64 %q;\n"                          \
    "mov.u32 %n, %tid.x; setp.eq.u32 %first, %n, 0; setp.lt.u32 %warp, %n, 32; shl.b32 %at, %n, "  \
    "2; mov.u32 %n, %ctaid.x; setp.eq.and.u32 %lead, %n, 0, %first; mov.u32 %n, 0;\n"              \
    "FILL: st.shared.u32 [%at], 0; add.u32 %at, %at, 512; setp.lt.u32 %p0, %at, 16384;\n"          \
    "@%p0 bra FILL;\n"                                                                             \
    "st.local.v4.u32 [l], {%n, %n, %n, %n}; bar.sync 0;\n"
#define INIT   "@%first mbarrier.init.shared::cta.b64 [s], 1;\n"
#define LANDED "@%first mbarrier.init.shared::cta.b64 [s+512], 1;\n"
#define MEET   "fence.proxy.async; fence.mbarrier_init.release.cluster; bar.sync 0;\n" BOTH
#define BOTH   "barrier.cluster.arrive; barrier.cluster.wait;\n"
#define EXPECT "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+512], 16;\n"
#define AWAIT                                                                                      \
    "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [s+512], 0; @!%p1 bra AGAIN;\n" BOTH
#define MAP    "mov.b64 %q, map; cvta.param.u64 %x0, %q;\n"
#define STORED "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n"

/* Which threads do it: all, a warp or a thread of each CTA, one thread of the cluster. */
enum { ALL, WARP, FIRST, LEAD };
static const char *const guards[] = {"", "@%warp ", "@%first ", "@%lead "};

/* By a part of the form's name, the first that fits: what stands before and behind. */
static const struct {
    const char *part, *before, *after;
    int who;
} needs[] = {
    {"d.global.shared::cta", MAP MEET, STORED, LEAD},
    {"multicast", LANDED MAP MEET EXPECT BOTH, AWAIT, LEAD},
    {"cp.async.bulk.tensor.", LANDED MAP MEET EXPECT, AWAIT, FIRST},
    {"cp.async.bulk.global", MEET, STORED, LEAD},
    {"cp.async.mbarrier", INIT MEET, "", ALL},
    {"cp.async.cg", "", "cp.async.wait_all; bar.sync 0;\n", FIRST},
    {"mbarrier.init", "", "", FIRST},
    {"mbarrier.arrive.shared::cluster", INIT MEET, BOTH, FIRST},
    {"mbarrier.arrive.expect_tx", INIT MEET,
     "@%first mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s], 16;\n", FIRST},
    {"mbarrier.arrive", INIT MEET, "", FIRST},
    {"mbarrier.try_wait", INIT MEET, "", ALL},
    {"wgmma.mma", "fence.proxy.async; bar.sync 0;\nwgmma.fence.sync.aligned;\n",
     "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n", ALL},
    {"barrier.cluster.wait", "barrier.cluster.arrive;\n", "", ALL},
    {"barrier.cluster.arrive", "", "barrier.cluster.wait;\n", ALL},
    {"setmaxnreg.inc", "setmaxnreg.dec.sync.aligned.u32 24; bar.sync 0;\n", "", ALL},
    {"prefetch.tensormap", MAP, "", ALL},
    {"tensormap.replace",
     "ld.param.b64 %x20, [map]; ld.param.b64 %x21, [map+8];\n"
     "@%first st.shared.b64 [s], %x20; @%first st.shared.b64 [s+8], %x21;\n",
     "", FIRST},
    {"stmatrix", "", "", WARP},
    {"atom.", "", "", FIRST},
    {"st.shared", "", "", FIRST},
    {"st.global", "", "", LEAD},
    {"", "", "", ALL},
};

/* A map of words, 4 of which are a box, of that rank. */
static tensor_map map_of(uint64_t address, uint32_t rank)
{
    tensor_map m = {.magic = TENSOR_MAP_MAGIC, .address = address, .type = TENSOR_MAP_U32};

    m.rank = (uint8_t)rank;
    for (uint32_t d = 0; d < rank; d++) {
        m.dims[d] = 4;
        m.box[d] = d == 0 ? 4 : 1;
        m.element_strides[d] = 1;
        if (d > 0) {
            m.strides[d - 1] = 16;
        }
    }
    return m;
}

static void write_text(const char *form, char *text, size_t capacity)
{
    char operands[2048];
    size_t n = 0, used = (size_t)snprintf(text, capacity, "%s", HEAD);

    form_operands(form, operands);
    while (strstr(form, needs[n].part) == NULL) {
        n++;
    }
    for (int r = 0; r < 200; r++) {
        used += (size_t)snprintf(text + used, capacity - used, "mov.b32 %%r%d, %d;%s", r,
                                 r == 2 ? 16 : 0, r % 8 == 7 ? "\n" : " ");
    }
    for (int r = 0; r < 9; r++) {
        used += (size_t)snprintf(text + used, capacity - used,
                                 "mov.b16 %%h%d, %d; setp.ne.u32 %%p%d, %%n, 0;\n", r,
                                 strstr(form, "multicast") != NULL ? 3 : 16, r);
    }
    used += (size_t)snprintf(text + used, capacity - used,
                             "ld.param.u64 %%x0, [data]; mov.b64 %%x1, 0x0000001000080000; mov.b64 "
                             "%%x2, 0x0000001000080000; mov.b64 %%x3, 1;\n%s%s%s %s;\n%s",
                             needs[n].before, guards[needs[n].who], form, operands, needs[n].after);
    used += (size_t)snprintf(text + used, capacity - used, "END:\nret;\n}\n");
    ck_assert_uint_lt(used, capacity);
}

static void run_form(const char *form)
{
    static const uint8_t zeros[4096];
    static char text[32768];
    const char *tensor = strstr(form, "tensor.");
    bool trap = strcmp(form, "trap") == 0;
    ptx_bench b;

    write_text(form, text, sizeof text);
    ptx_bench_open(&b);
    b.launch.checks = HONE_EMU_CHECK_ALL;
    b.launch.cluster[0] = 2;
    b.launch.registers = 64;
    hone_status status = ptx_bench_load(&b, text);
    ck_assert_msg(status == HONE_OK, "%s: line %d: %s", form, b.error.line, b.error.message);
    uint64_t data = ptx_bench_buffer(&b, zeros, sizeof zeros);
    tensor_map map = map_of(data, tensor != NULL ? (uint32_t)(tensor[7] - '0') : 3);
    status = ptx_bench_run(&b, "k", (uint32_t[]){2, 1, 1}, (uint32_t[]){128, 1, 1},
                           (void *[]){&data, (void *)(uintptr_t)zeros, &map});
    ck_assert_msg(trap ? strcmp(b.fault.kind, "trap") == 0 : status == HONE_OK, "%s: line %d: %s",
                  form, b.error.line, b.error.message);
    ptx_bench_close(&b);
}

START_TEST(every_form_of_tiers_1_and_2_executes)
{
    char path[512];
    int counts[4] = {0}, seen = 0;

    if (!file_find_shared("data/ptx_forms.csv", path, sizeof path)) {
        printf("SKIP the list of forms: it is not here\n");
        return;
    }
    char *csv = file_read(path, NULL), *rest = NULL;
    for (char *line = strtok_r(csv, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *form = line + 2;
        if (line[0] != '1' && line[0] != '2') {
            continue;
        }
        *strchr(form, ',') = '\0';
        if (strcmp(form, "call.uni") == 0 || strcmp(form, "st.param.b64") == 0) {
            continue; /* ptx_forms calls functions */
        }
        counts[line[0] - '0']++;
        if (seen++ % 8 == _i) {
            run_form(form);
        }
    }
    ck_assert_int_eq(counts[1], 172);
    ck_assert_int_eq(counts[2], 50);
    free(csv);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("form_runs");

    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, every_form_of_tiers_1_and_2_executes, 0, 8);
    return suite_run("emulator/form_runs", tests);
}
