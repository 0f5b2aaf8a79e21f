/* test_ptx_module.c - what stands around kernels: linkage, initial values with addresses and masks,
 * debug sections, pragmas, prototypes, arrays of parameters; and the memory order that accesses
 * keep. */
#include "emulator/machine/machine.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>

static const char module_text[] =
    ".version 8.8\n.target sm_90, debug\n.address_size 64\n.pragma \"nounroll\";\n"
    ".file 1 \"kernel.cu\"\n.extern .shared .align 16 .b8 dynamic[];\n"
    ".common .global .align 4 .b32 shared_by_modules;\n.weak .global .u32 weak = 11;\n"
    ".visible .global .align 8 .u64 here[2] = {weak, generic(weak)+4};\n"
    ".visible .global .u8 parts[4] = {0xff(weak), 0xff00(weak), 0xff0000(weak)};\n"
    ".visible .global .align 4 .b32 counted[] = {1, 2, 3}, second[2] = {4};\n"
    ".visible .global .f32 number = 0f3F800000; .global .f32 decimal[2] = {1.5, -2.0};\n"
    ".global .align 8 .f64 doubles[2] = {0.25, 0f3F800000};\n.const .align 4 .b8 text[] = {104, "
    "105, 0};\n"
    ".weak .func unused()\n.noreturn\n{\nret;\n}\n"
    ".visible .entry k(.param .u64 .ptr .global .align 16 out, .param .align 8 .b8 list[16])\n"
    ".maxntid 32, 1, 1\n.minnctapersm 1\n{\n.pragma \"a\", \"b\";\n.reg .b32 %r<9>; .reg .b64 "
    "%x<9>;\n"
    ".loc 1 7 3\n.loc 1 8 0, function_name $info, inlined_at 1 9 1\n"
    "ld.param.u64 %x0, [out];\nld.param.v2.u32 {%r0, %r1}, [list];\nld.param.u32 %r2, [list+12];\n"
    "add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2;\nst.global.u32 [%x0], %r0;\n"
    "ld.global.u64 %x1, [here+8]; ld.global.u32 %r3, [%x1+-4]; st.global.u32 [%x0+4], %r3;\n"
    "ld.global.u32 %r4, [second]; ld.global.u32 %r5, [counted+8]; ld.global.u32 %r6, "
    "[shared_by_modules];\n"
    "add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; st.global.u32 [%x0+8], %r4;\n"
    "mov.u64 %x2, text; ld.const.u8 %r7, [%x2+1]; st.global.u32 [%x0+12], %r7;\nret;\n}\n"
    ".section .debug_info\n{\n.b32 72, 8\n.b64 k\n}\n"
    ".section .debug_str {\n$info:\n.b8 107,0\n}\n";

START_TEST(what_stands_around_kernels_is_read)
{
    ptx_bench b;
    uint64_t address = 0, bytes = 0, weak = 0, here[2];
    uint32_t list[4] = {3, 4, 0, 5}, out[4];
    uint8_t parts[4];
    float decimal[2];
    double doubles[2];

    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, module_text) == HONE_OK, "line %d: %s", b.error.line,
                  b.error.message);
    ck_assert(ptx_module_global(b.module, "weak", &weak, &bytes));
    ck_assert(ptx_module_global(b.module, "here", &address, &bytes));
    ptx_bench_read(&b, address, here, sizeof here);
    ck_assert_uint_eq(here[0], weak);
    ck_assert_uint_eq(here[1], weak + 4);
    ck_assert(ptx_module_global(b.module, "parts", &address, &bytes));
    ptx_bench_read(&b, address, parts, sizeof parts);
    ck_assert_uint_eq(parts[0] | (uint32_t)parts[1] << 8 | (uint32_t)parts[2] << 16,
                      weak & 0xffffff);
    ck_assert(ptx_module_global(b.module, "decimal", &address, &bytes));
    ptx_bench_read(&b, address, decimal, sizeof decimal);
    ck_assert_float_eq(decimal[0], 1.5F);
    ck_assert_float_eq(decimal[1], -2);
    ck_assert(ptx_module_global(b.module, "doubles", &address, &bytes));
    ptx_bench_read(&b, address, doubles, sizeof doubles);
    ck_assert_double_eq(doubles[0], 0.25);
    ck_assert_double_eq(doubles[1], 1);
    ck_assert(ptx_module_global(b.module, "counted", &address, &bytes));
    ck_assert_uint_eq(bytes, 12);
    uint64_t d = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){1, 1, 1},
                                (void *[]){&d, list}) == HONE_OK,
                  "line %d: %s", b.fault.ptx_line, b.error.message);
    ptx_bench_read(&b, d, out, sizeof out);
    ck_assert_uint_eq(out[0], 12);
    ck_assert_uint_eq(out[1], 11);
    ck_assert_uint_eq(out[2], 4 + 3);
    ck_assert_uint_eq(out[3], 105);
    ptx_bench_close(&b);
}
END_TEST

/* Statement, and what its instruction keeps of it. */
static const struct {
    const char *statement;
    uint8_t order, scope;
} orders[] = {
    {"ld.global.u32 %r1, [%x0];", 0, SCOPE_GPU},
    {"ld.relaxed.cta.global.u32 %r1, [%x0];", ORDER_STRONG, SCOPE_CTA},
    {"ld.acquire.cluster.global.u32 %r1, [%x0];", ORDER_STRONG | ORDER_ACQUIRE, SCOPE_CLUSTER},
    {"ld.volatile.global.u32 %r1, [%x0];", ORDER_STRONG, SCOPE_SYS},
    {"st.release.gpu.global.u32 [%x0], %r1;", ORDER_STRONG | ORDER_RELEASE, SCOPE_GPU},
    {"st.weak.global.u32 [%x0], %r1;", 0, SCOPE_GPU},
    {"atom.global.add.u32 %r1, [%x0], 1;", ORDER_STRONG, SCOPE_GPU},
    {"atom.acq_rel.sys.global.add.u32 %r1, [%x0], 1;", ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE,
     SCOPE_SYS},
    {"red.release.cta.global.add.u32 [%x0], 1;", ORDER_STRONG | ORDER_RELEASE, SCOPE_CTA},
    {"fence.acq_rel.cta;", ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE, SCOPE_CTA},
    {"membar.sys;", ORDER_STRONG | ORDER_ACQUIRE | ORDER_RELEASE | ORDER_SC, SCOPE_SYS},
};

START_TEST(accesses_keep_their_memory_order)
{
    char text[512];
    ptx_bench b;

    snprintf(text, sizeof text,
             ".version 8.8\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p)\n{\n"
             ".reg .b32 %%r<3>; .reg .b64 %%x<3>;\nld.param.u64 %%x0, [p];\n%s\nret;\n}\n",
             orders[_i].statement);
    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, text) == HONE_OK, "%s", b.error.message);
    const instruction *i = &ptx_module_kernel(b.module, "k")->code[1];
    ck_assert_int_eq(i->line, 8);
    ck_assert_uint_eq(i->order, orders[_i].order);
    ck_assert_uint_eq(i->scope, orders[_i].scope);
    ptx_bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ptx_module");

    tcase_add_test(tests, what_stands_around_kernels_is_read);
    tcase_add_loop_test(tests, accesses_keep_their_memory_order, 0, (int)ARRAY_LEN(orders));
    return suite_run("emulator/ptx_module", tests);
}
