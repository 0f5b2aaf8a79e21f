/* test_async_forms.c - which forms of mbarrier, bulk copies and fences are known; the others are
 * refused by their line. */
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 in)\n{\n"                                                       \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %x<9>; .shared .align 128 "    \
    ".b8 s[8192];\n"                                                                               \
    "ld.param.u64 %x0, [in]; mov.u32 %r1, s;\n"
#define LINE 8

#define A  "[%r1+64]"
#define TX ".mbarrier::complete_tx::bytes"
static const struct {
    const char *text;
    bool known;
} forms[] = {
    {"mbarrier.init.b64 [%x1], 3;", true},
    {"mbarrier.init.shared.b64 " A ", %r0;", true},
    {"mbarrier.inval.shared::cta.b64 " A ";", true},
    {"mbarrier.arrive.b64 %x2, [%x1];", true},
    {"mbarrier.arrive.release.cluster.shared::cta.b64 %x2, " A ", 2;", true},
    {"mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, " A ", %r0;", true},
    {"mbarrier.arrive.shared::cluster.b64 %x2, " A ";", false},
    {"mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, " A ", 16;", true},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, " A ";", false},
    {"mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %x2, " A ", 1;", true},
    {"mbarrier.arrive_drop.shared.b64 %x2, " A ";", true},
    {"mbarrier.arrive_drop.expect_tx.shared::cta.b64 %x2, " A ", 16;", true},
    {"mbarrier.arrive_drop.shared::cluster.b64 _, " A ", 1;", true},
    {"mbarrier.arrive_drop.noComplete.shared.b64 %x2, " A ", 1;", true},
    {"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 " A ", 16;", true},
    {"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 " A ", 16;", true},
    {"mbarrier.complete_tx.b64 [%x1], 16;", true},
    {"mbarrier.test_wait.b64 %p1, [%x1], %x2;", true},
    {"mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p1, " A ", 1;", true},
    {"mbarrier.test_wait.shared::cta.b64 %p1, " A ", %x2, 10;", false},
    {"mbarrier.try_wait.relaxed.cluster.shared::cta.b64 %p1, " A ", %x2, 10;", true},
    {"mbarrier.try_wait.parity.b64 %p1, [%x1], %r0, %r0;", true},
    {"mbarrier.try_wait.parity.shared::cluster.b64 %p1, " A ", 0;", false},
    {"mbarrier.pending_count.b64 %r9, %x2;", true},
    {"mbarrier.wait.b64 [%x1];", false},
    {"cp.async.mbarrier.arrive.b64 [%x1];", true},
    {"cp.async.mbarrier.arrive.noinc.shared.b64 " A ";", true},
    {"cp.async.bulk.shared::cluster.global" TX ".multicast::cluster.L2::cache_hint [%r1], [%x0], "
     "16, " A ", %h1, %x2;",
     true},
    {"cp.async.bulk.shared::cta.global" TX ".L2::cache_hint [%r1], [%x0], 16, " A ", %x2;", true},
    {"cp.async.bulk.shared::cta.global" TX ".multicast::cluster [%r1], [%x0], 16, " A ", %h1;",
     false},
    {"cp.async.bulk.shared::cluster.shared::cta" TX " [%r1], [%r2], 16, " A ";", true},
    {"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%x0], [%r1], 16, %x2, "
     "%h1;",
     true},
    {"cp.async.bulk.global.shared::cta" TX " [%x0], [%r1], 16, " A ";", false},
    {"cp.async.bulk.shared::cluster.global.bulk_group [%r1], [%x0], 16;", false},
    {"cp.async.bulk.global.global.bulk_group [%x0], [%x1], 16;", false},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.s64 [%x0], [%r1], 16, "
     "%x2;",
     true},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta" TX ".add.f32 [%r1], [%r2], 16, " A ";",
     false},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.max.f32 [%x0], [%r1], 16;", false},
    {"cp.async.bulk.prefetch.L2.global.L2::cache_hint [%x0], 16, %x2;", true},
    {"cp.async.bulk.commit_group;", true},
    {"cp.async.bulk.wait_group.read 3;", true},
    {"cp.async.bulk.wait_group %r0;", false},
    {"st.async.shared::cluster" TX ".v2.f64 [%r1], {%x1,%x2}, " A ";", true},
    {"st.async.weak.shared::cluster" TX ".v4.f32 [%r1], {%r1,%r2,%r3,%r4}, " A ";", true},
    {"red.async.relaxed.cluster.shared::cluster" TX ".xor.b32 [%r1], %r2, " A ";", true},
    {"red.async.relaxed.cluster.shared::cluster" TX ".add.f32 [%r1], %r2, " A ";", false},
    {"fence.proxy.async;", true},
    {"fence.proxy.async.global;", true},
    {"fence.proxy.async.shared::cluster;", true},
    {"fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", true},
    {"fence.proxy.alias;", true},
    {"fence.proxy.other;", false},
    {"fence.mbarrier_init.release.cluster;", true},
    {"fence.acquire.sync_restrict::shared::cluster.cluster;", true},
    {"membar.proxy.alias;", true},
};

START_TEST(a_form_is_known_or_refused_by_its_line)
{
    char text[2048], refusal[16];
    ptx_bench b;

    snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, forms[_i].text);
    snprintf(refusal, sizeof refusal, "line %d", LINE);
    ptx_bench_open(&b);
    hone_status status = ptx_bench_load(&b, text);
    ck_assert_msg(status == (forms[_i].known ? HONE_OK : HONE_UNSUPPORTED), "%s: %s",
                  forms[_i].text, b.error.message);
    ck_assert_msg(forms[_i].known || b.error.line == LINE ||
                      strstr(b.error.message, refusal) != NULL,
                  "%s: %s", forms[_i].text, b.error.message);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("async_forms");

    tcase_add_loop_test(tests, a_form_is_known_or_refused_by_its_line, 0, (int)ARRAY_LEN(forms));
    return suite_run("emulator/async_forms", tests);
}
