/* test_race.c - races of warps, lanes and CTAs: for each rule a kernel that breaks it, and its
 * twin. The bodies' registers are in fault_case.h. */
#include "tests/emulator/fault_case.h"
#include "tests/support/suite.h"

#include <check.h>

/* clang-format off */
static const fault_case cases[] = {
    {"two warps write the same words", 64, 1, 0,
     "st.shared.u32 [%r5], %r0;", 10, 0, 1, "race",
     "write of 4 bytes at shared offset 0 races with a write at line 10 by warp 0 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p2 st.shared.u32 [%r5], %r0;"},
    {"a warp reads what another wrote", 64, 1, 0,
     "@%p1 st.shared.u32 [%r5+512], %r0;\n@%p2 ld.shared.u32 %r9, [%r5+512];", 11, 0, 1, "race",
     "read of 4 bytes at shared offset 512 races with a write at line 10 by warp 0 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5+512], %r0;\nbar.sync 0;\n@%p2 ld.shared.u32 %r9, [%r5+512];"},
    {"a warp writes what another read", 64, 1, 0,
     "@%p1 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p1 ld.shared.u32 %r9, [%r5];\n@%p2 st.shared.u32 [%r5], %r0;", 12, 0, 0, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 13 by warp 1 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@%p1 ld.shared.u32 %r9, [%r5];\nbar.sync 0;\n@%p2 st.shared.u32 [%r5], %r0;"},
    {"a barrier of another number orders nothing", 96, 1, 0,
     "@%p1 st.shared.u32 [%r5], %r0;\nsetp.ne.u32 %p6, %r2, 1;\n@%p6 bar.sync 1, 64;\n@%p2 ld.shared.u32 %r9, [%r5];", 13, 0, 1, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 10 by warp 0 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5], %r0;\nsetp.ne.u32 %p6, %r2, 2;\n@%p6 bar.sync 1, 64;\n@%p2 ld.shared.u32 %r9, [%r5];"},
    {"the second of two readers was not waited for", 96, 1, 0,
     "setp.eq.u32 %p6, %r2, 2;\n@%p6 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@!%p6 ld.shared.u32 %r9, [%r5];\n"
     "@!%p2 bar.sync 1, 64;\n@%p6 st.shared.u32 [%r5], %r1;", 15, 0, 2, "race",
     "write of 4 bytes at shared offset 0 races with a read at line 13 by warp 1 of CTA 0 (no barrier between)",
     "setp.eq.u32 %p6, %r2, 2;\n@%p6 st.shared.u32 [%r5], %r0;\nbar.sync 0;\n@!%p6 ld.shared.u32 %r9, [%r5];\n"
     "bar.sync 1, 96;\n@%p6 st.shared.u32 [%r5], %r1;"},
    {"what an arriving warp does after its arrival is not ordered", 64, 1, 0,
     "@%p1 bar.arrive 1, 64;\n@%p1 st.shared.u32 [%r5], %r0;\n@%p2 bar.sync 1, 64;\n@%p2 ld.shared.u32 %r9, [%r5];", 13, 0, 1, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 11 by warp 0 of CTA 0 (no barrier between)",
     "@%p1 st.shared.u32 [%r5], %r0;\n@%p1 bar.arrive 1, 64;\n@%p2 bar.sync 1, 64;\n@%p2 ld.shared.u32 %r9, [%r5];"},
    {"an atomic on what another warp sets to zero", 64, 1, 0,
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\natom.shared.add.u32 %r10, [%r5], 1;", 12, 0, 1, "race",
     "atomic of 4 bytes at shared offset 0 races with a write at line 11 by warp 0 of CTA 0 (no barrier between)",
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\nbar.sync 0;\natom.shared.add.u32 %r10, [%r5], 1;"},
    {"a plain read beside atomics", 64, 1, 0,
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\nbar.sync 0;\n@%p1 atom.shared.add.u32 %r10, [%r5], 1;\n@%p2 ld.shared.u32 %r9, [%r5];",
     13, 0, 0, "race",
     "atomic of 4 bytes at shared offset 0 races with a read at line 14 by warp 1 of CTA 0 (no barrier between)",
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\nbar.sync 0;\n@%p1 atom.shared.add.u32 %r10, [%r5], 1;\n@%p2 ld.volatile.shared.u32 %r9, [%r5];"},
    {"a plain write after another warp's atomics", 64, 1, 0,
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\nbar.sync 0;\n@%p1 red.shared.add.u32 [%r5], 1;\n@%p2 st.shared.u32 [%r5], %r9;",
     13, 0, 0, "race",
     "atomic of 4 bytes at shared offset 0 races with a write at line 14 by warp 1 of CTA 0 (no barrier between)",
     "mov.u32 %r9, 0;\n@%p1 st.shared.u32 [%r5], %r9;\nbar.sync 0;\n@%p1 red.shared.add.u32 [%r5], 1;\nbar.sync 0;\n@%p2 st.shared.u32 [%r5], %r9;"},
    {"two warps write one byte of a word", 64, 1, 0,
     "cvt.u16.u32 %r9, %r0;\n@%p4 st.shared.u8 [s+1], %r0;", 11, 0, 1, "race",
     "write of 1 bytes at shared offset 1 races with a write at line 11 by warp 0 of CTA 0 (no barrier between)",
     "add.u32 %r9, %r2, 1;\n@%p4 st.shared.u8 [%r9], %r0;"},
    {"half a word read while the other warp writes it", 64, 1, 0,
     "@%p1 st.shared.u16 [%r5+2], %r0;\n@%p2 ld.shared.u16 %r9, [%r5+2];", 11, 0, 1, "race",
     "read of 2 bytes at shared offset 2 races with a write at line 10 by warp 0 of CTA 0 (no barrier between)",
     "@%p2 st.shared.u16 [%r5], %r0;\nbar.sync 0;\n@%p1 st.shared.u16 [%r5+2], %r0;\n@%p2 ld.shared.u16 %r9, [%r5];"},

    {"a lane reads what its neighbour wrote", 32, 1, 0,
     "xor.b32 %r9, %r4, 4;\nst.shared.u32 [%r4], %r0;\nld.shared.u32 %r10, [%r9];", 12, 0, 0, "race",
     "read of 4 bytes at shared offset 4 races with a write at line 11 by another lane of the warp (no bar.warp.sync between)",
     "xor.b32 %r9, %r4, 4;\nst.shared.u32 [%r4], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r10, [%r9];\nld.shared.u32 %r10, [%r4];"},
    {"a lane writes what its neighbour read", 32, 1, 0,
     "xor.b32 %r9, %r4, 4;\nst.shared.u32 [%r4], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r10, [%r9];\nst.shared.u32 [%r4], %r10;", 14, 0, 0, "race",
     "write of 4 bytes at shared offset 0 races with a read at line 13 by another lane of the warp (no bar.warp.sync between)",
     "xor.b32 %r9, %r4, 4;\nst.shared.u32 [%r4], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r10, [%r9];\nbar.warp.sync -1;\nst.shared.u32 [%r4], %r10;"},
    {"one lane writes a word, another writes it later", 32, 1, 0,
     "setp.eq.u32 %p6, %r0, 3;\nsetp.eq.u32 %p7, %r0, 9;\n@%p6 st.shared.u32 [s], %r0;\n@%p7 st.shared.u32 [s], %r0;", 13, 9, 0, "race",
     "write of 4 bytes at shared offset 0 races with a write at line 12 by another lane of the warp (no bar.warp.sync between)",
     "setp.eq.u32 %p6, %r0, 3;\nsetp.eq.u32 %p7, %r0, 9;\n@%p6 st.shared.u32 [s], %r0;\nbar.warp.sync -1;\n@%p7 st.shared.u32 [s], %r0;"},
    {"lanes write different values to one place", 32, 1, 0,
     "shr.u32 %r9, %r0, 1;\nshl.b32 %r9, %r9, 2;\nst.shared.u32 [%r9+64], %r0;", 12, 1, 0, "race",
     "lanes 0 and 1 write different values to shared offset 64 in one instruction",
     "shr.u32 %r9, %r0, 1;\nshl.b32 %r10, %r9, 2;\nst.shared.u32 [%r10+64], %r9;"},
    {"shfl is no bar.warp.sync", 32, 1, 0,
     "@%p4 st.shared.u32 [s], %r0;\nshfl.sync.idx.b32 %r9, %r0, 0, 31, -1;\nld.shared.u32 %r10, [s];", 12, 1, 0, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 10 by another lane of the warp (no bar.warp.sync between)",
     "@%p4 st.shared.u32 [s], %r0;\nbar.warp.sync -1;\nld.shared.u32 %r10, [s];"},
    {"ldmatrix of rows that lanes have just stored", 32, 1, 0,
     "st.shared.u32 [%r4], %r0;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [s];", 11, 1, 0, "race",
     "read of 16 bytes at shared offset 0 races with a write at line 10 by another lane of the warp (no bar.warp.sync between)",
     "st.shared.u32 [%r4], %r0;\nbar.warp.sync -1;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [s];\nst.shared.u32 [%r4], %r0;"},

    {"a flag without release", 64, 1, 0,
     "mov.u32 %r9, 0; st.volatile.shared.u32 [s+4096], %r9;\nbar.sync 0;\n@%p2 bra W;\nst.shared.u32 [%r5], %r0;\nmov.u32 %r9, 1;\n"
     "st.relaxed.cta.shared.u32 [s+4096], %r9;\nret;\nW:\nld.acquire.cta.shared.u32 %r9, [s+4096];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 bra W;\n"
     "ld.shared.u32 %r10, [%r5];", 21, 0, 1, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 13 by warp 0 of CTA 0 (no barrier between)",
     "mov.u32 %r9, 0; st.volatile.shared.u32 [s+4096], %r9;\nbar.sync 0;\n@%p2 bra W;\nst.shared.u32 [%r5], %r0;\nmov.u32 %r9, 1;\n"
     "st.release.cta.shared.u32 [s+4096], %r9;\nret;\nW:\nld.acquire.cta.shared.u32 %r9, [s+4096];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 bra W;\n"
     "ld.shared.u32 %r10, [%r5];"},
    {"a flag without acquire", 64, 1, 0,
     "mov.u32 %r9, 0; st.volatile.shared.u32 [s+4096], %r9;\nbar.sync 0;\n@%p2 bra W;\nst.shared.u32 [%r5], %r0;\nmov.u32 %r9, 1;\n"
     "fence.acq_rel.cta; st.relaxed.cta.shared.u32 [s+4096], %r9;\nret;\nW:\nld.volatile.shared.u32 %r9, [s+4096];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 bra W;\n"
     "ld.shared.u32 %r10, [%r5];", 21, 0, 1, "race",
     "read of 4 bytes at shared offset 0 races with a write at line 13 by warp 0 of CTA 0 (no barrier between)",
     "mov.u32 %r9, 0; st.volatile.shared.u32 [s+4096], %r9;\nbar.sync 0;\n@%p2 bra W;\nst.shared.u32 [%r5], %r0;\nmov.u32 %r9, 1;\n"
     "membar.cta; st.relaxed.cta.shared.u32 [s+4096], %r9;\nret;\nW:\nld.volatile.shared.u32 %r9, [s+4096];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 bra W;\n"
     "fence.acq_rel.cta; ld.shared.u32 %r10, [%r5];"},

    {"two warps write one global word", 64, 1, 0,
     "st.global.u32 [%x2], %r0;", 10, 0, 1, "race",
     "write of 4 bytes at offset 0 of a global allocation races with a write at line 10 by warp 0 of CTA 0 (no barrier between)",
     "@%p1 st.global.u32 [%x2], %r0;\nbar.sync 0;\n@%p2 ld.global.u32 %r9, [%x2];\nbar.sync 0;\n@%p1 st.global.u32 [%x2], %r0;"},
    {"two CTAs write one global word", 32, 2, 0,
     "nanosleep.u32 1;\nst.global.u32 [%x2], %r0;", 11, 0, 0, "race",
     "write of 4 bytes at offset 0 of a global allocation races with a write at line 11 by warp 0 of CTA 0 (no release and acquire between)",
     "mad.lo.u32 %r9, %r3, 32, %r0; mul.wide.u32 %x4, %r9, 4; add.s64 %x4, %x4, %x0;\nst.global.u32 [%x4], %r0;"},
    {"two CTAs write bytes of one global word", 32, 2, 0,
     "st.global.u8 [%x2], %r0;", 10, 0, 0, "race",
     "write of 1 bytes at offset 0 of a global allocation races with a write at line 10 by warp 0 of CTA 0 (no release and acquire between)",
     "cvt.u64.u32 %x5, %r3; add.s64 %x4, %x2, %x5;\nst.global.u8 [%x4], %r0;"},
    {"a CTA reads what another wrote", 32, 2, 0,
     "@%p3 st.global.u32 [%x2+256], %r0;\n@%p5 ld.global.u32 %r9, [%x2+256];", 11, 0, 0, "race",
     "read of 4 bytes at offset 256 of a global allocation races with a write at line 10 by warp 0 of CTA 0 (no release and acquire between)",
     "ld.global.u32 %r9, [%x2+256];"},
    {"a CTA writes what others read", 32, 9, 0,
     "setp.ne.u32 %p6, %r3, 8;\n@%p6 ld.global.u32 %r9, [%x2];\n@!%p6 st.global.u32 [%x2], %r0;", 12, 0, 0, "race",
     "write of 4 bytes at offset 0 of a global allocation races with a read at line 11 by warp 0 of CTA 0 (no release and acquire between)",
     NULL},
    {"a flag between CTAs without release", 32, 2, 0,
     "@%p5 bra W;\nst.global.u32 [%x2], %r0;\nmov.u32 %r9, 1;\nst.relaxed.gpu.global.u32 [%x3], %r9;\nret;\nW:\n"
     "ld.acquire.gpu.global.u32 %r9, [%x3];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 ret;\nld.global.u32 %r9, [%x2];", 19, 0, 0, "race",
     "read of 4 bytes at offset 0 of a global allocation races with a write at line 11 by warp 0 of CTA 0 (no release and acquire between)",
     "@%p5 bra W;\nst.global.u32 [%x2], %r0;\nmov.u32 %r9, 1;\nst.release.gpu.global.u32 [%x3], %r9;\nret;\nW:\n"
     "ld.acquire.gpu.global.u32 %r9, [%x3];\nsetp.eq.u32 %p6, %r9, 0;\n@%p6 ret;\nld.global.u32 %r9, [%x2];"},
    {"the last block, without fences", 64, 3, 0,
     "st.global.u32 [%x1], %r0;\nbar.sync 0;\nsetp.eq.u32 %p6, %r0, 0;\nmov.u32 %r9, 0; @%p6 atom.global.add.u32 %r9, [%x3], 1;\n"
     "setp.eq.u32 %p7, %r9, 2;\nbar.red.or.pred %p7, 0, %p7;\n@%p7 ld.global.u32 %r10, [%x1];", 10, 0, 0, "race",
     "write of 4 bytes at offset 0 of a global allocation races with a write at line 10 by warp 0 of CTA 0 (no release and acquire between)",
     "mad.lo.u32 %r11, %r3, 64, %r0; mul.wide.u32 %x4, %r11, 4; add.s64 %x4, %x4, %x0; st.global.u32 [%x4], %r0;\nbar.sync 0;\n"
     "setp.eq.u32 %p6, %r0, 0;\nfence.acq_rel.gpu; mov.u32 %r9, 0; @%p6 atom.global.add.u32 %r9, [%x3], 1;\n"
     "setp.eq.u32 %p7, %r9, 2;\nbar.red.or.pred %p7, 0, %p7;\n@%p7 ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%x0];"},
    {"the last block reads without a fence before the count", 64, 2, 0,
     "mad.lo.u32 %r11, %r3, 64, %r0; mul.wide.u32 %x4, %r11, 4; add.s64 %x4, %x4, %x0; st.global.u32 [%x4], %r0;\nbar.sync 0;\n"
     "setp.eq.u32 %p6, %r0, 0;\nmov.u32 %r9, 0; @%p6 atom.global.add.u32 %r9, [%x3], 1;\n"
     "setp.eq.u32 %p7, %r9, 1;\nbar.red.or.pred %p7, 0, %p7;\n@%p7 ld.global.u32 %r10, [%x2];", 16, 0, 0, "race",
     "read of 4 bytes at offset 0 of a global allocation races with a write at line 10 by warp 0 of CTA 0 (no release and acquire between)",
     NULL},
    {"an atomic and a plain write of two CTAs", 32, 2, 0,
     "@%p3 red.global.add.u32 [%x3], 1;\n@%p5 st.global.u32 [%x3], %r3;", 11, 0, 0, "race",
     "write of 4 bytes at offset 4096 of a global allocation races with an atomic at line 10 by warp 0 of CTA 0 (no release and acquire between)",
     "@%p3 red.global.add.u32 [%x3], 1;\nmov.u32 %r9, 7; @%p5 st.volatile.global.u32 [%x3], %r9;"},
    {"a counter that the last CTA sets back, which counted at another", 32, 3, 0,
     "setp.ne.u32 %p7, %r3, 2; and.pred %p7, %p7, %p4; mov.u32 %r9, 0; mov.u32 %r10, 0;\n@%p7 red.global.add.u32 [%x3], 1;\n"
     "@%p4 atom.global.add.u32 %r9, [%x3+4], 1;\nsetp.eq.u32 %p6, %r3, 2; and.pred %p6, %p6, %p4;\n@%p6 st.global.u32 [%x3], %r10;", 14, 0, 0, "race",
     "write of 4 bytes at offset 4096 of a global allocation races with an atomic at line 11 by warp 0 of CTA 0 (no release and acquire between)",
     "mov.u32 %r9, 0; mov.u32 %r10, 0;\n@%p4 atom.global.add.u32 %r9, [%x3], 1;\nsetp.eq.u32 %p6, %r9, 2;\n@%p6 st.global.u32 [%x3], %r10;"},
    {"a lock that many CTAs gave back, set back by the CTA that did not look", 32, 9, 0,
     "mov.u32 %r9, 8; mov.u32 %r10, 0; setp.eq.u32 %p6, %r3, 8; @%p6 bra W;\n@%p4 red.relaxed.gpu.global.add.u32 [%x3], 1;\n"
     "@%p4 red.relaxed.gpu.global.add.u32 [%x3+4], 1;\nret;\nW: ld.relaxed.gpu.global.u32 %r9, [%x3+4]; setp.ne.u32 %p7, %r9, 8; @%p7 bra W;\n"
     "@%p4 st.global.u32 [%x3], %r10;", 15, 0, 0, "race",
     "write of 4 bytes at offset 4096 of a global allocation races with an atomic at line 11 by warp 0 of CTA 0 (no release and acquire between)",
     "mov.u32 %r9, 8; mov.u32 %r10, 0; setp.eq.u32 %p6, %r3, 8; @%p6 bra W;\n@%p4 red.relaxed.gpu.global.add.u32 [%x3], 1;\n"
     "ret;\nW: ld.relaxed.gpu.global.u32 %r9, [%x3]; setp.ne.u32 %p7, %r9, 8; @%p7 bra W;\n@%p4 st.global.u32 [%x3], %r10;"},
    {"the CTA that a race is with", 32, 4, 0,
     "and.b32 %r9, %r3, 1; setp.eq.u32 %p6, %r9, 1;\n@%p6 st.global.u32 [%x2], %r0;", 11, 0, 0, "race",
     "write of 4 bytes at offset 0 of a global allocation races with a write at line 11 by warp 0 of CTA 1 (no release and acquire between)",
     "setp.eq.u32 %p6, %r3, 1;\n@%p6 st.global.u32 [%x2], %r0;"},
};
/* clang-format on */

/* Each round makes new records; the book is swept several times before the end. */
#define ROUNDS                                                                                     \
    "mov.u32 %r9, 0;\nL:\nst.shared.u32 [%r4], %r9;\nbar.sync 0;\nxor.b32 %r10, %r4, 128;\n"       \
    "ld.shared.u32 %r11, [%r10]; ld.shared.u16 %r12, [%r10+1024];\n"                               \
    "@%p2 st.shared.u8 [%r5+2048], %r9;\nbar.sync 0;\n"                                            \
    "add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 30000; @%p6 bra L;\n"

static const fault_case long_case = {
    "a race after a long run",
    64,
    1,
    0,
    ROUNDS "@%p1 ld.shared.u8 %r13, [%r5+2048];\n@%p2 "
           "st.shared.u8 [%r5+2048], %r9;",
    20,
    0,
    1,
    "race",
    "write of 1 bytes at shared offset 2048 races with a read at line 19 by warp 0 of CTA 0 (no "
    "barrier between)",
    ROUNDS "@%p1 ld.shared.u8 %r13, [%r5+2048];\nbar.sync 0;\n@%p2 st.shared.u8 [%r5+2048], %r9;"};

START_TEST(a_long_run_forgets_what_it_can_and_nothing_else)
{
    fault_case_is_told(&long_case);
    fault_case_twin_passes_once(&long_case);
}
END_TEST

int main(void)
{
    TCase *tests = fault_case_tests("race", cases, ARRAY_LEN(cases));

    tcase_add_test(tests, a_long_run_forgets_what_it_can_and_nothing_else);
    return suite_run("emulator/race", tests);
}
