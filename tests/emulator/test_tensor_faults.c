/* test_tensor_faults.c - tensor copies that break a rule, each once, and right ones that look like
 * them: kind, message and line. */
#include "emulator/machine/tensor_map.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line 1 of the body is line 9 of the text. The map is of 16 rows of 64 floats at `data`, its box 4
 * rows of 8. `work` begins with the same map; 128 unwritten bytes follow. */
#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n"                                             \
    ".const .align 128 .b8 c[128]; "                                                               \
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 work, .param .u64 data)\n{\n"    \
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %x<30>; .shared .align 1024 .b8 s[8192];\n"     \
    "mov.b64 %x0, map; cvta.param.u64 %x0, %x0; ld.param.u64 %x1, [work]; ld.param.u64 %x2, "      \
    "[data]; mov.u32 %r0, %tid.x;\n"                                                               \
    "mov.u32 %r1, s; mov.u32 %r2, 0; mov.u32 %r3, 4; mov.u32 %r4, 20; mov.u64 %x3, s; "            \
    "cvta.shared.u64 %x3, %x3;\n"
#define LINE 9

#define INIT   "mbarrier.init.shared::cta.b64 [%r1], 1;\n"
#define EXPECT "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
#define WAIT   "W%=:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\n@!%p1 bra W%=;\n"
#define TO(map, at)                                                                                \
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "            \
    "[%r1+1024], "                                                                                 \
    "[" map ", " at "], [%r1];\n"
#define LOAD    TO("%x0", "{%r2, %r2}")
#define WRITTEN "st.shared.v4.u32 [%r1+1024], {%r2,%r2,%r2,%r2};\n"
#define STORE                                                                                      \
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%x0, {%r2, %r2}], [%r1+1024];\n"
#define REPLACE(field, value)                                                                      \
    "tensormap.replace.tile." field ".global.b1024.b32 [%x1], " value ";\n"
#define ACQUIRE "fence.proxy.tensormap::generic.acquire.gpu [%x1], 128;\n"

static void longer(tensor_map *m)
{
    m->dims[1] = 32;
}
static void interleaved(tensor_map *m)
{
    m->rank = 3;
    m->dims[2] = m->box[2] = m->element_strides[2] = 1;
    m->interleave = TENSOR_MAP_INTERLEAVE_16B;
}
static void integers(tensor_map *m)
{
    m->type = TENSOR_MAP_U32;
}
static void few_rows(tensor_map *m)
{
    m->box[1] = 1;
}

static const struct {
    const char *name, *body, *kind, *message; /* kind NULL: right. @ in a message: the address */
    int line;
    void (*edit)(tensor_map *m);
    bool late; /* only when copies are done late; otherwise it races */
} cases[] = {
    {"a load", INIT LOAD EXPECT WAIT, NULL, NULL, 0, NULL, false},
    {"a map of a kernel's parameters, prefetched", "prefetch.tensormap [%x0];", NULL, NULL, 0, NULL,
     false},
    {"a map that the host wrote to global memory", INIT TO("%x1", "{%r2, %r3}") EXPECT WAIT, NULL,
     NULL, 0, NULL, false},
    {"a prefetch into L2", "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%x0, {%r2, %r2}];",
     NULL, NULL, 0, NULL, false},
    {"a box wholly outside of a tensor that ends where its memory does",
     INIT TO("%x0", "{%r2, %r4}") EXPECT WAIT, NULL, NULL, 0, NULL, false},

    {"a box at a multiple of 16",
     INIT "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1040], "
          "[%x0, {%r2, %r2}], [%r1];",
     "misaligned", "address 0x410 of an access of 128 bytes is not a multiple of 128", 1, NULL,
     false},
    {"a box past shared memory",
     INIT "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+8192], "
          "[%x0, {%r2, %r2}], [%r1];",
     "out-of-bounds", "128 bytes at offset 8192 of shared memory; it has 8192 bytes", 1, NULL,
     false},
    {"a map of more rows than there is memory", INIT TO("%x0", "{%r2, %r4}"), "out-of-bounds",
     "tensor map of float32 at @: coordinate 20 of dimension 1, which has 32 elements, lies 1056 "
     "bytes past the "
     "end of its allocation of 4096",
     1, longer, false},
    {"no map", INIT TO("%x2", "{%r2, %r2}"), "tensor-map", "no tensor map at @", 1, NULL, false},
    {"a map at a multiple of 32", INIT TO("%x2+32", "{%r2, %r2}"), "misaligned",
     "tensor map at @20, which is not a multiple of 64", 1, NULL, false},
    {"a map in shared memory", INIT TO("%x3", "{%r2, %r2}"), "tensor-map",
     "tensor map in shared memory; the engine reads one in global, constant or parameter memory", 1,
     NULL, false},
    {"a map that nobody wrote", INIT TO("%x1+128", "{%r2, %r2}"), "uninitialised",
     "byte 0 of the tensor map at # was never written", 1, NULL, false},
    {"a copy of another rank",
     INIT "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1024], "
          "[%x0, {%r2, %r2, %r2}], [%r1];",
     "tensor-map", "a 3d copy by a map of rank 2", 1, NULL, false},
    {"im2col by a map of tiles",
     INIT "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
          "[%r1+1024], [%x0, {%r2, %r2, "
          "%r2}], [%r1], {%r2};",
     "tensor-map", "an im2col copy by a map made for tiles", 1, NULL, false},
    {"four rows by a box of four",
     INIT "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
          "[%r1+1024], [%x0, {%r2, %r2, "
          "%r2, %r2, %r2}], [%r1];",
     "tensor-map", "four rows by a map whose box has 4 along dimension 1; it takes 1", 1, NULL,
     false},
    {"four rows",
     INIT "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
          "[%r1+1024], [%x0, {%r2, %r2, "
          "%r3, %r4, %r2}], [%r1];\n" EXPECT WAIT,
     NULL, NULL, 0, few_rows, false},
    {"a map with interleave",
     INIT "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1024], "
          "[%x0, {%r2, %r2, %r2}], [%r1];",
     "unsupported", "a copy by a map with interleave; such maps are made, but not used here", 1,
     interleaved, false},
    {"an mbarrier that was never made", LOAD, "mbarrier", "mbarrier at 0: never initialised", 0,
     NULL, false},
    {"a multicast to a CTA that is not there",
     INIT "mov.b16 %r5, 3; "
          "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
          "cluster "
          "[%r1+1024], [%x0, {%r2, %r2}], [%r1], %r5;",
     "precondition", "a multicast to the CTAs 0x3 of a cluster of 1", 1, NULL, false},
    {"a box for another CTA than its mbarrier's",
     "mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r6, %r1, "
     "%r5;\n" INIT
     "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r6+1024], "
     "[%x0, {%r2, %r2}], [%r1];",
     "precondition", "the box goes to CTA 1 of the cluster, the mbarrier lies in CTA 0", 2, NULL,
     false},
    {"a coordinate that nobody set", INIT TO("%x0", "{%r2, %r20}"), "uninitialised",
     "an operand of the tensor copy comes from memory or a register that was never written", 1,
     NULL, false},
    {"a store of bytes that nobody wrote",
     WRITTEN "fence.proxy.async;\n" STORE "cp.async.bulk.commit_group;\n"
             "cp.async.bulk.wait_group 0;",
     "uninitialised",
     "byte 16 of row 0 of the box at 1024 of shared memory was never written and reaches global "
     "memory",
     2, NULL, false},
    {"a load twice to one place", INIT LOAD LOAD, "async-misuse", NULL, 2, NULL, true},
    {"a look at what is on its way", INIT LOAD "ld.shared.u32 %r5, [%r1+1024];", "async-misuse",
     NULL, 2, NULL, true},
    {"a load that nobody waits for", INIT LOAD EXPECT, "async-misuse",
     "128 bytes for the mbarrier at 0 are still on their way when the CTA ends: nobody waited for "
     "them",
     1, NULL, true},
    {"a reduction that floats do not have",
     WRITTEN "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.bulk_group [%x0, {%r2, %r2}], "
             "[%r1+1024];",
     "tensor-map", "type float32 does not have this reduction", 1, NULL, false},
    {"a reduction onto what nobody wrote",
     "add.u64 %x4, %x1, 128;\n"
     "tensormap.replace.tile.global_address.global.b1024.b64 [%x1], %x4;\n" ACQUIRE WRITTEN
     "st.shared.v4.u32 [%r1+1040], {%r2,%r2,%r2,%r2}; fence.proxy.async;\n"
     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%x1, {%r2, %r2}], "
     "[%r1+1024];\n"
     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;",
     "uninitialised",
     "byte 0 of a row of the box, in global memory, is reduced and was never written", 5, few_rows,
     false},
    {"one that integers have", "prefetch.tensormap [%x0];", NULL, NULL, 0, integers, false},

    {"a map changed and not acquired", INIT REPLACE("rank", "1") TO("%x1", "{%r2, %r2}"),
     "tensor-map",
     "tensor map at # was written by this launch, and no fence.proxy.tensormap::generic.acquire of "
     "it came before in "
     "this CTA",
     2, NULL, false},
    {"a map changed and acquired",
     INIT REPLACE("rank", "1") ACQUIRE TO("%x1", "{%r2, %r2}") EXPECT WAIT, NULL, NULL, 0, NULL,
     false},
    {"a map changed after its acquire",
     INIT ACQUIRE REPLACE("box_dim", "1, 2") TO("%x1", "{%r2, %r2}"), "tensor-map",
     "tensor map at # was changed (byte 48) since this CTA used or acquired it; "
     "fence.proxy.tensormap::generic.acquire "
     "comes between",
     3, NULL, false},
    {"a map changed by a store after its use",
     INIT TO("%x1", "{%r2, %r2}") EXPECT WAIT
     "st.global.u32 [%x1+16], 512;\n" TO("%x1", "{%r2, %r2}"),
     "tensor-map",
     "tensor map at # was changed (byte 17) since this CTA used or acquired it; "
     "fence.proxy.tensormap::generic.acquire "
     "comes between",
     7, NULL, false},
    {"a map changed into none that keeps the rules",
     INIT REPLACE("box_dim", "0, 3") ACQUIRE TO("%x1", "{%r2, %r2}"), "tensor-map",
     "tensor map at #: box of 3 float32 along dimension 0 is 12 bytes, no multiple of 16", 3, NULL,
     false},
    {"a pattern that there is not", REPLACE("swizzle_mode", "9"), "tensor-map",
     "value 9; 0 to 3 are possible", 0, NULL, false},
    {"a change of what is no map", "tensormap.replace.tile.rank.global.b1024.b32 [%x2], 1;",
     "tensor-map", "the 128 bytes are no tensor map", 0, NULL, false},
    {"a change of parameters", "tensormap.replace.tile.rank.b1024.b32 [%x0], 1;", "tensor-map",
     "a map in parameter memory cannot be changed", 0, NULL, false},
    {"a change of constants",
     "mov.u64 %x4, c;\ntensormap.replace.tile.rank.global.b1024.b32 [%x4], 1;", "tensor-map",
     "a map in constant memory cannot be changed", 1, NULL, false},
    {"a store of a tensor that lies in constants",
     "mov.u64 %x4, c; cvta.const.u64 %x4, %x4; "
     "tensormap.replace.tile.global_address.global.b1024.b64 "
     "[%x1], %x4;\n" REPLACE("global_dim", "0, 8") REPLACE("global_dim", "1, 1") ACQUIRE
     "st.shared.v4.u32 [%r1+1024], {%r2,%r2,%r2,%r2}; fence.proxy.async;\n"
     "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%x1, {%r2, %r2}], [%r1+1024];",
     "out-of-bounds", "a store into constant memory: kernels only read it", 5, NULL, false},
    {"a map copied over constants",
     "mov.u64 %x4, c;\ntensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu."
     "sync.aligned [%x4], [s], 128;",
     "out-of-bounds", "a store into constant memory: kernels only read it", 1, NULL, false},
};

static tensor_map plain(uint64_t data)
{
    tensor_map m = {.magic = TENSOR_MAP_MAGIC,
                    .address = data,
                    .strides = {256},
                    .dims = {64, 16},
                    .box = {8, 4},
                    .element_strides = {1, 1},
                    .type = TENSOR_MAP_F32,
                    .rank = 2};
    return m;
}

/* WAIT is used more than once in no body; its label only must not be a name of PTX's. */
static void append(char *text, size_t room, const char *body)
{
    size_t used = strlen(text);

    for (const char *c = body; *c != '\0' && used + 2 < room; c++) {
        if (c[0] == '%' && c[1] == '=') {
            c++;
            continue;
        }
        text[used++] = *c;
    }
    text[used] = '\0';
}

static hone_status run(ptx_bench *b, int n, hone_emu_timing timing, uint64_t *data, uint64_t *work)
{
    char text[8192] = HEAD;
    static uint8_t ones[4096];

    append(text, sizeof text, cases[n].body);
    append(text, sizeof text, "\nret;\n}\n");
    memset(ones, 1, sizeof ones);
    ptx_bench_open(b);
    b->launch.timing = timing;
    *data = ptx_bench_buffer(b, ones, sizeof ones);
    *work = ptx_bench_buffer(b, NULL, 256);
    tensor_map m = plain(*data);
    if (cases[n].edit != NULL) {
        cases[n].edit(&m);
    }
    ck_assert_int_eq(memory_write(b->memory, *work, &m, sizeof m, &b->error), HONE_OK);
    hone_status status = ptx_bench_load(b, text);
    ck_assert_msg(status == HONE_OK, "%s: %s", cases[n].name, b->error.message);
    /* Whoever maps an address into another CTA is one of a pair. */
    uint32_t ctas = strstr(cases[n].body, "mapa.") != NULL ? 2 : 1;
    b->launch.cluster[0] = ctas;
    return ptx_bench_run(b, "k", (uint32_t[]){ctas, 1, 1}, (uint32_t[]){1, 1, 1},
                         (void *[]){&m, work, data});
}

/* @ and # of a message are where the tensor and the changed map lie; digits after @ are added. */
static void fill_in(const char *message, uint64_t data, uint64_t work, char *to, size_t room)
{
    size_t used = 0;

    for (const char *c = message; *c != '\0' && used + 24 < room; c++) {
        if (c[0] == '@' && c[1] == '2') {
            used +=
                (size_t)snprintf(to + used, room - used, "%#llx", (unsigned long long)data + 32);
            c += 2;
        } else if (*c == '@' || *c == '#') {
            uint64_t at = *c == '@'                              ? data
                          : strstr(message, "byte 0 of") != NULL ? work + 128
                                                                 : work;
            used += (size_t)snprintf(to + used, room - used, "%#llx", (unsigned long long)at);
        } else {
            to[used++] = *c;
        }
    }
    to[used] = '\0';
}

START_TEST(a_wrong_copy_is_caught_where_it_is_wrong_and_a_right_one_passes)
{
    for (int timing = cases[_i].late ? HONE_EMU_LATEST : HONE_EMU_AT_ISSUE;
         timing <= HONE_EMU_LATEST; timing++) {
        ptx_bench b;
        uint64_t data = 0, work = 0;
        char want[512] = "";
        hone_status status = run(&b, _i, (hone_emu_timing)timing, &data, &work);
        if (cases[_i].kind == NULL) {
            ck_assert_msg(status == HONE_OK, "%s: %s", cases[_i].name, b.error.message);
        } else {
            ck_assert_msg(status == HONE_WRONG, "%s: not caught", cases[_i].name);
            ck_assert_msg(strcmp(b.fault.kind, cases[_i].kind) == 0 &&
                              b.fault.ptx_line == LINE + cases[_i].line,
                          "%s: %s at line %d: %s", cases[_i].name, b.fault.kind,
                          b.fault.ptx_line - LINE, b.fault.message);
            fill_in(cases[_i].message != NULL ? cases[_i].message : b.fault.message, data, work,
                    want, sizeof want);
            ck_assert_str_eq(b.fault.message, want);
        }
        ptx_bench_close(&b);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("wrong tensor copies");

    tcase_add_loop_test(tests, a_wrong_copy_is_caught_where_it_is_wrong_and_a_right_one_passes, 0,
                        (int)ARRAY_LEN(cases));
    return suite_run("emulator/tensor_faults", tests);
}
