/* tensor_bench.c - boxes at random and one element at a time, with formulas of their own: places
 * are rows, columns and chunks here, where the machine XORs address bits. */
#include "tests/emulator/tensor_bench.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};

uint32_t tensor_bench_random(uint64_t *state, uint32_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 33) % below);
}

static uint32_t span_of(uint32_t swizzle)
{
    return swizzle == 0 ? 0 : swizzle == 1 ? 32 : swizzle == 2 ? 64 : 128;
}

static uint32_t pitch_of(const tensor_map *m)
{
    uint32_t row = m->box[0] * element_bytes[m->type], span = span_of(m->swizzle);
    return row > span ? row : span;
}

static void draw_box(tensor_map *m, uint64_t *seed)
{
    uint32_t size = element_bytes[m->type], span = span_of(m->swizzle), rows = 1;
    uint32_t most = span != 0 ? span : 256 * size < 512 ? 256 * size : 512;

    m->box[0] = (uint16_t)((1 + tensor_bench_random(seed, most / 16)) * 16 / size);
    m->element_strides[0] = 1;
    for (uint32_t d = 1; d < m->rank; d++) {
        uint32_t room = 96 / rows;
        m->box[d] = (uint16_t)(1 + tensor_bench_random(seed, room > 40 ? 40 : room));
        m->element_strides[d] =
            tensor_bench_random(seed, 4) == 0 ? (uint8_t)(1 + tensor_bench_random(seed, 3)) : 1;
        rows *= (m->box[d] + m->element_strides[d] - 1u) / m->element_strides[d];
    }
}

tensor_case tensor_bench_draw(uint64_t seed)
{
    tensor_case c = {.map = {.magic = TENSOR_MAP_MAGIC}};
    tensor_map *m = &c.map;
    uint64_t extent = 0;

    seed = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    m->type = (uint8_t)tensor_bench_random(&seed, sizeof element_bytes);
    m->rank = (uint8_t)(1 + tensor_bench_random(&seed, TENSOR_MAP_RANK));
    m->swizzle = (uint8_t)tensor_bench_random(&seed, TENSOR_MAP_SWIZZLES);
    m->fill = m->type >= TENSOR_MAP_F16 && tensor_bench_random(&seed, 3) == 0;
    draw_box(m, &seed);
    c.bytes = element_bytes[m->type];
    for (uint32_t d = 0; d < m->rank; d++) {
        m->dims[d] = 1 + tensor_bench_random(&seed, m->box[d] * 2u + 2);
        int32_t slack = (int32_t)m->box[d] + 3;
        bool inside = tensor_bench_random(&seed, 2) == 0 && m->dims[d] >= m->box[d];
        c.at[d] =
            inside ? (int32_t)tensor_bench_random(&seed, m->dims[d] - m->box[d] + 1)
                   : (int32_t)tensor_bench_random(&seed, m->dims[d] + 2u * (uint32_t)slack) - slack;
        c.bytes *= (m->box[d] + m->element_strides[d] - 1u) / m->element_strides[d];
    }
    uint64_t row = (uint64_t)m->dims[0] * element_bytes[m->type];
    extent = row;
    for (uint32_t d = 1; d < m->rank; d++) {
        uint64_t stride = (d == 1 ? row : m->strides[d - 2] * m->dims[d - 1]) +
                          16 * tensor_bench_random(&seed, 3);
        m->strides[d - 1] = (stride + 15) / 16 * 16;
        extent += m->strides[d - 1] * (m->dims[d] - 1);
    }
    c.global_bytes = extent;
    c.shared = TENSOR_BENCH_BOX + 128 * tensor_bench_random(&seed, 9);
    return c;
}

const char *tensor_bench_describe(const tensor_case *c)
{
    static char text[512];
    const tensor_map *m = &c->map;

    snprintf(
        text, sizeof text,
        "%s rank %u swizzle %s fill %u box %u %u %u %u %u dims %u %u %u %u %u at %d %d %d %d %d "
        "steps %u %u %u %u shared %u",
        tensor_map_types[m->type].name, m->rank, tensor_map_patterns[m->swizzle].name, m->fill,
        m->box[0], m->box[1], m->box[2], m->box[3], m->box[4], m->dims[0], m->dims[1], m->dims[2],
        m->dims[3], m->dims[4], c->at[0], c->at[1], c->at[2], c->at[3], c->at[4],
        m->element_strides[1], m->element_strides[2], m->element_strides[3], m->element_strides[4],
        c->shared);
    return text;
}

/* A byte of shared memory in a pattern: lines of 128 bytes, chunks within them exchanged by the
 * line's number. */
static uint32_t place_of(uint32_t at, uint32_t swizzle)
{
    static const struct {
        uint32_t chunk, chunks;
    } kinds[TENSOR_MAP_SWIZZLES] = {{16, 1}, {16, 2}, {16, 4}, {16, 8}, {32, 4}, {32, 4}, {64, 2}};
    uint32_t chunk = kinds[swizzle].chunk, chunks = kinds[swizzle].chunks;
    uint32_t line = at / 128, span = chunk * chunks;
    uint32_t within = at % span / chunk, start = at / span * span;
    uint32_t moved = start + (within ^ line % chunks) * chunk + at % chunk;

    if (swizzle == TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B && line % 2 == 1) {
        moved = moved / 16 * 16 + (moved % 16 + 8) % 16;
    }
    return moved;
}

bool tensor_bench_next(const tensor_case *c, tensor_walk *walk, uint32_t places[8], int64_t *source)
{
    const tensor_map *m = &c->map;
    uint32_t size = element_bytes[m->type], row = 0, d = 0;
    bool inside = true;

    if (walk->ended) {
        return false;
    }
    *source = 0;
    for (d = m->rank; d-- > 0;) {
        uint32_t step = m->element_strides[d];
        uint32_t count = (m->box[d] + step - 1) / step;
        int64_t at = c->at[d] + (int64_t)walk->index[d] * step;
        inside = inside && at >= 0 && at < m->dims[d];
        *source += at * (d == 0 ? size : (int64_t)m->strides[d - 1]);
        row = d == 0 ? row : row * count + walk->index[d];
    }
    *source = inside ? *source : -1;
    for (uint32_t n = 0; n < size; n++) {
        places[n] = place_of(c->shared + row * pitch_of(m) + walk->index[0] * size + n, m->swizzle);
    }
    for (d = 0; d < m->rank; d++) {
        uint32_t step = m->element_strides[d];
        if (++walk->index[d] < (m->box[d] + step - 1) / step) {
            return true;
        }
        walk->index[d] = 0;
    }
    walk->ended = true;
    return true;
}

#define HEAD                                                                                       \
    ".visible .entry %s%u(.param .align 64 .b8 map[128], .param .u64 buffer, .param .u32 "         \
    "shared,\n.param .u32 a0, .param .u32 a1, .param .u32 a2, .param .u32 a3, .param .u32 a4, "    \
    ".param .u32 bytes)\n{\n"                                                                      \
    ".reg .pred %%p<4>; .reg .b32 %%r<20>; .reg .b64 %%x<9>;\n"                                    \
    ".shared .align 1024 .b8 s[%u];\n"                                                             \
    "mov.b64 %%x0, map; cvta.param.u64 %%x0, %%x0; ld.param.u64 %%x1, [buffer];\n"                 \
    "ld.param.u32 %%r5, [shared]; mov.u32 %%r1, s; add.s32 %%r5, %%r5, %%r1;\n"                    \
    "ld.param.u32 %%r10, [a0]; ld.param.u32 %%r11, [a1]; ld.param.u32 %%r12, [a2]; ld.param.u32 "  \
    "%%r13, [a3]; ld.param.u32 %%r14, [a4]; ld.param.u32 %%r15, [bytes];\n"                        \
    "mov.u32 %%r0, %%tid.x; setp.ne.u32 %%p0, %%r0, 0;\n"
/* Each thread one word in 128. */
#define LOOP_BEGIN                                                                                 \
    "shl.b32 %%r2, %%r0, 2; add.s32 %%r2, %%r2, 1024;\nL%u:\n"                                     \
    "add.s32 %%r3, %%r1, %%r2; cvt.u64.u32 %%x2, %%r2; add.s64 %%x3, %%x1, %%x2;\n"
#define LOOP_END "add.s32 %%r2, %%r2, 512; setp.lt.u32 %%p1, %%r2, %u;\n@%%p1 bra L%u;\n"

static const char coordinates[6][32] = {"",
                                        "{%r10}",
                                        "{%r10,%r11}",
                                        "{%r10,%r11,%r12}",
                                        "{%r10,%r11,%r12,%r13}",
                                        "{%r10,%r11,%r12,%r13,%r14}"};

static int add_load(char *to, size_t room, uint32_t rank)
{
    return snprintf(
        to, room,
        HEAD LOOP_BEGIN
        "st.shared.u32 [%%r3], 0xeeeeeeee;\n" LOOP_END
        "@%%p0 bra W;\nmbarrier.init.shared::cta.b64 [%%r1], 1;\n"
        "W:\nfence.proxy.async;\nbar.sync 0;\n@%%p0 bra B;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r1], %%r15;\n"
        "cp.async.bulk.tensor.%ud.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%%r5], [%%x0, %s], [%%r1];\nB:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %%p1, [%%r1], 0;\n@!%%p1 bra B;\n" LOOP_BEGIN
        "ld.shared.u32 %%r4, [%%r3]; st.global.u32 [%%x3], %%r4;\n" LOOP_END "ret;\n}\n",
        "load", rank, TENSOR_BENCH_SHARED, 0u, TENSOR_BENCH_SHARED, 0u, rank, coordinates[rank], 1u,
        TENSOR_BENCH_SHARED, 1u);
}

static int add_store(char *to, size_t room, uint32_t rank, const char *kind)
{
    char form[64] = "cp.async.bulk.tensor", after[32] = "";

    if (strcmp(kind, "store") != 0) {
        snprintf(form, sizeof form, "cp.reduce.async.bulk.tensor");
        snprintf(after, sizeof after, ".%s", kind);
    }
    return snprintf(to, room,
                    HEAD LOOP_BEGIN "ld.global.u32 %%r4, [%%x3]; st.shared.u32 [%%r3], "
                                    "%%r4;\n" LOOP_END
                                    "fence.proxy.async;\nbar.sync 0;\n@%%p0 bra E;\n"
                                    "%s.%ud.global.shared::cta%s.tile.bulk_group [%%x0, %s], "
                                    "[%%r5];\ncp.async.bulk.commit_group;\n"
                                    "cp.async.bulk.wait_group 0;\nE:\nret;\n}\n",
                    kind, rank, TENSOR_BENCH_SHARED, 0u, TENSOR_BENCH_SHARED, 0u, form, rank, after,
                    coordinates[rank]);
}

char *tensor_bench_text(const char *kind)
{
    const size_t room = 65536;
    char *text = calloc(1, room);
    size_t used = 0;

    ck_assert_ptr_nonnull(text);
    used += (size_t)snprintf(text, room, ".version 8.8\n.target sm_90\n.address_size 64\n");
    for (uint32_t rank = 1; rank <= TENSOR_MAP_RANK; rank++) {
        int added = strcmp(kind, "load") == 0 ? add_load(text + used, room - used, rank)
                                              : add_store(text + used, room - used, rank, kind);
        used += (size_t)added;
        ck_assert_uint_lt(used, room);
    }
    return text;
}

hone_status tensor_bench_run(ptx_bench *b, const char *kernel, const tensor_case *c,
                             uint64_t buffer)
{
    tensor_case k = *c;
    char name[32];

    snprintf(name, sizeof name, "%s%u", kernel, k.map.rank);
    return ptx_bench_run(b, name, (uint32_t[]){1, 1, 1}, (uint32_t[]){128, 1, 1},
                         (void *[]){&k.map, &buffer, &k.shared, &k.at[0], &k.at[1], &k.at[2],
                                    &k.at[3], &k.at[4], &k.bytes});
}
