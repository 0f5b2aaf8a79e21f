/* test_moe_layer.c - the experts of one rank from a router's choice to the tokens' sums, as a
 * serving engine launches them on an emulated GPU: align, quantise, W13 with SwiGLU and quantiser,
 * W2, combine; against float64.
 *
 * Experts have their models' sizes; weights of those without a token are NaN. HONE_MOE_EP says
 * among how many ranks experts are spread (128; the models' deployments have 8), and takes all
 * cases. Quantising gathers the tokens' activations by align's `source`. */
#include "core/numfmt.h"
#include "core/random.h"
#include "runtime/serving.h"
#include "tests/runtime/jit_fixture.h"
#include "tests/runtime/moe_layer.h"
#include "tests/runtime/store_fixture.h"
#include "tests/support/folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const model models[] = {
    {"deepseek-v3.2", 7168, 2048, 256, 8, 0, 0, 128, "f32-1x128-128x128",
     "activation=silu_mul,out=e4m3,out_group=128,out_scale=f32", "group=128,scale=f32"},
    {"deepseek-v4.1-flash", 5120, 2304, 384, 6, 1, 1, 32, "ue8m0-1x32-e2m1/1x32",
     "activation=silu_mul_v4,out=e4m3,out_group=32,out_scale=ue8m0", "group=32,scale=ue8m0"},
};

/* The long run takes all, others those that are `always` taken. */
static const struct {
    int model, routing;
    int64_t tokens;
    const char *layout;
    bool always;
} cases[] = {
    {0, DRAWN, 1, "contiguous", false},   {0, DRAWN, 64, "masked", true},
    {0, ONE_HAS_ALL, 8, "psum", true},    {0, ONLY_THE_LAST, 8, "contiguous", false},
    {1, DRAWN, 1, "masked", true},        {1, DRAWN, 64, "psum", false},
    {1, ONE_HAS_ALL, 8, "masked", false}, {1, ONLY_THE_LAST, 8, "contiguous", true},
    {0, DRAWN, 8, "psum", false},         {1, DRAWN, 8, "contiguous", true},
    {0, NOBODY, 8, "contiguous", false},  {1, NOBODY, 8, "psum", true},
    {0, NOBODY, 0, "masked", true},
};

static char folder[FOLDER_BYTES], store_file[1024], cache_path[1024];
static hone_runtime *rt;
static hone_error e;

/* An operand on the device. */
typedef struct buffer {
    CUdeviceptr at;
    uint64_t bytes;
} buffer;

static buffer room(uint64_t bytes)
{
    buffer b = {.bytes = bytes};

    ck_assert_int_eq(rt->device->driver->cuMemAlloc(&b.at, bytes > 0 ? bytes : 1), CUDA_SUCCESS);
    ck_assert_int_eq(rt->device->driver->cuMemsetD8(b.at, 0xff, bytes > 0 ? bytes : 1),
                     CUDA_SUCCESS);
    return b;
}

static buffer put(const void *bytes, uint64_t len)
{
    buffer b = room(len);

    ck_assert_int_eq(rt->device->driver->cuMemcpyHtoD(b.at, bytes, len), CUDA_SUCCESS);
    return b;
}

static void *fetch(buffer b)
{
    void *host = malloc(b.bytes + 1);

    ck_assert_ptr_nonnull(host);
    ck_assert_int_eq(rt->device->driver->cuMemcpyDtoH(host, b.at, b.bytes), CUDA_SUCCESS);
    return host;
}

static void release(buffer *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        rt->device->driver->cuMemFree(b[i].at);
    }
}

/* Launch; operands that are given lie at `b`, the others (address 0) get room. */
static void run(const char *text, buffer *b)
{
    const driver *d = rt->device->driver;
    const hone_problem problem = store_fixture_problem(text);
    hone_operand o[HONE_MAX_OPERANDS];
    hone_arg args[HONE_MAX_OPERANDS + 1];
    hone_choice choice;
    buffer workspace = {0};
    size_t len = 0;

    ck_assert_msg(hone_prepare(rt, &problem, 1, NULL, NULL, &e) == HONE_OK, "%s: %s", text,
                  e.message);
    ck_assert_msg(hone_lookup(rt, &problem, &choice, &e) == HONE_OK, "%s: %s", text, e.message);
    ck_assert_int_eq(hone_operands(&problem, o, &len, &e), HONE_OK);
    for (size_t i = 0; i < len; i++) {
        if (b[i].at == 0) {
            b[i] = room(o[i].bytes);
        }
        args[i] = (hone_arg){b[i].at, b[i].bytes, 0};
    }
    if (choice.workspace_bytes > 0) {
        workspace = room(choice.workspace_bytes);
        ck_assert_int_eq(d->cuMemsetD8(workspace.at, 0, workspace.bytes), CUDA_SUCCESS);
        args[len++] = (hone_arg){workspace.at, workspace.bytes, 0};
    }
    ck_assert_msg(hone_launch(&choice, args, len, NULL, &e) == HONE_OK, "%s: %s", text, e.message);
    ck_assert_msg(d->cuCtxSynchronize() == CUDA_SUCCESS, "%s: a fault", text);
    if (workspace.at != 0) {
        release(&workspace, 1);
    }
}

/* ---- The chain --------------------------------------------------------------------------------
 */

/* What the first product of `text` made, copied. */
static middle middle_of(const char *text, buffer place, const buffer first[7])
{
    return (middle){store_fixture_problem(text).as.moe_gemm, fetch(place), fetch(first[5]),
                    fetch(first[6])};
}

/* y, as it comes from the device, and what lies between the products; the caller frees both. */
static float *layer_run(const model *m, const char *layout, const weights *w13, const weights *w2,
                        const int32_t *ids, const float *weight, const uint16_t *x, int64_t tokens,
                        middle *own)
{
    const long long experts = local_experts(m), topk = m->topk, hidden = m->hidden;
    const uint64_t zero = 0;
    const bool masked = strcmp(layout, "masked") == 0;
    char text[512];

    buffer align[6] = {put(ids, (uint64_t)(tokens * topk) * 4), {0}, {0}, {0}, {0}, put(&zero, 8)};
    snprintf(text, sizeof text, "moe_align:tokens=%lld,experts=%lld,topk=%lld,group_layout=%s",
             (long long)tokens, experts, topk, layout);
    const long long rows = store_fixture_problem(text).as.moe_align.m;
    run(text, align);
    const buffer groups = align[1], source = align[2], place = align[3];

    buffer act[5] = {
        put(x, (uint64_t)(tokens * hidden) * 2), {0}, {0}, source, put(&zero, 8)}; /* dropped */
    snprintf(text, sizeof text,
             "act_quant:m=%lld,k=%lld,%s,row_set=gathered,tokens=%lld,topk=%lld,experts=%lld", rows,
             hidden, m->act, (long long)tokens, topk, masked ? experts : 1);
    run(text, act);

    buffer first[7] = {act[1], act[2], put(w13->codes, (uint64_t)experts * w13->matrix),
                       put(w13->scale, (uint64_t)experts * w13->scales), groups};
    snprintf(text, sizeof text,
             "moe_gemm:m=%lld,n=%lld,k=%lld,experts=%lld,tokens=%lld,topk=%lld,recipe=%s,"
             "group_layout=%s,b_scale_layout=row,%s",
             rows, (long long)w13->n, hidden, experts, (long long)tokens, topk, m->recipe, layout,
             m->codes);
    run(text, first);
    *own = middle_of(text, place, first);

    buffer second[6] = {first[5], first[6], put(w2->codes, (uint64_t)experts * w2->matrix),
                        put(w2->scale, (uint64_t)experts * w2->scales), groups};
    snprintf(text, sizeof text,
             "moe_gemm:m=%lld,n=%lld,k=%lld,experts=%lld,tokens=%lld,topk=%lld,recipe=%s,"
             "group_layout=%s,b_scale_layout=row",
             rows, hidden, (long long)w2->k, experts, (long long)tokens, topk, m->recipe, layout);
    run(text, second);

    buffer sums[5] = {second[5], place, put(weight, (uint64_t)(tokens * topk) * 4), align[5]};
    snprintf(text, sizeof text, "moe_combine:tokens=%lld,n=%lld,m=%lld,topk=%lld,out=f32",
             (long long)tokens, hidden, masked ? experts * rows : rows, topk);
    run(text, sums);

    const buffer counters[] = {align[5], act[4]};
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        uint64_t *dropped = fetch(counters[i]);
        ck_assert_uint_eq(*dropped, 0);
        free(dropped);
    }
    float *y = fetch(sums[4]);
    release(align, 6);
    release(act, 3);
    release(act + 4, 1);
    release(first + 2, 2);
    release(first + 5, 2);
    release(second + 2, 2);
    release(second + 5, 1);
    release(sums + 2, 1);
    release(sums + 4, 1);
    return y;
}

/* Behind the device's own codes one product is left, and sums of its rows; without codes all that
 * e4m3 loses. */
#define WITH_CODES    PRODUCT_OFF
#define WITHOUT_CODES 0.06

/* Without a row every token's sum is 0. */
static void check_zeros(const float *y, int64_t len)
{
    for (int64_t i = 0; i < len; i++) {
        ck_assert_double_eq((double)y[i], 0);
    }
}

START_TEST(a_rank_s_experts_sum_to_what_float64_says)
{
    if (!cases[_i].always && getenv("HONE_MOE_EP") == NULL) {
        return;
    }
    const model *m = &models[cases[_i].model];
    const int64_t tokens = cases[_i].tokens, experts = local_experts(m);
    int32_t *ids = calloc((size_t)(tokens * m->topk) + 1, sizeof *ids);
    float *weight = calloc((size_t)(tokens * m->topk) + 1, sizeof *weight);
    uint16_t *x = malloc((size_t)(tokens * m->hidden) * 2 + 1);
    bool used[512] = {false};
    uint64_t seed = 31;

    ck_assert(ids != NULL && weight != NULL && x != NULL && experts >= 2 && experts <= 512);
    route(m, cases[_i].routing, tokens, ids, weight);
    for (int64_t i = 0; i < tokens * m->topk; i++) {
        if (ids[i] >= 0) {
            used[ids[i]] = true;
        }
    }
    for (int64_t i = 0; i < tokens * m->hidden; i++) {
        const double sum = random_unit(&seed) + random_unit(&seed) + random_unit(&seed);
        x[i] = numfmt_bf16_encode((float)(2.0 * sum - 3.0));
    }
    weights w13 = weights_make(m, 2 * m->inter, m->hidden, used, 7);
    weights w2 = weights_make(m, m->hidden, m->inter, used, 8);
    middle own;
    float *y = layer_run(m, cases[_i].layout, &w13, &w2, ids, weight, x, tokens, &own);

    if (cases[_i].routing == NOBODY) {
        check_zeros(y, tokens * m->hidden);
    }
    for (int quantised = 0; quantised < 2 && cases[_i].routing != NOBODY; quantised++) {
        double *exact =
            layer_reference(m, &w13, &w2, ids, weight, x, tokens, quantised == 1 ? &own : NULL);
        const double off = relative_error(y, exact, tokens * m->hidden);
        ck_assert_msg(off <= (quantised == 1 ? WITH_CODES : WITHOUT_CODES),
                      "%s, %lld tokens, %s: %s codes off by %.3g", m->name, (long long)tokens,
                      cases[_i].layout, quantised == 1 ? "with" : "without", off);
        free(exact);
    }
    free(y);
    free(own.place);
    free(own.codes);
    free(own.scales);
    free(w13.codes);
    free(w13.scale);
    free(w2.codes);
    free(w2.scale);
    free(x);
    free(weight);
    free(ids);
}
END_TEST

/* ---- A weight gradient -------------------------------------------------------------------------
 */

enum { G_TOKENS = 60, G_TOPK = 3, G_EXPERTS = 5, G_ROWS = 40, G_COLUMNS = 24, G_GRAN = 32 };

/* An operand of the product: codes, expert after expert, scales [rows, groups of all experts], and
 * what they stand for, [rows, k]. */
typedef struct operand {
    int64_t rows, k;
    uint8_t *codes;
    float *scale;
    double *exact;
} operand;

/* The columns of one expert: tokens' numbers by `source`, quantised by G_GRAN of them. `plain`
 * [tokens, rows] is the layer's. */
static void pack_expert(const operand *o, const float *plain, const int32_t *source, int64_t first,
                        int64_t len)
{
    for (int64_t r = 0; r < o->rows; r++) {
        for (int64_t c = 0; c < len; c += G_GRAN) {
            float group[G_GRAN];
            uint8_t *to = o->codes + first * o->rows + r * len + c;
            for (int64_t i = 0; i < G_GRAN; i++) {
                const int32_t entry = source[first + c + i];
                group[i] = entry < 0 ? 0.0f : plain[entry / G_TOPK * o->rows + r];
            }
            const float s =
                numfmt_quantise(group, G_GRAN, HONE_RULE_RAW_AMAX, HONE_DTYPE_E4M3, to, NULL);
            o->scale[r * (o->k / G_GRAN) + (first + c) / G_GRAN] = s;
            for (int64_t i = 0; i < G_GRAN; i++) {
                o->exact[r * o->k + first + c + i] = (double)s * (double)numfmt_e4m3_decode(to[i]);
            }
        }
    }
}

/* NaN behind the last expert's columns. */
static operand operand_make(int64_t rows, int64_t k, const int32_t *groups, const int32_t *source,
                            uint64_t seed)
{
    const size_t codes = (size_t)(rows * k), scales = (size_t)(rows * (k / G_GRAN)) * 4;
    operand o = {rows, k, malloc(codes), malloc(scales), calloc(codes, sizeof(double))};
    float plain[G_TOKENS * G_ROWS];
    int64_t first = 0;

    ck_assert(o.codes != NULL && o.scale != NULL && o.exact != NULL && rows <= G_ROWS);
    memset(o.codes, 0xff, codes);
    memset(o.scale, 0xff, scales);
    for (int64_t i = 0; i < G_TOKENS * rows; i++) {
        plain[i] = (float)(random_unit(&seed) - 0.5);
    }
    for (int64_t x = 0; x < G_EXPERTS; first += groups[x], x++) {
        pack_expert(&o, plain, source, first, groups[x]);
    }
    ck_assert_int_lt(first, k);
    return o;
}

static void operand_free(operand *o)
{
    free(o->codes);
    free(o->scale);
    free(o->exact);
}

static void check_gradient(const float *d, const operand *a, const operand *b,
                           const int32_t *groups)
{
    int64_t first = 0;

    for (int64_t x = 0; x < G_EXPERTS; first += groups[x], x++) {
        for (int64_t i = 0; i < G_ROWS * G_COLUMNS; i++) {
            double sum = 0, size = 0;
            for (int64_t c = first; c < first + groups[x]; c++) {
                const double one =
                    a->exact[i / G_COLUMNS * a->k + c] * b->exact[i % G_COLUMNS * b->k + c];
                sum += one;
                size += fabs(one);
            }
            ck_assert_double_le(fabs((double)d[x * G_ROWS * G_COLUMNS + i] - sum), 5e-3 * size);
        }
    }
}

/* From a router's choice to D of every expert, one of which no token has chosen. */
START_TEST(a_weight_gradient_takes_a_routers_choice)
{
    int32_t ids[G_TOKENS * G_TOPK];
    const uint64_t zero = 0;
    uint64_t seed = 77;
    char text[256];

    for (int64_t i = 0; i < G_TOKENS * G_TOPK; i++) { /* nobody chooses expert 2 */
        const int32_t id = (int32_t)random_below(&seed, G_EXPERTS + 1) - 1;
        ids[i] = id == 2 ? -1 : id;
    }
    buffer align[6] = {put(ids, sizeof ids), {0}, {0}, {0}, {0}, put(&zero, 8)};
    snprintf(text, sizeof text,
             "moe_align:tokens=%d,experts=%d,topk=%d,group_layout=grouped_k,row_align=%d", G_TOKENS,
             G_EXPERTS, G_TOPK, G_GRAN);
    const int64_t k = store_fixture_problem(text).as.moe_align.m, scales = k / G_GRAN * 4;
    run(text, align);
    int32_t *groups = fetch(align[1]), *source = fetch(align[2]);
    ck_assert_int_eq(groups[2], 0);
    operand a = operand_make(G_ROWS, k, groups, source, 5),
            b = operand_make(G_COLUMNS, k, groups, source, 6);
    buffer gemm[6] = {put(a.codes, (uint64_t)(G_ROWS * k)),
                      put(a.scale, (uint64_t)(G_ROWS * scales)),
                      put(b.codes, (uint64_t)(G_COLUMNS * k)),
                      put(b.scale, (uint64_t)(G_COLUMNS * scales)), align[1]};
    snprintf(
        text, sizeof text,
        "moe_gemm:m=%d,n=%d,k=%lld,experts=%d,tokens=%d,topk=%d,group_layout=grouped_k,out=f32,"
        "recipe=f32-1x32-1x32,a_scale_layout=row,b_scale_layout=row",
        G_ROWS, G_COLUMNS, (long long)k, G_EXPERTS, G_TOKENS, G_TOPK);
    run(text, gemm);
    float *d = fetch(gemm[5]);
    check_gradient(d, &a, &b, groups);
    operand_free(&a);
    operand_free(&b);
    free(groups);
    free(source);
    free(d);
    release(align, 6);
    release(gemm, 4);
    release(gemm + 5, 1);
}
END_TEST

static void setup(void)
{
    const hone_options options = {
        .size = sizeof options, .allow_modelled = 1, .cache_path = cache_path};

    jit_fixture_need_nvrtc();
    folder_make(folder);
    snprintf(store_file, sizeof store_file, "%s/hone.db", folder);
    snprintf(cache_path, sizeof cache_path, "%s/kernels.db", folder);
    ck_assert(store_fixture_write(store_file, NULL, 0));
    ck_assert_msg(hone_open(store_file, "emu:h20", &options, &rt, &e) == HONE_OK, "%s", e.message);
}

static void teardown(void)
{
    hone_close(rt);
    folder_remove(folder);
}

int main(void)
{
    TCase *tests = tcase_create("moe_layer");

    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, a_rank_s_experts_sum_to_what_float64_says, 0, ARRAY_LEN(cases));
    tcase_add_test(tests, a_weight_gradient_takes_a_routers_choice);
    return suite_run_here("runtime/moe_layer", tests);
}
