/* test_race_engines.c - races with what engines do for warps: cp.async, bulk copies, wgmma; proxy
 * fences; mbarriers and clusters. The bodies' registers are in fault_case.h. */
#include "tests/emulator/fault_case.h"
#include "tests/support/suite.h"

#include <check.h>

/* Thread 0 makes an mbarrier of one arrival at 8000, another at 8008. */
#define MBARRIERS                                                                                  \
    "setp.eq.u32 %p9, %r0, 0; @%p9 mbarrier.init.shared::cta.b64 [s+8000], 1; @%p9 "               \
    "mbarrier.init.shared::cta.b64 [s+8008], 1; bar.sync 0;\n"
#define WAIT(label, at)                                                                            \
    label ": mbarrier.try_wait.parity.shared::cta.b64 %p8, [s+" at "], 0; @!%p8 bra " label ";\n"
#define LOAD(to, bar)                                                                              \
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+" to                     \
    "], [%x0], 128, [s+" bar "];"
#define EXPECT(bar) "@%p9 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s+" bar "], 128;"
#define STORE       "cp.async.bulk.global.shared::cta.bulk_group [%x3], [s], 128;\n"
/* m64n8k32 of e4m3: A at 0, B at 2048, core matrices of 128 bytes side by side. */
#define WGMMA                                                                                      \
    "mov.b64 %x4, 0x0000001000080000; mov.b64 %x5, 0x0000001000080080; "                           \
    "wgmma.fence.sync.aligned;\n"                                                                  \
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f0, %f1, %f2, %f3}, %x4, %x5, 0, 1, "   \
    "1;\n"                                                                                         \
    "wgmma.commit_group.sync.aligned;\n"
#define FILL                                                                                       \
    "mov.u32 %r9, 0; st.shared.v4.u32 [%r10], {%r9, %r9, %r9, %r9}; st.shared.u32 [%r4+2048], "    \
    "%r9;\n"
#define ADDRESS "shl.b32 %r10, %r0, 4;\n"
/* Two warpgroups and one tile of whole pages, which the first one fills, all but 16 bytes at 2048
 * that everybody knows: m64n64k32, core matrices one after the other. A word at 8000 is 0, then 1
 * when the first has multiplied; it orders nothing. */
#define TWO_GROUPS                                                                                 \
    "setp.ge.u32 %p7, %r0, 128; setp.eq.u32 %p9, %r0, 0; setp.eq.u32 %p6, %r0, 128; mov.u32 %r9, " \
    "0; shl.b32 %r10, %r0, 4; @%p9 st.shared.u32 [s+8000], %r9; @%p6 st.shared.v4.u32 [%r10], "    \
    "{%r9, %r9, %r9, %r9}; fence.proxy.async; bar.sync 0;\n"                                       \
    "mov.b64 %x4, 0x0000000800400000; mov.b64 %x5, 0x0000000800400080; @%p7 bra SECOND;\n"         \
    "st.shared.v4.u32 [%r10], {%r9, %r9, %r9, %r9}; @!%p9 st.shared.v4.u32 [%r10+2048], {%r9, "    \
    "%r9, %r9, %r9}; fence.proxy.async; bar.sync 1, 128;\n"
#define MULTIPLY                                                                                   \
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k32.f16.e4m3.e4m3 {%r20, %r21, " \
    "%r22, %r23, %r24, %r25, %r26, %r27, %r28, %r29, %r30, %r31, %r32, %r33, %r34, %r35}, %x4, "   \
    "%x5, 0, 1, 1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n"
/* The second's own rows lie at 4096. */
#define OWN_ROWS                                                                                   \
    "st.shared.v4.u32 [%r10+2048], {%r9, %r9, %r9, %r9}; mov.b64 %x4, 0x0000000800400100; "        \
    "fence.proxy.async; bar.sync 2, 128;\n"
#define TELL "bar.sync 1, 128; mov.u32 %r9, 1; @%p9 st.volatile.shared.u32 [s+8000], %r9;\n"
/* Then the tile is written anew: the second's part of it, which it tells by a 2; and the first's.
 */
#define WRITE                                                                                      \
    "mov.u32 %r9, 0; @!%p6 st.shared.v4.u32 [%r10], {%r9, %r9, %r9, %r9}; fence.proxy.async; "     \
    "bar.sync 2, 128; mov.u32 %r9, 2;\n"
#define WRITE_REST                                                                                 \
    "mov.u32 %r9, 0; @%p9 st.shared.v4.u32 [s+2048], {%r9, %r9, %r9, %r9}; fence.proxy.async; "    \
    "bar.sync 1, 128;\n"
#define TELL_BACK "@%p6 st.volatile.shared.u32 [s+8000], %r9;\n"
#define BE_TOLD_BACK                                                                               \
    "Q: ld.volatile.shared.u32 %r9, [s+8000]; setp.ne.u32 %p8, %r9, 2; @%p8 bra Q;\n"
#define BE_TOLD "P: ld.volatile.shared.u32 %r9, [s+8000]; setp.eq.u32 %p8, %r9, 0; @%p8 bra P;\n"

/* %r10: the lane's word, %r11: `s`, of the other CTA of two. */
#define OTHER                                                                                      \
    "mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r10, %r5, %r9; mov.u32 %r11, s; " \
    "mapa.shared::cluster.u32 %r11, %r11, %r9;\n" MEET
#define MEET "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
#define MEET_RELAXED "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\n"
#define INIT_FENCE "@%p4 fence.mbarrier_init.release.cluster;\n"
#define ARRIVE_THERE "@%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11+8000];\n"

/* clang-format off */
static const fault_case cases[] = {
    {"a warp reads what another warp's cp.async brought", 64, 1, 0,
     "@%p1 cp.async.ca.shared.global [%r5], [%x2], 4;\n@%p1 cp.async.wait_all;\n@%p2 ld.shared.u32 %r9, [%r5];", 12, 0, 1, "async-misuse",
     "read of 4 bytes at shared offset 0, which cp.async of warp 0 of CTA 0 writes at line 10; the reader has not waited for it",
     "@%p1 cp.async.ca.shared.global [%r5], [%x2], 4;\n@%p1 cp.async.wait_all;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5];"},
    {"cp.async over what another warp reads", 64, 1, 0,
     "@%p1 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5];\n@%p1 cp.async.ca.shared.global [%r5], [%x2], 4;\n@%p1 cp.async.wait_all;", 13, 0, 0, "race",
     "cp.async's write of 4 bytes at shared offset 0 races with a read at line 12 by warp 1 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5];\nbar.sync 0;\n@%p1 cp.async.ca.shared.global [%r5], [%x2], 4;\n@%p1 cp.async.wait_all;"},
    {"a warp that does not wait reads a bulk copy's destination", 64, 1, 0,
     MBARRIERS EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n@%p2 bra R;\n" WAIT("W", "8000") "R: ld.shared.u32 %r9, [%r5];", 12, 0, 0, "race",
     "bulk copy's write of 128 bytes at shared offset 0 races with a read at line 15 by warp 1 of CTA 0 (no barrier between)",
     MBARRIERS EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000") "R: ld.shared.u32 %r9, [%r5];"},
    {"a wait for the second of two copies", 32, 1, 0,
     MBARRIERS EXPECT("8000") EXPECT("8008") "\n@%p9 " LOAD("0", "8000") "\n@%p9 " LOAD("128", "8008") "\n" WAIT("W", "8008") "ld.shared.u32 %r9, [%r5+128];\nld.shared.u32 %r9, [%r5];\n" WAIT("V", "8000"), 16, 0, 0, "async-misuse",
     "read of 4 bytes at shared offset 0, which a bulk copy issued by warp 0 of CTA 0 writes at line 12; the reader has not waited for it",
     MBARRIERS EXPECT("8000") EXPECT("8008") "\n@%p9 " LOAD("0", "8000") "\n@%p9 " LOAD("128", "8008") "\n" WAIT("W", "8008") "ld.shared.u32 %r9, [%r5+128];\n" WAIT("V", "8000") "ld.shared.u32 %r9, [%r5];\n"},
    {"a bulk copy over what another warp reads", 64, 1, 0,
     MBARRIERS "st.shared.u32 [%r4], %r0;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5];\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000"), 13, 0, 1, "async-misuse",
     "read of 4 bytes at shared offset 0, which a bulk copy issued by warp 0 of CTA 0 writes at line 15; the reader has not waited for it",
     MBARRIERS "st.shared.u32 [%r4], %r0;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5];\nbar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000")},
    {"a bulk store of what was written without a proxy fence", 64, 1, 0,
     "setp.eq.u32 %p9, %r0, 0;\n@%p2 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 13, 0, 0, "proxy-fence",
     "bulk copy reads shared offset 0 that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     "setp.eq.u32 %p9, %r0, 0;\n@%p2 st.shared.u32 [%r5], %r0;\nfence.proxy.async;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"a proxy fence before the write", 64, 1, 0,
     "setp.eq.u32 %p9, %r0, 0;\nfence.proxy.async;\n@%p2 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 14, 0, 0, "proxy-fence",
     "bulk copy reads shared offset 0 that warp 1 of CTA 0 wrote at line 12; no fence.proxy.async lies between",
     "setp.eq.u32 %p9, %r0, 0;\n@%p2 st.shared.u32 [%r5], %r0;\nbar.sync 0;\nfence.proxy.async;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"a bulk store behind a proxy fence of the other space", 64, 1, 0,
     "setp.eq.u32 %p9, %r0, 0;\n@%p2 st.shared.u32 [%r5], %r0;\nfence.proxy.async.global;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 14, 0, 0, "proxy-fence",
     "bulk copy reads shared offset 0 that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     "setp.eq.u32 %p9, %r0, 0;\n@%p2 st.shared.u32 [%r5], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"a bulk store of what an atomic made without a proxy fence", 64, 1, 0,
     "setp.eq.u32 %p9, %r0, 0; @%p1 st.shared.u32 [%r5], %r0; fence.proxy.async; bar.sync 0;\n@%p2 red.shared.add.u32 [%r5], %r0;\nbar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 13, 0, 0, "proxy-fence",
     "bulk copy reads shared offset 0 that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     "setp.eq.u32 %p9, %r0, 0; @%p1 st.shared.u32 [%r5], %r0; bar.sync 0;\n@%p2 red.shared.add.u32 [%r5], %r0;\nfence.proxy.async; bar.sync 0;\n@%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"a strong load between the atomic and the bulk store", 64, 1, 0,
     "setp.eq.u32 %p9, %r0, 0; @%p1 st.shared.u32 [%r5], %r0; fence.proxy.async; bar.sync 0;\n@%p2 atom.shared.exch.b32 %r9, [%r5], %r0;\nbar.sync 0;\n@%p1 ld.volatile.shared.u32 %r9, [%r5];\nbar.warp.sync -1; @%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", 14, 0, 0, "proxy-fence",
     "bulk copy reads shared offset 0 that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     "setp.eq.u32 %p9, %r0, 0; @%p1 st.shared.u32 [%r5], %r0; bar.sync 0;\n@%p2 atom.shared.exch.b32 %r9, [%r5], %r0;\nbar.sync 0;\n@%p1 ld.volatile.shared.u32 %r9, [%r5]; fence.proxy.async;\nbar.warp.sync -1; @%p9 " STORE "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"},
    {"wgmma of what a strong store wrote without a proxy fence", 128, 1, 0,
     ADDRESS FILL "fence.proxy.async; bar.sync 0; st.volatile.shared.u32 [%r4], 0;\nbar.sync 0;\n" WGMMA "wgmma.wait_group.sync.aligned 0;", 15, 0, 0, "proxy-fence",
     "wgmma reads shared offset 0 that warp 0 of CTA 0 wrote at line 12; no fence.proxy.async lies between",
     ADDRESS FILL "fence.proxy.async; bar.sync 0; st.volatile.shared.u32 [%r4], 0;\nfence.proxy.async; bar.sync 0;\n" WGMMA "wgmma.wait_group.sync.aligned 0;"},
    {"a bulk copy of global memory that an atomic changed without a proxy fence", 64, 1, 0,
     MBARRIERS "@%p2 red.global.add.u32 [%x2], %r0;\nbar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000"), 14, 0, 0, "proxy-fence",
     "bulk copy reads offset 0 of a global allocation that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     MBARRIERS "@%p2 red.global.add.u32 [%x2], %r0;\nfence.proxy.async.global; bar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000")},
    {"a bulk copy of global memory that was written without a proxy fence", 64, 1, 0,
     MBARRIERS "@%p2 st.global.u32 [%x2], %r0;\nbar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000"), 14, 0, 0, "proxy-fence",
     "bulk copy reads offset 0 of a global allocation that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     MBARRIERS "@%p2 st.global.u32 [%x2], %r0;\nfence.proxy.async.global; bar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000")},
    {"a bulk copy of what another CTA wrote, and nobody fenced", 32, 2, 0,
     MBARRIERS "@%p5 bra R;\nst.global.u32 [%x2], %r0;\nbar.warp.sync -1; @%p9 st.release.gpu.global.u32 [%x3], 1;\nret;\n"
     "R: ld.acquire.gpu.global.u32 %r9, [%x3]; setp.eq.u32 %p6, %r9, 0; @%p6 bra R;\nfence.proxy.async.shared::cta;\n"
     EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000"), 18, 0, 0, "proxy-fence",
     "bulk copy reads offset 0 of a global allocation that warp 0 of CTA 0 wrote at line 12; no fence.proxy.async lies between",
     MBARRIERS "@%p5 bra R;\nst.global.u32 [%x2], %r0;\nbar.warp.sync -1; @%p9 st.release.gpu.global.u32 [%x3], 1;\nret;\n"
     "R: ld.acquire.gpu.global.u32 %r9, [%x3]; setp.eq.u32 %p6, %r9, 0; @%p6 bra R;\nfence.proxy.async.global;\n"
     EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000")},
    {"a bulk copy of global memory behind a proxy fence of shared memory", 64, 1, 0,
     MBARRIERS "@%p2 st.global.u32 [%x2], %r0;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000"), 15, 0, 0, "proxy-fence",
     "bulk copy reads offset 0 of a global allocation that warp 1 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     MBARRIERS "@%p2 st.global.u32 [%x2], %r0;\nbar.sync 0; fence.proxy.async;\n" EXPECT("8000") "\n@%p9 " LOAD("0", "8000") "\n" WAIT("W", "8000")},
    {"a write over the source of a bulk store that has not been read", 32, 1, 0,
     "setp.eq.u32 %p9, %r0, 0;\nst.shared.u32 [%r5], %r0;\nfence.proxy.async; bar.warp.sync -1;\n@%p9 " STORE "@%p9 cp.async.bulk.commit_group;\nbar.warp.sync -1;\nst.shared.u32 [%r5], %r0;", 16, 0, 0, "race",
     "write of 4 bytes at shared offset 0 races with a read at line 13 by a bulk copy issued by warp 0 of CTA 0 (no barrier between)",
     "setp.eq.u32 %p9, %r0, 0;\nst.shared.u32 [%r5], %r0;\nfence.proxy.async; bar.warp.sync -1;\n@%p9 " STORE "@%p9 cp.async.bulk.commit_group; @%p9 cp.async.bulk.wait_group.read 0;\nbar.warp.sync -1;\nst.shared.u32 [%r5], %r0;"},
    {"wgmma of what was written without a proxy fence", 128, 1, 0,
     ADDRESS FILL "bar.sync 0;\n" WGMMA "wgmma.wait_group.sync.aligned 0;", 14, 0, 3, "proxy-fence",
     "wgmma reads shared offset 1536 that warp 3 of CTA 0 wrote at line 11; no fence.proxy.async lies between",
     ADDRESS FILL "fence.proxy.async; bar.sync 0;\n" WGMMA "wgmma.wait_group.sync.aligned 0;"},
    {"wgmma of what other warps have just written", 128, 1, 0,
     ADDRESS FILL "bar.sync 0;\n" FILL "fence.proxy.async;\n" WGMMA "wgmma.wait_group.sync.aligned 0;", 13, 0, 0, "race",
     "write of 4 bytes at shared offset 2048 races with a read at line 16 by wgmma of warp 3 of CTA 0 (no barrier between)",
     ADDRESS FILL "bar.sync 0; fence.proxy.async;\n" WGMMA "wgmma.wait_group.sync.aligned 0;"},
    {"a write over what a wgmma reads that was not waited for", 128, 1, 0,
     ADDRESS FILL "fence.proxy.async; bar.sync 0;\n" WGMMA "bar.sync 0;\n" FILL "wgmma.wait_group.sync.aligned 0;", 17, 0, 2, "race",
     "write of 16 bytes at shared offset 1024 races with a read at line 14 by wgmma of warp 2 of CTA 0 (no barrier between)",
     ADDRESS FILL "fence.proxy.async; bar.sync 0;\n" WGMMA "wgmma.wait_group.sync.aligned 0; bar.sync 0;\n" FILL},
    {"a warpgroup multiplies what another one filled, and has multiplied itself", 256, 1, 0,
     TWO_GROUPS MULTIPLY TELL "ret;\nSECOND: " OWN_ROWS BE_TOLD MULTIPLY, 18, 0, 4, "race",
     "wgmma's read of 1024 bytes at shared offset 2064 races with a write at line 12 by warp 0 of CTA 0 (no barrier between)",
     TWO_GROUPS MULTIPLY TELL "bar.sync 0;\nret;\nSECOND: " OWN_ROWS "bar.sync 0;\n" MULTIPLY},
    {"a warpgroup multiplies again what another one has written since", 256, 1, 0,
     TWO_GROUPS MULTIPLY TELL "bar.sync 0;\n" WRITE_REST BE_TOLD_BACK MULTIPLY "ret;\nSECOND: bar.sync 0;\n" WRITE TELL_BACK, 18, 0, 0, "race",
     "wgmma's read of 1024 bytes at shared offset 2064 races with a write at line 21 by warp 4 of CTA 0 (no barrier between)",
     TWO_GROUPS MULTIPLY TELL "bar.sync 0;\n" WRITE_REST "bar.sync 3;\n" MULTIPLY "ret;\nSECOND: bar.sync 0;\n" WRITE "bar.sync 3;\n"},
    {"a warp reads what another arrived with at an mbarrier", 64, 1, 0,
     MBARRIERS "@%p1 st.shared.u32 [%r5], %r0;\nbar.warp.sync -1;\n@%p9 mbarrier.arrive.shared::cta.b64 _, [s+8000];\n@%p2 ld.shared.u32 %r9, [%r5];\n" WAIT("W", "8000"), 11, 0, 0, "race",
     "write of 4 bytes at shared offset 0 races with a read at line 14 by warp 1 of CTA 0 (no barrier between)",
     MBARRIERS "@%p1 st.shared.u32 [%r5], %r0;\nbar.warp.sync -1;\n@%p9 mbarrier.arrive.shared::cta.b64 _, [s+8000];\n" WAIT("W", "8000") "@%p2 ld.shared.u32 %r9, [%r5];\n"},
    {"a relaxed arrival at the cluster's barrier orders nothing", 32, 2, 2,
     "mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r10, %r5, %r9;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
     "st.shared::cluster.u32 [%r10], %r0;\nbarrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;\nld.shared.u32 %r11, [%r5];\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", 14, 0, 0, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 12 by warp 0 of CTA 1 (no cluster barrier between)",
     "mov.u32 %r9, %cluster_ctarank; xor.b32 %r9, %r9, 1; mapa.shared::cluster.u32 %r10, %r5, %r9;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
     "st.shared::cluster.u32 [%r10], %r0;\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nld.shared.u32 %r11, [%r5];\nbarrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"},
    {"the fence of mbarriers' beginnings orders nothing else", 32, 2, 2,
     OTHER "st.shared::cluster.u32 [%r10], %r0;\n@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" INIT_FENCE MEET_RELAXED ARRIVE_THERE "ld.shared.u32 %r12, [%r5];\n" MEET, 17, 0, 0, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 12 by warp 0 of CTA 1 (no cluster barrier between)",
     OTHER "st.shared::cluster.u32 [%r10], %r0;\n@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" INIT_FENCE MEET_RELAXED ARRIVE_THERE MEET "ld.shared.u32 %r12, [%r5];\n" MEET},
    {"an mbarrier that begins behind its fence", 32, 2, 2,
     OTHER INIT_FENCE "@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" MEET_RELAXED ARRIVE_THERE MEET, 15, 0, 0, "race",
     "atomic of 8 bytes at shared offset 8000 of CTA 1 races with a write at line 13 by warp 0 of CTA 1 (no cluster barrier between)",
     OTHER "@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" INIT_FENCE MEET_RELAXED ARRIVE_THERE MEET},
    {"of two mbarriers the second begins behind the fence", 32, 2, 2,
     OTHER "@%p4 mbarrier.init.shared::cta.b64 [s+8008], 2;\n" INIT_FENCE "@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" MEET_RELAXED ARRIVE_THERE MEET, 16, 0, 0, "race",
     "atomic of 8 bytes at shared offset 8000 of CTA 1 races with a write at line 14 by warp 0 of CTA 1 (no cluster barrier between)",
     OTHER "@%p4 mbarrier.init.shared::cta.b64 [s+8008], 2;\n@%p4 mbarrier.init.shared::cta.b64 [s+8000], 2;\n" INIT_FENCE MEET_RELAXED ARRIVE_THERE MEET},
    {"another lane arrives where one has begun", 32, 1, 0,
     "setp.eq.u32 %p6, %r0, 1; @%p4 mbarrier.init.shared::cta.b64 [s+8000], 1;\n@%p6 mbarrier.arrive.shared::cta.b64 _, [s+8000];", 11, 1, 0, "race",
     "atomic of 8 bytes at shared offset 8000 races with a write at line 10 by another lane of the warp (no bar.warp.sync between)",
     "setp.eq.u32 %p6, %r0, 1; @%p4 mbarrier.init.shared::cta.b64 [s+8000], 1;\nbar.warp.sync -1;\n@%p6 mbarrier.arrive.shared::cta.b64 _, [s+8000];"},
    {"a relaxed arrival and a relaxed wait order nothing", 64, 1, 0,
     MBARRIERS "@%p1 st.shared.u32 [%r5], %r0;\nbar.warp.sync -1;\n@%p9 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [s+8000];\n"
     "R: mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 %p7, [s+8000], 0; @!%p7 bra R;\n@%p2 ld.shared.u32 %r9, [%r5];\n", 15, 0, 1, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 11 by warp 0 of CTA 0 (no barrier between)",
     MBARRIERS "@%p1 st.shared.u32 [%r5], %r0;\nbar.warp.sync -1;\nfence.acq_rel.cta; @%p9 mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [s+8000];\n"
     "R: mbarrier.test_wait.parity.relaxed.cta.shared::cta.b64 %p7, [s+8000], 0; @!%p7 bra R;\nfence.acq_rel.cta; @%p2 ld.shared.u32 %r9, [%r5];\n"},
};
/* clang-format on */

int main(void)
{
    TCase *tests = fault_case_tests("race_engines", cases, ARRAY_LEN(cases));
    return suite_run("emulator/race_engines", tests);
}
