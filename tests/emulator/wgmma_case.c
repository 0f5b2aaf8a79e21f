/* wgmma_case.c - makes, runs and restates one wgmma. */
#include "tests/emulator/wgmma_case.h"
#include "core/random.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"e4m3", "e5m2", "bf16", "f16", "s8", "u8", "tf32"};

static uint32_t bytes_of(tensor_type type)
{
    return type == TENSOR_TF32 ? 4 : type == TENSOR_BF16 || type == TENSOR_F16 ? 2 : 1;
}

uint32_t wgmma_case_depth(tensor_type type)
{
    return 32 / bytes_of(type);
}

static bool is_integer(const wgmma_case *c)
{
    return c->result[0] == 's';
}

static bool is_half(const wgmma_case *c)
{
    return strcmp(c->result, "f16") == 0;
}

/* The byte of element (mn, k): CuTe's canonical layouts, mma_traits_sm90_gmma.hpp, in elements. */
static uint32_t byte_at(const wgmma_layout *l, uint32_t bytes, uint32_t mn, uint32_t k)
{
    uint32_t t = 16 / bytes, width = 1u << l->swizzle, at = 0;
    uint32_t leading = l->leading / bytes, stride = l->stride / bytes;

    if (!l->across) { /* ((8,m),(T,2)) : ((W*T,SBO),(1,T or LBO)) */
        at = mn % 8 * (width * t) + mn / 8 * stride + k % t + k / t * (width == 1 ? leading : t);
    } else if (width == 1) { /* ((T,1,m),(8,k)) : ((1,T,SBO),(T,LBO)) */
        at = mn % t + mn / t * stride + k % 8 * t + k / 8 * leading;
    } else { /* ((T,W,m),(8,k)) : ((1,T,LBO),(W*T,SBO)) */
        at = mn % t + mn / t % width * t + mn / t / width * leading + k % 8 * (width * t) +
             k / 8 * stride;
    }
    at = l->start + at * bytes;
    uint32_t pattern = at - 128 * l->base; /* counted from where the pattern begins */
    return at ^ ((pattern & ((width - 1) << 7)) >> 3);
}

static uint64_t descriptor(const wgmma_layout *l)
{
    static const uint64_t kinds[] = {0, 3, 2, 1};

    return (uint64_t)(l->start >> 4) | (uint64_t)(l->leading >> 4) << 16 |
           (uint64_t)(l->stride >> 4) << 32 | (uint64_t)l->base << 49 | kinds[l->swizzle] << 62;
}

static uint32_t place(wgmma_layout *l, uint32_t start, uint32_t swizzle, bool across, uint32_t rows)
{
    uint32_t atom = 128u << swizzle; /* 8 rows of 16 bytes for each chunk of the swizzle */
    uint32_t chunks = rows / 8, wide = (chunks + (1u << swizzle) - 1) >> swizzle;

    *l = (wgmma_layout){.start = start, .swizzle = swizzle, .across = across};
    if (swizzle == 0) { /* gaps show which offset is which */
        l->leading = across ? (atom + 16) * chunks + 32 : atom + 32;
        l->stride = across ? atom + 16 : 2 * atom + 64;
    } else if (across) {
        l->leading = 2 * atom;
        l->stride = atom;
    } else {
        l->leading = 16;
        l->stride = atom;
    }
    uint32_t bytes = across && swizzle > 0 ? wide * l->leading + 2 * l->stride
                                           : chunks * l->stride + 2 * l->leading;
    return start + (bytes + 1023) / 1024 * 1024;
}

void wgmma_case_place(wgmma_case *c, uint32_t swizzle_a, bool across_a, uint32_t swizzle_b,
                      bool across_b)
{
    uint32_t end = place(&c->a_layout, 1024, swizzle_a, across_a, WGMMA_CASE_M);

    end = place(&c->b_layout, end, swizzle_b, across_b, c->n);
    ck_assert_uint_le(end + 1024, WGMMA_CASE_SHARED);
    c->shared = end + 1024;
}

static uint32_t random_code(uint64_t *state, tensor_type type)
{
    uint32_t r = (uint32_t)random_next(state);

    switch (type) {
    case TENSOR_E4M3:
        return (r & 0x7f) == 0x7f ? 0x38 : r & 0xff;
    case TENSOR_E5M2:
        return (r & 0x7c) == 0x7c ? 0x3c : r & 0xff;
    case TENSOR_F16:
        return (r & 0x7c00) == 0x7c00 ? 0x3c00 : r & 0xffff;
    case TENSOR_BF16: /* about one, so that sums stay finite */
        return (r & 0x81ff) | 0x3e00;
    case TENSOR_TF32:
        return (r & 0x40fff) | 0x1f000;
    default:
        return r & 0xff;
    }
}

void wgmma_case_fill(wgmma_case *c, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;

    for (uint32_t k = 0; k < WGMMA_CASE_K; k++) {
        for (uint32_t row = 0; row < WGMMA_CASE_M; row++) {
            c->a[row][k] = random_code(&state, c->a_type);
        }
        for (uint32_t column = 0; column < WGMMA_CASE_N; column++) {
            c->b[column][k] = random_code(&state, c->b_type);
        }
    }
    for (uint32_t n = 0; n < WGMMA_CASE_M * WGMMA_CASE_N; n++) {
        uint32_t r = (uint32_t)random_next(&state);
        float value = (float)(int32_t)r * 0x1p-20f;
        uint32_t *to = &c->c[n / WGMMA_CASE_N][n % WGMMA_CASE_N];
        *to = is_integer(c) ? r : tensor_half_code(value);
        if (!is_integer(c) && !is_half(c)) {
            memcpy(to, &value, sizeof value);
        }
    }
}

/* ---- The kernel ---------------------------------------------------------------------------- */

typedef struct text {
    char *at;
    size_t len, capacity;
} text;
#define ADD(t, ...)                                                                                \
    (t)->len += (size_t)snprintf((t)->at + (t)->len, (t)->capacity - (t)->len, __VA_ARGS__)

static uint32_t registers_of(const wgmma_case *c)
{
    return c->n / (is_half(c) ? 4 : 2);
}

static void add_product(text *t, const wgmma_case *c)
{
    bool halves = bytes_of(c->a_type) == 2;

    ADD(t, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s%s.%s.%s {", c->n, wgmma_case_depth(c->a_type),
        c->result, c->saturate ? ".satfinite" : "", names[c->a_type], names[c->b_type]);
    for (uint32_t n = 0; n < registers_of(c); n++) {
        ADD(t, "%s%%d%u", n > 0 ? ", " : "", n);
    }
    ADD(t, "}, %s, %%xb, %%p0", c->registers_a ? "{%a0, %a1, %a2, %a3}" : "%xa");
    if (!is_integer(c)) {
        ADD(t, ", %d, %d", c->scale_a, c->scale_b);
    }
    if (halves && !c->registers_a) {
        ADD(t, ", %d", c->a_layout.across);
    }
    if (halves) {
        ADD(t, ", %d", c->b_layout.across);
    }
    ADD(t, ";\n");
}

/* Each thread brings its share of shared memory, its accumulators and its registers of A. */
static char *kernel_text(const wgmma_case *c)
{
    text t = {.at = calloc(1, 1 << 16), .capacity = 1 << 16};
    uint32_t registers = registers_of(c);

    ADD(&t,
        ".version 8.8\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 da, .param .u64 db, "
        ".param .u32 scale)\n{\n"
        ".shared .align 1024 .b8 buffer[%u];\n"
        ".reg .pred %%p<4>; .reg .b32 %%d<128>, %%a<4>, %%r<8>; .reg .b64 %%x<8>, %%xa, %%xb;\n"
        "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; ld.param.u64 %%xa, [da];\n"
        "ld.param.u64 %%xb, [db]; ld.param.u32 %%r0, [scale]; setp.ne.u32 %%p0, %%r0, 0;\n"
        "mov.u32 %%r1, %%tid.x; shl.b32 %%r2, %%r1, 4; mov.u32 %%r3, buffer;\n"
        "copy:\n"
        "cvt.u64.u32 %%x2, %%r2; add.s64 %%x3, %%x0, %%x2; add.s32 %%r4, %%r3, %%r2;\n"
        "ld.global.v4.u32 {%%d0, %%d1, %%d2, %%d3}, [%%x3];\n"
        "st.shared.v4.u32 [%%r4], {%%d0, %%d1, %%d2, %%d3};\n"
        "add.s32 %%r2, %%r2, 2048; setp.lt.u32 %%p1, %%r2, %u; @%%p1 bra copy;\n"
        "mul.wide.u32 %%x4, %%r1, 512; add.s64 %%x5, %%x0, %%x4; add.s64 %%x6, %%x1, %%x4;\n",
        WGMMA_CASE_SHARED, c->shared);
    for (uint32_t n = 0; n < registers; n++) {
        ADD(&t, "ld.global.u32 %%d%u, [%%x5+%u];\n", n, WGMMA_CASE_SHARED + 4 * n);
    }
    ADD(&t,
        "mul.wide.u32 %%x4, %%r1, 16; add.s64 %%x5, %%x0, %%x4;\n"
        "ld.global.v4.u32 {%%a0, %%a1, %%a2, %%a3}, [%%x5+%u];\n"
        "fence.proxy.async; bar.sync 0;\nwgmma.fence.sync.aligned;\n",
        WGMMA_CASE_SHARED + 512 * WGMMA_CASE_THREADS);
    add_product(&t, c);
    ADD(&t, "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
    for (uint32_t n = 0; n < registers; n++) {
        ADD(&t, "st.global.u32 [%%x6+%u], %%d%u;\n", 4 * n, n);
    }
    ADD(&t, "ret;\n}\n");
    return t.at;
}

/* ---- Its memory ---------------------------------------------------------------------------- */

static void write_operand(uint8_t *shared, const wgmma_layout *l, tensor_type type,
                          const uint32_t (*codes)[WGMMA_CASE_K], uint32_t rows)
{
    for (uint32_t k = 0; k < wgmma_case_depth(type); k++) {
        for (uint32_t mn = 0; mn < rows; mn++) {
            uint32_t code = type == TENSOR_TF32 ? codes[mn][k] << 13 | 0x155 : codes[mn][k];
            memcpy(shared + byte_at(l, bytes_of(type), mn, k), &code, bytes_of(type));
        }
    }
}

/* Registers of A, PTX's figures for m16n8: register 2h+s, lane 4g+t holds row g+8s, the 4 bytes
 * at 16h+4t of the row. */
static void write_registers(uint8_t *to, const wgmma_case *c)
{
    uint32_t bytes = bytes_of(c->a_type);

    for (uint32_t row = 0; row < WGMMA_CASE_M; row++) {
        for (uint32_t k = 0; k < wgmma_case_depth(c->a_type); k++) {
            uint32_t at = k * bytes, thread = row / 16 * 32 + row % 8 * 4 + at % 16 / 4;
            uint32_t reg = at / 16 * 2 + row % 16 / 8;
            uint32_t code = bytes == 4 ? c->a[row][k] << 13 | 0x155 : c->a[row][k];
            memcpy(to + thread * 16 + reg * 4 + at % 4, &code, bytes);
        }
    }
}

/* Thread and byte (of its 512) of an accumulator. */
static uint32_t accumulator_at(const wgmma_case *c, uint32_t row, uint32_t column)
{
    uint32_t thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
    uint32_t high = row % 16 / 8, odd = column % 2;

    return thread * 512 + (is_half(c) ? (column / 8 * 2 + high) * 4 + odd * 2
                                      : (column / 8 * 4 + high * 2 + odd) * 4);
}

hone_status wgmma_case_run(wgmma_case *c, ptx_bench *b)
{
    static uint8_t in[WGMMA_CASE_SHARED + WGMMA_CASE_THREADS * (512 + 16)];
    static uint8_t result[WGMMA_CASE_THREADS * 512];
    char *ptx = kernel_text(c);
    uint32_t element = is_half(c) ? 2 : 4, scale = c->accumulate;
    uint64_t da = descriptor(&c->a_layout), db = descriptor(&c->b_layout);

    memset(in, 0x7f, sizeof in); /* NaN of most types: what is read astray shows */
    write_operand(in, &c->a_layout, c->a_type, c->a, c->registers_a ? 0 : WGMMA_CASE_M);
    write_operand(in, &c->b_layout, c->b_type, c->b, c->n);
    write_registers(in + WGMMA_CASE_SHARED + sizeof result, c);
    for (uint32_t n = 0; n < WGMMA_CASE_M * c->n; n++) {
        uint32_t row = n / c->n, column = n % c->n;
        memcpy(in + WGMMA_CASE_SHARED + accumulator_at(c, row, column), &c->c[row][column],
               element);
    }
    uint64_t from = ptx_bench_buffer(b, in, sizeof in);
    uint64_t to = ptx_bench_buffer(b, result, sizeof result);
    hone_status status = ptx_bench_load(b, ptx);
    ck_assert_msg(status == HONE_OK, "%s", b->error.message);
    free(ptx);
    b->launch.arithmetic = c->mode;
    b->launch.timing = c->timing;
    status = ptx_bench_run(b, "k", (uint32_t[]){1, 1, 1}, (uint32_t[]){WGMMA_CASE_THREADS, 1, 1},
                           (void *[]){&from, &to, &da, &db, &scale});
    ptx_bench_read(b, to, result, sizeof result);
    memset(c->d, 0, sizeof c->d);
    for (uint32_t n = 0; n < WGMMA_CASE_M * c->n; n++) {
        uint32_t row = n / c->n, column = n % c->n;
        memcpy(&c->d[row][column], result + accumulator_at(c, row, column), element);
    }
    return status;
}

static uint32_t expected_integer(const wgmma_case *c, uint32_t row, uint32_t column)
{
    int64_t sum = c->accumulate ? (int32_t)c->c[row][column] : 0;

    for (uint32_t k = 0; k < WGMMA_CASE_K; k++) {
        uint32_t a = c->a[row][k], b = c->b[column][k];
        sum += (int64_t)(c->a_type == TENSOR_S8 ? (int8_t)a : (int32_t)a) *
               (c->b_type == TENSOR_S8 ? (int8_t)b : (int32_t)b);
    }
    if (c->saturate) {
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    }
    return (uint32_t)sum;
}

/* What the unit keeps and adds at once: kernels.md 6.2, and not the emulator's table. */
static tensor_unit unit_of(const wgmma_case *c)
{
    uint32_t bytes = bytes_of(c->a_type);
    tensor_unit unit =
        bytes == 1 ? (tensor_unit){13, 13, 32} : (tensor_unit){25, 23, 32 / (int32_t)bytes};

    if (is_half(c)) {
        unit.mantissa = TENSOR_HALF;
    } else if (c->mode != HONE_EMU_HW) {
        unit.mantissa = 23;
    }
    return unit;
}

uint32_t wgmma_case_expected(const wgmma_case *c, uint32_t row, uint32_t column)
{
    static const uint32_t signs[] = {[TENSOR_E4M3] = 0x80,
                                     [TENSOR_E5M2] = 0x80,
                                     [TENSOR_BF16] = 0x8000,
                                     [TENSOR_F16] = 0x8000,
                                     [TENSOR_TF32] = 0x40000};
    uint32_t a[WGMMA_CASE_K], bits = c->accumulate ? c->c[row][column] : 0;
    float value = 0.0f;

    if (is_integer(c)) {
        return expected_integer(c, row, column);
    }
    for (uint32_t k = 0; k < WGMMA_CASE_K; k++) {
        a[k] = c->a[row][k] ^ (c->scale_a * c->scale_b < 0 ? signs[c->a_type] : 0);
    }
    memcpy(&value, &bits, sizeof value);
    value = is_half(c) ? tensor_half_value(bits) : value;
    value = tensor_dot(a, c->b[column], wgmma_case_depth(c->a_type), value, c->a_type, c->b_type,
                       unit_of(c), c->mode);
    memcpy(&bits, &value, sizeof value);
    return is_half(c) ? tensor_half_code(value) : bits;
}
