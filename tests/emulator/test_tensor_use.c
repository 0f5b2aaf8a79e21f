/* test_tensor_use.c - tensor copies beside plain boxes: multicast, reductions, four rows, im2col,
 * types with gaps and roundings, maps in each memory and changed on the device. */
#include "emulator/machine/tensor_map.h"
#include "tests/emulator/ptx_bench.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                       \
    ".version 8.8\n.target sm_90a\n.address_size 64\n.const .align 64 .b8 c[128];\n"               \
    ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, .param .u64 out)\n{\n"       \
    ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %x<30>; .shared .align 1024 .b8 s[20480];\n"    \
    "mov.b64 %x0, map; cvta.param.u64 %x0, %x0; ld.param.u64 %x1, [in]; ld.param.u64 %x2, "        \
    "[out]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; mov.u32 %r2, 0; shl.b32 %r3, %r0, 2;\n"           \
    "setp.ne.u32 %p0, %r0, 0; mov.u32 %r9, %cluster_ctarank;\n"                                    \
    "@%p0 bra I;\nmbarrier.init.shared::cta.b64 [%r1], 1;\nI:\n"
#define SYNC "fence.proxy.async;\nbar.sync 0;\n"
/* Every thread waits; then the box goes to `out`, each CTA's behind the one before. */
#define WAIT(bytes)                                                                                \
    "@%p0 bra W;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], " bytes ";\nW:\n"            \
    "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\n@!%p1 bra W;\n"
#define OUT(bytes)                                                                                 \
    "mad.lo.u32 %r10, %r9, " bytes ", %r3; cvt.u64.u32 %x5, %r10; add.s64 %x6, %x2, %x5;\n"        \
    "add.s32 %r11, %r1, %r3;\nO:\nsetp.ge.u32 %p2, %r3, " bytes ";\n@%p2 bra E;\n"                 \
    "ld.shared.u32 %r12, [%r11+1024]; st.global.u32 [%x6], %r12;\n"                                \
    "add.s32 %r3, %r3, 128; add.s32 %r11, %r11, 128; add.s64 %x6, %x6, 128;\nbra O;\nE:\n"
#define TAIL "ret;\n}\n"

/* One launch of a warp; `content` of `in` and the map's tensor is `in`. */
typedef struct bench {
    ptx_bench ptx;
    uint64_t in, out;
} bench;

static void open(bench *t, const char *body, const void *content, uint64_t in_bytes,
                 uint64_t out_bytes)
{
    char *text = malloc(strlen(HEAD) + strlen(body) + 64);

    sprintf(text, "%s%s%s", HEAD, body, TAIL);
    ptx_bench_open(&t->ptx);
    hone_status status = ptx_bench_load(&t->ptx, text);
    ck_assert_msg(status == HONE_OK, "%s", t->ptx.error.message);
    free(text);
    t->in = ptx_bench_buffer(&t->ptx, content, in_bytes);
    t->out = ptx_bench_buffer(&t->ptx, NULL, out_bytes);
}

static void run(bench *t, tensor_map *m, uint32_t ctas, hone_emu_timing timing)
{
    hone_error error;

    ck_assert_msg(tensor_map_check(m, &error) == HONE_OK, "%s", error.message);
    t->ptx.launch.timing = timing;
    t->ptx.launch.cluster[0] = ctas;
    hone_status status = ptx_bench_run(&t->ptx, "k", (uint32_t[]){ctas, 1, 1},
                                       (uint32_t[]){32, 1, 1}, (void *[]){m, &t->in, &t->out});
    ck_assert_msg(status == HONE_OK, "line %d: %s", t->ptx.fault.ptx_line, t->ptx.error.message);
}

static tensor_map tiles(const bench *t, tensor_map_type type, uint32_t cols, uint32_t rows,
                        uint32_t box_cols, uint32_t box_rows)
{
    tensor_map m = {.magic = TENSOR_MAP_MAGIC,
                    .address = t->in,
                    .strides = {cols * tensor_map_types[type].global_bytes / 16},
                    .dims = {cols, rows},
                    .box = {(uint16_t)box_cols, (uint16_t)box_rows},
                    .element_strides = {1, 1},
                    .type = (uint8_t)type,
                    .rank = 2};
    return m;
}

#define LOAD2(form)                                                                                \
    "@%p0 bra L;\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"     \
    "bytes" form

START_TEST(a_multicast_reaches_each_cta_of_its_mask_at_the_same_place)
{
    static const char body[] =
        SYNC "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
             "setp.ne.u32 %p3, %r9, 1; or.pred %p4, %p0, %p3; mov.b32 %r8, 13;\n@%p4 bra L;\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
             "multicast::cluster [%r1+1024], [%x0, {%r2, %r2}], [%r1], %r8;\nL:\n"
             "setp.eq.u32 %p3, %r9, 1;\n@%p3 bra E;\n" WAIT("256") OUT("256");
    uint32_t data[64], got[4][64];
    bench t;

    for (uint32_t n = 0; n < 64; n++) {
        data[n] = n * 77 + 5;
    }
    open(&t, body, data, sizeof data, sizeof got);
    ck_assert_int_eq(memory_fill(t.ptx.memory, t.out, 0, 4, 256, NULL), HONE_OK);
    tensor_map m = tiles(&t, TENSOR_MAP_U32, 8, 8, 8, 8);
    run(&t, &m, 4, (hone_emu_timing)_i);
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    for (uint32_t rank = 0; rank < 4; rank++) {
        uint32_t none[64] = {0};
        ck_assert_mem_eq(got[rank], rank == 1 ? none : data, sizeof data);
    }
    ck_assert_uint_eq(t.ptx.counters.global_load_sectors,
                      8); /* L2 gives it once, three CTAs take it */
    ck_assert_uint_eq(t.ptx.counters.tma_load_bytes, 3 * 256);
    ck_assert_uint_eq(t.ptx.counters.tma_requests, 1);
    ptx_bench_close(&t.ptx);
}
END_TEST

static const struct {
    const char *name;
    tensor_map_type type;
    uint64_t old, value, result;
} reductions[] = {
    {"add", TENSOR_MAP_U32, 0xffffffff, 3, 2},
    {"add", TENSOR_MAP_S32, 5, 0xfffffffe, 3},
    {"add", TENSOR_MAP_U64, 0xffffffff, 1, 0x100000000},
    {"add", TENSOR_MAP_F32, 0x3f800000, 0x40000000, 0x40400000},
    {"add", TENSOR_MAP_F64, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
    {"add", TENSOR_MAP_F16, 0x3c00, 0x4000, 0x4200},
    {"add", TENSOR_MAP_BF16, 0x3f80, 0x4000, 0x4040},
    {"min", TENSOR_MAP_U32, 7, 0xffffffff, 7},
    {"min", TENSOR_MAP_S32, 7, 0xffffffff, 0xffffffff},
    {"max", TENSOR_MAP_U64, 7, UINT64_MAX, UINT64_MAX},
    {"max", TENSOR_MAP_S64, 7, UINT64_MAX, 7},
    {"min", TENSOR_MAP_F16, 0xbc00, 0x3c00, 0xbc00},
    {"max", TENSOR_MAP_BF16, 0xbf80, 0x3f80, 0x3f80},
    {"inc", TENSOR_MAP_U32, 4, 9, 5},
    {"inc", TENSOR_MAP_U32, 9, 9, 0},
    {"dec", TENSOR_MAP_U32, 0, 9, 9},
    {"dec", TENSOR_MAP_U32, 4, 9, 3},
    {"and", TENSOR_MAP_U32, 0xff, 0x3c, 0x3c},
    {"or", TENSOR_MAP_U64, 0xf000000000000000, 1, 0xf000000000000001},
    {"xor", TENSOR_MAP_S32, 0xff, 0x3c, 0xc3},
};

START_TEST(a_reduction_combines_what_is_inside_of_the_tensor)
{
    char body[1024];
    uint32_t size = tensor_map_types[reductions[_i].type].global_bytes / 16u;
    uint8_t data[512] = {0}, got[512];
    bench t;

    for (int timing = HONE_EMU_AT_ISSUE; timing <= HONE_EMU_LATEST; timing++) {
        /* shared memory holds `value` throughout: the second half of `in`, copied there */
        snprintf(
            body, sizeof body,
            "cvt.u64.u32 %%x5, %%r3; add.s64 %%x6, %%x1, %%x5; add.s32 %%r10, %%r1, %%r3;\n"
            "ld.global.u32 %%r11, [%%x6+256]; st.shared.u32 [%%r10+1024], %%r11;\n"
            "ld.global.u32 %%r11, [%%x6+384]; st.shared.u32 [%%r10+1152], %%r11;\n" SYNC
            "@%%p0 bra L;\nmov.u32 %%r8, 1;\ncp.reduce.async.bulk.tensor.2d.global.shared::cta.%s."
            "bulk_group [%%x0, {%%r2, %%r8}], [%%r1+1024];\ncp.async.bulk.commit_group;\n"
            "cp.async.bulk.wait_group 0;\nL:\n",
            reductions[_i].name);
        for (uint32_t n = 0; n < 512; n += size) {
            memcpy(data + n, n < 256 ? &reductions[_i].old : &reductions[_i].value, size);
        }
        open(&t, body, data, sizeof data, 16);
        tensor_map m = tiles(&t, reductions[_i].type, 32 / size, 4, 32 / size, 8);
        run(&t, &m, 1, (hone_emu_timing)timing);
        for (uint32_t n = 32; n < 128; n += size) { /* rows 1 to 3 of four */
            memcpy(data + n, &reductions[_i].result, size);
        }
        ptx_bench_read(&t.ptx, t.in, got, sizeof got);
        ck_assert_mem_eq(got, data, sizeof got);
        ptx_bench_close(&t.ptx);
    }
}
END_TEST

START_TEST(four_rows_come_and_go_by_their_numbers)
{
    static const char body[] = SYNC
        "@%p0 bra L;\nmov.u32 %r4, 5; mov.u32 %r5, 1; mov.u32 %r6, -1; mov.u32 %r7, 3; mov.u32 "
        "%r8, 8;\n"
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[%r1+1024], [%x0, {%r8, %r4, %r5, %r6, %r7}], [%r1];\nL:\n" WAIT(
            "128") "@%p0 bra S;\nmov.u32 %r4, 7; mov.u32 %r5, 99; mov.u32 %r6, 6; mov.u32 %r7, 4;\n"
                   "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%x0, "
                   "{%r2, %r4, %r5, "
                   "%r6, %r7}], [%r1+1024];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group "
                   "0;\nS:\n";
    uint32_t data[8][16], got[8][16];
    bench t;

    for (uint32_t n = 0; n < 128; n++) {
        data[n / 16][n % 16] = n;
    }
    open(&t, body, data, sizeof data, 16);
    tensor_map m = tiles(&t, TENSOR_MAP_U32, 16, 8, 8, 1);
    run(&t, &m, 1, (hone_emu_timing)_i);
    memcpy(data[7], &data[5][8], 32);
    memset(data[6], 0, 32);
    memcpy(data[4], &data[3][8], 32);
    ptx_bench_read(&t.ptx, t.in, got, sizeof got);
    ck_assert_mem_eq(got, data, sizeof got);
    ptx_bench_close(&t.ptx);
}
END_TEST

START_TEST(a_column_of_pixels_walks_the_image_within_its_corners)
{
    static const char body[] = SYNC
        "@%p0 bra L;\nmov.u32 %r4, 1; mov.u32 %r5, 0; mov.u32 %r6, 2; mov.b32 %r7, 1;\n"
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[%r1+1024], [%x0, {%r2, %r4, %r5, %r2}], [%r1], {%r6, %r7};\nL:\n" WAIT("640") OUT("640");
    enum { C = 4, W = 5, H = 4, N = 2, PIXELS = 40 };
    uint32_t data[N][H][W][C], got[PIXELS][C], want[PIXELS][C];
    bench t;

    for (uint32_t n = 0; n < N * H * W * C; n++) {
        (&data[0][0][0][0])[n] = n + 1;
    }
    open(&t, body, data, sizeof data, sizeof got);
    tensor_map m = {.magic = TENSOR_MAP_MAGIC,
                    .address = t.in,
                    .strides = {16, 16 * W, 16 * W * H},
                    .dims = {C, W, H, N},
                    .box = {C, PIXELS},
                    .lower = {-1, -1},
                    .upper = {-1, -1},
                    .element_strides = {1, 1, 1, 1},
                    .type = TENSOR_MAP_U32,
                    .rank = 4,
                    .mode = TENSOR_MAP_IM2COL};
    run(&t, &m, 1, HONE_EMU_AT_ISSUE);
    /* corners: W from -1 to 3, H from -1 to 2; the walk begins at w 1, h 0; the filter at (2, 1) */
    uint32_t pixel = 0;
    for (int start = 7, n = start; pixel < PIXELS; n++, pixel++) {
        int w = n % 5 - 1 + 2, h = n / 5 % 4 - 1 + 1, image = n / 20;
        bool inside = w >= 0 && w < W && h >= 0 && h < H && image < N;
        for (uint32_t channel = 0; channel < C; channel++) {
            want[pixel][channel] = inside ? data[image][h][w][channel] : 0;
        }
    }
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    ck_assert_mem_eq(got, want, sizeof got);
    ptx_bench_close(&t.ptx);
}
END_TEST

START_TEST(floats_are_rounded_and_flushed_as_their_type_says)
{
    static const char body[] =
        SYNC LOAD2(" [%r1+1024], [%x0, {%r2, %r2}], [%r1];\nL:\n") WAIT("16") OUT("16");
    static const uint32_t data[4] = {0x3f801000, 0x80000123, 0x7f800001, 0x3f800fff};
    static const uint32_t want[3][4] = {{0x3f801000, 0x80000000, 0x7f800001, 0x3f800fff},
                                        {0x3f802000, 0x80000000, 0x7f800001, 0x3f800000},
                                        {0x3f802000, 0x80000000, 0x7f800001, 0x3f800000}};
    uint32_t got[4];
    bench t;

    open(&t, body, data, sizeof data, sizeof got);
    tensor_map m = tiles(&t, (tensor_map_type)(TENSOR_MAP_F32_FTZ + _i), 4, 1, 4, 1);
    run(&t, &m, 1, HONE_EMU_AT_ISSUE);
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    ck_assert_mem_eq(got, want[_i], sizeof got);
    ptx_bench_close(&t.ptx);
}
END_TEST

START_TEST(values_of_a_few_bits_spread_to_sixteen_bytes_where_they_are_padded)
{
    static const char load[] = SYNC LOAD2(" [%r1+1024], [%x0, {%r2, %r2}], [%r1];\nL:\n") WAIT(
        "128") "shl.b32 %r3, %r0, 4; cvt.u64.u32 %x5, %r3; add.s64 %x6, %x2, %x5; add.s32 %r11, "
               "%r1, %r3;\n"
               "setp.gt.u32 %p2, %r0, 7;\n@%p2 bra E;\n"
               "ld.shared.v2.u32 {%r12, %r13}, [%r11+1024]; st.global.v2.u32 [%x6], {%r12, %r13};\n"
               "ld.shared.v2.u32 {%r12, %r13}, [%r11+1032]; st.global.u32 [%x6+8], %r12;\nE:\n";
    static const struct {
        tensor_map_type type;
        uint32_t elements, global_bytes, group; /* group: of 16 bytes of shared memory */
    } kinds[] = {{TENSOR_MAP_U4_PAD, 128, 64, 8},
                 {TENSOR_MAP_U6_PAD, 128, 96, 12},
                 {TENSOR_MAP_U4, 256, 128, 16}};
    uint32_t group = kinds[_i].group;
    uint8_t data[128], got[128];
    bench t;

    for (uint32_t n = 0; n < sizeof data; n++) {
        data[n] = (uint8_t)(n * 3 + 1);
    }
    open(&t, load, data, kinds[_i].global_bytes, sizeof got);
    if (kinds[_i].type == TENSOR_MAP_U4_PAD) { /* the kernel looks into the gap */
        t.ptx.launch.checks &= ~(uint32_t)HONE_EMU_CHECK_UNINITIALISED;
    }
    tensor_map m = tiles(&t, kinds[_i].type, kinds[_i].elements, 1, kinds[_i].elements, 1);
    run(&t, &m, 1, HONE_EMU_AT_ISSUE);
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    for (uint32_t n = 0; n < 8; n++) {
        ck_assert_mem_eq(got + n * 16, data + n * group, group < 12 ? group : 12); /* as read */
    }
    ptx_bench_close(&t.ptx);
}
END_TEST

START_TEST(bytes_that_nobody_wrote_stay_so_on_their_way)
{
    static const char quiet[] = SYNC LOAD2(" [%r1+1024], [%x0, {%r2, %r2}], [%r1];\nL:\n")
        WAIT("128") "ld.shared.u32 %r12, [%r1+1024];\n";
    static const char loud[] = SYNC LOAD2(" [%r1+1024], [%x0, {%r2, %r2}], [%r1];\nL:\n")
        WAIT("128") "ld.shared.u32 %r12, [%r1+1056]; st.global.u32 [%x2], %r12;\n";
    bench t;

    for (int n = 0; n < 2; n++) {
        open(&t, n == 0 ? quiet : loud, NULL, 1024, 64);
        ck_assert_int_eq(memory_fill(t.ptx.memory, t.in, 1, 4, 8, NULL), HONE_OK);
        tensor_map m = tiles(&t, TENSOR_MAP_U32, 8, 4, 8, 4);
        t.ptx.launch.timing = (hone_emu_timing)_i;
        hone_status status = ptx_bench_run(&t.ptx, "k", (uint32_t[]){1, 1, 1},
                                           (uint32_t[]){32, 1, 1}, (void *[]){&m, &t.in, &t.out});
        ck_assert_int_eq(status, n == 0 ? HONE_OK : HONE_WRONG);
        ck_assert_str_eq(t.ptx.fault.kind, n == 0 ? "" : "uninitialised");
        ptx_bench_close(&t.ptx);
    }
}
END_TEST

START_TEST(a_map_changed_in_shared_memory_and_published_is_the_new_one)
{
    /* The host's map, copied to shared memory; address, extent, stride and type replaced; to global
     * memory behind the box of `out`; then used. */
    static const char body[] =
        "cvt.u64.u32 %x5, %r3; add.s64 %x6, %x1, %x5; add.s32 %r10, %r1, %r3;\n"
        "ld.global.u32 %r11, [%x6]; st.shared.u32 [%r10+8192], %r11;\nbar.sync 0;\n@%p0 bra R;\n"
        "add.s64 %x7, %x1, 256;\n"
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1+8192], %x7;\n"
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1+8192], 1;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1+8192], 0, 8;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1+8192], 1, 4;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1+8192], 0, 8;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1+8192], 1, 3;\n"
        "mov.u64 %x8, 48;\n"
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1+8192], 0, %x8;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1+8192], 1, 1;\n"
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1+8192], 7;\n"
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1+8192], 0;\n"
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1+8192], 0;\n"
        "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1+8192], 0;\nR:\nbar.sync 0;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%x2+256], [%r1+8192], 128;\n"
        "add.s64 %x9, %x2, 256;\nfence.proxy.tensormap::generic.acquire.gpu [%x9], 128;\n" SYNC
        "@%p0 bra "
        "L;\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%r1+1024], [%x9, {%r2, %r2}], [%r1];\nL:\n" WAIT("128") OUT("128");
    struct {
        tensor_map map;
        uint8_t gap[128];
        float rows[3][12];
    } in;
    float got[4][8];
    bench t;

    memset(&in, 0, sizeof in);
    for (int n = 0; n < 36; n++) {
        in.rows[n / 12][n % 12] = (float)n + 0.5f;
    }
    open(&t, body, &in, sizeof in, 512);
    tensor_map m = tiles(&t, TENSOR_MAP_U16, 64, 2, 64, 2);
    m.swizzle = TENSOR_MAP_SWIZZLE_128B;
    in.map = m;
    ck_assert_int_eq(memory_write(t.ptx.memory, t.in, &in, sizeof in, NULL), HONE_OK);
    run(&t, &m, 1, (hone_emu_timing)_i);
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    for (int row = 0; row < 4; row++) {
        static const float none[8];
        ck_assert_mem_eq(got[row], row < 3 ? in.rows[row] : none, sizeof got[row]);
    }
    run(&t, &m, 1, (hone_emu_timing)_i); /* the launch before does not make a map stale */
    ptx_bench_close(&t.ptx);
}
END_TEST

START_TEST(a_map_may_be_a_constant)
{
    static const char body[] =
        SYNC "@%p0 bra L;\nmov.u64 %x9, c; cvta.const.u64 %x9, %x9;\n"
             "prefetch.tensormap [%x9];\n"
             "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::"
             "cache_hint "
             "[%r1+1024], [%x9, {%r2, %r2}], [%r1], 1234;\nL:\n" WAIT("128") OUT("128");
    uint32_t data[32], got[32];
    uint64_t at = 0, bytes = 0;
    bench t;

    for (uint32_t n = 0; n < 32; n++) {
        data[n] = n + 100;
    }
    open(&t, body, data, sizeof data, sizeof got);
    tensor_map m = tiles(&t, TENSOR_MAP_U32, 8, 4, 8, 4);
    ck_assert(ptx_module_global(t.ptx.module, "c", &at, &bytes));
    ck_assert_int_eq(memory_write(t.ptx.memory, at, &m, sizeof m, NULL), HONE_OK);
    run(&t, &m, 1, HONE_EMU_AT_ISSUE);
    ptx_bench_read(&t.ptx, t.out, got, sizeof got);
    ck_assert_mem_eq(got, data, sizeof got);
    ck_assert_uint_eq(t.ptx.counters.global_load_sectors, 4);
    ptx_bench_close(&t.ptx);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("uses of tensor maps");

    tcase_add_loop_test(tests, a_multicast_reaches_each_cta_of_its_mask_at_the_same_place, 0, 2);
    tcase_add_loop_test(tests, a_reduction_combines_what_is_inside_of_the_tensor, 0,
                        (int)ARRAY_LEN(reductions));
    tcase_add_loop_test(tests, four_rows_come_and_go_by_their_numbers, 0, 2);
    tcase_add_test(tests, a_column_of_pixels_walks_the_image_within_its_corners);
    tcase_add_loop_test(tests, floats_are_rounded_and_flushed_as_their_type_says, 0, 3);
    tcase_add_loop_test(tests, values_of_a_few_bits_spread_to_sixteen_bytes_where_they_are_padded,
                        0, 3);
    tcase_add_loop_test(tests, bytes_that_nobody_wrote_stay_so_on_their_way, 0, 2);
    tcase_add_loop_test(tests, a_map_changed_in_shared_memory_and_published_is_the_new_one, 0, 2);
    tcase_add_test(tests, a_map_may_be_a_constant);
    return suite_run("emulator/tensor_use", tests);
}
