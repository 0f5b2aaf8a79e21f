/* test_alike.c - bulk and tensor copies that a whole warp executes: lanes that give the same
 * operands make one operation, others one each. */
#include "emulator/machine/tensor_map.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include "core/status.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 32, COLS = 4, ROWS = 32, WORDS = COLS * ROWS, BASE = 100 };

/* One warp. `in`: 32 rows of 4 words, each its own index; `out`: as many, each BASE. Shared memory:
 * an mbarrier at 0, a copy of `in` at 1024, room at 4096; %r1, %r2, %r3. %r4 is the lane, %r5 its
 * row's offset in bytes, %r6 is 0; %x0: the map of `in`, or of `out`; %x1, %x2: in, out; %x3 and
 * %x4: the lane's rows of them. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out)\n{\n"       \
    ".shared .align 1024 .b8 s[8192];\n.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %x<8>;\n"     \
    "mov.b64 %x0, map; cvta.param.u64 %x0, %x0; ld.param.u64 %x1, [in]; ld.param.u64 %x2, "        \
    "[out]; mov.u32 %r4, %tid.x; mov.u32 %r1, s; add.u32 %r2, %r1, 1024;\n"                        \
    "add.u32 %r3, %r1, 4096; shl.b32 %r5, %r4, 4; cvt.u64.u32 %x5, %r5; add.s64 %x3, %x1, %x5;\n"  \
    "add.s64 %x4, %x2, %x5; add.u32 %r7, %r2, %r5; mov.u32 %r6, 0; setp.eq.u32 %p0, %r4, 0;\n"     \
    "ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%x3]; st.shared.v4.u32 [%r7], {%r8, %r9, %r10, "    \
    "%r11};\n@%p0 mbarrier.init.shared::cta.b64 [%r1], 1; fence.proxy.async; bar.warp.sync "       \
    "0xffffffff;\n"
#define EXPECT "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 512;\n"
#define WAIT   "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0; @!%p1 bra W;\n"
/* The lane's 16 bytes at %r12 go to its row of `out`. */
#define OUT                                                                                        \
    "ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r12]; st.global.v4.u32 [%x4], {%r8, %r9, %r10, "   \
    "%r11};\n"
#define GROUP  "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
#define TAIL   "ret;\n}\n"
#define LOAD   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
#define ADD    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
#define BOX    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
#define STORE  "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
#define REDUCE "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "

static uint32_t as_in(uint32_t n)
{
    return n;
}

static uint32_t added_once(uint32_t n)
{
    return BASE + n;
}

static uint32_t added_to_each_half(uint32_t n)
{
    return BASE + n % (WORDS / 2);
}

static uint32_t added_to_the_first_row(uint32_t n)
{
    return BASE + (n < COLS ? COLS * LANES * (LANES - 1) / 2 + LANES * n : 0);
}

static uint32_t first_row_added(uint32_t n)
{
    return BASE + n % COLS;
}

static const struct {
    const char *name, *body;
    uint32_t box_rows; /* of the tensor map, over `out` where it is stored to */
    bool stores;
    uint32_t requests, load_bytes, store_bytes;
    uint32_t (*expected)(uint32_t word);
} cases[] = {
    {"one bulk load",
     EXPECT LOAD "[%r3], [%x1], 512, [%r1];\n" WAIT "add.u32 %r12, %r3, %r5;\n" OUT, 1, false, 1,
     512, 0, as_in},
    {"a bulk load that half of the lanes execute",
     EXPECT "setp.gt.u32 %p2, %r4, 15;\n@%p2 " LOAD "[%r3], [%x1], 512, [%r1];\n" WAIT
            "add.u32 %r12, %r3, %r5;\n" OUT,
     1, false, 1, 512, 0, as_in},
    {"a bulk load of each lane",
     EXPECT "add.u32 %r12, %r3, %r5;\n" LOAD "[%r12], [%x3], 16, [%r1];\n" WAIT OUT, 1, false, 32,
     512, 0, as_in},
    {"one bulk reduction", ADD "[%x2], [%r2], 512;\n" GROUP, 1, true, 1, 0, 512, added_once},
    {"a bulk reduction of the even lanes and one of the odd",
     "and.b32 %r12, %r4, 1; shl.b32 %r12, %r12, 8; cvt.u64.u32 %x5, %r12; add.s64 %x5, %x2, "
     "%x5;\n" ADD "[%x5], [%r2], 256;\n" GROUP,
     1, true, 2, 0, 512, added_to_each_half},
    {"a bulk reduction of each lane to the same place", ADD "[%x2], [%r7], 16;\n" GROUP, 1, true,
     32, 0, 512, added_to_the_first_row},
    {"one tensor load",
     EXPECT BOX "[%r3], [%x0, {%r6, %r6}], [%r1];\n" WAIT "add.u32 %r12, %r3, %r5;\n" OUT, ROWS,
     false, 1, 512, 0, as_in},
    {"a tensor load of each lane",
     EXPECT "shl.b32 %r12, %r4, 7; add.u32 %r12, %r12, %r3;\n" BOX
            "[%r12], [%x0, {%r6, %r4}], [%r1];\n" WAIT OUT,
     1, false, 32, 512, 0, as_in},
    {"one tensor store", STORE "[%x0, {%r6, %r6}], [%r2];\n" GROUP, ROWS, true, 1, 0, 512, as_in},
    {"one tensor reduction", REDUCE "[%x0, {%r6, %r6}], [%r2];\n" GROUP, ROWS, true, 1, 0, 512,
     added_once},
    {"a tensor reduction of each lane", REDUCE "[%x0, {%r6, %r4}], [%r2];\n" GROUP, 1, true, 32, 0,
     512, first_row_added},
};

START_TEST(operations_are_made_and_counted_by_distinct_operands)
{
    const char *body = cases[_i / 2].body, *name = cases[_i / 2].name;
    char text[sizeof HEAD + 1024 + sizeof TAIL];
    uint32_t in[WORDS], out[WORDS];
    ptx_bench b;

    ptx_bench_open(&b);
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s: %s", name, b.error.message);
    for (uint32_t n = 0; n < WORDS; n++) {
        in[n] = n;
        out[n] = BASE;
    }
    uint64_t from = ptx_bench_buffer(&b, in, sizeof in), to = ptx_bench_buffer(&b, out, sizeof out);
    tensor_map map = {.magic = TENSOR_MAP_MAGIC,
                      .address = cases[_i / 2].stores ? to : from,
                      .strides = {COLS * 4},
                      .dims = {COLS, ROWS},
                      .box = {COLS, (uint16_t)cases[_i / 2].box_rows},
                      .element_strides = {1, 1},
                      .type = TENSOR_MAP_U32,
                      .rank = 2};
    b.launch.timing = (hone_emu_timing)(_i % 2);
    hone_status status = ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){LANES, 1, 1},
                                       (void *[]){&map, &from, &to});
    ck_assert_msg(status == HONE_OK, "%s: line %d: %s", name, b.fault.ptx_line, b.fault.message);
    ck_assert_msg(b.counters.tma_requests == cases[_i / 2].requests &&
                      b.counters.tma_load_bytes == cases[_i / 2].load_bytes &&
                      b.counters.tma_store_bytes == cases[_i / 2].store_bytes,
                  "%s: %llu requests, %llu and %llu bytes", name,
                  (unsigned long long)b.counters.tma_requests,
                  (unsigned long long)b.counters.tma_load_bytes,
                  (unsigned long long)b.counters.tma_store_bytes);
    ptx_bench_read(&b, to, out, sizeof out);
    for (uint32_t n = 0; n < WORDS; n++) {
        uint32_t want = cases[_i / 2].expected(n);
        ck_assert_msg(out[n] == want, "%s: word %u is %u, not %u", name, n, out[n], want);
    }
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("alike");

    tcase_add_loop_test(tests, operations_are_made_and_counted_by_distinct_operands, 0,
                        2 * (int)ARRAY_LEN(cases));
    return suite_run("emulator/alike", tests);
}
