/* test_ptx_forms.c - what loads and what is refused: every form that was ever seen in real
 * kernels, bad text with its line, unknown forms all at once, and thousands of damaged texts, none
 * of which may crash or hang. */
#include "tests/emulator/form_operands.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/fuzz/ptx_target.h"
#include "tests/support/file.h"
#include "tests/support/suite.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90\n.address_size 64\n.global .align 16 .b8 g[256];\n"               \
    ".visible .entry k(.param .u64 data, .param .align 16 .b8 big[64])\n{\n"                       \
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<200>; .reg .b64 %x<30>;\n"                    \
    ".shared .align 16 .b8 s[1024]; .local .align 16 .b8 l[64];\n"

static hone_status load_text(const char *text, hone_error *error, char *log, size_t log_capacity)
{
    device_memory *memory = NULL;
    ptx_module *module = NULL;

    ck_assert_int_eq(memory_open(1 << 26, &memory, NULL), HONE_OK);
    hone_status status =
        ptx_module_load(text, strlen(text), memory, &module, log, log_capacity, error);
    ck_assert((status == HONE_OK) == (module != NULL));
    ptx_module_unload(module, memory);
    memory_close(memory);
    return status;
}

/* One statement of this form, in a kernel of its own. */
static hone_status load_form(const char *form, char *text, size_t capacity, hone_error *error)
{
    char operands[2048];

    form_operands(form, operands);
    snprintf(text, capacity, "%s%s %s;\nEND:\nret;\n}\n", HEAD, form, operands);
    return load_text(text, error, NULL, 0);
}

/* What a CPU will not do here: named, with its line. */
static bool is_refused(const char *form)
{
    return form_starts(form, "tcgen05.");
}

START_TEST(every_form_that_was_seen_loads_or_is_named)
{
    char path[512], text[8192], named[160];
    hone_error error;
    int counts[4] = {0};

    if (!file_find_shared("data/ptx_forms.csv", path, sizeof path)) {
        printf("SKIP the list of forms: it is not here\n");
        return;
    }
    char *csv = file_read(path, NULL), *rest = NULL;
    for (char *line = strtok_r(csv, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *form = line + 2;
        if (line[0] < '1' || line[0] > '3') {
            continue; /* the heading */
        }
        *strchr(form, ',') = '\0';
        if (strcmp(form, "call.uni") == 0 || strcmp(form, "st.param.b64") == 0) {
            continue; /* the test below calls functions */
        }
        counts[line[0] - '0']++;
        hone_status status = load_form(form, text, sizeof text, &error);
        if (!is_refused(form)) {
            ck_assert_msg(status == HONE_OK, "%s: %s", text, error.message);
            continue;
        }
        snprintf(named, sizeof named, "line 9: %s", form);
        ck_assert_int_eq(status, HONE_UNSUPPORTED);
        ck_assert_int_eq(error.line, 9);
        ck_assert_msg(strstr(error.message, named) != NULL, "%s", error.message);
    }
    ck_assert_int_gt(counts[1], 160);
    ck_assert_int_ge(counts[2], 50);
    ck_assert_int_ge(counts[3], 27);
    free(csv);
}
END_TEST

/* Loads `form` with each of its parts in turn left out (stand_in NULL) or replaced; returns how
 * many still load. */
static int load_astray(const char *form, const char *stand_in)
{
    char text[8192], operands[2048], astray[256];
    hone_error error;
    int loaded = 0;

    form_operands(form, operands);
    for (const char *part = strchr(form, '.'); part != NULL; part = strchr(part + 1, '.')) {
        const char *rest = part + 1 + strcspn(part + 1, ".");
        snprintf(astray, sizeof astray, "%.*s%s%s%s", (int)(part - form), form,
                 stand_in == NULL ? "" : ".", stand_in == NULL ? "" : stand_in, rest);
        snprintf(text, sizeof text, "%s%s %s;\nEND:\nret;\n}\n", HEAD, astray, operands);
        hone_status status = load_text(text, &error, NULL, 0);
        ck_assert_msg(status == HONE_OK || error.line == 9, "%s: %s", astray, error.message);
        loaded += status == HONE_OK;
    }
    return loaded;
}

/* Modifiers that decoders look for anywhere, where a type or a shape belongs. */
START_TEST(forms_with_a_part_astray_load_or_are_refused_with_their_line)
{
    static const char *const stand_ins[] = {NULL,   "rpi", "rn",  "ftz",   "sat", "relu",
                                            "sync", "x4",  "f32", "f16x2", "cta", "pack"};
    static const char *const forms[] = {"cvt.rni.s32.f32",
                                        "cvt.rn.satfinite.e4m3x2.f32",
                                        "cvt.pack.sat.u8.s32.b32",
                                        "fma.rn.ftz.f32",
                                        "add.rn.f32x2",
                                        "setp.lt.and.f32",
                                        "ld.global.nc.v4.u32",
                                        "shfl.sync.bfly.b32",
                                        "atom.shared.add.u32",
                                        "cp.async.cg.shared.global",
                                        "mbarrier.try_wait.parity.shared::cta.b64",
                                        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
                                        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
                                        "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"};
    int loaded = 0;

    for (size_t n = 0; n < ARRAY_LEN(forms); n++) {
        for (size_t k = 0; k < ARRAY_LEN(stand_ins); k++) {
            loaded += load_astray(forms[n], stand_ins[k]);
        }
    }
    ck_assert_int_gt(loaded, 20); /* or operands, not forms, were refused */
}
END_TEST

START_TEST(unknown_forms_are_listed_all_at_once_with_their_lines)
{
    static const char body[] = "tcgen05.fence::before_thread_sync;\nadd.s32 %r0, %r1, %r2;\n@%p0 "
                               "tcgen05.wait::ld.sync.aligned;\n"
                               "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;\nret;\n}\n";
    char text[2048], log[1024];
    hone_error error;

    snprintf(text, sizeof text, "%s%s", HEAD, body);
    ck_assert_int_eq(load_text(text, &error, log, sizeof log), HONE_UNSUPPORTED);
    ck_assert_int_eq(error.line, 9);
    ck_assert_ptr_nonnull(strstr(error.message, "tcgen05.fence::before"));
    ck_assert_ptr_nonnull(strstr(log, "line 9: tcgen05.fence::before_thread_sync"));
    ck_assert_ptr_nonnull(strstr(log, "line 11: tcgen05.wait::ld.sync.aligned"));
    ck_assert_ptr_nonnull(strstr(log, "line 12: vabsdiff4.u32"));
    ck_assert_ptr_null(strstr(log, "add.s32"));
}
END_TEST

static const struct {
    const char *text;
    int line;
} bad[] = {
    {".version 8.8\nhello;\n", 2},
    {".version 8.8\n.target sm_90\n.address_size 32\n", 3},
    {".version 8.8\n.address_size 64 .global .b32 g; hello;\n", 2},
    {HEAD "add.s32 %r0, %r1;\nret;\n}\n", 9},
    {HEAD "\nadd.s32 %r0, %r1, %q7;\nret;\n}\n", 10},
    {HEAD "bra NOWHERE;\nret;\n}\n", 9},
    {HEAD "add.s32 %r0, %r1, %r2\nret;\n}\n", 10},
    {HEAD "mov.u32 %r0, 0x;\nret;\n}\n", 9},
    {HEAD "mov.u32 %r0, 99999999999999999999999;\nret;\n}\n", 9},
    {HEAD "add.s64 %x0, %r1, %x2;\nret;\n}\n", 9},
    {HEAD "ld.param.u64 %x0, [data+4096];\nret;\n}\n", 9},
    {HEAD "ret;\n", 10},
    {HEAD "/* never closed\nret;\n}\n", 12},
    {HEAD "mov.u32 %r0, {{{{{{{{{{{{{{{{{{{{1}}}}}}}}}}}}}}}}}}}};\nret;\n}\n", 9},
    {HEAD ".reg .b32 %r<99999999999999999999>;\nret;\n}\n", 9},
};

#define SPACES                                                                                     \
    ".version 9.0\n.target sm_90\n.address_size 64\n.const .align 8 .b32 c[4] = {1, 2};\n"         \
    ".global .align 8 .b32 g[4];\n.visible .entry k(.param .u64 data)\n{\n"                        \
    ".reg .b32 %r<9>; .reg .b64 %x<9>; .shared .align 16 .b8 s[64]; .local .b32 l;\n"              \
    "mov.u64 %x1, c; mov.u32 %r1, 7;\n"
#define ONLY_READ ": constant memory is only read"
#define STRONG    " is of .global and .shared"

/* What ptxas refuses of spaces, and what it takes: the statement is line 10. */
static const struct {
    const char *statement, *why; /* NULL: it loads */
} spaces[] = {
    {"st.const.u32 [c], %r1;", "st.const.u32" ONLY_READ},
    {"st.const.v2.u32 [%x1], {%r1, %r1};", "st.const.v2.u32" ONLY_READ},
    {"red.const.add.u32 [c], %r1;", "red.const.add.u32" ONLY_READ},
    {"atom.const.add.u32 %r2, [c], %r1;", "atom.const.add.u32" ONLY_READ},
    {"atom.const.cas.b32 %r2, [%x1], %r1, %r1;", "atom.const.cas.b32" ONLY_READ},
    {"st.global.u32 [c], %r1;", "st.global.u32: \"c\" lies in constant memory"},
    {"st.u32 [c+4], %r1;", "st.u32: \"c\" lies in constant memory"},
    {"ld.u32 %r1, [c];", "ld.u32: \"c\" lies in constant memory"},
    {"ld.shared.u32 %r1, [g];", "ld.shared.u32: \"g\" lies in global memory"},
    {"atom.shared.add.u32 %r2, [g], %r1;", "atom.shared.add.u32: \"g\" lies in global memory"},
    {"ld.global.u64 %x2, [data];", "ld.global.u64: \"data\" lies in parameters' memory"},
    {"mbarrier.init.shared.b64 [g], 1;", "mbarrier.init.shared.b64: \"g\" lies in global memory"},
    {"st.param.u32 [data], %r1;", "st.param.u32: a kernel's parameters are only read"},
    {"red.local.add.u32 [l], %r1;", "red.local.add.u32: atomics are of .global and .shared"},
    {"ld.volatile.const.u32 %r1, [c];", "ld.volatile.const.u32: .volatile" STRONG},
    {"ld.relaxed.gpu.param.u64 %x2, [data];", "ld.relaxed.gpu.param.u64: .relaxed" STRONG},
    {"st.release.gpu.local.u32 [l], %r1;", "st.release.gpu.local.u32: .release" STRONG},
    {"ld.acquire.gpu.local.u32 %r1, [l];", "ld.acquire.gpu.local.u32: .acquire" STRONG},
    {"ld.shared.nc.u32 %r1, [s];", "ld.shared.nc.u32: .nc is of .global"},
    {"st.nc.global.u32 [g], %r1;", "st.nc.global.u32: .nc is of loads"},
    {"st.global.acquire.gpu.u32 [g], %r1;", "st.global.acquire.gpu.u32: .acquire is of loads"},
    {"ld.release.gpu.global.u32 %r1, [g];", "ld.release.gpu.global.u32: .release is of stores"},
    {"ld.const.u32 %r1, [c]; ld.const.u32 %r1, [%x1];", NULL},
    {"ld.u32 %r1, [s]; st.u32 [l], %r1; atom.add.u32 %r2, [g], %r1;", NULL},
    {"mbarrier.init.b64 [s], 1; mbarrier.inval.b64 [s];", NULL},
    {"ld.global.nc.u32 %r1, [g]; ld.volatile.shared.u32 %r1, [s];", NULL},
};

START_TEST(accesses_that_their_space_has_not_are_refused_with_their_line)
{
    char text[1024];
    hone_error error = {0};
    const char *why = spaces[_i].why;

    snprintf(text, sizeof text, "%s%s\nret;\n}\n", SPACES, spaces[_i].statement);
    ck_assert_int_eq(load_text(text, &error, NULL, 0), why != NULL ? HONE_BAD_TEXT : HONE_OK);
    if (why != NULL) {
        ck_assert_int_eq(error.line, 10);
        ck_assert_msg(strstr(error.message, why) != NULL, "%s", error.message);
    }
}
END_TEST

START_TEST(text_that_does_not_parse_is_refused_with_its_line)
{
    hone_error error;

    ck_assert_int_eq(load_text(bad[_i].text, &error, NULL, 0), HONE_BAD_TEXT);
    ck_assert_msg(error.line == bad[_i].line, "line %d, not %d: %s", error.line, bad[_i].line,
                  error.message);
}
END_TEST

static const char functions[] =
    ".version 8.8\n.target sm_90\n.address_size 64\n"
    ".global .align 4 .u32 table[4] = {5, 0x10, 7, 8};\n.const .align 8 .b8 words[4] = {1, 2, 3, "
    "4};\n"
    ".global .align 1 .b8 text[1] = {0};\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
    ".func (.param .b32 result) twice(.param .b32 a, .param .b64 unused)\n{\n.reg .b32 %r<4>; .reg "
    ".pred %p;\n"
    "ld.param.b32 %r0, [a];\nsetp.gt.s32 %p, %r0, 20;\n@%p bra BIG;\nshl.b32 %r1, %r0, 1;\n"
    "st.param.b32 [result], %r1;\nret;\nBIG:\nst.param.b32 [result], -1;\nret;\n}\n"
    ".visible .entry k(.param .u64 out)\n.maxntid 64, 1, 1\n.minnctapersm 2\n{\n"
    ".reg .b32 %r<9>; .reg .b64 %x<9>;\n.loc 1 5 3, function_name $L1, inlined_at 1 2 3\n"
    "ld.param.u64 %x0, [out];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %x1, %r0, 4;\nadd.s64 %x0, %x0, "
    "%x1;\n"
    "{\n.param .b32 p0; .param .b64 p1; .param .b32 back;\nst.param.b32 [p0], %r0;\nst.param.b64 "
    "[p1], %x1;\n"
    "call.uni (back), twice, (p0, p1);\nld.param.b32 %r1, [back];\n}\n"
    "{\n.param .b64 p0; .param .b64 p1; .param .b32 back;\nmov.u64 %x4, text; st.param.b64 [p0], "
    "%x4;\nst.param.b64 "
    "[p1], %x1;\n"
    "call.uni (back), vprintf, (p0, p1);\nld.param.b32 %r5, [back];\n}\n"
    "{\n.reg .b32 %r1; mov.u32 %r1, 77;\n}\n" /* an inner %r1 hides the outer one */
    "ld.global.u32 %r2, [table+4]; mov.u64 %x3, words; ld.const.u8 %r3, [%x3+2];\n"
    "add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r5;\nst.global.u32 [%x0], "
    "%r1;\nret;\n}\n";

START_TEST(functions_scopes_and_variables_work)
{
    ptx_bench b;
    uint32_t out[32];
    uint64_t address = 0, bytes = 0;
    ptx_kernel_facts facts;

    ptx_bench_open(&b);
    ck_assert_msg(ptx_bench_load(&b, functions) == HONE_OK, "%s", b.error.message);
    uint64_t d = ptx_bench_buffer(&b, NULL, sizeof out);
    ck_assert_msg(ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){32, 1, 1},
                                (void *[]){&d}) == HONE_OK,
                  "%s", b.error.message);
    ptx_bench_read(&b, d, out, sizeof out);
    for (uint32_t n = 0; n < 32; n++) {
        ck_assert_uint_eq(out[n], (n > 20 ? UINT32_MAX : 2 * n) + 16 + 3);
    }
    ck_assert(ptx_module_global(b.module, "table", &address, &bytes));
    ck_assert_uint_eq(bytes, 16);
    ck_assert(!ptx_module_global(b.module, "nothing", &address, &bytes));
    ptx_kernel_describe(ptx_module_kernel(b.module, "k"), &facts);
    ck_assert_uint_eq(facts.max_threads, 64);
    ck_assert_uint_eq(facts.params_bytes, 8);
    ck_assert_int_eq(
        ptx_bench_run(&b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){96, 1, 1}, (void *[]){&d}),
        HONE_BAD_ARGUMENT);
    ptx_bench_close(&b);
}
END_TEST

START_TEST(recursion_is_refused_by_name)
{
    static const char text[] =
        ".version 8.8\n.func f()\n{\ncall.uni f;\nret;\n}\n.entry k()\n{\ncall.uni f;\nret;\n}\n";
    hone_error error;

    ck_assert_int_eq(load_text(text, &error, NULL, 0), HONE_UNSUPPORTED);
    ck_assert_int_eq(error.line, 4);
}
END_TEST

/* Cuts, repeats, swaps and overwrites; then loads, and runs what still loads. */
static void damage(char *text, size_t len, uint64_t *state)
{
    static const char marks[] = "{}[]();,.:%@!<>|+-0x9 \n\"/*_";
    uint64_t times = 1 + random_next(state) % 4;

    for (uint64_t n = 0; n < times; n++) {
        size_t at = random_next(state) % len, other = random_next(state) % len;
        size_t span = 1 + random_next(state) % 12;
        span = at + span > len ? len - at : span;
        span = other + span > len ? len - other : span;
        switch (random_next(state) % 4) {
        case 0:
            text[at] = marks[random_next(state) % (sizeof marks - 1)];
            break;
        case 1:
            memmove(text + at, text + other, span);
            break;
        case 2:
            memset(text + at, ' ', span);
            break;
        default:
            text[at] = (char)random_next(state);
            break;
        }
    }
}

/* What docs/emulator.md says is refused by name when a module loads. */
static const char *const refused[] = {
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
    "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], "
    "[%r1];",
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
    "[%r1], [%x0, {%r2, %r3}], [%r1];",
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, [%r1];",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7}, "
    "{%r1,%r2}, {%r1,%r2}, {%r0,%r1,%r2,%r3,%r4,%r5,%r6,%r7};",
    "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, "
    "{%r0,%r1}, {%r0,%r1,%r2,%r3};",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r0,%r1,%r2,%r3}, "
    "{%r0,%r1,%r2,%r3}, {%r0,%r1}, {%r0,%r1,%r2,%r3};",
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, "
    "{%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, %r5, 0;",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3 {%r0,%r1,%r2,%r3}, %x0, %x0, %r1, 0, "
    "1, 1, 1;",
    "wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {%r0,%r1,%r2,%r3}, %x0, %x0, 1;",
    "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%r2];",
    "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r2], {%r1};",
    "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [%r1], "
    "[%x0, {%r1, %r2, %r3}], [%r1], {%h0, %h0};",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.ignore_oob [%r1], [%x0], "
    "16, [%r1];",
    "cvt.rs.f16x2.f32 %r0, %r1, %r2, %r3;",
    "fma.rn.oob.f16x2 %r0, %r1, %r2, %r3;",
    "multimem.st.relaxed.sys.global.f32 [%x0], %r0;",
    "redux.sync.min.f32 %r0, %r1, -1;",
    "vadd.s32.s32.s32 %r0, %r1, %r2;",
    "vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;",
    "stacksave.u64 %x0;",
    "st.bulk.weak.shared::cta [s], 64, 0;",
    "shfl.up.b32 %r0, %r1, 1, 0;",
    "vote.all.pred %p0, %p0;",
    "txq.width.b32 %r0, [%x0];",
};

START_TEST(what_the_manual_page_calls_refused_is_refused_by_its_line)
{
    char text[2048], log[1024], line[64];
    hone_error error;
    size_t len = strcspn(refused[_i], " ");

    snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, refused[_i]);
    snprintf(line, sizeof line, "line 9: %.*s", (int)(len < 40 ? len : 40), refused[_i]);
    ck_assert_msg(load_text(text, &error, log, sizeof log) == HONE_UNSUPPORTED, "%s: %s",
                  refused[_i], error.message);
    ck_assert_int_eq(error.line, 9);
    ck_assert_msg(strstr(log, line) != NULL, "%s: %s", refused[_i], log);
}
END_TEST

#define SEED(statements) HEAD statements "\nEND:\nret;\n}\n"

/* Two CTAs that copy boxes for one another: clusters, mbarriers and tensor maps, damaged. */
static const char pair[] =
    ".version 8.8\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 data, .param .align 64 .b8 m1[128], .param .align 64 .b8 "
    "m2[128])\n.reqnctapercluster 2, 1, 1\n{\n"
    ".reg .pred %p<3>; .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %x<9>;\n"
    ".shared .align 1024 .b8 s[4096];\nmov.b64 %x1, m1; cvta.param.u64 %x1, %x1;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.b16 %h1, 3; setp.eq.u32 %p0, %r0, 0;\n"
    "@%p0 mbarrier.init.shared::cta.b64 [s], 1; @%p0 fence.mbarrier_init.release.cluster;\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
    "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [s], 32;\nmov.u32 %r2, %cluster_ctarank;\n"
    "@!%p0 bra WAIT; setp.eq.u32 %p1, %r2, 0;\n"
    "@%p1 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    ".multicast::cluster [s+1024], [%x1, {%r1}], [s], %h1;\nWAIT:\n"
    "mbarrier.try_wait.parity.shared::cta.b64 %p2, [s], 0; @!%p2 bra WAIT;\n"
    "mov.u32 %r3, s; xor.b32 %r4, %r2, 1; mapa.shared::cluster.u32 %r5, %r3, %r4;\n"
    "ld.shared::cluster.u32 %r6, [%r5+1024];\n"
    "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}\n";

/* The same target as the fuzzer's, without it: loads, then runs what still loads for a while. */
START_TEST(damaged_text_never_crashes_or_hangs)
{
    static const char *const seeds[] = {
        functions,
        SEED("setp.lt.s32 %p0, %r0, %r1;\n@%p0 bra END;\nld.global.v4.u32 {%r0,%r1,%r2,%r3}, "
             "[g+16];\nshfl.sync.bfly.b32 %r4|%p1, %r0, 1, 31, -1;\n"
             "cvt.rn.satfinite.e4m3x2.f32 %h0, %r0, %r1;\nmov.b64 {%r5, %r6}, %x0;\nbar.sync 0;\n"
             "atom.shared.add.u32 %r7, [s], 1;"),
        SEED("mov.u32 %r0, 0; mov.u32 %r1, s; st.shared.v4.u32 [%r1], {%r0,%r0,%r0,%r0};\n"
             "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r2,%r3}, [s];\n"
             "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r4,%r5,%r6,%r7}, {%r2,%r3}, "
             "{%r0}, {%r0,%r0,%r0,%r0};\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [s+64], {%r4};"),
        SEED("ld.param.u64 %x0, [data]; mbarrier.init.shared::cta.b64 [s], 64; bar.sync 0;\n"
             "mbarrier.arrive.shared::cta.b64 %x1, [s];\nWAIT:\n"
             "mbarrier.try_wait.shared::cta.b64 %p0, [s], %x1; @!%p0 bra WAIT;\n"
             "cp.async.cg.shared.global [s+64], [%x0], 16; cp.async.wait_all; bar.sync 0;\n"
             "ld.shared.u32 %r1, [s+64]; st.global.u32 [%x0+64], %r1;"),
        pair,
    };
    char text[4096];
    uint64_t state = 12345 + (uint64_t)_i;
    int loaded = 0, ran = 0;

    for (size_t n = 0; n < ARRAY_LEN(seeds); n++) {
        ck_assert_int_eq(ptx_target_run((const uint8_t *)seeds[n], strlen(seeds[n])), 1);
    }
    for (size_t n = 0; n < 800; n++) {
        const char *seed = seeds[n % ARRAY_LEN(seeds)];
        size_t len = strlen(seed);
        memcpy(text, seed, len + 1);
        damage(text, len, &state);
        int kernels = ptx_target_run((const uint8_t *)text, len);
        loaded += kernels >= 0;
        ran += kernels > 0;
    }
    ck_assert_int_gt(loaded, 5); /* the damage must leave some whole, or it tests only the lexer */
    ck_assert_int_gt(ran, 5);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("ptx_forms");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_form_that_was_seen_loads_or_is_named);
    tcase_add_test(tests, forms_with_a_part_astray_load_or_are_refused_with_their_line);
    tcase_add_test(tests, unknown_forms_are_listed_all_at_once_with_their_lines);
    tcase_add_loop_test(tests, text_that_does_not_parse_is_refused_with_its_line, 0,
                        (int)ARRAY_LEN(bad));
    tcase_add_loop_test(tests, accesses_that_their_space_has_not_are_refused_with_their_line, 0,
                        (int)ARRAY_LEN(spaces));
    tcase_add_loop_test(tests, what_the_manual_page_calls_refused_is_refused_by_its_line, 0,
                        (int)ARRAY_LEN(refused));
    tcase_add_test(tests, functions_scopes_and_variables_work);
    tcase_add_test(tests, recursion_is_refused_by_name);
    tcase_add_loop_test(tests, damaged_text_never_crashes_or_hangs, 0, 4);
    return suite_run("emulator/ptx_forms", tests);
}
